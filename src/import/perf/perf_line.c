/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of perf script. A thread name may contain spaces, digits and colons, so the header line of
 * an event is parsed from its time outwards; function names may contain anything, so a frame is
 * parsed from both ends.
 */
#include "import/perf/perf_line.h"

#include <string.h>

#include "base/memory.h"

/* A thread name has at most 15 bytes, and so at most 8 words; a few more follow before the time. */
#define MAX_WORDS 24

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

struct ts_perf_text ts_perf_trim(const char *text, size_t length)
{
	while (length && is_space(*text)) {
		text++;
		length--;
	}
	while (length && is_space(text[length - 1]))
		length--;
	return (struct ts_perf_text){ text, length };
}

struct ts_perf_text ts_perf_word(struct ts_perf_text *text)
{
	struct ts_perf_text word = ts_perf_trim(text->text, text->length);
	size_t length = 0;

	while (length < word.length && !is_space(word.text[length]))
		length++;
	*text = ts_perf_trim(word.text + length, word.length - length);
	word.length = length;
	return word;
}

bool ts_perf_starts(struct ts_perf_text text, const char *with)
{
	size_t length = strlen(with);

	return text.length >= length && memcmp(text.text, with, length) == 0;
}

/* ---- numbers ---- */

bool ts_perf_decimal(struct ts_perf_text word, int64_t *ret_value)
{
	bool is_negative = word.length && word.text[0] == '-';
	int64_t value = 0;

	if (word.length == (size_t)is_negative)
		return false;
	for (size_t i = is_negative; i < word.length; i++)
		if (!is_digit(word.text[i]) || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, word.text[i] - '0', &value))
			return false;
	*ret_value = is_negative ? -value : value;
	return true;
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ts_perf_hex(struct ts_perf_text word, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!word.length || word.length > 16)
		return false;
	for (size_t i = 0; i < word.length; i++) {
		int digit = hex_digit(word.text[i]);

		if (digit < 0)
			return false;
		value = value << 4 | (uint64_t)digit;
	}
	*ret_value = value;
	return true;
}

/*
 * Digits, a point, and 6 or 9 digits: seconds of perf's clock. *ret_fits false: exceeds int64 ns.
 */
static bool parse_seconds(struct ts_perf_text word, int64_t *ret_ns, bool *ret_fits)
{
	const char *point = memchr(word.text, '.', word.length);
	size_t integer = point ? (size_t)(point - word.text) : 0;
	size_t decimals = point ? word.length - integer - 1 : 0;
	int64_t seconds = 0, fraction;

	if (!integer || (decimals != 6 && decimals != 9))
		return false;
	if (!ts_perf_decimal((struct ts_perf_text){ point + 1, decimals }, &fraction) ||
	    point[1] == '-')
		return false;
	for (size_t i = 0; i < integer; i++)
		if (!is_digit(word.text[i]))
			return false;
	*ret_fits = ts_perf_decimal((struct ts_perf_text){ word.text, integer }, &seconds) &&
		    !__builtin_mul_overflow(seconds, 1000000000, ret_ns) &&
		    !__builtin_add_overflow(*ret_ns, decimals == 6 ? fraction * 1000 : fraction,
					    ret_ns);
	return true;
}

/* ---- the first line of an event ---- */

/* The words of a line up to the current one. */
struct words {
	struct ts_perf_text list[MAX_WORDS];
	size_t count;
};

static bool parse_cpu(struct ts_perf_text word, int64_t *ret_cpu)
{
	return word.length > 2 && word.text[0] == '[' && word.text[word.length - 1] == ']' &&
	       is_digit(word.text[1]) &&
	       ts_perf_decimal((struct ts_perf_text){ word.text + 1, word.length - 2 }, ret_cpu);
}

/* "123" or "123/456" */
static bool parse_ids(struct ts_perf_text word, struct ts_perf_head *head)
{
	const char *slash = memchr(word.text, '/', word.length);
	size_t first = slash ? (size_t)(slash - word.text) : 0;

	if (!slash)
		return head->has_tid = ts_perf_decimal(word, &head->tid);
	if (!ts_perf_decimal((struct ts_perf_text){ word.text, first }, &head->pid) ||
	    !ts_perf_decimal((struct ts_perf_text){ slash + 1, word.length - first - 1 },
			     &head->tid))
		return false;
	head->has_pid = head->has_tid = true;
	return true;
}

/* Output of -F misc: mode letters. */
static bool is_misc(struct ts_perf_text word)
{
	for (size_t i = 0; i < word.length; i++)
		if (!strchr("KUHGgMEShFp", word.text[i]))
			return false;
	return word.length > 0 && word.length <= 8;
}

/* A date or time of day: -F tod. */
static bool is_time_of_day(struct ts_perf_text word)
{
	bool has_mark = false;

	for (size_t i = 0; i < word.length; i++) {
		if (!is_digit(word.text[i]) && !strchr("-:.", word.text[i]))
			return false;
		has_mark |= i > 0 && (word.text[i] == '-' || word.text[i] == ':');
	}
	return has_mark && is_digit(word.text[0]);
}

/* Thread, ids and CPU, which come before the last of `count` words. False: no id. */
static bool parse_front(const struct words *words, size_t count, const char *line,
			struct ts_perf_head *head)
{
	int64_t cpu;

	while (count && is_time_of_day(words->list[count - 1]))
		count--;
	if (count > 1 && is_misc(words->list[count - 1]) &&
	    (parse_cpu(words->list[count - 2], &cpu) || parse_ids(words->list[count - 2], head)))
		count--;
	head->has_pid = head->has_tid = false;
	if (count && parse_cpu(words->list[count - 1], &head->cpu)) {
		head->has_cpu = true;
		count--;
	}
	if (count && parse_ids(words->list[count - 1], head))
		count--;
	head->comm = (struct ts_perf_text){ line, 0 };
	if (count)
		head->comm = (struct ts_perf_text){ words->list[0].text,
						    (size_t)(words->list[count - 1].text +
							     words->list[count - 1].length -
							     words->list[0].text) };
	return head->has_tid;
}

static bool is_event(struct ts_perf_text word)
{
	return word.length > 1 && word.text[word.length - 1] == ':';
}

/* After the time. */
static void parse_back(struct ts_perf_text rest, struct ts_perf_head *head)
{
	struct ts_perf_text after = rest, word = ts_perf_word(&after);

	if (ts_perf_starts(word, "PERF_RECORD_")) {
		head->record = (struct ts_perf_text){ rest.text + 12, rest.length - 12 };
		return;
	}
	if (ts_perf_decimal(word, &head->period) && head->period >= 0) {
		head->has_period = true;
		rest = after;
		word = ts_perf_word(&after);
	}
	if (is_event(word)) {
		head->event = (struct ts_perf_text){ word.text, word.length - 1 };
		rest = after;
	}
	head->rest = ts_perf_trim(rest.text, rest.length);
}

/* The time in the last word, which ends with a colon. */
static bool parse_time(struct ts_perf_text word, struct ts_perf_head *head)
{
	bool fits = false;

	if (!is_event(word) ||
	    !parse_seconds((struct ts_perf_text){ word.text, word.length - 1 }, &head->time, &fits))
		return false;
	head->has_time = fits;
	head->is_time_too_large = !fits;
	return true;
}

/* "comm 12/34 [000] 5000 cycles:", where -F omitted the time. */
static bool parse_without_time(const struct words *words, const char *line,
			       struct ts_perf_text rest, struct ts_perf_head *head)
{
	struct ts_perf_text event = words->list[words->count - 1];
	size_t count = words->count - 1;
	int64_t number;

	if (!is_event(event))
		return false;
	/* Of two numbers the first is the thread. */
	if (count > 1 && ts_perf_decimal(words->list[count - 1], &number) && number >= 0 &&
	    (parse_cpu(words->list[count - 2], &head->cpu) ||
	     parse_ids(words->list[count - 2], head))) {
		head->has_period = true;
		head->period = number;
		count--;
	}
	if (!parse_front(words, count, line, head))
		return false;
	head->event = (struct ts_perf_text){ event.text, event.length - 1 };
	head->rest = ts_perf_trim(rest.text, rest.length);
	return true;
}

bool ts_perf_parse_head(const char *line, size_t length, struct ts_perf_head *ret_head)
{
	struct ts_perf_text rest = ts_perf_trim(line, length);
	struct words words = { .count = 0 };
	struct ts_perf_head head, other;
	bool has_other = false;

	while (words.count < MAX_WORDS && rest.length) {
		words.list[words.count++] = ts_perf_word(&rest);
		head = (struct ts_perf_head){ 0 };
		if (parse_time(words.list[words.count - 1], &head)) {
			bool is_sure = parse_front(&words, words.count - 1, line, &head);

			parse_back(rest, &head);
			if (is_sure) {
				*ret_head = head;
				return true;
			}
		} else if (has_other || !parse_without_time(&words, line, rest, &head)) {
			continue;
		}
		/* Without a thread or a time: used if nothing better is found. */
		if (!has_other)
			other = head;
		has_other = true;
	}
	if (has_other)
		*ret_head = other;
	return has_other;
}

bool ts_perf_is_sure(const struct ts_perf_head *head)
{
	return head->has_time && head->has_tid && head->comm.length > 0 &&
	       (head->event.length > 0 || head->record.length > 0);
}

/* ---- frames ---- */

/* Start of the bracketed part at the end of the text, counting nested brackets. SIZE_MAX: none. */
static size_t last_brackets(struct ts_perf_text text)
{
	size_t depth = 0, last = SIZE_MAX;

	if (!text.length || text.text[text.length - 1] != ')')
		return SIZE_MAX;
	for (size_t i = text.length; i > 0; i--) {
		char c = text.text[i - 1];

		depth += c == ')';
		if (c != '(')
			continue;
		depth -= depth > 0;
		if (i == 1 || is_space(text.text[i - 2])) {
			if (depth == 0)
				return i - 1;
			/* A file name may have unbalanced brackets. */
			if (last == SIZE_MAX)
				last = i - 1;
		}
	}
	return last;
}

static bool is_unknown(struct ts_perf_text text)
{
	return text.length == 9 && memcmp(text.text, "[unknown]", 9) == 0;
}

/* Without "+0x1c". */
static struct ts_perf_text without_offset(struct ts_perf_text symbol)
{
	size_t at = symbol.length;

	while (at > 0 && hex_digit(symbol.text[at - 1]) >= 0)
		at--;
	if (at < symbol.length && at > 3 && memcmp(symbol.text + at - 3, "+0x", 3) == 0)
		symbol.length = at - 3;
	return symbol;
}

bool ts_perf_parse_frame(struct ts_perf_text line, struct ts_perf_frame *ret_frame)
{
	struct ts_perf_frame frame = { 0 };
	struct ts_perf_text rest = line;
	size_t brackets;

	if (!ts_perf_hex(ts_perf_word(&rest), &frame.ip))
		return false;
	brackets = last_brackets(rest);
	if (brackets != SIZE_MAX) {
		frame.object = (struct ts_perf_text){ rest.text + brackets + 1,
						      rest.length - brackets - 2 };
		rest = ts_perf_trim(rest.text, brackets);
	}
	frame.is_inlined = frame.object.length == 7 && ts_perf_starts(frame.object, "inlined");
	if (frame.is_inlined || is_unknown(frame.object))
		frame.object.length = 0;
	frame.symbol = without_offset(rest);
	if (is_unknown(frame.symbol))
		frame.symbol.length = 0;
	*ret_frame = frame;
	return true;
}

bool ts_perf_parse_source(struct ts_perf_text line, struct ts_perf_text *ret_file,
			  int64_t *ret_line)
{
	const char *more = memmem(line.text, line.length, " (discriminator ", 16);
	struct ts_perf_text digits;
	size_t colon;
	int64_t number;

	if (more)
		line.length = (size_t)(more - line.text);
	colon = line.length;
	while (colon > 0 && line.text[colon - 1] != ':')
		colon--;
	digits = (struct ts_perf_text){ line.text + colon, line.length - colon };
	if (colon < 2 || !ts_perf_decimal(digits, &number) || number < 0)
		return false;
	*ret_file = (struct ts_perf_text){ line.text, colon - 1 };
	*ret_line = number;
	return line.text[0] != '?';
}

/* ---- the rest of the first line ---- */

/* Cuts at a word that starts with this and, if `also` is set, contains that. */
static struct ts_perf_text cut_from(struct ts_perf_text *text, const char *with, char also)
{
	struct ts_perf_text after = *text;

	while (after.length) {
		struct ts_perf_text word = ts_perf_word(&after);

		if (ts_perf_starts(word, with) && (!also || memchr(word.text, also, word.length))) {
			size_t before = (size_t)(word.text - text->text);
			struct ts_perf_text cut = ts_perf_trim(word.text, text->length - before);

			*text = ts_perf_trim(text->text, before);
			return cut;
		}
	}
	return (struct ts_perf_text){ text->text, 0 };
}

/* "address symbol (dso) ip symbol (dso)": start of the second frame; NULL: only one. */
static const char *second_frame(struct ts_perf_text text)
{
	const char *end = text.text + text.length;
	size_t last = text.length;

	/* Start of the last bracketed part: the second frame begins before it. */
	if (!text.length || end[-1] != ')')
		return NULL;
	while (last > 1 && !(text.text[last - 1] == '(' && is_space(text.text[last - 2])))
		last--;
	for (const char *p = text.text; (p = memmem(p, (size_t)(end - p), ") ", 2)); p++) {
		struct ts_perf_text after = { p + 1, (size_t)(end - p - 1) };
		struct ts_perf_text word = ts_perf_word(&after);
		uint64_t ip;

		if (word.text >= text.text + last - 1)
			return NULL;
		if (ts_perf_hex(word, &ip))
			return word.text;
	}
	return NULL;
}

void ts_perf_split_rest(struct ts_perf_text rest, struct ts_perf_rest *ret_rest)
{
	struct ts_perf_rest split = { 0 };
	struct ts_perf_text after, first, second;
	const char *frame;
	uint64_t value;

	split.registers = cut_from(&rest, "ABI:", 0);
	split.branches = cut_from(&rest, "0x", '/');
	after = rest;
	first = ts_perf_word(&after);
	if (!ts_perf_hex(first, &value)) {
		split.other = rest;
		*ret_rest = split;
		return;
	}
	frame = second_frame(rest);
	if (!frame && after.length) {
		struct ts_perf_text behind = after;

		second = ts_perf_word(&behind);
		/* A function may be called "add": then its file follows. */
		if (ts_perf_hex(second, &value) && last_brackets(behind) != 0)
			frame = second.text;
	}
	if (frame)
		split.address = first;
	else
		frame = rest.text;
	split.frame = (struct ts_perf_text){ frame, (size_t)(rest.text + rest.length - frame) };
	*ret_rest = split;
}
