/* SPDX-License-Identifier: Apache-2.0 */
/* Opens SBT files; imports others into a file without a name, so that a kill leaves nothing. */
#include "open/trace_open.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tracesmith/import.h>
#include <tracesmith/writer.h>

#include "base/memory.h"
#include "base/temporary.h"
#include "base/text.h"

TS_DEFINE_AUTO(ts_writer, ts_writer_close);

/* Files up to this size are imported into memory: the trace is seldom larger than its source. */
#define MEMORY_BYTES ((off_t)256 << 20)
/* The trace is read once: speed counts, not size. */
#define LEVEL 1

#define PATH_BYTES 64

struct opening {
	const char *path;
	const struct ts_open_options *options;
};

static void warn(const struct ts_open_options *options, const char *text)
{
	if (options->warning)
		options->warning(options->context, text);
}

/* ---- import ---- */

static int open_scratch(int *ret_fd, const char *input, struct ts_error *err)
{
	struct stat status;
	int fd = -1;

	if (!stat(input, &status) && S_ISREG(status.st_mode) && status.st_size <= MEMORY_BYTES)
		fd = memfd_create("tracesmith", MFD_CLOEXEC);
	if (fd < 0)
		return ts_temporary_open(ret_fd, err);
	*ret_fd = fd;
	return TS_OK;
}

static int on_progress(void *context, uint64_t done, uint64_t total)
{
	const struct opening *opening = context;
	const struct ts_open_options *options = opening->options;

	return options->progress ? options->progress(options->context, opening->path, done, total)
				 : 0;
}

/* Into the trace at `scratch`. *ret_unknown: no importer knows the file. */
static int import_to(const char *scratch, const struct opening *opening, bool *ret_unknown,
		     struct ts_error *err)
{
	struct ts_import_options import = {
		.size = sizeof(import),
		.progress = on_progress,
		.context = (void *)opening,
	};
	struct ts_writer_options options = { .size = sizeof(options), .level = LEVEL };
	struct ts_import_result result = { .format = "unknown" };
	TS_AUTO(ts_writer) writer = NULL;
	TS_SCOPED(ts_text) text = { 0 };
	int rc = ts_writer_open(&writer, scratch, &options, err);

	if (rc)
		return rc;
	rc = ts_import_file(writer, opening->path, &import, &result, err);
	*ret_unknown = rc == TS_EFORMAT && !strcmp(result.format, "unknown");
	if (rc == TS_EFORMAT && result.events) {
		warn(opening->options, err->message);
		rc = TS_OK;
	}
	if (!rc)
		rc = ts_writer_finish(writer, err);
	if (!rc && result.note[0]) {
		ts_text_printf(&text, "%s: %s", opening->path, result.note);
		warn(opening->options, ts_text_cstr(&text));
	}
	if (rc == TS_ENOSPC)
		ts_error_prefix(err, "cannot import '%s' (set TMPDIR to a folder with more space)",
				opening->path);
	return rc;
}

static int import_and_open(struct ts_reader **ret_reader, const struct opening *opening,
			   bool *ret_unknown, struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	char scratch[PATH_BYTES];
	int rc = open_scratch(&fd, opening->path, err);

	if (rc) {
		ts_error_prefix(err, "cannot import '%s'", opening->path);
		return rc;
	}
	snprintf(scratch, sizeof(scratch), "/proc/self/fd/%d", fd);
	rc = import_to(scratch, opening, ret_unknown, err);
	return rc ? rc : ts_reader_open(ret_reader, scratch, err);
}

/* A folder or an empty file: there is nothing to import. */
static bool is_hopeless(const char *path)
{
	struct stat status;

	return !stat(path, &status) &&
	       (S_ISDIR(status.st_mode) || (S_ISREG(status.st_mode) && status.st_size == 0));
}

/* ---- one trace ---- */

/* What became of the recording; `used` says what is used of it. */
static void append_writer(struct ts_text *text, const char *path,
			  const struct ts_trace_writer *writer, const char *used)
{
	ts_trace_describe_writer(text, path, writer);
	ts_text_append_str(text, used);
	if (writer->writing == TS_TRACE_CUT_OFF) {
		ts_text_append_str(text, "; get the rest with: ");
		ts_trace_append_recover(text, path);
	}
}

/* Warns once if the trace lacks a part of the recording. */
static void check(const struct ts_reader *reader, const char *path,
		  const struct ts_trace_writer *writer, const struct ts_open_options *options)
{
	const struct ts_reader_state *state = ts_reader_state(reader);
	char bytes[TS_FORMAT_BYTES], offset[TS_FORMAT_BYTES];
	TS_SCOPED(ts_text) text = { 0 };

	/* What is torn at the end belongs to that. */
	if (writer->writing == TS_TRACE_GROWING)
		append_writer(&text, path, writer, "; the rows so far are used");
	else if (writer->writing == TS_TRACE_CUT_OFF)
		append_writer(&text, path, writer, "; only the rows saved before are used");
	else if (state->damaged_ranges)
		ts_text_printf(
			&text, "trace '%s': %s byte%s damaged, from byte %s on; the rest is used",
			path, ts_format_count(bytes, sizeof(bytes), (int64_t)state->damaged_bytes),
			state->damaged_bytes == 1 ? " is" : "s are",
			ts_format_count(offset, sizeof(offset), (int64_t)state->damaged_offset));
	else if (!state->finished)
		ts_text_printf(&text, "trace '%s' is incomplete; the rows in it are used", path);
	if (text.length)
		warn(options, ts_text_cstr(&text));
}

static void note(const struct opening *opening, const char *text)
{
	if (opening->options->note)
		opening->options->note(opening->options->context, text);
}

/* A file that is no SBT trace. *err says so; if it can be imported but is wrong it says that. */
static int open_foreign(struct ts_reader **ret_reader, const struct opening *opening,
			struct ts_error *err)
{
	struct ts_error import_err;
	bool unknown = false;
	int rc = import_and_open(ret_reader, opening, &unknown, &import_err);

	if (rc && !unknown)
		*err = import_err;
	else if (rc)
		note(opening, import_err.message);
	return rc;
}

int ts_open(struct ts_reader **ret_reader, const char *operand,
	    const struct ts_open_options *options, struct ts_error *err)
{
	struct ts_open_options complete = { 0 };
	const struct opening opening = { operand, &complete };
	struct ts_error unused = { 0 };
	struct ts_trace_writer writer;
	TS_SCOPED(ts_text) text = { 0 };
	bool unknown;
	int rc;

	err = err ? err : &unused;
	if (!ret_reader || !operand)
		return ts_error_set(err, TS_EINVAL, "there is no trace to open");
	if (options)
		memcpy(&complete, options, TS_MIN(options->size, sizeof(complete)));
	if (!strcmp(operand, "-"))
		return import_and_open(ret_reader, &opening, &unknown, err);
	ts_trace_await(operand, opening.options, &writer);
	rc = ts_reader_open(ret_reader, operand, err);
	if (rc == TS_EFORMAT && !is_hopeless(operand)) {
		rc = open_foreign(ret_reader, &opening, err);
	} else if (rc && writer.writing != TS_TRACE_AT_REST) {
		append_writer(&text, operand, &writer, "");
		note(&opening, ts_text_cstr(&text));
	}
	if (!rc)
		check(*ret_reader, operand, &writer, opening.options);
	return rc;
}
