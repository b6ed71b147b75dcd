/* SPDX-License-Identifier: Apache-2.0 */
/* Emits what metric sources sample into the live area of the recorder itself. */
#include <string.h>

#include <tracesmith/emit.h>

#include "agent/embedded.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "sample/metrics/metrics_sampler.h"

static void emit_device(void *context, const struct ts_metrics_device *device)
{
	ts_tracer_device(ts_tracer_process(), device);
}

static void emit_row(void *context, const struct ts_metrics_subject *subject, const char *name,
		     const struct ts_emit_arg *values, unsigned int count)
{
	static const char *const categories[] = {
		[TS_METRICS_SYSTEM] = "system",
		[TS_METRICS_PROCESS] = "process",
		[TS_METRICS_DEVICE] = "device",
		[TS_METRICS_PROCESS_ON_DEVICE] = "device",
	};

	ts_tracer_counter_of(ts_tracer_process(), subject, name, categories[subject->kind], values,
			     count);
}

/* Also stored in the trace, so that its readers know why something is missing. */
static void emit_message(void *context, const char *source, const char *text)
{
	const struct ts_record *record = context;
	const struct ts_emit_arg args[] = {
		{ "source", TS_EMIT_STRING, { .string = source } },
		{ "message", TS_EMIT_STRING, { .string = text } },
	};

	ts_tracer_instant(ts_tracer_process(), "metrics", "tracesmith", TS_TRACK_THREAD, args, 2);
	if (!record->quiet)
		ts_report_event("%s: %s", source, text);
}

/* Stacks are large. At 100 Hz, a second's worth fills a fraction of a ring of this size. */
#define RING_FOR_STACKS (1u << 20)

bool ts_record_host(const struct ts_record *record, struct ts_recorder *recorder, const char *what)
{
	int error = ts_agent_host(ts_recorder_session(recorder),
				  record->python.samples ? RING_FOR_STACKS : 0,
				  record->options.redact);

	if (error)
		ts_report_warning("%s are not recorded: no live area: %s", what,
				  strerrordesc_np(error));
	return !error;
}

void ts_record_sample(struct ts_record *record, struct ts_recorder *recorder)
{
	struct ts_error err;

	record->consumer =
		(struct ts_metrics_consumer){ record, emit_device, emit_row, emit_message };
	if (!record->samples || !ts_record_host(record, recorder, "metrics"))
		return;
	if (ts_recorder_sample(recorder, record->sources[0] ? record->sources : NULL,
			       record->interval_ns, &record->consumer, &err))
		ts_report_warning("metrics are not recorded: %s", err.message);
}
