/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of random streams: whatever part is requested, in whatever order a device may run it, each
 * requested command produces what it produced in the full stream. Streams have several queues, in
 * and out of order, events, user events, barriers and host waits, and no races: of two commands
 * that touch the same bytes one always runs first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/local/hash.h"
#include "replay/plan/plan.h"
#include "replay/stream/stream_internal.h"
#include "unit/runner.h"

#define QUEUES 3u
#define MEMORIES 4u
#define USERS 3u
#define BYTES 64u
#define MOST 96u
#define STREAMS 400

/* Objects: queues, then memories, then user events. */
#define MEMORY(i) (QUEUES + (i))
#define USER(i) (QUEUES + MEMORIES + (i))
#define OBJECTS (QUEUES + MEMORIES + USERS)

typedef unsigned __int128 set; /* of commands */
_Static_assert(MOST <= 128, "a set has a bit for each command");

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static set bit(uint32_t command)
{
	return (set)1 << command;
}

/* ---- generating a stream ---- */

struct maker {
	struct ts_replay_stream stream;
	struct ts_replay_object_info objects[OBJECTS];
	struct ts_replay_command_info commands[MOST];
	struct ts_map sets;
	set before[MOST];       /* complete when it begins */
	set seen;               /* known to the host to be complete */
	set in_queue[QUEUES];   /* all commands in the queue */
	set barrier[QUEUES];    /* out of order: the last barrier and all that it waits for */
	uint32_t pending[MOST]; /* user event that it or a predecessor waits for, plus 1 */
	bool is_set[USERS], is_used[USERS];
};

static void start(struct maker *maker)
{
	memset(maker, 0, sizeof(*maker));
	maker->stream.objects = maker->objects;
	maker->stream.commands = maker->commands;
	maker->stream.object_count = OBJECTS;
	for (uint32_t i = 0; i < OBJECTS; i++) {
		struct ts_replay_object_info *object = &maker->objects[i];

		object->parent = object->created_by = object->freed_by = TS_REPLAY_NONE;
		object->number = object->index = i + 1;
		object->name = "";
		object->kind = i < QUEUES              ? TS_OBJECT_STREAM
			       : i < QUEUES + MEMORIES ? TS_OBJECT_MEMORY
						       : TS_OBJECT_EVENT;
		object->bytes = BYTES;
	}
	maker->objects[QUEUES - 1].flags = TS_REPLAY_OUT_OF_ORDER;
}

static struct ts_replay_command_info *add(struct maker *maker, enum ts_command_kind kind,
					  uint32_t queue)
{
	struct ts_replay_command_info *command = &maker->commands[maker->stream.command_count];

	TS_CHECK(maker->stream.command_count < MOST);
	command->sequence = 10 + maker->stream.command_count;
	command->start_ns = (int64_t)command->sequence * 1000;
	command->kind = kind;
	command->queue = queue;
	command->object = command->other = command->user_event = TS_REPLAY_NONE;
	command->image = command->other_image = TS_REPLAY_NONE;
	maker->stream.command_count++;
	return command;
}

static struct ts_replay_range draw_range(void)
{
	uint32_t from = draw(BYTES - 1), bytes = 1 + draw(BYTES - from);

	return (struct ts_replay_range){ MEMORY(draw(MEMORIES)), from, bytes };
}

static bool touch(const struct ts_replay_range *a, uint32_t a_count,
		  const struct ts_replay_range *b, uint32_t b_count)
{
	for (uint32_t i = 0; i < a_count; i++)
		for (uint32_t j = 0; j < b_count; j++)
			if (a[i].memory == b[j].memory && a[i].offset < b[j].offset + b[j].bytes &&
			    b[j].offset < a[i].offset + a[i].bytes)
				return true;
	return false;
}

static bool conflict(const struct ts_replay_command_info *a, const struct ts_replay_command_info *b)
{
	if (a->unknown_access || b->unknown_access)
		return (a->unknown_access || a->read_count + a->write_count) &&
		       (b->unknown_access || b->read_count + b->write_count);
	return touch(a->writes, a->write_count, b->writes, b->write_count) ||
	       touch(a->writes, a->write_count, b->reads, b->read_count) ||
	       touch(a->reads, a->read_count, b->writes, b->write_count);
}

/* Everything that must have run when all of `commands` have. */
static set closure(const struct maker *maker, set commands)
{
	set all = commands;

	for (uint32_t i = 0; i < maker->stream.command_count; i++)
		if (commands >> i & 1)
			all |= maker->before[i];
	return all;
}

static void wait_for(struct maker *maker, struct ts_replay_command_info *command, uint32_t on)
{
	uint32_t *waits = (uint32_t *)(uintptr_t)command->waits;

	if (!waits) {
		waits = ts_arena_alloc_zeroed(&maker->stream.arena, MOST, sizeof(*waits));
		TS_CHECK(waits);
		command->waits = waits;
		command->has_wait_list = true;
	}
	waits[command->wait_count++] = on;
}

/* What precedes a command by queue order alone. */
static set by_queue(const struct maker *maker, const struct ts_replay_command_info *command)
{
	bool out_of_order = maker->objects[command->queue].flags & TS_REPLAY_OUT_OF_ORDER;
	bool looks_back =
		(command->kind == TS_COMMAND_WAIT || command->kind == TS_COMMAND_RECORD) &&
		!command->has_wait_list;

	return !out_of_order || looks_back ? maker->in_queue[command->queue]
					   : maker->barrier[command->queue];
}

static set before_of(const struct maker *maker, uint32_t index)
{
	const struct ts_replay_command_info *command = &maker->commands[index];
	set direct = maker->seen;

	if (command->queue != TS_REPLAY_NONE)
		direct |= by_queue(maker, command);
	for (uint32_t i = 0; i < command->wait_count; i++)
		direct |= bit(command->waits[i]);
	return closure(maker, direct);
}

/* Does it depend on a user event that is not set? */
static uint32_t pending_of(const struct maker *maker, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (maker->before[index] >> i & 1 && maker->pending[i])
			return maker->pending[i];
	return 0;
}

static void settle(struct maker *maker, uint32_t index)
{
	const struct ts_replay_command_info *command = &maker->commands[index];

	maker->before[index] = before_of(maker, index);
	if (!maker->pending[index])
		maker->pending[index] = pending_of(maker, index);
	if (command->queue == TS_REPLAY_NONE)
		return;
	maker->in_queue[command->queue] |= bit(index);
	if (command->kind == TS_COMMAND_WAIT)
		maker->barrier[command->queue] = closure(maker, maker->before[index] | bit(index));
}

/* The host waits for a queue, unless that would never end. */
static bool sync_queue(struct maker *maker, uint32_t queue)
{
	for (uint32_t i = 0; i < maker->stream.command_count; i++)
		if (maker->in_queue[queue] >> i & 1 && maker->pending[i])
			return false;
	add(maker, TS_COMMAND_SYNC, queue);
	maker->seen = closure(maker, maker->seen | maker->in_queue[queue]);
	maker->before[maker->stream.command_count - 1] = maker->seen;
	return true;
}

/* Makes the newest command run after `on`: by its event, or by that of a later command. */
static void order(struct maker *maker, uint32_t index, uint32_t on)
{
	struct ts_replay_command_info *command = &maker->commands[index];
	uint32_t last = on;

	for (uint32_t i = on + 1; i < index; i++)
		if (maker->before[i] >> on & 1 && maker->commands[i].queue != TS_REPLAY_NONE &&
		    maker->commands[i].kind != TS_COMMAND_SYNC && draw(2))
			last = i;
	wait_for(maker, command, last);
}

/* No command that touches the same bytes may run concurrently. */
static void avoid_races(struct maker *maker, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (conflict(&maker->commands[i], &maker->commands[index]) &&
		    !(before_of(maker, index) >> i & 1))
			order(maker, index, i);
}

static const struct ts_replay_range *keep(struct maker *maker, const struct ts_replay_range *ranges,
					  uint32_t count)
{
	return ts_arena_copy(&maker->stream.arena, ranges, count * sizeof(*ranges));
}

static void add_launch(struct maker *maker, struct ts_replay_command_info *command)
{
	struct ts_replay_range reads[3], writes[3];
	uint32_t count = 1 + draw(3);

	for (uint32_t i = 0; i < count; i++) {
		struct ts_replay_range range = draw_range();
		uint32_t access = 1 + draw(3);

		if (access & 1)
			reads[command->read_count++] = range;
		if (access & 2)
			writes[command->write_count++] = range;
	}
	command->reads = keep(maker, reads, command->read_count);
	command->writes = keep(maker, writes, command->write_count);
	command->unknown_access = draw(40) == 0;
}

static void add_copy(struct maker *maker, struct ts_replay_command_info *command)
{
	struct ts_replay_range to = draw_range(), from = draw_range();

	from.bytes = to.bytes = TS_MIN(from.bytes, to.bytes);
	if (draw(3)) {
		command->object = to.memory;
		command->writes = keep(maker, &to, 1);
		command->write_count = 1;
	}
	if (command->object == TS_REPLAY_NONE || draw(2)) {
		command->other = from.memory;
		command->reads = keep(maker, &from, 1);
		command->read_count = 1;
	}
	command->blocking = draw(6) == 0;
	/* Only every other byte of a rectangle. */
	command->is_rect = draw(4) == 0;
}

static void add_write(struct maker *maker, struct ts_replay_command_info *command)
{
	struct ts_replay_range to = draw_range();

	command->object = to.memory;
	command->writes = keep(maker, &to, 1);
	command->write_count = 1;
}

static void add_user_wait(struct maker *maker, uint32_t index)
{
	struct ts_replay_command_info *command = &maker->commands[index];
	uint32_t user = draw(USERS), object = USER(user);

	if (maker->is_set[user] || command->queue == TS_REPLAY_NONE)
		return;
	command->user_waits = ts_arena_copy(&maker->stream.arena, &object, sizeof(object));
	command->user_wait_count = 1;
	command->has_wait_list = true;
	command->blocking = false;
	maker->is_used[user] = true;
	maker->pending[index] = user + 1;
}

static void set_user(struct maker *maker, uint32_t user)
{
	struct ts_replay_command_info *command;

	if (maker->is_set[user] || !maker->is_used[user])
		return;
	command = add(maker, TS_COMMAND_RECORD, TS_REPLAY_NONE);
	command->user_event = USER(user);
	TS_CHECK(!ts_map_put(&maker->sets, USER(user), maker->stream.command_count - 1));
	maker->before[maker->stream.command_count - 1] = maker->seen;
	maker->is_set[user] = true;
	/* Some may still wait for another one. */
	for (uint32_t i = 0; i < maker->stream.command_count; i++)
		if (maker->pending[i] == user + 1)
			maker->pending[i] = 0;
	for (uint32_t i = 0; i < maker->stream.command_count; i++)
		if (!maker->pending[i])
			maker->pending[i] = pending_of(maker, i);
}

static void add_data(struct maker *maker)
{
	static const enum ts_command_kind kinds[] = { TS_COMMAND_LAUNCH, TS_COMMAND_LAUNCH,
						      TS_COMMAND_COPY,   TS_COMMAND_COPY,
						      TS_COMMAND_FILL,   TS_COMMAND_HOST_WRITE };
	uint32_t index = maker->stream.command_count;
	struct ts_replay_command_info *command =
		add(maker, kinds[draw(TS_ARRAY_SIZE(kinds))], draw(QUEUES));

	if (command->kind == TS_COMMAND_LAUNCH)
		add_launch(maker, command);
	else if (command->kind == TS_COMMAND_COPY)
		add_copy(maker, command);
	else
		add_write(maker, command);
	if (draw(12) == 0)
		add_user_wait(maker, index);
	avoid_races(maker, index);
	settle(maker, index);
	if (maker->pending[index])
		command->blocking = false;
	if (command->blocking)
		maker->seen = closure(maker, maker->seen | bit(index));
}

static void add_marker(struct maker *maker)
{
	uint32_t index = maker->stream.command_count;

	add(maker, draw(2) ? TS_COMMAND_RECORD : TS_COMMAND_WAIT, draw(QUEUES));
	if (index && draw(2)) {
		uint32_t on = draw(index);

		if (maker->commands[on].queue != TS_REPLAY_NONE &&
		    maker->commands[on].kind != TS_COMMAND_SYNC)
			wait_for(maker, &maker->commands[index], on);
	}
	settle(maker, index);
}

static void make(struct maker *maker, uint32_t count)
{
	struct ts_replay_load load = { .stream = &maker->stream };
	struct ts_error err;

	start(maker);
	while (maker->stream.command_count < count) {
		uint32_t what = draw(20);

		if (what == 0)
			sync_queue(maker, draw(QUEUES));
		else if (what == 1)
			add_marker(maker);
		else if (what == 2)
			set_user(maker, draw(USERS));
		else
			add_data(maker);
	}
	for (uint32_t i = 0; i < USERS; i++)
		set_user(maker, i);
	load.user_sets = maker->sets;
	TS_CHECK_INT(ts_replay_load_order(&load, &err), 0);
	ts_arena_release(&load.scratch);
}

static void end(struct maker *maker)
{
	ts_map_release(&maker->sets);
	ts_arena_release(&maker->stream.arena);
}

/* ---- effects of commands ---- */

struct machine {
	const struct maker *maker;
	uint8_t memory[MEMORIES][BYTES];
	uint64_t results[MOST];
	bool done[MOST];
};

static uint8_t *bytes_at(struct machine *machine, const struct ts_replay_range *range)
{
	return machine->memory[range->memory - QUEUES] + range->offset;
}

static uint64_t hash_ranges(struct machine *machine, const struct ts_replay_range *ranges,
			    uint32_t count)
{
	uint64_t hash = 1;

	for (uint32_t i = 0; i < count; i++)
		hash = ts_hash_mix64(
			hash ^ ts_hash64(bytes_at(machine, &ranges[i]), (size_t)ranges[i].bytes));
	return hash;
}

/* Writes some or all of the bytes, computed from those read. */
static void scatter(struct machine *machine, const struct ts_replay_range *range, uint64_t seed,
		    bool all)
{
	uint8_t *to = bytes_at(machine, range);

	for (uint64_t i = 0; i < range->bytes; i++)
		if (all || ts_hash_mix64(range->offset + i) & 1)
			to[i] = (uint8_t)ts_hash_mix64(seed + i);
}

static void execute(struct machine *machine, uint32_t index)
{
	const struct ts_replay_command_info *command = &machine->maker->commands[index];
	struct ts_replay_range all[MEMORIES];
	const struct ts_replay_range *reads = command->reads, *writes = command->writes;
	uint32_t read_count = command->read_count, write_count = command->write_count;
	uint64_t seed = ts_hash_mix64(command->sequence);

	if (command->unknown_access) {
		for (uint32_t i = 0; i < MEMORIES; i++)
			all[i] = (struct ts_replay_range){ MEMORY(i), 0, BYTES };
		reads = writes = all;
		read_count = write_count = MEMORIES;
	}
	seed ^= hash_ranges(machine, reads, read_count);
	/* Bytes of a copy are those that it read; of anything else they depend on all of them. */
	if (command->kind == TS_COMMAND_COPY && read_count && write_count && !command->is_rect)
		memmove(bytes_at(machine, writes), bytes_at(machine, reads), (size_t)reads->bytes);
	else
		for (uint32_t i = 0; i < write_count; i++)
			scatter(machine, &writes[i], seed,
				command->kind != TS_COMMAND_LAUNCH && !command->is_rect);
	machine->results[index] = write_count ? hash_ranges(machine, writes, write_count) : seed;
}

/* ---- a device that runs what it may, in any order ---- */

struct device {
	struct machine machine;
	const struct ts_replay_plan *plan;
	bool given[MOST], set[OBJECTS];
};

static bool is_queued(const struct ts_replay_command_info *command)
{
	return command->queue != TS_REPLAY_NONE && command->kind != TS_COMMAND_SYNC;
}

/* May it begin by the order of its queue? */
static bool queue_allows(const struct device *device, uint32_t index)
{
	const struct maker *maker = device->machine.maker;
	const struct ts_replay_command_info *command = &maker->commands[index];
	bool in_order = !(maker->objects[command->queue].flags & TS_REPLAY_OUT_OF_ORDER);
	bool is_marker = device->plan->kept[index] == TS_REPLAY_ORDER &&
			 command->kind != TS_COMMAND_WAIT && command->kind != TS_COMMAND_RECORD;
	bool looks_back =
		(command->kind == TS_COMMAND_WAIT || command->kind == TS_COMMAND_RECORD) &&
		!command->has_wait_list && !is_marker;

	for (uint32_t i = 0; i < index; i++) {
		const struct ts_replay_command_info *other = &maker->commands[i];

		if (!device->given[i] || device->machine.done[i] || !is_queued(other) ||
		    other->queue != command->queue)
			continue;
		if (in_order || looks_back || other->kind == TS_COMMAND_WAIT)
			return false;
	}
	return true;
}

static bool may_run(const struct device *device, uint32_t index)
{
	const struct ts_replay_command_info *command = &device->machine.maker->commands[index];

	if (!device->given[index] || device->machine.done[index])
		return false;
	for (uint32_t i = 0; i < command->wait_count; i++) {
		uint32_t on = ts_replay_plan_wait(device->plan, command->waits[i]);

		if (on != TS_REPLAY_NONE && !device->machine.done[on])
			return false;
	}
	for (uint32_t i = 0; i < command->user_wait_count; i++)
		if (!device->set[command->user_waits[i]])
			return false;
	return command->queue == TS_REPLAY_NONE || queue_allows(device, index);
}

/* Runs a command that may run, if there is one. */
static bool step(struct device *device)
{
	uint32_t may[MOST], count = 0, index;

	for (uint32_t i = 0; i < device->machine.maker->stream.command_count; i++)
		if (may_run(device, i))
			may[count++] = i;
	if (!count)
		return false;
	index = may[draw(count)];
	if (device->plan->kept[index] != TS_REPLAY_ORDER)
		execute(&device->machine, index);
	device->machine.done[index] = true;
	return true;
}

static bool is_idle(const struct device *device, uint32_t queue)
{
	for (uint32_t i = 0; i < device->machine.maker->stream.command_count; i++)
		if (device->given[i] && !device->machine.done[i] &&
		    device->machine.maker->commands[i].queue == queue)
			return false;
	return true;
}

/* In a queue that cannot be created? */
static bool is_host_wait(const struct device *device, uint32_t index)
{
	const struct maker *maker = device->machine.maker;
	uint32_t queue = maker->commands[index].queue;

	return queue != TS_REPLAY_NONE && maker->objects[queue].unreplayable;
}

static void submit(struct device *device, uint32_t index)
{
	const struct ts_replay_command_info *command = &device->machine.maker->commands[index];

	if (is_host_wait(device, index)) {
		TS_CHECK_INT(device->plan->kept[index], TS_REPLAY_ORDER);
		while (step(device))
			;
		device->machine.done[index] = true;
		return;
	}
	if (command->kind == TS_COMMAND_SYNC) {
		while (!is_idle(device, command->queue))
			TS_CHECK(step(device));
		device->machine.done[index] = true;
		return;
	}
	if (command->user_event != TS_REPLAY_NONE) {
		device->set[command->user_event] = true;
		device->machine.done[index] = true;
		return;
	}
	device->given[index] = true;
	while (command->blocking && !device->machine.done[index])
		TS_CHECK(step(device));
	while (draw(3) == 0 && step(device))
		;
}

static void run(struct device *device, const struct maker *maker, const struct ts_replay_plan *plan)
{
	memset(device, 0, sizeof(*device));
	device->machine.maker = maker;
	device->plan = plan;
	for (uint32_t i = 0; i < plan->count; i++)
		submit(device, plan->order[i]);
	while (step(device))
		;
	for (uint32_t i = 0; i < plan->count; i++)
		TS_CHECK(device->machine.done[plan->order[i]]);
}

/* ---- commands that cannot be replayed ---- */

static uint32_t unknown_results, known_results, dependents;

/* Some commands, and now and then all of a queue. */
static void spoil(struct maker *maker)
{
	uint32_t queue = draw(3) ? TS_REPLAY_NONE : draw(QUEUES);

	if (queue != TS_REPLAY_NONE)
		maker->objects[queue].unreplayable = "no such queue";
	for (uint32_t i = 0; i < maker->stream.command_count; i++) {
		struct ts_replay_command_info *command = &maker->commands[i];
		bool has_data = command->read_count || command->write_count;

		if ((queue != TS_REPLAY_NONE && command->queue == queue) ||
		    (has_data && draw(12) == 0))
			command->unreplayable = "not captured";
	}
}

static bool is_known(const struct ts_replay_plan *plan,
		     const struct ts_replay_command_info *command)
{
	for (uint32_t i = 0; i < command->write_count; i++)
		if (ts_replay_plan_is_unknown(plan, &command->writes[i]))
			return false;
	return command->write_count || !ts_replay_plan_is_unknown(plan, command);
}

static void compare_known(const struct maker *maker, const struct ts_replay_plan *plan,
			  const struct machine *full)
{
	struct device device;

	run(&device, maker, plan);
	for (uint32_t i = 0; i < maker->stream.command_count; i++) {
		const struct ts_replay_command_info *command = &maker->commands[i];

		if ((plan->kept[i] != TS_REPLAY_REQUESTED && plan->kept[i] != TS_REPLAY_INCLUDED) ||
		    (!command->read_count && !command->write_count))
			continue;
		if (is_known(plan, command))
			TS_CHECK_INT(device.machine.results[i], full->results[i]);
		known_results += is_known(plan, command);
		unknown_results += !is_known(plan, command);
	}
	for (uint32_t i = 0; plan->is_complete && i < MEMORIES; i++)
		if (!ts_replay_plan_is_unknown(plan, &maker->objects[MEMORY(i)]))
			TS_CHECK(!memcmp(device.machine.memory[i], full->memory[i], BYTES));
}

static void compare_skipping(const struct maker *maker, const struct machine *full)
{
	char from[16], to[16];
	struct ts_replay_options options = { .skip_unsupported = true };

	for (int i = 0; i < 6; i++) {
		uint32_t first = draw(maker->stream.command_count);
		struct ts_replay_plan plan;
		struct ts_error err;

		if (ts_replay_plan_make(&plan, &maker->stream, &options, &err))
			TS_CHECK(strstr(err.message, "nothing is left") ||
				 strstr(err.message, "cannot be skipped") ||
				 err.code == TS_ENOTFOUND);
		else
			compare_known(maker, &plan, full);
		dependents += plan.dependent;
		ts_replay_plan_release(&plan);
		snprintf(from, sizeof(from), "%u", 10 + first);
		snprintf(to, sizeof(to), "%u",
			 11 + first + draw(maker->stream.command_count - first));
		options.from = from;
		options.to = to;
	}
}

/* ---- tests ---- */

static void compare(const struct maker *maker, const struct ts_replay_options *options,
		    const struct machine *full)
{
	struct ts_replay_plan plan;
	struct device device;
	struct ts_error err;
	int rc = ts_replay_plan_make(&plan, &maker->stream, options, &err);

	if (rc == TS_ENOTFOUND)
		return;
	TS_CHECK_INT(rc, 0);
	run(&device, maker, &plan);
	for (uint32_t i = 0; i < maker->stream.command_count; i++) {
		const struct ts_replay_command_info *command = &maker->commands[i];

		if ((plan.kept[i] == TS_REPLAY_REQUESTED || plan.kept[i] == TS_REPLAY_INCLUDED) &&
		    (command->read_count || command->write_count))
			TS_CHECK_INT(device.machine.results[i], full->results[i]);
	}
	ts_replay_plan_release(&plan);
}

static void compare_ranges(const struct maker *maker, const struct machine *full)
{
	char from[16], to[16], queues[16];
	struct ts_replay_options options = { .from = from, .to = to };

	for (int i = 0; i < 8; i++) {
		uint32_t first = draw(maker->stream.command_count);

		snprintf(from, sizeof(from), "%u", 10 + first);
		snprintf(to, sizeof(to), "%u",
			 11 + first + draw(maker->stream.command_count - first));
		options.streams = draw(3) ? NULL : queues;
		snprintf(queues, sizeof(queues), "%u", 1 + draw(QUEUES));
		compare(maker, &options, full);
	}
}

TS_TEST(parts_give_what_the_whole_gave)
{
	uint32_t included = 0, order_only = 0, left_out = 0;

	for (int i = 0; i < STREAMS; i++) {
		struct maker maker;
		struct device full;
		struct ts_replay_plan plan;
		struct ts_error err;
		const struct ts_replay_options all = { .streams = NULL };
		const struct ts_replay_options last = { .from = "40", .to = "45" };

		state = (uint64_t)i * 77 + 5;
		make(&maker, 30 + draw(MOST - 40));
		TS_CHECK_INT(ts_replay_plan_make(&plan, &maker.stream, &all, &err), 0);
		TS_CHECK(plan.is_complete && plan.requested == maker.stream.command_count);
		run(&full, &maker, &plan);
		/* Whatever the device runs first, there is one result. */
		compare(&maker, &all, &full.machine);
		compare_ranges(&maker, &full.machine);
		ts_replay_plan_release(&plan);
		if (!ts_replay_plan_make(&plan, &maker.stream, &last, &err)) {
			included += plan.included;
			order_only += plan.count - plan.requested - plan.included;
			left_out += maker.stream.command_count - plan.count;
		}
		ts_replay_plan_release(&plan);
		end(&maker);
	}
	/* All cases occurred. */
	TS_CHECK(included > STREAMS && order_only > STREAMS && left_out > STREAMS);
}

/* Whatever is left out, what the plan does not call unknown is as in the full stream. */
TS_TEST(what_does_not_depend_on_skipped_commands_is_right)
{
	for (int i = 0; i < STREAMS; i++) {
		struct maker maker;
		struct device full;
		struct ts_replay_plan plan;
		struct ts_error err;
		const struct ts_replay_options all = { .streams = NULL };

		state = (uint64_t)i * 79 + 7;
		make(&maker, 30 + draw(MOST - 40));
		TS_CHECK_INT(ts_replay_plan_make(&plan, &maker.stream, &all, &err), 0);
		run(&full, &maker, &plan);
		ts_replay_plan_release(&plan);
		spoil(&maker);
		compare_skipping(&maker, &full.machine);
		end(&maker);
	}
	/* All cases occurred. */
	TS_CHECK(known_results > STREAMS && unknown_results > STREAMS && dependents > STREAMS);
}
