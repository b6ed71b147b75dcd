/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects rows. Names, numbers and globs are resolved to sets of ids first, so that testing a row
 * only looks up integers. Each text is matched once, when its id is first seen. One thread at a
 * time.
 */
#ifndef TS_TRACE_FILTER_H
#define TS_TRACE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/memory.h"
#include "trace/idset.h"
#include "trace/row.h"

/* The items of one list are alternatives; a row must match every list that is not empty. */
struct ts_filter_spec {
	struct ts_patterns names;      /* globs */
	struct ts_patterns categories; /* globs */
	struct ts_patterns devices;    /* numbers */
	struct ts_patterns streams;    /* numbers */
	struct ts_patterns processes;  /* pids, or globs of names */
	struct ts_patterns threads;    /* tids, or globs of names */
};

struct ts_filter;

/* The patterns must outlive the filter. A device or stream that is not a number: TS_EINVAL. */
int ts_filter_new(struct ts_filter **ret_filter, struct ts_reader *reader,
		  const struct ts_filter_spec *spec, struct ts_error *err);
void ts_filter_free(struct ts_filter *filter);
TS_DEFINE_AUTO(ts_filter, ts_filter_free);

/* Can any row of this table pass? One without a stream column cannot, if streams are asked for. */
bool ts_filter_table(const struct ts_filter *filter, unsigned int table);

/* The columns of the table that the filter tests. */
uint64_t ts_filter_mask(const struct ts_filter *filter, unsigned int table);

/* Does the row pass? The batch must hold the columns of the mask. */
bool ts_filter_batch(const struct ts_filter *filter, const struct ts_batch *batch, uint32_t row);
bool ts_filter_row(const struct ts_filter *filter, const struct ts_row *row);

#endif
