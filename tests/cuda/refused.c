/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that cannot be replayed: refused MODE does one thing that is not captured, between
 * launches that are; refused MODE early: before step 2. `list` prints the modes, how the reason
 * begins, and "lasts" if what the program makes prevents windows that open later, too.
 */
#include <stdbool.h>
#include <string.h>

#include "cuda/work_driver.h"

WORK_IMAGE(kernels, TS_TESTS_CUDA "/work_kernels.fatbin");
WORK_IMAGE(refused_kernels, TS_TESTS_CUDA "/refused_kernels.fatbin");
WORK_IMAGE(managed_kernels, TS_TESTS_CUDA "/managed_kernels.fatbin");

static void *module, *context;
static uint64_t memory;

static void launch(void *from, const char *name, void **params)
{
	void *function;

	CHECK(cuModuleGetFunction(&function, from, name));
	CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
}

static void fill(void)
{
	uint32_t value = 1, count = 100;

	launch(module, "fill", (void *[]){ &memory, &value, &count });
}

static void call_back(void *data)
{
	(void)data;
}

static void host_function(void)
{
	CHECK(cuLaunchHostFunc(NULL, call_back, NULL));
}

static void stream_callback(void)
{
	CHECK(cuStreamAddCallback(NULL, (void *)call_back, NULL, 0));
}

static void write_value(void)
{
	CHECK(cuStreamWriteValue32_v2(NULL, memory, 1, 0));
}

static void wait_value(void)
{
	CHECK(cuStreamWaitValue32_v2(NULL, memory, 0, 0)); /* at least 0 */
}

static void batch(void)
{
	uint32_t operation[12] = { 2, 0, (uint32_t)memory, (uint32_t)(memory >> 32), 1 };

	CHECK(cuStreamBatchMemOp_v2(NULL, 1, operation, 0)); /* writes a value */
}

static void array(void)
{
	void *handle;
	size_t description[4] = { 16, 16, 0x20, 1 };

	CHECK(cuArrayCreate_v2(&handle, description));
}

static void texture(void)
{
	void *handle;
	uint64_t resource[16] = { 2 }, description[16] = { 0 };

	CHECK(cuTexObjectCreate(&handle, resource, description, NULL));
}

static void surface(void)
{
	void *handle;
	uint64_t resource[16] = { 0 };

	CHECK(cuSurfObjectCreate(&handle, resource));
}

static void managed(void)
{
	uint64_t address;

	CHECK(cuMemAllocManaged(&address, 4096, 1));
}

static void managed_variable(void)
{
	void *other;
	int n = 1;

	CHECK(cuModuleLoadData(&other, managed_kernels));
	launch(other, "uses_managed", (void *[]){ &n });
}

/* As the CUDA runtime does when a program starts. */
static void managed_library(void)
{
	void *library;
	uint64_t address;
	size_t bytes;

	CHECK(cuLibraryLoadData(&library, managed_kernels, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cuLibraryGetManaged(&address, &bytes, library, "managed"));
}

static void shared_memory(void)
{
	struct ipc_handle handle = { { 0 } };
	uint64_t address;

	CHECK(cuIpcOpenMemHandle_v2(&address, handle, 1));
}

static void shareable(void)
{
	struct cuda_allocation_prop prop = { .type = 1, .handle_types = 1, .location = { 1, 0 } };
	unsigned long long handle;
	int descriptor;

	CHECK(cuMemCreate(&handle, 2 << 20, &prop, 0));
	CHECK(cuMemExportToShareableHandle(&descriptor, handle, 1, 0));
}

/* Virtual memory that a replay could not have, with what is in it. */
static uint64_t mapped_memory(unsigned long long *ret_handle)
{
	const struct cuda_allocation_prop prop = { .type = 1, .location = { 1, 0 } };
	const struct cuda_access access = { .location = { 1, 0 }, .flags = 3 };
	uint64_t address;

	CHECK(cuMemAddressReserve(&address, 4 << 20, 0, 0, 0));
	CHECK(cuMemCreate(ret_handle, 2 << 20, &prop, 0));
	CHECK(cuMemMap(address, 2 << 20, 0, *ret_handle, 0));
	CHECK(cuMemSetAccess(address, 2 << 20, &access, 1));
	return address;
}

static void mapped_again(void)
{
	unsigned long long handle;
	uint64_t address = mapped_memory(&handle);

	CHECK(cuMemMap(address + (2 << 20), 2 << 20, 0, handle, 0));
}

static void access_taken(void)
{
	const struct cuda_access none = { .location = { 1, 0 } };
	unsigned long long handle;

	CHECK(cuMemSetAccess(mapped_memory(&handle), 2 << 20, &none, 1));
}

static void retained_handle(void)
{
	unsigned long long handle;

	CHECK(cuMemRetainAllocationHandle(&handle, (void *)mapped_memory(&handle)));
}

static void affinity(void)
{
	uint32_t multiprocessors[2] = { 0, 8 };
	void *other;

	CHECK(cuCtxCreate_v3(&other, multiprocessors, 1, 0, 0));
	CHECK(cuCtxSetCurrent(context));
}

static void external_memory(void)
{
	void *handle;
	uint64_t description[16] = { 1 };

	CHECK(cuImportExternalMemory(&handle, description));
}

static void external_semaphore(void)
{
	void *handle;
	uint64_t description[16] = { 1 };

	CHECK(cuImportExternalSemaphore(&handle, description));
}

static void green_context(void)
{
	void *handle;

	CHECK(cuGreenCtxCreate(&handle, NULL, 0, 1));
}

static void multicast(void)
{
	unsigned long long handle;
	uint64_t prop[8] = { 1, 2 << 20 };

	CHECK(cuMulticastCreate(&handle, prop));
}

static void peer_access(void)
{
	CHECK(cuCtxEnablePeerAccess(NULL, 0));
}

static void host_node(void)
{
	const struct {
		void (*call)(void *data);
		void *data;
	} host = { call_back, NULL };
	void *graph, *node, *exec;

	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddHostNode(&node, graph, NULL, 0, &host));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, NULL));
}

/* CUgraphNodeParams, of a kind that is refused whatever it does. */
static void launch_node(int type)
{
	int64_t params[32] = { type };
	void *graph, *node, *exec;

	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, params));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, NULL));
}

static void semaphore_node(void)
{
	launch_node(8);
}

static void memory_operation_node(void)
{
	launch_node(12);
}

static void conditional_node(void)
{
	launch_node(13);
}

static void unknown_node(void)
{
	launch_node(99);
}

/* A graph that reads memory of the program that it writes itself. */
static void fed_copy(void)
{
	static uint32_t host[100];
	struct cuda_copy_3d copy = {
		.from_type = 2,
		.from_device = memory,
		.to_type = 1,
		.to_host = host,
		.width = sizeof(host),
		.height = 1,
		.depth = 1,
	};
	void *graph, *node, *exec;

	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
	copy.from_type = 1;
	copy.from_host = host;
	copy.to_type = 2;
	copy.to_device = memory + 2048;
	CHECK(cuGraphAddMemcpyNode(&node, graph, &node, 1, &copy, context));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, NULL));
}

/* Nobody can wait for a copy while its stream is captured; the capture goes on. */
static void awaited_copy(void)
{
	void *captured, *other, *graph, *pinned;
	const size_t bytes = 256;

	CHECK(cuStreamCreate(&captured, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&other, CUDA_STREAM_NON_BLOCKING));
	CHECK(cuMemHostAlloc(&pinned, bytes, 0));
	CHECK(cuMemcpyDtoHAsync_v2(pinned, memory, bytes, captured));
	CHECK(cuStreamBeginCapture_v2(captured, 2));
	CHECK(cuMemcpyHtoDAsync_v2(memory + bytes, pinned, bytes, other));
	CHECK(cuMemsetD8Async(memory, 0, bytes, captured));
	CHECK(cuStreamEndCapture(captured, &graph));
}

static void allocates(void)
{
	void *other;

	CHECK(cuModuleLoadData(&other, refused_kernels));
	launch(other, "allocates", (void *[]){ &memory });
}

static void launch_attribute(void)
{
	struct cuda_launch_attribute attribute = { .id = 61 };
	struct cuda_launch_config config = {
		.grid = { 1, 1, 1 },
		.block = { 32, 1, 1 },
		.attributes = &attribute,
		.attribute_count = 1,
	};
	void *function;

	CHECK(cuModuleGetFunction(&function, module, "write_shape"));
	CHECK(cuLaunchKernelEx(&config, function, (void *[]){ &memory }, NULL));
}

static void function_attribute(void)
{
	void *function;

	CHECK(cuModuleGetFunction(&function, module, "write_shape"));
	CHECK(cuFuncSetAttribute(function, 16, 1));
}

static void stream_attribute(void)
{
	char value[64] = { 0 };

	CHECK(cuStreamSetAttribute(NULL, 40, value));
}

static void jit_option(void)
{
	int options[] = { 19 }; /* CU_JIT_GLOBAL_SYMBOL_COUNT */
	void *values[] = { NULL }, *other;

	CHECK(cuModuleLoadDataEx(&other, kernels, 1, options, values));
	module = other;
}

/* A function of a newer driver. */
static void unknown_call(void)
{
	int (*call)(uint64_t address);
	uint32_t status;

	CHECK(cuGetProcAddress_v2("cuNobodyKnowsIt", (void **)&call, 13000, 0, &status));
	CHECK(call(memory));
}

static void export_table(void)
{
	static const uint8_t id[16] = { 0x17, 0x34, 0xdc, 0x26 };
	const void *table;

	CHECK(cuGetExportTable(&table, id));
}

static const struct {
	const char *name;
	void (*run)(void);
	const char *reason;
	bool lasts; /* what it makes prevents windows later on, too */
} modes[] = {
	{ "host_function", host_function, "host function (cuLaunchHostFunc)", false },
	{ "stream_callback", stream_callback, "host function (cuStreamAddCallback)", false },
	{ "write_value", write_value, "memory operation of a stream (cuStreamWriteValue32", false },
	{ "wait_value", wait_value, "memory operation of a stream (cuStreamWaitValue32", false },
	{ "batch", batch, "memory operation of a stream (cuStreamBatchMemOp", false },
	{ "array", array, "array (cuArrayCreate", true },
	{ "texture", texture, "texture (cuTexObjectCreate", true },
	{ "surface", surface, "surface", true },
	{ "managed", managed, "managed memory (cuMemAllocManaged", true },
	{ "managed_variable", managed_variable, "managed memory", false },
	{ "managed_library", managed_library, "managed memory: variable 'managed'", true },
	{ "shared_memory", shared_memory, "memory of another process (cuIpcOpenMemHandle", true },
	{ "shareable", shareable, "memory of another process (cuMemExportToShareableHandle", true },
	{ "mapped_again", mapped_again, "memory that is mapped again (cuMemMap", true },
	{ "access_taken", access_taken, "memory whose access is taken away (cuMemSetAccess", true },
	{ "retained_handle", retained_handle,
	  "shared handle of memory (cuMemRetainAllocationHandle", true },
	{ "external_memory", external_memory, "external memory", true },
	{ "external_semaphore", external_semaphore, "external semaphore", true },
	{ "green_context", green_context, "green context", true },
	{ "multicast", multicast, "multicast object", true },
	{ "peer_access", peer_access, "peer access", true },
	{ "affinity", affinity, "context with an execution affinity (cuCtxCreate", true },
	{ "host_node", host_node, "graph node: host", false },
	{ "semaphore_node", semaphore_node, "graph node: external semaphore", false },
	{ "memory_operation_node", memory_operation_node, "graph node: memory operation", false },
	{ "conditional_node", conditional_node, "graph node: conditional", false },
	{ "unknown_node", unknown_node, "graph node of a kind that this version does not know",
	  false },
	{ "fed_copy", fed_copy, "graph node: copy from memory that is not pinned, and that a",
	  false },
	{ "awaited_copy", awaited_copy,
	  "copy to pinned memory that has to be waited for during a stream capture", false },
	{ "allocates", allocates, "kernel 'allocates' calls malloc or free on the device", false },
	{ "launch_attribute", launch_attribute, "launch attribute 61", false },
	{ "function_attribute", function_attribute, "function attribute 16", true },
	{ "stream_attribute", stream_attribute, "stream attribute 40", true },
	{ "unknown_call", unknown_call, "call (cuNobodyKnowsIt)", false },
	{ "jit_option", jit_option, "JIT option 19", false },
	{ "export_table", export_table, "export table 1734dc26-", true },
};

int main(int argc, char **argv)
{
	bool found = false, is_early = argc == 3 && !strcmp(argv[2], "early");

	for (size_t i = 0; argc == 2 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(argv[1], "list"))
			printf("%s|%s|%s\n", modes[i].name, modes[i].reason,
			       modes[i].lasts ? "lasts" : "");
	}
	if ((argc != 2 && !is_early) || !strcmp(argv[1], "list"))
		return argc != 2;
	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, kernels));
	CHECK(cuMemAlloc_v2(&memory, 4096));
	work_step(1);
	fill();
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(argv[1], modes[i].name)) {
			modes[i].run();
			found = true;
		}
	}
	for (int i = 2; is_early && i < 4; i++) {
		work_step(i);
		fill();
	}
	fill();
	CHECK(cuCtxSynchronize());
	return found ? 0 : 2;
}
