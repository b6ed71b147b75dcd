/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the lossless channel: records to write, and what a broken stream looks like. */
#ifndef TS_TESTS_UNIT_AGENT_REPLAY_CHANNEL_SUPPORT_H
#define TS_TESTS_UNIT_AGENT_REPLAY_CHANNEL_SUPPORT_H

#include "agent/replay_channel.h"
#include "unit/agent/agent_support.h"

SUPPORT uint64_t give(unsigned int kind, uint64_t blob, const char *details)
{
	struct ts_replay_command command = { .size = sizeof(command),
					     .kind = kind,
					     .queue = 1,
					     .object = 2,
					     .other = 3,
					     .offset = 4,
					     .other_offset = INT64_MIN,
					     .bytes = 6,
					     .blob = blob,
					     .correlation = 7,
					     .details = details };

	return ts_replay_command(&command);
}

/* The channel's ring among those that were drained. */
SUPPORT struct agent_cursor channel_of(const struct agent_reader *reader)
{
	struct agent_cursor cursor = { .reader = reader };
	struct ts_live_record head;
	const uint64_t *record;

	while ((record = agent_next(&cursor, &head))) {
		const struct ts_live_thread_record *thread =
			(const struct ts_live_thread_record *)(const void *)record;

		if (head.kind == TS_LIVE_THREAD && !strcmp(thread->name, "commands"))
			return (struct agent_cursor){ .reader = reader,
						      .ring = cursor.ring,
						      .only = true };
	}
	ts_test_fail(__FILE__, __LINE__, "no channel");
}

/*
 * The last record of the channel, not counting PADs, must be a CLOSE whose details contain `words`.
 */
SUPPORT void check_closed(const struct agent_reader *reader, const char *words)
{
	struct agent_cursor cursor = channel_of(reader);
	const uint64_t *record, *last = NULL;
	struct ts_live_record head;
	char details[512];

	while ((record = agent_next(&cursor, &head)))
		last = head.kind == TS_LIVE_PAD ? last : record;
	TS_CHECK(last != NULL);
	memcpy(&head, last, sizeof(head));
	TS_CHECK_INT(head.kind, TS_LIVE_COMMAND);
	TS_CHECK_INT(last[3], TS_COMMAND_CLOSE);
	last += 13;
	agent_string(&last, details, sizeof(details));
	TS_CHECK(strstr(details, "\"failed\":\"") != NULL);
	if (!strstr(details, words))
		ts_test_fail(__FILE__, __LINE__, "'%s' is not in %s", words, details);
}

SUPPORT void check_broken(void)
{
	TS_CHECK(ts_replay_is_broken());
	TS_CHECK(!ts_replay_lock());
	TS_CHECK_INT(ts_replay_blob("x", 1), 0);
	TS_CHECK_INT(give(TS_COMMAND_LAUNCH, 0, NULL), 0);
	ts_replay_gone(1);
	ts_replay_unlock();
	/* Nothing stays locked, and no signal stays blocked. */
	TS_CHECK_INT(ts_process_tracer.core->channel.lock, 0);
}

#endif
