/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links work of the backward pass to the forward operator that caused it. PyTorch gives an operator
 * that creates an autograd node the sequence number of that node, and the node carries the same
 * number when it runs. Sources: emit_nvtx names ("aten::addmm, seq = 7"), Kineto's "Sequence
 * number" argument, or its "fwdbwd" flows.
 */
#ifndef TS_STATE_WORK_AUTOGRAD_LINK_H
#define TS_STATE_WORK_AUTOGRAD_LINK_H

#include "base/text.h"
#include "state/work/work.h"

struct ts_autograd_link;

/* What the work must have loaded. */
#define TS_AUTOGRAD_LINK_LOAD_FLAGS (TS_WORK_SLICES | TS_WORK_FLOWS)

/* Reads slice arguments again: the readers must still be open. */
int ts_autograd_link_new(struct ts_autograd_link **ret_forward, const struct ts_work *work,
			 struct ts_error *err);
void ts_autograd_link_free(struct ts_autograd_link *forward);
TS_DEFINE_AUTO(ts_autograd_link, ts_autograd_link_free);

/*
 * Forward slice for what a thread runs at an instant. TS_WORK_NONE: not inside a backward operator,
 * or unknown.
 */
uint32_t ts_autograd_link_at(const struct ts_autograd_link *forward, uint32_t thread, int64_t time);

/*
 * The first call of a slice that led to device work: where its operator was called from.
 * TS_WORK_NONE: none.
 */
uint32_t ts_autograd_link_call(const struct ts_work *work, uint32_t slice);

/* Number of backward slices that have a forward slice. */
uint64_t ts_autograd_link_count(const struct ts_autograd_link *forward);

/*
 * Appends "aten::linear > aten::addmm": a slice and its enclosing slices, innermost `most` only,
 * with sequence numbers stripped from the names.
 */
void ts_autograd_link_append(const struct ts_work *work, struct ts_text *out, uint32_t slice,
			     unsigned int most);

#endif
