/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith doctor`: what this machine lets TraceSmith do, why not, and how to fix it.
 * Runs checks and prints what they found.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/recorder/backend_table.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/common/amount.h"
#include "cli/common/cli_output.h"
#include "cli/common/nearest.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "cli/verbs.h"
#include "doctor/doctor.h"
#include "tracesmith_config.h"

#define BOLD "1"
#define GREEN "32"
#define YELLOW "33"
#define RED "31"
#define DIM "2"

/* Where columns begin, and where a line is broken when nothing says how wide it may be. */
#define ID_AT 2
#define STATE_COLUMNS 9
#define LINE_COLUMNS 100
#define LEAST_COLUMNS 24
#define SHOW_WAITING_NS INT64_C(1000000000)
#define LIMIT_LEAST_NS INT64_C(100000000)
#define LIMIT_MOST_NS INT64_C(3600000000000)

struct doctor {
	bool json;
	int64_t limit_ns;
	struct ts_machine machine;
	struct ts_probe *probes;
	size_t count;
	unsigned int states[TS_CHECK_STATES];
	unsigned int *fix_numbers; /* the number of each probe's, 0: none */
	unsigned int fix_count;
	bool basics_work;
	bool is_waiting_shown;
};

/* ---- which checks ---- */

static bool is_requested(const struct ts_check *check, const char *name)
{
	return !strcmp(check->id, name) || !strcmp(check->group, name);
}

static bool is_any_requested(const struct ts_check *check, char **names, int count)
{
	for (int i = 0; i < count; i++) {
		if (is_requested(check, names[i]))
			return true;
	}
	return count == 0;
}

static bool is_known(const char *name)
{
	size_t count;
	const struct ts_check *checks = ts_check_list(&count);

	for (size_t i = 0; i < count; i++)
		if (is_requested(&checks[i], name))
			return true;
	return false;
}

/* Every name must be an id or a group. */
static int check_name(const char *name)
{
	size_t count;
	const struct ts_check *checks = ts_check_list(&count);
	struct ts_nearest nearest;

	ts_nearest_init(&nearest, name);
	for (size_t i = 0; i < count; i++) {
		if (is_requested(&checks[i], name))
			return TS_EXIT_DONE;
		ts_nearest_offer(&nearest, checks[i].id);
		ts_nearest_offer(&nearest, checks[i].group);
	}
	if (nearest.best)
		return ts_report_usage("there is no check '%s'; did you mean '%s'?", name,
				       nearest.best);
	return ts_report_usage("there is no check '%s'; 'tracesmith doctor --json' lists all",
			       name);
}

/* A name that is no check may be a backend that others supply; so may those of the environment. */
static void load_backends(char **names, int name_count)
{
	const char *list = getenv("TRACESMITH_BACKENDS");
	const struct ts_known_backend *known;
	char name[64];

	for (int i = 0; i < name_count; i++)
		if (!is_known(names[i]))
			ts_backend_load(names[i], &known, NULL);
	while (list && *list) {
		size_t length = strcspn(list, ",");

		snprintf(name, sizeof(name), "%.*s", (int)length, list);
		if (length && length < sizeof(name) && !is_known(name))
			ts_backend_load(name, &known, NULL);
		list += length + (list[length] == ',');
	}
}

static int choose(struct doctor *doctor, char **names, int name_count)
{
	size_t count;
	const struct ts_check *checks;

	load_backends(names, name_count);
	checks = ts_check_list(&count);
	for (int i = 0; i < name_count; i++) {
		int code = check_name(names[i]);

		if (code)
			return code;
	}
	doctor->probes = calloc(count, sizeof(*doctor->probes));
	doctor->fix_numbers = calloc(count, sizeof(*doctor->fix_numbers));
	if (!doctor->probes || !doctor->fix_numbers) {
		struct ts_error err;

		ts_error_set(&err, TS_ENOMEM, "no memory");
		return ts_report_error(&err);
	}
	for (size_t i = 0; i < count; i++) {
		if (is_any_requested(&checks[i], names, name_count))
			doctor->probes[doctor->count++].check = &checks[i];
	}
	return TS_EXIT_DONE;
}

/* ---- running them ---- */

static bool fails_basic(const struct ts_probe *probe)
{
	return probe->check->is_basic && probe->finding.state != TS_CHECK_YES &&
	       probe->finding.state != TS_CHECK_LIMITED;
}

/* Was anything asked for that says whether recording works? */
static bool has_basic(const struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->count; i++) {
		if (doctor->probes[i].check->is_basic)
			return true;
	}
	return false;
}

static void on_waiting(void *context, const struct ts_probe *probes, size_t count, int64_t since_ns)
{
	struct doctor *doctor = context;
	TS_SCOPED(ts_text) line = { 0 };
	size_t line_columns = ts_terminal_stderr_width();

	if (since_ns < SHOW_WAITING_NS || !ts_terminal_stderr())
		return;
	ts_text_printf(&line, "%" PRId64 " s, waiting for", since_ns / 1000000000);
	for (size_t i = 0; i < count; i++) {
		if (!probes[i].is_done)
			ts_text_printf(&line, " %s", probes[i].check->id);
	}
	fprintf(stderr, "\r\033[K%.*s",
		(int)TS_MIN(line.length, line_columns ? line_columns - 1 : 79),
		ts_text_cstr(&line));
	fflush(stderr);
	doctor->is_waiting_shown = true;
}

static void run(struct doctor *doctor)
{
	struct ts_probe_options options = {
		.limit_ns = doctor->limit_ns,
		.waiting = on_waiting,
		.context = doctor,
	};

	/* Whoever started us may ignore the ends of children. */
	signal(SIGCHLD, SIG_DFL);
	ts_machine_look(&doctor->machine);
	ts_probes_run(doctor->probes, doctor->count, &doctor->machine, &options);
	if (doctor->is_waiting_shown)
		fputs("\r\033[K", stderr);
	doctor->basics_work = true;
	for (size_t i = 0; i < doctor->count; i++) {
		doctor->states[doctor->probes[i].finding.state]++;
		if (fails_basic(&doctor->probes[i]))
			doctor->basics_work = false;
	}
}

/* ---- text ---- */

static void begin_style(const char *style)
{
	if (ts_terminal_colour())
		ts_text_printf(ts_stdout(), "\033[%sm", style);
}

static void end_style(void)
{
	if (ts_terminal_colour())
		ts_text_append_str(ts_stdout(), "\033[0m");
}

static void put_styled(const char *style, const char *text)
{
	begin_style(style);
	ts_text_append_str(ts_stdout(), text);
	end_style();
}

static void put_blanks(size_t count)
{
	while (count--)
		ts_text_append_char(ts_stdout(), ' ');
}

static void start_line(size_t at)
{
	ts_text_append_char(ts_stdout(), '\n');
	put_blanks(at);
}

/* What fits of a word that is too long for a line, in bytes: a path is broken behind a slash. */
static size_t fit_word(const char *word, size_t bytes, size_t line_columns)
{
	size_t fits = 0, slash = 0;

	for (size_t end = 1; end <= bytes; end++) {
		/* In front of a byte that continues a character nothing can end. */
		if (end < bytes && ((unsigned char)word[end] & 0xc0) == 0x80)
			continue;
		if (ts_text_shown_width(word, end) > line_columns)
			break;
		fits = end;
		if (word[end - 1] == '/')
			slash = end;
	}
	return slash > fits / 2 ? slash : TS_MAX(fits, 1);
}

static size_t columns_from(size_t at, size_t width)
{
	return width > at + LEAST_COLUMNS ? width - at : LEAST_COLUMNS;
}

/*
 * Words from column `at` on; lines that follow begin there. Control characters are shown as
 * escapes.
 */
static void put_wrapped(const char *text, size_t at)
{
	size_t width = ts_terminal_stdout_width(), used = 0, line_columns;
	TS_SCOPED(ts_text) shown = { 0 };

	ts_text_append_shown(&shown, text, strlen(text));
	text = ts_text_cstr(&shown);
	line_columns = columns_from(at, width ? width : LINE_COLUMNS);
	while (*text) {
		size_t bytes = strcspn(text, " "), columns = ts_text_shown_width(text, bytes);

		if (used && used + 1 + columns > line_columns) {
			start_line(at);
			used = 0;
		}
		while (width && columns > line_columns) {
			size_t fits = fit_word(text, bytes, line_columns);

			ts_text_append(ts_stdout(), text, fits);
			start_line(at);
			text += fits;
			bytes -= fits;
			columns = ts_text_shown_width(text, bytes);
		}
		if (used)
			ts_text_append_char(ts_stdout(), ' ');
		ts_text_append(ts_stdout(), text, bytes);
		used += columns + (used != 0);
		text += bytes + strspn(text + bytes, " ");
	}
	ts_text_append_char(ts_stdout(), '\n');
}

/* Length of the first word of a command. A blank that is quoted belongs to it. */
static size_t command_word(const char *command)
{
	char quote = '\0';
	size_t length = 0;

	for (; command[length] && (quote || command[length] != ' '); length++) {
		char c = command[length];

		if (c == '\\' && quote != '\'' && command[length + 1])
			length++;
		else if (quote ? c == quote : c == '\'' || c == '"')
			quote = quote ? '\0' : c;
	}
	return length;
}

/*
 * A command to copy. On a terminal lines end in a backslash where it does not fit; nothing else is
 * added, so a word that is too long stays.
 */
static void put_command(const char *command, size_t at)
{
	size_t width = ts_terminal_stdout_width(), used = 0;

	while (*command) {
		size_t bytes = command_word(command);
		size_t columns = ts_text_shown_width(command, bytes), rest = command[bytes] ? 2 : 0;

		if (width && used && used + 1 + columns + rest > columns_from(at, width)) {
			ts_text_append_str(ts_stdout(), " \\");
			start_line(at);
			used = 0;
		}
		if (used)
			ts_text_append_char(ts_stdout(), ' ');
		ts_text_append(ts_stdout(), command, bytes);
		used += columns + (used != 0);
		command += bytes + strspn(command + bytes, " ");
	}
	ts_text_append_char(ts_stdout(), '\n');
}

static const char *style_of(enum ts_check_state state)
{
	switch (state) {
	case TS_CHECK_YES:
		return GREEN;
	case TS_CHECK_NO:
		return RED;
	case TS_CHECK_ABSENT:
		return DIM;
	default:
		return YELLOW;
	}
}

static bool has_fix(const struct ts_probe *probe)
{
	return probe->finding.state != TS_CHECK_YES &&
	       (probe->finding.fix[0] || probe->finding.note[0]);
}

/* The same command is listed once. */
static void number_fixes(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->count; i++) {
		const struct ts_finding *finding = &doctor->probes[i].finding;

		if (!has_fix(&doctor->probes[i]))
			continue;
		for (size_t j = 0; j < i && !doctor->fix_numbers[i]; j++) {
			if (doctor->fix_numbers[j] &&
			    !strcmp(doctor->probes[j].finding.fix, finding->fix) &&
			    !strcmp(doctor->probes[j].finding.note, finding->note))
				doctor->fix_numbers[i] = doctor->fix_numbers[j];
		}
		if (!doctor->fix_numbers[i])
			doctor->fix_numbers[i] = ++doctor->fix_count;
	}
}

static size_t longest_id(const struct doctor *doctor)
{
	size_t longest = 0;

	for (size_t i = 0; i < doctor->count; i++)
		longest = TS_MAX(longest, strlen(doctor->probes[i].check->id));
	return longest;
}

static void show_row(const struct doctor *doctor, size_t index, size_t id_columns)
{
	const struct ts_probe *probe = &doctor->probes[index];
	const struct ts_check *check = probe->check;
	const struct ts_finding *finding = &probe->finding;
	const char *state = ts_check_state_name(finding->state);
	TS_SCOPED(ts_text) why = { 0 };

	put_blanks(ID_AT);
	ts_text_append_str(ts_stdout(), check->id);
	put_blanks(id_columns - strlen(check->id) + 2);
	put_styled(style_of(finding->state), state);
	ts_text_append_char(ts_stdout(), check->used_by ? ' ' : '*');
	put_blanks(STATE_COLUMNS - strlen(state));
	ts_text_append_str(&why, finding->text);
	if (check->caution && finding->state != TS_CHECK_ABSENT)
		ts_text_printf(&why, " (%s)", check->caution);
	if (doctor->fix_numbers[index])
		ts_text_printf(&why, " [%u]", doctor->fix_numbers[index]);
	put_wrapped(ts_text_cstr(&why), ID_AT + id_columns + 2 + STATE_COLUMNS + 1);
}

static void show_header(const struct doctor *doctor)
{
	const struct ts_machine *machine = &doctor->machine;
	const struct ts_capability_name *capability = ts_capability_names();
	TS_SCOPED(ts_text) line = { 0 };
	bool has_any = false;

	ts_text_printf(&line, "tracesmith %s, Linux %s %s, %s", TS_VERSION_STRING, machine->kernel,
		       machine->architecture,
		       machine->system[0] ? machine->system : "unknown system");
	if (machine->virtual)
		ts_text_append_str(&line, ", virtual machine");
	if (machine->container)
		ts_text_printf(&line, ", %s%s", ts_container_name(machine->container),
			       machine->container == TS_CONTAINER_OTHER ? "" : " container");
	ts_text_printf(&line, ", uid %u%s, capabilities:", (unsigned int)machine->uid,
		       machine->user_namespace ? " of a user namespace" : "");
	for (; capability->name; capability++) {
		if (!ts_machine_has(machine, capability->number))
			continue;
		ts_text_printf(&line, " %s", capability->name);
		has_any = true;
	}
	ts_text_append_str(&line, has_any ? "" : " none that matter");
	if (machine->seccomp)
		ts_text_append_str(&line, ", seccomp");
	if (machine->no_new_privileges)
		ts_text_append_str(&line, ", no new privileges (sudo and setcap have no effect)");
	put_wrapped(ts_text_cstr(&line), 0);
}

static void show_fixes(const struct doctor *doctor)
{
	unsigned int number = 0;

	if (!doctor->fix_count)
		return;
	ts_text_append_char(ts_stdout(), '\n');
	put_styled(BOLD, "to fix");
	ts_text_append_char(ts_stdout(), '\n');
	for (size_t i = 0; i < doctor->count; i++) {
		const struct ts_finding *finding = &doctor->probes[i].finding;

		if (doctor->fix_numbers[i] <= number)
			continue;
		number++;
		ts_text_printf(ts_stdout(), "  [%u]%s ", number, number < 10 ? " " : "");
		if (finding->fix[0])
			put_command(finding->fix, 7);
		if (finding->fix[0] && finding->note[0])
			put_blanks(7);
		if (finding->note[0])
			put_wrapped(finding->note, 7);
	}
}

static bool shows_unused(const struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->count; i++) {
		if (!doctor->probes[i].check->used_by)
			return true;
	}
	return false;
}

static void show_verdict(const struct doctor *doctor)
{
	TS_SCOPED(ts_text) verdict = { 0 };

	ts_text_append_str(&verdict, doctor->basics_work ? "recording works on this machine"
							 : "recording does not "
							   "work on this machine:");
	for (size_t i = 0; i < doctor->count; i++) {
		if (fails_basic(&doctor->probes[i]))
			ts_text_printf(&verdict, " %s", doctor->probes[i].check->id);
	}
	begin_style(doctor->basics_work ? GREEN : RED);
	put_wrapped(ts_text_cstr(&verdict), 0);
	end_style();
}

static void show_summary(const struct doctor *doctor)
{
	TS_SCOPED(ts_text) counts = { 0 };

	ts_text_append_char(ts_stdout(), '\n');
	if (shows_unused(doctor))
		put_wrapped("* not used by TraceSmith yet; shows what this machine allows", 0);
	if (doctor->machine.uid == 0)
		put_wrapped(
			"checked as root: run it also as the user who will record, who may have "
			"fewer permissions",
			0);
	ts_text_printf(&counts, "%u yes, %u limited, %u no, %u absent, %u unknown",
		       doctor->states[TS_CHECK_YES], doctor->states[TS_CHECK_LIMITED],
		       doctor->states[TS_CHECK_NO], doctor->states[TS_CHECK_ABSENT],
		       doctor->states[TS_CHECK_UNKNOWN]);
	put_wrapped(ts_text_cstr(&counts), 0);
	if (has_basic(doctor))
		show_verdict(doctor);
}

static void show_text(struct doctor *doctor)
{
	size_t columns = longest_id(doctor);
	const char *group = "";

	number_fixes(doctor);
	show_header(doctor);
	for (size_t i = 0; i < doctor->count; i++) {
		const struct ts_check *check = doctor->probes[i].check;

		if (strcmp(check->group, group) != 0) {
			ts_text_append_char(ts_stdout(), '\n');
			put_styled(BOLD, check->group);
			ts_text_append_char(ts_stdout(), '\n');
			group = check->group;
		}
		show_row(doctor, i, columns);
	}
	show_fixes(doctor);
	show_summary(doctor);
}

/* ---- JSON ---- */

static void put_text(struct ts_text *out, const char *key, const char *text)
{
	ts_text_printf(out, "\"%s\":", key);
	if (text && *text)
		ts_text_append_json(out, text, strlen(text));
	else
		ts_text_append_str(out, "null");
	ts_text_append_char(out, ',');
}

static void put_setting(struct ts_text *out, const char *key, int value)
{
	if (value == TS_SETTING_NONE)
		ts_text_printf(out, "\"%s\":null,", key);
	else
		ts_text_printf(out, "\"%s\":%d,", key, value);
}

static const char *bool_text(bool value)
{
	return value ? "true" : "false";
}

static void show_json_machine(struct ts_text *out, const struct ts_machine *machine)
{
	const struct ts_capability_name *capability = ts_capability_names();
	const char *separator = "";

	ts_text_append_str(out, "\"system\":{");
	put_text(out, "kernel", machine->kernel);
	put_text(out, "architecture", machine->architecture);
	put_text(out, "name", machine->system);
	put_text(out, "container", ts_container_name(machine->container));
	put_text(out, "container_signs", machine->container_signs);
	put_setting(out, "yama_ptrace_scope", machine->yama);
	put_setting(out, "perf_event_paranoid", machine->perf_paranoid);
	put_setting(out, "unprivileged_bpf_disabled", machine->bpf_disabled);
	ts_text_printf(
		out,
		"\"virtual\":%s,\"user_namespace\":%s,\"pid_namespace\":%s,\"no_new_privileges\":%s,"
		"\"seccomp\":%d,\"uid\":%u,\"capabilities\":[",
		bool_text(machine->virtual), bool_text(machine->user_namespace),
		bool_text(machine->private_pid_namespace), bool_text(machine->no_new_privileges),
		machine->seccomp, (unsigned int)machine->uid);
	for (; capability->name; capability++) {
		if (ts_machine_has(machine, capability->number)) {
			ts_text_printf(out, "%s\"%s\"", separator, capability->name);
			separator = ",";
		}
	}
	ts_text_append_str(out, "]},\n");
}

static void show_json_check(struct ts_text *out, const struct ts_probe *probe)
{
	const struct ts_check *check = probe->check;

	ts_text_append_char(out, '{');
	put_text(out, "id", check->id);
	put_text(out, "group", check->group);
	put_text(out, "title", check->title);
	put_text(out, "state", ts_check_state_name(probe->finding.state));
	put_text(out, "why", probe->finding.text);
	put_text(out, "fix", probe->finding.fix);
	put_text(out, "fix_note", probe->finding.note);
	put_text(out, "used_by", check->used_by);
	put_text(out, "caution", check->caution);
	ts_text_printf(out, "\"basic\":%s,\"took_ns\":%" PRId64 "}", bool_text(check->is_basic),
		       probe->took_ns);
}

static void show_json(const struct doctor *doctor)
{
	struct ts_text *out = ts_stdout();

	ts_text_printf(out, "{\"doctor\":1,\"tool\":\"%s\",\"basics_work\":%s,\n",
		       TS_VERSION_STRING, bool_text(doctor->basics_work));
	show_json_machine(out, &doctor->machine);
	ts_text_append_str(out, "\"summary\":{");
	for (int state = 0; state < TS_CHECK_STATES; state++)
		ts_text_printf(out, "%s\"%s\":%u", state ? "," : "",
			       ts_check_state_name((enum ts_check_state)state),
			       doctor->states[state]);
	ts_text_append_str(out, "},\n\"checks\":[\n");
	for (size_t i = 0; i < doctor->count; i++) {
		show_json_check(out, &doctor->probes[i]);
		ts_text_append_str(out, i + 1 < doctor->count ? ",\n" : "\n");
	}
	ts_text_append_str(out, "]}\n");
}

/* ---- the verb ---- */

static int check_limit(struct doctor *doctor, const char *limit)
{
	int rc = ts_amount_seconds("limit", limit, &doctor->limit_ns);

	if (!rc && (doctor->limit_ns < LIMIT_LEAST_NS || doctor->limit_ns > LIMIT_MOST_NS))
		rc = ts_report_usage("option '--limit': '%s' is not a time from 0.1 s to an hour",
				     limit);
	return rc;
}

int ts_verb_doctor(int argc, char **argv)
{
	struct doctor doctor = { .limit_ns = TS_PROBE_LIMIT_NS };
	const char *limit = NULL;
	const struct ts_option options[] = {
		TS_OPTION_FLAG("json", 0, &doctor.json, "print one JSON object"),
		TS_OPTION_TEXT("limit", 0, "SECONDS", &limit, "time limit per check; default: 3"),
	};
	const struct ts_command command = {
		.verb = "doctor",
		.operands = "[CHECK...]",
		.about = "Checks what TraceSmith can use on this machine: what works, what does "
			 "not and why, and how to fix it. CHECK is the id of a check, a group of "
			 "checks, or a third-party backend. Default: all checks.\n",
		.examples = "tracesmith doctor\n"
			    "tracesmith doctor cuda perf\n"
			    "tracesmith doctor --json | jq -r '.checks[].fix // empty'",
		.exits =
			"0  recording works\n2  usage error\n4  something that recording needs does not work",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.maximum_operands = -1,
	};
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	exit_code = check_limit(&doctor, limit);
	if (!exit_code)
		exit_code = choose(&doctor, argv, argc);
	if (!exit_code) {
		run(&doctor);
		if (doctor.json)
			show_json(&doctor);
		else
			show_text(&doctor);
		exit_code = doctor.basics_work ? TS_EXIT_DONE : TS_EXIT_CAPABILITY;
	}
	free(doctor.probes);
	free(doctor.fix_numbers);
	return exit_code;
}
