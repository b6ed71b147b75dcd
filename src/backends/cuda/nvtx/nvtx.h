/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges and marks of NVTX: the parts and what they ask of each other.
 *
 *	nvtx.c         the functions that NVTX calls, and getting in
 *	nvtx_names.c   texts that stay: domains, registered strings, categories
 *	nvtx_emit.c    events; names that come again become call sites
 *	nvtx_ranges.c  what is open, by thread and across threads; windows
 */
#ifndef TS_BACKENDS_CUDA_NVTX_NVTX_H
#define TS_BACKENDS_CUDA_NVTX_NVTX_H

#include <stdbool.h>

#include "backends/cuda/nvtx/nvtx_abi.h"

/* ---- nvtx_names.c ---- */

struct nvtx_domain {
	const char *name;     /* "": the default one */
	const char *category; /* of its events: "nvtx", or "nvtx:NAME" */
};

struct nvtx_name {
	const char *text;
	uint32_t length;
	uint64_t hash;
};

/* Text that came as a call has it. `buffer` is for wide characters; cut to fit. NULL is "". */
#define NVTX_TEXT_BYTES 512
struct nvtx_name nvtx_name_of(int type, union nvtx_text text, char *buffer);

/* Bytes that last as long as the process; NULL: there is no room. */
void *nvtx_keep(size_t bytes);

/* A handle as a program gave it back; the default domain where it is none of ours. */
const struct nvtx_domain *nvtx_domain_of(const void *handle);
const struct nvtx_domain *nvtx_domain_named(const char *name);

/* What a handle of a registered string is; NULL: there is no room. */
const void *nvtx_register(const struct nvtx_name *name);

void nvtx_name_category(const struct nvtx_domain *domain, uint32_t id,
			const struct nvtx_name *name);
const char *nvtx_category_name(const struct nvtx_domain *domain, uint32_t id);

/* ---- nvtx_emit.c ---- */

enum nvtx_kind { NVTX_KIND_BEGIN, NVTX_KIND_INSTANT, NVTX_KIND_SPAN };

/* What comes with a name. */
#define NVTX_HAS_INTEGER 1u
#define NVTX_HAS_REAL 2u
#define NVTX_HAS_COLOR 4u
#define NVTX_HAS_CATEGORY 8u
#define NVTX_HAS_CATEGORY_NAME 16u
#define NVTX_VALUES 3
struct nvtx_values {
	unsigned int has;
	uint64_t words[NVTX_VALUES]; /* payload, color, category: those that it has, without gaps */
};
void nvtx_values_of(const struct nvtx_domain *domain, const struct nvtx_attributes *attributes,
		    struct nvtx_values *ret_values);

struct nvtx_event {
	enum nvtx_kind kind;
	const struct nvtx_domain *domain;
	struct nvtx_name name;
	struct nvtx_values values;
	/* A span's alone. */
	uint64_t start; /* as of ts_now() */
	int64_t track;
};
/* While events are on. Its name, which lasts as long as the process; NULL: it was not kept. */
const char *nvtx_emit(const struct nvtx_event *event);
/* A range goes on, without its values. */
void nvtx_emit_again(const char *name, const struct nvtx_domain *domain);

/* ---- nvtx_ranges.c ---- */

void nvtx_ranges_prepare(void);
/* Levels as NVTX counts them: of its thread and domain, from 0. */
int nvtx_push(const struct nvtx_event *event);
int nvtx_pop(const struct nvtx_domain *domain);
/* 0: too many are open. */
uint64_t nvtx_start(const struct nvtx_event *event);
void nvtx_end(uint64_t id);

#endif
