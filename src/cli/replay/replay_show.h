/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the report of `tracesmith replay`: replay_text.c as text, replay_json.c as JSON,
 * replay_dump.c and replay_png.c memory; and replay_list.c the commands, without running them.
 */
#ifndef TS_CLI_REPLAY_REPLAY_SHOW_H
#define TS_CLI_REPLAY_REPLAY_SHOW_H

#include <stdbool.h>

#include "base/text.h"
#include "replay/replay.h"

struct ts_replay_shown {
	const struct ts_replay *replay;
	const struct ts_replay_report *report;
	const char *path;
	bool hashes;   /* of everything that was compared */
	int64_t limit; /* values of a dump; 0: all, -1: as many as a screen holds */
};

/* Lines; the verdict comes first. */
void ts_replay_show_text(const struct ts_replay_shown *shown, struct ts_text *out);
/* Prints a table of times by kernel to standard output, if there are any. */
int ts_replay_show_kernels(const struct ts_replay_shown *shown, struct ts_error *err);
/* One object and a newline. Members may be added, never renamed. */
void ts_replay_show_json(const struct ts_replay_shown *shown, struct ts_text *out);

/* Content of memory as numbers or bytes. */
void ts_replay_show_dump(const struct ts_replay_shown *shown, struct ts_text *out);
/* "memory 7 after command 12", "0x200000400000 after command 12". */
void ts_replay_append_dumped(const struct ts_replay_shown *shown, struct ts_text *out);
void ts_replay_show_dump_json(const struct ts_replay_shown *shown, struct ts_text *out);
/* The same as a picture; an error if it is not an image. Unless quiet, notes the scale. */
int ts_replay_write_png(const struct ts_replay_shown *shown, const char *path, bool quiet,
			struct ts_error *err);

struct ts_replay_list_options {
	bool checks; /* recorded hashes, too */
	bool json;   /* one object per line */
	bool quiet;  /* no notes on stderr */
};

/* Prints the commands of a replay from ts_replay_open_to_show(). */
int ts_replay_show_list(const struct ts_replay *replay,
			const struct ts_replay_list_options *options, struct ts_error *err);

#endif
