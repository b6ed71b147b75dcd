/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of metrics: what the devices of one maker tell of themselves, seen from outside the
 * programs that use them. The recorder samples it into the trace, `tracesmith top` shows it,
 * `tracesmith doctor` says whether it works.
 *
 * One `const struct ts_metrics_source` each. How to add one of ours: a file in src/sample/metrics/
 * and a line in the table of metric_sources.c. How to add one without touching this repository: a
 * shared object libtracesmith-backend-NAME.so whose `ts_backend` (<tracesmith/backend.h>) has it as
 * its member `metrics`; `record --backends NAME` and `top --backends NAME` find it.
 *
 * Rules: a source runs on a thread of its own, so it may be slow, or hang, without delaying others.
 * A value that cannot be read is not given, never given as zero. Names carry their unit: "power_W",
 * "memory_bytes"; use those of docs/metrics.md where they fit, so that one question serves all
 * makers. It prints nothing: what a user should know goes to sink->message.
 */
#ifndef TRACESMITH_METRICS_H
#define TRACESMITH_METRICS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TS_METRICS_ABI 1u
#define TS_METRICS_UNKNOWN INT64_MIN /* a number that is not known */

struct ts_metrics_device {
	uint32_t number; /* what the maker's tools call it, below 65536; stays while the source is
			    open */
	const char *vendor; /* texts: "" or NULL where not known */
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

/* Whom a value is about. */
struct ts_metrics_subject {
	enum ts_metrics_kind kind;
	uint32_t device;     /* its number */
	int32_t pid;         /* as the caller sees it */
	uint64_t start_time; /* of the process: field 22 of /proc/PID/stat; 0: not known */
};

/* Where a source puts what it found. Texts are copied. */
struct ts_metrics_sink {
	uint32_t size; /* of this struct, as the caller was compiled */
	void *context;
	/*
	 * Once for each device, ahead of its first value, and again when something of it changed.
	 */
	void (*device)(void *context, const struct ts_metrics_device *device);
	/*
	 * Values of one subject and name that follow each other are one row: "clock_MHz" with
	 * "compute" and "memory".
	 */
	void (*real)(void *context, const struct ts_metrics_subject *subject, const char *name,
		     const char *series, double value);
	void (*integer)(void *context, const struct ts_metrics_subject *subject, const char *name,
			const char *series, int64_t value);
	/* Why something is missing, and what to do; the same text is passed on once. */
	void (*message)(void *context, const char *text);
};

enum ts_metrics_state {
	TS_METRICS_READY,
	TS_METRICS_NONE,   /* there is nothing of this kind here */
	TS_METRICS_BROKEN, /* there is, but it cannot be read: *why says what to do */
};

struct ts_metrics_source {
	uint32_t abi;  /* TS_METRICS_ABI */
	uint32_t size; /* of this struct, as the source was compiled */
	const char *name;
	const char *summary;
	int64_t least_interval_ns; /* it is not asked more often */
	enum ts_metrics_state (*open)(void **ret_state, char *why, size_t why_bytes);
	/* 0, or non-zero when nothing can be read any more: it is closed then. */
	int (*sample)(void *state, const struct ts_metrics_sink *sink);
	void (*close)(void *state);
};

#ifdef __cplusplus
}
#endif

#endif
