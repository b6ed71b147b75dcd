/* SPDX-License-Identifier: Apache-2.0 */
/* What ids stand for, as in CSV (docs/formats/tables.md); see arrow_fields.h. */
#include <string.h>

#include "arrow/arrow_fields.h"
#include "state/graph/graph.h"
#include "state/states/states.h"
#include "trace/json_row.h"
#include "trace/stack_lists.h"

static bool put_string(struct ts_reader *reader, int64_t id, struct ts_text *out)
{
	struct ts_string text;

	if (!id)
		return false;
	text = ts_reader_string(reader, id);
	ts_text_append(out, text.data, text.length);
	return true;
}

static bool put_json(struct ts_reader *reader, int64_t id, struct ts_text *out)
{
	if (!id)
		return false;
	ts_json_row_raw(reader, out, id);
	return true;
}

const struct ts_arrow_lookup ts_arrow_string_lookup = { .text = put_string };
const struct ts_arrow_lookup ts_arrow_json_lookup = { .text = put_json };

static int64_t process_pid(struct ts_reader *reader, int64_t id)
{
	const struct ts_process_row *row = ts_reader_entity(reader, TS_TABLE_PROCESS, id);

	return row ? row->pid : TS_ABSENT;
}

static bool process_name(struct ts_reader *reader, int64_t id, struct ts_text *out)
{
	const struct ts_process_row *row = ts_reader_entity(reader, TS_TABLE_PROCESS, id);

	return row && put_string(reader, row->name, out);
}

static int64_t thread_pid(struct ts_reader *reader, int64_t id)
{
	const struct ts_thread_row *row = ts_reader_entity(reader, TS_TABLE_THREAD, id);

	return row ? process_pid(reader, row->process) : TS_ABSENT;
}

static int64_t thread_tid(struct ts_reader *reader, int64_t id)
{
	const struct ts_thread_row *row = ts_reader_entity(reader, TS_TABLE_THREAD, id);

	return row ? row->tid : TS_ABSENT;
}

static bool thread_name(struct ts_reader *reader, int64_t id, struct ts_text *out)
{
	const struct ts_thread_row *row = ts_reader_entity(reader, TS_TABLE_THREAD, id);

	return row && put_string(reader, row->name, out);
}

static int64_t device_number(struct ts_reader *reader, int64_t id)
{
	const struct ts_device_row *row = ts_reader_entity(reader, TS_TABLE_DEVICE, id);

	return row ? row->number : TS_ABSENT;
}

static bool device_name(struct ts_reader *reader, int64_t id, struct ts_text *out)
{
	const struct ts_device_row *row = ts_reader_entity(reader, TS_TABLE_DEVICE, id);

	return row && put_string(reader, row->name, out);
}

static int64_t stream_number(struct ts_reader *reader, int64_t id)
{
	const struct ts_stream_row *row = ts_reader_entity(reader, TS_TABLE_STREAM, id);

	return row ? row->number : TS_ABSENT;
}

static bool source_name(struct ts_reader *reader, int64_t id, struct ts_text *out)
{
	const struct ts_source_row *row = ts_reader_entity(reader, TS_TABLE_SOURCE, id);

	return row && put_string(reader, row->name, out);
}

static bool mapping_path(struct ts_reader *reader, int64_t id, struct ts_text *out)
{
	const struct ts_mapping_row *row = ts_reader_entity(reader, TS_TABLE_MAPPING, id);

	return row && put_string(reader, row->path, out);
}

static bool frame_function(struct ts_reader *reader, int64_t id, struct ts_text *out)
{
	if (!id)
		return false;
	ts_frame_append_function(reader, out, id);
	return true;
}

static bool stack_function(struct ts_reader *reader, int64_t id, struct ts_text *out)
{
	const struct ts_stack_row *row = id ? ts_reader_entity(reader, TS_TABLE_STACK, id) : NULL;

	return row && frame_function(reader, row->frame, out);
}

const struct ts_arrow_beside ts_arrow_besides[] = {
	{ "source", "name", "name of the source", { .text = source_name } },
	{ "process", "pid", "its process id", { .number = process_pid } },
	{ "process", "name", "its name", { .text = process_name } },
	{ "thread", "pid", "process id of its process", { .number = thread_pid } },
	{ "thread", "tid", "its thread id", { .number = thread_tid } },
	{ "thread", "name", "its name", { .text = thread_name } },
	{ "device", "number", "its number", { .number = device_number } },
	{ "device", "name", "its model", { .text = device_name } },
	{ "stream", "number", "its number given by the driver", { .number = stream_number } },
	{ "mapping", "path", "its file", { .text = mapping_path } },
	{ "frame", "function", "its function", { .text = frame_function } },
	{ "stack", "function", "its innermost function", { .text = stack_function } },
	{ .table = NULL },
};

/* ---- derived tables ---- */

static bool put_constant(const char *text, struct ts_text *out)
{
	ts_text_append_str(out, text);
	return *text != '\0';
}

static bool put_reason(struct ts_reader *reader, int64_t id, struct ts_text *out)
{
	(void)reader;
	return put_constant(ts_state_reason_name((enum ts_state_reason)id), out);
}

static bool put_edge_kind(struct ts_reader *reader, int64_t id, struct ts_text *out)
{
	(void)reader;
	return put_constant(ts_edge_kind_name((enum ts_edge_kind)id), out);
}

static const struct ts_arrow_lookup reason_lookup = { .text = put_reason };
static const struct ts_arrow_lookup edge_kind_lookup = { .text = put_edge_kind };

const struct ts_arrow_lookup *ts_arrow_derived_lookup(const struct ts_table_info *table,
						      const struct ts_column_info *column)
{
	if (table->id == TS_TABLE_STATE && column->type == TS_COLUMN_STRING)
		return &reason_lookup;
	if (table->id == TS_TABLE_EDGE && column->type == TS_COLUMN_STRING)
		return &edge_kind_lookup;
	return NULL;
}
