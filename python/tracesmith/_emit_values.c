/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of arguments: as words of emit.h, and as what an event carries that has no site.
 */
#include "_emit.h"

/* ---- values ---- */

void emit_release_values(struct values *values)
{
	for (unsigned int i = 0; i < values->count; i++)
		Py_XDECREF(values->owners[i]);
}

static bool take_string(struct values *values, unsigned int i, PyObject *string)
{
	const char *text;
	PyObject *owner = emit_text_of(string, &text);

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

/* Integers of more than 64 bits become strings: hexadecimal if str() refuses so many digits. */
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
	if (!string && PyErr_ExceptionMatches(PyExc_ValueError)) {
		PyErr_Clear();
		string = PyNumber_ToBase(value, 16);
	}
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
	if (PyNumber_Check(value)) {
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
bool emit_take_values(struct values *values, PyObject *const *objects, Py_ssize_t count)
{
	values->count = 0;
	values->types = 0;
	for (Py_ssize_t i = 0; i < count && i < (Py_ssize_t)FIELDS_MOST; i++) {
		if (!take_value(values, objects[i])) {
			emit_release_values(values);
			return false;
		}
	}
	return true;
}

/* ---- events that carry their texts ---- */

static const char *loose_text(struct loose *loose, PyObject *string)
{
	const char *text = "";
	PyObject *owner = emit_text_of(string, &text);

	if (owner)
		loose->owners[loose->owned++] = owner;
	else
		PyErr_Clear();
	return text;
}

void emit_fill_loose(struct loose *loose, PyObject *name, PyObject *category, PyObject *keywords,
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

void emit_release_loose(struct loose *loose)
{
	for (unsigned int i = 0; i < loose->owned; i++)
		Py_DECREF(loose->owners[i]);
}
