/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens traces, and imports other files on the fly. The trace made of one never has a name in a
 * folder: neither Ctrl-C nor a kill leaves it behind.
 */
#include "cli/common/trace_open.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tracesmith/import.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"
#include "trace/trace_totals.h"

TS_DEFINE_AUTO(ts_writer, ts_writer_close);

/*
 * Files up to this size are held in memory: what is made of them is seldom larger than they are,
 * packed.
 */
#define MEMORY_BYTES ((off_t)256 << 20)
/* The trace is read once: time counts, not size. */
#define LEVEL 1

#define PATH_BYTES 64

static int make_file(const char *folder)
{
	TS_SCOPED(ts_text) path;
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	ts_text_init(&path);
	if (fd >= 0 || errno == ENOENT || errno == EACCES)
		return fd;
	/* Some file systems know no files without a name. */
	ts_text_printf(&path, "%s/tracesmith-XXXXXX", folder);
	if (!path.failed)
		ts_text_append_char(&path, '\0');
	if (path.failed)
		return -1;
	fd = mkostemp(path.data, O_CLOEXEC);
	if (fd >= 0)
		unlink(path.data);
	return fd;
}

/* A file without a name: in memory where the input is small, else in $TMPDIR. */
static int open_scratch(const char *input, struct ts_error *err)
{
	const char *folder = getenv("TMPDIR");
	struct stat status;
	int fd = -1;

	if (!stat(input, &status) && S_ISREG(status.st_mode) && status.st_size <= MEMORY_BYTES)
		fd = memfd_create("tracesmith", MFD_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (!folder || !*folder)
		folder = "/tmp";
	fd = make_file(folder);
	if (fd < 0)
		ts_error_errno(err, errno,
			       "no place in '%s' to import '%s' to (set TMPDIR to a folder)",
			       folder, input);
	return fd;
}

static int run_import(struct ts_writer *writer, const char *path, struct ts_import_result *result,
		      struct ts_error *err)
{
	struct ts_progress progress;
	struct ts_import_options options = {
		.size = sizeof(options),
		.progress = ts_progress_step,
		.context = &progress,
	};
	TS_SCOPED(ts_text) label;
	int rc;

	ts_text_init(&label);
	ts_text_printf(&label, "import %s", path);
	ts_progress_start(&progress, ts_text_cstr(&label), TS_PROGRESS_BYTES);
	rc = ts_import_file(writer, path, &options, result, err);
	ts_progress_stop(&progress);
	return rc;
}

/* Into the trace at `scratch`. *ret_unknown: no importer knows the file. */
static int import_to(const char *scratch, const char *path, bool *ret_unknown, struct ts_error *err)
{
	struct ts_writer_options options = { .size = sizeof(options), .level = LEVEL };
	struct ts_import_result result = { .format = "unknown" };
	TS_AUTO(ts_writer) writer = NULL;
	int rc = ts_writer_open(&writer, scratch, &options, err);

	if (rc)
		return rc;
	rc = run_import(writer, path, &result, err);
	*ret_unknown = rc == TS_EFORMAT && !strcmp(result.format, "unknown");
	if (rc == TS_EFORMAT && result.events) {
		ts_report_warning("%s", err->message);
		rc = TS_OK;
	}
	if (!rc)
		rc = ts_writer_finish(writer, err);
	if (!rc && result.note[0])
		ts_report_warning("%s: %s", path, result.note);
	if (rc == TS_ENOSPC)
		ts_error_prefix(err, "'%s' cannot be imported (set TMPDIR to a folder with room)",
				path);
	return rc;
}

static int import_and_open(struct ts_reader **ret_reader, const char *path, bool *ret_unknown,
			   struct ts_error *err)
{
	TS_AUTO_FD int fd = open_scratch(path, err);
	char scratch[PATH_BYTES];
	int rc;

	if (fd < 0)
		return err->code;
	snprintf(scratch, sizeof(scratch), "/proc/self/fd/%d", fd);
	rc = import_to(scratch, path, ret_unknown, err);
	return rc ? rc : ts_reader_open(ret_reader, scratch, err);
}

/* Nothing to import either: a folder, or a file without a byte. */
static bool is_hopeless(const char *path)
{
	struct stat status;

	return !stat(path, &status) &&
	       (S_ISDIR(status.st_mode) || (S_ISREG(status.st_mode) && status.st_size == 0));
}

static int import_instead(struct ts_reader **ret_reader, const char *path,
			  const struct ts_error *why)
{
	bool unknown = false;
	struct ts_error err;
	int rc = import_and_open(ret_reader, path, &unknown, &err), exit_code;

	if (!rc)
		return TS_EXIT_DONE;
	if (!unknown || !why)
		return ts_report_error(&err);
	exit_code = ts_report_error(why);
	ts_report_note("%s", err.message);
	return exit_code;
}

void ts_trace_warn(const struct ts_reader *reader, const char *path)
{
	const struct ts_reader_state *state = ts_reader_state(reader);

	if (state->damaged_ranges)
		ts_report_warning("trace '%s': %" PRIu64 " bytes are damaged, from byte %" PRIu64
				  " on; what is whole is used",
				  path, state->damaged_bytes, state->damaged_offset);
	else if (!state->finished)
		ts_report_warning("trace '%s': was not finished; what is there is used", path);
}

int ts_trace_open(struct ts_reader **ret_reader, const char *path)
{
	struct ts_error err;
	int rc;

	if (!strcmp(path, "-"))
		return import_instead(ret_reader, path, NULL);
	rc = ts_reader_open(ret_reader, path, &err);
	if (rc == TS_EFORMAT && !is_hopeless(path))
		return import_instead(ret_reader, path, &err);
	if (rc)
		return ts_report_error(&err);
	ts_trace_warn(*ret_reader, path);
	return TS_EXIT_DONE;
}
