/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans of tasks of asyncio. Spans of one thread nest, but those of its tasks, which take turns, do
 * not. A task with open spans has a lane: a track of its own, which another task takes when it has
 * none any more.
 */
#include "_emit.h"

/* The functions of _asyncio, once the program has imported it. */
static bool know_asyncio(struct state *state)
{
	Py_ssize_t size = PyDict_Size(state->modules);
	PyObject *module, *loop, *task;

	if (LIKELY(size == __atomic_load_n(&state->modules_seen, __ATOMIC_RELAXED)))
		return false;
	module = PyDict_GetItemWithError(state->modules, state->asyncio_name);
	if (!module) {
		__atomic_store_n(&state->modules_seen, size, __ATOMIC_RELAXED);
		return false;
	}
	loop = PyObject_GetAttrString(module, "_get_running_loop");
	PyErr_Clear();
	task = PyObject_GetAttrString(module, "current_task");
	PyErr_Clear();
	/* 3.11 and older: in C only in part. */
	if (loop && !task) {
		PyObject *tasks = PyImport_ImportModule("asyncio.tasks");

		task = tasks ? PyObject_GetAttrString(tasks, "current_task") : NULL;
		Py_XDECREF(tasks);
		PyErr_Clear();
	}
	if (!loop || !task) {
		Py_XDECREF(loop);
		Py_XDECREF(task);
		return false;
	}
	LOCK(state);
	if (!state->running_loop) {
		state->current_task = task;
		__atomic_store_n(&state->running_loop, loop, __ATOMIC_RELEASE);
		loop = task = NULL;
	}
	UNLOCK(state);
	Py_XDECREF(loop);
	Py_XDECREF(task);
	return true;
}

/* The address of the running task; NULL: the thread runs none. */
static void *running_task(struct state *state)
{
	PyObject *loop, *task;

	if (!__atomic_load_n(&state->running_loop, __ATOMIC_ACQUIRE) && !know_asyncio(state))
		return NULL;
	loop = PyObject_CallNoArgs(state->running_loop);
	if (LIKELY(loop == Py_None)) {
		Py_DECREF(loop);
		return NULL;
	}
	task = loop ? PyObject_CallFunctionObjArgs(state->current_task, loop, NULL) : NULL;
	Py_XDECREF(loop);
	if (!task)
		PyErr_Clear();
	Py_XDECREF(task); /* it runs: somebody holds it */
	return task == Py_None ? NULL : task;
}

static int64_t free_lane(struct state *state)
{
	for (size_t i = 0; i < LANES_MOST / 64; i++) {
		if (state->lanes_used[i] != UINT64_MAX) {
			int bit = __builtin_ctzll(~state->lanes_used[i]);

			state->lanes_used[i] |= UINT64_C(1) << bit;
			__atomic_add_fetch(&state->lane_count, 1, __ATOMIC_RELAXED);
			return (int64_t)(i * 64) + bit;
		}
	}
	return -1;
}

/* Adds `change` (1, -1) to the open spans of a task; returns its lane, -1: none. */
static int64_t count_lane(struct state *state, void *task, int change)
{
	PyObject *key = PyLong_FromVoidPtr(task), *found, *value;
	int64_t lane = -1;
	uint64_t open = 0;

	if (!key)
		return -1;
	LOCK(state);
	found = PyDict_GetItemWithError(state->lanes, key);
	if (found) {
		uint64_t word = PyLong_AsUnsignedLongLong(found);

		lane = (int64_t)(word >> 32);
		open = word & UINT32_MAX;
	} else if (change > 0) {
		lane = free_lane(state);
	}
	if (lane >= 0) {
		open += (uint64_t)change;
		if (open) {
			value = PyLong_FromUnsignedLongLong((uint64_t)lane << 32 | open);
			if (value)
				PyDict_SetItem(state->lanes, key, value);
			Py_XDECREF(value);
		} else {
			PyDict_DelItem(state->lanes, key);
			state->lanes_used[lane / 64] &= ~(UINT64_C(1) << (lane % 64));
			__atomic_sub_fetch(&state->lane_count, 1, __ATOMIC_RELAXED);
		}
	}
	UNLOCK(state);
	Py_DECREF(key);
	PyErr_Clear();
	return lane;
}

/* The track for a span that begins or ends here; false: the thread's own. */
bool emit_lane_of(struct state *state, int change, int64_t *ret_track)
{
	void *task = running_task(state);
	int64_t lane;

	if (LIKELY(!task))
		return false;
	lane = count_lane(state, task, change);
	*ret_track = TS_TRACK_ASYNC + lane;
	return lane >= 0;
}
