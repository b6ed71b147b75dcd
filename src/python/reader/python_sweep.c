/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads all threads of a process: all predicted ranges in one read, then follows the lists of
 * interpreters and threads in the copies. Each stack is accepted, read again alone, or rejected.
 * Allocates only when something is new.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/process.h"
#include "python/reader/python_reader_internal.h"

#define MAX_READS 4u                 /* of all threads, in one sweep */
#define MAX_ATTEMPTS 8u              /* at one thread, in one sweep */
#define CLOSE_NS INT64_C(2000000)    /* between two sweeps */
#define LATE_NS INT64_C(1000000)     /* the reader was interrupted */
#define RELIST_NS INT64_C(200000000) /* main thread only: relist all */

/* ---- reading ---- */

int ts_python_add_range(struct ts_python_reader *python, uint64_t address, void *copy, size_t bytes)
{
	if (python->range_count == python->range_capacity &&
	    ts_grow_array((void **)&python->ranges, &python->range_capacity,
			  python->range_count + 1, sizeof(*python->ranges)))
		return TS_ENOMEM;
	python->ranges[python->range_count++] =
		(struct ts_python_memory_range){ address, copy, (uint32_t)bytes };
	return TS_OK;
}

static int gone(const struct ts_python_reader *python, int error, struct ts_error *err)
{
	if (error == -EPERM || error == -EACCES)
		return ts_python_access_denied(python->pid, err);
	return ts_error_set(err, TS_ENOTFOUND, "process %d has ended", (int)python->pid);
}

/* All ranges; unreadable ones are listed in `failed`. */
static int read_ranges(struct ts_python_reader *python, struct ts_error *err)
{
	size_t done = 0;

	python->failed_count = 0;
	while (done < python->range_count) {
		int got = ts_python_memory_read_ranges(&python->memory, python->ranges + done,
						       python->range_count - done);

		if (got < 0)
			return gone(python, got, err);
		done += (size_t)got;
		if (done >= python->range_count)
			break;
		if (ts_grow_array((void **)&python->failed, &python->failed_capacity,
				  python->failed_count + 1, sizeof(*python->failed)))
			return ts_error_set(err, TS_ENOMEM, "no memory for a sweep");
		python->failed[python->failed_count++] = done++;
	}
	return TS_OK;
}

static bool are_complete(const struct ts_python_reader *python, size_t first, size_t count)
{
	for (size_t i = 0; i < python->failed_count; i++)
		if (python->failed[i] >= first && python->failed[i] - first < count)
			return false;
	return true;
}

/* ---- interpreters ---- */

static int plan_interpreter(struct ts_python_reader *python, struct python_interpreter *interpreter)
{
	uint32_t generation = python->runtime_info.layout.interpreter.code_generation;

	interpreter->first_range = python->range_count;
	if (ts_python_add_range(python, interpreter->address + python->window_start,
				interpreter->window, python->window_bytes) ||
	    (interpreter->gil && python->gil_bytes &&
	     ts_python_add_range(python, interpreter->gil + python->gil_start,
				 interpreter->gil_words, python->gil_bytes)) ||
	    (generation != TS_PYTHON_NONE_32 &&
	     ts_python_add_range(python, interpreter->address + generation,
				 &interpreter->generation, 8)))
		return TS_ENOMEM;
	interpreter->range_count = python->range_count - interpreter->first_range;
	return TS_OK;
}

static uint64_t window_word(const struct ts_python_reader *python,
			    const struct python_interpreter *interpreter, uint32_t offset)
{
	return ts_python_word_of(interpreter->window, offset - python->window_start);
}

/* Reads the constant part of a new one, and its window. */
static bool read_interpreter(struct ts_python_reader *python,
			     struct python_interpreter *interpreter)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	struct ts_python_memory *memory = &python->memory;
	uint64_t at = interpreter->address, id = 0;

	interpreter->window = malloc(python->window_bytes);
	if (!interpreter->window ||
	    !ts_python_memory_read(memory, at + python->window_start, interpreter->window,
				   python->window_bytes) ||
	    !ts_python_memory_read_pointer(memory, at + layout->interpreter.id, &id) ||
	    !ts_python_memory_read_pointer(memory, at + layout->interpreter.modules,
					   &interpreter->modules))
		return false;
	interpreter->id = (int64_t)id;
	if (python->gil_bytes &&
	    (!ts_python_memory_read_pointer(memory, at + layout->interpreter.gil,
					    &interpreter->gil) ||
	     !ts_python_memory_read(memory, interpreter->gil + python->gil_start,
				    interpreter->gil_words, python->gil_bytes)))
		interpreter->gil = 0;
	return true;
}

/* What a starting interpreter does not have yet. */
static void complete_interpreter(struct ts_python_reader *python,
				 struct python_interpreter *interpreter)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	struct ts_python_memory *memory = &python->memory;
	uint64_t at = interpreter->address;

	if (!interpreter->modules)
		ts_python_memory_read_pointer(memory, at + layout->interpreter.modules,
					      &interpreter->modules);
	if (!interpreter->gil && python->gil_bytes)
		ts_python_memory_read_pointer(memory, at + layout->interpreter.gil,
					      &interpreter->gil);
}

/* The interpreter at an address; reads a new one. NULL: unreadable. */
static struct python_interpreter *take_interpreter(struct ts_python_reader *python,
						   uint64_t address)
{
	struct python_interpreter *interpreter;

	for (size_t i = 0; i < python->interpreter_count; i++)
		if (python->interpreters[i].address == address)
			return &python->interpreters[i];
	if (python->interpreter_count >= MAX_INTERPRETERS ||
	    ts_grow_array((void **)&python->interpreters, &python->interpreter_capacity,
			  python->interpreter_count + 1, sizeof(*python->interpreters)))
		return NULL;
	interpreter = &python->interpreters[python->interpreter_count];
	memset(interpreter, 0, sizeof(*interpreter));
	interpreter->address = address;
	if (!read_interpreter(python, interpreter)) {
		free(interpreter->window);
		return NULL;
	}
	python->interpreter_count++;
	return interpreter;
}

static void drop_interpreters(struct ts_python_reader *python)
{
	size_t kept = 0;

	for (size_t i = 0; i < python->interpreter_count; i++) {
		if (python->interpreters[i].seen == python->number)
			python->interpreters[kept++] = python->interpreters[i];
		else
			free(python->interpreters[i].window);
	}
	python->interpreter_count = kept;
}

/* ---- lists ---- */

/* The thread at an address: usually the next one of the last sweep. */
static struct python_thread *find_thread(struct ts_python_reader *python, uint64_t address,
					 size_t *cursor)
{
	for (size_t i = 0; i < python->thread_count; i++) {
		size_t at = (*cursor + i) % python->thread_count;

		if (python->threads[at]->stack.thread == address) {
			*cursor = at + 1;
			return python->threads[at];
		}
	}
	return NULL;
}

static struct python_thread *new_thread(struct ts_python_reader *python, uint64_t address)
{
	struct python_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->stack.thread = address;
	thread->stack.hot = 1;
	thread->kernel_fd = -1;
	if (!ts_python_memory_read(&python->memory, address, thread->stack.head,
				   python->runtime_info.layout.thread.bytes)) {
		ts_python_thread_free(thread);
		return NULL;
	}
	return thread;
}

/* A thread of a list. False: the list cannot be followed further. */
static bool list_thread(struct ts_python_reader *python, struct python_interpreter *interpreter,
			uint64_t address, size_t *cursor, bool *ret_new, uint64_t *ret_next)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	struct python_thread *thread = find_thread(python, address, cursor);
	bool is_new = !thread;

	if (is_new)
		thread = new_thread(python, address);
	if (!thread)
		return false;
	if (!is_new && !thread->stack.is_read &&
	    !ts_python_memory_read(&python->memory, address, thread->stack.head,
				   layout->thread.bytes))
		return false;
	if (thread->seen == python->number || /* a circle */
	    ts_python_word_of(thread->stack.head, layout->thread.interpreter) !=
		    interpreter->address ||
	    ts_grow_array((void **)&python->listed, &python->listed_capacity,
			  python->listed_count + 1, sizeof(struct python_thread *))) {
		if (is_new)
			ts_python_thread_free(thread);
		return false;
	}
	*ret_new |= is_new;
	*ret_next = ts_python_word_of(thread->stack.head, layout->thread.next);
	thread->seen = python->number;
	thread->interpreter = interpreter->address;
	thread->interpreter_id = interpreter->id;
	python->listed[python->listed_count++] = thread;
	return true;
}

static void list_threads(struct ts_python_reader *python, struct python_interpreter *interpreter,
			 size_t *cursor, bool *ret_new, int64_t now_ns)
{
	uint64_t at = window_word(python, interpreter,
				  python->runtime_info.layout.interpreter.threads_head);

	while (at && python->listed_count < MAX_THREADS) {
		uint64_t next;

		if (!list_thread(python, interpreter, at, cursor, ret_new, &next))
			break;
		ts_python_thread_identify(python, python->listed[python->listed_count - 1], !next,
					  now_ns);
		at = next;
	}
}

/* Listed threads are the current ones; the others have exited. */
static void take_listed(struct ts_python_reader *python)
{
	struct python_thread **before = python->threads;
	size_t count = python->thread_count, capacity = python->thread_capacity;

	for (size_t i = 0; i < count; i++)
		if (before[i]->seen != python->number)
			ts_python_thread_free(before[i]);
	python->threads = python->listed;
	python->thread_count = python->listed_count;
	python->thread_capacity = python->listed_capacity;
	python->listed = before;
	python->listed_capacity = capacity;
	python->listed_count = 0;
}

/* Drops all but the main thread. */
static void keep_main(struct ts_python_reader *python)
{
	size_t kept = 0;

	for (size_t i = 0; i < python->thread_count; i++) {
		if (python->threads[i]->is_main && !kept)
			python->threads[kept++] = python->threads[i];
		else
			ts_python_thread_free(python->threads[i]);
	}
	python->thread_count = kept;
}

/* Whether the requested thread is there and need not be searched. */
static bool has_main(const struct ts_python_reader *python, int64_t now_ns)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	const struct python_thread *thread;

	if (!(python->flags & TS_PYTHON_MAIN_ONLY) || python->thread_count != 1 ||
	    now_ns - python->listed_ns > RELIST_NS)
		return false;
	thread = python->threads[0];
	return thread->stack.is_read &&
	       ts_python_word_of(thread->stack.head, layout->thread.interpreter) ==
		       thread->interpreter &&
	       ts_python_word_of(thread->stack.head, layout->thread.thread_id) == thread->thread_id;
}

/* While this sum is unchanged no code object was destroyed: 3.14 on. */
static void count_ended_codes(struct ts_python_reader *python)
{
	uint64_t generation = 0;

	if (python->runtime_info.layout.interpreter.code_generation == TS_PYTHON_NONE_32)
		return;
	for (size_t i = 0; i < python->interpreter_count; i++)
		generation += python->interpreters[i].generation;
	python->codes.generation = generation + 1;
}

/* Follows all lists in the copies. *ret_new: there is a new thread. */
static void follow_lists(struct ts_python_reader *python, bool *ret_new, int64_t now_ns)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	uint64_t at = ts_python_word_of(python->runtime_copy,
					layout->runtime.interpreters_head - python->runtime_start);
	size_t cursor = 0, steps = 0;

	*ret_new = false;
	count_ended_codes(python);
	if (has_main(python, now_ns))
		return;
	python->listed_ns = now_ns;
	while (at && steps++ < MAX_INTERPRETERS) {
		struct python_interpreter *interpreter = take_interpreter(python, at);

		if (!interpreter || interpreter->seen == python->number)
			break;
		interpreter->seen = python->number;
		if (!interpreter->modules || !interpreter->gil)
			complete_interpreter(python, interpreter);
		list_threads(python, interpreter, &cursor, ret_new, now_ns);
		at = window_word(python, interpreter, layout->interpreter.next);
	}
	drop_interpreters(python);
	take_listed(python);
	if (python->flags & TS_PYTHON_MAIN_ONLY)
		keep_main(python);
}

/* ---- stacks ---- */

/* One stack alone, in one read. */
static int read_stack(struct ts_python_reader *python, struct python_stack *stack,
		      struct ts_error *err)
{
	int status;

	python->range_count = 0;
	if (ts_python_stack_plan(python, stack, true))
		return ts_error_set(err, TS_ENOMEM, "no memory for a stack");
	status = read_ranges(python, err);
	stack->is_read = !status && !python->failed_count;
	return status;
}

/*
 * Unchanged outermost frames: already known. *ret_shown: how many of them are shown. Usually none
 * of this is in the caches any more, so touching little matters.
 */
static uint32_t count_kept(const struct python_thread *thread, uint32_t *ret_shown)
{
	const struct python_stack *stack = &thread->stack;
	uint32_t most = stack->has_last ? TS_MIN(stack->depth, stack->last_depth) : 0, kept = 0;

	*ret_shown = 0;
	while (kept < most) {
		struct ts_python_raw_frame *now = &stack->raw[stack->depth - 1 - kept];
		const struct ts_python_raw_frame *then = &stack->last[stack->last_depth - 1 - kept];

		if (now->address != then->address || now->code != then->code ||
		    now->instruction != then->instruction || now->code_index != then->code_index)
			break;
		now->flags |= then->flags & TS_PYTHON_RAW_HIDDEN;
		*ret_shown += !(then->flags & TS_PYTHON_RAW_HIDDEN);
		kept++;
	}
	*ret_shown = TS_MIN(*ret_shown, thread->depth);
	return kept;
}

/* Names and lines. False: some frame does not belong to its code. */
static bool resolve(struct ts_python_reader *python, struct python_thread *thread)
{
	const struct python_stack *stack = &thread->stack;
	uint32_t shown = 0, kept_shown, moved = stack->depth - count_kept(thread, &kept_shown);

	for (uint32_t i = 0; i < moved; i++) {
		struct ts_python_raw_frame *raw = &stack->raw[i];
		struct ts_python_frame *frame = &thread->frames[shown];
		struct python_code_at *code = ts_python_code_at(python, raw->code);
		int64_t offset;

		if (!code || !ts_python_code_has(python, code, raw, &offset))
			return false;
		if (code->is_hidden) {
			raw->flags |= TS_PYTHON_RAW_HIDDEN;
			continue;
		}
		frame->code = code->code;
		frame->line = ts_python_code_line(&python->runtime_info.layout, code, offset);
		frame->flags = raw->flags & TS_PYTHON_FRAME_ENTRY;
		frame->address = raw->address;
		shown++;
	}
	for (uint32_t i = 0; i < kept_shown; i++)
		thread->frames[shown + i] = thread->last_frames[thread->depth - kept_shown + i];
	thread->new_depth = shown + kept_shown;
	thread->kept = kept_shown;
	return true;
}

/* Outermost frames that equal those of the last time. */
static uint32_t count_same(const struct python_thread *thread)
{
	uint32_t most = TS_MIN(thread->depth, thread->new_depth), same = thread->kept;

	while (same < most) {
		const struct ts_python_frame *a = &thread->frames[thread->new_depth - 1 - same];
		const struct ts_python_frame *b = &thread->last_frames[thread->depth - 1 - same];

		if (a->code != b->code || a->line != b->line)
			break;
		same++;
	}
	return same;
}

/* Schedules the codes of frames that are new. */
static int note_codes(struct ts_python_reader *python, struct python_thread *thread, int64_t now_ns)
{
	const struct python_stack *stack = &thread->stack;
	uint32_t kept_shown, moved = stack->depth - count_kept(thread, &kept_shown);

	if (ts_grow_array((void **)&thread->frames, &thread->frame_capacity, stack->depth + 1u,
			  sizeof(*thread->frames)))
		return TS_ENOMEM;
	for (uint32_t i = 0; i < moved; i++) {
		struct python_code_at *code = ts_python_code_at(python, stack->raw[i].code);

		if (!code || ts_python_code_note(python, code, now_ns))
			return TS_ENOMEM;
	}
	return TS_OK;
}

static void accept(struct ts_python_reader *python, struct python_thread *thread, bool is_accepted)
{
	bool has_moved = thread->status != STACK_SAME;

	thread->had_last = thread->stack.has_last;
	thread->is_accepted = is_accepted;
	if (is_accepted) {
		python->counts.stacks++;
		thread->was_cut = thread->is_cut;
		thread->is_cut = thread->stack.left_out != 0;
		if (has_moved) {
			struct ts_python_frame *frames = thread->last_frames;
			size_t capacity = thread->last_frame_capacity;

			thread->same = count_same(thread);
			thread->depth = thread->new_depth;
			thread->last_frames = thread->frames;
			thread->last_frame_capacity = thread->frame_capacity;
			thread->frames = frames;
			thread->frame_capacity = capacity;
		} else {
			thread->same = thread->depth;
		}
	} else {
		python->counts.rejected++;
	}
	ts_python_stack_settle(&thread->stack, is_accepted, has_moved);
}

/* Reads a stack again, alone, until it validates or the attempts are used up. */
static int retry(struct ts_python_reader *python, struct python_thread *thread, int64_t now_ns,
		 struct ts_error *err)
{
	unsigned int attempts = 0;

	while (thread->status > STACK_SAME && attempts++ < MAX_ATTEMPTS) {
		int64_t before_ns, after_ns;
		int status;

		if (thread->status == STACK_MISSED) {
			python->counts.speculations_missed++;
			if (ts_python_stack_discover(python, &thread->stack))
				break;
		} else {
			python->counts.retried++;
		}
		before_ns = ts_clock_monotonic_ns();
		status = read_stack(python, &thread->stack, err);
		if (status)
			return status;
		after_ns = ts_clock_monotonic_ns();
		if (after_ns - before_ns > LATE_NS)
			continue; /* its time would be uncertain */
		if (after_ns - now_ns > LATE_NS)
			thread->read_ns = after_ns;
		thread->status = ts_python_stack_walk(python, &thread->stack);
		if (thread->status)
			continue;
		if (note_codes(python, thread, now_ns))
			return ts_error_set(err, TS_ENOMEM, "no memory for a stack");
		ts_python_codes_check(python, now_ns);
		if (!resolve(python, thread))
			thread->status = STACK_INVALID;
	}
	accept(python, thread, thread->status <= STACK_SAME);
	return TS_OK;
}

/* All stacks of the one read, which was made at `time_ns`. */
static int take_stacks(struct ts_python_reader *python, int64_t time_ns, int64_t now_ns,
		       struct ts_error *err)
{
	for (size_t i = 0; i < python->thread_count; i++) {
		struct python_thread *thread = python->threads[i];

		thread->read_ns = time_ns;
		thread->stack.pending_depth = 0;
		thread->status = ts_python_stack_walk(python, &thread->stack);
		if (thread->status == STACK_OK && note_codes(python, thread, now_ns))
			return ts_error_set(err, TS_ENOMEM, "no memory for a sweep");
	}
	if (ts_python_codes_check(python, now_ns) == TS_ENOMEM)
		return ts_error_set(err, TS_ENOMEM, "no memory for a sweep");
	for (size_t i = 0; i < python->thread_count; i++) {
		struct python_thread *thread = python->threads[i];

		if (thread->status == STACK_OK && !resolve(python, thread))
			thread->status = STACK_INVALID;
		if (thread->status <= STACK_SAME)
			accept(python, thread, true);
	}
	for (size_t i = 0; i < python->thread_count; i++) {
		int status = python->threads[i]->status > STACK_SAME
				     ? retry(python, python->threads[i], now_ns, err)
				     : TS_OK;

		if (status)
			return status;
	}
	return TS_OK;
}

/* ---- what threads do ---- */

static const struct python_interpreter *interpreter_of(const struct ts_python_reader *python,
						       const struct python_thread *thread)
{
	for (size_t i = 0; i < python->interpreter_count; i++)
		if (python->interpreters[i].address == thread->interpreter)
			return &python->interpreters[i];
	return NULL;
}

static bool has_lock(const struct ts_python_reader *python,
		     const struct python_interpreter *interpreter, const struct python_stack *stack)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	const uint8_t *words = (const uint8_t *)interpreter->gil_words;

	if (layout->thread.attached != TS_PYTHON_NONE)
		return ts_python_half_of(stack->head, layout->thread.attached) == 1;
	if (layout->thread.holds_gil != TS_PYTHON_NONE)
		return ts_python_half_of(stack->head, layout->thread.holds_gil) != 0;
	if (layout->runtime.current_thread != TS_PYTHON_NONE)
		return ts_python_word_of(python->runtime_copy,
					 layout->runtime.current_thread - python->runtime_start) ==
		       stack->thread;
	return interpreter->gil &&
	       ts_python_half_of(words, layout->gil.locked - python->gil_start) == 1 &&
	       ts_python_word_of(words, layout->gil.last_holder - python->gil_start) ==
		       stack->thread;
}

static bool is_collecting(const struct ts_python_reader *python,
			  const struct python_interpreter *interpreter)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;

	if (layout->runtime.collecting != TS_PYTHON_NONE)
		return ts_python_half_of(python->runtime_copy,
					 layout->runtime.collecting - python->runtime_start);
	return layout->interpreter.collecting != TS_PYTHON_NONE_32 &&
	       (uint32_t)window_word(python, interpreter, layout->interpreter.collecting);
}

/* Between two close sweeps: it runs, no need to ask the kernel. */
static bool has_just_moved(const struct ts_python_reader *python,
			   const struct python_thread *thread, int64_t now_ns)
{
	return thread->status != STACK_SAME && thread->had_last &&
	       now_ns - python->last_sweep_ns < CLOSE_NS;
}

static uint32_t state_of(struct ts_python_reader *python, struct python_thread *thread,
			 int64_t now_ns)
{
	const struct python_interpreter *interpreter = interpreter_of(python, thread);
	const struct python_stack *stack = &thread->stack;
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	uint32_t state = 0;

	if (!interpreter)
		return 0;
	if (has_lock(python, interpreter, stack))
		state |= TS_PYTHON_HAS_GIL;
	else if (layout->thread.gil_requested != TS_PYTHON_NONE &&
		 ts_python_half_of(stack->head, layout->thread.gil_requested))
		state |= TS_PYTHON_WAITS_GIL;
	if (state & TS_PYTHON_HAS_GIL && is_collecting(python, interpreter))
		state |= TS_PYTHON_COLLECTS;
	if (python->flags & TS_PYTHON_KERNEL) {
		/* The GIL holder runs. */
		ts_python_thread_query_kernel(python, thread,
					      state & TS_PYTHON_HAS_GIL ||
						      has_just_moved(python, thread, now_ns),
					      now_ns);
		state |= thread->runs ? TS_PYTHON_RUNS : 0;
	}
	return state;
}

static void name_task(struct ts_python_reader *python, struct python_thread *thread)
{
	const struct python_interpreter *interpreter = interpreter_of(python, thread);

	if (!(python->flags & TS_PYTHON_TASKS) || thread->status == STACK_SAME)
		return;
	thread->task[0] = '\0';
	if (thread->depth && interpreter)
		ts_python_task_name(&python->view, interpreter->modules, thread->stack.thread,
				    thread->task, sizeof(thread->task));
}

/* Frames that are left out are one more outermost frame. */
static void show_rest(struct ts_python_reader *python, const struct python_thread *thread,
		      struct ts_python_thread *shown)
{
	struct ts_python_code *rest = thread->is_cut ? ts_python_code_of_rest(python) : NULL;

	if (!rest)
		return;
	shown->frames[shown->depth++] = (struct ts_python_frame){ .code = rest };
	shown->same = thread->was_cut ? shown->same + 1 : 0;
}

static void show(struct ts_python_reader *python, struct python_thread *thread,
		 struct ts_python_thread *ret_shown, int64_t now_ns)
{
	name_task(python, thread);
	*ret_shown = (struct ts_python_thread){
		.tid = thread->tid,
		.thread_id = thread->thread_id,
		.interpreter = thread->interpreter_id,
		.name = thread->name,
		.is_main = thread->is_main,
		.is_rejected = !thread->is_accepted,
		.time_ns = thread->read_ns,
		.state = state_of(python, thread, now_ns),
		.task = thread->task,
		.frames = thread->is_accepted ? thread->last_frames : NULL,
		.depth = thread->is_accepted ? thread->depth : 0,
		.same = thread->is_accepted ? thread->same : 0,
	};
	if (thread->is_accepted)
		show_rest(python, thread, ret_shown);
}

/* ---- all of it ---- */

static int plan(struct ts_python_reader *python)
{
	python->range_count = 0;
	python->number++;
	if (ts_python_add_range(python, python->runtime_info.runtime + python->runtime_start,
				python->runtime_copy, python->runtime_bytes))
		return TS_ENOMEM;
	for (size_t i = 0; i < python->interpreter_count; i++)
		if (plan_interpreter(python, &python->interpreters[i]))
			return TS_ENOMEM;
	for (size_t i = 0; i < python->thread_count; i++)
		if (ts_python_stack_plan(python, &python->threads[i]->stack,
					 python->threads[i]->stack.hot != 0))
			return TS_ENOMEM;
	return TS_OK;
}

static int replaced_error(const struct ts_python_reader *python, struct ts_error *err)
{
	return ts_error_set(err, TS_ENOTFOUND, "process %d has executed another program",
			    (int)python->pid);
}

/* Something else of the new program may be mapped where the runtime was. */
static bool has_executed(const struct ts_python_reader *python)
{
	uint64_t stack = ts_process_stack(python->pid);

	return stack && stack != python->process_stack;
}

/* Which threads and interpreters could be read. */
static int mark_read(struct ts_python_reader *python, struct ts_error *err)
{
	if (!are_complete(python, 0, 1))
		return replaced_error(python, err);
	for (size_t i = 0; i < python->interpreter_count; i++) {
		struct python_interpreter *interpreter = &python->interpreters[i];

		/* Found again through the list, if it still exists. */
		if (!are_complete(python, interpreter->first_range, interpreter->range_count))
			interpreter->address = 0;
	}
	for (size_t i = 0; i < python->thread_count; i++) {
		struct python_stack *stack = &python->threads[i]->stack;

		stack->is_read = are_complete(python, stack->first_range, stack->range_count);
	}
	return TS_OK;
}

/* Much slower than the average: the reader did not run for a while. */
static bool was_interrupted(const struct ts_python_reader *python, int64_t took_ns)
{
	const struct ts_python_reader_counts *counts = &python->counts;

	return took_ns > LATE_NS && took_ns * (int64_t)(counts->sweeps + 1) > 4 * counts->read_ns;
}

/* The one read of a sweep; again if its time would be uncertain. */
static int read_all(struct ts_python_reader *python, int64_t *ret_start_ns, int64_t *ret_end_ns,
		    struct ts_error *err)
{
	unsigned int attempts = 0;
	int status;

	do {
		*ret_start_ns = ts_clock_monotonic_ns();
		if (plan(python))
			return ts_error_set(err, TS_ENOMEM, "no memory for a sweep");
		status = read_ranges(python, err);
		if (!status)
			status = mark_read(python, err);
		if (status)
			return status;
		*ret_end_ns = ts_clock_monotonic_ns();
	} while (was_interrupted(python, *ret_end_ns - *ret_start_ns) && ++attempts < MAX_READS);
	return TS_OK;
}

int ts_python_sweep(struct ts_python_reader *python, struct ts_python_sweep *ret_sweep,
		    struct ts_error *err)
{
	int64_t start = 0, middle = 0;
	bool has_new;
	int status;

	status = read_all(python, &start, &middle, err);
	if (status)
		return status;
	ret_sweep->time_ns = start + (middle - start) / 2;
	follow_lists(python, &has_new, middle);
	if (python->is_replaced || (!python->thread_count && has_executed(python)))
		return replaced_error(python, err);
	status = take_stacks(python, ret_sweep->time_ns, middle, err);
	if (status)
		return status;
	ts_python_threads_name(python, middle, has_new);
	if (ts_grow_array((void **)&python->shown, &python->shown_capacity, python->thread_count,
			  sizeof(*python->shown)))
		return ts_error_set(err, TS_ENOMEM, "no memory for a sweep");
	ret_sweep->threads = python->shown;
	ret_sweep->count = 0;
	for (size_t i = 0; i < python->thread_count; i++)
		if (!python->threads[i]->is_absent)
			show(python, python->threads[i], &python->shown[ret_sweep->count++],
			     middle);
	python->last_sweep_ns = middle;
	python->counts.sweeps++;
	python->counts.read_ns += middle - start;
	python->counts.resolve_ns += ts_clock_monotonic_ns() - middle;
	return TS_OK;
}

void ts_python_sweep_release(struct ts_python_reader *python)
{
	for (size_t i = 0; i < python->thread_count; i++)
		ts_python_thread_free(python->threads[i]);
	for (size_t i = 0; i < python->interpreter_count; i++)
		free(python->interpreters[i].window);
	free(python->interpreters);
	free(python->threads);
	free(python->listed);
	free(python->shown);
	free(python->ranges);
	free(python->failed);
}
