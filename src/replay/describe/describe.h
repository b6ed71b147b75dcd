/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands and objects of a stream as text, one line each, and as JSON: calls with the values of
 * their arguments. Nothing runs, and no driver is needed. Numbers are those that all of the tool
 * shows: commands by sequence, devices and streams as in gpu_op, other objects by the program's
 * number ("memory 7").
 */
#ifndef TS_REPLAY_DESCRIBE_DESCRIBE_H
#define TS_REPLAY_DESCRIBE_DESCRIBE_H

#include "base/text.h"
#include "replay/replay.h"

/*
 * "clEnqueueNDRangeKernel(stream=1, kernel=scale, global=[64], args=(v=memory 4 [256 bytes, both],
 * by=2.5f), wait=[5]) -> event 7", then why it cannot be replayed, if so. Values that cannot be
 * read are "?".
 */
void ts_replay_describe_command(const struct ts_replay_stream *stream, uint32_t command,
				struct ts_text *out);

/* Members of a JSON object, each followed by a comma: "sequence":7,"kind":"launch", ... */
void ts_replay_describe_command_json(const struct ts_replay_stream *stream, uint32_t command,
				     struct ts_text *out);

/* "create stream 1 (context 2, device 0)", for an object that no command creates. */
void ts_replay_describe_object(const struct ts_replay_stream *stream, uint32_t object,
			       struct ts_text *out);
void ts_replay_describe_object_json(const struct ts_replay_stream *stream, uint32_t object,
				    struct ts_text *out);

/* "check memory 4 [256 bytes]: 0123456789abcdef (final)" */
void ts_replay_describe_check(const struct ts_replay_stream *stream,
			      const struct ts_replay_check *check, struct ts_text *out);
void ts_replay_describe_check_json(const struct ts_replay_stream *stream,
				   const struct ts_replay_check *check, struct ts_text *out);

/* "memory 7", "stream 1", "function 6 'scale'". */
void ts_replay_describe_name(const struct ts_replay_stream *stream, uint32_t object,
			     struct ts_text *out);
/* The number that users see. */
uint64_t ts_replay_object_number(const struct ts_replay_object_info *object);

/* ---- for the files of this folder ---- */

/* "2d 64x32x1 rgba float" */
void ts_replay_describe_image(const struct ts_replay_image *image, struct ts_text *out);
/* "image":{"type":"2d","size":[64,32,1],"order":"rgba","data":"float"}, */
void ts_replay_describe_image_json(const struct ts_replay_image *image, struct ts_text *out);

/* Members of a JSON object, each followed by a comma: a text, and the number of an object, if any.
 */
void ts_replay_append_member(struct ts_text *out, const char *key, const char *value);
void ts_replay_append_object(struct ts_text *out, const struct ts_replay_stream *stream,
			     const char *key, uint32_t object);

/* The rectangle of a command as its call has it: x of images is in pixels, not in bytes. */
struct ts_replay_extent {
	uint64_t region[3];
	struct ts_replay_rect_side to, from;
};
struct ts_replay_extent ts_replay_extent_of(const struct ts_replay_stream *stream,
					    const struct ts_replay_command_info *command);

/* A scalar or vector of OpenCL C. */
struct ts_replay_scalar {
	const struct ts_value_type *type; /* NULL: not one, or the size differs */
	unsigned int width;               /* 1: a scalar */
};

/* By the name of the type: "float4". */
struct ts_replay_scalar ts_replay_scalar_of(const char *type, uint64_t bytes);

/* Bytes of an argument that are read and shown. */
#define TS_REPLAY_VALUE_BYTES 128u
/* Value of an argument of `bytes` bytes, of which at most TS_REPLAY_VALUE_BYTES are in `data`. */
void ts_replay_describe_value(const char *type, const void *data, uint64_t bytes,
			      struct ts_text *out);
void ts_replay_describe_value_json(const char *type, const void *data, uint64_t bytes,
				   struct ts_text *out);
void ts_replay_describe_hex(const void *data, size_t bytes, struct ts_text *out);

/* ---- describe_cuda.c ---- */

/* Does the stream have memory with addresses, as those of CUDA? Then parameters may be addresses.
 */
bool ts_replay_has_addresses(const struct ts_replay_stream *stream);
/* "memory 9+0x1000" (of an address space), "memory 4+16" */
void ts_replay_describe_place(const struct ts_replay_stream *stream, uint32_t memory,
			      uint64_t offset, struct ts_text *out);
/* Without parentheses or brackets: "memory 9+0x1000, 0x00000007 (7?)" */
void ts_replay_describe_parameters(const struct ts_replay_stream *stream,
				   const struct ts_replay_command_info *command,
				   struct ts_text *out);
void ts_replay_describe_parameters_json(const struct ts_replay_stream *stream,
					const struct ts_replay_command_info *command,
					struct ts_text *out);
/* "grid=[4, 2, 1], block=[32, 1, 1], shared=1024, priority=-1" */
void ts_replay_describe_grid(const struct ts_replay_command_info *command, struct ts_text *out);
void ts_replay_describe_grid_json(const struct ts_replay_command_info *command,
				  struct ts_text *out);
/* "limit stack_size=1024" */
void ts_replay_describe_setting(const struct ts_replay_stream *stream,
				const struct ts_replay_command_info *command, struct ts_text *out);
void ts_replay_describe_setting_json(const struct ts_replay_stream *stream,
				     const struct ts_replay_command_info *command,
				     struct ts_text *out);
/*
 * Address spaces, default streams, graphs: nothing for other objects. `before` is the text before
 * the next fact, and is updated.
 */
void ts_replay_describe_space(const struct ts_replay_object_info *info, const char **before,
			      struct ts_text *out);
void ts_replay_describe_space_json(const struct ts_replay_object_info *info, struct ts_text *out);

/* The name and type of an argument; empty texts if unknown. */
struct ts_replay_parameter ts_replay_parameter_of(const struct ts_replay_stream *stream,
						  const struct ts_replay_command_info *command,
						  uint32_t argument);

#endif
