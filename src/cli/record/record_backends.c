/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backends of a recording: which names in --backends are metric sources and which run in the
 * program, the options of backends, and the settings that the program gets for them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorder/backend_table.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/common/nearest.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/record/record.h"
#include "sample/metrics/metric_sources.h"

/* Stacks that the recorder reads. */
#define PYTHON "python"

bool ts_record_runs_in_program(const struct ts_record *record, const char *name)
{
	return ts_backend_is_listed(record->launch.backends, name);
}

/* ---- names ---- */

/* Appends a name to a comma-separated list, if it fits. */
static bool append(char *list, size_t bytes, const char *name)
{
	size_t used = strlen(list);

	if (used + strlen(name) + 2 > bytes)
		return false;
	snprintf(list + used, bytes - used, "%s%s", used ? "," : "", name);
	return true;
}

static bool is_metric_source(const char *name)
{
	const struct ts_metrics_source *const *sources = ts_metrics_sources();

	for (size_t i = 0; sources[i]; i++)
		if (strcmp(sources[i]->name, name) == 0)
			return true;
	return strcmp(name, "host") == 0;
}

/* Suggests a similar name, or lists all. */
static int unknown_backend(const char *name, const struct ts_error *why)
{
	const struct ts_metrics_source *const *sources = ts_metrics_sources();
	const struct ts_known_backend *known;
	TS_SCOPED(ts_text) names = { 0 };
	struct ts_nearest nearest;

	ts_nearest_init(&nearest, name);
	for (size_t i = 0; (known = ts_backend_known(i)); i++) {
		if (known->backend.unavailable)
			continue;
		ts_nearest_offer(&nearest, known->backend.name);
		ts_text_printf(&names, "%s, ", known->backend.name);
	}
	for (size_t i = 0; sources[i]; i++) {
		ts_nearest_offer(&nearest, sources[i]->name);
		ts_text_printf(&names, "%s, ", sources[i]->name);
	}
	ts_nearest_offer(&nearest, "host");
	ts_nearest_offer(&nearest, PYTHON);
	/* The list may be that of the environment: no option is named. */
	if (nearest.best)
		return ts_report_usage("there is no backend '%s'; did you mean '%s'?", name,
				       nearest.best);
	return ts_report_usage("%s; built-in backends are %shost and " PYTHON, why->message,
			       ts_text_cstr(&names));
}

/*
 * The recorder samples metric sources; built-in backends run in the program; external backends may
 * do both.
 */
static int sort_name(struct ts_record *record, const char *name, bool *ret_fits)
{
	const struct ts_known_backend *known = ts_backend_find(name);
	const struct ts_metrics_source *source;
	struct ts_error err;
	int rc = TS_OK;

	*ret_fits = true;
	if (strcmp(name, PYTHON) == 0) {
		record->python.samples = true;
		return TS_EXIT_DONE;
	}
	if (known && known->backend.unavailable) {
		ts_report_warning("backend '%s' cannot record: %s", name,
				  known->backend.unavailable);
		return TS_EXIT_DONE;
	}
	if (known && known->is_built_in) {
		if (!record->command)
			return ts_report_usage(
				"option '--backends': '%s' must be loaded when the program "
				"starts: use tracesmith record --backends %s -- CMD, or see 'man "
				"tracesmith-record'",
				name, name);
		*ret_fits = append(record->agent_backends, sizeof(record->agent_backends), name);
		return TS_EXIT_DONE;
	}
	if (!is_metric_source(name)) {
		*ret_fits = append(record->agent_backends, sizeof(record->agent_backends), name);
		rc = ts_metrics_source_find(name, &source, &err);
	}
	if (!rc)
		*ret_fits &= append(record->sources, sizeof(record->sources), name);
	if (rc == TS_ENOTFOUND)
		return unknown_backend(name, &err);
	return rc && !record->command ? ts_report_error(&err) : TS_EXIT_DONE;
}

static void choose_built_in(struct ts_record *record)
{
	const struct ts_known_backend *known;

	for (size_t i = 0; (known = ts_backend_known(i)); i++)
		if (known->is_built_in && !known->backend.unavailable)
			append(record->agent_backends, sizeof(record->agent_backends),
			       known->backend.name);
}

int ts_record_backends(struct ts_record *record, const char *list)
{
	record->samples = !list || strcmp(list, "none") != 0;
	record->launch.backends = record->samples ? record->agent_backends : NULL;
	record->names_backends = list != NULL;
	/* Ten stacks a second cost about a thousandth of a CPU. */
	record->python.samples = !list;
	if (!list)
		choose_built_in(record);
	if (!list || !record->samples)
		return TS_EXIT_DONE;
	while (*list) {
		size_t length = strcspn(list, ",");
		char name[64];
		bool fits = length < sizeof(name);
		int code = TS_EXIT_DONE;

		snprintf(name, sizeof(name), "%.*s", (int)length, list);
		if (fits && length)
			code = sort_name(record, name, &fits);
		if (code)
			return code;
		if (!fits)
			return ts_report_usage("option '--backends': the list is too long at '%s'",
					       name);
		list += length + (list[length] == ',');
	}
	record->samples = record->sources[0] != '\0';
	return TS_EXIT_DONE;
}

/* ---- options, before the command line is parsed ---- */

/* Loads the backends of a --backends list; a name that cannot be loaded is reported later. */
static void load_listed(const char *list)
{
	while (list && *list) {
		const struct ts_known_backend *known;
		size_t length = strcspn(list, ",");
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)length, list);
		if (length && length < sizeof(name) && strcmp(name, "none") != 0 &&
		    strcmp(name, PYTHON) != 0 && !is_metric_source(name))
			ts_backend_load(name, &known, NULL);
		list += length + (list[length] == ',');
	}
}

static const struct ts_option *option_of(const struct ts_option *options, size_t count,
					 const char *argument)
{
	for (size_t i = 0; i < count; i++) {
		if (argument[1] == '-' ? !strcmp(options[i].name, argument + 2)
				       : options[i].letter == argument[1] && !argument[2])
			return &options[i];
	}
	return NULL;
}

static bool takes_value(const struct ts_option *option)
{
	return option->type != TS_OPTION_TYPE_FLAG && option->type != TS_OPTION_TYPE_MAYBE;
}

void ts_record_load_backends(const struct ts_option *options, size_t count, int argc, char **argv)
{
	static const char name[] = "--backends";
	const char *list = getenv("TRACESMITH_BACKENDS");
	bool may_be_value = false;

	for (int i = 1; i < argc; i++) {
		const char *argument = argv[i];
		const struct ts_option *option = NULL;

		if (argument[0] != '-' || !argument[1]) {
			/* Either the value of a backend's option, or the program. */
			if (!may_be_value)
				break;
			may_be_value = false;
			continue;
		}
		if (!strcmp(argument, "--"))
			break;
		option = option_of(options, count, argument);
		may_be_value = !option && !strchr(argument, '=');
		if (!strncmp(argument, name, strlen(name)) && argument[strlen(name)] == '=')
			list = argument + strlen(name) + 1;
		if (option && takes_value(option) && ++i < argc && !strcmp(argument, name))
			list = argv[i];
	}
	load_listed(list);
}

size_t ts_record_add_options(struct ts_record_option *values, struct ts_option *options,
			     size_t count, size_t capacity)
{
	static const enum ts_option_type types[] = {
		[TS_BACKEND_OPTION_FLAG] = TS_OPTION_TYPE_FLAG,
		[TS_BACKEND_OPTION_VALUE] = TS_OPTION_TYPE_TEXT,
		[TS_BACKEND_OPTION_OPTIONAL] = TS_OPTION_TYPE_MAYBE,
	};
	const struct ts_known_backend *known;

	for (size_t i = 0; (known = ts_backend_known(i)); i++) {
		const struct ts_backend_option *option = known->backend.options;

		for (; option && option->name && count < capacity &&
		       (size_t)option->type < TS_ARRAY_SIZE(types);
		     option++, values++) {
			values->backend = &known->backend;
			values->option = option;
			snprintf(values->help, sizeof(values->help), "%s: %s", known->backend.name,
				 option->help ? option->help : "");
			options[count++] = (struct ts_option){
				.name = option->name,
				.type = types[option->type],
				.value = option->value,
				.target = option->type == TS_BACKEND_OPTION_FLAG
						  ? (void *)&values->flag
						  : (void *)&values->text,
				.doc = values->help,
			};
		}
	}
	return count;
}

static void append_windows(struct ts_text *text)
{
	const struct ts_known_backend *known;

	for (size_t i = 0; (known = ts_backend_known(i)); i++) {
		const struct ts_backend_window *window = known->backend.windows;

		for (; window && window->name; window++)
			ts_text_printf(text, ", %s (%s%s%s)", window->help ? window->help : "",
				       window->name, window->argument ? ":" : "",
				       window->argument ? window->argument : "");
	}
	ts_text_append_str(text, "; default: always");
}

static void append_names(struct ts_text *text)
{
	const struct ts_metrics_source *const *sources = ts_metrics_sources();
	const struct ts_known_backend *known;
	const char *separator = "; built-in:";

	for (size_t i = 0; sources[i]; i++)
		ts_text_printf(text, ", %s", sources[i]->name);
	for (size_t i = 0; (known = ts_backend_known(i)); i++) {
		if (known->backend.unavailable)
			continue;
		ts_text_printf(
			text, "%s %s (%s)",
			known->is_built_in ? separator : "; third-party:", known->backend.name,
			known->backend.summary ? known->backend.summary : "");
		separator = ",";
	}
}

void ts_record_complete_help(struct ts_option *options, size_t count, char help[2][2048])
{
	for (size_t i = 0; i < count; i++) {
		bool is_window = !strcmp(options[i].name, "window");
		TS_SCOPED(ts_text) text = { 0 };

		if (!is_window && strcmp(options[i].name, "backends") != 0)
			continue;
		ts_text_append_str(&text, options[i].doc);
		(is_window ? append_windows : append_names)(&text);
		snprintf(help[is_window], sizeof(help[0]), "%s", ts_text_cstr(&text));
		options[i].doc = help[is_window];
	}
}

/* ---- settings ---- */

static int check_backend(const struct ts_record *record, const char *backend, const char *option)
{
	if (!record->command)
		return ts_report_usage(
			"'%s' needs backend %s, which must be loaded when the program starts: "
			"tracesmith record -- CMD",
			option, backend);
	if (!ts_record_runs_in_program(record, backend))
		return ts_report_usage("'%s' needs backend %s: add it to '--backends'", option,
				       backend);
	return TS_EXIT_DONE;
}

static int add_setting(struct ts_record *record, const char *key, const char *value)
{
	size_t used = strlen(record->settings);

	if (strchr(value, ';') || used + strlen(key) + strlen(value) + 3 > sizeof(record->settings))
		return ts_report_usage("backend setting '%s' is too long or contains ';'", key);
	snprintf(record->settings + used, sizeof(record->settings) - used, "%s%s=%s",
		 used ? ";" : "", key, value);
	record->launch.settings = record->settings;
	return TS_EXIT_DONE;
}

/* '--python-on calls' adds Python frames to the agent's setting, which a backend's option gives. */
static const char *with_python(const struct ts_record *record,
			       const struct ts_backend_option *option, const char *value)
{
	if (strcmp(option->setting, "stacks") != 0 || !strstr(record->python.stacks, "calls"))
		return value;
	return !strcmp(value, "none") ? "python" : !strcmp(value, "native") ? "all" : value;
}

/* NULL: not given. */
static const char *text_of(const struct ts_record_option *given)
{
	return given->flag ? "1" : given->text;
}

static int read_option(struct ts_record *record, const struct ts_record_option *given)
{
	const struct ts_backend_option *option = given->option;
	const char *text = text_of(given);
	char value[256], why[256] = "", name[80];
	int code;

	if (!text && !option->default_value)
		return TS_EXIT_DONE;
	if (!text) {
		if (!record->command || !ts_record_runs_in_program(record, given->backend->name))
			return TS_EXIT_DONE;
		return add_setting(record, option->setting,
				   with_python(record, option, option->default_value));
	}
	snprintf(value, sizeof(value), "%s", text);
	if (option->parse && option->parse(text, value, sizeof(value), why, sizeof(why)))
		return ts_report_usage("option '--%s': %s", option->name, why);
	snprintf(name, sizeof(name), "--%s", option->name);
	code = check_backend(record, given->backend->name, name);
	return code || !option->setting
		       ? code
		       : add_setting(record, option->setting, with_python(record, option, value));
}

int ts_record_read_settings(struct ts_record *record, const struct ts_record_option *options)
{
	const struct ts_window_spec *window = &record->options.window;
	char name[80];
	int code = TS_EXIT_DONE;

	for (; options->option && !code; options++)
		code = read_option(record, options);
	if (code || window->kind != TS_WINDOW_BACKEND)
		return code;
	snprintf(name, sizeof(name), "--window %s", window->marked->name);
	code = check_backend(record, window->backend->backend.name, name);
	return code ? code : add_setting(record, "window", window->path);
}

/* The last part of a path. */
static const char *file_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int ts_record_check_launcher(const struct ts_record *record)
{
	const struct ts_known_backend *known;

	for (size_t i = 0; record->command && (known = ts_backend_known(i)); i++) {
		const struct ts_backend_launcher *launcher = known->backend.launchers;

		if (!launcher || !ts_record_runs_in_program(record, known->backend.name))
			continue;
		for (; launcher->name; launcher++)
			if (strcmp(file_of(record->command[0]), launcher->name) == 0)
				return ts_report_usage(
					"'%s' %s; use: %s (or leave out %s with '--backends')",
					launcher->name, launcher->why, launcher->instead,
					known->backend.name);
	}
	return TS_EXIT_DONE;
}

int ts_record_check_replayable(const struct ts_record *record)
{
	const struct ts_known_backend *known;
	const struct ts_backend *missing = NULL;
	TS_SCOPED(ts_text) names = { 0 };

	for (size_t i = 0; (known = ts_backend_known(i)); i++) {
		if (!(known->backend.flags & TS_BACKEND_REPLAYABLE))
			continue;
		if (ts_record_runs_in_program(record, known->backend.name))
			return TS_EXIT_DONE;
		if (!missing || missing->unavailable)
			missing = &known->backend;
		ts_text_printf(&names, "%s%s", names.length ? " or " : "", known->backend.name);
	}
	if (missing && missing->unavailable) {
		ts_report_warning("'--replayable' needs backend %s: %s", missing->name,
				  missing->unavailable);
		return TS_EXIT_CAPABILITY;
	}
	return ts_report_usage(
		"'--replayable' needs a backend that captures commands: add %s to '--backends'",
		ts_text_cstr(&names));
}
