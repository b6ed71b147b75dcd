/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits the devices that CUDA shows to this process, once, after cuInit(). Their UUIDs match those
 * of NVML.
 */
#include <stdio.h>

#include "backends/cuda/calls/cuda_calls.h"

#define DEVICES_AT_MOST 64
#define NAME_BYTES 128

struct driver_queries {
	int (*count)(int *count);
	int (*get)(int *device, int ordinal);
	int (*name)(char *name, int bytes, int device);
	int (*uuid)(uint8_t *uuid, int device);
	int (*memory)(size_t *bytes, int device);
	int (*bus)(char *name, int bytes, int device);
};

static void find_queries(struct driver_queries *queries)
{
	queries->count = (int (*)(int *))cuda_driver("cuDeviceGetCount");
	queries->get = (int (*)(int *, int))cuda_driver("cuDeviceGet");
	queries->name = (int (*)(char *, int, int))cuda_driver("cuDeviceGetName");
	/* The second version returns the UUID of a MIG instance. */
	queries->uuid = (int (*)(uint8_t *, int))cuda_driver("cuDeviceGetUuid_v2");
	if (!queries->uuid)
		queries->uuid = (int (*)(uint8_t *, int))cuda_driver("cuDeviceGetUuid");
	queries->memory = (int (*)(size_t *, int))cuda_driver("cuDeviceTotalMem_v2");
	queries->bus = (int (*)(char *, int, int))cuda_driver("cuDeviceGetPCIBusId");
}

/* As NVML writes it: GPU-8f6a24d4-... */
static void format_uuid(char *text, size_t bytes, const uint8_t *uuid)
{
	static const char digits[] = "0123456789abcdef";
	size_t used = 4;

	snprintf(text, bytes, "GPU-");
	for (size_t i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[used++] = '-';
		text[used++] = digits[uuid[i] >> 4];
		text[used++] = digits[uuid[i] & 15];
	}
	text[used] = '\0';
}

static void emit_device(const struct driver_queries *queries, int ordinal)
{
	char name[NAME_BYTES] = "", uuid_text[48] = "", bus[32] = "";
	struct ts_metrics_device description = { .number = (uint32_t)ordinal,
						 .vendor = "NVIDIA",
						 .model = name,
						 .uuid = uuid_text,
						 .bus = bus,
						 .memory_bytes = TS_METRICS_UNKNOWN };
	uint8_t uuid[16];
	size_t bytes = 0;
	int device;

	if (queries->get(&device, ordinal))
		return;
	if (queries->name && queries->name(name, sizeof(name) - 1, device))
		name[0] = '\0';
	if (queries->uuid && !queries->uuid(uuid, device))
		format_uuid(uuid_text, sizeof(uuid_text), uuid);
	if (queries->bus && queries->bus(bus, sizeof(bus) - 1, device))
		bus[0] = '\0';
	if (queries->memory && !queries->memory(&bytes, device) && bytes <= INT64_MAX)
		description.memory_bytes = (int64_t)bytes;
	ts_tracer_device(ts_tracer_process(), &description);
}

void cuda_devices_emit(void)
{
	struct driver_queries queries;
	int count = 0;

	find_queries(&queries);
	cuda_thread.is_ours++;
	if (queries.count && queries.get && !queries.count(&count))
		for (int i = 0; i < count && i < DEVICES_AT_MOST; i++)
			emit_device(&queries, i);
	cuda_thread.is_ours--;
}
