/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LLVM XRay logs, shared by their readers. xray_basic.c and xray_fdr.c split a file into entries,
 * exits and events of threads; xray_calls.c turns these into slices and marks; xray_names.c
 * resolves function names. See docs/formats/xray.md.
 */
#ifndef TS_IMPORT_XRAY_XRAY_H
#define TS_IMPORT_XRAY_XRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <tracesmith/writer.h>

#include "base/map.h"
#include "import/common/entities.h"
#include "import/import.h"

#define TS_XRAY_HEADER_BYTES 32u
#define TS_XRAY_NS 1000000000u
/* Limit on arguments of one call; the runtime logs one. */
#define TS_XRAY_MAX_ARGS 16u

/* Kinds of function records, in both modes. */
enum ts_xray_kind {
	TS_XRAY_ENTRY = 0,
	TS_XRAY_EXIT = 1,
	TS_XRAY_TAIL_EXIT = 2,
	TS_XRAY_ENTRY_ARG = 3,
};

struct ts_xray_header {
	uint16_t version, type; /* type 0: basic, 1: FDR */
	bool constant_tsc, nonstop_tsc;
	uint64_t frequency;    /* of the TSC, Hz; 0: unknown */
	uint64_t buffer_bytes; /* FDR: of each buffer */
};

/* Properties of a slice besides its CPU: bits of the index of its shape. */
enum ts_xray_detail {
	TS_XRAY_HAS_EXIT_CPU = 1,
	TS_XRAY_IS_TAIL_EXIT = 2,
	TS_XRAY_IS_UNWOUND = 4,
	TS_XRAY_HAS_ENTRY_ORDER = 8,
	TS_XRAY_HAS_EXIT_ORDER = 16,
	TS_XRAY_DETAILS = 32,
};

/* A function that was entered and not left. */
struct ts_xray_call {
	int64_t start;
	uint64_t order; /* of its record in the thread */
	uint32_t function;
	uint16_t cpu;
	uint8_t arg_count; /* its arguments are the last ones of all open calls up to it */
	bool is_tied;      /* its neighbour in the log has the same time */
};

/*
 * A finished call, held until the next record of the thread shows whether that has the same time.
 */
struct ts_xray_held {
	struct ts_xray_call call;
	uint64_t exit_order;
	int64_t duration;
	uint32_t details;
	uint16_t exit_cpu;
	uint64_t args[TS_XRAY_MAX_ARGS];
	bool is_present;
};

/* Kind of a thread's last record: what a tie affects. */
enum ts_xray_last {
	TS_XRAY_LAST_NONE,
	TS_XRAY_LAST_ENTRY,
	TS_XRAY_LAST_EXIT,
	TS_XRAY_LAST_MARK,
};

struct ts_xray_thread {
	int64_t id; /* row of `thread` */
	struct ts_xray_call *calls;
	size_t call_count, call_capacity;
	uint64_t *args; /* of all open calls */
	size_t arg_count, arg_capacity;
	uint64_t order; /* records so far */
	int64_t last_time;
	enum ts_xray_last last;
	struct ts_xray_held held;
};

struct ts_elf;

/* Names of functions by their ids. */
struct ts_xray_names {
	uint32_t *dense; /* strings by id; 0: not added yet */
	size_t dense_count, dense_capacity;
	struct ts_map others; /* of large ids */
	struct ts_elf *elf;   /* NULL: no binary given */
	uint64_t *addresses;  /* of functions 1 ... address_count in it */
	size_t address_count, address_capacity;
};

/* The second that contains the last TSC value, so that most conversions need no division. */
struct ts_xray_second {
	uint64_t tsc, length; /* in cycles */
	uint64_t factor;      /* 2^64 * 10^9 / length */
	int64_t ns;
};

struct ts_xray {
	struct ts_import *import;
	struct ts_writer *writer;
	struct ts_error *err;
	struct ts_entities entities;
	struct ts_xray_header header;
	struct ts_xray_second second;
	struct ts_xray_names names;
	struct ts_xray_thread *threads;
	size_t thread_count, thread_capacity;
	struct ts_pairmap thread_by_id; /* pid, tid to index */
	uint64_t searched, records;     /* steps of failed searches, and records so far */
	uint32_t shapes[TS_XRAY_DETAILS][TS_XRAY_MAX_ARGS + 1];
	uint32_t mark_shapes[2][3]; /* by: typed; no data, text, bytes */
	uint32_t category;
	struct ts_text payload;
	bool has_clock_sync;
	bool no_memory;
};

static inline uint16_t ts_xray_u16(const char *p)
{
	return (uint16_t)((uint8_t)p[0] | (uint8_t)p[1] << 8);
}

static inline uint32_t ts_xray_u32(const char *p)
{
	return (uint32_t)(uint8_t)p[0] | (uint32_t)(uint8_t)p[1] << 8 |
	       (uint32_t)(uint8_t)p[2] << 16 | (uint32_t)(uint8_t)p[3] << 24;
}

static inline uint64_t ts_xray_u64(const char *p)
{
	return ts_xray_u32(p) | (uint64_t)ts_xray_u32(p + 4) << 32;
}

/* ---- xray.c ---- */

/* Slow path of ts_xray_time(), for values outside the current second. */
bool ts_xray_time_far(struct ts_xray *x, uint64_t tsc, int64_t *ret_ns);

/* Converts a TSC value to ns, rounded down, exactly; false, and counted, if it exceeds int64. */
static inline bool ts_xray_time(struct ts_xray *x, uint64_t tsc, int64_t *ret_ns)
{
	const struct ts_xray_second *second = &x->second;
	uint64_t rest = tsc - second->tsc, ns;

	/* Emulated counters are already in ns. */
	if (x->header.frequency == TS_XRAY_NS && tsc <= INT64_MAX) {
		*ret_ns = (int64_t)tsc;
		return true;
	}
	/* No second is set where the shortcut does not apply. */
	if (TS_UNLIKELY(rest >= second->length))
		return ts_xray_time_far(x, tsc, ret_ns);
	/* Multiplication instead of division: gives the quotient, or one less. */
	ns = (uint64_t)((unsigned __int128)rest * second->factor >> 64);
	ns += (ns + 1) * second->length <= rest * TS_XRAY_NS;
	*ret_ns = second->ns + (int64_t)ns;
	return true;
}

int ts_xray_out_of_memory(struct ts_xray *x);

/* ---- xray_names.c ---- */

/* Opens the binary, if one was given. */
int ts_xray_names_start(struct ts_xray *x);
void ts_xray_names_release(struct ts_xray *x);
/* A string; *ret_name 0 with an error if the function is not in the binary. */
int ts_xray_name_new(struct ts_xray *x, uint32_t function, uint32_t *ret_name);

static inline int ts_xray_name(struct ts_xray *x, uint32_t function, uint32_t *ret_name)
{
	if (TS_LIKELY(function < x->names.dense_count && x->names.dense[function])) {
		*ret_name = x->names.dense[function];
		return TS_OK;
	}
	return ts_xray_name_new(x, function, ret_name);
}

/* ---- xray_calls.c ---- */

/* pid TS_ABSENT: not in the log. NULL: out of memory. Valid until the next call. */
struct ts_xray_thread *ts_xray_thread(struct ts_xray *x, int64_t pid, int64_t tid);
int ts_xray_function(struct ts_xray *x, struct ts_xray_thread *thread, unsigned int kind,
		     uint32_t function, uint16_t cpu, uint64_t tsc);
/* An argument of the call entered by the last record. */
int ts_xray_argument(struct ts_xray *x, struct ts_xray_thread *thread, uint64_t value);
/* A custom event (type -1) or a typed one. */
int ts_xray_event(struct ts_xray *x, struct ts_xray_thread *thread, int32_t type, uint16_t cpu,
		  uint64_t tsc, const char *data, size_t bytes);
/* Records are missing after this point: open calls have no known end. */
int ts_xray_break(struct ts_xray *x, struct ts_xray_thread *thread);
/* End of the log: the same for all threads. */
int ts_xray_end(struct ts_xray *x);
void ts_xray_calls_release(struct ts_xray *x);

/* ---- the modes; the header has been read ---- */

int ts_xray_read_basic(struct ts_xray *x);
int ts_xray_read_fdr(struct ts_xray *x);

#endif
