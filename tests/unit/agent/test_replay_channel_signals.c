/* SPDX-License-Identifier: Apache-2.0 */
/* Signals and the lossless channel: handlers that run while a record is written. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "unit/agent/replay_channel_support.h"

/* ---- with signals blocked ---- */

static volatile sig_atomic_t handled;

/* qemu starts handlers with a stack that is not aligned as compilers expect. */
#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
static void
on_signal(int number)
{
	(void)number;
	handled = handled + 1;
	/* Would deadlock if the handler ran while its own thread holds the lock. */
	if (ts_replay_lock())
		ts_replay_unlock();
}

TS_TEST(handlers_run_behind_the_lock_but_for_faults)
{
	sigset_t mask;

	/*
	 * sigaction(), whose effect the static checker does not see: the calls are what is tested.
	 */
	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal }, NULL);
	agent_begin("enabled=1;replayable=1");
	TS_CHECK(ts_replay_lock());
	raise(SIGUSR1);
	TS_CHECK_INT(handled, 0);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	TS_CHECK(sigismember(&mask, SIGTERM));
	TS_CHECK(!sigismember(&mask, SIGSEGV));
	ts_replay_unlock();
	TS_CHECK_INT(handled, 1);
	agent_end(true);
}

/* ---- without system calls ---- */

/* Memory whose first read ends in a handler: it runs while a record is being written. */
static struct {
	char *page;
	size_t bytes;
	void (*act)(void);
} trap;

static void spring(int number)
{
	(void)number;
	handled = handled + 1;
	if (trap.act)
		trap.act();
	mprotect(trap.page, trap.bytes, PROT_READ);
}

static void set_trap(void (*act)(void))
{
	trap.bytes = (size_t)sysconf(_SC_PAGESIZE);
	trap.page = mmap(NULL, trap.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TS_CHECK(trap.page != MAP_FAILED);
	trap.act = act;
	handled = 0;
	sigaction(SIGSEGV, &(struct sigaction){ .sa_handler = spring }, NULL);
}

/* An event first: a thread without a ring is none for short records, nor is a stream. */
static void begin_brief(void)
{
	agent_begin("enabled=1;replayable=1");
	TS_INSTANT("x", "y");
	TS_CHECK(!channel_lock_briefly(100));
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(give(TS_COMMAND_OPEN, 0, NULL), 1);
	ts_replay_unlock();
}

static uint64_t give_briefly(const void *data, uint64_t bytes)
{
	struct core *core = channel_lock_briefly(bytes + 500);
	uint64_t sequence;

	TS_CHECK(core != NULL);
	sequence = give(TS_COMMAND_LAUNCH, ts_replay_blob_own(data, bytes), NULL);
	channel_unlock_briefly(core);
	return sequence;
}

TS_TEST(short_records_block_no_signals)
{
	struct agent_reader reader;
	struct core *core;
	sigset_t mask;

	begin_brief();
	core = channel_lock_briefly(100);
	TS_CHECK(core != NULL);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	TS_CHECK(!sigismember(&mask, SIGTERM));
	channel_unlock_briefly(core);
	for (uint64_t i = 2; i < 20000; i++)
		TS_CHECK_INT(give_briefly("0123456789", 10), i);
	TS_CHECK(!channel_lock_briefly(CHANNEL_BRIEF_BYTES + 1));
	TS_CHECK(ts_replay_lock());
	ts_replay_unlock();
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_COMMAND), 19999);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_BLOB), 19998);
	agent_close_reader(&reader);
	agent_end(true);
}

static void use_channel(void)
{
	TS_CHECK(!ts_replay_lock());
	TS_CHECK(!channel_lock_briefly(100));
}

TS_TEST(a_handler_that_uses_the_channel_inside_of_a_record_breaks_it)
{
	struct agent_reader reader;

	set_trap(use_channel);
	begin_brief();
	TS_CHECK_INT(give_briefly(trap.page, 100), 0);
	TS_CHECK_INT(handled, 1);
	check_broken();
	agent_open_reader(&reader);
	agent_drain(&reader);
	check_closed(&reader, "a signal handler used the device");
	agent_close_reader(&reader);
	agent_end(true);
}

static uint64_t give_longer(const void *data, uint64_t bytes)
{
	uint64_t sequence;

	TS_CHECK(ts_replay_lock());
	sequence = give(TS_COMMAND_LAUNCH, ts_replay_blob(data, bytes), NULL);
	ts_replay_unlock();
	return sequence;
}

/* A fault is handled also while signals are blocked. */
TS_TEST(a_handler_of_a_fault_that_uses_the_channel_breaks_it)
{
	struct agent_reader reader;
	sigset_t mask;

	set_trap(use_channel);
	begin_brief();
	TS_CHECK_INT(give_longer(trap.page, 100), 0);
	TS_CHECK_INT(handled, 1);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	TS_CHECK(!sigismember(&mask, SIGTERM));
	check_broken();
	agent_open_reader(&reader);
	agent_drain(&reader);
	check_closed(&reader, "a signal handler used the device");
	agent_close_reader(&reader);
	agent_end(true);
}

static void (*ends)(void);

static void stop(void)
{
	struct agent_reader reader;

	ends();
	check_broken();
	agent_open_reader(&reader);
	agent_drain(&reader);
	check_closed(&reader, "a thread ended in a signal handler");
	agent_close_reader(&reader);
	_exit(0);
}

static void fork_and_return(void)
{
	pid_t pid = fork();

	if (pid)
		agent_join_child(pid);
}

/* The child has its own stream, whatever its parent was about to write. */
TS_TEST(a_handler_inside_of_a_record_may_fork)
{
	struct agent_reader reader;
	pid_t self = getpid();

	set_trap(fork_and_return);
	begin_brief();
	give_briefly(trap.page, 100);
	if (getpid() != self) {
		TS_CHECK(ts_replay_lock());
		TS_CHECK_INT(give(TS_COMMAND_OPEN, 0, NULL), 1);
		ts_replay_unlock();
		_exit(0);
	}
	TS_CHECK_INT(give_briefly("1", 1), 3);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_COMMAND), 3);
	agent_close_reader(&reader);
	agent_end(true);
}

static void use_own_stream(void)
{
	pid_t pid = fork();

	if (pid) {
		agent_join_child(pid);
		return;
	}
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(give(TS_COMMAND_OPEN, 0, NULL), 1);
	ts_replay_unlock();
	TS_CHECK(!ts_replay_is_broken());
	_exit(0);
}

/* Nothing of the child's is interrupted. */
TS_TEST(a_child_of_a_handler_inside_of_a_record_has_its_own_stream)
{
	set_trap(use_own_stream);
	begin_brief();
	TS_CHECK_INT(give_briefly(trap.page, 100), 2);
	TS_CHECK_INT(handled, 1);
	TS_CHECK(!ts_replay_is_broken());
	agent_end(true);
}

static int go_on[2];

/* The child returns when its parent has completed the record, and has other bytes for it. */
static void fork_and_return_late(void)
{
	char unused;

	TS_CHECK_INT(pipe(go_on), 0);
	if (fork())
		return;
	TS_CHECK_INT(read(go_on[0], &unused, 1), 1);
	mprotect(trap.page, trap.bytes, PROT_READ | PROT_WRITE);
	memset(trap.page, 'c', trap.bytes);
}

TS_TEST(a_child_does_not_write_into_its_parents_stream)
{
	struct agent_reader reader;
	struct agent_cursor cursor;
	struct ts_live_record head;
	pid_t self = getpid();
	unsigned int blobs = 0;
	const uint64_t *at;
	int status;

	set_trap(fork_and_return_late);
	begin_brief();
	give_briefly(trap.page, 64);
	if (getpid() != self)
		_exit(0);
	TS_CHECK_INT(write(go_on[1], "", 1), 1);
	TS_CHECK(wait(&status) > 0);
	TS_CHECK_INT(status, 0);
	close(go_on[0]);
	close(go_on[1]);
	agent_open_reader(&reader);
	agent_drain(&reader);
	cursor = channel_of(&reader);
	while ((at = agent_next(&cursor, &head))) {
		if (head.kind != TS_LIVE_BLOB)
			continue;
		blobs++;
		for (unsigned int i = 0; i < 64 / 8; i++)
			TS_CHECK_INT(at[6 + i], 0);
	}
	TS_CHECK_INT(blobs, 1);
	agent_close_reader(&reader);
	agent_end(true);
}

/* ---- one thread stands in a handler, another waits for it ---- */

static struct {
	pthread_t thread;
	uint32_t is_inside, is_waiting, has_handled;
} world;

static void handle_stop(int number)
{
	(void)number;
	__atomic_store_n(&world.has_handled, 1, __ATOMIC_RELEASE);
}

static void wait_until(const uint32_t *flag)
{
	for (unsigned int i = 0; i < 60000 && !__atomic_load_n(flag, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	TS_CHECK(__atomic_load_n(flag, __ATOMIC_ACQUIRE));
}

/* As a collector does: stands still until all other threads do. */
static void stop_the_world(void)
{
	__atomic_store_n(&world.is_inside, 1, __ATOMIC_RELEASE);
	wait_until(&world.is_waiting);
	usleep(20000);
	TS_CHECK_INT(pthread_kill(world.thread, SIGUSR1), 0);
	wait_until(&world.has_handled);
}

static void *use_after_it(void *argument)
{
	wait_until(&world.is_inside);
	__atomic_store_n(&world.is_waiting, 1, __ATOMIC_RELEASE);
	if (ts_replay_lock()) {
		give(TS_COMMAND_LAUNCH, 0, NULL);
		ts_replay_unlock();
		*(bool *)argument = true;
	}
	return NULL;
}

TS_TEST(who_waits_for_a_short_record_handles_signals)
{
	bool has_lock = false;

	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = handle_stop }, NULL);
	agent_channel_patience_ns = INT64_C(60000000000);
	set_trap(stop_the_world);
	begin_brief();
	TS_CHECK_INT(pthread_create(&world.thread, NULL, use_after_it, &has_lock), 0);
	TS_CHECK_INT(give_briefly(trap.page, 100), 2);
	TS_CHECK_INT(pthread_join(world.thread, NULL), 0);
	TS_CHECK(has_lock && !ts_replay_is_broken());
	agent_end(true);
}

static sigjmp_buf outside;

static void leave_record(void)
{
	mprotect(trap.page, trap.bytes, PROT_READ);
	__atomic_store_n(&world.is_inside, 1, __ATOMIC_RELEASE);
	siglongjmp(outside, 1);
}

/* Nobody will ever unlock: others break the stream, and go on. */
TS_TEST(a_handler_that_leaves_a_record_by_longjmp_keeps_nobody_waiting)
{
	bool has_lock = false;

	agent_channel_patience_ns = 50000000;
	set_trap(leave_record);
	begin_brief();
	TS_CHECK_INT(pthread_create(&world.thread, NULL, use_after_it, &has_lock), 0);
	if (!sigsetjmp(outside, 1)) {
		give_briefly(trap.page, 100);
		TS_CHECK(false);
	}
	TS_CHECK_INT(pthread_join(world.thread, NULL), 0);
	TS_CHECK(!has_lock && ts_replay_is_broken());
	TS_CHECK(!ts_replay_lock());
	agent_end(true);
}

static void end_thread(void)
{
	agent_thread_exit(NULL);
}

/* Of the process, or its thread: others do not wait for ever. */
TS_TEST(a_handler_inside_of_a_record_may_exit)
{
	void (*const ways[])(void) = { channel_abandon, end_thread };
	pid_t pid;

	agent_begin("enabled=1;replayable=1");
	for (unsigned int i = 0; i < 2 * TS_ARRAY_SIZE(ways); i++) {
		pid = fork();
		if (pid == 0) {
			ends = ways[i / 2];
			set_trap(stop);
			TS_INSTANT("x", "y");
			TS_CHECK(ts_replay_lock());
			give(TS_COMMAND_OPEN, 0, NULL);
			ts_replay_unlock();
			(i & 1 ? give_longer : give_briefly)(trap.page, 100);
			_exit(1);
		}
		agent_join_child(pid);
	}
	agent_end(true);
}
