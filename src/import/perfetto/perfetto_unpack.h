/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed packets inside a packet. */
#ifndef TS_IMPORT_PERFETTO_PERFETTO_UNPACK_H
#define TS_IMPORT_PERFETTO_PERFETTO_UNPACK_H

#include "base/proto.h"
#include "base/text.h"

/*
 * Replaces the content of `out` with the decompressed field compressed_packets (50, deflate) or
 * zstd_compressed_packets (133). TS_ECAP: not supported by this build; TS_EFORMAT: damaged, or too
 * large.
 */
int ts_perfetto_unpack(struct ts_text *out, const struct ts_proto_field *field);

#endif
