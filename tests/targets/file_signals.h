/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files with which a test and a program of its own wait for each other.
 */
#ifndef TS_TESTS_FILE_SIGNALS_H
#define TS_TESTS_FILE_SIGNALS_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/*
 * Creates a file with the pid of this process in it, complete as soon as it is visible. A fork may
 * do the same at the same time.
 */
static inline void make_file(const char *path)
{
	char new_path[PATH_MAX];
	FILE *file;

	snprintf(new_path, sizeof(new_path), "%s.%d", path, (int)getpid());
	file = fopen(new_path, "w");
	if (!file || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file) ||
	    rename(new_path, path)) {
		fprintf(stderr, "cannot create '%s'\n", path);
		exit(1);
	}
}

/* Waits until a file exists. Exits if its test has ended, which removes the working directory. */
static inline void await_file(const char *path)
{
	struct timespec pause = { .tv_nsec = 5000000 };
	char folder[PATH_MAX];

	while (access(path, F_OK)) {
		if (!getcwd(folder, sizeof(folder)))
			exit(1);
		nanosleep(&pause, NULL);
	}
}

#endif
