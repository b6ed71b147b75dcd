/* SPDX-License-Identifier: Apache-2.0 */
/* The options and state of `tracesmith view`. */
#ifndef TS_CLI_VIEW_VIEW_H
#define TS_CLI_VIEW_VIEW_H

#include <tracesmith/reader.h>

#include "cli/common/amount.h"
#include "cli/common/filter_options.h"
#include "cli/common/options.h"
#include "cli/common/progress.h"
#include "cli/common/show.h"
#include "cli/common/text_table.h"
#include "cli/view/view_launches.h"
#include "trace/row_query.h"
#include "trace/stack_lists.h"

#define TS_VIEW_MAX_COLUMNS 64

/* One column of the output: a special column, or its position in each table. */
struct ts_view_column {
	const char *name;
	unsigned int special;          /* enum ts_show_special, or 0 */
	int positions[TS_TABLE_COUNT]; /* -1: the table has no such column */
};

struct ts_view {
	/* as given on the command line */
	const char *path; /* or what messages call the process */
	pid_t pid;        /* 0: a trace */
	struct ts_string_list table_names;
	struct ts_string_list column_names;
	struct ts_filter_options filters;
	struct ts_quantity_range range;
	const char *sort_text;
	int64_t limit; /* -1: none */
	bool args, json, stats, commands, stacks, short_names;
	const char *hot; /* kernel name; NULL: --hot not given */

	/* resolved */
	struct ts_reader *reader;
	struct ts_show show;
	struct ts_filter *filter;
	uint64_t tables; /* TS_TABLE_BIT() of each */
	int64_t from, to;
	enum ts_row_order order;
	struct ts_view_column columns[TS_VIEW_MAX_COLUMNS];
	size_t column_count; /* JSON: 0 means all */

	/* state while printing */
	struct ts_text_table grid;
	struct ts_text cell;
	struct ts_stack_list frames;       /* of the current row, with --stacks */
	struct ts_view_launches *launches; /* with --stacks, if there is device work; else NULL */
	struct ts_view_launch launch;      /* of the current row */
	struct ts_progress progress;
	uint64_t rows;
};

/* ---- view_columns.c ---- */

/* Resolves --columns, or the default. Reports unknown names. Returns an exit code. */
int ts_view_choose_columns(struct ts_view *view);

/* The columns of a table that must be read to print its rows. */
uint64_t ts_view_mask(const struct ts_view *view, const struct ts_table_info *table);

/* ---- view_print.c ---- */

void ts_view_print_start(struct ts_view *view);
int ts_view_print_row(struct ts_view *view, const struct ts_row *row, struct ts_error *err);
int ts_view_print_finish(struct ts_view *view, struct ts_error *err);

/* ---- view_commands.c ---- */

/* Reports options that cannot be combined with --commands. Returns an exit code. */
int ts_view_check_commands(const struct ts_view *view);

/* Prints the command list of each stream. */
int ts_view_commands(struct ts_view *view, struct ts_error *err);

/* ---- view_pc_samples.c ---- */

/* Prints where a kernel spends its time. */
int ts_view_hot(struct ts_view *view, struct ts_error *err);

/* ---- view_list.c ---- */

/* Prints rows of tables without time, table by table, up to the limit. */
int ts_view_list_tables(struct ts_view *view, struct ts_error *err);

#endif
