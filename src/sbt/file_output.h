/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file under a writer: appends, truncates to the last complete chunk when a write fails, and
 * removes an index that is to be replaced.
 */
#ifndef TS_SBT_FILE_OUTPUT_H
#define TS_SBT_FILE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

struct sbt_output {
	int fd;
	uint64_t bytes; /* header and complete chunks; not a saved index. Atomic */
	char *path;
	bool locked; /* the caller holds the lock: do not take it */
	bool sync;   /* sbt_output_sync() does something */
	ssize_t (*write)(void *context, int fd, const void *data, size_t bytes);
	void *write_context;
};

/* Creates or empties the file, and locks it while it is open. */
int sbt_output_open(struct sbt_output *output, const char *path, struct ts_error *err);

/* Opens an existing file to append after byte `bytes`; truncates it there. */
int sbt_output_resume(struct sbt_output *output, const char *path, uint64_t bytes,
		      struct ts_error *err);

/* Truncates the file to `bytes`, which removes what was appended but not counted. */
int sbt_output_cut(struct sbt_output *output, struct ts_error *err);

/* fdatasync(), if `sync` is set. */
int sbt_output_sync(struct sbt_output *output, struct ts_error *err);

/* Append everything or nothing. */
int sbt_output_append(struct sbt_output *output, const void *data, size_t bytes,
		      struct ts_error *err);
int sbt_output_append_two(struct sbt_output *output, const void *data, size_t bytes,
			  const void *more, size_t more_bytes, struct ts_error *err);

/*
 * Reports errors that only close() returns (a full quota, say). Releases everything; may be called
 * twice.
 */
int sbt_output_close(struct sbt_output *output, struct ts_error *err);

/* The 64-byte file header. `trace_id` NULL: draws a new one. */
struct sbt_file_header;
void sbt_file_header_init(struct sbt_file_header *header, const uint8_t *trace_id);

#endif
