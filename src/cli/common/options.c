/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a command line by a table of options. Stops at the first error. */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/common/nearest.h"
#include "cli/common/options.h"
#include "cli/common/report.h"

/* Parse position in the command line. */
struct cursor {
	const struct ts_command *command;
	char **argv;
	int argc;
	int at;
};

void ts_string_list_release(struct ts_string_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct ts_string_list){ 0 };
}

static int add_string(struct ts_string_list *list, const char *text, size_t length)
{
	char *copy = strndup(text, length);

	if (!copy || ts_grow_array((void **)&list->items, &list->capacity, list->count + 1,
				   sizeof(*list->items))) {
		free(copy);
		ts_report_warning("no memory for the option's value '%s'", text);
		return TS_EXIT_INPUT;
	}
	list->items[list->count++] = copy;
	return 0;
}

static int add_strings(const struct ts_option *option, const char *text)
{
	for (;;) {
		size_t length = strcspn(text, ",");
		int rc;

		if (length == 0)
			return ts_report_usage("option '--%s' has an empty item in its list",
					       option->name);
		rc = add_string(option->target, text, length);
		if (rc || text[length] == '\0')
			return rc;
		text += length + 1;
	}
}

static int set_integer(const struct ts_option *option, const char *text)
{
	int64_t value;

	if (ts_parse_int64(text, strlen(text), &value))
		return ts_report_usage("option '--%s' needs a number, not '%s'", option->name,
				       text);
	if (value < option->minimum || value > option->maximum) {
		if (option->maximum == INT64_MAX)
			return ts_report_usage("option '--%s' must be at least %" PRId64,
					       option->name, option->minimum);
		return ts_report_usage("option '--%s' must be from %" PRId64 " to %" PRId64,
				       option->name, option->minimum, option->maximum);
	}
	*(int64_t *)option->target = value;
	return 0;
}

static int set_mode(const struct ts_option *option, const char *text)
{
	struct ts_error err;
	mode_t mode;

	if (ts_output_parse_mode(text, &mode, &err))
		return ts_report_usage("option '--%s': %s", option->name, err.message);
	ts_output_set_mode(mode);
	return 0;
}

static int set_value(const struct ts_option *option, const char *text)
{
	switch (option->type) {
	case TS_OPTION_TYPE_FLAG:
		*(bool *)option->target = true;
		return 0;
	case TS_OPTION_TYPE_TEXT:
		*(const char **)option->target = text;
		return 0;
	case TS_OPTION_TYPE_MAYBE:
		*(const char **)option->target = text ? text : "";
		return 0;
	case TS_OPTION_TYPE_INTEGER:
		return set_integer(option, text);
	case TS_OPTION_TYPE_REPEATED:
		return add_string(option->target, text, strlen(text));
	case TS_OPTION_TYPE_LIST:
		return add_strings(option, text);
	case TS_OPTION_TYPE_MODE:
		return set_mode(option, text);
	}
	return 0;
}

static int unknown_option(const struct ts_command *command, const char *name)
{
	struct ts_nearest nearest;

	ts_nearest_init(&nearest, name);
	for (size_t i = 0; i < command->option_count; i++)
		ts_nearest_offer(&nearest, command->options[i].name);
	if (nearest.best)
		return ts_report_usage("unknown option '--%s'; did you mean '--%s'?", name,
				       nearest.best);
	return ts_report_usage("unknown option '--%s'", name);
}

/* An optional value is never the next word. */
static bool goes_alone(const struct ts_option *option)
{
	return option->type == TS_OPTION_TYPE_FLAG || option->type == TS_OPTION_TYPE_MAYBE;
}

/* --name, --name=value, --name value */
static int parse_long(struct cursor *cursor, const char *argument)
{
	const struct ts_option *options = cursor->command->options;
	size_t length = strcspn(argument, "=");
	const char *value = argument[length] ? argument + length + 1 : NULL;
	TS_AUTO_FREE char *name = NULL;

	for (size_t i = 0; i < cursor->command->option_count; i++) {
		if (strncmp(options[i].name, argument, length) || options[i].name[length])
			continue;
		if (options[i].type == TS_OPTION_TYPE_FLAG && value)
			return ts_report_usage("option '--%s' takes no value", options[i].name);
		if (!goes_alone(&options[i]) && !value) {
			if (cursor->at == cursor->argc)
				return ts_report_usage("option '--%s' needs a value: %s",
						       options[i].name, options[i].value);
			value = cursor->argv[cursor->at++];
		}
		return set_value(&options[i], value);
	}
	name = strndup(argument, length);
	return unknown_option(cursor->command, name ? name : argument);
}

static const struct ts_option *find_letter(const struct ts_command *command, char letter)
{
	for (size_t i = 0; i < command->option_count; i++) {
		if (command->options[i].letter == letter)
			return &command->options[i];
	}
	return NULL;
}

/* -a, -ab, -o value, -ovalue */
static int parse_letters(struct cursor *cursor, const char *letters)
{
	for (; *letters; letters++) {
		const struct ts_option *option = find_letter(cursor->command, *letters);
		int rc;

		if (!option)
			return ts_report_usage("unknown option '-%c'", *letters);
		if (!goes_alone(option)) {
			if (letters[1])
				return set_value(option, letters + 1);
			if (cursor->at == cursor->argc)
				return ts_report_usage("option '-%c' needs a value: %s", *letters,
						       option->value);
			return set_value(option, cursor->argv[cursor->at++]);
		}
		rc = set_value(option, NULL);
		if (rc)
			return rc;
	}
	return 0;
}

static int check_operands(const struct ts_command *command, int count, char **operands)
{
	if (command->maximum_operands >= 0 && count > command->maximum_operands)
		return ts_report_usage("unexpected argument '%s'",
				       operands[command->maximum_operands]);
	if (count < command->minimum_operands) {
		/* The first that is missing of "A B", "FILE..." or "PID [KEY=VALUE...]". */
		const char *missing = command->operands;

		for (int i = 0; i < count; i++)
			missing += strcspn(missing, " ") + 1;
		return ts_report_usage("%.*s is missing", (int)strcspn(missing, " .["), missing);
	}
	return 0;
}

bool ts_command_parse(const struct ts_command *command, int *argc, char **argv, int *ret_exit)
{
	struct cursor cursor = { command, argv, *argc, 1 };
	int operands = 0, rc = 0;
	bool only_operands = false;

	while (!rc && cursor.at < cursor.argc) {
		char *argument = argv[cursor.at++];

		/* Operands move to the front, only to slots that were already read. */
		if (only_operands || argument[0] != '-' || argument[1] == '\0') {
			argv[operands++] = argument;
			only_operands |= command->runs_command;
		} else if (!strcmp(argument, "--")) {
			only_operands = true;
		} else if (!strcmp(argument, "--help") || !strcmp(argument, "-h")) {
			ts_command_help(command);
			*ret_exit = TS_EXIT_DONE;
			return false;
		} else if (argument[1] == '-') {
			rc = parse_long(&cursor, argument + 2);
		} else {
			rc = parse_letters(&cursor, argument + 1);
		}
	}
	if (!rc)
		rc = check_operands(command, operands, argv);
	*argc = operands;
	*ret_exit = rc;
	return rc == 0;
}
