/* SPDX-License-Identifier: Apache-2.0 */
/* AMD GPUs, with files of the test in place of sysfs. */
#include "sample/metrics/amd/amd.h"

#include <math.h>

#include "base/process.h"
#include "sample/metrics/metric_sources.h"
#include "unit/sample/metrics/gpu_support.h"

#define SECOND_NS INT64_C(1000000000)
#define FIRST "devices/pci0000:00/0000:03:00.0/"

static struct collected all;

/* ---- a tree ---- */

static void put_card(const char *root, const char *card, const char *bus, const char *vendor,
		     const char *driver)
{
	char path[128], target[128];

	snprintf(path, sizeof(path), "class/drm/%s/device", card);
	snprintf(target, sizeof(target), "../../../devices/pci0000:00/%s", bus);
	tree_link(root, path, target);
	snprintf(path, sizeof(path), "devices/pci0000:00/%s/vendor", bus);
	tree_file(root, path, vendor);
	snprintf(path, sizeof(path), "devices/pci0000:00/%s/driver", bus);
	snprintf(target, sizeof(target), "../../../bus/pci/drivers/%s", driver);
	tree_link(root, path, target);
}

static void put_sensors(const char *root)
{
	tree_file(root, FIRST "hwmon/hwmon2/name", "nvme\n");
	tree_file(root, FIRST "hwmon/hwmon3/name", "amdgpu\n");
	tree_file(root, FIRST "hwmon/hwmon3/temp1_label", "edge\n");
	tree_file(root, FIRST "hwmon/hwmon3/temp1_input", "41000\n");
	tree_file(root, FIRST "hwmon/hwmon3/temp2_label", "junction\n");
	tree_file(root, FIRST "hwmon/hwmon3/temp2_input", "52000\n");
	tree_file(root, FIRST "hwmon/hwmon3/temp3_label", "mem\n");
	tree_file(root, FIRST "hwmon/hwmon3/temp3_input", "63000\n");
	tree_file(root, FIRST "hwmon/hwmon3/freq1_label", "sclk\n");
	tree_file(root, FIRST "hwmon/hwmon3/freq1_input", "1700000000\n");
	tree_file(root, FIRST "hwmon/hwmon3/freq2_label", "mclk\n");
	tree_file(root, FIRST "hwmon/hwmon3/freq2_input", "1600000000\n");
	tree_file(root, FIRST "hwmon/hwmon3/power1_average", "151500000\n");
}

/* One GPU with all single files and no table. */
static const char *make_machine(void)
{
	const char *root = tree_make();

	put_card(root, "card1", "0000:03:00.0", "0x1002\n", "amdgpu");
	tree_file(root, FIRST "device", "0x740f\n");
	tree_file(root, FIRST "unique_id", "0123456789abcdef\n");
	tree_file(root, FIRST "power/runtime_status", "active\n");
	tree_file(root, FIRST "gpu_busy_percent", "77\n");
	tree_file(root, FIRST "mem_busy_percent", "12\n");
	tree_file(root, FIRST "mem_info_vram_total", "68702699520\n");
	tree_file(root, FIRST "mem_info_vram_used", "11145216\n");
	tree_file(root, FIRST "mem_info_gtt_used", "14000000\n");
	put_sensors(root);
	return root;
}

static struct amd *open_at(const char *root)
{
	struct amd *amd = NULL;
	char why[256] = "";

	if (amd_open(&amd, root, false, why, sizeof(why)) != TS_METRICS_READY)
		ts_test_fail(__FILE__, __LINE__, "not ready: %s", why);
	return amd;
}

static int sample(struct amd *amd)
{
	collected_init(&all);
	for (size_t i = 0; i < amd->count; i++)
		memset(amd->gpus[i].last_ns, 0, sizeof(amd->gpus[i].last_ns));
	return ts_metrics_amd.sample(amd, &all.sink);
}

static void sample_once(const char *root)
{
	struct amd *amd = open_at(root);

	TS_CHECK_INT(sample(amd), 0);
	ts_metrics_amd.close(amd);
}

/* ---- devices ---- */

static void expect_none(const char *root)
{
	struct amd *amd = NULL;
	char why[256] = "";

	TS_CHECK_INT(amd_open(&amd, root, false, why, sizeof(why)), TS_METRICS_NONE);
	TS_CHECK(amd == NULL && strstr(why, "no AMD GPU"));
}

TS_TEST(nothing_here)
{
	const char *root = tree_make();

	expect_none("/nowhere");
	tree_file(root, "class/drm/version", "drm 1.1.0\n");
	expect_none(root);
	put_card(root, "card0", "0000:00:02.0", "0x8086\n", "i915");
	put_card(root, "card1", "0000:01:00.0", "0x1002\n", "radeon");
	put_card(root, "card2", "0000:02:00.0", "0x1002\n", "vfio-pci");
	put_card(root, "renderD128", "0000:04:00.0", "0x1002\n", "amdgpu");
	/* A partition of a device: not a PCI device. */
	tree_link(root, "class/drm/card3/device", "../../../devices/platform/amdgpu_xcp.0");
	tree_file(root, "devices/platform/amdgpu_xcp.0/uevent", "DRIVER=amdgpu\n");
	expect_none(root);
	tree_remove(root);
}

TS_TEST(devices_in_the_order_of_their_addresses)
{
	const char *root = make_machine();

	put_card(root, "card0", "0000:83:00.0", "0x1002\n", "amdgpu");
	tree_file(root, "devices/pci0000:00/0000:83:00.0/product_name", "AMD Instinct MI300X\n");
	tree_link(root, "class/drm/card0-DP-1", "card0");
	sample_once(root);
	TS_CHECK_INT(all.device_count, 2);
	TS_CHECK_STR(all.texts[0][0], "AMD");
	TS_CHECK_STR(all.texts[0][1], "AMD 0x740f");
	TS_CHECK_STR(all.texts[0][2], "GPU-0123456789abcdef");
	TS_CHECK_STR(all.texts[0][3], "0000:03:00.0");
	TS_CHECK_INT(all.devices[0].memory_bytes, 68702699520);
	TS_CHECK_STR(all.texts[1][1], "AMD Instinct MI300X");
	TS_CHECK_STR(all.texts[1][3], "0000:83:00.0");
	TS_CHECK_INT(all.devices[1].memory_bytes, TS_METRICS_UNKNOWN);
	TS_CHECK_INT(all.devices[1].number, 1);
	/* It has no files at all, and so no values. */
	for (unsigned int i = 0; i < all.count; i++)
		TS_CHECK_INT(all.given[i].subject.device, 0);
	tree_remove(root);
}

/* ---- single files ---- */

static void expect_file_values(void)
{
	CHECK_GIVEN(&all, 0, "utilization_percent", "compute", 77);
	CHECK_GIVEN(&all, 0, "utilization_percent", "memory", 12);
	CHECK_GIVEN(&all, 0, "memory_bytes", "used", 11145216);
	CHECK_GIVEN(&all, 0, "memory_bytes", "gtt", 14000000);
	CHECK_GIVEN(&all, 0, "power_W", "draw", 151.5);
	CHECK_GIVEN(&all, 0, "temperature_C", "core", 41);
	CHECK_GIVEN(&all, 0, "temperature_C", "hotspot", 52);
	CHECK_GIVEN(&all, 0, "temperature_C", "memory", 63);
	CHECK_GIVEN(&all, 0, "clock_MHz", "compute", 1700);
	CHECK_GIVEN(&all, 0, "clock_MHz", "memory", 1600);
}

TS_TEST(values_of_files)
{
	const char *root = make_machine();
	struct amd *amd = open_at(root);

	for (int i = 0; i < 3; i++) {
		TS_CHECK_INT(sample(amd), 0);
		expect_file_values();
		TS_CHECK_INT(all.device_count, i == 0);
	}
	/* Files are read again each time. */
	tree_file(root, FIRST "gpu_busy_percent", "0\n");
	sample(amd);
	CHECK_GIVEN(&all, 0, "utilization_percent", "compute", 0);
	ts_metrics_amd.close(amd);
	tree_remove(root);
}

TS_TEST(every_file_may_be_missing)
{
	static const char *const files[] = {
		"gpu_busy_percent",
		"mem_busy_percent",
		"mem_info_vram_total",
		"mem_info_vram_used",
		"mem_info_gtt_used",
		"power/runtime_status",
		"unique_id",
		"device",
		"hwmon/hwmon3/temp1_input",
		"hwmon/hwmon3/temp1_label",
		"hwmon/hwmon3/power1_average",
		"hwmon/hwmon3/freq1_input",
		"hwmon/hwmon3/name",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(files); i++) {
		const char *root = make_machine();
		char path[128];

		snprintf(path, sizeof(path), FIRST "%s", files[i]);
		tree_drop(root, path);
		sample_once(root);
		TS_CHECK(all.count >= 4);
		TS_CHECK_INT(all.message_count, 0);
		tree_remove(root);
	}
}

static void expect_absent(const char *file, const char *content, const char *name,
			  const char *series)
{
	const char *root = make_machine();
	char path[128];

	snprintf(path, sizeof(path), FIRST "%s", file);
	tree_file(root, path, content);
	sample_once(root);
	CHECK_ABSENT(&all, 0, name, series);
	tree_remove(root);
}

TS_TEST(what_is_no_number_is_absent)
{
	static const char *const contents[] = {
		"",       "\n", "N/A\n", "77 %\n", "-1\n", "99999999999999999999\n",
		"0x10\n", "7",  "77",    " \n",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(contents); i++) {
		expect_absent("gpu_busy_percent", contents[i], "utilization_percent", "compute");
		expect_absent("mem_info_vram_used", contents[i], "memory_bytes", "used");
		expect_absent("hwmon/hwmon3/power1_average", contents[i], "power_W", "draw");
		expect_absent("hwmon/hwmon3/temp3_input", contents[i], "temperature_C", "memory");
	}
	expect_absent("gpu_busy_percent", "101\n", "utilization_percent", "compute");
	expect_absent("mem_info_vram_used", "68702699521\n", "memory_bytes", "used");
	expect_absent("hwmon/hwmon3/power1_average", "0\n", "power_W", "draw");
	expect_absent("hwmon/hwmon3/temp3_input", "500000\n", "temperature_C", "memory");
}

TS_TEST(the_other_file_of_power)
{
	const char *root = make_machine();

	tree_drop(root, FIRST "hwmon/hwmon3/power1_average");
	tree_file(root, FIRST "hwmon/hwmon3/power1_input", "33000000\n");
	sample_once(root);
	CHECK_GIVEN(&all, 0, "power_W", "draw", 33);
	tree_remove(root);
}

TS_TEST(without_an_edge_the_hottest_place_is_the_core)
{
	const char *root = make_machine();

	tree_drop(root, FIRST "hwmon/hwmon3/temp1_input");
	sample_once(root);
	CHECK_GIVEN(&all, 0, "temperature_C", "core", 52);
	tree_remove(root);
}

TS_TEST(a_device_that_sleeps_is_not_woken)
{
	const char *root = make_machine();
	struct amd *amd = open_at(root);

	tree_file(root, FIRST "power/runtime_status", "suspended\n");
	TS_CHECK_INT(sample(amd), 0);
	TS_CHECK_INT(all.count, 0);
	TS_CHECK(has_message(&all, "is suspended"));
	tree_file(root, FIRST "power/runtime_status", "active\n");
	sample(amd);
	expect_file_values();
	ts_metrics_amd.close(amd);
	tree_remove(root);
}

TS_TEST(a_device_goes)
{
	const char *root = make_machine();
	struct amd *amd;

	put_card(root, "card0", "0000:83:00.0", "0x1002\n", "amdgpu");
	amd = open_at(root);
	TS_CHECK_INT(sample(amd), 0);
	tree_drop(root, FIRST "vendor");
	TS_CHECK_INT(sample(amd), 0);
	TS_CHECK(has_message(&all, "AMD GPU 0 ('0000:03:00.0') has disappeared"));
	TS_CHECK_INT(all.count, 0);
	tree_drop(root, "devices/pci0000:00/0000:83:00.0/vendor");
	TS_CHECK(sample(amd) != 0);
	ts_metrics_amd.close(amd);
	tree_remove(root);
}

/* ---- the table ---- */

static void put(unsigned char *table, size_t offset, unsigned int width, uint64_t value)
{
	for (unsigned int i = 0; i < width; i++)
		table[offset + i] = (unsigned char)(value >> (8 * i));
}

/* All bits set: unknown. */
static void begin_table(unsigned char table[4096], size_t bytes, uint8_t format, uint8_t content)
{
	memset(table, 0xff, 4096);
	put(table, 0, 2, bytes);
	table[2] = format;
	table[3] = content;
}

static void begin_1_3(unsigned char table[4096])
{
	begin_table(table, 120, 1, 3);
	put(table, 4, 2, 31);    /* edge */
	put(table, 6, 2, 32);    /* hotspot */
	put(table, 8, 2, 33);    /* memory */
	put(table, 16, 2, 55);   /* gfx activity */
	put(table, 18, 2, 6);    /* umc activity */
	put(table, 22, 2, 250);  /* W */
	put(table, 54, 2, 1500); /* current gfxclk */
	put(table, 58, 2, 900);  /* current uclk */
	put(table, 112, 8, UINT64_C(1) << 36 | 1 << 17);
}

static void begin_1_7(unsigned char table[4096])
{
	begin_table(table, 2208, 1, 7);
	put(table, 4, 2, 62);
	put(table, 6, 2, 63);
	put(table, 10, 2, 700);
	put(table, 12, 2, 99);
	put(table, 14, 2, 40);
	put(table, 296, 2, 2100);
	put(table, 336, 2, 1300);
	put(table, 40, 4, 1000); /* ticks, then prochot, ppt, socket, vr, hbm */
	for (size_t i = 0; i < 5; i++)
		put(table, 44 + 4 * i, 4, 10);
	for (size_t i = 0; i < 7; i++) {
		put(table, 136 + 8 * i, 8, 1000);
		put(table, 200 + 8 * i, 8, 2000);
	}
}

TS_TEST(values_of_a_table)
{
	const char *root = make_machine();
	unsigned char table[4096];

	begin_1_3(table);
	tree_bytes(root, FIRST "gpu_metrics", table, 120);
	sample_once(root);
	CHECK_GIVEN(&all, 0, "utilization_percent", "compute", 55);
	CHECK_GIVEN(&all, 0, "utilization_percent", "memory", 6);
	CHECK_GIVEN(&all, 0, "power_W", "draw", 250);
	CHECK_GIVEN(&all, 0, "temperature_C", "core", 31);
	CHECK_GIVEN(&all, 0, "temperature_C", "hotspot", 32);
	CHECK_GIVEN(&all, 0, "temperature_C", "memory", 33);
	CHECK_GIVEN(&all, 0, "clock_MHz", "compute", 1500);
	CHECK_GIVEN(&all, 0, "clock_MHz", "memory", 900);
	CHECK_GIVEN(&all, 0, "throttled", "power_cap", 1);
	CHECK_GIVEN(&all, 0, "throttled", "thermal", 1);
	CHECK_GIVEN(&all, 0, "throttled", "prochot", 0);
	CHECK_ABSENT(&all, 0, "link_bytes_per_s", "sent");
	/* Values missing from the table come from the files. */
	put(table, 16, 2, 0xffff);
	put(table, 22, 2, 0xffff);
	put(table, 8, 2, 0);
	put(table, 112, 8, UINT64_MAX);
	tree_bytes(root, FIRST "gpu_metrics", table, 120);
	sample_once(root);
	CHECK_GIVEN(&all, 0, "utilization_percent", "compute", 77);
	CHECK_GIVEN(&all, 0, "utilization_percent", "memory", 6);
	CHECK_GIVEN(&all, 0, "power_W", "draw", 151.5);
	CHECK_GIVEN(&all, 0, "temperature_C", "memory", 63);
	CHECK_ABSENT(&all, 0, "throttled", "thermal");
	tree_remove(root);
}

static void expect_link_rate(const char *series, double most)
{
	const struct given *given = given_of(&all, 0, 0, "link_bytes_per_s", series);

	if (!given || given->value > most || given->value < most / 2)
		ts_test_fail(__FILE__, __LINE__, "%s is %g, not %g", series,
			     given ? given->value : NAN, most);
}

TS_TEST(counters_of_a_table)
{
	const char *root = make_machine();
	unsigned char table[4096];
	struct amd *amd;

	begin_1_7(table);
	tree_bytes(root, FIRST "gpu_metrics", table, 2208);
	amd = open_at(root);
	sample(amd);
	CHECK_GIVEN(&all, 0, "utilization_percent", "compute", 99);
	CHECK_GIVEN(&all, 0, "temperature_C", "core", 41); /* from its file */
	CHECK_GIVEN(&all, 0, "temperature_C", "hotspot", 62);
	CHECK_GIVEN(&all, 0, "power_W", "draw", 700);
	CHECK_GIVEN(&all, 0, "clock_MHz", "compute", 2100);
	CHECK_ABSENT(&all, 0, "throttled", "power_cap");
	CHECK_ABSENT(&all, 0, "link_bytes_per_s", "sent");
	amd->gpus[0].links_read.at_ns -= 1000 * SECOND_NS;
	amd->gpus[0].links_written.at_ns -= 1000 * SECOND_NS;
	put(table, 40, 4, 1100);
	put(table, 48, 4, 15);
	put(table, 136, 8, 3000);
	put(table, 200, 8, 3000);
	tree_bytes(root, FIRST "gpu_metrics", table, 2208);
	sample(amd);
	CHECK_GIVEN(&all, 0, "throttled", "power_cap", 1);
	CHECK_GIVEN(&all, 0, "throttled", "thermal", 0);
	CHECK_GIVEN(&all, 0, "throttled", "prochot", 0);
	expect_link_rate("received", 2048);
	expect_link_rate("sent", 1024);
	/* The counters restart. */
	put(table, 40, 4, 5);
	put(table, 136, 8, 1);
	tree_bytes(root, FIRST "gpu_metrics", table, 2208);
	sample(amd);
	CHECK_ABSENT(&all, 0, "throttled", "power_cap");
	CHECK_ABSENT(&all, 0, "link_bytes_per_s", "received");
	ts_metrics_amd.close(amd);
	tree_remove(root);
}

TS_TEST(tables_that_are_cut_or_not_known)
{
	const char *root = make_machine();
	unsigned char table[4096];

	begin_1_3(table);
	for (size_t bytes = 0; bytes < 120; bytes++) {
		struct amd *amd;

		tree_bytes(root, FIRST "gpu_metrics", table, bytes);
		amd = open_at(root);
		sample(amd);
		expect_file_values();
		/* The next time it is complete. */
		tree_bytes(root, FIRST "gpu_metrics", table, 120);
		sample(amd);
		CHECK_GIVEN(&all, 0, "utilization_percent", "compute", 55);
		ts_metrics_amd.close(amd);
	}
	tree_remove(root);
}

TS_TEST(layouts)
{
	static const struct {
		uint16_t bytes, content, power, links;
	} known[] = {
		{ 96, 1, 22, 0 },     { 104, 2, 22, 0 },    { 120, 3, 22, 0 },
		{ 288, 4, 10, 104 },  { 360, 5, 10, 176 },  { 1664, 6, 10, 128 },
		{ 2208, 7, 10, 136 }, { 3872, 8, 10, 136 },
	};
	unsigned char bytes[4096];
	struct amd_table table;

	for (size_t i = 0; i < TS_ARRAY_SIZE(known); i++) {
		begin_table(bytes, known[i].bytes, 1, (uint8_t)known[i].content);
		TS_CHECK_INT(amd_table_read(&table, bytes, known[i].bytes), AMD_TABLE_OK);
		TS_CHECK_INT(table.power_w, TS_NO_VALUE);
		TS_CHECK_INT(table.links_read_kib, TS_NO_VALUE);
		TS_CHECK_INT(table.ticks, TS_NO_VALUE);
		TS_CHECK(!table.has_reasons);
		put(bytes, known[i].power, 2, 123);
		if (known[i].links)
			put(bytes, known[i].links, 8, 9);
		TS_CHECK_INT(amd_table_read(&table, bytes, known[i].bytes), AMD_TABLE_OK);
		TS_CHECK_INT(table.power_w, 123);
		TS_CHECK_INT(table.links_read_kib, known[i].links ? 9 : TS_NO_VALUE);
		TS_CHECK_INT(amd_table_read(&table, bytes, known[i].bytes - 1u), AMD_TABLE_CUT);
	}
	/* Mismatched sizes and versions, future ones, and those of APUs. */
	begin_table(bytes, 120, 2, 1);
	TS_CHECK_INT(amd_table_read(&table, bytes, 120), AMD_TABLE_UNKNOWN);
	begin_table(bytes, 120, 1, 4);
	TS_CHECK_INT(amd_table_read(&table, bytes, 120), AMD_TABLE_UNKNOWN);
	begin_table(bytes, 4000, 1, 9);
	TS_CHECK_INT(amd_table_read(&table, bytes, 4000), AMD_TABLE_UNKNOWN);
	begin_table(bytes, 0, 1, 0);
	TS_CHECK_INT(amd_table_read(&table, bytes, 4096), AMD_TABLE_UNKNOWN);
}

/* ---- processes ---- */

static void put_nodes(const char *root)
{
	tree_file(root, "class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
	tree_file(root, "class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 8\n");
	tree_file(root, "class/kfd/kfd/topology/nodes/1/gpu_id", "5678\n");
	tree_file(root, "class/kfd/kfd/topology/nodes/1/properties",
		  "simd_count 416\nlocation_id 768\ndomain 0\nnum_xcc 1\n");
	/* Another partition of the same device. */
	tree_file(root, "class/kfd/kfd/topology/nodes/2/gpu_id", "5679\n");
	tree_file(root, "class/kfd/kfd/topology/nodes/2/properties",
		  "location_id 268436224\ndomain 0\n");
	tree_file(root, "class/kfd/kfd/topology/nodes/3/gpu_id", "99\n");
	tree_file(root, "class/kfd/kfd/topology/nodes/3/properties", "garbage\n");
}

static void put_process(const char *root, const char *pid, const char *first, const char *second)
{
	char path[128];

	snprintf(path, sizeof(path), "class/kfd/kfd/proc/%s/vram_5678", pid);
	tree_file(root, path, first);
	snprintf(path, sizeof(path), "class/kfd/kfd/proc/%s/vram_5679", pid);
	if (second)
		tree_file(root, path, second);
}

TS_TEST(processes)
{
	const char *root = make_machine();
	char me[16], parent[16];

	snprintf(me, sizeof(me), "%d", (int)getpid());
	snprintf(parent, sizeof(parent), "%d", (int)getppid());
	put_nodes(root);
	put_process(root, me, "1000\n", "234\n");
	put_process(root, parent, "0\n", "0\n");
	put_process(root, "4000001", "5000\n", "0\n");
	put_process(root, "self", "5000\n", "0\n");
	sample_once(root);
	CHECK_OF_PROCESS(&all, 0, getpid(), "memory_bytes", "used", 1234);
	TS_CHECK_INT(given_of(&all, 0, getpid(), "memory_bytes", "used")->subject.start_time,
		     ts_process_start_time(getpid()));
	TS_CHECK(!given_of(&all, 0, getppid(), "memory_bytes", "used"));
	TS_CHECK(!given_of(&all, 0, 4000001, "memory_bytes", "used"));
	/* A partition that cannot be read, and more than there is. */
	put_process(root, me, "1000\n", "garbage\n");
	sample_once(root);
	TS_CHECK(!given_of(&all, 0, getpid(), "memory_bytes", "used"));
	put_process(root, me, "68702699520\n", "1\n");
	sample_once(root);
	TS_CHECK(!given_of(&all, 0, getpid(), "memory_bytes", "used"));
	tree_remove(root);
}

TS_TEST(processes_seen_from_a_container)
{
	const char *root = make_machine();
	struct amd *amd = NULL;
	char me[16], why[256];

	snprintf(me, sizeof(me), "%d", (int)getpid());
	put_nodes(root);
	put_process(root, me, "1000\n", "234\n");
	TS_CHECK_INT(amd_open(&amd, root, true, why, sizeof(why)), TS_METRICS_READY);
	sample(amd);
	TS_CHECK(!given_of(&all, 0, getpid(), "memory_bytes", "used"));
	TS_CHECK(has_message(&all, "container"));
	expect_file_values();
	ts_metrics_amd.close(amd);
	tree_remove(root);
}

/* ---- the source ---- */

TS_TEST(as_a_source)
{
	const char *root = make_machine();
	void *state = NULL;
	char why[256];

	TS_CHECK_STR(ts_metrics_amd.name, "amd");
	TS_CHECK_INT(ts_metrics_amd.size, sizeof(ts_metrics_amd));
	setenv("TRACESMITH_SYSFS", root, 1);
	TS_CHECK_INT(ts_metrics_amd.open(&state, why, sizeof(why)), TS_METRICS_READY);
	collected_init(&all);
	TS_CHECK_INT(ts_metrics_amd.sample(state, &all.sink), 0);
	expect_file_values();
	ts_metrics_amd.close(state);
	tree_remove(root);
}
