/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that may be gone: by both ways of reading, the result says how much was there, and the
 * bytes before the gap are right.
 */
#include "base/local/foreign_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "unit/runner.h"

#define PAGES 8u

static const unsigned int ways[] = { TS_FOREIGN_VM_READV | TS_FOREIGN_PIPE, TS_FOREIGN_PIPE };
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static unsigned char *map_pages(void)
{
	size_t bytes = PAGES * page_bytes();
	unsigned char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TS_CHECK(memory != MAP_FAILED);
	for (size_t i = 0; i < bytes; i++)
		memory[i] = (unsigned char)(i * 7 + i / 251);
	return memory;
}

/* Reads from `offset` on; `expected` bytes must arrive. */
static void check_read(const unsigned char *memory, const unsigned char *model, size_t offset,
		       size_t bytes, size_t expected)
{
	unsigned char *to = malloc(bytes + 1);

	to[bytes] = 0xa5;
	errno = 77;
	TS_CHECK_INT(ts_foreign_read(to, memory + offset, bytes), expected);
	TS_CHECK_INT(errno, 77);
	TS_CHECK(memcmp(to, model + offset, expected) == 0);
	TS_CHECK_INT(to[bytes], 0xa5);
	free(to);
}

TS_TEST(what_is_there)
{
	unsigned char *memory = map_pages();
	size_t page = page_bytes();

	for (size_t i = 0; i < WAYS; i++) {
		ts_foreign_methods = ways[i];
		check_read(memory, memory, 0, PAGES * page, PAGES * page);
		check_read(memory, memory, 5, 1, 1);
		check_read(memory, memory, page - 1, 2, 2);
		check_read(memory, memory, 3, 3 * page, 3 * page);
		check_read(memory, memory, 0, 0, 0);
	}
	munmap(memory, PAGES * page);
}

/* A gap, made by `remove_page`, in page 3. */
static void check_gap(void (*remove_page)(unsigned char *page))
{
	size_t page = page_bytes();
	unsigned char *memory = map_pages(), *model = malloc(PAGES * page);

	memcpy(model, memory, PAGES * page);
	remove_page(memory + 3 * page);
	for (size_t i = 0; i < WAYS; i++) {
		ts_foreign_methods = ways[i];
		check_read(memory, model, 0, PAGES * page, 3 * page);
		check_read(memory, model, 100, PAGES * page - 100, 3 * page - 100);
		check_read(memory, model, 3 * page - 1, 2, 1);
		check_read(memory, model, 3 * page, page, 0);
		check_read(memory, model, 3 * page + 7, page, 0);
		check_read(memory, model, 4 * page, 4 * page, 4 * page);
	}
	munmap(memory, PAGES * page);
	free(model);
}

static void unmap(unsigned char *page)
{
	TS_CHECK(munmap(page, page_bytes()) == 0);
}

static void protect(unsigned char *page)
{
	TS_CHECK(mprotect(page, page_bytes(), PROT_NONE) == 0);
}

/* A page of a file that is shorter now: a program that reads it gets SIGBUS. */
static void truncate_file(unsigned char *page)
{
	char path[] = "foreign-memory-XXXXXX";
	int file = mkstemp(path);

	TS_CHECK(file >= 0);
	unlink(path);
	TS_CHECK(ftruncate(file, (off_t)page_bytes()) == 0);
	TS_CHECK(mmap(page, page_bytes(), PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == page);
	TS_CHECK(ftruncate(file, 0) == 0);
	close(file);
}

TS_TEST(unmapped_page)
{
	check_gap(unmap);
}

TS_TEST(protected_page)
{
	check_gap(protect);
}

TS_TEST(truncated_file)
{
	check_gap(truncate_file);
}

TS_TEST(pieces)
{
	enum { COUNT = 1000 };
	size_t page = page_bytes();
	unsigned char *memory = map_pages(), *to = malloc(4 * COUNT);
	struct iovec rows[COUNT];

	for (size_t i = 0; i < COUNT; i++)
		rows[i] = (struct iovec){ memory + i * 8, 4 };
	for (size_t way = 0; way < WAYS; way++) {
		ts_foreign_methods = ways[way];
		memset(to, 0, 4 * COUNT);
		TS_CHECK_INT(ts_foreign_gather(to, rows, COUNT), 4 * COUNT);
		for (size_t i = 0; i < COUNT; i++)
			TS_CHECK(memcmp(to + 4 * i, memory + 8 * i, 4) == 0);
	}
	/* The first row of the second page is missing, and everything after it. */
	TS_CHECK(munmap(memory + page, page) == 0);
	for (size_t way = 0; way < WAYS; way++) {
		ts_foreign_methods = ways[way];
		if (page / 8 < COUNT)
			TS_CHECK_INT(ts_foreign_gather(to, rows, COUNT), page / 8 * 4);
	}
	munmap(memory, PAGES * page);
	free(to);
}

static atomic_bool is_done;

static void *come_and_go(void *memory)
{
	while (!atomic_load(&is_done)) {
		mprotect(memory, page_bytes(), PROT_NONE);
		mprotect(memory, page_bytes(), PROT_READ);
	}
	return NULL;
}

/* Another thread removes the memory while it is read. */
TS_TEST(thread_removes_it)
{
	size_t page = page_bytes();
	unsigned char *memory = map_pages(), *to = malloc(PAGES * page);
	pthread_t thread;

	atomic_store(&is_done, false);
	TS_CHECK(pthread_create(&thread, NULL, come_and_go, memory + 3 * page) == 0);
	for (size_t i = 0; i < 2000; i++) {
		size_t got;

		ts_foreign_methods = ways[i % WAYS];
		got = ts_foreign_read(to, memory, PAGES * page);
		TS_CHECK(got == 3 * page || got == PAGES * page);
	}
	atomic_store(&is_done, true);
	pthread_join(thread, NULL);
	munmap(memory, PAGES * page);
	free(to);
}

static void *read_canceled(void *memory)
{
	unsigned char to[16];

	pthread_cancel(pthread_self());
	if (ts_foreign_read(to, memory, sizeof(to)) == sizeof(to))
		atomic_store(&is_done, true);
	pthread_testcancel();
	return NULL;
}

/* A thread that is to be canceled reads to the end. */
TS_TEST(no_thread_is_canceled)
{
	unsigned char *memory = map_pages();
	pthread_t thread;
	void *result;

	for (size_t way = 0; way < WAYS; way++) {
		ts_foreign_methods = ways[way];
		atomic_store(&is_done, false);
		TS_CHECK(pthread_create(&thread, NULL, read_canceled, memory) == 0);
		TS_CHECK(pthread_join(thread, &result) == 0);
		TS_CHECK(atomic_load(&is_done) && result == PTHREAD_CANCELED);
	}
	munmap(memory, PAGES * page_bytes());
}
