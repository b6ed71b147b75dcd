/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks into a file, and the index behind them. Must not know what chunks hold. */
#include "sbt/append.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

int sbt_appender_open(struct sbt_appender *appender, const char *path,
		      const struct sbt_file_header *header, struct ts_error *err)
{
	struct sbt_file_header own;
	int result;

	ts_table_init(&appender->index, ts_table_info(TS_TABLE_INDEX));
	if (!header) {
		sbt_file_header_init(&own);
		header = &own;
	}
	result = sbt_output_open(&appender->output, path, err);
	return result ? result : sbt_output_append(&appender->output, header, sizeof(*header), err);
}

static void stamp(struct sbt_chunk_header *header, uint64_t sequence)
{
	header->sequence = sequence;
	header->checksum = ts_hash64(header, offsetof(struct sbt_chunk_header, checksum));
}

int sbt_appender_add(struct sbt_appender *appender, struct sbt_chunk_header *header, char *bytes,
		     struct ts_error *err)
{
	struct ts_index_row row;

	stamp(header, appender->index.rows);
	memcpy(bytes, header, sizeof(*header));
	row = (struct ts_index_row){
		.offset = (int64_t)appender->output.bytes,
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
		return ts_error_set(err, TS_ENOMEM, "trace '%s': no memory", appender->output.path);
	return sbt_output_append(&appender->output, bytes, header->chunk_bytes, err);
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

int sbt_appender_finish(struct sbt_appender *appender, int level, struct ts_error *err)
{
	TS_SCOPED(ts_text) out = { 0 };
	int result;

	if (encode_index(appender, level, &out))
		return ts_error_set(err, TS_ENOMEM, "trace '%s': no memory", appender->output.path);
	result = sbt_output_append(&appender->output, out.data, out.length, err);
	return result ? result : sbt_output_close(&appender->output, err);
}

void sbt_appender_release(struct sbt_appender *appender)
{
	ts_table_release(&appender->index);
	sbt_output_close(&appender->output, NULL);
}
