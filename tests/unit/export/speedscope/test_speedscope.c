/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speedscope's JSON: frames, profiles, indices and weights. tests/cli/export/stacks-check.sh
 * validates it against the format's rules.
 */
#include "unit/export/export_support.h"

#define HEAD                                                                 \
	"{'$schema':'https://www.speedscope.app/file-format-schema.json',\n" \
	"'exporter':'tracesmith',\n'shared':{'frames':["

TS_TEST(speedscope_has_a_profile_a_thread)
{
	struct fixture fixture;
	int64_t first, second, outer, inner;

	make_trace(&fixture, 0);
	first = make_thread(&fixture, make_process(&fixture, 10, "python3", TS_ABSENT), 10,
			    "MainThread");
	second = make_thread(&fixture, make_process(&fixture, 20, "python3", TS_ABSENT), 10, NULL);
	outer = make_stack(&fixture, "/app/x.py:main:3");
	inner = make_stack(&fixture, "/app/x.py:main:3;/lib/libc.so.6!poll");
	make_sample(&fixture, 1 * MS, first, outer, MS, NULL);
	make_sample(&fixture, 2 * MS, first, inner, MS, NULL);
	make_sample(&fixture, 3 * MS, first, inner, 2 * MS, NULL);
	/* Samples of an event: their number says nothing about time. */
	make_sample(&fixture, 3 * MS + 1, first, outer, TS_ABSENT, NULL);
	make_sample(&fixture, 4 * MS, first, 0, MS, NULL);
	make_sample(&fixture, 2 * MS, second, inner, MS, NULL);
	CHECK_EXPORT(&fixture, "speedscope", 0,
		     HEAD
		     "\n{'name':'main','file':'/app/x.py','line':3},\n"
		     "{'name':'poll','file':'/lib/libc.so.6'}]},\n"
		     "'profiles':[\n"
		     "{'type':'sampled','name':'process 10 thread MainThread','unit':'nanoseconds',"
		     "'startValue':0,'endValue':5000000,\n"
		     "'samples':[[0],[0,1],[]],\n"
		     "'weights':[1000000,3000000,1000000]},\n"
		     "{'type':'sampled','name':'process 20 thread 10','unit':'nanoseconds',"
		     "'startValue':0,'endValue':1000000,\n"
		     "'samples':[[0,1]],\n"
		     "'weights':[1000000]}]}\n");
}

TS_TEST(speedscope_without_times_counts_samples)
{
	struct fixture fixture;

	make_trace(&fixture, 0);
	make_sample(&fixture, 1, 0, make_stack(&fixture, "a.py:f:1"), 2, NULL);
	make_sample(&fixture, 2, 0, make_stack(&fixture, "a.py:f:2"), TS_ABSENT, NULL);
	CHECK_EXPORT(&fixture, "speedscope", TS_EXPORT_NO_LINES,
		     HEAD "\n{'name':'f','file':'a.py'}]},\n"
			  "'profiles':[\n"
			  "{'type':'sampled','name':'process unknown thread','unit':'none',"
			  "'startValue':0,'endValue':3,\n"
			  "'samples':[[0],[0]],\n"
			  "'weights':[2,1]}]}\n");
}

TS_TEST(speedscope_of_nothing)
{
	struct fixture fixture;

	make_trace(&fixture, 0);
	CHECK_EXPORT(&fixture, "speedscope", 0, HEAD "]},\n'profiles':[]}\n");
}

/* Numbers in the list that begins at `at`. */
static size_t sum_list(const char *at, int64_t *ret_sum)
{
	size_t count = 0;

	*ret_sum = 0;
	for (at++; *at != ']'; count++) {
		char *end;

		*ret_sum += strtoll(at, &end, 10);
		at = *end == ',' ? end + 1 : end;
	}
	return count;
}

/* Far more runs than are held in memory, of threads that take turns. */
TS_TEST(speedscope_many_samples)
{
	enum { THREADS = 5, SAMPLES = 5000 };
	struct fixture fixture;
	int64_t threads[THREADS], stacks[2];
	char *text;
	const char *at;
	size_t profiles = 0;

	make_trace(&fixture, 512);
	for (int i = 0; i < THREADS; i++)
		threads[i] = make_thread(&fixture, 0, 100 + i, NULL);
	stacks[0] = make_stack(&fixture, "a");
	stacks[1] = make_stack(&fixture, "a;b");
	for (int i = 0; i < SAMPLES; i++)
		make_sample(&fixture, i * MS, threads[i % THREADS], stacks[i / THREADS % 2],
			    1000 + i, NULL);
	text = export_fixture(&fixture, "speedscope", 0, 0);
	at = text;
	while ((at = strstr(at, "\"endValue\":"))) {
		int64_t expected = strtoll(at + strlen("\"endValue\":"), NULL, 10), sum;

		at = strstr(at, "\"samples\":[[0],[0,1],[0],[0,1],");
		TS_CHECK(at != NULL);
		at = strstr(at, "\"weights\":[");
		TS_CHECK(at != NULL);
		at += strlen("\"weights\":");
		TS_CHECK_INT(sum_list(at, &sum), SAMPLES / THREADS);
		TS_CHECK_INT(sum, expected);
		/* In time order: each weight is greater than the previous one. */
		TS_CHECK_INT(strtoll(at + 1, NULL, 10), 1000 + profiles);
		profiles++;
	}
	TS_CHECK_INT(profiles, THREADS);
	free(text);
}

TS_TEST(speedscope_says_where_its_temporary_file_cannot_be)
{
	const struct ts_exporter *exporter = ts_exporter_find("speedscope");
	struct fixture fixture;
	struct ts_reader *reader;
	struct ts_error err;
	FILE *file = tmpfile();

	make_trace(&fixture, 0);
	make_sample(&fixture, 1, 0, make_stack(&fixture, "f"), MS, NULL);
	TS_CHECK_INT(ts_writer_finish(fixture.writer, &err), 0);
	ts_writer_close(fixture.writer);
	TS_CHECK_INT(ts_reader_open(&reader, fixture.path, &err), 0);
	unlink(fixture.path);
	setenv("TMPDIR", "/nowhere", 1);
	TS_CHECK(exporter->run(reader, fileno(file), NULL, &err) != 0);
	TS_CHECK(strstr(err.message, "/nowhere") != NULL);
	TS_CHECK(strstr(err.message, "TMPDIR") != NULL);
	ts_reader_close(reader);
	fclose(file);
}
