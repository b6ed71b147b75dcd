/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding window over a file. */
#include "import/xray/xray_window.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

#define WINDOW_BYTES ((size_t)256 << 10)

void ts_window_init(struct ts_window *window, int fd, const char *path)
{
	*window = (struct ts_window){ .fd = fd, .path = path };
}

void ts_window_release(struct ts_window *window)
{
	free(window->data);
	window->data = NULL;
}

int ts_window_move_(struct ts_window *window, uint64_t at, size_t need, struct ts_error *err)
{
	if (ts_grow_array((void **)&window->data, &window->capacity, TS_MAX(need, WINDOW_BYTES), 1))
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", window->path);
	window->at = at;
	window->bytes = 0;
	while (window->bytes < window->capacity) {
		ssize_t got = pread(window->fd, window->data + window->bytes,
				    window->capacity - window->bytes, (off_t)(at + window->bytes));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return ts_error_errno(err, errno, "input '%s'", window->path);
		if (got == 0)
			break;
		window->bytes += (size_t)got;
	}
	return TS_OK;
}
