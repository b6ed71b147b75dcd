/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file under a writer: appends, cuts back to the last whole chunk when a write fails, and cuts
 * an index off that is to be replaced.
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
	uint64_t bytes; /* all whole chunks and the header; not a saved index */
	char *path;
	bool locked; /* the caller holds the lock: none is taken */
	bool sync;   /* sbt_output_sync() does something */
	ssize_t (*write)(void *context, int fd, const void *data, size_t bytes);
	void *write_context;
};

/* Creates or empties the file, and locks it for as long as it is open. */
int sbt_output_open(struct sbt_output *output, const char *path, struct ts_error *err);

/* Opens an existing file to append behind byte `bytes`; what lies beyond is cut off. */
int sbt_output_resume(struct sbt_output *output, const char *path, uint64_t bytes,
		      struct ts_error *err);

/* Cuts the file to `bytes` again, that is, takes off what was appended but not counted there. */
int sbt_output_cut(struct sbt_output *output, struct ts_error *err);

/* Waits until the disk has it, where `sync` is set. */
int sbt_output_sync(struct sbt_output *output, struct ts_error *err);

/* Appends all of it, or nothing. */
int sbt_output_append(struct sbt_output *output, const void *data, size_t bytes,
		      struct ts_error *err);

/* Reports what only close tells (a full quota, say). Releases everything; twice is fine. */
int sbt_output_close(struct sbt_output *output, struct ts_error *err);

/* The 64 bytes that open a file. `trace_id` NULL: a new one is drawn. */
struct sbt_file_header;
void sbt_file_header_init(struct sbt_file_header *header, const uint8_t *trace_id);

#endif
