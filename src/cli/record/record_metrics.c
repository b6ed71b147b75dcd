/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backends of a recording: which of the names that were given are sources of metrics, and which
 * run in the program; and how what sources give becomes events of the recorder's own area.
 */
#include <stdio.h>
#include <string.h>

#include <tracesmith/emit.h>

#include "agent/embedded.h"
#include "base/text.h"
#include "cli/common/nearest.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "sample/metrics/metric_sources.h"
#include "sample/metrics/metrics_sampler.h"
#include "tracesmith_config.h"

/* ---- names ---- */

/* What comes with the agent: it runs in programs that we start, unless a list leaves it out. */
static const char *const built_in[] = {
#ifdef TS_HAVE_OPENCL
	"opencl",
#endif
	"cuda",
};

/* Stacks that the recorder reads; unlike all others only where it is named. */
#define PYTHON "python"

/* Adds a name to a list with commas, if it fits. */
static bool append(char *list, size_t bytes, const char *name, size_t length)
{
	size_t used = strlen(list);

	if (used + length + 2 > bytes)
		return false;
	snprintf(list + used, bytes - used, "%s%.*s", used ? "," : "", (int)length, name);
	return true;
}

static bool is_built_in(const char *name)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(built_in); i++)
		if (!strcmp(built_in[i], name))
			return true;
	return false;
}

bool ts_record_runs_in_program(const struct ts_record *record, const char *name)
{
	const char *list = record->launch.backends;

	while (list && *list) {
		size_t length = strcspn(list, ",");

		if (length == strlen(name) && !memcmp(list, name, length))
			return true;
		list += length + (list[length] == ',');
	}
	return false;
}

static bool is_ours(const char *name)
{
	const struct ts_metrics_source *const *sources = ts_metrics_sources();

	for (size_t i = 0; sources[i]; i++)
		if (strcmp(sources[i]->name, name) == 0)
			return true;
	return strcmp(name, "host") == 0;
}

/* The name is not known: the one that was meant, or all that are. */
static void name_others(const char *name, struct ts_error *err)
{
	const struct ts_metrics_source *const *sources = ts_metrics_sources();
	TS_SCOPED(ts_text) text = { 0 };
	struct ts_nearest nearest;

	ts_nearest_init(&nearest, name);
	ts_text_printf(&text, "%s; ours are", err->message);
	for (size_t i = 0; i < TS_ARRAY_SIZE(built_in); i++) {
		ts_nearest_offer(&nearest, built_in[i]);
		ts_text_printf(&text, " %s,", built_in[i]);
	}
	for (size_t i = 0; sources[i]; i++) {
		ts_nearest_offer(&nearest, sources[i]->name);
		ts_text_printf(&text, " %s,", sources[i]->name);
	}
	ts_nearest_offer(&nearest, "host");
	ts_nearest_offer(&nearest, PYTHON);
	ts_text_append_str(&text, " host, " PYTHON);
	if (nearest.best)
		ts_text_printf(&text, ": did you mean '%s'?", nearest.best);
	if (!ts_text_status(&text))
		ts_error_set(err, err->code, "%.*s", (int)text.length, text.data);
}

/*
 * Ours are read by the recorder; those of others run in the program, and the recorder asks them for
 * metrics, too.
 */
static int sort_name(struct ts_record *record, const char *name, bool *ret_fits)
{
	const struct ts_metrics_source *source;
	struct ts_error err;
	int rc = TS_OK;

	*ret_fits = true;
	if (strcmp(name, PYTHON) == 0) {
		record->python.samples = true;
		return TS_EXIT_DONE;
	}
	if (is_built_in(name)) {
		if (!record->command)
			return ts_report_usage(
				"option '--backends': '%s' must be in a program from its start: tracesmith record --backends %s -- CMD, or see 'man tracesmith-record'",
				name, name);
		record->names_cuda |= strcmp(name, "cuda") == 0;
		*ret_fits = append(record->agent_backends, sizeof(record->agent_backends), name,
				   strlen(name));
		return TS_EXIT_DONE;
	}
	if (!is_ours(name)) {
		*ret_fits = append(record->agent_backends, sizeof(record->agent_backends), name,
				   strlen(name));
		rc = ts_metrics_source_find(name, &source, &err);
	}
	if (!rc)
		*ret_fits &= append(record->sources, sizeof(record->sources), name, strlen(name));
	/*
	 * Nothing runs in a program that was not started by us; one that we start may look
	 * elsewhere.
	 */
	if (rc == TS_ENOTFOUND)
		name_others(name, &err);
	if (rc && !record->command)
		return ts_report_error(&err);
	if (rc == TS_ENOTFOUND)
		ts_report_warning("%s", err.message);
	return TS_EXIT_DONE;
}

int ts_record_backends(struct ts_record *record, const char *list)
{
	record->samples = !list || strcmp(list, "none") != 0;
	record->launch.backends = record->samples ? record->agent_backends : NULL;
	for (size_t i = 0; !list && i < TS_ARRAY_SIZE(built_in); i++)
		append(record->agent_backends, sizeof(record->agent_backends), built_in[i],
		       strlen(built_in[i]));
	if (!list || !record->samples)
		return TS_EXIT_DONE;
	while (*list) {
		size_t length = strcspn(list, ",");
		char name[64];
		bool fits = length < sizeof(name);
		int code = TS_EXIT_DONE;

		snprintf(name, sizeof(name), "%.*s", (int)length, list);
		if (fits && length)
			code = sort_name(record, name, &fits);
		if (code)
			return code;
		if (!fits)
			return ts_report_usage("option '--backends': too long at '%s'", name);
		list += length + (list[length] == ',');
	}
	record->samples = record->sources[0] != '\0';
	return TS_EXIT_DONE;
}

/* ---- rows become events ---- */

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

/* Whoever reads the trace should know as well why something is not there. */
static void emit_message(void *context, const char *source, const char *text)
{
	const struct ts_record *record = context;
	const struct ts_emit_arg args[] = {
		{ "source", TS_EMIT_STRING, { .string = source } },
		{ "message", TS_EMIT_STRING, { .string = text } },
	};

	ts_tracer_instant(ts_tracer_process(), "metrics", "tracesmith", TS_TRACK_THREAD, args, 2);
	if (!record->quiet)
		ts_report_note("tracesmith: %s: %s", source, text);
}

/* Stacks are large: of a ring of this size a second's worth at 100 Hz fills a fraction. */
#define RING_FOR_STACKS (1u << 20)

bool ts_record_host(const struct ts_record *record, struct ts_recorder *recorder, const char *what)
{
	int error = ts_agent_host(ts_recorder_session(recorder),
				  record->python.samples ? RING_FOR_STACKS : 0);

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
