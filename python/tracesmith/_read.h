/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of tracesmith._read, which binds libtracesmith for reading and writing traces
 * (trace.py and writer.py are its users): _read.c the module and open traces, _read_tables.c
 * tables, _read_results.c analyses, _read_writer.c traces that are written.
 *
 * Long calls run without the GIL. A trace that is open is counted: Arrow streams keep it open, and
 * are released in any thread, with or without the GIL.
 */
#ifndef TRACESMITH_PYTHON_READ_H
#define TRACESMITH_PYTHON_READ_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <tracesmith/open.h>

/* ---- open traces ---- */

struct trace_handle {
	_Atomic size_t references;
	pthread_mutex_t lock; /* a job is used by one thread at a time; taken without the GIL */
	_Atomic unsigned int holder; /* of the lock: process_generation() + 1, or 0 */
	struct ts_job *job;
	struct ts_reader **readers;
	size_t count;
};

void trace_handle_hold(struct trace_handle *handle);
void trace_handle_drop(void *context); /* any thread, with or without the GIL */

/*
 * Without the GIL. TS_EBUSY in a progress function of a call that uses the same traces, and in a
 * child that was forked during such a call: waiting for that call would never end. `b` may be NULL,
 * or the same.
 */
int trace_handles_lock(struct trace_handle *a, struct trace_handle *b, struct ts_error *err);
void trace_handles_unlock(struct trace_handle *a, struct trace_handle *b);

/* A reference to what an object of type Job has open; NULL with an exception: it was closed. */
struct trace_handle *trace_handle_of(PyObject *self);

/* ---- processes ---- */

/* A number that each fork() changes in the child, which has none of the library's threads. */
unsigned int process_generation(void);

/* ---- errors ---- */

/* Raises the exception of an error, unless one was raised in a callback; returns NULL. */
PyObject *raise_error(const struct ts_error *err);

/* ---- progress ---- */

/*
 * Context of progress callbacks, which run without the GIL: from time to time they let Python
 * handle signals, so that Ctrl-C works, and call `callable`, which may be NULL.
 */
struct progress {
	PyObject *callable;
	int64_t last_ns;
};

int report_progress(void *context, uint64_t done, uint64_t total);
int report_progress_of(void *context, const char *path, uint64_t done, uint64_t total);

/* ---- texts ---- */

/* Texts of Python objects as C strings, as long as the list lives. */
struct texts {
	PyObject *list;
};

int texts_init(struct texts *texts);
void texts_release(struct texts *texts);

/*
 * The UTF-8 of a str without NUL; NULL with an exception. None is "" with *ret_none set, if that is
 * given.
 */
const char *texts_get(struct texts *texts, PyObject *object, int *ret_none);

/* The strings of a sequence; the caller frees. NULL with an exception. */
const char **texts_list(struct texts *texts, PyObject *sequence, size_t *ret_count);

/* ---- methods of Job in other files ---- */

PyObject *job_columns(PyObject *self, PyObject *arguments);
PyObject *job_row_count(PyObject *self, PyObject *arguments);
PyObject *job_stream(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *job_schema(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *job_rows(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *job_overview(PyObject *self, PyObject *arguments);
PyObject *job_analyze(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *job_diff(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *job_states(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *job_dependencies(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *job_export(PyObject *self, PyObject *arguments, PyObject *keywords);

/* Functions of the module in other files. */
PyObject *list_analyses(PyObject *self, PyObject *arguments);
PyObject *list_exporters(PyObject *self, PyObject *arguments);
PyObject *import_file(PyObject *self, PyObject *arguments, PyObject *keywords);

/* tp_new of types whose objects only functions of the module make. */
PyObject *refuse_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords);

/* Types of other files, to be added to the module. */
extern PyType_Spec rows_spec, writer_spec;

#endif
