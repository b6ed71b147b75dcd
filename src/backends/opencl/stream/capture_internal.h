/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the command stream share (docs/replay.md, 3.3 and 4). Not for other files;
 * hooks include capture_stream.h.
 *
 *	capture_stream.c     when a window opens, closes, fails
 *	capture_objects.c    the registry of live objects: devices, contexts, queues, user events
 *	capture_buffers.c    memory as an object: buffers and SVM
 *	capture_programs.c   modules and functions
 *	capture_arguments.c  kernel arguments: values, kinds, and their capture at a launch
 *	capture_signatures.c parameters of a module's functions, from a cache or a private build
 *	capture_events.c     numbers of events
 *	capture_commands.c   a command before and after the driver's call
 *	capture_details.c    row and details of a command, by its verb
 *	capture_foreign.c    the program's memory, which may be gone: copied, hashed, stored
 *	capture_memory.c     the host side: incomplete reads, mapped regions
 *	capture_areas.c      memory that the host writes without a call: its bytes and hashes
 *	capture_pages.c      what the host, and commands, wrote to it
 *	capture_rect.c       rectangles of memory
 *	capture_rect_commands.c  commands that copy them
 *	capture_images.c     images and samplers
 *	capture_image_commands.c  commands of images
 *	capture_snapshot.c   memory read back: when a window begins, and for checks
 *	capture_checks.c     checks; those of the end of a window
 *	capture_each.c       checks of each command (capture_each.h)
 *	capture_behind.c     reads behind commands, which are pending
 *	capture_staging.c    copies inside the device, many of which are read at once
 *	capture_loss.c       counts of what the stream lacks
 *
 * Locks of the stream come after those of opencl_internal.h. Each is held briefly, and taken in
 * this order: `each_lock` (capture_each.h) or `host` (capture_memory.c); events are queried under
 * both, and reads enqueued under the first. Then the registry, SVM or events (nothing is called
 * under these), then the channel. The last is `reader_lock` (capture_snapshot.c), under which only
 * the driver is called.
 */
#ifndef TS_BACKENDS_OPENCL_STREAM_CAPTURE_INTERNAL_H
#define TS_BACKENDS_OPENCL_STREAM_CAPTURE_INTERNAL_H

#include <stdatomic.h>

#include <tracesmith/schema.h>

#include "backends/opencl/opencl_internal.h"
#include "base/local/stream_text.h"

/* Events in one record: with 20 digits each they leave space for other keys of the details. */
#define STREAM_WAITS 300u

/* ---- objects ---- */

/* A command that writes memory which the program sees, too. */
struct stream_writer {
	struct stream_writer *next;
	cl_event event;         /* held */
	uint64_t offset, bytes; /* in the root */
};

struct stream_device {
	uint32_t index;          /* as in gpu_op */
	bool is_cpu, is_unified; /* unified: its memory is the host's */
	char name[128], platform[128], vendor[128], version[128], driver[64];
	const char *type;
};

struct stream_context {
	struct ocl_stream **devices; /* held */
	uint32_t device_count;
	cl_command_queue reader; /* private, while memory is read back; else NULL */
	cl_mem staging;          /* for memory that the host cannot read; NULL: none */
};

struct stream_queue {
	struct ocl_stream *device; /* held; NULL: unknown */
	uint32_t index;            /* as in gpu_op */
	bool out_of_order;
	int64_t priority;               /* TS_UNKNOWN: none */
	cl_event marker;                /* while a window opens or closes; else NULL */
	struct stream_staging *staging; /* of capture_staging.c, under its lock; or NULL */
};

/* x in bytes. */
struct stream_rect {
	size_t region[3];
	size_t origin[3], row, slice;
};

/* Its content is packed, unless it is a 2D view of a buffer. */
struct stream_image {
	cl_mem_object_type type;
	cl_image_format format;
	size_t size[3];             /* pixels; layers of an array are its last size */
	size_t element, row, slice; /* bytes */
	struct stream_rect host;    /* USE_HOST_PTR, COPY_HOST_PTR */
};

struct stream_sampler {
	cl_bool normalized;
	cl_addressing_mode addressing;
	cl_filter_mode filter;
};

/*
 * Memory that the program may write without a call: that of USE_HOST_PTR, or a mapped region. The
 * hashes are those of the bytes as commands, or the host after commands, saw them last; 0: not
 * known.
 */
struct stream_area {
	const unsigned char *host;
	uint64_t offset, bytes; /* in the root; see stream_area_span() */
	uint64_t *pages;        /* inside windows; else NULL */
	uint64_t *chunks;       /* as above; of many pages each */
	bool is_gone;           /* found missing, and reported */
	/*
	 * Pixels: the number of their image, or 0; its size; its side and the host's. `bytes` are
	 * those of the packed rectangle, `offset` is where the image begins; one hash covers all.
	 */
	uint64_t image, image_bytes;
	struct stream_rect rect, host_rect;
};

/* A mapped region of memory. */
struct stream_region {
	struct stream_region *next;
	struct stream_area area;
	cl_map_flags flags;
	cl_event event; /* held; NULL: it was complete */
};

struct stream_memory {
	uint64_t bytes;
	uint64_t origin; /* of a view: offset in its root, which is the parent */
	bool is_view, is_svm;
	cl_mem_flags flags;
	struct stream_image *image; /* NULL: not an image */
	_Atomic uint64_t written;   /* the last window in which a command may have written it */
	_Atomic uint64_t writes;    /* how often one may have, or the host */
	_Atomic uint32_t mapped_writing; /* regions that are mapped for writing */
	/* The rest is guarded by the host lock. */
	struct stream_region *regions;
	struct stream_area area;       /* USE_HOST_PTR; else its `host` is NULL */
	struct stream_writer *writers; /* commands that write it and may be incomplete */
	struct ocl_stream *next_written;
	bool is_listed; /* in the list of memory with writers */
	/*
	 * Of capture_each.h, under its lock: reads of it that are pending, and their queue (its
	 * number; 0: several, or one that is out of order).
	 */
	uint32_t reads_behind;
	uint64_t reading_queue;
	/* Also: the last check of all of it, and `writes` then. */
	uint64_t checked_hash, checked_writes;
};

struct stream_binary {
	struct ocl_stream *device; /* held */
	unsigned char *data;
	size_t bytes;
};

enum stream_build { STREAM_UNBUILT, STREAM_GIVEN, STREAM_BUILT, STREAM_COMPILED, STREAM_FAILED };

/* An argument as the driver describes it. Long texts are truncated. */
struct stream_parameter {
	uint8_t kind; /* enum stream_argument_kind */
	char name[48], type[48];
};

/* The arguments of a function. */
struct stream_signature {
	struct stream_signature *next;
	char *name; /* owned */
	uint32_t count;
	struct stream_parameter parameters[];
};

struct stream_module {
	const char *from; /* source, binary, linked, ... */
	char *source;     /* NULL: none */
	size_t source_bytes;
	char *options; /* NULL: none */
	char *log;     /* of a failure; NULL */
	cl_int result;
	enum stream_build build;
	bool is_refused;             /* a replay does not compile its source */
	struct ocl_stream **devices; /* held; those it was built for */
	uint32_t device_count;
	struct stream_binary *binaries;
	uint32_t binary_count;
	pthread_mutex_t lock; /* guards the next two */
	bool was_learned;     /* its signatures are known, or cannot be known */
	struct stream_signature *signatures;
	uint64_t source_blob, source_window; /* where it was last stored */
};

/* Their numbers are in the cache: add one to SIGNATURES_VERSION (capture_signatures.c). */
enum stream_argument_kind {
	STREAM_ARG_UNKNOWN, /* not known */
	STREAM_ARG_BYTES,
	STREAM_ARG_MEMORY, /* read and written */
	STREAM_ARG_MEMORY_READ,
	STREAM_ARG_MEMORY_WRITE,
	STREAM_ARG_LOCAL,
	STREAM_ARG_SAMPLER,
	STREAM_ARG_OTHER, /* pipe, device queue */
	STREAM_ARG_KINDS, /* their number */
};

/* The last value that was set. */
struct stream_argument {
	bool is_set, is_svm, is_null; /* is_null: no value, only a size */
	uint8_t kind;                 /* enum stream_argument_kind */
	size_t bytes;
	union {
		unsigned char bytes[16];
		unsigned char *more; /* if larger */
		const void *pointer; /* SVM */
	} value;
};

struct stream_function {
	char *name;
	uint32_t count;
	bool knows_kinds;
	pthread_mutex_t lock;
	struct stream_argument *arguments;
	const void **pointers; /* SVM that it may access */
	size_t pointer_count;
	bool reaches_all; /* fine-grained system SVM */
};

struct stream_user_event {
	_Atomic cl_int status; /* CL_SUBMITTED until it is set */
	atomic_bool is_waited_for;
};

/*
 * What the stream knows of an object. In the registry while the program or an object created from
 * it holds it.
 */
struct ocl_stream {
	enum ocl_kind kind;
	void *handle;
	uint64_t number;
	uint64_t window;     /* the window that describes it; under the channel's lock; 0: none */
	uint32_t references; /* under the registry lock */
	struct ocl_stream *next, *previous; /* by number, under the registry lock */
	struct ocl_stream *parent;          /* held, or NULL */
	char *unreplayable;                 /* what it is, if it cannot be replayed; else NULL */
	union {
		struct stream_device device;
		struct stream_context context;
		struct stream_queue queue;
		struct stream_memory memory;
		struct stream_sampler sampler;
		struct stream_module module;
		struct stream_function function;
		struct stream_user_event event;
	} as;
};

/* Adds an object to the registry, with one reference; NULL: no memory (the window fails). */
struct ocl_stream *stream_object_new(enum ocl_kind kind, void *handle, struct ocl_stream *parent);
struct ocl_stream *stream_object_hold(struct ocl_stream *stream);
void stream_object_drop(struct ocl_stream *stream);
/* Iterates over the registry, parents first. Only with the exclusive gate. */
struct ocl_stream *stream_object_first(void);
/*
 * Iterates over objects of a kind while others are added and removed: releases `object`, returns
 * the next one, held; NULL: begin, end.
 */
struct ocl_stream *stream_object_next(enum ocl_kind kind, struct ocl_stream *object);
/*
 * Writes its OBJECT record and those that it refers to, unless the window has them; the channel is
 * locked. `blob`: memory contents.
 */
void stream_object_emit(struct ocl_stream *stream, uint64_t blob);
/* The same in an open window; takes the channel's lock. */
void stream_object_lock_and_emit(struct ocl_stream *stream);
/* Describes it again, because more is known about it than when it was described. */
void stream_object_emit_again(struct ocl_stream *stream);
struct ocl_stream *stream_device_of(cl_device_id device);
static inline struct ocl_stream *stream_object_of(const struct ocl_object *object)
{
	return object ? object->stream : NULL;
}
/* The context that the hook named, else the driver. */
struct ocl_stream *stream_memory_context(const struct ocl_object *memory);
/* ALLOC or FREE; the channel is locked. */
void stream_memory_command(const struct ocl_stream *stream, uint32_t kind);
/* In a window: emits initial contents, row and command of new memory. `content`: NULL for zeros. */
void stream_memory_emit(struct ocl_stream *stream, const void *content);
/* The root of memory, and its offset there; NULL: not known. */
struct ocl_stream *stream_memory_root(cl_mem memory, uint64_t *ret_origin);
/* The SVM allocation that contains an address; NULL: none. */
struct ocl_stream *stream_svm_find(const void *address, uint64_t *ret_offset);
void stream_svm_add(struct ocl_stream *memory);
void stream_svm_remove(struct ocl_stream *memory);
void stream_svm_forked(void);
/* Describes the user event that blocks a window. */
void stream_what_blocks(char *why, size_t size);
/* Its contents cannot be read: commands that use it cannot be replayed. */
void stream_memory_is_gone(struct ocl_stream *stream);
bool stream_any_context(void);
void stream_objects_forked(void);
/* Parts of stream_object_drop() and stream_object_emit(). */
struct ocl_stream *stream_module_context(const struct ocl_object *program);
void stream_module_release(struct stream_module *module);
void stream_function_release(struct stream_function *function);
void stream_function_describe(struct ocl_stream *stream, struct stream_text *text);
void stream_module_emit(struct ocl_stream *stream, struct stream_text *text);
bool stream_module_is_emitted(const struct ocl_stream *stream);
/* Learns its signatures, unless done already: from the cache, or by a private build. */
void stream_module_learn(struct ocl_stream *stream);
void stream_signatures_free(struct stream_signature *signatures);
/* Finds the cache; reads the environment. */
void stream_signatures_start(void);
/* Emits how many modules were built privately, and how many the cache knew. */
void stream_signatures_stop(void);
/* Checks a build again that was still running when its call returned. */
void stream_module_settle(struct ocl_stream *stream);

/* ---- ranges ---- */

struct stream_range {
	struct ocl_stream *memory; /* root */
	uint64_t offset, bytes;
};

/* Pitches of 0 are replaced by those of packed bytes. */
struct stream_rect stream_rect_make(const size_t *region, const size_t *origin, size_t row,
				    size_t slice);
/* False: its sizes or its end exceed 63 bits, so the functions below and a replay cannot use it. */
bool stream_rect_fits(const struct stream_rect *rect);
uint64_t stream_rect_bytes(const struct stream_rect *rect);
/* From the first byte to the last, relative to the start of the rectangle's memory. */
void stream_rect_extent(const struct stream_rect *rect, uint64_t *ret_offset, uint64_t *ret_bytes);
/*
 * Copies `bytes` of the packed rectangle of the program's memory, from offset `from` on. Returns
 * how many precede the first one that is not there.
 */
size_t stream_rect_pack(const struct stream_rect *rect, const void *base, uint64_t from, void *to,
			size_t bytes);

/* ---- the program's memory, which may be gone (capture_foreign.c) ---- */

#define STREAM_COPY_BYTES ((size_t)1 << 20)
/* A private buffer of that size; NULL: no memory. */
unsigned char *stream_copy_take(void);
void stream_copy_give(unsigned char *copy);
void stream_copies_forked(void);

/* Bytes of the program: a range, or a rectangle. */
struct stream_foreign {
	const void *base;
	uint64_t bytes;                 /* of a rectangle: packed */
	const struct stream_rect *rect; /* NULL: a range */
};
/* Copies bytes from offset `at` on. Returns how many precede the first one that is not there. */
size_t stream_foreign_copy(const struct stream_foreign *foreign, uint64_t at, void *to,
			   size_t bytes);
/*
 * Reads it once, and gives its hash and blob, as far as they are asked for; for a blob, the channel
 * is locked. False: some of it is not there; the blob then has zeros.
 */
bool stream_foreign_read(const struct stream_foreign *foreign, uint64_t *ret_hash,
			 uint64_t *ret_blob);

/* ---- a command between before and after (capture_commands.c) ---- */

struct stream_frozen {
	struct ts_replay_command row;
	char unreplayable[160]; /* why not; "": it can be replayed */
	const char *unreplayable_kind;
	bool is_ambiguous;
	bool is_serial; /* holds the lock that serializes checked recordings */
	/* Becomes its blob after the call: the program's bytes, or the arguments. */
	struct stream_foreign data;
	struct stream_rect rect; /* the host side */
	unsigned char *block;    /* owned */
	size_t block_bytes, block_capacity;
	/* Ranges that it uses; those that it writes come first. */
	struct stream_range *uses;
	uint32_t use_count, use_capacity, write_count;
	/* What it copies to the host, to be hashed when it is complete. */
	struct stream_foreign destination;
	const char *check; /* read or map; NULL: nothing to hash */
	/* Map: to be added after the call; unmap: removed before it. */
	struct stream_region *region;
	struct ocl_stream *mapped; /* its memory */
	/*
	 * A long wait list, followed by the events of the markers that gather it: marker i waits
	 * for those from STREAM_WAITS * i on. The command waits for the rest. NULL: a short one.
	 */
	uint64_t *waits;
	size_t wait_count, marker_count;
	size_t essential;        /* bytes of `text` that every command keeps: call and waits */
	struct stream_text text; /* last, because it is not cleared */
};

void stream_unreplayable(struct stream_frozen *frozen, const char *kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void stream_use(struct stream_frozen *frozen, struct ocl_stream *memory, uint64_t offset,
		uint64_t bytes, bool writes);
/* Fills in row and details, except for what is known only after the call. */
void stream_describe(struct stream_frozen *frozen, struct ocl_command *command);
/* Asks the driver; its kind may be UNKNOWN. */
void stream_query_parameter(cl_kernel kernel, cl_uint index, struct stream_parameter *parameter);
/* The root of its memory; NULL: none, and the command cannot be replayed. */
struct ocl_stream *stream_find_root(struct stream_frozen *frozen, cl_mem memory,
				    uint64_t *ret_origin);
/* Host memory that it writes or reads. With _rect: frozen->rect of it. */
void stream_set_destination(struct stream_frozen *frozen, const void *host, uint64_t bytes);
void stream_set_data(struct stream_frozen *frozen, const void *host, uint64_t bytes);
void stream_set_destination_rect(struct stream_frozen *frozen, const void *host);
void stream_set_data_rect(struct stream_frozen *frozen, const void *host);
/* Adds "rect"; NULL: a side that is packed, because it is the host's, or a buffer's. */
void stream_describe_rect(struct stream_frozen *frozen, const struct stream_rect *to,
			  const struct stream_rect *from);
void stream_text_rect(struct stream_text *text, const struct stream_rect *to,
		      const struct stream_rect *from);
/*
 * The region of a map, and its use if it discards the contents: then it is only a marker, and the
 * result false.
 */
bool stream_map_region(struct stream_frozen *frozen, const struct ocl_command *command,
		       struct ocl_stream *root, uint64_t offset, uint64_t bytes);
/* Parts of stream_describe() by verb (capture_rect_commands.c, capture_image_commands.c). */
void stream_read_rect(struct stream_frozen *frozen, const struct ocl_command *command);
void stream_write_rect(struct stream_frozen *frozen, const struct ocl_command *command);
void stream_copy_rect(struct stream_frozen *frozen, const struct ocl_command *command);
void stream_read_image(struct stream_frozen *frozen, const struct ocl_command *command);
void stream_write_image(struct stream_frozen *frozen, const struct ocl_command *command);
void stream_copy_image(struct stream_frozen *frozen, const struct ocl_command *command);
void stream_copy_image_to_buffer(struct stream_frozen *frozen, const struct ocl_command *command);
void stream_copy_buffer_to_image(struct stream_frozen *frozen, const struct ocl_command *command);
void stream_fill_image(struct stream_frozen *frozen, const struct ocl_command *command);
void stream_map_image(struct stream_frozen *frozen, const struct ocl_command *command);
/* Captures the arguments of a launch. */
void stream_freeze_arguments(struct stream_frozen *frozen, struct ocl_object *kernel);

/* ---- events (capture_events.c) ---- */

/* Gives the event a number in the open window. */
uint64_t stream_event_add(cl_event event, struct ocl_stream *user);
/* Its number; 0: from before the window, so it is complete. */
uint64_t stream_event_number(cl_event event);
/* A command waits for it. False: it is a user event that failed before the window. */
bool stream_event_wait(cl_event event);
/* True the first time. */
bool stream_event_see(cl_event event, uint64_t *ret_number);
/* Number of unset user events that commands wait for; of all unset user events. */
uint32_t stream_events_blocking(void);
uint32_t stream_events_unset(void);
/* A user event was set or released. */
void stream_event_set(struct ocl_stream *user, cl_int status);
void stream_events_forked(void);

/* ---- host memory (capture_memory.c, capture_pages.c) ---- */

/* A read was enqueued. */
void stream_read_given(const struct stream_frozen *frozen, const struct ocl_command *command);
/*
 * Waits for incomplete reads into [host, host + bytes), or (`forget`) drops their checks. False:
 * still not complete.
 */
bool stream_reads_settle(const void *host, uint64_t bytes, bool forget);
/* Emits the checks of completed reads; hashes shared memory whose writers are complete. */
void stream_look(void);
/* Drops the checks that are left. */
void stream_reads_forget(void);

void stream_region_add(struct ocl_stream *root, struct stream_region *region);
/* Removes the region of an unmap; NULL: unknown. The caller frees it. */
struct stream_region *stream_region_take(struct ocl_stream *root, const void *host);
void stream_region_free(struct stream_region *region);
/* Whether the host may write the region by now; under the host lock, or after it was taken. */
bool stream_region_is_written(const struct stream_region *region);
/*
 * The first region that is mapped for writing and ends after `at`; false: none. Under the host
 * lock.
 */
bool stream_region_after(const struct ocl_stream *root, uint64_t at, uint64_t *ret_begin,
			 uint64_t *ret_end);
/* Whether part of the range is mapped for writing; takes the lock. */
bool stream_range_is_mapped(const struct ocl_stream *root, uint64_t offset, uint64_t bytes);
/* A command, or the host, may write it. */
void stream_memory_written(struct ocl_stream *stream);
void stream_memory_release(struct ocl_stream *stream);
void stream_memory_forked(void);

extern pthread_mutex_t stream_host_lock;
/*
 * Under the host lock: before a command uses the range; after one that writes it was enqueued;
 * looks for completed writers; stops tracking.
 */
void stream_pages_compare(struct ocl_stream *root, const struct stream_range *range);
void stream_pages_written(struct ocl_stream *root, uint64_t offset, uint64_t bytes, cl_event event);
void stream_pages_look(void);
void stream_pages_end(struct ocl_stream *root);
/*
 * Under the host lock: a window begins, or memory is created in it. With `ret_blob` the channel is
 * locked, too, and the contents are stored. False: it is not there.
 */
bool stream_pages_begin(struct ocl_stream *root, uint64_t *ret_blob);
/*
 * Under the host lock: emits checks of what is known of shared memory. False: of a region that is
 * mapped for writing, nothing is.
 */
bool stream_pages_final(const struct ocl_stream *root);
/* Whether commands work on the host's bytes themselves, not on a copy of the driver. */
bool stream_pages_are_shared(const struct ocl_stream *root);
/* References to an event; under the host lock. */
cl_uint stream_pages_hold(cl_event event);

/* ---- areas (capture_areas.c) ---- */

/* The host's bytes of an area: a range, or a rectangle of pixels. */
struct stream_foreign stream_area_foreign(const struct stream_area *area);
/* As stream_foreign_copy(). */
size_t stream_area_read(const struct stream_area *area, uint64_t at, void *to, size_t bytes);
/* Bytes of the host, from the first to the last. */
uint64_t stream_area_extent(const struct stream_area *area);
/* Bytes of the root, from `offset` on, that it may be: for pixels, all of their image. */
uint64_t stream_area_span(const struct stream_area *area);
/* Forgets its hashes. */
void stream_area_end(struct stream_area *area);

/* ---- images (capture_images.c, capture_image_commands.c) ---- */

#define STREAM_COLOR_BYTES 16u

/* A region in pixels, in bytes: in the packed image, and on the host. */
struct stream_rect stream_image_rect(const struct stream_image *image, const size_t *origin,
				     const size_t *region);
struct stream_rect stream_image_host_rect(const struct stream_image *image, const size_t *region,
					  size_t row, size_t slice);
void stream_image_describe(const struct stream_image *image, struct stream_text *text);
void stream_sampler_describe(const struct stream_sampler *sampler, struct stream_text *text);
/* After a map: fills in what the region has of its image. */
void stream_image_mapped(struct stream_area *area, const struct ocl_command *command);
/* Reads or clears all of the image, through a queue. */
cl_int stream_image_read(cl_command_queue queue, const struct ocl_stream *memory, void *to);
/*
 * Bytes of as many rows as there are in a slice from offset `at` on, and in `most` bytes; 0: it
 * cannot be read in rows.
 */
uint64_t stream_image_rows(const struct stream_image *image, uint64_t at, uint64_t most);
/* Enqueues a read of such rows, behind the events. */
cl_int stream_image_read_rows(cl_command_queue queue, const struct stream_range *rows, void *to,
			      cl_uint wait_count, const cl_event *waits, cl_event *ret_event);
cl_int stream_image_clear(cl_command_queue queue, const struct ocl_stream *memory);

/* ---- memory read back (capture_snapshot.c) ---- */

/* NULL: done; else the reason, in `why`. With the exclusive gate. */
const char *stream_snapshot(char *why, size_t size, uint64_t *ret_bytes);
/* Memory that can be read back: not a view, nor of a kind that cannot be replayed. */
bool stream_has_content(const struct ocl_stream *stream);
cl_int stream_read_back(const struct ocl_stream *memory, uint64_t offset, uint64_t bytes, void *to);
/* Its hash, without memory for all of it; not of an image. */
cl_int stream_hash_back(const struct ocl_stream *memory, uint64_t offset, uint64_t bytes,
			uint64_t *ret_hash);
/* Zeros memory that the program gave no contents, because unwritten memory is compared, too. */
void stream_clear(const struct ocl_stream *memory);
/* Frees the queues and buffers used for reading back. */
void stream_readers_release(void);

/* ---- checks (capture_checks.c) ---- */

/* Of memory, or (0) of what a read copied to the host. */
struct stream_check {
	uint64_t sequence, memory, offset;
	const char *why;
};
void stream_emit_check(const struct stream_check *check, uint64_t bytes, uint64_t hash);
/* The channel is locked. */
void stream_emit_check_locked(const struct stream_check *check, uint64_t bytes, uint64_t hash);
/* The same with contents, if these are kept. False: they are gone, and so is the check. */
void stream_check_locked(const struct stream_check *check, const void *data, uint64_t bytes,
			 uint64_t hash); /* the channel is locked */
void stream_check_bytes(const struct stream_check *check, const void *data, uint64_t bytes);
bool stream_check_foreign(const struct stream_check *check, const struct stream_foreign *foreign);
/* Bytes of the check that begins `at` bytes after the range does: a long one has several. */
uint64_t stream_check_part(const struct stream_range *range, uint64_t at);
/* Reads it back. */
void stream_check_range(const struct stream_range *range, uint64_t sequence, const char *why);
void stream_final_checks(void);

/* ---- checks of each command (capture_each.h) ---- */

/* Reads the environment. */
void stream_each_start(void);
/* Around a command's call. False: its checks must be taken when it is complete. */
void stream_each_before(const struct stream_frozen *frozen, const struct ocl_command *command);
bool stream_each_after(const struct stream_frozen *frozen, const struct ocl_command *command);
void stream_each_now(const struct stream_frozen *frozen, uint64_t sequence);
/* The host waits, or waited: takes the checks that are ready. */
void stream_each_look(void);
/* Whether a check had all of the memory, as it still is, and nothing is missing in the stream. */
bool stream_each_knows(const struct ocl_stream *memory, uint64_t *ret_hash);
/* Memory, or a queue, is about to be released. */
void stream_each_gone(struct ocl_stream *memory);
void stream_each_queue_gone(struct ocl_stream *queue);
/* Takes all checks, so that no read of ours is left in a queue, and no object of ours. */
void stream_each_let_go(void);
/* The window has ended: drops them. */
void stream_each_forget(void);
void stream_each_forked(void);

/* ---- loss (capture_loss.c) ---- */

void stream_lost(const char *what, const char *reason);
/* The same about one memory object, which the reason names. */
void stream_lost_memory(const char *what, const struct ocl_stream *memory, const char *why);
/* Whether anything was since they were emitted last. */
bool stream_lost_any(void);
void stream_lost_emit(void);

/*
 * ---- the window (capture_stream.c; <tracesmith/replay.h>) ----
 *
 * Who calls ts_replay_fail_window() may hold `host`, but no other lock of the stream.
 */

/* A command of which only the kind is known. */
struct ts_replay_command stream_row(uint32_t kind);
bool stream_is_checked(void);
/* Negative: it failed. CL_COMPLETE if the driver does not know it. */
cl_int stream_event_status(cl_event event);
/* Polls, because the driver's own wait has no timeout; false: still not complete. */
bool stream_event_finish(cl_event event, int64_t deadline_ns);
/* Flushes the queue of its command, which otherwise may never complete. */
void stream_event_flush(cl_event event);
/* The same for all queues, while other threads continue. */
bool stream_queues_finish(int64_t deadline_ns);
/* Releases driver objects as soon as the calling thread holds no lock. */
void stream_release_later(cl_command_queue queue, cl_mem memory, cl_event event);

#endif
