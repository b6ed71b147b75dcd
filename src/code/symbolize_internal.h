/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the symboliser share; see symbolize.h. */
#ifndef TS_CODE_SYMBOLIZE_INTERNAL_H
#define TS_CODE_SYMBOLIZE_INTERNAL_H

#include "base/text.h"
#include "code/symbolize.h"

/* Functions inlined into one another that are told of one address. */
#define TS_SYMBOLIZE_DEPTH 64u
#define TS_SYMBOLIZE_NAME_BYTES 4096u /* those of templates can be megabytes */

/* ---- symbolize_files.c ---- */

/* Files that were found; -1: none. The caller closes them. */
struct ts_symbolize_files {
	int binary; /* what ran */
	int debug;  /* beside it, with its build id */
	enum ts_symbolize_state state;
};

void ts_symbolize_find(const struct ts_symbolize_module *module,
		       const struct ts_symbolize_options *options,
		       struct ts_symbolize_files *ret_files);

/* ---- symbolize_module.c ---- */

/*
 * What a worker writes: this; then of each address a word with the number of its functions, and of
 * each function this and its texts.
 */
struct ts_symbolize_head {
	uint32_t state; /* enum ts_symbolize_state */
	uint32_t has_lines;
};

struct ts_symbolize_item {
	uint32_t name_bytes, file_bytes;
	int64_t line;
};

/* Reads the binary and appends all that to `out`. May die of the file, unless without_lines. */
void ts_symbolize_module(const struct ts_symbolize_module *module,
			 const struct ts_symbolize_options *options, bool without_lines,
			 struct ts_text *out);

#endif
