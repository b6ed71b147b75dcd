/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls MODE OPTIONS: calls functions in threads, by recursion, by tail calls, deeply, and leaves
 * some by longjmp, with XRay in that mode (xray-basic, xray-fdr) on. Prints what each thread did,
 * in order: "TID KIND NAME", where KIND is E (entered), X (left) or T (left by a tail call). What
 * is left by longjmp has no X. Built with clang -fxray-instrument by tests/cli/import/xray.sh.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From compiler-rt's xray headers, which are C++. */
int __xray_patch(void);
int __xray_log_select_mode(const char *mode);
int __xray_log_init_mode(const char *mode, const char *options);
int __xray_log_finalize(void);
int __xray_log_flushLog(void);

enum { SELECTED = 0, PATCHED = 1, INITIALIZED = 2, FINALIZED = 4, FLUSHED = 2 };

#define MOST 200000
#define QUIET __attribute__((xray_never_instrument, noinline))
#define TRACED __attribute__((xray_always_instrument, noinline))

struct step {
	char kind;
	const char *name;
};

struct thread {
	struct step *steps;
	int count, rounds;
	long tid;
	jmp_buf back;
	pthread_t handle;
};

static _Thread_local struct thread *self;

static inline __attribute__((always_inline)) void did(char kind, const char *name)
{
	if (self->count < MOST)
		self->steps[self->count++] = (struct step){ kind, name };
}

TRACED static int fibonacci(int n)
{
	int sum = n;

	did('E', "fibonacci");
	if (n >= 2)
		sum = fibonacci(n - 1) + fibonacci(n - 2);
	did('X', "fibonacci");
	return sum;
}

TRACED static int deep(int n)
{
	int below = 0;

	did('E', "deep");
	if (n)
		below = deep(n - 1);
	did('X', "deep");
	return below + 1;
}

TRACED static int last(int n)
{
	did('E', "last");
	__asm__ volatile("");
	did('X', "last");
	return n;
}

TRACED static int middle(int n)
{
	did('E', "middle");
	did('T', "middle");
	__attribute__((musttail)) return last(n + 1);
}

TRACED static int first(int n)
{
	did('E', "first");
	did('T', "first");
	__attribute__((musttail)) return middle(n + 1);
}

TRACED static int jumps(int n)
{
	did('E', "jumps");
	if (n == 0)
		longjmp(self->back, 1);
	n = jumps(n - 1);
	did('X', "jumps");
	return n;
}

TRACED static void catches(void)
{
	did('E', "catches");
	if (!setjmp(self->back))
		jumps(5);
	last(1);
	did('X', "catches");
}

TRACED static void empty(void)
{
	did('E', "empty");
	__asm__ volatile("");
	did('X', "empty");
}

TRACED static void work(int rounds)
{
	did('E', "work");
	for (int i = 0; i < rounds; i++) {
		fibonacci(10);
		first(i);
		catches();
		for (int k = 0; k < 50; k++)
			empty();
	}
	deep(500);
	did('X', "work");
}

QUIET static void *run(void *context)
{
	self = context;
	self->tid = syscall(SYS_gettid);
	work(self->rounds);
	return NULL;
}

QUIET static void report(const struct thread *thread)
{
	for (int i = 0; i < thread->count; i++)
		printf("%ld %c %s\n", thread->tid, thread->steps[i].kind, thread->steps[i].name);
}

QUIET int main(int argc, char **argv)
{
	static struct thread threads[3];

	if (argc < 3 || __xray_log_select_mode(argv[1]) != SELECTED ||
	    __xray_log_init_mode(argv[1], argv[2]) != INITIALIZED || __xray_patch() != PATCHED)
		return 2;
	for (int i = 0; i < 3; i++) {
		threads[i].steps = malloc(MOST * sizeof(*threads[i].steps));
		threads[i].rounds = 5 + i * 5;
	}
	/*
	 * Not in this thread: basic mode writes the end of a thread's records when the thread ends.
	 */
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i].handle, NULL, run, &threads[i]))
			return 2;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i].handle, NULL);
	if (__xray_log_finalize() != FINALIZED || __xray_log_flushLog() != FLUSHED)
		return 2;
	for (int i = 0; i < 3; i++)
		report(&threads[i]);
	return 0;
}
