/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream scheduler emulator (docs/replay.md, section 7): when would everything have run? Three
 * steps, each of which sees less than the one before:
 *
 *	ts_emulator_observe() a few numbers of the machine (latencies, what ran side by side): all
 *	that is taken from
 *	                         when commands began
 *	ts_emulator_model_new()  durations, dependencies, times of calls
 *	ts_emulator_run()        simulates; sees the model only
 *
 * Private to src/replay/{emulator,what_if}*.c, targets/emulator.c, their tests and
 * bench/emulator.c. All times are ns.
 */
#ifndef TS_REPLAY_EMULATOR_EMULATOR_H
#define TS_REPLAY_EMULATOR_EMULATOR_H

#include "state/graph/graph.h"
#include "state/work/work.h"

/* ---- what was observed: emulator_observe.c ---- */

/* Kinds of commands that take differently long to begin. */
enum ts_emulator_class {
	TS_EMULATOR_KERNEL,
	TS_EMULATOR_COPY,
	TS_EMULATOR_OTHER,    /* fills, markers, callbacks */
	TS_EMULATOR_NODE,     /* of a launched graph */
	TS_EMULATOR_BLOCKING, /* its call returns when it is done */
	TS_EMULATOR_CLASSES
};

struct ts_emulator_latency {
	int64_t launch_ns; /* from its call to its start, of one that nothing holds; may be below 0
			    */
	int64_t next_ns;   /* from the end of what it waited for to its start */
	bool from_end; /* launch_ns counts from the call's end, which is steadier here; else from
			  its begin */
};

/*
 * What can run only so many commands at once. Device d has those from d * TS_EMULATOR_RESOURCES on.
 */
enum ts_emulator_resource {
	TS_EMULATOR_KERNELS,
	TS_EMULATOR_UP, /* copies from the host, or all copies where there is one engine */
	TS_EMULATOR_DOWN,
	TS_EMULATOR_PEER,
	TS_EMULATOR_RESOURCES
};

/* What copies of a device need. */
enum ts_emulator_engines {
	TS_EMULATOR_ENGINES,    /* an engine for each direction */
	TS_EMULATOR_ONE_ENGINE, /* for all */
	TS_EMULATOR_NO_ENGINE,  /* what kernels need */
};

struct ts_emulator_observed {
	struct ts_emulator_latency (*latencies)[TS_EMULATOR_CLASSES]; /* by stream */
	uint32_t (*slots)[TS_EMULATOR_RESOURCES]; /* by device: how many run side by side */
	uint8_t *engines;                         /* by device: enum ts_emulator_engines */
	/*
	 * By name of a call that waits for a device: what it takes where there is nothing to wait
	 * for, and how long it goes on behind the end of what it waited for.
	 */
	int64_t *own_ns, *tail_ns;
	/*
	 * By call: a command that it surely waits for, though the graph does not say so;
	 * TS_WORK_NONE
	 */
	uint32_t *implied;
};

int ts_emulator_observe(struct ts_emulator_observed *observed, const struct ts_graph *graph,
			struct ts_error *err);
void ts_emulator_observed_release(struct ts_emulator_observed *observed);

/* ---- the model: emulator_model.c, emulator_host.c, emulator_queues.c ---- */

struct ts_emulator_command {
	int64_t duration;
	int64_t launch_ns; /* behind its call */
	int64_t priority;  /* of its queue: the lower, the sooner */
	uint32_t resource; /* TS_WORK_NONE: it needs none */
	uint32_t follower; /* may not begin before this one has; TS_WORK_NONE */
};

/*
 * An instant of a host thread: a call begins or ends, or (a thread that is not in the trace) a
 * command is given.
 */
enum ts_emulator_point_kind { TS_EMULATOR_BEGIN, TS_EMULATOR_END, TS_EMULATOR_GIVE };

struct ts_emulator_point {
	int64_t gap_ns; /* behind the thread's point before it; of the first one: the time itself */
	uint32_t what;  /* call, or command */
	uint8_t kind;   /* enum ts_emulator_point_kind */
	bool is_last;   /* of its thread */
};

struct ts_emulator_thread {
	uint32_t first, count; /* of points */
};

/* Node `to` is not before what the edge leaves from has ended (a point: has come), and lag_ns. */
struct ts_emulator_edge {
	int64_t lag_ns;
	uint32_t to;
};

/* Nodes: all commands, then all points. */
struct ts_emulator_model {
	uint32_t command_count, call_count, point_count, thread_count, resource_count;
	struct ts_emulator_command *commands;
	struct ts_emulator_point *points;
	struct ts_emulator_thread *threads;
	uint32_t *slots;        /* by resource */
	uint32_t *first_submit; /* call_count + 1: into gives */
	uint32_t *submits;      /* commands of each call */
	uint32_t *first_out;    /* node_count + 1: into edges */
	struct ts_emulator_edge *edges;
	uint32_t *waits; /* of each node: edges that lead to it; commands: and being given, and its
			    leader */
	size_t edge_count;
	uint32_t *streams; /* of each command: of the work, or (from its stream_count on) new ones,
			      each of one device; NULL: as recorded */
	uint64_t guessed_commands;
};

struct ts_emulator_shape {
	uint32_t streams; /* so many a device; 0: as they were */
};

int ts_emulator_model_new(struct ts_emulator_model **ret_model, const struct ts_work *work,
			  const struct ts_graph *graph, const struct ts_emulator_observed *observed,
			  const struct ts_emulator_shape *shape, struct ts_error *err);
void ts_emulator_model_free(struct ts_emulator_model *model);
TS_DEFINE_AUTO(ts_emulator_model, ts_emulator_model_free);

static inline uint32_t ts_emulator_point_node(const struct ts_emulator_model *model, uint32_t point)
{
	return model->command_count + point;
}

/* ---- the simulation: emulator.c ---- */

enum ts_emulator_policy { TS_EMULATOR_FIFO, TS_EMULATOR_PRIORITY, TS_EMULATOR_SHORTEST };

struct ts_emulator_times {
	int64_t *issued, *start, *end; /* by command */
	int64_t *points;
	uint64_t broken_waits; /* that would never have ended, and were given up */
};

/* Arrays are made by the first run; release() accepts a zeroed struct. */
int ts_emulator_run(const struct ts_emulator_model *model, enum ts_emulator_policy policy,
		    struct ts_emulator_times *times, struct ts_error *err);
void ts_emulator_times_release(struct ts_emulator_times *times);

/* First start to last end. */
int64_t ts_emulator_span(const struct ts_emulator_model *model,
			 const struct ts_emulator_times *times);

/* ---- against the recording: emulator_errors.c ---- */

/* Shares of the recorded span. */
struct ts_emulator_errors {
	int64_t recorded_span_ns, span_ns;
	double span;          /* below 0: simulated too short */
	double p50, p95, max; /* of the distance of starts */
};

int ts_emulator_errors(struct ts_emulator_errors *ret_errors, const struct ts_work *work,
		       const struct ts_emulator_times *times, struct ts_error *err);

#endif
