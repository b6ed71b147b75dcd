/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports traces to the formats of other tools. To add one: a folder src/export/<format>/ with
 * an export function, and a row in the table of src/export/export.c.
 */
#ifndef TRACESMITH_EXPORT_H
#define TRACESMITH_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For formats of sampled stacks: see `takes` of struct ts_exporter. */
#define TS_EXPORT_NO_LINES 1u   /* frames without lines: a function is one frame */
#define TS_EXPORT_NO_THREADS 2u /* all processes and threads together */
#define TS_EXPORT_NO_IDLE 4u    /* skip samples of idle threads */
#define TS_EXPORT_TIME 8u       /* weigh stacks by ns instead of samples */
/* Instead of samples: */
#define TS_EXPORT_DEVICE 16u /* stacks of launches, weighed by the ns of device work */
#define TS_EXPORT_CALLS 32u  /* stacks of driver calls, weighed by their number */
#define TS_EXPORT_MEMORY 64u /* stacks of allocations, weighed by bytes */
#define TS_EXPORT_SPANS 128u /* nested spans of threads, weighed by their own ns */

#define TS_EXPORT_NO_GPU_STAGES 256u /* Perfetto: device work only as spans of its streams */

/* Only in `takes`, not in `flags`: members of the options that have an effect. */
#define TS_EXPORT_TABLE 65536u
#define TS_EXPORT_RANGE 131072u
#define TS_EXPORT_LIMIT 262144u

/* Zero in any member means its default. `size` is sizeof(struct ts_export_options). */
struct ts_export_options {
	size_t size;
	/*
	 * Called from time to time with the progress; return nonzero to cancel with TS_ECANCELED.
	 */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
	unsigned int flags; /* TS_EXPORT_* */
	const char *table;  /* TS_EXPORT_TABLE: the table to write */
	int64_t from,
		to; /* TS_EXPORT_RANGE: rows that overlap this, in trace time; both 0: everything */
	uint64_t limit; /* TS_EXPORT_LIMIT: at most this many */
	/*
	 * Called for rows that the format cannot represent, once per table and reason; may be NULL.
	 */
	void (*left_out)(void *context, const char *table, uint64_t rows, const char *reason);
};

#define TS_EXPORT_ENDINGS 2

struct ts_exporter {
	const char *name;
	const char *doc;
	unsigned int takes; /* flags that have an effect */
	/* Writes the entire trace to fd. Only dot needs memory that grows with the trace. */
	int (*run)(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		   struct ts_error *err);
	const char *endings[TS_EXPORT_ENDINGS]; /* of names of its files; NULL: no more */
};

/* All exporters. */
const struct ts_exporter *ts_exporter_list(size_t *ret_count);

/* The exporter of that name, or NULL. */
const struct ts_exporter *ts_exporter_find(const char *name);

/* The exporter for a file, by the longest ending of its name, before a ".gz"; NULL: none. */
const struct ts_exporter *ts_exporter_for_file(const char *name);

/* Does the name of a file ask for compression, by ending in ".gz"? */
bool ts_export_is_compressed(const char *name);

#ifdef __cplusplus
}
#endif

#endif
