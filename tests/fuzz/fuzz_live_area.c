/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a live area: opened, resumed, drained several times while it changes. Must not
 * crash, leak, loop or exceed its memory limits, and every block must be valid in a journal:
 * complete records, positions and counts that never decrease. The input is one of area_input.h.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/area_input.h"

/* What is known of a ring. */
struct reported {
	uint64_t to, events, dropped;
};

struct sink {
	struct reported rings[TS_LIVE_RING_LIMIT];
	uint64_t dictionary_to;
	uint64_t area_id;
	unsigned int blocks, losses;
	uint64_t bytes;
};

static int directory_fd = -1;

/* ---- the sink ---- */

static uint64_t count_events(const uint8_t *payload, size_t bytes)
{
	uint64_t events = 0;
	size_t at = 0;

	while (at < bytes) {
		struct ts_live_record record;

		check(bytes - at >= sizeof(record), "a record is cut");
		memcpy(&record, payload + at, sizeof(record));
		check(record.words >= 1 && record.words <= TS_LIVE_RECORD_WORDS,
		      "a record has a bad size");
		check(record.words * 8u <= bytes - at, "a record is cut");
		events += (uint64_t)ts_live_kind_is_event(record.kind);
		at += record.words * 8u;
	}
	return events;
}

static void check_ring(struct sink *sink, const struct ts_block *block, const uint8_t *payload)
{
	const size_t thread_bytes = sizeof(struct ts_live_thread_record);
	struct reported *reported = &sink->rings[block->ring];
	size_t bytes = block->bytes;
	uint64_t events;

	check(block->ring < TS_LIVE_RING_LIMIT, "a ring that cannot be");
	if (block->flags & TS_RING_START) {
		check(bytes == 0, "a start with bytes");
		reported->events = block->events;
		reported->dropped = block->dropped;
	}
	if (block->flags & TS_RING_THREAD) {
		check(bytes > thread_bytes && count_events(payload, thread_bytes) == 0,
		      "no THREAD record where one was promised");
		payload += thread_bytes;
		bytes -= thread_bytes;
	}
	check(block->from <= block->to && block->from >= reported->to, "positions fall");
	check(bytes == 0 || bytes == block->to - block->from,
	      "bytes that are not of the positions");
	events = count_events(payload, bytes);
	check(block->events >= reported->events && block->events - reported->events >= events,
	      "events fall");
	check(block->dropped >= reported->dropped, "drops fall");
	*reported = (struct reported){ block->to, block->events, block->dropped };
	sink->bytes += bytes;
}

static int append(void *context, struct ts_block *block, const void *payload, struct ts_error *err)
{
	struct sink *sink = context;

	(void)err;
	check(block->area == sink->area_id, "a block of another area");
	check(++sink->blocks < 100000, "too many blocks");
	if (block->type == TS_BLOCK_RING) {
		check_ring(sink, block, payload);
	} else if (block->type == TS_BLOCK_DICTIONARY) {
		check(block->from == sink->dictionary_to && block->to - block->from == block->bytes,
		      "the dictionary has gaps");
		sink->dictionary_to = block->to;
	} else {
		check(block->type == TS_BLOCK_LOSS, "a block of another type");
		check(++sink->losses <= TS_LIVE_RING_LIMIT + 1, "damage is reported too often");
	}
	return TS_OK;
}

/* ---- running ---- */

static void resume(struct ts_area *area, const struct area_header *header, struct sink *sink)
{
	for (unsigned int i = 0; i < header->rings; i++) {
		struct reported *reported = &sink->rings[i];

		reported->to = header->resumed[i] * UINT64_C(8);
		reported->events = reported->to / 24;
		ts_area_resume_ring(area, i, reported->to, reported->events, 0);
	}
}

static void drain(struct ts_area *area, int fd, const struct area_header *header,
		  struct area_input *input)
{
	static struct sink sink;
	const struct ts_block_sink where = { .append = append, .context = &sink };

	memset(&sink, 0, sizeof(sink));
	sink.area_id = ts_area_control(area)->area_id;
	if (header->flags & RESUME)
		resume(area, header, &sink);
	for (unsigned int pass = 0; pass < header->passes; pass++) {
		unsigned int flags = header->drain >> pass * 2 & 3;
		struct ts_drain_result result;
		struct ts_error err = { 0 };

		if (pass)
			area_put_directory(fd, header, input);
		check(ts_area_drain(area, flags, &where, &result, &err) == 0, err.message);
		check(result.damaged <= TS_LIVE_RING_LIMIT, "more damage than rings");
	}
	check(sink.bytes <= (uint64_t)AREA_PASSES * 10 * AREA_RINGS * AREA_RING_BYTES,
	      "more bytes than there were");
}

static void remove_directory(void)
{
	unlinkat(directory_fd, AREA_NAME, 0);
	rmdir(area_directory);
}

static void run(int fd, const struct area_header *header, struct area_input *input)
{
	struct ts_area *area;
	struct ts_error err = { 0 };

	area_put_all(fd, header, input);
	if (ts_area_open(&area, directory_fd, AREA_NAME, header->flags & WRITABLE, &err)) {
		check(err.code && err.message[0], "an error without a message");
		return;
	}
	if (header->flags & CUT)
		check(ftruncate(fd, (off_t)header->file_pages * 512 % AREA_FILE_BYTES) == 0,
		      "cannot cut");
	drain(area, fd, header, input);
	ts_area_close(area);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct area_input input = { data, size };
	struct area_header header;
	int fd;

	if (directory_fd < 0)
		directory_fd = area_make_directory(remove_directory);
	area_take_header(&input, &header);
	fd = area_make(directory_fd);
	run(fd, &header, &input);
	close(fd);
	unlinkat(directory_fd, AREA_NAME, 0);
	return 0;
}
