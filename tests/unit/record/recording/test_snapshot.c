/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of a recording, at each instant that docs/live.md names: every event that was emitted
 * before is there once, whether it is in a ring, in the journal, in a chunk, or in two of them.
 */
#include "record/recording/snapshot.h"

#include <sys/file.h>

#include "live/area.h"
#include "record/recording/recording.h"
#include "trace/trace_totals.h"

#include "unit/record/record_target.h"

#define AREA_ID UINT64_C(0xabcd)

/* A recorder in small: it drains the target into its recording. */
static struct fake target;
static struct ts_area *area;
static struct ts_recording *recording;
static uint64_t rotated_at; /* events before are in an earlier file */

/* What the hook found. */
static unsigned int points, moved;
static __thread bool is_looking;
static bool is_rotating;

static void announce(void)
{
	struct ts_block block = { .type = TS_BLOCK_AREA,
				  .bytes = sizeof(struct ts_block_area),
				  .area = AREA_ID };
	struct ts_block_area about = { .control = *ts_area_control(area),
				       .pid = (uint64_t)getpid(),
				       .seen_counter = target.control->created.counter };

	TS_CHECK_INT(ts_recording_append(recording, &block, &about, NULL), 0);
}

static void start(void)
{
	struct ts_recording_options options = { .session = SESSION };
	int fd;

	make_folder();
	make_area(&target, getpid(), SESSION, AREA_ID, true);
	TS_CHECK(!ts_live_directory_open(geteuid(), 0, &fd, NULL));
	TS_CHECK_INT(ts_area_open(&area, fd, strrchr(target.path, '/') + 1, true, NULL), 0);
	close(fd);
	TS_CHECK_INT(ts_recording_open(&recording, in_folder("t.sbt"), &options, NULL), 0);
	rotated_at = 0;
	points = moved = 0;
	announce();
}

static void stop(void)
{
	ts_crash_hook = NULL;
	ts_recording_close(recording);
	ts_area_close(area);
	free_area(&target);
	remove_folder();
}

static void drain(void)
{
	struct ts_block_sink sink = ts_recording_sink(recording);

	TS_CHECK_INT(ts_area_drain(area, 0, &sink, NULL, NULL), 0);
}

/* ---- snapshots ---- */

/* Returns the result; *ret_marks is the number of events in it. */
static int look(const char *path, pid_t recorder, uint64_t *ret_marks)
{
	const struct ts_snapshot_source source = { .name = path,
						   .directory_fd = -1,
						   .recorder = recorder };
	TS_AUTO(ts_reader) reader = NULL;
	TS_AUTO(ts_batch) batch = NULL;
	struct ts_error err;
	int rc;

	is_looking = true;
	rc = ts_snapshot_recording(&reader, &source, &err);
	is_looking = false;
	if (rc == TS_EBUSY)
		return rc;
	if (rc)
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	*ret_marks = ts_reader_rows(reader, TS_TABLE_MARK);
	TS_CHECK_INT(ts_reader_rows(reader, TS_TABLE_LOSS), 0);
	TS_CHECK(ts_reader_state(reader)->finished);
	TS_CHECK_INT(ts_reader_state(reader)->damaged_bytes, 0);
	/* All of it can be read, from both files. */
	TS_CHECK_INT(ts_batch_new(&batch, reader, NULL), 0);
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++)
		TS_CHECK_INT(ts_batch_read(batch, i, TS_MASK_ALL, NULL), 0);
	return TS_OK;
}

static void expect_all(void)
{
	uint64_t marks = 0;

	TS_CHECK_INT(look(ts_recording_path(recording), getpid(), &marks), 0);
	TS_CHECK_INT(marks, target.emitted - rotated_at);
}

/*
 * At each instant of a recorder, on either of its threads: the snapshot is complete, or says that
 * the files have moved.
 */
static void on_point(const char *point)
{
	uint64_t marks = 0, before = __atomic_load_n(&target.emitted, __ATOMIC_ACQUIRE);

	(void)point;
	if (is_looking)
		return;
	__atomic_add_fetch(&points, 1, __ATOMIC_RELAXED);
	if (look(in_folder("t.sbt"), getpid(), &marks))
		__atomic_add_fetch(&moved, 1, __ATOMIC_RELAXED);
	else
		TS_CHECK(marks >= before && marks <= target.emitted);
	/* The new file may be the one. */
	if (is_rotating && exists("t2.sbt.journal")) {
		TS_CHECK_INT(look(in_folder("t2.sbt"), getpid(), &marks), 0);
		TS_CHECK_INT(marks, 0);
	}
}

TS_TEST(of_rings_alone)
{
	start();
	emit(&target, 100);
	expect_all();
	stop();
}

TS_TEST(of_rings_and_journal)
{
	start();
	for (unsigned int i = 0; i < 20; i++) {
		emit(&target, 100);
		expect_all();
		drain();
		expect_all();
	}
	stop();
}

TS_TEST(of_chunks_journal_and_rings)
{
	start();
	for (unsigned int i = 0; i < 20; i++) {
		emit(&target, 200);
		drain();
		if (i % 3 == 0)
			TS_CHECK_INT(ts_recording_checkpoint(recording, i % 2, NULL), 0);
		expect_all();
		emit(&target, 50);
		expect_all();
	}
	stop();
}

/* Between a block and `consumed`, in a half written block, and around both. */
TS_TEST(at_each_instant_of_a_drain)
{
	start();
	emit(&target, 300);
	ts_crash_hook = on_point;
	drain();
	emit(&target, 300);
	drain();
	ts_crash_hook = NULL;
	TS_CHECK(points >= 6);
	TS_CHECK_INT(moved, 0);
	stop();
}

TS_TEST(at_each_instant_of_a_checkpoint)
{
	for (int save = 0; save < 2; save++) {
		start();
		for (unsigned int i = 0; i < 2; i++) {
			emit(&target, 300);
			drain();
			emit(&target, 10);
			ts_crash_hook = on_point;
			TS_CHECK_INT(ts_recording_checkpoint(recording, save, NULL), 0);
			ts_crash_hook = NULL;
		}
		TS_CHECK(points >= 8);
		TS_CHECK_INT(moved, 0);
		stop();
	}
}

TS_TEST(at_each_instant_of_a_rotation)
{
	char next[256];

	start();
	snprintf(next, sizeof(next), "%s", in_folder("t2.sbt"));
	emit(&target, 300);
	drain();
	is_rotating = true;
	ts_crash_hook = on_point;
	TS_CHECK_INT(ts_recording_rotate(recording, next, NULL), 0);
	ts_crash_hook = NULL;
	is_rotating = false;
	/* Only while the old journal says so. */
	TS_CHECK(moved > 0 && moved < points);
	rotated_at = target.emitted;
	emit(&target, 40);
	expect_all();
	drain();
	expect_all();
	stop();
}

TS_TEST(at_each_instant_of_the_end)
{
	uint64_t marks;

	start();
	emit(&target, 300);
	drain();
	ts_crash_hook = on_point;
	TS_CHECK_INT(ts_recording_finish(recording, NULL), 0);
	ts_crash_hook = NULL;
	TS_CHECK_INT(look(in_folder("t.sbt"), getpid(), &marks), TS_EBUSY);
	/* At R12, after the journal was deleted. */
	TS_CHECK_INT(moved, 1);
	stop();
}

/* It neither locks nor changes anything, and is made of what has no name. */
TS_TEST(leaves_no_trace)
{
	struct stat before, after;
	int fd;

	start();
	emit(&target, 300);
	drain();
	TS_CHECK_INT(ts_recording_checkpoint(recording, false, NULL), 0);
	TS_CHECK(!stat(in_folder("t.sbt"), &before));
	expect_all();
	TS_CHECK(!stat(in_folder("t.sbt"), &after));
	TS_CHECK_INT(before.st_size, after.st_size);
	TS_CHECK_INT(target.ring->consumed, target.ring->head);
	fd = open(target.path, O_RDONLY | O_CLOEXEC);
	TS_CHECK(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)); /* the drainer's */
	close(fd);
	stop();
}

/* A snapshot stays as it was when the trace goes on, and when it is removed. */
TS_TEST(does_not_change)
{
	struct ts_snapshot_source source = { .directory_fd = -1, .recorder = getpid() };
	TS_AUTO(ts_reader) reader = NULL;
	TS_AUTO(ts_batch) batch = NULL;

	start();
	emit(&target, 300);
	drain();
	TS_CHECK_INT(ts_recording_checkpoint(recording, true, NULL), 0);
	emit(&target, 7);
	source.name = ts_recording_path(recording);
	TS_CHECK_INT(ts_snapshot_recording(&reader, &source, NULL), 0);
	emit(&target, 500);
	drain();
	TS_CHECK_INT(ts_recording_finish(recording, NULL), 0);
	TS_CHECK(!unlink(in_folder("t.sbt")));
	TS_CHECK_INT(ts_reader_rows(reader, TS_TABLE_MARK), 307);
	TS_CHECK_INT(ts_batch_new(&batch, reader, NULL), 0);
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++)
		TS_CHECK_INT(ts_batch_read(batch, i, TS_MASK_ALL, NULL), 0);
	stop();
}

/* What a killed recorder left is as the next one would find it; damage is for `recover`. */
TS_TEST(of_a_killed_recorder)
{
	char journal[300], byte = 'x';
	struct ts_error err;
	uint64_t marks = 0;
	int fd;
	const struct ts_snapshot_source source = { .name = journal, .directory_fd = -1 };
	struct ts_reader *reader;

	start();
	emit(&target, 300);
	drain();
	TS_CHECK_INT(ts_recording_checkpoint(recording, false, NULL), 0);
	emit(&target, 20);
	drain();
	emit(&target, 5);
	ts_recording_close(TS_STEAL(recording));
	TS_CHECK_INT(look(in_folder("t.sbt"), 0, &marks), 0);
	TS_CHECK_INT(marks, target.emitted);
	snprintf(journal, sizeof(journal), "%s", in_folder("t.sbt.journal"));
	fd = open(journal, O_WRONLY | O_CLOEXEC);
	TS_CHECK(fd >= 0 && pwrite(fd, &byte, 1, 100) == 1);
	close(fd);
	journal[strlen(journal) - strlen(".journal")] = '\0';
	TS_CHECK_INT(ts_snapshot_recording(&reader, &source, &err), TS_EFORMAT);
	TS_CHECK(strstr(err.message, "tracesmith recover"));
	stop();
}

/* A target that says that more was drained than the recorder has: a gap, told once it persists. */
TS_TEST(of_a_target_that_lies)
{
	struct ts_snapshot_source source = { .directory_fd = -1, .recorder = getpid() };
	struct ts_live_ring *ring;
	struct ts_reader *reader;

	start();
	source.name = ts_recording_path(recording);
	emit(&target, 100);
	drain();
	emit(&target, 100);
	ring = target.ring;
	ring->consumed = ring->head - 5 * 40;
	ring->consumed_events = 195;
	ring->consumed_check = ts_live_consumed_check(ring->consumed, ring->consumed_events,
						      ring->consumed_tid, ring->consumed_serial);
	TS_CHECK_INT(ts_snapshot_recording(&reader, &source, NULL), TS_EBUSY);
	source.accept_gaps = true;
	TS_CHECK_INT(ts_snapshot_recording(&reader, &source, NULL), 0);
	TS_CHECK_INT(ts_reader_rows(reader, TS_TABLE_MARK), 105);
	TS_CHECK_INT(ts_reader_rows(reader, TS_TABLE_LOSS), 1);
	ts_reader_close(reader);
	stop();
}
