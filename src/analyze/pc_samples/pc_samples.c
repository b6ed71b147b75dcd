/* SPDX-License-Identifier: Apache-2.0 */
/* Counts instruction samples by kernel, instruction and stall reason; see pc_samples.h. */
#include "analyze/pc_samples/pc_samples_internal.h"

#include <assert.h>

#include "base/ns.h"
#include "base/text.h"

TS_DEFINE_AUTO(ts_batch, ts_batch_free);

#define MOST_CODE_BYTES (UINT64_C(1) << 30)

/* ---- rows ---- */

int ts_pc_samples_each_row(struct ts_pc_samples *hot, enum ts_table_id table, uint64_t mask,
			   ts_pc_samples_row *each, struct ts_error *err)
{
	struct ts_reader *reader = hot->store->reader;
	TS_AUTO(ts_batch) batch = NULL;
	int rc = ts_batch_new(&batch, reader, err);

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(reader); i++) {
		if (ts_reader_chunk(reader, i)->table != table)
			continue;
		rc = ts_batch_read(batch, i, mask, err);
		for (uint32_t row = 0; !rc && row < batch->rows; row++)
			if (each(hot, batch, row))
				rc = ts_error_set(err, TS_ENOMEM, "no memory");
	}
	return rc;
}

static int64_t weight_of(const struct ts_batch *batch, uint32_t row)
{
	int64_t weight = ts_pc_samples_column(batch, TS_COLUMN_OF(sample, weight), row);

	return weight > 0 ? weight : 1;
}

/* ---- functions ---- */

/* The innermost frame of a row's stack; NULL: it is not an instruction. */
static const struct ts_frame_row *instruction_of(struct ts_pc_samples *hot,
						 const struct ts_batch *batch, uint32_t row,
						 int64_t *ret_frame)
{
	struct ts_reader *reader = hot->store->reader;
	const struct ts_stack_row *stack =
		ts_reader_entity(reader, TS_TABLE_STACK,
				 ts_pc_samples_column(batch, TS_COLUMN_OF(sample, stack), row));
	const struct ts_frame_row *frame =
		stack ? ts_reader_entity(reader, TS_TABLE_FRAME, stack->frame) : NULL;

	if (!frame || frame->kind != TS_FRAME_INSTRUCTION)
		return NULL;
	*ret_frame = stack->frame;
	return frame;
}

static struct ts_string module_of(struct ts_reader *reader, const struct ts_frame_row *frame)
{
	const struct ts_mapping_row *mapping =
		ts_reader_entity(reader, TS_TABLE_MAPPING, frame->mapping);

	return ts_reader_string(reader, mapping ? mapping->path : frame->file);
}

/* Number of a frame's function; TS_STRMAP_NONE: no memory. */
static uint32_t name_function(struct ts_pc_samples *hot, const struct ts_frame_row *frame)
{
	struct ts_reader *reader = hot->store->reader;
	struct ts_string name = ts_reader_string(reader, frame->name);
	struct ts_string module = module_of(reader, frame);
	TS_SCOPED(ts_text) key = { 0 };

	ts_text_append(&key, name.data, name.length);
	ts_text_append_char(&key, '\0');
	ts_text_append(&key, module.data, module.length);
	return ts_text_status(&key)
		       ? TS_STRMAP_NONE
		       : ts_strmap_intern(&hot->store->functions, key.data, key.length, NULL);
}

/* False: no memory. */
static bool function_of(struct ts_pc_samples *hot, int64_t id, const struct ts_frame_row *frame,
			uint32_t *ret_function)
{
	bool is_new = false;
	uint64_t *position = ts_map_insert(&hot->store->frames, (uint64_t)id, &is_new);

	if (!position)
		return false;
	if (is_new)
		*position = name_function(hot, frame);
	*ret_function = (uint32_t)*position;
	return *ret_function != TS_STRMAP_NONE;
}

/* Counts all functions; choose() selects from them later. */
static int count_function(struct ts_pc_samples *hot, const struct ts_batch *batch, uint32_t row)
{
	int64_t id;
	const struct ts_frame_row *frame = instruction_of(hot, batch, row, &id);
	uint32_t function;

	if (!frame)
		return TS_OK;
	if (!function_of(hot, id, frame, &function))
		return TS_ENOMEM;
	if (function >= hot->kernel_count) {
		/* Ids are dense: a new one is the next index. */
		if (ts_grow_array((void **)&hot->kernels, &hot->store->kernel_capacity,
				  hot->kernel_count + 1, sizeof(*hot->kernels)))
			return TS_ENOMEM;
		hot->kernels[hot->kernel_count++] = (struct ts_pc_samples_kernel){ 0 };
	}
	hot->kernels[function].samples =
		ts_ns_add(hot->kernels[function].samples, weight_of(batch, row));
	return TS_OK;
}

static int compare_kernels(const void *a, const void *b)
{
	const struct ts_pc_samples_kernel *left = a, *right = b;

	if (left->samples != right->samples)
		return TS_COMPARE(right->samples, left->samples);
	return strcmp(left->name, right->name);
}

/* Ways to match a name; the first that matches any kernel is used. */
enum name_match { MATCH_NAME, MATCH_GLOB, MATCH_PART };

static bool is_called(const struct ts_pc_samples_kernel *kernel, const char *name,
		      enum name_match match)
{
	if (match == MATCH_NAME)
		return strcmp(kernel->name, name) == 0;
	if (match == MATCH_GLOB)
		return ts_glob_match(name, kernel->name, strlen(kernel->name));
	return strstr(kernel->name, name) != NULL;
}

static bool is_any_called(const struct ts_pc_samples *hot, const char *name, enum name_match match)
{
	for (size_t i = 0; i < hot->kernel_count; i++)
		if (is_called(&hot->kernels[i], name, match))
			return true;
	return false;
}

/* The error for a name without samples; it names the hottest kernel. */
static int no_such_kernel(const struct ts_pc_samples *hot, const char *name, struct ts_error *err)
{
	const struct ts_pc_samples_kernel *hottest = hot->kernels;

	if (!hot->kernel_count)
		return ts_error_set(err, TS_ENOTFOUND,
				    "the trace has no PC samples: record with --pc-sampling");
	return ts_error_set(
		err, TS_ENOTFOUND,
		"no sampled kernel has the name '%.100s'; %zu kernels were sampled, the hottest "
		"is '%.200s'",
		name, hot->kernel_count, hottest->name);
}

/* Keeps the kernels that match, hottest first. */
static int choose(struct ts_pc_samples *hot, const char *name, struct ts_error *err)
{
	enum name_match match = MATCH_NAME;
	size_t kept = 0;

	for (size_t i = 0; i < hot->kernel_count; i++) {
		struct ts_pc_samples_kernel *kernel = &hot->kernels[i];

		kernel->name = ts_strmap_text(&hot->store->functions, (uint32_t)i, NULL);
		kernel->module = kernel->name + strlen(kernel->name) + 1;
	}
	while (match < MATCH_PART && !is_any_called(hot, name, match))
		match++;
	ts_sort(hot->kernels, hot->kernel_count, sizeof(*hot->kernels), compare_kernels);
	for (size_t i = 0; i < hot->kernel_count; i++)
		if (is_called(&hot->kernels[i], name, match)) {
			struct ts_pc_samples_kernel kernel = hot->kernels[i];

			/* Keep the others after them, for the message. */
			memmove(&hot->kernels[kept + 1], &hot->kernels[kept],
				(i - kept) * sizeof(kernel));
			hot->kernels[kept++] = kernel;
		}
	if (!kept)
		return no_such_kernel(hot, name, err);
	hot->kernel_count = kept;
	return TS_OK;
}

/* ---- instructions ---- */

static int64_t correlation_of(struct ts_pc_samples *hot, const struct ts_batch *batch, uint32_t row)
{
	struct ts_reader *reader = hot->store->reader;
	const struct ts_shape *shape = ts_reader_shape(
		reader, ts_pc_samples_column(batch, TS_COLUMN_OF(sample, shape), row));
	const int64_t *values;

	if (!shape || !shape->field_count || !batch->arg_offsets)
		return TS_ABSENT;
	values = batch->arg_values + batch->arg_offsets[row];
	for (uint32_t i = 0, at = 0; i < shape->field_count; i++) {
		struct ts_string key = ts_reader_string(reader, shape->fields[i].key);

		if (!ts_arg_has_value(shape->fields[i].type))
			continue;
		if (shape->fields[i].type == TS_ARG_INT && strcmp(key.data, "correlation") == 0)
			return values[at];
		at++;
	}
	return TS_ABSENT;
}

static int count_launch(struct ts_pc_samples *hot, int64_t correlation, int64_t weight)
{
	uint64_t *samples;

	if (correlation == TS_ABSENT)
		return TS_OK;
	samples = ts_map_insert(&hot->store->launches, (uint64_t)correlation, NULL);
	if (!samples)
		return TS_ENOMEM;
	*samples += (uint64_t)weight;
	hot->is_exact = true;
	return TS_OK;
}

static int count_tally(struct ts_pc_samples *hot, int64_t offset, int64_t state, int64_t weight)
{
	struct ts_pc_samples_store *store = hot->store;
	struct ts_string name = ts_reader_string(store->reader, state);
	uint32_t reason = ts_strmap_intern(&store->reasons, name.data, name.length, NULL);
	bool is_new = false;
	uint64_t *position;

	if (reason == TS_STRMAP_NONE)
		return TS_ENOMEM;
	position = ts_pairmap_insert(&store->positions, (uint64_t)offset, reason, &is_new);
	if (!position || (is_new && ts_grow_array((void **)&store->tallies, &store->tally_capacity,
						  store->tally_count + 1, sizeof(*store->tallies))))
		return TS_ENOMEM;
	if (is_new) {
		*position = store->tally_count++;
		store->tallies[*position] =
			(struct ts_pc_samples_tally){ .offset = offset, .reason = reason };
	}
	store->tallies[*position].samples = ts_ns_add(store->tallies[*position].samples, weight);
	return TS_OK;
}

/* Is it the hottest kernel? */
static bool is_chosen(const struct ts_pc_samples *hot, uint32_t function)
{
	assert(hot->kernels);
	return ts_strmap_text(&hot->store->functions, function, NULL) == hot->kernels[0].name;
}

static int count_instruction(struct ts_pc_samples *hot, const struct ts_batch *batch, uint32_t row)
{
	int64_t id, weight = weight_of(batch, row);
	const struct ts_frame_row *frame = instruction_of(hot, batch, row, &id);
	uint32_t function;
	int rc;

	if (!frame)
		return TS_OK;
	if (!function_of(hot, id, frame, &function))
		return TS_ENOMEM;
	if (!is_chosen(hot, function))
		return TS_OK;
	rc = count_tally(hot, frame->pc == TS_ABSENT ? 0 : frame->pc,
			 ts_pc_samples_column(batch, TS_COLUMN_OF(sample, state), row), weight);
	return rc ? rc : count_launch(hot, correlation_of(hot, batch, row), weight);
}

/* ---- lists ---- */

/* By instruction, then the reason with the most samples first. */
static int compare_tallies(const void *a, const void *b)
{
	const struct ts_pc_samples_tally *left = a, *right = b;

	if (left->offset != right->offset)
		return TS_COMPARE(left->offset, right->offset);
	if (left->samples != right->samples)
		return TS_COMPARE(right->samples, left->samples);
	return TS_COMPARE(left->reason, right->reason);
}

static int compare_instructions(const void *a, const void *b)
{
	const struct ts_pc_samples_instruction *left = a, *right = b;

	if (left->samples != right->samples)
		return TS_COMPARE(right->samples, left->samples);
	return TS_COMPARE(left->offset, right->offset);
}

static int compare_reasons(const void *a, const void *b)
{
	const struct ts_pc_samples_reason *left = a, *right = b;

	if (left->samples != right->samples)
		return TS_COMPARE(right->samples, left->samples);
	return strcmp(left->name, right->name);
}

static void add_tally(struct ts_pc_samples *hot, const struct ts_pc_samples_tally *tally)
{
	struct ts_pc_samples_instruction *last =
		hot->instruction_count ? &hot->instructions[hot->instruction_count - 1] : NULL;
	struct ts_pc_samples_reason *reason = &hot->reasons[tally->reason];

	if (!last || last->offset != tally->offset) {
		last = &hot->instructions[hot->instruction_count++];
		*last = (struct ts_pc_samples_instruction){ .offset = tally->offset,
							    .first_reason = hot->why_count };
	}
	last->samples = ts_ns_add(last->samples, tally->samples);
	last->reason_count++;
	hot->why[hot->why_count++] =
		(struct ts_pc_samples_reason){ .name = reason->name, .samples = tally->samples };
	reason->samples = ts_ns_add(reason->samples, tally->samples);
}

static int make_lists(struct ts_pc_samples *hot, struct ts_error *err)
{
	struct ts_pc_samples_store *store = hot->store;

	hot->reason_count = ts_strmap_count(&store->reasons);
	hot->reasons = calloc(hot->reason_count + 1, sizeof(*hot->reasons));
	hot->instructions = calloc(store->tally_count + 1, sizeof(*hot->instructions));
	hot->why = calloc(store->tally_count + 1, sizeof(*hot->why));
	if (!hot->reasons || !hot->instructions || !hot->why)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	for (uint32_t i = 0; i < hot->reason_count; i++)
		hot->reasons[i] = (struct ts_pc_samples_reason){
			.name = ts_strmap_text(&store->reasons, i, NULL)
		};
	ts_sort(store->tallies, store->tally_count, sizeof(*store->tallies), compare_tallies);
	for (size_t i = 0; i < store->tally_count; i++)
		add_tally(hot, &store->tallies[i]);
	ts_sort(hot->instructions, hot->instruction_count, sizeof(*hot->instructions),
		compare_instructions);
	ts_sort(hot->reasons, hot->reason_count, sizeof(*hot->reasons), compare_reasons);
	return TS_OK;
}

/* ---- construction ---- */

#define SAMPLE_MASK                                                                           \
	(TS_MASK_OF(sample, stack) | TS_MASK_OF(sample, weight) | TS_MASK_OF(sample, state) | \
	 TS_MASK_OF(sample, shape))

static int fill(struct ts_pc_samples *hot, const char *name, struct ts_error *err)
{
	int rc = ts_pc_samples_each_row(hot, TS_TABLE_SAMPLE, SAMPLE_MASK, count_function, err);

	if (!rc)
		rc = choose(hot, name, err);
	if (!rc)
		rc = ts_pc_samples_each_row(hot, TS_TABLE_SAMPLE, SAMPLE_MASK, count_instruction,
					    err);
	if (!rc)
		rc = make_lists(hot, err);
	if (!rc)
		rc = ts_pc_samples_find_launches(hot, err);
	return rc ? rc : ts_reader_status(hot->store->reader, err);
}

int ts_pc_samples_new(struct ts_pc_samples **ret_hot, struct ts_reader *reader, const char *name,
		      struct ts_error *err)
{
	TS_AUTO(ts_pc_samples) hot = calloc(1, sizeof(*hot));
	int rc;

	if (hot)
		hot->store = calloc(1, sizeof(*hot->store));
	if (!hot || !hot->store)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	hot->store->reader = reader;
	ts_strmap_init(&hot->store->functions, 0);
	ts_strmap_init(&hot->store->reasons, 0);
	rc = fill(hot, name, err);
	if (!rc)
		*ret_hot = TS_STEAL(hot);
	return rc;
}

void ts_pc_samples_free(struct ts_pc_samples *hot)
{
	if (!hot)
		return;
	if (hot->store) {
		ts_strmap_release(&hot->store->functions);
		ts_strmap_release(&hot->store->reasons);
		ts_map_release(&hot->store->frames);
		ts_map_release(&hot->store->launches);
		ts_pairmap_release(&hot->store->positions);
		free(hot->store->tallies);
		ts_pc_samples_release_launches(hot->store);
	}
	free(hot->store);
	free(hot->kernels);
	free(hot->reasons);
	free(hot->instructions);
	free(hot->why);
	free(hot->launches);
	free(hot);
}

/* ---- code ---- */

static const struct ts_object_row *find_module(struct ts_reader *reader, const char *name)
{
	const struct ts_object_row *row;
	size_t cursor = 0;
	int64_t id;

	while ((row = ts_reader_entity_next(reader, TS_TABLE_OBJECT, &cursor, &id)))
		if (row->kind == TS_OBJECT_MODULE && row->blob &&
		    strcmp(ts_reader_string(reader, row->name).data, name) == 0)
			return row;
	return NULL;
}

int ts_pc_samples_code(const struct ts_pc_samples *hot, void **ret_image, size_t *ret_bytes,
		       struct ts_error *err)
{
	struct ts_reader *reader = hot->store->reader;
	const struct ts_object_row *module = find_module(reader, hot->kernels[0].module);
	TS_AUTO_FREE void *image = NULL;
	uint64_t bytes = 0;
	int rc;

	if (!module)
		return ts_error_set(err, TS_ENOTFOUND, "the trace does not contain its code");
	rc = ts_reader_blob_size(reader, module->blob, &bytes, err);
	if (!rc && bytes > MOST_CODE_BYTES)
		rc = ts_error_set(err, TS_EFORMAT, "its code is too large");
	if (rc)
		return rc;
	image = ts_alloc_array(bytes, 1);
	if (!image)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	rc = ts_reader_blob_read(reader, module->blob, 0, image, bytes, err);
	if (rc)
		return rc;
	*ret_image = TS_STEAL(image);
	*ret_bytes = bytes;
	return TS_OK;
}
