/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes one UTF-8 character, for the files behind text.h. Others use the functions there. */
#ifndef TS_BASE_UTF8_H
#define TS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* U+FFFD */
#define TS_UTF8_REPLACEMENT "\xef\xbf\xbd"

/*
 * Length of the character at p < end: of a well-formed sequence (*ret_valid true), or of the
 * longest prefix of one that is ill-formed or truncated (at least 1).
 */
size_t ts_utf8_step(const char *p, const char *end, bool *ret_valid);

/* The code point of a well-formed sequence of this length. */
uint32_t ts_utf8_decode(const char *p, size_t bytes);

#endif
