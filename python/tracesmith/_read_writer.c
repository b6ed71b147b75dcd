/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracesmith._read: Writer, which writes traces row by row. Values of Python become what the column
 * holds: texts are interned, enums found by name, anything in a JSON column becomes JSON text, a
 * dict of arguments a shape and its values.
 */
#include "_read.h"

#include <stdlib.h>
#include <string.h>

#include <tracesmith/writer.h>

#define MOST_FIELDS 1024
#define MOST_BYTES (64 << 20) /* of a text, of a blob */

struct writer {
	PyObject_HEAD struct ts_writer *writer;
	PyObject *dumps;     /* json.dumps, in the shortest form */
	_Atomic int is_busy; /* one thread at a time, and no call inside another */
	unsigned int generation;
};

static PyObject *fail(struct ts_writer *writer)
{
	struct ts_error err = { .code = TS_EINVAL };

	if (!ts_writer_status(writer, &err))
		ts_error_set(&err, TS_EINVAL, "the trace cannot be written");
	return raise_error(&err);
}

/* The library accepts nothing after what it refused, so that such values must not get there. */
static PyObject *refuse(const char *reason)
{
	struct ts_error err = { 0 };

	ts_error_set(&err, TS_EINVAL, "%s", reason);
	return raise_error(&err);
}

typedef PyObject *method(PyObject *self, struct ts_writer *writer, PyObject *parameters);

/* Runs a method, unless the writer is closed or in use: converting values may run any Python code.
 */
static PyObject *run_alone(PyObject *self, PyObject *parameters, method *run)
{
	struct writer *writer = (struct writer *)self;
	PyObject *answer = NULL;

	if (atomic_exchange(&writer->is_busy, 1)) {
		PyErr_SetString(PyExc_ValueError, "the writer is in use by another thread or call");
		return NULL;
	}
	if (!writer->writer)
		PyErr_SetString(PyExc_ValueError, "the writer is closed");
	else if (writer->generation != process_generation())
		PyErr_SetString(PyExc_ValueError,
				"the writer belongs to the parent process: create "
				"another one, with a different file");
	else
		answer = run(self, writer->writer, parameters);
	atomic_store(&writer->is_busy, 0);
	return answer;
}

/* ---- values ---- */

static int64_t intern(struct ts_writer *writer, PyObject *object)
{
	PyObject *bytes = PyUnicode_AsEncodedString(object, "utf-8", "replace");
	Py_ssize_t length;
	char *text;
	int64_t id = 0;

	if (!bytes)
		return 0;
	if (!PyBytes_AsStringAndSize(bytes, &text, &length)) {
		if (length > MOST_BYTES)
			refuse("a text is longer than 64 MiB");
		else if (!(id = ts_writer_string(writer, text, (size_t)length)))
			fail(writer);
	}
	Py_DECREF(bytes);
	return id;
}

/* Any object as JSON text. */
static int64_t intern_json(PyObject *self, struct ts_writer *writer, PyObject *object)
{
	PyObject *text = PyObject_CallFunctionObjArgs(((struct writer *)self)->dumps, object, NULL);
	int64_t id;

	if (!text)
		return 0;
	id = intern(writer, text);
	Py_DECREF(text);
	return id;
}

static int64_t bits_of(double value)
{
	int64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static int64_t enum_value(const struct ts_column_info *column, PyObject *object)
{
	PyObject *bytes;
	int64_t value = 0;

	if (PyLong_Check(object))
		return PyLong_AsLongLong(object);
	bytes = PyUnicode_AsUTF8String(object);
	if (!bytes)
		return 0;
	if (ts_enum_value(column->refers, PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes),
			  &value))
		PyErr_Format(PyExc_ValueError, "column '%s' has no value %R", column->name, object);
	Py_DECREF(bytes);
	return value;
}

/* With an exception on failure. */
static int64_t column_value(PyObject *self, struct ts_writer *writer,
			    const struct ts_column_info *column, PyObject *object)
{
	switch (column->type) {
	case TS_COLUMN_STRING:
		if (PyUnicode_Check(object))
			return intern(writer, object);
		PyErr_Format(PyExc_TypeError, "column '%s' must be a str, not %R", column->name,
			     object);
		return 0;
	case TS_COLUMN_JSON:
		return intern_json(self, writer, object);
	case TS_COLUMN_FLOAT:
		return bits_of(PyFloat_AsDouble(object));
	case TS_COLUMN_BOOL:
		return PyObject_IsTrue(object);
	case TS_COLUMN_ENUM:
		return enum_value(column, object);
	default:
		if (PyIndex_Check(object))
			return PyLong_AsLongLong(object);
		PyErr_Format(PyExc_TypeError, "column '%s' must be an int, not %R", column->name,
			     object);
		return 0;
	}
}

/* ---- arguments ---- */

struct arguments {
	struct ts_field fields[MOST_FIELDS];
	int64_t values[MOST_FIELDS];
	uint32_t field_count, value_count;
};

static int64_t argument_value(PyObject *self, struct ts_writer *writer, PyObject *object,
			      uint8_t *ret_type)
{
	int overflow = 0;
	int64_t value;

	*ret_type = TS_ARG_JSON;
	if (object == Py_None) {
		*ret_type = TS_ARG_NULL;
		return 0;
	}
	if (PyBool_Check(object)) {
		*ret_type = TS_ARG_BOOL;
		return object == Py_True;
	}
	if (PyFloat_Check(object)) {
		*ret_type = TS_ARG_DOUBLE;
		return bits_of(PyFloat_AsDouble(object));
	}
	if (PyUnicode_Check(object)) {
		*ret_type = TS_ARG_STRING;
		return intern(writer, object);
	}
	if (PyIndex_Check(object)) {
		value = PyLong_AsLongLongAndOverflow(object, &overflow);
		if (!overflow && !PyErr_Occurred()) {
			*ret_type = TS_ARG_INT;
			return value;
		}
		/* Arrays have an __index__() that raises. */
		if (!overflow && PyErr_ExceptionMatches(PyExc_TypeError))
			PyErr_Clear();
	}
	return intern_json(self, writer, object);
}

static int add_argument(PyObject *self, struct ts_writer *writer, struct arguments *arguments,
			PyObject *key, PyObject *object)
{
	struct ts_field *field = &arguments->fields[arguments->field_count];
	int64_t value;

	if (!PyUnicode_Check(key)) {
		PyErr_SetString(PyExc_TypeError, "names of arguments must be str");
		return -1;
	}
	if (arguments->field_count == MOST_FIELDS) {
		PyErr_SetString(PyExc_ValueError, "a row has at most 1024 arguments");
		return -1;
	}
	*field = (struct ts_field){ .key = (uint32_t)intern(writer, key) };
	if (PyErr_Occurred())
		return -1;
	value = argument_value(self, writer, object, &field->type);
	if (PyErr_Occurred())
		return -1;
	arguments->field_count++;
	if (ts_arg_has_value(field->type))
		arguments->values[arguments->value_count++] = value;
	return 0;
}

/* 0: none; with an exception on failure. */
static int64_t shape_of(PyObject *self, struct ts_writer *writer, struct arguments *arguments,
			PyObject *dict)
{
	PyObject *copy, *key, *value;
	Py_ssize_t at = 0;
	int64_t shape;

	if (!PyDict_Check(dict)) {
		PyErr_SetString(PyExc_TypeError, "args must be a dict");
		return 0;
	}
	/* The code that turns a value into text may change the caller's. */
	copy = PyDict_Copy(dict);
	while (copy && PyDict_Next(copy, &at, &key, &value))
		if (add_argument(self, writer, arguments, key, value))
			break;
	Py_XDECREF(copy);
	if (PyErr_Occurred() || !arguments->field_count)
		return 0;
	shape = ts_writer_shape(writer, arguments->fields, arguments->field_count);
	if (!shape)
		fail(writer);
	return shape;
}

/* ---- rows ---- */

static void none_row(const struct ts_table_info *table, int64_t *row)
{
	for (int i = 0; i < table->column_count; i++)
		row[i] = table->columns[i].none;
}

static PyObject *unknown_column(const struct ts_table_info *table, PyObject *name)
{
	PyErr_Format(PyExc_TypeError, "table '%s' has no column %R", table->name, name);
	return NULL;
}

/* Fills the row; -1 with an exception. */
static int fill_row(PyObject *self, struct ts_writer *writer, const struct ts_table_info *table,
		    PyObject *values, int64_t *row, struct arguments *arguments)
{
	PyObject *key, *object;
	Py_ssize_t at = 0;

	none_row(table, row);
	while (PyDict_Next(values, &at, &key, &object)) {
		PyObject *bytes = PyUnicode_AsUTF8String(key);
		const char *name = bytes ? PyBytes_AsString(bytes) : NULL;
		int column = name ? ts_column_by_name(table, name) : -1;
		bool is_args = name && table->shape >= 0 && !strcmp(name, "args");

		Py_XDECREF(bytes);
		if (!name)
			return -1;
		if (object == Py_None)
			continue;
		if (is_args)
			row[table->shape] = shape_of(self, writer, arguments, object);
		else if (column < 0 || column == table->shape ||
			 table->columns[column].type == TS_COLUMN_BYTES)
			unknown_column(table, key);
		else
			row[column] = column_value(self, writer, &table->columns[column], object);
		if (PyErr_Occurred())
			return -1;
	}
	return 0;
}

static const char *fault_of(const struct ts_table_info *table, const int64_t *row)
{
	if (table->start >= 0 && row[table->start] == TS_ABSENT)
		return "an event needs a start";
	if (table->duration >= 0 && row[table->duration] < -1)
		return "a duration is negative";
	return NULL;
}

static PyObject *write_row(struct ts_writer *writer, const struct ts_table_info *table,
			   int64_t *row, const struct arguments *arguments)
{
	enum ts_table_id id = (enum ts_table_id)table->id;
	struct ts_stack_row stack;
	struct ts_frame_row frame;
	const char *fault = fault_of(table, row);
	int64_t number;

	if (fault)
		return refuse(fault);
	if (id == TS_TABLE_FRAME) {
		memcpy(&frame, row, sizeof(frame));
		number = ts_writer_frame(writer, &frame);
		return number ? PyLong_FromLongLong(number) : fail(writer);
	}
	if (id == TS_TABLE_STACK) {
		memcpy(&stack, row, sizeof(stack));
		if (stack.parent < 0 || stack.parent > UINT32_MAX || stack.frame < 0 ||
		    stack.frame > UINT32_MAX) {
			PyErr_SetString(PyExc_ValueError, "no such stack or frame");
			return NULL;
		}
		number = ts_writer_stack(writer, (uint32_t)stack.parent, (uint32_t)stack.frame);
		return number ? PyLong_FromLongLong(number) : fail(writer);
	}
	if (table->kind == TS_KIND_ENTITY && !row[0])
		row[0] = ts_writer_new_id(writer, id);
	if (ts_writer_add(writer, id, row, arguments->values))
		return fail(writer);
	if (table->kind == TS_KIND_ENTITY)
		return PyLong_FromLongLong(row[0]);
	Py_RETURN_NONE;
}

static const struct ts_table_info *writable_table(const char *name)
{
	int id = ts_table_by_name(name);
	const struct ts_table_info *table = id < 0 ? NULL : ts_table_info((uint32_t)id);

	if (!table) {
		PyErr_Format(PyExc_ValueError, "unknown table '%s'", name);
		return NULL;
	}
	if (table->kind == TS_KIND_INTERNAL || table->kind == TS_KIND_DERIVED ||
	    table->id == TS_TABLE_STRING || table->id == TS_TABLE_BLOB ||
	    table->id == TS_TABLE_MAPPING) {
		PyErr_Format(PyExc_ValueError, "table '%s' is not written by row", name);
		return NULL;
	}
	return table;
}

/* add(table, {column: value}) -> id, or None */
static PyObject *add_row(PyObject *self, struct ts_writer *writer, PyObject *parameters)
{
	const struct ts_table_info *table;
	int64_t row[TS_MAX_COLUMNS];
	struct arguments *arguments;
	PyObject *values, *answer = NULL;
	const char *name;

	if (!PyArg_ParseTuple(parameters, "sO", &name, &values))
		return NULL;
	if (!PyDict_Check(values)) {
		PyErr_SetString(PyExc_TypeError, "a row must be a dict");
		return NULL;
	}
	table = writable_table(name);
	arguments = table ? malloc(sizeof(*arguments)) : NULL;
	if (!arguments)
		return PyErr_Occurred() ? NULL : PyErr_NoMemory();
	arguments->field_count = arguments->value_count = 0;
	if (!fill_row(self, writer, table, values, row, arguments))
		answer = write_row(writer, table, row, arguments);
	free(arguments);
	return answer;
}

static PyObject *writer_add(PyObject *self, PyObject *parameters)
{
	return run_alone(self, parameters, add_row);
}

static PyObject *add_string(PyObject *self, struct ts_writer *writer, PyObject *parameters)
{
	PyObject *text;
	int64_t id;

	(void)self;
	if (!PyArg_ParseTuple(parameters, "U", &text))
		return NULL;
	id = intern(writer, text);
	return id ? PyLong_FromLongLong(id) : NULL;
}

static PyObject *writer_string(PyObject *self, PyObject *parameters)
{
	return run_alone(self, parameters, add_string);
}

static PyObject *add_blob(PyObject *self, struct ts_writer *writer, PyObject *parameters)
{
	Py_ssize_t length;
	PyObject *bytes;
	char *data;
	uint32_t id;

	(void)self;
	if (!PyArg_ParseTuple(parameters, "S", &bytes) ||
	    PyBytes_AsStringAndSize(bytes, &data, &length))
		return NULL;
	if (length > MOST_BYTES)
		return refuse("a blob is larger than 64 MiB");
	id = ts_writer_blob(writer, data, (size_t)length);
	return id ? PyLong_FromUnsignedLong(id) : fail(writer);
}

static PyObject *writer_blob(PyObject *self, PyObject *parameters)
{
	return run_alone(self, parameters, add_blob);
}

/* ---- the file ---- */

/* In a forked child the file is the parent's, and threads that compress for it are missing. */
static void close_file(struct writer *writer)
{
	if (writer->generation == process_generation())
		ts_writer_close(writer->writer);
	writer->writer = NULL;
}

static PyObject *run_long(struct ts_writer *writer,
			  int (*run)(struct ts_writer *writer, struct ts_error *err))
{
	struct ts_error err;
	int result;

	Py_BEGIN_ALLOW_THREADS result = run(writer, &err);
	Py_END_ALLOW_THREADS if (result) return raise_error(&err);
	Py_RETURN_NONE;
}

static PyObject *save(PyObject *self, struct ts_writer *writer, PyObject *parameters)
{
	(void)self;
	(void)parameters;
	return run_long(writer, ts_writer_save);
}

static PyObject *writer_save(PyObject *self, PyObject *parameters)
{
	return run_alone(self, parameters, save);
}

static PyObject *finish(PyObject *self, struct ts_writer *writer, PyObject *parameters)
{
	(void)self;
	(void)parameters;
	return run_long(writer, ts_writer_finish);
}

static PyObject *writer_finish(PyObject *self, PyObject *parameters)
{
	return run_alone(self, parameters, finish);
}

static PyObject *writer_close(PyObject *self, PyObject *parameters)
{
	struct writer *writer = (struct writer *)self;

	(void)parameters;
	if (atomic_exchange(&writer->is_busy, 1)) {
		PyErr_SetString(PyExc_ValueError, "the writer is in use by another thread or call");
		return NULL;
	}
	close_file(writer);
	atomic_store(&writer->is_busy, 0);
	Py_RETURN_NONE;
}

static void writer_dealloc(PyObject *self)
{
	struct writer *writer = (struct writer *)self;
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	close_file(writer);
	Py_XDECREF(writer->dumps);
	release(self);
	Py_DECREF(type);
}

/* Writer(path, dumps, level) */
static PyObject *writer_new(PyTypeObject *type, PyObject *parameters, PyObject *keywords)
{
	struct ts_writer_options options = { .size = sizeof(options) };
	allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	PyObject *path, *dumps, *self;
	struct texts texts;
	const char *text;
	struct ts_error err;
	int result = -1;

	(void)keywords;
	if (!PyArg_ParseTuple(parameters, "UOi", &path, &dumps, &options.level) ||
	    texts_init(&texts))
		return NULL;
	self = allocate(type, 0);
	text = self ? texts_get(&texts, path, NULL) : NULL;
	if (text) {
		((struct writer *)self)->generation = process_generation();
		result = ts_writer_open(&((struct writer *)self)->writer, text, &options, &err);
		if (result)
			raise_error(&err);
	}
	texts_release(&texts);
	if (result) {
		Py_XDECREF(self);
		return NULL;
	}
	Py_INCREF(dumps);
	((struct writer *)self)->dumps = dumps;
	return self;
}

static PyMethodDef methods[] = {
	{ "add", writer_add, METH_VARARGS, NULL },
	{ "string", writer_string, METH_VARARGS, NULL },
	{ "blob", writer_blob, METH_VARARGS, NULL },
	{ "save", writer_save, METH_NOARGS, NULL },
	{ "finish", writer_finish, METH_NOARGS, NULL },
	{ "close", writer_close, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_new, writer_new },
	{ Py_tp_dealloc, writer_dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_doc, (void *)(uintptr_t) "Writes a trace." },
	{ 0, NULL },
};

PyType_Spec writer_spec = {
	.name = "tracesmith._read.Writer",
	.basicsize = sizeof(struct writer),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = slots,
};
