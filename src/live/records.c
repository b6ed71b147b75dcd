/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over records. Runs over every recorded byte, so the loop reads one word per record and
 * nothing else.
 */
#include "live/records.h"

#include <string.h>

#include "base/memory.h"

static size_t size_of(uint64_t word)
{
	return (size_t)ts_live_head_words(word) * 8;
}

static unsigned int kind_of(uint64_t word)
{
	return ts_live_head_kind(word);
}

/* Minimum size: every record but PAD has a counter; a THREAD has all its words. */
static size_t least_size(unsigned int kind)
{
	if (kind == TS_LIVE_THREAD)
		return sizeof(struct ts_live_thread_record);
	return kind == TS_LIVE_PAD ? 8 : 16;
}

enum ts_records_stop ts_records_walk(struct ts_records *records)
{
	const unsigned char *data = records->data;
	size_t at = records->at, bytes = records->bytes;
	uint64_t events = records->events;
	enum ts_records_stop stop = TS_RECORDS_END;

	while (bytes - at >= 8) {
		uint64_t word;
		size_t size;
		unsigned int kind;

		memcpy(&word, data + at, 8);
		size = size_of(word);
		kind = kind_of(word);
		/* Common records need only one comparison: 16 <= size <= maximum. */
		if (TS_UNLIKELY(size - 16 > TS_LIVE_RECORD_WORDS * 8 - 16 ||
				kind == TS_LIVE_THREAD)) {
			if (size < least_size(kind) || size > TS_LIVE_RECORD_WORDS * 8) {
				stop = TS_RECORDS_BAD;
				break;
			}
			if (kind == TS_LIVE_THREAD && size <= bytes - at) {
				stop = TS_RECORDS_THREAD;
				break;
			}
		}
		if (size > bytes - at)
			break;
		events += (uint64_t)ts_live_kind_is_event(kind);
		at += size;
	}
	records->at = at;
	records->events = events;
	return stop;
}

void ts_records_thread(const struct ts_records *records, struct ts_live_thread_record *ret_thread)
{
	memcpy(ret_thread, records->data + records->at, sizeof(*ret_thread));
}

void ts_records_skip(struct ts_records *records)
{
	uint64_t word;

	memcpy(&word, records->data + records->at, 8);
	records->at += size_of(word);
}
