/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slow path of an emit (docs/live.md, 4.1): a thread's first ring, space in a full ring, side rings
 * for signal handlers, rings of exited threads.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent_python.h"
#include "agent/emit.h"
#include "agent/launch_stack.h"
#include "agent/replay_channel.h"
#include "agent/ring_write.h"
#include "agent/tracer.h"
#include "base/local/macros.h"

#define WRITER_SLAB_BYTES (64u << 10)
#define RING_BYTES_MOST (16u << 20)
/*
 * Nobody drains in flight mode: a ring grows until it holds ten thousand events, also of kind TORCH
 * with their TORCH_TIME (128 bytes; an eighth of the ring may be free).
 */
#define FLIGHT_RING_BYTES (2u << 20)
/* A thread without a ring retries after this many events. */
#define RETRY_EVENTS 4096u

static __thread struct writer *writers_by_hand __attribute__((tls_model("initial-exec")));

/* The thread's number in an area, kept when it takes another ring. */
static __thread struct {
	const struct core *core;
	uint32_t tid; /* differs in a forked child */
	uint32_t serial;
} known_as __attribute__((tls_model("initial-exec")));

/* The core in which the thread last got no ring, and how many events ago. */
static __thread struct {
	const struct core *core;
	uint32_t events;
} starved __attribute__((tls_model("initial-exec")));

static void count_lost(struct core *core, uint64_t *counter, uint64_t events)
{
	uint64_t none = 0;

	__atomic_fetch_add(counter, events, __ATOMIC_RELAXED);
	__atomic_compare_exchange_n(&core->control->lost_first, &none,
				    ts_counter_read(core->control->clock), false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

void agent_count_lost(struct core *core)
{
	count_lost(core, &core->control->lost_nested, 1);
}

static void count_no_ring(struct core *core)
{
	count_lost(core, &core->control->lost_no_ring, 1);
}

/* Counts a drop. An episode ends when there is space again; its last instant is known then. */
static void drop(struct writer *writer)
{
	struct ts_live_ring *ring = writer->ring;

	if (!__atomic_load_n(&ring->dropped_first, __ATOMIC_RELAXED))
		__atomic_store_n(&ring->dropped_first, ts_counter_read(writer->clock),
				 __ATOMIC_RELAXED);
	__atomic_store_n(&ring->dropped, ring->dropped + 1, __ATOMIC_RELEASE);
}

/* ---- emits that ended in memory of the parent process ---- */

/* Events in the ring between two positions. */
static uint64_t count_events(const char *bytes, uint64_t mask, uint64_t from, uint64_t to)
{
	uint64_t events = 0;

	while (from < to) {
		struct ts_live_record record;

		memcpy(&record, bytes + (from & mask), sizeof(record));
		if (!record.words)
			break;
		events += (uint64_t)ts_live_kind_is_event(record.kind);
		from += record.words * 8u;
	}
	return events;
}

static uint64_t lost_in(const struct ts_live_control *control)
{
	return __atomic_load_n(&control->lost_nested, __ATOMIC_RELAXED) +
	       __atomic_load_n(&control->lost_no_ring, __ATOMIC_RELAXED);
}

static uint64_t stranded_events(const struct stranded *stranded)
{
	uint64_t events = stranded->control ? lost_in(stranded->control) - stranded->lost : 0;

	for (unsigned int i = 0; i < stranded->rings; i++) {
		const struct ts_live_ring *ring = stranded->ring[i].ring;

		events += ring->dropped - stranded->ring[i].dropped;
		events += count_events(stranded->ring[i].bytes, stranded->ring[i].mask,
				       stranded->ring[i].head,
				       __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE));
	}
	return events;
}

bool agent_has_stranded(const struct ts_tracer *tracer)
{
	return stranded_events(&tracer->stranded) != 0;
}

void agent_forget_stranded(struct ts_tracer *tracer)
{
	struct stranded *stranded = &tracer->stranded;

	if (stranded->control)
		stranded->lost = lost_in(stranded->control);
	for (unsigned int i = 0; i < stranded->rings; i++) {
		stranded->ring[i].head = stranded->ring[i].ring->head;
		stranded->ring[i].dropped = stranded->ring[i].ring->dropped;
	}
}

void agent_count_stranded(struct ts_tracer *tracer, struct core *core)
{
	uint64_t events = stranded_events(&tracer->stranded);

	if (!events)
		return;
	agent_forget_stranded(tracer);
	count_lost(core, &core->control->lost_nested, events);
}

/* A writer of the parent, now in private memory. */
static void strand(struct stranded *stranded, const struct writer *writer)
{
	unsigned int i = stranded->rings;

	/* The oldest emits are the first to end. */
	if (i == STRANDED_RINGS) {
		memmove(&stranded->ring[0], &stranded->ring[1],
			(STRANDED_RINGS - 1) * sizeof(stranded->ring[0]));
		i--;
	}
	stranded->ring[i].ring = writer->ring;
	stranded->ring[i].bytes = writer->bytes;
	stranded->ring[i].mask = writer->mask;
	stranded->ring[i].head = writer->ring->head;
	stranded->ring[i].dropped = writer->ring->dropped;
	stranded->rings = i + 1;
}

/* ---- creating and reusing rings ---- */

static uint32_t current_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static void attach_to(struct writer *writer, struct core *core, uint32_t index)
{
	struct ts_live_ring *ring = &core->rings[index];

	writer->ring = ring;
	writer->index = index;
	writer->bytes = core->mapped[index];
	writer->mask = ring->bytes - 1;
	writer->at = writer->until = writer->bytes + (ring->head & writer->mask);
	memset(&writer->consumed, 0, sizeof(writer->consumed));
	writer->exhausted = false;
	ring->tid = writer->tid;
	__atomic_store_n(&ring->state, TS_LIVE_RING_OWNED, __ATOMIC_RELEASE);
}

/* Writes the first record of an owner. The caller has ensured that there is space. */
static void write_thread(struct writer *writer, const char *name, uint32_t previous_ring,
			 uint64_t previous_position)
{
	struct ts_live_thread_record record = {
		.head = { .words = sizeof(record) / 8,
			  .kind = TS_LIVE_THREAD,
			  .flags = writer->is_side ? TS_LIVE_FLAG_SIDE : 0 },
		.counter = ts_counter_read(writer->clock),
		.tid = writer->tid,
		.serial = writer->serial,
		.previous_ring = previous_ring,
		.previous_position = previous_position,
		.dropped = writer->ring->dropped,
	};

	if (name)
		strncpy(record.name, name, sizeof(record.name) - 1);
	else if (agent_thread_name[0])
		memcpy(record.name, agent_thread_name, sizeof(record.name));
	else
		prctl(PR_GET_NAME, record.name, 0, 0, 0);
	memcpy(writer->at, &record, sizeof(record));
	ring_advance(writer, sizeof(record));
}

static bool owner_is_gone(const struct ts_live_ring *ring)
{
	return syscall(SYS_tgkill, getpid(), (pid_t)ring->tid, 0) && errno == ESRCH;
}

/* Finds the ring of an exited thread, of at least `bytes`, with the most free space; or -1. */
static int find_exited(struct core *core, uint64_t bytes, bool look_for_vanished)
{
	uint32_t count = core->control->rings;
	uint64_t best_free = 0;
	int best = -1;

	for (uint32_t i = 0; i < count; i++) {
		struct ts_live_ring *ring = &core->rings[i];
		uint32_t state = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE);
		uint64_t free_bytes;

		if (ring->bytes < bytes ||
		    (state == TS_LIVE_RING_OWNED && !(look_for_vanished && owner_is_gone(ring))))
			continue;
		free_bytes = ring_free_bytes(ring);
		if (free_bytes >= ring->bytes / 4 && free_bytes > best_free) {
			best = (int)i;
			best_free = free_bytes;
		}
		if (free_bytes == ring->bytes)
			break;
	}
	return best;
}

/* Flight mode keeps the newest events: as a last resort, reuse an exited thread's full ring. */
static int find_full(struct core *core)
{
	uint32_t count = core->control->rings;

	if (__atomic_load_n(&core->control->mode, __ATOMIC_RELAXED) != TS_LIVE_FLIGHT)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		if (__atomic_load_n(&core->rings[i].state, __ATOMIC_ACQUIRE) == TS_LIVE_RING_EXITED)
			return (int)i;
	return -1;
}

/*
 * Creates a ring in the pool; -1: the area would exceed `limit` bytes, or memory is exhausted.
 */
static int make_ring(struct core *core, uint64_t bytes, uint64_t limit)
{
	uint32_t index = core->control->rings;
	uint64_t offset = core->pool_end;
	struct ts_live_ring *ring;
	char *mapped;

	if (index >= TS_LIVE_RING_LIMIT ||
	    (TS_LIVE_DIRECTORY + (index + 1) * sizeof(*ring) > core->directory_end &&
	     agent_grow_directory(core)) ||
	    agent_allocate(core, offset, bytes, limit))
		return -1;
	mapped = agent_map(core, offset, bytes);
	if (!mapped) {
		agent_give_back(core, offset, bytes);
		return -1;
	}
	core->pool_end += bytes;
	core->mapped[index] = mapped;
	ring = &core->rings[index];
	ring->offset = offset;
	ring->consumed_check = ts_live_consumed_check(0, 0, 0, 0);
	ring->bytes = bytes;
	__atomic_store_n(&core->control->rings, index + 1, __ATOMIC_RELEASE);
	return (int)index;
}

/* A ring for a thread that has none. If the budget is used up, a small one is better than none. */
static int find_ring(struct core *core)
{
	int index = find_exited(core, core->ring_bytes, false);

	if (index < 0)
		index = make_ring(core, core->ring_bytes, core->budget);
	if (index < 0)
		index = find_exited(core, 0, false);
	if (index < 0)
		index = make_ring(core, AGENT_SMALL_RING_BYTES, core->control->budget);
	if (index < 0)
		index = find_exited(core, 0, true);
	return index;
}

static struct writer *take_writer(struct core *core)
{
	struct writer *writer = core->free_writers;

	if (!writer) {
		struct writer *slab = agent_wiped_memory(WRITER_SLAB_BYTES);

		for (size_t i = 0; slab && i < WRITER_SLAB_BYTES / sizeof(*slab); i++) {
			slab[i].next = core->free_writers;
			core->free_writers = &slab[i];
		}
		writer = core->free_writers;
	}
	if (writer) {
		core->free_writers = writer->next;
		memset(writer, 0, sizeof(*writer));
	}
	return writer;
}

/* Ensures that the THREAD record fits; in flight mode frees old records if needed. */
static bool alloc_thread_record(struct writer *writer)
{
	uint64_t bytes = sizeof(struct ts_live_thread_record), needed;

	if (ring_extend(writer, ring_oldest(writer)->position, bytes, &needed))
		return true;
	return writer->core->control->mode == TS_LIVE_FLIGHT &&
	       ring_extend(writer, ring_free_oldest(writer, needed), bytes, &needed);
}

static uint32_t thread_serial(struct core *core, uint32_t tid)
{
	if (known_as.core != core || known_as.tid != tid) {
		known_as.core = core;
		known_as.tid = tid;
		known_as.serial = ++core->serials;
	}
	return known_as.serial;
}

static struct writer *attach_locked(struct ts_tracer *tracer, struct core *core,
				    const struct writer *main_writer)
{
	struct writer *writer = take_writer(core);
	int index;

	if (!writer)
		return NULL;
	writer->tracer = tracer;
	writer->core = core;
	writer->clock = core->control->clock;
	writer->tid = main_writer ? main_writer->tid : current_tid();
	writer->serial = main_writer ? main_writer->serial : thread_serial(core, writer->tid);
	writer->is_side = main_writer != NULL;
	index = find_ring(core);
	if (index < 0)
		index = find_full(core);
	if (index >= 0) {
		attach_to(writer, core, (uint32_t)index);
		if (alloc_thread_record(writer)) {
			write_thread(writer, NULL, 0, 0);
			return writer;
		}
		__atomic_store_n(&writer->ring->state, TS_LIVE_RING_EXITED, __ATOMIC_RELEASE);
		writer->ring = NULL;
	}
	writer->next = core->free_writers;
	core->free_writers = writer;
	return NULL;
}

/* A writer with a ring for the calling thread; NULL: none available. Signals are blocked. */
static struct writer *attach(struct ts_tracer *tracer, struct core *core,
			     const struct writer *main_writer)
{
	struct writer *writer;

	agent_lock(core);
	writer = attach_locked(tracer, core, main_writer);
	agent_count_stranded(tracer, core);
	agent_update_anchor(core);
	agent_unlock(core);
	starved.core = writer ? NULL : core;
	starved.events = 0;
	if (writer)
		writer->open = agent_open_value(writer);
	return writer;
}

bool agent_attach_shared(struct core *core, struct writer *writer, uint64_t bytes, uint64_t least,
			 const char *name)
{
	int index = -1;

	agent_lock(core);
	while (bytes >= least && index < 0) {
		index = make_ring(core, bytes, core->budget);
		bytes /= 2;
	}
	if (index >= 0) {
		memset(writer, 0, sizeof(*writer));
		writer->tracer = &ts_process_tracer;
		writer->core = core;
		writer->clock = core->control->clock;
		writer->serial = ++core->serials;
		attach_to(writer, core, (uint32_t)index);
		/* Owned by the process: nobody takes it when the thread vanishes. */
		writer->ring->tid = core->control->pid;
		if (alloc_thread_record(writer))
			write_thread(writer, name, 0, 0);
	}
	agent_update_anchor(core);
	agent_unlock(core);
	return index >= 0;
}

bool agent_has_serial(const struct core *core)
{
	const struct writer *writer = agent_writer;

	return writer->ring && writer->core == core;
}

uint32_t agent_serial(struct core *core)
{
	uint32_t serial;

	if (agent_has_serial(core))
		return agent_writer->serial;
	agent_lock(core);
	serial = thread_serial(core, current_tid());
	agent_unlock(core);
	return serial;
}

/* A thread that got no ring retries only occasionally, so that losing events is cheap. */
static bool is_starved(const struct core *core)
{
	return starved.core == core && ++starved.events % RETRY_EVENTS;
}

static struct writer *attach_thread(struct ts_tracer *tracer, struct core *core)
{
	struct agent_signals saved;
	struct writer *writer;

	if (is_starved(core))
		return NULL;
	agent_block_signals(&saved);
	writer = agent_find_writer(tracer);
	if (!writer->ring) { /* otherwise a handler was faster */
		writer = attach(tracer, core, NULL);
		if (writer && tracer == &ts_process_tracer) {
			agent_writer = writer;
		} else if (writer) {
			writer->next = writers_by_hand;
			writers_by_hand = writer;
		}
		if (writer)
			agent_watch_thread(writer);
	}
	agent_restore_signals(&saved);
	return writer;
}

/* Moves the writer to a ring four times as large, at most `most`; the old one is left to drain. */
static bool grow(struct writer *writer, uint64_t most)
{
	struct core *core = writer->core;
	uint64_t bytes = TS_MIN((writer->mask + 1) * 4, most), position = writer->ring->head;
	struct ts_live_ring *old = writer->ring;
	uint32_t old_index = writer->index;
	struct agent_signals saved;
	int index = -1;

	if (writer->is_side || bytes <= writer->mask + 1)
		return false;
	agent_block_signals(&saved);
	agent_lock(core);
	index = find_exited(core, bytes, false);
	if (index < 0 || ring_free_bytes(&core->rings[index]) != core->rings[index].bytes)
		index = make_ring(core, bytes, core->budget);
	if (index >= 0) {
		attach_to(writer, core, (uint32_t)index);
		if (!alloc_thread_record(writer))
			index = -1;
	}
	if (index >= 0) {
		write_thread(writer, NULL, old_index + 1, position);
		__atomic_store_n(&old->state, TS_LIVE_RING_EXITED, __ATOMIC_RELEASE);
	} else if (writer->ring != old) {
		__atomic_store_n(&writer->ring->state, TS_LIVE_RING_EXITED, __ATOMIC_RELEASE);
		attach_to(writer, core, old_index);
	}
	agent_unlock(core);
	agent_restore_signals(&saved);
	return index >= 0;
}

/* ---- slow path ---- */

static bool grow_in_flight(struct writer *writer)
{
	return !writer->stunted && grow(writer, FLIGHT_RING_BYTES);
}

/* The writer is closed (open = 0) meanwhile. */
static bool extend_or_grow(struct writer *writer, uint64_t bytes)
{
	const struct ts_live_control *control = writer->core->control;
	uint64_t needed;
	bool in_flight;

	if (ring_extend(writer, ring_oldest(writer)->position, bytes, &needed)) {
		if (writer->exhausted)
			__atomic_store_n(&writer->ring->dropped_last,
					 ts_counter_read(writer->clock), __ATOMIC_RELAXED);
		writer->exhausted = false;
		return true;
	}
	in_flight = __atomic_load_n(&control->mode, __ATOMIC_RELAXED) == TS_LIVE_FLIGHT;
	if (in_flight ? grow_in_flight(writer)
		      : !writer->exhausted && grow(writer, RING_BYTES_MOST))
		return ring_extend(writer, ring_oldest(writer)->position, bytes, &needed);
	if (in_flight) {
		writer->stunted = true;
		return ring_extend(writer, ring_free_oldest(writer, needed), bytes, &needed);
	}
	writer->exhausted = true;
	writer->full_at = ring_oldest(writer)->position + writer->mask + 1;
	return false;
}

/* Fast version of extend_or_grow() and drop(). */
bool agent_drop(struct writer *writer, uint64_t bytes)
{
	const struct ts_live_ring *ring = writer->ring;
	bool is_full;

	if (!writer->exhausted || !__atomic_load_n(&writer->open, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&writer->open, WRITER_CLOSED, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	is_full = ring->head + bytes > writer->full_at &&
		  __atomic_load_n(&ring->consumed, __ATOMIC_RELAXED) == writer->consumed.position &&
		  __atomic_load_n(&writer->core->control->mode, __ATOMIC_RELAXED) == TS_LIVE_STREAM;
	if (is_full)
		drop(writer);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&writer->open, agent_open_value(writer), __ATOMIC_RELAXED);
	return is_full;
}

static bool try_alloc(struct writer *writer, uint64_t bytes, bool counts)
{
	bool has_space;

	__atomic_store_n(&writer->open, 0, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	has_space = extend_or_grow(writer, bytes);
	if (!has_space && counts)
		drop(writer);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&writer->open, agent_open_value(writer), __ATOMIC_RELAXED);
	return has_space;
}

/* The writer for a handler that interrupted an emit of this thread. */
static struct writer *side_of(struct writer *writer, struct core *core)
{
	struct agent_signals saved;

	if (!writer->side) {
		if (writer->is_side || is_starved(core))
			return NULL;
		agent_block_signals(&saved);
		if (!writer->side) /* otherwise a handler was faster */
			writer->side = attach(writer->tracer, core, writer);
		agent_restore_signals(&saved);
	}
	return writer->side && __atomic_load_n(&writer->side->open, __ATOMIC_RELAXED) ? writer->side
										      : NULL;
}

struct writer *agent_ring_alloc(struct ts_tracer *tracer, struct core *core, struct writer *writer,
				uint64_t bytes, bool counts)
{
	if (AGENT_UNLIKELY(!writer->ring)) {
		writer = attach_thread(tracer, core);
		if (!writer) {
			if (counts)
				count_no_ring(core);
			return NULL;
		}
	} else if (AGENT_UNLIKELY(!__atomic_load_n(&writer->open, __ATOMIC_RELAXED))) {
		writer = side_of(writer, core);
		if (!writer) {
			if (counts)
				agent_count_lost(core);
			return NULL;
		}
	}
	return try_alloc(writer, bytes, counts) ? writer : NULL;
}

struct writer *agent_find_writer(struct ts_tracer *tracer)
{
	if (AGENT_LIKELY(tracer == &ts_process_tracer))
		return agent_writer;
	for (struct writer *writer = writers_by_hand; writer; writer = writer->next)
		if (writer->tracer == tracer)
			return writer;
	return agent_no_writer();
}

/* ---- thread exit ---- */

static void give_back(struct writer *writer)
{
	struct core *core = writer->core;

	writer->open = 0;
	if (writer->side)
		give_back(writer->side);
	__atomic_store_n(&writer->ring->state, TS_LIVE_RING_EXITED, __ATOMIC_RELEASE);
	writer->ring = NULL;
	agent_lock(core);
	writer->next = core->free_writers;
	core->free_writers = writer;
	agent_unlock(core);
}

/* Writers without a tracer were wiped by fork: they belong to the parent process. */
void agent_thread_exit(void *unused)
{
	struct writer *writer = agent_writer, *next;
	struct agent_signals saved;

	(void)unused;
	agent_block_signals(&saved);
	channel_abandon();
	agent_writer = agent_no_writer();
	if (writer->tracer && writer->ring)
		give_back(writer);
	writer = writers_by_hand;
	writers_by_hand = NULL;
	for (; writer; writer = next) {
		next = writer->next;
		if (writer->tracer && writer->ring)
			give_back(writer);
	}
	agent_python_thread_exit();
	agent_stack_thread_exit();
	agent_restore_signals(&saved);
}

/* ---- fork ---- */

#define KEPT_MOST 16u

/* Copies of the forking thread's writers and their rings. */
struct kept {
	unsigned int count;
	struct {
		struct writer *writer;
		struct writer copy;
		struct ts_live_ring ring;
	} writers[KEPT_MOST];
};
static __thread struct kept *kept __attribute__((tls_model("initial-exec")));

static void keep(struct writer *writer)
{
	if (!writer || !writer->ring)
		return;
	if (!kept)
		kept = agent_memory(sizeof(*kept));
	if (!kept || kept->count == KEPT_MOST)
		return;
	kept->writers[kept->count].writer = writer;
	kept->writers[kept->count].copy = *writer;
	kept->writers[kept->count++].ring = *writer->ring;
}

void agent_keep_writers(void)
{
	keep(agent_writer);
	keep(agent_writer->side);
	for (struct writer *writer = writers_by_hand; writer; writer = writer->next) {
		keep(writer);
		keep(writer->side);
	}
}

void agent_release_kept(void)
{
	if (kept)
		munmap(kept, sizeof(*kept));
	kept = NULL;
}

/* Called once the directory is private. */
void agent_forget_writers(void)
{
	for (unsigned int i = 0; kept && i < kept->count; i++) {
		struct writer *writer = kept->writers[i].writer;
		const struct writer *copy = &kept->writers[i].copy;

		if (!copy->core->control || !agent_unshare(copy->bytes, copy->mask + 1))
			continue;
		*writer = *copy;
		*writer->ring = kept->writers[i].ring;
		agent_keep_on_fork(writer, sizeof(*writer));
		strand(&writer->tracer->stranded, writer);
	}
	agent_release_kept();
	agent_writer = agent_no_writer();
	writers_by_hand = NULL;
	starved.core = NULL;
}
