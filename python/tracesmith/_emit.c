/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracesmith._emit: emits events from Python into the live area of the process.
 *
 * A call of span(), instant() or counter() finds its site, a call site of emit.h, in a hash table
 * by the addresses of its texts: constants of Python code are interned, so the same call passes the
 * same objects each time. So neither the call nor a span without arguments allocates. Names made at
 * run time are found by content, and when there are too many of them, their events carry their
 * texts.
 */
#include "_emit.h"

static struct state *state_of(PyObject *module)
{
	return *(struct state **)PyModule_GetState(module);
}

/* ---- functions of the module ---- */

/* The name and the category of a call; false with an exception. */
static inline bool take_texts(const struct state *state, const char *function,
			      PyObject *const *args, Py_ssize_t count, PyObject **ret_name,
			      PyObject **ret_category)
{
	*ret_category = state->empty;
	if (LIKELY(count >= 1 && count <= 2)) {
		*ret_name = args[0];
		if (count == 2)
			*ret_category = args[1];
		if (LIKELY(PyUnicode_Check(*ret_name) && PyUnicode_Check(*ret_category)))
			return true;
	}
	PyErr_Format(PyExc_TypeError,
		     "%s() takes a name and a category, both str, and arguments by keyword",
		     function);
	return false;
}

static PyObject *loose_span(struct state *state, PyObject *name, PyObject *category)
{
	Span *span = PyErr_Occurred() ? NULL : emit_new_span(state, NULL, 0);

	if (span) {
		Py_INCREF(span->name = name);
		Py_INCREF(span->category = category);
	}
	return (PyObject *)span;
}

static PyObject *do_span(PyObject *module, PyObject *const *args, Py_ssize_t count,
			 PyObject *keywords)
{
	struct state *state = state_of(module);
	PyObject *name, *category;
	struct site *site;

	if (UNLIKELY(count == 1 && !keywords && !PyUnicode_Check(args[0])))
		return emit_call_python("traced", args[0], NULL);
	if (!take_texts(state, "span", args, count, &name, &category))
		return NULL;
	if (keywords && PyTuple_Size(keywords))
		return emit_span_with_values(state, name, category, args + count, keywords);
	site = site_for(state, name, category, NULL, 0, KIND_BEGIN);
	if (UNLIKELY(!site))
		return loose_span(state, name, category);
	Py_INCREF(site->span);
	return site->span;
}

/* An event of one record: an instant or a counter. */
static PyObject *emit_event(PyObject *module, const char *function, enum kind kind,
			    PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
	struct state *state = state_of(module);
	PyObject *name, *category;
	struct values values;
	struct site *site;

	if (!take_texts(state, function, args, count, &name, &category))
		return NULL;
	if (!ts_enabled())
		Py_RETURN_NONE;
	if (keywords && !PyTuple_Size(keywords))
		keywords = NULL;
	if (!emit_take_values(&values, args + count, keywords ? PyTuple_Size(keywords) : 0))
		return NULL;
	site = site_for(state, name, category, keywords, values.types, kind);
	if (LIKELY(site)) {
		emit_site(&site->plain, values.words + 1);
	} else if (!PyErr_Occurred()) {
		struct loose loose;

		emit_fill_loose(&loose, name, category, keywords, values.types, values.words + 1);
		if (kind == KIND_COUNTER)
			ts_tracer_counter(ts_tracer_process(), loose.name, loose.category,
					  loose.args, loose.count);
		else
			ts_tracer_instant(ts_tracer_process(), loose.name, loose.category,
					  TS_TRACK_THREAD, loose.args, loose.count);
		emit_release_loose(&loose);
	}
	emit_release_values(&values);
	if (PyErr_Occurred())
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *do_instant(PyObject *module, PyObject *const *args, Py_ssize_t count,
			    PyObject *keywords)
{
	return emit_event(module, "instant", KIND_INSTANT, args, count, keywords);
}

/* `category` is not a value. */
static PyObject *do_counter(PyObject *module, PyObject *const *args, Py_ssize_t count,
			    PyObject *keywords)
{
	Py_ssize_t values = keywords ? PyTuple_Size(keywords) : 0, kept = 0;
	PyObject *objects[2 + FIELDS_MOST], *others, *result;

	for (Py_ssize_t i = 0; i < values; i++) {
		PyObject *key = PyTuple_GetItem(keywords, i);

		if (UNLIKELY(!PyUnicode_CompareWithASCIIString(key, "category")))
			goto with_category;
	}
	return emit_event(module, "counter", KIND_COUNTER, args, count, keywords);
with_category:
	if (count != 1 || values > (Py_ssize_t)FIELDS_MOST) {
		PyErr_SetString(PyExc_TypeError, count == 2 ? "counter() got its category twice"
							    : "counter() takes a name");
		return NULL;
	}
	others = PyTuple_New(values - 1);
	if (!others)
		return NULL;
	objects[0] = args[0];
	for (Py_ssize_t i = 0; i < values; i++) {
		PyObject *key = PyTuple_GetItem(keywords, i);

		if (!PyUnicode_CompareWithASCIIString(key, "category")) {
			objects[1] = args[count + i];
			continue;
		}
		Py_INCREF(key);
		PyTuple_SetItem(others, kept, key);
		objects[2 + kept++] = args[count + i];
	}
	result = emit_event(module, "counter", KIND_COUNTER, objects, 2, others);
	Py_DECREF(others);
	return result;
}

/* complete(name, category, ms, track=0, /, **args) */
static PyObject *do_complete(PyObject *module, PyObject *const *args, Py_ssize_t count,
			     PyObject *keywords)
{
	struct state *state = state_of(module);
	PyObject *name, *category;
	uint64_t words[2 + FIELDS_MOST], duration;
	struct values values;
	struct site *site;
	int64_t track = 0;
	unsigned int leading;
	double ms;

	if (count < 3 || count > 4) {
		PyErr_SetString(PyExc_TypeError,
				"complete() takes a name, a category, milliseconds and a track");
		return NULL;
	}
	if (!take_texts(state, "complete", args, 2, &name, &category))
		return NULL;
	ms = PyFloat_AsDouble(args[2]);
	if (count == 4)
		track = PyLong_AsLongLong(args[3]);
	if (PyErr_Occurred())
		return NULL;
	if (!ts_enabled())
		Py_RETURN_NONE;
	if (keywords && !PyTuple_Size(keywords))
		keywords = NULL;
	if (!emit_take_values(&values, args + count, keywords ? PyTuple_Size(keywords) : 0))
		return NULL;
	duration = ts_emit_ms(ms);
	words[0] = duration;
	words[1] = (uint64_t)track;
	leading = track ? 2 : 1;
	memcpy(words + leading, values.words + 1, values.count * sizeof(words[0]));
	site = site_for(state, name, category, keywords, values.types, KIND_SPAN);
	if (LIKELY(site)) {
		emit_site(track ? &site->on_track : &site->plain, words);
	} else if (!PyErr_Occurred()) {
		struct loose loose;

		emit_fill_loose(&loose, name, category, keywords, values.types, values.words + 1);
		ts_tracer_span(ts_tracer_process(), loose.name, loose.category, TS_TIME_NOW,
			       (int64_t)duration, track ? track : TS_TRACK_THREAD, loose.args,
			       loose.count);
		emit_release_loose(&loose);
	}
	emit_release_values(&values);
	if (PyErr_Occurred())
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *step(PyObject *module, PyObject *args)
{
	struct state *state = state_of(module);
	PyObject *number = Py_None;
	long long value;

	if (!PyArg_ParseTuple(args, "|O:step", &number))
		return NULL;
	if (number == Py_None) {
		value = __atomic_fetch_add(&state->steps, 1, __ATOMIC_RELAXED);
	} else {
		value = PyLong_AsLongLong(number);
		if (value == -1 && PyErr_Occurred())
			return NULL;
		__atomic_store_n(&state->steps, (int64_t)((uint64_t)value + 1), __ATOMIC_RELAXED);
	}
	ts_step(value);
	Py_RETURN_NONE;
}

static PyObject *is_enabled(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	/* Before the first event the switch says "perhaps". */
	return PyBool_FromLong(ts_enabled() && ts_tracer_is_enabled(ts_tracer_process()));
}

static PyObject *flush(PyObject *module, PyObject *unused)
{
	PyThreadState *thread;
	int rc;

	(void)module;
	(void)unused;
	thread = PyEval_SaveThread();
	rc = ts_flush();
	PyEval_RestoreThread(thread);
	return PyBool_FromLong(rc == 0);
}

static PyObject *thread_name(PyObject *module, PyObject *name)
{
	const char *text;
	PyObject *owner;

	(void)module;
	if (!PyUnicode_Check(name)) {
		PyErr_SetString(PyExc_TypeError, "thread_name() takes a str");
		return NULL;
	}
	owner = emit_text_of(name, &text);
	if (!owner)
		return NULL;
	ts_thread_name(text);
	Py_DECREF(owner);
	Py_RETURN_NONE;
}

static PyObject *start(PyObject *module, PyObject *args, PyObject *keywords)
{
	static char *names[] = { (char *)"output", (char *)"redact", (char *)"budget",
				 (char *)"backends", NULL };
	struct ts_start_options options = { .size = sizeof(options) };
	unsigned long long budget = 0;
	char why[320] = "";
	PyObject *output = Py_None, *path = NULL;
	PyThreadState *thread;
	int redact = 0, rc;

	(void)module;
	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OpKz:start", names, &output, &redact,
					 &budget, &options.backends) ||
	    (output != Py_None && !PyUnicode_FSConverter(output, &path)))
		return NULL;
	options.output = path ? PyBytes_AsString(path) : NULL;
	options.budget = budget;
	options.flags = redact ? TS_START_REDACT : 0;
	options.ret_why = why;
	options.why_bytes = sizeof(why);
	thread = PyEval_SaveThread();
	rc = ts_start(&options);
	PyEval_RestoreThread(thread);
	Py_XDECREF(path);
	return Py_BuildValue("iN", -rc, PyUnicode_DecodeFSDefault(why));
}

static PyObject *stop(PyObject *module, PyObject *unused)
{
	PyThreadState *thread;
	char notice[256];
	int rc;

	(void)module;
	(void)unused;
	thread = PyEval_SaveThread();
	rc = ts_stop(notice, sizeof(notice));
	PyEval_RestoreThread(thread);
	return Py_BuildValue("iN", -rc, PyUnicode_DecodeFSDefault(notice));
}

static PyObject *output(PyObject *module, PyObject *unused)
{
	char path[4096];

	(void)module;
	(void)unused;
	if (ts_start_output(path, sizeof(path)))
		Py_RETURN_NONE;
	return PyUnicode_DecodeFSDefault(path);
}

static PyObject *environment(PyObject *module, PyObject *unused)
{
	char text[256];

	(void)module;
	(void)unused;
	if (ts_start_environment(text, sizeof(text)))
		Py_RETURN_NONE;
	return PyUnicode_FromString(text);
}

static PyObject *after_fork(PyObject *module, PyObject *unused)
{
	(void)unused;
	emit_after_fork(state_of(module));
	Py_RETURN_NONE;
}

#define FAST(function) (PyCFunction)(void (*)(void)) do_##function, METH_FASTCALL | METH_KEYWORDS

static PyMethodDef methods[] = {
	{ "span", FAST(span),
	  "span(name, category=\"\", /, **args)\n--\n\n"
	  "A span of time: a context manager, and a decorator. Arguments are stored with it." },
	{ "instant", FAST(instant),
	  "instant(name, category=\"\", /, **args)\n--\n\nMarks this instant." },
	{ "counter", FAST(counter),
	  "counter(name, /, category=\"\", **values)\n--\n\n"
	  "Stores new values of counters that are drawn together." },
	{ "complete", FAST(complete),
	  "complete(name, category, ms, track=0, /, **args)\n--\n\n"
	  "Stores a span that ends now and took `ms` milliseconds, on this thread or on a track." },
	{ "step", step, METH_VARARGS,
	  "step(n=None, /)\n--\n\nA step, of training for example, begins: n, or the next one." },
	{ "is_enabled", is_enabled, METH_NOARGS,
	  "is_enabled()\n--\n\nTrue while events are stored." },
	{ "flush", flush, METH_NOARGS,
	  "flush()\n--\n\nWaits until all events so far are in the file; False if there is none." },
	{ "thread_name", thread_name, METH_O,
	  "thread_name(name, /)\n--\n\nNames the calling thread in traces." },
	{ "start", (PyCFunction)(void (*)(void))start, METH_VARARGS | METH_KEYWORDS,
	  "start(output=None, redact=False, budget=0, backends=None)\n--\n\n"
	  "Starts recording, or without an output flight mode. Returns 0 or an errno, and why." },
	{ "stop", stop, METH_NOARGS,
	  "stop()\n--\n\nStops it. Returns 0 or an errno, and a notice of the recorder." },
	{ "output", output, METH_NOARGS,
	  "output()\n--\n\nThe path that start() has named, with its patterns filled in, or None." },
	{ "environment", environment, METH_NOARGS,
	  "environment()\n--\n\nTRACESMITH_AGENT for programs that belong to the recording, or None." },
	{ "_after_fork", after_fork, METH_NOARGS, "Forgets the open spans of the parent." },
	{ NULL, NULL, 0, NULL },
};

/* ---- the module ---- */

static bool fill_state(struct state *state)
{
	PyObject *sys = PyImport_ImportModule("sys");

	state->texts = PyDict_New();
	state->lane_numbers = PyDict_New();
	state->empty = PyUnicode_InternFromString("");
	state->asyncio_name = PyUnicode_InternFromString("_asyncio");
	state->modules = sys ? PyObject_GetAttrString(sys, "modules") : NULL;
	state->lanes_used = calloc(LANES_MOST / 64, sizeof(uint64_t));
	state->span_type = emit_new_span_type();
	Py_XDECREF(sys);
	return state->texts && state->lane_numbers && state->empty && state->asyncio_name &&
	       state->modules && state->lanes_used && state->span_type && emit_make_space(state);
}

static int execute(PyObject *module)
{
	struct state *state = calloc(1, sizeof(*state));

	if (!state || !fill_state(state)) {
		if (!PyErr_Occurred())
			PyErr_NoMemory();
		return -1;
	}
	*(struct state **)PyModule_GetState(module) = state;
	Py_INCREF(state->span_type);
	if (PyModule_AddObject(module, "Span", (PyObject *)state->span_type)) {
		Py_DECREF(state->span_type);
		return -1;
	}
	return 0;
}

/*
 * What later versions ask of a module is added by the version that runs: earlier ones refuse slots
 * that they do not know, and the stable ABI's headers do not name them.
 */
enum {
	SLOT_MULTIPLE_INTERPRETERS = 3, /* 3.12; 2: each with a lock of its own */
	SLOT_GIL = 4,                   /* 3.13; 1: not used */
};

static PyModuleDef_Slot slots[4] = { { Py_mod_exec, execute } };

static void add_slot(int slot, uintptr_t value)
{
	unsigned int i = 0;

	while (slots[i].slot && slots[i].slot != slot)
		i++;
	slots[i].slot = slot;
	slots[i].value = (void *)value; /* NOLINT(performance-no-int-to-ptr) */
}

static void add_slots(void)
{
	long minor = 0;

	if (!strncmp(Py_GetVersion(), "3.", 2))
		minor = strtol(Py_GetVersion() + 2, NULL, 10);
	if (minor >= 12)
		add_slot(SLOT_MULTIPLE_INTERPRETERS, 2);
#ifdef Py_GIL_DISABLED
	add_slot(SLOT_GIL, 1);
#endif
}

static struct PyModuleDef definition = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "tracesmith._emit",
	.m_doc = "Emits events into the live area of the process.",
	.m_size = sizeof(struct state *),
	.m_methods = methods,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit__emit(void);
PyMODINIT_FUNC PyInit__emit(void)
{
	add_slots();
	return PyModuleDef_Init(&definition);
}
