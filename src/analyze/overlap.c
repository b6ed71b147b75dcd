/* SPDX-License-Identifier: Apache-2.0 */
/* `overlap`: how much communication of each rank overlaps computation, and how much is exposed. */
#include "analyze/analyze.h"
#include "analyze/busy.h"

static const struct ts_result_column columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "overlap_pct", "overlap %", TS_CELL_PERCENT },
	{ "shared_us", "both", TS_CELL_TIME },
	{ "communication_us", "communication", TS_CELL_TIME },
	{ "exposed_us", "exposed", TS_CELL_TIME },
	{ "compute_us", "compute", TS_CELL_TIME },
};

static void put_rank(struct ts_result_table *table, int64_t rank, const struct ts_busy *busy)
{
	unsigned int both = TS_BUSY_CLASS(TS_CLASS_COMPUTE) | TS_BUSY_CLASS(TS_CLASS_COMMUNICATION);
	int64_t communication_ns = busy->class_ns[TS_CLASS_COMMUNICATION];
	int64_t combined_ns[TS_BUSY_ALL + 1];

	ts_busy_sweep(busy, both, combined_ns);
	ts_cell_integer(table, rank);
	ts_cell_share(table, combined_ns[both], communication_ns);
	ts_cell_time(table, combined_ns[both]);
	ts_cell_time(table, communication_ns);
	ts_cell_time(table, ts_ns_between(combined_ns[both], communication_ns));
	ts_cell_time(table, busy->class_ns[TS_CLASS_COMPUTE]);
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct ts_result_table *table =
		ts_result_table(result, "overlap", columns, TS_ARRAY_SIZE(columns));
	const struct ts_work *work = request->work;
	bool any = false;

	for (uint32_t rank = 0; rank < work->rank_count; rank++) {
		TS_SCOPED(ts_busy) busy = { 0 };
		int rc = ts_busy_init(&busy, work, rank, err);

		if (rc)
			return rc;
		if (busy.rows == 0)
			continue;
		put_rank(table, work->ranks[rank].rank, &busy);
		any |= busy.span_count[TS_CLASS_COMMUNICATION] > 0;
	}
	ts_busy_note(work, result);
	if (!any && ts_result_rows(table) > 0)
		ts_result_note(result, "no communication: there is nothing to overlap");
	return ts_result_status(result, err);
}

const struct ts_analysis ts_analysis_overlap = {
	.name = "overlap",
	.summary = "how much communication overlaps computation",
	.run = run,
};
