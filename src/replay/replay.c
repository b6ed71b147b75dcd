/* SPDX-License-Identifier: Apache-2.0 */
/* A replay from options to report: load, plan, verify, run, compare, write. */
#include "replay/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ns.h"
#include "base/output.h"
#include "replay/check/check.h"
#include "replay/output/kernel_times.h"
#include "replay/output/replay_output.h"
#include "replay/plan/plan.h"
#include "replay/plan/plan_orders.h"
#include "replay/replay_cause.h"
#include "replay/replay_internal.h"
#include "replay/stream/stream_internal.h"
#include "state/work/work.h"

/* Maximum number of further runs to fetch content whose hash differed. */
#define MOST_FETCHES 3

/* ---- opening ---- */

int ts_replay_progress(const struct ts_replay *replay, const char *doing, uint64_t done,
		       uint64_t total, struct ts_error *err)
{
	const struct ts_replay_options *options = &replay->options;

	if (options->progress && options->progress(options->context, doing, done, total))
		return ts_error_set(err, TS_ECANCELED, "stopped");
	return TS_OK;
}

static int on_rows(void *context, uint64_t done, uint64_t total)
{
	return ts_replay_progress(context, "load", done, total, NULL);
}

static int load_work(struct ts_replay *replay, struct ts_error *err)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	int rc;

	options.load_flags = TS_WORK_SLICES | TS_WORK_PYTHON;
	options.all = true;
	options.progress = on_rows;
	options.context = replay;
	rc = ts_work_new(&replay->work, &options, err);
	if (!rc)
		rc = ts_work_add(replay->work, replay->reader, err);
	if (!rc)
		rc = ts_work_finish(replay->work, err);
	if (!rc && replay->work->command_count == 0)
		rc = ts_error_set(err, TS_ENOTFOUND, "nothing to replay: no device activity");
	return rc;
}

/* A kernel name that does not exist is an error. */
static int check_replacements(const struct ts_replay *replay, struct ts_error *err)
{
	const struct ts_replay_options *options = &replay->options;

	for (size_t i = 0; i < options->replacement_count; i++) {
		TS_SCOPED(ts_text) kernels = { 0 };
		bool is_found = false;

		for (uint32_t j = 0; j < replay->stream->object_count; j++)
			is_found |= replay->stream->objects[j].kind == TS_OBJECT_FUNCTION &&
				    !strcmp(replay->stream->objects[j].name,
					    options->replacements[i].kernel);
		if (is_found)
			continue;
		ts_replay_append_kernels(replay->stream, &kernels);
		return ts_error_set(err, TS_ENOTFOUND,
				    "there is no kernel '%s' to replace; kernels of this window "
				    "are %s",
				    options->replacements[i].kernel,
				    kernels.length ? ts_text_cstr(&kernels) : "none");
	}
	return TS_OK;
}

/* Selects what runs and what is compared; again if the device does not support some of it. */
static int make_plan(struct ts_replay *replay, struct ts_error *err)
{
	int rc;

	ts_replay_checker_free(TS_STEAL(replay->checker));
	free(TS_STEAL(replay->recorded_ns));
	ts_replay_plan_release(&replay->plan);
	rc = ts_replay_plan_make(&replay->plan, replay->stream, &replay->options, err);
	if (!rc)
		rc = ts_replay_verify_blobs(replay, err);
	if (!rc)
		rc = ts_replay_monitor_prepare(replay, err);
	if (!rc)
		rc = ts_replay_checker_new(&replay->checker, replay, err);
	return rc;
}

static int load_stream(struct ts_replay *replay, struct ts_error *err)
{
	const struct ts_replay_options *options = &replay->options;
	int rc = options->trusts_owner ? TS_OK : ts_replay_check_owner(replay->reader, err);

	if (!rc)
		rc = ts_replay_stream_load(&replay->stream, replay->reader, options->process,
					   options->window, err);
	if (!rc)
		rc = check_replacements(replay, err);
	return rc ? rc : make_plan(replay, err);
}

static void set_defaults(struct ts_replay_options *options)
{
	if (options->pace == TS_REPLAY_PACE_DEFAULT)
		options->pace = TS_REPLAY_FAST;
	if (options->check == TS_REPLAY_CHECK_DEFAULT)
		options->check = options->target->default_check;
	if (options->check == TS_REPLAY_CHECK_DEFAULT)
		options->check = TS_REPLAY_CHECK_NONE;
}

int ts_replay_open(struct ts_replay **ret_replay, struct ts_reader *reader,
		   const struct ts_replay_options *options, struct ts_error *err)
{
	TS_AUTO(ts_replay) replay = NULL;
	int rc = ts_replay_check_options(options, err);

	if (!rc && options->output)
		rc = ts_output_check(options->output, err);
	if (rc)
		return rc;
	replay = calloc(1, sizeof(*replay));
	if (!replay)
		return ts_replay_no_memory(err);
	replay->options = *options;
	set_defaults(&replay->options);
	replay->reader = reader;
	if (options->target->needs & TS_REPLAY_NEEDS_WORK)
		rc = load_work(replay, err);
	if (!rc && options->target->needs & TS_REPLAY_NEEDS_STREAM)
		rc = load_stream(replay, err);
	if (!rc)
		*ret_replay = TS_STEAL(replay);
	return rc;
}

int ts_replay_open_to_show(struct ts_replay **ret_replay, struct ts_reader *reader,
			   const struct ts_replay_options *options, struct ts_error *err)
{
	TS_AUTO(ts_replay) replay = calloc(1, sizeof(*replay));
	int rc;

	if (!replay)
		return ts_replay_no_memory(err);
	replay->options = *options;
	replay->reader = reader;
	rc = ts_replay_stream_load_to_show(&replay->stream, reader, options->process,
					   options->window, err);
	if (!rc)
		rc = ts_replay_plan_make_to_show(&replay->plan, replay->stream, options, err);
	if (!rc)
		*ret_replay = TS_STEAL(replay);
	return rc;
}

void ts_replay_close(struct ts_replay *replay)
{
	if (!replay)
		return;
	if (replay->session)
		replay->options.target->close(replay->session);
	ts_replay_kernel_times_free(replay->kernel_times);
	ts_replay_checker_free(replay->checker);
	ts_replay_plan_release(&replay->plan);
	ts_replay_stream_free(replay->stream);
	ts_work_free(replay->work);
	free(replay->recorded_ns);
	free(replay);
}

/* ---- runs ---- */

struct runs {
	struct ts_replay *replay;
	struct ts_replay_outcome now, best; /* of this run, and of the fastest so far */
	uint32_t count;                     /* number of times */
	int64_t span_ns;
	struct ts_replay_orders *orders; /* NULL: not needed */
	uint32_t *order;                 /* of the last run in another order */
	uint32_t done, reordered;        /* runs */
};

static int make_outcome(const struct runs *runs, struct ts_replay_outcome *outcome)
{
	const struct ts_replay *replay = runs->replay;

	outcome->times = ts_alloc_array(runs->count + 1u, sizeof(*outcome->times));
	if (!outcome->times)
		return TS_ENOMEM;
	if (replay->checker && replay->capture_count) {
		outcome->content = ts_replay_checker_content;
		outcome->pages = ts_replay_checker_pages;
		outcome->context = replay->checker;
	}
	if (!replay->work)
		return TS_OK;
	outcome->calls = calloc(replay->work->call_count + 1u, sizeof(*outcome->calls));
	outcome->slices = calloc(replay->work->slice_count + 1u, sizeof(*outcome->slices));
	outcome->streams = ts_alloc_array(runs->count + 1u, sizeof(*outcome->streams));
	return outcome->calls && outcome->slices && outcome->streams ? TS_OK : TS_ENOMEM;
}

static void reset_outcome(const struct runs *runs, struct ts_replay_outcome *outcome)
{
	outcome->untimed = (struct ts_replay_span){ TS_ABSENT, TS_ABSENT };
	for (uint32_t i = 0; i < runs->count; i++) {
		outcome->times[i] = (struct ts_replay_times){ TS_ABSENT, TS_ABSENT, TS_ABSENT,
							      TS_ABSENT, TS_ABSENT, TS_ABSENT };
		if (outcome->streams)
			outcome->streams[i] = runs->replay->work->commands[i].stream;
	}
}

static void free_outcome(struct ts_replay_outcome *outcome)
{
	free(outcome->times);
	free(outcome->calls);
	free(outcome->slices);
	free(outcome->streams);
}

/* First start to last end on devices; TS_ABSENT: unknown. */
static int64_t span_of(const struct runs *runs, const struct ts_replay_outcome *outcome)
{
	int64_t from = INT64_MAX, to = INT64_MIN;

	if (outcome->untimed.start != TS_ABSENT) {
		from = outcome->untimed.start;
		to = outcome->untimed.end;
	}
	for (uint32_t i = 0; i < runs->count; i++) {
		const struct ts_replay *replay = runs->replay;

		if (outcome->times[i].start == TS_ABSENT || outcome->times[i].end == TS_ABSENT)
			continue;
		/* Skips markers that replace skipped commands. */
		if (replay->stream && replay->plan.kept[replay->plan.order[i]] == TS_REPLAY_ORDER)
			continue;
		from = TS_MIN(from, outcome->times[i].start);
		to = TS_MAX(to, outcome->times[i].end);
	}
	return from <= to ? ts_ns_sub(to, from) : TS_ABSENT;
}

static int run_once(struct runs *runs, unsigned int number, enum ts_replay_phase phase,
		    struct ts_error *err)
{
	struct ts_replay *replay = runs->replay;
	int rc;

	reset_outcome(runs, &runs->now);
	if (replay->checker)
		ts_replay_checker_begin(replay->checker, phase);
	rc = replay->options.target->run(replay->session, number, &runs->now, err);
	if (!rc && replay->checker)
		rc = ts_replay_checker_end(replay->checker, err);
	return rc;
}

/* The fastest run is reported: it was disturbed least. */
static void keep_best(struct runs *runs, bool is_first)
{
	int64_t span = span_of(runs, &runs->now);
	struct ts_replay_outcome swap = runs->best;

	if (!is_first &&
	    (span == TS_ABSENT || (runs->span_ns != TS_ABSENT && span >= runs->span_ns)))
		return;
	runs->best = runs->now;
	runs->now = swap;
	runs->span_ns = span;
}

/* ---- reference run without replaced kernels ---- */

static int open_session(struct ts_replay *replay, struct ts_error *err)
{
	ts_replay_monitor_enter(replay, TS_REPLAY_OPENING, NULL);
	return replay->options.target->open(replay, &replay->session, err);
}

static int run_reference(struct runs *runs, struct ts_replay_report *report, struct ts_error *err)
{
	struct ts_replay *replay = runs->replay;
	const struct ts_replay_target *target = replay->options.target;
	size_t count = replay->options.replacement_count;
	struct ts_error why;
	int rc;

	if (!count || !replay->checker)
		return TS_OK;
	replay->options.replacement_count = 0;
	replay->is_reference = true;
	rc = open_session(replay, &why);
	if (!rc)
		rc = run_once(runs, 0, TS_REPLAY_PHASE_REFERENCE, &why);
	if (!rc && ts_replay_kernel_times_add(replay->kernel_times, runs->now.times, true))
		rc = ts_replay_no_memory(&why);
	if (replay->session)
		target->close(replay->session);
	replay->session = NULL;
	replay->options.replacement_count = count;
	replay->is_reference = false;
	if (rc == TS_ECANCELED || rc == TS_ENOMEM)
		return ts_error_set(err, rc, "%s", why.message);
	/* The recorded kernel may not run on this machine; that may be why it is replaced. */
	if (rc)
		snprintf(
			report->note, sizeof(report->note),
			"the recorded kernels do not run here, so there is nothing to compare with: %.180s",
			why.message);
	return TS_OK;
}

/* ---- all runs ---- */

/* Another legal order, from the third run on: unless there is none, or runs differ anyway. */
static bool is_reordered(const struct runs *runs, unsigned int number)
{
	const struct ts_replay_checker *checker = runs->replay->checker;

	return number >= 2 && runs->orders && ts_replay_orders_has_others(runs->orders) &&
	       checker->varies == TS_REPLAY_NONE;
}

static int run_reordered(struct runs *runs, unsigned int number, struct ts_error *err)
{
	int rc;

	ts_replay_orders_draw(runs->orders, number - 2, runs->order);
	runs->now.order = runs->order;
	rc = run_once(runs, number, TS_REPLAY_PHASE_REORDERED, err);
	runs->now.order = NULL;
	runs->reordered++;
	/* The runs before were good: nothing orders what this one did the other way round. */
	if (rc && rc != TS_ECANCELED)
		ts_error_prefix(err, "run %u, in another order of what runs concurrently",
				number + 1);
	return rc;
}

static int run_planned(struct runs *runs, unsigned int number, struct ts_error *err)
{
	struct ts_replay *replay = runs->replay;
	int rc =
		run_once(runs, number, number ? TS_REPLAY_PHASE_AGAIN : TS_REPLAY_PHASE_FIRST, err);

	if (!rc && replay->kernel_times &&
	    ts_replay_kernel_times_add(replay->kernel_times, runs->now.times, false))
		rc = ts_replay_no_memory(err);
	if (!rc)
		keep_best(runs, number == 0);
	return rc;
}

/* Why pages differ. */
static int find_cause(struct runs *runs, bool is_reordered, struct ts_error *err)
{
	struct ts_replay *replay = runs->replay;

	if (!replay->checker || !replay->checker->has_pages)
		return TS_OK;
	if (is_reordered || replay->checker->varies != TS_REPLAY_NONE)
		return ts_replay_find_cause(replay, runs->orders, is_reordered ? runs->order : NULL,
					    err);
	return replay->checker->differs != TS_REPLAY_NONE ? ts_replay_fetch_different(replay, err)
							  : TS_OK;
}

static int make_orders(struct runs *runs, struct ts_error *err)
{
	const struct ts_replay *replay = runs->replay;

	if (!replay->checker || !replay->checker->has_pages || !runs->count)
		return TS_OK;
	runs->order = ts_alloc_array(runs->count, sizeof(*runs->order));
	if (!runs->order)
		return ts_replay_no_memory(err);
	return ts_replay_orders_new(&runs->orders, &replay->plan, replay->stream, err);
}

static int run_all(struct runs *runs, struct ts_error *err)
{
	struct ts_replay *replay = runs->replay;
	unsigned int repeat = replay->options.repeat;
	bool has_raced = false;
	int rc = make_orders(runs, err);

	for (unsigned int i = 0; !rc && i < repeat && !has_raced; i++) {
		rc = ts_replay_progress(replay, "run", i, repeat, err);
		if (rc)
			break;
		runs->done++;
		if (!is_reordered(runs, i)) {
			rc = run_planned(runs, i, err);
			continue;
		}
		rc = run_reordered(runs, i, err);
		has_raced = !rc && replay->checker->reordered_differs;
	}
	if (!rc)
		rc = find_cause(runs, has_raced, err);
	for (unsigned int i = 0; !rc && replay->checker && i < MOST_FETCHES; i++) {
		uint32_t capture = ts_replay_checker_wants(replay->checker);

		if (capture == TS_REPLAY_NONE)
			break;
		replay->checker->fetch = capture;
		rc = run_once(runs, repeat + i, TS_REPLAY_PHASE_FETCH, err);
	}
	return rc;
}

/* ---- the report ---- */

static int report_stream(const struct runs *runs, struct ts_replay_report *report,
			 struct ts_error *err)
{
	const struct ts_replay *replay = runs->replay;
	struct ts_replay_recorded recorded;
	int rc = ts_replay_recorded_load(&recorded, replay, err);

	if (rc)
		return rc;
	report->recorded_span_ns = ts_replay_recorded_span(&recorded);
	ts_replay_kernel_times_finish(replay->kernel_times, &recorded);
	rc = ts_replay_recorded_busy(&recorded, runs->best.times, &report->recorded_busy_ns,
				     &report->busy_ns);
	ts_replay_recorded_release(&recorded);
	if (rc)
		return ts_replay_no_memory(err);
	report->requested = replay->plan.requested;
	report->included = replay->plan.included;
	report->commands = replay->plan.requested + replay->plan.included;
	ts_replay_plan_text(&replay->plan, replay->stream, report->included_text,
			    sizeof(report->included_text));
	ts_replay_plan_report(&replay->plan, replay->stream, report);
	ts_replay_verdict(replay->checker, report);
	ts_replay_find_stacks(replay, report);
	return TS_OK;
}

static void report_work(const struct runs *runs, struct ts_replay_report *report)
{
	report->verdict = TS_REPLAY_RAN;
	report->commands = report->requested = runs->count;
	report->recorded_span_ns = TS_ABSENT;
}

static int make_report(struct runs *runs, struct ts_replay_report *report, struct ts_error *err)
{
	struct ts_replay *replay = runs->replay;
	const struct ts_replay_target *target = replay->options.target;
	int rc = TS_OK;

	report->runs = runs->done;
	report->reordered_runs = runs->reordered;
	report->setup_ns = TS_ABSENT;
	report->span_ns = runs->span_ns;
	snprintf(report->device, sizeof(report->device), "%s", target->device(replay->session));
	if (replay->stream)
		rc = report_stream(runs, report, err);
	else
		report_work(runs, report);
	if (!rc && target->report)
		target->report(replay->session, report);
	return rc;
}

/* ---- what the device does not support ---- */

static bool can_reject(const struct ts_replay *replay, struct ts_error *err)
{
	struct ts_error why = *err;

	/* The recorded kernels need not run if others replace them. */
	if (replay->is_reference)
		return false;
	if (!replay->options.skip_unsupported)
		ts_error_set(err, why.code, "%s ('--skip-unsupported' goes on without it)",
			     why.message);
	return replay->options.skip_unsupported;
}

bool ts_replay_reject_object(struct ts_replay *replay, uint32_t object, struct ts_error *err)
{
	if (replay->stream->objects[object].unreplayable || !can_reject(replay, err))
		return false;
	replay->rejected++;
	ts_replay_stream_reject_object(replay->stream, object, err->message);
	return true;
}

typedef void reject_function(struct ts_replay_stream *stream, uint32_t command, const char *why);

static bool reject(struct ts_replay *replay, uint32_t command, reject_function *mark,
		   struct ts_error *err)
{
	const char *why = err->message;
	char text[256];

	if (replay->stream->commands[command].unreplayable || !can_reject(replay, err))
		return false;
	replay->rejected++;
	ts_replay_command_text(replay->stream, command, text, sizeof(text));
	/* The report names the command itself. */
	if (!strncmp(why, text, strlen(text)) && !strncmp(why + strlen(text), ": ", 2))
		why += strlen(text) + 2;
	mark(replay->stream, command, why);
	return true;
}

bool ts_replay_reject_command(struct ts_replay *replay, uint32_t command, struct ts_error *err)
{
	return reject(replay, command, ts_replay_stream_reject_command, err);
}

bool ts_replay_reject_launches(struct ts_replay *replay, uint32_t command, struct ts_error *err)
{
	return reject(replay, command, ts_replay_stream_reject_launches, err);
}

/* ---- from opening to report ---- */

static void warn(const struct ts_replay *replay)
{
	const struct ts_replay_options *options = &replay->options;
	const char *notes = options->target->notes ? options->target->notes(replay->session) : "";

	if (notes[0] && options->warn)
		options->warn(options->context, notes);
}

static int run_and_report(struct runs *runs, struct ts_replay_report *report, struct ts_error *err)
{
	struct ts_replay *replay = runs->replay;
	int rc = run_reference(runs, report, err);

	if (!rc && !replay->session)
		rc = open_session(replay, err);
	if (!rc)
		warn(replay);
	if (!rc)
		rc = run_all(runs, err);
	ts_replay_monitor_enter(replay, TS_REPLAY_FINISHING, NULL);
	if (!rc)
		rc = make_report(runs, report, err);
	if (!rc && replay->options.output)
		rc = ts_replay_write(replay, &runs->best, report, err);
	return rc;
}

static int run_plan(struct ts_replay *replay, struct ts_replay_report *report, struct ts_error *err)
{
	struct runs runs = { .replay = replay, .span_ns = TS_ABSENT };
	int rc = TS_OK;

	*report = (struct ts_replay_report){ .span_ns = TS_ABSENT,
					     .recorded_busy_ns = TS_ABSENT,
					     .busy_ns = TS_ABSENT,
					     .timed_recorded_ns = TS_ABSENT,
					     .timed_warm_ns = TS_ABSENT,
					     .timed_cold_ns = TS_ABSENT };
	runs.count = replay->work ? replay->work->command_count : replay->plan.count;
	if (make_outcome(&runs, &runs.now) || make_outcome(&runs, &runs.best))
		rc = ts_replay_no_memory(err);
	/* Of an earlier plan. */
	ts_replay_kernel_times_free(TS_STEAL(replay->kernel_times));
	if (!rc && replay->stream)
		rc = ts_replay_kernel_times_new(&replay->kernel_times, replay, err);
	if (!rc)
		rc = run_and_report(&runs, report, err);
	free_outcome(&runs.now);
	free_outcome(&runs.best);
	ts_replay_orders_free(runs.orders);
	free(runs.order);
	return rc;
}

int ts_replay_run(struct ts_replay *replay, struct ts_replay_report *ret_report,
		  struct ts_error *err)
{
	uint32_t rejected;
	int rc;

	do {
		rejected = replay->rejected;
		rc = run_plan(replay, ret_report, err);
		if (!rc || replay->rejected == rejected)
			return rc;
		/* Nothing is rejected twice, so this ends. */
		if (replay->session)
			replay->options.target->close(TS_STEAL(replay->session));
		rc = make_plan(replay, err);
	} while (!rc);
	return rc;
}
