/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the symbolizer; see symbolize.h. */
#ifndef TS_CODE_SYMBOLIZE_INTERNAL_H
#define TS_CODE_SYMBOLIZE_INTERNAL_H

#include "base/text.h"
#include "code/symbolize.h"

/* Limit of inlined functions per address. */
#define TS_SYMBOLIZE_DEPTH 64u
#define TS_SYMBOLIZE_NAME_BYTES 4096u /* those of templates can be megabytes */

/* ---- symbolize_files.c ---- */

/* Directories with debug files, separated by colons, in addition to /usr/lib/debug. */
#define TS_SYMBOLIZE_PATH_VARIABLE "TRACESMITH_DEBUG_PATH"

/* The separate debug file of a binary, from there; -1: none. The caller closes it. */
int ts_symbolize_open_debug(const char *path, const char *build_id);

/* Files found; -1: none. The caller closes them. */
struct ts_symbolize_files {
	int binary; /* the binary itself */
	int debug;  /* separate debug file with the same build id */
	enum ts_symbolize_state state;
};

void ts_symbolize_find(const struct ts_symbolize_module *module,
		       const struct ts_symbolize_options *options,
		       struct ts_symbolize_files *ret_files);

/* ---- symbolize_module.c ---- */

/*
 * A worker's output: this header; then per address a word with its number of functions, and per
 * function this struct and its strings.
 */
struct ts_symbolize_head {
	uint32_t state; /* enum ts_symbolize_state */
	uint32_t has_lines;
};

struct ts_symbolize_item {
	uint32_t name_bytes, file_bytes;
	int64_t line;
};

/*
 * Reads the binary and appends its results to `out`. May crash on the file, unless without_lines.
 */
void ts_symbolize_module(const struct ts_symbolize_module *module,
			 const struct ts_symbolize_options *options, bool without_lines,
			 struct ts_text *out);

#endif
