/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies vendor API and kernel names: functions of CUDA, HIP, OpenCL, Level Zero and MTIA by
 * exact name or prefix, kernels by substring.
 */
#include "model/api_names.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

static bool contains(const char *text, size_t length, const char *part)
{
	return memmem(text, length, part, strlen(part)) != NULL;
}

static bool starts_with_any(const char *text, size_t length, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (ts_starts_with_len(text, length, *prefixes))
			return true;
	return false;
}

static bool contains_any(const char *text, size_t length, const char *const *substrings)
{
	for (; *substrings; substrings++)
		if (contains(text, length, *substrings))
			return true;
	return false;
}

/* ---- calls ---- */

struct call_name {
	const char *name; /* after the vendor's prefix; a trailing '*' matches any rest */
	enum ts_api_kind kind;
};

/* CUDA's runtime and driver, and HIP, which shares their names. The first match counts. */
static const struct call_name cuda_call_names[] = {
	{ "GraphLaunch*", TS_API_GRAPH },
	{ "Launch*",
	  TS_API_LAUNCH }, /* LaunchKernel, LaunchKernelExC, LaunchCooperativeKernel ... */
	{ "ExtLaunch*", TS_API_LAUNCH },
	{ "ExtModuleLaunch*", TS_API_LAUNCH },
	{ "ModuleLaunch*", TS_API_LAUNCH },
	{ "HccModuleLaunch*", TS_API_LAUNCH },
	{ "Memcpy*", TS_API_COPY },
	{ "Memset*", TS_API_FILL },
	{ "MemPrefetch*", TS_API_COPY },
	{ "EventRecord*", TS_API_EVENT_RECORD },
	{ "StreamWaitEvent*", TS_API_STREAM_WAIT },
	{ "StreamWaitValue*", TS_API_STREAM_WAIT },
	{ "EventSynchronize*", TS_API_EVENT_SYNC },
	{ "StreamSynchronize*", TS_API_STREAM_SYNC },
	{ "DeviceSynchronize*", TS_API_DEVICE_SYNC },
	{ "ThreadSynchronize*", TS_API_DEVICE_SYNC },
	{ "CtxSynchronize*", TS_API_DEVICE_SYNC },
	{ "EventQuery*", TS_API_QUERY },
	{ "StreamQuery*", TS_API_QUERY },
	{ "Malloc*", TS_API_ALLOC },
	{ "MemAlloc*", TS_API_ALLOC },
	{ "HostAlloc*", TS_API_ALLOC },
	{ "HostMalloc*", TS_API_ALLOC },
	{ "Free*", TS_API_FREE },
	{ "MemFree*", TS_API_FREE },
	{ "HostFree*", TS_API_FREE },
	{ "HostUnregister*", TS_API_FREE },
};

static const struct call_name other_call_names[] = {
	/* OpenCL */
	{ "clEnqueueNDRangeKernel*", TS_API_LAUNCH },
	{ "clEnqueueTask*", TS_API_LAUNCH },
	{ "clEnqueueNativeKernel", TS_API_LAUNCH },
	{ "clEnqueueFill*", TS_API_FILL },
	{ "clEnqueueSVMMemFill*", TS_API_FILL },
	{ "clEnqueueCopy*", TS_API_COPY },
	{ "clEnqueueRead*", TS_API_COPY },
	{ "clEnqueueWrite*", TS_API_COPY },
	{ "clEnqueueMap*", TS_API_COPY },
	{ "clEnqueueUnmap*", TS_API_COPY },
	{ "clEnqueueSVMMemcpy*", TS_API_COPY },
	{ "clEnqueueSVMMap*", TS_API_COPY },
	{ "clEnqueueSVMUnmap*", TS_API_COPY },
	{ "clEnqueueSVMMigrate*", TS_API_COPY },
	{ "clEnqueueSVMFree*", TS_API_FREE },
	{ "clEnqueueMigrate*", TS_API_COPY },
	{ "clEnqueueMarker*", TS_API_EVENT_RECORD },
	{ "clEnqueueBarrier*", TS_API_STREAM_WAIT },
	{ "clEnqueueWaitForEvents", TS_API_STREAM_WAIT },
	{ "clFinish", TS_API_STREAM_SYNC },
	{ "clWaitForEvents", TS_API_EVENT_SYNC },
	{ "clGetEventInfo", TS_API_QUERY },
	{ "clGetEventProfilingInfo", TS_API_QUERY },
	{ "clCreateBuffer*", TS_API_ALLOC },
	{ "clCreateSubBuffer", TS_API_ALLOC },
	{ "clCreateImage*", TS_API_ALLOC },
	{ "clCreatePipe", TS_API_ALLOC },
	{ "clSVMAlloc", TS_API_ALLOC },
	{ "clReleaseMemObject", TS_API_FREE },
	{ "clSVMFree", TS_API_FREE },
	/* Level Zero and SYCL's names for it */
	{ "zeCommandListAppendLaunch*", TS_API_LAUNCH },
	{ "zeCommandListAppendMemoryCopy*", TS_API_COPY },
	{ "zeCommandListAppendMemoryFill*", TS_API_FILL },
	{ "zeCommandListAppendSignalEvent", TS_API_EVENT_RECORD },
	{ "zeCommandListAppendWaitOnEvents", TS_API_STREAM_WAIT },
	{ "zeCommandQueueExecuteCommandLists", TS_API_GRAPH },
	{ "zeCommandQueueSynchronize", TS_API_STREAM_SYNC },
	{ "zeCommandListHostSynchronize", TS_API_STREAM_SYNC },
	{ "zeEventHostSynchronize", TS_API_EVENT_SYNC },
	{ "zeFenceHostSynchronize", TS_API_EVENT_SYNC },
	{ "zeEventQueryStatus", TS_API_QUERY },
	{ "urEnqueueKernelLaunch*", TS_API_LAUNCH },
	{ "urEnqueueUSMMemcpy*", TS_API_COPY },
	{ "urEnqueueUSMFill*", TS_API_FILL },
	{ "urQueueFinish", TS_API_STREAM_SYNC },
	{ "urEventWait", TS_API_EVENT_SYNC },
	/* Ascend */
	{ "aclrtLaunchKernel*", TS_API_LAUNCH },
	{ "aclrtMemcpy*", TS_API_COPY },
	{ "aclrtMemset*", TS_API_FILL },
	{ "aclrtRecordEvent", TS_API_EVENT_RECORD },
	{ "aclrtStreamWaitEvent", TS_API_STREAM_WAIT },
	{ "aclrtSynchronizeEvent*", TS_API_EVENT_SYNC },
	{ "aclrtSynchronizeStream*", TS_API_STREAM_SYNC },
	{ "aclrtSynchronizeDevice*", TS_API_DEVICE_SYNC },
	{ "aclrtQueryEvent*", TS_API_QUERY },
	{ "aclrtMalloc*", TS_API_ALLOC },
	{ "aclrtFree*", TS_API_FREE },
	/* MTIA: one call prepares and submits a job */
	{ "runFunction*", TS_API_LAUNCH },
};

static bool is_name(const struct call_name *entry, const char *name, size_t length)
{
	size_t bytes = strlen(entry->name);

	if (entry->name[bytes - 1] == '*')
		return length >= bytes - 1 && memcmp(name, entry->name, bytes - 1) == 0;
	return length == bytes && memcmp(name, entry->name, bytes) == 0;
}

static enum ts_api_kind find_name(const struct call_name *entries, size_t count, const char *name,
				  size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (is_name(&entries[i], name, length))
			return entries[i].kind;
	return TS_API_OTHER;
}

/* Length of the prefix cuda, hip or cu before a capital; 0 if the name has none of these. */
static size_t cuda_prefix(const char *name, size_t length)
{
	static const char *const prefixes[] = { "cuda", "hip", "cu" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(prefixes); i++) {
		size_t bytes = strlen(prefixes[i]);

		if (length > bytes && memcmp(name, prefixes[i], bytes) == 0 && name[bytes] >= 'A' &&
		    name[bytes] <= 'Z')
			return bytes;
	}
	return 0;
}

enum ts_api_kind ts_api_kind(const char *name, size_t length)
{
	size_t prefix = cuda_prefix(name, length);

	if (prefix)
		return find_name(cuda_call_names, TS_ARRAY_SIZE(cuda_call_names), name + prefix,
				 length - prefix);
	return find_name(other_call_names, TS_ARRAY_SIZE(other_call_names), name, length);
}

bool ts_api_is_blocking(const char *name, size_t length)
{
	enum ts_api_kind kind = ts_api_kind(name, length);

	if (kind != TS_API_COPY || !cuda_prefix(name, length))
		return ts_api_is_sync(kind);
	if (contains(name, length, "MemcpyWithStream"))
		return true;
	return contains(name, length, "Memcpy") && !contains(name, length, "Async");
}

bool ts_api_may_block(const char *name, size_t length)
{
	static const char *const first[] = {
		"clEnqueueRead",      "clEnqueueWrite",  "clEnqueueMap",
		"clEnqueueSVMMemcpy", "clEnqueueSVMMap", NULL,
	};

	return starts_with_any(name, length, first);
}

/* ---- commands ---- */

/* Kernels that move data between ranks, from any library. */
static const char *const communicating[] = {
	"ncclKernel",          "ncclDevKernel",    "rcclKernel",          "mscclKernel",
	"cross_device_reduce", "nvshmem",          "multimem_all_reduce", "one_shot_all_reduce",
	"two_shot_all_reduce", "allreduce_fusion", "deep_ep::",           NULL,
};

static const char *const communicating_first[] = { "nccl", "rccl", "hccl", NULL };

/* MTIA's jobs: their contents are rows of their own. */
static const char *const holding[] = {
	"job_exe",     "packet", "pe_exe", "cpum_exe_subgraph", "collective_subgraph_execution",
	"runFunction", NULL,
};

static enum ts_command_class kernel_class(const char *name, size_t length)
{
	if (starts_with_any(name, length, communicating_first) ||
	    contains_any(name, length, communicating))
		return TS_CLASS_COMMUNICATION;
	if (ts_starts_with_len(name, length, "dma"))
		return TS_CLASS_MEMORY;
	if (starts_with_any(name, length, holding))
		return TS_CLASS_OTHER;
	return TS_CLASS_COMPUTE;
}

enum ts_command_class ts_command_class(enum ts_gpu_op_kind kind, const char *name, size_t length)
{
	switch (kind) {
	case TS_GPU_OP_COPY:
	case TS_GPU_OP_FILL:
		return TS_CLASS_MEMORY;
	case TS_GPU_OP_COLLECTIVE:
		return TS_CLASS_COMMUNICATION;
	case TS_GPU_OP_SYNC:
	case TS_GPU_OP_WAIT:
	case TS_GPU_OP_HOST:
		return TS_CLASS_OTHER;
	default:
		return kernel_class(name, length);
	}
}

/* ---- as HTA has it ---- */

static bool hta_is_memory(const char *name, size_t length)
{
	if (ts_starts_with_len(name, length, "dma"))
		return true;
	if (ts_starts_with_len(name, length, "hip")) {
		name += 3;
		length -= 3;
	}
	return ts_starts_with_len(name, length, "Memcpy") ||
	       ts_starts_with_len(name, length, "Memset");
}

/* Matches "cuda.*LaunchKernel" at the start. */
static bool hta_is_launch(const char *name, size_t length)
{
	return ts_starts_with_len(name, length, "cuda") && contains(name, length, "LaunchKernel");
}

static bool hta_is_no_computation(const char *name, size_t length)
{
	static const char *const first[] = {
		"nccl",        "Stream Wait Event",
		"runFunction", "hip",
		"job_exe",     "packet",
		"pe_exe",      "cpum_exe_subgraph",
		"hccl",        "collective_subgraph_execution",
		NULL,
	};
	static const char *const contained[] = { "Memcpy", "Memset", "dma", "Sync", NULL };

	return starts_with_any(name, length, first) || contains_any(name, length, contained) ||
	       hta_is_launch(name, length);
}

enum ts_command_class ts_command_class_hta(const char *name, size_t length)
{
	if (ts_starts_with_len(name, length, "nccl") || ts_starts_with_len(name, length, "hip") ||
	    ts_starts_with_len(name, length, "hccl") || contains(name, length, "ncclKernel"))
		return TS_CLASS_COMMUNICATION;
	if (hta_is_memory(name, length))
		return TS_CLASS_MEMORY;
	return hta_is_no_computation(name, length) ? TS_CLASS_OTHER : TS_CLASS_COMPUTE;
}

unsigned int ts_kernel_traits(const char *name, size_t length)
{
	static const char *const elementwise[] = { "elementwise_kernel", "pointwise", NULL };
	static const char *const single_precision[] = { "sgemm", "_simt_s", "scudnn", NULL };

	return (contains_any(name, length, elementwise) ? TS_KERNEL_ELEMENTWISE : 0) |
	       (contains_any(name, length, single_precision) ? TS_KERNEL_SINGLE_PRECISION : 0);
}

const char *ts_command_class_name(enum ts_command_class class)
{
	static const char *const names[TS_CLASS_COUNT] = {
		[TS_CLASS_COMPUTE] = "compute",
		[TS_CLASS_COMMUNICATION] = "communication",
		[TS_CLASS_MEMORY] = "memory",
		[TS_CLASS_OTHER] = "other",
	};

	return names[class];
}
