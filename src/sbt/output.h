/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file under a writer: appends only, and cuts back to the last whole chunk when a write fails.
 * Knows nothing of what a chunk holds.
 */
#ifndef TS_SBT_OUTPUT_H
#define TS_SBT_OUTPUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

struct sbt_output {
	int fd;
	uint64_t bytes; /* all whole chunks and the header */
	char *path;
	ssize_t (*write)(void *context, int fd, const void *data, size_t bytes);
	void *write_context;
};

/* Creates or empties the file, and locks it for as long as it is open. */
int sbt_output_open(struct sbt_output *output, const char *path, struct ts_error *err);

/* Appends all of it, or nothing. */
int sbt_output_append(struct sbt_output *output, const void *data, size_t bytes,
		      struct ts_error *err);

/* Reports what only close tells (a full quota, say). Releases everything; twice is fine. */
int sbt_output_close(struct sbt_output *output, struct ts_error *err);

/* The 64 bytes that open a file, with a new trace id. */
struct sbt_file_header;
void sbt_file_header_init(struct sbt_file_header *header);

#endif
