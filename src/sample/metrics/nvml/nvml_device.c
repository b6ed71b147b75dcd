/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GPU: its constant properties, and the meaning of error codes: missing values, a lost device,
 * an unusable library.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sample/metrics/nvml/nvml.h"

#define SECOND_NS INT64_C(1000000000)
/* Permissions may be granted later. */
#define RETRY_NS (60 * SECOND_NS)

/* Names of values in messages; NULL: not worth reporting. */
static const struct {
	const char *name;
	bool has_other; /* falls back to another way if this one is missing */
} values[NVML_VALUES] = {
	[NVML_VALUE_UTILIZATION] = { "utilization", false },
	[NVML_VALUE_MEMORY] = { "memory", true },
	[NVML_VALUE_MEMORY_V1] = { "memory", false },
	[NVML_VALUE_POWER] = { "power", false },
	[NVML_VALUE_CLOCK_COMPUTE] = { "clocks", false },
	[NVML_VALUE_TEMPERATURE] = { "temperature", true },
	[NVML_VALUE_TEMPERATURE_V] = { "temperature", false },
	[NVML_VALUE_THROTTLE] = { "throttling", false },
	[NVML_VALUE_COMPUTE_PROCESSES] = { "list of processes", false },
};

void nvml_message(const struct nvml *nvml, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	nvml->sink->message(nvml->sink->context, text);
}

static struct ts_metrics_subject subject_of(const struct nvml_gpu *gpu)
{
	return (struct ts_metrics_subject){ .kind = TS_METRICS_DEVICE, .device = gpu->index };
}

void nvml_real(const struct nvml *nvml, const struct nvml_gpu *gpu, const char *name,
	       const char *series, double value)
{
	struct ts_metrics_subject subject = subject_of(gpu);

	if (isfinite(value))
		nvml->sink->real(nvml->sink->context, &subject, name, series, value);
}

void nvml_integer(const struct nvml *nvml, const struct nvml_gpu *gpu, const char *name,
		  const char *series, int64_t value)
{
	struct ts_metrics_subject subject = subject_of(gpu);

	nvml->sink->integer(nvml->sink->context, &subject, name, series, value);
}

/* ---- what never changes ---- */

static void read_texts(const struct nvml_api *api, struct nvml_gpu *gpu)
{
	struct nvml_pci pci;

	if (NVML_CALL(api, name, gpu->handle, gpu->name, sizeof(gpu->name)))
		gpu->name[0] = '\0';
	if (NVML_CALL(api, uuid, gpu->handle, gpu->uuid, sizeof(gpu->uuid)))
		gpu->uuid[0] = '\0';
	/* Terminate texts ourselves. */
	gpu->name[sizeof(gpu->name) - 1] = '\0';
	gpu->uuid[sizeof(gpu->uuid) - 1] = '\0';
	memset(&pci, 0, sizeof(pci));
	/* In the kernel's format, which differs from the library's. */
	if (NVML_CALL(api, pci, gpu->handle, &pci) == NVML_OK)
		snprintf(gpu->bus, sizeof(gpu->bus), "%04x:%02x:%02x.0", pci.domain & 0xffffffff,
			 pci.bus & 0xff, pci.device & 0x1f);
}

static int64_t memory_total(const struct nvml_api *api, const struct nvml_gpu *gpu)
{
	struct nvml_memory memory = { .version = NVML_VERSION(struct nvml_memory, 2) };
	struct nvml_memory_v1 old = { 0 };

	if (NVML_CALL(api, memory, gpu->handle, &memory) == NVML_OK)
		old.total = memory.total;
	else if (NVML_CALL(api, memory_v1, gpu->handle, &old))
		return TS_METRICS_UNKNOWN;
	return old.total && old.total <= INT64_MAX ? (int64_t)old.total : TS_METRICS_UNKNOWN;
}

/* Bytes per second and lane of each PCIe generation, after encoding. */
static double link_limit(unsigned int generation, unsigned int width)
{
	static const double lane[] = { 0, 250e6, 500e6, 985e6, 1969e6, 3938e6, 7563e6, 15126e6 };

	if (generation >= sizeof(lane) / sizeof(lane[0]) || width > 32)
		return 0;
	return lane[generation] * width;
}

static void read_links(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_field field = { .field = NVML_FIELD_LINK_COUNT };
	unsigned int generation = 0, width = 0;
	uint64_t links;

	if (NVML_CALL(&nvml->api, pcie_generation, gpu->handle, &generation) == NVML_OK &&
	    NVML_CALL(&nvml->api, pcie_width, gpu->handle, &width) == NVML_OK)
		gpu->pcie_limit = link_limit(generation, width);
	if (nvml_fields(nvml, gpu, &field, 1) == NVML_OK && nvml_field_number(&field, &links) &&
	    links <= NVML_LINKS_MOST)
		gpu->links = (unsigned int)links;
}

bool nvml_gpu_open(struct nvml *nvml, struct nvml_gpu *gpu, uint32_t index)
{
	const struct nvml_api *api = &nvml->api;
	unsigned int mig = 0, pending = 0;

	memset(gpu, 0, sizeof(*gpu));
	gpu->index = index;
	gpu->memory_bytes = TS_METRICS_UNKNOWN;
	gpu->open_code = api->by_index(index, &gpu->handle);
	if (gpu->open_code) {
		gpu->is_lost = true;
		return false;
	}
	read_texts(api, gpu);
	gpu->memory_bytes = memory_total(api, gpu);
	gpu->has_mig = NVML_CALL(api, mig_mode, gpu->handle, &mig, &pending) == NVML_OK && mig;
	if (NVML_CALL(api, throttle_known, gpu->handle, &gpu->throttle_known))
		gpu->throttle_known = UINT64_MAX;
	read_links(nvml, gpu);
	return true;
}

void nvml_gpu_announce(struct nvml *nvml, struct nvml_gpu *gpu)
{
	const struct ts_metrics_device device = {
		.number = gpu->index,
		.vendor = "NVIDIA",
		.model = gpu->name,
		.uuid = gpu->uuid,
		.bus = gpu->bus,
		.memory_bytes = gpu->memory_bytes,
	};

	if (gpu->is_announced)
		return;
	gpu->is_announced = true;
	if (gpu->open_code) {
		nvml_message(nvml, "GPU %u cannot be opened: %s (see 'nvidia-smi -i %u')",
			     gpu->index, nvml_error_text(&nvml->api, gpu->open_code), gpu->index);
		return;
	}
	nvml->sink->device(nvml->sink->context, &device);
}

/* ---- what an answer means ---- */

bool nvml_lacks(const struct nvml_gpu *gpu, enum nvml_value value)
{
	return gpu->off_until_ns[value] == INT64_MAX;
}

bool nvml_wants(const struct nvml *nvml, const struct nvml_gpu *gpu, enum nvml_value value)
{
	return !nvml->is_dead && !gpu->is_lost && gpu->off_until_ns[value] <= nvml->now_ns;
}

static void report_missing(const struct nvml *nvml, const struct nvml_gpu *gpu,
			   enum nvml_value value, int code)
{
	const char *name = values[value].name;

	if (!name || (values[value].has_other && nvml_lacks(gpu, value)))
		return;
	if (code == NVML_NO_PERMISSION)
		nvml_message(nvml, "GPU %u: no permission to read the %s (run as root)", gpu->index,
			     name);
	else if (gpu->has_mig && code == NVML_NOT_SUPPORTED)
		nvml_message(
			nvml,
			"GPU %u: the %s cannot be read while MIG is enabled ('nvidia-smi mig -lgi' lists its instances)",
			gpu->index, name);
	else
		nvml_message(nvml, "GPU %u: the %s cannot be read: %s", gpu->index, name,
			     nvml_error_text(&nvml->api, code));
}

static void lose(const struct nvml *nvml, struct nvml_gpu *gpu, int code)
{
	gpu->is_lost = true;
	nvml_message(
		nvml,
		"GPU %u is lost: %s (look for 'Xid' in dmesg; 'nvidia-smi --gpu-reset -i %u' or "
		"a reboot may bring it back)",
		gpu->index, nvml_error_text(&nvml->api, code), gpu->index);
}

bool nvml_got(struct nvml *nvml, struct nvml_gpu *gpu, enum nvml_value value, int code)
{
	switch (code) {
	case NVML_OK:
		return true;
	case NVML_UNINITIALIZED:
	case NVML_DRIVER_NOT_LOADED:
	case NVML_VERSION_MISMATCH:
		nvml->is_dead = true;
		nvml_message(nvml, "the NVIDIA driver was unloaded: %s",
			     nvml_error_text(&nvml->api, code));
		return false;
	case NVML_GPU_IS_LOST:
	case NVML_RESET_REQUIRED:
	case NVML_GPU_NOT_FOUND:
		lose(nvml, gpu, code);
		return false;
	case NVML_NOT_FOUND:
	case NVML_NO_DATA:
	case NVML_NOT_READY:
		return false; /* this time only */
	case NVML_INVALID_ARGUMENT:
	case NVML_NOT_SUPPORTED:
	case NVML_FUNCTION_NOT_FOUND:
	case NVML_ARGUMENT_VERSION_MISMATCH:
	case NVML_DEPRECATED:
		gpu->off_until_ns[value] = INT64_MAX;
		break;
	case NVML_NO_PERMISSION:
		gpu->off_until_ns[value] = nvml->now_ns + RETRY_NS;
		break;
	default:
		break; /* may be transient */
	}
	report_missing(nvml, gpu, value, code);
	return false;
}

/* ---- fields ---- */

int nvml_fields(struct nvml *nvml, struct nvml_gpu *gpu, struct nvml_field *fields,
		unsigned int count)
{
	/* What the library does not write must not look like an answer. */
	for (unsigned int i = 0; i < count; i++)
		fields[i].code = NVML_UNKNOWN_ERROR;
	return NVML_CALL(&nvml->api, fields, gpu->handle, (int)count, fields);
}

static bool not_negative(int64_t value, uint64_t *ret_number)
{
	*ret_number = (uint64_t)value;
	return value >= 0;
}

bool nvml_field_number(const struct nvml_field *field, uint64_t *ret_number)
{
	if (field->code)
		return false;
	switch (field->type) {
	case NVML_UINT32:
		*ret_number = field->value.uint32;
		return true;
	case NVML_ULONG:
	case NVML_UINT64:
		*ret_number = field->value.uint64;
		return field->value.uint64 != NVML_NOT_AVAILABLE;
	case NVML_INT64:
		return not_negative(field->value.int64, ret_number);
	case NVML_INT32:
		return not_negative(field->value.int32, ret_number);
	case NVML_UINT16:
		*ret_number = field->value.uint16;
		return true;
	default:
		return false;
	}
}
