/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: functions with their parameters, and variables, of PTX. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/modules.h"

static uint32_t type_bytes(const char *type)
{
	const char *digits = type;

	while (*digits && !isdigit((unsigned char)*digits))
		digits++;
	return (uint32_t)strtoul(digits, NULL, 10) / 8;
}

static const char *after(const char *text, const char *word)
{
	const char *found = strstr(text, word);

	return found ? found + strlen(word) : NULL;
}

/* ".param .align 8 .b8 name[24]" or ".param .u64 .ptr .align 1 name" */
static const char *ptx_parameter(struct function *function, const char *at, const char *end)
{
	uint32_t size, alignment = 0, offset, index = function->param_count;
	char line[256];
	const char *stop = at;

	while (stop < end && *stop != ',' && *stop != ')')
		stop++;
	snprintf(line, sizeof(line), "%.*s", (int)(stop - at), at);
	for (const char *word = line; (word = strchr(word, '.')); word++) {
		if (!strncmp(word, ".align", 6))
			alignment = (uint32_t)strtoul(word + 6, NULL, 10);
		else if (strchr("ubfs", word[1]) && isdigit((unsigned char)word[2]) &&
			 !strchr(line, '$'))
			break;
	}
	size = 0;
	for (const char *word = line; (word = strchr(word, '.')); word++) {
		if (strchr("ubfs", word[1]) && isdigit((unsigned char)word[2]))
			size = type_bytes(word);
	}
	if (strchr(line, '['))
		size = (uint32_t)strtoul(strchr(line, '[') + 1, NULL, 10);
	if (!strchr(line, '['))
		alignment = size;
	if (!alignment)
		alignment = 1;
	offset = (function->param_bytes + alignment - 1) / alignment * alignment;
	add_parameter(function, index, offset, size);
	return stop;
}

/* ".global .align 8 .b8 name[32] = {1, 2};" or ".global .align 8 .u64 name = generic(other);" */
static int ptx_variable(struct module *module, const char *at)
{
	char name[128] = "", type[16] = "";
	const char *stop = strchr(at, ';'), *value, *text;
	uint32_t size = 1;
	uint64_t address, count = 1;
	int error;

	if (!stop)
		return INVALID_IMAGE;
	text = after(at, ".align");
	if (text && text < stop)
		at = text;
	text = strchr(at, '.');
	if (!text || text > stop || sscanf(text, "%15s %127[A-Za-z0-9_$]", type, name) != 2)
		return 0;
	size = type_bytes(type);
	text = strstr(text, name) + strlen(name);
	if (*text == '[')
		count = strtoull(text + 1, NULL, 0);
	error = globals_map(module->context, count * size, &address);
	if (error || module->global_count >= 4)
		return error ? error : INVALID_IMAGE;
	module->globals[module->global_count++] = address;
	add_variable(module, name, strlen(name), address, count * size);
	value = strchr(text, '=');
	if (!value || value > stop)
		return 0;
	if (strstr(value, "generic(") && strstr(value, "generic(") < stop) {
		char other[128] = "";
		uint64_t to;

		sscanf(strstr(value, "generic(") + 8, "%127[A-Za-z0-9_$]", other);
		to = module_global(module, other);
		memory_write(address, &to, sizeof(to));
		return 0;
	}
	for (uint64_t i = 0; i < count && value && value < stop; i++) {
		uint64_t number = strtoull(value + 1 + strspn(value + 1, " {"), NULL, 0);

		memory_write(address + i * size, &number, size);
		value = strchr(value + 1, ',');
	}
	return 0;
}

int load_ptx(struct module *module, const char *text)
{
	const char *at = text;

	/* Variables before the first function; ".extern .global" is not used. */
	while (*at && strncmp(at, ".visible .entry", 15) && strncmp(at, ".entry", 6)) {
		const char *line = strchr(at, '\n');
		int error = 0;

		if (!strncmp(at, ".visible ", 9))
			at += 9;
		if (!strncmp(at, ".global ", 8) || !strncmp(at, ".const ", 7))
			error = ptx_variable(module, strchr(at, ' ') + 1);
		if (error)
			return error;
		if (!line)
			break;
		at = line + 1;
	}
	for (at = text; (at = strstr(at, ".entry")); at++) {
		char name[256];
		const char *end;
		struct function *function;

		if (sscanf(at + 6, " %255[A-Za-z0-9_$]", name) != 1)
			continue;
		function = add_function(module, name, strlen(name));
		at = strstr(at, name) + strlen(name);
		at += strspn(at, " \t\n");
		end = strchr(at, ')');
		if (*at != '(' || !end)
			continue;
		while (at < end && (at = strstr(at, ".param")) && at < end)
			at = ptx_parameter(function, at, end);
		if (!at)
			at = end;
	}
	return 0;
}
