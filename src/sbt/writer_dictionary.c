/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's dictionaries: texts, shapes, frames, stacks and blobs are stored once and named by
 * id, within the limits of a reader.
 */
#include <stdlib.h>

#include "base/local/hash.h"
#include "base/memory.h"
#include "sbt/sbt_layout.h"
#include "sbt/writer_internal.h"

/* A chunk is sealed early when its texts grow beyond these. */
#define SEAL_STRINGS 16384u
#define SEAL_BYTES ((size_t)1 << 20)
/*
 * Texts longer than this are cut if a reader would refuse to load them: it limits its memory in
 * proportion to the file (reader.c), and repetitive texts take up next to none of that.
 */
#define CUT_ABOVE ((size_t)1024)
#define CUT_TO ((size_t)256)

/* Appends a row to a dictionary table; returns its id, or 0. */
static uint32_t add_to_dictionary(struct ts_writer *writer, enum ts_table_id table, const void *row)
{
	struct sbt_writer_table *all = &writer->tables[table];

	if (writer->error.code)
		return 0;
	if (all->next_id > UINT32_MAX) {
		sbt_writer_fail(writer, TS_EINVAL, "a table ran out of ids");
		return 0;
	}
	if (ts_table_add(&all->pending->rows, row, NULL, 0)) {
		sbt_writer_fail_memory(writer);
		return 0;
	}
	all->added++;
	return (uint32_t)all->next_id++;
}

/* Seals the chunk of a table with byte strings if it is too large for another one. */
static void make_room(struct ts_writer *writer, enum ts_table_id table, size_t bytes)
{
	const struct sbt_writer_table *all = &writer->tables[table];
	uint32_t rows = all->pending->rows.rows;

	if (rows && (rows >= SEAL_STRINGS || all->bytes.length + bytes > SEAL_BYTES))
		sbt_writer_seal(writer, table);
}

/* As add_to_dictionary(), for rows with a byte string. */
static uint32_t add_bytes(struct ts_writer *writer, enum ts_table_id table, const void *row,
			  const void *data, size_t bytes)
{
	struct sbt_writer_table *all = &writer->tables[table];

	make_room(writer, table, bytes);
	if (bytes && all->bytes.capacity && data == all->bytes.data + all->bytes.length)
		all->bytes.length += bytes; /* of ts_writer_blob_space() */
	else
		ts_text_append(&all->bytes, data, bytes);
	if (ts_text_status(&all->bytes)) {
		sbt_writer_fail_memory(writer);
		return 0;
	}
	return add_to_dictionary(writer, table, row);
}

static uint64_t text_budget(const struct ts_writer *writer)
{
	return SBT_TEXT_BUDGET + SBT_TEXT_BUDGET_A_BYTE * sbt_appender_chunk_bytes(&writer->file);
}

/* Would a reader refuse this text? */
static bool is_too_much(struct ts_writer *writer, const char *text, size_t length)
{
	if (writer->text_bytes + length <= text_budget(writer) ||
	    ts_strmap_find(&writer->strings, text, length) != TS_STRMAP_NONE)
		return false;
	/* How much the texts so far take up in the file. */
	sbt_writer_seal(writer, TS_TABLE_STRING);
	sbt_writer_write_all(writer);
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
		return sbt_writer_fail_memory(writer);
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
		sbt_writer_fail(writer, TS_EINVAL, "a text is longer than 64 MiB");
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
		sbt_writer_fail_memory(writer);
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
		sbt_writer_fail(writer, TS_EINVAL, "a shape has more than 1024 fields");
		return 0;
	}
	/* The fields of one shape are in one chunk. */
	if (rows->rows + count > writer->options.chunk_rows && rows->rows) {
		sbt_writer_seal(writer, TS_TABLE_STRING);
		sbt_writer_seal(writer, TS_TABLE_SHAPE);
	}
	id = ts_shapes_intern(&writer->shapes, fields, count, &is_new);
	if (!id)
		sbt_writer_fail_memory(writer);
	for (uint32_t i = 0; id && is_new && i < count; i++) {
		struct ts_shape_row row = { .shape = id,
					    .key = fields[i].key,
					    .type = fields[i].type,
					    .column = fields[i].column,
					    .place = fields[i].beside };

		if (ts_table_add(rows, &row, NULL, 0))
			sbt_writer_fail_memory(writer);
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
		sbt_writer_seal_referred(writer);
	return add_to_dictionary(writer, table, row);
}

uint32_t ts_writer_frame(struct ts_writer *writer, const struct ts_frame_row *frame)
{
	bool is_new;
	uint32_t id =
		ts_strmap_intern(&writer->frames, (const char *)frame, sizeof(*frame), &is_new);

	if (id == TS_STRMAP_NONE) {
		sbt_writer_fail_memory(writer);
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
		sbt_writer_fail_memory(writer);
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
		sbt_writer_fail_memory(writer);
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

void *ts_writer_blob_space(struct ts_writer *writer, size_t bytes)
{
	struct sbt_writer_table *all = &writer->tables[TS_TABLE_BLOB];

	make_room(writer, TS_TABLE_BLOB, bytes);
	if (bytes > SBT_MAX_STRING_BYTES || !ts_text_reserve(&all->bytes, bytes))
		sbt_writer_fail_memory(writer);
	return writer->error.code ? NULL : all->bytes.data + all->bytes.length;
}

uint32_t ts_writer_blob_piece(struct ts_writer *writer, uint32_t previous, uint64_t hash,
			      uint64_t total_bytes, const void *data, size_t bytes)
{
	struct ts_blob_row row = { .hash = (int64_t)hash,
				   .bytes = (int64_t)total_bytes,
				   .previous = previous,
				   .data = (int64_t)bytes };

	if (bytes > SBT_MAX_STRING_BYTES) {
		sbt_writer_fail(writer, TS_EINVAL, "a piece of a blob is larger than 64 MiB");
		return 0;
	}
	if (previous >= writer->tables[TS_TABLE_BLOB].next_id) {
		sbt_writer_fail(writer, TS_EINVAL, "a blob continues an unknown one");
		return 0;
	}
	return add_bytes(writer, TS_TABLE_BLOB, &row, data, bytes);
}
