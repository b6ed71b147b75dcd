/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descendants of a process: from the kernel's per-thread child lists, else from the parent pids of
 * all processes.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/map.h"
#include "base/process.h"
#include "base/process_internal.h"

#define MAX_PROCESSES 65536u

struct family {
	pid_t pid, parent;
};

/* Processes found, in order; the first `next` have been asked for their children. */
struct tree {
	struct family *members;
	size_t count, capacity;
	struct ts_map known;
};

static bool add(struct tree *tree, pid_t pid, pid_t parent)
{
	bool is_new = false;

	if (tree->count >= MAX_PROCESSES || !ts_map_insert(&tree->known, (uint64_t)pid, &is_new))
		return false;
	if (!is_new)
		return true;
	if (ts_grow_array((void **)&tree->members, &tree->capacity, tree->count + 1,
			  sizeof(*tree->members)))
		return false;
	tree->members[tree->count++] = (struct family){ .pid = pid, .parent = parent };
	return true;
}

/* ---- by lists of children ---- */

/* Numbers, each followed by a space; reads may split them. */
static void add_listed(struct tree *tree, int fd, pid_t parent)
{
	char piece[4096];
	long pid = 0;
	ssize_t got;

	while ((got = ts_read_some(fd, piece, sizeof(piece))) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			if (piece[i] >= '0' && piece[i] <= '9' && pid < INT32_MAX / 10) {
				pid = pid * 10 + (piece[i] - '0');
				continue;
			}
			if (pid > 0 && !add(tree, (pid_t)pid, parent))
				return;
			pid = 0;
		}
	}
	if (pid > 0)
		add(tree, (pid_t)pid, parent);
}

static void add_children(struct tree *tree, pid_t parent)
{
	int tasks_fd = ts_proc_open(parent, "task", O_RDONLY | O_DIRECTORY);
	DIR *tasks = tasks_fd >= 0 ? fdopendir(tasks_fd) : NULL;
	const struct dirent *entry;

	if (!tasks && tasks_fd >= 0)
		close(tasks_fd);
	while (tasks && (entry = readdir(tasks))) {
		char path[sizeof(entry->d_name) + 16];
		TS_AUTO_FD int fd = -1;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/children", entry->d_name);
		fd = openat(tasks_fd, path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			add_listed(tree, fd, parent);
	}
	if (tasks)
		closedir(tasks);
}

static bool has_lists(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	return access(path, R_OK) == 0;
}

/* ---- by parents ---- */

struct scan {
	struct family *all;
	size_t count, capacity;
};

static bool note_parent(void *context, pid_t pid)
{
	struct scan *scan = context;
	struct ts_proc_stat stat;

	if (!ts_proc_stat(pid, &stat))
		return true;
	if (ts_grow_array((void **)&scan->all, &scan->capacity, scan->count + 1,
			  sizeof(*scan->all)))
		return false;
	scan->all[scan->count++] = (struct family){ .pid = pid, .parent = stat.parent };
	return scan->count < MAX_PROCESSES;
}

static int compare_parents(const void *a, const void *b)
{
	const struct family *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void add_children_of(struct tree *tree, const struct scan *scan, pid_t parent)
{
	size_t low = 0, high = scan->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (scan->all[middle].parent < parent)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < scan->count && scan->all[low].parent == parent; low++)
		add(tree, scan->all[low].pid, parent);
}

/* ---- both ---- */

void ts_proc_descendants(bool by_lists, pid_t root,
			 void (*found)(void *context, pid_t pid, pid_t parent), void *context)
{
	struct tree tree = { .members = NULL };
	struct scan scan = { .all = NULL };

	if (!by_lists) {
		ts_proc_list(note_parent, &scan);
		if (scan.count)
			qsort(scan.all, scan.count, sizeof(*scan.all), compare_parents);
	}
	add(&tree, root, 0);
	for (size_t i = 0; i < tree.count; i++) {
		if (i)
			found(context, tree.members[i].pid, tree.members[i].parent);
		if (by_lists)
			add_children(&tree, tree.members[i].pid);
		else
			add_children_of(&tree, &scan, tree.members[i].pid);
	}
	free(tree.members);
	free(scan.all);
	ts_map_release(&tree.known);
}

pid_t ts_process_newest(void)
{
	TS_AUTO_FD int fd = ts_io_open("/proc/loadavg", O_RDONLY, 0);
	char text[128];
	ssize_t got = fd >= 0 ? ts_read_some(fd, text, sizeof(text) - 1) : 0;
	const char *last;

	text[TS_MAX(got, 0)] = '\0';
	last = strrchr(text, ' ');
	return last ? (pid_t)strtol(last, NULL, 10) : 0;
}

void ts_process_descendants(pid_t root, void (*found)(void *context, pid_t pid, pid_t parent),
			    void *context)
{
	ts_proc_descendants(has_lists(), root, found, context);
}
