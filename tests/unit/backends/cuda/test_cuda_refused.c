/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is not captured: the reasons that windows fail with, and how long a state prevents them. The
 * source runs inside programs, so it is included here.
 */
#include "unit/runner.h"

#include <stdarg.h>

#include "backends/cuda/stream/cuda_refused.c" /* NOLINT(bugprone-suspicious-include) */

/* ---- the rest of the backend ---- */

__thread struct cuda_thread cuda_thread;
struct cuda_call cuda_calls[CUDA_CALL_COUNT] = {
#define CUDA_CALL(name_, arguments, class_, number_, stream_, replay_) \
	[CUDA_INDEX_##                                                 \
		name_] = { .name = #name_, .number = number_, .replay = CUDA_REPLAY_##replay_ },
#include "backends/cuda/calls/cuda_calls.def"
};
static int result;
static bool is_open = true;
static char failed[128], prevented[128];
static struct cuda_stub_use stubs[4];

int cuda_invoke(struct cuda_call *call, const uintptr_t *args)
{
	return result;
}

bool capture_is_open(void)
{
	return is_open;
}

size_t capture_base_name(const char *name)
{
	const char *end = strstr(name, "_v2");

	return end ? (size_t)(end - name) : strlen(name);
}

void capture_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(failed, sizeof(failed), format, arguments);
	va_end(arguments);
}

void capture_prevent(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(prevented, sizeof(prevented), format, arguments);
	va_end(arguments);
}

bool cuda_stub_next(uint32_t *position, struct cuda_stub_use *ret_use)
{
	for (; *position < 4; ++*position) {
		if (stubs[*position].calls) {
			*ret_use = stubs[(*position)++];
			return true;
		}
	}
	return false;
}

enum cuda_replay cuda_other_replay(const char *name)
{
	if (!strncmp(name, "cuIpcOpenMemHandle", 18))
		return CUDA_REPLAY_MAKES_SHARED;
	return strcmp(name, "cuTexRefSetMipmapLevelBias") ? CUDA_REPLAY_REFUSED
							  : CUDA_REPLAY_HARMLESS;
}

/* ---- the program ---- */

/* The reason of a failure since the last time; NULL: there was none. */
static void check_failed(const char *why)
{
	TS_CHECK_STR(failed, why ? why : "");
	failed[0] = 0;
}

static void check_state(const char *why)
{
	char text[128];

	TS_CHECK_STR(capture_refused_state(text, sizeof(text)), why);
}

static void change(unsigned int index)
{
	uintptr_t args[8] = { 0 };

	TS_CHECK_INT(capture_state_call(&cuda_calls[index], args), result);
}

TS_TEST(a_refused_call_is_named)
{
	static const struct {
		const char *name, *why;
	} calls[] = {
		{ "cuLaunchHostFunc", "host function (cuLaunchHostFunc)" },
		{ "cuStreamWriteValue32_v2",
		  "memory operation of a stream (cuStreamWriteValue32)" },
		{ "cuMemcpyAtoA_v2", "copy of an array (cuMemcpyAtoA)" },
		{ "cuEGLStreamConsumerConnect", "graphics resource (cuEGLStreamConsumerConnect)" },
		{ "cuNobodyKnowsIt", "call (cuNobodyKnowsIt)" },
	};
	uintptr_t args[1] = { 0 };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct cuda_call call = { .name = calls[i].name };

		result = 0;
		capture_refused_call(&call, args);
		check_failed(calls[i].why);
		/* One that failed has done nothing. */
		result = CUDA_INVALID_VALUE;
		TS_CHECK_INT(capture_refused_call(&call, args), CUDA_INVALID_VALUE);
		check_failed(NULL);
	}
}

TS_TEST(a_state_lasts_until_all_of_it_is_gone)
{
	check_state(NULL);
	change(CUDA_INDEX_cuTexObjectCreate);
	check_failed("texture (cuTexObjectCreate)");
	change(CUDA_INDEX_cuTexObjectCreate);
	change(CUDA_INDEX_cuArrayCreate_v2);
	check_failed("array (cuArrayCreate)");
	result = CUDA_INVALID_VALUE;
	change(CUDA_INDEX_cuTexObjectDestroy);
	result = 0;
	check_state("array (cuArrayCreate)");
	change(CUDA_INDEX_cuArrayDestroy);
	change(CUDA_INDEX_cuTexObjectDestroy);
	check_state("texture (cuTexObjectCreate)");
	change(CUDA_INDEX_cuTexObjectDestroy);
	check_failed(NULL);
	check_state(NULL);
	/* That of one kind does not make up for that of another. */
	change(CUDA_INDEX_cuMulticastCreate);
	change(CUDA_INDEX_cuTexObjectDestroy);
	check_state("multicast object (cuMulticastCreate)");
}

TS_TEST(contexts_take_their_states_along)
{
	change(CUDA_INDEX_cuArrayCreate_v2);
	change(CUDA_INDEX_cuMulticastCreate);
	capture_refused_forget();
	check_state("multicast object (cuMulticastCreate)");
}

static void allocate(uint64_t address)
{
	uintptr_t args[3] = { (uintptr_t)&address, 100, 1 };

	allocate_managed(&cuda_calls[CUDA_INDEX_cuMemAllocManaged], args);
}

TS_TEST(managed_memory_is_known_by_its_address)
{
	for (uint64_t i = 1; i <= 200; i++)
		allocate(i * 4096);
	check_failed("managed memory (cuMemAllocManaged)");
	/* Other memory is freed by the same function. */
	capture_managed_freed(4097);
	for (uint64_t i = 1; i < 200; i++)
		capture_managed_freed(i * 4096);
	capture_managed_freed(4096);
	check_state("managed memory (cuMemAllocManaged)");
	capture_managed_freed(200 * 4096);
	check_state(NULL);
	/* An address of a context that is gone may be that of anything. */
	allocate(4096);
	capture_refused_forget();
	check_state(NULL);
	allocate(8192);
	capture_managed_freed(4096);
	check_state("managed memory (cuMemAllocManaged)");
}

TS_TEST(export_tables_of_others_prevent_windows)
{
	static uint8_t unknown[16] = {
		0x17, 0x34, 0xdc, 0x26, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
	};
	uintptr_t args[2] = { 0, (uintptr_t)unknown };
	struct cuda_call *call = &cuda_calls[CUDA_INDEX_cuGetExportTable];

	cuda_thread.caller = NULL;
	result = CUDA_INVALID_VALUE;
	get_export_table(call, args);
	TS_CHECK_STR(prevented, "");
	result = 0;
	args[1] = (uintptr_t)runtime_tables[3];
	get_export_table(call, args);
	TS_CHECK_STR(prevented, "");
	args[1] = (uintptr_t)unknown;
	get_export_table(call, args);
	TS_CHECK_STR(prevented, "export table 1734dc26-0102-0304-0506-0708090a0b0c");
	/* This program is no library of NVIDIA's. */
	prevented[0] = 0;
	cuda_thread.caller = (void *)get_export_table;
	get_export_table(call, args);
	TS_CHECK(prevented[0]);
}

TS_TEST(collectives_fail_open_windows)
{
	capture_collective("ncclAllReduce");
	check_failed("NCCL communicator (ncclAllReduce)");
}

TS_TEST(calls_past_their_wrapper_fail_open_windows)
{
	cuda_call_bypassed(cuda_calls[CUDA_INDEX_cuLaunchKernel].number);
	check_failed("call past its wrapper (cuLaunchKernel)");
	cuda_call_bypassed(0);
	check_failed(NULL);
	is_open = false;
	cuda_call_bypassed(cuda_calls[CUDA_INDEX_cuLaunchKernel].number);
	check_failed(NULL);
}

TS_TEST(functions_without_a_wrapper_count_from_the_opening_on)
{
	char text[128];

	stubs[0] = (struct cuda_stub_use){ "cuLaunchKernel", 5 }; /* has a wrapper */
	stubs[1] = (struct cuda_stub_use){ "cuNobodyKnowsIt", 3 };
	stubs[2] = (struct cuda_stub_use){ "cuTexRefSetMipmapLevelBias", 1 };
	capture_refused_begin();
	TS_CHECK(!capture_refused_used(text, sizeof(text)));
	stubs[0].calls++;
	stubs[2].calls++;
	TS_CHECK(!capture_refused_used(text, sizeof(text)));
	stubs[1].calls++;
	TS_CHECK_STR(capture_refused_used(text, sizeof(text)), "call (cuNobodyKnowsIt)");
	capture_refused_begin();
	TS_CHECK(!capture_refused_used(text, sizeof(text)));
	/* One that was never called before. */
	stubs[3] = (struct cuda_stub_use){ "cuIsNew", 1 };
	TS_CHECK_STR(capture_refused_used(text, sizeof(text)), "call (cuIsNew)");
}

TS_TEST(memory_of_other_processes_is_opened_by_a_stub_and_closed_by_a_wrapper)
{
	char text[128];

	stubs[1] = (struct cuda_stub_use){ "cuIpcOpenMemHandle_v2", 2 };
	check_state("memory of another process (cuIpcOpenMemHandle)");
	change(CUDA_INDEX_cuIpcCloseMemHandle);
	check_state("memory of another process (cuIpcOpenMemHandle)");
	change(CUDA_INDEX_cuIpcCloseMemHandle);
	check_state(NULL);
	capture_refused_begin();
	stubs[1].calls++;
	check_state("memory of another process (cuIpcOpenMemHandle)");
	TS_CHECK_STR(capture_refused_used(text, sizeof(text)),
		     "memory of another process (cuIpcOpenMemHandle)");
}
