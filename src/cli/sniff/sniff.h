/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State and functions shared by the files of `tracesmith sniff`:
 *
 *	verb_sniff.c    command line for the recording of `tracesmith record`
 *	sniff_users.c   finds the processes that use an accelerator
 *	sniff_line.c    progress line on a terminal
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
	bool reported_none;
	struct ts_top_users *users;
	int64_t users_ns; /* next look at the newest answer */
	int64_t line_ns;  /* next redraw */
	int64_t cpu_ns, cpu_at_ns;
	double cpu_percent;
};

/* ---- sniff_users.c ---- */

/* Starts the search for accelerator users. Returns an exit code if there is nothing to wait for. */
int ts_sniff_users_start(struct ts_sniff *sniff);
/* Attaches to new users; returns when to call again. */
int64_t ts_sniff_users_look(struct ts_sniff *sniff, struct ts_recorder *recorder, int64_t now_ns);
void ts_sniff_users_stop(struct ts_sniff *sniff);

/* ---- sniff_line.c ---- */

int64_t ts_sniff_line_draw(struct ts_sniff *sniff, struct ts_recorder *recorder, int64_t now_ns);

#endif
