/* SPDX-License-Identifier: Apache-2.0 */
/* See export_losses.h. */
#include "export/common/export_losses.h"

void ts_left_out_tables(const struct ts_export_options *options, const struct ts_reader *reader,
			uint64_t written)
{
	for (unsigned int id = 0; id < TS_TABLE_COUNT; id++) {
		const struct ts_table_info *table = ts_table_info(id);

		if (table && table->kind == TS_KIND_EVENT && !(written & TS_TABLE_SET(id)))
			ts_export_left_out(options, table->name,
					   ts_reader_rows(reader, (enum ts_table_id)id),
					   TS_LEFT_OUT_NOT_REPRESENTABLE);
	}
}

void ts_sample_losses_add(struct ts_sample_losses *losses, const struct ts_stack_sample *sample)
{
	if (!sample->count)
		losses->without_weight++;
	else
		losses->without_stack++;
}

void ts_left_out_samples(const struct ts_export_options *options, const struct ts_samples *samples,
			 const struct ts_sample_losses *losses)
{
	static const enum ts_table_id tables[] = {
		[TS_SAMPLES_TAKEN] = TS_TABLE_SAMPLE,
		[TS_SAMPLES_CALLS] = TS_TABLE_API_CALL,
		[TS_SAMPLES_ALLOCATIONS] = TS_TABLE_ALLOCATION,
		[TS_SAMPLES_COMMANDS] = TS_TABLE_GPU_OP,
	};
	enum ts_table_id table = tables[samples->options.kind];
	const char *name = ts_table_info(table)->name;
	const char *reason = table == TS_TABLE_ALLOCATION ? "not an allocation" : "no weight";

	ts_export_left_out(options, name, losses->without_weight, reason);
	ts_export_left_out(options, name, losses->without_stack, "no stack");
	ts_export_left_out(options, name, losses->untimed, "no time");
	ts_export_left_out(options, name, samples->passed_over, "synchronization");
	ts_left_out_tables(options, samples->reader, TS_TABLE_SET(table));
}

void ts_left_out_spans(const struct ts_export_options *options, const struct ts_reader *reader,
		       const struct ts_spans *spans)
{
	struct ts_spans_counts counts = ts_spans_counts(spans);

	ts_export_left_out(options, "slice", counts.async, "async");
	ts_export_left_out(options, "slice", counts.cut_slices,
			   "time after the end of the parent span");
	ts_export_left_out(options, "api_call", counts.cut_calls,
			   "time after the end of the parent span");
	ts_left_out_tables(options, reader,
			   TS_TABLE_SET(TS_TABLE_SLICE) | TS_TABLE_SET(TS_TABLE_API_CALL));
}
