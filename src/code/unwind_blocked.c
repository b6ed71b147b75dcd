/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of blocked threads, from /proc and their memory; and on request of any thread, by stopping
 * it briefly.
 *
 * /proc/PID/task/TID/syscall gives the stack pointer and instruction of a blocked thread, but not
 * the callee-saved registers: unwinding takes them from the stack as far as functions have saved
 * them there, and ends incomplete if it needs one that is not. The stack is copied between two
 * reads of that file, and only counts if both agree.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "code/native_internal.h"

#define RED_ZONE 128u /* red zone below the stack pointer, of leaf functions */
#define FIRST_BYTES 16384u
#define MAX_BYTES (1u << 20)
#define STOP_NS INT64_C(200000000) /* a thread that has not stopped by then will not */
#define STOP_LOOK_NS 100000

/* ---- the stack ---- */

/* Incomplete because the copy ended: retry with a larger one. */
static size_t unwind_copy(struct ts_native_process *native,
			  const struct ts_unwind_registers *registers, size_t bytes,
			  struct ts_native_frame *ret_frames, size_t count, bool *ret_complete,
			  bool *ret_may_be_more)
{
	uint64_t start = registers->values[TS_REGISTER_SP] - RED_ZONE;
	size_t got;

	*ret_may_be_more = false;
	*ret_complete = false;
	if (!native->stack)
		native->stack = ts_alloc_array(MAX_BYTES, 1);
	if (!native->stack)
		return 0;
	got = ts_native_read(native, start, native->stack, bytes);
	/* Memory may begin at the page of the stack pointer, if nothing was ever deeper. */
	if (!got) {
		start += RED_ZONE;
		got = ts_native_read(native, start, native->stack, bytes);
	}
	*ret_may_be_more = got == bytes;
	return ts_unwind_stack(native, registers, native->stack, start, got, ret_frames, count,
			       ret_complete);
}

static size_t unwind_memory(struct ts_native_process *native,
			    const struct ts_unwind_registers *registers,
			    struct ts_native_frame *ret_frames, size_t count, bool *ret_complete)
{
	bool may_be_more;
	size_t found = unwind_copy(native, registers, FIRST_BYTES, ret_frames, count, ret_complete,
				   &may_be_more);

	if (!*ret_complete && may_be_more && found < count)
		found = unwind_copy(native, registers, MAX_BYTES, ret_frames, count, ret_complete,
				    &may_be_more);
	return found;
}

/* ---- threads that wait ---- */

static int read_syscall_file(const struct ts_native_process *native, pid_t tid, char *buffer,
			     size_t bytes)
{
	char path[64];
	TS_AUTO_FD int fd = -1;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)native->pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	got = read(fd, buffer, bytes - 1);
	if (got <= 0)
		return -EIO;
	buffer[got] = '\0';
	return (int)got;
}

/* "NUMBER 0xARGUMENT x 6 0xSP 0xPC", "-1 0xSP 0xPC" in a fault, "running". */
static bool parse_syscall(const char *text, struct ts_unwind_registers *ret_registers)
{
	uint64_t values[8];
	size_t count = 0;

	for (const char *at = strchr(text, ' '); at && count < 8; at = strchr(at, ' ')) {
		char *end;

		values[count++] = strtoull(at + 1, &end, 16);
		if (end == at + 1)
			return false;
		at = end;
	}
	if ((count != 8 && count != 2) || values[count - 1] == 0)
		return false;
	*ret_registers = (struct ts_unwind_registers){ .known = (uint64_t)1 << TS_REGISTER_SP |
								(uint64_t)1 << TS_REGISTER_PC };
	ret_registers->values[TS_REGISTER_SP] = values[count - 2];
	ret_registers->values[TS_REGISTER_PC] = values[count - 1];
	return true;
}

size_t ts_unwind_blocked_thread(struct ts_native_process *native, pid_t tid,
				struct ts_native_frame *ret_frames, size_t count,
				bool *ret_complete)
{
	struct ts_unwind_registers registers;
	char before[256], after[256];
	size_t found;

	*ret_complete = false;
	if (read_syscall_file(native, tid, before, sizeof(before)) < 0 ||
	    !parse_syscall(before, &registers))
		return 0;
	found = unwind_memory(native, &registers, ret_frames, count, ret_complete);
	if (read_syscall_file(native, tid, after, sizeof(after)) < 0 || strcmp(before, after) != 0)
		return 0;
	return found;
}

/* ---- threads that are stopped ---- */

#if defined(__x86_64__)

static void take_registers(const struct user_regs_struct *user, struct ts_unwind_registers *ret)
{
	const uint64_t values[] = { user->rax, user->rdx, user->rcx, user->rbx, user->rsi,
				    user->rdi, user->rbp, user->rsp, user->r8,  user->r9,
				    user->r10, user->r11, user->r12, user->r13, user->r14,
				    user->r15, user->rip };

	memcpy(ret->values, values, sizeof(values));
	ret->known = ((uint64_t)1 << TS_ARRAY_SIZE(values)) - 1;
}

/* System calls that the kernel does not restart after a stop (signal(7)). */
static bool is_never_restarted(uint64_t number)
{
	static const uint16_t numbers[] = {
		SYS_epoll_wait,   SYS_epoll_pwait, 441 /* epoll_pwait2 */,
		SYS_semop,        SYS_semtimedop,  SYS_rt_sigtimedwait,
		SYS_io_getevents, SYS_recvfrom,    SYS_recvmsg,
		SYS_accept,       SYS_accept4,     SYS_sendto,
		SYS_sendmsg
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(numbers); i++) {
		if (numbers[i] == number)
			return true;
	}
	return false;
}

/*
 * So that the program sees no additional EINTR: moves the thread back to the system call
 * instruction.
 */
static void restart_call(pid_t tid, struct user_regs_struct *user)
{
	struct iovec part = { .iov_base = user, .iov_len = sizeof(*user) };

	if (user->rax != (uint64_t)-EINTR || !is_never_restarted(user->orig_rax))
		return;
	user->rax = user->orig_rax;
	user->rip -= 2;
	ptrace(PTRACE_SETREGSET, tid, (void *)(uintptr_t)1 /* NT_PRSTATUS */, &part);
}

#else

static void take_registers(const struct user_regs_struct *user, struct ts_unwind_registers *ret)
{
	memcpy(ret->values, user->regs, sizeof(user->regs));
	ret->values[TS_REGISTER_SP] = user->sp;
	ret->values[TS_REGISTER_PC] = user->pc;
	ret->known = ((uint64_t)1 << TS_UNWIND_REGISTERS) - 1;
}

/* The result overwrites the first argument, which cannot be recovered: these see EINTR. */
static void restart_call(pid_t tid, struct user_regs_struct *user)
{
	(void)tid;
	(void)user;
}

#endif

/*
 * It may stop for another reason first, which is passed on when it continues: 0 or a signal to
 * deliver. -1: it is gone.
 */
static int wait_for_stop(pid_t tid)
{
	int64_t until_ns = ts_clock_monotonic_ns() + STOP_NS;
	const struct timespec pause = { .tv_nsec = STOP_LOOK_NS };
	int status;
	pid_t got;

	/*
	 * A thread in uninterruptible sleep does not stop: it is detached when the tracing thread
	 * exits.
	 */
	while ((got = waitpid(tid, &status, __WALL | WNOHANG)) <= 0) {
		if ((got < 0 && errno != EINTR) || ts_clock_monotonic_ns() > until_ns)
			return -1;
		nanosleep(&pause, NULL);
	}
	if (!WIFSTOPPED(status))
		return -1;
	return status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
}

size_t ts_unwind_stopped_thread(struct ts_native_process *native, pid_t tid,
				struct ts_native_frame *ret_frames, size_t count,
				bool *ret_complete)
{
	return ts_unwind_stopped_thread_with(native, tid, NULL, NULL, ret_frames, count,
					     ret_complete);
}

struct stop {
	struct ts_native_process *native;
	pid_t tid;
	void (*stopped)(void *context);
	void *context;
	struct ts_native_frame *frames;
	size_t count;
	bool is_complete;
	size_t found;
};

static void look_at_stopped(struct stop *stop, int held_signal)
{
	struct user_regs_struct user;
	struct iovec part = { .iov_base = &user, .iov_len = sizeof(user) };
	struct ts_unwind_registers registers;

	if (ptrace(PTRACE_GETREGSET, stop->tid, (void *)(uintptr_t)1 /* NT_PRSTATUS */, &part) !=
		    0 ||
	    part.iov_len != sizeof(user))
		return;
	take_registers(&user, &registers);
	stop->found = unwind_memory(stop->native, &registers, stop->frames, stop->count,
				    &stop->is_complete);
	if (stop->stopped)
		stop->stopped(stop->context);
	/* An EINTR that comes with a signal is the program's own. */
	if (!held_signal)
		restart_call(stop->tid, &user);
}

/*
 * On a thread of its own: the kernel detaches everything when it exits, even a thread that has not
 * stopped in time.
 */
static void *stop_thread(void *argument)
{
	struct stop *stop = argument;
	int held_signal;

	if (ptrace(PTRACE_SEIZE, stop->tid, NULL, NULL) != 0 ||
	    ptrace(PTRACE_INTERRUPT, stop->tid, NULL, NULL) != 0)
		return NULL;
	held_signal = wait_for_stop(stop->tid);
	if (held_signal < 0)
		return NULL;
	look_at_stopped(stop, held_signal);
	ptrace(PTRACE_DETACH, stop->tid, NULL, (void *)(uintptr_t)held_signal);
	return NULL;
}

size_t ts_unwind_stopped_thread_with(struct ts_native_process *native, pid_t tid,
				     void (*stopped)(void *context), void *context,
				     struct ts_native_frame *ret_frames, size_t count,
				     bool *ret_complete)
{
	struct stop stop = { .native = native,
			     .tid = tid,
			     .stopped = stopped,
			     .context = context,
			     .frames = ret_frames,
			     .count = count };
	pthread_t thread;

	*ret_complete = false;
	if (pthread_create(&thread, NULL, stop_thread, &stop))
		return 0;
	pthread_join(thread, NULL);
	*ret_complete = stop.is_complete;
	return stop.found;
}
