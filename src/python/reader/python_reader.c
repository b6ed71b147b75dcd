/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes the Python of a process. python_reader_internal.h says what each file does. */
#include <stdlib.h>

#include "base/process.h"
#include "base/text.h"
#include "python/reader/python_reader_internal.h"

/* The range of a structure that covers some members; those of 0xffff... are missing. */
static void span(const uint32_t *offsets, const uint32_t *sizes, size_t count, uint32_t *ret_start,
		 uint32_t *ret_bytes)
{
	uint32_t start = UINT32_MAX, end = 0;

	for (size_t i = 0; i < count; i++) {
		if (offsets[i] == TS_PYTHON_NONE_32)
			continue;
		start = TS_MIN(start, offsets[i]);
		end = TS_MAX(end, offsets[i] + sizes[i]);
	}
	*ret_start = end ? start : 0;
	*ret_bytes = end ? end - start : 0;
}

static uint32_t wide(uint16_t offset)
{
	return offset == TS_PYTHON_NONE ? TS_PYTHON_NONE_32 : offset;
}

/* What is read in each sweep besides the threads. */
static void set_windows(struct ts_python_reader *python)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	const uint32_t runtime[] = { wide(layout->runtime.interpreters_head),
				     wide(layout->runtime.current_thread),
				     wide(layout->runtime.collecting) };
	const uint32_t interpreter[] = { layout->interpreter.next, layout->interpreter.threads_head,
					 layout->interpreter.collecting };
	const uint32_t gil[] = { layout->gil.last_holder, layout->gil.locked };
	const uint32_t sizes[] = { 8, 8, 8 };

	span(runtime, sizes, TS_ARRAY_SIZE(runtime), &python->runtime_start,
	     &python->runtime_bytes);
	span(interpreter, sizes, TS_ARRAY_SIZE(interpreter), &python->window_start,
	     &python->window_bytes);
	span(gil, sizes, TS_ARRAY_SIZE(gil), &python->gil_start, &python->gil_bytes);
	if (layout->interpreter.gil == TS_PYTHON_NONE_32 ||
	    python->gil_bytes > sizeof(python->interpreters->gil_words) ||
	    layout->is_free_threaded || layout->thread.holds_gil != TS_PYTHON_NONE)
		python->gil_bytes = 0;
}

int ts_python_reader_open(struct ts_python_reader **ret_python, pid_t pid, uint64_t start_time,
			  unsigned int flags, struct ts_error *err)
{
	TS_AUTO(ts_python_reader) python = calloc(1, sizeof(*python));
	uint64_t now = 0;
	bool exists = ts_process_exists(pid, &now);
	int status;

	if (!python)
		return ts_error_set(err, TS_ENOMEM, "no memory to read process %d", (int)pid);
	if (!exists && !start_time)
		return ts_error_set(err, TS_ENOTFOUND, "no such process: %d", (int)pid);
	if (!exists || (start_time && now != start_time))
		return ts_error_set(err, TS_ENOTFOUND, "process %d has ended", (int)pid);
	python->pid = pid;
	python->start_time = now;
	python->flags = flags;
	python->memory.pid = pid;
	python->process_stack = ts_process_stack(pid);
	status = ts_python_find(&python->memory, pid, &python->runtime_info, err);
	if (status)
		return status;
	if (python->runtime_info.layout.thread.bytes > MAX_HEAD)
		return ts_error_set(err, TS_EVERSION,
				    "process %d runs a Python with an unknown thread layout",
				    (int)pid);
	python->view.memory = &python->memory;
	python->view.layout = &python->runtime_info.layout;
	python->view.code_type = python->runtime_info.code_type;
	python->inner_pid = ts_process_inner_pid(pid);
	python->is_inside = python->inner_pid != pid;
	set_windows(python);
	python->runtime_copy = malloc(python->runtime_bytes);
	if (!python->runtime_copy)
		return ts_error_set(err, TS_ENOMEM, "no memory to read process %d", (int)pid);
	*ret_python = TS_STEAL(python);
	return TS_OK;
}

void ts_python_reader_close(struct ts_python_reader *python)
{
	if (!python)
		return;
	ts_python_sweep_release(python);
	ts_python_codes_release(&python->codes);
	ts_map_release(&python->inner_tids);
	ts_map_release(&python->sites);
	ts_pairmap_release(&python->calls);
	free(python->runtime_copy);
	free(python);
}

const struct ts_python_info *ts_python_info(const struct ts_python_reader *python)
{
	return &python->runtime_info.about;
}

void ts_python_reader_counts(const struct ts_python_reader *python,
			     struct ts_python_reader_counts *ret_counts)
{
	*ret_counts = python->counts;
	ret_counts->system_calls = python->memory.system_calls;
	ret_counts->bytes = python->memory.bytes;
}

int ts_python_locals(struct ts_python_reader *python, const struct ts_python_frame *frame,
		     size_t limit, struct ts_text *out)
{
	const struct ts_python_layout *layout = &python->runtime_info.layout;
	const struct python_code_at *at;
	uint64_t code, value;

	if (!ts_python_memory_read_pointer(&python->memory,
					   frame->address + layout->frame.executable, &code))
		code = 0;
	if (layout->frame.executable_is_tagged)
		code &= ~UINT64_C(7);
	at = ts_map_get(&python->codes.at, code, &value)
		     ? (const struct python_code_at *)(uintptr_t)value
		     : NULL;
	/* The frame has returned, and another one may be there. */
	if (!at || at->code != frame->code) {
		ts_text_append_str(out, "{}");
		return ts_text_status(out);
	}
	return ts_python_frame_locals(&python->view, frame->address, code, limit, out);
}
