/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracesmith._read: tables. As Arrow streams in capsules, for other packages; as tuples, for
 * programs that have none of these; and summed up, for a picture.
 */
#include "_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tracesmith/arrow.h>

#define STREAM_NAME "arrow_array_stream"
#define SCHEMA_NAME "arrow_schema"

/* columns(table) -> [(name, doc, is_default)] */
PyObject *job_columns(PyObject *self, PyObject *arguments)
{
	struct ts_arrow_column columns[128];
	const char *table;
	struct ts_error err;
	PyObject *list;
	size_t count;

	(void)self;
	if (!PyArg_ParseTuple(arguments, "s", &table))
		return NULL;
	if (ts_arrow_columns(table, columns, 128, &count, &err))
		return raise_error(&err);
	list = PyList_New(0);
	for (size_t i = 0; list && i < count && i < 128; i++) {
		PyObject *item = Py_BuildValue("ssN", columns[i].name, columns[i].doc,
					       PyBool_FromLong(columns[i].is_default));

		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

PyObject *job_row_count(PyObject *self, PyObject *arguments)
{
	PyThreadState *without_gil;
	struct trace_handle *handle;
	const char *table;
	struct ts_error err;
	uint64_t rows;
	int result;

	if (!PyArg_ParseTuple(arguments, "s", &table) || !(handle = trace_handle_of(self)))
		return NULL;
	without_gil = PyEval_SaveThread();
	result = ts_arrow_rows(handle->readers, handle->count, table, &rows, &err);
	PyEval_RestoreThread(without_gil);
	trace_handle_drop(handle);
	return result ? raise_error(&err) : PyLong_FromUnsignedLongLong(rows);
}

/* ---- requests ---- */

/* What a caller asks for of a table. */
struct request {
	const char *table;
	struct ts_arrow_options options;
	struct texts texts;
	const char **columns;
};

static void request_release(struct request *request)
{
	free((void *)request->columns);
	texts_release(&request->texts);
}

/* (table, columns=None, start=None, end=None, limit=0, plain=False, all=False, threads=0) */
static int request_init(struct request *request, PyObject *arguments, PyObject *keywords)
{
	static const char *const names[] = { "table", "columns", "start",   "end", "limit",
					     "plain", "all",     "threads", NULL };
	PyObject *columns = Py_None, *start = Py_None, *end = Py_None;
	unsigned long long limit = 0;
	int plain = 0, all = 0;

	*request = (struct request){ .options.size = sizeof(request->options) };
	if (!PyArg_ParseTupleAndKeywords(
		    arguments, keywords, "s|OOOKppi", (char **)(uintptr_t)names, &request->table,
		    &columns, &start, &end, &limit, &plain, &all, &request->options.threads) ||
	    texts_init(&request->texts))
		return -1;
	request->options.limit = limit;
	request->options.flags = (plain ? TS_ARROW_PLAIN_STRINGS : 0) |
				 (all ? TS_ARROW_ALL_COLUMNS : 0);
	if (start != Py_None || end != Py_None) {
		request->options.flags |= TS_ARROW_RANGE;
		request->options.from = start == Py_None ? INT64_MIN : PyLong_AsLongLong(start);
		request->options.to = end == Py_None ? INT64_MAX : PyLong_AsLongLong(end);
	}
	if (columns != Py_None) {
		request->columns =
			texts_list(&request->texts, columns, &request->options.column_count);
		request->options.columns = request->columns;
	}
	if (PyErr_Occurred()) {
		request_release(request);
		return -1;
	}
	return 0;
}

/* A stream that keeps the trace open. */
static int open_stream(PyObject *self, struct request *request, struct ArrowArrayStream *ret_stream)
{
	PyThreadState *without_gil;
	struct trace_handle *handle = trace_handle_of(self);
	struct ts_error err;
	int result;

	if (!handle)
		return -1;
	request->options.release_owner = trace_handle_drop;
	request->options.owner = handle;
	without_gil = PyEval_SaveThread();
	result = ts_arrow_stream(ret_stream, handle->readers, handle->count, request->table,
				 &request->options, &err);
	PyEval_RestoreThread(without_gil);
	if (!result)
		return 0;
	trace_handle_drop(handle);
	raise_error(&err);
	return -1;
}

/* ---- capsules ---- */

static void free_stream_capsule(PyObject *capsule)
{
	PyThreadState *without_gil;
	struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, STREAM_NAME);

	if (stream && stream->release) {
		without_gil = PyEval_SaveThread();
		stream->release(stream);
		PyEval_RestoreThread(without_gil);
	}
	free(stream);
}

PyObject *job_stream(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	struct ArrowArrayStream *stream;
	PyObject *capsule = NULL;
	struct request request;
	int result;

	if (request_init(&request, arguments, keywords))
		return NULL;
	stream = calloc(1, sizeof(*stream));
	if (!stream) {
		request_release(&request);
		return PyErr_NoMemory();
	}
	result = open_stream(self, &request, stream);
	request_release(&request);
	if (!result)
		capsule = PyCapsule_New(stream, STREAM_NAME, free_stream_capsule);
	if (!capsule) {
		if (stream->release)
			stream->release(stream);
		free(stream);
	}
	return capsule;
}

static void free_schema_capsule(PyObject *capsule)
{
	struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, SCHEMA_NAME);

	if (schema && schema->release)
		schema->release(schema);
	free(schema);
}

PyObject *job_schema(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	struct trace_handle *handle;
	struct ArrowSchema *schema;
	PyObject *capsule = NULL;
	struct request request;
	struct ts_error err;
	int result;

	if (request_init(&request, arguments, keywords))
		return NULL;
	handle = trace_handle_of(self);
	schema = handle ? calloc(1, sizeof(*schema)) : NULL;
	if (!schema) {
		trace_handle_drop(handle);
		request_release(&request);
		return PyErr_Occurred() ? NULL : PyErr_NoMemory();
	}
	result = ts_arrow_schema(schema, handle->count, request.table, &request.options, &err);
	trace_handle_drop(handle);
	request_release(&request);
	if (result)
		raise_error(&err);
	else
		capsule = PyCapsule_New(schema, SCHEMA_NAME, free_schema_capsule);
	if (!capsule) {
		if (schema->release)
			schema->release(schema);
		free(schema);
	}
	return capsule;
}

/* ---- rows as tuples ---- */

#define MOST_TEXTS 65536

struct rows {
	PyObject_HEAD struct ArrowArrayStream stream;
	struct ArrowSchema schema;
	struct ArrowArray batch; /* of `row` */
	int64_t row;
	/* Texts of dictionaries, by column: a dictionary only grows. */
	PyObject ***texts;
	int64_t *text_count;
	_Atomic int is_busy; /* one thread at a time */
	unsigned int generation;
};

static void rows_dealloc(PyObject *self)
{
	PyThreadState *without_gil;
	struct rows *rows = (struct rows *)self;
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	for (int64_t i = 0; rows->texts && i < rows->schema.n_children; i++) {
		for (int64_t k = 0; k < rows->text_count[i]; k++)
			Py_XDECREF(rows->texts[i][k]);
		free((void *)rows->texts[i]);
	}
	free((void *)rows->texts);
	free(rows->text_count);
	if (rows->batch.release)
		rows->batch.release(&rows->batch);
	if (rows->schema.release)
		rows->schema.release(&rows->schema);
	/* A forked child does not have the threads that it waits for. */
	if (rows->stream.release && rows->generation == process_generation()) {
		without_gil = PyEval_SaveThread();
		rows->stream.release(&rows->stream);
		PyEval_RestoreThread(without_gil);
	}
	release(self);
	Py_DECREF(type);
}

static PyObject *text_object(const struct ArrowArray *array, int64_t index, int is_wide)
{
	const char *text = array->buffers[2];
	int64_t from, to;

	if (is_wide) {
		from = ((const int64_t *)array->buffers[1])[index];
		to = ((const int64_t *)array->buffers[1])[index + 1];
	} else {
		from = ((const int32_t *)array->buffers[1])[index];
		to = ((const int32_t *)array->buffers[1])[index + 1];
	}
	return PyUnicode_DecodeUTF8(text + from, (Py_ssize_t)(to - from), "replace");
}

/* The text of a dictionary, made when it is first used. */
static PyObject *dictionary_object(struct rows *rows, int64_t column, int64_t index)
{
	const struct ArrowArray *dictionary = rows->batch.children[column]->dictionary;
	PyObject ***texts = &rows->texts[column];

	/* If nearly every row has a distinct string, keeping them would take too much memory. */
	if (index >= MOST_TEXTS)
		return text_object(dictionary, index, 0);
	if (index >= rows->text_count[column]) {
		int64_t count = dictionary->length < MOST_TEXTS ? dictionary->length : MOST_TEXTS;
		PyObject **grown = realloc((void *)*texts, (size_t)count * sizeof(*grown));

		if (!grown)
			return PyErr_NoMemory();
		memset((void *)(grown + rows->text_count[column]), 0,
		       (size_t)(count - rows->text_count[column]) * sizeof(*grown));
		*texts = grown;
		rows->text_count[column] = count;
	}
	if (!(*texts)[index])
		(*texts)[index] = text_object(dictionary, index, 0);
	Py_XINCREF((*texts)[index]);
	return (*texts)[index];
}

static int bit_of(const void *bits, int64_t row)
{
	return ((const uint8_t *)bits)[row / 8] >> (row % 8) & 1;
}

static PyObject *cell_object(struct rows *rows, int64_t column, int64_t row)
{
	const struct ArrowArray *array = rows->batch.children[column];
	const struct ArrowSchema *schema = rows->schema.children[column];
	const int64_t *words = array->buffers[1];

	if (array->buffers[0] && !bit_of(array->buffers[0], row))
		Py_RETURN_NONE;
	switch (schema->format[0]) {
	case 'c':
		return dictionary_object(rows, column, ((const int8_t *)array->buffers[1])[row]);
	case 'i':
		return dictionary_object(rows, column, ((const int32_t *)array->buffers[1])[row]);
	case 'b':
		return PyBool_FromLong(bit_of(array->buffers[1], row));
	case 'g':
		return PyFloat_FromDouble(((const double *)array->buffers[1])[row]);
	case 'U':
		return text_object(array, row, 1);
	case 'Z':
		return PyBytes_FromStringAndSize((const char *)array->buffers[2] + words[row],
						 (Py_ssize_t)(words[row + 1] - words[row]));
	default:
		return PyLong_FromLongLong(words[row]);
	}
}

static PyObject *row_object(struct rows *rows)
{
	PyObject *tuple = PyTuple_New((Py_ssize_t)rows->schema.n_children);

	for (int64_t i = 0; tuple && i < rows->schema.n_children; i++) {
		PyObject *cell = cell_object(rows, i, rows->row);

		if (cell)
			PyTuple_SetItem(tuple, (Py_ssize_t)i, cell);
		else
			Py_CLEAR(tuple);
	}
	rows->row++;
	return tuple;
}

static int next_batch(struct rows *rows)
{
	PyThreadState *without_gil;
	int result;

	if (rows->batch.release)
		rows->batch.release(&rows->batch);
	rows->row = 0;
	without_gil = PyEval_SaveThread();
	result = rows->stream.get_next(&rows->stream, &rows->batch);
	PyEval_RestoreThread(without_gil);
	if (result) {
		struct ts_error err = { .code = TS_EIO };

		rows->batch.release = NULL;
		snprintf(err.message, sizeof(err.message), "%s",
			 rows->stream.get_last_error(&rows->stream));
		err.code = result == ENOMEM ? TS_ENOMEM : TS_EFORMAT;
		raise_error(&err);
	}
	return result ? -1 : 0;
}

static PyObject *next_row(struct rows *rows)
{
	if (rows->generation != process_generation()) {
		PyErr_SetString(PyExc_ValueError,
				"these rows belong to the parent process: iterate "
				"over the table again in this process");
		return NULL;
	}
	while (!rows->batch.release || rows->row >= rows->batch.length) {
		if (PyErr_CheckSignals() || next_batch(rows))
			return NULL;
		if (!rows->batch.release)
			return NULL;
	}
	return row_object(rows);
}

static PyObject *rows_next(PyObject *self)
{
	struct rows *rows = (struct rows *)self;
	PyObject *row;

	if (atomic_exchange(&rows->is_busy, 1)) {
		PyErr_SetString(PyExc_ValueError, "another thread is reading these rows");
		return NULL;
	}
	row = next_row(rows);
	atomic_store(&rows->is_busy, 0);
	return row;
}

static PyObject *rows_iter(PyObject *self)
{
	Py_INCREF(self);
	return self;
}

static PyType_Slot rows_slots[] = {
	{ Py_tp_new, refuse_new },
	{ Py_tp_dealloc, rows_dealloc },
	{ Py_tp_iter, rows_iter },
	{ Py_tp_iternext, rows_next },
	{ Py_tp_doc, (void *)(uintptr_t) "Rows of a table, as tuples." },
	{ 0, NULL },
};

PyType_Spec rows_spec = {
	.name = "tracesmith._read.Rows",
	.basicsize = sizeof(struct rows),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = rows_slots,
};

static struct rows *new_rows(void)
{
	PyObject *module = PyImport_ImportModule("tracesmith._read");
	PyObject *type = module ? PyObject_GetAttrString(module, "Rows") : NULL;
	struct rows *rows = NULL;

	if (type) {
		allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);

		rows = (struct rows *)allocate((PyTypeObject *)type, 0);
		if (rows)
			rows->generation = process_generation();
	}
	Py_XDECREF(module);
	Py_XDECREF(type);
	return rows;
}

PyObject *job_rows(PyObject *self, PyObject *arguments, PyObject *keywords)
{
	struct request request;
	struct rows *rows;
	int result;

	if (request_init(&request, arguments, keywords))
		return NULL;
	/* Their texts are made once for each index. */
	request.options.flags |= TS_ARROW_SHARED_DICTIONARIES;
	rows = new_rows();
	result = rows ? open_stream(self, &request, &rows->stream) : -1;
	request_release(&request);
	if (!result && rows->stream.get_schema(&rows->stream, &rows->schema)) {
		rows->schema.release = NULL;
		PyErr_NoMemory();
		result = -1;
	}
	if (!result) {
		size_t columns = (size_t)rows->schema.n_children;

		rows->texts = calloc(columns + 1, sizeof(*rows->texts));
		rows->text_count = calloc(columns + 1, sizeof(*rows->text_count));
		if (!rows->texts || !rows->text_count) {
			PyErr_NoMemory();
			result = -1;
		}
	}
	if (result) {
		Py_XDECREF((PyObject *)rows);
		return NULL;
	}
	return (PyObject *)rows;
}

/* ---- overview ---- */

#define MOST_LANES 24
#define MOST_BINS 2000

/* Work of one stream or thread over time. */
struct lane {
	int64_t owner, number; /* device and stream, or process and thread */
	uint64_t *busy_ns;     /* by bin */
};

struct overview {
	int64_t start, end;
	uint64_t bin_ns;
	size_t bins;
	struct lane lanes[MOST_LANES];
	size_t lane_count;
	uint64_t left_out;  /* rows of other lanes */
	uint64_t *total_ns; /* by name; a file may say anything: they wrap */
	int64_t *count;
	int64_t names;
	struct ArrowArray last; /* has all names */
};

static struct lane *find_lane(struct overview *overview, int64_t owner, int64_t number)
{
	struct lane *lane;

	for (size_t i = 0; i < overview->lane_count; i++)
		if (overview->lanes[i].owner == owner && overview->lanes[i].number == number)
			return &overview->lanes[i];
	if (overview->lane_count == MOST_LANES)
		return NULL;
	lane = &overview->lanes[overview->lane_count];
	lane->busy_ns = calloc(overview->bins, sizeof(*lane->busy_ns));
	if (!lane->busy_ns)
		return NULL;
	lane->owner = owner;
	lane->number = number;
	overview->lane_count++;
	return lane;
}

/* Times after the start of the overview: their differences may take all 64 bits. */
static void add_span(const struct overview *overview, struct lane *lane, int64_t start, int64_t end)
{
	uint64_t at, until;

	start = start < overview->start ? overview->start : start;
	end = end > overview->end ? overview->end : end;
	if (start >= end)
		return;
	at = (uint64_t)start - (uint64_t)overview->start;
	until = (uint64_t)end - (uint64_t)overview->start;
	for (size_t bin = (size_t)(at / overview->bin_ns); at < until; bin++) {
		uint64_t left = overview->bin_ns - at % overview->bin_ns;
		uint64_t part = left < until - at ? left : until - at;

		lane->busy_ns[bin] += part;
		at += part;
	}
}

static int64_t word_of(const struct ArrowArray *array, int64_t row, int64_t none)
{
	return array->buffers[0] && !bit_of(array->buffers[0], row)
		       ? none
		       : ((const int64_t *)array->buffers[1])[row];
}

static int add_names(struct overview *overview, const struct ArrowArray *names)
{
	int64_t count = names->dictionary->length;

	if (count > overview->names) {
		uint64_t *total = realloc(overview->total_ns, (size_t)count * sizeof(*total));
		int64_t *counts;

		if (!total)
			return -1;
		overview->total_ns = total;
		counts = realloc(overview->count, (size_t)count * sizeof(*counts));
		if (!counts)
			return -1;
		overview->count = counts;
		for (int64_t i = overview->names; i < count; i++) {
			total[i] = 0;
			counts[i] = 0;
		}
		overview->names = count;
	}
	return 0;
}

/* Columns: start, duration, two that name the lane, name. */
static int add_batch(struct overview *overview, const struct ArrowArray *batch)
{
	const struct ArrowArray *start = batch->children[0], *duration = batch->children[1];
	const struct ArrowArray *owner = batch->children[2], *number = batch->children[3];
	const struct ArrowArray *name = batch->children[4];
	struct lane *lane = NULL;

	if (add_names(overview, name))
		return -1;
	for (int64_t row = 0; row < batch->length; row++) {
		int64_t at = word_of(start, row, 0), length = word_of(duration, row, 0), end;
		int64_t of = word_of(owner, row, TS_ABSENT), in = word_of(number, row, TS_ABSENT);

		if (__builtin_add_overflow(at, length, &end))
			continue;
		if (!lane || lane->owner != of || lane->number != in)
			lane = find_lane(overview, of, in);
		if (lane)
			add_span(overview, lane, at, end);
		else
			overview->left_out++;
		if (!name->buffers[0] || bit_of(name->buffers[0], row)) {
			int32_t index = ((const int32_t *)name->buffers[1])[row];

			overview->total_ns[index] += (uint64_t)length;
			overview->count[index]++;
		}
	}
	return 0;
}

static int read_overview(struct overview *overview, struct ArrowArrayStream *stream,
			 struct ts_error *err)
{
	for (;;) {
		struct ArrowArray batch;

		if (stream->get_next(stream, &batch))
			return ts_error_set(err, TS_EFORMAT, "%s", stream->get_last_error(stream));
		if (!batch.release)
			return 0;
		if (overview->last.release)
			overview->last.release(&overview->last);
		overview->last = batch;
		if (add_batch(overview, &batch))
			return ts_error_set(err, TS_ENOMEM, "no memory");
	}
}

static PyObject *lane_object(const struct overview *overview, const struct lane *lane)
{
	PyObject *bins = PyList_New((Py_ssize_t)overview->bins);

	for (size_t i = 0; bins && i < overview->bins; i++) {
		double share = (double)lane->busy_ns[i] / (double)overview->bin_ns;

		PyList_SetItem(bins, (Py_ssize_t)i, PyFloat_FromDouble(share > 1 ? 1 : share));
	}
	if (!bins)
		return NULL;
	return Py_BuildValue("LLN", (long long)lane->owner, (long long)lane->number, bins);
}

static PyObject *lanes_object(const struct overview *overview)
{
	PyObject *lanes = PyList_New(0);

	for (size_t i = 0; lanes && i < overview->lane_count; i++) {
		PyObject *lane = lane_object(overview, &overview->lanes[i]);

		if (!lane || PyList_Append(lanes, lane))
			Py_CLEAR(lanes);
		Py_XDECREF(lane);
	}
	return lanes;
}

static PyObject *names_object(const struct overview *overview)
{
	PyObject *names = PyList_New(0);
	const struct ArrowArray *dictionary =
		overview->last.release ? overview->last.children[4]->dictionary : NULL;

	for (int64_t i = 0; names && dictionary && i < dictionary->length; i++) {
		PyObject *item;

		if (!overview->count[i])
			continue;
		item = Py_BuildValue("NLL", text_object(dictionary, i, 0),
				     (long long)overview->total_ns[i],
				     (long long)overview->count[i]);
		if (!item || PyList_Append(names, item))
			Py_CLEAR(names);
		Py_XDECREF(item);
	}
	return names;
}

/*
 * overview(table, owner, number, start, end, bins) -> (lanes, names, rows of other lanes): the
 * share of time in which each lane works, and total duration and count of each name.
 */
PyObject *job_overview(PyObject *self, PyObject *arguments)
{
	PyThreadState *without_gil;
	static const char *const no_name = "name";
	const char *columns[5] = { "start", "duration", NULL, NULL, no_name };
	struct request request = { .options.size = sizeof(request.options),
				   .options.columns = columns,
				   .options.column_count = 5,
				   .options.flags = TS_ARROW_SHARED_DICTIONARIES };
	struct overview overview = { .names = 0 };
	struct ArrowArrayStream stream;
	long long start, end;
	unsigned int bins;
	struct ts_error err;
	PyObject *answer = NULL;
	int result;

	if (!PyArg_ParseTuple(arguments, "sssLLI", &request.table, &columns[2], &columns[3], &start,
			      &end, &bins) ||
	    open_stream(self, &request, &stream))
		return NULL;
	overview.start = start;
	overview.end = end > start ? end : start;
	overview.bins = bins < 1 ? 1 : bins > MOST_BINS ? MOST_BINS : bins;
	overview.bin_ns = ((uint64_t)overview.end - (uint64_t)overview.start) / overview.bins + 1;
	without_gil = PyEval_SaveThread();
	result = read_overview(&overview, &stream, &err);
	PyEval_RestoreThread(without_gil);
	if (result)
		raise_error(&err);
	else
		answer = Py_BuildValue("NNK", lanes_object(&overview), names_object(&overview),
				       (unsigned long long)overview.left_out);
	for (size_t i = 0; i < overview.lane_count; i++)
		free(overview.lanes[i].busy_ns);
	free(overview.total_ns);
	free(overview.count);
	if (overview.last.release)
		overview.last.release(&overview.last);
	without_gil = PyEval_SaveThread();
	stream.release(&stream);
	PyEval_RestoreThread(without_gil);
	return answer;
}
