/* SPDX-License-Identifier: Apache-2.0 */
/* The exporters that export.c lists; how to add one stands in <tracesmith/export.h>. */
#ifndef TS_EXPORT_EXPORT_H
#define TS_EXPORT_EXPORT_H

#include <tracesmith/export.h>

int ts_export_chrome(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		     struct ts_error *err);
int ts_export_chrome_array(struct ts_reader *reader, int fd,
			   const struct ts_export_options *options, struct ts_error *err);
int ts_export_folded(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		     struct ts_error *err);
int ts_export_speedscope(struct ts_reader *reader, int fd, const struct ts_export_options *options,
			 struct ts_error *err);
int ts_export_timeline(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		       struct ts_error *err);

/* TS_EXPORT_* of options, which may be NULL or from a caller who knows none. */
unsigned int ts_export_flags(const struct ts_export_options *options);

#endif
