/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing arrays and scope-exit cleanup.
 */
#ifndef TS_BASE_MEMORY_H
#define TS_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/error.h>

#include "base/local/macros.h"

/*
 * Ensures capacity for at least `need` items of `item_bytes` in *array, growing geometrically, so
 * that appending n items is linear. On failure (no memory, or a size beyond size_t) nothing changes
 * and TS_ENOMEM is returned. `array` is the address of a typed pointer:
 *
 *	if (ts_grow_array((void **)&rows, &capacity, count + 1, sizeof(*rows)))
 *
 * New items are not initialised. Freed with free().
 */
int ts_grow_array(void **array, size_t *capacity, size_t need, size_t item_bytes);

/* malloc(count * item_bytes) that returns NULL on overflow. Caller frees. */
static inline void *ts_alloc_array(size_t count, size_t item_bytes)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, item_bytes, &bytes))
		return NULL;
	return malloc(bytes ? bytes : 1);
}

/* qsort() that accepts NULL for an empty array. */
static inline void ts_sort(void *items, size_t count, size_t item_bytes,
			   int (*compare)(const void *a, const void *b))
{
	if (count > 1)
		qsort(items, count, item_bytes, compare);
}

/*
 * Scope exit. For a heap object `struct ts_reader *` freed by ts_reader_close(), which must accept
 * NULL, write once, beside the prototype of ts_reader_close():
 *
 *	TS_DEFINE_AUTO(ts_reader, ts_reader_close)
 *
 * and then in functions:
 *
 *	TS_AUTO(ts_reader) reader = NULL;
 *	...
 *	*ret_reader = TS_STEAL(reader);
 *
 * For caller's storage, whose ts_text_release() must accept zeros:
 *
 *	TS_SCOPED(ts_text) text = { 0 };
 *
 * All are initialized where they are declared, which lint checks: a return may precede any later
 * initialization.
 */
#define TS_DEFINE_AUTO(name, function)                         \
	static inline void name##_auto_(struct name **pointer) \
	{                                                      \
		if (*pointer)                                  \
			function(*pointer);                    \
	}                                                      \
	struct name

#define TS_AUTO(name) __attribute__((cleanup(name##_auto_))) struct name *
#define TS_SCOPED(name) __attribute__((cleanup(name##_release))) struct name

/* Memory from malloc(): TS_AUTO_FREE char *copy = NULL; */
#define TS_AUTO_FREE __attribute__((cleanup(ts_auto_free_)))
/* A file descriptor, closed unless negative: TS_AUTO_FD int fd = -1; */
#define TS_AUTO_FD __attribute__((cleanup(ts_auto_fd_)))

/* Moves a pointer out of its scope: returns its value and sets it to NULL. */
#define TS_STEAL(pointer)                                   \
	__extension__({                                     \
		__typeof__(pointer) ts_stolen_ = (pointer); \
		(pointer) = NULL;                           \
		ts_stolen_;                                 \
	})

static inline void ts_auto_free_(void *address)
{
	void *pointer;

	/* The variable may be a pointer to any type: memcpy() avoids a type-punned access. */
	memcpy(&pointer, address, sizeof(pointer));
	free(pointer);
}

void ts_auto_fd_(int *fd);

#endif
