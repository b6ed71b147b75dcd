/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML (libnvidia-ml.so.1), as far as it is used here: needs no NVIDIA header to build. Layouts are
 * those of 64-bit Linux, checked at the end. Names are ours; the library's name is beside each.
 */
#ifndef TS_SAMPLE_METRICS_NVML_NVML_API_H
#define TS_SAMPLE_METRICS_NVML_NVML_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What every function returns. */
enum nvml_code {
	NVML_OK = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_OPERATING_SYSTEM = 17,
	NVML_VERSION_MISMATCH = 18, /* of driver and library */
	NVML_NO_DATA = 21,
	NVML_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_DEPRECATED = 26,
	NVML_NOT_READY = 27,
	NVML_GPU_NOT_FOUND = 28,
	NVML_UNKNOWN_ERROR = 999,
};

#define NVML_NOT_AVAILABLE UINT64_MAX /* a value that NVML does not know */

/* Version word of structs that have one. */
#define NVML_VERSION(type, version) ((uint32_t)(sizeof(type) | (version) << 24))

struct nvml_device; /* opaque, as is the next */
struct nvml_gpm_sample;

struct nvml_utilization { /* nvmlUtilization_t, percent */
	uint32_t compute, memory;
};

struct nvml_memory_v1 { /* nvmlMemory_t: used holds what is reserved, too */
	uint64_t total, free, used;
};

struct nvml_memory { /* nvmlMemory_v2_t */
	uint32_t version, padding;
	uint64_t total, reserved, free, used;
};

struct nvml_pci { /* nvmlPciInfo_t */
	char legacy_bus_id[16];
	uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

union nvml_number { /* nvmlValue_t */
	double real;
	int32_t int32;
	uint32_t uint32;
	uint64_t uint64;
	int64_t int64;
	uint16_t uint16;
};

enum nvml_number_type { /* nvmlValueType_t */
			NVML_DOUBLE = 0,
			NVML_UINT32 = 1,
			NVML_ULONG = 2,
			NVML_UINT64 = 3,
			NVML_INT64 = 4,
			NVML_INT32 = 5,
			NVML_UINT16 = 6,
};

struct nvml_field { /* nvmlFieldValue_t */
	uint32_t field, scope;
	int64_t timestamp_us, latency_us;
	uint32_t type; /* enum nvml_number_type */
	int code;
	union nvml_number value;
};

/* Of fields, only those whose number never changed its meaning. */
enum nvml_field_id {
	NVML_FIELD_MEMORY_TEMPERATURE = 82,
	NVML_FIELD_LINK_COUNT = 91,
	NVML_FIELD_LINK_SENT_KIB = 138, /* scope: the link, or NVML_ALL_LINKS */
	NVML_FIELD_LINK_RECEIVED_KIB = 139,
	NVML_FIELD_POWER_INSTANT = 186, /* mW */
	NVML_FIELD_PCIE_SENT_BYTES = 197,
	NVML_FIELD_PCIE_RECEIVED_BYTES = 198,
};
#define NVML_ALL_LINKS UINT32_MAX

enum nvml_clock { NVML_CLOCK_COMPUTE = 1, NVML_CLOCK_MEMORY = 2 };
enum nvml_pcie_direction { NVML_PCIE_SENT = 0, NVML_PCIE_RECEIVED = 1 };

struct nvml_temperature { /* nvmlTemperature_v1_t */
	uint32_t version, sensor;
	int32_t celsius;
};

enum nvml_throttle { /* bits of nvmlClocksEventReason* */
		     NVML_THROTTLE_POWER_CAP = 0x4,
		     NVML_THROTTLE_SLOWDOWN = 0x8,
		     NVML_THROTTLE_SYNC_BOOST = 0x10,
		     NVML_THROTTLE_SOFTWARE_THERMAL = 0x20,
		     NVML_THROTTLE_HARDWARE_THERMAL = 0x40,
		     NVML_THROTTLE_POWER_BRAKE = 0x80,
};

/* nvmlProcessInfo_t; drivers write this, or less, or more: see nvml_processes.c. */
struct nvml_process {
	uint32_t pid, padding;
	uint64_t memory_bytes;
	uint32_t gpu_instance, compute_instance;
};
#define NVML_PROCESS_BYTES_MOST 32u

enum nvml_process_kind { NVML_COMPUTE, NVML_GRAPHICS, NVML_MPS, NVML_PROCESS_KINDS };

struct nvml_process_use { /* nvmlProcessUtilizationSample_t */
	uint32_t pid, padding;
	uint64_t timestamp_us;
	uint32_t compute, memory, encoder, decoder;
};

/* ---- GPU performance monitoring, of Hopper and later ---- */

enum nvml_gpm_metric {
	NVML_GPM_GRAPHICS = 1, /* percent, as the next five */
	NVML_GPM_SM = 2,
	NVML_GPM_OCCUPANCY = 3,
	NVML_GPM_TENSOR = 5,
	NVML_GPM_DRAM = 10,
	NVML_GPM_PCIE_SENT = 20, /* MiB a second, as the rest */
	NVML_GPM_PCIE_RECEIVED = 21,
	NVML_GPM_LINK_RECEIVED = 60,
	NVML_GPM_LINK_SENT = 61,
};

struct nvml_gpm_value {
	uint32_t metric;
	int code;
	double value;
	const char *short_name, *long_name, *unit;
};

/* The library's array is as long as that of its newest version; it reads `count` entries. */
struct nvml_gpm_get {
	uint32_t version, count; /* version: 1 */
	struct nvml_gpm_sample *from, *to;
	struct nvml_gpm_value values[333];
};

struct nvml_gpm_support {
	uint32_t version, is_supported; /* version: 1 */
};

/* ---- the functions ---- */

/*
 * X(member, arguments, symbols, best first). All return enum nvml_code; NULL if a driver lacks it.
 * Symbols of one entry do not differ in anything we use.
 */
#define NVML_FUNCTIONS(X)                                                                         \
	X(init, (void), "nvmlInit_v2", "nvmlInit")                                                \
	X(shut_down, (void), "nvmlShutdown", NULL)                                                \
	X(driver_version, (char *, unsigned int), "nvmlSystemGetDriverVersion", NULL)             \
	X(count, (unsigned int *), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")                 \
	X(by_index, (unsigned int, struct nvml_device **), "nvmlDeviceGetHandleByIndex_v2",       \
	  "nvmlDeviceGetHandleByIndex")                                                           \
	X(name, (struct nvml_device *, char *, unsigned int), "nvmlDeviceGetName", NULL)          \
	X(uuid, (struct nvml_device *, char *, unsigned int), "nvmlDeviceGetUUID", NULL)          \
	X(pci, (struct nvml_device *, struct nvml_pci *), "nvmlDeviceGetPciInfo_v3",              \
	  "nvmlDeviceGetPciInfo_v2")                                                              \
	X(mig_mode, (struct nvml_device *, unsigned int *, unsigned int *),                       \
	  "nvmlDeviceGetMigMode", NULL)                                                           \
	X(utilization, (struct nvml_device *, struct nvml_utilization *),                         \
	  "nvmlDeviceGetUtilizationRates", NULL)                                                  \
	X(memory, (struct nvml_device *, struct nvml_memory *), "nvmlDeviceGetMemoryInfo_v2",     \
	  NULL)                                                                                   \
	X(memory_v1, (struct nvml_device *, struct nvml_memory_v1 *), "nvmlDeviceGetMemoryInfo",  \
	  NULL)                                                                                   \
	X(power_mw, (struct nvml_device *, unsigned int *), "nvmlDeviceGetPowerUsage", NULL)      \
	X(clock_mhz, (struct nvml_device *, int, unsigned int *), "nvmlDeviceGetClockInfo", NULL) \
	X(temperature, (struct nvml_device *, int, unsigned int *), "nvmlDeviceGetTemperature",   \
	  NULL)                                                                                   \
	X(temperature_v, (struct nvml_device *, struct nvml_temperature *),                       \
	  "nvmlDeviceGetTemperatureV", NULL)                                                      \
	X(throttle, (struct nvml_device *, uint64_t *), "nvmlDeviceGetCurrentClocksEventReasons", \
	  "nvmlDeviceGetCurrentClocksThrottleReasons")                                            \
	X(throttle_known, (struct nvml_device *, uint64_t *),                                     \
	  "nvmlDeviceGetSupportedClocksEventReasons",                                             \
	  "nvmlDeviceGetSupportedClocksThrottleReasons")                                          \
	X(fields, (struct nvml_device *, int, struct nvml_field *), "nvmlDeviceGetFieldValues",   \
	  NULL)                                                                                   \
	X(pcie_kbps, (struct nvml_device *, int, unsigned int *), "nvmlDeviceGetPcieThroughput",  \
	  NULL)                                                                                   \
	X(pcie_generation, (struct nvml_device *, unsigned int *),                                \
	  "nvmlDeviceGetMaxPcieLinkGeneration", NULL)                                             \
	X(pcie_width, (struct nvml_device *, unsigned int *), "nvmlDeviceGetMaxPcieLinkWidth",    \
	  NULL)                                                                                   \
	X(process_use,                                                                            \
	  (struct nvml_device *, struct nvml_process_use *, unsigned int *, uint64_t),            \
	  "nvmlDeviceGetProcessUtilization", NULL)                                                \
	X(gpm_support, (struct nvml_device *, struct nvml_gpm_support *),                         \
	  "nvmlGpmQueryDeviceSupport", NULL)                                                      \
	X(gpm_alloc, (struct nvml_gpm_sample **), "nvmlGpmSampleAlloc", NULL)                     \
	X(gpm_free, (struct nvml_gpm_sample *), "nvmlGpmSampleFree", NULL)                        \
	X(gpm_sample, (struct nvml_device *, struct nvml_gpm_sample *), "nvmlGpmSampleGet", NULL) \
	X(gpm_metrics, (struct nvml_gpm_get *), "nvmlGpmMetricsGet", NULL)

typedef int (*nvml_process_list)(struct nvml_device *device, unsigned int *count, void *processes);

struct nvml_api {
	void *library;
	const char *(*error_text)(int code);
#define NVML_MEMBER(member, arguments, ...) int(*member) arguments;
	NVML_FUNCTIONS(NVML_MEMBER)
#undef NVML_MEMBER
	/* By enum nvml_process_kind, with the declared size of an entry. */
	nvml_process_list processes[NVML_PROCESS_KINDS];
	unsigned int process_bytes[NVML_PROCESS_KINDS];
};

/* Calls a function that may be missing. */
#define NVML_CALL(api, member, ...) \
	((api)->member ? (api)->member(__VA_ARGS__) : (int)NVML_FUNCTION_NOT_FOUND)

/* dlsym(), or a test's replacement. */
typedef void *(*nvml_find_symbol)(void *library, const char *name);

/*
 * Loads it; calls nothing. NULL `path`: the system's. False: dlerror() says why, or, if *ret_api is
 * partly loaded, a required function is missing. Call nvml_api_close() in either case.
 */
bool nvml_api_open(struct nvml_api *ret_api, const char *path, nvml_find_symbol find);
void nvml_api_close(struct nvml_api *api);

/* Error text; never NULL. */
const char *nvml_error_text(const struct nvml_api *api, int code);

_Static_assert(sizeof(struct nvml_memory) == 40, "nvmlMemory_v2_t");
_Static_assert(sizeof(struct nvml_pci) == 68, "nvmlPciInfo_t");
_Static_assert(sizeof(struct nvml_field) == 40, "nvmlFieldValue_t");
_Static_assert(offsetof(struct nvml_field, value) == 32, "nvmlFieldValue_t");
_Static_assert(sizeof(struct nvml_temperature) == 12, "nvmlTemperature_v1_t");
_Static_assert(sizeof(struct nvml_process) == 24, "nvmlProcessInfo_v2_t");
_Static_assert(sizeof(struct nvml_process_use) == 32, "nvmlProcessUtilizationSample_t");
_Static_assert(sizeof(struct nvml_gpm_value) == 40, "nvmlGpmMetric_t");
_Static_assert(offsetof(struct nvml_gpm_get, values) == 24, "nvmlGpmMetricsGet_t");

#endif
