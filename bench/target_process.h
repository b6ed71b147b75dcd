/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is its own target: it executes itself again with the environment that the agent
 * reads when it is loaded, and with its own live directory.
 */
#ifndef TS_BENCH_TARGET_PROCESS_H
#define TS_BENCH_TARGET_PROCESS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIVE_DIRECTORY "TRACESMITH_BENCH_LIVE"

static inline void die(const char *what)
{
	fprintf(stderr, "bench: %s (%s)\n", what, strerror(errno));
	exit(1);
}

static inline void set_variable(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* On the second run, returns the live directory. NULL unsets a variable. */
static inline const char *become_target(char **argv, const char *agent, const char *live,
					const char *budget)
{
	static char directory[] = "/dev/shm/tracesmith-bench-XXXXXX";

	if (getenv(LIVE_DIRECTORY))
		return getenv(LIVE_DIRECTORY);
	if (!mkdtemp(directory))
		die("cannot make a live directory in /dev/shm");
	set_variable("TRACESMITH_LIVE_DIR", directory);
	set_variable("TRACESMITH_AGENT", agent);
	set_variable("TRACESMITH_LIVE", live);
	set_variable("TRACESMITH_BUDGET", budget);
	set_variable("TRACESMITH_OUT", NULL);
	set_variable("FERRUM_TRACE_OUT", NULL);
	set_variable(LIVE_DIRECTORY, directory);
	execv("/proc/self/exe", argv);
	die("cannot start anew");
	return NULL;
}

/* Calls `each` for every file in the directory. */
static inline void for_each_area(const char *directory, void (*each)(int fd, const char *name))
{
	DIR *list = opendir(directory);
	struct dirent *entry;

	if (!list)
		die("the live directory is gone");
	while ((entry = readdir(list)))
		if (entry->d_name[0] != '.')
			each(dirfd(list), entry->d_name);
	closedir(list);
}

static inline void remove_area(int fd, const char *name)
{
	unlinkat(fd, name, 0);
}

static inline void end_target(const char *directory)
{
	for_each_area(directory, remove_area);
	rmdir(directory);
}

#endif
