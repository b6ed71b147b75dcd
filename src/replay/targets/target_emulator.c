/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target `emulator`: simulates when each command would run. With a what-if it simulates twice:
 * the baseline, which gives the error, and the changed model.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/ns.h"
#include "replay/emulator/what_if.h"
#include "replay/replay_internal.h"

struct emulator_options {
	struct ts_option_values what_ifs;
};

struct ts_replay_session {
	const struct ts_replay *replay;
	const struct ts_work *work;
	struct ts_graph *graph;
	struct ts_emulator_observed observed;
	struct ts_emulator_model *model; /* of the last run */
	struct ts_emulator_times times;
	struct ts_emulator_errors errors; /* of the baseline */
	struct ts_what_if what_if;
	uint64_t guessed_commands, held_commands, broken_waits;
	int64_t span_ns;
	char device[160];
};

static void close_session(struct ts_replay_session *session)
{
	if (!session)
		return;
	ts_emulator_times_release(&session->times);
	ts_emulator_model_free(session->model);
	ts_emulator_observed_release(&session->observed);
	ts_graph_free(session->graph);
	ts_what_if_release(&session->what_if);
	free(session);
}

/* ---- open ---- */

/* Reports a mistake in --what-if before the trace is loaded. */
static int check_options(const struct ts_replay_options *options, struct ts_error *err)
{
	const struct emulator_options *emulator = options->target_options;
	struct ts_what_if what_if = { 0 };
	int rc = TS_OK;

	if (emulator)
		rc = ts_what_if_parse(&what_if, emulator->what_ifs.values, emulator->what_ifs.count,
				      err);
	ts_what_if_release(&what_if);
	return rc;
}

static int build_model(struct ts_replay_session *session, const struct ts_emulator_shape *shape,
		       struct ts_error *err)
{
	int rc = ts_replay_progress(session->replay, "simulate", 0, session->work->command_count,
				    err);

	return rc ? rc
		  : ts_emulator_model_new(&session->model, session->work, session->graph,
					  &session->observed, shape, err);
}

static int on_simulated(void *context, uint64_t done, uint64_t total)
{
	return ts_replay_progress(context, "simulate", done, total, NULL);
}

static int simulate(struct ts_replay_session *session, enum ts_emulator_policy policy,
		    struct ts_error *err)
{
	const struct ts_emulator_run_options options = {
		.policy = policy,
		.progress = on_simulated,
		.context = (void *)(uintptr_t)session->replay,
	};

	return ts_emulator_run(session->model, &options, &session->times, err);
}

static int run_baseline(struct ts_replay_session *session, struct ts_error *err)
{
	const struct ts_emulator_shape as_recorded = { 0 };
	int rc = build_model(session, &as_recorded, err);

	if (!rc)
		rc = simulate(session, TS_EMULATOR_FIFO, err);
	if (!rc)
		rc = ts_emulator_errors(&session->errors, session->work, &session->times, err);
	if (rc)
		return rc;
	session->guessed_commands = session->model->guessed_commands;
	session->held_commands = session->model->held_commands;
	session->span_ns = session->errors.span_ns;
	session->broken_waits = session->times.broken_waits;
	return TS_OK;
}

/* Replaces the model and times of the baseline. */
static int run_what_if(struct ts_replay_session *session, struct ts_error *err)
{
	struct ts_emulator_shape shape = ts_what_if_shape(&session->what_if);
	int rc;

	ts_emulator_model_free(session->model);
	session->model = NULL;
	rc = build_model(session, &shape, err);
	if (!rc)
		rc = ts_what_if_apply(&session->what_if, session->work, session->model, err);
	if (!rc)
		rc = simulate(session, ts_what_if_policy(&session->what_if), err);
	if (rc)
		return rc;
	session->span_ns = ts_emulator_span(session->model, &session->times);
	session->broken_waits = session->times.broken_waits;
	return TS_OK;
}

static void describe(struct ts_replay_session *session)
{
	const struct ts_work *work = session->work;
	const char *name = work->device_count ? ts_work_text(work, work->devices[0].name) : "";

	snprintf(session->device, sizeof(session->device), "emulator: %" PRIu32 " device%s%s%.80s",
		 work->device_count, work->device_count == 1 ? "" : "s", *name ? ", " : "", name);
}

static int prepare(struct ts_replay_session *session, const struct ts_replay *replay,
		   struct ts_error *err)
{
	const struct emulator_options *options = replay->options.target_options;
	int rc = TS_OK;

	if (options)
		rc = ts_what_if_parse(&session->what_if, options->what_ifs.values,
				      options->what_ifs.count, err);
	if (!rc)
		rc = ts_graph_new(&session->graph, session->work, TS_GRAPH_HOST, err);
	if (!rc)
		rc = ts_emulator_observe(&session->observed, session->graph, err);
	if (!rc)
		rc = run_baseline(session, err);
	if (!rc && session->what_if.count)
		rc = run_what_if(session, err);
	return rc;
}

static int open_session(struct ts_replay *replay, struct ts_replay_session **ret_session,
			struct ts_error *err)
{
	struct ts_replay_session *session;
	int rc;

	if (replay->work->command_count == 0)
		return ts_error_set(err, TS_ENOTFOUND,
				    "nothing to emulate: the trace has no device commands");
	session = calloc(1, sizeof(*session));
	if (!session)
		return ts_error_set(err, TS_ENOMEM, "no memory for the emulator");
	session->replay = replay;
	session->work = replay->work;
	describe(session);
	rc = prepare(session, replay, err);
	if (rc)
		close_session(session);
	else
		*ret_session = session;
	return rc;
}

/* ---- results ---- */

static void fill_calls(const struct ts_replay_session *session, struct ts_replay_span *calls)
{
	const struct ts_emulator_model *model = session->model;

	for (uint32_t p = 0; p < model->point_count; p++) {
		const struct ts_emulator_point *point = &model->points[p];

		if (point->kind == TS_EMULATOR_BEGIN)
			calls[point->what].start = session->times.points[p];
		else if (point->kind == TS_EMULATOR_END)
			calls[point->what].end = session->times.points[p];
	}
}

static void fill_commands(const struct ts_replay_session *session,
			  const struct ts_replay_span *calls, struct ts_replay_outcome *outcome)
{
	const struct ts_work *work = session->work;

	for (uint32_t c = 0; c < work->command_count; c++) {
		struct ts_replay_times *times = &outcome->times[c];
		uint32_t call = work->commands[c].call;

		*times = (struct ts_replay_times){
			.called = call == TS_WORK_NONE ? TS_ABSENT : calls[call].start,
			.returned = call == TS_WORK_NONE ? TS_ABSENT : calls[call].end,
			.queued = session->times.issued[c],
			.submitted = TS_ABSENT,
			.start = session->times.start[c],
			.end = session->times.end[c],
		};
		if (outcome->streams && session->model->streams)
			outcome->streams[c] = session->model->streams[c];
	}
}

/* When a thread of the trace reached a point in the recording. */
static int64_t recorded(const struct ts_replay_session *session, uint32_t p)
{
	const struct ts_emulator_point *point = &session->model->points[p];
	const struct ts_work_call *call = &session->work->calls[point->what];

	return point->kind == TS_EMULATOR_BEGIN ? call->start : call->end;
}

/*
 * The simulated time of an instant of a thread: its recorded distance from the previous point, but
 * no later than the next point. An instant before the first point keeps its distance from it.
 */
static int64_t moved(const struct ts_replay_session *session, uint32_t t, int64_t time)
{
	const struct ts_emulator_thread *thread = &session->model->threads[t];
	const int64_t *points = session->times.points;
	uint32_t low = 0, high = thread->count;
	int64_t shifted;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (recorded(session, thread->first + middle) <= time)
			low = middle + 1;
		else
			high = middle;
	}
	if (thread->count == 0)
		return time;
	if (low == 0)
		return ts_ns_add(points[thread->first],
				 ts_ns_sub(time, recorded(session, thread->first)));
	shifted = ts_ns_add(points[thread->first + low - 1],
			    ts_ns_sub(time, recorded(session, thread->first + low - 1)));
	return low < thread->count ? TS_MIN(shifted, points[thread->first + low]) : shifted;
}

/* Annotations on the device are omitted: their commands have moved independently. */
static void fill_slices(const struct ts_replay_session *session, struct ts_replay_span *slices)
{
	const struct ts_work *work = session->work;

	for (uint32_t i = 0; i < work->slice_count; i++) {
		const struct ts_work_slice *slice = &work->slices[i];

		slices[i] = (struct ts_replay_span){ TS_ABSENT, TS_ABSENT };
		if (slice->class == TS_SLICE_GPU_ANNOTATION)
			continue;
		slices[i].start = moved(session, slice->thread, slice->start);
		slices[i].end = TS_MAX(moved(session, slice->thread, slice->end), slices[i].start);
	}
}

/* All runs are equal: open() has simulated already. */
static int run(struct ts_replay_session *session, unsigned int number,
	       struct ts_replay_outcome *outcome, struct ts_error *err)
{
	TS_AUTO_FREE struct ts_replay_span *allocated = NULL;
	struct ts_replay_span *calls = outcome->calls;

	(void)number;
	if (!calls)
		calls = allocated = ts_alloc_array(session->work->call_count, sizeof(*allocated));
	if (!calls)
		return ts_error_set(err, TS_ENOMEM, "no memory for the emulator");
	fill_calls(session, calls);
	fill_commands(session, calls, outcome);
	if (outcome->slices)
		fill_slices(session, outcome->slices);
	return TS_OK;
}

static const char *device(const struct ts_replay_session *session)
{
	return session->device;
}

static void fill_report(const struct ts_replay_session *session, struct ts_replay_report *report)
{
	const struct ts_emulator_errors *errors = &session->errors;

	snprintf(report->verdict_text, sizeof(report->verdict_text), "emulated");
	report->recorded_span_ns = errors->recorded_span_ns;
	report->baseline_span_ns = errors->span_ns;
	report->span_ns = session->span_ns;
	report->span_error = errors->span;
	report->start_error_p50 = errors->p50;
	report->start_error_p95 = errors->p95;
	report->start_error_max = errors->max;
	report->guessed_commands = session->guessed_commands;
	report->held_commands = session->held_commands;
	report->broken_waits = session->broken_waits;
	ts_what_if_describe(&session->what_if, report->what_if, sizeof(report->what_if));
}

static const struct ts_option_spec options[] = {
	{
		.name = "what-if",
		.letter = 'w',
		.type = TS_OPTION_SPEC_LIST,
		.value = "CHANGE",
		.doc = "simulate a change: " TS_WHAT_IF_CHANGES "; may be repeated",
		.offset = offsetof(struct emulator_options, what_ifs),
	},
};

const struct ts_replay_target ts_replay_target_emulator = {
	.name = "emulator",
	.summary =
		"simulates when each command would run, also with changes (--what-if); any trace",
	.example = "kineto.json.gz -t emulator --what-if 'kernel:*gemm*=0.5x'",
	.needs = TS_REPLAY_NEEDS_WORK,
	.options = options,
	.option_count = TS_ARRAY_SIZE(options),
	.options_bytes = sizeof(struct emulator_options),
	.check_options = check_options,
	.open = open_session,
	.run = run,
	.device = device,
	.report = fill_report,
	.close = close_session,
};
