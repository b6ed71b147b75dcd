/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of losses of a Perfetto import. */
#ifndef TS_IMPORT_PERFETTO_PERFETTO_KINDS_H
#define TS_IMPORT_PERFETTO_PERFETTO_KINDS_H

#include <stdint.h>

#include "import/common/import_losses.h"

extern const struct ts_loss_kind ts_perfetto_loss_ftrace, ts_perfetto_loss_no_zlib,
	ts_perfetto_loss_unpack, ts_perfetto_loss_broken, ts_perfetto_loss_state,
	ts_perfetto_loss_dropped, ts_perfetto_loss_many, ts_perfetto_loss_iid,
	ts_perfetto_loss_clock, ts_perfetto_loss_snapshot, ts_perfetto_loss_snapshot_alone,
	ts_perfetto_loss_time, ts_perfetto_loss_end, ts_perfetto_loss_backwards,
	ts_perfetto_loss_phase, ts_perfetto_loss_typed, ts_perfetto_loss_extension,
	ts_perfetto_loss_proto, ts_perfetto_loss_deep, ts_perfetto_loss_counter,
	ts_perfetto_loss_event, ts_perfetto_loss_skipped, ts_perfetto_loss_kernel,
	ts_perfetto_loss_row, ts_perfetto_loss_state_event;

/* Packets with a TracePacket field that is not imported. */
const struct ts_loss_kind *ts_perfetto_kind(uint32_t number);

#endif
