/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds libtracesmith-agent.so, and what is installed with it: libraries of backends and the Python
 * package.
 */
#include "backends/recorder/agent_library.h"

#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"
#include "code/elf.h"

/* Written by packaging/tracesmith_build.py next to the agent. */
#define TS_BUILD_ID_FILE "build-id"
#define BUILD_ID_CHARS 128

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "."
#endif

/* ld.so splits LD_PRELOAD at blanks and colons and has no escape character. */
#define SEPARATORS " :\t\n"

static int check_agent_path(const char *path, struct ts_error *err)
{
	struct stat status;

	if (strpbrk(path, SEPARATORS))
		return ts_error_set(
			err, TS_ECAP,
			"the path of the agent, '%s', contains a space or a colon, which "
			"LD_PRELOAD does not allow; create a link to its folder elsewhere and set "
			"TRACESMITH_AGENT_PATH to the agent in it",
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

/* The same for the agent. A link stays if LD_PRELOAD cannot hold the path that it leads to. */
static void make_agent_absolute(char *buffer, size_t bytes)
{
	TS_AUTO_FREE char *absolute = realpath(buffer, NULL);

	if (*buffer != '/' || strpbrk(buffer, SEPARATORS) || !absolute ||
	    !strpbrk(absolute, SEPARATORS))
		make_absolute(buffer, bytes);
}

/* ---- an installed Python package ---- */

/*
 * Where pip puts the package, seen from bin/: `pip install --target`; an environment; Debian's
 * system-wide Python. An environment may serve several Pythons, each with a package of its own, so
 * that a file names the tool to which the libraries beside it belong: by its build id.
 */
static const char *const packages[] = {
	"../tracesmith/lib/" TS_BUILD_ID_FILE,
	"../lib*/py*3*/site-packages/tracesmith/lib/" TS_BUILD_ID_FILE,
	"../lib*/py*3*/dist-packages/tracesmith/lib/" TS_BUILD_ID_FILE,
};

/* From the first bytes of the file: mapping all of it needs a system call that sandboxes forbid. */
static void read_own_build_id(char *buffer, size_t bytes)
{
	unsigned char start[16384];
	TS_AUTO_FD int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : ts_read_some(fd, start, sizeof(start));
	TS_AUTO(ts_elf) elf = NULL;

	*buffer = '\0';
	if (got > 0 && !ts_elf_open_image(&elf, start, (size_t)got, "tracesmith", NULL) &&
	    strlen(ts_elf_build_id(elf)) < bytes)
		stpcpy(buffer, ts_elf_build_id(elf));
}

static bool names_build(const char *path, const char *build_id)
{
	char text[BUILD_ID_CHARS + 1] = "";
	TS_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ts_read_some(fd, text, sizeof(text) - 1) <= 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return *build_id && !strcmp(text, build_id);
}

/* Appends to the paths found so far. The folder may contain characters that mean something in a
 * pattern. */
static void find_packages(const char *folder, const char *package, glob_t *found)
{
	TS_SCOPED(ts_text) pattern = { 0 };

	for (; *folder; folder++) {
		if (strchr("*?[\\", *folder))
			ts_text_append_char(&pattern, '\\');
		ts_text_append_char(&pattern, *folder);
	}
	ts_text_printf(&pattern, "/%s", package);
	if (!pattern.failed)
		glob(ts_text_cstr(&pattern), found->gl_pathc ? GLOB_APPEND : 0, NULL, found);
}

/* The agent of the package of this build. TS_ENOTFOUND: there is none; then `other` is a folder of
 * another build, or "". */
static int find_in_packages(const char *folder, char *buffer, size_t bytes, char *other)
{
	char build_id[BUILD_ID_CHARS + 1];
	glob_t found = { 0 };
	const char *match = NULL;

	for (size_t i = 0; i < TS_ARRAY_SIZE(packages); i++)
		find_packages(folder, packages[i], &found);
	if (found.gl_pathc)
		read_own_build_id(build_id, sizeof(build_id));
	for (size_t i = 0; i < found.gl_pathc && !match; i++) {
		size_t length = strlen(found.gl_pathv[i]) - strlen(TS_BUILD_ID_FILE);

		if (length + sizeof(TS_AGENT_LIBRARY) > TS_MIN(bytes, TS_AGENT_PATH_BYTES))
			continue;
		if (names_build(found.gl_pathv[i], build_id)) {
			match = found.gl_pathv[i];
			stpcpy(mempcpy(buffer, match, length), TS_AGENT_LIBRARY);
		} else {
			*(char *)mempcpy(other, found.gl_pathv[i], length - 1) = '\0';
		}
	}
	globfree(&found);
	return match ? TS_OK : TS_ENOTFOUND;
}

static int find_agent(char *buffer, size_t bytes, struct ts_error *err)
{
	static const char *const locations[] = { "../lib/", "../lib/" MULTIARCH "/", "../lib64/" };
	const char *given = getenv("TRACESMITH_AGENT_PATH");
	char tool_path[TS_AGENT_PATH_BYTES], other[TS_AGENT_PATH_BYTES] = "";
	const char *folder = tool_folder(tool_path, sizeof(tool_path));

	if (given && *given) {
		if (strlen(given) >= bytes)
			return ts_error_set(err, TS_ECAP, "TRACESMITH_AGENT_PATH is too long");
		stpcpy(buffer, given);
		return TS_OK;
	}
	if (folder && !join_path(buffer, bytes, folder, "") && !access(buffer, F_OK))
		return TS_OK;
	/* Before ../lib: pip and make may both have installed below one prefix. */
	if (folder && !find_in_packages(folder, buffer, bytes, other))
		return TS_OK;
	for (size_t i = 0; folder && i < TS_ARRAY_SIZE(locations); i++) {
		if (!join_path(buffer, bytes, folder, locations[i]) && !access(buffer, F_OK))
			return TS_OK;
	}
	if (*other)
		return ts_error_set(
			err, TS_ECAP,
			"the libraries in '%s' belong to another build than this tool; reinstall "
			"them: pip install --force-reinstall tracesmith",
			other);
	return ts_error_set(
		err, TS_ECAP,
		"the agent, " TS_AGENT_LIBRARY
		", is neither next to this tool, nor in '../lib', nor in a Python package of its "
		"environment; set TRACESMITH_AGENT_PATH to its path");
}

int ts_agent_library_find(char *buffer, size_t bytes, struct ts_error *err)
{
	int rc = find_agent(buffer, bytes, err);

	if (rc)
		return rc;
	make_agent_absolute(buffer, bytes);
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

bool ts_agent_library_find_injection(char *buffer, size_t bytes)
{
	/* In a wheel; in the build directory; installed below a prefix. */
	static const char *const locations[] = {
		"../inject",
		"python/tracesmith/inject",
		"tracesmith/python/tracesmith/inject",
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(locations); i++) {
		TS_SCOPED(ts_text) file = { 0 };

		if (ts_agent_library_find_beside(locations[i], buffer, bytes, NULL))
			return false;
		ts_text_printf(&file, "%s/sitecustomize.py", buffer);
		if (file.failed || access(ts_text_cstr(&file), R_OK))
			continue;
		make_absolute(buffer, bytes);
		return !strchr(buffer, ':');
	}
	return false;
}
