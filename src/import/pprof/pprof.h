/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the pprof importer's files. See docs/formats/pprof.md for the mapping. */
#ifndef TS_IMPORT_PPROF_PPROF_H
#define TS_IMPORT_PPROF_PPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/proto.h"
#include "import/common/entities.h"
#include "import/common/row_args.h"

/* A message or string of the profile; points into the file. */
struct ts_pprof_bytes {
	const char *data;
	size_t length;
};

/* Messages of one kind in file order, and by id. */
struct ts_pprof_list {
	struct ts_pprof_bytes *items;
	size_t count, capacity;
	struct ts_map by_id; /* to index; not of samples */
};

struct ts_pprof_string {
	struct ts_pprof_bytes text;
	uint32_t id; /* in the trace; 0: not added yet */
};

struct ts_pprof_type {
	uint32_t type, unit; /* indices of strings */
	uint32_t name;       /* "type/unit" in the trace */
	int64_t scale;       /* to ns; 0: not a time */
};

struct ts_pprof_location {
	uint32_t first, count; /* frames, outermost first; count 0: not created yet */
};

struct ts_pprof {
	struct ts_import *import;
	struct ts_writer *writer;
	struct ts_entities entities;
	int rc; /* TS_ENOMEM: out of memory */
	struct ts_pprof_string *strings;
	size_t string_count, string_capacity;
	struct ts_pprof_list types, samples, mappings, locations, functions;
	struct ts_pprof_type *type_list;
	int64_t *mapping_ids; /* 0: not made yet */
	struct ts_pprof_location *location_list;
	uint32_t *frames;
	size_t frame_count, frame_capacity;
	struct ts_map symbols; /* frames that have theirs */
	struct ts_pprof_bytes period_type;
	int64_t time, duration, period;
	uint64_t drop_frames, keep_frames, default_type, doc_url;
	int64_t *comments;
	size_t comment_count, comment_capacity;
	size_t chosen; /* type whose values are the weights */
	int64_t process, thread;
	uint32_t program; /* name of every process */
	struct ts_row_args args;
	uint64_t *path; /* ids of a sample's locations */
	size_t path_count, path_capacity;
	int64_t *values;
	size_t value_capacity;
};

extern const struct ts_loss_kind ts_pprof_loss_message;

/* ---- pprof.c ---- */

/* A string of the profile by number, as a string of the trace; 0: none, or empty. */
uint32_t ts_pprof_string(struct ts_pprof *p, uint64_t index);
struct ts_pprof_bytes ts_pprof_text(const struct ts_pprof *p, uint64_t index);

/* ---- pprof_frames.c ---- */

int ts_pprof_frames_init(struct ts_pprof *p);
void ts_pprof_frames_release(struct ts_pprof *p);
/* Frames of a location, by its id; NULL: none, or no such location. */
const struct ts_pprof_location *ts_pprof_location(struct ts_pprof *p, uint64_t id);
/* Name of the program: the first mapping. */
uint32_t ts_pprof_program(struct ts_pprof *p);

/* ---- pprof_samples.c ---- */

int ts_pprof_add_samples(struct ts_pprof *p, struct ts_error *err);
void ts_pprof_samples_release(struct ts_pprof *p);

#endif
