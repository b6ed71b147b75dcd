/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading command streams: accepted and rejected input with its messages, windows, user events,
 * views.
 */
#include <unistd.h>

#include "base/memory.h"
#include "replay/plan/plan.h"
#include "replay/stream/stream_internal.h"
#include "unit/replay/replay_fixture.h"
#include "unit/runner.h"

static char path[64];
static struct fixture_trace fixture;
static struct ts_reader *reader;

static void begin(void)
{
	snprintf(path, sizeof(path), "/tmp/tracesmith-stream-%d.sbt", getpid());
	fixture_open(&fixture, path);
	fixture_objects(&fixture);
	fixture_memory(&fixture, 10, NULL, 256);
	fixture_memory(&fixture, 11, NULL, 256);
}

static int load_window(struct ts_replay_stream **ret_stream, uint32_t window, struct ts_error *err)
{
	TS_CHECK_INT(ts_reader_open(&reader, path, err), 0);
	return ts_replay_stream_load(ret_stream, reader, 0, window, err);
}

static struct ts_replay_stream *load(void)
{
	struct ts_replay_stream *stream;
	struct ts_error err;

	fixture_close(&fixture);
	if (load_window(&stream, 0, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return stream;
}

static void done(struct ts_replay_stream *stream)
{
	ts_replay_stream_free(stream);
	ts_reader_close(reader);
	unlink(path);
}

static void refuse(int code, const char *message)
{
	struct ts_replay_stream *stream;
	struct ts_error err;

	fixture_close(&fixture);
	TS_CHECK_INT(load_window(&stream, 0, &err), code);
	TS_CHECK_STR(err.message, message);
	ts_reader_close(reader);
	unlink(path);
}

/* ---- rejected input ---- */

/* One command after a begin, and the message about it. */
struct bad {
	struct fixture_command command;
	const char *message;
};

#define LAUNCH(details_)                                                                   \
	{                                                                                  \
		.kind = TS_COMMAND_LAUNCH, .queue = FIXTURE_QUEUE, .object = FIXTURE_STEP, \
		.details = (details_)                                                      \
	}
#define ARGUMENT(text) "{\"global\":[1],\"args\":[" text "]}"

static const struct bad bad_commands[] = {
	{ { .kind = TS_COMMAND_COPY, .object = 10, .bytes = 8 },
	  "command 2, copy to memory 10: its queue is missing" },
	{ { .kind = TS_COMMAND_COPY, .queue = 10, .object = 10, .bytes = 8 },
	  "command 2, copy to memory 10: its queue is object 10, a memory" },
	{ { .kind = TS_COMMAND_COPY, .queue = FIXTURE_QUEUE, .bytes = 8 },
	  "command 2, copy: it has neither source nor destination" },
	{ { .kind = TS_COMMAND_COPY, .queue = FIXTURE_QUEUE, .object = 10, .bytes = 8 },
	  "command 2, copy to memory 10: it writes 8 bytes, the trace holds 0" },
	{ { .kind = TS_COMMAND_COPY, .queue = FIXTURE_QUEUE, .object = 99, .bytes = 8 },
	  "command 2, copy: its object (row 1099) is missing" },
	{ { .kind = TS_COMMAND_COPY,
	    .queue = FIXTURE_QUEUE,
	    .object = FIXTURE_MODULE,
	    .other = 10,
	    .bytes = 8 },
	  "command 2, copy of memory 10 to memory 5: its destination is object 5, a module, not memory" },
	{ { .kind = TS_COMMAND_COPY,
	    .queue = FIXTURE_QUEUE,
	    .other = 10,
	    .other_offset = 250,
	    .bytes = 8 },
	  "command 2, copy from memory 10: its source exceeds memory 10: 8 bytes at 250 of 256" },
	{ { .kind = TS_COMMAND_COPY, .queue = FIXTURE_QUEUE, .other = 10, .bytes = INT64_MAX },
	  "command 2, copy from memory 10: its source exceeds memory 10: 9223372036854775807 bytes at 0 of 256" },
	{ { .kind = TS_COMMAND_COPY, .queue = FIXTURE_QUEUE, .other = 10, .bytes = -8 },
	  "command 2, copy: it has -8 bytes" },
	{ { .kind = TS_COMMAND_COPY,
	    .queue = FIXTURE_QUEUE,
	    .other = 10,
	    .other_offset = -1,
	    .bytes = 8 },
	  "command 2, copy: its offset is negative" },
	{ { .kind = TS_COMMAND_COPY,
	    .queue = FIXTURE_QUEUE,
	    .object = 10,
	    .other = 11,
	    .bytes = 8,
	    .details =
		    "{\"rect\":{\"region\":[4,4,2],\"to\":{\"origin\":[0,0,1],\"row\":16,\"slice\":64},"
		    "\"from\":{\"origin\":[4,1,3],\"row\":16,\"slice\":64}}}" },
	  "command 2, copy of memory 11 to memory 10: its source exceeds memory 11: 116 bytes at 212 of 256" },
	{ { .kind = TS_COMMAND_COPY,
	    .queue = FIXTURE_QUEUE,
	    .object = 10,
	    .other = 11,
	    .details = "{\"rect\":{\"region\":[4,4,9223372036854775807]}}" },
	  "command 2, copy of memory 11 to memory 10: its rectangle is invalid" },
	{ { .kind = TS_COMMAND_COPY,
	    .queue = FIXTURE_QUEUE,
	    .object = 10,
	    .other = 11,
	    .details = "{\"rect\":{\"region\":[4,4,1],\"to\":{\"row\":3}}}" },
	  "command 2, copy of memory 11 to memory 10: its rectangle is invalid" },
	{ { .kind = TS_COMMAND_FILL, .queue = FIXTURE_QUEUE, .object = 10, .bytes = 8 },
	  "command 2, fill of memory 10: a pattern of 0 bytes cannot fill 8" },
	{ { .kind = TS_COMMAND_HOST_WRITE, .object = 10, .bytes = 8 },
	  "command 2, host write to memory 10: it writes 8 bytes, the trace holds 0" },
	{ { .kind = TS_COMMAND_HOST_WRITE, .bytes = 8 },
	  "command 2, host_write: it has no destination" },
	{ { .kind = TS_COMMAND_RECORD, .details = "{\"event\":77}" },
	  "command 2, record: it sets event 77, which is missing" },
	{ { .kind = TS_COMMAND_ALLOC, .object = FIXTURE_QUEUE },
	  "command 2, alloc of memory 3: object 3 is a stream, not memory" },
	{ { .kind = TS_COMMAND_LAUNCH,
	    .queue = FIXTURE_QUEUE,
	    .details = "{\"global\":[1],\"args\":[]}" },
	  "command 2, launch: its kernel is missing" },
	{ LAUNCH("{\"args\":[]}"),
	  "command 2, launch of 'step_': it has 0 dimensions, not 1 to 3" },
	{ LAUNCH("{\"global\":[1,2,3,4],\"args\":[]}"),
	  "command 2, launch of 'step_': it has 4 dimensions, not 1 to 3" },
	{ LAUNCH("{\"global\":[1,2],\"local\":[1],\"args\":[]}"),
	  "command 2, launch of 'step_': it has 2 dimensions, but its local size 1" },
	{ LAUNCH(ARGUMENT("{\"kind\":\"memory\",\"object\":9,\"access\":\"both\"}")),
	  "command 2, launch of 'step_': argument 0 names memory 9, which is missing" },
	{ LAUNCH(ARGUMENT("{\"kind\":\"memory\",\"object\":3}")),
	  "command 2, launch of 'step_': its argument 0 is object 3, a stream, not memory" },
	{ LAUNCH(ARGUMENT("{\"kind\":\"memory\",\"object\":10,\"offset\":200,\"bytes\":100}")),
	  "command 2, launch of 'step_': its argument 0 exceeds memory 10: 100 bytes at 200 of 256" },
	{ LAUNCH(ARGUMENT("{\"kind\":\"bytes\",\"at\":0,\"size\":4}")),
	  "command 2, launch of 'step_': argument 0 has 4 bytes at 0 of a block of 0" },
	{ LAUNCH(ARGUMENT("{\"kind\":\"local\",\"size\":9223372036854775807}")),
	  "command 2, launch of 'step_': argument 0 wants 9223372036854775807 bytes of local memory" },
	{ LAUNCH("{\"global\":[1],\"args\":[],\"indirect\":[12]}"),
	  "command 2, launch of 'step_': it can access memory 12, which is missing" },
	{ LAUNCH("{\"global\":[-1],\"args\":[]}"),
	  "command 2: malformed details at byte 11: expected a non-negative integer" },
	{ LAUNCH("{\"global\":[1.5],\"args\":[]}"),
	  "command 2: malformed details at byte 11: expected a non-negative integer" },
	{ LAUNCH("{\"global\":[18446744073709551616]}"),
	  "command 2: malformed details at byte 11: expected a non-negative integer" },
	{ LAUNCH("{\"call\":\"a\\u0000b\"}"),
	  "command 2: malformed details at byte 9: a text holds a byte 0" },
	{ LAUNCH("[]"), "command 2: malformed details at byte 0: expected '{'" },
	{ LAUNCH("{} {}"),
	  "command 2: malformed details at byte 3: trailing data after the object" },
	{ { .kind = TS_COMMAND_CHECK,
	    .sequence = 2,
	    .details = "{\"hash\":\"12\",\"why\":\"each\"}" },
	  "nothing to replay: window 1 has no commands" },
};

TS_TEST(bad_commands_are_refused)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(bad_commands); i++) {
		const char *message = bad_commands[i].message;

		begin();
		fixture_begin(&fixture, 1);
		fixture_command(&fixture, &bad_commands[i].command);
		refuse(strncmp(message, "nothing", 7) ? TS_EFORMAT : TS_ENOTFOUND, message);
	}
}

static const struct bad bad_checks[] = {
	{ { .sequence = 2, .details = "{\"hash\":\"12\",\"why\":\"each\"}" },
	  "a check of command 2: malformed hash" },
	{ { .sequence = 2, .details = "{\"hash\":\"0123456789abcdeg\",\"why\":\"each\"}" },
	  "a check of command 2: malformed hash" },
	{ { .sequence = 9,
	    .object = 10,
	    .bytes = 4,
	    .details = "{\"hash\":\"0123456789abcdef\",\"why\":\"each\"}" },
	  "a check of command 9: there is no such command" },
	{ { .sequence = 2,
	    .object = 10,
	    .offset = 256,
	    .bytes = 4,
	    .details = "{\"hash\":\"0123456789abcdef\",\"why\":\"each\"}" },
	  "a check of command 2: it exceeds its memory" },
	{ { .sequence = 2, .details = "{\"hash\":\"0123456789abcdef\",\"why\":\"read\"}" },
	  "a check of command 2: it copied nothing of that size to the host" },
	{ { .sequence = 2, .details = "{\"hash\":\"0123456789abcdef\",\"why\":\"final\"}" },
	  "a check of command 2: it names no memory" },
};

TS_TEST(bad_checks_are_refused)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(bad_checks); i++) {
		struct fixture_command check = bad_checks[i].command;

		check.kind = TS_COMMAND_CHECK;
		begin();
		fixture_begin(&fixture, 1);
		fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, "");
		fixture_command(&fixture, &check);
		refuse(TS_EFORMAT, bad_checks[i].message);
	}
}

TS_TEST(commands_that_are_missing_or_twice)
{
	begin();
	fixture_begin(&fixture, 1);
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, "");
	fixture.sequence += 3;
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, "");
	refuse(TS_EFORMAT,
	       "commands 3 to 5 are missing: what follows cannot be replayed without them");
	begin();
	fixture_begin(&fixture, 1);
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, "");
	fixture.sequence--;
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, "");
	refuse(TS_EFORMAT, "command 2 appears twice");
}

/* ---- objects ---- */

static uint32_t find(const struct ts_replay_stream *stream, uint64_t number)
{
	for (uint32_t i = 0; i < stream->object_count; i++)
		if (stream->objects[i].number == number)
			return i;
	ts_test_fail(__FILE__, __LINE__, "there is no object %d", (int)number);
}

TS_TEST(objects_that_are_not_sound_do_no_harm)
{
	struct ts_replay_stream *stream;

	begin();
	fixture_object(&fixture, TS_OBJECT_MEMORY, 20, FIXTURE_CONTEXT, NULL, 100,
		       fixture_blob(&fixture, "abc", 3), "");
	fixture_object(&fixture, TS_OBJECT_MEMORY, 21, 55, NULL, 100, 0, "");
	fixture_object(&fixture, TS_OBJECT_MEMORY, 22, FIXTURE_CONTEXT, NULL, 0, 0, "");
	fixture_object(&fixture, TS_OBJECT_MEMORY, 23, 10, NULL, 200, 0, "\"origin\":100");
	fixture_object(&fixture, TS_OBJECT_MEMORY, 24, 24, NULL, 200, 0, "");
	fixture_object(&fixture, TS_OBJECT_STREAM, 25, FIXTURE_CONTEXT, NULL, 0, 0,
		       "\"device\":10");
	fixture_object(&fixture, TS_OBJECT_MODULE, 26, FIXTURE_CONTEXT, NULL, 0, 0, "");
	fixture_object(&fixture, TS_OBJECT_MEMORY, 27, FIXTURE_CONTEXT, NULL, 64, 0,
		       "\"unreplayable\":\"an image\"");
	fixture_object(&fixture, TS_OBJECT_MODULE, 28, FIXTURE_CONTEXT, NULL, 0, 4711, "");
	fixture_begin(&fixture, 1);
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, "");
	fixture_step(&fixture, FIXTURE_QUEUE, 27, 64, "");
	stream = load();
	TS_CHECK_STR(stream->objects[find(stream, 20)].unreplayable,
		     "it has 100 bytes, its content 3");
	TS_CHECK_STR(stream->objects[find(stream, 21)].unreplayable, "its parent is missing");
	TS_CHECK_STR(stream->objects[find(stream, 22)].unreplayable, "its size is unknown");
	TS_CHECK_STR(stream->objects[find(stream, 23)].unreplayable, "it exceeds its parent");
	TS_CHECK(stream->objects[find(stream, 24)].unreplayable);
	TS_CHECK(stream->objects[find(stream, 25)].unreplayable);
	TS_CHECK_STR(stream->objects[find(stream, 26)].unreplayable,
		     "the trace has neither its source nor a binary");
	TS_CHECK(stream->objects[find(stream, 28)].unreplayable);
	TS_CHECK(!stream->commands[0].unreplayable);
	TS_CHECK_STR(stream->commands[1].unreplayable, "memory 27: an image");
	done(stream);
}

TS_TEST(views_become_parts_of_their_root)
{
	struct ts_replay_stream *stream;
	const struct ts_replay_command_info *command;

	begin();
	fixture_object(&fixture, TS_OBJECT_MEMORY, 20, 10, NULL, 128, 0, "\"origin\":64");
	fixture_object(&fixture, TS_OBJECT_MEMORY, 21, 20, NULL, 32, 0, "\"origin\":16");
	fixture_begin(&fixture, 1);
	fixture_step(&fixture, FIXTURE_QUEUE, 20, 32, "");
	fixture_read(&fixture, FIXTURE_QUEUE, 21, 8, 16);
	stream = load();
	command = &stream->commands[0];
	TS_CHECK_INT(command->args[0].memory, find(stream, 10));
	TS_CHECK_INT(command->args[0].offset, 64);
	TS_CHECK_INT(command->args[0].bytes, 128);
	TS_CHECK_INT(command->writes[0].offset, 64);
	command = &stream->commands[1];
	TS_CHECK_INT(command->other, find(stream, 10));
	TS_CHECK_INT(command->other_offset, 64 + 16 + 8);
	TS_CHECK_INT(command->reads[0].offset, 64 + 16 + 8);
	done(stream);
}

TS_TEST(details_become_fields)
{
	struct ts_replay_stream *stream;
	const struct ts_replay_command_info *command;
	uint32_t by = 7;

	begin();
	fixture_begin(&fixture, 1);
	fixture_command(
		&fixture,
		&(struct fixture_command){
			.kind = TS_COMMAND_LAUNCH,
			.queue = FIXTURE_QUEUE,
			.object = FIXTURE_MIX,
			.blob = fixture_blob(&fixture, &by, 4),
			.correlation = 33,
			.details =
				"{\"global\":[8,4],\"local\":[2,2],\"offset\":[1,0],\"unknown\":true,"
				"\"new\":{\"a\":[1,{}]},\"args\":[{\"kind\":\"memory\",\"object\":10,"
				"\"access\":\"write\"},{\"kind\":\"memory\",\"object\":0},"
				"{\"kind\":\"bytes\",\"at\":0,\"size\":4},{\"kind\":\"local\",\"size\":64}]}" });
	stream = load();
	command = &stream->commands[0];
	TS_CHECK_INT(command->sequence, 2);
	TS_CHECK_INT(command->correlation, 33);
	TS_CHECK_INT(command->dimensions, 2);
	TS_CHECK_INT(command->global[1], 4);
	TS_CHECK_INT(command->local[0], 2);
	TS_CHECK_INT(command->global_offset[0], 1);
	TS_CHECK_INT(command->arg_count, 4);
	TS_CHECK_INT(command->args[0].access, TS_REPLAY_WRITES);
	TS_CHECK_INT(command->args[1].memory, TS_REPLAY_NONE);
	TS_CHECK_INT(command->args[2].size, 4);
	TS_CHECK_INT(command->args[3].kind, TS_REPLAY_ARG_LOCAL);
	TS_CHECK_INT(command->read_count, 0);
	TS_CHECK_INT(command->write_count, 1);
	TS_CHECK(command->unknown_access);
	done(stream);
}

/* ---- windows ---- */

/* A memory with content `value` when the window begins. */
static void add_window(int64_t number, uint8_t value, const char *failed)
{
	uint8_t content[256];

	memset(content, value, sizeof(content));
	fixture_objects(&fixture);
	fixture_memory(&fixture, 10, content, 256);
	fixture_begin(&fixture, number);
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, "");
	fixture_finish(&fixture, number, failed);
}

static void check_window(uint32_t number, uint8_t value)
{
	struct ts_replay_stream *stream;
	const struct ts_replay_object_info *memory;
	struct ts_error err;
	uint8_t content[256];

	if (load_window(&stream, number, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK_INT(stream->command_count, 1);
	memory = &stream->objects[stream->commands[0].args[0].memory];
	TS_CHECK_INT(ts_replay_blob_read(reader, &memory->blob, content, &err), 0);
	TS_CHECK_INT(content[100], value);
	ts_replay_stream_free(stream);
	ts_reader_close(reader);
}

TS_TEST(each_window_has_its_own_objects)
{
	begin();
	add_window(1, 1, NULL);
	add_window(2, 2, "it broke");
	add_window(3, 3, NULL);
	fixture_close(&fixture);
	check_window(0, 1);
	check_window(1, 1);
	check_window(3, 3);
	unlink(path);
}

TS_TEST(windows_that_failed)
{
	struct ts_replay_stream *stream;
	struct ts_error err;

	/* One that never opened, then one that did. */
	begin();
	fixture_finish(&fixture, 1, "memory 7 is mapped");
	add_window(2, 2, NULL);
	fixture_close(&fixture);
	check_window(0, 2);
	TS_CHECK_INT(load_window(&stream, 1, &err), TS_EFORMAT);
	TS_CHECK_STR(err.message, "window 1 cannot be replayed: memory 7 is mapped");
	ts_reader_close(reader);
	begin();
	add_window(1, 1, "the disk was full");
	refuse(TS_EFORMAT, "window 1 cannot be replayed: the disk was full");
}

/* ---- order ---- */

TS_TEST(events_become_commands)
{
	struct ts_replay_stream *stream;

	begin();
	fixture_begin(&fixture, 1);
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, ",\"event\":30");
	fixture_step(&fixture, FIXTURE_QUEUE_2, 11, 64, ",\"event\":31,\"wait\":[30,4711]");
	/* A reused number means the newer object. */
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, ",\"event\":30");
	fixture_step(&fixture, FIXTURE_QUEUE_2, 11, 64, ",\"wait\":[30,31]");
	stream = load();
	TS_CHECK_INT(stream->commands[1].wait_count, 1);
	TS_CHECK_INT(stream->commands[1].waits[0], 0);
	TS_CHECK_INT(stream->commands[3].waits[0], 2);
	TS_CHECK_INT(stream->commands[3].waits[1], 1);
	TS_CHECK(stream->is_truncated);
	done(stream);
}

static void add_user_event(int64_t number)
{
	fixture_object(&fixture, TS_OBJECT_EVENT, number, FIXTURE_CONTEXT, NULL, 0, 0,
		       "\"user\":true");
}

static void set_user_event(const char *details)
{
	fixture_command(&fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_RECORD, .details = details });
}

/*
 * The first command waits for an event that is set last; meanwhile another queue writes what it
 * reads. So it runs after that and depends on it, and nothing may wait for it before.
 */
TS_TEST(user_events_move_commands)
{
	struct ts_replay_stream *stream;
	struct ts_replay_plan plan;
	struct ts_error err;
	const struct ts_replay_options options = { .from = "2", .to = "3" };
	uint8_t bytes[256] = { 0 };

	begin();
	add_user_event(40);
	add_user_event(41);
	fixture_begin(&fixture, 1);
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, ",\"wait\":[40,41]"); /* 2 */
	fixture_write(&fixture, FIXTURE_QUEUE_2, 10, 0, bytes, 256);        /* 3 */
	fixture_command(&fixture, &(struct fixture_command){ .kind = TS_COMMAND_SYNC,
							     .queue = FIXTURE_QUEUE }); /* 4 */
	fixture_command(&fixture, &(struct fixture_command){ .kind = TS_COMMAND_SYNC,
							     .queue = FIXTURE_QUEUE_2 });
	fixture_read(&fixture, FIXTURE_QUEUE, 10, 0, 256); /* 6 */
	set_user_event("{\"event\":40,\"status\":0}");     /* 7 */
	fixture_finish(&fixture, 1, NULL);
	stream = load();
	/* 41 was set before the window. */
	TS_CHECK_INT(stream->commands[0].user_wait_count, 1);
	TS_CHECK_INT(stream->commands[0].ready, 5);
	TS_CHECK_INT(stream->commands[1].ready, 1);
	TS_CHECK(stream->commands[2].would_deadlock && !stream->commands[3].would_deadlock);
	TS_CHECK(!stream->commands[4].blocking);
	TS_CHECK_INT(ts_replay_plan_make(&plan, stream, &options, &err), 0);
	TS_CHECK_INT(plan.kept[0], TS_REPLAY_REQUESTED);
	TS_CHECK_INT(plan.kept[1], TS_REPLAY_INCLUDED);
	TS_CHECK_INT(plan.kept[5], TS_REPLAY_ORDER);
	ts_replay_plan_release(&plan);
	done(stream);
}

/* Another thread submitted more to the queue while the host waited for it. */
TS_TEST(a_sync_waits_for_what_was_there)
{
	struct ts_replay_stream *stream;

	begin();
	add_user_event(40);
	fixture_begin(&fixture, 1);
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, "");               /* 2 */
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, "");               /* 3 */
	fixture_step(&fixture, FIXTURE_QUEUE, 11, 64, ",\"wait\":[40]"); /* 4 */
	fixture_command(&fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_SYNC,
						   .queue = FIXTURE_QUEUE,
						   .details = "{\"what\":\"queue\",\"until\":3}" });
	fixture_command(&fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_SYNC,
						   .queue = FIXTURE_QUEUE,
						   .details = "{\"what\":\"queue\",\"until\":4}" });
	set_user_event("{\"event\":40,\"status\":0}");
	fixture_finish(&fixture, 1, NULL);
	stream = load();
	TS_CHECK_INT(stream->commands[3].queue, TS_REPLAY_NONE);
	TS_CHECK_INT(stream->commands[3].wait_count, 1);
	TS_CHECK_INT(stream->commands[3].waits[0], 1);
	TS_CHECK(!stream->commands[3].would_deadlock);
	TS_CHECK_INT(stream->commands[4].wait_count, 0);
	TS_CHECK(stream->commands[4].would_deadlock);
	done(stream);
}

/* Memory that is allocated and freed inside the window. */
TS_TEST(memory_has_a_life)
{
	struct ts_replay_stream *stream;
	struct ts_replay_plan plan;
	struct ts_error err;
	const struct ts_replay_options options = { .from = "6", .to = "7" };

	begin();
	fixture_begin(&fixture, 1);
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, ""); /* 2 */
	fixture_command(&fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_FREE, .object = 10 }); /* 3 */
	fixture_memory(&fixture, 12, NULL, 256);
	fixture_command(&fixture, &(struct fixture_command){ .kind = TS_COMMAND_ALLOC,
							     .object = 12 }); /* 4 */
	fixture_step(&fixture, FIXTURE_QUEUE, 12, 64, "");                    /* 5 */
	fixture_step(&fixture, FIXTURE_QUEUE, 12, 64, "");                    /* 6 */
	/* Used after its end: it stays alive. */
	fixture_command(&fixture,
			&(struct fixture_command){ .kind = TS_COMMAND_FREE, .object = 11 });
	fixture_step(&fixture, FIXTURE_QUEUE, 11, 64, "");
	fixture_finish(&fixture, 1, NULL);
	stream = load();
	TS_CHECK(!ts_replay_is_alive(stream, find(stream, 10), 2));
	TS_CHECK(ts_replay_is_alive(stream, find(stream, 10), 0));
	TS_CHECK(!ts_replay_is_alive(stream, find(stream, 12), 1));
	TS_CHECK(ts_replay_is_alive(stream, find(stream, 12), 2));
	TS_CHECK_INT(stream->objects[find(stream, 11)].freed_by, TS_REPLAY_NONE);
	TS_CHECK_INT(ts_replay_plan_make(&plan, stream, &options, &err), 0);
	TS_CHECK_INT(plan.kept[0], 0);
	TS_CHECK_INT(plan.kept[1], 0);
	TS_CHECK_INT(plan.kept[2], TS_REPLAY_ORDER);
	TS_CHECK_INT(plan.kept[3], TS_REPLAY_INCLUDED);
	ts_replay_plan_release(&plan);
	done(stream);
}

TS_TEST(a_needed_command_that_cannot_be_replayed)
{
	struct ts_replay_stream *stream;
	struct ts_replay_plan plan;
	struct ts_error err;
	struct ts_replay_options options = { .from = "4" };

	begin();
	fixture_begin(&fixture, 1);
	fixture_step(&fixture, FIXTURE_QUEUE, 10, 64, "");
	fixture_command(&fixture, &(struct fixture_command){
					  .kind = TS_COMMAND_HOST,
					  .queue = FIXTURE_QUEUE,
					  .details = "{\"call\":\"clEnqueueNativeKernel\"}" });
	fixture_step(&fixture, FIXTURE_QUEUE, 11, 64, "");
	stream = load();
	TS_CHECK_INT(ts_replay_plan_make(&plan, stream, &options, &err), TS_EFORMAT);
	TS_CHECK_STR(
		err.message,
		"command 3, clEnqueueNativeKernel: needed, and cannot be replayed: the host function is not in the trace ('--skip-unsupported' goes on without it)");
	options.from = NULL;
	options.to = "3";
	TS_CHECK_INT(ts_replay_plan_make(&plan, stream, &options, &err), 0);
	ts_replay_plan_release(&plan);
	done(stream);
}
