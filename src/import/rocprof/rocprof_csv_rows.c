/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of rocprofv3 CSV files as rows. Columns are found by name, in any order. */
#include <stdlib.h>
#include <string.h>

#include "base/local/hash.h"
#include "base/real.h"
#include "import/rocprof/rocprof_csv.h"
#include "model/kineto_names.h"

static const struct {
	const char *name;
	enum ts_rocprof_csv_column column;
} names[] = {
	{ "Kind", TS_CSV_KIND },
	{ "Domain", TS_CSV_DOMAIN },
	{ "Function", TS_CSV_FUNCTION },
	{ "Operation", TS_CSV_OPERATION },
	{ "Direction", TS_CSV_DIRECTION },
	{ "Agent_Id", TS_CSV_AGENT },
	{ "Source_Agent_Id", TS_CSV_SRC_AGENT },
	{ "Destination_Agent_Id", TS_CSV_DST_AGENT },
	{ "Queue_Id", TS_CSV_QUEUE },
	{ "Stream_Id", TS_CSV_STREAM },
	{ "Process_Id", TS_CSV_PROCESS },
	{ "Thread_Id", TS_CSV_THREAD },
	{ "Dispatch_Id", TS_CSV_DISPATCH },
	{ "Kernel_Id", TS_CSV_KERNEL },
	{ "Kernel_Name", TS_CSV_KERNEL_NAME },
	{ "Correlation_Id", TS_CSV_CORRELATION },
	{ "Start_Timestamp", TS_CSV_START },
	{ "End_Timestamp", TS_CSV_END },
	{ "LDS_Block_Size", TS_CSV_LDS },
	{ "Group_Segment_Size", TS_CSV_LDS },
	{ "Scratch_Size", TS_CSV_SCRATCH },
	{ "Private_Segment_Size", TS_CSV_SCRATCH },
	{ "VGPR_Count", TS_CSV_VGPRS },
	{ "Accum_VGPR_Count", TS_CSV_ACCUM_VGPRS },
	{ "SGPR_Count", TS_CSV_SGPRS },
	{ "Workgroup_Size_X", TS_CSV_BLOCK_X },
	{ "Workgroup_Size_Y", TS_CSV_BLOCK_Y },
	{ "Workgroup_Size_Z", TS_CSV_BLOCK_Z },
	{ "Grid_Size_X", TS_CSV_GRID_X },
	{ "Grid_Size_Y", TS_CSV_GRID_Y },
	{ "Grid_Size_Z", TS_CSV_GRID_Z },
	{ "Counter_Name", TS_CSV_COUNTER_NAME },
	{ "Counter_Value", TS_CSV_COUNTER_VALUE },
	{ "Allocation_Size", TS_CSV_SIZE },
	{ "Address", TS_CSV_ADDRESS },
	{ "Sample_Timestamp", TS_CSV_TIMESTAMP },
	{ "Instruction", TS_CSV_INSTRUCTION },
	{ "Instruction_Comment", TS_CSV_COMMENT },
	/* rocprof before version 3 */
	{ "KernelName", TS_CSV_KERNEL_NAME },
	{ "gpu-id", TS_CSV_AGENT },
	{ "queue-id", TS_CSV_QUEUE },
	{ "pid", TS_CSV_PROCESS },
	{ "tid", TS_CSV_THREAD },
	{ "lds", TS_CSV_LDS },
	{ "scr", TS_CSV_SCRATCH },
	{ "arch_vgpr", TS_CSV_VGPRS },
	{ "accum_vgpr", TS_CSV_ACCUM_VGPRS },
	{ "sgpr", TS_CSV_SGPRS },
	{ "BeginNs", TS_CSV_START },
	{ "EndNs", TS_CSV_END },
};

static enum ts_rocprof_csv_column column_of(const struct ts_rocprof_field *field)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++)
		if (strlen(names[i].name) == field->length &&
		    !memcmp(names[i].name, field->text, field->length))
			return names[i].column;
	return TS_CSV_OTHER;
}

static bool is_text(const struct ts_rocprof_field *field, const char *text)
{
	return field->length == strlen(text) && !memcmp(field->text, text, field->length);
}

bool ts_rocprof_csv_is_header(const struct ts_rocprof_field *fields, size_t count)
{
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		known += column_of(&fields[i]) != TS_CSV_OTHER;
	/* Files without events are recognized too, so that the error can say why. */
	if (count >= 4 && (is_text(&fields[0], "Node_Id") || is_text(&fields[1], "Calls") ||
			   is_text(&fields[1], "TotalDurationNs")))
		return true;
	return known >= 4;
}

/* ---- fields ---- */

static bool has(const struct ts_rocprof_csv *csv, enum ts_rocprof_csv_column column)
{
	return csv->column_indices[column] >= 0;
}

/* An empty field if the file has no such column. */
static const struct ts_rocprof_field *field_of(const struct ts_rocprof_csv *csv,
					       enum ts_rocprof_csv_column column)
{
	static const struct ts_rocprof_field none = { .text = "" };

	return has(csv, column) ? &csv->fields[csv->column_indices[column]] : &none;
}

/* 12, 0x00007f, "Agent 4", "GPU 0" */
static bool number_of(const struct ts_rocprof_field *field, uint64_t *ret_value)
{
	const char *p = field->text, *end = p + field->length;
	uint64_t value = 0, base = 10;

	while (p < end && (*p < '0' || *p > '9') && (*p | 32) >= 'a' && (*p | 32) <= 'z')
		p++;
	if (p > field->text && p < end && *p == ' ')
		p++;
	else if (p > field->text)
		return false;
	if (end - p > 2 && p[0] == '0' && (p[1] | 32) == 'x') {
		base = 16;
		p += 2;
	}
	if (p == end)
		return false;
	for (; p < end; p++) {
		uint64_t digit = *p >= '0' && *p <= '9' ? (uint64_t)(*p - '0')
				 : (*p | 32) >= 'a' && (*p | 32) <= 'f'
					 ? (uint64_t)((*p | 32) - 'a') + 10
					 : 99;

		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret_value = value;
	return true;
}

static int64_t int_of(const struct ts_rocprof_csv *csv, enum ts_rocprof_csv_column column)
{
	const struct ts_rocprof_field *field = field_of(csv, column);
	int64_t value;

	return ts_parse_int64(field->text, field->length, &value) ? TS_ABSENT : value;
}

static const struct ts_rocprof_field *plain(struct ts_rocprof_csv *csv,
					    const struct ts_rocprof_field *field,
					    struct ts_rocprof_field *storage)
{
	if (!field->has_quotes)
		return field;
	ts_text_clear(&csv->scratch);
	for (size_t i = 0; i < field->length; i++) {
		ts_text_append_char(&csv->scratch, field->text[i]);
		i += field->text[i] == '"';
	}
	*storage = (struct ts_rocprof_field){ .text = ts_text_cstr(&csv->scratch),
					      .length = csv->scratch.length };
	return storage;
}

static void describe(struct ts_rocprof_cached *entry)
{
	entry->operation = ts_rocprof_operation(entry->text, entry->length);
	entry->is_call = ts_rocprof_is_call(entry->text, entry->length);
	entry->is_marker = entry->length >= 6 && !memcmp(entry->text, "MARKER", 6);
	entry->is_collective = ts_kineto_kind(TS_GPU_OP_KERNEL, entry->text, entry->length) ==
			       TS_GPU_OP_COLLECTIVE;
}

/* The name in a column; never NULL. */
static const struct ts_rocprof_cached *name_of(struct ts_rocprof_csv *csv,
					       enum ts_rocprof_csv_column column)
{
	static const struct ts_rocprof_cached none;
	const struct ts_rocprof_field *field = field_of(csv, column);
	struct ts_rocprof_field storage;
	struct ts_rocprof_cached *entry;
	size_t sample = TS_MIN(field->length, (size_t)32);

	if (!field->length)
		return &none;
	field = plain(csv, field, &storage);
	entry = &csv->cache[(ts_hash64(field->text, TS_MIN(sample, field->length)) +
			     field->length * 31) &
			    (TS_ARRAY_SIZE(csv->cache) - 1)];
	if (entry->string && entry->length == field->length &&
	    !memcmp(entry->text, field->text, field->length))
		return entry;
	entry->string = 0;
	if (ts_grow_array((void **)&entry->text, &entry->capacity, field->length, 1))
		return &none;
	memcpy(entry->text, field->text, field->length);
	entry->length = field->length;
	describe(entry);
	entry->string = ts_import_string(csv->import, entry->text, entry->length);
	return entry;
}

/* Unknown columns, as numbers where possible. */
static void add_others(struct ts_rocprof_csv *csv)
{
	for (size_t i = 0; i < csv->column_count; i++) {
		struct ts_rocprof_field storage;
		const struct ts_rocprof_field *field;
		int64_t value;

		if (csv->columns[i] != TS_CSV_OTHER || !csv->fields[i].length)
			continue;
		field = plain(csv, &csv->fields[i], &storage);
		if (!ts_parse_int64(field->text, field->length, &value))
			ts_row_args_add(&csv->rows.args, csv->keys[i], TS_ARG_INT, value);
		else
			ts_row_args_add(&csv->rows.args, csv->keys[i], TS_ARG_STRING,
					ts_import_string(csv->import, field->text, field->length));
	}
}

static void add_arg(struct ts_rocprof_csv *csv, enum ts_rocprof_csv_column column,
		    enum ts_rocprof_key key)
{
	uint64_t value;

	if (has(csv, column) && number_of(field_of(csv, column), &value))
		ts_rocprof_arg_unsigned(&csv->rows, csv->rows.keys[key], value);
}

/* ---- entities ---- */

static int64_t device_of(struct ts_rocprof_csv *csv, enum ts_rocprof_csv_column column)
{
	const struct ts_rocprof_field *field = field_of(csv, column);
	uint64_t number;

	if (!field->length || !number_of(field, &number) || number > INT64_MAX)
		return 0;
	return ts_entities_device(&csv->entities, 0, number, (int64_t)number);
}

static int64_t stream_of(struct ts_rocprof_csv *csv, const struct ts_rocprof_event *event,
			 int64_t device)
{
	uint64_t handle;

	if (has(csv, TS_CSV_STREAM) && number_of(field_of(csv, TS_CSV_STREAM), &handle))
		return ts_rocprof_stream(&csv->rows, device, event->process_index, false, handle);
	if (has(csv, TS_CSV_QUEUE) && number_of(field_of(csv, TS_CSV_QUEUE), &handle))
		return ts_rocprof_stream(&csv->rows, device, event->process_index, true, handle);
	return 0;
}

static struct ts_rocprof_event start_event(struct ts_rocprof_csv *csv)
{
	struct ts_rocprof_event event = ts_rocprof_event_none;
	int64_t pid = int_of(csv, TS_CSV_PROCESS);
	uint64_t *index;
	bool is_new;

	event.start = int_of(csv, TS_CSV_START);
	event.end = int_of(csv, TS_CSV_END);
	number_of(field_of(csv, TS_CSV_CORRELATION), &event.correlation);
	if (pid == TS_ABSENT)
		return event;
	index = ts_map_insert(&csv->processes, (uint64_t)pid, &is_new);
	if (index && is_new)
		*index = ts_map_count(&csv->processes) - 1;
	event.process_index = index ? *index : 0;
	event.process = ts_entities_process(&csv->entities, pid);
	return event;
}

static int64_t thread_of(struct ts_rocprof_csv *csv, const struct ts_rocprof_event *event)
{
	int64_t tid = int_of(csv, TS_CSV_THREAD);
	int64_t process = event->process;

	if (tid == TS_ABSENT)
		return 0;
	/* Some files do not name their process: there is one. */
	if (!process)
		process = ts_entities_process(&csv->entities, TS_ABSENT);
	return ts_entities_thread(&csv->entities, process, (uint64_t)tid, tid);
}

/* ---- lines ---- */

static struct ts_rocprof_event kernel_event(struct ts_rocprof_csv *csv)
{
	struct ts_rocprof_event event = start_event(csv);
	const struct ts_rocprof_cached *name = name_of(csv, TS_CSV_KERNEL_NAME);

	event.name = name->string;
	event.is_collective = name->is_collective;
	event.category = name_of(csv, TS_CSV_KIND)->string;
	event.device = device_of(csv, TS_CSV_AGENT);
	event.stream = stream_of(csv, &event, event.device);
	event.registers = int_of(csv, TS_CSV_VGPRS);
	event.shared_bytes = int_of(csv, TS_CSV_LDS);
	event.has_size = has(csv, TS_CSV_BLOCK_X) && has(csv, TS_CSV_GRID_X);
	for (int i = 0; i < 3 && event.has_size; i++) {
		number_of(field_of(csv, TS_CSV_BLOCK_X + i), &event.block[i]);
		number_of(field_of(csv, TS_CSV_GRID_X + i), &event.grid[i]);
	}
	return event;
}

static void add_kernel_row(struct ts_rocprof_csv *csv, const struct ts_rocprof_event *event)
{
	add_arg(csv, TS_CSV_THREAD, TS_ROCPROF_KEY_THREAD);
	add_arg(csv, TS_CSV_QUEUE, TS_ROCPROF_KEY_QUEUE);
	add_arg(csv, TS_CSV_KERNEL, TS_ROCPROF_KEY_KERNEL);
	add_arg(csv, TS_CSV_DISPATCH, TS_ROCPROF_KEY_DISPATCH);
	add_arg(csv, TS_CSV_SCRATCH, TS_ROCPROF_KEY_PRIVATE);
	add_arg(csv, TS_CSV_ACCUM_VGPRS, TS_ROCPROF_KEY_ACCUM_VGPR);
	add_arg(csv, TS_CSV_SGPRS, TS_ROCPROF_KEY_SGPR);
	add_others(csv);
	ts_rocprof_add_kernel(&csv->rows, event);
}

static void add_kernel(struct ts_rocprof_csv *csv)
{
	struct ts_rocprof_event event = kernel_event(csv);

	add_kernel_row(csv, &event);
}

/* One line per counter of a dispatch; lines of one dispatch are adjacent. */
static void add_counter(struct ts_rocprof_csv *csv)
{
	struct ts_rocprof_event event = kernel_event(csv);
	const struct ts_rocprof_field *value = field_of(csv, TS_CSV_COUNTER_VALUE);
	uint64_t dispatch = 0;
	char text[64];

	event.category = ts_rocprof_text(&csv->rows, "counter_collection");
	number_of(field_of(csv, TS_CSV_DISPATCH), &dispatch);
	if (!csv->has_dispatch || dispatch != csv->last_dispatch)
		add_kernel_row(csv, &event);
	csv->has_dispatch = true;
	csv->last_dispatch = dispatch;
	if (!value->length || value->length >= sizeof(text)) {
		ts_entities_add_loss(&csv->entities, &ts_rocprof_lost_value, 1);
		return;
	}
	memcpy(text, value->text, value->length);
	text[value->length] = '\0';
	event.name = name_of(csv, TS_CSV_COUNTER_NAME)->string;
	ts_rocprof_add_counter(&csv->rows, &event, ts_real_parse(text));
}

static void add_copy(struct ts_rocprof_csv *csv)
{
	struct ts_rocprof_event event = start_event(csv);
	const struct ts_rocprof_cached *direction = name_of(csv, TS_CSV_DIRECTION);

	event.name = direction->string;
	event.operation = direction->operation;
	event.category = name_of(csv, TS_CSV_KIND)->string;
	/* Agents are numbers; the direction tells which one is a device. */
	if (event.operation != TS_ROCPROF_DEVICE_TO_HOST &&
	    event.operation != TS_ROCPROF_HOST_TO_HOST)
		event.device = device_of(csv, TS_CSV_DST_AGENT);
	if (event.operation == TS_ROCPROF_DEVICE_TO_HOST ||
	    event.operation == TS_ROCPROF_DEVICE_TO_DEVICE)
		event.other_device = device_of(csv, TS_CSV_SRC_AGENT);
	if (event.device || event.other_device)
		event.stream =
			stream_of(csv, &event, event.device ? event.device : event.other_device);
	add_arg(csv, TS_CSV_SRC_AGENT, TS_ROCPROF_KEY_SRC_AGENT);
	add_arg(csv, TS_CSV_DST_AGENT, TS_ROCPROF_KEY_DST_AGENT);
	add_others(csv);
	ts_rocprof_add_copy(&csv->rows, &event);
}

static void add_function(struct ts_rocprof_csv *csv)
{
	struct ts_rocprof_event event = start_event(csv);
	const struct ts_rocprof_cached *name = name_of(csv, TS_CSV_FUNCTION);
	enum ts_rocprof_operation operation = name->operation;
	const struct ts_rocprof_cached *domain;

	/* The next name may replace this cache entry. */
	event.name = name->string;
	domain = name_of(csv, TS_CSV_DOMAIN);
	event.category = domain->string;
	event.thread = thread_of(csv, &event);
	add_others(csv);
	if (domain->is_call) {
		event.operation = operation;
		ts_rocprof_add_call(&csv->rows, &event);
		return;
	}
	/* The text of a marker is in the function column. */
	if (domain->is_marker) {
		event.category = ts_rocprof_text(&csv->rows, "roctx");
		event.operation = event.start == event.end ? TS_ROCPROF_MARK : TS_ROCPROF_RANGE;
	}
	ts_rocprof_add_range(&csv->rows, &event);
}

static void add_allocation(struct ts_rocprof_csv *csv)
{
	struct ts_rocprof_event event = start_event(csv);
	const struct ts_rocprof_cached *operation = name_of(csv, TS_CSV_OPERATION);

	event.operation = operation->operation;
	event.bytes = int_of(csv, TS_CSV_SIZE);
	event.device = device_of(csv, TS_CSV_AGENT);
	event.thread = thread_of(csv, &event);
	number_of(field_of(csv, TS_CSV_ADDRESS), &event.address);
	ts_row_args_add(&csv->rows.args, csv->rows.keys[TS_ROCPROF_KEY_OPERATION], TS_ARG_STRING,
			operation->string);
	add_others(csv);
	ts_rocprof_add_allocation(&csv->rows, &event);
}

/* Scratch memory, and anything else with an operation and times. */
static void add_operation(struct ts_rocprof_csv *csv)
{
	struct ts_rocprof_event event = start_event(csv);

	event.name = name_of(csv, TS_CSV_OPERATION)->string;
	event.category = name_of(csv, TS_CSV_KIND)->string;
	event.thread = thread_of(csv, &event);
	add_arg(csv, TS_CSV_AGENT, TS_ROCPROF_KEY_AGENT);
	add_arg(csv, TS_CSV_QUEUE, TS_ROCPROF_KEY_QUEUE);
	add_others(csv);
	ts_rocprof_add_range(&csv->rows, &event);
}

static void add_sample(struct ts_rocprof_csv *csv)
{
	struct ts_sample_row row = ts_sample_none;
	struct ts_frame_row frame = ts_frame_none;

	row.start = int_of(csv, TS_CSV_TIMESTAMP);
	if (row.start == TS_ABSENT) {
		ts_entities_add_loss(&csv->entities, &ts_rocprof_lost_time, 1);
		return;
	}
	csv->entities.time = row.start;
	frame.kind = TS_FRAME_INSTRUCTION;
	frame.name = name_of(csv, TS_CSV_INSTRUCTION)->string;
	row.stack = ts_writer_stack(csv->rows.writer, 0, ts_writer_frame(csv->rows.writer, &frame));
	row.name = ts_rocprof_text(&csv->rows, "pc_sampling");
	row.weight = 1;
	add_arg(csv, TS_CSV_DISPATCH, TS_ROCPROF_KEY_DISPATCH);
	if (has(csv, TS_CSV_COMMENT) && field_of(csv, TS_CSV_COMMENT)->length)
		ts_row_args_add(&csv->rows.args, csv->keys[csv->column_indices[TS_CSV_COMMENT]],
				TS_ARG_STRING, name_of(csv, TS_CSV_COMMENT)->string);
	add_others(csv);
	row.shape = ts_row_args_shape(&csv->rows.args, csv->rows.writer);
	ts_writer_add(csv->rows.writer, TS_TABLE_SAMPLE, &row, csv->rows.args.values);
	ts_row_args_clear(&csv->rows.args);
	csv->import->result.events++;
}

/* ---- the first line ---- */

/* Selects the reader for a file; NULL: it has no events. */
static void (*choose(const struct ts_rocprof_csv *csv))(struct ts_rocprof_csv *csv)
{
	if (has(csv, TS_CSV_TIMESTAMP) && has(csv, TS_CSV_INSTRUCTION))
		return add_sample;
	if (has(csv, TS_CSV_COUNTER_NAME))
		return add_counter;
	if (!has(csv, TS_CSV_START))
		return NULL;
	if (has(csv, TS_CSV_KERNEL_NAME))
		return add_kernel;
	if (has(csv, TS_CSV_DIRECTION))
		return add_copy;
	if (has(csv, TS_CSV_DOMAIN) && has(csv, TS_CSV_FUNCTION))
		return add_function;
	if (has(csv, TS_CSV_SIZE))
		return add_allocation;
	return has(csv, TS_CSV_OPERATION) ? add_operation : NULL;
}

int ts_rocprof_csv_header(struct ts_rocprof_csv *csv)
{
	if (csv->field_count > TS_ROCPROF_CSV_MAX_COLUMNS)
		return ts_import_bad(csv->import, 0, "a line has more than 128 columns", csv->err);
	csv->column_count = csv->field_count;
	for (int i = 0; i < TS_CSV_COUNT; i++)
		csv->column_indices[i] = -1;
	for (size_t i = 0; i < csv->column_count; i++) {
		enum ts_rocprof_csv_column column = column_of(&csv->fields[i]);

		/* A repeated column name becomes an argument. */
		if (column && csv->column_indices[column] >= 0)
			column = TS_CSV_OTHER;
		csv->columns[i] = column;
		csv->column_indices[column] = (int)i;
		csv->keys[i] =
			ts_import_string(csv->import, csv->fields[i].text, csv->fields[i].length);
	}
	csv->add = choose(csv);
	if (csv->add)
		return TS_OK;
	return ts_error_set(
		csv->err, TS_EFORMAT,
		"input '%s': no rocprofv3 events: the header line has no time columns; import the *_trace.csv or *_counter_collection.csv files",
		csv->import->path);
}
