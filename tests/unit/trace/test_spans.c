/* SPDX-License-Identifier: Apache-2.0 */
/* Nested spans: order, cuts, open ends; sorted in memory or in pieces they are the same. */
#include "base/ns.h"
#include "trace/samples.h"
#include "trace/spans.h"

#include "unit/export/export_support.h"

static void make_span(struct fixture *fixture, enum ts_table_id table, int64_t thread,
		      int64_t start, int64_t duration, const char *name)
{
	struct ts_slice_row slice = ts_slice_none;
	struct ts_api_call_row call = ts_api_call_none;

	slice.start = call.start = start;
	slice.duration = call.duration = duration;
	slice.thread = call.thread = thread;
	slice.name = call.name = text_id(fixture, name);
	TS_CHECK_INT(ts_writer_add(fixture->writer, table,
				   table == TS_TABLE_SLICE ? (const void *)&slice : &call, NULL),
		     0);
}

struct written {
	struct ts_reader *reader;
	struct ts_text text;
	int64_t thread, depth, last, self;
};

static int write_step(void *context, const struct ts_span_step *step)
{
	struct written *written = context;
	struct ts_string name = ts_reader_string(written->reader, step->name);

	if (written->thread != step->thread) {
		/* Nothing of one thread is open when another begins, and none comes twice. */
		TS_CHECK_INT(written->depth, 0);
		TS_CHECK(step->thread > written->thread);
		written->thread = step->thread;
		written->last = INT64_MIN;
	}
	TS_CHECK(step->time >= written->last);
	written->last = step->time;
	written->depth += step->begins ? 1 : -1;
	TS_CHECK(written->depth >= 0 && (step->begins || step->self >= 0));
	/* Hostile times overflow. */
	written->self = ts_ns_add(written->self, step->begins ? 0 : step->self);
	ts_text_printf(&written->text, "%s%lld %s%lld", written->text.length ? " " : "",
		       (long long)step->thread, step->begins ? "(" : ")", (long long)step->time);
	ts_text_append(&written->text, name.data, name.length);
	return TS_OK;
}

static struct ts_spans_counts walk(struct ts_reader *reader, size_t piece_rows,
				   struct written *written)
{
	struct ts_error err = { 0 };
	struct ts_spans *spans = NULL;
	struct ts_spans_counts counts;

	*written = (struct written){ .reader = reader, .thread = INT64_MIN };
	if (ts_spans_new(&spans, reader, &(struct ts_spans_options){ .piece_rows = piece_rows },
			 &err) ||
	    ts_spans_walk(spans, write_step, written, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK_INT(written->depth, 0);
	counts = ts_spans_counts(spans);
	ts_spans_free(spans);
	return counts;
}

TS_TEST(spans_nest_and_are_cut)
{
	struct ts_spans_counts counts;
	struct ts_reader *reader;
	struct written written;
	struct fixture fixture;

	make_trace(&fixture, 0);
	make_span(&fixture, TS_TABLE_API_CALL, 1, 10, 10, "call");
	make_span(&fixture, TS_TABLE_SLICE, 1, 10, 10, "same");
	make_span(&fixture, TS_TABLE_SLICE, 1, 10, 20, "outer");
	make_span(&fixture, TS_TABLE_SLICE, 1, 25, 10, "late");
	make_span(&fixture, TS_TABLE_SLICE, 1, 30, 0, "empty");
	make_span(&fixture, TS_TABLE_SLICE, 2, 5, -1, "never");
	make_span(&fixture, TS_TABLE_API_CALL, 2, 6, 1, "in");
	reader = open_fixture(&fixture);
	counts = walk(reader, 0, &written);
	TS_CHECK_STR(ts_text_cstr(&written.text),
		     "1 (10outer 1 (10same 1 (10call 1 )20call 1 )20same 1 (25late 1 )30late 1 "
		     ")30outer 1 (30empty 1 )30empty 2 (5never 2 (6in 2 )7in 2 )35never");
	TS_CHECK_INT((int64_t)counts.spans, 7);
	TS_CHECK_INT((int64_t)counts.cut_slices, 1);
	TS_CHECK_INT((int64_t)counts.cut_calls, 0);
	TS_CHECK_INT(counts.first_ns, 5);
	/* Self times add up to the union of all. */
	TS_CHECK_INT(written.self, 20 + 30);
	ts_text_release(&written.text);
	ts_reader_close(reader);
}

TS_TEST(spans_in_pieces_are_the_same)
{
	static const size_t pieces[] = { 7, 64, 999, 1000, 1001, 5000 };
	struct written all, parts;
	struct ts_spans_counts counts, other;
	struct ts_reader *reader;
	uint64_t state = 12345;
	struct fixture fixture;

	make_trace(&fixture, 100);
	for (int i = 0; i < 3000; i++) {
		uint64_t bits;
		char name[16];

		state = state * 6364136223846793005u + 1442695040888963407u;
		bits = state >> 33;
		snprintf(name, sizeof(name), "n%d", (int)(bits % 7));
		make_span(&fixture, bits & 1024 ? TS_TABLE_SLICE : TS_TABLE_API_CALL,
			  (int64_t)(bits >> 4 & 7), (int64_t)(bits >> 7 & 1023),
			  bits % 97 ? (int64_t)(bits >> 17 & 63) : -1, name);
	}
	reader = open_fixture(&fixture);
	counts = walk(reader, 0, &all);
	TS_CHECK(counts.cut_slices > 0 && counts.cut_calls > 0);
	for (size_t i = 0; i < TS_ARRAY_SIZE(pieces); i++) {
		other = walk(reader, pieces[i], &parts);
		TS_CHECK_INT((int64_t)other.cut_slices, (int64_t)counts.cut_slices);
		TS_CHECK_INT((int64_t)other.cut_calls, (int64_t)counts.cut_calls);
		TS_CHECK_INT(parts.self, all.self);
		TS_CHECK(all.text.length == parts.text.length &&
			 !memcmp(all.text.data, parts.text.data, all.text.length));
		ts_text_release(&parts.text);
	}
	ts_text_release(&all.text);
	ts_reader_close(reader);
}

TS_TEST(spans_of_hostile_times)
{
	static const int64_t times[] = { INT64_MIN + 1, INT64_MIN + 2, -1, 0, 1,
					 INT64_MAX - 1, INT64_MAX };
	static const int64_t durations[] = { -1, 0, 1, INT64_MAX - 1, INT64_MAX };
	struct ts_reader *reader;
	struct written written;
	struct fixture fixture;

	make_trace(&fixture, 0);
	for (size_t i = 0; i < TS_ARRAY_SIZE(times); i++)
		for (size_t j = 0; j < TS_ARRAY_SIZE(durations); j++)
			make_span(&fixture, TS_TABLE_SLICE, INT64_C(1) << (i % 3), times[i],
				  durations[j], "x");
	reader = open_fixture(&fixture);
	TS_CHECK_INT((int64_t)walk(reader, 5, &written).spans,
		     TS_ARRAY_SIZE(times) * TS_ARRAY_SIZE(durations));
	ts_text_release(&written.text);
	ts_reader_close(reader);
}

TS_TEST(spans_stop_when_told)
{
	struct ts_reader *reader;
	struct ts_spans *spans = NULL;
	struct ts_error err = { 0 };
	struct fixture fixture;

	make_trace(&fixture, 0);
	reader = open_fixture(&fixture);
	TS_CHECK_INT(ts_spans_new(&spans, reader, NULL, &err), 0);
	TS_CHECK_INT(ts_spans_walk(spans, write_step, NULL, &err), 0);
	ts_spans_free(spans);
	ts_spans_free(NULL);
	ts_reader_close(reader);
}

static bool is_time(const char *name)
{
	return ts_samples_is_time(name, strlen(name));
}

TS_TEST(samples_of_events_that_count_no_time)
{
	TS_CHECK(is_time("") && is_time("python") && is_time("cpu-clock") &&
		 is_time("task-clock:u"));
	TS_CHECK(is_time("cpu") && is_time("wall") && is_time("cpu-clock:uhH"));
	TS_CHECK(!is_time("cycles") && !is_time("cycles:u") && !is_time("cpu/cycles/P"));
	TS_CHECK(!is_time("cpu_core/instructions/") && !is_time("page-faults") && !is_time("cs"));
	TS_CHECK(!is_time("sched:sched_switch") && !is_time("LLC-load-misses") &&
		 !is_time("r01c2"));
	TS_CHECK(!is_time("alloc_space") && !is_time("inuse_objects"));
}

static void sample_of(struct fixture *fixture, int64_t start, int64_t stack, int64_t weight,
		      const char *name)
{
	struct ts_sample_row row = ts_sample_none;

	row.start = start;
	row.stack = stack;
	row.weight = weight;
	row.name = text_id(fixture, name);
	TS_CHECK_INT(ts_writer_add(fixture->writer, TS_TABLE_SAMPLE, &row, NULL), 0);
}

TS_TEST(weights_of_cycles_are_no_time)
{
	struct fixture fixture;

	make_trace(&fixture, 0);
	sample_of(&fixture, 1, make_stack(&fixture, "main;a"), 250000, "cycles:u");
	sample_of(&fixture, 2, make_stack(&fixture, "main;a"), 250000, "cycles:u");
	CHECK_EXPORT(&fixture, "folded", TS_EXPORT_NO_THREADS, "main;a 500000\n");
	make_trace(&fixture, 0);
	sample_of(&fixture, 1, make_stack(&fixture, "main;a"), 250000, "cycles:u");
	free(export_fixture(&fixture, "folded", TS_EXPORT_TIME, TS_EINVAL));
	make_trace(&fixture, 0);
	sample_of(&fixture, 1, make_stack(&fixture, "main;a"), 250000, "cpu-clock");
	CHECK_EXPORT(&fixture, "folded", TS_EXPORT_NO_THREADS | TS_EXPORT_TIME, "main;a 250000\n");
}

static void allocate(struct fixture *fixture, enum ts_allocation_kind kind, int64_t bytes,
		     int64_t stack)
{
	struct ts_allocation_row row = ts_allocation_none;
	static int64_t start;

	row.start = start++;
	row.kind = kind;
	row.bytes = bytes;
	row.stack = stack;
	TS_CHECK_INT(ts_writer_add(fixture->writer, TS_TABLE_ALLOCATION, &row, NULL), 0);
}

static void make_memory(struct fixture *fixture)
{
	int64_t a, b;

	make_trace(fixture, 0);
	a = make_stack(fixture, "main;a");
	b = make_stack(fixture, "main;b");
	allocate(fixture, TS_ALLOCATION_ALLOC, 100, a);
	allocate(fixture, TS_ALLOCATION_FREE, 100, a);
	allocate(fixture, TS_ALLOCATION_ALLOC, 30, b);
	allocate(fixture, TS_ALLOCATION_ALLOC, 5, a);
	allocate(fixture, TS_ALLOCATION_ALLOC, TS_ABSENT, a);
	allocate(fixture, TS_ALLOCATION_ALLOC, 7, 0);
}

TS_TEST(memory_counts_what_was_taken)
{
	struct fixture fixture;

	make_memory(&fixture);
	CHECK_EXPORT(&fixture, "folded", TS_EXPORT_MEMORY | TS_EXPORT_NO_THREADS,
		     "main;a 105\nmain;b 30\n");
	make_memory(&fixture);
	CHECK_EXPORT(
		&fixture, "speedscope", TS_EXPORT_MEMORY,
		"{'$schema':'https://www.speedscope.app/file-format-schema.json',\n"
		"'exporter':'tracesmith',\n"
		"'shared':{'frames':[\n{'name':'main'},\n{'name':'a'},\n{'name':'b'}]},\n"
		"'profiles':[\n{'type':'sampled','name':'process unknown thread','unit':'bytes',"
		"'startValue':0,'endValue':142,\n"
		"'samples':[[0,1],[0,2],[0,1],[]],\n"
		"'weights':[100,30,5,7]}]}\n");
}
