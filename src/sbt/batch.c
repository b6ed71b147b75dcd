/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the columns of one chunk: reads the header, the directory and the requested payloads
 * only, and checks everything it uses.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/local/hash.h"
#include "base/text.h"
#include "sbt/column_forms.h"
#include "sbt/reader_internal.h"

/* An argument column of the current chunk. */
struct arg_column {
	const int64_t *values;
	uint32_t count, taken;
};

struct ts_batch_store {
	struct ts_reader *reader;
	struct sbt_decoder decoder;
	uint8_t *header; /* chunk header and directory */
	size_t header_capacity;
	uint8_t *payload;
	size_t payload_capacity;
	int64_t *columns[TS_MAX_COLUMNS];
	size_t column_capacity[TS_MAX_COLUMNS];
	int64_t *arg_data; /* all argument columns, one after another */
	size_t arg_data_capacity;
	struct arg_column *args;
	size_t arg_capacity;
	uint32_t arg_count;
	struct ts_map arg_indices; /* key << 8 | type to its argument column */
	int64_t *arg_values;       /* by row */
	size_t arg_value_capacity;
	uint32_t *arg_offsets;
	size_t arg_offset_capacity;
	uint64_t *byte_offsets;
	size_t byte_offset_capacity;
	char *bytes;
	struct sbt_form_store *form_stores; /* by column; NULL until forms are asked for */
};

/* The state of one decode. */
struct job {
	struct ts_batch *batch;
	struct ts_batch_store *store;
	struct sbt_file *file;
	const struct sbt_chunk *chunk;
	const struct ts_table_info *info;
	const struct sbt_column *directory;
	size_t number;
	uint64_t mask;
	uint64_t seen;           /* columns that the chunk holds */
	struct sbt_forms *forms; /* NULL: every column as words */
	bool scales_durations;   /* the chunk's clock drifts */
	struct ts_error *err;
};

int ts_batch_new(struct ts_batch **ret_batch, struct ts_reader *reader, struct ts_error *err)
{
	struct ts_batch *batch = calloc(1, sizeof(*batch));
	struct ts_batch_store *store = calloc(1, sizeof(*store));

	if (!batch || !store) {
		free(batch);
		free(store);
		return ts_error_set(err, TS_ENOMEM, "no memory");
	}
	store->reader = reader;
	batch->store = store;
	*ret_batch = batch;
	return TS_OK;
}

void ts_batch_free(struct ts_batch *batch)
{
	struct ts_batch_store *store;

	if (!batch)
		return;
	store = batch->store;
	sbt_decoder_release(&store->decoder);
	for (int i = 0; i < TS_MAX_COLUMNS; i++)
		free(store->columns[i]);
	free(store->header);
	free(store->payload);
	free(store->arg_data);
	free(store->args);
	ts_map_release(&store->arg_indices);
	free(store->arg_values);
	free(store->arg_offsets);
	free(store->byte_offsets);
	free(store->bytes);
	for (int i = 0; store->form_stores && i < TS_MAX_COLUMNS; i++)
		sbt_form_store_release(&store->form_stores[i]);
	free(store->form_stores);
	free(store);
	free(batch);
}

static int no_memory(struct job *job)
{
	return ts_error_set(job->err, TS_ENOMEM, "no memory");
}

int sbt_chunk_error(const struct sbt_file *file, const struct sbt_chunk *chunk, size_t number,
		    const char *why, struct ts_error *err)
{
	if (number == SBT_CHUNK_UNLISTED)
		return ts_error_set(err, TS_EFORMAT, "trace '%s': chunk at byte %llu: %s",
				    file->path, (unsigned long long)chunk->offset, why);
	return ts_error_set(err, TS_EFORMAT, "trace '%s': chunk %zu at byte %llu: %s", file->path,
			    number, (unsigned long long)chunk->offset, why);
}

static int damaged(struct job *job, const char *why)
{
	return sbt_chunk_error(job->file, job->chunk, job->number, why, job->err);
}

static int checksum_differs(struct job *job)
{
	char why[TS_ERROR_MESSAGE_BYTES];

	snprintf(why, sizeof(why),
		 "checksum differs; recover the rest with: tracesmith recover %s -o good.sbt",
		 TS_SHELL(job->file->path));
	return damaged(job, why);
}

/* ---- header ---- */

/* The list may come from an index: it must agree with the chunk itself. */
static bool header_agrees(const struct sbt_chunk_header *listed,
			  const struct sbt_chunk_header *found)
{
	return listed->checksum == found->checksum && listed->chunk_bytes == found->chunk_bytes &&
	       listed->header_bytes == found->header_bytes && listed->table == found->table &&
	       listed->flags == found->flags && listed->rows == found->rows &&
	       listed->clock == found->clock && listed->values == found->values &&
	       listed->min_start == found->min_start && listed->max_start == found->max_start &&
	       listed->max_end == found->max_end && listed->first_id == found->first_id;
}

static const char *header_fault(const struct job *job)
{
	struct sbt_chunk_header found;
	const char *fault;

	memcpy(&found, job->store->header, sizeof(found));
	fault = sbt_chunk_header_fault(&found, job->chunk->offset, job->file->bytes);
	if (fault)
		return fault;
	if (!header_agrees(&job->chunk->header, &found))
		return "the index disagrees with this chunk";
	return sbt_directory_fault(&found, job->directory);
}

static int read_header(struct job *job)
{
	struct ts_batch_store *store = job->store;
	uint32_t bytes = job->chunk->header.header_bytes;
	const char *fault;
	int result;

	if (ts_grow_array((void **)&store->header, &store->header_capacity, bytes, 1))
		return no_memory(job);
	result = sbt_file_read(job->file, job->chunk->offset, store->header, bytes, job->err);
	if (result)
		return result;
	job->directory =
		(const struct sbt_column *)(store->header + sizeof(struct sbt_chunk_header));
	fault = header_fault(job);
	return fault ? damaged(job, fault) : TS_OK;
}

/* ---- payloads ---- */

/* Index of an entry's column in the row if it is requested, else -1. */
static int wanted_position(const struct job *job, const struct sbt_column *column)
{
	int position = ts_column_by_id(job->info, column->column);

	return position >= 0 && (job->mask >> position & 1) ? position : -1;
}

static bool is_wanted(const struct job *job, const struct sbt_column *column)
{
	if (column->column == SBT_COLUMN_ARGUMENT)
		return job->info->shape >= 0 && (job->mask >> job->info->shape & 1);
	return wanted_position(job, column) >= 0;
}

/* May the column come in a form other than words? Times must be converted one by one. */
static bool has_form(const struct job *job, int position)
{
	return job->forms && (job->forms->mask >> position & 1) &&
	       job->info->columns[position].type != TS_COLUMN_TIME &&
	       (position != job->info->duration || !job->scales_durations);
}

/* Memory for the words of a column: the caller's, or the batch's. */
static int64_t *words_of(struct job *job, int position, uint32_t count)
{
	struct ts_batch_store *store = job->store;
	struct sbt_forms *forms = job->forms;

	if (forms && forms->place && (forms->mask >> position & 1))
		return forms->place(forms->context, position, count);
	/* One more, so that a chunk without rows gets memory too. */
	if (ts_grow_array((void **)&store->columns[position], &store->column_capacity[position],
			  (size_t)count + 1, sizeof(int64_t)))
		return NULL;
	return store->columns[position];
}

static int decode_words(struct job *job, int position, const struct sbt_column *column,
			const uint8_t *payload)
{
	int64_t *words = words_of(job, position, column->count);
	const char *why;
	int result;

	if (!words)
		return no_memory(job);
	result = sbt_decode_column(&job->store->decoder, column, payload, words, &why);
	job->batch->columns[position] = words;
	return result == TS_EFORMAT ? damaged(job, why) : result ? no_memory(job) : TS_OK;
}

/* SBT_FORM_WORDS: nothing was decoded. */
static int decode_form(struct job *job, int position, const struct sbt_column *column,
		       const uint8_t *payload)
{
	const char *why;
	int result = sbt_decode_form(&job->store->decoder, column, payload,
				     &job->store->form_stores[position],
				     &job->forms->columns[position], &why);

	return result == TS_EFORMAT ? damaged(job, why) : result ? no_memory(job) : TS_OK;
}

static int decode_schema_column(struct job *job, const struct sbt_column *column,
				const uint8_t *payload)
{
	struct ts_batch_store *store = job->store;
	int position = wanted_position(job, column);
	const struct ts_column_info *info = &job->info->columns[position];
	const char *why;
	int result;

	assert(position >= 0);
	if (job->seen >> position & 1)
		return damaged(job, "a column is listed twice in the directory");
	if (column->type != SBT_TYPE_OF_COLUMN + info->type)
		return damaged(job, "a column's type differs from the schema");
	job->seen |= UINT64_C(1) << position;
	if (info->type == TS_COLUMN_BYTES) {
		if (ts_grow_array((void **)&store->byte_offsets, &store->byte_offset_capacity,
				  (size_t)column->count + 1, sizeof(*store->byte_offsets)))
			return no_memory(job);
		free(store->bytes);
		store->bytes = NULL;
		result = sbt_decode_bytes(&store->decoder, column, payload, true,
					  store->byte_offsets, &store->bytes, &why);
		job->batch->byte_offsets = store->byte_offsets;
		job->batch->bytes = store->bytes;
		return result == TS_EFORMAT ? damaged(job, why) : result ? no_memory(job) : TS_OK;
	}
	if (has_form(job, position)) {
		result = decode_form(job, position, column, payload);
		if (result || job->forms->columns[position].kind != SBT_FORM_WORDS)
			return result;
	}
	return decode_words(job, position, column, payload);
}

static int decode_arg_column(struct job *job, const struct sbt_column *column,
			     const uint8_t *payload, uint32_t *used)
{
	struct ts_batch_store *store = job->store;
	uint64_t name = (uint64_t)column->key << 8 | column->type;
	struct arg_column arg = { .values = store->arg_data + *used, .count = column->count };
	bool is_new;
	uint64_t *slot = ts_map_insert(&store->arg_indices, name, &is_new);
	const char *why;
	int result;

	if (!slot || ts_grow_array((void **)&store->args, &store->arg_capacity,
				   store->arg_count + 1, sizeof(arg)))
		return no_memory(job);
	if (!is_new)
		return damaged(job, "an argument column is listed twice in the directory");
	*slot = store->arg_count;
	store->args[store->arg_count++] = arg;
	/* The counts of all argument columns add up to header.values, so they fit. */
	result = sbt_decode_column(&store->decoder, column, payload, store->arg_data + *used, &why);
	*used += column->count;
	return result == TS_EFORMAT ? damaged(job, why) : result ? no_memory(job) : TS_OK;
}

/* Reads entries first .. last - 1, all of them requested, at once, and decodes them. */
static int decode_run(struct job *job, uint32_t first, uint32_t last, uint64_t offset,
		      uint32_t *used)
{
	struct ts_batch_store *store = job->store;
	size_t bytes = 0, at = 0;
	int result;

	for (uint32_t i = first; i < last; i++)
		bytes += job->directory[i].stored_bytes;
	if (ts_grow_array((void **)&store->payload, &store->payload_capacity,
			  bytes + SBT_DECODE_SLACK, 1))
		return no_memory(job);
	result = sbt_file_read(job->file, offset, store->payload, bytes, job->err);
	memset(store->payload + bytes, 0, SBT_DECODE_SLACK);
	for (uint32_t i = first; !result && i < last; i++) {
		const struct sbt_column *column = &job->directory[i];
		const uint8_t *payload = store->payload + at;

		if (ts_hash64(payload, column->stored_bytes) != column->checksum)
			return checksum_differs(job);
		if (column->column == SBT_COLUMN_ARGUMENT)
			result = decode_arg_column(job, column, payload, used);
		else
			result = decode_schema_column(job, column, payload);
		at += column->stored_bytes;
	}
	return result;
}

static int decode_wanted(struct job *job)
{
	struct ts_batch_store *store = job->store;
	uint32_t columns = job->chunk->header.header_bytes - sizeof(struct sbt_chunk_header);
	uint64_t offset = job->chunk->offset + job->chunk->header.header_bytes;
	uint32_t used = 0;

	columns /= sizeof(struct sbt_column);
	assert(job->directory);
	store->arg_count = 0;
	ts_map_clear(&store->arg_indices);
	if (ts_grow_array((void **)&store->arg_data, &store->arg_data_capacity,
			  job->chunk->header.values, sizeof(*store->arg_data)))
		return no_memory(job);
	for (uint32_t i = 0; i < columns;) {
		uint32_t last = i;
		uint64_t run_bytes = 0;
		int result;

		while (last < columns && is_wanted(job, &job->directory[last]))
			run_bytes += job->directory[last++].stored_bytes;
		result = last > i ? decode_run(job, i, last, offset, &used) : TS_OK;
		if (result)
			return result;
		offset += run_bytes;
		if (last < columns)
			offset += job->directory[last++].stored_bytes;
		i = last;
	}
	return TS_OK;
}

/* Columns that are requested but not stored have no value in any row. */
static int fill_absent(struct job *job)
{
	uint32_t rows = job->chunk->header.rows;

	for (int i = 0; i < job->info->column_count; i++) {
		int64_t *words;

		if (!(job->mask >> i & 1) || (job->seen >> i & 1))
			continue;
		if (i == job->info->start && rows)
			return damaged(job, "the start column is missing");
		if (job->info->columns[i].type == TS_COLUMN_BYTES && rows)
			return damaged(job, "the bytes column is missing");
		/* A time that is absent stays so in every clock. */
		if (job->forms && (job->forms->mask >> i & 1)) {
			job->forms->columns[i] =
				(struct sbt_form){ .kind = SBT_FORM_CONSTANT,
						   .constant = job->info->columns[i].none };
			continue;
		}
		words = words_of(job, i, rows);
		if (!words)
			return no_memory(job);
		for (uint32_t row = 0; row < rows; row++)
			words[row] = job->info->columns[i].none;
		job->batch->columns[i] = words;
	}
	return TS_OK;
}

/* ---- arguments ---- */

/* Fields of a shape as argument columns: the number of values, then a column for each. */
struct shape_plan {
	const struct ts_shape *shape;
	uint32_t *columns;
};

static int plan_shape(struct job *job, int64_t id, struct ts_map *plans, struct ts_arena *arena,
		      const struct shape_plan **ret_plan)
{
	struct shape_plan *plan;
	uint32_t count = 0;
	bool is_new;
	uint64_t *slot = ts_map_insert(plans, (uint64_t)id, &is_new);

	if (!slot)
		return no_memory(job);
	if (!is_new) {
		*ret_plan = (const struct shape_plan *)(uintptr_t)*slot;
		return TS_OK;
	}
	plan = ts_arena_alloc(arena, sizeof(*plan));
	if (!plan)
		return no_memory(job);
	*slot = (uintptr_t)plan;
	*ret_plan = plan;
	plan->shape = sbt_shape_find(job->store->reader, id);
	if (!plan->shape)
		return TS_ENOTFOUND;
	plan->columns = ts_arena_alloc(arena, plan->shape->value_count * sizeof(*plan->columns));
	if (!plan->columns)
		return no_memory(job);
	for (uint32_t i = 0; i < plan->shape->field_count; i++) {
		const struct ts_field *field = &plan->shape->fields[i];
		uint64_t column;

		if (!ts_arg_has_value(field->type))
			continue;
		if (!ts_map_get(&job->store->arg_indices, (uint64_t)field->key << 8 | field->type,
				&column))
			return damaged(job, "an argument of a shape has no column");
		plan->columns[count++] = (uint32_t)column;
	}
	return TS_OK;
}

/* Collects the values of each row from the argument columns, in row order. */
static int gather_rows(struct job *job, const int64_t *shapes, struct ts_map *plans,
		       struct ts_arena *arena)
{
	struct ts_batch_store *store = job->store;
	const struct shape_plan *plan = NULL;
	int64_t last = 0;
	uint32_t filled = 0;

	for (uint32_t row = 0; row < job->chunk->header.rows; row++) {
		store->arg_offsets[row] = filled;
		if (shapes[row] == 0)
			continue;
		if (shapes[row] != last || !plan) {
			int result = plan_shape(job, shapes[row], plans, arena, &plan);

			if (result)
				return result;
			last = shapes[row];
		}
		assert(plan);
		for (uint32_t i = 0; i < plan->shape->value_count; i++) {
			struct arg_column *arg = &store->args[plan->columns[i]];

			if (arg->taken == arg->count)
				return damaged(job, "an argument column runs out early");
			store->arg_values[filled++] = arg->values[arg->taken++];
		}
	}
	return filled == job->chunk->header.values ? TS_OK
						   : damaged(job, "argument values are left over");
}

/*
 * If a shape is missing (its chunk is damaged), values cannot be assigned to rows: the rows come
 * without arguments.
 */
static int lose_args(struct job *job)
{
	struct ts_batch_store *store = job->store;
	struct ts_error err;

	memset(store->columns[job->info->shape], 0, job->chunk->header.rows * sizeof(int64_t));
	memset(store->arg_offsets, 0, job->chunk->header.rows * sizeof(*store->arg_offsets));
	sbt_chunk_error(job->file, job->chunk, job->number,
			"arguments are lost because their shapes are missing", &err);
	sbt_keep_error(store->reader, &err);
	return TS_OK;
}

static int gather_args(struct job *job)
{
	struct ts_batch_store *store = job->store;
	int shape = job->info->shape;
	struct ts_map plans = { 0 };
	struct ts_arena arena = { 0 };
	int result;

	job->batch->arg_offsets = NULL;
	job->batch->arg_values = NULL;
	if (shape < 0 || !(job->mask >> shape & 1))
		return TS_OK;
	/* At least one: callers may point at the values of a row that has none. */
	if (ts_grow_array((void **)&store->arg_values, &store->arg_value_capacity,
			  TS_MAX(job->chunk->header.values, 1u), sizeof(*store->arg_values)) ||
	    ts_grow_array((void **)&store->arg_offsets, &store->arg_offset_capacity,
			  job->chunk->header.rows, sizeof(*store->arg_offsets)))
		return no_memory(job);
	result = gather_rows(job, store->columns[shape], &plans, &arena);
	if (result == TS_ENOTFOUND)
		result = lose_args(job);
	ts_map_release(&plans);
	ts_arena_release(&arena);
	job->batch->arg_offsets = store->arg_offsets;
	job->batch->arg_values = store->arg_values;
	return result;
}

/* ---- time ---- */

/* The words of a column, which this batch may change; NULL: it has another form. */
static int64_t *words_in(const struct job *job, int position)
{
	return (int64_t *)(uintptr_t)job->batch->columns[position];
}

static void convert_durations(struct job *job, const struct ts_clock *clock)
{
	int64_t *duration = words_in(job, job->info->duration);
	const int64_t *start = job->batch->columns[job->info->start];

	for (uint32_t i = 0; i < job->chunk->header.rows; i++) {
		int64_t end;

		if (duration[i] < 0 || __builtin_add_overflow(start[i], duration[i], &end))
			continue;
		duration[i] = ts_clock_convert(clock, end) - ts_clock_convert(clock, start[i]);
	}
}

static void convert_times(struct job *job, const struct ts_clock *clock)
{
	uint32_t rows = job->chunk->header.rows;
	bool plain;
	int64_t offset;

	plain = ts_clock_is_offset(clock, &offset);
	if (plain && offset == 0)
		return;
	if (!plain && job->info->start >= 0 && job->info->duration >= 0 &&
	    (job->mask >> job->info->duration & 1) && words_in(job, job->info->duration))
		convert_durations(job, clock);
	for (int i = 0; i < job->info->column_count; i++) {
		int64_t *values = words_in(job, i);

		if (job->info->columns[i].type != TS_COLUMN_TIME || !(job->mask >> i & 1) ||
		    !values)
			continue;
		for (uint32_t row = 0; row < rows; row++)
			values[row] = ts_clock_convert(clock, values[row]);
	}
}

/* ---- entry points ---- */

static uint64_t mask_of_table(const struct ts_table_info *info, uint64_t mask,
			      const struct ts_clock *clock)
{
	int64_t offset;

	mask &= (UINT64_C(1) << info->column_count) - 1;
	/* A drifting clock scales durations, depending on their start. */
	if (info->start >= 0 && info->duration >= 0 && (mask >> info->duration & 1) &&
	    !ts_clock_is_offset(clock, &offset))
		mask |= UINT64_C(1) << info->start;
	return mask;
}

static int decode_chunk(struct ts_batch *batch, const struct sbt_chunk *chunk, size_t number,
			uint64_t mask, const struct ts_clock *clock, struct sbt_forms *forms,
			struct ts_error *err)
{
	const struct ts_table_info *info = ts_table_info(chunk->header.table);
	struct job job = { .batch = batch,
			   .store = batch->store,
			   .file = &batch->store->reader->file,
			   .chunk = chunk,
			   .info = info,
			   .number = number,
			   .forms = forms,
			   .err = err };
	int64_t offset;
	int result;

	job.scales_durations = !ts_clock_is_offset(clock, &offset);
	memset(batch->columns, 0, sizeof(batch->columns));
	batch->table = info;
	batch->rows = 0;
	batch->chunk = number;
	batch->byte_offsets = NULL;
	batch->bytes = NULL;
	if (!info)
		return TS_OK;
	job.mask = mask_of_table(info, mask, clock);
	result = read_header(&job);
	if (!result)
		result = decode_wanted(&job);
	if (!result)
		result = fill_absent(&job);
	if (!result)
		result = gather_args(&job);
	if (result)
		return result;
	convert_times(&job, clock);
	batch->rows = chunk->header.rows;
	return TS_OK;
}

int sbt_batch_decode(struct ts_batch *batch, const struct sbt_chunk *chunk, size_t number,
		     uint64_t mask, const struct ts_clock *clock, struct ts_error *err)
{
	return decode_chunk(batch, chunk, number, mask, clock, NULL, err);
}

static int read_chunk(struct ts_batch *batch, size_t chunk, uint64_t mask, struct sbt_forms *forms,
		      struct ts_error *err)
{
	struct ts_reader *reader = batch->store->reader;
	const struct sbt_chunk *listed;

	if (chunk >= reader->list.count)
		return ts_error_set(err, TS_EINVAL, "trace '%s' has no chunk %zu",
				    reader->file.path, chunk);
	listed = &reader->list.chunks[chunk];
	if (!atomic_exchange_explicit(&reader->touched[chunk], true, memory_order_relaxed))
		atomic_fetch_add_explicit(&reader->chunks_read, 1, memory_order_relaxed);
	return decode_chunk(batch, listed, chunk, mask,
			    ts_clockmap_find(&reader->clocks, listed->header.clock), forms, err);
}

int ts_batch_read(struct ts_batch *batch, size_t chunk, uint64_t mask, struct ts_error *err)
{
	return read_chunk(batch, chunk, mask, NULL, err);
}

int sbt_batch_read_forms(struct ts_batch *batch, size_t chunk, uint64_t mask,
			 struct sbt_forms *forms, struct ts_error *err)
{
	struct ts_batch_store *store = batch->store;

	if (!store->form_stores)
		store->form_stores = calloc(TS_MAX_COLUMNS, sizeof(*store->form_stores));
	if (!store->form_stores)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	memset(forms->columns, 0, sizeof(forms->columns));
	return read_chunk(batch, chunk, mask, forms, err);
}

void ts_batch_row(const struct ts_batch *batch, uint32_t row, void *ret_row)
{
	int64_t *words = ret_row;

	for (int i = 0; i < batch->table->column_count; i++)
		words[i] = batch->columns[i] ? batch->columns[i][row]
					     : batch->table->columns[i].none;
}
