/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats a row of any table, ids resolved to texts, numbers and names: as a JSON object, or cell
 * by cell for a text table. Implemented in show_json.c, show_args.c, show_text.c, show_stack.c and
 * show_counter.c.
 */
#ifndef TS_CLI_COMMON_SHOW_H
#define TS_CLI_COMMON_SHOW_H

#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/text.h"
#include "trace/row.h"

struct ts_show {
	struct ts_reader *reader;
	int64_t start;        /* of the trace: "time" is relative to it */
	bool several_sources; /* WHERE cells also name the source */
	bool reasons_apart;   /* NAME cells of losses are without the reason */
	bool short_names;     /* NAME cells of kernels are without arguments; needs column kind */
};

void ts_show_init(struct ts_show *show, struct ts_reader *reader);

/* ---- JSON ---- */

/* The members of a row's object, each followed by a comma; see tracesmith-view(1). */
void ts_show_json_members(const struct ts_show *show, struct ts_text *out,
			  const struct ts_row *row);

/* The members of one column: none, one, or several (pid and tid for a thread). */
void ts_show_json_column(const struct ts_show *show, struct ts_text *out, const struct ts_row *row,
			 unsigned int column);

/* "args": {...}, "beside": {...}, if the row has any; each followed by a comma. */
void ts_show_json_args(const struct ts_show *show, struct ts_text *out, const struct ts_row *row);

/*
 * {...} of the arguments, or of those with `beside` set. Appends nothing and returns false if there
 * are none.
 */
bool ts_show_json_fields(const struct ts_show *show, struct ts_text *out, const struct ts_row *row,
			 int beside);

/* [{"func": ..., ...}], innermost frame first. */
void ts_show_json_stack(const struct ts_show *show, struct ts_text *out, int64_t stack);

/* ---- text ---- */

/* Columns of a text table beyond those of the schema. */
enum ts_show_special {
	TS_SHOW_TIME = 64, /* start, relative to the trace's */
	TS_SHOW_WHERE, /* process and thread, or device and stream; for a counter also "system" */
	TS_SHOW_TABLE,
	TS_SHOW_NAME, /* the best short text for the row */
	TS_SHOW_CATEGORY,
	TS_SHOW_DURATION,
	TS_SHOW_ARGS,
};

/* The text of one cell: a column of the row's table by its position, or an enum ts_show_special. */
void ts_show_cell(const struct ts_show *show, struct ts_text *out, const struct ts_row *row,
		  unsigned int column);

/* "func (file.py:3)"; for a device instruction also the offset in the function. */
void ts_show_frame(struct ts_reader *reader, struct ts_text *out, int64_t frame);

/* Mask of the columns that a special column reads. */
uint64_t ts_show_special_mask(const struct ts_table_info *table, enum ts_show_special special);

/* " series=value" for each series of a counter, with the unit from its name. */
void ts_show_counter_values(const struct ts_show *show, struct ts_text *out,
			    const struct ts_row *row);

/* "func (file.py:3), depth 12" of the innermost frame; nothing if the stack is empty. */
void ts_show_stack_summary(struct ts_reader *reader, struct ts_text *out, int64_t stack);

#endif
