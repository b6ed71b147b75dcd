/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the functions of NVML. */
#include "sample/metrics/nvml/nvml_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* With its version: without it, this is the stub of a toolkit, which does not work. */
#define LIBRARY "libnvidia-ml.so.1"

struct function {
	size_t offset;
	const char *symbols[2];
};

static const struct function functions[] = {
#define FUNCTION(member, arguments, first, second) \
	{ offsetof(struct nvml_api, member), { first, second } },
	NVML_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* Function pointers are not object pointers in C; their representation is the same here. */
static void set_pointer(void *target, void *symbol)
{
	memcpy(target, &symbol, sizeof(symbol));
}

/*
 * Size of the entries that these functions write. Released _v3 functions match _v2; some 535
 * drivers wrote eight bytes more under the same name, and are recognised by their other functions.
 */
static unsigned int process_bytes(const struct nvml_api *api, const char *suffix,
				  nvml_find_symbol find)
{
	if (!suffix[0])
		return offsetof(struct nvml_process, gpu_instance);
	if (strcmp(suffix, "_v3") == 0 &&
	    find(api->library, "nvmlDeviceGetConfComputeMemSizeInfo") &&
	    !find(api->library, "nvmlDeviceGetRunningProcessDetailList"))
		return NVML_PROCESS_BYTES_MOST;
	return sizeof(struct nvml_process);
}

static void find_process_lists(struct nvml_api *api, nvml_find_symbol find)
{
	static const char *const kinds[NVML_PROCESS_KINDS] = { "Compute", "Graphics",
							       "MPSCompute" };
	static const char *const suffixes[] = { "_v3", "_v2", "" };

	for (unsigned int kind = 0; kind < NVML_PROCESS_KINDS; kind++) {
		for (size_t i = 0; i < TS_ARRAY_SIZE(suffixes) && !api->processes[kind]; i++) {
			char name[64];

			snprintf(name, sizeof(name), "nvmlDeviceGet%sRunningProcesses%s",
				 kinds[kind], suffixes[i]);
			set_pointer(&api->processes[kind], find(api->library, name));
			api->process_bytes[kind] = process_bytes(api, suffixes[i], find);
		}
	}
}

bool nvml_api_open(struct nvml_api *ret_api, const char *path, nvml_find_symbol find)
{
	memset(ret_api, 0, sizeof(*ret_api));
	ret_api->library = dlopen(path ? path : LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!ret_api->library)
		return false;
	for (size_t i = 0; i < TS_ARRAY_SIZE(functions); i++) {
		const struct function *function = &functions[i];
		void *symbol = find(ret_api->library, function->symbols[0]);

		if (!symbol && function->symbols[1])
			symbol = find(ret_api->library, function->symbols[1]);
		set_pointer((char *)ret_api + function->offset, symbol);
	}
	set_pointer(&ret_api->error_text, find(ret_api->library, "nvmlErrorString"));
	find_process_lists(ret_api, find);
	return ret_api->init && ret_api->shut_down && ret_api->count && ret_api->by_index;
}

void nvml_api_close(struct nvml_api *api)
{
	if (api->library)
		dlclose(api->library);
	memset(api, 0, sizeof(*api));
}

const char *nvml_error_text(const struct nvml_api *api, int code)
{
	const char *text = api->error_text ? api->error_text(code) : NULL;

	return text ? text : "no text for this error";
}
