/* SPDX-License-Identifier: Apache-2.0 */
/* Totals of a trace: rows, tables, time range, entities. Chunk headers answer most of it. */
#ifndef TS_TRACE_TRACE_TOTALS_H
#define TS_TRACE_TRACE_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/reader.h>

#include "base/memory.h"

TS_DEFINE_AUTO(ts_reader, ts_reader_close);
TS_DEFINE_AUTO(ts_batch, ts_batch_free);

/* A table's bit in a set of tables. */
#define TS_TABLE_BIT(table) (UINT64_C(1) << (table))

/* The tables whose rows count as "events". */
#define TS_TRACE_COUNTED                                                   \
	(TS_TABLE_BIT(TS_TABLE_SLICE) | TS_TABLE_BIT(TS_TABLE_GPU_OP) |    \
	 TS_TABLE_BIT(TS_TABLE_API_CALL) | TS_TABLE_BIT(TS_TABLE_SAMPLE) | \
	 TS_TABLE_BIT(TS_TABLE_MARK) | TS_TABLE_BIT(TS_TABLE_COUNTER) |    \
	 TS_TABLE_BIT(TS_TABLE_ALLOCATION) | TS_TABLE_BIT(TS_TABLE_TORCH_TRACE))

/* All EVENT tables that hold rows. */
uint64_t ts_trace_event_tables(const struct ts_reader *reader);

struct ts_trace_range {
	bool any; /* false: no row has a time, and the rest is 0 */
	int64_t from, to;
};

/*
 * The smallest start and largest end in trace time over all EVENT tables except `loss`, which may
 * lie outside of what was recorded. A row without an end counts with its start; only chunks with
 * such rows are read.
 */
int ts_trace_range(struct ts_reader *reader, struct ts_trace_range *ret_range,
		   struct ts_error *err);

/* The smallest start of the same rows, without reading anything; 0 for an empty trace. */
int64_t ts_trace_start(const struct ts_reader *reader);

/* Distinct ids of an ENTITY table. */
uint64_t ts_trace_entities(struct ts_reader *reader, enum ts_table_id table);

/* What the rows of `loss` say is missing. */
struct ts_trace_losses {
	uint64_t events;  /* lost, as far as they were counted */
	uint64_t unknown; /* rows without a count: nobody knows how much is missing */
};

/* What summaries show of a trace. */
struct ts_trace_totals {
	uint64_t events;
	uint64_t sources, threads, devices, streams; /* ids in use */
	uint64_t processes;                          /* likewise, without the recorder */
	struct ts_trace_losses lost;
};
int ts_trace_totals(struct ts_reader *reader, struct ts_trace_totals *ret_totals,
		    struct ts_error *err);

#endif
