/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls, device commands, queues and their clocks: their rows, when they are written, and in which
 * clock.
 */
#include "unit/record/decode/decode_support.h"

/* Counter to trace time if the host's clock has no anchors: one count is one ns. */
static int64_t at(uint64_t counter)
{
	return 5000000000 + (int64_t)counter - (int64_t)STARTED;
}

/* Device clocks in this test: device_ns = counter + SHIFT. */
#define SHIFT 7000000000

static struct op plain_op(uint64_t correlation, uint64_t counter)
{
	return (struct op){ .name = "saxpy",
			    .correlation = correlation,
			    .kind = TS_GPU_OP_KERNEL,
			    .stream = 3,
			    .context = 1,
			    .queued = (int64_t)counter + SHIFT,
			    .submitted = (int64_t)counter + SHIFT + 10,
			    .start = (int64_t)counter + SHIFT + 20,
			    .end = (int64_t)counter + SHIFT + 120,
			    .bytes = TS_ABSENT };
}

static void put_plain_clock(struct fixture *fixture, uint32_t device, uint64_t counter)
{
	put_device_clock(fixture, device, counter, (int64_t)counter + SHIFT, 500);
}

TS_TEST(calls_are_rows_with_result_and_arrow)
{
	struct ts_api_call_row call;
	struct fixture fixture;
	uint64_t ended;
	struct rows rows;

	start(&fixture);
	ended = fixture.counter;
	put_call(&fixture, "clEnqueueNDRangeKernel", 400, 17, 0);
	put_call(&fixture, "clFinish", 100, 0, -5);
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).events, 2);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_API_CALL);
	TS_CHECK(rows_next(&rows, &call));
	TS_CHECK_INT(call.start, at(ended - 400));
	TS_CHECK_INT(call.duration, 400);
	TS_CHECK_STR(rows_text(&rows, call.name), "clEnqueueNDRangeKernel");
	TS_CHECK_STR(rows_text(&rows, call.category), "opencl");
	TS_CHECK_INT(call.correlation, 17);
	TS_CHECK_INT(call.result, 0);
	TS_CHECK_INT(call.arrow, TS_ARROW_OUT);
	TS_CHECK_INT(ts_reader_shape(rows.reader, call.shape)->field_count, 1);
	TS_CHECK(rows_next(&rows, &call));
	TS_CHECK_INT(call.correlation, TS_ABSENT);
	TS_CHECK_INT(call.result, -5);
	TS_CHECK_INT(call.arrow, TS_ARROW_NONE);
	TS_CHECK_INT(call.shape, 0);
	TS_CHECK(!rows_next(&rows, &call));
	rows_close(&rows);
	/* The first call submitted a command that never arrived. */
	TS_CHECK_INT(losses_of(fixture.path, "gpu_op", "their call was recorded"), 1);
}

TS_TEST(commands_are_in_the_clock_of_their_device)
{
	const uint64_t waits[2] = { 15, 16 };
	struct op op = plain_op(17, STARTED + 5000);
	const struct ts_stream_row *stream;
	struct ts_clock_sync_row sync;
	struct ts_gpu_op_row row;
	struct fixture fixture;
	struct rows rows;
	bool found = false;

	start(&fixture);
	put_plain_clock(&fixture, 2, STARTED + 4000);
	put_stream(&fixture, 2, 3, 1, -1, 1, "copies");
	op.device = 2;
	op.waits = waits;
	op.wait_count = 2;
	op.more_waits = 5;
	op.grid[0] = 8;
	op.grid[1] = op.grid[2] = 1;
	op.block[0] = 64;
	op.bytes = 4096;
	put_call(&fixture, "clEnqueueNDRangeKernel", 400, 17, 0);
	put_op(&fixture, &op);
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).events, 2);
	finish(&fixture);

	rows = rows_open(fixture.path, TS_TABLE_GPU_OP);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.start, at(STARTED + 5020));
	TS_CHECK_INT(row.duration, 100);
	TS_CHECK_INT(row.queued, at(STARTED + 5000));
	TS_CHECK_INT(row.submitted, at(STARTED + 5010));
	TS_CHECK_INT(row.kind, TS_GPU_OP_KERNEL);
	TS_CHECK_STR(rows_text(&rows, row.name), "saxpy");
	TS_CHECK_INT(row.correlation, 17);
	TS_CHECK_INT(row.arrow, TS_ARROW_IN);
	TS_CHECK_INT(row.context, 1);
	TS_CHECK_INT(row.grid_x, 8);
	TS_CHECK_INT(row.block_x, 64);
	TS_CHECK_INT(row.block_y, TS_ABSENT);
	TS_CHECK_INT(row.bytes, 4096);
	TS_CHECK(row.process != 0 && row.device != 0);
	TS_CHECK_STR(rows_text(&rows, rows_value(&rows, 0)), "[15,16]");
	TS_CHECK_INT(rows_value(&rows, 1), 5);
	/* Its chunk has its own clock. */
	TS_CHECK_INT(ts_reader_chunk(rows.reader, rows.chunk - 1)->clock, 3);
	stream = ts_reader_entity(rows.reader, TS_TABLE_STREAM, row.stream);
	TS_CHECK_INT(stream->number, 3);
	TS_CHECK_INT(stream->device, row.device);
	TS_CHECK_INT(stream->priority, -1);
	TS_CHECK_INT(stream->out_of_order, 1);
	TS_CHECK_STR(rows_text(&rows, stream->name), "copies");
	rows_close(&rows);
	rows = rows_open(fixture.path, TS_TABLE_CLOCK_SYNC);
	while (rows_next(&rows, &sync))
		if (sync.clock == 3) {
			found = true;
			TS_CHECK_INT(sync.time, (int64_t)STARTED + 4000 + SHIFT);
			TS_CHECK_INT(sync.reference, at(STARTED + 4000));
			TS_CHECK_INT(sync.uncertainty_ns, 500);
			TS_CHECK_STR(rows_text(&rows, sync.method), "bracket");
		}
	TS_CHECK(found);
	rows_close(&rows);
	TS_CHECK_INT(losses_of(fixture.path, "gpu_op", ""), 0);
}

/*
 * The host's counter runs 0.1 % fast: anchors show that, and a device's clock point between two is
 * converted accordingly.
 */
TS_TEST(points_lie_between_anchors)
{
	struct op op = plain_op(1, STARTED + 500000);
	struct ts_clock_sync_row sync;
	struct ts_api_call_row call;
	struct ts_gpu_op_row row;
	struct fixture fixture;
	struct rows rows;
	bool found = false;

	start(&fixture);
	put_anchor(&fixture, STARTED + 1, STARTED + 1);
	fixture.counter = STARTED + 500000;
	put_plain_clock(&fixture, 0, STARTED + 500000);
	put_call(&fixture, "clEnqueueNDRangeKernel", 0, 1, 0);
	put_op(&fixture, &op);
	drain(&fixture);
	put_anchor(&fixture, STARTED + 1001001, STARTED + 1000001);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_CLOCK_SYNC);
	while (rows_next(&rows, &sync))
		if (sync.clock == 3) {
			found = true;
			TS_CHECK(llabs(sync.reference - (5000000000 + 499500)) <= 2);
		}
	TS_CHECK(found);
	rows_close(&rows);
	/* Call and command agree. */
	rows = rows_open(fixture.path, TS_TABLE_API_CALL);
	TS_CHECK(rows_next(&rows, &call));
	rows_close(&rows);
	rows = rows_open(fixture.path, TS_TABLE_GPU_OP);
	TS_CHECK(rows_next(&rows, &row));
	rows_close(&rows);
	TS_CHECK(llabs(call.start - row.queued) <= 2);
}

/*
 * A save comes between the clock point and its anchor: the file is readable then and exact in the
 * end, with a successor as well.
 */
TS_TEST(a_save_does_not_spoil_points)
{
	for (int succeeds = 0; succeeds < 2; succeeds++) {
		struct op op = plain_op(1, STARTED + 500000);
		struct ts_gpu_op_row row;
		struct fixture fixture;
		struct rows rows;

		start(&fixture);
		put_anchor(&fixture, STARTED + 1, STARTED + 1);
		fixture.counter = STARTED + 500000;
		put_plain_clock(&fixture, 0, STARTED + 500000);
		put_op(&fixture, &op);
		drain(&fixture);
		if (succeeds)
			succeed(&fixture);
		TS_CHECK_INT(ts_decoder_seal(fixture.decoder), 0);
		TS_CHECK_INT(ts_writer_save(fixture.writer, NULL), 0);
		rows = rows_open(fixture.path, TS_TABLE_GPU_OP);
		TS_CHECK(rows_next(&rows, &row));
		TS_CHECK_INT(row.queued, at(STARTED + 500000));
		rows_close(&rows);
		put_anchor(&fixture, STARTED + 1001001, STARTED + 1000001);
		finish(&fixture);
		rows = rows_open(fixture.path, TS_TABLE_GPU_OP);
		TS_CHECK(rows_next(&rows, &row));
		TS_CHECK(llabs(row.queued - (5000000000 + 499500)) <= 2);
		rows_close(&rows);
	}
}

TS_TEST(clocks_of_devices_and_areas_are_their_own)
{
	struct op op = plain_op(0, STARTED + 5000);
	struct ts_gpu_op_row row;
	struct fixture fixture;
	struct rows rows;
	int seen = 0;

	start(&fixture);
	put_plain_clock(&fixture, 0, STARTED + 4000);
	put_device_clock(&fixture, 1, STARTED + 4000, 100, 1);
	for (int i = 0; i < 200; i++) {
		op.device = i % 2;
		op.start = op.device ? 1000 + i : (int64_t)STARTED + 5000 + i + SHIFT;
		op.end = op.start + 10;
		op.queued = op.submitted = TS_ABSENT;
		put_op(&fixture, &op);
	}
	drain(&fixture);
	put_thread(&fixture.ring, fixture.counter++, 1, PID + 1, 0, "main");
	put_device_clock(&fixture, 0, STARTED + 4000, 100, 1);
	op.device = 0;
	op.start = 5000;
	op.end = 6000;
	put_op(&fixture, &op);
	drain_area(&fixture, OTHER_AREA);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_GPU_OP);
	while (rows_next(&rows, &row)) {
		uint32_t clock = ts_reader_chunk(rows.reader, rows.chunk - 1)->clock;

		/* Three chunks hold all rows. */
		TS_CHECK(clock >= 3 && clock <= 5);
		if (clock == 3)
			TS_CHECK_INT(row.start, at(STARTED + 5000 + 2 * (rows.row - 1)));
		if (clock == 4)
			TS_CHECK_INT(row.start, at(STARTED + 4000 + 900 + 2 * rows.row - 1));
		if (clock == 5)
			TS_CHECK_INT(row.start, at(STARTED + 4000 + 4900));
		seen++;
	}
	TS_CHECK_INT(seen, 201);
	for (size_t i = 0; i < ts_reader_chunk_count(rows.reader); i++)
		seen -= ts_reader_chunk(rows.reader, i)->table == TS_TABLE_GPU_OP;
	TS_CHECK_INT(seen, 198);
	rows_close(&rows);
}

TS_TEST(commands_without_times_are_counted_or_placed)
{
	struct op op = plain_op(1, STARTED + 5000);
	struct ts_gpu_op_row row;
	struct fixture fixture;
	struct rows rows;

	start(&fixture);
	put_plain_clock(&fixture, 0, STARTED + 4000);
	op.start = op.end = TS_ABSENT;
	put_op(&fixture, &op);
	op.queued = op.submitted = TS_ABSENT;
	put_op(&fixture, &op);
	op.start = INT64_MAX;
	op.end = INT64_MIN + 5;
	put_op(&fixture, &op);
	op.start = (int64_t)STARTED + 6000 + SHIFT;
	op.end = op.start - 500;
	put_op(&fixture, &op);
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).events, 2);
	TS_CHECK_INT(counts(&fixture).lost, 2);
	finish(&fixture);
	TS_CHECK_INT(count_lost(fixture.path, "a device command without a time"), 2);
	rows = rows_open(fixture.path, TS_TABLE_GPU_OP);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.start, at(STARTED + 5010));
	TS_CHECK_INT(row.duration, 0);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.start, at(STARTED + 6000));
	TS_CHECK_INT(row.duration, 0);
	TS_CHECK(!rows_next(&rows, &row));
	rows_close(&rows);
}

/*
 * The device's clock offset is unknown: the command's own end is used until a clock point arrives.
 */
TS_TEST(a_clock_that_nobody_tells_of_is_assumed)
{
	for (int reported = 0; reported < 2; reported++) {
		struct op op = plain_op(1, STARTED + 5000);
		struct ts_gpu_op_row row;
		struct fixture fixture;
		struct rows rows;

		start(&fixture);
		fixture.counter = STARTED + 9000;
		put_op(&fixture, &op);
		if (reported)
			put_plain_clock(&fixture, 0, STARTED + 9500);
		drain(&fixture);
		finish(&fixture);
		rows = rows_open(fixture.path, TS_TABLE_GPU_OP);
		TS_CHECK(rows_next(&rows, &row));
		TS_CHECK_INT(row.start, reported ? at(STARTED + 5020) : at(STARTED + 8900));
		TS_CHECK_INT(row.duration, 100);
		rows_close(&rows);
	}
}

TS_TEST(windows_count_when_a_command_was_given)
{
	static const struct {
		uint64_t queued;
		bool inside;
	} cases[] = { { 4000, false }, { 5500, true }, { 6500, false } };
	struct fixture fixture;

	start(&fixture);
	put_plain_clock(&fixture, 0, STARTED + 4000);
	drain(&fixture);
	put_window(&fixture, TS_LIVE_WINDOW_CLOSE, STARTED + 1000);
	put_window(&fixture, TS_LIVE_WINDOW_OPEN, STARTED + 5000);
	put_window(&fixture, TS_LIVE_WINDOW_CLOSE, STARTED + 6000);
	/* All of them arrive much later. */
	fixture.counter = STARTED + 90000;
	for (size_t i = 0; i < TS_ARRAY_SIZE(cases); i++) {
		struct op op = plain_op(i + 1, STARTED + cases[i].queued);

		put_op(&fixture, &op);
		drain(&fixture);
		TS_CHECK_INT(counts(&fixture).outside, (uint64_t)(i + 1) - (i >= 1));
	}
	/* Kept, since its submission time is unknown. */
	{
		struct op op = plain_op(9, STARTED + 6500);

		op.queued = TS_ABSENT;
		put_op(&fixture, &op);
		drain(&fixture);
	}
	TS_CHECK_INT(counts(&fixture).events, 2);
	finish(&fixture);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_GPU_OP), 2);
}

TS_TEST(correlations_of_processes_do_not_meet)
{
	const uint64_t wait = 1;
	struct op op = plain_op(2, STARTED + 5000);
	struct ts_gpu_op_row row;
	struct ts_api_call_row call;
	struct fixture fixture;
	struct rows rows;

	start(&fixture);
	put_call(&fixture, "clEnqueueNDRangeKernel", 1, 2, 0);
	drain(&fixture);
	put_thread(&fixture.ring, fixture.counter++, 1, PID + 1, 0, "main");
	put_plain_clock(&fixture, 0, STARTED + 4000);
	op.waits = &wait;
	op.wait_count = 1;
	put_op(&fixture, &op);
	drain_area(&fixture, OTHER_AREA);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_API_CALL);
	TS_CHECK(rows_next(&rows, &call));
	TS_CHECK_INT(call.correlation, 2);
	rows_close(&rows);
	rows = rows_open(fixture.path, TS_TABLE_GPU_OP);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.correlation, (INT64_C(1) << 32) + 2);
	TS_CHECK_STR(rows_text(&rows, rows_value(&rows, 0)), "[4294967297]");
	rows_close(&rows);
}

TS_TEST(losses_and_facts_are_rows)
{
	uint64_t count = 7;
	struct ts_meta_row meta;
	struct fixture fixture;
	struct rows rows;
	int found = 0;

	start(&fixture);
	put_texts(&fixture, TS_LIVE_LOST, &count, 1, "images", "not captured");
	put_texts(&fixture, TS_LIVE_LOST, &count, 1, "events", "no more room");
	put_texts(&fixture, TS_LIVE_FACT, NULL, 0, "opencl", "{ \"layer\": true }");
	put_texts(&fixture, TS_LIVE_FACT, NULL, 0, "opencl", "{ \"layer\": true }");
	put_texts(&fixture, TS_LIVE_FACT, NULL, 0, "odd", "{no json");
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).lost, 7);
	finish(&fixture);
	TS_CHECK_INT(losses_of(fixture.path, "images", "not captured"), 7);
	TS_CHECK_INT(losses_of(fixture.path, "events", "no more room"), 7);
	rows = rows_open(fixture.path, TS_TABLE_META);
	while (rows_next(&rows, &meta)) {
		if (strcmp(rows_text(&rows, meta.key), "opencl") == 0) {
			TS_CHECK_STR(rows_text(&rows, meta.value), "{\"layer\":true}");
			TS_CHECK(meta.process != 0);
			found++;
		}
		if (strcmp(rows_text(&rows, meta.key), "odd") == 0) {
			TS_CHECK_STR(rows_text(&rows, meta.value), "\"{no json\"");
			found += 10;
		}
	}
	TS_CHECK_INT(found, 11);
	rows_close(&rows);
}

/* Ids, clocks, queues and pending calls pass to a successor, in the same file. */
TS_TEST(a_successor_goes_on)
{
	struct op op = plain_op(1, STARTED + 5000);
	struct ts_gpu_op_row first, second;
	struct fixture fixture;
	struct rows rows;

	start(&fixture);
	put_plain_clock(&fixture, 0, STARTED + 4000);
	put_stream(&fixture, 0, 3, 1, 5, 0, "main");
	put_texts(&fixture, TS_LIVE_FACT, NULL, 0, "opencl", "1");
	put_call(&fixture, "clEnqueueNDRangeKernel", 1, 1, 0);
	put_call(&fixture, "clEnqueueNDRangeKernel", 1, 2, 0);
	put_call(&fixture, "clEnqueueNDRangeKernel", 1, 3, 0);
	put_op(&fixture, &op);
	drain(&fixture);
	succeed(&fixture);
	op = plain_op(2, STARTED + 8000);
	put_op(&fixture, &op);
	put_texts(&fixture, TS_LIVE_FACT, NULL, 0, "opencl", "1");
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_GPU_OP);
	TS_CHECK(rows_next(&rows, &first) && rows_next(&rows, &second));
	TS_CHECK_INT(second.start, at(STARTED + 8020));
	TS_CHECK_INT(first.stream, second.stream);
	TS_CHECK_INT(first.device, second.device);
	TS_CHECK_INT(ts_reader_chunk(rows.reader, rows.chunk - 1)->clock, 3);
	rows_close(&rows);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_STREAM), 2);
	TS_CHECK_INT(losses_of(fixture.path, "gpu_op", ""), 1);
}

/* After a rotation the new file has everything that its rows need. */
TS_TEST(another_file_is_whole)
{
	struct op op = plain_op(1, STARTED + 5000);
	const struct ts_stream_row *stream;
	struct ts_gpu_op_row row;
	struct ts_meta_row meta;
	struct fixture fixture;
	struct rows rows;
	int facts = 0;

	start(&fixture);
	put_plain_clock(&fixture, 0, STARTED + 4000);
	put_stream(&fixture, 0, 3, 1, 5, 0, "main");
	put_texts(&fixture, TS_LIVE_FACT, NULL, 0, "opencl", "1");
	put_op(&fixture, &op);
	drain(&fixture);
	TS_CHECK_INT(ts_decoder_seal(fixture.decoder), 0);
	TS_CHECK_INT(ts_writer_finish(fixture.writer, NULL), 0);
	ts_writer_close(fixture.writer);
	open_file(&fixture, "t2.sbt");
	TS_CHECK_INT(ts_decoder_set_writer(fixture.decoder, fixture.writer, true, "t2"), 0);
	put_op(&fixture, &op);
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_GPU_OP);
	TS_CHECK(rows_next(&rows, &row));
	TS_CHECK_INT(row.start, at(STARTED + 5020));
	stream = ts_reader_entity(rows.reader, TS_TABLE_STREAM, row.stream);
	TS_CHECK_STR(rows_text(&rows, stream->name), "main");
	TS_CHECK(ts_reader_entity(rows.reader, TS_TABLE_DEVICE, row.device) != NULL);
	TS_CHECK(ts_reader_entity(rows.reader, TS_TABLE_PROCESS, row.process) != NULL);
	rows_close(&rows);
	rows = rows_open(fixture.path, TS_TABLE_META);
	while (rows_next(&rows, &meta))
		facts += strcmp(rows_text(&rows, meta.key), "opencl") == 0;
	TS_CHECK_INT(facts, 1);
	rows_close(&rows);
}

TS_TEST(queues_and_points_without_end_take_bounded_memory)
{
	struct op op = plain_op(0, STARTED + 5000);
	struct fixture fixture;

	start(&fixture);
	for (uint32_t i = 0; i < 70000; i++) {
		op.stream = i;
		put_op(&fixture, &op);
		if (i % 1000 == 0)
			drain(&fixture);
	}
	/* Points less than a ms apart are dropped. */
	for (uint64_t i = 0; i < 5000; i++)
		put_plain_clock(&fixture, 0, STARTED + 4000 + i * 1000);
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).events, 70000);
	finish(&fixture);
	TS_CHECK(count_rows(fixture.path, TS_TABLE_CLOCK_SYNC) < 20);
}

/* Any word of any record may be arbitrary. */
TS_TEST(hostile_records_spoil_nobody_else)
{
	static const uint64_t values[] = { 0,          1,           UINT64_MAX, UINT64_C(1) << 63,
					   0xffffffff, 0x100000000, INT64_MAX,  8193 };
	struct op op = plain_op(1, STARTED + 5000);
	const uint64_t waits[3] = { 1, 2, 3 };
	TS_SCOPED(ts_text) good = { 0 };
	struct fixture fixture;
	uint64_t count = 3;
	size_t words;

	start(&fixture);
	op.waits = waits;
	op.wait_count = 3;
	put_plain_clock(&fixture, 0, STARTED + 4000);
	put_stream(&fixture, 0, 3, 1, 5, 0, "main");
	put_texts(&fixture, TS_LIVE_FACT, NULL, 0, "opencl", "[1,2]");
	put_texts(&fixture, TS_LIVE_LOST, &count, 1, "a", "b");
	put_call(&fixture, "clEnqueueNDRangeKernel", 1, 1, 0);
	put_op(&fixture, &op);
	ts_text_append(&good, fixture.ring.data, fixture.ring.length);
	drain(&fixture);
	finish(&fixture);
	words = good.length / 8;
	for (size_t word = 0; word < words; word++) {
		for (size_t i = 0; i < TS_ARRAY_SIZE(values); i++) {
			start(&fixture);
			ts_text_clear(&fixture.ring);
			ts_text_append(&fixture.ring, good.data, good.length);
			memcpy(fixture.ring.data + word * 8, &values[i], 8);
			fixture.events = 2;
			drain(&fixture);
			TS_CHECK_INT(counts(&fixture).events + counts(&fixture).lost >= 2, 1);
			put_thread(&fixture.ring, fixture.counter++, 1, PID + 1, 0, "main");
			put_plain_clock(&fixture, 0, STARTED + 4000);
			put_op(&fixture, &op);
			drain_area(&fixture, OTHER_AREA);
			finish(&fixture);
			TS_CHECK(count_rows(fixture.path, TS_TABLE_GPU_OP) >= 1);
		}
	}
}
