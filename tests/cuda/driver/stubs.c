/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: functions that do nothing, and lookups of all. Each function of the driver
 * is defined here, weakly: what other files define replaces it.
 */
#include <stdio.h>
#include <string.h>

#include "cuda/driver/driver.h"

#define STUB(name)                                                                                 \
	__attribute__((weak, visibility("default"))) int stub_##name(uintptr_t *a) __asm__(#name); \
	int stub_##name(uintptr_t *a)                                                              \
	{                                                                                          \
		return stub(#name, a);                                                             \
	}

/* They succeed; those with a handle store one. */
static const struct {
	const char *name;
	bool has_handle;
} succeed[] = {
	{ "cuArrayCreate_v2", true },
	{ "cuArray3DCreate_v2", true },
	{ "cuMipmappedArrayCreate", true },
	{ "cuTexObjectCreate", true },
	{ "cuSurfObjectCreate", true },
	{ "cuImportExternalMemory", true },
	{ "cuImportExternalSemaphore", true },
	{ "cuMulticastCreate", true },
	{ "cuGreenCtxCreate", true },
	{ "cuIpcOpenMemHandle_v2", true },
	{ "cuGraphConditionalHandleCreate", true },
	{ "cuLinkCreate_v2", false },
	{ "cuArrayDestroy", false },
	{ "cuTexObjectDestroy", false },
	{ "cuSurfObjectDestroy", false },
	{ "cuDestroyExternalMemory", false },
	{ "cuDestroyExternalSemaphore", false },
	{ "cuGreenCtxDestroy", false },
	{ "cuMemExportToShareableHandle", false },
	{ "cuIpcGetMemHandle", false },
	{ "cuIpcCloseMemHandle", false },
	{ "cuStreamWriteValue32_v2", false },
	{ "cuStreamWriteValue64_v2", false },
	{ "cuStreamWaitValue32_v2", false },
	{ "cuStreamBatchMemOp_v2", false },
	{ "cuCtxEnablePeerAccess", false },
	{ "cuCtxDisablePeerAccess", false },
	{ "cuProfilerStart", false },
	{ "cuProfilerStop", false },
	{ "cuMemAdvise", false },
	{ "cuMemPrefetchAsync", false },
	{ "cuCtxResetPersistingL2Cache", false },
};

static int stub(const char *name, uintptr_t *a)
{
	for (size_t i = 0; i < sizeof(succeed) / sizeof(succeed[0]); i++) {
		if (strcmp(succeed[i].name, name))
			continue;
		if (succeed[i].has_handle)
			*a = 0x77770000 + i;
		return 0;
	}
	return NOT_SUPPORTED;
}

#define CUDA_CALL(name, ...) STUB(name)
#define CUDA_OTHER(name, ...) STUB(name)
#include "backends/cuda/calls/cuda_calls.def"
#include "backends/cuda/calls/untraced_calls.def"
#undef CUDA_CALL
#undef CUDA_OTHER

API cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags,
			uint32_t *status);

/* No header has it. */
API cuNobodyKnowsIt(uint64_t address)
{
	return address ? 0 : INVALID_VALUE;
}

static const struct {
	const char *name;
	void *address;
} functions[] = {
	{ "cuGetProcAddress", (void *)cuGetProcAddress_v2 },
	{ "cuGetProcAddress_v2", (void *)cuGetProcAddress_v2 },
	{ "cuNobodyKnowsIt", (void *)cuNobodyKnowsIt },
#define CUDA_CALL(name, ...) { #name, (void *)stub_##name },
#define CUDA_OTHER(name, ...) { #name, (void *)stub_##name },
#include "backends/cuda/calls/cuda_calls.def"
#include "backends/cuda/calls/untraced_calls.def"
};

static void *find(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (!strcmp(functions[i].name, name))
			return functions[i].address;
	}
	return NULL;
}

/* The newest version that programs of that version of CUDA know, and its variant for streams. */
API cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags,
			uint32_t *status)
{
	static const char *const versions[] = { "_v4", "_v3", "_v2", "" };
	static const char *const variants[] = { "_ptsz", "_ptds", "" };

	*address = NULL;
	for (size_t i = version >= 13000 ? 0 : 2; i < 4 && !*address; i++) {
		for (size_t j = flags & 2 ? 0 : 2; j < 3 && !*address; j++) {
			char full[128];

			snprintf(full, sizeof(full), "%s%s%s", name, versions[i], variants[j]);
			*address = find(full);
		}
	}
	if (status)
		*status = *address ? 0 : 1;
	return *address ? 0 : NOT_FOUND;
}

API cuGetProcAddress(const char *name, void **address, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, address, version, flags, NULL);
}
