/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracers: when they start, when they are off, and what becomes of them at fork, exit and thread exit.
 * Must not know how areas or rings are laid out.
 */
#include "agent/tracer.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/emit.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* Before anything is known, events are let through to the slow path, which finds out. */
static const uint32_t switch_unknown = 1;
static const uint32_t switch_off;
const uint32_t *ts_emit_switch = &switch_unknown;

struct ts_tracer ts_process_tracer;
static struct ts_tracer disabled_tracer = { .is_off = 1, .by_hand = 1 };
static struct ts_tracer *tracers_by_hand; /* atomic; never shrinks */

static pthread_key_t thread_key;
static uint32_t thread_key_state; /* 0 none, 1 being made, 2 there */

/* A tracer is being started by this thread: what the C library does meanwhile must not emit. */
static __thread bool is_starting __attribute__((tls_model("initial-exec")));

void agent_lock(struct core *core)
{
	for (unsigned int spins = 0; __atomic_exchange_n(&core->lock, 1, __ATOMIC_ACQUIRE); spins++)
		if (spins > 100)
			sched_yield();
}

void agent_unlock(struct core *core)
{
	__atomic_store_n(&core->lock, 0, __ATOMIC_RELEASE);
}

void agent_block_signals(struct agent_signals *saved)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &saved->mask);
}

void agent_restore_signals(const struct agent_signals *saved)
{
	pthread_sigmask(SIG_SETMASK, &saved->mask, NULL);
}

void agent_set_switch(struct core *core)
{
	__atomic_store_n(&ts_emit_switch, core ? &core->control->enabled : &switch_off,
			 __ATOMIC_RELEASE);
}

void agent_disable(struct ts_tracer *tracer, const char *why, int error)
{
	struct core *core = tracer->core;

	if (core->control) {
		char *message = core->control->message;
		const char *cause = error ? strerrordesc_np(error) : NULL;
		size_t room = sizeof(core->control->message) - 1;

		strncpy(message, why, room);
		if (cause) {
			strncat(message, ": ", room - strlen(message));
			strncat(message, cause, room - strlen(message));
		}
		__atomic_store_n(&core->control->target_state, TS_LIVE_DISABLED, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&core->state, CORE_OFF, __ATOMIC_RELEASE);
	if (tracer == &ts_process_tracer)
		agent_set_switch(NULL);
}

/* ---- starting ---- */

/* Memory that a forked child finds zeroed. Where the kernel cannot, fork_in_child() does it. */
void *agent_wiped_memory(size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, bytes, MADV_WIPEONFORK);
	return memory;
}

static struct core *get_core(struct ts_tracer *tracer)
{
	struct core *core = __atomic_load_n(&tracer->core, __ATOMIC_ACQUIRE), *none = NULL;

	if (core)
		return core;
	core = agent_wiped_memory(sizeof(*core));
	if (!core)
		return NULL;
	if (__atomic_compare_exchange_n(&tracer->core, &none, core, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return core;
	munmap(core, sizeof(*core));
	return none;
}

/* No recorder: the newest events stay in memory, and the user is told once how to get them. */
static void go_without_recorder(struct core *core, const char *output)
{
	char hint[512];
	int bytes = snprintf(
		hint, sizeof(hint),
		"tracesmith: no recorder found for '%.128s'; the newest events stay in memory: "
		"tracesmith recover %u -o FILE (set TRACESMITH_RECORDER to the tool's path)\n",
		output, core->control->pid);

	__atomic_store_n(&core->control->mode, TS_LIVE_FLIGHT, __ATOMIC_RELAXED);
	if (bytes > 0 && write(STDERR_FILENO, hint, (size_t)bytes) < 0)
		return;
}

/* Called by the one thread that found it new, with signals blocked. */
static void start(struct ts_tracer *tracer, struct core *core)
{
	struct agent_settings settings;
	int error;

	agent_settings_read(&settings, tracer);
	if (!settings.wanted) {
		agent_disable(tracer, "not asked for", 0);
		return;
	}
	error = agent_make_area(core, &settings);
	if (error) {
		agent_disable(tracer, "cannot make a live area", error);
		return;
	}
	agent_copy_dictionary(tracer, core);
	if (settings.start_recorder && agent_start_recorder(core, settings.output))
		go_without_recorder(core, settings.output);
	__atomic_store_n(&core->state, CORE_READY, __ATOMIC_RELEASE);
	if (tracer == &ts_process_tracer) {
		agent_set_switch(core);
		agent_start_backends(settings.backends);
	}
}

static void make_thread_key(void);

/* True if this call started it, or somebody else has meanwhile. */
static void start_or_wait(struct ts_tracer *tracer, struct core *core)
{
	uint32_t found = CORE_NEW;

	if (__atomic_compare_exchange_n(&core->state, &found, CORE_BUSY, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		struct agent_signals saved;

		is_starting = true;
		agent_block_signals(&saved);
		make_thread_key();
		start(tracer, core);
		agent_restore_signals(&saved);
		is_starting = false;
		return;
	}
	/* Set-up takes a few hundred microseconds, and its thread cannot be interrupted. */
	while (__atomic_load_n(&core->state, __ATOMIC_ACQUIRE) == CORE_BUSY)
		sched_yield();
}

struct core *agent_start(struct ts_tracer *tracer)
{
	struct core *core = get_core(tracer);
	uint32_t state;

	if (!core || is_starting)
		return NULL;
	state = __atomic_load_n(&core->state, __ATOMIC_ACQUIRE);
	if (AGENT_UNLIKELY(state == CORE_NEW || state == CORE_BUSY)) {
		start_or_wait(tracer, core);
		state = __atomic_load_n(&core->state, __ATOMIC_ACQUIRE);
	}
	return state == CORE_READY ? core : NULL;
}

/* ---- threads ---- */

static void make_thread_key(void)
{
	uint32_t none = 0;

	if (__atomic_compare_exchange_n(&thread_key_state, &none, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		__atomic_store_n(&thread_key_state,
				 pthread_key_create(&thread_key, agent_thread_exit) ? 3 : 2,
				 __ATOMIC_RELEASE);
}

void agent_watch_thread(struct writer *writer)
{
	if (__atomic_load_n(&thread_key_state, __ATOMIC_ACQUIRE) == 2)
		pthread_setspecific(thread_key, writer);
}

/* ---- fork ---- */

/*
 * A handler that interrupted an emit forks, and the child returns into that emit. What it still writes must
 * not reach the parent's ring, nor find the wiped writer.
 */
static struct {
	struct writer *writer; /* NULL: not inside an emit */
	struct writer copy;
	struct ts_live_ring scratch;
} interrupted;

static void fork_prepare(void)
{
	struct writer *writer = agent_writer;

	interrupted.writer = NULL;
	if (writer->ring && !__atomic_load_n(&writer->open, __ATOMIC_RELAXED)) {
		interrupted.writer = writer;
		interrupted.copy = *writer;
	}
}

static void replace_memory(void *address, size_t bytes)
{
	mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	     0);
}

/* Private memory in place of the ring and of the directory; and the writer as it was, but for its ring. */
static void redirect_interrupted(void)
{
	const struct ts_live_control *control = ts_process_tracer.inherited;

	replace_memory(interrupted.copy.bytes, interrupted.copy.mask + 1);
	if (control)
		replace_memory((char *)control + TS_LIVE_DIRECTORY,
			       TS_LIVE_DICTIONARY - TS_LIVE_DIRECTORY);
	*interrupted.writer = interrupted.copy;
	interrupted.writer->ring = &interrupted.scratch;
}

static void wipe(struct ts_tracer *tracer)
{
	/* Already zero where the kernel wipes; this is for those that do not. */
	if (tracer->core && tracer->core->state != CORE_NEW)
		memset(tracer->core, 0, sizeof(*tracer->core));
}

static void fork_in_child(void)
{
	if (interrupted.writer)
		redirect_interrupted();
	wipe(&ts_process_tracer);
	for (struct ts_tracer *tracer = tracers_by_hand; tracer; tracer = tracer->next)
		wipe(tracer);
	agent_forget_writers();
	if (__atomic_load_n(&ts_emit_switch, __ATOMIC_RELAXED) != &switch_off)
		__atomic_store_n(&ts_emit_switch, &switch_unknown, __ATOMIC_RELEASE);
}

/* ---- load and exit ---- */

__attribute__((constructor)) static void load(void)
{
	struct agent_settings settings;

	make_thread_key();
	pthread_atfork(fork_prepare, NULL, fork_in_child);
	agent_settings_read(&settings, &ts_process_tracer);
	if (!settings.wanted)
		agent_set_switch(NULL);
	else if (settings.session && !settings.start_recorder)
		agent_start(&ts_process_tracer);
}

__attribute__((destructor)) static void unload(void)
{
	agent_stop_backends();
	agent_exiting(&ts_process_tracer);
	for (struct ts_tracer *tracer = __atomic_load_n(&tracers_by_hand, __ATOMIC_ACQUIRE); tracer;
	     tracer = tracer->next)
		agent_exiting(tracer);
}

/* ---- tracers made by hand ---- */

struct ts_tracer *ts_tracer_process(void)
{
	return &ts_process_tracer;
}

struct ts_tracer *ts_tracer_disabled(void)
{
	return &disabled_tracer;
}

struct ts_tracer *ts_tracer_enabled(const char *path)
{
	struct ts_tracer *tracer;

	if (!path || !path[0] || getauxval(AT_SECURE))
		return &disabled_tracer;
	tracer = calloc(1, sizeof(*tracer));
	if (!tracer)
		return &disabled_tracer;
	tracer->by_hand = 1;
	if (agent_absolute_path(path, tracer->output, sizeof(tracer->output))) {
		free(tracer);
		return &disabled_tracer;
	}
	tracer->next = __atomic_load_n(&tracers_by_hand, __ATOMIC_ACQUIRE);
	while (!__atomic_compare_exchange_n(&tracers_by_hand, &tracer->next, tracer, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	return tracer;
}

bool ts_tracer_is_enabled(struct ts_tracer *tracer)
{
	struct core *core;

	if (!tracer || tracer->is_off)
		return false;
	core = agent_start(tracer);
	return core &&
	       (__atomic_load_n(&core->control->enabled, __ATOMIC_RELAXED) & TS_LIVE_ENABLED);
}

/* The struct itself stays in the list: a few hundred bytes, so that no thread can hold a dead one. */
void ts_tracer_close(struct ts_tracer *tracer)
{
	if (!tracer || !tracer->by_hand ||
	    __atomic_exchange_n(&tracer->is_off, 1, __ATOMIC_ACQ_REL))
		return;
	agent_exiting(tracer);
}
