/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type Span: a context manager and a decorator. A span without arguments has no state of its
 * own: all uses of its name share one object, and its bound methods.
 */
#include "_emit.h"

static struct ts_emit_site end_site = { 0, "", "", NULL, __LINE__, 3, 0, 0, 0, 0 };
static struct ts_emit_site end_on_track_site = {
	0, "", "", NULL, __LINE__, 3, FLAG_TRACK, 1, 0, 0
};

Span *emit_new_span(struct state *state, struct site *site, Py_ssize_t values)
{
	Span *span = PyObject_NewVar(Span, state->span_type, values);

	if (span) {
		span->state = state;
		span->site = site;
		span->name = span->category = span->keywords = NULL;
		span->enter = span->exit = NULL;
		span->types = 0;
		span->is_deferred = false;
	}
	return span;
}

static void set_texts(Span *span, PyObject *name, PyObject *category, PyObject *keywords)
{
	Py_INCREF(span->name = name);
	Py_INCREF(span->category = category);
	Py_INCREF(span->keywords = keywords);
}

/* Methods of others may take long: str() of a tensor waits for its device. */
static bool is_plain(PyObject *object)
{
	const PyTypeObject *type = Py_TYPE(object);

	if (LIKELY(type == &PyLong_Type || type == &PyUnicode_Type || type == &PyFloat_Type))
		return true;
	return PyUnicode_Check(object) || PyLong_Check(object) || PyFloat_Check(object);
}

/*
 * A span that reads its values when it begins, if something records then. NULL without an
 * exception: they are plain.
 */
static Span *deferred_span(struct state *state, PyObject *name, PyObject *category,
			   PyObject *const *objects, PyObject *keywords)
{
	Py_ssize_t count = PyTuple_Size(keywords), plain = 0;
	Span *span;

	if (count > (Py_ssize_t)FIELDS_MOST)
		count = FIELDS_MOST;
	while (plain < count && is_plain(objects[plain]))
		plain++;
	if (plain == count)
		return NULL;
	span = emit_new_span(state, NULL, count);
	if (span) {
		set_texts(span, name, category, keywords);
		span->is_deferred = true;
		for (Py_ssize_t i = 0; i < count; i++)
			Py_INCREF(span->values[i].owner = objects[i]);
	}
	return span;
}

static Span *span_of_values(struct state *state, PyObject *name, PyObject *category,
			    PyObject *const *objects, PyObject *keywords)
{
	struct values values;
	struct site *site;
	Span *span;

	if (!emit_take_values(&values, objects, PyTuple_Size(keywords)))
		return NULL;
	site = site_for(state, name, category, keywords, values.types, KIND_BEGIN);
	span = site || !PyErr_Occurred() ? emit_new_span(state, site, values.count) : NULL;
	if (!span) {
		emit_release_values(&values);
		return NULL;
	}
	for (unsigned int i = 0; i < values.count; i++) {
		span->values[i].word = values.words[1 + i];
		span->values[i].owner = values.owners[i];
	}
	if (!site) {
		set_texts(span, name, category, keywords);
		span->types = values.types;
	}
	return span;
}

PyObject *emit_span_with_values(struct state *state, PyObject *name, PyObject *category,
				PyObject *const *objects, PyObject *keywords)
{
	Span *span = NULL;

	if (UNLIKELY(!ts_enabled()))
		span = deferred_span(state, name, category, objects, keywords);
	if (!span && !PyErr_Occurred())
		span = span_of_values(state, name, category, objects, keywords);
	return (PyObject *)span;
}

/* ---- spans ---- */

static void begin_loose(const Span *span, int64_t track)
{
	uint64_t words[FIELDS_MOST];
	struct loose loose;

	for (Py_ssize_t i = 0; i < Py_SIZE(span); i++)
		words[i] = span->values[i].word;
	emit_fill_loose(&loose, span->name, span->category, span->keywords, span->types, words);
	ts_tracer_begin(ts_tracer_process(), loose.name, loose.category, track, loose.args,
			loose.count);
	emit_release_loose(&loose);
}

static void begin_with_values(const Span *span, struct ts_emit_site *site, int64_t track)
{
	uint64_t words[1 + FIELDS_MOST];
	unsigned int count = 0;

	if (site->leading_words)
		words[count++] = (uint64_t)track;
	for (Py_ssize_t i = 0; i < Py_SIZE(span); i++)
		words[count++] = span->values[i].word;
	emit_site(site, words);
}

/* `self`: the span of the program, which a deferred one is made for. */
static inline void begin(const Span *span, const Span *self)
{
	int64_t track = TS_TRACK_THREAD;
	bool has_track = emit_begin_in_task(span->state, self, &track);

	if (LIKELY(!has_track))
		emit_begin_own(self);
	if (UNLIKELY(!span->site))
		begin_loose(span, track);
	else if (Py_SIZE(span))
		begin_with_values(span, has_track ? &span->site->on_track : &span->site->plain,
				  track);
	else if (LIKELY(!has_track))
		ts_emit_0(&span->site->plain);
	else
		ts_emit_1(&span->site->on_track, (uint64_t)track);
}

/* False with an exception. */
static bool begin_deferred(const Span *span)
{
	PyObject *objects[FIELDS_MOST];
	Span *of_now;

	for (Py_ssize_t i = 0; i < Py_SIZE(span); i++)
		objects[i] = span->values[i].owner;
	of_now = span_of_values(span->state, span->name, span->category, objects, span->keywords);
	if (!of_now)
		return false;
	begin(of_now, span);
	Py_DECREF(of_now);
	return true;
}

/* Also while nothing records, so that the span is known to have ended. */
static inline void end(const Span *span)
{
	enum place place = PLACE_THREAD;
	int64_t track;

	/* Asking for the running task costs 40 ns. */
	if (UNLIKELY(__atomic_load_n(&span->state->lane_count, __ATOMIC_RELAXED)))
		place = emit_end_anywhere(span->state, span, &track);
	else if (UNLIKELY(!emit_end_own(span)))
		return;
	if (UNLIKELY(!ts_enabled()))
		return;
	if (LIKELY(place == PLACE_THREAD))
		ts_emit_0(&end_site);
	else if (place == PLACE_TRACK)
		ts_emit_1(&end_on_track_site, (uint64_t)track);
}

static PyObject *span_enter(PyObject *self, PyObject *unused)
{
	const Span *span = (const Span *)self;

	(void)unused;
	if (ts_enabled()) {
		if (LIKELY(!span->is_deferred))
			begin(span, span);
		else if (!begin_deferred(span))
			return NULL;
	}
	Py_INCREF(self);
	return self;
}

static PyObject *span_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	(void)args;
	(void)count;
	end((const Span *)self);
	Py_RETURN_NONE;
}

/* A function of tracesmith.emit, called with these objects. */
PyObject *emit_call_python(const char *name, PyObject *first, PyObject *second)
{
	PyObject *module = PyImport_ImportModule("tracesmith.emit"), *function, *result;

	if (!module)
		return NULL;
	function = PyObject_GetAttrString(module, name);
	Py_DECREF(module);
	if (!function)
		return NULL;
	result = PyObject_CallFunctionObjArgs(function, first, second, NULL);
	Py_DECREF(function);
	return result;
}

/* `async with`: what is awaited does not suspend. */
static PyObject *span_aenter(PyObject *self, PyObject *unused)
{
	(void)unused;
	return emit_call_python("_enter", self, NULL);
}

static PyObject *span_aexit(PyObject *self, PyObject *args)
{
	(void)args;
	return emit_call_python("_exit", self, NULL);
}

/* As a decorator. */
static PyObject *span_call(PyObject *self, PyObject *args, PyObject *keywords)
{
	if (PyTuple_Size(args) != 1 || (keywords && PyDict_Size(keywords))) {
		PyErr_SetString(PyExc_TypeError,
				"a span is a context manager or a decorator of one function");
		return NULL;
	}
	return emit_call_python("_decorate", self, PyTuple_GetItem(args, 0));
}

static void span_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	Span *span = (Span *)self;

	for (Py_ssize_t i = 0; i < Py_SIZE(span); i++)
		Py_XDECREF(span->values[i].owner);
	Py_XDECREF(span->name);
	Py_XDECREF(span->category);
	Py_XDECREF(span->keywords);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *span_repr(PyObject *self)
{
	const Span *span = (const Span *)self;

	if (!span->site)
		return PyUnicode_FromFormat("<tracesmith.span %R>", span->name);
	return PyUnicode_FromFormat("<tracesmith.span %R>", span->site->key.name);
}

/* Objects are made by functions of the module only. */
static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	(void)type;
	(void)args;
	(void)keywords;
	PyErr_SetString(PyExc_TypeError, "use tracesmith.span()");
	return NULL;
}

static PyMethodDef span_methods[] = {
	{ "__aenter__", span_aenter, METH_NOARGS, "Begins the span." },
	{ "__aexit__", span_aexit, METH_VARARGS, "Ends the span." },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot span_slots[] = {
	{ Py_tp_doc, (char *)"A span of time: a context manager, and a decorator." },
	{ Py_tp_dealloc, span_dealloc },
	{ Py_tp_repr, span_repr },
	{ Py_tp_new, refuse_new },
	{ Py_tp_call, span_call },
	{ Py_tp_methods, span_methods },
	{ 0, NULL },
};

static PyType_Spec span_spec = {
	.name = "tracesmith._emit.Span",
	.basicsize = sizeof(Span),
	.itemsize = sizeof(((Span *)0)->values[0]),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = span_slots,
};

/* ---- __enter__ and __exit__ ---- */

/*
 * `with` looks both up and gets a bound method of each. A method descriptor allocates them; ours
 * returns those of the shared object.
 */
typedef struct {
	PyObject_HEAD PyMethodDef *method;
	size_t place;            /* of the bound method in Span */
	PyTypeObject *span_type; /* borrowed: it has this object */
} Method;

static PyMethodDef enter_method = { "__enter__", span_enter, METH_NOARGS, "Begins the span." };
static PyMethodDef exit_method = { "__exit__", (PyCFunction)(void (*)(void))span_exit,
				   METH_FASTCALL, "Ends the span." };

/* False with an exception. The type has no subclasses. */
static bool is_span(const Method *method, PyObject *object)
{
	if (LIKELY(Py_TYPE(object) == method->span_type))
		return true;
	PyErr_Format(PyExc_TypeError, "%s() requires a span, not %R", method->method->ml_name,
		     object);
	return false;
}

static PyObject *method_get(PyObject *self, PyObject *object, PyObject *type)
{
	const Method *method = (const Method *)self;
	PyObject *bound;

	(void)type;
	if (!object || object == Py_None) {
		Py_INCREF(self);
		return self;
	}
	if (UNLIKELY(!is_span(method, object)))
		return NULL;
	memcpy(&bound, (const char *)object + method->place, sizeof(bound));
	if (UNLIKELY(!bound))
		return PyCFunction_New(method->method, object);
	Py_INCREF(bound);
	return bound;
}

/* Span.__enter__(span), as contextlib.ExitStack calls it. */
static PyObject *method_call(PyObject *self, PyObject *args, PyObject *keywords)
{
	const Method *method = (const Method *)self;
	PyObject *bound, *rest, *result;

	if (PyTuple_Size(args) < 1) {
		PyErr_SetString(PyExc_TypeError, "a span is missing");
		return NULL;
	}
	if (!is_span(method, PyTuple_GetItem(args, 0)))
		return NULL;
	bound = PyCFunction_New(method->method, PyTuple_GetItem(args, 0));
	rest = PyTuple_GetSlice(args, 1, PyTuple_Size(args));
	result = bound && rest ? PyObject_Call(bound, rest, keywords) : NULL;
	Py_XDECREF(bound);
	Py_XDECREF(rest);
	return result;
}

static void method_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	PyObject_Free(self);
	Py_DECREF(type);
}

static PyType_Slot method_slots[] = {
	{ Py_tp_doc, (char *)"A method of spans." },
	{ Py_tp_dealloc, method_dealloc },
	{ Py_tp_descr_get, method_get },
	{ Py_tp_new, refuse_new },
	{ Py_tp_call, method_call },
	{ 0, NULL },
};

static PyType_Spec method_spec = {
	.name = "tracesmith._emit._Method",
	.basicsize = sizeof(Method),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = method_slots,
};

static bool add_method(PyTypeObject *span_type, PyTypeObject *method_type, PyMethodDef *definition,
		       size_t place)
{
	Method *method = PyObject_New(Method, method_type);
	bool is_added;

	if (!method)
		return false;
	method->method = definition;
	method->place = place;
	method->span_type = span_type;
	is_added = !PyObject_SetAttrString((PyObject *)span_type, definition->ml_name,
					   (PyObject *)method);
	Py_DECREF(method);
	return is_added;
}

PyTypeObject *emit_new_span_type(void)
{
	PyTypeObject *span = (PyTypeObject *)PyType_FromSpec(&span_spec);
	PyTypeObject *method = (PyTypeObject *)PyType_FromSpec(&method_spec);

	if (span && method &&
	    (!add_method(span, method, &enter_method, offsetof(Span, enter)) ||
	     !add_method(span, method, &exit_method, offsetof(Span, exit)))) {
		Py_DECREF(span);
		span = NULL;
	}
	Py_XDECREF(method);
	return span;
}

/* A cycle: such spans are never freed. */
static bool bind(Span *span)
{
	span->enter = PyCFunction_New(&enter_method, (PyObject *)span);
	span->exit = PyCFunction_New(&exit_method, (PyObject *)span);
	return span->enter && span->exit;
}

/* Used by all threads, which must not count their uses in one cache line: makes it immortal. */
static void share(PyObject *object)
{
#ifdef Py_GIL_DISABLED
	object->ob_tid = _Py_UNOWNED_TID;
	object->ob_ref_local = _Py_IMMORTAL_REFCNT_LOCAL;
	object->ob_ref_shared = 0;
#else
	(void)object;
#endif
}

PyObject *emit_new_shared_span(struct state *state, struct site *site)
{
	Span *span = emit_new_span(state, site, 0);

	if (!span || !bind(span))
		return NULL;
	share((PyObject *)span);
	share(span->enter);
	share(span->exit);
	return (PyObject *)span;
}
