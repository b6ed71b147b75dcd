/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that load a command stream: rows of the trace become objects and commands
 * whose references are all valid. Nothing in a trace is trusted. Private to src/replay/stream.
 */
#ifndef TS_REPLAY_STREAM_STREAM_INTERNAL_H
#define TS_REPLAY_STREAM_STREAM_INTERNAL_H

#include "base/map.h"
#include "replay/replay.h"

/* ---- details: JSON of a row, in C (stream_details.c) ---- */

/* A list of numbers; absent: NULL. */
struct ts_replay_numbers {
	const uint64_t *items;
	uint32_t count;
};

/* An argument as it is written there. */
struct ts_replay_raw_arg {
	const char *kind;
	uint64_t at, size, object, offset, bytes;
	const char *access;
	bool has_offset, has_bytes;
};

struct ts_replay_raw_binary {
	uint64_t device, blob;
};

/* All keys that details of a command or object may have; what is not there is 0 or NULL. */
struct ts_replay_details {
	/* any command */
	const char *call, *unreplayable, *why, *what, *failed;
	struct ts_replay_numbers wait;
	uint64_t event, window, until;
	bool blocking, unknown;
	int64_t status;
	/* launch */
	struct ts_replay_numbers global, local, offset, indirect;
	const struct ts_replay_raw_arg *args;
	uint32_t arg_count; /* of an object: how many there are */
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
	int64_t priority;
	const char *options, *from_what;
	const char *platform, *vendor, *version, *driver;
	struct ts_replay_numbers devices;
	const char *const *flags;
	uint32_t flag_count;
	const struct ts_replay_raw_binary *binaries;
	uint32_t binary_count;
};

/* Everything is copied into the arena. TS_EFORMAT: the message says where and why. */
int ts_replay_details_parse(struct ts_replay_details *ret_details, struct ts_arena *arena,
			    const char *json, size_t length, struct ts_error *err);

/* ---- loading ---- */

/* A span of the stream between OPEN and CLOSE. */
struct ts_replay_window {
	uint64_t number;
	bool has_open, has_close;
	const char *failed;
	int64_t start, end;    /* times of OPEN and CLOSE; INT64_MIN, INT64_MAX */
	int64_t sequence;      /* of OPEN */
	int64_t next_sequence; /* of the next OPEN; INT64_MAX */
};

struct ts_replay_load {
	struct ts_replay_stream *stream;
	struct ts_reader *reader;
	struct ts_command_row
		*rows; /* of one process: commands by sequence, then checks and closes */
	size_t row_count, row_capacity;
	struct ts_replay_window *windows; /* in order of OPEN, then those that never opened */
	size_t window_count, window_capacity;
	const struct ts_replay_window *window; /* that is loaded */
	struct ts_map by_id, by_number;        /* index of an object */
	struct ts_map events;    /* number of an event: index of the command that set it last */
	uint32_t *previous;      /* by command: the one before it in its queue; TS_REPLAY_NONE */
	uint32_t *newest;        /* by object: the last command of this queue so far */
	struct ts_map user_sets; /* index of a user event: index of the command that sets it */
	struct ts_arena scratch; /* while loading */
	struct ts_arena line;    /* while one command is loaded */
};

/*
 * stream_rows.c: rows of the process, the window that is asked for (0: the first that can be
 * replayed).
 */
int ts_replay_load_rows(struct ts_replay_load *load, int64_t process, struct ts_error *err);
int ts_replay_load_windows(struct ts_replay_load *load, uint32_t number, struct ts_error *err);
/* Parses the details of a row, into `arena`; a row without any has none of the keys. */
int ts_replay_row_details(struct ts_replay_load *load, int64_t text, struct ts_arena *arena,
			  struct ts_replay_details *ret_details, struct ts_error *err);
/* Does a row without a sequence of its own (a check) belong to the window? */
bool ts_replay_window_has(const struct ts_replay_window *window, const struct ts_command_row *row);

/* stream_objects.c */
int ts_replay_load_objects(struct ts_replay_load *load, struct ts_error *err);
/* TS_REPLAY_NONE where there is none. */
uint32_t ts_replay_object_by_id(const struct ts_replay_load *load, int64_t id);
uint32_t ts_replay_object_by_number(const struct ts_replay_load *load, uint64_t number);
/* Size of a blob, 0 where there is none (id 0); the error says what is wrong with it. */
int ts_replay_blob_of(struct ts_replay_load *load, int64_t id, struct ts_replay_blob_ref *ret_blob,
		      struct ts_error *err);

/* stream_commands.c, stream_operands.c, stream_launch.c, stream_checks.c, stream_order.c */
int ts_replay_load_commands(struct ts_replay_load *load, struct ts_error *err);
/* Operands, geometry, arguments and read and write sets of command `index`, from its row. */
int ts_replay_load_operands(struct ts_replay_load *load, uint32_t index,
			    const struct ts_command_row *row,
			    const struct ts_replay_details *details, struct ts_error *err);
int ts_replay_load_launch(struct ts_replay_load *load, uint32_t index,
			  const struct ts_replay_details *details, struct ts_error *err);
int ts_replay_load_checks(struct ts_replay_load *load, struct ts_error *err);
/* Commands that wait for user events run when these are set: nobody waits for them before. */
int ts_replay_load_order(struct ts_replay_load *load, struct ts_error *err);

/*
 * A range of memory that a command names: turned into one of the root, and inside of it. `what` for
 * messages: "destination". Memory that cannot be replayed makes the command so, and is taken as a
 * whole.
 */
int ts_replay_load_range(struct ts_replay_load *load, uint32_t index, const char *what,
			 uint32_t object, uint64_t offset, uint64_t bytes,
			 struct ts_replay_range *ret_range, struct ts_error *err);
/* Says why a command cannot be replayed, unless it was said before. */
void ts_replay_spoil(struct ts_replay_load *load, uint32_t index, const char *format, ...)
	TS_PRINTF_LIKE(3, 4);

/* "command 17, launch of 'saxpy': " and the text; returns TS_EFORMAT. */
int ts_replay_command_error(const struct ts_replay_stream *stream, uint32_t index,
			    struct ts_error *err, const char *format, ...) TS_PRINTF_LIKE(4, 5);

/* stream_verify.c: checksums of all that a stream is made of. */
int ts_replay_verify_chunks(struct ts_reader *reader, struct ts_error *err);

/* A trace is code: one of somebody else is not run unasked. TS_EFORMAT. */
int ts_replay_check_owner(const struct ts_reader *reader, struct ts_error *err);

int ts_replay_no_memory(struct ts_error *err);

#endif
