/* SPDX-License-Identifier: Apache-2.0 */
/* See filter_options.h. */
#include "cli/common/filter_options.h"

void ts_filter_options_release(struct ts_filter_options *options)
{
	ts_string_list_release(&options->names);
	ts_string_list_release(&options->categories);
	ts_string_list_release(&options->devices);
	ts_string_list_release(&options->streams);
	ts_string_list_release(&options->processes);
	ts_string_list_release(&options->threads);
}

static struct ts_patterns patterns_of(const struct ts_string_list *list)
{
	return (struct ts_patterns){ .items = list->items, .count = list->count };
}

int ts_filter_options_compile(struct ts_filter **ret_filter, struct ts_reader *reader,
			      const struct ts_filter_options *options, struct ts_error *err)
{
	const struct ts_filter_spec spec = {
		.names = patterns_of(&options->names),
		.categories = patterns_of(&options->categories),
		.devices = patterns_of(&options->devices),
		.streams = patterns_of(&options->streams),
		.processes = patterns_of(&options->processes),
		.threads = patterns_of(&options->threads),
	};

	return ts_filter_new(ret_filter, reader, &spec, err);
}
