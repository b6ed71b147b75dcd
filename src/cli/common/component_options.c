/* SPDX-License-Identifier: Apache-2.0 */
/* Options that analyses and replay targets declare, as options of a verb. */
#include "cli/common/component_options.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/common/report.h"

struct component {
	const char *name;
	struct component *next;
};

struct ts_component_option {
	struct ts_component_option *next;
	const struct ts_option_spec *spec;
	size_t index; /* in all->options */
	struct component *components;
	/* As parsed; INT64_MIN: no integer was given. */
	bool flag;
	const char *text;
	int64_t integer;
	struct ts_string_list list;
};

static int no_memory(void)
{
	return ts_report_exit_code(TS_ENOMEM);
}

int ts_component_options_add_verb(struct ts_component_options *all, const struct ts_option *options,
				  size_t count)
{
	if (ts_grow_array((void **)&all->options, &all->capacity, all->count + count,
			  sizeof(*all->options)))
		return no_memory();
	memcpy(all->options + all->count, options, count * sizeof(*options));
	all->count += count;
	return TS_EXIT_DONE;
}

static struct ts_component_option *find(const struct ts_component_options *all, const char *name)
{
	for (struct ts_component_option *option = all->first; option; option = option->next)
		if (!strcmp(option->spec->name, name))
			return option;
	return NULL;
}

static struct ts_option as_option(struct ts_component_option *option)
{
	const struct ts_option_spec *spec = option->spec;
	struct ts_option result = {
		.name = spec->name,
		.letter = spec->letter,
		.value = spec->value,
		.minimum = spec->minimum,
		.maximum = spec->maximum,
	};

	switch (spec->type) {
	case TS_OPTION_SPEC_FLAG:
		result.type = TS_OPTION_TYPE_FLAG;
		result.target = &option->flag;
		break;
	case TS_OPTION_SPEC_TEXT:
	case TS_OPTION_SPEC_TIME:
	case TS_OPTION_SPEC_CHOICE:
		result.type = TS_OPTION_TYPE_TEXT;
		result.target = &option->text;
		break;
	case TS_OPTION_SPEC_INTEGER:
		result.type = TS_OPTION_TYPE_INTEGER;
		result.target = &option->integer;
		break;
	case TS_OPTION_SPEC_LIST:
		result.type = TS_OPTION_TYPE_REPEATED;
		result.target = &option->list;
		break;
	}
	return result;
}

static struct ts_component_option *add_option(struct ts_component_options *all,
					      const struct ts_option_spec *spec)
{
	struct ts_component_option *option = ts_arena_alloc_zeroed(&all->arena, 1, sizeof(*option));
	struct ts_option result;

	if (!option)
		return NULL;
	option->spec = spec;
	option->index = all->count;
	option->integer = INT64_MIN;
	result = as_option(option);
	if (ts_component_options_add_verb(all, &result, 1))
		return NULL;
	if (all->last)
		all->last->next = option;
	else
		all->first = option;
	all->last = option;
	return option;
}

static void append_components(struct ts_text *out, const struct ts_component_option *option,
			      const char *quote, const char *separator)
{
	for (const struct component *c = option->components; c; c = c->next)
		ts_text_printf(out, "%s%s%s%s", c == option->components ? "" : separator, quote,
			       c->name, quote);
}

/* "idle, advice: what the option means". */
static int set_doc(struct ts_component_options *all, const struct ts_component_option *option)
{
	TS_SCOPED(ts_text) text = { 0 };
	const char *doc;

	append_components(&text, option, "", ", ");
	ts_text_printf(&text, ": %s", option->spec->doc);
	doc = text.failed ? NULL : ts_arena_strdup_len(&all->arena, text.data, text.length);
	all->options[option->index].doc = doc;
	return doc ? TS_EXIT_DONE : no_memory();
}

static int add_component(struct ts_component_options *all, struct ts_component_option *option,
			 const char *name)
{
	struct component **end = &option->components;

	while (*end)
		end = &(*end)->next;
	*end = ts_arena_alloc_zeroed(&all->arena, 1, sizeof(**end));
	if (!*end)
		return no_memory();
	(*end)->name = name;
	return set_doc(all, option);
}

int ts_component_options_add(struct ts_component_options *all, const char *component,
			     const struct ts_option_spec *specs, size_t count)
{
	int exit_code = TS_EXIT_DONE;

	for (size_t i = 0; i < count && !exit_code; i++) {
		struct ts_component_option *option = find(all, specs[i].name);

		if (!option)
			option = add_option(all, &specs[i]);
		exit_code = option ? add_component(all, option, component) : no_memory();
	}
	return exit_code;
}

static bool is_given(const struct ts_component_option *option)
{
	return option->flag || option->text || option->integer != INT64_MIN || option->list.count;
}

int ts_component_options_check(const struct ts_component_options *all,
			       bool (*is_chosen)(const void *context, const char *component),
			       const void *context)
{
	TS_SCOPED(ts_text) names = { 0 };

	for (const struct ts_component_option *option = all->first; option; option = option->next) {
		bool chosen = !is_given(option);

		for (const struct component *c = option->components; c && !chosen; c = c->next)
			chosen = is_chosen(context, c->name);
		if (chosen)
			continue;
		append_components(&names, option, "'", " or ");
		return ts_report_usage("'--%s' applies only to %s %s", option->spec->name,
				       all->kind, ts_text_cstr(&names));
	}
	return TS_EXIT_DONE;
}

/* What the command line's parser has not parsed yet. */
static int store_text(const struct ts_option_spec *spec, const char *text, void *base)
{
	struct ts_error err;

	if (ts_option_spec_store(spec, text, base, &err))
		return ts_report_usage("%s", err.message);
	return TS_EXIT_DONE;
}

int ts_component_options_store(const struct ts_component_options *all,
			       const struct ts_option_spec *specs, size_t count, void *base)
{
	for (size_t i = 0; i < count; i++) {
		const struct ts_component_option *option = find(all, specs[i].name);
		void *value = (char *)base + specs[i].offset;

		if (!option || !is_given(option))
			continue;
		switch (specs[i].type) {
		case TS_OPTION_SPEC_FLAG:
			*(bool *)value = option->flag;
			break;
		case TS_OPTION_SPEC_CHOICE:
		case TS_OPTION_SPEC_TEXT:
		case TS_OPTION_SPEC_TIME:
			if (store_text(&specs[i], option->text, base))
				return TS_EXIT_USAGE;
			break;
		case TS_OPTION_SPEC_INTEGER:
			*(int64_t *)value = option->integer;
			break;
		case TS_OPTION_SPEC_LIST:
			*(struct ts_option_values *)value =
				(struct ts_option_values){ (const char *const *)option->list.items,
							   option->list.count };
			break;
		}
	}
	return TS_EXIT_DONE;
}

void ts_component_options_release(struct ts_component_options *all)
{
	for (struct ts_component_option *option = all->first; option; option = option->next)
		ts_string_list_release(&option->list);
	free(all->options);
	ts_arena_release(&all->arena);
	*all = (struct ts_component_options){ 0 };
}
