/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the descendants of recorded processes: finds the live directories that they use, and
 * records which of them run without the agent. The more processes there are, the less often it
 * scans /proc.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/recorder/agent_library.h"
#include "base/clock.h"
#include "record/loop/record_internal.h"

#define SCAN_NS (500 * TS_NS_PER_MS)
#define SCAN_GREATEST_NS (30 * TS_NS_PER_S)
/* A scan may use 1/SCAN_SHARE of the time: with 1,000 threads it takes 10 ms. */
#define SCAN_SHARE 5000
/*
 * A process that a Python program forks is sampled from its start: a check whether there is a new
 * process anywhere costs microseconds, and leads to a scan ahead of time.
 */
#define LOOK_NS (40 * TS_NS_PER_MS)
#define LOOK_SHARE 500
/* A new process is checked after 1, 2, 4 ... ms: it may be between fork and exec. */
#define CHECK_NS TS_NS_PER_MS
#define EARLY_CHECKS 6
#define CHECK_GREATEST_NS (4 * TS_NS_PER_S)
/* So long after an exec the dynamic linker has loaded the agent, or never will. */
#define AGENT_AFTER_NS (2 * TS_NS_PER_S)
/* A program that another one runs for less is a helper, whether or not it can load the agent. */
#define BRIEF_NS (100 * TS_NS_PER_MS)
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

bool ts_children_user(struct ts_recorder *recorder, pid_t pid, uint64_t start_time, uid_t *ret_user)
{
	const struct ts_child *child = ts_children_find(recorder, pid);
	uint64_t user;

	if (child && child->start_time == start_time)
		user = child->user;
	else if (!ts_pairmap_get(&recorder->users, (uint64_t)pid, start_time, &user))
		return false;
	*ret_user = (uid_t)user;
	return true;
}

struct ts_child *ts_children_of(struct ts_recorder *recorder, const struct ts_target *target)
{
	return ts_children_find(recorder, target->pid ? target->pid : target->was_pid);
}

/* True if the process runs this tool, in which the agent does nothing. */
static bool runs_tool(pid_t pid)
{
	struct stat ours, its;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return !stat(path, &its) && !stat("/proc/self/exe", &ours) && its.st_dev == ours.st_dev &&
	       its.st_ino == ours.st_ino;
}

bool ts_children_is_others(struct ts_recorder *recorder, pid_t pid, pid_t parent)
{
	const struct ts_child *of = ts_children_find(recorder, parent);

	return (of && of->is_others) || runs_tool(pid);
}

/* Its area may be found before the process itself is, and be gone by then. */
static void find_area(const struct ts_recorder *recorder, struct ts_child *child)
{
	uint64_t created_ns;

	if (!ts_pairmap_get(&recorder->traced, (uint64_t)child->pid, child->start_time,
			    &created_ns))
		return;
	child->has_area = child->had_area = true;
	child->area_ns = (int64_t)created_ns;
}

void ts_children_name(struct ts_child *child)
{
	char name[sizeof(child->name)] = "";

	ts_process_name(child->pid, name, sizeof(name));
	if (name[0])
		memcpy(child->name, name, sizeof(name));
}

struct ts_child *ts_children_add(struct ts_recorder *recorder, pid_t pid, pid_t parent)
{
	struct ts_child *child = ts_children_find(recorder, pid);
	uint64_t start_time = ts_process_any_start_time(pid);

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
				    .user = geteuid(),
				    .seen_ns = recorder->now_ns,
				    .check_ns = recorder->now_ns,
				    .is_others = ts_children_is_others(recorder, pid, parent),
				    .status = TS_ABSENT };
	ts_process_user(pid, &child->user);
	ts_children_name(child);
	find_area(recorder, child);
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
	if (!child->gone) {
		ts_children_name(child);
		ts_process_rank(child->pid, &child->rank);
	}
	block.rank = ts_ranks_choose(recorder, &child->rank);
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
	return TS_OK;
}

/* Why a process is not traced, and what to do. */
struct cause {
	const char *reason, *advice;
};

/*
 * Whether a process started before another, so that a summary does not name whichever was found
 * first. Start times are in hundredths of a second; pids that follow each other are in order. A
 * time of 0, of a process that was gone when it was found, is later than all others.
 */
static bool is_earlier(const struct ts_child *child, uint64_t start_time, pid_t pid)
{
	return child->start_time - 1 < start_time - 1 ||
	       (child->start_time == start_time && child->pid < pid);
}

static void note_untraced(struct ts_recorder *recorder, const struct ts_child *child,
			  const struct cause *cause)
{
	struct ts_untraced *untraced = &recorder->untraced;

	if (untraced->count++ && (untraced->is_started > child->launched ||
				  (untraced->is_started == child->launched &&
				   !is_earlier(child, untraced->start_time, untraced->pid))))
		return;
	untraced->pid = child->pid;
	untraced->start_time = child->start_time;
	untraced->is_started = child->launched;
	memcpy(untraced->name, child->name, sizeof(untraced->name));
	snprintf(untraced->reason, sizeof(untraced->reason), "%s", cause->reason);
	snprintf(untraced->advice, sizeof(untraced->advice), "%s", cause->advice);
}

static int report(struct ts_recorder *recorder, struct ts_child *child, const struct cause *cause,
		  struct ts_error *err)
{
	int rc = write_process(recorder, child, err);

	if (!rc)
		rc = ts_recorder_lose(recorder, 0, child->pid, "process", cause->reason, 0, err);
	if (rc)
		return rc == TS_ENOSPC ? TS_OK : rc;
	child->reported = true;
	note_untraced(recorder, child, cause);
	return TS_OK;
}

/* If the shared memory is full, programs that could be traced are not. */
static bool is_brief(const struct ts_recorder *recorder, const struct ts_child *child)
{
	return !child->launched && recorder->now_ns - child->seen_ns < BRIEF_NS &&
	       ts_live_directory_has_space(recorder->directories[0].fd);
}

/* Without a loss: even where it can be traced, such a program has hardly anything to say. */
static int note_brief(struct ts_recorder *recorder, struct ts_child *child, struct ts_error *err)
{
	struct ts_untraced *untraced = &recorder->untraced;

	if (!untraced->brief_count++ ||
	    is_earlier(child, untraced->brief_start_time, untraced->brief_pid)) {
		untraced->brief_pid = child->pid;
		untraced->brief_start_time = child->start_time;
		memcpy(untraced->brief_name, child->name, sizeof(untraced->brief_name));
	}
	return write_process(recorder, child, err);
}

/* True if the agent is not in the process. False if the agent library is unknown. */
static bool is_without_agent(const struct ts_child *child)
{
	char path[TS_AGENT_PATH_BYTES];
	struct stat agent;

	return !ts_agent_library_find(path, sizeof(path), NULL) && !stat(path, &agent) &&
	       !ts_process_maps(child->pid, agent.st_dev, agent.st_ino);
}

/* True once the dynamic linker has had time to load the agent, which then makes a live area. */
static bool is_settled(const struct ts_recorder *recorder, const struct ts_child *child)
{
	return recorder->now_ns - child->seen_ns >= AGENT_AFTER_NS && !recorder->options.pid_count;
}

/*
 * True if the agent could be in the process but is not. Not every exec is reported to us: the
 * process may have called it just now, and still be loading the agent. So two looks must find the
 * same program without it.
 */
static bool lacks_agent(const struct ts_recorder *recorder, struct ts_child *child)
{
	uint64_t stack = ts_process_stack(child->pid);

	if (!is_without_agent(child)) {
		child->without_agent_ns = 0;
		return false;
	}
	if (!child->without_agent_ns || child->stack != stack) {
		child->without_agent_ns = recorder->now_ns;
		child->stack = stack;
	}
	return recorder->now_ns - child->without_agent_ns >= AGENT_AFTER_NS;
}

static bool has_area(struct ts_recorder *recorder, const struct ts_child *child)
{
	for (size_t i = 0; i < recorder->target_count; i++)
		if (recorder->targets[i]->pid == child->pid && !recorder->targets[i]->replaced)
			return true;
	return false;
}

/*
 * Adds the live directory of a process of another user or mount namespace. Our own environment does
 * not say where that is.
 */
static void find_directory(struct ts_recorder *recorder, struct ts_child *child)
{
	char path[64];
	struct stat mounts;
	bool other_mounts;

	if (!ts_process_user(child->pid, &child->user))
		return;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)child->pid);
	other_mounts = !stat(path, &mounts) && recorder->self_mounts &&
		       (uint64_t)mounts.st_ino != recorder->self_mounts;
	/* It may not exist yet: the next check tries again. */
	if (other_mounts || child->user != geteuid())
		ts_targets_add_directory(recorder, child->user, child->pid, NULL);
}

/* Ends the areas of the replaced image, which no area of the new image supersedes. */
static void end_replaced(struct ts_recorder *recorder, const struct ts_child *child)
{
	for (size_t i = 0; i < recorder->target_count; i++)
		if (recorder->targets[i]->pid == child->pid && recorder->targets[i]->replaced)
			ts_target_supersede(recorder->targets[i]);
}

static int report_replaced(struct ts_recorder *recorder, struct ts_child *child,
			   const struct cause *cause, struct ts_error *err)
{
	end_replaced(recorder, child);
	return report(recorder, child, cause, err);
}

/* Why a program with the agent has no live area, as far as we can see. */
static struct cause without_area(const struct ts_recorder *recorder, const char *otherwise)
{
	static const struct cause full = {
		"no live area: the shared memory is full",
		"free space in /dev/shm, or set TRACESMITH_LIVE_DIR to another folder",
	};

	if (!ts_live_directory_has_space(recorder->directories[0].fd))
		return full;
	return (struct cause){ otherwise, "'tracesmith doctor' shows what can be recorded here" };
}

/* A program makes its area when it loads the agent. (A forked process, with its first event.) */
static int inspect_possible(struct ts_recorder *recorder, struct ts_child *child,
			    struct ts_error *err)
{
	static const struct cause cleared = {
		"the agent was not loaded: its environment was cleared",
		"keep LD_PRELOAD and TRACESMITH_AGENT in its environment",
	};
	struct cause cause;

	if (!is_settled(recorder, child))
		return TS_OK;
	if (lacks_agent(recorder, child))
		return report_replaced(recorder, child, &cleared, err);
	if (child->without_agent_ns || !(child->launched || child->executed))
		return TS_OK;
	cause = without_area(recorder, "no live area, although the agent is loaded");
	return report_replaced(recorder, child, &cause, err);
}

static int inspect(struct ts_recorder *recorder, struct ts_child *child, struct ts_error *err)
{
	enum ts_preload preload;

	/* Sampling from outside needs no agent. */
	if (recorder->options.outside)
		return TS_OK;
	find_directory(recorder, child);
	child->has_area |= has_area(recorder, child);
	if (child->has_area)
		end_replaced(recorder, child);
	if (child->reported || child->has_area || child->is_others || is_brief(recorder, child))
		return TS_OK;
	preload = ts_process_preload(child->pid);
	if (preload == TS_PRELOAD_STATIC || preload == TS_PRELOAD_SECURE ||
	    preload == TS_PRELOAD_OTHER_ARCH) {
		struct cause cause = { ts_preload_reason(preload), ts_preload_advice(preload) };

		return report_replaced(recorder, child, &cause, err);
	}
	return preload == TS_PRELOAD_POSSIBLE ? inspect_possible(recorder, child, err) : TS_OK;
}

/*
 * Reads the live directories once more: the process may have made an area since the last scan, and
 * cannot make another one.
 */
static int look_again(struct ts_recorder *recorder, struct ts_child *child, struct ts_error *err)
{
	int rc;

	for (size_t i = 0; i < recorder->directory_count; i++)
		recorder->directories[i].due = true;
	/* Adds targets, but no children, which would move this one. */
	rc = ts_targets_scan(recorder, err);
	child->has_area |= has_area(recorder, child);
	return rc;
}

/* Killed before it could do anything, unless it had no memory. */
static bool was_killed_early(const struct ts_recorder *recorder, const struct ts_child *child)
{
	return child->exited && WIFSIGNALED((int)child->status) &&
	       ts_live_directory_has_space(recorder->directories[0].fd);
}

/*
 * Handles the exit of a process. Also reports a program that was executed but left no area. (A
 * process that only forked has the agent, but no area before its first event.)
 */
static int bury(struct ts_recorder *recorder, struct ts_child *child, struct ts_error *err)
{
	struct cause cause;
	bool is_missing;
	int rc = TS_OK;

	/* A zombie child of this process: its wait status is about to come. */
	if (child->launched && !child->exited && child->check_ns &&
	    ts_process_parent(child->pid) == recorder->self)
		return TS_OK;
	child->has_area |= has_area(recorder, child);
	is_missing = !child->reported && !child->has_area && !recorder->options.pid_count &&
		     !recorder->options.outside && !child->is_others &&
		     (child->launched || child->executed) && !was_killed_early(recorder, child);
	if (is_missing)
		rc = look_again(recorder, child, err);
	child->gone = true;
	if (child->reported || (child->described && !child->had_area && !is_missing))
		rc = write_process(recorder, child, err);
	else if (!rc && is_missing && !child->has_area) {
		cause = without_area(
			recorder, "it exited without a live area: too early, or without the agent");
		rc = is_brief(recorder, child) ? note_brief(recorder, child, err)
					       : report(recorder, child, &cause, err);
	}
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
		const struct ts_child *child = &recorder->children[i];

		if (child->gone && (!child->root || recorder->options.endless)) {
			/* Only root reads the live directories of other users. */
			if (geteuid() == 0)
				ts_pairmap_put(&recorder->users, (uint64_t)child->pid,
					       child->start_time, child->user);
			continue;
		}
		if (kept != i)
			recorder->children[kept] = *child;
		kept++;
	}
	recorder->child_count = kept;
}

static int64_t pause_after(int64_t cost_ns, int64_t share, int64_t least_ns)
{
	return TS_MAX(least_ns, TS_MIN(cost_ns * share, SCAN_GREATEST_NS));
}

static void scan_tree(struct ts_recorder *recorder)
{
	int64_t began = ts_clock_thread_cpu_ns(), cost_ns;

	forget_gone(recorder);
	walk_tree(recorder);
	cost_ns = ts_clock_thread_cpu_ns() - began;
	recorder->scan_ns = recorder->now_ns + pause_after(cost_ns, SCAN_SHARE, SCAN_NS);
	recorder->look_ns = recorder->now_ns + pause_after(cost_ns, LOOK_SHARE, LOOK_NS);
}

/* True if a process or thread was created since the last scan, and it is time to look. */
static bool may_have_forked(struct ts_recorder *recorder)
{
	pid_t newest;

	if (!recorder->python.is_reading || recorder->now_ns < recorder->look_ns)
		return false;
	recorder->look_ns = recorder->now_ns + LOOK_NS;
	newest = ts_process_newest();
	if (newest == recorder->newest_pid)
		return false;
	recorder->newest_pid = newest;
	return true;
}

int ts_children_scan(struct ts_recorder *recorder, struct ts_error *err)
{
	if (!recorder->child_count)
		return TS_OK;
	if (may_have_forked(recorder) || recorder->now_ns >= recorder->scan_ns)
		scan_tree(recorder);
	return check_children(recorder, err);
}

/* Only new processes are worth a wakeup; the rest is checked in passes that happen anyway. */
int64_t ts_children_due(const struct ts_recorder *recorder)
{
	int64_t due = recorder->python.is_reading && recorder->child_count ? recorder->look_ns
									   : INT64_MAX;

	for (size_t i = 0; i < recorder->child_count; i++)
		if (!recorder->children[i].gone && recorder->children[i].checks < EARLY_CHECKS)
			due = TS_MIN(due, recorder->children[i].check_ns);
	return due;
}
