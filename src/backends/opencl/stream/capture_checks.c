/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: hashes of memory, and contents if they are kept; those of the end of a window. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/opencl/stream/capture_internal.h"

#define PIECE (UINT64_C(64) << 20) /* a longer range has several checks */

/* Whether --keep-contents allows the contents of a check. The channel is locked. */
static bool keeps_contents(uint64_t bytes)
{
	static uint64_t window, kept;
	uint64_t limit = ts_replay_settings()->keep_contents;

	if (window != ts_replay_window()) {
		window = ts_replay_window();
		kept = 0;
	}
	if (bytes > limit - kept)
		return false;
	kept += bytes;
	return true;
}

/* The channel is locked. */
static void emit_check(const struct stream_check *check, uint64_t bytes, uint64_t hash,
		       uint64_t blob)
{
	struct stream_text text;
	char digits[24];
	struct ts_replay_command row = stream_row(TS_COMMAND_CHECK);

	row.sequence = check->sequence;
	row.object = check->memory;
	if (check->memory)
		row.offset = (int64_t)check->offset;
	row.bytes = (int64_t)bytes;
	row.blob = blob;
	snprintf(digits, sizeof(digits), "%016" PRIx64, hash);
	stream_text_begin(&text);
	stream_text_string(&text, "hash", digits);
	stream_text_string(&text, "why", check->why);
	row.details = stream_text_end(&text);
	ts_replay_append(&row);
}

void stream_emit_check_locked(const struct stream_check *check, uint64_t bytes, uint64_t hash)
{
	emit_check(check, bytes, hash, 0);
}

void stream_emit_check(const struct stream_check *check, uint64_t bytes, uint64_t hash)
{
	if (ts_replay_lock_window()) {
		emit_check(check, bytes, hash, 0);
		ts_replay_unlock();
	}
}

void stream_check_locked(const struct stream_check *check, const void *data, uint64_t bytes,
			 uint64_t hash)
{
	emit_check(check, bytes, hash, keeps_contents(bytes) ? ts_replay_blob(data, bytes) : 0);
}

void stream_check_bytes(const struct stream_check *check, const void *data, uint64_t bytes)
{
	uint64_t hash = ts_replay_hash(data, bytes);

	if (ts_replay_lock_window()) {
		stream_check_locked(check, data, bytes, hash);
		ts_replay_unlock();
	}
}

bool stream_check_foreign(const struct stream_check *check, const struct stream_foreign *foreign)
{
	uint64_t hash = 0, blob = 0;
	bool is_there;

	if (!ts_replay_settings()->keep_contents) {
		is_there = stream_foreign_read(foreign, &hash, NULL);
		if (is_there)
			stream_emit_check(check, foreign->bytes, hash);
		return is_there;
	}
	if (!ts_replay_lock_window())
		return true;
	is_there =
		stream_foreign_read(foreign, &hash, keeps_contents(foreign->bytes) ? &blob : NULL);
	if (is_there)
		emit_check(check, foreign->bytes, hash, blob);
	ts_replay_unlock();
	return is_there;
}

uint64_t stream_check_part(const struct stream_range *range, uint64_t at)
{
	uint64_t left = range->bytes - at;

	return left < PIECE || range->memory->as.memory.image ? left : PIECE;
}

/* With contents if these are kept; images are read as a whole. */
static cl_int check_whole(const struct stream_check *check, const struct ocl_stream *memory,
			  uint64_t bytes)
{
	void *data = malloc(bytes);
	cl_int rc = data ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;

	if (data)
		rc = stream_read_back(memory, check->offset, bytes, data);
	if (rc == CL_SUCCESS)
		stream_check_bytes(check, data, bytes);
	free(data);
	return rc;
}

static cl_int check_part(const struct stream_check *check, const struct ocl_stream *memory,
			 uint64_t bytes)
{
	uint64_t hash;
	cl_int rc;

	if (memory->as.memory.image || ts_replay_settings()->keep_contents)
		return check_whole(check, memory, bytes);
	rc = stream_hash_back(memory, check->offset, bytes, &hash);
	if (rc == CL_SUCCESS)
		stream_emit_check(check, bytes, hash);
	return rc;
}

void stream_check_range(const struct stream_range *range, uint64_t sequence, const char *why)
{
	cl_int rc = CL_SUCCESS;

	for (uint64_t at = 0, bytes; rc == CL_SUCCESS && at < range->bytes; at += bytes) {
		struct stream_check check = { sequence, range->memory->number, range->offset + at,
					      why };

		bytes = stream_check_part(range, at);
		rc = check_part(&check, range->memory, bytes);
	}
	if (rc != CL_SUCCESS)
		stream_lost_memory("checks of memory", range->memory, "it could not be read back");
}

/* Except for what is mapped for writing: its bytes are the host's until they are unmapped. */
static void check_unmapped(struct ocl_stream *memory)
{
	uint64_t bytes = memory->as.memory.bytes, begin, end;
	bool is_mapped;

	for (uint64_t at = 0; at < bytes; at = end) {
		struct stream_range range = { .memory = memory, .offset = at };

		pthread_mutex_lock(&stream_host_lock);
		is_mapped = stream_region_after(memory, at, &begin, &end);
		pthread_mutex_unlock(&stream_host_lock);
		if (!is_mapped)
			begin = end = bytes;
		range.bytes = begin > at ? begin - at : 0;
		stream_check_range(&range, ts_replay_last_sequence(), "final");
	}
}

/* What the driver keeps a copy of is read back, unless reading it could need memory that is gone.
 */
static bool can_be_read(struct ocl_stream *memory)
{
	const struct stream_area *area = &memory->as.memory.area;
	struct stream_foreign all = stream_area_foreign(area);

	if (!area->host)
		return true;
	if (stream_pages_are_shared(memory))
		return false;
	if (stream_foreign_read(&all, NULL, NULL))
		return true;
	if (!area->is_gone)
		stream_lost_memory("checks of memory", memory, "its host memory is gone");
	return false;
}

/* Without reading it, if the last command that wrote it was checked. Contents are read. */
static bool check_again(struct ocl_stream *memory)
{
	struct stream_check check = { ts_replay_last_sequence(), memory->number, 0, "final" };
	uint64_t bytes = memory->as.memory.bytes, hash;

	if (ts_replay_settings()->keep_contents || stream_range_is_mapped(memory, 0, bytes) ||
	    !stream_each_knows(memory, &hash))
		return false;
	stream_emit_check(&check, bytes, hash);
	return true;
}

/* A check of an image covers all of it. */
static void check_image(struct ocl_stream *memory)
{
	struct stream_range all = { .memory = memory, .bytes = memory->as.memory.bytes };

	if (stream_range_is_mapped(memory, 0, all.bytes))
		stream_lost_memory("checks of memory", memory, "it is still mapped for writing");
	else if (can_be_read(memory))
		stream_check_range(&all, ts_replay_last_sequence(), "final");
}

static void check_at_end(struct ocl_stream *memory)
{
	bool is_shared = memory->as.memory.area.host && stream_pages_are_shared(memory);

	if (check_again(memory))
		return;
	if (memory->as.memory.image && !is_shared) {
		check_image(memory);
		return;
	}
	if (can_be_read(memory))
		check_unmapped(memory);
	if (memory->as.memory.area.host && !is_shared)
		return;
	pthread_mutex_lock(&stream_host_lock);
	if (!stream_pages_final(memory))
		stream_lost_memory("checks of memory", memory, "it is still mapped for writing");
	pthread_mutex_unlock(&stream_host_lock);
}

void stream_final_checks(void)
{
	struct ocl_stream *stream;

	for (stream = stream_object_first(); stream; stream = stream->next) {
		if (!stream_has_content(stream))
			continue;
		if (atomic_load(&stream->as.memory.written) == ts_replay_window())
			check_at_end(stream);
		pthread_mutex_lock(&stream_host_lock);
		stream_pages_end(stream);
		pthread_mutex_unlock(&stream_host_lock);
	}
}
