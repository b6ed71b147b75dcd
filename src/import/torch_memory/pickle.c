/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pickle virtual machine: a stack, marks on it, a memo. Each opcode is one case below; those that
 * would run code are in pickle_refuse.c.
 */
#include "import/torch_memory/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "import/torch_memory/pickle_values.h"

/* ---- the stack ---- */

static int push(struct ts_pickle *p, ts_pickle_value value, struct ts_error *err)
{
	if (TS_UNLIKELY(p->depth == p->stack_capacity) &&
	    ts_grow_array((void **)&p->stack, &p->stack_capacity, p->depth + 1, sizeof(*p->stack)))
		return pickle_no_memory(p, err);
	p->stack[p->depth++] = value;
	return TS_OK;
}

static int push_mark(struct ts_pickle *p, struct ts_error *err)
{
	if (ts_grow_array((void **)&p->marks, &p->mark_capacity, p->mark_count + 1,
			  sizeof(*p->marks)))
		return pickle_no_memory(p, err);
	p->marks[p->mark_count++] = p->depth;
	return TS_OK;
}

static int pop_mark(struct ts_pickle *p, size_t *ret_first, struct ts_error *err)
{
	if (!p->mark_count)
		return pickle_bad(p, "missing mark", err);
	*ret_first = p->marks[--p->mark_count];
	return TS_OK;
}

static int push_new(struct ts_pickle *p, enum ts_pickle_kind kind, struct ts_error *err)
{
	ts_pickle_value value;

	if (pickle_container(p, kind, &value))
		return pickle_no_memory(p, err);
	return push(p, value, err);
}

/* Moves the topmost values into a new container, which replaces them. */
static int gather(struct ts_pickle *p, enum ts_pickle_kind kind, size_t first, struct ts_error *err)
{
	ts_pickle_value value;

	if (kind == TS_PICKLE_DICT && (p->depth - first) % 2)
		return pickle_bad(p, "dict key without a value", err);
	if (pickle_container(p, kind, &value) ||
	    (p->depth > first && pickle_append(p, value, p->stack + first, p->depth - first)))
		return pickle_no_memory(p, err);
	p->depth = first;
	return push(p, value, err);
}

static int gather_marked(struct ts_pickle *p, enum ts_pickle_kind kind, struct ts_error *err)
{
	size_t first = 0;
	int rc = pop_mark(p, &first, err);

	return rc ? rc : gather(p, kind, first, err);
}

/* Moves the topmost values into the container below them. */
static int put_into(struct ts_pickle *p, enum ts_pickle_kind kind, size_t first,
		    struct ts_error *err)
{
	size_t floor = p->mark_count ? p->marks[p->mark_count - 1] : 0;

	if (first <= floor || ts_pickle_kind(p->stack[first - 1]) != kind)
		return pickle_bad(p, "items without a list, dict or set", err);
	if (kind == TS_PICKLE_DICT && (p->depth - first) % 2)
		return pickle_bad(p, "dict key without a value", err);
	if (pickle_append(p, p->stack[first - 1], p->stack + first, p->depth - first))
		return pickle_no_memory(p, err);
	p->depth = first;
	return TS_OK;
}

static int put_marked(struct ts_pickle *p, enum ts_pickle_kind kind, struct ts_error *err)
{
	size_t first = 0;
	int rc = pop_mark(p, &first, err);

	return rc ? rc : put_into(p, kind, first, err);
}

static int put_top(struct ts_pickle *p, enum ts_pickle_kind kind, size_t count,
		   struct ts_error *err)
{
	if (!pickle_has(p, count))
		return pickle_bad(p, "missing value", err);
	return put_into(p, kind, p->depth - count, err);
}

/* ---- the memo ---- */

static int memoize(struct ts_pickle *p, uint64_t number, struct ts_error *err)
{
	if (!pickle_has(p, 1))
		return pickle_bad(p, "nothing to memoize", err);
	if (number > p->memo_count) {
		if (ts_map_put(&p->far_memo, number, p->stack[p->depth - 1]))
			return pickle_no_memory(p, err);
		return TS_OK;
	}
	if (number == p->memo_count) {
		if (ts_grow_array((void **)&p->memo, &p->memo_capacity, p->memo_count + 1,
				  sizeof(*p->memo)))
			return pickle_no_memory(p, err);
		p->memo_count++;
	}
	p->memo[number] = p->stack[p->depth - 1];
	return TS_OK;
}

static int recall(struct ts_pickle *p, uint64_t number, struct ts_error *err)
{
	ts_pickle_value value;

	if (TS_LIKELY(number < p->memo_count))
		return push(p, p->memo[number], err);
	if (!ts_map_get(&p->far_memo, number, &value))
		return pickle_bad(p, "memo entry that was never stored", err);
	return push(p, value, err);
}

static int line_number(struct ts_pickle *p, uint64_t *ret, struct ts_error *err)
{
	const char *text;
	size_t length;
	int64_t number;
	int rc = pickle_need_line(p, &text, &length, err);

	if (rc)
		return rc;
	if (ts_parse_int64(text, length, &number) || number < 0)
		return pickle_bad(p, "not a memo index", err);
	*ret = (uint64_t)number;
	return TS_OK;
}

/* ---- numbers ---- */

static int push_int(struct ts_pickle *p, int64_t number, struct ts_error *err)
{
	ts_pickle_value value;

	if (pickle_number(p, number, &value))
		return pickle_no_memory(p, err);
	return push(p, value, err);
}

/* Two's complement, little-endian. */
static int push_long(struct ts_pickle *p, uint64_t bytes, struct ts_error *err)
{
	const char *data;
	uint64_t number = 0;
	int rc;

	if (bytes > TS_IMPORT_MAX_STRING)
		return pickle_bad(p, "a number is longer than 64 MiB", err);
	rc = pickle_need(p, (size_t)bytes, &data, err);
	if (rc)
		return rc;
	if (bytes > 8)
		return push(p, TS_PICKLE_BIG, err);
	if (bytes && (data[bytes - 1] & 0x80))
		number = UINT64_MAX;
	for (size_t i = (size_t)bytes; i-- > 0;)
		number = number << 8 | (unsigned char)data[i];
	return push_int(p, (int64_t)number, err);
}

/* INT and LONG: decimal, LONG with a trailing L; 00 and 01 are bools in protocol 1. */
static int push_decimal(struct ts_pickle *p, bool is_int, struct ts_error *err)
{
	const char *text;
	size_t length;
	int64_t number;
	int rc = pickle_need_line(p, &text, &length, err);

	if (rc)
		return rc;
	if (is_int && length == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1'))
		return push(p, text[1] == '1' ? TS_PICKLE_TRUE : TS_PICKLE_FALSE, err);
	if (length && text[length - 1] == 'L')
		length--;
	if (length > 18 && strspn(text + 1, "0123456789") + 1 >= length &&
	    ts_parse_int64(text, length, &number))
		return push(p, TS_PICKLE_BIG, err);
	if (ts_parse_int64(text, length, &number))
		return pickle_bad(p, "not an integer", err);
	return push_int(p, number, err);
}

static int push_float(struct ts_pickle *p, double number, struct ts_error *err)
{
	ts_pickle_value value;

	if (pickle_real(p, number, &value))
		return pickle_no_memory(p, err);
	return push(p, value, err);
}

static int push_binary_float(struct ts_pickle *p, struct ts_error *err)
{
	uint64_t bits;
	double number;
	int rc = pickle_need_number(p, 8, &bits, err);

	bits = __builtin_bswap64(bits);
	memcpy(&number, &bits, sizeof(number));
	return rc ? rc : push_float(p, number, err);
}

static int push_text_float(struct ts_pickle *p, struct ts_error *err)
{
	char copy[64];
	const char *text;
	size_t length;
	int rc = pickle_need_line(p, &text, &length, err);

	if (rc)
		return rc;
	if (!length || length >= sizeof(copy))
		return pickle_bad(p, "not a number", err);
	memcpy(copy, text, length);
	copy[length] = '\0';
	return push_float(p, ts_real_parse(copy), err);
}

/* ---- texts ---- */

static int push_interned(struct ts_pickle *p, enum ts_pickle_kind kind, const char *text,
			 size_t length, struct ts_error *err)
{
	uint32_t id = ts_strmap_intern(&p->texts, text, length, NULL);

	if (id == TS_STRMAP_NONE)
		return pickle_no_memory(p, err);
	return push(p, (ts_pickle_value)id << 4 | kind, err);
}

/* The length in `size_bytes` bytes, then the text. */
static int push_counted(struct ts_pickle *p, enum ts_pickle_kind kind, size_t size_bytes,
			struct ts_error *err)
{
	const char *text;
	uint64_t length;
	int rc = pickle_need_number(p, size_bytes, &length, err);

	if (rc)
		return rc;
	if (length > TS_IMPORT_MAX_STRING)
		return pickle_bad(p, "a string is longer than 64 MiB", err);
	rc = pickle_need(p, (size_t)length, &text, err);
	return rc ? rc : push_interned(p, kind, text, (size_t)length, err);
}

/* UNICODE: raw except for \u and \U. STRING: a Python literal. */
static int push_line_text(struct ts_pickle *p, bool is_literal, struct ts_error *err)
{
	const char *text;
	size_t length;
	int rc = pickle_need_line(p, &text, &length, err);

	if (rc)
		return rc;
	ts_text_clear(&p->scratch);
	if (!pickle_unescape(&p->scratch, text, length, is_literal))
		return pickle_bad(p, "not a quoted string", err);
	if (p->scratch.failed)
		return pickle_no_memory(p, err);
	return push_interned(p, TS_PICKLE_TEXT, p->scratch.data ? p->scratch.data : "",
			     p->scratch.length, err);
}

/* ---- opcodes ---- */

static int skip_frame(struct ts_pickle *p, size_t bytes, struct ts_error *err)
{
	const char *data;

	return pickle_need(p, bytes, &data, err);
}

static int check_protocol(struct ts_pickle *p, struct ts_error *err)
{
	uint64_t protocol;
	int rc = pickle_need_number(p, 1, &protocol, err);

	if (!rc && protocol > 5)
		return pickle_bad(p, "pickle protocol above 5", err);
	return rc;
}

static int pop(struct ts_pickle *p, struct ts_error *err)
{
	if (pickle_has(p, 1))
		p->depth--;
	else if (p->mark_count)
		p->mark_count--;
	else
		return pickle_bad(p, "missing value", err);
	return TS_OK;
}

static int pop_to_mark(struct ts_pickle *p, struct ts_error *err)
{
	size_t first = 0;
	int rc = pop_mark(p, &first, err);

	if (!rc)
		p->depth = first;
	return rc;
}

static int tuple_of(struct ts_pickle *p, size_t count, struct ts_error *err)
{
	if (!pickle_has(p, count))
		return pickle_bad(p, "missing value", err);
	return gather(p, TS_PICKLE_TUPLE, p->depth - count, err);
}

static int memo_opcode(struct ts_pickle *p, unsigned char opcode, struct ts_error *err)
{
	uint64_t number = p->memo_count;
	int rc = TS_OK;

	if (opcode == 'p' || opcode == 'g')
		rc = line_number(p, &number, err);
	else if (opcode == 'q' || opcode == 'h')
		rc = pickle_need_number(p, 1, &number, err);
	else if (opcode == 'r' || opcode == 'j')
		rc = pickle_need_number(p, 4, &number, err);
	if (rc)
		return rc;
	return opcode == 'g' || opcode == 'h' || opcode == 'j' ? recall(p, number, err)
							       : memoize(p, number, err);
}

static int number_opcode(struct ts_pickle *p, unsigned char opcode, struct ts_error *err)
{
	uint64_t number = 0;
	int rc;

	switch (opcode) {
	case 'K': /* BININT1 */
		rc = pickle_need_number(p, 1, &number, err);
		return rc ? rc : push_int(p, (int64_t)number, err);
	case 'M': /* BININT2 */
		rc = pickle_need_number(p, 2, &number, err);
		return rc ? rc : push_int(p, (int64_t)number, err);
	case 'J': /* BININT */
		rc = pickle_need_number(p, 4, &number, err);
		return rc ? rc : push_int(p, (int32_t)number, err);
	case 0x8a: /* LONG1 */
		rc = pickle_need_number(p, 1, &number, err);
		return rc ? rc : push_long(p, number, err);
	case 0x8b: /* LONG4 */
		rc = pickle_need_number(p, 4, &number, err);
		return rc ? rc : push_long(p, number, err);
	case 'G': /* BINFLOAT */
		return push_binary_float(p, err);
	case 'F': /* FLOAT */
		return push_text_float(p, err);
	default: /* INT, LONG */
		return push_decimal(p, opcode == 'I', err);
	}
}

static int text_opcode(struct ts_pickle *p, unsigned char opcode, struct ts_error *err)
{
	switch (opcode) {
	case 0x8c: /* SHORT_BINUNICODE */
	case 'U':  /* SHORT_BINSTRING */
		return push_counted(p, TS_PICKLE_TEXT, 1, err);
	case 'X': /* BINUNICODE */
	case 'T': /* BINSTRING */
		return push_counted(p, TS_PICKLE_TEXT, 4, err);
	case 0x8d: /* BINUNICODE8 */
		return push_counted(p, TS_PICKLE_TEXT, 8, err);
	case 'C': /* SHORT_BINBYTES */
		return push_counted(p, TS_PICKLE_BYTES, 1, err);
	case 'B': /* BINBYTES */
		return push_counted(p, TS_PICKLE_BYTES, 4, err);
	case 0x8e: /* BINBYTES8 */
	case 0x96: /* BYTEARRAY8 */
		return push_counted(p, TS_PICKLE_BYTES, 8, err);
	default: /* STRING, UNICODE */
		return push_line_text(p, opcode == 'S', err);
	}
}

/* All but STOP. */
static int run_opcode(struct ts_pickle *p, unsigned char opcode, struct ts_error *err)
{
	switch (opcode) {
	case 'h':  /* BINGET */
	case 'j':  /* LONG_BINGET */
	case 'g':  /* GET */
	case 'q':  /* BINPUT */
	case 'r':  /* LONG_BINPUT */
	case 'p':  /* PUT */
	case 0x94: /* MEMOIZE */
		return memo_opcode(p, opcode, err);
	case 'K':
	case 'M':
	case 'J':
	case 0x8a:
	case 0x8b:
	case 'G':
	case 'F':
	case 'I':
	case 'L':
		return number_opcode(p, opcode, err);
	case 0x8c:
	case 0x8d:
	case 0x8e:
	case 0x96:
	case 'X':
	case 'U':
	case 'T':
	case 'C':
	case 'B':
	case 'S':
	case 'V':
		return text_opcode(p, opcode, err);
	case '(': /* MARK */
		return push_mark(p, err);
	case 'u': /* SETITEMS */
		return put_marked(p, TS_PICKLE_DICT, err);
	case 'e': /* APPENDS */
		return put_marked(p, TS_PICKLE_LIST, err);
	case 0x90: /* ADDITEMS */
		return put_marked(p, TS_PICKLE_SET, err);
	case 's': /* SETITEM */
		return put_top(p, TS_PICKLE_DICT, 2, err);
	case 'a': /* APPEND */
		return put_top(p, TS_PICKLE_LIST, 1, err);
	case '}': /* EMPTY_DICT */
		return push_new(p, TS_PICKLE_DICT, err);
	case ']': /* EMPTY_LIST */
		return push_new(p, TS_PICKLE_LIST, err);
	case ')': /* EMPTY_TUPLE */
		return push_new(p, TS_PICKLE_TUPLE, err);
	case 0x8f: /* EMPTY_SET */
		return push_new(p, TS_PICKLE_SET, err);
	case 't': /* TUPLE */
		return gather_marked(p, TS_PICKLE_TUPLE, err);
	case 'l': /* LIST */
		return gather_marked(p, TS_PICKLE_LIST, err);
	case 'd': /* DICT */
		return gather_marked(p, TS_PICKLE_DICT, err);
	case 0x91: /* FROZENSET */
		return gather_marked(p, TS_PICKLE_SET, err);
	case 0x85: /* TUPLE1 */
	case 0x86: /* TUPLE2 */
	case 0x87: /* TUPLE3 */
		return tuple_of(p, (size_t)opcode - 0x84, err);
	case 'N': /* NONE */
		return push(p, TS_PICKLE_NONE, err);
	case 0x88: /* NEWTRUE */
		return push(p, TS_PICKLE_TRUE, err);
	case 0x89: /* NEWFALSE */
		return push(p, TS_PICKLE_FALSE, err);
	case 0x95: /* FRAME */
		return skip_frame(p, 8, err);
	case 0x80: /* PROTO */
		return check_protocol(p, err);
	case '0': /* POP */
		return pop(p, err);
	case '1': /* POP_MARK */
		return pop_to_mark(p, err);
	case '2': /* DUP */
		return pickle_has(p, 1) ? push(p, p->stack[p->depth - 1], err)
					: pickle_bad(p, "missing value", err);
	default:
		return pickle_refuse(p, opcode, err);
	}
}

int ts_pickle_read(struct ts_pickle *p, ts_pickle_value *ret_value, struct ts_error *err)
{
	struct ts_import *import = p->import;

	for (;;) {
		const char *opcode;
		int rc;

		p->at = ts_input_stream_at(&import->stream, import->stream.js.next);
		rc = pickle_need(p, 1, &opcode, err);
		if (rc)
			return rc;
		if (*opcode == '.')
			break;
		rc = run_opcode(p, (unsigned char)*opcode, err);
		if (rc)
			return rc;
	}
	if (p->mark_count || p->depth != 1)
		return pickle_bad(p, "the pickle does not end with exactly one value", err);
	*ret_value = p->stack[--p->depth];
	return TS_OK;
}
