/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay: runs a recorded command stream again (docs/replay.md, sections 6 and 7). stream/ loads
 * and validates it, plan/ selects the commands that run, a target runs them, check/ compares
 * memory, output/ writes the run as a trace. The library prints nothing.
 *
 *	ts_replay_open(&replay, reader, &options, &err);
 *	ts_replay_run(replay, &report, &err);
 *	ts_replay_close(replay);
 *
 * To add a target `cuda`, write a `const struct ts_replay_target ts_replay_target_cuda` in
 * targets/cuda/ and add TARGET(cuda) to targets/targets.def.
 */
#ifndef TS_REPLAY_REPLAY_H
#define TS_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/error.h>
#include <tracesmith/reader.h>
#include <tracesmith/schema.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/option_spec.h"
#include "replay/check/values.h"
#include "replay/monitor.h"

#define TS_REPLAY_NONE UINT32_MAX /* no such index */

/* ---- the loaded stream (stream/) ---- */

struct ts_replay_range {
	uint32_t memory; /* index of a root memory object */
	uint64_t offset, bytes;
};

/* Bytes stored in the trace. ts_replay_blob_read() reads them and verifies their hash. */
struct ts_replay_blob_ref {
	uint32_t id; /* 0: none */
	uint64_t bytes;
};

struct ts_replay_binary {
	uint32_t device; /* index of an object */
	struct ts_replay_blob_ref blob;
};

/* An argument of a function, as the driver named it; "": unknown. */
struct ts_replay_parameter {
	const char *name, *type;
};

#define TS_REPLAY_HAS_SVM 1u
#define TS_REPLAY_READ_ONLY 2u /* kernels only read this memory */
#define TS_REPLAY_WRITE_ONLY 4u
#define TS_REPLAY_USER_EVENT 8u
#define TS_REPLAY_OUT_OF_ORDER 16u
/* Memory (docs/cuda-replay.md, 4.1) */
#define TS_REPLAY_SPARSE 32u  /* an address space: `address` to `address + bytes`, partly mapped */
#define TS_REPLAY_HOST 64u    /* of the host's addresses; sparse, address 0 */
#define TS_REPLAY_GLOBAL 128u /* a variable of the module that is its parent, named `name` */
/* Streams of CUDA: the legacy default stream and streams that do not wait for it. */
#define TS_REPLAY_LEGACY 256u
#define TS_REPLAY_NON_BLOCKING 512u

/* Memory that is an image (docs/replay.md, 2.4). Words are those of live/local/image_formats.def.
 */
struct ts_replay_image {
	const char *type, *order, *data;
	uint64_t size[3];             /* pixels; layers of an array are its last size */
	uint64_t element, row, slice; /* bytes; content is packed, except for a 2D view of a buffer
				       */
};

/* Where a parameter of a function is in the block of a launch. */
struct ts_replay_place {
	uint64_t at, size;
};

/* A range of sparse memory that is mapped when the window opens. */
struct ts_replay_mapping {
	uint64_t offset, bytes;
	bool is_registered; /* host memory that was registered, with these flags */
	uint32_t flags;
};

/* A piece of the content of memory when the window opens; mapped memory without one is zeros. */
struct ts_replay_piece {
	uint64_t offset, bytes;
	struct ts_replay_blob_ref blob;
};

struct ts_replay_object_info {
	int64_t id;      /* row id */
	uint64_t number; /* number in the program, shown to users ("memory 7") */
	uint64_t index;  /* device, stream: its number in gpu_op rows; else 0 */
	enum ts_object_kind kind;
	uint32_t parent;  /* index. view: root memory; stream, memory, module: context; function:
			     module */
	uint32_t device;  /* stream: index of its device */
	uint32_t flags;   /* TS_REPLAY_* */
	uint64_t address; /* in the program */
	uint64_t bytes;   /* memory */
	uint64_t origin;  /* view: offset in its root */
	const struct ts_replay_image *image; /* memory; NULL: a buffer */
	const char *name;
	const char *demangled, *shown;  /* the name for people, complete and without arguments */
	const char *options;            /* module; device: its description */
	struct ts_replay_blob_ref blob; /* source, or initial content */
	const struct ts_replay_binary *binaries;
	uint32_t binary_count;
	const uint32_t *devices; /* context, module */
	uint32_t device_count;
	const char *unreplayable;         /* reason; NULL: replayable */
	int64_t priority;                 /* stream; TS_ABSENT: none */
	int64_t created_ns, destroyed_ns; /* destroyed_ns TS_ABSENT: it was not */
	const char *from;                 /* module: source, binary, il, ...; NULL: unknown */
	const char *const *flag_names;    /* memory */
	uint32_t flag_count;
	const struct ts_replay_parameter *parameters; /* function */
	uint32_t parameter_count;
	const struct ts_replay_place *places; /* function: of CUDA, instead of arguments */
	uint32_t place_count;
	uint64_t graph_nodes; /* graph */
	/*
	 * Memory: the commands (indices) that allocated and freed it; TS_REPLAY_NONE: before the
	 * window, or not inside it.
	 */
	uint32_t created_by, freed_by;
	/* As recorded: a JSON object. For what only one target knows; "": none. */
	const char *details;
	const struct ts_replay_mapping *mappings; /* sparse memory; by offset */
	uint32_t mapping_count;
	const struct ts_replay_piece *pieces; /* sparse memory and globals; by offset */
	uint32_t piece_count;
};

enum ts_replay_arg_kind {
	TS_REPLAY_ARG_BYTES,
	TS_REPLAY_ARG_MEMORY,
	TS_REPLAY_ARG_LOCAL,
	TS_REPLAY_ARG_SVM,
	TS_REPLAY_ARG_SAMPLER
};
enum { TS_REPLAY_READS = 1, TS_REPLAY_WRITES = 2 };

struct ts_replay_arg {
	enum ts_replay_arg_kind kind;
	unsigned int access;    /* TS_REPLAY_READS | TS_REPLAY_WRITES */
	uint64_t at, size;      /* in the raw argument block; LOCAL: only size */
	uint32_t memory;        /* root; TS_REPLAY_NONE: a null buffer */
	uint64_t offset, bytes; /* the view that the kernel gets */
	uint32_t image;         /* the image that it gets, the root or a view; TS_REPLAY_NONE */
	/* SAMPLER: words of live/local/image_formats.def */
	bool is_normalized;
	const char *addressing, *filter;
};

struct ts_replay_rect_side {
	uint64_t origin[3], row, slice;
};

/* The hash of a page of 2 MiB (code/cuda/local/page_kernels.h). */
#define TS_REPLAY_PAGE ((uint64_t)2 << 20)
struct ts_replay_page {
	uint32_t memory; /* index of an object */
	uint32_t padding;
	uint64_t offset, hash;
};

struct ts_replay_check {
	struct ts_replay_range range; /* memory TS_REPLAY_NONE: what a read copied to the host */
	/*
	 * The blob has the hashes of this many pages of the range, by offset: all mapped ones, or
	 * (is_change) those that changed since the check before. Without pages `hash` is that of
	 * the range.
	 */
	bool has_pages;
	uint64_t page_count;
	bool is_change;
	uint64_t hash;
	const char *why;                /* read, map, each, final */
	struct ts_replay_blob_ref blob; /* the contents, if recorded */
};

struct ts_replay_command_info {
	uint64_t sequence;
	int64_t start_ns; /* when it was enqueued */
	int64_t correlation;
	int64_t thread; /* row of the thread that submitted it; 0: unknown */
	enum ts_command_kind kind;
	uint32_t queue;              /* object index, or TS_REPLAY_NONE */
	uint32_t object, other;      /* memory: roots; offsets include the view's origin */
	uint32_t image, other_image; /* the images that it names, roots or views; TS_REPLAY_NONE */
	uint64_t offset, other_offset, bytes;
	struct ts_replay_blob_ref blob;
	const char *call;
	bool blocking, is_rect, unknown_access; /* unknown_access: may read and write all memory */
	bool would_deadlock; /* waits for what a later command sets: would deadlock on replay;
				skipped */
	uint32_t ready; /* index of the last command that must be submitted before this one can end:
			   itself, or the one that sets a user event */
	uint64_t region[3];
	struct ts_replay_rect_side to, from;
	bool is_whole; /* rectangle: all bytes of what it writes */
	uint32_t dimensions;
	uint64_t global[3], local[3], global_offset[3]; /* local[0] 0: the driver chooses */
	const struct ts_replay_arg *args;
	uint32_t arg_count;
	/*
	 * What it waits for: earlier commands (indices) whose events it names, and user events
	 * (object indices). In a selection use ts_replay_plan_wait(): skipped commands have no
	 * event.
	 */
	const uint32_t *waits, *user_waits;
	uint32_t wait_count, user_wait_count;
	/*
	 * The last so many of `waits`: dependencies of the legacy default stream and of the streams
	 * that wait for it. A target whose streams do the same need not wait for them. A node of a
	 * graph among them stands for all nodes of its launch.
	 */
	uint32_t implicit_waits;
	bool has_wait_list; /* has a wait list, which may name nothing in this window; a marker or
			       barrier without one waits for everything before it */
	/* As recorded, for descriptions: the event that it sets, the events it names, its queue. */
	uint64_t event;  /* number; 0: none */
	uint64_t mapped; /* record: number of the memory that it maps or unmaps; 0: none */
	const uint64_t *events;
	uint32_t event_count;
	uint32_t named_queue; /* differs from `queue` if a sync waits for a part of it only */
	/*
	 * sync: queue, events, seen, context or free; the last two have neither a queue nor waits:
	 * the host waits for everything before them in the context `object` (TS_REPLAY_NONE: in
	 * all). set: limit, attribute or cache. Else NULL.
	 */
	const char *what;
	bool is_ambiguous;   /* the kind of an argument was guessed */
	uint32_t user_event; /* record without a queue: the user event it sets; TS_REPLAY_NONE */
	int64_t status;
	const struct ts_replay_range *reads, *writes;
	uint32_t read_count, write_count;
	const struct ts_replay_check *checks;
	uint32_t check_count;
	const char *unreplayable;
	const char *details; /* as recorded: a JSON object; "": none */
	/*
	 * A node of a graph that a launch runs. The nodes of one launch follow each other in the
	 * order in which they may run one by one; the first is at `graph_first`, all have the queue
	 * and the sequence of the launch. An empty node is a wait for nothing, and so is the launch
	 * of a graph without nodes. TS_REPLAY_NONE in `graph`: not a node.
	 */
	uint32_t graph; /* object */
	uint32_t graph_first, graph_nodes;
	uint32_t node;              /* number in its graph */
	const uint32_t *node_after; /* numbers of nodes that it depends on */
	uint32_t node_after_count;
};

/* Addresses of the program that are memory of the stream. */
struct ts_replay_space {
	uint64_t address, end;
	uint32_t memory;
};

struct ts_replay_stream {
	struct ts_reader *reader; /* borrowed */
	struct ts_replay_object_info *objects;
	struct ts_replay_command_info
		*commands; /* of one window, by sequence; without open, close and check */
	uint32_t object_count, command_count;
	const struct ts_replay_check *final_checks;
	uint32_t final_count;
	const struct ts_replay_space *spaces; /* sparse memory and variables; by address */
	uint32_t space_count;
	int64_t process;        /* id of the process row */
	uint32_t process_count; /* with commands, in the trace */
	uint32_t window, window_count;
	int64_t open_ns;        /* when the window opened */
	const char *failed;     /* why the window is not replayable; NULL: it is */
	bool is_truncated;      /* no CLOSE: the program was killed, or called _exit() */
	struct ts_strmap texts; /* shared by commands */
	struct ts_arena arena;
};

/*
 * Loads a window (0: the first replayable one) of a process (pid or name; NULL: the only one).
 * TS_ENOTFOUND: nothing to replay.
 */
int ts_replay_stream_load(struct ts_replay_stream **ret_stream, struct ts_reader *reader,
			  const char *process, uint32_t window, struct ts_error *err);
/* The same to show it: also a window that cannot be replayed (stream->failed). */
int ts_replay_stream_load_to_show(struct ts_replay_stream **ret_stream, struct ts_reader *reader,
				  const char *process, uint32_t window, struct ts_error *err);
void ts_replay_stream_free(struct ts_replay_stream *stream);
/* Reads a blob into `to` (blob->bytes bytes) and verifies its hash. The error names the blob. */
int ts_replay_blob_read(struct ts_reader *reader, const struct ts_replay_blob_ref *blob, void *to,
			struct ts_error *err);
/*
 * The memory that an address of the program was in: an address space of a device, a variable, or
 * memory of the host that was mapped in the window. False: none of these.
 */
bool ts_replay_locate(const struct ts_replay_stream *stream, uint64_t address, uint32_t *ret_memory,
		      uint64_t *ret_offset);
/* For messages: "kernel 'saxpy', command 17". */
const char *ts_replay_command_text(const struct ts_replay_stream *stream, uint32_t command,
				   char *buffer, size_t bytes);

/* ---- the plan (plan/) ---- */

enum {
	TS_REPLAY_REQUESTED = 1,
	TS_REPLAY_INCLUDED = 2, /* a selected command needs its result */
	/*
	 * Kept only for its order. record, wait, sync, set, alloc and free run as always. Any other
	 * kind is replaced by a marker in its queue with the same waits; its event is that of the
	 * marker, and the host waits for it if the command blocks. If its queue cannot be created,
	 * the host waits for everything before it instead.
	 */
	TS_REPLAY_ORDER = 3,
};

/* Why a command does not run (--skip-unsupported). */
enum ts_replay_skip {
	TS_REPLAY_UNSUPPORTED = 1, /* it cannot be replayed */
	TS_REPLAY_DEPENDENT = 2,   /* a launch whose inputs are unknown because of that */
};

struct ts_replay_plan {
	uint8_t *kept;     /* per command of the stream: 0, or one of the above */
	uint32_t *order;   /* indices of kept commands, in submission order */
	uint32_t *instead; /* NULL: all commands are kept; else see ts_replay_plan_wait() */
	uint32_t count, requested, included;
	bool is_complete; /* all commands are requested */
	/* --skip-unsupported; NULL without it. */
	uint8_t *skipped; /* per command of the stream: 0, or enum ts_replay_skip */
	uint32_t unsupported, dependent;
	struct ts_map unknown; /* addresses; see ts_replay_plan_is_unknown() */
};

/*
 * Do some of the bytes depend on skipped commands, so that they cannot be compared? Of a check; of
 * a range in command->writes, after that command; of a command: what it copied to the host; of
 * memory (an object of the stream), at the end.
 */
static inline bool ts_replay_plan_is_unknown(const struct ts_replay_plan *plan, const void *what)
{
	uint64_t value;

	return ts_map_get(&plan->unknown, (uintptr_t)what, &value);
}

/*
 * The kept command (index) to wait for instead of `command`; TS_REPLAY_NONE: nothing to wait for.
 */
static inline uint32_t ts_replay_plan_wait(const struct ts_replay_plan *plan, uint32_t command)
{
	return plan->instead ? plan->instead[command] : command;
}

/* ---- captures: memory copied out of a run, to compare or show (selected by check/) ---- */

struct ts_replay_capture {
	uint32_t position; /* in plan.order: after that command and before whatever is ordered after
			      it; plan.count: at the end */
	/*
	 * memory TS_REPLAY_NONE: the bytes that this copy transferred to the host (a rectangle:
	 * packed)
	 */
	struct ts_replay_range range;
	const char *why; /* read, map, each, final, dump */
	/*
	 * Not content, but hashes of pages: of all mapped memory (why `final`), or (`each`) of the
	 * pages whose hash changed since the capture before; the first in a run has all mapped
	 * pages. `range` is not used. Other captures of sparse memory get zeros for what is not
	 * mapped.
	 */
	bool is_pages;
};

/* ---- options and results ---- */

/* DEFAULT: not set; ts_replay_open() replaces it with FAST, or the target's default check. */
enum ts_replay_pace { TS_REPLAY_PACE_DEFAULT, TS_REPLAY_FAST, TS_REPLAY_ORIGINAL };
enum ts_replay_check_level {
	TS_REPLAY_CHECK_DEFAULT,
	TS_REPLAY_CHECK_NONE,
	TS_REPLAY_CHECK_FINAL,
	TS_REPLAY_CHECK_EACH,
};

/* --replace-kernel. The caller reads the file: no path of a trace is ever followed. */
struct ts_replay_replacement {
	const char *kernel; /* function name: its module is built from this source */
	const char *path;   /* for messages */
	const char *source; /* NUL-terminated; bytes does not count the NUL */
	size_t bytes;
};

struct ts_replay_options {
	const struct ts_replay_target *target;
	const char *name;    /* of the trace, for the metadata of -o */
	const char *device;  /* number or part of a name; NULL: one like the recorded one */
	const char *streams; /* comma list of numbers; NULL: all */
	const char *from,
		*to;    /* sequence number, or time with a unit after the first command; NULL */
	bool has_steps; /* --step: only commands from the mark of the first to behind the last */
	int64_t first_step, last_step;
	const char *kernel;  /* glob */
	unsigned int repeat; /* at least 1 */
	enum ts_replay_pace pace;
	enum ts_replay_check_level check;
	bool one_at_a_time;   /* commands do not run concurrently, whatever is compared */
	uint64_t dump_at;     /* sequence; 0: none */
	uint64_t dump_memory; /* number */
	/* --dump of sparse memory: an address, or an argument (its number) of the launch, that many
	 * bytes. */
	bool dumps_address, dumps_argument;
	uint64_t dump_address, dump_bytes;
	/*
	 * --kernel NAME#n: the nth launch of that name (from 1; 0: all). The target then runs it
	 * this many times more, from the same memory each time, to time it.
	 */
	uint32_t kernel_number;
	uint32_t kernel_repeats;
	const char *value_type; /* --as: f16 f32 f64 i8 .. u64 ...; NULL */
	struct ts_value_tolerance tolerance;
	const struct ts_replay_replacement *replacements;
	size_t replacement_count;
	const void *target_options; /* struct of the target's own options; NULL */
	const char *output;         /* -o; NULL */
	bool trusts_owner;          /* --yes: run a trace that belongs to another user */
	bool skip_unsupported;      /* go on without commands that cannot be replayed */
	const char *process;        /* pid or name; NULL: the only one */
	uint32_t window;
	int (*progress)(void *context, const char *doing, uint64_t done,
			uint64_t total); /* may be NULL; a non-zero result stops the replay */
	/*
	 * Receives all messages of the compiler if a replacement does not build. NULL: the error
	 * has the first ones.
	 */
	void (*build_log)(void *context, const char *text);
	/* Before anything runs: what is not as recorded, and may change results. May be NULL. */
	void (*warn)(void *context, const char *text);
	void *context;
	/*
	 * Receives what the replay is doing; NULL: nobody watches. The replay then belongs to this
	 * process: it may start a thread that looks at the device, and handle signals of crashes.
	 */
	struct ts_replay_monitor *monitor;
	int64_t time_limit_ns; /* of a command or build, for the monitor; TS_REPLAY_LIMIT_* */
};

enum ts_replay_verdict {
	TS_REPLAY_EQUAL,   /* no difference in N runs, equals recording */
	TS_REPLAY_AGREES,  /* no difference in N runs, nothing recorded to compare with */
	TS_REPLAY_RAN,     /* --check none, or the emulator: nothing was compared */
	TS_REPLAY_DIFFERS, /* differs from recording */
	TS_REPLAY_NONDETERMINISTIC,
};

/* Times of one command in one run, in ns of the target's clock. TS_ABSENT: unknown. */
struct ts_replay_times {
	int64_t called, returned; /* host times */
	int64_t queued, submitted, start, end;
};

/* ---- a target ---- */

struct ts_replay_session; /* defined by each target */

/* When a host call or slice ran, ns. */
struct ts_replay_span {
	int64_t start, end;
};

/*
 * Results of a run. The caller owns the arrays and initialises times to TS_ABSENT, the rest to 0.
 * Times are indexed by position in plan.order and use one clock with any epoch.
 *
 * A target that NEEDS_WORK has neither stream nor plan: times are indexed as work->commands, calls
 * and slices as work->calls and work->slices (NULL if not wanted), all in trace time. An entry
 * whose start is TS_ABSENT is not part of the result.
 */
struct ts_replay_outcome {
	struct ts_replay_times *times;
	struct ts_replay_span *calls, *slices; /* NEEDS_WORK only */
	/*
	 * The queue that a command ran in: index of work->streams, or from stream_count on a new
	 * queue of its device. Initialised to the recorded queues.
	 */
	uint32_t *streams; /* NEEDS_WORK only */
	/*
	 * Receives the bytes of replay->captures[capture]. Called once per capture and run, in any
	 * order, from one thread at a time; `data` is valid only during the call. An error ends the
	 * run. NULL if there are no captures.
	 */
	int (*content)(void *context, uint32_t capture, const void *data, struct ts_error *err);
	/* The same for captures that are pages: sorted by memory and offset. */
	int (*pages)(void *context, uint32_t capture, const struct ts_replay_page *pages,
		     uint64_t count, struct ts_error *err);
	void *context;
	/* From the first to the last command without times of its own; initialised to TS_ABSENT. */
	struct ts_replay_span untimed;
	/*
	 * Another legal order, for targets that can reorder: positions in plan.order, all of them.
	 * Commands then run one at a time, nodes of graphs one by one; between the nodes of a
	 * launch other commands may run. Captures of a position come after its command, those of
	 * the end after all. NULL: as planned.
	 */
	const uint32_t *order;
};

/* What a target needs from the trace. */
#define TS_REPLAY_NEEDS_STREAM 1u /* a recorded command stream */
#define TS_REPLAY_NEEDS_WORK 2u   /* ts_replay.work, with slices: any trace with commands */
#define TS_REPLAY_NEEDS_FIXED_ADDRESSES 4u /* a process without address space randomisation */

/* What a target can do, and the options that ask for it. */
#define TS_REPLAY_CAN_PICK_DEVICE 1u     /* --device */
#define TS_REPLAY_CAN_SELECT 2u          /* --stream, --from, --to, --kernel, --skip-unsupported */
#define TS_REPLAY_CAN_PACE 4u            /* --pace */
#define TS_REPLAY_CAN_CHECK 8u           /* --check, --as, --tolerance, --hashes */
#define TS_REPLAY_CAN_DUMP 16u           /* --at, --dump */
#define TS_REPLAY_CAN_REPLACE_KERNEL 32u /* --replace-kernel */
#define TS_REPLAY_CAN_LIMIT_TIME 64u     /* --time-limit: runs code of the trace, which may hang */
#define TS_REPLAY_CAN_ALL 127u           /* all of the above */
#define TS_REPLAY_CAN_HASH_PAGES 128u    /* captures that are pages */
#define TS_REPLAY_CAN_REORDER 256u       /* ts_replay_outcome.order */
#define TS_REPLAY_CAN_TIME_KERNEL 512u   /* --kernel NAME#n runs one kernel several times */
#define TS_REPLAY_CAN_DUMP_ADDRESS 1024u /* --dump 0xADDRESS and argN */

struct ts_replay;
struct ts_replay_report;
struct ts_work;
struct ts_replay_target {
	const char *name;
	const char *summary; /* one line for --help */
	const char *example; /* arguments of `tracesmith replay`, for --help; NULL: none */
	unsigned int needs;  /* TS_REPLAY_NEEDS_* */
	unsigned int can;    /* TS_REPLAY_CAN_* */
	enum ts_replay_check_level default_check;
	/* What helps when a kernel crashes the process, to follow "and"; NULL: nothing. */
	const char *finds_crashes;
	/*
	 * The target's own options. Offsets are into a struct of options_bytes, which starts zeroed
	 * and is passed as ts_replay_options.target_options.
	 */
	const struct ts_option_spec *options;
	size_t option_count, options_bytes;
	/* Checks options before the trace is loaded; NULL: nothing to check. */
	int (*check_options)(const struct ts_replay_options *options, struct ts_error *err);
	int (*open)(struct ts_replay *replay, struct ts_replay_session **ret_session,
		    struct ts_error *err);
	/* Restores the initial state, then runs the plan once. */
	int (*run)(struct ts_replay_session *session, unsigned int number,
		   struct ts_replay_outcome *outcome, struct ts_error *err);
	/* What it runs on: "opencl: pthread-skylake (PoCL 3.1)". */
	const char *(*device)(const struct ts_replay_session *session);
	/*
	 * After the last run: fills in what only the target knows (for the emulator spans, errors
	 * and the what-if). May be NULL.
	 */
	void (*report)(const struct ts_replay_session *session, struct ts_replay_report *report);
	/* What is not as recorded, and may change results; "". May be NULL. */
	const char *(*notes)(const struct ts_replay_session *session);
	void (*close)(struct ts_replay_session *session);
};

#define TARGET(name) extern const struct ts_replay_target ts_replay_target_##name;
#include "replay/targets/targets.def"
#undef TARGET
extern const struct ts_replay_target *const ts_replay_targets[]; /* default first; ends with NULL */

/* The target that runs what was recorded on the platform of this trace; else the default. */
const struct ts_replay_target *ts_replay_target_of(struct ts_reader *reader);

struct ts_replay {
	struct ts_replay_options options;
	struct ts_reader *reader;
	struct ts_replay_stream *stream; /* NULL if the target does not need one */
	struct ts_work *work; /* owned; loaded before open() if the target NEEDS_WORK, else NULL */
	struct ts_replay_plan plan;
	/* By position. They may change between runs: further runs fetch contents that differ. */
	const struct ts_replay_capture *captures;
	uint32_t capture_count;
	struct ts_replay_session *session;
	struct ts_replay_checker *checker;           /* defined in check/check.h */
	struct ts_replay_kernel_times *kernel_times; /* output/kernel_times.h; NULL: no stream */
	uint32_t rejected;    /* calls of ts_replay_reject_*() that returned true */
	bool is_reference;    /* the run without replaced kernels */
	int64_t *recorded_ns; /* durations by position, TS_ABSENT: unknown; NULL: no monitor */
};

/* A command that does not run, and why. */
struct ts_replay_skipped {
	uint64_t command; /* sequence */
	char text[160], reason[256];
};

struct ts_replay_report {
	enum ts_replay_verdict verdict;
	char verdict_text[256];
	uint32_t commands, requested, included, runs;
	char included_text[1024]; /* which commands, as text */
	char device[256];
	/*
	 * From opening the device to the first command of the first run, and the memory that was
	 * restored then. TS_ABSENT, 0: unknown.
	 */
	int64_t setup_ns;
	uint64_t restored_bytes;
	int64_t recorded_span_ns, span_ns; /* first start to last end; of the fastest run */
	/* In which some command ran on the device, of commands whose times are known in both. */
	int64_t recorded_busy_ns, busy_ns;
	uint32_t checks, compared_ranges;
	/* Of the checks: recorded with contents, equal only within the tolerance, different. */
	uint32_t kept_checks, near_checks, different_checks;
	/*
	 * --skip-unsupported: commands that cannot be replayed, launches that depend on them, and
	 * recorded checks that were not compared because of both (not included in `checks`).
	 */
	uint32_t skipped, dependent, unknown_checks;
	struct ts_replay_skipped first_skipped[4]; /* as many as there are */
	/* Valid if differs is set. */
	bool differs;
	uint64_t command; /* sequence */
	char kernel[256], buffer[64];
	char command_text[160]; /* "command 17, launch of 'saxpy'" */
	bool has_bytes;         /* false: first_byte and bytes_differing are unknown */
	uint64_t buffer_number, first_byte, bytes_differing;
	char values[256];  /* with --as: expected and actual values */
	char note[512];    /* a further note; "": none */
	char between[256]; /* differs from recording: the last equal, the first different check */
	/*
	 * Captures that are pages. `buffer` names the address space, `address` is that of the first
	 * differing page, or if has_bytes of the first differing byte; bytes_differing are those of
	 * that page.
	 */
	bool has_pages;
	uint64_t address, pages_differing;
	uint32_t varying_runs;               /* runs that differ from the first; 0: unknown */
	uint32_t reordered_runs, extra_runs; /* in another legal order; to find the cause */
	char other_command_text[160];        /* a race: the command that it races with; "": none */
	uint64_t other_command;
	/* Stacks (row ids) of the calls that launched both; 0: unknown. */
	int64_t stack, other_stack;
	/*
	 * Emulator only. Errors compare the baseline (without what-if) with the recording. With a
	 * what-if, span_ns is the changed span: compare it with baseline_span_ns, not with the
	 * recorded one.
	 */
	int64_t baseline_span_ns;
	/* --kernel on a target that can time it; 0 runs: not timed. TS_ABSENT: unknown. */
	uint32_t timed_runs;
	int64_t timed_recorded_ns, timed_warm_ns, timed_cold_ns; /* medians; L2 warm and cold */
	int64_t timed_warm_low_ns, timed_warm_high_ns;           /* 95 % interval of the median */
	int64_t timed_cold_low_ns, timed_cold_high_ns;
	char timed_kernel[256], timed_clocks[128]; /* "SM 1980 MHz, memory 3201 MHz" */
	/* Words that hold addresses of variables, changed to those of this process; "": none. */
	uint64_t relocated_words;
	char relocated[512];
	char gaps[512]; /* "capture gap: pointer to 0x7f.., kernel 'x'"; "": none */
	double span_error, start_error_p50, start_error_p95,
		start_error_max;   /* shares of the recorded span */
	uint64_t guessed_commands; /* commands without a recorded call: their enqueue time is
				      guessed from their start */
	uint64_t held_commands;    /* commands that began late on an idle device, and do so in the
				      simulation */
	uint64_t broken_waits;     /* dependencies dropped because they would deadlock */
	char what_if[1024];        /* the changes as text; "": none */
};

/*
 * Checks that the options are valid and the target supports them. ts_replay_open() does this, too.
 */
int ts_replay_check_options(const struct ts_replay_options *options, struct ts_error *err);
int ts_replay_open(struct ts_replay **ret_replay, struct ts_reader *reader,
		   const struct ts_replay_options *options, struct ts_error *err);
/*
 * Loads the stream and the plan to show them: no target is needed, commands that cannot be replayed
 * are no error, and ts_replay_run() must not be called.
 */
int ts_replay_open_to_show(struct ts_replay **ret_replay, struct ts_reader *reader,
			   const struct ts_replay_options *options, struct ts_error *err);
int ts_replay_run(struct ts_replay *replay, struct ts_replay_report *ret_report,
		  struct ts_error *err);
void ts_replay_close(struct ts_replay *replay);
/*
 * For targets, with the reason in `err`: the device does not support this object or command. True:
 * it will be left out (--skip-unsupported). The target may go on to find more of them, and must
 * then fail; the replay is planned again without them. False: `err` names the option.
 */
bool ts_replay_reject_object(struct ts_replay *replay, uint32_t object, struct ts_error *err);
bool ts_replay_reject_command(struct ts_replay *replay, uint32_t command, struct ts_error *err);
/* A launch that is refused for its sizes: with all launches of the same kernel with these sizes. */
bool ts_replay_reject_launches(struct ts_replay *replay, uint32_t command, struct ts_error *err);
/* After a run: the content for --dump (NULL: none), and the hash of a capture in the first run. */
const void *ts_replay_dump(const struct ts_replay *replay, uint64_t *ret_bytes);
/* What --dump shows; NULL: nothing. */
const struct ts_replay_range *ts_replay_dumped(const struct ts_replay *replay);
/*
 * After a run: times on the device of all launches of a kernel; replaced ones first, then those
 * that took longest. TS_ABSENT: unknown.
 */
struct ts_replay_kernel {
	const char *name;
	uint32_t launches;
	uint32_t recorded_launches;    /* that have a recorded time */
	int64_t recorded_ns;           /* of those */
	int64_t fastest_ns, median_ns; /* of the runs */
	bool is_replaced;              /* named by --replace-kernel */
	int64_t reference_ns; /* with --replace-kernel: before, with the recorded kernels */
};
const struct ts_replay_kernel *ts_replay_kernels(const struct ts_replay *replay,
						 uint32_t *ret_count);
/*
 * Time of the fastest run divided by that before: in this replay if kernels are replaced, else in
 * the recording. 0: unknown.
 */
double ts_replay_kernel_ratio(const struct ts_replay_kernel *kernel);
uint64_t ts_replay_hash_of(const struct ts_replay *replay, uint32_t capture);
TS_DEFINE_AUTO(ts_replay, ts_replay_close);

#endif
