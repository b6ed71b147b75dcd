/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a trace: header, index or scan, clocks, and the list of chunks in trace time. */
#include <stdlib.h>
#include <string.h>

#include "sbt/continued.h"
#include "sbt/reader_internal.h"

/* Each point may belong to a clock of its own. */
#define CLOCK_ROW_BYTES UINT64_C(192)

/* ---- index ---- */

/* One index row as a chunk header. */
static void chunk_of_row(const struct ts_index_row *row, struct sbt_chunk *ret_chunk)
{
	ret_chunk->offset = (uint64_t)row->offset;
	ret_chunk->header = (struct sbt_chunk_header){
		.header_bytes = (uint32_t)row->header_bytes,
		.chunk_bytes = (uint64_t)row->bytes,
		.table = (uint16_t)row->table,
		.flags = (uint16_t)row->flags,
		.rows = (uint32_t)row->rows,
		.clock = (uint32_t)row->clock,
		.values = (uint32_t)row->values,
		.min_start = row->min_start,
		.max_start = row->max_start,
		.max_end = row->max_end,
		.first_id = (uint64_t)row->first_id,
		.checksum = (uint64_t)row->checksum,
	};
}

/* Numbers out of range would be truncated above. */
static bool row_fits(const struct ts_index_row *row, uint64_t expected_offset, uint64_t end)
{
	uint64_t bytes = (uint64_t)row->bytes;

	return (uint64_t)row->offset == expected_offset && bytes <= end - expected_offset &&
	       row->header_bytes >= (int64_t)sizeof(struct sbt_chunk_header) &&
	       (uint64_t)row->header_bytes <= bytes &&
	       row->header_bytes <= (int64_t)(sizeof(struct sbt_chunk_header) +
					      SBT_MAX_COLUMNS * sizeof(struct sbt_column)) &&
	       row->table >= 0 && row->table <= UINT16_MAX && row->flags >= 0 &&
	       row->flags <= UINT16_MAX && row->clock >= 0 && row->clock <= UINT32_MAX &&
	       row->rows >= 0 && row->values >= 0 && row->values <= SBT_MAX_VALUES &&
	       (row->table == TS_TABLE_INDEX ? row->rows <= UINT32_MAX : row->rows <= SBT_MAX_ROWS);
}

static int take_index(struct ts_reader *reader, const struct ts_batch *batch, uint64_t end)
{
	struct sbt_chunk_list *list = &reader->list;
	uint64_t offset = sizeof(struct sbt_file_header);

	if (ts_grow_array((void **)&list->chunks, &list->capacity, batch->rows,
			  sizeof(*list->chunks)))
		return TS_ENOMEM;
	for (uint32_t i = 0; i < batch->rows; i++) {
		struct ts_index_row row;

		ts_batch_row(batch, i, &row);
		if (!row_fits(&row, offset, end))
			return TS_EFORMAT;
		chunk_of_row(&row, &list->chunks[i]);
		offset += (uint64_t)row.bytes;
	}
	list->count = batch->rows;
	return offset == end ? TS_OK : TS_EFORMAT;
}

/* Any failure except out of memory means: scan instead. */
static int load_index(struct ts_reader *reader)
{
	struct sbt_trailer trailer;
	struct sbt_chunk index;
	struct ts_batch *batch;
	int result;

	if (sbt_trailer_read(&reader->file, &trailer) ||
	    trailer.index_offset < sizeof(struct sbt_file_header) ||
	    trailer.index_offset > reader->file.bytes - sizeof(index.header))
		return TS_EFORMAT;
	index.offset = trailer.index_offset;
	if (sbt_file_read(&reader->file, index.offset, &index.header, sizeof(index.header), NULL) ||
	    sbt_chunk_header_fault(&index.header, index.offset, reader->file.bytes) ||
	    index.header.table != TS_TABLE_INDEX ||
	    index.header.chunk_bytes != reader->file.bytes - index.offset)
		return TS_EFORMAT;
	result = ts_batch_new(&batch, reader, NULL);
	if (result)
		return result;
	result = sbt_batch_decode(batch, &index, SBT_CHUNK_UNLISTED, TS_MASK_ALL, NULL, NULL);
	if (!result)
		result = take_index(reader, batch, index.offset);
	ts_batch_free(batch);
	if (!result)
		reader->state.finished = index.header.flags & SBT_FLAG_FINAL;
	return result;
}

/* How to find the chunks: by the index if it is valid, or always by a scan. */
struct opening {
	const char *path;
	const struct sbt_continued *continued; /* NULL: the path */
	bool scan;
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

static int scan_chunks(struct ts_reader *reader, const struct opening *opening,
		       struct ts_error *err)
{
	struct sbt_chunk_list *list = &reader->list;
	int result;

	list->count = 0;
	result = sbt_scan(&reader->file, sizeof(struct sbt_file_header), list, opening->progress,
			  opening->context, err);
	if (list->gap_count)
		reader->state.damaged_offset = list->gaps[0].offset;
	reader->state.damaged_ranges = list->gap_count;
	for (size_t i = 0; i < list->gap_count; i++)
		reader->state.damaged_bytes += list->gaps[i].bytes;
	return result;
}

static int load_chunks(struct ts_reader *reader, const struct opening *opening,
		       struct ts_error *err)
{
	int result = opening->scan ? TS_EFORMAT : load_index(reader);

	if (result == TS_ENOMEM)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	return result ? scan_chunks(reader, opening, err) : TS_OK;
}

/* ---- time ---- */

/*
 * Reads all clock_sync rows. A damaged chunk of them must not make the rest unreadable: uses what
 * is there and keeps the error for ts_reader_status().
 */
static int load_clocks(struct ts_reader *reader, struct ts_error *err)
{
	for (size_t i = 0; i < reader->list.count; i++) {
		struct ts_clock_sync_row row;
		struct ts_error why;

		if (reader->list.chunks[i].header.table != TS_TABLE_CLOCK_SYNC)
			continue;
		if (ts_batch_read(reader->lookup, i, TS_MASK_ALL, &why) ||
		    sbt_budget_take(reader, i, reader->lookup->rows * CLOCK_ROW_BYTES, &why)) {
			sbt_keep_error(reader, &why);
			continue;
		}
		for (uint32_t k = 0; k < reader->lookup->rows; k++) {
			ts_batch_row(reader->lookup, k, &row);
			if (ts_clockmap_add(&reader->clocks, &row))
				return ts_error_set(err, TS_ENOMEM, "no memory");
		}
	}
	ts_clockmap_seal(&reader->clocks);
	return TS_OK;
}

static int publish_chunks(struct ts_reader *reader, struct ts_error *err)
{
	reader->chunks = ts_alloc_array(reader->list.count, sizeof(*reader->chunks));
	if (!reader->chunks)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	for (size_t i = 0; i < reader->list.count; i++) {
		const struct sbt_chunk *chunk = &reader->list.chunks[i];
		const struct sbt_chunk_header *header = &chunk->header;
		const struct ts_clock *clock = ts_clockmap_find(&reader->clocks, header->clock);

		reader->chunks[i] = (struct ts_chunk){
			.offset = chunk->offset,
			.bytes = header->chunk_bytes,
			.first_id = header->first_id,
			.checksum = header->checksum,
			.min_start = ts_clock_convert(clock, header->min_start),
			.max_start = ts_clock_convert(clock, header->max_start),
			.max_end = ts_clock_convert(clock, header->max_end),
			.header_bytes = header->header_bytes,
			.rows = header->rows,
			.values = header->values,
			.clock = header->clock,
			.table = header->table,
			.flags = header->flags,
		};
	}
	return TS_OK;
}

/* ---- from open to close ---- */

static int open_file(struct ts_reader *reader, const struct opening *opening, struct ts_error *err)
{
	int result = opening->continued
			     ? sbt_file_open_continued(&reader->file, opening->continued, err)
			     : sbt_file_open(&reader->file, opening->path, err);

	reader->budget_bytes = SBT_BUDGET +
			       SBT_BUDGET_A_BYTE * TS_MIN(reader->file.bytes, UINT32_MAX);
	if (!result)
		result = sbt_file_check(&reader->file, err);
	if (!result)
		result = ts_batch_new(&reader->lookup, reader, err);
	if (!result)
		result = load_chunks(reader, opening, err);
	if (!result) {
		reader->touched = calloc(reader->list.count + 1, sizeof(*reader->touched));
		if (!reader->touched)
			result = ts_error_set(err, TS_ENOMEM, "no memory");
	}
	if (!result)
		result = load_clocks(reader, err);
	if (!result)
		result = publish_chunks(reader, err);
	if (!result)
		result = sbt_lookup_init(reader, err);
	reader->state.file_bytes = reader->file.bytes;
	reader->state.major = reader->file.header.major;
	reader->state.minor = reader->file.header.minor;
	reader->state.created_ns = reader->file.header.created_ns;
	memcpy(reader->state.trace_id, reader->file.header.trace_id,
	       sizeof(reader->state.trace_id));
	return result;
}

static int open_reader(struct ts_reader **ret_reader, const struct opening *opening,
		       struct ts_error *err)
{
	struct ts_reader *reader = calloc(1, sizeof(*reader));
	int result;

	if (!reader)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	pthread_mutex_init(&reader->lock, NULL);
	pthread_mutex_init(&reader->blob_lock, NULL);
	sbt_reader_list(reader);
	result = open_file(reader, opening, err);
	if (result) {
		ts_reader_close(reader);
		return result;
	}
	*ret_reader = reader;
	return TS_OK;
}

int ts_reader_open(struct ts_reader **ret_reader, const char *path, struct ts_error *err)
{
	return open_reader(ret_reader, &(struct opening){ .path = path }, err);
}

int sbt_reader_open_scanned(struct ts_reader **ret_reader, const char *path,
			    int (*progress)(void *context, uint64_t done, uint64_t total),
			    void *context, struct ts_error *err)
{
	struct opening opening = {
		.path = path, .scan = true, .progress = progress, .context = context
	};

	return open_reader(ret_reader, &opening, err);
}

int sbt_reader_open_continued(struct ts_reader **ret_reader, const struct sbt_continued *continued,
			      struct ts_error *err)
{
	return open_reader(ret_reader, &(struct opening){ .continued = continued }, err);
}

void ts_reader_close(struct ts_reader *reader)
{
	if (!reader)
		return;
	sbt_reader_unlist(reader);
	sbt_lookup_release(reader);
	sbt_blobs_free(reader->blobs);
	ts_batch_free(reader->lookup);
	ts_clockmap_release(&reader->clocks);
	sbt_chunk_list_release(&reader->list);
	free(reader->chunks);
	free(reader->touched);
	sbt_file_close(&reader->file);
	pthread_mutex_destroy(&reader->lock);
	pthread_mutex_destroy(&reader->blob_lock);
	free(reader);
}

const struct ts_reader_state *ts_reader_state(const struct ts_reader *reader)
{
	return &reader->state;
}

uint64_t ts_reader_bytes_read(const struct ts_reader *reader)
{
	return atomic_load_explicit(&reader->file.bytes_read, memory_order_relaxed);
}

uint64_t ts_reader_chunks_read(const struct ts_reader *reader)
{
	return atomic_load_explicit(&reader->chunks_read, memory_order_relaxed);
}

size_t ts_reader_chunk_count(const struct ts_reader *reader)
{
	return reader->list.count;
}

const struct ts_chunk *ts_reader_chunk(const struct ts_reader *reader, size_t index)
{
	return &reader->chunks[index];
}

uint64_t ts_reader_rows(const struct ts_reader *reader, enum ts_table_id table)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < reader->list.count; i++)
		if (reader->chunks[i].table == table)
			rows += reader->chunks[i].rows;
	return rows;
}
