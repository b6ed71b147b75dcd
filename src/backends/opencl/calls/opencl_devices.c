/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes devices, queues and platforms in the trace. A device is numbered by its platform and
 * its index there, so that the number is the same in each run; sub-devices follow in order of
 * appearance.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/opencl_internal.h"

#define PLATFORMS_AT_MOST 64
#define DEVICES_AT_MOST 128 /* per platform; sub-devices have higher numbers */

/* Of extensions; numbers as in CL/cl_ext.h. */
#define DEVICE_UUID_KHR 0x106A
#define DEVICE_PCI_BUS_INFO_KHR 0x410F
#define DEVICE_PCI_BUS_ID_NV 0x4008
#define DEVICE_PCI_SLOT_ID_NV 0x4009
#define DEVICE_PCI_DOMAIN_ID_NV 0x400A
#define QUEUE_PRIORITY_KHR 0x1096
#define VENDOR_NVIDIA 0x10DE

/* ---- numbers ---- */

static uint32_t index_of_platform(cl_platform_id platform)
{
	cl_platform_id platforms[PLATFORMS_AT_MOST];
	cl_uint count = 0;

	if (ocl.next.clGetPlatformIDs(PLATFORMS_AT_MOST, platforms, &count) != CL_SUCCESS)
		count = 0;
	for (cl_uint i = 0; i < count && i < PLATFORMS_AT_MOST; i++)
		if (platforms[i] == platform)
			return i;
	return PLATFORMS_AT_MOST;
}

/* True if it is a root device of the platform, not a sub-device. */
static bool find_index(cl_platform_id platform, cl_device_id device, uint32_t *ret_index)
{
	cl_device_id devices[DEVICES_AT_MOST];
	cl_uint count = 0;

	if (ocl.next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, DEVICES_AT_MOST, devices,
				    &count) != CL_SUCCESS)
		count = 0;
	for (cl_uint i = 0; i < count && i < DEVICES_AT_MOST; i++) {
		if (devices[i] == device) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

static uint32_t number_of(cl_device_id device)
{
	static uint32_t sub_device_count;
	cl_platform_id platform = NULL;
	uint32_t index;

	ocl.next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL);
	if (!find_index(platform, device, &index))
		index = DEVICES_AT_MOST +
			__atomic_fetch_add(&sub_device_count, 1, __ATOMIC_RELAXED) %
				DEVICES_AT_MOST;
	return index_of_platform(platform) << 8 | index;
}

/* ---- descriptions of devices ---- */

/* Kept, because in a forked child the driver may not respond any more. */
struct ocl_description {
	char vendor[128], model[256], uuid[64], bus[32];
	cl_ulong memory_bytes;
	cl_uint vendor_id;
	char *extensions; /* only during construction */
};

static bool query(cl_device_id device, cl_device_info what, size_t bytes, void *ret_value)
{
	memset(ret_value, 0, bytes);
	return ocl.next.clGetDeviceInfo(device, what, bytes, ret_value, NULL) == CL_SUCCESS;
}

static void query_text(cl_device_id device, cl_device_info what, size_t bytes, char *ret_text)
{
	if (!query(device, what, bytes, ret_text))
		ret_text[0] = 0;
	ret_text[bytes - 1] = 0;
}

/* In the format of NVIDIA's other interfaces, so that devices can be matched. */
static void describe_uuid(cl_device_id device, struct ocl_description *description)
{
	unsigned char uuid[16];
	size_t used;

	description->uuid[0] = 0;
	if (!strstr(description->extensions, "cl_khr_device_uuid") ||
	    !query(device, DEVICE_UUID_KHR, sizeof(uuid), uuid))
		return;
	used = (size_t)snprintf(description->uuid, sizeof(description->uuid), "%s",
				description->vendor_id == VENDOR_NVIDIA ? "GPU-" : "");
	for (int i = 0; i < 16; i++)
		used += (size_t)snprintf(description->uuid + used, sizeof(description->uuid) - used,
					 "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					 uuid[i]);
}

static void describe_bus(cl_device_id device, struct ocl_description *description)
{
	cl_uint pci[4], bus, slot, domain;

	description->bus[0] = 0;
	if (strstr(description->extensions, "cl_khr_pci_bus_info") &&
	    query(device, DEVICE_PCI_BUS_INFO_KHR, sizeof(pci), pci)) {
		snprintf(description->bus, sizeof(description->bus), "%04x:%02x:%02x.%x", pci[0],
			 pci[1] & 0xff, pci[2] & 0x1f, pci[3] & 7);
	} else if (strstr(description->extensions, "cl_nv_device_attribute_query") &&
		   query(device, DEVICE_PCI_BUS_ID_NV, sizeof(bus), &bus) &&
		   query(device, DEVICE_PCI_SLOT_ID_NV, sizeof(slot), &slot)) {
		query(device, DEVICE_PCI_DOMAIN_ID_NV, sizeof(domain), &domain);
		/* The PCI function is in the lowest three bits. */
		snprintf(description->bus, sizeof(description->bus), "%04x:%02x:%02x.%x", domain,
			 bus & 0xff, slot >> 3 & 0x1f, slot & 7);
	}
}

static void describe(cl_device_id device, struct ocl_description *description)
{
	char extensions[8192];

	query_text(device, CL_DEVICE_VENDOR, sizeof(description->vendor), description->vendor);
	query_text(device, CL_DEVICE_NAME, sizeof(description->model), description->model);
	query_text(device, CL_DEVICE_EXTENSIONS, sizeof(extensions), extensions);
	query(device, CL_DEVICE_VENDOR_ID, sizeof(cl_uint), &description->vendor_id);
	query(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong), &description->memory_bytes);
	description->extensions = extensions;
	describe_uuid(device, description);
	describe_bus(device, description);
	description->extensions = NULL;
	/* The name that other sources of a trace use. */
	if (description->vendor_id == VENDOR_NVIDIA)
		strcpy(description->vendor, "NVIDIA");
}

static void emit_device(const struct ocl_object *device)
{
	const struct ocl_description *description = device->description;
	struct ts_metrics_device row = { .number = device->number,
					 .memory_bytes = TS_METRICS_UNKNOWN };

	if (description) {
		row.vendor = description->vendor;
		row.model = description->model;
		row.uuid = description->uuid;
		row.bus = description->bus;
		if (description->memory_bytes)
			row.memory_bytes = (int64_t)description->memory_bytes;
	}
	ts_tracer_device(ts_tracer_process(), &row);
}

/*
 * Two threads may describe the same device at the same time: then there are two objects with the
 * same number.
 */
struct ocl_object *ocl_device(cl_device_id device)
{
	struct ocl_object *object = ocl_find(OCL_DEVICE, device);
	struct ocl_description *description;
	uint32_t number;

	if (object || !device)
		return object;
	number = number_of(device);
	description = calloc(1, sizeof(*description));
	if (description)
		describe(device, description);
	object = ocl_add(OCL_DEVICE, device);
	if (!object) {
		free(description);
		return NULL;
	}
	object->number = number;
	object->description = description;
	/* Only sub-devices can be released. */
	if ((number & 0xff) < DEVICES_AT_MOST)
		object->references = 1u << 30;
	emit_device(object);
	ocl_emit_platforms();
	return object;
}

/* ---- queues ---- */

void ocl_emit_queue(const struct ocl_object *queue)
{
	struct ts_accelerator_queue row = { .size = sizeof(row),
					    .device = queue->device ? queue->device->number : 0,
					    .stream = queue->number,
					    .context = queue->context ? queue->context->number : 0,
					    .priority = TS_UNKNOWN,
					    .out_of_order = queue->out_of_order };

	/* Bits of high, medium, low. */
	for (uint32_t i = 0; i + 1 < queue->property_count; i += 2)
		if (queue->property_list[i] == QUEUE_PRIORITY_KHR)
			row.priority = queue->property_list[i + 1] & 1   ? 1
				       : queue->property_list[i + 1] & 4 ? -1
									 : 0;
	ts_accelerator_stream(&row);
}

/* ---- platforms ---- */

struct json {
	size_t used;
	char text[2900];
};

static void put(struct json *json, const char *text)
{
	while (*text && json->used < sizeof(json->text) - 1)
		json->text[json->used++] = *text++;
	json->text[json->used] = 0;
}

static void put_string(struct json *json, const char *text)
{
	char escaped[8];

	put(json, "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			snprintf(escaped, sizeof(escaped), "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned int)*text);
		else
			snprintf(escaped, sizeof(escaped), "%c", *text);
		put(json, escaped);
	}
	put(json, "\"");
}

static void put_platform(struct json *json, cl_platform_id platform)
{
	static const struct {
		cl_platform_info what;
		const char *key;
	} fields[] = { { CL_PLATFORM_NAME, "{\"name\": " },
		       { CL_PLATFORM_VENDOR, ", \"vendor\": " },
		       { CL_PLATFORM_VERSION, ", \"version\": " } };
	char text[256];

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		text[0] = 0;
		ocl.next.clGetPlatformInfo(platform, fields[i].what, sizeof(text), text, NULL);
		text[sizeof(text) - 1] = 0;
		put(json, fields[i].key);
		put_string(json, text);
	}
	put(json, "}");
}

static struct json platforms_emitted;
static uint32_t platforms_state; /* atomic: 1 being queried, 2 done */

/* Eight of them fit. */
void ocl_emit_platforms(void)
{
	cl_platform_id platforms[8];
	struct json json = { 0, "" };
	cl_uint count = 0;

	if (__atomic_load_n(&platforms_state, __ATOMIC_ACQUIRE) ||
	    __atomic_exchange_n(&platforms_state, 1, __ATOMIC_ACQ_REL))
		return;
	if (ocl.next.clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS)
		count = 0;
	put(&json, ocl.by_preload ? "{\"by\": \"preload\"" : "{\"by\": \"layer\"");
	put(&json, ocl.replayable ? ", \"replayable\": true" : "");
	put(&json, ", \"platforms\": [");
	for (cl_uint i = 0; i < count && i < 8; i++) {
		put(&json, i ? ", " : "");
		put_platform(&json, platforms[i]);
	}
	put(&json, "], \"threads\": [\"tracesmith-cl\"], \"changes\": [\"queues are profiled\"");
	if (ocl.replayable)
		put(&json, ", \"calls may wait for the recorder\"");
	put(&json, "]}");
	platforms_emitted = json;
	__atomic_store_n(&platforms_state, 2, __ATOMIC_RELEASE);
	ts_accelerator_fact("opencl", json.text);
}

/* ---- after fork ---- */

static void emit_device_again(struct ocl_object *device, void *unused)
{
	(void)unused;
	ocl_clock_forked(device);
	emit_device(device);
}

static void emit_queue_again(struct ocl_object *queue, void *unused)
{
	(void)unused;
	ocl_emit_queue(queue);
}

void ocl_emit_again(void)
{
	if (__atomic_load_n(&platforms_state, __ATOMIC_ACQUIRE) == 2)
		ts_accelerator_fact("opencl", platforms_emitted.text);
	ocl_each(OCL_DEVICE, emit_device_again, NULL);
	ocl_each(OCL_QUEUE, emit_queue_again, NULL);
}
