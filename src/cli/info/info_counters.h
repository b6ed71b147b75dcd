/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of `tracesmith info --counters`: statistics of every series of every counter.
 * info_counters.c collects them, info_counters_text.c and info_counters_json.c print them.
 */
#ifndef TS_CLI_INFO_INFO_COUNTERS_H
#define TS_CLI_INFO_INFO_COUNTERS_H

#include <tracesmith/reader.h>

#include "base/arena.h"
#include "base/map.h"
#include "cli/common/filter_options.h"
#include "cli/common/show.h"
#include "trace/resample.h"
#include "trace/trace_totals.h"

/* A hostile trace may have any number of series; those beyond this limit are only counted. */
#define TS_COUNTERS_SERIES 8192

/* What a counter is about, in display order. */
enum ts_counter_subject {
	TS_COUNTER_SYSTEM,
	TS_COUNTER_PROCESS,
	TS_COUNTER_DEVICE,
	TS_COUNTER_PROCESS_ON_DEVICE,
	TS_COUNTER_THREAD,
};

struct ts_counter {
	struct ts_counter_row row; /* the first one */
	enum ts_counter_subject subject;
	bool is_rate;      /* over the time before each row */
	const char *where; /* description of the subject */
};

struct ts_counter_series {
	uint32_t counter;
	uint32_t order; /* of first appearance */
	int64_t key;    /* string id */
	uint64_t values, texts;
	uint64_t not_drawn; /* NaN, or too large for finite sums */
	int64_t first_ns, last_ns;
	/* Of its numbers. Also as integers while all of them are, since doubles are not exact. */
	double least, greatest, newest;
	int64_t least_integer, greatest_integer, newest_integer;
	bool is_real;
	int64_t newest_text; /* string id; 0: none */
	/* The current value. */
	bool holds;
	int64_t since_ns, interval_ns;
	struct ts_resample *graph; /* NULL: no numbers */
};

struct ts_counters {
	struct ts_reader *reader;
	const char *path;
	struct ts_show show;
	struct ts_trace_range range;
	struct ts_counter *counters;
	size_t counter_count, counter_capacity;
	struct ts_counter_series *series;
	size_t series_count, series_capacity;
	uint64_t rows;
	uint64_t left_out;      /* values and rows of series beyond the limit */
	struct ts_map text_ids; /* string ids to texts: one text may have several ids */
	struct ts_strmap texts;
	struct ts_strmap keys;     /* identities of counters to indices in `counters` */
	struct ts_pairmap indices; /* (counter, text of the key) to indices in `series` */
	struct ts_arena arena;
};

/* Collects all counters that pass the filters, in one pass over their rows, in display order. */
int ts_counters_collect(struct ts_counters *counters, const char *path,
			const struct ts_filter_options *filters, struct ts_error *err);
void ts_counters_release(struct ts_counters *counters);

int ts_counters_show_text(const struct ts_counters *all, struct ts_error *err);
int ts_counters_show_json(const struct ts_counters *all, struct ts_error *err);

/* ---- units ---- */

/*
 * The unit at the end of a counter's name: "bytes", "bytes_per_s", "percent", "W"; "": no known
 * unit.
 */
const char *ts_counter_unit(const char *name, size_t length);

/* Formats a value: "1.5 GiB", "12.3 %", "350 W". */
void ts_counter_append_value(struct ts_text *out, const char *unit, double value);

#endif
