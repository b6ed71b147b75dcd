/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sites: found by the addresses of their texts, which are interned, or by content; made when a call
 * is first seen; never freed, since the dictionary of the area has them.
 */
#include "_emit.h"

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
PyObject *emit_text_of(PyObject *string, const char **ret_text)
{
#if !defined(Py_LIMITED_API) || Py_LIMITED_API >= 0x030a0000
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
	PyObject *owner = emit_text_of(string, &text);
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

/* ---- the table ---- */

static void put(struct table *table, const struct key *key, struct site *site)
{
	size_t i = hash_of(key);

	while (table->slots[i & table->mask].site)
		i++;
	table->slots[i & table->mask].key = *key;
	__atomic_store_n(&table->slots[i & table->mask].site, site, __ATOMIC_RELEASE);
}

/* Other threads may still read the old table: it is kept. False: no memory. */
bool emit_make_space(struct state *state)
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

/* Without strings of a subclass, which may have any hash; a new reference. */
static PyObject *exact_of(PyObject *object)
{
	Py_ssize_t count, i = 0;
	PyObject *copy;

	if (PyUnicode_Check(object))
		return PyUnicode_CheckExact(object) ? Py_NewRef(object)
						    : PyUnicode_FromObject(object);
	count = PyTuple_Size(object);
	while (i < count && PyUnicode_CheckExact(PyTuple_GetItem(object, i)))
		i++;
	if (LIKELY(i == count))
		return Py_NewRef(object);
	copy = PyTuple_New(count);
	for (i = 0; copy && i < count; i++) {
		PyObject *text = exact_of(PyTuple_GetItem(object, i));

		if (!text || PyTuple_SetItem(copy, i, text))
			Py_CLEAR(copy);
	}
	return copy;
}

/*
 * The one object of that content by which sites are found: of texts the interned one, as constants
 * of code are. A new reference. NULL without an exception: there are too many already.
 */
static PyObject *canonical(struct state *state, PyObject *object)
{
	PyObject *exact = exact_of(object), *found;

	if (!exact)
		return NULL;
	found = PyDict_GetItemWithError(state->texts, exact);
	if (!found && !PyErr_Occurred() && PyDict_Size(state->texts) < TEXTS_MOST) {
		if (PyUnicode_Check(exact))
			PyUnicode_InternInPlace(&exact);
		if (!PyDict_SetItem(state->texts, exact, exact))
			found = exact;
	}
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

/* NULL with an exception. */
static struct site *new_site(struct state *state, const struct key *key)
{
	Py_ssize_t count = key->keywords ? PyTuple_Size(key->keywords) : 0;
	unsigned int fields = count > (Py_ssize_t)FIELDS_MOST ? FIELDS_MOST : (unsigned int)count;
	unsigned int strings = 0;
	struct site *site = calloc(1, sizeof(*site) + (fields + 1) * sizeof(site->fields[0]));
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
		enum ts_emit_type type = type_of(key->types, i);

		strings += type == TS_EMIT_STRING;
		is_complete = set_field(site, i, PyTuple_GetItem(key->keywords, i), type);
	}
	set_kinds(site, key->kind, fields, strings);
	if (is_complete && key->kind == KIND_BEGIN && !fields) {
		site->span = emit_new_shared_span(state, site);
		is_complete = site->span != NULL;
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
	is_new = !find_site(state, key) && emit_make_space(state);
	if (is_new) {
		own(key);
		put(state->table, key, site);
		state->used++;
	}
	UNLOCK(state);
	return is_new;
}

/* By content: the texts were made at run time, or this is the first call. */
struct site *emit_find_by_content(struct state *state, const struct key *key)
{
	struct key texts = { .types = key->types, .kind = key->kind };
	struct site *site = NULL;
	bool is_known;

	LOCK(state);
	is_known = (texts.name = canonical(state, key->name)) &&
		   (texts.category = canonical(state, key->category)) &&
		   (!key->keywords || (texts.keywords = canonical(state, key->keywords)));
	UNLOCK(state);
	if (is_known)
		site = find_site(state, &texts);
	if (is_known && !site && state->sites < SITES_MOST) {
		site = new_site(state, &texts);
		if (site && !add(state, &texts, site))
			site = find_site(state, &texts); /* another thread was faster */
		else if (site)
			state->sites++;
	}
	/* Equal keywords of several calls are several constants. */
	if (site && texts.name == key->name && texts.category == key->category &&
	    texts.keywords != key->keywords && state->aliases < ALIASES_MOST &&
	    add(state, key, site))
		state->aliases++;
	Py_XDECREF(texts.name);
	Py_XDECREF(texts.category);
	Py_XDECREF(texts.keywords);
	return site;
}
