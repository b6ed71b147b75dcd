/* SPDX-License-Identifier: Apache-2.0 */
/* See export_input.h. */
#include "export/common/export_input.h"

#include "export/export.h"

static enum ts_samples_kind kind_of(unsigned int flags)
{
	if (flags & TS_EXPORT_DEVICE)
		return TS_SAMPLES_COMMANDS;
	if (flags & TS_EXPORT_CALLS)
		return TS_SAMPLES_CALLS;
	return flags & TS_EXPORT_MEMORY ? TS_SAMPLES_ALLOCATIONS : TS_SAMPLES_TAKEN;
}

int ts_export_samples(struct ts_samples *samples, struct ts_reader *reader,
		      const struct ts_export_options *options, unsigned int passes,
		      struct ts_error *err)
{
	struct ts_export_options known = ts_export_options(options);
	const struct ts_samples_options input = {
		.kind = kind_of(known.flags),
		.skip_idle = known.flags & TS_EXPORT_NO_IDLE,
		.passes = passes,
		.progress = known.progress,
		.context = known.context,
	};

	return ts_samples_open(samples, reader, &input, err);
}

int ts_export_spans(struct ts_spans **ret_spans, struct ts_reader *reader,
		    const struct ts_export_options *options, struct ts_error *err)
{
	struct ts_export_options known = ts_export_options(options);
	const struct ts_spans_options input = { .progress = known.progress,
						.context = known.context };

	return ts_spans_new(ret_spans, reader, &input, err);
}
