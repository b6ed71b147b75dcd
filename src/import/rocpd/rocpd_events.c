/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocpd events. There are two schemas: times and locations are either in the event rows, or in
 * tables of times and tracks. A reader names the columns of both and uses what is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "import/rocpd/rocpd.h"

/* Columns common to all event tables, in either schema. */
enum {
	PROCESS,
	THREAD,
	START,
	END,
	START_ID,
	END_ID,
	TRACK,
	EVENT,
	EXTDATA,
	QUEUE,
	STREAM,
	FIRST_TABLE_COLUMN
};
#define COMMON_COLUMNS                                                                         \
	"pid", "tid", "start", "end", "start_id", "end_id", "track_id", "event_id", "extdata", \
		"queue_id", "stream_id"

/* ---- what all have ---- */

struct slot {
	int64_t process, thread, agent, queue, stream; /* numbers of the file */
};

static int64_t time_of(struct ts_rocpd *r, const struct ts_sqlite_query *query, int column,
		       int id_column)
{
	int64_t time = ts_sqlite_int(query, column);
	const struct ts_rocpd_time *found;

	if (time != TS_ABSENT || !r->times.count)
		return time;
	found = ts_rocpd_get(&r->times, ts_sqlite_int(query, id_column));
	return found ? found->value : TS_ABSENT;
}

static struct ts_rocprof_event start_event(struct ts_rocpd *r, const struct ts_sqlite_query *query,
					   struct slot *slot)
{
	struct ts_rocprof_event event = ts_rocprof_event_none;
	const struct ts_rocpd_track *track = ts_rocpd_get(&r->tracks, ts_sqlite_int(query, TRACK));
	const struct ts_rocpd_process *process;
	const struct ts_rocpd_event *about;

	*slot = (struct slot){ .process = ts_sqlite_int(query, PROCESS),
			       .thread = ts_sqlite_int(query, THREAD),
			       .agent = TS_ABSENT,
			       .queue = ts_sqlite_int(query, QUEUE),
			       .stream = ts_sqlite_int(query, STREAM) };
	if (track)
		*slot = (struct slot){ track->process, track->thread, track->agent, track->queue,
				       track->stream };
	process = ts_rocpd_process(r, slot->process);
	event.process = process->process;
	event.process_index = process->index;
	event.start = time_of(r, query, START, START_ID);
	event.end = time_of(r, query, END, END_ID);
	about = ts_rocpd_get(&r->events, ts_sqlite_int(query, EVENT));
	if (about) {
		event.correlation = about->correlation > 0 ? (uint64_t)about->correlation : 0;
		event.category = ts_rocpd_string(r, about->category)->string;
	}
	return event;
}

static int64_t stream_of(struct ts_rocpd *r, const struct slot *slot,
			 const struct ts_rocprof_event *event, int64_t device)
{
	if (slot->stream != TS_ABSENT)
		return ts_rocprof_stream(&r->rows, device, event->process_index, false,
					 (uint64_t)slot->stream);
	if (slot->queue != TS_ABSENT)
		return ts_rocprof_stream(&r->rows, device, event->process_index, true,
					 (uint64_t)slot->queue);
	return 0;
}

static void add_arg(struct ts_rocpd *r, enum ts_rocprof_key key, int64_t value)
{
	if (value != TS_ABSENT)
		ts_rocprof_arg(&r->rows, key, value);
}

static bool is_json(const char *text, size_t length)
{
	struct ts_json js;

	ts_json_init(&js, text, length, true);
	return !ts_json_skip(&js) && ts_json_peek(&js) < 0;
}

/* Arguments of a call, and further properties of a row. */
static void add_args(struct ts_rocpd *r, const struct ts_sqlite_query *query)
{
	const struct ts_rocpd_event *about = ts_rocpd_get(&r->events, ts_sqlite_int(query, EVENT));
	size_t length;
	const char *extdata = ts_sqlite_text(query, EXTDATA, &length);

	/* Bounded by the row limit: many rows may share one event. */
	for (uint32_t i = about ? about->last_arg : 0; i && !r->rows.args.left_out;
	     i = r->args[i - 1].previous)
		ts_row_args_add(&r->rows.args, r->args[i - 1].name, TS_ARG_STRING,
				r->args[i - 1].value);
	if (about && about->external)
		ts_rocprof_arg(&r->rows, TS_ROCPROF_KEY_EXTERNAL, about->external);
	if (extdata && length > 2 && is_json(extdata, length))
		ts_row_args_add(&r->rows.args, ts_rocprof_text(&r->rows, "extdata"), TS_ARG_JSON,
				ts_import_string(r->rows.import, extdata, length));
}

/* ---- rocpd_event and rocpd_arg ---- */

/* {"message":"..."}: text of a marker. */
static uint32_t message_of(struct ts_rocpd *r, const char *text, size_t length)
{
	struct ts_json_string value = { 0 };
	struct ts_json js;

	ts_json_init(&js, text, length, true);
	if (ts_json_find_member(&js, "message") || ts_json_scan_string(&js, &value))
		return 0;
	ts_text_clear(&r->name);
	ts_json_unescape(&value, &r->name);
	return ts_import_string(r->rows.import, ts_text_cstr(&r->name), r->name.length);
}

static int read_about(struct ts_rocpd *r)
{
	enum { ID, CATEGORY, STACK, CORRELATION, DATA };
	static const char *const columns[] = { "id", "category_id", "stack_id", "correlation_id",
					       "extdata" };
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "event", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		struct ts_rocpd_event *event = ts_rocpd_put(&r->events, ts_sqlite_int(&query, ID));
		int64_t category = ts_sqlite_int(&query, CATEGORY);
		int64_t external = ts_sqlite_int(&query, CORRELATION);
		size_t length;
		const char *extdata = ts_sqlite_text(&query, DATA, &length);

		rc = event ? TS_OK : TS_ENOMEM;
		if (rc)
			continue;
		event->category = category >= 0 && category <= UINT32_MAX ? (uint32_t)category : 0;
		/*
		 * stack_id is the internal correlation id of other formats, this one the external
		 * id.
		 */
		event->correlation = ts_sqlite_int(&query, STACK);
		event->external = external == TS_ABSENT ? 0 : external;
		if (extdata && length > 2)
			event->message = message_of(r, extdata, length);
	}
	ts_sqlite_end(&query);
	return rc;
}

static int read_args(struct ts_rocpd *r)
{
	enum { ABOUT, NAME, VALUE };
	static const char *const columns[] = { "event_id", "name", "value" };
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, "arg", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		struct ts_rocpd_event *event =
			ts_rocpd_get(&r->events, ts_sqlite_int(&query, ABOUT));

		rc = TS_OK;
		if (!event || r->arg_count == UINT32_MAX) {
			ts_entities_add_loss(r->rows.entities, &ts_rocprof_lost_value, 1);
			continue;
		}
		if (ts_grow_array((void **)&r->args, &r->arg_capacity, r->arg_count + 1,
				  sizeof(*r->args)))
			rc = TS_ENOMEM;
		if (rc)
			continue;
		r->args[r->arg_count++] =
			(struct ts_rocpd_arg){ .name = ts_sqlite_string(&query, NAME),
					       .value = ts_sqlite_string(&query, VALUE),
					       .previous = event->last_arg };
		event->last_arg = (uint32_t)r->arg_count;
	}
	ts_sqlite_end(&query);
	return rc;
}

/* Arguments were prepended: reverses each list to restore their order. */
static void turn_args(struct ts_rocpd *r, struct ts_rocpd_event *event)
{
	uint32_t before = 0, at = event->last_arg;

	while (at) {
		uint32_t next = r->args[at - 1].previous;

		r->args[at - 1].previous = before;
		before = at;
		at = next;
	}
	event->last_arg = before;
}

static void turn_all_args(struct ts_rocpd *r)
{
	for (size_t i = 0; i < r->events.count; i++)
		turn_args(r, (struct ts_rocpd_event *)r->events.items + i);
	for (size_t i = 0; i < r->events.other_count; i++)
		turn_args(r, (struct ts_rocpd_event *)r->events.other_items + i);
}

/* ---- commands ---- */

static uint32_t kernel_name(struct ts_rocpd *r, int64_t kernel, int64_t region,
			    struct ts_rocpd_symbol *symbol)
{
	const struct ts_rocpd_string *renamed = ts_rocpd_string(r, region);
	char text[48];

	if (!renamed->is_empty)
		return renamed->string;
	if (symbol && !symbol->name && symbol->length)
		symbol->name = ts_import_string(r->rows.import, symbol->text, symbol->length);
	if (symbol && symbol->name)
		return symbol->name;
	snprintf(text, sizeof(text), "kernel %lld", (long long)kernel);
	return ts_rocprof_text(&r->rows, text);
}

enum {
	AGENT = FIRST_TABLE_COLUMN,
	KERNEL,
	DISPATCH,
	PRIVATE,
	GROUP,
	BLOCK_X,
	BLOCK_Y,
	BLOCK_Z,
	GRID_X,
	GRID_Y,
	GRID_Z,
	REGION
};

static void set_sizes(const struct ts_sqlite_query *query, struct ts_rocprof_event *event)
{
	event->has_size = true;
	for (int i = 0; i < 3; i++) {
		int64_t block = ts_sqlite_int(query, BLOCK_X + i);
		int64_t grid = ts_sqlite_int(query, GRID_X + i);

		event->has_size &= block >= 0 && grid >= 0;
		event->block[i] = (uint64_t)block;
		event->grid[i] = (uint64_t)grid;
	}
}

static void add_dispatch(struct ts_rocpd *r, const struct ts_sqlite_query *query)
{
	int64_t kernel = ts_sqlite_int(query, KERNEL);
	struct ts_rocpd_symbol *symbol = ts_rocpd_get(&r->symbols, kernel);
	struct ts_rocpd_event *about;
	struct slot slot;
	struct ts_rocprof_event event = start_event(r, query, &slot);

	if (slot.agent == TS_ABSENT)
		slot.agent = ts_sqlite_int(query, AGENT);
	event.device = ts_rocpd_device(r, slot.process, slot.agent);
	event.stream = stream_of(r, &slot, &event, event.device);
	event.name = kernel_name(r, kernel, ts_sqlite_int(query, REGION), symbol);
	event.shared_bytes = ts_sqlite_int(query, GROUP);
	if (symbol) {
		event.registers = symbol->vgprs;
		event.is_collective = symbol->is_collective;
	}
	set_sizes(query, &event);
	about = ts_rocpd_get(&r->events, ts_sqlite_int(query, EVENT));
	if (about) {
		about->has_dispatch = true;
		about->start = event.start;
		about->device = event.device;
	}
	add_arg(r, TS_ROCPROF_KEY_THREAD, slot.thread);
	add_arg(r, TS_ROCPROF_KEY_QUEUE, slot.queue);
	add_arg(r, TS_ROCPROF_KEY_KERNEL, kernel);
	add_arg(r, TS_ROCPROF_KEY_DISPATCH, ts_sqlite_int(query, DISPATCH));
	add_arg(r, TS_ROCPROF_KEY_PRIVATE, ts_sqlite_int(query, PRIVATE));
	if (symbol) {
		add_arg(r, TS_ROCPROF_KEY_ACCUM_VGPR, symbol->accum_vgprs);
		add_arg(r, TS_ROCPROF_KEY_SGPR, symbol->sgprs);
	}
	add_args(r, query);
	ts_rocprof_add_kernel(&r->rows, &event);
}

/* Reads all rows of a table with a function that adds one. */
static int read_rows(struct ts_rocpd *r, const char *table, const char *const *columns,
		     size_t count,
		     void (*add)(struct ts_rocpd *r, const struct ts_sqlite_query *query))
{
	struct ts_sqlite_query query;
	int rc = ts_rocpd_select(r, &query, table, columns, count);

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		add(r, &query);
		rc = ts_writer_status(r->rows.writer, r->err);
	}
	ts_sqlite_end(&query);
	return rc;
}

static int read_dispatches(struct ts_rocpd *r)
{
	static const char *const columns[] = { COMMON_COLUMNS,
					       "agent_id",
					       "kernel_id",
					       "dispatch_id",
					       "private_segment_size",
					       "group_segment_size",
					       "workgroup_size_x",
					       "workgroup_size_y",
					       "workgroup_size_z",
					       "grid_size_x",
					       "grid_size_y",
					       "grid_size_z",
					       "region_name_id" };

	return read_rows(r, "kernel_dispatch", columns, TS_ARRAY_SIZE(columns), add_dispatch);
}

static void add_copy(struct ts_rocpd *r, const struct ts_sqlite_query *query)
{
	enum { NAME = FIRST_TABLE_COLUMN, DST_AGENT, DST_ADDRESS, SRC_AGENT, SRC_ADDRESS, SIZE };
	const struct ts_rocpd_string *name = ts_rocpd_string(r, ts_sqlite_int(query, NAME));
	int64_t dst = ts_sqlite_int(query, DST_AGENT), src = ts_sqlite_int(query, SRC_AGENT);
	int64_t dst_address = ts_sqlite_int(query, DST_ADDRESS);
	int64_t src_address = ts_sqlite_int(query, SRC_ADDRESS);
	struct slot slot;
	struct ts_rocprof_event event = start_event(r, query, &slot);

	event.name = name->string;
	event.operation = name->operation;
	event.device = ts_rocpd_device(r, slot.process, dst);
	event.other_device = ts_rocpd_device(r, slot.process, src);
	event.bytes = ts_sqlite_int(query, SIZE);
	if (event.device || event.other_device)
		event.stream = stream_of(r, &slot, &event,
					 event.device ? event.device : event.other_device);
	add_arg(r, TS_ROCPROF_KEY_THREAD, slot.thread);
	add_arg(r, TS_ROCPROF_KEY_SRC_AGENT, src);
	add_arg(r, TS_ROCPROF_KEY_DST_AGENT, dst);
	if (src_address > 0)
		ts_row_args_add(&r->rows.args, ts_rocprof_text(&r->rows, "src_address"), TS_ARG_INT,
				src_address);
	if (dst_address > 0)
		ts_row_args_add(&r->rows.args, ts_rocprof_text(&r->rows, "dst_address"), TS_ARG_INT,
				dst_address);
	add_args(r, query);
	ts_rocprof_add_copy(&r->rows, &event);
}

static int read_copies(struct ts_rocpd *r)
{
	static const char *const columns[] = { COMMON_COLUMNS, "name_id",      "dst_agent_id",
					       "dst_address",  "src_agent_id", "src_address",
					       "size" };

	return read_rows(r, "memory_copy", columns, TS_ARRAY_SIZE(columns), add_copy);
}

static void add_allocation(struct ts_rocpd *r, const struct ts_sqlite_query *query)
{
	enum { TABLE_AGENT = FIRST_TABLE_COLUMN, TYPE, LEVEL, ADDRESS, SIZE };
	size_t type_length, level_length;
	const char *type = ts_sqlite_text(query, TYPE, &type_length);
	const char *level = ts_sqlite_text(query, LEVEL, &level_length);
	int64_t address = ts_sqlite_int(query, ADDRESS);
	struct slot slot;
	struct ts_rocprof_event event = start_event(r, query, &slot);
	char name[64];

	if (slot.agent == TS_ABSENT)
		slot.agent = ts_sqlite_int(query, TABLE_AGENT);
	event.thread = ts_rocpd_thread(r, slot.process, slot.thread);
	event.bytes = ts_sqlite_int(query, SIZE);
	if (level && !strcmp(level, "SCRATCH")) {
		snprintf(name, sizeof(name), "SCRATCH_MEMORY_%.32s", type ? type : "");
		event.name = ts_rocprof_text(&r->rows, name);
		add_arg(r, TS_ROCPROF_KEY_AGENT, slot.agent);
		add_arg(r, TS_ROCPROF_KEY_QUEUE, slot.queue);
		if (event.bytes > 0)
			ts_row_args_add(&r->rows.args, ts_rocprof_text(&r->rows, "size"),
					TS_ARG_INT, event.bytes);
		add_args(r, query);
		ts_rocprof_add_range(&r->rows, &event);
		return;
	}
	snprintf(name, sizeof(name), "%.16s %.32s", level ? level : "", type ? type : "");
	event.device = ts_rocpd_device(r, slot.process, slot.agent);
	event.operation = type && (!strcmp(type, "FREE") || !strcmp(type, "RECLAIM"))
				  ? TS_ROCPROF_FREE
				  : TS_ROCPROF_ALLOCATE;
	event.address = address == TS_ABSENT ? 0 : (uint64_t)address;
	ts_row_args_add(&r->rows.args, r->rows.keys[TS_ROCPROF_KEY_OPERATION], TS_ARG_STRING,
			ts_import_string(r->rows.import, name, strlen(name)));
	add_args(r, query);
	ts_rocprof_add_allocation(&r->rows, &event);
}

static int read_allocations(struct ts_rocpd *r)
{
	static const char *const columns[] = { COMMON_COLUMNS, "agent_id", "type",
					       "level",        "address",  "size" };

	return read_rows(r, "memory_allocate", columns, TS_ARRAY_SIZE(columns), add_allocation);
}

/* ---- the host ---- */

static void add_region(struct ts_rocpd *r, const struct ts_sqlite_query *query)
{
	enum { NAME = FIRST_TABLE_COLUMN };
	const struct ts_rocpd_string *name = ts_rocpd_string(r, ts_sqlite_int(query, NAME));
	const struct ts_rocpd_event *about = ts_rocpd_get(&r->events, ts_sqlite_int(query, EVENT));
	const struct ts_rocpd_string *category =
		ts_rocpd_string(r, about ? (int64_t)about->category : -1);
	struct slot slot;
	struct ts_rocprof_event event = start_event(r, query, &slot);

	event.thread = ts_rocpd_thread(r, slot.process, slot.thread);
	event.name = name->string;
	event.operation = name->operation;
	add_args(r, query);
	if (category->is_call) {
		ts_rocprof_add_call(&r->rows, &event);
		return;
	}
	if (category->is_marker && event.operation != TS_ROCPROF_PLAIN)
		event.category = ts_rocprof_text(&r->rows, "roctx");
	if (!category->is_marker)
		event.operation = TS_ROCPROF_PLAIN;
	if (about && about->message)
		event.name = about->message;
	ts_rocprof_add_range(&r->rows, &event);
}

static int read_regions(struct ts_rocpd *r)
{
	static const char *const columns[] = { COMMON_COLUMNS, "name_id" };

	return read_rows(r, "region", columns, TS_ARRAY_SIZE(columns), add_region);
}

/* Calls without a duration, and marks. */
static void add_instant(struct ts_rocpd *r, const struct ts_sqlite_query *query)
{
	enum { TIMESTAMP = FIRST_TABLE_COLUMN, TIMESTAMP_ID, NAME };
	const struct ts_rocpd_event *about = ts_rocpd_get(&r->events, ts_sqlite_int(query, EVENT));
	const struct ts_rocpd_string *category =
		ts_rocpd_string(r, about ? (int64_t)about->category : -1);
	const struct ts_rocpd_string *name = ts_rocpd_string(r, ts_sqlite_int(query, NAME));
	const struct ts_rocpd_track *track = ts_rocpd_get(&r->tracks, ts_sqlite_int(query, TRACK));
	struct slot slot;
	struct ts_rocprof_event event = start_event(r, query, &slot);

	event.start = event.end = time_of(r, query, TIMESTAMP, TIMESTAMP_ID);
	event.thread = ts_rocpd_thread(r, slot.process, slot.thread);
	event.name = name->string;
	if (!event.name && track)
		event.name = ts_rocpd_string(r, track->name)->string;
	if (category->is_marker)
		event.category = ts_rocprof_text(&r->rows, "roctx");
	if (about && about->message)
		event.name = about->message;
	event.operation = TS_ROCPROF_MARK;
	add_args(r, query);
	ts_rocprof_add_range(&r->rows, &event);
}

static int read_samples(struct ts_rocpd *r)
{
	static const char *const columns[] = { COMMON_COLUMNS, "timestamp", "timestamp_id",
					       "name_id" };

	return read_rows(r, "sample", columns, TS_ARRAY_SIZE(columns), add_instant);
}

/* ---- counters ---- */

static int by_counter(const void *left, const void *right)
{
	const struct ts_rocpd_value *a = left, *b = right;

	return a->counter < b->counter ? -1 : a->counter > b->counter;
}

/* The values of one dispatch; values of one counter are added up. */
static void add_values(struct ts_rocpd *r, int64_t number)
{
	const struct ts_rocpd_event *about = ts_rocpd_get(&r->events, number);
	struct ts_rocprof_event event = ts_rocprof_event_none;

	if (!r->value_count)
		return;
	if (!about || !about->has_dispatch) {
		ts_entities_add_loss(r->rows.entities, &ts_rocprof_lost_value, r->value_count);
		r->value_count = 0;
		return;
	}
	event.start = about->start;
	event.device = about->device;
	event.category = ts_rocprof_text(&r->rows, "counter_collection");
	qsort(r->values, r->value_count, sizeof(*r->values), by_counter);
	for (size_t i = 0, next; i < r->value_count; i = next) {
		const struct ts_rocpd_string *counter =
			ts_rocpd_get(&r->counters, r->values[i].counter);
		double sum = 0;

		for (next = i;
		     next < r->value_count && r->values[next].counter == r->values[i].counter;
		     next++)
			sum += r->values[next].value;
		event.name = counter ? counter->string : ts_rocprof_text(&r->rows, "counter");
		ts_rocprof_add_counter(&r->rows, &event, sum);
	}
	r->value_count = 0;
}

static int read_values(struct ts_rocpd *r)
{
	enum { ABOUT, COUNTER, VALUE };
	static const char *const columns[] = { "event_id", "pmc_id", "value" };
	struct ts_sqlite_query query;
	int64_t last = TS_ABSENT, about;
	int rc = ts_rocpd_select(r, &query, "pmc_event", columns, TS_ARRAY_SIZE(columns));

	while (!rc && (rc = ts_sqlite_step(&query, r->err)) > 0) {
		double value = 0;

		about = ts_sqlite_int(&query, ABOUT);
		if (about != last)
			add_values(r, last);
		last = about;
		rc = ts_grow_array((void **)&r->values, &r->value_capacity, r->value_count + 1,
				   sizeof(*r->values));
		if (rc)
			break;
		ts_sqlite_double(&query, VALUE, &value);
		r->values[r->value_count++] =
			(struct ts_rocpd_value){ .counter = ts_sqlite_int(&query, COUNTER),
						 .value = value };
	}
	ts_sqlite_end(&query);
	if (rc != TS_ENOMEM)
		add_values(r, last);
	return rc;
}

int ts_rocpd_read_events(struct ts_rocpd *r)
{
	static int (*const readers[])(struct ts_rocpd * r) = {
		read_args,   read_regions,     read_dispatches, read_values,
		read_copies, read_allocations, read_samples,
	};
	int rc = read_about(r), first = rc;

	for (size_t i = 0; i < TS_ARRAY_SIZE(readers) && (!rc || rc == TS_EFORMAT); i++) {
		rc = readers[i](r);
		if (!i)
			turn_all_args(r);
		if (rc && !first) {
			first = rc;
			r->err = NULL;
		}
	}
	return rc && rc != TS_EFORMAT ? rc : first;
}
