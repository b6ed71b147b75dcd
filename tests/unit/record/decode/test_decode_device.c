/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters about other subjects, and devices: the owner of their rows, over areas, files and
 * recorders.
 */
#include <tracesmith/metrics.h>

#include "record/decode/decoder.h"
#include "trace/extract.h"

#include "unit/record/record_support.h"

#define OTHER_AREA 78u
#define CHILD 5000u

/* A decoder on its own trace, and one ring of each area. */
struct fixture {
	const char *path;
	struct ts_writer *writer;
	struct ts_decoder *decoder;
	struct ts_block_sink sink;
	struct ts_text ring;
	struct ring_side sides[2];
	uint64_t counter;
};

static int decode(void *context, struct ts_block *block, const void *payload, struct ts_error *err)
{
	struct fixture *fixture = context;

	return ts_decoder_block(fixture->decoder, block, payload, err);
}

static void open_writer(struct fixture *fixture, const char *name)
{
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };

	fixture->path = file_in_folder(name);
	TS_CHECK_INT(ts_writer_open(&fixture->writer, fixture->path, &options, NULL), 0);
}

/* Two areas: a target's, and another process's. */
static void start(struct fixture *fixture)
{
	struct ts_block_open open = plain_open();
	struct ts_block_area other = plain_area(OTHER_AREA);

	memset(fixture, 0, sizeof(*fixture));
	fixture->counter = STARTED + 3000;
	open_writer(fixture, "t.sbt");
	TS_CHECK_INT(ts_decoder_new(&fixture->decoder, NULL, NULL), 0);
	TS_CHECK_INT(ts_decoder_set_writer(fixture->decoder, fixture->writer, false, "t.sbt"), 0);
	fixture->sink = (struct ts_block_sink){ .append = decode, .context = fixture };
	TS_CHECK_INT(put_block(&fixture->sink, TS_BLOCK_OPEN, 0, &open, sizeof(open)), 0);
	TS_CHECK_INT(put_area(&fixture->sink, AREA), 0);
	other.pid = other.control.pid = PID + 1;
	other.control.image = 6;
	TS_CHECK_INT(put_block(&fixture->sink, TS_BLOCK_AREA, OTHER_AREA, &other, sizeof(other)),
		     0);
}

static void drain_area(struct fixture *fixture, uint64_t area, uint64_t events)
{
	struct ring_side *side = &fixture->sides[area == OTHER_AREA];

	TS_CHECK_INT(put_ring(&fixture->sink, area, 0, side, &fixture->ring, events), 0);
}

static void drain(struct fixture *fixture, uint64_t events)
{
	drain_area(fixture, AREA, events);
}

static void end_file(struct fixture *fixture)
{
	TS_CHECK_INT(ts_decoder_finish(fixture->decoder), 0);
	TS_CHECK_INT(ts_writer_finish(fixture->writer, NULL), 0);
	ts_writer_close(fixture->writer);
	check_finished(fixture->path);
}

static void finish(struct fixture *fixture)
{
	end_file(fixture);
	ts_decoder_free(fixture->decoder);
	ts_text_release(&fixture->ring);
}

static struct ts_decoder_counts counts(const struct fixture *fixture)
{
	struct ts_decoder_counts found;

	ts_decoder_counts(fixture->decoder, &found);
	return found;
}

/* ---- records ---- */

/* A COUNTER "load" with one integer, about a subject. */
static void put_about(struct fixture *fixture, uint64_t subject, uint64_t start_time, int64_t value)
{
	TS_SCOPED(ts_text) words = { 0 };
	uint64_t leading[2] = { subject, start_time }, count = 1, type = TS_ARG_INT;

	put_words(&words, leading, 2);
	put_string(&words, "load", 4);
	put_string(&words, "test", 4);
	put_words(&words, &count, 1);
	put_words(&words, &type, 1);
	put_string(&words, "all", 3);
	put_words(&words, (const uint64_t *)&value, 1);
	put_record(&fixture->ring, TS_LIVE_COUNTER, TS_LIVE_FLAG_SUBJECT, 0, fixture->counter++,
		   (const uint64_t *)(void *)words.data, words.length / 8);
}

static void put_about_process(struct fixture *fixture, uint32_t pid, uint64_t start_time,
			      int64_t value)
{
	put_about(fixture, subject_word(TS_METRICS_PROCESS, 0, pid), start_time, value);
}

static void put_about_device(struct fixture *fixture, uint32_t device, int64_t value)
{
	put_about(fixture, subject_word(TS_METRICS_DEVICE, device, 0), 0, value);
}

static void put_device(struct fixture *fixture, uint32_t number, int64_t memory_bytes,
		       const char *model, const char *uuid, const char *bus)
{
	TS_SCOPED(ts_text) words = { 0 };
	uint64_t leading[2] = { number, (uint64_t)memory_bytes };

	put_words(&words, leading, 2);
	put_string(&words, "Maker", 5);
	put_string(&words, model, strlen(model));
	put_string(&words, uuid, strlen(uuid));
	put_string(&words, bus, strlen(bus));
	put_record(&fixture->ring, TS_LIVE_DEVICE, 0, 0, fixture->counter++,
		   (const uint64_t *)(void *)words.data, words.length / 8);
}

/* ---- rows ---- */

/* The counter with this value. */
static struct ts_counter_row counter_of(const char *path, int64_t value)
{
	struct rows rows = rows_open(path, TS_TABLE_COUNTER);
	struct ts_counter_row row;
	bool found = false;

	while (!found && rows_next(&rows, &row))
		found = rows_value(&rows, 0) == value;
	TS_CHECK(found);
	TS_CHECK_STR(rows_text(&rows, row.name), "load");
	TS_CHECK_STR(rows_text(&rows, row.category), "test");
	rows_close(&rows);
	return row;
}

static int64_t pid_of(const char *path, int64_t id)
{
	struct rows rows = rows_open(path, TS_TABLE_PROCESS);
	const struct ts_process_row *row = ts_reader_entity(rows.reader, TS_TABLE_PROCESS, id);
	int64_t pid = row ? row->pid : TS_ABSENT;

	rows_close(&rows);
	return pid;
}

/* A device in the file: "number maker model uuid memory properties". */
static const char *device_of(const char *path, int64_t id)
{
	static char text[512];
	struct rows rows = rows_open(path, TS_TABLE_DEVICE);
	const struct ts_device_row *row = ts_reader_entity(rows.reader, TS_TABLE_DEVICE, id);

	TS_CHECK(row != NULL);
	TS_CHECK_INT(row->source, 1);
	TS_CHECK_INT(row->host, 1);
	snprintf(text, sizeof(text), "%lld %s|%s|%s|%lld|%s", (long long)row->number,
		 rows_text(&rows, row->vendor), rows_text(&rows, row->name),
		 rows_text(&rows, row->uuid),
		 row->memory_bytes == TS_ABSENT ? -1LL : (long long)row->memory_bytes,
		 rows_text(&rows, row->properties));
	rows_close(&rows);
	return text;
}

/* ---- subjects ---- */

TS_TEST(counters_stand_with_whom_they_are_about)
{
	struct fixture fixture;
	struct ts_counter_row row;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "sampler");
	put_about(&fixture, subject_word(TS_METRICS_SYSTEM, 0, 0), 0, 1);
	put_about_process(&fixture, PID + 1, 99, 2);
	put_device(&fixture, 0x10003, 1 << 30, "Fast 1", "GPU-1", "0000:01:00.0");
	put_about_device(&fixture, 0x10003, 3);
	put_about(&fixture, subject_word(TS_METRICS_PROCESS_ON_DEVICE, 0x10003, PID), 99, 4);
	drain(&fixture, 4);
	TS_CHECK_INT(counts(&fixture).events, 4);
	TS_CHECK_INT(counts(&fixture).lost, 0);
	finish(&fixture);

	row = counter_of(fixture.path, 1);
	TS_CHECK(!row.thread && !row.process && !row.device);
	row = counter_of(fixture.path, 2);
	TS_CHECK(!row.thread && !row.device);
	TS_CHECK_INT(pid_of(fixture.path, row.process), PID + 1);
	row = counter_of(fixture.path, 3);
	TS_CHECK(!row.thread && !row.process);
	TS_CHECK_STR(device_of(fixture.path, row.device),
		     "3 Maker|Fast 1|GPU-1|1073741824|{\"bus\":\"0000:01:00.0\"}");
	TS_CHECK_INT(counter_of(fixture.path, 4).device, row.device);
	TS_CHECK_INT(pid_of(fixture.path, counter_of(fixture.path, 4).process), PID);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_DEVICE), 1);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_PROCESS), 2);
}

TS_TEST(call_sites_and_tracks_carry_subjects_too)
{
	static const struct site_field field = { "all", TS_ARG_INT };
	TS_SCOPED(ts_text) dictionary = { 0 };
	struct fixture fixture;
	struct ts_counter_row row;
	uint64_t words[4] = { subject_word(TS_METRICS_PROCESS, 0, PID), 0, 7, 11 };

	start(&fixture);
	put_site(&dictionary, TS_LIVE_COUNTER, "load", "test", &field, 1);
	TS_CHECK_INT(put_dictionary(&fixture.sink, AREA, &dictionary, 0), 0);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "sampler");
	put_record(&fixture.ring, TS_LIVE_COUNTER, TS_LIVE_FLAG_SUBJECT | TS_LIVE_FLAG_TRACK, 1,
		   STARTED + 9000, words, 4);
	/* The flag has no meaning on other kinds of records. */
	put_record(&fixture.ring, TS_LIVE_INSTANT, TS_LIVE_FLAG_SUBJECT, 1, STARTED + 9001,
		   &words[3], 1);
	drain(&fixture, 2);
	TS_CHECK_INT(counts(&fixture).events, 2);
	finish(&fixture);
	row = counter_of(fixture.path, 11);
	TS_CHECK_INT(row.thread, 0);
	TS_CHECK_INT(pid_of(fixture.path, row.process), PID);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_MARK), 1);
}

TS_TEST(a_pid_and_its_start_time_are_one_process)
{
	struct ts_block_process child = { .pid = CHILD,
					  .parent = PID,
					  .start_time = 500,
					  .seen_counter = STARTED + 10,
					  .exit_status = TS_ABSENT,
					  .name = "child" };
	struct ts_block_process next = child;
	struct ts_block_area late = plain_area(79);
	struct fixture fixture;
	int64_t first, second;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "sampler");
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_PROCESS, 0, &child, sizeof(child)), 0);
	put_about_process(&fixture, CHILD, 500, 1);
	put_about_process(&fixture, CHILD, 0, 2);
	put_about_process(&fixture, CHILD, 900, 3); /* a reused pid, not reported yet */
	put_about_process(&fixture, CHILD, 500, 4);
	put_about_process(&fixture, CHILD, 0, 5);
	put_about_process(&fixture, 6000, 0, 6); /* unknown, as is its start time */
	put_about_process(&fixture, 6000, 70, 7);
	put_about_process(&fixture, 6001, 0, 8);
	drain(&fixture, 8);
	next.start_time = 900;
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_PROCESS, 0, &next, sizeof(next)), 0);
	late.pid = late.control.pid = 6001;
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_AREA, 79, &late, sizeof(late)), 0);
	finish(&fixture);

	first = counter_of(fixture.path, 1).process;
	second = counter_of(fixture.path, 3).process;
	TS_CHECK_INT(counter_of(fixture.path, 2).process, first);
	TS_CHECK_INT(counter_of(fixture.path, 4).process, first);
	TS_CHECK(second != first);
	TS_CHECK_INT(counter_of(fixture.path, 5).process, second);
	TS_CHECK_INT(counter_of(fixture.path, 6).process, counter_of(fixture.path, 7).process);
	TS_CHECK_INT(pid_of(fixture.path, counter_of(fixture.path, 7).process), 6000);
	/* Two of the areas, two children, 6000, and 6001, which got an area in the end. */
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_PROCESS) >= 6, 1);
	{
		struct rows rows = rows_open(fixture.path, TS_TABLE_PROCESS);
		const struct ts_process_row *row;
		size_t cursor = 0, found = 0;
		int64_t id;

		while ((row = ts_reader_entity_next(rows.reader, TS_TABLE_PROCESS, &cursor, &id))) {
			found++;
			if (id == second) {
				TS_CHECK_STR(rows_text(&rows, row->name), "child");
				TS_CHECK_INT(pid_of(fixture.path, row->parent), PID);
			}
		}
		TS_CHECK_INT(found, 6);
		rows_close(&rows);
	}
}

TS_TEST(pids_of_another_namespace_are_not_ours)
{
	struct ts_block_area inner = plain_area(79), beside = plain_area(80);
	struct ring_side side = { 0 };
	struct fixture fixture;

	start(&fixture);
	inner.pid = 7001;
	inner.control.pid = 1;
	inner.control.pid_namespace = beside.control.pid_namespace = 1234;
	beside.pid = 7002;
	beside.control.pid = PID; /* in its namespace; that pid is another process here */
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_AREA, 79, &inner, sizeof(inner)), 0);
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_AREA, 80, &beside, sizeof(beside)), 0);
	put_thread(&fixture.ring, STARTED, 1, 1, 0, "inner");
	put_about_process(&fixture, 1, 99, 1);
	put_about_process(&fixture, PID, 99, 2);
	put_about_process(&fixture, PID + 1, 99, 3);
	TS_CHECK_INT(put_ring(&fixture.sink, 79, 0, &side, &fixture.ring, 3), 0);
	TS_CHECK_INT(counts(&fixture).events, 2);
	TS_CHECK_INT(counts(&fixture).lost, 1);
	finish(&fixture);
	TS_CHECK_INT(pid_of(fixture.path, counter_of(fixture.path, 1).process), 7001);
	TS_CHECK_INT(pid_of(fixture.path, counter_of(fixture.path, 2).process), 7002);
}

TS_TEST(windows_of_the_emitting_area_hold_for_what_it_says_of_others)
{
	struct ts_block_window window = {
		.action = TS_LIVE_WINDOW_OPEN, .serial = 1, .step = TS_ABSENT, .cause = "command"
	};
	struct fixture fixture;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "sampler");
	window.counter = fixture.counter;
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_WINDOW, AREA, &window, sizeof(window)), 0);
	put_about_process(&fixture, PID + 1, 99, 1);
	window.action = TS_LIVE_WINDOW_CLOSE;
	window.counter = fixture.counter;
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_WINDOW, AREA, &window, sizeof(window)), 0);
	fixture.counter += 10;
	put_about_process(&fixture, PID + 1, 99, 2);
	put_device(&fixture, 1, TS_ABSENT, "", "", "");
	drain(&fixture, 2);
	TS_CHECK_INT(counts(&fixture).events, 1);
	TS_CHECK_INT(counts(&fixture).outside, 1);
	TS_CHECK_INT(counts(&fixture).lost, 0);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_COUNTER), 1);
}

/* ---- devices ---- */

TS_TEST(a_device_is_described_once_and_when_it_changed)
{
	struct fixture fixture;
	int64_t device;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "sampler");
	put_about_device(&fixture, 2, 1); /* nothing is known of it yet */
	put_device(&fixture, 2, TS_ABSENT, "Model", "", "");
	for (int i = 0; i < 5; i++)
		put_device(&fixture, 2, 4096, "Model", "GPU-2", "bus 2");
	put_device(&fixture, 2, TS_ABSENT, "", "GPU-2", ""); /* could not be read this time */
	put_device(&fixture, 2, -5, "", "", "");
	put_about_device(&fixture, 2, 2);
	drain(&fixture, 2);
	finish(&fixture);
	device = counter_of(fixture.path, 1).device;
	TS_CHECK_INT(counter_of(fixture.path, 2).device, device);
	TS_CHECK_STR(device_of(fixture.path, device),
		     "2 Maker|Model|GPU-2|4096|{\"bus\":\"bus 2\"}");
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_DEVICE), 3);
}

TS_TEST(devices_of_a_uuid_are_one_over_areas)
{
	struct fixture fixture;
	int64_t same;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "one");
	put_device(&fixture, 0, 10, "A", "GPU-a", "");
	put_device(&fixture, 1, 10, "B", "GPU-b", "");
	put_device(&fixture, 2, 10, "C", "", "");
	for (uint32_t i = 0; i < 3; i++)
		put_about_device(&fixture, i, 10 + i);
	drain(&fixture, 3);
	put_thread(&fixture.ring, STARTED, 1, PID + 1, 0, "other");
	put_device(&fixture, 5, 10, "spoilt", "GPU-a", ""); /* in use while that one lives */
	put_device(&fixture, 2, 10, "C", "", "");           /* no uuid: unknown */
	put_about_device(&fixture, 5, 20);
	put_about_device(&fixture, 2, 21);
	drain_area(&fixture, OTHER_AREA, 2);
	TS_CHECK_INT(put_end(&fixture.sink, AREA, fixture.counter), 0);
	put_device(&fixture, 6, 10, "B2", "GPU-b", ""); /* the first has ended: this applies */
	put_about_device(&fixture, 6, 22);
	/* The driver restarted, and numbers devices the other way round. */
	put_device(&fixture, 5, 10, "B2", "GPU-b", "");
	put_device(&fixture, 6, 10, "A2", "GPU-a", "");
	put_about_device(&fixture, 5, 23);
	put_about_device(&fixture, 6, 24);
	drain_area(&fixture, OTHER_AREA, 3);
	finish(&fixture);
	same = counter_of(fixture.path, 10).device;
	TS_CHECK_INT(counter_of(fixture.path, 20).device, same);
	TS_CHECK_INT(counter_of(fixture.path, 24).device, same);
	TS_CHECK_STR(device_of(fixture.path, same), "6 Maker|A2|GPU-a|10|");
	same = counter_of(fixture.path, 11).device;
	TS_CHECK_INT(counter_of(fixture.path, 22).device, same);
	TS_CHECK_INT(counter_of(fixture.path, 23).device, same);
	TS_CHECK(counter_of(fixture.path, 12).device != counter_of(fixture.path, 21).device);
}

TS_TEST(what_one_area_said_another_does_not_change)
{
	struct fixture fixture;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "one");
	put_device(&fixture, 0, 10, "A", "GPU-a", "");
	drain(&fixture, 0);
	put_thread(&fixture.ring, STARTED, 1, PID + 1, 0, "other");
	put_device(&fixture, 5, 11, "spoilt", "GPU-a", "");
	put_about_device(&fixture, 5, 1);
	drain_area(&fixture, OTHER_AREA, 1);
	finish(&fixture);
	TS_CHECK_STR(device_of(fixture.path, counter_of(fixture.path, 1).device),
		     "0 Maker|A|GPU-a|10|");
}

/* ---- hostile bytes ---- */

TS_TEST(subjects_that_are_nobody_are_lost_and_counted)
{
	struct fixture fixture;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "sampler");
	put_about(&fixture, subject_word(0, 1, 1), 0, 1);
	put_about(&fixture, subject_word(5, 1, 1), 0, 2);
	put_about(&fixture, subject_word(255, 1, 1), 0, 3);
	put_about_process(&fixture, 0, 0, 4);
	put_about_process(&fixture, 0x80000000u, 0, 5);
	put_about(&fixture, subject_word(TS_METRICS_PROCESS_ON_DEVICE, 1, 0), 0, 6);
	put_about(&fixture, subject_word(TS_METRICS_SYSTEM, 1, 1), 0, 7);
	drain(&fixture, 7);
	TS_CHECK_INT(counts(&fixture).events, 1);
	TS_CHECK_INT(counts(&fixture).lost, 6);
	finish(&fixture);
	TS_CHECK_INT(count_lost(fixture.path, "unknown kind of event"), 6);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_DEVICE), 0);
}

/*
 * Every truncation of a record, and every length that its strings may claim, disables the ring from
 * there on.
 */
TS_TEST(cut_records_damage_their_ring_only)
{
	TS_SCOPED(ts_text) complete = { 0 };
	struct fixture fixture;
	uint32_t ring = 1;
	uint64_t events = 0, first;

	start(&fixture);
	for (int kind = 0; kind < 2; kind++) {
		if (kind)
			put_device(&fixture, 1, 5, "model", "GPU-1234567890", "bus");
		else
			put_about_device(&fixture, 1, 5);
		ts_text_clear(&complete);
		ts_text_append(&complete, fixture.ring.data, fixture.ring.length);
		for (uint64_t words = 2; words < complete.length / 8; words++, ring++) {
			struct ring_side side = { 0 };

			ts_text_clear(&fixture.ring);
			put_thread(&fixture.ring, STARTED, 1, PID, 0, "x");
			memcpy(&first, complete.data, 8);
			first = (first & ~UINT64_C(0xffff)) | words;
			put_words(&fixture.ring, &first, 1);
			ts_text_append(&fixture.ring, complete.data + 8, (words - 1) * 8);
			TS_CHECK_INT(put_ring(&fixture.sink, AREA, ring, &side, &fixture.ring, 1),
				     0);
			events++;
		}
		for (size_t at = 32; at < complete.length; at += 8, ring++) {
			struct ring_side side = { 0 };
			uint32_t length = 0xfffffff0u + (uint32_t)at;

			ts_text_clear(&fixture.ring);
			put_thread(&fixture.ring, STARTED, 1, PID, 0, "x");
			ts_text_append(&fixture.ring, complete.data, complete.length);
			memcpy(fixture.ring.data + fixture.ring.length - complete.length + at,
			       &length, sizeof(length));
			TS_CHECK_INT(put_ring(&fixture.sink, AREA, ring, &side, &fixture.ring, 1),
				     0);
			events++;
		}
		ts_text_clear(&fixture.ring);
	}
	TS_CHECK_INT(counts(&fixture).events + counts(&fixture).lost, events);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "good");
	put_about_device(&fixture, 1, 77);
	drain(&fixture, 1);
	finish(&fixture);
	TS_CHECK(counter_of(fixture.path, 77).device != 0);
}

TS_TEST(long_texts_are_cut_between_characters)
{
	TS_SCOPED(ts_text) model = { 0 };
	struct fixture fixture;
	struct rows rows;
	const struct ts_device_row *row;

	while (model.length < 200)
		ts_text_append_str(&model, "\xe2\x82\xac"); /* three bytes per character */
	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "sampler");
	put_device(&fixture, 0, TS_ABSENT, ts_text_cstr(&model), "", "\xff\xfe");
	put_device(&fixture, 0, TS_ABSENT, ts_text_cstr(&model), "", "\xff\xfe");
	drain(&fixture, 0);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_DEVICE), 1);
	rows = rows_open(fixture.path, TS_TABLE_DEVICE);
	row = ts_reader_entity(rows.reader, TS_TABLE_DEVICE, 1);
	TS_CHECK_INT(strlen(rows_text(&rows, row->name)), 126);
	TS_CHECK(ts_utf8_valid(rows_text(&rows, row->name), 126));
	TS_CHECK_STR(rows_text(&rows, row->properties), "{\"bus\":\"\xef\xbf\xbd\xef\xbf\xbd\"}");
	rows_close(&rows);
}

TS_TEST(strangers_and_devices_without_end_are_bounded)
{
	struct fixture fixture;
	char uuid[32];

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "sampler");
	for (uint32_t i = 0; i < 70000; i++)
		put_about_process(&fixture, 10000 + i, i + 1, i);
	drain(&fixture, 70000);
	TS_CHECK_INT(counts(&fixture).events, 70000);
	for (uint32_t i = 0; i < 20000; i++) {
		snprintf(uuid, sizeof(uuid), "GPU-%u", i);
		put_device(&fixture, 1, TS_ABSENT, "m", uuid, "");
	}
	put_about_device(&fixture, 1, -1);
	/* More numbers than an area may have: its ring is disabled. */
	for (uint32_t i = 0; i < 1100; i++)
		put_about_device(&fixture, i, (int64_t)i);
	drain(&fixture, 1101);
	TS_CHECK_INT(counts(&fixture).events, 71025);
	TS_CHECK_INT(counts(&fixture).lost, 76);
	finish(&fixture);
	TS_CHECK_STR(device_of(fixture.path, counter_of(fixture.path, -1).device),
		     "1 Maker|m|GPU-19999|-1|");
}

/* ---- files and recorders ---- */

TS_TEST(each_file_has_the_rows_that_it_needs)
{
	struct fixture fixture;
	const char *old;
	int64_t device, process;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "sampler");
	put_device(&fixture, 0, 10, "A", "GPU-a", "");
	put_device(&fixture, 1, 10, "B", "GPU-b", "");
	put_about_device(&fixture, 0, 1);
	put_about_process(&fixture, 6000, 70, 2);
	drain(&fixture, 2);
	end_file(&fixture);
	old = fixture.path;
	open_writer(&fixture, "next.sbt");
	TS_CHECK_INT(ts_decoder_set_writer(fixture.decoder, fixture.writer, true, "next.sbt"), 0);
	put_about_device(&fixture, 0, 1);
	put_about_device(&fixture, 0, 3);
	put_about_process(&fixture, 6000, 70, 2);
	drain(&fixture, 3);
	finish(&fixture);
	TS_CHECK_INT(count_rows(old, TS_TABLE_DEVICE), 2);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_DEVICE), 1);
	device = counter_of(old, 1).device;
	process = counter_of(old, 2).process;
	TS_CHECK_INT(counter_of(fixture.path, 1).device, device);
	TS_CHECK_INT(counter_of(fixture.path, 2).process, process);
	TS_CHECK_STR(device_of(fixture.path, device), "0 Maker|A|GPU-a|10|");
	TS_CHECK_INT(pid_of(fixture.path, process), 6000);
}

struct copied_blocks {
	struct ts_block blocks[16];
	char *payloads[16];
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

static void free_blocks(struct copied_blocks *copied)
{
	for (size_t i = 0; i < copied->count; i++)
		free(copied->payloads[i]);
}

/* Ends this decoder and continues with another that has its state. */
static void succeed(struct fixture *fixture, struct copied_blocks *copied)
{
	struct ts_block_sink sink = { .append = copy_block, .context = copied };
	struct ts_writer_options options = { .size = sizeof(options), .threads = -1 };
	struct ts_block_open open = plain_open();
	struct ts_writer_ids ids;

	TS_CHECK_INT(ts_decoder_seal(fixture->decoder), 0);
	TS_CHECK_INT(ts_writer_flush(fixture->writer), 0);
	ts_writer_ids(fixture->writer, &ids);
	memcpy(open.next_ids, ids.next, sizeof(open.next_ids));
	open.trace_bytes = ts_writer_bytes(fixture->writer);
	TS_CHECK_INT(ts_decoder_save_state(fixture->decoder, &sink, NULL), 0);
	ts_decoder_free(fixture->decoder);
	ts_writer_close(fixture->writer);
	TS_CHECK_INT(ts_writer_resume(&fixture->writer, fixture->path, open.trace_bytes, &ids,
				      &options, NULL),
		     0);
	TS_CHECK_INT(ts_decoder_new(&fixture->decoder, NULL, NULL), 0);
	ts_decoder_set_writer(fixture->decoder, fixture->writer, false, "t.sbt");
	TS_CHECK_INT(put_block(&fixture->sink, TS_BLOCK_OPEN, 0, &open, sizeof(open)), 0);
	for (size_t i = 0; i < copied->count; i++)
		TS_CHECK_INT(ts_decoder_block(fixture->decoder, &copied->blocks[i],
					      copied->payloads[i], NULL),
			     0);
}

TS_TEST(a_successor_knows_the_devices)
{
	struct copied_blocks copied = { .count = 0 };
	struct fixture fixture;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "sampler");
	put_device(&fixture, 0, 10, "A", "GPU-a", "bus");
	put_device(&fixture, 9, 10, "B", "", "");
	put_about_device(&fixture, 0, 1);
	put_about_device(&fixture, 9, 2);
	put_about_process(&fixture, 6000, 0, 3);
	drain(&fixture, 3);
	succeed(&fixture, &copied);
	put_about_device(&fixture, 0, 11);
	put_about_device(&fixture, 9, 12);
	put_about_process(&fixture, 6000, 5, 13);
	put_device(&fixture, 0, 10, "A", "GPU-a", "bus");
	put_device(&fixture, 1, 10, "C", "GPU-c", "");
	put_about_device(&fixture, 1, 14);
	drain(&fixture, 4);
	/* A new recorder's area describes the same device as the old one's. */
	put_thread(&fixture.ring, STARTED, 1, PID + 1, 0, "other");
	put_device(&fixture, 3, 10, "A", "GPU-a", "bus");
	put_about_device(&fixture, 3, 15);
	drain_area(&fixture, OTHER_AREA, 1);
	TS_CHECK_INT(counts(&fixture).events, 8);
	finish(&fixture);
	free_blocks(&copied);
	TS_CHECK_INT(counter_of(fixture.path, 11).device, counter_of(fixture.path, 1).device);
	TS_CHECK_INT(counter_of(fixture.path, 12).device, counter_of(fixture.path, 2).device);
	TS_CHECK_INT(counter_of(fixture.path, 13).process, counter_of(fixture.path, 3).process);
	TS_CHECK_INT(counter_of(fixture.path, 15).device, counter_of(fixture.path, 1).device);
	TS_CHECK(counter_of(fixture.path, 14).device > counter_of(fixture.path, 2).device);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_DEVICE), 3);
}

/* States from before there were devices: 16 and 8 bytes shorter, with nothing after them. */
TS_TEST(a_state_without_devices_is_taken)
{
	struct ts_block_open open = plain_open();
	struct copied_blocks copied = { .count = 0 };
	struct ts_block_sink sink = { .append = copy_block, .context = &copied };
	struct fixture fixture;
	int states = 0;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_about(&fixture, subject_word(TS_METRICS_SYSTEM, 0, 0), 0, 1);
	drain(&fixture, 1);
	TS_CHECK_INT(ts_decoder_save_state(fixture.decoder, &sink, NULL), 0);
	finish(&fixture);
	memset(&fixture, 0, sizeof(fixture));
	open_writer(&fixture, "t.sbt");
	TS_CHECK_INT(ts_decoder_new(&fixture.decoder, NULL, NULL), 0);
	ts_decoder_set_writer(fixture.decoder, fixture.writer, false, "t.sbt");
	fixture.sink = (struct ts_block_sink){ .append = decode, .context = &fixture };
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_OPEN, 0, &open, sizeof(open)), 0);
	for (size_t i = 0; i < copied.count; i++) {
		struct ts_block *block = &copied.blocks[i];
		uint32_t head[2], less = block->area ? 8 : 16;

		if (block->type == TS_BLOCK_STATE) {
			memcpy(head, copied.payloads[i], sizeof(head));
			memmove(copied.payloads[i] + head[1] - less, copied.payloads[i] + head[1],
				block->bytes - head[1]);
			head[1] -= less;
			memcpy(copied.payloads[i], head, sizeof(head));
			block->bytes -= less;
			states++;
		}
		TS_CHECK_INT(ts_decoder_block(fixture.decoder, block, copied.payloads[i], NULL), 0);
	}
	TS_CHECK_INT(states, 3);
	TS_CHECK_INT(counts(&fixture).events, 1);
	fixture.sides[0].position = copied.count ? 1 << 20 : 0;
	fixture.sides[0].events = 1;
	fixture.counter = STARTED + 5000;
	put_about_device(&fixture, 1, 7);
	drain(&fixture, 1);
	TS_CHECK_INT(counts(&fixture).events, 2);
	TS_CHECK_INT(counts(&fixture).lost, 0);
	finish(&fixture);
	free_blocks(&copied);
	TS_CHECK_INT(counter_of(fixture.path, 7).device, 1);
}

TS_TEST(cut_and_changed_states_are_survived)
{
	struct copied_blocks copied = { .count = 0 };
	struct ts_block_sink sink = { .append = copy_block, .context = &copied };
	struct ts_block_open open = plain_open();
	struct fixture fixture;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
	put_device(&fixture, 0, 10, "A", "GPU-a", "bus");
	put_device(&fixture, 9, 10, "B", "", "");
	put_about_process(&fixture, 6000, 0, 3);
	drain(&fixture, 1);
	TS_CHECK_INT(ts_decoder_save_state(fixture.decoder, &sink, NULL), 0);
	finish(&fixture);
	for (uint32_t turn = 0; turn < 400; turn++) {
		memset(&fixture, 0, sizeof(fixture));
		open_writer(&fixture, "s.sbt");
		TS_CHECK_INT(ts_decoder_new(&fixture.decoder, NULL, NULL), 0);
		ts_decoder_set_writer(fixture.decoder, fixture.writer, false, "s");
		fixture.sink = (struct ts_block_sink){ .append = decode, .context = &fixture };
		TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_OPEN, 0, &open, sizeof(open)), 0);
		for (size_t i = 0; i < copied.count; i++) {
			struct ts_block block = copied.blocks[i];
			char *payload;

			if (block.type == TS_BLOCK_STATE && turn < 200)
				block.bytes -= TS_MIN(turn * 4, block.bytes);
			payload = malloc(block.bytes ? block.bytes : 1);
			memcpy(payload, copied.payloads[i], block.bytes);
			if (block.type == TS_BLOCK_STATE && turn >= 200 && block.bytes)
				payload[turn * 37 % block.bytes] ^= (char)(turn * 11 | 1);
			ts_decoder_block(fixture.decoder, &block, payload, NULL);
			free(payload);
		}
		fixture.sides[0].position = 1 << 20;
		fixture.counter = STARTED + 5000;
		put_thread(&fixture.ring, STARTED, 1, PID, 0, "main");
		put_device(&fixture, 1, 10, "C", "GPU-a", "bus");
		put_about_device(&fixture, 9, 7);
		drain(&fixture, 1);
		finish(&fixture);
	}
	free_blocks(&copied);
}

TS_TEST(a_part_of_a_trace_has_its_counters_and_devices)
{
	struct ts_extract_filter filter = { .pid = PID + 1,
					    .from_ns = INT64_MIN,
					    .to_ns = INT64_MAX };
	const char *part = file_in_folder("part.sbt");
	struct fixture fixture;
	int64_t device;

	start(&fixture);
	put_thread(&fixture.ring, STARTED, 1, PID, 0, "sampler");
	put_device(&fixture, 0, 10, "A", "GPU-a", "bus");
	put_about(&fixture, subject_word(TS_METRICS_SYSTEM, 0, 0), 0, 1);
	put_about_process(&fixture, PID + 1, 99, 2);
	put_about_process(&fixture, PID, 99, 3);
	put_about_device(&fixture, 0, 4);
	put_about(&fixture, subject_word(TS_METRICS_PROCESS_ON_DEVICE, 0, PID + 1), 99, 5);
	put_about(&fixture, subject_word(TS_METRICS_PROCESS_ON_DEVICE, 0, PID), 99, 6);
	drain(&fixture, 6);
	finish(&fixture);
	TS_CHECK_INT(ts_extract(fixture.path, part, &filter, NULL), 0);
	check_finished(part);
	TS_CHECK_INT(count_rows(part, TS_TABLE_COUNTER), 4);
	TS_CHECK_INT(counter_of(part, 1).process, 0);
	TS_CHECK_INT(pid_of(part, counter_of(part, 2).process), PID + 1);
	device = counter_of(part, 4).device;
	TS_CHECK_STR(device_of(part, device), "0 Maker|A|GPU-a|10|{\"bus\":\"bus\"}");
	TS_CHECK_INT(counter_of(part, 5).device, device);
	TS_CHECK_INT(pid_of(part, counter_of(part, 5).process), PID + 1);
}
