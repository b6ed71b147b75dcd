/* SPDX-License-Identifier: Apache-2.0 */
/* Flushes: which recorders are waited for. The test acts as the recorder. */
#include <pthread.h>

#include "base/process.h"
#include "unit/agent/agent_support.h"

#define HOUR_NS INT64_C(3600000000000)

/* A recorder with this pid and start time that was last heard of an hour ago. */
static void register_recorder(pid_t pid, uint64_t start_time)
{
	struct ts_live_control *control = agent_control();

	control->recorder_start = start_time;
	control->recorder_pid = (uint64_t)pid;
	control->heartbeat = (int64_t)ts_counter_monotonic_ns() - HOUR_NS;
}

/* Answers one request, without a heartbeat. */
static void *answer(void *control_of)
{
	struct timespec pause = { 0, 1000000 };
	struct ts_live_control *control = control_of;
	uint64_t request;

	while (!(request = __atomic_load_n(&control->flush_request, __ATOMIC_ACQUIRE)))
		nanosleep(&pause, NULL);
	__atomic_store_n(&control->flush_done, request, __ATOMIC_RELEASE);
	return NULL;
}

TS_TEST(a_blocked_recorder_is_waited_for)
{
	pthread_t thread;

	agent_begin("enabled=1");
	register_recorder(getpid(), ts_process_start_time(getpid()));
	TS_CHECK_INT(pthread_create(&thread, NULL, answer, agent_control()), 0);
	TS_CHECK_INT(ts_flush(), 0);
	TS_CHECK_INT(pthread_join(thread, NULL), 0);
	agent_end(true);
}

TS_TEST(a_dead_recorder_is_not_waited_for)
{
	pid_t child;

	agent_begin("enabled=1");
	child = fork();
	if (child == 0)
		_exit(0);
	/* A zombie, and another process with the same pid. */
	TS_CHECK_INT(waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	register_recorder(child, ts_process_start_time(getpid()));
	TS_CHECK_INT(ts_flush(), -1);
	agent_join_child(child);
	register_recorder(getpid(), ts_process_start_time(getpid()) + 1);
	TS_CHECK_INT(ts_flush(), -1);
	agent_end(true);
}
