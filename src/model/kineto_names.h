/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meaning of PyTorch Kineto's categories, names and arguments: docs/chrome.md as tables. Importer
 * and exporter use the same functions, so that both directions agree.
 */
#ifndef TS_MODEL_KINETO_NAMES_H
#define TS_MODEL_KINETO_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

/* Name and category of the flow arrows from a call to what it launched. */
#define TS_KINETO_ARROW "ac2g"

struct ts_kineto_category {
	enum ts_table_id table;   /* TS_TABLE_SLICE, TS_TABLE_API_CALL, TS_TABLE_GPU_OP */
	enum ts_gpu_op_kind kind; /* of a gpu_op, before its name is considered */
	bool needs_stream;        /* a gpu_op only if args.stream is an int, else a slice */
};

/* The table for events of phase X with this category; any other category is a slice. */
struct ts_kineto_category ts_kineto_category(const char *category, size_t length);

/*
 * The kind of a gpu_op: that of its category, or collective for kernels of NCCL and similar
 * libraries.
 */
enum ts_gpu_op_kind ts_kineto_kind(enum ts_gpu_op_kind kind, const char *name, size_t length);

/* The direction of a copy from its name, "Memcpy HtoD (Pageable -> Device)". */
enum ts_copy_kind ts_kineto_copy_kind(const char *name, size_t length);

/* Whether this is a top-level member that only Kineto's files have. */
bool ts_kineto_is_member(const char *key, size_t length);
/* Whether the start of a JSON text contains something that only Kineto writes. */
bool ts_kineto_is_in(const char *data, size_t bytes);

/* Arguments with a column. */
enum ts_kineto_arg {
	TS_KINETO_ARG_NONE,
	TS_KINETO_ARG_CORRELATION,
	TS_KINETO_ARG_CONTEXT,
	TS_KINETO_ARG_DEVICE,
	TS_KINETO_ARG_STREAM,
	TS_KINETO_ARG_REGISTERS,
	TS_KINETO_ARG_SHARED_BYTES,
	TS_KINETO_ARG_BYTES,
	TS_KINETO_ARG_GRID,
	TS_KINETO_ARG_BLOCK,
	TS_KINETO_ARG_BANDWIDTH,
	TS_KINETO_ARG_COUNT
};

enum ts_kineto_arg ts_kineto_arg(enum ts_table_id table, const char *key, size_t length);

/*
 * How a field of type TS_ARG_COLUMN refers to it: a stable column id or an enum ts_computed_column.
 */
uint16_t ts_kineto_arg_column(enum ts_table_id table, enum ts_kineto_arg arg);

/* Whether the bandwidth argument equals what TS_COMPUTED_BANDWIDTH computes for the row. */
static inline bool ts_kineto_is_bandwidth(double value, int64_t bytes, int64_t duration)
{
	return bytes != TS_ABSENT && duration > 0 && value == (double)bytes / (double)duration;
}

#endif
