/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks and their frames as cells of a text table. */
#include <string.h>

#include "cli/common/show.h"
#include "trace/stack_lists.h"

/* Number of frames, including the stack's own. */
static int depth_of(struct ts_reader *reader, int64_t stack)
{
	uint32_t depth = 0;

	while (stack > 0 && depth < TS_STACK_MAX_DEPTH) {
		const struct ts_stack_row *row = ts_reader_entity(reader, TS_TABLE_STACK, stack);

		depth += row ? ts_frame_function_count(reader, row->frame) : 1;
		/* Parents have smaller ids; anything else could be a cycle. */
		stack = row && row->parent < stack ? row->parent : 0;
	}
	return (int)depth;
}

/* A function; for a device instruction, with its offset. */
static void append_function(struct ts_reader *reader, struct ts_text *out, int64_t id)
{
	const struct ts_frame_row *frame = ts_frame_get(reader, id);

	ts_frame_append_function(reader, out, id);
	if (frame->kind == TS_FRAME_INSTRUCTION && frame->pc >= 0)
		ts_text_printf(out, "+0x%04llx", (unsigned long long)frame->pc);
}

void ts_show_frame(struct ts_reader *reader, struct ts_text *out, int64_t frame)
{
	struct ts_string file = ts_frame_file(reader, frame);
	int64_t line = ts_frame_line(reader, frame);
	const char *name;
	size_t length;

	append_function(reader, out, frame);
	if (!file.length)
		return;
	name = ts_frame_short_file(file, &length);
	ts_text_append_str(out, " (");
	ts_text_append(out, name, length);
	if (line != TS_ABSENT)
		ts_text_printf(out, ":%lld", (long long)line);
	ts_text_append_char(out, ')');
}

void ts_show_stack_summary(struct ts_reader *reader, struct ts_text *out, int64_t stack)
{
	const struct ts_stack_row *row = ts_reader_entity(reader, TS_TABLE_STACK, stack);

	if (!stack)
		return;
	ts_show_frame(reader, out, row ? row->frame : 0);
	/* Device instructions have no callers. */
	if (!ts_stack_is_instruction(reader, stack))
		ts_text_printf(out, ", depth %d", depth_of(reader, stack));
}
