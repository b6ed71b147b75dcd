/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `top` without a screen: snapshots on standard output, as text or one JSON object per line.
 * Unknown is "-" in text and missing in JSON.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/common/cli_output.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "cli/top/top.h"

#define NS_PER_S INT64_C(1000000000)
/*
 * For the first answer of vendor tools, queried in two ways, and for values that should be there by
 * now.
 */
#define USERS_NS (5 * NS_PER_S)
#define DEVICES_NS (4 * NS_PER_S)
#define GRACE_NS (2 * NS_PER_S)
#define NAP_NS INT64_C(20000000)

/* ---- text ---- */

static void put_shown(struct ts_text *out, const char *text)
{
	ts_text_append_shown(out, text, strlen(text));
}

static void put_machine(struct ts_text *out, const struct ts_top *top)
{
	const double *system = top->system;
	char a[32], b[32], c[32], d[32], text[160];

	ts_top_format_host(text, sizeof(text));
	ts_text_append_str(out, "tracesmith top  ");
	put_shown(out, text);
	ts_top_format_load(top, text, sizeof(text));
	ts_text_printf(out, "  %s  %zu process%s\n", text, top->process_count,
		       top->process_count == 1 ? "" : "es");
	ts_text_printf(out, "cpu %s%%: user %s, system %s, iowait %s\n",
		       ts_top_format_percent(a, sizeof(a), ts_top_busy_percent(top)),
		       ts_top_format_percent(b, sizeof(b), system[TS_TOP_CPU_USER]),
		       ts_top_format_percent(c, sizeof(c), system[TS_TOP_CPU_SYSTEM]),
		       ts_top_format_percent(d, sizeof(d), system[TS_TOP_CPU_IOWAIT]));
	ts_text_printf(out, "memory %s of %s: available %s, swap used %s\n",
		       ts_top_format_bytes(a, sizeof(a), system[TS_TOP_MEMORY_USED]),
		       ts_top_format_bytes(b, sizeof(b), top->memory_total),
		       ts_top_format_bytes(c, sizeof(c), system[TS_TOP_MEMORY_AVAILABLE]),
		       ts_top_format_bytes(d, sizeof(d), system[TS_TOP_SWAP_USED]));
}

static void put_devices(struct ts_text *out, const struct ts_top *top)
{
	for (size_t i = 0; i < top->device_count; i++) {
		const struct ts_top_device *device = &top->devices[i];
		const struct ts_top_subject *values = ts_top_device_values(top, device->number);
		TS_SCOPED(ts_text) text = { 0 };
		char name[128], percent[32];

		ts_top_format_device_name(device, name, sizeof(name));
		put_shown(out, name);
		if (!values) {
			ts_text_append_str(out, ": no data\n");
			continue;
		}
		ts_top_describe_device(device, values, &text);
		ts_text_printf(out, ": %s%%",
			       ts_top_format_percent(percent, sizeof(percent),
						     values->values[TS_TOP_DEVICE_PERCENT]));
		put_shown(out, ts_text_cstr(&text));
		ts_text_append_char(out, '\n');
	}
}

/* "note: host: TEXT"; `source` may be NULL. */
static void put_note(struct ts_text *out, const char *source, const char *text)
{
	TS_SCOPED(ts_text) line = { 0 };

	ts_text_printf(&line, "note: %s%s%s", source ? source : "", source ? ": " : "", text);
	ts_text_append_wrapped(out, ts_text_cstr(&line), 0, 2, ts_terminal_stdout_width());
	ts_text_append_char(out, '\n');
}

static void put_messages(struct ts_text *out, const struct ts_top *top)
{
	for (size_t i = 0; i < top->message_count; i++)
		put_note(out, top->messages[i].source, top->messages[i].text);
	if (top->note[0])
		put_note(out, NULL, top->note);
}

static int put_table(const struct ts_top *top, struct ts_top_view *view, struct ts_error *err)
{
	struct ts_text_table table;
	int rc;

	ts_text_table_init(&table);
	for (size_t i = 0; i < TS_TOP_COLUMNS; i++) {
		const struct ts_top_column_info *column = ts_top_column((enum ts_top_column)i);

		if (!column->of_devices || top->uses_accelerators)
			ts_text_table_add_column(&table, column->title, column->right);
	}
	for (size_t row = 0; row < view->row_count; row++) {
		for (size_t i = 0; i < TS_TOP_COLUMNS; i++) {
			char buffer[TS_TOP_CELL_BYTES];
			const char *text;

			if (ts_top_column((enum ts_top_column)i)->of_devices &&
			    !top->uses_accelerators)
				continue;
			ts_top_format_cell(view->rows[row], (enum ts_top_column)i,
					   view->full_command, buffer, &text);
			ts_text_table_str(&table, text);
		}
		ts_text_table_end_row(&table);
	}
	rc = ts_text_table_finish(&table, err);
	ts_text_table_release(&table);
	return rc;
}

static int put_text(const struct ts_top *top, struct ts_top_view *view, struct ts_error *err)
{
	struct ts_text *out = ts_stdout();
	int rc;

	put_machine(out, top);
	put_devices(out, top);
	put_messages(out, top);
	if (view->row_count) {
		ts_text_append_char(out, '\n');
		rc = put_table(top, view, err);
		return rc || !top->samples_python
			       ? rc
			       : ts_top_python_put_text(&top->python_snapshot, err);
	}
	ts_report_note(
		"%s",
		top->requested_count
			? "the process has exited"
			: "no process has a TraceSmith agent or uses an accelerator: start one with 'tracesmith record -- CMD', or see all with 'tracesmith top -a'");
	return TS_OK;
}

/* ---- JSON ---- */

static void put_key(struct ts_text *out, const char *key)
{
	const char before = out->length ? out->data[out->length - 1] : '{';

	if (before != '{' && before != '[')
		ts_text_append_char(out, ',');
	ts_text_printf(out, "\"%s\":", key);
}

static void put_string(struct ts_text *out, const char *key, const char *text)
{
	put_key(out, key);
	ts_text_append_json(out, text, strlen(text));
}

static void put_real(struct ts_text *out, const char *key, double value)
{
	if (isnan(value))
		return;
	put_key(out, key);
	ts_text_append_double(out, value);
}

static void put_integer(struct ts_text *out, const char *key, double value)
{
	if (isnan(value))
		return;
	put_key(out, key);
	ts_text_append_int(out, (int64_t)value);
}

static void put_bool(struct ts_text *out, const char *key, bool value)
{
	put_key(out, key);
	ts_text_append_str(out, value ? "true" : "false");
}

static void put_json_machine(struct ts_text *out, const struct ts_top *top)
{
	const double *system = top->system;

	put_key(out, "system");
	ts_text_append_char(out, '{');
	put_real(out, "load_1", top->load[0]);
	put_real(out, "load_5", top->load[1]);
	put_real(out, "load_15", top->load[2]);
	put_real(out, "cpu_percent", ts_top_busy_percent(top));
	put_real(out, "cpu_user_percent", system[TS_TOP_CPU_USER]);
	put_real(out, "cpu_system_percent", system[TS_TOP_CPU_SYSTEM]);
	put_real(out, "cpu_iowait_percent", system[TS_TOP_CPU_IOWAIT]);
	put_real(out, "cpu_steal_percent", system[TS_TOP_CPU_STEAL]);
	put_integer(out, "memory_bytes", top->memory_total);
	put_integer(out, "memory_used_bytes", system[TS_TOP_MEMORY_USED]);
	put_integer(out, "memory_available_bytes", system[TS_TOP_MEMORY_AVAILABLE]);
	put_integer(out, "swap_used_bytes", system[TS_TOP_SWAP_USED]);
	ts_text_append_char(out, '}');
}

static void put_json_device(struct ts_text *out, const struct ts_top *top,
			    const struct ts_top_device *device)
{
	const struct ts_top_subject *values = ts_top_device_values(top, device->number);

	put_integer(out, "device", ts_metrics_device_number(device->number));
	put_string(out, "vendor", device->vendor);
	put_string(out, "model", device->model);
	put_integer(out, "memory_bytes", device->memory_bytes);
	if (!values)
		return;
	put_real(out, "utilization_percent", values->values[TS_TOP_DEVICE_PERCENT]);
	put_integer(out, "memory_used_bytes", values->values[TS_TOP_DEVICE_MEMORY]);
	put_real(out, "power_W", values->values[TS_TOP_DEVICE_POWER]);
	put_real(out, "temperature_C", values->values[TS_TOP_DEVICE_TEMPERATURE]);
	put_real(out, "clock_MHz", values->values[TS_TOP_DEVICE_CLOCK]);
	put_real(out, "memory_clock_MHz", values->values[TS_TOP_DEVICE_MEMORY_CLOCK]);
	if (values->throttled_ns)
		put_string(out, "throttled", values->throttled);
}

static void put_json_recorder(struct ts_text *out, const struct ts_top_process *process)
{
	static const char *const states[] = {
		[TS_TOP_NO_AGENT] = "no_agent", [TS_TOP_FLIGHT] = "flight",
		[TS_TOP_RECORDED] = "recorded", [TS_TOP_RECORDER_DEAD] = "recorder_dead",
		[TS_TOP_DISABLED] = "disabled",
	};

	put_string(out, "recording", states[process->recorded]);
	if (process->recorded == TS_TOP_NO_AGENT)
		return;
	if (process->recorded == TS_TOP_RECORDED)
		put_integer(out, "recorder_pid", process->recorder);
	put_bool(out, "window", !process->window_closed);
	put_integer(out, "events", process->events);
	put_real(out, "events_per_s", process->events_per_s);
	put_bool(out, "events_estimated", process->estimated);
	put_integer(out, "events_lost", process->lost);
}

static void put_json_used(struct ts_text *out, const struct ts_top_device_list *list)
{
	if (!list->count)
		return;
	put_key(out, "devices");
	ts_text_append_char(out, '[');
	for (size_t i = 0; i < list->count; i++) {
		ts_text_append_str(out, i ? ",{" : "{");
		put_string(out, "vendor", list->devices[i].vendor);
		if (list->devices[i].number >= 0)
			put_integer(out, "device", list->devices[i].number);
		ts_text_append_char(out, '}');
	}
	ts_text_append_char(out, ']');
}

static void put_json_process(struct ts_text *out, const struct ts_top_process *process)
{
	const double *values = process->values;
	const char state[2] = { process->state, '\0' };

	put_integer(out, "pid", process->pid);
	put_integer(out, "parent", process->parent);
	put_string(out, "user", process->user);
	put_string(out, "name", process->name);
	put_string(out, "command", process->command);
	put_string(out, "state", state);
	put_real(out, "cpu_percent", values[TS_TOP_CPU]);
	put_real(out, "cpu_time_s", process->cpu_time_s);
	put_integer(out, "rss_bytes", values[TS_TOP_RSS]);
	put_integer(out, "vms_bytes", values[TS_TOP_VMS]);
	put_integer(out, "threads", values[TS_TOP_THREADS]);
	put_json_used(out, &process->devices);
	put_real(out, "device_percent", values[TS_TOP_DEVICE_PERCENT]);
	put_integer(out, "device_memory_bytes", values[TS_TOP_DEVICE_MEMORY]);
	put_json_recorder(out, process);
}

static void put_json_messages(struct ts_text *out, const struct ts_top *top)
{
	put_key(out, "messages");
	ts_text_append_char(out, '[');
	for (size_t i = 0; i < top->message_count; i++) {
		ts_text_append_str(out, i ? ",{" : "{");
		put_string(out, "source", top->messages[i].source);
		put_string(out, "text", top->messages[i].text);
		ts_text_append_char(out, '}');
	}
	ts_text_append_char(out, ']');
	if (top->note[0])
		put_string(out, "note", top->note);
}

static void put_json(const struct ts_top *top, const struct ts_top_view *view)
{
	struct ts_text *out = ts_stdout();

	ts_text_printf(out, "{\"time_ns\":%" PRId64, ts_clock_realtime_ns());
	put_json_machine(out, top);
	put_key(out, "devices");
	ts_text_append_char(out, '[');
	for (size_t i = 0; i < top->device_count; i++) {
		ts_text_append_str(out, i ? ",{" : "{");
		put_json_device(out, top, &top->devices[i]);
		ts_text_append_char(out, '}');
	}
	ts_text_append_char(out, ']');
	put_key(out, "processes");
	ts_text_append_char(out, '[');
	for (size_t i = 0; i < view->row_count; i++) {
		ts_text_append_str(out, i ? ",{" : "{");
		put_json_process(out, view->rows[i]);
		ts_text_append_char(out, '}');
	}
	ts_text_append_char(out, ']');
	if (top->samples_python) {
		put_key(out, "python");
		ts_top_python_put_json(out, &top->python_snapshot);
	}
	put_json_messages(out, top);
	ts_text_append_str(out, "}\n");
}

/* ---- one after another ---- */

static void nap_until(int64_t until_ns)
{
	const struct timespec until = { .tv_sec = until_ns / NS_PER_S,
					.tv_nsec = until_ns % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}

/* The sampler's second sample, which gives the first rates, may be late. */
static int await_values(struct ts_top *top, struct ts_error *err)
{
	int64_t until = ts_clock_monotonic_ns() + GRACE_NS;
	int rc = ts_top_read_values(top, err);

	while (!rc && !ts_top_is_complete(top) && ts_clock_monotonic_ns() < until) {
		nap_until(ts_clock_monotonic_ns() + NAP_NS);
		rc = ts_top_read_values(top, err);
	}
	return rc;
}

static int show(struct ts_top *top, struct ts_top_view *view, bool json, struct ts_error *err)
{
	int rc = ts_top_view_arrange(view, top);

	if (rc)
		return ts_error_set(err, rc, "no memory for the table");
	if (json)
		put_json(top, view);
	else
		rc = put_text(top, view, err);
	return rc ? rc : ts_stdout_flush(err);
}

int ts_top_run_plain(struct ts_top *top, struct ts_top_view *view, bool json, int64_t count)
{
	struct ts_error err;
	int64_t due;
	int rc;

	ts_top_users_wait(top->users, USERS_NS);
	ts_metrics_sampler_wait_first(top->sampler, DEVICES_NS);
	rc = ts_top_refresh(top, &err);
	due = ts_clock_monotonic_ns();
	for (int64_t i = 0; i < count && !rc; i++) {
		if (i && !json)
			ts_text_append_char(ts_stdout(), '\n');
		due = TS_MAX(due + top->delay_ns, ts_clock_monotonic_ns());
		nap_until(due);
		if (i == 0)
			rc = await_values(top, &err);
		if (!rc)
			rc = ts_top_refresh(top, &err);
		if (!rc)
			rc = show(top, view, json, &err);
	}
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}
