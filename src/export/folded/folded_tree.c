/* SPDX-License-Identifier: Apache-2.0 */
/* Tree of folded stacks: labels of frames and threads, and sorted output. See folded_tree.h. */
#include "export/folded/folded_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/ns.h"

#define FLUSH_BYTES ((size_t)1 << 20)

static int no_memory(struct ts_folded_tree *tree)
{
	return ts_error_set(tree->err, TS_ENOMEM, "no memory");
}

int ts_folded_tree_init(struct ts_folded_tree *tree, struct ts_reader *reader, bool with_lines,
			int fd, struct ts_error *err)
{
	*tree = (struct ts_folded_tree){ .reader = reader, .fd = fd, .err = err };
	ts_strmap_init(&tree->files, 0);
	ts_strmap_init(&tree->paths, 0);
	ts_strmap_init(&tree->labels, 0);
	ts_frame_keys_init(&tree->keys, reader, with_lines);
	if (ts_grow_array((void **)&tree->nodes, &tree->node_capacity, 1, sizeof(*tree->nodes)))
		return no_memory(tree);
	tree->nodes[tree->node_count++] = (struct ts_folded_node){ 0 };
	return TS_OK;
}

void ts_folded_tree_release(struct ts_folded_tree *tree)
{
	ts_frame_keys_release(&tree->keys);
	ts_strmap_release(&tree->files);
	ts_strmap_release(&tree->paths);
	ts_map_release(&tree->file_paths);
	ts_strmap_release(&tree->labels);
	ts_map_release(&tree->key_labels);
	ts_pairmap_release(&tree->steps);
	ts_pairmap_release(&tree->known);
	free(tree->nodes);
	ts_stack_list_release(&tree->path);
	ts_text_release(&tree->scratch);
	ts_text_release(&tree->out);
}

/* ---- names ---- */

/* Separators of frames and lines are replaced in names. */
static void append_clean(struct ts_text *out, const char *text, size_t length)
{
	size_t from = out->length;

	ts_utf8_sanitize(out, text, length);
	if (out->length > from)
		ts_utf8_replace_controls(out->data + from, out->length - from, ' ');
	for (size_t i = from; i < out->length; i++)
		if (out->data[i] == ';')
			out->data[i] = ':';
}

/* The short name of a file, unless another file has it. */
static bool is_short_taken(struct ts_folded_tree *tree, struct ts_string file, const char *name,
			   size_t length)
{
	uint32_t path = ts_strmap_intern(&tree->paths, file.data, file.length, NULL);
	uint32_t short_name = ts_strmap_intern(&tree->files, name, length, NULL);
	bool is_new = false;
	uint64_t *owner = ts_map_insert(&tree->file_paths, short_name, &is_new);

	if (owner && is_new)
		*owner = path;
	return owner && *owner != path;
}

static void append_file(struct ts_folded_tree *tree, int64_t frame)
{
	struct ts_string file = ts_frame_file(tree->reader, frame);
	int64_t line = ts_frame_line(tree->reader, frame);
	const char *name;
	size_t length;

	if (!file.length)
		return;
	name = ts_frame_short_file(file, &length);
	if (is_short_taken(tree, file, name, length)) {
		name = file.data;
		length = file.length;
	}
	ts_text_append_str(&tree->scratch, " (");
	append_clean(&tree->scratch, name, length);
	if (tree->keys.with_lines && line != TS_ABSENT)
		ts_text_printf(&tree->scratch, ":%lld", (long long)line);
	ts_text_append_char(&tree->scratch, ')');
}

/* The label in scratch. */
static uint32_t intern_label(struct ts_folded_tree *tree)
{
	if (ts_text_status(&tree->scratch))
		return TS_STRMAP_NONE;
	return ts_strmap_intern(&tree->labels, tree->scratch.data, tree->scratch.length, NULL);
}

static uint32_t frame_name(struct ts_folded_tree *tree, int64_t frame)
{
	uint32_t key = ts_frame_key(&tree->keys, frame);
	TS_SCOPED(ts_text) name = { 0 };
	uint64_t known;
	uint32_t label;

	if (key == TS_STRMAP_NONE)
		return TS_STRMAP_NONE;
	if (ts_map_get(&tree->key_labels, key, &known))
		return (uint32_t)known;
	ts_text_clear(&tree->scratch);
	ts_frame_append_function(tree->reader, &name, frame);
	append_clean(&tree->scratch, name.data, name.length);
	append_file(tree, frame);
	label = intern_label(tree);
	if (label == TS_STRMAP_NONE || ts_map_put(&tree->key_labels, key, label))
		return TS_STRMAP_NONE;
	return label;
}

static uint32_t entity_name(struct ts_folded_tree *tree, int64_t thread,
			    void (*append)(struct ts_reader *reader, struct ts_text *out,
					   int64_t thread))
{
	TS_SCOPED(ts_text) name = { 0 };

	append(tree->reader, &name, thread);
	ts_text_clear(&tree->scratch);
	append_clean(&tree->scratch, name.data, name.length);
	return intern_label(tree);
}

/* ---- the tree ---- */

/* The child of a node with this label. */
static uint32_t child_of(struct ts_folded_tree *tree, uint32_t parent, uint32_t label)
{
	bool is_new = false;
	uint64_t *step;

	if (label == TS_STRMAP_NONE || parent == UINT32_MAX || tree->node_count == UINT32_MAX)
		return UINT32_MAX;
	step = ts_pairmap_insert(&tree->steps, parent, label, &is_new);
	if (!step || (is_new && ts_grow_array((void **)&tree->nodes, &tree->node_capacity,
					      tree->node_count + 1, sizeof(*tree->nodes))))
		return UINT32_MAX;
	if (is_new) {
		*step = tree->node_count;
		tree->nodes[tree->node_count] =
			(struct ts_folded_node){ .label = label,
						 .sibling = tree->nodes[parent].child };
		tree->nodes[parent].child = (uint32_t)tree->node_count++;
	}
	return (uint32_t)*step;
}

/* "+0x1230": offset in its function. */
static uint32_t offset_name(struct ts_folded_tree *tree, const struct ts_frame_row *frame)
{
	ts_text_clear(&tree->scratch);
	ts_text_printf(&tree->scratch, "+0x%04llx", (unsigned long long)frame->pc);
	return intern_label(tree);
}

/*
 * The innermost of a frame's functions, below the node of its caller. A device instruction is below
 * its function.
 */
static uint32_t frame_node(struct ts_folded_tree *tree, uint32_t node, int64_t frame)
{
	const struct ts_frame_row *row = ts_frame_get(tree->reader, frame);

	for (uint32_t depth = ts_frame_function_count(tree->reader, frame); depth > 0; depth--)
		node = child_of(tree, node, frame_name(tree, ts_frame_at_depth(frame, depth - 1)));
	if (tree->keys.with_lines && row->kind == TS_FRAME_INSTRUCTION && row->pc >= 0)
		node = child_of(tree, node, offset_name(tree, row));
	return node;
}

/* Stacks share callers, so each is resolved once: up to the first known one, then down again. */
uint32_t ts_folded_stack(struct ts_folded_tree *tree, uint32_t root, int64_t stack)
{
	struct ts_stack_list *path = &tree->path;
	uint64_t node = root;

	path->count = 0;
	while (stack > 0 && !ts_pairmap_get(&tree->known, root, (uint64_t)stack, &node)) {
		const struct ts_stack_row *row =
			ts_reader_entity(tree->reader, TS_TABLE_STACK, stack);

		if (ts_grow_array((void **)&path->frames, &path->capacity, path->count + 1,
				  sizeof(*path->frames)))
			return UINT32_MAX;
		path->frames[path->count++] = stack;
		/* Parents have smaller ids; anything else could loop. */
		stack = row && row->parent < stack ? row->parent : 0;
	}
	while (path->count && node != UINT32_MAX) {
		int64_t id = path->frames[--path->count];
		const struct ts_stack_row *row = ts_reader_entity(tree->reader, TS_TABLE_STACK, id);

		node = frame_node(tree, (uint32_t)node, row ? row->frame : 0);
		if (ts_pairmap_put(&tree->known, root, (uint64_t)id, node))
			return UINT32_MAX;
	}
	return (uint32_t)node;
}

uint32_t ts_folded_text(struct ts_folded_tree *tree, uint32_t node, const char *text)
{
	ts_text_clear(&tree->scratch);
	append_clean(&tree->scratch, text, strlen(text));
	return child_of(tree, node, intern_label(tree));
}

uint32_t ts_folded_frame(struct ts_folded_tree *tree, uint32_t node, int64_t frame)
{
	return node == TS_FOLDED_NONE ? node : child_of(tree, node, frame_name(tree, frame));
}

uint32_t ts_folded_thread(struct ts_folded_tree *tree, uint32_t node, int64_t thread)
{
	node = child_of(tree, node, entity_name(tree, thread, ts_thread_append_process));
	return child_of(tree, node, entity_name(tree, thread, ts_thread_append_name));
}

void ts_folded_count(struct ts_folded_tree *tree, uint32_t node, int64_t count)
{
	tree->nodes[node].count = ts_ns_add(tree->nodes[node].count, count);
}

/* ---- lines, in order ---- */

struct branch {
	const char *text;
	uint32_t node;
};

static int compare_branches(const void *left, const void *right)
{
	const struct branch *a = left, *b = right;

	return strcmp(a->text, b->text);
}

/* Sorts the children of a node by text. Labels contain no NUL, and differ. */
static int sort_children(struct ts_folded_tree *tree, uint32_t parent)
{
	TS_AUTO_FREE struct branch *branches = NULL;
	size_t count = 0, capacity = 0;

	for (uint32_t i = tree->nodes[parent].child; i; i = tree->nodes[i].sibling) {
		if (ts_grow_array((void **)&branches, &capacity, count + 1, sizeof(*branches)))
			return no_memory(tree);
		branches[count++] = (struct branch){
			.text = ts_strmap_text(&tree->labels, tree->nodes[i].label, NULL),
			.node = i,
		};
	}
	ts_sort(branches, count, sizeof(*branches), compare_branches);
	for (size_t i = 0; i < count; i++)
		tree->nodes[branches[i].node].sibling = i + 1 < count ? branches[i + 1].node : 0;
	if (count)
		tree->nodes[parent].child = branches[0].node;
	return TS_OK;
}

static int flush(struct ts_folded_tree *tree, size_t unless_below)
{
	int rc;

	if (ts_text_status(&tree->out) || ts_text_status(&tree->scratch))
		return no_memory(tree);
	if (tree->out.length < unless_below)
		return TS_OK;
	rc = ts_write_all(tree->fd, tree->out.data, tree->out.length, tree->err);
	ts_text_clear(&tree->out);
	return rc;
}

/* Position of the walk: the node, and the line length above it. */
struct level {
	uint32_t node;
	size_t length;
};

struct levels {
	struct level *items;
	size_t count, capacity;
};

static int enter(struct ts_folded_tree *tree, struct levels *levels, uint32_t node)
{
	const char *label = ts_strmap_text(&tree->labels, tree->nodes[node].label, NULL);
	int rc;

	if (ts_grow_array((void **)&levels->items, &levels->capacity, levels->count + 1,
			  sizeof(*levels->items)))
		return no_memory(tree);
	levels->items[levels->count++] = (struct level){ node, tree->scratch.length };
	if (tree->scratch.length)
		ts_text_append_char(&tree->scratch, ';');
	ts_text_append_str(&tree->scratch, label);
	if (tree->nodes[node].count) {
		ts_text_append(&tree->out, tree->scratch.data, tree->scratch.length);
		ts_text_append_char(&tree->out, ' ');
		ts_text_append_int(&tree->out, tree->nodes[node].count);
		ts_text_append_char(&tree->out, '\n');
	}
	rc = flush(tree, FLUSH_BYTES);
	return rc ? rc : sort_children(tree, node);
}

/* The next node: a sibling of this one or of an ancestor; 0: none. */
static uint32_t leave(struct ts_folded_tree *tree, struct levels *levels)
{
	uint32_t next = 0;

	while (!next && levels->count) {
		const struct level *level = &levels->items[--levels->count];

		tree->scratch.length = level->length;
		next = tree->nodes[level->node].sibling;
	}
	return next;
}

int ts_folded_tree_write(struct ts_folded_tree *tree)
{
	struct levels levels = { 0 };
	int rc = sort_children(tree, 0);
	uint32_t node = tree->nodes[0].child;

	ts_text_clear(&tree->scratch);
	while (!rc && node) {
		rc = enter(tree, &levels, node);
		node = tree->nodes[node].child;
		if (!node)
			node = leave(tree, &levels);
	}
	free(levels.items);
	return rc ? rc : flush(tree, 0);
}
