/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a spool. A part is copied before anybody looks at it, and then checked against
 * `consumed`.
 */
#include "live/spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live/area_internal.h"

void ts_spool_file_name(char name[TS_SPOOL_NAME_BYTES], const char *area_name, unsigned int lane)
{
	if (lane)
		snprintf(name, TS_SPOOL_NAME_BYTES, "%.64s" TS_SPOOL_LANE_NAME, area_name, lane);
	else
		snprintf(name, TS_SPOOL_NAME_BYTES, "%.64s%s", area_name, TS_SPOOL_ENDING);
}

/* Lanes first: there are none without a spool. */
void ts_spool_file_remove(int directory_fd, const char *area_name)
{
	char name[TS_SPOOL_NAME_BYTES];

	ts_spool_file_name(name, area_name, 0);
	if (faccessat(directory_fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
		return;
	for (unsigned int lane = TS_SPOOL_LANES + 1; lane-- > 0;) {
		ts_spool_file_name(name, area_name, lane);
		unlinkat(directory_fd, name, 0);
	}
}

static bool read_header(int fd, struct ts_live_spool *header)
{
	return live_read(fd, header, sizeof(*header), 0) == (ssize_t)sizeof(*header) &&
	       memcmp(header->magic, TS_SPOOL_MAGIC, sizeof(header->magic)) == 0 &&
	       header->version == TS_SPOOL_VERSION &&
	       header->header_bytes == TS_SPOOL_HEADER_BYTES && header->bytes >= TS_SPOOL_LEAST &&
	       header->bytes <= TS_SPOOL_GREATEST && !(header->bytes & (header->bytes - 1));
}

bool ts_spool_file_is_wanted(int directory_fd, const char *area_name)
{
	struct ts_live_spool header;
	char name[TS_SPOOL_NAME_BYTES];
	bool is_wanted;
	int fd;

	ts_spool_file_name(name, area_name, 0);
	fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	is_wanted = read_header(fd, &header) && header.head > header.consumed;
	close(fd);
	return is_wanted;
}

/* -1: there is none, or it is not what the owner may have there. */
static int open_file(int directory_fd, uid_t owner, const struct ts_live_control *area,
		     bool writable, unsigned int lane)
{
	int flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	char area_name[TS_SPOOL_NAME_BYTES], name[TS_SPOOL_NAME_BYTES];
	struct stat status;
	int fd;

	snprintf(area_name, sizeof(area_name), "%" PRIu32 "-%" PRIu64 "-%016" PRIx64, area->pid,
		 area->start_time, area->area_id);
	ts_spool_file_name(name, area_name, lane);
	fd = openat(directory_fd, name, flags);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
	    status.st_uid == owner)
		return fd;
	close(fd);
	return -1;
}

int ts_spool_file_open(int directory_fd, uid_t owner, const struct ts_live_control *area,
		       bool writable, struct ts_live_spool *ret_header)
{
	int fd = open_file(directory_fd, owner, area, writable, 0);

	if (fd < 0)
		return -1;
	if (read_header(fd, ret_header) && ret_header->area_id == area->area_id)
		return fd;
	close(fd);
	return -1;
}

int ts_spool_file_open_lane(int directory_fd, uid_t owner, const struct ts_live_control *area,
			    bool writable, unsigned int lane)
{
	return lane && lane <= TS_SPOOL_LANES ? open_file(directory_fd, owner, area, writable, lane)
					      : -1;
}

static bool punch(int fd, uint64_t kept, uint64_t at, uint64_t end)
{
	int rc;

	at = TS_MAX(at, kept);
	if (at >= end)
		return false;
	do {
		rc = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			       (off_t)(TS_SPOOL_HEADER_BYTES + at), (off_t)(end - at));
	} while (rc && errno == EINTR);
	return rc == 0;
}

/* A failure leaves it as it is. */
bool ts_spool_file_punch(int fd, uint64_t data_bytes, uint64_t kept, uint64_t from, uint64_t to)
{
	uint64_t at = from & (data_bytes - 1), bytes = TS_MIN(to - from, data_bytes);
	uint64_t before_end = TS_MIN(bytes, data_bytes - at);
	bool is_punched = punch(fd, kept, at, at + before_end);

	return punch(fd, kept, 0, bytes - before_end) || is_punched;
}

int ts_spool_file_read(int fd, int data_fd, uint64_t data_bytes, uint64_t position, void *buffer,
		       size_t bytes)
{
	uint64_t at = TS_SPOOL_HEADER_BYTES + (position & (data_bytes - 1)), consumed;

	if (live_read(data_fd, buffer, bytes, at) != (ssize_t)bytes)
		return TS_ENOTFOUND;
	/* What was released before it was copied may have been overwritten. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (live_read(fd, &consumed, sizeof(consumed), offsetof(struct ts_live_spool, consumed)) !=
	    (ssize_t)sizeof(consumed))
		return TS_ENOTFOUND;
	return consumed > position ? TS_ENOTFOUND : TS_OK;
}

void ts_spool_file_set_word(int fd, size_t offset, uint64_t value)
{
	ssize_t done;

	/* The program may overwrite what it releases: everything was read before. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	do {
		done = pwrite(fd, &value, sizeof(value), (off_t)offset);
	} while (done < 0 && errno == EINTR);
}
