/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open ranges. Push/pop ranges nest by thread and are emitted at both ends, so that a kill leaves
 * them open. Start/end ranges are emitted at their end, each on the first free track. A range may
 * open a window.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <tracesmith/accelerator.h>

#include "backends/cuda/cuda_internal.h"
#include "backends/cuda/nvtx/nvtx.h"

#define DEPTH 160u
#define OPEN_AT_MOST 1024u /* a power of two */
#define KEPT_NAME 200u

/* ---- windows ---- */

static struct {
	uint32_t length; /* 0: no range opens a window */
	bool has_domain;
	char name[256];
	const char *domain; /* in `name` */
} window;

/* "nvtx:NAME[@DOMAIN]" */
static void read_window(void)
{
	const char *setting = ts_accelerator_setting("window");
	char *at;

	if (!setting || strncmp(setting, "nvtx:", 5) != 0 ||
	    strlen(setting + 5) >= sizeof(window.name))
		return;
	memcpy(window.name, setting + 5, strlen(setting + 5) + 1);
	at = strrchr(window.name, '@');
	if (at) {
		*at = '\0';
		window.domain = at + 1;
		window.has_domain = true;
	}
	window.length = (uint32_t)strlen(window.name);
}

static bool is_window(const struct nvtx_event *event)
{
	return __builtin_expect(window.length != 0, 0) && event->name.length == window.length &&
	       !memcmp(event->name.text, window.name, window.length) &&
	       (!window.has_domain || !strcmp(event->domain->name, window.domain));
}

static void move_window(bool open)
{
	ts_accelerator_window("nvtx", open);
}

void cuda_profiler_switched(bool is_on)
{
	ts_accelerator_window("cuda-profiler-api", is_on);
}

/* ---- push/pop, by thread ---- */

struct range {
	const struct nvtx_domain *domain;
	uint32_t level; /* in its domain */
	bool is_stored;
	bool is_window;
	const char *name; /* NULL: it is in `text`, truncated */
	char text[40];
};

/* One heap block per thread, to save space for thread-local variables. */
struct thread {
	uint32_t depth;
	uint32_t beyond; /* open ranges beyond the limit */
	uint32_t lost;   /* number of these since the last report */
	struct range ranges[DEPTH];
};

static __thread struct thread *this_thread __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_key;
static bool has_key;

/* Ranges that a thread leaves open stay open in the trace; windows are closed. */
static void free_thread(void *block)
{
	struct thread *thread = block;

	for (uint32_t i = 0; i < thread->depth; i++)
		if (thread->ranges[i].is_window)
			move_window(false);
	this_thread = NULL;
	munmap(thread, sizeof(*thread));
}

/* A child has emitted none of the open ranges, and keeps no window open. */
static void fork_in_child(void)
{
	struct thread *thread = this_thread;

	for (uint32_t i = 0; thread && i < thread->depth; i++)
		thread->ranges[i].is_stored = thread->ranges[i].is_window = false;
}

static void forget_open(void);

static void fork_in_child_all(void)
{
	fork_in_child();
	forget_open();
}

static void prepare(void)
{
	read_window();
	has_key = !pthread_key_create(&thread_key, free_thread);
	pthread_atfork(NULL, NULL, fork_in_child_all);
}

void nvtx_ranges_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, prepare);
}

__attribute__((noinline)) static struct thread *new_thread(void)
{
	struct thread *thread = mmap(NULL, sizeof(*thread), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (thread == MAP_FAILED)
		return NULL;
	if (has_key)
		pthread_setspecific(thread_key, thread);
	this_thread = thread;
	return thread;
}

/* The innermost open range of a domain; NULL: none. */
static struct range *innermost(struct thread *thread, const struct nvtx_domain *domain)
{
	for (uint32_t i = thread->depth; i > 0; i--)
		if (thread->ranges[i - 1].domain == domain)
			return &thread->ranges[i - 1];
	return NULL;
}

static void keep_text(struct range *range, const struct nvtx_name *name)
{
	size_t space = sizeof(range->text) - 1,
	       length = name->length < space ? name->length : space;

	memcpy(range->text, name->text, length);
	range->text[length] = '\0';
}

int nvtx_push(const struct nvtx_event *event)
{
	struct thread *thread = this_thread ? this_thread : new_thread();
	const struct range *outer;
	struct range *range;

	if (!thread)
		return NVTX_NO_LEVEL;
	if (thread->depth == DEPTH) {
		thread->lost += ts_enabled();
		return (int)(DEPTH + thread->beyond++);
	}
	outer = innermost(thread, event->domain);
	range = &thread->ranges[thread->depth];
	range->domain = event->domain;
	range->level = outer ? outer->level + 1 : 0;
	range->is_stored = false;
	range->is_window = is_window(event);
	if (range->is_window)
		move_window(true);
	if (ts_enabled()) {
		range->name = nvtx_emit(event);
		if (!range->name)
			keep_text(range, &event->name);
		range->is_stored = true;
	}
	/*
	 * A signal handler that pushes and pops here leaves everything as it was, except for what
	 * it overwrote.
	 */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->depth++;
	return (int)range->level;
}

/* A range that began inside a window gets its end, even after the window. */
static void end_stored(void)
{
	if (ts_enabled())
		TS_END();
	else
		ts_accelerator_end();
}

/* Ranges of other domains that began inside it continue: they end here and begin again. */
static void end_below_others(struct thread *thread, const struct range *range)
{
	struct range *last = &thread->ranges[thread->depth - 1];

	for (const struct range *other = last; other >= range; other--)
		if (other->is_stored)
			end_stored();
	for (const struct range *other = range + 1; other <= last; other++)
		if (other->is_stored)
			nvtx_emit_again(other->name ? other->name : other->text, other->domain);
}

/* Its domain is not known; its level is returned as if there were only one. */
static int pop_beyond(struct thread *thread)
{
	uint32_t lost = thread->lost;

	if (thread->beyond == 1 && lost) {
		thread->lost = 0;
		ts_accelerator_lost("slice", lost, "NVTX ranges are nested too deeply");
	}
	return (int)(DEPTH + --thread->beyond);
}

int nvtx_pop(const struct nvtx_domain *domain)
{
	struct thread *thread = this_thread;
	struct range *range = thread ? innermost(thread, domain) : NULL, popped;

	if (thread && thread->beyond)
		return pop_beyond(thread);
	if (!range)
		return NVTX_NO_LEVEL;
	popped = *range;
	if (range != &thread->ranges[thread->depth - 1]) {
		if (popped.is_stored)
			end_below_others(thread, range);
		memmove(range, range + 1,
			(size_t)(&thread->ranges[thread->depth] - (range + 1)) * sizeof(*range));
	} else if (popped.is_stored) {
		end_stored();
	}
	thread->depth--;
	if (popped.is_window)
		move_window(false);
	return (int)popped.level;
}

/* ---- start/end, across threads ---- */

struct open_range {
	uint64_t id; /* 0: free */
	struct nvtx_event event;
	bool is_stored, is_window;
	char name[KEPT_NAME];
};

static struct open_range open_ranges[OPEN_AT_MOST];
static uint64_t taken[OPEN_AT_MOST / 64]; /* one bit per slot */
static uint64_t started;

/* The first free slot, so that there are few tracks; OPEN_AT_MOST: none. */
static uint32_t take_slot(void)
{
	for (uint32_t i = 0; i < OPEN_AT_MOST / 64; i++) {
		uint64_t before = __atomic_load_n(&taken[i], __ATOMIC_RELAXED);

		while (~before) {
			uint64_t bit = ~before & (before + 1);

			if (__atomic_compare_exchange_n(&taken[i], &before, before | bit, false,
							__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				return i * 64 + (uint32_t)__builtin_ctzll(bit);
		}
	}
	return OPEN_AT_MOST;
}

static void release_slot(uint32_t slot)
{
	__atomic_fetch_and(&taken[slot / 64], ~(UINT64_C(1) << slot % 64), __ATOMIC_RELEASE);
}

static void forget_open(void)
{
	for (uint32_t i = 0; i < OPEN_AT_MOST; i++)
		open_ranges[i].is_stored = open_ranges[i].is_window = false;
}

/* Copies the name, because the program may free its own before the end. */
static void keep_event(struct open_range *range, const struct nvtx_event *event)
{
	uint32_t length = event->name.length < KEPT_NAME ? event->name.length : KEPT_NAME - 1;
	union nvtx_text text = { .ascii = range->name };

	memcpy(range->name, event->name.text, length);
	range->name[length] = '\0';
	range->event = *event;
	range->event.kind = NVTX_KIND_SPAN;
	range->event.name = nvtx_name_of(NVTX_TEXT_ASCII, text, NULL);
	range->event.start = ts_now();
}

uint64_t nvtx_start(const struct nvtx_event *event)
{
	uint32_t slot = take_slot();
	struct open_range *range;
	uint64_t id;

	if (slot == OPEN_AT_MOST) {
		ts_accelerator_lost("slice", 1, "too many NVTX ranges are open");
		return 0;
	}
	range = &open_ranges[slot];
	range->is_window = is_window(event);
	if (range->is_window)
		move_window(true);
	keep_event(range, event);
	range->event.track = TS_TRACK_RANGES + slot;
	range->is_stored = ts_enabled();
	id = __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED) * OPEN_AT_MOST + slot;
	__atomic_store_n(&range->id, id, __ATOMIC_RELEASE);
	return id;
}

void nvtx_end(uint64_t id)
{
	uint32_t slot = (uint32_t)(id % OPEN_AT_MOST);
	struct open_range *range = &open_ranges[slot];
	bool was_window;

	if (!id || !__atomic_compare_exchange_n(&range->id, &id, 0, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
		return;
	if (range->is_stored && ts_enabled())
		nvtx_emit(&range->event);
	was_window = range->is_window;
	release_slot(slot);
	if (was_window)
		move_window(false);
}

/* Emits the start of ranges that are open at exit; the agent stops after us. */
__attribute__((destructor)) static void emit_open(void)
{
	for (uint32_t i = 0; i < OPEN_AT_MOST; i++) {
		const struct open_range *range = &open_ranges[i];

		if (__atomic_load_n(&range->id, __ATOMIC_ACQUIRE) && range->is_stored &&
		    ts_enabled())
			ts_tracer_begin(ts_tracer_process(), range->name,
					range->event.domain->category, range->event.track, NULL, 0);
	}
}
