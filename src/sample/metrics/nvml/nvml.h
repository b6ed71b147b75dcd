/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA GPU metrics: shared by the files nvml*.c. Others see ts_metrics_nvml of metric_sources.h.
 *
 * A *value* is one library call; a value that a device lacks is not queried again. A *reading* is a
 * group of values queried together and equally often.
 */
#ifndef TS_SAMPLE_METRICS_NVML_NVML_H
#define TS_SAMPLE_METRICS_NVML_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/metrics.h>

#include "base/procfs.h"
#include "sample/metrics/nvml/nvml_api.h"
#include "sample/metrics/nvml/nvml_open.h"
#include "sample/metrics/query_pacing.h"

enum nvml_value {
	NVML_VALUE_UTILIZATION,
	NVML_VALUE_MEMORY,
	NVML_VALUE_MEMORY_V1,
	NVML_VALUE_POWER,
	NVML_VALUE_POWER_INSTANT,
	NVML_VALUE_CLOCK_COMPUTE,
	NVML_VALUE_CLOCK_MEMORY,
	NVML_VALUE_TEMPERATURE,
	NVML_VALUE_TEMPERATURE_V,
	NVML_VALUE_MEMORY_TEMPERATURE,
	NVML_VALUE_THROTTLE,
	NVML_VALUE_GPM,
	NVML_VALUE_PCIE_COUNTERS,
	NVML_VALUE_PCIE_THROUGHPUT,
	NVML_VALUE_ALL_LINKS,
	NVML_VALUE_EACH_LINK,
	NVML_VALUE_COMPUTE_PROCESSES,
	NVML_VALUE_GRAPHICS_PROCESSES,
	NVML_VALUE_MPS_PROCESSES,
	NVML_VALUE_PROCESS_USE,
	NVML_VALUES,
};

enum nvml_reading {
	NVML_READ_UTILIZATION,
	NVML_READ_MEMORY,
	NVML_READ_POWER,
	NVML_READ_CLOCKS,
	NVML_READ_GPM,
	NVML_READ_TRAFFIC, /* after GPM, which may have it */
	NVML_READ_TEMPERATURE,
	NVML_READ_THROTTLE,
	NVML_READ_PROCESSES,
	NVML_READINGS,
};

#define NVML_LINKS_MOST 64u
#define NVML_SLEEP_EVERY_NS INT64_C(2000000000)

struct nvml_gpu {
	struct nvml_device *handle;
	uint32_t index;
	int open_code; /* why there is no handle */
	char name[96], uuid[96], bus[24];
	int64_t memory_bytes; /* or TS_METRICS_UNKNOWN */
	bool has_mig;
	bool is_announced;
	bool is_lost; /* no longer queried */
	int64_t off_until_ns[NVML_VALUES];
	int64_t last_ns[NVML_READINGS]; /* for ts_query_pacing_is_due() */
	uint64_t throttle_known;
	/* traffic */
	double pcie_limit; /* link bandwidth in bytes per second; 0: unknown */
	struct ts_rate pcie_sent, pcie_received;
	bool has_wide_counters; /* of 64 bits */
	unsigned int links;
	uint64_t links_counted; /* one bit each, if they are read one by one */
	struct ts_rate links_sent, links_received;
	int64_t next_sleep_ns;
	struct nvml_gpm_sample *gpm[2]; /* the older one is next */
	bool has_gpm_sample;
	bool has_gpm_metrics;      /* its capabilities are known */
	unsigned int gpm_failures; /* consecutive failures */
	bool has_gpm_pcie, has_gpm_links;
	/* processes */
	uint64_t last_use_us;
};

/* A confirmed GPU user, where pids may belong to another namespace. */
struct nvml_user {
	pid_t pid;
	uint64_t start_time;
};

/* One entry of a process list. */
struct nvml_entry {
	uint32_t pid, gpu_instance, compute_instance;
	uint64_t memory_bytes;
};

struct nvml {
	struct nvml_api api;
	struct nvml_options options;
	char root[256];
	bool is_ready; /* needs shutdown */
	struct nvml_gpu *gpus;
	unsigned int count;
	struct ts_query_pacing pace;
	bool is_dead; /* the library is unusable */
	/* time of the current sample */
	const struct ts_metrics_sink *sink;
	int64_t now_ns;
	bool has_slept; /* inside a slow call */
	/* work buffers */
	struct nvml_gpm_get gpm;
	unsigned char *list; /* as filled by the driver */
	size_t list_capacity;
	struct nvml_entry *entries;
	size_t entry_count, entry_capacity;
	struct nvml_process_use *uses;
	size_t use_count, use_capacity;
	struct nvml_user *users;
	size_t user_count, user_capacity;
};

/* ---- nvml_device.c: one device, and what may be asked of it ---- */

/* Its handle and constant properties. False: see open_code. */
bool nvml_gpu_open(struct nvml *nvml, struct nvml_gpu *gpu, uint32_t index);
void nvml_gpu_announce(struct nvml *nvml, struct nvml_gpu *gpu);
bool nvml_wants(const struct nvml *nvml, const struct nvml_gpu *gpu, enum nvml_value value);
/* Has the library said that this device does not have the value? */
bool nvml_lacks(const struct nvml_gpu *gpu, enum nvml_value value);
/*
 * True for NVML_OK. Otherwise records what the code means for the value, the device and the
 * library.
 */
bool nvml_got(struct nvml *nvml, struct nvml_gpu *gpu, enum nvml_value value, int code);
void nvml_message(const struct nvml *nvml, const char *format, ...) TS_PRINTF_LIKE(2, 3);
void nvml_real(const struct nvml *nvml, const struct nvml_gpu *gpu, const char *name,
	       const char *series, double value);
void nvml_integer(const struct nvml *nvml, const struct nvml_gpu *gpu, const char *name,
		  const char *series, int64_t value);
/* Queries fields; those that failed have a code. Returns the code of the call. */
int nvml_fields(struct nvml *nvml, struct nvml_gpu *gpu, struct nvml_field *fields,
		unsigned int count);
/* False if it failed, is negative, or has an unknown type. */
bool nvml_field_number(const struct nvml_field *field, uint64_t *ret_number);

/* ---- readings ---- */

/* nvml_values.c */
void nvml_read_utilization(struct nvml *nvml, struct nvml_gpu *gpu);
void nvml_read_memory(struct nvml *nvml, struct nvml_gpu *gpu);
void nvml_read_power(struct nvml *nvml, struct nvml_gpu *gpu);
void nvml_read_clocks(struct nvml *nvml, struct nvml_gpu *gpu);
void nvml_read_temperature(struct nvml *nvml, struct nvml_gpu *gpu);
void nvml_read_throttle(struct nvml *nvml, struct nvml_gpu *gpu);
/* nvml_traffic.c */
void nvml_read_gpm(struct nvml *nvml, struct nvml_gpu *gpu);
void nvml_read_traffic(struct nvml *nvml, struct nvml_gpu *gpu);
void nvml_gpm_release(struct nvml *nvml, struct nvml_gpu *gpu);
void nvml_gpm_leave(const struct nvml *nvml);
/* nvml_processes.c */
void nvml_read_processes(struct nvml *nvml, struct nvml_gpu *gpu);

/*
 * Size of an entry that a driver wrote into `list`, which was filled with NVML_FILL before; 0:
 * unknown.
 */
#define NVML_FILL 0xaa
unsigned int nvml_entry_bytes(const unsigned char *list, size_t list_bytes, unsigned int count);
/* Whether a process has a file of NVIDIA's driver open. */
bool nvml_is_user(const char *root, pid_t pid);

#endif
