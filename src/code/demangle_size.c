/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates the length of a demangled C++ name without demangling it. Mangled names refer to
 * earlier parts by number, so a few hundred bytes can expand to gigabytes. Follows the grammar as
 * far as substitutions need it.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "code/demangle_internal.h"

#define MAX_DEPTH 512u  /* nesting of types */
#define MAX_FORWARD 12u /* arguments of a conversion operator's type: parsed twice */
#define ENOUGH (UINT64_C(1) << 32)

/*
 * The expansion of a part of the name. Template parameters are filled in by callers that know them.
 */
struct size {
	uint64_t bytes, holes;
};

struct parser {
	const char *at, *end;
	struct size *known; /* substitution table */
	size_t known_count, known_most;
	unsigned int depth;
	unsigned int unsure; /* numbers may be off by this many: demanglers differ */
	unsigned int conversions, forward;
	bool is_bad;
};

static struct size type(struct parser *parser);
static struct size name(struct parser *parser, struct size *ret_arguments);
static struct size encoding(struct parser *parser);
static struct size expressions(struct parser *parser, char end);

/* ---- sizes ---- */

static uint64_t most(uint64_t value)
{
	return TS_MIN(value, ENOUGH);
}

static void add(struct size *to, struct size more)
{
	to->bytes = most(to->bytes + more.bytes);
	to->holes = most(to->holes + more.holes);
}

static struct size constant(uint64_t bytes)
{
	return (struct size){ .bytes = bytes };
}

/* Each factor is at most 2^32, so products fit 64 bits. */
static struct size fill(struct size size, struct size arguments)
{
	return (struct size){ .bytes = most(size.bytes + most(size.holes * arguments.bytes)),
			      .holes = most(size.holes * arguments.holes) };
}

static void remember(struct parser *parser, struct size size)
{
	if (parser->known_count < parser->known_most)
		parser->known[parser->known_count++] = size;
	else
		parser->is_bad = true;
}

/* ---- letters ---- */

static char peek_at(const struct parser *parser, size_t ahead)
{
	return (size_t)(parser->end - parser->at) > ahead ? parser->at[ahead] : '\0';
}

static char peek(const struct parser *parser)
{
	return peek_at(parser, 0);
}

static void skip(struct parser *parser, size_t count)
{
	if ((size_t)(parser->end - parser->at) < count) {
		parser->is_bad = true;
		count = (size_t)(parser->end - parser->at);
	}
	parser->at += count;
}

static bool take(struct parser *parser, char letter)
{
	if (peek(parser) != letter)
		return false;
	skip(parser, 1);
	return true;
}

static void expect(struct parser *parser, char letter)
{
	if (!take(parser, letter))
		parser->is_bad = true;
}

static bool is_digit(char letter)
{
	return letter >= '0' && letter <= '9';
}

static bool is_upper(char letter)
{
	return letter >= 'A' && letter <= 'Z';
}

static bool is_lower(char letter)
{
	return letter >= 'a' && letter <= 'z';
}

static bool is_two(const struct parser *parser, const char *two)
{
	return peek(parser) == two[0] && peek_at(parser, 1) == two[1];
}

static uint64_t number(struct parser *parser)
{
	uint64_t value = 0;

	while (is_digit(peek(parser))) {
		value = most(value * 10 + (uint64_t)(peek(parser) - '0'));
		skip(parser, 1);
	}
	return value;
}

/* "_" is 0, "0_" is 1, and so on, in base 36. */
static uint64_t sequence(struct parser *parser)
{
	uint64_t value = 0;

	if (take(parser, '_'))
		return 0;
	while (is_digit(peek(parser)) || is_upper(peek(parser))) {
		char letter = peek(parser);

		value = most(value * 36 +
			     (uint64_t)(is_digit(letter) ? letter - '0' : letter - 'A' + 10));
		skip(parser, 1);
	}
	expect(parser, '_');
	return value + 1;
}

/* ---- references ---- */

static struct size reference(struct parser *parser)
{
	struct size largest = { 1, 0 };
	uint64_t index, first, last;

	skip(parser, 1);
	if (is_lower(peek(parser))) { /* of std:: */
		skip(parser, 1);
		return constant(2);
	}
	index = sequence(parser);
	if (!parser->known_count) {
		parser->is_bad = true;
		return largest;
	}
	first = index > parser->unsure ? index - parser->unsure : 0;
	if (first >= parser->known_count) /* not understood: treat as any */
		first = 0;
	last = TS_MIN(index + parser->unsure, (uint64_t)parser->known_count - 1);
	for (uint64_t i = first; i <= last; i++) {
		largest.bytes = TS_MAX(largest.bytes, parser->known[i].bytes);
		largest.holes = TS_MAX(largest.holes, parser->known[i].holes);
	}
	return largest;
}

static struct size parameter(struct parser *parser)
{
	skip(parser, 1);
	if (peek(parser) == 'L') /* template template parameter */
		parser->is_bad = true;
	sequence(parser);
	return (struct size){ 1, 1 };
}

/* ---- names ---- */

static struct size source_name(struct parser *parser)
{
	uint64_t length = number(parser);

	if (!length)
		parser->is_bad = true;
	skip(parser, length);
	return constant(length);
}

static struct size types_until(struct parser *parser)
{
	struct size all = { 0 };

	while (!parser->is_bad && peek(parser) && peek(parser) != 'E' && peek(parser) != '.') {
		if ((peek(parser) == 'R' || peek(parser) == 'O') && peek_at(parser, 1) == 'E')
			skip(parser, 1); /* member function qualifiers */
		else
			add(&all, type(parser));
	}
	return all;
}

static struct size lambda(struct parser *parser)
{
	struct size size;

	skip(parser, 2);
	size = types_until(parser);
	expect(parser, 'E');
	number(parser);
	expect(parser, '_');
	size.bytes = most(size.bytes + 8);
	size.holes = 0; /* "auto" */
	parser->unsure++;
	return size;
}

static bool is_one_of(const struct parser *parser, const char *pairs)
{
	for (; *pairs; pairs += 2)
		if (is_two(parser, pairs))
			return true;
	return false;
}

static void skip_operator(struct parser *parser)
{
	if (!is_lower(peek_at(parser, 1)) && !is_one_of(parser, "aNaSdVeOlSmImLoRpLrMrSsZfLfR"))
		parser->is_bad = true;
	skip(parser, 2);
}

static struct size operator_name(struct parser *parser)
{
	struct size size = { 12, 0 };

	if (is_two(parser, "cv")) {
		parser->conversions++;
		skip(parser, 2);
		add(&size, type(parser));
	} else if (is_two(parser, "li") || (peek(parser) == 'v' && is_digit(peek_at(parser, 1)))) {
		skip(parser, 2);
		add(&size, source_name(parser));
	} else {
		skip_operator(parser);
	}
	return size;
}

/* `last`: the constructed class. */
static struct size unqualified(struct parser *parser, struct size last)
{
	struct size size = { 1, 0 };
	char letter = peek(parser);

	if (letter == 'L') {
		skip(parser, 1);
		size = source_name(parser);
	} else if (is_digit(letter)) {
		size = source_name(parser);
	} else if (is_two(parser, "Ul")) {
		size = lambda(parser);
	} else if (is_two(parser, "Ut")) {
		skip(parser, 2);
		number(parser);
		expect(parser, '_');
		size = constant(16);
		remember(parser, size);
		parser->unsure++;
	} else if ((letter == 'C' || letter == 'D') && is_digit(peek_at(parser, 1))) {
		skip(parser, 2);
		size = last;
	} else if (is_lower(letter)) {
		size = operator_name(parser);
	} else {
		parser->is_bad = true;
	}
	while (!parser->is_bad && take(parser, 'B'))
		add(&size, source_name(parser));
	return size;
}

static struct size literal(struct parser *parser)
{
	struct size size = { 2, 0 };

	skip(parser, 1);
	if (peek(parser) == '_' || peek(parser) == 'Z') {
		take(parser, '_');
		expect(parser, 'Z');
		add(&size, encoding(parser));
	} else {
		add(&size, type(parser));
		while (peek(parser) && peek(parser) != 'E') {
			skip(parser, 1);
			size.bytes++;
		}
	}
	expect(parser, 'E');
	return size;
}

static struct size template_arguments(struct parser *parser)
{
	struct size all = { 2, 0 };

	if (++parser->depth > MAX_DEPTH)
		parser->is_bad = true;
	skip(parser, 1);
	while (!parser->is_bad && peek(parser) && peek(parser) != 'E') {
		struct size one;

		if (peek(parser) == 'L') {
			one = literal(parser);
		} else if (peek(parser) == 'I' || peek(parser) == 'J') {
			one = template_arguments(parser);
		} else if (take(parser, 'X')) {
			one = expressions(parser, 'E');
		} else {
			one = type(parser);
		}
		add(&all, one);
		all.bytes = most(all.bytes + 2);
	}
	expect(parser, 'E');
	parser->depth--;
	return all;
}

static struct size nested_name(struct parser *parser, struct size *ret_arguments)
{
	struct size all = { 1, 0 }, part = { 1, 0 };

	skip(parser, 1);
	while (peek(parser) == 'r' || peek(parser) == 'V' || peek(parser) == 'K')
		skip(parser, 1);
	if (peek(parser) == 'R' || peek(parser) == 'O')
		skip(parser, 1);
	while (!parser->is_bad && peek(parser) && peek(parser) != 'E') {
		bool is_known = peek(parser) == 'S';

		if (take(parser, 'M')) /* member initialiser */
			continue;
		*ret_arguments = (struct size){ 0 };
		if (is_known)
			part = reference(parser);
		else if (peek(parser) == 'I')
			part = *ret_arguments = template_arguments(parser);
		else if (peek(parser) == 'T')
			part = parameter(parser);
		else if (is_two(parser, "DT") || is_two(parser, "Dt"))
			parser->is_bad = true;
		else
			part = unqualified(parser, part);
		add(&all, part);
		if (!is_known && peek(parser) != 'E')
			remember(parser, all);
	}
	expect(parser, 'E');
	return all;
}

static void discriminator(struct parser *parser)
{
	if (!take(parser, '_'))
		return;
	if (take(parser, '_')) {
		number(parser);
		expect(parser, '_');
	} else {
		number(parser);
	}
}

static struct size local_name(struct parser *parser, struct size *ret_arguments)
{
	struct size all;

	skip(parser, 1);
	all = encoding(parser);
	expect(parser, 'E');
	if (take(parser, 's')) {
		discriminator(parser);
		return all;
	}
	if (take(parser, 'd')) { /* default argument */
		number(parser);
		expect(parser, '_');
	}
	add(&all, name(parser, ret_arguments));
	discriminator(parser);
	return all;
}

/* `ret_arguments`: of its last template; empty if it does not end in one. */
static struct size name(struct parser *parser, struct size *ret_arguments)
{
	struct size all = { 1, 0 };
	bool is_known = false;

	*ret_arguments = (struct size){ 0 };
	if (peek(parser) == 'N')
		return nested_name(parser, ret_arguments);
	if (peek(parser) == 'Z')
		return local_name(parser, ret_arguments);
	if (is_two(parser, "St")) {
		skip(parser, 2);
		all = unqualified(parser, all);
	} else if (peek(parser) == 'S') {
		all = reference(parser);
		is_known = true;
	} else {
		all = unqualified(parser, all);
	}
	if (peek(parser) != 'I')
		return all;
	if (!is_known)
		remember(parser, all);
	*ret_arguments = template_arguments(parser);
	add(&all, *ret_arguments);
	return all;
}

static void offset(struct parser *parser)
{
	take(parser, 'n');
	number(parser);
	expect(parser, '_');
}

/* "_ZTV" and similar are not functions. */
static struct size special(struct parser *parser)
{
	struct size all = { 24, 0 }, unused;

	if (is_two(parser, "TV") || is_two(parser, "TT") || is_two(parser, "TI") ||
	    is_two(parser, "TS")) {
		skip(parser, 2);
		add(&all, type(parser));
	} else if (is_two(parser, "GV")) {
		skip(parser, 2);
		add(&all, name(parser, &unused));
	} else if (is_two(parser, "Th") || is_two(parser, "Tv") || is_two(parser, "GT")) {
		bool is_thunk = peek(parser) == 'T', is_virtual = is_two(parser, "Tv");

		skip(parser, is_thunk ? 2 : 3);
		if (is_thunk)
			offset(parser);
		if (is_virtual)
			offset(parser);
		add(&all, encoding(parser));
	} else {
		parser->is_bad = true;
	}
	return all;
}

static struct size encoding(struct parser *parser)
{
	struct size all, arguments = { 0 };
	unsigned int conversions = parser->conversions;

	if (++parser->depth > MAX_DEPTH)
		parser->is_bad = true;
	if (parser->is_bad)
		return constant(1);
	if (peek(parser) == 'T' || peek(parser) == 'G') {
		all = special(parser);
	} else {
		struct size signature;

		all = name(parser, &arguments);
		signature = types_until(parser);
		if (arguments.bytes)
			signature = fill(signature, arguments);
		/* "operator T()": before its arguments. */
		if (arguments.bytes && parser->conversions != conversions)
			all = fill(all, arguments);
		add(&all, signature);
	}
	parser->depth--;
	return all;
}

/* ---- types ---- */

static struct size array(struct parser *parser)
{
	struct size all = { 2, 0 };

	skip(parser, 1);
	if (is_digit(peek(parser)) || peek(parser) == '_') {
		number(parser);
		expect(parser, '_');
	} else {
		add(&all, expressions(parser, '_'));
	}
	add(&all, type(parser));
	return all;
}

static struct size function(struct parser *parser)
{
	struct size all;

	skip(parser, 1);
	take(parser, 'Y');
	all = types_until(parser);
	expect(parser, 'E');
	all.bytes = most(all.bytes + 4);
	return all;
}

static struct size qualified(struct parser *parser)
{
	struct size all = { 1, 0 };

	for (; peek(parser) == 'r' || peek(parser) == 'V' || peek(parser) == 'K' ||
	       is_two(parser, "Do");
	     all.bytes++)
		skip(parser, peek(parser) == 'D' ? 2 : 1);
	add(&all, peek(parser) == 'F' ? function(parser) : type(parser));
	return all;
}

/* False: a builtin type, which gets no number. */
static bool type_of_d(struct parser *parser, struct size *all)
{
	char kind = peek_at(parser, 1);

	skip(parser, 2);
	switch (kind) {
	case 'p':
		add(all, type(parser));
		return true;
	case 'T':
	case 't':
		add(all, expressions(parser, 'E'));
		return true;
	case 'v':
		if (is_digit(peek(parser))) {
			number(parser);
			expect(parser, '_');
		} else {
			parser->is_bad = true;
		}
		add(all, type(parser));
		return true;
	case 'F':
		number(parser);
		if (!take(parser, '_') && !take(parser, 'b'))
			take(parser, 'x');
		return false;
	default:
		if (!kind || !strchr("adefhsiunc", kind))
			parser->is_bad = true;
		return false;
	}
}

/* With template arguments if they follow. */
static struct size type_parameter(struct parser *parser)
{
	struct size all = parameter(parser);

	if (peek(parser) != 'I')
		return all;
	if (parser->conversions && ++parser->forward > MAX_FORWARD)
		all.bytes = ENOUGH;
	if (!parser->conversions)
		remember(parser, all);
	add(&all, template_arguments(parser));
	return all;
}

/* False: it gets no substitution number. */
static bool type_of_s(struct parser *parser, struct size *all)
{
	bool is_numbered = !is_lower(peek_at(parser, 1));
	bool is_std = is_two(parser, "St");
	struct size arguments = { 0 };

	if (!is_numbered) {
		*all = name(parser, &arguments);
		return is_std || arguments.bytes;
	}
	*all = reference(parser);
	if (peek(parser) != 'I')
		return false;
	add(all, template_arguments(parser));
	return true;
}

/* False: it gets no substitution number. */
static bool type_of(struct parser *parser, struct size *all)
{
	struct size unused;
	char letter = peek(parser);

	switch (letter) {
	case 'r':
	case 'V':
	case 'K':
		*all = qualified(parser);
		return true;
	case 'P':
	case 'R':
	case 'O':
	case 'C':
	case 'G':
		skip(parser, 1);
		add(all, type(parser));
		return true;
	case 'F':
		*all = function(parser);
		return true;
	case 'A':
		*all = array(parser);
		return true;
	case 'M':
		skip(parser, 1);
		add(all, type(parser));
		add(all, type(parser));
		return true;
	case 'T':
		*all = type_parameter(parser);
		return true;
	case 'S':
		return type_of_s(parser, all);
	case 'D':
		if (peek_at(parser, 1) == 'o') {
			*all = qualified(parser);
			return true;
		}
		return type_of_d(parser, all);
	case 'u':
		skip(parser, 1);
		*all = source_name(parser);
		if (peek(parser) == 'I')
			add(all, template_arguments(parser));
		return true;
	case 'U':
		skip(parser, 1);
		*all = source_name(parser);
		if (peek(parser) == 'I')
			add(all, template_arguments(parser));
		add(all, type(parser));
		return true;
	default:
		if (letter == 'N' || letter == 'Z' || is_digit(letter)) {
			*all = name(parser, &unused);
			return true;
		}
		if (!is_lower(letter))
			parser->is_bad = true;
		skip(parser, 1);
		return false;
	}
}

static struct size type(struct parser *parser)
{
	struct size all = { 1, 0 };

	if (parser->is_bad || ++parser->depth > MAX_DEPTH) {
		parser->is_bad = true;
		return all;
	}
	if (type_of(parser, &all))
		remember(parser, all);
	parser->depth--;
	return all;
}

/* ---- expressions ---- */

static struct size function_parameter(struct parser *parser)
{
	skip(parser, 1);
	if (take(parser, 'L'))
		number(parser);
	expect(parser, 'p');
	while (peek(parser) == 'r' || peek(parser) == 'V' || peek(parser) == 'K')
		skip(parser, 1);
	if (peek(parser) == 'T')
		skip(parser, 1);
	else
		sequence(parser);
	return constant(8);
}

static struct size expression_part(struct parser *parser)
{
	struct size all = { 4, 0 };

	if (peek(parser) == 'L') {
		add(&all, literal(parser));
	} else if (peek(parser) == 'T') {
		add(&all, parameter(parser));
	} else if (peek(parser) == 'I') {
		add(&all, template_arguments(parser));
	} else if (is_digit(peek(parser))) {
		add(&all, source_name(parser));
	} else if (is_two(parser, "fp") || is_two(parser, "fL")) {
		add(&all, function_parameter(parser));
	} else if (is_one_of(parser, "srstatticvscdcrccctl")) {
		bool is_cast = is_two(parser, "cv"), is_list = is_two(parser, "tl");
		bool is_scope = is_two(parser, "sr");

		skip(parser, 2);
		add(&all, type(parser));
		if (is_scope && peek(parser) == 'E' && is_digit(peek_at(parser, 1))) {
			skip(parser, 1); /* Clang's form */
			parser->unsure += 2;
		}
		if (is_list || (is_cast && take(parser, '_')))
			add(&all, expressions(parser, 'E'));
	} else if (is_one_of(parser, "clilsP")) {
		skip(parser, 2);
		add(&all, expressions(parser, 'E'));
	} else if (is_lower(peek(parser)) && !is_one_of(parser, "nwnagsonso")) {
		skip_operator(parser);
	} else {
		parser->is_bad = true;
	}
	return all;
}

/* Operands in sequence: only where they end matters, not how many an operator has. */
static struct size expressions(struct parser *parser, char end)
{
	struct size all = { 0 };

	if (++parser->depth > MAX_DEPTH)
		parser->is_bad = true;
	while (!parser->is_bad && peek(parser) != end)
		add(&all, expression_part(parser));
	expect(parser, end);
	parser->depth--;
	return all;
}

/* ---- entry points ---- */

uint64_t demangle_size(const char *mangled)
{
	size_t length = strlen(mangled);
	struct parser parser = { .at = mangled, .end = mangled + length };
	struct size size;

	if (length < 2)
		return length;
	parser.known_most = length * 2;
	parser.known = ts_alloc_array(parser.known_most, sizeof(*parser.known));
	if (!parser.known)
		return UINT64_MAX;
	skip(&parser, 2); /* "_Z" */
	size = encoding(&parser);
	free(parser.known);
	if (parser.is_bad || (peek(&parser) && peek(&parser) != '.'))
		return UINT64_MAX;
	return size.bytes + size.holes;
}
