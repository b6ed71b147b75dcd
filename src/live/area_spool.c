/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knows of each spool what the journal refers to, what is decoded and what is committed, and
 * releases that (docs/live.md, section 4.5).
 */
#include "live/area_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "live/journal.h"
#include "live/local/live_layout.h"
#include "live/spool_file.h"

/* Uncommitted bytes of dead processes that cause a checkpoint. */
#define ENDED_BYTES (UINT64_C(64) << 20)
/* Assumed size of a spool that is not open yet. */
#define TYPICAL_BYTES (UINT64_C(256) << 20)

struct directory {
	int fd;
	dev_t device;
	ino_t inode;
	uid_t owner;
};

struct spool {
	uint64_t area;
	int fd;                    /* -1: not open */
	int lanes[TS_SPOOL_LANES]; /* the same; lane 1 is the first */
	bool is_missing;           /* it cannot be opened */
	bool has_ended;            /* no parts follow */
	uint64_t bytes;            /* of its data */
	uint64_t end;              /* everything below is decoded */
	uint64_t committed;
	uint64_t floor;  /* what is below and not in the journal belongs to another recording */
	bool takes_over; /* `end` was raised to it by the last commit */
	bool is_due;     /* a tick found it idle */
	bool is_idle;    /* nothing was decoded since the last tick */
	uint64_t referred_bytes, decoded_bytes; /* of parts since the last checkpoint */
	uint64_t decoded_from; /* where the first of these begins; UINT64_MAX: there is none */
};

struct ts_spools {
	pthread_mutex_t lock;
	bool is_writable;
	struct directory *directories;
	size_t directory_count, directory_capacity;
	struct spool *spools;
	size_t count, capacity;
};

int ts_spools_new(struct ts_spools **ret_spools, bool writable, struct ts_error *err)
{
	struct ts_spools *spools = calloc(1, sizeof(*spools));

	if (!spools)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	pthread_mutex_init(&spools->lock, NULL);
	spools->is_writable = writable;
	*ret_spools = spools;
	return TS_OK;
}

static void close_spool(struct spool *spool)
{
	if (spool->fd >= 0)
		close(spool->fd);
	spool->fd = -1;
	for (unsigned int lane = 0; lane < TS_SPOOL_LANES; lane++) {
		if (spool->lanes[lane] >= 0)
			close(spool->lanes[lane]);
		spool->lanes[lane] = -1;
	}
}

void ts_spools_free(struct ts_spools *spools)
{
	if (!spools)
		return;
	for (size_t i = 0; i < spools->directory_count; i++)
		close(spools->directories[i].fd);
	for (size_t i = 0; i < spools->count; i++)
		close_spool(&spools->spools[i]);
	free(spools->directories);
	free(spools->spools);
	pthread_mutex_destroy(&spools->lock);
	free(spools);
}

/* Lock held. */
static int add_directory(struct ts_spools *spools, const struct directory *added)
{
	for (size_t i = 0; i < spools->directory_count; i++)
		if (spools->directories[i].device == added->device &&
		    spools->directories[i].inode == added->inode)
			return TS_ENOTFOUND;
	if (ts_grow_array((void **)&spools->directories, &spools->directory_capacity,
			  spools->directory_count + 1, sizeof(*spools->directories)))
		return TS_ENOMEM;
	spools->directories[spools->directory_count++] = *added;
	for (size_t i = 0; i < spools->count; i++)
		spools->spools[i].is_missing = false;
	return TS_OK;
}

int ts_spools_add_directory(struct ts_spools *spools, int directory_fd, struct ts_error *err)
{
	struct directory added = { .fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 0) };
	struct stat status;
	int result;

	if (added.fd < 0 || fstat(added.fd, &status)) {
		result = ts_error_errno(err, errno, "cannot open a live directory");
		if (added.fd >= 0)
			close(added.fd);
		return result;
	}
	added.device = status.st_dev;
	added.inode = status.st_ino;
	added.owner = status.st_uid;
	pthread_mutex_lock(&spools->lock);
	result = add_directory(spools, &added);
	pthread_mutex_unlock(&spools->lock);
	if (result)
		close(added.fd);
	return result == TS_ENOMEM ? ts_error_set(err, TS_ENOMEM, "no memory") : TS_OK;
}

/* ---- one spool ---- */

/* The spool of an area, perhaps not open; NULL: no memory. Lock held. */
static struct spool *get_spool(struct ts_spools *spools, uint64_t area)
{
	struct spool *spool;

	for (size_t i = 0; i < spools->count; i++)
		if (spools->spools[i].area == area)
			return &spools->spools[i];
	if (ts_grow_array((void **)&spools->spools, &spools->capacity, spools->count + 1,
			  sizeof(*spools->spools)))
		return NULL;
	spool = &spools->spools[spools->count++];
	*spool = (struct spool){ .area = area, .fd = -1, .decoded_from = UINT64_MAX };
	for (unsigned int lane = 0; lane < TS_SPOOL_LANES; lane++)
		spool->lanes[lane] = -1;
	return spool;
}

/* Looks in all directories; -1: there is none. Lock held. */
static int find_file(const struct ts_spools *spools, const struct ts_live_control *area,
		     struct ts_live_spool *ret_header)
{
	int fd = -1;

	for (size_t i = 0; i < spools->directory_count && fd < 0; i++)
		fd = ts_spool_file_open(spools->directories[i].fd, spools->directories[i].owner,
					area, spools->is_writable, ret_header);
	return fd;
}

/* Lock held. */
static bool open_spool(struct ts_spools *spools, struct spool *spool,
		       const struct ts_live_control *area)
{
	struct ts_live_spool header;

	if (spool->fd >= 0 || spool->is_missing)
		return spool->fd >= 0;
	spool->fd = find_file(spools, area, &header);
	spool->is_missing = spool->fd < 0;
	if (spool->is_missing)
		return false;
	spool->bytes = header.bytes;
	spool->end = TS_MAX(spool->end, header.consumed);
	spool->committed = TS_MAX(spool->committed, header.consumed);
	return true;
}

/* The file with data of that lane; -1: there is none. Lock held. */
static int open_lane(const struct ts_spools *spools, struct spool *spool,
		     const struct ts_live_control *area, unsigned int lane)
{
	int *fd = lane && lane <= TS_SPOOL_LANES ? &spool->lanes[lane - 1] : NULL;

	if (!fd)
		return lane ? -1 : spool->fd;
	for (size_t i = 0; i < spools->directory_count && *fd < 0; i++)
		*fd = ts_spool_file_open_lane(spools->directories[i].fd,
					      spools->directories[i].owner, area,
					      spools->is_writable, lane);
	return *fd;
}

/* Lock held. */
static void open_lanes(const struct ts_spools *spools, struct spool *spool,
		       const struct ts_live_control *area)
{
	for (unsigned int lane = 1; lane <= TS_SPOOL_LANES; lane++)
		open_lane(spools, spool, area, lane);
}

static void set_word(const struct ts_spools *spools, const struct spool *spool, size_t offset,
		     uint64_t value)
{
	if (spools->is_writable && spool->fd >= 0)
		ts_spool_file_set_word(spool->fd, offset, value);
}

/* Gives memory of [from, to) back, of the lanes that are open, too. True: some of the spool. */
static bool punch(const struct spool *spool, uint64_t from, uint64_t to)
{
	for (unsigned int lane = 0; lane < TS_SPOOL_LANES; lane++)
		if (spool->lanes[lane] >= 0)
			ts_spool_file_punch(spool->lanes[lane], spool->bytes, 0, from, to);
	return spool->fd >= 0 &&
	       ts_spool_file_punch(spool->fd, spool->bytes, TS_SPOOL_KEPT, from, to);
}

static void release(const struct ts_spools *spools, const struct spool *spool)
{
	set_word(spools, spool, offsetof(struct ts_live_spool, consumed), spool->committed);
}

/*
 * Where parts begin that another recorder had taken and not released, if they end at `end`. A
 * program that found everything consumed has begun with the next multiple of `bytes`: then it may
 * be using what is before that again.
 */
static uint64_t first_taken(const struct spool *spool, uint64_t consumed, uint64_t end)
{
	uint64_t next = ts_spool_round_up(consumed, spool->bytes);

	return next < end ? next : consumed;
}

/* Releases what another recorder had taken, and perhaps given back, before it was killed. */
static void release_taken(const struct ts_spools *spools, const struct spool *spool)
{
	set_word(spools, spool, offsetof(struct ts_live_spool, returned), spool->committed);
	release(spools, spool);
}

/* ---- the journal ---- */

/* What a part takes up in its spool. */
static uint64_t counted_bytes(const struct ts_live_spooled *part)
{
	return ts_spool_round_up(TS_MIN(part->part.count, TS_SPOOL_PART), TS_SPOOL_ALIGNMENT);
}

uint64_t ts_spooled_bytes(const struct ts_block *block, const void *payload)
{
	/* A channel has no events: other rings need not be searched. */
	bool may_refer = block->type == TS_BLOCK_RING && !block->events;
	size_t left = may_refer ? block->bytes : 0;
	const char *at = payload;
	uint64_t sum = 0;

	while (left >= 8) {
		struct ts_live_spooled part;
		struct ts_live_record head;
		size_t bytes;

		memcpy(&head, at, sizeof(head));
		bytes = (size_t)head.words * 8;
		if (!bytes || bytes > left)
			break;
		if (head.kind == TS_LIVE_SPOOLED && bytes >= 16 + sizeof(part)) {
			memcpy(&part, at + 16, sizeof(part));
			sum += counted_bytes(&part);
		}
		at += bytes;
		left -= bytes;
	}
	return sum;
}

void ts_spools_refer(struct ts_spools *spools, const struct ts_block *block, const void *payload)
{
	uint64_t bytes = spools ? ts_spooled_bytes(block, payload) : 0;
	struct spool *spool;

	if (!bytes)
		return;
	pthread_mutex_lock(&spools->lock);
	spool = get_spool(spools, block->area);
	if (spool)
		spool->referred_bytes += bytes;
	pthread_mutex_unlock(&spools->lock);
}

/* A program cannot have more than its spool holds; what it says may be more. */
static uint64_t uncommitted(const struct spool *spool)
{
	return TS_MIN(spool->referred_bytes, spool->bytes ? spool->bytes : TYPICAL_BYTES);
}

uint64_t ts_spools_uncommitted(struct ts_spools *spools)
{
	uint64_t sum = 0;

	if (!spools)
		return 0;
	pthread_mutex_lock(&spools->lock);
	for (size_t i = 0; i < spools->count; i++)
		sum += uncommitted(&spools->spools[i]);
	pthread_mutex_unlock(&spools->lock);
	return sum;
}

bool ts_spools_holds(struct ts_spools *spools, uint64_t area)
{
	bool holds = false;

	pthread_mutex_lock(&spools->lock);
	for (size_t i = 0; i < spools->count; i++)
		holds |= spools->spools[i].area == area && spools->spools[i].referred_bytes;
	pthread_mutex_unlock(&spools->lock);
	return holds;
}

/* ---- the decoder ---- */

static bool is_possible(const struct spool *spool, const struct ts_live_spooled *part)
{
	uint64_t position = ts_spool_position(part->position);
	uint64_t count = part->part.count, at = position & (spool->bytes - 1);
	uint64_t limit = ts_spool_round_up(spool->committed, spool->bytes) + spool->bytes;

	return count && count <= ts_spool_part_bytes(spool->bytes) && at + count <= spool->bytes &&
	       position >= spool->end && position <= limit - count;
}

int ts_spools_read(struct ts_spools *spools, const struct ts_live_control *area,
		   const struct ts_live_spooled *part, uint64_t offset, void *buffer, size_t bytes)
{
	struct spool *spool, open;
	int lane = -1;

	if (!spools)
		return TS_ENOTFOUND;
	pthread_mutex_lock(&spools->lock);
	spool = get_spool(spools, area->area_id);
	open = spool && open_spool(spools, spool, area) ? *spool : (struct spool){ .fd = -1 };
	if (open.fd >= 0)
		lane = open_lane(spools, spool, area, ts_spool_lane(part->position));
	pthread_mutex_unlock(&spools->lock);
	if (open.fd < 0)
		return spool ? TS_ENOTFOUND : TS_ENOMEM;
	if (!is_possible(&open, part) || offset + bytes > part->part.count)
		return TS_EFORMAT;
	return ts_spool_file_read(open.fd, lane, open.bytes,
				  ts_spool_position(part->position) + offset, buffer, bytes);
}

void ts_spools_decoded(struct ts_spools *spools, const struct ts_live_control *area,
		       const struct ts_live_spooled *part)
{
	struct spool *spool;

	if (!spools)
		return;
	pthread_mutex_lock(&spools->lock);
	spool = get_spool(spools, area->area_id);
	if (spool) {
		spool->decoded_bytes += counted_bytes(part);
		spool->is_idle = false;
	}
	/* Nobody has read a part of a blob that was given up: its space is needed all the same. */
	if (spool && open_spool(spools, spool, area) && is_possible(spool, part)) {
		spool->decoded_from =
			TS_MIN(spool->decoded_from, ts_spool_position(part->position));
		spool->end = ts_spool_position(part->position) + part->part.count;
		set_word(spools, spool, offsetof(struct ts_live_spool, decoded), spool->end);
	}
	pthread_mutex_unlock(&spools->lock);
}

void ts_spools_end(struct ts_spools *spools, uint64_t area)
{
	if (!spools)
		return;
	pthread_mutex_lock(&spools->lock);
	for (size_t i = 0; i < spools->count; i++)
		if (spools->spools[i].area == area)
			spools->spools[i].has_ended = true;
	pthread_mutex_unlock(&spools->lock);
}

uint64_t ts_spools_position(struct ts_spools *spools, uint64_t area)
{
	uint64_t position = 0;

	if (!spools)
		return 0;
	pthread_mutex_lock(&spools->lock);
	for (size_t i = 0; i < spools->count; i++)
		if (spools->spools[i].area == area)
			position = spools->spools[i].end;
	pthread_mutex_unlock(&spools->lock);
	return position;
}

void ts_spools_resume(struct ts_spools *spools, const struct ts_live_control *area,
		      uint64_t position)
{
	struct spool *spool, taken = { .fd = -1 };
	uint64_t from = 0;

	if (!spools || !position)
		return;
	pthread_mutex_lock(&spools->lock);
	spool = get_spool(spools, area->area_id);
	if (spool && open_spool(spools, spool, area)) {
		from = spool->end;
		spool->end = TS_MAX(spool->end, position);
		spool->committed = TS_MAX(spool->committed, position);
		open_lanes(spools, spool, area);
		taken = *spool;
	}
	pthread_mutex_unlock(&spools->lock);
	/* As ts_spools_release(). */
	if (spools->is_writable && taken.fd >= 0 && from < position)
		punch(&taken, first_taken(&taken, from, position), position);
	release_taken(spools, &taken);
}

uint64_t ts_spools_referred(struct ts_spools *spools, const struct ts_live_control *area)
{
	struct ts_live_spool header;
	int fd;

	pthread_mutex_lock(&spools->lock);
	fd = find_file(spools, area, &header);
	pthread_mutex_unlock(&spools->lock);
	if (fd < 0)
		return 0;
	close(fd);
	return header.referred;
}

void ts_spools_take_over(struct ts_spools *spools, const struct ts_live_control *area,
			 uint64_t referred)
{
	struct spool *spool;

	/* Most areas have none. */
	if (!referred)
		return;
	pthread_mutex_lock(&spools->lock);
	spool = get_spool(spools, area->area_id);
	if (spool && open_spool(spools, spool, area)) {
		open_lanes(spools, spool, area);
		spool->floor = referred;
	}
	pthread_mutex_unlock(&spools->lock);
}

void ts_spools_rewind(struct ts_spools *spools)
{
	if (!spools)
		return;
	pthread_mutex_lock(&spools->lock);
	for (size_t i = 0; i < spools->count; i++) {
		spools->spools[i].end = spools->spools[i].committed;
		spools->spools[i].decoded_bytes = 0;
		spools->spools[i].decoded_from = UINT64_MAX;
		spools->spools[i].has_ended = false;
	}
	pthread_mutex_unlock(&spools->lock);
}

/* ---- checkpoints ---- */

/* Parts that another recording left keep the program from writing. */
static bool holds_foreign(const struct spool *spool)
{
	return spool->floor > spool->committed && spool->referred_bytes == spool->decoded_bytes;
}

void ts_spools_tick(struct ts_spools *spools)
{
	if (!spools)
		return;
	pthread_mutex_lock(&spools->lock);
	for (size_t i = 0; i < spools->count; i++) {
		struct spool *spool = &spools->spools[i];

		spool->is_due |= spool->fd >= 0 && spool->is_idle &&
				 (spool->decoded_bytes || holds_foreign(spool));
		spool->is_idle = true;
	}
	pthread_mutex_unlock(&spools->lock);
}

bool ts_spools_are_due(struct ts_spools *spools)
{
	uint64_t ended = 0;
	bool are_due = false;

	if (!spools)
		return false;
	pthread_mutex_lock(&spools->lock);
	for (size_t i = 0; i < spools->count; i++) {
		const struct spool *spool = &spools->spools[i];

		are_due |= spool->is_due ||
			   (spool->fd >= 0 && spool->decoded_bytes >= spool->bytes / 4);
		ended += spool->has_ended ? spool->decoded_bytes : 0;
	}
	pthread_mutex_unlock(&spools->lock);
	return are_due || ended >= ENDED_BYTES;
}

/*
 * Gives memory back, before the program may use it again. What it writes meanwhile
 * lies elsewhere: it ends less than `bytes` above the first part that is not committed. Takes its
 * time, without the lock: only this thread changes what is decoded and closes files.
 */
static void punch_decoded(struct ts_spools *spools)
{
	struct spool spool;
	bool is_there;

	for (size_t i = 0;; i++) {
		pthread_mutex_lock(&spools->lock);
		is_there = i < spools->count;
		if (is_there)
			spool = spools->spools[i];
		pthread_mutex_unlock(&spools->lock);
		if (!is_there)
			return;
		if (spool.decoded_from < spool.end && punch(&spool, spool.decoded_from, spool.end))
			set_word(spools, &spool, offsetof(struct ts_live_spool, returned),
				 spool.end);
	}
}

void ts_spools_commit(struct ts_spools *spools, bool is_all)
{
	if (!spools)
		return;
	pthread_mutex_lock(&spools->lock);
	for (size_t i = 0; i < spools->count; i++) {
		struct spool *spool = &spools->spools[i];

		spool->referred_bytes -=
			is_all ? spool->referred_bytes
			       : TS_MIN(spool->referred_bytes, spool->decoded_bytes);
		spool->decoded_bytes = 0;
		spool->is_due = false;
		if (!spool->referred_bytes && spool->floor > spool->end) {
			spool->decoded_from =
				TS_MIN(spool->decoded_from,
				       first_taken(spool, spool->committed, spool->floor));
			spool->end = spool->floor;
			spool->takes_over = true;
		}
	}
	pthread_mutex_unlock(&spools->lock);
}

void ts_spools_release(struct ts_spools *spools)
{
	size_t kept = 0;

	if (!spools)
		return;
	if (spools->is_writable)
		punch_decoded(spools);
	pthread_mutex_lock(&spools->lock);
	for (size_t i = 0; i < spools->count; i++) {
		struct spool *spool = &spools->spools[i];

		spool->decoded_from = UINT64_MAX;
		if (spool->committed != spool->end) {
			spool->committed = spool->end;
			if (spool->takes_over)
				release_taken(spools, spool);
			else
				release(spools, spool);
		}
		spool->takes_over = false;
		if (spool->has_ended && !spool->referred_bytes)
			close_spool(spool);
		else
			spools->spools[kept++] = *spool;
	}
	spools->count = kept;
	pthread_mutex_unlock(&spools->lock);
}
