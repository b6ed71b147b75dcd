/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of the command stream: copies them, part by part, to the spool, or to the ring if they
 * are small or there is no spool. Memory of the program may be gone when it is to be copied.
 */
#include <tracesmith/replay.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/replay_channel.h"
#include "agent/replay_spool.h"
#include "agent/replay_wait.h"
#include "agent/ring_write.h"
#include "base/local/foreign_memory.h"
#include "base/local/hash.h"
#include "live/local/live_spool.h"

#define BLOB_WORDS TS_LIVE_WORDS(struct ts_live_blob)
#define SPOOLED_WORDS TS_LIVE_WORDS(struct ts_live_spooled)

/* Smaller blobs pass through the ring. */
#define SPOOLED_LEAST (32u << 10)
/* Less is copied without asking first whether it can be read. */
#define ASK_BYTES 256u
/* The smallest that there is. */
#define PAGE UINT64_C(4096)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* ---- memory of the program ---- */

/*
 * Asks the kernel, which is much faster than to let it copy. False also on an old one, and for
 * memory of a device.
 */
static bool is_readable(const char *from, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = (uintptr_t)from & (page - 1);

	return !madvise((void *)(from - before), before + bytes, MADV_POPULATE_READ);
}

/* A program that handles the fault may make its memory readable, and expects to be asked. */
static bool handles_faults(void)
{
	struct sigaction action;

	return !sigaction(SIGSEGV, NULL, &action) &&
	       ((action.sa_flags & SA_SIGINFO) ||
		(action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN));
}

/* Copies what can be read, by the kernel. */
static uint64_t copy_readable(char *to, const char *from, uint64_t bytes)
{
	uint64_t unread = 0;

	for (;;) {
		uint64_t done = ts_foreign_read(to, from, bytes), page;

		to += done;
		from += done;
		bytes -= done;
		if (!bytes)
			return unread;
		page = PAGE - ((uintptr_t)from & (PAGE - 1));
		page = page < bytes ? page : bytes;
		memset(to, 0, page);
		unread += page;
		to += page;
		from += page;
		bytes -= page;
	}
}

/* Copies memory of the program. Returns the bytes that could not be read; they become zeros. */
static uint64_t copy_program(const struct channel *channel, void *to, const void *from,
			     uint64_t bytes)
{
	if (bytes >= ASK_BYTES && !channel->is_own && !is_readable(from, bytes) &&
	    !handles_faults())
		return copy_readable(to, from, bytes);
	memcpy(to, from, bytes);
	return 0;
}

/* ---- parts ---- */

/* Memory in the spool for at most *bytes of the blob; NULL: the ring must do, or it is broken. */
static char *spool_space(struct core *core, uint64_t *bytes)
{
	struct channel *channel = &core->channel;
	uint64_t most;

	if (channel->blob_bytes < SPOOLED_LEAST ||
	    __atomic_load_n(&channel->is_bulk, __ATOMIC_ACQUIRE) || !spool_open(core))
		return NULL;
	most = ts_spool_part_bytes(channel->spool.bytes);
	*bytes = *bytes < most ? *bytes : most;
	return channel_reserve(core, &channel_spool, *bytes)
		       ? spool_place(core, *bytes, &channel->space_at)
		       : NULL;
}

/* The recorder takes its time with bulk data: let it begin early. */
static void leave_spool(struct core *core)
{
	struct spool *spool = &core->channel.spool;

	if (spool->head - spool->nudged_at < spool->bytes / 16)
		return;
	spool->nudged_at = spool->head;
	channel_nudge(core);
}

/* Refers to a part of the newest blob, in the spool or one of its lanes. */
static bool refer(struct core *core, uint64_t word, uint64_t bytes)
{
	struct channel *channel = &core->channel;
	uint64_t words = 2u + SPOOLED_WORDS, *to;
	struct writer *writer = channel_enter(core, words);

	if (!writer)
		return false;
	to = channel_begin(writer, TS_LIVE_SPOOLED, words);
	*(struct ts_live_spooled *)(void *)to = (struct ts_live_spooled){
		.part = { .number = channel->blob,
			  .bytes = channel->blob_bytes,
			  .offset = channel->blob_at,
			  .count = bytes },
		.position = word,
	};
	ring_advance(writer, words * 8);
	spool_referred_to(&channel->spool, ts_spool_position(word) + bytes);
	channel->blob_at += bytes;
	leave_spool(core);
	channel_leave(core);
	return true;
}

/* Refers to a part that is complete in the spool. */
static bool put_spooled(struct core *core, uint64_t bytes)
{
	struct channel *channel = &core->channel;

	spool_advance(&channel->spool, channel->space_at, bytes);
	return refer(core, channel->space_at, bytes);
}

/* Stores one record's part of a blob. */
static bool put_part(struct core *core, const void *data, uint64_t bytes)
{
	struct channel *channel = &core->channel;
	uint64_t words = 2u + BLOB_WORDS + (bytes + 7) / 8;
	struct writer *writer = channel_enter(core, words);
	uint64_t *to;

	if (!writer)
		return false;
	to = channel_begin(writer, TS_LIVE_BLOB, words);
	*(struct ts_live_blob *)(void *)to = (struct ts_live_blob){
		.number = channel->blob,
		.bytes = channel->blob_bytes,
		.offset = channel->blob_at,
		.count = bytes,
	};
	to += BLOB_WORDS;
	to[(bytes + 7) / 8 - 1] = 0; /* the padding */
	channel->blob_unread += copy_program(channel, to, data, bytes);
	ring_advance(writer, words * 8);
	channel->blob_at += bytes;
	channel_leave(core);
	return true;
}

/* ---- bulk ---- */

void ts_replay_bulk_expect(void)
{
	agent_spool_bytes = TS_SPOOL_GREATEST;
}

uint32_t ts_replay_bulk_begin(uint32_t count, const uint64_t *bytes)
{
	struct core *core = channel_core();
	struct channel *channel;
	uint64_t most = 0;

	if (!core || __atomic_load_n(&core->channel.is_bulk, __ATOMIC_ACQUIRE) || !count)
		return 0;
	channel = &core->channel;
	if (spool_open(core) && spool_has_lanes(core))
		most = ts_spool_part_bytes(channel->spool.bytes);
	if (bytes[0] > most)
		return TS_REPLAY_BULK_NEVER;
	channel->bulk_count = 0;
	channel->bulk_from = channel->spool.head;
	if (count > TS_REPLAY_BULK_AT_MOST)
		count = TS_REPLAY_BULK_AT_MOST;
	for (uint32_t i = 0; i < count; i++) {
		if (bytes[i] > most || !spool_reserve(core, bytes[i], &channel->bulk[i].word))
			break;
		channel->bulk[i].bytes = bytes[i];
		channel->bulk[i].is_referred = false;
		channel->bulk_count++;
	}
	channel->is_bulk = channel->bulk_count;
	return channel->bulk_count;
}

bool ts_replay_bulk_write(uint32_t index, uint64_t offset, const void *data, uint64_t bytes)
{
	const struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);

	if (!core || index >= core->channel.bulk_count ||
	    offset + bytes > core->channel.bulk[index].bytes)
		return false;
	return spool_write(core, core->channel.bulk[index].word, offset, data, bytes);
}

uint64_t ts_replay_bulk_blob(uint32_t index)
{
	struct core *core = channel_core();
	struct channel *channel;

	if (!core || index >= core->channel.bulk_count)
		return 0;
	channel = &core->channel;
	if (!ts_replay_blob_begin(channel->bulk[index].bytes) ||
	    !refer(core, channel->bulk[index].word, channel->bulk[index].bytes))
		return 0;
	channel->bulk[index].is_referred = true;
	return channel->blob;
}

/* Nobody else uses the spool meanwhile, whoever has the lock. */
void ts_replay_bulk_end(void)
{
	struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);
	struct channel *channel;
	uint64_t end;

	if (!core || !core->channel.is_bulk)
		return;
	channel = &core->channel;
	end = channel->bulk_from;
	for (uint32_t i = 0; i < channel->bulk_count; i++) {
		uint64_t word = channel->bulk[i].word, bytes = channel->bulk[i].bytes;

		if (channel->bulk[i].is_referred)
			end = ts_spool_position(word) + bytes;
		else
			spool_discard(core, word, bytes);
	}
	spool_retreat(&channel->spool, end);
	channel->bulk_count = 0;
	__atomic_store_n(&channel->is_bulk, false, __ATOMIC_RELEASE);
}

/* ---- for backends ---- */

bool ts_replay_has_space(uint64_t bytes, char *why, size_t why_bytes)
{
	const struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);
	uint64_t space = core ? __atomic_load_n(&core->control->output_space, __ATOMIC_RELAXED) : 0;

	if (!space || bytes <= space)
		return true;
	snprintf(why, why_bytes,
		 "its snapshot needs %" PRIu64 " bytes, and the trace has space for %" PRIu64
		 ": free space on its disk, raise its size limit, or write it elsewhere (-o)",
		 bytes, space);
	return false;
}

uint64_t ts_replay_blob_begin(uint64_t bytes)
{
	struct core *core = channel_core();
	struct channel *channel;

	if (!core || !bytes)
		return 0;
	channel = &core->channel;
	channel->blob = ++channel->blobs;
	channel->blob_bytes = bytes;
	channel->blob_at = channel->blob_unread = channel->space_bytes = 0;
	return channel->blob;
}

uint64_t ts_replay_blob_unread(void)
{
	const struct core *core = channel_core();

	return core ? core->channel.blob_unread : 0;
}

void ts_replay_blob_part(const void *data, uint64_t bytes)
{
	struct core *core = channel_core();
	struct channel *channel;
	const char *from = data;

	if (!core)
		return;
	channel = &core->channel;
	if (bytes > channel->blob_bytes - channel->blob_at)
		bytes = channel->blob_bytes - channel->blob_at;
	while (bytes) {
		uint64_t part = bytes;
		char *to = spool_space(core, &part);

		if (to) {
			channel->blob_unread += copy_program(channel, to, from, part);
		} else {
			part = bytes < TS_LIVE_BLOB_PART ? bytes : TS_LIVE_BLOB_PART;
		}
		if (channel_is_broken(channel) ||
		    !(to ? put_spooled(core, part) : put_part(core, from, part)))
			return;
		from += part;
		bytes -= part;
	}
}

void *ts_replay_blob_space(uint64_t *bytes)
{
	struct core *core = channel_core();
	struct channel *channel;
	char *space;

	if (!core)
		return NULL;
	channel = &core->channel;
	if (*bytes > channel->blob_bytes - channel->blob_at)
		*bytes = channel->blob_bytes - channel->blob_at;
	space = *bytes ? spool_space(core, bytes) : NULL;
	channel->space_bytes = space ? *bytes : 0;
	return space;
}

void ts_replay_blob_filled(uint64_t bytes)
{
	struct core *core = channel_core();

	if (!core || !bytes || bytes > core->channel.space_bytes)
		return;
	core->channel.space_bytes = 0;
	put_spooled(core, bytes);
}

uint64_t ts_replay_blob(const void *data, uint64_t bytes)
{
	uint64_t number = ts_replay_blob_begin(bytes);

	if (number)
		ts_replay_blob_part(data, bytes);
	return ts_replay_is_broken() ? 0 : number;
}

uint64_t ts_replay_blob_own(const void *data, uint64_t bytes)
{
	struct core *core = channel_core();
	uint64_t number;

	if (!core)
		return 0;
	core->channel.is_own = true;
	number = ts_replay_blob(data, bytes);
	core->channel.is_own = false;
	return number;
}

uint64_t ts_replay_hash(const void *data, size_t bytes)
{
	return ts_hash64(data, bytes);
}
