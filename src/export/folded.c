/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks: "process;thread;outer (a.py:3);inner (b.py:7) 42", a line each, as flamegraph.pl, speedscope and py-spy's raw format have
 * it. Memory grows with the number of different stacks only: they are held as a tree. The order of lines is that of their texts.
 * Must not know how samples are read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/ns.h"
#include "base/text.h"
#include "export/export.h"
#include "export/samples.h"
#include "export/stacks.h"

#define FLUSH_BYTES ((size_t)1 << 20)

/* A stack of a thread, while samples are counted. */
struct tally {
	int64_t thread, stack, leaf;
	int64_t count;
};

/* A step of a line: node 0 is above all of them. */
struct node {
	uint32_t word;           /* its text, in words */
	uint32_t child, sibling; /* 0: none */
	int64_t count;           /* of stacks that end here */
};

struct folded {
	struct ts_reader *reader;
	struct ts_samples samples;
	struct ts_error *err;
	int fd;
	struct ts_pairmap places; /* thread and stack to the index of a tally */
	struct tally *tallies;
	size_t tally_count, tally_capacity;
	struct ts_frame_keys keys;
	struct ts_strmap files; /* short names of files; file_paths: of which path */
	struct ts_strmap paths;
	struct ts_map file_paths; /* short name to path */
	struct ts_strmap words;   /* from 0 on */
	struct ts_map key_words;  /* number of a frame key to word */
	struct ts_pairmap steps;  /* node and word to the child */
	struct ts_pairmap known;  /* node of a thread and stack to the stack's node */
	struct node *nodes;
	size_t node_count, node_capacity;
	struct ts_stack_path path; /* ids of stacks */
	struct ts_text scratch, out;
};

static int no_memory(struct folded *folded)
{
	return ts_error_set(folded->err, TS_ENOMEM, "no memory");
}

/* ---- counting ---- */

static int count_sample(void *context, const struct ts_seen *seen)
{
	struct folded *folded = context;
	bool no_threads = folded->samples.flags & TS_EXPORT_NO_THREADS;
	int64_t thread = no_threads ? 0 : seen->thread;
	bool is_new = false;
	uint64_t *place;

	if (!seen->count || (!seen->stack && !seen->leaf) ||
	    (seen->is_on_device && folded->samples.flags & TS_EXPORT_TIME))
		return TS_OK;
	/* Ids are of 32 bits, unless a file lies. */
	place = ts_pairmap_insert(&folded->places, (uint64_t)thread,
				  (uint64_t)seen->stack ^ (uint64_t)seen->leaf << 32, &is_new);
	if (!place || (is_new && ts_grow_array((void **)&folded->tallies, &folded->tally_capacity,
					       folded->tally_count + 1, sizeof(*folded->tallies))))
		return no_memory(folded);
	if (is_new) {
		*place = folded->tally_count;
		folded->tallies[folded->tally_count++] = (struct tally){ .thread = thread,
									 .stack = seen->stack,
									 .leaf = seen->leaf };
	}
	folded->tallies[*place].count = ts_ns_add(
		folded->tallies[*place].count,
		folded->samples.flags & (TS_EXPORT_TIME | TS_EXPORT_DEVICE) ? seen->weight
									    : seen->count);
	return TS_OK;
}

/* ---- words ---- */

/* What separates frames, and lines, cannot stand in a name. */
static void append_clean(struct ts_text *out, const char *text, size_t length)
{
	size_t from = out->length;

	ts_utf8_sanitize(out, text, length);
	for (size_t i = from; i < out->length; i++) {
		unsigned char c = (unsigned char)out->data[i];

		if (c == ';')
			out->data[i] = ':';
		else if (c < 0x20 || c == 0x7f)
			out->data[i] = ' ';
	}
}

/* The short name of a file, unless another file has it. */
static bool is_short_taken(struct folded *folded, struct ts_string file, const char *name,
			   size_t length)
{
	uint32_t path = ts_strmap_intern(&folded->paths, file.data, file.length, NULL);
	uint32_t short_name = ts_strmap_intern(&folded->files, name, length, NULL);
	bool is_new = false;
	uint64_t *owner = ts_map_insert(&folded->file_paths, short_name, &is_new);

	if (owner && is_new)
		*owner = path;
	return owner && *owner != path;
}

static void append_file(struct folded *folded, int64_t frame)
{
	struct ts_string file = ts_stack_file(folded->reader, frame);
	int64_t line = ts_stack_line(folded->reader, frame);
	const char *name;
	size_t length;

	if (!file.length)
		return;
	name = ts_stack_short_file(file, &length);
	if (is_short_taken(folded, file, name, length)) {
		name = file.data;
		length = file.length;
	}
	ts_text_append_str(&folded->scratch, " (");
	append_clean(&folded->scratch, name, length);
	if (folded->keys.with_lines && line != TS_ABSENT)
		ts_text_printf(&folded->scratch, ":%lld", (long long)line);
	ts_text_append_char(&folded->scratch, ')');
}

/* The word that is in scratch. */
static uint32_t intern_word(struct folded *folded)
{
	if (ts_text_status(&folded->scratch))
		return TS_STRMAP_NONE;
	return ts_strmap_intern(&folded->words, folded->scratch.data, folded->scratch.length, NULL);
}

static uint32_t frame_word(struct folded *folded, int64_t frame)
{
	uint32_t key = ts_frame_key(&folded->keys, frame);
	TS_SCOPED(ts_text) name = { 0 };
	uint64_t known;
	uint32_t word;

	if (key == TS_STRMAP_NONE)
		return TS_STRMAP_NONE;
	if (ts_map_get(&folded->key_words, key, &known))
		return (uint32_t)known;
	ts_text_clear(&folded->scratch);
	ts_stack_append_function(folded->reader, &name, frame);
	append_clean(&folded->scratch, name.data, name.length);
	append_file(folded, frame);
	word = intern_word(folded);
	if (word == TS_STRMAP_NONE || ts_map_put(&folded->key_words, key, word))
		return TS_STRMAP_NONE;
	return word;
}

static uint32_t place_word(struct folded *folded, int64_t thread,
			   void (*append)(struct ts_reader *reader, struct ts_text *out,
					  int64_t thread))
{
	TS_SCOPED(ts_text) name = { 0 };

	append(folded->reader, &name, thread);
	ts_text_clear(&folded->scratch);
	append_clean(&folded->scratch, name.data, name.length);
	return intern_word(folded);
}

/* ---- the tree ---- */

/* The child of a node that has this word; UINT32_MAX: no memory. */
static uint32_t child_of(struct folded *folded, uint32_t parent, uint32_t word)
{
	bool is_new = false;
	uint64_t *step;

	if (word == TS_STRMAP_NONE || parent == UINT32_MAX || folded->node_count == UINT32_MAX)
		return UINT32_MAX;
	step = ts_pairmap_insert(&folded->steps, parent, word, &is_new);
	if (!step || (is_new && ts_grow_array((void **)&folded->nodes, &folded->node_capacity,
					      folded->node_count + 1, sizeof(*folded->nodes))))
		return UINT32_MAX;
	if (is_new) {
		*step = folded->node_count;
		folded->nodes[folded->node_count] =
			(struct node){ .word = word, .sibling = folded->nodes[parent].child };
		folded->nodes[parent].child = (uint32_t)folded->node_count++;
	}
	return (uint32_t)*step;
}

/* "+0x1230": where in its function. */
static uint32_t offset_word(struct folded *folded, const struct ts_frame_row *frame)
{
	ts_text_clear(&folded->scratch);
	ts_text_printf(&folded->scratch, "+0x%04llx", (unsigned long long)frame->pc);
	return intern_word(folded);
}

/* The innermost of a frame's functions, below the node of its caller. An instruction of a device is below its function. */
static uint32_t frame_node(struct folded *folded, uint32_t node, int64_t frame)
{
	const struct ts_frame_row *row = ts_stack_frame(folded->reader, frame);

	for (uint32_t depth = ts_stack_depths(folded->reader, frame); depth > 0; depth--)
		node = child_of(folded, node,
				frame_word(folded, ts_stack_at_depth(frame, depth - 1)));
	if (folded->keys.with_lines && row->kind == TS_FRAME_INSTRUCTION && row->pc >= 0)
		node = child_of(folded, node, offset_word(folded, row));
	return node;
}

/*
 * The node of a stack below one of a thread. Stacks share their callers, so each step is looked for once: upwards to the first that is
 * known, then down again.
 */
static uint32_t stack_node(struct folded *folded, uint32_t root, int64_t stack)
{
	struct ts_stack_path *path = &folded->path;
	uint64_t node = root;

	path->count = 0;
	while (stack > 0 && !ts_pairmap_get(&folded->known, root, (uint64_t)stack, &node)) {
		const struct ts_stack_row *row =
			ts_reader_entity(folded->reader, TS_TABLE_STACK, stack);

		if (ts_grow_array((void **)&path->frames, &path->capacity, path->count + 1,
				  sizeof(*path->frames)))
			return UINT32_MAX;
		path->frames[path->count++] = stack;
		/* Parents have smaller ids; anything else would go round for ever. */
		stack = row && row->parent < stack ? row->parent : 0;
	}
	while (path->count && node != UINT32_MAX) {
		int64_t id = path->frames[--path->count];
		const struct ts_stack_row *row =
			ts_reader_entity(folded->reader, TS_TABLE_STACK, id);

		node = frame_node(folded, (uint32_t)node, row ? row->frame : 0);
		if (ts_pairmap_put(&folded->known, root, (uint64_t)id, node))
			return UINT32_MAX;
	}
	return (uint32_t)node;
}

static int add_to_tree(struct folded *folded, const struct tally *tally)
{
	uint32_t node = 0;

	if (!(folded->samples.flags & TS_EXPORT_NO_THREADS) && !tally->thread &&
	    ts_stack_is_instruction(folded->reader, tally->stack)) {
		ts_text_clear(&folded->scratch);
		ts_text_append_str(&folded->scratch, "device");
		node = child_of(folded, node, intern_word(folded));
	} else if (!(folded->samples.flags & TS_EXPORT_NO_THREADS)) {
		node = child_of(folded, node,
				place_word(folded, tally->thread, ts_stack_append_process));
		node = child_of(folded, node,
				place_word(folded, tally->thread, ts_stack_append_thread));
	}
	node = stack_node(folded, node, tally->stack);
	if (tally->leaf && node != UINT32_MAX)
		node = child_of(folded, node, frame_word(folded, tally->leaf));
	if (node == UINT32_MAX)
		return no_memory(folded);
	folded->nodes[node].count = ts_ns_add(folded->nodes[node].count, tally->count);
	return TS_OK;
}

static int make_tree(struct folded *folded)
{
	int rc = TS_OK;

	if (ts_grow_array((void **)&folded->nodes, &folded->node_capacity, 1,
			  sizeof(*folded->nodes)))
		return no_memory(folded);
	folded->nodes[folded->node_count++] = (struct node){ 0 };
	for (size_t i = 0; !rc && i < folded->tally_count; i++)
		rc = add_to_tree(folded, &folded->tallies[i]);
	return rc;
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

/* Puts the children of a node in the order of their texts. Words hold no NUL, and differ. */
static int sort_children(struct folded *folded, uint32_t parent)
{
	TS_AUTO_FREE struct branch *branches = NULL;
	size_t count = 0, capacity = 0;

	for (uint32_t i = folded->nodes[parent].child; i; i = folded->nodes[i].sibling) {
		if (ts_grow_array((void **)&branches, &capacity, count + 1, sizeof(*branches)))
			return no_memory(folded);
		branches[count++] = (struct branch){
			.text = ts_strmap_text(&folded->words, folded->nodes[i].word, NULL),
			.node = i,
		};
	}
	ts_sort(branches, count, sizeof(*branches), compare_branches);
	for (size_t i = 0; i < count; i++)
		folded->nodes[branches[i].node].sibling = i + 1 < count ? branches[i + 1].node : 0;
	if (count)
		folded->nodes[parent].child = branches[0].node;
	return TS_OK;
}

static int flush(struct folded *folded, size_t unless_below)
{
	int rc;

	if (ts_text_status(&folded->out) || ts_text_status(&folded->scratch))
		return no_memory(folded);
	if (folded->out.length < unless_below)
		return TS_OK;
	rc = ts_write_all(folded->fd, folded->out.data, folded->out.length, folded->err);
	ts_text_clear(&folded->out);
	return rc;
}

/* Where the walk over the tree is: the node, and how long the line was above it. */
struct level {
	uint32_t node;
	size_t length;
};

struct levels {
	struct level *items;
	size_t count, capacity;
};

static int enter(struct folded *folded, struct levels *levels, uint32_t node)
{
	const char *word = ts_strmap_text(&folded->words, folded->nodes[node].word, NULL);
	int rc;

	if (ts_grow_array((void **)&levels->items, &levels->capacity, levels->count + 1,
			  sizeof(*levels->items)))
		return no_memory(folded);
	levels->items[levels->count++] = (struct level){ node, folded->scratch.length };
	if (folded->scratch.length)
		ts_text_append_char(&folded->scratch, ';');
	ts_text_append_str(&folded->scratch, word);
	if (folded->nodes[node].count) {
		ts_text_append(&folded->out, folded->scratch.data, folded->scratch.length);
		ts_text_append_char(&folded->out, ' ');
		ts_text_append_int(&folded->out, folded->nodes[node].count);
		ts_text_append_char(&folded->out, '\n');
	}
	rc = flush(folded, FLUSH_BYTES);
	return rc ? rc : sort_children(folded, node);
}

/* The node to go on with: the next beside this one or one above it; 0: there is none. */
static uint32_t leave(struct folded *folded, struct levels *levels)
{
	uint32_t next = 0;

	while (!next && levels->count) {
		const struct level *level = &levels->items[--levels->count];

		folded->scratch.length = level->length;
		next = folded->nodes[level->node].sibling;
	}
	return next;
}

static int put_lines(struct folded *folded)
{
	struct levels levels = { 0 };
	int rc = sort_children(folded, 0);
	uint32_t node = folded->nodes[0].child;

	ts_text_clear(&folded->scratch);
	while (!rc && node) {
		rc = enter(folded, &levels, node);
		node = folded->nodes[node].child;
		if (!node)
			node = leave(folded, &levels);
	}
	free(levels.items);
	return rc ? rc : flush(folded, 0);
}

static int put_file(struct folded *folded)
{
	int rc;

	if (folded->samples.flags & TS_EXPORT_TIME && folded->samples.rows &&
	    !folded->samples.are_timed)
		return ts_error_set(folded->err, TS_EINVAL,
				    "samples of this trace do not say how long they count for; "
				    "count samples");
	rc = ts_samples_walk(&folded->samples, count_sample, folded);
	if (!rc)
		rc = make_tree(folded);
	return rc ? rc : put_lines(folded);
}

static void release(struct folded *folded)
{
	ts_samples_release(&folded->samples);
	ts_pairmap_release(&folded->places);
	free(folded->tallies);
	ts_frame_keys_release(&folded->keys);
	ts_strmap_release(&folded->files);
	ts_strmap_release(&folded->paths);
	ts_map_release(&folded->file_paths);
	ts_strmap_release(&folded->words);
	ts_map_release(&folded->key_words);
	ts_pairmap_release(&folded->steps);
	ts_pairmap_release(&folded->known);
	free(folded->nodes);
	ts_stack_path_release(&folded->path);
	ts_text_release(&folded->scratch);
	ts_text_release(&folded->out);
}

int ts_export_folded(struct ts_reader *reader, int fd, const struct ts_export_options *options,
		     struct ts_error *err)
{
	struct ts_error own = { 0 };
	struct folded folded = { .reader = reader, .fd = fd, .err = err ? err : &own };
	int rc;

	ts_strmap_init(&folded.files, 0);
	ts_strmap_init(&folded.paths, 0);
	ts_strmap_init(&folded.words, 0);
	ts_frame_keys_init(&folded.keys, reader, !(ts_export_flags(options) & TS_EXPORT_NO_LINES));
	rc = ts_samples_open(&folded.samples, reader, options, 1, folded.err);
	if (!rc)
		rc = put_file(&folded);
	release(&folded);
	return rc;
}
