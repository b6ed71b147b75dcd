/* SPDX-License-Identifier: Apache-2.0 */
/* Files kept between runs: found again, and everything odd counts as missing. */
#include "base/local/cache_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "unit/runner.h"

static const struct ts_cache_key key = { { 0x0123456789abcdefu, 42 } };
static char folder[256], directory[512], file[1024];

static void get_place(void)
{
	const char *parent = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/tracesmith-cache.XXXXXX", parent ? parent : "/tmp");
	TS_CHECK(mkdtemp(folder));
	snprintf(directory, sizeof(directory), "%s/a/b/c", folder);
	snprintf(file, sizeof(file), "%s/%016" PRIx64 "%016" PRIx64, directory, key.halves[0],
		 key.halves[1]);
}

static void remove_place(void)
{
	char command[600];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	TS_CHECK_INT(system(command), 0);
}

static bool is_found(void)
{
	size_t bytes = 0;
	TS_AUTO_FREE char *content = ts_cache_load(directory, key, &bytes);

	if (!content)
		return false;
	TS_CHECK_INT(bytes, 5);
	TS_CHECK_MEM(content, "hello", 5);
	return true;
}

static void put(void)
{
	ts_cache_store(directory, key, "hello", 5);
	TS_CHECK(is_found());
}

TS_TEST(stores_and_finds)
{
	struct stat status;
	size_t bytes = 0;
	struct ts_cache_key other = { { key.halves[0], 43 } };

	get_place();
	TS_CHECK(!is_found());
	put();
	TS_CHECK(!ts_cache_load(directory, other, &bytes));
	TS_CHECK_INT(stat(directory, &status), 0);
	TS_CHECK_INT(status.st_mode & 07777, 0700);
	TS_CHECK_INT(stat(file, &status), 0);
	TS_CHECK_INT(status.st_mode & 07777, 0600);
	/* Again, with other content. */
	ts_cache_store(directory, key, "", 0);
	free(ts_cache_load(directory, key, &bytes));
	TS_CHECK_INT(bytes, 0);
	remove_place();
}

/* Every byte that is changed, and every length. */
TS_TEST(damage_is_noticed)
{
	char whole[256], bad[256];
	ssize_t bytes;
	int fd;

	get_place();
	put();
	fd = open(file, O_RDWR);
	bytes = read(fd, whole, sizeof(whole));
	TS_CHECK(bytes > 5 && bytes < (ssize_t)sizeof(whole) - 1);
	for (ssize_t i = 0; i < bytes; i++) {
		memcpy(bad, whole, (size_t)bytes);
		bad[i] = (char)(bad[i] ^ 0x40);
		TS_CHECK_INT(pwrite(fd, bad, (size_t)bytes, 0), bytes);
		TS_CHECK(!is_found());
	}
	for (ssize_t i = 0; i < bytes; i++) {
		TS_CHECK_INT(ftruncate(fd, 0), 0);
		TS_CHECK_INT(pwrite(fd, whole, (size_t)i, 0), i);
		TS_CHECK(!is_found());
	}
	TS_CHECK_INT(pwrite(fd, whole, (size_t)bytes, 0), bytes);
	TS_CHECK(is_found());
	TS_CHECK_INT(pwrite(fd, "x", 1, bytes), 1);
	TS_CHECK(!is_found());
	close(fd);
	/* What is damaged is replaced. */
	put();
	remove_place();
}

TS_TEST(only_own_plain_files_count)
{
	char moved[1100];

	get_place();
	put();
	snprintf(moved, sizeof(moved), "%s.moved", file);
	TS_CHECK_INT(rename(file, moved), 0);
	TS_CHECK_INT(symlink(moved, file), 0);
	TS_CHECK(!is_found());
	TS_CHECK_INT(unlink(file), 0);
	TS_CHECK_INT(mkfifo(file, 0600), 0);
	TS_CHECK(!is_found());
	TS_CHECK_INT(unlink(file), 0);
	TS_CHECK_INT(mkdir(file, 0700), 0);
	TS_CHECK(!is_found());
	/* It cannot be replaced, and nothing is left of the attempt. */
	ts_cache_store(directory, key, "hello", 5);
	TS_CHECK_INT(rmdir(file), 0);
	TS_CHECK_INT(rename(moved, file), 0);
	TS_CHECK(is_found());
	/* Others could have written it. */
	TS_CHECK_INT(chmod(file, 0620), 0);
	TS_CHECK(!is_found());
	TS_CHECK_INT(chmod(file, 0602), 0);
	TS_CHECK(!is_found());
	TS_CHECK_INT(chmod(file, 0600), 0);
	TS_CHECK_INT(chmod(directory, 0777), 0);
	TS_CHECK(!is_found());
	TS_CHECK_INT(chmod(directory, 0700), 0);
	TS_CHECK(is_found());
	if (geteuid() == 0) {
		TS_CHECK_INT(chown(file, 1, 1), 0);
		TS_CHECK(!is_found());
		put();
		TS_CHECK_INT(chown(directory, 1, 1), 0);
		TS_CHECK(!is_found());
	}
	remove_place();
}

TS_TEST(a_link_is_no_directory)
{
	char link_path[600];
	size_t bytes = 0;

	get_place();
	put();
	snprintf(link_path, sizeof(link_path), "%s/link", folder);
	TS_CHECK_INT(symlink(directory, link_path), 0);
	TS_CHECK(!ts_cache_load(link_path, key, &bytes));
	/* Nothing is created in a place that cannot be. */
	ts_cache_store("/proc/tracesmith/x", key, "hello", 5);
	ts_cache_store("", key, "hello", 5);
	TS_CHECK(!ts_cache_load("", key, &bytes));
	remove_place();
}

/* A program may limit the size of its files: a write beyond that would be its end. */
TS_TEST(a_limit_on_file_sizes_is_respected)
{
	struct rlimit limit;

	get_place();
	put();
	TS_CHECK_INT(unlink(file), 0);
	TS_CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = 20;
	TS_CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
	signal(SIGXFSZ, SIG_DFL);
	ts_cache_store(directory, key, "hello", 5);
	TS_CHECK(!is_found());
	remove_place();
}

/* ~/.cache/tracesmith/NAME is created, a home is not. */
TS_TEST(a_home_is_not_created)
{
	char path[600];

	get_place();
	snprintf(path, sizeof(path), "%s/home/.cache/tracesmith/x", folder);
	ts_cache_store(path, key, "hello", 5);
	snprintf(path, sizeof(path), "%s/home", folder);
	TS_CHECK(access(path, F_OK) != 0);
	remove_place();
}

TS_TEST(large_entries_are_not_stored)
{
	TS_AUTO_FREE char *large = calloc(1, TS_CACHE_ENTRY_BYTES + 1);
	size_t bytes = 0;

	get_place();
	ts_cache_store(directory, key, large, TS_CACHE_ENTRY_BYTES + 1);
	TS_CHECK(!ts_cache_load(directory, key, &bytes));
	ts_cache_store(directory, key, large, TS_CACHE_ENTRY_BYTES);
	free(ts_cache_load(directory, key, &bytes));
	TS_CHECK_INT(bytes, TS_CACHE_ENTRY_BYTES);
	remove_place();
}

static void make_file(const char *name, int64_t age_seconds)
{
	struct timespec times[2] = { { .tv_sec = 1000000000 - age_seconds },
				     { .tv_sec = 1000000000 - age_seconds } };
	char path[1024];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	TS_CHECK(fd >= 0);
	TS_CHECK_INT(futimens(fd, times), 0);
	close(fd);
}

static bool exists(const char *name)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return access(path, F_OK) == 0;
}

/* The oldest go; what is used stays, and so does what is not ours. */
TS_TEST(the_oldest_are_deleted)
{
	char name[64];

	get_place();
	put();
	make_file("0000000000000000000000000000000a", 5000);
	make_file(".new-0123456789abcdef", 6000);
	make_file("notes.txt", 9000);
	make_file(".new-notes", 9000);
	make_file("0000000000000000000000000000000A", 9000);
	for (unsigned i = 0; i < TS_CACHE_FILES - 3; i++) {
		snprintf(name, sizeof(name), "f%031x", i);
		make_file(name, i);
	}
	put(); /* TS_CACHE_FILES of them: none is deleted */
	TS_CHECK(exists("0000000000000000000000000000000a"));
	make_file("0000000000000000000000000000000b", 7000);
	put();
	TS_CHECK(!exists("0000000000000000000000000000000a"));
	TS_CHECK(!exists("0000000000000000000000000000000b"));
	TS_CHECK(!exists(".new-0123456789abcdef"));
	TS_CHECK(exists("notes.txt"));
	TS_CHECK(exists(".new-notes"));
	TS_CHECK(exists("0000000000000000000000000000000A"));
	TS_CHECK(exists("f0000000000000000000000000000000"));
	snprintf(name, sizeof(name), "f%031x", TS_CACHE_FILES - 4);
	TS_CHECK(!exists(name));
	remove_place();
}

TS_TEST(the_environment_names_the_directory)
{
	char found[64];

	TS_CHECK_INT(setenv("HOME", "/home/me", 1), 0);
	TS_CHECK_INT(unsetenv("XDG_CACHE_HOME"), 0);
	TS_CHECK_INT(unsetenv("TRACESMITH_CACHE_DIR"), 0);
	ts_cache_locate("x", found, sizeof(found));
	TS_CHECK_STR(found, "/home/me/.cache/tracesmith/x");
	ts_cache_locate("x", found, 20);
	TS_CHECK_STR(found, "");
	TS_CHECK_INT(setenv("XDG_CACHE_HOME", "/c", 1), 0);
	ts_cache_locate("x", found, sizeof(found));
	TS_CHECK_STR(found, "/c/tracesmith/x");
	TS_CHECK_INT(setenv("XDG_CACHE_HOME", "relative", 1), 0);
	ts_cache_locate("x", found, sizeof(found));
	TS_CHECK_STR(found, "/home/me/.cache/tracesmith/x");
	TS_CHECK_INT(setenv("TRACESMITH_CACHE_DIR", "/d", 1), 0);
	ts_cache_locate("x", found, sizeof(found));
	TS_CHECK_STR(found, "/d/x");
	TS_CHECK_INT(setenv("TRACESMITH_CACHE_DIR", "", 1), 0);
	ts_cache_locate("x", found, sizeof(found));
	TS_CHECK_STR(found, "");
	TS_CHECK_INT(unsetenv("TRACESMITH_CACHE_DIR"), 0);
	TS_CHECK_INT(unsetenv("XDG_CACHE_HOME"), 0);
	TS_CHECK_INT(unsetenv("HOME"), 0);
	ts_cache_locate("x", found, sizeof(found));
	TS_CHECK_STR(found, "");
}

/* A program does not notice: errno is as it was. */
TS_TEST(errno_is_kept)
{
	size_t bytes = 0;

	errno = EDOM;
	TS_CHECK(!ts_cache_load("/nowhere", key, &bytes));
	ts_cache_store("/proc/nowhere", key, "hello", 5);
	TS_CHECK_INT(errno, EDOM);
}
