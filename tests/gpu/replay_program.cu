/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA programs to record and replay: replay_program MODE[,MODE...] [STEPS]. Each mode is set up,
 * runs two steps outside of the window, then STEPS (default 4) between cuProfilerStart and Stop.
 * Prints a hash of all memory that the mode writes, which does not depend on addresses or times.
 *
 * Exit code 77 if the device lacks what a mode needs, 1 if a call fails.
 */
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unistd.h>

namespace groups = cooperative_groups;

#define CHECK(call) check((call), #call, __LINE__)
#define COUNT 65536u
#define THREADS 256u

static const char *current_mode = "";

static void check(cudaError_t code, const char *call, int line)
{
	if (code == cudaSuccess)
		return;
	fprintf(stderr, "%s, line %d: %s: %s\n", current_mode, line, call,
		cudaGetErrorString(code));
	exit(1);
}

static void unsupported(const char *why)
{
	fprintf(stderr, "%s: %s\n", current_mode, why);
	exit(77);
}

/* ---- memory whose contents are printed at the end ---- */

struct watched {
	const void *data;
	size_t bytes;
};
static struct watched watched[32];
static unsigned int watched_count;

static void watch(const void *data, size_t bytes)
{
	watched[watched_count++] = { data, bytes };
}

static unsigned int *new_numbers(unsigned int count, unsigned int first)
{
	unsigned int *host = (unsigned int *)malloc(count * sizeof(*host)), *device;

	for (unsigned int i = 0; i < count; i++)
		host[i] = first + i * 2654435761u;
	CHECK(cudaMalloc(&device, count * sizeof(*host)));
	CHECK(cudaMemcpy(device, host, count * sizeof(*host), cudaMemcpyHostToDevice));
	free(host);
	watch(device, count * sizeof(*device));
	return device;
}

/* The first of it, for a comparison with what a replay shows. */
static void store_watched(const char *path)
{
	void *bytes = malloc(watched[0].bytes);
	FILE *file = fopen(path, "wb");

	CHECK(cudaMemcpy(bytes, watched[0].data, watched[0].bytes, cudaMemcpyDefault));
	if (!file || fwrite(bytes, 1, watched[0].bytes, file) != watched[0].bytes || fclose(file))
		exit(1);
	printf("memory 0x%llx %zu\n", (unsigned long long)(uintptr_t)watched[0].data,
	       watched[0].bytes);
	free(bytes);
}

static uint64_t hash_of_watched()
{
	uint64_t hash = 14695981039346656037u;

	for (unsigned int i = 0; i < watched_count; i++) {
		unsigned char *bytes = (unsigned char *)malloc(watched[i].bytes);

		CHECK(cudaMemcpy(bytes, watched[i].data, watched[i].bytes, cudaMemcpyDefault));
		for (size_t k = 0; k < watched[i].bytes; k++)
			hash = (hash ^ bytes[k]) * 1099511628211u;
		free(bytes);
	}
	return hash;
}

__global__ void mix_numbers(unsigned int *to, const unsigned int *from, unsigned int factor)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] = to[i] * 1664525u + (from[i] ^ (from[i] >> 13)) * factor + 1013904223u;
}

static void mix(unsigned int *to, const unsigned int *from, unsigned int factor,
		cudaStream_t stream)
{
	mix_numbers<<<COUNT / THREADS, THREADS, 0, stream>>>(to, from, factor);
	CHECK(cudaGetLastError());
}

/* ---- plain: copies, fills, launches in the default stream ---- */

static unsigned int *numbers[4];

static void prepare_plain()
{
	numbers[0] = new_numbers(COUNT, 1);
	numbers[1] = new_numbers(COUNT, 2);
}

static void step_plain(int step)
{
	static unsigned int host[COUNT];

	for (unsigned int i = 0; i < COUNT; i++)
		host[i] = i * (step + 7);
	CHECK(cudaMemcpy(numbers[0], host, sizeof(host), cudaMemcpyHostToDevice));
	mix(numbers[1], numbers[0], 3 + step, 0);
	CHECK(cudaMemset(numbers[0] + 1024, step, 4096));
	CHECK(cudaMemcpy(numbers[0], numbers[1] + 2048, 8192, cudaMemcpyDeviceToDevice));
	mix(numbers[0], numbers[1], 5, 0);
	CHECK(cudaMemcpy(host, numbers[0], sizeof(host), cudaMemcpyDeviceToHost));
}

/* ---- globals: variables, constants, pointers to them, functions and objects in memory ---- */

typedef unsigned int (*operation)(unsigned int);
__device__ __noinline__ unsigned int rotate(unsigned int value)
{
	return value << 7 | value >> 25;
}
__device__ __noinline__ unsigned int scramble(unsigned int value)
{
	return (value ^ value >> 11) * 0x9E3779B1u;
}

struct Shape {
	unsigned int size;
	__device__ virtual unsigned int area(unsigned int by) const = 0;
};
struct Square : Shape {
	__device__ unsigned int area(unsigned int by) const override
	{
		return size * size + by;
	}
};
struct Circle : Shape {
	__device__ unsigned int area(unsigned int by) const override
	{
		return size * 3 * by;
	}
};

struct Link {
	const unsigned int *where; /* into table_global */
	struct Link *next;         /* in device memory */
	unsigned int weight;
};

__device__ unsigned int counter_global = 5;
__device__ unsigned int table_global[256];
__device__ unsigned int hidden_global[1024] = { 3, 1, 4, 1, 5 }; /* the host never asks for it */
__device__ unsigned int *pointer_global;                         /* into device memory */
__device__ unsigned int *into_table_global = table_global + 8;   /* into another global */
__constant__ unsigned int constants[64];
__device__ operation operations_global[2] = { rotate, scramble };

__global__ void make_shapes(Shape **shapes, Square *squares, Circle *circles, operation *operations)
{
	for (unsigned int i = 0; i < 16; i++) {
		shapes[2 * i] = new (squares + i) Square;
		shapes[2 * i]->size = i + 1;
		shapes[2 * i + 1] = new (circles + i) Circle;
		shapes[2 * i + 1]->size = i + 3;
	}
	operations[0] = scramble;
	operations[1] = rotate;
}

__global__ void use_globals(unsigned int *numbers, unsigned int *counter, Shape **shapes,
			    operation *operations, operation direct, const Link *link)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, value = numbers[i];

	value += constants[i % 64] + table_global[i % 256] + into_table_global[i % 16];
	value = operations[i % 2](value) + operations_global[(i + 1) % 2](value) + direct(value);
	value ^= shapes[i % 32]->area(value & 255);
	for (const Link *at = link; at; at = at->next)
		value += *at->where * at->weight;
	if (i < 1024)
		hidden_global[i] += value;
	atomicAdd(counter, value & 3);
	atomicAdd(&counter_global, 1);
	if (i < COUNT)
		pointer_global[i] ^= value;
	numbers[i] = value;
}

static struct {
	unsigned int *counter, *table;
	Shape **shapes;
	operation *operations, direct;
	Link *links;
} state;

static void prepare_globals()
{
	unsigned int host[256];
	operation found[2];
	Square *squares;
	Circle *circles;

	numbers[0] = new_numbers(COUNT, 11);
	numbers[1] = new_numbers(COUNT, 12);
	CHECK(cudaMemcpyToSymbol(pointer_global, &numbers[1], sizeof(numbers[1])));
	CHECK(cudaGetSymbolAddress((void **)&state.counter, counter_global));
	CHECK(cudaGetSymbolAddress((void **)&state.table, table_global));
	for (unsigned int i = 0; i < 256; i++)
		host[i] = i * i;
	CHECK(cudaMemcpyToSymbol(constants, host, 64 * sizeof(*host)));
	CHECK(cudaMemcpy(state.table, host, sizeof(host), cudaMemcpyHostToDevice));
	CHECK(cudaMalloc(&state.shapes, 32 * sizeof(*state.shapes)));
	CHECK(cudaMalloc(&squares, 16 * sizeof(*squares)));
	CHECK(cudaMalloc(&circles, 16 * sizeof(*circles)));
	CHECK(cudaMalloc(&state.operations, 2 * sizeof(*state.operations)));
	CHECK(cudaMalloc(&state.links, 3 * sizeof(*state.links)));
	make_shapes<<<1, 1>>>(state.shapes, squares, circles, state.operations);
	CHECK(cudaMemcpyFromSymbol(found, operations_global, sizeof(found)));
	state.direct = found[0];
	watch(state.table, 256 * sizeof(unsigned int));
	watch(state.counter, sizeof(unsigned int));
}

static void step_globals(int step)
{
	Link links[3];
	unsigned int few[8];

	/* Pointers to a global and to memory, in bytes that are copied inside the window. */
	for (int i = 0; i < 3; i++)
		links[i] = { state.table + 16 * i + step, i < 2 ? state.links + i + 1 : nullptr,
			     3u * i + step };
	CHECK(cudaMemcpy(state.links, links, sizeof(links), cudaMemcpyHostToDevice));
	for (int i = 0; i < 8; i++)
		few[i] = i + step;
	CHECK(cudaMemcpyToSymbol(constants, few, sizeof(few), 16));
	use_globals<<<COUNT / THREADS, THREADS>>>(numbers[0], state.counter, state.shapes,
						  state.operations, state.direct, state.links);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpyFromSymbol(few, table_global, sizeof(few)));
}

/* ---- cooperative ---- */

__global__ void cooperative_sum(unsigned int *numbers, unsigned int *partial)
{
	groups::grid_group grid = groups::this_grid();
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;

	for (unsigned int round = 0; round < 3; round++) {
		partial[i] = numbers[(i + 977) % all] + round;
		grid.sync();
		numbers[i] = partial[(i + 31) % all] * 3 + numbers[i];
		grid.sync();
	}
}

static void prepare_cooperative()
{
	int value = 0;

	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrCooperativeLaunch, 0));
	if (!value)
		unsupported("no cooperative launch");
	numbers[0] = new_numbers(COUNT, 21);
	numbers[1] = new_numbers(COUNT, 22);
}

static void step_cooperative(int step)
{
	void *arguments[] = { &numbers[step % 2], &numbers[1 - step % 2] };

	CHECK(cudaLaunchCooperativeKernel(cooperative_sum, dim3(32), dim3(THREADS), arguments, 0,
					  0));
}

/* ---- clusters: in the kernel and at launch, with distributed shared memory ---- */

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CLUSTERS 1
#endif

#ifdef CLUSTERS
__device__ void exchange(unsigned int *numbers)
{
	__shared__ unsigned int block[THREADS];
	groups::cluster_group cluster = groups::this_cluster();
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	block[threadIdx.x] = numbers[i];
	cluster.sync();
	numbers[i] += *cluster.map_shared_rank(&block[THREADS - 1 - threadIdx.x],
					       (cluster.block_rank() + 1) % cluster.num_blocks());
	cluster.sync();
}
#else
__device__ void exchange(unsigned int *numbers)
{
}
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) cluster_of_kernel(unsigned int *numbers)
{
	exchange(numbers);
}
#else
__global__ void cluster_of_kernel(unsigned int *numbers)
{
}
#endif
__global__ void cluster_of_launch(unsigned int *numbers)
{
	exchange(numbers);
}

static void prepare_clusters()
{
	int value = 0;

	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrClusterLaunch, 0));
	if (!value)
		unsupported("no clusters");
	numbers[0] = new_numbers(COUNT, 31);
	CHECK(cudaFuncSetAttribute(cluster_of_launch,
				   cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
}

static void step_clusters(int step)
{
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};

	cluster_of_kernel<<<COUNT / THREADS, THREADS>>>(numbers[0]);
	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = step % 2 ? 16 : 4;
	attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	config.gridDim = dim3(COUNT / THREADS);
	config.blockDim = dim3(THREADS);
	config.attrs = &attribute;
	config.numAttrs = 1;
	CHECK(cudaLaunchKernelEx(&config, cluster_of_launch, numbers[0]));
}

/* ---- attributes: everything else that a launch and a stream can have ---- */

static cudaStream_t streams[3];

__global__ void dependent(unsigned int *to, const unsigned int *from, unsigned int factor)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

#if __CUDA_ARCH__ >= 900
	cudaGridDependencySynchronize();
#endif
	to[i] = to[i] * factor + from[i];
#if __CUDA_ARCH__ >= 900
	cudaTriggerProgrammaticLaunchCompletion();
#endif
}

__global__ void large_shared(unsigned int *to, const unsigned int *from)
{
	extern __shared__ unsigned int block[];

	for (unsigned int i = threadIdx.x; i < 16384; i += blockDim.x)
		block[i] = from[(i + blockIdx.x) % COUNT];
	__syncthreads();
	to[blockIdx.x * blockDim.x + threadIdx.x] += block[(threadIdx.x * 67) % 16384];
}

__device__ __noinline__ unsigned int recurse(unsigned int depth, unsigned int value)
{
	volatile unsigned int kept[16];

	kept[depth % 16] = value;
	return depth ? recurse(depth - 1, value * 3 + kept[depth % 16]) + 1 : value;
}

__global__ void deep(unsigned int *numbers, unsigned int depth)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	numbers[i] += recurse(depth, i);
}

static void prepare_attributes()
{
	int least, greatest;

	numbers[0] = new_numbers(COUNT, 41);
	numbers[1] = new_numbers(COUNT, 42);
	numbers[2] = new_numbers(COUNT, 43);
	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(cudaStreamCreateWithPriority(&streams[0], cudaStreamNonBlocking, greatest));
	CHECK(cudaFuncSetAttribute(large_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
				   65536));
	CHECK(cudaFuncSetAttribute(large_shared, cudaFuncAttributePreferredSharedMemoryCarveout,
				   100));
	CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 16384));
}

static void step_attributes(int step)
{
	cudaLaunchAttribute attributes[4] = {};
	cudaLaunchConfig_t config = {};
	cudaStreamAttrValue window = {};

	attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attributes[0].val.programmaticStreamSerializationAllowed = 1;
	attributes[1].id = cudaLaunchAttributePriority;
	attributes[1].val.priority = -1;
	attributes[2].id = cudaLaunchAttributeMemSyncDomain;
	attributes[2].val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
	attributes[3].id = cudaLaunchAttributeAccessPolicyWindow;
	attributes[3].val.accessPolicyWindow.base_ptr = numbers[1];
	attributes[3].val.accessPolicyWindow.num_bytes = COUNT;
	attributes[3].val.accessPolicyWindow.hitRatio = 0.5f;
	attributes[3].val.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
	attributes[3].val.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
	window.accessPolicyWindow = attributes[3].val.accessPolicyWindow;
	CHECK(cudaStreamSetAttribute(streams[0], cudaStreamAttributeAccessPolicyWindow, &window));
	config.gridDim = dim3(COUNT / THREADS);
	config.blockDim = dim3(THREADS);
	config.stream = streams[0];
	config.attrs = attributes;
	config.numAttrs = 4;
	for (unsigned int i = 0; i < 4; i++)
		CHECK(cudaLaunchKernelEx(&config, dependent, numbers[i % 2],
					 (const unsigned int *)numbers[1 - i % 2], 3u + i));
	large_shared<<<COUNT / THREADS, THREADS, 65536, streams[0]>>>(numbers[2], numbers[0]);
	deep<<<COUNT / THREADS, THREADS, 0, streams[0]>>>(numbers[2], 20 + step);
	CHECK(cudaGetLastError());
	CHECK(cudaStreamSynchronize(streams[0]));
}

/* ---- streams: events, the legacy default stream, the thread's default stream ---- */

static cudaEvent_t events[4];

static void prepare_streams()
{
	for (int i = 0; i < 3; i++)
		numbers[i] = new_numbers(COUNT, 51 + i);
	CHECK(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
	CHECK(cudaStreamCreate(&streams[2])); /* waits for the default stream */
	for (int i = 0; i < 4; i++)
		CHECK(cudaEventCreateWithFlags(&events[i],
					       i % 2 ? cudaEventDefault : cudaEventDisableTiming));
}

static void step_streams(int step)
{
	mix(numbers[0], numbers[1], 3, streams[0]);
	CHECK(cudaEventRecord(events[0], streams[0]));
	CHECK(cudaStreamWaitEvent(streams[1], events[0], 0));
	mix(numbers[1], numbers[0], 5 + step, streams[1]);
	CHECK(cudaEventRecord(events[1], streams[1]));
	mix(numbers[2], numbers[2], 7, streams[0]);
	CHECK(cudaEventSynchronize(events[1]));
	mix(numbers[1], numbers[1], 9, 0); /* after events[1] by the host */
	mix(numbers[1], numbers[1], 11, streams[2]);
	CHECK(cudaStreamSynchronize(streams[0]));
	mix(numbers[0], numbers[1], 13, 0);
	CHECK(cudaEventRecord(events[2], 0));
	CHECK(cudaStreamWaitEvent(cudaStreamPerThread, events[2], 0));
	mix(numbers[2], numbers[0], 15, cudaStreamPerThread);
	CHECK(cudaStreamSynchronize(cudaStreamPerThread));
	CHECK(cudaDeviceSynchronize());
}

/* ---- graphs ---- */

static cudaGraph_t graphs[2];
static cudaGraphExec_t executables[2];
static cudaGraphNode_t updated_node;

__global__ void add_number(unsigned int *to, unsigned int number)
{
	to[blockIdx.x * blockDim.x + threadIdx.x] += number;
}

/* `allocates`: with memory that belongs to the graph. */
static cudaGraph_t captured(bool allocates)
{
	unsigned int *scratch = numbers[2];
	cudaGraph_t graph;

	CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed));
	if (allocates)
		CHECK(cudaMallocAsync(&scratch, COUNT * sizeof(*scratch), streams[0]));
	mix(numbers[0], numbers[1], 3, streams[0]);
	CHECK(cudaMemcpyAsync(scratch, numbers[0], COUNT * sizeof(*scratch),
			      cudaMemcpyDeviceToDevice, streams[0]));
	CHECK(cudaEventRecord(events[0], streams[0]));
	CHECK(cudaStreamWaitEvent(streams[1], events[0], 0));
	mix(numbers[1], scratch, 5, streams[1]);
	CHECK(cudaMemsetAsync(numbers[0] + 64, 7, 4096, streams[0]));
	add_number<<<COUNT / THREADS, THREADS, 0, streams[0]>>>(numbers[0], 17);
	CHECK(cudaEventRecord(events[1], streams[1]));
	CHECK(cudaStreamWaitEvent(streams[0], events[1], 0));
	mix(numbers[0], numbers[1], 19, streams[0]);
	if (allocates)
		CHECK(cudaFreeAsync(scratch, streams[0]));
	CHECK(cudaStreamEndCapture(streams[0], &graph));
	return graph;
}

static void prepare_graph()
{
	cudaKernelNodeParams parameters = {};
	void *arguments[2];
	unsigned int number = 23;
	cudaGraphNode_t child;

	prepare_streams();
	graphs[0] = captured(false);
	CHECK(cudaGraphInstantiate(&executables[0], graphs[0], 0));
	/* By hand: the captured graph as a child, and a kernel that is updated later. */
	CHECK(cudaGraphCreate(&graphs[1], 0));
	CHECK(cudaGraphAddChildGraphNode(&child, graphs[1], nullptr, 0, graphs[0]));
	arguments[0] = &numbers[2];
	arguments[1] = &number;
	parameters.func = (void *)add_number;
	parameters.gridDim = dim3(COUNT / THREADS);
	parameters.blockDim = dim3(THREADS);
	parameters.kernelParams = arguments;
	CHECK(cudaGraphAddKernelNode(&updated_node, graphs[1], &child, 1, &parameters));
	CHECK(cudaGraphInstantiate(&executables[1], graphs[1], 0));
}

static void step_graph(int step)
{
	cudaKernelNodeParams parameters = {};
	unsigned int number = 29 + step;
	void *arguments[2] = { &numbers[2], &number };

	CHECK(cudaGraphLaunch(executables[0], streams[0]));
	CHECK(cudaStreamSynchronize(streams[0]));
	parameters.func = (void *)add_number;
	parameters.gridDim = dim3(COUNT / THREADS);
	parameters.blockDim = dim3(THREADS);
	parameters.kernelParams = arguments;
	CHECK(cudaGraphExecKernelNodeSetParams(executables[1], updated_node, &parameters));
	CHECK(cudaGraphLaunch(executables[1], streams[1]));
	CHECK(cudaGraphLaunch(executables[1], streams[1]));
	CHECK(cudaStreamSynchronize(streams[1]));
}

static void prepare_graph_memory()
{
	prepare_streams();
	graphs[0] = captured(true);
	CHECK(cudaGraphInstantiate(&executables[0], graphs[0],
				   cudaGraphInstantiateFlagAutoFreeOnLaunch));
}

static void step_graph_memory(int step)
{
	CHECK(cudaGraphLaunch(executables[0], streams[0]));
	if (step == 3) {
		/* Another one, made inside the window. */
		graphs[1] = captured(true);
		CHECK(cudaGraphInstantiate(&executables[1], graphs[1], 0));
		CHECK(cudaGraphLaunch(executables[1], streams[0]));
	}
	CHECK(cudaStreamSynchronize(streams[0]));
}

/* ---- pools: asynchronous allocation ---- */

static cudaMemPool_t pool;

static void prepare_pools()
{
	cudaMemPoolProps properties = {};
	int value = 0;
	uint64_t threshold = UINT64_MAX;

	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMemoryPoolsSupported, 0));
	if (!value)
		unsupported("no memory pools");
	prepare_streams();
	properties.allocType = cudaMemAllocationTypePinned;
	properties.location.type = cudaMemLocationTypeDevice;
	CHECK(cudaMemPoolCreate(&pool, &properties));
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

static void step_pools(int step)
{
	unsigned int *first, *second, *third;

	CHECK(cudaMallocAsync(&first, COUNT * 4, streams[0]));
	CHECK(cudaMemsetAsync(first, step, COUNT * 4, streams[0]));
	mix(first, numbers[0], 3, streams[0]);
	mix(numbers[0], first, 5, streams[0]);
	CHECK(cudaFreeAsync(first, streams[0]));
	CHECK(cudaMallocFromPoolAsync(&second, COUNT * 4 + 100, pool, streams[0]));
	CHECK(cudaMemsetAsync(second, 1, COUNT * 4 + 100, streams[0]));
	CHECK(cudaEventRecord(events[0], streams[0]));
	CHECK(cudaStreamWaitEvent(streams[1], events[0], 0));
	mix(second, numbers[1], 7, streams[1]);
	mix(numbers[1], second, 9, streams[1]);
	CHECK(cudaFreeAsync(second, streams[1]));
	CHECK(cudaMalloc(&third, 3u << 20));
	CHECK(cudaMemset(third, step + 3, 3u << 20));
	mix(third, numbers[2], 11, 0);
	mix(numbers[2], third, 13, 0);
	CHECK(cudaFree(third));
	CHECK(cudaDeviceSynchronize());
}

/* ---- host: memory that kernels read, changed by the host without a call ---- */

static unsigned int *pinned, *registered, *registered_start;

__global__ void read_host(unsigned int *to, const unsigned int *host)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] = to[i] * 5 + host[i % 4096];
}

__global__ void write_host(unsigned int *host, const unsigned int *from)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < 1024)
		host[i] = from[i];
}

static void prepare_host()
{
	numbers[0] = new_numbers(COUNT, 61);
	numbers[1] = new_numbers(COUNT, 62);
	CHECK(cudaMallocHost(&pinned, 65536));
	registered_start = (unsigned int *)malloc(65536 + 8192);
	registered = registered_start + 100;
	for (unsigned int i = 0; i < 16384; i++)
		pinned[i] = registered[i] = i;
	CHECK(cudaHostRegister(registered, 65536, cudaHostRegisterMapped));
	watch(pinned, 65536);
}

static void step_host(int step)
{
	void *device;

	CHECK(cudaHostGetDevicePointer(&device, registered, 0));
	for (unsigned int i = 0; i < 4096; i += 1 + step)
		pinned[i] += i * step + 1;
	registered[step] = 1000 + step;
	read_host<<<COUNT / THREADS, THREADS>>>(numbers[0], pinned);
	CHECK(cudaDeviceSynchronize());
	registered[2048 + step] = 77 + step;
	read_host<<<COUNT / THREADS, THREADS>>>(numbers[1], (const unsigned int *)device);
	write_host<<<4, 256>>>(pinned + 8192, numbers[0]);
	CHECK(cudaMemcpyAsync(pinned + 10240, numbers[1], 8192, cudaMemcpyDeviceToHost, 0));
	CHECK(cudaDeviceSynchronize());
	for (unsigned int i = 0; i < 1024; i++)
		pinned[i] ^= pinned[8192 + i] + pinned[10240 + i];
	CHECK(cudaMemcpyAsync(numbers[0], pinned, 4096, cudaMemcpyHostToDevice, 0));
	CHECK(cudaDeviceSynchronize());
}

/* ---- copies: rectangles, batches ---- */

static cudaPitchedPtr box;
static unsigned char *pitched;
static size_t pitch;

static void prepare_copies()
{
	numbers[0] = new_numbers(COUNT, 71);
	numbers[1] = new_numbers(COUNT, 72);
	CHECK(cudaMallocPitch(&pitched, &pitch, 1000, 64));
	CHECK(cudaMemset(pitched, 3, pitch * 64));
	CHECK(cudaMalloc3D(&box, make_cudaExtent(300, 20, 10)));
	CHECK(cudaMemset(box.ptr, 4, box.pitch * 200));
	CHECK(cudaMallocHost(&pinned, 65536));
	memset(pinned, 9, 65536);
	watch(pitched, pitch * 64);
	watch(box.ptr, box.pitch * 200);
}

static void step_copies(int step)
{
	cudaMemcpy3DParms cube = {};
	cudaMemcpyAttributes attributes = {};
	void *to[3] = { numbers[1], numbers[1] + 4096, numbers[1] + 9001 };
	const void *from[3] = { numbers[0] + 7, numbers[0] + 20000, pinned };
	size_t sizes[3] = { 4096, 100, 6000 }, first = 0;
	static unsigned char host[64 * 1000];

	for (unsigned int i = 0; i < sizeof(host); i++)
		host[i] = (unsigned char)(i * 7 + step);
	CHECK(cudaMemcpy2D(pitched + step, pitch, host, 900, 800, 60, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2D(numbers[0], 1000, pitched, pitch, 1000, 64, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemset2D(pitched + 16, pitch, step, 100, 30));
	CHECK(cudaMemset3D(box, step + 1, make_cudaExtent(100, 10, 5)));
	cube.srcPtr = make_cudaPitchedPtr(host, 300, 300, 20);
	cube.dstPtr = box;
	cube.dstPos = make_cudaPos(10, 1, 1);
	cube.extent = make_cudaExtent(200, 10, 6);
	cube.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&cube));
	pinned[step] = step;
	attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CHECK(cudaStreamSynchronize(streams[0]));
	CHECK(cudaMemcpyBatchAsync(to, from, sizes, 3, &attributes, &first, 1, streams[0]));
	CHECK(cudaStreamSynchronize(streams[0]));
	CHECK(cudaMemcpy2D(host, 1000, pitched, pitch, 1000, 64, cudaMemcpyDeviceToHost));
}

static void prepare_copies_streams()
{
	CHECK(cudaStreamCreate(&streams[0]));
	prepare_copies();
}

/* ---- race: two streams, no event between writer and reader ---- */

__global__ void race_write(unsigned int *shared, unsigned int step)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	shared[i] = shared[i] * 3 + step;
}

__global__ void race_read(unsigned int *to, const unsigned int *shared)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] = to[i] * 5 + shared[i];
}

static void step_race(int step)
{
	race_write<<<COUNT / THREADS, THREADS, 0, streams[0]>>>(numbers[0], step + 1);
	race_read<<<COUNT / THREADS, THREADS, 0, streams[1]>>>(numbers[1], numbers[0]);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
}

/* ---- atomics: the order of additions of floats is not determined ---- */

static float *sums;

__global__ void atomic_sum(float *sums, const unsigned int *numbers)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	atomicAdd(&sums[numbers[i] % 7], (float)(numbers[i] % 10007) * 0.37f);
}

static void prepare_atomics()
{
	numbers[0] = new_numbers(COUNT, 81);
	CHECK(cudaMalloc(&sums, 64));
	CHECK(cudaMemset(sums, 0, 64));
}

static void step_atomics(int step)
{
	mix(numbers[0], numbers[0], 3 + step, 0);
	atomic_sum<<<COUNT / THREADS, THREADS>>>(sums, numbers[0]);
	CHECK(cudaDeviceSynchronize());
}

/* ---- spin: waits for the host, which a replay does not do ---- */

__global__ void spin_on_host(volatile unsigned int *flag, unsigned int *to)
{
	while (!*flag)
		;
	*to += *flag;
}

static void prepare_spin()
{
	numbers[0] = new_numbers(COUNT, 91);
	CHECK(cudaMallocHost(&pinned, 4096));
	watch(pinned, 4096);
}

static void step_spin(int step)
{
	volatile unsigned int *flag = pinned;

	*flag = 0;
	spin_on_host<<<1, 1>>>(pinned, numbers[0]);
	CHECK(cudaGetLastError());
	usleep(20000);
	*flag = step + 1;
	CHECK(cudaDeviceSynchronize());
}

/* ---- pageable: memory of malloc(), where the device can read that ---- */

static void prepare_pageable()
{
	int value = 0;

	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrPageableMemoryAccess, 0));
	if (!value)
		unsupported("no access to pageable memory");
	numbers[0] = new_numbers(COUNT, 95);
	pinned = (unsigned int *)calloc(65536, 1);
}

static void step_pageable(int step)
{
	pinned[step] = step;
	read_host<<<COUNT / THREADS, THREADS>>>(numbers[0], pinned);
	CHECK(cudaDeviceSynchronize());
}

/* ---- answers: what a program learns; equal with and without recording ---- */

static void say(const char *what, cudaError_t code)
{
	printf("%s: %s\n", what, cudaGetErrorName(code));
	(void)cudaGetLastError();
}

__global__ void wait_ns(unsigned long long ns)
{
	unsigned long long begin, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	while (now - begin < ns);
}

static void prepare_answers()
{
	numbers[0] = new_numbers(COUNT, 97);
	CHECK(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&events[0], cudaEventDisableTiming));
}

static void step_answers(int)
{
	cudaPointerAttributes attributes = {};
	size_t free_bytes, all_bytes, later, bytes = 0;
	unsigned char *block, *small[3], *again;
	CUdeviceptr start = 0;
	char device[64];

	CHECK(cudaMemGetInfo(&free_bytes, &all_bytes));
	say("too much memory", cudaMalloc(&block, all_bytes * 2));
	say("no memory", cudaMalloc(&block, 0));
	printf("of no bytes: %d\n", block == nullptr);
	say("an invalid pointer", cudaFree((void *)0x12345678));
	CHECK(cudaMalloc(&block, 100 << 20));
	for (int i = 0; i < 3; i++)
		CHECK(cudaMalloc(&small[i], 1000));
	say("inside a block", cudaFree(small[1] + 256));
	CHECK(cudaPointerGetAttributes(&attributes, small[1] + 10));
	printf("type %d, device %d, host %d\n", attributes.type, attributes.device,
	       attributes.hostPointer != nullptr);
	CUresult (*range)(CUdeviceptr *, size_t *, CUdeviceptr);
	cudaDriverEntryPointQueryResult found;
	CHECK(cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", (void **)&range, 12000,
					       cudaEnableDefault, &found));
	printf("range: %d", range(&start, &bytes, (CUdeviceptr)(small[1] + 999)));
	printf(" at %d, %zu bytes\n", (int)(start == (CUdeviceptr)small[1]), bytes);
	CHECK(cudaMemGetInfo(&later, &all_bytes));
	CHECK(cudaFree(small[1]));
	say("again", cudaFree(small[1]));
	CHECK(cudaFree(small[0]));
	CHECK(cudaFree(small[2]));
	/* A free waits for the device. */
	wait_ns<<<1, 1, 0, streams[0]>>>(20000000);
	CHECK(cudaEventRecord(events[0], streams[0]));
	CHECK(cudaFree(block));
	say("after a free", cudaEventQuery(events[0]));
	CHECK(cudaMallocAsync(&block, 1 << 20, streams[0]));
	CHECK(cudaFreeAsync(block, streams[0]));
	CHECK(cudaMallocAsync(&again, 1 << 20, streams[0]));
	printf("reused in its stream: %d\n", block == again);
	CHECK(cudaFreeAsync(again, streams[0]));
	say("to nowhere", cudaMemcpy((void *)0x10, device, 4, cudaMemcpyHostToDevice));
	CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
	say("an allocation while a stream is captured", cudaMalloc(&block, 4096));
	cudaGraph_t graph = nullptr;
	say("end of the capture", cudaStreamEndCapture(streams[0], &graph));
	(void)cudaGetLastError();
	CHECK(cudaDeviceSynchronize());
	mix(numbers[0], numbers[0], 3, 0);
}

/* ---- memory: much of it, for the rate of a snapshot ---- */

static void prepare_memory()
{
	const char *text = getenv("REPLAY_PROGRAM_MIB");
	unsigned int gib = (text ? atoi(text) : 2048) / 1024;
	unsigned int *block;

	numbers[0] = new_numbers(COUNT, 99);
	for (unsigned int i = 0; i < gib; i++) {
		CHECK(cudaMalloc(&block, 1u << 30));
		for (unsigned int k = 0; k < 4096; k++)
			mix(block + (size_t)k * COUNT, numbers[0], i * 4096 + k, 0);
	}
}

static void step_memory(int step)
{
	mix(numbers[0], numbers[0], 3 + step, 0);
	CHECK(cudaDeviceSynchronize());
	usleep(100000);
}

/* ---- main ---- */

static const struct {
	const char *name;
	void (*prepare)();
	void (*step)(int step);
} modes[] = {
	{ "plain", prepare_plain, step_plain },
	{ "globals", prepare_globals, step_globals },
	{ "cooperative", prepare_cooperative, step_cooperative },
	{ "clusters", prepare_clusters, step_clusters },
	{ "attributes", prepare_attributes, step_attributes },
	{ "streams", prepare_streams, step_streams },
	{ "graph", prepare_graph, step_graph },
	{ "graph-memory", prepare_graph_memory, step_graph_memory },
	{ "pools", prepare_pools, step_pools },
	{ "host", prepare_host, step_host },
	{ "copies", prepare_copies_streams, step_copies },
	{ "race", prepare_streams, step_race },
	{ "atomics", prepare_atomics, step_atomics },
	{ "spin", prepare_spin, step_spin },
	{ "pageable", prepare_pageable, step_pageable },
	{ "answers", prepare_answers, step_answers },
	{ "memory", prepare_memory, step_memory },
};

static void run(const char *name, int steps)
{
	for (unsigned int i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (strcmp(name, modes[i].name) != 0)
			continue;
		current_mode = modes[i].name;
		watched_count = 0;
		modes[i].prepare();
		/* Copies of pageable memory may be under way, and not all streams wait for them. */
		CHECK(cudaDeviceSynchronize());
		for (int step = 0; step < 2; step++)
			modes[i].step(step);
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaProfilerStart());
		for (int step = 2; step < 2 + steps; step++)
			modes[i].step(step);
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaProfilerStop());
		if (getenv("REPLAY_PROGRAM_DUMP"))
			store_watched(getenv("REPLAY_PROGRAM_DUMP"));
		printf("%s: %016llx\n", name, (unsigned long long)hash_of_watched());
		return;
	}
	fprintf(stderr, "no mode is called %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	char names[256];
	int count = 0;

	if (argc < 2 || strlen(argv[1]) >= sizeof(names)) {
		fprintf(stderr, "usage: replay_program MODE[,MODE...] [STEPS]\n");
		return 2;
	}
	if (cudaGetDeviceCount(&count) != cudaSuccess || !count) {
		fprintf(stderr, "no device\n");
		return 77;
	}
	strcpy(names, argv[1]);
	for (char *name = strtok(names, ","); name; name = strtok(nullptr, ","))
		run(name, argc > 2 ? atoi(argv[2]) : 4);
	return 0;
}
