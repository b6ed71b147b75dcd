/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `record --replayable=checked` share:
 *
 *	capture_each.c     around a command: which ranges are read behind it, and how
 *	capture_behind.c   the reads that are pending: host memory, hashes, checks
 *	capture_staging.c  small ranges, copied inside the device and read many at a time
 *
 * Everything here is called, and every member is accessed, under `each_lock`.
 */
#ifndef TS_BACKENDS_OPENCL_STREAM_CAPTURE_EACH_H
#define TS_BACKENDS_OPENCL_STREAM_CAPTURE_EACH_H

#include "backends/opencl/stream/capture_internal.h"
#include "base/local/hash.h"

/* Host memory that reads are for. */
struct each_slab {
	unsigned char *bytes; /* STREAM_COPY_BYTES; NULL: not allocated yet */
	size_t used;
	uint32_t reads; /* that are pending */
};

/* A check that is read in several pieces, which are hashed in their order. */
struct each_pieces {
	struct ts_hash_stream hash; /* of those that were taken */
	uint64_t offset, bytes;     /* of the check */
	uint32_t reads;             /* that refer to it */
	bool is_lost;
};

/* Ranges that were copied inside the device, and are read together into one slab. */
struct each_batch {
	struct stream_staging *staging; /* which it fills; NULL: its read was enqueued */
	struct each_slab *slab;
	cl_event event;  /* of its read, held; NULL: none */
	cl_int status;   /* of its read, as last seen */
	uint32_t reads;  /* that refer to it */
	int64_t from_ns; /* when its first range was copied */
};

/* A read behind a command. */
struct each_read {
	struct each_read *next;
	cl_event event;            /* held; NULL: it has a batch */
	struct each_batch *batch;  /* NULL: it has an event of its own */
	struct ocl_stream *memory; /* NULL: no check any more */
	struct each_slab *slab;
	const unsigned char *data; /* in the slab */
	uint64_t queue;            /* number */
	bool is_in_order;
	struct each_pieces *pieces; /* NULL: it is all of its check */
	uint64_t sequence, offset, bytes, hash;
	uint64_t writes; /* of the memory, up to now */
};

/* Comes before the channel's lock; events are queried under it, and reads enqueued. */
extern pthread_mutex_t each_lock;

/* ---- capture_behind.c ---- */

/* The oldest read that is pending; NULL: none. */
struct each_read *each_first(void);
/* Whether there is any. Without the lock. */
bool each_any(void);
/* A read of the range behind the command; NULL: no memory. */
struct each_read *each_new_read(const struct stream_range *range,
				const struct ocl_command *command);
/* It was enqueued: takes its bytes from its slab. */
void each_add(struct each_read *read);
/* It has no check; nor have the other pieces. */
void each_give_up(struct each_read *read);
void each_drop_pieces(struct each_pieces *pieces);
/* Negative: it failed. */
cl_int each_status(const struct each_read *read);
/* Its event, after its batch was read, too. NULL: it failed. */
cl_event each_event(const struct each_read *read);
/* Waits until it is complete, or has failed. False: it may wait for the program. */
bool each_finish(const struct each_read *read);
/* Waits for an event, with the same limits. */
bool each_finish_event(cl_event event);
/* Emits the checks of what has been read. */
void each_take(void);
/* A slab with so many bytes left, or an empty one; waits for it. NULL: there is none. */
struct each_slab *each_make_space(size_t bytes);
struct each_slab *each_make_slab(void);

/* ---- capture_staging.c ---- */

/* Whether it is copied rather than read. */
bool staging_takes(const struct stream_range *range, const struct ocl_command *command);
/* Copies it behind the command. */
bool staging_copy(const struct stream_range *range, const struct ocl_command *command);
/* Enqueues the read of a batch, unless that was done. */
void staging_read(struct each_batch *batch);
/* The same for all batches, or those that have waited for a while. */
void staging_read_all(void);
void staging_read_old(void);
/* No check is left in the batches that were not read. */
void staging_forget(void);
/* Enqueues all reads, and releases the buffers. */
void staging_release(void);
void staging_forked(void);

#endif
