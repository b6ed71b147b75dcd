/* SPDX-License-Identifier: Apache-2.0 */
/* See arrow_batch.h. */
#include "arrow/arrow_batch.h"

#include <stdlib.h>

#include "base/memory.h"

#define BUFFERS 3u

struct ts_arrow_batch *ts_arrow_batch_new(struct ts_arrow_memory *memory, size_t field_count)
{
	struct ts_arrow_batch *batch = calloc(1, sizeof(*batch));

	if (!batch)
		return NULL;
	atomic_init(&batch->references, 1);
	batch->memory = memory;
	ts_arrow_memory_hold(memory);
	batch->field_count = field_count;
	batch->data = calloc(field_count + 1, sizeof(*batch->data));
	batch->arrays = calloc(field_count + 1, sizeof(*batch->arrays));
	batch->dictionaries = calloc(field_count + 1, sizeof(*batch->dictionaries));
	batch->children = calloc(field_count + 1, sizeof(*batch->children));
	batch->buffers = calloc(1 + 2 * BUFFERS * field_count, sizeof(*batch->buffers));
	if (!batch->data || !batch->arrays || !batch->dictionaries || !batch->children ||
	    !batch->buffers) {
		ts_arrow_batch_drop(batch);
		return NULL;
	}
	return batch;
}

void ts_arrow_batch_drop(struct ts_arrow_batch *batch)
{
	if (!batch || atomic_fetch_sub_explicit(&batch->references, 1, memory_order_acq_rel) != 1)
		return;
	ts_arrow_kept_release(&batch->kept);
	ts_arrow_memory_drop(batch->memory);
	free(batch->data);
	free(batch->arrays);
	free(batch->dictionaries);
	free((void *)batch->children);
	free((void *)batch->buffers);
	free(batch);
}

/* ---- arrays ---- */

/*
 * Consumers may move an array, by copying the structure, and release each one of them once;
 * `private_data` is the batch.
 */
static void release_array(struct ArrowArray *array)
{
	struct ts_arrow_batch *batch = array->private_data;

	for (int64_t i = 0; i < array->n_children; i++)
		if (array->children[i]->release)
			array->children[i]->release(array->children[i]);
	if (array->dictionary && array->dictionary->release)
		array->dictionary->release(array->dictionary);
	array->release = NULL;
	ts_arrow_batch_drop(batch);
}

static void start_array(struct ts_arrow_batch *batch, struct ArrowArray *array, int64_t length,
			const void **buffers, unsigned int buffer_count)
{
	*array = (struct ArrowArray){ .length = length,
				      .n_buffers = buffer_count,
				      .buffers = buffers,
				      .release = release_array,
				      .private_data = batch };
	atomic_fetch_add_explicit(&batch->references, 1, memory_order_relaxed);
}

static int export_dictionary(struct ts_arrow_batch *batch, struct ts_arrow_dictionary *dictionary,
			     size_t field)
{
	const void **buffers = batch->buffers + 1 + BUFFERS * (batch->field_count + field);
	const struct ts_arrow_data *data = &batch->data[field];
	uint32_t count = data->local_count;

	buffers[1] = data->local_offsets;
	buffers[2] = data->local_text;
	if (!data->local_offsets &&
	    ts_arrow_dictionary_get(dictionary, &batch->kept, &count, &buffers[1], &buffers[2]))
		return TS_ENOMEM;
	start_array(batch, &batch->dictionaries[field], count, buffers, 3);
	batch->arrays[field].dictionary = &batch->dictionaries[field];
	return TS_OK;
}

static int export_field(struct ts_arrow_batch *batch, const struct ts_arrow_field *field,
			struct ts_arrow_dictionary *dictionary, size_t index)
{
	const void **buffers = batch->buffers + 1 + BUFFERS * index;
	const struct ts_arrow_data *data = &batch->data[index];
	bool is_text = !ts_arrow_value_bytes(field) && field->kind != TS_ARROW_BOOL;

	buffers[0] = data->validity;
	buffers[1] = data->values;
	buffers[2] = data->text;
	start_array(batch, &batch->arrays[index], batch->rows, buffers, is_text ? 3 : 2);
	batch->arrays[index].null_count = data->validity ? data->null_count : 0;
	batch->children[index] = &batch->arrays[index];
	return ts_arrow_index_bytes(field) ? export_dictionary(batch, dictionary, index) : TS_OK;
}

int ts_arrow_batch_export(struct ts_arrow_batch *batch, const struct ts_arrow_fields *fields,
			  struct ts_arrow_dictionary *dictionaries, struct ArrowArray *ret_array)
{
	struct ArrowArray array;
	int result = TS_OK;

	start_array(batch, &array, batch->rows, batch->buffers, 1);
	for (size_t i = 0; !result && i < fields->count; i++) {
		result = export_field(batch, &fields->list[i], &dictionaries[i], i);
		array.n_children = (int64_t)i + 1;
	}
	array.children = batch->children;
	if (result) {
		array.release(&array);
		return result;
	}
	*ret_array = array;
	/* The reference that the array took over. */
	ts_arrow_batch_drop(batch);
	return TS_OK;
}

/* ---- schemas ---- */

static void release_schema(struct ArrowSchema *schema)
{
	for (int64_t i = 0; i < schema->n_children; i++) {
		if (schema->children[i]->release)
			schema->children[i]->release(schema->children[i]);
		free(schema->children[i]);
	}
	if (schema->dictionary) {
		if (schema->dictionary->release)
			schema->dictionary->release(schema->dictionary);
		free(schema->dictionary);
	}
	free((void *)schema->children);
	free(schema->private_data);
	schema->release = NULL;
}

static const char *format_of(const struct ts_arrow_field *field)
{
	switch (field->kind) {
	case TS_ARROW_FLOAT:
		return "g";
	case TS_ARROW_BOOL:
		return "b";
	case TS_ARROW_NAME:
		return "i";
	case TS_ARROW_ENUM:
		return "c";
	case TS_ARROW_TEXT:
	case TS_ARROW_BYTES:
	case TS_ARROW_ARGUMENTS:
		return "U";
	case TS_ARROW_BINARY:
		return "Z";
	default:
		return "l";
	}
}

/* The name is copied: schemas outlive streams. */
static int start_schema(struct ArrowSchema *schema, const char *format, const char *name,
			bool is_nullable)
{
	char *copy = strdup(name);

	*schema = (struct ArrowSchema){ .format = format,
					.name = copy,
					.flags = is_nullable ? ARROW_FLAG_NULLABLE : 0,
					.release = release_schema,
					.private_data = copy };
	return copy ? TS_OK : TS_ENOMEM;
}

static int export_child(const struct ts_arrow_field *field, struct ArrowSchema *schema)
{
	if (start_schema(schema, format_of(field), field->name, field->is_nullable))
		return TS_ENOMEM;
	if (!ts_arrow_index_bytes(field))
		return TS_OK;
	schema->dictionary = calloc(1, sizeof(*schema->dictionary));
	if (!schema->dictionary)
		return TS_ENOMEM;
	return start_schema(schema->dictionary, "u", "", false);
}

int ts_arrow_fields_export(const struct ts_arrow_fields *fields, struct ArrowSchema *ret_schema)
{
	struct ArrowSchema schema;
	int result = start_schema(&schema, "+s", "", false);

	schema.children = calloc(fields->count + 1, sizeof(*schema.children));
	if (!schema.children)
		result = TS_ENOMEM;
	for (size_t i = 0; !result && i < fields->count; i++) {
		struct ArrowSchema *child = calloc(1, sizeof(*child));

		if (!child) {
			result = TS_ENOMEM;
			break;
		}
		schema.children[schema.n_children++] = child;
		result = export_child(&fields->list[i], child);
	}
	if (result) {
		schema.release(&schema);
		return result;
	}
	*ret_schema = schema;
	return TS_OK;
}
