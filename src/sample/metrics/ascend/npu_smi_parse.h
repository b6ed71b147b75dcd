/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what `npu-smi info` prints, by the names in its headers. The tool has seven layouts (310,
 * 310P and 310B, 910A, 910B, 910C, the wide ones of 26.x, 950), which do not follow its version;
 * columns stand where they like. A table that has one name or line too many is not read at all: a
 * number must never be another one. Runs nothing.
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

/* Numbers are TS_METRICS_UNKNOWN where the tool has none, or prints what stands for none. */
struct ts_npu_chip {
	uint32_t npu, chip; /* as printed; together they are its key */
	uint32_t number;    /* of the device, as programs count: see ts_npu_smi_parse() */
	char model[32];
	char health[12]; /* OK, Warning, Alarm, Critical, UNKNOWN */
	char bus[20];    /* "" */
	int64_t power_mw;
	bool is_rated_power; /* not measured: what the chip may take */
	bool is_npu_power;   /* of all chips of its NPU together, of which it is the first */
	int64_t temperature_c;
	int64_t aicore_percent;
	int64_t npu_percent; /* another quantity, where there is no AICore */
	int64_t used_mib, total_mib;
	bool is_silent; /* its driver does not answer: all is printed as 0 */
	uint32_t process_rows;
};

struct ts_npu_process {
	uint32_t number; /* of its device */
	int64_t pid;
	int64_t inner_pid; /* in its container */
	int64_t used_mib;
};

struct ts_npu_info {
	char version[32];
	struct ts_npu_chip *chips;
	size_t chip_count, chip_capacity;
	bool has_processes; /* false: it prints no such table, or one that is not known */
	bool is_incomplete; /* the tool lists no more, or named a chip that it does not list */
	struct ts_npu_process *processes; /* one of each device and pid */
	size_t process_count, process_capacity;
	char message[384]; /* what was not understood and left out; "" */
};

/*
 * TS_EFORMAT where the devices cannot be read: err->message names the line; nothing is given. A
 * table of processes that is not understood is left out, and info->message says so.
 *
 * Device numbers: the one that is printed for a chip (Device, Phy-ID), else that of its NPU; of the
 * later chips of an NPU, where none is printed, 10000 times their number more.
 */
int ts_npu_smi_parse(const char *text, size_t bytes, struct ts_npu_info *ret_info,
		     struct ts_error *err);
void ts_npu_info_release(struct ts_npu_info *info);

/* True where the tool says that there is no NPU here, in place of a table. */
bool ts_npu_smi_says_none(const char *text, size_t bytes);

/*
 * The first line that is no table: what the tool complains of. Cut and made printable; "" where
 * there is none.
 */
void ts_npu_smi_complaint(const char *text, size_t bytes, char *ret_line, size_t line_bytes);

#endif
