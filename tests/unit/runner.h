/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test runner: a test file includes this and holds TS_TEST functions, no main().
 *
 *	TS_TEST(arena_grows)
 *	{
 *		TS_CHECK_INT(ts_arena_used(&arena), 16);
 *	}
 *
 * Each test runs in a child process. It fails when a check fails, when it exits or dies by a
 * signal, when it takes longer than TS_TEST_SECONDS (environment, default 120), or when it leaves a
 * file descriptor open. A failed check ends the test at once, from whatever thread it stands in.
 * Arguments of a check are evaluated once.
 *
 *	test_arena               runs all tests
 *	test_arena arena_grows   runs one, in this process, for a debugger
 *	test_arena --list        names them
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

/* Ends the test as skipped; the reason is printed. */
void ts_test_skip(const char *reason) __attribute__((noreturn));

/* The test fails here, with a message. */
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

/* Any two integers, compared as 64 bits. */
#define TS_CHECK_INT(a, b) \
	ts_test_check_int(__FILE__, __LINE__, #a " == " #b, (intmax_t)(a), (intmax_t)(b))

/* Two strings, either of which may be NULL. */
#define TS_CHECK_STR(a, b) ts_test_check_str(__FILE__, __LINE__, #a " == " #b, a, b)

/* Two runs of bytes of the same size. */
#define TS_CHECK_MEM(a, b, size) ts_test_check_mem(__FILE__, __LINE__, #a " == " #b, a, b, size)

#endif
