/* SPDX-License-Identifier: Apache-2.0 */
/* Reports rows that an exporter left out, in the same way for all exporters. */
#ifndef TS_EXPORT_COMMON_EXPORT_LOSSES_H
#define TS_EXPORT_COMMON_EXPORT_LOSSES_H

#include "export/export.h"
#include "trace/samples.h"
#include "trace/spans.h"

/* The reason of whole tables, behind which tools may name the format. */
#define TS_LEFT_OUT_NOT_REPRESENTABLE "no place"

#define TS_TABLE_SET(table) (UINT64_C(1) << (table))

/*
 * Events of all tables but those of the set: the format has no place for them. Tables that events
 * refer to are not counted.
 */
void ts_left_out_tables(const struct ts_export_options *options, const struct ts_reader *reader,
			uint64_t written);

/* Samples (or what is taken for them) that a file does not have. */
struct ts_sample_losses {
	uint64_t without_weight; /* a sample of an event, memory that is given back */
	uint64_t without_stack;
	uint64_t untimed; /* of a device, where time is counted */
};

void ts_sample_losses_add(struct ts_sample_losses *losses, const struct ts_stack_sample *sample);

/* These, and all other tables. */
void ts_left_out_samples(const struct ts_export_options *options, const struct ts_samples *samples,
			 const struct ts_sample_losses *losses);

/* What is no span, and what spans have lost. */
void ts_left_out_spans(const struct ts_export_options *options, const struct ts_reader *reader,
		       const struct ts_spans *spans);

#endif
