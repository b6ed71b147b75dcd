/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of processes: their sources, devices that several of them use, and a trace for each. */
#include "trace/extract.h"

#include "unit/record/decode/decode_support.h"

#define THIRD_AREA 79u
#define ON_DEVICE 0x10003u

static struct ts_rank rank_of(int32_t rank)
{
	return (struct ts_rank){ .launcher = 1, .rank = rank, .local_rank = -1, .world_size = 2 };
}

static void put_ranked_area(struct fixture *fixture, uint64_t area, uint32_t pid, int32_t rank)
{
	struct ts_block_area about = plain_area(area);

	about.pid = about.control.pid = pid;
	about.control.image = area;
	if (rank >= 0)
		about.control.rank = rank_of(rank);
	TS_CHECK_INT(put_block(&fixture->sink, TS_BLOCK_AREA, area, &about, sizeof(about)), 0);
}

/* A launcher (AREA), and ranks 0 and 1. */
static void start_job(struct fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->counter = STARTED + 3000;
	fixture->open = plain_open();
	fixture->sink = (struct ts_block_sink){ .append = decode, .context = fixture };
	open_file(fixture, "t.sbt");
	open_decoder(fixture);
	TS_CHECK_INT(put_area(&fixture->sink, AREA), 0);
	put_ranked_area(fixture, OTHER_AREA, PID + 1, 0);
	put_ranked_area(fixture, THIRD_AREA, PID + 2, 1);
}

/* A mark and a device, which all areas share, from a ring of an area. */
static void emit(struct fixture *fixture, uint64_t area, struct ring_side *side, bool device)
{
	TS_SCOPED(ts_text) words = { 0 };
	uint64_t leading[2] = { ON_DEVICE, 1 << 20 }, no_arguments = 0;

	put_thread(&fixture->ring, fixture->counter++, 1, PID, 0, "main");
	put_string(&words, "tick", 4);
	put_string(&words, "test", 4);
	put_words(&words, &no_arguments, 1);
	put_record(&fixture->ring, TS_LIVE_INSTANT, 0, 0, fixture->counter++,
		   (const uint64_t *)(void *)words.data, words.length / 8);
	ts_text_clear(&words);
	put_words(&words, leading, 2);
	put_string(&words, "Maker", 5);
	put_string(&words, "Fast", 4);
	put_string(&words, "GPU-1", 5);
	put_string(&words, "0", 1);
	if (device)
		put_record(&fixture->ring, TS_LIVE_DEVICE, 0, 0, fixture->counter++,
			   (const uint64_t *)(void *)words.data, words.length / 8);
	TS_CHECK_INT(put_ring(&fixture->sink, area, 0, side, &fixture->ring, 1), 0);
}

/* The rank of the source of a process or device; -1: none. `number`: of the ones found. */
static int64_t source_rank(const char *path, unsigned int table, int64_t pid, unsigned int number)
{
	struct rows rows = rows_open(path, table);
	const struct ts_source_row *source;
	int64_t id = 0, rank = -1;
	size_t cursor = 0;
	const void *row;

	while ((row = ts_reader_entity_next(rows.reader, table, &cursor, &id))) {
		const struct ts_process_row *process = row;
		const struct ts_device_row *device = row;

		if (table == TS_TABLE_PROCESS ? process->pid != pid : number-- > 0)
			continue;
		source = ts_reader_entity(rows.reader, TS_TABLE_SOURCE,
					  table == TS_TABLE_PROCESS ? process->source
								    : device->source);
		TS_CHECK(source);
		if (source->rank != TS_ABSENT) {
			rank = source->rank;
			TS_CHECK_INT(source->world_size, 2);
		}
		break;
	}
	rows_close(&rows);
	return rank;
}

TS_TEST(each_rank_is_a_source)
{
	struct ring_side sides[3] = { 0 };
	struct fixture fixture;

	start_job(&fixture);
	emit(&fixture, OTHER_AREA, &sides[1], false);
	emit(&fixture, THIRD_AREA, &sides[2], false);
	finish(&fixture);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_PROCESS, PID, 0), -1);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_PROCESS, PID + 1, 0), 0);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_PROCESS, PID + 2, 0), 1);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_SOURCE), 3);
}

TS_TEST(the_recordings_own_rank_is_that_of_all)
{
	struct fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	fixture.open = plain_open();
	fixture.open.rank = rank_of(1);
	fixture.sink = (struct ts_block_sink){ .append = decode, .context = &fixture };
	open_file(&fixture, "t.sbt");
	open_decoder(&fixture);
	TS_CHECK_INT(put_area(&fixture.sink, AREA), 0);
	put_ranked_area(&fixture, OTHER_AREA, PID + 1, 1);
	finish(&fixture);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_PROCESS, PID, 0), 1);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_PROCESS, PID + 1, 0), 1);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_SOURCE), 1);
}

/* A journal of an earlier version has no rank in its OPEN and PROCESS blocks. */
TS_TEST(older_journals_have_no_ranks)
{
	struct ts_block_process process = { .pid = PID + 5,
					    .start_time = 7,
					    .seen_counter = STARTED };
	struct fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	fixture.open = plain_open();
	fixture.sink = (struct ts_block_sink){ .append = decode, .context = &fixture };
	open_file(&fixture, "t.sbt");
	TS_CHECK_INT(ts_decoder_new(&fixture.decoder, &fixture.options, NULL), 0);
	ts_decoder_set_writer(fixture.decoder, fixture.writer, false, "t");
	TS_CHECK_INT(
		put_block(&fixture.sink, TS_BLOCK_OPEN, 0, &fixture.open, TS_BLOCK_OPEN_LEAST - 8),
		TS_EFORMAT);
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_OPEN, 0, &fixture.open, TS_BLOCK_OPEN_LEAST),
		     0);
	process.exit_status = TS_ABSENT;
	TS_CHECK_INT(
		put_block(&fixture.sink, TS_BLOCK_PROCESS, 0, &process, TS_BLOCK_PROCESS_LEAST), 0);
	/* With a rank. */
	process.pid++;
	process.rank = rank_of(0);
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_PROCESS, 0, &process, sizeof(process)), 0);
	finish(&fixture);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_PROCESS, PID + 5, 0), -1);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_PROCESS, PID + 6, 0), 0);
}

TS_TEST(ranks_that_cannot_be_are_none)
{
	struct fixture fixture;

	start_job(&fixture);
	put_ranked_area(&fixture, 80, PID + 3, 2); /* of 2 */
	finish(&fixture);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_PROCESS, PID + 3, 0), -1);
	TS_CHECK_INT(count_rows(fixture.path, TS_TABLE_SOURCE), 3);
}

/* The launcher's row is there first: the first rank takes it over, the second gets its own. */
TS_TEST(ranks_may_share_a_device)
{
	struct ring_side sides[3] = { 0 };
	struct fixture fixture;

	start_job(&fixture);
	emit(&fixture, AREA, &sides[0], true);
	emit(&fixture, OTHER_AREA, &sides[1], true);
	emit(&fixture, THIRD_AREA, &sides[2], true);
	emit(&fixture, OTHER_AREA, &sides[1], true);
	emit(&fixture, AREA, &sides[0], true);
	finish(&fixture);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_DEVICE, 0, 0), 0);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_DEVICE, 0, 1), 1);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_DEVICE, 0, 2), -1);
}

TS_TEST(a_successor_knows_the_ranks)
{
	struct ts_block_process gone = { .pid = PID + 5, .start_time = 7, .seen_counter = STARTED };
	struct ring_side sides[3] = { 0 };
	struct fixture fixture;

	start_job(&fixture);
	gone.rank = rank_of(1);
	gone.exit_status = TS_ABSENT;
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_PROCESS, 0, &gone, sizeof(gone)), 0);
	emit(&fixture, OTHER_AREA, &sides[1], true);
	emit(&fixture, THIRD_AREA, &sides[2], true);
	succeed(&fixture);
	emit(&fixture, THIRD_AREA, &sides[2], true);
	emit(&fixture, OTHER_AREA, &sides[1], true);
	gone.ended_counter = STARTED + 9000;
	gone.rank = (struct ts_rank){ 0 };
	TS_CHECK_INT(put_block(&fixture.sink, TS_BLOCK_PROCESS, 0, &gone, sizeof(gone)), 0);
	finish(&fixture);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_PROCESS, PID + 1, 0), 0);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_PROCESS, PID + 2, 0), 1);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_PROCESS, PID + 5, 0), 1);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_DEVICE, 0, 0), 0);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_DEVICE, 0, 1), 1);
	TS_CHECK_INT(source_rank(fixture.path, TS_TABLE_DEVICE, 0, 2), -1);
}

TS_TEST(a_rank_can_be_extracted)
{
	struct ts_extract_filter filter = { .pid = TS_ABSENT,
					    .source = 3,
					    .source_name = "1.sbt",
					    .from_ns = INT64_MIN,
					    .to_ns = INT64_MAX };
	struct ring_side sides[3] = { 0 };
	const struct ts_source_row *source;
	struct fixture fixture;
	struct rows rows;
	size_t cursor = 0;
	int64_t id;

	start_job(&fixture);
	emit(&fixture, AREA, &sides[0], false);
	emit(&fixture, OTHER_AREA, &sides[1], true);
	emit(&fixture, THIRD_AREA, &sides[2], true);
	finish(&fixture);
	TS_CHECK_INT(ts_extract(fixture.path, file_in_folder("1.sbt"), &filter, NULL), 0);
	rows = rows_open(file_in_folder("1.sbt"), TS_TABLE_SOURCE);
	source = ts_reader_entity_next(rows.reader, TS_TABLE_SOURCE, &cursor, &id);
	TS_CHECK(source);
	TS_CHECK_INT(source->rank, 1);
	TS_CHECK_STR(rows_text(&rows, source->name), "1.sbt");
	TS_CHECK(!ts_reader_entity_next(rows.reader, TS_TABLE_SOURCE, &cursor, &id));
	rows_close(&rows);
	TS_CHECK_INT(count_rows(file_in_folder("1.sbt"), TS_TABLE_MARK), 1);
	TS_CHECK_INT(count_rows(file_in_folder("1.sbt"), TS_TABLE_PROCESS), 1);
	TS_CHECK_INT(count_rows(file_in_folder("1.sbt"), TS_TABLE_DEVICE), 1);
	TS_CHECK_INT(source_rank(file_in_folder("1.sbt"), TS_TABLE_PROCESS, PID + 2, 0), 1);
	TS_CHECK_INT(source_rank(file_in_folder("1.sbt"), TS_TABLE_DEVICE, 0, 0), 1);
	/* Nobody has that rank. */
	filter.source = 9;
	TS_CHECK_INT(ts_extract(fixture.path, file_in_folder("9.sbt"), &filter, NULL),
		     TS_ENOTFOUND);
}
