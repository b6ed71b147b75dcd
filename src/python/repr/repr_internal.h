/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by repr.c, repr_arrays.c and python_locals.c: the text being built, and the classes seen.
 */
#ifndef TS_PYTHON_REPR_REPR_INTERNAL_H
#define TS_PYTHON_REPR_REPR_INTERNAL_H

#include "base/text.h"
#include "python/local/python_objects_internal.h"

struct ts_python_class {
	uint64_t address, flags; /* tp_flags */
	char name[96];           /* tp_name */
	char root[48]; /* of the nearest static base type: "list", "torch._C.TensorBase" */
};

/* For the values of one frame, which share classes. Zero at first. */
struct ts_python_classes {
	struct ts_python_class list[16];
	unsigned int next; /* the next one to replace */
};

struct ts_python_repr {
	struct ts_python_process_view *view;
	struct ts_python_classes *classes;
	struct ts_text *out;
	size_t end;         /* limit of `out` */
	unsigned int depth; /* enclosing containers */
	bool is_full;
};

/* ---- repr.c ---- */

/* NULL: not an object. Valid until the next call but 15. */
const struct ts_python_class *ts_python_class_of(struct ts_python_process_view *view,
						 struct ts_python_classes *classes,
						 uint64_t object);
void ts_python_repr_put(struct ts_python_repr *repr, const char *text, size_t bytes);
void ts_python_repr_string(struct ts_python_repr *repr, const char *text);
void ts_python_repr_value(struct ts_python_repr *repr, uint64_t object);

/* ---- repr_arrays.c ---- */

/* Shape and type of a torch.Tensor or numpy.ndarray; false: neither, or implausible. */
bool ts_python_repr_array(struct ts_python_repr *repr, const struct ts_python_class *class,
			  uint64_t object);

#endif
