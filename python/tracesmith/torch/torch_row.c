/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of torch_trace, and the memory figures in them. */
#include "torch_profile.h"

#include <math.h>

#define MEGABYTE 1e6

/* stats[group]["all"][which], of torch's nested dictionary; NaN if it is missing. */
static double figure(PyObject *stats, const char *group, const char *which)
{
	PyObject *of_group = PyDict_GetItemString(stats, group);
	PyObject *all = of_group && PyDict_Check(of_group) ? PyDict_GetItemString(of_group, "all")
							   : NULL;
	PyObject *value = all && PyDict_Check(all) ? PyDict_GetItemString(all, which) : NULL;
	double bytes = value ? PyLong_AsDouble(value) : -1;

	if (bytes < 0) {
		PyErr_Clear();
		return NAN;
	}
	return bytes / MEGABYTE;
}

static void read_memory(struct ts_torch_row *row, int32_t device)
{
	int64_t start_ns = ts_profile_now();
	PyObject *number = PyLong_FromLong(device);
	PyObject *stats = NULL;

	if (number)
		stats = ts_profile_quiet(
			PyObject_CallFunctionObjArgs(ts_profile.memory_stats, number, NULL));
	Py_XDECREF(number);
	if (stats && PyDict_Check(stats)) {
		row->allocated = figure(stats, "allocated_bytes", "current");
		row->max_allocated = figure(stats, "allocated_bytes", "peak");
		row->cached = figure(stats, "reserved_bytes", "current");
	}
	Py_XDECREF(stats);
	ts_budget_spent(&ts_profile.memory, ts_profile_now() - start_ns);
}

void ts_execution_store(const struct ts_execution *execution, struct ts_span *span)
{
	struct ts_torch_row row = {
		.size = sizeof(row),
		.start_ns = execution->start_ns,
		.duration_ns = execution->end_ns - execution->start_ns,
		.step = execution->step,
		.seq = execution->seq,
		.module = execution->path,
		.stage = execution->stage,
		.allocated = NAN,
		.max_allocated = NAN,
		.cached = NAN,
		.device = execution->device >= 0 ? execution->device : TS_TORCH_HOST,
		.rank = ts_profile.rank,
		.device_ns = TS_TORCH_ABSENT,
	};
	uint64_t serial;

	if (execution->device >= 0 && ts_profile.memory_stats && !execution->failed &&
	    ts_budget_allows(&ts_profile.memory, execution->end_ns))
		read_memory(&row, execution->device);
	serial = ts_torch_row(&row);
	ts_profile.rows += serial != 0;
	ts_span_finish(span, serial);
}
