/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of operations; each is a call site that is never freed. Kernels are found by the text of
 * their name, because CUPTI reuses its pointers. Copies and fills have the names of PyTorch's
 * profiler, so that traces of both compare. Only for the buffer reader.
 */
#include <string.h>
#include <sys/mman.h>

#include <tracesmith/schema.h>

#include "backends/cuda/cupti/cupti_device.h"

#define KERNELS_AT_MOST 65536u
#define TABLE_ENTRIES (2 * KERNELS_AT_MOST)
#define RECENT_ENTRIES 4096u
#define ARENA_BYTES (1u << 20)
#define NAME_BYTES_AT_MOST 65536u

static struct ts_emit_site **table; /* by the hash of the text, open addressing */
static uint32_t kernel_count;
/* Cache by CUPTI's pointer: the last result. */
static struct {
	const char *pointer;
	struct ts_emit_site *site;
} recent[RECENT_ENTRIES];

static struct ts_emit_site others = TS_GPU_OP_SITE("(other kernels)", "kernel");

/* ---- memory that is never freed ---- */

static char *arena;
static size_t arena_left;

static void *take(size_t bytes)
{
	void *taken;

	bytes = (bytes + 15) & ~(size_t)15;
	if (bytes > arena_left) {
		void *memory = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (bytes > ARENA_BYTES || memory == MAP_FAILED)
			return NULL;
		arena = memory;
		arena_left = ARENA_BYTES;
	}
	taken = arena;
	arena += bytes;
	arena_left -= bytes;
	return taken;
}

static struct ts_emit_site *make(const char *name, size_t length, const char *category)
{
	struct ts_emit_site *site = take(sizeof(*site));
	char *text = site ? take(length + 1) : NULL;

	if (!text)
		return NULL;
	memcpy(text, name, length);
	text[length] = 0;
	*site = (struct ts_emit_site)TS_GPU_OP_SITE(text, category);
	return site;
}

/* ---- kernels ---- */

static uint64_t hash_text(const char *text, size_t *ret_length)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	size_t length = 0;

	for (; length < NAME_BYTES_AT_MOST && text[length]; length++)
		hash = (hash ^ (unsigned char)text[length]) * UINT64_C(0x100000001b3);
	*ret_length = length;
	return hash ^ hash >> 29;
}

static struct ts_emit_site *find_text(const char *name)
{
	size_t length;
	uint64_t hash = hash_text(name, &length);

	if (!table) {
		void *memory = mmap(NULL, sizeof(*table) * TABLE_ENTRIES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (memory == MAP_FAILED)
			return &others;
		table = memory;
	}
	for (uint64_t i = hash % TABLE_ENTRIES;; i = (i + 1) % TABLE_ENTRIES) {
		if (table[i] && !strncmp(table[i]->name, name, length) && !table[i]->name[length])
			return table[i];
		if (table[i])
			continue;
		if (kernel_count >= KERNELS_AT_MOST)
			return &others;
		table[i] = make(name, length, "kernel");
		kernel_count += table[i] != NULL;
		return table[i] ? table[i] : &others;
	}
}

struct ts_emit_site *cuda_names_kernel(const char *name)
{
	size_t at = ((uintptr_t)name >> 3) % RECENT_ENTRIES;

	if (recent[at].pointer == name && !strcmp(recent[at].site->name, name))
		return recent[at].site;
	recent[at].site = find_text(name);
	recent[at].pointer = name;
	return recent[at].site;
}

bool cuda_names_knows(const char *pointer)
{
	return recent[((uintptr_t)pointer >> 3) % RECENT_ENTRIES].pointer == pointer;
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Plain, or mangled: _Z41ncclDevKernel_... */
bool cuda_names_is_collective(const char *name)
{
	if (starts_with(name, "_Z"))
		for (name += 2; *name >= '0' && *name <= '9';)
			name++;
	return starts_with(name, "ncclDevKernel") || starts_with(name, "ncclKernel");
}

/* ---- copies and fills ---- */

static const char *const copies[CUPTI_COPY_KINDS] = {
	"<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP",
};
static const char *const memories[CUPTI_MEMORY_KINDS + 1] = {
	"Unknown", "Pageable",      "Pinned",         "Device",       "Array",
	"Managed", "Device Static", "Managed Static", "Unrecognized",
};

static unsigned int memory_index(unsigned int kind)
{
	return kind < CUPTI_MEMORY_KINDS ? kind : CUPTI_MEMORY_KINDS;
}

/* Joins texts up to NULL. */
static struct ts_emit_site *make_joined(const char *const *pieces, const char *category)
{
	char text[96];
	size_t length = 0;

	for (; *pieces; pieces++) {
		size_t bytes = strlen(*pieces);

		if (length + bytes >= sizeof(text))
			break;
		memcpy(text + length, *pieces, bytes);
		length += bytes;
	}
	return make(text, length, category);
}

struct ts_emit_site *cuda_names_copy(uint8_t kind, uint8_t from, uint8_t to)
{
	static struct ts_emit_site
		*sites[CUPTI_COPY_KINDS][CUPTI_MEMORY_KINDS + 1][CUPTI_MEMORY_KINDS + 1];
	static struct ts_emit_site any = TS_GPU_OP_SITE("Memcpy", "gpu_memcpy");
	unsigned int copy = kind < CUPTI_COPY_KINDS ? kind : 0;
	struct ts_emit_site **site = &sites[copy][memory_index(from)][memory_index(to)];
	const char *const pieces[] = { "Memcpy ", copies[copy],
				       " (",      memories[memory_index(from)],
				       " -> ",    memories[memory_index(to)],
				       ")",       NULL };

	if (!*site)
		*site = make_joined(pieces, "gpu_memcpy");
	return *site ? *site : &any;
}

struct ts_emit_site *cuda_names_fill(uint16_t memory)
{
	static struct ts_emit_site *sites[CUPTI_MEMORY_KINDS + 1];
	static struct ts_emit_site any = TS_GPU_OP_SITE("Memset", "gpu_memset");
	struct ts_emit_site **site = &sites[memory_index(memory)];
	const char *const pieces[] = { "Memset (", memories[memory_index(memory)], ")", NULL };

	if (!*site)
		*site = make_joined(pieces, "gpu_memset");
	return *site ? *site : &any;
}
