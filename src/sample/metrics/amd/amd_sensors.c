/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sensors of AMD GPUs: from the driver's table where its layout is known, the rest from single
 * files. PCIe traffic is left out: its file takes a second to read, and the table's unit changed.
 */
#include "sample/metrics/amd/amd.h"

#include "base/clock.h"

#define KIB 1024.0
/* Plausibility limits. */
#define MAX_WATTS 10000
#define MAX_CELSIUS 250
#define MAX_MHZ 100000

static struct ts_metrics_subject subject_of(const struct amd_gpu *gpu)
{
	return (struct ts_metrics_subject){ .kind = TS_METRICS_DEVICE, .device = gpu->number };
}

static void give(const struct amd *amd, const struct amd_gpu *gpu, const char *name,
		 const char *series, int64_t value)
{
	struct ts_metrics_subject subject = subject_of(gpu);

	amd->sink->integer(amd->sink->context, &subject, name, series, value);
}

static void give_real(const struct amd *amd, const struct amd_gpu *gpu, const char *name,
		      const char *series, double value)
{
	struct ts_metrics_subject subject = subject_of(gpu);

	amd->sink->real(amd->sink->context, &subject, name, series, value);
}

/* The table's value, or a file's number divided; -1: unknown. */
static int64_t either(struct amd *amd, struct amd_gpu *gpu, uint64_t value, enum amd_file_id file,
		      int64_t divisor)
{
	int64_t number;

	if (value <= INT64_MAX)
		return (int64_t)value;
	return amd_file_number(amd, gpu, file, &number) && number >= 0 ? number / divisor : -1;
}

static void give_use(struct amd *amd, struct amd_gpu *gpu, const struct amd_table *table)
{
	int64_t compute = either(amd, gpu, table->compute_percent, AMD_FILE_COMPUTE_USE, 1);
	int64_t memory = either(amd, gpu, table->memory_percent, AMD_FILE_MEMORY_USE, 1);

	if (compute >= 0 && compute <= 100)
		give(amd, gpu, "utilization_percent", "compute", compute);
	if (memory >= 0 && memory <= 100)
		give(amd, gpu, "utilization_percent", "memory", memory);
}

/*
 * Most devices have one of the two files. On dual-GPU boards only the first reports power; the
 * other says 0.
 */
static void give_power(struct amd *amd, struct amd_gpu *gpu, const struct amd_table *table)
{
	int64_t microwatts;
	double watts;

	if (table->power_w != TS_NO_VALUE)
		watts = (double)table->power_w;
	else if (amd_file_number(amd, gpu, AMD_FILE_POWER_MEAN, &microwatts) ||
		 amd_file_number(amd, gpu, AMD_FILE_POWER_NOW, &microwatts))
		watts = (double)microwatts / 1e6;
	else
		return;
	if (watts > 0 && watts < MAX_WATTS)
		give_real(amd, gpu, "power_W", "draw", watts);
}

static void give_clocks(struct amd *amd, struct amd_gpu *gpu, const struct amd_table *table)
{
	int64_t compute = either(amd, gpu, table->compute_mhz, AMD_FILE_COMPUTE_CLOCK, 1000000);
	int64_t memory = either(amd, gpu, table->memory_mhz, AMD_FILE_MEMORY_CLOCK, 1000000);

	if (compute >= 0 && compute < MAX_MHZ)
		give(amd, gpu, "clock_MHz", "compute", compute);
	if (memory >= 0 && memory < MAX_MHZ)
		give(amd, gpu, "clock_MHz", "memory", memory);
}

/* 0 in a table means a missing sensor. */
static int64_t celsius(struct amd *amd, struct amd_gpu *gpu, uint64_t value, enum amd_file_id file)
{
	int64_t degrees = either(amd, gpu, value ? value : TS_NO_VALUE, file, 1000);

	return degrees > 0 && degrees <= MAX_CELSIUS ? degrees : 0;
}

/* Devices with XCDs have no edge sensor: use the hotspot. */
static void give_temperatures(struct amd *amd, struct amd_gpu *gpu, const struct amd_table *table)
{
	int64_t edge = celsius(amd, gpu, table->edge_c, AMD_FILE_EDGE);
	int64_t hotspot = celsius(amd, gpu, table->hotspot_c, AMD_FILE_HOTSPOT);
	int64_t memory = celsius(amd, gpu, table->memory_c, AMD_FILE_MEMORY_TEMPERATURE);

	if (edge || hotspot)
		give(amd, gpu, "temperature_C", "core", edge ? edge : hotspot);
	if (hotspot)
		give(amd, gpu, "temperature_C", "hotspot", hotspot);
	if (memory)
		give(amd, gpu, "temperature_C", "memory", memory);
}

static void give_links(struct amd *amd, struct amd_gpu *gpu, const struct amd_table *table)
{
	int64_t now_ns = ts_clock_monotonic_ns();
	double rate;

	if (table->links_read_kib == TS_NO_VALUE || table->links_written_kib == TS_NO_VALUE)
		return;
	if (ts_rate_next(&gpu->links_read, table->links_read_kib, now_ns, &rate))
		give_real(amd, gpu, "link_bytes_per_s", "received", rate * KIB);
	if (ts_rate_next(&gpu->links_written, table->links_written_kib, now_ns, &rate))
		give_real(amd, gpu, "link_bytes_per_s", "sent", rate * KIB);
}

/* Whether a time counter has advanced; unknown if it went backwards. */
static void give_moved(const struct amd *amd, const struct amd_gpu *gpu, const char *series,
		       uint64_t before, uint64_t now)
{
	if (before != TS_NO_VALUE && now != TS_NO_VALUE && now >= before)
		give(amd, gpu, "throttled", series, now > before);
}

static void give_reasons(struct amd *amd, struct amd_gpu *gpu, const struct amd_table *table)
{
	const struct amd_table *last = &gpu->last_table;

	if (table->has_reasons) {
		give(amd, gpu, "throttled", "power_cap", table->is_power);
		give(amd, gpu, "throttled", "thermal", table->is_thermal);
		give(amd, gpu, "throttled", "prochot", table->is_hot);
	} else if (gpu->has_last_table && table->ticks != TS_NO_VALUE &&
		   last->ticks != TS_NO_VALUE && table->ticks > last->ticks) {
		give_moved(amd, gpu, "power_cap", last->power_ticks, table->power_ticks);
		give_moved(amd, gpu, "thermal", last->thermal_ticks, table->thermal_ticks);
		give_moved(amd, gpu, "prochot", last->hot_ticks, table->hot_ticks);
	}
	gpu->last_table = *table;
	gpu->has_last_table = true;
}

static void read_table(struct amd *amd, struct amd_gpu *gpu, struct amd_table *table)
{
	if (amd_file_read(amd, gpu, AMD_FILE_TABLE) == 0 &&
	    amd_table_read(table, amd->text.data, amd->text.length) == AMD_TABLE_UNKNOWN)
		gpu->files[AMD_FILE_TABLE].path[0] = '\0';
}

void amd_read_sensors(struct amd *amd, struct amd_gpu *gpu)
{
	struct amd_table table;

	amd_table_init(&table);
	read_table(amd, gpu, &table);
	give_use(amd, gpu, &table);
	give_power(amd, gpu, &table);
	give_clocks(amd, gpu, &table);
	give_temperatures(amd, gpu, &table);
	give_links(amd, gpu, &table);
	give_reasons(amd, gpu, &table);
}

/* "gtt" is host memory used by the device: on APUs nearly all. */
void amd_read_memory(struct amd *amd, struct amd_gpu *gpu)
{
	int64_t used;

	if (amd_file_number(amd, gpu, AMD_FILE_VRAM_USED, &used) && used >= 0 &&
	    (gpu->memory_bytes == TS_METRICS_UNKNOWN || used <= gpu->memory_bytes))
		give(amd, gpu, "memory_bytes", "used", used);
	if (amd_file_number(amd, gpu, AMD_FILE_GTT_USED, &used) && used >= 0)
		give(amd, gpu, "memory_bytes", "gtt", used);
}
