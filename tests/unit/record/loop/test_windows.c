/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of the recorder: parsing, storing exactly what is inside, exporting once. */
#include <dirent.h>

#include "unit/record/record_target.h"

/* ---- parsing ---- */

static struct ts_window_spec parse(const char *text)
{
	struct ts_window_spec spec;
	struct ts_error err;

	if (ts_window_parse(text, &spec, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return spec;
}

static const char *parse_error(const char *text)
{
	static struct ts_error err;
	struct ts_window_spec spec;

	TS_CHECK_INT(ts_window_parse(text, &spec, &err), TS_EINVAL);
	return err.message;
}

TS_TEST(parses_flag)
{
	struct ts_window_spec spec = parse("flag:/tmp/a:b");

	TS_CHECK_INT(spec.kind, TS_WINDOW_FLAG);
	TS_CHECK_STR(spec.path, "/tmp/a:b");
	parse_error("flag:");
	parse_error("flag:/tmp/");
}

TS_TEST(parses_steps)
{
	struct ts_window_spec spec = parse("steps:10-20");

	TS_CHECK_INT(spec.kind, TS_WINDOW_STEPS);
	TS_CHECK_INT(spec.first, 10);
	TS_CHECK_INT(spec.last, 20);
	spec = parse("steps:7");
	TS_CHECK_INT(spec.first, 7);
	TS_CHECK_INT(spec.last, 7);
	TS_CHECK_INT(parse("steps:7-").last, INT64_MAX);
	parse_error("steps:20-10");
	parse_error("steps:");
	parse_error("steps:-5");
	parse_error("steps:a-b");
	TS_CHECK_STR(parse_error("steps:1-x"),
		     "window 'steps:1-x' is not a valid range, such as steps:100-110");
}

TS_TEST(parses_time)
{
	struct ts_window_spec spec = parse("time:1.5-3s");

	TS_CHECK_INT(spec.kind, TS_WINDOW_TIME);
	TS_CHECK_INT(spec.first, 1500000000);
	TS_CHECK_INT(spec.last, 3000000000);
	spec = parse("time:250ms-");
	TS_CHECK_INT(spec.first, 250000000);
	TS_CHECK_INT(spec.last, INT64_MAX);
	parse_error("time:5");
	parse_error("time:5-5");
	parse_error("time:2s-1s");
}

TS_TEST(parses_what_a_program_marks)
{
	struct ts_window_spec spec = parse("nvtx:train step@my domain");

	TS_CHECK_INT(spec.kind, TS_WINDOW_BACKEND);
	TS_CHECK_STR(spec.backend->backend.name, "cuda");
	TS_CHECK_STR(spec.marked->name, "nvtx");
	TS_CHECK_STR(spec.path, "nvtx:train step@my domain");
	spec = parse("cuda-profiler-api");
	TS_CHECK_INT(spec.kind, TS_WINDOW_BACKEND);
	TS_CHECK_STR(spec.marked->name, "cuda-profiler-api");
	TS_CHECK_STR(spec.path, "cuda-profiler-api");
	parse_error("nvtx:");
	parse_error("nvtx:@domain");
	parse_error("nvtx:a;b");
	parse_error("cuda-profiler-api:x");
}

TS_TEST(names_what_is_allowed)
{
	TS_CHECK_INT(parse("always").kind, TS_WINDOW_ALWAYS);
	TS_CHECK_INT(parse("command").kind, TS_WINDOW_COMMAND);
	TS_CHECK_STR(
		parse_error("gpu:1"),
		"unknown window 'gpu:1'; expected flag:PATH, steps:A-B, time:A-B, nvtx:NAME[@DOMAIN], "
		"cuda-profiler-api, command or always");
}

/* ---- stored events ---- */

static void touch(const char *name)
{
	int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	TS_CHECK(fd >= 0);
	close(fd);
}

/* Counts files of the folder whose names begin with this; keeps the last one's name. */
static unsigned int count_files(const char *prefix, char *ret_name, size_t bytes)
{
	DIR *folder = opendir(test_folder);
	const struct dirent *entry;
	unsigned int count = 0;

	TS_CHECK(folder);
	while ((entry = readdir(folder))) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		count++;
		snprintf(ret_name, bytes, "%.*s", (int)bytes - 1, entry->d_name);
	}
	closedir(folder);
	return count;
}

TS_TEST(always_takes_all)
{
	struct ts_recorder_options options;
	struct ts_recorder_summary summary;
	struct ts_recorder *recorder;
	struct fake fake;

	make_folder();
	options = plain_options("t.sbt");
	make_area(&fake, getpid(), SESSION, 5, true);
	emit(&fake, 3);
	recorder = open_recorder(&options);
	pass(recorder);
	TS_CHECK_INT(fake.control->recorder_pid, getpid());
	TS_CHECK_INT(fake.control->mode, TS_LIVE_STREAM);
	emit(&fake, 100);
	passes(recorder, 2);
	TS_CHECK_INT(fake.ring->consumed, fake.ring->head);
	emit(&fake, 4);
	summary = finish_recorder(recorder);
	TS_CHECK_INT(summary.events, 107);
	TS_CHECK_INT(summary.lost, 0);
	TS_CHECK_INT(summary.processes, 1);
	TS_CHECK_INT(events_of("t.sbt"), 107);
	TS_CHECK(!is_on(&fake)); /* our session: left switched off */
	TS_CHECK_INT(fake.control->recorder_pid, 0);
	free_area(&fake);
	remove_folder();
}

TS_TEST(flag_opens_and_closes)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct fake fake, late;
	char name[160];

	make_folder();
	options = plain_options("t.sbt");
	snprintf(name, sizeof(name), "flag:%s", in_folder("flag"));
	options.window = parse(name);
	options.split = true;
	make_area(&fake, getpid(), SESSION, 5, false);
	recorder = open_recorder(&options);
	passes(recorder, 2);
	TS_CHECK(!is_on(&fake));
	touch("flag");
	while (!is_on(&fake))
		pass(recorder);
	emit(&fake, 50);
	make_area(&late, getpid(), SESSION, 6, false);
	while (!is_on(&late)) /* immediately, since the window is open */
		pass(recorder);
	emit(&late, 5);
	TS_CHECK(!unlink(in_folder("flag")));
	while (is_on(&fake) || is_on(&late))
		pass(recorder);
	for (int i = 0; i < 500 && !count_files("t_pid", name, sizeof(name)); i++)
		pass(recorder);
	passes(recorder, 20);
	TS_CHECK_INT(count_files("t_pid", name, sizeof(name)), 1);
	TS_CHECK_INT(events_of(name), 55);
	TS_CHECK_INT(rows_of(name, TS_TABLE_PROCESS), 1);
	finish_recorder(recorder);
	TS_CHECK_INT(count_files("t_pid", name, sizeof(name)), 1);
	TS_CHECK_INT(events_of("t.sbt"), 55);
	TS_CHECK_INT(rows_of("t.sbt", TS_TABLE_WINDOW), 2);
	free_area(&fake);
	free_area(&late);
	remove_folder();
}

/* What a flight recorder held before the window, and what slipped through after it, is dropped. */
TS_TEST(only_the_window_is_stored)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct fake fake;

	make_folder();
	options = plain_options("t.sbt");
	options.window.kind = TS_WINDOW_COMMAND;
	make_area(&fake, getpid(), SESSION, 5, true);
	emit(&fake, 10);
	recorder = open_recorder(&options);
	pass(recorder);
	TS_CHECK(!is_on(&fake));
	fake.control->window_request = TS_LIVE_WINDOW_OPEN;
	while (fake.control->window_reply != 1)
		pass(recorder);
	TS_CHECK(is_on(&fake));
	TS_CHECK_INT(fake.control->window_request, 0);
	TS_CHECK_INT(fake.control->window_serial, 1);
	emit(&fake, 20);
	fake.control->window_request = TS_LIVE_WINDOW_CLOSE;
	while (fake.control->window_reply != 2)
		pass(recorder);
	passes(recorder, 3);
	fake.control->enabled = 1; /* a thread that had checked earlier */
	emit(&fake, 30);
	fake.control->enabled = 0;
	finish_recorder(recorder);
	TS_CHECK_INT(events_of("t.sbt"), 20);
	TS_CHECK_INT(rows_of("t.sbt", TS_TABLE_LOSS), 0);
	free_area(&fake);
	remove_folder();
}

/* The minimum and maximum of a time column. */
static uint64_t span_of(struct ts_reader *reader, enum ts_table_id table, int column,
			int64_t *ret_least, int64_t *ret_greatest)
{
	struct ts_batch *batch;
	struct ts_error err;
	uint64_t rows = 0;

	*ret_least = INT64_MAX;
	*ret_greatest = INT64_MIN;
	TS_CHECK(!ts_batch_new(&batch, reader, &err));
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != table)
			continue;
		TS_CHECK(!ts_batch_read(batch, i, TS_MASK_ALL, &err));
		for (uint32_t k = 0; k < batch->rows; k++, rows++) {
			int64_t value = batch->columns[column][k];

			*ret_least = value < *ret_least ? value : *ret_least;
			*ret_greatest = value > *ret_greatest ? value : *ret_greatest;
		}
	}
	ts_batch_free(batch);
	return rows;
}

/* A fifth of the window: events far outside still fail the test. */
#define CALIBRATION_ERROR_NS 100000000

TS_TEST(time_is_exact)
{
	int64_t start, duration, first, last, unused, late = 0;
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct ts_reader *reader;
	struct fake fake;

	make_folder();
	options = plain_options("t.sbt");
	options.window = parse("time:200ms-700ms");
	make_area(&fake, getpid(), SESSION, 5, false);
	recorder = open_recorder(&options);
	fake.control->enabled = 1; /* much too early */
	emit(&fake, 3);
	fake.control->enabled = 0;
	for (int64_t end = ts_clock_monotonic_ns() + 800000000; ts_clock_monotonic_ns() < end;) {
		pass(recorder);
		emit(&fake, 1);
	}
	finish_recorder(recorder);
	reader = open_trace("t.sbt");
	TS_CHECK_INT(span_of(reader, TS_TABLE_WINDOW, TS_COLUMN_OF(window, start), &start, &unused),
		     1);
	span_of(reader, TS_TABLE_WINDOW, TS_COLUMN_OF(window, duration), &duration, &unused);
	/* On a busy machine it may open late, which a loss says. */
	span_of(reader, TS_TABLE_LOSS, TS_COLUMN_OF(loss, duration), &unused, &late);
	/*
	 * Exact except for the error of the counter's calibration, which grows on a busy machine.
	 */
	TS_CHECK(llabs(duration + TS_MAX(late, 0) - 500000000) < CALIBRATION_ERROR_NS);
	TS_CHECK(span_of(reader, TS_TABLE_MARK, TS_COLUMN_OF(mark, start), &first, &last) + 3 <=
		 fake.emitted);
	if (fake.emitted > 3)
		TS_CHECK(first >= start - CALIBRATION_ERROR_NS &&
			 last <= start + duration + CALIBRATION_ERROR_NS);
	ts_reader_close(reader);
	free_area(&fake);
	remove_folder();
}

TS_TEST(a_late_window_says_so)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	struct ts_recorder_options options;
	int64_t opened, from, count, unused, end;
	struct ts_recorder *recorder;
	struct ts_reader *reader;
	struct fake fake;

	make_folder();
	options = plain_options("t.sbt");
	options.window = parse("time:50ms-");
	make_area(&fake, getpid(), SESSION, 5, false);
	recorder = open_recorder(&options);
	/* The recorder is busy at the start of the window. */
	for (end = ts_clock_monotonic_ns() + 60000000; ts_clock_monotonic_ns() < end;)
		nanosleep(&pause, NULL);
	TS_CHECK(!is_on(&fake));
	pass(recorder);
	TS_CHECK(is_on(&fake));
	emit(&fake, 4);
	finish_recorder(recorder);
	TS_CHECK_INT(events_of("t.sbt"), 4);
	reader = open_trace("t.sbt");
	TS_CHECK_INT(
		span_of(reader, TS_TABLE_WINDOW, TS_COLUMN_OF(window, start), &opened, &unused), 1);
	TS_CHECK_INT(span_of(reader, TS_TABLE_LOSS, TS_COLUMN_OF(loss, start), &from, &unused), 1);
	span_of(reader, TS_TABLE_LOSS, TS_COLUMN_OF(loss, count), &count, &unused);
	TS_CHECK_INT(count, TS_ABSENT);
	TS_CHECK(opened > from);
	ts_reader_close(reader);
	free_area(&fake);
	remove_folder();
}

TS_TEST(steps_are_the_targets)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct fake fake;

	make_folder();
	options = plain_options("t.sbt");
	options.window = parse("steps:3-5");
	options.max_steps = 2;
	make_area(&fake, getpid(), SESSION, 5, false);
	recorder = open_recorder(&options);
	TS_CHECK_INT(fake.control->step_open, 3);
	TS_CHECK_INT(fake.control->step_close, 5);
	TS_CHECK_INT(fake.control->max_steps, 2);
	pass(recorder);
	TS_CHECK(!is_on(&fake));
	fake.control->enabled = 1;
	emit(&fake, 6);
	passes(recorder, 3);
	TS_CHECK(is_on(&fake));
	finish_recorder(recorder);
	TS_CHECK_INT(events_of("t.sbt"), 6);
	free_area(&fake);
	remove_folder();
}

/* Started with the settings, it has opened and closed its window before it is seen. */
static void attach_after_its_window(struct ts_window_spec window)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct fake fake;

	make_folder();
	options = plain_options("t.sbt");
	options.window = window;
	options.max_steps = 2;
	make_area(&fake, getpid(), SESSION, 5, false);
	fake.control->max_steps = 2;
	fake.control->step_open = TS_ABSENT;
	fake.control->step_close = window.kind == TS_WINDOW_STEPS ? window.last : TS_ABSENT;
	recorder = open_recorder(&options);
	passes(recorder, 2);
	TS_CHECK(!is_on(&fake));
	TS_CHECK_INT(fake.control->step_open, TS_ABSENT);
	finish_recorder(recorder);
	free_area(&fake);
	remove_folder();
}

TS_TEST(a_window_of_steps_stays_closed)
{
	attach_after_its_window(parse("steps:3-5"));
	attach_after_its_window((struct ts_window_spec){ .kind = TS_WINDOW_ALWAYS });
}
