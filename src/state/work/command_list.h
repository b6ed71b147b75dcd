/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command list: everything submitted to the devices, per stream in submission order, with the
 * operands that the trace has. Modelled on the `command` table of traces recorded for replay, but
 * built from any trace with `gpu_op` or `api_call` rows (docs/state.md, "Command list").
 */
#ifndef TS_STATE_WORK_COMMAND_LIST_H
#define TS_STATE_WORK_COMMAND_LIST_H

#include "state/work/work.h"

/* No device time in the trace: a captured launch, or a missing command. */
#define TS_COMMAND_ENTRY_MISSING 1u

/* Unknown values are TS_ABSENT, unknown indices TS_WORK_NONE. */
struct ts_command_entry {
	int64_t issued;     /* when it was submitted */
	int64_t start, end; /* on the device; for a host wait: the wait itself */
	/*
	 * Of a trace recorded for replay: the number of the command there, which `replay` shows,
	 * too. Else the position in its stream, from 0.
	 */
	int64_t sequence;
	int64_t correlation;
	int64_t bytes;
	int64_t grid[3], block[3];
	int64_t registers, shared_bytes;
	int64_t event;              /* event recorded or waited for */
	int64_t record_correlation; /* call that recorded the event that is waited for */
	uint32_t rank;
	uint32_t device;              /* of its stream */
	uint32_t stream;              /* TS_WORK_NONE: unknown, or the entire device */
	uint32_t on_stream;           /* stream that recorded the event that is waited for */
	uint32_t thread;              /* who gave it */
	uint32_t name;                /* kernel or copy; for other kinds the call */
	uint32_t command, call, sync; /* rows it was built from */
	int32_t graph, graph_node;    /* -1: none */
	uint8_t kind;                 /* enum ts_command_kind */
	uint8_t copy_kind;            /* enum ts_copy_kind */
	uint8_t flags;                /* TS_INSTRUCTION_* */
};

struct ts_command_list {
	const struct ts_work *work;
	/* Sorted by rank, stream (unknown streams last), order of issue. */
	struct ts_command_entry *list;
	size_t count;
};

/* Reads gpu_op columns that struct ts_work does not keep: its readers must still be open. */
int ts_command_list_new(struct ts_command_list **ret_list, const struct ts_work *work,
			struct ts_error *err);
void ts_command_list_free(struct ts_command_list *commands);
TS_DEFINE_AUTO(ts_command_list, ts_command_list_free);

#endif
