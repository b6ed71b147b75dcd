/* SPDX-License-Identifier: Apache-2.0 */
/* Appends chunks to a file, followed by the index. */
#include "sbt/chunk_append.h"

#include <string.h>

#include "base/local/hash.h"
#include "base/memory.h"
#include "sbt/file.h"

int sbt_appender_open(struct sbt_appender *appender, const char *path,
		      const struct sbt_file_header *header, struct ts_error *err)
{
	struct sbt_file_header default_header;
	int result;

	ts_table_init(&appender->index, ts_table_info(TS_TABLE_INDEX));
	if (!header) {
		sbt_file_header_init(&default_header, NULL);
		header = &default_header;
	}
	result = sbt_output_open(&appender->output, path, err);
	return result ? result : sbt_output_append(&appender->output, header, sizeof(*header), err);
}

static void stamp(struct sbt_chunk_header *header, uint64_t sequence)
{
	header->sequence = sequence;
	header->checksum = ts_hash64(header, offsetof(struct sbt_chunk_header, checksum));
}

static int list_chunk(struct sbt_appender *appender, const struct sbt_chunk_header *header,
		      uint64_t offset, struct ts_error *err)
{
	struct ts_index_row row = {
		.offset = (int64_t)offset,
		.bytes = (int64_t)header->chunk_bytes,
		.table = header->table,
		.flags = header->flags,
		.rows = header->rows,
		.clock = header->clock,
		.values = header->values,
		.min_start = header->min_start,
		.max_start = header->max_start,
		.max_end = header->max_end,
		.first_id = (int64_t)header->first_id,
		.header_bytes = header->header_bytes,
		.checksum = (int64_t)header->checksum,
	};
	if (ts_table_add(&appender->index, &row, NULL, 0))
		return ts_error_set(err, TS_ENOMEM, "no memory for the index of a trace");
	return TS_OK;
}

/* ---- going on with a file ---- */

/* Lists the chunks of the file up to *bytes; returns where they end. */
static int list_chunks(struct sbt_appender *appender, struct sbt_file *file, uint64_t *bytes,
		       struct ts_error *err)
{
	uint64_t offset = sizeof(struct sbt_file_header), end = TS_MIN(*bytes, file->bytes);
	const char *fault = NULL;

	while (offset < end) {
		struct sbt_chunk_header header;
		int result;

		if (end - offset < sizeof(header)) {
			fault = "the file ends inside a chunk header";
			break;
		}
		result = sbt_file_read(file, offset, &header, sizeof(header), err);
		if (result)
			return result;
		fault = sbt_chunk_header_fault(&header, offset, end);
		if (!fault && header.sequence != appender->index.rows)
			fault = "chunk is out of sequence";
		/* An index at the end is replaced. */
		if (fault || (header.table == TS_TABLE_INDEX && *bytes == UINT64_MAX &&
			      offset + header.chunk_bytes == end))
			break;
		result = list_chunk(appender, &header, offset, err);
		if (result)
			return result;
		offset += header.chunk_bytes;
	}
	if (*bytes != UINT64_MAX && offset != *bytes)
		return ts_error_set(
			err, TS_EFORMAT,
			"trace '%s': byte %llu: %s, so it cannot be continued from byte %llu",
			file->path, (unsigned long long)offset,
			fault ? fault : "the file ends here", (unsigned long long)*bytes);
	*bytes = offset;
	return TS_OK;
}

static int check_and_list(struct sbt_appender *appender, struct sbt_file *file,
			  const uint8_t *trace_id, uint64_t *bytes, struct ts_error *err)
{
	int result = sbt_file_check(file, err);

	if (result)
		return result;
	if (trace_id && memcmp(trace_id, file->header.trace_id, sizeof(file->header.trace_id)) != 0)
		return ts_error_set(err, TS_EFORMAT, "trace '%s' is not the trace to be continued",
				    file->path);
	return list_chunks(appender, file, bytes, err);
}

int sbt_appender_resume(struct sbt_appender *appender, const char *path, uint64_t bytes,
			const uint8_t *trace_id, struct ts_error *err)
{
	struct sbt_file file;
	int result = sbt_file_open(&file, path, err);

	ts_table_init(&appender->index, ts_table_info(TS_TABLE_INDEX));
	if (!result)
		result = check_and_list(appender, &file, trace_id, &bytes, err);
	sbt_file_close(&file);
	return result ? result : sbt_output_resume(&appender->output, path, bytes, err);
}

int sbt_appender_continue(struct sbt_appender *appender, const struct sbt_continued *continued,
			  const char *path, const uint8_t *trace_id, struct ts_error *err)
{
	uint64_t bytes = continued->base_bytes;
	struct sbt_file file;
	int result = sbt_file_open_continued(&file, continued, err);

	ts_table_init(&appender->index, ts_table_info(TS_TABLE_INDEX));
	/* The second file is still empty. */
	file.bytes = bytes;
	if (!result)
		result = check_and_list(appender, &file, trace_id, &bytes, err);
	sbt_file_close(&file);
	/* It is given that size, so that its chunks are where the trace has them. */
	return result ? result : sbt_output_resume(&appender->output, path, bytes, err);
}

/* ---- chunks and index ---- */

int sbt_appender_add(struct sbt_appender *appender, struct sbt_chunk_header *header, char *bytes,
		     const char *tail, size_t tail_bytes, struct ts_error *err)
{
	int result = TS_OK;

	if (appender->index_bytes)
		result = sbt_output_cut(&appender->output, err);
	__atomic_store_n(&appender->index_bytes, 0, __ATOMIC_RELAXED);
	stamp(header, appender->index.rows);
	memcpy(bytes, header, sizeof(*header));
	if (!result)
		result = list_chunk(appender, header, appender->output.bytes, err);
	if (!result)
		result = sbt_output_append_two(&appender->output, bytes,
					       header->chunk_bytes - tail_bytes, tail, tail_bytes,
					       err);
	return result;
}

uint64_t sbt_appender_chunk_bytes(const struct sbt_appender *appender)
{
	return __atomic_load_n(&appender->output.bytes, __ATOMIC_RELAXED);
}

uint64_t sbt_appender_bytes(const struct sbt_appender *appender)
{
	return sbt_appender_chunk_bytes(appender) +
	       __atomic_load_n(&appender->index_bytes, __ATOMIC_RELAXED);
}

static int encode_index(struct sbt_appender *appender, int level, struct ts_text *out)
{
	struct sbt_chunk_encoder encoder = { .columns = { .level = level } };
	struct sbt_chunk_input input = { .table = &appender->index,
					 .longest = INT64_MAX,
					 .sequence = appender->index.rows,
					 .flags = SBT_FLAG_FINAL };
	struct sbt_trailer trailer = { .index_offset = appender->output.bytes };
	struct sbt_chunk_header header;
	int result = sbt_chunk_encode(&encoder, &input, out, &header);

	sbt_chunk_encoder_release(&encoder);
	if (result)
		return result;
	memcpy(trailer.magic, SBT_TRAILER_MAGIC, SBT_MAGIC_BYTES);
	trailer.file_bytes = appender->output.bytes + header.chunk_bytes;
	trailer.checksum = ts_hash64(&trailer, offsetof(struct sbt_trailer, checksum));
	ts_text_append(out, &trailer, sizeof(trailer));
	return ts_text_status(out);
}

int sbt_appender_save(struct sbt_appender *appender, int level, struct ts_error *err)
{
	TS_SCOPED(ts_text) out = { 0 };
	int result;

	if (appender->index_bytes)
		return TS_OK;
	if (encode_index(appender, level, &out))
		return ts_error_set(err, TS_ENOMEM, "trace '%s': no memory", appender->output.path);
	result = sbt_output_append(&appender->output, out.data, out.length, err);
	if (result)
		return result;
	appender->output.bytes -= out.length;
	appender->index_bytes = out.length;
	return TS_OK;
}

int sbt_appender_finish(struct sbt_appender *appender, int level, struct ts_error *err)
{
	int result = sbt_appender_save(appender, level, err);

	if (!result)
		result = sbt_output_sync(&appender->output, err);
	return result ? result : sbt_output_close(&appender->output, err);
}

void sbt_appender_release(struct sbt_appender *appender)
{
	ts_table_release(&appender->index);
	sbt_output_close(&appender->output, NULL);
}
