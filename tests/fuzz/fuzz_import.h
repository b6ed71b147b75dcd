/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the fuzz targets of importers. Any bytes as a file of one importer: imported into a trace
 * whose bytes are discarded. Then once more into the same trace, in pieces whose size depends on
 * that of the input, so that values are split anywhere.
 */
#ifndef TS_FUZZ_IMPORT_H
#define TS_FUZZ_IMPORT_H

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <tracesmith/writer.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ssize_t fuzz_discard(void *context, int fd, const void *data, size_t bytes)
{
	return (ssize_t)bytes;
}

/* `format`: the importer; NULL: by content. */
static int fuzz_import(const uint8_t *data, size_t size, const char *format)
{
	static char path[] = "/tmp/tracesmith-fuzz-XXXXXX";
	static int created_fd = -1;
	struct ts_writer_options options = { .size = sizeof(options),
					     .threads = -1,
					     .level = 1,
					     .string_memory = 1 << 16,
					     .write = fuzz_discard };
	struct ts_import_options import = { .size = sizeof(import), .format = format };
	struct ts_import_result result;
	struct ts_writer *writer;
	struct ts_error err;

	/* The writer creates its file each time; it stays empty. */
	if (created_fd < 0) {
		created_fd = mkstemp(path);
		if (created_fd < 0)
			abort();
		close(created_fd);
	}
	if (ts_writer_open(&writer, path, &options, &err))
		abort();
	for (int i = 0; i < 2; i++) {
		int rc = ts_import_memory(writer, "fuzz", data, size, i ? 1 + size % 61 : 0,
					  i ? 16 : 0, &import, &result, &err);

		/* No input can make the writer fail, and every error has a message. */
		if (rc && (err.code != rc || err.message[0] == '\0' || rc == TS_EINVAL))
			abort();
		if (ts_writer_status(writer, NULL))
			abort();
	}
	if (ts_writer_finish(writer, &err))
		abort();
	ts_writer_close(writer);
	unlink(path);
	return 0;
}

#endif
