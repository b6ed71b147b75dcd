/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an area, its control block, the words that a recorder writes. */
#include "unit/live/live_support.h"

static void expect_refused(const struct live *live, int code, const char *part)
{
	struct ts_area *area = NULL;
	struct ts_error err = { 0 };

	TS_CHECK_INT(ts_area_open(&area, live->directory_fd, live->name, false, &err), code);
	TS_CHECK(area == NULL);
	if (!strstr(err.message, part))
		ts_test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", err.message, part);
}

TS_TEST(opens_and_ends_texts)
{
	struct live live;
	struct ts_area *area;
	const struct ts_live_control *control;

	live_make(&live, 1, 4096);
	memset(live.control->name, 'n', sizeof(live.control->name));
	memset(live.control->command, 'c', sizeof(live.control->command));
	memset(live.control->message, 'm', sizeof(live.control->message));
	area = live_open(&live, false);
	control = ts_area_control(area);
	TS_CHECK_STR(ts_area_name(area), live.name);
	TS_CHECK_INT(control->pid, 100);
	TS_CHECK_INT(strlen(control->name), sizeof(control->name) - 1);
	TS_CHECK_INT(strlen(control->command), sizeof(control->command) - 1);
	TS_CHECK_INT(strlen(control->message), sizeof(control->message) - 1);
	TS_CHECK(ts_area_damage(area) == NULL);
	ts_area_close(area);
	ts_area_close(NULL);
	live_release(&live);
}

TS_TEST(refuses_what_is_no_area)
{
	struct live live;
	struct ts_area *area = NULL;

	live_make(&live, 1, 4096);
	live.control->version = 2;
	expect_refused(&live, TS_EVERSION, "newer");
	live.control->version = 0;
	expect_refused(&live, TS_EFORMAT, "version");
	live.control->version = 1;
	live.control->magic[0] = 'X';
	expect_refused(&live, TS_EFORMAT, "not a live area");
	live.control->magic[0] = 'T';
	TS_CHECK(ftruncate(live.fd, 4095) == 0);
	expect_refused(&live, TS_EFORMAT, "cut");
	TS_CHECK(ftruncate(live.fd, (off_t)live.bytes) == 0);
	TS_CHECK_INT(ts_area_open(&area, live.directory_fd, "none", false, NULL), TS_ENOTFOUND);
	TS_CHECK_INT(ts_area_open(&area, live.directory_fd, "../x", false, NULL), TS_EINVAL);
	live_release(&live);
}

TS_TEST(follows_no_link_and_waits_for_no_pipe)
{
	struct live live;
	struct ts_area *area = NULL;

	live_make(&live, 1, 4096);
	TS_CHECK(symlinkat(live.name, live.directory_fd, "link") == 0);
	TS_CHECK(mkfifoat(live.directory_fd, "pipe", 0600) == 0);
	TS_CHECK_INT(ts_area_open(&area, live.directory_fd, "link", false, NULL), TS_EIO);
	TS_CHECK_INT(ts_area_open(&area, live.directory_fd, "pipe", false, NULL), TS_EFORMAT);
	TS_CHECK_INT(ts_area_open(&area, live.directory_fd, ".", false, NULL), TS_EFORMAT);
	unlinkat(live.directory_fd, "link", 0);
	unlinkat(live.directory_fd, "pipe", 0);
	live_release(&live);
}

/* Every number of the control block that a reader relies on. */
TS_TEST(checks_each_number)
{
	struct live live;
	struct ts_live_control good;

	live_make(&live, 1, 4096);
	good = *live.control;
#define EXPECT_BAD(field, value)                              \
	do {                                                  \
		live.control->field = (value);                \
		expect_refused(&live, TS_EFORMAT, "damaged"); \
		*live.control = good;                         \
	} while (0)
	EXPECT_BAD(control_bytes, 8192);
	EXPECT_BAD(ring_bytes, 128);
	EXPECT_BAD(directory, 0);
	EXPECT_BAD(dictionary, UINT64_MAX);
	EXPECT_BAD(pool, 4096);
	EXPECT_BAD(pool, TS_LIVE_POOL - 4096);
	EXPECT_BAD(pool, TS_LIVE_POOL + 8);
	EXPECT_BAD(pool, TS_LIVE_DICTIONARY + TS_LIVE_DICTIONARY_GREATEST + 4096);
	EXPECT_BAD(pool, UINT64_MAX & ~UINT64_C(4095));
	EXPECT_BAD(area_id, 0);
	EXPECT_BAD(pid, 0);
	EXPECT_BAD(pid, 0x80000000u);
	EXPECT_BAD(clock, 3);
	EXPECT_BAD(ring_limit, TS_LIVE_RING_LIMIT + 1);
	EXPECT_BAD(rings, TS_LIVE_RING_LIMIT + 1);
	EXPECT_BAD(dictionary_used, TS_LIVE_DICTIONARY_BYTES + 8);
	EXPECT_BAD(dictionary_used, 4);
#undef EXPECT_BAD
	ts_area_close(live_open(&live, false));
	live_release(&live);
}

TS_TEST(refresh_sees_what_changes)
{
	struct live live;
	struct ts_area *area;

	live_make(&live, 2, 4096);
	live.control->rings = 1;
	live.control->latest.counter = 7;
	area = live_open(&live, false);
	live.control->rings = 2;
	live.control->step = 12;
	live.control->latest.counter = 0;
	TS_CHECK_INT(ts_area_refresh(area, NULL), TS_OK);
	TS_CHECK_INT(ts_area_control(area)->rings, 2);
	TS_CHECK_INT(ts_area_control(area)->step, 12);
	/* Half changed: the previous value. */
	TS_CHECK_INT(ts_area_control(area)->latest.counter, 7);
	ts_area_close(area);
	live_release(&live);
}

static void expect_damage(const struct live *live, struct ts_area *area)
{
	struct ts_error err = { 0 };

	TS_CHECK_INT(ts_area_refresh(area, &err), TS_EFORMAT);
	TS_CHECK(strstr(err.message, "damaged") && strstr(err.message, live->name));
	TS_CHECK(ts_area_damage(area) != NULL);
}

TS_TEST(refresh_finds_damage_and_keeps_it)
{
	struct live live;
	struct ts_area *area;

	live_make(&live, 2, 4096);
	area = live_open(&live, false);
	live.control->area_id++;
	expect_damage(&live, area);
	live.control->area_id--;
	expect_damage(&live, area);
	ts_area_close(area);

	area = live_open(&live, false);
	live.control->rings = 1;
	expect_damage(&live, area);
	ts_area_close(area);

	area = live_open(&live, false);
	TS_CHECK(ftruncate(live.fd, 100) == 0);
	expect_damage(&live, area);
	ts_area_close(area);
	TS_CHECK(ftruncate(live.fd, (off_t)live.bytes) == 0);
	live_release(&live);
}

#define OFFSET(field) offsetof(struct ts_live_control, field)

TS_TEST(sets_words_of_the_recorder_only)
{
	struct live live;
	struct ts_area *area, *reader;

	live_make(&live, 1, 4096);
	area = live_open(&live, true);
	TS_CHECK_INT(ts_area_set(area, OFFSET(mode), TS_LIVE_FLIGHT, 4, NULL), TS_OK);
	TS_CHECK_INT(live.control->mode, TS_LIVE_FLIGHT);
	TS_CHECK_INT(ts_area_control(area)->mode, TS_LIVE_FLIGHT);
	TS_CHECK_INT(ts_area_set(area, OFFSET(step_open), (uint64_t)TS_ABSENT, 8, NULL), TS_OK);
	TS_CHECK_INT(live.control->step_open, TS_ABSENT);
	TS_CHECK_INT(ts_area_set(area, OFFSET(config[47]), 99, 8, NULL), TS_OK);
	TS_CHECK_INT(live.control->config[47], 99);
	/* Only one byte of it is ever changed. */
	live.control->enabled = 0xaabbcc01;
	TS_CHECK_INT(ts_area_set(area, OFFSET(enabled), 0, 4, NULL), TS_OK);
	TS_CHECK_INT(live.control->enabled, 0xaabbcc00);

	TS_CHECK_INT(ts_area_set(area, OFFSET(rings), 1, 4, NULL), TS_EINVAL);
	TS_CHECK_INT(ts_area_set(area, OFFSET(name), 1, 4, NULL), TS_EINVAL);
	TS_CHECK_INT(ts_area_set(area, OFFSET(mode), 1, 8, NULL), TS_EINVAL);
	TS_CHECK_INT(ts_area_set(area, OFFSET(mode), 1, 2, NULL), TS_EINVAL);
	TS_CHECK_INT(ts_area_set(area, SIZE_MAX - 3, 1, 4, NULL), TS_EINVAL);
	reader = live_open(&live, false);
	TS_CHECK_INT(ts_area_set(reader, OFFSET(mode), 1, 4, NULL), TS_EINVAL);
	TS_CHECK_INT(live.control->mode, TS_LIVE_FLIGHT);
	ts_area_close(reader);
	ts_area_close(area);
	live_release(&live);
}

TS_TEST(one_drains_at_a_time)
{
	struct live live;
	struct ts_area *first, *second;
	struct ts_error err = { 0 };
	struct sink *sink = sink_new();

	live_make(&live, 1, 4096);
	first = live_open(&live, true);
	second = live_open(&live, true);
	TS_CHECK_INT(ts_area_lock(first, NULL), TS_OK);
	TS_CHECK_INT(ts_area_lock(first, NULL), TS_OK);
	TS_CHECK_INT(ts_area_drain(second, 0, &sink->sink, NULL, &err), TS_EIO);
	TS_CHECK(strstr(err.message, "another recorder") != NULL);
	/* Verbs that set words may still do so. */
	TS_CHECK_INT(ts_area_set(second, OFFSET(redact), 1, 4, NULL), TS_OK);
	ts_area_close(first);
	TS_CHECK_INT(ts_area_drain(second, 0, &sink->sink, NULL, &err), TS_OK);
	ts_area_close(second);
	free(sink);
	live_release(&live);
}
