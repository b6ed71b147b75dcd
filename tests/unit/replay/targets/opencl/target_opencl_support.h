/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command streams for tests of the opencl target, built in memory: objects, then commands, then
 * fixture_open() and fixture_run(). Blobs are in a real trace. Captures keep the results of a run.
 * PoCL runs them; without a device the tests are skipped.
 */
#ifndef TS_TESTS_UNIT_REPLAY_TARGETS_OPENCL_TARGET_OPENCL_SUPPORT_H
#define TS_TESTS_UNIT_REPLAY_TARGETS_OPENCL_TARGET_OPENCL_SUPPORT_H

#include "tracesmith_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/writer.h>

#include "replay/replay.h"
#include "unit/runner.h"

#define FIXTURE_MOST 256u
#define NONE TS_REPLAY_NONE

/*
 * Memory that the driver leaves at exit is not ours to free, and leak detection does not understand
 * its thread-local storage.
 */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\nleak:libOpenCL\nleak:libLLVM\nleak:libclang\nleak:libhwloc\n"
	       "leak:_dlerror_run\n";
}

const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "use_tls=0:print_suppressions=0";
}

struct fixture {
	struct ts_replay replay;
	struct ts_replay_stream stream;
	struct ts_replay_object_info objects[FIXTURE_MOST];
	struct ts_replay_command_info commands[FIXTURE_MOST];
	struct ts_replay_capture captures[FIXTURE_MOST];
	uint32_t order[FIXTURE_MOST];
	uint8_t kept[FIXTURE_MOST];
	uint32_t instead[FIXTURE_MOST];
	struct ts_replay_times times[FIXTURE_MOST];
	void *content[FIXTURE_MOST];     /* by capture, of the last run */
	uint32_t device, context, queue; /* the first of each, created by fixture_start() */
	struct ts_writer *writer;
	struct ts_error err;
	char path[64];
};

static inline uint32_t fixture_object(struct fixture *fixture, enum ts_object_kind kind,
				      uint32_t parent)
{
	uint32_t index = fixture->stream.object_count++;

	TS_CHECK(index < FIXTURE_MOST);
	fixture->objects[index] = (struct ts_replay_object_info){ .kind = kind,
								  .number = index + 1,
								  .parent = parent,
								  .device = NONE,
								  .name = "",
								  .demangled = "",
								  .shown = "",
								  .options = "",
								  .created_by = NONE,
								  .freed_by = NONE,
								  .priority = TS_ABSENT };
	return index;
}

static inline struct ts_replay_blob_ref fixture_blob(struct fixture *fixture, const void *data,
						     size_t bytes)
{
	struct ts_replay_blob_ref blob = { ts_writer_blob(fixture->writer, data, bytes), bytes };

	TS_CHECK(blob.id != 0);
	return blob;
}

static inline uint32_t fixture_device(struct fixture *fixture, const char *name)
{
	uint32_t device = fixture_object(fixture, TS_OBJECT_DEVICE, NONE);

	fixture->objects[device].name = name;
	return device;
}

/* For all devices created so far. */
static inline uint32_t fixture_context(struct fixture *fixture)
{
	uint32_t context = fixture_object(fixture, TS_OBJECT_CONTEXT, NONE), count = 0;
	uint32_t *devices = ts_arena_alloc_zeroed(&fixture->stream.arena, 8, sizeof(*devices));

	for (uint32_t i = 0; i < context; i++)
		if (fixture->objects[i].kind == TS_OBJECT_DEVICE)
			devices[count++] = i;
	fixture->objects[context].devices = devices;
	fixture->objects[context].device_count = count;
	return context;
}

static inline uint32_t fixture_queue(struct fixture *fixture, uint32_t device, uint32_t flags)
{
	uint32_t queue = fixture_object(fixture, TS_OBJECT_STREAM, fixture->context);

	fixture->objects[queue].device = device;
	fixture->objects[queue].flags = flags;
	return queue;
}

static inline uint32_t fixture_memory(struct fixture *fixture, const void *content, size_t bytes)
{
	uint32_t memory = fixture_object(fixture, TS_OBJECT_MEMORY, fixture->context);

	fixture->objects[memory].bytes = bytes;
	if (content)
		fixture->objects[memory].blob = fixture_blob(fixture, content, bytes);
	return memory;
}

static inline uint32_t fixture_module(struct fixture *fixture, const char *source)
{
	uint32_t module = fixture_object(fixture, TS_OBJECT_MODULE, fixture->context);

	if (source)
		fixture->objects[module].blob = fixture_blob(fixture, source, strlen(source));
	return module;
}

static inline uint32_t fixture_function(struct fixture *fixture, uint32_t module, const char *name)
{
	uint32_t function = fixture_object(fixture, TS_OBJECT_FUNCTION, module);

	fixture->objects[function].name = name;
	fixture->objects[function].demangled = fixture->objects[function].shown = name;
	return function;
}

static inline uint32_t fixture_user_event(struct fixture *fixture)
{
	uint32_t event = fixture_object(fixture, TS_OBJECT_EVENT, fixture->context);

	fixture->objects[event].flags = TS_REPLAY_USER_EVENT;
	return event;
}

/* ---- commands ---- */

static inline uint32_t fixture_command(struct fixture *fixture, enum ts_command_kind kind,
				       uint32_t queue)
{
	uint32_t index = fixture->stream.command_count++;

	TS_CHECK(index < FIXTURE_MOST);
	fixture->commands[index] = (struct ts_replay_command_info){ .kind = kind,
								    .sequence = index + 1,
								    .queue = queue,
								    .object = NONE,
								    .other = NONE,
								    .image = NONE,
								    .other_image = NONE,
								    .user_event = NONE };
	fixture->order[index] = index;
	fixture->kept[index] = TS_REPLAY_REQUESTED;
	fixture->instead[index] = index;
	return index;
}

static inline uint32_t fixture_write(struct fixture *fixture, uint32_t queue, uint32_t memory,
				     uint64_t offset, const void *data, size_t bytes)
{
	uint32_t index = fixture_command(fixture, TS_COMMAND_COPY, queue);

	fixture->commands[index].object = memory;
	fixture->commands[index].offset = offset;
	fixture->commands[index].bytes = bytes;
	fixture->commands[index].blob = fixture_blob(fixture, data, bytes);
	return index;
}

static inline uint32_t fixture_fill(struct fixture *fixture, uint32_t queue, uint32_t memory,
				    const void *pattern, size_t pattern_bytes, uint64_t bytes)
{
	uint32_t index = fixture_command(fixture, TS_COMMAND_FILL, queue);

	fixture->commands[index].object = memory;
	fixture->commands[index].bytes = bytes;
	fixture->commands[index].blob = fixture_blob(fixture, pattern, pattern_bytes);
	return index;
}

static inline uint32_t fixture_capture(struct fixture *fixture, uint32_t position, uint32_t memory,
				       uint64_t offset, uint64_t bytes)
{
	uint32_t index = fixture->replay.capture_count++;

	TS_CHECK(index < FIXTURE_MOST);
	fixture->captures[index] = (struct ts_replay_capture){ .position = position,
							       .range = { memory, offset, bytes },
							       .why = "each" };
	return index;
}

/* A read, and the capture of its result. */
static inline uint32_t fixture_read(struct fixture *fixture, uint32_t queue, uint32_t memory,
				    uint64_t offset, uint64_t bytes)
{
	uint32_t index = fixture_command(fixture, TS_COMMAND_COPY, queue);

	fixture->commands[index].other = memory;
	fixture->commands[index].other_offset = offset;
	fixture->commands[index].bytes = bytes;
	return fixture_capture(fixture, index, NONE, 0, bytes);
}

/* Arguments: the raw block holds byte values. */
static inline uint32_t fixture_launch(struct fixture *fixture, uint32_t queue, uint32_t function,
				      uint64_t global, uint64_t local,
				      const struct ts_replay_arg *args, uint32_t arg_count,
				      const void *block, size_t block_bytes)
{
	uint32_t index = fixture_command(fixture, TS_COMMAND_LAUNCH, queue);
	struct ts_replay_command_info *command = &fixture->commands[index];

	command->object = function;
	command->dimensions = 1;
	command->global[0] = global;
	command->local[0] = local;
	command->args = ts_arena_copy(&fixture->stream.arena, args, arg_count * sizeof(*args));
	command->arg_count = arg_count;
	if (block_bytes)
		command->blob = fixture_blob(fixture, block, block_bytes);
	return index;
}

static inline struct ts_replay_arg fixture_memory_arg(const struct fixture *fixture,
						      uint32_t memory)
{
	return (struct ts_replay_arg){ .kind = TS_REPLAY_ARG_MEMORY,
				       .access = TS_REPLAY_READS | TS_REPLAY_WRITES,
				       .memory = memory,
				       .image = NONE,
				       .bytes = fixture->objects[memory].bytes };
}

static inline void fixture_waits(struct fixture *fixture, uint32_t command, uint32_t first,
				 uint32_t second)
{
	uint32_t waits[] = { first, second };

	fixture->commands[command].waits =
		ts_arena_copy(&fixture->stream.arena, waits, sizeof(waits));
	fixture->commands[command].wait_count = second == NONE ? 1 : 2;
}

static inline void fixture_user_wait(struct fixture *fixture, uint32_t command, uint32_t event)
{
	fixture->commands[command].user_waits =
		ts_arena_copy(&fixture->stream.arena, &event, sizeof(event));
	fixture->commands[command].user_wait_count = 1;
}

static inline uint32_t fixture_set(struct fixture *fixture, uint32_t event)
{
	uint32_t index = fixture_command(fixture, TS_COMMAND_RECORD, NONE);

	fixture->commands[index].user_event = event;
	return index;
}

/* ---- a session ---- */

static int fixture_content(void *context, uint32_t capture, const void *data, struct ts_error *err)
{
	struct fixture *fixture = context;
	uint64_t bytes = fixture->captures[capture].range.bytes;

	TS_CHECK(fixture->content[capture] == NULL);
	fixture->content[capture] = malloc(bytes);
	TS_CHECK(fixture->content[capture] != NULL);
	memcpy(fixture->content[capture], data, bytes);
	return TS_OK;
}

static inline void fixture_forget(struct fixture *fixture)
{
	for (uint32_t i = 0; i < FIXTURE_MOST; i++) {
		free(fixture->content[i]);
		fixture->content[i] = NULL;
	}
}

/* One device, one context, one queue in order. */
static inline struct fixture *fixture_start(const char *device_name)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	int fd;

	TS_CHECK(fixture != NULL);
	snprintf(fixture->path, sizeof(fixture->path), "/tmp/ts-replay-opencl-XXXXXX");
	fd = mkstemp(fixture->path);
	TS_CHECK(fd >= 0);
	close(fd);
	TS_CHECK_INT(
		ts_writer_open(&fixture->writer, fixture->path,
			       &(struct ts_writer_options){
				       .size = sizeof(struct ts_writer_options), .threads = -1 },
			       NULL),
		0);
	fixture->stream.objects = fixture->objects;
	fixture->stream.commands = fixture->commands;
	fixture->replay.stream = &fixture->stream;
	fixture->replay.captures = fixture->captures;
	fixture->replay.options.target = &ts_replay_target_opencl;
	fixture->replay.options.repeat = 1;
	fixture->device = fixture_device(fixture, device_name);
	fixture->context = fixture_context(fixture);
	fixture->queue = fixture_queue(fixture, fixture->device, 0);
	return fixture;
}

static inline int fixture_open(struct fixture *fixture)
{
	int rc;

	TS_CHECK_INT(ts_writer_finish(fixture->writer, NULL), 0);
	ts_writer_close(fixture->writer);
	fixture->writer = NULL;
	TS_CHECK_INT(ts_reader_open(&fixture->stream.reader, fixture->path, NULL), 0);
	/* The reader keeps it open. A skipped test leaves nothing behind. */
	unlink(fixture->path);
	fixture->replay.reader = fixture->stream.reader;
	fixture->replay.plan.order = fixture->order;
	fixture->replay.plan.kept = fixture->kept;
	fixture->replay.plan.count = fixture->stream.command_count;
	rc = ts_replay_target_opencl.open(&fixture->replay, &fixture->replay.session,
					  &fixture->err);
#ifndef TS_HAVE_OPENCL
	TS_CHECK_INT(rc, TS_ECAP);
	ts_test_skip("this build has no OpenCL");
#endif
	/* No loader, driver or device. */
	if (rc == TS_ECAP && !strncmp(fixture->err.message, "no OpenCL ", 10))
		ts_test_skip(fixture->err.message);
	return rc;
}

static inline int fixture_run(struct fixture *fixture)
{
	struct ts_replay_outcome outcome = { .times = fixture->times,
					     .content = fixture_content,
					     .context = fixture };

	fixture_forget(fixture);
	for (size_t i = 0; i < FIXTURE_MOST; i++)
		fixture->times[i] = (struct ts_replay_times){ TS_ABSENT, TS_ABSENT, TS_ABSENT,
							      TS_ABSENT, TS_ABSENT, TS_ABSENT };
	return ts_replay_target_opencl.run(fixture->replay.session, 1, &outcome, &fixture->err);
}

static inline void fixture_end(struct fixture *fixture)
{
	if (fixture->replay.session)
		ts_replay_target_opencl.close(fixture->replay.session);
	fixture_forget(fixture);
	ts_reader_close(fixture->stream.reader);
	ts_writer_close(fixture->writer);
	ts_arena_release(&fixture->stream.arena);
	unlink(fixture->path);
	free(fixture);
}

/* Opens and runs twice: all results must arrive, and be equal. */
static inline void fixture_run_twice(struct fixture *fixture)
{
	uint32_t count = fixture->replay.capture_count;
	void *first[FIXTURE_MOST];

	if (fixture_open(fixture))
		ts_test_fail(__FILE__, __LINE__, "open: %s", fixture->err.message);
	if (fixture_run(fixture))
		ts_test_fail(__FILE__, __LINE__, "run: %s", fixture->err.message);
	memcpy(first, fixture->content, sizeof(first));
	memset(fixture->content, 0, sizeof(fixture->content));
	if (fixture_run(fixture))
		ts_test_fail(__FILE__, __LINE__, "run again: %s", fixture->err.message);
	for (uint32_t i = 0; i < count; i++) {
		TS_CHECK(first[i] != NULL && fixture->content[i] != NULL);
		TS_CHECK_MEM(first[i], fixture->content[i], fixture->captures[i].range.bytes);
		free(first[i]);
	}
}

#endif
