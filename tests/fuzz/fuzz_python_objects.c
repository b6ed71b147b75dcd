/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the memory of a Python process, of any version: reads strings, values, dictionaries,
 * attributes, code objects, names of threads, tasks and local variables from it. Other addresses
 * are unreadable, or, if the input says so, wrap around into the memory, so that everything is
 * connected with everything. Each read must end, within its limits, with valid UTF-8.
 *
 * Bytes: version; flags; offsets of the object and of a second one, in words (two bytes each); two
 * unused bytes; the memory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "python/local/python_objects_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY_AT UINT64_C(0x7f0000000000)
#define HEAD_BYTES 8
#define MOST_READS 2000000u
#define WRAPPED 1
#define TAGGED 2
#define FREE_THREADED 4

struct process {
	const uint8_t *bytes;
	size_t size;
	bool is_wrapped;
	uint64_t reads;
	struct ts_python_memory memory;
	struct ts_python_layout layout;
	struct ts_python_process_view view;
};

static bool read_process(void *context, uint64_t address, void *copy, size_t bytes)
{
	struct process *process = context;
	uint64_t at = address - MEMORY_AT;

	if (process->reads++ > MOST_READS)
		abort();
	if (process->is_wrapped) {
		for (size_t i = 0; i < bytes; i++)
			((uint8_t *)copy)[i] = process->bytes[(at + i) % process->size];
		return true;
	}
	if (at > process->size || bytes > process->size - at)
		return false;
	memcpy(copy, process->bytes + at, bytes);
	return true;
}

static bool open_process(struct process *process, const uint8_t *data, size_t size)
{
	unsigned int minor = 8 + data[0] % 8;

	*process = (struct process){ .bytes = data + HEAD_BYTES,
				     .size = size - HEAD_BYTES,
				     .is_wrapped = data[1] & WRAPPED };
	process->memory.read = read_process;
	process->memory.context = process;
	process->view.memory = &process->memory;
	process->view.layout = &process->layout;
	/* Since 3.13 a process has its own offsets; sets what has changed since. */
	if (!ts_python_layout_of_version(&process->layout, minor < 12 ? minor : 12, false))
		return false;
	process->layout.minor = (uint8_t)minor;
	process->layout.is_free_threaded = data[1] & FREE_THREADED;
	process->layout.frame.locals_are_tagged = data[1] & TAGGED;
	return true;
}

static void check_text(const char *text, int bytes, size_t capacity)
{
	if (bytes >= (int)capacity ||
	    (bytes >= 0 && (text[bytes] != '\0' || !ts_utf8_valid(text, (size_t)bytes))))
		abort();
}

static bool count_pair(void *context, uint64_t key, uint64_t value)
{
	size_t *count = context;

	++*count;
	return key && value;
}

static void name_thread(void *context, uint64_t thread_id, const char *name, bool is_main,
			uint64_t native_id)
{
	(void)context, (void)thread_id, (void)is_main, (void)native_id;
	check_text(name, (int)strlen(name), 256);
}

static void read_objects(struct process *process, uint64_t object, uint64_t other)
{
	struct ts_python_process_view *view = &process->view;
	char text[200] = "";
	size_t count = 0;

	for (size_t capacity = 0; capacity < sizeof(text); capacity += 33)
		check_text(text, ts_python_read_text(view, object, text, capacity), capacity + 1);
	ts_python_dict_each(view, object, 100, count_pair, &count);
	if (count > 100)
		abort();
	ts_python_dict_find(view, object, "threading");
	ts_python_attribute(view, object, "_name");
	ts_python_type_name(view, object, text, sizeof(text));
	ts_python_thread_names(view, object, name_thread, NULL);
	for (int i = 0; i < 3; i++)
		check_text(text, ts_python_task_name(view, object, other, text, sizeof(text)),
			   sizeof(text));
}

static void read_values(struct process *process, uint64_t object, uint64_t other)
{
	struct ts_text text = { 0 };

	for (size_t limit = 0; limit < 300; limit += 97) {
		ts_text_clear(&text);
		if (ts_python_repr(&process->view, object, limit, &text) || text.length > limit ||
		    !ts_utf8_valid(text.data ? text.data : "", text.length))
			abort();
	}
	ts_text_clear(&text);
	if (ts_python_frame_locals(&process->view, object, other, 2000, &text) ||
	    text.length > 2000 || !ts_utf8_valid(text.data, text.length))
		abort();
	ts_text_release(&text);
}

static void read_code(struct process *process, uint64_t object)
{
	struct ts_python_code_identity identity;
	struct ts_python_code_text text;
	uint8_t copy[512], table[64];

	if (process->layout.code.bytes > sizeof(copy) ||
	    !ts_python_memory_read(&process->memory, object, copy, process->layout.code.bytes) ||
	    !ts_python_code_identify(&process->layout, object, 0, copy, &identity) ||
	    !ts_python_code_read(&process->view, &identity, &text, table, sizeof(table)))
		return;
	if (text.table_bytes > sizeof(table) || identity.first_line < 0)
		abort();
	check_text(text.name, (int)strlen(text.name), sizeof(text.name));
	check_text(text.file, (int)strlen(text.file), sizeof(text.file));
	ts_python_line(process->layout.lines, table, text.table_bytes, identity.first_line, 100);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct process process;
	uint64_t object, other;

	if (size <= HEAD_BYTES + 8 || !open_process(&process, data, size))
		return 0;
	object = MEMORY_AT + 8u * (data[2] | (uint64_t)data[3] << 8);
	other = MEMORY_AT + 8u * (data[4] | (uint64_t)data[5] << 8);
	read_objects(&process, object, other);
	read_values(&process, object, other);
	read_code(&process, object);
	for (int format = TS_PYTHON_LNOTAB; format <= TS_PYTHON_LOCATIONS; format++)
		if (ts_python_line((enum ts_python_lines)format, process.bytes, process.size, 1,
				   data[6]) < 0)
			abort();
	return 0;
}
