/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A metric source: what the devices of one vendor report, seen from outside the programs that use
 * them. The recorder samples it into the trace, `tracesmith top` shows it, `tracesmith doctor`
 * checks it.
 *
 * One `const struct ts_metrics_source` each. To add one to this repository: a folder in
 * src/sample/metrics/ and a line in the table of metric_sources.c. To add one without touching this
 * repository: a shared object libtracesmith-backend-NAME.so whose `ts_backend`
 * (<tracesmith/backend.h>) has it as its member `metrics`; `record --backends NAME` and `top
 * --backends NAME` find it.
 *
 * Rules: a source runs on its own thread, so it may be slow or hang without delaying others. A
 * value that cannot be read is left out, never reported as zero. Names end in their unit:
 * "power_W", "memory_bytes"; use those of docs/metrics.md where they fit, so that one query works
 * for all vendors. It prints nothing: messages for users go to sink->message.
 */
#ifndef TRACESMITH_METRICS_H
#define TRACESMITH_METRICS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TS_METRICS_ABI 1u
#define TS_METRICS_UNKNOWN INT64_MIN /* an unknown number */

struct ts_metrics_device {
	uint32_t number; /* number in the vendor's tools, below 65536; constant while the source is
			    open */
	const char *vendor; /* texts: "" or NULL if unknown */
	const char *model;
	const char *uuid; /* what other tools know it by */
	const char *bus;  /* PCI address */
	int64_t memory_bytes;
};

enum ts_metrics_kind {
	TS_METRICS_SYSTEM = 1,
	TS_METRICS_PROCESS = 2,
	TS_METRICS_DEVICE = 3,
	TS_METRICS_PROCESS_ON_DEVICE = 4,
};

/* The subject of a value. */
struct ts_metrics_subject {
	enum ts_metrics_kind kind;
	uint32_t device;     /* its number */
	int32_t pid;         /* as the caller sees it */
	uint64_t start_time; /* of the process: field 22 of /proc/PID/stat; 0: unknown */
};

/* Where a source reports values. Strings are copied. */
struct ts_metrics_sink {
	uint32_t size; /* size of this struct, as the caller was compiled */
	void *context;
	/* Once per device, before its first value, and again when it has changed. */
	void (*device)(void *context, const struct ts_metrics_device *device);
	/*
	 * Consecutive values with the same subject and name form one row: "clock_MHz" with
	 * "compute" and "memory".
	 */
	void (*real)(void *context, const struct ts_metrics_subject *subject, const char *name,
		     const char *series, double value);
	void (*integer)(void *context, const struct ts_metrics_subject *subject, const char *name,
			const char *series, int64_t value);
	/* Why something is missing, and how to fix it; each text is passed on once. */
	void (*message)(void *context, const char *text);
};

enum ts_metrics_state {
	TS_METRICS_READY,
	TS_METRICS_NONE,   /* no such device */
	TS_METRICS_BROKEN, /* present but unreadable: *why says how to fix it */
};

struct ts_metrics_source {
	uint32_t abi;  /* TS_METRICS_ABI */
	uint32_t size; /* size of this struct, as the source was compiled */
	const char *name;
	const char *summary;
	int64_t least_interval_ns; /* minimum interval between samples */
	enum ts_metrics_state (*open)(void **ret_state, char *why, size_t why_bytes);
	/* 0, or nonzero if nothing can be read any more: the source is then closed. */
	int (*sample)(void *state, const struct ts_metrics_sink *sink);
	void (*close)(void *state);
};

#ifdef __cplusplus
}
#endif

#endif
