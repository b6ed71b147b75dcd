/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table "gpu_metrics" of Linux' amdgpu driver: one read instead of many, but its layout depends
 * on the device and on the driver. Those of separate GPUs are known here, 1.1 to 1.8; of others
 * nothing is guessed.
 */
#ifndef TS_SAMPLE_METRICS_AMD_AMD_TABLE_H
#define TS_SAMPLE_METRICS_AMD_AMD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a table may hold; TS_NO_VALUE of procfs.h where it does not, or says that it does not know.
 */
struct amd_table {
	uint64_t compute_percent, memory_percent;
	uint64_t power_w;
	uint64_t edge_c, hotspot_c, memory_c;
	uint64_t compute_mhz, memory_mhz;
	/* Sums over all links, ever since. */
	uint64_t links_read_kib, links_written_kib;
	/*
	 * Reasons of throttling, either as bits of now, or as counters of how long, against
	 * `ticks`.
	 */
	bool has_reasons;
	bool is_power, is_thermal, is_hot; /* is_power: currents, too; is_hot: the PROCHOT line */
	uint64_t ticks, power_ticks, thermal_ticks, hot_ticks;
};

enum amd_table_state {
	AMD_TABLE_OK,
	AMD_TABLE_CUT,     /* not whole: try again */
	AMD_TABLE_UNKNOWN, /* a layout that is not known here */
};

/* One that knows nothing. */
void amd_table_init(struct amd_table *table);

/* *ret_table is untouched unless AMD_TABLE_OK. */
enum amd_table_state amd_table_read(struct amd_table *ret_table, const void *bytes, size_t count);

#endif
