/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as output of npu-smi. Must not crash or leak, and the parsed values must be possible:
 * percentages below 101, no more memory used than there is, each chip and each process of a chip
 * once.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/fuzz_check.h"
#include "sample/metrics/ascend/npu_smi_parse.h"

static int is_between(int64_t value, int64_t least, int64_t most)
{
	return value == TS_METRICS_UNKNOWN || (value >= least && value <= most);
}

static void check_chip(const struct ts_npu_info *info, size_t at)
{
	const struct ts_npu_chip *chip = &info->chips[at];

	check(is_between(chip->aicore_percent, 0, 100), "a use of the cores beyond 100 %");
	check(is_between(chip->npu_percent, 0, 100), "a use of the NPU beyond 100 %");
	check(is_between(chip->power_mw, 1, 5000000), "a power that cannot be");
	check(is_between(chip->temperature_c, -50, 150) && chip->temperature_c != 0,
	      "a temperature that cannot be");
	check((chip->used_mib == TS_METRICS_UNKNOWN) == (chip->total_mib == TS_METRICS_UNKNOWN),
	      "memory that is known by half");
	check(chip->used_mib == TS_METRICS_UNKNOWN ||
		      (chip->used_mib >= 0 && chip->used_mib <= chip->total_mib &&
		       chip->total_mib > 0),
	      "more memory used than there is");
	check(chip->number < 65536, "a device number beyond the limit");
	for (size_t i = 0; i < at; i++)
		check(info->chips[i].number != chip->number, "two devices of one number");
}

static void check_process(const struct ts_npu_info *info, size_t at)
{
	const struct ts_npu_process *process = &info->processes[at];
	int known = 0;

	check(process->pid > 0 && process->pid < INT32_MAX, "a pid that cannot be");
	check(is_between(process->inner_pid, 0, INT32_MAX), "a pid that cannot be");
	check(is_between(process->used_mib, 0, INT64_MAX >> 20), "memory that overflows in bytes");
	for (size_t i = 0; i < info->chip_count; i++)
		known |= info->chips[i].number == process->number;
	check(known, "a process of an unknown device");
	for (size_t i = 0; i < at; i++)
		check(info->processes[i].number != process->number ||
			      info->processes[i].pid != process->pid,
		      "a process of a device twice");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct ts_npu_info info;
	struct ts_error err;
	char line[64];

	ts_npu_smi_complaint(text, size, line, sizeof(line));
	check(strlen(line) < sizeof(line), "a line that does not end");
	ts_npu_smi_is_none(text, size);
	if (ts_npu_smi_parse(text, size, &info, &err)) {
		check(err.code == TS_EFORMAT && err.message[0], "a refusal without a reason");
		return 0;
	}
	check(info.chip_count > 0, "a table without devices");
	for (size_t i = 0; i < info.chip_count; i++)
		check_chip(&info, i);
	for (size_t i = 0; i < info.process_count; i++)
		check_process(&info, i);
	ts_npu_info_release(&info);
	return 0;
}
