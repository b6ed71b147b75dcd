/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of every CUPTI version, as declared in NVIDIA's headers, decode to the same operation.
 * Skipped without the headers.
 */
#include "cuda/played.h"

#ifdef TS_HAVE_CUDA_HEADERS
#include <cupti.h>
#include <tracesmith/schema.h>

static const struct ts_gpu_op *read_record(const void *record)
{
	uint32_t before = ops_now();

	cuda_ops_record(record);
	TS_CHECK_INT(ops_now(), before + 1);
	return &ops[before].op;
}

static void check_entities(const struct ts_gpu_op *op)
{
	TS_CHECK_INT(op->start, 1111);
	TS_CHECK_INT(op->end, 2222);
	TS_CHECK_INT(op->device, 3);
	TS_CHECK_INT(op->context, 4);
	TS_CHECK_INT(op->stream, 5);
	TS_CHECK_INT(op->correlation, 66);
	TS_CHECK_INT(op->graph, 7);
	TS_CHECK_INT(op->graph_node, 88);
}

#define ENTITIES                                                                  \
	.start = 1111, .end = 2222, .deviceId = 3, .contextId = 4, .streamId = 5, \
	.correlationId = 66, .graphId = 7, .graphNodeId = 88

#define KERNEL(type)                                                                            \
	do {                                                                                    \
		type kernel = { ENTITIES,                                                       \
				.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,                  \
				.registersPerThread = 40,                                       \
				.gridX = 10,                                                    \
				.gridY = 11,                                                    \
				.gridZ = 12,                                                    \
				.blockX = 13,                                                   \
				.blockY = 14,                                                   \
				.blockZ = 15,                                                   \
				.staticSharedMemory = 100,                                      \
				.dynamicSharedMemory = 200,                                     \
				.name = #type };                                                \
		const struct ts_gpu_op *op = read_record(&kernel);                              \
                                                                                                \
		check_entities(op);                                                             \
		TS_CHECK_INT(op->kind, TS_GPU_OP_KERNEL);                                       \
		TS_CHECK_INT(op->registers, 40);                                                \
		TS_CHECK_INT(op->shared_bytes, 300);                                            \
		TS_CHECK_INT(op->grid[0] * 10000 + op->grid[1] * 100 + op->grid[2], 101112);    \
		TS_CHECK_INT(op->block[0] * 10000 + op->block[1] * 100 + op->block[2], 131415); \
		TS_CHECK_STR(ops[ops_now() - 1].name, #type);                                   \
	} while (0)

#define COPY_OF(type, of_kind, direction, expected, called)                 \
	do {                                                                \
		type copy = { ENTITIES,                                     \
			      .kind = of_kind,                              \
			      .copyKind = direction,                        \
			      .srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED, \
			      .dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, \
			      .bytes = 12345 };                             \
		const struct ts_gpu_op *op = read_record(&copy);            \
                                                                            \
		check_entities(op);                                         \
		TS_CHECK_INT(op->kind, TS_GPU_OP_COPY);                     \
		TS_CHECK_INT(op->copy_kind, expected);                      \
		TS_CHECK_INT(op->bytes, 12345);                             \
		TS_CHECK_STR(ops[ops_now() - 1].name, called);              \
	} while (0)

#define FILL(type)                                                                                \
	do {                                                                                      \
		type fill = { ENTITIES, .kind = CUPTI_ACTIVITY_KIND_MEMSET,                       \
			      .memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, .bytes = 54321 }; \
		const struct ts_gpu_op *op = read_record(&fill);                                  \
                                                                                                  \
		check_entities(op);                                                               \
		TS_CHECK_INT(op->kind, TS_GPU_OP_FILL);                                           \
		TS_CHECK_INT(op->bytes, 54321);                                                   \
		TS_CHECK_STR(ops[ops_now() - 1].name, "Memset (Managed)");                        \
	} while (0)

TS_TEST(kernels_of_all_versions)
{
	KERNEL(CUpti_ActivityKernel6);
	KERNEL(CUpti_ActivityKernel7);
	KERNEL(CUpti_ActivityKernel8);
	KERNEL(CUpti_ActivityKernel9);
	KERNEL(CUpti_ActivityKernel10);
}

TS_TEST(copies_of_all_versions)
{
	COPY_OF(CUpti_ActivityMemcpy4, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
		TS_COPY_HOST_TO_DEVICE, "Memcpy HtoD (Pinned -> Device)");
	COPY_OF(CUpti_ActivityMemcpy5, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD,
		TS_COPY_DEVICE_TO_DEVICE, "Memcpy DtoD (Pinned -> Device)");
	COPY_OF(CUpti_ActivityMemcpy6, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH,
		TS_COPY_DEVICE_TO_HOST, "Memcpy DtoH (Pinned -> Device)");
	COPY_OF(CUpti_ActivityMemcpyPtoP3, CUPTI_ACTIVITY_KIND_MEMCPY2,
		CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, TS_COPY_PEER_TO_PEER,
		"Memcpy PtoP (Pinned -> Device)");
	COPY_OF(CUpti_ActivityMemcpyPtoP4, CUPTI_ACTIVITY_KIND_MEMCPY2,
		CUPTI_ACTIVITY_MEMCPY_KIND_HTOA, TS_COPY_UNKNOWN, "Memcpy HtoA (Pinned -> Device)");
}

TS_TEST(fills_of_all_versions)
{
	FILL(CUpti_ActivityMemset3);
	FILL(CUpti_ActivityMemset4);
}
#else
TS_TEST(records_of_all_versions)
{
	ts_test_skip("no CUDA headers");
}
#endif
