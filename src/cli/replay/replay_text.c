/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a replay as text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/show.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "cli/replay/replay_show.h"
#include "model/short_name.h"
#include "trace/stack_lists.h"

/* Kernels in the table of times: those that took longest. */
#define KERNELS_SHOWN 10u
/* Columns of their names. */
#define KERNEL_COLUMNS ((size_t)36)

/* A text that may have names of the trace, or of a driver. */
static void append_untrusted(struct ts_text *out, const char *text)
{
	ts_text_append_shown(out, text, strlen(text));
}

/* A line of its own. */
static void show_line(struct ts_text *out, const char *text)
{
	if (!text[0])
		return;
	ts_text_append_str(out, "  ");
	append_untrusted(out, text);
	ts_text_append_char(out, '\n');
}

/* Where the program launched it, innermost frame first, as `view --stacks` shows it. */
static void show_stack(const struct ts_replay *replay, int64_t stack, const char *what,
		       struct ts_text *out)
{
	struct ts_stack_list frames = { 0 };

	if (!stack || ts_stack_list_load(&frames, replay->reader, stack))
		return;
	if (frames.count)
		ts_text_printf(out, "  %s\n", what);
	for (size_t i = frames.count; i-- > 0;) {
		ts_text_append_str(out, "    ");
		ts_show_frame(replay->reader, out, frames.frames[i]);
		ts_text_append_char(out, '\n');
	}
	ts_stack_list_release(&frames);
}

/* Pages of 2 MiB, and the bytes in the first of them. */
static void show_pages(const struct ts_replay_report *report, struct ts_text *out)
{
	char count[TS_FORMAT_BYTES];

	ts_text_append_str(out, ": ");
	append_untrusted(out, report->buffer);
	ts_text_printf(out, ", %s of 2 MiB, ", TS_COUNTED(report->pages_differing, "page"));
	if (!report->has_bytes)
		ts_text_printf(out, "the first at 0x%" PRIx64 "\n", report->address);
	else
		ts_text_printf(
			out, "from 0x%" PRIx64 " on, %s byte%s in that page\n", report->address,
			ts_format_count(count, sizeof(count), (int64_t)report->bytes_differing),
			report->bytes_differing == 1 ? "" : "s");
}

static void show_runs(const struct ts_replay_report *report, struct ts_text *out)
{
	if (report->varying_runs)
		ts_text_printf(out, "  %" PRIu32 " of %s differ%s from the first",
			       report->varying_runs, TS_COUNTED(report->runs, "run"),
			       report->varying_runs == 1 ? "s" : "");
	if (report->varying_runs && report->extra_runs)
		ts_text_printf(out, "; %" PRIu32 " more run%s to find where", report->extra_runs,
			       report->extra_runs == 1 ? "" : "s");
	if (report->varying_runs)
		ts_text_append_char(out, '\n');
}

static void show_difference(const struct ts_replay_shown *shown, struct ts_text *out)
{
	const struct ts_replay_report *report = shown->report;
	bool is_race = report->other_command_text[0];

	if (!report->differs)
		return;
	ts_text_append_str(out, is_race ? "  race between " : "  at ");
	append_untrusted(out, report->command_text);
	if (is_race) {
		ts_text_append_str(out, "\n  and ");
		append_untrusted(out, report->other_command_text);
		ts_text_append_str(out, ": nothing orders them\n  at the end");
	}
	if (report->has_pages) {
		show_pages(report, out);
	} else {
		ts_text_printf(out, ": %s", report->buffer);
		if (report->has_bytes)
			ts_text_printf(out, ", from byte %" PRIu64 " on, %s", report->first_byte,
				       TS_COUNTED(report->bytes_differing, "byte"));
		ts_text_append_char(out, '\n');
	}
	show_line(out, report->values);
	show_line(out, report->between);
	show_line(out, report->gaps);
	show_runs(report, out);
	show_stack(shown->replay, report->stack, is_race ? "the first one:" : "launched at:", out);
	show_stack(shown->replay, report->other_stack, "the other one:", out);
}

/* Without the time in which the host did something else, which a replay does not repeat. */
static void show_busy(const struct ts_replay_report *report, struct ts_text *out)
{
	char busy[TS_FORMAT_BYTES], recorded[TS_FORMAT_BYTES];

	if (report->recorded_busy_ns <= 0 || report->busy_ns == TS_ABSENT)
		return;
	ts_text_printf(out, "  device busy: %s, recorded %s (%.3gx)\n",
		       ts_format_duration_ns(busy, sizeof(busy), report->busy_ns),
		       ts_format_duration_ns(recorded, sizeof(recorded), report->recorded_busy_ns),
		       (double)report->busy_ns / (double)report->recorded_busy_ns);
}

static void show_span(const struct ts_replay_report *report, struct ts_text *out)
{
	char span[TS_FORMAT_BYTES], recorded[TS_FORMAT_BYTES];

	if (report->span_ns == TS_ABSENT)
		return;
	ts_text_printf(out, "  first start to last end: %s",
		       ts_format_duration_ns(span, sizeof(span), report->span_ns));
	if (report->recorded_span_ns != TS_ABSENT)
		ts_text_printf(out, ", recorded %s",
			       ts_format_duration_ns(recorded, sizeof(recorded),
						     report->recorded_span_ns));
	if (report->recorded_span_ns > 0)
		ts_text_printf(out, " (%.3gx)",
			       (double)report->span_ns / (double)report->recorded_span_ns);
	ts_text_append_char(out, '\n');
}

static void append_number(struct ts_text *out, const char *before, uint64_t number,
			  const char *after)
{
	char count[TS_FORMAT_BYTES];

	ts_text_printf(out, "%s%s%s", before,
		       ts_format_count(count, sizeof(count), (int64_t)number), after);
}

/* After commands, and at the end. */
static void show_compared_pages(const struct ts_replay_report *report, struct ts_text *out)
{
	ts_text_printf(out, "all memory compared%s ", report->checks ? "" : " between runs");
	if (report->compared_ranges > 1)
		ts_text_printf(out, "after %s, run one at a time, and ",
			       TS_COUNTED(report->compared_ranges - 1u, "command"));
	ts_text_append_str(out, "at the end");
}

static void show_checks(const struct ts_replay_shown *shown, struct ts_text *out)
{
	const struct ts_replay_report *report = shown->report;
	/* Replacements are compared with a run of the recorded kernels: everywhere. */
	bool is_replaced = shown->replay->options.replacement_count > 0;
	char count[TS_FORMAT_BYTES];

	ts_text_append_str(out, "  ");
	if (report->checks) {
		ts_text_append_str(
			out, TS_COUNTED(report->checks, is_replaced ? "check" : "recorded check"));
		ts_text_append_str(out, is_replaced ? " against the recorded kernels" : "");
		if (report->kept_checks)
			append_number(out, " (", report->kept_checks, " with contents)");
		if (report->near_checks)
			append_number(out, ", ", report->near_checks,
				      " equal within the tolerance only");
		if (report->different_checks)
			append_number(out, ", ", report->different_checks, " different");
		if (report->unknown_checks)
			append_number(out, ", ", report->unknown_checks, " more not compared");
		ts_text_append_str(out, ", ");
	} else if (report->unknown_checks) {
		ts_text_printf(out, "%s not compared, ",
			       TS_COUNTED(report->unknown_checks, "recorded check"));
	}
	if (shown->replay->options.target->can & TS_REPLAY_CAN_HASH_PAGES)
		show_compared_pages(report, out);
	else
		ts_text_printf(out, "%s compared%s",
			       TS_COUNTED(report->compared_ranges, "memory range"),
			       report->checks ? "" : " between runs");
	ts_text_append_char(out, '\n');
	if (report->reordered_runs)
		ts_text_printf(out, "  %s of %s in another order of what runs concurrently\n",
			       ts_format_count(count, sizeof(count), report->reordered_runs),
			       TS_COUNTED(report->runs, "run"));
}

static void show_skipped(const struct ts_replay_report *report, struct ts_text *out)
{
	uint32_t count = TS_MIN(report->skipped, (uint32_t)TS_ARRAY_SIZE(report->first_skipped));

	if (!report->skipped)
		return;
	ts_text_printf(out, "  skipped %s that cannot be replayed",
		       TS_COUNTED(report->skipped, "command"));
	if (report->dependent)
		ts_text_printf(out, ", and %s that depend%s on %s",
			       TS_COUNTED(report->dependent, "launch"),
			       report->dependent == 1 ? "s" : "",
			       report->skipped == 1 ? "it" : "them");
	ts_text_append_str(out, ":\n");
	for (uint32_t i = 0; i < count; i++) {
		ts_text_append_str(out, "    ");
		append_untrusted(out, report->first_skipped[i].text);
		ts_text_append_str(out, ": ");
		append_untrusted(out, report->first_skipped[i].reason);
		ts_text_append_char(out, '\n');
	}
	if (count < report->skipped)
		append_number(out, "    ... and ", report->skipped - count, " more\n");
}

/* Numbers of commands and objects are those of a process. */
static void show_process(const struct ts_replay *replay, struct ts_text *out)
{
	const struct ts_process_row *process =
		ts_reader_entity(replay->reader, TS_TABLE_PROCESS, replay->stream->process);

	if (replay->stream->process_count < 2 || !process)
		return;
	ts_text_printf(out, " of process %" PRId64, process->pid);
	if (process->name) {
		ts_text_append_str(out, " (");
		append_untrusted(out, ts_reader_string(replay->reader, process->name).data);
		ts_text_append_char(out, ')');
	}
}

/* --kernel: the launch, run alone again and again. */
static void show_timed(const struct ts_replay_report *report, struct ts_text *out)
{
	char time[TS_FORMAT_BYTES], low[TS_FORMAT_BYTES], high[TS_FORMAT_BYTES];

	if (!report->timed_runs)
		return;
	ts_text_append_str(out, "  ");
	append_untrusted(out, report->timed_kernel);
	ts_text_printf(out, ": median of %s", TS_COUNTED(report->timed_runs, "launch"));
	if (report->timed_clocks[0])
		ts_text_append_str(out, ", ");
	append_untrusted(out, report->timed_clocks);
	ts_text_append_char(out, '\n');
	if (report->timed_recorded_ns != TS_ABSENT)
		ts_text_printf(
			out, "    recorded  %s\n",
			ts_format_duration_ns(time, sizeof(time), report->timed_recorded_ns));
	if (report->timed_warm_ns != TS_ABSENT)
		ts_text_printf(
			out, "    L2 warm   %s (95 %%: %s to %s)\n",
			ts_format_duration_ns(time, sizeof(time), report->timed_warm_ns),
			ts_format_duration_ns(low, sizeof(low), report->timed_warm_low_ns),
			ts_format_duration_ns(high, sizeof(high), report->timed_warm_high_ns));
	if (report->timed_cold_ns != TS_ABSENT)
		ts_text_printf(
			out, "    L2 cold   %s (95 %%: %s to %s)\n",
			ts_format_duration_ns(time, sizeof(time), report->timed_cold_ns),
			ts_format_duration_ns(low, sizeof(low), report->timed_cold_low_ns),
			ts_format_duration_ns(high, sizeof(high), report->timed_cold_high_ns));
}

static void show_relocated(const struct ts_replay_report *report, struct ts_text *out)
{
	if (!report->relocated_words)
		return;
	ts_text_printf(out, "  %s moved to the addresses of variables here: ",
		       TS_COUNTED(report->relocated_words, "pointer"));
	append_untrusted(out, report->relocated);
	ts_text_append_char(out, '\n');
}

static void show_stream(const struct ts_replay_shown *shown, struct ts_text *out)
{
	const struct ts_replay_report *report = shown->report;
	const struct ts_replay_stream *stream = shown->replay->stream;

	ts_text_printf(out, "  %s", TS_COUNTED(report->commands, "command"));
	if (stream->window_count > 1)
		ts_text_printf(out, " of window %" PRIu32 " (the trace has %" PRIu32 ")",
			       stream->window, stream->window_count);
	show_process(shown->replay, out);
	ts_text_append_str(out, " on ");
	append_untrusted(out, report->device);
	ts_text_append_char(out, '\n');
	if (report->included_text[0])
		ts_text_printf(out, "  included %s\n", report->included_text);
	show_skipped(report, out);
	if (stream->is_truncated)
		ts_text_append_str(out, "  the recording is truncated: no check at its end\n");
	show_relocated(report, out);
	if (!report->differs)
		show_line(out, report->gaps);
	show_timed(report, out);
	if (report->verdict == TS_REPLAY_RAN || (!report->checks && report->runs == 1))
		return;
	show_checks(shown, out);
}

static void show_emulated(const struct ts_replay_report *report, struct ts_text *out)
{
	char span[TS_FORMAT_BYTES];

	ts_text_printf(out, "  %s on ", TS_COUNTED(report->commands, "command"));
	append_untrusted(out, report->device);
	ts_text_append_char(out, '\n');
	ts_text_printf(out,
		       "  error against the recording: span %+.2f %%,\n"
		       "  starts p50 %.2f %%, p95 %.2f %%, max %.2f %% of the span\n",
		       report->span_error * 100, report->start_error_p50 * 100,
		       report->start_error_p95 * 100, report->start_error_max * 100);
	if (report->what_if[0])
		ts_text_printf(out, "  what-if %s: %s without it\n", report->what_if,
			       ts_format_duration_ns(span, sizeof(span), report->baseline_span_ns));
	if (report->guessed_commands)
		append_number(
			out, "  ", report->guessed_commands,
			" commands have no recorded call: their submit times are estimated\n");
	if (report->held_commands)
		ts_text_printf(out,
			       "  %s began late on an idle device (compilation?): kept that late\n",
			       TS_COUNTED(report->held_commands, "command"));
	if (report->broken_waits)
		append_number(out, "  ", report->broken_waits, " waits would deadlock: dropped\n");
}

/* ---- kernels ---- */

static void time_cell(struct ts_text_table *table, int64_t ns)
{
	char text[TS_FORMAT_BYTES];

	ts_text_table_str(table,
			  ns == TS_ABSENT ? "-" : ts_format_duration_ns(text, sizeof(text), ns));
}

/* Without arguments, and of a long name only the end that fits. */
static void append_kernel(struct ts_text *out, const char *name)
{
	TS_AUTO_FREE char *plain = malloc(strlen(name) + 1);
	size_t length = plain ? ts_short_name(name, strlen(name), plain) : 0, from = 0;

	while (length - from > KERNEL_COLUMNS) {
		const char *next = memmem(plain + from, length - from, "::", 2);

		if (!next)
			break;
		from = (size_t)(next - plain) + 2;
	}
	if (!plain)
		return;
	if (length - from <= KERNEL_COLUMNS)
		ts_text_append(out, plain + from, length - from);
	else
		ts_text_printf(out, "%.*s...", (int)KERNEL_COLUMNS - 3, plain + from);
}

static void show_kernel(struct ts_text_table *table, const struct ts_replay_kernel *kernel,
			const struct ts_replay_options *options)
{
	double ratio = ts_replay_kernel_ratio(kernel);
	TS_SCOPED(ts_text) name = { 0 };
	char text[32] = "-";

	ts_text_append_str(&name, "  ");
	append_kernel(&name, kernel->name);
	ts_text_append_str(&name, kernel->is_replaced ? " (replaced)" : "");
	ts_text_table_cell(table, ts_text_cstr(&name), name.length);
	ts_text_table_count(table, kernel->launches);
	time_cell(table, kernel->recorded_ns);
	if (options->replacement_count)
		time_cell(table, kernel->reference_ns);
	time_cell(table, kernel->fastest_ns);
	if (options->repeat > 1)
		time_cell(table, kernel->median_ns);
	if (ratio > 0)
		snprintf(text, sizeof(text), "%.3gx", ratio);
	ts_text_table_str(table, text);
	ts_text_table_end_row(table);
}

static void add_columns(struct ts_text_table *table, const struct ts_replay_options *options)
{
	ts_text_table_add_column(table, "  kernel", false);
	ts_text_table_add_column(table, "launches", true);
	ts_text_table_set_detail(table, 1);
	ts_text_table_add_column(table, "recorded", true);
	if (options->replacement_count)
		ts_text_table_add_column(table, "before", true);
	ts_text_table_add_column(table, options->repeat > 1 ? "fastest" : "replayed", true);
	if (options->repeat > 1) {
		ts_text_table_add_column(table, "median", true);
		ts_text_table_set_detail(table, 2);
	}
	ts_text_table_add_column(table, "ratio", true);
}

int ts_replay_show_kernels(const struct ts_replay_shown *shown, struct ts_error *err)
{
	const struct ts_replay_options *options = &shown->replay->options;
	TS_SCOPED(ts_text_table) table = { 0 };
	uint32_t count;
	const struct ts_replay_kernel *kernels = ts_replay_kernels(shown->replay, &count);
	char footer[80];

	if (!count)
		return TS_OK;
	ts_text_table_init(&table);
	add_columns(&table, options);
	for (uint32_t i = 0; i < count && i < KERNELS_SHOWN; i++)
		show_kernel(&table, &kernels[i], options);
	if (count > KERNELS_SHOWN) {
		snprintf(footer, sizeof(footer),
			 "  ... and %" PRIu32 " more kernels (use --json)\n",
			 count - KERNELS_SHOWN);
		table.footer = footer;
	}
	return ts_text_table_finish(&table, err);
}

/* ---- all of it ---- */

/* Lines that are too long for the terminal go on below, indented. */
static void append_wrapped(struct ts_text *out, const struct ts_text *lines)
{
	size_t width = ts_terminal_stdout_width();
	const char *end = lines->data + lines->length;

	for (const char *at = lines->data; at < end;) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		size_t indent = 0;
		TS_SCOPED(ts_text) line = { 0 };

		next = next ? next : end;
		while (at + indent < next && at[indent] == ' ')
			indent++;
		ts_text_append(out, at, indent);
		ts_text_append(&line, at + indent, (size_t)(next - at) - indent);
		ts_text_append_wrapped(out, ts_text_cstr(&line), indent, indent + 2, width);
		ts_text_append_char(out, '\n');
		at = next + 1;
	}
}

void ts_replay_show_text(const struct ts_replay_shown *shown, struct ts_text *out)
{
	const struct ts_replay_report *report = shown->report;
	TS_SCOPED(ts_text) lines = { 0 };

	ts_text_printf(&lines, "%s\n", report->verdict_text);
	show_difference(shown, &lines);
	if (shown->replay->stream)
		show_stream(shown, &lines);
	else
		show_emulated(report, &lines);
	if (shown->replay->options.target->can & TS_REPLAY_CAN_HASH_PAGES && !report->timed_runs)
		show_busy(report, &lines);
	if (!report->timed_runs)
		show_span(report, &lines);
	show_line(&lines, report->note);
	append_wrapped(out, &lines);
}
