/* SPDX-License-Identifier: Apache-2.0 */
/* Walking the records of a ring. */
#include "live/records.h"

#include <string.h>

#include "live/local/live_records.h"
#include "unit/runner.h"

TS_TEST(walk_counts_and_stops)
{
	uint64_t words[32] = { 0 };
	struct ts_live_record event = { .words = 3, .kind = TS_LIVE_SPAN };
	struct ts_live_record pad = { .words = 1, .kind = TS_LIVE_PAD };
	struct ts_live_record later = { .words = 2, .kind = 200 };
	struct ts_live_record thread = { .words = 8, .kind = TS_LIVE_THREAD };
	struct ts_records records = { .data = (const unsigned char *)words };

	memcpy(&words[0], &event, 8);
	memcpy(&words[3], &pad, 8);
	memcpy(&words[4], &later, 8);
	memcpy(&words[6], &thread, 8);
	memcpy(&words[14], &event, 8);
	records.bytes = 16 * 8;
	TS_CHECK_INT(ts_records_walk(&records), TS_RECORDS_THREAD);
	TS_CHECK_INT(records.at, 48);
	TS_CHECK_INT(records.events, 1);
	ts_records_skip(&records);
	/* The last event is truncated. */
	TS_CHECK_INT(ts_records_walk(&records), TS_RECORDS_END);
	TS_CHECK_INT(records.at, 14 * 8);
	records.bytes = 18 * 8;
	TS_CHECK_INT(ts_records_walk(&records), TS_RECORDS_BAD);
	TS_CHECK_INT(records.at, 17 * 8);
	TS_CHECK_INT(records.events, 2);
	/* A truncated THREAD record does not end the walk. */
	records = (struct ts_records){ .data = (const unsigned char *)words, .bytes = 13 * 8 };
	TS_CHECK_INT(ts_records_walk(&records), TS_RECORDS_END);
	TS_CHECK_INT(records.at, 48);
}
