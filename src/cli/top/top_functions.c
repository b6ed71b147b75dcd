/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the time of functions. A recursive one counts once per stack. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/top/top_functions.h"

void ts_top_functions_init(struct ts_top_functions *functions)
{
	*functions = (struct ts_top_functions){ 0 };
	ts_strmap_init(&functions->names, 0);
}

void ts_top_functions_release(struct ts_top_functions *functions)
{
	ts_strmap_release(&functions->names);
	free(functions->functions);
}

uint32_t ts_top_functions_intern(struct ts_top_functions *functions, const char *name,
				 const char *file, int32_t line)
{
	size_t name_bytes = strlen(name) + 1, file_bytes = strlen(file) + 1;
	TS_SCOPED(ts_text) key = { 0 };
	const char *kept;
	uint32_t number;
	bool is_new;

	ts_text_append(&key, name, name_bytes);
	ts_text_append(&key, file, file_bytes);
	ts_text_append_int(&key, line);
	/* Reserve first, so that every name has an entry. */
	if (key.failed || ts_grow_array((void **)&functions->functions, &functions->capacity,
					functions->count + 1, sizeof(*functions->functions)))
		return TS_TOP_NO_FUNCTION;
	number = ts_strmap_intern(&functions->names, key.data, key.length, &is_new);
	if (number == TS_STRMAP_NONE || !is_new)
		return number;
	kept = ts_strmap_text(&functions->names, number, NULL);
	functions->functions[functions->count++] = (struct ts_top_function){
		.name = kept,
		.file = kept + name_bytes,
		.line = line,
	};
	return number;
}

void ts_top_functions_begin(struct ts_top_functions *functions)
{
	functions->stacks++;
}

void ts_top_functions_frame(struct ts_top_functions *functions, uint32_t number, bool is_innermost,
			    int64_t weight_ns)
{
	struct ts_top_function *function;

	if (number >= functions->count)
		return;
	function = &functions->functions[number];
	if (is_innermost)
		function->turn_self_ns += weight_ns;
	if (function->stack == functions->stacks)
		return;
	function->stack = functions->stacks;
	function->turn_total_ns += weight_ns;
}

void ts_top_functions_turn(struct ts_top_functions *functions)
{
	for (size_t i = 0; i < functions->count; i++) {
		struct ts_top_function *function = &functions->functions[i];

		function->self_ns += function->turn_self_ns;
		function->total_ns += function->turn_total_ns;
		function->recent_self_ns = function->turn_self_ns;
		function->recent_total_ns = function->turn_total_ns;
		function->turn_self_ns = function->turn_total_ns = 0;
	}
}

void ts_top_functions_clear(struct ts_top_functions *functions)
{
	ts_top_functions_turn(functions);
	for (size_t i = 0; i < functions->count; i++) {
		struct ts_top_function *function = &functions->functions[i];

		function->self_ns = function->total_ns = 0;
		function->recent_self_ns = function->recent_total_ns = 0;
	}
}

/* ---- the list ---- */

static int compare_names(const struct ts_top_function *a, const struct ts_top_function *b)
{
	int order = strcmp(a->name, b->name);

	if (!order)
		order = strcmp(a->file, b->file);
	return order ? order : TS_COMPARE(a->line, b->line);
}

static int compare_by_self(const void *left, const void *right)
{
	const struct ts_top_function *a = left, *b = right;

	if (a->recent_self_ns != b->recent_self_ns)
		return TS_COMPARE(b->recent_self_ns, a->recent_self_ns);
	if (a->recent_total_ns != b->recent_total_ns)
		return TS_COMPARE(b->recent_total_ns, a->recent_total_ns);
	if (a->self_ns != b->self_ns)
		return TS_COMPARE(b->self_ns, a->self_ns);
	if (a->total_ns != b->total_ns)
		return TS_COMPARE(b->total_ns, a->total_ns);
	return compare_names(a, b);
}

static int compare_by_total(const void *left, const void *right)
{
	const struct ts_top_function *a = left, *b = right;

	if (a->recent_total_ns != b->recent_total_ns)
		return TS_COMPARE(b->recent_total_ns, a->recent_total_ns);
	if (a->recent_self_ns != b->recent_self_ns)
		return TS_COMPARE(b->recent_self_ns, a->recent_self_ns);
	if (a->total_ns != b->total_ns)
		return TS_COMPARE(b->total_ns, a->total_ns);
	return compare_names(a, b);
}

size_t ts_top_functions_list(const struct ts_top_functions *functions, bool by_total, size_t limit,
			     struct ts_top_function **ret_functions)
{
	struct ts_top_function *list = ts_alloc_array(functions->count, sizeof(*list));
	size_t count = 0;

	*ret_functions = list;
	for (size_t i = 0; list && i < functions->count; i++) {
		if (functions->functions[i].total_ns)
			list[count++] = functions->functions[i];
	}
	ts_sort(list, count, sizeof(*list), by_total ? compare_by_total : compare_by_self);
	return TS_MIN(count, limit);
}
