/* SPDX-License-Identifier: Apache-2.0 */
/* The lossless channel: its contents, and readers and writers that are slow, absent or dead. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "base/local/hash.h"
#include "base/process.h"
#include "unit/agent/replay_channel_support.h"

/* Rings of 16 KiB and a channel of 64 KiB. */
#define SMALL "enabled=1;replayable=1;from_start=1;budget=262144"

/* ---- contents ---- */

TS_TEST(records_are_as_they_were_given)
{
	struct ts_replay_object object = { .size = sizeof(object),
					   .kind = TS_OBJECT_MEMORY,
					   .parent = 11,
					   .address = 12,
					   .bytes = 13,
					   .name = "weights",
					   .details = "{\"flags\":[]}" };
	struct agent_reader reader;
	struct agent_cursor cursor;
	struct ts_live_record head;
	const uint64_t *at;
	uint64_t blob, first;
	char text[64];

	agent_begin("enabled=0;replayable=2;from_start=1;snapshot_limit=5;window_timeout=6;"
		    "keep_contents=7");
	TS_CHECK_INT(ts_replay_settings()->mode, TS_REPLAY_CHECKED);
	TS_CHECK(ts_replay_settings()->from_start);
	TS_CHECK_INT(ts_replay_settings()->snapshot_limit, 5);
	TS_CHECK_INT(ts_replay_settings()->window_timeout_ns, 6);
	TS_CHECK_INT(ts_replay_settings()->keep_contents, 7);
	first = ts_replay_new_object();
	TS_CHECK(first > 0);
	errno = EXDEV;
	TS_CHECK(ts_replay_lock());
	object.number = ts_replay_new_object();
	TS_CHECK_INT(object.number, first + 1);
	blob = ts_replay_blob("0123456789", 10);
	TS_CHECK(blob > 0);
	TS_CHECK_INT(ts_replay_blob("", 0), 0);
	object.blob = blob;
	ts_replay_object(&object);
	TS_CHECK_INT(give(TS_COMMAND_OPEN, 0, "{\"window\":3}"), 1);
	TS_CHECK_INT(give(TS_COMMAND_LAUNCH, blob, NULL), 2);
	TS_CHECK_INT(give(TS_COMMAND_CHECK, 0, "{}"), 2);
	ts_replay_gone(object.number);
	ts_replay_unlock();
	TS_CHECK_INT(errno, EXDEV);
	/* Nothing is accepted without the lock, nor from a truncated struct. */
	TS_CHECK_INT(give(TS_COMMAND_FILL, 0, NULL), 0);
	TS_CHECK_INT(ts_replay_blob("x", 1), 0);
	ts_replay_unlock();
	TS_CHECK(ts_replay_lock());
	object.size = 8;
	ts_replay_object(&object);
	ts_replay_unlock();
	TS_CHECK(!ts_replay_is_broken());

	agent_open_reader(&reader);
	agent_drain(&reader);
	cursor = channel_of(&reader);
	at = agent_next(&cursor, &head);
	TS_CHECK_INT(head.kind, TS_LIVE_THREAD);
	at = agent_next(&cursor, &head);
	TS_CHECK_INT(head.kind, TS_LIVE_BLOB);
	TS_CHECK_INT(head.words, 8);
	TS_CHECK_INT(at[2], blob);
	TS_CHECK_INT(at[3], 10);
	TS_CHECK_INT(at[4], 0);
	TS_CHECK_INT(at[5], 10);
	TS_CHECK_MEM(at + 6, "0123456789\0\0\0\0\0\0", 16);
	at = agent_next(&cursor, &head);
	TS_CHECK_INT(head.kind, TS_LIVE_OBJECT);
	TS_CHECK_INT(head.site, 0);
	TS_CHECK_INT(head.flags, 0);
	TS_CHECK_INT(at[2], object.number);
	TS_CHECK_INT(at[3], TS_OBJECT_MEMORY);
	TS_CHECK_INT(at[4], 11);
	TS_CHECK_INT(at[5], 12);
	TS_CHECK_INT(at[6], 13);
	TS_CHECK_INT(at[7], blob);
	at += 8;
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "weights");
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "{\"flags\":[]}");
	agent_next(&cursor, &head);
	at = agent_next(&cursor, &head);
	TS_CHECK_INT(head.kind, TS_LIVE_COMMAND);
	TS_CHECK_INT(at[2], 2);
	TS_CHECK_INT(at[3], TS_COMMAND_LAUNCH);
	TS_CHECK_INT(at[4], 1);
	TS_CHECK_INT(at[5], 2);
	TS_CHECK_INT(at[6], 4);
	TS_CHECK_INT(at[7], 3);
	TS_CHECK_INT(at[8], INT64_MIN);
	TS_CHECK_INT(at[9], 6);
	TS_CHECK_INT(at[10], blob);
	TS_CHECK_INT(at[11], 7);
	TS_CHECK(at[12] > 0);
	at += 13;
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "");
	at = agent_next(&cursor, &head);
	TS_CHECK_INT(at[2], 2);
	TS_CHECK_INT(at[3], TS_COMMAND_CHECK);
	at = agent_next(&cursor, &head);
	TS_CHECK_INT(head.kind, TS_LIVE_GONE);
	TS_CHECK_INT(at[2], object.number);
	TS_CHECK(!agent_next(&cursor, &head));
	/* None of these is an event, and nothing is dropped. */
	TS_CHECK_INT(reader.dropped, 0);
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(details_that_are_too_long_say_so)
{
	static char longest[9000];
	struct ts_replay_object object = { .size = sizeof(object), .details = longest };
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *at;
	char text[128];

	memset(longest, ' ', sizeof(longest) - 1);
	agent_begin("enabled=1;replayable=1");
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(give(TS_COMMAND_LAUNCH, 0, longest), 1);
	ts_replay_object(&object);
	longest[8000] = 0;
	TS_CHECK_INT(give(TS_COMMAND_LAUNCH, 0, longest), 2);
	/* The longest possible object is still one record. */
	memset(longest, 'n', 8999);
	object.name = longest;
	object.details = longest + 999;
	ts_replay_object(&object);
	ts_replay_unlock();
	agent_open_reader(&reader);
	agent_drain(&reader);
	at = agent_find(&reader, TS_LIVE_COMMAND, 0, &head) + 13;
	TS_CHECK(!strncmp(agent_string(&at, text, sizeof(text)), "{\"unreplayable\":\"", 17));
	at = agent_find(&reader, TS_LIVE_OBJECT, 0, &head) + 8;
	agent_string(&at, text, sizeof(text));
	TS_CHECK(!strncmp(agent_string(&at, text, sizeof(text)), "{\"unreplayable\":\"", 17));
	agent_find(&reader, TS_LIVE_COMMAND, 1, &head);
	TS_CHECK_INT(head.words, 13 + 1001);
	agent_find(&reader, TS_LIVE_OBJECT, 1, &head);
	TS_CHECK_INT(head.words, 8 + 1025 + 1001);
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(without_being_asked_for_there_is_none)
{
	agent_begin("enabled=1");
	TS_CHECK_INT(ts_replay_settings()->mode, TS_REPLAY_OFF);
	TS_CHECK(!ts_replay_lock());
	TS_CHECK_INT(ts_replay_blob("x", 1), 0);
	TS_CHECK_INT(give(TS_COMMAND_OPEN, 0, NULL), 0);
	TS_CHECK(!ts_replay_is_broken());
	TS_CHECK_INT(ts_process_tracer.core->budget, 32u << 20);
	agent_end(true);
}

TS_TEST(settings_have_defaults_and_a_larger_budget)
{
	agent_begin("enabled=1;replayable=1");
	TS_CHECK_INT(ts_replay_settings()->snapshot_limit, INT64_C(4) << 30);
	TS_CHECK_INT(ts_replay_settings()->window_timeout_ns, INT64_C(10000000000));
	TS_CHECK(!ts_replay_settings()->from_start);
	TS_CHECK(ts_process_tracer.core->budget <= 64u << 20);
	TS_CHECK(ts_replay_lock());
	ts_replay_unlock();
	if (ts_process_tracer.core->budget == 64u << 20)
		TS_CHECK_INT(ts_process_tracer.core->channel.writer.mask + 1, 16u << 20);
	agent_end(true);
}

TS_TEST(nobody_records_in_flight_mode)
{
	agent_begin("enabled=1;replayable=1;mode=flight");
	TS_CHECK(!ts_replay_lock());
	agent_end(true);
}

TS_TEST(hash_is_that_of_traces)
{
	TS_CHECK_INT(ts_replay_hash("abc", 3), ts_hash64("abc", 3));
}

/* ---- readers ---- */

/* Drains until it is stopped, as a recorder does, with a pause between passes. */
struct taker {
	struct agent_reader reader;
	pthread_t thread;
	long pause_ns;
	uint32_t stops;
};

static void *take(void *argument)
{
	struct taker *taker = argument;
	struct timespec pause = { 0, taker->pause_ns };

	while (!__atomic_load_n(&taker->stops, __ATOMIC_ACQUIRE)) {
		agent_drain(&taker->reader);
		nanosleep(&pause, NULL);
	}
	agent_drain(&taker->reader);
	return NULL;
}

static void start_taker(struct taker *taker, long pause_ns)
{
	*taker = (struct taker){ .pause_ns = pause_ns };
	agent_beat(1);
	agent_open_reader(&taker->reader);
	TS_CHECK_INT(pthread_create(&taker->thread, NULL, take, taker), 0);
}

static void stop_taker(struct taker *taker)
{
	__atomic_store_n(&taker->stops, 1, __ATOMIC_RELEASE);
	TS_CHECK_INT(pthread_join(taker->thread, NULL), 0);
}

#define BLOB_BYTES 2500001u

/* Much more than the ring holds: the writer waits, and nothing is lost. */
TS_TEST(a_blob_larger_than_the_ring_arrives_whole)
{
	unsigned char *content = malloc(BLOB_BYTES), *got = calloc(1, BLOB_BYTES);
	struct agent_cursor cursor;
	struct ts_live_record head;
	struct taker taker;
	const uint64_t *at;
	uint64_t offset = 0;

	TS_CHECK(content && got);
	for (unsigned int i = 0; i < BLOB_BYTES; i++)
		content[i] = (unsigned char)(i * 2654435761u >> 24);
	agent_channel_patience_ns = INT64_C(60000000000);
	agent_begin(SMALL);
	start_taker(&taker, 100000);
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(ts_process_tracer.core->channel.writer.mask + 1, 64u << 10);
	TS_CHECK_INT(ts_replay_blob(content, BLOB_BYTES), 1);
	/* The same in odd pieces, and more than announced. */
	TS_CHECK_INT(ts_replay_blob_begin(100000), 2);
	for (unsigned int i = 0; i < 100; i++)
		ts_replay_blob_part(content + i * 1001, 1001);
	ts_replay_unlock();
	stop_taker(&taker);
	cursor = channel_of(&taker.reader);
	while (offset < BLOB_BYTES && (at = agent_next(&cursor, &head))) {
		if (head.kind != TS_LIVE_BLOB)
			continue;
		TS_CHECK_INT(at[2], 1);
		TS_CHECK_INT(at[3], BLOB_BYTES);
		TS_CHECK_INT(at[4], offset);
		TS_CHECK(at[5] <= TS_LIVE_BLOB_PART && offset + at[5] <= BLOB_BYTES);
		memcpy(got + offset, at + 6, at[5]);
		offset += at[5];
	}
	TS_CHECK_MEM(got, content, BLOB_BYTES);
	for (offset = 0; (at = agent_next(&cursor, &head));) {
		if (head.kind != TS_LIVE_BLOB)
			continue;
		TS_CHECK_INT(at[2], 2);
		TS_CHECK_INT(at[4], offset);
		TS_CHECK_MEM(at + 6, content + offset, at[5]);
		offset += at[5];
	}
	TS_CHECK_INT(offset, 100000);
	TS_CHECK(!ts_replay_is_broken());
	free(content);
	free(got);
	agent_close_reader(&taker.reader);
	agent_end(true);
}

/* ---- threads ---- */

#define GIVERS 4
#define GIVEN 400u

static void *give_pairs(void *argument)
{
	unsigned char content[40000];

	memset(content, (int)(uintptr_t)argument, sizeof(content));
	for (unsigned int i = 0; i < GIVEN; i++) {
		uint64_t blob;

		TS_CHECK(ts_replay_lock());
		blob = ts_replay_blob(content, i % 7 ? 100 : sizeof(content));
		TS_CHECK(give(TS_COMMAND_LAUNCH, blob, NULL) > 0);
		ts_replay_unlock();
	}
	return NULL;
}

/*
 * Blobs are complete and not interleaved, each before the command that refers to it; sequence
 * numbers rise by one.
 */
TS_TEST(threads_write_one_stream)
{
	pthread_t threads[GIVERS];
	struct taker taker;
	struct agent_cursor cursor;
	struct ts_live_record head;
	const uint64_t *at;
	uint64_t sequence = 0, blob = 0, left = 0, serials = 0;

	agent_channel_patience_ns = INT64_C(60000000000);
	agent_begin(SMALL);
	start_taker(&taker, 100000);
	for (uintptr_t i = 0; i < GIVERS; i++)
		TS_CHECK_INT(pthread_create(&threads[i], NULL, give_pairs, (void *)(i + 1)), 0);
	for (unsigned int i = 0; i < GIVERS; i++)
		TS_CHECK_INT(pthread_join(threads[i], NULL), 0);
	stop_taker(&taker);
	cursor = channel_of(&taker.reader);
	while ((at = agent_next(&cursor, &head))) {
		if (head.kind == TS_LIVE_BLOB) {
			if (!left) {
				TS_CHECK_INT(at[2], blob + 1);
				blob = at[2];
				left = at[3];
			}
			TS_CHECK_INT(at[2], blob);
			TS_CHECK_INT(at[4], at[3] - left);
			left -= at[5];
		} else if (head.kind == TS_LIVE_COMMAND) {
			TS_CHECK_INT(left, 0);
			TS_CHECK_INT(at[2], ++sequence);
			TS_CHECK_INT(at[10], blob);
			TS_CHECK(at[12] < 64);
			serials |= UINT64_C(1) << at[12];
		}
	}
	TS_CHECK_INT(sequence, GIVERS * GIVEN);
	TS_CHECK_INT(__builtin_popcountll(serials), GIVERS);
	agent_close_reader(&taker.reader);
	agent_end(true);
}

/* ---- nobody drains it ---- */

/* Fills the channel; returns whether the stream broke, which it must. */
static bool fill(unsigned int bytes)
{
	static char content[TS_LIVE_BLOB_PART];

	for (unsigned int i = 0; i < 100000; i++) {
		if (!ts_replay_lock())
			return ts_replay_is_broken();
		ts_replay_blob(content, bytes);
		give(TS_COMMAND_LAUNCH, 0, NULL);
		ts_replay_unlock();
	}
	return false;
}

TS_TEST(an_absent_reader_breaks_it_and_the_stream_says_so)
{
	struct agent_reader reader;
	sigset_t mask;

	agent_channel_patience_ns = 20000000;
	agent_begin(SMALL);
	TS_CHECK(fill(5000));
	check_broken();
	sigprocmask(SIG_SETMASK, NULL, &mask);
	TS_CHECK(sigisemptyset(&mask));
	agent_open_reader(&reader);
	agent_drain(&reader);
	check_closed(&reader, "the recorder does not answer");
	/* Free space does not repair the stream: what came in between is missing. */
	check_broken();
	agent_close_reader(&reader);
	agent_end(true);
}

/* The last record fits wherever the end of the ring is. */
TS_TEST(the_last_record_fits_always)
{
	struct agent_reader reader;

	agent_channel_patience_ns = 1000000;
	agent_begin(SMALL);
	for (unsigned int bytes = 1; bytes < 15000; bytes += 1 + bytes / 3) {
		pid_t pid = fork();

		if (pid == 0) {
			TS_CHECK(fill(bytes));
			agent_open_reader(&reader);
			agent_drain(&reader);
			check_closed(&reader, "\"window\":1");
			agent_close_reader(&reader);
			_exit(0);
		}
		agent_join_child(pid);
	}
	agent_end(true);
}

/* The recorder is alive, but its disk is full. */
static void *beat_only(void *argument)
{
	struct timespec pause = { 0, 1000000 };
	uint32_t *stops = argument;

	for (int64_t beats = 1; !__atomic_load_n(stops, __ATOMIC_ACQUIRE); beats++) {
		agent_beat(beats);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

TS_TEST(a_reader_that_cannot_store_breaks_it)
{
	struct agent_reader reader;
	uint32_t stops = 0;
	pthread_t thread;

	agent_channel_patience_ns = INT64_C(2000000000);
	agent_begin(SMALL);
	agent_beat(0);
	TS_CHECK_INT(pthread_create(&thread, NULL, beat_only, &stops), 0);
	TS_CHECK(fill(15000));
	__atomic_store_n(&stops, 1, __ATOMIC_RELEASE);
	TS_CHECK_INT(pthread_join(thread, NULL), 0);
	check_broken();
	agent_open_reader(&reader);
	agent_drain(&reader);
	check_closed(&reader, "the recorder could not store it");
	agent_close_reader(&reader);
	agent_end(true);
}

static void *leave_soon(void *argument)
{
	struct timespec pause = { 0, 20000000 };

	(void)argument;
	nanosleep(&pause, NULL);
	__atomic_store_n(&agent_control()->recorder_pid, 0, __ATOMIC_RELEASE);
	return NULL;
}

/* Must not use the patience, which is an hour. */
TS_TEST(a_recorder_that_left_is_not_waited_for)
{
	struct agent_reader reader;
	pthread_t thread;

	agent_channel_patience_ns = INT64_C(3600000000000);
	agent_begin(SMALL);
	agent_beat(1);
	TS_CHECK_INT(pthread_create(&thread, NULL, leave_soon, NULL), 0);
	/*
	 * The writer is full and waiting when the recorder leaves; or the recorder has left, and
	 * nothing is locked.
	 */
	while (ts_replay_lock()) {
		static char content[TS_LIVE_BLOB_PART];

		ts_replay_blob(content, sizeof(content));
		ts_replay_unlock();
	}
	TS_CHECK_INT(pthread_join(thread, NULL), 0);
	TS_CHECK(!ts_replay_lock());
	agent_open_reader(&reader);
	agent_drain(&reader);
	if (ts_replay_is_broken())
		check_closed(&reader, "no recorder is attached any more");
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(an_exit_is_not_held_up_by_a_slow_reader)
{
	static char content[1 << 20];
	struct taker taker;

	agent_channel_patience_ns = 300000000;
	agent_begin(SMALL);
	/* Steady progress, but far too slow. */
	start_taker(&taker, 50000000);
	agent_channel_exiting();
	TS_CHECK(ts_replay_lock());
	for (unsigned int i = 0; i < 100 && ts_replay_blob(content, sizeof(content)); i++)
		;
	ts_replay_unlock();
	check_broken();
	stop_taker(&taker);
	check_closed(&taker.reader, "the process exited");
	agent_close_reader(&taker.reader);
	agent_end(true);
}

TS_TEST(slow_is_not_absent)
{
	static char content[1 << 20];
	struct taker taker;

	agent_channel_patience_ns = INT64_C(60000000000);
	agent_begin(SMALL);
	start_taker(&taker, 10000000);
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(ts_replay_blob(content, sizeof(content)), 1);
	ts_replay_unlock();
	stop_taker(&taker);
	TS_CHECK(!ts_replay_is_broken());
	agent_close_reader(&taker.reader);
	agent_end(true);
}

/* Drains once the writer has waited for longer than its patience. */
static void *drain_late(void *argument)
{
	const struct timespec pause = { 0, 10000000 };
	struct agent_reader *reader = argument;
	const struct writer *writer = &ts_process_tracer.core->channel.writer;
	int64_t moved_ns = (int64_t)ts_counter_monotonic_ns();
	uint64_t head = 0;

	while ((int64_t)ts_counter_monotonic_ns() - moved_ns < agent_channel_patience_ns * 3 / 2) {
		uint64_t now = __atomic_load_n(&writer->ring->head, __ATOMIC_ACQUIRE);

		if (now != head)
			moved_ns = (int64_t)ts_counter_monotonic_ns();
		head = now;
		nanosleep(&pause, NULL);
	}
	agent_drain(reader);
	return NULL;
}

/* Its heartbeat stands still, but its process is there: this one. */
TS_TEST(a_blocked_recorder_is_waited_for)
{
	static char content[TS_LIVE_BLOB_PART];
	struct agent_reader reader;
	pthread_t thread;

	agent_channel_patience_ns = 500000000;
	agent_begin(SMALL);
	agent_control()->recorder_start = ts_process_start_time(getpid());
	agent_control()->recorder_pid = (uint64_t)getpid();
	agent_control()->heartbeat = 1;
	TS_CHECK(ts_replay_lock());
	agent_open_reader(&reader);
	TS_CHECK_INT(pthread_create(&thread, NULL, drain_late, &reader), 0);
	/* More than the channel holds, less than twice that. */
	for (unsigned int i = 0; i < 6; i++)
		TS_CHECK(ts_replay_blob(content, sizeof(content)));
	ts_replay_unlock();
	TS_CHECK_INT(pthread_join(thread, NULL), 0);
	TS_CHECK(!ts_replay_is_broken());
	agent_close_reader(&reader);
	agent_end(true);
}

TS_TEST(without_shared_memory_the_trace_says_so)
{
	struct agent_reader reader;
	struct ts_live_record head;
	const uint64_t *at;
	char text[128];

	/* The area and a first ring fit, a channel does not. */
	agent_begin("enabled=1;replayable=1;budget=61440");
	TS_CHECK(!ts_replay_lock());
	TS_CHECK(ts_replay_is_broken());
	TS_CHECK(!ts_replay_lock());
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_LOST), 1);
	at = agent_find(&reader, TS_LIVE_LOST, 0, &head) + 3;
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)), "commands");
	agent_close_reader(&reader);
	agent_end(true);
}

/* ---- failing windows ---- */

TS_TEST(a_window_that_fails_does_not_end_the_stream)
{
	struct agent_reader reader;
	struct agent_cursor cursor;
	struct ts_live_record head;
	const uint64_t *at;
	char text[600];

	agent_begin("enabled=1;replayable=1");
	TS_CHECK(ts_replay_lock());
	ts_replay_fail("user event \"12\"\n\\ is not set");
	ts_replay_unlock();
	TS_CHECK(!ts_replay_is_broken());
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(give(TS_COMMAND_OPEN, 0, "{\"window\":2}"), 1);
	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	ts_replay_fail(text);
	ts_replay_unlock();
	agent_open_reader(&reader);
	agent_drain(&reader);
	cursor = channel_of(&reader);
	agent_next(&cursor, &head);
	at = agent_next(&cursor, &head) + 13;
	TS_CHECK_STR(agent_string(&at, text, sizeof(text)),
		     "{\"window\":1,\"failed\":\"user event '12''' is not set\"}");
	TS_CHECK_INT(agent_next(&cursor, &head)[3], TS_COMMAND_OPEN);
	at = agent_next(&cursor, &head) + 13;
	agent_string(&at, text, sizeof(text));
	TS_CHECK(!strncmp(text, "{\"window\":2,\"failed\":\"yyy", 25));
	TS_CHECK_STR(text + strlen(text) - 4, "yy\"}");
	agent_close_reader(&reader);
	agent_end(true);
}

/* ---- fork and kill ---- */

static void *hold_for_ever(void *argument)
{
	uint32_t *held = argument;

	TS_CHECK(ts_replay_lock());
	__atomic_store_n(held, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(held, __ATOMIC_ACQUIRE) != 2)
		usleep(1000);
	ts_replay_unlock();
	return NULL;
}

/* Another thread holds the lock when the process forks: the child has its own stream. */
TS_TEST(a_forked_child_has_its_own)
{
	struct agent_reader reader;
	uint32_t held = 0;
	pthread_t thread;
	pid_t pid;

	agent_begin("enabled=1;replayable=1");
	TS_CHECK(ts_replay_lock());
	TS_CHECK_INT(give(TS_COMMAND_OPEN, 0, NULL), 1);
	TS_CHECK_INT(ts_replay_new_object(), 1);
	ts_replay_unlock();
	TS_CHECK_INT(pthread_create(&thread, NULL, hold_for_ever, &held), 0);
	while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
		usleep(1000);
	pid = fork();
	if (pid == 0) {
		TS_CHECK(ts_replay_lock());
		TS_CHECK_INT(give(TS_COMMAND_OPEN, 0, NULL), 1);
		TS_CHECK_INT(give(TS_COMMAND_LAUNCH, 0, NULL), 2);
		TS_CHECK_INT(ts_replay_new_object(), 2);
		ts_replay_unlock();
		agent_open_reader(&reader);
		agent_drain(&reader);
		TS_CHECK_INT(agent_count(&reader, TS_LIVE_COMMAND), 2);
		agent_close_reader(&reader);
		_exit(0);
	}
	agent_join_child(pid);
	__atomic_store_n(&held, 2, __ATOMIC_RELEASE);
	TS_CHECK_INT(pthread_join(thread, NULL), 0);
	agent_open_reader(&reader);
	agent_drain(&reader);
	TS_CHECK_INT(agent_count(&reader, TS_LIVE_COMMAND), 1);
	agent_close_reader(&reader);
	agent_end(true);
}

/* A child that writes forever, into an area that its parent reads. */
static void write_for_ever(int ready)
{
	static char content[100000];

	agent_channel_patience_ns = INT64_C(60000000000);
	TS_CHECK(ts_replay_lock());
	ts_replay_unlock();
	(void)!write(ready, ts_process_tracer.core->path, sizeof(ts_process_tracer.core->path));
	for (;;) {
		TS_CHECK(ts_replay_lock());
		give(TS_COMMAND_LAUNCH, ts_replay_blob(content, sizeof(content)), NULL);
		ts_replay_unlock();
	}
}

/* Wherever it was killed, everything up to its last committed record is complete. */
TS_TEST(a_killed_writer_leaves_whole_records)
{
	struct agent_reader reader = { .directory_fd = -1 };
	struct agent_cursor cursor;
	struct ts_live_record head;
	uint64_t commands = 0, left = 0;
	const uint64_t *at;
	char path[2048];
	int ready[2];
	pid_t pid;

	agent_begin(SMALL);
	TS_CHECK_INT(pipe(ready), 0);
	pid = fork();
	if (pid == 0)
		write_for_ever(ready[1]);
	TS_CHECK_INT(read(ready[0], path, sizeof(path)), sizeof(path));
	close(ready[0]);
	close(ready[1]);
	reader.directory_fd = open(agent_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	TS_CHECK_INT(
		ts_area_open(&reader.area, reader.directory_fd, strrchr(path, '/') + 1, true, NULL),
		0);
	while (reader.rings[0].length + reader.rings[1].length < 3000000) {
		agent_drain(&reader);
		usleep(500);
	}
	kill(pid, SIGKILL);
	TS_CHECK_INT(waitpid(pid, NULL, 0), pid);
	agent_drain(&reader);
	cursor = channel_of(&reader);
	while ((at = agent_next(&cursor, &head))) {
		if (head.kind == TS_LIVE_BLOB)
			left = (left ? left : at[3]) - at[5];
		if (head.kind != TS_LIVE_COMMAND)
			continue;
		TS_CHECK_INT(left, 0);
		TS_CHECK_INT(at[2], ++commands);
		TS_CHECK_INT(at[10], commands);
	}
	TS_CHECK(commands > 10);
	agent_close_reader(&reader);
	agent_end(true);
}
