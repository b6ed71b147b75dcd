/* SPDX-License-Identifier: Apache-2.0 */
/* Unlinked temporary files, and a folder for named ones. */
#include "base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

const char *ts_temporary_directory(void)
{
	const char *folder = getenv("TMPDIR");

	return folder && *folder ? folder : "/tmp";
}

/* Anyone may create the name before us: it must be a folder of ours, not a link to one. */
int ts_temporary_folder(char *buffer, size_t bytes, struct ts_error *err)
{
	int length = snprintf(buffer, bytes, "%s/tracesmith-%u", ts_temporary_directory(),
			      (unsigned int)geteuid());
	struct stat status;

	if (length < 0 || (size_t)length >= bytes)
		return ts_error_set(err, TS_EINVAL, "TMPDIR is too long for a path");
	if (mkdir(buffer, 0700) && errno != EEXIST)
		return ts_error_errno(err, errno, "cannot create '%s'", buffer);
	if (lstat(buffer, &status))
		return ts_error_errno(err, errno, "folder '%s'", buffer);
	if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077))
		return ts_error_set(err, TS_EINVAL,
				    "'%s' is not a folder that only this user can access", buffer);
	return TS_OK;
}

int ts_temporary_open(int *ret_fd, struct ts_error *err)
{
	TS_SCOPED(ts_text) path = { 0 };
	int fd;

	ts_text_printf(&path, "%s/tracesmith-XXXXXX", ts_temporary_directory());
	if (ts_text_status(&path) || !*ts_text_cstr(&path))
		return ts_error_set(err, TS_ENOMEM, "no memory");
	fd = mkostemp(path.data, O_CLOEXEC);
	if (fd < 0)
		return ts_error_errno(err, errno,
				      "cannot create a temporary file in '%s' (set TMPDIR to "
				      "another folder)",
				      ts_temporary_directory());
	unlink(path.data);
	*ret_fd = fd;
	return TS_OK;
}

int ts_temporary_write(int fd, const void *data, size_t bytes, uint64_t at, struct ts_error *err)
{
	const char *from = data;

	while (bytes) {
		ssize_t done = pwrite(fd, from, bytes, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return ts_error_errno(err, done ? errno : ENOSPC,
					      "cannot write a temporary file in TMPDIR");
		from += done;
		at += (uint64_t)done;
		bytes -= (size_t)done;
	}
	return TS_OK;
}

int ts_temporary_read(int fd, void *data, size_t bytes, uint64_t at, struct ts_error *err)
{
	char *to = data;

	while (bytes) {
		ssize_t done = pread(fd, to, bytes, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return ts_error_errno(err, done ? errno : EIO,
					      "cannot read a temporary file in TMPDIR");
		to += done;
		at += (uint64_t)done;
		bytes -= (size_t)done;
	}
	return TS_OK;
}
