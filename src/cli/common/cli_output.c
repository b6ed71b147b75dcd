/* SPDX-License-Identifier: Apache-2.0 */
/* Buffered standard output, and checks of output files. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/common/cli_output.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "sbt/sbt_layout.h"

#define BUFFER_BYTES ((size_t)64 << 10)

static struct ts_text buffer;
static struct ts_error failure; /* code 0: none so far; empty message: already reported */

struct ts_text *ts_stdout(void)
{
	return &buffer;
}

int ts_stdout_flush(struct ts_error *err)
{
	if (!failure.code && ts_text_status(&buffer))
		ts_error_set(&failure, TS_ENOMEM, "no memory for the output");
	if (!failure.code && buffer.length &&
	    ts_write_all(STDOUT_FILENO, buffer.data, buffer.length, &failure)) {
		if (errno == EPIPE)
			failure.message[0] = '\0';
		else
			ts_error_prefix(&failure, "standard output");
	}
	ts_text_clear(&buffer);
	if (failure.code && err) {
		*err = failure;
		failure.message[0] = '\0';
	}
	return failure.code;
}

int ts_stdout_drain(struct ts_error *err)
{
	if (buffer.length < BUFFER_BYTES && !buffer.failed && !ts_terminal_stdout())
		return TS_OK;
	return ts_stdout_flush(err);
}

static bool is_folder(const char *path)
{
	size_t length = strlen(path);
	struct stat status;

	return (!stat(path, &status) && S_ISDIR(status.st_mode)) ||
	       (length && path[length - 1] == '/');
}

/*
 * An empty file, a pipe or a device is nothing that could be lost. A link is not followed: opening
 * the output says so.
 */
static bool is_other_file(const char *path)
{
	char magic[SBT_MAGIC_BYTES];
	struct stat status;
	TS_AUTO_FD int fd = -1;

	if (lstat(path, &status) || !S_ISREG(status.st_mode) || !status.st_size)
		return false;
	fd = ts_io_open(path, O_RDONLY, 0);
	return fd >= 0 && (read(fd, magic, sizeof(magic)) != (ssize_t)sizeof(magic) ||
			   memcmp(magic, SBT_FILE_MAGIC, sizeof(magic)) != 0);
}

int ts_output_test_trace(const char *path, struct ts_error *err)
{
	if (is_folder(path))
		return ts_error_set(err, TS_EINVAL, "output '%s' is a directory", path);
	if (is_other_file(path))
		return ts_error_set(
			err, TS_EINVAL,
			"output '%s' exists and is not a trace: give another name, or remove it",
			path);
	return TS_OK;
}

int ts_output_check_file(const char *path)
{
	size_t length = strlen(path);

	if (!is_folder(path))
		return TS_EXIT_DONE;
	while (length > 1 && path[length - 1] == '/')
		length--;
	return ts_report_usage("output '%s' is a directory: give a file, such as %.*s/NAME", path,
			       (int)length, path);
}

int ts_output_check_trace(const char *path)
{
	int exit_code = ts_output_check_file(path);
	struct ts_error err;

	if (!strcmp(path, "-"))
		return ts_report_usage("a trace needs a file name");
	if (!exit_code && ts_output_test_trace(path, &err))
		exit_code = ts_report_usage("%s", err.message);
	return exit_code;
}

bool ts_output_is_input(const char *output, const char *input)
{
	bool is_standard = !strcmp(input, "-");
	struct stat out, in;

	return !stat(output, &out) && S_ISREG(out.st_mode) &&
	       !(is_standard ? fstat(STDIN_FILENO, &in) : stat(input, &in)) &&
	       in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}
