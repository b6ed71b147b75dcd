/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the command stream: those of one process in order, and the windows they form. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "replay/stream/stream_internal.h"

/* Bytes of text that the reader may cache while details are parsed. */
#define KEPT_TEXTS ((size_t)64 << 20)

TS_DEFINE_AUTO(ts_batch, ts_batch_free);

/* ---- rows ---- */

static bool has_no_sequence(int64_t kind)
{
	return kind == TS_COMMAND_CHECK || kind == TS_COMMAND_CLOSE;
}

static int compare_rows(const void *a, const void *b)
{
	const struct ts_command_row *x = a, *y = b;
	bool x_last = has_no_sequence(x->kind), y_last = has_no_sequence(y->kind);

	if (x_last != y_last)
		return x_last ? 1 : -1;
	if (x->sequence != y->sequence)
		return TS_COMPARE(x->sequence, y->sequence);
	return TS_COMPARE(x->start, y->start);
}

static int add_row(struct ts_replay_load *load, const struct ts_command_row *row)
{
	if (ts_grow_array((void **)&load->rows, &load->row_capacity, load->row_count + 1,
			  sizeof(*load->rows)))
		return TS_ENOMEM;
	load->rows[load->row_count++] = *row;
	return TS_OK;
}

static int read_rows(struct ts_replay_load *load, struct ts_error *err)
{
	TS_AUTO(ts_batch) batch = NULL;
	int rc = ts_batch_new(&batch, load->reader, err);

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(load->reader); i++) {
		if (ts_reader_chunk(load->reader, i)->table != TS_TABLE_COMMAND)
			continue;
		rc = ts_batch_read(batch, i, TS_MASK_ALL, err);
		for (uint32_t row = 0; !rc && row < batch->rows; row++) {
			struct ts_command_row command;

			ts_batch_row(batch, row, &command);
			rc = add_row(load, &command);
			if (rc)
				return ts_replay_no_memory(err);
		}
	}
	return rc;
}

/* ---- the process ---- */

static void append_process(struct ts_text *text, struct ts_reader *reader, int64_t id)
{
	const struct ts_process_row *process = ts_reader_entity(reader, TS_TABLE_PROCESS, id);

	ts_text_append_str(text, text->length ? ", " : "");
	if (process && process->pid != TS_ABSENT)
		ts_text_append_int(text, process->pid);
	else
		ts_text_append_str(text, "unknown");
	if (process && process->name)
		ts_text_printf(text, " (%s)", ts_reader_string(reader, process->name).data);
}

/* By its pid or name, as messages show it; NULL: any. */
static bool is_process(struct ts_reader *reader, int64_t id, const char *wanted)
{
	const struct ts_process_row *process =
		wanted ? ts_reader_entity(reader, TS_TABLE_PROCESS, id) : NULL;
	struct ts_string name;
	int64_t pid;

	if (!wanted || !process)
		return !wanted;
	if (!ts_parse_int64(wanted, strlen(wanted), &pid) && pid == process->pid)
		return true;
	name = ts_reader_string(reader, process->name);
	return name.length && ts_glob_match(wanted, name.data, name.length);
}

/* Finds the processes with commands: `ret_names` lists all of them. Returns how many match. */
static uint32_t find_processes(const struct ts_replay_load *load, const char *wanted,
			       int64_t *ret_process, struct ts_text *ret_names)
{
	TS_SCOPED(ts_map) met = { 0 };
	uint32_t count = 0;

	for (size_t i = 0; i < load->row_count; i++) {
		int64_t process = load->rows[i].process;
		bool is_new = false;

		ts_map_insert(&met, (uint64_t)process, &is_new);
		if (!is_new)
			continue;
		load->stream->process_count++;
		if (ret_names->length < 300)
			append_process(ret_names, load->reader, process);
		if (!is_process(load->reader, process, wanted))
			continue;
		*ret_process = process;
		count++;
	}
	return count;
}

static int choose_process(struct ts_replay_load *load, const char *wanted, struct ts_error *err)
{
	TS_SCOPED(ts_text) names = { 0 };
	int64_t process = 0;
	uint32_t count = find_processes(load, wanted, &process, &names);
	size_t kept = 0;

	if (!count)
		return ts_error_set(err, TS_ENOTFOUND,
				    "nothing to replay: process '%s' has no commands; processes "
				    "with commands are %s",
				    wanted ? wanted : "", ts_text_cstr(&names));
	if (count > 1)
		return ts_error_set(err, TS_EINVAL,
				    "several processes in this trace have commands: select one "
				    "with '--process': %s",
				    ts_text_cstr(&names));
	for (size_t i = 0; i < load->row_count; i++)
		if (load->rows[i].process == process)
			load->rows[kept++] = load->rows[i];
	load->row_count = kept;
	load->stream->process = process;
	return TS_OK;
}

int ts_replay_load_rows(struct ts_replay_load *load, const char *process, struct ts_error *err)
{
	int rc = read_rows(load, err);

	if (!rc && load->row_count == 0)
		rc = ts_error_set(
			err, TS_ENOTFOUND,
			"nothing to replay: the trace has no command stream (record a program with 'tracesmith record --replayable', and a window that is open while it uses CUDA or OpenCL, or use '--target emulator', which needs none)");
	if (!rc)
		rc = choose_process(load, process, err);
	if (!rc)
		ts_sort(load->rows, load->row_count, sizeof(*load->rows), compare_rows);
	return rc;
}

int ts_replay_row_details(struct ts_replay_load *load, int64_t text, struct ts_arena *arena,
			  struct ts_replay_details *ret_details, struct ts_error *err)
{
	struct ts_string json = ts_reader_string(load->reader, text);
	int rc = ts_replay_details_parse(ret_details, arena, json.data, json.length, err);

	ts_reader_trim(load->reader, KEPT_TEXTS);
	return rc;
}

/* ---- windows ---- */

static struct ts_replay_window *add_window(struct ts_replay_load *load)
{
	struct ts_replay_window *window;

	if (ts_grow_array((void **)&load->windows, &load->window_capacity, load->window_count + 1,
			  sizeof(*load->windows)))
		return NULL;
	window = &load->windows[load->window_count++];
	*window = (struct ts_replay_window){ .start = INT64_MIN,
					     .end = INT64_MAX,
					     .next_sequence = INT64_MAX };
	return window;
}

static int add_open(struct ts_replay_load *load, const struct ts_command_row *row,
		    const struct ts_replay_details *details)
{
	struct ts_replay_window *window = add_window(load);

	if (!window)
		return TS_ENOMEM;
	window->has_open = true;
	window->number = details->window ? details->window : load->window_count;
	window->start = row->start;
	window->sequence = row->sequence;
	window->pieces = details->pieces;
	if (load->window_count > 1)
		window[-1].next_sequence = row->sequence;
	return TS_OK;
}

/* Closes the last open window of that number; if there is none, the window never opened. */
static int add_close(struct ts_replay_load *load, const struct ts_command_row *row,
		     const struct ts_replay_details *details)
{
	struct ts_replay_window *window = NULL;

	for (size_t i = 0; i < load->window_count && !window; i++) {
		struct ts_replay_window *one = &load->windows[i];

		if (one->has_open && !one->has_close && row->start >= one->start &&
		    (one->number == details->window || !details->window))
			window = one;
	}
	if (!window)
		window = add_window(load);
	if (!window)
		return TS_ENOMEM;
	if (!window->has_open)
		window->number = details->window;
	window->has_close = true;
	if (details->pieces.is_known)
		window->pieces = details->pieces;
	window->end = row->start;
	window->failed = details->failed;
	return TS_OK;
}

static int find_windows(struct ts_replay_load *load, struct ts_error *err)
{
	for (size_t i = 0; i < load->row_count; i++) {
		const struct ts_command_row *row = &load->rows[i];
		struct ts_replay_details details;
		int rc;

		if (row->kind != TS_COMMAND_OPEN && row->kind != TS_COMMAND_CLOSE)
			continue;
		rc = ts_replay_row_details(load, row->details, &load->scratch, &details, err);
		if (rc) {
			ts_error_prefix(err, "%s of a window",
					row->kind == TS_COMMAND_OPEN ? "begin" : "end");
			return rc;
		}
		rc = row->kind == TS_COMMAND_OPEN ? add_open(load, row, &details)
						  : add_close(load, row, &details);
		if (rc)
			return ts_replay_no_memory(err);
	}
	return TS_OK;
}

/* ---- pieces of snapshots ---- */

static int count_piece(struct ts_replay_load *load, const struct ts_command_row *row,
		       struct ts_error *err)
{
	struct ts_replay_details details;
	int rc;

	ts_arena_clear(&load->line);
	rc = ts_replay_row_details(load, row->details, &load->line, &details, err);
	if (rc) {
		ts_error_prefix(err, "a check of command %" PRId64, row->sequence);
		return rc;
	}
	/* Those that were stored inside the window came before the commands that need them. */
	for (size_t i = 0;
	     ts_replay_is_piece(&details) && !details.is_more && i < load->window_count; i++) {
		if (!load->windows[i].has_open || !ts_replay_window_has(&load->windows[i], row))
			continue;
		load->windows[i].piece_rows++;
		break;
	}
	return TS_OK;
}

/* A window whose snapshot is not complete has failed. */
static int check_pieces(struct ts_replay_load *load, struct ts_error *err)
{
	bool has_pieces = false;
	int rc = TS_OK;

	for (size_t i = 0; i < load->window_count; i++)
		has_pieces |= load->windows[i].pieces.is_known;
	for (size_t i = 0; has_pieces && !rc && i < load->row_count; i++)
		if (load->rows[i].kind == TS_COMMAND_CHECK)
			rc = count_piece(load, &load->rows[i], err);
	for (size_t i = 0; !rc && i < load->window_count; i++) {
		struct ts_replay_window *window = &load->windows[i];
		char why[TS_REPLAY_PIECES_TEXT];

		if (!window->has_open || !window->pieces.is_known || window->failed ||
		    !ts_replay_pieces_fault(true, window->pieces.value, window->piece_rows, why,
					    sizeof(why)))
			continue;
		window->failed = ts_arena_strdup_len(&load->scratch, why, strlen(why));
		if (!window->failed)
			return ts_replay_no_memory(err);
	}
	return rc;
}

static int no_window(const struct ts_replay_load *load, uint32_t number, struct ts_error *err)
{
	for (size_t i = 0; i < load->window_count; i++) {
		const struct ts_replay_window *window = &load->windows[i];

		if (window->failed && (!number || window->number == number))
			return ts_error_set(err, TS_EFORMAT,
					    "window %" PRIu64 " cannot be replayed: %s",
					    window->number, window->failed);
	}
	if (number && load->window_count)
		return ts_error_set(err, TS_EINVAL,
				    "there is no window %" PRIu32 "; the trace has %zu", number,
				    load->window_count);
	return ts_error_set(err, TS_ENOTFOUND, "nothing to replay: no window was opened");
}

static const struct ts_replay_window *find_window(const struct ts_replay_load *load,
						  uint32_t number, bool may_have_failed)
{
	for (size_t i = 0; i < load->window_count; i++) {
		const struct ts_replay_window *window = &load->windows[i];

		if (window->has_open && (!window->failed || may_have_failed) &&
		    (!number || window->number == number))
			return window;
	}
	return NULL;
}

int ts_replay_load_windows(struct ts_replay_load *load, uint32_t number, struct ts_error *err)
{
	struct ts_replay_stream *stream = load->stream;
	int rc = find_windows(load, err);

	if (!rc)
		rc = check_pieces(load, err);
	if (rc)
		return rc;
	load->window = find_window(load, number, false);
	if (!load->window && load->to_show)
		load->window = find_window(load, number, true);
	stream->window_count = (uint32_t)load->window_count;
	if (!load->window)
		return no_window(load, number, err);
	stream->window = (uint32_t)load->window->number;
	stream->open_ns = load->window->start;
	stream->is_truncated = !load->window->has_close;
	if (load->window->failed) {
		stream->failed = ts_arena_strdup_len(&stream->arena, load->window->failed,
						     strlen(load->window->failed));
		rc = stream->failed ? TS_OK : ts_replay_no_memory(err);
	}
	return rc;
}

bool ts_replay_window_has(const struct ts_replay_window *window, const struct ts_command_row *row)
{
	if (row->sequence > 0)
		return row->sequence >= window->sequence && row->sequence < window->next_sequence;
	return row->start >= window->start && row->start <= window->end;
}
