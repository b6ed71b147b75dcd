/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that cannot be replayed: refused MODE does one thing that is not captured, between
 * launches that are. `list` prints the modes and how the reason begins.
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
} modes[] = {
	{ "host_function", host_function, "host function (cuLaunchHostFunc)" },
	{ "stream_callback", stream_callback, "host function (cuStreamAddCallback)" },
	{ "write_value", write_value, "memory operation of a stream (cuStreamWriteValue32" },
	{ "array", array, "array (cuArrayCreate" },
	{ "texture", texture, "texture (cuTexObjectCreate" },
	{ "surface", surface, "surface" },
	{ "managed", managed, "managed memory (cuMemAllocManaged" },
	{ "managed_variable", managed_variable, "managed memory" },
	{ "external_memory", external_memory, "external memory" },
	{ "external_semaphore", external_semaphore, "external semaphore" },
	{ "green_context", green_context, "green context" },
	{ "multicast", multicast, "multicast object" },
	{ "peer_access", peer_access, "peer access" },
	{ "host_node", host_node, "graph node: host" },
	{ "fed_copy", fed_copy, "graph node: copy from memory that is not pinned, and that a" },
	{ "awaited_copy", awaited_copy,
	  "copy to pinned memory that has to be waited for during a stream capture" },
	{ "allocates", allocates, "kernel 'allocates' calls malloc or free on the device" },
	{ "launch_attribute", launch_attribute, "launch attribute 61" },
	{ "function_attribute", function_attribute, "function attribute 16" },
	{ "export_table", export_table, "export table 1734dc26-" },
};

int main(int argc, char **argv)
{
	bool found = false;

	for (size_t i = 0; argc == 2 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(argv[1], "list"))
			printf("%s|%s\n", modes[i].name, modes[i].reason);
	}
	if (argc != 2 || !strcmp(argv[1], "list"))
		return argc != 2;
	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, kernels));
	CHECK(cuMemAlloc_v2(&memory, 4096));
	fill();
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(argv[1], modes[i].name)) {
			modes[i].run();
			found = true;
		}
	}
	fill();
	CHECK(cuCtxSynchronize());
	return found ? 0 : 2;
}
