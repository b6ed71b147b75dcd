/* SPDX-License-Identifier: Apache-2.0 */
/* Which chunks or rows a stream reads; see arrow_source.h. */
#include "arrow/arrow_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Rows in memory are cut into batches of this size. */
#define ROWS_OF_A_BATCH 65536u

/* ---- ids ---- */

/* The end of the ids of a table's rows, if they are as a writer assigns them. */
static uint64_t end_of_ids(struct ts_reader *reader, const struct ts_table_info *table)
{
	uint64_t end = ts_reader_rows(reader, (enum ts_table_id)table->id) + 1;

	if (table->id == TS_TABLE_STRING)
		return ts_reader_string_end(reader);
	if (table->kind != TS_KIND_DICTIONARY)
		return end;
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(reader, i);

		if (chunk->table == table->id && chunk->first_id <= UINT32_MAX)
			end = TS_MAX(end, chunk->first_id + chunk->rows);
	}
	return end;
}

/* Ids that rows of the table can have are on this many pages, wherever its chunks begin. */
static uint64_t pages_of_ids(struct ts_reader *reader, const struct ts_table_info *table)
{
	return (ts_reader_rows(reader, (enum ts_table_id)table->id) >> TS_ARROW_PAGE_BITS) +
	       2 * ts_reader_chunk_count(reader) + 2;
}

static int init_table_ids(struct ts_arrow_ids *ids, struct ts_reader *reader, uint32_t table)
{
	const struct ts_table_info *info = ts_table_info(table);

	return ts_arrow_ids_init(ids, end_of_ids(reader, info), pages_of_ids(reader, info));
}

static int init_field_ids(struct ts_arrow_ids *ids, struct ts_reader *reader,
			  const struct ts_arrow_field *field)
{
	int table;

	switch (field->kind) {
	case TS_ARROW_ENUM:
		return ts_arrow_ids_init(ids, TS_ARROW_MOST_ENUM_NAMES, 1);
	case TS_ARROW_NAME:
	case TS_ARROW_NUMBER:
		if (field->lookup == &ts_arrow_string_lookup)
			return init_table_ids(ids, reader, TS_TABLE_STRING);
		table = ts_table_by_name(field->column->refers);
		if (table >= 0)
			return init_table_ids(ids, reader, (uint32_t)table);
		/* Small numbers of a derived table. */
		return ts_arrow_ids_init(ids, 64, 1);
	default:
		return ts_arrow_ids_init(ids, 0, 0);
	}
}

static int init_ids(struct ts_arrow_source *source)
{
	size_t fields = source->fields.count;

	source->ids = calloc(source->reader_count * fields + 1, sizeof(*source->ids));
	if (!source->ids)
		return TS_ENOMEM;
	for (size_t reader = 0; reader < source->reader_count; reader++)
		for (size_t i = 0; i < fields; i++)
			if (init_field_ids(&source->ids[reader * fields + i],
					   source->readers[reader], &source->fields.list[i]))
				return TS_ENOMEM;
	return TS_OK;
}

/* Enums have all their names, in order: categories do not depend on the rows. */
static int add_enum_names(struct ts_arrow_dictionary *dictionary, const char *enumeration)
{
	int64_t index;
	int result = TS_OK;

	for (int64_t value = 0; !result && value < TS_ARROW_MOST_ENUM_NAMES; value++) {
		const char *name = ts_enum_name(enumeration, value);

		if (name)
			result = ts_arrow_dictionary_add(dictionary, name, strlen(name), &index);
	}
	return result;
}

static int init_dictionaries(struct ts_arrow_source *source)
{
	int result = TS_OK;

	source->dictionaries = calloc(source->fields.count + 1, sizeof(*source->dictionaries));
	if (!source->dictionaries)
		return TS_ENOMEM;
	for (size_t i = 0; i < source->fields.count; i++)
		ts_arrow_dictionary_init(&source->dictionaries[i]);
	for (size_t i = 0; !result && i < source->fields.count; i++)
		if (source->fields.list[i].kind == TS_ARROW_ENUM)
			result = add_enum_names(&source->dictionaries[i],
						source->fields.list[i].enumeration);
	return result;
}

static int init_memory(struct ts_arrow_source *source, struct ts_reader *const *readers)
{
	source->readers = calloc(source->reader_count + 1, sizeof(*source->readers));
	source->rows = calloc(source->reader_count + 1, sizeof(*source->rows));
	source->memory = ts_arrow_memory_new();
	if (!source->readers || !source->rows || !source->memory)
		return TS_ENOMEM;
	for (size_t i = 0; i < source->reader_count; i++)
		source->readers[i] = readers[i];
	if (init_dictionaries(source))
		return TS_ENOMEM;
	return init_ids(source);
}

int ts_arrow_source_init(struct ts_arrow_source *source, struct ts_reader *const *readers,
			 size_t reader_count, const char *table,
			 const struct ts_arrow_options *options, struct ts_error *err)
{
	bool has_range = options->from || options->to || options->flags & TS_ARROW_RANGE;
	int result;

	*source = (struct ts_arrow_source){ .reader_count = reader_count };
	source->from = has_range ? options->from : INT64_MIN;
	source->to = has_range ? options->to : INT64_MAX;
	source->shares_dictionaries = options->flags & TS_ARROW_SHARED_DICTIONARIES;
	result = ts_arrow_fields_init(&source->fields, table, reader_count > 1, options, err);
	if (!result && init_memory(source, readers))
		result = ts_error_set(err, TS_ENOMEM, "no memory");
	return result;
}

void ts_arrow_source_release(struct ts_arrow_source *source)
{
	size_t fields = source->fields.count;

	for (size_t i = 0; source->ids && i < source->reader_count * fields; i++)
		ts_arrow_ids_release(&source->ids[i]);
	for (size_t i = 0; source->dictionaries && i < fields; i++)
		ts_arrow_dictionary_release(&source->dictionaries[i]);
	for (size_t i = 0; source->rows && i < source->reader_count; i++)
		free(source->rows[i].words);
	if (source->memory)
		ts_arrow_memory_trim(source->memory);
	ts_arrow_memory_drop(source->memory);
	ts_arrow_fields_release(&source->fields);
	free(source->ids);
	free(source->dictionaries);
	free(source->rows);
	free((void *)source->readers);
	free(source->units);
	*source = (struct ts_arrow_source){ 0 };
}

/* ---- units ---- */

static int add_unit(struct ts_arrow_source *source, const struct ts_arrow_unit *unit)
{
	if (ts_grow_array((void **)&source->units, &source->unit_capacity, source->unit_count + 1,
			  sizeof(*source->units)))
		return TS_ENOMEM;
	source->units[source->unit_count++] = *unit;
	return TS_OK;
}

/* Rows end no earlier than they start: bounds of starts tell that all are in the range. */
static bool is_partial(const struct ts_arrow_source *source, const struct ts_chunk *chunk)
{
	return source->fields.table->start >= 0 &&
	       (chunk->min_start < source->from || chunk->max_start > source->to);
}

static int add_chunks(struct ts_arrow_source *source, uint32_t reader)
{
	for (size_t i = 0; i < ts_reader_chunk_count(source->readers[reader]); i++) {
		const struct ts_chunk *chunk = ts_reader_chunk(source->readers[reader], i);
		struct ts_arrow_unit unit = { .reader = reader, .chunk = i, .count = chunk->rows };

		if (chunk->table != source->fields.table->id ||
		    !ts_chunk_overlaps(chunk, source->from, source->to))
			continue;
		unit.is_partial = is_partial(source, chunk);
		if (add_unit(source, &unit))
			return TS_ENOMEM;
	}
	return TS_OK;
}

/* ---- rows in memory ---- */

int64_t *ts_arrow_rows_add(struct ts_arrow_source *source, size_t reader)
{
	struct ts_arrow_rows *rows = &source->rows[reader];
	size_t columns = source->fields.table->column_count;

	if (ts_grow_array((void **)&rows->words, &rows->capacity, rows->count + 1,
			  columns * sizeof(*rows->words)))
		return NULL;
	return rows->words + rows->count++ * columns;
}

static int add_entities(struct ts_arrow_source *source, size_t reader)
{
	const struct ts_table_info *table = source->fields.table;
	size_t cursor = 0;
	const int64_t *row;
	int64_t id;

	while ((row = ts_reader_entity_next(source->readers[reader], (enum ts_table_id)table->id,
					    &cursor, &id))) {
		int64_t *copy = ts_arrow_rows_add(source, reader);

		if (!copy)
			return TS_ENOMEM;
		memcpy(copy, row, table->column_count * sizeof(*copy));
	}
	return TS_OK;
}

static int add_rows(struct ts_arrow_source *source, uint32_t reader)
{
	const struct ts_arrow_rows *rows = &source->rows[reader];

	for (size_t first = 0; first < rows->count; first += ROWS_OF_A_BATCH) {
		struct ts_arrow_unit unit = { .reader = reader, .rows = rows, .first = first };

		unit.count = (uint32_t)TS_MIN(rows->count - first, (size_t)ROWS_OF_A_BATCH);
		if (add_unit(source, &unit))
			return TS_ENOMEM;
	}
	return TS_OK;
}

/* How large the largest batch is, and all together. */
static void expect_memory(struct ts_arrow_source *source)
{
	uint64_t rows = 0;
	uint32_t most = 1;

	for (size_t i = 0; i < source->unit_count; i++) {
		rows += source->units[i].count;
		most = TS_MAX(most, source->units[i].count);
	}
	ts_arrow_memory_expect(source->memory, most, rows * source->fields.count * sizeof(int64_t),
			       8);
}

int ts_arrow_source_prepare(struct ts_arrow_source *source, struct ts_error *err)
{
	uint8_t kind = source->fields.table->kind;
	int result = kind == TS_KIND_DERIVED ? ts_arrow_derive(source, err) : TS_OK;
	bool has_memory = true;

	if (result)
		return result;
	for (uint32_t reader = 0; has_memory && reader < source->reader_count; reader++) {
		if (kind == TS_KIND_ENTITY)
			has_memory = !add_entities(source, reader);
		if (kind == TS_KIND_ENTITY || kind == TS_KIND_DERIVED)
			has_memory = has_memory && !add_rows(source, reader);
		else
			has_memory = !add_chunks(source, reader);
	}
	if (!has_memory)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	expect_memory(source);
	return TS_OK;
}
