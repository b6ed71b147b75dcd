/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns in the names of outputs. */
#include "base/local/path_pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/runner.h"

static char path[64], why[TS_PATH_WHY_BYTES];

static bool expand(const char *pattern, const char *rank, pid_t pid)
{
	const struct ts_path_values values = { .rank = rank, .pid = pid };

	return ts_path_expand(pattern, &values, path, sizeof(path), why, sizeof(why));
}

static void check(const char *pattern, const char *expected)
{
	TS_CHECK(expand(pattern, "3", 4711));
	TS_CHECK_STR(path, expected);
	TS_CHECK_STR(why, "");
}

static void check_fails(const char *pattern, const char *expected)
{
	TS_CHECK(!expand(pattern, NULL, 4711));
	TS_CHECK_STR(why, expected);
}

TS_TEST(patterns_are_replaced)
{
	char host[64] = "", expected[64];

	setenv("JOB", "train", 1);
	gethostname(host, sizeof(host) - 1);
	snprintf(expected, sizeof(expected), "%.40s.sbt", host);
	check("", "");
	check("a.sbt", "a.sbt");
	check("job/%r.sbt", "job/3.sbt");
	check("%r-%p", "3-4711");
	check("%q{JOB}/%r%r.sbt", "train/33.sbt");
	check("100%%.sbt", "100%.sbt");
	check("%%r", "%r");
	check("%h.sbt", expected);
}

TS_TEST(what_is_no_pattern_is_refused)
{
	unsetenv("NOT_SET");
	setenv("EMPTY", "", 1);
	check_fails("x%", "it ends in a single %: write %% for a percent sign");
	check_fails("x%d", "%d is not a pattern: use %r, %h, %p, %q{NAME}, or %% for a percent "
			   "sign");
	check_fails("%q", "%q needs the name of a variable in braces: %q{NAME}");
	check_fails("%qJOB", "%q needs the name of a variable in braces: %q{NAME}");
	check_fails("%q{JOB", "%q needs the name of a variable in braces: %q{NAME}");
	check_fails("%q{}", "%q{}: not the name of a variable");
	check_fails("%q{NOT_SET}", "%q{NOT_SET}: the variable is not set");
	check_fails("%q{EMPTY}", "%q{EMPTY}: the variable is not set");
	TS_CHECK(!expand("%r.sbt", NULL, 1));
	TS_CHECK(strstr(why, "%r: the rank is unknown (looked for RANK, ") == why);
	TS_CHECK(strstr(why, "SLURM_PROCID)"));
}

TS_TEST(long_paths_are_refused)
{
	char pattern[sizeof(path) + 1];

	memset(pattern, 'x', sizeof(path) - 1);
	pattern[sizeof(path) - 1] = '\0';
	TS_CHECK(expand(pattern, NULL, 1));
	pattern[sizeof(path) - 2] = '%';
	pattern[sizeof(path) - 1] = 'p';
	pattern[sizeof(path)] = '\0';
	TS_CHECK(expand(pattern, NULL, 1));
	check_fails(pattern, "the path is too long");
}

TS_TEST(the_process_can_be_left_for_later)
{
	char first[sizeof(path)];

	setenv("ODD", "%p%", 1);
	TS_CHECK(expand("%r-%p-%%-%q{ODD}", "3", 0));
	TS_CHECK_STR(path, "3-%p-%%-%%p%%");
	strcpy(first, path);
	TS_CHECK(expand(first, NULL, 7));
	TS_CHECK_STR(path, "3-7-%-%p%");
}

TS_TEST(patterns_are_found)
{
	TS_CHECK(!ts_path_is_pattern("a.sbt"));
	TS_CHECK(ts_path_is_pattern("%%"));
	TS_CHECK(ts_path_has_pattern("a/%r", 'r'));
	TS_CHECK(ts_path_has_pattern("%%%r", 'r'));
	TS_CHECK(!ts_path_has_pattern("%%r", 'r'));
	TS_CHECK(!ts_path_has_pattern("%", 'r'));
	TS_CHECK(!ts_path_has_pattern("r%p", 'r'));
}
