/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gpu_metrics table of Linux' amdgpu driver: one read instead of many, but its layout depends
 * on device and driver. Knows those of discrete GPUs, 1.1 to 1.8; others are not guessed.
 */
#ifndef TS_SAMPLE_METRICS_AMD_AMD_TABLE_H
#define TS_SAMPLE_METRICS_AMD_AMD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Contents of a table; TS_NO_VALUE (procfs.h) if missing or unknown. */
struct amd_table {
	uint64_t compute_percent, memory_percent;
	uint64_t power_w;
	uint64_t edge_c, hotspot_c, memory_c;
	uint64_t compute_mhz, memory_mhz;
	/* Totals over all links since driver load. */
	uint64_t links_read_kib, links_written_kib;
	/* Throttle reasons, either as current bits, or as time counters against `ticks`. */
	bool has_reasons;
	bool is_power, is_thermal, is_hot; /* is_power: also current limits; is_hot: PROCHOT */
	uint64_t ticks, power_ticks, thermal_ticks, hot_ticks;
};

enum amd_table_state {
	AMD_TABLE_OK,
	AMD_TABLE_CUT,     /* incomplete: retry */
	AMD_TABLE_UNKNOWN, /* unknown layout */
};

/* A table without values. */
void amd_table_init(struct amd_table *table);

/* *ret_table is untouched unless AMD_TABLE_OK. */
enum amd_table_state amd_table_read(struct amd_table *ret_table, const void *bytes, size_t count);

#endif
