/* SPDX-License-Identifier: Apache-2.0 */
/* tracesmith._read: the module, open traces, errors and callbacks; see _read.h. */
#include "_read.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tracesmith/arrow.h>

/* ---- processes ---- */

static _Atomic unsigned int generation;
static _Atomic int is_watching_forks;

static void count_child(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

unsigned int process_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

/* ---- errors ---- */

PyObject *raise_error(const struct ts_error *err)
{
	PyObject *errors, *message, *exception = NULL;

	if (PyErr_Occurred())
		return NULL;
	/* Names of files need not be UTF-8. */
	message = PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message),
				       "backslashreplace");
	errors = message ? PyImport_ImportModule("tracesmith.errors") : NULL;
	if (errors)
		exception = PyObject_CallMethod(errors, "make", "iO", err->code, message);
	Py_XDECREF(message);
	Py_XDECREF(errors);
	if (!exception)
		return NULL;
	PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
	Py_DECREF(exception);
	return NULL;
}

/* ---- progress ---- */

#define SIGNALS_EVERY_NS 50000000

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static PyObject *path_object(const char *path)
{
	if (!path)
		Py_RETURN_NONE;
	return PyUnicode_DecodeFSDefault(path);
}

static int call_back(struct progress *progress, const char *path, uint64_t done, uint64_t total)
{
	PyGILState_STATE state = PyGILState_Ensure();
	int stop = PyErr_Occurred() || PyErr_CheckSignals();

	if (!stop && progress->callable) {
		PyObject *result =
			PyObject_CallFunction(progress->callable, "NKK", path_object(path),
					      (unsigned long long)done, (unsigned long long)total);

		/* A true value stops. */
		stop = result ? PyObject_IsTrue(result) != 0 : 1;
		Py_XDECREF(result);
	}
	PyGILState_Release(state);
	return stop;
}

int report_progress_of(void *context, const char *path, uint64_t done, uint64_t total)
{
	struct progress *progress = context;
	int64_t now = now_ns();

	if (now - progress->last_ns < SIGNALS_EVERY_NS)
		return 0;
	progress->last_ns = now;
	return call_back(progress, path, done, total);
}

int report_progress(void *context, uint64_t done, uint64_t total)
{
	return report_progress_of(context, NULL, done, total);
}

/* ---- texts ---- */

int texts_init(struct texts *texts)
{
	texts->list = PyList_New(0);
	return texts->list ? 0 : -1;
}

void texts_release(struct texts *texts)
{
	Py_XDECREF(texts->list);
	texts->list = NULL;
}

const char *texts_get(struct texts *texts, PyObject *object, int *ret_none)
{
	PyObject *bytes;
	int result;

	if (ret_none) {
		*ret_none = object == Py_None;
		if (*ret_none)
			return "";
	}
	if (!PyUnicode_Check(object)) {
		PyErr_Format(PyExc_TypeError, "expected str, not %R", object);
		return NULL;
	}
	/* Names of files may have bytes that are not UTF-8. */
	bytes = PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape");
	if (!bytes)
		return NULL;
	result = PyList_Append(texts->list, bytes);
	Py_DECREF(bytes);
	if (!result && strlen(PyBytes_AsString(bytes)) != (size_t)PyBytes_Size(bytes)) {
		PyErr_Format(PyExc_ValueError, "%R contains a null character", object);
		result = -1;
	}
	return result ? NULL : PyBytes_AsString(bytes);
}

const char **texts_list(struct texts *texts, PyObject *sequence, size_t *ret_count)
{
	Py_ssize_t count = PySequence_Size(sequence);
	const char **list;

	if (count < 0)
		return NULL;
	list = calloc((size_t)count + 1, sizeof(*list));
	if (!list)
		return (const char **)PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *item = PySequence_GetItem(sequence, i);

		list[i] = item ? texts_get(texts, item, NULL) : NULL;
		Py_XDECREF(item);
		if (!list[i]) {
			free((void *)list);
			return NULL;
		}
	}
	*ret_count = (size_t)count;
	return list;
}

/* ---- handles ---- */

static struct trace_handle *new_handle(void)
{
	pthread_mutexattr_t attributes;
	struct trace_handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return NULL;
	atomic_init(&handle->references, 1);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&handle->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return handle;
}

static int lock_handle(struct trace_handle *handle, struct ts_error *err)
{
	unsigned int self = process_generation() + 1, holder = atomic_load(&handle->holder);

	if (holder && holder != self)
		return ts_error_set(err, TS_EBUSY,
				    "the parent process was using the trace when it forked: open "
				    "the trace again in this process");
	if (pthread_mutex_lock(&handle->lock))
		return ts_error_set(err, TS_EBUSY,
				    "the trace is in use by the call that reports progress");
	atomic_store(&handle->holder, self);
	return TS_OK;
}

static void unlock_handle(struct trace_handle *handle)
{
	atomic_store(&handle->holder, 0);
	pthread_mutex_unlock(&handle->lock);
}

int trace_handles_lock(struct trace_handle *a, struct trace_handle *b, struct ts_error *err)
{
	/* Always in the same order. */
	struct trace_handle *first = b && b < a ? b : a, *second = first == a ? b : a;
	int result = lock_handle(first, err);

	if (result || !second || second == first)
		return result;
	result = lock_handle(second, err);
	if (result)
		unlock_handle(first);
	return result;
}

void trace_handles_unlock(struct trace_handle *a, struct trace_handle *b)
{
	unlock_handle(a);
	if (b && b != a)
		unlock_handle(b);
}

void trace_handle_hold(struct trace_handle *handle)
{
	atomic_fetch_add_explicit(&handle->references, 1, memory_order_relaxed);
}

void trace_handle_drop(void *context)
{
	struct trace_handle *handle = context;

	if (!handle || atomic_fetch_sub_explicit(&handle->references, 1, memory_order_acq_rel) != 1)
		return;
	ts_job_close(handle->job);
	free((void *)handle->readers);
	pthread_mutex_destroy(&handle->lock);
	free(handle);
}

/* ---- Job ---- */

struct job {
	PyObject_HEAD struct trace_handle *handle;
};

/* Without the GIL, another thread may close the trace while its handle is taken. */
#ifdef Py_GIL_DISABLED
#define BEGIN_OBJECT(object) Py_BEGIN_CRITICAL_SECTION(object);
#define END_OBJECT() Py_END_CRITICAL_SECTION();
#else
#define BEGIN_OBJECT(object) {
#define END_OBJECT() }
#endif

struct trace_handle *trace_handle_of(PyObject *self)
{
	struct trace_handle *handle;

	BEGIN_OBJECT(self)
	handle = ((struct job *)self)->handle;
	if (handle)
		trace_handle_hold(handle);
	END_OBJECT()
	if (!handle)
		PyErr_SetString(PyExc_ValueError, "the trace is closed");
	return handle;
}

static void job_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	trace_handle_drop(((struct job *)self)->handle);
	release(self);
	Py_DECREF(type);
}

/* Streams that are not released keep the files open. */
static PyObject *job_close(PyObject *self, PyObject *arguments)
{
	PyThreadState *without_gil;
	struct trace_handle *handle;

	(void)arguments;
	BEGIN_OBJECT(self)
	handle = ((struct job *)self)->handle;
	((struct job *)self)->handle = NULL;
	END_OBJECT()
	without_gil = PyEval_SaveThread();
	trace_handle_drop(handle);
	PyEval_RestoreThread(without_gil);
	Py_RETURN_NONE;
}

static PyObject *job_count(PyObject *self, PyObject *arguments)
{
	struct trace_handle *handle = trace_handle_of(self);
	PyObject *count;

	(void)arguments;
	if (!handle)
		return NULL;
	count = PyLong_FromSize_t(handle->count);
	trace_handle_drop(handle);
	return count;
}

static PyObject *time_object(int64_t time)
{
	if (time == TS_ABSENT)
		Py_RETURN_NONE;
	return PyLong_FromLongLong(time);
}

/* Start and end of all rows: chunks know their bounds. */
static void find_bounds(const struct trace_handle *handle, int64_t *ret_start, int64_t *ret_end)
{
	*ret_start = *ret_end = TS_ABSENT;
	for (size_t i = 0; i < handle->count; i++)
		for (size_t k = 0; k < ts_reader_chunk_count(handle->readers[i]); k++) {
			const struct ts_chunk *chunk = ts_reader_chunk(handle->readers[i], k);
			int64_t end = chunk->max_end;

			if (chunk->min_start == TS_ABSENT || !chunk->rows)
				continue;
			/* Something that has no end. */
			if (end == INT64_MAX)
				end = chunk->max_start;
			if (*ret_start == TS_ABSENT || chunk->min_start < *ret_start)
				*ret_start = chunk->min_start;
			if (*ret_end == TS_ABSENT || end > *ret_end)
				*ret_end = end;
		}
}

static PyObject *job_bounds(PyObject *self, PyObject *arguments)
{
	struct trace_handle *handle = trace_handle_of(self);
	int64_t start, end;

	(void)arguments;
	if (!handle)
		return NULL;
	find_bounds(handle, &start, &end);
	trace_handle_drop(handle);
	return Py_BuildValue("NN", time_object(start), time_object(end));
}

/* ---- opening ---- */

/* What the callbacks of an open need; they run in the calling thread, without the GIL. */
struct opening {
	struct progress progress; /* first: the context of its function, too */
	PyObject *warnings;
	char note[TS_ERROR_MESSAGE_BYTES];
};

static void take_warning(void *context, const char *text)
{
	struct opening *opening = context;
	PyGILState_STATE state = PyGILState_Ensure();
	PyObject *object = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");

	if (!object || PyList_Append(opening->warnings, object))
		PyErr_Clear();
	Py_XDECREF(object);
	PyGILState_Release(state);
}

static void take_note(void *context, const char *text)
{
	struct opening *opening = context;

	snprintf(opening->note, sizeof(opening->note), "%s", text);
}

static int add_operands(struct ts_job *job, const char *const *paths, const long *pids,
			size_t count, const struct ts_open_options *options, struct ts_error *err)
{
	int result = 0;

	for (size_t i = 0; !result && i < count; i++) {
		struct ts_reader *reader;

		if (!paths[i]) {
			result = ts_job_add_pid(job, (pid_t)pids[i], options, err);
			continue;
		}
		result = ts_open(&reader, paths[i], options, err);
		if (!result)
			result = ts_job_add(job, reader, err);
	}
	return result;
}

/* Files together, so that the same one twice is refused; with processes, one after the other. */
static int open_operands(struct trace_handle *handle, const char *const *paths, const long *pids,
			 size_t count, const struct ts_open_options *options, struct ts_error *err)
{
	size_t files = 0;
	int result;

	for (size_t i = 0; i < count; i++)
		files += paths[i] != NULL;
	if (files == count)
		return ts_job_open(&handle->job, paths, count, options, err);
	result = ts_job_open(&handle->job, NULL, 0, options, err);
	return result ? result : add_operands(handle->job, paths, pids, count, options, err);
}

static int list_readers(struct trace_handle *handle)
{
	handle->count = ts_job_count(handle->job);
	handle->readers = calloc(handle->count + 1, sizeof(*handle->readers));
	if (!handle->readers)
		return -1;
	for (size_t i = 0; i < handle->count; i++)
		handle->readers[i] = ts_job_reader(handle->job, i);
	return 0;
}

/* 0 with an exception: the library would take another one for it. */
static long pid_of(PyObject *object)
{
	int overflow;
	long pid = PyLong_AsLongAndOverflow(object, &overflow);
	struct ts_error err;

	if (!overflow && pid > 0 && pid <= INT32_MAX)
		return pid;
	ts_error_set(&err, TS_EINVAL, "a process id must be between 1 and %d", INT32_MAX);
	raise_error(&err);
	return 0;
}

/* Paths, or process ids. */
static int take_operands(PyObject *operands, struct texts *texts, const char ***ret_paths,
			 long **ret_pids, size_t *ret_count)
{
	Py_ssize_t count = PySequence_Size(operands);
	const char **paths;
	long *pids;

	if (count < 0)
		return -1;
	*ret_paths = paths = calloc((size_t)count + 1, sizeof(*paths));
	*ret_pids = pids = calloc((size_t)count + 1, sizeof(*pids));
	*ret_count = (size_t)count;
	if (!paths || !pids) {
		PyErr_NoMemory();
		return -1;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *item = PySequence_GetItem(operands, i);

		if (item && PyLong_Check(item))
			pids[i] = pid_of(item);
		else if (item)
			paths[i] = texts_get(texts, item, NULL);
		Py_XDECREF(item);
		if (PyErr_Occurred())
			return -1;
	}
	return 0;
}

static int open_all(struct trace_handle *handle, PyObject *operands, struct opening *opening)
{
	PyThreadState *without_gil;
	const struct ts_open_options options = { .size = sizeof(options),
						 .warning = take_warning,
						 .note = take_note,
						 .progress = report_progress_of,
						 .context = opening };
	const char **paths = NULL;
	struct texts texts = { 0 };
	struct ts_error err = { 0 };
	long *pids = NULL;
	size_t count = 0;
	int result = texts_init(&texts);

	if (!result)
		result = take_operands(operands, &texts, &paths, &pids, &count);
	if (!result) {
		without_gil = PyEval_SaveThread();
		result = open_operands(handle, paths, pids, count, &options, &err);
		PyEval_RestoreThread(without_gil);
		if (result && opening->note[0])
			ts_error_set(&err, err.code, "%s; %s", err.message, opening->note);
		if (result)
			raise_error(&err);
	}
	if (!result && list_readers(handle)) {
		PyErr_NoMemory();
		result = -1;
	}
	free((void *)paths);
	free(pids);
	texts_release(&texts);
	return result || PyErr_Occurred() ? -1 : 0;
}

static PyObject *job_type(PyObject *module)
{
	return PyObject_GetAttrString(module, "Job");
}

/* open(operands, progress) -> (Job, warnings) */
static PyObject *open_job(PyObject *module, PyObject *arguments)
{
	struct opening opening = { .note = "" };
	PyObject *operands, *progress, *type = job_type(module), *self = NULL;
	struct trace_handle *handle;

	if (!type || !PyArg_ParseTuple(arguments, "OO", &operands, &progress)) {
		Py_XDECREF(type);
		return NULL;
	}
	opening.progress.callable = progress == Py_None ? NULL : progress;
	opening.warnings = PyList_New(0);
	handle = new_handle();
	if (opening.warnings && handle && !open_all(handle, operands, &opening)) {
		allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);

		self = allocate((PyTypeObject *)type, 0);
	} else if (!handle) {
		PyErr_NoMemory();
	}
	Py_DECREF(type);
	if (!self) {
		trace_handle_drop(handle);
		Py_XDECREF(opening.warnings);
		return NULL;
	}
	((struct job *)self)->handle = handle;
	return Py_BuildValue("NN", self, opening.warnings);
}

/* ---- facts ---- */

static PyObject *hexadecimal(const uint8_t id[16])
{
	char text[33];

	for (int i = 0; i < 16; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", id[i]);
	return PyUnicode_FromString(text);
}

/* One dict for each trace. */
static PyObject *job_files(PyObject *self, PyObject *arguments)
{
	struct trace_handle *handle = trace_handle_of(self);
	PyObject *list;

	(void)arguments;
	if (!handle)
		return NULL;
	list = PyList_New(0);
	for (size_t i = 0; list && i < handle->count; i++) {
		const struct ts_reader_state *state = ts_reader_state(handle->readers[i]);
		PyObject *file = Py_BuildValue(
			"{s:K,s:N,s:s,s:L,s:N,s:K,s:K}", "bytes",
			(unsigned long long)state->file_bytes, "finished",
			PyBool_FromLong(state->finished), "format", "SBT", "created_ns",
			(long long)state->created_ns, "trace_id", hexadecimal(state->trace_id),
			"chunks", (unsigned long long)ts_reader_chunk_count(handle->readers[i]),
			"damaged_bytes", (unsigned long long)state->damaged_bytes);

		if (!file || PyList_Append(list, file))
			Py_CLEAR(list);
		Py_XDECREF(file);
	}
	trace_handle_drop(handle);
	return list;
}

/* Names of the tables that users see, with their kinds and docs. */
static PyObject *list_tables(PyObject *self, PyObject *arguments)
{
	static const char *const kinds[] = { "event",  "entity",   "dictionary",
					     "record", "internal", "derived" };
	PyObject *list = PyList_New(0);

	(void)self;
	(void)arguments;
	for (uint32_t i = 0; list && i < TS_TABLE_COUNT; i++) {
		const struct ts_table_info *info = ts_table_info(i);
		PyObject *item;

		if (!info || info->kind == TS_KIND_INTERNAL)
			continue;
		item = Py_BuildValue("sss", info->name, kinds[info->kind], info->doc);
		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

/* ---- the module ---- */

#define KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef job_methods[] = {
	{ "close", job_close, METH_NOARGS, NULL },
	{ "count", job_count, METH_NOARGS, NULL },
	{ "bounds", job_bounds, METH_NOARGS, NULL },
	{ "files", job_files, METH_NOARGS, NULL },
	{ "row_count", job_row_count, METH_VARARGS, NULL },
	{ "stream", KEYWORDS(job_stream), METH_VARARGS | METH_KEYWORDS, NULL },
	{ "schema", KEYWORDS(job_schema), METH_VARARGS | METH_KEYWORDS, NULL },
	{ "rows", KEYWORDS(job_rows), METH_VARARGS | METH_KEYWORDS, NULL },
	{ "overview", job_overview, METH_VARARGS, NULL },
	{ "analyze", KEYWORDS(job_analyze), METH_VARARGS | METH_KEYWORDS, NULL },
	{ "diff", KEYWORDS(job_diff), METH_VARARGS | METH_KEYWORDS, NULL },
	{ "states", KEYWORDS(job_states), METH_VARARGS | METH_KEYWORDS, NULL },
	{ "dependencies", KEYWORDS(job_dependencies), METH_VARARGS | METH_KEYWORDS, NULL },
	{ "export", KEYWORDS(job_export), METH_VARARGS | METH_KEYWORDS, NULL },
	{ NULL, NULL, 0, NULL },
};

PyObject *refuse_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
	(void)arguments;
	(void)keywords;
	PyErr_Format(PyExc_TypeError, "%R objects cannot be created directly", type);
	return NULL;
}

static PyType_Slot job_slots[] = {
	{ Py_tp_new, refuse_new },
	{ Py_tp_dealloc, job_dealloc },
	{ Py_tp_methods, job_methods },
	{ Py_tp_doc, (void *)(uintptr_t) "Traces that are open; made by open()." },
	{ 0, NULL },
};

static PyType_Spec job_spec = {
	.name = "tracesmith._read.Job",
	.basicsize = sizeof(struct job),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = job_slots,
};

static PyMethodDef functions[] = {
	{ "open", open_job, METH_VARARGS, NULL },
	{ "columns", job_columns, METH_VARARGS, NULL },
	{ "tables", list_tables, METH_NOARGS, NULL },
	{ "analyses", list_analyses, METH_NOARGS, NULL },
	{ "exporters", list_exporters, METH_NOARGS, NULL },
	{ "import_file", KEYWORDS(import_file), METH_VARARGS | METH_KEYWORDS, NULL },
	{ NULL, NULL, 0, NULL },
};

static int add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
	PyObject *type = PyType_FromSpec(spec);

	if (type && !PyModule_AddObject(module, name, type))
		return 0;
	Py_XDECREF(type);
	return -1;
}

static int fill_module(PyObject *module)
{
	if (add_type(module, "Job", &job_spec) || add_type(module, "Rows", &rows_spec) ||
	    add_type(module, "Writer", &writer_spec))
		return -1;
	if (!atomic_exchange(&is_watching_forks, 1))
		pthread_atfork(NULL, NULL, count_child);
	return 0;
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, fill_module },
#ifdef Py_GIL_DISABLED
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
	{ 0, NULL },
};

static struct PyModuleDef definition = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "tracesmith._read",
	.m_doc = "Binds libtracesmith: traces are opened, read, analyzed and written.",
	.m_methods = functions,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit__read(void);

PyMODINIT_FUNC PyInit__read(void)
{
	return PyModuleDef_Init(&definition);
}
