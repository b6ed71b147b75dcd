/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the code of an image that a device would run, whatever holds it. */
#include <stdlib.h>
#include <string.h>

#include "base/local/macros.h"
#include "code/cuda/local/cubin_symbols.h"
#include "code/cuda/local/fatbin.h"

#define FACTS_AT_MOST (1u << 22)

/* Room for one more. */
static bool grow(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
	size_t more = TS_MAX(*capacity * 2, (size_t)16);
	void *grown;

	if (count < *capacity)
		return true;
	if (count >= FACTS_AT_MOST)
		return false;
	grown = realloc(*items, more * item_bytes);
	if (!grown)
		return false;
	*items = grown;
	*capacity = more;
	return true;
}

/* The name is not terminated: strndup() may look behind it. */
static char *copy_name(const char *name, size_t bytes)
{
	char *copy = malloc(bytes + 1);

	if (copy) {
		memcpy(copy, name, bytes);
		copy[bytes] = '\0';
	}
	return copy;
}

bool ts_code_add_variable(struct ts_code_facts *facts, const char *name, size_t name_bytes,
			  uint64_t bytes, bool is_constant, bool is_managed)
{
	struct ts_code_variable *variable;

	if (!grow((void **)&facts->variables, &facts->variable_capacity, facts->variable_count,
		  sizeof(*facts->variables)))
		return false;
	variable = &facts->variables[facts->variable_count];
	*variable = (struct ts_code_variable){ .name = copy_name(name, name_bytes),
					       .bytes = bytes,
					       .is_constant = is_constant,
					       .is_managed = is_managed };
	facts->variable_count += variable->name != NULL;
	return variable->name != NULL;
}

bool ts_code_add_refused(struct ts_code_facts *facts, const char *name, size_t name_bytes,
			 const char *why)
{
	struct ts_code_refused *refused;

	if (!grow((void **)&facts->refused, &facts->refused_capacity, facts->refused_count,
		  sizeof(*facts->refused)))
		return false;
	refused = &facts->refused[facts->refused_count];
	*refused = (struct ts_code_refused){ .name = copy_name(name, name_bytes), .why = why };
	facts->refused_count += refused->name != NULL;
	return refused->name != NULL;
}

static void release_pointer(struct ts_code_pointer *pointer)
{
	free(pointer->variable);
	free(pointer->function);
}

bool ts_code_add_pointer(struct ts_code_facts *facts, const char *variable, uint64_t offset,
			 const char *function)
{
	struct ts_code_pointer *pointer;

	if (!grow((void **)&facts->pointers, &facts->pointer_capacity, facts->pointer_count,
		  sizeof(*facts->pointers)))
		return false;
	pointer = &facts->pointers[facts->pointer_count];
	*pointer = (struct ts_code_pointer){ .variable = strdup(variable),
					     .function = strdup(function),
					     .offset = offset };
	if (!pointer->variable || !pointer->function) {
		release_pointer(pointer);
		return false;
	}
	facts->pointer_count++;
	return true;
}

const char *ts_code_function_refused(const char *name, size_t bytes)
{
	/* Output of printf() goes to memory that no kernel reads: a replay prints, too. */
	static const struct {
		const char *name; /* or its beginning */
		bool is_prefix;
		const char *why;
	} functions[] = {
		{ "malloc", false, "calls malloc or free on the device" },
		{ "free", false, "calls malloc or free on the device" },
		{ "__cudaCDP", true, "launches kernels on the device" },
		{ "cudaLaunchDevice", true, "launches kernels on the device" },
		{ "cudaGetParameterBuffer", true, "launches kernels on the device" },
		{ "__cuda_syscall_cnp", true, "launches kernels on the device" },
		{ "__cuda_syscall_CNP", true, "launches kernels on the device" },
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(functions); i++) {
		size_t length = strlen(functions[i].name);

		if (bytes >= length && (bytes == length || functions[i].is_prefix) &&
		    !memcmp(name, functions[i].name, length))
			return functions[i].why;
	}
	return NULL;
}

/* ---- calls ---- */

static int by_callee(const void *a, const void *b)
{
	const struct ts_code_call *left = a, *right = b;

	return TS_COMPARE(left->callee, right->callee);
}

/* The first call of this callee, or where it would be. */
static size_t first_call(const struct ts_code_call *calls, size_t count, uint32_t callee)
{
	size_t low = 0;

	while (low < count) {
		size_t middle = low + (count - low) / 2;

		if (calls[middle].callee < callee)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

bool ts_code_spread(const char **why, size_t count, struct ts_code_call *calls, size_t call_count)
{
	uint32_t *pending = malloc((count ? count : 1) * sizeof(*pending));
	size_t pending_count = 0;

	if (!pending)
		return false;
	if (call_count)
		qsort(calls, call_count, sizeof(*calls), by_callee);
	for (size_t i = 0; i < count; i++)
		if (why[i])
			pending[pending_count++] = (uint32_t)i;
	while (pending_count) {
		uint32_t callee = pending[--pending_count];

		for (size_t i = first_call(calls, call_count, callee);
		     i < call_count && calls[i].callee == callee; i++) {
			uint32_t caller = calls[i].caller;

			if (caller >= count || why[caller])
				continue;
			why[caller] = why[callee];
			pending[pending_count++] = caller;
		}
	}
	free(pending);
	return true;
}

/* ---- images ---- */

struct chosen {
	enum ts_image_kind kind;
	uint32_t architecture;
};

static bool is_chosen(const struct chosen *chosen, const struct ts_image_piece *piece)
{
	return piece->kind == chosen->kind &&
	       (!piece->architecture || piece->architecture == chosen->architecture);
}

static void read_piece(struct ts_code_facts *facts, const struct ts_image_piece *piece)
{
	const uint8_t *data;
	void *buffer;
	size_t bytes;
	const char *why = ts_image_unpack(piece, &buffer, &data, &bytes);

	if (why) {
		facts->unknown = why;
		return;
	}
	if (piece->kind == TS_IMAGE_CUBIN ? !ts_cubin_facts(facts, data, bytes)
					  : !ts_ptx_facts(facts, (const char *)data, bytes))
		facts->unknown = "its symbols cannot be read";
	free(buffer);
}

/* Several cubins may fit (sm_90 and sm_90a): what any of them has counts. */
static int by_variable(const void *a, const void *b)
{
	const struct ts_code_variable *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static int by_refused(const void *a, const void *b)
{
	const struct ts_code_refused *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static int by_pointer(const void *a, const void *b)
{
	const struct ts_code_pointer *left = a, *right = b;
	int order = strcmp(left->variable, right->variable);

	return order ? order : TS_COMPARE(left->offset, right->offset);
}

static void remove_double_pointers(struct ts_code_facts *facts)
{
	size_t kept = 0;

	if (facts->pointer_count)
		qsort(facts->pointers, facts->pointer_count, sizeof(*facts->pointers), by_pointer);
	for (size_t i = 0; i < facts->pointer_count; i++) {
		if (kept && !by_pointer(&facts->pointers[kept - 1], &facts->pointers[i]))
			release_pointer(&facts->pointers[i]);
		else
			facts->pointers[kept++] = facts->pointers[i];
	}
	facts->pointer_count = kept;
}

static void remove_doubles(struct ts_code_facts *facts)
{
	size_t kept = 0;

	if (facts->refused_count)
		qsort(facts->refused, facts->refused_count, sizeof(*facts->refused), by_refused);
	if (facts->variable_count)
		qsort(facts->variables, facts->variable_count, sizeof(*facts->variables),
		      by_variable);
	for (size_t i = 0; i < facts->variable_count; i++) {
		struct ts_code_variable *last = kept ? &facts->variables[kept - 1] : NULL;

		if (last && !strcmp(last->name, facts->variables[i].name)) {
			last->is_managed |= facts->variables[i].is_managed;
			free(facts->variables[i].name);
		} else {
			facts->variables[kept++] = facts->variables[i];
		}
	}
	facts->variable_count = kept;
}

void ts_code_facts_read(struct ts_code_facts *facts, const void *image, size_t bytes,
			unsigned int major, unsigned int minor)
{
	struct ts_image_piece piece;
	struct chosen chosen;
	size_t cursor = 0;

	*facts = (struct ts_code_facts){ 0 };
	chosen.kind = ts_image_select(image, bytes, major, minor, &chosen.architecture);
	if (chosen.kind == TS_IMAGE_UNKNOWN)
		facts->unknown = "it has no code for this device";
	while (chosen.kind && ts_image_next(image, bytes, &cursor, &piece))
		if (is_chosen(&chosen, &piece))
			read_piece(facts, &piece);
	remove_doubles(facts);
	remove_double_pointers(facts);
}

void ts_code_facts_release(struct ts_code_facts *facts)
{
	for (size_t i = 0; i < facts->pointer_count; i++)
		release_pointer(&facts->pointers[i]);
	free(facts->pointers);
	for (size_t i = 0; i < facts->variable_count; i++)
		free(facts->variables[i].name);
	for (size_t i = 0; i < facts->refused_count; i++)
		free(facts->refused[i].name);
	free(facts->variables);
	free(facts->refused);
	free(facts->texture);
	*facts = (struct ts_code_facts){ 0 };
}

const char *ts_code_facts_refused(const struct ts_code_facts *facts, const char *kernel)
{
	struct ts_code_refused key = { .name = (char *)(uintptr_t)kernel };
	const struct ts_code_refused *found =
		facts->refused_count ? bsearch(&key, facts->refused, facts->refused_count,
					       sizeof(key), by_refused)
				     : NULL;

	return found ? found->why : NULL;
}

bool ts_code_params_read(struct ts_code_params *params, const char *kernel, const void *image,
			 size_t bytes, unsigned int major, unsigned int minor)
{
	struct ts_image_piece piece;
	struct chosen chosen;
	size_t cursor = 0;
	bool is_found = false;

	chosen.kind = ts_image_select(image, bytes, major, minor, &chosen.architecture);
	while (chosen.kind == TS_IMAGE_CUBIN && !is_found &&
	       ts_image_next(image, bytes, &cursor, &piece)) {
		const uint8_t *data;
		void *buffer;
		size_t data_bytes;

		if (!is_chosen(&chosen, &piece) ||
		    ts_image_unpack(&piece, &buffer, &data, &data_bytes))
			continue;
		is_found = ts_cubin_params(params, kernel, data, data_bytes);
		free(buffer);
	}
	return is_found;
}
