/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks as a tree in the dictionary: (caller's entry, frame) to entry, looked up in a hash table
 * in private memory. A forked child inherits the table and a copy of the dictionary, so numbers
 * stay valid.
 */
#include <sys/mman.h>

#include "agent/launch_stack.h"

#define FIRST_SLOTS 16384u /* a power of two; it doubles */

/* One allocation, so that a child forked meanwhile has either the old or the new table. */
struct tree {
	uint64_t count, slots;
	struct agent_slot slot[];
};
static struct tree *tree; /* guarded by the core's lock */

static uint64_t key_of(uint32_t caller, uint64_t frame)
{
	uint64_t key = ts_local_unwind_mix(
		ts_local_unwind_mix(UINT64_C(0xe7037ed1a0b428db), caller), frame);

	return key | 1;
}

static struct tree *make_tree(uint64_t slots)
{
	struct tree *table = agent_memory(sizeof(*table) + slots * sizeof(table->slot[0]));

	if (table)
		table->slots = slots;
	return table;
}

static bool is_free(const struct agent_slot *slot)
{
	return slot->check == 0 && slot->value == 0;
}

/*
 * The slot of a key, or the free slot where it belongs. A slot that was half written at a fork
 * matches no key.
 */
static struct agent_slot *find_slot(struct tree *in, uint64_t key)
{
	uint64_t at = key >> 20;

	for (;; at++) {
		struct agent_slot *slot = &in->slot[at & (in->slots - 1)];

		if (is_free(slot) || slot->check == agent_slot_check(key, slot->value))
			return slot;
	}
}

static void put(struct tree *in, uint64_t key, uint64_t value)
{
	struct agent_slot *slot = find_slot(in, key);

	slot->value = value;
	__atomic_store_n(&slot->check, agent_slot_check(key, value), __ATOMIC_RELEASE);
	in->count++;
}

/* Keeps the table at most half full, so that every search ends. */
static bool reserve_slot(void)
{
	struct tree *old = tree, *larger;

	if (!old) {
		tree = make_tree(FIRST_SLOTS);
		return tree != NULL;
	}
	if (old->count < old->slots / 2)
		return true;
	larger = make_tree(old->slots * 2);
	if (!larger)
		return false;
	for (uint64_t i = 0; i < old->slots; i++) {
		const struct agent_slot *slot = &old->slot[i];

		if (!is_free(slot))
			put(larger, slot->check ^ agent_slot_check(0, slot->value), slot->value);
	}
	__atomic_store_n(&tree, larger, __ATOMIC_RELEASE);
	munmap(old, sizeof(*old) + old->slots * sizeof(old->slot[0]));
	return true;
}

static uint32_t find_or_add(struct core *core, uint32_t caller, uint64_t frame)
{
	uint64_t key = key_of(caller, frame);
	struct agent_slot *slot;
	uint32_t number;

	if (!reserve_slot())
		return 0;
	slot = find_slot(tree, key);
	if (!is_free(slot))
		return (uint32_t)slot->value;
	number = agent_add_stack(core, caller, frame);
	if (number)
		put(tree, key, number);
	return number;
}

uint32_t agent_stack_number(struct core *core, const struct agent_merged_stack *stack)
{
	uint32_t number = 0;

	agent_lock(core);
	for (uint32_t i = stack->count; i-- > 0;) {
		number = find_or_add(core, number, stack->frames[i]);
		if (!number)
			break;
	}
	agent_unlock(core);
	return number;
}

void agent_stack_tree_forget(void)
{
	tree = NULL;
}
