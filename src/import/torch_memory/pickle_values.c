/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a pickle: storage, access, JSON output, and what remains of them in a truncated file.
 *
 * Small integers and string ids are stored in the value itself. A container is a list of chunks of
 * items in one pool of slots: each chunk is preceded by a slot with its item count and the next
 * chunk. Slot 0 is never used: it ends the list.
 */
#include "import/torch_memory/pickle_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"

#define POOL_ITEMS ((size_t)1 << TS_PICKLE_POOL_SHIFT)
#define JSON_DEPTH 64

struct container {
	uint32_t head, tail; /* chunks; 0: none */
	uint32_t count;
	uint32_t note;
};

static struct container *container_at(const struct ts_pickle *p, ts_pickle_value value)
{
	return ts_pickle_pool_at(&p->containers, value >> 4);
}

static uint64_t *slot_at(const struct ts_pickle *p, uint64_t index)
{
	return ts_pickle_pool_at(&p->slots, index);
}

/* ---- making ---- */

static int take(struct ts_pickle_pool *pool, uint64_t count, uint64_t *ret_first)
{
	size_t blocks = (size_t)((pool->used + POOL_ITEMS - 1) >> TS_PICKLE_POOL_SHIFT);
	uint64_t end = pool->used + count;

	if (end > UINT32_MAX)
		return TS_ENOMEM;
	for (; (uint64_t)blocks << TS_PICKLE_POOL_SHIFT < end; blocks++) {
		if (ts_grow_array((void **)&pool->blocks, &pool->block_capacity, blocks + 1,
				  sizeof(*pool->blocks)))
			return TS_ENOMEM;
		pool->blocks[blocks] = malloc(POOL_ITEMS * pool->item_bytes);
		/* The rest of the previous block stays unused. */
		if (!pool->blocks[blocks]) {
			pool->used = (uint64_t)blocks << TS_PICKLE_POOL_SHIFT;
			return TS_ENOMEM;
		}
	}
	*ret_first = pool->used;
	pool->used = end;
	return TS_OK;
}

static void release_pool(struct ts_pickle_pool *pool)
{
	size_t blocks = (size_t)((pool->used + POOL_ITEMS - 1) >> TS_PICKLE_POOL_SHIFT);

	for (size_t i = 0; i < blocks; i++)
		free(pool->blocks[i]);
	free(pool->blocks);
}

int pickle_container(struct ts_pickle *p, enum ts_pickle_kind kind, ts_pickle_value *ret)
{
	uint64_t index;

	if (take(&p->containers, 1, &index))
		return TS_ENOMEM;
	*ret = index << 4 | kind;
	*container_at(p, *ret) = (struct container){ 0 };
	return TS_OK;
}

int pickle_append(struct ts_pickle *p, ts_pickle_value value, const ts_pickle_value *items,
		  size_t count)
{
	struct container *container = container_at(p, value);
	uint64_t first;

	if (!count)
		return TS_OK;
	if (count > UINT32_MAX - container->count || take(&p->slots, (uint64_t)count + 1, &first))
		return TS_ENOMEM;
	*slot_at(p, first) = count;
	for (size_t i = 0; i < count; i++)
		*slot_at(p, first + 1 + i) = items[i];
	if (container->tail)
		*slot_at(p, container->tail) |= first << 32;
	else
		container->head = (uint32_t)first;
	container->tail = (uint32_t)first;
	container->count += (uint32_t)count;
	return TS_OK;
}

static int add_wide(struct ts_pickle *p, int64_t bits, enum ts_pickle_kind kind,
		    ts_pickle_value *ret)
{
	if (ts_grow_array((void **)&p->wides, &p->wide_capacity, p->wide_count + 1,
			  sizeof(*p->wides)))
		return TS_ENOMEM;
	p->wides[p->wide_count] = bits;
	*ret = (ts_pickle_value)p->wide_count++ << 4 | kind;
	return TS_OK;
}

int pickle_number(struct ts_pickle *p, int64_t number, ts_pickle_value *ret)
{
	ts_pickle_value shifted = (uint64_t)number << 4;

	if ((int64_t)shifted >> 4 != number)
		return add_wide(p, number, TS_PICKLE_WIDE, ret);
	*ret = shifted | TS_PICKLE_INT;
	return TS_OK;
}

int pickle_real(struct ts_pickle *p, double number, ts_pickle_value *ret)
{
	int64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return add_wide(p, bits, TS_PICKLE_FLOAT, ret);
}

/* ---- texts of protocol 0 ---- */

static void append_utf8(struct ts_text *out, uint32_t c)
{
	char bytes[4];
	size_t count = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = count; i-- > 1; c >>= 6)
		bytes[i] = (char)(0x80 | (c & 0x3f));
	bytes[0] = (char)(count == 1 ? c : (0xf00u >> count & 0xff) | c);
	ts_text_append(out, bytes, count);
}

/* Exactly `digits` hexadecimal digits. */
static bool hex(const char *text, const char *end, size_t digits, uint32_t *ret)
{
	*ret = 0;
	if ((size_t)(end - text) < digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		unsigned char c = (unsigned char)text[i];
		unsigned int digit = c >= '0' && c <= '9' ? c - 48u : (c | 32u) - 87u;

		if (digit > 15)
			return false;
		*ret = *ret << 4 | digit;
	}
	return true;
}

/* Decodes the escape after a backslash at p; returns what follows, or NULL if it is invalid. */
static const char *escape(struct ts_text *out, const char *p, const char *end, bool is_literal)
{
	static const char letters[] = "\\'\"nrt", meanings[] = "\\'\"\n\r\t";
	const char *letter = strchr(letters, *p);
	uint32_t code;

	if (is_literal && *p && letter) {
		ts_text_append_char(out, meanings[letter - letters]);
		return p + 1;
	}
	if (is_literal && *p == 'x' && hex(p + 1, end, 2, &code)) {
		ts_text_append_char(out, (char)code);
		return p + 3;
	}
	if (!is_literal && *p == 'u' && hex(p + 1, end, 4, &code)) {
		append_utf8(out, code);
		return p + 5;
	}
	if (!is_literal && *p == 'U' && hex(p + 1, end, 8, &code) && code < 0x110000) {
		append_utf8(out, code);
		return p + 9;
	}
	return NULL;
}

bool pickle_unescape(struct ts_text *out, const char *text, size_t length, bool is_literal)
{
	const char *p = text, *end = text + length;

	if (is_literal) {
		if (length < 2 || text[0] != end[-1] || (text[0] != '\'' && text[0] != '"'))
			return false;
		p++;
		end--;
	}
	while (p < end) {
		const char *next = *p == '\\' && p + 1 < end ? escape(out, p + 1, end, is_literal)
							     : NULL;

		/* UNICODE is Latin-1 except for escapes. */
		if (!next && is_literal)
			ts_text_append_char(out, *p);
		else if (!next)
			append_utf8(out, (unsigned char)*p);
		p = next ? next : p + 1;
	}
	return true;
}

/* ---- looking ---- */

bool ts_pickle_int(const struct ts_pickle *p, ts_pickle_value value, int64_t *ret)
{
	switch (ts_pickle_kind(value)) {
	case TS_PICKLE_INT:
		*ret = (int64_t)value >> 4;
		return true;
	case TS_PICKLE_WIDE:
		*ret = p->wides[value >> 4];
		return true;
	case TS_PICKLE_FALSE:
	case TS_PICKLE_TRUE:
		*ret = ts_pickle_kind(value) == TS_PICKLE_TRUE;
		return true;
	default:
		return false;
	}
}

double ts_pickle_float(const struct ts_pickle *p, ts_pickle_value value)
{
	double number;

	memcpy(&number, &p->wides[value >> 4], sizeof(number));
	return number;
}

uint32_t ts_pickle_count(const struct ts_pickle *p, ts_pickle_value value)
{
	return ts_pickle_is_container(value) ? container_at(p, value)->count : 0;
}

uint32_t *ts_pickle_note(const struct ts_pickle *p, ts_pickle_value value)
{
	return &container_at(p, value)->note;
}

struct ts_pickle_items ts_pickle_items(const struct ts_pickle *p, ts_pickle_value value)
{
	return (struct ts_pickle_items){ .pickle = p,
					 .next = ts_pickle_is_container(value)
							 ? container_at(p, value)->head
							 : 0 };
}

bool ts_pickle_next_chunk_(struct ts_pickle_items *items)
{
	uint64_t header;

	if (!items->next)
		return false;
	header = *slot_at(items->pickle, items->next);
	items->slot = (uint64_t)items->next + 1;
	items->left = (uint32_t)header;
	items->next = (uint32_t)(header >> 32);
	return true;
}

/* ---- JSON ---- */

struct json {
	const struct ts_pickle *pickle;
	struct ts_text *out;
	uint64_t *budget;
};

static void append_real(struct ts_text *out, double number)
{
	char buffer[TS_REAL_BYTES];

	if (isfinite(number))
		ts_text_append(out, buffer, ts_real_format(buffer, number));
	else
		ts_text_append_str(out, isnan(number) ? "\"NaN\""
					: number > 0  ? "\"Infinity\""
						      : "\"-Infinity\"");
}

static void append_scalar(const struct json *json, ts_pickle_value value)
{
	struct ts_text *out = json->out;
	const char *text;
	size_t length = 0;
	int64_t number;

	switch (ts_pickle_kind(value)) {
	case TS_PICKLE_TRUE:
		ts_text_append_str(out, "true");
		return;
	case TS_PICKLE_FALSE:
		ts_text_append_str(out, "false");
		return;
	case TS_PICKLE_FLOAT:
		append_real(out, ts_pickle_float(json->pickle, value));
		return;
	case TS_PICKLE_TEXT:
	case TS_PICKLE_BYTES:
		text = ts_strmap_text(&json->pickle->texts, ts_pickle_text(value), &length);
		ts_text_append_json(out, text ? text : "", length);
		return;
	default:
		if (ts_pickle_int(json->pickle, value, &number))
			ts_text_printf(out, "%" PRId64, number);
		else
			ts_text_append_str(out, "null");
		return;
	}
}

static bool spend(const struct json *json, ts_pickle_value value)
{
	size_t length = 0;

	/* Long texts count too: they may be referenced many times. */
	ts_strmap_text(&json->pickle->texts, ts_pickle_text(value), &length);
	if (*json->budget <= length)
		return false;
	*json->budget -= 1 + length;
	return true;
}

/* A key must be text. */
static void append_key(const struct json *json, ts_pickle_value key)
{
	bool bare = ts_pickle_text(key) == TS_STRMAP_NONE;

	if (bare)
		ts_text_append_char(json->out, '"');
	if (ts_pickle_is_container(key))
		ts_text_append_str(json->out, "...");
	else
		append_scalar(json, key);
	if (bare)
		ts_text_append_char(json->out, '"');
	ts_text_append_char(json->out, ':');
}

static bool append_value(const struct json *json, ts_pickle_value value, int depth)
{
	bool is_dict = ts_pickle_kind(value) == TS_PICKLE_DICT, first = true;
	struct ts_pickle_items items;
	ts_pickle_value item;

	if (!spend(json, value))
		return false;
	if (!ts_pickle_is_container(value)) {
		append_scalar(json, value);
		return true;
	}
	if (depth == JSON_DEPTH)
		return false;
	ts_text_append_char(json->out, is_dict ? '{' : '[');
	items = ts_pickle_items(json->pickle, value);
	while (ts_pickle_next(&items, &item)) {
		if (!first)
			ts_text_append_char(json->out, ',');
		first = false;
		if (is_dict && !spend(json, item))
			return false;
		if (is_dict)
			append_key(json, item);
		if ((is_dict && !ts_pickle_next(&items, &item)) ||
		    !append_value(json, item, depth + 1))
			return false;
	}
	ts_text_append_char(json->out, is_dict ? '}' : ']');
	return true;
}

bool ts_pickle_json(const struct ts_pickle *p, ts_pickle_value value, struct ts_text *out,
		    uint64_t *budget)
{
	struct json json = { .pickle = p, .out = out, .budget = budget };

	return append_value(&json, value, 0);
}

/* ---- what is left where the file breaks off ---- */

/*
 * A value that was about to be appended to the one below it when the file was truncated: a list of
 * one item has no mark.
 */
static bool belongs_below(const struct ts_pickle *p, ts_pickle_value below, ts_pickle_value value)
{
	return ts_pickle_kind(below) == TS_PICKLE_LIST && !ts_pickle_count(p, below) &&
	       ts_pickle_kind(value) == TS_PICKLE_DICT;
}

/* Moves the values from `first` on into the container; for a dict only complete pairs. */
static int fold_items(struct ts_pickle *p, ts_pickle_value into, size_t first)
{
	bool is_dict = ts_pickle_kind(into) == TS_PICKLE_DICT;
	size_t count = first;

	for (size_t i = first; i < p->depth; i++) {
		ts_pickle_value value = p->stack[i];
		bool is_key = is_dict && (count - first) % 2 == 0;

		if (count > first && belongs_below(p, p->stack[count - 1], value)) {
			if (pickle_append(p, p->stack[count - 1], &value, 1))
				return TS_ENOMEM;
		} else if (is_key && count > first && ts_pickle_is_container(value) &&
			   ts_pickle_kind(p->stack[count - 1]) == TS_PICKLE_LIST) {
			if (pickle_append(p, p->stack[count - 1], &value, 1))
				return TS_ENOMEM;
		} else {
			p->stack[count++] = value;
		}
	}
	if (is_dict)
		count -= (count - first) % 2;
	p->depth = first;
	return pickle_append(p, into, p->stack + first, count - first);
}

int ts_pickle_fold(struct ts_pickle *p, ts_pickle_value *ret_value)
{
	*ret_value = TS_PICKLE_NONE;
	/* Its items were about to follow. */
	if (p->depth && ts_pickle_kind(p->stack[p->depth - 1]) == TS_PICKLE_DICT &&
	    !ts_pickle_count(p, p->stack[p->depth - 1]))
		container_at(p, p->stack[p->depth - 1])->note = TS_PICKLE_NOTE_CUT;
	while (p->depth) {
		size_t first = p->mark_count ? p->marks[--p->mark_count] : 1;
		ts_pickle_value into;

		if (!first || first > p->depth) {
			p->depth = first ? p->depth : 0;
			continue;
		}
		into = p->stack[first - 1];
		if (!ts_pickle_is_container(into)) {
			p->depth = first - 1;
			continue;
		}
		if (fold_items(p, into, first))
			return TS_ENOMEM;
		if (ts_pickle_kind(into) == TS_PICKLE_DICT)
			container_at(p, into)->note = TS_PICKLE_NOTE_CUT;
		if (!p->mark_count && first == 1) {
			*ret_value = into;
			p->depth = 0;
		}
	}
	return TS_OK;
}

/* ---- all ---- */

int ts_pickle_init(struct ts_pickle *p, struct ts_import *import, const char *const *texts,
		   size_t count)
{
	*p = (struct ts_pickle){ .import = import };
	p->slots.item_bytes = sizeof(ts_pickle_value);
	p->slots.used = 0;
	p->containers.item_bytes = sizeof(struct container);
	ts_strmap_init(&p->texts, 0);
	for (size_t i = 0; i < count; i++)
		if (ts_strmap_intern(&p->texts, texts[i], strlen(texts[i]), NULL) != i)
			return TS_ENOMEM;
	return take(&p->slots, 1, &(uint64_t){ 0 });
}

void ts_pickle_release(struct ts_pickle *p)
{
	ts_strmap_release(&p->texts);
	release_pool(&p->slots);
	release_pool(&p->containers);
	free(p->wides);
	free(p->stack);
	free(p->marks);
	free(p->memo);
	ts_map_release(&p->far_memo);
	ts_text_release(&p->scratch);
}
