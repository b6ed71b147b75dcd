/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of events: each key and value becomes a field of the row's shape, or a column. Events
 * of one kind look alike, so earlier fields are kept as a tree and tried first. Most import time is
 * spent here.
 */
#include "import/chrome/chrome_import.h"

#include <math.h>

/*
 * Limit on nodes; then the tree is rebuilt, so that files with ever new keys need bounded memory.
 */
#define MAX_NODES ((size_t)1 << 18)

int ts_chrome_args_init(struct ts_chrome *c)
{
	c->event.arguments = malloc(sizeof(*c->event.arguments));
	if (!c->event.arguments ||
	    ts_grow_array((void **)&c->nodes, &c->node_capacity, 1024, sizeof(*c->nodes)))
		return TS_ENOMEM;
	c->node_count = 1;
	c->epoch = 1;
	ts_pairmap_init(&c->children);
	ts_arena_init(&c->node_keys);
	return TS_OK;
}

void ts_chrome_args_release(struct ts_chrome *c)
{
	free(c->event.arguments);
	free(c->nodes);
	ts_pairmap_release(&c->children);
	ts_arena_release(&c->node_keys);
}

/* ---- the tree of shapes ---- */

static uint32_t add_node(struct ts_chrome *c, const struct ts_chrome_node *node)
{
	if (ts_grow_array((void **)&c->nodes, &c->node_capacity, c->node_count + 1,
			  sizeof(*c->nodes)))
		return 0;
	c->nodes[c->node_count] = *node;
	return (uint32_t)c->node_count++;
}

static uint32_t find_root(struct ts_chrome *c, uint32_t category, enum ts_table_id table)
{
	struct ts_chrome_category *entry = &c->categories[category];
	uint32_t *root = &entry->roots[table == TS_TABLE_API_CALL ? 1
				       : table == TS_TABLE_GPU_OP ? 2
								  : 0];

	if (entry->roots_epoch != c->epoch) {
		memset(entry->roots, 0, sizeof(entry->roots));
		entry->roots_epoch = c->epoch;
	}
	if (!*root)
		*root = add_node(c, &(struct ts_chrome_node){ 0 });
	return *root;
}

void ts_chrome_start_args(struct ts_chrome *c, struct ts_chrome_args *args, enum ts_table_id table,
			  uint32_t category)
{
	if (TS_UNLIKELY(c->node_count > MAX_NODES)) {
		c->node_count = 1;
		c->epoch++;
		ts_pairmap_clear(&c->children);
		ts_arena_clear(&c->node_keys);
	}
	args->table = table;
	args->node = find_root(c, category, table);
	args->value_count = 0;
	args->seen = 0;
	args->in_column = 0;
	args->bytes = TS_ABSENT;
	args->undecided = false;
}

/* Appends a field to args->node that is not among its recent children. */
static __attribute__((noinline)) int enter_child(struct ts_chrome *c, struct ts_chrome_args *args,
						 const struct ts_json_string *key,
						 struct ts_chrome_node *field)
{
	uint64_t second = field->key_string | (uint64_t)field->type << 32 |
			  (uint64_t)field->beside << 36 | (uint64_t)field->column << 40;
	uint64_t *child = ts_pairmap_insert(&c->children, args->node, second, NULL);
	struct ts_chrome_node *parent = &c->nodes[args->node];

	if (!child)
		return TS_ENOMEM;
	if (!*child) {
		if (parent->depth == TS_SHAPE_MAX_FIELDS)
			return TS_CHROME_TOO_MANY;
		field->depth = parent->depth + 1;
		field->parent = args->node;
		field->key = ts_arena_strdup_len(&c->node_keys, key->text, key->length);
		field->key_length = (uint32_t)key->length;
		*child = field->key ? add_node(c, field) : 0;
		if (!*child)
			return TS_ENOMEM;
		parent = &c->nodes[args->node];
	}
	parent->recent[1] = parent->recent[0];
	parent->recent[0] = (uint32_t)*child;
	args->node = (uint32_t)*child;
	return TS_OK;
}

uint32_t ts_chrome_shape(struct ts_chrome *c, const struct ts_chrome_args *args)
{
	struct ts_chrome_node *node = &c->nodes[args->node];
	struct ts_field fields[TS_SHAPE_MAX_FIELDS];
	uint32_t count = node->depth;

	if (node->shape || count == 0)
		return node->shape;
	for (const struct ts_chrome_node *at = node; at->depth; at = &c->nodes[at->parent])
		fields[at->depth - 1] = (struct ts_field){ .key = at->key_string,
							   .type = at->type,
							   .beside = at->beside,
							   .column = at->column };
	node->shape = ts_writer_shape(c->writer, fields, count);
	return node->shape;
}

/* ---- values ---- */

struct value {
	uint8_t type; /* enum ts_arg_type */
	uint16_t column;
	int64_t bits;
};

static int64_t double_bits(double real)
{
	int64_t bits;

	memcpy(&bits, &real, sizeof(bits));
	return bits;
}

static int string_value(struct ts_chrome *c, const char *text, size_t length, uint8_t type,
			struct value *value)
{
	struct ts_json_string string = { .text = text, .length = length };

	value->type = type;
	value->bits = ts_chrome_string(c, &string);
	return TS_OK;
}

static int read_number(struct ts_chrome *c, struct ts_json *js, struct value *value)
{
	struct ts_json_number number = { 0 };
	int rc = ts_json_scan_number(js, &number);

	if (TS_UNLIKELY(rc))
		return rc;
	if (TS_LIKELY(number.kind == TS_JSON_INT)) {
		value->type = TS_ARG_INT;
		value->bits = number.integer;
		return TS_OK;
	}
	if (number.kind == TS_JSON_NONFINITE)
		return isnan(number.real) ? string_value(c, "NaN", 3, TS_ARG_STRING, value)
		       : number.real > 0  ? string_value(c, "Infinity", 8, TS_ARG_STRING, value)
					  : string_value(c, "-Infinity", 9, TS_ARG_STRING, value);
	if (number.kind == TS_JSON_BIG || isinf(number.real)) {
		if (number.length > TS_IMPORT_MAX_STRING)
			return ts_json_bad(js, number.text, "a number is longer than 64 MiB");
		return string_value(c, number.text, number.length, TS_ARG_JSON, value);
	}
	value->type = TS_ARG_DOUBLE;
	value->bits = double_bits(number.real);
	return TS_OK;
}

static int read_literal(struct ts_json *js, struct value *value)
{
	enum ts_json_literal literal;
	int rc = ts_json_scan_literal(js, &literal);

	if (rc)
		return rc;
	value->type = literal == TS_JSON_NULL ? TS_ARG_NULL : TS_ARG_BOOL;
	value->bits = literal == TS_JSON_TRUE;
	return TS_OK;
}

static inline int read_value(struct ts_chrome *c, struct ts_json *js, struct value *value)
{
	struct ts_json_string string = { 0 };
	uint32_t id;
	int rc, first = ts_json_peek(js);

	switch (first) {
	case '"':
		rc = ts_json_scan_string(js, &string);
		if (TS_UNLIKELY(rc || (rc = ts_chrome_check_length(js, &string))))
			return rc;
		value->type = TS_ARG_STRING;
		value->bits = ts_chrome_string(c, &string);
		return TS_OK;
	case '[':
	case '{':
		rc = ts_chrome_json(c, js, &id);
		value->type = TS_ARG_JSON;
		value->bits = id;
		return rc;
	case 't':
	case 'f':
		return read_literal(js, value);
	case 'n':
		/* null or nan: the next letter tells. */
		if (js->end - js->next >= 2 && js->next[1] == 'u')
			return read_literal(js, value);
		return js->end - js->next < 2 ? ts_json_cut(js) : read_number(c, js, value);
	case -1:
		return ts_json_cut(js);
	default:
		return read_number(c, js, value);
	}
}

/* ---- values that have a column ---- */

/* Exactly [int,int,int]: true, and js is after it; else js is unchanged. */
static bool read_three(struct ts_json *js, int64_t three[3])
{
	struct ts_json at = *js;
	struct ts_json_number number = { 0 };
	bool more;

	if (ts_json_enter(&at, '[', &more) || !more)
		return false;
	for (int i = 0; i < 3; i++) {
		if (ts_json_peek(&at) < 0 || ts_json_scan_number(&at, &number) ||
		    number.kind != TS_JSON_INT || number.integer == TS_ABSENT ||
		    ts_json_next(&at, ']', &more) || more != (i < 2))
			return false;
		three[i] = number.integer;
	}
	js->next = at.next;
	return true;
}

/* The value of a key that has a column: stored there if it has the right type. */
static int read_column(struct ts_chrome *c, struct ts_json *js, struct ts_chrome_args *args,
		       enum ts_kineto_arg arg, struct value *value)
{
	uint32_t bit = UINT32_C(1) << arg;
	bool first = !(args->seen & bit), fits;
	double real;
	int rc;

	args->seen |= bit;
	if (first && (arg == TS_KINETO_ARG_GRID || arg == TS_KINETO_ARG_BLOCK)) {
		if (!read_three(js, arg == TS_KINETO_ARG_GRID ? args->grid : args->block))
			return read_value(c, js, value);
		fits = true;
	} else {
		if (ts_chrome_plain_int(js, &value->bits)) {
			value->type = TS_ARG_INT;
		} else {
			rc = read_value(c, js, value);
			if (rc)
				return rc;
		}
		if (!first)
			return TS_OK;
		fits = value->type == TS_ARG_INT && value->bits != TS_ABSENT;
	}
	if (arg == TS_KINETO_ARG_BANDWIDTH) {
		fits = false;
		if (value->type == TS_ARG_DOUBLE) {
			memcpy(&real, &value->bits, sizeof(real));
			args->undecided = !args->has_duration || args->bytes == TS_ABSENT;
			fits = !args->undecided &&
			       ts_kineto_is_bandwidth(real, args->bytes, args->duration);
		}
	}
	if (fits) {
		args->column[arg] = value->bits;
		args->in_column |= bit;
		if (arg == TS_KINETO_ARG_BYTES)
			args->bytes = value->bits;
		value->type = TS_ARG_COLUMN;
		value->column = ts_kineto_arg_column(args->table, arg);
	}
	return TS_OK;
}

/* ---- pairs ---- */

/* Does the text start with these bytes and a quote? Keys are short: no call. */
static inline bool is_key(const char *text, const char *end, const char *key, size_t length)
{
	uint64_t a, b;

	if ((size_t)(end - text) <= length || text[length] != '"')
		return false;
	for (; length >= 8; length -= 8, text += 8, key += 8) {
		memcpy(&a, text, 8);
		memcpy(&b, key, 8);
		if (a != b)
			return false;
	}
	for (; length; length--)
		if (*text++ != *key++)
			return false;
	return true;
}

/* The child of args->node whose key is at js, which is then after its colon; 0: none. */
static inline uint32_t guess_key(struct ts_chrome *c, struct ts_json *js,
				 const struct ts_chrome_args *args, bool beside)
{
	const struct ts_chrome_node *node = &c->nodes[args->node];
	const char *p = ts_json_find_token_(js->next, js->end);

	if (p == js->end || *p != '"')
		return 0;
	for (int i = 0; i < 2; i++) {
		uint32_t child = node->recent[i];
		const struct ts_chrome_node *field = &c->nodes[child];

		if (!child)
			return 0;
		if (field->beside != beside ||
		    !is_key(p + 1, js->end, field->key, field->key_length))
			continue;
		p = ts_json_find_token_(p + field->key_length + 2, js->end);
		if (p == js->end || *p != ':')
			return 0;
		js->next = p + 1;
		return child;
	}
	return 0;
}

static inline void store_value(struct ts_chrome_args *args, const struct value *value)
{
	if (ts_arg_has_value(value->type))
		args->values[args->value_count++] = value->bits;
}

static inline bool is_field(const struct ts_chrome_node *node, const struct ts_chrome_node *field)
{
	return node->key_string == field->key_string && node->type == field->type &&
	       node->column == field->column && node->beside == field->beside;
}

/* Moves to the child for a field; the first guess was wrong. */
static int step(struct ts_chrome *c, struct ts_chrome_args *args, const struct ts_json_string *key,
		struct ts_chrome_node *field, const struct value *value)
{
	struct ts_chrome_node *node = &c->nodes[args->node];

	field->type = value->type;
	field->column = value->column;
	for (int i = 0; i < 2; i++) {
		uint32_t child = node->recent[i];

		if (!child)
			break;
		if (is_field(&c->nodes[child], field)) {
			node->recent[i] = node->recent[0];
			node->recent[0] = child;
			args->node = child;
			store_value(args, value);
			return TS_OK;
		}
	}
	int rc = enter_child(c, args, key, field);

	if (!rc)
		store_value(args, value);
	return rc;
}

int ts_chrome_add_arg(struct ts_chrome *c, const struct ts_json_string *key, struct ts_json *js,
		      struct ts_chrome_args *args, bool beside)
{
	struct ts_chrome_node field = { .beside = beside };
	struct value value = { 0 };
	int rc;

	field.key_string = ts_chrome_string(c, key);
	if (!beside)
		field.arg = (uint8_t)ts_kineto_arg(args->table, key->text, key->length);
	rc = field.arg ? read_column(c, js, args, field.arg, &value) : read_value(c, js, &value);
	return rc ? rc : step(c, args, key, &field, &value);
}

/* A key that was not predicted. */
static __attribute__((noinline)) int read_new_pair(struct ts_chrome *c, struct ts_json *js,
						   struct ts_chrome_args *args, bool beside)
{
	struct ts_json_string key = { 0 };
	int rc = ts_json_scan_key(js, &key);

	if (!rc)
		rc = ts_chrome_check_length(js, &key);
	return rc ? rc : ts_chrome_add_arg(c, &key, js, args, beside);
}

/* The value of a predicted key, possibly of another type than before. */
static inline int read_known_pair(struct ts_chrome *c, struct ts_json *js,
				  struct ts_chrome_args *args, uint32_t child)
{
	const struct ts_chrome_node *node = &c->nodes[child];
	struct value value = { .type = TS_ARG_INT };
	int rc;

	if (node->arg) {
		rc = read_column(c, js, args, node->arg, &value);
		if (TS_UNLIKELY(rc))
			return rc;
	} else if (node->type != TS_ARG_INT || !ts_chrome_plain_int(js, &value.bits)) {
		rc = read_value(c, js, &value);
		if (TS_UNLIKELY(rc))
			return rc;
	}
	if (TS_LIKELY(value.type == node->type && value.column == node->column)) {
		struct ts_chrome_node *parent = &c->nodes[args->node];

		if (parent->recent[0] != child) {
			parent->recent[1] = parent->recent[0];
			parent->recent[0] = child;
		}
		args->node = child;
		store_value(args, &value);
		return TS_OK;
	}
	struct ts_json_string key = { .text = node->key, .length = node->key_length };
	struct ts_chrome_node field = { .key_string = node->key_string,
					.beside = node->beside,
					.arg = node->arg };

	return step(c, args, &key, &field, &value);
}

int ts_chrome_read_args(struct ts_chrome *c, struct ts_json *js, struct ts_chrome_args *args,
			bool beside)
{
	bool more = false;
	int rc, first = ts_json_peek(js);

	if (TS_UNLIKELY(!args->node))
		return TS_ENOMEM;
	/* Only objects are read as arguments. */
	if (TS_UNLIKELY(first != '{'))
		return ts_json_enter(js, '{', &more);
	rc = ts_chrome_enter_object(js, &more);
	while (!rc && more) {
		uint32_t child = guess_key(c, js, args, beside);

		if (TS_LIKELY(child))
			rc = read_known_pair(c, js, args, child);
		else
			rc = read_new_pair(c, js, args, beside);
		if (TS_LIKELY(!rc))
			rc = ts_json_next(js, '}', &more);
	}
	return rc;
}
