/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads PTX text: variables at the outermost level, and which functions a kernel may call, by the
 * names in its body. A body with an indirect call may call any function.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/local/macros.h"
#include "code/cuda/local/cubin_symbols.h"

#define FUNCTIONS_AT_MOST 65536u
#define CALLS_AT_MOST (1u << 22)

struct token {
	const char *text;
	size_t bytes; /* 0: the end */
};

struct function {
	struct token name;
	struct token body; /* from its opening bracket */
	bool is_entry;
	uint32_t number;
};

struct text {
	const char *at, *end;
};

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static void skip_comment(struct text *text)
{
	const char *end;

	if (text->at[1] == '/') {
		end = memchr(text->at, '\n', (size_t)(text->end - text->at));
		text->at = end ? end : text->end;
		return;
	}
	end = memmem(text->at + 2, (size_t)(text->end - text->at - 2), "*/", 2);
	text->at = end ? end + 2 : text->end;
}

static void skip_string(struct text *text)
{
	const char *end = memchr(text->at + 1, '"', (size_t)(text->end - text->at - 1));

	text->at = end ? end + 1 : text->end;
}

/* Names, with their dots; or one other character. */
static struct token next_token(struct text *text)
{
	struct token token;

	while (text->at < text->end) {
		if (isspace((unsigned char)*text->at) || !*text->at)
			text->at++;
		else if (*text->at == '/' && text->end - text->at > 1 &&
			 (text->at[1] == '/' || text->at[1] == '*'))
			skip_comment(text);
		else if (*text->at == '"')
			skip_string(text);
		else
			break;
	}
	token = (struct token){ text->at, 0 };
	while (text->at < text->end && is_name(*text->at))
		text->at++;
	if (text->at == token.text && text->at < text->end)
		text->at++;
	token.bytes = (size_t)(text->at - token.text);
	return token;
}

static bool equals(const struct token *token, const char *text)
{
	return token->bytes == strlen(text) && !memcmp(token->text, text, token->bytes);
}

static bool is_plain_name(const struct token *token)
{
	char first = token->bytes ? token->text[0] : 0;

	return isalpha((unsigned char)first) || first == '_' || first == '$' || first == '%';
}

/* ---- the outermost level ---- */

struct module {
	struct ts_code_facts *facts;
	struct function *functions;
	size_t count, capacity;
};

/* A declaration until its `;` or its body. */
struct declaration {
	bool is_variable, is_constant, is_extern, is_managed, is_function, is_entry;
	uint32_t brackets; /* open ones */
	struct token name;
};

static bool add_function(struct module *module, const struct declaration *declaration,
			 struct token body)
{
	size_t more = TS_MAX(module->capacity * 2, (size_t)64);
	struct function *grown;

	if (module->count == module->capacity) {
		grown = more <= FUNCTIONS_AT_MOST * 2
				? realloc(module->functions, more * sizeof(*grown))
				: NULL;
		if (!grown)
			return false;
		module->functions = grown;
		module->capacity = more;
	}
	module->functions[module->count++] = (struct function){ .name = declaration->name,
								.body = body,
								.is_entry = declaration->is_entry };
	return true;
}

/* From behind the opening bracket to the closing one. */
static struct token take_body(struct text *text)
{
	struct token token, body = { text->at, 0 };
	uint32_t depth = 1;

	while (depth && (token = next_token(text)).bytes) {
		if (equals(&token, "{"))
			depth++;
		else if (equals(&token, "}"))
			depth--;
	}
	body.bytes = (size_t)(text->at - body.text);
	return body;
}

static bool add_variable(struct module *module, const struct declaration *declaration)
{
	if (!declaration->is_variable || declaration->is_extern || !declaration->name.bytes)
		return true;
	return ts_code_add_variable(module->facts, declaration->name.text, declaration->name.bytes,
				    0, declaration->is_constant, declaration->is_managed);
}

/* The name is the last one outside of brackets: behind the type, before an initial value. */
static void note_token(struct declaration *declaration, const struct token *token)
{
	if (equals(token, ".global") || equals(token, ".const")) {
		declaration->is_variable = !declaration->is_function;
		declaration->is_constant = equals(token, ".const");
	} else if (equals(token, ".extern")) {
		declaration->is_extern = true;
	} else if (equals(token, ".managed")) {
		declaration->is_managed = true;
	} else if (equals(token, ".texref") || equals(token, ".surfref")) {
		declaration->is_extern = true;
	} else if (equals(token, ".func") || equals(token, ".entry")) {
		declaration->is_function = true;
		declaration->is_entry = equals(token, ".entry");
	} else if (equals(token, "(") || equals(token, "[")) {
		declaration->brackets++;
	} else if ((equals(token, ")") || equals(token, "]")) && declaration->brackets) {
		declaration->brackets--;
	} else if (!declaration->brackets && is_plain_name(token) &&
		   (!declaration->is_function || !declaration->name.bytes)) {
		declaration->name = *token;
	}
}

static bool skip_value(struct text *text)
{
	struct token token;

	while ((token = next_token(text)).bytes)
		if (equals(&token, ";"))
			return true;
	return false;
}

static bool read_module(struct module *module, struct text *text)
{
	struct declaration declaration = { 0 };
	struct token token;

	while ((token = next_token(text)).bytes) {
		bool is_end = equals(&token, ";");

		if (declaration.is_function && equals(&token, "{")) {
			struct token body = take_body(text);

			if (declaration.name.bytes && !add_function(module, &declaration, body))
				return false;
			is_end = true;
		} else if (is_end || (declaration.is_variable && equals(&token, "="))) {
			if (!add_variable(module, &declaration))
				return false;
			if (!is_end)
				skip_value(text);
			is_end = true;
		} else if (equals(&token, ".version") || equals(&token, ".target") ||
			   equals(&token, ".address_size") || equals(&token, ".file")) {
			is_end = true; /* directives without an end: what follows is harmless */
		} else {
			note_token(&declaration, &token);
		}
		if (is_end)
			declaration = (struct declaration){ 0 };
	}
	return true;
}

/* ---- calls ---- */

static int by_name(const void *a, const void *b)
{
	const struct token *left = &((const struct function *)a)->name,
			   *right = &((const struct function *)b)->name;
	int order = memcmp(left->text, right->text, TS_MIN(left->bytes, right->bytes));

	return order ? order : TS_COMPARE(left->bytes, right->bytes);
}

struct calls {
	struct ts_code_call *calls;
	size_t count, capacity;
	const char **why;
};

static bool add_call(struct calls *calls, uint32_t caller, uint32_t callee)
{
	size_t more = TS_MAX(calls->capacity * 2, (size_t)256);
	struct ts_code_call *grown;

	if (calls->count == calls->capacity) {
		grown = more <= CALLS_AT_MOST ? realloc(calls->calls, more * sizeof(*grown)) : NULL;
		if (!grown)
			return false;
		calls->calls = grown;
		calls->capacity = more;
	}
	calls->calls[calls->count++] = (struct ts_code_call){ caller, callee };
	return true;
}

/* The node behind those of all functions is an indirect call. */
static bool read_body(struct calls *calls, const struct module *module, uint32_t number)
{
	const struct function *function = &module->functions[number];
	struct text text = { function->body.text, function->body.text + function->body.bytes };
	struct token token;

	while ((token = next_token(&text)).bytes) {
		struct function key = { .name = token };
		const struct function *found;
		const char *why;

		if (equals(&token, ".callprototype") &&
		    !add_call(calls, number, (uint32_t)module->count))
			return false;
		if (!is_plain_name(&token) || token.text[0] == '%')
			continue;
		why = ts_code_function_refused(token.text, token.bytes);
		if (why)
			calls->why[number] = why;
		found = bsearch(&key, module->functions, module->count, sizeof(key), by_name);
		if (found && !found->is_entry &&
		    !add_call(calls, number, (uint32_t)(found - module->functions)))
			return false;
	}
	return true;
}

static bool read_calls(struct module *module, struct calls *calls)
{
	if (module->count)
		qsort(module->functions, module->count, sizeof(*module->functions), by_name);
	calls->why = calloc(module->count + 1, sizeof(*calls->why));
	if (!calls->why)
		return false;
	for (uint32_t i = 0; i < module->count; i++)
		if (!read_body(calls, module, i) || (!module->functions[i].is_entry &&
						     !add_call(calls, (uint32_t)module->count, i)))
			return false;
	return ts_code_spread(calls->why, module->count + 1, calls->calls, calls->count);
}

bool ts_ptx_facts(struct ts_code_facts *facts, const char *text, size_t bytes)
{
	struct module module = { .facts = facts };
	struct text all = { text, text + bytes };
	struct calls calls = { 0 };
	bool is_good = read_module(&module, &all) && read_calls(&module, &calls);

	for (size_t i = 0; is_good && i < module.count; i++)
		if (module.functions[i].is_entry && calls.why[i])
			is_good = ts_code_add_refused(facts, module.functions[i].name.text,
						      module.functions[i].name.bytes, calls.why[i]);
	free(module.functions);
	free(calls.calls);
	free(calls.why);
	return is_good;
}
