/* SPDX-License-Identifier: Apache-2.0 */
/* What layout.c and layout_tables.c share, and nobody else needs. */
#ifndef TS_CAPTURE_PYTHON_LAYOUT_PARTS_H
#define TS_CAPTURE_PYTHON_LAYOUT_PARTS_H

#include "capture/python/layout.h"

/* By minor version, from the oldest on; without what layout.c works out: sizes, and what all versions share. */
extern const struct ts_python_layout
	ts_python_layouts[TS_PYTHON_NEWEST_MINOR - TS_PYTHON_OLDEST_MINOR + 1];

#endif
