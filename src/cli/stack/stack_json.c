/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as JSON, one object per line. Unknown values are null. */
#include <inttypes.h>
#include <string.h>

#include "cli/stack/stack_verb.h"

static void put_text(struct ts_text *out, const char *key, const char *text)
{
	ts_text_printf(out, "\"%s\":", key);
	if (text[0])
		ts_text_append_json(out, text, strlen(text));
	else
		ts_text_append_str(out, "null");
}

/* Null if below `least`. */
static void put_number(struct ts_text *out, const char *key, int64_t value, int64_t least)
{
	if (value >= least)
		ts_text_printf(out, "\"%s\":%" PRId64, key, value);
	else
		ts_text_printf(out, "\"%s\":null", key);
}

static const char *bool_text(bool value)
{
	return value ? "true" : "false";
}

/* The outermost frame is at depth 0. */
static void put_frame(struct ts_text *out, const struct ts_stack_frame *frame, size_t depth)
{
	ts_text_append_char(out, '{');
	put_text(out, "func", frame->function);
	ts_text_append_char(out, ',');
	put_text(out, "file", frame->file);
	ts_text_append_char(out, ',');
	put_number(out, "lineno", frame->is_native ? 0 : frame->line, 1);
	ts_text_printf(out, ",\"depth\":%zu,\"frame_type\":\"%s\"", depth,
		       frame->is_native ? "native" : "python");
	if (frame->is_native)
		ts_text_printf(out, ",\"address\":%" PRIu64, (uint64_t)frame->line);
	if (frame->locals) {
		ts_text_append_str(out, ",\"locals\":");
		ts_text_append_str(out, frame->locals);
	}
	ts_text_append_char(out, '}');
}

void ts_stack_put_json_frames(struct ts_text *out, const struct ts_stack_frame *frames,
			      size_t count)
{
	ts_text_append_char(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i)
			ts_text_append_char(out, ',');
		put_frame(out, &frames[i], count - 1 - i);
	}
	ts_text_append_char(out, ']');
}

static void put_thread(struct ts_text *out, const struct ts_stack_thread *thread)
{
	ts_text_append_char(out, '{');
	put_number(out, "tid", thread->tid, 1);
	ts_text_append_char(out, ',');
	put_text(out, "name", thread->name);
	ts_text_printf(out, ",\"main\":%s,\"interpreter\":%" PRId64 ",\"state\":\"%s\",",
		       bool_text(thread->is_main), thread->interpreter,
		       ts_stack_state_name(thread->state));
	ts_text_printf(out, "\"running\":%s,\"gil\":%s,", bool_text(thread->state & TS_PYTHON_RUNS),
		       bool_text(thread->state & TS_PYTHON_HAS_GIL));
	put_text(out, "task", thread->task);
	ts_text_printf(out, ",\"rejected\":%s,", bool_text(thread->is_rejected));
	if (thread->native_missing[0]) {
		put_text(out, "native_missing", thread->native_missing);
		ts_text_append_char(out, ',');
	}
	ts_text_append_str(out, "\"frames\":");
	ts_stack_put_json_frames(out, thread->frames, thread->count);
	ts_text_append_char(out, '}');
}

void ts_stack_put_json(struct ts_text *out, const struct ts_stack_process *process)
{
	ts_text_printf(out, "{\"pid\":%d,\"inner_pid\":%d,", (int)process->pid,
		       (int)process->inner_pid);
	put_text(out, "command", process->command);
	ts_text_append_char(out, ',');
	put_text(out, "version", process->version);
	ts_text_append_char(out, ',');
	put_number(out, "rank", process->rank, 0);
	ts_text_append_char(out, ',');
	put_number(out, "local_rank", process->local_rank, 0);
	ts_text_append_char(out, ',');
	put_number(out, "world_size", process->world_size, 0);
	ts_text_printf(out, ",\"stopped\":%s,\"threads\":[", bool_text(process->is_stopped));
	for (size_t i = 0; i < process->count; i++) {
		if (i)
			ts_text_append_char(out, ',');
		put_thread(out, &process->threads[i]);
	}
	ts_text_append_str(out, "]}\n");
}
