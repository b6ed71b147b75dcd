/* SPDX-License-Identifier: Apache-2.0 */
/* Options of an export as options of what it reads (trace/samples.h, trace/spans.h). */
#ifndef TS_EXPORT_COMMON_EXPORT_INPUT_H
#define TS_EXPORT_COMMON_EXPORT_INPUT_H

#include <tracesmith/export.h>

#include "trace/samples.h"
#include "trace/spans.h"

/* `options` may be NULL. `passes`: how many walks there will be, for the progress. */
int ts_export_samples(struct ts_samples *samples, struct ts_reader *reader,
		      const struct ts_export_options *options, unsigned int passes,
		      struct ts_error *err);

int ts_export_spans(struct ts_spans **ret_spans, struct ts_reader *reader,
		    const struct ts_export_options *options, struct ts_error *err);

#endif
