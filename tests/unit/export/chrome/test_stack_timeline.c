/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks over time: what stays open, what a gap closes; spans of a track always nest and its times
 * never decrease.
 */
#include "unit/export/export_support.h"

/* Only begins and ends, each as "B name pid/tid ts" and a newline. */
static char *spans_of(struct fixture *fixture, unsigned int flags)
{
	char *text = export_fixture(fixture, "timeline", flags, 0), *rest = text, *line;
	struct ts_text out;

	ts_text_init(&out);
	TS_CHECK(text[strlen(text) - 1] == '\n');
	while ((line = strsep(&rest, "\n"))) {
		char phase, name[64], pid[32], tid[32], time[64];

		if (sscanf(line,
			   "{\"ph\":\"%c\",\"name\":\"%63[^\"]\",\"pid\":%31[0-9],\"tid\":%31[0-9],"
			   "\"ts\":%63[-0-9.]",
			   &phase, name, pid, tid, time) == 5)
			ts_text_printf(&out, "%c %s %s/%s %s\n", phase, name, pid, tid, time);
	}
	free(text);
	text = strdup(ts_text_cstr(&out));
	ts_text_release(&out);
	return text;
}

static void check_spans(const char *file, int line, struct fixture *fixture, const char *expected)
{
	char *spans = spans_of(fixture, 0);

	ts_test_check_str(file, line, "spans", spans, expected);
	free(spans);
}

#define CHECK_SPANS(fixture, expected) check_spans(__FILE__, __LINE__, fixture, expected)

static int64_t make_main(struct fixture *fixture)
{
	make_trace(fixture, 0);
	return make_thread(fixture, make_process(fixture, 1, "python3", TS_ABSENT), 1,
			   "MainThread");
}

TS_TEST(timeline_keeps_open_what_stays)
{
	struct fixture fixture;
	int64_t thread = make_main(&fixture);

	make_sample(&fixture, 1 * MS, thread, make_stack(&fixture, "x.py:main:1;x.py:f:2"), MS,
		    NULL);
	/* Other lines of the same functions. */
	make_sample(&fixture, 2 * MS, thread, make_stack(&fixture, "x.py:main:9;x.py:f:3"), MS,
		    NULL);
	make_sample(&fixture, 3 * MS, thread,
		    make_stack(&fixture, "x.py:main:9;x.py:g:4;lib.so!poll"), MS, NULL);
	make_sample(&fixture, 4 * MS, thread, make_stack(&fixture, "x.py:main:9"), MS, NULL);
	/* The same name in another file is another function. */
	make_sample(&fixture, 5 * MS, thread, make_stack(&fixture, "y.py:main:9"), MS, NULL);
	CHECK_EXPORT(
		&fixture, "timeline", 0,
		"{'displayTimeUnit':'ms',\n'traceEvents':[\n"
		"{'ph':'M','name':'process_name','pid':1,'tid':0,'args':{'name':'python3'}},\n"
		"{'ph':'M','name':'process_sort_index','pid':1,'tid':0,'args':{'sort_index':1}},\n"
		"{'ph':'M','name':'thread_name','pid':1,'tid':1,'args':{'name':'MainThread'}},\n"
		"{'ph':'B','name':'main','pid':1,'tid':1,'ts':1000.000,'cat':'python',"
		"'args':{'file':'x.py','line':1}},\n"
		"{'ph':'B','name':'f','pid':1,'tid':1,'ts':1000.000,'cat':'python',"
		"'args':{'file':'x.py','line':2}},\n"
		"{'ph':'E','name':'f','pid':1,'tid':1,'ts':3000.000},\n"
		"{'ph':'B','name':'g','pid':1,'tid':1,'ts':3000.000,'cat':'python',"
		"'args':{'file':'x.py','line':4}},\n"
		"{'ph':'B','name':'poll','pid':1,'tid':1,'ts':3000.000,'cat':'native',"
		"'args':{'file':'lib.so'}},\n"
		"{'ph':'E','name':'poll','pid':1,'tid':1,'ts':4000.000},\n"
		"{'ph':'E','name':'g','pid':1,'tid':1,'ts':4000.000},\n"
		"{'ph':'E','name':'main','pid':1,'tid':1,'ts':5000.000},\n"
		"{'ph':'B','name':'main','pid':1,'tid':1,'ts':5000.000,'cat':'python',"
		"'args':{'file':'y.py','line':9}},\n"
		"{'ph':'E','name':'main','pid':1,'tid':1,'ts':6000.000}\n]}\n");
}

TS_TEST(timeline_gaps_close_stacks)
{
	struct fixture fixture;
	int64_t thread = make_main(&fixture), stack = make_stack(&fixture, "f;g");

	make_sample(&fixture, 10 * MS, thread, stack, 10 * MS, NULL);
	/* One sample may be missing, two may not. */
	make_sample(&fixture, 30 * MS, thread, stack, 10 * MS, NULL);
	make_sample(&fixture, 60 * MS, thread, stack, 10 * MS, NULL);
	/* A late sample that says so leaves no gap. */
	make_sample(&fixture, 100 * MS, thread, stack, 40 * MS, NULL);
	CHECK_SPANS(&fixture, "B f 1/1 10000.000\nB g 1/1 10000.000\n"
			      "E g 1/1 40000.000\nE f 1/1 40000.000\n"
			      "B f 1/1 60000.000\nB g 1/1 60000.000\n"
			      "E g 1/1 140000.000\nE f 1/1 140000.000\n");
}

TS_TEST(timeline_samples_of_events_refine_it)
{
	struct fixture fixture;
	int64_t thread = make_main(&fixture);

	make_sample(&fixture, 10 * MS, thread, make_stack(&fixture, "f"), 10 * MS, NULL);
	make_sample(&fixture, 15 * MS, thread, make_stack(&fixture, "f;mark"), TS_ABSENT, NULL);
	make_sample(&fixture, 20 * MS, thread, make_stack(&fixture, "f"), 10 * MS, NULL);
	CHECK_SPANS(&fixture, "B f 1/1 10000.000\nB mark 1/1 15000.000\nE mark 1/1 20000.000\n"
			      "E f 1/1 30000.000\n");
}

TS_TEST(timeline_ends_with_the_process)
{
	struct fixture fixture;
	int64_t first, second, stack;

	make_trace(&fixture, 0);
	first = make_thread(&fixture, make_process(&fixture, 7, "a", 12 * MS), 9, NULL);
	second = make_thread(&fixture, make_process(&fixture, 8, "b", 5 * MS), 9, NULL);
	stack = make_stack(&fixture, "f");
	make_sample(&fixture, 10 * MS, first, stack, 10 * MS, NULL);
	/* Later than its end: clocks, or a hostile file. */
	make_sample(&fixture, 10 * MS, second, stack, 10 * MS, NULL);
	CHECK_SPANS(&fixture, "B f 7/9 10000.000\nB f 8/9 10000.000\n"
			      "E f 7/9 12000.000\nE f 8/9 10000.000\n");
}

TS_TEST(timeline_empty_stacks_and_equal_times)
{
	struct fixture fixture;
	int64_t thread = make_main(&fixture);

	make_sample(&fixture, 1 * MS, thread, 0, MS, NULL);
	make_sample(&fixture, 2 * MS, thread, make_stack(&fixture, "f"), MS, NULL);
	make_sample(&fixture, 2 * MS, thread, make_stack(&fixture, "g"), MS, NULL);
	make_sample(&fixture, 3 * MS, thread, 0, MS, NULL);
	CHECK_SPANS(&fixture, "B f 1/1 2000.000\nE f 1/1 2000.000\n"
			      "B g 1/1 2000.000\nE g 1/1 3000.000\n");
}

TS_TEST(timeline_lost_threads_share_a_track)
{
	struct fixture fixture;

	make_trace(&fixture, 0);
	make_sample(&fixture, 1 * MS, 0, make_stack(&fixture, "f"), MS, NULL);
	make_sample(&fixture, 2 * MS, 77, make_stack(&fixture, "g"), MS, NULL);
	CHECK_SPANS(&fixture, "B f 3050000000/3050000000 1000.000\n"
			      "E f 3050000000/3050000000 2000.000\n"
			      "B g 3050000000/3050000000 2000.000\n"
			      "E g 3050000000/3050000000 3000.000\n");
}

TS_TEST(timeline_idle_shows_at_the_innermost)
{
	struct fixture fixture;
	int64_t thread = make_main(&fixture), stack = make_stack(&fixture, "f;g");
	char *text;

	make_sample(&fixture, 1 * MS, thread, stack, MS, "running");
	make_sample(&fixture, 2 * MS, thread, stack, MS, "idle");
	make_sample(&fixture, 3 * MS, thread, stack, MS, "waiting for gil");
	text = export_fixture(&fixture, "timeline", 0, 0);
	TS_CHECK(strstr(text, "\"name\":\"g\",\"pid\":1,\"tid\":1,\"ts\":4000.000,"
			      "\"args\":{\"samples\":3,\"idle\":1,\"waiting for gil\":1}}"));
	TS_CHECK(strstr(text, "\"name\":\"f\",\"pid\":1,\"tid\":1,\"ts\":4000.000}"));
	free(text);
}

static void make_slice(struct fixture *fixture, int64_t start, int64_t duration, int64_t thread)
{
	struct ts_slice_row row = ts_slice_none;

	row.start = start;
	row.duration = duration;
	row.thread = thread;
	row.name = text_id(fixture, "step");
	row.stack = make_stack(fixture, "ignored");
	TS_CHECK_INT(ts_writer_add(fixture->writer, TS_TABLE_SLICE, &row, NULL), 0);
}

TS_TEST(timeline_stands_beside_the_programs_own_spans)
{
	struct fixture fixture;
	int64_t thread = make_main(&fixture);
	char *text;

	make_slice(&fixture, 1500000, 2 * MS, thread);
	make_slice(&fixture, 2 * MS, -1, thread);
	make_sample(&fixture, 1 * MS, thread, make_stack(&fixture, "f"), MS, NULL);
	make_sample(&fixture, 2 * MS, thread, make_stack(&fixture, "f"), MS, NULL);
	text = export_fixture(&fixture, "timeline", 0, 0);
	TS_CHECK(strstr(text, "{\"ph\":\"X\",\"name\":\"step\",\"pid\":1,\"tid\":1,\"ts\":1500.000,"
			      "\"dur\":2000.000}"));
	/* Open spans last until the end of the trace. */
	TS_CHECK(strstr(text, "\"ts\":2000.000,\"dur\":1500.000}"));
	TS_CHECK(strstr(text, "\"name\":\"thread_name\",\"pid\":1,\"tid\":3100000001,"
			      "\"args\":{\"name\":\"MainThread stacks\"}"));
	TS_CHECK(strstr(text, "\"ph\":\"B\",\"name\":\"f\",\"pid\":1,\"tid\":3100000001,"));
	TS_CHECK(!strstr(text, "\"sf\"") && !strstr(text, "tracesmith"));
	free(text);
}

TS_TEST(timeline_counters)
{
	struct ts_counter_row row = ts_counter_none;
	struct ts_field field = { .type = TS_ARG_INT };
	struct fixture fixture;
	int64_t value = 42;
	char *text;

	make_trace(&fixture, 0);
	row.start = MS;
	row.process = make_process(&fixture, 5, "python3", TS_ABSENT);
	row.name = text_id(&fixture, "memory_bytes");
	field.key = (uint32_t)text_id(&fixture, "rss");
	row.shape = ts_writer_shape(fixture.writer, &field, 1);
	TS_CHECK_INT(ts_writer_add(fixture.writer, TS_TABLE_COUNTER, &row, &value), 0);
	text = export_fixture(&fixture, "timeline", 0, 0);
	TS_CHECK(strstr(text, "{\"ph\":\"C\",\"name\":\"memory_bytes\",\"pid\":5,\"tid\":5,"
			      "\"ts\":1000.000,\"args\":{\"rss\":42}}"));
	free(text);
}

TS_TEST(timeline_no_idle_leaves_gaps)
{
	struct fixture fixture;
	int64_t thread = make_main(&fixture), stack = make_stack(&fixture, "f");
	char *spans;

	for (int i = 1; i <= 9; i++)
		make_sample(&fixture, i * MS, thread, stack, MS,
			    i >= 3 && i <= 6 ? "idle" : "running");
	spans = spans_of(&fixture, TS_EXPORT_NO_IDLE);
	TS_CHECK_STR(spans, "B f 1/1 1000.000\nE f 1/1 3000.000\n"
			    "B f 1/1 7000.000\nE f 1/1 10000.000\n");
	free(spans);
}

TS_TEST(timeline_extreme_times)
{
	struct fixture fixture;
	int64_t thread = make_main(&fixture), stack = make_stack(&fixture, "f");

	make_sample(&fixture, INT64_MIN / 2, thread, stack, MS, NULL);
	make_sample(&fixture, INT64_MAX / 2, thread, stack, INT64_MAX, NULL);
	CHECK_SPANS(&fixture, "B f 1/1 -4611686018427387.904\nE f 1/1 -4611686018426387.904\n"
			      "B f 1/1 4611686018427387.903\nE f 1/1 9223372036854775.807\n");
}

/* ---- random input ---- */

struct track {
	char open[4096][8];
	int depth;
	bool is_new;
	double time;
};

/* Parses the spans of a text and follows each track. */
static size_t follow(char *spans)
{
	static struct track tracks[8];
	char *rest = spans, *line;
	size_t count = 0;

	for (size_t i = 0; i < 8; i++)
		tracks[i] = (struct track){ .is_new = true };
	while ((line = strsep(&rest, "\n")) && *line) {
		char phase, name[8], time[64], pid, tid;
		struct track *track;
		double now;

		TS_CHECK_INT(sscanf(line, "%c %7s %c/%c %63s", &phase, name, &pid, &tid, time), 5);
		track = &tracks[pid % 2 * 4 + tid % 4];
		now = strtod(time, NULL);
		TS_CHECK(track->is_new || now >= track->time);
		track->is_new = false;
		track->time = now;
		if (phase == 'B') {
			TS_CHECK(track->depth < 4096);
			memcpy(track->open[track->depth++], name, sizeof(name));
		} else {
			TS_CHECK(track->depth > 0);
			TS_CHECK_STR(track->open[--track->depth], name);
		}
		count++;
	}
	for (size_t i = 0; i < 8; i++)
		TS_CHECK_INT(tracks[i].depth, 0);
	return count;
}

/*
 * Processes with the same thread numbers, random stacks, times and weights, rows in any order, over
 * many chunks.
 */
TS_TEST(timeline_always_nests)
{
	struct fixture fixture;
	int64_t threads[8];
	char *spans;

	make_trace(&fixture, 32);
	for (int i = 0; i < 8; i++)
		threads[i] = make_thread(&fixture,
					 i % 4 ? threads[0]
					       : make_process(&fixture, 2 + i / 4, NULL, 40 * MS),
					 4 + i % 4, NULL);
	/* Threads 5 to 7 of the first process, 4 of the second one, and some of no process. */
	srand(7);
	for (int i = 0; i < 4000; i++) {
		static const char *const words[] = { "a",   "a;b",   "a;b;c", "b",
						     "b;a", "a;a;a", "",      "a;c;b" };
		char stack[64];

		snprintf(stack, sizeof(stack), "%s;%s", words[rand() % 8], words[rand() % 8]);
		make_sample(&fixture, rand() % 100 * MS, threads[rand() % 5],
			    rand() % 10 ? make_stack(&fixture, stack) : 0, rand() % 3 * MS,
			    rand() % 2 ? "idle" : NULL);
	}
	spans = spans_of(&fixture, 0);
	TS_CHECK(follow(spans) > 1000);
	free(spans);
}

TS_TEST(timeline_deep_recursion)
{
	struct ts_frame_row row = ts_frame_none;
	struct fixture fixture;
	int64_t thread = make_main(&fixture);
	uint32_t frame, stack = 0;
	char *spans;

	row.name = text_id(&fixture, "again");
	frame = ts_writer_frame(fixture.writer, &row);
	for (int i = 0; i < 2000; i++)
		stack = ts_writer_stack(fixture.writer, stack, frame);
	make_sample(&fixture, 1 * MS, thread, stack, MS, NULL);
	/* One more level is still the same recursion. */
	make_sample(&fixture, 2 * MS, thread, ts_writer_stack(fixture.writer, stack, frame), MS,
		    NULL);
	spans = spans_of(&fixture, 0);
	TS_CHECK_INT(follow(spans), 2 * 2001);
	free(spans);
}
