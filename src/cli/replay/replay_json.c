/* SPDX-License-Identifier: Apache-2.0 */
/* `tracesmith replay --json`. Members may be added, never renamed: scripts read them. */
#include <inttypes.h>
#include <string.h>

#include "cli/common/show.h"
#include "cli/replay/replay_show.h"

static void append_text(struct ts_text *out, const char *key, const char *value)
{
	ts_text_printf(out, ",\"%s\":", key);
	ts_text_append_json(out, value, strlen(value));
}

static void append_ns(struct ts_text *out, const char *key, int64_t ns)
{
	if (ns == TS_ABSENT)
		ts_text_printf(out, ",\"%s\":null", key);
	else
		ts_text_printf(out, ",\"%s\":%" PRId64, key, ns);
}

static void append_real(struct ts_text *out, const char *key, double value)
{
	ts_text_printf(out, ",\"%s\":", key);
	ts_text_append_double(out, value);
}

/* [{"func": ..}, ..], innermost frame first. */
static void append_stack(const struct ts_replay_shown *shown, const char *key, int64_t stack,
			 struct ts_text *out)
{
	const struct ts_show show = { .reader = shown->replay->reader };

	if (!stack)
		return;
	ts_text_printf(out, ",\"%s\":", key);
	ts_show_json_stack(&show, out, stack);
}

static void append_difference(const struct ts_replay_shown *shown, struct ts_text *out)
{
	const struct ts_replay_report *report = shown->report;

	if (!report->differs)
		return;
	/* At the end there is no command. */
	if (report->command)
		ts_text_printf(out, ",\"command\":%" PRIu64, report->command);
	else
		ts_text_append_str(out, ",\"command\":null");
	append_text(out, "command_text", report->command_text);
	if (report->kernel[0])
		append_text(out, "kernel", report->kernel);
	else
		ts_text_append_str(out, ",\"kernel\":null");
	append_text(out, "buffer", report->buffer);
	if (report->has_pages)
		ts_text_printf(out, ",\"address\":\"0x%" PRIx64 "\",\"pages_differing\":%" PRIu64,
			       report->address, report->pages_differing);
	if (report->other_command_text[0]) {
		ts_text_printf(out, ",\"other_command\":%" PRIu64, report->other_command);
		append_text(out, "other_command_text", report->other_command_text);
	}
	append_stack(shown, "stack", report->stack, out);
	append_stack(shown, "other_stack", report->other_stack, out);
	if (report->has_bytes)
		ts_text_printf(out, ",\"first_byte\":%" PRIu64 ",\"bytes_differing\":%" PRIu64,
			       report->first_byte, report->bytes_differing);
	else
		ts_text_append_str(out, ",\"first_byte\":null,\"bytes_differing\":null");
	if (report->values[0])
		append_text(out, "values", report->values);
	if (report->between[0])
		append_text(out, "between", report->between);
}

static void append_skipped(const struct ts_replay_report *report, struct ts_text *out)
{
	uint32_t count = TS_MIN(report->skipped, (uint32_t)TS_ARRAY_SIZE(report->first_skipped));

	ts_text_printf(out,
		       ",\"skipped\":%" PRIu32 ",\"dependent\":%" PRIu32
		       ",\"checks_not_compared\":%" PRIu32 ",\"skipped_commands\":[",
		       report->skipped, report->dependent, report->unknown_checks);
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_replay_skipped *skipped = &report->first_skipped[i];

		ts_text_printf(out, "%s{\"command\":%" PRIu64, i ? "," : "", skipped->command);
		append_text(out, "command_text", skipped->text);
		append_text(out, "reason", skipped->reason);
		ts_text_append_char(out, '}');
	}
	ts_text_append_char(out, ']');
}

static void append_hashes(const struct ts_replay *replay, struct ts_text *out)
{
	const struct ts_replay_stream *stream = replay->stream;

	ts_text_append_str(out, ",\"hashes\":[");
	for (uint32_t i = 0; i < replay->capture_count; i++) {
		const struct ts_replay_capture *capture = &replay->captures[i];

		ts_text_append_str(out, i ? ",{\"command\":" : "{\"command\":");
		if (capture->position < replay->plan.count)
			ts_text_append_uint(
				out,
				stream->commands[replay->plan.order[capture->position]].sequence);
		else
			ts_text_append_str(out, "null");
		if (capture->is_pages)
			ts_text_append_str(out, ",\"buffer\":\"all\"");
		else if (capture->range.memory == TS_REPLAY_NONE)
			ts_text_append_str(out, ",\"buffer\":\"host\"");
		else
			ts_text_printf(out, ",\"buffer\":\"memory %" PRIu64 "\"",
				       stream->objects[capture->range.memory].number);
		ts_text_printf(out,
			       ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64
			       ",\"why\":\"%s\",\"hash\":\"%016" PRIx64 "\"}",
			       capture->range.offset, capture->range.bytes, capture->why,
			       ts_replay_hash_of(replay, i));
	}
	ts_text_append_char(out, ']');
}

static void append_pid(const struct ts_replay *replay, struct ts_text *out)
{
	const struct ts_process_row *process =
		ts_reader_entity(replay->reader, TS_TABLE_PROCESS, replay->stream->process);

	append_ns(out, "pid", process ? process->pid : TS_ABSENT);
}

static void append_kernels(const struct ts_replay *replay, struct ts_text *out)
{
	uint32_t count;
	const struct ts_replay_kernel *kernels = ts_replay_kernels(replay, &count);

	ts_text_append_str(out, ",\"kernels\":[");
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_replay_kernel *kernel = &kernels[i];

		ts_text_append_str(out, i ? ",{\"kernel\":" : "{\"kernel\":");
		ts_text_append_json(out, kernel->name, strlen(kernel->name));
		ts_text_printf(out,
			       ",\"launches\":%" PRIu32 ",\"recorded_launches\":%" PRIu32
			       ",\"replaced\":%s",
			       kernel->launches, kernel->recorded_launches,
			       kernel->is_replaced ? "true" : "false");
		append_ns(out, "recorded_ns", kernel->recorded_ns);
		append_ns(out, "before_ns", kernel->reference_ns);
		append_ns(out, "fastest_ns", kernel->fastest_ns);
		append_ns(out, "median_ns", kernel->median_ns);
		ts_text_append_char(out, '}');
	}
	ts_text_append_char(out, ']');
}

/* Members of targets that compare pages. */
static void append_pages(const struct ts_replay_report *report, struct ts_text *out)
{
	ts_text_printf(out,
		       ",\"varying_runs\":%" PRIu32 ",\"reordered_runs\":%" PRIu32
		       ",\"extra_runs\":%" PRIu32 ",\"relocated_words\":%" PRIu64,
		       report->varying_runs, report->reordered_runs, report->extra_runs,
		       report->relocated_words);
	append_ns(out, "busy_ns", report->busy_ns);
	append_ns(out, "recorded_busy_ns", report->recorded_busy_ns);
	if (report->relocated[0])
		append_text(out, "relocated", report->relocated);
	if (report->gaps[0])
		append_text(out, "gaps", report->gaps);
	if (!report->timed_runs)
		return;
	ts_text_printf(out, ",\"timed\":{\"launches\":%" PRIu32, report->timed_runs);
	append_text(out, "kernel", report->timed_kernel);
	append_text(out, "clocks", report->timed_clocks);
	append_ns(out, "recorded_ns", report->timed_recorded_ns);
	append_ns(out, "warm_ns", report->timed_warm_ns);
	append_ns(out, "warm_low_ns", report->timed_warm_low_ns);
	append_ns(out, "warm_high_ns", report->timed_warm_high_ns);
	append_ns(out, "cold_ns", report->timed_cold_ns);
	append_ns(out, "cold_low_ns", report->timed_cold_low_ns);
	append_ns(out, "cold_high_ns", report->timed_cold_high_ns);
	ts_text_append_char(out, '}');
}

static void append_emulated(const struct ts_replay_report *report, struct ts_text *out)
{
	append_real(out, "span_error", report->span_error);
	append_real(out, "start_error_p50", report->start_error_p50);
	append_real(out, "start_error_p95", report->start_error_p95);
	append_real(out, "start_error_max", report->start_error_max);
	append_ns(out, "baseline_span_ns", report->baseline_span_ns);
	ts_text_printf(out,
		       ",\"guessed_commands\":%" PRIu64 ",\"held_commands\":%" PRIu64
		       ",\"broken_waits\":%" PRIu64,
		       report->guessed_commands, report->held_commands, report->broken_waits);
	if (report->what_if[0])
		append_text(out, "what_if", report->what_if);
}

void ts_replay_show_json(const struct ts_replay_shown *shown, struct ts_text *out)
{
	const struct ts_replay_report *report = shown->report;
	const struct ts_replay *replay = shown->replay;

	ts_text_append_str(out, "{\"verdict\":");
	ts_text_append_json(out, report->verdict_text, strlen(report->verdict_text));
	ts_text_printf(out,
		       ",\"equal\":%s,\"commands\":%" PRIu32 ",\"asked\":%" PRIu32
		       ",\"included\":%" PRIu32 ",\"runs\":%" PRIu32 ",\"checks\":%" PRIu32
		       ",\"compared\":%" PRIu32 ",\"checks_with_contents\":%" PRIu32
		       ",\"checks_within_tolerance\":%" PRIu32 ",\"checks_different\":%" PRIu32,
		       report->verdict < TS_REPLAY_DIFFERS ? "true" : "false", report->commands,
		       report->requested, report->included, report->runs, report->checks,
		       report->compared_ranges, report->kept_checks, report->near_checks,
		       report->different_checks);
	append_text(out, "trace", shown->path);
	append_text(out, "target", replay->options.target->name);
	append_text(out, "device", report->device);
	if (report->included_text[0])
		append_text(out, "included_text", report->included_text);
	append_ns(out, "recorded_span_ns", report->recorded_span_ns);
	append_ns(out, "span_ns", report->span_ns);
	if (report->setup_ns != TS_ABSENT) {
		append_ns(out, "setup_ns", report->setup_ns);
		ts_text_printf(out, ",\"restored_bytes\":%" PRIu64, report->restored_bytes);
	}
	if (report->note[0])
		append_text(out, "note", report->note);
	append_difference(shown, out);
	if (replay->options.target->can & TS_REPLAY_CAN_HASH_PAGES)
		append_pages(report, out);
	if (replay->options.skip_unsupported)
		append_skipped(report, out);
	if (replay->stream)
		append_pid(replay, out);
	if (replay->stream)
		ts_text_printf(out, ",\"window\":%" PRIu32 ",\"windows\":%" PRIu32 ",\"cut\":%s",
			       replay->stream->window, replay->stream->window_count,
			       replay->stream->is_truncated ? "true" : "false");
	else
		append_emulated(report, out);
	if (replay->stream)
		append_kernels(replay, out);
	if (shown->hashes && replay->stream)
		append_hashes(replay, out);
	ts_replay_show_dump_json(shown, out);
	ts_text_append_str(out, "}\n");
}
