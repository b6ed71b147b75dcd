/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a window of a command stream (docs/replay.md, sections 2 and 6.1): calls the steps in
 * stream_*.c in order.
 */
#include "replay/stream/stream_internal.h"

int ts_replay_no_memory(struct ts_error *err)
{
	return ts_error_set(err, TS_ENOMEM, "no memory for the commands of this trace");
}

static void load_release(struct ts_replay_load *load)
{
	free(load->rows);
	free(load->windows);
	ts_replay_release_mapped(load);
	ts_replay_release_nodes(load);
	ts_map_release(&load->by_id);
	ts_map_release(&load->by_number);
	ts_map_release(&load->events);
	ts_map_release(&load->user_sets);
	ts_arena_release(&load->scratch);
	ts_arena_release(&load->line);
}

static int load_all(struct ts_replay_load *load, const char *process, uint32_t window,
		    struct ts_error *err)
{
	int rc = ts_replay_verify_chunks(load->reader, err);

	if (!rc)
		rc = ts_replay_load_rows(load, process, err);
	if (!rc)
		rc = ts_replay_load_windows(load, window, err);
	if (!rc)
		rc = ts_replay_load_objects(load, err);
	if (!rc)
		rc = ts_replay_load_pieces(load, err);
	if (!rc)
		rc = ts_replay_load_commands(load, err);
	if (!rc)
		rc = ts_replay_load_spaces(load, err);
	if (!rc)
		rc = ts_replay_load_checks(load, err);
	if (!rc)
		rc = ts_replay_load_order(load, err);
	/* Texts are loaded lazily, and one that fails to load reads as empty: check the status. */
	return rc ? rc : ts_reader_status(load->reader, err);
}

static int load_stream(struct ts_replay_stream **ret_stream, struct ts_reader *reader,
		       const char *process, uint32_t window, bool to_show, struct ts_error *err)
{
	struct ts_replay_load load = { .reader = reader, .to_show = to_show };
	struct ts_replay_stream *stream = calloc(1, sizeof(*stream));
	int rc;

	if (!stream)
		return ts_replay_no_memory(err);
	stream->reader = reader;
	load.stream = stream;
	ts_arena_init(&stream->arena);
	ts_strmap_init(&stream->texts, 1);
	rc = load_all(&load, process, window, err);
	load_release(&load);
	if (rc)
		ts_replay_stream_free(stream);
	else
		*ret_stream = stream;
	return rc;
}

int ts_replay_stream_load(struct ts_replay_stream **ret_stream, struct ts_reader *reader,
			  const char *process, uint32_t window, struct ts_error *err)
{
	return load_stream(ret_stream, reader, process, window, false, err);
}

int ts_replay_stream_load_to_show(struct ts_replay_stream **ret_stream, struct ts_reader *reader,
				  const char *process, uint32_t window, struct ts_error *err)
{
	return load_stream(ret_stream, reader, process, window, true, err);
}

void ts_replay_stream_free(struct ts_replay_stream *stream)
{
	if (!stream)
		return;
	ts_strmap_release(&stream->texts);
	ts_arena_release(&stream->arena);
	free(stream);
}
