/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks: the owner of their rows, over areas, files and recorders; each stack reads back as
 * emitted.
 */
#include <tracesmith/metrics.h>
#include <tracesmith/sample.h>

#include "base/local/hash.h"
#include "unit/record/decode/decode_support.h"

#define CHILD 5000u
#define RECORDER 79u
#define RECORDER_PID 6000u

/* Entries of the recorder's dictionary, in this order. */
enum { SITE_PYTHON = 1, CODE_MAIN, CODE_WORK, CODE_NATIVE, SITE_TICK, CODE_COUNT = SITE_TICK };

static void put_codes(struct ts_text *dictionary)
{
	put_site(dictionary, TS_LIVE_SAMPLE, "python", "sampler", NULL, 0);
	put_site(dictionary, TS_LIVE_CODE_PYTHON, "main", "/a/main.py", NULL, 0);
	put_site(dictionary, TS_LIVE_CODE_PYTHON, "Worker.work", "/a/work.py", NULL, 0);
	put_site(dictionary, TS_LIVE_CODE_NATIVE, "gemm", "/lib/libm.so", NULL, 0);
	put_site(dictionary, TS_LIVE_INSTANT, "tick", "test", NULL, 0);
}

/* A recorder's area beside those of start(): its ring is fixture->ring from now on. */
static void start_recorder(struct fixture *fixture)
{
	struct ts_block_area about = plain_area(RECORDER);
	TS_SCOPED(ts_text) dictionary = { 0 };

	start(fixture);
	drain(fixture);
	about.pid = about.control.pid = RECORDER_PID;
	about.control.image = 8;
	about.control.role = TS_LIVE_RECORDER;
	about.control.dictionary = TS_LIVE_DICTIONARY;
	about.control.pool = TS_LIVE_DICTIONARY + TS_LIVE_DICTIONARY_GREATEST;
	TS_CHECK_INT(put_block(&fixture->sink, TS_BLOCK_AREA, RECORDER, &about, sizeof(about)), 0);
	put_codes(&dictionary);
	TS_CHECK_INT(put_dictionary(&fixture->sink, RECORDER, &dictionary, 0), 0);
	fixture->sides[1] = (struct ring_side){ 0 };
	put_thread(&fixture->ring, fixture->counter++, 1, RECORDER_PID, 0, "sampler");
}

static void drain_recorder(struct fixture *fixture)
{
	TS_CHECK_INT(put_ring(&fixture->sink, RECORDER, 0, &fixture->sides[1], &fixture->ring,
			      fixture->events),
		     0);
	fixture->events = 0;
}

/* A THREAD record of the target's area. */
static void announce(struct fixture *fixture, uint32_t serial, uint32_t tid, const char *name)
{
	drain_recorder(fixture);
	put_thread(&fixture->ring, fixture->counter++, serial, tid, 0, name);
	drain(fixture);
}

struct seen {
	uint32_t pid, tid, state;
	uint64_t start_time, weight;
	const uint64_t *frames;
	uint64_t count;
};

static void put_sample(struct fixture *fixture, const struct seen *seen)
{
	struct ts_live_subject subject = { .pid = seen->pid,
					   .device_kind =
						   ts_live_device_kind(0, TS_METRICS_PROCESS),
					   .start_time = seen->start_time };
	struct ts_live_sample sample = { seen->tid, seen->state, seen->weight };
	TS_SCOPED(ts_text) words = { 0 };

	put_fixed(&words, &subject, sizeof(subject));
	put_fixed(&words, &sample, sizeof(sample));
	put_words(&words, &seen->count, 1);
	put_words(&words, seen->frames, seen->count);
	put_record(&fixture->ring, TS_LIVE_SAMPLE, TS_LIVE_FLAG_SUBJECT | TS_LIVE_FLAG_STACK,
		   SITE_PYTHON, fixture->counter++, (const uint64_t *)(const void *)words.data,
		   words.length / 8);
	fixture->events++;
}

static void put_simple(struct fixture *fixture, uint32_t pid, uint64_t start_time, uint32_t tid)
{
	uint64_t frames[2] = { ts_code_frame(CODE_MAIN, 3), ts_code_frame(CODE_WORK, 17) };

	put_sample(fixture, &(struct seen){ .pid = pid,
					    .tid = tid,
					    .start_time = start_time,
					    .frames = frames,
					    .count = 2 });
}

static void put_thread_of(struct fixture *fixture, uint32_t pid, uint64_t start_time, uint32_t tid,
			  const char *name)
{
	uint64_t leading[3] = { subject_word(TS_METRICS_PROCESS, 0, pid), start_time, tid };

	put_texts(fixture, TS_LIVE_THREAD_OF, leading, 3, name, NULL);
}

/* ---- reading ---- */

/* "main:3 Worker.work:17" */
static const char *stack_text(struct rows *rows, int64_t stack)
{
	static char text[8192];
	char before[8192];

	text[0] = 0;
	while (stack) {
		const struct ts_stack_row *row =
			ts_reader_entity(rows->reader, TS_TABLE_STACK, stack);
		const struct ts_frame_row *frame =
			row ? ts_reader_entity(rows->reader, TS_TABLE_FRAME, row->frame) : NULL;

		TS_CHECK(frame != NULL);
		memcpy(before, text, strlen(text) + 1);
		snprintf(text, sizeof(text), "%s:%lld%s%.4000s", rows_text(rows, frame->name),
			 frame->line == TS_ABSENT ? -1 : (long long)frame->line,
			 before[0] ? " " : "", before);
		TS_CHECK(row->parent < stack);
		stack = row->parent;
	}
	return text;
}

static const struct ts_thread_row *thread_of(struct rows *rows, int64_t thread)
{
	const struct ts_thread_row *row = ts_reader_entity(rows->reader, TS_TABLE_THREAD, thread);

	TS_CHECK(row != NULL);
	return row;
}

static int64_t pid_of(struct rows *rows, int64_t thread)
{
	const struct ts_process_row *row =
		ts_reader_entity(rows->reader, TS_TABLE_PROCESS, thread_of(rows, thread)->process);

	TS_CHECK(row != NULL);
	return row->pid;
}

/* Distinct threads with a pid and tid that samples and marks refer to. */
static unsigned int count_threads(const char *path, int64_t pid, int64_t tid)
{
	int64_t found[64];
	unsigned int count = 0;

	for (int pass = 0; pass < 2; pass++) {
		struct rows rows = rows_open(path, pass ? TS_TABLE_MARK : TS_TABLE_SAMPLE);
		struct ts_sample_row sample;
		struct ts_mark_row mark;

		while (pass ? rows_next(&rows, &mark) : rows_next(&rows, &sample)) {
			int64_t thread = pass ? mark.thread : sample.thread;
			unsigned int i = 0;

			if (pid_of(&rows, thread) != pid || thread_of(&rows, thread)->tid != tid)
				continue;
			while (i < count && found[i] != thread)
				i++;
			TS_CHECK(i < 64);
			found[i] = thread;
			count += i == count;
		}
		rows_close(&rows);
	}
	return count;
}

static void put_mark(struct fixture *fixture)
{
	TS_SCOPED(ts_text) words = { 0 };

	put_names(&words, "tick", "");
	put_fields(fixture, TS_LIVE_INSTANT, 0, &words);
}

static bool has_name(const char *path, const char *name)
{
	struct rows rows = rows_open(path, TS_TABLE_SAMPLE);
	struct ts_sample_row row;
	bool found = false;

	while (rows_next(&rows, &row))
		found |= !strcmp(rows_text(&rows, thread_of(&rows, row.thread)->name), name);
	rows_close(&rows);
	return found;
}

/* ---- rows ---- */

TS_TEST(a_sample_is_as_it_was_seen)
{
	uint64_t frames[] = { ts_code_frame(CODE_MAIN, 3), ts_code_frame(CODE_WORK, 0),
			      ts_code_frame(CODE_NATIVE, 0x1234) };
	const struct seen seen = { .pid = CHILD,
				   .tid = CHILD + 1,
				   .state = TS_SAMPLE_STATE_KNOWN | TS_SAMPLE_RUNNING |
					    TS_SAMPLE_HAS_LOCK,
				   .weight = 100000,
				   .frames = frames,
				   .count = 3 };
	const struct ts_stack_row *stack;
	const struct ts_frame_row *frame;
	struct ts_sample_row row;
	struct fixture fixture;
	struct rows rows;

	start_recorder(&fixture);
	put_thread_of(&fixture, CHILD, 0, CHILD + 1, "Thread-1 (work)");
	put_sample(&fixture, &seen);
	drain_recorder(&fixture);
	TS_CHECK_INT(counts(&fixture).samples, 1);
	TS_CHECK_INT(counts(&fixture).events, 0);
	TS_CHECK_INT(counts(&fixture).measured, 0);
	TS_CHECK_INT(counts(&fixture).lost, 0);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_SAMPLE);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.weight, 100000);
	TS_CHECK_STR(rows_text(&rows, row.name), "python");
	TS_CHECK_STR(rows_text(&rows, row.state), "gil");
	TS_CHECK_INT(pid_of(&rows, row.thread), CHILD);
	TS_CHECK_INT(thread_of(&rows, row.thread)->tid, CHILD + 1);
	TS_CHECK_STR(rows_text(&rows, thread_of(&rows, row.thread)->name), "Thread-1 (work)");
	TS_CHECK_STR(stack_text(&rows, row.stack), "main:3 Worker.work:-1 gemm:-1");
	stack = ts_reader_entity(rows.reader, TS_TABLE_STACK, row.stack);
	frame = ts_reader_entity(rows.reader, TS_TABLE_FRAME, stack->frame);
	TS_CHECK_INT(frame->pc, 0x1234);
	TS_CHECK_INT(frame->kind, TS_FRAME_NATIVE);
	TS_CHECK_STR(rows_text(&rows, frame->file), "/lib/libm.so");
	TS_CHECK(!rows_next(&rows, &row));
	rows_close(&rows);
}

TS_TEST(states_have_an_order)
{
	static const struct {
		uint32_t state;
		const char *name;
	} cases[] = {
		{ TS_SAMPLE_RUNNING | TS_SAMPLE_HAS_LOCK, "" },
		{ TS_SAMPLE_STATE_KNOWN, "idle" },
		{ TS_SAMPLE_STATE_KNOWN | TS_SAMPLE_RUNNING, "running" },
		{ TS_SAMPLE_STATE_KNOWN | TS_SAMPLE_RUNNING | TS_SAMPLE_WAITS_LOCK,
		  "waiting for gil" },
		{ TS_SAMPLE_STATE_KNOWN | TS_SAMPLE_HAS_LOCK, "gil" },
		{ TS_SAMPLE_STATE_KNOWN | TS_SAMPLE_HAS_LOCK | TS_SAMPLE_COLLECTING, "collecting" },
	};
	struct ts_sample_row row;
	struct fixture fixture;
	struct rows rows;

	start_recorder(&fixture);
	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++)
		put_sample(&fixture,
			   &(struct seen){ .pid = CHILD, .tid = 1, .state = cases[i].state });
	drain_recorder(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_SAMPLE);
	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		TS_CHECK(rows_next(&rows, &row));
		if (cases[i].name[0])
			TS_CHECK_STR(rows_text(&rows, row.state), cases[i].name);
		else
			TS_CHECK_INT(row.state, 0);
		TS_CHECK_INT(row.stack, 0);
		TS_CHECK_INT(row.weight, TS_ABSENT);
	}
	rows_close(&rows);
}

/* From the recorder's own ring, where codes are known; with an argument between name and stack. */
TS_TEST(marks_and_calls_have_stacks)
{
	uint64_t stack[] = { 1, ts_code_frame(CODE_WORK, 5) }, leading[3] = { 0, 0, 0 };
	uint64_t count = 1, type = TS_ARG_INT, value = 42;
	TS_SCOPED(ts_text) words = { 0 };
	struct ts_api_call_row call;
	struct ts_sample_row sample;
	struct ts_mark_row mark;
	struct fixture fixture;
	struct rows rows;

	start_recorder(&fixture);
	put_record(&fixture.ring, TS_LIVE_INSTANT, TS_LIVE_FLAG_STACK, SITE_TICK, fixture.counter++,
		   stack, 2);
	fixture.events++;
	put_words(&words, leading, 3);
	put_string(&words, "launch", 6);
	put_string(&words, "", 0);
	put_words(&words, &count, 1);
	put_words(&words, &type, 1);
	put_string(&words, "n", 1);
	put_words(&words, &value, 1);
	put_words(&words, stack, 2);
	put_fields(&fixture, TS_LIVE_CALL, TS_LIVE_FLAG_STACK, &words);
	put_mark(&fixture);
	drain_recorder(&fixture);
	TS_CHECK_INT(counts(&fixture).samples, 2);
	TS_CHECK_INT(counts(&fixture).measured, 3);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_MARK);
	TS_CHECK(rows_next(&rows, &mark));
	TS_CHECK_STR(stack_text(&rows, mark.stack), "Worker.work:5");
	TS_CHECK(rows_next(&rows, &mark));
	TS_CHECK_INT(mark.stack, 0);
	rows_close(&rows);
	rows = rows_open(fixture.path, TS_TABLE_API_CALL);
	TS_CHECK(rows_next(&rows, &call));
	TS_CHECK_STR(stack_text(&rows, call.stack), "Worker.work:5");
	TS_CHECK_INT(rows_value(&rows, 0), 42);
	rows_close(&rows);
	rows = rows_open(fixture.path, TS_TABLE_SAMPLE);
	TS_CHECK(rows_next(&rows, &sample));
	TS_CHECK_STR(rows_text(&rows, sample.name), "mark tick");
	TS_CHECK_INT(sample.weight, TS_ABSENT);
	TS_CHECK(rows_next(&rows, &sample));
	TS_CHECK_STR(rows_text(&rows, sample.name), "call launch");
	TS_CHECK_STR(stack_text(&rows, sample.stack), "Worker.work:5");
	rows_close(&rows);
}

/*
 * Compared with a model: two threads, stacks that grow, shrink and change anywhere, over a new
 * file.
 */
TS_TEST(every_stack_is_the_one_that_was_given)
{
	enum { SAMPLES = 3000, DEPTH = 300 };
	static uint64_t given[SAMPLES][DEPTH], current[2][DEPTH];
	static uint64_t depths[SAMPLES], depth[2];
	struct ts_sample_row row;
	struct fixture fixture;
	struct rows rows;
	uint64_t random = 12345;

	start_recorder(&fixture);
	for (unsigned int i = 0; i < SAMPLES; i++) {
		unsigned int who = i & 1, from;

		random = ts_hash_mix64(random + i);
		from = (unsigned int)(random % (depth[who] + 1));
		depth[who] = TS_MIN(from + (random >> 20) % 5, DEPTH);
		if ((random >> 40) % 64 == 0)
			depth[who] = DEPTH;
		for (uint64_t k = from; k < depth[who]; k++)
			current[who][k] = ts_code_frame(CODE_MAIN + (random + k) % 2,
							(uint32_t)(random >> 50 ^ k) % 8 + 1);
		memcpy(given[i], current[who], sizeof(given[i]));
		depths[i] = depth[who];
		put_sample(&fixture, &(struct seen){ .pid = CHILD,
						     .tid = 1 + who,
						     .frames = given[i],
						     .count = depths[i] });
	}
	drain_recorder(&fixture);
	TS_CHECK_INT(counts(&fixture).samples, SAMPLES);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_SAMPLE);
	for (unsigned int i = 0; i < SAMPLES; i++) {
		int64_t stack;

		TS_CHECK(rows_next(&rows, &row));
		stack = row.stack;
		for (uint64_t k = depths[i]; k > 0; k--) {
			const struct ts_stack_row *at =
				ts_reader_entity(rows.reader, TS_TABLE_STACK, stack);
			const struct ts_frame_row *frame =
				ts_reader_entity(rows.reader, TS_TABLE_FRAME, at->frame);

			TS_CHECK_INT(frame->line, (uint32_t)given[i][k - 1]);
			TS_CHECK_STR(rows_text(&rows, frame->name),
				     given[i][k - 1] >> 32 == CODE_MAIN ? "main" : "Worker.work");
			stack = at->parent;
		}
		TS_CHECK_INT(stack, 0);
	}
	rows_close(&rows);
}

/* ---- threads ---- */

TS_TEST(samples_before_events_have_the_same_thread)
{
	struct fixture fixture;

	start_recorder(&fixture);
	put_thread_of(&fixture, PID, 99, 4300, "Worker");
	put_simple(&fixture, PID, 99, 4300);
	announce(&fixture, 2, 4300, "python3");
	put_mark(&fixture);
	drain(&fixture);
	put_simple(&fixture, PID, 99, 4300);
	drain_recorder(&fixture);
	finish(&fixture);
	TS_CHECK_INT(count_threads(fixture.path, PID, 4300), 1);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_SAMPLE), 2);
	TS_CHECK(has_name(fixture.path, "Worker"));
}

TS_TEST(events_before_samples_have_the_same_thread)
{
	struct fixture fixture;

	start_recorder(&fixture);
	announce(&fixture, 2, 4300, "python3");
	put_mark(&fixture);
	drain(&fixture);
	put_thread_of(&fixture, PID, 99, 4300, "Worker");
	put_simple(&fixture, PID, 99, 4300);
	/* The kernel's name again, as when a ring grows. */
	announce(&fixture, 2, 4300, "python3");
	put_mark(&fixture);
	drain(&fixture);
	put_simple(&fixture, PID, 99, 4300);
	drain_recorder(&fixture);
	finish(&fixture);
	TS_CHECK_INT(count_threads(fixture.path, PID, 4300), 1);
	TS_CHECK(has_name(fixture.path, "Worker"));
	TS_CHECK(!has_name(fixture.path, "python3"));
}

TS_TEST(samples_that_come_after_the_end_have_the_same_thread)
{
	struct fixture fixture;

	start_recorder(&fixture);
	announce(&fixture, 2, 4300, "python3");
	put_mark(&fixture);
	drain(&fixture);
	TS_CHECK_INT(put_end(&fixture.sink, AREA, fixture.counter), 0);
	succeed(&fixture);
	put_simple(&fixture, PID, 99, 4300);
	drain_recorder(&fixture);
	finish(&fixture);
	TS_CHECK_INT(count_threads(fixture.path, PID, 4300), 1);
}

/* A successor, with samples first and with events first. */
TS_TEST(a_successor_goes_on_with_the_same_threads)
{
	struct fixture fixture;

	start_recorder(&fixture);
	put_thread_of(&fixture, CHILD, 7, 5001, "A");
	put_simple(&fixture, CHILD, 7, 5001);
	put_simple(&fixture, PID, 99, 4300);
	put_thread_of(&fixture, PID, 99, PID, "MainThread");
	put_simple(&fixture, PID, 99, PID);
	drain_recorder(&fixture);
	succeed(&fixture);
	TS_CHECK_INT(counts(&fixture).samples, 3);
	announce(&fixture, 2, 4300, "late");
	put_mark(&fixture);
	/* The kernel's name does not come back. */
	put_thread(&fixture.ring, fixture.counter++, 1, PID, 0, "python3");
	put_mark(&fixture);
	drain(&fixture);
	put_simple(&fixture, CHILD, 7, 5001);
	put_simple(&fixture, PID, 99, 4300);
	put_simple(&fixture, PID, 99, PID);
	drain_recorder(&fixture);
	succeed(&fixture);
	TS_CHECK_INT(counts(&fixture).samples, 6);
	finish(&fixture);
	TS_CHECK_INT(count_threads(fixture.path, CHILD, 5001), 1);
	TS_CHECK_INT(count_threads(fixture.path, PID, 4300), 1);
	TS_CHECK_INT(count_threads(fixture.path, PID, PID), 1);
	TS_CHECK(has_name(fixture.path, "A"));
	TS_CHECK(has_name(fixture.path, "MainThread"));
	TS_CHECK(!has_name(fixture.path, "python3"));
}

TS_TEST(a_new_file_has_all_that_its_samples_need)
{
	struct fixture fixture;
	const char *first;
	struct ts_sample_row row;
	struct rows rows;

	start_recorder(&fixture);
	put_thread_of(&fixture, CHILD, 0, 5001, "A");
	put_simple(&fixture, CHILD, 0, 5001);
	drain_recorder(&fixture);
	TS_CHECK_INT(ts_writer_finish(fixture.writer, NULL), 0);
	ts_writer_close(fixture.writer);
	first = fixture.path;
	check_finished(first);
	open_file(&fixture, "second.sbt");
	TS_CHECK_INT(ts_decoder_set_writer(fixture.decoder, fixture.writer, true, "second"), 0);
	put_simple(&fixture, CHILD, 0, 5001);
	drain_recorder(&fixture);
	finish(&fixture);
	for (int i = 0; i < 2; i++) {
		rows = rows_open(i ? fixture.path : first, TS_TABLE_SAMPLE);
		TS_CHECK(rows_next(&rows, &row));
		TS_CHECK_STR(stack_text(&rows, row.stack), "main:3 Worker.work:17");
		TS_CHECK_STR(rows_text(&rows, row.name), "python");
		TS_CHECK_STR(rows_text(&rows, thread_of(&rows, row.thread)->name), "A");
		TS_CHECK_INT(pid_of(&rows, row.thread), CHILD);
		TS_CHECK(!rows_next(&rows, &row));
		rows_close(&rows);
	}
}

TS_TEST(a_number_that_is_used_again_is_another_thread)
{
	struct fixture fixture;

	start_recorder(&fixture);
	announce(&fixture, 2, 4300, "first");
	put_mark(&fixture);
	drain(&fixture);
	put_simple(&fixture, PID, 99, 4300);
	/* The process itself sets it. */
	announce(&fixture, 3, 4300, "second");
	put_mark(&fixture);
	drain(&fixture);
	put_simple(&fixture, PID, 99, 4300);
	drain_recorder(&fixture);
	/*
	 * A sampler gives it another name: immediately it is the same thread, after a while it is
	 * not.
	 */
	put_thread_of(&fixture, CHILD, 0, 5001, "A");
	put_simple(&fixture, CHILD, 0, 5001);
	put_thread_of(&fixture, CHILD, 0, 5001, "B");
	put_simple(&fixture, CHILD, 0, 5001);
	fixture.counter += 6000000000;
	put_thread_of(&fixture, CHILD, 0, 5001, "B");
	put_simple(&fixture, CHILD, 0, 5001);
	drain_recorder(&fixture);
	finish(&fixture);
	TS_CHECK_INT(count_threads(fixture.path, PID, 4300), 2);
	TS_CHECK_INT(count_threads(fixture.path, CHILD, 5001), 1);
	TS_CHECK(!has_name(fixture.path, "A") && has_name(fixture.path, "B"));
	start_recorder(&fixture);
	put_thread_of(&fixture, CHILD, 0, 5001, "A");
	put_simple(&fixture, CHILD, 0, 5001);
	fixture.counter += 6000000000;
	put_thread_of(&fixture, CHILD, 0, 5001, "B");
	put_simple(&fixture, CHILD, 0, 5001);
	drain_recorder(&fixture);
	finish(&fixture);
	TS_CHECK_INT(count_threads(fixture.path, CHILD, 5001), 2);
	TS_CHECK(has_name(fixture.path, "A") && has_name(fixture.path, "B"));
}

TS_TEST(what_a_program_calls_its_thread_stands)
{
	struct fixture fixture;

	start_recorder(&fixture);
	announce(&fixture, 2, 4300, "python3");
	put_texts(&fixture, TS_LIVE_THREAD_NAME, NULL, 0, "a name that the program has given",
		  NULL);
	drain(&fixture);
	put_thread_of(&fixture, PID, 99, 4300, "MainThread");
	put_simple(&fixture, PID, 99, 4300);
	drain_recorder(&fixture);
	finish(&fixture);
	TS_CHECK(has_name(fixture.path, "a name that the program has given"));
}

TS_TEST(threads_without_end_take_bounded_memory)
{
	struct fixture fixture;

	start_recorder(&fixture);
	for (uint32_t i = 1; i <= 150000; i++) {
		put_sample(&fixture, &(struct seen){ .pid = CHILD, .tid = i });
		if (fixture.ring.length > (1 << 20))
			drain_recorder(&fixture);
	}
	drain_recorder(&fixture);
	succeed(&fixture);
	TS_CHECK_INT(counts(&fixture).samples, 150000);
	finish(&fixture);
}

/* ---- what does not fit, and what is not a stack ---- */

TS_TEST(frames_without_a_name_are_counted)
{
	uint64_t frames[] = { ts_code_frame(CODE_MAIN, 1), ts_code_frame(0, 7),
			      ts_code_frame(CODE_COUNT + 1, 2), ts_code_frame(SITE_PYTHON, 2),
			      ts_code_frame(TS_LIVE_FRAMES_LEFT_OUT, 12345) };
	struct ts_sample_row row;
	struct fixture fixture;
	struct rows rows;

	start_recorder(&fixture);
	for (int i = 0; i < 2; i++)
		put_sample(&fixture,
			   &(struct seen){ .pid = CHILD, .tid = 1, .frames = frames, .count = 5 });
	drain_recorder(&fixture);
	TS_CHECK_INT(counts(&fixture).lost, 0);
	finish(&fixture);
	TS_CHECK_INT(losses_of(fixture.path, "frames", "the dictionary is full"), 6);
	rows = rows_open(fixture.path, TS_TABLE_SAMPLE);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_STR(stack_text(&rows, row.stack),
		     "main:1 (name not stored):-1 (name not stored):-1 (name not stored):-1 "
		     "(12345 frames left out):-1");
	rows_close(&rows);
}

TS_TEST(different_stacks_without_end_are_cut)
{
	enum { DEPTH = 1800, SAMPLES = (1 << 21) / DEPTH + 2 };
	static uint64_t frames[DEPTH];
	struct fixture fixture;

	start_recorder(&fixture);
	for (uint32_t i = 0; i < SAMPLES; i++) {
		for (uint32_t k = 0; k < DEPTH; k++)
			frames[k] = ts_code_frame(CODE_MAIN, i + 1);
		put_sample(
			&fixture,
			&(struct seen){ .pid = CHILD, .tid = 1, .frames = frames, .count = DEPTH });
		drain_recorder(&fixture);
	}
	TS_CHECK_INT(counts(&fixture).samples, SAMPLES);
	finish(&fixture);
	TS_CHECK_INT(losses_of(fixture.path, "frames", "too many different stacks"),
		     (int64_t)SAMPLES * DEPTH - (1 << 21));
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_STACK), 1 << 21);
}

/* Each damages its own ring at most. */
TS_TEST(records_that_make_no_sense)
{
	uint64_t subject = subject_word(TS_METRICS_PROCESS, 0, CHILD);
	uint64_t machine = subject_word(TS_METRICS_SYSTEM, 0, 0);
	const struct {
		unsigned int kind, flags;
		uint64_t words[8];
		size_t count;
		bool is_damage;
	} cases[] = {
		{ TS_LIVE_SAMPLE, 48, { subject, 0, 1 }, 3, true },
		{ TS_LIVE_SAMPLE, 48, { subject, 0, 1, 0 }, 4, true },
		{ TS_LIVE_SAMPLE, 48, { subject, 0, 1, 0, 3, 1, 1 }, 7, true },
		{ TS_LIVE_SAMPLE, 48, { subject, 0, 1, 0, UINT64_MAX, 1, 1 }, 7, true },
		{ TS_LIVE_SAMPLE, 48, { machine, 0, 1, 0, 0 }, 5, false },
		{ TS_LIVE_SAMPLE, 48, { 0, 0, 1, 0, 0 }, 5, false },
		{ TS_LIVE_SAMPLE, 16, { subject, 0, 1, 0 }, 4, false },
		{ TS_LIVE_SAMPLE, 32, { 1, 0, 0 }, 3, false },
		{ TS_LIVE_SAMPLE, 0, { 1, 0 }, 2, false },
		{ TS_LIVE_INSTANT, 32, { 5, 1 }, 2, true },
		{ TS_LIVE_THREAD_OF, 0, { subject, 0 }, 2, true },
		{ TS_LIVE_THREAD_OF, 0, { subject, 0, 1, 100 }, 4, true },
		{ TS_LIVE_THREAD_OF, 0, { machine, 0, 1, 0 }, 4, false },
	};
	struct fixture fixture;

	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		uint64_t samples;

		start_recorder(&fixture);
		put_record(&fixture.ring, cases[i].kind, cases[i].flags, SITE_PYTHON,
			   fixture.counter++, cases[i].words, cases[i].count);
		fixture.events += ts_live_kind_is_event(cases[i].kind);
		drain_recorder(&fixture);
		samples = counts(&fixture).samples;
		put_simple(&fixture, CHILD, 0, 1);
		drain_recorder(&fixture);
		TS_CHECK_INT(counts(&fixture).samples - samples, !cases[i].is_damage);
		put_mark(&fixture);
		drain(&fixture);
		TS_CHECK_INT(counts(&fixture).events, 1);
		finish(&fixture);
	}
}

/* ---- dictionaries ---- */

/* A recorder's may be larger. */
TS_TEST(dictionaries_are_as_large_as_their_area_says)
{
	TS_SCOPED(ts_text) dictionary = { 0 };
	char name[1000];
	struct fixture fixture;
	uint32_t code = 0;
	uint64_t frame;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	start_recorder(&fixture);
	put_codes(&dictionary);
	frame = dictionary.length;
	while (dictionary.length < (4u << 20)) {
		put_site(&dictionary, TS_LIVE_CODE_PYTHON, name, "f.py", NULL, 0);
		code++;
	}
	TS_CHECK_INT(put_dictionary(&fixture.sink, RECORDER, &dictionary, frame), 0);
	frame = ts_code_frame(CODE_COUNT + code, 1);
	put_sample(&fixture,
		   &(struct seen){ .pid = CHILD, .tid = 1, .frames = &frame, .count = 1 });
	drain_recorder(&fixture);
	/* The same size is damage in a program's. */
	TS_CHECK_INT(put_dictionary(&fixture.sink, AREA, &dictionary, 0), 0);
	put_record(&fixture.ring, TS_LIVE_INSTANT, 0, SITE_TICK, fixture.counter++, NULL, 0);
	fixture.events++;
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).events, 0);
	succeed(&fixture);
	put_sample(&fixture,
		   &(struct seen){ .pid = CHILD, .tid = 1, .frames = &frame, .count = 1 });
	drain_recorder(&fixture);
	TS_CHECK_INT(counts(&fixture).samples, 2);
	finish(&fixture);
	TS_CHECK_INT(losses_of(fixture.path, "frames", ""), 0);
}

/* ---- malformed states ---- */

struct copied {
	struct ts_block blocks[32];
	char *payloads[32];
	size_t count;
};

static int copy_block(void *context, struct ts_block *block, const void *payload,
		      struct ts_error *err)
{
	struct copied *copied = context;

	(void)err;
	TS_CHECK(copied->count < TS_ARRAY_SIZE(copied->blocks));
	copied->blocks[copied->count] = *block;
	copied->payloads[copied->count] = malloc(block->bytes ? block->bytes : 1);
	memcpy(copied->payloads[copied->count++], payload, block->bytes);
	return TS_OK;
}

TS_TEST(cut_and_changed_states_are_survived)
{
	struct copied copied = { .count = 0 };
	struct ts_block_sink sink = { .append = copy_block, .context = &copied };
	struct fixture fixture;

	start_recorder(&fixture);
	put_thread_of(&fixture, CHILD, 0, 1, "A");
	put_simple(&fixture, CHILD, 0, 1);
	put_thread_of(&fixture, PID, 99, PID, "MainThread");
	put_simple(&fixture, PID, 99, PID);
	drain_recorder(&fixture);
	TS_CHECK_INT(ts_decoder_seal(fixture.decoder), 0);
	TS_CHECK_INT(ts_decoder_save_state(fixture.decoder, &sink, NULL), 0);
	finish(&fixture);
	for (uint32_t turn = 0; turn < 1000; turn++) {
		struct ring_side side = { .position = 1 << 20 };

		start(&fixture);
		ts_decoder_free(fixture.decoder);
		fixture.open.trace_bytes = turn % 2 ? 64 : 0;
		open_decoder(&fixture);
		for (size_t i = 0; i < copied.count; i++) {
			struct ts_block block = copied.blocks[i];
			char *payload;

			if (block.type == TS_BLOCK_STATE && turn < 300)
				block.bytes -= TS_MIN(turn / 2 * 8, block.bytes);
			payload = malloc(block.bytes ? block.bytes : 1);
			memcpy(payload, copied.payloads[i], block.bytes);
			for (uint32_t k = 0; block.type == TS_BLOCK_STATE && turn >= 300 && k < 3;
			     k++)
				if (block.bytes)
					payload[ts_hash_mix64(turn * 8 + k) % block.bytes] ^=
						(char)(ts_hash_mix64(turn * 31 + k) | 1);
			TS_CHECK_INT(ts_decoder_block(fixture.decoder, &block, payload, NULL), 0);
			free(payload);
		}
		ts_text_clear(&fixture.ring);
		put_thread(&fixture.ring, fixture.counter++, 1, RECORDER_PID, 0, "sampler");
		put_simple(&fixture, CHILD, 0, 1);
		put_simple(&fixture, PID, 99, PID);
		TS_CHECK_INT(put_ring(&fixture.sink, RECORDER, 0, &side, &fixture.ring, 2), 0);
		fixture.events = 0;
		finish(&fixture);
	}
	for (size_t i = 0; i < copied.count; i++)
		free(copied.payloads[i]);
}
