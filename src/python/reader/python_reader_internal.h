/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the reader's files: find_python.c (locates the runtime), python_codes.c (functions and
 * lines), python_stack.c (frames of one thread: predict, copy, walk), stack_evidence.c (whether
 * they are plausible), python_threads.c (identity and state of threads), python_sweep.c (all
 * threads at once), python_reader.c (open and close).
 */
#ifndef TS_PYTHON_READER_PYTHON_READER_INTERNAL_H
#define TS_PYTHON_READER_PYTHON_READER_INTERNAL_H

#include "base/arena.h"
#include "base/map.h"
#include "python/local/python_objects.h"
#include "python/local/python_walk.h"
#include "python/reader/python_reader.h"

#define MAX_INTERPRETERS 1024u
#define MAX_THREADS 65536u
#define MAX_DEPTH 200000u     /* outer frames of deeper stacks are only counted */
#define MAX_LEFT_OUT 4000000u /* of these; more are no stack */
#define MAX_HEAD 1024u        /* bytes of a thread state that are read */

/* ---- find_python.c ---- */

struct python_runtime {
	uint64_t runtime;   /* address of _PyRuntime */
	uint64_t code_type; /* of PyCode_Type; 0: unknown */
	struct ts_python_layout layout;
	struct ts_python_info about;
};

/* Finds the runtime of a process. Errors as of ts_python_reader_open(). */
int ts_python_find(struct ts_python_memory *memory, pid_t pid, struct python_runtime *ret_runtime,
		   struct ts_error *err);
/* asyncio's offsets once it is loaded, 3.14 on. */
void ts_python_find_asyncio(struct ts_python_memory *memory, pid_t pid,
			    struct python_runtime *runtime_info);
/* Its name, or "?". */
void ts_python_process_name(pid_t pid, char *buffer, size_t bytes);
/* Whether there are threads at that runtime: 1, 0: not yet, -1: not a runtime. */
int ts_python_probe(struct ts_python_memory *memory, const struct ts_python_layout *layout,
		    uint64_t runtime);

/* ---- access_denied.c ---- */

/* TS_ECAP and the reason, or TS_ENOTFOUND if it has exited. */
int ts_python_access_denied(pid_t pid, struct ts_error *err);

/* ---- python_codes.c ---- */

/* What is at an address that frames name as their code. */
struct python_code_at {
	struct ts_python_code *code; /* NULL: not a code object, or unreadable */
	struct ts_python_code_identity identity;
	uint64_t instructions; /* address */
	uint32_t instruction_bytes;
	uint32_t table_bytes;
	uint8_t *table; /* line table */
	int32_t *
		lines; /* per 2 bytes of instructions; below 0: not looked up yet. NULL: none was */
	uint64_t
		*copies; /* further instruction copies by index, 0: unknown: free-threaded builds */
	uint32_t copy_count;
	int64_t checked_ns;
	uint64_t generation; /* of the codes when last checked */
	bool is_noted;
	bool is_hidden; /* its frames are not shown */
};

struct python_codes {
	struct ts_map at;    /* address -> struct python_code_at * */
	struct ts_map known; /* hash of name, file and line -> struct ts_python_code * */
	struct ts_arena arena;
	struct python_code_at **noted; /* to be checked */
	size_t noted_count, noted_capacity;
	uint8_t *copies; /* of these */
	size_t copies_capacity;
	struct ts_python_memory_range *ranges;
	size_t range_capacity;
	uint64_t generation; /* of all interpreters, 3.14 on: while it is the same, no code was
				destroyed */
	uint32_t next_number;
	uint8_t *scratch; /* for a line table */
};

struct ts_python_reader;
void ts_python_codes_release(struct python_codes *codes);

/* Stands for the outer frames of a stack that is deeper than MAX_DEPTH. NULL: no memory. */
struct ts_python_code *ts_python_code_of_rest(struct ts_python_reader *python);

/* The code at an address; reads it if it is new. NULL: no memory. */
struct python_code_at *ts_python_code_at(struct ts_python_reader *python, uint64_t address);
/* A new frame has this code: schedules it for the next check, unless it was checked recently. */
int ts_python_code_note(struct ts_python_reader *python, struct python_code_at *at, int64_t now_ns);
/*
 * Checks all scheduled codes in one read; those that changed are read again. TS_ENOTFOUND: one is
 * no longer a code object.
 */
int ts_python_codes_check(struct ts_python_reader *python, int64_t now_ns);
/*
 * Whether a frame's instruction can belong to that code; *ret_offset: its byte offset, -1: before
 * the first.
 */
bool ts_python_code_has(struct ts_python_reader *python, struct python_code_at *at,
			const struct ts_python_raw_frame *frame, int64_t *ret_offset);
int32_t ts_python_code_line(const struct ts_python_layout *layout, struct python_code_at *at,
			    int64_t offset);

/* ---- python_stack.c: the frames of one thread ---- */

/* A chunk of the data stack, 3.11 on, with its header. */
struct python_chunk {
	uint64_t address;
	uint32_t size;   /* total */
	uint32_t bytes;  /* predicted to be in use */
	uint32_t copied; /* that are in `copy` */
	uint32_t idle;   /* sweeps in which less was used */
	uint8_t *copy;
	size_t capacity;
};

/*
 * A frame outside the data stack: in a generator, on a native stack, or on the heap (3.8 to 3.10).
 */
struct python_heap_frame {
	uint64_t address;
	uint32_t used; /* the last walk that contained it */
	uint32_t copy; /* offset in heap_copies */
};

/*
 * A call that its call site hardly ever makes: the outermost of a stack that was rejected for it.
 */
struct python_odd_call {
	uint64_t callee, code, site;
	uint32_t sweep;
};

/* A thread's state at the last sweep, and what to read in the next one. */
struct python_stack {
	uint64_t thread;          /* address of the PyThreadState */
	uint8_t head[MAX_HEAD];   /* its copy */
	uint64_t cframe;          /* 3.11, 3.12: address of the word read as `innermost` */
	uint64_t innermost;       /* before the frames */
	uint64_t innermost_after; /* after them, if is_double */
	uint64_t cframe_after;    /* the thread's cframe, after the frames */
	uint64_t base;            /* outermost frame */
	uint64_t lowest;          /* frame of the data stack in this walk; 0: none */
	uint8_t again[1024];      /* the end of the newest chunk, after all frames, if is_double */
	uint64_t again_address;
	uint32_t again_bytes;
	bool is_double;
	bool is_confirmed; /* the last walk found everything that moved twice */
	uint32_t hot;      /* it moved recently, so it is read twice at once; counts down */
	bool is_read;
	size_t first_range, range_count; /* of the last plan */

	struct python_chunk *chunks; /* oldest first */
	size_t chunk_count, chunk_capacity;
	struct python_heap_frame *heap; /* by address */
	size_t heap_count, heap_capacity;
	uint8_t *heap_copies;
	size_t heap_copy_bytes, heap_copy_capacity;
	uint32_t walk;   /* number of it */
	uint32_t forgot; /* the walk at which old heap frames were last dropped */

	struct ts_python_raw_frame *raw, *last; /* now, and accepted last */
	size_t raw_capacity, last_capacity;
	uint32_t depth, last_depth;
	uint32_t left_out;  /* frames outside of those, not stored */
	uint64_t outermost; /* address of the last one of these */
	bool has_last;
	struct python_odd_call odd;
	/* A rejected stack that is accepted if it is seen again immediately. */
	struct ts_python_raw_frame *pending;
	size_t pending_capacity;
	uint32_t pending_depth;
};

/* Result of copying a stack. */
enum python_stack_status {
	STACK_OK,
	STACK_SAME,    /* as in the last sweep */
	STACK_MISSED,  /* the prediction was wrong */
	STACK_INVALID, /* torn, or not a stack */
};

/* Appends what has to be read to the sweep's ranges. */
int ts_python_stack_plan(struct ts_python_reader *python, struct python_stack *stack,
			 bool is_double);
/* Extracts the frames from what was read, into stack->raw. */
enum python_stack_status ts_python_stack_walk(struct ts_python_reader *python,
					      struct python_stack *stack);
/* Finds out what has to be read, step by step. */
int ts_python_stack_discover(struct ts_python_reader *python, struct python_stack *stack);
/* Accepted or not: the current stack is the base of the next comparison. */
void ts_python_stack_settle(struct python_stack *stack, bool is_accepted, bool has_moved);
void ts_python_stack_release(struct python_stack *stack);

/* Among the copies; NULL: none. */
struct python_heap_frame *ts_python_stack_heap_frame(struct python_stack *stack, uint64_t address);
/* Whether any chunk holds it. */
bool ts_python_stack_is_in_chunks(const struct python_stack *stack, uint64_t at);
/* Address of the word that holds the innermost frame. */
uint64_t ts_python_stack_innermost_address(const struct ts_python_reader *python,
					   const struct python_stack *stack);

/* ---- stack_evidence.c: whether it can be believed ---- */

static inline bool ts_python_is_same_frame(const struct ts_python_raw_frame *a,
					   const struct ts_python_raw_frame *b)
{
	return a->address == b->address && a->code == b->code;
}

/*
 * The calls of stack->raw that are new since the last sweep; `still`: unchanged outermost frames.
 */
bool ts_python_stack_is_plausible(struct ts_python_reader *python, struct python_stack *stack,
				  uint32_t still);
/* After acceptance: remembers its calls, if they were seen twice. */
void ts_python_stack_learn(struct ts_python_reader *python, const struct python_stack *stack,
			   uint32_t still);

/* ---- python_threads.c ---- */

struct python_interpreter;

struct python_thread {
	struct python_stack stack;
	uint64_t thread_id, native_id; /* as Python has them */
	pid_t tid;
	char name[128], task[192];
	bool is_main, is_named;
	bool is_absent;       /* of the process that this one was forked from: not shown */
	uint64_t interpreter; /* its address */
	int64_t interpreter_id;
	uint32_t seen; /* number of the sweep */
	enum python_stack_status status;
	bool is_accepted, had_last;
	int64_t read_ns; /* of its stack */
	uint32_t same;
	int kernel_fd; /* -1: not open */
	bool runs;
	int64_t kernel_ns; /* last query of the kernel */
	int64_t ran_ns;    /* when it was last seen running */
	struct ts_python_frame *frames,
		*last_frames; /* of this sweep, and of the last accepted one */
	size_t frame_capacity, last_frame_capacity;
	uint32_t new_depth, depth; /* of both; there is room for one more */
	bool is_cut, was_cut;      /* frames are left out, now and at the last time */
	uint32_t kept;             /* outermost new frames that were taken over */
};

struct python_interpreter {
	uint64_t address, modules, gil;
	int64_t id;
	uint8_t *window;       /* what is read of it: see struct ts_python_reader */
	uint64_t gil_words[4]; /* from its last_holder to `locked` */
	uint64_t generation;
	uint32_t seen;
	size_t first_range, range_count;
};

/* Reads thread names, if some are new or it is time. */
void ts_python_threads_name(struct ts_python_reader *python, int64_t now_ns, bool has_new);
/* Identifies a new thread. `is_last`: in its interpreter's list. */
void ts_python_thread_identify(struct ts_python_reader *python, struct python_thread *thread,
			       bool is_last, int64_t now_ns);
/* Whether it runs, according to the kernel; `has_moved`: its stack says so. */
void ts_python_thread_query_kernel(struct ts_python_reader *python, struct python_thread *thread,
				   bool has_moved, int64_t now_ns);
void ts_python_thread_free(struct python_thread *thread);

/* ---- python_sweep.c ---- */

struct ts_python_reader {
	pid_t pid;
	uint64_t start_time;
	unsigned int flags;
	struct python_runtime runtime_info;
	struct ts_python_memory memory;
	struct ts_python_process_view view;
	struct python_codes codes;
	struct ts_python_reader_counts counts;

	/*
	 * What each sweep reads of the runtime and of each interpreter: from the first needed
	 * member to the last.
	 */
	uint32_t runtime_start, runtime_bytes, window_start, window_bytes, gil_start, gil_bytes;
	uint8_t *runtime_copy;

	struct python_interpreter *interpreters; /* in the order of their list */
	size_t interpreter_count, interpreter_capacity;
	struct python_thread **threads,
		**listed; /* in list order; those of the list being walked */
	size_t thread_count, thread_capacity, listed_count, listed_capacity;
	int64_t listed_ns; /* when all lists were last walked */
	struct ts_python_thread *shown;
	size_t shown_capacity;
	uint32_t number; /* of the sweep */
	int64_t last_sweep_ns;

	struct ts_python_memory_range *ranges; /* of one read */
	size_t range_count, range_capacity;
	size_t *failed; /* indices of those that could not be read */
	size_t failed_count, failed_capacity;

	/* python_stack.c: calls seen, by call site, and by call site and callee; how often */
	struct ts_map sites;
	struct ts_pairmap calls;

	/* python_threads.c */
	pid_t inner_pid;         /* as the process sees itself */
	uint64_t main_thread_id; /* pthread_self() of the main thread; 0: not seen yet */
	bool is_replaced;        /* another main thread: the process has called exec() */
	uint64_t process_stack;  /* ts_process_stack() when it was opened */
	bool is_inside;          /* another pid namespace: its thread ids are not ours */
	uint32_t tid_offset;     /* in libc's thread structure: 3.8 to 3.10; 0: unknown */
	int64_t named_ns, nameless_ns;
	struct ts_map inner_tids; /* its thread id -> ours */
	int64_t inner_tids_ns;
};

void ts_python_sweep_release(struct ts_python_reader *python);
/* Adds a range to the next read. */
int ts_python_add_range(struct ts_python_reader *python, uint64_t address, void *copy,
			size_t bytes);

#endif
