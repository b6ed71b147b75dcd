/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a verb whose components (analyses, replay targets) declare options of their own
 * (base/option_spec.h): combines both in one table for ts_command.
 *
 *	struct ts_component_options all = { .kind = "analysis" };
 *	ts_component_options_add_verb(&all, options, TS_ARRAY_SIZE(options));
 *	ts_component_options_add(&all, "idle", specs, count);
 *	... ts_command_parse() with all.options ...
 *	ts_component_options_check(&all, is_chosen, context);
 *	ts_component_options_store(&all, specs, count, &idle_options);
 *	ts_component_options_release(&all);
 *
 * Functions return an exit code; errors have been reported.
 */
#ifndef TS_CLI_COMMON_COMPONENT_OPTIONS_H
#define TS_CLI_COMMON_COMPONENT_OPTIONS_H

#include "base/arena.h"
#include "base/option_spec.h"
#include "cli/common/options.h"

struct ts_component_option;

struct ts_component_options {
	const char *kind;          /* of the components, for messages: "analysis" */
	struct ts_option *options; /* for struct ts_command */
	size_t count, capacity;
	struct ts_component_option *first, *last; /* options of components */
	struct ts_arena arena;
};

int ts_component_options_add_verb(struct ts_component_options *all, const struct ts_option *options,
				  size_t count);

/*
 * Adds the options of one component. Components may share an option if both declare the same spec
 * under the same name.
 */
int ts_component_options_add(struct ts_component_options *all, const char *component,
			     const struct ts_option_spec *specs, size_t count);

/* After parsing: an option that was given must belong to a component that is_chosen(). */
int ts_component_options_check(const struct ts_component_options *all,
			       bool (*is_chosen)(const void *context, const char *component),
			       const void *context);

/* Stores the given values in `base`; `all` keeps ownership of lists. */
int ts_component_options_store(const struct ts_component_options *all,
			       const struct ts_option_spec *specs, size_t count, void *base);

void ts_component_options_release(struct ts_component_options *all);

#endif
