/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as every text of /proc: must not crash or loop, and truncating a text must not change a
 * value into another one. Then as the traffic of two rounds.
 */
#include <stdlib.h>
#include <string.h>

#include "base/procfs_parse.h"
#include "lib/fuzz_check.h"
#include "sample/metrics/host/io_totals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Only 64-bit words, so that all values can be compared as such. */
struct texts {
	struct ts_procfs_statm statm;
	struct ts_procfs_io io;
	struct ts_switches switches;
	struct ts_procfs_system system;
	struct ts_procfs_meminfo meminfo;
	struct ts_procfs_vmstat vmstat;
	struct ts_procfs_pressure pressure;
};
_Static_assert(sizeof(struct texts) % sizeof(uint64_t) == 0, "words");

static void parse_all(const char *text, struct texts *ret_texts)
{
	struct ts_procfs_stat stat;

	ts_procfs_statm_parse(text, &ret_texts->statm);
	ts_procfs_io_parse(text, &ret_texts->io);
	ts_procfs_status_parse(text, &ret_texts->switches);
	ts_procfs_system_parse(text, &ret_texts->system);
	ts_procfs_meminfo_parse(text, &ret_texts->meminfo);
	ts_procfs_vmstat_parse(text, &ret_texts->vmstat);
	ts_procfs_pressure_parse(text, &ret_texts->pressure);
	if (ts_procfs_stat_parse(text, &stat))
		check(stat.start_time != TS_NO_VALUE && stat.state > ' ', "half a stat");
}

static void check_cut(char *text, size_t size)
{
	struct texts complete, part;
	uint64_t a[sizeof(complete) / sizeof(uint64_t)], b[sizeof(complete) / sizeof(uint64_t)];
	size_t half = size / 2;
	char kept = text[half];

	parse_all(text, &complete);
	text[half] = '\0';
	parse_all(text, &part);
	text[half] = kept;
	memcpy(a, &complete, sizeof(a));
	memcpy(b, &part, sizeof(b));
	for (size_t i = 0; i < TS_ARRAY_SIZE(a); i++)
		check(b[i] == TS_NO_VALUE || b[i] == a[i], "a cut text has another value");
}

static enum ts_io_device_kind classify(const char *name)
{
	check(strlen(name) < TS_IO_DEVICE_NAME_BYTES, "a name that is too long");
	return (enum ts_io_device_kind)((unsigned char)name[0] % 3);
}

static void sum_up(const struct ts_io_totals_kind *kind, const char *text, size_t half)
{
	struct ts_io_totals traffic = { .kind = kind };
	double in = 0, out = 0;

	check(!ts_io_totals_next(&traffic, text + half, 1000000000, &in, &out),
	      "a rate of one round");
	if (ts_io_totals_next(&traffic, text, 2000000000, &in, &out))
		check(in >= 0 && out >= 0, "a negative rate");
	ts_io_totals_release(&traffic);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ts_io_totals_kind network = { .classify = classify,
							  .next = ts_procfs_network_next };
	static const struct ts_io_totals_kind disks = { .classify = classify,
							.next = ts_procfs_disk_next };
	char *text = malloc(size + 1);

	check(text != NULL, "no memory");
	memcpy(text, data, size);
	text[size] = '\0';
	check_cut(text, size);
	sum_up(&network, text, size / 2);
	sum_up(&disks, text, size / 2);
	free(text);
	return 0;
}
