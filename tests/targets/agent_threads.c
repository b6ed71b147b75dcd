/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that emit in difficult places: before main(), in signal handlers, in destructors, when
 * cancelled, ten thousand of them. `agent_threads CASE`; prints the number of events.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#include "agent_count.h"

static pthread_t start(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		_exit(7);
	return thread;
}

static void *emit_ten(void *unused)
{
	emit_some(10);
	return unused;
}

/* ---- before main() and before every constructor ---- */

/* The C library does not know its environment yet: not counted, but harmless. */
static void begin(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "early"))
		TS_INSTANT("preinit", "count");
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **) = begin;

__attribute__((constructor(101))) static void construct(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "early")) {
		pthread_join(start(emit_ten), NULL);
		emit_some(3);
	}
}

static void run_early(void)
{
	emit_some(4);
}

/* ---- many ---- */

static void run_short(void)
{
	for (int i = 0; i < 2500; i++) {
		pthread_t threads[4];

		for (int k = 0; k < 4; k++)
			threads[k] = start(emit_ten);
		for (int k = 0; k < 4; k++)
			pthread_join(threads[k], NULL);
	}
}

static pthread_barrier_t barrier;

static unsigned int emitted_together;

static void *emit_together(void *unused)
{
	emit_some(1);
	pthread_barrier_wait(&barrier);
	emit_some(emitted_together);
	return unused;
}

static void run_together(unsigned int count, unsigned int events)
{
	static pthread_t threads[2000];

	emitted_together = events - 1;
	pthread_barrier_init(&barrier, NULL, count);
	for (unsigned int i = 0; i < count; i++)
		threads[i] = start(emit_together);
	for (unsigned int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* More at once than the budget has large rings for. */
static void run_many(void)
{
	run_together(600, 51);
}

static void run_crowd(void)
{
	run_together(2000, 200);
}

/* ---- exits of threads and of the program ---- */

static pthread_key_t key;

/* Runs again as long as it sets the key: after the agent's own destructor, too. */
static void destroy(void *value)
{
	intptr_t left = (intptr_t)value - 1;

	emit_some(2);
	if (left)
		pthread_setspecific(key, (void *)left);
}

static void *leave_something(void *unused)
{
	pthread_setspecific(key, (void *)3);
	emit_some(1);
	return unused;
}

static void emit_at_exit(void)
{
	emit_some(5);
	print_emitted();
}

static void run_ends(void)
{
	pthread_key_create(&key, destroy);
	for (int i = 0; i < 50; i++)
		pthread_join(start(leave_something), NULL);
	atexit(emit_at_exit);
	emit_some(1);
}

/* ---- cancelled ---- */

static void *be_cancelled(void *deep)
{
	int unused;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &unused);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &unused);
	emit_some(3000); /* setup, first ring, a larger one: all with the request pending */
	pthread_testcancel();
	_exit(8);
	return deep;
}

static void run_cancel(void)
{
	for (int i = 0; i < 10; i++) {
		pthread_t first_one = start(be_cancelled), second = start(be_cancelled);
		void *how;

		pthread_join(first_one, &how);
		pthread_join(second, NULL);
		if (how != PTHREAD_CANCELED)
			_exit(8);
	}
	emit_some(5);
}

/* ---- signals ---- */

static volatile bool stop;

static void on_timer(int number)
{
	(void)number;
	TS_INSTANT("timer", "count");
	__atomic_fetch_add(&emitted, 1, __ATOMIC_RELAXED);
}

static void *emit_until_stop(void *unused)
{
	while (!stop)
		emit_some(100);
	return unused;
}

/* 10,000 per second, on any thread. */
static void run_storm(void)
{
	struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	struct timespec while_ = { 0, 300000000 };
	pthread_t threads[4];

	sigaction(SIGPROF, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 4; i++)
		threads[i] = start(emit_until_stop);
	while (nanosleep(&while_, &while_))
		;
	stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_PROF, &never, NULL);
	setitimer(ITIMER_REAL, &never, NULL);
}

static sigjmp_buf back;

static void jump(int number)
{
	siglongjmp(back, number);
}

/*
 * Handlers that never return, some of them out of an emit: later events must not be lost silently.
 */
static void run_jumps(void)
{
	struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = jump };
	volatile int jumps = 0; /* each leaves an emit, or the code between two */

	sigaction(SIGALRM, &action, NULL);
	if (sigsetjmp(back, 1))
		jumps++;
	else
		setitimer(ITIMER_REAL, &often, NULL);
	while (jumps < 300) /* not counted: the interrupted event may be stored or not */
		TS_INSTANT("jumped", "count", TS_INT("n", jumps));
	setitimer(ITIMER_REAL, &never, NULL);
	emit_some(1000);
}

static void on_small_stack(int number)
{
	struct ts_emit_arg args[32];

	(void)number;
	for (int i = 0; i < 32; i++)
		args[i] = (struct ts_emit_arg){ "key", TS_EMIT_INT, { .integer = i } };
	emit_some(1); /* the first of the process */
	ts_tracer_instant(ts_tracer_process(), "dynamic", "count", TS_TRACK_THREAD, args, 32);
	emitted++;
}

/* The very first event, on a handler stack of the recommended size, with nothing below it. */
static void run_stack(void)
{
	size_t bytes = (size_t)sysconf(_SC_SIGSTKSZ),
	       least = (size_t)sysconf(_SC_MINSIGSTKSZ) + 6144;
	struct sigaction action = { .sa_handler = on_small_stack, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_size = bytes < least ? bytes : least };
	size_t stack_bytes = (stack.ss_size + 4095) / 4096 * 4096;
	char *memory =
		mmap(NULL, stack_bytes + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + 4096, stack_bytes, PROT_READ | PROT_WRITE))
		_exit(7);
	stack.ss_sp = memory + 4096;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "early", run_early }, { "short", run_short },   { "many", run_many },
		      { "ends", run_ends },   { "cancel", run_cancel }, { "storm", run_storm },
		      { "jumps", run_jumps }, { "stack", run_stack },   { "crowd", run_crowd } };

	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name))
			cases[i].run();
	print_emitted();
	return 0;
}
