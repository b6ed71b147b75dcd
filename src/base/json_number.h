/* SPDX-License-Identifier: Apache-2.0 */
/* Number grammar, shared by the files behind json.h. Others use the functions there. */
#ifndef TS_BASE_JSON_NUMBER_H
#define TS_BASE_JSON_NUMBER_H

#include "base/json.h"

struct ts_json_number_parts {
	bool negative;
	bool has_fraction, has_exponent;
	const char *word; /* "NaN", "Infinity" or NULL; the other members are for NULL only */
	const char *integer, *integer_end;
	const char *fraction, *fraction_end;
	int64_t exponent; /* clamped to +-10^15 */
	const char *end;  /* of the token */
};

/*
 * Checks the number at `from` (no leading white space) and splits it. Leaves js->next alone;
 * returns what a scan function returns.
 */
int ts_json_split_number_(struct ts_json *js, const char *from, struct ts_json_number_parts *parts);

/* Whether the word is at p: 0, TS_JSON_MORE, or TS_EFORMAT with "expected a value". */
int ts_json_match_word_(struct ts_json *js, const char *p, const char *word, size_t length);

#endif
