/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Glue functions by name (trampolines, call wrappers, program startup): left out where native and
 * Python frames are merged.
 */
#include "base/text.h"
#include "code/native_internal.h"

/* In the interpreter: between two loops, and from main() to the first. */
static const char *const python_glue[] = {
	"_PyEval_*",
	"PyEval_*",
	"_TAIL_CALL_*",
	"_PyCall*",
	"_Py_*Call*",
	"_PyObject_*Call*",
	"PyObject_*Call*",
	"PyObject_Vectorcall*",
	"_PyObject_*Vectorcall*",
	"PyVectorcall_*",
	"_PyVectorcall_*",
	"_PyFunction_*",
	"_PyCFunction_*",
	"PyCFunction_Call*",
	"_PyMethodDef_*",
	"_PyStack_*",
	"method_vectorcall*",
	"method_call*",
	"cfunction_*",
	"classmethoddescr_call*",
	"wrapperdescr_call*",
	"wrapper_call*",
	"wrap_call*",
	"function_code_fastcall*",
	"object_vacall*",
	"vectorcall_*",
	"call_method*",
	"call_unbound*",
	"call_function*",
	"do_call_core*",
	"slot_tp_*",
	"slot_nb_*",
	"slot_sq_*",
	"slot_mp_*",
	"slot_am_*",
	"type_call*",
	"_Py_HandlePending*",
	"pythread_wrapper*",
	"thread_run*",
	"t_bootstrap*",
	"PyRun_*",
	"_PyRun_*",
	"run_mod*",
	"run_eval_code_obj*",
	"pyrun_*",
	"pymain_*",
	"Py_RunMain*",
	"Py_BytesMain*",
	"Py_Main*",
	"main",
	"_start",
	NULL,
};

/* In every program. */
static const char *const start_glue[] = {
	"__libc_start_*", "_start", "start_thread", "__clone", "__clone3", "clone", "clone3", NULL,
};

static bool is_among(const char *name, const char *const *patterns)
{
	size_t length = strlen(name);

	for (; *patterns; patterns++) {
		if (ts_glob_match(*patterns, name, length))
			return true;
	}
	return false;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool ts_glue_frames_match(const char *name, const char *path, bool is_python)
{
	bool has_no_name = strncmp(name, "0x", 2) == 0;

	if (is_among(name, start_glue))
		return true;
	/* A stripped interpreter only names its exports; unnamed functions are mostly glue. */
	if (is_python || strncmp(base_name(path), "python", 6) == 0)
		return has_no_name || is_among(name, python_glue);
	/* The caller of main() has no name in a stripped libc. */
	return has_no_name && strncmp(base_name(path), "libc.so", 7) == 0;
}
