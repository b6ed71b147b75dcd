/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of replay_work: what its modes need, and those outside of replay_work.c. */
#ifndef TS_TESTS_CUDA_REPLAY_WORK_H
#define TS_TESTS_CUDA_REPLAY_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/work_driver.h"

#define COUNT 1000u /* words of most buffers */
#define BYTES (COUNT * 4)

/* ---- replay_work.c ---- */

extern const char kernels[]; /* the image */
extern void *context;
extern uint32_t words_at[1 << 16]; /* of the host; read_back() overwrites it */
extern uint32_t count;             /* COUNT, to be a parameter */

/* Of the module, by name. */
void *function(const char *name);
void launch_in(void *stream, const char *name, void **params);
#define LAUNCH_IN(stream, name, ...) launch_in(stream, name, (void *[]){ __VA_ARGS__ })
#define LAUNCH(name, ...) LAUNCH_IN(NULL, name, __VA_ARGS__)

uint64_t device_memory(size_t bytes);
const uint32_t *read_back(uint64_t address, size_t words);
void expect(bool is_right, const char *what, int line);
#define EXPECT(condition) expect(condition, #condition, __LINE__)

void fill(void *stream, uint64_t to, uint32_t value);
void add(void *stream, uint64_t to, uint64_t a, uint64_t b);
struct cuda_kernel_node kernel_node(const char *name, void **params);

/* ---- replay_work_memory.c ---- */

void async_memory(void);
void pools(void);
void pool_thresholds(void);
void virtual_memory(void);
void pinned(void);
void sizes(void);
void pinned_gone(void);
void registered(void);
void pointers(void);
void rectangles(void);
void batches(void);
void answers(void);
void much_memory(void);
void free_memory(void);

/* ---- replay_work_graphs.c ---- */

void graph_captured(void);
void graph_settings(void);
void graph_explicit(void);
void graph_pageable(void);
void graph_pinned(void);
void graph_events(void);
void graph_frees(void);
void capture_without_memory(void);
void capture_new_code(void);
void capture_and_pinned(void);
void capture_beside_frees(void);
void capture_blocking(void);
void graph_memory(void);

#endif
