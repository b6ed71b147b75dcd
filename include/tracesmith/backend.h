/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend: a source of events inside the target, beside what the program emits itself (a GPU
 * driver's calls, say). One `const struct ts_backend` each.
 *
 * How to add one of ours, `name`: a folder src/backends/name/ with the struct, and one line in the
 * table of src/backends/agent_load.c. How to add one without touching this repository: build a shared
 * object libtracesmith-backend-NAME.so that exports
 *
 *	const struct ts_backend ts_backend = { .abi = TS_BACKEND_ABI, .size = sizeof(ts_backend),
 *					       .name = "mydevice", .start = my_start, ... };
 *
 * and emits through <tracesmith/emit.h>. `tracesmith record --backends mydevice -- CMD` finds it by
 * the rules of dlopen().
 *
 * Rules: start() is called once a process, from the thread that loads the agent or emits first, and
 * again in a forked child that emits; it returns 0, or non-zero to stay out, which the trace then
 * says. No backend may print, abort, or wait for anybody on the program's way.
 */
#ifndef TRACESMITH_BACKEND_H
#define TRACESMITH_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TS_BACKEND_ABI 1u

struct ts_backend {
	uint32_t abi;  /* TS_BACKEND_ABI; a backend of another number is not started */
	uint32_t size; /* of this struct, as the backend was compiled */
	const char *name;
	const char *summary;
	int (*start)(void); /* NULL: nothing runs in targets */
	void (*stop)(void); /* at exit; may be NULL */
	/*
	 * What the recorder samples beside it; NULL: nothing. Backends built before this was there
	 * end above it.
	 */
	const struct ts_metrics_source *metrics;
};

#ifdef __cplusplus
}
#endif

#endif
