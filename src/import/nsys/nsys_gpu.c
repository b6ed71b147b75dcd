/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device work and the calls that caused it: kernels, copies, fills, synchronisations, graphs,
 * memory. Categories and names of copies and fills follow PyTorch's profiler, so that traces of
 * both compare.
 */
#include <stdio.h>
#include <string.h>

#include "import/nsys/nsys.h"
#include "model/kineto_names.h"

/* Columns common to all device tables, at the same positions in our lists. */
#define DEVICE_COLUMNS \
	"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"
enum { START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PROCESS, FIRST_TABLE_COLUMN };

/* Marks a table as read; NULL: not in the file. */
static const char *take(struct ts_nsys *n, const char *name)
{
	struct ts_sqlite_table *table = ts_sqlite_table(n->db, name);

	if (table)
		table->is_taken = true;
	return table ? table->name : name;
}

/* False: the row is lost. */
static bool read_op(struct ts_nsys *n, const struct ts_sqlite_query *query,
		    struct ts_gpu_op_row *row)
{
	struct ts_nsys_process *process;

	*row = ts_gpu_op_none;
	row->start = ts_sqlite_int(query, START);
	if (!ts_nsys_span(n, row->start, ts_sqlite_int(query, END), &row->duration))
		return false;
	process = ts_nsys_process(n, ts_sqlite_int(query, PROCESS));
	if (!process)
		return false;
	row->process = process->id;
	row->context = ts_sqlite_int(query, CONTEXT);
	row->device = ts_nsys_device(n, process, ts_sqlite_int(query, DEVICE));
	row->stream =
		ts_nsys_stream(n, process, row->device, row->context, ts_sqlite_int(query, STREAM));
	row->correlation = ts_nsys_correlation(n, process, ts_sqlite_int(query, CORRELATION));
	return true;
}

/* Arguments are the columns from `first` on, under their own names. */
static void name_args(struct ts_nsys *n, struct ts_nsys_args *args, const char *const *columns,
		      size_t first, size_t count)
{
	for (size_t i = first; i < count; i++)
		ts_nsys_args_add(n, args, columns[i], (int)i, NULL);
}

/* ---- kernels ---- */

enum {
	NAME = FIRST_TABLE_COLUMN,
	SHORT_NAME,
	REGISTERS,
	GRID_X,
	GRID_Y,
	GRID_Z,
	BLOCK_X,
	BLOCK_Y,
	BLOCK_Z,
	STATIC_SHARED,
	KERNEL_GRAPH,
	KERNEL_NODE,
	KERNEL_ARGS,
	DYNAMIC_SHARED = KERNEL_ARGS,
};

static const char *const kernel_columns[] = { DEVICE_COLUMNS,
					      "demangledName",
					      "shortName",
					      "registersPerThread",
					      "gridX",
					      "gridY",
					      "gridZ",
					      "blockX",
					      "blockY",
					      "blockZ",
					      "staticSharedMemory",
					      "graphId",
					      "graphNodeId",
					      "dynamicSharedMemory",
					      "localMemoryPerThread",
					      "localMemoryTotal",
					      "gridId",
					      "launchType",
					      "cacheConfig",
					      "sharedMemoryExecuted",
					      "sharedMemoryLimitConfig",
					      "greenContextId" };

/* Detects collectives by name, as PyTorch's profiler does. */
static int64_t kernel_kind(struct ts_nsys *n, int64_t name)
{
	const struct ts_nsys_text *text = ts_nsys_text(n, name);

	return text ? ts_kineto_kind(TS_GPU_OP_KERNEL, text->text, text->length) : TS_GPU_OP_KERNEL;
}

static int64_t shared_bytes(const struct ts_sqlite_query *query)
{
	int64_t fixed = ts_sqlite_int(query, STATIC_SHARED), sum;
	int64_t dynamic = ts_sqlite_int(query, DYNAMIC_SHARED);

	if (fixed == TS_ABSENT || dynamic == TS_ABSENT)
		return fixed == TS_ABSENT ? dynamic : fixed;
	return __builtin_add_overflow(fixed, dynamic, &sum) ? TS_ABSENT : sum;
}

int ts_nsys_read_kernels(struct ts_nsys *n)
{
	const char *table = take(n, "CUPTI_ACTIVITY_KIND_KERNEL");
	uint32_t category = ts_nsys_literal(n, "kernel");
	struct ts_nsys_args args = { 0 };
	struct ts_sqlite_query query;
	struct ts_gpu_op_row row;
	int64_t last_name = TS_ABSENT, last_kind = TS_GPU_OP_KERNEL;
	int rc = ts_sqlite_select(n->db, &query, table, kernel_columns,
				  TS_ARRAY_SIZE(kernel_columns), n->err);

	name_args(n, &args, kernel_columns, KERNEL_ARGS, TS_ARRAY_SIZE(kernel_columns));
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t name = ts_sqlite_int(&query, NAME);

		rc = TS_OK;
		if (!read_op(n, &query, &row))
			continue;
		if (!ts_nsys_text(n, name))
			name = ts_sqlite_int(&query, SHORT_NAME);
		if (name != last_name)
			last_kind = kernel_kind(n, name);
		last_name = name;
		row.kind = last_kind;
		row.name = ts_nsys_string(n, name);
		row.category = category;
		row.registers = ts_sqlite_int(&query, REGISTERS);
		row.grid_x = ts_sqlite_int(&query, GRID_X);
		row.grid_y = ts_sqlite_int(&query, GRID_Y);
		row.grid_z = ts_sqlite_int(&query, GRID_Z);
		row.block_x = ts_sqlite_int(&query, BLOCK_X);
		row.block_y = ts_sqlite_int(&query, BLOCK_Y);
		row.block_z = ts_sqlite_int(&query, BLOCK_Z);
		row.shared_bytes = shared_bytes(&query);
		row.graph = ts_sqlite_int(&query, KERNEL_GRAPH);
		row.graph_node = ts_sqlite_int(&query, KERNEL_NODE);
		row.shape = ts_nsys_args_read(n, &args, &query);
		ts_nsys_add_event(n, TS_TABLE_GPU_OP, &row, args.values);
	}
	ts_sqlite_end(&query);
	ts_nsys_args_release(&args);
	return rc;
}

/* ---- copies and fills ---- */

/*
 * CUPTI's numbers; 11 to 13 are specific to Nsight Systems, for managed memory. Arrays are device
 * memory.
 */
static const struct copy {
	const char *name;
	enum ts_copy_kind kind;
} copies[] = {
	{ "Memcpy", TS_COPY_UNKNOWN },
	{ "Memcpy HtoD", TS_COPY_HOST_TO_DEVICE },
	{ "Memcpy DtoH", TS_COPY_DEVICE_TO_HOST },
	{ "Memcpy HtoA", TS_COPY_HOST_TO_DEVICE },
	{ "Memcpy AtoH", TS_COPY_DEVICE_TO_HOST },
	{ "Memcpy AtoA", TS_COPY_DEVICE_TO_DEVICE },
	{ "Memcpy AtoD", TS_COPY_DEVICE_TO_DEVICE },
	{ "Memcpy DtoA", TS_COPY_DEVICE_TO_DEVICE },
	{ "Memcpy DtoD", TS_COPY_DEVICE_TO_DEVICE },
	{ "Memcpy HtoH", TS_COPY_HOST_TO_HOST },
	{ "Memcpy PtoP", TS_COPY_PEER_TO_PEER },
	{ "Unified memory HtoD", TS_COPY_HOST_TO_DEVICE },
	{ "Unified memory DtoH", TS_COPY_DEVICE_TO_HOST },
	{ "Unified memory DtoD", TS_COPY_DEVICE_TO_DEVICE },
};

/* Kinds of memory, in the same way. */
static const char *const memories[] = { "Pageable", "Pinned",        "Device",        "Array",
					"Managed",  "Device Static", "Managed Static" };

static const char *memory_name(int64_t kind)
{
	return kind >= 0 && kind < (int64_t)TS_ARRAY_SIZE(memories) ? memories[kind] : "Unknown";
}

/* "Memcpy HtoD (Pageable -> Device)" */
static uint32_t copy_name(struct ts_nsys *n, const struct copy *copy, int64_t from, int64_t to)
{
	char name[128];

	if (from == TS_ABSENT || to == TS_ABSENT)
		return ts_nsys_literal(n, copy->name);
	snprintf(name, sizeof(name), "%s (%s -> %s)", copy->name, memory_name(from),
		 memory_name(to));
	return ts_nsys_literal(n, name);
}

enum {
	COPY_BYTES = FIRST_TABLE_COLUMN,
	COPY_KIND,
	COPY_FROM,
	COPY_TO,
	COPY_GRAPH,
	COPY_NODE,
	COPY_ARGS
};

static const char *const copy_columns[] = { DEVICE_COLUMNS,   "bytes",         "copyKind",
					    "srcKind",        "dstKind",       "graphId",
					    "graphNodeId",    "srcDeviceId",   "srcContextId",
					    "dstDeviceId",    "dstContextId",  "migrationCause",
					    "virtualAddress", "greenContextId" };

int ts_nsys_read_copies(struct ts_nsys *n)
{
	const char *table = take(n, "CUPTI_ACTIVITY_KIND_MEMCPY");
	uint32_t category = ts_nsys_literal(n, "gpu_memcpy");
	struct ts_nsys_args args = { 0 };
	struct ts_sqlite_query query;
	struct ts_gpu_op_row row;
	int rc = ts_sqlite_select(n->db, &query, table, copy_columns, TS_ARRAY_SIZE(copy_columns),
				  n->err);

	name_args(n, &args, copy_columns, COPY_ARGS, TS_ARRAY_SIZE(copy_columns));
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t kind = ts_sqlite_int(&query, COPY_KIND);
		const struct copy *copy =
			&copies[kind >= 0 && kind < (int64_t)TS_ARRAY_SIZE(copies) ? kind : 0];

		rc = TS_OK;
		if (!read_op(n, &query, &row))
			continue;
		row.kind = TS_GPU_OP_COPY;
		row.copy_kind = copy->kind;
		row.name = copy_name(n, copy, ts_sqlite_int(&query, COPY_FROM),
				     ts_sqlite_int(&query, COPY_TO));
		row.category = category;
		row.bytes = ts_sqlite_int(&query, COPY_BYTES);
		row.graph = ts_sqlite_int(&query, COPY_GRAPH);
		row.graph_node = ts_sqlite_int(&query, COPY_NODE);
		row.shape = ts_nsys_args_read(n, &args, &query);
		ts_nsys_add_event(n, TS_TABLE_GPU_OP, &row, args.values);
	}
	ts_sqlite_end(&query);
	ts_nsys_args_release(&args);
	return rc;
}

enum { FILL_BYTES = FIRST_TABLE_COLUMN, FILL_MEMORY, FILL_GRAPH, FILL_NODE, FILL_ARGS };

static const char *const fill_columns[] = { DEVICE_COLUMNS, "bytes", "memKind",       "graphId",
					    "graphNodeId",  "value", "greenContextId" };

int ts_nsys_read_fills(struct ts_nsys *n)
{
	const char *table = take(n, "CUPTI_ACTIVITY_KIND_MEMSET");
	uint32_t category = ts_nsys_literal(n, "gpu_memset");
	struct ts_nsys_args args = { 0 };
	struct ts_sqlite_query query;
	struct ts_gpu_op_row row;
	int rc = ts_sqlite_select(n->db, &query, table, fill_columns, TS_ARRAY_SIZE(fill_columns),
				  n->err);

	name_args(n, &args, fill_columns, FILL_ARGS, TS_ARRAY_SIZE(fill_columns));
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t memory = ts_sqlite_int(&query, FILL_MEMORY);
		char name[64] = "Memset";

		rc = TS_OK;
		if (!read_op(n, &query, &row))
			continue;
		if (memory != TS_ABSENT)
			snprintf(name, sizeof(name), "Memset (%s)", memory_name(memory));
		row.kind = TS_GPU_OP_FILL;
		row.name = ts_nsys_literal(n, name);
		row.category = category;
		row.bytes = ts_sqlite_int(&query, FILL_BYTES);
		row.graph = ts_sqlite_int(&query, FILL_GRAPH);
		row.graph_node = ts_sqlite_int(&query, FILL_NODE);
		row.shape = ts_nsys_args_read(n, &args, &query);
		ts_nsys_add_event(n, TS_TABLE_GPU_OP, &row, args.values);
	}
	ts_sqlite_end(&query);
	ts_nsys_args_release(&args);
	return rc;
}

/* ---- synchronisations and graphs ---- */

enum { SYNC_TYPE = FIRST_TABLE_COLUMN, SYNC_ARGS };

static const char *const sync_columns[] = { DEVICE_COLUMNS, "syncType", "eventId",
					    "greenContextId" };

int ts_nsys_read_syncs(struct ts_nsys *n)
{
	/* CUPTI's numbers; names as in PyTorch's profiler. */
	static const char *const types[] = { "Sync", "Event Sync", "Stream Wait Event",
					     "Stream Sync", "Context Sync" };
	const char *table = take(n, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION");
	uint32_t category = ts_nsys_literal(n, "cuda_sync");
	struct ts_nsys_args args = { 0 };
	struct ts_sqlite_query query;
	struct ts_gpu_op_row row;
	int rc = ts_sqlite_select(n->db, &query, table, sync_columns, TS_ARRAY_SIZE(sync_columns),
				  n->err);

	name_args(n, &args, sync_columns, SYNC_ARGS, TS_ARRAY_SIZE(sync_columns));
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		int64_t type = ts_sqlite_int(&query, SYNC_TYPE);

		rc = TS_OK;
		if (!read_op(n, &query, &row))
			continue;
		row.kind = TS_GPU_OP_SYNC;
		row.name = ts_nsys_literal(
			n, types[type >= 0 && type < (int64_t)TS_ARRAY_SIZE(types) ? type : 0]);
		row.category = category;
		row.shape = ts_nsys_args_read(n, &args, &query);
		ts_nsys_add_event(n, TS_TABLE_GPU_OP, &row, args.values);
	}
	ts_sqlite_end(&query);
	ts_nsys_args_release(&args);
	return rc;
}

enum { GRAPH_ID = FIRST_TABLE_COLUMN, GRAPH_ARGS };

static const char *const graph_columns[] = { DEVICE_COLUMNS, "graphId", "graphExecId",
					     "greenContextId" };

/* Graphs recorded as one unit each: --cuda-graph-trace=graph. */
int ts_nsys_read_graphs(struct ts_nsys *n)
{
	const char *table = take(n, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE");
	uint32_t category = ts_nsys_literal(n, "cuda_graph"),
		 name = ts_nsys_literal(n, "CUDA graph");
	struct ts_nsys_args args = { 0 };
	struct ts_sqlite_query query;
	struct ts_gpu_op_row row;
	int rc = ts_sqlite_select(n->db, &query, table, graph_columns, TS_ARRAY_SIZE(graph_columns),
				  n->err);

	name_args(n, &args, graph_columns, GRAPH_ARGS, TS_ARRAY_SIZE(graph_columns));
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		rc = TS_OK;
		if (!read_op(n, &query, &row))
			continue;
		row.kind = TS_GPU_OP_GRAPH;
		row.name = name;
		row.category = category;
		row.graph = ts_sqlite_int(&query, GRAPH_ID);
		row.shape = ts_nsys_args_read(n, &args, &query);
		ts_nsys_add_event(n, TS_TABLE_GPU_OP, &row, args.values);
	}
	ts_sqlite_end(&query);
	ts_nsys_args_release(&args);
	return rc;
}

/* ---- memory ---- */

enum { ALLOC_ADDRESS = FIRST_TABLE_COLUMN, ALLOC_BYTES, ALLOC_MEMORY, ALLOC_KIND, ALLOC_ARGS };

static const char *const allocation_columns[] = { DEVICE_COLUMNS,
						  "address",
						  "bytes",
						  "memKind",
						  "memoryOperationType",
						  "name",
						  "pc",
						  "contextId",
						  "correlationId",
						  "localMemoryPoolAddress",
						  "localMemoryPoolReleaseThreshold",
						  "localMemoryPoolSize",
						  "localMemoryPoolUtilizedSize",
						  "importedMemoryPoolAddress",
						  "importedMemoryPoolProcessId" };

int ts_nsys_read_allocations(struct ts_nsys *n)
{
	enum { PAGEABLE, PINNED };
	const char *table = take(n, "CUDA_GPU_MEMORY_USAGE_EVENTS");
	struct ts_nsys_args args = { 0 };
	struct ts_sqlite_query query;
	int rc = ts_sqlite_select(n->db, &query, table, allocation_columns,
				  TS_ARRAY_SIZE(allocation_columns), n->err);

	name_args(n, &args, allocation_columns, ALLOC_ARGS, TS_ARRAY_SIZE(allocation_columns));
	while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
		struct ts_allocation_row row = ts_allocation_none;
		int64_t memory = ts_sqlite_int(&query, ALLOC_MEMORY);
		struct ts_gpu_op_row where;

		rc = TS_OK;
		if (!read_op(n, &query, &where))
			continue;
		row.start = where.start;
		row.kind = ts_sqlite_int(&query, ALLOC_KIND) == 1 ? TS_ALLOCATION_FREE
								  : TS_ALLOCATION_ALLOC;
		if (memory != PAGEABLE && memory != PINNED)
			row.device = where.device;
		row.stream = where.stream;
		row.address = ts_sqlite_int(&query, ALLOC_ADDRESS);
		row.bytes = ts_sqlite_int(&query, ALLOC_BYTES);
		row.pool = ts_nsys_literal(n, memory_name(memory));
		row.shape = ts_nsys_args_read(n, &args, &query);
		ts_nsys_add_event(n, TS_TABLE_ALLOCATION, &row, args.values);
	}
	ts_sqlite_end(&query);
	ts_nsys_args_release(&args);
	return rc;
}

/* ---- calls ---- */

/*
 * "cudaMemcpy_v3020" is cudaMemcpy of API version 3.2. Versions that belong to the function name
 * have one digit: "cuMemAlloc_v2".
 */
static size_t function_length(const struct ts_nsys_text *text)
{
	size_t length = text->length, digits = 0;

	while (digits < length && text->text[length - 1 - digits] >= '0' &&
	       text->text[length - 1 - digits] <= '9')
		digits++;
	if (digits < 4 || length < digits + 3 || memcmp(text->text + length - digits - 2, "_v", 2))
		return length;
	return length - digits - 2;
}

static uint32_t function_name(struct ts_nsys *n, int64_t id, bool *ret_is_driver)
{
	struct ts_nsys_text *text = ts_nsys_text(n, id);

	*ret_is_driver = false;
	if (!text)
		return 0;
	if (!text->function)
		text->function = ts_import_string(n->import, text->text, function_length(text));
	*ret_is_driver = text->length > 2 && text->text[0] == 'c' && text->text[1] == 'u' &&
			 text->text[2] >= 'A' && text->text[2] <= 'Z';
	return text->function;
}

enum { CALL_START, CALL_END, CALL_THREAD, CALL_CORRELATION, CALL_NAME, CALL_RESULT, CALL_STACK };

static const char *const call_columns[] = { "start",  "end",         "globalTid",  "correlationId",
					    "nameId", "returnValue", "callchainId" };

static void read_call(struct ts_nsys *n, const struct ts_sqlite_query *query,
		      const uint32_t categories[2])
{
	struct ts_api_call_row row = ts_api_call_none;
	struct ts_nsys_process *process;
	int64_t thread = ts_sqlite_int(query, CALL_THREAD);
	bool is_driver;

	row.start = ts_sqlite_int(query, CALL_START);
	if (!ts_nsys_span(n, row.start, ts_sqlite_int(query, CALL_END), &row.duration))
		return;
	row.thread = ts_nsys_thread(n, thread);
	process = ts_nsys_process(n, thread);
	if (!process)
		return;
	row.name = function_name(n, ts_sqlite_int(query, CALL_NAME), &is_driver);
	row.category = categories[is_driver];
	row.correlation = ts_nsys_correlation(n, process, ts_sqlite_int(query, CALL_CORRELATION));
	row.result = ts_sqlite_int(query, CALL_RESULT);
	ts_nsys_find_stack(&n->cuda_chains, ts_sqlite_int(query, CALL_STACK), &row.stack);
	ts_nsys_add_event(n, TS_TABLE_API_CALL, &row, NULL);
}

/*
 * Runtime and driver calls; all versions since 2019 store both in one table, the second name is for
 * older ones.
 */
int ts_nsys_read_calls(struct ts_nsys *n)
{
	static const char *const tables[] = { "CUPTI_ACTIVITY_KIND_RUNTIME",
					      "CUPTI_ACTIVITY_KIND_DRIVER" };
	uint32_t categories[2] = { ts_nsys_literal(n, "cuda_runtime"),
				   ts_nsys_literal(n, "cuda_driver") };
	struct ts_sqlite_query query;
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < TS_ARRAY_SIZE(tables); i++) {
		rc = ts_sqlite_select(n->db, &query, take(n, tables[i]), call_columns,
				      TS_ARRAY_SIZE(call_columns), n->err);
		while (!rc && (rc = ts_sqlite_step(&query, n->err)) > 0) {
			read_call(n, &query, categories);
			rc = TS_OK;
		}
		ts_sqlite_end(&query);
	}
	return rc;
}
