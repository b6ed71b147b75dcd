/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for the CUDA driver on which small programs really run: device memory is host memory
 * that is mapped elsewhere, kernels are functions in C (kernels.c). Built as libcuda.so.1 in
 * build/tests/cuda/driver. The README.md here says which settings it reads from the environment.
 */
#ifndef TS_TESTS_CUDA_DRIVER_DRIVER_H
#define TS_TESTS_CUDA_DRIVER_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code/cuda/local/cuda_abi.h"

#define API __attribute__((visibility("default"))) int

#define INVALID_VALUE 1
#define OUT_OF_MEMORY 2
#define NOT_INITIALIZED 3
#define INVALID_DEVICE 101
#define INVALID_IMAGE 200
#define INVALID_CONTEXT 201
#define NO_BINARY 209
#define FILE_NOT_FOUND 301
#define INVALID_HANDLE 400
#define NOT_FOUND 500
#define NOT_READY 600
#define ILLEGAL_ADDRESS 700
#define ALREADY_REGISTERED 712
#define NOT_REGISTERED 713
#define LAUNCH_FAILED 719
#define INVALID_CLUSTER_SIZE 912
#define NOT_SUPPORTED 801
#define CAPTURE_UNSUPPORTED 900
#define CAPTURE_INVALIDATED 901
#define CAPTURE_MERGE 902
#define CAPTURE_UNMATCHED 903
#define CAPTURE_UNJOINED 904
#define CAPTURE_IMPLICIT 906
#define UPDATE_FAILURE 910

/* ---- handles.c ---- */

/* The handles of a kind that were ever given out. Those of destroyed objects stay. */
struct handles {
	pthread_rwlock_t lock;
	const void **slots;
	size_t count, size;
};
#define HANDLES                                    \
	{                                          \
		.lock = PTHREAD_RWLOCK_INITIALIZER \
	}
void handles_add(struct handles *handles, const void *handle);
bool handles_have(struct handles *handles, const void *handle);

/* ---- devices.c, contexts.c ---- */

/* From the environment (tests/cuda/driver/README.md). */
struct settings {
	int devices;       /* STAND_IN_DEVICES */
	int version;       /* STAND_IN_DRIVER */
	int compute;       /* STAND_IN_COMPUTE: 90 */
	size_t memory;     /* STAND_IN_MEMORY: bytes */
	uint64_t globals;  /* STAND_IN_GLOBALS: address of the first; 0: another in each process */
	uint64_t own;      /* STAND_IN_OWN: address of memory of the driver's own; 0: none */
	bool no_vmm;       /* STAND_IN_NO_VMM=1 */
	bool pageable;     /* STAND_IN_PAGEABLE=1 */
	const char *hangs; /* STAND_IN_HANG: name of a kernel that never ends */
	const char *hung;  /* STAND_IN_HUNG: a file that is made when it begins */
	const char *name;  /* STAND_IN_NAME */
	uint64_t seed;     /* STAND_IN_SEED: order of streams; else another in each process */
	bool lazy;         /* STAND_IN_LAZY=1: commands run when somebody waits */
};
extern struct settings settings;
extern bool is_started; /* cuInit() was called */

struct stream;
struct context {
	struct context *next;
	int device;
	unsigned int flags;
	bool is_primary, is_gone;
	unsigned int users;
	size_t limits[16];
	bool prints; /* a kernel that may print ran: the size of its buffer is fixed */
	int cache;
	uint64_t id;
	struct stream *legacy;
};
extern struct context *all_contexts;
struct context *current_context(void); /* NULL: none */
bool is_context(const void *handle);
bool is_device(int device);

/* ---- ranges.c ---- */

enum memory_kind { DEVICE_MEMORY, MAPPED_MEMORY, GLOBAL_MEMORY, PINNED_MEMORY, REGISTERED_MEMORY };
/* A range of addresses that the device can use, and where it lies in this process. */
struct range {
	uint64_t address, bytes;
	uint8_t *host;
	enum memory_kind kind;
	struct context *context;
	void *owner; /* MAPPED_MEMORY: the physical memory */
	unsigned int flags;
	bool is_accessible;
	uint64_t id;
	/* Of each 2 MiB: how often it was written. NULL: memory of the host, who knows. */
	uint64_t *written;
};
/* All bytes lie in ranges that are accessible? */
bool memory_is_valid(uint64_t address, uint64_t bytes);
bool memory_find(uint64_t address, struct range *ret_range);
/* NULL: not in one accessible range. */
void *memory_at(uint64_t address, uint64_t bytes);
/* Between device addresses and the process; false: an illegal address. */
bool memory_read(void *to, uint64_t from, uint64_t bytes);
bool memory_write(uint64_t to, const void *from, uint64_t bytes);
/*
 * Changes with each write to these bytes, which are at most 2 MiB; 0: unknown.
 */
uint64_t memory_version(uint64_t address, uint64_t bytes);
bool is_device_address(uint64_t address); /* not of the host */

/* ---- allocations.c ---- */

/* For modules. */
int globals_map(struct context *context, uint64_t bytes, uint64_t *ret_address);
void globals_unmap(uint64_t address);
int memory_alloc(struct context *context, uint64_t bytes, uint64_t *ret_address);
bool memory_free(uint64_t address, struct context *context);
void memory_free_all(const struct context *context); /* of a context that ends */

/* ---- functions.c, modules.c ---- */

#define MOST_PARAMETERS 64
struct module;
struct kernel_call;
typedef bool (*kernel_code)(struct kernel_call *call);
struct function {
	struct function *next;
	struct module *module;
	char *name;
	kernel_code code;
	uint32_t param_count, param_bytes;
	uint32_t offsets[MOST_PARAMETERS], sizes[MOST_PARAMETERS];
	int attributes[17];
	int cache;
	bool is_kernel; /* a CUkernel, not a CUfunction */
	struct function *other;
};
/* A CUfunction or a CUkernel, as the function; NULL: neither. */
struct function *function_of(void *handle);
/* Its address; 0: the module has no such variable. */
uint64_t module_global(struct module *module, const char *name);

/* ---- kernels.c ---- */

struct kernel_call {
	struct function *function;
	const uint32_t *grid, *block;
	const uint8_t *params;
	bool is_illegal; /* it used an address that is not mapped */
};
/* NULL: unknown. The code returns false if it has to be called again: it waits for something. */
kernel_code kernel_find(const char *name);

/* ---- queues.c, streams.c, events.c ---- */

struct point {
	struct stream *stream;
	uint64_t ticket;
};

enum op_kind { OP_LAUNCH, OP_COPY, OP_FILL, OP_EMPTY, OP_GRAPH, OP_HOST, OP_FREE };

struct launch {
	struct function *function;
	uint32_t grid[3], block[3], shared;
	uint8_t *params; /* malloc */
	struct cuda_launch_attribute attributes[16];
	uint32_t attribute_count;
};

/* Work of a stream, or a node of a graph. */
struct op {
	enum op_kind kind;
	struct launch launch;
	struct cuda_copy_3d copy;
	void *staged; /* the copy's source, taken at the call; malloc */
	struct cuda_fill_node fill;
	struct exec *exec;
	void (*call)(void *data);
	void *data;
	uint64_t address; /* OP_FREE */
};
/* Runs it now; false: it has to be called again. May set the context's error. */
bool op_run(struct op *op);
void op_release(struct op *op);
void op_copy(struct op *to, const struct op *from);
void set_device_error(int code);

struct capture;
struct stream {
	struct stream *next;
	struct context *context;
	unsigned int flags;
	int priority;
	bool is_legacy, is_thread, is_gone;
	uint64_t submitted, completed;
	struct command *first, *last;
	struct capture *capture; /* in progress */
	struct node **at;        /* nodes that the next one depends on */
	size_t at_count;
	struct point waits[64]; /* of the next command */
	size_t wait_count;
	uint64_t id;
};
struct event {
	struct event *next; /* after its end */
	struct context *context;
	unsigned int flags;
	struct point point; /* stream NULL: not recorded */
	struct capture *capture;
	struct node **at;
	size_t at_count;
	int64_t time_ns;
	bool is_gone, is_in_graph;
};
/* The stream of a call; NULL: not one. */
struct stream *stream_of(void *handle, bool is_per_thread);
bool is_stream(const void *handle);
bool is_event(const void *handle);
int record_of_launch(struct stream *on, void *event); /* an attribute names the event */
/* Takes over what `op` owns. Into the graph if the stream is being captured. Returns a CUresult. */
int submit(struct stream *stream, struct op *op);
int wait_for(struct stream *stream); /* until it is idle */
int wait_for_context(struct context *context);
void add_wait(struct stream *stream, struct point point);
int device_error(void); /* sticky */
extern pthread_mutex_t queues;

/* ---- launch.c ---- */

/* Makes the parameter block of a launch, from pointers to each or from `extra`. */
int launch_pack(struct launch *launch, void **params, void **extra);

/* ---- capture.c ---- */

/* The call is not allowed while a stream is being captured: 900; else 0. */
int refuse_in_capture(void);
/* A stream of the context is being captured, in whatever mode: 900, and that is over; else 0. */
int refuse_to_wait(const struct context *context);
/*
 * The default stream waits for blocking streams of its context: whoever uses it while one of these
 * is captured ends that, with 906; else 0.
 */
int refuse_default(const struct stream *stream);
int capture_add(struct stream *stream, struct op *op, struct node **ret_node);
/* To wait for a stream that is captured, or to ask for its state, ends the capture. */
int capture_invalidate(const struct stream *stream);
int capture_event(struct event *event, struct stream *stream);
int capture_wait(struct stream *stream, struct event *event);

/* ---- graphs.c ---- */

enum node_type {
	NODE_KERNEL,
	NODE_COPY,
	NODE_FILL,
	NODE_HOST,
	NODE_CHILD,
	NODE_EMPTY,
	NODE_WAIT,
	NODE_RECORD,
	NODE_ALLOC = 10,
	NODE_FREE
};
struct node {
	struct node *next;
	struct graph *graph;
	enum node_type type;
	struct op op;
	struct graph *child;
	struct event *event;
	struct node **after;
	size_t after_count;
	struct node *original; /* in an executable: the node that it was made from */
	struct node *copy;     /* the last that was made from it */
	bool is_off;
	bool is_done;
	uint64_t address, bytes; /* NODE_ALLOC, NODE_FREE */
};
struct graph {
	struct node *first, **end;
	bool is_child, is_gone;
};
struct exec {
	struct graph *graph; /* a copy */
	struct point last;   /* its last launch: the next one waits for it */
	uint64_t flags;
	bool is_gone;
};
struct graph *graph_new(void);
int graph_add(struct graph *graph, struct node *const *after, size_t count, enum node_type type,
	      struct node **ret_node);
bool exec_run(struct exec *exec); /* graph_execs.c */

#endif
