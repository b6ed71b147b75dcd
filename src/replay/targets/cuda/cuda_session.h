/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the target cuda: recorded objects as recreated on this machine, memory at
 * its recorded addresses, commands prepared for submission, and their results.
 *
 *	target_cuda.c         the target's descriptor; a run from first to last command
 *	cuda_library.c        functions of the driver; names of its errors
 *	cuda_details.c        details of objects and commands, as recorded
 *	cuda_machine.c        compares the recorded devices with those of this machine
 *	cuda_host_ranges.c    host memory at its recorded addresses
 *	cuda_replay_spaces.c  arenas; what is mapped in them
 *	cuda_replay_objects.c contexts, streams, events
 *	cuda_images.c         modules, functions and globals
 *	cuda_code_moves.c     addresses of device functions in data
 *	cuda_relocate.c       addresses that the driver chose
 *	cuda_page_hashes.c    pages of all memory, and their hashes
 *	cuda_restore.c        memory as it was when the window opened
 *	cuda_keep.c           copies of memory, to restore it again
 *	cuda_staging.c        bytes from the host
 *	cuda_steps.c          prepares commands
 *	cuda_submit.c         submits one command
 *	cuda_graph_launches.c graphs built from their nodes
 *	cuda_results.c        memory and copied bytes that are compared
 *	cuda_events.c         events of the driver; times of commands
 *	cuda_activity.c       exact times of kernels, from CUPTI
 *	cuda_watch.c          tells a watcher which command runs
 *	cuda_timing.c         one kernel, timed
 */
#ifndef TS_REPLAY_TARGETS_CUDA_CUDA_SESSION_H
#define TS_REPLAY_TARGETS_CUDA_CUDA_SESSION_H

#include "code/cuda/local/cuda_abi.h"
#include "code/cuda/local/driver_release.h"
#include "code/cuda/local/page_kernels.h"
#include "replay/replay.h"

/* ---- cuda_library.c ---- */

/* Opens libcuda.so.1 and starts the driver; TS_ECAP: none, or no device. Missing functions return
 * CUDA_NOT_FOUND. */
int ts_cuda_open(struct cuda_driver_functions *ret_cu, struct ts_error *err);
/* "CUDA_ERROR_ILLEGAL_ADDRESS (700)" */
const char *ts_cuda_error_text(const struct cuda_driver_functions *cu, int code, char *buffer,
			       size_t bytes);
/* TS_ENOMEM or TS_ECAP. */
int ts_cuda_error_code(int code);
/* After such an error all calls fail: an invalid access of a kernel, a lost device. */
bool ts_cuda_is_sticky(int code);

/* ---- cuda_details.c ---- */

/* An id with a number, or with bytes. */
struct ts_cuda_pair {
	uint64_t id, number;
	const uint8_t *bytes; /* NULL: a number */
	uint32_t byte_count;
};

/* A word of a variable that holds the address of a function. */
struct ts_cuda_named {
	uint64_t offset;
	const char *name;
};

/* Details of an object or command; what is missing is 0. */
struct ts_cuda_details {
	uint64_t index, driver, memory, flags, cache, shared, id, nodes;
	uint64_t compute[2], grid[3], block[3];
	uint8_t uuid[16];
	bool has_uuid, pageable, is_primary, is_library, is_cooperative, has_registered;
	uint64_t registered;
	const char *legacy_or_thread; /* "default" */
	const char *from, *what;
	const char *release;    /* of the driver */
	const char *foreign[4]; /* addresses in parameters that are not captured, as text */
	uint32_t foreign_count;
	const struct ts_cuda_named *functions; /* of a global */
	uint32_t function_count;
	struct ts_cuda_pair value; /* of a `set` */
	const struct ts_cuda_pair *limits, *jit, *attributes, *params;
	uint32_t limit_count, jit_count, attribute_count, param_count;
};

/* Allocates from the arena. `json` may be "". */
int ts_cuda_details_parse(struct ts_cuda_details *ret_details, struct ts_arena *arena,
			  const char *json, struct ts_error *err);

/* ---- the session ---- */

/* Page kernels, loaded in a context, with tables in its memory, and a stream for our own work. */
struct ts_cuda_hasher {
	void *stream; /* waits for no other */
	void *module, *hash, *move;
	uint64_t ranges, hashes; /* tables on the device */
	size_t capacity;         /* pages in each */
	uint64_t back, forth;    /* moves to recorded addresses, and to those of this process */
	uint64_t counts;
};

struct ts_cuda_device {
	uint32_t object; /* the recorded one */
	int ordinal;
	void *context; /* its primary context */
	char name[128];
	uint8_t uuid[16];
	uint64_t memory_bytes, cache_bytes;
	int compute[2], driver;
	char release[CUDA_RELEASE_BYTES]; /* of the driver; "": not known */
};

/* A range that is backed by memory. */
struct ts_cuda_range {
	uint64_t offset, bytes;
};
struct ts_cuda_ranges {
	struct ts_cuda_range *items; /* by offset, disjoint */
	size_t count, capacity;
};

struct ts_cuda_mapping {
	uint64_t address, bytes;
	unsigned long long handle;
};

/* A recorded object on this machine. */
struct ts_cuda_object {
	bool is_needed;
	struct ts_cuda_details details; /* device, context, stream, module, function */
	void *handle;                   /* context, stream, module, function; graph: executable */
	uint32_t device; /* index in session->devices: device, context, stream, memory */
	bool is_owned;   /* the handle is destroyed with the session */
	struct ts_cuda_hasher hasher; /* context */
	uint64_t address;             /* memory: in this process */
	/* A space: what the recorded program had mapped by now, and what is mapped here. */
	struct ts_cuda_ranges mapped, backed;
	struct ts_cuda_mapping *mappings;
	size_t mapping_count, mapping_capacity;
	bool is_reserved;
	uint64_t param_bytes; /* function: that it reads */
	void *graph;
};

struct ts_cuda_page {
	uint32_t memory;
	uint32_t context; /* object whose hasher can read it */
	uint64_t offset, bytes;
	uint64_t hash;
	bool is_hashed;
};
struct ts_cuda_pages {
	struct ts_cuda_page *items; /* by memory, offset */
	size_t count, capacity;
};

/* A launch as the driver gets it. */
struct ts_cuda_launch {
	struct cuda_launch_config config;
	void *function;
	void *params;
	size_t param_bytes;
};

/* A command prepared for submission. */
struct ts_cuda_step {
	const struct ts_replay_command_info *command;
	const char *what; /* sync, set */
	void *context;    /* current while it is submitted */
	void *stream;     /* NULL: it has none */
	bool is_skipped;  /* only its place in the order counts, which streams keep */
	uint32_t
		graph_end; /* node: one behind the position of the last node; 0: some are missing */
	const void *host;  /* bytes from the host; NULL with a blob: read when it is submitted */
	void *scratch;     /* copy to pageable memory: where the bytes go; NULL: session->scratch */
	struct ts_cuda_launch *launch;
	const struct ts_cuda_details *details;
	int before; /* set: the value of the function's attribute when the window opened */
	/* State of the current run. */
	uint32_t first_capture, capture_count;
	bool is_in_graph;  /* ran with the launch of its graph */
	void *begin, *end; /* events */
};

/* Copies of pages, to restore them: on the device, or on the host. */
struct ts_cuda_keep {
	bool is_valid;
	uint32_t context; /* object, of the copies on a device */
	uint64_t address; /* on the device; 0: none there */
	char *host;
	struct ts_cuda_pages pages;
	uint64_t *at; /* by page: offset in the copies */
};

struct ts_replay_session {
	struct ts_replay *replay;
	const struct ts_replay_stream *stream;
	const struct ts_replay_plan *plan;
	struct cuda_driver_functions cu;
	struct ts_arena arena;
	char text[256];
	int64_t opened_ns, setup_ns; /* until the first command of the first run */
	uint64_t restored_bytes;     /* for that run */
	bool is_elsewhere;           /* another model or driver than recorded */
	bool has_compiled;           /* the driver compiles PTX of some module */
	char notes[256];             /* what is not as recorded, and may change results; "" */

	struct ts_cuda_device *devices; /* used ones */
	uint32_t device_count;
	struct ts_cuda_object *objects; /* indexed as stream->objects */
	uint32_t *contexts;             /* object indices of needed contexts */
	uint32_t context_count;
	void *current;         /* context of this thread */
	struct ts_map events;  /* number -> handle */
	struct ts_map configs; /* details text -> struct ts_cuda_details */
	bool is_tight;         /* not all memory of the window fits at once: mapped as recorded */
	struct ts_cuda_range *host_maps; /* mmap()ed; offset is the address */
	size_t host_map_count;
	struct ts_cuda_registered {
		uint64_t address, bytes;
		unsigned int flags;
		bool is_done;
	} * registered;
	size_t registered_count, registered_capacity;

	/* Relocation; empty if all addresses are as recorded. */
	struct ts_page_move *forth, *back; /* by `from` */
	uint64_t *moved_words;             /* by forth */
	const char **moved_names;          /* by forth: of the global or function */
	uint32_t move_count;
	char gaps[512];

	struct ts_cuda_pages pages;
	struct ts_cuda_pages initial; /* when the window opens */
	bool pages_stale;             /* memory was mapped or unmapped since they were listed */
	struct ts_cuda_keep keep;     /* of initial pages */

	uint32_t *positions; /* per command of the stream; TS_REPLAY_NONE: not in the plan */
	struct ts_cuda_step *steps;
	struct ts_map staged; /* blob, and how it is aligned -> address */
	char *pinned;         /* the chunk that is filled now */
	uint64_t pinned_used, pinned_bytes, pinned_total, staged_bytes;
	void **pinned_chunks;
	size_t pinned_chunk_count, pinned_chunk_capacity;
	void *scratch; /* pinned: for copies to pageable memory, and of results */
	uint64_t scratch_bytes;

	bool has_activity; /* times of kernels come from CUPTI */
	/* Events that are not in use. */
	void **spare;
	size_t spare_count, spare_capacity;
	/* State of the current run. */
	struct ts_replay_outcome *outcome;
	unsigned int number; /* of the run */
	bool is_serial;      /* one command at a time */
	bool has_pages;      /* a capture of pages after a command was delivered */
	bool knows_pages;    /* the hashes of all pages are those after the last command */
	bool is_pending;     /* commands were submitted since the last wait for all */
	void *epoch;         /* event at the begin of the run */
	int64_t epoch_ns;
	uint32_t oldest;    /* in order of submission: the first step without times */
	uint32_t submitted; /* number of steps submitted; atomic */
	bool is_ending;     /* all are, and are waited for; atomic */
	uint32_t running;   /* 1 + the position of a command that runs alone; 0: none; atomic */
	uint32_t progress;  /* counts commands that ran alone; atomic */
	struct ts_target_watch *watch;
	bool has_failed; /* the driver answers no more */

	/* cuda_timing.c */
	struct {
		uint32_t runs;
		int64_t warm, warm_low, warm_high, cold, cold_low, cold_high;
		char clocks[128];
	} timed;
};

static inline const struct ts_replay_object_info *ts_cuda_info(
	const struct ts_replay_session *session, uint32_t object)
{
	return &session->stream->objects[object];
}

/* The address in this process of a byte of a memory object. */
static inline uint64_t ts_cuda_address(const struct ts_replay_session *session, uint32_t memory,
				       uint64_t offset)
{
	return session->objects[memory].address + offset;
}

static inline bool ts_cuda_is_host(const struct ts_replay_session *session, uint32_t memory)
{
	return ts_cuda_info(session, memory)->flags & TS_REPLAY_HOST;
}

/* Do commands run one at a time in all runs? */
static inline bool ts_cuda_is_serial(const struct ts_replay_session *session)
{
	const struct ts_replay_options *options = &session->replay->options;

	return options->check == TS_REPLAY_CHECK_EACH || options->one_at_a_time;
}

/* Makes a context current; a driver's result. */
int ts_cuda_enter(struct ts_replay_session *session, void *context);

/* Errors of driver calls; `code` is the driver's. */
int ts_cuda_fail(const struct ts_replay_session *session, int code, struct ts_error *err,
		 const char *format, ...) TS_PRINTF_LIKE(4, 5);
/* "kernel 'saxpy', command 17: CUDA_ERROR_INVALID_VALUE (1)" */
int ts_cuda_fail_command(const struct ts_replay_session *session, uint32_t position, int code,
			 struct ts_error *err);
int ts_cuda_fail_object(const struct ts_replay_session *session, uint32_t object, int code,
			struct ts_error *err);

/* ---- making a session, in this order ---- */

int ts_cuda_mark_needed(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_map_host(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_choose_devices(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_reserve_arenas(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_make_contexts(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_map_arenas(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_register_host(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_make_streams(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_load_images(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_make_moves(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_make_hashers(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_make_steps(struct ts_replay_session *session, struct ts_error *err);
int ts_cuda_make_graphs(struct ts_replay_session *session, struct ts_error *err);

/* ... and releasing it; each accepts what was not made. */
void ts_cuda_free_graphs(struct ts_replay_session *session);
void ts_cuda_free_staging(struct ts_replay_session *session);
void ts_cuda_free_hashers(struct ts_replay_session *session);
void ts_cuda_free_images(struct ts_replay_session *session);
void ts_cuda_free_streams(struct ts_replay_session *session);
void ts_cuda_unmap_arenas(struct ts_replay_session *session);
void ts_cuda_free_contexts(struct ts_replay_session *session);
void ts_cuda_unmap_host(struct ts_replay_session *session);

/* Settings (of functions only) that commands of the plan change, as when the window opened. */
int ts_cuda_reset_settings(struct ts_replay_session *session, bool of_functions,
			   struct ts_error *err);
/* Sets a limit of the current context if it differs: some devices refuse any call. */
int ts_cuda_set_limit(struct ts_replay_session *session, int limit, uint64_t value);
bool ts_cuda_sets_function(const struct ts_replay_session *session,
			   const struct ts_cuda_step *step);
/* Of a function, as it was described; a driver's result. */
int ts_cuda_set_function(struct ts_replay_session *session, uint32_t function);
bool ts_cuda_is_function_attribute(uint64_t id); /* that can be set */
/* Unless it has this value: what the code says itself cannot be set. */
int ts_cuda_set_function_attribute(struct ts_replay_session *session, uint32_t function, int id,
				   int value);
/* Sets an attribute of a stream; a driver's result. */
int ts_cuda_set_stream(struct ts_replay_session *session, uint32_t stream,
		       const struct ts_cuda_pair *attribute);

/* ---- cuda_machine.c ---- */

/* Adds to what is not as recorded. */
void ts_cuda_note(struct ts_replay_session *session, const char *format, ...) TS_PRINTF_LIKE(2, 3);
/* Bytes that can still be allocated on the device of the current context. */
uint64_t ts_cuda_free_bytes(struct ts_replay_session *session);

/* ---- cuda_replay_spaces.c ---- */

/* Maps the ranges that are mapped when the window opens, and no others. */
int ts_cuda_reset_spaces(struct ts_replay_session *session, struct ts_error *err);
/* alloc and free of a range; the memory of an alloc is zeros. */
int ts_cuda_alloc_range(struct ts_replay_session *session, uint32_t memory, uint64_t offset,
			uint64_t bytes, struct ts_error *err);
int ts_cuda_free_range(struct ts_replay_session *session, uint32_t memory, uint64_t offset,
		       uint64_t bytes, struct ts_error *err);
/* The part of [offset, offset + bytes) from its begin on that is mapped, or is not. */
uint64_t ts_cuda_mapped_part(const struct ts_replay_session *session, uint32_t memory,
			     uint64_t offset, uint64_t bytes, bool *ret_is_mapped);

int ts_cuda_ranges_add(struct ts_cuda_ranges *ranges, uint64_t offset, uint64_t bytes);
int ts_cuda_ranges_remove(struct ts_cuda_ranges *ranges, uint64_t offset, uint64_t bytes);

/* ---- cuda_code_moves.c ---- */

/* Where device functions of a module are, if words of its variables say so. */
bool ts_cuda_find_code_move(struct ts_replay_session *session, uint32_t module,
			    struct ts_page_move *ret_move, const char **ret_name);

/* ---- cuda_relocate.c ---- */

/* Moves words of bytes that lie, or will lie, at an address, to this process; counts them. */
void ts_cuda_move_forth(struct ts_replay_session *session, void *data, uint64_t bytes,
			uint64_t address);
/* Moves words back to recorded addresses. */
void ts_cuda_move_back(const struct ts_replay_session *session, void *data, uint64_t bytes,
		       uint64_t address);
void ts_cuda_report_moves(const struct ts_replay_session *session, struct ts_replay_report *report);

/* ---- cuda_page_hashes.c ---- */

/* Lists the pages that are mapped now; keeps the hashes of those that were before. */
int ts_cuda_list_pages(struct ts_replay_session *session, struct ts_error *err);
/*
 * Hashes all pages, or those of some ranges of memory. `changed` (NULL: not wanted) is set by page:
 * its hash is another one than before, or it had none.
 */
int ts_cuda_hash_pages(struct ts_replay_session *session, const struct ts_replay_range *ranges,
		       uint32_t range_count, bool *changed, struct ts_error *err);
/* Moves the words of pages of a device to this process, and counts them. */
int ts_cuda_move_pages(struct ts_replay_session *session, const struct ts_cuda_page *pages,
		       size_t count, struct ts_error *err);
/* A context (object) whose kernels and streams reach the memory. */
uint32_t ts_cuda_context_of(const struct ts_replay_session *session, uint32_t memory);
/* Makes it current, and returns its stream for our own work. */
int ts_cuda_enter_for(struct ts_replay_session *session, uint32_t memory, void **ret_stream);

/* ---- cuda_restore.c, cuda_keep.c ---- */

/* Everything as it was when the window opened. */
int ts_cuda_restore(struct ts_replay_session *session, struct ts_error *err);

/* Copies all pages that are listed; false: there is no room. */
bool ts_cuda_keep_pages(struct ts_replay_session *session, struct ts_cuda_keep *keep);
/*
 * Writes those of `wanted` (by page of session->pages, which are a part of those kept), and waits.
 */
int ts_cuda_put_pages(struct ts_replay_session *session, const struct ts_cuda_keep *keep,
		      const bool *wanted, struct ts_error *err);
void ts_cuda_keep_release(struct ts_replay_session *session, struct ts_cuda_keep *keep);

/* ---- cuda_staging.c ---- */

/*
 * The blob's bytes, moved to this process as bytes for `address`; valid until the session ends.
 * *ret_data is NULL if there are too many.
 */
int ts_cuda_stage(struct ts_replay_session *session, const struct ts_replay_blob_ref *blob,
		  uint64_t address, const void **ret_data, struct ts_error *err);
/* Half of this machine's memory. */
uint64_t ts_cuda_host_bytes(void);
/* Pinned memory until the session ends; NULL: none, use other memory. */
void *ts_cuda_pinned(struct ts_replay_session *session, uint64_t bytes);
/* Pinned memory of at least that size, shared by all that need it for a moment. */
int ts_cuda_need_scratch(struct ts_replay_session *session, uint64_t bytes, struct ts_error *err);

/* ---- cuda_submit.c ---- */

int ts_cuda_submit(struct ts_replay_session *session, uint32_t position, struct ts_error *err);
/* What a `set` sets; a driver's result. */
int ts_cuda_apply_setting(struct ts_replay_session *session, const struct ts_cuda_step *step);
/* Launches a kernel; a driver's result. */
int ts_cuda_launch(struct ts_replay_session *session, const struct ts_cuda_step *step);
/* Waits for all contexts; the error names `position`, or what was not complete. */
int ts_cuda_wait_all(struct ts_replay_session *session, uint32_t position, struct ts_error *err);
/* Copies of rectangles as the driver gets them; one per slice of some. */
void ts_cuda_describe_rect(const struct ts_replay_session *session, const struct ts_cuda_step *step,
			   struct cuda_copy_3d *copy);
/* The value of a fill, and its size. */
uint32_t ts_cuda_pattern(const struct ts_cuda_step *step, uint32_t *ret_bytes);

/* ---- cuda_results.c ---- */

/* After a command: what is captured there. */
int ts_cuda_capture_after(struct ts_replay_session *session, uint32_t position,
			  struct ts_error *err);
/* At the end: copies to the host that are not delivered yet, then captures of the end. */
int ts_cuda_capture_end(struct ts_replay_session *session, struct ts_error *err);

/* ---- cuda_events.c ---- */

/*
 * An event with times, from the spare ones; NULL: none. They belong to the first context: commands
 * of others have no times.
 */
void *ts_cuda_take_event(struct ts_replay_session *session, const void *context);
void ts_cuda_spare_event(struct ts_replay_session *session, void *event);
int ts_cuda_begin_times(struct ts_replay_session *session, struct ts_error *err);
/* Reads the times of steps that are complete; `all`: they all are. */
int ts_cuda_read_times(struct ts_replay_session *session, uint32_t end, bool all,
		       struct ts_error *err);
void ts_cuda_drop_events(struct ts_replay_session *session);
void ts_cuda_free_events(struct ts_replay_session *session);

/* ---- cuda_activity.c: nothing happens without CUPTI ---- */

/* Before there are contexts. */
void ts_cuda_activity_open(struct ts_replay_session *session);
void ts_cuda_activity_close(struct ts_replay_session *session);
/* Around the commands of a run: sets the times of kernels. */
void ts_cuda_activity_begin(struct ts_replay_session *session);
void ts_cuda_activity_times(struct ts_replay_session *session);
/* The kernel that ended last; false: unknown, or not that of the position. */
bool ts_cuda_activity_last(struct ts_replay_session *session, uint32_t position, int64_t *ret_ns);
/* Forgets all kernels since a mark. */
size_t ts_cuda_activity_mark(struct ts_replay_session *session);
void ts_cuda_activity_forget(struct ts_replay_session *session, size_t mark);

/* ---- cuda_watch.c ---- */

int ts_cuda_watch_start(struct ts_replay_session *session, struct ts_error *err);

/* ---- cuda_timing.c ---- */

/* The position of the kernel that is timed; TS_REPLAY_NONE. */
uint32_t ts_cuda_timed_position(const struct ts_replay_session *session);
/* Times it, when everything before it has run; it has not run afterwards. */
int ts_cuda_time_kernel(struct ts_replay_session *session, uint32_t position, struct ts_error *err);

#endif
