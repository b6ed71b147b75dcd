/* SPDX-License-Identifier: Apache-2.0 */
/* Output files: permissions, links, files of other users, names of ours beside them. */
#include "base/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/runner.h"

#define STRANGER 54321

/* Moves into a new folder, which leave() removes. */
static void enter(char folder[64])
{
	snprintf(folder, 64, "/tmp/tracesmith-test-XXXXXX");
	TS_CHECK(mkdtemp(folder) != NULL && chdir(folder) == 0);
}

static void leave(const char *folder)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	TS_CHECK(chdir("/") == 0 && system(command) == 0);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	TS_CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static const char *read_file(const char *path)
{
	static char text[64];
	FILE *file = fopen(path, "re");

	TS_CHECK(file != NULL);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static unsigned int mode_of(const char *path)
{
	struct stat status;

	TS_CHECK_INT(lstat(path, &status), 0);
	return status.st_mode & 07777;
}

/* Opens it, writes "new" and closes it. */
static int put(const char *path, unsigned int flags, struct ts_error *err)
{
	int fd, rc = ts_output_open(path, flags, &fd, err);

	if (rc)
		return rc;
	TS_CHECK_INT(write(fd, "new", 3), 3);
	close(fd);
	return TS_OK;
}

static void refused(int rc, const struct ts_error *err, const char *part)
{
	TS_CHECK_INT(rc, TS_EIO);
	if (!strstr(err->message, part))
		ts_test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", err->message, part);
}

TS_TEST(modes_are_parsed)
{
	static const char *const wrong[] = { "",      "0",        "400",  "0200", "0700",
					     "1600",  "0o600",    "u=rw", "600x", "-600",
					     "07777", "00000600", "Umask" };
	mode_t mode = 0;

	TS_CHECK(ts_output_parse_mode("0640", &mode, NULL) == TS_OK && mode == 0640);
	TS_CHECK(ts_output_parse_mode("666", &mode, NULL) == TS_OK && mode == 0666);
	TS_CHECK(ts_output_parse_mode("umask", &mode, NULL) == TS_OK && mode == TS_OUTPUT_UMASK);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		TS_CHECK_INT(ts_output_parse_mode(wrong[i], &mode, NULL), TS_EINVAL);
	TS_CHECK_INT(mode, TS_OUTPUT_UMASK);
}

TS_TEST(files_have_the_mode)
{
	char folder[64];
	int fd;

	enter(folder);
	umask(022);
	TS_CHECK_INT(put("a", 0, NULL), TS_OK);
	TS_CHECK_INT(mode_of("a"), 0600);
	/* A file that is written again, and one that is only continued. */
	TS_CHECK(chmod("a", 0644) == 0);
	TS_CHECK_INT(put("a", TS_OUTPUT_EXISTING, NULL), TS_OK);
	TS_CHECK_INT(mode_of("a"), 0644);
	TS_CHECK_INT(put("a", 0, NULL), TS_OK);
	TS_CHECK_INT(mode_of("a"), 0600);
	umask(077);
	ts_output_set_mode(0644);
	TS_CHECK_INT(put("b", 0, NULL), TS_OK);
	TS_CHECK_INT(mode_of("b"), 0644);
	TS_CHECK_INT(ts_output_create("c", 0, &fd, NULL), TS_OK);
	close(fd);
	TS_CHECK_INT(mode_of("c"), 0644);
	TS_CHECK_INT(ts_output_make_folder("f", NULL), TS_OK);
	TS_CHECK_INT(mode_of("f"), 0755);
	umask(027);
	ts_output_set_mode(TS_OUTPUT_UMASK);
	TS_CHECK_INT(put("d", 0, NULL), TS_OK);
	TS_CHECK_INT(mode_of("d"), 0640);
	TS_CHECK_INT(put("a", 0, NULL), TS_OK);
	TS_CHECK_INT(mode_of("a"), 0600);
	TS_CHECK_INT(ts_output_make_folder("g", NULL), TS_OK);
	TS_CHECK_INT(mode_of("g"), 0750);
	/* One that exists is left as it is. */
	TS_CHECK_INT(ts_output_make_folder("f", NULL), TS_OK);
	TS_CHECK_INT(mode_of("f"), 0755);
	leave(folder);
}

TS_TEST(flags)
{
	char folder[64];
	char byte;
	int fd;

	enter(folder);
	write_file("a", "old text");
	TS_CHECK_INT(put("a", 0, NULL), TS_OK);
	TS_CHECK_STR(read_file("a"), "new text");
	TS_CHECK_INT(put("a", TS_OUTPUT_APPEND, NULL), TS_OK);
	TS_CHECK_STR(read_file("a"), "new textnew");
	TS_CHECK_INT(put("a", TS_OUTPUT_EMPTY, NULL), TS_OK);
	TS_CHECK_STR(read_file("a"), "new");
	TS_CHECK_INT(ts_output_open("a", TS_OUTPUT_READ, &fd, NULL), TS_OK);
	TS_CHECK(read(fd, &byte, 1) == 1 && byte == 'n');
	TS_CHECK_INT(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	TS_CHECK_INT(put("b", TS_OUTPUT_EXISTING, NULL), TS_ENOTFOUND);
	TS_CHECK(access("b", F_OK) != 0);
	TS_CHECK_INT(put("none/b", 0, NULL), TS_ENOTFOUND);
	TS_CHECK_INT(put(".", 0, NULL), TS_EIO);
	leave(folder);
}

TS_TEST(links_are_not_followed)
{
	static const char *const links[] = { "precious", "absent", "link0", "/dev/null" };
	struct ts_error err;
	char folder[64], name[16];
	int fd;

	enter(folder);
	write_file("precious", "old");
	write_file("from", "new");
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "link%d", i);
		TS_CHECK_INT(symlink(links[i], name), 0);
		refused(put(name, TS_OUTPUT_EMPTY, &err), &err, "is a symbolic link");
		refused(put(name, TS_OUTPUT_EXISTING, &err), &err, "is a symbolic link");
		refused(put(name, TS_OUTPUT_LOCKED, &err), &err, "is a symbolic link");
		refused(ts_output_create(name, 0, &fd, &err), &err, "is a symbolic link");
		refused(ts_output_check(name, &err), &err, name);
		refused(ts_output_rename("from", name, &err), &err, "is a symbolic link");
		TS_CHECK(mode_of(name) == 0777);
	}
	TS_CHECK_STR(read_file("precious"), "old");
	TS_CHECK(access("absent", F_OK) != 0);
	leave(folder);
}

TS_TEST(a_file_with_two_names_is_not_changed)
{
	struct ts_output_part part;
	struct ts_error err;
	char folder[64];

	enter(folder);
	write_file("precious", "old");
	write_file("from", "new");
	TS_CHECK_INT(link("precious", "second"), 0);
	refused(put("second", 0, &err), &err, "'second' has another name, a hard link");
	refused(put("second", TS_OUTPUT_APPEND, &err), &err, "has another name");
	refused(put("second", TS_OUTPUT_EMPTY, &err), &err, "has another name");
	/* It may be continued, unless others could have made the link. */
	TS_CHECK_INT(chmod(".", 0777), 0);
	refused(put("second", TS_OUTPUT_EXISTING, &err), &err, "has another name");
	TS_CHECK_STR(read_file("precious"), "old");
	TS_CHECK_INT(chmod(".", 0700), 0);
	TS_CHECK_INT(put("second", TS_OUTPUT_EXISTING | TS_OUTPUT_APPEND, NULL), TS_OK);
	/* Only the name is replaced. */
	write_file("precious", "old");
	TS_CHECK_INT(ts_output_part_init(&part, "second", &err), TS_OK);
	TS_CHECK_INT(put(part.path, 0, NULL), TS_OK);
	TS_CHECK_INT(ts_output_part_commit(&part, &err), TS_OK);
	TS_CHECK_STR(read_file("precious"), "old");
	leave(folder);
}

TS_TEST(files_of_others_are_left_alone)
{
	struct ts_error err;
	char folder[64];
	int fd;

	if (geteuid() != 0)
		ts_test_skip("only root can give files away");
	enter(folder);
	write_file("theirs", "old");
	TS_CHECK(mkfifo("pipe", 0666) == 0 && chmod("theirs", 0666) == 0);
	TS_CHECK(chown("theirs", STRANGER, STRANGER) == 0 &&
		 chown("pipe", STRANGER, STRANGER) == 0);
	write_file("from", "new");
	refused(put("theirs", TS_OUTPUT_EMPTY, &err), &err, "'theirs' belongs to user 54321");
	refused(put("theirs", TS_OUTPUT_EXISTING, &err), &err, "belongs to user");
	refused(ts_output_create("theirs", 0, &fd, &err), &err, "belongs to user");
	refused(ts_output_rename("from", "theirs", &err), &err, "belongs to user");
	/* We are the reader without which it cannot be opened. */
	refused(put("pipe", TS_OUTPUT_READ, &err), &err, "belongs to user");
	TS_CHECK_STR(read_file("theirs"), "old");
	TS_CHECK_INT(mode_of("theirs"), 0666);
	/* It was checked when it was locked. */
	TS_CHECK_INT(put("theirs", TS_OUTPUT_LOCKED, NULL), TS_OK);
	leave(folder);
}

TS_TEST(a_fifo_needs_a_reader)
{
	struct ts_error err;
	char folder[64], text[8];
	int reader;

	enter(folder);
	TS_CHECK_INT(mkfifo("pipe", 0600), 0);
	refused(put("pipe", TS_OUTPUT_EMPTY, &err), &err, "'pipe' is a FIFO that nothing reads");
	reader = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	TS_CHECK_INT(put("pipe", TS_OUTPUT_EMPTY, NULL), TS_OK);
	TS_CHECK_INT(read(reader, text, sizeof(text)), 3);
	close(reader);
	leave(folder);
}

TS_TEST(names_beside_an_output)
{
	struct ts_error err;
	struct stat before, after;
	char folder[64];
	int fd;

	enter(folder);
	/* Left by a killed process. */
	write_file("t.part", "old");
	TS_CHECK_INT(link("t.part", "other"), 0);
	TS_CHECK_INT(stat("t.part", &before), 0);
	TS_CHECK_INT(ts_output_create("t.part", TS_OUTPUT_READ, &fd, NULL), TS_OK);
	TS_CHECK(fstat(fd, &after) == 0 && after.st_size == 0 && after.st_ino != before.st_ino);
	TS_CHECK_INT(write(fd, "new", 3), 3);
	close(fd);
	TS_CHECK_STR(read_file("other"), "old");
	TS_CHECK_INT(ts_output_rename("t.part", "t", NULL), TS_OK);
	TS_CHECK_STR(read_file("t"), "new");
	TS_CHECK_INT(ts_output_rename("other", "t", NULL), TS_OK);
	TS_CHECK_STR(read_file("t"), "old");
	TS_CHECK_INT(ts_output_check("absent", NULL), TS_OK);
	/* A device is never replaced. */
	refused(ts_output_check("/dev/null", &err), &err, "not a regular file");
	refused(ts_output_create("/dev/null", 0, &fd, &err), &err, "not a regular file");
	refused(ts_output_create(".", 0, &fd, &err), &err, "not a regular file");
	leave(folder);
}

TS_TEST(devices_and_descriptors)
{
	char folder[64], path[32];
	int pipes[2], fd;
	char text[8];

	enter(folder);
	TS_CHECK_INT(put("/dev/null", TS_OUTPUT_EMPTY, NULL), TS_OK);
	TS_CHECK_INT(pipe(pipes), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), i ? "/dev/fd/%d" : "/proc/self/fd/%d", pipes[1]);
		TS_CHECK_INT(put(path, TS_OUTPUT_EMPTY, NULL), TS_OK);
		TS_CHECK(read(pipes[0], text, sizeof(text)) == 3);
	}
	close(pipes[0]);
	close(pipes[1]);
	/* What others have written there stays. */
	write_file("a", "old");
	TS_CHECK(chmod("a", 0644) == 0);
	fd = open("a", O_RDWR | O_CLOEXEC);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	TS_CHECK_INT(put(path, TS_OUTPUT_EMPTY, NULL), TS_OK);
	TS_CHECK_STR(read_file("a"), "oldnew");
	TS_CHECK_INT(mode_of("a"), 0644);
	close(fd);
	TS_CHECK_INT(put(path, 0, NULL), TS_ENOTFOUND);
	leave(folder);
}

static void put_part(struct ts_output_part *part, const char *path)
{
	struct ts_error err;
	int fd;

	if (ts_output_part_init(part, path, &err) || ts_output_part_open(part, &fd, &err))
		ts_test_fail(__FILE__, __LINE__, "%s", err.message);
	TS_CHECK_INT(write(fd, "new", 3), 3);
	close(fd);
}

TS_TEST(an_output_is_replaced_when_it_is_complete)
{
	struct ts_output_part part = { 0 };
	char folder[64];

	enter(folder);
	ts_output_part_release(&part);
	write_file("a", "old");
	write_file("a.part", "of a killed process");
	put_part(&part, "a");
	TS_CHECK_STR(read_file("a"), "old");
	TS_CHECK_STR(part.path, "a.part");
	ts_output_part_release(&part);
	TS_CHECK_STR(read_file("a"), "old");
	TS_CHECK(access("a.part", F_OK) != 0);
	put_part(&part, "a");
	TS_CHECK_INT(ts_output_part_commit(&part, NULL), 0);
	ts_output_part_release(&part);
	TS_CHECK_STR(read_file("a"), "new");
	TS_CHECK(access("a.part", F_OK) != 0);
	leave(folder);
}

TS_TEST(what_another_process_writes_is_not_replaced)
{
	static const char *const names[] = { "a", "a.part" };
	struct ts_output_part part;
	struct ts_error err;
	char folder[64];

	enter(folder);
	for (size_t i = 0; i < 2; i++) {
		int fd = open(names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		TS_CHECK_INT(flock(fd, LOCK_EX), 0);
		TS_CHECK_INT(ts_output_part_init(&part, "a", &err), TS_EBUSY);
		TS_CHECK(strstr(err.message, names[i]) != NULL);
		ts_output_part_release(&part);
		TS_CHECK_INT(access(names[i], F_OK), 0);
		close(fd);
		unlink(names[i]);
	}
	leave(folder);
}

TS_TEST(pipes_are_written_directly)
{
	struct ts_output_part part;
	char folder[64];
	int reader;

	enter(folder);
	TS_CHECK_INT(mkfifo("pipe", 0600), 0);
	reader = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	put_part(&part, "pipe");
	TS_CHECK_STR(part.path, "pipe");
	TS_CHECK_INT(ts_output_part_commit(&part, NULL), 0);
	ts_output_part_release(&part);
	TS_CHECK(access("pipe", F_OK) == 0 && access("pipe.part", F_OK) != 0);
	close(reader);
	leave(folder);
}
