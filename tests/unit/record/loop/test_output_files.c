/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a recording: names, copies, rotation, limits; targets that end; and resuming after a
 * kill.
 */
#include "unit/record/record_target.h"

#include "record/loop/record_internal.h"

static uint64_t bytes_of(const char *name)
{
	struct stat status;

	return stat(in_folder(name), &status) ? 0 : (uint64_t)status.st_size;
}

/* ---- names ---- */

TS_TEST(names)
{
	const char *ending;
	char text[64], stem[16];
	struct ts_error err;

	TS_CHECK(!ts_saves_split_name("a/b.sbt", stem, sizeof(stem), &ending, &err));
	TS_CHECK_STR(stem, "a/b");
	TS_CHECK_STR(ending, ".sbt");
	TS_CHECK(!ts_saves_split_name("b.json", stem, sizeof(stem), &ending, &err));
	TS_CHECK_STR(stem, "b");
	TS_CHECK_STR(ending, ".json");
	TS_CHECK(!ts_saves_split_name("b", stem, sizeof(stem), &ending, &err));
	TS_CHECK_STR(stem, "b");
	TS_CHECK_STR(ending, ".sbt");
	TS_CHECK_INT(ts_saves_split_name("a/", stem, sizeof(stem), &ending, &err), TS_EINVAL);
	TS_CHECK_INT(ts_saves_split_name("0123456789abcdef.sbt", stem, sizeof(stem), &ending, &err),
		     TS_EINVAL);
	ts_rotation_path(text, sizeof(text), "a/b", 12, ".sbt");
	TS_CHECK_STR(text, "a/b.0012.sbt");
	ts_saves_window_path(text, sizeof(text), "b", 77, 1700000000123, ".sbt");
	TS_CHECK_STR(text, "b_pid77_1700000000123.sbt");
}

TS_TEST(snapshots_have_names_of_their_own)
{
	char path[256], stem[128];

	make_folder();
	snprintf(stem, sizeof(stem), "%s", in_folder("t"));
	TS_CHECK(!ts_saves_snapshot_path(path, sizeof(path), stem, 1700000000 * TS_NS_PER_S,
					 ".sbt"));
	TS_CHECK_STR(path, in_folder("t-20231114T221320Z.sbt"));
	write_file("t-20231114T221320Z.sbt", 1);
	TS_CHECK(!ts_saves_snapshot_path(path, sizeof(path), stem, 1700000000 * TS_NS_PER_S,
					 ".sbt"));
	TS_CHECK_STR(path, in_folder("t-20231114T221320Z-2.sbt"));
	remove_folder();
}

TS_TEST(copies_whole_or_not_at_all)
{
	struct ts_error err;

	make_folder();
	write_file("a", 200000);
	TS_CHECK(!ts_saves_copy(in_folder("a"), in_folder("b"), &err));
	TS_CHECK_INT(bytes_of("b"), 200000);
	TS_CHECK(!exists("b.part"));
	TS_CHECK_INT(ts_saves_copy(in_folder("none"), in_folder("c"), &err), TS_ENOTFOUND);
	TS_CHECK(!exists("c") && !exists("c.part"));
	remove_folder();
}

/* ---- while recording ---- */

TS_TEST(autosave_is_a_finished_trace)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct ts_reader *reader = NULL;
	struct fake fake;
	uint64_t rows = 0;

	make_folder();
	options = plain_options("t.sbt");
	options.autosave_ns = 20 * TS_NS_PER_MS;
	make_area(&fake, getpid(), SESSION, 5, true);
	recorder = open_recorder(&options);
	emit(&fake, 1000);
	for (int i = 0; i < 2000 && rows < 1000; i++) {
		pass(recorder);
		if (ts_reader_open(&reader, in_folder("t.sbt"), NULL))
			continue;
		rows = ts_reader_state(reader)->finished ? ts_reader_rows(reader, TS_TABLE_MARK)
							 : 0;
		ts_reader_close(reader);
	}
	TS_CHECK_INT(rows, 1000);
	emit(&fake, 500);
	finish_recorder(recorder);
	TS_CHECK_INT(events_of("t.sbt"), 1500);
	TS_CHECK(!exists("t.sbt.journal"));
	free_area(&fake);
	remove_folder();
}

TS_TEST(rotates_by_size)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct fake fake;
	uint64_t events = 0;
	struct ts_recorder_summary summary;

	make_folder();
	options = plain_options("t.sbt");
	options.rotate_bytes = 64 << 10;
	make_area(&fake, getpid(), SESSION, 5, true);
	recorder = open_recorder(&options);
	while (!exists("t.0003.sbt")) {
		emit(&fake, 2000);
		pass(recorder);
	}
	summary = finish_recorder(recorder);
	TS_CHECK_INT(fake.dropped, 0);
	TS_CHECK_INT(summary.files, 3);
	TS_CHECK_STR(summary.path, in_folder("t.0003.sbt"));
	for (int i = 1; i <= 3; i++) {
		char name[32];

		snprintf(name, sizeof(name), "t.%04d.sbt", i);
		events += events_of(name);
		TS_CHECK(bytes_of(name) <= (64 << 10) + 8192);
	}
	TS_CHECK_INT(events, fake.emitted);
	TS_CHECK(!exists("t.sbt"));
	free_area(&fake);
	remove_folder();
}

/* What comes after the last pass does not fit into the file either. */
TS_TEST(rotates_at_its_end)
{
	struct ts_recorder_summary summary;
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	uint64_t events = 0;
	struct fake fake;

	make_folder();
	options = plain_options("t.sbt");
	options.rotate_bytes = 32 << 10;
	make_area(&fake, getpid(), SESSION, 5, true);
	recorder = open_recorder(&options);
	emit(&fake, 500);
	pass(recorder);
	emit(&fake, 6000);
	summary = finish_recorder(recorder);
	TS_CHECK_INT(fake.dropped, 0);
	TS_CHECK_INT(summary.lost, 0);
	TS_CHECK(summary.files >= 2);
	for (uint64_t i = 1; i <= summary.files; i++) {
		char name[32];

		snprintf(name, sizeof(name), "t.%04u.sbt", (unsigned int)i);
		events += events_of(name);
		TS_CHECK_INT(rows_of(name, TS_TABLE_LOSS), 0);
	}
	TS_CHECK_INT(events, fake.emitted);
	free_area(&fake);
	remove_folder();
}

/* Names like ours are not ours: they are neither deleted nor overwritten. */
TS_TEST(a_rotation_deletes_its_own_files_only)
{
	struct ts_recorder_summary summary;
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct fake fake;

	make_folder();
	write_file("t.20231224.sbt", 10);
	write_file("t.0001.sbt", 10);
	options = plain_options("t.sbt");
	options.rotate_bytes = 64 << 10;
	options.rotate_keep = 2;
	make_area(&fake, getpid(), SESSION, 5, true);
	recorder = open_recorder(&options);
	write_file("t.0004.sbt", 10);
	while (!exists("t.0006.sbt")) {
		emit(&fake, 2000);
		pass(recorder);
	}
	/* Another file has its name now. */
	write_file("other", 10);
	TS_CHECK(exists("t.0005.sbt") && !rename(in_folder("other"), in_folder("t.0005.sbt")));
	while (!exists("t.0008.sbt")) {
		emit(&fake, 2000);
		pass(recorder);
	}
	summary = finish_recorder(recorder);
	TS_CHECK_STR(summary.path, in_folder("t.0008.sbt"));
	TS_CHECK(!exists("t.0002.sbt") && !exists("t.0003.sbt") && !exists("t.0006.sbt"));
	TS_CHECK(events_of("t.0007.sbt") && events_of("t.0008.sbt"));
	TS_CHECK_INT(bytes_of("t.20231224.sbt"), 10);
	TS_CHECK_INT(bytes_of("t.0001.sbt"), 10);
	TS_CHECK_INT(bytes_of("t.0004.sbt"), 10);
	TS_CHECK_INT(bytes_of("t.0005.sbt"), 10);
	free_area(&fake);
	remove_folder();
}

TS_TEST(stops_at_its_limit)
{
	struct ts_recorder_options options;
	struct ts_recorder_summary summary;
	struct ts_recorder *recorder;
	struct fake fake;

	make_folder();
	options = plain_options("t.sbt");
	options.max_bytes = 128 << 10;
	make_area(&fake, getpid(), SESSION, 5, true);
	recorder = open_recorder(&options);
	for (int i = 0; i < 5000 && is_on(&fake); i++) {
		emit(&fake, 2000);
		TS_CHECK(!pass(recorder));
	}
	TS_CHECK(!is_on(&fake));
	TS_CHECK(strstr(last_note, "limit"));
	TS_CHECK(!pass(recorder)); /* the program continues */
	summary = finish_recorder(recorder);
	TS_CHECK(bytes_of("t.sbt") <= options.max_bytes);
	TS_CHECK(bytes_of("t.sbt") >= options.max_bytes / 2);
	TS_CHECK(rows_of("t.sbt", TS_TABLE_LOSS) >= 1);
	TS_CHECK_INT(events_of("t.sbt") + summary.lost, fake.emitted + fake.dropped);
	free_area(&fake);
	remove_folder();
}

static int fake_json(const char *exporter, const char *trace, const char *json,
		     struct ts_error *err)
{
	TS_CHECK_STR(exporter, "chrome-array");
	return ts_saves_copy(trace, json, err);
}

TS_TEST(json_is_made_of_a_trace_beside_it)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct fake fake;

	make_folder();
	options = plain_options("t.json");
	options.export_text = fake_json;
	make_area(&fake, getpid(), SESSION, 5, true);
	recorder = open_recorder(&options);
	emit(&fake, 10);
	passes(recorder, 2);
	TS_CHECK(exists("t.json.sbt"));
	fake.control->flush_request = 1; /* a flush must leave a readable file */
	while (fake.control->flush_done != 1)
		pass(recorder);
	TS_CHECK_INT(events_of("t.json"), 10);
	emit(&fake, 1);
	finish_recorder(recorder);
	TS_CHECK_INT(events_of("t.json"), 11);
	TS_CHECK(!exists("t.json.sbt"));
	free_area(&fake);
	remove_folder();
}

/* ---- targets come and go ---- */

TS_TEST(dead_targets_are_taken_whole)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct fake fake, early;
	pid_t first = start_sleeper(), second = start_sleeper();

	make_folder();
	options = plain_options("t.sbt");
	make_area(&early, first, SESSION, 5, true);
	emit(&early, 7);
	end_sleeper(first); /* before the recorder started */
	make_area(&fake, second, SESSION, 6, true);
	recorder = open_recorder(&options);
	passes(recorder, 2);
	emit(&fake, 9);
	end_sleeper(second);
	for (int i = 0; i < 5000 && !pass(recorder); i++)
		;
	TS_CHECK(access(fake.path, F_OK) && access(early.path, F_OK));
	TS_CHECK_INT(finish_recorder(recorder).processes, 2);
	TS_CHECK_INT(events_of("t.sbt"), 16);
	free_area(&fake);
	free_area(&early);
	remove_folder();
}

/* It is alive when its area is listed, and gone when the recorder attaches. */
TS_TEST(a_target_that_ends_while_it_is_attached)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct ts_area_info info = { .alive = true };
	struct fake fake;
	bool done = false;

	make_folder();
	options = plain_options("t.sbt");
	info.pid = start_sleeper();
	make_area(&fake, info.pid, SESSION + 1, 5, true);
	emit(&fake, 7);
	info.control = *fake.control;
	snprintf(info.name, sizeof(info.name), "%s", strrchr(fake.path, '/') + 1);
	recorder = open_recorder(&options);
	end_sleeper(info.pid);
	TS_CHECK_INT(ts_targets_attach(recorder, &recorder->directories[0], &info, NULL), TS_OK);
	for (int i = 0; i < 5000 && !done; i++)
		done = pass(recorder);
	TS_CHECK(done);
	finish_recorder(recorder);
	TS_CHECK_INT(events_of("t.sbt"), 7);
	free_area(&fake);
	remove_folder();
}

TS_TEST(attached_targets_fly_on)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct fake fake;
	pid_t pid = start_sleeper();

	make_folder();
	options = plain_options("t.sbt");
	options.session = 0;
	options.pids = &pid;
	options.pid_count = 1;
	make_area(&fake, pid, 0, 5, true);
	emit(&fake, 5);
	recorder = open_recorder(&options);
	TS_CHECK_INT(fake.control->mode, TS_LIVE_STREAM);
	pass(recorder);
	finish_recorder(recorder);
	TS_CHECK_INT(fake.control->mode, TS_LIVE_FLIGHT);
	TS_CHECK_INT(fake.control->recorder_pid, 0);
	TS_CHECK(is_on(&fake));
	TS_CHECK_INT(events_of("t.sbt"), 5);
	end_sleeper(pid);
	free_area(&fake);
	remove_folder();
}

TS_TEST(says_who_cannot_be_recorded)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct ts_error err;
	struct fake fake;
	pid_t pid = start_sleeper();
	char recorded[64];
	int lock;

	make_folder();
	options = plain_options("t.sbt");
	options.pids = &pid;
	options.pid_count = 1;
	TS_CHECK_INT(ts_recorder_open(&recorder, &options, &err), TS_ECAP);
	make_area(&fake, pid, 0, 5, true);
	fake.control->recorder_pid = (uint64_t)getppid();
	fake.control->recorder_start = ts_process_start_time(getppid());
	lock = open(fake.path, O_RDWR | O_CLOEXEC);
	TS_CHECK(lock >= 0 && !flock(lock, LOCK_EX));
	TS_CHECK_INT(ts_recorder_open(&recorder, &options, &err), TS_EIO);
	snprintf(recorded, sizeof(recorded), "already being recorded by process %d",
		 (int)getppid());
	TS_CHECK(strstr(err.message, recorded));
	TS_CHECK(!exists("t.sbt") && !exists("t.sbt.journal")); /* no file is touched */
	fake.control->recorder_start++;                         /* another process with that pid */
	TS_CHECK_INT(ts_recorder_open(&recorder, &options, &err), TS_EIO);
	TS_CHECK(strstr(err.message, "by another process"));
	/* Whatever the area says: nobody drains it. */
	fake.control->recorder_start--;
	close(lock);
	recorder = open_recorder(&options);
	finish_recorder(recorder);
	end_sleeper(pid);
	TS_CHECK_INT(ts_recorder_open(&recorder, &options, &err), TS_ENOTFOUND);
	free_area(&fake);
	remove_folder();
}

/* A killed recorder is followed by one that resumes: nothing twice, nothing missing. */
TS_TEST(goes_on_after_a_kill)
{
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	struct fake fake;
	int status;
	pid_t pid;

	make_folder();
	options = plain_options("t.sbt");
	make_area(&fake, getpid(), SESSION, 5, true);
	pid = fork();
	if (!pid) {
		recorder = open_recorder(&options);
		for (;;)
			pass(recorder);
	}
	while (fake.emitted < 20000) {
		struct timespec pause = { .tv_nsec = 2000000 };

		emit(&fake, 1000);
		nanosleep(&pause, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	emit(&fake, 100);
	options.resume = true;
	options.session = 0;
	recorder = open_recorder(&options);
	TS_CHECK_INT(ts_recorder_session(recorder), SESSION);
	passes(recorder, 2);
	emit(&fake, 10);
	finish_recorder(recorder);
	TS_CHECK_INT(events_of("t.sbt"), fake.emitted);
	free_area(&fake);
	remove_folder();
}
