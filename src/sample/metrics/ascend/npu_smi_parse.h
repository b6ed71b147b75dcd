/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the output of `npu-smi info` by the names in its headers. The tool has seven layouts (310,
 * 310P and 310B, 910A, 910B, 910C, the wide ones of 26.x, 950) that do not follow its version, and
 * columns in any order. A table with an unknown name or line is rejected: a number must never be
 * mistaken for another. Runs nothing.
 */
#ifndef TS_SAMPLE_METRICS_ASCEND_NPU_SMI_PARSE_H
#define TS_SAMPLE_METRICS_ASCEND_NPU_SMI_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/metrics.h>

#define TS_NPU_CHIPS 1024u
#define TS_NPU_PROCESSES 8192u

/* Numbers are TS_METRICS_UNKNOWN if the tool prints none, or a placeholder. */
struct ts_npu_chip {
	uint32_t npu, chip; /* as printed; together the key */
	uint32_t number;    /* device number for programs: see ts_npu_smi_parse() */
	char model[32];
	char health[12]; /* OK, Warning, Alarm, Critical, UNKNOWN */
	char bus[20];    /* "" */
	int64_t power_mw;
	bool is_rated_power; /* not measured: rated power */
	bool is_npu_power;   /* power of all chips of its NPU together; this is the first */
	int64_t temperature_c;
	int64_t aicore_percent;
	int64_t npu_percent; /* another quantity, if there is no AICore */
	int64_t used_mib, total_mib;
	bool is_silent; /* its driver does not answer: everything is printed as 0 */
	uint32_t process_rows;
};

struct ts_npu_process {
	uint32_t number; /* of its device */
	int64_t pid;
	int64_t inner_pid; /* pid inside its container */
	int64_t used_mib;
};

struct ts_npu_info {
	char version[32];
	struct ts_npu_chip *chips;
	size_t chip_count, chip_capacity;
	bool has_processes; /* false: no such table, or an unknown one */
	bool is_incomplete; /* the tool truncated its list, or named an unlisted chip */
	struct ts_npu_process *processes; /* one per device and pid */
	size_t process_count, process_capacity;
	char message[384]; /* what was not understood and skipped; "" */
};

/*
 * TS_EFORMAT if the devices cannot be parsed: err->message names the line; nothing is returned. A
 * process table that is not understood is skipped, and info->message says so.
 *
 * Device numbers: the one printed for a chip (Device, Phy-ID), else that of its NPU; for further
 * chips of an NPU without a printed number, plus 10000 times their index.
 */
int ts_npu_smi_parse(const char *text, size_t bytes, struct ts_npu_info *ret_info,
		     struct ts_error *err);
void ts_npu_info_release(struct ts_npu_info *info);

/* Whether the tool says that there is no NPU, instead of a table. */
bool ts_npu_smi_is_none(const char *text, size_t bytes);

/*
 * The first line that is not a table: the tool's complaint. Truncated and made printable; "" if
 * none.
 */
void ts_npu_smi_complaint(const char *text, size_t bytes, char *ret_line, size_t line_bytes);

#endif
