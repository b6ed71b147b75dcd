/* SPDX-License-Identifier: Apache-2.0 */
/* Clock conversion: exact, monotone, saturating (docs/format.md, section 6). */
#include <stdlib.h>

#include "model/clockmap.h"

#include "unit/runner.h"

static void add(struct ts_clockmap *map, int64_t clock, int64_t time, int64_t reference,
		int64_t generation)
{
	struct ts_clock_sync_row row = ts_clock_sync_none;

	row.clock = clock;
	row.time = time;
	row.reference = reference;
	row.generation = generation;
	TS_CHECK_INT(ts_clockmap_add(map, &row), 0);
}

TS_TEST(without_points_time_is_trace_time)
{
	struct ts_clockmap map;
	int64_t offset;

	ts_clockmap_init(&map);
	ts_clockmap_seal(&map);
	TS_CHECK(ts_clockmap_find(&map, 1) == NULL);
	TS_CHECK_INT(ts_clock_convert(NULL, 42), 42);
	TS_CHECK(ts_clock_is_offset(NULL, &offset));
	TS_CHECK_INT(offset, 0);
	ts_clockmap_release(&map);
}

TS_TEST(one_point_is_an_offset)
{
	struct ts_clockmap map;
	const struct ts_clock *clock;
	int64_t offset;

	ts_clockmap_init(&map);
	add(&map, 3, 0, 1700000000000000000, 0);
	ts_clockmap_seal(&map);
	clock = ts_clockmap_find(&map, 3);
	TS_CHECK(ts_clock_is_offset(clock, &offset));
	TS_CHECK_INT(offset, 1700000000000000000);
	TS_CHECK_INT(ts_clock_convert(clock, -5), 1699999999999999995);
	TS_CHECK_INT(ts_clock_convert(clock, TS_ABSENT), TS_ABSENT);
	TS_CHECK_INT(ts_clock_convert(clock, INT64_MAX), INT64_MAX);
	TS_CHECK_INT(ts_clock_convert(clock, INT64_MAX - 1), INT64_MAX - 1);
	ts_clockmap_release(&map);
}

TS_TEST(between_points_it_is_linear_and_floors)
{
	struct ts_clockmap map;
	const struct ts_clock *clock;
	int64_t offset;

	ts_clockmap_init(&map);
	add(&map, 1, 1000, 5020, 0);
	add(&map, 1, 0, 5000, 0);
	ts_clockmap_seal(&map);
	clock = ts_clockmap_find(&map, 1);
	TS_CHECK(!ts_clock_is_offset(clock, &offset));
	TS_CHECK_INT(ts_clock_convert(clock, 0), 5000);
	TS_CHECK_INT(ts_clock_convert(clock, 49), 5000);
	TS_CHECK_INT(ts_clock_convert(clock, 50), 5001);
	TS_CHECK_INT(ts_clock_convert(clock, 1000), 5020);
	TS_CHECK_INT(ts_clock_convert(clock, 1010), 5030);
	TS_CHECK_INT(ts_clock_convert(clock, -10), 4990);
	ts_clockmap_release(&map);
}

TS_TEST(the_highest_generation_counts)
{
	struct ts_clockmap map;

	ts_clockmap_init(&map);
	add(&map, 1, 0, 100, 1);
	add(&map, 1, 0, 300, 2);
	add(&map, 1, 0, 200, 1);
	ts_clockmap_seal(&map);
	TS_CHECK_INT(ts_clock_convert(ts_clockmap_find(&map, 1), 7), 307);
	ts_clockmap_release(&map);
}

TS_TEST(of_equal_times_the_last_counts_and_falls_are_left_out)
{
	struct ts_clockmap map;
	const struct ts_clock *clock;

	ts_clockmap_init(&map);
	add(&map, 1, 0, 10, 0);
	add(&map, 1, 0, 20, 0);
	add(&map, 1, 100, 5, 0);
	add(&map, 1, 200, 220, 0);
	ts_clockmap_seal(&map);
	clock = ts_clockmap_find(&map, 1);
	TS_CHECK_INT(clock->count, 2);
	TS_CHECK_INT(ts_clock_convert(clock, 0), 20);
	TS_CHECK_INT(ts_clock_convert(clock, 100), 120);
	ts_clockmap_release(&map);
}

TS_TEST(random_points_never_reverse_order)
{
	for (int run = 0; run < 200; run++) {
		struct ts_clockmap map;
		int64_t last = INT64_MIN;

		srand((unsigned int)run);
		ts_clockmap_init(&map);
		for (int i = 0; i < 20; i++)
			add(&map, 1, (rand() % 2 ? 1 : -1) * ((int64_t)rand() << (rand() % 32)),
			    (rand() % 2 ? 1 : -1) * ((int64_t)rand() << (rand() % 32)), 0);
		ts_clockmap_seal(&map);
		for (int64_t time = INT64_MIN + 1; time < INT64_MAX - (INT64_C(1) << 52);
		     time += INT64_C(1) << 51) {
			int64_t now = ts_clock_convert(ts_clockmap_find(&map, 1), time);

			TS_CHECK(now >= last);
			last = now;
		}
		ts_clockmap_release(&map);
	}
}
