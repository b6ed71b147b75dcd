/* SPDX-License-Identifier: Apache-2.0 */
/* Prints groups of threads with equal stacks: location, processes and call path. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/stack/stack_verb.h"

/* ---- processes ---- */

/* "0-2,4,7" from sorted numbers. */
static void put_ranges(struct ts_text *out, const int64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count;) {
		size_t last = i;

		while (last + 1 < count && numbers[last + 1] - numbers[last] <= 1)
			last++;
		ts_text_printf(out, "%s%" PRId64, i ? "," : "", numbers[i]);
		if (numbers[last] > numbers[i])
			ts_text_printf(out,
				       numbers[last] - numbers[i] == 1 ? ",%" PRId64 : "-%" PRId64,
				       numbers[last]);
		i = last + 1;
	}
}

static int compare_numbers(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return TS_COMPARE(a, b);
}

/*
 * Ranks or pids of the group's processes, each once; `numbers` holds as many as the group has
 * threads.
 */
static size_t list_numbers(const struct ts_stack_group *group, bool ranks, int64_t *numbers)
{
	size_t count = 0;

	for (size_t i = 0; i < group->count; i++) {
		const struct ts_stack_process *process = group->members[i].process;

		if (i && process == group->members[i - 1].process)
			continue;
		if (!ranks)
			numbers[count++] = process->pid;
		else if (process->rank >= 0)
			numbers[count++] = process->rank;
	}
	ts_sort(numbers, count, sizeof(*numbers), compare_numbers);
	return count;
}

/* "ranks 0-2 (pids 7-9)", or "pid 7". */
static void put_members(struct ts_text *out, const struct ts_stack_group *group)
{
	TS_AUTO_FREE int64_t *numbers = ts_alloc_array(group->count, sizeof(*numbers));
	size_t ranks, pids;

	if (!numbers)
		return;
	ranks = list_numbers(group, true, numbers);
	if (ranks) {
		ts_text_append_str(out, ranks == 1 ? "rank " : "ranks ");
		put_ranges(out, numbers, ranks);
		ts_text_append_str(out, " (");
	}
	pids = list_numbers(group, false, numbers);
	ts_text_append_str(out, pids == 1 ? "pid " : "pids ");
	put_ranges(out, numbers, pids);
	if (ranks)
		ts_text_append_char(out, ')');
}

/* "7 of 8", or for other threads "14 threads of 7 processes". */
static void put_size(struct ts_text *out, const struct ts_stack_groups *groups,
		     const struct ts_stack_group *group, bool main)
{
	if (main)
		ts_text_printf(out, "%zu of %zu", group->process_count, groups->process_count);
	else
		ts_text_printf(out, "%zu thread%s of %zu process%s", group->count,
			       group->count == 1 ? "" : "s", group->process_count,
			       group->process_count == 1 ? "" : "es");
}

/* ---- frames ---- */

static void put_summary(struct ts_text *out, const struct ts_stack_groups *groups, bool main,
			bool colour)
{
	for (size_t i = 0; i < groups->group_count; i++) {
		const struct ts_stack_group *group = &groups->groups[i];
		TS_SCOPED(ts_text) members = { 0 };

		ts_text_append_str(out, "    ");
		put_size(out, groups, group, main);
		ts_text_append_str(out, ": ");
		ts_stack_put_frame(out, &group->members[0].thread->frames[0], colour);
		/* The outliers. */
		if (group->process_count < groups->groups[0].process_count) {
			put_members(&members, group);
			ts_text_append_str(out, "  ");
			ts_stack_put_coloured(out, colour, TS_STACK_YELLOW, "<- ");
			ts_stack_put_coloured(out, colour, TS_STACK_YELLOW, ts_text_cstr(&members));
		}
		ts_text_append_char(out, '\n');
	}
}

/* Frames from a depth on, outermost first. */
static void put_way(struct ts_text *out, const struct ts_stack_thread *thread, size_t from,
		    size_t to, bool colour)
{
	for (size_t i = from; i < to; i++) {
		ts_text_append_str(out, "    ");
		ts_stack_put_frame(out, &thread->frames[thread->count - 1 - i], colour);
		ts_text_append_char(out, '\n');
	}
}

static void put_ways(struct ts_text *out, const struct ts_stack_groups *groups, bool main,
		     bool colour)
{
	const struct ts_stack_thread *first = groups->groups[0].members[0].thread;

	if (groups->common) {
		ts_text_printf(out, "\n%s, outermost frame first:\n",
			       groups->group_count == 1 ? "their stack" : "common to all");
		put_way(out, first, 0, groups->common, colour);
	}
	for (size_t i = 0; i < groups->group_count && groups->group_count > 1; i++) {
		const struct ts_stack_group *group = &groups->groups[i];
		const struct ts_stack_thread *thread = group->members[0].thread;

		ts_text_append_char(out, '\n');
		put_size(out, groups, group, main);
		ts_text_append_str(out, ", ");
		put_members(out, group);
		ts_text_append_str(out, groups->common ? ", continue with:\n" : ":\n");
		put_way(out, thread, groups->common, thread->count, colour);
		if (groups->common == thread->count)
			ts_text_append_str(out, "    (nothing: the frame above is the "
						"innermost)\n");
	}
}

static void put_main(struct ts_text *out, const struct ts_stack_groups *groups, bool colour)
{
	TS_SCOPED(ts_text) title = { 0 };

	ts_text_printf(&title, "%zu process%s at %zu place%s (main threads)", groups->process_count,
		       groups->process_count == 1 ? "" : "es", groups->group_count,
		       groups->group_count == 1 ? "" : "s");
	ts_stack_put_coloured(out, colour, TS_STACK_BOLD, ts_text_cstr(&title));
	ts_text_append_char(out, '\n');
	put_summary(out, groups, true, colour);
	put_ways(out, groups, true, colour);
}

/* Only the location of the others; their call path matters less. */
static void put_others(struct ts_text *out, const struct ts_stack_groups *groups, bool colour)
{
	TS_SCOPED(ts_text) title = { 0 };

	ts_text_printf(&title, "%zu other thread%s at %zu place%s", groups->member_count,
		       groups->member_count == 1 ? "" : "s", groups->group_count,
		       groups->group_count == 1 ? "" : "s");
	ts_text_append_char(out, '\n');
	ts_stack_put_coloured(out, colour, TS_STACK_BOLD, ts_text_cstr(&title));
	ts_text_append_char(out, '\n');
	put_summary(out, groups, false, colour);
}

/* ---- groups ---- */

int ts_stack_put_groups_text(struct ts_text *out, const struct ts_stack_process *processes,
			     size_t count, bool colour)
{
	struct ts_stack_groups groups;
	int rc = ts_stack_groups_init(&groups, processes, count, true);

	if (rc)
		return rc;
	if (groups.group_count)
		put_main(out, &groups, colour);
	ts_stack_groups_release(&groups);
	rc = ts_stack_groups_init(&groups, processes, count, false);
	if (rc)
		return rc;
	if (groups.group_count)
		put_others(out, &groups, colour);
	ts_stack_groups_release(&groups);
	return TS_OK;
}

static void put_json_group(struct ts_text *out, const struct ts_stack_groups *groups,
			   const struct ts_stack_group *group, bool main)
{
	const struct ts_stack_thread *thread = group->members[0].thread;

	ts_text_printf(out,
		       "{\"main\":%s,\"processes\":%zu,\"of\":%zu,\"common\":%zu,\"threads\":[",
		       main ? "true" : "false", group->process_count, groups->process_count,
		       groups->common);
	for (size_t i = 0; i < group->count; i++) {
		const struct ts_stack_group_thread *member = &group->members[i];

		ts_text_printf(out, "%s{\"pid\":%d,\"tid\":%d,\"rank\":", i ? "," : "",
			       (int)member->process->pid, (int)member->thread->tid);
		if (member->process->rank >= 0)
			ts_text_append_int(out, member->process->rank);
		else
			ts_text_append_str(out, "null");
		ts_text_append_str(out, ",\"name\":");
		ts_text_append_json(out, member->thread->name, strlen(member->thread->name));
		ts_text_append_char(out, '}');
	}
	ts_text_append_str(out, "],\"frames\":");
	ts_stack_put_json_frames(out, thread->frames, thread->count);
	ts_text_append_str(out, "}\n");
}

int ts_stack_put_groups_json(struct ts_text *out, const struct ts_stack_process *processes,
			     size_t count)
{
	for (int main = 1; main >= 0; main--) {
		struct ts_stack_groups groups;
		int rc = ts_stack_groups_init(&groups, processes, count, main);

		if (rc)
			return rc;
		for (size_t i = 0; i < groups.group_count; i++)
			put_json_group(out, &groups, &groups.groups[i], main);
		ts_stack_groups_release(&groups);
	}
	return TS_OK;
}
