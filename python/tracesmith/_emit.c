/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracesmith._emit: emits events from Python into the live area of the process.
 *
 * A call of span(), instant() or counter() finds its site, a call site of emit.h, in a hash table by
 * the addresses of its texts: constants of Python code are interned, so the same call passes the
 * same objects each time. A span without arguments has no state of its own: all uses of its name
 * share one object. So neither allocates. Names made at run time are found by content, and when there
 * are too many of them, their events carry their texts.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/emit.h>

/* The stable ABI of 3.9 has no fast calls, and does not say which strings are interned. */
#ifdef Py_LIMITED_API
#define FAST_CALLS 0
#else
#define FAST_CALLS 1
#endif

#define FIELDS_MOST 32u
#define SITES_MOST 16384u
#define ALIASES_MOST 4096u
#define TEXTS_MOST 65536
#define FIRST_SLOTS 1024u
#define LANES_MOST 65536u
#define TEXT_BYTES 8192

#if PY_VERSION_HEX < 0x030a0000 || (defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030a0000)
#undef Py_NewRef
#define Py_NewRef(object) new_reference(object)
static inline PyObject *new_reference(PyObject *object)
{
	Py_INCREF(object);
	return object;
}
#endif

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum kind { KIND_SPAN = 1, KIND_BEGIN = 2, KIND_INSTANT = 4, KIND_COUNTER = 5 };
#define FLAG_TRACK 4u

/* ---- sites ---- */

/* What a call is found by. Strong references; the same texts may have several keys. */
struct key {
	PyObject *name, *category;
	PyObject *keywords; /* tuple; NULL: no arguments */
	uint64_t types;     /* two bits for each argument, above the kind */
};

/* Sites live as long as the process: the dictionary of its area has them. */
struct site {
	struct key key; /* of the first call */
	PyObject *span; /* KIND_BEGIN without arguments: the shared object */
	struct ts_emit_site plain;
	struct ts_emit_site on_track; /* the same with a track; a SPAN has only this one or `plain` */
	struct ts_emit_field fields[];
};

struct slot {
	struct key key;
	struct site *site; /* stored last; NULL: free */
};

struct table {
	size_t mask;
	struct slot slots[];
};

/* Of a module object: each interpreter has its own. Never freed, since spans may outlive it. */
struct state {
	struct table *table;
	size_t used, sites, aliases;
	PyObject *texts; /* dict: texts and tuples of keywords, by content */
	PyObject *empty; /* "" */
	PyTypeObject *span_type;
	PyObject *modules; /* sys.modules, and its size when it had no _asyncio */
	Py_ssize_t modules_seen;
	PyObject *asyncio_name;
	PyObject *running_loop, *current_task; /* functions of _asyncio; NULL: not imported yet */
	PyObject *lanes;    /* dict: address of a task to (lane << 32 | open spans) */
	uint64_t *lanes_used; /* a bit for each */
	size_t lane_count;    /* of those in use */
	int64_t steps;
#ifdef Py_GIL_DISABLED
	PyMutex mutex;
#endif
};

#ifdef Py_GIL_DISABLED
#define LOCK(state) PyMutex_Lock(&(state)->mutex)
#define UNLOCK(state) PyMutex_Unlock(&(state)->mutex)
#else
/* The interpreter's lock. Code between the two runs no Python code. */
#define LOCK(state) ((void)(state))
#define UNLOCK(state) ((void)(state))
#endif

static struct ts_emit_site end_site = { 0, "", "", NULL, __LINE__, 3, 0, 0, 0, 0 };
static struct ts_emit_site end_on_track_site = { 0, "", "", NULL, __LINE__, 3, FLAG_TRACK, 1, 0, 0 };

static struct state *state_of(PyObject *module)
{
	return *(struct state **)PyModule_GetState(module);
}

static bool same_key(const struct key *a, const struct key *b)
{
	return a->name == b->name && a->category == b->category && a->keywords == b->keywords &&
	       a->types == b->types;
}

static size_t hash_of(const struct key *key)
{
	uint64_t hash = (uint64_t)(uintptr_t)key->name;

	hash = hash * 3 + (uint64_t)(uintptr_t)key->category;
	hash = hash * 5 + (uint64_t)(uintptr_t)key->keywords + key->types;
	hash *= UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(hash >> 32);
}

static inline struct site *find(const struct state *state, const struct key *key)
{
	const struct table *table = __atomic_load_n(&state->table, __ATOMIC_ACQUIRE);

	for (size_t i = hash_of(key);; i++) {
		const struct slot *slot = &table->slots[i & table->mask];
		struct site *site = __atomic_load_n(&slot->site, __ATOMIC_ACQUIRE);

		if (!site || LIKELY(same_key(&slot->key, key)))
			return site;
	}
}

static void put(struct table *table, const struct key *key, struct site *site)
{
	size_t i = hash_of(key);

	while (table->slots[i & table->mask].site)
		i++;
	table->slots[i & table->mask].key = *key;
	__atomic_store_n(&table->slots[i & table->mask].site, site, __ATOMIC_RELEASE);
}

/* Other threads may still read the old table: it is kept. False: no memory. */
static bool make_space(struct state *state)
{
	struct table *old = state->table, *table;
	size_t slots = old ? (old->mask + 1) * 2 : FIRST_SLOTS;

	if (old && state->used * 2 <= old->mask)
		return true;
	table = calloc(1, sizeof(*table) + slots * sizeof(table->slots[0]));
	if (!table)
		return false;
	table->mask = slots - 1;
	for (size_t i = 0; old && i <= old->mask; i++)
		if (old->slots[i].site)
			put(table, &old->slots[i].key, old->slots[i].site);
	__atomic_store_n(&state->table, table, __ATOMIC_RELEASE);
	return true;
}

/* ---- texts ---- */

/*
 * UTF-8 without NUL, which C strings cannot have: that and lone surrogates become escapes. A new
 * reference to what owns *ret_text.
 */
static PyObject *escape(PyObject *string, const char **ret_text)
{
	PyObject *bytes = PyUnicode_AsEncodedString(string, "utf-8", "backslashreplace");
	PyObject *escaped;
	Py_ssize_t length = 0, used = 0;
	const char *text;
	char *to;

	if (!bytes)
		return NULL;
	text = PyBytes_AsString(bytes);
	length = PyBytes_Size(bytes);
	if (!memchr(text, 0, (size_t)length)) {
		*ret_text = text;
		return bytes;
	}
	escaped = PyBytes_FromStringAndSize(NULL, length * 4);
	if (escaped) {
		to = PyBytes_AsString(escaped);
		for (Py_ssize_t i = 0; i < length; i++) {
			if (text[i]) {
				to[used++] = text[i];
			} else {
				memcpy(to + used, "\\x00", 4);
				used += 4;
			}
		}
		to[used] = 0;
		*ret_text = to;
	}
	Py_DECREF(bytes);
	return escaped;
}

/* The same; without a copy, if it can be stored as it is. */
static PyObject *text_of(PyObject *string, const char **ret_text)
{
#if FAST_CALLS
	Py_ssize_t length;
	const char *text = PyUnicode_AsUTF8AndSize(string, &length);

	if (LIKELY(text && !memchr(text, 0, (size_t)length))) {
		*ret_text = text;
		return Py_NewRef(string);
	}
	PyErr_Clear();
#endif
	return escape(string, ret_text);
}

static char *copy_text(PyObject *string)
{
	const char *text;
	PyObject *owner = text_of(string, &text);
	size_t length;
	char *copy;

	if (!owner)
		return NULL;
	length = strnlen(text, TEXT_BYTES);
	copy = malloc(length + 1);
	if (copy) {
		memcpy(copy, text, length);
		copy[length] = 0;
	}
	Py_DECREF(owner);
	return copy;
}

/* ---- arguments ---- */

/* Values of a call, as words of emit.h. */
struct values {
	uint64_t words[1 + FIELDS_MOST]; /* the first is for a track */
	PyObject *owners[FIELDS_MOST];   /* of strings, else NULL */
	unsigned int count;
	uint64_t types;
};

static void release_values(struct values *values)
{
	for (unsigned int i = 0; i < values->count; i++)
		Py_XDECREF(values->owners[i]);
}

static bool take_string(struct values *values, unsigned int i, PyObject *string)
{
	const char *text;
	PyObject *owner = text_of(string, &text);

	if (!owner)
		return false;
	values->owners[i] = owner;
	values->words[1 + i] = ts_emit_string(text);
	values->types |= (uint64_t)(TS_EMIT_STRING - 1) << (2 * i);
	return true;
}

static void take_double(struct values *values, unsigned int i, double value)
{
	values->words[1 + i] = ts_emit_double(value);
	values->types |= (uint64_t)(TS_EMIT_DOUBLE - 1) << (2 * i);
}

/* Integers of more than 64 bits become strings. */
static bool take_int(struct values *values, unsigned int i, PyObject *value)
{
	int overflow;
	long long integer = PyLong_AsLongLongAndOverflow(value, &overflow);
	PyObject *string;
	bool is_taken;

	if (LIKELY(!overflow)) {
		values->words[1 + i] = (uint64_t)integer;
		return true;
	}
	string = PyObject_Str(value);
	is_taken = string && take_string(values, i, string);
	Py_XDECREF(string);
	return is_taken;
}

/* Numbers of other libraries as numbers, everything else as str() shows it. */
static bool take_other(struct values *values, unsigned int i, PyObject *value)
{
	PyObject *number = PyIndex_Check(value) ? PyNumber_Index(value) : NULL, *string;
	bool is_taken;

	if (number) {
		is_taken = take_int(values, i, number);
		Py_DECREF(number);
		return is_taken;
	}
	PyErr_Clear();
	if (PyType_GetSlot(Py_TYPE(value), Py_nb_float)) {
		double real = PyFloat_AsDouble(value);

		if (!PyErr_Occurred()) {
			take_double(values, i, real);
			return true;
		}
		PyErr_Clear();
	}
	string = PyObject_Str(value);
	is_taken = string && take_string(values, i, string);
	Py_XDECREF(string);
	return is_taken;
}

static bool take_value(struct values *values, PyObject *value)
{
	unsigned int i = values->count;

	values->owners[i] = NULL;
	values->count++;
	if (PyUnicode_Check(value))
		return take_string(values, i, value);
	if (PyBool_Check(value)) {
		values->words[1 + i] = value == Py_True;
		values->types |= (uint64_t)(TS_EMIT_BOOL - 1) << (2 * i);
		return true;
	}
	if (PyLong_Check(value))
		return take_int(values, i, value);
	if (PyFloat_Check(value)) {
		take_double(values, i, PyFloat_AsDouble(value));
		return true;
	}
	return take_other(values, i, value);
}

/* The first 32; false with an exception, of a __str__ for example. */
static bool take_values(struct values *values, PyObject *const *objects, Py_ssize_t count)
{
	values->count = 0;
	values->types = 0;
	for (Py_ssize_t i = 0; i < count && i < (Py_ssize_t)FIELDS_MOST; i++) {
		if (!take_value(values, objects[i])) {
			release_values(values);
			return false;
		}
	}
	return true;
}

static enum ts_emit_type type_of(uint64_t types, unsigned int i)
{
	return (enum ts_emit_type)((types >> (2 * i) & 3) + 1);
}

/* ---- making sites ---- */

typedef struct {
	PyObject_VAR_HEAD
	struct state *state;
	struct site *site;         /* NULL: the event carries its texts */
	PyObject *name, *category; /* for these */
	PyObject *keywords;
	uint64_t types;
	/* Of a shared object: its bound methods, which each `with` would allocate otherwise. */
	PyObject *enter, *exit;
	struct {
		uint64_t word;
		PyObject *owner;
	} values[];
} Span;

static Span *new_span(struct state *state, struct site *site, Py_ssize_t values)
{
	Span *span = PyObject_NewVar(Span, state->span_type, values);

	if (span) {
		span->state = state;
		span->site = site;
		span->name = span->category = span->keywords = NULL;
		span->enter = span->exit = NULL;
		span->types = 0;
	}
	return span;
}

/* The first object of that content; a new reference. NULL without an exception: too many. */
static PyObject *canonical(struct state *state, PyObject *object)
{
	/* A subclass may have any hash. */
	bool is_subclass = PyUnicode_Check(object) && !PyUnicode_CheckExact(object);
	PyObject *exact = is_subclass ? PyUnicode_FromObject(object) : Py_NewRef(object), *found;

	if (!exact)
		return NULL;
	found = PyDict_GetItemWithError(state->texts, exact);
	if (!found && !PyErr_Occurred() && PyDict_Size(state->texts) < TEXTS_MOST &&
	    !PyDict_SetItem(state->texts, exact, exact))
		found = exact;
	Py_XINCREF(found);
	Py_DECREF(exact);
	return found;
}

static bool set_field(struct site *site, unsigned int i, PyObject *key, enum ts_emit_type type)
{
	site->fields[i].key = copy_text(key);
	site->fields[i].type = type;
	return site->fields[i].key != NULL;
}

static void set_kinds(struct site *site, enum kind kind, unsigned int fields, unsigned int strings)
{
	site->plain.fields = site->fields;
	site->plain.kind = kind;
	site->plain.field_count = (uint8_t)fields;
	site->plain.strings = (uint8_t)strings;
	site->on_track = site->plain;
	site->on_track.flags = FLAG_TRACK;
	site->on_track.leading_words = 1;
	if (kind == KIND_SPAN) {
		site->plain.leading_words = 1; /* the duration */
		site->on_track.leading_words = 2;
	}
}

static bool bind(Span *span);

/* NULL with an exception. */
static struct site *new_site(struct state *state, const struct key *key, enum kind kind)
{
	Py_ssize_t count = key->keywords ? PyTuple_Size(key->keywords) : 0;
	unsigned int fields = count > (Py_ssize_t)FIELDS_MOST ? FIELDS_MOST : (unsigned int)count;
	unsigned int strings = 0;
	struct site *site =
		calloc(1, sizeof(*site) + (fields + 1) * sizeof(site->fields[0]));
	bool is_complete;

	if (!site) {
		PyErr_NoMemory();
		return NULL;
	}
	site->key = *key;
	site->plain.name = copy_text(key->name);
	site->plain.category = copy_text(key->category);
	is_complete = site->plain.name && site->plain.category;
	for (unsigned int i = 0; i < fields && is_complete; i++) {
		enum ts_emit_type type = type_of(key->types >> 4, i);

		strings += type == TS_EMIT_STRING;
		is_complete = set_field(site, i, PyTuple_GetItem(key->keywords, i), type);
	}
	set_kinds(site, kind, fields, strings);
	if (is_complete && kind == KIND_BEGIN && !fields) {
		Span *span = new_span(state, site, 0);

		site->span = (PyObject *)span;
		is_complete = span && bind(span);
#ifdef Py_GIL_DISABLED
		/* Shared by all threads, which must not count their uses in one cache line. */
		if (span) {
			span->ob_base.ob_base.ob_tid = _Py_UNOWNED_TID;
			span->ob_base.ob_base.ob_ref_local = _Py_IMMORTAL_REFCNT_LOCAL;
			span->ob_base.ob_base.ob_ref_shared = 0;
		}
#endif
	}
	/* What is half made stays: that happens only without memory. */
	return is_complete ? site : NULL;
}

static void own(const struct key *key)
{
	Py_INCREF(key->name);
	Py_INCREF(key->category);
	Py_XINCREF(key->keywords);
}

/* Adds a key for a site, so that it is found by address from now on. */
static bool add(struct state *state, const struct key *key, struct site *site)
{
	bool is_new;

	LOCK(state);
	is_new = !find(state, key) && make_space(state);
	if (is_new) {
		own(key);
		put(state->table, key, site);
		state->used++;
	}
	UNLOCK(state);
	return is_new;
}

static bool is_constant(PyObject *string)
{
#if FAST_CALLS
	return PyUnicode_CheckExact(string) && PyUnicode_CHECK_INTERNED(string);
#else
	return PyUnicode_CheckExact(string);
#endif
}

/* By content: the texts were made at run time, or this is the first call. */
static struct site *find_by_content(struct state *state, const struct key *key, enum kind kind)
{
	struct key texts = { .types = key->types };
	struct site *site = NULL;
	bool is_known;

	LOCK(state);
	is_known = (texts.name = canonical(state, key->name)) &&
		   (texts.category = canonical(state, key->category)) &&
		   (!key->keywords || (texts.keywords = canonical(state, key->keywords)));
	UNLOCK(state);
	if (is_known)
		site = find(state, &texts);
	if (is_known && !site && state->sites < SITES_MOST) {
		site = new_site(state, &texts, kind);
		if (site && !add(state, &texts, site))
			site = find(state, &texts); /* another thread was faster */
		else if (site)
			state->sites++;
	}
	if (site && !same_key(&texts, key) && state->aliases < ALIASES_MOST &&
	    is_constant(key->name) && is_constant(key->category) && add(state, key, site))
		state->aliases++;
	Py_XDECREF(texts.name);
	Py_XDECREF(texts.category);
	Py_XDECREF(texts.keywords);
	return site;
}

/* NULL without an exception: the event has to carry its texts. */
static inline struct site *site_for(struct state *state, PyObject *name, PyObject *category,
				    PyObject *keywords, uint64_t types, enum kind kind)
{
	struct key key = { name, category, keywords, types << 4 | (uint64_t)kind };
	struct site *site = find(state, &key);

	return LIKELY(site) ? site : find_by_content(state, &key, kind);
}

/* ---- asyncio: spans of tasks that take turns on a thread ---- */

/*
 * Spans of one thread nest, but those of its tasks do not. A task with open spans has a lane: a track
 * of its own, which another task takes when it has none any more.
 */

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
#if FAST_CALLS
	loop = PyObject_CallNoArgs(state->running_loop);
#else
	loop = PyObject_CallFunctionObjArgs(state->running_loop, NULL);
#endif
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
static inline bool lane_of(struct state *state, int change, int64_t *ret_track)
{
	void *task = running_task(state);
	int64_t lane;

	if (LIKELY(!task))
		return false;
	lane = count_lane(state, task, change);
	*ret_track = TS_TRACK_ASYNC + lane;
	return lane >= 0;
}

/* ---- emitting ---- */

/* `words`: those of site->fields, after the leading ones. */
static inline void emit_site(struct ts_emit_site *site, const uint64_t *words)
{
	unsigned int count = site->leading_words + site->field_count;

	if (site->strings || count > 2)
		ts_emit_words(site, words);
	else if (count == 2)
		ts_emit_2(site, words[0], words[1]);
	else if (count == 1)
		ts_emit_1(site, words[0]);
	else
		ts_emit_0(site);
}

/* An event that carries its texts. */
struct loose {
	struct ts_emit_arg args[FIELDS_MOST];
	PyObject *owners[2 + FIELDS_MOST];
	const char *name, *category;
	unsigned int count, owned;
};

static const char *loose_text(struct loose *loose, PyObject *string)
{
	const char *text = "";
	PyObject *owner = text_of(string, &text);

	if (owner)
		loose->owners[loose->owned++] = owner;
	else
		PyErr_Clear();
	return text;
}

static void fill_loose(struct loose *loose, PyObject *name, PyObject *category, PyObject *keywords,
		       uint64_t types, const uint64_t *words)
{
	Py_ssize_t count = keywords ? PyTuple_Size(keywords) : 0;

	loose->owned = 0;
	loose->name = loose_text(loose, name);
	loose->category = loose_text(loose, category);
	loose->count = count > (Py_ssize_t)FIELDS_MOST ? FIELDS_MOST : (unsigned int)count;
	for (unsigned int i = 0; i < loose->count; i++) {
		loose->args[i].key = loose_text(loose, PyTuple_GetItem(keywords, i));
		loose->args[i].type = type_of(types, i);
		memcpy(&loose->args[i].value, &words[i], sizeof(words[i]));
	}
}

static void release_loose(struct loose *loose)
{
	for (unsigned int i = 0; i < loose->owned; i++)
		Py_DECREF(loose->owners[i]);
}

/* ---- spans ---- */

static void begin_loose(const Span *span, int64_t track)
{
	uint64_t words[FIELDS_MOST];
	struct loose loose;

	for (Py_ssize_t i = 0; i < Py_SIZE(span); i++)
		words[i] = span->values[i].word;
	fill_loose(&loose, span->name, span->category, span->keywords, span->types, words);
	ts_tracer_begin(ts_tracer_process(), loose.name, loose.category, track, loose.args,
			loose.count);
	release_loose(&loose);
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

static void begin(Span *span)
{
	int64_t track = TS_TRACK_THREAD;
	bool has_track = lane_of(span->state, 1, &track);

	if (UNLIKELY(!span->site))
		begin_loose(span, has_track ? track : TS_TRACK_THREAD);
	else if (Py_SIZE(span))
		begin_with_values(span, has_track ? &span->site->on_track : &span->site->plain,
				  track);
	else if (has_track)
		ts_emit_1(&span->site->on_track, (uint64_t)track);
	else
		ts_emit_0(&span->site->plain);
}

static void end(Span *span)
{
	int64_t track;

	/* Asking for the running task costs 40 ns. */
	if (UNLIKELY(__atomic_load_n(&span->state->lane_count, __ATOMIC_RELAXED)) &&
	    lane_of(span->state, -1, &track))
		ts_emit_1(&end_on_track_site, (uint64_t)track);
	else
		ts_emit_0(&end_site);
}

static PyObject *span_enter(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (ts_enabled())
		begin((Span *)self);
	Py_INCREF(self);
	return self;
}

#if FAST_CALLS
static PyObject *span_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	(void)count;
#else
static PyObject *span_exit(PyObject *self, PyObject *args)
{
#endif
	(void)args;
	if (ts_enabled())
		end((Span *)self);
	Py_RETURN_NONE;
}

/* A function of tracesmith.emit, called with these objects. */
static PyObject *call_python(const char *name, PyObject *first, PyObject *second)
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
	return call_python("_enter", self, NULL);
}

static PyObject *span_aexit(PyObject *self, PyObject *args)
{
	(void)args;
	return call_python("_exit", self, NULL);
}

/* As a decorator. */
static PyObject *span_call(PyObject *self, PyObject *args, PyObject *keywords)
{
	if (PyTuple_Size(args) != 1 || (keywords && PyDict_Size(keywords))) {
		PyErr_SetString(PyExc_TypeError,
				"a span is a context manager or a decorator of one function");
		return NULL;
	}
	return call_python("_decorate", self, PyTuple_GetItem(args, 0));
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

static PyMethodDef span_methods[] = {
	{ "__aenter__", span_aenter, METH_NOARGS, "Begins the span." },
	{ "__aexit__", span_aexit, METH_VARARGS, "Ends the span." },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot span_slots[] = {
	{ Py_tp_doc, (char *)"A span of time: a context manager, and a decorator." },
	{ Py_tp_dealloc, span_dealloc },
	{ Py_tp_repr, span_repr },
	{ Py_tp_call, span_call },
	{ Py_tp_methods, span_methods },
	{ 0, NULL },
};

static PyType_Spec span_spec = {
	.name = "tracesmith._emit.Span",
	.basicsize = sizeof(Span),
	.itemsize = sizeof(((Span *)0)->values[0]),
	.flags = Py_TPFLAGS_DEFAULT
#ifdef Py_TPFLAGS_DISALLOW_INSTANTIATION
		 | Py_TPFLAGS_DISALLOW_INSTANTIATION
#endif
	,
	.slots = span_slots,
};

/* ---- __enter__ and __exit__ ---- */

/*
 * `with` looks both up and gets a bound method of each. A method descriptor allocates them; ours
 * returns those of the shared object.
 */
typedef struct {
	PyObject_HEAD
	PyMethodDef *method;
	size_t place; /* of the bound method in Span */
} Method;

static PyMethodDef enter_method = { "__enter__", span_enter, METH_NOARGS, "Begins the span." };
#if FAST_CALLS
static PyMethodDef exit_method = { "__exit__", (PyCFunction)(void (*)(void))span_exit, METH_FASTCALL,
				   "Ends the span." };
#else
static PyMethodDef exit_method = { "__exit__", span_exit, METH_VARARGS, "Ends the span." };
#endif

static PyObject *method_get(PyObject *self, PyObject *object, PyObject *type)
{
	const Method *method = (const Method *)self;
	PyObject *bound;

	(void)type;
	if (!object || object == Py_None) {
		Py_INCREF(self);
		return self;
	}
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
	is_added = !PyObject_SetAttrString((PyObject *)span_type, definition->ml_name,
					   (PyObject *)method);
	Py_DECREF(method);
	return is_added;
}

static PyTypeObject *new_span_type(void)
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

static PyObject *span_with_values(struct state *state, PyObject *name, PyObject *category,
				  PyObject *const *objects, PyObject *keywords)
{
	struct values values;
	struct site *site;
	Span *span;

	if (!take_values(&values, objects, PyTuple_Size(keywords)))
		return NULL;
	site = site_for(state, name, category, keywords, values.types, KIND_BEGIN);
	span = site || !PyErr_Occurred() ? new_span(state, site, values.count) : NULL;
	if (!span) {
		release_values(&values);
		return NULL;
	}
	for (unsigned int i = 0; i < values.count; i++) {
		span->values[i].word = values.words[1 + i];
		span->values[i].owner = values.owners[i];
	}
	if (!site) {
		Py_INCREF(span->name = name);
		Py_INCREF(span->category = category);
		Py_INCREF(span->keywords = keywords);
		span->types = values.types;
	}
	return (PyObject *)span;
}

static PyObject *loose_span(struct state *state, PyObject *name, PyObject *category)
{
	Span *span = PyErr_Occurred() ? NULL : new_span(state, NULL, 0);

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
		return call_python("traced", args[0], NULL);
	if (!take_texts(state, "span", args, count, &name, &category))
		return NULL;
	if (keywords && PyTuple_Size(keywords))
		return span_with_values(state, name, category, args + count, keywords);
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
	if (!take_values(&values, args + count, keywords ? PyTuple_Size(keywords) : 0))
		return NULL;
	site = site_for(state, name, category, keywords, values.types, kind);
	if (LIKELY(site)) {
		emit_site(&site->plain, values.words + 1);
	} else if (!PyErr_Occurred()) {
		struct loose loose;

		fill_loose(&loose, name, category, keywords, values.types, values.words + 1);
		if (kind == KIND_COUNTER)
			ts_tracer_counter(ts_tracer_process(), loose.name, loose.category,
					  loose.args, loose.count);
		else
			ts_tracer_instant(ts_tracer_process(), loose.name, loose.category,
					  TS_TRACK_THREAD, loose.args, loose.count);
		release_loose(&loose);
	}
	release_values(&values);
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
	if (!take_values(&values, args + count, keywords ? PyTuple_Size(keywords) : 0))
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

		fill_loose(&loose, name, category, keywords, values.types, values.words + 1);
		ts_tracer_span(ts_tracer_process(), loose.name, loose.category, TS_TIME_NOW,
			       (int64_t)duration, track ? track : TS_TRACK_THREAD, loose.args,
			       loose.count);
		release_loose(&loose);
	}
	release_values(&values);
	if (PyErr_Occurred())
		return NULL;
	Py_RETURN_NONE;
}

#if FAST_CALLS
#define CALL(function) (PyCFunction)(void (*)(void)) do_##function
#define CALL_FLAGS (METH_FASTCALL | METH_KEYWORDS)
#else
/* Spreads out a tuple and a dict of arguments. */
static PyObject *spread(PyObject *module, PyObject *args, PyObject *keywords,
			PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *))
{
	PyObject *objects[8 + FIELDS_MOST], *names = NULL, *key, *value, *result;
	Py_ssize_t count = PyTuple_Size(args), at = 0, named = 0;
	Py_ssize_t most = keywords ? PyDict_Size(keywords) : 0;

	if (count > 8) {
		PyErr_SetString(PyExc_TypeError, "too many arguments");
		return NULL;
	}
	if (most > (Py_ssize_t)FIELDS_MOST)
		most = FIELDS_MOST;
	for (Py_ssize_t i = 0; i < count; i++)
		objects[i] = PyTuple_GetItem(args, i);
	if (most)
		names = PyTuple_New(most);
	while (names && named < most && PyDict_Next(keywords, &at, &key, &value)) {
		Py_INCREF(key);
		PyTuple_SetItem(names, named, key);
		objects[count + named++] = value;
	}
	result = PyErr_Occurred() ? NULL : function(module, objects, count, names);
	Py_XDECREF(names);
	return result;
}

#define SPREAD(function)                                                                         \
	static PyObject *spread_##function(PyObject *module, PyObject *args, PyObject *keywords) \
	{                                                                                        \
		return spread(module, args, keywords, do_##function);                            \
	}
SPREAD(span)
SPREAD(instant)
SPREAD(counter)
SPREAD(complete)
#define CALL(function) (PyCFunction)(void (*)(void)) spread_##function
#define CALL_FLAGS (METH_VARARGS | METH_KEYWORDS)
#endif

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
		__atomic_store_n(&state->steps, value + 1, __ATOMIC_RELAXED);
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
	int rc;

	(void)module;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS
	rc = ts_flush();
	Py_END_ALLOW_THREADS
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
	owner = text_of(name, &text);
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
	int redact = 0, rc;

	(void)module;
	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|zpKz:start", names, &options.output,
					 &redact, &budget, &options.backends))
		return NULL;
	options.budget = budget;
	options.flags = redact ? TS_START_REDACT : 0;
	Py_BEGIN_ALLOW_THREADS
	rc = ts_start(&options);
	Py_END_ALLOW_THREADS
	return PyLong_FromLong(-rc);
}

static PyObject *stop(PyObject *module, PyObject *unused)
{
	char notice[256];
	int rc;

	(void)module;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS
	rc = ts_stop(notice, sizeof(notice));
	Py_END_ALLOW_THREADS
	return Py_BuildValue("is", -rc, notice);
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

static PyMethodDef methods[] = {
	{ "span", CALL(span), CALL_FLAGS,
	  "span(name, category=\"\", /, **args)\n--\n\n"
	  "A span of time: a context manager, and a decorator. Arguments are stored with it." },
	{ "instant", CALL(instant), CALL_FLAGS,
	  "instant(name, category=\"\", /, **args)\n--\n\nMarks this instant." },
	{ "counter", CALL(counter), CALL_FLAGS,
	  "counter(name, /, category=\"\", **values)\n--\n\n"
	  "Stores new values of counters that are drawn together." },
	{ "complete", CALL(complete), CALL_FLAGS,
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
	  "Starts recording, or without an output flight mode. Returns 0, or an errno." },
	{ "stop", stop, METH_NOARGS,
	  "stop()\n--\n\nStops it. Returns 0 or an errno, and a notice of the recorder." },
	{ "environment", environment, METH_NOARGS,
	  "environment()\n--\n\nTRACESMITH_AGENT for programs that belong to the recording, or None." },
	{ NULL, NULL, 0, NULL },
};

/* ---- the module ---- */

static bool fill_state(struct state *state)
{
	PyObject *sys = PyImport_ImportModule("sys");

	state->texts = PyDict_New();
	state->lanes = PyDict_New();
	state->empty = PyUnicode_InternFromString("");
	state->asyncio_name = PyUnicode_InternFromString("_asyncio");
	state->modules = sys ? PyObject_GetAttrString(sys, "modules") : NULL;
	state->lanes_used = calloc(LANES_MOST / 64, sizeof(uint64_t));
	state->span_type = new_span_type();
	Py_XDECREF(sys);
	return state->texts && state->lanes && state->empty && state->asyncio_name &&
	       state->modules && state->lanes_used && state->span_type && make_space(state);
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

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, execute },
#if defined(Py_mod_multiple_interpreters) && !defined(Py_LIMITED_API)
	{ Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED },
#endif
#ifdef Py_GIL_DISABLED
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
	{ 0, NULL },
};

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
	return PyModuleDef_Init(&definition);
}
