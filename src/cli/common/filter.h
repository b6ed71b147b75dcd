/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows are wanted. What the user wrote (names, numbers, globs) is resolved to sets of ids
 * first, so that a row is tested by looking up integers; texts are matched once an id, when first
 * met.
 */
#ifndef TS_CLI_COMMON_FILTER_H
#define TS_CLI_COMMON_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/memory.h"
#include "cli/common/options.h"
#include "cli/common/show.h"

/* Words of one list are alternatives; lists that are not empty must all agree. */
struct ts_filter_options {
	struct ts_word_list names;      /* globs */
	struct ts_word_list categories; /* globs */
	struct ts_word_list devices;    /* numbers */
	struct ts_word_list streams;    /* numbers */
	struct ts_word_list processes;  /* pids, or globs of names */
	struct ts_word_list threads;    /* tids, or globs of names */
};

void ts_filter_options_release(struct ts_filter_options *options);

struct ts_filter;

/* `options` must stay until free. A device that is no number: TS_EINVAL. */
int ts_filter_new(struct ts_filter **ret_filter, struct ts_reader *reader,
		  const struct ts_filter_options *options, struct ts_error *err);
void ts_filter_free(struct ts_filter *filter);
TS_DEFINE_AUTO(ts_filter, ts_filter_free);

/* Can a row of this table pass at all? A table without streams has none of --stream 7. */
bool ts_filter_table(const struct ts_filter *filter, unsigned int table);

/* Columns of the table that the tests look at. */
uint64_t ts_filter_mask(const struct ts_filter *filter, unsigned int table);

/* Does the row pass? The batch must hold the columns of the mask. */
bool ts_filter_batch(const struct ts_filter *filter, const struct ts_batch *batch, uint32_t row);
bool ts_filter_row(const struct ts_filter *filter, const struct ts_shown_row *row);

#endif
