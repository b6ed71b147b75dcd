/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the importers: the import job, and the functions listed in the table of import.c. See
 * <tracesmith/import.h> for how to add one.
 */
#ifndef TS_IMPORT_IMPORT_H
#define TS_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/import.h>

#include "base/text.h"
#include "import/common/input_stream.h"

/* Longest string of a trace; docs/format.md, section 7. */
#define TS_IMPORT_MAX_STRING ((size_t)64 << 20)

/* One file being imported. */
struct ts_import {
	struct ts_writer *writer;
	const char *path;              /* as given; for messages */
	struct ts_input_stream stream; /* its first bytes are in the buffer */
	struct ts_import_options options;
	struct ts_import_result result; /* the importer counts events and writes notes */
	/* Is it a regular, uncompressed file? May be NULL: no. */
	bool (*is_plain_file)(struct ts_import *import);
	struct ts_text scratch;     /* of ts_import_string() */
	struct ts_writer_cuts cuts; /* that are not of this file */
	/* Position in the file as stored on disk; total 0: unknown. */
	void (*position)(struct ts_import *import, uint64_t *ret_done, uint64_t *ret_total);
	void *position_context;
};

/*
 * Refills the stream and calls the progress function. TS_ECANCELED if that cancels, the writer's
 * error if it has failed.
 */
int ts_import_refill(struct ts_import *import, const char *keep, struct ts_error *err);

/*
 * Makes at least `bytes` bytes available at stream.js.next, for formats that are not JSON.
 * *ret_held is the number available: fewer only at the end of the file. Invalidates pointers into
 * the buffer.
 */
int ts_import_need(struct ts_import *import, size_t bytes, size_t *ret_held, struct ts_error *err);

/* Text as a string of the trace, converted to valid UTF-8. 0: the writer has failed. */
uint32_t ts_import_string(struct ts_import *import, const char *text, size_t length);

/*
 * TS_EFORMAT with a message for a file that is invalid at a byte of the decompressed content, or
 * truncated; mentions that earlier content was kept, if any. `reason` is lower case, without a full
 * stop.
 */
int ts_import_bad(const struct ts_import *import, uint64_t at, const char *reason,
		  struct ts_error *err);
int ts_import_cut(const struct ts_import *import, uint64_t at, struct ts_error *err);

/*
 * Like ts_import_file() for bytes in memory, for tests and fuzzing. Reads `step` bytes at a time
 * through a buffer of initially `capacity` bytes (0: as for files), so that values are split.
 */
int ts_import_memory(struct ts_writer *writer, const char *name, const void *data, size_t bytes,
		     size_t step, size_t capacity, const struct ts_import_options *options,
		     struct ts_import_result *ret_result, struct ts_error *err);

/*
 * Per format: a probe of the first bytes, and the importer. Two formats are SQLite databases, which
 * are distinguished by their tables.
 */
int ts_sqlite_probe(const char *data, size_t bytes);
int ts_sqlite_run(struct ts_import *import, struct ts_error *err);
int ts_rocprof_probe(const char *data, size_t bytes);
int ts_rocprof_run(struct ts_import *import, struct ts_error *err);
int ts_rocprof_csv_probe(const char *data, size_t bytes);
int ts_rocprof_csv_run(struct ts_import *import, struct ts_error *err);
int ts_xray_probe(const char *data, size_t bytes);
int ts_xray_run(struct ts_import *import, struct ts_error *err);
int ts_torch_memory_probe(const char *data, size_t bytes);
int ts_torch_memory_run(struct ts_import *import, struct ts_error *err);
int ts_pprof_probe(const char *data, size_t bytes);
int ts_pprof_run(struct ts_import *import, struct ts_error *err);
int ts_perfetto_probe(const char *data, size_t bytes);
int ts_perfetto_run(struct ts_import *import, struct ts_error *err);
int ts_perf_probe(const char *data, size_t bytes);
int ts_perf_run(struct ts_import *import, struct ts_error *err);
int ts_folded_probe(const char *data, size_t bytes);
int ts_folded_run(struct ts_import *import, struct ts_error *err);
int ts_speedscope_probe(const char *data, size_t bytes);
int ts_speedscope_run(struct ts_import *import, struct ts_error *err);
int ts_kineto_probe(const char *data, size_t bytes);
int ts_chrome_probe(const char *data, size_t bytes);
int ts_chrome_run(struct ts_import *import, struct ts_error *err);

#endif
