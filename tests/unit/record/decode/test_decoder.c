/* SPDX-License-Identifier: Apache-2.0 */
/* Records of every kind as rows; exact counts; hostile bytes that affect no other rows. */
#include "record/decode/decoder.h"

#include "unit/record/record_support.h"

/* A decoder on a trace of its own. */
struct fixture {
	const char *path;
	struct ts_writer *writer;
	struct ts_decoder *decoder;
	struct ts_block_sink sink;
	struct ts_text ring, dictionary;
	struct ring_side side;
	uint64_t closed_windows;
};

static int decode(void *context, struct ts_block *block, const void *payload, struct ts_error *err)
{
	struct fixture *fixture = context;

	return ts_decoder_block(fixture->decoder, block, payload, err);
}

static void window_closed(void *context, uint64_t area, const struct ts_block_window *opened,
			  const struct ts_block_window *closed)
{
	struct fixture *fixture = context;

	TS_CHECK_INT(area, AREA);
	TS_CHECK(opened->counter <= closed->counter);
	fixture->closed_windows++;
}

static void start_with(struct fixture *fixture, const struct ts_block_open *open)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_decoder_options how = { .window_closed = window_closed, .context = fixture };

	memset(fixture, 0, sizeof(*fixture));
	fixture->path = file_in_folder("t.sbt");
	TS_CHECK_INT(ts_writer_open(&fixture->writer, fixture->path, &options, NULL), 0);
	TS_CHECK_INT(ts_decoder_new(&fixture->decoder, &how, NULL), 0);
	TS_CHECK_INT(ts_decoder_set_writer(fixture->decoder, fixture->writer, false, "t.sbt"), 0);
	fixture->sink = (struct ts_block_sink){ .append = decode, .context = fixture };
	TS_CHECK_INT(put_block(&fixture->sink, TS_BLOCK_OPEN, 0, open, sizeof(*open)), 0);
	TS_CHECK_INT(put_area(&fixture->sink, AREA), 0);
	put_plain_sites(&fixture->dictionary);
	TS_CHECK_INT(put_dictionary(&fixture->sink, AREA, &fixture->dictionary, 0), 0);
}

static void start(struct fixture *fixture)
{
	struct ts_block_open open = plain_open();

	start_with(fixture, &open);
}

/* Drains all of ring 0 so far, which has that many events. */
static void drain(struct fixture *fixture, uint64_t events)
{
	TS_CHECK_INT(put_ring(&fixture->sink, AREA, 0, &fixture->side, &fixture->ring, events), 0);
}

static void finish(struct fixture *fixture)
{
	TS_CHECK_INT(ts_decoder_finish(fixture->decoder), 0);
	TS_CHECK_INT(ts_writer_finish(fixture->writer, NULL), 0);
	ts_decoder_free(fixture->decoder);
	ts_writer_close(fixture->writer);
	ts_text_release(&fixture->ring);
	ts_text_release(&fixture->dictionary);
	check_finished(fixture->path);
}

static struct ts_decoder_counts counts(const struct fixture *fixture)
{
	struct ts_decoder_counts found;

	ts_decoder_counts(fixture->decoder, &found);
	return found;
}

/* Counter to trace time: one count is one ns. */
static int64_t at(uint64_t counter)
{
	return 5000000000 + (int64_t)counter - (int64_t)STARTED;
}

TS_TEST(instants_are_marks_of_their_thread)
{
	struct fixture fixture;
	struct ts_mark_row mark;
	struct rows rows;

	start(&fixture);
	put_thread(&fixture.ring, STARTED + 3000, 1, PID, 0, "main");
	for (uint64_t i = 0; i < 1000; i++)
		put_instant(&fixture.ring, 1, STARTED + 4000 + i, i);
	drain(&fixture, 1000);
	TS_CHECK_INT(counts(&fixture).events, 1000);
	TS_CHECK_INT(counts(&fixture).lost, 0);
	finish(&fixture);

	rows = rows_open(fixture.path, TS_TABLE_MARK);
	for (int64_t i = 0; i < 1000; i++) {
		const struct ts_thread_row *thread;
		const struct ts_process_row *process;

		TS_CHECK(rows_next(&rows, &mark));
		TS_CHECK_INT(mark.start, at(STARTED + 4000 + (uint64_t)i));
		TS_CHECK_STR(rows_text(&rows, mark.name), "tick");
		TS_CHECK_STR(rows_text(&rows, mark.category), "test");
		TS_CHECK_INT(rows_value(&rows, 0), i);
		thread = ts_reader_entity(rows.reader, TS_TABLE_THREAD, mark.thread);
		TS_CHECK_INT(thread->tid, PID);
		TS_CHECK_STR(rows_text(&rows, thread->name), "main");
		process = ts_reader_entity(rows.reader, TS_TABLE_PROCESS, thread->process);
		TS_CHECK_INT(process->pid, PID);
		TS_CHECK_STR(rows_text(&rows, process->name), "target");
		TS_CHECK_STR(rows_text(&rows, process->command), "[\"target\",\"--all\"]");
	}
	TS_CHECK(!rows_next(&rows, &mark));
	rows_close(&rows);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_LOSS), 0);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_SOURCE), 1);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_HOST), 1);
}

TS_TEST(spans_end_at_their_counter_and_never_begin_before_the_trace)
{
	static const struct {
		unsigned int flags;
		uint64_t counter, duration, start;
		int64_t expected_start, expected_duration;
	} cases[] = {
		{ 0, STARTED + 5000, 1000, 0, 4000, 1000 },
		{ TS_LIVE_FLAG_TICKS, STARTED + 5001, 1000, 0, 4001, 1000 },
		{ TS_LIVE_FLAG_START, STARTED + 9000, 700, STARTED + 5002, 5002, 700 },
		{ 0, STARTED + 5003, 6000, 0, 0, 5003 },
		{ 0, STARTED + 5004, UINT64_MAX, 0, 0, 5004 },
		{ TS_LIVE_FLAG_TICKS, STARTED + 5005, UINT64_MAX, 0, 0, 5005 },
		{ TS_LIVE_FLAG_START, STARTED + 9001, 2000000, 5, 0, 1000005 },
		{ TS_LIVE_FLAG_START, STARTED + 9002, UINT64_MAX, UINT64_MAX, 0, INT64_MAX },
	};
	struct fixture fixture;
	struct ts_slice_row slice;
	struct rows rows;
	size_t found = 0;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		uint64_t words[2] = { cases[i].duration, cases[i].start };

		put_record(&fixture.ring, TS_LIVE_SPAN, cases[i].flags, 2, cases[i].counter, words,
			   cases[i].flags & TS_LIVE_FLAG_START ? 2 : 1);
	}
	drain(&fixture, TS_ARRAY_SIZE(cases));
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_SLICE);
	while (rows_next(&rows, &slice)) {
		bool fits = false;

		TS_CHECK_STR(rows_text(&rows, slice.name), "work");
		TS_CHECK(slice.start >= at(STARTED) && slice.duration >= 0);
		for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++)
			fits |= (slice.start == at(STARTED) + cases[i].expected_start &&
				 slice.duration == cases[i].expected_duration) ||
				cases[i].expected_duration == INT64_MAX;
		TS_CHECK(fits);
		found++;
	}
	TS_CHECK_INT(found, TS_ARRAY_SIZE(cases));
	rows_close(&rows);
}

TS_TEST(begins_and_ends_pair_by_thread_and_track)
{
	struct fixture fixture;
	struct ts_slice_row slice;
	struct rows rows;
	uint64_t track = 3;
	int open = 0, nested = 0;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, 10, 0, "one");
	put_record(&fixture.ring, TS_LIVE_END, 0, 0, STARTED + 10, NULL, 0);
	put_record(&fixture.ring, TS_LIVE_BEGIN, 0, 2, STARTED + 100, NULL, 0);
	put_record(&fixture.ring, TS_LIVE_BEGIN, TS_LIVE_FLAG_TRACK, 2, STARTED + 110, &track, 1);
	put_record(&fixture.ring, TS_LIVE_BEGIN, TS_LIVE_FLAG_SIDE, 2, STARTED + 115, NULL, 0);
	put_record(&fixture.ring, TS_LIVE_BEGIN, 0, 2, STARTED + 120, NULL, 0);
	put_thread(&fixture.ring, STARTED, 2, 11, 0, "two");
	put_record(&fixture.ring, TS_LIVE_BEGIN, 0, 2, STARTED + 130, NULL, 0);
	drain(&fixture, 6);
	put_thread(&fixture.ring, STARTED, 1, 10, 0, "one");
	put_record(&fixture.ring, TS_LIVE_END, 0, 0, STARTED + 140, NULL, 0);
	put_record(&fixture.ring, TS_LIVE_END, TS_LIVE_FLAG_TRACK, 0, STARTED + 160, &track, 1);
	put_record(&fixture.ring, TS_LIVE_END, 0, 0, STARTED + 170, NULL, 0);
	put_record(&fixture.ring, TS_LIVE_END, TS_LIVE_FLAG_SIDE, 0, STARTED + 180, NULL, 0);
	drain(&fixture, 4);
	TS_CHECK_INT(counts(&fixture).events, 9);
	TS_CHECK_INT(counts(&fixture).lost, 1);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_SLICE);
	while (rows_next(&rows, &slice)) {
		const struct ts_thread_row *thread =
			ts_reader_entity(rows.reader, TS_TABLE_THREAD, slice.thread);

		if (slice.duration == -1) {
			TS_CHECK_INT(slice.start, at(STARTED + 130));
			TS_CHECK_STR(rows_text(&rows, thread->name), "two");
			open++;
			continue;
		}
		if (slice.start == at(STARTED + 100))
			TS_CHECK_INT(slice.duration, 70);
		else if (slice.start == at(STARTED + 110))
			TS_CHECK_INT(slice.duration, 50);
		else if (slice.start == at(STARTED + 115))
			TS_CHECK_INT(slice.duration, 65);
		else
			TS_CHECK_INT(slice.duration, 20);
		if (thread->tid == 3)
			TS_CHECK_STR(rows_text(&rows, thread->name), "track 3");
		nested++;
	}
	TS_CHECK_INT(open, 1);
	TS_CHECK_INT(nested, 4);
	rows_close(&rows);
	TS_CHECK_INT(count_lost(fixture.path, "end without begin"), 1);
}

/*
 * The dynamic form: name, category, and arguments of all types, one with bytes that are not text.
 */
static void put_dynamic(struct ts_text *ring, uint64_t counter)
{
	TS_SCOPED(ts_text) words = { 0 };
	uint64_t word = 4;
	double real = 2.5;

	put_string(&words, "made at run time", 16);
	put_string(&words, "", 0);
	ts_text_append(&words, &word, 8);
	word = TS_ARG_INT;
	ts_text_append(&words, &word, 8);
	put_string(&words, "n", 1);
	word = (uint64_t)-5;
	ts_text_append(&words, &word, 8);
	word = TS_ARG_DOUBLE;
	ts_text_append(&words, &word, 8);
	put_string(&words, "x", 1);
	ts_text_append(&words, &real, 8);
	word = TS_ARG_STRING;
	ts_text_append(&words, &word, 8);
	put_string(&words, "text", 4);
	put_string(&words,
		   "a\xff"
		   "b",
		   3);
	word = TS_ARG_BOOL;
	ts_text_append(&words, &word, 8);
	put_string(&words, "yes", 3);
	word = 17;
	ts_text_append(&words, &word, 8);
	put_record(ring, TS_LIVE_INSTANT, 0, 0, counter, (const uint64_t *)(void *)words.data,
		   words.length / 8);
}

static void check_dynamic(const char *path, bool redacted)
{
	struct rows rows = rows_open(path, TS_TABLE_MARK);
	const struct ts_shape *shape;
	struct ts_mark_row mark;
	double real;
	int64_t bits;

	TS_CHECK(rows_next(&rows, &mark));
	TS_CHECK_STR(rows_text(&rows, mark.name), "made at run time");
	TS_CHECK_INT(mark.category, 0);
	shape = ts_reader_shape(rows.reader, mark.shape);
	TS_CHECK_INT(shape->field_count, redacted ? 3 : 4);
	TS_CHECK_INT(rows_value(&rows, 0), -5);
	bits = rows_value(&rows, 1);
	memcpy(&real, &bits, sizeof(real));
	TS_CHECK(real == 2.5);
	if (!redacted)
		TS_CHECK_STR(rows_text(&rows, rows_value(&rows, 2)), "a\xef\xbf\xbd"
								     "b");
	TS_CHECK_INT(rows_value(&rows, redacted ? 2 : 3), 1);
	TS_CHECK(!rows_next(&rows, &mark));
	rows_close(&rows);
}

TS_TEST(dynamic_records_bring_their_names_with_them)
{
	struct fixture fixture;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_dynamic(&fixture.ring, STARTED + 10);
	drain(&fixture, 1);
	finish(&fixture);
	check_dynamic(fixture.path, false);
}

TS_TEST(redaction_drops_texts_and_commands)
{
	static const struct site_field fields[] = { { "secret", TS_ARG_STRING },
						    { "n", TS_ARG_INT } };
	struct ts_block_open open = plain_open();
	TS_SCOPED(ts_text) words = { 0 };
	struct fixture fixture;
	struct ts_process_row process;
	struct ts_counter_row counter;
	struct rows rows;
	uint64_t from, value = 8;

	open.redact = 1;
	start_with(&fixture, &open);
	from = fixture.dictionary.length;
	put_site(&fixture.dictionary, TS_LIVE_COUNTER, "load", "", fields, 2);
	TS_CHECK_INT(put_dictionary(&fixture.sink, AREA, &fixture.dictionary, from), 0);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_dynamic(&fixture.ring, STARTED + 10);
	put_string(&words, "password", 8);
	ts_text_append(&words, &value, 8);
	put_record(&fixture.ring, TS_LIVE_COUNTER, 0, 3, STARTED + 11,
		   (const uint64_t *)(void *)words.data, words.length / 8);
	drain(&fixture, 2);
	finish(&fixture);
	check_dynamic(fixture.path, true);
	rows = rows_open(fixture.path, TS_TABLE_PROCESS);
	while (rows_next(&rows, &process))
		TS_CHECK_INT(process.command, 0);
	for (uint32_t i = 1; i < ts_reader_string_end(rows.reader); i++)
		TS_CHECK(strcmp(rows_text(&rows, i), "password") != 0);
	rows_close(&rows);
	rows = rows_open(fixture.path, TS_TABLE_COUNTER);
	TS_CHECK(rows_next(&rows, &counter));
	TS_CHECK_STR(rows_text(&rows, counter.name), "load");
	TS_CHECK_INT(rows_value(&rows, 0), 8);
	rows_close(&rows);
}

/* Values of watched variables: numbers, too, in both forms of an event. */
static void check_watch(bool of_area)
{
	static const struct site_field fields[] = { { "loss", TS_ARG_INT },
						    { "name", TS_ARG_STRING } };
	uint64_t value = 8, from, one = 1, type = TS_ARG_INT;
	struct ts_block_open open = plain_open();
	struct ts_block_area area = plain_area(AREA);
	TS_SCOPED(ts_text) words = { 0 };
	struct fixture fixture;
	struct ts_mark_row mark;
	struct rows rows;

	open.redact = !of_area;
	area.control.always_redact = of_area;
	start_with(&fixture, &open);
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_AREA, AREA, &area, sizeof(area)), 0);
	from = fixture.dictionary.length;
	put_site(&fixture.dictionary, TS_LIVE_INSTANT, "watched", "watch", fields, 2);
	TS_CHECK_INT(put_dictionary(&fixture.sink, AREA, &fixture.dictionary, from), 0);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_words(&words, &value, 1);
	put_string(&words, "password", 8);
	put_record(&fixture.ring, TS_LIVE_INSTANT, 0, 3, STARTED + 10,
		   (const uint64_t *)(void *)words.data, words.length / 8);
	ts_text_clear(&words);
	put_string(&words, "watched", 7);
	put_string(&words, "watch", 5);
	put_words(&words, &one, 1);
	put_words(&words, &type, 1);
	put_string(&words, "loss", 4);
	put_words(&words, &value, 1);
	put_record(&fixture.ring, TS_LIVE_INSTANT, 0, 0, STARTED + 11,
		   (const uint64_t *)(void *)words.data, words.length / 8);
	drain(&fixture, 2);
	TS_CHECK_INT(counts(&fixture).events, 2);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_MARK);
	for (int i = 0; i < 2; i++) {
		TS_CHECK(rows_next(&rows, &mark));
		TS_CHECK_STR(rows_text(&rows, mark.name), "watched");
		TS_CHECK_INT(ts_reader_shape(rows.reader, mark.shape)->field_count, 0);
	}
	for (uint32_t i = 1; i < ts_reader_string_end(rows.reader); i++)
		TS_CHECK(strcmp(rows_text(&rows, i), "password") != 0);
	rows_close(&rows);
}

TS_TEST(redaction_drops_watched_variables)
{
	check_watch(false);
}

TS_TEST(a_process_may_ask_for_redaction)
{
	check_watch(true);
}

TS_TEST(steps_are_marks_and_names_come_late)
{
	struct fixture fixture;
	TS_SCOPED(ts_text) words = { 0 };
	const struct ts_thread_row *thread;
	struct ts_mark_row mark;
	struct rows rows;
	uint64_t number = 41;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "");
	put_record(&fixture.ring, TS_LIVE_STEP, 0, 0, STARTED + 10, &number, 1);
	put_string(&words, "trainer", 7);
	put_record(&fixture.ring, TS_LIVE_THREAD_NAME, 0, 0, STARTED + 11,
		   (const uint64_t *)(void *)words.data, words.length / 8);
	drain(&fixture, 1);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_MARK);
	TS_CHECK(rows_next(&rows, &mark));
	TS_CHECK_STR(rows_text(&rows, mark.name), "step");
	TS_CHECK_STR(rows_text(&rows, mark.category), "step");
	TS_CHECK_INT(rows_value(&rows, 0), 41);
	thread = ts_reader_entity(rows.reader, TS_TABLE_THREAD, mark.thread);
	TS_CHECK_STR(rows_text(&rows, thread->name), "trainer");
	rows_close(&rows);
}

TS_TEST(losses_are_counted_by_reason_and_thread)
{
	struct ts_block_end end = { .ended_counter = STARTED + 900,
				    .exit_status = 256,
				    .lost_nested = 3,
				    .lost_no_ring = 4,
				    .strings_cut = 5 };
	struct ts_block block;
	struct fixture fixture;
	struct ts_loss_row loss;
	struct rows rows;
	uint64_t of_one = 0, of_two = 0;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, 10, 0, "one");
	put_instant(&fixture.ring, 1, STARTED + 10, 1);
	put_thread(&fixture.ring, STARTED + 20, 2, 11, 30, "two");
	put_instant(&fixture.ring, 1, STARTED + 30, 1);
	fixture.side.dropped = 100;
	drain(&fixture, 2);
	/* Overwritten: `events` rises by more than the number of records. */
	put_instant(&fixture.ring, 1, STARTED + 40, 1);
	fixture.side.position += 8000;
	drain(&fixture, 1 + 200);
	/* Not stored, for lack of space. */
	block = (struct ts_block){ .type = TS_BLOCK_RING,
				   .area = AREA,
				   .from = fixture.side.position,
				   .to = fixture.side.position + 800,
				   .events = fixture.side.events + 40,
				   .dropped = 100 };
	TS_CHECK_INT(ts_decoder_block(fixture.decoder, &block, NULL, NULL), 0);
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_END, AREA, &end, sizeof(end)), 0);
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_END, AREA, &end, sizeof(end)), 0);
	TS_CHECK_INT(counts(&fixture).events, 3);
	TS_CHECK_INT(counts(&fixture).lost, 100 + 200 + 40 + 7);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_MARK), 3);
	TS_CHECK_INT(count_lost(fixture.path, "ring full: the recorder lagged"), 100);
	TS_CHECK_INT(count_lost(fixture.path, "overwritten"), 200);
	TS_CHECK_INT(count_lost(fixture.path, "disk full"), 40);
	TS_CHECK_INT(count_lost(fixture.path, NULL), 100 + 200 + 40 + 7);
	rows = rows_open(fixture.path, TS_TABLE_LOSS);
	while (rows_next(&rows, &loss)) {
		const struct ts_thread_row *thread =
			ts_reader_entity(rows.reader, TS_TABLE_THREAD, loss.thread);

		if (!loss.thread || strncmp(rows_text(&rows, loss.reason), "ring full", 9) != 0)
			continue;
		*(thread->tid == 10 ? &of_one : &of_two) += (uint64_t)loss.count;
		TS_CHECK(loss.start >= at(STARTED) && loss.start < at(STARTED + 1000));
	}
	rows_close(&rows);
	TS_CHECK_INT(of_one, 30);
	TS_CHECK_INT(of_two, 70);
}

TS_TEST(what_another_recording_took_is_not_lost)
{
	struct ts_block block = { .type = TS_BLOCK_RING,
				  .flags = TS_RING_START,
				  .area = AREA,
				  .from = 4096,
				  .to = 4096,
				  .events = 500,
				  .dropped = 9 };
	struct fixture fixture;

	start(&fixture);
	TS_CHECK_INT(ts_decoder_block(fixture.decoder, &block, NULL, NULL), 0);
	fixture.side = (struct ring_side){ .position = 4096, .events = 500, .dropped = 10 };
	put_thread(&fixture.ring, 0, 1, 10, 9, "one");
	put_instant(&fixture.ring, 1, STARTED + 40, 1);
	drain(&fixture, 1);
	TS_CHECK_INT(counts(&fixture).events, 1);
	TS_CHECK_INT(counts(&fixture).lost, 1);
	finish(&fixture);
	TS_CHECK_INT(count_lost(fixture.path, NULL), 1);
}

static void put_window(struct fixture *fixture, uint64_t counter, uint32_t action, uint32_t serial)
{
	struct ts_block_window window = {
		.counter = counter, .action = action, .serial = serial, .step = 7, .cause = "flag"
	};

	TS_CHECK_INT(put_block(&fixture->sink, TS_BLOCK_WINDOW, AREA, &window, sizeof(window)), 0);
}

TS_TEST(windows_leave_out_what_came_through_after_their_end)
{
	struct fixture fixture;
	struct ts_window_row window;
	struct ts_meta_row meta;
	struct rows rows;
	bool reported = false;

	start(&fixture);
	put_window(&fixture, 0, TS_LIVE_WINDOW_CLOSE, 0);
	put_window(&fixture, STARTED + 1000, TS_LIVE_WINDOW_OPEN, 1);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	for (uint64_t i = 0; i < 30; i++)
		put_instant(&fixture.ring, 1, STARTED + i * 100, i);
	put_record(&fixture.ring, TS_LIVE_BEGIN, 0, 2, STARTED + 1900, NULL, 0);
	put_record(&fixture.ring, TS_LIVE_BEGIN, 0, 2, STARTED + 2100, NULL, 0);
	put_window(&fixture, STARTED + 2000, TS_LIVE_WINDOW_CLOSE, 1);
	TS_CHECK_INT(fixture.closed_windows, 1);
	drain(&fixture, 32);
	put_record(&fixture.ring, TS_LIVE_END, 0, 2, STARTED + 2200, NULL, 0);
	put_record(&fixture.ring, TS_LIVE_END, 0, 2, STARTED + 2300, NULL, 0);
	put_record(&fixture.ring, TS_LIVE_END, 0, 2, STARTED + 2400, NULL, 0);
	drain(&fixture, 3);
	TS_CHECK_INT(counts(&fixture).events, 10 + 2);
	TS_CHECK_INT(counts(&fixture).outside, 20 + 3);
	TS_CHECK_INT(counts(&fixture).lost, 0);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_MARK), 10);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_SLICE), 1);
	rows = rows_open(fixture.path, TS_TABLE_WINDOW);
	TS_CHECK(rows_next(&rows, &window));
	TS_CHECK_INT(window.start, at(STARTED + 1000));
	TS_CHECK_INT(window.duration, 1000);
	TS_CHECK_INT(window.first_step, 7);
	TS_CHECK_STR(rows_text(&rows, window.opened_by), "flag");
	TS_CHECK(!rows_next(&rows, &window));
	rows_close(&rows);
	rows = rows_open(fixture.path, TS_TABLE_META);
	while (rows_next(&rows, &meta))
		if (strcmp(rows_text(&rows, meta.key), "outside_windows") == 0) {
			TS_CHECK_STR(rows_text(&rows, meta.value), "23");
			reported = true;
		}
	TS_CHECK(reported);
	rows_close(&rows);
}

static void put_window_record(struct fixture *fixture, uint64_t counter, uint32_t action,
			      uint32_t cause, int64_t step)
{
	struct ts_live_window_record record = { .head = { .words = 4, .kind = TS_LIVE_WINDOW },
						.counter = counter,
						.action = action,
						.cause = cause,
						.step = step };

	ts_text_append(&fixture->ring, &record, sizeof(record));
}

TS_TEST(windows_of_targets_are_told_when_all_rings_were_drained)
{
	struct ts_block_clock clock = { .anchor = { STARTED + 10000, STARTED + 10000, 1 } };
	struct fixture fixture;
	struct ts_window_row window;
	struct rows rows;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_window_record(&fixture, STARTED + 100, TS_LIVE_WINDOW_OPEN, TS_LIVE_CAUSE_STEP, 5);
	put_instant(&fixture.ring, 1, STARTED + 150, 1);
	put_window_record(&fixture, STARTED + 200, TS_LIVE_WINDOW_CLOSE, TS_LIVE_CAUSE_MAX_STEPS,
			  8);
	put_instant(&fixture.ring, 1, STARTED + 250, 1);
	drain(&fixture, 2);
	for (uint64_t i = 0; i < 2; i++) {
		TS_CHECK_INT(fixture.closed_windows, 0);
		clock.anchor.counter += i;
		clock.anchor.monotonic_ns += (int64_t)i;
		TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_CLOCK, 0, &clock, sizeof(clock)), 0);
	}
	TS_CHECK_INT(fixture.closed_windows, 1);
	TS_CHECK_INT(counts(&fixture).events, 2); /* only the recorder's windows drop events */
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_WINDOW);
	TS_CHECK(rows_next(&rows, &window));
	TS_CHECK_INT(window.duration, 100);
	TS_CHECK_INT(window.first_step, 5);
	TS_CHECK_INT(window.last_step, 8);
	TS_CHECK_STR(rows_text(&rows, window.closed_by), "max_steps");
	rows_close(&rows);
}

/* Anchors fit the counter to the system's clock; spans with their own start follow it, too. */
TS_TEST(times_follow_the_anchors)
{
	struct ts_block_clock clock = { 0 };
	struct fixture fixture;
	struct ts_mark_row mark;
	struct ts_slice_row slice;
	struct rows rows;
	uint64_t words[2] = { 10, STARTED + 1500000 };

	start(&fixture);
	/* The counter runs 1 % fast. */
	for (uint64_t i = 1; i <= 3; i++) {
		clock.anchor.counter = STARTED + i * 1010000;
		clock.anchor.monotonic_ns = (int64_t)(STARTED + i * 1000000);
		clock.anchor.realtime_ns = 5000000000 + (int64_t)i * 1000000;
		TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_CLOCK, 0, &clock, sizeof(clock)), 0);
	}
	/* One that goes back is ignored. */
	clock.anchor.counter = STARTED + 5;
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_CLOCK, 0, &clock, sizeof(clock)), 0);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_instant(&fixture.ring, 1, STARTED + 2020000, 1);
	put_record(&fixture.ring, TS_LIVE_SPAN, TS_LIVE_FLAG_START, 2, STARTED + 2020000, words, 2);
	drain(&fixture, 2);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_MARK);
	TS_CHECK(rows_next(&rows, &mark));
	TS_CHECK_INT(mark.start, 5000000000 + 2000000);
	rows_close(&rows);
	rows = rows_open(fixture.path, TS_TABLE_SLICE);
	TS_CHECK(rows_next(&rows, &slice));
	TS_CHECK(llabs(slice.start - (5000000000 + 1500000)) <= 1);
	rows_close(&rows);
}

TS_TEST(a_target_with_another_clock_is_converted)
{
	struct ts_block_area about = plain_area(AREA + 1);
	struct fixture fixture;
	struct ts_mark_row mark;
	struct ring_side side = { 0 };
	struct rows rows;

	start(&fixture);
	about.control.clock = TS_LIVE_CLOCK_MONOTONIC;
	about.control.created.counter = STARTED + 1000;
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_AREA, AREA + 1, &about, sizeof(about)), 0);
	TS_CHECK_INT(put_dictionary(&fixture.sink, AREA + 1, &fixture.dictionary, 0), 0);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_instant(&fixture.ring, 1, STARTED + 123456, 1);
	TS_CHECK_INT(put_ring(&fixture.sink, AREA + 1, 0, &side, &fixture.ring, 1), 0);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_MARK);
	TS_CHECK(rows_next(&rows, &mark));
	TS_CHECK_INT(mark.start, at(STARTED + 123456));
	rows_close(&rows);
}

TS_TEST(damage_in_one_area_touches_no_other)
{
	struct ts_block_area about = plain_area(AREA + 1);
	struct fixture fixture;
	struct ring_side side = { 0 };
	uint64_t bad = 0;

	start(&fixture);
	about.control.pid++;
	about.pid++;
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_AREA, AREA + 1, &about, sizeof(about)), 0);
	TS_CHECK_INT(put_dictionary(&fixture.sink, AREA + 1, &fixture.dictionary, 0), 0);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_instant(&fixture.ring, 1, STARTED + 10, 1);
	put_instant(&fixture.ring, 99, STARTED + 11, 1); /* no such site */
	put_instant(&fixture.ring, 1, STARTED + 12, 1);
	TS_CHECK_INT(put_ring(&fixture.sink, AREA + 1, 0, &side, &fixture.ring, 3), 0);
	put_instant(&fixture.ring, 1, STARTED + 13, 1);
	TS_CHECK_INT(put_ring(&fixture.sink, AREA + 1, 0, &side, &fixture.ring, 1), 0);
	put_words(&fixture.ring, &bad, 1);
	side = (struct ring_side){ 0 };
	TS_CHECK_INT(put_ring(&fixture.sink, AREA + 1, 1, &side, &fixture.ring, 1), 0);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_record(&fixture.ring, 15, 0, 1, STARTED + 10, NULL, 0);
	put_record(&fixture.ring, 200, 0, 1, STARTED + 10, NULL, 0);
	put_instant(&fixture.ring, 1, STARTED + 12, 1);
	drain(&fixture, 2);
	TS_CHECK_INT(counts(&fixture).events, 1 + 1);
	TS_CHECK_INT(counts(&fixture).lost, 2 + 1 + 1 + 1);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_MARK), 2);
	TS_CHECK_INT(count_lost(fixture.path, "the ring is damaged"), 2 + 1 + 1);
	TS_CHECK_INT(count_lost(fixture.path, "unknown kind of event"), 1);
}

TS_TEST(too_many_open_spans_are_lost_and_bounded)
{
	struct fixture fixture;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	for (uint64_t i = 0; i < 5000; i++)
		put_record(&fixture.ring, TS_LIVE_BEGIN, 0, 2, STARTED + i, NULL, 0);
	drain(&fixture, 5000);
	TS_CHECK_INT(counts(&fixture).events, 4096);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_SLICE), 4096);
	TS_CHECK_INT(count_lost(fixture.path, "too many open spans"), 5000 - 4096);
}

TS_TEST(many_threads_come_and_go)
{
	struct fixture fixture;

	start(&fixture);
	for (uint32_t i = 1; i <= 70000; i++) {
		put_thread(&fixture.ring, STARTED + i, i, 100000 + i, 0, "short");
		put_instant(&fixture.ring, 1, STARTED + i, i);
	}
	drain(&fixture, 70000);
	TS_CHECK_INT(counts(&fixture).events, 70000);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_MARK), 70000);
}

TS_TEST(random_bytes_end_in_rows_or_losses)
{
	struct fixture fixture;
	uint64_t seed = 1, lost = 0, stored = 0;

	start(&fixture);
	for (uint32_t ring = 0; ring < 300; ring++) {
		struct ring_side side = { 0 };

		put_thread(&fixture.ring, STARTED, 1 + ring % 7, PID, 0, "main");
		for (int i = 0; i < 40; i++) {
			uint64_t words[8];
			unsigned int kind;

			for (size_t k = 0; k < 8; k++)
				words[k] = seed = seed * 6364136223846793005u +
						  1442695040888963407u;
			kind = (unsigned int)(seed >> 60) % 8;
			words[0] = ts_live_head(2 + (seed >> 33) % 7, kind,
						(unsigned int)(seed >> 40) & 15,
						(uint32_t)(seed >> 50) % 4);
			words[3] &= 0xffff00000007u;
			put_words(&fixture.ring, words, words[0] & 0xffff);
			put_instant(&fixture.ring, 1, STARTED, 1);
		}
		TS_CHECK_INT(put_ring(&fixture.sink, AREA, ring, &side, &fixture.ring, 80), 0);
	}
	stored = counts(&fixture).events;
	lost = counts(&fixture).lost;
	TS_CHECK(stored > 300);
	/* Each event is either stored or lost. */
	TS_CHECK_INT(stored + lost, 300 * 80);
	finish(&fixture);
	TS_CHECK_INT(count_lost(fixture.path, NULL), lost);
}

/* ---- state ---- */

struct copied_blocks {
	struct ts_block blocks[64];
	char *payloads[64];
	size_t count;
};

static int copy_block(void *context, struct ts_block *block, const void *payload,
		      struct ts_error *err)
{
	struct copied_blocks *copied = context;

	TS_CHECK(copied->count < TS_ARRAY_SIZE(copied->blocks));
	copied->blocks[copied->count] = *block;
	copied->payloads[copied->count] = malloc(block->bytes + 1u);
	memcpy(copied->payloads[copied->count++], payload, block->bytes);
	return TS_OK;
}

TS_TEST(a_successor_goes_on_where_the_state_says)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_block_open open = plain_open();
	struct copied_blocks copied = { .count = 0 };
	struct ts_block_sink sink = { .append = copy_block, .context = &copied };
	struct fixture fixture;
	struct ts_writer_ids ids;
	uint64_t threads;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_instant(&fixture.ring, 1, STARTED + 10, 1);
	put_record(&fixture.ring, TS_LIVE_BEGIN, 0, 2, STARTED + 20, NULL, 0);
	put_window_record(&fixture, STARTED + 25, TS_LIVE_WINDOW_OPEN, TS_LIVE_CAUSE_STEP, 5);
	fixture.side.dropped = 5;
	drain(&fixture, 2);
	TS_CHECK_INT(ts_decoder_seal(fixture.decoder), 0);
	TS_CHECK_INT(ts_writer_flush(fixture.writer), 0);
	ts_writer_ids(fixture.writer, &ids);
	memcpy(open.next_ids, ids.next, sizeof(open.next_ids));
	open.trace_bytes = ts_writer_bytes(fixture.writer);
	TS_CHECK_INT(ts_decoder_save_state(fixture.decoder, &sink, NULL), 0);
	ts_decoder_free(fixture.decoder);
	ts_writer_close(fixture.writer);

	TS_CHECK_INT(ts_writer_resume(&fixture.writer, fixture.path, open.trace_bytes, &ids,
				      &options, NULL),
		     0);
	TS_CHECK_INT(ts_decoder_new(&fixture.decoder, NULL, NULL), 0);
	ts_decoder_set_writer(fixture.decoder, fixture.writer, false, "t.sbt");
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_OPEN, 0, &open, sizeof(open)), 0);
	for (size_t i = 0; i < copied.count; i++) {
		TS_CHECK_INT(ts_decoder_block(fixture.decoder, &copied.blocks[i],
					      copied.payloads[i], NULL),
			     0);
		free(copied.payloads[i]);
	}
	TS_CHECK_INT(counts(&fixture).events, 2);
	TS_CHECK_INT(counts(&fixture).lost, 5);
	/* No THREAD record: the state knows the owner of the ring. */
	put_instant(&fixture.ring, 1, STARTED + 30, 2);
	put_record(&fixture.ring, TS_LIVE_END, 0, 0, STARTED + 40, NULL, 0);
	put_window_record(&fixture, STARTED + 45, TS_LIVE_WINDOW_CLOSE, TS_LIVE_CAUSE_STEP, 6);
	drain(&fixture, 2);
	TS_CHECK_INT(put_end(&fixture.sink, AREA, STARTED + 50), 0);
	TS_CHECK_INT(counts(&fixture).events, 4);
	TS_CHECK_INT(counts(&fixture).lost, 5);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_MARK), 2);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_SLICE), 1);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_WINDOW), 1);
	TS_CHECK_INT(count_lost(fixture.path, NULL), 5);
	threads = count_rows(fixture.path, TS_TABLE_THREAD);
	TS_CHECK_INT(threads, 1);
}

/* The area says that it was created after the recorder saw its end. */
TS_TEST(a_process_starts_before_it_ends)
{
	struct ts_process_row process;
	struct fixture fixture;
	struct rows rows;

	start(&fixture);
	TS_CHECK_INT(put_end(&fixture.sink, AREA, STARTED + 50), 0);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_PROCESS);
	while (rows_next(&rows, &process))
		TS_CHECK(process.end == TS_ABSENT || process.start <= process.end);
	TS_CHECK(process.end != TS_ABSENT);
	rows_close(&rows);
}

TS_TEST(state_that_makes_no_sense_is_counted)
{
	struct copied_blocks copied = { .count = 0 };
	struct ts_block_sink sink = { .append = copy_block, .context = &copied };
	struct fixture fixture;
	struct ts_block_open open = plain_open();

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_record(&fixture.ring, TS_LIVE_BEGIN, 0, 2, STARTED + 20, NULL, 0);
	drain(&fixture, 1);
	TS_CHECK_INT(ts_decoder_save_state(fixture.decoder, &sink, NULL), 0);
	finish(&fixture);
	/* Truncated at every length, and with bytes changed. */
	for (size_t i = 0; i < copied.count; i++) {
		for (uint32_t bytes = copied.blocks[i].bytes;
		     bytes < UINT32_MAX && bytes + 600 > copied.blocks[i].bytes; bytes--) {
			struct ts_block block = copied.blocks[i];
			struct ts_decoder *decoder;
			struct ts_writer *writer;
			char *payload = malloc(bytes ? bytes : 1);

			memcpy(payload, copied.payloads[i], bytes);
			if (bytes)
				payload[(bytes * 7) % bytes] ^= 0x41;
			block.bytes = bytes;
			TS_CHECK_INT(
				ts_writer_open(&writer, file_in_folder("s.sbt"),
					       &(struct ts_writer_options){
						       .size = sizeof(struct ts_writer_options),
						       .threads = -1 },
					       NULL),
				0);
			TS_CHECK_INT(ts_decoder_new(&decoder, NULL, NULL), 0);
			ts_decoder_set_writer(decoder, writer, false, "s");
			fixture.decoder = decoder;
			TS_CHECK_INT(
				put_block(&fixture.sink, TS_BLOCK_OPEN, 0, &open, sizeof(open)), 0);
			TS_CHECK_INT(put_area(&fixture.sink, AREA), 0);
			ts_decoder_block(decoder, &block, payload, NULL);
			TS_CHECK_INT(ts_decoder_finish(decoder), 0);
			ts_decoder_free(decoder);
			ts_writer_close(writer);
			free(payload);
		}
		free(copied.payloads[i]);
	}
}
