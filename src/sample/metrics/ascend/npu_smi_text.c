/* SPDX-License-Identifier: Apache-2.0 */
/* Words and numbers in npu-smi's output. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "sample/metrics/ascend/npu_smi_internal.h"

bool npu_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct npu_span npu_trim(struct npu_span text)
{
	while (text.length && npu_is_blank(text.at[0])) {
		text.at++;
		text.length--;
	}
	while (text.length && npu_is_blank(text.at[text.length - 1]))
		text.length--;
	return text;
}

bool npu_starts_with(struct npu_span text, const char *prefix)
{
	size_t length = strlen(prefix);

	return text.length >= length && memcmp(text.at, prefix, length) == 0;
}

bool npu_is_text(struct npu_span text, const char *other)
{
	return text.length == strlen(other) && npu_starts_with(text, other);
}

bool npu_has_words(struct npu_span text, const char *words)
{
	while (text.length && *words) {
		if (npu_is_blank(*text.at) && *words == ' ') {
			text = npu_trim(text);
			words++;
		} else if (*text.at != *words) {
			return false;
		} else {
			text.at++;
			text.length--;
			words++;
		}
	}
	return !text.length && !*words;
}

struct npu_span npu_next_word(struct npu_span *text)
{
	struct npu_span word;

	*text = npu_trim(*text);
	word = (struct npu_span){ text->at, 0 };
	while (word.length < text->length && !npu_is_blank(text->at[word.length]))
		word.length++;
	text->at += word.length;
	text->length -= word.length;
	return word;
}

void npu_copy_text(char *buffer, size_t bytes, struct npu_span text)
{
	size_t used = 0;

	for (size_t i = 0; i < text.length && used + 1 < bytes; i++) {
		unsigned char c = (unsigned char)text.at[i];

		if (!npu_is_blank((char)c))
			buffer[used++] = (char)c;
		else if (used && buffer[used - 1] != ' ')
			buffer[used++] = ' ';
	}
	/* Not inside a character. */
	used = ts_utf8_valid_prefix(buffer, used);
	buffer[used] = '\0';
	ts_utf8_replace_controls(buffer, used, '?');
}

bool npu_parse_number(struct npu_span text, int64_t limit, int64_t *ret_number)
{
	return text.length && text.at[0] >= '0' && text.at[0] <= '9' &&
	       !ts_parse_int64(text.at, text.length, ret_number) && *ret_number < limit;
}

bool npu_is_absent(struct npu_span text)
{
	return npu_is_text(text, "NA") || npu_is_text(text, "N/A") || npu_is_text(text, "-");
}
