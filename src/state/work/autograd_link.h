/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which operator of the forward pass the work of a backward pass belongs to, where PyTorch tells:
 * operators that make a node of the autograd graph have the sequence number of that node, and so
 * has the node when it runs. Names of emit_nvtx ("aten::addmm, seq = 7"), Kineto's argument
 * "Sequence number", or its arrows "fwdbwd".
 */
#ifndef TS_STATE_WORK_AUTOGRAD_LINK_H
#define TS_STATE_WORK_AUTOGRAD_LINK_H

#include "base/text.h"
#include "state/work/work.h"

struct ts_autograd_link;

/* Parts of the work that it needs. */
#define TS_AUTOGRAD_LINK_PARTS (TS_WORK_SLICES | TS_WORK_FLOWS)

/* Reads arguments of slices once more: readers must be open. */
int ts_autograd_link_new(struct ts_autograd_link **ret_forward, const struct ts_work *work,
		   struct ts_error *err);
void ts_autograd_link_free(struct ts_autograd_link *forward);
TS_DEFINE_AUTO(ts_autograd_link, ts_autograd_link_free);

/*
 * The slice of the forward pass for what a thread does at an instant; TS_WORK_NONE: it is not in a
 * backward operator, or that is not told.
 */
uint32_t ts_autograd_link_at(const struct ts_autograd_link *forward, uint32_t thread, int64_t time);

/*
 * A call that a slice made, the first that a device did something for: where its operator was
 * called from. TS_WORK_NONE: there is none.
 */
uint32_t ts_autograd_link_call(const struct ts_work *work, uint32_t slice);

/* How many backward slices know theirs. */
uint64_t ts_autograd_link_count(const struct ts_autograd_link *forward);

/*
 * "aten::linear > aten::addmm": a slice and those around it, without what is not part of a name. At
 * most `most`, the innermost.
 */
void ts_autograd_link_append(const struct ts_work *work, struct ts_text *out, uint32_t slice,
		       unsigned int most);

#endif
