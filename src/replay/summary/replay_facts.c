/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the facts in one pass over objects and one over commands. */
#include "replay/summary/replay_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "replay/plan/plan.h"
#include "replay/stream/stream_internal.h"
#include "replay/summary/module_facts.h"
#include "trace/trace_meta.h"

/* Bytes of text that the reader may cache. */
#define KEPT_TEXTS ((size_t)64 << 20)
/* Names of kernels that are kept for a program. */
#define MOST_NAMES 256u

TS_DEFINE_AUTO(ts_batch, ts_batch_free);

/* A module without a source that a replay compiles. */
struct bound {
	int64_t process, id;
	uint64_t number;
	const char *from;
	bool has_source;
	struct ts_text kernels;
};

struct scan {
	struct ts_replay_facts *facts;
	struct ts_reader *reader;
	struct ts_map reasons; /* object row -> index of `texts`, of those that are unreplayable */
	const char **texts;
	size_t text_count, text_capacity;
	struct bound *bounds;
	size_t bound_count, bound_capacity;
	struct ts_map bound_rows; /* module row -> index of `bounds` */
	struct ts_map newest;     /* process row -> index + 1 of its last window */
	struct ts_map graphs;     /* graph row -> nodes */
	struct ts_map sparse;     /* processes (rows) with sparse memory */
	struct ts_replay_modules modules;
	struct ts_arena line;
};

static const char *keep(struct scan *scan, const char *text)
{
	return text ? ts_arena_strdup_len(&scan->facts->arena, text, strlen(text)) : NULL;
}

/* ---- reasons ---- */

static void add_reason(struct scan *scan, struct ts_replay_reason *reasons, size_t *count,
		       const char *what, const char *why, uint64_t number)
{
	struct ts_replay_reason *reason;

	for (size_t i = 0; i < *count; i++) {
		if (!strcmp(reasons[i].what, what) && !strcmp(reasons[i].why, why)) {
			reasons[i].count++;
			return;
		}
	}
	if (*count == TS_REPLAY_REASONS) {
		reasons[TS_REPLAY_REASONS - 1].count++;
		return;
	}
	reason = &reasons[(*count)++];
	/* The last one stands for all that have no place. */
	if (*count == TS_REPLAY_REASONS) {
		what = "";
		why = "other reasons";
	}
	*reason = (struct ts_replay_reason){ keep(scan, what), keep(scan, why), 1, number };
	if (!reason->what || !reason->why)
		(*count)--;
}

/* ---- objects ---- */

static int mark_unreplayable(struct scan *scan, const struct ts_object_row *row,
			     const struct ts_replay_details *details, const char *why)
{
	if (ts_grow_array((void **)&scan->texts, &scan->text_capacity, scan->text_count + 1,
			  sizeof(*scan->texts)) ||
	    ts_map_put(&scan->reasons, (uint64_t)row->id, scan->text_count))
		return TS_ENOMEM;
	scan->texts[scan->text_count] = keep(scan, why);
	if (!scan->texts[scan->text_count])
		return TS_ENOMEM;
	scan->text_count++;
	/* A kernel of such a program has the same reason. */
	if (row->kind != TS_OBJECT_FUNCTION)
		add_reason(scan, scan->facts->objects, &scan->facts->object_reason_count, "", why,
			   details->number);
	return TS_OK;
}

static int add_bound(struct scan *scan, const struct ts_object_row *row,
		     const struct ts_replay_details *details)
{
	struct bound *bound;

	for (size_t i = 0; i < scan->bound_count; i++)
		if (scan->bounds[i].process == row->process &&
		    scan->bounds[i].number == details->number)
			return ts_map_put(&scan->bound_rows, (uint64_t)row->id, i);
	if (ts_grow_array((void **)&scan->bounds, &scan->bound_capacity, scan->bound_count + 1,
			  sizeof(*scan->bounds)) ||
	    ts_map_put(&scan->bound_rows, (uint64_t)row->id, scan->bound_count))
		return TS_ENOMEM;
	bound = &scan->bounds[scan->bound_count++];
	*bound = (struct bound){ .process = row->process,
				 .id = row->id,
				 .number = details->number,
				 .from = keep(scan, details->from_what ? details->from_what : ""),
				 .has_source = row->blob != 0 };
	return bound->from ? TS_OK : TS_ENOMEM;
}

/* Several kernels of one name are named once. */
static void add_kernel(struct scan *scan, const struct ts_object_row *row)
{
	struct ts_string name = ts_reader_string(scan->reader, row->name);
	size_t length = strlen(name.data);
	struct ts_text *kernels;
	const char *found;
	uint64_t index;

	if (row->kind != TS_OBJECT_FUNCTION || row->parent <= 0 || !length ||
	    !ts_map_get(&scan->bound_rows, (uint64_t)row->parent, &index))
		return;
	kernels = &scan->bounds[index].kernels;
	for (found = strstr(ts_text_cstr(kernels), name.data); found;
	     found = strstr(found + 1, name.data))
		if ((found == kernels->data || found[-1] == ' ') &&
		    (!found[length] || found[length] == ','))
			return;
	if (kernels->length < MOST_NAMES * 16u)
		ts_text_printf(kernels, "%s%s", kernels->length ? ", " : "", name.data);
}

/* Of CUDA (docs/cuda-replay.md, 4.1). */
static int add_cuda(struct scan *scan, const struct ts_object_row *row,
		    const struct ts_replay_details *details)
{
	if (row->kind == TS_OBJECT_GRAPH)
		return ts_map_put(&scan->graphs, (uint64_t)row->id, details->nodes.value);
	if (row->kind == TS_OBJECT_MEMORY && details->is_sparse)
		return ts_map_put(&scan->sparse, (uint64_t)row->process, 1);
	if (row->kind == TS_OBJECT_MODULE)
		return ts_replay_modules_add(&scan->modules, scan->reader, row);
	return ts_replay_modules_object(&scan->modules, row, details);
}

static int add_object(struct scan *scan, const struct ts_object_row *row, struct ts_error *err)
{
	struct ts_string json = ts_reader_string(scan->reader, row->details);
	struct ts_replay_details details;
	const char *why;
	int rc = TS_OK;

	ts_arena_clear(&scan->line);
	if (row->id <= 0 ||
	    ts_replay_details_parse(&details, &scan->line, json.data, json.length, NULL))
		return TS_OK;
	add_kernel(scan, row);
	if (add_cuda(scan, row, &details))
		return ts_replay_no_memory(err);
	why = details.unreplayable;
	if (!why && row->kind == TS_OBJECT_MODULE && !row->blob && !details.binary_count &&
	    !details.failed)
		why = "neither its source nor a binary was captured";
	/* Rows are repeated when an object is destroyed or described again. */
	if (why && !ts_map_get(&scan->reasons, (uint64_t)row->id, &(uint64_t){ 0 }))
		rc = mark_unreplayable(scan, row, &details, why);
	else if (!why && row->kind == TS_OBJECT_MODULE && details.binary_count)
		rc = add_bound(scan, row, &details);
	return rc ? ts_replay_no_memory(err) : TS_OK;
}

/* ---- windows ---- */

static struct ts_replay_window_facts *add_window(struct scan *scan, int64_t process)
{
	struct ts_replay_facts *facts = scan->facts;
	const struct ts_process_row *row =
		process > 0 ? ts_reader_entity(scan->reader, TS_TABLE_PROCESS, process) : NULL;
	struct ts_replay_window_facts *window;

	if (ts_grow_array((void **)&facts->windows, &facts->window_capacity,
			  facts->window_count + 1, sizeof(*facts->windows)) ||
	    ts_map_put(&scan->newest, (uint64_t)process, facts->window_count + 1))
		return NULL;
	window = &facts->windows[facts->window_count++];
	*window = (struct ts_replay_window_facts){
		.process = process,
		.pid = row ? row->pid : TS_ABSENT,
		.process_name =
			keep(scan, row ? ts_reader_string(scan->reader, row->name).data : ""),
	};
	facts->several_processes |= facts->windows[0].process != process;
	return window->process_name ? window : NULL;
}

static struct ts_replay_window_facts *newest_window(const struct scan *scan, int64_t process)
{
	uint64_t index;

	return ts_map_get(&scan->newest, (uint64_t)process, &index)
		       ? &scan->facts->windows[index - 1]
		       : NULL;
}

static int add_limit(struct scan *scan, const struct ts_command_row *row)
{
	struct ts_string json = ts_reader_string(scan->reader, row->details);
	struct ts_replay_window_facts *window = newest_window(scan, row->process);
	struct ts_replay_details details;

	ts_arena_clear(&scan->line);
	if (ts_replay_details_parse(&details, &scan->line, json.data, json.length, NULL))
		details = (struct ts_replay_details){ 0 };
	/* A window that could not be opened has only an end. */
	if (row->kind == TS_COMMAND_OPEN || !window || window->has_close)
		window = add_window(scan, row->process);
	if (!window)
		return TS_ENOMEM;
	if (!window->number)
		window->number = details.window;
	if (details.pieces.is_known) {
		window->has_expected = true;
		window->expected_pieces = details.pieces.value;
	}
	if (row->kind == TS_COMMAND_OPEN) {
		window->has_open = true;
		window->from_start = details.from_start;
	} else {
		window->has_close = true;
		window->failed = keep(scan, details.failed);
		window->unchecked = keep(scan, details.unchecked);
	}
	return TS_OK;
}

/* ---- commands ---- */

/* The reason of an object that the command uses; NULL: they can all be replayed. */
static const char *reason_of_objects(const struct scan *scan, const struct ts_command_row *row)
{
	const int64_t objects[] = { row->object, row->other, row->queue };

	for (size_t i = 0; i < TS_ARRAY_SIZE(objects); i++) {
		uint64_t index;

		if (objects[i] > 0 && scan->texts &&
		    ts_map_get(&scan->reasons, (uint64_t)objects[i], &index))
			return scan->texts[index];
	}
	return NULL;
}

static bool mentions(struct ts_string json, const char *key)
{
	return memmem(json.data, json.length, key, strlen(key)) != NULL;
}

static void look_at_command(struct scan *scan, struct ts_replay_window_facts *window,
			    const struct ts_command_row *row)
{
	struct ts_string json = ts_reader_string(scan->reader, row->details);
	const char *kind = ts_enum_name("command_kind", row->kind), *why = NULL;
	char call[128], text[256];

	window->ambiguous += mentions(json, "\"ambiguous\":true");
	if (mentions(json, "\"unreplayable\"") &&
	    ts_json_member_string(json.data, json.length, "unreplayable", text, sizeof(text)))
		why = text;
	else if (row->kind == TS_COMMAND_HOST)
		why = "the host function is not in the trace";
	else
		why = reason_of_objects(scan, row);
	if (!why || ts_replay_is_lifetime((enum ts_command_kind)row->kind))
		return;
	snprintf(call, sizeof(call), "%s", kind ? kind : "unknown");
	ts_json_member_string(json.data, json.length, "call", call, sizeof(call));
	window->unreplayable++;
	add_reason(scan, window->reasons, &window->reason_count, call, why,
		   (uint64_t)row->sequence);
}

/* A check, or a piece of the memory that the window begins with. */
static void add_check(struct scan *scan, struct ts_replay_window_facts *window,
		      const struct ts_command_row *row)
{
	struct ts_string json = ts_reader_string(scan->reader, row->details);
	char why[8] = "";

	if (mentions(json, "\"open\"") &&
	    ts_json_member_string(json.data, json.length, "why", why, sizeof(why)) &&
	    !strcmp(why, "open")) {
		window->pieces++;
		if (mentions(json, "\"more\""))
			window->more_pieces++;
		if (row->bytes > 0)
			window->piece_bytes += (uint64_t)row->bytes;
	} else {
		window->checks++;
	}
}

static int add_command(struct scan *scan, const struct ts_command_row *row, struct ts_error *err)
{
	struct ts_replay_window_facts *window;
	uint64_t nodes;

	if (row->kind == TS_COMMAND_OPEN || row->kind == TS_COMMAND_CLOSE)
		return add_limit(scan, row) ? ts_replay_no_memory(err) : TS_OK;
	window = newest_window(scan, row->process);
	if (!window)
		return TS_OK;
	if (row->kind == TS_COMMAND_CHECK) {
		add_check(scan, window, row);
		return TS_OK;
	}
	/* Describes a node of a graph. */
	if (row->queue > 0 && ts_map_get(&scan->graphs, (uint64_t)row->queue, &nodes)) {
		look_at_command(scan, window, row);
		return TS_OK;
	}
	if (row->kind == TS_COMMAND_LAUNCH && row->object > 0 &&
	    ts_map_get(&scan->graphs, (uint64_t)row->object, &nodes)) {
		window->graph_launches++;
		window->graph_nodes += nodes;
	}
	if (row->sequence > 0) {
		window->first = window->first ? window->first : (uint64_t)row->sequence;
		window->last = (uint64_t)row->sequence;
	}
	window->commands++;
	window->launches += row->kind == TS_COMMAND_LAUNCH;
	scan->facts->commands++;
	look_at_command(scan, window, row);
	return TS_OK;
}

/* ---- tables ---- */

static int scan_table(struct scan *scan, uint16_t table, struct ts_error *err)
{
	TS_AUTO(ts_batch) batch = NULL;
	int rc = ts_batch_new(&batch, scan->reader, err);

	for (size_t i = 0; !rc && i < ts_reader_chunk_count(scan->reader); i++) {
		if (ts_reader_chunk(scan->reader, i)->table != table ||
		    ts_batch_read(batch, i, TS_MASK_ALL, NULL))
			continue;
		for (uint32_t row = 0; !rc && row < batch->rows; row++) {
			union {
				struct ts_object_row object;
				struct ts_command_row command;
			} one;

			ts_batch_row(batch, row, &one);
			rc = table == TS_TABLE_OBJECT ? add_object(scan, &one.object, err)
						      : add_command(scan, &one.command, err);
		}
		ts_reader_trim(scan->reader, KEPT_TEXTS);
	}
	return rc;
}

/* Windows without all of the memory that they begin with; as the loader finds them. */
static int check_pieces(struct scan *scan, struct ts_error *err)
{
	for (size_t i = 0; i < scan->facts->window_count; i++) {
		struct ts_replay_window_facts *window = &scan->facts->windows[i];
		uint64_t is_sparse;
		char text[TS_REPLAY_PIECES_TEXT];

		if (!window->has_open || window->failed ||
		    !ts_map_get(&scan->sparse, (uint64_t)window->process, &is_sparse) ||
		    !ts_replay_pieces_fault(window->has_expected, window->expected_pieces,
					    window->pieces - window->more_pieces, text,
					    sizeof(text)))
			continue;
		window->failed = keep(scan, text);
		if (!window->failed)
			return ts_replay_no_memory(err);
	}
	return TS_OK;
}

static int add_programs(struct scan *scan, struct ts_error *err)
{
	struct ts_replay_facts *facts = scan->facts;

	for (size_t i = 0; i < scan->bound_count; i++) {
		struct bound *bound = &scan->bounds[i];
		struct ts_replay_bound_program *program;

		/* Inputs of a linker have no kernels. */
		if (!bound->kernels.length)
			continue;
		if (ts_grow_array((void **)&facts->programs, &facts->program_capacity,
				  facts->program_count + 1, sizeof(*facts->programs)))
			return ts_replay_no_memory(err);
		program = &facts->programs[facts->program_count++];
		*program = (struct ts_replay_bound_program){
			.process = bound->process,
			.number = bound->number,
			.from = bound->from,
			.has_source = bound->has_source,
			.kernels = keep(scan, ts_text_cstr(&bound->kernels)),
		};
		if (!program->kernels)
			return ts_replay_no_memory(err);
	}
	return TS_OK;
}

static void on_fact(void *context, struct ts_string value)
{
	struct ts_replay_facts *facts = context;
	struct ts_json js;

	ts_json_init(&js, value.data, value.length, true);
	facts->has_contexts |= value.length > 0;
	facts->was_requested |= !ts_json_find_member(&js, "replayable");
}

static void on_cuda(void *context, struct ts_string value)
{
	struct ts_replay_facts *facts = context;
	struct ts_json js;

	facts->has_cuda |= value.length > 0;
	ts_json_init(&js, value.data, value.length, true);
	facts->was_requested |= !ts_json_find_member(&js, "replayable");
}

static void release(struct scan *scan)
{
	for (size_t i = 0; i < scan->bound_count; i++)
		ts_text_release(&scan->bounds[i].kernels);
	free(scan->bounds);
	free(scan->texts);
	ts_map_release(&scan->reasons);
	ts_map_release(&scan->bound_rows);
	ts_map_release(&scan->newest);
	ts_map_release(&scan->graphs);
	ts_map_release(&scan->sparse);
	ts_replay_modules_release(&scan->modules);
	ts_arena_release(&scan->line);
}

int ts_replay_facts_load(struct ts_replay_facts **ret_facts, struct ts_reader *reader,
			 struct ts_error *err)
{
	TS_AUTO(ts_replay_facts) facts = calloc(1, sizeof(*facts));
	struct scan scan = { .facts = facts, .reader = reader };
	int rc;

	if (!facts)
		return ts_replay_no_memory(err);
	rc = scan_table(&scan, TS_TABLE_OBJECT, err);
	if (!rc)
		rc = scan_table(&scan, TS_TABLE_COMMAND, err);
	if (!rc)
		rc = check_pieces(&scan, err);
	if (!rc)
		rc = add_programs(&scan, err);
	facts->modules = scan.modules.count;
	facts->ptx_modules = scan.modules.ptx;
	facts->unfit_modules = scan.modules.unfit;
	facts->compute = scan.modules.compute;
	ts_trace_meta(reader, "opencl", on_fact, facts);
	ts_trace_meta(reader, "cuda", on_cuda, facts);
	release(&scan);
	if (!rc)
		*ret_facts = TS_STEAL(facts);
	return rc;
}

void ts_replay_facts_free(struct ts_replay_facts *facts)
{
	if (!facts)
		return;
	free(facts->windows);
	free(facts->programs);
	ts_arena_release(&facts->arena);
	free(facts);
}
