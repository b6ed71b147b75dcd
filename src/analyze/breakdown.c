/* SPDX-License-Identifier: Apache-2.0 */
/* `breakdown`: idle, compute, communication and memory time of each rank. */
#include "analyze/analyze.h"
#include "analyze/busy.h"

static const struct ts_result_column columns[] = {
	{ "rank", "rank", TS_CELL_INTEGER },
	{ "idle_us", "idle", TS_CELL_TIME },
	{ "compute_us", "compute", TS_CELL_TIME },
	{ "non_compute_us", "non-compute", TS_CELL_TIME },
	{ "kernel_time_us", "kernel time", TS_CELL_TIME },
	{ "idle_pct", "idle %", TS_CELL_PERCENT },
	{ "compute_pct", "compute %", TS_CELL_PERCENT },
	{ "non_compute_pct", "non-compute %", TS_CELL_PERCENT },
	{ "busy_us", NULL, TS_CELL_TIME },
	{ "compute_exclusive_us", NULL, TS_CELL_TIME },
	{ "compute_overlapped_us", NULL, TS_CELL_TIME },
	{ "communication_us", "communication", TS_CELL_TIME },
	{ "communication_exclusive_us", "comm. alone", TS_CELL_TIME },
	{ "communication_overlapped_us", NULL, TS_CELL_TIME },
	{ "communication_pct", NULL, TS_CELL_PERCENT },
	{ "memory_us", "memory", TS_CELL_TIME },
	{ "memory_exclusive_us", "memory alone", TS_CELL_TIME },
	{ "memory_overlapped_us", NULL, TS_CELL_TIME },
	{ "memory_pct", NULL, TS_CELL_PERCENT },
	{ "other_us", NULL, TS_CELL_TIME },
	{ "other_exclusive_us", NULL, TS_CELL_TIME },
	{ "other_overlapped_us", NULL, TS_CELL_TIME },
	{ "other_pct", NULL, TS_CELL_PERCENT },
	{ "commands", NULL, TS_CELL_INTEGER },
};

/* Time of a class, time with only that class, and the difference. */
static void put_class(struct ts_result_table *table, const struct ts_busy *busy,
		      enum ts_command_class class, const int64_t *combined_ns)
{
	int64_t alone_ns = combined_ns[TS_BUSY_CLASS(class)];

	if (class != TS_CLASS_COMPUTE)
		ts_cell_time(table, busy->class_ns[class]);
	ts_cell_time(table, alone_ns);
	ts_cell_time(table, ts_ns_between(alone_ns, busy->class_ns[class]));
	if (class != TS_CLASS_COMPUTE)
		ts_cell_share(table, busy->class_ns[class], ts_busy_window(busy));
}

static void put_rank(struct ts_result_table *table, int64_t rank, const struct ts_busy *busy)
{
	int64_t window_ns = ts_busy_window(busy);
	int64_t idle_ns = ts_ns_between(busy->busy_ns, window_ns);
	int64_t compute_ns = busy->class_ns[TS_CLASS_COMPUTE];
	int64_t rest_ns = ts_ns_between(compute_ns, busy->busy_ns);
	int64_t combined_ns[TS_BUSY_ALL + 1];

	ts_busy_sweep(busy, TS_BUSY_ALL, combined_ns);
	ts_cell_integer(table, rank);
	ts_cell_time(table, idle_ns);
	ts_cell_time(table, compute_ns);
	ts_cell_time(table, rest_ns);
	ts_cell_time(table, window_ns);
	ts_cell_share(table, idle_ns, window_ns);
	ts_cell_share(table, compute_ns, window_ns);
	ts_cell_share(table, rest_ns, window_ns);
	ts_cell_time(table, busy->busy_ns);
	put_class(table, busy, TS_CLASS_COMPUTE, combined_ns);
	put_class(table, busy, TS_CLASS_COMMUNICATION, combined_ns);
	put_class(table, busy, TS_CLASS_MEMORY, combined_ns);
	put_class(table, busy, TS_CLASS_OTHER, combined_ns);
	ts_cell_integer(table, (int64_t)busy->rows);
}

static int run(struct ts_analyze_request *request, struct ts_result *result, struct ts_error *err)
{
	struct ts_result_table *table =
		ts_result_table(result, "breakdown", columns, TS_ARRAY_SIZE(columns));
	const struct ts_work *work = request->work;

	table->details = "memory_exclusive_us communication_exclusive_us memory_us "
			 "non_compute_pct kernel_time_us";
	for (uint32_t rank = 0; rank < work->rank_count; rank++) {
		TS_SCOPED(ts_busy) busy = { 0 };
		int rc = ts_busy_init(&busy, work, rank, err);

		if (rc)
			return rc;
		if (busy.rows > 0)
			put_rank(table, work->ranks[rank].rank, &busy);
	}
	ts_busy_note_idle(work, result);
	return ts_result_status(result, err);
}

const struct ts_analysis ts_analysis_breakdown = {
	.name = "breakdown",
	.summary = "idle, compute, communication and memory time of each rank",
	.example = "run.sbt breakdown",
	.run = run,
};
