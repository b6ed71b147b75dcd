/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the launches that the samples of a kernel may belong to: all launches of the kernel by call
 * stack, with their device time. Counts the samples that name their launch.
 */
#include "analyze/pc_samples/pc_samples_internal.h"
#include "base/ns.h"

/* ---- commands of the kernel ---- */

static bool is_named(struct ts_pc_samples *hot, int64_t name)
{
	struct ts_string text = ts_reader_string(hot->store->reader, name);

	return text.length && strcmp(text.data, hot->kernels[0].name) == 0;
}

static int add_command(struct ts_pc_samples *hot, const struct ts_batch *batch, uint32_t row)
{
	struct ts_pc_samples_store *store = hot->store;
	int64_t name = ts_pc_samples_column(batch, TS_COLUMN_OF(gpu_op, name), row);
	bool is_new = false;
	uint64_t *known = ts_map_insert(&store->names, (uint64_t)name, &is_new), *sharers;

	if (known && is_new)
		*known = is_named(hot, name);
	if (!known || !*known)
		return known ? TS_OK : TS_ENOMEM;
	if (ts_grow_array((void **)&store->commands, &store->command_capacity,
			  store->command_count + 1, sizeof(*store->commands)))
		return TS_ENOMEM;
	store->commands[store->command_count] = (struct ts_pc_samples_command){
		.correlation = ts_pc_samples_column(batch, TS_COLUMN_OF(gpu_op, correlation), row),
		.device_ns = ts_pc_samples_column(batch, TS_COLUMN_OF(gpu_op, duration), row),
		.stack = ts_pc_samples_column(batch, TS_COLUMN_OF(gpu_op, stack), row),
		.device = ts_pc_samples_column(batch, TS_COLUMN_OF(gpu_op, device), row),
		.process = ts_pc_samples_column(batch, TS_COLUMN_OF(gpu_op, process), row),
	};
	sharers = ts_map_insert(&store->sharers,
				(uint64_t)store->commands[store->command_count++].correlation,
				NULL);
	if (!sharers)
		return TS_ENOMEM;
	++*sharers;
	return TS_OK;
}

/* ---- their calls ---- */

/* A graph's kernel has the stack of its capture; any other has the stack of its call. */
static int64_t stack_of(const struct ts_pc_samples *hot,
			const struct ts_pc_samples_command *command)
{
	if (command->stack > 0)
		return command->stack;
	return ts_call_index_find(hot->store->calls, command->device, command->process,
				  command->correlation)
		.stack;
}

/* ---- the list ---- */

/*
 * Commands of a graph share the correlation of its launch, and samples do not say which command
 * they belong to: each gets an equal share. The first ones get the remainder, so that each sample
 * counts once.
 */
static int64_t share_of(struct ts_pc_samples *hot, const struct ts_pc_samples_command *command)
{
	uint64_t samples, *left;
	uint64_t part;

	if (!ts_map_get(&hot->store->launches, (uint64_t)command->correlation, &samples))
		return 0;
	left = ts_map_insert(&hot->store->sharers, (uint64_t)command->correlation, NULL);
	if (!left || !*left)
		return 0;
	part = (samples + *left - 1) / *left;
	(*left)--;
	return ts_map_put(&hot->store->launches, (uint64_t)command->correlation, samples - part)
		       ? 0
		       : (int64_t)part;
}

static int add_launch(struct ts_pc_samples *hot, struct ts_map *positions, size_t *capacity,
		      const struct ts_pc_samples_command *command)
{
	int64_t stack = stack_of(hot, command);
	bool is_new = false;
	uint64_t *position = ts_map_insert(positions, (uint64_t)stack, &is_new);
	struct ts_pc_samples_launch *launch;

	if (!position || (is_new && ts_grow_array((void **)&hot->launches, capacity,
						  hot->launch_count + 1, sizeof(*hot->launches))))
		return TS_ENOMEM;
	if (is_new) {
		*position = hot->launch_count++;
		hot->launches[*position] = (struct ts_pc_samples_launch){ .stack = stack };
	}
	launch = &hot->launches[*position];
	launch->launches++;
	launch->device_ns = ts_ns_add(launch->device_ns, command->device_ns);
	if (command->correlation != TS_ABSENT)
		launch->samples = ts_ns_add(launch->samples, share_of(hot, command));
	return TS_OK;
}

static int compare_launches(const void *a, const void *b)
{
	const struct ts_pc_samples_launch *left = a, *right = b;

	if (left->samples != right->samples)
		return TS_COMPARE(right->samples, left->samples);
	if (left->device_ns != right->device_ns)
		return TS_COMPARE(right->device_ns, left->device_ns);
	return TS_COMPARE(left->stack, right->stack);
}

static int make_list(struct ts_pc_samples *hot, struct ts_error *err)
{
	struct ts_map positions = { 0 };
	size_t capacity = 0;
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < hot->store->command_count; i++)
		rc = add_launch(hot, &positions, &capacity, &hot->store->commands[i]);
	ts_map_release(&positions);
	if (rc)
		return ts_error_set(err, rc, "no memory");
	ts_sort(hot->launches, hot->launch_count, sizeof(*hot->launches), compare_launches);
	return TS_OK;
}

int ts_pc_samples_find_launches(struct ts_pc_samples *hot, struct ts_error *err)
{
	int rc = ts_pc_samples_each_row(
		hot, TS_TABLE_GPU_OP,
		TS_MASK_OF(gpu_op, name) | TS_MASK_OF(gpu_op, correlation) |
			TS_MASK_OF(gpu_op, duration) | TS_MASK_OF(gpu_op, stack) |
			TS_MASK_OF(gpu_op, device) | TS_MASK_OF(gpu_op, process),
		add_command, err);

	if (!rc)
		rc = ts_call_index_new(&hot->store->calls, hot->store->reader, err);
	return rc ? rc : make_list(hot, err);
}

void ts_pc_samples_release_launches(struct ts_pc_samples_store *store)
{
	ts_map_release(&store->names);
	ts_map_release(&store->sharers);
	ts_call_index_free(store->calls);
	free(store->commands);
}
