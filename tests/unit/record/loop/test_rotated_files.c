/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a rotation: their numbers, and which of them are deleted. */
#include "unit/record/record_target.h"

#include "record/loop/record_internal.h"

TS_TEST(numbers)
{
	TS_CHECK_INT(ts_rotation_number("a/t.0012.sbt", "a/t", ".sbt"), 12);
	TS_CHECK_INT(ts_rotation_number("t.12345.sbt", "t", ".sbt"), 12345);
	TS_CHECK_INT(ts_rotation_number("t.0012.json.sbt", "t", ".json.sbt"), 12);
	TS_CHECK_INT(ts_rotation_number("t.0012.json.sbt", "t", ".sbt"), 0);
	TS_CHECK_INT(ts_rotation_number("t.12.sbt", "t", ".sbt"), 0);
	TS_CHECK_INT(ts_rotation_number("t.0000.sbt", "t", ".sbt"), 0);
	TS_CHECK_INT(ts_rotation_number("t.001x.sbt", "t", ".sbt"), 0);
	TS_CHECK_INT(ts_rotation_number("tt.0012.sbt", "t", ".sbt"), 0);
	TS_CHECK_INT(ts_rotation_number("t.sbt", "t", ".sbt"), 0);
	/* A date. */
	TS_CHECK_INT(ts_rotation_number("t.20231224.sbt", "t", ".sbt"), 0);
}

TS_TEST(old_files_go_first)
{
	struct ts_rotation rotation = { 0 };
	char stem[128], name[32];

	make_folder();
	snprintf(stem, sizeof(stem), "%s", in_folder("t"));
	TS_CHECK_INT(ts_rotation_greatest(stem, ".sbt"), 0);
	for (uint32_t i = 7; i <= 11; i++) {
		snprintf(name, sizeof(name), "t.%04u.sbt", i);
		write_file(name, 1000);
		/* One of them is not ours, and the last is the current one. */
		if (i != 7 && i != 11)
			ts_rotation_add(&rotation, stem, ".sbt", i, 0);
	}
	write_file("t.0012.json", 10);
	write_file("t.20231224.sbt", 10);
	TS_CHECK_INT(ts_rotation_greatest(stem, ".sbt"), 11);
	TS_CHECK_INT(ts_rotation_expire(&rotation, stem, ".sbt", 1000, 3, 0), 3000);
	TS_CHECK(!exists("t.0008.sbt") && exists("t.0009.sbt"));
	/* The current file is counted at its maximum size, and is never deleted. */
	TS_CHECK_INT(ts_rotation_expire(&rotation, stem, ".sbt", 1500, 0, 2600), 2500);
	TS_CHECK(!exists("t.0009.sbt") && exists("t.0010.sbt"));
	/* A file that was replaced is not the one that was written. */
	write_file("other", 10);
	TS_CHECK(!rename(in_folder("other"), in_folder("t.0010.sbt")));
	TS_CHECK_INT(ts_rotation_expire(&rotation, stem, ".sbt", 1500, 0, 100), 1500);
	TS_CHECK(exists("t.0007.sbt") && exists("t.0010.sbt") && exists("t.0011.sbt"));
	ts_rotation_release(&rotation);
	remove_folder();
}

/* A successor finds what its predecessor wrote; other traces and texts are not of the session. */
TS_TEST(files_of_the_session_are_found)
{
	struct ts_rotation rotation = { 0 };
	struct ts_recorder_options options;
	struct ts_recorder *recorder;
	char stem[128];

	make_folder();
	snprintf(stem, sizeof(stem), "%s", in_folder("t"));
	for (uint32_t i = 1; i <= 4; i++) {
		char name[32];

		snprintf(name, sizeof(name), "t.%04u.sbt", i);
		options = plain_options(name);
		options.session = i == 2 ? SESSION + 1 : SESSION;
		recorder = open_recorder(&options);
		finish_recorder(recorder);
	}
	write_file("t.0005.sbt", 100);
	ts_rotation_find(&rotation, stem, ".sbt", 4, SESSION);
	TS_CHECK_INT(rotation.count, 2);
	TS_CHECK_INT(rotation.files[0].number, 1);
	TS_CHECK_INT(rotation.files[1].number, 3);
	ts_rotation_release(&rotation);
	remove_folder();
}
