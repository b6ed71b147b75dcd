/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs whose bytes are in a spool: rows, successors, and bytes that are gone. */
#include <fcntl.h>

#include "unit/record/decode/decode_support.h"

#define SPOOL_BYTES TS_SPOOL_LEAST
#define PART (SPOOL_BYTES / 16)

static const struct ts_live_command plain_command = { .sequence = 2,
						      .kind = TS_COMMAND_COPY,
						      .offset = TS_ABSENT,
						      .other_offset = TS_ABSENT,
						      .bytes = TS_ABSENT };

/* A program's spool, in the folder of the test. */
struct source {
	struct ts_spools *spools;
	int directory, fd;
	uint64_t head, consumed;
};

static void open_source(struct source *source)
{
	struct ts_live_spool header = { .version = TS_SPOOL_VERSION,
					.header_bytes = TS_SPOOL_HEADER_BYTES,
					.area_id = AREA,
					.bytes = SPOOL_BYTES };
	char name[64];

	memset(source, 0, sizeof(*source));
	snprintf(name, sizeof(name), "%u-99-%016x.spool", PID, AREA);
	source->fd = open(file_in_folder(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	source->directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	TS_CHECK(source->fd >= 0 && source->directory >= 0);
	memcpy(header.magic, TS_SPOOL_MAGIC, sizeof(header.magic));
	TS_CHECK_INT(pwrite(source->fd, &header, sizeof(header), 0), sizeof(header));
	TS_CHECK_INT(ftruncate(source->fd, TS_SPOOL_HEADER_BYTES + SPOOL_BYTES), 0);
	TS_CHECK_INT(ts_spools_new(&source->spools, true, NULL), 0);
	TS_CHECK_INT(ts_spools_add_directory(source->spools, source->directory, NULL), 0);
}

static void close_source(struct source *source)
{
	ts_spools_free(source->spools);
	close(source->fd);
	close(source->directory);
}

/* A part as the agent writes it; the caller commits often enough. */
static void put_spooled(struct fixture *fixture, struct source *source, uint64_t number,
			uint64_t bytes, uint64_t offset, const char *data, uint64_t count)
{
	struct ts_live_spooled fixed = { .part = { number, bytes, offset, count } };
	uint64_t at = (source->head + 63) / 64 * 64;

	if (at % SPOOL_BYTES + count > SPOOL_BYTES)
		at = ts_spool_round_up(at, SPOOL_BYTES);
	TS_CHECK_INT(
		pwrite(source->fd, data, count, (off_t)(TS_SPOOL_HEADER_BYTES + at % SPOOL_BYTES)),
		count);
	fixed.position = at;
	source->head = at + count;
	put_record(&fixture->ring, TS_LIVE_SPOOLED, 0, 0, fixture->counter++,
		   (const uint64_t *)(const void *)&fixed, sizeof(fixed) / 8);
}

static char *make_content(uint64_t bytes, unsigned int seed)
{
	char *content = malloc(bytes);

	for (uint64_t i = 0; content && i < bytes; i++)
		content[i] = (char)((i * 2654435761u + seed * 40503u) >> 13);
	return content;
}

static void put_kind(struct fixture *fixture, uint64_t sequence, uint64_t kind, const char *details)
{
	struct ts_live_command command = plain_command;

	command.sequence = sequence;
	command.kind = kind;
	put_command(fixture, &command, details);
}

static void put_copy(struct fixture *fixture, uint64_t sequence, uint64_t blob)
{
	struct ts_live_command command = plain_command;

	command.sequence = sequence;
	command.blob = blob;
	put_command(fixture, &command, "");
}

static void check_content(struct ts_reader *reader, int64_t blob, const char *content,
			  uint64_t bytes)
{
	TS_AUTO_FREE char *back = malloc(bytes);
	uint64_t found = 0;

	TS_CHECK_INT(ts_reader_blob_size(reader, blob, &found, NULL), 0);
	TS_CHECK_INT(found, bytes);
	TS_CHECK_INT(ts_reader_blob_read(reader, blob, 0, back, bytes, NULL), 0);
	TS_CHECK(memcmp(back, content, bytes) == 0);
}

/*
 * Parts of all sizes, in the ring and in the spool, with a checkpoint and a successor whenever one
 * is due: the blob is much larger than the spool.
 */
TS_TEST(parts_of_any_size_come_back)
{
	const uint64_t bytes = 11 * (UINT64_C(1) << 20) + 4711;
	static const uint64_t sizes[] = { PART, 1, PART - 1, 64, PART, 33333 };
	TS_AUTO_FREE char *content = make_content(bytes, 1);
	struct ts_command_row row;
	struct fixture fixture;
	struct source source;
	struct rows rows;
	unsigned int parts = 0, commits = 0;

	open_source(&source);
	start_with(&fixture, source.spools);
	put_kind(&fixture, 1, TS_COMMAND_OPEN, "{\"window\":1}");
	for (uint64_t at = 0; at < bytes; parts++) {
		uint64_t count = TS_MIN(sizes[parts % TS_ARRAY_SIZE(sizes)], bytes - at);

		if (parts % 7 == 6) {
			count = TS_MIN(count, TS_LIVE_BLOB_PART);
			put_blob_part(&fixture, 1, bytes, at, content + at, count);
		} else {
			put_spooled(&fixture, &source, 1, bytes, at, content + at, count);
		}
		at += count;
		drain(&fixture);
		if (ts_spools_are_due(source.spools)) {
			succeed(&fixture);
			ts_spools_commit(source.spools, true);
			ts_spools_release(source.spools);
			commits++;
		}
	}
	put_copy(&fixture, 2, 1);
	put_kind(&fixture, 3, TS_COMMAND_CLOSE, "{\"window\":1}");
	drain(&fixture);
	TS_CHECK(commits > 5);
	TS_CHECK_INT(counts(&fixture).blob_bytes, bytes);
	TS_CHECK_INT(counts(&fixture).replayable_windows, 1);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_COMMAND);
	TS_CHECK(rows_next(&rows, &row) && rows_next(&rows, &row));
	check_content(rows.reader, row.blob, content, bytes);
	rows_close(&rows);
	TS_CHECK_INT(losses_of(fixture.path, "blobs", ""), 0);
	close_source(&source);
}

/* Equal content is stored once, whichever way it came. */
TS_TEST(equal_content_is_stored_once)
{
	const uint64_t bytes = UINT64_C(3) << 20;
	TS_AUTO_FREE char *content = make_content(bytes, 2);
	struct ts_command_row first, second;
	struct fixture fixture;
	struct source source;
	struct rows rows;

	open_source(&source);
	start_with(&fixture, source.spools);
	put_blob(&fixture, 1, content, bytes);
	for (uint64_t at = 0; at < bytes; at += PART)
		put_spooled(&fixture, &source, 2, bytes, at, content + at, PART);
	put_copy(&fixture, 1, 1);
	put_copy(&fixture, 2, 2);
	drain(&fixture);
	finish(&fixture);
	rows = rows_open(fixture.path, TS_TABLE_COMMAND);
	TS_CHECK(rows_next(&rows, &first) && rows_next(&rows, &second));
	TS_CHECK_INT(first.blob, second.blob);
	check_content(rows.reader, second.blob, content, bytes);
	rows_close(&rows);
	close_source(&source);
}

/* The close comes after the commands before the loss. */
static void check_window_failed(const char *path, const char *why, int64_t lost)
{
	struct rows rows = rows_open(path, TS_TABLE_COMMAND);
	struct ts_command_row row;
	bool is_failed = false, is_open = false;

	while (rows_next(&rows, &row)) {
		is_open |= row.kind == TS_COMMAND_OPEN;
		is_failed |= row.kind == TS_COMMAND_CLOSE && is_open &&
			     strstr(rows_text(&rows, row.details), why) != NULL;
	}
	rows_close(&rows);
	TS_CHECK(is_failed);
	TS_CHECK_INT(losses_of(path, "blobs", "their bytes in shared memory are gone"), lost);
}

/* Without the spool each blob counts once, and the window ends at the first. */
TS_TEST(a_spool_that_is_gone_ends_the_window)
{
	TS_AUTO_FREE char *content = make_content(4 * PART, 3);
	struct fixture fixture;
	struct source source;

	open_source(&source);
	start(&fixture);
	put_kind(&fixture, 1, TS_COMMAND_OPEN, "{\"window\":1}");
	drain(&fixture);
	succeed(&fixture);
	put_spooled(&fixture, &source, 7, 2 * PART, 0, content, PART);
	put_spooled(&fixture, &source, 7, 2 * PART, PART, content, PART);
	put_copy(&fixture, 2, 7);
	put_spooled(&fixture, &source, 8, PART, 0, content, PART);
	put_copy(&fixture, 3, 8);
	put_kind(&fixture, 4, TS_COMMAND_CLOSE, "{\"window\":1}");
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).replayable_windows, 0);
	TS_CHECK_INT(counts(&fixture).failed_windows, 1);
	finish(&fixture);
	check_window_failed(fixture.path, "the bytes of blob 7 in shared memory are gone", 2);
	close_source(&source);
}

/* Content of a snapshot, before the window opens: a successor knows that it is missing. */
TS_TEST(a_snapshot_that_is_gone_spoils_its_window)
{
	TS_AUTO_FREE char *content = make_content(PART, 4);
	struct fixture fixture;
	struct source source;

	open_source(&source);
	start_with(&fixture, source.spools);
	TS_CHECK_INT(ftruncate(source.fd, TS_SPOOL_HEADER_BYTES), 0);
	put_spooled(&fixture, &source, 1, PART, 0, content, PART);
	TS_CHECK_INT(ftruncate(source.fd, TS_SPOOL_HEADER_BYTES + PART - 1), 0);
	put_object(&fixture, 5, TS_OBJECT_MEMORY, 0, PART, 1, "", "{}");
	drain(&fixture);
	succeed(&fixture);
	put_kind(&fixture, 1, TS_COMMAND_OPEN, "{\"window\":1}");
	put_kind(&fixture, 2, TS_COMMAND_CLOSE, "{\"window\":1}");
	put_kind(&fixture, 3, TS_COMMAND_OPEN, "{\"window\":2}");
	put_kind(&fixture, 4, TS_COMMAND_CLOSE, "{\"window\":2}");
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).failed_windows, 1);
	TS_CHECK_INT(counts(&fixture).replayable_windows, 1);
	finish(&fixture);
	check_window_failed(fixture.path, "the bytes of blob 1 in shared memory are gone", 1);
	close_source(&source);
}

/* A program that lies about positions loses its own blobs. */
TS_TEST(forged_parts_are_bad_blobs)
{
	TS_AUTO_FREE char *content = make_content(PART, 5);
	struct fixture fixture;
	struct source source;

	open_source(&source);
	start_with(&fixture, source.spools);
	put_spooled(&fixture, &source, 1, PART, 0, content, PART);
	source.head = 0; /* the same place again */
	put_spooled(&fixture, &source, 2, PART, 0, content, PART);
	source.head = 5 * SPOOL_BYTES; /* beyond what can be */
	put_spooled(&fixture, &source, 3, PART, 0, content, PART);
	source.head = PART;
	put_spooled(&fixture, &source, 4, PART, 0, content, PART);
	put_copy(&fixture, 1, 1);
	put_copy(&fixture, 2, 4);
	drain(&fixture);
	TS_CHECK_INT(counts(&fixture).blob_bytes, 2 * PART);
	finish(&fixture);
	TS_CHECK_INT(losses_of(fixture.path, "blobs", "its pieces are inconsistent"), 2);
	close_source(&source);
}
