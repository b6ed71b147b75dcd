/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers the call stack of the calling thread: the number is a dictionary entry (docs/cuda.md,
 * section 4). A known stack is found by the hash of its return addresses and Python frames. Only a
 * new one is merged (launch_stack_frames.c) and looked up in the tree (launch_stack_tree.c).
 */
#include "agent/launch_stack.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <tracesmith/accelerator.h>

#define STACK_BUCKETS 16384u /* a power of two */
#define TABLE_FULL UINT64_C(0xffffffff)
#define REPORT_NS 1000000000u

uint32_t agent_stacks_requested;

static struct agent_slot *stacks; /* hash to number */
static uint64_t lost, lost_reported_ns;

/* One per thread. */
struct stack_buffer {
	bool is_busy;
	uint64_t pcs[TS_LIVE_FRAMES];
	struct ts_local_unwind_last last;
	struct agent_merged_stack merged;
};
static __thread struct stack_buffer *buffer __attribute__((tls_model("initial-exec")));

uint32_t agent_stacks_parse(const char *text)
{
	if (!strcmp(text, "native"))
		return TS_STACKS_NATIVE;
	if (!strcmp(text, "python"))
		return TS_STACKS_PYTHON;
	return !strcmp(text, "all") ? TS_STACKS_NATIVE | TS_STACKS_PYTHON : 0;
}

/* ---- slots ---- */

struct agent_slot *agent_slots(struct agent_slot **slots, size_t count)
{
	struct agent_slot *found = __atomic_load_n(slots, __ATOMIC_ACQUIRE), *none = NULL;

	if (AGENT_LIKELY(found != NULL))
		return found;
	found = agent_memory(count * sizeof(*found));
	if (!found || __atomic_compare_exchange_n(slots, &none, found, false, __ATOMIC_ACQ_REL,
						  __ATOMIC_ACQUIRE))
		return found;
	munmap(found, count * sizeof(*found));
	return none;
}

void agent_slot_keep(struct agent_slot *slots, uint64_t key, uint64_t value)
{
	struct agent_slot *slot = &slots[key % 8191 % AGENT_SLOT_WAYS];

	for (unsigned int i = 0; i < AGENT_SLOT_WAYS; i++) {
		if (__atomic_load_n(&slots[i].check, __ATOMIC_RELAXED) == 0) {
			slot = &slots[i];
			break;
		}
	}
	__atomic_store_n(&slot->value, value, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->check, agent_slot_check(key, value), __ATOMIC_RELAXED);
}

/* ---- a stack ---- */

/* Reports at most once a second: a full dictionary stays full. */
static void count_lost(void)
{
	uint64_t now = ts_counter_monotonic_ns();
	uint64_t reported_ns = __atomic_load_n(&lost_reported_ns, __ATOMIC_RELAXED), count;

	__atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
	if (now - reported_ns < REPORT_NS ||
	    !__atomic_compare_exchange_n(&lost_reported_ns, &reported_ns, now, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	count = __atomic_exchange_n(&lost, 0, __ATOMIC_RELAXED);
	if (count)
		ts_accelerator_lost("stacks", count, "the dictionary is full");
}

static uint64_t hash_python(const struct agent_python_stack *python, uint64_t hash)
{
	for (uint32_t i = 0; i < python->count; i++)
		hash = ts_local_unwind_hash_frame(
			hash, python->frames[i] ^ (uint64_t)python->is_entry[i] << 63);
	return ts_local_unwind_mix(hash, python->count) | 1;
}

__attribute__((noinline)) static uint64_t find_number(struct core *core,
						      const struct ts_local_unwind_stack *native,
						      const struct agent_python_stack *python)
{
	struct agent_signals saved;
	uint64_t number;

	agent_block_signals(&saved);
	agent_stack_merge(core, native, python, &buffer->merged);
	number = agent_stack_number(core, &buffer->merged);
	agent_restore_signals(&saved);
	return number ? number : TABLE_FULL;
}

static uint32_t number_of(struct core *core, const struct ts_local_unwind_stack *native,
			  const struct agent_python_stack *python)
{
	struct agent_slot *slots = agent_slots(&stacks, STACK_BUCKETS * AGENT_SLOT_WAYS), *bucket;
	uint64_t hash = hash_python(python, native->hash), number;

	if (!slots || (native->count == 0 && python->count == 0))
		return 0;
	bucket = &slots[(hash >> 32) % STACK_BUCKETS * AGENT_SLOT_WAYS];
	number = agent_slot_find(bucket, hash);
	if (AGENT_UNLIKELY(!number)) {
		number = find_number(core, native, python);
		agent_slot_keep(bucket, hash, number);
	}
	if (AGENT_LIKELY(number != TABLE_FULL))
		return (uint32_t)number;
	count_lost();
	return 0;
}

static struct stack_buffer *get_buffer(void)
{
	if (AGENT_UNLIKELY(!buffer)) {
		buffer = agent_memory(sizeof(*buffer));
		if (!buffer)
			return NULL;
		agent_watch_thread(agent_writer);
	}
	return buffer->is_busy ? NULL : buffer;
}

/* Looks for Python again: programs may load it late. */
static void look_for_python(void)
{
	static uint64_t loads; /* at the last search */
	uint64_t now = ts_local_unwind_loads();

	if (AGENT_LIKELY(__atomic_load_n(&loads, __ATOMIC_RELAXED) == now))
		return;
	__atomic_store_n(&loads, now, __ATOMIC_RELAXED);
	agent_python_look();
}

static uint32_t take(struct core *core, const struct ts_local_unwind_registers *captured,
		     uint64_t wanted)
{
	struct ts_local_unwind_stack native = { .pcs = buffer->pcs,
						.capacity = TS_LIVE_FRAMES,
						.last = &buffer->last };
	struct agent_python_stack python = { 0 };
	bool has_python;
	uint32_t number;

	if (wanted & TS_STACKS_NATIVE)
		ts_local_unwind_walk(captured, &native);
	has_python = (wanted & TS_STACKS_PYTHON) && agent_python_frames(core, &python);
	number = number_of(core, &native, &python);
	if (has_python)
		agent_python_done();
	else if (wanted & TS_STACKS_PYTHON)
		look_for_python();
	return number;
}

/* A handler that interrupts its own thread here gets no stack. */
__attribute__((noinline)) static uint32_t take_if_wanted(
	const struct ts_local_unwind_registers *captured)
{
	int saved_errno = errno;
	struct core *core = agent_start(&ts_process_tracer);
	uint64_t wanted;
	uint32_t number;

	if (!core || !get_buffer()) {
		errno = saved_errno;
		return 0;
	}
	wanted = __atomic_load_n(&core->control->config[TS_CONFIG_STACKS], __ATOMIC_RELAXED);
	buffer->is_busy = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	number = take(core, captured, wanted);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	buffer->is_busy = false;
	errno = saved_errno;
	return number;
}

/* Inlined, so that the caller's registers are current. */
static inline __attribute__((always_inline)) uint32_t take_current(bool is_always)
{
	struct ts_local_unwind_registers captured;

	if (AGENT_LIKELY(!agent_stacks_requested) || (!is_always && !ts_enabled()))
		return 0;
	ts_local_unwind_capture(&captured);
	return take_if_wanted(&captured);
}

uint32_t ts_accelerator_stack(void)
{
	return take_current(false);
}

uint32_t ts_accelerator_stack_always(void)
{
	return take_current(true);
}

void agent_stack_thread_exit(void)
{
	struct stack_buffer *previous = buffer;

	buffer = NULL;
	if (previous)
		munmap(previous, sizeof(*previous));
}

void agent_stack_forget(void)
{
	__atomic_store_n(&stacks, NULL, __ATOMIC_RELEASE);
	agent_stack_frames_forget();
	agent_stack_tree_forget();
	agent_python_forget();
}
