/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a spool (docs/live.md, section 2.5), from outside. Never trusts it. */
#ifndef TS_LIVE_SPOOL_FILE_H
#define TS_LIVE_SPOOL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "live/local/live_spool.h"

struct ts_live_control;

/* The name of an area's spool, or of a lane of it (from 1 on). */
#define TS_SPOOL_NAME_BYTES (80 + TS_SPOOL_LANE_NAME_BYTES)
void ts_spool_file_name(char name[TS_SPOOL_NAME_BYTES], const char *area_name, unsigned int lane);

/* Removes the spool of an area, with its lanes. */
void ts_spool_file_remove(int directory_fd, const char *area_name);

/* True if it has parts that no recording has committed. */
bool ts_spool_file_is_wanted(int directory_fd, const char *area_name);

/* Opens the spool of an area; -1: there is none, or it is not what the owner may have there. */
int ts_spool_file_open(int directory_fd, uid_t owner, const struct ts_live_control *area,
		       bool writable, struct ts_live_spool *ret_header);

/* A lane of it; -1: the same. */
int ts_spool_file_open_lane(int directory_fd, uid_t owner, const struct ts_live_control *area,
			    bool writable, unsigned int lane);

/*
 * Gives the memory of data in [from, to) back, but for the first `kept` bytes of the data. True: it
 * may have given some.
 */
bool ts_spool_file_punch(int fd, uint64_t data_bytes, uint64_t kept, uint64_t from, uint64_t to);

/*
 * Reads from a position in data of data_bytes, which is in the file `data_fd`: that of the spool
 * `fd`, or a lane. TS_ENOTFOUND: the bytes are gone.
 */
int ts_spool_file_read(int fd, int data_fd, uint64_t data_bytes, uint64_t position, void *buffer,
		       size_t bytes);

/* Stores a word of the header; a failure shows when its program waits in vain. */
void ts_spool_file_set_word(int fd, size_t offset, uint64_t value);

#endif
