/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that are packed in a packet. */
#ifndef TS_IMPORT_PERFETTO_PERFETTO_UNPACK_H
#define TS_IMPORT_PERFETTO_PERFETTO_UNPACK_H

#include "base/proto.h"
#include "base/text.h"

/*
 * Replaces the content of `out` by what a field compressed_packets (50, deflate) or
 * zstd_compressed_packets (133) holds. TS_ECAP: this build cannot; TS_EFORMAT: damaged, or larger
 * than a packet may be.
 */
int ts_perfetto_unpack(struct ts_text *out, const struct ts_proto_field *field);

#endif
