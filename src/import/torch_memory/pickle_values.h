/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the pickle reader's files only. */
#ifndef TS_IMPORT_TORCH_MEMORY_PICKLE_VALUES_H
#define TS_IMPORT_TORCH_MEMORY_PICKLE_VALUES_H

#include "import/torch_memory/pickle.h"

/* pickle_values.c: 0 or TS_ENOMEM. */
int pickle_container(struct ts_pickle *pickle, enum ts_pickle_kind kind, ts_pickle_value *ret);
int pickle_append(struct ts_pickle *p, ts_pickle_value value, const ts_pickle_value *items,
		  size_t count);
int pickle_number(struct ts_pickle *pickle, int64_t number, ts_pickle_value *ret);
int pickle_real(struct ts_pickle *pickle, double number, ts_pickle_value *ret);

/* Texts of protocol 0. False: a literal without its quotes. */
bool pickle_unescape(struct ts_text *out, const char *text, size_t length, bool is_literal);

/* pickle_input.c: consumes the requested bytes; pointers are valid until the next call. */
int pickle_need(struct ts_pickle *pickle, size_t bytes, const char **ret, struct ts_error *err);
int pickle_need_number(struct ts_pickle *pickle, size_t bytes, uint64_t *ret, struct ts_error *err);
int pickle_need_line(struct ts_pickle *pickle, const char **ret, size_t *ret_length,
		     struct ts_error *err);
int pickle_bad(struct ts_pickle *pickle, const char *reason, struct ts_error *err);
int pickle_no_memory(const struct ts_pickle *pickle, struct ts_error *err);

/* pickle_refuse.c: the error for an opcode that is not data. */
int pickle_refuse(struct ts_pickle *pickle, unsigned char opcode, struct ts_error *err);

/* Values below a mark cannot be taken before the mark. */
static inline bool pickle_has(const struct ts_pickle *p, size_t count)
{
	size_t floor = p->mark_count ? p->marks[p->mark_count - 1] : 0;

	return p->depth - floor >= count;
}

#endif
