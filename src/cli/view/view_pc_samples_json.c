/* SPDX-License-Identifier: Apache-2.0 */
/* `view --hot --json`: one JSON object. */
#include <inttypes.h>

#include "cli/common/cli_output.h"
#include "cli/view/view_pc_samples.h"

static void put_text(struct ts_text *out, const char *key, const char *text)
{
	ts_text_printf(out, "\"%s\":", key);
	if (text && *text)
		ts_text_append_json(out, text, strlen(text));
	else
		ts_text_append_str(out, "null");
}

static void separate(struct ts_text *out, size_t index)
{
	if (index)
		ts_text_append_char(out, ',');
}

static void put_reasons(const struct ts_hot_view *hot, struct ts_text *out,
			const struct ts_pc_samples_reason *reasons, size_t count)
{
	ts_text_append_str(out, "\"stalls\":[");
	for (size_t i = 0; i < count; i++) {
		separate(out, i);
		ts_text_append_char(out, '{');
		put_text(out, "reason", reasons[i].name);
		ts_text_printf(out, ",\"samples\":%" PRId64 ",\"share_pct\":%.2f}",
			       reasons[i].samples, ts_hot_share(hot, reasons[i].samples));
	}
	ts_text_append_char(out, ']');
}

static void put_location(struct ts_text *out, const struct ts_cubin_location *location)
{
	TS_SCOPED(ts_text) function = { 0 };

	ts_hot_append_function(&function, location);
	ts_text_append_char(out, '{');
	put_text(out, "file", location->file);
	ts_text_printf(out, ",\"line\":%" PRIu32 ",", location->line);
	put_text(out, "inlined", ts_text_cstr(&function));
	ts_text_append_char(out, '}');
}

static void put_instruction(const struct ts_hot_view *hot, struct ts_text *out,
			    const struct ts_pc_samples_instruction *one)
{
	struct ts_cubin_location locations[TS_HOT_LOCATIONS];
	size_t count = ts_hot_locations(hot, one, locations);

	ts_text_printf(out, "{\"offset\":%" PRId64 ",\"samples\":%" PRId64 ",\"share_pct\":%.2f,",
		       one->offset, one->samples, ts_hot_share(hot, one->samples));
	put_text(out, "sass", ts_hot_sass(hot, one));
	ts_text_append_str(out, ",\"source\":[");
	for (size_t i = 0; i < count; i++) {
		separate(out, i);
		put_location(out, &locations[i]);
	}
	ts_text_append_str(out, "],");
	put_reasons(hot, out, &hot->hot->why[one->first_reason], one->reason_count);
	ts_text_append_char(out, '}');
}

static void put_launch(const struct ts_hot_view *hot, struct ts_text *out,
		       const struct ts_pc_samples_launch *launch)
{
	ts_text_printf(out, "{\"launches\":%" PRId64 ",\"device_ns\":%" PRId64 ",",
		       launch->launches, launch->device_ns);
	if (hot->hot->is_exact)
		ts_text_printf(out, "\"samples\":%" PRId64 ",", launch->samples);
	ts_text_printf(out, "\"share_pct\":%.2f,\"stack\":", ts_hot_launch_share(hot, launch));
	ts_show_json_stack(&hot->view->show, out, launch->stack);
	ts_text_append_char(out, '}');
}

static void put_others(const struct ts_hot_view *hot, struct ts_text *out)
{
	ts_text_append_str(out, "\"others\":[");
	for (size_t i = 1; i < hot->hot->kernel_count; i++) {
		separate(out, i - 1);
		ts_text_append_char(out, '{');
		put_text(out, "kernel", hot->hot->kernels[i].name);
		ts_text_append_char(out, ',');
		put_text(out, "module", hot->hot->kernels[i].module);
		ts_text_printf(out, ",\"samples\":%" PRId64 "}", hot->hot->kernels[i].samples);
	}
	ts_text_append_str(out, "],");
}

static void put_head(const struct ts_hot_view *hot, struct ts_text *out)
{
	const struct ts_pc_samples_kernel *kernel = &hot->hot->kernels[0];

	put_text(out, "kernel", kernel->name);
	ts_text_append_char(out, ',');
	put_text(out, "module", kernel->module);
	ts_text_printf(out, ",\"samples\":%" PRId64 ",", kernel->samples);
	put_others(hot, out);
	put_reasons(hot, out, hot->hot->reasons, hot->hot->reason_count);
	ts_text_append_char(out, ',');
	put_text(out, "no_sass", hot->no_sass);
	ts_text_append_char(out, ',');
	put_text(out, "no_lines", hot->no_lines);
}

int ts_hot_print_json(const struct ts_hot_view *hot, struct ts_error *err)
{
	struct ts_text *out = ts_stdout();

	ts_text_append_char(out, '{');
	put_head(hot, out);
	ts_text_append_str(out, ",\"instructions\":[");
	for (size_t i = 0; i < TS_MIN(hot->hot->instruction_count, hot->instruction_limit); i++) {
		separate(out, i);
		put_instruction(hot, out, &hot->hot->instructions[i]);
	}
	ts_text_append_str(out, "],");
	put_text(out, "launches_are", ts_hot_launch_kind(hot));
	ts_text_append_str(out, ",\"launches\":[");
	for (size_t i = 0; i < TS_MIN(hot->hot->launch_count, hot->launch_limit); i++) {
		separate(out, i);
		put_launch(hot, out, &hot->hot->launches[i]);
	}
	ts_text_append_str(out, "]}\n");
	return ts_stdout_drain(err);
}
