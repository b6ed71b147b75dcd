/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Salvages every intact chunk of a damaged or unfinished trace: copies them byte for byte into a
 * new file with a new index, and adds a loss row for what is missing.
 */
#include "sbt/recover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sbt/chunk_append.h"
#include "sbt/reader_internal.h"

#define LEVEL 3

struct recover {
	struct sbt_recover_options options;
	struct sbt_file file;
	struct sbt_chunk_list list;
	struct sbt_appender out;
	struct ts_recovery result;
	uint64_t next_string;           /* a free id */
	struct sbt_chunk_header latest; /* of the chunk that ends last */
	char *buffer;
	size_t buffer_capacity;
	struct ts_error *err;
};

static int check_paths(const struct recover *recover, const char *to)
{
	struct stat in, out;

	if (fstat(recover->file.fd, &in) == 0 && stat(to, &out) == 0 && in.st_dev == out.st_dev &&
	    in.st_ino == out.st_ino)
		return ts_error_set(recover->err, TS_EINVAL,
				    "cannot recover '%s' into itself: name another file", to);
	if (flock(recover->file.fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK)
		return ts_error_set(recover->err, TS_EIO,
				    "trace '%s' is still being written (stop its recorder first)",
				    recover->file.path);
	return TS_OK;
}

static int copy_chunk(struct recover *recover, const struct sbt_chunk *chunk)
{
	struct sbt_chunk_header header = chunk->header;
	int result;

	if (ts_grow_array((void **)&recover->buffer, &recover->buffer_capacity,
			  chunk->header.chunk_bytes, 1))
		return ts_error_set(recover->err, TS_ENOMEM, "no memory");
	result = sbt_file_read(&recover->file, chunk->offset, recover->buffer,
			       chunk->header.chunk_bytes, recover->err);
	if (result)
		return result;
	recover->result.chunks++;
	recover->result.rows += header.rows;
	if (header.table == TS_TABLE_STRING)
		recover->next_string = TS_MAX(recover->next_string, header.first_id + header.rows);
	if (header.max_start != TS_ABSENT && header.max_start >= recover->latest.max_start)
		recover->latest = header;
	return sbt_appender_add(&recover->out, &header, recover->buffer, NULL, 0, recover->err);
}

static int copy_complete_chunks(struct recover *recover)
{
	for (size_t i = 0; i < recover->list.count; i++) {
		const struct sbt_chunk *chunk = &recover->list.chunks[i];
		int result;

		if (recover->options.progress &&
		    recover->options.progress(recover->options.context, chunk->offset,
					      recover->file.bytes))
			return ts_error_set(recover->err, TS_ECANCELED, "interrupted");
		if (chunk->header.table == TS_TABLE_INDEX)
			continue;
		result = sbt_chunk_check_payloads(&recover->file, chunk, recover->err);
		if (result == TS_EFORMAT) {
			recover->result.damaged_chunks++;
			recover->result.damaged_bytes += chunk->header.chunk_bytes;
			continue;
		}
		if (!result)
			result = copy_chunk(recover, chunk);
		if (result)
			return result;
	}
	return TS_OK;
}

/* Encodes and appends one chunk of rows added by recovery. */
static int add_table(struct recover *recover, struct sbt_chunk_input *input)
{
	struct sbt_chunk_encoder encoder = { .columns = { .level = LEVEL } };
	TS_SCOPED(ts_text) bytes = { 0 };
	struct sbt_chunk_header header;
	int result;

	input->longest = INT64_MAX;
	result = sbt_chunk_encode(&encoder, input, &bytes, &header);
	sbt_chunk_encoder_release(&encoder);
	if (result)
		return ts_error_set(recover->err, TS_ENOMEM, "no memory");
	return sbt_appender_add(&recover->out, &header, bytes.data, NULL, 0, recover->err);
}

/* A loss row and its two texts. */
static int add_loss(struct recover *recover, const char *what, const char *reason, int64_t count)
{
	struct ts_string_row texts[2] = { { .text = (int64_t)strlen(what) },
					  { .text = (int64_t)strlen(reason) } };
	struct ts_loss_row loss = ts_loss_none;
	struct ts_table strings, losses;
	TS_SCOPED(ts_text) bytes = { 0 };
	struct sbt_chunk_input input = { .table = &strings, .first_id = recover->next_string };
	int result = TS_ENOMEM;

	ts_table_init(&strings, ts_table_info(TS_TABLE_STRING));
	ts_table_init(&losses, ts_table_info(TS_TABLE_LOSS));
	ts_text_append_str(&bytes, what);
	ts_text_append_str(&bytes, reason);
	loss.start = recover->latest.max_start == TS_ABSENT ? 0 : recover->latest.max_start;
	loss.what = (int64_t)recover->next_string;
	loss.reason = (int64_t)recover->next_string + 1;
	loss.count = count;
	if (!ts_text_status(&bytes) && !ts_table_add(&strings, &texts[0], NULL, 0) &&
	    !ts_table_add(&strings, &texts[1], NULL, 0) && !ts_table_add(&losses, &loss, NULL, 0)) {
		input.bytes = bytes.data;
		input.byte_count = bytes.length;
		result = add_table(recover, &input);
		input = (struct sbt_chunk_input){ .table = &losses,
						  .clock = recover->latest.clock };
		if (!result)
			result = add_table(recover, &input);
	} else {
		ts_error_set(recover->err, TS_ENOMEM, "no memory");
	}
	ts_table_release(&strings);
	ts_table_release(&losses);
	recover->next_string += TS_ARRAY_SIZE(texts);
	return result;
}

static int add_losses(struct recover *recover)
{
	int result = TS_OK;

	if (recover->result.damaged_bytes)
		result = add_loss(recover, "bytes of the trace file",
				  "damaged or cut short: left out by recover",
				  (int64_t)recover->result.damaged_bytes);
	if (!result && recover->options.lost)
		result = add_loss(recover, "events", recover->options.lost, TS_ABSENT);
	return result;
}

static int recover_all(struct recover *recover, const char *to)
{
	bool has_header = sbt_file_check(&recover->file, recover->err) == TS_OK;
	int result;

	if (!has_header && (recover->err->code == TS_EVERSION ||
			    recover->file.bytes < sizeof(struct sbt_file_header)))
		return recover->err->code;
	/* A damaged file header does not cost the chunks after it. */
	result = sbt_scan(&recover->file, sizeof(struct sbt_file_header), &recover->list,
			  recover->options.progress, recover->options.context, recover->err);
	if (result)
		return result;
	if (!has_header && recover->list.count == 0)
		return ts_error_set(recover->err, TS_EFORMAT,
				    "trace '%s': no intact chunk in this file", recover->file.path);
	for (size_t i = 0; i < recover->list.gap_count; i++)
		recover->result.damaged_bytes += recover->list.gaps[i].bytes;
	result = sbt_appender_open(&recover->out, to, has_header ? &recover->file.header : NULL,
				   recover->err);
	if (!result)
		result = copy_complete_chunks(recover);
	if (!result)
		result = add_losses(recover);
	if (!result)
		result = sbt_appender_finish(&recover->out, LEVEL, recover->err);
	return result;
}

int sbt_recover(const char *from, const char *to, const struct sbt_recover_options *options,
		struct ts_recovery *ret_recovery, struct ts_error *err)
{
	struct ts_error unused_err = { 0 };
	struct recover recover = { .options = *options,
				   .next_string = TS_MAX(options->next_string, 1),
				   .latest = { .max_start = TS_ABSENT },
				   .err = err ? err : &unused_err };
	int result = sbt_file_open(&recover.file, from, recover.err);

	if (options->bytes)
		recover.file.bytes = TS_MIN(recover.file.bytes, options->bytes);
	if (!result)
		result = check_paths(&recover, to);
	if (!result)
		result = recover_all(&recover, to);
	sbt_appender_release(&recover.out);
	sbt_chunk_list_release(&recover.list);
	sbt_file_close(&recover.file);
	free(recover.buffer);
	if (!result && ret_recovery)
		*ret_recovery = recover.result;
	return result;
}

int ts_recover(const char *from, const char *to,
	       int (*progress)(void *context, uint64_t done, uint64_t total), void *context,
	       struct ts_recovery *ret_recovery, struct ts_error *err)
{
	struct sbt_recover_options options = { .progress = progress, .context = context };

	return sbt_recover(from, to, &options, ret_recovery, err);
}

/* ---- checking ---- */

static int check_list(struct sbt_file *file, const struct sbt_chunk_list *list, uint64_t bytes,
		      struct ts_error *err)
{
	uint64_t end = sizeof(struct sbt_file_header);

	if (list->gap_count)
		return ts_error_set(err, TS_EFORMAT, "trace '%s': byte %llu: %s", file->path,
				    (unsigned long long)list->gaps[0].offset, list->gaps[0].why);
	for (size_t i = 0; i < list->count; i++) {
		int result = sbt_chunk_check_payloads(file, &list->chunks[i], err);

		if (result == TS_EFORMAT)
			return sbt_chunk_error(file, &list->chunks[i], i, "checksum differs", err);
		if (result)
			return result;
		end = list->chunks[i].offset + list->chunks[i].header.chunk_bytes;
	}
	if (end == bytes)
		return TS_OK;
	return ts_error_set(err, TS_EFORMAT, "trace '%s': byte %llu: the file ends too early",
			    file->path, (unsigned long long)end);
}

int sbt_check_chunks(const char *path, uint64_t bytes, struct ts_error *err)
{
	struct sbt_chunk_list list = { 0 };
	struct sbt_file file;
	int result = sbt_file_open(&file, path, err);

	file.bytes = TS_MIN(file.bytes, bytes);
	if (!result)
		result = sbt_file_check(&file, err);
	if (!result)
		result = sbt_scan(&file, sizeof(struct sbt_file_header), &list, NULL, NULL, err);
	if (!result)
		result = check_list(&file, &list, bytes, err);
	sbt_chunk_list_release(&list);
	sbt_file_close(&file);
	return result;
}
