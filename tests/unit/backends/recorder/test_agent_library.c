/* SPDX-License-Identifier: Apache-2.0 */
/* Where the agent is looked for, and what is next to it. */
#include "backends/recorder/agent_library.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/runner.h"

static char folder[] = "/tmp/tracesmith-test.XXXXXX";

static void make_agent(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	TS_CHECK(fd >= 0);
	TS_CHECK_INT(write(fd, "x", 1), 1);
	close(fd);
}

TS_TEST(agent_is_found_where_the_environment_says)
{
	char path[TS_AGENT_PATH_BYTES], expected[128];
	struct ts_error err;

	TS_CHECK(mkdtemp(folder) && !chdir(folder));
	setenv("TRACESMITH_AGENT_PATH", "/no/such/agent.so", 1);
	TS_CHECK_INT(ts_agent_library_find(path, sizeof(path), &err), TS_ECAP);
	TS_CHECK_STR(err.message, "agent '/no/such/agent.so' does not exist");
	/* Relative to the current directory, which the program may change. */
	make_agent("agent.so");
	setenv("TRACESMITH_AGENT_PATH", "agent.so", 1);
	TS_CHECK_INT(ts_agent_library_find(path, sizeof(path), &err), TS_OK);
	snprintf(expected, sizeof(expected), "%s/agent.so", folder);
	TS_CHECK_STR(path, expected);
	TS_CHECK_INT(ts_agent_library_find_beside("other.so", path, sizeof(path), &err), TS_OK);
	snprintf(expected, sizeof(expected), "%s/other.so", folder);
	TS_CHECK_STR(path, expected);
	TS_CHECK_INT(ts_agent_library_find_beside("other.so", path, strlen(expected), &err),
		     TS_ECAP);
	TS_CHECK_INT(rename("agent.so", "an agent.so"), 0);
	setenv("TRACESMITH_AGENT_PATH", "an agent.so", 1);
	TS_CHECK_INT(ts_agent_library_find(path, sizeof(path), &err), TS_ECAP);
	TS_CHECK(strstr(err.message, "LD_PRELOAD") != NULL);
	/* What the message recommends. Links are resolved otherwise. */
	TS_CHECK_INT(mkdir("a b", 0700), 0);
	TS_CHECK_INT(rename("an agent.so", "a b/agent.so"), 0);
	TS_CHECK_INT(symlink("a b", "link"), 0);
	snprintf(expected, sizeof(expected), "%s/link/agent.so", folder);
	setenv("TRACESMITH_AGENT_PATH", expected, 1);
	TS_CHECK_INT(ts_agent_library_find(path, sizeof(path), &err), TS_OK);
	TS_CHECK_STR(path, expected);
	TS_CHECK_INT(rename("a b", "ab") || unlink("link") || symlink("ab", "link"), 0);
	TS_CHECK_INT(ts_agent_library_find(path, sizeof(path), &err), TS_OK);
	snprintf(expected, sizeof(expected), "%s/ab/agent.so", folder);
	TS_CHECK_STR(path, expected);
	TS_CHECK_INT(unlink("ab/agent.so") || rmdir("ab") || unlink("link"), 0);
	TS_CHECK_INT(rmdir(folder), 0);
}
