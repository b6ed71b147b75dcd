/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What importers share: the job that they are given, and the functions that the table in import.c
 * lists. See <tracesmith/import.h> for how to add one.
 */
#ifndef TS_IMPORT_IMPORT_H
#define TS_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/import.h>

#include "base/text.h"
#include "import/common/input_stream.h"

/* Longest text of a trace; docs/format.md, section 7. */
#define TS_IMPORT_MAX_STRING ((size_t)64 << 20)

/* One file on its way into a trace. */
struct ts_import {
	struct ts_writer *writer;
	const char *path;        /* as given; for messages */
	struct ts_input_stream stream; /* its first bytes are in the buffer */
	struct ts_import_options options;
	struct ts_import_result result; /* the importer counts events and writes notes */
	/* Is it a file that holds just these bytes? May be NULL: no. */
	bool (*is_plain_file)(struct ts_import *import);
	struct ts_text scratch; /* of ts_import_string() */
	/* How far the file has been read, as stored; total 0: not known. */
	void (*position)(struct ts_import *import, uint64_t *ret_done, uint64_t *ret_total);
	void *position_context;
};

/*
 * Refills the stream and tells the caller's progress function. TS_ECANCELED when that said stop,
 * the writer's error when it has failed.
 */
int ts_import_refill(struct ts_import *import, const char *keep, struct ts_error *err);

/*
 * Makes at least `bytes` bytes stand at stream.js.next, for formats that are not JSON. *ret_held is
 * how many stand there: fewer only where the file ends. Pointers into the buffer are void
 * afterwards.
 */
int ts_import_need(struct ts_import *import, size_t bytes, size_t *ret_held, struct ts_error *err);

/* A text as a string of the trace, made valid UTF-8 on the way. 0: the writer has failed. */
uint32_t ts_import_string(struct ts_import *import, const char *text, size_t length);

/*
 * TS_EFORMAT with a message for a file that is wrong at a byte of the unpacked content, or ends in
 * the middle: says that what came before is kept, where there is something. `reason` is lower case,
 * without a stop.
 */
int ts_import_bad(const struct ts_import *import, uint64_t at, const char *reason,
		  struct ts_error *err);
int ts_import_cut(const struct ts_import *import, uint64_t at, struct ts_error *err);

/*
 * The same as ts_import_file() for bytes in memory, for tests and fuzzing. They are read in steps
 * of `step` bytes through a buffer that starts with `capacity` bytes (0: as files), so that values
 * come in pieces.
 */
int ts_import_memory(struct ts_writer *writer, const char *name, const void *data, size_t bytes,
		     size_t step, size_t capacity, const struct ts_import_options *options,
		     struct ts_import_result *ret_result, struct ts_error *err);

/*
 * Of each format: is it what begins like this; and who reads it. Two formats are SQLite databases,
 * whose tables tell them apart.
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
int ts_kineto_probe(const char *data, size_t bytes);
int ts_chrome_probe(const char *data, size_t bytes);
int ts_chrome_run(struct ts_import *import, struct ts_error *err);

#endif
