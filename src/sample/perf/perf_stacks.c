/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of running threads by perf_event: a software clock interrupts a thread and the kernel
 * copies its registers and the top of its stack. The thread is not stopped and nothing is written
 * to it. Each thread has its own event and ring: the kernel shares a ring between threads on one
 * CPU only, and an event per thread and CPU would be far more.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "code/native_internal.h"
#include "sample/perf/perf_stacks.h"

#define STACK_BYTES 16384u
#define MAX_STACK_BYTES 61440u /* limit of a record: 64 KiB */
#define MIN_STACK_BYTES 1024u
#define REQUEST_NS UINT64_C(10000) /* from request to sample: the kernel's minimum */
/*
 * Samples arrive almost immediately, if at all: a sleep would take several times as long, while the
 * thread runs on.
 */
#define SPIN_NS 30000
#define SLEEP_NS 20000
#define REPEAT_NS 1000000 /* see repeat_request() */

#if defined(__x86_64__)
#define ABI PERF_SAMPLE_REGS_ABI_64
/* AX BX CX DX SI DI BP SP IP, R8 to R15: the kernel's order, with DWARF's numbers. */
#define REGISTER_MASK UINT64_C(0xff01ff)
static const uint8_t dwarf_numbers[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };
#else
#define ABI PERF_SAMPLE_REGS_ABI_64
#define REGISTER_MASK ((UINT64_C(1) << 33) - 1)
static const uint8_t dwarf_numbers[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
					 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
					 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };
#endif

struct thread {
	pid_t tid;
	int fd;
	struct perf_event_mmap_page *ring;
	size_t ring_bytes;
	bool is_wanted;
	int64_t requested_ns; /* when a sample was requested that has not arrived; 0: none */
	int64_t time_ns;      /* time of the newest sample; 0: none */
	struct ts_unwind_registers registers;
	uint8_t *stack;
	size_t stack_bytes; /* copied by the kernel */
};

struct ts_perf_stacks {
	struct ts_native_process *native;
	struct perf_event_attr attributes;
	struct thread *threads;
	size_t count, capacity;
	uint8_t *record; /* for a record that wraps around the ring */
	size_t page_bytes;
};

/* ---- opening an event ---- */

static int open_event(const struct perf_event_attr *attributes, pid_t tid)
{
	return (int)syscall(SYS_perf_event_open, attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void set_attributes(struct perf_event_attr *attributes, int64_t interval_ns,
			   uint32_t stack_bytes)
{
	*attributes = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(*attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = interval_ns > 0 ? (uint64_t)interval_ns : REQUEST_NS,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.disabled = interval_ns <= 0,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX, /* no wake-ups needed */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.sample_regs_user = REGISTER_MASK,
		.sample_stack_user = stack_bytes,
	};
}

static int refused(int errnum, struct ts_error *err)
{
	char paranoid[16] = "unknown";

	switch (errnum) {
	case EACCES:
		ts_procfs_read_line(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", paranoid,
				    sizeof(paranoid));
		return ts_error_set(
			err, TS_ECAP,
			"native stacks of running threads need perf_event_open(), which is denied: kernel.perf_event_paranoid is %s; set it to 2 or below, or run with CAP_PERFMON (for processes of others also CAP_SYS_PTRACE)",
			paranoid);
	case EPERM:
		return ts_error_set(
			err, TS_ECAP,
			"native stacks of running threads need perf_event_open(), which is forbidden here: a container's seccomp filter, or CAP_PERFMON is missing");
	case ENOSYS:
		return ts_error_set(
			err, TS_ECAP,
			"native stacks of running threads need perf_event_open(), which this kernel does not have");
	case EINVAL:
	case EOPNOTSUPP:
	case ENOENT:
		return ts_error_set(
			err, TS_ECAP,
			"native stacks of running threads: this kernel's perf_event_open() cannot copy registers and stacks");
	default:
		return ts_error_errno(err, errnum, "perf_event_open()");
	}
}

/*
 * Tried on ourselves, so that missing permissions are reported at once. Without privileges kernel
 * time is excluded.
 */
static int try_event(struct ts_perf_stacks *perf, struct ts_error *err)
{
	int fd = open_event(&perf->attributes, 0);

	if (fd < 0 && errno == EACCES) {
		perf->attributes.exclude_kernel = 1;
		fd = open_event(&perf->attributes, 0);
	}
	if (fd < 0)
		return refused(errno, err);
	close(fd);
	return TS_OK;
}

int ts_perf_stacks_open(struct ts_perf_stacks **ret_perf, struct ts_native_process *native,
			int64_t interval_ns, uint32_t stack_bytes, struct ts_error *err)
{
	struct ts_perf_stacks *perf = calloc(1, sizeof(*perf));
	int error;

	if (!perf)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	if (stack_bytes == 0)
		stack_bytes = STACK_BYTES;
	stack_bytes = TS_MIN(TS_MAX(stack_bytes, MIN_STACK_BYTES), MAX_STACK_BYTES) & ~7u;
	perf->native = native;
	perf->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	set_attributes(&perf->attributes, interval_ns, stack_bytes);
	error = try_event(perf, err);
	if (!error && !(perf->record = malloc(UINT16_MAX + 1)))
		error = ts_error_set(err, TS_ENOMEM, "no memory");
	if (error)
		ts_perf_stacks_close(perf);
	else
		*ret_perf = perf;
	return error;
}

/* ---- threads ---- */

static void release_thread(struct thread *thread)
{
	if (thread->ring)
		munmap(thread->ring, thread->ring_bytes);
	if (thread->fd >= 0)
		close(thread->fd);
	free(thread->stack);
}

/*
 * A counter page, then a power of two that holds two samples; or one, if memory cannot be locked.
 */
static bool map_ring(const struct ts_perf_stacks *perf, struct thread *thread)
{
	size_t bytes = perf->page_bytes;
	void *ring;

	while (bytes < 2 * (size_t)perf->attributes.sample_stack_user)
		bytes *= 2;
	bytes *= 2;
	for (int attempt = 0; attempt < 2; attempt++, bytes /= 2) {
		thread->ring_bytes = bytes + perf->page_bytes;
		ring = mmap(NULL, thread->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			    thread->fd, 0);
		if (ring != MAP_FAILED) {
			thread->ring = ring;
			return true;
		}
	}
	return false;
}

static int thread_refused(pid_t tid, size_t count, int errnum, struct ts_error *err)
{
	if (errnum == EMFILE || errnum == ENFILE)
		return ts_error_set(
			err, TS_ENOSPC,
			"native stacks of %zu running threads only: out of file descriptors; raise 'ulimit -n'",
			count);
	if (errnum == EPERM || errnum == ENOMEM)
		return ts_error_set(
			err, TS_ENOSPC,
			"native stacks of %zu running threads only: locked memory limit reached; raise kernel.perf_event_mlock_kb or 'ulimit -l', or run with CAP_IPC_LOCK",
			count);
	if (errnum == EACCES)
		return ts_error_set(
			err, TS_ECAP,
			"thread %d: perf_event_open() is denied: it belongs to another user; run as its owner or root, or with CAP_PERFMON and CAP_SYS_PTRACE",
			(int)tid);
	return ts_error_errno(err, errnum, "thread %d: perf_event_open()", (int)tid);
}

static int add_thread(struct ts_perf_stacks *perf, pid_t tid, struct ts_error *err)
{
	struct thread thread = { .tid = tid, .is_wanted = true };
	int error;

	if (ts_grow_array((void **)&perf->threads, &perf->capacity, perf->count + 1,
			  sizeof(*perf->threads)))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	thread.stack = malloc(perf->attributes.sample_stack_user);
	if (!thread.stack)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	thread.fd = open_event(&perf->attributes, tid);
	if (thread.fd >= 0 && map_ring(perf, &thread)) {
		perf->threads[perf->count++] = thread;
		return TS_OK;
	}
	error = errno == ESRCH ? TS_OK : /* it has exited: not a failure */
			thread_refused(tid, perf->count, errno, err);
	release_thread(&thread);
	return error;
}

static struct thread *find_thread(const struct ts_perf_stacks *perf, pid_t tid)
{
	for (size_t i = 0; i < perf->count; i++) {
		if (perf->threads[i].tid == tid)
			return &perf->threads[i];
	}
	return NULL;
}

static void drop_unwanted(struct ts_perf_stacks *perf)
{
	size_t kept = 0;

	for (size_t i = 0; i < perf->count; i++) {
		if (perf->threads[i].is_wanted)
			perf->threads[kept++] = perf->threads[i];
		else
			release_thread(&perf->threads[i]);
	}
	perf->count = kept;
}

int ts_perf_stacks_set_threads(struct ts_perf_stacks *perf, const pid_t *tids, size_t count,
			       struct ts_error *err)
{
	int error = TS_OK;

	for (size_t i = 0; i < perf->count; i++)
		perf->threads[i].is_wanted = false;
	for (size_t i = 0; i < count; i++) {
		struct thread *thread = find_thread(perf, tids[i]);

		if (thread)
			thread->is_wanted = true;
	}
	drop_unwanted(perf);
	for (size_t i = 0; i < count && !error; i++) {
		if (!find_thread(perf, tids[i]))
			error = add_thread(perf, tids[i], err);
	}
	return error;
}

void ts_perf_stacks_close(struct ts_perf_stacks *perf)
{
	if (!perf)
		return;
	for (size_t i = 0; i < perf->count; i++)
		release_thread(&perf->threads[i]);
	free(perf->threads);
	free(perf->record);
	free(perf);
}

/* ---- asking ---- */

/*
 * The kernel disables an event a moment after its last sample can be read, and with it a request
 * that is made in that moment. Has no effect on an event that is enabled.
 */
static void repeat_request(const struct thread *thread)
{
	ioctl(thread->fd, PERF_EVENT_IOC_ENABLE, 0);
}

/* One sample per request: not another one before it has arrived. */
void ts_perf_stacks_request(struct ts_perf_stacks *perf, const pid_t *tids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct thread *thread = find_thread(perf, tids[i]);
		int64_t now_ns = ts_clock_monotonic_ns();

		if (thread && thread->requested_ns)
			repeat_request(thread);
		else if (thread && ioctl(thread->fd, PERF_EVENT_IOC_REFRESH, 1) == 0)
			thread->requested_ns = now_ns;
	}
}

static void repeat_requests(const struct ts_perf_stacks *perf)
{
	for (size_t i = 0; i < perf->count; i++)
		if (perf->threads[i].requested_ns)
			repeat_request(&perf->threads[i]);
}

static bool is_any_requested(const struct ts_perf_stacks *perf)
{
	for (size_t i = 0; i < perf->count; i++) {
		if (perf->threads[i].requested_ns)
			return true;
	}
	return false;
}

bool ts_perf_stacks_wait(struct ts_perf_stacks *perf, int64_t at_most_ns)
{
	const struct timespec pause = { .tv_nsec = SLEEP_NS };
	int64_t start_ns = ts_clock_monotonic_ns(), passed_ns = 0, repeat_ns = REPEAT_NS;

	ts_perf_stacks_drain(perf);
	while (is_any_requested(perf) && passed_ns < at_most_ns) {
		if (passed_ns > SPIN_NS)
			nanosleep(&pause, NULL);
		if (passed_ns > repeat_ns) {
			repeat_requests(perf);
			repeat_ns += REPEAT_NS;
		}
		ts_perf_stacks_drain(perf);
		passed_ns = ts_clock_monotonic_ns() - start_ns;
	}
	return !is_any_requested(perf);
}

/* ---- samples ---- */

static void take_registers(struct thread *thread, const uint64_t *values)
{
	thread->registers.known = 0;
	for (size_t i = 0; i < TS_ARRAY_SIZE(dwarf_numbers); i++) {
		thread->registers.known |= (uint64_t)1 << dwarf_numbers[i];
		thread->registers.values[dwarf_numbers[i]] = values[i];
	}
}

/* After the header, in this order, as sample_type requests. */
struct sample_start {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t abi;
	uint64_t registers[TS_ARRAY_SIZE(dwarf_numbers)];
	uint64_t stack_bytes;
};

static int64_t sample_time(const uint8_t *content, size_t bytes)
{
	size_t at = offsetof(struct sample_start, time_ns);
	int64_t time_ns = 0;

	if (bytes >= at + sizeof(time_ns))
		memcpy(&time_ns, content + at, sizeof(time_ns));
	return time_ns;
}

static void take_sample(const struct ts_perf_stacks *perf, struct thread *thread,
			const uint8_t *content, size_t bytes)
{
	struct sample_start start;
	uint64_t copied;

	/* A thread without user context at this moment has neither registers nor stack: shorter. */
	if (bytes < sizeof(start))
		return;
	memcpy(&start, content, sizeof(start));
	if (start.abi != ABI || start.stack_bytes > perf->attributes.sample_stack_user ||
	    bytes < sizeof(start) + start.stack_bytes + sizeof(copied))
		return;
	memcpy(&copied, content + sizeof(start) + start.stack_bytes, sizeof(copied));
	thread->time_ns = (int64_t)start.time_ns;
	thread->stack_bytes = TS_MIN(copied, start.stack_bytes);
	memcpy(thread->stack, content + sizeof(start), thread->stack_bytes);
	take_registers(thread, start.registers);
}

static void copy_out(const struct thread *thread, uint64_t at, void *to, size_t bytes)
{
	const uint8_t *data = (const uint8_t *)thread->ring + thread->ring->data_offset;
	size_t size = thread->ring->data_size, offset = (size_t)(at % size);
	size_t first = TS_MIN(bytes, size - offset);

	memcpy(to, data + offset, first);
	memcpy((uint8_t *)to + first, data, bytes - first);
}

/* Only the newest sample is needed: skip earlier ones by their headers. */
static bool find_newest(const struct thread *thread, uint64_t tail, uint64_t head, uint64_t *ret_at,
			size_t *ret_bytes)
{
	bool is_found = false;

	while (head - tail >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;

		copy_out(thread, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		if (header.type == PERF_RECORD_SAMPLE) {
			is_found = true;
			*ret_at = tail + sizeof(header);
			*ret_bytes = header.size - sizeof(header);
		}
		tail += header.size;
	}
	return is_found;
}

static void drain_thread(struct ts_perf_stacks *perf, struct thread *thread)
{
	uint64_t head = __atomic_load_n(&thread->ring->data_head, __ATOMIC_ACQUIRE), at;
	uint64_t tail = thread->ring->data_tail;
	size_t bytes = 0;

	if (head == tail)
		return;
	if (find_newest(thread, tail, head, &at, &bytes)) {
		copy_out(thread, at, perf->record, bytes);
		take_sample(perf, thread, perf->record, bytes);
		/* A repeated request may give one sample more, which does not answer the next. */
		if (sample_time(perf->record, bytes) >= thread->requested_ns)
			thread->requested_ns = 0;
	}
	/* The kernel may overwrite what was read from here on. */
	__atomic_store_n(&thread->ring->data_tail, head, __ATOMIC_RELEASE);
}

void ts_perf_stacks_drain(struct ts_perf_stacks *perf)
{
	for (size_t i = 0; i < perf->count; i++)
		drain_thread(perf, &perf->threads[i]);
}

size_t ts_perf_stacks_get(struct ts_perf_stacks *perf, pid_t tid, int64_t since_ns,
			  int64_t *ret_time_ns, struct ts_native_frame *ret_frames, size_t count,
			  bool *ret_complete)
{
	const struct thread *thread = find_thread(perf, tid);

	*ret_complete = false;
	if (!thread || thread->time_ns == 0 || thread->time_ns < since_ns)
		return 0;
	*ret_time_ns = thread->time_ns;
	return ts_unwind_stack(perf->native, &thread->registers, thread->stack,
			       thread->registers.values[TS_REGISTER_SP], thread->stack_bytes,
			       ret_frames, count, ret_complete);
}
