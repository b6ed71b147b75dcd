/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of src/live: a handmade live area, on which the test acts as the target. The sink
 * checks the invariants of every RING block and keeps totals.
 */
#ifndef TS_TESTS_UNIT_LIVE_LIVE_SUPPORT_H
#define TS_TESTS_UNIT_LIVE_LIVE_SUPPORT_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tracesmith/schema.h>

#include "live/area.h"
#include "live/local/live_records.h"
#include "unit/runner.h"

#define SUPPORT __attribute__((unused)) static

#define LIVE_AREA_ID UINT64_C(0x1122334455667788)

/* ---- the target ---- */

struct live {
	char path[64]; /* of the directory */
	char name[64]; /* of the area */
	int directory_fd, fd;
	size_t bytes;
	unsigned char *map;
	struct ts_live_control *control;
	struct ts_live_ring *rings;
	struct ts_live_oldest *consumed; /* of each ring, as last read consistently */
};

SUPPORT void live_directory(struct live *live)
{
	*live = (struct live){ .fd = -1 };
	snprintf(live->path, sizeof(live->path), "%s/ts-live-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	TS_CHECK(mkdtemp(live->path) != NULL);
	live->directory_fd = open(live->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	TS_CHECK(live->directory_fd >= 0);
}

SUPPORT void live_fill_control(struct ts_live_control *control, uint32_t pid, uint64_t start_time)
{
	*control = (struct ts_live_control){
		.magic = { 'T', 'S', 'L', 'I', 'V', 'E', '\r', '\n' },
		.version = TS_LIVE_VERSION,
		.control_bytes = TS_LIVE_CONTROL_BYTES,
		.pid = pid,
		.start_time = start_time,
		.area_id = LIVE_AREA_ID,
		.image = 1,
		.clock = TS_LIVE_CLOCK_MONOTONIC,
		.ring_limit = TS_LIVE_RING_LIMIT,
		.ring_bytes = TS_LIVE_ENTRY_BYTES,
		.directory = TS_LIVE_DIRECTORY,
		.dictionary = TS_LIVE_DICTIONARY,
		.pool = TS_LIVE_POOL,
		.target_state = TS_LIVE_RUNNING,
		.enabled = TS_LIVE_ENABLED,
		.mode = TS_LIVE_STREAM,
		.step = TS_ABSENT,
		.step_open = TS_ABSENT,
		.step_close = TS_ABSENT,
		.name = "target",
	};
}

/* An area with `count` rings of `ring_bytes` each, all empty. */
SUPPORT void live_make(struct live *live, uint32_t count, uint64_t ring_bytes)
{
	live_directory(live);
	live->bytes = TS_LIVE_POOL + count * ring_bytes;
	snprintf(live->name, sizeof(live->name), "100-200-0123456789abcdef");
	live->fd =
		openat(live->directory_fd, live->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	TS_CHECK(live->fd >= 0 && ftruncate(live->fd, (off_t)live->bytes) == 0);
	live->map = mmap(NULL, live->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, live->fd, 0);
	TS_CHECK(live->map != MAP_FAILED);
	live->control = (struct ts_live_control *)live->map;
	live->rings = (struct ts_live_ring *)(live->map + TS_LIVE_DIRECTORY);
	live->consumed = calloc(count, sizeof(*live->consumed));
	TS_CHECK(live->consumed != NULL);
	live_fill_control(live->control, 100, 200);
	for (uint32_t i = 0; i < count; i++) {
		live->rings[i].offset = TS_LIVE_POOL + i * ring_bytes;
		live->rings[i].bytes = ring_bytes;
		live->rings[i].state = TS_LIVE_RING_OWNED;
		live->rings[i].consumed_check = ts_live_consumed_check(0, 0, 0, 0);
	}
	live->control->rings = count;
}

SUPPORT void live_release(struct live *live)
{
	if (live->map)
		munmap(live->map, live->bytes);
	free(live->consumed);
	if (live->fd >= 0) {
		close(live->fd);
		unlinkat(live->directory_fd, live->name, 0);
	}
	close(live->directory_fd);
	TS_CHECK_INT(rmdir(live->path), 0);
}

SUPPORT struct ts_area *live_open(const struct live *live, bool writable)
{
	struct ts_area *area;
	struct ts_error err;

	if (ts_area_open(&area, live->directory_fd, live->name, writable, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return area;
}

static inline struct ts_live_oldest *live_slot(struct ts_live_ring *ring)
{
	return ring->turn & 1 ? &ring->slot_1 : &ring->slot_0;
}

/*
 * The target may overwrite what is below. If the words are inconsistent, it keeps the previous
 * value.
 */
SUPPORT struct ts_live_oldest live_lowest(struct live *live, uint32_t index)
{
	struct ts_live_ring *ring = &live->rings[index];
	struct ts_live_oldest *kept = &live->consumed[index];
	struct ts_live_oldest seen = {
		.position = __atomic_load_n(&ring->consumed, __ATOMIC_ACQUIRE),
		.events = __atomic_load_n(&ring->consumed_events, __ATOMIC_RELAXED),
		.tid = __atomic_load_n(&ring->consumed_tid, __ATOMIC_RELAXED),
		.serial = __atomic_load_n(&ring->consumed_serial, __ATOMIC_RELAXED),
	};

	memcpy(seen.name, ring->consumed_name, sizeof(seen.name));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&ring->consumed_check, __ATOMIC_RELAXED) ==
		    ts_live_consumed_check(seen.position, seen.events, seen.tid, seen.serial) &&
	    seen.position > kept->position && seen.position <= ring->head)
		*kept = seen;
	return kept->position > live_slot(ring)->position ? *kept : *live_slot(ring);
}

SUPPORT bool live_has_space(struct live *live, uint32_t index, uint64_t bytes)
{
	const struct ts_live_ring *ring = &live->rings[index];

	return ring->head + bytes <= live_lowest(live, index).position + ring->bytes;
}

/* Flight mode: drops the oldest eighth. */
SUPPORT void live_free_oldest(struct live *live, uint32_t index)
{
	struct ts_live_ring *ring = &live->rings[index];
	struct ts_live_oldest oldest = live_lowest(live, index);
	uint64_t until = oldest.position + ring->bytes / 8;

	while (oldest.position < until && oldest.position < ring->head) {
		const unsigned char *at = live->map + ring->offset +
					  (oldest.position & (ring->bytes - 1));
		struct ts_live_record record;
		struct ts_live_thread_record thread;

		memcpy(&record, at, sizeof(record));
		if (record.kind == TS_LIVE_THREAD) {
			memcpy(&thread, at, sizeof(thread));
			oldest.tid = thread.tid;
			oldest.serial = thread.serial;
			memcpy(oldest.name, thread.name, sizeof(oldest.name));
		}
		oldest.events += (uint64_t)ts_live_kind_is_event(record.kind);
		oldest.position += record.words * 8u;
	}
	*(ring->turn & 1 ? &ring->slot_0 : &ring->slot_1) = oldest;
	__atomic_store_n(&ring->turn, ring->turn + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * Stores a complete record, with a PAD before it if it would cross the end; false if the ring is
 * full.
 */
SUPPORT bool live_put(struct live *live, uint32_t index, const void *record, size_t bytes)
{
	struct ts_live_ring *ring = &live->rings[index];
	uint64_t at = ring->head & (ring->bytes - 1), left = ring->bytes - at;

	if (left < bytes) {
		struct ts_live_record pad = { .words = (uint16_t)(left / 8), .kind = TS_LIVE_PAD };

		if (!live_has_space(live, index, left))
			return false;
		memcpy(live->map + ring->offset + at, &pad, sizeof(pad));
		__atomic_store_n(&ring->head, ring->head + left, __ATOMIC_RELEASE);
		at = 0;
	}
	if (!live_has_space(live, index, bytes))
		return false;
	memcpy(live->map + ring->offset + at, record, bytes);
	__atomic_store_n(&ring->head, ring->head + bytes, __ATOMIC_RELEASE);
	return true;
}

/* An event of this many words, whose counter is a number of the test. */
SUPPORT bool live_put_event(struct live *live, uint32_t index, uint64_t number, uint16_t words)
{
	uint64_t record[64] = { 0 };
	struct ts_live_record head = { .words = words, .kind = TS_LIVE_INSTANT };

	TS_CHECK(words >= 2 && words <= 64);
	memcpy(record, &head, sizeof(head));
	record[1] = number;
	return live_put(live, index, record, words * 8u);
}

SUPPORT bool live_put_thread(struct live *live, uint32_t index, uint32_t tid,
			     uint32_t previous_ring, uint64_t previous_position)
{
	struct ts_live_thread_record record = {
		.head = { .words = sizeof(record) / 8, .kind = TS_LIVE_THREAD },
		.counter = 1,
		.tid = tid,
		.serial = tid * 10,
		.previous_ring = previous_ring,
		.previous_position = previous_position,
	};

	snprintf(record.name, sizeof(record.name), "thread %u", tid);
	return live_put(live, index, &record, sizeof(record));
}

/* A complete dictionary entry. */
SUPPORT void live_put_site(struct live *live, const char *name)
{
	unsigned char *at = live->map + TS_LIVE_DICTIONARY + live->control->dictionary_used;
	struct ts_live_site site = {
		.bytes = (uint32_t)((sizeof(site) + strlen(name) + 7) / 8 * 8),
		.kind = TS_LIVE_INSTANT,
		.name_bytes = (uint16_t)strlen(name),
	};

	if (site.bytes < TS_LIVE_SITE_LEAST)
		site.bytes = TS_LIVE_SITE_LEAST;
	memcpy(at, &site, sizeof(site));
	memcpy(at + sizeof(site), name, strlen(name));
	live->control->dictionary_used += site.bytes;
}

/* ---- the journal ---- */

/* The decoder's view of a ring. */
struct reported {
	uint64_t to, events, dropped;
	uint64_t stored, lost;
	uint64_t last_number;
	uint32_t tid;
	bool begun;
};

struct sink {
	struct ts_block_sink sink;
	struct reported rings[TS_LIVE_RING_LIMIT];
	uint64_t dictionary_to;
	unsigned int blocks, ring_blocks, empty_blocks, start_blocks, thread_blocks, losses;
	uint32_t largest;
	uint32_t order[4096]; /* rings, in the order of their blocks */
	struct ts_block last;
	struct ts_block_loss loss;
	unsigned int fail_after; /* blocks until an error; 0: never */
	bool numbers_rise;       /* event counters must increase */
};

SUPPORT void sink_check_records(struct sink *sink, struct reported *reported,
				const unsigned char *payload, size_t bytes, uint64_t *ret_events)
{
	uint64_t events = 0;
	size_t at = 0;

	while (at < bytes) {
		struct ts_live_record record;
		struct ts_live_thread_record thread;
		uint64_t number;

		TS_CHECK(bytes - at >= sizeof(record));
		memcpy(&record, payload + at, sizeof(record));
		TS_CHECK(record.words >= 1 && record.words * 8u <= bytes - at);
		if (record.kind == TS_LIVE_THREAD) {
			memcpy(&thread, payload + at, sizeof(thread));
			reported->tid = thread.tid;
		}
		if (ts_live_kind_is_event(record.kind)) {
			memcpy(&number, payload + at + 8, 8);
			TS_CHECK(!sink->numbers_rise || number > reported->last_number);
			reported->last_number = number;
			events++;
		}
		at += record.words * 8u;
	}
	TS_CHECK_INT(at, bytes);
	*ret_events = events;
}

SUPPORT void sink_check_ring(struct sink *sink, const struct ts_block *block,
			     const unsigned char *payload)
{
	struct reported *reported = &sink->rings[block->ring];
	size_t bytes = block->bytes;
	uint64_t events = 0;

	TS_CHECK(block->ring < TS_LIVE_RING_LIMIT && block->from <= block->to);
	if (block->flags & TS_RING_START) {
		TS_CHECK(!reported->begun && bytes == 0 && block->from == block->to);
		reported->events = block->events;
		reported->dropped = block->dropped;
		sink->start_blocks++;
	}
	if (block->flags & TS_RING_THREAD) {
		struct ts_live_thread_record thread;

		TS_CHECK(bytes > sizeof(thread));
		memcpy(&thread, payload, sizeof(thread));
		TS_CHECK(thread.head.kind == TS_LIVE_THREAD &&
			 thread.head.words * 8u == sizeof(thread));
		TS_CHECK(thread.tid != 0 && thread.previous_ring == 0);
		reported->tid = thread.tid;
		payload += sizeof(thread);
		bytes -= sizeof(thread);
		sink->thread_blocks++;
	}
	TS_CHECK(bytes == 0 || bytes == block->to - block->from);
	TS_CHECK(block->from >= reported->to);
	sink_check_records(sink, reported, payload, bytes, &events);
	TS_CHECK(block->events >= reported->events + events && block->dropped >= reported->dropped);
	reported->stored += events;
	reported->lost += block->events - reported->events - events + block->dropped -
			  reported->dropped;
	reported->to = block->to;
	reported->events = block->events;
	reported->dropped = block->dropped;
	reported->begun = true;
	if (sink->ring_blocks < TS_ARRAY_SIZE(sink->order))
		sink->order[sink->ring_blocks] = block->ring;
	sink->ring_blocks++;
	sink->empty_blocks += bytes == 0;
	sink->largest = TS_MAX(sink->largest, block->bytes);
}

SUPPORT int sink_append(void *context, struct ts_block *block, const void *payload,
			struct ts_error *err)
{
	struct sink *sink = context;

	if (sink->fail_after && --sink->fail_after == 0)
		return ts_error_set(err, TS_ENOSPC, "the sink is full");
	TS_CHECK_INT(block->area, LIVE_AREA_ID);
	sink->blocks++;
	sink->last = *block;
	if (block->type == TS_BLOCK_RING) {
		sink_check_ring(sink, block, payload);
	} else if (block->type == TS_BLOCK_DICTIONARY) {
		TS_CHECK_INT(block->from, sink->dictionary_to);
		TS_CHECK_INT(block->bytes, block->to - block->from);
		sink->dictionary_to = block->to;
	} else {
		TS_CHECK_INT(block->type, TS_BLOCK_LOSS);
		TS_CHECK_INT(block->bytes, sizeof(sink->loss));
		memcpy(&sink->loss, payload, sizeof(sink->loss));
		TS_CHECK(memchr(sink->loss.reason, 0, sizeof(sink->loss.reason)) != NULL);
		sink->losses++;
	}
	return TS_OK;
}

SUPPORT struct sink *sink_new(void)
{
	struct sink *sink = calloc(1, sizeof(*sink));

	TS_CHECK(sink != NULL);
	sink->sink = (struct ts_block_sink){ .append = sink_append, .context = sink };
	return sink;
}

/* Drains, which must succeed. */
SUPPORT struct ts_drain_result live_drain(struct ts_area *area, unsigned int flags,
					  struct sink *sink)
{
	struct ts_drain_result result;
	struct ts_error err;

	if (ts_area_drain(area, flags, &sink->sink, &result, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return result;
}

#endif
