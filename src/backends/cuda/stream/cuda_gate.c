/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a window opens, closes or fails: what the agent's windows (replay_window.c) ask of CUDA. And
 * how records are appended meanwhile.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/stream/cuda_capture.h"

#define WHY_BYTES 300

static pthread_mutex_t lock;
static atomic_bool has_lock;
static atomic_bool is_begun;
static bool is_checked;
static _Atomic uint64_t pieces; /* of the snapshot; UINT64_MAX: not known */

/* Why no window can open any more; "": none. Written once. */
static char prevented[WHY_BYTES];
static atomic_int prevented_state; /* 0: free, 1: being written, 2: written */

/* ---- the lock ---- */

/* Handlers may call each other with it. */
static void make_lock(void)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

void capture_lock(void)
{
	pthread_mutex_lock(&lock);
}

void capture_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

bool capture_is_open(void)
{
	return ts_replay_is_open();
}

bool capture_is_checked(void)
{
	return is_checked;
}

/* ---- failing ---- */

void capture_fail(const char *format, ...)
{
	char why[WHY_BYTES];
	va_list list;

	if (!ts_replay_is_open() && !ts_replay_is_opening())
		return;
	va_start(list, format);
	vsnprintf(why, sizeof(why), format, list);
	va_end(list);
	ts_replay_fail_window(why);
}

void capture_prevent(const char *format, ...)
{
	int is_free = 0;
	va_list list;

	if (atomic_compare_exchange_strong(&prevented_state, &is_free, 1)) {
		va_start(list, format);
		vsnprintf(prevented, sizeof(prevented), format, list);
		va_end(list);
		atomic_store(&prevented_state, 2);
	}
	if (atomic_load(&prevented_state) == 2)
		capture_fail("%s", prevented);
}

/* ---- records ---- */

static bool lock_channel(void)
{
	return ts_replay_is_opening() ? ts_replay_lock() : ts_replay_lock_window();
}

/* CUPTI tells the wrapper's thread the id of its call, inside the driver. */
static bool has_correlation(uint32_t kind)
{
	return kind == TS_COMMAND_LAUNCH || kind == TS_COMMAND_COPY || kind == TS_COMMAND_FILL;
}

uint64_t capture_command(const struct ts_replay_command *row)
{
	struct ts_replay_command copy = *row;

	return capture_command_with(&copy, NULL, 0);
}

uint64_t capture_command_with(struct ts_replay_command *row, const void *data, uint64_t bytes)
{
	if (!row->correlation && row->queue && has_correlation(row->kind))
		row->correlation = cuda_thread.correlation;
	return ts_replay_append_with(row, data, bytes);
}

/* Those of a window; another one has its own. The channel is locked. */
static struct {
	uint64_t *numbers;
	size_t count, capacity;
} described;

static void keep_number(uint64_t number)
{
	if (described.count && described.numbers[described.count - 1] == number)
		return;
	if (described.count == described.capacity) {
		size_t capacity = described.capacity ? 2 * described.capacity : 256;
		uint64_t *numbers = realloc(described.numbers, capacity * sizeof(*numbers));

		if (!numbers)
			return;
		described.numbers = numbers;
		described.capacity = capacity;
	}
	described.numbers[described.count++] = number;
}

/* They are no part of the window that opens now. */
static void end_described(void)
{
	if (!ts_replay_lock())
		return;
	for (size_t i = 0; i < described.count; i++)
		ts_replay_gone(described.numbers[i]);
	described.count = 0;
	ts_replay_unlock();
}

void capture_object(const struct ts_replay_object *object)
{
	if (!lock_channel())
		return;
	ts_replay_object(object);
	keep_number(object->number);
	ts_replay_unlock();
}

void capture_gone(uint64_t number)
{
	if (!number || !lock_channel())
		return;
	ts_replay_gone(number);
	ts_replay_unlock();
}

uint64_t capture_blob(const void *data, uint64_t bytes)
{
	uint64_t number;

	if (!bytes || !lock_channel())
		return 0;
	number = ts_replay_blob(data, bytes);
	ts_replay_unlock();
	return number;
}

uint64_t capture_last_sequence(void)
{
	return ts_replay_last_sequence();
}

/* ---- windows ---- */

/*
 * Functions without a wrapper do not fail the window that they are called in: that is made up for
 * when it is to close, also if it cannot be closed in time. Then states do not matter any more.
 */
static void look_at_stubs(void)
{
	char why[WHY_BYTES];

	if (capture_refused_used(why, sizeof(why)))
		capture_fail("%s", why);
}

static bool is_blocked(char *why, size_t bytes)
{
	bool is_closing = capture_is_open();

	if (is_closing)
		look_at_stubs();
	if (capture_any_capturing()) {
		snprintf(why, bytes, "a stream capture is in progress");
		return true;
	}
	return !is_closing && capture_refused_state(why, bytes) != NULL;
}

static bool is_unused(void)
{
	return !capture_context_next(NULL);
}

static const char *reason_against(void)
{
	if (atomic_load(&prevented_state) == 2)
		return prevented;
	return capture_modules_refused();
}

static void forget(void)
{
	end_described();
	capture_objects_forget();
	capture_order_forget();
	capture_graphs_forget();
	host_window_opens();
	capture_memory_forget();
	capture_modules_forget();
}

/* The gate is held exclusively, but calls that do not pass it use the lock. */
static const char *open_window(char *why, size_t bytes, uint64_t *ret_bytes)
{
	const char *reason = reason_against();
	uint64_t count = 0;

	if (reason)
		return reason;
	capture_lock();
	forget();
	capture_refused_begin();
	capture_objects_describe();
	capture_memory_describe();
	host_memory_describe();
	capture_globals_find();
	reason = capture_snapshot(why, bytes, ret_bytes, &count);
	atomic_store(&pieces, count);
	capture_unlock();
	return reason;
}

static void opened(void)
{
	capture_snapshot_opened();
}

static const char *close_window(char *why, size_t bytes)
{
	const char *reason = capture_refused_used(why, bytes);

	if (!reason)
		capture_final_checks();
	if (!reason)
		capture_snapshot_finish();
	return reason;
}

void capture_pieces(uint64_t count)
{
	atomic_store(&pieces, count);
}

static uint64_t known_pieces(void)
{
	return atomic_load(&pieces);
}

static void ended(enum ts_replay_end how, const char *why)
{
	capture_snapshot_ended();
	/* Else another thread may still compare pages: they are kept until the next window. */
	if (how == TS_REPLAY_END_CLOSED)
		capture_checks_end();
	if (why)
		ts_accelerator_lost("replayable windows", 1, why);
}

/* CUDA does not survive a fork; a child whose parent had not used it starts afresh. */
static bool forked(void)
{
	make_lock();
	return !cuda_is_forked();
}

static const struct ts_replay_client client = {
	.size = sizeof(client),
	.is_blocked = is_blocked,
	.finish = capture_contexts_finish,
	.is_unused = is_unused,
	.open = open_window,
	.opened = opened,
	.close = close_window,
	.pieces = known_pieces,
	.ended = ended,
	.forked = forked,
};

/* ---- start and stop ---- */

void capture_start(void)
{
	const struct ts_replay_settings *settings = ts_replay_settings();

	if (settings->mode == TS_REPLAY_OFF)
		return;
	if (!atomic_exchange(&has_lock, true))
		make_lock();
	is_checked = settings->mode == TS_REPLAY_CHECKED;
	ts_replay_bulk_expect();
	capture_dispatch_start();
	__atomic_store_n(&cuda_replaying, 1, __ATOMIC_RELEASE);
}

void capture_begin(void)
{
	if (!atomic_load_explicit(&is_begun, memory_order_relaxed) &&
	    !atomic_exchange(&is_begun, true)) {
		capture_find_release();
		ts_replay_start(&client);
	}
}

void capture_forked(void)
{
	__atomic_store_n(&cuda_replaying, 0, __ATOMIC_RELEASE);
}

void capture_stop(void)
{
	if (atomic_load(&is_begun))
		ts_replay_stop();
}
