/* SPDX-License-Identifier: Apache-2.0 */
/* Stack frames, samples waiting for them, and V8 profiles of a Chrome file. */
#ifndef TS_IMPORT_CHROME_CHROME_STACK_H
#define TS_IMPORT_CHROME_CHROME_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tracesmith/schema.h>

#include "base/map.h"
#include "import/chrome/chrome_event.h"

struct ts_chrome;

struct ts_chrome_frame {
	uint32_t parent;       /* index plus 1; 0: none */
	uint32_t frame, stack; /* ids in the trace; 0: none yet */
	bool defined, walked;
};

struct ts_chrome_held_sample {
	struct ts_sample_row row;
	uint32_t frame;  /* index plus 1 */
	uint32_t thread; /* index */
	uint32_t value_count;
	uint64_t values; /* index into ts_chrome_stacks.values */
	uint8_t sf_type; /* enum ts_arg_type: type of the frame id in the file */
	int64_t sf;
};

struct ts_chrome_stacks {
	struct ts_strmap keys; /* id of a stack frame as text -> index */
	struct ts_chrome_frame *frames;
	size_t capacity;
	bool read;      /* "stackFrames" has been met */
	uint32_t *path; /* of a walk to the root */
	size_t path_capacity;
	struct ts_chrome_held_sample *held;
	size_t held_count, held_capacity;
	int64_t *values;
	size_t value_count, value_capacity;
};

struct ts_chrome_profile {
	uint32_t thread;
	int64_t time; /* of the last sample, as in the file */
	bool has_time;
	uint32_t key; /* tells the nodes of profiles apart */
};

struct ts_chrome_profiles {
	struct ts_map by_id; /* hash of process and id -> index */
	struct ts_chrome_profile *list;
	size_t count, capacity;
	struct ts_pairmap nodes; /* (profile, node id) -> index into frames */
	struct ts_chrome_frame *frames;
	size_t frame_count, frame_capacity;
	int64_t *samples, *deltas; /* of one chunk */
	size_t sample_capacity, delta_capacity;
};

/* ---- chrome_stack.c ---- */

void ts_chrome_stacks_init(struct ts_chrome *c);
void ts_chrome_stacks_release(struct ts_chrome *c);
/* One member of "stackFrames". */
int ts_chrome_read_frame(struct ts_chrome *c);
/* Stores the samples that waited: all frames are known, or none will come. */
void ts_chrome_store_held_samples(struct ts_chrome *c);
/* Index plus 1 of a frame by its id, even if not defined (yet); 0: out of memory or no id. */
uint32_t ts_chrome_frame_key(struct ts_chrome *c, const struct ts_chrome_raw *sf);
/* The stack of a frame (index plus 1) in an array of them; 0: none. */
uint32_t ts_chrome_walk(struct ts_chrome *c, struct ts_chrome_frame *frames, uint32_t frame);
/* The stack named by an event's `sf` or `stack`, and which of them was used; 0: none. */
uint32_t ts_chrome_stack(struct ts_chrome *c, const struct ts_chrome_event *event,
			 uint32_t *ret_taken);
int ts_chrome_hold_sample(struct ts_chrome *c, const struct ts_chrome_held_sample *sample,
			  const int64_t *values);

/* ---- chrome_profile.c ---- */

void ts_chrome_profiles_release(struct ts_chrome *c);
/*
 * Profile, ProfileChunk, or any other event with args.data.cpuProfile; *ret_stored false: none of
 * these.
 */
int ts_chrome_store_profile(struct ts_chrome *c, const struct ts_chrome_event *event,
			    bool *ret_stored);

#endif
