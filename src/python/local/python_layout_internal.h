/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to python_layout.c and python_layout_tables.c. */
#ifndef TS_PYTHON_LOCAL_PYTHON_LAYOUT_INTERNAL_H
#define TS_PYTHON_LOCAL_PYTHON_LAYOUT_INTERNAL_H

#include "python/local/python_layout.h"

/*
 * By minor version, oldest first; without what python_layout.c computes: sizes, and what all
 * versions share.
 */
extern const struct ts_python_layout
	ts_python_layouts[TS_PYTHON_NEWEST_MINOR - TS_PYTHON_OLDEST_MINOR + 1];

#endif
