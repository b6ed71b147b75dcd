/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies to pinned memory that may be pending, on streams that are busy or idle as the test says.
 * The sources run inside programs, so they are included here.
 */
#include "unit/runner.h"

#include <stdarg.h>

#include "backends/cuda/stream/cuda_host_changes.c" /* NOLINT(bugprone-suspicious-include) */
#include "backends/cuda/stream/cuda_host_memory.c"  /* NOLINT(bugprone-suspicious-include) */
#include "base/local/stream_text.c"                 /* NOLINT(bugprone-suspicious-include) */

/* ---- the rest of the capture ---- */

static bool is_capturing;
static unsigned int queries, finished;
static struct capture_stream streams[3];
static bool is_idle[3];

bool capture_stream_is_idle(const struct capture_stream *stream)
{
	queries++;
	return is_idle[stream - streams];
}

void capture_stream_finish(const struct capture_stream *stream)
{
	finished++;
}

bool capture_any_capturing(void)
{
	return is_capturing;
}

bool capture_contexts_finish(int64_t deadline_ns, char *why, size_t bytes)
{
	return true;
}

bool capture_is_open(void)
{
	return true;
}

void capture_lock(void)
{
}

void capture_unlock(void)
{
}

void capture_fail(const char *format, ...)
{
	TS_CHECK(!format);
}

struct capture_context *capture_context_current(void)
{
	return NULL;
}

uint64_t capture_device_number(struct capture_device *device)
{
	return 1;
}

void capture_object(const struct ts_replay_object *object)
{
}

uint64_t capture_command(const struct ts_replay_command *row)
{
	return 1;
}

static unsigned int address_changes;

void capture_addresses_changed(void)
{
	address_changes++;
}

uint64_t capture_blob(const void *data, uint64_t bytes)
{
	return 1;
}

int cuda_invoke(struct cuda_call *call, const uintptr_t *args)
{
	return 0;
}

uint64_t ts_replay_new_object(void)
{
	return 1;
}

int64_t ts_replay_clock_ns(void)
{
	return 0;
}

uint64_t ts_replay_hash(const void *data, size_t bytes)
{
	return bytes;
}

struct cuda_driver_functions cu;

/* ---- tests ---- */

/* A program that always has more work submitted when it looks whether a copy is done. */
TS_TEST(copies_to_the_same_places_are_few)
{
	host_window_opens();
	for (uint64_t i = 0; i < 1000; i++)
		for (uint64_t place = 0; place < 6; place++)
			host_copy_pending(place * 4096, 100, &streams[place % 2]);
	TS_CHECK(host_registry.pending_count <= 64);
	drop_repeated();
	TS_CHECK_INT(host_registry.pending_count, 6);
	host_copy_pending(0, 100, &streams[2]);
	host_copy_pending(0, 101, &streams[0]);
	drop_repeated();
	TS_CHECK_INT(host_registry.pending_count, 8);
	/* Each stream is asked once. */
	host_synchronized();
	TS_CHECK_INT(queries, 3);
	TS_CHECK_INT(host_registry.pending_count, 8);
	is_idle[0] = true;
	host_synchronized();
	TS_CHECK_INT(queries, 6);
	TS_CHECK_INT(host_registry.pending_count, 4);
	is_idle[1] = is_idle[2] = true;
	host_synchronized();
	TS_CHECK_INT(host_registry.pending_count, 0);
}

TS_TEST(copies_are_waited_for_by_stream)
{
	host_window_opens();
	finished = 0;
	host_copy_pending(4096, 4096, &streams[0]);
	host_copy_pending(8192, 4096, &streams[0]);
	host_copy_pending(8192, 4096, &streams[1]);
	host_wait_for_copies(12288, 100);
	TS_CHECK_INT(finished, 0);
	host_wait_for_copies(5000, 100);
	TS_CHECK_INT(finished, 1);
	TS_CHECK_INT(host_registry.pending_count, 1);
	host_wait_for_copies(8192 + 4095, 1);
	TS_CHECK_INT(finished, 2);
	TS_CHECK_INT(host_registry.pending_count, 0);
}

TS_TEST(what_parameters_point_to_changes_with_the_ranges)
{
	struct cuda_call call = { .name = "cuMemHostRegister" };
	struct host_entry range = { .address = 4096, .bytes = 4096, .is_registered = true };

	TS_CHECK(add_range(&call, &range));
	TS_CHECK_INT(address_changes, 1);
	host_make_visible(4096);
	TS_CHECK(remove_range(&call, 4096, true, &range));
	TS_CHECK_INT(address_changes, 2);
	TS_CHECK(!host_is_visible(4096));
}
