/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a recording that goes on, or was cut off: a live area, a journal and the trace that
 * it continues, as ts_open_pid() reads them. Must not crash, leak, loop or use more memory than the
 * files justify; what it opens can be read, but for what is damaged in the trace itself. The
 * mutator fixes the journal's checksums, because random changes would never get past them.
 *
 * The input: struct layout, an area (area_input.h), a trace, and the rest is a journal.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/reader.h>

#include "base/memory.h"
#include "lib/area_input.h"
#include "lib/journal_stamp.h"
#include "live/discover.h"
#include "record/recording/snapshot.h"
#include "sbt/sbt_layout.h"

struct layout {
	uint16_t area_bytes, trace_bytes;
	uint8_t flags; /* below */
	uint8_t reserved[3];
};
enum {
	AREAS = 1,    /* only areas: there is no recorder */
	RECORDED = 2, /* the recorder is alive */
	GAPS = 4,     /* accepted */
	ALIVE = 8,    /* the area's process is */
	FITS = 16,    /* the journal continues the trace, and has the area */
};

static char trace[48], journal[64];
static int directory_fd = -1;

/* ---- files ---- */

static void remove_directory(void)
{
	unlinkat(directory_fd, AREA_NAME, 0);
	unlink(trace);
	unlink(journal);
	rmdir(area_directory);
}

static void make_directory(void)
{
	directory_fd = area_make_directory(remove_directory);
	snprintf(trace, sizeof(trace), "%s/t.sbt", area_directory);
	snprintf(journal, sizeof(journal), "%s.journal", trace);
	setenv("TRACESMITH_LIVE_DIR", area_directory, 1);
}

static void put_file(const char *path, const uint8_t *data, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	check(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes, "cannot write a file");
	close(fd);
}

static void put_area(struct area_input input)
{
	struct area_header header;
	int fd = area_make(directory_fd);

	area_take_header(&input, &header);
	area_put_all(fd, &header, &input);
	close(fd);
}

/* The next part of the input. */
static struct area_input take_part(struct area_input *input, size_t bytes)
{
	struct area_input part = { input->data, bytes < input->bytes ? bytes : input->bytes };

	input->data += part.bytes;
	input->bytes -= part.bytes;
	return part;
}

/* Mutations seldom find an id of 128 bits. */
static void fit(uint8_t *data, size_t bytes, const struct area_input *of)
{
	struct ts_block_open open;
	struct ts_block block;

	for (size_t at = 0; at + sizeof(block) <= bytes;
	     at += sizeof(block) + ((block.bytes + 7u) & ~7u)) {
		memcpy(&block, data + at, sizeof(block));
		if (block.bytes > bytes - at - sizeof(block))
			break;
		if (block.area)
			block.area = 1;
		memcpy(data + at, &block, sizeof(block));
		if (block.type != TS_BLOCK_OPEN || block.bytes < TS_BLOCK_OPEN_LEAST ||
		    of->bytes < sizeof(struct sbt_file_header))
			continue;
		memcpy(&open, data + at + sizeof(block), TS_BLOCK_OPEN_LEAST);
		open.trace_bytes = of->bytes;
		for (size_t i = 0; i < TS_ARRAY_SIZE(open.next_ids); i++)
			open.next_ids[i] |= 1 << 16;
		memcpy(open.trace_id, of->data + offsetof(struct sbt_file_header, trace_id),
		       sizeof(open.trace_id));
		memcpy(data + at + sizeof(block), &open, TS_BLOCK_OPEN_LEAST);
	}
	journal_stamp(data, bytes);
}

/* ---- snapshots ---- */

static void read_all(struct ts_reader *reader, bool is_new)
{
	struct ts_batch *batch;

	check(ts_batch_new(&batch, reader, NULL) == 0, "no memory for a batch");
	for (size_t i = 0; i < ts_reader_chunk_count(reader); i++) {
		struct ts_error err = { 0 };
		int result = ts_batch_read(batch, i, TS_MASK_ALL, &err);

		check(!result || err.message[0], "an error without a message");
		check(!result || !is_new, err.message);
	}
	ts_batch_free(batch);
	for (uint32_t id = 0; id < ts_reader_string_end(reader) && id < 1000; id++)
		ts_reader_string(reader, id);
}

static void open_snapshot(const struct layout *layout, bool has_trace)
{
	struct ts_area_info info = { .name = AREA_NAME,
				     .owner = geteuid(),
				     .alive = layout->flags & ALIVE,
				     .pid = layout->flags & ALIVE ? getpid() : 0 };
	struct ts_snapshot_source source = { .name = trace,
					     .areas = &info,
					     .directory_fd = directory_fd,
					     .recorder = layout->flags & RECORDED ? getpid() : 0,
					     .accept_gaps = layout->flags & GAPS };
	struct ts_reader *reader = NULL;
	struct ts_area *area;
	struct ts_error err = { 0 };
	int result;

	if (!ts_area_open(&area, directory_fd, AREA_NAME, false, NULL)) {
		info.control = *ts_area_control(area);
		ts_area_close(area);
		source.area_count = 1;
	}
	if (!(layout->flags & AREAS))
		result = ts_snapshot_recording(&reader, &source, &err);
	else if (source.area_count)
		result = ts_snapshot_areas(&reader, &source, &err);
	else
		return;
	check(!result || (err.code && err.message[0]), "an error without a message");
	if (!result)
		read_all(reader, (layout->flags & AREAS) || !has_trace);
	ts_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct area_input input = { data, size }, area, chunks;
	struct layout layout;
	uint8_t *blocks;

	if (directory_fd < 0)
		make_directory();
	area_take(&input, &layout, sizeof(layout));
	area = take_part(&input, layout.area_bytes);
	chunks = take_part(&input, layout.trace_bytes);
	put_area(area);
	put_file(trace, chunks.data, chunks.bytes);
	blocks = malloc(input.bytes + 1);
	check(blocks != NULL, "no memory");
	memcpy(blocks, input.data, input.bytes);
	if (layout.flags & FITS)
		fit(blocks, input.bytes, &chunks);
	put_file(journal, blocks, input.bytes);
	free(blocks);
	open_snapshot(&layout, chunks.bytes);
	return 0;
}

/* ---- mutation ---- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	if (LLVMFuzzerMutate)
		size = LLVMFuzzerMutate(data, size, max_size);
	/* Sometimes a wrong checksum is to be tested. */
	if (seed % 16)
		journal_stamp(data, size);
	return size;
}
