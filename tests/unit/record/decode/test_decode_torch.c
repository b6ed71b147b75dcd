/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of torch_trace, and device times that come later, too late, or never. */
#include <math.h>

#include "unit/record/decode/decode_support.h"

#define HELD_MOST 131072

static struct ts_live_torch plain_torch(uint64_t position)
{
	return (struct ts_live_torch){ .serial = ts_live_torch_serial(0, position),
				       .start_ns = 1000,
				       .duration_ns = 2500000000,
				       .step = 3,
				       .sequence = 4,
				       .allocated = 1.5,
				       .max_allocated = 2.25,
				       .cached = 512,
				       .device_stage = ts_live_device_kind(1, TS_STAGE_BACKWARD),
				       .rank = 6,
				       .device_ns = TS_ABSENT };
}

static void put_torch(struct fixture *fixture, const struct ts_live_torch *torch,
		      const char *module)
{
	TS_SCOPED(ts_text) words = { 0 };

	put_fixed(&words, torch, sizeof(*torch));
	put_names(&words, module, "");
	put_fields(fixture, TS_LIVE_TORCH, 0, &words);
}

static void put_time(struct fixture *fixture, uint64_t serial, int64_t device_ns)
{
	struct ts_live_torch_time time = { serial, device_ns };
	TS_SCOPED(ts_text) words = { 0 };

	put_fixed(&words, &time, sizeof(time));
	put_fields(fixture, TS_LIVE_TORCH_TIME, 0, &words);
}

/* Rows with a device time, and the sum of these in seconds. */
static int64_t timed_rows(const char *path, double *ret_seconds)
{
	struct rows rows = rows_open(path, TS_TABLE_TORCH_TRACE);
	struct ts_torch_trace_row row;
	int64_t count = 0;

	*ret_seconds = 0;
	while (rows_next(&rows, &row)) {
		count += row.device_time > 0;
		*ret_seconds += row.device_time;
	}
	rows_close(&rows);
	return count;
}

TS_TEST(every_value_is_in_its_column)
{
	struct ts_live_torch torch = plain_torch(0);
	struct ts_torch_trace_row row;
	struct fixture fixture;
	struct rows rows;

	start(&fixture);
	torch.device_ns = 500000000;
	put_torch(&fixture, &torch, "encoder.layers.0");
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_TORCH_TRACE);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_STR(rows_text(&rows, row.module), "encoder.layers.0");
	TS_CHECK_INT(row.step, 3);
	TS_CHECK_INT(row.seq, 4);
	TS_CHECK_INT(row.stage, TS_STAGE_BACKWARD);
	TS_CHECK(row.allocated == 1.5 && row.max_allocated == 2.25 && row.cached == 512);
	TS_CHECK(row.duration == 2.5 && row.device_time == 0.5);
	TS_CHECK_INT(row.rank, 6);
	TS_CHECK(ts_reader_entity(rows.reader, TS_TABLE_DEVICE, row.device) != NULL);
	TS_CHECK(ts_reader_entity(rows.reader, TS_TABLE_PROCESS, row.process) != NULL);
	TS_CHECK(ts_reader_entity(rows.reader, TS_TABLE_THREAD, row.thread) != NULL);
	TS_CHECK(!rows_next(&rows, &row));
	rows_close(&rows);
}

TS_TEST(what_is_unknown_is_absent)
{
	struct ts_live_torch torch = plain_torch(0);
	struct ts_torch_trace_row row;
	struct fixture fixture;
	struct rows rows;

	start(&fixture);
	torch.step = torch.sequence = TS_ABSENT;
	torch.allocated = (double)NAN;
	torch.max_allocated = -1;
	torch.cached = (double)INFINITY;
	torch.device_stage = ts_live_device_kind(TS_LIVE_DEVICE_MASK, TS_STAGE_UNKNOWN);
	torch.rank = -1;
	torch.duration_ns = -5;
	put_torch(&fixture, &torch, "");
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_TORCH_TRACE);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_STR(rows_text(&rows, row.module), "");
	TS_CHECK_INT(row.step, TS_ABSENT);
	TS_CHECK_INT(row.seq, TS_ABSENT);
	TS_CHECK(row.allocated == 0 && row.max_allocated == 0 && row.cached == 0);
	TS_CHECK(row.duration == 0 && row.device_time == 0);
	TS_CHECK_INT(row.rank, TS_ABSENT);
	TS_CHECK_INT(row.device, 0);
	rows_close(&rows);
}

TS_TEST(device_times_come_later_and_in_any_order)
{
	struct fixture fixture;
	double seconds;

	start(&fixture);
	for (uint64_t i = 0; i < 4; i++) {
		struct ts_live_torch torch = plain_torch(i * 200);

		put_torch(&fixture, &torch, "m");
	}
	drain(&fixture);
	put_time(&fixture, ts_live_torch_serial(0, 400), 1000000000);
	put_time(&fixture, ts_live_torch_serial(0, 0), 2000000000);
	drain(&fixture);
	put_time(&fixture, ts_live_torch_serial(0, 600), 4000000000);
	/* Twice, of no row, of no ring. */
	put_time(&fixture, ts_live_torch_serial(0, 600), 8000000000);
	put_time(&fixture, ts_live_torch_serial(0, 208), 16000000000);
	put_time(&fixture, ts_live_torch_serial(9, 0), 16000000000);
	put_time(&fixture, 0, 16000000000);
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).events, 4);
	finish(&fixture);
	TS_CHECK_INT(timed_rows(fixture.path, &seconds), 3);
	TS_CHECK(seconds == 7);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_TORCH_TRACE), 4);
	TS_CHECK_INT(losses_of(fixture.path, "device times", "came after"), 4);
}

/* Their thread's ring is drained before that of the rows. */
TS_TEST(device_times_may_be_decoded_first)
{
	const uint64_t far = 1 << 20;
	struct fixture fixture;
	double seconds;

	start(&fixture);
	put_time(&fixture, ts_live_torch_serial(0, far + 400), 4000000000);
	put_time(&fixture, ts_live_torch_serial(0, far), 1000000000);
	put_time(&fixture, ts_live_torch_serial(0, far + 8), 64000000000); /* of no row */
	put_time(&fixture, ts_live_torch_serial(0, far + 200), 2000000000);
	drain(&fixture);
	for (uint64_t i = 0; i < 4; i++) {
		struct ts_live_torch torch = plain_torch(far + i * 200);

		put_torch(&fixture, &torch, "m");
	}
	drain(&fixture);
	/* Lost with a checkpoint. */
	put_time(&fixture, ts_live_torch_serial(0, far + 800), 32000000000);
	drain(&fixture);
	succeed(&fixture);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_TORCH_TRACE), 4);
	TS_CHECK_INT(timed_rows(fixture.path, &seconds), 3);
	TS_CHECK(seconds == 7);
	TS_CHECK_INT(losses_of(fixture.path, "device times", "came after"), 2);
}

TS_TEST(a_checkpoint_writes_what_is_held)
{
	struct ts_live_torch torch = plain_torch(0);
	struct fixture fixture;
	double seconds;

	start(&fixture);
	put_torch(&fixture, &torch, "m");
	drain(&fixture);
	succeed(&fixture);
	put_time(&fixture, torch.serial, 1000000000);
	drain(&fixture);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_TORCH_TRACE), 1);
	TS_CHECK_INT(timed_rows(fixture.path, &seconds), 0);
	TS_CHECK_INT(losses_of(fixture.path, "device times", "came after"), 1);
}

TS_TEST(a_device_that_lags_costs_the_times_of_the_oldest_rows)
{
	uint64_t rows = HELD_MOST + 500;
	struct fixture fixture;
	double seconds;

	start(&fixture);
	for (uint64_t i = 0; i < rows; i++) {
		struct ts_live_torch torch = plain_torch(i * 200);

		put_torch(&fixture, &torch, "m");
		if (i % 10000 == 0)
			drain(&fixture);
	}
	drain(&fixture);
	for (uint64_t i = 0; i < rows; i++) {
		put_time(&fixture, ts_live_torch_serial(0, i * 200), 1000000000);
		if (i % 10000 == 0)
			drain(&fixture);
	}
	drain(&fixture);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_TORCH_TRACE), (int64_t)rows);
	/* A quarter of those held was written at once. */
	TS_CHECK_INT(timed_rows(fixture.path, &seconds), (int64_t)rows - HELD_MOST / 4);
	TS_CHECK_INT(losses_of(fixture.path, "device times", "came after"), HELD_MOST / 4);
}

TS_TEST(hostile_records_cost_only_themselves)
{
	struct ts_live_torch torch = plain_torch(0);
	struct fixture fixture;

	start(&fixture);
	torch.device_stage = ts_live_device_kind(1, 200);
	put_torch(&fixture, &torch, "m");
	torch = plain_torch(0);
	torch.start_ns = INT64_MIN;
	torch.duration_ns = INT64_MAX;
	put_torch(&fixture, &torch, "m");
	drain(&fixture);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_TORCH_TRACE), 1);
	TS_CHECK_INT(losses_of(fixture.path, "events", "unknown kind"), 1);
}

TS_TEST(a_record_that_is_cut_damages_its_ring)
{
	struct ts_live_torch torch = plain_torch(0);
	TS_SCOPED(ts_text) words = { 0 };
	struct fixture fixture;

	start(&fixture);
	put_fixed(&words, &torch, sizeof(torch) - 8);
	put_fields(&fixture, TS_LIVE_TORCH, 0, &words);
	drain(&fixture);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_TORCH_TRACE), 0);
	TS_CHECK_INT(losses_of(fixture.path, "rings", "the ring is damaged"), 1);
}
