/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer that finds the ring or the spool full waits for the recorder, in short sleeps, as long
 * as that gets on, and some seconds longer. With flush.c the only code of the agent that waits.
 */
#include "agent/replay_wait.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/replay_spool.h"
#include "agent/ring_write.h"

#define PAUSE_LEAST_NS 50000
#define PAUSE_MOST_NS 1000000
/* Interval of wake-ups of the recorder; a longer gap in our own run time counts as this. */
#define CALL_NS 100000000
/* A recorder that is alive but blocked, by its disk for example, gets this many times as long. */
#define BLOCKED_FACTOR 12

int64_t agent_channel_patience_ns = INT64_C(5000000000);

static uint32_t exiting;

void agent_channel_exiting(void)
{
	__atomic_store_n(&exiting, 1, __ATOMIC_RELEASE);
}

bool channel_has_recorder(const struct core *core)
{
	const struct ts_live_control *control = core->control;

	return __atomic_load_n(&control->mode, __ATOMIC_RELAXED) == TS_LIVE_STREAM &&
	       (__atomic_load_n(&control->recorder_pid, __ATOMIC_RELAXED) ||
		!__atomic_load_n(&control->heartbeat, __ATOMIC_RELAXED));
}

/* Threads that create rings use the area's descriptor, too. */
void channel_nudge(struct core *core)
{
	struct agent_signals saved;

	agent_block_signals_but_faults(&saved);
	agent_lock(core);
	agent_nudge_recorder(core);
	agent_unlock(core);
	agent_restore_signals(&saved);
}

/* Includes the space for the last record. */
static bool has_ring_space(struct core *core, uint64_t bytes)
{
	struct writer *writer = &core->channel.writer;
	uint64_t head = writer->ring->head, size = writer->mask + 1;
	uint64_t end = (head | writer->mask) + 1, start = head + bytes > end ? end : head;

	return start + bytes + CHANNEL_RESERVE_BYTES <= ring_oldest(writer)->position + size;
}

static uint64_t ring_progress(struct core *core)
{
	return ring_oldest(&core->channel.writer)->position;
}

static bool has_spool_space(struct core *core, uint64_t bytes)
{
	return spool_has_space(&core->channel.spool, bytes);
}

static uint64_t progress_of_spool(struct core *core)
{
	return spool_progress(&core->channel.spool);
}

const struct channel_room channel_ring = { has_ring_space, ring_progress };
const struct channel_room channel_spool = { has_spool_space, progress_of_spool };

/* A writer that waits for the recorder. */
struct patience {
	uint64_t progress;
	int64_t heartbeat;
	int64_t now_ns, idle_ns, called_ns;
};

/* Not nanosleep(), which is a cancellation point and which programs may interpose. */
static void nap(int64_t ns)
{
	struct timespec time = { 0, ns };

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
}

/* Checks the recorder's progress. Returns why to stop waiting, or NULL. */
static const char *lose_patience(struct core *core, const struct channel_room *room,
				 struct patience *patience)
{
	const struct ts_live_control *control = core->control;
	uint64_t progress = room->progress(core);
	int64_t now = (int64_t)ts_counter_monotonic_ns(), passed = now - patience->now_ns;

	/* If the whole machine was stopped, the recorder could not run either. */
	passed = passed < CALL_NS ? passed : CALL_NS;
	patience->now_ns = now;
	patience->idle_ns = progress != patience->progress ? 0 : patience->idle_ns + passed;
	patience->progress = progress;
	if (__atomic_load_n(&exiting, __ATOMIC_ACQUIRE))
		core->channel.exit_wait_ns += passed;
	if (!channel_has_recorder(core))
		return "no recorder is attached any more";
	if (core->channel.exit_wait_ns > agent_channel_patience_ns)
		return "the process exited before the recorder stored it";
	if (patience->idle_ns <= agent_channel_patience_ns)
		return NULL;
	if (__atomic_load_n(&control->heartbeat, __ATOMIC_RELAXED) != patience->heartbeat)
		return "the recorder could not store it";
	return patience->idle_ns <= BLOCKED_FACTOR * agent_channel_patience_ns &&
			       agent_recorder_lives(core)
		       ? NULL
		       : "the recorder does not answer";
}

static void call_recorder(struct core *core, struct patience *patience)
{
	if (patience->called_ns && patience->now_ns - patience->called_ns < CALL_NS)
		return;
	patience->called_ns = patience->now_ns;
	channel_nudge(core);
}

const char *channel_wait(struct core *core, const struct channel_room *room, uint64_t bytes)
{
	struct patience patience = {
		.progress = room->progress(core),
		.heartbeat = __atomic_load_n(&core->control->heartbeat, __ATOMIC_RELAXED),
		.now_ns = (int64_t)ts_counter_monotonic_ns(),
	};
	int64_t pause = PAUSE_LEAST_NS;
	const char *why;

	while (!room->has_space(core, bytes)) {
		why = lose_patience(core, room, &patience);
		if (why)
			return why;
		call_recorder(core, &patience);
		nap(pause);
		pause = pause * 2 < PAUSE_MOST_NS ? pause * 2 : PAUSE_MOST_NS;
	}
	return NULL;
}
