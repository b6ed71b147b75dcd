/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream scheduler emulator (docs/replay.md, section 7) computes when each command would have
 * run. Three steps; each sees less of the trace than the one before:
 *
 *	ts_emulator_observe()    measures latencies and concurrency; the only reader of start times
 *	ts_emulator_model_new()  builds the model: durations, dependencies, times of calls
 *	ts_emulator_run()        simulates; sees only the model
 *
 * Private to src/replay/emulator, targets/target_emulator.c, their tests and bench/emulator.c. All
 * times are ns.
 */
#ifndef TS_REPLAY_EMULATOR_EMULATOR_H
#define TS_REPLAY_EMULATOR_EMULATOR_H

#include "state/graph/graph.h"
#include "state/work/work.h"

/* ---- observation: emulator_observe.c ---- */

/* Kinds of commands with different launch latencies. */
enum ts_emulator_class {
	TS_EMULATOR_KERNEL,
	TS_EMULATOR_COPY,
	TS_EMULATOR_OTHER,    /* fills, markers, callbacks */
	TS_EMULATOR_NODE,     /* of a launched graph */
	TS_EMULATOR_BLOCKING, /* its call returns when the command has ended */
	TS_EMULATOR_CLASSES
};

struct ts_emulator_latency {
	int64_t launch_ns; /* from call to start if nothing delays the command; may be negative */
	int64_t next_ns;   /* from the end of its last dependency to its start */
	int64_t most_ns;   /* a longer time is not a latency */
	bool from_end; /* launch_ns counts from the call's end, which has the smaller spread; else
			  from its begin */
};

/*
 * Resources with a limited number of slots. Those of device d start at d * TS_EMULATOR_RESOURCES.
 */
enum ts_emulator_resource {
	TS_EMULATOR_KERNELS,
	TS_EMULATOR_UP, /* copies from the host, or all copies if there is one engine */
	TS_EMULATOR_DOWN,
	TS_EMULATOR_PEER,
	TS_EMULATOR_RESOURCES
};

/* Which resource copies of a device use. */
enum ts_emulator_engines {
	TS_EMULATOR_ENGINES,    /* one engine per direction */
	TS_EMULATOR_ONE_ENGINE, /* one engine for all directions */
	TS_EMULATOR_NO_ENGINE,  /* slots of kernels */
};

struct ts_emulator_observed {
	struct ts_emulator_latency (*latencies)[TS_EMULATOR_CLASSES]; /* by stream */
	uint32_t (*slots)[TS_EMULATOR_RESOURCES]; /* by device: how many run concurrently */
	uint8_t *engines;                         /* by device: enum ts_emulator_engines */
	/* By name of a call that waits: its duration if there is nothing to wait for. */
	int64_t *self_ns;
	/* By call: how long it continues after the end of what it waited for. */
	int64_t *tail_ns;
	/*
	 * By call: a command that it must wait for although the graph has no such edge;
	 * TS_WORK_NONE.
	 */
	uint32_t *implied;
	/*
	 * By command: how much later than after its latencies it began although its device was
	 * idle; 0: not. NULL: none did.
	 */
	int64_t *held_ns;
};

int ts_emulator_observe(struct ts_emulator_observed *observed, const struct ts_graph *graph,
			struct ts_error *err);
void ts_emulator_observed_release(struct ts_emulator_observed *observed);

/* ---- the model: emulator_model.c, emulator_host.c, emulator_queues.c ---- */

struct ts_emulator_command {
	int64_t duration;
	int64_t launch_ns; /* after its call */
	int64_t held_ns;   /* after that, and after everything it waits for */
	int64_t priority;  /* of its queue; lower runs sooner */
	uint32_t resource; /* TS_WORK_NONE: none */
	uint32_t follower; /* command that may not begin before this one has begun; TS_WORK_NONE */
};

/*
 * An instant of a host thread: a call begins or ends, or a command is submitted (threads that are
 * not in the trace).
 */
enum ts_emulator_point_kind { TS_EMULATOR_BEGIN, TS_EMULATOR_END, TS_EMULATOR_GIVE };

struct ts_emulator_point {
	int64_t gap_ns; /* after the thread's previous point; first point: absolute time */
	uint32_t what;  /* index of a call or command */
	uint8_t kind;   /* enum ts_emulator_point_kind */
	bool is_last;   /* of its thread */
};

struct ts_emulator_thread {
	uint32_t first, count; /* of points */
};

/*
 * Node `to` happens no earlier than lag_ns after the source node has ended (a point: was reached).
 */
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
	uint32_t *first_submit; /* call_count + 1 entries: into submits */
	uint32_t *submits;      /* commands of each call */
	uint32_t *first_out;    /* node_count + 1 entries: into edges */
	struct ts_emulator_edge *edges;
	uint32_t *waits; /* per node: incoming edges; commands: plus submission and leader */
	size_t edge_count;
	uint32_t *streams; /* per command: index of work->streams, or from stream_count on a new
			      stream of one device; NULL: as recorded */
	uint64_t guessed_commands;
	uint64_t held_commands; /* with a held_ns */
};

struct ts_emulator_shape {
	uint32_t streams; /* per device; 0: as recorded */
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
	uint64_t broken_waits; /* waits that would deadlock and were dropped */
};

struct ts_emulator_run_options {
	enum ts_emulator_policy policy;
	/* How many commands have ended; a result other than 0 stops the simulation. May be NULL. */
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

/*
 * The first run allocates the arrays; release() accepts a zeroed struct. TS_ECANCELED: stopped, and
 * the times are incomplete.
 */
int ts_emulator_run(const struct ts_emulator_model *model,
		    const struct ts_emulator_run_options *options, struct ts_emulator_times *times,
		    struct ts_error *err);
void ts_emulator_times_release(struct ts_emulator_times *times);

/* First start to last end. */
int64_t ts_emulator_span(const struct ts_emulator_model *model,
			 const struct ts_emulator_times *times);

/* ---- errors against the recording: emulator_errors.c ---- */

/* Shares of the recorded span. */
struct ts_emulator_errors {
	int64_t recorded_span_ns, span_ns;
	double span;          /* negative: the simulation is too short */
	double p50, p95, max; /* of the distances between simulated and recorded starts */
};

int ts_emulator_errors(struct ts_emulator_errors *ret_errors, const struct ts_work *work,
		       const struct ts_emulator_times *times, struct ts_error *err);

#endif
