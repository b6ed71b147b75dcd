/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered allocation (docs/cuda-replay.md, 3.1): pools keep freed memory mapped. It is used
 * again in its stream at once, and in others when an event behind the free is complete. Memory
 * that is allocated in a stream capture or by a node belongs to a pool of the graph, which lives as
 * long as the graph, its clones and its executables.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_pools.h"

#define GROWTH (UINT64_C(32) << 20)

/* Which graphs and executables keep a pool. */
struct keeper {
	struct keeper *next;
	const void *handle;
	struct arena_pool *pool;
};

/* Under arena_lock(). */
static struct arena_pool *pools;
static uint64_t last_serial; /* of frees, in all pools; read without the lock */
static bool has_frees;       /* since memory was released last; read without the lock */
static struct keeper *keepers;

/* ---- pools ---- */

struct arena_pool *pools_find_locked(struct arena *arena, void *handle)
{
	struct arena_pool *pool = pools;

	while (pool && (pool->is_graph || pool->handle != handle || pool->arena != arena))
		pool = pool->next;
	if (pool)
		return pool;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return NULL;
	pool->arena = arena;
	pool->handle = handle;
	pool->next = pools;
	pools = pool;
	return pool;
}

struct arena_pool *pools_known_locked(const void *handle)
{
	struct arena_pool *pool = pools;

	while (pool && (pool->is_graph || pool->handle != handle))
		pool = pool->next;
	return pool;
}

void *pools_handle(const struct arena_pool *pool)
{
	return pool->handle;
}

bool pools_is_graph(const struct arena_pool *pool)
{
	return pool->is_graph;
}

/* ---- free memory ---- */

static uint64_t next_serial(void)
{
	return __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELEASE);
}

/* Joins it with what is free next to it, for the same stream. */
static void add_free(struct arena_pool *pool, struct free_range range)
{
	for (size_t i = 0; i < pool->free_count;) {
		struct free_range *other = &pool->free[i];
		bool is_before = other->address + other->bytes == range.address;
		bool is_behind = range.address + range.bytes == other->address;

		if (other->stream != range.stream || !(is_before || is_behind)) {
			i++;
			continue;
		}
		if (is_before)
			range.address = other->address;
		range.bytes += other->bytes;
		if (other->serial > range.serial)
			range.serial = other->serial;
		*other = pool->free[--pool->free_count];
	}
	if (pool->free_count == pool->free_capacity) {
		size_t capacity = pool->free_capacity ? 2 * pool->free_capacity : 64;
		struct free_range *grown = realloc(pool->free, capacity * sizeof(*grown));

		if (!grown)
			return; /* lost */
		pool->free = grown;
		pool->free_capacity = capacity;
	}
	pool->free[pool->free_count++] = range;
}

/* The smallest that suffices: of this stream, or of none. */
static uint64_t take_free(struct arena_pool *pool, uint64_t bytes,
			  const struct capture_stream *stream)
{
	struct free_range *best = NULL;
	uint64_t address;

	for (size_t i = 0; i < pool->free_count; i++) {
		struct free_range *range = &pool->free[i];

		if (range->bytes >= bytes && (!range->stream || range->stream == stream) &&
		    (!best || range->bytes < best->bytes))
			best = range;
	}
	if (!best)
		return 0;
	address = best->address;
	best->address += bytes;
	best->bytes -= bytes;
	if (!best->bytes)
		*best = pool->free[--pool->free_count];
	return address;
}

/* All that this stream freed up to the serial is complete, or all streams (NULL) of a context. */
static void release_frees(struct arena_pool *pool, const struct capture_stream *stream,
			  const struct capture_context *context, uint64_t serial)
{
	for (size_t i = 0; i < pool->free_count;) {
		struct free_range range = pool->free[i];

		if (!range.stream || range.serial > serial || (stream && range.stream != stream) ||
		    (context && range.stream->context != context)) {
			i++;
			continue;
		}
		pool->free[i] = pool->free[--pool->free_count];
		range.stream = NULL;
		add_free(pool, range);
		i = 0;
	}
}

/* ---- memory of other streams ---- */

static void append_event(const struct mark *mark, uint32_t kind)
{
	struct ts_replay_command row = capture_row(kind);
	struct stream_text text;

	stream_text_begin(&text);
	if (kind == TS_COMMAND_RECORD) {
		row.queue = capture_stream_describe(mark->stream);
		stream_text_uint(&text, "event", mark->number);
	} else {
		stream_text_string(&text, "what", "seen");
		stream_text_open(&text, "wait", '[');
		stream_text_item(&text, mark->number);
		stream_text_close(&text, '[');
	}
	row.details = stream_text_end(&text);
	capture_command(&row);
}

/*
 * Nothing if its stream is gone, or captured: then only waiting for the context helps. Work in the
 * legacy stream ends captures.
 */
static void add_mark(struct arena_pool *pool, struct capture_stream *stream)
{
	struct mark *mark;

	if (stream->is_gone || stream->thread || capture_is_capturing(stream->handle) ||
	    (stream->handle == CUDA_STREAM_LEGACY && capture_any_capturing()) ||
	    !capture_context_push(stream->context))
		return;
	mark = calloc(1, sizeof(*mark));
	if (mark && cu.EventCreate(&mark->event, CUDA_EVENT_DISABLE_TIMING)) {
		free(mark);
		mark = NULL;
	}
	if (mark && cu.EventRecord(mark->event, (void *)stream->handle)) {
		cu.EventDestroy(mark->event);
		free(mark);
		mark = NULL;
	}
	capture_context_pop();
	if (!mark)
		return;
	mark->stream = stream;
	mark->serial = last_serial;
	mark->next = pool->marks;
	pool->marks = mark;
	if (capture_is_open()) {
		mark->window = ts_replay_window();
		mark->number = ts_replay_new_object();
		append_event(mark, TS_COMMAND_RECORD);
	}
}

/* What the host saw orders all that it submits from then on. */
static void collect_marks(struct arena_pool *pool)
{
	struct arena_mode mode;

	arena_mode_begin(&mode);
	for (struct mark **link = &pool->marks; *link;) {
		struct mark *mark = *link;

		if (cu.EventQuery(mark->event) != CUDA_SUCCESS_) {
			link = &mark->next;
			continue;
		}
		*link = mark->next;
		if (capture_is_open() && mark->number && mark->window == ts_replay_window())
			append_event(mark, TS_COMMAND_SYNC);
		release_frees(pool, mark->stream, NULL, mark->serial);
		cu.EventDestroy(mark->event);
		free(mark);
	}
	arena_mode_end(&mode);
}

static bool has_mark(const struct arena_pool *pool, const struct capture_stream *stream)
{
	const struct mark *mark = pool->marks;

	while (mark && mark->stream != stream)
		mark = mark->next;
	return mark != NULL;
}

/* Memory that other streams freed: what is complete, and marks for the next time. */
static uint64_t take_from_others(struct arena_pool *pool, uint64_t bytes,
				 const struct capture_stream *stream)
{
	uint64_t address;

	if (pool->is_graph)
		return 0;
	collect_marks(pool);
	address = take_free(pool, bytes, stream);
	for (size_t i = 0; !address && i < pool->free_count; i++) {
		struct capture_stream *other = pool->free[i].stream;

		if (other && other != stream && pool->free[i].bytes >= bytes &&
		    !has_mark(pool, other))
			add_mark(pool, other);
	}
	return address;
}

/* ---- giving memory back ---- */

/* Is all of the piece free? Takes it out of what is free. */
static bool take_piece(struct arena_pool *pool, const struct block_range *piece)
{
	for (size_t i = 0; i < pool->free_count; i++) {
		struct free_range range = pool->free[i];
		uint64_t end = range.address + range.bytes,
			 piece_end = piece->address + piece->bytes;

		if (range.stream || range.address > piece->address || end < piece_end)
			continue;
		pool->free[i] = pool->free[--pool->free_count];
		if (range.address < piece->address)
			add_free(pool,
				 (struct free_range){ .address = range.address,
						      .bytes = piece->address - range.address });
		if (piece_end < end)
			add_free(pool, (struct free_range){ .address = piece_end,
							    .bytes = end - piece_end });
		return true;
	}
	return false;
}

/* Unmaps what is free and complete until no more than `keep` bytes are mapped. */
static bool trim_pool(struct arena_pool *pool, uint64_t keep)
{
	struct block_table *pieces = &pool->arena->pieces;
	bool has_trimmed = false;

	for (size_t i = 0; i < pieces->count && pool->reserved > keep;) {
		struct arena_piece *piece = (struct arena_piece *)pieces->items[i];

		if (piece->pool != pool || !take_piece(pool, &piece->range)) {
			i++;
			continue;
		}
		pool->reserved -= piece->range.bytes;
		arena_unmap_locked(pool->arena, piece);
		has_trimmed = true;
	}
	return has_trimmed;
}

static void forget_marks(struct arena_pool *pool)
{
	while (pool->marks) {
		struct mark *mark = pool->marks;

		pool->marks = mark->next;
		cu.EventDestroy(mark->event);
		free(mark);
	}
}

/* The driver may have given their handles to the program's events. */
void pools_context_gone_locked(const struct capture_context *context)
{
	for (struct arena_pool *pool = pools; pool; pool = pool->next) {
		for (struct mark **link = &pool->marks; *link;) {
			struct mark *mark = *link;

			if (mark->stream->context != context) {
				link = &mark->next;
				continue;
			}
			*link = mark->next;
			free(mark);
		}
	}
}

/* A host that waited for everything: all frees are complete. */
static void release_all(struct arena_pool *pool)
{
	forget_marks(pool);
	release_frees(pool, NULL, NULL, UINT64_MAX);
}

static bool synchronize(const struct arena *arena)
{
	struct capture_context *context = capture_context_next(NULL);
	bool is_done = true;

	for (; context; context = capture_context_next(context)) {
		if (context->device != arena->device || !capture_context_push(context))
			continue;
		is_done = !cu.CtxSynchronize() && is_done;
		capture_context_pop();
	}
	if (is_done && capture_is_open()) {
		struct ts_replay_command row = capture_row(TS_COMMAND_SYNC);

		row.details = "{\"what\":\"context\"}";
		capture_command(&row);
	}
	return is_done;
}

static bool has_free(const struct arena *arena)
{
	for (const struct arena_pool *pool = pools; pool; pool = pool->next)
		if (pool->arena == arena && pool->free_count && !pool->is_graph)
			return true;
	return false;
}

bool pools_trim_locked(struct arena *arena)
{
	bool has_trimmed = false;

	if (!has_free(arena) || capture_any_capturing() || !synchronize(arena))
		return false;
	for (struct arena_pool *pool = pools; pool; pool = pool->next) {
		if (pool->arena != arena || pool->is_graph)
			continue;
		release_all(pool);
		has_trimmed = trim_pool(pool, 0) || has_trimmed;
	}
	return has_trimmed;
}

/* ---- the host waits ---- */

/* Bytes that a pool keeps; UINT64_MAX: all, or the driver does not tell. */
static uint64_t threshold_of(const struct arena_pool *pool)
{
	void *handle = pool->handle;
	uint64_t bytes;

	if (!handle &&
	    cu.DeviceGetDefaultMemPool(&handle, pool->arena->device->ordinal) != CUDA_SUCCESS_)
		return UINT64_MAX;
	return cu.MemPoolGetAttribute(handle, CUDA_POOL_RELEASE_THRESHOLD, &bytes) == CUDA_SUCCESS_
		       ? bytes
		       : UINT64_MAX;
}

uint64_t pools_frees(void)
{
	return __atomic_load_n(&has_frees, __ATOMIC_ACQUIRE)
		       ? __atomic_load_n(&last_serial, __ATOMIC_ACQUIRE)
		       : 0;
}

static bool has_pending(const struct arena_pool *pool)
{
	for (size_t i = 0; i < pool->free_count; i++)
		if (pool->free[i].stream && !pool->free[i].stream->is_gone)
			return true;
	return false;
}

/* Gives back what exceeds the thresholds. capture_lock is held. */
static void release_waited(const struct capture_stream *stream,
			   const struct capture_context *context, uint64_t frees)
{
	bool has_more = false;

	arena_lock();
	__atomic_store_n(&has_frees, false, __ATOMIC_RELEASE);
	for (struct arena_pool *pool = pools; pool; pool = pool->next) {
		uint64_t threshold = pool->is_graph ? UINT64_MAX : threshold_of(pool);

		if (pool->reserved <= threshold)
			continue;
		release_frees(pool, stream, context, frees);
		trim_pool(pool, threshold);
		has_more = has_more || (pool->reserved > threshold && has_pending(pool));
	}
	/* The frees of other streams are for those who wait for these. */
	if (has_more)
		__atomic_store_n(&has_frees, true, __ATOMIC_RELEASE);
	arena_unlock();
}

void pools_host_waited(const struct capture_stream *stream, const struct capture_context *context,
		       uint64_t frees)
{
	if (!frees || !context)
		return;
	ts_replay_enter();
	capture_lock();
	/* To ask for a threshold ends captures, and memory may not be unmapped meanwhile. */
	if (!capture_any_capturing())
		release_waited(stream, context, frees);
	capture_unlock();
	ts_replay_leave();
}

void pools_free_locked(struct arena *arena, struct arena_item *item, struct capture_stream *stream)
{
	struct arena_pool *pool = item->pool;

	pool->used -= item->bytes;
	add_free(pool, (struct free_range){ .address = item->range.address,
					    .bytes = item->bytes,
					    .stream = stream,
					    .serial = next_serial() });
	if (!pool->is_graph)
		__atomic_store_n(&has_frees, true, __ATOMIC_RELEASE);
	arena_remove_item_locked(arena, item);
}

/* ---- allocating ---- */

static uint64_t grow_pool(struct arena_pool *pool, uint64_t bytes, int *ret_result)
{
	uint64_t needed = arena_pages(bytes), wanted = needed;
	uint64_t address;

	if (!pool->is_graph && needed < GROWTH)
		wanted = GROWTH;
	address = arena_map_locked(pool->arena, wanted, ARENA_POOL, pool, ret_result);
	if (!address && wanted > needed) {
		wanted = needed;
		address = arena_map_locked(pool->arena, wanted, ARENA_POOL, pool, ret_result);
	}
	if (!address && *ret_result == CUDA_OUT_OF_MEMORY && pools_trim_locked(pool->arena)) {
		wanted = needed;
		address = arena_map_locked(pool->arena, wanted, ARENA_POOL, pool, ret_result);
	}
	if (!address)
		return 0;
	pool->reserved += wanted;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	if (wanted > bytes)
		add_free(pool, (struct free_range){ .address = address + bytes,
						    .bytes = wanted - bytes });
	return address;
}

int pools_alloc_locked(struct arena_pool *pool, uint64_t bytes, struct capture_context *context,
		       const struct capture_stream *stream, uint64_t *ret_address)
{
	uint64_t occupied, address;
	int result = CUDA_OUT_OF_MEMORY;

	if (bytes > pool->arena->bytes)
		return result;
	occupied = (bytes + ARENA_ALIGNMENT - 1) & ~(ARENA_ALIGNMENT - 1);
	address = take_free(pool, occupied, stream);
	if (!address)
		address = take_from_others(pool, occupied, stream);
	if (!address)
		address = grow_pool(pool, occupied, &result);
	if (!address)
		return result;
	if (!arena_add_item_locked(pool->arena, address, bytes, occupied, context, pool)) {
		add_free(pool, (struct free_range){ .address = address, .bytes = occupied });
		return CUDA_OUT_OF_MEMORY;
	}
	pool->used += occupied;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	*ret_address = address;
	return CUDA_SUCCESS_;
}

/* ---- pools that end ---- */

/* Blocks and mappings of a pool are those of another from now on. */
static void bequeath(struct arena_pool *pool, struct arena_pool *heir)
{
	struct block_table *pieces = &pool->arena->pieces;
	struct block_table *items = &pool->arena->items;

	for (size_t i = 0; i < items->count; i++) {
		struct arena_item *item = (struct arena_item *)items->items[i];

		if (item->pool == pool)
			item->pool = heir;
	}
	for (size_t i = 0; i < pieces->count; i++) {
		struct arena_piece *piece = (struct arena_piece *)pieces->items[i];

		if (piece->pool == pool)
			piece->pool = heir;
	}
}

static void remove_pool(struct arena_pool *pool)
{
	struct arena_pool **link = &pools;

	while (*link && *link != pool)
		link = &(*link)->next;
	if (*link)
		*link = pool->next;
	free(pool->free);
	free(pool);
}

/* What is in use stays until it is freed, then in the default pool. */
void pools_end_locked(struct arena_pool *pool)
{
	struct arena_pool *heir = pools_find_locked(pool->arena, NULL);

	collect_marks(pool);
	trim_pool(pool, 0);
	if (!heir)
		return;
	heir->reserved += pool->reserved;
	heir->used += pool->used;
	bequeath(pool, heir);
	for (size_t i = 0; i < pool->free_count; i++) {
		pool->free[i].serial = next_serial();
		add_free(heir, pool->free[i]);
	}
	forget_marks(pool);
	remove_pool(pool);
}

void pools_trim_to_locked(struct arena_pool *pool, uint64_t keep)
{
	collect_marks(pool);
	trim_pool(pool, keep);
	for (size_t i = 0; i < pool->free_count; i++)
		if (pool->free[i].stream && !has_mark(pool, pool->free[i].stream))
			add_mark(pool, pool->free[i].stream);
}

/* ---- graphs ---- */

static bool keep(const void *handle, struct arena_pool *pool)
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));

	if (!keeper)
		return false;
	keeper->handle = handle;
	keeper->pool = pool;
	keeper->next = keepers;
	keepers = keeper;
	pool->references++;
	return true;
}

static struct arena_pool *graph_pool(struct arena *arena, const void *graph)
{
	struct arena_pool *pool;

	for (const struct keeper *keeper = keepers; keeper; keeper = keeper->next)
		if (keeper->handle == graph && keeper->pool->arena == arena)
			return keeper->pool;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return NULL;
	pool->arena = arena;
	pool->is_graph = true;
	if (!keep(graph, pool)) {
		free(pool);
		return NULL;
	}
	pool->next = pools;
	pools = pool;
	return pool;
}

/*
 * Its memory passes to the default pool, which uses it again once the device has been waited for:
 * a graph that runs may be destroyed. What the program has not freed is still its own.
 */
static void release_graph(struct arena_pool *pool)
{
	static struct capture_stream unknown = { .is_gone = true };
	struct arena_pool *heir = pools_find_locked(pool->arena, NULL);
	struct block_table *pieces = &pool->arena->pieces;
	struct block_table *items = &pool->arena->items;

	if (!heir)
		return;
	for (size_t i = 0; i < items->count;) {
		struct arena_item *item = (struct arena_item *)items->items[i];

		if (item->pool != pool) {
			i++;
			continue;
		}
		item->pool = heir;
		heir->used += item->bytes;
		if (item->is_freed)
			pools_free_locked(pool->arena, item, &unknown);
		else
			i++;
	}
	for (size_t i = 0; i < pieces->count; i++) {
		struct arena_piece *piece = (struct arena_piece *)pieces->items[i];

		if (piece->pool != pool)
			continue;
		piece->pool = heir;
		heir->reserved += piece->range.bytes;
	}
	for (size_t i = 0; i < pool->free_count; i++) {
		pool->free[i].stream = &unknown;
		pool->free[i].serial = next_serial();
		add_free(heir, pool->free[i]);
	}
	remove_pool(pool);
}

void graph_blocks_copy(const void *from, const void *to)
{
	arena_lock();
	for (const struct keeper *keeper = keepers; keeper; keeper = keeper->next)
		if (keeper->handle == from)
			keep(to, keeper->pool);
	arena_unlock();
}

struct keeper *graph_blocks_take(const void *handle)
{
	struct keeper *taken = NULL;

	arena_lock();
	for (struct keeper **link = &keepers; *link;) {
		struct keeper *keeper = *link;

		if (keeper->handle != handle) {
			link = &keeper->next;
			continue;
		}
		*link = keeper->next;
		keeper->next = taken;
		taken = keeper;
	}
	arena_unlock();
	return taken;
}

void graph_blocks_return(struct keeper *taken, bool has_ended)
{
	arena_lock();
	while (taken) {
		struct keeper *keeper = taken;

		taken = keeper->next;
		if (!has_ended) {
			keeper->next = keepers;
			keepers = keeper;
			continue;
		}
		if (!--keeper->pool->references)
			release_graph(keeper->pool);
		free(keeper);
	}
	arena_unlock();
}

void graph_blocks_end(const void *handle)
{
	graph_blocks_return(graph_blocks_take(handle), true);
}

int pools_alloc_in_graph_locked(struct arena *arena, const void *graph, uint64_t bytes,
				const struct capture_stream *stream, uint64_t *ret_address)
{
	struct arena_pool *pool = graph_pool(arena, graph);

	if (!pool)
		return CUDA_OUT_OF_MEMORY;
	return pools_alloc_locked(pool, bytes, NULL, stream, ret_address);
}
