/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rank of a distributed job is recorded (docs/ranks.md): that of this process, as its
 * launcher says; or several, if the program to start is itself a launcher. And the name of the
 * output, which may depend on it.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/local/path_pattern.h"
#include "base/output.h"
#include "base/process.h"
#include "cli/common/report.h"
#include "cli/record/record.h"

/* ---- launchers ---- */

/* Programs that start the ranks of a job: what they themselves have as a rank is of another one. */
static const char *const launchers[] = {
	"torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "mpiexec", "mpiexec.hydra",
	"orterun",  "prterun",    "prun",      "srun",       "jsrun",  "flux",
};

static const char *const modules[] = {
	"torch.distributed.run",
	"torch.distributed.launch",
	"accelerate.commands.launch",
};

static bool is_in(const char *const *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(list[i], name))
			return true;
	return false;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "torchrun", "/usr/bin/python3 /usr/bin/torchrun", "python -m torch.distributed.run". */
static bool is_launcher(char *const *command)
{
	const char *name = base_name(command[0]);

	if (is_in(launchers, TS_ARRAY_SIZE(launchers), name))
		return true;
	if (strncmp(name, "python", strlen("python")) != 0)
		return false;
	for (command++; *command; command++) {
		if (!strcmp(*command, "-m"))
			return command[1] && is_in(modules, TS_ARRAY_SIZE(modules), command[1]);
		if (**command != '-')
			return is_in(launchers, TS_ARRAY_SIZE(launchers), base_name(*command));
		/* Options of Python with a value. */
		if ((!strcmp(*command, "-W") || !strcmp(*command, "-X")) && command[1])
			command++;
	}
	return false;
}

/* ---- ranks ---- */

/* The rank that all processes have; *ret_any: some have one. */
static struct ts_rank common_rank(const struct ts_recorder_options *options, bool *ret_any)
{
	const struct ts_rank none = { 0 };
	struct ts_rank common = none;
	bool differ = false;

	for (size_t i = 0; i < options->pid_count; i++) {
		struct ts_rank rank;

		*ret_any |= ts_process_rank(options->pids[i], &rank);
		differ |= i && !ts_rank_equals(&rank, &common);
		common = rank;
	}
	return differ ? none : common;
}

static void announce(const struct ts_rank *rank)
{
	char text[48];

	if (rank->world_size >= 0)
		snprintf(text, sizeof(text), "rank %d of %d", rank->rank, rank->world_size);
	else
		snprintf(text, sizeof(text), "rank %d", rank->rank);
	ts_report_set_rank(text);
}

void ts_record_find_rank(struct ts_record *record)
{
	struct ts_recorder_options *options = &record->options;
	bool any = false;

	if (options->pid_count) {
		options->rank = common_rank(options, &any);
	} else if (record->command && is_launcher(record->command)) {
		ts_rank_of_self(&options->outer_rank);
		any = true;
	} else if (record->command) {
		/* It may be a script that starts a launcher. */
		any = !ts_rank_of_self(&options->rank);
	}
	record->has_ranks = any && !options->rank.launcher;
	if (options->rank.launcher)
		announce(&options->rank);
}

/* ---- the output ---- */

/* All ranks of this machine, until they are split: other machines may write to the same folder. */
static void name_all(char *text, size_t bytes)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	snprintf(text, bytes, "all-%s", host);
}

static int check_several(const struct ts_record *record)
{
	const struct ts_recorder_options *options = &record->options;
	const char *other = options->split                                ? "split"
			    : options->rotate_bytes || options->rotate_ns ? "rotate"
									  : NULL;

	if (!other)
		return TS_EXIT_DONE;
	return ts_report_usage(
		"'--%s' cannot be combined with the ranks (%%r) of a launcher: start "
		"a recorder in each rank (see 'man tracesmith-record')",
		other);
}

static int expand(struct ts_record *record, const char *output, char *path)
{
	struct ts_path_values values = { .pid = getpid() };
	const struct ts_rank *rank = &record->options.rank;
	char text[300], why[TS_PATH_WHY_BYTES];
	struct ts_error err;

	if (record->options.pid_count == 1)
		values.pid = record->options.pids[0];
	if (rank->launcher) {
		snprintf(text, sizeof(text), "%d", rank->rank);
		values.rank = text;
	} else if (record->has_ranks && ts_path_has_pattern(output, 'r')) {
		name_all(text, sizeof(text));
		values.rank = text;
		record->options.rank_pattern = output;
	}
	if (record->options.rank_pattern && check_several(record))
		return TS_EXIT_USAGE;
	if (!ts_path_expand(output, &values, path, PATH_MAX, why, sizeof(why)))
		return ts_report_usage("option '--output': '%s': %s", output, why);
	return ts_output_make_parents(path, &err) ? ts_report_error(&err) : TS_EXIT_DONE;
}

int ts_record_name_output(struct ts_record *record, const char *output, char *path)
{
	record->options.output = output;
	if (!ts_path_is_pattern(output))
		return TS_EXIT_DONE;
	record->options.output = path;
	return expand(record, output, path);
}
