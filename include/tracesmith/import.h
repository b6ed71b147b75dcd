/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports files of other tools into a trace. The content of a file decides its format, not its
 * name. gzip and zstd files are decompressed on the fly.
 *
 *	ts_writer_open(&writer, "out.sbt", NULL, &err);
 *	ts_import_file(writer, "rank0.json.gz", NULL, &result, &err);
 *	ts_import_file(writer, "rank1.json.gz", NULL, &result, &err);
 *	ts_writer_finish(writer, &err);
 *
 * To add a format: write src/import/<format>/ with a probe and a run function, declare both in
 * src/import/import.h, and add an entry to the table in src/import/import.c.
 */
#ifndef TRACESMITH_IMPORT_H
#define TRACESMITH_IMPORT_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/writer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero in any member means its default. `size` is sizeof(struct ts_import_options). */
struct ts_import_options {
	size_t size;
	/*
	 * Called from time to time, on the caller's thread, with the bytes done and in total (0:
	 * unknown); return nonzero to cancel (TS_ECANCELED).
	 */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
	const char *format; /* name of the importer; NULL: the content decides */
	const char *binary; /* the traced program, where its symbols are needed (xray) */
};

struct ts_import_result {
	uint64_t events; /* rows added to slice, gpu_op, api_call, sample, mark, counter, allocation
			  */
	uint64_t bytes;  /* read, after decompression */
	const char *format; /* the detected format; static */
	char note[256];     /* what could not be imported, or "" */
};

/*
 * Adds a file to a trace. Each call adds another source with its own clock, so that the files of
 * many ranks become one trace. `options` may be NULL; *ret_result (may be NULL) is also filled on
 * failure.
 *
 * A file that is truncated or damaged gives TS_EFORMAT: what was read before is in the trace, with
 * a `loss` row, and the caller may finish it. The same holds for TS_ECANCELED. After any other
 * error the writer has failed, or nothing has been added.
 */
int ts_import_file(struct ts_writer *writer, const char *path,
		   const struct ts_import_options *options, struct ts_import_result *ret_result,
		   struct ts_error *err);

struct ts_import;

struct ts_importer {
	const char *name;
	const char *doc;
	/* Nonzero if a file that begins with these bytes has this format. */
	int (*probe)(const char *data, size_t bytes);
	int (*run)(struct ts_import *import, struct ts_error *err);
};

/* All importers, in probing order. */
const struct ts_importer *ts_importer_list(size_t *ret_count);

#ifdef __cplusplus
}
#endif

#endif
