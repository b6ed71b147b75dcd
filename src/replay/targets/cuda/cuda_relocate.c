/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of globals differ between processes. Words that hold recorded ones are changed to those
 * of this process, and back where memory is compared (docs/cuda-replay.md, 2.4).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "replay/targets/cuda/cuda_session.h"

/* ---- the table ---- */

struct moved {
	struct ts_page_move move;
	const char *name;
};

static int by_from(const void *a, const void *b)
{
	const struct moved *x = a, *y = b;

	return TS_COMPARE(x->move.from, y->move.from);
}

static int by_move(const void *a, const void *b)
{
	const struct ts_page_move *x = a, *y = b;

	return TS_COMPARE(x->from, y->from);
}

static bool is_global(const struct ts_replay_session *session, uint32_t object)
{
	return ts_cuda_info(session, object)->kind == TS_OBJECT_MEMORY &&
	       (ts_cuda_info(session, object)->flags & TS_REPLAY_GLOBAL) &&
	       session->objects[object].is_needed;
}

/* One table for both directions needs ranges that do not overlap: those of a trace may. */
static int check_table(const struct ts_replay_session *session, const struct moved *moved,
		       uint32_t count, struct ts_error *err)
{
	for (uint32_t i = 1; i < count; i++)
		if (moved[i - 1].move.from + moved[i - 1].move.bytes > moved[i].move.from)
			return ts_error_set(err, TS_EFORMAT, "globals '%s' and '%s' overlap",
					    moved[i - 1].name, moved[i].name);
	return TS_OK;
}

static void fill_tables(struct ts_replay_session *session, const struct moved *moved)
{
	for (uint32_t i = 0; i < session->move_count; i++) {
		session->forth[i] = moved[i].move;
		session->moved_names[i] = moved[i].name;
		session->back[i] = (struct ts_page_move){ moved[i].move.from + moved[i].move.delta,
							  moved[i].move.bytes,
							  -moved[i].move.delta };
	}
	ts_sort(session->back, session->move_count, sizeof(*session->back), by_move);
}

int ts_cuda_make_moves(struct ts_replay_session *session, struct ts_error *err)
{
	size_t most = session->stream->object_count + 1u;
	TS_AUTO_FREE struct moved *moved = ts_alloc_array(most, sizeof(*moved));
	bool is_moved = false;
	uint32_t count = 0;
	int rc;

	if (!moved)
		return ts_error_set(err, TS_ENOMEM, "no memory for addresses");
	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		const struct ts_replay_object_info *info = ts_cuda_info(session, i);
		uint64_t delta = session->objects[i].address - info->address;

		if (!is_global(session, i) || !info->address || !info->bytes)
			continue;
		/* One that did not move keeps its words, also if another one moved there. */
		moved[count++] =
			(struct moved){ { info->address, info->bytes, delta }, info->name };
		is_moved |= delta != 0;
	}
	for (uint32_t i = 0; i < session->stream->object_count; i++)
		if (ts_cuda_info(session, i)->kind == TS_OBJECT_MODULE &&
		    session->objects[i].is_needed &&
		    ts_cuda_find_code_move(session, i, &moved[count].move, &moved[count].name))
			is_moved |= moved[count++].move.delta != 0;
	if (!is_moved)
		return TS_OK;
	ts_sort(moved, count, sizeof(*moved), by_from);
	rc = check_table(session, moved, count, err);
	if (rc)
		return rc;
	session->forth = ts_arena_alloc_zeroed(&session->arena, count, sizeof(*session->forth));
	session->back = ts_arena_alloc_zeroed(&session->arena, count, sizeof(*session->back));
	session->moved_words = ts_arena_alloc_zeroed(&session->arena, count, sizeof(uint64_t));
	session->moved_names =
		ts_arena_alloc_zeroed(&session->arena, count, sizeof(*session->moved_names));
	if (!session->forth || !session->back || !session->moved_words || !session->moved_names)
		return ts_error_set(err, TS_ENOMEM, "no memory for addresses");
	session->move_count = count;
	fill_tables(session, moved);
	return TS_OK;
}

/* ---- bytes on the host ---- */

static void move_bytes(void *data, uint64_t bytes, uint64_t address, uint64_t *counts,
		       const struct ts_page_move *moves, uint32_t count)
{
	uint64_t skew = -address % 8, word;
	char *from = (char *)data + skew;

	if (!count || bytes < skew + 8)
		return;
	bytes = (bytes - skew) / 8 * 8;
	if ((uintptr_t)from % 8 == 0) {
		ts_move_page_words(from, bytes, counts, moves, count, 1);
		return;
	}
	for (uint64_t i = 0; i < bytes; i += 8) {
		memcpy(&word, from + i, 8);
		ts_move_page_words(&word, 8, counts, moves, count, 1);
		memcpy(from + i, &word, 8);
	}
}

void ts_cuda_move_forth(struct ts_replay_session *session, void *data, uint64_t bytes,
			uint64_t address)
{
	move_bytes(data, bytes, address, session->moved_words, session->forth, session->move_count);
}

void ts_cuda_move_back(const struct ts_replay_session *session, void *data, uint64_t bytes,
		       uint64_t address)
{
	uint64_t ignored[64];

	/* Counts have one entry per move. */
	if (session->move_count <= TS_ARRAY_SIZE(ignored)) {
		memset(ignored, 0, sizeof(ignored));
		move_bytes(data, bytes, address, ignored, session->back, session->move_count);
	} else {
		TS_AUTO_FREE uint64_t *counts = calloc(session->move_count, sizeof(*counts));

		if (counts)
			move_bytes(data, bytes, address, counts, session->back,
				   session->move_count);
	}
}

/* ---- the report ---- */

/* Words of all that have this name; 0: an earlier one has it, too. */
static uint64_t words_of(const struct ts_replay_session *session, uint32_t move)
{
	uint64_t words = 0;

	for (uint32_t i = 0; i < session->move_count; i++) {
		bool is_same = !strcmp(session->moved_names[i], session->moved_names[move]);

		if (is_same && i < move && session->forth[i].delta)
			return 0;
		if (is_same && session->forth[i].delta)
			words += session->moved_words[i];
	}
	return words;
}

void ts_cuda_report_moves(const struct ts_replay_session *session, struct ts_replay_report *report)
{
	size_t length = 0, more = 0;

	for (uint32_t i = 0; i < session->move_count; i++) {
		const char *name = session->moved_names[i];
		uint64_t words = session->forth[i].delta ? words_of(session, i) : 0;
		char text[128];
		int bytes;

		if (!words)
			continue;
		report->relocated_words += words;
		bytes = snprintf(text, sizeof(text), "%s%.80s (%" PRIu64 ")", length ? ", " : "",
				 name, words);
		if (length + (size_t)bytes + 24 > sizeof(report->relocated)) {
			more++;
			continue;
		}
		memcpy(report->relocated + length, text, (size_t)bytes + 1);
		length += (size_t)bytes;
	}
	if (more)
		snprintf(report->relocated + length, sizeof(report->relocated) - length,
			 " and %zu more", more);
	snprintf(report->gaps, sizeof(report->gaps), "%s", session->gaps);
}
