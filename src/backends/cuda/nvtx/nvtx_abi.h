/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool side of NVTX v3: how a copy of NVTX in a program or library is initialized, and what its
 * functions take. Numbers and layouts are declared here; nvtx_check.c compares them with NVIDIA's
 * headers, if installed.
 */
#ifndef TS_BACKENDS_CUDA_NVTX_NVTX_ABI_H
#define TS_BACKENDS_CUDA_NVTX_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* ---- initialization ---- */

enum { NVTX_TABLE_CALLBACKS = 1, NVTX_TABLE_VERSION = 3 };

enum nvtx_module {
	NVTX_MODULE_CORE = 1,
	NVTX_MODULE_CUDA = 2,
	NVTX_MODULE_CUDART = 4,
	NVTX_MODULE_CORE2 = 5,
};

/* Any function; its slot in the table says which type it has. */
typedef void (*nvtx_function)(void);
typedef const void *(*nvtx_export_table)(uint32_t id);

struct nvtx_callbacks {
	size_t size;
	/*
	 * *ret_table: pointers to the function slots, by number. Returns 1 if there is such a
	 * module.
	 */
	int (*module)(int module, nvtx_function ***ret_table, unsigned int *ret_count);
};

struct nvtx_version {
	size_t size;
	uint32_t version;
	uint32_t reserved;
	void (*set_tool)(uint32_t version);
};

enum nvtx_core {
	NVTX_MARK_EX = 1,
	NVTX_MARK_A,
	NVTX_MARK_W,
	NVTX_START_EX,
	NVTX_START_A,
	NVTX_START_W,
	NVTX_END,
	NVTX_PUSH_EX,
	NVTX_PUSH_A,
	NVTX_PUSH_W,
	NVTX_POP,
	NVTX_CATEGORY_A,
	NVTX_CATEGORY_W,
	NVTX_THREAD_A,
	NVTX_THREAD_W,
};

enum nvtx_core2 {
	NVTX_DOMAIN_MARK_EX = 1,
	NVTX_DOMAIN_START_EX,
	NVTX_DOMAIN_END,
	NVTX_DOMAIN_PUSH_EX,
	NVTX_DOMAIN_POP,
	NVTX_RESOURCE_CREATE,
	NVTX_RESOURCE_DESTROY,
	NVTX_DOMAIN_CATEGORY_A,
	NVTX_DOMAIN_CATEGORY_W,
	NVTX_REGISTER_A,
	NVTX_REGISTER_W,
	NVTX_DOMAIN_CREATE_A,
	NVTX_DOMAIN_CREATE_W,
	NVTX_DOMAIN_DESTROY,
	NVTX_INITIALIZE,
};

enum nvtx_cuda { NVTX_CU_STREAM_A = 5, NVTX_CU_STREAM_W = 6 };
enum nvtx_cudart { NVTX_CUDA_STREAM_A = 3, NVTX_CUDA_STREAM_W = 4 };

/* ---- events ---- */

enum { NVTX_COLOR_IS_ARGB = 1 };
enum { NVTX_TEXT_ASCII = 1, NVTX_TEXT_WIDE = 2, NVTX_TEXT_REGISTERED = 3 };
enum nvtx_payload {
	NVTX_PAYLOAD_UINT64 = 1,
	NVTX_PAYLOAD_SINT64,
	NVTX_PAYLOAD_REAL64,
	NVTX_PAYLOAD_UINT32,
	NVTX_PAYLOAD_SINT32,
	NVTX_PAYLOAD_REAL32,
};

union nvtx_text {
	const char *ascii;
	const wchar_t *wide;
	const void *registered;
};

struct nvtx_attributes {
	uint16_t version;
	uint16_t size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved;
	union {
		uint64_t uint64;
		double real64;
		uint32_t uint32;
		int32_t sint32;
		float real32;
	} payload;
	int32_t text_type;
	union nvtx_text text;
};

/* Names of resources. */
enum {
	NVTX_RESOURCE_THREAD = 1 << 16 | 3,
	NVTX_RESOURCE_CU_STREAM = 4 << 16 | 3,
	NVTX_RESOURCE_CUDA_STREAM = 5 << 16 | 1,
};

struct nvtx_resource {
	uint16_t version;
	uint16_t size;
	int32_t type;
	union {
		const void *pointer;
		uint64_t number;
	} identifier;
	int32_t text_type;
	union nvtx_text text;
};

/* Returned by push and pop if there is no level. */
#define NVTX_NO_LEVEL (-1)

#endif
