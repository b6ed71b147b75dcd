/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lengths of CUPTI's records (docs/cuda.md, section 3). The fields that we read have the same
 * offsets in all versions since CUDA 11.6; later versions append fields. CUPTI's own iteration over
 * the first buffer shows the actual length.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "backends/cuda/cupti/cupti_device.h"

#define LENGTHS 5
#define LONGEST 1024

/* Record lengths by kind and result of cuptiGetVersion(), the newest last. */
static const struct {
	uint32_t kind;
	struct {
		uint32_t since;
		uint16_t bytes; /* 0: longer than the one before; learned */
	} versions[LENGTHS];
} known[] = {
	/* Kernel7: CUDA 11.6, Kernel8: 11.8, Kernel9: 12.0, Kernel10: 13.0, Kernel11: 13.2. */
	{ CUPTI_KIND_CONCURRENT_KERNEL,
	  { { 17, 176 }, { 18, 200 }, { 19, 208 }, { 130000, 216 }, { 130200, 0 } } },
	/* Memcpy5: 11.6, Memcpy6: 12.8. */
	{ CUPTI_KIND_MEMCPY, { { 17, 88 }, { 26, 96 }, { 130200, 0 } } },
	/* MemcpyPtoP4 and Memset4: 11.6. */
	{ CUPTI_KIND_MEMCPY2, { { 17, 96 }, { 130200, 0 } } },
	{ CUPTI_KIND_MEMSET, { { 17, 88 }, { 130200, 0 } } },
};

/* By kind, in bytes. Only for the reader, once started. */
static uint16_t learned[CUPTI_KIND_LIMIT];
static bool is_reported;

static int find(uint32_t kind)
{
	for (int i = 0; i < (int)(sizeof(known) / sizeof(known[0])); i++)
		if (known[i].kind == kind)
			return i;
	return -1;
}

bool cuda_layout_is_ours(uint32_t kind)
{
	return find(kind) >= 0;
}

size_t cuda_layout_bytes(uint32_t kind)
{
	return kind < CUPTI_KIND_LIMIT ? learned[kind] : 0;
}

void cuda_layout_begin(uint32_t version)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (int j = 0; j < LENGTHS && known[i].versions[j].since; j++)
			if (version >= known[i].versions[j].since)
				learned[known[i].kind] = known[i].versions[j].bytes;
}

static bool is_known(int of, size_t bytes, size_t *ret_longest)
{
	*ret_longest = 0;
	for (int i = 0; i < LENGTHS && known[of].versions[i].bytes; i++) {
		*ret_longest = known[of].versions[i].bytes;
		if (bytes == *ret_longest)
			return true;
	}
	return false;
}

/*
 * Without reading memory that may not be mapped. If a sandbox forbids the first way, tries a
 * second.
 */
static bool is_readable(uint64_t address)
{
	uint64_t page = address & ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1);
	unsigned char byte;
	struct iovec to = { &byte, 1 };
	struct iovec from = { (void *)(uintptr_t)address, 1 };

	if (!address)
		return false;
	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1)
		return true;
	return errno != EFAULT && !mincore((void *)(uintptr_t)page, 1, &byte);
}

/* For a record of unknown length: whether the fields that we read are plausible. */
static bool is_believable(const uint8_t *record, uint32_t kind)
{
	bool is_kernel = kind == CUPTI_KIND_CONCURRENT_KERNEL;
	uint32_t device =
		cuda_read_u32(record, is_kernel ? CUPTI_KERNEL_DEVICE : CUPTI_MEMORY_DEVICE);

	if (device >= 4096 ||
	    cuda_read_u64(record, CUPTI_AT_START) > cuda_read_u64(record, CUPTI_AT_END))
		return false;
	if (!is_kernel)
		return true;
	for (int i = 0; i < 3; i++) {
		uint32_t threads = cuda_read_u32(record, CUPTI_KERNEL_BLOCK + 4 * (size_t)i);

		if (!cuda_read_u32(record, CUPTI_KERNEL_GRID + 4 * (size_t)i) || !threads ||
		    threads > 1024)
			return false;
	}
	return is_readable(cuda_read_u64(record, CUPTI_KERNEL_NAME));
}

void cuda_layout_learn(const uint8_t *record, size_t bytes)
{
	uint32_t kind = cuda_read_u32(record, CUPTI_AT_KIND);
	size_t longest;
	int of;

	if (cuda_layout_bytes(kind) == bytes)
		return;
	of = find(kind);
	if (of < 0)
		return;
	learned[kind] = 0;
	if (is_known(of, bytes, &longest) || (bytes > longest && bytes <= LONGEST &&
					      bytes % 8 == 0 && is_believable(record, kind))) {
		learned[kind] = (uint16_t)bytes;
	} else if (!is_reported) {
		is_reported = true;
		cuda_device_refuse("unknown record layout of this CUPTI version");
	}
}

/* ---- comparison with NVIDIA's headers ---- */

#ifdef TS_HAVE_CUDA_HEADERS
#include <assert.h>
#include <cupti.h>

#define SAME(type, member, offset) \
	static_assert(offsetof(type, member) == (offset), #type "." #member)
#define LONG(type, bytes) static_assert(sizeof(type) == (bytes), #type)

#define KERNEL(type, bytes)                                           \
	LONG(type, bytes);                                            \
	SAME(type, registersPerThread, CUPTI_KERNEL_REGISTERS);       \
	SAME(type, start, CUPTI_AT_START);                            \
	SAME(type, end, CUPTI_AT_END);                                \
	SAME(type, deviceId, CUPTI_KERNEL_DEVICE);                    \
	SAME(type, contextId, CUPTI_KERNEL_CONTEXT);                  \
	SAME(type, streamId, CUPTI_KERNEL_STREAM);                    \
	SAME(type, gridX, CUPTI_KERNEL_GRID);                         \
	SAME(type, gridZ, CUPTI_KERNEL_GRID + 8);                     \
	SAME(type, blockX, CUPTI_KERNEL_BLOCK);                       \
	SAME(type, staticSharedMemory, CUPTI_KERNEL_STATIC_SHARED);   \
	SAME(type, dynamicSharedMemory, CUPTI_KERNEL_DYNAMIC_SHARED); \
	SAME(type, correlationId, CUPTI_KERNEL_CORRELATION);          \
	SAME(type, name, CUPTI_KERNEL_NAME);                          \
	SAME(type, graphNodeId, CUPTI_KERNEL_NODE);                   \
	SAME(type, graphId, CUPTI_KERNEL_GRAPH)
KERNEL(CUpti_ActivityKernel6, 168);
KERNEL(CUpti_ActivityKernel7, 176);
KERNEL(CUpti_ActivityKernel8, 200);
KERNEL(CUpti_ActivityKernel9, 208);
KERNEL(CUpti_ActivityKernel10, 216);

#define MEMORY(type, bytes_of_it)                    \
	LONG(type, bytes_of_it);                     \
	SAME(type, bytes, CUPTI_MEMORY_BYTES);       \
	SAME(type, start, CUPTI_AT_START);           \
	SAME(type, end, CUPTI_AT_END);               \
	SAME(type, deviceId, CUPTI_MEMORY_DEVICE);   \
	SAME(type, contextId, CUPTI_MEMORY_CONTEXT); \
	SAME(type, streamId, CUPTI_MEMORY_STREAM)
#define COPY(type, bytes, correlation, node, graph) \
	MEMORY(type, bytes);                        \
	SAME(type, copyKind, CUPTI_COPY_KIND);      \
	SAME(type, srcKind, CUPTI_COPY_FROM);       \
	SAME(type, dstKind, CUPTI_COPY_TO);         \
	SAME(type, correlationId, correlation);     \
	SAME(type, graphNodeId, node);              \
	SAME(type, graphId, graph)
COPY(CUpti_ActivityMemcpy4, 80, CUPTI_COPY_CORRELATION, CUPTI_COPY_NODE, CUPTI_COPY_GRAPH);
COPY(CUpti_ActivityMemcpy5, 88, CUPTI_COPY_CORRELATION, CUPTI_COPY_NODE, CUPTI_COPY_GRAPH);
COPY(CUpti_ActivityMemcpy6, 96, CUPTI_COPY_CORRELATION, CUPTI_COPY_NODE, CUPTI_COPY_GRAPH);
COPY(CUpti_ActivityMemcpyPtoP3, 88, CUPTI_PEER_CORRELATION, CUPTI_PEER_NODE, CUPTI_PEER_GRAPH);
COPY(CUpti_ActivityMemcpyPtoP4, 96, CUPTI_PEER_CORRELATION, CUPTI_PEER_NODE, CUPTI_PEER_GRAPH);

#define FILL(type, bytes)                                  \
	MEMORY(type, bytes);                               \
	SAME(type, correlationId, CUPTI_FILL_CORRELATION); \
	SAME(type, memoryKind, CUPTI_FILL_MEMORY);         \
	SAME(type, graphNodeId, CUPTI_FILL_NODE);          \
	SAME(type, graphId, CUPTI_FILL_GRAPH)
FILL(CUpti_ActivityMemset3, 80);
FILL(CUpti_ActivityMemset4, 88);

LONG(CUpti_CallbackData, sizeof(struct cupti_call));
SAME(CUpti_CallbackData, functionName, offsetof(struct cupti_call, function));
SAME(CUpti_CallbackData, functionReturnValue, offsetof(struct cupti_call, result));
SAME(CUpti_CallbackData, correlationId, offsetof(struct cupti_call, correlation));
LONG(CUpti_ResourceData, sizeof(struct cupti_resource));
SAME(CUpti_ResourceData, resourceDescriptor, offsetof(struct cupti_resource, descriptor));
LONG(CUpti_ModuleResourceData, sizeof(struct cupti_module));
SAME(CUpti_ModuleResourceData, pCubin, offsetof(struct cupti_module, image));
LONG(CUpti_GraphData, sizeof(struct cupti_graph));
SAME(CUpti_GraphData, originalNode, offsetof(struct cupti_graph, original_node));

#define NUMBER(ours, theirs) static_assert((int)(ours) == (int)(theirs), #ours)
NUMBER(CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
NUMBER(CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
NUMBER(CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
NUMBER(CUPTI_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
NUMBER(CUPTI_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
static_assert((int)CUPTI_KIND_LIMIT > (int)CUPTI_ACTIVITY_KIND_COUNT, "kinds are below it");
NUMBER(CUPTI_ATTRIBUTE_ZEROED, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
NUMBER(CUPTI_DOMAINS, CUPTI_CB_DOMAIN_SIZE);
NUMBER(CUPTI_NODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
NUMBER(CUPTI_NODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
NUMBER(CUPTI_MODULE_UNLOAD, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
NUMBER(CUPTI_OTHER_SUBSCRIBER, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
NUMBER(CUPTI_NO_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
NUMBER(CUPTI_MIG, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED);
NUMBER(CUPTI_COPY_PTOP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
NUMBER(CUPTI_MEMORY_KINDS, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC + 1);
#endif
