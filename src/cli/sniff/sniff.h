/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `tracesmith sniff` adds to a recording, shared by its files:
 *
 *	verb_sniff.c    the command line: another one for what `record` does
 *	sniff_users.c   the accelerator's processes, while it runs
 *	sniff_line.c    how it goes, on a terminal
 */
#ifndef TS_CLI_SNIFF_SNIFF_H
#define TS_CLI_SNIFF_SNIFF_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/record/record.h"

struct ts_top_users;

struct ts_sniff {
	struct ts_record record;
	bool finds_users; /* no process was named */
	bool told_of_none;
	struct ts_top_users *users;
	int64_t users_ns; /* when to look at the newest answer */
	int64_t line_ns;  /* when to draw the line */
	int64_t cpu_ns, cpu_at_ns;
	double cpu_percent;
};

/* ---- sniff_users.c ---- */

/* Begins to ask. An exit code where there is nothing to wait for. */
int ts_sniff_users_start(struct ts_sniff *sniff);
/* Takes in those that are new; when to come back. */
int64_t ts_sniff_users_look(struct ts_sniff *sniff, struct ts_recorder *recorder, int64_t now_ns);
void ts_sniff_users_stop(struct ts_sniff *sniff);

/* ---- sniff_line.c ---- */

int64_t ts_sniff_line_draw(struct ts_sniff *sniff, struct ts_recorder *recorder, int64_t now_ns);

#endif
