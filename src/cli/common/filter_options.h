/* SPDX-License-Identifier: Apache-2.0 */
/* --name, --category, --device, --stream, --process and --thread as a row filter. */
#ifndef TS_CLI_COMMON_FILTER_OPTIONS_H
#define TS_CLI_COMMON_FILTER_OPTIONS_H

#include "cli/common/options.h"
#include "trace/filter.h"

/* The strings of each option; see struct ts_filter_spec. */
struct ts_filter_options {
	struct ts_string_list names, categories, devices, streams, processes, threads;
};

void ts_filter_options_release(struct ts_filter_options *options);

/* `options` must outlive the filter. */
int ts_filter_options_compile(struct ts_filter **ret_filter, struct ts_reader *reader,
			      const struct ts_filter_options *options, struct ts_error *err);

#endif
