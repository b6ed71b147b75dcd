/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of all pages, from which those that commands changed are restored: on the device if it has
 * room, else on the host.
 */
#include <string.h>

#include "replay/targets/cuda/cuda_session.h"

#define ALIGNMENT 512
#define SPARE_BYTES ((uint64_t)1 << 30) /* of the device: for kernels that need memory */

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- room ---- */

static bool list_kept(struct ts_replay_session *session, struct ts_cuda_keep *keep,
		      uint64_t *ret_bytes)
{
	size_t count = session->pages.count;

	keep->pages.items = ts_alloc_array(count + 1, sizeof(*keep->pages.items));
	keep->at = ts_alloc_array(count + 1, sizeof(*keep->at));
	if (!keep->pages.items || !keep->at)
		return false;
	if (count)
		memcpy(keep->pages.items, session->pages.items,
		       count * sizeof(*session->pages.items));
	keep->pages.count = count;
	*ret_bytes = 0;
	for (size_t i = 0; i < count; i++) {
		keep->at[i] = *ret_bytes;
		*ret_bytes += aligned(keep->pages.items[i].bytes);
	}
	return true;
}

static bool find_room(struct ts_replay_session *session, struct ts_cuda_keep *keep, uint64_t bytes)
{
	uint64_t available;

	keep->context = session->contexts[0];
	if (!bytes || ts_cuda_enter(session, session->objects[keep->context].handle))
		return !bytes;
	available = ts_cuda_free_bytes(session);
	/*
	 * Memory of other devices is copied to the host, as is all of it if the commands still need
	 * what is free now.
	 */
	if (session->device_count == 1 && session->context_count == 1 && !session->is_tight &&
	    available > SPARE_BYTES && bytes <= available - SPARE_BYTES &&
	    !session->cu.MemAlloc(&keep->address, bytes))
		return true;
	keep->address = 0;
	if (bytes > ts_cuda_host_bytes())
		return false;
	keep->host = ts_alloc_array(bytes, 1);
	return keep->host != NULL;
}

/* ---- copies ---- */

/* Copies pages that follow each other to their copies, or back. */
static int copy_pages(struct ts_replay_session *session, const struct ts_cuda_keep *keep,
		      size_t index, uint64_t bytes, bool back)
{
	const struct ts_cuda_page *page = &keep->pages.items[index];
	uint64_t address = ts_cuda_address(session, page->memory, page->offset), copy, to, from;
	void *stream;
	int code = ts_cuda_enter_for(session, page->memory, &stream);

	copy = keep->address ? keep->address + keep->at[index]
			     : (uint64_t)(uintptr_t)(keep->host + keep->at[index]);
	to = back ? address : copy;
	from = back ? copy : address;
	return code ? code : session->cu.MemcpyAsync(to, from, bytes, stream);
}

/* Does a page follow another, in memory and in the copies? */
static bool follows(const struct ts_cuda_keep *keep, size_t index)
{
	const struct ts_cuda_page *page = &keep->pages.items[index], *before = page - 1;

	return page->memory == before->memory && page->offset == before->offset + before->bytes &&
	       keep->at[index] == keep->at[index - 1] + before->bytes;
}

static int wait_copies(struct ts_replay_session *session)
{
	int code = 0;

	for (uint32_t i = 0; i < session->context_count && !code; i++) {
		const struct ts_cuda_object *context = &session->objects[session->contexts[i]];

		code = ts_cuda_enter(session, context->handle);
		if (!code)
			code = session->cu.StreamSynchronize(context->hasher.stream);
	}
	return code;
}

bool ts_cuda_keep_pages(struct ts_replay_session *session, struct ts_cuda_keep *keep)
{
	uint64_t bytes = 0;
	int code = 0;

	*keep = (struct ts_cuda_keep){ 0 };
	if (!list_kept(session, keep, &bytes) || !find_room(session, keep, bytes)) {
		ts_cuda_keep_release(session, keep);
		return false;
	}
	for (size_t i = 0; i < keep->pages.count && !code; i++) {
		size_t first = i;

		for (bytes = keep->pages.items[i].bytes;
		     i + 1 < keep->pages.count && follows(keep, i + 1); i++)
			bytes += keep->pages.items[i + 1].bytes;
		code = copy_pages(session, keep, first, bytes, false);
	}
	if (!code)
		code = wait_copies(session);
	if (code)
		ts_cuda_keep_release(session, keep);
	keep->is_valid = !code;
	return !code;
}

static bool is_same(const struct ts_cuda_page *a, const struct ts_cuda_page *b)
{
	return a->memory == b->memory && a->offset == b->offset && a->bytes == b->bytes;
}

int ts_cuda_put_pages(struct ts_replay_session *session, const struct ts_cuda_keep *keep,
		      const bool *wanted, struct ts_error *err)
{
	size_t at = 0;
	int code = 0;

	for (size_t i = 0; i < session->pages.count && !code; i++) {
		if (!wanted[i])
			continue;
		while (at < keep->pages.count &&
		       !is_same(&keep->pages.items[at], &session->pages.items[i]))
			at++;
		if (at == keep->pages.count)
			return ts_error_set(err, TS_EINVAL, "a page to restore was not kept");
		code = copy_pages(session, keep, at, keep->pages.items[at].bytes, true);
	}
	if (!code)
		code = wait_copies(session);
	return code ? ts_cuda_fail(session, code, err, "cannot restore memory") : TS_OK;
}

void ts_cuda_keep_release(struct ts_replay_session *session, struct ts_cuda_keep *keep)
{
	if (keep->address && !ts_cuda_enter(session, session->objects[keep->context].handle))
		session->cu.MemFree(keep->address);
	free(keep->host);
	free(keep->pages.items);
	free(keep->at);
	*keep = (struct ts_cuda_keep){ 0 };
}
