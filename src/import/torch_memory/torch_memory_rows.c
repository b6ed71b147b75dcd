/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `allocation` and `mark`, with their running sums. */
#include "base/ns.h"
#include "import/torch_memory/torch_memory.h"

/* Members of an entry with a column, or without information. */
static bool is_plain(const struct torch_memory *m, uint32_t key, ts_pickle_value value)
{
	struct ts_pickle_items items;
	ts_pickle_value first, second;

	if (key >= TEXT_ACTION && key <= TEXT_FRAMES)
		return true;
	if (key == TEXT_USER_METADATA)
		return ts_pickle_text(value) == TEXT_EMPTY;
	if (key == TEXT_COMPILE_CONTEXT)
		return ts_pickle_text(value) == TEXT_NOT_COMPILED ||
		       ts_pickle_text(value) == TEXT_EMPTY;
	if (key != TEXT_POOL_ID || ts_pickle_count(&m->pickle, value) != 2)
		return false;
	/* The default pool is (0, 0). */
	items = ts_pickle_items(&m->pickle, value);
	return ts_pickle_next(&items, &first) && ts_pickle_next(&items, &second) &&
	       first == TS_PICKLE_INT && second == TS_PICKLE_INT;
}

static void add_extras(struct torch_memory *m, const struct torch_entry *entry)
{
	struct ts_pickle_items items;
	ts_pickle_value key, value;

	if (!entry->extras)
		return;
	items = ts_pickle_items(&m->pickle, entry->value);
	while (ts_pickle_next_pair(&items, &key, &value)) {
		uint32_t text = ts_pickle_text(key);

		if (text == TS_STRMAP_NONE)
			ts_entities_add_loss(&m->entities, &torch_loss_value, 1);
		else if (!is_plain(m, text, value))
			torch_arg(m, torch_string(m, text), value);
	}
}

/* Compares numbers and texts by value, lists and dicts by their items, one level deep. */
static bool is_same(const struct torch_memory *m, ts_pickle_value a, ts_pickle_value b)
{
	struct ts_pickle_items left, right;
	ts_pickle_value x = TS_PICKLE_NONE, y = TS_PICKLE_NONE;

	if (a == b)
		return true;
	if (!ts_pickle_is_container(a) || ts_pickle_kind(a) != ts_pickle_kind(b) ||
	    ts_pickle_count(&m->pickle, a) != ts_pickle_count(&m->pickle, b))
		return false;
	left = ts_pickle_items(&m->pickle, a);
	right = ts_pickle_items(&m->pickle, b);
	while (x == y && ts_pickle_next(&left, &x) && ts_pickle_next(&right, &y))
		;
	return x == y;
}

/* The next member without a column. */
static bool next_extra(struct ts_pickle_items *items, ts_pickle_value *ret_key,
		       ts_pickle_value *ret_value)
{
	while (ts_pickle_next_pair(items, ret_key, ret_value))
		if (ts_pickle_text(*ret_key) < TEXT_ACTION ||
		    ts_pickle_text(*ret_key) > TEXT_FRAMES)
			return true;
	return false;
}

bool torch_same_extras(const struct torch_memory *m, const struct torch_entry *a,
		       const struct torch_entry *b)
{
	struct ts_pickle_items left = ts_pickle_items(&m->pickle, a->value);
	struct ts_pickle_items right = ts_pickle_items(&m->pickle, b->value);
	ts_pickle_value key, value, other_key, other_value;

	if (a->extras != b->extras)
		return false;
	while (next_extra(&left, &key, &value) && next_extra(&right, &other_key, &other_value))
		if (key != other_key || !is_same(m, value, other_value))
			return false;
	return true;
}

static void add_row(struct torch_memory *m, struct ts_allocation_row *row)
{
	row->shape = ts_row_args_shape(&m->args, m->import->writer);
	ts_writer_add(m->import->writer, TS_TABLE_ALLOCATION, row, m->args.values);
	m->import->result.events++;
}

static struct ts_allocation_row row_of(struct torch_memory *m, const struct torch_device *device,
				       const struct torch_entry *entry,
				       enum ts_allocation_kind kind, bool is_before)
{
	struct ts_allocation_row row = ts_allocation_none;

	m->entities.time = entry->time;
	row.start = entry->time;
	row.device = device->id;
	row.stream = torch_stream(m, device, entry->stream);
	row.kind = kind;
	row.address = entry->address;
	row.bytes = entry->bytes;
	row.stack = torch_stack(m, entry->frames);
	if (is_before)
		ts_row_args_add(&m->args, torch_key(m, "before_recording"), TS_ARG_BOOL, 1);
	else
		add_extras(m, entry);
	return row;
}

static int64_t change(int64_t sum, const struct torch_entry *entry, enum ts_allocation_kind kind)
{
	return kind == TS_ALLOCATION_ALLOC ? ts_ns_add(sum, entry->bytes)
					   : ts_ns_sub(sum, entry->bytes);
}

/* Uses and clears arguments that the caller put into m->args. */
void torch_add_allocation(struct torch_memory *m, struct torch_device *device,
			  const struct torch_entry *entry, enum ts_allocation_kind kind,
			  bool is_before)
{
	struct ts_allocation_row row = row_of(m, device, entry, kind, is_before);

	device->total = change(device->total, entry, kind);
	row.pool = m->pool;
	row.total_bytes = device->total;
	if (!is_before)
		row.reserved_bytes = device->reserved;
	add_row(m, &row);
	ts_row_args_clear(&m->args);
}

void torch_add_segment(struct torch_memory *m, struct torch_device *device,
		       const struct torch_entry *entry, enum ts_allocation_kind kind,
		       bool is_before)
{
	struct ts_allocation_row row = row_of(m, device, entry, kind, is_before);
	uint32_t action = entry->action;

	/* Mapped and unmapped pieces need not match: an address would pair unrelated rows. */
	if (action == TEXT_SEGMENT_MAP || action == TEXT_SEGMENT_UNMAP) {
		ts_row_args_add(&m->args, torch_key(m, "address"), TS_ARG_INT, entry->address);
		ts_row_args_add(&m->args, torch_string(m, TEXT_ACTION), TS_ARG_STRING,
				torch_string(m, action));
		row.address = TS_ABSENT;
	}
	device->reserved = change(device->reserved, entry, kind);
	row.pool = m->segment_pool;
	/* Bytes in use are reported by allocator rows. */
	row.reserved_bytes = device->reserved;
	add_row(m, &row);
	ts_row_args_clear(&m->args);
}

static void add_number(struct torch_memory *m, const char *key, int64_t number)
{
	if (number != TS_ABSENT)
		ts_row_args_add(&m->args, torch_key(m, key), TS_ARG_INT, number);
}

void torch_add_mark(struct torch_memory *m, struct torch_device *device,
		    const struct torch_entry *entry)
{
	struct ts_mark_row row = ts_mark_none;

	ts_row_args_clear(&m->args);
	m->entities.time = entry->time;
	row.start = entry->time;
	row.thread = torch_thread(m, device);
	row.name = torch_string(m, entry->action);
	row.category = m->category;
	row.stack = torch_stack(m, entry->frames);
	add_number(m, "device", device->number);
	add_number(m, "addr", entry->address);
	add_number(m, "size", entry->bytes);
	add_number(m, "stream", entry->stream);
	add_extras(m, entry);
	row.shape = ts_row_args_shape(&m->args, m->import->writer);
	ts_writer_add(m->import->writer, TS_TABLE_MARK, &row, m->args.values);
	m->import->result.events++;
	ts_row_args_clear(&m->args);
}
