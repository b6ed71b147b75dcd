/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements <tracesmith/accelerator.h>: backends emit driver calls and device commands as events
 * of their call sites, and streams, clocks, losses and facts as other records.
 */
#include <tracesmith/accelerator.h>

#include <errno.h>
#include <string.h>

#include "agent/agent_python.h"
#include "agent/emit.h"
#include "agent/emit_inline.h"
#include "agent/launch_stack.h"
#include "agent/tracer.h"

/* Header, counter and payload. */
#define CALL_BYTES (16 + sizeof(struct ts_live_call))
#define OP_WORDS TS_LIVE_WORDS(struct ts_live_gpu_op)
#define MORE_WORDS TS_LIVE_WORDS(struct ts_live_gpu_op_more)
/* Key and value fit into a record of the smallest ring. */
#define FACT_BYTES 3000
/*
 * Distance of two clock readings that measure the counter's rate: the minimum, and the distance
 * after which the rate is final.
 */
#define PACE_LEAST_NS 50000
#define PACE_GOOD_NS 10000000

/* ---- events ---- */

/* The words of an event before its texts; a registered site has no others. */
struct fixed_words {
	uint64_t counter; /* 0: the time when it is stored */
	const uint64_t *words;
	unsigned int count;
	const struct agent_stack *stack; /* NULL: none */
};

static void put(uint64_t *to, uint64_t header, uint64_t counter, const struct fixed_words *fixed)
{
	to[0] = ts_live_head_resize(header, 2u + fixed->count);
	to[1] = fixed->counter ? fixed->counter : counter;
	memcpy(to + 2, fixed->words, fixed->count * sizeof(*fixed->words));
}

static void put_registered(struct core *core, uint64_t header, const struct fixed_words *fixed)
{
	uint64_t bytes = (2u + fixed->count) * 8;
	struct writer *writer = agent_enter(&ts_process_tracer, core, agent_writer, bytes, true);

	if (!writer)
		return;
	put(agent_record_at(writer), header, ts_counter_read(writer->clock), fixed);
	agent_commit(writer, bytes);
}

/* Stores a call with a stack; sites of calls have no arguments. */
static void put_with_stack(struct core *core, const struct ts_emit_site *site,
			   const struct fixed_words *fixed)
{
	struct agent_site_event event = { .site = site,
					  .flags = site->flags | TS_LIVE_FLAG_STACK,
					  .fixed_count = (uint8_t)fixed->count,
					  .fixed = fixed->words,
					  .counter = fixed->counter,
					  .stack = fixed->stack };

	agent_emit_site(core, &event);
}

/* For a full dictionary: stores the event in the dynamic form, without the stack's number. */
static void put_unregistered(struct core *core, const struct ts_emit_site *site,
			     const struct fixed_words *fixed, unsigned int flags)
{
	unsigned int stacks = (flags & TS_LIVE_FLAG_STACK_IS) != 0;
	struct agent_event event = { .kind = site->kind,
				     .flags = (uint8_t)(site->flags |
							(flags & ~TS_LIVE_FLAG_STACK_IS) |
							(fixed->stack ? TS_LIVE_FLAG_STACK : 0)),
				     .fixed_count = (uint8_t)(fixed->count - stacks),
				     .fixed = fixed->words,
				     .name = site->name,
				     .category = site->category,
				     .counter = fixed->counter,
				     .stack = fixed->stack };

	agent_emit(&ts_process_tracer, core, &event);
}

static void put_any(struct core *core, struct ts_emit_site *site, const struct fixed_words *fixed,
		    unsigned int flags)
{
	if (!__atomic_load_n(&site->header, __ATOMIC_ACQUIRE) && !agent_register_site(core, site))
		put_unregistered(core, site, fixed, flags);
	else if (fixed->stack && !site->field_count)
		put_with_stack(core, site, fixed);
	else
		put_registered(core,
			       ts_live_head_add_flags(
				       __atomic_load_n(&site->header, __ATOMIC_ACQUIRE), flags),
			       fixed);
}

/* Stores a call, with the Python stack of its thread if requested. */
static void put_call(struct core *core, struct ts_emit_site *site, const struct fixed_words *fixed)
{
	struct agent_stack stack;
	struct fixed_words with = *fixed;

	if (!agent_python_take(core, AGENT_PYTHON_CALLS, &stack)) {
		put_any(core, site, fixed, 0);
		return;
	}
	with.stack = &stack;
	put_any(core, site, &with, 0);
	agent_python_done();
}

__attribute__((noinline)) static void emit_slowly(struct ts_emit_site *site,
						  const struct fixed_words *fixed,
						  unsigned int flags, bool while_off)
{
	uint64_t header = __atomic_load_n(&site->header, __ATOMIC_ACQUIRE);
	int saved_errno;
	struct core *core;

	if (header && agent_drop(agent_writer, (2u + fixed->count) * 8))
		return;
	saved_errno = errno;
	core = agent_start(&ts_process_tracer);
	if (core && (while_off || (__atomic_load_n(&core->control->enabled, __ATOMIC_RELAXED) &
				   TS_LIVE_ENABLED))) {
		if (agent_python_requested && site->kind == TS_LIVE_CALL &&
		    !(flags & TS_LIVE_FLAG_STACK_IS))
			put_call(core, site, fixed);
		else
			put_any(core, site, fixed, flags);
	}
	errno = saved_errno;
}

__attribute__((noinline)) static void call_slowly(struct ts_emit_site *site, uint64_t start,
						  uint64_t correlation, int64_t result)
{
	/* Now, not after the ring was allocated. */
	uint64_t now = ts_now();
	struct ts_live_call call = { now > start ? now - start : 0, correlation, result };
	uint64_t words[TS_LIVE_WORDS(call)];

	memcpy(words, &call, sizeof(call));
	emit_slowly(site, &(struct fixed_words){ now, words, TS_LIVE_WORDS(call), NULL }, 0, false);
}

__attribute__((noinline)) static void call_with_stack(struct ts_emit_site *site, uint64_t start,
						      uint64_t correlation, int64_t result)
{
	struct ts_accelerator_call call = { .size = sizeof(call),
					    .start = start,
					    .end = ts_now(),
					    .correlation = correlation,
					    .result = result };

	call.stack = ts_accelerator_stack();
	ts_accelerator_call_with(site, &call);
}

void ts_accelerator_call(struct ts_emit_site *site, uint64_t start, uint64_t correlation,
			 int64_t result)
{
	uint64_t header = __atomic_load_n(&site->header, __ATOMIC_ACQUIRE), now;
	struct writer *writer = agent_writer;
	struct ts_live_call *call;
	char *at;

	if (!ts_enabled())
		return;
	if (AGENT_UNLIKELY(agent_stacks_requested)) {
		call_with_stack(site, start, correlation, result);
		return;
	}
	if (AGENT_LIKELY(header && hot_enter(writer, WRITER_HOT, CALL_BYTES, &at))) {
		now = ts_counter_raw();
		memcpy(at, &header, 8);
		memcpy(at + 8, &now, 8);
		call = (struct ts_live_call *)(void *)(at + 16);
		call->duration = now > start ? now - start : 0;
		call->correlation = correlation;
		call->result = result;
		hot_commit(writer, WRITER_HOT, at, CALL_BYTES);
		return;
	}
	call_slowly(site, start, correlation, result);
}

/* ---- calls with a stack from the caller ---- */

static void put_words(struct ts_emit_site *site, const struct fixed_words *fixed,
		      unsigned int flags)
{
	uint64_t header = __atomic_load_n(&site->header, __ATOMIC_ACQUIRE);
	struct writer *writer = agent_writer;
	uint64_t bytes = (2u + fixed->count) * 8;
	char *at;

	if (AGENT_LIKELY(header && hot_enter(writer, agent_open_value(writer), bytes, &at))) {
		put((uint64_t *)(void *)at, ts_live_head_add_flags(header, flags),
		    ts_counter_read(writer->clock), fixed);
		hot_commit(writer, agent_open_value(writer), at, bytes);
		return;
	}
	emit_slowly(site, fixed, flags, false);
}

void ts_accelerator_call_with(struct ts_emit_site *site, const struct ts_accelerator_call *call)
{
	uint64_t end, words[TS_LIVE_WORDS(struct ts_live_call) + 1];
	unsigned int count = TS_LIVE_WORDS(struct ts_live_call);
	struct ts_live_call *fixed = (struct ts_live_call *)(void *)words;

	if (!ts_enabled() || call->size < sizeof(*call))
		return;
	end = call->end ? call->end : ts_now();
	*fixed = (struct ts_live_call){ .duration = end > call->start ? end - call->start : 0,
					.correlation = call->correlation,
					.result = call->result };
	words[count] = call->stack;
	put_words(site, &(struct fixed_words){ end, words, count + (call->stack != 0), NULL },
		  call->stack ? TS_LIVE_FLAG_STACK_IS : 0);
}

static bool has_more(const struct ts_gpu_op *op)
{
	return op->registers || op->shared_bytes || op->graph || op->stack || op->graph_node;
}

/* Number of waits that a record lists. */
static unsigned int listed_waits(const struct ts_gpu_op *op)
{
	unsigned int listed = op->waits ? op->wait_count : 0;

	return listed < TS_GPU_OP_WAITS ? listed : TS_GPU_OP_WAITS;
}

static void fill_op(const struct ts_gpu_op *op, bool more, unsigned int listed, uint64_t *to)
{
	*(struct ts_live_gpu_op *)(void *)to = (struct ts_live_gpu_op){
		.correlation = op->correlation,
		.device_kind = ts_live_device_kind(op->device, op->kind),
		.copy_kind = op->copy_kind,
		.waits = (uint8_t)listed,
		.unlisted_waits = (uint16_t)(op->wait_count - listed),
		.stream = op->stream,
		.context = op->context,
		.queued = op->queued,
		.submitted = op->submitted,
		.start = op->start,
		.end = op->end,
		.grid = { op->grid[0], op->grid[1], op->grid[2] },
		.block = { op->block[0], op->block[1], op->block[2] },
		.bytes = op->bytes,
	};
	to += OP_WORDS;
	if (more) {
		*(struct ts_live_gpu_op_more *)(void *)to = (struct ts_live_gpu_op_more){
			.registers = op->registers,
			.shared_bytes = op->shared_bytes,
			.graph = op->graph,
			.stack = op->stack,
			.graph_node = op->graph_node,
		};
		to += MORE_WORDS;
	}
	if (listed)
		memcpy(to, op->waits, listed * sizeof(*to));
}

/* True if there is an area. Records stored while events are off must not create one. */
static bool is_running(void)
{
	const struct core *core = __atomic_load_n(&ts_process_tracer.core, __ATOMIC_ACQUIRE);

	return core && __atomic_load_n(&core->state, __ATOMIC_ACQUIRE) == CORE_READY;
}

__attribute__((noinline)) static void op_slowly(struct ts_emit_site *site,
						const struct ts_gpu_op *op, bool more,
						unsigned int listed)
{
	uint64_t words[OP_WORDS + MORE_WORDS + TS_GPU_OP_WAITS];
	struct fixed_words fixed = { .words = words,
				     .count = OP_WORDS + (more ? MORE_WORDS : 0) + listed };

	fill_op(op, more, listed, words);
	emit_slowly(site, &fixed, more ? TS_LIVE_FLAG_MORE : 0, true);
}

/*
 * A command that was enqueued inside a window may finish after it: the backend checked
 * ts_enabled() when it was enqueued.
 */
void ts_accelerator_op(struct ts_emit_site *site, const struct ts_gpu_op *op)
{
	uint64_t header = __atomic_load_n(&site->header, __ATOMIC_ACQUIRE);
	struct writer *writer = agent_writer;
	unsigned int listed;
	uint64_t words, *to;
	bool more;
	char *at;

	if (op->size < offsetof(struct ts_gpu_op, registers) || !(ts_enabled() || is_running()))
		return;
	more = op->size >= sizeof(*op) && has_more(op);
	listed = listed_waits(op);
	words = 2u + OP_WORDS + (more ? MORE_WORDS : 0) + listed;
	if (AGENT_UNLIKELY(!header || !hot_enter(writer, WRITER_HOT, words * 8, &at))) {
		op_slowly(site, op, more, listed);
		return;
	}
	to = (uint64_t *)(void *)at;
	header = ts_live_head_add_flags(header, more ? TS_LIVE_FLAG_MORE : 0);
	to[0] = ts_live_head_resize(header, words);
	to[1] = ts_counter_raw();
	fill_op(op, more, listed, to + 2);
	hot_commit(writer, WRITER_HOT, at, words * 8);
}

/* ---- memory ---- */

void ts_accelerator_allocation(struct ts_emit_site *site,
			       const struct ts_accelerator_allocation *allocation)
{
	uint64_t words[TS_LIVE_WORDS(struct ts_live_allocation) + 1];
	unsigned int count = TS_LIVE_WORDS(struct ts_live_allocation);

	if (!ts_enabled() || allocation->size < sizeof(*allocation))
		return;
	*(struct ts_live_allocation *)(void *)words = (struct ts_live_allocation){
		.device_kind = ts_live_device_kind(allocation->device, allocation->is_free),
		.stream = allocation->stream,
		.context = allocation->context,
		.address = allocation->address,
		.bytes = allocation->bytes,
		.total = allocation->total,
		.reserved = allocation->reserved,
	};
	words[count] = allocation->stack;
	put_words(site,
		  &(struct fixed_words){ allocation->time, words, count + (allocation->stack != 0),
					 NULL },
		  allocation->stack ? TS_LIVE_FLAG_STACK_IS : 0);
}

/* ---- records that are not events ---- */

void ts_accelerator_stream(const struct ts_accelerator_queue *queue)
{
	struct ts_live_stream fixed;
	struct agent_note note = { .kind = TS_LIVE_STREAM_IS,
				   .fixed_bytes = sizeof(fixed),
				   .fixed = &fixed,
				   .text_count = 1 };

	if (queue->size < sizeof(*queue))
		return;
	fixed = (struct ts_live_stream){ .device = queue->device & TS_LIVE_DEVICE_MASK,
					 .stream = queue->stream,
					 .context = queue->context,
					 .priority = queue->priority,
					 .out_of_order = queue->out_of_order };
	note.texts[0] = queue->name;
	agent_emit_note(&ts_process_tracer, &note);
}

void ts_accelerator_clock(uint32_t device, uint64_t host, int64_t device_ns, int64_t uncertainty_ns,
			  const char *method)
{
	struct ts_live_device_clock fixed = { .device = device & TS_LIVE_DEVICE_MASK,
					      .counter = host,
					      .device_ns = device_ns,
					      .uncertainty_ns = uncertainty_ns };
	struct agent_note note = { .kind = TS_LIVE_DEVICE_CLOCK,
				   .fixed_bytes = sizeof(fixed),
				   .fixed = &fixed,
				   .text_count = 1,
				   .texts = { method } };

	agent_emit_note(&ts_process_tracer, &note);
}

void ts_accelerator_lost(const char *what, uint64_t count, const char *reason)
{
	struct ts_live_lost fixed = { count };
	/* A loss that cannot be stored counts as one more. */
	struct agent_note note = { .kind = TS_LIVE_LOST,
				   .fixed_bytes = sizeof(fixed),
				   .fixed = &fixed,
				   .text_count = 2,
				   .counts = true,
				   .texts = { what, reason } };

	agent_emit_note(&ts_process_tracer, &note);
}

void ts_accelerator_fact(const char *key, const char *json)
{
	struct agent_note note = { .kind = TS_LIVE_FACT, .text_count = 2, .texts = { key, json } };

	/* Truncated, it would not be JSON. */
	if (key && json && strnlen(key, FACT_BYTES) + strnlen(json, FACT_BYTES) < FACT_BYTES)
		agent_emit_note(&ts_process_tracer, &note);
}

/* ---- time ---- */

/* The clocks at the first request. */
static struct ts_live_anchor first_reading;
static uint32_t first_state; /* 0 none, 1 being read, 2 valid */

static struct ts_live_anchor read_first(enum ts_live_clock kind)
{
	uint32_t none = 0;
	int64_t unused;

	if (__atomic_compare_exchange_n(&first_state, &none, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		first_reading = ts_counter_anchor(kind, &unused);
		__atomic_store_n(&first_state, 2, __ATOMIC_RELEASE);
	}
	/* A handler that interrupted the read, or another thread, reads the clocks itself. */
	return __atomic_load_n(&first_state, __ATOMIC_ACQUIRE) == 2
		       ? first_reading
		       : ts_counter_anchor(kind, &unused);
}

/* ns per tick as 32.32 fixed point; *ret_good: the value is final. */
static uint64_t measure_pace(bool *ret_good)
{
	enum ts_live_clock kind = ts_counter_kind();
	uint64_t hz = ts_counter_hz(kind);
	struct ts_live_anchor from, to;
	int64_t unused;

	*ret_good = true;
	if (hz)
		return (uint64_t)(((unsigned __int128)1000000000 << 32) / hz);
	from = read_first(kind);
	do {
		to = ts_counter_anchor(kind, &unused);
	} while (to.monotonic_ns - from.monotonic_ns < PACE_LEAST_NS);
	*ret_good = to.monotonic_ns - from.monotonic_ns >= PACE_GOOD_NS;
	if (to.counter <= from.counter)
		return UINT64_C(1) << 32;
	return (uint64_t)(((unsigned __int128)(to.monotonic_ns - from.monotonic_ns) << 32) /
			  (to.counter - from.counter));
}

int64_t ts_ticks_ns(uint64_t ticks)
{
	static uint64_t pace;
	uint64_t known = __atomic_load_n(&pace, __ATOMIC_RELAXED);
	unsigned __int128 ns;
	bool good;

	if (AGENT_UNLIKELY(!known)) {
		known = measure_pace(&good);
		if (good)
			__atomic_store_n(&pace, known, __ATOMIC_RELAXED);
	}
	ns = (unsigned __int128)ticks * known >> 32;
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}
