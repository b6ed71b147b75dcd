/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: appended blocks come back, whatever is truncated or damaged. */
#include "live/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "unit/record/record_support.h"

static struct ts_journal *create(const char *path)
{
	struct ts_journal *journal;

	TS_CHECK_INT(ts_journal_create(&journal, path, NULL), 0);
	return journal;
}

static void append(struct ts_journal *journal, uint64_t number, size_t bytes)
{
	struct ts_block block = { .type = TS_BLOCK_RING,
				  .flags = TS_RING_THREAD,
				  .bytes = (uint32_t)bytes,
				  .area = number };
	char payload[10000];

	memset(payload, (int)number, sizeof(payload));
	TS_CHECK_INT(ts_journal_append(journal, &block, payload, NULL), 0);
}

/*
 * Checks blocks as append() makes them, starting with number `first`; returns how many there are.
 */
static int read_all(const char *path, uint64_t first, int *ret_damages)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), count = 0, result;
	TS_SCOPED(ts_text) payload = { 0 };
	struct ts_block block;
	uint64_t offset = 0;

	TS_CHECK(fd >= 0);
	*ret_damages = 0;
	while ((result = ts_journal_read(fd, &offset, &block, &payload, NULL)) != TS_ENOTFOUND) {
		if (result) {
			TS_CHECK_INT(result, TS_EFORMAT);
			++*ret_damages;
			first = 0;
			continue;
		}
		if (first)
			TS_CHECK_INT(block.area, first++);
		TS_CHECK_INT(payload.length, block.bytes);
		for (size_t i = 0; i < payload.length; i++)
			TS_CHECK_INT(payload.data[i], (char)block.area);
		count++;
	}
	close(fd);
	return count;
}

TS_TEST(appended_blocks_come_back)
{
	const char *path = file_in_folder("j");
	struct ts_journal *journal = create(path);
	static const size_t sizes[] = { 0, 1, 7, 8, 4095, 4096, 4097, 9999 };
	int damages;

	for (size_t i = 0; i < TS_ARRAY_SIZE(sizes); i++)
		append(journal, i + 1, sizes[i]);
	TS_CHECK_INT(ts_journal_bytes(journal) % 8, 0);
	ts_journal_close(journal);
	TS_CHECK_INT(read_all(path, 1, &damages), TS_ARRAY_SIZE(sizes));
	TS_CHECK_INT(damages, 0);
}

TS_TEST(every_cut_drops_the_torn_block_only)
{
	const char *path = file_in_folder("j");
	uint64_t ends[4] = { 0 };
	struct ts_journal *journal = create(path);
	int damages;

	for (uint64_t i = 1; i < 4; i++) {
		append(journal, i, 10 * i);
		ends[i] = ts_journal_bytes(journal);
	}
	ts_journal_close(journal);
	for (uint64_t cut = ends[3] - 1; cut < ends[3]; cut--) {
		int complete = 0;

		/* The padding of a block may be missing. */
		while (complete < 3 &&
		       ends[complete + 1] - (8 - (10 * (uint64_t)(complete + 1)) % 8) % 8 <= cut)
			complete++;
		TS_CHECK_INT(truncate(path, (off_t)cut), 0);
		TS_CHECK_INT(read_all(path, 1, &damages), complete);
		TS_CHECK_INT(damages, 0);
		if (cut == 0)
			break;
	}
}

TS_TEST(resume_appends_behind_the_last_whole_block)
{
	const char *path = file_in_folder("j");
	struct ts_journal *journal = create(path);
	uint64_t end;
	int damages;

	append(journal, 1, 100);
	append(journal, 2, 100);
	end = ts_journal_bytes(journal);
	append(journal, 9, 100);
	ts_journal_close(journal);
	TS_CHECK_INT(truncate(path, (off_t)end + 80), 0);
	TS_CHECK_INT(ts_journal_resume(&journal, path, NULL), 0);
	TS_CHECK_INT(ts_journal_bytes(journal), end);
	TS_CHECK_INT(ts_journal_trim(journal, NULL), 0);
	append(journal, 3, 100);
	ts_journal_close(journal);
	TS_CHECK_INT(read_all(path, 1, &damages), 3);
	TS_CHECK_INT(damages, 0);
	TS_CHECK_INT(ts_journal_resume(&journal, file_in_folder("none"), NULL), TS_ENOTFOUND);
}

TS_TEST(damage_in_between_is_told_and_passed_over)
{
	const char *path = file_in_folder("j");
	struct ts_journal *journal = create(path);
	uint64_t second;
	int damages, fd;

	append(journal, 1, 500);
	second = ts_journal_bytes(journal);
	append(journal, 2, 500);
	append(journal, 3, 500);
	ts_journal_close(journal);
	fd = open(path, O_RDWR | O_CLOEXEC);
	for (uint64_t at = second; at < second + 64 + 500; at += 13) {
		char byte;

		TS_CHECK_INT(pread(fd, &byte, 1, (off_t)at), 1);
		byte = (char)(byte ^ 0x55);
		TS_CHECK_INT(pwrite(fd, &byte, 1, (off_t)at), 1);
		TS_CHECK_INT(read_all(path, 1, &damages), 2);
		TS_CHECK_INT(damages, 1);
		byte = (char)(byte ^ 0x55);
		TS_CHECK_INT(pwrite(fd, &byte, 1, (off_t)at), 1);
	}
	close(fd);
}

TS_TEST(a_tail_of_zeros_is_torn)
{
	const char *path = file_in_folder("j");
	struct ts_journal *journal = create(path);
	int damages;

	append(journal, 1, 50);
	TS_CHECK_INT(ftruncate(ts_journal_fd(journal), 100000), 0);
	ts_journal_close(journal);
	TS_CHECK_INT(read_all(path, 1, &damages), 1);
	TS_CHECK_INT(damages, 0);
}

TS_TEST(a_block_that_claims_much_takes_no_memory)
{
	const char *path = file_in_folder("j");
	struct ts_block block = { .magic = TS_JOURNAL_MAGIC,
				  .type = TS_BLOCK_RING,
				  .bytes = TS_JOURNAL_BLOCK_BYTES };
	TS_SCOPED(ts_text) payload = { 0 };
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	uint64_t offset = 0;

	/* A header that claims 64 MiB, at every possible offset. */
	for (int i = 0; i < 2000; i++)
		TS_CHECK_INT(pwrite(fd, &block, sizeof(block), i * 8), sizeof(block));
	TS_CHECK_INT(ts_journal_read(fd, &offset, &block, &payload, NULL), TS_ENOTFOUND);
	TS_CHECK(payload.capacity < 100000);
	close(fd);
}

TS_TEST(a_file_that_may_not_grow_is_full_and_whole)
{
	const char *path = file_in_folder("j");
	struct ts_journal *journal = create(path);
	struct rlimit limit = { .rlim_cur = 4096, .rlim_max = RLIM_INFINITY };
	struct ts_block block = { .type = TS_BLOCK_RING, .bytes = 5000 };
	char payload[5000] = { 0 };
	struct ts_error err = { 0 };
	int damages;

	signal(SIGXFSZ, SIG_IGN);
	append(journal, 1, 1000);
	TS_CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
	TS_CHECK_INT(ts_journal_append(journal, &block, payload, &err), TS_ENOSPC);
	TS_CHECK(strstr(err.message, "limit") != NULL);
	append(journal, 2, 1000);
	limit.rlim_cur = RLIM_INFINITY;
	TS_CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ts_journal_close(journal);
	TS_CHECK_INT(read_all(path, 1, &damages), 2);
	TS_CHECK_INT(damages, 0);
}

TS_TEST(copies_are_blocks_again)
{
	const char *path = file_in_folder("a"), *other = file_in_folder("b");
	struct ts_journal *from = create(path), *to = create(other);
	uint64_t offset;
	int damages;

	append(from, 1, 3000);
	offset = ts_journal_bytes(from);
	append(from, 2, 3000);
	append(from, 3, 3000);
	append(to, 1, 10);
	TS_CHECK_INT(ts_journal_copy(to, ts_journal_fd(from), offset,
				     ts_journal_bytes(from) - offset, NULL),
		     0);
	TS_CHECK_INT(ts_journal_rename(to, path, NULL), 0);
	ts_journal_close(from);
	ts_journal_close(to);
	TS_CHECK_INT(read_all(path, 1, &damages), 3);
	TS_CHECK(access(other, F_OK) != 0 && errno == ENOENT);
}
