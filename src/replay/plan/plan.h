/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the commands to run (docs/replay.md, section 6.2): plan_part.c those that were asked for,
 * plan_needs.c what they need, plan_order.c what keeps their order. Private to src/replay.
 */
#ifndef TS_REPLAY_PLAN_PLAN_H
#define TS_REPLAY_PLAN_PLAN_H

#include "replay/replay.h"

/*
 * TS_ENOTFOUND: nothing of the stream is asked for; TS_EFORMAT: a command that is needed cannot be
 * replayed.
 */
int ts_replay_plan_make(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			const struct ts_replay_options *options, struct ts_error *err);
/* A zeroed plan is as good as an empty one. */
void ts_replay_plan_release(struct ts_replay_plan *plan);

/* "3 copies and 2 launches before it: 4, 7, 9-11"; "" where nothing was included. */
void ts_replay_plan_text(const struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			 char *to, size_t bytes);

/* Does what it writes replace all that was there, whatever that was? */
bool ts_replay_covers(const struct ts_replay_command_info *command);
/* Was this memory there when the command ran? */
bool ts_replay_is_alive(const struct ts_replay_stream *stream, uint32_t memory, uint32_t command);
/* Memory that is no view. */
bool ts_replay_is_root(const struct ts_replay_stream *stream, uint32_t object);

/* ---- steps ---- */

/* Marks with TS_REPLAY_ASKED. */
int ts_replay_plan_ask(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
		       const struct ts_replay_options *options, struct ts_error *err);
/* Marks with TS_REPLAY_INCLUDED. */
int ts_replay_plan_include(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			   struct ts_error *err);
/* Marks with TS_REPLAY_ORDER, fills order and instead. */
int ts_replay_plan_order(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			 struct ts_error *err);

#endif
