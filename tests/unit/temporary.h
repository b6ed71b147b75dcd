/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new empty file, or folder, for a test that makes thousands of files: in memory if possible,
 * since a disk takes milliseconds for each.
 */
#ifndef TS_TESTS_TEMPORARY_H
#define TS_TESTS_TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit/runner.h"

static inline void temporary_path(char path[64])
{
	int fd;

	snprintf(path, 64, "/dev/shm/tracesmith-test-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0) {
		snprintf(path, 64, "/tmp/tracesmith-test-XXXXXX");
		fd = mkstemp(path);
	}
	TS_CHECK(fd >= 0);
	close(fd);
}

static inline void temporary_folder(char path[64])
{
	snprintf(path, 64, "/dev/shm/tracesmith-test-XXXXXX");
	if (mkdtemp(path))
		return;
	snprintf(path, 64, "/tmp/tracesmith-test-XXXXXX");
	TS_CHECK(mkdtemp(path) != NULL);
}

#endif
