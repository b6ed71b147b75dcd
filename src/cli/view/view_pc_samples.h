/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of `tracesmith view --hot`, for view_pc_samples_text.c and view_pc_samples_json.c.
 */
#ifndef TS_CLI_VIEW_VIEW_PC_SAMPLES_H
#define TS_CLI_VIEW_VIEW_PC_SAMPLES_H

#include "analyze/pc_samples/pc_samples.h"
#include "cli/view/view.h"
#include "code/cubin.h"
#include "code/disassemble.h"

#define TS_HOT_LOCATIONS 32u

struct ts_hot_view {
	struct ts_view *view;
	const struct ts_pc_samples *hot;
	const struct ts_cubin *cubin;             /* NULL: not in the trace */
	const char *function;                     /* mangled name in the cubin; NULL: not found */
	uint64_t address;                         /* of the function in its section */
	const struct ts_disassembly *disassembly; /* NULL: none */
	char no_sass[256], no_lines[256];         /* why missing; "": available */
	size_t instruction_limit, launch_limit;
};

/* In percent of all samples of the kernel. */
double ts_hot_share(const struct ts_hot_view *hot, int64_t samples);
/* The disassembled instruction, or NULL. */
const char *ts_hot_sass(const struct ts_hot_view *hot, const struct ts_pc_samples_instruction *one);
size_t ts_hot_locations(const struct ts_hot_view *hot, const struct ts_pc_samples_instruction *one,
			struct ts_cubin_location locations[TS_HOT_LOCATIONS]);
/* The demangled name; "" for the kernel itself. */
void ts_hot_append_function(struct ts_text *out, const struct ts_cubin_location *location);
/* Share of a launch in percent: of samples if they are exact, else of device time. */
double ts_hot_launch_share(const struct ts_hot_view *hot,
			   const struct ts_pc_samples_launch *launch);
const char *ts_hot_launch_kind(const struct ts_hot_view *hot);

int ts_hot_print_text(const struct ts_hot_view *hot, struct ts_error *err);
int ts_hot_print_json(const struct ts_hot_view *hot, struct ts_error *err);

#endif
