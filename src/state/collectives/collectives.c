/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches commands of several ranks that form one collective. Commands are grouped into lanes: by
 * process group where the trace names it, else by communicating stream. Within a lane they are
 * matched by sequence number where the trace has one, else aligned (collectives_align.c).
 */
#include "state/collectives/collectives.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "state/collectives/collectives_internal.h"

/*
 * Ranks of a lane that may each start a set of partners, for groups that the trace does not
 * distinguish.
 */
#define MOST_LEADERS 32
/* A sequence number that a rank uses more often than this is not a sequence number. */
#define MOST_OCCURRENCES 64

#define LANE_GROUP UINT64_C(0x67726f7570000000)
#define LANE_STREAM UINT64_C(0x73747265616d0000)

struct matcher {
	const struct ts_work *work;
	struct ts_collectives *out;
	size_t match_capacity, member_capacity;
	struct ts_collective_item *items;
	size_t item_count, item_capacity;
	struct ts_collective_name *names; /* parsed names */
	size_t name_count, name_capacity;
	struct ts_map name_indices; /* name to index in `names` plus 1, or 0: not a collective */
	struct ts_error *err;
};

static int no_memory(const struct matcher *m)
{
	ts_error_set(m->err, TS_ENOMEM, "no memory");
	return TS_ENOMEM;
}

/* ---- names ---- */

static bool communicates(const struct ts_work *work, const struct ts_work_command *command)
{
	const char *name;

	if (command->collective != TS_WORK_NONE)
		return true;
	name = ts_work_text(work, command->name);
	return ts_command_class((enum ts_gpu_op_kind)command->kind, name, strlen(name)) ==
	       TS_CLASS_COMMUNICATION;
}

/* Parsed name of a command's kernel; NULL if it is not a collective. */
static int find_name(struct matcher *m, const struct ts_work_command *command,
		     const struct ts_collective_name **ret_name)
{
	const char *name = ts_work_text(m->work, command->name);
	bool is_new;
	uint64_t key = (uint64_t)command->name << 8 | command->kind;
	uint64_t *slot = ts_map_insert(&m->name_indices, key, &is_new);

	*ret_name = NULL;
	if (!slot)
		return no_memory(m);
	if (is_new && communicates(m->work, command)) {
		if (ts_grow_array((void **)&m->names, &m->name_capacity, m->name_count + 1,
				  sizeof(*m->names)))
			return no_memory(m);
		ts_collective_name(name, strlen(name), &m->names[m->name_count++]);
		*slot = m->name_count;
	}
	if (*slot)
		*ret_name = &m->names[*slot - 1];
	return TS_OK;
}

/* ---- items ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t pair[2] = { a, b };

	return ts_hash64(pair, sizeof(pair));
}

static void add_details(const struct matcher *m, const struct ts_work_collective *detail,
			struct ts_collective_name *parsed, struct ts_collective_item *item)
{
	const char *operation = ts_work_text(m->work, detail->operation);

	if (detail->operation)
		ts_collective_name(operation, strlen(operation), parsed);
	item->token = mix(parsed->token, detail->type);
	if (parsed->sized)
		item->token = mix(item->token, (uint64_t)detail->in_elements);
	if (detail->group) {
		item->lane = mix(LANE_GROUP + detail->group, (uint64_t)detail->group_size);
		item->sequence = detail->sequence;
	}
}

static int add_item(struct matcher *m, uint32_t index)
{
	const struct ts_work_command *command = &m->work->commands[index];
	const struct ts_collective_name *found;
	struct ts_collective_name parsed;
	struct ts_collective_item item = { .start = command->start,
					   .end = command->end,
					   .sequence = TS_ABSENT,
					   .command = index,
					   .rank = command->rank };
	int rc = find_name(m, command, &found);

	if (rc || (!found && command->collective == TS_WORK_NONE))
		return rc;
	parsed = found ? *found : (struct ts_collective_name){ .token = 0 };
	item.token = parsed.token;
	item.lane = LANE_STREAM; /* which one: choose_stream_lanes() */
	if (command->collective != TS_WORK_NONE)
		add_details(m, &m->work->collectives[command->collective], &parsed, &item);
	if (parsed.pair)
		return TS_OK;
	item.together = parsed.together;
	item.timed = !(command->flags & TS_COMMAND_UNTIMED);
	if (ts_grow_array((void **)&m->items, &m->item_capacity, m->item_count + 1, sizeof(item)))
		return no_memory(m);
	m->items[m->item_count++] = item;
	return TS_OK;
}

/* ---- lanes of what names no group ---- */

/* Hash of the set of a rank's communicating streams, counted in item order: rank, stream, start. */
static uint64_t stream_set_hash(const struct matcher *m, size_t from, size_t to)
{
	uint64_t hash = 0, last = UINT64_MAX;

	for (size_t i = from; i < to; i++) {
		uint32_t stream = m->work->commands[m->items[i].command].stream;

		if (m->items[i].lane != LANE_STREAM || stream == last)
			continue;
		last = stream;
		hash = mix(hash, (uint64_t)m->work->streams[stream].number);
	}
	return hash;
}

/* Gives a rank's items the number of their stream, or its index among the communicating ones. */
static void name_lanes(struct matcher *m, size_t from, size_t to, bool is_by_number)
{
	uint32_t last = TS_WORK_NONE;
	uint64_t position = 0;

	for (size_t i = from; i < to; i++) {
		uint32_t stream = m->work->commands[m->items[i].command].stream;

		if (m->items[i].lane != LANE_STREAM)
			continue;
		if (stream != last)
			position++;
		last = stream;
		m->items[i].lane =
			mix(LANE_STREAM,
			    is_by_number ? (uint64_t)m->work->streams[stream].number : position);
	}
}

static size_t end_of_rank(const struct matcher *m, size_t from)
{
	size_t to = from;

	while (to < m->item_count && m->items[to].rank == m->items[from].rank)
		to++;
	return to;
}

/* Streams are matched by number if all ranks use the same numbers, else by order. */
static void choose_stream_lanes(struct matcher *m)
{
	bool is_by_number = true;
	uint64_t first = 0;

	for (size_t i = 0, to; i < m->item_count; i = to) {
		uint64_t hash;

		to = end_of_rank(m, i);
		hash = stream_set_hash(m, i, to);
		if (!first)
			first = hash;
		if (hash && hash != first)
			is_by_number = false;
	}
	for (size_t i = 0, to; i < m->item_count; i = to) {
		to = end_of_rank(m, i);
		name_lanes(m, i, to, is_by_number);
	}
}

static int gather_items(struct matcher *m)
{
	int rc = TS_OK;

	for (uint32_t i = 0; i < m->work->command_count && !rc; i++)
		rc = add_item(m, i);
	if (!rc)
		choose_stream_lanes(m);
	return rc;
}

/* ---- what comes out ---- */

static int begin_match(struct matcher *m, const struct ts_collective_item *item, bool is_by_order,
		       int64_t sequence)
{
	const struct ts_work_command *command = &m->work->commands[item->command];
	struct ts_collective_match match = { .name = command->name,
					     .sequence = sequence,
					     .first = m->out->member_count,
					     .by_order = is_by_order,
					     .together = item->together };

	if (command->collective != TS_WORK_NONE) {
		const struct ts_work_collective *detail =
			&m->work->collectives[command->collective];

		match.group = detail->group;
		if (detail->operation)
			match.name = detail->operation;
	}
	if (ts_grow_array((void **)&m->out->matches, &m->match_capacity,
			  (size_t)m->out->match_count + 1, sizeof(match)))
		return no_memory(m);
	m->out->matches[m->out->match_count++] = match;
	return TS_OK;
}

static int add_member(struct matcher *m, const struct ts_collective_item *item)
{
	if (ts_grow_array((void **)&m->out->members, &m->member_capacity,
			  (size_t)m->out->member_count + 1, sizeof(uint32_t)))
		return no_memory(m);
	m->out->members[m->out->member_count++] = item->command;
	m->out->matches[m->out->match_count - 1].count++;
	return TS_OK;
}

/* ---- by sequence number ---- */

static int compare_int64(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_uint64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_sort_keys(const struct ts_collective_item *a, const struct ts_collective_item *b)
{
	if (a->rank != b->rank)
		return compare_uint64(a->rank, b->rank);
	if (a->start != b->start)
		return compare_int64(a->start, b->start);
	return compare_uint64(a->command, b->command);
}

/*
 * By lane; within a lane, items without sequence number first, by rank and start; then by sequence
 * number, rank and start.
 */
static int compare_items(const void *left, const void *right)
{
	const struct ts_collective_item *a = left, *b = right;

	if (a->lane != b->lane)
		return compare_uint64(a->lane, b->lane);
	if (a->sequence != b->sequence)
		return compare_int64(a->sequence, b->sequence);
	return compare_sort_keys(a, b);
}

static int compare_partners(const void *left, const void *right)
{
	const struct ts_collective_item *a = left, *b = right;

	if (a->sequence != b->sequence)
		return compare_int64(a->sequence, b->sequence);
	if (a->occurrence != b->occurrence)
		return compare_uint64(a->occurrence, b->occurrence);
	return compare_sort_keys(a, b);
}

/* Numbers a rank's items that share a sequence number; false: the numbers are meaningless. */
static bool count_occurrences(struct ts_collective_item *items, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const struct ts_collective_item *before = &items[i - 1];

		if (before->sequence == items[i].sequence && before->rank == items[i].rank)
			items[i].occurrence = before->occurrence + 1;
		if (items[i].occurrence > MOST_OCCURRENCES)
			return false;
	}
	return true;
}

static int join_partners(struct matcher *m, const struct ts_collective_item *items, size_t count)
{
	size_t equal = 0;
	int rc;

	for (size_t i = 0; i < count; i++)
		equal += items[i].token == items[0].token;
	if (equal < 2)
		return TS_OK;
	rc = begin_match(m, &items[0], false, items[0].sequence);
	for (size_t i = 0; i < count && !rc; i++)
		if (items[i].token == items[0].token)
			rc = add_member(m, &items[i]);
	return rc;
}

static int match_by_number(struct matcher *m, struct ts_collective_item *items, size_t count)
{
	int rc = TS_OK;

	ts_sort(items, count, sizeof(*items), compare_partners);
	for (size_t i = 0, to; i < count && !rc; i = to) {
		for (to = i + 1; to < count && items[to].sequence == items[i].sequence &&
				 items[to].occurrence == items[i].occurrence;)
			to++;
		rc = join_partners(m, items + i, to - i);
	}
	return rc;
}

/* ---- by order ---- */

/* The items of one rank in a lane. */
struct run {
	const struct ts_collective_item *items;
	size_t count;
	bool is_matched;
};

struct pair {
	uint32_t position; /* in the leader's run */
	const struct ts_collective_item *item;
};

struct pairs {
	struct pair *pairs;
	size_t count, capacity;
};

static int compare_pairs(const void *left, const void *right)
{
	const struct pair *a = left, *b = right;

	if (a->position != b->position)
		return compare_uint64(a->position, b->position);
	return compare_uint64(a->item->rank, b->item->rank);
}

static int add_run(struct matcher *m, const struct run *leader, struct run *run,
		   struct pairs *pairs, uint32_t *partner)
{
	size_t matched;
	int rc = ts_collective_align(leader->items, leader->count, run->items, run->count, partner,
				     &matched, m->err);

	if (rc || !matched)
		return rc;
	run->is_matched = true;
	if (ts_grow_array((void **)&pairs->pairs, &pairs->capacity, pairs->count + matched,
			  sizeof(*pairs->pairs)))
		return no_memory(m);
	for (size_t i = 0; i < leader->count; i++)
		if (partner[i] != UINT32_MAX)
			pairs->pairs[pairs->count++] =
				(struct pair){ .position = (uint32_t)i,
					       .item = &run->items[partner[i]] };
	return TS_OK;
}

static int join_pairs(struct matcher *m, const struct run *leader, struct pairs *pairs)
{
	int rc = TS_OK;

	if (pairs->count)
		ts_sort(pairs->pairs, pairs->count, sizeof(*pairs->pairs), compare_pairs);
	for (size_t i = 0; i < pairs->count && !rc; i++) {
		uint32_t position = pairs->pairs[i].position;

		if (i == 0 || pairs->pairs[i - 1].position != position) {
			rc = begin_match(m, &leader->items[position], true, position);
			if (!rc)
				rc = add_member(m, &leader->items[position]);
		}
		if (!rc)
			rc = add_member(m, pairs->pairs[i].item);
	}
	return rc;
}

/* Partners of one leader among the runs after it. */
static int match_leader(struct matcher *m, struct run *runs, size_t count)
{
	TS_AUTO_FREE uint32_t *partner = ts_alloc_array(runs[0].count, sizeof(*partner));
	struct pairs pairs = { 0 };
	int rc = partner ? TS_OK : no_memory(m);

	for (size_t i = 1; i < count && !rc; i++)
		if (!runs[i].is_matched)
			rc = add_run(m, &runs[0], &runs[i], &pairs, partner);
	if (!rc)
		rc = join_pairs(m, &runs[0], &pairs);
	free(pairs.pairs);
	return rc;
}

static int match_runs(struct matcher *m, struct run *runs, size_t count)
{
	size_t leaders = 0;
	int rc = TS_OK;

	for (size_t i = 0; i + 1 < count && leaders < MOST_LEADERS && !rc; i++) {
		if (runs[i].is_matched)
			continue;
		leaders++;
		rc = match_leader(m, runs + i, count - i);
	}
	return rc;
}

/* Items without times have no position in the order. */
static size_t drop_untimed(struct ts_collective_item *items, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (items[i].timed)
			items[kept++] = items[i];
	return kept;
}

static int compare_by_rank(const void *left, const void *right)
{
	return compare_sort_keys(left, right);
}

static int match_by_order(struct matcher *m, struct ts_collective_item *items, size_t count)
{
	TS_AUTO_FREE struct run *runs = NULL;
	size_t run_count = 0, capacity = 0;

	count = drop_untimed(items, count);
	ts_sort(items, count, sizeof(*items), compare_by_rank);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || items[i].rank != items[i - 1].rank) {
			if (ts_grow_array((void **)&runs, &capacity, run_count + 1, sizeof(*runs)))
				return no_memory(m);
			runs[run_count++] = (struct run){ .items = items + i };
		}
		runs[run_count - 1].count++;
	}
	return match_runs(m, runs, run_count);
}

/* ---- all lanes ---- */

static int match_lane(struct matcher *m, struct ts_collective_item *items, size_t count)
{
	size_t unnumbered = 0;
	int rc;

	while (unnumbered < count && items[unnumbered].sequence == TS_ABSENT)
		unnumbered++;
	if (!count_occurrences(items + unnumbered, count - unnumbered))
		unnumbered = count;
	rc = match_by_order(m, items, unnumbered);
	if (!rc)
		rc = match_by_number(m, items + unnumbered, count - unnumbered);
	return rc;
}

static int match_lanes(struct matcher *m)
{
	int rc = TS_OK;

	if (m->item_count)
		ts_sort(m->items, m->item_count, sizeof(*m->items), compare_items);
	for (size_t i = 0, to; i < m->item_count && !rc; i = to) {
		for (to = i + 1; to < m->item_count && m->items[to].lane == m->items[i].lane;)
			to++;
		rc = match_lane(m, m->items + i, to - i);
	}
	return rc;
}

/* ---- by first start ---- */

struct sort_key {
	int64_t start;
	uint32_t match;
};

static int compare_starts(const void *left, const void *right)
{
	const struct sort_key *a = left, *b = right;

	if (a->start != b->start)
		return compare_int64(a->start, b->start);
	return compare_uint64(a->match, b->match);
}

static int64_t first_start(const struct matcher *m, const struct ts_collective_match *match)
{
	int64_t start = INT64_MAX;

	for (uint32_t i = 0; i < match->count; i++) {
		uint32_t command = m->out->members[match->first + i];

		start = TS_MIN(start, m->work->commands[command].start);
	}
	return start;
}

static int order_matches(struct matcher *m)
{
	uint32_t count = m->out->match_count;
	TS_AUTO_FREE struct sort_key *sorted = ts_alloc_array(count, sizeof(*sorted));
	struct ts_collective_match *ordered = ts_alloc_array(count, sizeof(*ordered));

	if (!sorted || !ordered) {
		free(ordered);
		return no_memory(m);
	}
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = (struct sort_key){ first_start(m, &m->out->matches[i]), i };
	ts_sort(sorted, count, sizeof(*sorted), compare_starts);
	for (uint32_t i = 0; i < count; i++)
		ordered[i] = m->out->matches[sorted[i].match];
	free(m->out->matches);
	m->out->matches = ordered;
	return TS_OK;
}

static int match_all(struct matcher *m)
{
	int rc = gather_items(m);

	if (!rc && m->work->rank_count > 1)
		rc = match_lanes(m);
	if (!rc && m->out->match_count)
		rc = order_matches(m);
	m->out->unmatched = m->item_count - m->out->member_count;
	return rc;
}

int ts_collectives_new(struct ts_collectives **ret_collectives, const struct ts_work *work,
		       struct ts_error *err)
{
	TS_AUTO(ts_collectives) out = calloc(1, sizeof(*out));
	struct matcher m = { .work = work, .out = out, .err = err };
	int rc;

	if (!out)
		return no_memory(&m);
	ts_map_init(&m.name_indices);
	rc = match_all(&m);
	ts_map_release(&m.name_indices);
	free(m.names);
	free(m.items);
	if (!rc)
		*ret_collectives = TS_STEAL(out);
	return rc;
}

void ts_collectives_free(struct ts_collectives *collectives)
{
	if (!collectives)
		return;
	free(collectives->matches);
	free(collectives->members);
	free(collectives);
}
