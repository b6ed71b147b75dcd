/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a process's binaries and their names, created when a stack first contains them. */
#include <stdio.h>

#include "code/demangle.h"
#include "code/native_internal.h"
#include "code/symbolize_internal.h"

/* Start and name of the function; "": unknown. */
struct function {
	uint64_t start;
	const char *name;
};

/* Only linker symbols are read, by code that trusts no file. */
static struct ts_elf *debug_file_of(struct ts_native_module *module)
{
	if (!module->is_debug_tried) {
		TS_AUTO_FD int fd = ts_symbolize_open_debug(module->path, module->build_id);

		module->is_debug_tried = true;
		if (fd >= 0)
			ts_elf_open(&module->debug, fd, module->path, NULL);
	}
	return module->debug;
}

static void find_function(struct ts_native_module *module, uint64_t address,
			  const struct ts_cfi_row *row, struct function *ret_function)
{
	ret_function->name = "";
	ret_function->start = row ? row->start
				  : 0; /* a module without any information: one function */
	if (module->elf &&
	    !ts_elf_function_at(module->elf, address, &ret_function->name, &ret_function->start) &&
	    debug_file_of(module))
		ts_elf_function_at(module->debug, address, &ret_function->name,
				   &ret_function->start);
}

/*
 * Compilers split and clone functions and append a suffix: "_PyEval_EvalFrameDefault.cold",
 * ".lto_priv.0". Names keep it.
 */
static bool is_eval(const char *name)
{
	static const char eval[] = TS_PYTHON_LOOP;
	size_t length = sizeof(eval) - 1;

	return strncmp(name, eval, length) == 0 && (name[length] == '\0' || name[length] == '.');
}

static const char *copy_name(struct ts_native_process *native,
			     const struct ts_native_module *module, const struct function *function)
{
	TS_AUTO_FREE char *plain = *function->name ? ts_demangle(function->name) : NULL;
	const char *name = plain ? plain : function->name;
	char number[32];

	if (!*name && function->start == 0) {
		name = module->path; /* the entire module is one function */
	} else if (!*name) {
		snprintf(number, sizeof(number), "0x%llx", (unsigned long long)function->start);
		name = number;
	}
	return ts_arena_strdup_len(&native->texts, name, strlen(name));
}

static struct ts_native_code *make_code(struct ts_native_process *native,
					const struct ts_native_module *module,
					const struct function *function)
{
	struct ts_native_code *code = ts_arena_alloc_zeroed(&native->texts, 1, sizeof(*code));

	if (!code)
		return NULL;
	code->name = copy_name(native, module, function);
	code->module = module->path;
	code->build_id = module->build_id;
	code->start = function->start;
	code->is_python_eval = is_eval(function->name);
	if (code->name)
		code->is_glue = ts_glue_frames_match(code->name, module->path, module->is_python);
	return code->name ? code : NULL;
}

struct ts_native_code *ts_native_code_at(struct ts_native_process *native,
					 const struct ts_native_range *range, uint64_t address,
					 const struct ts_cfi_row *row)
{
	struct function function;
	struct ts_native_code *code;
	uint64_t *known;

	find_function(range->module, address, row, &function);
	known = ts_pairmap_insert(&native->codes, (uintptr_t)range->module, function.start, NULL);
	if (!known)
		return NULL;
	if (*known)
		return (struct ts_native_code *)(uintptr_t)*known;
	if (!*function.name && row && ts_cold_code_is_loop(native, range->module, row))
		function.name = TS_PYTHON_LOOP ".cold";
	code = make_code(native, range->module, &function);
	*known = (uintptr_t)code;
	return code;
}
