/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith replay --list`: the commands of a window in order, with the values of their
 * arguments, and the objects that are created and destroyed in between. Nothing runs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ns.h"
#include "cli/common/cli_output.h"
#include "cli/common/report.h"
#include "cli/common/text_table.h"
#include "cli/replay/replay_show.h"
#include "replay/describe/describe.h"
#include "replay/plan/plan.h"

/* An object that comes or goes without a command of its own. */
struct change {
	int64_t ns;
	uint32_t object;
	bool is_end;
};

struct list {
	const struct ts_replay *replay;
	const struct ts_replay_list_options *options;
	struct ts_text_table grid;
	struct ts_text cell;
	struct change *changes;
	size_t change_count, next_change;
	int64_t pid; /* TS_ABSENT: unknown */
};

/* Why a command is shown; NULL: it is not part of the selection. */
static const char *part_name(const struct ts_replay_plan *plan, uint32_t command)
{
	if (plan->skipped && plan->skipped[command])
		return plan->skipped[command] == TS_REPLAY_UNSUPPORTED ? "skipped" : "dependent";
	return plan->kept[command] == TS_REPLAY_REQUESTED  ? "selected"
	       : plan->kept[command] == TS_REPLAY_INCLUDED ? "included"
	       : plan->kept[command] == TS_REPLAY_ORDER    ? "order"
							   : NULL;
}

static bool has_parts(const struct list *list)
{
	const struct ts_replay_plan *plan = &list->replay->plan;

	return !plan->is_complete || plan->skipped;
}

/* ---- objects ---- */

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->ns != y->ns)
		return TS_COMPARE(x->ns, y->ns);
	if (x->is_end != y->is_end)
		return TS_COMPARE(x->is_end, y->is_end);
	return TS_COMPARE(x->object, y->object);
}

/* Marks what commands create (1) and destroy (2). */
static void mark_objects(const struct ts_replay_stream *stream, uint8_t *marks)
{
	for (uint32_t i = 0; i < stream->command_count; i++) {
		const struct ts_replay_command_info *command = &stream->commands[i];

		/* Of sparse memory only ranges are allocated and freed. */
		if (command->object == TS_REPLAY_NONE ||
		    stream->objects[command->object].flags & TS_REPLAY_SPARSE)
			continue;
		if (command->kind == TS_COMMAND_ALLOC || command->kind == TS_COMMAND_LOAD)
			marks[command->object] |= 1;
		if (command->kind == TS_COMMAND_FREE)
			marks[command->object] |= 2;
	}
}

static int find_changes(struct list *list, struct ts_error *err)
{
	const struct ts_replay_stream *stream = list->replay->stream;
	TS_AUTO_FREE uint8_t *marks = calloc(stream->object_count + 1u, 1);

	list->changes =
		ts_alloc_array(2u * (size_t)stream->object_count + 1, sizeof(struct change));
	if (!marks || !list->changes)
		return ts_error_set(err, TS_ENOMEM, "no memory for the objects of this trace");
	mark_objects(stream, marks);
	for (uint32_t i = 0; i < stream->object_count; i++) {
		const struct ts_replay_object_info *object = &stream->objects[i];

		if (!(marks[i] & 1))
			list->changes[list->change_count++] =
				(struct change){ object->created_ns, i, false };
		if (!(marks[i] & 2) && object->destroyed_ns != TS_ABSENT &&
		    object->destroyed_ns >= stream->open_ns)
			list->changes[list->change_count++] =
				(struct change){ object->destroyed_ns, i, true };
	}
	ts_sort(list->changes, list->change_count, sizeof(*list->changes), compare_changes);
	return TS_OK;
}

static const char *change_name(const struct ts_replay_stream *stream, const struct change *change)
{
	return change->is_end ? "destroy" : change->ns >= stream->open_ns ? "create" : "exists";
}

/* ---- text ---- */

/* After the window opened. */
static void time_cell(struct list *list, int64_t ns)
{
	const struct ts_replay_stream *stream = list->replay->stream;
	char text[TS_FORMAT_BYTES];

	if (ns == TS_ABSENT || ns < stream->open_ns)
		ts_text_table_str(&list->grid, "");
	else
		ts_text_table_str(
			&list->grid,
			ts_format_instant_ns(text, sizeof(text), ts_ns_sub(ns, stream->open_ns)));
}

static void number_cell(struct list *list, int64_t number)
{
	char text[32] = "";

	if (number != TS_ABSENT)
		snprintf(text, sizeof(text), "%" PRId64, number);
	ts_text_table_str(&list->grid, text);
}

static int64_t tid_of(const struct list *list, const struct ts_replay_command_info *command)
{
	const struct ts_thread_row *thread =
		command->thread
			? ts_reader_entity(list->replay->reader, TS_TABLE_THREAD, command->thread)
			: NULL;

	return thread ? thread->tid : TS_ABSENT;
}

static int64_t stream_of(const struct list *list, const struct ts_replay_command_info *command)
{
	if (command->named_queue == TS_REPLAY_NONE)
		return TS_ABSENT;
	return (int64_t)list->replay->stream->objects[command->named_queue].index;
}

/* The last cell of a row is in list->cell. */
static int end_row(struct list *list, struct ts_error *err)
{
	ts_text_table_cell(&list->grid, list->cell.data, list->cell.length);
	ts_text_table_end_row(&list->grid);
	return ts_stdout_drain(err);
}

static int show_check(struct list *list, int64_t sequence, const struct ts_replay_check *check,
		      struct ts_error *err)
{
	number_cell(list, sequence);
	for (int i = 0; i < 3; i++)
		ts_text_table_str(&list->grid, "");
	if (has_parts(list))
		ts_text_table_str(&list->grid, "");
	ts_text_clear(&list->cell);
	ts_replay_describe_check(list->replay->stream, check, &list->cell);
	return end_row(list, err);
}

static int show_command(struct list *list, uint32_t index, struct ts_error *err)
{
	const struct ts_replay *replay = list->replay;
	const struct ts_replay_command_info *command = &replay->stream->commands[index];
	int rc;

	number_cell(list, (int64_t)command->sequence);
	time_cell(list, command->start_ns);
	number_cell(list, tid_of(list, command));
	number_cell(list, stream_of(list, command));
	if (has_parts(list))
		ts_text_table_str(&list->grid, part_name(&replay->plan, index));
	ts_text_clear(&list->cell);
	ts_replay_describe_command(replay->stream, index, &list->cell);
	rc = end_row(list, err);
	for (uint32_t i = 0; !rc && list->options->checks && i < command->check_count; i++)
		rc = show_check(list, (int64_t)command->sequence, &command->checks[i], err);
	return rc;
}

static int show_change(struct list *list, const struct change *change, struct ts_error *err)
{
	ts_text_table_str(&list->grid, "");
	time_cell(list, change->ns);
	ts_text_table_str(&list->grid, "");
	ts_text_table_str(&list->grid, "");
	if (has_parts(list))
		ts_text_table_str(&list->grid, "");
	ts_text_clear(&list->cell);
	if (change->is_end) {
		ts_text_append_str(&list->cell, "destroy ");
		ts_replay_describe_name(list->replay->stream, change->object, &list->cell);
	} else {
		ts_replay_describe_object(list->replay->stream, change->object, &list->cell);
	}
	return end_row(list, err);
}

/* ---- JSON ---- */

static int end_json(struct ts_error *err)
{
	struct ts_text *out = ts_stdout();

	out->length--;
	ts_text_append_str(out, "}\n");
	return ts_stdout_drain(err);
}

static void append_number(struct ts_text *out, const char *key, int64_t value)
{
	if (value != TS_ABSENT)
		ts_text_printf(out, "\"%s\":%" PRId64 ",", key, value);
}

static void append_times(const struct list *list, struct ts_text *out, int64_t ns)
{
	if (ns == TS_ABSENT)
		return;
	append_number(out, "start", ns);
	append_number(out, "time", ts_ns_sub(ns, list->replay->stream->open_ns));
}

static void append_checks(struct ts_text *out, const struct ts_replay_stream *stream,
			  const struct ts_replay_check *checks, uint32_t count)
{
	ts_text_append_str(out, "\"checks\":[");
	for (uint32_t i = 0; i < count; i++) {
		ts_text_append_str(out, i ? ",{" : "{");
		ts_replay_describe_check_json(stream, &checks[i], out);
		out->length--;
		ts_text_append_char(out, '}');
	}
	ts_text_append_str(out, "],");
}

static int show_command_json(const struct list *list, uint32_t index, struct ts_error *err)
{
	const struct ts_replay *replay = list->replay;
	const struct ts_replay_command_info *command = &replay->stream->commands[index];
	struct ts_text *out = ts_stdout();

	ts_text_append_char(out, '{');
	ts_replay_describe_command_json(replay->stream, index, out);
	append_times(list, out, command->start_ns);
	append_number(out, "pid", list->pid);
	append_number(out, "tid", tid_of(list, command));
	append_number(out, "window", replay->stream->window);
	ts_text_printf(out, "\"part\":\"%s\",", part_name(&replay->plan, index));
	if (list->options->checks && command->check_count)
		append_checks(out, replay->stream, command->checks, command->check_count);
	return end_json(err);
}

static int show_change_json(const struct list *list, const struct change *change,
			    struct ts_error *err)
{
	const struct ts_replay_stream *stream = list->replay->stream;
	struct ts_text *out = ts_stdout();

	ts_text_printf(out, "{\"kind\":\"%s\",", change_name(stream, change));
	ts_replay_describe_object_json(stream, change->object, out);
	append_times(list, out, change->ns);
	append_number(out, "pid", list->pid);
	return end_json(err);
}

static int show_final_json(const struct list *list, struct ts_error *err)
{
	const struct ts_replay_stream *stream = list->replay->stream;

	ts_text_append_str(ts_stdout(), "{\"kind\":\"final_checks\",");
	append_checks(ts_stdout(), stream, stream->final_checks, stream->final_count);
	return end_json(err);
}

/* ---- all lines ---- */

/* Objects that came or went until then. */
static int show_changes(struct list *list, int64_t until, struct ts_error *err)
{
	int rc = TS_OK;

	while (!rc && list->next_change < list->change_count &&
	       list->changes[list->next_change].ns <= until) {
		const struct change *change = &list->changes[list->next_change++];

		rc = list->options->json ? show_change_json(list, change, err)
					 : show_change(list, change, err);
	}
	return rc;
}

static int show_final(struct list *list, struct ts_error *err)
{
	const struct ts_replay_stream *stream = list->replay->stream;
	int rc = TS_OK;

	if (!list->options->checks || !list->replay->plan.is_complete || !stream->final_count)
		return TS_OK;
	if (list->options->json)
		return show_final_json(list, err);
	for (uint32_t i = 0; !rc && i < stream->final_count; i++)
		rc = show_check(list, TS_ABSENT, &stream->final_checks[i], err);
	return rc;
}

static int show_lines(struct list *list, struct ts_error *err)
{
	const struct ts_replay *replay = list->replay;
	int rc = TS_OK;

	for (uint32_t i = 0; !rc && i < replay->stream->command_count; i++) {
		if (!part_name(&replay->plan, i))
			continue;
		rc = show_changes(list, replay->stream->commands[i].start_ns, err);
		if (!rc)
			rc = list->options->json ? show_command_json(list, i, err)
						 : show_command(list, i, err);
	}
	if (!rc)
		rc = show_changes(list, INT64_MAX, err);
	return rc ? rc : show_final(list, err);
}

static void add_columns(struct list *list)
{
	ts_text_table_init(&list->grid);
	ts_text_table_add_column(&list->grid, "command", true);
	ts_text_table_add_column(&list->grid, "time", true);
	ts_text_table_set_detail(&list->grid, 2);
	ts_text_table_add_column(&list->grid, "thread", true);
	ts_text_table_set_detail(&list->grid, 3);
	ts_text_table_add_column(&list->grid, "stream", true);
	ts_text_table_set_detail(&list->grid, 1);
	if (has_parts(list))
		ts_text_table_add_column(&list->grid, "part", false);
	ts_text_table_add_column(&list->grid, "call", false);
	ts_text_table_set_prose(&list->grid);
}

static int show_table(struct list *list, struct ts_error *err)
{
	int rc, finished;

	if (list->options->json)
		return show_lines(list, err);
	add_columns(list);
	rc = show_lines(list, err);
	finished = ts_text_table_finish(&list->grid, rc ? NULL : err);
	ts_text_table_release(&list->grid);
	ts_text_release(&list->cell);
	return rc ? rc : finished;
}

/* What applies to all of it; on stderr, since the list may be piped to another program. */
static void note_facts(const struct list *list)
{
	const struct ts_replay_stream *stream = list->replay->stream;
	char included[1024];

	if (list->options->json || list->options->quiet)
		return;
	if (stream->process_count > 1 && list->pid != TS_ABSENT)
		ts_report_note("process %" PRId64, list->pid);
	if (stream->window_count > 1)
		ts_report_note("window %" PRIu32 " of %" PRIu32, stream->window,
			       stream->window_count);
	if (stream->failed)
		ts_report_note("window %" PRIu32 " cannot be replayed: %s", stream->window,
			       stream->failed);
	if (stream->is_truncated)
		ts_report_note("the recording is truncated: the program did not end its window");
	ts_replay_plan_text(&list->replay->plan, stream, included, sizeof(included));
	if (included[0])
		ts_report_note("included %s", included);
}

int ts_replay_show_list(const struct ts_replay *replay,
			const struct ts_replay_list_options *options, struct ts_error *err)
{
	const struct ts_process_row *process =
		ts_reader_entity(replay->reader, TS_TABLE_PROCESS, replay->stream->process);
	struct list list = { .replay = replay,
			     .options = options,
			     .pid = process ? process->pid : TS_ABSENT };
	int rc = TS_OK;

	/* Of a part, the commands alone are of interest. */
	if (replay->plan.is_complete)
		rc = find_changes(&list, err);
	if (!rc) {
		note_facts(&list);
		rc = show_table(&list, err);
	}
	free(list.changes);
	return rc;
}
