/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of modules by their address. A weak reference removes a module that dies, so that an
 * address that is used again is not mistaken. Nothing is stored in the module, which may be
 * copied, pickled or guarded.
 */
#include "torch_profile.h"

#include <stdlib.h>
#include <string.h>

static struct ts_module **slots; /* open addressing; `capacity` is a power of two */
static size_t capacity, count;

static size_t slot_of(PyObject *object)
{
	uint64_t hash = ((uint64_t)(uintptr_t)object >> 4) * 0x9e3779b97f4a7c15ull;

	return (size_t)(hash >> 32) & (capacity - 1);
}

struct ts_module *ts_table_find(PyObject *object)
{
	struct ts_module *found = NULL;

	for (size_t at = capacity ? slot_of(object) : 0; capacity && slots[at];
	     at = (at + 1) & (capacity - 1))
		if (slots[at]->object == object) {
			found = slots[at];
			break;
		}
	return found;
}

/* Moves what follows the gap to where a search finds it. */
static void close_gap(size_t gap)
{
	for (size_t at = (gap + 1) & (capacity - 1); slots[at]; at = (at + 1) & (capacity - 1)) {
		size_t home = slot_of(slots[at]->object);

		if (((at - home) & (capacity - 1)) < ((at - gap) & (capacity - 1)))
			continue;
		slots[gap] = slots[at];
		gap = at;
	}
	slots[gap] = NULL;
}

static struct ts_module *take(PyObject *object)
{
	struct ts_module *taken = NULL;

	for (size_t at = capacity ? slot_of(object) : 0; capacity && slots[at];
	     at = (at + 1) & (capacity - 1))
		if (slots[at]->object == object) {
			taken = slots[at];
			close_gap(at);
			count--;
			break;
		}
	return taken;
}

static void free_module(struct ts_module *module)
{
	Py_XDECREF(module->weak);
	free(module->name);
	free(module);
}

/* Of the weak reference; `address` is the dead module's. */
static PyObject *forget(PyObject *address, PyObject *weak)
{
	struct ts_module *module = take(PyLong_AsVoidPtr(address));

	(void)weak;
	if (module)
		free_module(module);
	Py_RETURN_NONE;
}

static PyMethodDef forget_method = { "forget", forget, METH_O, NULL };

static int grow(void)
{
	size_t old_capacity = capacity;
	struct ts_module **old = slots;
	struct ts_module **larger;

	if ((count + 1) * 2 <= capacity)
		return 0;
	larger = calloc(capacity ? capacity * 2 : 1024, sizeof(*larger));
	if (!larger)
		return -1;
	slots = larger;
	capacity = capacity ? capacity * 2 : 1024;
	for (size_t i = 0; i < old_capacity; i++)
		if (old[i]) {
			size_t at = slot_of(old[i]->object);

			while (slots[at])
				at = (at + 1) & (capacity - 1);
			slots[at] = old[i];
		}
	free(old);
	return 0;
}

static int insert(struct ts_module *module)
{
	size_t at;
	int result;

	result = grow();
	if (!result) {
		at = slot_of(module->object);
		while (slots[at])
			at = (at + 1) & (capacity - 1);
		slots[at] = module;
		count++;
	}
	return result;
}

int ts_table_put(PyObject *object, const char *path, bool selected, PyObject *inner)
{
	struct ts_module *module = ts_table_find(object);
	PyObject *address, *callback;
	char *name = strdup(path);

	if (!name) {
		PyErr_NoMemory();
		return -1;
	}
	if (module) {
		free(module->name);
		module->name = name;
		module->path = ts_torch_module(path);
		module->selected = selected;
		module->inner = inner;
		return 0;
	}
	module = calloc(1, sizeof(*module));
	if (!module) {
		free(name);
		PyErr_NoMemory();
		return -1;
	}
	*module = (struct ts_module){ .object = object,
				      .name = name,
				      .inner = inner,
				      .path = ts_torch_module(path),
				      .device = TS_DEVICE_UNKNOWN,
				      .selected = selected };
	address = PyLong_FromVoidPtr(object);
	callback = address ? PyCFunction_NewEx(&forget_method, address, NULL) : NULL;
	module->weak = callback ? PyWeakref_NewRef(object, callback) : NULL;
	Py_XDECREF(address);
	Py_XDECREF(callback);
	if (module->weak && !insert(module))
		return 0;
	if (!PyErr_Occurred())
		PyErr_NoMemory();
	free_module(module);
	return -1;
}

void ts_table_clear(void)
{
	size_t old_capacity;
	struct ts_module **old;

	old_capacity = capacity;
	old = slots;
	slots = NULL;
	capacity = count = 0;
	for (size_t i = 0; i < old_capacity; i++)
		if (old[i])
			free_module(old[i]);
	free(old);
}

Py_ssize_t ts_table_count(void)
{
	return (Py_ssize_t)count;
}
