/* SPDX-License-Identifier: Apache-2.0 */
/* Interns shapes. */
#include "model/shapes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Fields are compared as bytes. */
static_assert(sizeof(struct ts_field) == 8, "no padding inside a field");

void ts_shapes_init(struct ts_shapes *shapes, uint32_t first_id)
{
	memset(shapes, 0, sizeof(*shapes));
	shapes->first_id = first_id;
	pthread_mutex_init(&shapes->lock, NULL);
	ts_strmap_init(&shapes->ids, first_id);
	ts_arena_init(&shapes->arena);
}

void ts_shapes_release(struct ts_shapes *shapes)
{
	free(shapes->shapes);
	ts_strmap_release(&shapes->ids);
	ts_arena_release(&shapes->arena);
	pthread_mutex_destroy(&shapes->lock);
}

static int add(struct ts_shapes *shapes, const struct ts_field *fields, uint32_t count)
{
	struct ts_shape shape = { .field_count = count };
	int result;

	shape.fields = ts_arena_copy(&shapes->arena, fields, count * sizeof(*fields));
	if (!shape.fields)
		return TS_ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		shape.value_count += ts_arg_has_value(fields[i].type) ? 1 : 0;
	pthread_mutex_lock(&shapes->lock);
	result = ts_grow_array((void **)&shapes->shapes, &shapes->capacity, shapes->count + 1,
			       sizeof(shape));
	if (!result)
		shapes->shapes[shapes->count++] = shape;
	pthread_mutex_unlock(&shapes->lock);
	return result;
}

uint32_t ts_shapes_intern(struct ts_shapes *shapes, const struct ts_field *fields, uint32_t count,
			  bool *ret_new)
{
	uint32_t id;

	*ret_new = false;
	if (count > TS_SHAPE_MAX_FIELDS)
		return 0;
	id = ts_strmap_intern(&shapes->ids, (const char *)fields, count * sizeof(*fields), ret_new);
	if (id == TS_STRMAP_NONE)
		return 0;
	if (*ret_new && add(shapes, fields, count))
		return 0;
	return id;
}

struct ts_shape ts_shapes_get(struct ts_shapes *shapes, uint32_t id)
{
	struct ts_shape shape = { 0 };

	pthread_mutex_lock(&shapes->lock);
	if (id - shapes->first_id < shapes->count)
		shape = shapes->shapes[id - shapes->first_id];
	pthread_mutex_unlock(&shapes->lock);
	return shape;
}
