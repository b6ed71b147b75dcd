/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith config`: shows or changes the settings of a running process, which are fields of its
 * live area. All tracers of the process get the same settings.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <tracesmith/schema.h>

#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "cli/verbs.h"
#include "live/area.h"
#include "live/config.h"
#include "record/loop/process_areas.h"

/* ---- showing ---- */

static int64_t raw_value_of(const struct ts_live_control *control, const struct ts_config_key *key)
{
	int64_t wide;
	int32_t narrow;

	if (key->bytes == sizeof(narrow)) {
		memcpy(&narrow, (const char *)control + key->offset, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, (const char *)control + key->offset, sizeof(wide));
	return wide;
}

/* What a value is called, or NULL. */
static const char *name_of(const struct ts_config_key *key, int64_t raw_value)
{
	if (raw_value == TS_ABSENT)
		return "none";
	for (int64_t i = 0; key->value_names && key->value_names[i]; i++) {
		if (i == raw_value)
			return key->value_names[i];
	}
	return NULL;
}

static void append_number(struct ts_text *out, const struct ts_config_key *key, int64_t raw_value)
{
	double value = (double)raw_value / key->scale;

	if (key->scale == 1)
		ts_text_append_int(out, raw_value);
	else if (floor(value) == value)
		ts_text_append_int(out, (int64_t)value);
	else
		ts_text_append_double(out, value);
}

/* As `config PID key=value` takes it. */
static void append_value(struct ts_text *out, const struct ts_config_key *key, int64_t raw_value)
{
	const char *name = name_of(key, raw_value);
	char size[TS_FORMAT_BYTES];

	if (name)
		ts_text_append_str(out, name);
	else if (key->is_bytes)
		ts_text_append_str(out, ts_format_bytes(size, sizeof(size), (uint64_t)raw_value));
	else
		append_number(out, key, raw_value);
}

static int show_text(const struct ts_live_control *control)
{
	struct ts_text_table table;
	TS_SCOPED(ts_text) value = { 0 };
	TS_SCOPED(ts_text) meaning = { 0 };
	const struct ts_config_key *keys;
	struct ts_error err;
	size_t count;
	int rc;

	keys = ts_config_list(&count);
	ts_text_table_init(&table);
	ts_text_table_add_column(&table, "setting", false);
	ts_text_table_add_column(&table, "value", true);
	ts_text_table_add_column(&table, "meaning", false);
	for (size_t i = 0; i < count; i++) {
		ts_text_clear(&value);
		append_value(&value, &keys[i], raw_value_of(control, &keys[i]));
		ts_text_table_str(&table, keys[i].name);
		ts_text_table_cell(&table, value.data, value.length);
		ts_text_clear(&meaning);
		ts_text_printf(&meaning, "%s%s", keys[i].doc,
			       keys[i].read_only ? " (cannot be changed)" : "");
		ts_text_table_cell(&table, meaning.data, meaning.length);
		ts_text_table_end_row(&table);
	}
	rc = ts_text_table_finish(&table, &err);
	ts_text_table_release(&table);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

static void show_json(pid_t pid, const struct ts_live_control *control)
{
	struct ts_text *out = ts_stdout();
	const struct ts_config_key *keys;
	size_t count;

	keys = ts_config_list(&count);
	ts_text_printf(out, "{\"pid\":%d", (int)pid);
	for (size_t i = 0; i < count; i++) {
		int64_t raw_value = raw_value_of(control, &keys[i]);

		ts_text_append_char(out, ',');
		ts_text_append_json(out, keys[i].name, strlen(keys[i].name));
		ts_text_append_char(out, ':');
		if (raw_value == TS_ABSENT)
			ts_text_append_str(out, "null");
		else
			append_number(out, &keys[i], raw_value);
	}
	ts_text_append_str(out, "}\n");
}

/* ---- changing ---- */

/* All are checked before the first is written. */
static int check_assignments(int count, char **assignments)
{
	const struct ts_config_key *key;
	struct ts_error err;
	int64_t raw_value;

	for (int i = 0; i < count; i++) {
		if (ts_config_parse(assignments[i], &key, &raw_value, &err))
			return ts_report_usage("%s", err.message);
	}
	return TS_EXIT_DONE;
}

static int assign(const struct ts_process_areas *process, const char *assignment,
		  struct ts_error *err)
{
	const struct ts_config_key *key;
	int64_t raw_value;
	int rc = ts_config_parse(assignment, &key, &raw_value, err);

	for (size_t i = 0; !rc && i < process->area_count; i++) {
		TS_AUTO(ts_area) area = NULL;

		rc = ts_area_open(&area, process->directory_fd, process->areas[i].name, true, err);
		if (!rc)
			rc = ts_area_set(area, key->offset, (uint64_t)raw_value, key->bytes, err);
	}
	return rc;
}

/* "process 4711: enabled is off, max_steps is 3" */
static void report_set(pid_t pid, int count, char **assignments)
{
	TS_SCOPED(ts_text) line = { 0 };
	const struct ts_config_key *key;
	int64_t raw_value;

	ts_text_printf(&line, "process %d:", (int)pid);
	for (int i = 0; i < count; i++) {
		if (ts_config_parse(assignments[i], &key, &raw_value, NULL))
			continue;
		ts_text_printf(&line, "%s %s is ", i ? "," : "", key->name);
		append_value(&line, key, raw_value);
	}
	ts_report_note("%s", ts_text_cstr(&line));
}

static int run(pid_t pid, int count, char **assignments, bool json)
{
	TS_AUTO(ts_process_areas) process = NULL;
	struct ts_error err;
	int code = check_assignments(count, assignments);

	if (code)
		return code;
	if (ts_process_areas_open(&process, pid, &err))
		return ts_report_error(&err);
	for (int i = 0; i < count; i++) {
		if (assign(process, assignments[i], &err))
			return ts_report_error(&err);
	}
	if (count && !json) {
		report_set(pid, count, assignments);
		return TS_EXIT_DONE;
	}
	/* Anew, with what was just written. */
	ts_process_areas_close(TS_STEAL(process));
	if (ts_process_areas_open(&process, pid, &err))
		return ts_report_error(&err);
	if (!json)
		return show_text(&process->areas[0].control);
	show_json(pid, &process->areas[0].control);
	return TS_EXIT_DONE;
}

int ts_verb_config(int argc, char **argv)
{
	bool json = false;
	const struct ts_option options[] = {
		TS_TERMINAL_WIDTH_OPTION,
		TS_OPTION_FLAG("json", 0, &json, "all settings as a JSON object"),
	};
	const struct ts_command command = {
		.verb = "config",
		.operands = "PID [KEY=VALUE...]",
		.about = "Shows the settings of a running process that has an agent, or changes "
			 "them.\n",
		.examples = "tracesmith config 4711\ntracesmith config 4711 enabled=off",
		.exits = "0  done\n2  usage error, or an unknown setting\n3  no such process\n"
			 "4  the process has no agent",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.minimum_operands = 1,
		.maximum_operands = -1,
	};
	int64_t pid;
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	if (ts_parse_int64(argv[0], strlen(argv[0]), &pid) || pid < 1 || pid > INT32_MAX)
		return ts_report_usage("'%s' is not a valid process id", argv[0]);
	return run((pid_t)pid, argc - 1, argv + 1, json);
}
