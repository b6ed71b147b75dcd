/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of docs/chrome.md: categories, kinds, arguments with a column; and how to tell a
 * Kineto file from other Chrome JSON.
 */
#include "model/kineto_names.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"

struct named_category {
	const char *name;
	struct ts_kineto_category meaning;
};

#define API_CALL                           \
	{                                  \
		.table = TS_TABLE_API_CALL \
	}
#define GPU_OP(kind_)                                     \
	{                                                 \
		.table = TS_TABLE_GPU_OP, .kind = (kind_) \
	}
#define SYNC                                                                           \
	{                                                                              \
		.table = TS_TABLE_GPU_OP, .kind = TS_GPU_OP_SYNC, .needs_stream = true \
	}

static const struct named_category categories[] = {
	{ "kernel", GPU_OP(TS_GPU_OP_KERNEL) },
	{ "Kernel", GPU_OP(TS_GPU_OP_KERNEL) },
	{ "mtia_ccp_events", GPU_OP(TS_GPU_OP_KERNEL) },
	{ "hpu_op", GPU_OP(TS_GPU_OP_KERNEL) },
	{ "gpu_memcpy", GPU_OP(TS_GPU_OP_COPY) },
	{ "Memcpy", GPU_OP(TS_GPU_OP_COPY) },
	{ "gpu_memset", GPU_OP(TS_GPU_OP_FILL) },
	{ "Memset", GPU_OP(TS_GPU_OP_FILL) },
	{ "cuda_sync", SYNC },
	{ "xpu_sync", SYNC },
	{ "cuda_runtime", API_CALL },
	{ "cuda_driver", API_CALL },
	{ "Runtime", API_CALL },
	{ "mtia_runtime", API_CALL },
	{ "xpu_runtime", API_CALL },
	{ "xpu_driver", API_CALL },
	{ "privateuse1_runtime", API_CALL },
	{ "privateuse1_driver", API_CALL },
	{ "glow_runtime", API_CALL },
};

static bool is_text(const char *text, size_t length, const char *literal)
{
	return strlen(literal) == length && memcmp(text, literal, length) == 0;
}

struct ts_kineto_category ts_kineto_category(const char *category, size_t length)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(categories); i++)
		if (is_text(category, length, categories[i].name))
			return categories[i].meaning;
	return (struct ts_kineto_category){ .table = TS_TABLE_SLICE };
}

enum ts_gpu_op_kind ts_kineto_kind(enum ts_gpu_op_kind kind, const char *name, size_t length)
{
	if (kind != TS_GPU_OP_KERNEL)
		return kind;
	if (ts_starts_with_len(name, length, "void ")) {
		name += 5;
		length -= 5;
	}
	if (length < 4 || memcmp(name + 1, "ccl", 3) != 0)
		return kind;
	return *name == 'n' || *name == 'r' || *name == 'h' ? TS_GPU_OP_COLLECTIVE : kind;
}

enum ts_copy_kind ts_kineto_copy_kind(const char *name, size_t length)
{
	static const struct {
		const char *name;
		enum ts_copy_kind kind;
	} copies[] = {
		{ "Memcpy HtoD", TS_COPY_HOST_TO_DEVICE },
		{ "Memcpy DtoH", TS_COPY_DEVICE_TO_HOST },
		{ "Memcpy DtoD", TS_COPY_DEVICE_TO_DEVICE },
		{ "Memcpy HtoH", TS_COPY_HOST_TO_HOST },
		{ "Memcpy PtoP", TS_COPY_PEER_TO_PEER },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(copies); i++)
		if (ts_starts_with_len(name, length, copies[i].name))
			return copies[i].kind;
	return TS_COPY_UNKNOWN;
}

/* ---- arguments ---- */

#define COLUMN_ID(table, column) table##_##column##_id

/* Stable ids, as constants. */
enum {
#define TS_COLUMN(table, id, column, type, refers, none, doc) COLUMN_ID(table, column) = (id),
#include <tracesmith/schema.def>
};

static const struct {
	const char *key;
	uint16_t api_call, gpu_op; /* 0: no column in that table */
} args[TS_KINETO_ARG_COUNT] = {
	[TS_KINETO_ARG_NONE] = { "", 0, 0 },
	[TS_KINETO_ARG_CORRELATION] = { "correlation", COLUMN_ID(api_call, correlation),
					COLUMN_ID(gpu_op, correlation) },
	[TS_KINETO_ARG_CONTEXT] = { "context", 0, COLUMN_ID(gpu_op, context) },
	[TS_KINETO_ARG_DEVICE] = { "device", 0, TS_COMPUTED_DEVICE },
	[TS_KINETO_ARG_STREAM] = { "stream", 0, TS_COMPUTED_STREAM },
	[TS_KINETO_ARG_REGISTERS] = { "registers per thread", 0, COLUMN_ID(gpu_op, registers) },
	[TS_KINETO_ARG_SHARED_BYTES] = { "shared memory", 0, COLUMN_ID(gpu_op, shared_bytes) },
	[TS_KINETO_ARG_BYTES] = { "bytes", 0, COLUMN_ID(gpu_op, bytes) },
	[TS_KINETO_ARG_GRID] = { "grid", 0, TS_COMPUTED_GRID },
	[TS_KINETO_ARG_BLOCK] = { "block", 0, TS_COMPUTED_BLOCK },
	[TS_KINETO_ARG_BANDWIDTH] = { "memory bandwidth (GB/s)", 0, TS_COMPUTED_BANDWIDTH },
};

uint16_t ts_kineto_arg_column(enum ts_table_id table, enum ts_kineto_arg arg)
{
	return table == TS_TABLE_API_CALL ? args[arg].api_call
	       : table == TS_TABLE_GPU_OP ? args[arg].gpu_op
					  : 0;
}

enum ts_kineto_arg ts_kineto_arg(enum ts_table_id table, const char *key, size_t length)
{
	for (enum ts_kineto_arg arg = TS_KINETO_ARG_CORRELATION; arg < TS_KINETO_ARG_COUNT; arg++)
		if (is_text(key, length, args[arg].key))
			return ts_kineto_arg_column(table, arg) ? arg : TS_KINETO_ARG_NONE;
	return TS_KINETO_ARG_NONE;
}

/* ---- probe ---- */

/* In quotes. The first ones are top-level members. */
static const char *const signs[] = {
	"\"schemaVersion\"",       "\"deviceProperties\"", "\"distributedInfo\"",
	"\"baseTimeNanoseconds\"", "\"cpu_op\"",           "\"python_function\"",
	"\"External id\"",
};
#define TOP_SIGNS 4

bool ts_kineto_is_member(const char *key, size_t length)
{
	for (size_t i = 0; i < TOP_SIGNS; i++)
		if (strlen(signs[i]) == length + 2 && memcmp(signs[i] + 1, key, length) == 0)
			return true;
	return false;
}

bool ts_kineto_is_in(const char *data, size_t bytes)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(signs); i++)
		if (memmem(data, bytes, signs[i], strlen(signs[i])))
			return true;
	return false;
}
