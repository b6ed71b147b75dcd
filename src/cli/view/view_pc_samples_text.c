/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `view --hot` as text: tables of stalls and instructions, then the launches with their stacks.
 */
#include <inttypes.h>

#include "cli/common/cli_output.h"
#include "cli/common/text_table.h"
#include "cli/view/view_pc_samples.h"
#include "trace/stack_lists.h"

#define REASONS 3 /* shown for each instruction */
#define OTHERS 5

static void put_share(struct ts_text *out, double share)
{
	ts_text_printf(out, "%.1f%%", share);
}

/* ---- the kernel ---- */

static void print_others(const struct ts_hot_view *hot, struct ts_text *out)
{
	char count[TS_FORMAT_BYTES];

	for (size_t i = 1; i < TS_MIN(hot->hot->kernel_count, OTHERS + 1u); i++) {
		const struct ts_pc_samples_kernel *kernel = &hot->hot->kernels[i];

		ts_text_printf(out, "also      %s samples: ",
			       ts_format_count(count, sizeof(count), kernel->samples));
		ts_text_append_shown(out, kernel->name, strlen(kernel->name));
		ts_text_append_char(out, '\n');
	}
	if (hot->hot->kernel_count > OTHERS + 1u)
		ts_text_printf(out, "          and %zu others\n",
			       hot->hot->kernel_count - OTHERS - 1);
}

static void print_head(const struct ts_hot_view *hot)
{
	const struct ts_pc_samples_kernel *kernel = &hot->hot->kernels[0];
	struct ts_text *out = ts_stdout();
	char count[TS_FORMAT_BYTES];

	ts_text_append_str(out, "kernel    ");
	ts_text_append_shown(out, kernel->name, strlen(kernel->name));
	ts_text_append_str(out, "\nmodule    ");
	ts_text_append_shown(out, kernel->module, strlen(kernel->module));
	ts_text_printf(out, "\nsamples   %s\n",
		       ts_format_count(count, sizeof(count), kernel->samples));
	print_others(hot, out);
	if (hot->no_sass[0])
		ts_text_printf(out, "no SASS   %s\n", hot->no_sass);
	if (hot->no_lines[0])
		ts_text_printf(out, "no lines  %s\n", hot->no_lines);
	ts_text_append_char(out, '\n');
}

/* ---- tables ---- */

static void add_share(struct ts_text_table *table, double share)
{
	TS_SCOPED(ts_text) cell = { 0 };

	put_share(&cell, share);
	ts_text_table_cell(table, cell.data, cell.length);
}

static int print_reasons(const struct ts_hot_view *hot, struct ts_error *err)
{
	struct ts_text_table table;
	int rc;

	ts_text_table_init(&table);
	ts_text_table_add_column(&table, "samples", true);
	ts_text_table_add_column(&table, "share", true);
	ts_text_table_add_column(&table, "stalled by", false);
	for (size_t i = 0; i < hot->hot->reason_count; i++) {
		const struct ts_pc_samples_reason *reason = &hot->hot->reasons[i];

		ts_text_table_count(&table, (uint64_t)reason->samples);
		add_share(&table, ts_hot_share(hot, reason->samples));
		ts_text_table_str(&table, reason->name);
		ts_text_table_end_row(&table);
	}
	rc = ts_text_table_finish(&table, err);
	ts_text_table_release(&table);
	ts_text_append_char(ts_stdout(), '\n');
	return rc;
}

/* "long_scoreboard 80%, wait 12%" */
static void put_why(const struct ts_hot_view *hot, struct ts_text *out,
		    const struct ts_pc_samples_instruction *one)
{
	for (size_t i = 0; i < TS_MIN(one->reason_count, (size_t)REASONS); i++) {
		const struct ts_pc_samples_reason *reason = &hot->hot->why[one->first_reason + i];

		ts_text_printf(out, "%s%s %.0f%%", i ? ", " : "", reason->name,
			       100.0 * (double)reason->samples / (double)one->samples);
	}
}

/* "inner.h:5 in f(float) < kernel.cu:11": the innermost first. */
static void put_locations(const struct ts_hot_view *hot, struct ts_text *out,
			  const struct ts_pc_samples_instruction *one)
{
	struct ts_cubin_location locations[TS_HOT_LOCATIONS];
	size_t count = ts_hot_locations(hot, one, locations);

	for (size_t i = 0; i < count; i++) {
		struct ts_string file = { locations[i].file, strlen(locations[i].file) };
		size_t length;
		const char *name = ts_frame_short_file(file, &length);

		ts_text_append_str(out, i ? " < " : "");
		ts_text_append(out, name, length);
		ts_text_printf(out, ":%" PRIu32, locations[i].line);
		if (locations[i].function) {
			ts_text_append_str(out, " in ");
			ts_hot_append_function(out, &locations[i]);
		}
	}
}

static void add_instruction(const struct ts_hot_view *hot, struct ts_text_table *table,
			    const struct ts_pc_samples_instruction *one)
{
	const char *sass = ts_hot_sass(hot, one);
	TS_SCOPED(ts_text) cell = { 0 };

	ts_text_printf(&cell, "0x%04" PRIx64, (uint64_t)one->offset);
	ts_text_table_cell(table, cell.data, cell.length);
	ts_text_table_count(table, (uint64_t)one->samples);
	add_share(table, ts_hot_share(hot, one->samples));
	ts_text_clear(&cell);
	put_why(hot, &cell, one);
	ts_text_table_cell(table, cell.data, cell.length);
	if (hot->disassembly)
		ts_text_table_str(table, sass ? sass : "");
	ts_text_clear(&cell);
	put_locations(hot, &cell, one);
	if (!hot->no_lines[0])
		ts_text_table_cell(table, cell.data, cell.length);
	ts_text_table_end_row(table);
}

static int print_instructions(const struct ts_hot_view *hot, struct ts_error *err)
{
	struct ts_text_table table;
	int rc;

	ts_text_table_init(&table);
	ts_text_table_add_column(&table, "offset", true);
	ts_text_table_add_column(&table, "samples", true);
	ts_text_table_add_column(&table, "share", true);
	ts_text_table_add_column(&table, "stalled by", false);
	if (hot->disassembly)
		ts_text_table_add_column(&table, "instruction", false);
	if (!hot->no_lines[0])
		ts_text_table_add_column(&table, "source", false);
	for (size_t i = 0; i < TS_MIN(hot->hot->instruction_count, hot->instruction_limit); i++)
		add_instruction(hot, &table, &hot->hot->instructions[i]);
	rc = ts_text_table_finish(&table, err);
	ts_text_table_release(&table);
	ts_text_append_char(ts_stdout(), '\n');
	return rc;
}

/* ---- launches ---- */

static int print_stack(const struct ts_hot_view *hot, struct ts_text *out, int64_t stack)
{
	struct ts_stack_list path = { 0 };
	TS_SCOPED(ts_text) line = { 0 };
	int rc = ts_stack_list_load(&path, hot->view->reader, stack);

	for (size_t i = path.count; !rc && i-- > 0;) {
		ts_text_clear(&line);
		ts_show_frame(hot->view->reader, &line, path.frames[i]);
		ts_text_append_str(out, "    ");
		ts_text_append_shown(out, line.data, line.length);
		ts_text_append_char(out, '\n');
	}
	if (!stack)
		ts_text_append_str(out, "    (no stack recorded)\n");
	ts_stack_list_release(&path);
	return rc;
}

static int print_launch(const struct ts_hot_view *hot, const struct ts_pc_samples_launch *launch)
{
	struct ts_text *out = ts_stdout();
	char count[TS_FORMAT_BYTES], time[TS_FORMAT_BYTES];

	ts_text_append_str(out, "  ");
	put_share(out, ts_hot_launch_share(hot, launch));
	if (hot->hot->is_exact)
		ts_text_printf(out, ", %s samples",
			       ts_format_count(count, sizeof(count), launch->samples));
	ts_text_printf(out, ", %s on the device, %s launch%s\n",
		       ts_format_duration_ns(time, sizeof(time), launch->device_ns),
		       ts_format_count(count, sizeof(count), launch->launches),
		       launch->launches == 1 ? "" : "es");
	return print_stack(hot, out, launch->stack);
}

static int print_launches(const struct ts_hot_view *hot, struct ts_error *err)
{
	size_t shown = TS_MIN(hot->hot->launch_count, hot->launch_limit);
	struct ts_text *out = ts_stdout();

	if (!hot->hot->launch_count) {
		ts_text_append_str(out, "launched from: the trace has no launch of that name\n");
		return ts_stdout_drain(err);
	}
	ts_text_printf(out, "launched from (%s)\n", ts_hot_launch_kind(hot));
	for (size_t i = 0; i < shown; i++)
		if (print_launch(hot, &hot->hot->launches[i]))
			return ts_error_set(err, TS_ENOMEM, "no memory");
	if (shown < hot->hot->launch_count)
		ts_text_printf(out, "  and from %zu others\n", hot->hot->launch_count - shown);
	return ts_stdout_drain(err);
}

int ts_hot_print_text(const struct ts_hot_view *hot, struct ts_error *err)
{
	int rc;

	print_head(hot);
	rc = print_reasons(hot, err);
	if (!rc)
		rc = print_instructions(hot, err);
	return rc ? rc : print_launches(hot, err);
}
