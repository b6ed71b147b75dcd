/* SPDX-License-Identifier: Apache-2.0 */
/* tracesmith._read: analyses, differences, states, dependencies; imports and exports. */
#include "_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracesmith/analyze.h>
#include <tracesmith/diff.h>
#include <tracesmith/export.h>
#include <tracesmith/import.h>
#include <tracesmith/state.h>

/* ---- results as Python objects ---- */

static PyObject *text_of(const char *text)
{
	if (!text)
		Py_RETURN_NONE;
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *integer_of(int64_t value)
{
	if (value == TS_ABSENT)
		Py_RETURN_NONE;
	return PyLong_FromLongLong(value);
}

static PyObject *cell_of(const struct ts_cell *cell, enum ts_cell_type type)
{
	if (cell->none)
		Py_RETURN_NONE;
	switch (type) {
	case TS_CELL_TEXT:
	case TS_CELL_AMOUNT:
		return text_of(cell->text);
	case TS_CELL_REAL:
	case TS_CELL_PERCENT:
		return PyFloat_FromDouble(cell->real);
	case TS_CELL_BOOL:
		return PyBool_FromLong(cell->integer != 0);
	default:
		return PyLong_FromLongLong(cell->integer);
	}
}

static PyObject *columns_of(const struct ts_result_table *table)
{
	static const char *const types[] = { "text",    "amount",  "integer", "real", "time",
					     "instant", "percent", "bytes",   "bool" };
	PyObject *list = PyList_New(0);

	for (size_t i = 0; list && i < ts_result_column_count(table); i++) {
		const struct ts_result_column *column = ts_result_column(table, i);
		PyObject *item = Py_BuildValue("sNs", column->key, text_of(column->title),
					       types[column->type]);

		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

static PyObject *row_of(const struct ts_result_table *table, size_t row)
{
	size_t columns = ts_result_column_count(table);
	PyObject *tuple = PyTuple_New((Py_ssize_t)columns);

	for (size_t i = 0; tuple && i < columns; i++) {
		PyObject *cell =
			cell_of(ts_result_cell(table, row, i), ts_result_column(table, i)->type);

		if (cell)
			PyTuple_SetItem(tuple, (Py_ssize_t)i, cell);
		else
			Py_CLEAR(tuple);
	}
	return tuple;
}

static PyObject *rows_of(const struct ts_result_table *table)
{
	size_t count = ts_result_row_count(table);
	PyObject *list = PyList_New((Py_ssize_t)count);

	for (size_t i = 0; list && i < count; i++) {
		PyObject *row = row_of(table, i);

		if (row)
			PyList_SetItem(list, (Py_ssize_t)i, row);
		else
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *tables_of(const struct ts_result *result)
{
	PyObject *list = PyList_New(0);

	for (size_t i = 0; list && i < ts_result_table_count(result); i++) {
		const struct ts_result_table *table = ts_result_table_at(result, i);
		PyObject *item = Py_BuildValue("sNN", ts_result_table_name(table),
					       columns_of(table), rows_of(table));

		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

static PyObject *notes_of(const struct ts_result *result)
{
	PyObject *list = PyList_New(0);
	const char *note;

	for (size_t i = 0; list && (note = ts_result_note_at(result, i)); i++) {
		PyObject *item = text_of(note);

		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

/* ---- selections and options ---- */

#define MOST_OPTIONS 64

/* From keyword arguments, which all of these calls share. */
struct choice {
	struct texts texts;
	struct ts_selection selection;
	struct ts_option_value options[MOST_OPTIONS];
	size_t option_count;
	int64_t *ranks;
	struct progress progress;
	const char *from, *to; /* of states */
	PyObject *devices, *streams;
};

static void choice_release(struct choice *choice)
{
	texts_release(&choice->texts);
	free(choice->ranks);
}

/* Integers of a sequence; the caller frees. NULL with an exception. */
static int64_t *integers_of(PyObject *sequence, size_t *ret_count)
{
	Py_ssize_t count = PySequence_Size(sequence);
	int64_t *list;

	if (count < 0)
		return NULL;
	list = calloc((size_t)count + 1, sizeof(*list));
	if (!list)
		return (int64_t *)PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); i++) {
		PyObject *item = PySequence_GetItem(sequence, i);

		list[i] = item ? PyLong_AsLongLong(item) : 0;
		Py_XDECREF(item);
	}
	if (PyErr_Occurred()) {
		free(list);
		return NULL;
	}
	*ret_count = (size_t)count;
	return list;
}

static int take_flag(struct choice *choice, unsigned int flag, PyObject *value)
{
	int is_set = PyObject_IsTrue(value);

	if (is_set > 0)
		choice->selection.flags |= flag;
	return is_set < 0 ? -1 : 0;
}

/* An option of the analysis: name and text, or None for a flag. */
static int take_option(struct choice *choice, const char *name, PyObject *value)
{
	struct ts_option_value *option = &choice->options[choice->option_count];
	int is_none;

	if (choice->option_count == MOST_OPTIONS) {
		PyErr_SetString(PyExc_TypeError, "too many options");
		return -1;
	}
	option->name = name;
	option->value = texts_get(&choice->texts, value, &is_none);
	if (!option->value)
		return -1;
	if (is_none)
		option->value = NULL;
	choice->option_count++;
	return 0;
}

static int take_text(struct choice *choice, const char **ret_text, PyObject *value)
{
	*ret_text = texts_get(&choice->texts, value, NULL);
	return *ret_text ? 0 : -1;
}

static int take_keyword(struct choice *choice, const char *name, PyObject *value)
{
	struct ts_selection *selection = &choice->selection;

	if (value == Py_None && strcmp(name, "options"))
		return 0;
	if (!strcmp(name, "progress"))
		choice->progress.callable = value;
	else if (!strcmp(name, "all"))
		return take_flag(choice, TS_SELECT_ALL, value);
	else if (!strcmp(name, "no_align"))
		return take_flag(choice, TS_SELECT_NO_ALIGN, value);
	else if (!strcmp(name, "short_names"))
		return take_flag(choice, TS_SELECT_SHORT_NAMES, value);
	else if (!strcmp(name, "steps"))
		return take_text(choice, &selection->steps, value);
	else if (!strcmp(name, "step_span"))
		return take_text(choice, &selection->step_span, value);
	else if (!strcmp(name, "rounding"))
		return take_text(choice, &selection->rounding, value);
	else if (!strcmp(name, "start"))
		return take_text(choice, &selection->from, value);
	else if (!strcmp(name, "end"))
		return take_text(choice, &selection->to, value);
	else if (!strcmp(name, "devices"))
		choice->devices = value;
	else if (!strcmp(name, "streams"))
		choice->streams = value;
	else if (!strcmp(name, "ranks"))
		return (choice->ranks = integers_of(value, &selection->rank_count)) ? 0 : -1;
	else {
		PyErr_Format(PyExc_TypeError, "unknown keyword '%s'", name);
		return -1;
	}
	return 0;
}

static int take_options(struct choice *choice, PyObject *options)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	while (PyDict_Next(options, &at, &key, &value)) {
		const char *name = texts_get(&choice->texts, key, NULL);

		if (!name || take_option(choice, name, value))
			return -1;
	}
	return 0;
}

static int choice_init(struct choice *choice, PyObject *keywords)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	*choice = (struct choice){ .selection.size = sizeof(choice->selection) };
	if (texts_init(&choice->texts))
		return -1;
	while (keywords && PyDict_Next(keywords, &at, &key, &value)) {
		const char *name = texts_get(&choice->texts, key, NULL);
		int result = -1;

		if (name && !strcmp(name, "options") && PyDict_Check(value))
			result = take_options(choice, value);
		else if (name)
			result = take_keyword(choice, name, value);
		if (result) {
			choice_release(choice);
			return -1;
		}
	}
	choice->selection.ranks = choice->ranks;
	return 0;
}

/* ---- analyses ---- */

/* analyze(name, options={...}, steps=...) -> (tables, notes) */
PyObject *job_analyze(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	PyThreadState *without_gil;
	struct ts_analyze_options options = { .size = sizeof(options),
					      .progress = report_progress };
	struct trace_handle *handle;
	struct ts_result *result = NULL;
	PyObject *answer = NULL;
	struct choice choice;
	const char *name;
	struct ts_error err;
	int failed;

	if (!PyArg_ParseTuple(arguments, "s", &name) || choice_init(&choice, keywords))
		return NULL;
	handle = trace_handle_of(self);
	if (handle) {
		options.selection = &choice.selection;
		options.options = choice.options;
		options.option_count = choice.option_count;
		options.context = &choice.progress;
		without_gil = PyEval_SaveThread();
		failed = trace_handles_lock(handle, NULL, &err);
		if (!failed) {
			failed = ts_analyze(handle->job, name, &options, &result, &err);
			trace_handles_unlock(handle, NULL);
		}
		PyEval_RestoreThread(without_gil);
		if (failed)
			raise_error(&err);
		else if (!PyErr_Occurred())
			answer = Py_BuildValue("NN", tables_of(result), notes_of(result));
		ts_result_free(result);
	}
	trace_handle_drop(handle);
	choice_release(&choice);
	return answer;
}

/* diff(other, options={...}, steps=...) -> (outcome, tables, notes) */
PyObject *job_diff(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	PyThreadState *without_gil;
	static const char *const outcomes[] = { "identical", "alike", "different" };
	struct ts_diff_options options = { .size = sizeof(options), .progress = report_progress };
	PyObject *other, *answer = NULL;
	struct trace_handle *a, *b = NULL;
	enum ts_diff_outcome outcome = TS_DIFF_IDENTICAL;
	struct ts_result *result = NULL;
	struct choice choice;
	struct ts_error err;
	int failed;

	if (!PyArg_ParseTuple(arguments, "O", &other) || choice_init(&choice, keywords))
		return NULL;
	if (Py_TYPE(other) != Py_TYPE(self)) {
		PyErr_SetString(PyExc_TypeError, "diff() expects a trace");
		choice_release(&choice);
		return NULL;
	}
	a = trace_handle_of(self);
	if (a)
		b = trace_handle_of(other);
	if (b) {
		options.selection = &choice.selection;
		options.options = choice.options;
		options.option_count = choice.option_count;
		options.context = &choice.progress;
		without_gil = PyEval_SaveThread();
		failed = trace_handles_lock(a, b, &err);
		if (!failed) {
			failed = ts_diff(a->job, b->job, &options, &outcome, &result, &err);
			trace_handles_unlock(a, b);
		}
		PyEval_RestoreThread(without_gil);
		if (failed)
			raise_error(&err);
		else if (!PyErr_Occurred())
			answer = Py_BuildValue("sNN", outcomes[outcome], tables_of(result),
					       notes_of(result));
		ts_result_free(result);
	}
	trace_handle_drop(a);
	trace_handle_drop(b);
	choice_release(&choice);
	return answer;
}

/* [(name, alias, summary, [(option, value, doc)])] */
PyObject *list_analyses(PyObject *self, PyObject *arguments)
{
	const struct ts_analysis *analysis;
	PyObject *list = PyList_New(0);

	(void)self;
	(void)arguments;
	for (size_t i = 0; list && (analysis = ts_analysis_at(i)); i++) {
		PyObject *options = PyList_New(0), *item;
		struct ts_option_info info;

		for (size_t k = 0; options && ts_analysis_option(analysis, k, &info); k++) {
			item = Py_BuildValue("szs", info.name, info.value, info.doc);
			if (!item || PyList_Append(options, item))
				Py_CLEAR(options);
			Py_XDECREF(item);
		}
		item = Py_BuildValue("szsN", ts_analysis_name(analysis),
				     ts_analysis_alias(analysis), ts_analysis_summary(analysis),
				     options);
		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

/* ---- states and dependencies ---- */

/* Rows of a list after which signals are handled: Ctrl-C ends it. */
#define SIGNALS_EVERY 4096

struct numbers {
	int64_t *devices, *streams;
	size_t device_count, stream_count;
};

static void numbers_release(struct numbers *numbers)
{
	free(numbers->devices);
	free(numbers->streams);
}

static int numbers_init(struct numbers *numbers, const struct choice *choice)
{
	*numbers = (struct numbers){ 0 };
	if (choice->devices)
		numbers->devices = integers_of(choice->devices, &numbers->device_count);
	if (choice->streams && !PyErr_Occurred())
		numbers->streams = integers_of(choice->streams, &numbers->stream_count);
	return PyErr_Occurred() ? -1 : 0;
}

static struct ts_state_options state_options(struct choice *choice, const struct numbers *numbers)
{
	struct ts_state_options options = { .size = sizeof(options),
					    .selection = &choice->selection,
					    .devices = numbers->devices,
					    .device_count = numbers->device_count,
					    .streams = numbers->streams,
					    .stream_count = numbers->stream_count,
					    .from = choice->selection.from,
					    .to = choice->selection.to,
					    .progress = report_progress,
					    .context = &choice->progress };

	choice->selection.from = choice->selection.to = NULL;
	return options;
}

static PyObject *span_object(const struct ts_state_span *span)
{
	return Py_BuildValue("NNNNLLzzNN", integer_of(span->trace), integer_of(span->rank),
			     integer_of(span->device), integer_of(span->stream),
			     (long long)span->start, (long long)span->duration,
			     ts_enum_name("execution_state", span->state), span->reason,
			     integer_of(span->correlation), text_of(span->name));
}

/* Appends rows until the end; holds the job's lock, which others wait for without the GIL. */
static PyObject *collect_states(struct ts_state_cursor *cursor)
{
	PyObject *list = PyList_New(0);
	struct ts_state_span span;

	for (unsigned int i = 1; list && ts_state_next(cursor, &span); i++) {
		PyObject *row = span_object(&span);

		if (!row || PyList_Append(list, row) ||
		    (i % SIGNALS_EVERY == 0 && PyErr_CheckSignals()))
			Py_CLEAR(list);
		Py_XDECREF(row);
	}
	return list;
}

/* states(lanes, steps=..., devices=..., start=...) -> rows */
PyObject *job_states(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	PyThreadState *without_gil;
	struct ts_state_cursor *cursor = NULL;
	struct trace_handle *handle = NULL;
	struct ts_state_options options;
	struct numbers numbers = { 0 };
	PyObject *list = NULL;
	struct choice choice;
	struct ts_error err;
	int lanes, locked, failed;

	if (!PyArg_ParseTuple(arguments, "p", &lanes) || choice_init(&choice, keywords))
		return NULL;
	if (!numbers_init(&numbers, &choice))
		handle = trace_handle_of(self);
	if (handle) {
		options = state_options(&choice, &numbers);
		without_gil = PyEval_SaveThread();
		locked = !trace_handles_lock(handle, NULL, &err);
		failed = !locked ||
			 ts_state_open(&cursor, handle->job,
				       lanes ? TS_STATE_LANES : TS_STATE_COMMANDS, &options, &err);
		PyEval_RestoreThread(without_gil);
		if (failed)
			raise_error(&err);
		else if (!PyErr_Occurred())
			list = collect_states(cursor);
		ts_state_close(cursor);
		if (locked)
			trace_handles_unlock(handle, NULL);
	}
	numbers_release(&numbers);
	trace_handle_drop(handle);
	choice_release(&choice);
	return list;
}

static PyObject *table_name(int64_t table)
{
	const struct ts_table_info *info = table < 0 ? NULL : ts_table_info((uint32_t)table);

	return text_of(info ? info->name : NULL);
}

static PyObject *dependency_object(const struct ts_dependency *row)
{
	const struct ts_dependency_point *from = &row->from, *to = &row->to;

	return Py_BuildValue("sNNNNsNLNNNsNLL", row->kind, PyBool_FromLong(row->is_inferred),
			     integer_of(from->trace), table_name(from->table),
			     integer_of(from->row), from->is_end ? "end" : "start",
			     text_of(from->name), (long long)from->time, integer_of(to->trace),
			     table_name(to->table), integer_of(to->row),
			     to->is_end ? "end" : "start", text_of(to->name), (long long)to->time,
			     (long long)((uint64_t)to->time - (uint64_t)from->time));
}

static PyObject *collect_dependencies(struct ts_dependency_cursor *cursor)
{
	PyObject *list = PyList_New(0);
	struct ts_dependency row;

	for (unsigned int i = 1; list && ts_dependency_next(cursor, &row); i++) {
		PyObject *item = dependency_object(&row);

		if (!item || PyList_Append(list, item) ||
		    (i % SIGNALS_EVERY == 0 && PyErr_CheckSignals()))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

PyObject *job_dependencies(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	PyThreadState *without_gil;
	const struct numbers numbers = { 0 };
	struct ts_dependency_cursor *cursor = NULL;
	struct ts_state_options options;
	struct trace_handle *handle;
	PyObject *list = NULL;
	struct choice choice;
	struct ts_error err;
	int locked, failed;

	if (!PyArg_ParseTuple(arguments, "") || choice_init(&choice, keywords))
		return NULL;
	handle = trace_handle_of(self);
	if (handle) {
		options = state_options(&choice, &numbers);
		without_gil = PyEval_SaveThread();
		locked = !trace_handles_lock(handle, NULL, &err);
		failed = !locked || ts_dependency_open(&cursor, handle->job, &options, &err);
		PyEval_RestoreThread(without_gil);
		if (failed)
			raise_error(&err);
		else if (!PyErr_Occurred())
			list = collect_dependencies(cursor);
		ts_dependency_close(cursor);
		if (locked)
			trace_handles_unlock(handle, NULL);
	}
	trace_handle_drop(handle);
	choice_release(&choice);
	return list;
}

/* ---- exports ---- */

struct exporting {
	struct progress progress; /* first: the context of its function, too */
	PyObject *left_out;
};

static void take_left_out(void *context, const char *table, uint64_t rows, const char *reason)
{
	struct exporting *exporting = context;
	PyGILState_STATE state = PyGILState_Ensure();
	PyObject *item = Py_BuildValue("sKs", table, (unsigned long long)rows, reason);

	if (!item || PyList_Append(exporting->left_out, item))
		PyErr_Clear();
	Py_XDECREF(item);
	PyGILState_Release(state);
}

/* export(fd, format, table=None, start=0, end=0, limit=0, flags=0, progress=None, trace=0) */
PyObject *job_export(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	PyThreadState *without_gil;
	static const char *const names[] = { "fd",    "format", "table",    "start", "end",
					     "limit", "flags",  "progress", "trace", NULL };
	struct exporting exporting = { .left_out = NULL };
	struct ts_export_options options = { .size = sizeof(options),
					     .progress = report_progress,
					     .context = &exporting,
					     .left_out = take_left_out };
	const struct ts_exporter *exporter;
	struct trace_handle *handle;
	PyObject *progress = Py_None;
	const char *format;
	long long start = 0, end = 0;
	unsigned long long limit = 0, trace = 0;
	struct ts_error err;
	int fd, failed;

	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "is|zLLKIOK",
					 (char **)(uintptr_t)names, &fd, &format, &options.table,
					 &start, &end, &limit, &options.flags, &progress, &trace))
		return NULL;
	exporter = ts_exporter_find(format);
	if (!exporter) {
		ts_error_set(&err, TS_ENOTFOUND, "unknown format '%s'", format);
		return raise_error(&err);
	}
	handle = trace_handle_of(self);
	if (!handle)
		return NULL;
	if (trace >= handle->count) {
		trace_handle_drop(handle);
		PyErr_SetString(PyExc_IndexError, "no such trace");
		return NULL;
	}
	options.from = start;
	options.to = end;
	options.limit = limit;
	exporting.progress.callable = progress == Py_None ? NULL : progress;
	exporting.left_out = PyList_New(0);
	if (!exporting.left_out) {
		trace_handle_drop(handle);
		return NULL;
	}
	without_gil = PyEval_SaveThread();
	failed = trace_handles_lock(handle, NULL, &err);
	if (!failed) {
		failed = exporter->run(handle->readers[trace], fd, &options, &err);
		trace_handles_unlock(handle, NULL);
	}
	PyEval_RestoreThread(without_gil);
	trace_handle_drop(handle);
	if (failed || PyErr_Occurred()) {
		Py_XDECREF(exporting.left_out);
		return raise_error(&err);
	}
	return exporting.left_out;
}

/* [(name, doc, (ending, ending), takes_table, takes_range, takes_limit)] */
PyObject *list_exporters(PyObject *self, PyObject *arguments)
{
	PyObject *list = PyList_New(0);
	size_t count;
	const struct ts_exporter *exporters = ts_exporter_list(&count);

	(void)self;
	(void)arguments;
	for (size_t i = 0; list && i < count; i++) {
		const struct ts_exporter *exporter = &exporters[i];
		PyObject *item =
			Py_BuildValue("ss(zz)NNN", exporter->name, exporter->doc,
				      exporter->endings[0], exporter->endings[1],
				      PyBool_FromLong((exporter->takes & TS_EXPORT_TABLE) != 0),
				      PyBool_FromLong((exporter->takes & TS_EXPORT_RANGE) != 0),
				      PyBool_FromLong((exporter->takes & TS_EXPORT_LIMIT) != 0));

		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

/* ---- imports ---- */

static int import_into(const char *path, const char *output,
		       const struct ts_import_options *options, struct ts_import_result *result,
		       struct ts_error *err)
{
	struct ts_writer *writer;
	int failed = ts_writer_open(&writer, output, NULL, err);

	if (failed)
		return failed;
	failed = ts_import_file(writer, path, options, result, err);
	if (!failed)
		failed = ts_writer_finish(writer, err);
	ts_writer_close(writer);
	return failed;
}

/* import_file(path, output, format=None, progress=None) -> (events, format, note) */
PyObject *import_file(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	PyThreadState *without_gil;
	static const char *const names[] = { "path", "output", "format", "progress", NULL };
	struct ts_import_result result = { 0 };
	struct ts_import_options options = { .size = sizeof(options), .progress = report_progress };
	PyObject *path, *output, *progress_object = Py_None;
	struct progress progress = { 0 };
	const char *path_text, *output_text;
	struct texts texts;
	struct ts_error err;
	int failed = -1;

	(void)self;
	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "UU|zO", (char **)(uintptr_t)names,
					 &path, &output, &options.format, &progress_object) ||
	    texts_init(&texts))
		return NULL;
	progress.callable = progress_object == Py_None ? NULL : progress_object;
	options.context = &progress;
	path_text = texts_get(&texts, path, NULL);
	output_text = path_text ? texts_get(&texts, output, NULL) : NULL;
	if (output_text) {
		without_gil = PyEval_SaveThread();
		failed = import_into(path_text, output_text, &options, &result, &err);
		PyEval_RestoreThread(without_gil);
		if (failed)
			raise_error(&err);
	}
	texts_release(&texts);
	if (failed || PyErr_Occurred())
		return NULL;
	return Py_BuildValue("KsN", (unsigned long long)result.events, result.format,
			     text_of(result.note));
}
