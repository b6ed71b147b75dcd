/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans of tasks of asyncio. Spans of one thread nest, but those of its tasks, which take turns, do
 * not. A task with open spans has a lane: a track of its own, which another task takes when it has
 * none any more. A span may end elsewhere: an asynchronous generator that is not exhausted is
 * closed by another task, a coroutine that is not awaited to its end by whoever drops it. So lanes
 * know their spans.
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

/* ---- lanes: all with the lock ---- */

struct lane {
	void *task;
	const Span **spans; /* that are open */
	size_t open, space;
};

static struct lane *lane_of(const struct state *state, PyObject *task)
{
	PyObject *number = PyDict_GetItemWithError(state->lane_numbers, task);

	return number ? &state->lanes[PyLong_AsSize_t(number)] : NULL;
}

static bool make_room_for_lane(struct state *state, size_t number)
{
	size_t space = state->lane_space ? state->lane_space * 2 : 64;
	struct lane *lanes;

	if (number < state->lane_space)
		return true;
	lanes = realloc(state->lanes, space * sizeof(*lanes));
	if (!lanes)
		return false;
	memset(lanes + state->lane_space, 0, (space - state->lane_space) * sizeof(*lanes));
	state->lanes = lanes;
	state->lane_space = space;
	return true;
}

/* The lowest that is free; NULL: there is none. */
static struct lane *take_lane(struct state *state, void *task, PyObject *key)
{
	PyObject *value;
	size_t number = 0;
	int rc;

	while (number < LANES_MOST && state->lanes_used[number / 64] == UINT64_MAX)
		number += 64;
	if (number >= LANES_MOST)
		return NULL;
	number += (size_t)__builtin_ctzll(~state->lanes_used[number / 64]);
	value = make_room_for_lane(state, number) ? PyLong_FromSize_t(number) : NULL;
	if (!value)
		return NULL;
	rc = PyDict_SetItem(state->lane_numbers, key, value);
	Py_DECREF(value);
	if (rc)
		return NULL;
	state->lanes_used[number / 64] |= UINT64_C(1) << (number % 64);
	__atomic_add_fetch(&state->lane_count, 1, __ATOMIC_RELAXED);
	state->lanes[number].task = task;
	return &state->lanes[number];
}

static void give_back_lane(struct state *state, struct lane *lane)
{
	size_t number = (size_t)(lane - state->lanes);
	PyObject *key = PyLong_FromVoidPtr(lane->task);

	if (!key || PyDict_DelItem(state->lane_numbers, key))
		PyErr_Clear();
	Py_XDECREF(key);
	state->lanes_used[number / 64] &= ~(UINT64_C(1) << (number % 64));
	__atomic_sub_fetch(&state->lane_count, 1, __ATOMIC_RELAXED);
}

static bool add_span(struct lane *lane, const Span *span)
{
	if (lane->open == lane->space) {
		size_t space = lane->space ? lane->space * 2 : 4;
		const Span **spans = realloc(lane->spans, space * sizeof(*spans));

		if (!spans)
			return false;
		lane->spans = spans;
		lane->space = space;
	}
	lane->spans[lane->open++] = span;
	return true;
}

/* Removes the innermost one; false: there is none. */
static bool remove_span(const Span **spans, size_t *count, const Span *span)
{
	for (size_t i = *count; i-- > 0;) {
		if (spans[i] == span) {
			memmove(&spans[i], &spans[i + 1], (*count - i - 1) * sizeof(*spans));
			--*count;
			return true;
		}
	}
	return false;
}

/* Of a coroutine or generator that another task closes, or nobody. */
static struct lane *remove_from_any(struct state *state, const Span *span)
{
	for (size_t i = 0; i < state->lane_space; i++)
		if (remove_span(state->lanes[i].spans, &state->lanes[i].open, span))
			return &state->lanes[i];
	return NULL;
}

/* ---- spans ---- */

__thread struct own_spans emit_own __attribute__((tls_model("initial-exec")));

bool emit_end_own_slowly(const Span *span)
{
	/* Which these are is not known. */
	if (emit_own.count > OWN_SPANS_MOST) {
		emit_own.count--;
		return true;
	}
	return remove_span(emit_own.spans, &emit_own.count, span);
}

__attribute__((noinline)) static bool begin_on_lane(struct state *state, void *task,
						    const Span *span, int64_t *ret_track)
{
	PyObject *key = PyLong_FromVoidPtr(task);
	struct lane *lane;

	if (!key) {
		PyErr_Clear();
		return false;
	}
	LOCK(state);
	lane = lane_of(state, key);
	if (!lane)
		lane = take_lane(state, task, key);
	if (lane && !add_span(lane, span)) {
		if (!lane->open)
			give_back_lane(state, lane);
		lane = NULL;
	}
	if (lane)
		*ret_track = TS_TRACK_ASYNC + (lane - state->lanes);
	UNLOCK(state);
	Py_DECREF(key);
	PyErr_Clear();
	return lane != NULL;
}

bool emit_begin_in_task(struct state *state, const Span *span, int64_t *ret_track)
{
	void *task = running_task(state);

	return UNLIKELY(task) && begin_on_lane(state, task, span, ret_track);
}

enum place emit_end_anywhere(struct state *state, const Span *span, int64_t *ret_track)
{
	void *task = running_task(state);
	PyObject *key = task ? PyLong_FromVoidPtr(task) : NULL;
	enum place place = PLACE_TRACK;
	struct lane *lane;

	LOCK(state);
	lane = key ? lane_of(state, key) : NULL;
	if (!lane || !remove_span(lane->spans, &lane->open, span)) {
		lane = NULL;
		if (emit_end_own(span))
			place = PLACE_THREAD;
		else if (!(lane = remove_from_any(state, span)))
			place = PLACE_NONE;
	}
	if (lane) {
		*ret_track = TS_TRACK_ASYNC + (lane - state->lanes);
		if (!lane->open)
			give_back_lane(state, lane);
	}
	UNLOCK(state);
	Py_XDECREF(key);
	PyErr_Clear();
	return place;
}

void emit_after_fork(struct state *state)
{
#ifdef Py_GIL_DISABLED
	memset(&state->mutex, 0, sizeof(state->mutex));
#endif
	for (size_t i = 0; i < state->lane_space; i++)
		state->lanes[i].open = 0;
	memset(state->lanes_used, 0, LANES_MOST / 8);
	state->lane_count = 0;
	PyDict_Clear(state->lane_numbers);
	emit_own.count = 0;
}
