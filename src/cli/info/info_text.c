/* SPDX-License-Identifier: Apache-2.0 */
/* `tracesmith info` as text. Long values are truncated: --json has all. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "cli/common/cli_output.h"
#include "cli/common/lost_text.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "cli/info/info.h"

#define LABEL_COLUMNS 11
#define VALUE_COLUMNS 60
#define VALUE_LEAST 20 /* on a narrow line */
#define MOST_FAILED 8
#define REASON_COLUMNS 240 /* process metadata: reasons why something is missing */

static void append_line(struct ts_text *out, const char *label)
{
	ts_text_printf(out, "%-*s", LABEL_COLUMNS, label);
}

#define CUT " ..."

/* Appends a text on one line, truncated. */
static void append_cut(struct ts_text *out, struct ts_string text, size_t columns)
{
	struct ts_text shown = { 0 };
	size_t length;

	/* Copies only the visible part: some values are megabytes. */
	ts_text_append_shown(&shown, text.data, TS_MIN(text.length, 4 * columns));
	length = ts_utf8_valid_prefix(shown.data, TS_MIN(shown.length, columns));
	ts_text_append(out, shown.data, length);
	if (length < shown.length)
		ts_text_append_str(out, CUT);
	ts_text_release(&shown);
}

static void append_string(struct ts_text *out, const struct ts_info *info, int64_t string)
{
	append_cut(out, ts_reader_string(info->reader, string), VALUE_COLUMNS);
}

/* The value at the end of the line that began at `begin`. */
static void append_value(struct ts_text *out, const struct ts_info *info, int64_t string,
			 size_t begin)
{
	size_t width = ts_terminal_stdout_width(), used = out->length - begin + strlen(CUT);
	size_t columns = VALUE_COLUMNS;

	if (width)
		columns = TS_MIN(columns, width > used + VALUE_LEAST ? width - used : VALUE_LEAST);
	append_cut(out, ts_reader_string(info->reader, string), columns);
}

/* A line that is wrapped on a narrow terminal. */
static void append_wrapped(struct ts_text *out, const char *label, struct ts_text *text)
{
	append_line(out, label);
	ts_text_append_wrapped(out, ts_text_cstr(text), LABEL_COLUMNS, LABEL_COLUMNS,
			       ts_terminal_stdout_width());
	ts_text_append_char(out, '\n');
}

static void show_damage(struct ts_text *out, const struct ts_info *info)
{
	const struct ts_reader_state *state = info->state;
	TS_SCOPED(ts_text) text = { 0 };
	char offset[TS_FORMAT_BYTES];

	/* What is torn at the end of a growing trace is about to be complete. */
	if (info->writer.writing == TS_TRACE_GROWING)
		return;
	if (state->damaged_bytes) {
		ts_text_printf(
			&text, "%s from byte %s on; recover the rest with: ",
			TS_COUNTED(state->damaged_bytes, "byte"),
			ts_format_count(offset, sizeof(offset), (int64_t)state->damaged_offset));
	} else if (info->writer.writing == TS_TRACE_CUT_OFF) {
		ts_text_append_str(&text, "none, but the recording was cut off: get the rest "
					  "with: ");
	} else if (!state->finished) {
		ts_text_append_str(&text, "none, but it has no end: finish it with: ");
	}
	if (!text.length)
		return;
	ts_trace_append_recover(&text, info->path);
	append_wrapped(out, "damage", &text);
}

static void show_size(struct ts_text *out, const struct ts_info *info)
{
	char bytes[TS_FORMAT_BYTES], count[TS_FORMAT_BYTES];

	append_line(out, "size");
	ts_text_printf(out, "%s (%s bytes)", ts_format_bytes(bytes, sizeof(bytes), info->bytes),
		       ts_format_count(count, sizeof(count), (int64_t)info->bytes));
	if (!info->imported)
		ts_text_printf(out, " in %s",
			       TS_COUNTED(ts_reader_chunk_count(info->reader), "chunk"));
	ts_text_append_char(out, '\n');
}

static void show_format(struct ts_text *out, const struct ts_info *info)
{
	const struct ts_reader_state *state = info->state;
	bool is_cut = !state->finished || info->writer.writing == TS_TRACE_CUT_OFF;
	time_t seconds = (time_t)(state->created_ns / 1000000000);
	struct tm utc;

	append_line(out, "format");
	ts_text_printf(out, "SBT %u.%u, %s", state->major, state->minor,
		       info->pid                                  ? "a snapshot"
		       : info->writer.writing == TS_TRACE_GROWING ? "still being written"
		       : is_cut                                   ? "incomplete"
								  : "finished");
	if (state->created_ns > 0 && gmtime_r(&seconds, &utc))
		ts_text_printf(out, ", created %04d-%02d-%02d %02d:%02d:%02d UTC",
			       utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
			       utc.tm_min, utc.tm_sec);
	ts_text_append_char(out, '\n');
}

/* The format of a file of another tool is that of its source. */
static void show_file(struct ts_text *out, const struct ts_info *info)
{
	append_line(out, "trace");
	ts_text_append_shown(out, info->path, strlen(info->path));
	ts_text_append_char(out, '\n');
	if (info->bytes)
		show_size(out, info);
	if (info->imported)
		return;
	show_format(out, info);
	show_damage(out, info);
}

static void show_sources(struct ts_text *out, const struct ts_info *info)
{
	const struct ts_source_row *source;
	size_t cursor = 0;
	int64_t id;

	while ((source = ts_reader_entity_next(info->reader, TS_TABLE_SOURCE, &cursor, &id))) {
		append_line(out, "source");
		append_string(out, info, source->name);
		if (source->format) {
			ts_text_append_str(out, ", ");
			append_string(out, info, source->format);
		}
		if (source->rank != TS_ABSENT)
			ts_text_printf(out, ", rank %" PRId64, source->rank);
		if (source->world_size != TS_ABSENT)
			ts_text_printf(out, " of %" PRId64, source->world_size);
		ts_text_append_char(out, '\n');
	}
}

static void show_counts(struct ts_text *out, const struct ts_info *info)
{
	char span[TS_FORMAT_BYTES], count[TS_FORMAT_BYTES], lost[96];
	int64_t ns;

	append_line(out, "time");
	if (!info->range.any)
		ts_text_append_str(out, "none\n");
	else if (__builtin_sub_overflow(info->range.to, info->range.from, &ns))
		ts_text_printf(out, "from %" PRId64 " to %" PRId64 " ns\n", info->range.from,
			       info->range.to);
	else
		ts_text_printf(out, "%s, from %" PRId64 " to %" PRId64 " ns\n",
			       ts_format_duration_ns(span, sizeof(span), ns), info->range.from,
			       info->range.to);
	append_line(out, "places");
	ts_text_printf(out, "%s, %s, %s, %s\n", TS_COUNTED(info->totals.processes, "process"),
		       TS_COUNTED(info->totals.threads, "thread"),
		       TS_COUNTED(info->totals.devices, "device"),
		       TS_COUNTED(info->totals.streams, "stream"));
	append_line(out, "events");
	ts_text_append_str(out,
			   ts_format_count(count, sizeof(count), (int64_t)info->totals.events));
	if (info->totals.events && info->bytes)
		ts_text_printf(out, " (%.2f bytes each)",
			       (double)info->bytes / (double)info->totals.events);
	ts_text_append_char(out, '\n');
	if (info->totals.lost.events || info->totals.lost.unknown) {
		append_line(out, "losses");
		ts_text_append_str(out, ts_lost_text(lost, sizeof(lost), info->totals.lost.events,
						     info->totals.lost.unknown, "event", "events"));
		ts_text_append_char(out, '\n');
	}
}

/* A process that was killed, or a program that failed; many tools exit with 1 to say no. */
static bool is_failed(const struct ts_process_row *process)
{
	return process->exit_status != TS_ABSENT && (WIFSIGNALED((int)process->exit_status) ||
						     (process->exit_status && !process->parent));
}

static void show_failed(struct ts_text *out, const struct ts_info *info)
{
	const struct ts_process_row *process;
	size_t cursor = 0, count = 0;
	char text[TS_FORMAT_BYTES];
	int64_t id;

	while ((process = ts_reader_entity_next(info->reader, TS_TABLE_PROCESS, &cursor, &id))) {
		if (!is_failed(process) || ++count > MOST_FAILED)
			continue;
		append_line(out, "failed");
		append_string(out, info, process->name);
		ts_text_printf(out, " %" PRId64 ": %s\n", process->pid,
			       ts_format_exit(text, sizeof(text), (int)process->exit_status));
	}
	if (count > MOST_FAILED) {
		append_line(out, "failed");
		ts_text_printf(out, "%s; see 'tracesmith view --table process'\n",
			       TS_COUNTED(count - MOST_FAILED, "more process"));
	}
}

static void show_fact(void *context, enum ts_replay_fact kind, const char *text)
{
	size_t indent = kind == TS_REPLAY_FACT_DETAIL ? LABEL_COLUMNS + 2 : LABEL_COLUMNS;
	struct ts_text *out = context;

	append_line(out, kind == TS_REPLAY_FACT_DETAIL ? "" : "replay");
	ts_text_append_str(out, kind == TS_REPLAY_FACT_DETAIL ? "  " : "");
	ts_text_append_wrapped(out, text, indent, indent, ts_terminal_stdout_width());
	ts_text_append_char(out, '\n');
}

static void show_replay(struct ts_text *out, const struct ts_info *info)
{
	if (info->replay)
		ts_replay_facts_say(info->replay, true, show_fact, out);
}

static void show_table(struct ts_text_table *grid, const char *name,
		       const struct ts_info_table *table)
{
	char text[TS_FORMAT_BYTES];

	if (table->chunks == 0)
		return;
	ts_text_table_str(grid, name);
	ts_text_table_count(grid, table->rows);
	ts_text_table_count(grid, table->chunks);
	ts_text_table_count(grid, table->bytes);
	snprintf(text, sizeof(text), "%.2f",
		 table->rows ? (double)table->bytes / (double)table->rows : 0);
	ts_text_table_str(grid, text);
	ts_text_table_end_row(grid);
}

static int show_tables(struct ts_text *out, const struct ts_info *info, struct ts_error *err)
{
	TS_SCOPED(ts_text_table) grid = { 0 };

	ts_text_append_char(out, '\n');
	ts_text_table_init(&grid);
	ts_text_table_add_column(&grid, "table", false);
	ts_text_table_add_column(&grid, "rows", true);
	ts_text_table_add_column(&grid, "chunks", true);
	ts_text_table_add_column(&grid, "bytes", true);
	ts_text_table_add_column(&grid, "bytes/row", true);
	for (unsigned int id = 0; id < TS_TABLE_COUNT; id++) {
		const struct ts_table_info *known = ts_table_info(id);

		if (known)
			show_table(&grid, known->name, &info->tables[id]);
	}
	show_table(&grid, "(unknown)", &info->unknown);
	return ts_text_table_finish(&grid, err);
}

static int show_loss(void *context, const struct ts_row *row)
{
	const struct ts_info *info = context;
	struct ts_text *out = ts_stdout();
	struct ts_text line = { 0 };

	ts_show_cell(&info->show, &line, row, TS_SHOW_NAME);
	append_wrapped(out, "loss", &line);
	ts_text_release(&line);
	return TS_OK;
}

static int show_meta(struct ts_text *out, const struct ts_info *info, struct ts_error *err)
{
	struct ts_meta_list list = { 0 };
	int rc = ts_meta_collect(info, false, &list, err);

	for (size_t i = 0; !rc && i < list.count; i++) {
		size_t begin = out->length;

		if (list.items[i].repeats && !list.items[i].differs)
			continue;
		append_line(out, "meta");
		if (list.items[i].differs)
			ts_text_printf(out, "source %" PRId64 ": ", list.items[i].source);
		append_string(out, info, list.items[i].key);
		ts_text_append_str(out, ": ");
		append_value(out, info, list.items[i].value, begin);
		ts_text_append_char(out, '\n');
	}
	ts_meta_list_release(&list);
	return rc;
}

/* "process python 100: cuda_device_side: {...}" */
static int show_process_meta(struct ts_text *out, const struct ts_info *info, struct ts_error *err)
{
	struct ts_row row = { .table = ts_table_info(TS_TABLE_META) };
	struct ts_meta_list list = { 0 };
	int rc = ts_meta_collect(info, true, &list, err);

	for (size_t i = 0; !rc && i < list.count; i++) {
		struct ts_meta_row meta = { .process = list.items[i].process };
		TS_SCOPED(ts_text) line = { 0 };

		row.columns = (const int64_t *)(const void *)&meta;
		ts_text_append_str(&line, "process ");
		ts_show_cell(&info->show, &line, &row, TS_SHOW_WHERE);
		ts_text_append_str(&line, ": ");
		append_string(&line, info, list.items[i].key);
		ts_text_append_str(&line, ": ");
		append_cut(&line, ts_reader_string(info->reader, list.items[i].value),
			   REASON_COLUMNS);
		append_wrapped(out, "meta", &line);
	}
	ts_meta_list_release(&list);
	return rc;
}

int ts_info_show_text(const struct ts_info *info, struct ts_error *err)
{
	struct ts_text *out = ts_stdout();
	int rc;

	show_file(out, info);
	show_sources(out, info);
	show_counts(out, info);
	show_failed(out, info);
	show_replay(out, info);
	rc = show_tables(out, info, err);
	if (!rc && (info->tables[TS_TABLE_LOSS].rows || info->tables[TS_TABLE_META].rows))
		ts_text_append_char(out, '\n');
	if (!rc)
		rc = ts_info_visit(info, TS_TABLE_LOSS, show_loss, (void *)info, err);
	if (!rc)
		rc = show_meta(out, info, err);
	return rc ? rc : show_process_meta(out, info, err);
}
