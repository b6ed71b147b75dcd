/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `tracesmith export`: notes on stderr, a summary as JSON. */
#ifndef TS_CLI_EXPORT_EXPORT_REPORT_H
#define TS_CLI_EXPORT_EXPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* Rows that are not in the output. */
struct ts_export_loss {
	char *table, *reason;
	uint64_t rows;
};

struct ts_export_losses {
	struct ts_export_loss *items;
	size_t count, capacity;
};

/* Of the same table and reason: one sum. Where there is no memory it is forgotten. */
void ts_export_losses_add(struct ts_export_losses *losses, const char *table, uint64_t rows,
			  const char *reason);
void ts_export_losses_release(struct ts_export_losses *losses);

/* Files that were written. */
struct ts_export_summary {
	const char *format;
	const char *output; /* as it was asked for */
	uint64_t bytes;     /* of all files */
	bool has_bytes;     /* false: it went into a pipe or device */
	uint64_t files;     /* 1, but for a folder */
	double seconds;
	struct ts_text names; /* JSON strings of a folder's files, with a comma between them */
	struct ts_export_losses losses;
};

void ts_export_summary_release(struct ts_export_summary *summary);

/* "run.json: chrome, 1.2 MiB in 0.010 s" */
void ts_export_report_output(const struct ts_export_summary *summary);

/*
 * "not exported, since folded cannot represent them: 1,204 gpu_op, 17 counter rows", a line per
 * reason.
 */
void ts_export_report_losses(const struct ts_export_summary *summary);

/* One line, to standard output. */
void ts_export_show_json(const struct ts_export_summary *summary);

#endif
