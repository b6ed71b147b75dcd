/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of the driver's gpu_metrics table. */
#include "sample/metrics/amd/amd_table.h"

#include "base/procfs.h"

/* Discrete GPUs; 2 and 3 are APUs, whose units vary by model. */
#define FORMAT_SEPARATE 1
#define HEADER_BYTES 4u
#define LINKS 8u

/* Offsets; 0: missing. Numbers are little-endian; all bits set: unknown. */
struct layout {
	uint8_t revision;
	uint16_t bytes;
	/* of 16 bits */
	uint16_t edge, hotspot, memory, compute_use, memory_use, power, compute_clock, memory_clock;
	uint16_t reasons;     /* 64 bits with the same meaning on all devices */
	uint16_t few_reasons; /* 32 bits, of devices with XCDs */
	uint16_t ticks;       /* 32 bits, then five 32-bit counters: throttle reasons by time */
	uint16_t reason_ticks;
	uint16_t links_read, links_written; /* 64 bits per link */
};

static const struct layout layouts[] = {
	{ .revision = 1,
	  .bytes = 96,
	  .edge = 4,
	  .hotspot = 6,
	  .memory = 8,
	  .compute_use = 16,
	  .memory_use = 18,
	  .power = 22,
	  .compute_clock = 54,
	  .memory_clock = 58 },
	{ .revision = 2,
	  .bytes = 104,
	  .edge = 4,
	  .hotspot = 6,
	  .memory = 8,
	  .compute_use = 16,
	  .memory_use = 18,
	  .power = 22,
	  .compute_clock = 54,
	  .memory_clock = 58 },
	{ .revision = 3,
	  .bytes = 120,
	  .edge = 4,
	  .hotspot = 6,
	  .memory = 8,
	  .compute_use = 16,
	  .memory_use = 18,
	  .power = 22,
	  .compute_clock = 54,
	  .memory_clock = 58,
	  .reasons = 112 },
	{ .revision = 4,
	  .bytes = 288,
	  .hotspot = 4,
	  .memory = 6,
	  .power = 10,
	  .compute_use = 12,
	  .memory_use = 14,
	  .compute_clock = 240,
	  .memory_clock = 280,
	  .few_reasons = 40,
	  .links_read = 104,
	  .links_written = 168 },
	{ .revision = 5,
	  .bytes = 360,
	  .hotspot = 4,
	  .memory = 6,
	  .power = 10,
	  .compute_use = 12,
	  .memory_use = 14,
	  .compute_clock = 312,
	  .memory_clock = 352,
	  .few_reasons = 104,
	  .links_read = 176,
	  .links_written = 240 },
	{ .revision = 6,
	  .bytes = 1664,
	  .hotspot = 4,
	  .memory = 6,
	  .power = 10,
	  .compute_use = 12,
	  .memory_use = 14,
	  .compute_clock = 264,
	  .memory_clock = 304,
	  .ticks = 32,
	  .reason_ticks = 36,
	  .links_read = 128,
	  .links_written = 192 },
	{ .revision = 7,
	  .bytes = 2208,
	  .hotspot = 4,
	  .memory = 6,
	  .power = 10,
	  .compute_use = 12,
	  .memory_use = 14,
	  .compute_clock = 296,
	  .memory_clock = 336,
	  .ticks = 40,
	  .reason_ticks = 44,
	  .links_read = 136,
	  .links_written = 200 },
	{ .revision = 8,
	  .bytes = 3872,
	  .hotspot = 4,
	  .memory = 6,
	  .power = 10,
	  .compute_use = 12,
	  .memory_use = 14,
	  .compute_clock = 296,
	  .memory_clock = 336,
	  .ticks = 40,
	  .reason_ticks = 44,
	  .links_read = 136,
	  .links_written = 200 },
};

/* A number of that many bytes; TS_NO_VALUE if missing or all bits set. */
static uint64_t number(const unsigned char *bytes, uint16_t offset, unsigned int width)
{
	uint64_t value = 0;

	if (offset == 0)
		return TS_NO_VALUE;
	for (unsigned int i = width; i-- > 0;)
		value = value << 8 | bytes[offset + i];
	return value == UINT64_MAX >> (64 - 8 * width) ? TS_NO_VALUE : value;
}

static uint64_t sum_links(const unsigned char *bytes, uint16_t offset)
{
	uint64_t sum = 0;
	bool found = false;

	for (uint16_t i = 0; offset && i < LINKS; i++) {
		uint64_t value = number(bytes, (uint16_t)(offset + 8 * i), 8);

		if (value == TS_NO_VALUE)
			continue;
		sum += value;
		found = true;
	}
	return found ? sum : TS_NO_VALUE;
}

static void read_reasons(struct amd_table *table, const unsigned char *bytes,
			 const struct layout *layout)
{
	uint64_t all = number(bytes, layout->reasons, 8);
	uint64_t few = number(bytes, layout->few_reasons, 4);

	if (all != TS_NO_VALUE) {
		table->has_reasons = true;
		table->is_power = all & 0xff00ff;
		table->is_thermal = all >> 32 & 0x3fff;
		table->is_hot = all >> 46 & 3;
	} else if (few != TS_NO_VALUE) {
		table->has_reasons = true;
		table->is_hot = few & 1;
		table->is_power = few & 2;
		table->is_thermal = few & 0x1c;
	}
}

/* PROCHOT, power, then three thermal reasons. */
static void read_reason_ticks(struct amd_table *table, const unsigned char *bytes,
			      const struct layout *layout)
{
	uint64_t counts[5];

	table->ticks = number(bytes, layout->ticks, 4);
	for (uint16_t i = 0; i < 5; i++)
		counts[i] = layout->reason_ticks
				    ? number(bytes, (uint16_t)(layout->reason_ticks + 4 * i), 4)
				    : TS_NO_VALUE;
	table->hot_ticks = counts[0];
	table->power_ticks = counts[1];
	table->thermal_ticks = TS_NO_VALUE;
	if (counts[2] != TS_NO_VALUE && counts[3] != TS_NO_VALUE && counts[4] != TS_NO_VALUE)
		table->thermal_ticks = counts[2] + counts[3] + counts[4];
}

void amd_table_init(struct amd_table *table)
{
	*table = (struct amd_table){
		.compute_percent = TS_NO_VALUE,
		.memory_percent = TS_NO_VALUE,
		.power_w = TS_NO_VALUE,
		.edge_c = TS_NO_VALUE,
		.hotspot_c = TS_NO_VALUE,
		.memory_c = TS_NO_VALUE,
		.compute_mhz = TS_NO_VALUE,
		.memory_mhz = TS_NO_VALUE,
		.links_read_kib = TS_NO_VALUE,
		.links_written_kib = TS_NO_VALUE,
		.ticks = TS_NO_VALUE,
		.power_ticks = TS_NO_VALUE,
		.thermal_ticks = TS_NO_VALUE,
		.hot_ticks = TS_NO_VALUE,
	};
}

static const struct layout *find_layout(const unsigned char *bytes, uint64_t stated)
{
	for (size_t i = 0; bytes[2] == FORMAT_SEPARATE && i < TS_ARRAY_SIZE(layouts); i++)
		if (layouts[i].revision == bytes[3] && layouts[i].bytes == stated)
			return &layouts[i];
	return NULL;
}

enum amd_table_state amd_table_read(struct amd_table *ret_table, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	const struct layout *layout;

	if (count < HEADER_BYTES)
		return AMD_TABLE_CUT;
	layout = find_layout(at, at[0] | (uint64_t)at[1] << 8);
	if (!layout)
		return AMD_TABLE_UNKNOWN;
	if (count < layout->bytes)
		return AMD_TABLE_CUT;
	amd_table_init(ret_table);
	ret_table->compute_percent = number(at, layout->compute_use, 2);
	ret_table->memory_percent = number(at, layout->memory_use, 2);
	ret_table->power_w = number(at, layout->power, 2);
	ret_table->edge_c = number(at, layout->edge, 2);
	ret_table->hotspot_c = number(at, layout->hotspot, 2);
	ret_table->memory_c = number(at, layout->memory, 2);
	ret_table->compute_mhz = number(at, layout->compute_clock, 2);
	ret_table->memory_mhz = number(at, layout->memory_clock, 2);
	ret_table->links_read_kib = sum_links(at, layout->links_read);
	ret_table->links_written_kib = sum_links(at, layout->links_written);
	read_reasons(ret_table, at, layout);
	read_reason_ticks(ret_table, at, layout);
	return AMD_TABLE_OK;
}
