/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How `top` counts Python samples: functions, threads, the lock; and drawing in windows of every
 * size.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/common/screen.h"
#include "cli/top/top_python.h"
#include "unit/runner.h"

#define TICK_NS INT64_C(10000000)

static struct ts_python_code codes[] = {
	{ .name = "main", .file = "/x/train.py", .first_line = 1, .number = 1 },
	{ .name = "step", .file = "/x/train.py", .first_line = 20, .number = 2 },
	{ .name = "wait", .file = "/x/data.py", .first_line = 7, .number = 3 },
};

/* A sample of one thread: code numbers, innermost first. */
static void take(struct ts_top_python *python, pid_t tid, uint32_t state, const char *stack)
{
	struct ts_sample_frame frames[8];
	const struct ts_python_thread thread = {
		.tid = tid,
		.name = tid == 100 ? "MainThread" : "worker",
		.is_main = tid == 100,
		.state = state,
		.task = "",
	};
	struct ts_python_sample sample = {
		.pid = 100,
		.thread = &thread,
		.tid = tid,
		.frames = frames,
		.weight_ns = TICK_NS,
	};

	for (; *stack; stack++) {
		frames[sample.count++] = (struct ts_sample_frame){
			.python = &codes[*stack - '0'],
			.line = codes[*stack - '0'].first_line + 5,
		};
	}
	ts_top_python_take(python, &sample);
}

/* Samples the test itself, which has no Python: all samples are handmade. */
static struct ts_top_python *start(void)
{
	const struct ts_sampled_process process = {
		.pid = getpid(),
		.start_time = ts_process_start_time(getpid()),
	};
	struct ts_top_python *python;
	struct ts_error err;

	for (size_t i = 0; i < TS_ARRAY_SIZE(codes); i++)
		codes[i].tag = 0;
	TS_CHECK_INT(ts_top_python_open(&python, &err), TS_OK);
	TS_CHECK_INT(ts_top_python_watch(python, &process, 1, &err), TS_OK);
	return python;
}

static void fill(struct ts_top_python *python)
{
	for (int i = 0; i < 3; i++) {
		take(python, 100, TS_PYTHON_RUNS | TS_PYTHON_HAS_GIL, "10");
		take(python, 101, 0, "2");
	}
	take(python, 100, TS_PYTHON_RUNS | TS_PYTHON_HAS_GIL, "0");
	take(python, 102, TS_PYTHON_RUNS, "");
}

TS_TEST(functions_of_threads_that_do_something)
{
	struct ts_top_python *python = start();
	struct ts_top_python_snapshot picture = { 0 };
	struct ts_top_python_request wish = { 0 };
	struct ts_error err;

	fill(python);
	TS_CHECK_INT(ts_top_python_refresh(python, &wish, &picture, &err), TS_OK);
	TS_CHECK(picture.is_shown && picture.elapsed_s > 0);
	TS_CHECK_INT(picture.processes, 1);
	TS_CHECK_INT(picture.function_count, 2);
	TS_CHECK_STR(picture.functions[0].name, "step");
	TS_CHECK_INT(picture.functions[0].self_ns, 3 * TICK_NS);
	TS_CHECK_INT(picture.functions[0].total_ns, 3 * TICK_NS);
	TS_CHECK_INT(picture.functions[1].self_ns, TICK_NS);
	TS_CHECK_INT(picture.functions[1].total_ns, 4 * TICK_NS);
	ts_top_python_snapshot_release(&picture);
	/* No new samples: totals stay, recent times do not. */
	wish = (struct ts_top_python_request){ .idle = true, .by_total = true };
	TS_CHECK_INT(ts_top_python_refresh(python, &wish, &picture, &err), TS_OK);
	TS_CHECK_INT(picture.function_count, 3);
	TS_CHECK_STR(picture.functions[0].name, "main");
	TS_CHECK_INT(picture.functions[0].recent_total_ns, 0);
	TS_CHECK_INT(picture.functions[0].total_ns, 4 * TICK_NS);
	TS_CHECK_INT(picture.thread_count, 0);
	TS_CHECK_INT(picture.processes, 0);
	ts_top_python_snapshot_release(&picture);
	ts_top_python_close(python);
}

TS_TEST(threads)
{
	struct ts_top_python *python = start();
	struct ts_top_python_snapshot picture = { 0 };
	const struct ts_top_python_request wish = { 0 };
	struct ts_error err;

	fill(python);
	TS_CHECK_INT(ts_top_python_refresh(python, &wish, &picture, &err), TS_OK);
	TS_CHECK_INT(picture.thread_count, 3);
	TS_CHECK_STR(picture.threads[0].name, "MainThread");
	TS_CHECK_STR(picture.threads[0].function, "main");
	TS_CHECK_INT(picture.threads[0].line, 6);
	TS_CHECK_INT(picture.threads[1].tid, 101);
	TS_CHECK_STR(picture.threads[1].function, "wait");
	TS_CHECK(picture.threads[1].active_percent == 0);
	TS_CHECK(picture.threads[0].active_percent > 0);
	TS_CHECK(picture.threads[0].gil_percent == picture.gil_percent);
	TS_CHECK(picture.threads[2].function == NULL);
	TS_CHECK(picture.threads[2].gil_percent == 0);
	ts_top_python_snapshot_release(&picture);
	ts_top_python_close(python);
}

TS_TEST(codes_of_another_process_are_the_same_functions)
{
	struct ts_top_python *python = start();
	struct ts_top_python_snapshot picture = { 0 };
	const struct ts_top_python_request wish = { 0 };
	struct ts_error err;

	take(python, 100, TS_PYTHON_RUNS, "1");
	/* As if it had been reopened. */
	codes[1].tag = 0;
	take(python, 100, TS_PYTHON_RUNS, "1");
	TS_CHECK_INT(ts_top_python_refresh(python, &wish, &picture, &err), TS_OK);
	TS_CHECK_INT(picture.function_count, 1);
	TS_CHECK_INT(picture.functions[0].self_ns, 2 * TICK_NS);
	ts_top_python_snapshot_release(&picture);
	ts_top_python_close(python);
}

TS_TEST(windows_of_every_size)
{
	struct ts_top_python *python = start();
	struct ts_top_python_snapshot picture = { 0 };
	const struct ts_top_python_request wish = { 0 };
	struct ts_screen screen;
	struct ts_error err;

	fill(python);
	TS_CHECK_INT(ts_top_python_refresh(python, &wish, &picture, &err), TS_OK);
	ts_screen_init(&screen, true, true);
	for (unsigned int size = 1; size < 60; size++) {
		TS_CHECK_INT(ts_screen_resize(&screen, size, size * 3, &err), TS_OK);
		for (int pane = TS_TOP_PANE_FUNCTIONS; pane < TS_TOP_PANES; pane++) {
			ts_screen_begin(&screen);
			ts_top_python_draw(&screen, &picture, (enum ts_top_pane)pane, size / 3,
					   size);
			ts_top_python_draw(&screen, &picture, (enum ts_top_pane)pane, size, size);
			ts_screen_finish(&screen);
		}
	}
	TS_CHECK_INT(ts_top_python_rows(&picture, TS_TOP_PANE_FUNCTIONS), 4);
	TS_CHECK_INT(ts_top_python_rows(&picture, TS_TOP_PANE_THREADS), 5);
	TS_CHECK_INT(ts_top_python_rows(&picture, TS_TOP_PANE_NONE), 0);
	ts_screen_release(&screen);
	ts_top_python_snapshot_release(&picture);
	/* No data yet. */
	TS_CHECK_INT(ts_top_python_rows(&picture, TS_TOP_PANE_FUNCTIONS), 1);
	ts_top_python_close(python);
}

TS_TEST(as_json)
{
	struct ts_top_python_snapshot picture = { .elapsed_s = 2, .samples = 3, .processes = 1 };
	struct ts_top_function function = { .name = "f\"",
					    .file = "x.py",
					    .line = 3,
					    .self_ns = 1000000000,
					    .total_ns = 2000000000,
					    .recent_self_ns = 500000000,
					    .recent_total_ns = 1000000000 };
	struct ts_top_python_thread thread = {
		.pid = 1, .tid = 2, .name = "t", .state = TS_PYTHON_HAS_GIL
	};
	TS_SCOPED(ts_text) text = { 0 };

	picture.functions = &function;
	picture.function_count = 1;
	picture.threads = &thread;
	picture.thread_count = 1;
	ts_top_python_put_json(&text, &picture);
	TS_CHECK_STR(
		ts_text_cstr(&text),
		"{\"processes\":1,\"samples\":3,\"rejected\":0,\"elapsed_s\":2.0,\"gil_percent\":0.0,\"functions\":[{\"func\":\"f\\\"\","
		"\"file\":\"x.py\",\"lineno\":3,\"own_percent\":25.0,\"total_percent\":50.0,\"own_s\":1.0,\"total_s\":2.0}],"
		"\"threads\":[{\"pid\":1,\"tid\":2,\"name\":\"t\",\"state\":\"gil\",\"active_percent\":0.0,\"gil_percent\":0.0}]}");
}
