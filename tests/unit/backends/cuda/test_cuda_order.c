/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events and waits of a program as rows of the stream: which number an event has, what the host has
 * seen, and to which window a call belongs. The sources run inside programs, so they are included
 * here.
 */
#include "unit/runner.h"

#include <stdarg.h>

#include "backends/cuda/stream/cuda_order.c" /* NOLINT(bugprone-suspicious-include) */
#include "base/local/stream_text.c"          /* NOLINT(bugprone-suspicious-include) */

/* ---- the rest of the capture ---- */

static bool is_open = true, is_captured;
static uint64_t window = 1, sequence = 100, objects;
static unsigned int rows, locked, synchronized, failures;
static struct {
	struct ts_replay_command row;
	char details[256];
} last;
static struct capture_context other = { .handle = &other, .number = 21 },
			      primary = { .handle = &primary, .number = 20, .next = &other };

/* What happens in the driver. */
static struct {
	int result;
	void (*run)(void);
	bool was_locked;
} driver;

int cuda_invoke(struct cuda_call *call, const uintptr_t *args)
{
	driver.was_locked = locked > 0;
	if (driver.run)
		driver.run();
	return driver.result;
}

bool capture_is_open(void)
{
	return is_open;
}

bool capture_is_captured(const struct cuda_call *call, uintptr_t stream)
{
	return is_captured;
}

void capture_lock(void)
{
	locked++;
}

void capture_unlock(void)
{
	locked--;
}

uint64_t capture_last_sequence(void)
{
	return sequence;
}

uint64_t capture_command(const struct ts_replay_command *row)
{
	TS_CHECK(is_open && locked > 0);
	last.row = *row;
	snprintf(last.details, sizeof(last.details), "%s", row->details);
	rows++;
	return ++sequence;
}

uint64_t capture_stream_number(const struct cuda_call *call, uintptr_t handle)
{
	return handle + 1000;
}

struct capture_stream *capture_stream_of(const struct cuda_call *call, uintptr_t handle)
{
	return NULL;
}

uint64_t pools_frees(void)
{
	return 0;
}

void pools_host_waited(const struct capture_stream *stream, const struct capture_context *context,
		       uint64_t frees)
{
}

struct capture_context *capture_context_current(void)
{
	return &primary;
}

struct capture_context *capture_context_next(struct capture_context *after)
{
	return after ? after->next : &primary;
}

uint64_t capture_context_number(struct capture_context *context)
{
	return context->number;
}

void capture_fail(const char *format, ...)
{
	failures++;
}

void host_synchronized(void)
{
	TS_CHECK(locked > 0);
	synchronized++;
}

uint64_t ts_replay_new_object(void)
{
	return ++objects;
}

uint64_t ts_replay_window(void)
{
	return window;
}

/* ---- the program ---- */

/* Of each name there is one. */
static struct cuda_call *call_of(const char *name)
{
	static struct cuda_call calls[32];
	struct cuda_call *call = calls;

	while (call->name && strcmp(call->name, name) != 0)
		call++;
	call->name = name;
	return call;
}

/* A call; `count` rows must come of it. */
static void run(const char *name, uintptr_t first, uintptr_t second, unsigned int count)
{
	const struct cuda_handler_entry *entry = capture_order_handlers;
	uintptr_t args[4] = { first, second };
	unsigned int before = rows;

	while (entry->name && strncmp(entry->name, name, strlen(entry->name)) != 0)
		entry++;
	TS_CHECK(entry->name != NULL);
	TS_CHECK_INT(entry->run(call_of(name), args), driver.result);
	TS_CHECK_INT(locked, 0);
	TS_CHECK_INT(rows - before, count);
}

static void check_row(uint32_t kind, uint64_t queue, const char *details)
{
	TS_CHECK_INT(last.row.kind, kind);
	TS_CHECK_INT(last.row.queue, queue);
	TS_CHECK_STR(last.details, details);
}

/* An event and two streams. */
enum { E = 0x5000, A = 3, B = 4 };

TS_TEST(a_wait_names_the_event_that_was_recorded)
{
	run("cuEventRecord", E, A, 1);
	check_row(TS_COMMAND_RECORD, 1003, "{\"call\":\"cuEventRecord\",\"event\":1}");
	TS_CHECK(driver.was_locked);
	run("cuStreamWaitEvent", B, E, 1);
	check_row(TS_COMMAND_WAIT, 1004, "{\"call\":\"cuStreamWaitEvent\",\"wait\":[1]}");
	TS_CHECK(driver.was_locked);
	run("cuEventRecord", E, B, 1);
	check_row(TS_COMMAND_RECORD, 1004, "{\"call\":\"cuEventRecord\",\"event\":1}");
	/* One that was recorded before the window was complete when that opened. */
	run("cuStreamWaitEvent", B, E + 8, 0);
	/* In the next window it has another number, and no record. */
	capture_order_forget();
	run("cuStreamWaitEvent", B, E, 0);
	run("cuEventRecord", E, A, 1);
	TS_CHECK(!strstr(last.details, "\"event\":1}"));
}

TS_TEST(calls_that_failed_or_were_captured_are_not_rows)
{
	driver.result = CUDA_INVALID_HANDLE;
	run("cuEventRecord", E, A, 0);
	run("cuStreamWaitEvent", B, E, 0);
	run("cuEventSynchronize", E, 0, 0);
	run("cuStreamSynchronize", A, 0, 0);
	run("cuStreamQuery", A, 0, 0);
	run("cuCtxSynchronize", 0, 0, 0);
	run("cuEventDestroy_v2", E, 0, 0);
	driver.result = CUDA_SUCCESS_;
	is_captured = true;
	run("cuEventRecord", E, A, 0);
	run("cuStreamWaitEvent", B, E, 0);
	is_captured = false;
	run("cuStreamWaitEvent", B, E, 0);
	TS_CHECK_INT(synchronized, 0);
}

static void join_capture(void)
{
	is_captured = true;
}

TS_TEST(a_wait_may_make_the_stream_part_of_a_capture)
{
	run("cuEventRecord", E, A, 1);
	driver.run = join_capture;
	run("cuStreamWaitEvent", B, E, 0);
}

TS_TEST(outside_of_windows_there_are_no_rows)
{
	is_open = false;
	run("cuEventRecord", E, A, 0);
	run("cuStreamWaitEvent", B, E, 0);
	run("cuEventQuery", E, 0, 0);
	run("cuEventSynchronize", E, 0, 0);
	run("cuStreamSynchronize", A, 0, 0);
	run("cuCtxSynchronize", 0, 0, 0);
	run("cuEventDestroy_v2", E, 0, 0);
	TS_CHECK_INT(objects, 0);
}

TS_TEST(the_host_sees_an_event_once)
{
	run("cuEventSynchronize", E, 0, 0); /* never recorded */
	run("cuEventRecord", E, A, 1);
	driver.result = CUDA_NOT_READY;
	run("cuEventQuery", E, 0, 0);
	driver.result = CUDA_SUCCESS_;
	run("cuEventQuery", E, 0, 1);
	check_row(TS_COMMAND_SYNC, 0, "{\"call\":\"cuEventQuery\",\"what\":\"seen\",\"wait\":[1]}");
	TS_CHECK(!driver.was_locked);
	TS_CHECK_INT(synchronized, 1);
	run("cuEventQuery", E, 0, 0);
	run("cuEventSynchronize", E, 0, 0);
	run("cuEventRecord", E, A, 1);
	run("cuEventSynchronize", E, 0, 1);
	check_row(TS_COMMAND_SYNC, 0,
		  "{\"call\":\"cuEventSynchronize\",\"what\":\"events\",\"wait\":[1]}");
	/* It may last: others must get their turn. */
	TS_CHECK(!driver.was_locked);
}

TS_TEST(a_handle_that_is_used_again_is_another_event)
{
	run("cuEventRecord", E, A, 1);
	run("cuEventDestroy_v2", E, 0, 0);
	/* Another thread may get it, and record it, as soon as the driver has it back. */
	TS_CHECK(driver.was_locked);
	run("cuStreamWaitEvent", B, E, 0);
	run("cuEventRecord", E, A, 1);
	check_row(TS_COMMAND_RECORD, 1003, "{\"call\":\"cuEventRecord\",\"event\":2}");
	run("cuStreamWaitEvent", B, E, 1);
	/* Of one that nobody knows. */
	run("cuEventDestroy_v2", E + 8, 0, 0);
	TS_CHECK_INT(objects, 2);
}

TS_TEST(thousands_of_events_keep_their_numbers)
{
	char expected[64];

	for (uintptr_t i = 0; i < 5000; i++)
		run("cuEventRecord", E + 8 * i, A, 1);
	for (uintptr_t i = 0; i < 5000; i += 7) {
		run("cuStreamWaitEvent", B, E + 8 * i, 1);
		snprintf(expected, sizeof(expected),
			 "{\"call\":\"cuStreamWaitEvent\",\"wait\":[%d]}", (int)i + 1);
		check_row(TS_COMMAND_WAIT, 1004, expected);
	}
	TS_CHECK_INT(capture_event_number((void *)(uintptr_t)E), 1);
	TS_CHECK_INT(failures, 0);
}

TS_TEST(waits_of_the_host_say_what_they_cover)
{
	run("cuStreamSynchronize", A, 0, 1);
	check_row(TS_COMMAND_SYNC, 1003,
		  "{\"call\":\"cuStreamSynchronize\",\"what\":\"queue\",\"until\":100}");
	TS_CHECK(!driver.was_locked);
	run("cuCtxSynchronize", 0, 0, 1);
	check_row(TS_COMMAND_SYNC, 0,
		  "{\"call\":\"cuCtxSynchronize\",\"what\":\"context\",\"until\":101}");
	TS_CHECK_INT(last.row.object, 20);
	TS_CHECK(!driver.was_locked);
	run("cuCtxSynchronize_v2", (uintptr_t)&other, 0, 1);
	TS_CHECK_INT(last.row.object, 21);
	run("cuCtxSynchronize_v2", 0, 0, 1);
	TS_CHECK_INT(last.row.object, 20);
	/* One that is gone is not named. */
	other.is_gone = true;
	run("cuCtxSynchronize_v2", (uintptr_t)&other, 0, 1);
	TS_CHECK_INT(last.row.object, 0);
	TS_CHECK_INT(synchronized, 5);
}

TS_TEST(programs_that_poll_are_answered_once)
{
	driver.result = CUDA_NOT_READY;
	run("cuStreamQuery", A, 0, 0);
	driver.result = CUDA_SUCCESS_;
	run("cuStreamQuery", A, 0, 1);
	check_row(TS_COMMAND_SYNC, 1003,
		  "{\"call\":\"cuStreamQuery\",\"what\":\"seen\",\"until\":100}");
	run("cuStreamQuery", A, 0, 0);
	run("cuStreamQuery", B, 0, 1);
	run("cuStreamQuery", B, 0, 0);
	sequence++;
	run("cuStreamQuery", B, 0, 1);
}

/* ---- calls that outlast their window ---- */

static void close_window(void)
{
	is_open = false;
}

static void open_another(void)
{
	driver.run = NULL;
	window++;
	capture_order_forget();
	run("cuEventRecord", E, A, 1);
}

/* Each call that waits; meanwhile something `happens`. */
static void wait_while(void (*happens)(void), unsigned int count)
{
	static const struct {
		const char *name;
		uintptr_t first;
	} calls[] = { { "cuEventSynchronize", E },
		      { "cuStreamSynchronize", A },
		      { "cuCtxSynchronize", 0 },
		      { "cuEventQuery", E },
		      { "cuStreamQuery", A } };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct cuda_call call = { .name = calls[i].name };
		uintptr_t args[4] = { calls[i].first };
		const struct cuda_handler_entry *entry = capture_order_handlers;
		unsigned int before;

		is_open = true;
		capture_order_forget();
		run("cuEventRecord", E, A, 1);
		while (strcmp(entry->name, calls[i].name) != 0)
			entry++;
		before = rows;
		driver.run = happens;
		TS_CHECK_INT(entry->run(&call, args), CUDA_SUCCESS_);
		driver.run = NULL;
		TS_CHECK_INT(rows - before, count);
	}
}

/* They hold no gate meanwhile. */
TS_TEST(a_call_belongs_to_the_window_in_which_it_began)
{
	wait_while(close_window, 0);
	/* Only the record of the new window. */
	wait_while(open_another, 1);
	TS_CHECK_INT(synchronized, 0);
}

TS_TEST(captures_begin_with_the_lock)
{
	run("cuStreamBeginCapture_v2", A, 0, 0);
	TS_CHECK(driver.was_locked);
}
