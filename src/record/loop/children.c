/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the descendants of recorded processes: finds the live directories that they use, and
 * records which of them run without the agent. The more processes there are, the less often it
 * scans /proc.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/recorder/agent_library.h"
#include "base/clock.h"
#include "record/loop/record_internal.h"

#define SCAN_NS (500 * TS_NS_PER_MS)
#define SCAN_GREATEST_NS (30 * TS_NS_PER_S)
/* A scan may use 1/SCAN_SHARE of the time: with 1,000 threads it takes 10 ms. */
#define SCAN_SHARE 5000
/* A new process is checked after 1, 2, 4 ... ms: it may be between fork and exec. */
#define CHECK_NS TS_NS_PER_MS
#define EARLY_CHECKS 6
#define CHECK_GREATEST_NS (4 * TS_NS_PER_S)
/* By then the dynamic linker has loaded the agent, or never will. */
#define AGENT_AFTER_NS (2 * TS_NS_PER_S)
#define CHILDREN_GREATEST 65536

void ts_children_close(struct ts_recorder *recorder)
{
	free(recorder->children);
}

struct ts_child *ts_children_find(struct ts_recorder *recorder, pid_t pid)
{
	for (size_t i = 0; i < recorder->child_count; i++)
		if (recorder->children[i].pid == pid)
			return &recorder->children[i];
	return NULL;
}

struct ts_child *ts_children_add(struct ts_recorder *recorder, pid_t pid, pid_t parent)
{
	struct ts_child *child = ts_children_find(recorder, pid);
	uint64_t start_time = ts_process_start_time(pid);

	if (child && child->start_time == start_time)
		return child;
	if (!child) {
		if (recorder->child_count >= CHILDREN_GREATEST ||
		    ts_grow_array((void **)&recorder->children, &recorder->child_capacity,
				  recorder->child_count + 1, sizeof(*recorder->children)))
			return NULL;
		child = &recorder->children[recorder->child_count++];
	}
	*child = (struct ts_child){ .pid = pid,
				    .parent = parent,
				    .start_time = start_time,
				    .seen_ns = recorder->now_ns,
				    .check_ns = recorder->now_ns,
				    .status = TS_ABSENT };
	ts_process_name(pid, child->name, sizeof(child->name));
	return child;
}

static bool is_alive(const struct ts_child *child)
{
	return ts_process_lives(child->pid, child->start_time);
}

bool ts_children_root_alive(const struct ts_recorder *recorder)
{
	for (size_t i = 0; i < recorder->child_count; i++) {
		const struct ts_child *child = &recorder->children[i];

		if (child->root && !child->exited && !child->gone)
			return true;
	}
	return false;
}

/* ---- processes without the agent ---- */

static int write_process(struct ts_recorder *recorder, struct ts_child *child, struct ts_error *err)
{
	uint64_t now = ts_clocks_now(&recorder->clocks);
	struct ts_block_process block = { .pid = (uint64_t)child->pid,
					  .parent = (uint64_t)child->parent,
					  .start_time = child->start_time,
					  .seen_counter = now,
					  .ended_counter = child->gone ? now : 0,
					  .exit_status = child->status };

	static_assert(sizeof(block.name) == sizeof(child->name), "the same text");
	if (!child->gone)
		ts_process_name(child->pid, child->name, sizeof(child->name));
	memcpy(block.name, child->name, sizeof(block.name));
	if (!recorder->options.redact && !child->gone)
		ts_process_command(child->pid, block.command, sizeof(block.command));
	return ts_recorder_append(recorder, TS_BLOCK_PROCESS, 0, &block, sizeof(block), err);
}

int ts_children_describe(struct ts_recorder *recorder, struct ts_child *child, struct ts_error *err)
{
	int rc;

	if (child->reported || child->described || child->has_area)
		return TS_OK;
	rc = write_process(recorder, child, err);
	if (rc)
		return rc == TS_ENOSPC ? TS_OK : rc;
	child->described = true;
	recorder->processes += !child->had_area;
	return TS_OK;
}

static int report(struct ts_recorder *recorder, struct ts_child *child, const char *reason,
		  struct ts_error *err)
{
	int rc = write_process(recorder, child, err);

	if (!rc)
		rc = ts_recorder_lose(recorder, 0, child->pid, "process", reason, err);
	if (rc)
		return rc == TS_ENOSPC ? TS_OK : rc;
	child->reported = true;
	recorder->not_entered++;
	recorder->processes += !child->had_area && !child->described;
	return TS_OK;
}

/* True if the agent could be in the process but is not. False if the agent library is unknown. */
static bool lacks_agent(const struct ts_recorder *recorder, const struct ts_child *child)
{
	char path[TS_AGENT_PATH_BYTES];
	struct stat agent;

	if (recorder->now_ns - child->seen_ns < AGENT_AFTER_NS || recorder->options.pid_count ||
	    ts_agent_library_find(path, sizeof(path), NULL) || stat(path, &agent))
		return false;
	return !ts_process_maps(child->pid, agent.st_dev, agent.st_ino);
}

static bool has_area(struct ts_recorder *recorder, const struct ts_child *child)
{
	for (size_t i = 0; i < recorder->target_count; i++)
		if (recorder->targets[i]->pid == child->pid && !recorder->targets[i]->replaced)
			return true;
	return false;
}

/* Adds the live directory of a process of another user or mount namespace. */
static void find_directory(struct ts_recorder *recorder, const struct ts_child *child)
{
	char path[64];
	struct stat process, mounts;
	bool other_mounts;

	snprintf(path, sizeof(path), "/proc/%d", (int)child->pid);
	if (stat(path, &process))
		return;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)child->pid);
	other_mounts = !stat(path, &mounts) && recorder->self_mounts &&
		       (uint64_t)mounts.st_ino != recorder->self_mounts;
	/* It may not exist yet: the next check tries again. */
	if (other_mounts || process.st_uid != geteuid())
		ts_targets_add_directory(recorder, process.st_uid, other_mounts ? child->pid : 0,
					 NULL);
}

/* Ends the areas of the replaced image: the new image has no area that would supersede them. */
static void end_replaced(struct ts_recorder *recorder, const struct ts_child *child)
{
	for (size_t i = 0; i < recorder->target_count; i++)
		if (recorder->targets[i]->pid == child->pid && recorder->targets[i]->replaced)
			recorder->targets[i]->superseded = true;
}

static int report_replaced(struct ts_recorder *recorder, struct ts_child *child, const char *reason,
			   struct ts_error *err)
{
	end_replaced(recorder, child);
	return report(recorder, child, reason, err);
}

static int inspect(struct ts_recorder *recorder, struct ts_child *child, struct ts_error *err)
{
	enum ts_preload preload;

	/* Sampling from outside needs no agent. */
	if (recorder->options.outside)
		return TS_OK;
	find_directory(recorder, child);
	child->has_area |= has_area(recorder, child);
	if (child->reported || child->has_area)
		return TS_OK;
	preload = ts_process_preload(child->pid);
	if (preload == TS_PRELOAD_STATIC || preload == TS_PRELOAD_SECURE ||
	    preload == TS_PRELOAD_OTHER_ARCH)
		return report_replaced(recorder, child, ts_preload_reason(preload), err);
	if (preload == TS_PRELOAD_POSSIBLE && lacks_agent(recorder, child))
		return report_replaced(recorder, child,
				       "the agent was not loaded: its environment was cleared",
				       err);
	return TS_OK;
}

/*
 * Reads the live directories once more: the process may have made an area since the last scan, and
 * cannot make another one.
 */
static int look_again(struct ts_recorder *recorder, pid_t pid, struct ts_error *err)
{
	struct ts_child *child;
	int rc;

	for (size_t i = 0; i < recorder->directory_count; i++)
		recorder->directories[i].due = true;
	rc = ts_targets_scan(recorder, err);
	child = ts_children_find(recorder, pid);
	if (!rc && child)
		child->has_area |= has_area(recorder, child);
	return rc;
}

/*
 * Handles the exit of a process. Also reports a program that was executed but left no area. (A
 * process that only forked has the agent, but no area before its first event.)
 */
static int bury(struct ts_recorder *recorder, struct ts_child *child, struct ts_error *err)
{
	bool is_missing;
	int rc = TS_OK;

	/* A zombie child of this process: its wait status is about to come. */
	if (child->launched && !child->exited && child->check_ns &&
	    ts_process_parent(child->pid) == recorder->self)
		return TS_OK;
	child->has_area |= has_area(recorder, child);
	is_missing = !child->reported && !child->has_area && !recorder->options.pid_count &&
		     !recorder->options.outside && (child->launched || child->executed);
	if (is_missing)
		rc = look_again(recorder, child->pid, err);
	child->gone = true;
	if (child->reported || (child->described && !child->had_area && !is_missing))
		rc = write_process(recorder, child, err);
	else if (!rc && is_missing && !child->has_area)
		rc = report(recorder, child,
			    "it exited without a live area: too early, or without the agent", err);
	return rc == TS_ENOSPC ? TS_OK : rc;
}

static int check_children(struct ts_recorder *recorder, struct ts_error *err)
{
	for (size_t i = 0; i < recorder->child_count; i++) {
		struct ts_child *child = &recorder->children[i];
		int rc;

		if (child->gone || recorder->now_ns < child->check_ns)
			continue;
		rc = is_alive(child) ? inspect(recorder, child, err) : bury(recorder, child, err);
		if (rc)
			return rc;
		child->check_ns = recorder->now_ns +
				  TS_MIN(CHECK_NS << TS_MIN(child->checks, 20u), CHECK_GREATEST_NS);
		child->checks++;
	}
	return TS_OK;
}

/* ---- process tree ---- */

static void found(void *context, pid_t pid, pid_t parent)
{
	struct ts_recorder *recorder = context;
	struct ts_child *child = pid == recorder->self ? NULL
						       : ts_children_add(recorder, pid, parent);

	if (child)
		child->in_scan = true;
}

/* Visits the descendants of the given processes, including those whose parents have exited. */
static void walk_tree(struct ts_recorder *recorder)
{
	for (size_t i = 0; i < recorder->child_count; i++)
		recorder->children[i].in_scan = false;
	for (size_t i = 0; i < recorder->child_count; i++) {
		struct ts_child *child = &recorder->children[i];

		if (child->in_scan || child->gone)
			continue;
		if (!is_alive(child))
			child->check_ns = TS_MIN(child->check_ns, 1);
		else /* may move the array */
			ts_process_descendants(child->pid, found, recorder);
	}
}

void ts_children_walk(struct ts_recorder *recorder)
{
	walk_tree(recorder);
	for (size_t i = 0; i < recorder->child_count; i++)
		find_directory(recorder, &recorder->children[i]);
}

/* Forgets exited processes, except those needed for their wait status or the done condition. */
static void forget_gone(struct ts_recorder *recorder)
{
	size_t kept = 0;

	for (size_t i = 0; i < recorder->child_count; i++) {
		if (recorder->children[i].gone &&
		    (!recorder->children[i].root || recorder->options.endless))
			continue;
		if (kept != i)
			recorder->children[kept] = recorder->children[i];
		kept++;
	}
	recorder->child_count = kept;
}

int ts_children_scan(struct ts_recorder *recorder, struct ts_error *err)
{
	if (!recorder->child_count)
		return TS_OK;
	if (recorder->now_ns >= recorder->scan_ns) {
		int64_t began = ts_clock_thread_cpu_ns();
		int64_t pause;

		forget_gone(recorder);
		walk_tree(recorder);
		pause = (ts_clock_thread_cpu_ns() - began) * SCAN_SHARE;
		pause = TS_MAX(SCAN_NS, TS_MIN(pause, SCAN_GREATEST_NS));
		recorder->scan_ns = recorder->now_ns + pause;
	}
	return check_children(recorder, err);
}

/* Only new processes are worth a wakeup; the rest is checked in passes that happen anyway. */
int64_t ts_children_due(const struct ts_recorder *recorder)
{
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < recorder->child_count; i++)
		if (!recorder->children[i].gone && recorder->children[i].checks < EARLY_CHECKS)
			due = TS_MIN(due, recorder->children[i].check_ns);
	return due;
}
