/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of NCCL: calls of their own, and how many bytes the kernels that they launch move. The public interface of nccl.h, which has
 * been the same since NCCL 2.0. Must not know how kernels are joined to it (calls.c, the device side).
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "capture/cuda/calls.h"

/* NCCL_CALL(name, arguments, position of the count; the type stands behind it; -1: no bytes) */
#define NCCL_CALLS                         \
	NCCL_CALL(ncclAllReduce, 7, 2)     \
	NCCL_CALL(ncclReduceScatter, 7, 2) \
	NCCL_CALL(ncclReduce, 8, 2)        \
	NCCL_CALL(ncclBroadcast, 7, 2)     \
	NCCL_CALL(ncclBcast, 6, 1)         \
	NCCL_CALL(ncclAllGather, 6, 2)     \
	NCCL_CALL(ncclAlltoAll, 6, 2)      \
	NCCL_CALL(ncclGather, 7, 2)        \
	NCCL_CALL(ncclScatter, 7, 2)       \
	NCCL_CALL(ncclSend, 6, 1)          \
	NCCL_CALL(ncclRecv, 6, 1)          \
	NCCL_CALL(ncclGroupStart, 0, -1)   \
	NCCL_CALL(ncclGroupEnd, 0, -1)

enum collective_index {
#define NCCL_CALL(name, arguments, count) INDEX_##name,
	NCCL_CALLS
#undef NCCL_CALL
		COLLECTIVES
};

/* Not supported, as NCCL says it: ncclInvalidUsage. */
#define NCCL_MISSING 5

struct collective {
	const char *name;
	int8_t count; /* position */
	void *wrapper;
	void *real;
	struct ts_emit_site site;
};
static struct collective collectives[COLLECTIVES];

/* Launches come when the outermost group ends: until then bytes add up. */
struct collective_thread {
	uint32_t depth; /* of calls; groups count while they are open */
	uint32_t groups;
	int64_t bytes;
};
static __thread struct collective_thread here __attribute__((tls_model("initial-exec")));

int64_t cuda_collective_bytes(void)
{
	return here.bytes;
}

static int missing(void)
{
	return NCCL_MISSING;
}

static void *real_of(struct collective *collective)
{
	void *found = __atomic_load_n(&collective->real, __ATOMIC_ACQUIRE);
	void *library;

	if (found)
		return found;
	found = cuda_symbol(RTLD_NEXT, collective->name);
	if (!found) {
		library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
		found = library ? cuda_symbol(library, collective->name) : NULL;
	}
	if (!found)
		return (void *)missing;
	__atomic_store_n(&collective->real, found, __ATOMIC_RELEASE);
	return found;
}

/* ncclDataType_t, in its order. */
static int64_t bytes_of(const struct collective *collective, const uintptr_t *words)
{
	static const uint8_t sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };
	uint64_t count, bytes;
	uint32_t type;

	if (collective->count < 0)
		return 0;
	count = words[collective->count];
	type = (uint32_t)words[collective->count + 1];
	if (type >= sizeof(sizes) || __builtin_mul_overflow(count, (uint64_t)sizes[type], &bytes) ||
	    bytes > INT64_MAX)
		return 0;
	return (int64_t)bytes;
}

static uint64_t enter(const struct collective *collective, const uintptr_t *words)
{
	if (collective == &collectives[INDEX_ncclGroupStart])
		here.groups++;
	here.depth++;
	here.bytes += bytes_of(collective, words);
	return ts_now();
}

static void leave(struct collective *collective, uint64_t start, int result)
{
	struct ts_accelerator_call row = {
		.size = sizeof(row), .start = start, .end = ts_now(), .result = result
	};

	here.depth--;
	if (collective == &collectives[INDEX_ncclGroupEnd] && here.groups)
		here.groups--;
	if (!here.groups)
		here.bytes = 0;
	if (!ts_enabled())
		return;
	row.stack = ts_accelerator_stack();
	ts_accelerator_call_with(&collective->site, &row);
}

/* Groups are counted outside of windows as well. */
static inline bool counts(void)
{
	return __atomic_load_n(&cuda_wanted, __ATOMIC_RELAXED) && !here.depth;
}

#define W uintptr_t
#define TYPES_0 void
#define TYPES_6 W, W, W, W, W, W
#define TYPES_7 TYPES_6, W
#define TYPES_8 TYPES_6, W, W
#define PARAMETERS_0 void
#define PARAMETERS_6 W a, W b, W c, W d, W e, W f
#define PARAMETERS_7 PARAMETERS_6, W g
#define PARAMETERS_8 PARAMETERS_6, W g, W h
#define ARGUMENTS_0
#define ARGUMENTS_6 a, b, c, d, e, f
#define ARGUMENTS_7 ARGUMENTS_6, g
#define ARGUMENTS_8 ARGUMENTS_6, g, h
#define WORDS_0 0
#define WORDS_6 ARGUMENTS_6
#define WORDS_7 ARGUMENTS_7
#define WORDS_8 ARGUMENTS_8

#define NCCL_CALL(name, arguments, position)                                                      \
	__attribute__((visibility("default"))) int wrapped_##name(TYPES_##arguments) __asm__(     \
		#name);                                                                           \
	int wrapped_##name(PARAMETERS_##arguments)                                                \
	{                                                                                         \
		struct collective *collective = &collectives[INDEX_##name];                       \
		int (*real)(TYPES_##arguments) = (int (*)(TYPES_##arguments))real_of(collective); \
		uint64_t start;                                                                   \
		int result;                                                                       \
                                                                                                  \
		if (!counts())                                                                    \
			return real(ARGUMENTS_##arguments);                                       \
		start = enter(collective, (const uintptr_t[]){ WORDS_##arguments });              \
		result = real(ARGUMENTS_##arguments);                                             \
		leave(collective, start, result);                                                 \
		return result;                                                                    \
	}
NCCL_CALLS
#undef NCCL_CALL

static struct collective collectives[COLLECTIVES] = {
#define NCCL_CALL(name_, arguments, position)                   \
	[INDEX_##name_] = { .name = #name_,                     \
			    .count = position,                  \
			    .wrapper = (void *)wrapped_##name_, \
			    .site = TS_CALL_SITE(#name_, "nccl") },
	NCCL_CALLS
#undef NCCL_CALL
};

/* Found in NCCL itself, or in somebody's copy of it; not in a library that replaces it, which comes to us by name. */
void *cuda_collective_for(const char *name, void *address)
{
	for (size_t i = 0; i < COLLECTIVES; i++) {
		struct collective *collective = &collectives[i];
		void *none = NULL;

		if (strcmp(collective->name, name))
			continue;
		if (address == collective->wrapper)
			return real_of(collective) == (void *)missing ? NULL : address;
		__atomic_compare_exchange_n(&collective->real, &none, address, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
		return collective->real == address ? collective->wrapper : address;
	}
	return address;
}
