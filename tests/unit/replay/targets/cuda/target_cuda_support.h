/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command streams for tests of the target cuda, made row by row and loaded as a replay does, and
 * run on the stand-in driver (tests/cuda/driver). Captures keep the results of a run.
 */
#ifndef TS_TESTS_UNIT_REPLAY_TARGETS_CUDA_TARGET_CUDA_SUPPORT_H
#define TS_TESTS_UNIT_REPLAY_TARGETS_CUDA_TARGET_CUDA_SUPPORT_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code/cuda/local/page_kernels.h"
#include "replay/replay.h"
#include "unit/replay/replay_cuda_fixture.h"
#include "unit/runner.h"

#define PAGE TS_PAGE_BYTES
#define ADDRESS(page) (CUDA_ARENA + (uint64_t)(page)*PAGE)
#define MOST_CAPTURES 64u
#define NONE TS_REPLAY_NONE
#define STAND_IN_NAME "Stand-in H1"
#define ARENA_OF_FOUR "\"sparse\":true,\"space\":\"device\",\"mapped\":[[0,8388608]]"
/* Further objects: kernels of tests/cuda/work_kernels.cu. */
enum {
	KERNEL_ADD = CUDA_NEXT,
	KERNEL_FILL,
	KERNEL_USE_GLOBAL,
	KERNEL_ADD_TO_GLOBAL,
	KERNEL_READ_THROUGH_TABLE,
	KERNEL_SPIN,
	VARIABLE_WORDS,
	VARIABLE_SUMS,
	GRAPH_1,
};

struct cuda_target {
	struct fixture_trace trace;
	struct ts_reader *reader;
	struct ts_replay *replay;
	struct ts_replay_session *session;
	struct ts_replay_capture captures[MOST_CAPTURES];
	struct ts_replay_outcome outcome;
	struct ts_replay_times times[256];
	void *content[MOST_CAPTURES];
	struct ts_replay_page *pages[MOST_CAPTURES];
	uint64_t page_counts[MOST_CAPTURES];
	struct ts_error err;
	char path[64];
	int64_t open; /* sequence of OPEN */
};

/* ---- a trace ---- */

static inline uint32_t cuda_target_image(struct cuda_target *target)
{
	FILE *file = fopen(TS_TESTS_CUDA "/work_kernels.fatbin", "rb");
	static char image[1 << 20];
	size_t bytes;

	TS_CHECK(file != NULL);
	bytes = fread(image, 1, sizeof(image), file);
	TS_CHECK(bytes > 0 && bytes < sizeof(image));
	fclose(file);
	return fixture_blob(&target->trace, image, bytes);
}

static inline void cuda_target_objects(struct cuda_target *target, const char *device_name,
				       const char *arena, uint32_t image)
{
	struct fixture_trace *trace = &target->trace;
	static const struct {
		int64_t number;
		const char *name;
	} kernels[] = {
		{ KERNEL_ADD, "add" },
		{ KERNEL_FILL, "fill" },
		{ KERNEL_USE_GLOBAL, "use_global" },
		{ KERNEL_ADD_TO_GLOBAL, "add_to_global" },
		{ KERNEL_READ_THROUGH_TABLE, "read_through_table" },
		{ KERNEL_SPIN, "spin_until_host" },
	};

	fixture_object(trace, TS_OBJECT_DEVICE, CUDA_DEVICE, 0, device_name, 0, 0,
		       "\"platform\":\"cuda\",\"index\":0,\"compute\":[9,0],\"driver\":13000,"
		       "\"memory\":150000000000");
	fixture_object(trace, TS_OBJECT_CONTEXT, CUDA_CONTEXT, CUDA_DEVICE, NULL, 0, 0,
		       "\"devices\":[1],\"primary\":true,\"flags\":0,\"limits\":[[0,1024]]");
	cuda_stream(trace, CUDA_STREAM, ",\"flags\":0");
	cuda_stream(trace, CUDA_STREAM_2, ",\"flags\":1");
	cuda_stream(trace, CUDA_LEGACY, ",\"default\":\"legacy\"");
	fixture_object(trace, TS_OBJECT_MODULE, CUDA_MODULE, CUDA_CONTEXT, NULL, 0, image,
		       "\"from\":\"fatbin\",\"library\":true");
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		fixture_object(trace, TS_OBJECT_FUNCTION, kernels[i].number, CUDA_MODULE,
			       kernels[i].name, 0, 0, "\"attributes\":[]");
	cuda_memory(trace, CUDA_MEMORY, CUDA_DEVICE, CUDA_ARENA, CUDA_ARENA_BYTES, NULL, arena);
	cuda_memory(trace, CUDA_HOST_MEMORY, 0, 0, 0, NULL,
		    "\"sparse\":true,\"space\":\"host\",\"mapped\":[[26388279066624,65536,2]]");
	cuda_memory(trace, VARIABLE_WORDS, CUDA_MODULE, 0x7f0000000000, 128, "words",
		    "\"global\":true");
	cuda_memory(trace, VARIABLE_SUMS, CUDA_MODULE, 0x7f0000000200, 128, "sums",
		    "\"global\":true");
}

static inline struct cuda_target *cuda_target_new(void)
{
	struct cuda_target *target = calloc(1, sizeof(*target));
	int fd;

	TS_CHECK(target != NULL);
	/* Found by its name when the target opens the driver. */
	if (!dlopen(TS_TESTS_CUDA_DRIVER "/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL))
		ts_test_skip("there is no stand-in for the CUDA driver");
	snprintf(target->path, sizeof(target->path), "/tmp/ts-replay-cuda-XXXXXX");
	fd = mkstemp(target->path);
	TS_CHECK(fd >= 0);
	close(fd);
	fixture_open(&target->trace, target->path);
	return target;
}

/* Opens a window over an arena whose first four pages are mapped. */
static inline struct cuda_target *cuda_target_start(int64_t pieces)
{
	struct cuda_target *target = cuda_target_new();

	cuda_target_objects(target, STAND_IN_NAME, ARENA_OF_FOUR, cuda_target_image(target));
	target->open = cuda_begin(&target->trace, 1, pieces);
	return target;
}

static inline int64_t cuda_target_launch(struct cuda_target *target, int64_t queue, int64_t kernel,
					 const void *params, size_t bytes, const char *more)
{
	char details[512];

	snprintf(details, sizeof(details),
		 "{\"call\":\"cuLaunchKernel\",\"grid\":[2,1,1],\"block\":[32,1,1],\"shared\":0%s}",
		 more);
	return fixture_command(
		&target->trace,
		&(struct fixture_command){ .kind = TS_COMMAND_LAUNCH,
					   .queue = queue,
					   .object = kernel,
					   .blob = fixture_blob(&target->trace, params, bytes),
					   .details = details });
}

/* out[i] = value + i */
static inline int64_t cuda_target_fill(struct cuda_target *target, int64_t queue, uint64_t out,
				       uint32_t value, uint32_t count)
{
	struct {
		uint64_t out;
		uint32_t value, count;
	} params = { out, value, count };

	return cuda_target_launch(target, queue, KERNEL_FILL, &params, sizeof(params), "");
}

/* out[i] = a[i] + b[i] */
static inline int64_t cuda_target_add(struct cuda_target *target, int64_t queue, uint64_t out,
				      uint64_t a, uint64_t b, uint32_t count)
{
	struct {
		uint64_t out, a, b;
		uint32_t count, padding;
	} params = { out, a, b, count, 0 };

	return cuda_target_launch(target, queue, KERNEL_ADD, &params, sizeof(params) - 4, "");
}

static inline int64_t cuda_target_plain(struct cuda_target *target, struct fixture_command command)
{
	command.details = command.details ? command.details : "{}";
	return fixture_command(&target->trace, &command);
}

/* ---- a session ---- */

static int cuda_target_content(void *context, uint32_t capture, const void *data,
			       struct ts_error *err)
{
	struct cuda_target *target = context;
	uint64_t bytes = target->captures[capture].range.bytes;

	TS_CHECK(target->content[capture] == NULL);
	target->content[capture] = malloc(bytes);
	TS_CHECK(target->content[capture] != NULL);
	memcpy(target->content[capture], data, bytes);
	return TS_OK;
}

static int cuda_target_pages(void *context, uint32_t capture, const struct ts_replay_page *pages,
			     uint64_t count, struct ts_error *err)
{
	struct cuda_target *target = context;

	TS_CHECK(target->pages[capture] == NULL);
	target->pages[capture] = malloc((count + 1) * sizeof(*pages));
	TS_CHECK(target->pages[capture] != NULL);
	memcpy(target->pages[capture], pages, count * sizeof(*pages));
	target->page_counts[capture] = count;
	return TS_OK;
}

static inline void cuda_target_forget(struct cuda_target *target)
{
	for (uint32_t i = 0; i < MOST_CAPTURES; i++) {
		free(target->content[i]);
		free(target->pages[i]);
		target->content[i] = NULL;
		target->pages[i] = NULL;
	}
}

/* Ends the trace, loads it and opens a replay. */
static inline int cuda_target_load(struct cuda_target *target, struct ts_replay_options options)
{
	int rc;

	fixture_finish(&target->trace, 1, NULL);
	fixture_close(&target->trace);
	rc = ts_reader_open(&target->reader, target->path, &target->err);
	TS_CHECK_INT(rc, 0);
	options.target = &ts_replay_target_cuda;
	options.repeat = options.repeat ? options.repeat : 1;
	options.trusts_owner = true;
	return ts_replay_open(&target->replay, target->reader, &options, &target->err);
}

/* The same, and opens a session without captures. */
static inline int cuda_target_open(struct cuda_target *target, struct ts_replay_options options)
{
	int rc = cuda_target_load(target, options);

	if (rc)
		return rc;
	target->replay->captures = target->captures;
	target->replay->capture_count = 0;
	TS_CHECK(target->replay->plan.count < TS_ARRAY_SIZE(target->times));
	target->outcome = (struct ts_replay_outcome){ .times = target->times,
						      .content = cuda_target_content,
						      .pages = cuda_target_pages,
						      .context = target };
	return ts_replay_target_cuda.open(target->replay, &target->session, &target->err);
}

#define CUDA_TARGET_OPEN(target, ...)                                                    \
	do {                                                                             \
		if (cuda_target_open(target, (struct ts_replay_options){ __VA_ARGS__ })) \
			ts_test_fail(__FILE__, __LINE__, "%s", (target)->err.message);   \
	} while (0)

static inline int cuda_target_run(struct cuda_target *target, unsigned int number)
{
	cuda_target_forget(target);
	for (size_t i = 0; i < TS_ARRAY_SIZE(target->times); i++)
		target->times[i] = (struct ts_replay_times){ TS_ABSENT, TS_ABSENT, TS_ABSENT,
							     TS_ABSENT, TS_ABSENT, TS_ABSENT };
	target->outcome.untimed = (struct ts_replay_span){ TS_ABSENT, TS_ABSENT };
	return ts_replay_target_cuda.run(target->session, number, &target->outcome, &target->err);
}

#define CUDA_TARGET_RUN(target, number)                                                \
	do {                                                                           \
		if (cuda_target_run(target, number))                                   \
			ts_test_fail(__FILE__, __LINE__, "%s", (target)->err.message); \
	} while (0)

static inline void cuda_target_stop(struct cuda_target *target)
{
	if (target->session)
		ts_replay_target_cuda.close(target->session);
	if (target->replay)
		target->replay->capture_count = 0;
	ts_replay_close(target->replay);
	ts_reader_close(target->reader);
	unlink(target->path);
	cuda_target_forget(target);
	free(target);
}

/* Index of a memory object in the loaded stream, by number. */
static inline uint32_t cuda_target_object(const struct cuda_target *target, uint64_t number)
{
	for (uint32_t i = 0; i < target->replay->stream->object_count; i++)
		if (target->replay->stream->objects[i].number == number)
			return i;
	ts_test_fail(__FILE__, __LINE__, "no object %d", (int)number);
}

/* Memory (number 0: copied bytes) after a position of the plan; its end: UINT32_MAX. */
static inline uint32_t cuda_target_capture(struct cuda_target *target, uint32_t position,
					   uint64_t memory, uint64_t offset, uint64_t bytes)
{
	uint32_t index = target->replay->capture_count++;

	TS_CHECK(index < MOST_CAPTURES);
	target->captures[index] = (struct ts_replay_capture){
		.position = TS_MIN(position, target->replay->plan.count),
		.range = { memory ? cuda_target_object(target, memory) : NONE, offset, bytes },
		.why = "each",
	};
	return index;
}

static inline uint32_t cuda_target_capture_pages(struct cuda_target *target, uint32_t position)
{
	uint32_t index = cuda_target_capture(target, position, 0, 0, 0);

	target->captures[index].is_pages = true;
	return index;
}

/* The hash of a page that a capture has; 0: none. */
static inline uint64_t cuda_target_hash(const struct cuda_target *target, uint32_t capture,
					uint64_t memory, uint64_t offset)
{
	uint32_t object = cuda_target_object(target, memory);

	for (uint64_t i = 0; i < target->page_counts[capture]; i++)
		if (target->pages[capture][i].memory == object &&
		    target->pages[capture][i].offset == offset)
			return target->pages[capture][i].hash;
	return 0;
}

static inline void cuda_target_check_filled(const void *data, uint32_t value, uint32_t count)
{
	const uint32_t *words = data;

	for (uint32_t i = 0; i < count; i++)
		TS_CHECK_INT(words[i], value + i);
}

#endif
