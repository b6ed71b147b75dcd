/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shapes (ordered keys and types of arguments) of a trace being written, each stored once. One
 * thread adds; any thread may look up.
 */
#ifndef TS_MODEL_SHAPES_H
#define TS_MODEL_SHAPES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

#include "base/arena.h"
#include "base/map.h"

/* Limit of one shape; docs/format.md, section 7. */
#define TS_SHAPE_MAX_FIELDS 1024

struct ts_shapes {
	struct ts_shape *shapes; /* id i is at i - first_id; reallocated under the lock */
	size_t capacity;
	uint32_t first_id; /* 1, or above the ids of a trace being continued */
	uint32_t count;
	pthread_mutex_t lock; /* protects the reallocation of `shapes` against ts_shapes_get() */
	struct ts_strmap ids; /* bytes of the fields to id */
	struct ts_arena arena;
};

void ts_shapes_init(struct ts_shapes *shapes, uint32_t first_id);
void ts_shapes_release(struct ts_shapes *shapes);

/*
 * The id (from first_id) of a list of fields; 0 if out of memory or too many fields. Callers use
 * shape 0 for no fields.
 */
uint32_t ts_shapes_intern(struct ts_shapes *shapes, const struct ts_field *fields, uint32_t count,
			  bool *ret_new);

/*
 * By value, since the table may be reallocated; its fields are valid until release. Shape 0 and
 * shapes below first_id have no fields.
 */
struct ts_shape ts_shapes_get(struct ts_shapes *shapes, uint32_t id);

#endif
