/* SPDX-License-Identifier: Apache-2.0 */
/* The live directory: its default, its checks, and that of another process. */
#include <signal.h>
#include <sys/wait.h>

#include "live/discover.h"
#include "unit/live/live_support.h"

static void expect_directory(int code, const char *part)
{
	struct ts_error err = { 0 };
	int fd = -1;

	TS_CHECK_INT(ts_live_directory_open(getuid(), 0, &fd, &err), code);
	if (code == TS_OK)
		close(fd);
	else if (fd >= 0 || !strstr(err.message, part))
		ts_test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", err.message, part);
}

TS_TEST(directory_is_checked)
{
	char base[] = "/tmp/ts-live-XXXXXX", path[64], other[64];

	TS_CHECK(mkdtemp(base) != NULL);
	snprintf(path, sizeof(path), "%s/live", base);
	snprintf(other, sizeof(other), "%s/other", base);
	setenv("TRACESMITH_LIVE_DIR", path, 1);
	expect_directory(TS_ENOTFOUND, "no live directory");
	TS_CHECK(mkdir(path, 0700) == 0);
	expect_directory(TS_OK, "");
	TS_CHECK(chmod(path, 0750) == 0);
	expect_directory(TS_EFORMAT, "accessible to other users");
	TS_CHECK(chmod(path, 0700) == 0 && rename(path, other) == 0);
	TS_CHECK(symlink(other, path) == 0);
	expect_directory(TS_EFORMAT, "not a directory");
	unlink(path);
	close(creat(path, 0600));
	expect_directory(TS_EFORMAT, "not a directory");
	unlink(path);
	rmdir(other);
	rmdir(base);
}

TS_TEST(directory_has_a_default)
{
	char path[64], expected[64];

	unsetenv("TRACESMITH_LIVE_DIR");
	TS_CHECK_INT(ts_live_directory_path(1234, path, sizeof(path)), TS_OK);
	TS_CHECK_STR(path, "/dev/shm/tracesmith-1234");
	setenv("TRACESMITH_LIVE_DIR", "", 1);
	TS_CHECK_INT(ts_live_directory_path(0, path, sizeof(path)), TS_OK);
	snprintf(expected, sizeof(expected), "/dev/shm/tracesmith-0");
	TS_CHECK_STR(path, expected);
	TS_CHECK_INT(ts_live_directory_path(0, path, 10), TS_EINVAL);
}

/* As seen by another process, whose environment differs from ours. */
TS_TEST(directory_of_a_process)
{
	char base[] = "/tmp/ts-live-XXXXXX", variable[64], program[] = "sleep", seconds[] = "60";
	char *arguments[] = { program, seconds, NULL }, *environment[] = { variable, NULL };
	struct stat expected, status;
	bool is_found = false;
	pid_t child;
	int fd = -1;

	TS_CHECK(mkdtemp(base) != NULL && stat(base, &expected) == 0);
	setenv("TRACESMITH_LIVE_DIR", "/nowhere", 1);
	snprintf(variable, sizeof(variable), "TRACESMITH_LIVE_DIR=%s", base);
	child = fork();
	if (child == 0) {
		execve("/bin/sleep", arguments, environment);
		_exit(1);
	}
	/* Until exec is done; before that it may be the default directory. */
	for (int i = 0; i < 5000 && !is_found; i++) {
		usleep(1000);
		if (ts_live_directory_open(getuid(), child, &fd, NULL))
			continue;
		is_found = fstat(fd, &status) == 0 && status.st_ino == expected.st_ino;
		close(fd);
	}
	TS_CHECK(is_found);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	TS_CHECK_INT(ts_live_directory_open(getuid(), child, &fd, NULL), TS_ENOTFOUND);
	rmdir(base);
}

/* A process with its own root directory; symbolic links in it must not lead out. */
TS_TEST(directory_in_a_container)
{
	char base[] = "/tmp/ts-live-XXXXXX", path[96], link[96], byte;
	struct stat expected, status;
	int ready[2], fd = -1;
	struct ts_error err = { 0 };
	pid_t child;

	TS_CHECK(mkdtemp(base) != NULL && pipe(ready) == 0);
	snprintf(path, sizeof(path), "mkdir -p '%s/dev/shm'", base);
	TS_CHECK(system(path) == 0);
	snprintf(path, sizeof(path), "%s/dev/shm/tracesmith-%u", base, (unsigned int)getuid());
	TS_CHECK(mkdir(path, 0700) == 0 && stat(path, &expected) == 0);
	child = fork();
	if (child == 0) {
		byte = chroot(base) == 0;
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	TS_CHECK(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	if (byte) {
		TS_CHECK_INT(ts_live_directory_open(getuid(), child, &fd, &err), TS_OK);
		TS_CHECK(fstat(fd, &status) == 0 && status.st_ino == expected.st_ino);
		close(fd);
		snprintf(link, sizeof(link), "%s/dev/away", base);
		snprintf(path, sizeof(path), "%s/dev/shm", base);
		TS_CHECK(rename(path, link) == 0 && symlink("away", path) == 0);
		TS_CHECK_INT(ts_live_directory_open(getuid(), child, &fd, &err), TS_EFORMAT);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	snprintf(path, sizeof(path), "rm -rf '%s'", base);
	TS_CHECK(system(path) == 0);
	if (!byte)
		ts_test_skip("the root directory cannot be changed here");
}
