/* SPDX-License-Identifier: Apache-2.0 */
/* Emitting inside the agent: any record into the calling thread's ring. */
#ifndef TS_AGENT_EMIT_H
#define TS_AGENT_EMIT_H

#include "agent/tracer.h"

/* A call stack, outermost frame first. A record omits the middle of a stack that is too deep. */
struct agent_stack {
	const uint64_t *frames;
	uint32_t count;
};

/* An event in the dynamic form, which carries its own texts. */
struct agent_event {
	uint8_t kind, flags;
	uint8_t fixed_count;
	const uint64_t *fixed;
	const char *name, *category;
	const struct ts_emit_arg *args;
	unsigned int arg_count;
	uint64_t counter;                /* time of the event; 0: now */
	const struct agent_stack *stack; /* NULL: none */
};
void agent_emit(struct ts_tracer *tracer, struct core *core, const struct agent_event *event);

/* An event of a registered site. */
struct agent_site_event {
	const struct ts_emit_site *site;
	uint8_t flags;
	uint8_t fixed_count;
	const uint64_t *fixed;
	const uint64_t *values; /* one word per field of the site; strings by address */
	uint64_t counter;
	const struct agent_stack *stack;
};
void agent_emit_site(struct core *core, const struct agent_site_event *event);

/* Words that a stack takes in a record with `left` words of space, and writing it. */
uint64_t agent_stack_record_words(const struct agent_stack *stack, uint64_t left);
uint64_t *agent_put_stack(uint64_t *to, const struct agent_stack *stack, uint64_t words);

/*
 * To write any record: enter, write `bytes` at agent_record_at(), commit. NULL: no space; if
 * `counts`, an event was counted as lost.
 */
struct writer *agent_enter(struct ts_tracer *tracer, struct core *core, struct writer *writer,
			   uint64_t bytes, bool counts);
uint64_t *agent_record_at(const struct writer *writer);
void agent_commit(struct writer *writer, uint64_t bytes);

#define AGENT_NOTE_TEXTS 4

/* A record that is not an event: a payload of live_records.h, then texts, which are cut to fit. */
struct agent_note {
	uint8_t kind;
	uint8_t fixed_bytes, text_count;
	bool counts;       /* if there is no space, count a lost event */
	const void *fixed; /* the payload, NULL: none */
	const char *texts[AGENT_NOTE_TEXTS];
};
/* Stores it, even while events are off; starts the tracer if needed. */
void agent_emit_note(struct ts_tracer *tracer, const struct agent_note *note);

/* AGENT_PYTHON_*: set before the first event, and constant after it. */
extern uint32_t agent_python_requested;

/* Value of `open` in an open writer. Events with stacks never take the hot path. */
static inline unsigned int agent_open_value(const struct writer *writer)
{
	return writer->clock == TS_LIVE_CLOCK_COUNTER && !agent_python_requested ? WRITER_HOT
										 : WRITER_SLOW;
}

/*
 * The calling thread's writer of the process-wide tracer; agent_no_writer() before its first event.
 */
extern __thread struct writer *agent_writer __attribute__((tls_model("initial-exec")));
struct writer *agent_no_writer(void);

/* Name set by ts_thread_name(), truncated; empty: none. */
extern __thread char agent_thread_name[16] __attribute__((tls_model("initial-exec")));

/* Counts a lost event that no ring counts. */
void agent_count_lost(struct core *core);

#endif
