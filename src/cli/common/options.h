/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verb's command line as a table: the parser, its errors and --help come from it.
 *
 *	struct ts_string_list names = { 0 };
 *	int64_t limit = -1;
 *	const struct ts_option options[] = {
 *		TS_OPTION_REPEATED("name", 'n', "GLOB", &names, "only rows of this name"),
 *		TS_OPTION_INTEGER("limit", 0, "N", &limit, 0, INT64_MAX, "at most N rows"),
 *	};
 *	const struct ts_command command = { .verb = "view", .options = options, ... };
 *	if (!ts_command_parse(&command, &argc, argv, &exit_code))
 *		return exit_code;
 *
 * Accepted: --name=VALUE, --name VALUE (unless the value is optional), -n VALUE, -nVALUE, -ab for
 * two flags; `--` ends options; "-" is an operand. Options and operands may mix, unless the
 * operands are a command to run. -h and --help are built in.
 */
#ifndef TS_CLI_COMMON_OPTIONS_H
#define TS_CLI_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ts_option_type {
	TS_OPTION_TYPE_FLAG,     /* bool */
	TS_OPTION_TYPE_TEXT,     /* const char *; the last one counts */
	TS_OPTION_TYPE_INTEGER,  /* int64_t, from minimum to maximum */
	TS_OPTION_TYPE_REPEATED, /* struct ts_string_list; each use adds one string */
	TS_OPTION_TYPE_LIST,     /* the same; each use adds comma-separated strings */
	TS_OPTION_TYPE_MAYBE,    /* const char *; --name gives "", --name=VALUE the value */
	TS_OPTION_TYPE_MODE,     /* no target: ts_output_set_mode() */
};

struct ts_option {
	const char *name; /* without dashes */
	char letter;      /* 0: none */
	enum ts_option_type type;
	const char *value; /* name of the value in --help */
	void *target;      /* unchanged if the option is not given */
	const char *doc;
	int64_t minimum, maximum;
};

#define TS_OPTION_FLAG(name, letter, target, doc)                                  \
	{                                                                          \
		(name), (letter), TS_OPTION_TYPE_FLAG, NULL, (target), (doc), 0, 0 \
	}
#define TS_OPTION_TEXT(name, letter, value, target, doc)                              \
	{                                                                             \
		(name), (letter), TS_OPTION_TYPE_TEXT, (value), (target), (doc), 0, 0 \
	}
#define TS_OPTION_INTEGER(name, letter, value, target, minimum, maximum, doc)                  \
	{                                                                                      \
		(name), (letter), TS_OPTION_TYPE_INTEGER, (value), (target), (doc), (minimum), \
			(maximum)                                                              \
	}
#define TS_OPTION_REPEATED(name, letter, value, target, doc)                              \
	{                                                                                 \
		(name), (letter), TS_OPTION_TYPE_REPEATED, (value), (target), (doc), 0, 0 \
	}
#define TS_OPTION_LIST(name, letter, value, target, doc)                              \
	{                                                                             \
		(name), (letter), TS_OPTION_TYPE_LIST, (value), (target), (doc), 0, 0 \
	}
#define TS_OPTION_MAYBE(name, letter, value, target, doc)                              \
	{                                                                              \
		(name), (letter), TS_OPTION_TYPE_MAYBE, (value), (target), (doc), 0, 0 \
	}

/* For each verb that writes files. */
#define TS_OPTION_MODE                                                                               \
	{                                                                                            \
		"mode", 0, TS_OPTION_TYPE_MODE, "MODE", NULL,                                        \
			"permissions of the files: octal, or umask; default: 0600 (only the owner)", \
			0, 0                                                                         \
	}

/* Values of an option that may be repeated. A zeroed struct is an empty list. */
struct ts_string_list {
	char **items;
	size_t count;
	size_t capacity;
};

void ts_string_list_release(struct ts_string_list *list);

struct ts_command {
	const char *verb;
	const char *operands; /* for the usage line: "TRACE..." */
	const char *about;    /* paragraphs, each a line; --help wraps them */
	const char *examples; /* lines of up to 78 columns, without indentation */
	const char *exits;    /* lines "0  done"; --help wraps them */
	const struct ts_option *options;
	size_t option_count;
	int minimum_operands;
	int maximum_operands; /* -1: any number */
	bool runs_command;    /* operands are a command: everything after the first belongs to it */
};

/*
 * Parses argv[1] and on. True: argv[0 .. argc) now holds the operands only. False: return
 * *ret_exit; the error or the help has been printed.
 */
bool ts_command_parse(const struct ts_command *command, int *argc, char **argv, int *ret_exit);

/* Prints `tracesmith VERB --help` to standard output. */
void ts_command_help(const struct ts_command *command);

#endif
