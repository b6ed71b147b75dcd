/* SPDX-License-Identifier: Apache-2.0 */
/* Lifecycle of tracers: start, disabling, fork, exit and thread exit. */
#include "agent/tracer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_python.h"
#include "agent/emit.h"
#include "agent/launch_stack.h"
#include "agent/replay_channel.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#define MADV_KEEPONFORK 19
#endif

/* Initially events go to the slow path, which starts the tracer. */
static const uint32_t switch_unknown = 1;
static const uint32_t switch_off;
const uint32_t *ts_emit_switch = &switch_unknown;

struct ts_tracer ts_process_tracer;
static struct ts_tracer disabled_tracer = { .is_off = 1, .by_hand = 1 };
static struct ts_tracer *tracers_by_hand; /* atomic; never shrinks */

static pthread_key_t thread_key;
static uint32_t thread_key_state; /* 0 none, 1 being created, 2 valid */

/*
 * Not 0 while this thread starts a tracer: the C library must not emit meanwhile (for example
 * through an instrumented allocator). Incremented for each event lost by that.
 */
static __thread uint32_t starting __attribute__((tls_model("initial-exec")));

/*
 * Yields, then sleeps if that does not help, since the other thread may have a lower priority. Does
 * not use nanosleep(), which is a cancellation point.
 */
void agent_relax(unsigned int spins)
{
	struct timespec pause = { 0, 50000 };

	if (spins > 1000)
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
	else if (spins > 100)
		sched_yield();
}

void agent_lock(struct core *core)
{
	for (unsigned int spins = 0; __atomic_exchange_n(&core->lock, 1, __ATOMIC_ACQUIRE); spins++)
		agent_relax(spins);
}

void agent_unlock(struct core *core)
{
	__atomic_store_n(&core->lock, 0, __ATOMIC_RELEASE);
}

static void block(const sigset_t *mask, struct agent_signals *saved)
{
	saved->error = errno;
	pthread_sigmask(SIG_SETMASK, mask, &saved->mask);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved->cancel_state);
}

void agent_block_signals(struct agent_signals *saved)
{
	sigset_t mask;

	sigfillset(&mask);
	block(&mask, saved);
}

void agent_block_signals_but_faults(struct agent_signals *saved)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };
	sigset_t mask;

	sigfillset(&mask);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&mask, faults[i]);
	block(&mask, saved);
}

void agent_restore_signals(const struct agent_signals *saved)
{
	int unused;

	pthread_setcancelstate(saved->cancel_state, &unused);
	errno = saved->error;
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

	core->error = error;
	if (core->control) {
		char *message = core->control->message;
		const char *cause = error ? strerrordesc_np(error) : NULL;
		size_t space = sizeof(core->control->message) - 1;

		strncpy(message, why, space);
		if (cause) {
			strncat(message, ": ", space - strlen(message));
			strncat(message, cause, space - strlen(message));
		}
		__atomic_store_n(&core->control->target_state, TS_LIVE_DISABLED, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&core->state, CORE_OFF, __ATOMIC_RELEASE);
	if (tracer == &ts_process_tracer)
		agent_set_switch(NULL);
}

/* ---- starting ---- */

void *agent_memory(size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* If the kernel cannot wipe it, fork_in_child() does. */
void *agent_wiped_memory(size_t bytes)
{
	void *memory = agent_memory(bytes);

	if (memory)
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

/* Standard error at load: a daemon may have replaced it since. */
static struct stat standard_error;

/* Only if it is still the same file, would not block, and has a reader. */
static void write_to_stderr(const char *text, size_t bytes)
{
	struct pollfd ready = { STDERR_FILENO, POLLOUT, 0 };
	struct timespec at_once = { 0, 0 };
	sigset_t pending, broken_pipe;
	struct stat now;

	if (fstat(STDERR_FILENO, &now) || now.st_dev != standard_error.st_dev ||
	    now.st_ino != standard_error.st_ino || poll(&ready, 1, 0) != 1 ||
	    !(ready.revents & POLLOUT))
		return;
	sigpending(&pending);
	/* All signals are blocked; a pending SIGPIPE must not be delivered later. */
	if (write(STDERR_FILENO, text, bytes) < 0 && !sigismember(&pending, SIGPIPE)) {
		sigemptyset(&broken_pipe);
		sigaddset(&broken_pipe, SIGPIPE);
		sigtimedwait(&broken_pipe, NULL, &at_once);
	}
}

void agent_print(const char *format, ...)
{
	char line[768];
	va_list arguments;
	int bytes;

	va_start(arguments, format);
	bytes = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (bytes > 0 && (size_t)bytes < sizeof(line))
		write_to_stderr(line, (size_t)bytes);
}

/* No recorder: the newest events stay in memory; tells the user once how to save them. */
static void go_without_recorder(struct core *core)
{
	__atomic_store_n(&core->control->mode, TS_LIVE_FLIGHT, __ATOMIC_RELAXED);
	agent_print(
		"tracesmith: no recorder found for '%.256s'; keeping the newest events in memory: "
		"tracesmith recover %u -o FILE (set TRACESMITH_RECORDER to the tool's path)\n",
		core->settings.output, core->control->pid);
}

/* For users who asked for a file: a recorder reports other processes without an area. */
static void report_no_area(const struct core *core, int error)
{
	static uint32_t is_reported; /* by this process or one that it was forked from */

	if (core->settings.start_recorder &&
	    !__atomic_exchange_n(&is_reported, 1, __ATOMIC_RELAXED))
		agent_print("tracesmith: nothing is recorded for '%.256s': no shared memory in "
			    "'%.128s': %s\n",
			    core->settings.output,
			    core->settings.directory[0] ? core->settings.directory : "/dev/shm",
			    strerrordesc_np(error));
}

/* For users who asked for a file, such as one named after a rank that is not known. */
static void report_no_output(const struct core *core)
{
	static uint32_t is_reported; /* by this process or one that it was forked from */

	if (core->settings.why_not[0] && !__atomic_exchange_n(&is_reported, 1, __ATOMIC_RELAXED))
		agent_print("tracesmith: nothing is recorded for '%.256s': %s\n",
			    core->settings.output, core->settings.why_not);
}

/* Called by the thread that found the core new, with signals blocked. */
static void start(struct ts_tracer *tracer, struct core *core)
{
	int error;

	agent_settings_read(&core->settings, tracer);
	if (!core->settings.wanted) {
		report_no_output(core);
		agent_disable(tracer, "not requested", 0);
		return;
	}
	error = agent_make_area(core);
	if (error) {
		report_no_area(core, error);
		agent_disable(tracer, "cannot create a live area", error);
		return;
	}
	agent_copy_dictionary(tracer, core);
	if (core->settings.start_recorder &&
	    agent_start_recorder(core, core->settings.output, false))
		go_without_recorder(core);
	__atomic_store_n(&core->state, CORE_READY, __ATOMIC_RELEASE);
	if (tracer == &ts_process_tracer)
		agent_set_switch(core);
}

static void make_thread_key(void);

/*
 * The thread that finds the core new starts it. Signals are blocked first: a handler would wait for
 * its own thread.
 */
static void try_start(struct ts_tracer *tracer, struct core *core, uint32_t found)
{
	struct agent_signals saved;

	agent_block_signals(&saved);
	if (__atomic_compare_exchange_n(&core->state, &found, CORE_BUSY, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		starting = 1;
		make_thread_key();
		start(tracer, core);
		if (core->control)
			__atomic_fetch_add(&core->control->lost_nested, starting - 1,
					   __ATOMIC_RELAXED);
		starting = 0;
		/* From here on backends can emit. */
		if (tracer == &ts_process_tracer && core->state == CORE_READY)
			agent_start_backends(core->settings.backends);
	}
	agent_restore_signals(&saved);
}

static void start_or_wait(struct ts_tracer *tracer, struct core *core, uint32_t found)
{
	try_start(tracer, core, found);
	/* Set-up takes a few hundred microseconds, and no signal interrupts its thread. */
	for (unsigned int spins = 0; __atomic_load_n(&core->state, __ATOMIC_ACQUIRE) == CORE_BUSY;
	     spins++)
		agent_relax(spins);
}

struct core *agent_start(struct ts_tracer *tracer)
{
	struct core *core = get_core(tracer);
	uint32_t state;

	if (!core)
		return NULL;
	if (AGENT_UNLIKELY(starting)) {
		starting++;
		return NULL;
	}
	state = __atomic_load_n(&core->state, __ATOMIC_ACQUIRE);
	if (AGENT_UNLIKELY(state == CORE_NEW || state == CORE_BUSY)) {
		if (!agent_settings_are_known())
			return NULL;
		start_or_wait(tracer, core, CORE_NEW);
		state = __atomic_load_n(&core->state, __ATOMIC_ACQUIRE);
	}
	return state == CORE_READY ? core : NULL;
}

struct core *agent_start_again(struct ts_tracer *tracer, int *ret_error)
{
	struct core *core = agent_start(tracer);

	*ret_error = 0;
	if (core)
		return core;
	core = __atomic_load_n(&tracer->core, __ATOMIC_ACQUIRE);
	if (core && __atomic_load_n(&core->state, __ATOMIC_ACQUIRE) == CORE_OFF && !core->control) {
		start_or_wait(tracer, core, CORE_OFF);
		if (__atomic_load_n(&core->state, __ATOMIC_ACQUIRE) == CORE_READY)
			return core;
	}
	*ret_error = core && core->error ? core->error : ENOMEM;
	return NULL;
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

static void note_ready(struct ts_tracer *tracer)
{
	const struct core *core = tracer->core;

	tracer->was_ready = core && __atomic_load_n(&core->state, __ATOMIC_ACQUIRE) == CORE_READY;
}

static void fork_prepare(void)
{
	note_ready(&ts_process_tracer);
	for (struct ts_tracer *tracer = tracers_by_hand; tracer; tracer = tracer->next)
		note_ready(tracer);
	agent_keep_writers();
	channel_keep();
}

static void fork_in_parent(void)
{
	agent_release_kept();
}

bool agent_unshare(void *address, size_t bytes)
{
	return mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		    -1, 0) != MAP_FAILED;
}

void agent_keep_on_fork(void *address, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)address & -page;

	madvise((void *)start, (uintptr_t)address + bytes - start, MADV_KEEPONFORK); /* NOLINT */
}

/*
 * The child may be inside an emit, if a handler that interrupted it forked. The rest of that emit
 * then uses a private core that cannot grow. The next event creates a new core, and counts that
 * emit as lost.
 */
static void bury(struct ts_tracer *tracer)
{
	static struct ts_live_control copy; /* the child has one thread */
	struct ts_live_control *control = tracer->inherited;
	struct core *core = tracer->core;

	tracer->core = NULL;
	tracer->was_ready = false;
	if (!core || !control)
		return;
	copy = *control;
	copy.rings = 0;
	if (!agent_unshare(control, TS_LIVE_DICTIONARY))
		return;
	*control = copy;
	core->control = control;
	core->rings = (struct ts_live_ring *)(void *)((char *)control + TS_LIVE_DIRECTORY);
	core->ring_bytes = tracer->inherited_ring_bytes;
	core->fd = -1;
	channel_bury(core);
	core->state = CORE_READY;
	agent_keep_on_fork(core, sizeof(*core));
	tracer->stranded.control = control;
	tracer->stranded.lost = copy.lost_nested + copy.lost_no_ring;
}

static void renew(struct ts_tracer *tracer)
{
	agent_forget_stranded(tracer);
	/* Already zero if the kernel wipes; this is for kernels that do not. */
	if (tracer->core && tracer->core->state != CORE_NEW)
		memset(tracer->core, 0, sizeof(*tracer->core));
	if (tracer->was_ready)
		bury(tracer);
}

static void fork_in_child(void)
{
	renew(&ts_process_tracer);
	for (struct ts_tracer *tracer = tracers_by_hand; tracer; tracer = tracer->next)
		renew(tracer);
	agent_forget_writers();
	agent_forget_starts();
	if (__atomic_load_n(&ts_emit_switch, __ATOMIC_RELAXED) != &switch_off)
		__atomic_store_n(&ts_emit_switch, &switch_unknown, __ATOMIC_RELEASE);
}

/* ---- load and exit ---- */

void agent_load(void)
{
	bool at_once;

	make_thread_key();
	pthread_atfork(fork_prepare, fork_in_parent, fork_in_child);
	fstat(STDERR_FILENO, &standard_error);
	if (!agent_settings_remember(&at_once)) {
		agent_set_switch(NULL);
		return;
	}
	if (agent_python_requested || (agent_stacks_requested & TS_STACKS_PYTHON))
		agent_python_look();
	if (at_once)
		agent_start(&ts_process_tracer);
}

void agent_unload(void)
{
	agent_channel_exiting();
	agent_stop_backends();
	agent_exiting(&ts_process_tracer);
	for (struct ts_tracer *tracer = __atomic_load_n(&tracers_by_hand, __ATOMIC_ACQUIRE); tracer;
	     tracer = tracer->next)
		agent_exiting(tracer);
}

/* ---- explicitly created tracers ---- */

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
	char why_not[TS_PATH_WHY_BYTES];
	struct ts_tracer *tracer;

	if (!path || !path[0] || getauxval(AT_SECURE))
		return &disabled_tracer;
	tracer = calloc(1, sizeof(*tracer));
	if (!tracer)
		return &disabled_tracer;
	tracer->by_hand = 1;
	tracer->makes_folders = ts_path_is_pattern(path);
	if (!agent_prepare_output(path, tracer->output, sizeof(tracer->output),
				  &tracer->output_base, why_not)) {
		agent_print("tracesmith: nothing is recorded for '%.256s': %s\n", path, why_not);
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

/*
 * The struct itself stays in the list (a few hundred bytes), so that no thread has a dangling
 * pointer.
 */
void ts_tracer_close(struct ts_tracer *tracer)
{
	if (!tracer || !tracer->by_hand ||
	    __atomic_exchange_n(&tracer->is_off, 1, __ATOMIC_ACQ_REL))
		return;
	agent_exiting(tracer);
	if (tracer->core)
		agent_close_area(tracer->core);
}
