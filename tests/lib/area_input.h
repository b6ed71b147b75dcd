/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For fuzz targets: a live area from an input. An area is 2 MiB of mostly zeros, so the input only
 * has its parts: struct area_header, patches of the control block, the dictionary, a directory for
 * each pass, and the rings' bytes.
 */
#ifndef TS_TEST_AREA_INPUT_H
#define TS_TEST_AREA_INPUT_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/fuzz_check.h"
#include "live/area.h"

#define AREA_RINGS 4u
#define AREA_PASSES 3u
#define AREA_RING_BYTES 8192u
#define AREA_FILE_BYTES (TS_LIVE_POOL + AREA_RINGS * AREA_RING_BYTES)
#define AREA_NAME "1-1-0000000000000001"

struct area_header {
	uint8_t rings, passes;
	uint8_t flags; /* below */
	uint8_t drain; /* TS_DRAIN_* of the passes, two bits each */
	uint16_t patches, dictionary_bytes;
	uint16_t resumed[AREA_RINGS]; /* words; if RESUME is set */
	uint16_t file_pages;          /* the file is truncated here, if CUT is set */
};
enum { WRITABLE = 1, RESUME = 2, CUT = 4 };

struct area_patch {
	uint16_t offset;
	uint8_t value, reserved;
};

/* A directory entry without its reserved bytes. */
struct area_entry {
	uint8_t first[104], consumed[48], slot_1[40];
};

struct area_input {
	const uint8_t *data;
	size_t bytes;
};

static inline bool area_take(struct area_input *input, void *part, size_t bytes)
{
	size_t available = input->bytes < bytes ? input->bytes : bytes;

	memset(part, 0, bytes);
	memcpy(part, input->data, available);
	input->data += available;
	input->bytes -= available;
	return available == bytes;
}

/* ---- the file ---- */

static inline void area_put(int fd, const void *data, size_t bytes, uint64_t offset)
{
	check(pwrite(fd, data, bytes, (off_t)offset) == (ssize_t)bytes, "cannot fill the area");
}

static inline void area_put_control(int fd, const struct area_header *header,
				    struct area_input *input)
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
		struct area_patch patch;

		if (!area_take(input, &patch, sizeof(patch)))
			break;
		((unsigned char *)&control)[patch.offset % sizeof(control)] = patch.value;
	}
	area_put(fd, &control, sizeof(control), 0);
}

static inline void area_put_dictionary(int fd, const struct area_header *header,
				       struct area_input *input)
{
	size_t bytes = header->dictionary_bytes < input->bytes ? header->dictionary_bytes
							       : input->bytes;

	area_put(fd, input->data, bytes, TS_LIVE_DICTIONARY);
	input->data += bytes;
	input->bytes -= bytes;
}

/* A ring without a given position gets a valid one. */
static inline void area_put_directory(int fd, const struct area_header *header,
				      struct area_input *input)
{
	for (unsigned int i = 0; i < header->rings; i++) {
		struct ts_live_ring ring = { .head = 0 };
		struct area_entry entry;

		if (!area_take(input, &entry, sizeof(entry)))
			return;
		memcpy(&ring, entry.first, sizeof(entry.first));
		memcpy((char *)&ring + offsetof(struct ts_live_ring, consumed), entry.consumed,
		       sizeof(entry.consumed));
		memcpy(&ring.slot_1, entry.slot_1, sizeof(entry.slot_1));
		ring.offset = ring.offset ? ring.offset : TS_LIVE_POOL + i * AREA_RING_BYTES;
		ring.bytes = ring.bytes ? ring.bytes : AREA_RING_BYTES;
		if (ring.consumed_check == 0)
			ring.consumed_check =
				ts_live_consumed_check(ring.consumed, ring.consumed_events,
						       ring.consumed_tid, ring.consumed_serial);
		area_put(fd, &ring, sizeof(ring), TS_LIVE_DIRECTORY + i * sizeof(ring));
	}
}

static inline void area_put_rings(int fd, const struct area_header *header,
				  const struct area_input *input)
{
	size_t each = input->bytes / header->rings / 8 * 8;

	each = each < AREA_RING_BYTES ? each : AREA_RING_BYTES;
	for (unsigned int i = 0; i < header->rings; i++)
		area_put(fd, input->data + i * each, each, TS_LIVE_POOL + i * AREA_RING_BYTES);
}

/* A directory for the area, in memory where possible, until the program ends; its descriptor. */
static char area_directory[32];

static inline int area_make_directory(void (*remove)(void))
{
	int fd;

	snprintf(area_directory, sizeof(area_directory), "%s/ts-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	check(mkdtemp(area_directory) != NULL, "cannot make a directory");
	fd = open(area_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(fd >= 0, "cannot open a directory");
	atexit(remove);
	return fd;
}

/* An empty area in it. */
static inline int area_make(int directory_fd)
{
	int fd = openat(directory_fd, AREA_NAME, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	check(fd >= 0 && ftruncate(fd, AREA_FILE_BYTES) == 0, "cannot make an area");
	return fd;
}

/* The header comes first; limits what it says. */
static inline void area_take_header(struct area_input *input, struct area_header *ret_header)
{
	area_take(input, ret_header, sizeof(*ret_header));
	ret_header->rings = (uint8_t)(ret_header->rings % AREA_RINGS + 1);
	ret_header->passes = (uint8_t)(ret_header->passes % AREA_PASSES + 1);
	ret_header->patches %= 64;
}

/* All of the file, with the directory of the first pass; those of others are left in the input. */
static inline void area_put_all(int fd, const struct area_header *header, struct area_input *input)
{
	size_t directories = (size_t)header->passes * header->rings * sizeof(struct area_entry);
	struct area_input rings;

	area_put_control(fd, header, input);
	area_put_dictionary(fd, header, input);
	rings = *input;
	rings.data += directories < rings.bytes ? directories : rings.bytes;
	rings.bytes -= directories < rings.bytes ? directories : rings.bytes;
	area_put_directory(fd, header, input);
	area_put_rings(fd, header, &rings);
}

#endif
