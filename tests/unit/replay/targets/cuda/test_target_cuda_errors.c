/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot run is an error with a name, before anything runs if that is possible. */
#include <sys/mman.h>

#include "unit/replay/targets/cuda/target_cuda_support.h"

/* The session does not open, or the first run fails, with a message that holds these texts. */
static int check_failure(struct cuda_target *target, struct ts_replay_options options,
			 const char *first, const char *second)
{
	int rc = cuda_target_open(target, options);

	if (!rc)
		rc = cuda_target_run(target, 0);
	TS_CHECK(rc < 0);
	TS_CHECK_INT(target->err.code, rc);
	if (!strstr(target->err.message, first) || !strstr(target->err.message, second))
		ts_test_fail(__FILE__, __LINE__, "message is \"%s\"", target->err.message);
	cuda_target_stop(target);
	return rc;
}

static struct cuda_target *start_on(const char *device, const char *arena)
{
	struct cuda_target *target = cuda_target_new();

	cuda_target_objects(target, device, arena, cuda_target_image(target));
	target->open = cuda_begin(&target->trace, 1, 0);
	return target;
}

TS_TEST(another_model)
{
	struct cuda_target *target = start_on("NVIDIA H200", ARENA_OF_FOUR);

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	check_failure(target, (struct ts_replay_options){ 0 },
		      "the trace was recorded on 'NVIDIA H200' (compute 9.0)", STAND_IN_NAME);
}

TS_TEST(another_model_that_was_asked_for)
{
	struct cuda_target *target = start_on("NVIDIA H200", ARENA_OF_FOUR);
	struct ts_replay_report *report = calloc(1, sizeof(*report));

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	CUDA_TARGET_OPEN(target, .device = "0");
	CUDA_TARGET_RUN(target, 0);
	ts_replay_target_cuda.report(target->session, report);
	TS_CHECK_STR(report->note, "recorded on 'NVIDIA H200', so results may differ");
	/* Why the runs differ is not all that is to be said. */
	strcpy(report->note, "it is rare");
	ts_replay_target_cuda.report(target->session, report);
	TS_CHECK_STR(report->note, "it is rare; recorded on 'NVIDIA H200', so results may differ");
	free(report);
	cuda_target_stop(target);
}

TS_TEST(no_such_device)
{
	struct cuda_target *target = cuda_target_start(0);

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	TS_CHECK_INT(check_failure(target, (struct ts_replay_options){ .device = "7" },
				   "there is no device '7'", STAND_IN_NAME),
		     TS_ECAP);
}

TS_TEST(too_little_memory)
{
	/* 4 TiB */
	struct cuda_target *target =
		start_on(STAND_IN_NAME,
			 "\"sparse\":true,\"space\":\"device\",\"mapped\":[[0,1099511627776]]");

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	check_failure(target, (struct ts_replay_options){ 0 }, "the window needs 1 TiB",
		      "available");
}

/* Known in the middle of a run only: this machine is too small, the trace is not bad. */
TS_TEST(too_little_memory_for_what_is_mapped_later)
{
	struct cuda_target *target;

	setenv("STAND_IN_MEMORY", "67108864", 1); /* 64 MiB */
	target = cuda_target_start(0);
	cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_ALLOC,
							    .object = CUDA_MEMORY,
							    .offset = 64 * (int64_t)PAGE,
							    .bytes = 64 * (int64_t)PAGE });
	TS_CHECK_INT(check_failure(target, (struct ts_replay_options){ 0 },
				   "cannot map memory at 0x2000", "CUDA_ERROR_OUT_OF_MEMORY"),
		     TS_ECAP);
}

TS_TEST(too_little_memory_of_the_host)
{
	struct cuda_target *target = cuda_target_start(0);

	/* 16 TiB */
	cuda_target_plain(target,
			  (struct fixture_command){ .kind = TS_COMMAND_ALLOC,
						    .object = CUDA_HOST_MEMORY,
						    .offset = CUDA_HOST + ((int64_t)1 << 30),
						    .bytes = (int64_t)1 << 44 });
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	check_failure(target, (struct ts_replay_options){ 0 },
		      "the window needs 16 TiB of pinned host memory", "this machine has");
}

TS_TEST(code_for_another_device)
{
	setenv("STAND_IN_COMPUTE", "50", 1);
	{
		struct cuda_target *target = cuda_target_start(0);

		cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
		check_failure(target, (struct ts_replay_options){ 0 }, "module 7",
			      "no code for compute capability 5.0");
	}
}

TS_TEST(an_image_that_is_none)
{
	struct cuda_target *target = cuda_target_new();

	cuda_target_objects(target, STAND_IN_NAME, ARENA_OF_FOUR,
			    fixture_blob(&target->trace, "not an image", 12));
	cuda_begin(&target->trace, 1, 0);
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	check_failure(target, (struct ts_replay_options){ 0 }, "module 7",
		      "neither a fatbin nor a cubin nor PTX");
}

TS_TEST(occupied_device_addresses)
{
	setenv("STAND_IN_OCCUPIED", "0x200000000000", 1);
	{
		struct cuda_target *target = cuda_target_start(0);

		cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
		check_failure(target, (struct ts_replay_options){ 0 },
			      "device addresses 0x200000000000 to 0x220000000000", "occupied");
	}
}

TS_TEST(occupied_host_addresses)
{
	struct cuda_target *target = cuda_target_start(0);
	void *wanted = (void *)(uintptr_t)(CUDA_HOST + 4096);
	void *there = mmap(wanted, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TS_CHECK(there == wanted);
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	check_failure(target, (struct ts_replay_options){ 0 },
		      "host memory at 0x180000000000 to 0x180000010000", "occupied");
}

TS_TEST(an_illegal_address_names_the_kernel)
{
	struct cuda_target *target = cuda_target_start(0);

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(100), 1, 10);
	check_failure(target, (struct ts_replay_options){ 0 }, "launch of 'fill'",
		      "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
}

TS_TEST(an_illegal_address_names_the_command_if_each_is_checked)
{
	struct cuda_target *target = cuda_target_start(0);
	char text[64];
	int64_t bad;

	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	bad = cuda_target_fill(target, CUDA_STREAM, ADDRESS(100), 1, 10);
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	snprintf(text, sizeof(text), "command %d, launch of 'fill': CUDA", (int)bad);
	check_failure(target, (struct ts_replay_options){ .check = TS_REPLAY_CHECK_EACH }, text,
		      "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
}

TS_TEST(an_illegal_address_names_the_command_if_they_run_one_at_a_time)
{
	setenv("STAND_IN_LAZY", "1", 1);
	{
		struct cuda_target *target = cuda_target_start(0);
		char text[64];
		int64_t bad;

		cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
		bad = cuda_target_fill(target, CUDA_STREAM, ADDRESS(100), 1, 10);
		cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
		snprintf(text, sizeof(text), "command %d, launch of 'fill': CUDA", (int)bad);
		check_failure(target,
			      (struct ts_replay_options){ .check = TS_REPLAY_CHECK_NONE,
							  .one_at_a_time = true },
			      text, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
	}
}

/* The first run is watched, and has ended with its watch. */
TS_TEST(a_second_run_that_cannot_begin)
{
	struct cuda_target *target = cuda_target_start(1);
	struct ts_replay_monitor monitor = { 0 };
	static uint32_t content[3000];

	cuda_piece(&target->trace, target->open, CUDA_MEMORY, 0, content, sizeof(content));
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	CUDA_TARGET_OPEN(target, .monitor = &monitor);
	CUDA_TARGET_RUN(target, 0);
	/* What the first run changed is read again. */
	TS_CHECK_INT(truncate(target->path, 0), 0);
	TS_CHECK(cuda_target_run(target, 1) < 0);
	TS_CHECK(strstr(target->err.message, "memory at 0x200000000000") != NULL);
	cuda_target_stop(target);
}

/* ---- hostile values ---- */

/* Its offsets would be addresses of this process. */
TS_TEST(memory_that_is_neither_an_arena_nor_a_variable)
{
	struct cuda_target *target = cuda_target_start(0);
	static uint64_t victim;
	uint64_t bytes = 0x4141414141414141;

	cuda_memory(&target->trace, GRAPH_1, CUDA_CONTEXT, 0, INT64_MAX, NULL, "\"index\":1");
	cuda_target_plain(target,
			  (struct fixture_command){
				  .kind = TS_COMMAND_COPY,
				  .queue = CUDA_STREAM,
				  .object = GRAPH_1,
				  .offset = (int64_t)(uintptr_t)&victim,
				  .bytes = sizeof(bytes),
				  .blob = fixture_blob(&target->trace, &bytes, sizeof(bytes)) });
	check_failure(target, (struct ts_replay_options){ 0 }, "memory 21", "arena");
	TS_CHECK(victim == 0);
}

/* Memory is cleared for the program before the error of a kernel is known. */
TS_TEST(an_illegal_address_that_something_else_meets)
{
	setenv("STAND_IN_LAZY", "1", 1);
	{
		struct cuda_target *target = cuda_target_start(0);
		struct ts_replay_monitor monitor = { 0 };

		cuda_target_fill(target, CUDA_STREAM, ADDRESS(100), 1, 10);
		cuda_target_plain(target, (struct fixture_command){ .kind = TS_COMMAND_ALLOC,
								    .object = CUDA_MEMORY,
								    .offset = 8 * (int64_t)PAGE,
								    .bytes = PAGE });
		CUDA_TARGET_OPEN(target, .monitor = &monitor, .check = TS_REPLAY_CHECK_FINAL);
		TS_CHECK(cuda_target_run(target, 0) < 0);
		TS_CHECK(strstr(target->err.message, "CUDA_ERROR_ILLEGAL_ADDRESS") != NULL);
		TS_CHECK(monitor.is_doubtful);
		cuda_target_stop(target);
	}
}

TS_TEST(parameters_that_are_too_short)
{
	struct cuda_target *target = cuda_target_start(0);
	uint64_t out = ADDRESS(0);

	cuda_target_launch(target, CUDA_STREAM, KERNEL_FILL, &out, sizeof(out), "");
	check_failure(target, (struct ts_replay_options){ 0 }, "launch of 'fill'",
		      "8 bytes of parameters, the kernel reads 16");
}

TS_TEST(attributes_that_hold_handles)
{
	const uint64_t params[2] = { ADDRESS(0), 10ull << 32 | 1 };
	static const char *const ids[] = { "7", "12", "13", "99", "4294967298" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(ids); i++) {
		struct cuda_target *target = cuda_target_start(0);
		char more[64], text[64];

		snprintf(more, sizeof(more), ",\"attributes\":[[%s,\"01\"]]", ids[i]);
		snprintf(text, sizeof(text), "launch attribute %s cannot be replayed", ids[i]);
		cuda_target_launch(target, CUDA_STREAM, KERNEL_FILL, params, sizeof(params), more);
		check_failure(target, (struct ts_replay_options){ 0 }, "launch of 'fill'", text);
	}
}

TS_TEST(a_value_that_is_too_long)
{
	const uint64_t params[2] = { ADDRESS(0), 10ull << 32 | 1 };
	struct cuda_target *target = cuda_target_start(0);
	char more[256] = ",\"attributes\":[[4,\"";

	memset(more + strlen(more), 'a', 130);
	strcat(more, "\"]]");
	cuda_target_launch(target, CUDA_STREAM, KERNEL_FILL, params, sizeof(params), more);
	check_failure(target, (struct ts_replay_options){ 0 }, "launch of 'fill'", "hexadecimal");
}

TS_TEST(options_of_the_compiler_that_are_pointers)
{
	struct cuda_target *target = cuda_target_start(0);

	/* Where the compiler would write its messages. */
	fixture_object(&target->trace, TS_OBJECT_MODULE, 100, CUDA_CONTEXT, NULL, 0,
		       cuda_target_image(target),
		       "\"from\":\"fatbin\",\"jit\":[[3,140737488355328],[4,4096]]");
	fixture_object(&target->trace, TS_OBJECT_FUNCTION, 101, 100, "fill", 0, 0,
		       "\"attributes\":[]");
	cuda_target_launch(target, CUDA_STREAM, 101, "0123456789abcdef", 16, "");
	check_failure(target, (struct ts_replay_options){ 0 }, "module 100",
		      "compiler option 3 cannot be replayed");
}

TS_TEST(a_grid_that_is_too_large)
{
	const uint64_t params[2] = { ADDRESS(0), 10ull << 32 | 1 };
	struct cuda_target *target = cuda_target_start(0);

	cuda_target_launch(target, CUDA_STREAM, KERNEL_FILL, params, sizeof(params),
			   ",\"grid\":[99999999999,1,1]");
	check_failure(target, (struct ts_replay_options){ 0 }, "launch of 'fill'", "");
}

TS_TEST(a_variable_of_another_size)
{
	struct cuda_target *target = cuda_target_start(0);

	cuda_memory(&target->trace, 100, CUDA_MODULE, 0x7f0000001000, 4096, "factors",
		    "\"global\":true");
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	check_failure(target, (struct ts_replay_options){ 0 }, "'factors'",
		      "16 bytes in this process, 4096 in the recording");
}

TS_TEST(a_variable_that_does_not_exist)
{
	struct cuda_target *target = cuda_target_start(0);

	cuda_memory(&target->trace, 100, CUDA_MODULE, 0x7f0000001000, 16, "nobody",
		    "\"global\":true");
	cuda_target_fill(target, CUDA_STREAM, ADDRESS(0), 1, 10);
	check_failure(target, (struct ts_replay_options){ 0 }, "'nobody'", "not in its module");
}

TS_TEST(a_kernel_that_does_not_exist)
{
	struct cuda_target *target = cuda_target_start(0);

	fixture_object(&target->trace, TS_OBJECT_FUNCTION, 100, CUDA_MODULE, "nobody", 0, 0,
		       "\"attributes\":[]");
	cuda_target_launch(target, CUDA_STREAM, 100, "0123456789abcdef", 16, "");
	check_failure(target, (struct ts_replay_options){ 0 }, "'nobody'", "not in its module");
}
