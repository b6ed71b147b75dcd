/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked with the tool into build/tracesmith-crash, which dies where a test wants it to:
 * TRACESMITH_CRASH_AT=R4:3 kills it with SIGKILL when it passes R4 of docs/live.md, section 8.2,
 * for the third time.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/journal.h"

static void die_at(const char *point)
{
	static atomic_ulong passed;
	const char *at = getenv("TRACESMITH_CRASH_AT");
	size_t length = strlen(point);

	if (!at || strncmp(at, point, length) != 0 || (at[length] && at[length] != ':'))
		return;
	if (atomic_fetch_add(&passed, 1) + 1 ==
	    (at[length] ? strtoul(at + length + 1, NULL, 10) : 1))
		kill(getpid(), SIGKILL);
}

__attribute__((constructor)) static void set_hook(void)
{
	if (getenv("TRACESMITH_CRASH_AT"))
		ts_crash_hook = die_at;
}
