/* SPDX-License-Identifier: Apache-2.0 */
/* Draining a damaged area: damage is reported once and stays local. */
#include "live/area_internal.h"
#include "unit/live/drain_support.h"

/* The other ring continues, the damage is reported once, and the space is not freed. */
static void expect_damaged_ring(struct pair *pair, uint64_t stored)
{
	struct ts_drain_result result = live_drain(pair->area, 0, pair->sink);
	unsigned int blocks;

	TS_CHECK_INT(result.damaged, 1);
	TS_CHECK_INT(pair->sink->losses, 1);
	TS_CHECK_INT(pair->sink->loss.count, TS_ABSENT);
	TS_CHECK(strstr(pair->sink->loss.reason, "ring 0 is damaged") != NULL);
	TS_CHECK_INT(pair->sink->rings[0].stored, stored);
	TS_CHECK_INT(pair->sink->rings[1].stored, 2);
	TS_CHECK(ts_area_damage(pair->area) == NULL);
	blocks = pair->sink->blocks;
	pair->live.rings[0].head += 16;
	result = live_drain(pair->area, TS_DRAIN_FINAL, pair->sink);
	TS_CHECK_INT(result.damaged, 1);
	TS_CHECK_INT(pair->sink->blocks, blocks);
	end(pair);
}

static void begin_damage(struct pair *pair)
{
	begin(pair, 2, 4096);
	for (uint32_t ring = 0; ring < 2; ring++) {
		live_put_event(&pair->live, ring, 1, 2);
		live_put_event(&pair->live, ring, 2, 4);
	}
}

TS_TEST(damaged_entries)
{
	struct pair pair;

#define EXPECT_BAD(statement)                  \
	do {                                   \
		begin_damage(&pair);           \
		statement;                     \
		expect_damaged_ring(&pair, 0); \
	} while (0)
	EXPECT_BAD(pair.live.rings[0].bytes = 4095);
	EXPECT_BAD(pair.live.rings[0].bytes = 2048);
	EXPECT_BAD(pair.live.rings[0].bytes = 12288);
	EXPECT_BAD(pair.live.rings[0].bytes = UINT64_C(1) << 63);
	EXPECT_BAD(pair.live.rings[0].bytes = 128 << 20);
	EXPECT_BAD(pair.live.rings[0].bytes = 16384);
	EXPECT_BAD(pair.live.rings[0].offset = 0);
	EXPECT_BAD(pair.live.rings[0].offset = UINT64_MAX - 7);
	EXPECT_BAD(pair.live.rings[0].offset = TS_LIVE_POOL + 4);
	EXPECT_BAD(pair.live.rings[0].offset = pair.live.bytes);
	EXPECT_BAD(pair.live.rings[0].head = 4096 + 8);
	EXPECT_BAD(pair.live.rings[0].head = UINT64_MAX);
	EXPECT_BAD(pair.live.rings[0].head = UINT64_C(1) << 40);
	EXPECT_BAD(pair.live.rings[0].head = 44);
	EXPECT_BAD(pair.live.rings[0].slot_0.position = 64);
	EXPECT_BAD(pair.live.rings[0].slot_0.position = 4);
	EXPECT_BAD(pair.live.rings[0].slot_0.position = UINT64_MAX);
	EXPECT_BAD((pair.live.rings[0].slot_0.position = 16, pair.live.rings[0].slot_0.events = 9));
#undef EXPECT_BAD
}

TS_TEST(damaged_records)
{
	struct pair pair;
	struct ts_live_record record = { .words = 2, .kind = TS_LIVE_INSTANT };
	unsigned char *second;

#define EXPECT_BAD(field, value)                                         \
	do {                                                             \
		struct ts_live_record bad = record;                      \
		begin_damage(&pair);                                     \
		bad.field = (value);                                     \
		second = pair.live.map + pair.live.rings[0].offset + 16; \
		memcpy(second, &bad, sizeof(bad));                       \
		expect_damaged_ring(&pair, 1);                           \
	} while (0)
	EXPECT_BAD(words, 0);
	EXPECT_BAD(words, 1);
	EXPECT_BAD(words, 5);
	EXPECT_BAD(words, 2049);
	EXPECT_BAD(words, UINT16_MAX);
	EXPECT_BAD(kind, TS_LIVE_THREAD);
#undef EXPECT_BAD
}

TS_TEST(rings_that_fall_back_or_move)
{
	struct pair pair;

	for (int what = 0; what < 4; what++) {
		begin_damage(&pair);
		live_drain(pair.area, 0, pair.sink);
		if (what == 0)
			pair.live.rings[0].head = 16;
		else if (what == 1)
			pair.live.rings[0].offset = pair.live.rings[1].offset,
			pair.live.rings[0].head += 8;
		else if (what == 2)
			pair.live.rings[0].bytes = 0, pair.live.rings[0].head += 8;
		else
			pair.live.rings[0].head += 4096 + 16;
		expect_damaged_ring(&pair, 2);
	}
}

/* Overlapping rings would be drained many times over. */
TS_TEST(rings_that_overlap)
{
	struct pair pair;

	begin_damage(&pair);
	pair.live.rings[2] = pair.live.rings[1];
	pair.live.control->rings = 3;
	live_drain(pair.area, 0, pair.sink);
	TS_CHECK_INT(pair.sink->rings[0].stored, 2);
	TS_CHECK_INT(pair.sink->rings[1].stored, 2);
	TS_CHECK_INT(pair.sink->rings[2].stored, 0);
	TS_CHECK_INT(pair.sink->losses, 1);
	end(&pair);
}

TS_TEST(damaged_dictionary)
{
	struct pair pair;

	for (int what = 0; what < 4; what++) {
		struct ts_live_site *site;

		begin_damage(&pair);
		live_put_site(&pair.live, "a site of some length");
		site = (struct ts_live_site *)(pair.live.map + TS_LIVE_DICTIONARY);
		if (what == 0)
			site->bytes = 0;
		else if (what == 1)
			site->bytes = 4096;
		else if (what == 2)
			site->fields = 33;
		else
			site->name_bytes = UINT16_MAX;
		live_drain(pair.area, 0, pair.sink);
		TS_CHECK(ts_area_damage(pair.area) != NULL);
		TS_CHECK_INT(pair.sink->losses, 1);
		TS_CHECK(strstr(pair.sink->loss.reason, "dictionary") != NULL);
		live_drain(pair.area, TS_DRAIN_FINAL, pair.sink);
		TS_CHECK_INT(pair.sink->blocks, 1);
		end(&pair);
	}
}

TS_TEST(file_cut_at_every_page)
{
	struct live live;
	uint64_t complete = 0;

	live_make(&live, 3, 8192);
	live_put_site(&live, "a site");
	for (uint32_t ring = 0; ring < 3; ring++)
		for (uint64_t i = 1; i <= 200; i++)
			live_put_event(&live, ring, i, 5);
	/* Truncated before it is opened, and while it is open. */
	for (int open_first = 0; open_first < 2; open_first++) {
		for (size_t bytes = 0; bytes <= live.bytes; bytes += 4096) {
			TS_AUTO_FREE unsigned char *saved = malloc(live.bytes);
			struct ts_area *area = NULL;
			struct sink *sink = sink_new();

			memcpy(saved, live.map, live.bytes);
			if (open_first)
				area = live_open(&live, true);
			TS_CHECK(ftruncate(live.fd, (off_t)bytes) == 0);
			if (!open_first)
				ts_area_open(&area, live.directory_fd, live.name, true, NULL);
			TS_CHECK(area || bytes < 4096);
			if (area) {
				live_drain(area, TS_DRAIN_FINAL, sink);
				live_drain(area, TS_DRAIN_FINAL, sink);
				TS_CHECK_INT(sink->losses > 0, bytes < live.bytes);
				complete += sink->rings[2].stored;
			}
			ts_area_close(area);
			free(sink);
			TS_CHECK(ftruncate(live.fd, (off_t)live.bytes) == 0);
			memcpy(live.map, saved, live.bytes);
		}
	}
	TS_CHECK_INT(complete, 2 * 200);
	live_release(&live);
}

/*
 * With arbitrary contents of directory and rings, the drain ends, delivers complete records (the
 * sink checks) and no error.
 */
TS_TEST(random_bytes)
{
	struct live live;

	live_make(&live, 16, 4096);
	srand(1);
	for (int round = 0; round < 400; round++) {
		struct sink *sink = sink_new();
		struct ts_area *area;

		for (uint32_t i = 0; i < 16; i++) {
			unsigned char *entry = (unsigned char *)&live.rings[i];

			memset(entry, 0, TS_LIVE_ENTRY_BYTES);
			memset(&live.consumed[i], 0, sizeof(live.consumed[i]));
			live.rings[i].offset = TS_LIVE_POOL + i * 4096;
			live.rings[i].bytes = 4096;
			while (live_put_event(&live, i, 1, (uint16_t)(2 + rand() % 30)))
				;
			live_put_thread(&live, i, 1, (uint32_t)rand() % 20,
					(uint32_t)rand() % 5000);
			/* Some random bytes, or all of them. */
			for (int k = rand() % 4; k > 0; k--)
				entry[rand() % 256] ^= (unsigned char)(1 << rand() % 8);
			for (int k = rand() % 3; k > 0; k--)
				live.map[TS_LIVE_POOL + i * 4096 + (unsigned int)rand() % 4096] ^=
					(unsigned char)rand();
			for (int k = 0; k < 256 && round % 4 == 0; k++)
				entry[k] = (unsigned char)rand();
		}
		area = live_open(&live, true);
		live_drain(area, 0, sink);
		live_drain(area, TS_DRAIN_FINAL, sink);
		ts_area_close(area);
		free(sink);
	}
	live_release(&live);
}
