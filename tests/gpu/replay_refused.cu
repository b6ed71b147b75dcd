/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CUDA replay does not capture, one thing per run: replay_refused WHAT [early]. Runs a kernel,
 * opens a window (cuProfilerStart), does WHAT, and closes it; `early`: WHAT is done before the
 * window opens, and what it made still exists. `list`: prints the names.
 *
 * With -DNESTED (and -rdc=true): a kernel that launches kernels, and graphs launched by the device.
 * With -DMANAGED: a module with a managed variable. Exit code 77 if this cannot be done here.
 */
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#define COUNT 4096u
/* The driver's function in the version of cuda.h. */
#define DRIVER(name) DRIVER_NAMED(name)
#define DRIVER_NAMED(name) ((decltype(&name))driver_function(#name))

static unsigned int *memory;
static cudaStream_t stream;
static CUdevice device;

static void *driver_function(const char *name)
{
	static void *library = dlopen("libcuda.so.1", RTLD_NOW);
	void *found = library ? dlsym(library, name) : nullptr;

	if (!found) {
		fprintf(stderr, "the driver has no %s\n", name);
		exit(77);
	}
	return found;
}

static void need(int code, const char *call)
{
	if (!code)
		return;
	fprintf(stderr, "%s: error %d\n", call, code);
	exit(77);
}
#define NEED(call) need((int)(call), #call)

__global__ void increment(unsigned int *memory)
{
	memory[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

#ifdef NESTED
__global__ void nested_parent(unsigned int *memory)
{
	increment<<<COUNT / 256, 256>>>(memory);
}
static void do_nested()
{
	nested_parent<<<1, 1, 0, stream>>>(memory);
	NEED(cudaStreamSynchronize(stream));
}
static void do_device_graph()
{
	cudaGraph_t graph;
	cudaGraphExec_t executable;

	NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	increment<<<COUNT / 256, 256, 0, stream>>>(memory);
	NEED(cudaStreamEndCapture(stream, &graph));
	NEED(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagDeviceLaunch));
	NEED(cudaGraphUpload(executable, stream));
	NEED(cudaGraphLaunch(executable, stream));
	NEED(cudaStreamSynchronize(stream));
}
#endif
#ifdef MANAGED
__managed__ unsigned int managed_global[16];
__global__ void use_managed(unsigned int *memory)
{
	memory[threadIdx.x] += managed_global[threadIdx.x % 16];
}
static void do_managed_global()
{
	use_managed<<<1, 256, 0, stream>>>(memory);
	NEED(cudaStreamSynchronize(stream));
}
#endif

#if !defined(NESTED) && !defined(MANAGED)
__global__ void printing(unsigned int *memory)
{
	if (threadIdx.x == 0)
		printf("%u\n", memory[0]);
}
__global__ void allocating(unsigned int *memory)
{
	unsigned int *block = (unsigned int *)malloc(64);

	if (block)
		*block = memory[threadIdx.x];
	memory[threadIdx.x] += block ? *block : 0;
	free(block);
}

/* ---- host functions ---- */

static void on_host(void *)
{
}
static void on_stream(cudaStream_t, cudaError_t, void *)
{
}
static void do_host_function()
{
	NEED(cudaLaunchHostFunc(stream, on_host, nullptr));
}
static void do_callback()
{
	NEED(cudaStreamAddCallback(stream, on_stream, nullptr, 0));
}

/* ---- memory operations of streams ---- */

static void do_write_value()
{
	NEED(DRIVER(cuStreamWriteValue32)((CUstream)stream, (CUdeviceptr)memory, 7, 0));
}
static void do_write_value_64()
{
	NEED(DRIVER(cuStreamWriteValue64)((CUstream)stream, (CUdeviceptr)memory, 7, 0));
}
static void do_wait_value()
{
	NEED(DRIVER(cuStreamWaitValue32)((CUstream)stream, (CUdeviceptr)memory, 0,
					 CU_STREAM_WAIT_VALUE_GEQ));
}
static void do_batch()
{
	CUstreamBatchMemOpParams operation = {};

	operation.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	operation.writeValue.address = (CUdeviceptr)memory;
	operation.writeValue.value = 9;
	NEED(DRIVER(cuStreamBatchMemOp)((CUstream)stream, 1, &operation, 0));
}

/* ---- arrays, textures, surfaces ---- */

static cudaArray_t array;

static void do_array()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();

	NEED(cudaMallocArray(&array, &format, 64, 64, cudaArraySurfaceLoadStore));
}
static void do_mipmap()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaMipmappedArray_t mipmap;

	NEED(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(64, 64, 0), 3));
}
static void do_texture()
{
	cudaResourceDesc resource = {};
	cudaTextureDesc description = {};
	cudaTextureObject_t texture;

	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = memory;
	resource.res.linear.desc = cudaCreateChannelDesc<unsigned int>();
	resource.res.linear.sizeInBytes = 4096;
	NEED(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
}
static void do_surface()
{
	cudaResourceDesc resource = {};
	cudaSurfaceObject_t surface;

	do_array();
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	NEED(cudaCreateSurfaceObject(&surface, &resource));
}

/* ---- managed memory, memory of other processes and interfaces ---- */

static void do_managed()
{
	unsigned int *managed;

	NEED(cudaMallocManaged(&managed, 4096));
	*managed = 1;
	increment<<<1, 256, 0, stream>>>(managed);
}
static void do_ipc_event()
{
	cudaEvent_t event;
	cudaIpcEventHandle_t handle;

	NEED(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
	NEED(cudaIpcGetEventHandle(&handle, event));
}
static CUmemGenericAllocationHandle physical(int *ret_descriptor)
{
	CUmemAllocationProp properties = {};
	CUmemGenericAllocationHandle handle;

	properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	NEED(DRIVER(cuMemCreate)(&handle, 2 << 20, &properties, 0));
	NEED(DRIVER(cuMemExportToShareableHandle)(ret_descriptor, handle,
						  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	return handle;
}
static void do_shareable()
{
	int descriptor;

	physical(&descriptor);
}
static void do_import()
{
	CUmemGenericAllocationHandle handle;
	int descriptor;

	physical(&descriptor);
	NEED(DRIVER(cuMemImportFromShareableHandle)(&handle, (void *)(uintptr_t)descriptor,
						    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
}
static void do_external_memory()
{
	cudaExternalMemoryHandleDesc description = {};
	cudaExternalMemory_t external;
	int descriptor;

	physical(&descriptor);
	description.type = cudaExternalMemoryHandleTypeOpaqueFd;
	description.handle.fd = descriptor;
	description.size = 2 << 20;
	NEED(cudaImportExternalMemory(&external, &description));
}
static void do_multicast()
{
	CUmulticastObjectProp properties = {};
	CUmemGenericAllocationHandle handle;
	int value = 0;

	DRIVER(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, device);
	if (!value)
		need(801, "multicast objects are not supported");
	properties.numDevices = 1;
	properties.size = 2 << 20;
	properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	NEED(DRIVER(cuMulticastCreate)(&handle, &properties));
}

/* ---- green contexts ---- */

static void do_green_context()
{
	CUdevResource all, group;
	CUdevResourceDesc description;
	CUgreenCtx green;
	unsigned int groups = 1;

	NEED(DRIVER(cuDeviceGetDevResource)(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	NEED(DRIVER(cuDevSmResourceSplitByCount)(&group, &groups, &all, nullptr, 0, 16));
	NEED(DRIVER(cuDevResourceGenerateDesc)(&description, &group, 1));
	NEED(DRIVER(cuGreenCtxCreate)(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
}

/* ---- graphs ---- */

static void launch_graph(cudaGraph_t graph)
{
	cudaGraphExec_t executable;

	NEED(cudaGraphInstantiate(&executable, graph, 0));
	NEED(cudaGraphLaunch(executable, stream));
	NEED(cudaStreamSynchronize(stream));
}
static void do_host_node()
{
	cudaGraph_t graph;
	cudaGraphNode_t node;
	cudaHostNodeParams parameters = {};

	parameters.fn = on_host;
	NEED(cudaGraphCreate(&graph, 0));
	NEED(cudaGraphAddHostNode(&node, graph, nullptr, 0, &parameters));
	launch_graph(graph);
}
static void do_captured_host_function()
{
	cudaGraph_t graph;

	NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	NEED(cudaLaunchHostFunc(stream, on_host, nullptr));
	NEED(cudaStreamEndCapture(stream, &graph));
	launch_graph(graph);
}
static void do_conditional_node()
{
	cudaGraph_t graph;
	cudaGraphNode_t node;
	cudaGraphConditionalHandle handle;
	cudaGraphNodeParams parameters = {};

	NEED(cudaGraphCreate(&graph, 0));
	NEED(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault));
	parameters.type = cudaGraphNodeTypeConditional;
	parameters.conditional.handle = handle;
	parameters.conditional.type = cudaGraphCondTypeIf;
	parameters.conditional.size = 1;
	NEED(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
	launch_graph(graph);
}
static void do_memory_operation_node()
{
	CUgraph graph;
	CUgraphNode node;
	CUcontext context;
	CUstreamBatchMemOpParams operation = {};
	CUDA_BATCH_MEM_OP_NODE_PARAMS parameters = {};

	NEED(DRIVER(cuCtxGetCurrent)(&context));
	operation.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	operation.writeValue.address = (CUdeviceptr)memory;
	parameters.ctx = context;
	parameters.count = 1;
	parameters.paramArray = &operation;
	NEED(DRIVER(cuGraphCreate)(&graph, 0));
	NEED(DRIVER(cuGraphAddBatchMemOpNode)(&node, graph, nullptr, 0, &parameters));
	launch_graph((cudaGraph_t)graph);
}
static void do_updatable_node()
{
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	cudaGraph_t graph;

	attribute.id = cudaLaunchAttributeDeviceUpdatableKernelNode;
	attribute.val.deviceUpdatableKernelNode.deviceUpdatable = 1;
	config.gridDim = dim3(COUNT / 256);
	config.blockDim = dim3(256);
	config.stream = stream;
	config.attrs = &attribute;
	config.numAttrs = 1;
	NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	NEED(cudaLaunchKernelEx(&config, increment, memory));
	NEED(cudaStreamEndCapture(stream, &graph));
	launch_graph(graph);
}

/* ---- kernels ---- */

static void do_printf()
{
	printing<<<1, 32, 0, stream>>>(memory);
	NEED(cudaStreamSynchronize(stream));
}
static void do_malloc()
{
	allocating<<<1, 32, 0, stream>>>(memory);
	NEED(cudaStreamSynchronize(stream));
}

/* ---- export tables ---- */

/* Some that the CUDA runtime does not fetch; which of them there are depends on the driver. */
static void do_export_table()
{
	static const unsigned char ids[][16] = {
		{ 0x19, 0x5b, 0xcb, 0xf4, 0xd6, 0x7d, 0x02, 0x4a, 0xac, 0xc5, 0x1d, 0x29, 0xce, 0xa6,
		  0x31, 0xae },
		{ 0xb1, 0x05, 0x41, 0xe1, 0xf7, 0xc7, 0xc7, 0x4a, 0x9f, 0x64, 0xf2, 0x23, 0xbe, 0x99,
		  0xf1, 0xe2 },
		{ 0x0c, 0xa5, 0x0b, 0x8c, 0x10, 0x04, 0x92, 0x9a, 0x89, 0xa7, 0xd0, 0xdf, 0x10, 0xe7,
		  0x72, 0x86 },
		{ 0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24,
		  0xc8, 0xf2 },
		{ 0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1,
		  0x99, 0x1e },
	};
	const void *table = nullptr;

	for (const unsigned char *id : ids)
		if (!table && DRIVER(cuGetExportTable)(&table, (const CUuuid *)id))
			table = nullptr;
	if (!table)
		need(500, "the driver has none of these tables");
}

/* ---- peers ---- */

static void do_peer()
{
	int count = 0;

	NEED(cudaGetDeviceCount(&count));
	if (count < 2)
		need(101, "there is one device");
	NEED(cudaDeviceEnablePeerAccess(1, 0));
}
#endif

static const struct {
	const char *name;
	void (*run)();
} kinds[] = {
#if defined(NESTED)
	{ "nested", do_nested },
	{ "device-graph", do_device_graph },
#elif defined(MANAGED)
	{ "managed-global", do_managed_global },
#else
	{ "host-function", do_host_function },
	{ "callback", do_callback },
	{ "write-value", do_write_value },
	{ "write-value-64", do_write_value_64 },
	{ "wait-value", do_wait_value },
	{ "batch", do_batch },
	{ "array", do_array },
	{ "mipmap", do_mipmap },
	{ "texture", do_texture },
	{ "surface", do_surface },
	{ "managed", do_managed },
	{ "ipc-event", do_ipc_event },
	{ "shareable", do_shareable },
	{ "import", do_import },
	{ "external-memory", do_external_memory },
	{ "multicast", do_multicast },
	{ "green-context", do_green_context },
	{ "host-node", do_host_node },
	{ "captured-host-function", do_captured_host_function },
	{ "conditional-node", do_conditional_node },
	{ "memory-operation-node", do_memory_operation_node },
	{ "updatable-node", do_updatable_node },
	{ "printf", do_printf },
	{ "malloc", do_malloc },
	{ "export-table", do_export_table },
	{ "peer", do_peer },
#endif
};

int main(int argc, char **argv)
{
	void (*run)() = nullptr;
	bool is_early = argc > 2 && !strcmp(argv[2], "early");
	int count = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (argc > 1 && !strcmp(argv[1], "list"))
			puts(kinds[i].name);
		else if (argc > 1 && !strcmp(argv[1], kinds[i].name))
			run = kinds[i].run;
	}
	if (!run) {
		if (argc > 1 && !strcmp(argv[1], "list"))
			return 0;
		fprintf(stderr, "usage: replay_refused WHAT [early]\n");
		return 2;
	}
	if (cudaGetDeviceCount(&count) != cudaSuccess || !count) {
		fprintf(stderr, "no device\n");
		return 77;
	}
	NEED(cudaMalloc(&memory, COUNT * sizeof(*memory)));
	NEED(cudaMemset(memory, 0, COUNT * sizeof(*memory)));
	NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	NEED(DRIVER(cuDeviceGet)(&device, 0));
	increment<<<COUNT / 256, 256, 0, stream>>>(memory);
	if (is_early)
		run();
	NEED(cudaStreamSynchronize(stream));
	NEED(cudaProfilerStart());
	increment<<<COUNT / 256, 256, 0, stream>>>(memory);
	if (!is_early)
		run();
	NEED(cudaStreamSynchronize(stream));
	NEED(cudaProfilerStop());
	puts("done");
	return 0;
}
