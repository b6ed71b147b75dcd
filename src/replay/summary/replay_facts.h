/* SPDX-License-Identifier: Apache-2.0 */
/* What of a trace can be replayed, and what cannot and why. Needs no driver, and loads no window.
 */
#ifndef TS_REPLAY_SUMMARY_REPLAY_FACTS_H
#define TS_REPLAY_SUMMARY_REPLAY_FACTS_H

#include <stdbool.h>

#include <tracesmith/reader.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/text.h"

/* Commands, or objects, that cannot be replayed for one reason. */
struct ts_replay_reason {
	const char *what; /* the call; "": objects */
	const char *why;
	uint64_t count;
	uint64_t first; /* number of the first command, or of the first object */
};

/* More reasons than these are counted together. */
#define TS_REPLAY_REASONS 32u

struct ts_replay_window_facts {
	int64_t process; /* row; 0: unknown */
	int64_t pid;     /* TS_ABSENT: unknown */
	const char *process_name;
	uint64_t number;
	bool has_open, has_close, from_start;
	const char *failed;    /* why it cannot be replayed; NULL: it can */
	const char *unchecked; /* why memory was not hashed at the end; NULL: it was */
	uint64_t first, last;  /* numbers of its commands; 0: none */
	uint64_t commands, launches, checks;
	/* Of CUDA: launches of graphs, and their nodes; the memory that the window begins with. */
	uint64_t graph_launches, graph_nodes;
	uint64_t pieces, piece_bytes;
	uint64_t more_pieces; /* of these, of memory that came inside the window */
	bool has_expected;    /* the trace says how many pieces there have to be */
	uint64_t expected_pieces;
	uint64_t unreplayable; /* commands */
	uint64_t ambiguous;    /* launches with an argument whose kind was guessed */
	struct ts_replay_reason reasons[TS_REPLAY_REASONS];
	size_t reason_count;
};

/* A program that can be replayed only on a device and driver like the recorded one. */
struct ts_replay_bound_program {
	int64_t process;
	uint64_t number; /* of the module */
	const char *from;
	bool has_source;     /* the source is in the trace, but is not compiled from it */
	const char *kernels; /* names, separated by ", " */
};

struct ts_replay_facts {
	struct ts_replay_window_facts *windows;
	size_t window_count, window_capacity;
	struct ts_replay_bound_program *programs;
	size_t program_count, program_capacity;
	struct ts_replay_reason objects[TS_REPLAY_REASONS];
	size_t object_reason_count;
	uint64_t commands;
	/* Of CUDA: those with only PTX for their device, and with no code for it. */
	uint64_t modules, ptx_modules, unfit_modules;
	uint64_t compute; /* compute capability of the recorded device, in tenths; 0: unknown */
	bool several_processes;
	bool has_contexts;  /* a process was seen to create a context of what is captured */
	bool has_cuda;      /* a process used CUDA */
	bool was_requested; /* and was recorded for a replay */
	struct ts_arena arena;
};

/* Chunks that cannot be read are skipped: a summary must not fail where a replay says more. */
int ts_replay_facts_load(struct ts_replay_facts **ret_facts, struct ts_reader *reader,
			 struct ts_error *err);
void ts_replay_facts_free(struct ts_replay_facts *facts);
TS_DEFINE_AUTO(ts_replay_facts, ts_replay_facts_free);

/* What a sentence is about. */
enum ts_replay_fact {
	TS_REPLAY_FACT_NOTE,    /* all is well */
	TS_REPLAY_FACT_WARNING, /* something cannot be replayed */
	TS_REPLAY_FACT_DETAIL,  /* belongs to the sentence before it */
};

/*
 * Passes one sentence after the other, without a final period: nothing about what is as expected,
 * except how many commands each window has if `counts` is set.
 */
void ts_replay_facts_say(const struct ts_replay_facts *facts, bool counts,
			 void (*function)(void *context, enum ts_replay_fact kind,
					  const char *text),
			 void *context);

/* An object: {"windows":[...],"bound_programs":[...],"unreplayable_objects":[...]}. */
void ts_replay_facts_json(const struct ts_replay_facts *facts, struct ts_text *out);

#endif
