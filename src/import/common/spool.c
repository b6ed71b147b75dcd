/* SPDX-License-Identifier: Apache-2.0 */
/* Random access to inputs. */
#include "import/common/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/temporary.h"
#include "import/import.h"

/* Opens the file itself; false if it is compressed or not a regular file. */
static bool open_itself(struct ts_spool *spool, struct ts_import *import)
{
	struct stat status;

	if (!import->is_plain_file || !import->is_plain_file(import))
		return false;
	spool->fd = ts_io_open(import->path, O_RDONLY, 0);
	if (spool->fd < 0 || fstat(spool->fd, &status) || !S_ISREG(status.st_mode))
		return false;
	spool->path = strdup(import->path);
	spool->bytes = (uint64_t)status.st_size;
	return spool->path;
}

/*
 * An unnamed temporary file, so that a kill leaves nothing behind; -1 if unsupported, or without
 * /proc to name it by.
 */
static int open_nameless(void)
{
	if (access("/proc/self/fd", X_OK))
		return -1;
	return ts_io_open(ts_temporary_directory(), O_TMPFILE | O_RDWR, 0600);
}

static int make_copy(struct ts_spool *spool, struct ts_import *import, struct ts_error *err)
{
	size_t bytes = strlen(ts_temporary_directory()) + sizeof("/tracesmith-import-XXXXXX") + 24;

	spool->path = malloc(bytes);
	if (!spool->path)
		return ts_error_set(err, TS_ENOMEM, "input '%s': out of memory", import->path);
	spool->is_copy = spool->is_hidden = true;
	spool->fd = open_nameless();
	if (spool->fd >= 0) {
		snprintf(spool->path, bytes, "%s", ts_temporary_directory());
		return TS_OK;
	}
	snprintf(spool->path, bytes, "%s/tracesmith-import-XXXXXX", ts_temporary_directory());
	spool->fd = mkostemp(spool->path, O_CLOEXEC);
	if (spool->fd < 0)
		return ts_error_errno(
			err, errno,
			"input '%s': cannot decompress it into '%s'; set TMPDIR to a folder with enough space, or decompress it first",
			import->path, ts_temporary_directory());
	spool->is_hidden = false;
	return TS_OK;
}

/*
 * Links the unnamed copy. The name can only be taken by a process with this pid that was killed
 * right here.
 */
static int name_copy(struct ts_spool *spool, struct ts_import *import, struct ts_error *err)
{
	size_t bytes = strlen(ts_temporary_directory()) + sizeof("/tracesmith-import-XXXXXX") + 24;
	char number[40];
	int failed = -1;

	if (!spool->is_hidden)
		return TS_OK;
	snprintf(number, sizeof(number), "/proc/self/fd/%d", spool->fd);
	for (int i = 0; failed && i < 1000 && (!i || errno == EEXIST); i++) {
		snprintf(spool->path, bytes, "%s/tracesmith-import-%d-%d", ts_temporary_directory(),
			 (int)getpid(), i);
		failed = linkat(AT_FDCWD, number, AT_FDCWD, spool->path, AT_SYMLINK_FOLLOW);
	}
	if (failed)
		return ts_error_errno(
			err, errno,
			"input '%s': cannot link the temporary copy '%s'; set TMPDIR to another folder, or decompress it first",
			import->path, spool->path);
	spool->is_hidden = false;
	return TS_OK;
}

static int fill_copy(struct ts_spool *spool, struct ts_import *import, struct ts_error *err)
{
	struct ts_json *js = &import->stream.js;
	int rc = TS_OK;

	while (!rc && js->next < js->end) {
		rc = ts_write_all(spool->fd, js->next, (size_t)(js->end - js->next), err);
		if (rc) {
			ts_error_prefix(
				err,
				"input '%s': decompressing into '%s' (set TMPDIR to choose the folder)",
				import->path, spool->path);
			break;
		}
		spool->bytes += (uint64_t)(js->end - js->next);
		js->next = js->end;
		rc = ts_import_refill(import, js->next, &spool->damage);
		/* What was decompressed before the error is still worth reading. */
		if (rc == TS_EFORMAT)
			return TS_OK;
		if (rc && err)
			*err = spool->damage;
	}
	return rc;
}

int ts_spool_open(struct ts_spool *spool, struct ts_import *import, struct ts_error *err)
{
	int rc;

	*spool = (struct ts_spool){ .fd = -1 };
	if (open_itself(spool, import))
		return TS_OK;
	ts_spool_close(spool);
	rc = make_copy(spool, import, err);
	if (!rc)
		rc = fill_copy(spool, import, err);
	if (!rc)
		rc = name_copy(spool, import, err);
	if (rc)
		ts_spool_close(spool);
	return rc;
}

void ts_spool_hide(struct ts_spool *spool)
{
	if (spool->is_copy && !spool->is_hidden && spool->path)
		unlink(spool->path);
	spool->is_hidden = true;
}

void ts_spool_close(struct ts_spool *spool)
{
	ts_spool_hide(spool);
	if (spool->fd >= 0)
		close(spool->fd);
	free(spool->path);
	*spool = (struct ts_spool){ .fd = -1, .is_hidden = true };
}
