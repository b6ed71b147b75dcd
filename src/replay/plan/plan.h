/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the commands to run (docs/replay.md, section 6.2): plan_part.c marks the requested
 * commands, plan_needs.c their inputs, plan_order.c what keeps their order. Private to src/replay.
 */
#ifndef TS_REPLAY_PLAN_PLAN_H
#define TS_REPLAY_PLAN_PLAN_H

#include "replay/replay.h"

/* TS_ENOTFOUND: the selection is empty; TS_EFORMAT: a needed command cannot be replayed. */
int ts_replay_plan_make(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			const struct ts_replay_options *options, struct ts_error *err);
/* The same to show it: commands that cannot be replayed are not an error. */
int ts_replay_plan_make_to_show(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
				const struct ts_replay_options *options, struct ts_error *err);
/* Accepts a zeroed plan. */
void ts_replay_plan_release(struct ts_replay_plan *plan);

/* "3 copies and 2 launches before it: 4, 7, 9-11"; "" if nothing was included. */
void ts_replay_plan_text(const struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			 char *to, size_t bytes);

/* The first commands that were skipped, for the report. */
void ts_replay_plan_report(const struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			   struct ts_replay_report *report);

/* "'blend', 'total'": the kernels of all launches, for messages about others. */
void ts_replay_append_kernels(const struct ts_replay_stream *stream, struct ts_text *text);

/* Does the command overwrite its write set completely, without reading it? */
bool ts_replay_covers(const struct ts_replay_command_info *command);
/* Was this memory allocated when the command ran? */
bool ts_replay_is_alive(const struct ts_replay_stream *stream, uint32_t memory, uint32_t command);
/* May a command with unknown access read and write this memory? */
bool ts_replay_may_access(const struct ts_replay_stream *stream, uint32_t command, uint32_t memory);
/* An address space, of which parts are mapped. */
bool ts_replay_is_sparse(const struct ts_replay_stream *stream, uint32_t object);
/* All memory that is not a view. The caller frees it; NULL: no memory. */
uint32_t *ts_replay_list_memory(const struct ts_replay_stream *stream, uint32_t *ret_count);
/* Does a command of this kind only begin or end the life of an object? */
bool ts_replay_is_lifetime(enum ts_command_kind kind);
/* Memory that is not a view. */
bool ts_replay_is_root(const struct ts_replay_stream *stream, uint32_t object);

/*
 * All commands in the order in which they can end, which differs from that of submission where user
 * events are set later. The caller frees it; NULL: no memory.
 */
struct ts_replay_position {
	uint32_t ready, index;
};
struct ts_replay_position *ts_replay_plan_positions(const struct ts_replay_stream *stream);

/* ---- steps ---- */

/* Marks requested commands with TS_REPLAY_REQUESTED. */
int ts_replay_plan_select(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			  const struct ts_replay_options *options, struct ts_error *err);
/* Marks their inputs with TS_REPLAY_INCLUDED. */
int ts_replay_plan_include(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			   struct ts_error *err);
/* --skip-unsupported: unmarks what cannot run, fills skipped and unknown. */
int ts_replay_plan_skip(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			struct ts_error *err);
/* Marks with TS_REPLAY_ORDER, fills order and instead. */
int ts_replay_plan_order(struct ts_replay_plan *plan, const struct ts_replay_stream *stream,
			 struct ts_error *err);

#endif
