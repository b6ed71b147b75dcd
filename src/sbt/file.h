/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace file open for reading: its bytes by pread(2) (not mapped, since a file may shrink), its
 * checked headers, and the list of its chunks, from the index or by a scan.
 */
#ifndef TS_SBT_FILE_H
#define TS_SBT_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/reader.h>

#include "base/memory.h"
#include "base/text.h"
#include "sbt/sbt_layout.h"

struct sbt_file {
	int fd;
	int base_fd; /* has the bytes below base_bytes */
	uint64_t base_bytes;
	char *path;
	uint64_t bytes; /* size when opened; never read beyond */
	_Atomic uint64_t bytes_read;
	struct sbt_file_header header;
};

/* Opens the file and fixes its size. Does not read it: see sbt_file_check(). */
int sbt_file_open(struct sbt_file *file, const char *path, struct ts_error *err);
void sbt_file_close(struct sbt_file *file);

/* A trace whose first bytes are those of another file, which somebody may be appending to. */
struct sbt_continued {
	const char *path; /* for messages */
	int base_fd;      /* the first base_bytes bytes */
	uint64_t base_bytes;
	int fd; /* all others, at their own offsets: what precedes them is a hole */
};

/* The same for such a trace. Duplicates the descriptors. */
int sbt_file_open_continued(struct sbt_file *file, const struct sbt_continued *continued,
			    struct ts_error *err);

/*
 * Reads and checks the file header. TS_EFORMAT: not a trace, or truncated inside it; TS_EVERSION.
 */
int sbt_file_check(struct sbt_file *file, struct ts_error *err);

/* Exactly `bytes` bytes from `offset` on. */
int sbt_file_read(struct sbt_file *file, uint64_t offset, void *buffer, size_t bytes,
		  struct ts_error *err);

/* A chunk as stored: times in the chunk's own clock. */
struct sbt_chunk {
	uint64_t offset;
	struct sbt_chunk_header header;
};

/*
 * Checks a chunk header by itself: magic, checksum, sizes against each other, limits and the end of
 * the file. NULL if it is valid, else the reason.
 */
const char *sbt_chunk_header_fault(const struct sbt_chunk_header *header, uint64_t offset,
				   uint64_t file_bytes);

/* The same for the directory that follows a valid header. */
const char *sbt_directory_fault(const struct sbt_chunk_header *header,
				const struct sbt_column *directory);

/*
 * Reads the directory of a chunk and checks it. `directory` gets header->columns entries. Failures
 * other than of reading are TS_EFORMAT with *ret_why set.
 */
int sbt_directory_read(struct sbt_file *file, const struct sbt_chunk *chunk,
		       struct sbt_column *directory, const char **ret_why, struct ts_error *err);

/* 0 if all payloads of the chunk match their checksums, else TS_EFORMAT. */
int sbt_chunk_check_payloads(struct sbt_file *file, const struct sbt_chunk *chunk,
			     struct ts_error *err);

/* A range of the file without a valid chunk. */
struct sbt_gap {
	uint64_t offset, bytes;
	const char *why;
};

/* Chunks in file order. A zeroed struct is empty. */
struct sbt_chunk_list {
	struct sbt_chunk *chunks;
	size_t count, capacity;
	struct sbt_gap *gaps;
	size_t gap_count, gap_capacity;
};

void sbt_chunk_list_release(struct sbt_chunk_list *list);

/*
 * Walks the file from chunk to chunk, starting at byte `from`; searches for the next one where
 * there is none. `progress` may be NULL.
 */
int sbt_scan(struct sbt_file *file, uint64_t from, struct sbt_chunk_list *list,
	     int (*progress)(void *context, uint64_t done, uint64_t total), void *context,
	     struct ts_error *err);

/* The trailer at the end of the file: TS_OK, or TS_ENOTFOUND if there is none. */
int sbt_trailer_read(struct sbt_file *file, struct sbt_trailer *ret_trailer);

#endif
