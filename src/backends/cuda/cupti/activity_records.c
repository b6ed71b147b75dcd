/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a CUPTI activity record to a gpu_op. Called only by the buffer reader, with complete
 * records.
 */
#include <string.h>

#include <tracesmith/schema.h>

#include "backends/cuda/cupti/cupti_device.h"

/* Collectives whose kernel records have not arrived yet; the oldest are overwritten. */
#define COLLECTIVES 4096u

struct collective {
	uint64_t serial; /* correlation, written last */
	int64_t bytes;
};
static struct collective collectives[COLLECTIVES];

/* ---- collectives ---- */

void cuda_device_collective(uint32_t correlation, int64_t bytes)
{
	struct collective *at = &collectives[correlation % COLLECTIVES];

	__atomic_store_n(&at->serial, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&at->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&at->serial, correlation, __ATOMIC_RELEASE);
}

int64_t cuda_ops_collective(uint32_t correlation)
{
	const struct collective *at = &collectives[correlation % COLLECTIVES];
	int64_t bytes;

	if (!correlation || __atomic_load_n(&at->serial, __ATOMIC_ACQUIRE) != correlation)
		return TS_UNKNOWN;
	bytes = __atomic_load_n(&at->bytes, __ATOMIC_RELAXED);
	return __atomic_load_n(&at->serial, __ATOMIC_ACQUIRE) == correlation ? bytes : TS_UNKNOWN;
}

/* ---- records ---- */

static uint16_t read_u16(const uint8_t *record, size_t at)
{
	uint16_t value;

	memcpy(&value, record + at, sizeof(value));
	return value;
}

static struct ts_emit_site *read_kernel(const uint8_t *record, struct ts_gpu_op *op)
{
	const char *name = (const char *)(uintptr_t)cuda_read_u64(record, CUPTI_KERNEL_NAME);

	op->kind = TS_GPU_OP_KERNEL;
	op->device = cuda_read_u32(record, CUPTI_KERNEL_DEVICE);
	op->context = cuda_read_u32(record, CUPTI_KERNEL_CONTEXT);
	op->stream = cuda_read_u32(record, CUPTI_KERNEL_STREAM);
	op->correlation = cuda_read_u32(record, CUPTI_KERNEL_CORRELATION);
	for (size_t i = 0; i < 3; i++) {
		op->grid[i] = cuda_read_u32(record, CUPTI_KERNEL_GRID + 4 * i);
		op->block[i] = cuda_read_u32(record, CUPTI_KERNEL_BLOCK + 4 * i);
	}
	op->registers = read_u16(record, CUPTI_KERNEL_REGISTERS);
	op->shared_bytes = cuda_read_u32(record, CUPTI_KERNEL_STATIC_SHARED) +
			   cuda_read_u32(record, CUPTI_KERNEL_DYNAMIC_SHARED);
	op->graph_node = cuda_read_u64(record, CUPTI_KERNEL_NODE);
	op->graph = cuda_read_u32(record, CUPTI_KERNEL_GRAPH);
	if (name && cuda_names_is_collective(name)) {
		op->kind = TS_GPU_OP_COLLECTIVE;
		op->bytes = cuda_ops_collective((uint32_t)op->correlation);
	}
	return cuda_names_kernel(name ? name : "(kernel)");
}

static void read_memory(const uint8_t *record, struct ts_gpu_op *op)
{
	op->device = cuda_read_u32(record, CUPTI_MEMORY_DEVICE);
	op->context = cuda_read_u32(record, CUPTI_MEMORY_CONTEXT);
	op->stream = cuda_read_u32(record, CUPTI_MEMORY_STREAM);
	op->bytes = (int64_t)cuda_read_u64(record, CUPTI_MEMORY_BYTES);
}

static uint8_t copy_kind(uint8_t kind)
{
	switch (kind) {
	case CUPTI_COPY_HTOD:
		return TS_COPY_HOST_TO_DEVICE;
	case CUPTI_COPY_DTOH:
		return TS_COPY_DEVICE_TO_HOST;
	case CUPTI_COPY_DTOD:
		return TS_COPY_DEVICE_TO_DEVICE;
	case CUPTI_COPY_HTOH:
		return TS_COPY_HOST_TO_HOST;
	case CUPTI_COPY_PTOP:
		return TS_COPY_PEER_TO_PEER;
	default:
		return TS_COPY_UNKNOWN;
	}
}

static struct ts_emit_site *read_copy(const uint8_t *record, struct ts_gpu_op *op, bool is_peer)
{
	read_memory(record, op);
	op->kind = TS_GPU_OP_COPY;
	op->copy_kind = copy_kind(record[CUPTI_COPY_KIND]);
	op->correlation =
		cuda_read_u32(record, is_peer ? CUPTI_PEER_CORRELATION : CUPTI_COPY_CORRELATION);
	op->graph_node = cuda_read_u64(record, is_peer ? CUPTI_PEER_NODE : CUPTI_COPY_NODE);
	op->graph = cuda_read_u32(record, is_peer ? CUPTI_PEER_GRAPH : CUPTI_COPY_GRAPH);
	return cuda_names_copy(record[CUPTI_COPY_KIND], record[CUPTI_COPY_FROM],
			       record[CUPTI_COPY_TO]);
}

static struct ts_emit_site *read_fill(const uint8_t *record, struct ts_gpu_op *op)
{
	read_memory(record, op);
	op->kind = TS_GPU_OP_FILL;
	op->correlation = cuda_read_u32(record, CUPTI_FILL_CORRELATION);
	op->graph_node = cuda_read_u64(record, CUPTI_FILL_NODE);
	op->graph = cuda_read_u32(record, CUPTI_FILL_GRAPH);
	return cuda_names_fill(read_u16(record, CUPTI_FILL_MEMORY));
}

/* In CUPTI, 0 means not known. */
static int64_t time_at(const uint8_t *record, size_t at)
{
	uint64_t ns = cuda_read_u64(record, at);

	return ns ? (int64_t)ns : TS_UNKNOWN;
}

void cuda_ops_record(const uint8_t *record)
{
	struct ts_gpu_op op = { .size = sizeof(op),
				.queued = TS_UNKNOWN,
				.submitted = TS_UNKNOWN,
				.bytes = TS_UNKNOWN };
	struct ts_emit_site *site = NULL;

	switch (cuda_read_u32(record, CUPTI_AT_KIND)) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
		site = read_kernel(record, &op);
		break;
	case CUPTI_KIND_MEMCPY:
		site = read_copy(record, &op, false);
		break;
	case CUPTI_KIND_MEMCPY2:
		site = read_copy(record, &op, true);
		break;
	case CUPTI_KIND_MEMSET:
		site = read_fill(record, &op);
		break;
	default:
		break;
	}
	if (!site || cuda_subscriber_is_ours((uint32_t)op.correlation) ||
	    !cuda_subscriber_counts((uint32_t)op.correlation))
		return;
	op.start = time_at(record, CUPTI_AT_START);
	op.end = time_at(record, CUPTI_AT_END);
	if (op.graph_node)
		op.stack = cuda_graphs_stack(op.graph_node);
	cuda_contexts_emit(op.device, op.context, op.stream);
	ts_accelerator_op(site, &op);
}
