/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rejects opcodes that would make Python import, call or build something, or that need data outside
 * the file. Nothing is ever executed.
 */
#include <inttypes.h>

#include "import/torch_memory/pickle_values.h"

static int refuse(struct ts_pickle *p, const char *what, const char *name, size_t length,
		  struct ts_error *err)
{
	bool plain = length > 0;
	int shown = (int)TS_MIN(length, (size_t)80);

	for (int i = 0; i < shown; i++)
		plain = plain && (unsigned char)name[i] >= ' ' && (unsigned char)name[i] < 0x7f;
	p->refused = true;
	return ts_error_set(err, TS_EFORMAT,
			    "input '%s': byte %" PRIu64
			    ": %s%s%.*s%s; a memory snapshot is plain data: "
			    "the file was rejected, and none of its code was run",
			    p->import->path, p->at, what, plain ? " '" : "", plain ? shown : 0,
			    name, plain ? "'" : "");
}

/* GLOBAL and INST: two lines, module and name. */
static int refuse_named(struct ts_pickle *p, struct ts_error *err)
{
	const char *text;
	size_t length;
	int rc = pickle_need_line(p, &text, &length, err);

	if (rc)
		return rc;
	ts_text_clear(&p->scratch);
	ts_text_append(&p->scratch, text, TS_MIN(length, (size_t)40));
	ts_text_append_char(&p->scratch, '.');
	rc = pickle_need_line(p, &text, &length, err);
	if (rc)
		return rc;
	ts_text_append(&p->scratch, text, TS_MIN(length, (size_t)40));
	return refuse(p, "the pickle asks Python to import", ts_text_cstr(&p->scratch),
		      p->scratch.length, err);
}

/* STACK_GLOBAL: module and name are the two topmost values. */
static int refuse_stacked(struct ts_pickle *p, struct ts_error *err)
{
	ts_text_clear(&p->scratch);
	for (size_t i = 0; pickle_has(p, 2) && i < 2; i++) {
		size_t length = 0;
		const char *text = ts_strmap_text(
			&p->texts, ts_pickle_text(p->stack[p->depth - 2 + i]), &length);

		if (i)
			ts_text_append_char(&p->scratch, '.');
		if (text)
			ts_text_append(&p->scratch, text, TS_MIN(length, (size_t)40));
	}
	return refuse(p, "the pickle asks Python to import", ts_text_cstr(&p->scratch),
		      p->scratch.length, err);
}

int pickle_refuse(struct ts_pickle *p, unsigned char opcode, struct ts_error *err)
{
	switch (opcode) {
	case 'c': /* GLOBAL */
	case 'i': /* INST */
		return refuse_named(p, err);
	case 0x93: /* STACK_GLOBAL */
		return refuse_stacked(p, err);
	case 'P': /* PERSID */
	case 'Q': /* BINPERSID */
		return refuse(p, "the pickle refers to an external object", "", 0, err);
	case 0x97: /* NEXT_BUFFER */
	case 0x98: /* READONLY_BUFFER */
		return refuse(p, "the pickle refers to an external buffer", "", 0, err);
	case 0x82: /* EXT1 */
	case 0x83: /* EXT2 */
	case 0x84: /* EXT4 */
		return refuse(p, "the pickle asks for a class by extension code", "", 0, err);
	case 'R':  /* REDUCE */
	case 'b':  /* BUILD */
	case 'o':  /* OBJ */
	case 0x81: /* NEWOBJ */
	case 0x92: /* NEWOBJ_EX */
		return refuse(p, "the pickle asks Python to call a function", "", 0, err);
	default:
		return pickle_bad(p, "not a pickle opcode", err);
	}
}
