/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith view --hot KERNEL`: collects the hottest instructions, with code and source lines if
 * known, and the launches. view_pc_samples_text.c and view_pc_samples_json.c print them.
 */
#include "cli/view/view_pc_samples.h"

#include <stdio.h>

#include "base/ns.h"
#include "cli/common/report.h"
#include "code/demangle.h"

#define INSTRUCTIONS 20
#define LAUNCHES 5

/* ---- queries ---- */

static double percent(int64_t part, int64_t total)
{
	return total > 0 ? 100.0 * (double)part / (double)total : 0;
}

double ts_hot_share(const struct ts_hot_view *hot, int64_t samples)
{
	return percent(samples, hot->hot->kernels[0].samples);
}

const char *ts_hot_sass(const struct ts_hot_view *hot, const struct ts_pc_samples_instruction *one)
{
	return hot->disassembly
		       ? ts_disassembly_at(hot->disassembly, hot->address + (uint64_t)one->offset)
		       : NULL;
}

size_t ts_hot_locations(const struct ts_hot_view *hot, const struct ts_pc_samples_instruction *one,
			struct ts_cubin_location locations[TS_HOT_LOCATIONS])
{
	if (!hot->cubin || !hot->function)
		return 0;
	return ts_cubin_locations(hot->cubin, hot->function, (uint64_t)one->offset, locations,
				  TS_HOT_LOCATIONS);
}

void ts_hot_append_function(struct ts_text *out, const struct ts_cubin_location *location)
{
	TS_AUTO_FREE char *plain = location->function ? ts_demangle(location->function) : NULL;

	if (location->function)
		ts_text_append_str(out, plain ? plain : location->function);
}

double ts_hot_launch_share(const struct ts_hot_view *hot, const struct ts_pc_samples_launch *launch)
{
	int64_t all = 0;

	for (size_t i = 0; i < hot->hot->launch_count; i++)
		all = ts_ns_add(all, hot->hot->is_exact ? hot->hot->launches[i].samples
							: hot->hot->launches[i].device_ns);
	return percent(hot->hot->is_exact ? launch->samples : launch->device_ns, all);
}

const char *ts_hot_launch_kind(const struct ts_hot_view *hot)
{
	return hot->hot->is_exact ? "exact" : "candidates, by device time";
}

/* ---- code ---- */

/* A trace has demangled names, a cubin mangled ones. */
static const char *find_function(const struct ts_cubin *cubin, const char *name)
{
	const char *function;
	size_t cursor = 0;

	while ((function = ts_cubin_function_next(cubin, &cursor))) {
		TS_AUTO_FREE char *plain = ts_demangle_long(function);

		if (strcmp(function, name) == 0 || (plain && strcmp(plain, name) == 0))
			return function;
	}
	return NULL;
}

static void set_reason(char *to, size_t bytes, const char *why)
{
	snprintf(to, bytes, "%.*s", (int)bytes - 1, why);
}

static void look_at_code(struct ts_hot_view *hot, const void *image, size_t bytes,
			 struct ts_disassembly **ret_disassembly)
{
	struct ts_error why = { 0 };
	size_t symbol;

	hot->function = find_function(hot->cubin, hot->hot->kernels[0].name);
	if (!hot->function || !ts_cubin_find(hot->cubin, hot->function, &symbol, &hot->address)) {
		set_reason(hot->no_sass, sizeof(hot->no_sass),
			   "its module has no function of that name");
		set_reason(hot->no_lines, sizeof(hot->no_lines), hot->no_sass);
		hot->function = NULL;
		return;
	}
	if (!ts_cubin_has_lines(hot->cubin))
		set_reason(hot->no_lines, sizeof(hot->no_lines),
			   "it was built without line information (nvcc -lineinfo)");
	if (ts_disassemble(ret_disassembly, image, bytes, hot->function, symbol, &why))
		set_reason(hot->no_sass, sizeof(hot->no_sass), why.message);
	hot->disassembly = *ret_disassembly;
}

/* Missing code is reported, but is not an error. */
static void find_code(struct ts_hot_view *hot, struct ts_cubin **ret_cubin,
		      struct ts_disassembly **ret_disassembly)
{
	TS_AUTO_FREE void *image = NULL;
	struct ts_error why = { 0 };
	size_t bytes = 0;

	if (ts_pc_samples_code(hot->hot, &image, &bytes, &why) ||
	    ts_cubin_open(ret_cubin, image, bytes, &why)) {
		set_reason(hot->no_sass, sizeof(hot->no_sass), why.message);
		set_reason(hot->no_lines, sizeof(hot->no_lines), why.message);
		return;
	}
	hot->cubin = *ret_cubin;
	look_at_code(hot, image, bytes, ret_disassembly);
}

/* ---- entry point ---- */

int ts_view_hot(struct ts_view *view, struct ts_error *err)
{
	TS_AUTO(ts_disassembly) disassembly = NULL;
	TS_AUTO(ts_cubin) cubin = NULL;
	TS_AUTO(ts_pc_samples) hot = NULL;
	struct ts_hot_view shown = { .view = view };
	int rc = ts_pc_samples_new(&hot, view->reader, view->hot, err);

	if (rc)
		return rc;
	shown.hot = hot;
	shown.instruction_limit = view->limit < 0 ? INSTRUCTIONS : (size_t)view->limit;
	shown.launch_limit = view->limit < 0 ? LAUNCHES : (size_t)view->limit;
	find_code(&shown, &cubin, &disassembly);
	return view->json ? ts_hot_print_json(&shown, err) : ts_hot_print_text(&shown, err);
}
