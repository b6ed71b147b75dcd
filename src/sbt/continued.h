/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace in two files: a prefix of one that a recorder is writing, which is only read, and a file
 * of one's own that continues it. Nothing is copied. For the live reader (docs/live.md,
 * section 6.1).
 */
#ifndef TS_SBT_CONTINUED_H
#define TS_SBT_CONTINUED_H

#include <tracesmith/reader.h>
#include <tracesmith/writer.h>

#include "sbt/file.h"

/*
 * Continues the trace in base_fd after byte base_bytes, the end of one of its chunks, in the file
 * `continued->fd`, which is empty. `ids` and `options` as for ts_writer_resume().
 */
int sbt_writer_continue(struct ts_writer **ret_writer, const struct sbt_continued *continued,
			const struct ts_writer_ids *ids, const struct ts_writer_options *options,
			struct ts_error *err);

/* Opens the two as one trace. Duplicates the descriptors. With base_bytes 0 there is only `fd`. */
int sbt_reader_open_continued(struct ts_reader **ret_reader, const struct sbt_continued *continued,
			      struct ts_error *err);

#endif
