/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that load a command stream: rows of the trace become objects and commands
 * whose references are all valid. Nothing in a trace is trusted. Private to src/replay/stream.
 */
#ifndef TS_REPLAY_STREAM_STREAM_INTERNAL_H
#define TS_REPLAY_STREAM_STREAM_INTERNAL_H

#include "base/map.h"
#include "replay/plan/ranges.h"
#include "replay/replay.h"

/* ---- details: the parsed JSON of a row (stream_details.c) ---- */

/* A list of numbers; absent: NULL. */
struct ts_replay_numbers {
	const uint64_t *items;
	uint32_t count;
};

/* An argument as stored. */
struct ts_replay_raw_arg {
	const char *kind;
	uint64_t at, size, object, offset, bytes;
	const char *access;
	bool has_offset, has_bytes;
	bool is_normalized;
	const char *addressing, *filter;
};

/* An image as stored. */
struct ts_replay_raw_image {
	const char *type, *order, *data;
	uint64_t size[3], element, row;
};

struct ts_replay_raw_binary {
	uint64_t device, blob;
};

/* A setting of a driver: its number, and the value: a number, or bytes in hexadecimal digits. */
struct ts_replay_setting {
	uint64_t id;
	int64_t value;
	const char *bytes; /* NULL: a number */
};

/* A number that may be absent. */
struct ts_replay_count {
	bool is_known;
	uint64_t value;
};

/* All keys that details of a command or object may have; absent ones are 0 or NULL. */
struct ts_replay_details {
	/* any command */
	const char *call, *unreplayable, *why, *what, *failed, *unchecked;
	struct ts_replay_numbers wait;
	uint64_t event, window, until;
	bool blocking, unknown, ambiguous, from_start;
	int64_t status;
	uint64_t memory; /* number of what is mapped or unmapped, if no bytes move */
	/* launch */
	struct ts_replay_numbers global, local, offset, indirect;
	const struct ts_replay_raw_arg *args;
	uint32_t arg_count; /* function object: the number of arguments */
	bool has_args;
	/* copy */
	bool has_rect;
	struct ts_replay_numbers region;
	struct ts_replay_rect_side to, from;
	/* check */
	const char *hash;
	/* objects */
	uint64_t number, index, device, origin;
	bool has_index;
	bool out_of_order, user, svm;
	bool has_image;
	struct ts_replay_raw_image image;
	int64_t priority;
	const char *options, *from_what;
	const char *platform, *vendor, *version, *driver;
	struct ts_replay_numbers devices;
	const char *const *flags;
	uint32_t flag_count;
	const struct ts_replay_raw_binary *binaries;
	uint32_t binary_count;
	const struct ts_replay_parameter *parameters;
	uint32_t parameter_count;
	/* docs/cuda-replay.md, section 4 */
	const struct ts_replay_place *places; /* function: "params" */
	uint32_t place_count;
	bool is_sparse, is_global, is_more;
	const char *space, *default_stream;
	uint64_t flag_bits; /* "flags", if it is a number */
	const struct ts_replay_mapping *mappings;
	uint32_t mapping_count;
	struct ts_replay_count registered, nodes, node, pages, pieces;
	struct ts_replay_numbers grid, block, after, compute;
	struct ts_replay_count shared;
	bool is_cooperative;
	const struct ts_replay_setting *attributes;
	uint32_t attribute_count;
	struct ts_replay_setting setting; /* set: "id" and "value" */
};

/* Copies everything into the arena. TS_EFORMAT: the message says where and why. */
int ts_replay_details_parse(struct ts_replay_details *ret_details, struct ts_arena *arena,
			    const char *json, size_t length, struct ts_error *err);

/* ---- loading ---- */

/* The stream from OPEN to CLOSE. */
struct ts_replay_window {
	uint64_t number;
	bool has_open, has_close;
	const char *failed;
	int64_t start, end;    /* times of OPEN and CLOSE; if missing, INT64_MIN and INT64_MAX */
	int64_t sequence;      /* of OPEN */
	int64_t next_sequence; /* of the next OPEN; INT64_MAX if there is none */
	struct ts_replay_count pieces; /* of the snapshot, as OPEN or CLOSE says */
	uint64_t piece_rows;           /* that the trace has */
};

/* The nodes of a graph: commands that each launch copies. */
struct ts_replay_nodes {
	struct ts_replay_command_info *items;
	uint32_t count, capacity;
	bool is_launched; /* no node may follow */
};

struct ts_replay_load {
	struct ts_replay_stream *stream;
	bool to_show; /* nothing will run: loads windows that cannot be replayed, too */
	struct ts_reader *reader;
	struct ts_command_row
		*rows; /* of one process: commands by sequence, then checks and closes */
	size_t row_count, row_capacity;
	struct ts_replay_window *windows; /* by OPEN, then windows that never opened */
	size_t window_count, window_capacity;
	const struct ts_replay_window *window; /* the one to load */
	struct ts_map by_id, by_number;        /* -> index of an object */
	struct ts_map events;     /* event number -> index of the last command that sets it */
	uint32_t *previous;       /* by command: the previous one in its queue; TS_REPLAY_NONE */
	uint32_t *newest;         /* by object: last command in this queue so far */
	struct ts_map user_sets;  /* index of a user event -> index of the command that sets it */
	bool is_node;             /* the command being loaded is a node of a graph */
	bool keeps_details;       /* targets need the details of objects and commands as text */
	struct ts_ranges *mapped; /* by object: what of sparse memory is mapped so far */
	const struct ts_replay_arg **places; /* by object: the parameters of a function */
	struct ts_replay_nodes *nodes;       /* by object */
	struct ts_replay_legacy *legacy;     /* by object; stream_legacy.c */
	struct ts_arena scratch;             /* freed after loading */
	struct ts_arena line;                /* reset for each command */
};

/* stream_rows.c: rows of the process, and the requested window (0: the first replayable one). */
int ts_replay_load_rows(struct ts_replay_load *load, const char *process, struct ts_error *err);
int ts_replay_load_windows(struct ts_replay_load *load, uint32_t number, struct ts_error *err);
/* Parses the details of a row into `arena`; a row without details has no keys. */
int ts_replay_row_details(struct ts_replay_load *load, int64_t text, struct ts_arena *arena,
			  struct ts_replay_details *ret_details, struct ts_error *err);
/* Does a row without its own sequence number (a check) belong to the window? */
bool ts_replay_window_has(const struct ts_replay_window *window, const struct ts_command_row *row);

/* stream_objects.c */
int ts_replay_load_objects(struct ts_replay_load *load, struct ts_error *err);
/* TS_REPLAY_NONE if there is none. */
uint32_t ts_replay_object_by_id(const struct ts_replay_load *load, int64_t id);
uint32_t ts_replay_object_by_number(const struct ts_replay_load *load, uint64_t number);
/* Looks up a blob; id 0 gives size 0. The error says what is wrong with the blob. */
int ts_replay_blob_of(struct ts_replay_load *load, int64_t id, struct ts_replay_blob_ref *ret_blob,
		      struct ts_error *err);

/* stream_images.c */
/* Sets the image that memory is, and checks its sizes; TS_ENOMEM. */
int ts_replay_load_image(struct ts_replay_load *load, struct ts_replay_object_info *memory,
			 const struct ts_replay_raw_image *raw);
/* Checks what memory and its root are to each other, if one is an image. */
void ts_replay_check_image(struct ts_replay_load *load, struct ts_replay_object_info *memory);
/*
 * Checks the rectangle of a command that names images, and sets its images. Call before views are
 * converted to their roots.
 */
int ts_replay_load_image_rect(struct ts_replay_load *load, uint32_t index, struct ts_error *err);
int ts_replay_load_sampler(struct ts_replay_load *load, uint32_t index, uint32_t number,
			   const struct ts_replay_raw_arg *raw, struct ts_replay_arg *arg);
/* Marks an object as unreplayable; the first reason is kept. */
void ts_replay_spoil_object(struct ts_replay_load *load, struct ts_replay_object_info *object,
			    const char *format, ...) TS_PRINTF_LIKE(3, 4);

/* stream_commands.c, stream_operands.c, stream_launch.c, stream_checks.c, stream_order.c */
int ts_replay_load_commands(struct ts_replay_load *load, struct ts_error *err);
/* Loads operands, geometry, arguments, and read and write sets of command `index`. */
int ts_replay_load_operands(struct ts_replay_load *load, uint32_t index,
			    const struct ts_command_row *row,
			    const struct ts_replay_details *details, struct ts_error *err);
int ts_replay_load_launch(struct ts_replay_load *load, uint32_t index,
			  const struct ts_replay_details *details, struct ts_error *err);
int ts_replay_load_checks(struct ts_replay_load *load, struct ts_error *err);
/* The last command with that number; TS_REPLAY_NONE: not in the window. */
uint32_t ts_replay_command_by_sequence(const struct ts_replay_stream *stream, int64_t sequence);
/*
 * Handles user events: a command that waits for one runs when it is set, and nothing may wait for
 * that command before.
 */
int ts_replay_load_order(struct ts_replay_load *load, struct ts_error *err);

/*
 * Converts a memory range that a command names to one in its root, and checks its bounds. `what` is
 * for messages: "destination". Unreplayable memory makes the command unreplayable, and its range is
 * all of that memory.
 */
int ts_replay_load_range(struct ts_replay_load *load, uint32_t index, const char *what,
			 uint32_t object, uint64_t offset, uint64_t bytes,
			 struct ts_replay_range *ret_range, struct ts_error *err);
/* ---- stream_sparse.c: address spaces of which parts are mapped ---- */

/* Lists of mappings: that of each object, and those of rows that continue one. */
struct ts_replay_mapping_list {
	uint32_t object;
	uint32_t count;
	const struct ts_replay_mapping *mappings;
};
int ts_replay_load_mappings(struct ts_replay_load *load, const struct ts_replay_mapping_list *lists,
			    size_t count, struct ts_error *err);
/* Has this memory pages of its own: sparse memory, and variables of modules? */
bool ts_replay_is_paged(const struct ts_replay_object_info *memory);
/* alloc and free of a range of sparse memory. */
int ts_replay_load_mapping_change(struct ts_replay_load *load, uint32_t index,
				  const struct ts_command_row *row, struct ts_error *err);
/* A command is unreplayable if it names memory that is not mapped when it is submitted. */
void ts_replay_check_mapped(struct ts_replay_load *load, uint32_t index);
/* Is the row of a check a piece of a snapshot? Its blob is then its content. */
bool ts_replay_is_piece(const struct ts_replay_details *details);
/* What an address of the program was in; after all commands. */
int ts_replay_load_spaces(struct ts_replay_load *load, struct ts_error *err);
/*
 * Why a window has not all of the memory it begins with; false: it has. `is_known`: the trace says
 * how many pieces there have to be.
 */
#define TS_REPLAY_PIECES_TEXT 192
bool ts_replay_pieces_fault(bool is_known, uint64_t expected, uint64_t found, char *to,
			    size_t bytes);
int ts_replay_load_pieces(struct ts_replay_load *load, struct ts_error *err);
void ts_replay_release_mapped(struct ts_replay_load *load);

/* ---- stream_graphs.c: nodes, and their commands at each launch ---- */

bool ts_replay_is_node(const struct ts_replay_load *load, const struct ts_command_row *row);
bool ts_replay_is_graph_launch(const struct ts_replay_load *load, const struct ts_command_row *row);
/* Allocates load->nodes. */
int ts_replay_prepare_nodes(struct ts_replay_load *load);
/*
 * How many commands a row becomes. Call it for all rows in order, with `counts`, by object, zeroed.
 */
size_t ts_replay_count_row(const struct ts_replay_load *load, const struct ts_command_row *row,
			   uint32_t *counts);
/* Command `index`, the one behind the last, is a node: moves it to its graph. */
int ts_replay_keep_node(struct ts_replay_load *load, uint32_t index,
			const struct ts_command_row *row, const struct ts_replay_details *details,
			struct ts_error *err);
/* Replaces command `index`, a launch of a graph behind the last command, by its nodes. */
int ts_replay_expand(struct ts_replay_load *load, uint32_t index, struct ts_error *err);
void ts_replay_release_nodes(struct ts_replay_load *load);

/* ---- stream_legacy.c: the order of the legacy default stream ---- */

/* Of an object: a context or a stream. */
struct ts_replay_legacy {
	uint32_t newest;  /* context: the last command in its legacy stream */
	uint32_t changed; /* context: the first stream that has commands behind that */
	uint32_t next;    /* stream: the next such stream */
	uint32_t waited;  /* stream: the last command of the legacy stream it has waited for */
	bool is_changed;
};
/* Adds implicit waits to a command that is about to be enqueued, and notes it. */
int ts_replay_order_legacy(struct ts_replay_load *load, uint32_t index, struct ts_error *err);

/* stream_commands.c */
/*
 * Resolves what command `index` waits for, and adds it to its queue and to the stream. `until` of a
 * sync, or 0.
 */
int ts_replay_submit(struct ts_replay_load *load, uint32_t index, uint64_t until,
		     struct ts_error *err);
/* Marks a command as unreplayable; the first reason is kept. */
void ts_replay_spoil(struct ts_replay_load *load, uint32_t index, const char *format, ...)
	TS_PRINTF_LIKE(3, 4);

/* stream_reject.c: marks what a device does not support, with all commands that use it. */
void ts_replay_stream_reject_object(struct ts_replay_stream *stream, uint32_t object,
				    const char *why);
void ts_replay_stream_reject_launches(struct ts_replay_stream *stream, uint32_t command,
				      const char *why);
void ts_replay_stream_reject_command(struct ts_replay_stream *stream, uint32_t command,
				     const char *why);

/* Sets "command 17, launch of 'saxpy': " and the text; returns TS_EFORMAT. */
int ts_replay_command_error(const struct ts_replay_stream *stream, uint32_t index,
			    struct ts_error *err, const char *format, ...) TS_PRINTF_LIKE(4, 5);

/* stream_verify.c: verifies the checksums of all chunks of the stream. */
int ts_replay_verify_chunks(struct ts_reader *reader, struct ts_error *err);

/* A trace is code: TS_EFORMAT if it belongs to another user. */
int ts_replay_check_owner(const struct ts_reader *reader, struct ts_error *err);

int ts_replay_no_memory(struct ts_error *err);

#endif
