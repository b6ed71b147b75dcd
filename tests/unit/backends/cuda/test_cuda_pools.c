/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena and its pools on a driver that only keeps books, by random calls: blocks never overlap,
 * lie in memory that is mapped, and are not given to a stream before others have done with them.
 * The sources run inside programs, so they are included here.
 */
#include "unit/runner.h"

#include <stdarg.h>

#include "backends/cuda/stream/cuda_arena.c"      /* NOLINT(bugprone-suspicious-include) */
#include "backends/cuda/stream/cuda_blocks.c"     /* NOLINT(bugprone-suspicious-include) */
#include "backends/cuda/stream/cuda_pool_calls.c" /* NOLINT(bugprone-suspicious-include) */
#include "backends/cuda/stream/cuda_pools.c"      /* NOLINT(bugprone-suspicious-include) */

#define STREAMS 4
#define DEVICE_BYTES (UINT64_C(512) << 20)

static uint32_t state = 4711;

static uint32_t draw(uint32_t below)
{
	state = state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(state >> 8) * below >> 24);
}

/* ---- the driver ---- */

static struct capture_device device;
static struct capture_context context = { .handle = &device, .device = &device };
static struct capture_stream streams[STREAMS];
static uint64_t submitted[STREAMS], completed[STREAMS];
static uint64_t physical_bytes; /* in use */
static struct block_table mapped;
static unsigned int marks; /* events that exist */
static bool captures;      /* the first stream is captured, into the graph */
static int graph;

struct event {
	unsigned int stream;
	uint64_t position;
};

static unsigned int number_of(const void *stream)
{
	unsigned int i = (unsigned int)((uintptr_t)stream - 100);

	TS_CHECK(i < STREAMS);
	return i;
}

static int mem_create(unsigned long long *handle, size_t bytes,
		      const struct cuda_allocation_prop *prop, unsigned long long flags)
{
	TS_CHECK(bytes % ARENA_PAGE == 0 && prop->type == 1 && prop->location.type == 1 && !flags);
	if (physical_bytes + bytes > DEVICE_BYTES)
		return CUDA_OUT_OF_MEMORY;
	physical_bytes += bytes;
	*handle = bytes;
	return 0;
}

static int mem_release(unsigned long long handle)
{
	return 0;
}

static int mem_map(uint64_t address, size_t bytes, size_t offset, unsigned long long handle,
		   unsigned long long flags)
{
	struct block_range *range = calloc(1, sizeof(*range));
	size_t at = table_position(&mapped, address);

	TS_CHECK(handle == bytes && !offset && !flags && address % ARENA_PAGE == 0);
	TS_CHECK(at == mapped.count || mapped.items[at]->address >= address + bytes);
	*range = (struct block_range){ address, bytes };
	TS_CHECK(table_add(&mapped, range));
	return 0;
}

static int mem_unmap(uint64_t address, size_t bytes)
{
	struct block_range *range = table_find(&mapped, address);

	TS_CHECK(range && range->address == address && range->bytes == bytes);
	table_remove(&mapped, range);
	free(range);
	physical_bytes -= bytes;
	return 0;
}

static int mem_set_access(uint64_t address, size_t bytes, const struct cuda_access *access,
			  size_t count)
{
	return 0;
}

static int address_reserve(uint64_t *address, size_t bytes, size_t alignment, uint64_t hint,
			   unsigned long long flags)
{
	/* The first base is taken. */
	*address = hint == UINT64_C(0x200000000000) ? UINT64_C(0x700000000000) : hint;
	return 0;
}

static int address_free(uint64_t address, size_t bytes)
{
	TS_CHECK(address == UINT64_C(0x700000000000));
	return 0;
}

static int granularity(size_t *bytes, const struct cuda_allocation_prop *prop, int option)
{
	*bytes = ARENA_PAGE;
	return 0;
}

static int device_attribute(int *value, int attribute, int ordinal)
{
	*value = 1;
	return 0;
}

static int default_pool(void **pool, int ordinal)
{
	*pool = &device;
	return 0;
}

static int event_create(void **event, unsigned int flags)
{
	*event = calloc(1, sizeof(struct event));
	marks++;
	return 0;
}

static int event_record(void *event, void *stream)
{
	TS_CHECK(!captures || number_of(stream));
	*(struct event *)event = (struct event){ number_of(stream), submitted[number_of(stream)] };
	return 0;
}

static int event_query(void *event)
{
	const struct event *recorded = event;

	return completed[recorded->stream] >= recorded->position ? 0 : CUDA_NOT_READY;
}

static int event_destroy(void *event)
{
	TS_CHECK(marks > 0);
	marks--;
	free(event);
	return 0;
}

static int synchronize_context(void)
{
	memcpy(completed, submitted, sizeof(completed));
	return 0;
}

static int exchange_mode(int *mode)
{
	return 0;
}

static int capture_info(void *stream, int *status, uint64_t *id, void **ret_graph,
			const void ***nodes, size_t *count)
{
	*status = captures && !number_of(stream);
	*ret_graph = *status ? &graph : NULL;
	return 0;
}

struct cuda_driver_functions cu = {
	.MemCreate = mem_create,
	.MemRelease = mem_release,
	.MemMap = mem_map,
	.MemUnmap = mem_unmap,
	.MemSetAccess = mem_set_access,
	.MemAddressReserve = address_reserve,
	.MemAddressFree = address_free,
	.MemGetAllocationGranularity = granularity,
	.DeviceGetAttribute = device_attribute,
	.DeviceGetDefaultMemPool = default_pool,
	.EventCreate = event_create,
	.EventRecord = event_record,
	.EventQuery = event_query,
	.EventDestroy = event_destroy,
	.CtxSynchronize = synchronize_context,
	.ThreadExchangeStreamCaptureMode = exchange_mode,
	.StreamGetCaptureInfo = capture_info,
};

/* ---- the rest of the capture ---- */

void ts_replay_enter(void)
{
}

bool ts_replay_leave(void)
{
	return true;
}

void capture_lock(void)
{
}

void capture_unlock(void)
{
}

bool capture_is_open(void)
{
	return false;
}

void capture_fail(const char *format, ...)
{
	ts_test_fail(__FILE__, __LINE__, "%s", format);
}

void capture_prevent(const char *format, ...)
{
	ts_test_fail(__FILE__, __LINE__, "%s", format);
}

bool capture_any_capturing(void)
{
	return captures;
}

bool capture_is_capturing(uintptr_t stream)
{
	return captures && stream == 100;
}

struct capture_context *capture_context_current(void)
{
	return &context;
}

struct capture_context *capture_context_next(struct capture_context *after)
{
	return after ? NULL : &context;
}

struct capture_device *capture_device_of(int ordinal)
{
	return ordinal ? NULL : &device;
}

bool capture_context_push(struct capture_context *pushed)
{
	return true;
}

void capture_context_pop(void)
{
}

struct capture_stream *capture_stream_of(const struct cuda_call *call, uintptr_t handle)
{
	return &streams[number_of((void *)handle)];
}

uint64_t capture_stream_describe(struct capture_stream *stream)
{
	return 1;
}

void capture_mapped(struct capture_device *mapped_device, uint64_t address, uint64_t bytes)
{
}

void capture_unmapped(struct capture_device *unmapped_device, uint64_t address, uint64_t bytes)
{
}

/* Not memory of pools. */
int allocate_free(struct cuda_call *call, struct arena *arena, uint64_t address)
{
	ts_test_fail(__FILE__, __LINE__, "a block of no pool");
	return 0;
}

void capture_managed_freed(uint64_t address)
{
}

uint64_t capture_command(const struct ts_replay_command *row)
{
	return 0;
}

uint64_t ts_replay_window(void)
{
	return 0;
}

uint64_t ts_replay_new_object(void)
{
	return 1;
}

/* Another thread; the lock is that of the arena. */
static void *try_lock(void *data)
{
	*(bool *)data = pthread_mutex_trylock(&lock) != 0;
	if (!*(bool *)data)
		pthread_mutex_unlock(&lock);
	return NULL;
}

static bool was_locked; /* during the driver's last call of the program */
static void (*during_call)(void);

int cuda_invoke(struct cuda_call *call, const uintptr_t *args)
{
	pthread_t thread;

	if (during_call)
		during_call();
	TS_CHECK(!pthread_create(&thread, NULL, try_lock, &was_locked));
	pthread_join(thread, NULL);
	return 0;
}

void stream_text_begin(struct stream_text *text)
{
}

const char *stream_text_end(struct stream_text *text)
{
	return NULL;
}

void stream_text_uint(struct stream_text *text, const char *key, uint64_t value)
{
}

void stream_text_string(struct stream_text *text, const char *key, const char *value)
{
}

void stream_text_open(struct stream_text *text, const char *key, char bracket)
{
}

void stream_text_close(struct stream_text *text, char bracket)
{
}

void stream_text_item(struct stream_text *text, uint64_t value)
{
}

/* ---- the program ---- */

struct block {
	struct block_range range;
	bool is_async, is_graph;
};

#define BLOCKS 200
static struct block blocks[BLOCKS];
static unsigned int block_count;

/* Frees in streams that may not be complete. */
struct pending {
	struct block_range range;
	unsigned int stream;
	uint64_t position;
};
static struct pending pending[100000];
static unsigned int pending_count;

static struct cuda_call call = { .name = "call", .stream = 0 };

static bool overlap(const struct block_range *a, const struct block_range *b)
{
	return a->address < b->address + b->bytes && b->address < a->address + a->bytes;
}

static void check_block(const struct block_range *range, unsigned int stream, bool is_captured)
{
	uint64_t end = range->address + range->bytes;

	TS_CHECK(range->address % ARENA_ALIGNMENT == 0);
	for (uint64_t at = range->address; at < end;) {
		const struct block_range *piece = table_find(&mapped, at);

		TS_CHECK(piece != NULL);
		at = piece->address + piece->bytes;
	}
	for (unsigned int i = 0; i < block_count; i++)
		TS_CHECK(!overlap(&blocks[i].range, range));
	for (unsigned int i = 0; i < pending_count; i++) {
		const struct pending *entry = &pending[i];

		if (!overlap(&entry->range, range) || is_captured)
			continue;
		TS_CHECK(entry->stream == stream || completed[entry->stream] >= entry->position);
	}
}

static void forget_completed(void)
{
	for (unsigned int i = 0; i < pending_count;)
		if (completed[pending[i].stream] >= pending[i].position)
			pending[i] = pending[--pending_count];
		else
			i++;
}

/* The stream that frees waits for all others that used the block. */
static void forget_overlapping(const struct block_range *range)
{
	for (unsigned int i = 0; i < pending_count;)
		if (overlap(&pending[i].range, range))
			pending[i] = pending[--pending_count];
		else
			i++;
}

static uint64_t random_size(void)
{
	switch (draw(4)) {
	case 0:
		return 1 + draw(5000);
	case 1:
		return 1 + draw(1 << 20);
	case 2:
		return 1 + draw(8 << 20);
	default:
		return (uint64_t)(1 + draw(40)) << 20;
	}
}

static void allocate_one(void)
{
	unsigned int stream = draw(STREAMS);
	uint64_t bytes = random_size(), address = 0;
	struct block *block = &blocks[block_count];
	bool is_async = draw(60) != 0, is_captured = is_async && captures && !stream;
	int result;

	if (block_count == BLOCKS)
		return;
	if (is_async) {
		uintptr_t args[11] = { (uintptr_t)&address, bytes, 100 + stream };

		result = pools_alloc_async(&call, args);
	} else {
		arena_lock();
		result = arena_alloc_locked(arena_of(&device), bytes, &context, &address);
		arena_unlock();
		/* A call that the host waited for. */
		stream = STREAMS;
	}
	TS_CHECK(!result || result == CUDA_OUT_OF_MEMORY);
	if (result)
		return;
	block->range = (struct block_range){ address, bytes };
	block->is_async = is_async;
	block->is_graph = is_captured;
	forget_completed();
	check_block(&block->range, stream, is_captured);
	TS_CHECK(arena_item_locked(address + bytes - 1)->range.address == address);
	block_count++;
}

static void free_one(void)
{
	unsigned int at = draw(block_count ? block_count : 1), stream = draw(STREAMS);
	struct block block = blocks[at];
	bool is_captured = captures && !stream;

	if (!block_count || (block.is_graph && !is_captured) || (is_captured && !block.is_graph))
		return;
	submitted[stream] += 1;
	if (block.is_async && (block.is_graph || draw(40))) {
		uintptr_t args[11] = { block.range.address, 100 + stream };

		TS_CHECK_INT(pools_free_async(&call, args), 0);
		/* Twice is an error. */
		TS_CHECK_INT(pools_free_async(&call, args), CUDA_INVALID_VALUE);
		if (!block.is_graph) {
			forget_overlapping(&block.range);
			pending[pending_count++] = (struct pending){
				.range = block.range,
				.stream = stream,
				.position = submitted[stream],
			};
		}
	} else {
		synchronize_context();
		arena_lock();
		arena_free_locked(arena_of(&device), arena_item_locked(block.range.address));
		arena_unlock();
	}
	blocks[at] = blocks[--block_count];
}

/* What was not freed is the program's still. */
static void drop_graph(void)
{
	captures = false;
	graph_blocks_end(&graph);
	for (unsigned int i = 0; i < block_count; i++)
		blocks[i].is_graph = false;
}

TS_TEST(random_calls)
{
	struct arena_mapping *mappings;
	uint64_t bytes = 0;
	size_t count;

	for (unsigned int i = 0; i < STREAMS; i++)
		streams[i] = (struct capture_stream){ .handle = 100 + i, .context = &context };
	TS_CHECK(arena_open(&device));
	TS_CHECK(device.arena == UINT64_C(0x400000000000));
	for (unsigned int i = 0; i < 40000; i++) {
		unsigned int stream = draw(STREAMS);

		if (draw(2))
			allocate_one();
		else
			free_one();
		submitted[stream] += draw(2);
		if (!draw(60))
			completed[stream] +=
				draw((uint32_t)(submitted[stream] - completed[stream]) + 1);
		if (!draw(400) && !captures)
			captures = true;
		else if (!draw(50) && captures)
			drop_graph();
	}
	drop_graph();
	/* Nothing stays mapped once all is free. */
	while (block_count)
		free_one();
	arena_lock();
	pools_trim_locked(arena_of(&device));
	arena_unlock();
	TS_CHECK_INT(physical_bytes, 0);
	TS_CHECK_INT(mapped.count, 0);
	count = arena_mappings(&device, &mappings);
	for (size_t i = 0; i < count; i++)
		bytes += mappings[i].bytes;
	free(mappings);
	TS_CHECK_INT(bytes, 0);
	TS_CHECK_INT(arena_of(&device)->addresses.count, 1);
	TS_CHECK_INT(arena_of(&device)->items.count, 0);
}

/* Handles of events that the driver destroyed with their context may be the program's by now. */
TS_TEST(events_end_with_their_context)
{
	struct arena *arena;
	uint64_t first, second;
	struct arena_pool *pool;
	void *event;

	if (!device.arena)
		TS_CHECK(arena_open(&device));
	arena = arena_of(&device);
	for (unsigned int i = 0; i < STREAMS; i++)
		streams[i] = (struct capture_stream){ .handle = 100 + i, .context = &context };
	arena_lock();
	pool = pools_find_locked(arena, NULL);
	TS_CHECK_INT(pools_alloc_locked(pool, GROWTH, &context, &streams[0], &first), 0);
	pools_free_locked(arena, arena_item_locked(first), &streams[0]);
	submitted[0] = completed[0] + 1;
	TS_CHECK_INT(pools_alloc_locked(pool, GROWTH, NULL, &streams[1], &second), 0);
	arena_unlock();
	TS_CHECK(pool->marks && second != first);
	event = pool->marks->event;
	streams[0].is_gone = true;
	completed[0] = submitted[0];
	capture_memory_context_gone(&context);
	marks = 0;
	free(event);
	/* Nobody asks for them, or destroys them. */
	arena_lock();
	pools_free_locked(arena, arena_item_locked(second), NULL);
	TS_CHECK_INT(pools_alloc_locked(pool, 2 * GROWTH, NULL, &streams[2], &second), 0);
	pools_free_locked(arena, arena_item_locked(second), NULL);
	pools_trim_locked(arena);
	arena_unlock();
	TS_CHECK_INT(physical_bytes, 0);
}

/* The host reads memory of managed pools, and so it cannot be in the arena. */
TS_TEST(only_pools_of_the_device_are_served)
{
	struct cuda_pool_prop prop = { .type = 2, .location = { .type = CUDA_LOCATION_DEVICE } };
	void *handle = &prop;
	uintptr_t args[] = { (uintptr_t)&handle, (uintptr_t)&prop };

	if (!device.arena)
		TS_CHECK(arena_open(&device));
	TS_CHECK_INT(pools_create(&call, args), 0);
	TS_CHECK(!pools_known_locked(handle));
	prop.type = CUDA_ALLOCATION_PINNED;
	TS_CHECK_INT(pools_create(&call, args), 0);
	TS_CHECK(pools_known_locked(handle));
	args[0] = (uintptr_t)handle;
	TS_CHECK_INT(pools_destroy(&call, args), 0);
	TS_CHECK(!pools_known_locked(handle));
}

/* Or another thread's pool gets the handle, and loses its memory. */
TS_TEST(handles_end_with_the_lock)
{
	struct cuda_pool_prop prop = { .type = CUDA_ALLOCATION_PINNED,
				       .location = { .type = CUDA_LOCATION_DEVICE } };
	void *handle = &prop;
	uintptr_t args[] = { (uintptr_t)&handle, (uintptr_t)&prop };

	if (!device.arena)
		TS_CHECK(arena_open(&device));
	TS_CHECK_INT(pools_create(&call, args), 0);
	args[0] = (uintptr_t)handle;
	TS_CHECK_INT(pools_destroy(&call, args), 0);
	TS_CHECK(was_locked);
}

static uint64_t graph_address;

/* And the program frees it: it stays as long as the graph. */
static void allocate_in_graph(void)
{
	TS_CHECK_INT(
		pools_alloc_in_graph_locked(arena_of(&device), &graph, 1000, NULL, &graph_address),
		0);
	arena_item_locked(graph_address)->is_freed = true;
}

/* Another thread's graph has the handle before the call that destroys the first one returns. */
TS_TEST(a_graph_keeps_its_memory_if_another_one_had_its_handle)
{
	uintptr_t args[] = { (uintptr_t)&graph };
	uint64_t first;

	if (!device.arena)
		TS_CHECK(arena_open(&device));
	allocate_in_graph();
	first = graph_address;
	during_call = allocate_in_graph;
	TS_CHECK_INT(pools_graph_destroy(&call, args), 0);
	during_call = NULL;
	TS_CHECK(!was_locked && graph_address != first);
	TS_CHECK(!arena_item_locked(first) && arena_item_locked(graph_address));
	graph_blocks_end(&graph);
	TS_CHECK(!arena_item_locked(graph_address));
}

/* From CUDA 13 on there are two ways to set the pool that stream-ordered memory comes from. */
TS_TEST(the_pool_of_a_device_is_set_by_its_location_too)
{
	struct cuda_pool_prop prop = { .type = CUDA_ALLOCATION_PINNED,
				       .location = { .type = CUDA_LOCATION_DEVICE } };
	struct cuda_location location = { CUDA_LOCATION_DEVICE, 0 };
	void *handle = &prop;
	uintptr_t created[] = { (uintptr_t)&handle, (uintptr_t)&prop };
	uintptr_t set[] = { (uintptr_t)&location, 2, (uintptr_t)handle };
	uint64_t address;
	uintptr_t allocated[] = { (uintptr_t)&address, 1000, 100 };

	if (!device.arena)
		TS_CHECK(arena_open(&device));
	streams[0] = (struct capture_stream){ .handle = 100, .context = &context };
	TS_CHECK_INT(pools_create(&call, created), 0);
	/* Not of managed memory, nor of the host. */
	TS_CHECK_INT(pools_set_location(&call, set), 0);
	TS_CHECK(!device_pools[0]);
	set[1] = CUDA_ALLOCATION_PINNED;
	location.type = 2;
	TS_CHECK_INT(pools_set_location(&call, set), 0);
	TS_CHECK(!device_pools[0]);
	location.type = CUDA_LOCATION_DEVICE;
	TS_CHECK_INT(pools_set_location(&call, set), 0);
	TS_CHECK_INT(pools_alloc_async(&call, allocated), 0);
	TS_CHECK(pools_handle(arena_item_locked(address)->pool) == handle);
	TS_CHECK_INT(pools_destroy(&call, (uintptr_t[]){ (uintptr_t)handle }), 0);
	TS_CHECK(!device_pools[0]);
}
