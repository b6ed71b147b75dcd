/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporter of speedscope JSON.
 *
 *	speedscope.c        samples and their equivalents: "sampled" profiles
 *	speedscope_spans.c  nested spans: "evented" profiles
 *	speedscope_file.c   common parts
 */
#ifndef TS_EXPORT_SPEEDSCOPE_SPEEDSCOPE_H
#define TS_EXPORT_SPEEDSCOPE_SPEEDSCOPE_H

#include <tracesmith/export.h>

#include "base/text.h"
#include "trace/stack_lists.h"

#define TS_SPEEDSCOPE_FLUSH_BYTES ((size_t)1 << 20)

struct ts_speedscope {
	struct ts_reader *reader;
	struct ts_error *err;
	int fd;
	struct ts_frame_keys keys; /* numbers of frames in the file */
	struct ts_text out;
};

void ts_speedscope_init(struct ts_speedscope *file, struct ts_reader *reader, int fd,
			const struct ts_export_options *options, struct ts_error *err);
void ts_speedscope_release(struct ts_speedscope *file);

/* Writes `out`, unless it is shorter than that. */
int ts_speedscope_flush(struct ts_speedscope *file, size_t unless_below);

/* The opening brace and the first members; "shared" and "profiles" follow in any order. */
void ts_speedscope_put_head(struct ts_speedscope *file);

/* The member "shared": all frames numbered so far. */
int ts_speedscope_put_frames(struct ts_speedscope *file);

/* Name of a thread's profile, as a JSON string. */
void ts_speedscope_put_name(struct ts_speedscope *file, int64_t id);

/* ---- speedscope_spans.c ---- */

int ts_speedscope_spans(struct ts_reader *reader, int fd, const struct ts_export_options *options,
			struct ts_error *err);

#endif
