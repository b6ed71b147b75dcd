/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of all mapped memory of devices, and their hashes, computed on the device with words that
 * were moved here counted as recorded (docs/cuda-replay.md, 4.3).
 *
 * All copies to the device are made in the hasher's stream, like the kernels that need them: one in
 * the default stream may be under way when its call returns, if its source is pageable, and the
 * hasher's stream does not wait for that one.
 */
#include <inttypes.h>
#include <string.h>

#include "replay/targets/cuda/cuda_session.h"

/* ---- kernels ---- */

static int copy_table(struct ts_replay_session *session, const struct ts_cuda_hasher *hasher,
		      const struct ts_page_move *moves, uint64_t *ret_table)
{
	uint64_t bytes = session->move_count * sizeof(*moves);
	int code;

	if (!bytes)
		return 0;
	code = session->cu.MemAlloc(ret_table, bytes);
	return code ? code : session->cu.MemcpyHtoDAsync(*ret_table, moves, bytes, hasher->stream);
}

static int make_hasher(struct ts_replay_session *session, uint32_t context, struct ts_error *err)
{
	struct ts_cuda_hasher *hasher = &session->objects[context].hasher;
	const struct cuda_driver_functions *cu = &session->cu;
	int code = ts_cuda_enter(session, session->objects[context].handle);

	if (!code)
		code = cu->StreamCreate(&hasher->stream, CUDA_STREAM_NON_BLOCKING);
	if (!code)
		code = cu->ModuleLoadData(&hasher->module, ts_page_kernels_ptx);
	if (!code)
		code = cu->ModuleGetFunction(&hasher->hash, hasher->module, TS_HASH_PAGES);
	if (!code)
		code = cu->ModuleGetFunction(&hasher->move, hasher->module, TS_MOVE_WORDS);
	if (!code)
		code = copy_table(session, hasher, session->forth, &hasher->forth);
	if (!code)
		code = copy_table(session, hasher, session->back, &hasher->back);
	if (!code && session->move_count)
		code = cu->MemAlloc(&hasher->counts, session->move_count * sizeof(uint64_t));
	if (!code)
		code = cu->StreamSynchronize(hasher->stream);
	return code ? ts_cuda_fail(session, code, err, "kernels that compare memory") : TS_OK;
}

int ts_cuda_make_hashers(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->context_count && !rc; i++)
		rc = make_hasher(session, session->contexts[i], err);
	return rc;
}

static void free_hasher(struct ts_replay_session *session, uint32_t context)
{
	struct ts_cuda_hasher *hasher = &session->objects[context].hasher;
	const uint64_t tables[] = { hasher->ranges, hasher->hashes, hasher->forth, hasher->back,
				    hasher->counts };

	if (!hasher->stream || ts_cuda_enter(session, session->objects[context].handle))
		return;
	for (size_t i = 0; i < TS_ARRAY_SIZE(tables); i++)
		if (tables[i])
			session->cu.MemFree(tables[i]);
	if (hasher->module)
		session->cu.ModuleUnload(hasher->module);
	session->cu.StreamDestroy(hasher->stream);
}

void ts_cuda_free_hashers(struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->context_count; i++)
		free_hasher(session, session->contexts[i]);
	free(session->pages.items);
	free(session->initial.items);
}

/* Tables on the device for that many pages; the context is current. */
static int need_tables(struct ts_replay_session *session, struct ts_cuda_hasher *hasher,
		       size_t count)
{
	const struct cuda_driver_functions *cu = &session->cu;
	size_t capacity = TS_MAX(count + count / 4, (size_t)1024);
	int code;

	if (count <= hasher->capacity)
		return 0;
	if (hasher->ranges)
		cu->MemFree(hasher->ranges);
	if (hasher->hashes)
		cu->MemFree(hasher->hashes);
	hasher->ranges = hasher->hashes = 0;
	hasher->capacity = 0;
	code = cu->MemAlloc(&hasher->ranges, capacity * sizeof(struct ts_page_range));
	if (!code)
		code = cu->MemAlloc(&hasher->hashes, capacity * sizeof(uint64_t));
	if (!code)
		hasher->capacity = capacity;
	return code;
}

static int launch(struct ts_replay_session *session, const struct ts_cuda_hasher *hasher,
		  void *kernel, size_t count, void **params)
{
	const unsigned int threads = TS_PAGE_KERNEL_THREADS;
	int code = session->cu.LaunchKernel(kernel, (unsigned int)count, 1, 1, threads, 1, 1, 0,
					    hasher->stream, params, NULL);

	return code ? code : session->cu.StreamSynchronize(hasher->stream);
}

/* ---- the list of pages ---- */

uint32_t ts_cuda_context_of(const struct ts_replay_session *session, uint32_t memory)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, memory);

	if (info->flags & TS_REPLAY_GLOBAL)
		return ts_cuda_info(session, info->parent)->parent;
	for (uint32_t i = 0; i < session->context_count && !(info->flags & TS_REPLAY_HOST); i++)
		if (session->objects[session->contexts[i]].device ==
		    session->objects[memory].device)
			return session->contexts[i];
	return session->contexts[0];
}

int ts_cuda_enter_for(struct ts_replay_session *session, uint32_t memory, void **ret_stream)
{
	const struct ts_cuda_object *context =
		&session->objects[ts_cuda_context_of(session, memory)];

	*ret_stream = context->hasher.stream;
	return ts_cuda_enter(session, context->handle);
}

static int add_page(struct ts_cuda_pages *pages, const struct ts_cuda_page *page)
{
	if (ts_grow_array((void **)&pages->items, &pages->capacity, pages->count + 1,
			  sizeof(*pages->items)))
		return TS_ENOMEM;
	pages->items[pages->count++] = *page;
	return TS_OK;
}

/* Ranges are cut at multiples of a page of the object. */
static int add_pages(struct ts_replay_session *session, uint32_t memory,
		     struct ts_cuda_pages *pages)
{
	const struct ts_cuda_ranges *mapped = &session->objects[memory].mapped;
	struct ts_cuda_page page = { .memory = memory,
				     .context = ts_cuda_context_of(session, memory) };
	int rc = TS_OK;

	for (size_t i = 0; i < mapped->count && !rc; i++) {
		uint64_t end = mapped->items[i].offset + mapped->items[i].bytes;

		for (page.offset = mapped->items[i].offset; page.offset < end && !rc;
		     page.offset += page.bytes) {
			page.bytes = TS_MIN(TS_PAGE_BYTES - page.offset % TS_PAGE_BYTES,
					    end - page.offset);
			rc = add_page(pages, &page);
		}
	}
	return rc;
}

static int compare_pages(const struct ts_cuda_page *a, const struct ts_cuda_page *b)
{
	return a->memory != b->memory ? TS_COMPARE(a->memory, b->memory)
				      : TS_COMPARE(a->offset, b->offset);
}

/* Pages that are in both keep their hashes. */
static void keep_hashes(const struct ts_cuda_pages *before, struct ts_cuda_pages *pages)
{
	size_t old = 0;

	for (size_t i = 0; i < pages->count; i++) {
		struct ts_cuda_page *page = &pages->items[i];

		while (old < before->count && compare_pages(&before->items[old], page) < 0)
			old++;
		if (old == before->count || compare_pages(&before->items[old], page) != 0 ||
		    before->items[old].bytes != page->bytes)
			continue;
		page->hash = before->items[old].hash;
		page->is_hashed = before->items[old].is_hashed;
	}
}

int ts_cuda_list_pages(struct ts_replay_session *session, struct ts_error *err)
{
	struct ts_cuda_pages pages = { 0 };
	int rc = TS_OK;

	if (!session->pages_stale)
		return TS_OK;
	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++)
		if (session->objects[i].is_needed &&
		    ts_cuda_info(session, i)->kind == TS_OBJECT_MEMORY &&
		    !ts_cuda_is_host(session, i))
			rc = add_pages(session, i, &pages);
	if (rc) {
		free(pages.items);
		return ts_error_set(err, rc, "no memory for a list of pages");
	}
	keep_hashes(&session->pages, &pages);
	free(session->pages.items);
	session->pages = pages;
	session->pages_stale = false;
	return TS_OK;
}

/* ---- hashing ---- */

/* Pages that one context hashes. */
struct batch {
	struct ts_replay_session *session;
	uint32_t context;
	struct ts_page_range *ranges;
	uint64_t *hashes;
	size_t *pages; /* indices */
	size_t count;
};

/* Globals may begin at any byte; kernels read words. */
static int hash_unaligned(struct ts_replay_session *session, const struct ts_cuda_page *page,
			  uint64_t *ret_hash)
{
	uint64_t address = ts_cuda_address(session, page->memory, page->offset);
	TS_AUTO_FREE char *copy = ts_alloc_array(page->bytes + 8, 1);
	int code;

	if (!copy)
		return CUDA_OUT_OF_MEMORY;
	code = ts_cuda_enter(session, session->objects[page->context].handle);
	if (!code)
		code = session->cu.MemcpyDtoH(copy, address, page->bytes);
	if (!code)
		*ret_hash = ts_hash_page(copy, page->bytes, session->back, session->move_count);
	return code;
}

static int run_batch(const struct batch *batch)
{
	struct ts_replay_session *session = batch->session;
	struct ts_cuda_hasher *hasher = &session->objects[batch->context].hasher;
	uint32_t moves = session->move_count;
	void *params[] = { &hasher->ranges, &hasher->hashes, &hasher->back, &moves };
	const struct cuda_driver_functions *cu = &session->cu;
	int code = ts_cuda_enter(session, session->objects[batch->context].handle);

	if (!code)
		code = need_tables(session, hasher, batch->count);
	if (!code)
		code = cu->MemcpyHtoDAsync(hasher->ranges, batch->ranges,
					   batch->count * sizeof(*batch->ranges), hasher->stream);
	if (!code)
		code = launch(session, hasher, hasher->hash, batch->count, params);
	if (!code)
		code = cu->MemcpyDtoH(batch->hashes, hasher->hashes,
				      batch->count * sizeof(*batch->hashes));
	return code;
}

static void take_hash(struct ts_replay_session *session, size_t index, uint64_t hash, bool *changed)
{
	struct ts_cuda_page *page = &session->pages.items[index];

	if (changed && (!page->is_hashed || page->hash != hash))
		changed[index] = true;
	page->hash = hash;
	page->is_hashed = true;
}

static bool is_wanted(const struct ts_cuda_page *page, const struct ts_replay_range *ranges,
		      uint32_t count)
{
	if (!ranges)
		return true;
	for (uint32_t i = 0; i < count; i++)
		if (ranges[i].memory == page->memory &&
		    ranges[i].offset < page->offset + page->bytes &&
		    page->offset < ranges[i].offset + ranges[i].bytes)
			return true;
	return false;
}

static int fill_batch(struct batch *batch, const struct ts_replay_range *ranges,
		      uint32_t range_count, bool *changed)
{
	struct ts_replay_session *session = batch->session;
	uint64_t hash;
	int code = 0;

	batch->count = 0;
	for (size_t i = 0; i < session->pages.count && !code; i++) {
		const struct ts_cuda_page *page = &session->pages.items[i];
		uint64_t address = ts_cuda_address(session, page->memory, page->offset);

		if (page->context != batch->context || !is_wanted(page, ranges, range_count))
			continue;
		if (address % 8 == 0) {
			batch->ranges[batch->count] =
				(struct ts_page_range){ address, page->bytes };
			batch->pages[batch->count++] = i;
			continue;
		}
		code = hash_unaligned(session, page, &hash);
		if (!code)
			take_hash(session, i, hash, changed);
	}
	return code;
}

static int hash_context(struct batch *batch, const struct ts_replay_range *ranges,
			uint32_t range_count, bool *changed)
{
	int code = fill_batch(batch, ranges, range_count, changed);

	if (!code && batch->count)
		code = run_batch(batch);
	for (size_t i = 0; i < batch->count && !code; i++)
		take_hash(batch->session, batch->pages[i], batch->hashes[i], changed);
	return code;
}

int ts_cuda_hash_pages(struct ts_replay_session *session, const struct ts_replay_range *ranges,
		       uint32_t range_count, bool *changed, struct ts_error *err)
{
	size_t count = session->pages.count;
	TS_AUTO_FREE struct ts_page_range *items = ts_alloc_array(count + 1, sizeof(*items));
	TS_AUTO_FREE uint64_t *hashes = ts_alloc_array(count + 1, sizeof(*hashes));
	TS_AUTO_FREE size_t *pages = ts_alloc_array(count + 1, sizeof(*pages));
	struct batch batch = { session, 0, items, hashes, pages, 0 };
	int code = 0;

	if (!items || !hashes || !pages)
		return ts_error_set(err, TS_ENOMEM, "no memory for hashes of pages");
	for (uint32_t i = 0; i < session->context_count && !code; i++) {
		batch.context = session->contexts[i];
		code = hash_context(&batch, ranges, range_count, changed);
	}
	return code ? ts_cuda_fail(session, code, err, "cannot hash memory") : TS_OK;
}

/* ---- moving words ---- */

static int move_unaligned(struct ts_replay_session *session, const struct ts_cuda_page *page)
{
	uint64_t address = ts_cuda_address(session, page->memory, page->offset);
	void *stream = session->objects[page->context].hasher.stream;
	TS_AUTO_FREE char *copy = ts_alloc_array(page->bytes + 8, 1);
	int code;

	if (!copy)
		return CUDA_OUT_OF_MEMORY;
	code = session->cu.MemcpyDtoH(copy, address, page->bytes);
	if (code)
		return code;
	ts_cuda_move_forth(session, copy, page->bytes, address);
	code = session->cu.MemcpyHtoDAsync(address, copy, page->bytes, stream);
	return code ? code : session->cu.StreamSynchronize(stream);
}

static int run_moves(struct ts_replay_session *session, struct ts_cuda_hasher *hasher,
		     const struct ts_page_range *ranges, size_t count, uint64_t *counts)
{
	uint32_t moves = session->move_count, changes = 1;
	void *params[] = { &hasher->ranges, &hasher->counts, &hasher->forth, &moves, &changes };
	uint64_t bytes = moves * sizeof(*counts);
	const struct cuda_driver_functions *cu = &session->cu;
	int code = need_tables(session, hasher, count);

	if (!code)
		code = cu->MemcpyHtoDAsync(hasher->ranges, ranges, count * sizeof(*ranges),
					   hasher->stream);
	if (!code)
		code = cu->MemsetD8Async(hasher->counts, 0, bytes, hasher->stream);
	if (!code)
		code = launch(session, hasher, hasher->move, count, params);
	return code ? code : cu->MemcpyDtoH(counts, hasher->counts, bytes);
}

static int move_context(struct ts_replay_session *session, uint32_t context,
			const struct ts_cuda_page *pages, size_t count,
			struct ts_page_range *ranges, uint64_t *counts)
{
	size_t aligned = 0;
	int code = ts_cuda_enter(session, session->objects[context].handle);

	for (size_t i = 0; i < count && !code; i++) {
		uint64_t address = ts_cuda_address(session, pages[i].memory, pages[i].offset);

		if (pages[i].context != context)
			continue;
		if (address % 8 == 0)
			ranges[aligned++] = (struct ts_page_range){ address, pages[i].bytes };
		else
			code = move_unaligned(session, &pages[i]);
	}
	if (!code && aligned)
		code = run_moves(session, &session->objects[context].hasher, ranges, aligned,
				 counts);
	for (uint32_t i = 0; i < session->move_count && !code && aligned; i++)
		session->moved_words[i] += counts[i];
	return code;
}

int ts_cuda_move_pages(struct ts_replay_session *session, const struct ts_cuda_page *pages,
		       size_t count, struct ts_error *err)
{
	TS_AUTO_FREE struct ts_page_range *ranges = ts_alloc_array(count + 1, sizeof(*ranges));
	TS_AUTO_FREE uint64_t *counts = ts_alloc_array(session->move_count + 1u, sizeof(*counts));
	int code = 0;

	if (!session->move_count || !count)
		return TS_OK;
	if (!ranges || !counts)
		return ts_error_set(err, TS_ENOMEM, "no memory for addresses");
	for (uint32_t i = 0; i < session->context_count && !code; i++)
		code = move_context(session, session->contexts[i], pages, count, ranges, counts);
	return code ? ts_cuda_fail(session, code, err, "cannot change addresses in memory") : TS_OK;
}
