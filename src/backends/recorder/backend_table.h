/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends that the tool knows: the built-in ones, and libraries loaded by name. How to add one
 * is described in <tracesmith/backend.h>.
 */
#ifndef TS_BACKENDS_RECORDER_BACKEND_TABLE_H
#define TS_BACKENDS_RECORDER_BACKEND_TABLE_H

#include <stdbool.h>

#include <tracesmith/backend.h>
#include <tracesmith/error.h>

extern const struct ts_backend ts_cuda_descriptor;
extern const struct ts_backend ts_opencl_descriptor;

struct ts_known_backend {
	struct ts_backend backend; /* fields that its library did not know are zero */
	bool is_built_in;
	char folder[1024]; /* of its library; "": built in, or not known */
};

/*
 * The n-th known backend: built-in ones, in the order in which their libraries are preloaded, then
 * those that ts_backend_load() has loaded. NULL behind the last. Pointers stay valid. Some may be
 * `unavailable`.
 */
const struct ts_known_backend *ts_backend_known(size_t n);

/* The known backend of that name, or NULL. */
const struct ts_known_backend *ts_backend_find(const char *name);

/*
 * The same, and loads libtracesmith-backend-NAME.so where there is none. TS_ENOTFOUND where that
 * cannot be loaded, TS_ECAP where it was built for another version of the interface. Any thread may
 * call it. A library stays loaded.
 */
int ts_backend_load(const char *name, const struct ts_known_backend **ret_known,
		    struct ts_error *err);

/* Is the name an element of a list separated by commas? `list` may be NULL. */
bool ts_backend_is_listed(const char *list, const char *name);

/* The known backend with that window, for `text` as in "nvtx:step" or "cuda-profiler-api". */
const struct ts_known_backend *ts_backend_of_window(const char *text,
						    const struct ts_backend_window **ret_window);

#endif
