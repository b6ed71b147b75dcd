/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Python threads from threading's dictionary {identifier: Thread}. Threads created by
 * native code, and processes that have not imported threading, have none.
 */
#include "python/local/python_objects_internal.h"

#define MAX_THREADS 65536
#define NAME_BYTES 256

struct names {
	struct ts_python_process_view *view;
	void (*named)(void *context, uint64_t thread_id, const char *name, bool is_main,
		      uint64_t native_id);
	void *context;
};

/* Names of a module, given sys.modules. */
static uint64_t find_threads(struct ts_python_process_view *view, uint64_t modules)
{
	uint64_t module = ts_python_dict_find(view, modules, "threading");
	uint64_t names = module ? ts_python_module_dict(view, module) : 0;

	return names ? ts_python_dict_find(view, names, "_active") : 0;
}

static bool name_thread(void *context, uint64_t key, uint64_t value)
{
	struct names *names = context;
	struct ts_python_process_view *view = names->view;
	char name[NAME_BYTES], type[64];
	uint64_t thread_id, native_id = 0;
	struct ts_python_wanted wanted[] = { { "_name", 0 }, { "_native_id", 0 } };

	ts_python_attributes(view, value, wanted, 2);
	if (!ts_python_read_unsigned(view, key, &thread_id) ||
	    ts_python_read_text(view, wanted[0].value, name, sizeof(name)) < 0)
		return true;
	ts_python_read_unsigned(view, wanted[1].value, &native_id);
	names->named(names->context, thread_id, name,
		     ts_python_type_name(view, value, type, sizeof(type)) &&
			     !strcmp(type, "_MainThread"),
		     native_id);
	return true;
}

bool ts_python_thread_names(struct ts_python_process_view *view, uint64_t modules,
			    void (*named)(void *context, uint64_t thread_id, const char *name,
					  bool is_main, uint64_t native_id),
			    void *context)
{
	struct names names = { view, named, context };

	/*
	 * The dictionary stays the same while the module lives; another interpreter has another
	 * one.
	 */
	if (view->found.modules != modules || !view->found.threads ||
	    ts_python_dict_size(view, view->found.threads) < 0) {
		view->found.threads = find_threads(view, modules);
		view->found.modules = modules;
	}
	if (!view->found.threads)
		return false;
	return ts_python_dict_each(view, view->found.threads, MAX_THREADS, name_thread, &names);
}
