/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a live area: opened, resumed, drained several times while it changes. Must not
 * crash, leak, loop or exceed its memory limits, and every block must be valid in a journal:
 * complete records, positions and counts that never decrease.
 *
 * An area is 2 MiB of mostly zeros, so the input only has its parts: struct header, patches of the
 * control block, the dictionary, a directory for each pass, and the rings' bytes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fuzz_check.h"
#include "live/area.h"

#define MAX_RINGS 4u
#define MAX_PASSES 3u
#define RING_BYTES 8192u
#define FILE_BYTES (TS_LIVE_POOL + MAX_RINGS * RING_BYTES)
#define NAME "1-1-0000000000000001"

struct header {
	uint8_t rings, passes;
	uint8_t flags; /* below */
	uint8_t drain; /* TS_DRAIN_* of the passes, two bits each */
	uint16_t patches, dictionary_bytes;
	uint16_t resumed[MAX_RINGS]; /* words; if RESUME is set */
	uint16_t file_pages;         /* the file is truncated here, if CUT is set */
};
enum { WRITABLE = 1, RESUME = 2, CUT = 4 };

struct patch {
	uint16_t offset;
	uint8_t value, reserved;
};

/* A directory entry without its reserved bytes. */
struct entry {
	uint8_t first[104], consumed[48], slot_1[40];
};

struct input {
	const uint8_t *data;
	size_t bytes;
};

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

static char directory[32];
static int directory_fd = -1;

static bool take(struct input *input, void *part, size_t bytes)
{
	size_t available = input->bytes < bytes ? input->bytes : bytes;

	memset(part, 0, bytes);
	memcpy(part, input->data, available);
	input->data += available;
	input->bytes -= available;
	return available == bytes;
}

/* ---- the file ---- */

static void put(int fd, const void *data, size_t bytes, uint64_t offset)
{
	check(pwrite(fd, data, bytes, (off_t)offset) == (ssize_t)bytes, "cannot fill the area");
}

static void put_control(int fd, const struct header *header, struct input *input)
{
	struct ts_live_control control = {
		.magic = { 'T', 'S', 'L', 'I', 'V', 'E', '\r', '\n' },
		.version = TS_LIVE_VERSION,
		.control_bytes = TS_LIVE_CONTROL_BYTES,
		.pid = 1,
		.start_time = 1,
		.area_id = 1,
		.clock = TS_LIVE_CLOCK_MONOTONIC,
		.ring_limit = TS_LIVE_RING_LIMIT,
		.ring_bytes = TS_LIVE_ENTRY_BYTES,
		.directory = TS_LIVE_DIRECTORY,
		.dictionary = TS_LIVE_DICTIONARY,
		.pool = TS_LIVE_POOL,
		.rings = header->rings,
		.dictionary_used = header->dictionary_bytes,
	};

	for (unsigned int i = 0; i < header->patches; i++) {
		struct patch patch;

		if (!take(input, &patch, sizeof(patch)))
			break;
		((unsigned char *)&control)[patch.offset % sizeof(control)] = patch.value;
	}
	put(fd, &control, sizeof(control), 0);
}

static void put_dictionary(int fd, const struct header *header, struct input *input)
{
	size_t bytes = header->dictionary_bytes < input->bytes ? header->dictionary_bytes
							       : input->bytes;

	put(fd, input->data, bytes, TS_LIVE_DICTIONARY);
	input->data += bytes;
	input->bytes -= bytes;
}

/* A ring without a given position gets a valid one. */
static void put_directory(int fd, const struct header *header, struct input *input)
{
	for (unsigned int i = 0; i < header->rings; i++) {
		struct ts_live_ring ring = { .head = 0 };
		struct entry entry;

		if (!take(input, &entry, sizeof(entry)))
			return;
		memcpy(&ring, entry.first, sizeof(entry.first));
		memcpy((char *)&ring + offsetof(struct ts_live_ring, consumed), entry.consumed,
		       sizeof(entry.consumed));
		memcpy(&ring.slot_1, entry.slot_1, sizeof(entry.slot_1));
		ring.offset = ring.offset ? ring.offset : TS_LIVE_POOL + i * RING_BYTES;
		ring.bytes = ring.bytes ? ring.bytes : RING_BYTES;
		if (ring.consumed_check == 0)
			ring.consumed_check =
				ts_live_consumed_check(ring.consumed, ring.consumed_events,
						       ring.consumed_tid, ring.consumed_serial);
		put(fd, &ring, sizeof(ring), TS_LIVE_DIRECTORY + i * sizeof(ring));
	}
}

static void put_rings(int fd, const struct header *header, const struct input *input)
{
	size_t each = input->bytes / header->rings / 8 * 8;

	each = each < RING_BYTES ? each : RING_BYTES;
	for (unsigned int i = 0; i < header->rings; i++)
		put(fd, input->data + i * each, each, TS_LIVE_POOL + i * RING_BYTES);
}

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

static void resume(struct ts_area *area, const struct header *header, struct sink *sink)
{
	for (unsigned int i = 0; i < header->rings; i++) {
		struct reported *reported = &sink->rings[i];

		reported->to = header->resumed[i] * UINT64_C(8);
		reported->events = reported->to / 24;
		ts_area_resume_ring(area, i, reported->to, reported->events, 0);
	}
}

static void drain(struct ts_area *area, int fd, const struct header *header, struct input *input)
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
			put_directory(fd, header, input);
		check(ts_area_drain(area, flags, &where, &result, &err) == 0, err.message);
		check(result.damaged <= TS_LIVE_RING_LIMIT, "more damage than rings");
	}
	check(sink.bytes <= (uint64_t)MAX_PASSES * 10 * MAX_RINGS * RING_BYTES,
	      "more bytes than there were");
}

static void remove_directory(void)
{
	unlinkat(directory_fd, NAME, 0);
	rmdir(directory);
}

static void make_directory(void)
{
	snprintf(directory, sizeof(directory), "%s/ts-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	check(mkdtemp(directory) != NULL, "cannot make a directory");
	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(directory_fd >= 0, "cannot open a directory");
	atexit(remove_directory);
}

static void run(int fd, const struct header *header, struct input *input)
{
	struct input rings;
	struct ts_area *area;
	struct ts_error err = { 0 };
	size_t directories = (size_t)header->passes * header->rings * sizeof(struct entry);

	put_control(fd, header, input);
	put_dictionary(fd, header, input);
	rings = *input;
	rings.data += directories < rings.bytes ? directories : rings.bytes;
	rings.bytes -= directories < rings.bytes ? directories : rings.bytes;
	put_directory(fd, header, input);
	put_rings(fd, header, &rings);
	if (ts_area_open(&area, directory_fd, NAME, header->flags & WRITABLE, &err)) {
		check(err.code && err.message[0], "an error without a message");
		return;
	}
	if (header->flags & CUT)
		check(ftruncate(fd, (off_t)header->file_pages * 512 % FILE_BYTES) == 0,
		      "cannot cut");
	drain(area, fd, header, input);
	ts_area_close(area);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	struct header header;
	int fd;

	if (directory_fd < 0)
		make_directory();
	take(&input, &header, sizeof(header));
	header.rings = (uint8_t)(header.rings % MAX_RINGS + 1);
	header.passes = (uint8_t)(header.passes % MAX_PASSES + 1);
	header.patches %= 64;
	fd = openat(directory_fd, NAME, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0, "cannot make an area");
	run(fd, &header, &input);
	close(fd);
	unlinkat(directory_fd, NAME, 0);
	return 0;
}
