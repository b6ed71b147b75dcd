/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutates an SBT file and fixes every checksum (docs/format.md), so that a fuzzer gets past them.
 * Splits the file into chunks, changes one thing, and reassembles it: sizes are mostly made
 * consistent, the index is mostly rebuilt. For one fuzz target; static.
 */
#ifndef TS_TEST_SBT_MUTATE_H
#define TS_TEST_SBT_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/schema.h>

#include "base/local/hash.h"
#include "sbt/sbt_layout.h"

/* libFuzzer's own mutation; missing in a build that only replays files. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));

#define SBT_MUTATE_MAX_CHUNKS 256
#define SBT_MUTATE_INDEX_COLUMNS 13

struct sbt_mutate_chunk {
	size_t offset, bytes; /* in the file; header included, trailer too */
};

struct sbt_mutate {
	uint8_t *data;
	size_t size, max_size;
	uint64_t random;
	struct sbt_mutate_chunk chunks[SBT_MUTATE_MAX_CHUNKS];
	size_t chunk_count;
};

static uint32_t sbt_mutate_random(struct sbt_mutate *m, uint32_t below)
{
	m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return below ? (uint32_t)(m->random >> 33) % below : 0;
}

/* ---- splitting ---- */

static struct sbt_chunk_header sbt_mutate_header(const struct sbt_mutate *m, size_t chunk)
{
	struct sbt_chunk_header header;

	memcpy(&header, m->data + m->chunks[chunk].offset, sizeof(header));
	return header;
}

static void sbt_mutate_put_header(struct sbt_mutate *m, size_t chunk,
				  const struct sbt_chunk_header *header)
{
	memcpy(m->data + m->chunks[chunk].offset, header, sizeof(*header));
}

/* Directory entries that lie inside the chunk. */
static uint32_t sbt_mutate_columns(const struct sbt_mutate *m, size_t chunk)
{
	struct sbt_chunk_header header = sbt_mutate_header(m, chunk);
	size_t capacity = (m->chunks[chunk].bytes - sizeof(header)) / sizeof(struct sbt_column);

	return header.columns < capacity ? header.columns : (uint32_t)capacity;
}

static struct sbt_column sbt_mutate_column(const struct sbt_mutate *m, size_t chunk,
					   uint32_t column)
{
	struct sbt_column entry;

	memcpy(&entry,
	       m->data + m->chunks[chunk].offset + sizeof(struct sbt_chunk_header) +
		       column * sizeof(entry),
	       sizeof(entry));
	return entry;
}

static void sbt_mutate_put_column(struct sbt_mutate *m, size_t chunk, uint32_t column,
				  const struct sbt_column *entry)
{
	memcpy(m->data + m->chunks[chunk].offset + sizeof(struct sbt_chunk_header) +
		       column * sizeof(*entry),
	       entry, sizeof(*entry));
}

/* Chunks according to their sizes, up to the first invalid one. */
static void sbt_mutate_find_chunks(struct sbt_mutate *m)
{
	size_t offset = sizeof(struct sbt_file_header);

	m->chunk_count = 0;
	while (m->chunk_count < SBT_MUTATE_MAX_CHUNKS && offset < m->size &&
	       m->size - offset >= sizeof(struct sbt_chunk_header)) {
		struct sbt_chunk_header header;

		memcpy(&header, m->data + offset, sizeof(header));
		if (memcmp(header.magic, SBT_CHUNK_MAGIC, SBT_MAGIC_BYTES) != 0 ||
		    header.chunk_bytes < sizeof(header) || header.chunk_bytes > m->size - offset)
			return;
		m->chunks[m->chunk_count].offset = offset;
		m->chunks[m->chunk_count++].bytes = (size_t)header.chunk_bytes;
		offset += (size_t)header.chunk_bytes;
	}
}

/* Replaces `old` bytes at offset by room for `new`; false if that does not fit. */
static bool sbt_mutate_resize(struct sbt_mutate *m, size_t offset, size_t old, size_t new_bytes)
{
	if (m->size - old + new_bytes > m->max_size)
		return false;
	memmove(m->data + offset + new_bytes, m->data + offset + old, m->size - offset - old);
	m->size = m->size - old + new_bytes;
	return true;
}

/* ---- assembling ---- */

static void sbt_mutate_stamp_chunk(struct sbt_mutate *m, size_t chunk)
{
	struct sbt_chunk_header header = sbt_mutate_header(m, chunk);
	uint32_t columns = sbt_mutate_columns(m, chunk);
	size_t start = m->chunks[chunk].offset, end = start + m->chunks[chunk].bytes;
	size_t offset = start + sizeof(header) + columns * sizeof(struct sbt_column);

	for (uint32_t i = 0; i < columns; i++) {
		struct sbt_column column = sbt_mutate_column(m, chunk, i);

		if (column.stored_bytes > end - offset)
			break;
		column.checksum = ts_hash64(m->data + offset, column.stored_bytes);
		sbt_mutate_put_column(m, chunk, i, &column);
		offset += column.stored_bytes;
	}
	header.directory_checksum =
		ts_hash64(m->data + start + sizeof(header), columns * sizeof(struct sbt_column));
	header.checksum = ts_hash64(&header, offsetof(struct sbt_chunk_header, checksum));
	sbt_mutate_put_header(m, chunk, &header);
}

static void sbt_mutate_stamp_trailer(struct sbt_mutate *m)
{
	struct sbt_trailer trailer;

	if (m->size < sizeof(trailer))
		return;
	memcpy(&trailer, m->data + m->size - sizeof(trailer), sizeof(trailer));
	if (memcmp(trailer.magic, SBT_TRAILER_MAGIC, SBT_MAGIC_BYTES) != 0)
		return;
	trailer.file_bytes = m->size;
	if (m->chunk_count)
		trailer.index_offset = m->chunks[m->chunk_count - 1].offset;
	trailer.checksum = ts_hash64(&trailer, offsetof(struct sbt_trailer, checksum));
	memcpy(m->data + m->size - sizeof(trailer), &trailer, sizeof(trailer));
}

static void sbt_mutate_stamp(struct sbt_mutate *m)
{
	struct sbt_file_header header;

	if (m->size < sizeof(header))
		return;
	memcpy(&header, m->data, sizeof(header));
	header.checksum = ts_hash64(&header, offsetof(struct sbt_file_header, checksum));
	memcpy(m->data, &header, sizeof(header));
	for (size_t i = 0; i < m->chunk_count; i++)
		sbt_mutate_stamp_chunk(m, i);
	sbt_mutate_stamp_trailer(m);
}

static void sbt_mutate_renumber(struct sbt_mutate *m)
{
	for (size_t i = 0; i < m->chunk_count; i++) {
		struct sbt_chunk_header header = sbt_mutate_header(m, i);

		header.sequence = i;
		sbt_mutate_put_header(m, i, &header);
	}
}

/* Removes index chunks at the end. */
static void sbt_mutate_drop_index(struct sbt_mutate *m)
{
	while (m->chunk_count && sbt_mutate_header(m, m->chunk_count - 1).table == TS_TABLE_INDEX)
		m->size = m->chunks[--m->chunk_count].offset;
}

static int64_t sbt_mutate_index_value(const struct sbt_mutate *m, size_t chunk, int column)
{
	struct sbt_chunk_header header = sbt_mutate_header(m, chunk);

	switch (column) {
	case 0:
		return (int64_t)m->chunks[chunk].offset;
	case 1:
		return (int64_t)header.chunk_bytes;
	case 2:
		return header.table;
	case 3:
		return header.flags;
	case 4:
		return header.rows;
	case 5:
		return header.clock;
	case 6:
		return header.values;
	case 7:
		return header.min_start;
	case 8:
		return header.max_start;
	case 9:
		return header.max_end;
	case 10:
		return (int64_t)header.first_id;
	case 11:
		return header.header_bytes;
	default:
		return (int64_t)header.checksum;
	}
}

/* A new index of all chunks, each column as eight plain planes. */
static void sbt_mutate_add_index(struct sbt_mutate *m)
{
	size_t rows = m->chunk_count, payload = 1 + 8 * (1 + rows);
	size_t header_bytes = sizeof(struct sbt_chunk_header) +
			      SBT_MUTATE_INDEX_COLUMNS * sizeof(struct sbt_column);
	size_t bytes = header_bytes + SBT_MUTATE_INDEX_COLUMNS * payload +
		       sizeof(struct sbt_trailer);
	size_t offset = m->size;
	struct sbt_chunk_header header = { .header_bytes = (uint32_t)header_bytes,
					   .columns = SBT_MUTATE_INDEX_COLUMNS,
					   .chunk_bytes = bytes,
					   .sequence = rows,
					   .flags = SBT_FLAG_FINAL,
					   .rows = (uint32_t)rows,
					   .min_start = TS_ABSENT,
					   .max_start = TS_ABSENT,
					   .max_end = TS_ABSENT };
	uint8_t *at;

	if (rows == 0 || rows == SBT_MUTATE_MAX_CHUNKS || m->size + bytes > m->max_size)
		return;
	/* Rows of the index hold the checksums of the headers. */
	sbt_mutate_stamp(m);
	memcpy(header.magic, SBT_CHUNK_MAGIC, SBT_MAGIC_BYTES);
	m->chunks[m->chunk_count].offset = offset;
	m->chunks[m->chunk_count++].bytes = bytes;
	m->size += bytes;
	sbt_mutate_put_header(m, rows, &header);
	at = m->data + offset + header_bytes;
	for (int c = 0; c < SBT_MUTATE_INDEX_COLUMNS; c++) {
		struct sbt_column column = { .column = (uint16_t)(c + 1),
					     .type = SBT_TYPE_OF_COLUMN + TS_COLUMN_INT,
					     .encoding = SBT_ENCODING(SBT_LAYOUT_PLANES,
								      SBT_TRANSFORM_OFFSET),
					     .count = (uint32_t)rows,
					     .stored_bytes = (uint32_t)payload };

		sbt_mutate_put_column(m, rows, (uint32_t)c, &column);
		*at++ = 8;
		for (int plane = 0; plane < 8; plane++) {
			*at++ = SBT_BLOCK_RAW;
			for (size_t row = 0; row < rows; row++)
				*at++ = (uint8_t)((uint64_t)sbt_mutate_index_value(m, row, c) >>
						  (8 * plane));
		}
	}
	memcpy(at, SBT_TRAILER_MAGIC, SBT_MAGIC_BYTES);
	memset(at + SBT_MAGIC_BYTES, 0, sizeof(struct sbt_trailer) - SBT_MAGIC_BYTES);
}

/* ---- changes ---- */

static uint64_t sbt_mutate_number(struct sbt_mutate *m, uint64_t old)
{
	static const uint64_t edges[] = { 0,
					  1,
					  2,
					  255,
					  65535,
					  65536,
					  131072,
					  131073,
					  UINT32_MAX,
					  (uint64_t)INT64_MAX - 1,
					  INT64_MAX,
					  (uint64_t)INT64_MIN,
					  (uint64_t)INT64_MIN + 1,
					  UINT64_MAX - 1,
					  UINT64_MAX };

	switch (sbt_mutate_random(m, 4)) {
	case 0:
		return edges[sbt_mutate_random(m, sizeof(edges) / sizeof(*edges))];
	case 1:
		return old ^ UINT64_C(1) << sbt_mutate_random(m, 64);
	case 2:
		return old + sbt_mutate_random(m, 17) - 8;
	default:
		return old * sbt_mutate_random(m, 5) + sbt_mutate_random(m, 3);
	}
}

static void sbt_mutate_change_header(struct sbt_mutate *m, size_t chunk)
{
	struct sbt_chunk_header header = sbt_mutate_header(m, chunk);

	switch (sbt_mutate_random(m, 12)) {
	case 0:
		header.table = (uint16_t)(sbt_mutate_random(m, 4)
						  ? sbt_mutate_random(m, TS_TABLE_COUNT + 1)
						  : sbt_mutate_number(m, header.table));
		break;
	case 1:
		header.flags = (uint16_t)sbt_mutate_random(m, 8);
		break;
	case 2:
		/* Mostly small: many empty rows only cost time. */
		header.rows = sbt_mutate_random(m, 16)
				      ? sbt_mutate_random(m, 300)
				      : (uint32_t)sbt_mutate_number(m, header.rows);
		break;
	case 3:
		header.clock = (uint32_t)(sbt_mutate_random(m, 2)
						  ? sbt_mutate_random(m, 4)
						  : sbt_mutate_number(m, header.clock));
		break;
	case 4:
		header.values = (uint32_t)sbt_mutate_number(m, header.values);
		break;
	case 5:
		header.min_start = (int64_t)sbt_mutate_number(m, (uint64_t)header.min_start);
		break;
	case 6:
		header.max_start = (int64_t)sbt_mutate_number(m, (uint64_t)header.max_start);
		break;
	case 7:
		header.max_end = (int64_t)sbt_mutate_number(m, (uint64_t)header.max_end);
		break;
	case 8:
		header.first_id = sbt_mutate_number(m, header.first_id);
		break;
	case 9:
		header.sequence = sbt_mutate_number(m, header.sequence);
		break;
	case 10:
		header.chunk_bytes = sbt_mutate_number(m, header.chunk_bytes);
		break;
	default:
		header.columns = (uint32_t)sbt_mutate_number(m, header.columns);
		if (sbt_mutate_random(m, 2))
			header.header_bytes =
				(uint32_t)(sizeof(header) +
					   header.columns * sizeof(struct sbt_column));
		break;
	}
	sbt_mutate_put_header(m, chunk, &header);
}

static void sbt_mutate_change_column(struct sbt_mutate *m, size_t chunk)
{
	uint32_t columns = sbt_mutate_columns(m, chunk), at = sbt_mutate_random(m, columns);
	struct sbt_column column;

	if (columns == 0)
		return;
	column = sbt_mutate_column(m, chunk, at);
	switch (sbt_mutate_random(m, 7)) {
	case 0:
		column.column = (uint16_t)(sbt_mutate_random(m, 4) ? 1 + sbt_mutate_random(m, 28)
								   : SBT_COLUMN_ARGUMENT);
		break;
	case 1:
		column.type = (uint8_t)(sbt_mutate_random(m, 2)
						? SBT_TYPE_OF_COLUMN + sbt_mutate_random(m, 12)
						: sbt_mutate_random(m, 9));
		break;
	case 2:
		column.encoding = SBT_ENCODING(sbt_mutate_random(m, 6), sbt_mutate_random(m, 4));
		break;
	case 3:
		column.key = (uint32_t)sbt_mutate_number(m, column.key);
		break;
	case 4:
		column.count = (uint32_t)sbt_mutate_number(m, column.count);
		break;
	case 5:
		column.stored_bytes = (uint32_t)sbt_mutate_number(m, column.stored_bytes);
		break;
	default:
		column.base = (int64_t)sbt_mutate_number(m, (uint64_t)column.base);
		break;
	}
	sbt_mutate_put_column(m, chunk, at, &column);
}

/* Mutates the bytes of one column, and updates all sizes. */
static void sbt_mutate_change_payload(struct sbt_mutate *m, size_t chunk)
{
	struct sbt_chunk_header header = sbt_mutate_header(m, chunk);
	uint32_t columns = sbt_mutate_columns(m, chunk), at = sbt_mutate_random(m, columns);
	size_t offset = m->chunks[chunk].offset + sizeof(header) +
			columns * sizeof(struct sbt_column);
	size_t end = m->chunks[chunk].offset + m->chunks[chunk].bytes, capacity, bytes;
	struct sbt_column column;
	uint8_t *payload;

	if (columns == 0 || !LLVMFuzzerMutate)
		return;
	for (uint32_t i = 0; i < at && offset <= end; i++)
		offset += sbt_mutate_column(m, chunk, i).stored_bytes;
	column = sbt_mutate_column(m, chunk, at);
	if (offset > end || column.stored_bytes > end - offset)
		return;
	capacity = column.stored_bytes + 1 + sbt_mutate_random(m, 24);
	payload = malloc(capacity);
	if (!payload)
		return;
	memcpy(payload, m->data + offset, column.stored_bytes);
	bytes = LLVMFuzzerMutate(payload, column.stored_bytes, capacity);
	if (sbt_mutate_resize(m, offset, column.stored_bytes, bytes)) {
		memcpy(m->data + offset, payload, bytes);
		header.chunk_bytes += bytes - column.stored_bytes;
		column.stored_bytes = (uint32_t)bytes;
		sbt_mutate_put_column(m, chunk, at, &column);
		sbt_mutate_put_header(m, chunk, &header);
	}
	free(payload);
}

/* Duplicates or removes a directory entry with its payload. */
static void sbt_mutate_change_directory(struct sbt_mutate *m, size_t chunk)
{
	struct sbt_chunk_header header = sbt_mutate_header(m, chunk);
	uint32_t columns = sbt_mutate_columns(m, chunk);
	size_t directory = m->chunks[chunk].offset + sizeof(header);
	size_t end = m->chunks[chunk].offset + m->chunks[chunk].bytes;
	struct sbt_column first;

	if (columns == 0)
		return;
	first = sbt_mutate_column(m, chunk, 0);
	if (first.stored_bytes > end - directory - columns * sizeof(first))
		return;
	if (sbt_mutate_random(m, 2)) {
		sbt_mutate_resize(m, directory + columns * sizeof(first), first.stored_bytes, 0);
		sbt_mutate_resize(m, directory, sizeof(first), 0);
		header.columns--;
		header.chunk_bytes -= sizeof(first) + first.stored_bytes;
	} else {
		first.encoding = SBT_ENCODING(SBT_LAYOUT_CONST, 0);
		first.stored_bytes = 0;
		first.column = (uint16_t)(1 + sbt_mutate_random(m, 28));
		if (!sbt_mutate_resize(m, directory, 0, sizeof(first)))
			return;
		memcpy(m->data + directory, &first, sizeof(first));
		header.columns++;
		header.chunk_bytes += sizeof(first);
	}
	header.header_bytes = (uint32_t)(sizeof(header) + header.columns * sizeof(first));
	sbt_mutate_put_header(m, chunk, &header);
}

/* Inserts a chunk of some file before chunk `at` (or at the end). */
static void sbt_mutate_insert(struct sbt_mutate *m, size_t at, const uint8_t *chunk, size_t bytes)
{
	size_t offset = at < m->chunk_count ? m->chunks[at].offset : m->size;
	uint8_t *copy = malloc(bytes);

	if (!copy)
		return;
	/* It may be a chunk of this very file, about to be moved. */
	memcpy(copy, chunk, bytes);
	if (sbt_mutate_resize(m, offset, 0, bytes))
		memcpy(m->data + offset, copy, bytes);
	free(copy);
	sbt_mutate_find_chunks(m);
}

static void sbt_mutate_change_order(struct sbt_mutate *m, size_t chunk)
{
	struct sbt_mutate_chunk taken = m->chunks[chunk];

	if (sbt_mutate_random(m, 2))
		sbt_mutate_insert(m, sbt_mutate_random(m, (uint32_t)m->chunk_count + 1),
				  m->data + taken.offset, taken.bytes);
	else
		sbt_mutate_resize(m, taken.offset, taken.bytes, 0);
	sbt_mutate_find_chunks(m);
}

static void sbt_mutate_change_chunk(struct sbt_mutate *m, size_t chunk)
{
	switch (sbt_mutate_random(m, 16)) {
	case 0:
	case 1:
	case 2:
		sbt_mutate_change_header(m, chunk);
		break;
	case 3:
	case 4:
	case 5:
		sbt_mutate_change_column(m, chunk);
		break;
	case 6:
		sbt_mutate_change_directory(m, chunk);
		break;
	case 7:
		sbt_mutate_change_order(m, chunk);
		break;
	default:
		sbt_mutate_change_payload(m, chunk);
		break;
	}
}

/* ---- entry point ---- */

static void sbt_mutate_init(struct sbt_mutate *m, uint8_t *data, size_t size, size_t max_size,
			    unsigned int seed)
{
	m->data = data;
	m->size = size;
	m->max_size = max_size;
	m->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	sbt_mutate_find_chunks(m);
}

/* Mutates the file and assembles it again; returns its size. */
static size_t sbt_mutate_file(struct sbt_mutate *m)
{
	bool renew = sbt_mutate_random(m, 4) != 0;
	uint32_t changes = 1 + sbt_mutate_random(m, 3);

	if (renew)
		sbt_mutate_drop_index(m);
	/* Sometimes random bytes, and a truncated file. */
	if (m->chunk_count == 0 || sbt_mutate_random(m, 32) == 0) {
		if (LLVMFuzzerMutate)
			m->size = LLVMFuzzerMutate(m->data, m->size, m->max_size);
		sbt_mutate_find_chunks(m);
	}
	for (uint32_t i = 0; i < changes && m->chunk_count; i++) {
		sbt_mutate_change_chunk(m, sbt_mutate_random(m, (uint32_t)m->chunk_count));
		sbt_mutate_find_chunks(m);
	}
	if (renew) {
		if (sbt_mutate_random(m, 8))
			sbt_mutate_renumber(m);
		sbt_mutate_add_index(m);
		/* A wrong index with valid checksums. */
		if (m->chunk_count && sbt_mutate_random(m, 8) == 0)
			sbt_mutate_change_payload(m, m->chunk_count - 1);
	}
	sbt_mutate_find_chunks(m);
	if (sbt_mutate_random(m, 16))
		sbt_mutate_stamp(m);
	return m->size;
}

#endif
