/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spools of areas from outside (docs/live.md, sections 2.5 and 4.5): reads parts with pread, and
 * knows what is decoded, what is committed, and what may therefore be overwritten. Never trusts
 * the files. One thread decodes; others may add directories and ask. A journal and a decoder may
 * have NULL, as there may be none: then parts are lost.
 */
#ifndef TS_LIVE_AREA_SPOOL_H
#define TS_LIVE_AREA_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>

#include "base/memory.h"
#include "live/local/live_records.h"
#include "live/local/live_spool.h"

struct ts_block;
struct ts_live_control;
struct ts_spools;

/* `writable` false: nothing is released (recover). */
int ts_spools_new(struct ts_spools **ret_spools, bool writable, struct ts_error *err);
void ts_spools_free(struct ts_spools *spools);
TS_DEFINE_AUTO(ts_spools, ts_spools_free);

/* Looks for spools in this live directory, too; duplicates the descriptor. */
int ts_spools_add_directory(struct ts_spools *spools, int directory_fd, struct ts_error *err);

/* ---- the journal ---- */

/*
 * A block that is or will be in the journal: the parts that its records refer to must not be
 * released before they are committed.
 */
void ts_spools_refer(struct ts_spools *spools, const struct ts_block *block, const void *payload);

/* Bytes that these parts take up. */
uint64_t ts_spooled_bytes(const struct ts_block *block, const void *payload);

/* Bytes that the journal refers to and that no checkpoint has committed. */
uint64_t ts_spools_uncommitted(struct ts_spools *spools);

/* True while some of them are the area's: neither it nor its spool may be removed. */
bool ts_spools_holds(struct ts_spools *spools, uint64_t area);

/* ---- the decoder ---- */

/*
 * Reads bytes of a part, from `offset` on in it. TS_ENOTFOUND: they are gone; TS_EFORMAT: there can
 * be no such part. The first read of a part checks it.
 */
int ts_spools_read(struct ts_spools *spools, const struct ts_live_control *area,
		   const struct ts_live_spooled *part, uint64_t offset, void *buffer, size_t bytes);
/* The part is decoded, or given up. */
void ts_spools_decoded(struct ts_spools *spools, const struct ts_live_control *area,
		       const struct ts_live_spooled *part);
/* No parts of the area follow. */
void ts_spools_end(struct ts_spools *spools, uint64_t area);

/* Position below which everything of the area is decoded, for a checkpoint. */
uint64_t ts_spools_position(struct ts_spools *spools, uint64_t area);
/* The same as a checkpoint has it: releases what the predecessor could not. */
void ts_spools_resume(struct ts_spools *spools, const struct ts_live_control *area,
		      uint64_t position);
/*
 * For an area that this recording does not know: parts that another recording has taken and not
 * committed are nobody's. `referred` is how far records go (0: there is no spool), read before the
 * ring is drained for the first time. Once that is done, its parts are in the journal, and when
 * they are committed, everything below is released.
 */
uint64_t ts_spools_referred(struct ts_spools *spools, const struct ts_live_control *area);
void ts_spools_take_over(struct ts_spools *spools, const struct ts_live_control *area,
			 uint64_t referred);
/* The decoder starts again from the last checkpoint. */
void ts_spools_rewind(struct ts_spools *spools);

/* ---- checkpoints ---- */

/* Called about once a second: what is decoded and left alone is committed, too. */
void ts_spools_tick(struct ts_spools *spools);
/* True if a checkpoint should be made, so that programs get space. */
bool ts_spools_are_due(struct ts_spools *spools);
/*
 * Everything decoded is committed. `is_all`: that is all there is in the journal. What this counts
 * and the journal's blocks must agree: call it before another block can be appended.
 */
void ts_spools_commit(struct ts_spools *spools, bool is_all);
/*
 * Gives the memory of what is committed back, and lets the program use its space again. Takes
 * seconds if that is tens of gigabytes: not with a lock that draining needs. Call it from the
 * decoder's thread, before that decodes again.
 */
void ts_spools_release(struct ts_spools *spools);

#endif
