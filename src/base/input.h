/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte stream from a file or standard input, decompressed on the fly. The content decides, never
 * the name: gzip (several members), zstd (several frames), or plain bytes. One thread at a time.
 */
#ifndef TS_BASE_INPUT_H
#define TS_BASE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/io.h"
#include "base/memory.h"

struct ts_input;

/*
 * Opens a path; "-" is standard input (which is not closed later). Fails for a directory, a missing
 * file, an empty pipe that nothing writes to, and a compression that this build cannot read
 * (TS_ECAP). An empty file is a valid, empty stream. Messages start with "input 'PATH': ".
 */
int ts_input_open(struct ts_input **ret_input, const char *path, struct ts_error *err);

/*
 * Reads up to `bytes` decompressed bytes; *ret_bytes is 0 only at the end. Compressed data that is
 * damaged, truncated or followed by garbage is TS_EFORMAT with its byte offset in the file. After a
 * failure every further read fails the same way.
 */
int ts_input_read(struct ts_input *input, void *buffer, size_t bytes, size_t *ret_bytes,
		  struct ts_error *err);

/* Accepts NULL. */
void ts_input_close(struct ts_input *input);
TS_DEFINE_AUTO(ts_input, ts_input_close);

/* Bytes of the file consumed so far, as stored (compressed): for progress. */
uint64_t ts_input_position(const struct ts_input *input);

/* Size of the file as stored, or -1 if it has none (a pipe). */
int64_t ts_input_size(const struct ts_input *input);

/* Whether the file is uncompressed and seekable, so that others can read it at any offset. */
bool ts_input_is_plain_file(const struct ts_input *input);

/* "plain", "gzip" or "zstd". */
const char *ts_input_encoding(const struct ts_input *input);

#endif
