/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps frames to dictionary entries: native frames by module and address, Python frames in place of
 * the interpreter loop that runs them. Runs only for stacks not seen before.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch_stack.h"
#include "code/local/cfi.h"
#include "code/local/jumps.h"
#include "code/local/registers.h"

#define FRAME_BUCKETS 16384u /* a power of two */
#define MOST_MODULES 4096u
#define MOST_LOOP_BYTES (UINT64_C(1) << 20)
#define OURS "libtracesmith"

/* Flag bits above the entry's number in a frame word: there are fewer than 2^24 entries. */
#define IS_LOOP (UINT64_C(1) << 63) /* the interpreter's loop */
#define IS_OURS (UINT64_C(1) << 62)
#define ADDRESS_BITS (~(IS_LOOP | IS_OURS))

static struct agent_slot *frames_of_pcs;
static uint32_t markers[TS_LOCAL_UNWIND_TOO_DEEP +
			1]; /* dictionary entries for the ends of incomplete stacks */

/* ---- modules ---- */

struct module {
	uint64_t identity;
	uint32_t entry;
	bool is_ours;
};
static struct modules {
	uint32_t count;
	struct module module[MOST_MODULES];
} * modules; /* guarded by the core's lock */

/* FNV-1a. */
static uint64_t add_hash(uint64_t hash, const void *data, size_t bytes)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t identify(const struct ts_local_unwind_module *module)
{
	uint64_t hash = add_hash(UINT64_C(0xcbf29ce484222325), module->path, strlen(module->path));

	hash = add_hash(hash, module->build_id, module->build_id_bytes);
	return add_hash(hash, &module->start, sizeof(module->start));
}

static bool is_ours(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, OURS, strlen(OURS));
}

/* The main program has no name in the list of modules. */
static void name_program(char *path, size_t bytes)
{
	ssize_t length = readlink("/proc/self/exe", path, bytes - 1);

	path[length > 0 ? length : 0] = '\0';
}

static void print_build_id(const struct ts_local_unwind_module *module, char *ret_text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < module->build_id_bytes; i++) {
		ret_text[2 * i] = digits[module->build_id[i] >> 4];
		ret_text[2 * i + 1] = digits[module->build_id[i] & 15];
	}
	ret_text[2 * module->build_id_bytes] = '\0';
}

static struct module add_module(struct core *core, uint64_t identity,
				struct ts_local_unwind_module *found)
{
	struct ts_live_module where = { .start = found->start, .bytes = found->bytes };
	char build_id[2 * sizeof(found->build_id) + 1];
	struct module module = { .identity = identity };

	if (!found->path[0])
		name_program(found->path, sizeof(found->path));
	print_build_id(found, build_id);
	module.is_ours = is_ours(found->path);
	module.entry = agent_add_module(core, found->path, build_id, &where);
	if (module.entry && modules && modules->count < MOST_MODULES)
		modules->module[modules->count++] = module;
	return module;
}

static struct module find_module(struct core *core, struct ts_local_unwind_module *found)
{
	uint64_t identity = identify(found);
	struct module module = { .identity = 0 };

	agent_lock(core);
	if (!modules)
		modules = agent_memory(sizeof(*modules));
	for (uint32_t i = 0; modules && i < modules->count && !module.identity; i++)
		if (modules->module[i].identity == identity)
			module = modules->module[i];
	if (!module.identity)
		module = add_module(core, identity, found);
	agent_unlock(core);
	return module;
}

/* ---- the interpreter's loop ---- */

/* At its start a function has only its return address on the stack. */
static bool begins_inside(uint64_t start)
{
	const int64_t at_start = TS_REGISTER_PC == 16 ? 8 : 0;
	const uint8_t *unused;
	struct ts_cfi_row row;

	return ts_local_unwind_find_row(start, &row, &unused) &&
	       (row.frame.kind != TS_CFI_REGISTER || row.frame.reg != TS_REGISTER_SP ||
		row.frame.value != at_start);
}

/*
 * Includes the loop's cold part, which the compiler moves elsewhere: it has its own unwind rules,
 * which begin in the middle of a function (see src/code/cold_code.c).
 */
static bool is_loop(uint64_t address, const struct ts_local_unwind_module *module)
{
	uint64_t loop = agent_python_loop(), bias = module->bias, bytes;
	struct ts_cfi_row row, loop_row;
	const uint8_t *unused;

	if (!loop || loop - module->start >= module->bytes ||
	    !ts_local_unwind_find_row(loop, &loop_row, &unused) ||
	    !ts_local_unwind_find_row(address, &row, &unused))
		return false;
	if (row.start == loop_row.start)
		return true;
	bytes = loop_row.end - loop_row.start;
	if (bytes > MOST_LOOP_BYTES || !begins_inside(row.start + bias))
		return false;
	return ts_jumps_count((const uint8_t *)(uintptr_t)(loop_row.start + bias), bytes,
			      loop_row.start, row.start, row.end) >= TS_JUMPS_MIN;
}

/* ---- frames ---- */

/* 0: no file is mapped there. */
static uint64_t native_frame(struct core *core, uint64_t pc, struct ts_local_unwind_module *found)
{
	uint64_t key = ts_local_unwind_key(pc, ts_local_unwind_generation()), word;
	struct agent_slot *slots = agent_slots(&frames_of_pcs, FRAME_BUCKETS * AGENT_SLOT_WAYS);
	struct agent_slot *bucket =
		slots ? &slots[ts_local_unwind_bucket(pc) % FRAME_BUCKETS * AGENT_SLOT_WAYS] : NULL;
	struct module module;

	word = bucket ? agent_slot_find(bucket, key) : 0;
	if (word || !ts_local_unwind_find_module(pc - 1, found))
		return word;
	word = (uint32_t)(pc - 1 - found->bias);
	if (is_loop(pc - 1, found))
		word |= IS_LOOP;
	module = find_module(core, found);
	word |= ts_live_frame(module.entry, 0) | (module.is_ours ? IS_OURS : 0);
	if (bucket && module.entry)
		agent_slot_keep(bucket, key, word);
	return word;
}

static uint64_t marker(struct core *core, enum ts_local_unwind_end end)
{
	static const char *const texts[] = { [TS_LOCAL_UNWIND_NO_TABLES] = "[no unwind tables]",
					     [TS_LOCAL_UNWIND_OTHER_STACK] = "[other stack]",
					     [TS_LOCAL_UNWIND_TOO_DEEP] = "[too deep]" };
	uint32_t entry = __atomic_load_n(&markers[end], __ATOMIC_ACQUIRE);

	if (!entry) {
		entry = agent_register_code(core, TS_LIVE_CODE_NATIVE, texts[end], NULL, 0);
		__atomic_store_n(&markers[end], entry, __ATOMIC_RELEASE);
	}
	return ts_live_frame(entry, 0);
}

/* ---- merging ---- */

struct merging {
	struct core *core;
	const struct agent_python_stack *python;
	uint32_t python_at; /* frames already emitted, from the innermost on */
	struct agent_merged_stack *stack;
	bool is_cut;
};

static void put(struct merging *merging, uint64_t word)
{
	if (merging->stack->count < TS_LIVE_FRAMES)
		merging->stack->frames[merging->stack->count++] = word;
	else
		merging->is_cut = true;
}

/* Adds the Python frames of one loop; an agent_python_stack has the outermost frame first. */
static void put_run(struct merging *merging)
{
	const struct agent_python_stack *python = merging->python;

	while (merging->python_at < python->count) {
		uint32_t at = python->count - 1 - merging->python_at++;

		put(merging, python->frames[at]);
		if (python->is_entry[at])
			return;
	}
}

static void put_all_python(struct merging *merging)
{
	while (merging->python_at < merging->python->count)
		put_run(merging);
}

static uint32_t count_runs(const struct agent_python_stack *python)
{
	uint32_t runs = 0;

	for (uint32_t i = 0; i < python->count; i++)
		runs += python->is_entry[i];
	return runs;
}

/*
 * Replaces return addresses by frame words and drops the agent's own frames at the inner end.
 * Returns the number of loops.
 */
static uint32_t map_frames(struct core *core, const struct ts_local_unwind_stack *native,
			   struct ts_local_unwind_module *found, size_t *ret_first)
{
	uint32_t loops = 0;

	*ret_first = 0;
	for (size_t i = 0; i < native->count; i++) {
		native->pcs[i] = native_frame(core, native->pcs[i], found);
		loops += native->pcs[i] >> 63;
		if (*ret_first == i && (native->pcs[i] & IS_OURS))
			*ret_first = i + 1;
	}
	return loops;
}

/*
 * Both stacks are of one instant, so there are as many loops as runs of Python frames. If the
 * native stack ends early, there are fewer loops, and the outer runs follow it. If the numbers do
 * not match otherwise, no loop is replaced, and all Python frames go to the outermost loop.
 */
static void merge_native(struct merging *merging, const struct ts_local_unwind_stack *native)
{
	size_t first, last_loop = native->count;
	uint32_t loops = map_frames(merging->core, native, &merging->stack->module, &first);
	uint32_t runs = count_runs(merging->python);
	bool fits = loops == runs || (native->end != TS_LOCAL_UNWIND_COMPLETE && loops < runs);

	for (size_t i = first; i < native->count; i++)
		if (native->pcs[i] & IS_LOOP)
			last_loop = i;
	for (size_t i = first; i < native->count; i++) {
		uint64_t word = native->pcs[i];

		if (fits && (word & IS_LOOP)) {
			put_run(merging);
			continue;
		}
		if (i == last_loop)
			put_all_python(merging);
		/* The marker represents code without a file. */
		if (word)
			put(merging, word & ADDRESS_BITS);
	}
	if (native->end != TS_LOCAL_UNWIND_COMPLETE)
		put(merging, marker(merging->core, native->end));
}

void agent_stack_merge(struct core *core, const struct ts_local_unwind_stack *native,
		       const struct agent_python_stack *python, struct agent_merged_stack *stack)
{
	struct merging merging = { .core = core, .python = python, .stack = stack };

	stack->count = 0;
	merge_native(&merging, native);
	put_all_python(&merging);
	if (merging.is_cut)
		stack->frames[TS_LIVE_FRAMES - 1] = marker(core, TS_LOCAL_UNWIND_TOO_DEEP);
}

void agent_stack_frames_forget(void)
{
	__atomic_store_n(&frames_of_pcs, NULL, __ATOMIC_RELEASE);
	memset(markers, 0, sizeof(markers));
	modules = NULL;
}
