/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of the calling thread's stack. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "code/local/local_unwind.h"

/* The kernel keeps at least this gap below a program's initial stack. */
#define FIRST_STACK_MOST (UINT64_C(128) << 20)
#define FIRST_STACK_LEAST (UINT64_C(8) << 20)
#define PAGE UINT64_C(4096)

extern void *__libc_stack_end __attribute__((weak)); /* NOLINT(bugprone-reserved-identifier) */

static __thread struct ts_local_unwind_bounds stack_bounds
	__attribute__((tls_model("initial-exec")));
static __thread bool is_known __attribute__((tls_model("initial-exec")));

static bool is_in(struct ts_local_unwind_bounds bounds, uint64_t sp)
{
	return sp >= bounds.low && sp < bounds.high;
}

/*
 * The initial stack of the process. It grows, up to a limit that may change: its lower bound is how
 * far it could grow, and nothing else is mapped in between. Everything above the stack pointer is
 * mapped.
 */
static struct ts_local_unwind_bounds first_stack(void)
{
	struct rlimit limit;
	uint64_t high, most = FIRST_STACK_LEAST;

	if (!&__libc_stack_end)
		return (struct ts_local_unwind_bounds){ 0, 0 };
	high = (uint64_t)(uintptr_t)__libc_stack_end;
	if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur > most)
		most = limit.rlim_cur < FIRST_STACK_MOST ? limit.rlim_cur : FIRST_STACK_MOST;
	return (struct ts_local_unwind_bounds){ high > most ? high - most : 0, high };
}

static struct ts_local_unwind_bounds thread_stack(void)
{
	struct ts_local_unwind_bounds bounds = { 0, 0 };
	pthread_attr_t attributes;
	void *address;
	size_t bytes;

	if (pthread_getattr_np(pthread_self(), &attributes))
		return bounds;
	if (!pthread_attr_getstack(&attributes, &address, &bytes))
		bounds = (struct ts_local_unwind_bounds){ (uint64_t)(uintptr_t)address,
							  (uint64_t)(uintptr_t)address + bytes };
	pthread_attr_destroy(&attributes);
	return bounds;
}

/* After fork() in a thread, the child's main thread still runs on that thread's stack. */
static void learn(uint64_t sp)
{
	struct ts_local_unwind_bounds first = first_stack();

	is_known = true;
	stack_bounds = is_in(first, sp) || syscall(SYS_gettid) == getpid() ? first : thread_stack();
	if (!is_in(stack_bounds, sp) && stack_bounds.low == first.low)
		stack_bounds = thread_stack();
}

/*
 * The kernel knows the alternate signal stack. On any other stack only the page of the stack
 * pointer is safe.
 */
static struct ts_local_unwind_bounds other_stack(uint64_t sp)
{
	struct ts_local_unwind_bounds bounds = { sp, (sp | (PAGE - 1)) + 1 };
	stack_t alternate;

	if (!sigaltstack(NULL, &alternate) && (alternate.ss_flags & SS_ONSTACK)) {
		uint64_t low = (uint64_t)(uintptr_t)alternate.ss_sp;
		struct ts_local_unwind_bounds signal_stack = { low, low + alternate.ss_size };

		if (is_in(signal_stack, sp))
			return signal_stack;
	}
	return bounds;
}

struct ts_local_unwind_bounds ts_local_unwind_bounds_of(uint64_t sp)
{
	if (__builtin_expect(is_in(stack_bounds, sp), 1))
		return stack_bounds;
	if (!is_known)
		learn(sp);
	return is_in(stack_bounds, sp) ? stack_bounds : other_stack(sp);
}
