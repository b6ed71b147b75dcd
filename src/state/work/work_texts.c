/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies the strings of a trace once each: names of calls and kernels, categories of slices,
 * steps.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/short_name.h"
#include "state/work/work_internal.h"

/* Facts of string ids below this are in an array. */
#define DENSE_FACTS (1u << 22)

static uint32_t intern(struct ts_work *work, const char *text, size_t length)
{
	uint32_t id = ts_strmap_intern(&work->names, text, length, NULL);

	return id == TS_STRMAP_NONE ? 0 : id;
}

static const struct {
	const char *category;
	uint8_t class;
} slice_classes[] = {
	{ "cpu_op", TS_SLICE_OP },
	{ "Operator", TS_SLICE_OP },
	{ "user_annotation", TS_SLICE_ANNOTATION },
	{ "nvtx", TS_SLICE_ANNOTATION },
	{ "roctx", TS_SLICE_ANNOTATION },
	{ "gpu_user_annotation", TS_SLICE_GPU_ANNOTATION },
	{ "python_function", TS_SLICE_PYTHON },
	{ "Trace", TS_SLICE_DROPPED }, /* Kineto's span of the entire recording */
};

#define NVTX_DOMAIN "nvtx:" /* before the name of the domain */

static uint8_t slice_class(struct ts_string text)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(slice_classes); i++)
		if (!strcmp(text.data, slice_classes[i].category))
			return slice_classes[i].class;
	if (!strncmp(text.data, NVTX_DOMAIN, strlen(NVTX_DOMAIN)))
		return TS_SLICE_ANNOTATION;
	return TS_SLICE_OTHER;
}

static uint32_t intern_short(struct ts_work *work, struct ts_string text)
{
	TS_SCOPED(ts_text) name = { 0 };

	if (!ts_text_reserve(&name, text.length))
		return 0;
	name.length = ts_short_name(text.data, text.length, name.data);
	return intern(work, name.data, name.length);
}

static void find_facts(struct ts_work *work, int64_t string, struct ts_text_facts *facts)
{
	struct ts_string text = ts_reader_string(work->load->reader, string);

	facts->met = true;
	facts->name = intern(work, text.data, text.length);
	facts->code_name = work->options.short_names ? intern_short(work, text) : facts->name;
	facts->traits = (uint8_t)ts_kernel_traits(text.data, text.length);
	facts->call_kind = (uint8_t)ts_api_kind(text.data, text.length);
	facts->slice_class = slice_class(text);
	facts->is_step = ts_work_parse_step(&work->options, text.data, text.length, &facts->step);
	facts->is_marker = !strcmp(text.data, "sync");
	memset(facts->classes, TS_CLASS_UNMET, sizeof(facts->classes));
}

static struct ts_text_facts *far_facts(struct ts_work_load *load, int64_t string)
{
	struct ts_text_facts *facts;
	uint64_t value;

	if (ts_map_get(&load->far_facts, (uint64_t)string, &value))
		return (struct ts_text_facts *)(uintptr_t)value;
	facts = ts_arena_alloc_zeroed(&load->far, 1, sizeof(*facts));
	if (!facts || ts_map_put(&load->far_facts, (uint64_t)string, (uintptr_t)facts))
		return NULL;
	return facts;
}

int ts_work_start_texts(struct ts_work_load *load)
{
	free(load->facts);
	load->fact_count = TS_MIN(ts_reader_string_end(load->reader), DENSE_FACTS);
	load->facts = calloc(load->fact_count + 1, sizeof(*load->facts));
	ts_arena_clear(&load->far);
	ts_map_clear(&load->far_facts);
	return load->facts ? TS_OK : TS_ENOMEM;
}

static struct ts_text_facts *facts_of(struct ts_work *work, int64_t string)
{
	struct ts_work_load *load = work->load;
	struct ts_text_facts *facts;

	if (string >= 0 && (uint64_t)string < load->fact_count)
		facts = &load->facts[string];
	else
		facts = far_facts(load, string);
	if (facts && !facts->met)
		find_facts(work, string, facts);
	return facts;
}

const struct ts_text_facts *ts_work_facts(struct ts_work *work, int64_t string)
{
	static const struct ts_text_facts none = { .met = true };
	const struct ts_text_facts *facts = facts_of(work, string);

	return facts ? facts : &none;
}

/* Classified once per name and kind. */
uint8_t ts_work_class(struct ts_work *work, int64_t string, int64_t kind)
{
	struct ts_text_facts *facts = facts_of(work, string);
	const char *text;
	size_t length;
	uint8_t *class;

	if (kind < 0 || kind > TS_GPU_OP_COLLECTIVE)
		kind = TS_GPU_OP_OTHER;
	if (!facts)
		return TS_CLASS_OTHER;
	class = &facts->classes[kind];
	if (*class == TS_CLASS_UNMET) {
		text = ts_strmap_text(&work->names, facts->name, &length);
		*class = (uint8_t)(work->options.rounding == TS_ROUNDING_HTA
					   ? ts_command_class_hta(text, length)
					   : ts_command_class((enum ts_gpu_op_kind)kind, text,
							      length));
	}
	return *class;
}

uint32_t ts_work_name(struct ts_work *work, int64_t string)
{
	return string ? ts_work_facts(work, string)->name : 0;
}
