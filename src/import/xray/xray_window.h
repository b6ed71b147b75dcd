/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a file in memory, moved to wherever the reader looks. */
#ifndef TS_IMPORT_XRAY_XRAY_WINDOW_H
#define TS_IMPORT_XRAY_XRAY_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

struct ts_window {
	int fd;
	const char *path; /* for messages; borrowed */
	char *data;
	size_t capacity, bytes;
	uint64_t at; /* of its first byte in the file */
};

void ts_window_init(struct ts_window *window, int fd, const char *path);
void ts_window_release(struct ts_window *window);

/* Slow path of ts_window_get(): moves the window. */
int ts_window_move_(struct ts_window *window, uint64_t at, size_t need, struct ts_error *err);

/*
 * The bytes from `at` on: *ret_held of them, at least `need` unless the file ends. Grows if `need`
 * exceeds its size. Invalidated by the next call.
 */
static inline int ts_window_get(struct ts_window *window, uint64_t at, size_t need,
				const char **ret_data, size_t *ret_held, struct ts_error *err)
{
	int rc = TS_OK;

	if (at < window->at || at - window->at > window->bytes ||
	    window->bytes - (size_t)(at - window->at) < need)
		rc = ts_window_move_(window, at, need, err);
	*ret_data = NULL;
	*ret_held = 0;
	if (rc)
		return rc;
	*ret_data = window->data + (at - window->at);
	*ret_held = window->bytes - (size_t)(at - window->at);
	return TS_OK;
}

#endif
