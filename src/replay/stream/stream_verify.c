/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifies a trace before it runs: checksums of every chunk of the command stream and of strings,
 * hashes of every blob that is used, owner of the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay/stream/stream_internal.h"
#include "sbt/file.h"
#include "sbt/reader_internal.h"

static bool is_ours(uint32_t table)
{
	return table == TS_TABLE_OBJECT || table == TS_TABLE_COMMAND || table == TS_TABLE_BLOB ||
	       table == TS_TABLE_STRING;
}

/* The list may come from an index, which does not have the full chunk header. */
static const char *chunk_fault(struct ts_reader *reader, const struct sbt_chunk *listed)
{
	struct sbt_chunk chunk = { .offset = listed->offset };
	const char *fault;

	if (sbt_file_read(&reader->file, chunk.offset, &chunk.header, sizeof(chunk.header), NULL))
		return "its header cannot be read";
	fault = sbt_chunk_header_fault(&chunk.header, chunk.offset, reader->file.bytes);
	if (fault)
		return fault;
	if (chunk.header.checksum != listed->header.checksum)
		return "the index disagrees about this chunk";
	return sbt_chunk_check_payloads(&reader->file, &chunk, NULL) ? "checksum differs" : NULL;
}

int ts_replay_verify_chunks(struct ts_reader *reader, struct ts_error *err)
{
	for (size_t i = 0; i < reader->list.count; i++) {
		const struct sbt_chunk *chunk = &reader->list.chunks[i];
		const char *fault = is_ours(chunk->header.table) ? chunk_fault(reader, chunk)
								 : NULL;

		if (fault)
			return sbt_chunk_error(&reader->file, chunk, i, fault, err);
	}
	return TS_OK;
}

/* Checks the open file: its name may refer to another one by now. */
int ts_replay_check_owner(const struct ts_reader *reader, struct ts_error *err)
{
	struct stat status;

	if (fstat(reader->file.fd, &status))
		return ts_error_errno(err, errno, "trace '%s'", reader->file.path);
	if (status.st_uid == geteuid())
		return TS_OK;
	return ts_error_set(
		err, TS_EFORMAT,
		"trace '%s' belongs to another user (uid %" PRIu64
		"), and its commands would run as you: inspect it first, then add '--yes'",
		reader->file.path, (uint64_t)status.st_uid);
}

int ts_replay_blob_read(struct ts_reader *reader, const struct ts_replay_blob_ref *blob, void *to,
			struct ts_error *err)
{
	if (!blob->id || !blob->bytes)
		return TS_OK;
	return ts_reader_blob_read(reader, blob->id, 0, to, blob->bytes, err);
}
