/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas at their recorded addresses. Memory for all that is mapped at some time in the window is
 * mapped once, if there is enough; `mapped` says what the recorded program had mapped by now.
 */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "replay/targets/cuda/cuda_session.h"

#define CHUNK_BYTES ((uint64_t)256 << 20)
#define TIGHT_CHUNK_BYTES ((uint64_t)16 << 20) /* what a free unmaps is unmapped in these */
#define SPARE_BYTES ((uint64_t)384 << 20)      /* for code, tables, the driver */

/* ---- sets of ranges ---- */

/* The first range that ends at or behind the offset. */
static size_t first_touching(const struct ts_cuda_ranges *ranges, uint64_t offset)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items[middle].offset + ranges->items[middle].bytes < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Replaces `count` items at `at` by up to two others. */
static int replace(struct ts_cuda_ranges *ranges, size_t at, size_t count,
		   const struct ts_cuda_range *others, size_t other_count)
{
	size_t left = ranges->count - at - count;

	if (ts_grow_array((void **)&ranges->items, &ranges->capacity,
			  ranges->count - count + other_count, sizeof(*ranges->items)))
		return TS_ENOMEM;
	memmove(ranges->items + at + other_count, ranges->items + at + count,
		left * sizeof(*ranges->items));
	if (other_count)
		memcpy(ranges->items + at, others, other_count * sizeof(*others));
	ranges->count += other_count - count;
	return TS_OK;
}

int ts_cuda_ranges_add(struct ts_cuda_ranges *ranges, uint64_t offset, uint64_t bytes)
{
	size_t at = first_touching(ranges, offset), end = at;
	uint64_t from = offset, to = offset + bytes;
	struct ts_cuda_range merged;

	for (; end < ranges->count && ranges->items[end].offset <= to; end++) {
		from = TS_MIN(from, ranges->items[end].offset);
		to = TS_MAX(to, ranges->items[end].offset + ranges->items[end].bytes);
	}
	merged = (struct ts_cuda_range){ from, to - from };
	return replace(ranges, at, end - at, &merged, 1);
}

int ts_cuda_ranges_remove(struct ts_cuda_ranges *ranges, uint64_t offset, uint64_t bytes)
{
	size_t at = first_touching(ranges, offset), end = at, left = 0;
	uint64_t to = offset + bytes;
	struct ts_cuda_range kept[2];

	for (; end < ranges->count && ranges->items[end].offset < to; end++) {
		const struct ts_cuda_range *range = &ranges->items[end];

		if (range->offset < offset)
			kept[left++] = (struct ts_cuda_range){
				range->offset, TS_MIN(range->bytes, offset - range->offset)
			};
		if (range->offset + range->bytes > to)
			kept[left++] =
				(struct ts_cuda_range){ to, range->offset + range->bytes - to };
	}
	return replace(ranges, at, end - at, kept, left);
}

static uint64_t part_of(const struct ts_cuda_ranges *ranges, uint64_t offset, uint64_t bytes,
			bool *ret_is_inside)
{
	size_t at = first_touching(ranges, offset + 1);

	*ret_is_inside = at < ranges->count && ranges->items[at].offset <= offset;
	if (*ret_is_inside)
		return TS_MIN(bytes, ranges->items[at].offset + ranges->items[at].bytes - offset);
	return at < ranges->count ? TS_MIN(bytes, ranges->items[at].offset - offset) : bytes;
}

uint64_t ts_cuda_mapped_part(const struct ts_replay_session *session, uint32_t memory,
			     uint64_t offset, uint64_t bytes, bool *ret_is_mapped)
{
	return part_of(&session->objects[memory].mapped, offset, bytes, ret_is_mapped);
}

static uint64_t sum_of(const struct ts_cuda_ranges *ranges)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ranges->count; i++)
		sum += ranges->items[i].bytes;
	return sum;
}

/* ---- reservation ---- */

static bool is_space(const struct ts_replay_session *session, uint32_t object)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, object);

	return info->kind == TS_OBJECT_MEMORY && (info->flags & TS_REPLAY_SPARSE) &&
	       session->objects[object].is_needed;
}

static bool is_arena(const struct ts_replay_session *session, uint32_t object)
{
	return is_space(session, object) && !ts_cuda_is_host(session, object);
}

/* The device of an arena is its parent, or that of its parent. */
static uint32_t device_of(const struct ts_replay_session *session, uint32_t memory)
{
	uint32_t parent = ts_cuda_info(session, memory)->parent;

	while (parent != TS_REPLAY_NONE && ts_cuda_info(session, parent)->kind != TS_OBJECT_DEVICE)
		parent = ts_cuda_info(session, parent)->parent;
	return parent == TS_REPLAY_NONE ? 0 : session->objects[parent].device;
}

static int reserve(struct ts_replay_session *session, uint32_t memory, struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, memory);
	struct ts_cuda_object *object = &session->objects[memory];
	uint64_t address = 0;
	int code;

	object->device = device_of(session, memory);
	object->address = info->address;
	code = session->cu.MemAddressReserve(&address, info->bytes, 0, info->address, 0);
	if (!code && address != info->address) {
		session->cu.MemAddressFree(address, info->bytes);
		return ts_error_set(err, TS_ECAP,
				    "device addresses 0x%" PRIx64 " to 0x%" PRIx64
				    " are occupied in this process",
				    info->address, info->address + info->bytes);
	}
	/* It is tried again when there are contexts: some drivers may need one. */
	if (code && !session->context_count)
		return TS_OK;
	if (code)
		return ts_cuda_fail(session, code, err,
				    "cannot reserve device addresses 0x%" PRIx64 " to 0x%" PRIx64,
				    info->address, info->address + info->bytes);
	object->is_reserved = true;
	return TS_OK;
}

int ts_cuda_reserve_arenas(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++)
		if (is_arena(session, i) && !session->objects[i].is_reserved)
			rc = reserve(session, i, err);
	return rc;
}

/* ---- memory behind addresses ---- */

static int back_chunk(struct ts_replay_session *session, uint32_t memory, uint64_t offset,
		      uint64_t bytes)
{
	struct ts_cuda_object *object = &session->objects[memory];
	const struct ts_cuda_device *device = &session->devices[object->device];
	struct cuda_allocation_prop prop = { .type = 1,
					     .location = { .type = 1, .id = device->ordinal } };
	struct cuda_access access = { .location = { .type = 1, .id = device->ordinal },
				      .flags = 3 };
	struct ts_cuda_mapping mapping = { object->address + offset, bytes, 0 };
	const struct cuda_driver_functions *cu = &session->cu;
	int code;

	if (ts_grow_array((void **)&object->mappings, &object->mapping_capacity,
			  object->mapping_count + 1, sizeof(*object->mappings)))
		return CUDA_OUT_OF_MEMORY;
	code = cu->MemCreate(&mapping.handle, bytes, &prop, 0);
	if (code)
		return code;
	code = cu->MemMap(mapping.address, bytes, 0, mapping.handle, 0);
	if (code) {
		cu->MemRelease(mapping.handle);
		return code;
	}
	object->mappings[object->mapping_count++] = mapping;
	code = cu->MemSetAccess(mapping.address, bytes, &access, 1);
	if (!code && ts_cuda_ranges_add(&object->backed, offset, bytes))
		code = CUDA_OUT_OF_MEMORY;
	return code;
}

static int back_range(struct ts_replay_session *session, uint32_t memory, uint64_t offset,
		      uint64_t bytes, struct ts_error *err)
{
	uint64_t most = session->is_tight ? TIGHT_CHUNK_BYTES : CHUNK_BYTES, end = offset + bytes;

	while (offset < end) {
		bool is_backed;
		uint64_t part =
			part_of(&session->objects[memory].backed, offset, end - offset, &is_backed);
		int code = 0;

		if (!is_backed) {
			part = TS_MIN(part, most);
			code = back_chunk(session, memory, offset, part);
		}
		if (code)
			return ts_cuda_fail(session, code, err,
					    "cannot map memory at 0x%" PRIx64 " (%" PRIu64
					    " bytes)",
					    session->objects[memory].address + offset, part);
		offset += part;
	}
	return TS_OK;
}

/* Unmaps what lies inside the range. */
static void unback_range(struct ts_replay_session *session, uint32_t memory, uint64_t offset,
			 uint64_t bytes)
{
	struct ts_cuda_object *object = &session->objects[memory];
	uint64_t from = object->address + offset, to = from + bytes;
	size_t kept = 0;

	for (size_t i = 0; i < object->mapping_count; i++) {
		struct ts_cuda_mapping mapping = object->mappings[i];

		if (mapping.address < from || mapping.address + mapping.bytes > to) {
			object->mappings[kept++] = mapping;
			continue;
		}
		session->cu.MemUnmap(mapping.address, mapping.bytes);
		session->cu.MemRelease(mapping.handle);
		ts_cuda_ranges_remove(&object->backed, mapping.address - object->address,
				      mapping.bytes);
	}
	object->mapping_count = kept;
}

/* ---- all memory of a window ---- */

static int add_initial(const struct ts_replay_session *session, uint32_t memory,
		       struct ts_cuda_ranges *ranges)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, memory);
	int rc = TS_OK;

	for (uint32_t i = 0; i < info->mapping_count && !rc; i++)
		if (info->mappings[i].bytes)
			rc = ts_cuda_ranges_add(ranges, info->mappings[i].offset,
						info->mappings[i].bytes);
	return rc;
}

/* Initial ranges, and with `all` also what is mapped later. */
static int list_ranges(const struct ts_replay_session *session, uint32_t memory, bool all,
		       struct ts_cuda_ranges *ranges)
{
	int rc = add_initial(session, memory, ranges);

	for (uint32_t i = 0; i < session->plan->count && !rc && all; i++) {
		const struct ts_replay_command_info *command =
			&session->stream->commands[session->plan->order[i]];

		if (command->kind == TS_COMMAND_ALLOC && command->object == memory &&
		    command->bytes)
			rc = ts_cuda_ranges_add(ranges, command->offset, command->bytes);
	}
	return rc;
}

/* Bytes of all arenas of a device; UINT64_MAX: no memory. */
static uint64_t count_bytes(const struct ts_replay_session *session, uint32_t device, bool all)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < session->stream->object_count && sum != UINT64_MAX; i++) {
		struct ts_cuda_ranges ranges = { 0 };

		if (!is_arena(session, i) || session->objects[i].device != device)
			continue;
		if (list_ranges(session, i, all, &ranges))
			sum = UINT64_MAX;
		else
			sum += sum_of(&ranges);
		free(ranges.items);
	}
	return sum;
}

static int check_room(struct ts_replay_session *session, uint32_t device, struct ts_error *err)
{
	uint64_t available, initial = count_bytes(session, device, false);
	uint64_t all = count_bytes(session, device, true);
	char need[32], have[32];
	int code = ts_cuda_enter(session, session->devices[device].context);

	if (code)
		return ts_cuda_fail(session, code, err, "device '%s'",
				    session->devices[device].name);
	available = ts_cuda_free_bytes(session);
	if (initial > available)
		return ts_error_set(
			err, TS_ECAP, "the window needs %s of device memory; '%s' has %s available",
			ts_format_bytes(need, sizeof(need), initial), session->devices[device].name,
			ts_format_bytes(have, sizeof(have), available));
	if (all > initial && (available < SPARE_BYTES || all > available - SPARE_BYTES))
		session->is_tight = true;
	return TS_OK;
}

static int back_space(struct ts_replay_session *session, uint32_t memory, bool all,
		      struct ts_error *err)
{
	struct ts_cuda_ranges ranges = { 0 };
	int rc = list_ranges(session, memory, all, &ranges);

	if (rc)
		ts_error_set(err, rc, "no memory for a list of mappings");
	for (size_t i = 0; i < ranges.count && !rc; i++)
		rc = back_range(session, memory, ranges.items[i].offset, ranges.items[i].bytes,
				err);
	free(ranges.items);
	return rc;
}

int ts_cuda_map_arenas(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < session->device_count && !rc; i++)
		rc = check_room(session, i, err);
	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++)
		if (is_arena(session, i))
			rc = back_space(session, i, !session->is_tight, err);
	return rc;
}

void ts_cuda_unmap_arenas(struct ts_replay_session *session)
{
	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		struct ts_cuda_object *object = &session->objects[i];

		if (object->mapping_count)
			unback_range(session, i, 0, ts_cuda_info(session, i)->bytes);
		if (object->is_reserved)
			session->cu.MemAddressFree(object->address,
						   ts_cuda_info(session, i)->bytes);
		free(object->mappings);
		free(object->mapped.items);
		free(object->backed.items);
	}
}

/* ---- a run ---- */

/* Only what is mapped when the window opens is backed. */
static int tighten(struct ts_replay_session *session, uint32_t memory, struct ts_error *err)
{
	struct ts_cuda_object *object = &session->objects[memory];
	uint64_t bytes = ts_cuda_info(session, memory)->bytes, offset = 0;

	while (offset < bytes) {
		bool is_mapped;
		uint64_t part = part_of(&object->mapped, offset, bytes - offset, &is_mapped);

		if (!is_mapped)
			unback_range(session, memory, offset, part);
		offset += part;
	}
	return back_space(session, memory, false, err);
}

int ts_cuda_reset_spaces(struct ts_replay_session *session, struct ts_error *err)
{
	int rc = TS_OK;

	session->pages_stale = true;
	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++) {
		struct ts_cuda_object *object = &session->objects[i];

		if (!is_space(session, i))
			continue;
		object->mapped.count = 0;
		rc = add_initial(session, i, &object->mapped);
		if (rc)
			return ts_error_set(err, rc, "no memory for a list of mappings");
		if (session->is_tight && is_arena(session, i))
			rc = tighten(session, i, err);
	}
	return rc;
}

static int clear(struct ts_replay_session *session, uint32_t memory, uint64_t offset,
		 uint64_t bytes, struct ts_error *err)
{
	uint64_t address = ts_cuda_address(session, memory, offset);
	void *stream;
	int code;

	if (ts_cuda_is_host(session, memory)) {
		memset((void *)(uintptr_t)address, 0, bytes);
		return TS_OK;
	}
	code = ts_cuda_enter_for(session, memory, &stream);
	if (!code)
		code = session->cu.MemsetD8Async(address, 0, bytes, stream);
	if (!code)
		code = session->cu.StreamSynchronize(stream);
	return code ? ts_cuda_fail(session, code, err, "cannot clear memory at 0x%" PRIx64, address)
		    : TS_OK;
}

int ts_cuda_alloc_range(struct ts_replay_session *session, uint32_t memory, uint64_t offset,
			uint64_t bytes, struct ts_error *err)
{
	int rc = TS_OK;

	if (!bytes)
		return TS_OK;
	session->pages_stale = true;
	if (session->is_tight && is_arena(session, memory))
		rc = back_range(session, memory, offset, bytes, err);
	if (!rc)
		rc = clear(session, memory, offset, bytes, err);
	if (!rc && ts_cuda_ranges_add(&session->objects[memory].mapped, offset, bytes))
		rc = ts_error_set(err, TS_ENOMEM, "no memory for a list of mappings");
	return rc;
}

int ts_cuda_free_range(struct ts_replay_session *session, uint32_t memory, uint64_t offset,
		       uint64_t bytes, struct ts_error *err)
{
	if (!bytes)
		return TS_OK;
	session->pages_stale = true;
	if (ts_cuda_ranges_remove(&session->objects[memory].mapped, offset, bytes))
		return ts_error_set(err, TS_ENOMEM, "no memory for a list of mappings");
	if (session->is_tight && is_arena(session, memory))
		unback_range(session, memory, offset, bytes);
	return TS_OK;
}
