/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of children that wait or run in a known call chain: chain_one() calls chain_two(), which
 * calls chain_three(), which calls the function under test.
 */
#include "code/unwind.h"

#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sample/perf/perf_stacks.h"
#include "unit/runner.h"

/* On x86_64, clang's address sanitizer gives the functions below frames that these tests do not
 * mean. */
#ifdef __has_feature
#if __has_feature(address_sanitizer) && defined(__x86_64__)
#define HAS_OTHER_FRAMES 1
#endif
#endif
#ifndef HAS_OTHER_FRAMES
#define HAS_OTHER_FRAMES 0
#endif

#define MAX_FRAMES 64
#if defined(__x86_64__)
#define PC_REGISTER 16
#else
#define PC_REGISTER 32
#endif
#define PATIENCE_NS INT64_C(20000000000)

/* Prevents tail calls, which would drop the caller's frame. */
#define CALL_HOLDS() __asm__ volatile("" ::: "memory")
/* Neither inlined nor cloned under other names. */
#if defined(__clang__)
#define IN_CHAIN __attribute__((noinline, used))
#else
#define IN_CHAIN __attribute__((noipa, used))
#endif

static int ready_pipe[2];
static volatile uint64_t *counter; /* shared with the child */

static void signal_ready(void)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	if (write(ready_pipe[1], &tid, sizeof(tid)) != sizeof(tid))
		_exit(3);
}

void chain_one(void (*leaf)(void));
void chain_two(void (*leaf)(void));
void chain_three(void (*leaf)(void));

IN_CHAIN void chain_three(void (*leaf)(void))
{
	leaf();
	CALL_HOLDS();
}

IN_CHAIN void chain_two(void (*leaf)(void))
{
	chain_three(leaf);
	CALL_HOLDS();
}

IN_CHAIN void chain_one(void (*leaf)(void))
{
	chain_two(leaf);
	CALL_HOLDS();
}

/* ---- children ---- */

struct child {
	pid_t pid, tid;
	struct ts_native_process *native;
	struct ts_native_frame frames[MAX_FRAMES];
	size_t count;
	bool is_complete;
};

static void start(struct child *child, void (*leaf)(void))
{
	*child = (struct child){ 0 };
	counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TS_CHECK(counter != MAP_FAILED && pipe(ready_pipe) == 0);
	child->pid = fork();
	if (child->pid == 0) {
		chain_one(leaf);
		_exit(0);
	}
	TS_CHECK(child->pid > 0);
	TS_CHECK(read(ready_pipe[0], &child->tid, sizeof(child->tid)) == sizeof(child->tid));
	TS_CHECK_INT(ts_native_process_open(&child->native, child->pid, NULL), 0);
}

static void stop(struct child *child)
{
	ts_native_process_close(child->native);
	kill(child->pid, SIGKILL);
	TS_CHECK(waitpid(child->pid, NULL, 0) == child->pid);
	close(ready_pipe[0]);
	close(ready_pipe[1]);
}

static size_t find_name(const struct child *child, const char *name)
{
	for (size_t i = 0; i < child->count; i++) {
		if (strcmp(child->frames[i].code->name, name) == 0)
			return i;
	}
	return SIZE_MAX;
}

static void fail_with_frames(const struct child *child, const char *what)
{
	char text[2048] = "", path[64], state[256] = "";
	size_t length = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)child->pid, (int)child->tid);
	file = fopen(path, "re");
	if (file && !fgets(state, sizeof(state), file))
		state[0] = '\0';
	if (file)
		fclose(file);
	for (size_t i = 0; i < child->count && length < sizeof(text) - 100; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, " %.60s",
					   child->frames[i].code->name);
	ts_test_fail(__FILE__, __LINE__, "%s (complete: %d):%s; in %s", what, child->is_complete,
		     text, state);
}

/* The leaf, then the chain with nothing in between, and the outermost function. */
static void check_chain(const struct child *child, const char *leaf)
{
	static const char *const chain[] = { "chain_three", "chain_two", "chain_one" };
	size_t at = find_name(child, chain[0]);

	if (!child->is_complete)
		fail_with_frames(child, "not whole");
	if (at == SIZE_MAX || at + TS_ARRAY_SIZE(chain) > child->count)
		fail_with_frames(child, "no chain");
	for (size_t i = 0; i < TS_ARRAY_SIZE(chain); i++)
		TS_CHECK_STR(child->frames[at + i].code->name, chain[i]);
	if (leaf && find_name(child, leaf) >= at)
		fail_with_frames(child, "no leaf");
}

/* A thread takes a moment to reach its wait after reporting. */
static void take_waiting(struct child *child)
{
	int64_t end_ns = ts_clock_monotonic_ns() + PATIENCE_NS;

	do {
		child->count = ts_unwind_blocked_thread(child->native, child->tid, child->frames,
							MAX_FRAMES, &child->is_complete);
	} while (find_name(child, "chain_three") == SIZE_MAX && ts_clock_monotonic_ns() < end_ns);
}

/* ---- waiting threads ---- */

void leaf_pause(void);
IN_CHAIN void leaf_pause(void)
{
	signal_ready();
	pause();
	CALL_HOLDS();
}

TS_TEST(a_thread_that_waits)
{
	struct child child;

	start(&child, leaf_pause);
	take_waiting(&child);
	check_chain(&child, "leaf_pause");
	stop(&child);
}

#if defined(__x86_64__)

/* The frame is relative to the frame pointer, which /proc does not show. */
void leaf_with_frame_pointer(void);
IN_CHAIN void leaf_with_frame_pointer(void)
{
	volatile char *memory = alloca(ready_pipe[1] + (size_t)100);

	memory[0] = 1;
	signal_ready();
	pause();
	CALL_HOLDS();
}

void leaf_calls_directly(void);
IN_CHAIN void leaf_calls_directly(void)
{
	leaf_with_frame_pointer();
	CALL_HOLDS();
}

TS_TEST(a_lost_frame_pointer_is_found_again)
{
	struct child child;

	start(&child, leaf_calls_directly);
	take_waiting(&child);
	check_chain(&child, "leaf_with_frame_pointer");
	stop(&child);
}

/* Fixed size, so that its first instructions give it; an indirect call. */
void leaf_of_fixed_size(void);
IN_CHAIN void leaf_of_fixed_size(void)
{
	void *volatile frame = __builtin_frame_address(0); /* forces a frame pointer */

	signal_ready();
	pause();
	CALL_HOLDS();
	frame = NULL;
	(void)frame;
}

TS_TEST(a_lost_frame_pointer_is_computed)
{
	struct child child;

	if (HAS_OTHER_FRAMES)
		ts_test_skip("the sanitizer changes the frames of this test");
	start(&child, leaf_of_fixed_size);
	take_waiting(&child);
	check_chain(&child, "leaf_of_fixed_size");
	stop(&child);
}

#endif

static void *thread_main(void *context)
{
	(void)context;
	chain_one(leaf_pause);
	return NULL;
}

static void leaf_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, thread_main, NULL);
	pthread_join(thread, NULL);
}

TS_TEST(other_threads)
{
	struct child child;

	start(&child, leaf_thread);
	TS_CHECK(child.tid != child.pid);
	take_waiting(&child);
	check_chain(&child, "leaf_pause");
	TS_CHECK(find_name(&child, "leaf_thread") == SIZE_MAX);
	stop(&child);
}

/* ---- a stack that begins just below the stack pointer ---- */

#define EDGE_STEP 64u /* less than the red zone */
#define EDGE_BYTES ((size_t)1 << 18)

static _Atomic pid_t edge_tid;

void leaf_edge(void);
IN_CHAIN void leaf_edge(void)
{
	edge_tid = (pid_t)syscall(SYS_gettid);
	pause();
	CALL_HOLDS();
}

static void *edge_main(void *context)
{
	(void)context;
	chain_one(leaf_edge);
	return NULL;
}

/* Waits until a thread of this process waits: "NUMBER ARGUMENT x 6 SP PC", before that "running".
 */
static uint64_t waiting_stack_pointer(pid_t tid)
{
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	for (;;) {
		FILE *file = fopen(path, "re");
		const char *field = file ? fgets(line, sizeof(line), file) : NULL;

		if (file)
			fclose(file);
		for (int i = 0; field && i < 7; i++)
			field = strchr(field + 1, ' ');
		if (field)
			return strtoull(field, NULL, 16);
		sched_yield();
	}
}

static pid_t start_on(char *memory, size_t bytes)
{
	pthread_attr_t attributes;
	pthread_t thread;

	edge_tid = 0;
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, memory, bytes);
	if (pthread_create(&thread, &attributes, edge_main, NULL))
		_exit(3);
	while (!edge_tid)
		sched_yield();
	return edge_tid;
}

/* Starts threads until one waits at the start of a page, and makes the page below unreadable. */
static void leaf_starts_at_the_edge(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t shift = 0; shift < page; shift += EDGE_STEP) {
		char *memory = mmap(NULL, EDGE_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pid_t tid = memory == MAP_FAILED ? 0 : start_on(memory, EDGE_BYTES - shift);
		size_t used;

		if (!tid)
			_exit(3);
		used = waiting_stack_pointer(tid) - (uintptr_t)memory;
		if (used % page >= EDGE_STEP)
			continue;
		if (mprotect(memory, used - used % page, PROT_NONE) ||
		    write(ready_pipe[1], &tid, sizeof(tid)) != sizeof(tid))
			_exit(3);
		pause();
	}
	_exit(3);
}

TS_TEST(nothing_below_the_stack_pointer)
{
	struct child child;

	start(&child, leaf_starts_at_the_edge);
	take_waiting(&child);
	check_chain(&child, "leaf_edge");
	stop(&child);
}

/* ---- large stacks ---- */

/* Deeper than the first copy. */
void deep(int depth);
/* NOLINTNEXTLINE(misc-no-recursion) */
IN_CHAIN void deep(int depth)
{
	volatile char memory[8192];

	memory[0] = (char)depth;
	if (depth > 0)
		deep(depth - 1);
	else
		leaf_pause();
	CALL_HOLDS();
	memory[1] = memory[0];
}

static void leaf_deep(void)
{
	deep(20);
}

TS_TEST(a_large_stack)
{
	struct child child;

	start(&child, leaf_deep);
	take_waiting(&child);
	check_chain(&child, "deep");
	stop(&child);
}

TS_TEST(no_more_frames_than_there_is_room)
{
	struct child child;

	start(&child, leaf_pause);
	take_waiting(&child);
	child.count = ts_unwind_blocked_thread(child.native, child.tid, child.frames, 2,
					       &child.is_complete);
	TS_CHECK_INT(child.count, 2);
	TS_CHECK(!child.is_complete);
	stop(&child);
}

/* ---- signals ---- */

static void handle_signal(int number)
{
	(void)number;
	leaf_pause();
	CALL_HOLDS();
}

static void interrupt(int flags)
{
	struct sigaction action = { .sa_handler = handle_signal, .sa_flags = flags };

	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	CALL_HOLDS();
}

void leaf_signal(void);
IN_CHAIN void leaf_signal(void)
{
	interrupt(0);
	CALL_HOLDS();
}

void leaf_signal_stack(void);
IN_CHAIN void leaf_signal_stack(void)
{
	static char memory[65536];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };

	sigaltstack(&stack, NULL);
	interrupt(SA_ONSTACK);
	CALL_HOLDS();
}

TS_TEST(through_a_signal)
{
	struct child child;

	start(&child, leaf_signal);
	take_waiting(&child);
	check_chain(&child, "leaf_signal");
	TS_CHECK(find_name(&child, "handle_signal") < find_name(&child, "raise"));
	stop(&child);
}

/* The interrupted stack is elsewhere, and not in the copy: the result must say so. */
TS_TEST(a_signal_on_its_own_stack_ends_there)
{
	struct child child;
	int64_t end_ns = ts_clock_monotonic_ns() + PATIENCE_NS;

	start(&child, leaf_signal_stack);
	do {
		child.count = ts_unwind_blocked_thread(child.native, child.tid, child.frames,
						       MAX_FRAMES, &child.is_complete);
	} while (find_name(&child, "handle_signal") == SIZE_MAX &&
		 ts_clock_monotonic_ns() < end_ns);
	TS_CHECK(find_name(&child, "handle_signal") != SIZE_MAX);
	TS_CHECK(!child.is_complete || find_name(&child, "chain_three") != SIZE_MAX);
	stop(&child);
}

/* ---- running threads ---- */

void leaf_spin(void);
IN_CHAIN void leaf_spin(void)
{
	signal_ready();
	for (;;)
		++*counter;
}

TS_TEST(a_running_thread_has_no_waiting_stack)
{
	struct child child;

	start(&child, leaf_spin);
	child.count = ts_unwind_blocked_thread(child.native, child.tid, child.frames, MAX_FRAMES,
					       &child.is_complete);
	/* It may be between two time slices, and is then "running" all the same. */
	TS_CHECK_INT(child.count, 0);
	stop(&child);
}

static void check_goes_on(void)
{
	uint64_t before = *counter;
	int64_t end_ns = ts_clock_monotonic_ns() + PATIENCE_NS;

	while (*counter == before)
		TS_CHECK(ts_clock_monotonic_ns() < end_ns);
}

TS_TEST(a_stopped_thread_goes_on)
{
	struct child child;

	start(&child, leaf_spin);
	child.count = ts_unwind_stopped_thread(child.native, child.tid, child.frames, MAX_FRAMES,
					       &child.is_complete);
	if (child.count == 0)
		ts_test_skip("ptrace() is not allowed here");
	check_chain(&child, "leaf_spin");
	check_goes_on();
	stop(&child);
}

/* Every return of epoll_wait() is counted: it must not notice that it was stopped. */
void leaf_epoll(void);
IN_CHAIN void leaf_epoll(void)
{
	struct epoll_event event;
	int fd = epoll_create1(EPOLL_CLOEXEC);

	signal_ready();
	for (;;) {
		epoll_wait(fd, &event, 1, -1);
		++*counter;
	}
}

TS_TEST(a_stopped_call_is_not_interrupted)
{
	struct child child;

	if (HAS_OTHER_FRAMES)
		ts_test_skip("the sanitizer changes the frames of this test");
	start(&child, leaf_epoll);
	take_waiting(&child);
	check_chain(&child, "leaf_epoll");
	child.count = ts_unwind_stopped_thread(child.native, child.tid, child.frames, MAX_FRAMES,
					       &child.is_complete);
	if (child.count == 0)
		ts_test_skip("ptrace() is not allowed here");
	check_chain(&child, "leaf_epoll");
	take_waiting(&child); /* back in the call */
	check_chain(&child, "leaf_epoll");
#if defined(__x86_64__)
	TS_CHECK_INT(*counter, 0);
#endif
	stop(&child);
}

#if defined(__x86_64__)

/*
 * Code generated at run time without unwind tables: keeps a frame pointer and calls leaf_pause().
 */
void leaf_generated(void);
IN_CHAIN void leaf_generated(void)
{
	uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0,    0,    0,
			   0,    0,    0,    0,    0,    0xff, 0xd0, 0x5d, 0xc3 };
	uint64_t target = (uintptr_t)leaf_pause;
	void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*function)(void);

	memcpy(code + 6, &target, sizeof(target));
	memcpy(mapped, code, sizeof(code));
	memcpy(&function, &mapped, sizeof(function));
	function();
	CALL_HOLDS();
}

TS_TEST(code_without_tables)
{
	struct child child;

	start(&child, leaf_generated);
	child.count = ts_unwind_stopped_thread(child.native, child.tid, child.frames, MAX_FRAMES,
					       &child.is_complete);
	if (child.count == 0)
		ts_test_skip("ptrace() is not allowed here");
	check_chain(&child, "leaf_generated");
	TS_CHECK(find_name(&child, "[anonymous]") < find_name(&child, "leaf_generated"));
	stop(&child);
}

#endif

/* ---- perf ---- */

static struct ts_perf_stacks *open_perf(struct child *child, int64_t interval_ns)
{
	struct ts_perf_stacks *perf = NULL;
	struct ts_error err;
	int error = ts_perf_stacks_open(&perf, child->native, interval_ns, 0, &err);

	if (!error)
		error = ts_perf_stacks_set_threads(perf, &child->tid, 1, &err);
	if (error) {
		ts_perf_stacks_close(perf);
		stop(child);
		ts_test_skip(err.message);
	}
	return perf;
}

static void take_perf(struct child *child, struct ts_perf_stacks *perf, int64_t since_ns)
{
	int64_t end_ns = ts_clock_monotonic_ns() + PATIENCE_NS, time_ns = 0;

	do {
		ts_perf_stacks_drain(perf);
		child->count = ts_perf_stacks_get(perf, child->tid, since_ns, &time_ns,
						  child->frames, MAX_FRAMES, &child->is_complete);
	} while (child->count == 0 && ts_clock_monotonic_ns() < end_ns);
	TS_CHECK(time_ns >= since_ns && time_ns <= ts_clock_monotonic_ns());
}

TS_TEST(perf_samples_a_running_thread)
{
	TS_AUTO(ts_perf_stacks) perf = NULL;
	struct child child;
	int64_t time_ns;

	start(&child, leaf_spin);
	perf = open_perf(&child, 1000000);
	for (int round = 0; round < 5; round++) {
		take_perf(&child, perf, ts_clock_monotonic_ns());
		check_chain(&child, "leaf_spin");
	}
	TS_CHECK_INT(ts_perf_stacks_set_threads(perf, NULL, 0, NULL), 0);
	TS_CHECK_INT(ts_perf_stacks_get(perf, child.tid, 0, &time_ns, child.frames, MAX_FRAMES,
					&child.is_complete),
		     0);
	stop(&child);
}

TS_TEST(perf_answers_when_asked)
{
	TS_AUTO(ts_perf_stacks) perf = NULL;
	struct child child;
	int64_t time_ns;

	start(&child, leaf_spin);
	perf = open_perf(&child, 0);
	for (int round = 0; round < 5; round++) {
		int64_t since_ns = ts_clock_monotonic_ns();

		ts_perf_stacks_request(perf, &child.tid, 1);
		TS_CHECK(ts_perf_stacks_wait(perf, PATIENCE_NS));
		take_perf(&child, perf, since_ns);
		check_chain(&child, "leaf_spin");
	}
	/* And only then. */
	ts_perf_stacks_drain(perf);
	TS_CHECK_INT(ts_perf_stacks_get(perf, child.tid, ts_clock_monotonic_ns(), &time_ns,
					child.frames, MAX_FRAMES, &child.is_complete),
		     0);
	stop(&child);
}

/* ---- errors ---- */

TS_TEST(nothing_is_made_of_nonsense)
{
	TS_AUTO(ts_native_process) native = NULL;
	struct ts_unwind_registers registers = { .known = UINT64_MAX >> 31 };
	struct ts_native_frame frames[4];
	uint64_t stack[64] = { 0 };
	bool is_complete = true;

	TS_CHECK_INT(ts_native_process_open(&native, getpid(), NULL), 0);
	TS_CHECK_INT(ts_unwind_stack(native, &registers, stack, (uintptr_t)stack, sizeof(stack),
				     frames, 4, &is_complete),
		     0);
	TS_CHECK(!is_complete);
	srand(1);
	for (int round = 0; round < 2000; round++) {
		for (size_t i = 0; i < TS_UNWIND_REGISTERS; i++)
			registers.values[i] = (uintptr_t)stack + (unsigned int)rand() % 512;
		registers.values[PC_REGISTER] = (uintptr_t)chain_one + (unsigned int)rand() % 64;
		stack[rand() % 64] = (uintptr_t)chain_two + (unsigned int)rand() % 64;
		stack[rand() % 64] = (uintptr_t)rand();
		TS_CHECK(ts_unwind_stack(native, &registers, stack, (uintptr_t)stack, sizeof(stack),
					 frames, 4, &is_complete) <= 4);
	}
}

TS_TEST(a_process_that_is_gone)
{
	struct ts_native_process *native = NULL;
	struct ts_error err;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	TS_CHECK(waitpid(pid, NULL, 0) == pid);
	TS_CHECK_INT(ts_native_process_open(&native, pid, &err), TS_ENOTFOUND);
}
