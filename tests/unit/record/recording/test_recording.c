/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings on disk: wherever they are killed, a successor has every event once. The target is a
 * ring that is drained from the recording's position, as a recorder would.
 */
#include "record/recording/recording.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "trace/extract.h"

#include "unit/record/record_support.h"

#define EVENTS 200u
#define THREAD_BYTES sizeof(struct ts_live_thread_record)
#define EVENT_BYTES 24u

/* ---- a target ---- */

struct target {
	uint64_t area;
	struct ts_text ring; /* everything it ever wrote */
	struct ts_text dictionary;
	uint64_t dropped;
	/* Position of the drain. */
	bool known;
	uint64_t dictionary_position;
	struct ring_side side;
};

static void target_start(struct target *target, uint64_t area)
{
	memset(target, 0, sizeof(*target));
	target->area = area;
	put_plain_sites(&target->dictionary);
	put_thread(&target->ring, 0, 1, PID, 0, "main");
}

static void target_release(struct target *target)
{
	ts_text_release(&target->ring);
	ts_text_release(&target->dictionary);
}

static void target_emit(struct target *target, const struct ts_recording *recording, uint64_t count)
{
	uint64_t start = ts_recording_origin(recording)->started_counter;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t number = (target->ring.length - THREAD_BYTES) / EVENT_BYTES;

		put_instant(&target->ring, 1, start + 1000 + number, number);
	}
}

static void take_position(void *context, uint32_t ring, uint64_t position, uint64_t events,
			  uint64_t dropped)
{
	struct target *target = context;

	TS_CHECK_INT(ring, 0);
	target->side = (struct ring_side){ position, events, dropped };
}

/* A new recorder: it continues where the recording says. */
static void target_attach(struct target *target, struct ts_recording *recording)
{
	target->side = (struct ring_side){ 0 };
	target->dictionary_position = 0;
	target->known = ts_recording_positions(recording, target->area,
					       &target->dictionary_position, take_position, target);
}

static int drain_ring(struct target *target, const struct ts_block_sink *sink, size_t bytes)
{
	struct ts_block block = { .type = TS_BLOCK_RING,
				  .bytes = (uint32_t)bytes,
				  .area = target->area,
				  .from = target->side.position,
				  .to = target->side.position + bytes,
				  .dropped = target->dropped };
	int result;

	block.events = (block.to - THREAD_BYTES) / EVENT_BYTES;
	result = sink->append(sink->context, &block, target->ring.data + target->side.position,
			      NULL);
	if (!result)
		target->side = (struct ring_side){ block.to, block.events, target->dropped };
	return result;
}

/* Drains everything new, in blocks of a few events. */
static int target_drain(struct target *target, struct ts_recording *recording, uint64_t a_block)
{
	struct ts_block_sink sink = ts_recording_sink(recording);
	int result = TS_OK;

	if (!target->known)
		result = put_area(&sink, target->area);
	target->known = target->known || !result;
	if (!result && target->dictionary_position < target->dictionary.length) {
		result = put_dictionary(&sink, target->area, &target->dictionary,
					target->dictionary_position);
		if (!result)
			target->dictionary_position = target->dictionary.length;
	}
	while (!result && target->side.position < target->ring.length) {
		size_t first = target->side.position ? 0 : THREAD_BYTES;
		size_t left = target->ring.length - target->side.position;

		result = drain_ring(target, &sink,
				    TS_MIN(left, first + (size_t)a_block * EVENT_BYTES));
	}
	return result;
}

/* ---- files ---- */

static const char *trace_path(void)
{
	return file_in_folder("t.sbt");
}

static void copy_file(const char *from, const char *to)
{
	char buffer[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	ssize_t got;

	TS_CHECK(in >= 0 && out >= 0);
	while ((got = read(in, buffer, sizeof(buffer))) > 0)
		TS_CHECK_INT(write(out, buffer, (size_t)got), got);
	close(in);
	close(out);
}

static struct ts_recording *open_recording(const char *path, unsigned int flags, uint64_t limit)
{
	struct ts_recording_options options = { .flags = flags, .journal_limit = limit };
	struct ts_recording *recording;
	struct ts_error err;

	if (ts_recording_open(&recording, path, &options, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	return recording;
}

static void finish(struct ts_recording *recording)
{
	struct ts_error err;

	if (ts_recording_finish(recording, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	ts_recording_close(recording);
}

/* Every event of the target once, with its number, and nothing lost. */
static void check_all(const char *path, uint64_t events, uint64_t lost)
{
	struct rows rows = rows_open(path, TS_TABLE_MARK);
	unsigned char *seen = calloc(1, events + 1);
	struct ts_mark_row mark;
	uint64_t count = 0;

	while (rows_next(&rows, &mark)) {
		int64_t number = rows_value(&rows, 0);

		TS_CHECK(number >= 0 && (uint64_t)number < events);
		TS_CHECK(!seen[number]);
		seen[number] = 1;
		TS_CHECK_STR(rows_text(&rows, mark.name), "tick");
		TS_CHECK(ts_reader_entity(rows.reader, TS_TABLE_THREAD, mark.thread) != NULL);
		count++;
	}
	free(seen);
	rows_close(&rows);
	TS_CHECK_INT(count, events);
	TS_CHECK_INT(count_lost(path, NULL), lost);
	check_finished(path);
}

static bool exists(const char *path, const char *ending)
{
	char name[160];

	snprintf(name, sizeof(name), "%s%s", path, ending);
	return access(name, F_OK) == 0;
}

/* ---- in order ---- */

TS_TEST(blocks_in_trace_out)
{
	struct ts_recording *recording = open_recording(trace_path(), 0, 0);
	struct ts_recording_status status;
	struct target target;

	target_start(&target, AREA);
	target_emit(&target, recording, EVENTS);
	TS_CHECK_INT(target_drain(&target, recording, 7), 0);
	TS_CHECK_INT(ts_recording_checkpoint(recording, false, NULL), 0);
	ts_recording_status(recording, &status);
	TS_CHECK_INT(status.events, EVENTS);
	TS_CHECK_INT(status.lost, 0);
	TS_CHECK(!status.full && status.trace_bytes > 64);
	finish(recording);
	check_all(trace_path(), EVENTS, 0);
	TS_CHECK(!exists(trace_path(), ".journal") && !exists(trace_path(), ".reserve"));
	target_release(&target);
}

TS_TEST(each_save_is_a_finished_trace)
{
	struct ts_recording *recording = open_recording(trace_path(), TS_RECORDING_SYNC, 0);
	struct target target;

	target_start(&target, AREA);
	for (uint64_t i = 1; i <= 5; i++) {
		target_emit(&target, recording, EVENTS);
		target.dropped += 3;
		TS_CHECK_INT(target_drain(&target, recording, 50), 0);
		TS_CHECK_INT(ts_recording_checkpoint(recording, true, NULL), 0);
		check_all(trace_path(), i * EVENTS, i * 3);
		/* Once more, with nothing new. */
		TS_CHECK_INT(ts_recording_checkpoint(recording, true, NULL), 0);
		check_finished(trace_path());
		TS_CHECK_INT(ts_recording_checkpoint(recording, false, NULL), 0);
	}
	finish(recording);
	check_all(trace_path(), 5 * EVENTS, 15);
	target_release(&target);
}

TS_TEST(a_full_journal_is_turned_by_itself)
{
	struct ts_recording *recording = open_recording(trace_path(), 0, 20000);
	struct ts_recording_status status;
	struct target target;

	target_start(&target, AREA);
	for (int i = 0; i < 100; i++) {
		target_emit(&target, recording, EVENTS);
		TS_CHECK_INT(target_drain(&target, recording, 50), 0);
	}
	/* 100 * 200 * 24 bytes went in: far more than it may ever hold. */
	ts_recording_status(recording, &status);
	TS_CHECK(status.journal_bytes < 240000);
	finish(recording);
	check_all(trace_path(), 100 * EVENTS, 0);
	target_release(&target);
}

TS_TEST(two_recorders_do_not_share_a_trace)
{
	struct ts_recording *recording = open_recording(trace_path(), 0, 0), *other;
	struct ts_error err = { 0 };
	char pid[32];

	snprintf(pid, sizeof(pid), "process %d", (int)getpid());
	TS_CHECK_INT(ts_recording_open(&other, trace_path(), NULL, &err), TS_EBUSY);
	TS_CHECK(strstr(err.message, pid) != NULL);
	TS_CHECK_INT(
		ts_recording_recover(trace_path(), file_in_folder("r.sbt"), NULL, NULL, NULL, &err),
		TS_EIO);
	finish(recording);
	TS_CHECK_INT(ts_recording_open(
			     &other, trace_path(),
			     &(struct ts_recording_options){ .flags = TS_RECORDING_RESUME }, &err),
		     TS_ENOTFOUND);
}

TS_TEST(counters_become_trace_time)
{
	struct ts_recording *recording = open_recording(trace_path(), 0, 0);
	const struct ts_block_open *origin = ts_recording_origin(recording);
	struct ts_block_clock clock = { 0 };
	struct ts_block_sink sink = ts_recording_sink(recording);

	TS_CHECK_INT(ts_recording_time(recording, origin->started_counter), origin->trace_start_ns);
	for (uint64_t i = 1; i < 3; i++) {
		clock.anchor.counter = origin->started_counter + i * 3000000;
		clock.anchor.monotonic_ns = origin->started_monotonic_ns + (int64_t)i * 1000000;
		TS_CHECK_INT(put_block(&sink, TS_BLOCK_CLOCK, 0, &clock, sizeof(clock)), 0);
	}
	TS_CHECK_INT(ts_recording_time(recording, origin->started_counter + 7500000),
		     origin->trace_start_ns + 2500000);
	ts_recording_close(recording);
}

/* ---- resuming ---- */

TS_TEST(a_closed_recording_is_continued)
{
	struct ts_recording *recording;
	struct target target;

	target_start(&target, AREA);
	for (int i = 0; i < 6; i++) {
		recording = open_recording(trace_path(), i ? TS_RECORDING_RESUME : 0, 0);
		target_attach(&target, recording);
		TS_CHECK_INT(target.known, i > 0);
		target_emit(&target, recording, EVENTS);
		TS_CHECK_INT(target_drain(&target, recording, 20), 0);
		if (i % 2)
			TS_CHECK_INT(ts_recording_checkpoint(recording, i % 3 == 0, NULL), 0);
		ts_recording_close(recording);
	}
	recording = open_recording(trace_path(), TS_RECORDING_RESUME, 0);
	finish(recording);
	check_all(trace_path(), 6 * EVENTS, 0);
	TS_CHECK_INT(count_rows(trace_path(), TS_TABLE_SOURCE), 1);
	TS_CHECK_INT(count_rows(trace_path(), TS_TABLE_THREAD), 1);
	target_release(&target);
}

/*
 * Resumes copies of trace and journal, the latter truncated; drains the rest; everything must be
 * there.
 */
static void check_cut(const struct target *original, const char *trace, const char *journal,
		      uint64_t bytes)
{
	const char *path = file_in_folder("cut.sbt"), *cut = file_in_folder("cut.sbt.journal");
	struct ts_recording *recording;
	struct target target = *original;
	struct ts_error err;
	int result;

	copy_file(trace, path);
	copy_file(journal, cut);
	TS_CHECK_INT(truncate(cut, (off_t)bytes), 0);
	result = ts_recording_open(&recording, path,
				   &(struct ts_recording_options){ .flags = TS_RECORDING_RESUME },
				   &err);
	if (bytes < sizeof(struct ts_block) + sizeof(struct ts_block_open)) {
		TS_CHECK_INT(result, TS_ENOTFOUND);
		return;
	}
	TS_CHECK_INT(result, 0);
	target_attach(&target, recording);
	TS_CHECK_INT(target_drain(&target, recording, 100), 0);
	finish(recording);
	check_all(path, (original->ring.length - THREAD_BYTES) / EVENT_BYTES, 0);
}

/*
 * A journal without and one with a checkpoint at its start; no truncation after that loses
 * anything.
 */
static void check_cuts(bool checkpoint)
{
	struct ts_recording *recording = open_recording(trace_path(), 0, 0);
	const char *trace = file_in_folder("copy.sbt"), *journal = file_in_folder("copy.journal");
	struct ts_recording_status status;
	struct target target;
	uint64_t committed = 0;

	target_start(&target, AREA);
	target_emit(&target, recording, 20);
	TS_CHECK_INT(target_drain(&target, recording, 10), 0);
	if (checkpoint) {
		TS_CHECK_INT(ts_recording_checkpoint(recording, true, NULL), 0);
		ts_recording_status(recording, &status);
		committed = status.journal_bytes;
	}
	target_emit(&target, recording, 20);
	TS_CHECK_INT(target_drain(&target, recording, 5), 0);
	/* Followed by rows and an index unknown to the journal. */
	ts_recording_close(recording);
	recording = open_recording(trace_path(), TS_RECORDING_RESUME, 0);
	copy_file(file_in_folder("t.sbt.journal"), journal);
	TS_CHECK_INT(ts_recording_checkpoint(recording, true, NULL), 0);
	ts_recording_close(recording);
	copy_file(trace_path(), trace);
	for (uint64_t cut = committed;; cut++) {
		struct stat stat_journal;

		TS_CHECK_INT(stat(journal, &stat_journal), 0);
		if (cut > (uint64_t)stat_journal.st_size)
			break;
		/* Within large payloads all offsets are alike. */
		if (!checkpoint && cut > 900 && cut < 5800 && cut % 97)
			continue;
		check_cut(&target, trace, journal, cut);
	}
	target_release(&target);
}

TS_TEST(every_cut_of_a_first_journal_loses_nothing)
{
	check_cuts(false);
}

TS_TEST(every_cut_behind_a_checkpoint_loses_nothing)
{
	check_cuts(true);
}

/* ---- killed ---- */

static const char *crash_at;
static _Atomic int crash_after;

static void crash(const char *point)
{
	if (strcmp(point, crash_at) == 0 && --crash_after == 0)
		kill(getpid(), SIGKILL);
}

/* The life of a recorder: emits, saves, rotates, finishes. */
static void live_on(struct target *target, const char *path, const char *next)
{
	struct ts_recording *recording = open_recording(path, 0, 3000);

	for (int i = 0; i < 8; i++) {
		target_drain(target, recording, 9);
		target_emit(target, recording, 25);
		if (i == 3)
			ts_recording_checkpoint(recording, true, NULL);
		if (i == 5 && next)
			ts_recording_rotate(recording, next, NULL);
	}
	target_drain(target, recording, 9);
	finish(recording);
}

/* The dead recorder's view of its target is in shared memory, which outlives it: all 200 events. */
static void after_death(const char *path, const char *next, bool was_born)
{
	struct ts_recording *recording;
	struct target target;
	uint64_t before = 0;

	target_start(&target, AREA);
	recording = open_recording(path, was_born ? TS_RECORDING_RESUME : 0, 0);
	target_attach(&target, recording);
	target_emit(&target, recording, EVENTS);
	TS_CHECK_INT(target_drain(&target, recording, 100), 0);
	if (next && strcmp(ts_recording_path(recording), next) == 0) {
		check_finished(path);
		before = count_rows(path, TS_TABLE_MARK);
		finish(recording);
		check_finished(next);
		TS_CHECK_INT(before + count_rows(next, TS_TABLE_MARK), EVENTS);
		TS_CHECK_INT(count_lost(path, NULL) + count_lost(next, NULL), 0);
	} else {
		finish(recording);
		check_all(path, EVENTS, 0);
	}
	TS_CHECK(!exists(path, ".journal") && !exists(path, ".journal.new"));
	target_release(&target);
}

static void clean(const char *path)
{
	static const char *const endings[] = { "", ".journal", ".journal.new", ".reserve" };
	char name[160];

	for (size_t i = 0; i < TS_ARRAY_SIZE(endings); i++) {
		snprintf(name, sizeof(name), "%s%s", path, endings[i]);
		unlink(name);
	}
}

/* Dies at the n-th passing of a point, for n = 1, 2 ... until it survives. */
static void check_crashes(const char *point, int step, const char *next)
{
	const char *path = trace_path();
	int n = 1;

	for (;; n += step) {
		int status;
		pid_t pid;

		clean(path);
		if (next)
			clean(next);
		pid = fork();
		if (pid == 0) {
			struct target target;

			target_start(&target, AREA);
			crash_at = point;
			crash_after = n;
			ts_crash_hook = crash;
			live_on(&target, path, next);
			_exit(0);
		}
		TS_CHECK_INT(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status)) {
			TS_CHECK_INT(WEXITSTATUS(status), 0);
			break;
		}
		TS_CHECK_INT(WTERMSIG(status), SIGKILL);
		after_death(path, next, exists(path, ".journal"));
	}
	TS_CHECK(n > 1); /* the point was passed */
}

TS_TEST(killed_before_the_journal_exists)
{
	check_crashes("R0", 1, NULL);
}

TS_TEST(killed_while_a_block_is_appended)
{
	check_crashes("R1", 3, NULL);
}

TS_TEST(killed_while_decoding)
{
	check_crashes("R4", 3, NULL);
}

TS_TEST(killed_while_the_next_journal_is_written)
{
	check_crashes("R5", 2, NULL);
}

TS_TEST(killed_after_the_rename)
{
	check_crashes("R6", 1, NULL);
}

TS_TEST(killed_around_the_index)
{
	check_crashes("R7", 1, NULL);
}

TS_TEST(killed_before_the_journal_is_deleted)
{
	check_crashes("R8", 1, NULL);
}

TS_TEST(killed_while_rotating)
{
	const char *next = file_in_folder("next.sbt");

	check_crashes("rotate-decided", 1, next);
	check_crashes("rotate-renamed", 1, next);
	check_crashes("R5", 3, next);
}

/* ---- rotation ---- */

TS_TEST(rotation_goes_on_with_the_same_state)
{
	static const char *const names[] = { "a.sbt", "b.sbt", "c.sbt" };
	struct ts_recording *recording = open_recording(file_in_folder("a.sbt"), 0, 0);
	struct ts_block_sink sink = ts_recording_sink(recording);
	uint64_t start = ts_recording_origin(recording)->started_counter, total = 0;
	TS_SCOPED(ts_text) bytes = { 0 };
	struct ring_side side = { 0 };
	struct ts_slice_row slice;
	struct target target;
	struct rows rows;

	target_start(&target, AREA);
	/* A span that begins in the first file and ends in the last. */
	TS_CHECK_INT(put_area(&sink, AREA + 1), 0);
	TS_CHECK_INT(put_dictionary(&sink, AREA + 1, &target.dictionary, 0), 0);
	put_thread(&bytes, start, 1, 99, 0, "long");
	put_record(&bytes, TS_LIVE_BEGIN, 0, 2, start + 10, NULL, 0);
	TS_CHECK_INT(put_ring(&sink, AREA + 1, 0, &side, &bytes, 1), 0);
	for (int i = 0; i < 3; i++) {
		target_emit(&target, recording, EVENTS);
		TS_CHECK_INT(target_drain(&target, recording, 50), 0);
		if (i == 2) {
			put_record(&bytes, TS_LIVE_END, 0, 0, start + 1000010, NULL, 0);
			TS_CHECK_INT(put_ring(&sink, AREA + 1, 0, &side, &bytes, 1), 0);
			break;
		}
		TS_CHECK_INT(ts_recording_rotate(recording, file_in_folder(names[i + 1]), NULL), 0);
		TS_CHECK_STR(ts_recording_path(recording), file_in_folder(names[i + 1]));
		TS_CHECK(!exists(file_in_folder(names[i]), ".journal"));
		TS_CHECK(exists(file_in_folder(names[i + 1]), ".journal"));
	}
	finish(recording);
	for (int i = 0; i < 3; i++) {
		const char *path = file_in_folder(names[i]);

		check_finished(path);
		TS_CHECK_INT(count_rows(path, TS_TABLE_MARK), EVENTS);
		TS_CHECK_INT(count_rows(path, TS_TABLE_SOURCE), 1);
		TS_CHECK_INT(count_rows(path, TS_TABLE_SLICE), i == 2);
		total += count_rows(path, TS_TABLE_MARK);
	}
	TS_CHECK_INT(total, 3 * EVENTS);
	rows = rows_open(file_in_folder("c.sbt"), TS_TABLE_SLICE);
	TS_CHECK(rows_next(&rows, &slice));
	TS_CHECK_STR(rows_text(&rows, slice.name), "work");
	TS_CHECK(slice.duration > 0 && slice.thread > 0);
	TS_CHECK(ts_reader_entity(rows.reader, TS_TABLE_THREAD, slice.thread) != NULL);
	rows_close(&rows);
	target_release(&target);
}

/* ---- full disk ---- */

static void limit_files(rlim_t bytes)
{
	struct rlimit limit = { .rlim_cur = bytes, .rlim_max = RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	TS_CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TS_TEST(a_full_disk_is_waited_out_and_nothing_comes_twice)
{
	struct ts_recording *recording = open_recording(trace_path(), 0, 1 << 20);
	struct ts_recording_status status;
	struct target target;
	struct ts_error err;
	uint64_t seen = 0;
	int result = 0;

	target_start(&target, AREA);
	target_emit(&target, recording, EVENTS);
	TS_CHECK_INT(target_drain(&target, recording, 50), 0);
	TS_CHECK_INT(ts_recording_checkpoint(recording, false, NULL), 0);
	/* The journal may grow a little, the trace hardly at all. */
	limit_files(20000);
	for (int i = 0; i < 20 && !result; i++) {
		target_emit(&target, recording, EVENTS);
		result = target_drain(&target, recording, 50);
	}
	TS_CHECK_INT(result, TS_ENOSPC);
	ts_recording_status(recording, &status);
	TS_CHECK(status.full);
	/* A checkpoint empties the journal while the trace has room; here until it runs out. */
	for (int i = 0; i < 200; i++) {
		result = ts_recording_checkpoint(recording, false, &err);
		if (result)
			break;
		target_emit(&target, recording, EVENTS);
		result = target_drain(&target, recording, 50);
		TS_CHECK(result == 0 || result == TS_ENOSPC);
	}
	TS_CHECK_INT(result, TS_ENOSPC);
	TS_CHECK_INT(ts_recording_finish(recording, &err), TS_ENOSPC);
	TS_CHECK(exists(trace_path(), ".journal"));
	limit_files(RLIM_INFINITY);
	TS_CHECK_INT(target_drain(&target, recording, 50), 0);
	finish(recording);
	seen = (target.ring.length - THREAD_BYTES) / EVENT_BYTES;
	check_all(trace_path(), seen, 0);
	target_release(&target);
}

TS_TEST(a_full_disk_at_the_end_leaves_what_a_successor_needs)
{
	struct ts_recording *recording = open_recording(trace_path(), 0, 0);
	struct target target;
	struct ts_error err;

	target_start(&target, AREA);
	target_emit(&target, recording, 50 * EVENTS);
	TS_CHECK_INT(target_drain(&target, recording, 50), 0);
	limit_files(3000);
	TS_CHECK_INT(ts_recording_finish(recording, &err), TS_ENOSPC);
	ts_recording_close(recording);
	limit_files(RLIM_INFINITY);
	recording = open_recording(trace_path(), TS_RECORDING_RESUME, 0);
	finish(recording);
	check_all(trace_path(), 50 * EVENTS, 0);
	target_release(&target);
}

TS_TEST(what_is_only_told_is_counted)
{
	struct ts_recording *recording = open_recording(trace_path(), 0, 0);
	struct ts_block block = { .type = TS_BLOCK_RING, .area = AREA };
	struct ts_recording_status status;
	struct target target;

	target_start(&target, AREA);
	target_emit(&target, recording, EVENTS);
	TS_CHECK_INT(target_drain(&target, recording, 50), 0);
	block.from = target.side.position;
	block.to = block.from + 10 * EVENT_BYTES;
	block.events = target.side.events + 10;
	TS_CHECK_INT(ts_recording_queue(recording, &block, NULL, NULL), 0);
	TS_CHECK_INT(ts_recording_checkpoint(recording, false, NULL), 0);
	/* Now in the state of the checkpoint. */
	ts_recording_close(recording);
	recording = open_recording(trace_path(), TS_RECORDING_RESUME, 0);
	target_attach(&target, recording);
	TS_CHECK_INT(target.side.position, block.to);
	block.from = block.to;
	block.to += 5 * EVENT_BYTES;
	block.events += 5;
	TS_CHECK_INT(ts_recording_queue(recording, &block, NULL, NULL), 0);
	TS_CHECK_INT(ts_recording_finish(recording, NULL), 0);
	ts_recording_status(recording, &status);
	TS_CHECK_INT(status.events, EVENTS);
	TS_CHECK_INT(status.lost, 15);
	ts_recording_close(recording);
	check_all(trace_path(), EVENTS, 15);
	target_release(&target);
}

/* ---- recovery ---- */

static int drain_rest(void *context, struct ts_recording *recording, struct ts_error *err)
{
	struct target *target = context;

	target_attach(target, recording);
	return target_drain(target, recording, 100);
}

TS_TEST(recovery_changes_nothing_of_what_it_recovers)
{
	const char *to = file_in_folder("r.sbt");
	struct ts_recording *recording = open_recording(trace_path(), 0, 0);
	struct ts_recording_recovery recovery;
	struct stat before, after;
	struct target target;
	struct ts_error err;
	int fd;

	target_start(&target, AREA);
	target_emit(&target, recording, EVENTS);
	TS_CHECK_INT(target_drain(&target, recording, 50), 0);
	TS_CHECK_INT(ts_recording_checkpoint(recording, false, NULL), 0);
	target_emit(&target, recording, EVENTS);
	TS_CHECK_INT(target_drain(&target, recording, 50), 0);
	target_emit(&target, recording, EVENTS); /* still in its ring */
	ts_recording_close(recording);
	fd = open(file_in_folder("t.sbt.journal"), O_WRONLY | O_APPEND | O_CLOEXEC);
	TS_CHECK_INT(write(fd, "torn", 4), 4);
	close(fd);
	TS_CHECK_INT(stat(file_in_folder("t.sbt.journal"), &before), 0);

	TS_CHECK_INT(ts_recording_recover(trace_path(), to, NULL, NULL, &recovery, &err), 0);
	TS_CHECK_INT(recovery.events, 2 * EVENTS);
	TS_CHECK_INT(recovery.torn_bytes, 4);
	TS_CHECK(recovery.journal_blocks > 4);
	check_all(to, 2 * EVENTS, 0);
	TS_CHECK_INT(ts_recording_recover(trace_path(), to, drain_rest, &target, &recovery, &err),
		     0);
	check_all(to, 3 * EVENTS, 0);
	TS_CHECK(!exists(to, ".journal") && !exists(to, ".reserve"));
	TS_CHECK_INT(stat(file_in_folder("t.sbt.journal"), &after), 0);
	TS_CHECK_INT(after.st_size, before.st_size);
	TS_CHECK_INT(ts_recording_recover(to, file_in_folder("x.sbt"), NULL, NULL, NULL, &err),
		     TS_ENOTFOUND);
	TS_CHECK_INT(ts_recording_recover(trace_path(), trace_path(), NULL, NULL, NULL, &err),
		     TS_EINVAL);
	target_release(&target);
}

TS_TEST(recovery_gets_along_with_a_damaged_trace)
{
	const char *to = file_in_folder("r.sbt");
	struct ts_recording *recording = open_recording(trace_path(), 0, 0);
	struct ts_recording_status status;
	struct target target;
	struct ts_error err;

	target_start(&target, AREA);
	for (int i = 0; i < 3; i++) {
		target_emit(&target, recording, EVENTS);
		TS_CHECK_INT(target_drain(&target, recording, 50), 0);
		TS_CHECK_INT(ts_recording_checkpoint(recording, false, NULL), 0);
	}
	ts_recording_status(recording, &status);
	target_emit(&target, recording, EVENTS);
	TS_CHECK_INT(target_drain(&target, recording, 50), 0);
	ts_recording_close(recording);
	TS_CHECK_INT(truncate(trace_path(), (off_t)status.trace_bytes - 100), 0);
	recording = NULL;
	TS_CHECK_INT(ts_recording_open(
			     &recording, trace_path(),
			     &(struct ts_recording_options){ .flags = TS_RECORDING_RESUME }, &err),
		     TS_EFORMAT);
	if (ts_recording_recover(trace_path(), to, NULL, NULL, NULL, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	check_finished(to);
	TS_CHECK(count_rows(to, TS_TABLE_MARK) >= 3 * EVENTS);
	TS_CHECK(count_rows(to, TS_TABLE_LOSS) > 0);
	target_release(&target);
}

/* ---- windows ---- */

static void count_window(void *context, uint64_t area, const struct ts_block_window *opened,
			 const struct ts_block_window *closed)
{
	__atomic_add_fetch((int *)context, 1, __ATOMIC_RELAXED);
}

static struct ts_block_window window_of(uint64_t counter, uint32_t action)
{
	return (struct ts_block_window){ .counter = counter,
					 .action = action,
					 .serial = 1,
					 .step = TS_ABSENT,
					 .cause = "flag" };
}

TS_TEST(windows_are_told_once_and_can_be_extracted)
{
	const char *part = file_in_folder("part.sbt");
	struct ts_extract_filter filter = { .pid = PID };
	int windows = 0;
	struct ts_recording_options options = { .window_closed = count_window,
						.context = &windows };
	struct ts_block_export exported = { .pid = PID, .serial = 1 };
	struct ts_block_window window;
	struct ts_recording *recording;
	struct ts_block_sink sink;
	struct target target;
	uint64_t start;

	TS_CHECK_INT(ts_recording_open(&recording, trace_path(), &options, NULL), 0);
	sink = ts_recording_sink(recording);
	start = ts_recording_origin(recording)->started_counter;
	target_start(&target, AREA);
	TS_CHECK_INT(target_drain(&target, recording, 1), 0);
	window = window_of(start + 1000, TS_LIVE_WINDOW_OPEN);
	TS_CHECK_INT(put_block(&sink, TS_BLOCK_WINDOW, AREA, &window, sizeof(window)), 0);
	target_emit(&target, recording, EVENTS);
	TS_CHECK_INT(target_drain(&target, recording, 50), 0);
	window = window_of(start + 1000 + EVENTS, TS_LIVE_WINDOW_CLOSE);
	TS_CHECK_INT(put_block(&sink, TS_BLOCK_WINDOW, AREA, &window, sizeof(window)), 0);
	TS_CHECK_INT(ts_recording_checkpoint(recording, false, NULL), 0);
	TS_CHECK_INT(windows, 1);
	filter.from_ns = ts_recording_time(recording, start + 1050);
	filter.to_ns = ts_recording_time(recording, start + 1000 + EVENTS);
	TS_CHECK_INT(ts_extract(trace_path(), part, &filter, NULL), 0);
	check_finished(part);
	TS_CHECK(count_rows(part, TS_TABLE_MARK) >= EVENTS - 60);
	TS_CHECK(count_rows(part, TS_TABLE_MARK) < EVENTS);
	TS_CHECK_INT(count_rows(part, TS_TABLE_WINDOW), 1);
	TS_CHECK_INT(count_rows(part, TS_TABLE_PROCESS), 1);
	filter.pid = 1;
	TS_CHECK_INT(ts_extract(trace_path(), part, &filter, NULL), TS_ENOTFOUND);
	TS_CHECK(!exists(part, ""));
	/* A successor exports a window that was not exported, and only that. */
	ts_recording_close(recording);
	options.flags = TS_RECORDING_RESUME;
	TS_CHECK_INT(ts_recording_open(&recording, trace_path(), &options, NULL), 0);
	sink = ts_recording_sink(recording);
	TS_CHECK_INT(ts_recording_checkpoint(recording, false, NULL), 0);
	TS_CHECK_INT(windows, 2);
	TS_CHECK_INT(put_block(&sink, TS_BLOCK_EXPORT, AREA, &exported, sizeof(exported)), 0);
	ts_recording_close(recording);
	TS_CHECK_INT(ts_recording_open(&recording, trace_path(), &options, NULL), 0);
	finish(recording);
	TS_CHECK_INT(windows, 2);
	check_all(trace_path(), EVENTS, 0);
	target_release(&target);
}
