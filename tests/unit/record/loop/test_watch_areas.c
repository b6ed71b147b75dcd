/* SPDX-License-Identifier: Apache-2.0 */
/* Which areas a recorder takes. */
#include "unit/record/record_target.h"

#define MS_NS INT64_C(1000000)

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
