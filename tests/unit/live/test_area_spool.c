/* SPDX-License-Identifier: Apache-2.0 */
/* Spools as a hostile or unlucky program leaves them, and what is released when. */
#include "live/area_spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live/discover.h"
#include "live/journal.h"
#include "live/local/live_layout.h"
#include "live/spool_file.h"
#include "unit/runner.h"

#define BYTES TS_SPOOL_LEAST
#define PART (BYTES / 16)
#define NAME "12-34-00000000000000ab"

static const struct ts_live_control control = { .pid = 12, .start_time = 34, .area_id = 0xab };

struct fixture {
	char folder[64];
	int directory, fd;
	struct ts_spools *spools;
	char buffer[PART];
};

static void write_header(struct fixture *fixture, const struct ts_live_spool *header)
{
	TS_CHECK_INT(pwrite(fixture->fd, header, sizeof(*header), 0), sizeof(*header));
}

static struct ts_live_spool plain_header(void)
{
	struct ts_live_spool header = { .version = TS_SPOOL_VERSION,
					.header_bytes = TS_SPOOL_HEADER_BYTES,
					.area_id = control.area_id,
					.bytes = BYTES };

	memcpy(header.magic, TS_SPOOL_MAGIC, sizeof(header.magic));
	return header;
}

static struct ts_live_spool read_header(const struct fixture *fixture)
{
	struct ts_live_spool header;

	TS_CHECK_INT(pread(fixture->fd, &header, sizeof(header), 0), sizeof(header));
	return header;
}

static void open_spools(struct fixture *fixture, bool writable)
{
	ts_spools_free(fixture->spools);
	TS_CHECK_INT(ts_spools_new(&fixture->spools, writable, NULL), 0);
	TS_CHECK_INT(ts_spools_add_directory(fixture->spools, fixture->directory, NULL), 0);
}

/* A sparse file: zeros, but for the header. */
static struct fixture *start(void)
{
	static struct fixture fixture;
	struct ts_live_spool header = plain_header();

	snprintf(fixture.folder, sizeof(fixture.folder), "/tmp/ts_spool_XXXXXX");
	TS_CHECK(mkdtemp(fixture.folder) != NULL);
	fixture.directory = open(fixture.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fixture.fd = openat(fixture.directory, NAME ".spool", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	TS_CHECK(fixture.directory >= 0 && fixture.fd >= 0);
	TS_CHECK_INT(ftruncate(fixture.fd, TS_SPOOL_HEADER_BYTES + BYTES), 0);
	write_header(&fixture, &header);
	open_spools(&fixture, true);
	return &fixture;
}

static void end(struct fixture *fixture)
{
	char command[128];

	ts_spools_free(fixture->spools);
	close(fixture->fd);
	close(fixture->directory);
	snprintf(command, sizeof(command), "rm -rf %s", fixture->folder);
	TS_CHECK_INT(system(command), 0); /* NOLINT: a name that mkdtemp() made */
}

static int read_at(struct fixture *fixture, uint64_t position, uint64_t count)
{
	struct ts_live_spooled part = { .part = { 1, count, 0, count }, .position = position };

	return ts_spools_read(fixture->spools, &control, &part, 0, fixture->buffer,
			      TS_MIN(count, sizeof(fixture->buffer)));
}

static void decoded(struct fixture *fixture, uint64_t position, uint64_t count)
{
	struct ts_live_spooled part = { .part = { 1, count, 0, count }, .position = position };

	ts_spools_decoded(fixture->spools, &control, &part);
}

static void refer(struct fixture *fixture, uint64_t position, uint64_t count)
{
	struct {
		uint64_t head, counter;
		struct ts_live_spooled part;
	} record = { ts_live_head(7, TS_LIVE_SPOOLED, 0, 0),
		     1,
		     { { 1, count, 0, count }, position } };
	struct ts_block block = { .type = TS_BLOCK_RING,
				  .bytes = sizeof(record),
				  .area = control.area_id };

	TS_CHECK_INT(ts_spooled_bytes(&block, &record),
		     ts_spool_round_up(TS_MIN(count, TS_SPOOL_PART), TS_SPOOL_ALIGNMENT));
	ts_spools_refer(fixture->spools, &block, &record);
}

/* ---- positions ---- */

TS_TEST(forged_positions_are_refused)
{
	static const struct {
		uint64_t position, count;
	} forged[] = {
		{ 0, 0 },                         /* nothing */
		{ 0, PART + 1 },                  /* more than a part */
		{ 0, UINT64_MAX },                /* overflows */
		{ BYTES - 64, 128 },              /* crosses the end of the data */
		{ BYTES, PART },                  /* more than the spool holds */
		{ UINT64_MAX - 63, 64 },          /* overflows */
		{ UINT64_MAX - BYTES + 1, PART }, /* the same place in another lap */
	};
	struct fixture *fixture = start();

	for (size_t i = 0; i < TS_ARRAY_SIZE(forged); i++)
		TS_CHECK_INT(read_at(fixture, forged[i].position, forged[i].count), TS_EFORMAT);
	TS_CHECK_INT(read_at(fixture, BYTES - PART, PART), 0);
	decoded(fixture, PART, PART);
	/* Backwards, and over what was read. */
	TS_CHECK_INT(read_at(fixture, 0, PART), TS_EFORMAT);
	TS_CHECK_INT(read_at(fixture, 2 * PART - 64, PART), TS_EFORMAT);
	TS_CHECK_INT(read_at(fixture, 2 * PART, PART), 0);
	end(fixture);
}

/* A program that raises `consumed` itself loses its own parts, and makes nobody read more. */
TS_TEST(a_forged_consumed_harms_its_owner_only)
{
	struct fixture *fixture = start();
	struct ts_live_spool header = plain_header();

	TS_CHECK_INT(read_at(fixture, 0, PART), 0);
	header.consumed = 100 * BYTES;
	write_header(fixture, &header);
	TS_CHECK_INT(read_at(fixture, 0, PART), TS_ENOTFOUND);
	TS_CHECK_INT(read_at(fixture, 100 * BYTES, PART), TS_EFORMAT);
	end(fixture);
}

/* ---- files ---- */

TS_TEST(files_that_are_no_spools_are_lost)
{
	struct fixture *fixture = start();
	struct ts_live_spool wrong[6];

	for (size_t i = 0; i < TS_ARRAY_SIZE(wrong); i++)
		wrong[i] = plain_header();
	wrong[0].magic[0]++;
	wrong[1].version++;
	wrong[2].area_id++;
	wrong[3].bytes = 0;
	wrong[4].bytes = BYTES + 4096;
	wrong[5].bytes = UINT64_C(1) << 40;
	for (size_t i = 0; i < TS_ARRAY_SIZE(wrong); i++) {
		write_header(fixture, &wrong[i]);
		open_spools(fixture, true);
		TS_CHECK_INT(read_at(fixture, 0, PART), TS_ENOTFOUND);
	}
	/* Cut inside the part that is asked for, or inside the header; removed; a link; a pipe. */
	wrong[0] = plain_header();
	write_header(fixture, &wrong[0]);
	open_spools(fixture, true);
	TS_CHECK_INT(read_at(fixture, 0, PART), 0);
	TS_CHECK_INT(ftruncate(fixture->fd, TS_SPOOL_HEADER_BYTES + PART - 1), 0);
	TS_CHECK_INT(read_at(fixture, 0, PART), TS_ENOTFOUND);
	TS_CHECK_INT(ftruncate(fixture->fd, 100), 0);
	open_spools(fixture, true);
	TS_CHECK_INT(read_at(fixture, 0, PART), TS_ENOTFOUND);
	TS_CHECK_INT(unlinkat(fixture->directory, NAME ".spool", 0), 0);
	open_spools(fixture, true);
	TS_CHECK_INT(read_at(fixture, 0, PART), TS_ENOTFOUND);
	TS_CHECK_INT(symlinkat("/dev/zero", fixture->directory, NAME ".spool"), 0);
	open_spools(fixture, true);
	TS_CHECK_INT(read_at(fixture, 0, PART), TS_ENOTFOUND);
	TS_CHECK_INT(unlinkat(fixture->directory, NAME ".spool", 0), 0);
	TS_CHECK_INT(mkfifoat(fixture->directory, NAME ".spool", 0600), 0);
	open_spools(fixture, true);
	TS_CHECK_INT(read_at(fixture, 0, PART), TS_ENOTFOUND);
	end(fixture);
}

/* ---- commits ---- */

TS_TEST(only_a_commit_releases)
{
	struct fixture *fixture = start();

	for (uint64_t at = 0; at < BYTES / 4; at += PART) {
		TS_CHECK(!ts_spools_are_due(fixture->spools));
		refer(fixture, at, PART);
		TS_CHECK_INT(read_at(fixture, at, PART), 0);
		decoded(fixture, at, PART);
		TS_CHECK(ts_spools_holds(fixture->spools, control.area_id));
		TS_CHECK_INT(read_header(fixture).consumed, 0);
		TS_CHECK_INT(read_header(fixture).decoded, at + PART);
	}
	TS_CHECK(ts_spools_are_due(fixture->spools));
	TS_CHECK_INT(ts_spools_uncommitted(fixture->spools), BYTES / 4);
	/* The writer failed: everything is decoded again. */
	ts_spools_rewind(fixture->spools);
	TS_CHECK(!ts_spools_are_due(fixture->spools));
	TS_CHECK_INT(read_at(fixture, 0, PART), 0);
	decoded(fixture, 0, PART);
	ts_spools_commit(fixture->spools, false);
	ts_spools_release(fixture->spools);
	TS_CHECK_INT(read_header(fixture).consumed, PART);
	TS_CHECK_INT(ts_spools_uncommitted(fixture->spools), BYTES / 4 - PART);
	TS_CHECK(ts_spools_holds(fixture->spools, control.area_id));
	ts_spools_commit(fixture->spools, true);
	ts_spools_release(fixture->spools);
	TS_CHECK(!ts_spools_holds(fixture->spools, control.area_id));
	end(fixture);
}

/* What belongs to a blob that is given up is not read, but released. */
TS_TEST(parts_that_nobody_reads_are_released)
{
	struct fixture *fixture = start();

	refer(fixture, 0, PART);
	decoded(fixture, 0, PART);
	ts_spools_commit(fixture->spools, true);
	ts_spools_release(fixture->spools);
	TS_CHECK_INT(read_header(fixture).consumed, PART);
	end(fixture);
}

/* Parts in other files: those that nobody may have there, or that do not exist, are lost. */
TS_TEST(lanes_are_files_of_their_own)
{
	const uint64_t lane = UINT64_C(1) << TS_SPOOL_LANE_SHIFT;
	struct fixture *fixture = start();
	char content[PART];
	int fd;

	memset(content, 7, sizeof(content));
	TS_CHECK_INT(read_at(fixture, 3 * lane, PART), TS_ENOTFOUND);
	fd = openat(fixture->directory, NAME ".3.spool", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	TS_CHECK(fd >= 0);
	TS_CHECK_INT(read_at(fixture, 3 * lane, PART), TS_ENOTFOUND);
	TS_CHECK_INT(pwrite(fd, content, PART, TS_SPOOL_HEADER_BYTES), PART);
	TS_CHECK_INT(read_at(fixture, 3 * lane, PART), 0);
	TS_CHECK_MEM(fixture->buffer, content, PART);
	TS_CHECK_INT(read_at(fixture, 0, PART), 0);
	TS_CHECK_INT(fixture->buffer[0], 0);
	TS_CHECK_INT(read_at(fixture, (TS_SPOOL_LANES + 1) * lane, PART), TS_ENOTFOUND);
	TS_CHECK_INT(read_at(fixture, 255 * lane, PART), TS_ENOTFOUND);
	TS_CHECK_INT(read_at(fixture, 3 * lane + 2 * BYTES, PART), TS_EFORMAT);
	TS_CHECK_INT(symlinkat(NAME ".3.spool", fixture->directory, NAME ".4.spool"), 0);
	TS_CHECK_INT(read_at(fixture, 4 * lane, PART), TS_ENOTFOUND);
	/* Neither reading nor decoding releases anything. */
	refer(fixture, 3 * lane, PART);
	decoded(fixture, 3 * lane, PART);
	TS_CHECK_INT(read_header(fixture).decoded, PART);
	TS_CHECK_INT(pread(fd, content, 1, TS_SPOOL_HEADER_BYTES), 1);
	TS_CHECK_INT(content[0], 7);
	ts_spools_commit(fixture->spools, true);
	ts_spools_release(fixture->spools);
	TS_CHECK_INT(read_header(fixture).consumed, PART);
	TS_CHECK_INT(pread(fd, content, 1, TS_SPOOL_HEADER_BYTES), 1);
	TS_CHECK_INT(content[0], 0);
	close(fd);
	end(fixture);
}

/* Of a large spool, memory is given back but for that of the first parts. */
TS_TEST(a_commit_gives_memory_back)
{
	const uint64_t data = 2 * TS_SPOOL_KEPT, first = TS_SPOOL_KEPT - PART;
	struct fixture *fixture = start();
	struct ts_live_spool header = plain_header();
	char content[PART];

	header.bytes = data;
	TS_CHECK_INT(ftruncate(fixture->fd, (off_t)(TS_SPOOL_HEADER_BYTES + data)), 0);
	write_header(fixture, &header);
	memset(content, 7, sizeof(content));
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t at = first + i * PART;

		TS_CHECK_INT(
			pwrite(fixture->fd, content, PART, (off_t)(TS_SPOOL_HEADER_BYTES + at)),
			PART);
		refer(fixture, at, PART);
		if (i == 2)
			break;
		TS_CHECK_INT(read_at(fixture, at, PART), 0);
		decoded(fixture, at, PART);
	}
	/* Counting is one step: draining waits for it, and not for the memory. */
	ts_spools_commit(fixture->spools, false);
	TS_CHECK_INT(ts_spools_uncommitted(fixture->spools), PART);
	TS_CHECK_INT(read_header(fixture).returned, 0);
	TS_CHECK_INT(read_header(fixture).consumed, 0);
	TS_CHECK_INT(pread(fixture->fd, content, 1, (off_t)(TS_SPOOL_HEADER_BYTES + first + PART)),
		     1);
	TS_CHECK_INT(content[0], 7);
	ts_spools_release(fixture->spools);
	TS_CHECK_INT(read_header(fixture).returned, first + 2 * PART);
	TS_CHECK_INT(read_header(fixture).consumed, first + 2 * PART);
	for (unsigned int i = 0; i < 3; i++) {
		TS_CHECK_INT(pread(fixture->fd, content, 1,
				   (off_t)(TS_SPOOL_HEADER_BYTES + first + i * PART)),
			     1);
		TS_CHECK_INT(content[0], i == 1 ? 0 : 7);
	}
	end(fixture);
}

/* A part of a byte takes up 64: many of them fill the spool, too. */
TS_TEST(small_parts_become_due)
{
	struct fixture *fixture = start();

	for (uint64_t at = 0; at < BYTES / 4; at += TS_SPOOL_ALIGNMENT) {
		TS_CHECK(!ts_spools_are_due(fixture->spools));
		refer(fixture, at, 1);
		TS_CHECK_INT(read_at(fixture, at, 1), 0);
		decoded(fixture, at, 1);
	}
	TS_CHECK(ts_spools_are_due(fixture->spools));
	ts_spools_commit(fixture->spools, false);
	ts_spools_release(fixture->spools);
	TS_CHECK(!ts_spools_holds(fixture->spools, control.area_id));
	end(fixture);
}

/* The state of a checkpoint has the position: a successor releases what its predecessor could not.
 */
TS_TEST(a_successor_releases_and_a_recovery_does_not)
{
	struct fixture *fixture = start();

	open_spools(fixture, false);
	ts_spools_resume(fixture->spools, &control, 3 * PART);
	TS_CHECK_INT(ts_spools_position(fixture->spools, control.area_id), 3 * PART);
	TS_CHECK_INT(read_at(fixture, 2 * PART, PART), TS_EFORMAT);
	TS_CHECK_INT(read_at(fixture, 3 * PART, PART), 0);
	decoded(fixture, 3 * PART, PART);
	ts_spools_commit(fixture->spools, true);
	ts_spools_release(fixture->spools);
	TS_CHECK_INT(read_header(fixture).consumed, 0);
	TS_CHECK_INT(read_header(fixture).decoded, 0);
	open_spools(fixture, true);
	ts_spools_resume(fixture->spools, &control, 3 * PART);
	TS_CHECK_INT(read_header(fixture).consumed, 3 * PART);
	/* It may have been killed while it gave memory back. */
	TS_CHECK_INT(read_header(fixture).returned, 3 * PART);
	ts_spools_take_over(fixture->spools, &control, 5 * PART);
	ts_spools_commit(fixture->spools, true);
	ts_spools_release(fixture->spools);
	TS_CHECK_INT(read_header(fixture).consumed, 5 * PART);
	TS_CHECK_INT(read_header(fixture).returned, 5 * PART);
	end(fixture);
}

static bool has_byte(int fd, uint64_t at)
{
	char byte;

	TS_CHECK_INT(pread(fd, &byte, 1, (off_t)(TS_SPOOL_HEADER_BYTES + at)), 1);
	return byte != 0;
}

/* Also the memory of lanes that it has not read itself, but nothing that may be in use again. */
TS_TEST(a_successor_gives_memory_back)
{
	struct fixture *fixture = start();
	struct ts_live_spool header = plain_header();
	char *content = malloc(BYTES);
	int fd;

	TS_CHECK(content != NULL);
	memset(content, 7, BYTES);
	fd = openat(fixture->directory, NAME ".3.spool", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	TS_CHECK(fd >= 0);
	TS_CHECK_INT(pwrite(fd, content, BYTES, TS_SPOOL_HEADER_BYTES), BYTES);
	ts_spools_resume(fixture->spools, &control, 3 * PART);
	TS_CHECK(!has_byte(fd, 0) && !has_byte(fd, 3 * PART - 1) && has_byte(fd, 3 * PART));
	ts_spools_take_over(fixture->spools, &control, 5 * PART);
	ts_spools_commit(fixture->spools, true);
	TS_CHECK(has_byte(fd, 3 * PART));
	ts_spools_release(fixture->spools);
	TS_CHECK(!has_byte(fd, 5 * PART - 1) && has_byte(fd, 5 * PART));
	/* The program has found everything consumed and started over: it writes behind 2 parts. */
	header.consumed = 6 * PART;
	write_header(fixture, &header);
	TS_CHECK_INT(pwrite(fd, content, BYTES, TS_SPOOL_HEADER_BYTES), BYTES);
	open_spools(fixture, true);
	ts_spools_take_over(fixture->spools, &control, BYTES + 2 * PART);
	ts_spools_commit(fixture->spools, true);
	ts_spools_release(fixture->spools);
	TS_CHECK_INT(read_header(fixture).consumed, BYTES + 2 * PART);
	TS_CHECK(!has_byte(fd, 0) && !has_byte(fd, 2 * PART - 1));
	TS_CHECK(has_byte(fd, 2 * PART) && has_byte(fd, 6 * PART) && has_byte(fd, BYTES - 1));
	/* A recovery takes nothing. */
	open_spools(fixture, false);
	ts_spools_resume(fixture->spools, &control, BYTES + 4 * PART);
	TS_CHECK(has_byte(fd, 3 * PART));
	free(content);
	close(fd);
	end(fixture);
}

/* What is decoded and left alone is committed after two ticks, not at each. */
TS_TEST(idle_parts_become_due)
{
	struct fixture *fixture = start();

	ts_spools_tick(fixture->spools);
	refer(fixture, 0, PART);
	TS_CHECK_INT(read_at(fixture, 0, PART), 0);
	decoded(fixture, 0, PART);
	ts_spools_tick(fixture->spools);
	TS_CHECK(!ts_spools_are_due(fixture->spools));
	ts_spools_tick(fixture->spools);
	TS_CHECK(ts_spools_are_due(fixture->spools));
	ts_spools_commit(fixture->spools, true);
	ts_spools_release(fixture->spools);
	ts_spools_tick(fixture->spools);
	ts_spools_tick(fixture->spools);
	TS_CHECK(!ts_spools_are_due(fixture->spools));
	end(fixture);
}

/* A program that claims to refer to very much does not fill the disk on paper. */
TS_TEST(claims_are_bounded)
{
	struct fixture *fixture = start();

	for (unsigned int i = 0; i < 1000; i++)
		refer(fixture, i, UINT64_MAX);
	TS_CHECK_INT(ts_spools_uncommitted(fixture->spools), 256u << 20);
	TS_CHECK_INT(read_at(fixture, 0, PART), 0);
	TS_CHECK_INT(ts_spools_uncommitted(fixture->spools), BYTES);
	end(fixture);
}

/* ---- removal ---- */

TS_TEST(a_spool_without_its_area_is_removed)
{
	struct fixture *fixture = start();
	struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct ts_live_spool header = plain_header();
	int fd;

	TS_CHECK(!ts_spool_file_is_wanted(fixture->directory, NAME));
	header.head = PART;
	write_header(fixture, &header);
	TS_CHECK(ts_spool_file_is_wanted(fixture->directory, NAME));
	TS_CHECK_INT(ts_areas_clean(fixture->directory, 0, NULL, NULL), 0);
	TS_CHECK(!faccessat(fixture->directory, NAME ".spool", F_OK, 0));
	TS_CHECK_INT(futimens(fixture->fd, old), 0);
	fd = openat(fixture->directory, NAME ".16.spool", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	TS_CHECK(fd >= 0);
	TS_CHECK_INT(futimens(fd, old), 0);
	close(fd);
	TS_CHECK_INT(ts_areas_clean(fixture->directory, 0, NULL, NULL), 0);
	TS_CHECK(faccessat(fixture->directory, NAME ".spool", F_OK, 0) != 0);
	TS_CHECK(faccessat(fixture->directory, NAME ".16.spool", F_OK, 0) != 0);
	end(fixture);
}
