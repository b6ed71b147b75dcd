/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instruction stream: what was asked of the devices, stream by stream in the order of asking,
 * with operands as far as the trace has them. Modelled on the table `command` of traces that are
 * recorded for replay, but made from any trace with `gpu_op` or `api_call` rows (docs/state.md,
 * "Instruction stream").
 */
#ifndef TS_STATE_WORK_COMMAND_LIST_H
#define TS_STATE_WORK_COMMAND_LIST_H

#include "state/work/work.h"

/* The trace has no device time of it: a launch that was captured, or whose command is missing. */
#define TS_COMMAND_ENTRY_MISSING 1u

/* What is unknown is TS_ABSENT, or TS_WORK_NONE for indices. */
struct ts_command_entry {
	int64_t issued;     /* when it was given */
	int64_t start, end; /* on the device; of a host's wait: the time of that */
	int64_t sequence;   /* place in its stream, from 0 */
	int64_t correlation;
	int64_t bytes;
	int64_t grid[3], block[3];
	int64_t registers, shared_bytes;
	int64_t event;              /* recorded, or waited for */
	int64_t record_correlation; /* of the call that recorded the event that is waited for */
	uint32_t rank;
	uint32_t device;    /* of its stream */
	uint32_t stream;    /* where it was put; TS_WORK_NONE: unknown, or the whole device */
	uint32_t on_stream; /* where the event that is waited for was recorded */
	uint32_t thread;    /* who gave it */
	uint32_t name;      /* kernel, copy; of others the call */
	uint32_t command, call, sync; /* what it was made of */
	int32_t graph, graph_node;    /* -1: none */
	uint8_t kind;                 /* enum ts_command_kind */
	uint8_t copy_kind;            /* enum ts_copy_kind */
	uint8_t flags;                /* TS_INSTRUCTION_* */
};

struct ts_command_list {
	const struct ts_work *work;
	/* By rank, stream (unknown ones last), sequence. */
	struct ts_command_entry *list;
	size_t count;
};

/* Reads columns of gpu_op rows that the work has not kept: its readers must still be open. */
int ts_command_list_new(struct ts_command_list **ret_list, const struct ts_work *work,
			struct ts_error *err);
void ts_command_list_free(struct ts_command_list *instructions);
TS_DEFINE_AUTO(ts_command_list, ts_command_list_free);

#endif
