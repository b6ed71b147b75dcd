/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks: counts, names, order, omissions. */
#include "unit/export/export_support.h"

TS_TEST(folded_counts_samples_of_each_stack)
{
	struct fixture fixture;
	int64_t first, second, deep;

	make_trace(&fixture, 0);
	first = make_thread(&fixture, make_process(&fixture, 10, "python3", TS_ABSENT), 10,
			    "MainThread");
	second = make_thread(&fixture, make_process(&fixture, 20, NULL, TS_ABSENT), 10, NULL);
	deep = make_stack(&fixture, "/app/x.py:main:3;/app/x.py:work:7;/lib/libc.so.6!poll");
	make_sample(&fixture, 1 * MS, first, deep, MS, NULL);
	make_sample(&fixture, 2 * MS, first, make_stack(&fixture, "/app/x.py:main:3"), MS, NULL);
	make_sample(&fixture, 3 * MS, first, deep, 5 * MS, "idle");
	make_sample(&fixture, 3 * MS, second, deep, MS, NULL);
	/* An empty stack is no stack. */
	make_sample(&fixture, 4 * MS, first, 0, MS, NULL);
	CHECK_EXPORT(&fixture, "folded", 0,
		     "process 20;thread 10;main (x.py:3);work (x.py:7);poll (libc.so.6) 1\n"
		     "python3 (10);MainThread;main (x.py:3) 1\n"
		     "python3 (10);MainThread;main (x.py:3);work (x.py:7);poll (libc.so.6) 2\n");
}

static void make_two_lines(struct fixture *fixture)
{
	int64_t thread;

	make_trace(fixture, 0);
	thread =
		make_thread(fixture, make_process(fixture, 10, "python3", TS_ABSENT), 11, "worker");
	make_sample(fixture, 1 * MS, thread, make_stack(fixture, "a.py:f:1;a.py:g:2"), 2 * MS,
		    NULL);
	make_sample(fixture, 2 * MS, thread, make_stack(fixture, "a.py:f:1;a.py:g:3"), 3 * MS,
		    "idle");
}

TS_TEST(folded_options)
{
	struct fixture fixture;

	make_two_lines(&fixture);
	CHECK_EXPORT(&fixture, "folded", 0,
		     "python3 (10);worker (11);f (a.py:1);g (a.py:2) 1\n"
		     "python3 (10);worker (11);f (a.py:1);g (a.py:3) 1\n");
	make_two_lines(&fixture);
	CHECK_EXPORT(&fixture, "folded", TS_EXPORT_NO_LINES,
		     "python3 (10);worker (11);f (a.py);g (a.py) 2\n");
	make_two_lines(&fixture);
	CHECK_EXPORT(&fixture, "folded", TS_EXPORT_NO_LINES | TS_EXPORT_NO_THREADS | TS_EXPORT_TIME,
		     "f (a.py);g (a.py) 5000000\n");
	make_two_lines(&fixture);
	CHECK_EXPORT(&fixture, "folded", TS_EXPORT_NO_IDLE | TS_EXPORT_NO_THREADS,
		     "f (a.py:1);g (a.py:2) 1\n");
}

TS_TEST(folded_samples_without_weight_do_not_count_beside_others)
{
	struct fixture fixture;
	int64_t stack;

	make_trace(&fixture, 0);
	stack = make_stack(&fixture, "f");
	make_sample(&fixture, 1, 0, stack, MS, NULL);
	make_sample(&fixture, 2, 0, stack, TS_ABSENT, NULL);
	CHECK_EXPORT(&fixture, "folded", 0, "process;thread;f 1\n");
	/* On their own they do count. */
	make_trace(&fixture, 0);
	stack = make_stack(&fixture, "f");
	make_sample(&fixture, 1, 0, stack, TS_ABSENT, NULL);
	make_sample(&fixture, 2, 0, stack, TS_ABSENT, NULL);
	CHECK_EXPORT(&fixture, "folded", 0, "process;thread;f 2\n");
	/* Numbers of samples, as other tools write them. */
	make_trace(&fixture, 0);
	stack = make_stack(&fixture, "f");
	make_sample(&fixture, 1, 0, stack, 3, NULL);
	make_sample(&fixture, 2, 0, stack, TS_ABSENT, NULL);
	CHECK_EXPORT(&fixture, "folded", 0, "process;thread;f 4\n");
}

TS_TEST(folded_time_needs_weights)
{
	struct fixture fixture;
	char *text;

	make_trace(&fixture, 0);
	make_sample(&fixture, 1, 0, make_stack(&fixture, "f"), TS_ABSENT, NULL);
	text = export_fixture(&fixture, "folded", TS_EXPORT_TIME, TS_EINVAL);
	TS_CHECK_STR(text, "");
	free(text);
}

TS_TEST(folded_names_cannot_break_lines)
{
	struct ts_frame_row row = ts_frame_none;
	struct fixture fixture;
	uint32_t stack;

	make_trace(&fixture, 0);
	row.name = text_id(&fixture, "a;b\nc\xff 7");
	stack = ts_writer_stack(fixture.writer, 0, ts_writer_frame(fixture.writer, &row));
	row.name = 0;
	stack = ts_writer_stack(fixture.writer, stack, ts_writer_frame(fixture.writer, &row));
	row.pc = 0xbeef;
	stack = ts_writer_stack(fixture.writer, stack, ts_writer_frame(fixture.writer, &row));
	/* A frame missing from the trace. */
	stack = ts_writer_stack(fixture.writer, stack, 99);
	make_sample(&fixture, 1, 77, stack, MS, NULL);
	/* A stack missing from the trace. */
	make_sample(&fixture, 2, 0, 1000, MS, NULL);
	CHECK_EXPORT(&fixture, "folded", 0,
		     "process;thread;(lost) 1\n"
		     "process;thread;a:b c\xef\xbf\xbd 7;(unknown);0xbeef;(lost) 1\n");
}

TS_TEST(folded_files_have_short_names_while_they_tell_them_apart)
{
	struct fixture fixture;

	make_trace(&fixture, 0);
	make_sample(&fixture, 1, 0, make_stack(&fixture, "/a/model.py:f:1;/b/model.py:f:1"), MS,
		    NULL);
	make_sample(&fixture, 2, 0,
		    make_stack(&fixture, "/v/lib/python3.11/site-packages/torch/nn/m.py:g:2;"
					 "/usr/lib/python3.13t/json/decoder.py:h:3;"
					 "<string>:i:4;/pythonic/x.py:j:5"),
		    MS, NULL);
	CHECK_EXPORT(&fixture, "folded", TS_EXPORT_NO_THREADS,
		     "f (model.py:1);f (/b/model.py:1) 1\n"
		     "g (torch/nn/m.py:2);h (json/decoder.py:3);i (<string>:4);j (x.py:5) 1\n");
}

TS_TEST(folded_same_text_stored_twice_is_one_function)
{
	struct ts_frame_row row = ts_frame_none;
	struct fixture fixture;

	make_trace(&fixture, 0);
	row.name = text_id(&fixture, "f");
	make_sample(&fixture, 1, 0,
		    ts_writer_stack(fixture.writer, 0, ts_writer_frame(fixture.writer, &row)), MS,
		    NULL);
	/* Same text, another frame: columns are not shown. */
	row.column = 3;
	make_sample(&fixture, 2, 0,
		    ts_writer_stack(fixture.writer, 0, ts_writer_frame(fixture.writer, &row)), MS,
		    NULL);
	CHECK_EXPORT(&fixture, "folded", TS_EXPORT_NO_THREADS, "f 2\n");
}

TS_TEST(folded_deep_recursion)
{
	struct ts_frame_row row = ts_frame_none;
	struct fixture fixture;
	uint32_t frame, stack = 0;
	char *text;
	size_t words = 0;

	make_trace(&fixture, 0);
	row.name = text_id(&fixture, "again");
	frame = ts_writer_frame(fixture.writer, &row);
	for (int i = 0; i < 2000; i++) {
		stack = ts_writer_stack(fixture.writer, stack, frame);
		make_sample(&fixture, i, 0, stack, MS, NULL);
	}
	text = export_fixture(&fixture, "folded", TS_EXPORT_NO_THREADS, 0);
	/* A frame ends with ; or, as the last of a line, with a blank. */
	for (const char *at = text; *at; at++)
		words += *at == ';' || *at == ' ';
	TS_CHECK_INT(words, 2000 * 2001 / 2);
	TS_CHECK(!strncmp(text, "again 1\nagain;again 1\n", 22));
	free(text);
}

TS_TEST(folded_of_nothing_is_empty)
{
	struct fixture fixture;

	make_trace(&fixture, 0);
	CHECK_EXPORT(&fixture, "folded", TS_EXPORT_TIME, "");
}

/*
 * Many chunks, rows of several threads interleaved: counts do not depend on their order in the
 * file.
 */
TS_TEST(folded_over_chunks)
{
	struct fixture fixture;
	int64_t threads[3], stacks[2];

	make_trace(&fixture, 64);
	for (int i = 0; i < 3; i++)
		threads[i] = make_thread(&fixture, 0, 5 + i, NULL);
	stacks[0] = make_stack(&fixture, "a");
	stacks[1] = make_stack(&fixture, "a;b");
	for (int i = 0; i < 3000; i++)
		make_sample(&fixture, (i * 7919) % 3000 * MS, threads[i % 3], stacks[i % 2], MS,
			    NULL);
	CHECK_EXPORT(&fixture, "folded", 0,
		     "process;thread 5;a 500\nprocess;thread 5;a;b 500\n"
		     "process;thread 6;a 500\nprocess;thread 6;a;b 500\n"
		     "process;thread 7;a 500\nprocess;thread 7;a;b 500\n");
}

/* Ids of texts may be any number in a corrupt trace: none of them is a frame. */
TS_TEST(folded_names_out_of_range)
{
	static const int64_t names[] = { INT64_MIN, -1, INT64_MAX };
	struct fixture fixture;

	make_trace(&fixture, 0);
	make_stack(&fixture, "f");
	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		struct ts_slice_row slice = ts_slice_none;

		slice.start = (int64_t)i * 10;
		slice.duration = 5;
		slice.name = names[i];
		ts_writer_add(fixture.writer, TS_TABLE_SLICE, &slice, NULL);
	}
	CHECK_EXPORT(&fixture, "folded", TS_EXPORT_SPANS | TS_EXPORT_NO_THREADS, "(lost) 15\n");
}
