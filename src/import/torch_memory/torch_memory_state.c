/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments: what the allocator held when the snapshot was made. Blocks in use without an allocation
 * entry were allocated before the recording began: they become rows at its start, so that sums are
 * right and the blocks have their stacks.
 */
#include "base/ns.h"
#include "import/torch_memory/torch_memory.h"

struct segment {
	int64_t device, address, bytes, stream;
	bool is_expandable;
	ts_pickle_value frames, blocks;
};

struct block {
	int64_t address, size, requested;
	uint32_t state;
	ts_pickle_value frames;
};

static bool is_new(struct torch_memory *m, ts_pickle_value value, enum ts_pickle_kind kind)
{
	uint32_t *note;

	if (ts_pickle_kind(value) == kind) {
		note = ts_pickle_note(&m->pickle, value);
		if (!*note) {
			*note = NOTE_DONE;
			return true;
		}
		if (*note == TS_PICKLE_NOTE_CUT)
			return false;
	}
	ts_entities_add_loss(&m->entities,
			     ts_pickle_kind(value) == kind ? &torch_loss_twice : &torch_loss_value,
			     1);
	return false;
}

/* ---- blocks ---- */

/* PyTorch before 2.1: requested size and stack are in the first item of a list. */
static void read_history(struct torch_memory *m, ts_pickle_value history, struct block *block)
{
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, history);
	ts_pickle_value first = TS_PICKLE_NONE, key, value;

	if (!ts_pickle_next(&items, &first) || !is_new(m, first, TS_PICKLE_DICT))
		return;
	items = ts_pickle_items(&m->pickle, first);
	while (ts_pickle_next_pair(&items, &key, &value)) {
		if (ts_pickle_text(key) == TEXT_REAL_SIZE)
			ts_pickle_int(&m->pickle, value, &block->requested);
		else if (ts_pickle_text(key) == TEXT_FRAMES)
			block->frames = value;
	}
}

static struct block read_block(struct torch_memory *m, ts_pickle_value dict)
{
	struct block block = { .state = TS_STRMAP_NONE };
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, dict);
	ts_pickle_value key, value;

	block.address = block.size = block.requested = TS_ABSENT;
	while (ts_pickle_next_pair(&items, &key, &value)) {
		switch (ts_pickle_text(key)) {
		case TEXT_ADDRESS:
			ts_pickle_int(&m->pickle, value, &block.address);
			break;
		case TEXT_SIZE:
			ts_pickle_int(&m->pickle, value, &block.size);
			break;
		case TEXT_REQUESTED_SIZE:
			ts_pickle_int(&m->pickle, value, &block.requested);
			break;
		case TEXT_STATE:
			block.state = ts_pickle_text(value);
			break;
		case TEXT_FRAMES:
			block.frames = value;
			break;
		case TEXT_HISTORY:
			read_history(m, value, &block);
			break;
		default:
			break;
		}
	}
	if (block.requested < 0)
		block.requested = block.size;
	return block;
}

/*
 * As entries count: a block waiting for its free to complete is in use, unless the request is the
 * free.
 */
static bool is_in_use(const struct torch_device *device, const struct block *block)
{
	if (block->state == TEXT_ACTIVE_ALLOCATED)
		return true;
	return (block->state == TEXT_ACTIVE_PENDING_FREE ||
		block->state == TEXT_ACTIVE_AWAITING_FREE) &&
	       !torch_requests_free(device);
}

static struct torch_entry entry_of(struct torch_memory *m, const struct torch_device *device)
{
	struct torch_entry entry = { .action = TS_STRMAP_NONE };

	entry.time = device->has_time ? device->first_time : m->has_time ? m->first_time : 0;
	return entry;
}

static void take_block(struct torch_memory *m, struct torch_device *device,
		       const struct segment *segment, const struct block *block)
{
	struct torch_entry entry = entry_of(m, device);
	uint64_t life = LIFE_NONE;

	if (!is_in_use(device, block))
		return;
	if (block->address == TS_ABSENT || block->requested < 0) {
		ts_entities_add_loss(&m->entities, &torch_loss_block, 1);
		return;
	}
	ts_pairmap_get(&m->blocks, (uint64_t)device->number, (uint64_t)block->address, &life);
	if (life == LIFE_GIVEN)
		ts_entities_add_loss(&m->entities, &torch_loss_block, 1);
	if (life != LIFE_NONE)
		return;
	entry.address = block->address;
	entry.bytes = block->requested;
	entry.stream = segment->stream;
	entry.frames = block->frames;
	torch_add_allocation(m, device, &entry, TS_ALLOCATION_ALLOC, true);
}

/* A block without an address follows the previous one. */
static void take_blocks(struct torch_memory *m, struct torch_device *device,
			const struct segment *segment)
{
	struct ts_pickle_items items;
	int64_t next = segment->address;
	ts_pickle_value value;

	if (!is_new(m, segment->blocks, TS_PICKLE_LIST))
		return;
	items = ts_pickle_items(&m->pickle, segment->blocks);
	while (torch_step(m) && ts_pickle_next(&items, &value)) {
		struct block block;

		if (!is_new(m, value, TS_PICKLE_DICT))
			continue;
		block = read_block(m, value);
		if (block.address == TS_ABSENT)
			block.address = next;
		next = block.address == TS_ABSENT || block.size < 0
			       ? TS_ABSENT
			       : ts_ns_add(block.address, block.size);
		take_block(m, device, segment, &block);
	}
}

/* ---- segments ---- */

static struct segment read_segment(struct torch_memory *m, ts_pickle_value dict)
{
	struct segment segment = { .stream = TS_ABSENT };
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, dict);
	ts_pickle_value key, value;

	segment.address = segment.bytes = TS_ABSENT;
	while (ts_pickle_next_pair(&items, &key, &value)) {
		switch (ts_pickle_text(key)) {
		case TEXT_DEVICE:
			ts_pickle_int(&m->pickle, value, &segment.device);
			break;
		case TEXT_ADDRESS:
			ts_pickle_int(&m->pickle, value, &segment.address);
			break;
		case TEXT_TOTAL_SIZE:
			ts_pickle_int(&m->pickle, value, &segment.bytes);
			break;
		case TEXT_STREAM:
			ts_pickle_int(&m->pickle, value, &segment.stream);
			break;
		case TEXT_IS_EXPANDABLE:
			segment.is_expandable = ts_pickle_kind(value) == TS_PICKLE_TRUE;
			break;
		case TEXT_FRAMES:
			segment.frames = value;
			break;
		case TEXT_BLOCKS:
			segment.blocks = value;
			break;
		default:
			break;
		}
	}
	return segment;
}

static void take_segment(struct torch_memory *m, struct torch_device *device,
			 const struct segment *segment)
{
	struct torch_entry entry = entry_of(m, device);
	uint64_t life = LIFE_NONE;

	if (segment->address == TS_ABSENT || segment->bytes < 0) {
		ts_entities_add_loss(&m->entities, &torch_loss_value, 1);
		return;
	}
	device->held_at_end = ts_ns_add(device->held_at_end, segment->bytes);
	ts_pairmap_get(&m->segments, (uint64_t)device->number, (uint64_t)segment->address, &life);
	/* Memory mapped in pieces has no pairs: see balance(). */
	if (life != LIFE_NONE || segment->is_expandable)
		return;
	device->before_segments = ts_ns_add(device->before_segments, segment->bytes);
	entry.address = segment->address;
	entry.bytes = segment->bytes;
	entry.stream = segment->stream;
	entry.frames = segment->frames;
	torch_add_segment(m, device, &entry, TS_ALLOCATION_ALLOC, true);
}

/*
 * Held at the end, minus allocated and plus freed since, existed at the start: the part without a
 * row gets one.
 */
static void balance(struct torch_memory *m, struct torch_device *device)
{
	int64_t held = ts_ns_add(ts_ns_sub(device->held_at_end, device->taken), device->given);
	struct torch_entry entry = entry_of(m, device);

	if (held <= device->before_segments)
		return;
	entry.address = entry.stream = TS_ABSENT;
	entry.bytes = ts_ns_sub(held, device->before_segments);
	torch_add_segment(m, device, &entry, TS_ALLOCATION_ALLOC, true);
}

void torch_read_segments(struct torch_memory *m, ts_pickle_value segments)
{
	struct ts_pickle_items items = ts_pickle_items(&m->pickle, segments);
	ts_pickle_value value;

	if (ts_pickle_kind(segments) != TS_PICKLE_LIST)
		return;
	while (torch_step(m) && ts_pickle_next(&items, &value)) {
		struct torch_device *device;
		struct segment segment;

		if (!is_new(m, value, TS_PICKLE_DICT))
			continue;
		segment = read_segment(m, value);
		device = torch_device(m, segment.device);
		if (!device)
			return;
		take_segment(m, device, &segment);
		take_blocks(m, device, &segment);
	}
	for (size_t i = 0; !m->rc && i < m->device_count; i++)
		balance(m, &m->devices[i]);
}
