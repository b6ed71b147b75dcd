/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AMD GPU metrics: shared by the files amd*.c. Others see ts_metrics_amd of metric_sources.h.
 *
 * Everything comes from files of the kernel's amdgpu driver. ROCm's libraries offer nothing more
 * without risks: locks shared with others, devices that are woken, layouts that change.
 */
#ifndef TS_SAMPLE_METRICS_AMD_AMD_H
#define TS_SAMPLE_METRICS_AMD_AMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/metrics.h>

#include "base/procfs.h"
#include "base/text.h"
#include "sample/metrics/amd/amd_table.h"
#include "sample/metrics/query_pacing.h"

/* Files of a device, relative to its directory. */
enum amd_file_id {
	AMD_FILE_STATUS, /* power state: reading it does not wake the device; all other files do */
	AMD_FILE_TABLE,
	AMD_FILE_COMPUTE_USE,
	AMD_FILE_MEMORY_USE,
	AMD_FILE_VRAM_USED,
	AMD_FILE_GTT_USED,
	AMD_FILE_POWER_MEAN,
	AMD_FILE_POWER_NOW,
	AMD_FILE_EDGE,
	AMD_FILE_HOTSPOT,
	AMD_FILE_MEMORY_TEMPERATURE,
	AMD_FILE_COMPUTE_CLOCK,
	AMD_FILE_MEMORY_CLOCK,
	AMD_FILES,
};

struct amd_file {
	char path[64]; /* "": none */
	struct ts_procfs_file kept;
};

enum amd_reading { AMD_READ_SENSORS, AMD_READ_MEMORY, AMD_READ_PROCESSES, AMD_READINGS };

/* Partitions of a device that the driver exposes as devices share its sensors. */
#define AMD_NODES_MOST 16u

struct amd_gpu {
	uint32_t number;
	char bus[24], model[64], uuid[48];
	int64_t memory_bytes; /* or TS_METRICS_UNKNOWN */
	int directory;
	struct amd_file files[AMD_FILES];
	uint64_t node_ids[AMD_NODES_MOST]; /* KFD's ids of it */
	unsigned int node_id_count;
	bool is_announced, is_lost;
	int64_t last_ns[AMD_READINGS]; /* for ts_query_pacing_is_due() */
	struct ts_rate links_read, links_written;
	struct amd_table last_table; /* for reasons by time */
	bool has_last_table;
};

struct amd {
	char root[256];
	bool is_inner;        /* our pids are not those of the driver */
	struct amd_gpu *gpus; /* by bus address */
	size_t count, capacity;
	struct ts_query_pacing pace;
	const struct ts_metrics_sink *sink; /* time of the current sample */
	struct ts_text text;                /* buffer for file contents */
};

/* ---- amd.c ---- */

/* The source's open(); `root`: sysfs. */
enum ts_metrics_state amd_open(struct amd **ret_amd, const char *root, bool is_inner, char *why,
			       size_t why_bytes);
void amd_message(const struct amd *amd, const char *format, ...) TS_PRINTF_LIKE(2, 3);

/* ---- amd_device.c ---- */

/* Finds the devices: their constant properties and the paths of their files. */
int amd_find_gpus(struct amd *amd);
void amd_gpu_release(struct amd_gpu *gpu);
/* False if unreadable or not a number; a missing file is not tried again. */
bool amd_file_number(struct amd *amd, struct amd_gpu *gpu, enum amd_file_id file,
		     int64_t *ret_number);
/* Reads into amd->text; 0 or a negative errno. */
int amd_file_read(struct amd *amd, struct amd_gpu *gpu, enum amd_file_id file);

/* ---- readings ---- */

/* amd_sensors.c */
void amd_read_sensors(struct amd *amd, struct amd_gpu *gpu);
void amd_read_memory(struct amd *amd, struct amd_gpu *gpu);
/* amd_processes.c */
void amd_find_nodes(struct amd *amd);
void amd_read_processes(struct amd *amd, struct amd_gpu *gpu);

#endif
