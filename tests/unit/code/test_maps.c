/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of /proc/PID/maps: texts, this process, and mapped files that no longer have a name. */
#include "code/maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/runner.h"

#define NOBODY 65534

static int parse(struct ts_maps *maps, const char *text)
{
	return ts_maps_parse(maps, text, strlen(text), NULL);
}

TS_TEST(lines_are_read)
{
	TS_SCOPED(ts_maps) maps = { 0 };

	TS_CHECK_INT(
		parse(&maps,
		      "55d000000000-55d000001000 r--p 00000000 fd:01 1234                       /usr/bin/a b\n"
		      "55d000001000-55d000003000 r-xp 00001000 fd:01 1234                       /usr/bin/x (deleted)\n"
		      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
		      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"),
		0);
	TS_CHECK_INT(maps.count, 4);
	TS_CHECK_STR(maps.ranges[0].path, "/usr/bin/a b");
	TS_CHECK(maps.ranges[0].is_readable && !maps.ranges[0].is_writable);
	TS_CHECK_INT(maps.ranges[0].inode, 1234);
	TS_CHECK_INT(maps.ranges[0].device, makedev(0xfd, 1));
	TS_CHECK_STR(maps.ranges[1].path, "/usr/bin/x");
	TS_CHECK(maps.ranges[1].is_deleted && maps.ranges[1].is_executable);
	TS_CHECK_INT(maps.ranges[1].file_offset, 0x1000);
	TS_CHECK_STR(maps.ranges[2].path, "");
	TS_CHECK(maps.ranges[2].is_writable && !maps.ranges[2].is_deleted);
	TS_CHECK_STR(maps.ranges[3].path, "[vsyscall]");
	TS_CHECK_INT(maps.ranges[3].start, 0xffffffffff600000u);
}

TS_TEST(ranges_are_found_by_address)
{
	TS_SCOPED(ts_maps) maps = { 0 };

	TS_CHECK_INT(parse(&maps, "1000-2000 r--p 00000000 00:00 0 /a\n"
				  "2000-3000 r--p 00000000 00:00 0 /b\n"
				  "5000-6000 r--p 00000000 00:00 0 /c\n"),
		     0);
	TS_CHECK(ts_maps_find(&maps, 0xfff) == NULL);
	TS_CHECK_STR(ts_maps_find(&maps, 0x1000)->path, "/a");
	TS_CHECK_STR(ts_maps_find(&maps, 0x1fff)->path, "/a");
	TS_CHECK_STR(ts_maps_find(&maps, 0x2000)->path, "/b");
	TS_CHECK(ts_maps_find(&maps, 0x3000) == NULL);
	TS_CHECK_STR(ts_maps_find(&maps, 0x5fff)->path, "/c");
	TS_CHECK(ts_maps_find(&maps, 0x6000) == NULL);
}

TS_TEST(other_texts_are_refused)
{
	static const char *const bad[] = {
		"\n",
		"hello\n",
		"1000 r--p 00000000 00:00 0 /a\n",
		"1000-1000 r--p 00000000 00:00 0 /a\n",
		"1000-2000 r-- 00000000 00:00 0 /a\n",
		"1000-2000 r--p 00000000 00:00 99999999999999999999999 /a\n",
		"11112222333344445-2000 r--p 00000000 00:00 0 /a\n",
		"2000-3000 r--p 00000000 00:00 0 /b\n1000-2000 r--p 00000000 00:00 0 /a\n",
	};
	TS_SCOPED(ts_maps) maps = { 0 };

	for (size_t i = 0; i < TS_ARRAY_SIZE(bad); i++)
		TS_CHECK_INT(parse(&maps, bad[i]), TS_EFORMAT);
	TS_CHECK_INT(parse(&maps, ""), 0);
	TS_CHECK_INT(maps.count, 0);
}

/* The kernel does not truncate, but the text may have been: ignore half a line. */
TS_TEST(a_line_without_its_end_is_left_out)
{
	TS_SCOPED(ts_maps) maps = { 0 };

	TS_CHECK_INT(
		parse(&maps,
		      "1000-2000 r--p 00000000 00:00 0 /a\n2000-3000 r--p 00000000 00:00 0 /us"),
		0);
	TS_CHECK_INT(maps.count, 1);
}

TS_TEST(own_ranges_and_their_file)
{
	TS_SCOPED(ts_maps) maps = { 0 };
	const struct ts_map_range *range;
	struct stat exe, found;
	int fd;

	TS_CHECK_INT(ts_maps_read(&maps, getpid(), NULL), 0);
	range = ts_maps_find(&maps, (uintptr_t)parse);
	TS_CHECK(range != NULL && range->is_executable && !range->is_writable);
	fd = ts_maps_open_file(getpid(), range);
	TS_CHECK(fd >= 0);
	TS_CHECK(stat("/proc/self/exe", &exe) == 0 && fstat(fd, &found) == 0);
	TS_CHECK_INT(found.st_ino, exe.st_ino);
	close(fd);
	range = ts_maps_find(&maps, (uintptr_t)&maps);
	TS_CHECK(range != NULL && range->is_writable);
	TS_CHECK(ts_maps_open_file(getpid(), range) < 0);
}

static uint64_t map_file(const char *path, const char *content)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *mapped;

	TS_CHECK(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content));
	mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	TS_CHECK(mapped != MAP_FAILED);
	close(fd);
	return (uintptr_t)mapped;
}

static const struct ts_map_range *self_range(struct ts_maps *maps, uint64_t address)
{
	const struct ts_map_range *range;

	TS_CHECK_INT(ts_maps_read(maps, getpid(), NULL), 0);
	range = ts_maps_find(maps, address);
	TS_CHECK(range != NULL);
	return range;
}

/* Another file has the name now: it must not be used instead. */
TS_TEST(a_deleted_file_is_still_the_mapped_one)
{
	TS_SCOPED(ts_maps) maps = { 0 };
	char path[] = "/tmp/tracesmith-maps-XXXXXX", content[8] = "";
	const struct ts_map_range *range;
	int fd = mkstemp(path);
	uint64_t old;

	TS_CHECK(fd >= 0);
	close(fd);
	old = map_file(path, "old");
	unlink(path);
	map_file(path, "new");
	range = self_range(&maps, old);
	TS_CHECK(range->is_deleted);
	TS_CHECK_STR(range->path, path);
	fd = ts_maps_open_file(getpid(), range);
	unlink(path);
	if (fd < 0)
		ts_test_skip("/proc/self/map_files may not be followed");
	TS_CHECK_INT(read(fd, content, sizeof(content) - 1), 3);
	TS_CHECK_STR(content, "old");
	close(fd);
}

TS_TEST(a_name_with_a_newline_is_found_by_path)
{
	TS_SCOPED(ts_maps) maps = { 0 };
	char path[64];
	struct ts_map_range range;
	int fd;

	snprintf(path, sizeof(path), "/tmp/tracesmith-\n-%d", (int)getpid());
	range = *self_range(&maps, map_file(path, "old"));
	range.end += 4096; /* no such entry in map_files: falls back to the path */
	fd = ts_maps_open_file(getpid(), &range);
	unlink(path);
	TS_CHECK(fd >= 0);
	close(fd);
}

TS_TEST(another_file_of_that_name_is_not_taken)
{
	TS_SCOPED(ts_maps) maps = { 0 };
	char path[64];
	struct ts_map_range range;

	snprintf(path, sizeof(path), "/tmp/tracesmith-maps-%d", (int)getpid());
	range = *self_range(&maps, map_file(path, "old"));
	range.end += 4096;
	range.inode++;
	TS_CHECK(ts_maps_open_file(getpid(), &range) < 0);
	unlink(path);
}

TS_TEST(devices_are_not_opened)
{
	struct ts_map_range range = {
		.start = 0x1000, .end = 0x2000, .inode = 1, .path = "/dev/null"
	};

	TS_CHECK(ts_maps_open_file(getpid(), &range) < 0);
}

TS_TEST(processes_that_are_gone_or_not_ours)
{
	TS_SCOPED(ts_maps) maps = { 0 };
	struct ts_error err;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	TS_CHECK(waitpid(pid, NULL, 0) == pid);
	TS_CHECK_INT(ts_maps_read(&maps, pid, &err), TS_ENOTFOUND);
	if (getuid() != 0)
		ts_test_skip("only root can become somebody else");
	TS_CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	TS_CHECK_INT(ts_maps_read(&maps, 1, &err), TS_ECAP);
	TS_CHECK(strstr(err.message, "CAP_SYS_PTRACE") != NULL);
}
