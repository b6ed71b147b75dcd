/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lossless channel of command streams (docs/replay.md, section 2): one ring that all threads
 * write under a lock and whose writer waits for space (replay_wait.c). If a record cannot be
 * stored, the stream ends with the reason as its last record; space for it is always reserved.
 */
#include <tracesmith/replay.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <tracesmith/accelerator.h>
#include <tracesmith/schema.h>

#include "agent/replay_channel.h"
#include "agent/replay_wait.h"
#include "agent/ring_write.h"
#include "agent/tracer.h"

#define NAME "commands"
#define BYTES_MOST (16u << 20)
#define BYTES_LEAST (64u << 10)
#define WHY_BYTES 256
#define NEXT_LINES 5u
#define RELAX_SPINS 1000u /* from then on agent_relax() sleeps */
#define PASSED_NS 1000000 /* a longer sleep counts as this */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define OBJECT_WORDS TS_LIVE_WORDS(struct ts_live_object)
#define COMMAND_WORDS TS_LIVE_WORDS(struct ts_live_command)

static uint64_t objects; /* last number assigned; a forked child continues from it */

/*
 * Its address is in the lock while this thread holds it; plus BLOCKED if signals are blocked. True:
 * a handler has used the channel meanwhile.
 */
#define BLOCKED 1u
static __thread bool is_interrupted __attribute__((tls_model("initial-exec"), aligned(8)));

/* ---- locking ---- */

static uintptr_t self(void)
{
	return (uintptr_t)&is_interrupted;
}

static bool try_lock(struct channel *channel, uintptr_t holder)
{
	uintptr_t none = 0;

	return __atomic_compare_exchange_n(&channel->lock, &none, holder, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static uintptr_t holder_of(const struct channel *channel)
{
	return __atomic_load_n(&channel->lock, __ATOMIC_RELAXED);
}

/* Inside of a short record of this thread, of which a handler has interrupted the rest. */
static bool is_brief(const struct channel *channel)
{
	return holder_of(channel) == self();
}

/* The same, or a handler of a fault has interrupted a longer one. */
static bool is_inside(const struct channel *channel)
{
	return (holder_of(channel) & ~(uintptr_t)BLOCKED) == self();
}

static void unlock(struct channel *channel)
{
	__atomic_store_n(&channel->lock, 0, __ATOMIC_RELEASE);
}

bool channel_is_broken(const struct channel *channel)
{
	return __atomic_load_n(&channel->broken, __ATOMIC_ACQUIRE);
}

/* A handler that left a short record by longjmp() never unlocks. */
struct watch {
	uintptr_t holder;
	uint64_t head;
	int64_t now_ns, idle_ns;
};

static bool is_left(const struct channel *channel, struct watch *watch)
{
	const struct ts_live_ring *ring = __atomic_load_n(&channel->writer.ring, __ATOMIC_RELAXED);
	struct watch now = { .holder = holder_of(channel),
			     .head = ring ? __atomic_load_n(&ring->head, __ATOMIC_RELAXED) : 0,
			     .now_ns = (int64_t)ts_counter_monotonic_ns() };
	int64_t passed = now.now_ns - watch->now_ns;

	/* If the whole process was stopped, the holder could not run either. */
	if (now.holder && !(now.holder & BLOCKED) && now.holder == watch->holder &&
	    now.head == watch->head)
		now.idle_ns = watch->idle_ns + (passed < PASSED_NS ? passed : PASSED_NS);
	*watch = now;
	return now.idle_ns > agent_channel_patience_ns;
}

/*
 * Blocks signals, but not while it waits: who holds it briefly may stand in a handler, until all
 * threads do, as some collectors of garbage have it. False: it is broken, and perhaps somebody
 * keeps it locked for ever.
 */
static bool lock(struct channel *channel, bool also_broken, struct agent_signals *saved)
{
	struct watch watch = { 0 };
	int error = errno;

	for (unsigned int spins = 0;; spins++) {
		errno = error;
		if (!holder_of(channel)) {
			agent_block_signals_but_faults(saved);
			if (try_lock(channel, self() | BLOCKED))
				return true;
			agent_restore_signals(saved);
		}
		if (channel_is_broken(channel) && !also_broken)
			return false;
		if (spins > RELAX_SPINS && is_left(channel, &watch)) {
			__atomic_store_n(&channel->broken, 1, __ATOMIC_RELEASE);
			return false;
		}
		agent_relax(spins);
	}
}

static uint64_t ring_bytes(const struct core *core)
{
	uint64_t bytes = BYTES_MOST;

	while (bytes > BYTES_LEAST && bytes > core->budget / 4)
		bytes /= 2;
	return bytes;
}

/*
 * A signal handler of the program that came in between, or left by longjmp(), uses the channel: its
 * own thread would have to let go of the lock first.
 */
static void interrupt(struct channel *channel)
{
	is_interrupted = channel->is_interrupted = true;
	__atomic_store_n(&channel->broken, 1, __ATOMIC_RELEASE);
}

/* Creates the ring on first use. Lock held. */
static bool attach(struct core *core)
{
	struct channel *channel = &core->channel;

	if (channel->writer.ring)
		return true;
	if (agent_attach_shared(core, &channel->writer, ring_bytes(core), BYTES_LEAST, NAME)) {
		/* Or each page costs a fault in some command. */
		if (ts_replay_settings()->mode != TS_REPLAY_OFF)
			madvise(channel->writer.bytes, channel->writer.mask + 1,
				MADV_POPULATE_WRITE);
		return true;
	}
	/* Without a channel the failure can only be reported outside it. */
	__atomic_store_n(&channel->broken, 1, __ATOMIC_RELEASE);
	ts_accelerator_lost(
		NAME, 1,
		ts_replay_settings()->mode == TS_REPLAY_OFF
			? "no shared memory for device code"
			: "no shared memory for the command stream: nothing can be replayed");
	return false;
}

/* False: the channel is broken, or nobody records. */
static bool lock_channel(void)
{
	struct core *core = agent_start(&ts_process_tracer);
	struct agent_signals saved;

	if (!core || channel_is_broken(&core->channel) || !channel_has_recorder(core))
		return false;
	if (AGENT_UNLIKELY(is_inside(&core->channel))) {
		interrupt(&core->channel);
		return false;
	}
	if (!lock(&core->channel, false, &saved))
		return false;
	if (channel_is_broken(&core->channel) || !attach(core)) {
		unlock(&core->channel);
		agent_restore_signals(&saved);
		return false;
	}
	core->channel.signals = saved;
	return true;
}

bool ts_replay_lock(void)
{
	return ts_replay_settings()->mode != TS_REPLAY_OFF && lock_channel();
}

struct core *channel_core(void)
{
	struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);

	return core && holder_of(&core->channel) && core->channel.writer.ring &&
			       !channel_is_broken(&core->channel)
		       ? core
		       : NULL;
}

static void break_off_interrupted(struct core *core);

void ts_replay_unlock(void)
{
	struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);
	struct agent_signals saved;

	if (!core || !is_inside(&core->channel) || is_brief(&core->channel))
		return;
	saved = core->channel.signals;
	unlock(&core->channel);
	agent_restore_signals(&saved);
	break_off_interrupted(core);
}

bool ts_replay_is_broken(void)
{
	const struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);

	return core && channel_is_broken(&core->channel);
}

/* ---- records ---- */

struct text {
	const char *bytes;
	uint32_t length;
	uint32_t words; /* with its length */
};

static struct text measure(const char *string, size_t most)
{
	struct text text = { string ? string : "", 0, 1 };

	text.length = (uint32_t)strnlen(text.bytes, most);
	text.words = ts_live_string_words(text.length);
	return text;
}

/* Omits details that do not fit: truncated JSON is invalid. */
static struct text measure_details(const char *details)
{
	struct text text = measure(details, TS_LIVE_DETAILS_BYTES + 1);

	return text.length <= TS_LIVE_DETAILS_BYTES
		       ? text
		       : measure("{\"unreplayable\":\"its details are too long to record\"}",
				 TS_LIVE_DETAILS_BYTES);
}

static uint64_t *put_text(uint64_t *to, const struct text *text)
{
	return ts_live_string_pack(to, text->bytes, text->length);
}

uint64_t *channel_begin(const struct writer *writer, unsigned int kind, uint64_t words)
{
	uint64_t *to = (uint64_t *)(void *)writer->at;

	*to++ = ts_live_head(words, kind, 0, 0);
	*to++ = ts_counter_read(writer->clock);
	return to;
}

static void put_command(struct writer *writer, const struct ts_replay_command *command,
			uint64_t sequence, uint32_t serial, const struct text *details)
{
	uint64_t words = 2u + COMMAND_WORDS + details->words;
	uint64_t *to = channel_begin(writer, TS_LIVE_COMMAND, words);

	*(struct ts_live_command *)(void *)to = (struct ts_live_command){
		.sequence = sequence,
		.kind = command->kind,
		.queue = command->queue,
		.object = command->object,
		.offset = command->offset,
		.other = command->other,
		.other_offset = command->other_offset,
		.bytes = command->bytes,
		.blob = command->blob,
		.correlation = command->correlation,
		.serial = serial,
	};
	put_text(to + COMMAND_WORDS, details);
	ring_advance(writer, words * 8);
}

/* ---- the last record ---- */

/* {"window": N, "failed": "why"}; characters that JSON must escape become a single quote. */
static void describe_failure(const struct channel *channel, const char *why, char *buffer,
			     size_t bytes)
{
	char safe[WHY_BYTES];
	size_t length = 0;

	for (; why && *why && length < sizeof(safe) - 1; why++) {
		bool is_plain = *why >= 0x20 && *why < 0x7f && *why != '"' && *why != '\\';

		safe[length++] = is_plain ? *why : '\'';
	}
	safe[length] = 0;
	snprintf(buffer, bytes, "{\"window\":%llu,\"failed\":\"%s\"}",
		 (unsigned long long)(channel->in_window ? channel->window : channel->window + 1),
		 safe);
}

/* Ends the window; the caller has ensured that there is space. */
static void close_failed(struct core *core, const char *why)
{
	struct channel *channel = &core->channel;
	struct ts_replay_command command = { .kind = TS_COMMAND_CLOSE,
					     .offset = TS_UNKNOWN,
					     .other_offset = TS_UNKNOWN,
					     .bytes = TS_UNKNOWN };
	char buffer[WHY_BYTES + 64];
	struct text details;

	describe_failure(channel, why, buffer, sizeof(buffer));
	details = measure(buffer, sizeof(buffer));
	put_command(&channel->writer, &command, channel->sequence, agent_serial(core), &details);
	channel->window += !channel->in_window;
	channel->in_window = false;
}

/* Permanent. */
static void break_off(struct core *core, const char *why)
{
	struct writer *writer = &core->channel.writer;
	uint64_t needed;

	/* Without commands no window can fail. */
	if (ts_replay_settings()->mode != TS_REPLAY_OFF &&
	    ring_extend(writer, ring_oldest(writer)->position, CHANNEL_RESERVE_BYTES / 2, &needed))
		close_failed(core, why);
	__atomic_store_n(&core->channel.broken, 1, __ATOMIC_RELEASE);
}

static void end_interrupted(struct core *core, const char *why)
{
	struct agent_signals saved;

	is_interrupted = false;
	if (!lock(&core->channel, true, &saved))
		return;
	if (core->channel.is_interrupted && core->channel.writer.ring)
		break_off(core, why);
	core->channel.is_interrupted = false;
	unlock(&core->channel);
	agent_restore_signals(&saved);
}

/* After a record, without the lock. */
static void break_off_interrupted(struct core *core)
{
	if (AGENT_UNLIKELY(is_interrupted))
		end_interrupted(core, "a signal handler used the device while its thread recorded "
				      "a command");
}

/* ---- space ---- */

bool channel_reserve(struct core *core, const struct channel_room *room, uint64_t bytes)
{
	const char *why = room->has_space(core, bytes) ? NULL : channel_wait(core, room, bytes);

	if (why)
		break_off(core, why);
	return !why;
}

/* Up to where there was space when it was last checked, which does not cross the ring's end. */
static bool channel_has_room(const struct channel *channel, uint64_t bytes)
{
	return channel->writer.ring->head + bytes + CHANNEL_RESERVE_BYTES <= channel->room_until;
}

struct writer *channel_enter(struct core *core, uint64_t words)
{
	struct channel *channel = &core->channel;
	struct writer *writer = &channel->writer;
	uint64_t needed;

	if (AGENT_LIKELY(channel_has_room(channel, words * 8)))
		return writer;
	if (!channel_reserve(core, &channel_ring, words * 8))
		return NULL;
	/* Cannot fail: there is more space than this. */
	if (!ring_extend(writer, ring_oldest(writer)->position, words * 8, &needed))
		return NULL;
	channel->room_until = writer->ring->head + (uint64_t)(writer->until - writer->at);
	return writer;
}

/* The recorder polls, but rarely: wake it before the ring is full, so that nobody waits. */
void channel_leave(struct core *core)
{
	struct channel *channel = &core->channel;
	uint64_t head = channel->writer.ring->head, size = channel->writer.mask + 1, half;

	if (AGENT_LIKELY(head < channel->nudge_at))
		return;
	half = ring_oldest(&channel->writer)->position + size / 2;
	if (head < half) {
		channel->nudge_at = half;
		return;
	}
	channel->nudge_at = head + size / 4;
	channel_nudge(core);
}

/* ---- objects and commands ---- */

uint64_t ts_replay_new_object(void)
{
	return __atomic_add_fetch(&objects, 1, __ATOMIC_RELAXED);
}

void ts_replay_object(const struct ts_replay_object *object)
{
	struct core *core = channel_core();
	struct text name, details;
	struct writer *writer;
	uint64_t words, *to;

	if (!core || object->size < sizeof(*object))
		return;
	name = measure(object->name, TS_LIVE_STRING_BYTES);
	details = measure_details(object->details);
	words = 2u + OBJECT_WORDS + name.words + details.words;
	writer = channel_enter(core, words);
	if (!writer)
		return;
	to = channel_begin(writer, TS_LIVE_OBJECT, words);
	*(struct ts_live_object *)(void *)to = (struct ts_live_object){
		.number = object->number,
		.kind = object->kind,
		.parent = object->parent,
		.address = object->address,
		.bytes = object->bytes,
		.blob = object->blob,
	};
	to = put_text(to + OBJECT_WORDS, &name);
	put_text(to, &details);
	ring_advance(writer, words * 8);
	channel_leave(core);
}

void ts_replay_gone(uint64_t number)
{
	struct core *core = channel_core();
	uint64_t words = 2u + TS_LIVE_WORDS(struct ts_live_gone);
	struct writer *writer = core ? channel_enter(core, words) : NULL;
	uint64_t *to;

	if (!writer)
		return;
	to = channel_begin(writer, TS_LIVE_GONE, words);
	*(struct ts_live_gone *)(void *)to = (struct ts_live_gone){ number };
	ring_advance(writer, words * 8);
	channel_leave(core);
}

/* The window number of an OPEN. */
static uint64_t window_of(const char *details, uint64_t otherwise)
{
	static const char key[] = "\"window\":";
	const char *at = details ? strstr(details, key) : NULL;
	uint64_t number = at ? strtoull(at + sizeof(key) - 1, NULL, 10) : 0;

	return number ? number : otherwise;
}

/* A check or a close gets the sequence number of its command. */
static uint64_t sequence_of(struct channel *channel, const struct ts_replay_command *command)
{
	if (command->kind != TS_COMMAND_CHECK && command->kind != TS_COMMAND_CLOSE)
		return ++channel->sequence;
	return command->sequence ? command->sequence : channel->sequence;
}

uint64_t ts_replay_command(const struct ts_replay_command *command)
{
	struct core *core = channel_core();
	struct channel *channel;
	struct writer *writer;
	struct text details;
	uint64_t sequence;

	if (!core || command->size < sizeof(*command))
		return 0;
	channel = &core->channel;
	details = measure_details(command->details);
	writer = channel_enter(core, 2u + COMMAND_WORDS + details.words);
	if (!writer)
		return 0;
	if (command->kind == TS_COMMAND_OPEN)
		channel->window = window_of(command->details, channel->window + 1);
	if (command->kind == TS_COMMAND_OPEN || command->kind == TS_COMMAND_CLOSE)
		channel->in_window = command->kind == TS_COMMAND_OPEN;
	sequence = sequence_of(channel, command);
	put_command(writer, command, sequence, agent_serial(core), &details);
	channel_leave(core);
	return sequence;
}

void ts_replay_fail(const char *why)
{
	struct core *core = channel_core();

	if (core && channel_enter(core, CHANNEL_RESERVE_BYTES / 2 / 8))
		close_failed(core, why);
}

/* ---- without system calls ---- */

/* What nothing has to wait for, and no system call is needed for. Lock held. */
static bool is_at_hand(struct core *core, uint64_t bytes)
{
	return core->channel.writer.ring && !channel_is_broken(&core->channel) &&
	       agent_has_serial(core) &&
	       (channel_has_room(&core->channel, bytes) || channel_ring.has_space(core, bytes));
}

struct core *channel_lock_briefly(uint64_t bytes)
{
	struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);

	if (!core || bytes > CHANNEL_BRIEF_BYTES || channel_is_broken(&core->channel) ||
	    !channel_has_recorder(core) || !try_lock(&core->channel, self()))
		return NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* Each of its records may meet the ring's end. */
	if (AGENT_LIKELY(is_at_hand(core, 2 * bytes)))
		return core;
	channel_unlock_briefly(core);
	return NULL;
}

/* Where the next record goes: its memory is not in this core's caches yet. */
static void prefetch_next(const struct writer *writer)
{
	for (unsigned int i = 0; i < NEXT_LINES; i++)
		__builtin_prefetch(writer->at + i * 64u, 1);
}

void channel_unlock_briefly(struct core *core)
{
	prefetch_next(&core->channel.writer);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	unlock(&core->channel);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	break_off_interrupted(core);
}

/* ---- fork inside of a short record ---- */

static __thread struct {
	const struct core *core; /* NULL: not inside of one */
	struct ts_live_ring *ring;
	char *bytes;
	uint64_t mask;
	uint32_t clock;
} kept __attribute__((tls_model("initial-exec")));

void channel_keep(void)
{
	const struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);

	kept.core = core && is_brief(&core->channel) ? core : NULL;
	if (!kept.core)
		return;
	kept.ring = core->channel.writer.ring;
	kept.bytes = core->channel.writer.bytes;
	kept.mask = core->channel.writer.mask;
	kept.clock = core->channel.writer.clock;
}

/* The same addresses, since the processor may have them in its registers. */
void channel_bury(struct core *core)
{
	struct writer *writer = &core->channel.writer;

	if (core != kept.core || !kept.ring || !agent_unshare(kept.bytes, kept.mask + 1))
		return;
	writer->ring = kept.ring;
	writer->bytes = writer->at = kept.bytes;
	writer->until = kept.bytes + kept.mask + 1;
	writer->mask = kept.mask;
	writer->clock = kept.clock;
	core->channel.lock = self();
}

void channel_abandon(void)
{
	struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);

	if (!core || !is_inside(&core->channel))
		return;
	interrupt(&core->channel);
	unlock(&core->channel);
	end_interrupted(core, "a thread ended in a signal handler while it recorded a command");
}

/* ---- code, without commands ---- */

bool ts_accelerator_module(const char *name, const void *image, uint64_t bytes)
{
	struct ts_replay_object object = { .size = sizeof(object),
					   .kind = TS_OBJECT_MODULE,
					   .bytes = (int64_t)bytes,
					   .name = name };

	if (!bytes || !lock_channel())
		return false;
	object.number = ts_replay_new_object();
	object.blob = ts_replay_blob(image, bytes);
	if (object.blob)
		ts_replay_object(&object);
	ts_replay_unlock();
	return object.blob && !ts_replay_is_broken();
}
