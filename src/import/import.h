/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What importers share: the job that they are given, and the functions that the table in import.c
 * lists. See <tracesmith/import.h> for how to add one.
 */
#ifndef TS_IMPORT_IMPORT_H
#define TS_IMPORT_IMPORT_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/import.h>

#include "import/stream.h"

/* Longest text of a trace; docs/format.md, section 7. */
#define TS_IMPORT_MAX_STRING ((size_t)64 << 20)

/* One file on its way into a trace. */
struct ts_import {
	struct ts_writer *writer;
	const char *path;        /* as given; for messages */
	struct ts_stream stream; /* its first bytes are in the buffer */
	struct ts_import_options options;
	struct ts_import_result result; /* the importer counts events and writes notes */
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
 * The same as ts_import_file() for bytes in memory, for tests and fuzzing. They are read in steps
 * of `step` bytes through a buffer that starts with `capacity` bytes (0: as files), so that values
 * come in pieces.
 */
int ts_import_memory(struct ts_writer *writer, const char *name, const void *data, size_t bytes,
		     size_t step, size_t capacity, const struct ts_import_options *options,
		     struct ts_import_result *ret_result, struct ts_error *err);

/* kineto.c, chrome.c */
int ts_kineto_probe(const char *data, size_t bytes);
int ts_chrome_probe(const char *data, size_t bytes);
int ts_chrome_run(struct ts_import *import, struct ts_error *err);

#endif
