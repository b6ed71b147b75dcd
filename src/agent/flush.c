/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for the recorder: on an explicit flush, and at the exit of a program that started its own
 * recorder. With replay_wait.c the only code of the agent that waits.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "agent/tracer.h"

#define FLUSH_NS INT64_C(5000000000)
/* A recorder without a heartbeat for this long counts as dead, unless its process is visible. */
#define SILENCE_NS INT64_C(3000000000)
/* A recorder that was told to end writes what is left: at most this long. */
#define END_NS INT64_C(60000000000)
/* A recorder that held the output and has not attached by then was about to end. */
#define START_NS INT64_C(300000000)

static void nap(int64_t ns)
{
	struct timespec time = { 0, ns };

	nanosleep(&time, NULL);
}

bool agent_recorder_lives(const struct core *core)
{
	uint64_t pid = __atomic_load_n(&core->control->recorder_pid, __ATOMIC_RELAXED);
	uint64_t started;
	char text[1024];

	return pid && pid <= INT32_MAX &&
	       agent_start_time((pid_t)pid, text, sizeof(text), &started) &&
	       started == core->control->recorder_start;
}

/* True if the recorder that this process started has not ended yet. */
static bool is_starting(const struct core *core)
{
	uint64_t started;
	char text[1024];

	return core->recorder && agent_start_time(core->recorder, text, sizeof(text), &started);
}

/* True while a recorder drains the area, or is about to. */
static bool has_recorder(const struct core *core, int64_t since)
{
	int64_t heartbeat = __atomic_load_n(&core->control->heartbeat, __ATOMIC_RELAXED);
	int64_t now = (int64_t)ts_counter_monotonic_ns();

	if (!heartbeat)
		return core->control->output[0] && (now - since < SILENCE_NS || is_starting(core));
	return now - heartbeat < SILENCE_NS || agent_recorder_lives(core);
}

/*
 * Starts a recorder if whoever held the output has not attached: it was about to end, or is no
 * recorder. The new one finds out.
 */
static void start_recorder(struct core *core)
{
	struct agent_signals saved;

	if (!core->relies_on_other || __atomic_load_n(&core->control->heartbeat, __ATOMIC_RELAXED))
		return;
	agent_block_signals(&saved);
	agent_start_recorder(core, core->settings.output, true);
	agent_restore_signals(&saved);
}

static int wait_flush(struct core *core)
{
	struct ts_live_control *control = core->control;
	uint64_t request = __atomic_add_fetch(&control->flush_request, 1, __ATOMIC_ACQ_REL);
	int64_t start = (int64_t)ts_counter_monotonic_ns(), pause = 100000;
	int cancel_state, result = 0;
	bool is_first = true;

	/* Sleeping is a cancellation point; disable that inside an exit handler. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	agent_nudge_recorder(core);
	while (__atomic_load_n(&control->flush_done, __ATOMIC_ACQUIRE) < request) {
		if ((int64_t)ts_counter_monotonic_ns() - start > FLUSH_NS ||
		    !has_recorder(core, start)) {
			result = -1;
			break;
		}
		nap(pause);
		if (pause < 5000000)
			pause *= 2;
		if (is_first && (int64_t)ts_counter_monotonic_ns() - start > START_NS) {
			is_first = false;
			start_recorder(core);
		}
	}
	pthread_setcancelstate(cancel_state, &cancel_state);
	return result;
}

int agent_wait_for_end(struct core *core)
{
	int64_t since = (int64_t)ts_counter_monotonic_ns(), pause = 1000000;
	int cancel_state, result = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	agent_nudge_recorder(core);
	while (is_starting(core) || agent_recorder_lives(core)) {
		if ((int64_t)ts_counter_monotonic_ns() - since > END_NS) {
			result = ETIMEDOUT;
			break;
		}
		nap(pause);
		if (pause < 10000000)
			pause += pause / 2;
	}
	pthread_setcancelstate(cancel_state, &cancel_state);
	/* It has not said that it leaves. */
	if (!result && (core->control->recorder_pid || !core->control->heartbeat))
		result = EPIPE;
	return result;
}

static struct core *ready_core(const struct ts_tracer *tracer)
{
	struct core *core = __atomic_load_n(&tracer->core, __ATOMIC_ACQUIRE);

	return core && __atomic_load_n(&core->state, __ATOMIC_ACQUIRE) == CORE_READY ? core : NULL;
}

int ts_tracer_flush(struct ts_tracer *tracer)
{
	int saved_errno = errno, result;
	struct core *core = tracer ? ready_core(tracer) : NULL;

	if (!core)
		return -1;
	result = wait_flush(core);
	errno = saved_errno;
	return result;
}

int ts_flush(void)
{
	return ts_tracer_flush(&ts_process_tracer);
}

/* Also if the process has emitted nothing else: the area is made for the loss then. */
static void count_stranded(struct ts_tracer *tracer)
{
	struct core *core = agent_has_stranded(tracer) ? agent_start(tracer) : NULL;
	struct agent_signals saved;

	if (!core)
		return;
	agent_block_signals(&saved);
	agent_lock(core);
	agent_count_stranded(tracer, core);
	agent_unlock(core);
	agent_restore_signals(&saved);
}

/* With TRACESMITH_OUT, users expect the file to exist when the program has ended. */
static void wait_for_file(struct core *core)
{
	struct ts_live_control *control = core->control;
	bool is_complete = wait_flush(core) == 0;
	struct agent_signals saved;

	agent_block_signals(&saved);
	control->notice[sizeof(control->notice) - 1] = 0;
	if (control->notice[0])
		agent_print("tracesmith: %s\n", control->notice);
	else if (!is_complete && (is_starting(core) || agent_recorder_lives(core)))
		agent_print("tracesmith: '%.256s' is not complete yet: its recorder is busy\n",
			    control->output);
	else if (!is_complete && control->heartbeat)
		agent_print("tracesmith: the recorder of '%.256s' has ended early: tracesmith "
			    "recover '%.256s' -o FILE\n",
			    control->output, control->output);
	else if (!is_complete)
		agent_print("tracesmith: no recorder has come for '%.256s'; the events are in "
			    "memory: tracesmith recover %u -o FILE\n",
			    control->output, control->pid);
	agent_restore_signals(&saved);
}

void agent_exiting(struct ts_tracer *tracer)
{
	struct core *core;

	count_stranded(tracer);
	core = ready_core(tracer);
	if (core && core->control->target_state == TS_LIVE_STOPPED)
		agent_unlink_area(core);
	if (!core || core->control->target_state != TS_LIVE_RUNNING)
		return;
	__atomic_store_n(&core->control->target_state, TS_LIVE_EXITING, __ATOMIC_RELEASE);
	if (core->control->output[0] && core->control->mode == TS_LIVE_STREAM)
		wait_for_file(core);
}
