/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command streams for tests of the opencl target, built in memory: objects, then commands, then
 * made_open() and made_run(). Blobs are in a real trace. Captures keep the results of a run. PoCL
 * runs them; without a device the tests are skipped.
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

#define MADE_MOST 256u
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

struct made {
	struct ts_replay replay;
	struct ts_replay_stream stream;
	struct ts_replay_object_info objects[MADE_MOST];
	struct ts_replay_command_info commands[MADE_MOST];
	struct ts_replay_capture captures[MADE_MOST];
	uint32_t order[MADE_MOST];
	uint8_t kept[MADE_MOST];
	uint32_t instead[MADE_MOST];
	struct ts_replay_times times[MADE_MOST];
	void *content[MADE_MOST];        /* by capture, of the last run */
	uint32_t device, context, queue; /* the first of each, created by made_start() */
	struct ts_writer *writer;
	struct ts_error err;
	char path[64];
};

static inline uint32_t made_object(struct made *made, enum ts_object_kind kind, uint32_t parent)
{
	uint32_t index = made->stream.object_count++;

	TS_CHECK(index < MADE_MOST);
	made->objects[index] = (struct ts_replay_object_info){ .kind = kind,
							       .number = index + 1,
							       .parent = parent,
							       .device = NONE,
							       .name = "",
							       .options = "",
							       .created_by = NONE,
							       .freed_by = NONE,
							       .priority = TS_ABSENT };
	return index;
}

static inline struct ts_replay_blob_ref made_blob(struct made *made, const void *data, size_t bytes)
{
	struct ts_replay_blob_ref blob = { ts_writer_blob(made->writer, data, bytes), bytes };

	TS_CHECK(blob.id != 0);
	return blob;
}

static inline uint32_t made_device(struct made *made, const char *name)
{
	uint32_t device = made_object(made, TS_OBJECT_DEVICE, NONE);

	made->objects[device].name = name;
	return device;
}

/* For all devices created so far. */
static inline uint32_t made_context(struct made *made)
{
	uint32_t context = made_object(made, TS_OBJECT_CONTEXT, NONE), count = 0;
	uint32_t *devices = ts_arena_alloc_zeroed(&made->stream.arena, 8, sizeof(*devices));

	for (uint32_t i = 0; i < context; i++)
		if (made->objects[i].kind == TS_OBJECT_DEVICE)
			devices[count++] = i;
	made->objects[context].devices = devices;
	made->objects[context].device_count = count;
	return context;
}

static inline uint32_t made_queue(struct made *made, uint32_t device, uint32_t flags)
{
	uint32_t queue = made_object(made, TS_OBJECT_STREAM, made->context);

	made->objects[queue].device = device;
	made->objects[queue].flags = flags;
	return queue;
}

static inline uint32_t made_memory(struct made *made, const void *content, size_t bytes)
{
	uint32_t memory = made_object(made, TS_OBJECT_MEMORY, made->context);

	made->objects[memory].bytes = bytes;
	if (content)
		made->objects[memory].blob = made_blob(made, content, bytes);
	return memory;
}

static inline uint32_t made_module(struct made *made, const char *source)
{
	uint32_t module = made_object(made, TS_OBJECT_MODULE, made->context);

	if (source)
		made->objects[module].blob = made_blob(made, source, strlen(source));
	return module;
}

static inline uint32_t made_function(struct made *made, uint32_t module, const char *name)
{
	uint32_t function = made_object(made, TS_OBJECT_FUNCTION, module);

	made->objects[function].name = name;
	return function;
}

static inline uint32_t made_user_event(struct made *made)
{
	uint32_t event = made_object(made, TS_OBJECT_EVENT, made->context);

	made->objects[event].flags = TS_REPLAY_USER_EVENT;
	return event;
}

/* ---- commands ---- */

static inline uint32_t made_command(struct made *made, enum ts_command_kind kind, uint32_t queue)
{
	uint32_t index = made->stream.command_count++;

	TS_CHECK(index < MADE_MOST);
	made->commands[index] = (struct ts_replay_command_info){ .kind = kind,
								 .sequence = index + 1,
								 .queue = queue,
								 .object = NONE,
								 .other = NONE,
								 .user_event = NONE };
	made->order[index] = index;
	made->kept[index] = TS_REPLAY_REQUESTED;
	made->instead[index] = index;
	return index;
}

static inline uint32_t made_write(struct made *made, uint32_t queue, uint32_t memory,
				  uint64_t offset, const void *data, size_t bytes)
{
	uint32_t index = made_command(made, TS_COMMAND_COPY, queue);

	made->commands[index].object = memory;
	made->commands[index].offset = offset;
	made->commands[index].bytes = bytes;
	made->commands[index].blob = made_blob(made, data, bytes);
	return index;
}

static inline uint32_t made_fill(struct made *made, uint32_t queue, uint32_t memory,
				 const void *pattern, size_t pattern_bytes, uint64_t bytes)
{
	uint32_t index = made_command(made, TS_COMMAND_FILL, queue);

	made->commands[index].object = memory;
	made->commands[index].bytes = bytes;
	made->commands[index].blob = made_blob(made, pattern, pattern_bytes);
	return index;
}

static inline uint32_t made_capture(struct made *made, uint32_t position, uint32_t memory,
				    uint64_t offset, uint64_t bytes)
{
	uint32_t index = made->replay.capture_count++;

	TS_CHECK(index < MADE_MOST);
	made->captures[index] =
		(struct ts_replay_capture){ position, { memory, offset, bytes }, "each" };
	return index;
}

/* A read, and the capture of its result. */
static inline uint32_t made_read(struct made *made, uint32_t queue, uint32_t memory,
				 uint64_t offset, uint64_t bytes)
{
	uint32_t index = made_command(made, TS_COMMAND_COPY, queue);

	made->commands[index].other = memory;
	made->commands[index].other_offset = offset;
	made->commands[index].bytes = bytes;
	return made_capture(made, index, NONE, 0, bytes);
}

/* Arguments: the raw block holds byte values. */
static inline uint32_t made_launch(struct made *made, uint32_t queue, uint32_t function,
				   uint64_t global, uint64_t local,
				   const struct ts_replay_arg *args, uint32_t arg_count,
				   const void *block, size_t block_bytes)
{
	uint32_t index = made_command(made, TS_COMMAND_LAUNCH, queue);
	struct ts_replay_command_info *command = &made->commands[index];

	command->object = function;
	command->dimensions = 1;
	command->global[0] = global;
	command->local[0] = local;
	command->args = ts_arena_copy(&made->stream.arena, args, arg_count * sizeof(*args));
	command->arg_count = arg_count;
	if (block_bytes)
		command->blob = made_blob(made, block, block_bytes);
	return index;
}

static inline struct ts_replay_arg made_memory_arg(const struct made *made, uint32_t memory)
{
	return (struct ts_replay_arg){ .kind = TS_REPLAY_ARG_MEMORY,
				       .access = TS_REPLAY_READS | TS_REPLAY_WRITES,
				       .memory = memory,
				       .bytes = made->objects[memory].bytes };
}

static inline void made_waits(struct made *made, uint32_t command, uint32_t first, uint32_t second)
{
	uint32_t waits[] = { first, second };

	made->commands[command].waits = ts_arena_copy(&made->stream.arena, waits, sizeof(waits));
	made->commands[command].wait_count = second == NONE ? 1 : 2;
}

static inline void made_user_wait(struct made *made, uint32_t command, uint32_t event)
{
	made->commands[command].user_waits =
		ts_arena_copy(&made->stream.arena, &event, sizeof(event));
	made->commands[command].user_wait_count = 1;
}

static inline uint32_t made_set(struct made *made, uint32_t event)
{
	uint32_t index = made_command(made, TS_COMMAND_RECORD, NONE);

	made->commands[index].user_event = event;
	return index;
}

/* ---- a session ---- */

static int made_content(void *context, uint32_t capture, const void *data, struct ts_error *err)
{
	struct made *made = context;
	uint64_t bytes = made->captures[capture].range.bytes;

	TS_CHECK(made->content[capture] == NULL);
	made->content[capture] = malloc(bytes);
	TS_CHECK(made->content[capture] != NULL);
	memcpy(made->content[capture], data, bytes);
	return TS_OK;
}

static inline void made_forget(struct made *made)
{
	for (uint32_t i = 0; i < MADE_MOST; i++) {
		free(made->content[i]);
		made->content[i] = NULL;
	}
}

/* One device, one context, one queue in order. */
static inline struct made *made_start(const char *device_name)
{
	struct made *made = calloc(1, sizeof(*made));
	int fd;

	TS_CHECK(made != NULL);
	snprintf(made->path, sizeof(made->path), "/tmp/ts-replay-opencl-XXXXXX");
	fd = mkstemp(made->path);
	TS_CHECK(fd >= 0);
	close(fd);
	TS_CHECK_INT(
		ts_writer_open(&made->writer, made->path,
			       &(struct ts_writer_options){
				       .size = sizeof(struct ts_writer_options), .threads = -1 },
			       NULL),
		0);
	made->stream.objects = made->objects;
	made->stream.commands = made->commands;
	made->replay.stream = &made->stream;
	made->replay.captures = made->captures;
	made->replay.options.target = &ts_replay_target_opencl;
	made->replay.options.repeat = 1;
	made->device = made_device(made, device_name);
	made->context = made_context(made);
	made->queue = made_queue(made, made->device, 0);
	return made;
}

static inline int made_open(struct made *made)
{
	int rc;

	TS_CHECK_INT(ts_writer_finish(made->writer, NULL), 0);
	ts_writer_close(made->writer);
	made->writer = NULL;
	TS_CHECK_INT(ts_reader_open(&made->stream.reader, made->path, NULL), 0);
	/* The reader keeps it open. A skipped test leaves nothing behind. */
	unlink(made->path);
	made->replay.reader = made->stream.reader;
	made->replay.plan.order = made->order;
	made->replay.plan.kept = made->kept;
	made->replay.plan.count = made->stream.command_count;
	rc = ts_replay_target_opencl.open(&made->replay, &made->replay.session, &made->err);
#ifndef TS_HAVE_OPENCL
	TS_CHECK_INT(rc, TS_ECAP);
	ts_test_skip("this build has no OpenCL");
#endif
	if (rc == TS_ECAP && (strstr(made->err.message, "there is no OpenCL")))
		ts_test_skip(made->err.message);
	return rc;
}

static inline int made_run(struct made *made)
{
	struct ts_replay_outcome outcome = { .times = made->times,
					     .content = made_content,
					     .context = made };

	made_forget(made);
	memset(made->times, 0, sizeof(made->times));
	return ts_replay_target_opencl.run(made->replay.session, 1, &outcome, &made->err);
}

static inline void made_end(struct made *made)
{
	if (made->replay.session)
		ts_replay_target_opencl.close(made->replay.session);
	made_forget(made);
	ts_reader_close(made->stream.reader);
	ts_writer_close(made->writer);
	ts_arena_release(&made->stream.arena);
	unlink(made->path);
	free(made);
}

/* Opens and runs twice: all results must arrive, and be equal. */
static inline void made_run_twice(struct made *made)
{
	uint32_t count = made->replay.capture_count;
	void *first[MADE_MOST];

	if (made_open(made))
		ts_test_fail(__FILE__, __LINE__, "open: %s", made->err.message);
	if (made_run(made))
		ts_test_fail(__FILE__, __LINE__, "run: %s", made->err.message);
	memcpy(first, made->content, sizeof(first));
	memset(made->content, 0, sizeof(made->content));
	if (made_run(made))
		ts_test_fail(__FILE__, __LINE__, "run again: %s", made->err.message);
	for (uint32_t i = 0; i < count; i++) {
		TS_CHECK(first[i] != NULL && made->content[i] != NULL);
		TS_CHECK_MEM(first[i], made->content[i], made->captures[i].range.bytes);
		free(first[i]);
	}
}

#endif
