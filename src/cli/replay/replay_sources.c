/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel sources of --replace-kernel. */
#include "cli/replay/replay_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "cli/common/progress.h"
#include "cli/common/report.h"

/* A larger file is not the source of a kernel. */
#define MAX_SOURCE_BYTES ((off_t)64 << 20)
/* What follows more lines is rarely worth reading. */
#define MOST_LOG_LINES 200

static int read_source(const char *path, struct ts_replay_replacement *replacement)
{
	TS_AUTO_FD int fd = ts_io_open(path, O_RDONLY, 0);
	TS_AUTO_FREE char *source = NULL;
	struct stat status;
	struct ts_error err;
	size_t length = 0;

	if (fd < 0 || fstat(fd, &status)) {
		ts_error_errno(&err, errno, "'%s'", path);
		return ts_report_error(&err);
	}
	if (!S_ISREG(status.st_mode) || status.st_size > MAX_SOURCE_BYTES)
		return ts_report_usage("'%s' is not a kernel source file", path);
	source = malloc((size_t)status.st_size + 1);
	while (source && length < (size_t)status.st_size) {
		ssize_t got = ts_read_some(fd, source + length, (size_t)status.st_size - length);

		if (got < 0) {
			ts_error_errno(&err, errno, "'%s'", path);
			return ts_report_error(&err);
		}
		if (got == 0)
			break;
		length += (size_t)got;
	}
	if (!source)
		return ts_report_exit_code(TS_ENOMEM);
	source[length] = '\0';
	replacement->path = path;
	replacement->bytes = length;
	replacement->source = TS_STEAL(source);
	return TS_EXIT_DONE;
}

int ts_replay_sources_read(const struct ts_string_list *replaced, struct ts_replay_options *options)
{
	struct ts_replay_replacement *replacements =
		calloc(replaced->count + 1, sizeof(*replacements));
	int exit_code = TS_EXIT_DONE;

	if (!replacements)
		return ts_report_exit_code(TS_ENOMEM);
	options->replacements = replacements;
	for (size_t i = 0; !exit_code && i < replaced->count; i++) {
		char *equals = strchr(replaced->items[i], '=');

		if (!equals || equals == replaced->items[i] || !equals[1])
			return ts_report_usage("option '--replace-kernel' is NAME=FILE, not '%s'",
					       replaced->items[i]);
		*equals = '\0';
		replacements[i].kernel = replaced->items[i];
		options->replacement_count = i + 1;
		exit_code = read_source(equals + 1, &replacements[i]);
	}
	return exit_code;
}

void ts_replay_sources_release(struct ts_replay_options *options)
{
	for (size_t i = 0; options->replacements && i < options->replacement_count; i++)
		free((void *)(uintptr_t)options->replacements[i].source);
	free((void *)(uintptr_t)options->replacements);
}

void ts_replay_sources_log(void *context, const char *text)
{
	(void)context;
	if (ts_stop_signal())
		return;
	for (int lines = 0; *text && lines < MOST_LOG_LINES; lines++) {
		size_t length = strcspn(text, "\n");

		ts_report_note("%.*s", (int)length, text);
		text += length + (text[length] == '\n');
	}
	if (*text)
		ts_report_note("...");
}
