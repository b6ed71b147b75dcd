/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes bulk data of the command stream to a file beside the area, instead of the ring. Space is
 * allocated before it is touched; without any, blobs pass through the ring as before. No descriptor
 * stays open.
 */
#include "agent/replay_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "live/local/live_layout.h"
#include "live/local/live_spool.h"

#define DEFAULT_BYTES (UINT64_C(256) << 20)
#define STEP_BYTES (UINT64_C(4) << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

uint64_t agent_spool_bytes = DEFAULT_BYTES;

/* ---- the file ---- */

static bool spool_path(const struct core *core, char *path, size_t bytes)
{
	return (size_t)snprintf(path, bytes, "%s" TS_SPOOL_ENDING, core->path) < bytes;
}

/* A number in a file, after `key`; UINT64_MAX: there is none, as in "max". */
static uint64_t number_in(const char *path, const char *key)
{
	char text[2048];
	const char *at;

	text[agent_read_file(path, text, sizeof(text) - 1)] = 0;
	at = strstr(text, key);
	if (!at)
		return UINT64_MAX;
	at += strlen(key);
	while (*at == ' ')
		at++;
	return *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : UINT64_MAX;
}

/* Version 2 of cgroups, then version 1. */
static const struct hierarchy {
	const char *mark, *root, *most, *used; /* mark: in /proc/self/cgroup, before the path */
} hierarchies[] = {
	{ "0::", "/sys/fs/cgroup", "memory.max", "memory.current" },
	{ ":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes" },
};

static uint64_t number_of_group(const struct hierarchy *hierarchy, const char *group,
				const char *file, const char *key)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s%s/%s", hierarchy->root, group, file);
	return number_in(path, key);
}

/* Memory that a group may still use: shared memory counts, a cache of files does not. */
static uint64_t memory_of_group(const struct hierarchy *hierarchy, const char *group)
{
	uint64_t most = number_of_group(hierarchy, group, hierarchy->most, "");
	uint64_t used = number_of_group(hierarchy, group, hierarchy->used, "");
	uint64_t cache = number_of_group(hierarchy, group, "memory.stat", "\ninactive_file ");

	if (most == UINT64_MAX || used == UINT64_MAX)
		return UINT64_MAX;
	if (cache != UINT64_MAX)
		used -= cache < used ? cache : used;
	return used < most ? most - used : 0;
}

/* The least of the process's group and those that it is in, up to the root that it sees. */
static uint64_t least_memory(const struct hierarchy *hierarchy)
{
	static char text[8192]; /* many lines with long paths; under the core's lock */
	uint64_t least = UINT64_MAX;
	char *group, *end;

	text[agent_read_file("/proc/self/cgroup", text, sizeof(text) - 1)] = 0;
	group = strstr(text, hierarchy->mark);
	if (!group)
		return UINT64_MAX;
	group += strlen(hierarchy->mark);
	group[strcspn(group, "\n")] = 0;
	for (;;) {
		uint64_t left = memory_of_group(hierarchy, group);

		least = left < least ? left : least;
		end = strrchr(group, '/');
		if (!end)
			return least;
		*end = 0;
	}
}

static uint64_t group_memory(void)
{
	uint64_t first = least_memory(&hierarchies[0]), second = least_memory(&hierarchies[1]);

	return first < second ? first : second;
}

/* An eighth of what is free: in the file system, on the machine, for the group of processes. */
static uint64_t free_share(int fd)
{
	uint64_t least = number_in("/proc/meminfo", "MemAvailable:"), group = group_memory();
	struct statvfs status;

	if (least != UINT64_MAX)
		least *= 1024;
	if (group < least)
		least = group;
	if (!fstatvfs(fd, &status) && status.f_blocks &&
	    least > (uint64_t)status.f_bavail * status.f_frsize)
		least = (uint64_t)status.f_bavail * status.f_frsize;
	return least / TS_LIVE_BUDGET_SHARE;
}

/* A power of two, 0: there is not enough space. */
static uint64_t choose_bytes(const struct core *core, int fd)
{
	uint64_t most = free_share(fd), bytes = TS_SPOOL_LEAST;

	if (most > agent_spool_bytes)
		most = agent_spool_bytes;
	if (core->settings.budget && most > core->settings.budget / 2)
		most = core->settings.budget / 2;
	if (most > TS_SPOOL_GREATEST)
		most = TS_SPOOL_GREATEST;
	while (bytes * 2 <= most)
		bytes *= 2;
	while (bytes >= TS_SPOOL_LEAST && !agent_within_file_limit(TS_SPOOL_HEADER_BYTES + bytes))
		bytes /= 2;
	return bytes <= most && bytes >= TS_SPOOL_LEAST ? bytes : 0;
}

static bool allocate(int fd, uint64_t offset, uint64_t bytes)
{
	while (fallocate(fd, 0, (off_t)offset, (off_t)bytes))
		if (errno != EINTR)
			return false;
	return true;
}

/* A child shares nothing of it, and it is not part of core dumps. */
static bool map(struct spool *spool, int fd, uint64_t bytes)
{
	size_t all = TS_SPOOL_HEADER_BYTES + bytes;
	char *mapped;

	if (!allocate(fd, 0, TS_SPOOL_HEADER_BYTES) || ftruncate(fd, (off_t)all))
		return false;
	mapped = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (mapped == MAP_FAILED)
		return false;
	if (madvise(mapped, all, MADV_DONTFORK)) {
		munmap(mapped, all);
		return false;
	}
	madvise(mapped, all, MADV_DONTDUMP);
	spool->header = (struct ts_live_spool *)(void *)mapped;
	spool->data = mapped + TS_SPOOL_HEADER_BYTES;
	spool->bytes = bytes;
	return true;
}

static void describe(const struct core *core, struct ts_live_spool *header, uint64_t bytes)
{
	memcpy(header->magic, TS_SPOOL_MAGIC, sizeof(header->magic));
	header->version = TS_SPOOL_VERSION;
	header->header_bytes = TS_SPOOL_HEADER_BYTES;
	header->area_id = core->control->area_id;
	header->bytes = bytes;
}

/* False if the area has been removed: nobody would look for its spool. */
static bool area_exists(const struct core *core)
{
	struct stat status;

	return !stat(core->path, &status) && status.st_ino == core->inode &&
	       status.st_dev == core->device;
}

static bool create(struct core *core)
{
	struct spool *spool = &core->channel.spool;
	char *path = core->scratch;
	struct stat status;
	uint64_t bytes;
	bool is_made;
	int fd;

	if (!area_exists(core) || !spool_path(core, path, sizeof(core->scratch)))
		return false;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	bytes = choose_bytes(core, fd);
	is_made = bytes && !fstat(fd, &status) && map(spool, fd, bytes);
	close(fd);
	if (!is_made) {
		unlink(path);
		return false;
	}
	spool->device = status.st_dev;
	spool->inode = status.st_ino;
	describe(core, spool->header, bytes);
	return true;
}

bool spool_open(struct core *core)
{
	struct spool *spool = &core->channel.spool;

	if (!spool->header && !spool->is_off) {
		agent_lock(core); /* for the scratch space */
		spool->is_off = !create(core);
		agent_unlock(core);
	}
	return !spool->is_off;
}

/* Allocates data of [at, end), and perhaps a bit more. What bulk has skipped is not allocated. */
static bool extend(struct core *core, uint64_t at, uint64_t end)
{
	struct spool *spool = &core->channel.spool;
	bool continues = at >= spool->from && at <= spool->to;
	uint64_t from = continues ? spool->to : at & ~(STEP_BYTES - 1);
	uint64_t to = ts_spool_round_up(end, STEP_BYTES);
	struct stat status;
	char path[sizeof(core->path) + sizeof(TS_SPOOL_ENDING)];
	bool is_done;
	int fd;

	if (!spool_path(core, path, sizeof(path)))
		return false;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	is_done = !fstat(fd, &status) && status.st_ino == spool->inode &&
		  status.st_dev == spool->device &&
		  agent_within_file_limit(TS_SPOOL_HEADER_BYTES + to) &&
		  allocate(fd, TS_SPOOL_HEADER_BYTES + from, to - from);
	close(fd);
	if (!is_done)
		return false;
	if (!continues)
		spool->from = from;
	spool->to = to;
	/* In one call instead of a fault for each page. An older kernel cannot do that. */
	madvise(spool->data + from, to - from, MADV_POPULATE_WRITE);
	return true;
}

/* ---- positions ---- */

static uint64_t oldest(struct spool *spool)
{
	uint64_t consumed = __atomic_load_n(&spool->header->consumed, __ATOMIC_ACQUIRE);

	if (consumed > spool->consumed && consumed <= spool->head)
		spool->consumed = consumed;
	return spool->consumed;
}

uint64_t spool_progress(const struct spool *spool)
{
	return __atomic_load_n(&spool->header->consumed, __ATOMIC_RELAXED) +
	       __atomic_load_n(&spool->header->decoded, __ATOMIC_RELAXED);
}

/* Where a part begins that does not cross the end of the data. */
static uint64_t start_of(const struct spool *spool, uint64_t bytes)
{
	uint64_t start = ts_spool_round_up(spool->head, TS_SPOOL_ALIGNMENT);

	return (start & (spool->bytes - 1)) + bytes > spool->bytes
		       ? ts_spool_round_up(start, spool->bytes)
		       : start;
}

bool spool_has_space(struct spool *spool, uint64_t bytes)
{
	uint64_t from = oldest(spool);

	return from == spool->head || start_of(spool, bytes) + bytes <= from + spool->bytes;
}

/* If nothing is in use, start over: what is allocated already comes first. */
static void start_over(struct spool *spool)
{
	if (oldest(spool) == spool->head)
		spool->consumed = spool->head = ts_spool_round_up(spool->head, spool->bytes);
}

/* The recorder has given memory back: what may be gone is allocated again. */
static void forget_returned(struct spool *spool)
{
	/* Read after `consumed`, before which it was stored. */
	uint64_t returned = __atomic_load_n(&spool->header->returned, __ATOMIC_ACQUIRE);

	if (returned == spool->returned)
		return;
	spool->returned = returned;
	if (spool->to > TS_SPOOL_KEPT)
		spool->to = TS_SPOOL_KEPT;
	if (spool->from > spool->to)
		spool->from = spool->to = 0;
}

char *spool_place(struct core *core, uint64_t bytes, uint64_t *ret_position)
{
	struct spool *spool = &core->channel.spool;
	uint64_t at;

	start_over(spool);
	forget_returned(spool);
	*ret_position = start_of(spool, bytes);
	at = *ret_position & (spool->bytes - 1);
	if (at >= spool->from && at + bytes <= spool->to)
		return spool->data + at;
	/* To find out again that memory is full takes the kernel long: not for each small part. */
	if (spool->is_full && spool->full_at == spool->consumed)
		return NULL;
	spool->is_full = !extend(core, at, at + bytes);
	spool->full_at = spool->consumed;
	return spool->is_full ? NULL : spool->data + at;
}

void spool_advance(struct spool *spool, uint64_t position, uint64_t bytes)
{
	spool->head = position + bytes;
	__atomic_store_n(&spool->header->head, spool->head, __ATOMIC_RELEASE);
}

void spool_referred(struct spool *spool)
{
	spool_referred_to(spool, spool->head);
}

void spool_referred_to(struct spool *spool, uint64_t position)
{
	__atomic_store_n(&spool->header->referred, position, __ATOMIC_RELEASE);
}

/* ---- bulk ---- */

/* The kernel lets one thread at a time extend a file, so that there are several. */
static bool lane_path(const struct core *core, unsigned int lane, char *path, size_t bytes)
{
	return (size_t)snprintf(path, bytes, "%s" TS_SPOOL_LANE_NAME, core->path, lane) < bytes;
}

#define LANE_PATH_BYTES (sizeof(((struct core *)0)->path) + TS_SPOOL_LANE_NAME_BYTES)

static bool make_lane(const struct core *core, unsigned int lane)
{
	char path[LANE_PATH_BYTES];
	int fd = -1;

	if (lane_path(core, lane, path, sizeof(path)))
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool make_lanes(const struct core *core)
{
	char path[LANE_PATH_BYTES];
	unsigned int lane = 1;

	if (!area_exists(core))
		return false;
	while (lane <= TS_SPOOL_LANES && make_lane(core, lane))
		lane++;
	if (lane > TS_SPOOL_LANES)
		return true;
	while (--lane)
		if (lane_path(core, lane, path, sizeof(path)))
			unlink(path);
	return false;
}

bool spool_has_lanes(struct core *core)
{
	struct spool *spool = &core->channel.spool;

	if (!spool->has_lanes && !spool->has_no_lanes) {
		spool->has_lanes = make_lanes(core);
		spool->has_no_lanes = !spool->has_lanes;
	}
	return spool->has_lanes;
}

bool spool_reserve(struct core *core, uint64_t bytes, uint64_t *ret_word)
{
	struct spool *spool = &core->channel.spool;
	uint64_t position;

	if (!spool_has_space(spool, bytes))
		return false;
	start_over(spool);
	position = start_of(spool, bytes);
	spool_advance(spool, position, bytes);
	spool->lane = spool->lane % TS_SPOOL_LANES + 1;
	*ret_word = position | (uint64_t)spool->lane << TS_SPOOL_LANE_SHIFT;
	return true;
}

static int open_lane(const struct core *core, uint64_t word)
{
	char path[LANE_PATH_BYTES];

	return lane_path(core, ts_spool_lane(word), path, sizeof(path))
		       ? open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
		       : -1;
}

static uint64_t offset_in_file(const struct core *core, uint64_t word)
{
	return TS_SPOOL_HEADER_BYTES + (ts_spool_position(word) & (core->channel.spool.bytes - 1));
}

/* Fresh pages are neither cleared nor mapped: that takes longer than to copy the bytes. */
bool spool_write(const struct core *core, uint64_t word, uint64_t offset, const void *data,
		 uint64_t bytes)
{
	uint64_t at = offset_in_file(core, word) + offset, done = 0;
	int fd = agent_within_file_limit(at + bytes) ? open_lane(core, word) : -1;

	if (fd < 0)
		return false;
	while (done < bytes) {
		ssize_t written =
			pwrite(fd, (const char *)data + done, bytes - done, (off_t)(at + done));

		if (written > 0)
			done += (uint64_t)written;
		else if (!written || errno != EINTR)
			break;
	}
	close(fd);
	return done == bytes;
}

void spool_discard(const struct core *core, uint64_t word, uint64_t bytes)
{
	int fd = open_lane(core, word);

	if (fd < 0)
		return;
	while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 (off_t)offset_in_file(core, word), (off_t)bytes) &&
	       errno == EINTR)
		;
	close(fd);
}

void spool_retreat(struct spool *spool, uint64_t position)
{
	/* It had started over. */
	if (spool->consumed > position)
		spool->consumed = position;
	spool_advance(spool, position, 0);
}
