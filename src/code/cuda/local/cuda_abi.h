/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants, layouts and functions of the CUDA driver that capturing and replaying use, as cuda.h
 * of CUDA 12 and 13 declares them. cuda_abi_check.c compares them with NVIDIA's header where that
 * is installed.
 */
#ifndef TS_CODE_CUDA_LOCAL_CUDA_ABI_H
#define TS_CODE_CUDA_LOCAL_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

enum {
	CUDA_SUCCESS_ = 0,
	CUDA_INVALID_VALUE = 1,
	CUDA_OUT_OF_MEMORY = 2,
	CUDA_NOT_INITIALIZED = 3,
	CUDA_INVALID_CONTEXT = 201,
	CUDA_UNSUPPORTED_LIMIT = 215,
	CUDA_INVALID_HANDLE = 400,
	CUDA_NOT_FOUND = 500,
	CUDA_NOT_READY = 600,
	CUDA_HOST_MEMORY_NOT_REGISTERED = 713,
	CUDA_NOT_SUPPORTED = 801,
	CUDA_CAPTURE_UNSUPPORTED = 900,
};

#define CUDA_ALLOCATION_PINNED 1u
#define CUDA_LOCATION_DEVICE 1u
#define CUDA_ACCESS_READ_WRITE 3u
#define CUDA_CAPTURE_ACTIVE 1

/* CUmemPool_attribute */
enum {
	CUDA_POOL_RELEASE_THRESHOLD = 4,
	CUDA_POOL_RESERVED = 5,
	CUDA_POOL_RESERVED_HIGH = 6,
	CUDA_POOL_USED = 7,
	CUDA_POOL_USED_HIGH = 8,
};

#define CUDA_STREAM_LEGACY ((uintptr_t)1)
#define CUDA_STREAM_PER_THREAD ((uintptr_t)2)
#define CUDA_STREAM_NON_BLOCKING 1u
#define CUDA_EVENT_DISABLE_TIMING 2u

/* CUmemorytype, and the attribute of a pointer that has it */
enum {
	CUDA_MEMORY_HOST = 1,
	CUDA_MEMORY_DEVICE = 2,
	CUDA_MEMORY_ARRAY = 3,
	CUDA_MEMORY_UNIFIED = 4,
	CUDA_POINTER_MEMORY_TYPE = 2,
};

#define CUDA_CAPTURE_MODE_RELAXED 2 /* CU_STREAM_CUDA_CAPTURE_MODE_RELAXED */
#define CUDA_HOST_REGISTER_PORTABLE 1u
#define CUDA_HOST_REGISTER_MAPPED 2u
#define CUDA_HOST_ALLOC_MAPPED 2u

/* CUgraphNodeType */
enum {
	CUDA_NODE_KERNEL = 0,
	CUDA_NODE_COPY = 1,
	CUDA_NODE_FILL = 2,
	CUDA_NODE_HOST = 3,
	CUDA_NODE_GRAPH = 4,
	CUDA_NODE_EMPTY = 5,
	CUDA_NODE_EVENT_WAIT = 6,
	CUDA_NODE_EVENT_RECORD = 7,
	CUDA_NODE_SEMAPHORE_SIGNAL = 8,
	CUDA_NODE_SEMAPHORE_WAIT = 9,
	CUDA_NODE_ALLOC = 10,
	CUDA_NODE_FREE = 11,
	CUDA_NODE_MEMORY_OPERATION = 12,
	CUDA_NODE_CONDITIONAL = 13,
};
#define CUDA_GRAPH_DEVICE_LAUNCH 4u /* CUgraphInstantiate_flags */

/* CUgraphEdgeData */
struct cuda_graph_edge {
	uint8_t from_port, to_port, type, reserved[5];
};

/* Where the first device's arena may begin, and its least size (docs/cuda-replay.md, 3.1). */
#define CUDA_ARENA_BYTES_LEAST (UINT64_C(1) << 40)
#define CUDA_ARENA_BASES                                                              \
	UINT64_C(0x200000000000), UINT64_C(0x400000000000), UINT64_C(0x600000000000), \
		UINT64_C(0x100000000000)

#define CUDA_LAUNCH_PARAM_END ((void *)0)
#define CUDA_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CUDA_LAUNCH_PARAM_BUFFER_SIZE ((void *)2)

#define CUDA_LAUNCH_ATTRIBUTE_COOPERATIVE 2

struct cuda_launch_attribute {
	uint32_t id;
	uint32_t padding;
	uint8_t value[64];
};

struct cuda_launch_config {
	uint32_t grid[3], block[3];
	uint32_t shared_bytes;
	void *stream;
	const struct cuda_launch_attribute *attributes;
	uint32_t attribute_count;
};

/* CUmemAllocationProp */
struct cuda_allocation_prop {
	uint32_t type;         /* 1: pinned */
	uint32_t handle_types; /* requestedHandleTypes */
	struct {
		uint32_t type; /* 1: device */
		int32_t id;
	} location;
	void *win32;
	struct {
		uint8_t compression, rdma;
		uint16_t usage;
		uint8_t reserved[4];
	} flags;
};

/* CUmemLocation */
struct cuda_location {
	uint32_t type;
	int32_t id;
};

/* CUmemAccessDesc */
struct cuda_access {
	struct {
		uint32_t type;
		int32_t id;
	} location;
	uint32_t flags; /* 3: read and write */
};

/* CUmemPoolProps */
struct cuda_pool_prop {
	uint32_t type;
	uint32_t handle_types;
	struct {
		uint32_t type;
		int32_t id;
	} location;
	void *win32;
	size_t most;
	uint16_t usage;
	uint8_t reserved[54];
};

/* CUDA_MEM_ALLOC_NODE_PARAMS */
struct cuda_alloc_node {
	struct cuda_pool_prop prop;
	const struct cuda_access *access;
	size_t access_count;
	size_t bytes;
	uint64_t address;
};

/* CUgraphNodeParams, as far as we read it. */
struct cuda_node_params {
	uint32_t type;
	int32_t reserved[3];
	union {
		long long words[29];
		struct cuda_alloc_node alloc;
		uint64_t free_address;
	};
	long long reserved_2;
};

/* CUDA_MEMCPY2D_v2 */
struct cuda_copy_2d {
	size_t from_x, from_y;
	uint32_t from_type; /* 1: host, 2: device, 3: array, 4: unified */
	const void *from_host;
	uint64_t from_device;
	void *from_array;
	size_t from_pitch;
	size_t to_x, to_y;
	uint32_t to_type;
	void *to_host;
	uint64_t to_device;
	void *to_array;
	size_t to_pitch;
	size_t width, height;
};

/* CUDA_MEMCPY3D_v2; CUDA_MEMCPY3D_PEER has the same members in these places, with contexts as the
 * reserved ones */
struct cuda_copy_3d {
	size_t from_x, from_y, from_z, from_lod;
	uint32_t from_type;
	const void *from_host;
	uint64_t from_device;
	void *from_array;
	void *from_reserved;
	size_t from_pitch, from_height;
	size_t to_x, to_y, to_z, to_lod;
	uint32_t to_type;
	void *to_host;
	uint64_t to_device;
	void *to_array;
	void *to_reserved;
	size_t to_pitch, to_height;
	size_t width, height, depth;
};

/* CUmemcpy3DOperand */
struct cuda_copy_operand {
	uint32_t type; /* CUDA_OPERAND_* */
	union {
		struct {
			uint64_t address;
			size_t row, height; /* of a layer; 0: as much as is copied */
			uint32_t location_type;
			int32_t location;
		};
		struct {
			void *array;
			size_t offset[3];
		};
	};
};
#define CUDA_OPERAND_POINTER 1u

/* CUDA_MEMCPY3D_BATCH_OP */
struct cuda_copy_of_batch {
	struct cuda_copy_operand from, to;
	size_t width, height, depth;
	uint32_t order, flags;
};

/* CUDA_KERNEL_NODE_PARAMS_v2 */
struct cuda_kernel_node {
	void *function;
	uint32_t grid[3], block[3];
	uint32_t shared_bytes;
	void **params;
	void **extra;
	void *kernel;
	void *context;
};

/* CUDA_MEMSET_NODE_PARAMS */
struct cuda_fill_node {
	uint64_t to;
	size_t pitch;
	uint32_t value, element_bytes;
	size_t width, height;
};

struct cuda_driver_functions {
#define CU_FUNCTION(name, exported, parameters, arguments) int(*name) parameters;
#include "code/cuda/local/cuda_functions.def"
};

#endif
