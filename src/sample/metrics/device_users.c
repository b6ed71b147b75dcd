/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the processes that use accelerators: merges those that vendor tools report with those that
 * have device files open. A vendor tool knows better which device it is.
 */
#include "sample/metrics/device_users.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "base/procfs.h"
#include "base/procfs_parse.h"
#include "base/text.h"
#include "sample/metrics/device_files.h"
#include "sample/metrics/device_users_internal.h"
#include "sample/metrics/metric_sources.h"

/* From the flags in /proc/PID/stat. */
#define PF_KTHREAD 0x00200000u

/* ---- lists ---- */

static struct ts_device_user *find_user(struct device_user_list *list, pid_t pid,
					const char *vendor, int64_t device)
{
	/* Entries of a process are adjacent, and this is the last one. */
	for (size_t i = list->count; i-- > 0 && list->users[i].pid == pid;)
		if (list->users[i].device == device && strcmp(list->users[i].vendor, vendor) == 0)
			return &list->users[i];
	return NULL;
}

struct ts_device_user *device_user_list_add(struct device_user_list *list, pid_t pid,
					    const char *vendor, int64_t device)
{
	struct ts_device_user *user;

	if (ts_grow_array((void **)&list->users, &list->capacity, list->count + 1,
			  sizeof(*list->users))) {
		list->failed = true;
		return NULL;
	}
	user = &list->users[list->count++];
	*user = (struct ts_device_user){ .pid = pid,
					 .device = device,
					 .memory_bytes = TS_METRICS_UNKNOWN };
	snprintf(user->vendor, sizeof(user->vendor), "%s", vendor);
	return user;
}

/* ---- device files ---- */

struct scan {
	const struct ts_device_table *files;
	const struct device_users_answers *answers;
	struct device_user_list users;
	pid_t pid;
	unsigned int hidden; /* processes that we may not inspect */
};

/* "00000000:3B:00.0" and "0000:3b:00.0" are equal. */
static bool is_same_bus(const char *a, const char *b)
{
	size_t a_length = strlen(a), b_length = strlen(b), length = strlen("0000:00:00.0");

	return a_length >= length && b_length >= length &&
	       strcasecmp(a + a_length - length, b + b_length - length) == 0;
}

/* The vendor tool's number, if it was asked. */
static int64_t number_of(const struct scan *scan, const struct ts_device_file *file)
{
	for (size_t i = 0; scan->answers && i < scan->answers->count; i++) {
		const struct device_users_query *query = &scan->answers->queries[i];

		for (size_t k = 0; query->ended && file->bus[0] && k < query->device_count; k++)
			if (is_same_bus(query->devices[k].bus, file->bus))
				return query->devices[k].number;
	}
	return file->number;
}

static void add_name(struct ts_device_user *user, const char *name)
{
	size_t used = strlen(user->files), length = strlen(name);

	for (const char *at = user->files; *at; at += strcspn(at, ","), at += *at == ',')
		if (strncmp(at, name, length) == 0 && (!at[length] || at[length] == ','))
			return;
	if (used + length + 2 <= sizeof(user->files))
		snprintf(user->files + used, sizeof(user->files) - used, "%s%s", used ? "," : "",
			 name);
}

static void take_file(void *context, const struct ts_device_file *file)
{
	struct scan *scan = context;
	int64_t number = number_of(scan, file);
	struct ts_device_user *user = find_user(&scan->users, scan->pid, file->vendor, number);

	if (!user)
		user = device_user_list_add(&scan->users, scan->pid, file->vendor, number);
	if (!user)
		return;
	user->evidence |= file->is_render ? TS_DEVICE_USER_BY_RENDER : TS_DEVICE_USER_BY_FILE;
	add_name(user, file->name);
}

/* A kernel thread: no files to inspect. */
static bool is_kernel_thread(pid_t pid)
{
	struct ts_procfs_stat stat;
	char path[64], text[1024];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (ts_procfs_read_line(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return true; /* gone */
	return ts_procfs_stat_parse(text, &stat) && stat.flags != TS_NO_VALUE &&
	       (stat.flags & PF_KTHREAD);
}

static void scan_processes(struct scan *scan)
{
	DIR *processes = opendir("/proc");
	const struct dirent *entry;

	while (processes && (entry = readdir(processes))) {
		int64_t pid;

		/* We are not a user, even if we have a driver open. */
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    ts_parse_int64(entry->d_name, strlen(entry->d_name), &pid) || pid > INT32_MAX ||
		    pid == getpid())
			continue;
		scan->pid = (pid_t)pid;
		if (ts_process_device_files(scan->files, scan->pid, take_file, scan) == -EACCES &&
		    !is_kernel_thread(scan->pid))
			scan->hidden++;
	}
	if (processes)
		closedir(processes);
}

/* ---- merging ---- */

static int compare_users(const void *a, const void *b)
{
	const struct ts_device_user *x = a, *y = b;
	int by_vendor = strcmp(x->vendor, y->vendor);

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (by_vendor)
		return by_vendor;
	return (x->device > y->device) - (x->device < y->device);
}

static void sort_users(struct device_user_list *list)
{
	if (list->count)
		qsort(list->users, list->count, sizeof(*list->users), compare_users);
}

static bool is_same_maker(const struct ts_device_user *a, const struct ts_device_user *b)
{
	return a->pid == b->pid && strcmp(a->vendor, b->vendor) == 0;
}

/* Entries of the second list that add nothing to the first: their files are merged into it. */
static bool is_known_better(struct device_user_list *reported, size_t reported_count,
			    const struct ts_device_user *user)
{
	bool known = false;

	for (size_t i = 0; i < reported_count; i++) {
		struct ts_device_user *other = &reported->users[i];

		if (!is_same_maker(other, user))
			continue;
		known = true;
		if (user->device != other->device && user->device != TS_METRICS_UNKNOWN)
			continue;
		other->evidence |= user->evidence;
		add_name(other, user->files);
	}
	return known;
}

/*
 * One file for all devices ("kfd") is redundant if other rows name devices. It sorts before them.
 */
static void drop_unnamed(struct device_user_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct ts_device_user user = list->users[i];
		bool drops = false;

		for (size_t k = i + 1; user.device == TS_METRICS_UNKNOWN && k < list->count &&
				       is_same_maker(&user, &list->users[k]);
		     k++) {
			list->users[k].evidence |= user.evidence;
			add_name(&list->users[k], user.files);
			drops = true;
		}
		if (!drops)
			list->users[kept++] = user;
	}
	list->count = kept;
}

static void add_reported(struct device_user_list *all, const struct device_users_answers *answers)
{
	for (size_t i = 0; answers && i < answers->count; i++) {
		const struct device_users_query *query = &answers->queries[i];

		for (size_t k = 0; query->ended && k < query->users.count; k++) {
			const struct ts_device_user *from = &query->users.users[k];
			struct ts_device_user *user =
				device_user_list_add(all, from->pid, from->vendor, from->device);

			if (user)
				*user = *from;
		}
	}
}

static void join_lists(struct device_user_list *all, const struct device_users_answers *answers,
		       const struct device_user_list *by_files)
{
	size_t reported_count;

	add_reported(all, answers);
	reported_count = all->count;
	for (size_t i = 0; i < by_files->count; i++) {
		const struct ts_device_user *from = &by_files->users[i];
		struct ts_device_user *user;

		if (is_known_better(all, reported_count, from))
			continue;
		user = device_user_list_add(all, from->pid, from->vendor, from->device);
		if (user)
			*user = *from;
	}
	sort_users(all);
	drop_unnamed(all);
}

/* Drops processes that exited meanwhile. */
static void set_start_times(struct device_user_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct ts_device_user *user = &list->users[i];

		if (user->start_time || ts_process_exists(user->pid, &user->start_time))
			list->users[kept++] = *user;
	}
	list->count = kept;
}

/* ---- message ---- */

static void note(struct ts_device_users *users, const char *who, const char *text)
{
	size_t used = strlen(users->message);

	/* Many device files reveal their device. */
	if (strncmp(text, who, strlen(who)) == 0)
		who = "";
	snprintf(users->message + used, sizeof(users->message) - used, "%s%s%s%s", used ? "; " : "",
		 who, who[0] ? ": " : "", text);
}

static void note_missing(struct ts_device_users *users, const struct scan *scan, int64_t limit_ns)
{
	char text[160], limit[TS_FORMAT_BYTES];

	users->complete = scan->hidden == 0;
	if (scan->hidden) {
		snprintf(
			text, sizeof(text),
			"%u process%s of other users could not be inspected (run as root to see all)",
			scan->hidden, scan->hidden == 1 ? "" : "es");
		note(users, "", text);
	}
	for (size_t i = 0; scan->answers && i < scan->answers->count; i++) {
		const struct device_users_query *query = &scan->answers->queries[i];

		snprintf(text, sizeof(text), "no answer within %s",
			 ts_format_duration_ns(limit, sizeof(limit), limit_ns));
		if (!query->ended)
			note(users, query->source->name,
			     query->started ? text : "cannot start a thread to query it");
		else if (query->message[0])
			note(users, query->source->name, query->message);
		users->complete &= query->ended && !query->failed;
	}
}

/* ---- all ---- */

static int find(struct ts_device_users *users, struct scan *scan, int64_t limit_ns,
		struct ts_error *err)
{
	struct device_user_list all = { 0 };

	if (scan->files)
		scan_processes(scan);
	join_lists(&all, scan->answers, &scan->users);
	set_start_times(&all);
	note_missing(users, scan, limit_ns);
	if (all.failed || scan->users.failed) {
		free(all.users);
		return ts_error_set(err, TS_ENOMEM, "no memory for the list of device users");
	}
	users->users = all.users;
	users->count = all.count;
	return TS_OK;
}

int ts_device_users_find_by(struct ts_device_users *ret_users, const struct ts_device_table *files,
			    const struct ts_metrics_source *const *sources, int64_t limit_ns,
			    struct ts_error *err)
{
	struct scan scan = { .files = files };
	struct device_users_answers *answers = NULL;
	int rc;

	memset(ret_users, 0, sizeof(*ret_users));
	if (limit_ns > 0) {
		answers = device_users_run_queries(sources);
		if (!answers)
			return ts_error_set(err, TS_ENOMEM, "no memory to query vendor tools");
		device_users_wait(answers, limit_ns);
		scan.answers = answers;
	}
	rc = find(ret_users, &scan, limit_ns, err);
	free(scan.users.users);
	if (answers) {
		pthread_mutex_unlock(&answers->lock);
		device_users_answers_unref(answers);
	}
	return rc;
}

int ts_device_users_find(struct ts_device_users *ret_users, int64_t limit_ns, struct ts_error *err)
{
	struct ts_device_table files;
	int rc;

	memset(ret_users, 0, sizeof(*ret_users));
	rc = ts_device_table_init(&files, err);
	if (rc)
		return rc;
	rc = ts_device_users_find_by(ret_users, &files, ts_metrics_sources(), limit_ns, err);
	ts_device_table_release(&files);
	return rc;
}

void ts_device_users_release(struct ts_device_users *users)
{
	free(users->users);
	memset(users, 0, sizeof(*users));
}
