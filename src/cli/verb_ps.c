/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tracesmith ps`: lists processes that can be recorded, and what dead ones left; with --devices,
 * processes that use accelerators. Changes nothing unless --clean is given.
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/text.h"
#include "cli/common/cli_output.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "cli/verbs.h"
#include "live/discover.h"
#include "record/loop/process_areas.h"
#include "sample/metrics/device_users.h"

/* Makers' tools get so long; npu-smi gives up after 5 s by itself, and says why. */
#define TOOLS_NS INT64_C(7000000000)

struct ps {
	bool json, all, clean, devices;
	struct ts_text_table table;
	struct ts_text dead;      /* lines below the table */
	unsigned int empty;       /* dead ones that left nothing to save */
	struct ts_pairmap mounts; /* mount namespaces that were looked into */
	int directory_fd;         /* that is being listed */
	uint64_t areas;
	uint64_t rows; /* of the table */
};

/* ---- one area ---- */

static int64_t age_of(const struct ts_live_control *control)
{
	int64_t now = ts_clock_monotonic_ns(), age;

	if (__builtin_sub_overflow(now, control->created.monotonic_ns, &age) || age < 0)
		return 0;
	return age;
}

/* In whole seconds. */
static void format_age(const struct ts_live_control *control, char *buffer, size_t bytes)
{
	int64_t seconds = age_of(control) / 1000000000;

	if (seconds)
		ts_format_duration_ns(buffer, bytes, seconds * 1000000000);
	else
		snprintf(buffer, bytes, "0 s");
}

static const char *mode_of(const struct ts_live_control *control)
{
	if (control->target_state == TS_LIVE_DISABLED)
		return "disabled";
	return control->mode == TS_LIVE_STREAM ? "stream" : "flight";
}

/* The pid, "none" or "dead". */
static void format_recorder(const struct ts_area_info *info, char *buffer, size_t bytes)
{
	pid_t recorder = ts_area_recorder(&info->control, info->owner);

	if (recorder)
		snprintf(buffer, bytes, "%d", (int)recorder);
	else
		snprintf(buffer, bytes, "%s", info->control.recorder_pid ? "dead" : "none");
}

static void show_row(struct ps *ps, const struct ts_area_info *info,
		     const struct ts_area_census *census)
{
	const struct ts_live_control *control = &info->control;
	struct ts_text_table *table = &ps->table;
	char text[TS_FORMAT_BYTES];

	ps->rows++;
	snprintf(text, sizeof(text), "%d", (int)info->pid);
	ts_text_table_str(table, text);
	ts_text_table_str(table, control->name);
	format_age(control, text, sizeof(text));
	ts_text_table_str(table, text);
	ts_text_table_count(table, census->threads);
	ts_text_table_count(table, census->rings);
	ts_text_table_str(table, mode_of(control));
	ts_text_table_str(table, control->enabled & TS_LIVE_ENABLED ? "open" : "closed");
	format_recorder(info, text, sizeof(text));
	ts_text_table_str(table, text);
	ts_text_table_str(table, ts_format_bytes(text, sizeof(text), control->allocated));
	ts_text_table_str(table, ts_format_bytes(text, sizeof(text), census->emitted_bytes));
	ts_text_table_count(table, census->lost);
	ts_text_table_end_row(table);
}

static void show_dead(struct ps *ps, const struct ts_area_info *info,
		      const struct ts_area_census *census)
{
	char bytes[TS_FORMAT_BYTES];

	if (!info->unknown && !census->waiting_bytes) {
		ps->empty++;
		return;
	}
	ts_text_printf(&ps->dead, "%s: %u (", info->unknown ? "not visible" : "dead",
		       info->control.pid);
	ts_text_append_shown(&ps->dead, info->control.name, strlen(info->control.name));
	if (info->unknown) {
		ts_text_append_str(&ps->dead,
				   "), in a pid namespace that is not visible from here\n");
		return;
	}
	ts_text_printf(&ps->dead, "), %s left: tracesmith recover %u -o %u.sbt\n",
		       ts_format_bytes(bytes, sizeof(bytes), census->waiting_bytes),
		       info->control.pid, info->control.pid);
}

static void put_text(struct ts_text *out, const char *key, const char *text)
{
	ts_text_printf(out, "\"%s\":", key);
	ts_text_append_json(out, text, strlen(text));
	ts_text_append_char(out, ',');
}

static void show_json(const struct ts_area_info *info, const struct ts_area_census *census)
{
	const struct ts_live_control *control = &info->control;
	struct ts_text *out = ts_stdout();
	pid_t recorder = ts_area_recorder(control, info->owner);

	ts_text_printf(out, "{\"pid\":%" PRId64 ",\"inner_pid\":%u,",
		       (int64_t)(info->pid ? info->pid : (pid_t)control->pid), control->pid);
	put_text(out, "name", control->name);
	put_text(out, "area", info->name);
	put_text(out, "state", info->alive ? "alive" : info->unknown ? "unknown" : "dead");
	ts_text_printf(out, "\"age_ns\":%" PRId64 ",\"threads\":%u,\"rings\":%u,", age_of(control),
		       census->threads, census->rings);
	put_text(out, "mode", mode_of(control));
	ts_text_printf(out, "\"window\":%s,",
		       control->enabled & TS_LIVE_ENABLED ? "true" : "false");
	put_text(out, "recorder", recorder ? "alive" : control->recorder_pid ? "dead" : "none");
	ts_text_printf(out,
		       "\"recorder_pid\":%d,\"session\":\"%016" PRIx64
		       "\",\"shared_bytes\":%" PRIu64 ",\"emitted_bytes\":%" PRIu64
		       ",\"waiting_bytes\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"steps\":%" PRIu64 ",",
		       (int)recorder, control->session, control->allocated, census->emitted_bytes,
		       census->waiting_bytes, census->lost, control->steps);
	put_text(out, "output", control->output);
	put_text(out, "message", control->message);
	ts_text_printf(out, "\"superseded\":%s}\n", info->superseded ? "true" : "false");
}

static void on_area(void *context, const struct ts_area_info *info)
{
	struct ps *ps = context;
	struct ts_area_census census = { 0 };

	/* An area that an exec has ended is of interest while something is in it. */
	if (info->unfinished || ts_area_census(ps->directory_fd, info, &census, NULL) ||
	    (info->superseded && !ps->all))
		return;
	/*
	 * What a recorder measures itself belongs to its trace, which --resume and recover bring
	 * together.
	 */
	if (info->control.role == TS_LIVE_RECORDER && !ps->all)
		return;
	ps->areas++;
	if (ps->json)
		show_json(info, &census);
	else if (info->alive && !info->superseded)
		show_row(ps, info, &census);
	else
		show_dead(ps, info, &census);
}

static void on_refused(void *context, const char *name, const char *why)
{
	ts_report_warning("live area '%s': %s", name, why);
}

/* ---- live directories ---- */

static int list_directory(struct ps *ps, uid_t uid, pid_t root_pid, struct ts_error *err)
{
	TS_AUTO_FD int fd = -1;
	int rc = ts_live_directory_open(uid, root_pid, &fd, err);

	if (rc)
		return rc == TS_ENOTFOUND ? TS_OK : rc;
	ps->directory_fd = fd;
	return ts_areas_list(fd, ts_live_directory_namespace(root_pid), on_area, on_refused, ps,
			     err);
}

/* True for the first process of a mount namespace that is not ours. */
static bool is_new_directory(struct ps *ps, pid_t pid)
{
	char path[64];
	struct stat status;
	bool is_new = false;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	return !stat(path, &status) &&
	       ts_pairmap_insert(&ps->mounts, status.st_dev, status.st_ino, &is_new) && is_new;
}

/* Containers: their processes' directories, where we may look. */
static void list_containers(struct ps *ps)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;

	is_new_directory(ps, getpid());
	while (processes && (entry = readdir(processes))) {
		struct stat status;
		int64_t pid;

		if (!isdigit((unsigned char)*entry->d_name) ||
		    ts_parse_int64(entry->d_name, strlen(entry->d_name), &pid) || pid > INT32_MAX ||
		    !is_new_directory(ps, (pid_t)pid) ||
		    fstatat(dirfd(processes), entry->d_name, &status, 0))
			continue;
		list_directory(ps, status.st_uid, (pid_t)pid, NULL);
	}
	if (processes)
		closedir(processes);
}

/* ---- all of them ---- */

/* Removes what these dead processes left; without any: what all did. */
static int clean(int count, char **pids)
{
	TS_AUTO_FD int fd = -1;
	struct ts_error err;
	unsigned int removed = 0;
	int rc;

	for (int i = 0; i < count; i++) {
		int64_t pid;

		if (ts_parse_int64(pids[i], strlen(pids[i]), &pid) || pid < 1 || pid > INT32_MAX)
			return ts_report_usage("'%s' is not a valid process id", pids[i]);
	}
	rc = ts_live_directory_open(geteuid(), 0, &fd, &err);
	if (!rc && !count)
		rc = ts_areas_clean(fd, 0, &removed, &err);
	for (int i = 0; !rc && i < count; i++) {
		unsigned int of_process = 0;

		rc = ts_areas_clean_process(fd, (pid_t)strtol(pids[i], NULL, 10), &of_process,
					    &err);
		removed += of_process;
	}
	if (rc && rc != TS_ENOTFOUND)
		return ts_report_error(&err);
	ts_report_note("removed %u live area%s of dead processes", removed,
		       removed == 1 ? "" : "s");
	return TS_EXIT_DONE;
}

static void add_columns(struct ts_text_table *table)
{
	static const struct {
		const char *title;
		bool right;
		unsigned int detail; /* text_table.h */
	} columns[] = {
		{ "pid", true, 0 },     { "program", false, 0 },  { "age", true, 2 },
		{ "threads", true, 3 }, { "rings", true, 4 },     { "mode", false, 0 },
		{ "window", false, 0 }, { "recorder", false, 0 }, { "memory", true, 1 },
		{ "emitted", true, 0 }, { "lost", true, 0 },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(columns); i++) {
		ts_text_table_add_column(table, columns[i].title, columns[i].right);
		ts_text_table_set_detail(table, columns[i].detail);
	}
}

static int show(struct ps *ps, struct ts_error *err)
{
	int rc = TS_OK;

	if (!ps->areas && !ps->json)
		ts_report_note(
			"no process has an agent: start one with 'tracesmith record -- CMD', or with TRACESMITH_OUT=trace.sbt or TRACESMITH_LIVE=1 in its environment");
	else if (ps->rows)
		rc = ts_text_table_finish(&ps->table, err);
	ts_text_append(ts_stdout(), ps->dead.data, ps->dead.length);
	if (ps->empty)
		ts_text_printf(
			ts_stdout(),
			"dead: %u with nothing to recover; remove with: tracesmith ps --clean\n",
			ps->empty);
	return rc;
}

static int run(struct ps *ps)
{
	struct ts_error err;
	int rc;

	ts_text_table_init(&ps->table);
	ts_pairmap_init(&ps->mounts);
	add_columns(&ps->table);
	rc = list_directory(ps, geteuid(), 0, &err);
	if (!rc && ps->all)
		list_containers(ps);
	if (!rc)
		rc = show(ps, &err);
	ts_text_table_release(&ps->table);
	ts_text_release(&ps->dead);
	ts_pairmap_release(&ps->mounts);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

/* ---- who uses accelerators ---- */

/* Its arguments with blanks between; a kernel's or a dead process's name, where there are none. */
static void get_command(pid_t pid, char *buffer, size_t bytes)
{
	size_t length = ts_process_command(pid, buffer, bytes);

	for (size_t i = 0; i + 1 < length; i++)
		if (!buffer[i])
			buffer[i] = ' ';
	if (!buffer[0])
		ts_process_name(pid, buffer, bytes);
}

static void show_user(struct ts_text_table *table, const struct ts_device_user *user)
{
	bool has_number = user->device != TS_METRICS_UNKNOWN;
	bool by_maker = user->evidence & TS_DEVICE_USER_BY_VENDOR;
	char text[512], bytes[TS_FORMAT_BYTES];

	snprintf(text, sizeof(text), "%d", (int)user->pid);
	ts_text_table_str(table, text);
	snprintf(text, sizeof(text), has_number ? "%s %" PRId64 : "%s", user->vendor, user->device);
	ts_text_table_str(table, text);
	ts_text_table_str(table, user->memory_bytes == TS_METRICS_UNKNOWN
					 ? "-"
					 : ts_format_bytes(bytes, sizeof(bytes),
							   (uint64_t)user->memory_bytes));
	snprintf(text, sizeof(text), "%s%s%s%s", by_maker ? "maker" : "",
		 by_maker && user->files[0] ? "," : "", user->files,
		 user->evidence == TS_DEVICE_USER_BY_RENDER ? " (may be graphics only)" : "");
	ts_text_table_str(table, text);
	get_command(user->pid, text, sizeof(text));
	ts_text_table_str(table, text);
	ts_text_table_end_row(table);
}

static void put_number(struct ts_text *out, const char *key, int64_t value)
{
	if (value == TS_METRICS_UNKNOWN)
		ts_text_printf(out, "\"%s\":null,", key);
	else
		ts_text_printf(out, "\"%s\":%" PRId64 ",", key, value);
}

static void show_user_json(const struct ts_device_user *user)
{
	static const char *const evidence[] = { "maker", "file", "render" };
	struct ts_text *out = ts_stdout();
	const char *comma = "";
	char command[512];

	ts_text_printf(out, "{\"pid\":%d,\"start_time\":%" PRIu64 ",", (int)user->pid,
		       user->start_time);
	put_text(out, "vendor", user->vendor);
	put_number(out, "device", user->device);
	put_number(out, "memory_bytes", user->memory_bytes);
	ts_text_append_str(out, "\"evidence\":[");
	for (size_t i = 0; i < TS_ARRAY_SIZE(evidence); i++) {
		if (!(user->evidence & 1u << i))
			continue;
		ts_text_printf(out, "%s\"%s\"", comma, evidence[i]);
		comma = ",";
	}
	ts_text_append_str(out, "],");
	put_text(out, "files", user->files);
	get_command(user->pid, command, sizeof(command));
	ts_text_append_str(out, "\"command\":");
	ts_text_append_json(out, command, strlen(command));
	ts_text_append_str(out, "}\n");
}

static int show_users(const struct ts_device_users *users, bool json, struct ts_error *err)
{
	struct ts_text_table table;
	int rc;

	for (size_t i = 0; json && i < users->count; i++)
		show_user_json(&users->users[i]);
	if (json)
		return TS_OK;
	if (!users->count) {
		ts_report_note("found no process that uses an accelerator");
		return TS_OK;
	}
	ts_text_table_init(&table);
	ts_text_table_add_column(&table, "pid", true);
	ts_text_table_add_column(&table, "device", false);
	ts_text_table_add_column(&table, "memory", true);
	ts_text_table_add_column(&table, "evidence", false);
	ts_text_table_add_column(&table, "command", false);
	for (size_t i = 0; i < users->count; i++)
		show_user(&table, &users->users[i]);
	rc = ts_text_table_finish(&table, err);
	ts_text_table_release(&table);
	return rc;
}

static int list_users(bool json)
{
	struct ts_device_users users;
	struct ts_error err;
	int rc = ts_device_users_find(&users, TOOLS_NS, &err);

	if (rc)
		return ts_report_error(&err);
	rc = show_users(&users, json, &err);
	if (users.message[0])
		ts_report_warning("%s", users.message);
	ts_device_users_release(&users);
	return rc ? ts_report_error(&err) : TS_EXIT_DONE;
}

/* ---- the verb ---- */

int ts_verb_ps(int argc, char **argv)
{
	struct ps ps = { 0 };
	const struct ts_option options[] = {
		TS_TERMINAL_WIDTH_OPTION,
		TS_OPTION_FLAG("json", 0, &ps.json, "one JSON object per line"),
		TS_OPTION_FLAG("all", 'a', &ps.all,
			       "also containers, recorders, and images replaced by exec"),
		TS_OPTION_FLAG("clean", 0, &ps.clean,
			       "remove what dead processes left (those given, or all), recovered "
			       "or not"),
		TS_OPTION_FLAG("devices", 0, &ps.devices,
			       "list processes that use accelerators (GPUs, NPUs) instead"),
	};
	const struct ts_command command = {
		.verb = "ps",
		.operands = "[--clean PID...]",
		.about = "Lists processes that have an agent, and what dead processes left in "
			 "shared memory; with --devices, lists processes that use accelerators.\n",
		.examples = "tracesmith ps\ntracesmith ps --json | jq .pid\ntracesmith ps --clean\n"
			    "tracesmith ps --clean 4711\n"
			    "tracesmith ps --devices",
		.exits = "0  done\n2  usage error\n3  the live directory cannot be used",
		.options = options,
		.option_count = TS_ARRAY_SIZE(options),
		.maximum_operands = -1,
	};
	int exit_code;

	if (!ts_command_parse(&command, &argc, argv, &exit_code))
		return exit_code;
	if (argc && !ps.clean)
		return ts_report_usage("unexpected argument '%s'", argv[0]);
	if (ps.devices && (ps.all || ps.clean))
		return ts_report_usage("'--devices' can be combined only with '--json'");
	if (ps.devices)
		return list_users(ps.json);
	return ps.clean ? clean(argc, argv) : run(&ps);
}
