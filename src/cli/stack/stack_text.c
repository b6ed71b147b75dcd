/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as text, innermost frame first. Control characters in names are never printed. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "cli/common/text_table.h"
#include "cli/stack/stack_verb.h"

static const char *const colours[] = {
	[TS_STACK_BOLD] = "\x1b[1m",
	[TS_STACK_DIM] = "\x1b[2m",
	[TS_STACK_GREEN] = "\x1b[32m",
	[TS_STACK_YELLOW] = "\x1b[33m",
};

static void begin(struct ts_text *out, bool colour, enum ts_stack_colour which)
{
	if (colour)
		ts_text_append_str(out, colours[which]);
}

static void end(struct ts_text *out, bool colour)
{
	if (colour)
		ts_text_append_str(out, "\x1b[0m");
}

static void put_shown(struct ts_text *out, const char *text)
{
	ts_text_append_shown(out, text, strlen(text));
}

void ts_stack_put_coloured(struct ts_text *out, bool colour, enum ts_stack_colour which,
			   const char *text)
{
	begin(out, colour, which);
	put_shown(out, text);
	end(out, colour);
}

/* ---- frames ---- */

void ts_stack_put_frame(struct ts_text *out, const struct ts_stack_frame *frame, bool colour)
{
	put_shown(out, frame->function);
	ts_text_append_char(out, ' ');
	begin(out, colour, TS_STACK_DIM);
	ts_text_append_char(out, '(');
	put_shown(out, frame->file);
	if (frame->is_native)
		ts_text_printf(out, "+0x%" PRIx64, (uint64_t)frame->line);
	else if (frame->line > 0)
		ts_text_printf(out, ":%" PRId64, frame->line);
	ts_text_append_char(out, ')');
	end(out, colour);
}

/* "            name: value", one per line. */
static void put_locals(struct ts_text *out, const char *locals, bool colour)
{
	TS_SCOPED(ts_text) text = { 0 };
	struct ts_json_walk walk = { .open = '{' };
	struct ts_json json;

	ts_json_init(&json, locals, strlen(locals), true);
	while (ts_json_walk_next(&walk, &json)) {
		struct ts_json_string value;

		walk.rc = ts_json_scan_string(&json, &value);
		if (walk.rc)
			break;
		ts_text_clear(&text);
		ts_json_unescape(&walk.key, &text);
		ts_text_append_str(out, "            ");
		ts_stack_put_coloured(out, colour, TS_STACK_DIM, ts_text_cstr(&text));
		ts_text_append_str(out, ": ");
		ts_text_clear(&text);
		ts_json_unescape(&value, &text);
		ts_text_append_shown(out, text.data, text.length);
		ts_text_append_char(out, '\n');
	}
}

/* ---- threads ---- */

const char *ts_stack_state_name(uint32_t state)
{
	if (state & TS_PYTHON_COLLECTS)
		return "collecting";
	if (state & TS_PYTHON_HAS_GIL)
		return "gil";
	if (state & TS_PYTHON_WAITS_GIL)
		return "waiting for gil";
	return state & TS_PYTHON_RUNS ? "running" : "idle";
}

static void put_state(struct ts_text *out, const struct ts_stack_process *process,
		      const struct ts_stack_thread *thread, bool colour)
{
	uint32_t state = thread->state;

	ts_stack_put_coloured(out, colour && state & TS_PYTHON_RUNS, TS_STACK_GREEN,
			      state & TS_PYTHON_RUNS ? "running" : "idle");
	if (state & TS_PYTHON_HAS_GIL)
		ts_text_append_str(out,
				   process->is_free_threaded ? ", attached" : ", holds the GIL");
	if (state & TS_PYTHON_WAITS_GIL)
		ts_text_append_str(out, ", waits for the GIL");
	if (state & TS_PYTHON_COLLECTS)
		ts_text_append_str(out, ", collects garbage");
	if (thread->is_native && process->is_python)
		ts_text_append_str(out, ", not a Python thread");
	if (thread->interpreter > 0)
		ts_text_printf(out, ", interpreter %" PRId64, thread->interpreter);
	if (thread->task[0]) {
		ts_text_append_str(out, ", task ");
		put_shown(out, thread->task);
	}
	if (thread->was_stopped)
		ts_text_append_str(out, ", was stopped briefly");
}

static void put_thread_head(struct ts_text *out, const struct ts_stack_process *process,
			    const struct ts_stack_thread *thread, bool colour)
{
	ts_text_append_str(out, "    ");
	begin(out, colour, TS_STACK_BOLD);
	if (thread->tid)
		ts_text_printf(out, "thread %d", (int)thread->tid);
	else
		ts_text_printf(out, "thread 0x%" PRIx64, thread->thread_id);
	if (thread->name[0]) {
		ts_text_append_str(out, " \"");
		put_shown(out, thread->name);
		ts_text_append_char(out, '"');
	} else if (thread->is_main) {
		ts_text_append_str(out, " (main)");
	}
	end(out, colour);
	ts_text_append_str(out, ": ");
	put_state(out, process, thread, colour);
	ts_text_append_char(out, '\n');
}

static void put_remark(struct ts_text *out, const char *text, bool colour)
{
	ts_text_append_str(out, "        ");
	ts_stack_put_coloured(out, colour, TS_STACK_YELLOW, text);
	ts_text_append_char(out, '\n');
}

static void put_remarks(struct ts_text *out, const struct ts_stack_thread *thread, bool colour)
{
	if (thread->is_rejected)
		put_remark(
			out,
			"(its Python stack changed during each of 5 attempts and could not be read)",
			colour);
	else if (!thread->count && !thread->native_missing[0])
		put_remark(out, "(no frames: it is starting or exiting)", colour);
	if (thread->is_cut)
		put_remark(out, "(outer native frames could not be found)", colour);
	if (thread->native_missing[0]) {
		TS_SCOPED(ts_text) text = { 0 };

		ts_text_printf(&text, "(without native frames: %s)", thread->native_missing);
		put_remark(out, ts_text_cstr(&text), colour);
	}
}

static void put_thread(struct ts_text *out, const struct ts_stack_process *process,
		       const struct ts_stack_thread *thread, bool colour)
{
	put_thread_head(out, process, thread, colour);
	for (size_t i = 0; i < thread->count; i++) {
		ts_text_append_str(out, "        ");
		ts_stack_put_frame(out, &thread->frames[i], colour);
		ts_text_append_char(out, '\n');
		if (thread->frames[i].locals)
			put_locals(out, thread->frames[i].locals, colour);
	}
	put_remarks(out, thread, colour);
}

/* ---- processes ---- */

/* "  Python 3.11.2, rank 3 of 8, pid 17 in its container". */
static void put_about(struct ts_text *out, const struct ts_stack_process *process)
{
	if (process->is_python)
		ts_text_printf(out, "    Python %s", process->version);
	else
		ts_text_append_str(out, "    not a Python process: native frames only");
	if (process->rank >= 0)
		ts_text_printf(out, ", rank %" PRId64, process->rank);
	if (process->rank >= 0 && process->world_size > 0)
		ts_text_printf(out, " of %" PRId64, process->world_size);
	if (process->local_rank >= 0)
		ts_text_printf(out, ", local rank %" PRId64, process->local_rank);
	if (process->is_stopped)
		ts_text_append_str(out, ", is stopped");
	if (process->inner_pid && process->inner_pid != process->pid)
		ts_text_printf(out, ", pid %d in its own namespace", (int)process->inner_pid);
	ts_text_append_char(out, '\n');
}

void ts_stack_put_text(struct ts_text *out, const struct ts_stack_process *process, bool colour)
{
	begin(out, colour, TS_STACK_BOLD);
	ts_text_printf(out, "process %d: ", (int)process->pid);
	put_shown(out, process->command);
	end(out, colour);
	ts_text_append_char(out, '\n');
	put_about(out, process);
	for (size_t i = 0; i < process->count; i++) {
		ts_text_append_char(out, '\n');
		put_thread(out, process, &process->threads[i], colour);
	}
}
