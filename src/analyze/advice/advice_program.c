/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which program a trace is of, so that remedies are given in its terms: PyTorch's only if PyTorch
 * is in the trace, else those of the vendor's API that it calls.
 */
#include <string.h>

#include "analyze/advice/advice.h"
#include "base/text.h"

static const struct ts_advice_words torch_words = {
	.launch_less = "use a graph (CUDA graphs, torch.compile), larger batches or less host work",
	.launch_at_once =
		"launch many at once with a graph (CUDA graphs, torch.compile with reduce-overhead), or fuse them",
	.wait_less =
		"avoid reading results back (.item(), .cpu(), nonzero) inside the loop, or read them a step later",
	.pin = "use pin_memory=True and non_blocking=True",
	.fuse = "fuse each chain into one kernel (torch.compile, a fused operator)",
	.speed_up = "try other shapes or layouts, bfloat16, torch.compile or more threads",
	.batch = "fuse them (torch.compile), use a fused or foreach optimizer, or larger batches",
	.show_host = "record stacks to see where (torch.profiler: with_stack=True)",
};

/* Words of every program without a framework. */
/* clang-format off */
#define COMMON_WORDS \
	.wait_less = "wait only for what the next launch needs, or a step later", \
	.fuse = "fuse each chain into one kernel", \
	.speed_up = "look there first", \
	.batch = "do more work in each, or combine them", \
	.show_host = "add spans there, or sample it (tracesmith record, perf record)"
/* clang-format on */

static const struct ts_advice_words cuda_words = {
	.launch_less = "use CUDA graphs, larger batches or less host work",
	.launch_at_once = "launch many at once with a CUDA graph, or fuse them",
	.pin = "use pinned memory (cudaMallocHost, cudaHostRegister) and asynchronous copies",
	COMMON_WORDS,
};

static const struct ts_advice_words hip_words = {
	.launch_less = "use HIP graphs, larger batches or less host work",
	.launch_at_once = "launch many at once with a HIP graph, or fuse them",
	.pin = "use pinned memory (hipHostMalloc, hipHostRegister) and asynchronous copies",
	COMMON_WORDS,
};

/* Of an API that has no graphs, or is not known. */
static const struct ts_advice_words other_words = {
	.launch_less = "launch fewer and larger kernels, or do less on the host in between",
	.launch_at_once = "fuse them, or launch them before they are needed",
	.pin = "use pinned memory and asynchronous copies",
	COMMON_WORDS,
};

/* Operators and kernels of PyTorch are named after their namespaces. */
static bool has_torch_names(const struct ts_work *work)
{
	for (uint32_t i = 0; i < ts_strmap_count(&work->names); i++) {
		const char *name = ts_work_text(work, i);

		if (ts_starts_with(name, "aten::") || ts_starts_with(name, "ProfilerStep#") ||
		    strstr(name, "at::native::"))
			return true;
	}
	return false;
}

/* A recorded program has its Python files and its libraries in its stacks. */
static bool has_torch_code(struct ts_reader *reader)
{
	const struct ts_mapping_row *mapping;
	const struct ts_frame_row *frame;
	size_t cursor = 0;
	int64_t id;

	while ((mapping = ts_reader_entity_next(reader, TS_TABLE_MAPPING, &cursor, &id)))
		if (strstr(ts_reader_string(reader, mapping->path).data, "/libtorch"))
			return true;
	cursor = 0;
	while ((frame = ts_reader_entity_next(reader, TS_TABLE_FRAME, &cursor, &id)))
		if (strstr(ts_reader_string(reader, frame->file).data, "/torch/"))
			return true;
	return false;
}

const struct ts_advice_words *ts_advice_words(const struct ts_work *work)
{
	if (has_torch_names(work))
		return &torch_words;
	for (uint32_t i = 0; i < work->trace_count; i++)
		if (has_torch_code(work->readers[i]))
			return &torch_words;
	for (uint32_t i = 0; i < work->call_count; i++) {
		const char *name = ts_work_text(work, work->calls[i].name);

		if (ts_starts_with(name, "hip"))
			return &hip_words;
		if (ts_starts_with(name, "cu"))
			return &cuda_words;
	}
	return &other_words;
}

/* ---- what to record ---- */

const char *ts_advice_record_calls(const struct ts_work *work)
{
	static const struct {
		const char *format, *how;
	} formats[] = {
		{ "rocprof", "rocprofv3 --sys-trace records them" },
		{ "rocpd", "rocprofv3 --sys-trace records them" },
		{ "rocprof-csv", "rocprofv3 --sys-trace records them" },
		{ "nsys", "nsys profile --trace=cuda,osrt,nvtx records them" },
		{ "kineto", "torch.profiler records them with ProfilerActivity.CPU" },
		{ "tracesmith", "record from the start of the program" },
	};

	if (work->call_count)
		return "record all calls of the runtime, or sample the host, too (tracesmith record -p PID)";
	for (uint32_t i = 0; i < work->rank_count; i++) {
		struct ts_reader *reader = work->readers[work->ranks[i].trace];
		const struct ts_source_row *source =
			ts_reader_entity(reader, TS_TABLE_SOURCE, work->ranks[i].source);
		const char *format = source ? ts_reader_string(reader, source->format).data : "";

		for (size_t k = 0; k < TS_ARRAY_SIZE(formats); k++)
			if (!strcmp(format, formats[k].format))
				return formats[k].how;
	}
	return "record the calls of the driver or runtime, too";
}
