/* SPDX-License-Identifier: Apache-2.0 */
/* Events inside the agent: any record into the calling thread's ring. */
#ifndef TS_AGENT_EMIT_H
#define TS_AGENT_EMIT_H

#include "agent/tracer.h"

/* A call stack, outermost frame first; in a record the middle is left out where it is too deep. */
struct agent_stack {
	const uint64_t *frames;
	uint32_t count;
};

/* An event in the dynamic form, which carries its fixed texts. */
struct agent_event {
	uint8_t kind, flags;
	uint8_t fixed_count;
	const uint64_t *fixed;
	const char *name, *category;
	const struct ts_emit_arg *args;
	unsigned int arg_count;
	uint64_t counter;                /* when it was; 0: now */
	const struct agent_stack *stack; /* NULL: none */
};
void agent_emit(struct ts_tracer *tracer, struct core *core, const struct agent_event *event);

/* An event of a registered site. */
struct agent_site_event {
	const struct ts_emit_site *site;
	uint8_t flags;
	uint8_t fixed_count;
	const uint64_t *fixed;
	const uint64_t *values; /* one word a field of the site; strings by their address */
	uint64_t counter;
	const struct agent_stack *stack;
};
void agent_emit_site(struct core *core, const struct agent_site_event *event);

/* Words of a stack in a record, with its count, where so many are left; and writing it. */
uint64_t agent_stack_record_words(const struct agent_stack *stack, uint64_t left);
uint64_t *agent_put_stack(uint64_t *to, const struct agent_stack *stack, uint64_t words);

/*
 * A record by hand: enter, write `bytes` at agent_record_at(), commit. NULL where there is no room;
 * then, if `counts`, an event was counted as lost.
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
	bool counts;       /* counts a lost event where there is no space for it */
	const void *fixed; /* the payload, NULL: none */
	const char *texts[AGENT_NOTE_TEXTS];
};
/* Stores it, while events are off, too; starts the tracer if need be. */
void agent_emit_note(struct ts_tracer *tracer, const struct agent_note *note);

/* AGENT_PYTHON_*: known before the first event, and never changed after it. */
extern uint32_t agent_python_asked;

/* What `open` is of an open writer. Where events are to have stacks, none goes the hot way. */
static inline unsigned int agent_open_value(const struct writer *writer)
{
	return writer->clock == TS_LIVE_CLOCK_COUNTER && !agent_python_asked ? WRITER_HOT
									     : WRITER_SLOW;
}

/*
 * The calling thread's writer of the process-wide tracer; agent_no_writer() before its first event.
 */
extern __thread struct writer *agent_writer __attribute__((tls_model("initial-exec")));
struct writer *agent_no_writer(void);

/* What the thread was named by ts_thread_name(), cut; empty: nothing. */
extern __thread char agent_thread_name[16] __attribute__((tls_model("initial-exec")));

/* One more event that no ring counts. */
void agent_count_lost(struct core *core);

#endif
