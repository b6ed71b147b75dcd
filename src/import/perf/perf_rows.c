/* SPDX-License-Identifier: Apache-2.0 */
/* Events of perf script as samples and marks, and their threads. */
#include "import/perf/perf_import.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* For threads without a known process: not a valid pid. */
#define NO_PID INT64_MIN
#define NO_TID (INT64_MIN + 1)

int ts_perf_rows_init(struct ts_perf *p)
{
	static const char *const names[TS_PERF_KEYS] = {
		[TS_PERF_KEY_PERIOD] = "period",    [TS_PERF_KEY_ADDRESS] = "addr",
		[TS_PERF_KEY_BRANCHES] = "brstack", [TS_PERF_KEY_REGISTERS] = "regs",
		[TS_PERF_KEY_CPU] = "cpu",          [TS_PERF_KEY_TEXT] = "text",
	};

	for (size_t i = 0; i < TS_PERF_KEYS; i++)
		p->keys[i] = ts_import_string(p->import, names[i], strlen(names[i]));
	ts_strmap_init(&p->event_names, 0);
	ts_pairmap_init(&p->thread_keys);
	ts_map_init(&p->tid_pids);
	ts_map_init(&p->pid_execs);
	ts_map_init(&p->sourced);
	return TS_OK;
}

void ts_perf_rows_release(struct ts_perf *p)
{
	ts_strmap_release(&p->event_names);
	ts_pairmap_release(&p->thread_keys);
	ts_map_release(&p->tid_pids);
	ts_map_release(&p->pid_execs);
	ts_map_release(&p->sourced);
	ts_frame_list_release(&p->stack);
	free(p->events);
	free(p->threads);
}

/* ---- threads ---- */

int64_t ts_perf_process(struct ts_perf *p, int64_t pid)
{
	int64_t process = ts_entities_process_of(&p->entities, p->host, (uint64_t)pid,
						 pid == NO_PID ? TS_ABSENT : pid);

	if (!process)
		p->rc = TS_ENOMEM;
	return process;
}

static struct ts_perf_thread *find_thread(struct ts_perf *p, int64_t pid, int64_t tid, uint64_t key)
{
	bool is_new = false;
	uint64_t *index = ts_pairmap_insert(&p->thread_keys, (uint64_t)pid, key, &is_new);
	struct ts_perf_thread *thread;

	if (!index || (is_new && ts_grow_array((void **)&p->threads, &p->thread_capacity,
					       p->thread_count + 1, sizeof(*p->threads)))) {
		p->rc = TS_ENOMEM;
		return NULL;
	}
	if (!is_new)
		return &p->threads[*index];
	*index = p->thread_count;
	thread = &p->threads[p->thread_count++];
	*thread = (struct ts_perf_thread){ .is_main = pid == tid };
	thread->process = ts_perf_process(p, pid);
	if (thread->process)
		thread->id = ts_entities_thread(&p->entities, thread->process, key,
						tid == NO_TID ? TS_ABSENT : tid);
	if (!thread->id)
		p->rc = TS_ENOMEM;
	return thread;
}

/* The last name counts; a process is named after its main thread, unless an exec named it. */
static void name_thread(struct ts_perf *p, struct ts_perf_thread *thread, int64_t pid,
			uint32_t name, bool is_exec)
{
	uint64_t reported;

	if (!thread->id || !name || (thread->comm == name && !is_exec))
		return;
	thread->comm = name;
	ts_entities_thread_row(&p->entities, thread->id)->name = name;
	if (is_exec && ts_map_put(&p->pid_execs, (uint64_t)pid, 1))
		p->rc = TS_ENOMEM;
	if (thread->is_main && (is_exec || !ts_map_get(&p->pid_execs, (uint64_t)pid, &reported)))
		ts_entities_process_row(&p->entities, thread->process)->name = name;
}

void ts_perf_name_thread(struct ts_perf *p, int64_t pid, int64_t tid, uint32_t name, bool is_exec)
{
	struct ts_perf_thread *thread;

	if (ts_map_put(&p->tid_pids, (uint64_t)tid, (uint64_t)pid))
		p->rc = TS_ENOMEM;
	thread = find_thread(p, pid, tid, (uint64_t)tid);
	if (thread)
		name_thread(p, thread, pid, name, is_exec);
}

int64_t ts_perf_thread(struct ts_perf *p, const struct ts_perf_head *head)
{
	uint32_t name = ts_import_string(p->import, head->comm.text, head->comm.length);
	int64_t pid = head->has_pid ? head->pid : NO_PID;
	struct ts_perf_thread *thread;
	uint64_t reported;

	if (!head->has_tid && !head->comm.length)
		return 0;
	if (!head->has_pid && head->has_tid &&
	    ts_map_get(&p->tid_pids, (uint64_t)head->tid, &reported))
		pid = (int64_t)reported;
	if (head->has_tid)
		thread = find_thread(p, pid, head->tid, (uint64_t)head->tid);
	else
		thread = find_thread(p, pid, NO_TID, (uint64_t)name << 32 | UINT32_MAX);
	if (!thread)
		return 0;
	name_thread(p, thread, pid, name, false);
	return thread->id;
}

/* ---- events ---- */

static bool is_modifiers(struct ts_perf_text text)
{
	for (size_t i = 0; i < text.length; i++)
		if (!strchr("ukhpPGHSDIWebR", text.text[i]))
			return false;
	return text.length > 0;
}

/* "sched:sched_switch", but not "cycles:u", "cpu/event=1/u" or "mem:0x1000:rw". */
static bool split_tracepoint(struct ts_perf_text name, struct ts_perf_text *ret_system)
{
	const char *colon = memchr(name.text, ':', name.length);
	size_t before = colon ? (size_t)(colon - name.text) : 0;

	if (!before || memchr(name.text, '/', before) || ts_perf_starts(name, "mem:") ||
	    is_modifiers((struct ts_perf_text){ colon + 1, name.length - before - 1 }))
		return false;
	*ret_system = (struct ts_perf_text){ name.text, before };
	return true;
}

/* With or without modifiers. */
static bool is_event(struct ts_perf_text name, const char *is)
{
	size_t length = strlen(is);

	return ts_perf_starts(name, is) && (name.length == length || name.text[length] == ':');
}

static const struct ts_perf_event *find_event(struct ts_perf *p, struct ts_perf_text name)
{
	static const struct ts_perf_event none;
	struct ts_perf_event *event;
	struct ts_perf_text system;
	bool is_new = false;
	uint32_t index;

	if (!name.length)
		return &none;
	index = ts_strmap_intern(&p->event_names, name.text, name.length, &is_new);
	if (index == TS_STRMAP_NONE ||
	    (is_new && ts_grow_array((void **)&p->events, &p->event_capacity, (size_t)index + 1,
				     sizeof(*p->events)))) {
		p->rc = TS_ENOMEM;
		return &none;
	}
	event = &p->events[index];
	if (!is_new)
		return event;
	*event = (struct ts_perf_event){ .name = ts_import_string(
						 p->import, name.text,
						 TS_MIN(name.length, TS_IMPORT_MAX_STRING)) };
	event->is_timed = is_event(name, "cpu-clock") || is_event(name, "task-clock");
	event->is_tracepoint = split_tracepoint(name, &system);
	if (event->is_tracepoint)
		event->category = ts_import_string(p->import, system.text, system.length);
	return event;
}

/* ---- arguments ---- */

static void add_text(struct ts_perf *p, uint32_t key, struct ts_perf_text text)
{
	text.length = TS_MIN(text.length, TS_IMPORT_MAX_STRING);
	if (text.length)
		ts_row_args_add(&p->args, key, TS_ARG_STRING,
				ts_import_string(p->import, text.text, text.length));
}

static void add_value(struct ts_perf *p, struct ts_perf_text key, struct ts_perf_text value)
{
	uint32_t name = ts_import_string(p->import, key.text, key.length);
	int64_t number;

	if (value.length > 4 && !memcmp(value.text + value.length - 4, " ==>", 4))
		value.length -= 4;
	if (value.length > 1 && value.text[value.length - 1] == ',')
		value.length--;
	/* Numbers that would not round-trip stay text. */
	if (ts_perf_decimal(value, &number) && (value.length == 1 || value.text[0] != '0') &&
	    !(value.length > 1 && value.text[0] == '-' && value.text[1] == '0'))
		ts_row_args_add(&p->args, name, TS_ARG_INT, number);
	else
		ts_row_args_add(&p->args, name, TS_ARG_STRING,
				ts_import_string(p->import, value.text,
						 TS_MIN(value.length, TS_IMPORT_MAX_STRING)));
}

/* Length of the key of a "key=value" at this position; 0: none. */
static size_t key_length(struct ts_perf_text text)
{
	size_t i = 0;

	while (i < text.length && (text.text[i] == '_' || text.text[i] == '.' ||
				   (text.text[i] >= '0' && text.text[i] <= '9' && i > 0) ||
				   (text.text[i] >= 'a' && text.text[i] <= 'z') ||
				   (text.text[i] >= 'A' && text.text[i] <= 'Z')))
		i++;
	return i < text.length && text.text[i] == '=' ? i : 0;
}

/* "a=1 b=two words c=3": a value extends to the next key. */
static void add_fields(struct ts_perf *p, struct ts_perf_text text)
{
	size_t length = key_length(text);

	if (!length) {
		add_text(p, p->keys[TS_PERF_KEY_TEXT], text);
		return;
	}
	while (length) {
		struct ts_perf_text key = { text.text, length };
		struct ts_perf_text value = { text.text + length + 1, 0 };
		size_t left = text.length - length - 1, next = 0;

		while (value.length < left) {
			if (value.text[value.length] == ' ') {
				next = key_length((struct ts_perf_text){
					value.text + value.length + 1, left - value.length - 1 });
				if (next)
					break;
			}
			value.length++;
		}
		text = (struct ts_perf_text){ value.text + value.length + 1,
					      next ? left - value.length - 1 : 0 };
		length = next;
		value = ts_perf_trim(value.text, value.length);
		add_value(p, key, value);
	}
}

static void add_hex(struct ts_perf *p, uint32_t key, uint64_t value)
{
	char text[24];
	size_t at = sizeof(text);

	do {
		text[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	text[--at] = 'x';
	text[--at] = '0';
	add_text(p, key, (struct ts_perf_text){ text + at, sizeof(text) - at });
}

/* ---- an event ---- */

static void take_rest(struct ts_perf *p, struct ts_perf_text text)
{
	struct ts_perf_open *open = &p->open;
	struct ts_perf_rest rest;

	if (!text.length)
		return;
	if (open->event.is_tracepoint) {
		add_fields(p, text);
		return;
	}
	ts_perf_split_rest(text, &rest);
	open->has_address = ts_perf_hex(rest.address, &open->address);
	/* A single one may be either; what follows decides. */
	if (rest.frame.length && !open->has_address)
		ts_perf_hex(rest.frame, &open->address);
	if (rest.frame.length)
		open->frame = ts_perf_frame(p, rest.frame, NULL);
	open->has_frame = open->frame != 0;
	add_text(p, p->keys[TS_PERF_KEY_BRANCHES], rest.branches);
	add_text(p, p->keys[TS_PERF_KEY_REGISTERS], rest.registers);
	add_text(p, p->keys[TS_PERF_KEY_TEXT], rest.other);
}

void ts_perf_begin(struct ts_perf *p, const struct ts_perf_head *head)
{
	struct ts_perf_open *open = &p->open;

	ts_row_args_clear(&p->args);
	ts_frame_list_clear(&p->stack);
	*open = (struct ts_perf_open){ .is_open = true,
				       .event = *find_event(p, head->event),
				       .row = ts_sample_none,
				       .period = TS_ABSENT };
	open->row.start = head->has_time ? head->time : 0;
	open->row.thread = ts_perf_thread(p, head);
	open->row.name = open->event.name;
	if (head->has_cpu)
		open->row.cpu = head->cpu;
	if (head->has_period && open->event.is_timed)
		open->row.weight = head->period;
	else if (head->has_period)
		open->period = head->period;
	p->entities.time = open->row.start;
	take_rest(p, head->rest);
}

/* File and line for the previous frame. */
static void set_source(struct ts_perf *p, struct ts_perf_text file, int64_t line)
{
	struct ts_symbol_row symbol = ts_symbol_none;
	struct ts_frame_row row = p->last_frame;
	bool is_new = false;
	uint32_t frame;

	row.file =
		ts_import_string(p->import, file.text, TS_MIN(file.length, TS_IMPORT_MAX_STRING));
	row.line = line;
	frame = ts_writer_frame(p->writer, &row);
	p->stack.ids[p->stack.count - 1] = frame;
	if (row.kind != TS_FRAME_NATIVE)
		return;
	/* Lines of native code are symbols of their frames. */
	if (!ts_map_insert(&p->sourced, frame, &is_new))
		p->rc = TS_ENOMEM;
	if (!is_new)
		return;
	symbol.frame = frame;
	symbol.name = row.name;
	symbol.file = row.file;
	symbol.line = line;
	ts_writer_add(p->writer, TS_TABLE_SYMBOL, &symbol, NULL);
}

/* "libc.so.6[27744]", "??:0": perf found no line. */
static bool is_no_source(struct ts_perf_text line)
{
	return line.text[line.length - 1] == ']' || line.text[0] == '?' || line.text[0] == ':';
}

bool ts_perf_continue(struct ts_perf *p, struct ts_perf_text line)
{
	struct ts_perf_rest rest;
	struct ts_perf_text file;
	int64_t number;
	uint32_t frame;

	if (!p->open.is_open)
		return false;
	frame = ts_perf_frame(p, line, &p->last_frame);
	if (frame) {
		if (ts_frame_list_add(&p->stack, frame))
			p->rc = TS_ENOMEM;
		return true;
	}
	ts_perf_split_rest(line, &rest);
	if (rest.branches.length || rest.registers.length) {
		add_text(p, p->keys[TS_PERF_KEY_BRANCHES], rest.branches);
		add_text(p, p->keys[TS_PERF_KEY_REGISTERS], rest.registers);
		return true;
	}
	if (!p->stack.count)
		return false;
	if (ts_perf_parse_source(line, &file, &number)) {
		set_source(p, file, number);
		return true;
	}
	return is_no_source(line);
}

void ts_perf_mark(struct ts_perf *p, struct ts_mark_row *mark)
{
	mark->shape = ts_row_args_shape(&p->args, p->writer);
	ts_writer_add(p->writer, TS_TABLE_MARK, mark, p->args.values);
	p->import->result.events++;
}

static void end_mark(struct ts_perf *p)
{
	struct ts_perf_open *open = &p->open;
	struct ts_mark_row mark = ts_mark_none;

	mark.start = open->row.start;
	mark.thread = open->row.thread;
	mark.name = open->row.name;
	mark.category = open->event.category;
	if (open->row.cpu != TS_ABSENT)
		ts_row_args_add(&p->args, p->keys[TS_PERF_KEY_CPU], TS_ARG_INT, open->row.cpu);
	ts_perf_mark(p, &mark);
}

void ts_perf_end(struct ts_perf *p)
{
	struct ts_perf_open *open = &p->open;

	if (!open->is_open)
		return;
	open->is_open = false;
	if (p->stack.count && open->has_frame && !open->has_address)
		open->has_address = true;
	else if (!p->stack.count && open->has_frame && ts_frame_list_add(&p->stack, open->frame))
		p->rc = TS_ENOMEM;
	if (open->period != TS_ABSENT)
		ts_row_args_add(&p->args, p->keys[TS_PERF_KEY_PERIOD], TS_ARG_INT, open->period);
	if (open->has_address)
		add_hex(p, p->keys[TS_PERF_KEY_ADDRESS], open->address);
	if (open->event.is_tracepoint && !p->stack.count) {
		end_mark(p);
		return;
	}
	open->row.stack = ts_frame_list_inner_first(&p->stack, p->writer);
	open->row.shape = ts_row_args_shape(&p->args, p->writer);
	ts_writer_add(p->writer, TS_TABLE_SAMPLE, &open->row, p->args.values);
	p->import->result.events++;
}
