/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces into the formats of other tools. To add one: a file src/export/<format>.c with a
 * const struct ts_exporter, and a line in the table of src/export/export.c.
 */
#ifndef TRACESMITH_EXPORT_H
#define TRACESMITH_EXPORT_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero in any member means its default. `size` is sizeof(struct ts_export_options). */
struct ts_export_options {
	size_t size;
	/* Told now and then how far it is; returning non-zero ends the export with TS_ECANCELED. */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

struct ts_exporter {
	const char *name;
	const char *doc;
	/* Writes the whole trace to fd, in memory that does not grow with it. */
	int (*run)(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		   struct ts_error *err);
};

/* All exporters. */
const struct ts_exporter *ts_exporter_list(size_t *ret_count);

/* The exporter of that name, or NULL. */
const struct ts_exporter *ts_exporter_find(const char *name);

#ifdef __cplusplus
}
#endif

#endif
