/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A management library of NVIDIA's for tests: what TRACESMITH_NVML is set to. FAKE_NVML says what
 * it answers, as words with blanks between; where it begins with '/' it is a file of such words.
 * Both are looked at in every call.
 *
 *	devices=8                       how many there are (1)
 *	nvmlDeviceGetPowerUsage=3       a call fails with that code
 *	nvmlDeviceGetPowerUsage@2=15    on one device only, as with all that follow
 *	sleep_ms.nvmlInit_v2=100        a call takes so long
 *	power_mw=71000 utilization=50 memory_utilization=20 used=1000000 total=... clock_sm=
 *	clock_memory=
 *	temperature= memory_temperature= power_instant_mw= throttle= throttle_known= mig=1 reserved=
 *	links=18 link_sent_kib= link_received_kib= (of all; where all_links=0 is set, of each)
 *	pcie_sent= pcie_received= (bytes) pcie_kbps= pcie_generation= pcie_width=
 *	field_type=3                    enum nvmlValueType of all fields
 *	gpm=1 gpm.2=37.5                GPM is supported; the value of metric 2
 *	processes=12:1000000,13:na,14:5/1/0   pid:bytes or pid:bytes/gpu instance/compute instance
 *	graphics=... mps=...            as processes
 *	entry_bytes=24                  how long an entry of these lists is
 *	dirty=1                         more of the list is written than is told of
 *	uses=12:1000:40:10              pid:timestamp_us:compute:memory
 *
 * Layouts are written down here once more, so that a mistake in ours does not cancel out.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct fake_device *device_handle;
static char devices[64]; /* a handle is the address of one of these */

/* ---- the words ---- */

static const char *settings(void)
{
	static __thread char text[8192];
	const char *setting = getenv("FAKE_NVML");
	FILE *file;
	size_t length;

	if (!setting || setting[0] != '/')
		return setting ? setting : "";
	file = fopen(setting, "re");
	if (!file)
		return "";
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	return text;
}

/* The text after "KEY=", or NULL. */
static const char *find(const char *key)
{
	size_t length = strlen(key);

	for (const char *at = settings(); *at;) {
		at += strspn(at, " \n\t");
		if (strncmp(at, key, length) == 0 && at[length] == '=')
			return at + length + 1;
		at += strcspn(at, " \n\t");
	}
	return NULL;
}

static unsigned int index_of(device_handle device)
{
	return (unsigned int)((char *)device - devices);
}

/* A device's value takes precedence over the common one. */
static const char *find_of(device_handle device, const char *key)
{
	char name_buffer[96];
	const char *text;

	snprintf(name_buffer, sizeof(name_buffer), "%s@%u", key, index_of(device));
	text = find(name_buffer);
	return text ? text : find(key);
}

static double real(device_handle device, const char *key, double otherwise)
{
	const char *text = find_of(device, key);

	return text ? strtod(text, NULL) : otherwise;
}

static uint64_t number(device_handle device, const char *key, uint64_t otherwise)
{
	const char *text = find_of(device, key);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void sleep_as_configured(const char *call)
{
	char key[96];
	uint64_t ms;
	struct timespec time;

	snprintf(key, sizeof(key), "sleep_ms.%s", call);
	ms = number((device_handle)devices, key, 0);
	time.tv_sec = (time_t)(ms / 1000);
	time.tv_nsec = (long)(ms % 1000) * 1000000;
	if (ms)
		nanosleep(&time, NULL);
}

/* Called first in each call. */
#define ANSWER(device)                                        \
	do {                                                  \
		int code_ = (int)number(device, __func__, 0); \
                                                              \
		sleep_as_configured(__func__);                \
		if (code_)                                    \
			return code_;                         \
	} while (0)
/* For calls without a device. */
#define ALL ((device_handle)(devices + sizeof(devices) - 1))

/* ---- the library ---- */

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT const char *nvmlErrorString(int code);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, device_handle *device);
EXPORT int fake_nvml_open(void); /* for tests: inits minus shutdowns */

static int opened;

int fake_nvml_open(void)
{
	return opened;
}

int nvmlInit_v2(void)
{
	ANSWER(ALL);
	opened++;
	return 0;
}

int nvmlShutdown(void)
{
	opened--;
	return 0;
}

const char *nvmlErrorString(int code)
{
	static __thread char text[32];

	switch (code) {
	case 3:
		return "Not Supported";
	case 15:
		return "GPU is lost";
	case 18:
		return "Driver/library version mismatch";
	default:
		snprintf(text, sizeof(text), "error %d", code);
		return text;
	}
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
	ANSWER(ALL);
	*count = (unsigned int)number(ALL, "devices", 1);
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, device_handle *device)
{
	ANSWER((device_handle)(devices + index));
	if (index >= sizeof(devices))
		return 2;
	*device = (device_handle)(devices + index);
	return 0;
}

/* ---- texts ---- */

struct pci {
	char legacy[16];
	uint32_t domain, bus, device, id, subsystem;
	char bus_id[32];
};

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned int bytes);
EXPORT int nvmlDeviceGetName(device_handle device, char *text, unsigned int bytes);
EXPORT int nvmlDeviceGetUUID(device_handle device, char *text, unsigned int bytes);
EXPORT int nvmlDeviceGetPciInfo_v3(device_handle device, struct pci *pci);
EXPORT int nvmlDeviceGetMigMode(device_handle device, unsigned int *mode, unsigned int *pending);

int nvmlSystemGetDriverVersion(char *text, unsigned int bytes)
{
	ANSWER(ALL);
	snprintf(text, bytes, "580.00.01");
	return 0;
}

int nvmlDeviceGetName(device_handle device, char *text, unsigned int bytes)
{
	ANSWER(device);
	snprintf(text, bytes, "NVIDIA Fake");
	return 0;
}

int nvmlDeviceGetUUID(device_handle device, char *text, unsigned int bytes)
{
	ANSWER(device);
	snprintf(text, bytes, "GPU-00000000-0000-0000-0000-%012u", index_of(device));
	return 0;
}

int nvmlDeviceGetPciInfo_v3(device_handle device, struct pci *pci)
{
	ANSWER(device);
	memset(pci, 0, sizeof(*pci));
	pci->bus = 0xa0 + index_of(device);
	pci->domain = 1;
	snprintf(pci->bus_id, sizeof(pci->bus_id), "00000001:%02X:00.0", pci->bus);
	return 0;
}

int nvmlDeviceGetMigMode(device_handle device, unsigned int *mode, unsigned int *pending)
{
	ANSWER(device);
	*mode = *pending = (unsigned int)number(device, "mig", 0);
	return 0;
}

/* ---- values ---- */

struct utilization {
	uint32_t gpu, memory;
};
struct memory_v1 {
	uint64_t total, free, used;
};
struct memory_v2 {
	uint32_t version, padding;
	uint64_t total, reserved, free, used;
};
struct temperature {
	uint32_t version, sensor;
	int32_t celsius;
};

EXPORT int nvmlDeviceGetUtilizationRates(device_handle device, struct utilization *utilization);
EXPORT int nvmlDeviceGetMemoryInfo(device_handle device, struct memory_v1 *memory);
EXPORT int nvmlDeviceGetMemoryInfo_v2(device_handle device, struct memory_v2 *memory);
EXPORT int nvmlDeviceGetPowerUsage(device_handle device, unsigned int *power_mw);
EXPORT int nvmlDeviceGetClockInfo(device_handle device, int type, unsigned int *mhz);
EXPORT int nvmlDeviceGetTemperature(device_handle device, int sensor, unsigned int *celsius);
EXPORT int nvmlDeviceGetTemperatureV(device_handle device, struct temperature *temperature);
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(device_handle device, uint64_t *bits);
EXPORT int nvmlDeviceGetSupportedClocksEventReasons(device_handle device, uint64_t *bits);

int nvmlDeviceGetUtilizationRates(device_handle device, struct utilization *utilization)
{
	ANSWER(device);
	utilization->gpu = (uint32_t)number(device, "utilization", 50);
	utilization->memory = (uint32_t)number(device, "memory_utilization", 20);
	return 0;
}

int nvmlDeviceGetMemoryInfo(device_handle device, struct memory_v1 *memory)
{
	ANSWER(device);
	memory->total = number(device, "total", 80000000000);
	memory->used = number(device, "used", 1000000) + number(device, "reserved", 500);
	memory->free = memory->total - memory->used;
	return 0;
}

int nvmlDeviceGetMemoryInfo_v2(device_handle device, struct memory_v2 *memory)
{
	ANSWER(device);
	if (memory->version != 0x02000028)
		return 25;
	memory->total = number(device, "total", 80000000000);
	memory->used = number(device, "used", 1000000);
	memory->reserved = number(device, "reserved", 500);
	memory->free = memory->total - memory->used - memory->reserved;
	return 0;
}

int nvmlDeviceGetPowerUsage(device_handle device, unsigned int *power_mw)
{
	ANSWER(device);
	*power_mw = (unsigned int)number(device, "power_mw", 71500);
	return 0;
}

int nvmlDeviceGetClockInfo(device_handle device, int type, unsigned int *mhz)
{
	ANSWER(device);
	if (type != 1 && type != 2)
		return 2;
	*mhz = (unsigned int)number(device, type == 1 ? "clock_sm" : "clock_memory",
				    type == 1 ? 1980 : 3201);
	return 0;
}

int nvmlDeviceGetTemperature(device_handle device, int sensor, unsigned int *celsius)
{
	ANSWER(device);
	if (sensor)
		return 2;
	*celsius = (unsigned int)number(device, "temperature", 41);
	return 0;
}

int nvmlDeviceGetTemperatureV(device_handle device, struct temperature *temperature)
{
	ANSWER(device);
	if (temperature->version != 0x0100000c || temperature->sensor)
		return 25;
	temperature->celsius = (int32_t)number(device, "temperature", 41);
	return 0;
}

int nvmlDeviceGetCurrentClocksEventReasons(device_handle device, uint64_t *bits)
{
	ANSWER(device);
	*bits = number(device, "throttle", 0);
	return 0;
}

int nvmlDeviceGetSupportedClocksEventReasons(device_handle device, uint64_t *bits)
{
	ANSWER(device);
	*bits = number(device, "throttle_known", 0x1ff);
	return 0;
}

/* ---- fields ---- */

struct field {
	uint32_t id, scope;
	int64_t timestamp, latency;
	uint32_t type;
	int code;
	uint64_t value;
};

EXPORT int nvmlDeviceGetFieldValues(device_handle device, int count, struct field *fields);

/* Like the library for an unknown field. */
static void fill(device_handle device, struct field *field, const char *key, int code_else)
{
	const char *text = key ? find_of(device, key) : NULL;

	field->code = text ? 0 : code_else;
	field->type = (uint32_t)number(device, "field_type", 3);
	field->value = text ? strtoull(text, NULL, 0) : UINT64_MAX;
}

static void fill_link(device_handle device, struct field *field, const char *key)
{
	if (field->scope == UINT32_MAX && number(device, "all_links", 1) == 0)
		fill(device, field, NULL, 3);
	else if (field->scope != UINT32_MAX && field->scope >= number(device, "links_up", 64))
		fill(device, field, NULL, 3);
	else
		fill(device, field, key, 3);
}

int nvmlDeviceGetFieldValues(device_handle device, int count, struct field *fields)
{
	ANSWER(device);
	for (int i = 0; i < count; i++) {
		switch (fields[i].id) {
		case 82:
			fill(device, &fields[i], "memory_temperature", 3);
			break;
		case 91:
			fill(device, &fields[i], "links", 3);
			break;
		case 138:
			fill_link(device, &fields[i], "link_sent_kib");
			break;
		case 139:
			fill_link(device, &fields[i], "link_received_kib");
			break;
		case 186:
			fill(device, &fields[i], "power_instant_mw", 3);
			break;
		case 197:
			fill(device, &fields[i], "pcie_sent", 3);
			break;
		case 198:
			fill(device, &fields[i], "pcie_received", 3);
			break;
		default:
			fill(device, &fields[i], NULL, 2);
		}
	}
	return 0;
}

/* ---- traffic ---- */

EXPORT int nvmlDeviceGetPcieThroughput(device_handle device, int counter, unsigned int *kbps);
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(device_handle device, unsigned int *generation);
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(device_handle device, unsigned int *width);

int nvmlDeviceGetPcieThroughput(device_handle device, int counter, unsigned int *kbps)
{
	ANSWER(device);
	*kbps = (unsigned int)number(device, "pcie_kbps", 1000) + (unsigned int)counter;
	return 0;
}

int nvmlDeviceGetMaxPcieLinkGeneration(device_handle device, unsigned int *generation)
{
	ANSWER(device);
	*generation = (unsigned int)number(device, "pcie_generation", 4);
	return 0;
}

int nvmlDeviceGetMaxPcieLinkWidth(device_handle device, unsigned int *width)
{
	ANSWER(device);
	*width = (unsigned int)number(device, "pcie_width", 16);
	return 0;
}

struct gpm_sample {
	device_handle device;
	unsigned int order; /* 0: empty */
};
struct gpm_value {
	uint32_t id;
	int code;
	double value;
	char *texts[3];
};
struct gpm_get {
	uint32_t version, count;
	struct gpm_sample *sample1, *sample2;
	struct gpm_value values[];
};
struct gpm_support {
	uint32_t version, is_supported;
};

EXPORT int nvmlGpmQueryDeviceSupport(device_handle device, struct gpm_support *support);
EXPORT int nvmlGpmSampleAlloc(struct gpm_sample **sample);
EXPORT int nvmlGpmSampleFree(struct gpm_sample *sample);
EXPORT int nvmlGpmSampleGet(device_handle device, struct gpm_sample *sample);
EXPORT int nvmlGpmMetricsGet(struct gpm_get *get);

int nvmlGpmQueryDeviceSupport(device_handle device, struct gpm_support *support)
{
	ANSWER(device);
	if (support->version != 1)
		return 25;
	support->is_supported = (uint32_t)number(device, "gpm", 0);
	return 0;
}

int nvmlGpmSampleAlloc(struct gpm_sample **sample)
{
	ANSWER(ALL);
	*sample = calloc(1, sizeof(**sample));
	return *sample ? 0 : 20;
}

int nvmlGpmSampleFree(struct gpm_sample *sample)
{
	free(sample);
	return 0;
}

int nvmlGpmSampleGet(device_handle device, struct gpm_sample *sample)
{
	static unsigned int order;

	ANSWER(device);
	sample->device = device;
	sample->order = ++order;
	return 0;
}

/* Rejects samples that are out of order or of two devices. */
int nvmlGpmMetricsGet(struct gpm_get *get)
{
	device_handle device = get->sample2 ? get->sample2->device : ALL;

	ANSWER(device);
	if (get->version != 1)
		return 25;
	if (!get->sample1 || !get->sample2 || !get->sample1->order ||
	    get->sample1->order >= get->sample2->order || get->sample1->device != device)
		return 2;
	for (uint32_t i = 0; i < get->count; i++) {
		char key[32];

		snprintf(key, sizeof(key), "gpm.%u", get->values[i].id);
		get->values[i].code = find_of(device, key) ? 0 : 3;
		get->values[i].value = real(device, key, -7);
	}
	return 0;
}

/* ---- processes ---- */

struct use {
	uint32_t pid, padding;
	uint64_t timestamp;
	uint32_t sm, memory, encoder, decoder;
};

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(device_handle device, unsigned int *count,
						   void *list);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(device_handle device, unsigned int *count,
						   void *list);
EXPORT int nvmlDeviceGetComputeRunningProcesses(device_handle device, unsigned int *count,
						void *list);
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(device_handle device, unsigned int *count,
						    void *list);
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(device_handle device, unsigned int *count,
						      void *list);
EXPORT int nvmlDeviceGetProcessUtilization(device_handle device, struct use *uses,
					   unsigned int *count, uint64_t last_seen);

static void write_entry(unsigned char *at, size_t bytes, const char *text)
{
	struct {
		uint32_t pid, padding;
		uint64_t memory;
		uint32_t gpu_instance, compute_instance;
		uint64_t confidential;
	} entry = { 0 };
	char *end;

	entry.pid = (uint32_t)strtoul(text, &end, 10);
	entry.gpu_instance = entry.compute_instance = UINT32_MAX;
	entry.memory = strncmp(end, ":na", 3) == 0 ? UINT64_MAX : strtoull(end + 1, &end, 0);
	if (*end == '/') {
		entry.gpu_instance = (uint32_t)strtoul(end + 1, &end, 10);
		entry.compute_instance = (uint32_t)strtoul(end + 1, &end, 10);
	}
	memcpy(at, &entry, bytes);
}

static int list_processes(device_handle device, const char *key, unsigned int *count, void *list,
			  size_t entry_bytes)
{
	const char *text = find_of(device, key);
	unsigned int found = 0, capacity = *count;
	size_t length = text ? strcspn(text, " \n\t") : 0;

	for (const char *at = text; at && at < text + length; at++) {
		if (found < capacity)
			write_entry((unsigned char *)list + found * entry_bytes, entry_bytes, at);
		found++;
		at += strcspn(at, ", \n\t");
	}
	*count = found;
	if (found > capacity)
		return 7;
	if (number(device, "dirty", 0))
		memset((unsigned char *)list + found * entry_bytes, 0,
		       (capacity - found) * entry_bytes);
	return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(device_handle device, unsigned int *count, void *list)
{
	ANSWER(device);
	return list_processes(device, "processes", count, list, number(device, "entry_bytes", 24));
}

int nvmlDeviceGetComputeRunningProcesses_v2(device_handle device, unsigned int *count, void *list)
{
	ANSWER(device);
	return list_processes(device, "processes", count, list, 24);
}

int nvmlDeviceGetComputeRunningProcesses(device_handle device, unsigned int *count, void *list)
{
	ANSWER(device);
	return list_processes(device, "processes", count, list, 16);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(device_handle device, unsigned int *count, void *list)
{
	ANSWER(device);
	return list_processes(device, "graphics", count, list, number(device, "entry_bytes", 24));
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(device_handle device, unsigned int *count,
					       void *list)
{
	ANSWER(device);
	return list_processes(device, "mps", count, list, number(device, "entry_bytes", 24));
}

int nvmlDeviceGetProcessUtilization(device_handle device, struct use *uses, unsigned int *count,
				    uint64_t last_seen)
{
	const char *text = find_of(device, "uses");
	size_t length = text ? strcspn(text, " \n\t") : 0;
	unsigned int found = 0, capacity = *count;

	ANSWER(device);
	for (const char *at = text; at && at < text + length; at++) {
		struct use use = { 0 };
		char *end;

		use.pid = (uint32_t)strtoul(at, &end, 10);
		use.timestamp = strtoull(end + 1, &end, 10);
		use.sm = (uint32_t)strtoul(end + 1, &end, 10);
		use.memory = (uint32_t)strtoul(end + 1, &end, 10);
		at = end;
		if (found < capacity)
			uses[found] = use;
		found++;
	}
	*count = found;
	(void)last_seen; /* real drivers return older samples, too */
	if (found == 0)
		return 6;
	return found > capacity ? 7 : 0;
}
