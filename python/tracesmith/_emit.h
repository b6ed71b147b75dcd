/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of tracesmith._emit: sites, which calls are found by; values of arguments;
 * spans. No function prints; those that return NULL or false have set an exception unless noted
 * otherwise.
 */
#ifndef TS_PYTHON_EMIT_H
#define TS_PYTHON_EMIT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/emit.h>

/* The same in every version since 3.7, but in the stable ABI's headers only since 3.10. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
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
	uint64_t types;     /* two bits for each argument */
	enum kind kind;
};

/* Sites live as long as the process: the dictionary of its area has them. */
struct site {
	struct key key; /* of the first call */
	PyObject *span; /* KIND_BEGIN without arguments: the shared object */
	struct ts_emit_site plain;
	struct ts_emit_site
		on_track; /* the same with a track; a SPAN has only this one or `plain` */
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
	PyObject *lane_numbers; /* dict: address of a task to the number of its lane */
	struct lane *lanes;     /* by number */
	size_t lane_space;
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

static inline bool same_key(const struct key *a, const struct key *b)
{
	return a->name == b->name && a->category == b->category && a->keywords == b->keywords &&
	       a->types == b->types && a->kind == b->kind;
}

static inline size_t hash_of(const struct key *key)
{
	uint64_t hash = (uint64_t)(uintptr_t)key->name;

	hash = hash * 3 + (uint64_t)(uintptr_t)key->category;
	hash = hash * 5 + (uint64_t)(uintptr_t)key->keywords + key->types;
	hash = hash * 7 + (uint64_t)key->kind;
	hash *= UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(hash >> 32);
}

static inline struct site *find_site(const struct state *state, const struct key *key)
{
	const struct table *table = __atomic_load_n(&state->table, __ATOMIC_ACQUIRE);

	for (size_t i = hash_of(key);; i++) {
		const struct slot *slot = &table->slots[i & table->mask];
		struct site *site = __atomic_load_n(&slot->site, __ATOMIC_ACQUIRE);

		if (!site || LIKELY(same_key(&slot->key, key)))
			return site;
	}
}

/* ---- _emit_sites.c ---- */

/*
 * UTF-8 without NUL, which C strings cannot have: that and lone surrogates become escapes. A new
 * reference to what owns *ret_text.
 */
PyObject *emit_text_of(PyObject *string, const char **ret_text);

/* Allocates the first table. False: no memory; without an exception. */
bool emit_make_space(struct state *state);

/* By content: the texts were made at run time, or this is the first call. As site_for(). */
struct site *emit_find_by_content(struct state *state, const struct key *key);

/* NULL without an exception: the event has to carry its texts. */
static inline struct site *site_for(struct state *state, PyObject *name, PyObject *category,
				    PyObject *keywords, uint64_t types, enum kind kind)
{
	struct key key = { name, category, keywords, types, kind };
	struct site *site = find_site(state, &key);

	return LIKELY(site) ? site : emit_find_by_content(state, &key);
}

/* ---- _emit_values.c ---- */

/* Values of a call, as words of emit.h. */
struct values {
	uint64_t words[1 + FIELDS_MOST]; /* the first is for a track */
	PyObject *owners[FIELDS_MOST];   /* of strings, else NULL */
	unsigned int count;
	uint64_t types;
};

/* The first 32; false with an exception, of a __str__ for example. */
bool emit_take_values(struct values *values, PyObject *const *objects, Py_ssize_t count);
void emit_release_values(struct values *values);

static inline enum ts_emit_type type_of(uint64_t types, unsigned int i)
{
	return (enum ts_emit_type)((types >> (2 * i) & 3) + 1);
}

/* An event that carries its texts. */
struct loose {
	struct ts_emit_arg args[FIELDS_MOST];
	PyObject *owners[2 + FIELDS_MOST];
	const char *name, *category;
	unsigned int count, owned;
};

/* Borrows all but the texts. */
void emit_fill_loose(struct loose *loose, PyObject *name, PyObject *category, PyObject *keywords,
		     uint64_t types, const uint64_t *words);
void emit_release_loose(struct loose *loose);

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

/* ---- _emit_spans.c ---- */

typedef struct {
	PyObject_VAR_HEAD struct state *state;
	struct site *site;         /* NULL: the event carries its texts */
	PyObject *name, *category; /* for these */
	PyObject *keywords;
	uint64_t types;
	bool is_deferred; /* `values` are the objects of the call: it was made while nothing
			     recorded */
	/* Of a shared object: its bound methods, which each `with` would allocate otherwise. */
	PyObject *enter, *exit;
	struct {
		uint64_t word;
		PyObject *owner;
	} values[];
} Span;

/* Reads the values of a call, unless that may be slow and nothing records. */
PyObject *emit_span_with_values(struct state *state, PyObject *name, PyObject *category,
				PyObject *const *objects, PyObject *keywords);
PyTypeObject *emit_new_span_type(void);
Span *emit_new_span(struct state *state, struct site *site, Py_ssize_t values);
/* The shared object of a name; never freed. */
PyObject *emit_new_shared_span(struct state *state, struct site *site);
/* A function of tracesmith.emit, called with these objects; the second may be NULL. */
PyObject *emit_call_python(const char *name, PyObject *first, PyObject *second);

/* ---- _emit_tasks.c ---- */

/* The innermost spans that have begun on a thread outside of tasks. */
#define OWN_SPANS_MOST 7u
struct own_spans {
	size_t count; /* all of them */
	const Span *spans[OWN_SPANS_MOST];
};
extern __thread struct own_spans emit_own __attribute__((tls_model("initial-exec")));

static inline void emit_begin_own(const Span *span)
{
	size_t i = emit_own.count++;

	if (LIKELY(i < OWN_SPANS_MOST))
		emit_own.spans[i] = span;
}

bool emit_end_own_slowly(const Span *span);

/* False: it has not begun on this thread, or not while something recorded. */
static inline bool emit_end_own(const Span *span)
{
	size_t count = emit_own.count;

	if (!count)
		return false;
	if (UNLIKELY(count > OWN_SPANS_MOST || emit_own.spans[count - 1] != span))
		return emit_end_own_slowly(span);
	emit_own.count--;
	return true;
}

/* Where a span has begun. */
enum place { PLACE_NONE, PLACE_THREAD, PLACE_TRACK };

/* For a span that begins here: false: the thread's own track. */
bool emit_begin_in_task(struct state *state, const Span *span, int64_t *ret_track);
/* For one that ends here, in the task where it began or elsewhere. */
enum place emit_end_anywhere(struct state *state, const Span *span, int64_t *ret_track);
/* In a forked child: its parent's spans are not open in it, and no other thread has the lock. */
void emit_after_fork(struct state *state);

#endif
