/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that CUPTI fills (docs/cuda.md, section 3): a lock-free pool of small buffers, because
 * CUPTI requests them on threads of the program. One reader parses the returned buffers, and the
 * complete records at the start of those that CUPTI still holds.
 */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/cuda/cupti/cupti_device.h"

#define BUFFER_BYTES 16384u
#define SLAB_BUFFERS 256u
#define BUFFERS_AT_MOST 16384u
#define POOL_BYTES ((size_t)BUFFER_BYTES * BUFFERS_AT_MOST)
/*
 * For an exhausted pool: rejecting a buffer request can crash CUPTI before CUDA 12.9, so it gets a
 * spare buffer whose records are only counted.
 */
#define SPARE_BYTES (1u << 20)
#define SPARES 256u
#define RANGE_BYTES (POOL_BYTES + (size_t)SPARE_BYTES * SPARES)
/* While another thread adds a slab; far longer than that takes. */
#define TAKE_TRIES 100000
/* With this many returned buffers, the reader is woken. */
#define WAKE_AT 32
/* Bytes of a record that are inspected: up to a kernel's name. */
#define LOOKED_AT 112u
#define SHORTEST (CUPTI_AT_END + 8u)
/* How long a buffer rests that a forced flush returned. */
#define REST_NS 10000000000

enum { SLOT_FREE, SLOT_HELD, SLOT_RETURNED, SLOT_RESTING };

struct slot {
	uint32_t next;      /* in the free or in the returned list: index + 1; 0: the end */
	uint32_t state;     /* atomic */
	uint32_t valid;     /* bytes, once returned */
	uint32_t is_forced; /* returned before its records were complete */
	/* Used by the reader only: */
	uint32_t read_until; /* all records before it were emitted */
	uint64_t rests_since;
	uint64_t seen[BUFFER_BYTES / 512]; /* one bit per 8 bytes: a record that begins there was
					      complete on the last pass */
	uint64_t read[BUFFER_BYTES / 512]; /* and was emitted */
};

static uint8_t *range; /* the pool, then spare buffers; NULL: none */
static struct slot *slots;
static uint32_t slot_count; /* allocated; atomic */
static uint32_t growing;    /* a thread adds a slab */
static uint64_t free_list;  /* tag << 32 | index + 1 */
static uint32_t returned;   /* index + 1 */
static uint32_t returned_count;
static uint32_t held_count;
static uint32_t resting_count; /* of the reader */
static uint32_t forcing;       /* forced flushes in progress; atomic */
static uint8_t is_spare_held[SPARES];
static uint64_t spare_lost; /* bytes of records in spare buffers; atomic */

/* ---- lists ---- */

/* The tag changes each time, against the ABA problem. */
static uint32_t take_free(void)
{
	uint64_t head = __atomic_load_n(&free_list, __ATOMIC_ACQUIRE), next;

	do {
		if (!(uint32_t)head)
			return 0;
		next = ((head >> 32) + 1) << 32 |
		       __atomic_load_n(&slots[(uint32_t)head - 1].next, __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(&free_list, &head, next, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return (uint32_t)head;
}

static void give_free(uint32_t number)
{
	uint64_t head = __atomic_load_n(&free_list, __ATOMIC_ACQUIRE), next;

	do {
		__atomic_store_n(&slots[number - 1].next, (uint32_t)head, __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | number;
	} while (!__atomic_compare_exchange_n(&free_list, &head, next, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
}

static void push_returned(uint32_t number)
{
	uint32_t head = __atomic_load_n(&returned, __ATOMIC_RELAXED);

	do
		slots[number - 1].next = head;
	while (!__atomic_compare_exchange_n(&returned, &head, number, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
}

/* All returned buffers, the oldest first. */
static uint32_t take_returned(void)
{
	uint32_t number = __atomic_exchange_n(&returned, 0, __ATOMIC_ACQUIRE), reversed = 0;

	while (number) {
		uint32_t next = slots[number - 1].next;

		slots[number - 1].next = reversed;
		reversed = number;
		number = next;
	}
	return reversed;
}

/* ---- the pool ---- */

/* Reserves address space at once; memory is used as needed. */
int cuda_buffers_init(void)
{
	void *memory = mmap(NULL, RANGE_BYTES, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *table = mmap(NULL, sizeof(*slots) * BUFFERS_AT_MOST, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED || table == MAP_FAILED) {
		if (memory != MAP_FAILED)
			munmap(memory, RANGE_BYTES);
		if (table != MAP_FAILED)
			munmap(table, sizeof(*slots) * BUFFERS_AT_MOST);
		return -1;
	}
	slots = table;
	__atomic_store_n(&range, memory, __ATOMIC_RELEASE);
	return 0;
}

/* 0: another thread does it, or the pool is exhausted. */
static uint32_t grow(bool *ret_is_used_up)
{
	uint32_t first, taken = 0;

	if (__atomic_exchange_n(&growing, 1, __ATOMIC_ACQUIRE))
		return 0;
	first = slot_count;
	if (first < BUFFERS_AT_MOST &&
	    !mprotect(range + (size_t)first * BUFFER_BYTES, (size_t)SLAB_BUFFERS * BUFFER_BYTES,
		      PROT_READ | PROT_WRITE)) {
		__atomic_store_n(&slot_count, first + SLAB_BUFFERS, __ATOMIC_RELEASE);
		taken = first + 1;
		for (uint32_t i = SLAB_BUFFERS; i > 1; i--)
			give_free(first + i);
	}
	*ret_is_used_up = !taken;
	__atomic_store_n(&growing, 0, __ATOMIC_RELEASE);
	return taken;
}

/* While another thread adds a slab, retries the list. */
static uint32_t take(void)
{
	uint32_t number = take_free();
	bool is_used_up = false;

	for (int tries = 0; !number && !is_used_up && tries < TAKE_TRIES; tries++) {
		number = grow(&is_used_up);
		if (!number && !is_used_up)
			sched_yield();
		if (!number)
			number = take_free();
	}
	return number;
}

static uint8_t *spare(uint32_t index)
{
	return range + POOL_BYTES + (size_t)index * SPARE_BYTES;
}

static void give_spare(uint8_t **buffer, size_t *bytes)
{
	*buffer = NULL;
	*bytes = 0;
	for (uint32_t i = 0; i < SPARES; i++) {
		if (__atomic_exchange_n(&is_spare_held[i], 1, __ATOMIC_ACQUIRE))
			continue;
		if (mprotect(spare(i), SPARE_BYTES, PROT_READ | PROT_WRITE)) {
			__atomic_store_n(&is_spare_held[i], 0, __ATOMIC_RELEASE);
			return;
		}
		*buffer = spare(i);
		*bytes = SPARE_BYTES;
		__atomic_add_fetch(&held_count, 1, __ATOMIC_RELAXED);
		return;
	}
}

void cuda_buffers_requested(uint8_t **buffer, size_t *bytes, size_t *most_records)
{
	uint32_t number = take();

	*most_records = 0;
	if (!number) {
		give_spare(buffer, bytes);
		return;
	}
	*buffer = range + (size_t)(number - 1) * BUFFER_BYTES;
	*bytes = BUFFER_BYTES;
	__atomic_add_fetch(&held_count, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&slots[number - 1].state, SLOT_HELD, __ATOMIC_RELEASE);
}

bool cuda_buffers_has(const uint8_t *buffer)
{
	return range && buffer >= range && buffer < range + RANGE_BYTES;
}

/* Zeroes it, as all buffers that CUPTI gets, by returning its memory. */
static void spare_completed(uint32_t index, size_t valid)
{
	__atomic_add_fetch(&spare_lost, valid < SPARE_BYTES ? valid : SPARE_BYTES,
			   __ATOMIC_RELAXED);
	__atomic_sub_fetch(&held_count, 1, __ATOMIC_RELAXED);
	madvise(spare(index), SPARE_BYTES, MADV_DONTNEED);
	__atomic_store_n(&is_spare_held[index], 0, __ATOMIC_RELEASE);
}

/* Runs on any thread that CUPTI chooses: only queues the buffer. */
void cuda_buffers_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			    size_t valid)
{
	uint32_t number;

	(void)context;
	(void)stream;
	(void)bytes;
	if (!cuda_buffers_has(buffer))
		return;
	if (buffer >= spare(0)) {
		spare_completed((uint32_t)((size_t)(buffer - spare(0)) / SPARE_BYTES), valid);
		return;
	}
	number = (uint32_t)((size_t)(buffer - range) / BUFFER_BYTES) + 1;
	slots[number - 1].valid = valid < BUFFER_BYTES ? (uint32_t)valid : BUFFER_BYTES;
	slots[number - 1].is_forced = __atomic_load_n(&forcing, __ATOMIC_ACQUIRE);
	__atomic_store_n(&slots[number - 1].state, SLOT_RETURNED, __ATOMIC_RELEASE);
	__atomic_sub_fetch(&held_count, 1, __ATOMIC_RELAXED);
	push_returned(number);
	if (__atomic_add_fetch(&returned_count, 1, __ATOMIC_RELAXED) == WAKE_AT)
		cuda_helper_wake();
}

void cuda_buffers_force(void)
{
	__atomic_add_fetch(&forcing, 1, __ATOMIC_ACQ_REL);
	cupti.ActivityFlushAll(CUPTI_FLUSH_FORCED);
	__atomic_sub_fetch(&forcing, 1, __ATOMIC_ACQ_REL);
}

uint32_t cuda_buffers_held(void)
{
	return __atomic_load_n(&held_count, __ATOMIC_ACQUIRE);
}

/* ---- reading ---- */

static uint32_t kind_at(const uint8_t *record)
{
	return __atomic_load_n((const uint32_t *)(const void *)(record + CUPTI_AT_KIND),
			       __ATOMIC_ACQUIRE);
}

static uint64_t end_at(const uint8_t *record)
{
	return __atomic_load_n((const uint64_t *)(const void *)(record + CUPTI_AT_END),
			       __ATOMIC_ACQUIRE);
}

/*
 * Returns the record's length; 0: not complete, or not known. A record that ends in the future
 * still has device time.
 */
static size_t complete_bytes(const uint8_t *record, uint64_t now)
{
	size_t bytes = cuda_layout_bytes(kind_at(record));
	uint64_t end = end_at(record);

	return end && end <= now ? bytes : 0;
}

/*
 * Length of an incomplete record, which has no kind yet. A kernel is recognized by its name, which
 * an earlier kernel had; 0 for others, which end the pass.
 */
static size_t waiting_bytes(const uint8_t *record)
{
	const char *name;

	if (kind_at(record) || !cuda_read_u32(record, CUPTI_KERNEL_CORRELATION))
		return 0;
	name = (const char *)(uintptr_t)cuda_read_u64(record, CUPTI_KERNEL_NAME);
	return name && cuda_names_knows(name) ? cuda_layout_bytes(CUPTI_KIND_CONCURRENT_KERNEL) : 0;
}

static bool has_bit(const uint64_t *bits, uint32_t at)
{
	return bits[at / 512] >> (at / 8 % 64) & 1;
}

static void set_bit(uint64_t *bits, uint32_t at)
{
	bits[at / 512] |= UINT64_C(1) << (at / 8 % 64);
}

/*
 * CUPTI keeps writing while we read. What was complete on the previous pass has been written
 * entirely by now, whatever the order of the stores, so a record is emitted on the second pass.
 * True once it was.
 */
static bool read_complete(struct slot *slot, const uint8_t *buffer, uint32_t at)
{
	if (has_bit(slot->seen, at) && !has_bit(slot->read, at)) {
		cuda_ops_record(buffer + at);
		set_bit(slot->read, at);
	}
	set_bit(slot->seen, at);
	return has_bit(slot->read, at);
}

static void read_held(uint32_t number, uint64_t now)
{
	struct slot *slot = &slots[number - 1];
	const uint8_t *buffer = range + (size_t)(number - 1) * BUFFER_BYTES;
	bool is_first = true; /* all before this one were emitted */

	for (uint32_t at = slot->read_until; at + SHORTEST <= BUFFER_BYTES;) {
		size_t bytes = complete_bytes(buffer + at, now);

		if (bytes && at + bytes <= BUFFER_BYTES)
			is_first &= read_complete(slot, buffer, at);
		else
			is_first = false;
		if (!bytes && at + LOOKED_AT <= BUFFER_BYTES)
			bytes = waiting_bytes(buffer + at);
		if (!bytes || at + bytes > BUFFER_BYTES)
			break;
		at += (uint32_t)bytes;
		if (is_first)
			slot->read_until = at;
	}
}

static void pass_on(const struct slot *slot, const uint8_t *buffer, const uint8_t *record)
{
	size_t bytes = cuda_layout_bytes(kind_at(record)), at = (size_t)(record - buffer);

	/*
	 * A record without an end was truncated by a forced flush; otherwise CUPTI has no times for
	 * it.
	 */
	if (bytes && at + bytes <= slot->valid && !has_bit(slot->read, (uint32_t)at) &&
	    (end_at(record) || !slot->is_forced))
		cuda_ops_record(record);
}

/*
 * Uses CUPTI's own iteration, which knows all kinds; the distance of two records is the length of
 * the first.
 */
static void read_returned(const struct slot *slot, uint8_t *buffer)
{
	const uint8_t *end = buffer + slot->valid, *last = NULL;
	void *record = NULL;

	while (!cupti.ActivityGetNextRecord(buffer, slot->valid, &record)) {
		const uint8_t *at = record;

		if (at < buffer || at + CUPTI_AT_END + 8 > end || (last && at <= last))
			break;
		if (last) {
			cuda_layout_learn(last, (size_t)(at - last));
			pass_on(slot, buffer, last);
		}
		last = at;
	}
	if (!last)
		return;
	if (!cuda_layout_bytes(kind_at(last)))
		cuda_layout_learn(last, (size_t)(end - last));
	pass_on(slot, buffer, last);
}

/* A started record has some nonzero bytes, whatever its kind. */
static bool is_begun(const struct slot *slot, const uint8_t *buffer)
{
	uint32_t from = slot->read_until;

	for (uint32_t at = from; at < BUFFER_BYTES && at < from + LOOKED_AT; at++)
		if (buffer[at])
			return true;
	return false;
}

bool cuda_buffers_pending(void)
{
	uint32_t count = __atomic_load_n(&slot_count, __ATOMIC_ACQUIRE);

	for (uint32_t number = 1; cuda_buffers_held() && number <= count; number++)
		if (__atomic_load_n(&slots[number - 1].state, __ATOMIC_ACQUIRE) == SLOT_HELD &&
		    is_begun(&slots[number - 1], range + (size_t)(number - 1) * BUFFER_BYTES))
			return true;
	return false;
}

static void emit_lost(void)
{
	uint64_t spare = __atomic_exchange_n(&spare_lost, 0, __ATOMIC_RELAXED);
	size_t bytes = cuda_layout_bytes(CUPTI_KIND_CONCURRENT_KERNEL), dropped = 0;

	if (spare && bytes)
		ts_accelerator_lost("gpu_op", spare / bytes, "all buffers for CUPTI were in use");
	if (cuda_device_state() == CUDA_DEVICE_ON && cupti.ActivityGetNumDroppedRecords &&
	    !cupti.ActivityGetNumDroppedRecords(NULL, 0, &dropped) && dropped)
		ts_accelerator_lost("gpu_op", dropped, "CUPTI dropped records");
}

/* CUPTI expects zeroed buffers, and does not clear them on the program's threads. */
static void make_free(uint32_t number)
{
	struct slot *slot = &slots[number - 1];

	memset(range + (size_t)(number - 1) * BUFFER_BYTES, 0, BUFFER_BYTES);
	memset(slot->seen, 0, sizeof(slot->seen));
	memset(slot->read, 0, sizeof(slot->read));
	slot->read_until = 0;
	__atomic_store_n(&slot->state, SLOT_FREE, __ATOMIC_RELEASE);
	give_free(number);
}

/* CUPTI may still write to a record that it had to return before it was complete. */
static bool must_rest(const struct slot *slot, const uint8_t *buffer)
{
	uint32_t at = 0;

	while (slot->is_forced && at + SHORTEST <= slot->valid) {
		size_t bytes = complete_bytes(buffer + at, UINT64_MAX);

		if (!bytes)
			return true;
		at += (uint32_t)bytes;
	}
	return false;
}

static void take_back(uint32_t number)
{
	struct slot *slot = &slots[number - 1];
	uint8_t *buffer = range + (size_t)(number - 1) * BUFFER_BYTES;

	read_returned(slot, buffer);
	if (must_rest(slot, buffer)) {
		slot->rests_since = ts_now();
		slot->state = SLOT_RESTING;
		resting_count++;
	} else {
		make_free(number);
	}
}

static void look_at(uint32_t number, uint64_t now)
{
	uint32_t state = __atomic_load_n(&slots[number - 1].state, __ATOMIC_ACQUIRE);

	if (state == SLOT_HELD) {
		read_held(number, now);
	} else if (state == SLOT_RESTING &&
		   ts_ticks_ns(ts_now() - slots[number - 1].rests_since) > REST_NS) {
		resting_count--;
		make_free(number);
	}
}

void cuda_buffers_read(void)
{
	uint32_t count = __atomic_load_n(&slot_count, __ATOMIC_ACQUIRE), number;
	uint64_t now = cuda_clock_latest();

	if (cuda_cupti_is_ended())
		return;
	__atomic_store_n(&returned_count, 0, __ATOMIC_RELAXED);
	for (number = take_returned(); number;) {
		uint32_t next = slots[number - 1].next;

		take_back(number);
		number = next;
	}
	if (cuda_buffers_held() || resting_count)
		for (number = 1; number <= count; number++)
			look_at(number, now);
	emit_lost();
}
