/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that parse npu-smi's tables: npu_smi_parse.c splits lines, npu_smi_chips.c
 * parses the device table, npu_smi_processes.c the process table, npu_smi_text.c words and numbers.
 * Others include npu_smi_parse.h.
 */
#ifndef TS_SAMPLE_METRICS_ASCEND_NPU_SMI_INTERNAL_H
#define TS_SAMPLE_METRICS_ASCEND_NPU_SMI_INTERNAL_H

#include "sample/metrics/ascend/npu_smi_parse.h"

#define NPU_CELLS 24u
#define NPU_FIELDS 8u

struct npu_span {
	const char *at;
	size_t length;
};

enum npu_field {
	NPU_POWER,
	NPU_TEMPERATURE,
	NPU_HUGEPAGES,
	NPU_AICORE,
	NPU_UTILIZATION,
	NPU_MEMORY,
	NPU_HBM,
	NPU_FIELD_COUNT
};

struct npu_header {
	enum npu_field fields[NPU_FIELDS];
	size_t count;
};

/* What the next line of a table must be. */
enum npu_expected { NPU_TITLE, NPU_HEADER_1, NPU_HEADER_2, NPU_ROW_1, NPU_ROW_2, NPU_PROCESS_ROW };

struct npu_parser {
	const char *text, *at, *end;
	struct npu_span line;
	struct npu_span cells[NPU_CELLS];
	size_t cell_count;
	enum npu_expected expected;
	bool rule_seen; /* since the last line with cells */
	/* The device table. */
	struct npu_header headers[2];
	bool has_name_cell;      /* {NPU ID}{Name}... instead of {NPU Name}... */
	bool has_device_numbers; /* Device or Phy-ID after Chip */
	bool has_pairs;          /* Phy-ID: two chips per NPU; power is printed with the first */
	struct ts_npu_chip chip; /* current chip */
	bool power_is_shared;    /* "-": at the first chip of the NPU */
	bool found_memory, found_hbm;
	int64_t memory[2], hbm[2]; /* used and total MiB */
	/* The process table. */
	size_t process_cells;
	struct ts_npu_info *info;
};

/* ---- words and numbers ---- */

bool npu_is_blank(char c);
struct npu_span npu_trim(struct npu_span text);
bool npu_starts_with(struct npu_span text, const char *prefix);
bool npu_is_text(struct npu_span text, const char *other);
/* Compares words, ignoring the number of blanks between them. */
bool npu_has_words(struct npu_span text, const char *words);
/* Removes the first word. */
struct npu_span npu_next_word(struct npu_span *text);
/* Truncated to fit and made printable, with blanks collapsed. */
void npu_copy_text(char *buffer, size_t bytes, struct npu_span text);
/* Only digits, below `limit`. */
bool npu_parse_number(struct npu_span text, int64_t limit, int64_t *ret_number);
/* "NA" and similar. */
bool npu_is_absent(struct npu_span text);

/* ---- lines of tables, cut into cells; false: it does not fit ---- */

bool npu_parse_title(struct npu_parser *parser);
bool npu_parse_header_1(struct npu_parser *parser);
bool npu_parse_header_2(struct npu_parser *parser);
bool npu_parse_row_1(struct npu_parser *parser);
bool npu_parse_row_2(struct npu_parser *parser);

/* A header of another table. */
bool npu_begins_processes(const struct npu_parser *parser);
bool npu_parse_process_header(struct npu_parser *parser);
/* "No running processes found in NPU 1". */
bool npu_is_none(const struct npu_parser *parser);
bool npu_parse_process(struct npu_parser *parser);

#endif
