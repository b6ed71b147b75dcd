/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups threads with equal stacks: the same functions, files and lines from the outermost frame to
 * the innermost. For a job of many processes of which one hangs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/stack/stack_verb.h"

static int compare_frames(const struct ts_stack_frame *a, const struct ts_stack_frame *b)
{
	int order = strcmp(a->function, b->function);

	if (!order)
		order = strcmp(a->file, b->file);
	return order ? order : TS_COMPARE(a->line, b->line);
}

static const struct ts_stack_frame *outer_frame(const struct ts_stack_group_thread *member,
						size_t depth)
{
	return &member->thread->frames[member->thread->count - 1 - depth];
}

/* From the outermost frame on. */
static int compare_stacks(const struct ts_stack_group_thread *a,
			  const struct ts_stack_group_thread *b)
{
	size_t shared = TS_MIN(a->thread->count, b->thread->count);

	for (size_t i = 0; i < shared; i++) {
		int order = compare_frames(outer_frame(a, i), outer_frame(b, i));

		if (order)
			return order;
	}
	return TS_COMPARE(a->thread->count, b->thread->count);
}

/* Processes without a rank come last. */
static int compare_members(const struct ts_stack_group_thread *a,
			   const struct ts_stack_group_thread *b)
{
	uint64_t left = (uint64_t)a->process->rank, right = (uint64_t)b->process->rank;

	if (left != right)
		return TS_COMPARE(left, right);
	if (a->process->pid != b->process->pid)
		return TS_COMPARE(a->process->pid, b->process->pid);
	return TS_COMPARE(a->thread->tid, b->thread->tid);
}

static int compare_group_threads(const void *left, const void *right)
{
	int order = compare_stacks(left, right);

	return order ? order : compare_members(left, right);
}

static int compare_groups(const void *left, const void *right)
{
	const struct ts_stack_group *a = left, *b = right;

	if (a->process_count != b->process_count)
		return TS_COMPARE(b->process_count, a->process_count);
	if (a->count != b->count)
		return TS_COMPARE(b->count, a->count);
	return compare_members(a->members, b->members);
}

/* Threads of a process are adjacent. */
static size_t count_processes(const struct ts_stack_group_thread *members, size_t count)
{
	size_t processes = 0;

	for (size_t i = 0; i < count; i++)
		processes += !i || members[i].process != members[i - 1].process;
	return processes;
}

static void split(struct ts_stack_groups *groups)
{
	for (size_t i = 0; i < groups->member_count; i++) {
		if (i && !compare_stacks(groups->groups[groups->group_count - 1].members,
					 &groups->members[i])) {
			groups->groups[groups->group_count - 1].count++;
			continue;
		}
		groups->groups[groups->group_count++] =
			(struct ts_stack_group){ .members = &groups->members[i], .count = 1 };
	}
	for (size_t i = 0; i < groups->group_count; i++) {
		struct ts_stack_group *group = &groups->groups[i];

		group->process_count = count_processes(group->members, group->count);
	}
}

/*
 * Common outermost frames; the threads are sorted, so comparing the first and the last is enough.
 */
static size_t count_common(const struct ts_stack_groups *groups)
{
	const struct ts_stack_group_thread *first, *last;
	size_t shared, count = 0;

	if (!groups->member_count)
		return 0;
	first = &groups->members[0];
	last = &groups->members[groups->member_count - 1];
	shared = TS_MIN(first->thread->count, last->thread->count);
	while (count < shared &&
	       !compare_frames(outer_frame(first, count), outer_frame(last, count)))
		count++;
	return count;
}

static size_t collect(struct ts_stack_group_thread *members,
		      const struct ts_stack_process *processes, size_t count, bool main,
		      size_t *ret_processes)
{
	size_t collected = 0;

	*ret_processes = 0;
	for (size_t i = 0; i < count; i++) {
		size_t before = collected;

		for (size_t k = 0; k < processes[i].count; k++) {
			const struct ts_stack_thread *thread = &processes[i].threads[k];

			if (thread->is_main != main || !thread->count)
				continue;
			if (members)
				members[collected] =
					(struct ts_stack_group_thread){ &processes[i], thread };
			collected++;
		}
		*ret_processes += collected > before;
	}
	return collected;
}

int ts_stack_groups_init(struct ts_stack_groups *ret_groups,
			 const struct ts_stack_process *processes, size_t count, bool main)
{
	struct ts_stack_groups groups = { 0 };

	groups.member_count = collect(NULL, processes, count, main, &groups.process_count);
	groups.members = ts_alloc_array(groups.member_count, sizeof(*groups.members));
	groups.groups = ts_alloc_array(groups.member_count, sizeof(*groups.groups));
	if (!groups.members || !groups.groups) {
		ts_stack_groups_release(&groups);
		return TS_ENOMEM;
	}
	collect(groups.members, processes, count, main, &groups.process_count);
	ts_sort(groups.members, groups.member_count, sizeof(*groups.members),
		compare_group_threads);
	split(&groups);
	groups.common = count_common(&groups);
	ts_sort(groups.groups, groups.group_count, sizeof(*groups.groups), compare_groups);
	*ret_groups = groups;
	return TS_OK;
}

void ts_stack_groups_release(struct ts_stack_groups *groups)
{
	free(groups->members);
	free(groups->groups);
}
