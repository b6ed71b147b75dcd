/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that the recorded program copied from the host, and parameters of kernels: read before the
 * clock starts, in pinned memory as far as there is some.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "replay/targets/cuda/cuda_session.h"

#define CHUNK_BYTES ((uint64_t)64 << 20)
#define MOST_PINNED ((uint64_t)4 << 30)
#define MOST_STAGED ((uint64_t)16 << 30)
/* Data up to this size is always staged: parameters and patterns. */
#define ALWAYS_STAGED ((uint64_t)64 << 10)
#define ALIGNMENT 64

uint64_t ts_cuda_host_bytes(void)
{
	int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : MOST_PINNED;
}

/* ---- pinned memory ---- */

static bool add_chunk(struct ts_replay_session *session, uint64_t bytes)
{
	uint64_t most = TS_MIN(ts_cuda_host_bytes() / 4, MOST_PINNED);
	void *chunk = NULL;

	bytes = TS_MAX(bytes, CHUNK_BYTES);
	if (session->pinned_total + bytes > most ||
	    ts_grow_array((void **)&session->pinned_chunks, &session->pinned_chunk_capacity,
			  session->pinned_chunk_count + 1, sizeof(*session->pinned_chunks)))
		return false;
	if (ts_cuda_enter(session, session->objects[session->contexts[0]].handle) ||
	    session->cu.MemAllocHost(&chunk, bytes))
		return false;
	session->pinned_chunks[session->pinned_chunk_count++] = chunk;
	session->pinned = chunk;
	session->pinned_used = 0;
	session->pinned_bytes = bytes;
	session->pinned_total += bytes;
	return true;
}

void *ts_cuda_pinned(struct ts_replay_session *session, uint64_t bytes)
{
	uint64_t need = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	char *data;

	if (need < bytes ||
	    (session->pinned_bytes - session->pinned_used < need && !add_chunk(session, need)))
		return NULL;
	data = session->pinned + session->pinned_used;
	session->pinned_used += need;
	return data;
}

int ts_cuda_need_scratch(struct ts_replay_session *session, uint64_t bytes, struct ts_error *err)
{
	void *scratch = NULL;
	int code;

	if (bytes <= session->scratch_bytes)
		return TS_OK;
	if (session->scratch)
		session->cu.MemFreeHost(session->scratch);
	session->scratch = NULL;
	session->scratch_bytes = 0;
	code = ts_cuda_enter(session, session->objects[session->contexts[0]].handle);
	if (!code)
		code = session->cu.MemAllocHost(&scratch, bytes);
	if (code)
		return ts_cuda_fail(session, code, err, "no pinned memory (%" PRIu64 " bytes)",
				    bytes);
	session->scratch = scratch;
	session->scratch_bytes = bytes;
	return TS_OK;
}

void ts_cuda_free_staging(struct ts_replay_session *session)
{
	for (size_t i = 0; i < session->pinned_chunk_count; i++)
		session->cu.MemFreeHost(session->pinned_chunks[i]);
	free(session->pinned_chunks);
	if (session->scratch)
		session->cu.MemFreeHost(session->scratch);
	ts_map_release(&session->staged);
}

/* ---- blobs ---- */

static int read_staged(struct ts_replay_session *session, const struct ts_replay_blob_ref *blob,
		       uint64_t address, void **ret_data, struct ts_error *err)
{
	/* Small ones are parameters and patterns, which the driver copies when it is called. */
	void *data = blob->bytes > 4096 ? ts_cuda_pinned(session, blob->bytes) : NULL;
	int rc;

	if (!data)
		data = ts_arena_alloc(&session->arena, blob->bytes);
	if (!data)
		return ts_error_set(err, TS_ENOMEM, "no memory for %" PRIu64 " bytes of blob %u",
				    blob->bytes, blob->id);
	rc = ts_replay_blob_read(session->stream->reader, blob, data, err);
	if (rc)
		return rc;
	ts_cuda_move_forth(session, data, blob->bytes, address);
	*ret_data = data;
	return TS_OK;
}

int ts_cuda_stage(struct ts_replay_session *session, const struct ts_replay_blob_ref *blob,
		  uint64_t address, const void **ret_data, struct ts_error *err)
{
	/* Where words begin depends on the address. */
	uint64_t key = (uint64_t)blob->id << 3 | (session->move_count ? address % 8 : 0), known;
	void *data = NULL;
	int rc;

	*ret_data = NULL;
	if (!blob->id || !blob->bytes)
		return TS_OK;
	if (ts_map_get(&session->staged, key, &known)) {
		*ret_data = (const void *)(uintptr_t)known;
		return TS_OK;
	}
	if (blob->bytes > ALWAYS_STAGED &&
	    session->staged_bytes + blob->bytes > TS_MIN(ts_cuda_host_bytes(), MOST_STAGED))
		return TS_OK;
	rc = read_staged(session, blob, address, &data, err);
	if (rc)
		return rc;
	if (ts_map_put(&session->staged, key, (uintptr_t)data))
		return ts_error_set(err, TS_ENOMEM, "no memory for a list of blobs");
	session->staged_bytes += blob->bytes;
	*ret_data = data;
	return TS_OK;
}
