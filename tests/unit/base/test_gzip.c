/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed output: what arrives, and an output that cannot be written. */
#include "base/gzip.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "base/io.h"
#include "base/text.h"
#include "unit/runner.h"

#define LINES 100000

static void start(struct ts_gzip **ret_gzip, int fd, int *ret_input)
{
	struct ts_error err;
	int rc = ts_gzip_start(ret_gzip, fd, ret_input, &err);

	if (rc == TS_ECAP)
		ts_test_skip(err.message);
	TS_CHECK_INT(rc, 0);
}

/* More than all buffers hold. */
static void make_lines(struct ts_text *text)
{
	for (int i = 0; i < LINES; i++)
		ts_text_printf(text, "%d line\n", i);
}

TS_TEST(input_reads_what_was_compressed)
{
	char path[] = "/tmp/tracesmith-test-XXXXXX";
	TS_SCOPED(ts_text) text = { 0 }, read = { 0 };
	struct ts_input *source;
	struct ts_gzip *gzip;
	int fd = mkstemp(path), input;
	char buffer[4096];
	size_t got;

	make_lines(&text);
	start(&gzip, fd, &input);
	TS_CHECK_INT(ts_write_all(input, text.data, text.length, NULL), 0);
	TS_CHECK_INT(ts_gzip_finish(gzip, NULL), 0);
	close(fd);
	TS_CHECK_INT(ts_input_open(&source, path, NULL), 0);
	while (!ts_input_read(source, buffer, sizeof(buffer), &got, NULL) && got)
		ts_text_append(&read, buffer, got);
	ts_input_close(source);
	unlink(path);
	TS_CHECK_INT(read.length, text.length);
	TS_CHECK(!memcmp(read.data, text.data, text.length));
}

TS_TEST(an_output_that_cannot_be_written_is_an_error)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC), input;
	TS_SCOPED(ts_text) text = { 0 };
	struct ts_gzip *gzip;
	struct ts_error err;

	signal(SIGPIPE, SIG_IGN);
	make_lines(&text);
	start(&gzip, fd, &input);
	for (int i = 0; i < 100; i++)
		if (ts_write_all(input, text.data, text.length, NULL))
			break;
	TS_CHECK_INT(ts_gzip_finish(gzip, &err), TS_ENOSPC);
	close(fd);
}
