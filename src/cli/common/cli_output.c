/* SPDX-License-Identifier: Apache-2.0 */
/* Buffered standard output, and removal of incomplete files. */
#include <errno.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/common/cli_output.h"
#include "cli/common/terminal.h"

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

void ts_output_file_init(struct ts_output_file *file, const char *path)
{
	file->path = path;
	file->existed = stat(path, &file->before) == 0;
}

bool ts_output_file_is(const struct ts_output_file *file, const char *path)
{
	bool input = path[0] == '-' && path[1] == '\0';
	struct stat other;

	if (!file->existed || !S_ISREG(file->before.st_mode))
		return false;
	if (input ? fstat(STDIN_FILENO, &other) : stat(path, &other))
		return false;
	return other.st_dev == file->before.st_dev && other.st_ino == file->before.st_ino;
}

static bool is_as_before(const struct ts_output_file *file, const struct stat *now)
{
	return file->existed && now->st_ino == file->before.st_ino &&
	       now->st_dev == file->before.st_dev && now->st_size == file->before.st_size &&
	       now->st_mtim.tv_sec == file->before.st_mtim.tv_sec &&
	       now->st_mtim.tv_nsec == file->before.st_mtim.tv_nsec;
}

void ts_output_file_discard(const struct ts_output_file *file)
{
	struct stat now;

	if (!stat(file->path, &now) && S_ISREG(now.st_mode) && !is_as_before(file, &now))
		unlink(file->path);
}
