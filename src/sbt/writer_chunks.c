/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's chunks: rows wait by table and clock, are sealed together with what they refer to,
 * encoded by threads, and appended by another one in the order in which they were sealed.
 */
#include "sbt/writer_internal.h"

#include <stdlib.h>

#include "base/memory.h"
#include "sbt/sbt_layout.h"

#define MAX_THREADS 64
/*
 * Clocks of one table that may have an open chunk at once, and the rows they may hold together, in
 * chunks.
 */
#define OPEN_CLOCKS 64
#define OPEN_CHUNKS 4
/* Blob content is large and arrives while a program waits. */
#define BLOB_LEVEL 1
/* A payload of this size is not copied once more to follow its header. */
#define APART_BYTES 65536u

int sbt_writer_fail(struct ts_writer *writer, int code, const char *message)
{
	if (!writer->error.code)
		ts_error_set(&writer->error, code, "trace '%s': %s", writer->file.output.path,
			     message);
	return writer->error.code;
}

int sbt_writer_fail_memory(struct ts_writer *writer)
{
	return sbt_writer_fail(writer, TS_ENOMEM, "no memory");
}

/* ---- chunks on their way ---- */

static void encode_slot(void *argument)
{
	struct sbt_slot *slot = argument;
	const struct ts_text *payload = &slot->encoder.payload;

	ts_text_clear(&slot->out);
	slot->input.table = &slot->table;
	slot->input.bytes = slot->bytes.data;
	slot->input.byte_count = slot->bytes.length;
	slot->result =
		sbt_chunk_encode_apart(&slot->encoder, &slot->input, &slot->out, &slot->header);
	slot->tail = slot->encoder.columns.raw;
	slot->tail_bytes = slot->encoder.columns.raw_bytes;
	/* A chunk takes one write, or two. */
	if (slot->tail || payload->length < APART_BYTES) {
		ts_text_append(&slot->out, payload->data, payload->length);
	} else {
		slot->tail = payload->data;
		slot->tail_bytes = payload->length;
	}
	if (!slot->result)
		slot->result = ts_text_status(&slot->out);
}

static bool has_memory(const struct ts_table *table)
{
	for (int i = 0; i < table->info->column_count; i++)
		if (table->columns[i])
			return true;
	return table->arg_offsets || table->arg_values;
}

/* Returns the memory of a written table. */
static void recycle(struct ts_writer *writer, struct sbt_slot *slot)
{
	struct sbt_writer_table *table = &writer->tables[slot->table.info->id];

	ts_table_clear(&slot->table);
	if (has_memory(&table->spare))
		ts_table_release(&slot->table);
	else
		table->spare = slot->table;
	ts_table_init(&slot->table, NULL);
	ts_text_clear(&slot->bytes);
}

/*
 * Appends a chunk when it is encoded. One thread runs these jobs, in the order of submission. After
 * a failure nothing is appended: later chunks may refer to those that are missing.
 */
static void append_slot(void *argument)
{
	struct sbt_slot *slot = argument;
	struct ts_writer *writer = slot->writer;
	struct ts_error *error = &writer->append_error;

	ts_pool_wait(writer->encoders, &slot->encode);
	if (!error->code && !slot->is_void) {
		if (slot->result)
			ts_error_set(error, TS_ENOMEM, "trace '%s': no memory",
				     writer->file.output.path);
		else if (slot->header.rows)
			sbt_appender_add(&writer->file, &slot->header, slot->out.data, slot->tail,
					 slot->tail_bytes, error);
	}
	slot->has_failed = error->code != TS_OK;
}

/* Waits until the oldest chunk is in the file, and frees its slot. */
static void retire_oldest(struct ts_writer *writer)
{
	struct sbt_slot *slot = writer->first;

	ts_pool_wait(writer->appender, &slot->append);
	writer->first = slot->next;
	if (!writer->first)
		writer->last = &writer->first;
	if (slot->has_failed && !writer->error.code)
		writer->error = writer->append_error;
	recycle(writer, slot);
	slot->next = writer->free;
	writer->free = slot;
}

int sbt_writer_write_all(struct ts_writer *writer)
{
	while (writer->first)
		retire_oldest(writer);
	return writer->error.code;
}

/* A free slot. Notices failures of chunks that were appended meanwhile. */
static struct sbt_slot *take_slot(struct ts_writer *writer)
{
	struct sbt_slot *slot;

	while (writer->first &&
	       (!writer->free || ts_pool_is_done(writer->appender, &writer->first->append)))
		retire_oldest(writer);
	slot = writer->free;
	writer->free = slot->next;
	return slot;
}

/* Queues a chunk behind those before it. */
static void submit_slot(struct ts_writer *writer, struct sbt_slot *slot)
{
	slot->next = NULL;
	*writer->last = slot;
	writer->last = &slot->next;
	slot->is_void = writer->error.code != TS_OK;
	ts_pool_submit(writer->encoders, &slot->encode, encode_slot, slot);
	ts_pool_submit(writer->appender, &slot->append, append_slot, slot);
}

/* ---- sealing ---- */

/* Moves rows into a slot for encoding. `rows` is pending->rows or ->long_rows. */
static int submit(struct ts_writer *writer, struct sbt_pending *pending, struct ts_table *rows,
		  int64_t longest, unsigned int flags)
{
	const struct ts_table_info *info = rows->info;
	struct sbt_writer_table *table = &writer->tables[info->id];
	struct sbt_slot *slot = take_slot(writer);
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
	submit_slot(writer, slot);
	return writer->error.code;
}

/* Everything of one clock. */
static int seal_pending(struct ts_writer *writer, struct sbt_pending *pending)
{
	if (pending->rows.rows)
		submit(writer, pending, &pending->rows, INT64_MAX, 0);
	if (pending->long_rows.rows)
		submit(writer, pending, &pending->long_rows, INT64_MAX, SBT_FLAG_LONG);
	return writer->error.code;
}

int sbt_writer_seal(struct ts_writer *writer, enum ts_table_id table)
{
	struct sbt_writer_table *all = &writer->tables[table];

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

int sbt_writer_seal_referred(struct ts_writer *writer)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(referred); i++)
		sbt_writer_seal(writer, referred[i]);
	return writer->error.code;
}

static bool is_long(const struct ts_table *rows, uint32_t row, int64_t span)
{
	int64_t duration = ts_table_value(rows, rows->info->duration, row);

	return duration > span || duration == -1;
}

/* Moves rows longer than the chunk's span aside; returns the length above which rows are long. */
static int64_t set_long_rows_aside(struct ts_writer *writer, struct sbt_pending *pending)
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
			sbt_writer_fail_memory(writer);
	}
	return span;
}

int sbt_writer_seal_full(struct ts_writer *writer, struct sbt_pending *pending)
{
	int64_t longest = INT64_MAX;

	sbt_writer_seal_referred(writer);
	if (pending->rows.rows == 0) /* it was among those */
		return writer->error.code;
	if (pending->rows.info->start >= 0 && pending->rows.info->duration >= 0)
		longest = set_long_rows_aside(writer, pending);
	submit(writer, pending, &pending->rows, longest, 0);
	if (pending->long_rows.rows >= writer->options.chunk_rows / 2)
		submit(writer, pending, &pending->long_rows, INT64_MAX, SBT_FLAG_LONG);
	return writer->error.code;
}

/* ---- clocks ---- */

static void free_pending(struct sbt_pending *pending)
{
	if (!pending)
		return;
	ts_table_release(&pending->rows);
	ts_table_release(&pending->long_rows);
	free(pending);
}

struct sbt_pending *sbt_writer_add_pending(struct ts_writer *writer, struct sbt_writer_table *table,
					   uint32_t clock)
{
	struct sbt_pending *pending = calloc(1, sizeof(*pending));

	if (!pending || ts_grow_array((void **)&table->clocks, &table->clock_capacity,
				      table->clock_count + 1, sizeof(*table->clocks))) {
		free(pending);
		sbt_writer_fail_memory(writer);
		return NULL;
	}
	ts_table_init(&pending->rows, table->info);
	ts_table_init(&pending->long_rows, table->info);
	pending->clock = clock;
	table->clocks[table->clock_count++] = pending;
	return pending;
}

/* Writes the least recently used clock and reuses its entry. */
static struct sbt_pending *take_oldest(struct ts_writer *writer, struct sbt_writer_table *table,
				       uint32_t clock)
{
	size_t oldest = 0;
	struct sbt_pending *pending;

	for (size_t i = 1; i < table->clock_count; i++)
		if (table->clocks[i]->used < table->clocks[oldest]->used)
			oldest = i;
	pending = table->clocks[oldest];
	if (pending->rows.rows || pending->long_rows.rows) {
		sbt_writer_seal_referred(writer);
		seal_pending(writer, pending);
	}
	pending->clock = clock;
	return pending;
}

/* Selects the rows of a clock other than that of the last row. */
static struct sbt_pending *find_clock(struct ts_writer *writer, struct sbt_writer_table *table,
				      uint32_t clock)
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
	return sbt_writer_add_pending(writer, table, clock);
}

/* Memory of a clock's rows, in rows. */
static uint64_t weight(const struct sbt_pending *pending)
{
	return (uint64_t)pending->rows.rows + pending->long_rows.rows +
	       (pending->rows.values + pending->long_rows.values) / 4;
}

/* The rows of many clocks together are bounded like those of one: the largest is written. */
static void bound_rows(struct ts_writer *writer, struct sbt_writer_table *table)
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
	sbt_writer_seal_full(writer, table->clocks[largest]);
	seal_pending(writer, table->clocks[largest]);
}

struct sbt_pending *sbt_writer_change_clock(struct ts_writer *writer,
					    struct sbt_writer_table *table)
{
	struct sbt_pending *pending;

	table->pending->used = ++writer->uses;
	bound_rows(writer, table);
	pending = find_clock(writer, table, sbt_writer_clock_of(writer, table));
	if (!pending || writer->error.code)
		return NULL;
	table->pending = pending;
	return pending;
}

/* ---- from open to close ---- */

static int new_slots(struct ts_writer *writer, uint32_t count)
{
	writer->last = &writer->first;
	writer->slots = calloc(count, sizeof(*writer->slots));
	if (!writer->slots)
		return TS_ENOMEM;
	writer->slot_count = count;
	for (uint32_t i = 0; i < count; i++) {
		writer->slots[i].writer = writer;
		writer->slots[i].next = writer->free;
		writer->free = &writer->slots[i];
	}
	return TS_OK;
}

int sbt_writer_start_slots(struct ts_writer *writer, struct ts_error *err)
{
	int threads = writer->options.threads, result;

	if (threads == 0)
		threads = (int)ts_pool_processors() - 1;
	threads = TS_MAX(0, TS_MIN(threads, MAX_THREADS));
	/* One for each thread, one that is appended, and two that wait. */
	if (new_slots(writer, threads ? (uint32_t)threads + 3 : 1))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	result = ts_pool_start(&writer->encoders, (unsigned int)threads, err);
	return result ? result : ts_pool_start(&writer->appender, threads != 0, err);
}

void sbt_writer_release_chunks(struct ts_writer *writer)
{
	/* It waits for the encoders. */
	ts_pool_stop(writer->appender);
	ts_pool_stop(writer->encoders);
	for (uint32_t i = 0; i < writer->slot_count; i++) {
		struct sbt_slot *slot = &writer->slots[i];

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
}
