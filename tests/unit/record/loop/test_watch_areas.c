/* SPDX-License-Identifier: Apache-2.0 */
/* Which areas a recorder takes. */
#include "record/loop/record_internal.h"
#include "unit/record/record_target.h"

#define MS_NS INT64_C(1000000)
#define USER 65534
#define OTHER_USER 65533

/* An area of a process that has ended; it was created `before_ms` ago. */
static void make_dead_area(struct fake *fake, uint64_t area_id, int64_t before_ms)
{
	pid_t pid = start_sleeper();

	make_area(fake, pid, SESSION, area_id, true);
	fake->control->created.monotonic_ns -= before_ms * MS_NS;
	emit(fake, 3);
	end_sleeper(pid);
}

static uint64_t record_detached(struct ts_recorder_options *options)
{
	struct ts_recorder *recorder = open_recorder(options);

	pass(recorder);
	return finish_recorder(recorder).events;
}

/*
 * Two programs with one output have ended before the recorder that one of them started: both belong
 * to the recording, and a third one that ended before them does not.
 */
TS_TEST(a_late_recorder_takes_all_of_its_run)
{
	struct fake starter, other, earlier;
	struct ts_recorder_options options;

	make_folder();
	make_dead_area(&starter, 5, 3500);
	make_dead_area(&other, 6, 3400);
	make_dead_area(&earlier, 7, 60000);
	options = plain_options("t.sbt");
	options.detached = true;
	options.area = 5;
	options.area_created_ns = starter.control->created.monotonic_ns;
	TS_CHECK_INT(record_detached(&options), 6);
	TS_CHECK_INT(events_of("t.sbt"), 6);
	TS_CHECK(!access(earlier.path, F_OK));
	free_area(&starter);
	free_area(&other);
	free_area(&earlier);
	remove_folder();
}

/* Makes it an area of another image, created so much later. */
static void set_image(struct fake *fake, uint64_t image, int64_t later_ms)
{
	fake->control->image = image;
	fake->control->created.monotonic_ns += later_ms * MS_NS;
}

/* Areas of one process are listed in the order of their names, not in that of its images. */
TS_TEST(an_older_image_found_later_ends_nothing)
{
	pid_t pid = start_sleeper();
	struct fake newer, older;
	struct ts_recorder *recorder;
	struct ts_recorder_options options;

	make_folder();
	options = plain_options("t.sbt");
	recorder = open_recorder(&options);
	make_area(&newer, pid, SESSION, 5, true);
	make_area(&older, pid, SESSION, 6, true);
	set_image(&older, 78, -1000);
	emit(&older, 2);
	passes(recorder, 3);
	TS_CHECK(access(older.path, F_OK) && !access(newer.path, F_OK));
	emit(&newer, 5);
	end_sleeper(pid);
	passes(recorder, 3);
	TS_CHECK_INT(finish_recorder(recorder).events, 7);
	TS_CHECK_INT(events_of("t.sbt"), 7);
	free_area(&newer);
	free_area(&older);
	remove_folder();
}

/* A newer area does not end one that the process still maps: it has not called exec. */
TS_TEST(a_mapped_area_is_not_superseded)
{
	struct fake used, other;
	struct ts_recorder *recorder;
	struct ts_recorder_options options;

	make_folder();
	make_area(&used, getpid(), SESSION, 5, true);
	make_area(&other, getpid(), SESSION, 6, true);
	set_image(&used, 78, -1000);
	options = plain_options("t.sbt");
	recorder = open_recorder(&options);
	passes(recorder, 3);
	emit(&used, 5);
	passes(recorder, 3);
	TS_CHECK(!access(used.path, F_OK));
	TS_CHECK_INT(finish_recorder(recorder).events, 5);
	TS_CHECK_INT(events_of("t.sbt"), 5);
	free_area(&used);
	free_area(&other);
	remove_folder();
}

/* ---- several users ---- */

/* A recorder that has found the live directory of another user; areas are now made there. */
static struct ts_recorder *open_for_users(void)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	const char *theirs;

	if (geteuid() != 0)
		ts_test_skip("only root records programs of several users");
	make_folder();
	options = plain_options("t.sbt");
	recorder = open_recorder(&options);
	theirs = in_folder("theirs");
	TS_CHECK(!mkdir(theirs, 0700) && !chown(theirs, USER, USER));
	setenv("TRACESMITH_LIVE_DIR", theirs, 1);
	TS_CHECK_INT(ts_targets_add_directory(recorder, USER, 0, NULL), 0);
	last_note[0] = '\0';
	return recorder;
}

/* An area of that user's, with events, that names the process. */
static void make_their_area(struct fake *fake, pid_t pid)
{
	make_area(fake, pid, SESSION, 9, true);
	TS_CHECK(!chown(fake->path, USER, USER));
	emit(fake, 3);
}

static void expect_refusal(struct ts_recorder *recorder, struct fake *forged)
{
	passes(recorder, 3);
	TS_CHECK(strstr(last_note, "is skipped: it names process"));
	TS_CHECK_INT(finish_recorder(recorder).events, 0);
	TS_CHECK_INT(events_of("t.sbt"), 0);
	TS_CHECK_INT(rows_of("t.sbt", TS_TABLE_PROCESS), 0);
	free_area(forged);
	remove_folder();
}

TS_TEST(a_refused_area_stays_refused)
{
	struct ts_recorder *recorder = open_for_users();
	pid_t pid = start_sleeper();
	struct fake forged;

	make_their_area(&forged, pid);
	passes(recorder, 3);
	TS_CHECK(strstr(last_note, "does not belong to user"));
	end_sleeper(pid);
	recorder->directories[1].due = true;
	expect_refusal(recorder, &forged);
}

/* The process of another user; its area appears after it has exited, and was forgotten. */
TS_TEST(a_dead_process_stays_its_users)
{
	struct ts_recorder *recorder = open_for_users();
	pid_t pid = start_sleeper_of(OTHER_USER);
	struct fake forged;
	char later[280];

	ts_recorder_follow(recorder, pid);
	make_their_area(&forged, pid);
	snprintf(later, sizeof(later), "%s.later", forged.path);
	TS_CHECK(!rename(forged.path, later));
	pass(recorder);
	end_sleeper(pid);
	recorder->options.endless = true;
	for (int i = 0; i < 2; i++) {
		recorder->scan_ns = 0;
		ts_children_find(recorder, pid)->check_ns = 0;
		pass(recorder);
	}
	TS_CHECK(!ts_children_find(recorder, pid));
	TS_CHECK(!rename(later, forged.path));
	expect_refusal(recorder, &forged);
}
