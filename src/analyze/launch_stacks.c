/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `launch-stacks`: device time by kernel and by the host call stack that launched it; for backward
 * kernels also the forward operator. docs/analyze.md defines the numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "analyze/device_side.h"
#include "base/map.h"
#include "base/ns.h"
#include "state/work/autograd_link.h"
#include "trace/stack_lists.h"

#define SHOWN_ROWS 20
#define DEFAULT_DEPTH 6
#define BETWEEN_FRAMES " < "
#define FORWARD_DEPTH 3u

enum { DEVICE_US, DEVICE_PCT, LAUNCHES, KERNEL, FORWARD, PYTHON, STACK, CAPTURED };

static const struct ts_result_column columns[] = {
	[DEVICE_US] = { "device_us", "device time", TS_CELL_TIME },
	[DEVICE_PCT] = { "device_pct", "%", TS_CELL_PERCENT },
	[LAUNCHES] = { "launches", "launches", TS_CELL_INTEGER },
	[KERNEL] = { "kernel", "kernel", TS_CELL_TEXT },
	[FORWARD] = { "forward", "for the backward pass of", TS_CELL_TEXT },
	[PYTHON] = { "python", "python", TS_CELL_TEXT },
	[STACK] = { "stack", "launched at", TS_CELL_TEXT },
	[CAPTURED] = { "captured", "captured at", TS_CELL_TEXT },
};

/* Stack ids of the rows of a table, by row number. */
struct row_stacks {
	uint32_t *stacks;
	uint64_t rows;
};

/* Identifies a row of the table; ids of texts. */
struct key {
	uint32_t kernel, forward, python, stack, captured;
};

struct group {
	struct key key;
	int64_t count, time_ns;
};

struct launches {
	const struct ts_work *work;
	struct ts_error *err;
	unsigned int depth;
	struct row_stacks *calls, *commands; /* of each trace */
	struct ts_autograd_link *forward;
	struct ts_strmap texts;       /* id 0 is "" */
	struct ts_pairmap stack_text; /* trace and stack to text */
	struct ts_pairmap python_text;
	struct ts_map forward_text; /* slice to text */
	struct ts_strmap keys;      /* bytes of a key to group */
	struct group *groups;
	size_t capacity;
	int64_t all_ns;
	bool has_stacks;
	struct ts_stack_list path;
	struct ts_text scratch;
};

static int no_memory(struct launches *l)
{
	return ts_error_set(l->err, TS_ENOMEM, "no memory");
}

/* ---- stacks of rows ---- */

static int read_stacks(struct launches *l, struct ts_reader *reader, enum ts_table_id table,
		       int column, struct row_stacks *ret_stacks)
{
	struct row_stacks *to = ret_stacks;
	struct ts_batch *batch = NULL;
	uint64_t row = 0;
	int rc;

	to->rows = ts_reader_rows(reader, table);
	to->stacks = calloc(to->rows ? to->rows : 1, sizeof(*to->stacks));
	if (!to->stacks)
		return no_memory(l);
	rc = ts_batch_new(&batch, reader, l->err);
	for (size_t i = 0; !rc && i < ts_reader_chunk_count(reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);

		if (chunk->table != table)
			continue;
		rc = ts_batch_read(batch, i, UINT64_C(1) << column, l->err);
		for (uint32_t k = 0; !rc && k < batch->rows && row + k < to->rows; k++) {
			int64_t stack = batch->columns[column][k];

			to->stacks[row + k] = stack > 0 && stack <= UINT32_MAX ? (uint32_t)stack
									       : 0;
			l->has_stacks |= stack > 0;
		}
		row += chunk->rows;
	}
	ts_batch_free(batch);
	return rc;
}

static int read_all_stacks(struct launches *l)
{
	int rc = TS_OK;

	l->calls = calloc(l->work->trace_count, sizeof(*l->calls));
	l->commands = calloc(l->work->trace_count, sizeof(*l->commands));
	if (!l->calls || !l->commands)
		return no_memory(l);
	for (uint32_t i = 0; i < l->work->trace_count && !rc; i++) {
		rc = read_stacks(l, l->work->readers[i], TS_TABLE_API_CALL,
				 TS_COLUMN_OF(api_call, stack), &l->calls[i]);
		if (!rc)
			rc = read_stacks(l, l->work->readers[i], TS_TABLE_GPU_OP,
					 TS_COLUMN_OF(gpu_op, stack), &l->commands[i]);
	}
	return rc;
}

static uint32_t stack_of(const struct row_stacks *stacks, uint64_t row)
{
	return row < stacks->rows ? stacks->stacks[row] : 0;
}

/* ---- text of stacks ---- */

static void append_frame(struct launches *l, struct ts_reader *reader, int64_t frame)
{
	struct ts_string file = ts_frame_file(reader, frame);
	int64_t line = ts_frame_line(reader, frame);
	const char *name;
	size_t length;

	ts_frame_append_function(reader, &l->scratch, frame);
	if (line == TS_ABSENT)
		return;
	name = ts_frame_short_file(file, &length);
	ts_text_append_str(&l->scratch, " (");
	ts_text_append(&l->scratch, name, length);
	ts_text_printf(&l->scratch, ":%lld)", (long long)line);
}

/* Innermost frame first. */
static void write_stack(struct launches *l, struct ts_reader *reader)
{
	size_t shown = TS_MIN(l->path.count, l->depth);

	for (size_t i = 0; i < shown; i++) {
		ts_text_append_str(&l->scratch, i ? BETWEEN_FRAMES : "");
		append_frame(l, reader, l->path.frames[l->path.count - 1 - i]);
	}
}

/* The innermost Python frame, which is rarely among the innermost frames. */
static void write_python(struct launches *l, struct ts_reader *reader)
{
	for (size_t i = l->path.count; i-- > 0;) {
		if (ts_frame_get(reader, l->path.frames[i])->kind != TS_FRAME_PYTHON)
			continue;
		append_frame(l, reader, l->path.frames[i]);
		return;
	}
}

static uint32_t stack_text(struct launches *l, struct ts_pairmap *known, uint32_t trace,
			   uint32_t stack,
			   void (*write)(struct launches *l, struct ts_reader *reader))
{
	struct ts_reader *reader = l->work->readers[trace];
	bool is_new = false;
	uint64_t *text;

	if (!stack)
		return 0;
	text = ts_pairmap_insert(known, trace, stack, &is_new);
	if (!text)
		return TS_STRMAP_NONE;
	if (!is_new)
		return (uint32_t)*text;
	ts_text_clear(&l->scratch);
	if (ts_stack_list_load(&l->path, reader, stack))
		return TS_STRMAP_NONE;
	write(l, reader);
	if (ts_text_status(&l->scratch))
		return TS_STRMAP_NONE;
	*text = ts_strmap_intern(&l->texts, l->scratch.data, l->scratch.length, NULL);
	return (uint32_t)*text;
}

/*
 * The forward operator, and the Python line that called it if the operator's own launch has a
 * stack.
 */
static int write_forward(struct launches *l, uint32_t slice)
{
	uint32_t call = ts_autograd_link_call(l->work, slice), trace;
	size_t begin;

	ts_text_clear(&l->scratch);
	ts_autograd_link_append(l->work, &l->scratch, slice, FORWARD_DEPTH);
	if (call == TS_WORK_NONE)
		return ts_text_status(&l->scratch);
	trace = l->work->ranks[l->work->calls[call].rank].trace;
	if (ts_stack_list_load(&l->path, l->work->readers[trace],
			       stack_of(&l->calls[trace], l->work->calls[call].row)))
		return TS_ENOMEM;
	ts_text_append_str(&l->scratch, ", ");
	begin = l->scratch.length;
	write_python(l, l->work->readers[trace]);
	if (l->scratch.length == begin)
		l->scratch.length -= strlen(", ");
	return ts_text_status(&l->scratch);
}

static uint32_t forward_text(struct launches *l, const struct ts_work_call *call)
{
	uint32_t slice = ts_autograd_link_at(l->forward, call->thread, call->start);
	bool is_new = false;
	uint64_t *text;

	if (slice == TS_WORK_NONE)
		return 0;
	text = ts_map_insert(&l->forward_text, slice, &is_new);
	if (!text)
		return TS_STRMAP_NONE;
	if (is_new) {
		if (write_forward(l, slice))
			return TS_STRMAP_NONE;
		*text = ts_strmap_intern(&l->texts, l->scratch.data, l->scratch.length, NULL);
	}
	return (uint32_t)*text;
}

/* ---- counting ---- */

static int find_key(struct launches *l, const struct ts_work_command *command, struct key *key)
{
	const struct ts_work_call *call =
		command->call == TS_WORK_NONE ? NULL : &l->work->calls[command->call];
	uint32_t trace = l->work->ranks[command->rank].trace;
	uint32_t command_stack = stack_of(&l->commands[trace], command->row);
	uint32_t stack = call ? stack_of(&l->calls[trace], call->row) : command_stack;
	const char *name = ts_work_text(l->work, command->name);

	memset(key, 0, sizeof(*key)); /* keys are compared as bytes */
	key->kernel = ts_strmap_intern(&l->texts, name, strlen(name), NULL);
	key->forward = call ? forward_text(l, call) : 0;
	key->stack = stack_text(l, &l->stack_text, trace, stack, write_stack);
	key->python = stack_text(l, &l->python_text, trace, command_stack ? command_stack : stack,
				 write_python);
	if (command_stack && call)
		key->captured = stack_text(l, &l->stack_text, trace, command_stack, write_stack);
	return key->kernel == TS_STRMAP_NONE || key->forward == TS_STRMAP_NONE ||
			       key->stack == TS_STRMAP_NONE || key->python == TS_STRMAP_NONE ||
			       key->captured == TS_STRMAP_NONE
		       ? no_memory(l)
		       : TS_OK;
}

static int count_command(struct launches *l, const struct ts_work_command *command)
{
	int64_t time_ns = ts_ns_sub(command->end, command->start);
	struct group *group;
	bool is_new = false;
	struct key key;
	uint32_t index;

	if (find_key(l, command, &key))
		return TS_ENOMEM;
	index = ts_strmap_intern(&l->keys, (const char *)&key, sizeof(key), &is_new);
	if (index == TS_STRMAP_NONE ||
	    ts_grow_array((void **)&l->groups, &l->capacity, (size_t)index + 1, sizeof(*l->groups)))
		return no_memory(l);
	group = &l->groups[index];
	if (is_new)
		*group = (struct group){ .key = key };
	group->count++;
	group->time_ns = ts_ns_add(group->time_ns, TS_MAX(time_ns, 0));
	l->all_ns = ts_ns_add(l->all_ns, TS_MAX(time_ns, 0));
	return TS_OK;
}

/* ---- table ---- */

static int compare_groups(const void *left, const void *right)
{
	const struct group *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return TS_COMPARE(b->time_ns, a->time_ns);
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

static void put_text(const struct launches *l, struct ts_result_table *table, uint32_t text)
{
	ts_cell_text(table, text ? ts_strmap_text(&l->texts, text, NULL) : NULL);
}

static void put_groups(struct launches *l, struct ts_result *result, int64_t top)
{
	struct ts_result_table *table =
		ts_result_table(result, "launches", columns, TS_ARRAY_SIZE(columns));
	size_t count = ts_strmap_count(&l->keys);

	table->shown_rows = top ? (size_t)top : SHOWN_ROWS;
	/* Stacks and names of kernels do not fit into one line. */
	table->below = 1u << FORWARD | 1u << PYTHON | 1u << STACK | 1u << CAPTURED;
	table->divider = BETWEEN_FRAMES;
	ts_sort(l->groups, count, sizeof(*l->groups), compare_groups);
	for (size_t i = 0; i < count; i++) {
		const struct group *group = &l->groups[i];

		ts_cell_time(table, group->time_ns);
		ts_cell_share(table, group->time_ns, l->all_ns);
		ts_cell_integer(table, group->count);
		put_text(l, table, group->key.kernel);
		put_text(l, table, group->key.forward);
		put_text(l, table, group->key.python);
		put_text(l, table, group->key.stack);
		put_text(l, table, group->key.captured);
	}
}

static void note_missing(const struct launches *l, struct ts_result *result)
{
	if (!l->work->command_count)
		ts_device_side_note(l->work, result, "no device activity in this trace");
	else if (!l->has_stacks)
		ts_result_note(
			result,
			"launches in this trace have no stacks; 'tracesmith record' keeps those of CUDA programs (unless --stacks none)");
	if (ts_autograd_link_count(l->forward) == 0 && l->work->slice_count)
		ts_result_note(
			result,
			"the trace does not link backward operators to forward ones: use emit_nvtx or PyTorch's profiler");
}

static void release(struct launches *l)
{
	for (uint32_t i = 0; i < l->work->trace_count; i++) {
		if (l->calls)
			free(l->calls[i].stacks);
		if (l->commands)
			free(l->commands[i].stacks);
	}
	free(l->calls);
	free(l->commands);
	ts_autograd_link_free(l->forward);
	ts_strmap_release(&l->texts);
	ts_pairmap_release(&l->stack_text);
	ts_pairmap_release(&l->python_text);
	ts_map_release(&l->forward_text);
	ts_strmap_release(&l->keys);
	free(l->groups);
	ts_stack_list_release(&l->path);
	ts_text_release(&l->scratch);
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	int64_t depth = request->options.depth ? request->options.depth : DEFAULT_DEPTH;
	struct launches l = { .work = request->work, .err = err, .depth = (unsigned int)depth };
	int rc;

	ts_strmap_init(&l.texts, 0);
	ts_strmap_init(&l.keys, 0);
	ts_strmap_intern(&l.texts, "", 0, NULL); /* id 0 */
	rc = ts_autograd_link_new(&l.forward, l.work, err);
	if (!rc)
		rc = read_all_stacks(&l);
	for (uint32_t i = 0; i < l.work->command_count && !rc; i++)
		rc = count_command(&l, &l.work->commands[i]);
	if (!rc) {
		put_groups(&l, result, request->options.top);
		note_missing(&l, result);
		rc = ts_result_status(result, err);
	}
	release(&l);
	return rc;
}

static const struct ts_option_spec options[] = {
	{
		.name = "depth",
		.type = TS_OPTION_SPEC_INTEGER,
		.value = "N",
		.doc = "frames to show of each stack, innermost first; default 6",
		.offset = offsetof(struct ts_analysis_options, depth),
		.minimum = 1,
		.maximum = 1000,
	},
};

const struct ts_analysis ts_analysis_launch_stacks = {
	.name = "launch-stacks",
	.alias = "launches",
	.summary = "device time by kernel and launch stack",
	.example = "run.sbt launch-stacks --depth 8",
	.load_flags = TS_AUTOGRAD_LINK_LOAD_FLAGS,
	.options = options,
	.option_count = TS_ARRAY_SIZE(options),
	.run = run,
};
