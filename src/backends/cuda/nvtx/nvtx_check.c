/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the numbers and layouts of nvtx_abi.h with NVIDIA's headers, if installed. No code. */
#include "backends/cuda/nvtx/nvtx_abi.h"

#if defined(TS_HAVE_CUDA_HEADERS) && defined(__has_include)
#if __has_include(<nvtx3/nvtxDetail/nvtxTypes.h>)
#include <assert.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), #theirs)
#define AT(ours, theirs)                                               \
	static_assert(offsetof(struct nvtx_attributes, ours) ==        \
			      offsetof(nvtxEventAttributes_t, theirs), \
		      #theirs)

SAME(NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(NVTX_TABLE_VERSION, NVTX_ETID_VERSIONINFO);
SAME(NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
SAME(NVTX_MODULE_CUDA, NVTX_CB_MODULE_CUDA);
SAME(NVTX_MODULE_CUDART, NVTX_CB_MODULE_CUDART);
SAME(NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME(sizeof(struct nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
SAME(sizeof(struct nvtx_version), sizeof(NvtxExportTableVersionInfo));
SAME(offsetof(struct nvtx_version, set_tool),
     offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion));

SAME(NVTX_MARK_EX, NVTX_CBID_CORE_MarkEx);
SAME(NVTX_START_EX, NVTX_CBID_CORE_RangeStartEx);
SAME(NVTX_END, NVTX_CBID_CORE_RangeEnd);
SAME(NVTX_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
SAME(NVTX_PUSH_A, NVTX_CBID_CORE_RangePushA);
SAME(NVTX_POP, NVTX_CBID_CORE_RangePop);
SAME(NVTX_THREAD_W, NVTX_CBID_CORE_NameOsThreadW);
SAME(NVTX_DOMAIN_POP, NVTX_CBID_CORE2_DomainRangePop);
SAME(NVTX_RESOURCE_CREATE, NVTX_CBID_CORE2_DomainResourceCreate);
SAME(NVTX_REGISTER_W, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(NVTX_INITIALIZE, NVTX_CBID_CORE2_Initialize);
SAME(NVTX_CU_STREAM_A, NVTX_CBID_CUDA_NameCuStreamA);
SAME(NVTX_CUDA_STREAM_A, NVTX_CBID_CUDART_NameCudaStreamA);

SAME(NVTX_COLOR_IS_ARGB, NVTX_COLOR_ARGB);
SAME(NVTX_TEXT_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(NVTX_TEXT_WIDE, NVTX_MESSAGE_TYPE_UNICODE);
SAME(NVTX_TEXT_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(NVTX_PAYLOAD_UINT64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
SAME(NVTX_PAYLOAD_REAL64, NVTX_PAYLOAD_TYPE_DOUBLE);
SAME(NVTX_PAYLOAD_UINT32, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
SAME(NVTX_PAYLOAD_REAL32, NVTX_PAYLOAD_TYPE_FLOAT);
SAME(NVTX_RESOURCE_THREAD, NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE);

SAME(sizeof(struct nvtx_attributes), sizeof(nvtxEventAttributes_t));
AT(size, size);
AT(category, category);
AT(color, color);
AT(payload_type, payloadType);
AT(payload, payload);
AT(text_type, messageType);
AT(text, message);
SAME(sizeof(struct nvtx_resource), sizeof(nvtxResourceAttributes_t));
SAME(offsetof(struct nvtx_resource, identifier), offsetof(nvtxResourceAttributes_t, identifier));
SAME(offsetof(struct nvtx_resource, text), offsetof(nvtxResourceAttributes_t, message));
#endif
#endif
