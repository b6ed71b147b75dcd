/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays and scope-exit helpers. */
#include "base/memory.h"

#include <errno.h>
#include <unistd.h>

/* First allocation of an array: enough that small ones never grow. */
#define FIRST_BYTES 64

int ts_grow_array(void **array, size_t *capacity, size_t need, size_t item_bytes)
{
	size_t wanted = *capacity, bytes;
	void *old, *grown;

	if (need <= *capacity)
		return TS_OK;
	if (item_bytes == 0)
		return TS_ENOMEM;
	if (__builtin_add_overflow(wanted, wanted / 2, &wanted))
		wanted = need;
	wanted = TS_MAX(wanted, TS_MAX(need, FIRST_BYTES / item_bytes));
	/* Growing by half may fail where the needed size itself does not. */
	if (__builtin_mul_overflow(wanted, item_bytes, &bytes) || bytes > PTRDIFF_MAX) {
		wanted = need;
		if (__builtin_mul_overflow(wanted, item_bytes, &bytes) || bytes > PTRDIFF_MAX)
			return TS_ENOMEM;
	}
	/*
	 * The caller's variable may be a pointer to any type: memcpy() avoids a type-punned access.
	 */
	memcpy(&old, array, sizeof(old));
	grown = realloc(old, bytes);
	if (!grown)
		return TS_ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	*capacity = wanted;
	return TS_OK;
}

void ts_auto_fd_(int *fd)
{
	int saved_errno = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved_errno;
}
