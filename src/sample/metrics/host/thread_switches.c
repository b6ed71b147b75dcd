/* SPDX-License-Identifier: Apache-2.0 */
/* Context switches from /proc, per thread. Misses threads that start and exit between two calls. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "sample/metrics/host/taskstats.h"

static bool read_thread(int tasks, const char *name, struct ts_text *text,
			struct ts_thread_switches_thread *ret_thread)
{
	char path[sizeof(((struct dirent *)NULL)->d_name) + 16];
	struct ts_procfs_file file = { .path = path, .fd = -1 };

	snprintf(path, sizeof(path), "%s/status", name);
	if (ts_procfs_file_read(&file, tasks, text))
		return false;
	ts_procfs_file_close(&file);
	ret_thread->tid = (pid_t)strtol(name, NULL, 10);
	ts_procfs_status_parse(text->data, &ret_thread->switches);
	return ret_thread->switches.voluntary != TS_NO_VALUE &&
	       ret_thread->switches.involuntary != TS_NO_VALUE;
}

/* False if there are none, or more than fit. */
static bool read_threads(struct ts_thread_switches *sweep, pid_t pid, struct ts_text *text)
{
	char path[64];
	const struct dirent *entry;
	bool fits = true;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	sweep->count = 0;
	while (tasks && fits && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		fits = sweep->count < TS_THREAD_SWITCHES_MAX;
		if (fits &&
		    read_thread(dirfd(tasks), entry->d_name, text, &sweep->threads[sweep->count]))
			sweep->count++;
	}
	if (tasks)
		closedir(tasks);
	return fits && sweep->count > 0;
}

static const struct ts_thread_switches_thread *find(const struct ts_thread_switches *sweep,
						    pid_t tid)
{
	for (size_t i = 0; i < sweep->count; i++) {
		if (sweep->threads[i].tid == tid)
			return &sweep->threads[i];
	}
	return NULL;
}

/* Switches of the threads of `after` since `before`; a new thread started at 0. */
static bool add_differences(const struct ts_thread_switches *before,
			    const struct ts_thread_switches *after, struct ts_switches *sum)
{
	for (size_t i = 0; i < after->count; i++) {
		const struct ts_thread_switches_thread *now = &after->threads[i];
		const struct ts_thread_switches_thread *then = find(before, now->tid);
		struct ts_switches base = then ? then->switches : (struct ts_switches){ 0, 0 };

		if (now->switches.voluntary < base.voluntary ||
		    now->switches.involuntary < base.involuntary)
			return false;
		sum->voluntary += now->switches.voluntary - base.voluntary;
		sum->involuntary += now->switches.involuntary - base.involuntary;
	}
	return true;
}

bool ts_thread_switches_next(struct ts_thread_switches *sweep, pid_t pid, struct ts_text *text)
{
	struct ts_thread_switches before = *sweep;

	sweep->is_complete = read_threads(sweep, pid, text);
	if (!sweep->is_complete || !before.is_complete)
		return false;
	for (size_t i = 0; i < before.count; i++) {
		if (!find(sweep, before.threads[i].tid))
			return false;
	}
	return add_differences(&before, sweep, &sweep->sum);
}
