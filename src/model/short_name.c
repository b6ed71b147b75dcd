/* SPDX-License-Identifier: Apache-2.0 */
/* See short_name.h. */
#include "model/short_name.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#define ANONYMOUS "(anonymous namespace)"

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The position after the digits of 0x... if an address begins at `at`; else `at`. */
static size_t skip_address(const char *name, size_t length, size_t at)
{
	size_t end = at + 2;

	if (length - at < 3 || name[at] != '0' || name[at + 1] != 'x')
		return at;
	while (end < length && is_hex(name[end]))
		end++;
	return end;
}

size_t ts_short_name(const char *name, size_t length, char *buffer)
{
	size_t out = 0, depth = 0, i = 0;

	if (ts_starts_with_len(name, length, "void "))
		i = strlen("void ");
	while (i < length) {
		char c = name[i];
		size_t end = skip_address(name, length, i);

		if (depth == 0 && ts_starts_with_len(name + i, length - i, ANONYMOUS)) {
			memcpy(buffer + out, ANONYMOUS, strlen(ANONYMOUS));
			out += strlen(ANONYMOUS);
			i += strlen(ANONYMOUS);
			continue;
		}
		if (c == '<' || c == '(')
			depth++;
		else if (depth && (c == '>' || c == ')') && name[i - 1] != '-')
			depth--;
		else if (depth == 0)
			buffer[out++] = c;
		i = TS_MAX(end, i + 1);
	}
	while (out && buffer[out - 1] == ' ')
		out--;
	if (out)
		return out;
	memcpy(buffer, name, length);
	return length;
}
