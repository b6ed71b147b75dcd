/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function triggers: whether a watched function has entered or left a thread's stack between two
 * sweeps.
 */
#include <stdio.h>

#include "base/local/hash.h"
#include "sample/python/python_sampler_internal.h"

enum { NOT_KNOWN, NO, YES };

static bool matches_any(const struct sampling *sampling, const char *name)
{
	for (const char *const *pattern = sampling->options.functions; *pattern; pattern++)
		if (ts_glob_match(*pattern, name, strlen(name)))
			return true;
	return false;
}

/* Evaluated once per code object. */
static bool is_requested(struct sampling *sampling, struct watched_process *process,
			 const struct ts_python_code *code)
{
	size_t known = process->match_capacity;

	if (ts_grow_array((void **)&process->matches, &process->match_capacity,
			  (size_t)code->number + 1, sizeof(*process->matches)))
		return matches_any(sampling, code->name);
	if (process->match_capacity > known)
		memset(process->matches + known, NOT_KNOWN, process->match_capacity - known);
	if (process->matches[code->number] == NOT_KNOWN)
		process->matches[code->number] = matches_any(sampling, code->name) ? YES : NO;
	return process->matches[code->number] == YES;
}

bool ts_python_watch_functions(struct sampling *sampling, struct watched_process *process,
			       struct watched_thread *thread, const struct ts_python_thread *stack,
			       char *ret_trigger, size_t bytes)
{
	const struct ts_python_code *innermost = NULL;
	uint64_t functions = 0, before = thread->functions;

	for (uint32_t i = stack->depth; i > 0; i--) {
		const struct ts_python_code *code = stack->frames[i - 1].code;

		if (!code || !is_requested(sampling, process, code))
			continue;
		innermost = code;
		functions = ts_hash_mix64(functions + code->number);
	}
	if (functions == before)
		return false;
	thread->functions = functions;
	if (innermost) {
		snprintf(thread->function, sizeof(thread->function), "%s", innermost->name);
		snprintf(ret_trigger, bytes, "function %s", innermost->name);
	} else {
		snprintf(ret_trigger, bytes, "after function %s", thread->function);
		thread->function[0] = '\0';
	}
	return true;
}
