/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mappings of a process (/proc/PID/maps), and the mapped files as the process sees them:
 * through /proc/PID/map_files, so that chroots, containers and deleted files work; by path if that
 * is not permitted.
 */
#ifndef TS_CODE_MAPS_H
#define TS_CODE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/memory.h"

struct ts_map_range {
	uint64_t start, end, file_offset;
	uint64_t device, inode;
	const char *path; /* as the kernel writes it, without " (deleted)"; "": none */
	bool is_readable, is_writable, is_executable, is_deleted;
};

struct ts_maps {
	struct ts_map_range *ranges; /* by address */
	size_t count, capacity;
	char *texts;
	size_t text_bytes;
};

/* TS_ENOTFOUND: the process is gone. TS_ECAP: access denied; the message says what is missing. */
int ts_maps_read(struct ts_maps *ret_maps, pid_t pid, struct ts_error *err);
/* The same from a text. */
int ts_maps_parse(struct ts_maps *ret_maps, const char *text, size_t bytes, struct ts_error *err);
void ts_maps_release(struct ts_maps *maps);
const struct ts_map_range *ts_maps_find(const struct ts_maps *maps, uint64_t address);

/* Opens the mapped file for reading: a descriptor or a negative errno. */
int ts_maps_open_file(pid_t pid, const struct ts_map_range *range);

#endif
