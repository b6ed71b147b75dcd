/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges and marks: the interfaces between their files.
 *
 *	nvtx.c         the functions that NVTX calls, and how NVTX loads them
 *	nvtx_names.c   persistent strings: domains, registered strings, categories
 *	nvtx_emit.c    events; recurring names become call sites
 *	nvtx_ranges.c  open ranges, by thread and across threads; windows
 */
#ifndef TS_BACKENDS_CUDA_NVTX_NVTX_H
#define TS_BACKENDS_CUDA_NVTX_NVTX_H

#include <stdbool.h>

#include "backends/cuda/nvtx/nvtx_abi.h"

/* ---- nvtx_names.c ---- */

struct nvtx_domain {
	const char *name;     /* "": the default domain */
	const char *category; /* of its events: "nvtx", or "nvtx:NAME" */
};

struct nvtx_name {
	const char *text;
	uint32_t length;
	uint64_t hash;
};

/* Text as passed to a call. `buffer` is for wide characters; truncated to fit. NULL is "". */
#define NVTX_TEXT_BYTES 512
struct nvtx_name nvtx_name_of(int type, union nvtx_text text, char *buffer);

/* Memory that is never freed; NULL: the limit is reached. */
void *nvtx_keep(size_t bytes);

/* The domain of a handle passed in by a program; the default domain if it is not ours. */
const struct nvtx_domain *nvtx_domain_of(const void *handle);
const struct nvtx_domain *nvtx_domain_named(const char *name);

/* The handle of a registered string; NULL: the limit is reached. */
const void *nvtx_register(const struct nvtx_name *name);

void nvtx_name_category(const struct nvtx_domain *domain, uint32_t id,
			const struct nvtx_name *name);
const char *nvtx_category_name(const struct nvtx_domain *domain, uint32_t id);

/* ---- nvtx_emit.c ---- */

enum nvtx_kind { NVTX_KIND_BEGIN, NVTX_KIND_INSTANT, NVTX_KIND_SPAN };

/* Attributes of an event besides its name. */
#define NVTX_HAS_INTEGER 1u
#define NVTX_HAS_REAL 2u
#define NVTX_HAS_COLOR 4u
#define NVTX_HAS_CATEGORY 8u
#define NVTX_HAS_CATEGORY_NAME 16u
#define NVTX_VALUES 3
struct nvtx_values {
	unsigned int has;
	uint64_t words[NVTX_VALUES]; /* payload, color, category: those present, without gaps */
};
void nvtx_values_of(const struct nvtx_domain *domain, const struct nvtx_attributes *attributes,
		    struct nvtx_values *ret_values);

struct nvtx_event {
	enum nvtx_kind kind;
	const struct nvtx_domain *domain;
	struct nvtx_name name;
	struct nvtx_values values;
	/* Spans only. */
	uint64_t start; /* ts_now() */
	int64_t track;
};
/* Only while events are recorded. Returns its name, which is never freed; NULL: not kept. */
const char *nvtx_emit(const struct nvtx_event *event);
/* Continues a range, without its values. */
void nvtx_emit_again(const char *name, const struct nvtx_domain *domain);

/* ---- nvtx_ranges.c ---- */

void nvtx_ranges_prepare(void);
/* Return levels as NVTX counts them: by thread and domain, from 0. */
int nvtx_push(const struct nvtx_event *event);
int nvtx_pop(const struct nvtx_domain *domain);
/* 0: too many are open. */
uint64_t nvtx_start(const struct nvtx_event *event);
void nvtx_end(uint64_t id);

#endif
