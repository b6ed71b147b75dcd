/* SPDX-License-Identifier: Apache-2.0 */
/* The opencl target on a real device: every kind of command, orders, and the results. */
#include "unit/replay/targets/opencl/target_opencl_support.h"

#define COUNT 1024u

static const char source[] =
	"kernel void saxpy(global float *y, global const float *x, float a) {\n"
	"	size_t i = get_global_id(0);\n"
	"	y[i] += a * x[i];\n"
	"}\n"
	"kernel void iota(global uint *to) { to[get_global_id(0)] = get_global_id(0); }\n"
	"kernel void twice(global uint *v) { v[get_global_id(0)] = v[get_global_id(0)] * 2 + 1; }\n"
	"kernel void reverse(global uint *v, local uint *t) {\n"
	"	size_t i = get_local_id(0), n = get_local_size(0), g = get_global_id(0);\n"
	"	t[i] = v[g];\n"
	"	barrier(CLK_LOCAL_MEM_FENCE);\n"
	"	v[g] = t[n - 1 - i];\n"
	"}\n"
	"kernel void slow(global uint *v, uint rounds) {\n"
	"	uint i = get_global_id(0), x = v[i];\n"
	"	for (uint r = 0; r < rounds; r++) x = x * 1664525u + 1013904223u;\n"
	"	v[i] = x;\n"
	"}\n"
	"kernel void null(global uint *v, global uint *other) { v[0] = other ? 1 : 7; }\n";

static const uint32_t *words(const struct fixture *fixture, uint32_t capture)
{
	return fixture->content[capture];
}

static void fill_values(uint32_t *to, uint32_t count, uint32_t first)
{
	for (uint32_t i = 0; i < count; i++)
		to[i] = first + i;
}

/* A launch of a kernel with one buffer. */
static uint32_t launch_on(struct fixture *fixture, uint32_t queue, uint32_t function,
			  uint32_t memory, uint64_t global)
{
	struct ts_replay_arg arg = fixture_memory_arg(fixture, memory);

	return fixture_launch(fixture, queue, function, global, 0, &arg, 1, NULL, 0);
}

TS_TEST(launches_and_copies)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture, source),
		 saxpy = fixture_function(fixture, module, "saxpy");
	float x[COUNT], y[COUNT], a = 3.5f;
	uint32_t mx, my, result, all;
	struct ts_replay_arg args[3];

	for (uint32_t i = 0; i < COUNT; i++) {
		x[i] = (float)i;
		y[i] = 1.0f;
	}
	mx = fixture_memory(fixture, NULL, sizeof(x));
	my = fixture_memory(fixture, y, sizeof(y));
	fixture_write(fixture, fixture->queue, mx, 0, x, sizeof(x));
	args[0] = fixture_memory_arg(fixture, my);
	args[1] = fixture_memory_arg(fixture, mx);
	args[2] = (struct ts_replay_arg){
		.kind = TS_REPLAY_ARG_BYTES, .at = 4, .size = 4, .memory = NONE
	};
	fixture_launch(fixture, fixture->queue, saxpy, COUNT, 64, args, 3, (float[]){ 0, a }, 8);
	result = fixture_read(fixture, fixture->queue, my, 0, sizeof(y));
	fixture->commands[fixture->stream.command_count - 1].blocking = true;
	fixture_command(fixture, TS_COMMAND_SYNC, fixture->queue);
	all = fixture_capture(fixture, fixture->stream.command_count, my, 0, sizeof(y));
	fixture_run_twice(fixture);
	for (uint32_t i = 0; i < COUNT; i++)
		TS_CHECK(((float *)fixture->content[result])[i] == 1.0f + a * (float)i);
	TS_CHECK_MEM(fixture->content[result], fixture->content[all], sizeof(y));
	fixture_end(fixture);
}

TS_TEST(times_are_in_order)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture, source),
		 iota = fixture_function(fixture, module, "iota");
	uint32_t memory = fixture_memory(fixture, NULL, 4 * COUNT);

	launch_on(fixture, fixture->queue, iota, memory, COUNT);
	launch_on(fixture, fixture->queue, iota, memory, COUNT);
	fixture_command(fixture, TS_COMMAND_SYNC, fixture->queue);
	fixture_run_twice(fixture);
	for (uint32_t i = 0; i < 2; i++) {
		const struct ts_replay_times *times = &fixture->times[i];

		TS_CHECK(times->called <= times->returned);
		TS_CHECK(times->queued <= times->submitted && times->submitted <= times->start);
		TS_CHECK(times->start <= times->end);
		/* In the host's clock, as exactly as possible. */
		TS_CHECK(times->queued > times->called - 100000000);
		TS_CHECK(times->queued < times->returned + 100000000);
	}
	TS_CHECK(fixture->times[1].start >= fixture->times[0].end);
	TS_CHECK_INT(fixture->times[2].start, TS_ABSENT);
	TS_CHECK(fixture->times[2].called > 0);
	fixture_end(fixture);
}

TS_TEST(fills_and_copies_of_memory)
{
	struct fixture *fixture = fixture_start("");
	uint32_t a = fixture_memory(fixture, NULL, 4096), b = fixture_memory(fixture, NULL, 4096),
		 copy;
	uint32_t pattern = 0xabcd1234, result;

	fixture_fill(fixture, fixture->queue, a, &pattern, 4, 1024);
	copy = fixture_command(fixture, TS_COMMAND_COPY, fixture->queue);
	fixture->commands[copy].object = b;
	fixture->commands[copy].offset = 256;
	fixture->commands[copy].other = a;
	fixture->commands[copy].other_offset = 512;
	fixture->commands[copy].bytes = 1024;
	result = fixture_read(fixture, fixture->queue, b, 0, 4096);
	fixture_run_twice(fixture);
	for (uint32_t i = 0; i < 1024; i++)
		TS_CHECK_INT(words(fixture, result)[i], i >= 64 && i < 64 + 128 ? pattern : 0);
	fixture_end(fixture);
}

static struct ts_replay_rect_side side(uint64_t x, uint64_t y, uint64_t z, uint64_t row,
				       uint64_t slice)
{
	return (struct ts_replay_rect_side){ { x, y, z }, row, slice };
}

static void set_region(struct ts_replay_command_info *command, uint64_t x, uint64_t y, uint64_t z)
{
	command->is_rect = true;
	command->region[0] = x;
	command->region[1] = y;
	command->region[2] = z;
	command->bytes = x * y * z;
}

/* 8 x 3 x 2 bytes into rows of 16, of slices of 64; to another position; and back. */
TS_TEST(rectangles)
{
	struct fixture *fixture = fixture_start("");
	uint32_t a = fixture_memory(fixture, NULL, 4096), b = fixture_memory(fixture, NULL, 4096);
	uint32_t copy, read, result, all_bytes;
	uint8_t bytes[48];
	const uint8_t *content;

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i + 1);
	copy = fixture_write(fixture, fixture->queue, a, 0, bytes, sizeof(bytes));
	set_region(&fixture->commands[copy], 8, 3, 2);
	fixture->commands[copy].to = side(4, 1, 1, 16, 64);
	copy = fixture_command(fixture, TS_COMMAND_COPY, fixture->queue);
	fixture->commands[copy].object = b;
	fixture->commands[copy].other = a;
	/* Through a sub-buffer: its origin precedes the rectangle. */
	fixture->commands[copy].offset = 1024;
	set_region(&fixture->commands[copy], 8, 3, 2);
	fixture->commands[copy].from = side(4, 1, 1, 16, 64);
	fixture->commands[copy].to = side(0, 0, 0, 8, 32);
	result = fixture_read(fixture, fixture->queue, b, 1024, 48);
	read = fixture->stream.command_count - 1;
	set_region(&fixture->commands[read], 8, 3, 2);
	fixture->commands[read].from = side(0, 0, 0, 8, 32);
	all_bytes = fixture_capture(fixture, read, a, 0, 256);
	fixture_run_twice(fixture);
	TS_CHECK_MEM(fixture->content[result], bytes, sizeof(bytes));
	content = fixture->content[all_bytes];
	TS_CHECK_INT(content[64 + 16 + 3], 0);
	TS_CHECK_INT(content[64 + 16 + 4], 1);
	TS_CHECK_INT(content[64 + 32 + 4], 9);
	TS_CHECK_INT(content[128 + 16 + 4], 25);
	fixture_end(fixture);
}

TS_TEST(views_local_and_null_arguments)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture, source);
	uint32_t reverse = fixture_function(fixture, module, "reverse");
	uint32_t null = fixture_function(fixture, module, "null");
	uint32_t content[COUNT], memory, result;
	struct ts_replay_arg args[2], nulls[2];

	fill_values(content, COUNT, 0);
	memory = fixture_memory(fixture, content, sizeof(content));
	args[0] = fixture_memory_arg(fixture, memory);
	args[0].offset = 1024;
	args[0].bytes = 256;
	args[1] =
		(struct ts_replay_arg){ .kind = TS_REPLAY_ARG_LOCAL, .size = 256, .memory = NONE };
	fixture_launch(fixture, fixture->queue, reverse, 64, 64, args, 2, NULL, 0);
	nulls[0] = fixture_memory_arg(fixture, memory);
	nulls[1] = (struct ts_replay_arg){ .kind = TS_REPLAY_ARG_MEMORY, .memory = NONE };
	fixture_launch(fixture, fixture->queue, null, 1, 1, nulls, 2, NULL, 0);
	result = fixture_read(fixture, fixture->queue, memory, 0, sizeof(content));
	fixture_run_twice(fixture);
	TS_CHECK_INT(words(fixture, result)[0], 7);
	TS_CHECK_INT(words(fixture, result)[255], 255);
	for (uint32_t i = 0; i < 64; i++)
		TS_CHECK_INT(words(fixture, result)[256 + i], 256 + 63 - i);
	TS_CHECK_INT(words(fixture, result)[320], 320);
	fixture_end(fixture);
}

/* Markers, barriers, host writes with and without a queue, kinds that do nothing. */
TS_TEST(what_the_host_does)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture, source),
		 twice = fixture_function(fixture, module, "twice");
	uint32_t memory = fixture_memory(fixture, NULL, 64), first, second, third, write, dump;

	fixture_command(fixture, TS_COMMAND_ALLOC, NONE);
	fixture->commands[0].object = memory;
	fixture_command(fixture, TS_COMMAND_LOAD, NONE);
	write = fixture_write(fixture, fixture->queue, memory, 0, &(uint32_t){ 5 }, 4);
	fixture->commands[write].kind = TS_COMMAND_HOST_WRITE;
	launch_on(fixture, fixture->queue, twice, memory, 1);
	first = fixture_read(fixture, fixture->queue, memory, 0, 4);
	fixture_command(fixture, TS_COMMAND_RECORD, fixture->queue);
	fixture_command(fixture, TS_COMMAND_WAIT, fixture->queue);
	/* No queue: all users of the memory have finished by then. */
	write = fixture_write(fixture, NONE, memory, 0, &(uint32_t){ 100 }, 4);
	fixture->commands[write].kind = TS_COMMAND_HOST_WRITE;
	second = fixture_capture(fixture, write, memory, 0, 4);
	launch_on(fixture, fixture->queue, twice, memory, 1);
	third = fixture_read(fixture, fixture->queue, memory, 0, 4);
	fixture_command(fixture, TS_COMMAND_SYNC, fixture->queue);
	dump = fixture_capture(fixture, fixture->stream.command_count - 1, memory, 0, 64);
	fixture_run_twice(fixture);
	TS_CHECK_INT(words(fixture, first)[0], 11);
	TS_CHECK_INT(words(fixture, second)[0], 100);
	TS_CHECK_INT(words(fixture, third)[0], 201);
	TS_CHECK_INT(words(fixture, dump)[0], 201);
	fixture_end(fixture);
}

/* Each command waits for the previous one by its event; content is copied out after each. */
TS_TEST(out_of_order_with_events)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture, source),
		 twice = fixture_function(fixture, module, "twice");
	uint32_t queue = fixture_queue(fixture, fixture->device, TS_REPLAY_OUT_OF_ORDER);
	uint32_t memory = fixture_memory(fixture, NULL, 4 * COUNT), last = NONE, captures[8],
		 expected = 0;

	for (uint32_t i = 0; i < 8; i++) {
		uint32_t command = launch_on(fixture, queue, twice, memory, COUNT);

		if (last != NONE)
			fixture_waits(fixture, command, last, NONE);
		captures[i] = fixture_capture(fixture, command, memory, 0, 4 * COUNT);
		last = command;
	}
	fixture_command(fixture, TS_COMMAND_WAIT, queue);
	fixture_read(fixture, queue, memory, 0, 4);
	fixture_run_twice(fixture);
	for (uint32_t i = 0; i < 8; i++) {
		expected = expected * 2 + 1;
		TS_CHECK_INT(words(fixture, captures[i])[0], expected);
		TS_CHECK_INT(words(fixture, captures[i])[COUNT - 1], expected);
	}
	fixture_end(fixture);
}

/*
 * Two queues that pass memory back and forth; what is copied out after a command must not see the
 * next.
 */
static void two_queues(const char *second_device)
{
	struct fixture *fixture = fixture_start("");
	uint32_t other = fixture->device, queues[2], slow, module, memory, captures[6], last = NONE;
	struct ts_replay_arg args[2];
	uint32_t rounds = 20000, value = 0;

	if (second_device) {
		other = fixture_device(fixture, second_device);
		fixture->context = fixture_context(fixture);
	}
	module = fixture_module(fixture, source);
	slow = fixture_function(fixture, module, "slow");
	queues[0] = fixture_queue(fixture, fixture->device, 0);
	queues[1] = fixture_queue(fixture, other, 0);
	memory = fixture_memory(fixture, NULL, 4 * COUNT);
	args[0] = fixture_memory_arg(fixture, memory);
	args[1] = (struct ts_replay_arg){ .kind = TS_REPLAY_ARG_BYTES, .size = 4, .memory = NONE };
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t command =
			fixture_launch(fixture, queues[i % 2], slow, COUNT, 0, args, 2, &rounds, 4);

		if (last != NONE)
			fixture_waits(fixture, command, last, NONE);
		captures[i] = fixture_capture(fixture, command, memory, 0, 4 * COUNT);
		last = command;
	}
	fixture_run_twice(fixture);
	for (uint32_t i = 0; i < 6; i++) {
		for (uint32_t r = 0; r < rounds; r++)
			value = value * 1664525u + 1013904223u;
		TS_CHECK_INT(words(fixture, captures[i])[0], value);
	}
	fixture_end(fixture);
}

TS_TEST(two_queues_one_device)
{
	two_queues(NULL);
}

TS_TEST(two_queues_two_devices)
{
	setenv("POCL_DEVICES", "pthread pthread", 1);
	two_queues("");
}

/* The second of two recorded devices is missing. */
TS_TEST(two_recorded_devices_on_one)
{
	setenv("POCL_DEVICES", "pthread", 1);
	two_queues("");
}

/*
 * A command is submitted before the event that it waits for is set; a sync of another thread in
 * between must not hang.
 */
TS_TEST(user_events)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture, source),
		 twice = fixture_function(fixture, module, "twice");
	uint32_t other = fixture_queue(fixture, fixture->device, 0),
		 event = fixture_user_event(fixture);
	uint32_t memory = fixture_memory(fixture, NULL, 64),
		 second = fixture_memory(fixture, NULL, 64);
	uint32_t gated, result, behind, across;

	launch_on(fixture, fixture->queue, twice, memory, 1);
	gated = launch_on(fixture, fixture->queue, twice, memory, 1);
	fixture_user_wait(fixture, gated, event);
	behind = fixture_capture(fixture, gated, memory, 0, 4);
	fixture_command(fixture, TS_COMMAND_SYNC, fixture->queue);
	launch_on(fixture, other, twice, second, 1);
	across = launch_on(fixture, other, twice, second, 1);
	fixture_waits(fixture, across, gated, NONE);
	fixture_command(fixture, TS_COMMAND_SYNC, NONE);
	fixture_waits(fixture, fixture->stream.command_count - 1, across, gated);
	fixture_set(fixture, event);
	fixture_command(fixture, TS_COMMAND_SYNC, other);
	result = fixture_read(fixture, other, second, 0, 4);
	fixture_run_twice(fixture);
	TS_CHECK_INT(words(fixture, behind)[0], 3);
	TS_CHECK_INT(words(fixture, result)[0], 3);
	fixture_end(fixture);
}

/* A part of a stream: markers, or the previous command, replace omitted commands. */
TS_TEST(parts)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture, source),
		 twice = fixture_function(fixture, module, "twice");
	uint32_t other = fixture_queue(fixture, fixture->device, 0);
	uint32_t memory = fixture_memory(fixture, NULL, 64), first, marked, gone, last, result;

	first = launch_on(fixture, fixture->queue, twice, memory, 1);
	marked = launch_on(fixture, other, twice, memory, 1);
	fixture_waits(fixture, marked, first, NONE);
	gone = launch_on(fixture, other, twice, memory, 1);
	last = launch_on(fixture, fixture->queue, twice, memory, 1);
	fixture_waits(fixture, last, gone, NONE);
	result = fixture_read(fixture, fixture->queue, memory, 0, 4);
	fixture->kept[marked] = TS_REPLAY_ORDER;
	fixture->kept[gone] = 0;
	fixture->instead[gone] = marked;
	memmove(&fixture->order[gone], &fixture->order[gone + 1],
		(fixture->stream.command_count - gone - 1) * sizeof(*fixture->order));
	fixture->captures[result].position--;
	fixture->replay.plan.instead = fixture->instead;
	fixture->stream.command_count--;
	fixture_run_twice(fixture);
	TS_CHECK_INT(words(fixture, result)[0], 3);
	fixture_end(fixture);
}

TS_TEST(shared_virtual_memory)
{
	struct fixture *fixture = fixture_start("");
	uint32_t module = fixture_module(fixture, source),
		 iota = fixture_function(fixture, module, "iota");
	uint32_t a = fixture_memory(fixture, NULL, 4 * COUNT),
		 b = fixture_memory(fixture, NULL, 4 * COUNT);
	uint32_t copy, result, fill, rest;
	struct ts_replay_arg arg = fixture_memory_arg(fixture, a);

	fixture->objects[a].flags = fixture->objects[b].flags = TS_REPLAY_HAS_SVM;
	arg.kind = TS_REPLAY_ARG_SVM;
	arg.offset = 64;
	fixture_launch(fixture, fixture->queue, iota, COUNT / 2, 0, &arg, 1, NULL, 0);
	copy = fixture_command(fixture, TS_COMMAND_COPY, fixture->queue);
	fixture->commands[copy].object = b;
	fixture->commands[copy].other = a;
	fixture->commands[copy].bytes = 4 * COUNT;
	fill = fixture_fill(fixture, fixture->queue, b, &(uint32_t){ 9 }, 4, 16);
	fixture->commands[fill].offset = 16;
	fixture_write(fixture, fixture->queue, b, 32, &(uint32_t){ 77 }, 4);
	result = fixture_read(fixture, fixture->queue, b, 0, 4 * COUNT);
	rest = fixture_capture(fixture, fixture->stream.command_count, a, 0, 128);
	fixture_run_twice(fixture);
	TS_CHECK_INT(words(fixture, result)[3], 0);
	TS_CHECK_INT(words(fixture, result)[4], 9);
	TS_CHECK_INT(words(fixture, result)[8], 77);
	TS_CHECK_INT(words(fixture, result)[16 + 100], 100);
	TS_CHECK_INT(words(fixture, rest)[16 + 10], 10);
	fixture_end(fixture);
}

/* More results than staging holds: the oldest are delivered on the way. */
TS_TEST(more_than_staging_holds)
{
	struct fixture *fixture = fixture_start("");
	uint64_t bytes = (uint64_t)48 << 20;
	uint32_t memory = fixture_memory(fixture, NULL, bytes), captures[8];

	for (uint32_t i = 0; i < 8; i++) {
		uint32_t fill = fixture_fill(fixture, fixture->queue, memory, &(uint32_t){ i + 1 },
					     4, bytes);

		captures[i] = fixture_capture(fixture, fill, memory, 0, bytes);
	}
	fixture_run_twice(fixture);
	for (uint32_t i = 0; i < 8; i++) {
		TS_CHECK_INT(words(fixture, captures[i])[0], i + 1);
		TS_CHECK_INT(words(fixture, captures[i])[bytes / 4 - 1], i + 1);
	}
	fixture_end(fixture);
}

/* The same while nothing can be delivered: the first waits for an event that is set last. */
TS_TEST(staging_behind_a_gate)
{
	struct fixture *fixture = fixture_start("");
	uint64_t bytes = (uint64_t)48 << 20;
	uint32_t memory = fixture_memory(fixture, NULL, bytes), captures[7];
	uint32_t event = fixture_user_event(fixture);

	for (uint32_t i = 0; i < 7; i++) {
		uint32_t fill = fixture_fill(fixture, fixture->queue, memory, &(uint32_t){ i + 1 },
					     4, bytes);

		if (i == 0)
			fixture_user_wait(fixture, fill, event);
		captures[i] = fixture_capture(fixture, fill, memory, 0, bytes);
	}
	fixture_set(fixture, event);
	fixture_run_twice(fixture);
	for (uint32_t i = 0; i < 7; i++)
		TS_CHECK_INT(words(fixture, captures[i])[bytes / 4 - 1], i + 1);
	fixture_end(fixture);
}

TS_TEST(pace_of_the_recording)
{
	struct fixture *fixture = fixture_start("");
	uint32_t memory = fixture_memory(fixture, NULL, 64);

	for (uint32_t i = 0; i < 3; i++) {
		uint32_t fill =
			fixture_fill(fixture, fixture->queue, memory, &(uint32_t){ i }, 4, 64);

		fixture->commands[fill].start_ns = 1000 + i * 20000000;
	}
	fixture->replay.options.pace = TS_REPLAY_ORIGINAL;
	fixture_run_twice(fixture);
	TS_CHECK(fixture->times[2].called - fixture->times[0].called >= 39000000);
	TS_CHECK(fixture->times[1].called - fixture->times[0].called >= 19000000);
	fixture_end(fixture);
}

/* Content that was not requested still needs space. */
TS_TEST(reads_that_nobody_compares)
{
	struct fixture *fixture = fixture_start("");
	uint32_t memory = fixture_memory(fixture, NULL, 4096);

	fixture_fill(fixture, fixture->queue, memory, &(uint32_t){ 1 }, 4, 4096);
	fixture_read(fixture, fixture->queue, memory, 0, 4096);
	fixture->replay.capture_count = 0;
	fixture_run_twice(fixture);
	TS_CHECK(fixture->times[1].end >= fixture->times[1].start);
	fixture_end(fixture);
}
