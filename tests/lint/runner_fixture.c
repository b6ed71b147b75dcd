/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that each fail in one way; check-runner checks what the runner reports. */
#include "unit/runner.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

TS_TEST(passes)
{
	int answer = 42;

	TS_CHECK(answer);
	TS_CHECK_INT(answer, 42);
	TS_CHECK_STR("same", "same");
	TS_CHECK_MEM("bytes", "bytes", 5);
}

TS_TEST(check_fails)
{
	TS_CHECK(getpid() == 0);
}

TS_TEST(int_differs)
{
	TS_CHECK_INT(6 * 7, 41);
}

TS_TEST(str_differs)
{
	TS_CHECK_STR("left", NULL);
}

TS_TEST(mem_differs)
{
	TS_CHECK_MEM("abc", "abd", 3);
}

TS_TEST(dies)
{
	raise(SIGTERM);
}

TS_TEST(exits)
{
	exit(0);
}

TS_TEST(hangs)
{
	pause();
}

TS_TEST(leaks_descriptor)
{
	if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
		ts_test_skip("there is no /dev/null");
}

TS_TEST(skips)
{
	ts_test_skip("on purpose");
}
