/* SPDX-License-Identifier: Apache-2.0 */
/* Finds libtracesmith-agent.so, and the libraries of built-in backends, which are next to it. */
#include "backends/recorder/agent_library.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "."
#endif

/* ld.so splits LD_PRELOAD at blanks and colons and has no escape character. */
static int check_agent_path(const char *path, struct ts_error *err)
{
	struct stat status;

	if (strpbrk(path, " :\t\n"))
		return ts_error_set(
			err, TS_ECAP,
			"the path of the agent, '%s', contains a space or a colon, which "
			"LD_PRELOAD does not allow; create a link to it elsewhere and set "
			"TRACESMITH_AGENT_PATH",
			path);
	if (stat(path, &status) || !S_ISREG(status.st_mode) || access(path, R_OK))
		return ts_error_set(err, TS_ECAP, "agent '%s' does not exist", path);
	return TS_OK;
}

static int join_path(char *buffer, size_t bytes, const char *folder, const char *below)
{
	size_t length = strlen(folder);

	if (length + strlen(below) + sizeof("/" TS_AGENT_LIBRARY) + 1 > bytes)
		return TS_EINVAL;
	memcpy(buffer, folder, length);
	stpcpy(stpcpy(stpcpy(buffer + length, "/"), below), TS_AGENT_LIBRARY);
	return TS_OK;
}

/* Directory of the running tool. */
static const char *tool_folder(char *buffer, size_t bytes)
{
	ssize_t length = readlink("/proc/self/exe", buffer, bytes - 1);

	if (length <= 0)
		return NULL;
	buffer[length] = '\0';
	return dirname(buffer);
}

/* Makes the path absolute, since programs change their directory; leaves it as it is on failure. */
static void make_absolute(char *buffer, size_t bytes)
{
	TS_AUTO_FREE char *absolute = realpath(buffer, NULL);

	if (absolute && strlen(absolute) < bytes)
		stpcpy(buffer, absolute);
}

static int find_agent(char *buffer, size_t bytes, struct ts_error *err)
{
	static const char *const locations[] = { "", "../lib/", "../lib/" MULTIARCH "/",
						 "../lib64/" };
	const char *given = getenv("TRACESMITH_AGENT_PATH");
	char tool_path[TS_AGENT_PATH_BYTES];
	const char *folder = tool_folder(tool_path, sizeof(tool_path));

	if (given && *given) {
		if (strlen(given) >= bytes)
			return ts_error_set(err, TS_ECAP, "TRACESMITH_AGENT_PATH is too long");
		stpcpy(buffer, given);
		return TS_OK;
	}
	for (size_t i = 0; folder && i < TS_ARRAY_SIZE(locations); i++) {
		if (!join_path(buffer, bytes, folder, locations[i]) && !access(buffer, F_OK))
			return TS_OK;
	}
	return ts_error_set(
		err, TS_ECAP,
		"the agent, " TS_AGENT_LIBRARY
		", is neither next to this tool nor in '../lib'; set TRACESMITH_AGENT_PATH to "
		"its path");
}

int ts_agent_library_find(char *buffer, size_t bytes, struct ts_error *err)
{
	int rc = find_agent(buffer, bytes, err);

	if (rc)
		return rc;
	make_absolute(buffer, bytes);
	return check_agent_path(buffer, err);
}

int ts_agent_library_find_beside(const char *name, char *buffer, size_t bytes, struct ts_error *err)
{
	int rc = ts_agent_library_find(buffer, bytes, err);
	char *slash;

	if (rc)
		return rc;
	slash = strrchr(buffer, '/');
	if (!slash || strlen(name) >= bytes - (size_t)(slash + 1 - buffer))
		return ts_error_set(err, TS_ECAP, "the path of '%s' is too long", name);
	stpcpy(slash + 1, name);
	return TS_OK;
}
