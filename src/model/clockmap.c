/* SPDX-License-Identifier: Apache-2.0 */
/* Converts clock values to trace time. */
#include "model/clockmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

__extension__ typedef __int128 wide_int;

void ts_clockmap_init(struct ts_clockmap *map)
{
	memset(map, 0, sizeof(*map));
}

void ts_clockmap_release(struct ts_clockmap *map)
{
	for (size_t i = 0; i < map->count; i++)
		free(map->clocks[i].points);
	free(map->clocks);
	ts_map_release(&map->indices);
	ts_clockmap_init(map);
}

static struct ts_clock *find(const struct ts_clockmap *map, int64_t id)
{
	uint64_t index;

	return ts_map_get(&map->indices, (uint64_t)id, &index) ? &map->clocks[index] : NULL;
}

const struct ts_clock *ts_clockmap_find(const struct ts_clockmap *map, uint32_t clock)
{
	return find(map, clock);
}

int ts_clockmap_add(struct ts_clockmap *map, const struct ts_clock_sync_row *row)
{
	struct ts_clock *clock = find(map, row->clock);

	if (!clock) {
		if (ts_map_put(&map->indices, (uint64_t)row->clock, map->count) ||
		    ts_grow_array((void **)&map->clocks, &map->capacity, map->count + 1,
				  sizeof(*clock)))
			return TS_ENOMEM;
		clock = &map->clocks[map->count++];
		*clock = (struct ts_clock){ .id = row->clock, .generation = row->generation };
	}
	if (row->generation < clock->generation)
		return TS_OK;
	if (row->generation > clock->generation) {
		clock->generation = row->generation;
		clock->count = 0;
	}
	if (ts_grow_array((void **)&clock->points, &clock->capacity, clock->count + 1,
			  sizeof(*clock->points)))
		return TS_ENOMEM;
	clock->points[clock->count] = (struct ts_clock_point){ .time = row->time,
							       .reference = row->reference,
							       .order = clock->count };
	clock->count++;
	return TS_OK;
}

static int compare_points(const void *left, const void *right)
{
	const struct ts_clock_point *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

void ts_clockmap_seal(struct ts_clockmap *map)
{
	for (size_t i = 0; i < map->count; i++) {
		struct ts_clock *clock = &map->clocks[i];
		size_t kept = 0;

		if (clock->count)
			qsort(clock->points, clock->count, sizeof(*clock->points), compare_points);
		for (size_t k = 0; k < clock->count; k++) {
			struct ts_clock_point point = clock->points[k];

			if (kept && clock->points[kept - 1].time == point.time)
				kept--;
			if (kept && clock->points[kept - 1].reference > point.reference)
				continue;
			clock->points[kept++] = point;
		}
		clock->count = kept;
	}
}

static int64_t saturate(wide_int value)
{
	if (value <= INT64_MIN)
		return INT64_MIN + 1;
	if (value >= INT64_MAX)
		return INT64_MAX - 1;
	return (int64_t)value;
}

int64_t ts_clock_convert(const struct ts_clock *clock, int64_t time)
{
	const struct ts_clock_point *a, *b;
	size_t low = 0, high;
	wide_int product, span;

	if (!clock || clock->count == 0 || time == TS_ABSENT || time == INT64_MAX)
		return time;
	/* The last point at or before `time`. */
	high = clock->count;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (clock->points[middle].time <= time)
			low = middle + 1;
		else
			high = middle;
	}
	a = &clock->points[low ? low - 1 : 0];
	if (low == 0 || low == clock->count)
		return saturate((wide_int)time - a->time + a->reference);
	b = a + 1;
	/* Both factors are in 0 .. 2^64 - 1, so their product needs an unsigned 128-bit integer. */
	span = (wide_int)b->time - a->time;
	product = (wide_int)(((unsigned __int128)((wide_int)time - a->time) *
			      (unsigned __int128)((wide_int)b->reference - a->reference)) /
			     (unsigned __int128)span);
	return saturate(product + a->reference);
}

bool ts_clock_is_offset(const struct ts_clock *clock, int64_t *ret_offset)
{
	if (!clock || clock->count == 0) {
		*ret_offset = 0;
		return true;
	}
	return clock->count == 1 && !__builtin_sub_overflow(clock->points[0].reference,
							    clock->points[0].time, ret_offset);
}
