/* SPDX-License-Identifier: Apache-2.0 */
/* The exporters listed in export.c; see <tracesmith/export.h> for how to add one. */
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
int ts_export_perfetto(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		       struct ts_error *err);
int ts_export_csv(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		  struct ts_error *err);
int ts_export_dot(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		  struct ts_error *err);
int ts_export_timeline(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		       struct ts_error *err);

/* Options of a caller, who may know fewer members or pass NULL: missing members are zero. */
struct ts_export_options ts_export_options(const struct ts_export_options *options);

/* Reports what is left out, if the caller asked for it and there is any. */
void ts_export_left_out(const struct ts_export_options *options, const char *table, uint64_t rows,
			const char *reason);

/* TS_EXPORT_* of options, which may be NULL or from a caller built without them. */
unsigned int ts_export_flags(const struct ts_export_options *options);

#endif
