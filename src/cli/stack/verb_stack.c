/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith stack` (also `backtrace`): current stacks of Python processes; with --native, of any
 * process. Read-only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/stack/stack_verb.h"
#include "cli/verbs.h"
#include "sample/metrics/device_users.h"

/* Time limit of vendor tools. */
#define TOOLS_NS INT64_C(7000000000)

struct stack {
	bool json, group, children;
	struct ts_stack_options options;
	struct ts_string_list pid_texts;
	/* Processes to capture. */
	struct target {
		pid_t pid;
		bool is_named; /* given by the user */
	} * targets;
	size_t target_count, target_capacity;
	struct ts_map pids; /* of targets */
	/* Results. */
	struct ts_stack_process *processes;
	size_t count;
	bool lacks_capability, lacks_named;
};

/* ---- targets ---- */

static int add_target(struct stack *stack, pid_t pid, bool is_named)
{
	bool is_new;

	if (!ts_map_insert(&stack->pids, (uint64_t)pid, &is_new))
		return TS_ENOMEM;
	if (!is_new)
		return TS_OK;
	if (ts_grow_array((void **)&stack->targets, &stack->target_capacity,
			  stack->target_count + 1, sizeof(*stack->targets)))
		return TS_ENOMEM;
	stack->targets[stack->target_count++] = (struct target){ pid, is_named };
	return TS_OK;
}

static int add_pid(struct stack *stack, const char *text)
{
	int64_t pid;

	if (ts_parse_int64(text, strlen(text), &pid) || pid <= 0 || pid > INT32_MAX)
		return ts_report_usage("'%s' is not a valid process id", text);
	return add_target(stack, (pid_t)pid, true) ? TS_EXIT_INPUT : TS_EXIT_DONE;
}

static void on_child(void *context, pid_t pid, pid_t parent)
{
	/* Out of memory: this child is missing, the rest is still right. */
	add_target(context, pid, false);
}

static void add_children(struct stack *stack)
{
	size_t named = stack->target_count;

	for (size_t i = 0; i < named; i++)
		ts_process_descendants(stack->targets[i].pid, on_child, stack);
}

/* Processes that use an accelerator, except graphics-only ones. */
static int add_users(struct stack *stack)
{
	struct ts_device_users users;
	struct ts_error err;
	int rc = ts_device_users_find(&users, TOOLS_NS, &err);

	if (rc)
		return ts_report_error(&err);
	for (size_t i = 0; i < users.count; i++) {
		if (users.users[i].evidence != TS_DEVICE_USER_BY_RENDER &&
		    users.users[i].pid != getpid())
			add_target(stack, users.users[i].pid, false);
	}
	if (users.message[0])
		ts_report_warning("%s", users.message);
	ts_device_users_release(&users);
	if (!stack->target_count)
		return ts_report_usage(
			"no process given, and none uses an accelerator: use '-p PID'");
	return TS_EXIT_DONE;
}

static int find_targets(struct stack *stack, int operand_count, char **operands)
{
	int rc = TS_EXIT_DONE;

	for (size_t i = 0; i < stack->pid_texts.count && !rc; i++)
		rc = add_pid(stack, stack->pid_texts.items[i]);
	for (int i = 0; i < operand_count && !rc; i++)
		rc = add_pid(stack, operands[i]);
	if (!rc && !stack->target_count)
		rc = add_users(stack);
	if (!rc && stack->children)
		add_children(stack);
	return rc;
}

/* ---- capture ---- */

/* A child without Python is ignored; one that cannot be read is reported. */
static void report_failure(struct stack *stack, const struct target *target,
			   const struct ts_error *err)
{
	stack->lacks_capability |= err->code == TS_ECAP;
	stack->lacks_named |= target->is_named;
	if (target->is_named || err->code != TS_ENOTFOUND)
		ts_report_error(err);
}

static int take_all(struct stack *stack)
{
	stack->processes = calloc(stack->target_count + 1, sizeof(*stack->processes));
	if (!stack->processes) {
		struct ts_error err;

		ts_error_set(&err, TS_ENOMEM, "no memory for %zu processes", stack->target_count);
		return ts_report_error(&err);
	}
	for (size_t i = 0; i < stack->target_count; i++) {
		struct ts_stack_process *process = &stack->processes[stack->count];
		struct ts_error err;
		int rc = ts_stack_capture(process, stack->targets[i].pid, &stack->options, &err);

		if (!rc) {
			stack->count++;
			continue;
		}
		report_failure(stack, &stack->targets[i], &err);
		ts_stack_process_release(process);
		*process = (struct ts_stack_process){ 0 };
	}
	return TS_EXIT_DONE;
}

/* ---- printing ---- */

static int show(const struct stack *stack)
{
	struct ts_text *out = ts_stdout();
	bool colour = ts_terminal_colour();
	struct ts_error err;
	int rc = TS_OK;

	if (stack->group && stack->json)
		rc = ts_stack_put_groups_json(out, stack->processes, stack->count);
	else if (stack->group)
		rc = ts_stack_put_groups_text(out, stack->processes, stack->count, colour);
	for (size_t i = 0; i < stack->count && !stack->group && !rc; i++) {
		if (stack->json) {
			ts_stack_put_json(out, &stack->processes[i]);
		} else {
			if (i)
				ts_text_append_char(out, '\n');
			ts_stack_put_text(out, &stack->processes[i], colour);
		}
		if (ts_stdout_drain(&err))
			return ts_report_error(&err);
	}
	if (!rc)
		return TS_EXIT_DONE;
	ts_error_set(&err, rc, "no memory for groups");
	return ts_report_error(&err);
}

/* Failures set the exit code after all other processes have been printed. */
static int conclude(const struct stack *stack)
{
	if (stack->lacks_capability)
		return TS_EXIT_CAPABILITY;
	if (!stack->count && !stack->lacks_named)
		ts_report_warning(
			"none of the %zu processes runs Python; use '--native' to show others",
			stack->target_count);
	return stack->lacks_named || !stack->count ? TS_EXIT_INPUT : TS_EXIT_DONE;
}

static int run(struct stack *stack, int operand_count, char **operands)
{
	int rc = find_targets(stack, operand_count, operands);

	if (!rc)
		rc = take_all(stack);
	if (!rc)
		rc = show(stack);
	for (size_t i = 0; i < stack->count; i++)
		ts_stack_process_release(&stack->processes[i]);
	free(stack->processes);
	free(stack->targets);
	ts_map_release(&stack->pids);
	return rc ? rc : conclude(stack);
}

int ts_verb_stack(int argc, char **argv)
{
	struct stack stack = { 0 };
	const struct ts_option options[] = {
		TS_OPTION_LIST("pid", 'p', "PID,...", &stack.pid_texts,
			       "these processes (default: those that use accelerators)"),
		TS_OPTION_FLAG("children", 'c', &stack.children, "include their child processes"),
		TS_OPTION_FLAG("native", 'n', &stack.options.native,
			       "add C and C++ frames; also shows processes without Python"),
		TS_OPTION_FLAG("locals", 'l', &stack.options.locals,
			       "show local variables, shortened"),
		TS_OPTION_FLAG(
			"group", 'g', &stack.group,
			"group threads with equal stacks: finds the odd one in a job that hangs"),
		TS_OPTION_FLAG("json", 'j', &stack.json,
			       "one JSON object per line, for each process (--group: each group)"),
	};
	const struct ts_command command = {
		.verb = "stack",
		.operands = "[PID...]",
		.about = "Shows the current stacks of Python threads, innermost frame first. "
			 "Processes keep running; only '--native' may stop a thread briefly, to "
			 "read its registers.\n",
		.examples =
			"tracesmith stack -p 1234\ntracesmith stack -p 1234 --locals\ntracesmith stack --native -p 1234,1235\n"
			"tracesmith stack --group --children -p $(pgrep -o torchrun)\n"
			"tracesmith stack --json 1234 | jq '.threads[].frames[0]'",
		.exits =
			"0  done\n2  usage error\n3  a given process does not exist or does not run Python, or none could be read\n4  access to a process is denied: the message says what is missing",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.maximum_operands = -1,
	};
	int exit_code;

	if (ts_command_parse(&command, &argc, argv, &exit_code))
		exit_code = run(&stack, argc, argv);
	ts_string_list_release(&stack.pid_texts);
	return exit_code;
}
