/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unit test runner. A test file includes this header and defines TS_TEST functions, no main().
 *
 *	TS_TEST(arena_grows)
 *	{
 *		TS_CHECK_INT(ts_arena_used(&arena), 16);
 *	}
 *
 * Each test runs in a child process. It fails if a check fails, if it exits or is killed by a
 * signal, if it takes longer than TS_TEST_SECONDS (environment variable, default 120, with TS_LONG
 * 1440), or if it leaks a file descriptor. A failed check ends the test at once, from any thread.
 * Checks evaluate their arguments once.
 *
 *	test_arena               runs all tests
 *	test_arena arena_grows   runs one test in this process, for a debugger
 *	test_arena --list        lists the tests
 */
#ifndef TS_TESTS_RUNNER_H
#define TS_TESTS_RUNNER_H

#include <stddef.h>
#include <stdint.h>

struct ts_test {
	const char *name;
	void (*run)(void);
	struct ts_test *next;
};

void ts_test_register(struct ts_test *test);

/* Ends the test as skipped and prints the reason. */
void ts_test_skip(const char *reason) __attribute__((noreturn));

/* Fails the test with a message. */
void ts_test_fail(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

void ts_test_check_int(const char *file, int line, const char *text, intmax_t a, intmax_t b);
void ts_test_check_str(const char *file, int line, const char *text, const char *a, const char *b);
void ts_test_check_mem(const char *file, int line, const char *text, const void *a, const void *b,
		       size_t size);

#define TS_TEST(name_)                                                                   \
	static void test_##name_(void);                                                  \
	static struct ts_test ts_test_##name_ = { .name = #name_, .run = test_##name_ }; \
	__attribute__((constructor)) static void register_##name_(void)                  \
	{                                                                                \
		ts_test_register(&ts_test_##name_);                                      \
	}                                                                                \
	static void test_##name_(void)

#define TS_CHECK(condition)                                                         \
	do {                                                                        \
		if (!(condition))                                                   \
			ts_test_fail(__FILE__, __LINE__, "not so: %s", #condition); \
	} while (0)

/* Compares two integers as 64 bits. */
#define TS_CHECK_INT(a, b) \
	ts_test_check_int(__FILE__, __LINE__, #a " == " #b, (intmax_t)(a), (intmax_t)(b))

/* Compares two strings; either may be NULL. */
#define TS_CHECK_STR(a, b) ts_test_check_str(__FILE__, __LINE__, #a " == " #b, a, b)

/* Compares `size` bytes. */
#define TS_CHECK_MEM(a, b, size) ts_test_check_mem(__FILE__, __LINE__, #a " == " #b, a, b, size)

#endif
