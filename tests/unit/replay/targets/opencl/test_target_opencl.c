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

static const uint32_t *words(const struct made *made, uint32_t capture)
{
	return made->content[capture];
}

static void fill_words(uint32_t *to, uint32_t count, uint32_t first)
{
	for (uint32_t i = 0; i < count; i++)
		to[i] = first + i;
}

/* A launch of a kernel with one buffer. */
static uint32_t launch_on(struct made *made, uint32_t queue, uint32_t function, uint32_t memory,
			  uint64_t global)
{
	struct ts_replay_arg arg = made_memory_arg(made, memory);

	return made_launch(made, queue, function, global, 0, &arg, 1, NULL, 0);
}

TS_TEST(launches_and_copies)
{
	struct made *made = made_start("");
	uint32_t module = made_module(made, source), saxpy = made_function(made, module, "saxpy");
	float x[COUNT], y[COUNT], a = 3.5f;
	uint32_t mx, my, result, all;
	struct ts_replay_arg args[3];

	for (uint32_t i = 0; i < COUNT; i++) {
		x[i] = (float)i;
		y[i] = 1.0f;
	}
	mx = made_memory(made, NULL, sizeof(x));
	my = made_memory(made, y, sizeof(y));
	made_write(made, made->queue, mx, 0, x, sizeof(x));
	args[0] = made_memory_arg(made, my);
	args[1] = made_memory_arg(made, mx);
	args[2] = (struct ts_replay_arg){
		.kind = TS_REPLAY_ARG_BYTES, .at = 4, .size = 4, .memory = NONE
	};
	made_launch(made, made->queue, saxpy, COUNT, 64, args, 3, (float[]){ 0, a }, 8);
	result = made_read(made, made->queue, my, 0, sizeof(y));
	made->commands[made->stream.command_count - 1].blocking = true;
	made_command(made, TS_COMMAND_SYNC, made->queue);
	all = made_capture(made, made->stream.command_count, my, 0, sizeof(y));
	made_run_twice(made);
	for (uint32_t i = 0; i < COUNT; i++)
		TS_CHECK(((float *)made->content[result])[i] == 1.0f + a * (float)i);
	TS_CHECK_MEM(made->content[result], made->content[all], sizeof(y));
	made_end(made);
}

TS_TEST(times_are_in_order)
{
	struct made *made = made_start("");
	uint32_t module = made_module(made, source), iota = made_function(made, module, "iota");
	uint32_t memory = made_memory(made, NULL, 4 * COUNT);

	launch_on(made, made->queue, iota, memory, COUNT);
	launch_on(made, made->queue, iota, memory, COUNT);
	made_command(made, TS_COMMAND_SYNC, made->queue);
	made_run_twice(made);
	for (uint32_t i = 0; i < 2; i++) {
		const struct ts_replay_times *times = &made->times[i];

		TS_CHECK(times->called <= times->returned);
		TS_CHECK(times->queued <= times->submitted && times->submitted <= times->start);
		TS_CHECK(times->start <= times->end);
		/* In the host's clock, as exactly as possible. */
		TS_CHECK(times->queued > times->called - 100000000);
		TS_CHECK(times->queued < times->returned + 100000000);
	}
	TS_CHECK(made->times[1].start >= made->times[0].end);
	TS_CHECK_INT(made->times[2].start, TS_ABSENT);
	TS_CHECK(made->times[2].called > 0);
	made_end(made);
}

TS_TEST(fills_and_copies_of_memory)
{
	struct made *made = made_start("");
	uint32_t a = made_memory(made, NULL, 4096), b = made_memory(made, NULL, 4096), copy;
	uint32_t pattern = 0xabcd1234, result;

	made_fill(made, made->queue, a, &pattern, 4, 1024);
	copy = made_command(made, TS_COMMAND_COPY, made->queue);
	made->commands[copy].object = b;
	made->commands[copy].offset = 256;
	made->commands[copy].other = a;
	made->commands[copy].other_offset = 512;
	made->commands[copy].bytes = 1024;
	result = made_read(made, made->queue, b, 0, 4096);
	made_run_twice(made);
	for (uint32_t i = 0; i < 1024; i++)
		TS_CHECK_INT(words(made, result)[i], i >= 64 && i < 64 + 128 ? pattern : 0);
	made_end(made);
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
	struct made *made = made_start("");
	uint32_t a = made_memory(made, NULL, 4096), b = made_memory(made, NULL, 4096);
	uint32_t copy, read, result, whole;
	uint8_t bytes[48];
	const uint8_t *content;

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i + 1);
	copy = made_write(made, made->queue, a, 0, bytes, sizeof(bytes));
	set_region(&made->commands[copy], 8, 3, 2);
	made->commands[copy].to = side(4, 1, 1, 16, 64);
	copy = made_command(made, TS_COMMAND_COPY, made->queue);
	made->commands[copy].object = b;
	made->commands[copy].other = a;
	/* Through a sub-buffer: its origin precedes the rectangle. */
	made->commands[copy].offset = 1024;
	set_region(&made->commands[copy], 8, 3, 2);
	made->commands[copy].from = side(4, 1, 1, 16, 64);
	made->commands[copy].to = side(0, 0, 0, 8, 32);
	result = made_read(made, made->queue, b, 1024, 48);
	read = made->stream.command_count - 1;
	set_region(&made->commands[read], 8, 3, 2);
	made->commands[read].from = side(0, 0, 0, 8, 32);
	whole = made_capture(made, read, a, 0, 256);
	made_run_twice(made);
	TS_CHECK_MEM(made->content[result], bytes, sizeof(bytes));
	content = made->content[whole];
	TS_CHECK_INT(content[64 + 16 + 3], 0);
	TS_CHECK_INT(content[64 + 16 + 4], 1);
	TS_CHECK_INT(content[64 + 32 + 4], 9);
	TS_CHECK_INT(content[128 + 16 + 4], 25);
	made_end(made);
}

TS_TEST(views_local_and_null_arguments)
{
	struct made *made = made_start("");
	uint32_t module = made_module(made, source);
	uint32_t reverse = made_function(made, module, "reverse");
	uint32_t null = made_function(made, module, "null");
	uint32_t content[COUNT], memory, result;
	struct ts_replay_arg args[2], nulls[2];

	fill_words(content, COUNT, 0);
	memory = made_memory(made, content, sizeof(content));
	args[0] = made_memory_arg(made, memory);
	args[0].offset = 1024;
	args[0].bytes = 256;
	args[1] =
		(struct ts_replay_arg){ .kind = TS_REPLAY_ARG_LOCAL, .size = 256, .memory = NONE };
	made_launch(made, made->queue, reverse, 64, 64, args, 2, NULL, 0);
	nulls[0] = made_memory_arg(made, memory);
	nulls[1] = (struct ts_replay_arg){ .kind = TS_REPLAY_ARG_MEMORY, .memory = NONE };
	made_launch(made, made->queue, null, 1, 1, nulls, 2, NULL, 0);
	result = made_read(made, made->queue, memory, 0, sizeof(content));
	made_run_twice(made);
	TS_CHECK_INT(words(made, result)[0], 7);
	TS_CHECK_INT(words(made, result)[255], 255);
	for (uint32_t i = 0; i < 64; i++)
		TS_CHECK_INT(words(made, result)[256 + i], 256 + 63 - i);
	TS_CHECK_INT(words(made, result)[320], 320);
	made_end(made);
}

/* Markers, barriers, host writes with and without a queue, kinds that do nothing. */
TS_TEST(what_the_host_does)
{
	struct made *made = made_start("");
	uint32_t module = made_module(made, source), twice = made_function(made, module, "twice");
	uint32_t memory = made_memory(made, NULL, 64), first, second, third, write, dump;

	made_command(made, TS_COMMAND_ALLOC, NONE);
	made->commands[0].object = memory;
	made_command(made, TS_COMMAND_LOAD, NONE);
	write = made_write(made, made->queue, memory, 0, &(uint32_t){ 5 }, 4);
	made->commands[write].kind = TS_COMMAND_HOST_WRITE;
	launch_on(made, made->queue, twice, memory, 1);
	first = made_read(made, made->queue, memory, 0, 4);
	made_command(made, TS_COMMAND_RECORD, made->queue);
	made_command(made, TS_COMMAND_WAIT, made->queue);
	/* No queue: all users of the memory have finished by then. */
	write = made_write(made, NONE, memory, 0, &(uint32_t){ 100 }, 4);
	made->commands[write].kind = TS_COMMAND_HOST_WRITE;
	second = made_capture(made, write, memory, 0, 4);
	launch_on(made, made->queue, twice, memory, 1);
	third = made_read(made, made->queue, memory, 0, 4);
	made_command(made, TS_COMMAND_SYNC, made->queue);
	dump = made_capture(made, made->stream.command_count - 1, memory, 0, 64);
	made_run_twice(made);
	TS_CHECK_INT(words(made, first)[0], 11);
	TS_CHECK_INT(words(made, second)[0], 100);
	TS_CHECK_INT(words(made, third)[0], 201);
	TS_CHECK_INT(words(made, dump)[0], 201);
	made_end(made);
}

/* Each command waits for the previous one by its event; content is copied out after each. */
TS_TEST(out_of_order_with_events)
{
	struct made *made = made_start("");
	uint32_t module = made_module(made, source), twice = made_function(made, module, "twice");
	uint32_t queue = made_queue(made, made->device, TS_REPLAY_OUT_OF_ORDER);
	uint32_t memory = made_memory(made, NULL, 4 * COUNT), last = NONE, captures[8],
		 expected = 0;

	for (uint32_t i = 0; i < 8; i++) {
		uint32_t command = launch_on(made, queue, twice, memory, COUNT);

		if (last != NONE)
			made_waits(made, command, last, NONE);
		captures[i] = made_capture(made, command, memory, 0, 4 * COUNT);
		last = command;
	}
	made_command(made, TS_COMMAND_WAIT, queue);
	made_read(made, queue, memory, 0, 4);
	made_run_twice(made);
	for (uint32_t i = 0; i < 8; i++) {
		expected = expected * 2 + 1;
		TS_CHECK_INT(words(made, captures[i])[0], expected);
		TS_CHECK_INT(words(made, captures[i])[COUNT - 1], expected);
	}
	made_end(made);
}

/*
 * Two queues that pass memory back and forth; what is copied out after a command must not see the
 * next.
 */
static void two_queues(const char *second_device)
{
	struct made *made = made_start("");
	uint32_t other = made->device, queues[2], slow, module, memory, captures[6], last = NONE;
	struct ts_replay_arg args[2];
	uint32_t rounds = 20000, value = 0;

	if (second_device) {
		other = made_device(made, second_device);
		made->context = made_context(made);
	}
	module = made_module(made, source);
	slow = made_function(made, module, "slow");
	queues[0] = made_queue(made, made->device, 0);
	queues[1] = made_queue(made, other, 0);
	memory = made_memory(made, NULL, 4 * COUNT);
	args[0] = made_memory_arg(made, memory);
	args[1] = (struct ts_replay_arg){ .kind = TS_REPLAY_ARG_BYTES, .size = 4, .memory = NONE };
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t command =
			made_launch(made, queues[i % 2], slow, COUNT, 0, args, 2, &rounds, 4);

		if (last != NONE)
			made_waits(made, command, last, NONE);
		captures[i] = made_capture(made, command, memory, 0, 4 * COUNT);
		last = command;
	}
	made_run_twice(made);
	for (uint32_t i = 0; i < 6; i++) {
		for (uint32_t r = 0; r < rounds; r++)
			value = value * 1664525u + 1013904223u;
		TS_CHECK_INT(words(made, captures[i])[0], value);
	}
	made_end(made);
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
	struct made *made = made_start("");
	uint32_t module = made_module(made, source), twice = made_function(made, module, "twice");
	uint32_t other = made_queue(made, made->device, 0), event = made_user_event(made);
	uint32_t memory = made_memory(made, NULL, 64), second = made_memory(made, NULL, 64);
	uint32_t gated, result, behind, across;

	launch_on(made, made->queue, twice, memory, 1);
	gated = launch_on(made, made->queue, twice, memory, 1);
	made_user_wait(made, gated, event);
	behind = made_capture(made, gated, memory, 0, 4);
	made_command(made, TS_COMMAND_SYNC, made->queue);
	launch_on(made, other, twice, second, 1);
	across = launch_on(made, other, twice, second, 1);
	made_waits(made, across, gated, NONE);
	made_command(made, TS_COMMAND_SYNC, NONE);
	made_waits(made, made->stream.command_count - 1, across, gated);
	made_set(made, event);
	made_command(made, TS_COMMAND_SYNC, other);
	result = made_read(made, other, second, 0, 4);
	made_run_twice(made);
	TS_CHECK_INT(words(made, behind)[0], 3);
	TS_CHECK_INT(words(made, result)[0], 3);
	made_end(made);
}

/* A part of a stream: markers, or the previous command, replace omitted commands. */
TS_TEST(parts)
{
	struct made *made = made_start("");
	uint32_t module = made_module(made, source), twice = made_function(made, module, "twice");
	uint32_t other = made_queue(made, made->device, 0);
	uint32_t memory = made_memory(made, NULL, 64), first, marked, gone, last, result;

	first = launch_on(made, made->queue, twice, memory, 1);
	marked = launch_on(made, other, twice, memory, 1);
	made_waits(made, marked, first, NONE);
	gone = launch_on(made, other, twice, memory, 1);
	last = launch_on(made, made->queue, twice, memory, 1);
	made_waits(made, last, gone, NONE);
	result = made_read(made, made->queue, memory, 0, 4);
	made->kept[marked] = TS_REPLAY_ORDER;
	made->kept[gone] = 0;
	made->instead[gone] = marked;
	memmove(&made->order[gone], &made->order[gone + 1],
		(made->stream.command_count - gone - 1) * sizeof(*made->order));
	made->captures[result].position--;
	made->replay.plan.instead = made->instead;
	made->stream.command_count--;
	made_run_twice(made);
	TS_CHECK_INT(words(made, result)[0], 3);
	made_end(made);
}

TS_TEST(shared_virtual_memory)
{
	struct made *made = made_start("");
	uint32_t module = made_module(made, source), iota = made_function(made, module, "iota");
	uint32_t a = made_memory(made, NULL, 4 * COUNT), b = made_memory(made, NULL, 4 * COUNT);
	uint32_t copy, result, fill, rest;
	struct ts_replay_arg arg = made_memory_arg(made, a);

	made->objects[a].flags = made->objects[b].flags = TS_REPLAY_HAS_SVM;
	arg.kind = TS_REPLAY_ARG_SVM;
	arg.offset = 64;
	made_launch(made, made->queue, iota, COUNT / 2, 0, &arg, 1, NULL, 0);
	copy = made_command(made, TS_COMMAND_COPY, made->queue);
	made->commands[copy].object = b;
	made->commands[copy].other = a;
	made->commands[copy].bytes = 4 * COUNT;
	fill = made_fill(made, made->queue, b, &(uint32_t){ 9 }, 4, 16);
	made->commands[fill].offset = 16;
	made_write(made, made->queue, b, 32, &(uint32_t){ 77 }, 4);
	result = made_read(made, made->queue, b, 0, 4 * COUNT);
	rest = made_capture(made, made->stream.command_count, a, 0, 128);
	made_run_twice(made);
	TS_CHECK_INT(words(made, result)[3], 0);
	TS_CHECK_INT(words(made, result)[4], 9);
	TS_CHECK_INT(words(made, result)[8], 77);
	TS_CHECK_INT(words(made, result)[16 + 100], 100);
	TS_CHECK_INT(words(made, rest)[16 + 10], 10);
	made_end(made);
}

/* More results than staging holds: the oldest are delivered on the way. */
TS_TEST(more_than_staging_holds)
{
	struct made *made = made_start("");
	uint64_t bytes = (uint64_t)48 << 20;
	uint32_t memory = made_memory(made, NULL, bytes), captures[8];

	for (uint32_t i = 0; i < 8; i++) {
		uint32_t fill =
			made_fill(made, made->queue, memory, &(uint32_t){ i + 1 }, 4, bytes);

		captures[i] = made_capture(made, fill, memory, 0, bytes);
	}
	made_run_twice(made);
	for (uint32_t i = 0; i < 8; i++) {
		TS_CHECK_INT(words(made, captures[i])[0], i + 1);
		TS_CHECK_INT(words(made, captures[i])[bytes / 4 - 1], i + 1);
	}
	made_end(made);
}

/* The same while nothing can be delivered: the first waits for an event that is set last. */
TS_TEST(staging_behind_a_gate)
{
	struct made *made = made_start("");
	uint64_t bytes = (uint64_t)48 << 20;
	uint32_t memory = made_memory(made, NULL, bytes), captures[7];
	uint32_t event = made_user_event(made);

	for (uint32_t i = 0; i < 7; i++) {
		uint32_t fill =
			made_fill(made, made->queue, memory, &(uint32_t){ i + 1 }, 4, bytes);

		if (i == 0)
			made_user_wait(made, fill, event);
		captures[i] = made_capture(made, fill, memory, 0, bytes);
	}
	made_set(made, event);
	made_run_twice(made);
	for (uint32_t i = 0; i < 7; i++)
		TS_CHECK_INT(words(made, captures[i])[bytes / 4 - 1], i + 1);
	made_end(made);
}

TS_TEST(pace_of_the_recording)
{
	struct made *made = made_start("");
	uint32_t memory = made_memory(made, NULL, 64);

	for (uint32_t i = 0; i < 3; i++) {
		uint32_t fill = made_fill(made, made->queue, memory, &(uint32_t){ i }, 4, 64);

		made->commands[fill].start_ns = 1000 + i * 20000000;
	}
	made->replay.options.pace = TS_REPLAY_ORIGINAL;
	made_run_twice(made);
	TS_CHECK(made->times[2].called - made->times[0].called >= 39000000);
	TS_CHECK(made->times[1].called - made->times[0].called >= 19000000);
	made_end(made);
}

/* Content that was not requested still needs space. */
TS_TEST(reads_that_nobody_compares)
{
	struct made *made = made_start("");
	uint32_t memory = made_memory(made, NULL, 4096);

	made_fill(made, made->queue, memory, &(uint32_t){ 1 }, 4, 4096);
	made_read(made, made->queue, memory, 0, 4096);
	made->replay.capture_count = 0;
	made_run_twice(made);
	TS_CHECK(made->times[1].end >= made->times[1].start);
	made_end(made);
}
