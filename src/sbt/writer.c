/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace writer: collects rows by table, passes full tables to encoders, and appends the chunks in
 * the order in which they were sealed, so that whatever a chunk refers to always precedes it.
 */
#include <tracesmith/writer.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/local/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/text.h"
#include "model/shapes.h"
#include "model/table.h"
#include "sbt/chunk.h"
#include "sbt/chunk_append.h"
#include "sbt/sbt_layout.h"

#define DEFAULT_CHUNK_ROWS 65536u
#define DEFAULT_LEVEL 4
#define DEFAULT_STRING_MEMORY ((size_t)256 << 20)
#define MAX_THREADS 64
/* A chunk is sealed early when its arguments or texts grow beyond these. */
#define SEAL_VALUES (SBT_MAX_VALUES / 4)
#define SEAL_STRINGS 16384u
#define SEAL_BYTES ((size_t)1 << 20)
/*
 * Clocks of one table that may have an open chunk at once, and the rows they may hold together, in
 * chunks.
 */
#define OPEN_CLOCKS 64
#define OPEN_CHUNKS 4
/*
 * Texts longer than this are cut if a reader would refuse to load them: it limits its memory in
 * proportion to the file (reader.c), and repetitive texts take up next to none of that.
 */
#define CUT_ABOVE ((size_t)1024)
#define CUT_TO ((size_t)256)
/* Texts of a resumed file, whatever its size: the earlier ones are not known. */
#define RESUMED_BUDGET (UINT64_C(16) << 20)
/* Blob content is large and arrives while a program waits. */
#define BLOB_LEVEL 1

/* A chunk between sealed table and file. */
struct slot {
	struct ts_job job;
	struct ts_table table;
	struct ts_text bytes; /* of a BYTES column */
	struct ts_shapes *shapes;
	struct sbt_chunk_input input;
	struct sbt_chunk_encoder encoder;
	struct ts_text out;
	struct sbt_chunk_header header;
	int result;
};

/* Rows of one table and clock that are not yet in a chunk. */
struct pending {
	struct ts_table rows;
	struct ts_table long_rows;
	uint32_t clock; /* for tables with time; else 0 */
	uint64_t used;  /* when it was last used */
};

/*
 * A table. Events of several clocks arrive mixed, and each clock gets its own chunk. Other tables
 * have a single one: a later row may replace an earlier one there, so the file must keep their
 * order.
 */
struct table {
	const struct ts_table_info *info;
	struct pending *pending; /* of the clock used last; never NULL */
	struct pending **clocks; /* all, in order of their first row */
	size_t clock_count, clock_capacity;
	struct ts_table spare; /* memory of a table that has been written */
	struct ts_text bytes;  /* of a BYTES column */
	uint64_t added;
	uint64_t next_id;   /* assigned ids: entities, or rows of a dictionary */
	uint64_t sealed_id; /* dictionaries: id of the first row that is not in a chunk */
	bool has_time;
};

struct ts_writer {
	struct sbt_appender file;
	struct ts_writer_options options;
	struct table tables[TS_TABLE_COUNT];
	uint64_t uses; /* use counter, to find the least recently used clock */
	struct ts_strmap strings;
	struct ts_text cut_text; /* scratch */
	uint64_t text_bytes;     /* memory of all texts in a reader */
	struct ts_shapes shapes;
	struct ts_strmap frames; /* bytes of a frame row to id */
	struct ts_pairmap stacks;
	uint16_t *stack_depths; /* less 1, by id from first_stack on */
	size_t stack_count, stack_capacity;
	uint64_t first_stack;
	uint32_t cut_frame; /* innermost frame of stacks that are too deep; 0: none so far */
	struct ts_writer_cuts cuts;
	struct ts_pool *pool;
	struct slot *slots; /* a ring: slot_count in use from first_slot on */
	uint32_t slot_capacity, first_slot, slot_count;
	uint32_t clock;
	bool finished;
	struct ts_error error; /* sticky; code 0 if none */
};

static int fail(struct ts_writer *writer, int code, const char *message)
{
	if (!writer->error.code)
		ts_error_set(&writer->error, code, "trace '%s': %s", writer->file.output.path,
			     message);
	return writer->error.code;
}

static int fail_memory(struct ts_writer *writer)
{
	return fail(writer, TS_ENOMEM, "no memory");
}

/* ---- chunks on their way ---- */

static void encode_slot(void *argument)
{
	struct slot *slot = argument;

	ts_text_clear(&slot->out);
	slot->input.table = &slot->table;
	slot->input.bytes = slot->bytes.data;
	slot->input.byte_count = slot->bytes.length;
	slot->result = sbt_chunk_encode(&slot->encoder, &slot->input, &slot->out, &slot->header);
}

static bool has_memory(const struct ts_table *table)
{
	for (int i = 0; i < table->info->column_count; i++)
		if (table->columns[i])
			return true;
	return table->arg_offsets || table->arg_values;
}

/* Returns the memory of a written table. */
static void recycle(struct ts_writer *writer, struct slot *slot)
{
	struct table *table = &writer->tables[slot->table.info->id];

	ts_table_clear(&slot->table);
	if (has_memory(&table->spare))
		ts_table_release(&slot->table);
	else
		table->spare = slot->table;
	ts_table_init(&slot->table, NULL);
	ts_text_clear(&slot->bytes);
}

/* Waits for the oldest chunk and appends it. */
static int write_oldest(struct ts_writer *writer)
{
	struct slot *slot = &writer->slots[writer->first_slot];

	ts_pool_wait(writer->pool, &slot->job);
	writer->first_slot = (writer->first_slot + 1) % writer->slot_capacity;
	writer->slot_count--;
	if (slot->result)
		fail_memory(writer);
	if (!writer->error.code && slot->header.rows)
		sbt_appender_add(&writer->file, &slot->header, slot->out.data, &writer->error);
	recycle(writer, slot);
	return writer->error.code;
}

static int write_all(struct ts_writer *writer)
{
	while (writer->slot_count)
		write_oldest(writer);
	return writer->error.code;
}

/* A free slot; writes what has been encoded meanwhile. */
static struct slot *take_slot(struct ts_writer *writer)
{
	struct slot *slot;

	while (writer->slot_count &&
	       (writer->slot_count == writer->slot_capacity ||
		ts_pool_is_done(writer->pool, &writer->slots[writer->first_slot].job)))
		write_oldest(writer);
	slot = &writer->slots[(writer->first_slot + writer->slot_count) % writer->slot_capacity];
	writer->slot_count++;
	return slot;
}

/* ---- sealing ---- */

static bool has_time(const struct ts_table_info *info)
{
	for (int i = 0; i < info->column_count; i++)
		if (info->columns[i].type == TS_COLUMN_TIME)
			return true;
	return false;
}

/* Moves rows into a slot for encoding. `rows` is pending->rows or ->long_rows. */
static int submit(struct ts_writer *writer, struct pending *pending, struct ts_table *rows,
		  int64_t longest, unsigned int flags)
{
	const struct ts_table_info *info = rows->info;
	struct table *table = &writer->tables[info->id];
	struct slot *slot = take_slot(writer);
	struct ts_text swap;

	slot->table = *rows;
	if (has_memory(&table->spare))
		*rows = table->spare;
	else
		ts_table_init(rows, info);
	ts_table_init(&table->spare, info);
	swap = slot->bytes;
	slot->bytes = table->bytes;
	table->bytes = swap;
	slot->input = (struct sbt_chunk_input){
		.shapes = &writer->shapes,
		.longest = longest,
		.clock = pending->clock,
		.flags = (uint16_t)flags,
	};
	if (info->kind == TS_KIND_DICTIONARY) {
		slot->input.first_id = table->sealed_id;
		table->sealed_id += slot->table.rows;
	}
	slot->encoder.columns.level = writer->options.level;
	slot->encoder.columns.bytes_level = info->id == TS_TABLE_BLOB ? BLOB_LEVEL : 0;
	ts_pool_submit(writer->pool, &slot->job, encode_slot, slot);
	return writer->error.code;
}

/* Everything of one clock. */
static int seal_pending(struct ts_writer *writer, struct pending *pending)
{
	if (pending->rows.rows)
		submit(writer, pending, &pending->rows, INT64_MAX, 0);
	if (pending->long_rows.rows)
		submit(writer, pending, &pending->long_rows, INT64_MAX, SBT_FLAG_LONG);
	return writer->error.code;
}

static int seal(struct ts_writer *writer, enum ts_table_id table)
{
	struct table *all = &writer->tables[table];

	for (size_t i = 0; i < all->clock_count; i++)
		seal_pending(writer, all->clocks[i]);
	return writer->error.code;
}

/* What events refer to, in dependency order. */
static const enum ts_table_id referred[] = {
	TS_TABLE_STRING,  TS_TABLE_SHAPE,  TS_TABLE_BLOB,   TS_TABLE_SOURCE,     TS_TABLE_HOST,
	TS_TABLE_PROCESS, TS_TABLE_THREAD, TS_TABLE_DEVICE, TS_TABLE_STREAM,     TS_TABLE_MAPPING,
	TS_TABLE_FRAME,   TS_TABLE_STACK,  TS_TABLE_OBJECT, TS_TABLE_CLOCK_SYNC,
};

static int seal_referred(struct ts_writer *writer)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(referred); i++)
		seal(writer, referred[i]);
	return writer->error.code;
}

static bool is_long(const struct ts_table *rows, uint32_t row, int64_t span)
{
	int64_t duration = ts_table_value(rows, rows->info->duration, row);

	return duration > span || duration == -1;
}

/* Moves rows longer than the chunk's span aside; returns the length above which rows are long. */
static int64_t set_long_rows_aside(struct ts_writer *writer, struct pending *pending)
{
	const struct ts_table *rows = &pending->rows;
	const struct ts_table_info *info = rows->info;
	int64_t first = ts_table_value(rows, info->start, 0), last = first, span;
	uint32_t count = 0;

	for (uint32_t i = 1; i < rows->rows; i++) {
		first = TS_MIN(first, ts_table_value(rows, info->start, i));
		last = TS_MAX(last, ts_table_value(rows, info->start, i));
	}
	if (__builtin_sub_overflow(last, first, &span))
		return INT64_MAX;
	for (uint32_t i = 0; i < rows->rows; i++)
		count += is_long(rows, i, span);
	if (count == 0 || count > rows->rows / 8 ||
	    pending->long_rows.rows + count > SBT_MAX_ROWS ||
	    pending->long_rows.values + rows->values > SBT_MAX_VALUES)
		return INT64_MAX;
	for (uint32_t i = 0; i < rows->rows; i++) {
		uint32_t shape = 0, values;

		if (!is_long(rows, i, span))
			continue;
		if (info->shape >= 0)
			shape = (uint32_t)ts_table_value(rows, info->shape, i);
		values = ts_shapes_get(&writer->shapes, shape).value_count;
		if (ts_table_add_from(&pending->long_rows, rows, i, values))
			fail_memory(writer);
	}
	return span;
}

/* Seals a full chunk of events: first what it refers to, with its long rows apart. */
static int seal_full(struct ts_writer *writer, struct pending *pending)
{
	int64_t longest = INT64_MAX;

	seal_referred(writer);
	if (pending->rows.rows == 0) /* it was among those */
		return writer->error.code;
	if (pending->rows.info->start >= 0 && pending->rows.info->duration >= 0)
		longest = set_long_rows_aside(writer, pending);
	submit(writer, pending, &pending->rows, longest, 0);
	if (pending->long_rows.rows >= writer->options.chunk_rows / 2)
		submit(writer, pending, &pending->long_rows, INT64_MAX, SBT_FLAG_LONG);
	return writer->error.code;
}

int ts_writer_flush(struct ts_writer *writer)
{
	seal_referred(writer);
	for (int i = 0; i < TS_TABLE_COUNT; i++)
		seal(writer, (enum ts_table_id)i);
	if (!write_all(writer))
		sbt_output_sync(&writer->file.output, &writer->error);
	return writer->error.code;
}

/* ---- clocks ---- */

static void free_pending(struct pending *pending)
{
	if (!pending)
		return;
	ts_table_release(&pending->rows);
	ts_table_release(&pending->long_rows);
	free(pending);
}

static struct pending *add_pending(struct ts_writer *writer, struct table *table, uint32_t clock)
{
	struct pending *pending = calloc(1, sizeof(*pending));

	if (!pending || ts_grow_array((void **)&table->clocks, &table->clock_capacity,
				      table->clock_count + 1, sizeof(*table->clocks))) {
		free(pending);
		fail_memory(writer);
		return NULL;
	}
	ts_table_init(&pending->rows, table->info);
	ts_table_init(&pending->long_rows, table->info);
	pending->clock = clock;
	table->clocks[table->clock_count++] = pending;
	return pending;
}

/* Writes the least recently used clock and reuses its entry. */
static struct pending *take_oldest(struct ts_writer *writer, struct table *table, uint32_t clock)
{
	size_t oldest = 0;
	struct pending *pending;

	for (size_t i = 1; i < table->clock_count; i++)
		if (table->clocks[i]->used < table->clocks[oldest]->used)
			oldest = i;
	pending = table->clocks[oldest];
	if (pending->rows.rows || pending->long_rows.rows) {
		seal_referred(writer);
		seal_pending(writer, pending);
	}
	pending->clock = clock;
	return pending;
}

/* Selects the rows of a clock other than that of the last row. */
static struct pending *find_clock(struct ts_writer *writer, struct table *table, uint32_t clock)
{
	for (size_t i = 0; i < table->clock_count; i++)
		if (table->clocks[i]->clock == clock)
			return table->clocks[i];
	/* An empty one, or the only one of a table whose rows keep their order. */
	if (table->info->kind != TS_KIND_EVENT ||
	    (table->clock_count == 1 && !table->pending->rows.rows &&
	     !table->pending->long_rows.rows) ||
	    table->clock_count >= OPEN_CLOCKS)
		return take_oldest(writer, table, clock);
	return add_pending(writer, table, clock);
}

/* Memory of a clock's rows, in rows. */
static uint64_t weight(const struct pending *pending)
{
	return (uint64_t)pending->rows.rows + pending->long_rows.rows +
	       (pending->rows.values + pending->long_rows.values) / 4;
}

/* The rows of many clocks together are bounded like those of one: the largest is written. */
static void bound_rows(struct ts_writer *writer, struct table *table)
{
	uint64_t sum = 0;
	size_t largest = 0;

	for (size_t i = 0; i < table->clock_count; i++) {
		sum += weight(table->clocks[i]);
		if (weight(table->clocks[i]) > weight(table->clocks[largest]))
			largest = i;
	}
	if (sum < (uint64_t)OPEN_CHUNKS * writer->options.chunk_rows)
		return;
	seal_full(writer, table->clocks[largest]);
	seal_pending(writer, table->clocks[largest]);
}

/* The rows of the table in the writer's clock; NULL on failure. */
static struct pending *pending_of(struct ts_writer *writer, struct table *table)
{
	uint32_t clock = table->has_time ? writer->clock : 0;
	struct pending *pending;

	if (TS_LIKELY(table->pending->clock == clock))
		return table->pending;
	table->pending->used = ++writer->uses;
	bound_rows(writer, table);
	pending = find_clock(writer, table, clock);
	if (!pending || writer->error.code)
		return NULL;
	table->pending = pending;
	return pending;
}

int ts_writer_set_clock(struct ts_writer *writer, uint32_t clock)
{
	writer->clock = clock;
	return writer->error.code;
}

/* ---- rows ---- */

static const char *row_fault(const struct ts_writer *writer, const struct ts_table_info *info,
			     const int64_t *row)
{
	if (!info || info->kind == TS_KIND_INTERNAL || info->kind == TS_KIND_DERIVED)
		return "callers cannot add rows to this table";
	if (info->id == TS_TABLE_STRING || info->id == TS_TABLE_FRAME ||
	    info->id == TS_TABLE_STACK || info->id == TS_TABLE_BLOB)
		return "rows of this table have functions of their own";
	if (info->start >= 0 && row[info->start] == TS_ABSENT)
		return "an event needs a start";
	if (info->duration >= 0 && row[info->duration] < -1)
		return "a duration is negative";
	if (info->shape >= 0 && row[info->shape] &&
	    (uint64_t)row[info->shape] - writer->shapes.first_id >= writer->shapes.count)
		return "an event has an unknown shape";
	return NULL;
}

int ts_writer_add(struct ts_writer *writer, enum ts_table_id table, const void *row,
		  const int64_t *values)
{
	const struct ts_table_info *info = ts_table_info(table);
	const int64_t *words = row;
	struct pending *pending;
	uint32_t value_count = 0;
	const char *fault;

	if (TS_UNLIKELY(writer->error.code))
		return writer->error.code;
	fault = row_fault(writer, info, words);
	if (TS_UNLIKELY(fault != NULL))
		return fail(writer, TS_EINVAL, fault);
	pending = pending_of(writer, &writer->tables[table]);
	if (TS_UNLIKELY(!pending))
		return writer->error.code;
	if (info->shape >= 0 && words[info->shape])
		value_count = writer->shapes.shapes[words[info->shape] - writer->shapes.first_id]
				      .value_count;
	/* Sealed before the next row, so that the newest row can still be changed in place. */
	if (TS_UNLIKELY(pending->rows.rows >= writer->options.chunk_rows ||
			pending->rows.values + value_count > SEAL_VALUES) &&
	    seal_full(writer, pending))
		return writer->error.code;
	if (TS_UNLIKELY(ts_table_add(&pending->rows, row, values, value_count)))
		return fail_memory(writer);
	writer->tables[table].added++;
	return TS_OK;
}

int ts_writer_amend(struct ts_writer *writer, enum ts_table_id table, int column, int64_t value)
{
	struct ts_table *rows = &writer->tables[table].pending->rows;

	if (rows->rows == 0 || column < 0 || column >= rows->info->column_count ||
	    column == rows->info->shape)
		return fail(writer, TS_EINVAL, "no newest row to amend");
	return ts_table_amend(rows, column, value) ? fail_memory(writer) : writer->error.code;
}

int64_t ts_writer_new_id(struct ts_writer *writer, enum ts_table_id table)
{
	return (int64_t)writer->tables[table].next_id++;
}

/* ---- dictionaries ---- */

/* Appends a row to a dictionary table; returns its id, or 0. */
static uint32_t add_to_dictionary(struct ts_writer *writer, enum ts_table_id table, const void *row)
{
	struct table *all = &writer->tables[table];

	if (writer->error.code)
		return 0;
	if (all->next_id > UINT32_MAX) {
		fail(writer, TS_EINVAL, "a table ran out of ids");
		return 0;
	}
	if (ts_table_add(&all->pending->rows, row, NULL, 0)) {
		fail_memory(writer);
		return 0;
	}
	all->added++;
	return (uint32_t)all->next_id++;
}

/* The same for rows with a byte string; seals the chunk when it has grown large. */
static uint32_t add_bytes(struct ts_writer *writer, enum ts_table_id table, const void *row,
			  const void *data, size_t bytes)
{
	struct table *all = &writer->tables[table];
	uint32_t rows = all->pending->rows.rows;

	if (rows && (rows >= SEAL_STRINGS || all->bytes.length + bytes > SEAL_BYTES))
		seal(writer, table);
	ts_text_append(&all->bytes, data, bytes);
	if (ts_text_status(&all->bytes)) {
		fail_memory(writer);
		return 0;
	}
	return add_to_dictionary(writer, table, row);
}

static uint64_t text_budget(const struct ts_writer *writer)
{
	return SBT_TEXT_BUDGET + SBT_TEXT_BUDGET_A_BYTE * writer->file.output.bytes;
}

/* Would a reader refuse this text? */
static bool is_too_much(struct ts_writer *writer, const char *text, size_t length)
{
	if (writer->text_bytes + length <= text_budget(writer) ||
	    ts_strmap_find(&writer->strings, text, length) != TS_STRMAP_NONE)
		return false;
	/* How much the texts so far take up in the file. */
	seal(writer, TS_TABLE_STRING);
	write_all(writer);
	return writer->text_bytes + length > text_budget(writer);
}

/* The start and length of a text, as a string of JSON: some texts are values of JSON. */
static int cut_text(struct ts_writer *writer, const char **text, size_t *length)
{
	struct ts_text *cut = &writer->cut_text;

	ts_text_clear(cut);
	ts_text_append_json(cut, *text, ts_utf8_valid_prefix(*text, CUT_TO));
	cut->length -= cut->length != 0;
	ts_text_printf(cut, "... (cut: %zu bytes)\"", *length);
	if (ts_text_status(cut))
		return fail_memory(writer);
	*text = cut->data;
	*length = cut->length;
	return TS_OK;
}

uint32_t ts_writer_string(struct ts_writer *writer, const char *text, size_t length)
{
	struct ts_string_row row;
	bool is_new, is_cut = false;
	uint32_t id;

	if (TS_UNLIKELY(length > SBT_MAX_STRING_BYTES)) {
		fail(writer, TS_EINVAL, "a text is longer than 64 MiB");
		return 0;
	}
	if (TS_UNLIKELY(length > CUT_ABOVE) && is_too_much(writer, text, length)) {
		if (cut_text(writer, &text, &length))
			return 0;
		is_cut = true;
	}
	row.text = (int64_t)length;
	id = ts_strmap_intern(&writer->strings, text, length, &is_new);
	if (TS_UNLIKELY(id == TS_STRMAP_NONE)) {
		fail_memory(writer);
		return 0;
	}
	if (TS_LIKELY(!is_new))
		return writer->error.code ? 0 : id;
	if (!add_bytes(writer, TS_TABLE_STRING, &row, text, length))
		return 0;
	writer->text_bytes += SBT_TEXT_BYTES(length);
	writer->cuts.texts += is_cut;
	/* Bounds the memory for endless texts: forgotten ones are stored again when they recur. */
	if (ts_strmap_bytes(&writer->strings) > writer->options.string_memory)
		ts_strmap_forget(&writer->strings);
	return id;
}

const char *ts_writer_text(struct ts_writer *writer, uint32_t string, size_t *ret_length)
{
	return ts_strmap_text(&writer->strings, string, ret_length);
}

uint32_t ts_writer_shape(struct ts_writer *writer, const struct ts_field *fields, uint32_t count)
{
	struct ts_table *rows = &writer->tables[TS_TABLE_SHAPE].pending->rows;
	bool is_new;
	uint32_t id;

	if (count == 0)
		return 0;
	if (count > TS_SHAPE_MAX_FIELDS) {
		fail(writer, TS_EINVAL, "a shape has more than 1024 fields");
		return 0;
	}
	/* The fields of one shape are in one chunk. */
	if (rows->rows + count > writer->options.chunk_rows && rows->rows) {
		seal(writer, TS_TABLE_STRING);
		seal(writer, TS_TABLE_SHAPE);
	}
	id = ts_shapes_intern(&writer->shapes, fields, count, &is_new);
	if (!id)
		fail_memory(writer);
	for (uint32_t i = 0; id && is_new && i < count; i++) {
		struct ts_shape_row row = { .shape = id,
					    .key = fields[i].key,
					    .type = fields[i].type,
					    .column = fields[i].column,
					    .place = fields[i].beside };

		if (ts_table_add(rows, &row, NULL, 0))
			fail_memory(writer);
	}
	return writer->error.code ? 0 : id;
}

const struct ts_shape *ts_writer_shape_fields(struct ts_writer *writer, uint32_t shape)
{
	/* Only this thread adds shapes, so it may read without the lock. */
	shape -= writer->shapes.first_id;
	return shape < writer->shapes.count ? &writer->shapes.shapes[shape] : NULL;
}

/*
 * A dictionary row without texts of its own; whatever it refers to is in the file before its chunk.
 */
static uint32_t add_metadata_row(struct ts_writer *writer, enum ts_table_id table, const void *row)
{
	if (writer->tables[table].pending->rows.rows >= writer->options.chunk_rows)
		seal_referred(writer);
	return add_to_dictionary(writer, table, row);
}

uint32_t ts_writer_frame(struct ts_writer *writer, const struct ts_frame_row *frame)
{
	bool is_new;
	uint32_t id =
		ts_strmap_intern(&writer->frames, (const char *)frame, sizeof(*frame), &is_new);

	if (id == TS_STRMAP_NONE) {
		fail_memory(writer);
		return 0;
	}
	if (is_new)
		return add_metadata_row(writer, TS_TABLE_FRAME, frame);
	return writer->error.code ? 0 : id;
}

/* Frames of a stack; those of an earlier writer of the file are not known. */
static uint32_t depth_of(const struct ts_writer *writer, uint32_t stack)
{
	return stack >= writer->first_stack && stack - writer->first_stack < writer->stack_count
		       ? writer->stack_depths[stack - writer->first_stack] + 1u
		       : 0;
}

static uint32_t add_stack(struct ts_writer *writer, uint32_t parent, uint32_t frame, uint32_t depth)
{
	struct ts_stack_row row = { .parent = parent, .frame = frame };

	if (ts_grow_array((void **)&writer->stack_depths, &writer->stack_capacity,
			  writer->stack_count + 1, sizeof(*writer->stack_depths))) {
		fail_memory(writer);
		return 0;
	}
	writer->stack_depths[writer->stack_count++] = (uint16_t)(depth - 1);
	return add_metadata_row(writer, TS_TABLE_STACK, &row);
}

/* Says in place of the innermost frames that they are missing. */
static uint32_t cut_frame(struct ts_writer *writer)
{
	static const char text[] = "(inner frames left out: a stack has at most 65,536)";
	struct ts_frame_row row = ts_frame_none;

	if (!writer->cut_frame) {
		row.name = ts_writer_string(writer, text, sizeof(text) - 1);
		writer->cut_frame = ts_writer_frame(writer, &row);
	}
	return writer->cut_frame;
}

uint32_t ts_writer_stack(struct ts_writer *writer, uint32_t parent, uint32_t frame)
{
	uint32_t depth = depth_of(writer, parent) + 1;
	bool is_new, is_cut = false;
	uint64_t *id;

	if (TS_UNLIKELY(depth > TS_STACK_MAX_DEPTH))
		return writer->error.code ? 0 : parent;
	if (TS_UNLIKELY(depth == TS_STACK_MAX_DEPTH)) {
		/* A trace that is copied has such frames already. */
		is_cut = frame != cut_frame(writer);
		frame = writer->cut_frame;
	}
	id = ts_pairmap_insert(&writer->stacks, parent, frame, &is_new);
	if (!id) {
		fail_memory(writer);
		return 0;
	}
	if (is_new)
		*id = add_stack(writer, parent, frame, depth);
	writer->cuts.stacks += is_new && is_cut;
	return writer->error.code ? 0 : (uint32_t)*id;
}

uint32_t ts_writer_blob(struct ts_writer *writer, const void *data, size_t bytes)
{
	return ts_writer_blob_piece(writer, 0, ts_hash64(data, bytes), bytes, data, bytes);
}

uint32_t ts_writer_blob_piece(struct ts_writer *writer, uint32_t previous, uint64_t hash,
			      uint64_t total_bytes, const void *data, size_t bytes)
{
	struct ts_blob_row row = { .hash = (int64_t)hash,
				   .bytes = (int64_t)total_bytes,
				   .previous = previous,
				   .data = (int64_t)bytes };

	if (bytes > SBT_MAX_STRING_BYTES) {
		fail(writer, TS_EINVAL, "a piece of a blob is larger than 64 MiB");
		return 0;
	}
	if (previous >= writer->tables[TS_TABLE_BLOB].next_id) {
		fail(writer, TS_EINVAL, "a blob continues an unknown one");
		return 0;
	}
	return add_bytes(writer, TS_TABLE_BLOB, &row, data, bytes);
}

/* ---- from open to close ---- */

static int start_slots(struct ts_writer *writer, struct ts_error *err)
{
	int threads = writer->options.threads;

	if (threads == 0)
		threads = (int)ts_pool_processors() - 1;
	threads = TS_MAX(0, TS_MIN(threads, MAX_THREADS));
	writer->slot_capacity = threads ? (uint32_t)threads + 2 : 1;
	writer->slots = calloc(writer->slot_capacity, sizeof(*writer->slots));
	if (!writer->slots)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	return ts_pool_start(&writer->pool, (unsigned int)threads, err);
}

static void take_options(struct ts_writer *writer, const struct ts_writer_options *options)
{
	struct ts_writer_options *merged = &writer->options;

	if (options)
		memcpy(merged, options, TS_MIN(options->size, sizeof(*merged)));
	if (!merged->chunk_rows)
		merged->chunk_rows = DEFAULT_CHUNK_ROWS;
	merged->chunk_rows = TS_MIN(merged->chunk_rows, SBT_MAX_ROWS);
	merged->chunk_rows = TS_MAX(merged->chunk_rows, TS_SHAPE_MAX_FIELDS);
	if (!merged->level)
		merged->level = DEFAULT_LEVEL;
	if (!merged->string_memory)
		merged->string_memory = DEFAULT_STRING_MEMORY;
	writer->file.output.write = merged->write;
	writer->file.output.write_context = merged->write_context;
	writer->file.output.sync = merged->flags & TS_WRITER_SYNC;
	writer->file.output.locked = merged->flags & TS_WRITER_LOCKED;
}

static uint64_t next_id(const struct ts_writer_ids *ids, uint32_t table)
{
	return ids && ids->next[table] ? ids->next[table] : 1;
}

static_assert(TS_TABLE_COUNT <= TS_WRITER_ID_TABLES,
	      "struct ts_writer_ids has room for all tables");

static int init_table(struct ts_writer *writer, uint32_t id, const struct ts_writer_ids *ids)
{
	struct table *table = &writer->tables[id];

	table->info = ts_table_info(id);
	table->has_time = table->info && has_time(table->info);
	ts_table_init(&table->spare, table->info);
	table->next_id = next_id(ids, id);
	table->sealed_id = next_id(ids, id);
	table->pending = add_pending(writer, table, 0);
	return table->pending ? TS_OK : TS_ENOMEM;
}

static int init_tables(struct ts_writer *writer, const struct ts_writer_ids *ids,
		       struct ts_error *err)
{
	int result = TS_OK;

	for (uint32_t i = 0; !result && i < TS_TABLE_COUNT; i++)
		result = init_table(writer, i, ids);
	ts_strmap_init(&writer->strings, (uint32_t)next_id(ids, TS_TABLE_STRING));
	ts_strmap_init(&writer->frames, (uint32_t)next_id(ids, TS_TABLE_FRAME));
	ts_shapes_init(&writer->shapes, (uint32_t)next_id(ids, TS_TABLE_SHAPE));
	ts_pairmap_init(&writer->stacks);
	writer->first_stack = next_id(ids, TS_TABLE_STACK);
	/* Earlier writers of the file may have used up the budget; there is room for a bit more. */
	writer->text_bytes = ids ? SBT_TEXT_BUDGET - RESUMED_BUDGET : 0;
	return result ? ts_error_set(err, TS_ENOMEM, "no memory") : TS_OK;
}

/* A writer without a file yet. */
static int new_writer(struct ts_writer **ret_writer, const char *path,
		      const struct ts_writer_ids *ids, const struct ts_writer_options *options,
		      struct ts_error *err)
{
	struct ts_writer *writer;
	int result;

	if (!path || !*path || strcmp(path, "-") == 0)
		return ts_error_set(err, TS_EINVAL, "a trace needs a file name");
	writer = calloc(1, sizeof(*writer));
	if (!writer)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	take_options(writer, options);
	result = init_tables(writer, ids, err);
	if (!result)
		result = start_slots(writer, err);
	if (result)
		ts_writer_close(writer);
	else
		*ret_writer = writer;
	return result;
}

int ts_writer_open(struct ts_writer **ret_writer, const char *path,
		   const struct ts_writer_options *options, struct ts_error *err)
{
	struct sbt_file_header header;
	struct ts_writer *writer = NULL;
	int result = new_writer(&writer, path, NULL, options, err);

	if (!writer)
		return result;
	sbt_file_header_init(&header, writer->options.trace_id);
	result = sbt_appender_open(&writer->file, path, &header, err);
	if (result)
		ts_writer_close(writer);
	else
		*ret_writer = writer;
	return result;
}

/* Dictionary ids from the listed chunks; NULL if `ids` is not beyond these. */
static const char *ids_fault(const struct ts_table *index, const struct ts_writer_ids *ids)
{
	for (uint32_t i = 0; i < TS_TABLE_COUNT; i++)
		if (next_id(ids, i) > UINT32_MAX)
			return "a table ran out of ids";
	for (uint32_t i = 0; i < index->rows; i++) {
		int64_t table = ts_table_value(index, TS_COLUMN_OF(index, table), i);
		const struct ts_table_info *info = ts_table_info((uint32_t)table);
		uint64_t end = (uint64_t)ts_table_value(index, TS_COLUMN_OF(index, first_id), i) +
			       (uint64_t)ts_table_value(index, TS_COLUMN_OF(index, rows), i);

		if (info && info->kind == TS_KIND_DICTIONARY && end > next_id(ids, (uint32_t)table))
			return "its chunks contain ids that are not assigned yet";
	}
	return NULL;
}

int ts_writer_resume(struct ts_writer **ret_writer, const char *path, uint64_t bytes,
		     const struct ts_writer_ids *ids, const struct ts_writer_options *options,
		     struct ts_error *err)
{
	struct ts_writer *writer = NULL;
	const char *fault;
	int result = new_writer(&writer, path, ids, options, err);

	if (!writer)
		return result;
	result = sbt_appender_resume(&writer->file, path, bytes, writer->options.trace_id, err);
	fault = result ? NULL : ids_fault(&writer->file.index, ids);
	if (fault)
		result = ts_error_set(err, TS_EFORMAT, "trace '%s' cannot be continued: %s", path,
				      fault);
	if (result)
		ts_writer_close(writer);
	else
		*ret_writer = writer;
	return result;
}

void ts_writer_ids(const struct ts_writer *writer, struct ts_writer_ids *ret_ids)
{
	memset(ret_ids, 0, sizeof(*ret_ids));
	for (uint32_t i = 0; i < TS_TABLE_COUNT; i++)
		ret_ids->next[i] = writer->tables[i].next_id;
	ret_ids->next[TS_TABLE_SHAPE] = writer->shapes.first_id + writer->shapes.count;
}

int ts_writer_status(const struct ts_writer *writer, struct ts_error *err)
{
	if (writer->error.code && err)
		*err = writer->error;
	return writer->error.code;
}

int ts_writer_save(struct ts_writer *writer, struct ts_error *err)
{
	if (writer->finished)
		return ts_error_set(err, TS_EINVAL, "the trace is finished already");
	if (!ts_writer_flush(writer) &&
	    !sbt_appender_save(&writer->file, writer->options.level, &writer->error))
		sbt_output_sync(&writer->file.output, &writer->error);
	return ts_writer_status(writer, err);
}

int ts_writer_finish(struct ts_writer *writer, struct ts_error *err)
{
	if (writer->finished)
		return ts_error_set(err, TS_EINVAL, "the trace is finished already");
	if (!ts_writer_flush(writer))
		sbt_appender_finish(&writer->file, writer->options.level, &writer->error);
	writer->finished = true;
	return ts_writer_status(writer, err);
}

void ts_writer_close(struct ts_writer *writer)
{
	if (!writer)
		return;
	ts_pool_stop(writer->pool);
	for (uint32_t i = 0; writer->slots && i < writer->slot_capacity; i++) {
		struct slot *slot = &writer->slots[i];

		ts_table_release(&slot->table);
		ts_text_release(&slot->bytes);
		ts_text_release(&slot->out);
		sbt_chunk_encoder_release(&slot->encoder);
	}
	free(writer->slots);
	for (int i = 0; i < TS_TABLE_COUNT; i++) {
		for (size_t k = 0; k < writer->tables[i].clock_count; k++)
			free_pending(writer->tables[i].clocks[k]);
		free(writer->tables[i].clocks);
		ts_table_release(&writer->tables[i].spare);
		ts_text_release(&writer->tables[i].bytes);
	}
	ts_strmap_release(&writer->strings);
	ts_strmap_release(&writer->frames);
	ts_shapes_release(&writer->shapes);
	ts_pairmap_release(&writer->stacks);
	free(writer->stack_depths);
	ts_text_release(&writer->cut_text);
	sbt_appender_release(&writer->file);
	free(writer);
}

void ts_writer_cuts(const struct ts_writer *writer, struct ts_writer_cuts *ret_cuts)
{
	*ret_cuts = writer->cuts;
}

uint64_t ts_writer_rows(const struct ts_writer *writer, enum ts_table_id table)
{
	return writer->tables[table].added;
}

uint64_t ts_writer_bytes(const struct ts_writer *writer)
{
	return writer->file.output.bytes + writer->file.index_bytes;
}

uint64_t ts_writer_chunk_bytes(const struct ts_writer *writer)
{
	return writer->file.output.bytes;
}
