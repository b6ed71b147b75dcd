/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that capture a command stream of CUDA calls (docs/cuda-replay.md). Active
 * only with `record --replayable`. Runs inside the program: libc and the agent's public headers
 * only.
 *
 * Every call that is not harmless goes through cuda_capture_call() (cuda_dispatch.c), which passes
 * the gate (ts_replay_enter()), where windows open and close, and runs the call's handler. A
 * handler makes the driver's call itself, with cuda_invoke(), and appends to the stream. Outside of
 * windows, calls that matter only in one pass the gate in their wrapper (cuda_passes()).
 *
 * Order of locks: the gate (shared by calls, exclusive to open or close a window); `capture_lock`,
 * held across the driver's call and the append inside windows; the registries' own locks; the
 * channel (ts_replay_lock()). All driver calls of our own are made with cuda_thread.is_ours set, by
 * the functions of `cu` (cuda_driver_functions.c).
 */
#ifndef TS_BACKENDS_CUDA_STREAM_CUDA_CAPTURE_H
#define TS_BACKENDS_CUDA_STREAM_CUDA_CAPTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/replay.h>
#include <tracesmith/schema.h>

#include "backends/cuda/calls/cuda_calls.h"
#include "base/local/stream_text.h"
#include "code/cuda/local/cuda_abi.h"

/* ---- cuda_dispatch.c: from cuda_capture_call() of cuda_calls.h to handlers ---- */

/*
 * The real function with these arguments: CUDA_ARGUMENTS_AT_MOST words, of which it takes as many
 * as it has.
 */
int cuda_invoke(struct cuda_call *call, const uintptr_t *args);

/*
 * Makes the driver's call, by cuda_invoke(), with arguments that it may change, or answers instead.
 * Without CAPTURE_ALWAYS or CAPTURE_IN_GRAPHS it runs only in open windows. It takes capture_lock
 * itself.
 */
typedef int (*cuda_handler)(struct cuda_call *call, uintptr_t *args);
#define CAPTURE_ALWAYS 1u    /* the handler runs outside of windows, too: it keeps a registry */
#define CAPTURE_UNGATED 2u   /* the call may block (synchronization): it does not hold the gate */
#define CAPTURE_IN_GRAPHS 4u /* the handler also runs while any stream is captured */
/*
 * A captured function without a handler is refused; one that is ANSWERED in cuda_calls.def goes to
 * the driver.
 */
struct cuda_handler_entry {
	const char *name; /* without _v2, _ptsz ...: the base name; see capture_base_name() */
	cuda_handler run;
	unsigned int flags; /* CAPTURE_* */
};
/* Handlers, by file; each ends with a NULL name. */
extern const struct cuda_handler_entry capture_memory_handlers[];
extern const struct cuda_handler_entry capture_host_handlers[];     /* cuda_host_memory.c */
extern const struct cuda_handler_entry capture_module_handlers[];   /* cuda_modules.c */
extern const struct cuda_handler_entry capture_function_handlers[]; /* cuda_functions.c */
extern const struct cuda_handler_entry capture_global_handlers[];   /* cuda_globals.c */
extern const struct cuda_handler_entry capture_launch_handlers[];   /* cuda_launch.c */
extern const struct cuda_handler_entry capture_graph_handlers[];    /* cuda_graphs.c */
extern const struct cuda_handler_entry capture_copy_handlers[];     /* cuda_copies.c */
extern const struct cuda_handler_entry capture_object_handlers[];   /* cuda_objects.c */
extern const struct cuda_handler_entry capture_order_handlers[];    /* cuda_order.c */
extern const struct cuda_handler_entry capture_setting_handlers[];  /* cuda_settings.c */
extern const struct cuda_handler_entry capture_refused_handlers[];  /* cuda_refused.c */

/* The length of a name without _v2, _ptsz, _ptds. */
size_t capture_base_name(const char *name);
void capture_dispatch_start(void);
/* Does the function use the per-thread default stream for stream 0 (_ptsz, _ptds)? */
bool capture_is_per_thread(const struct cuda_call *call);

/* ---- cuda_driver_functions.c: the driver's functions, for our own use ---- */

/*
 * Each is the real function, wrapped so that is_ours is set meanwhile; returns CUDA_ERROR_NOT_FOUND
 * (500) if the driver lacks it. Prototypes are in cuda_abi.h: cu.MemCreate(&handle, ...).
 */
extern struct cuda_driver_functions cu;

/* ---- cuda_gate.c: windows ---- */

void capture_start(void);  /* from cuda_backend.c */
void capture_begin(void);  /* the first call that matters */
void capture_forked(void); /* in a child that cannot use CUDA */
void capture_stop(void);   /* at exit, while the driver responds: closes the window */

/*
 * Is a window open? May end at any time by failing; begins only with the gate held exclusively, and
 * calls that hold no gate must not append what happened before.
 */
bool capture_is_open(void);
bool capture_is_checked(void); /* =checked */
/*
 * Fails the open window, or the one that is opening on this thread, with a reason that begins with
 * what was refused. Without one it does nothing. May be called with capture_lock held.
 */
void capture_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Fails it, and no window can open any more: for what cannot be undone. The first reason stays. */
void capture_prevent(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Held by handlers across the driver's call and the append, in open windows. Recursive. */
void capture_lock(void);
void capture_unlock(void);

/*
 * Append. The lock is held where the order to the driver's calls matters. 0: the window is not open
 * (any more). Objects and blobs may be appended while it opens, too. A launch, copy or fill in a
 * queue gets the correlation id of the calling thread's last call into the driver.
 */
static inline struct ts_replay_command capture_row(uint32_t kind)
{
	return (struct ts_replay_command){ .size = sizeof(struct ts_replay_command),
					   .kind = kind,
					   .offset = TS_UNKNOWN,
					   .other_offset = TS_UNKNOWN,
					   .bytes = TS_UNKNOWN };
}
uint64_t capture_command(const struct ts_replay_command *row);
/* The same with a blob of our own bytes, whose number, with the correlation, goes into the row. */
uint64_t capture_command_with(struct ts_replay_command *row, const void *data, uint64_t bytes);
void capture_object(const struct ts_replay_object *object);
void capture_gone(uint64_t number);
uint64_t capture_blob(const void *data, uint64_t bytes);
uint64_t capture_last_sequence(void);
/* After each command that may have changed memory: the check of =checked. */
void capture_check_each(uint64_t sequence);

/* ---- cuda_objects.c: devices, contexts, streams ---- */

struct capture_device {
	int ordinal;
	uint64_t number; /* of the object; 0: not described in this window */
	uint64_t arena;  /* address; 0: none */
	uint64_t arena_bytes;
	uint64_t arena_number; /* of the memory object */
	char name[96];
	bool is_opened; /* arena_open() was tried */
};
/* Contexts are never freed: one that is gone stays in the list. */
struct capture_context {
	struct capture_context *next;
	void *handle;
	struct capture_device *device;
	bool is_primary;
	unsigned int flags;
	uint64_t number;
	bool is_gone;
	uint32_t limits;           /* those that the program has set: bits by CUlimit */
	int cache;                 /* cuCtxSetCacheConfig; 0 */
	_Atomic uint32_t attached; /* by cuCtxAttach: users besides the first */
};
/*
 * The calling thread's; NULL: none is current. Registers it: the first time, its device's arena is
 * opened (arena_open()).
 */
struct capture_context *capture_context_current(void);
struct capture_context *capture_context_next(struct capture_context *after); /* NULL: the first */
struct capture_device *capture_device_of(int ordinal);
void capture_context_destroyed(void *handle);
/* Makes a context current for our own calls; returns false if that fails. */
bool capture_context_push(struct capture_context *context);
void capture_context_pop(void);
/* cuda_arena.c: all blocks of a context that was destroyed, or reset, are gone. */
void capture_memory_context_gone(struct capture_context *context);

/* A stream that the program has used, or the default ones. */
struct capture_stream {
	struct capture_stream *next;
	uintptr_t handle; /* CUDA_STREAM_LEGACY, CUDA_STREAM_PER_THREAD, or the driver's */
	uint64_t thread;  /* of a per-thread one; else 0 */
	struct capture_context *context;
	unsigned int flags;
	int priority;
	uint64_t number; /* of the object; 0 */
	bool is_gone;
};
/* The stream that this call means by `stream`; NULL: no context is current, or it is none. */
struct capture_stream *capture_stream_of(const struct cuda_call *call, uintptr_t handle);
struct capture_stream *capture_stream_next(struct capture_stream *after);
/*
 * Is all work in it complete? False also if the driver cannot tell: the stream is gone, or a
 * per-thread one of another thread.
 */
bool capture_stream_is_idle(const struct capture_stream *stream);
/* Waits for it, or for its context if the driver cannot wait for it alone. */
void capture_stream_finish(const struct capture_stream *stream);
/*
 * Numbers of objects, described on first use in a window; capture_lock is held.
 * capture_stream_number(): 0 and 1 are the legacy stream, 2 the calling thread's.
 */
uint64_t capture_device_number(struct capture_device *device);
uint64_t capture_context_number(struct capture_context *context);
uint64_t capture_stream_number(const struct cuda_call *call, uintptr_t handle);
uint64_t capture_stream_describe(struct capture_stream *stream);
/* Forgets all numbers of a window; called when one opens. */
void capture_objects_forget(void);
void capture_objects_describe(void); /* all, when one opens */
/*
 * Waits until all streams are idle, then synchronizes all contexts; false: not by then, and `why`
 * names the stream.
 */
bool capture_contexts_finish(int64_t deadline_ns, char *why, size_t bytes);
/*
 * Once, before any window: dladdr() takes the dynamic linker's lock, which a library that calls
 * CUDA while it is loaded holds, and it may be waiting at the gate.
 */
void capture_find_release(void);
/*
 * During stream captures: waits for the streams of a context, which is current, that are not
 * captured, as far as the driver lets this thread. A result of the driver.
 */
int capture_context_finish_streams(const struct capture_context *context);
/* Is a stream capture in progress in any stream? In this one? */
bool capture_any_capturing(void);
bool capture_is_capturing(uintptr_t stream);
/* The same for the stream of a call, where 0 may be the default stream of the thread. */
bool capture_is_captured(const struct cuda_call *call, uintptr_t stream);

/* ---- cuda_arena.c: device memory at fixed addresses ---- */

/* A mapped range of the arena, in steps of 2 MiB. */
struct arena_mapping {
	uint64_t address, bytes;
};
#define ARENA_PAGE ((uint64_t)2 << 20)
/* Reserves; false: no base is free, or the device has no virtual memory management. */
bool arena_open(struct capture_device *device);
bool arena_contains(uint64_t address); /* inside a reservation, mapped or not */
/* Ranges that are mapped now, by address; mappings of the program (cuMemMap) included. */
size_t arena_mappings(const struct capture_device *device, struct arena_mapping **ret_mappings);
uint64_t arena_mapped_bytes(const struct capture_device *device);
/* The device object of an address in an arena; NULL. */
struct capture_device *arena_device(uint64_t address);

/* ---- cuda_spaces.c ---- */

/*
 * The object (number) and offset of an address that a command names, described on first use:
 * arena, global or host memory that is pinned or registered. False: none of these (pageable host
 * memory, or memory of the driver). capture_lock is held.
 */
bool capture_locate(uint64_t address, uint64_t bytes, uint64_t *ret_object, int64_t *ret_offset);
/* Emits alloc and free of a sparse object, if a window is open. */
void capture_mapped(struct capture_device *device, uint64_t address, uint64_t bytes);
void capture_unmapped(struct capture_device *device, uint64_t address, uint64_t bytes);
void capture_memory_describe(void); /* all spaces and what is mapped, when a window opens */
void capture_memory_forget(void);
/*
 * cuda_pools.c: before the host waits for a stream or a context, the frees so far (0: none of
 * interest), which are complete when it has waited: then pools give back what exceeds their release
 * thresholds. The gate is not held. `stream` NULL: for all of the context.
 */
uint64_t pools_frees(void);
void pools_host_waited(const struct capture_stream *stream, const struct capture_context *context,
		       uint64_t frees);
/*
 * cuda_pools.c: memory that was allocated while a graph was captured, or by its nodes, stays as
 * long as the graph or an executable. `to` was made of `from`; a graph or executable is destroyed.
 */
void graph_blocks_copy(const void *from, const void *to);
void graph_blocks_end(const void *handle);

/* ---- cuda_host_memory.c, cuda_host_changes.c: host memory that the device can read ---- */

/* Does [address, address + bytes) lie in pinned or registered memory? */
bool host_contains(uint64_t address, uint64_t bytes);
uint64_t host_space_number(void); /* described on first use */
/* Ranges: registered ones with their flags. */
struct host_range {
	uint64_t address, bytes;
	unsigned int flags;
	bool is_registered; /* by the program; else from our range */
};
size_t host_ranges(struct host_range **ret_ranges);
void host_memory_describe(void); /* the host space, with what is mapped; when a window opens */
/* Words that may be pointers to host memory: in parameters, copied bytes, restored memory. */
void host_look_for_pointers(const void *data, uint64_t bytes);
/* Do kernels know the range with the address, so that they may write it? */
bool host_is_visible(uint64_t address);
/* Before a launch: pages of visible ranges that the host changed become host_write. */
void host_emit_changes(void);
/* A copy to the host was enqueued; it is complete when `stream` or an event after it is. */
void host_copy_pending(uint64_t address, uint64_t bytes, struct capture_stream *stream);
/* Waits for pending copies to any of these bytes; capture_lock is not held. */
void host_wait_for_copies(uint64_t address, uint64_t bytes);
/* The program waited for something: pending copies that are done count as known contents. */
void host_synchronized(void);
void host_window_opens(void);
/* The device has a pointer to it. */
void host_make_visible(uint64_t address);

/* ---- cuda_modules.c: code and globals ---- */

struct capture_module;
struct capture_function {
	void *handle; /* CUfunction or CUkernel: the first that was seen */
	bool is_kernel;
	struct capture_module *module;
	const char *name;
	uint32_t param_count, param_bytes; /* UINT32_MAX: not known yet */
	const uint16_t *param_offsets, *param_sizes;
	const char *refused; /* why it cannot be replayed; NULL */
	uint64_t number;
	struct capture_function *next; /* of the module */
	int cache;                     /* cuFuncSetCacheConfig; 0 */
	struct capture_seen *seen;     /* parameters of the last launch; capture_lock */
};
/* NULL: it was not registered, or was unloaded. Any thread, without a lock. */
struct capture_function *capture_function_known(void *handle);
/* NULL: unknown; the window has failed with that. Described (with its module) on first use. */
struct capture_function *capture_function_of(void *handle);
uint64_t capture_function_number(struct capture_function *function);
/* One that a program can set, and that a replay sets (CUfunction_attribute). */
bool capture_is_function_attribute(int id);
struct capture_global {
	uint64_t address, bytes;
	uint64_t number;
	const char *name;
	struct capture_module *module;
};
/* The global that contains the address; NULL. */
struct capture_global *capture_global_at(uint64_t address);
uint64_t capture_global_number(struct capture_global *global); /* described on first use */
/* When a window opens: finds, describes and lists all globals of modules in use. */
void capture_globals_find(void);
size_t capture_globals(struct capture_global ***ret_globals); /* borrowed */
/* A reason if a loaded module makes windows impossible (managed variables); NULL. */
const char *capture_modules_refused(void);
void capture_modules_forget(void);
/* Its modules and variables are gone. */
void capture_modules_context_gone(const struct capture_context *context);

/* ---- cuda_launch.c ---- */

/*
 * Appends the details of a launch: grid, block, shared memory, attributes; false: the window has
 * failed, as one of them is not captured.
 */
bool capture_launch_details(struct stream_text *text, const struct cuda_launch_config *config,
			    bool is_cooperative);
/*
 * Packs parameters into `block`; padding is zeros. capture_lock is held. False: they are not known.
 */
bool capture_pack(struct capture_function *function, void **params, void **extra, void *block,
		  size_t most, uint32_t *ret_bytes);
/*
 * The details of a launch, with words of the parameters that point to memory of the driver
 * (`foreign`); the same if there are none. capture_lock is held, and keeps the result.
 */
const char *capture_foreign(const char *details, const void *block, uint32_t bytes);
/* Host memory came or went, or variables went: all parameters are looked at again. Any thread. */
void capture_addresses_changed(void);
/* Notes that a kernel is launched in a stream capture, or is in a graph: its module is in use. */
void capture_function_used(struct capture_function *function);
/* The same kernel in that context, because a library has one in each; NULL: no memory. */
struct capture_function *capture_function_in(struct capture_function *function,
					     struct capture_context *context);

/* ---- cuda_order.c: events ---- */

uint64_t capture_event_number(void *handle);
void capture_event_recorded(void *handle); /* by a node of a graph that was launched */
/* By a launch in that queue: an attribute names the event. capture_lock is held. */
void capture_event_of_launch(const struct cuda_call *call, void *handle, uint64_t queue);
void capture_order_forget(void);

/* ---- cuda_copies.c: nodes of graphs ---- */

/*
 * Fill in the row, but not its queue, and the details, which are begun. False: the window failed.
 * A copy from memory that is not pinned has its bytes as they are now: *ret_bytes, which the caller
 * frees; else NULL.
 */
bool capture_copy_node(const struct cuda_copy_3d *given, struct ts_replay_command *row,
		       struct stream_text *text, unsigned char **ret_bytes);
bool capture_fill_node(const struct cuda_fill_node *given, struct ts_replay_command *row,
		       struct stream_text *text);
/* Are the bytes that it would copy now others? */
bool capture_copy_node_differs(const struct cuda_copy_3d *given, const unsigned char *bytes);
/* Does it write bytes that `next` reads? */
bool capture_copy_node_feeds(const struct cuda_copy_3d *given, const struct cuda_copy_3d *next);
/* A launch runs this copy, this fill: see host_copy_pending(). */
void capture_copy_node_pending(const struct cuda_copy_3d *given, struct capture_stream *stream);
void capture_fill_node_pending(const struct cuda_fill_node *given, struct capture_stream *stream);

/* ---- cuda_graphs.c ---- */

void capture_graphs_forget(void); /* when a window opens */

/* ---- cuda_settings.c ---- */

/* `"attributes": [[id, "hexadecimal bytes"], ..]` of a stream, for its description. */
void capture_stream_settings_describe(const struct capture_stream *stream,
				      struct stream_text *text);
/* Bytes, at most 64, as hexadecimal digits; without a key: an element. */
void capture_text_bytes(struct stream_text *text, const char *key, const void *data, size_t bytes);

/* ---- cuda_refused.c ---- */

/* Handlers of all functions that are REFUSED, or MAKE or END a state. */
int capture_refused_call(struct cuda_call *call, uintptr_t *args);
int capture_state_call(struct cuda_call *call, uintptr_t *args);
/* cuMemFree and its like succeeded for an address that is not ours. */
void capture_managed_freed(uint64_t address);
/* What was called before the window opened does not count; NULL, or what was called since. */
void capture_refused_begin(void);
const char *capture_refused_used(char *buffer, size_t bytes);
void capture_refused_forget(void); /* the last context is gone */

/* A reason why no window can open: live state that is not captured; NULL. */
const char *capture_refused_state(char *buffer, size_t bytes);

/* ---- cuda_snapshot.c ---- */

/*
 * The gate is closed and the devices are idle. NULL, or why it failed (in `why`). *ret_pieces:
 * UINT64_MAX if not known yet; capture_pieces() says it before the window closes.
 */
const char *capture_snapshot(char *why, size_t bytes, uint64_t *ret_bytes, uint64_t *ret_pieces);
void capture_pieces(uint64_t count); /* cuda_gate.c */
/* OPEN was written, the gate is still closed: pieces (check rows) may follow from now on. */
void capture_snapshot_opened(void);

/* ---- cuda_page_checks.c ---- */

struct page_list;
void capture_checks_begin(struct page_list *opened); /* takes the hashes of the snapshot */
void capture_checks_end(void);
void capture_final_checks(void);

/* ---- cuda_snapshot.c, in the window ---- */

/*
 * A piece of the snapshot that is taken inside the window, of memory that no command has used yet;
 * capture_lock is held.
 */
void capture_piece(uint64_t object, int64_t offset, const void *data, uint64_t bytes);
/* Waits until all pieces are stored; at CLOSE. */
void capture_snapshot_finish(void);
/* The window is closed or has failed: what is left of the snapshot is not needed. */
void capture_snapshot_ended(void);

#endif
