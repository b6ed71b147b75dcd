/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate that every call passes, and when a window of the command stream opens, closes or fails
 * (docs/replay.md, section 4). Does not know what the calls are: see struct ts_replay_client.
 *
 * A window that is due is opened by the thread that notices, inside its call and before the call's
 * own work. It does not wait there for what only the program can end (user events, stream captures,
 * calls that do not return): the call continues, and a later one tries again until the timeout.
 * Only non-empty queues are waited for with the gate held, because they empty by themselves.
 */
#include <tracesmith/replay.h>

#include <errno.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/accelerator.h>
#include <tracesmith/schema.h>

#include "agent/replay_channel.h"
#include "base/local/stream_text.h"

#define MS INT64_C(1000000)
#define FIRST_SLICE_NS (20 * MS) /* how long an attempt waits for calls in progress */
#define LAST_SLICE_NS (640 * MS)
#define CALLBACK_WAIT_NS (1000 * MS) /* at the gate: the driver may need its thread */
#define EXIT_WAIT_NS (5000 * MS)
#define WHY_BYTES 300
#define RECORDS_BYTES 512u /* a command and its blob, without details and contents */

enum state { OFF, CLOSED, OPENING, OPEN, CLOSING, FAILED };

static struct {
	_Atomic int state; /* enum state; changed with `transition` or the channel's lock held */
	_Atomic uint64_t window; /* the number of the last one */
	_Atomic uint64_t last_sequence;
	atomic_bool is_pending; /* it is to begin with the process, and has not been opened yet */
	int64_t timeout_ns;
	const struct ts_replay_client *_Atomic client;
	atomic_bool is_shared; /* there was a second client */
	/* Held to open or close a window. */
	pthread_mutex_t transition;
	int64_t deadline_ns, slice_ns;
	_Atomic int64_t retry_ns;
	char why[WHY_BYTES];     /* what the last attempt waited for */
	char failure[WHY_BYTES]; /* ts_replay_fail_window() inside open() */
} self = { .transition = PTHREAD_MUTEX_INITIALIZER };

/*
 * Each thread says in a word of its own that it is inside, then reads `is_closed`; who closes the
 * gate does it in reverse order. The barrier between the two is needed on both sides; membarrier()
 * of who closes makes it on all threads, so that a call costs two plain stores.
 */
struct passage {
	_Atomic uint32_t is_inside;
	atomic_bool is_taken; /* by a thread that lives */
	struct passage *next;
} __attribute__((aligned(64)));

static struct {
	struct passage *_Atomic passages; /* never freed: threads take over those of ended ones */
	atomic_bool has_barrier;          /* membarrier() works */
	atomic_bool has_key;
	pthread_key_t key;
	_Atomic uint32_t others; /* inside without a passage */
	atomic_bool is_closed;
	atomic_bool was_forced;             /* a callback passed while it was closed */
	_Atomic uint32_t callbacks_waiting; /* at the gate */
	pthread_mutex_t lock;
	pthread_cond_t opened;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER };

#define OF_THREAD __thread __attribute__((tls_model("initial-exec")))
static OF_THREAD unsigned int depth, callback_depth;
static OF_THREAD bool is_opening;
static OF_THREAD struct passage *passage;
static OF_THREAD uint64_t sequence_at_entry;

/* ---- helpers ---- */

int64_t ts_replay_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 * MS + now.tv_nsec;
}

/* The program may cancel its thread, but not while that holds our locks. */
void ts_replay_nap(int64_t ns)
{
	struct timespec span = { .tv_nsec = (long)ns };
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	nanosleep(&span, NULL);
	pthread_setcancelstate(cancel_state, &cancel_state);
}

static const struct ts_replay_client *client(void)
{
	return atomic_load_explicit(&self.client, memory_order_acquire);
}

bool ts_replay_is_open(void)
{
	int state = atomic_load_explicit(&self.state, memory_order_acquire);

	return state == OPEN || state == CLOSING;
}

bool ts_replay_is_opening(void)
{
	return is_opening;
}

uint64_t ts_replay_window(void)
{
	return atomic_load_explicit(&self.window, memory_order_relaxed);
}

uint64_t ts_replay_last_sequence(void)
{
	return atomic_load_explicit(&self.last_sequence, memory_order_relaxed);
}

uint64_t ts_replay_sequence_at_entry(void)
{
	return sequence_at_entry;
}

bool ts_replay_in_callback(void)
{
	return callback_depth > 0;
}

bool ts_replay_is_awaited(void)
{
	return atomic_load(&gate.callbacks_waiting) > 0;
}

/* ---- the channel ---- */

bool ts_replay_lock_window(void)
{
	if (!ts_replay_is_open())
		return false;
	if (!ts_replay_lock()) {
		/* The channel is broken, and has reported that itself. */
		atomic_store(&self.state, FAILED);
		return false;
	}
	if (ts_replay_is_open())
		return true;
	ts_replay_unlock();
	return false;
}

uint64_t ts_replay_append(const struct ts_replay_command *command)
{
	uint64_t sequence = ts_replay_command(command);

	if (sequence && command->kind != TS_COMMAND_CHECK && command->kind != TS_COMMAND_CLOSE)
		atomic_store_explicit(&self.last_sequence, sequence, memory_order_relaxed);
	return sequence;
}

static uint64_t append_with(struct ts_replay_command *command, const void *data, uint64_t bytes)
{
	if (bytes)
		command->blob = ts_replay_blob_own(data, bytes);
	return ts_replay_append(command);
}

/* What its records need at most. */
static uint64_t record_bytes(const struct ts_replay_command *command, uint64_t bytes)
{
	return (command->details ? strlen(command->details) : 0) + bytes + RECORDS_BYTES;
}

uint64_t ts_replay_append_with(struct ts_replay_command *command, const void *data, uint64_t bytes)
{
	struct core *core = ts_replay_is_open() ? channel_lock_briefly(record_bytes(command, bytes))
						: NULL;
	uint64_t sequence = 0;

	if (core) {
		if (ts_replay_is_open())
			sequence = append_with(command, data, bytes);
		channel_unlock_briefly(core);
	} else if (ts_replay_lock_window()) {
		sequence = append_with(command, data, bytes);
		ts_replay_unlock();
	}
	return sequence;
}

static struct ts_replay_command row_of(uint32_t kind)
{
	return (struct ts_replay_command){ .size = sizeof(struct ts_replay_command),
					   .kind = kind,
					   .offset = TS_UNKNOWN,
					   .other_offset = TS_UNKNOWN,
					   .bytes = TS_UNKNOWN };
}

static void add_pieces(struct stream_text *text)
{
	uint64_t pieces = client()->pieces ? client()->pieces() : UINT64_MAX;

	if (pieces != UINT64_MAX)
		stream_text_uint(text, "pieces", pieces);
}

/* CLOSE, with the channel locked. `key`: failed, unchecked, or NULL. */
static void emit_close(const char *key, const char *why)
{
	struct stream_text text;
	struct ts_replay_command row = row_of(TS_COMMAND_CLOSE);

	row.sequence = ts_replay_last_sequence();
	stream_text_begin(&text);
	stream_text_uint(&text, "window", ts_replay_window());
	if (key)
		stream_text_string(&text, key, why);
	add_pieces(&text);
	row.details = stream_text_end(&text);
	ts_replay_append(&row);
}

void ts_replay_fail_window(const char *why)
{
	if (is_opening) {
		if (!self.failure[0])
			snprintf(self.failure, sizeof(self.failure), "%s", why);
		return;
	}
	if (!ts_replay_lock_window())
		return;
	emit_close("failed", why);
	atomic_store(&self.state, FAILED);
	ts_replay_unlock();
	client()->ended(TS_REPLAY_END_FAILED, why);
}

/* ---- the gate ---- */

/* False: a callback timed out. */
static bool wait_at_gate(void)
{
	int64_t until = ts_replay_clock_ns() + CALLBACK_WAIT_NS;
	bool is_callback = ts_replay_in_callback();
	int cancel_state;

	if (is_callback)
		atomic_fetch_add(&gate.callbacks_waiting, 1);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* see ts_replay_nap() */
	pthread_mutex_lock(&gate.lock);
	while (atomic_load(&gate.is_closed) && !(is_callback && ts_replay_clock_ns() >= until)) {
		struct timespec limit;

		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_nsec += 100 * MS;
		limit.tv_sec += limit.tv_nsec / (1000 * MS);
		limit.tv_nsec %= 1000 * MS;
		pthread_cond_timedwait(&gate.opened, &gate.lock, &limit);
	}
	pthread_mutex_unlock(&gate.lock);
	pthread_setcancelstate(cancel_state, &cancel_state);
	if (is_callback)
		atomic_fetch_sub(&gate.callbacks_waiting, 1);
	return !atomic_load(&gate.is_closed);
}

/* ---- passages ---- */

/*
 * A thread ends, perhaps inside a call, which does not return. If another destructor makes a call,
 * it takes one again.
 */
static void give_passage_back(void *argument)
{
	struct passage *given = argument;

	depth = callback_depth = 0;
	passage = NULL;
	atomic_store(&given->is_inside, 0);
	atomic_store(&given->is_taken, false);
}

static struct passage *find_free_passage(void)
{
	struct passage *found = atomic_load(&gate.passages);

	for (; found; found = found->next) {
		bool is_taken = false;

		if (atomic_compare_exchange_strong(&found->is_taken, &is_taken, true))
			return found;
	}
	return NULL;
}

static struct passage *new_passage(void)
{
	struct passage *made = aligned_alloc(_Alignof(struct passage), sizeof(*made));

	if (!made)
		return NULL;
	*made = (struct passage){ .is_taken = true, .next = atomic_load(&gate.passages) };
	while (!atomic_compare_exchange_weak(&gate.passages, &made->next, made))
		;
	return made;
}

static void take_passage(void)
{
	struct passage *taken = find_free_passage();

	if (!taken)
		taken = new_passage();
	if (taken && atomic_load(&gate.has_key))
		pthread_setspecific(gate.key, taken);
	passage = taken;
}

static void step_in(void)
{
	if (__builtin_expect(!passage, 0))
		take_passage();
	if (!passage) {
		atomic_fetch_add(&gate.others, 1);
		return;
	}
	atomic_store_explicit(&passage->is_inside, 1, memory_order_relaxed);
	if (__builtin_expect(atomic_load_explicit(&gate.has_barrier, memory_order_relaxed), 1))
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
}

static void step_out(void)
{
	if (passage)
		atomic_store_explicit(&passage->is_inside, 0, memory_order_release);
	else
		atomic_fetch_sub(&gate.others, 1);
}

/* Those that were inside before barrier_for_all(), and perhaps some that are about to turn back. */
static uint32_t count_inside(void)
{
	const struct passage *each = atomic_load(&gate.passages);
	uint32_t count = atomic_load(&gate.others);

	for (; each; each = each->next)
		count += atomic_load(&each->is_inside);
	return count;
}

static bool membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

static void barrier_for_all(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load(&gate.has_barrier) || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		return;
	/* It has been forbidden since. What threads have stored arrives much sooner than this. */
	atomic_store(&gate.has_barrier, false);
	ts_replay_nap(10 * MS);
}

static void passages_start(void)
{
	atomic_store(&gate.has_key, pthread_key_create(&gate.key, give_passage_back) == 0);
	atomic_store(&gate.has_barrier, membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED));
}

/* In a child, which has only this thread. */
static void passages_forked(void)
{
	struct passage *each = atomic_load(&gate.passages);

	for (; each; each = each->next) {
		atomic_store(&each->is_inside, each == passage && depth > 0);
		atomic_store(&each->is_taken, each == passage);
	}
	atomic_store(&gate.others, !passage && depth > 0);
	atomic_store(&gate.has_barrier, membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED));
}

/* ---- the gate: open and closed ---- */

static void pass_gate(void)
{
	for (;;) {
		step_in();
		if (__builtin_expect(!atomic_load(&gate.is_closed), 1))
			return;
		step_out();
		if (!wait_at_gate() && ts_replay_in_callback()) {
			atomic_store(&gate.was_forced, true);
			step_in();
			return;
		}
	}
}

static void gate_open(void)
{
	pthread_mutex_lock(&gate.lock);
	atomic_store(&gate.is_closed, false);
	pthread_cond_broadcast(&gate.opened);
	pthread_mutex_unlock(&gate.lock);
}

/*
 * Takes the gate exclusively, except for the calling thread's own call. False: a call is still in
 * progress; the gate is open again.
 */
static bool gate_close(uint32_t own_calls, int64_t until_ns)
{
	uint32_t inside;

	atomic_store(&gate.was_forced, false);
	atomic_store(&gate.is_closed, true);
	barrier_for_all();
	while ((inside = count_inside()) > own_calls) {
		if (ts_replay_clock_ns() >= until_ns) {
			snprintf(self.why, sizeof(self.why), "%u calls did not return",
				 inside - own_calls);
			gate_open();
			return false;
		}
		ts_replay_nap(MS / 20);
	}
	return true;
}

/* ---- quiescence ---- */

static bool is_blocked(void)
{
	return client()->is_blocked(self.why, sizeof(self.why));
}

/* True: the gate is closed, nothing is running, and the program holds nothing that blocks. */
static bool get_quiet(uint32_t own_calls)
{
	int64_t until = ts_replay_clock_ns() + self.slice_ns;

	if (is_blocked())
		return false;
	if (!gate_close(own_calls, until < self.deadline_ns ? until : self.deadline_ns)) {
		self.slice_ns = self.slice_ns < LAST_SLICE_NS ? 2 * self.slice_ns : LAST_SLICE_NS;
		return false;
	}
	if (is_blocked() || !client()->finish(self.deadline_ns, self.why, sizeof(self.why))) {
		gate_open();
		return false;
	}
	return true;
}

/*
 * What only the program can end is checked again in its next call, which is cheap; what needs
 * waiting is not.
 */
static void attempt_later(int64_t now)
{
	atomic_store(&self.retry_ns, is_blocked() ? 0 : now + self.slice_ns);
}

static void begin_attempts(int64_t timeout_ns)
{
	self.deadline_ns = ts_replay_clock_ns() + timeout_ns;
	self.slice_ns = FIRST_SLICE_NS;
	atomic_store(&self.retry_ns, 0);
	snprintf(self.why, sizeof(self.why), "commands were running all the time");
}

/* ---- opening ---- */

static void fail_opening(const char *why)
{
	char text[WHY_BYTES];

	snprintf(text, sizeof(text), "%s", why);
	atomic_store(&self.state, FAILED);
	if (ts_replay_lock()) {
		emit_close("failed", text);
		ts_replay_unlock();
		client()->ended(TS_REPLAY_END_NOT_OPENED, text);
	} else {
		client()->ended(TS_REPLAY_END_NOT_OPENED, NULL);
	}
}

static void fail_late(void)
{
	char text[WHY_BYTES + 60];

	snprintf(text, sizeof(text), "it was closed before it could be opened: %s", self.why);
	fail_opening(text);
}

static void emit_open(uint64_t bytes, bool is_first)
{
	struct stream_text text;
	struct ts_replay_command row = row_of(TS_COMMAND_OPEN);

	stream_text_begin(&text);
	stream_text_uint(&text, "window", ts_replay_window());
	stream_text_uint(&text, "snapshot_bytes", bytes);
	if (is_first)
		stream_text_true(&text, "from_start");
	add_pieces(&text);
	row.details = stream_text_end(&text);
	ts_replay_append(&row);
}

/* The gate is closed. */
static void open_now(void)
{
	bool is_first = ts_replay_window() == 1 && client()->is_unused();
	char why[WHY_BYTES];
	const char *failure;
	uint64_t bytes = 0;

	self.failure[0] = 0;
	is_opening = true;
	failure = client()->open(why, sizeof(why), &bytes);
	is_opening = false;
	if (!failure && self.failure[0])
		failure = self.failure;
	if (!failure && atomic_load(&gate.was_forced))
		failure = "a callback of the driver could not wait";
	if (failure) {
		fail_opening(failure);
	} else if (ts_replay_lock()) {
		emit_open(bytes, is_first);
		atomic_store(&self.state, OPEN);
		ts_replay_unlock();
		if (client()->opened)
			client()->opened();
	} else {
		fail_opening("the recorder could not store it");
	}
}

static void try_open(void)
{
	int64_t now = ts_replay_clock_ns();

	if (now < atomic_load(&self.retry_ns))
		return;
	if (get_quiet(0)) {
		open_now();
		gate_open();
		return;
	}
	now = ts_replay_clock_ns();
	if (now >= self.deadline_ns)
		fail_opening(self.why);
	attempt_later(now);
}

/* ---- closing ---- */

static void close_now(enum ts_replay_end how, const char *key, const char *why)
{
	bool was_open = ts_replay_lock_window();

	if (was_open) {
		emit_close(key, why);
		atomic_store(&self.state, CLOSED);
		ts_replay_unlock();
	}
	atomic_store(&self.state, CLOSED);
	client()->ended(how, was_open && how == TS_REPLAY_END_CLOSED ? why : NULL);
}

/* True: closed. */
static bool try_close(uint32_t own_calls)
{
	int64_t now = ts_replay_clock_ns();

	if (now < atomic_load(&self.retry_ns))
		return false;
	if (get_quiet(own_calls)) {
		char why[WHY_BYTES];
		const char *failure = client()->close(why, sizeof(why));

		close_now(TS_REPLAY_END_CLOSED, failure ? "failed" : NULL, failure);
		gate_open();
		return true;
	}
	now = ts_replay_clock_ns();
	/* Nothing is left to wait for if it has failed. */
	if (now >= self.deadline_ns || !ts_replay_is_open()) {
		close_now(TS_REPLAY_END_UNCHECKED, "unchecked", self.why);
		return true;
	}
	attempt_later(now);
	return false;
}

/* ---- steps ---- */

static bool is_wanted(void)
{
	if (!ts_enabled())
		return atomic_load_explicit(&self.is_pending, memory_order_relaxed);
	if (atomic_load_explicit(&self.is_pending, memory_order_relaxed))
		atomic_store_explicit(&self.is_pending, false, memory_order_relaxed);
	return true;
}

static bool is_due(void)
{
	switch (atomic_load_explicit(&self.state, memory_order_relaxed)) {
	case OFF:
		return false;
	case CLOSED:
		return is_wanted();
	case OPEN:
	case FAILED:
		return !is_wanted();
	default:
		return !is_wanted() || ts_replay_clock_ns() >= atomic_load(&self.retry_ns);
	}
}

static void begin_open(void)
{
	begin_attempts(self.timeout_ns);
	atomic_fetch_add(&self.window, 1);
	atomic_store(&self.state, OPENING);
	if (atomic_load(&self.is_shared))
		fail_opening("the program uses two interfaces to devices");
	else
		try_open();
}

static void begin_close(void)
{
	begin_attempts(self.timeout_ns);
	atomic_store(&self.state, CLOSING);
	try_close(0);
}

/* With `transition` held. */
static void do_step(bool wanted)
{
	switch (atomic_load(&self.state)) {
	case CLOSED:
		if (wanted)
			begin_open();
		break;
	case OPENING:
		if (wanted)
			try_open();
		else
			fail_late();
		break;
	case OPEN:
		if (!wanted)
			begin_close();
		break;
	case CLOSING:
		try_close(0);
		break;
	case FAILED:
		if (!wanted)
			atomic_store(&self.state, CLOSED);
		break;
	default:
		break;
	}
}

/* Does one step of what is due, unless another thread is doing it. */
static void take_step(void)
{
	bool wanted = is_wanted();
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* see ts_replay_nap() */
	if (!pthread_mutex_trylock(&self.transition)) {
		do_step(wanted);
		pthread_mutex_unlock(&self.transition);
	}
	pthread_setcancelstate(cancel_state, &cancel_state);
}

void ts_replay_step(void)
{
	if (__builtin_expect(is_due(), 0) && depth == 0 && callback_depth == 0)
		take_step();
}

void ts_replay_enter(void)
{
	if (depth > 0) {
		depth++;
		return;
	}
	ts_replay_step();
	depth = 1;
	pass_gate();
	sequence_at_entry = ts_replay_last_sequence();
}

/* The first call of a thread is left to ts_replay_enter(), which takes a passage. */
bool ts_replay_pass(void)
{
	struct passage *own = passage;

	if (!own || depth || !atomic_load_explicit(&gate.has_barrier, memory_order_relaxed))
		return false;
	depth = 1; /* first: a call in a signal handler must not step out for this one */
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&own->is_inside, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* see step_in() */
	if (atomic_load(&gate.is_closed) || atomic_load(&self.state) != CLOSED || is_wanted()) {
		depth = 0; /* first: a call in a signal handler passes the gate itself */
		atomic_signal_fence(memory_order_seq_cst);
		atomic_store_explicit(&own->is_inside, 0, memory_order_release);
		return false;
	}
	return true;
}

bool ts_replay_leave(void)
{
	if (--depth > 0)
		return false;
	step_out();
	return true;
}

void ts_replay_callback_begin(void)
{
	callback_depth++;
}

void ts_replay_callback_end(void)
{
	callback_depth--;
}

/* ---- start and stop ---- */

static void after_fork(void)
{
	bool starts_anew = client() && client()->forked();

	pthread_mutex_init(&self.transition, NULL);
	pthread_mutex_init(&gate.lock, NULL);
	pthread_cond_init(&gate.opened, NULL);
	atomic_store(&gate.is_closed, false);
	passages_forked();
	atomic_store(&gate.callbacks_waiting, 0);
	is_opening = false;
	atomic_store(&self.is_pending, ts_replay_settings()->from_start);
	if (atomic_load(&self.state) != OFF)
		atomic_store(&self.state, starts_anew ? CLOSED : OFF);
}

bool ts_replay_start(const struct ts_replay_client *new_client)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	const struct ts_replay_settings *settings = ts_replay_settings();
	const struct ts_replay_client *other;

	pthread_mutex_lock(&once);
	other = client();
	if (!other) {
		pthread_atfork(NULL, NULL, after_fork);
		passages_start();
		self.timeout_ns = settings->window_timeout_ns;
		atomic_store(&self.is_pending, settings->from_start);
		atomic_store_explicit(&self.client, new_client, memory_order_release);
		atomic_store(&self.state, settings->mode == TS_REPLAY_OFF ? OFF : CLOSED);
	}
	pthread_mutex_unlock(&once);
	if (!other || other == new_client)
		return true;
	atomic_store(&self.is_shared, true);
	ts_replay_fail_window("the program uses two interfaces to devices");
	return false;
}

static bool lock_transition(void)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 5;
	return pthread_mutex_timedlock(&self.transition, &limit) == 0;
}

static void close_at_exit(void)
{
	begin_attempts(self.timeout_ns < EXIT_WAIT_NS ? self.timeout_ns : EXIT_WAIT_NS);
	while (!try_close(depth > 0))
		ts_replay_nap(10 * MS);
}

/* With `transition` held. */
static void stop(void)
{
	switch (atomic_load(&self.state)) {
	case OPENING:
		fail_opening(self.why);
		break;
	case OPEN:
	case CLOSING:
		close_at_exit();
		break;
	default:
		break;
	}
	atomic_store(&self.state, OFF);
}

void ts_replay_stop(void)
{
	int cancel_state;

	channel_abandon();
	if (!client())
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* see ts_replay_nap() */
	if (lock_transition()) {
		stop();
		pthread_mutex_unlock(&self.transition);
	}
	pthread_setcancelstate(cancel_state, &cancel_state);
}
