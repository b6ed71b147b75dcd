/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of AMD's GPUs: what the files amd*.c share. Others see ts_metrics_amd of
 * metric_sources.h.
 *
 * All comes from files of the kernel's driver amdgpu. ROCm's libraries have nothing that these lack
 * and that can be had without their dangers: locks shared with others, devices that are woken,
 * layouts that change.
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

/* Files of a device, below its directory. */
enum amd_file_id {
	AMD_FILE_STATUS, /* of power management: reading it does not wake the device, all others do
			  */
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
	char path[64]; /* "": there is none */
	struct ts_procfs_file kept;
};

enum amd_reading { AMD_READ_SENSORS, AMD_READ_MEMORY, AMD_READ_PROCESSES, AMD_READINGS };

/* Parts of a device that the driver counts as devices of their own share its sensors. */
#define AMD_PARTS_MOST 16u

struct amd_gpu {
	uint32_t number;
	char bus[24], model[64], uuid[48];
	int64_t memory_bytes; /* or TS_METRICS_UNKNOWN */
	int directory;
	struct amd_file files[AMD_FILES];
	uint64_t parts[AMD_PARTS_MOST]; /* ids that KFD knows it by */
	unsigned int part_count;
	bool is_announced, is_lost;
	int64_t last_ns[AMD_READINGS]; /* of ts_query_pacing_is_due() */
	struct ts_rate links_read, links_written;
	struct amd_table last_table; /* for reasons by time */
	bool has_last_table;
};

struct amd {
	char root[256];
	bool is_inner;        /* pids that we see are not those that the driver sees */
	struct amd_gpu *gpus; /* in the order of their bus addresses */
	size_t count, capacity;
	struct ts_query_pacing pace;
	const struct ts_metrics_sink *sink; /* of the sample that is under way */
	struct ts_text text;                /* room to read files in */
};

/* ---- amd.c ---- */

/* The source's open(); `root`: where sysfs is. */
enum ts_metrics_state amd_open(struct amd **ret_amd, const char *root, bool is_inner, char *why,
			       size_t why_bytes);
void amd_message(const struct amd *amd, const char *format, ...) TS_PRINTF_LIKE(2, 3);

/* ---- amd_device.c ---- */

/* Finds the devices: what never changes of them, and where their files are. */
int amd_find_gpus(struct amd *amd);
void amd_gpu_release(struct amd_gpu *gpu);
/* False where it cannot be read or is no number; one that is not there is not asked for again. */
bool amd_file_number(struct amd *amd, struct amd_gpu *gpu, enum amd_file_id file,
		     int64_t *ret_number);
/* The bytes in amd->text; 0 or the negative errno. */
int amd_file_read(struct amd *amd, struct amd_gpu *gpu, enum amd_file_id file);

/* ---- readings ---- */

/* amd_sensors.c */
void amd_read_sensors(struct amd *amd, struct amd_gpu *gpu);
void amd_read_memory(struct amd *amd, struct amd_gpu *gpu);
/* amd_processes.c */
void amd_find_parts(struct amd *amd);
void amd_read_processes(struct amd *amd, struct amd_gpu *gpu);

#endif
