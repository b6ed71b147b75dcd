/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of CUPTI's program-counter sampling interface that we use. Numbers and layouts are
 * declared here and compared with NVIDIA's header, if installed. Every struct begins with its size,
 * which tells CUPTI how much of it we know.
 */
#ifndef TS_BACKENDS_CUDA_SAMPLING_PC_SAMPLING_ABI_H
#define TS_BACKENDS_CUDA_SAMPLING_PC_SAMPLING_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Results. */
enum {
	SAMPLING_OK = 0,
	SAMPLING_OUT_OF_MEMORY = 8, /* of GetData: the hardware's buffer is full */
	SAMPLING_NOT_SUPPORTED = 27,
	SAMPLING_NO_PRIVILEGES = 35,
	SAMPLING_VIRTUALIZED = 40,
};

enum { SAMPLING_CONTINUOUS = 1, SAMPLING_SERIALIZED = 2 };

enum {
	SAMPLING_PERIOD = 1,
	SAMPLING_STALL_REASON = 2,
	SAMPLING_SCRATCH_BYTES = 3,
	SAMPLING_HARDWARE_BYTES = 4,
	SAMPLING_MODE = 5,
	SAMPLING_START_STOP = 6,
	SAMPLING_FORMAT = 7,
	SAMPLING_DATA_BUFFER = 8,
	SAMPLING_WORKER_SLEEP = 9,
};
#define SAMPLING_FORMAT_PARSED 1
#define SAMPLING_REASON_BYTES 128

struct sampling_reason {
	uint32_t index;
	uint32_t samples;
};

struct sampling_pc {
	size_t size;
	uint64_t cubin_crc;
	uint64_t offset;
	uint32_t function;
	uint32_t reserved;
	char *name;
	size_t reason_count;
	struct sampling_reason *reasons;
	uint32_t correlation;
};

struct sampling_data {
	size_t size;
	size_t capacity; /* in pcs */
	uint64_t samples;
	uint64_t dropped;
	size_t count; /* of valid pcs */
	size_t remaining;
	uint64_t range;
	struct sampling_pc *pcs;
	uint64_t non_user_samples; /* of kernels that are not the program's */
	uint8_t is_hardware_full;
};

struct sampling_attribute {
	uint32_t type;
	uint32_t status;
	union {
		uint64_t words[3];
		uint32_t number;
		size_t size;
		void *buffer;
		struct {
			size_t count;
			uint32_t *indexes;
		} reasons;
	} value;
};

/* Of Enable and Disable. */
struct sampling_context_params {
	size_t size;
	void *reserved;
	void *context;
};

struct sampling_get_params {
	size_t size;
	void *reserved;
	void *context;
	void *data;
};

struct sampling_configure_params {
	size_t size;
	void *reserved;
	void *context;
	size_t count;
	struct sampling_attribute *attributes;
};

struct sampling_count_params {
	size_t size;
	void *reserved;
	void *context;
	size_t *count;
};

struct sampling_reasons_params {
	size_t size;
	void *reserved;
	void *context;
	size_t count;
	uint32_t *indexes;
	char **names;
};

struct sampling_crc_params {
	size_t size;
	size_t cubin_bytes;
	const void *cubin;
	uint64_t crc;
};

#ifdef TS_HAVE_CUDA_HEADERS
#include <cupti_pcsampling.h>
#define SAMPLING_SAME(ours, member, theirs, field)                                        \
	static_assert(offsetof(struct ours, member) == offsetof(theirs, field), #theirs); \
	static_assert(sizeof(((struct ours *)0)->member) == sizeof(((theirs *)0)->field), #theirs)
#define SAMPLING_SIZE(ours, theirs) static_assert(sizeof(struct ours) == sizeof(theirs), #theirs)
SAMPLING_SIZE(sampling_reason, CUpti_PCSamplingStallReason);
SAMPLING_SAME(sampling_pc, cubin_crc, CUpti_PCSamplingPCData, cubinCrc);
SAMPLING_SAME(sampling_pc, offset, CUpti_PCSamplingPCData, pcOffset);
SAMPLING_SAME(sampling_pc, function, CUpti_PCSamplingPCData, functionIndex);
SAMPLING_SAME(sampling_pc, name, CUpti_PCSamplingPCData, functionName);
SAMPLING_SAME(sampling_pc, reason_count, CUpti_PCSamplingPCData, stallReasonCount);
SAMPLING_SAME(sampling_pc, reasons, CUpti_PCSamplingPCData, stallReason);
SAMPLING_SAME(sampling_pc, correlation, CUpti_PCSamplingPCData, correlationId);
SAMPLING_SIZE(sampling_pc, CUpti_PCSamplingPCData);
SAMPLING_SAME(sampling_data, capacity, CUpti_PCSamplingData, collectNumPcs);
SAMPLING_SAME(sampling_data, samples, CUpti_PCSamplingData, totalSamples);
SAMPLING_SAME(sampling_data, dropped, CUpti_PCSamplingData, droppedSamples);
SAMPLING_SAME(sampling_data, count, CUpti_PCSamplingData, totalNumPcs);
SAMPLING_SAME(sampling_data, remaining, CUpti_PCSamplingData, remainingNumPcs);
SAMPLING_SAME(sampling_data, pcs, CUpti_PCSamplingData, pPcData);
SAMPLING_SAME(sampling_data, non_user_samples, CUpti_PCSamplingData, nonUsrKernelsTotalSamples);
SAMPLING_SAME(sampling_data, is_hardware_full, CUpti_PCSamplingData, hardwareBufferFull);
SAMPLING_SIZE(sampling_data, CUpti_PCSamplingData);
SAMPLING_SAME(sampling_attribute, type, CUpti_PCSamplingConfigurationInfo, attributeType);
SAMPLING_SAME(sampling_attribute, status, CUpti_PCSamplingConfigurationInfo, attributeStatus);
SAMPLING_SAME(sampling_attribute, value, CUpti_PCSamplingConfigurationInfo, attributeData);
SAMPLING_SIZE(sampling_attribute, CUpti_PCSamplingConfigurationInfo);
SAMPLING_SIZE(sampling_context_params, CUpti_PCSamplingEnableParams);
SAMPLING_SIZE(sampling_context_params, CUpti_PCSamplingDisableParams);
SAMPLING_SIZE(sampling_get_params, CUpti_PCSamplingGetDataParams);
SAMPLING_SIZE(sampling_configure_params, CUpti_PCSamplingConfigurationInfoParams);
SAMPLING_SIZE(sampling_count_params, CUpti_PCSamplingGetNumStallReasonsParams);
SAMPLING_SIZE(sampling_reasons_params, CUpti_PCSamplingGetStallReasonsParams);
SAMPLING_SAME(sampling_crc_params, cubin, CUpti_GetCubinCrcParams, cubin);
SAMPLING_SIZE(sampling_crc_params, CUpti_GetCubinCrcParams);
static_assert(SAMPLING_CONTINUOUS == (int)CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS &&
		      SAMPLING_SERIALIZED ==
			      (int)CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED &&
		      SAMPLING_NOT_SUPPORTED == (int)CUPTI_ERROR_NOT_SUPPORTED &&
		      SAMPLING_OUT_OF_MEMORY == (int)CUPTI_ERROR_OUT_OF_MEMORY &&
		      SAMPLING_NO_PRIVILEGES == (int)CUPTI_ERROR_INSUFFICIENT_PRIVILEGES &&
		      SAMPLING_REASON_BYTES == CUPTI_STALL_REASON_STRING_SIZE,
	      "CUPTI's numbers");
#undef SAMPLING_SAME
#undef SAMPLING_SIZE
#endif

#endif
