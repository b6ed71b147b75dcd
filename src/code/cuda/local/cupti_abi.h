/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of CUPTI's activity and callback interface that we use. Numbers and layouts are declared
 * here; cupti_layouts.c compares them with NVIDIA's headers, if installed. Includes libc only:
 * programs of bench/ use this header, too.
 */
#ifndef TS_CODE_CUDA_LOCAL_CUPTI_ABI_H
#define TS_CODE_CUDA_LOCAL_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Results. */
enum {
	CUPTI_OK = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_LIMIT_REACHED = 12,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_INVALID_KIND = 21,
	CUPTI_NOT_SUPPORTED_HERE = 27,
	CUPTI_VIRTUALIZED = 33,
	CUPTI_NO_PRIVILEGES = 35,
	CUPTI_OLD_PROFILER = 36,
	CUPTI_OTHER_SUBSCRIBER = 39,
	CUPTI_VIRTUALIZED_NO_PRIVILEGES = 40,
	CUPTI_CONFIDENTIAL = 41,
	CUPTI_MIG = 43,
	CUPTI_WSL = 45,
};

/* Kinds of activities. */
enum {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_KERNEL = 3, /* serializes kernels; never enabled */
	CUPTI_KIND_DRIVER = 4,
	CUPTI_KIND_RUNTIME = 5,
	CUPTI_KIND_CONCURRENT_KERNEL = 10,
	CUPTI_KIND_MEMCPY2 = 22, /* between devices */
	CUPTI_KIND_EXTERNAL_CORRELATION = 39,
	CUPTI_KIND_LIMIT = 128, /* all versions have fewer kinds */
};

#define CUPTI_FLUSH_FORCED 1u
#define CUPTI_ATTRIBUTE_ZEROED 5 /* we supply zeroed buffers; since CUDA 11.5 */

/*
 * Offsets of the fields that we read, the same in all records since Kernel6, Memcpy4, MemcpyPtoP3
 * and Memset3: later versions append fields. Only lengths differ (cupti_layouts.c).
 */
enum {
	CUPTI_AT_KIND = 0,
	CUPTI_AT_START = 16,
	CUPTI_AT_END = 24,

	CUPTI_KERNEL_REGISTERS = 6, /* 16 bits */
	CUPTI_KERNEL_DEVICE = 40,
	CUPTI_KERNEL_CONTEXT = 44,
	CUPTI_KERNEL_STREAM = 48,
	CUPTI_KERNEL_GRID = 52,
	CUPTI_KERNEL_BLOCK = 64,
	CUPTI_KERNEL_STATIC_SHARED = 76,
	CUPTI_KERNEL_DYNAMIC_SHARED = 80,
	CUPTI_KERNEL_CORRELATION = 92,
	CUPTI_KERNEL_NAME = 104,
	CUPTI_KERNEL_NODE = 144,
	CUPTI_KERNEL_GRAPH = 156,

	/* Copies and fills. */
	CUPTI_MEMORY_BYTES = 8,
	CUPTI_MEMORY_DEVICE = 32,
	CUPTI_MEMORY_CONTEXT = 36,
	CUPTI_MEMORY_STREAM = 40,

	CUPTI_COPY_KIND = 4, /* these three: 8 bits */
	CUPTI_COPY_FROM = 5,
	CUPTI_COPY_TO = 6,
	CUPTI_COPY_CORRELATION = 44,
	CUPTI_COPY_NODE = 64,
	CUPTI_COPY_GRAPH = 72,

	CUPTI_PEER_CORRELATION = 60,
	CUPTI_PEER_NODE = 72,
	CUPTI_PEER_GRAPH = 80,

	CUPTI_FILL_CORRELATION = 44,
	CUPTI_FILL_MEMORY = 50, /* 16 bits */
	CUPTI_FILL_NODE = 64,
	CUPTI_FILL_GRAPH = 72,
};

/* Directions of copies. */
enum {
	CUPTI_COPY_HTOD = 1,
	CUPTI_COPY_DTOH = 2,
	CUPTI_COPY_DTOD = 8,
	CUPTI_COPY_HTOH = 9,
	CUPTI_COPY_PTOP = 10,
	CUPTI_COPY_KINDS = 11,
};
#define CUPTI_MEMORY_KINDS 8

/* Domains and sites of callbacks. */
enum {
	CUPTI_DOMAIN_DRIVER = 1,
	CUPTI_DOMAIN_RUNTIME = 2,
	CUPTI_DOMAIN_RESOURCE = 3,
	CUPTI_DOMAINS = 7, /* of CUDA 13 */
};
enum { CUPTI_ENTER = 0, CUPTI_EXIT = 1 };

enum {
	CUPTI_CONTEXT_CREATED = 1,
	CUPTI_CONTEXT_DESTROY = 2,
	CUPTI_MODULE_LOADED = 6,
	CUPTI_MODULE_UNLOAD = 7,
	CUPTI_NODE_CREATED = 13,
	CUPTI_NODE_CLONED = 20,
};

/* Argument of driver callbacks. */
struct cupti_call {
	uint32_t site; /* CUPTI_ENTER or CUPTI_EXIT */
	const char *function;
	const void *parameters;
	void *result; /* at exit: a CUresult */
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *kept;
	uint32_t correlation;
};

/* Argument of resource callbacks. */
struct cupti_resource {
	void *context;
	void *stream;
	void *descriptor; /* struct cupti_module or cupti_graph */
};

struct cupti_module {
	uint32_t id;
	size_t bytes;
	const char *image;
};

struct cupti_graph {
	void *graph;
	void *original_graph;
	void *node;
	void *original_node;
	uint32_t node_type;
	void *dependency;
	void *executable;
};

typedef void (*cupti_callback)(void *userdata, uint32_t domain, uint32_t number, const void *data);
typedef void (*cupti_requested)(uint8_t **buffer, size_t *bytes, size_t *most_records);
typedef void (*cupti_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
				size_t valid);
typedef uint64_t (*cupti_timestamp)(void);

/* CUPTI_FUNCTION(name without "cupti", parameters). All return one of the results above. */
#define CUPTI_FUNCTIONS(CUPTI_FUNCTION)                                                            \
	CUPTI_FUNCTION(GetVersion, (uint32_t * version))                                           \
	CUPTI_FUNCTION(GetResultString, (uint32_t result, const char **text))                      \
	CUPTI_FUNCTION(GetTimestamp, (uint64_t * ns))                                              \
	CUPTI_FUNCTION(Subscribe, (void **subscriber, cupti_callback callback, void *data))        \
	CUPTI_FUNCTION(Subscribe_v2,                                                               \
		       (void **subscriber, cupti_callback callback, void *data, void *parameters)) \
	CUPTI_FUNCTION(Unsubscribe, (void *subscriber))                                            \
	CUPTI_FUNCTION(EnableCallback,                                                             \
		       (uint32_t on, void *subscriber, uint32_t domain, uint32_t number))          \
	CUPTI_FUNCTION(EnableDomain, (uint32_t on, void *subscriber, uint32_t domain))             \
	CUPTI_FUNCTION(EnableAllDomains, (uint32_t on, void *subscriber))                          \
	CUPTI_FUNCTION(GetCallbackState,                                                           \
		       (uint32_t * on, void *subscriber, uint32_t domain, uint32_t number))        \
	CUPTI_FUNCTION(ActivityRegisterCallbacks,                                                  \
		       (cupti_requested requested, cupti_completed completed))                     \
	CUPTI_FUNCTION(ActivityRegisterTimestampCallback, (cupti_timestamp timestamp))             \
	CUPTI_FUNCTION(ActivityEnable, (uint32_t kind))                                            \
	CUPTI_FUNCTION(ActivityEnableAndDump, (uint32_t kind))                                     \
	CUPTI_FUNCTION(ActivityDisable, (uint32_t kind))                                           \
	CUPTI_FUNCTION(ActivityEnableContext, (void *context, uint32_t kind))                      \
	CUPTI_FUNCTION(ActivityDisableContext, (void *context, uint32_t kind))                     \
	CUPTI_FUNCTION(ActivityFlush, (void *context, uint32_t stream, uint32_t flag))             \
	CUPTI_FUNCTION(ActivityFlushAll, (uint32_t flag))                                          \
	CUPTI_FUNCTION(ActivityFlushPeriod, (uint32_t ms))                                         \
	CUPTI_FUNCTION(ActivitySetAttribute, (uint32_t attribute, size_t * bytes, void *at))       \
	CUPTI_FUNCTION(ActivityGetNextRecord, (uint8_t * buffer, size_t valid, void **record))     \
	CUPTI_FUNCTION(ActivityGetNumDroppedRecords,                                               \
		       (void *context, uint32_t stream, size_t *dropped))                          \
	CUPTI_FUNCTION(GetContextId, (void *context, uint32_t *id))                                \
	CUPTI_FUNCTION(GetDeviceId, (void *context, uint32_t *id))                                 \
	CUPTI_FUNCTION(GetStreamId, (void *context, void *stream, uint32_t *id))                   \
	CUPTI_FUNCTION(GetGraphNodeId, (void *node, uint64_t *id))                                 \
	CUPTI_FUNCTION(Finalize, (void))

struct cupti_functions {
#define CUPTI_FUNCTION(name, parameters) int(*name) parameters;
	CUPTI_FUNCTIONS(CUPTI_FUNCTION)
#undef CUPTI_FUNCTION
};

#endif
