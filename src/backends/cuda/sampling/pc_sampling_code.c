/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions and images of sampled code. A module's image is copied when it is loaded, because the
 * lifetime of CUPTI's pointer is unspecified. Images with samples go to the trace, identified by
 * the checksum that samples also have.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <tracesmith/sample.h>

#include "backends/cuda/sampling/pc_sampling.h"

#define FUNCTIONS 16384u /* a power of two */
#define MODULES 4096u
#define SEEN 1024u                      /* a power of two: checksums of modules with samples */
#define IMAGE_BYTES ((size_t)256 << 20) /* limit for all images */

typedef int cupti_function(void *params);

/* ---- functions ---- */

struct function {
	uint64_t crc;
	uint32_t index;
	uint32_t code; /* 0: free */
};
static struct function functions[FUNCTIONS];
static uint32_t function_count;

/*
 * Checksums of modules with samples; 0: free. Written by the draining thread, read by the helper.
 */
static uint64_t seen[SEEN];

static uint64_t mix(uint64_t value)
{
	value ^= value >> 32;
	value *= UINT64_C(0x9e3779b97f4a7c15);
	return value ^ value >> 29;
}

static void see(uint64_t crc)
{
	for (uint32_t i = 0; i < SEEN && crc; i++) {
		uint64_t *slot = &seen[(mix(crc) + i) & (SEEN - 1)];

		if (*slot == crc)
			return;
		if (!*slot) {
			__atomic_store_n(slot, crc, __ATOMIC_RELEASE);
			return;
		}
	}
}

static bool is_seen(uint64_t crc)
{
	for (uint32_t i = 0; i < SEEN && crc; i++) {
		uint64_t other =
			__atomic_load_n(&seen[(mix(crc) + i) & (SEEN - 1)], __ATOMIC_ACQUIRE);

		if (other == crc || !other)
			return other == crc;
	}
	return false;
}

static uint32_t add_function(struct function *slot, const struct sampling_pc *pc)
{
	char module[32];

	if (function_count >= FUNCTIONS - FUNCTIONS / 8)
		return 0;
	snprintf(module, sizeof(module), "cubin:%016llx", (unsigned long long)pc->cubin_crc);
	/*
	 * CUPTI's text is shared by all records of the function, including future ones: we must not
	 * free it earlier.
	 */
	*slot = (struct function){ .crc = pc->cubin_crc,
				   .index = pc->function,
				   .code = ts_code(TS_CODE_DEVICE, pc->name ? pc->name : "?",
						   module, 0) };
	if (slot->code)
		function_count++;
	see(pc->cubin_crc);
	return slot->code;
}

uint32_t sampling_function(const struct sampling_pc *pc)
{
	uint64_t hash = mix(pc->cubin_crc ^ mix(pc->function + 1ull));

	for (uint32_t i = 0;; i++) {
		struct function *slot = &functions[(hash + i) & (FUNCTIONS - 1)];

		if (!slot->code)
			return add_function(slot, pc);
		if (slot->crc == pc->cubin_crc && slot->index == pc->function)
			return slot->code;
	}
}

/* ---- images ---- */

enum { MODULE_FREE, MODULE_CHANGES, MODULE_KEPT };

struct module {
	uint32_t state;
	uint32_t is_unloaded;
	void *context;
	uint32_t number;
	void *image;
	size_t bytes;
	uint64_t crc; /* 0: not queried yet */
};
static struct module modules[MODULES];
static uint64_t kept_bytes;

static bool claim(struct module *module, uint32_t from)
{
	return __atomic_compare_exchange_n(&module->state, &from, MODULE_CHANGES, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void release(struct module *module, uint32_t to)
{
	__atomic_store_n(&module->state, to, __ATOMIC_RELEASE);
}

static bool reserve(size_t bytes)
{
	if (__atomic_add_fetch(&kept_bytes, bytes, __ATOMIC_RELAXED) <= IMAGE_BYTES)
		return true;
	__atomic_sub_fetch(&kept_bytes, bytes, __ATOMIC_RELAXED);
	return false;
}

/* NULL: the limit is reached, or no memory. */
static void *copy_image(const void *cubin, size_t bytes)
{
	void *image;

	if (!reserve(bytes))
		return NULL;
	image = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (image == MAP_FAILED) {
		__atomic_sub_fetch(&kept_bytes, bytes, __ATOMIC_RELAXED);
		return NULL;
	}
	memcpy(image, cubin, bytes);
	return image;
}

static void forget(struct module *module)
{
	munmap(module->image, module->bytes);
	__atomic_sub_fetch(&kept_bytes, module->bytes, __ATOMIC_RELAXED);
	release(module, MODULE_FREE);
}

static bool keep(void *context, uint32_t number, const void *cubin, size_t bytes)
{
	for (size_t i = 0; i < MODULES; i++) {
		struct module *module = &modules[i];

		if (!claim(module, MODULE_FREE))
			continue;
		*module = (struct module){ .state = MODULE_CHANGES,
					   .context = context,
					   .number = number,
					   .image = copy_image(cubin, bytes),
					   .bytes = bytes };
		release(module, module->image ? MODULE_KEPT : MODULE_FREE);
		return module->image != NULL;
	}
	return false;
}

/* Its samples may still arrive: the helper frees it, because it may be using it now. */
static void mark_unloaded(const void *context, uint32_t number)
{
	for (size_t i = 0; i < MODULES; i++) {
		struct module *module = &modules[i];

		if (__atomic_load_n(&module->state, __ATOMIC_ACQUIRE) != MODULE_FREE &&
		    module->context == context && module->number == number)
			__atomic_store_n(&module->is_unloaded, 1, __ATOMIC_RELAXED);
	}
}

static bool is_redacted(void)
{
	const char *setting = ts_accelerator_setting("redact");

	return setting && strcmp(setting, "1") == 0;
}

void cuda_sampling_module(void *context, uint32_t module, const void *cubin, size_t bytes,
			  bool is_loaded)
{
	int saved_errno = errno;

	/* With redaction, nothing of the program's memory is stored: samples have offsets only. */
	if (!cuda_sampling_is_wanted() || cuda_is_forked() || is_redacted())
		return;
	if (!is_loaded) {
		sampling_drain_now();
		mark_unloaded(context, module);
	} else if (cubin && bytes && !keep(context, module, cubin, bytes)) {
		ts_accelerator_lost("modules", 1, "no space for the code of more modules");
	}
	errno = saved_errno;
}

static uint64_t checksum_of(const struct module *module)
{
	cupti_function *get_crc = (cupti_function *)cuda_cupti("cuptiGetCubinCrc");
	struct sampling_crc_params params = { .size = sizeof(params),
					      .cubin_bytes = module->bytes,
					      .cubin = module->image };
	int result = -1;

	if (get_crc) {
		cuda_thread.is_ours++;
		result = get_crc(&params);
		cuda_thread.is_ours--;
	}
	return result == SAMPLING_OK ? params.crc : 0;
}

/* True if it is not needed any more. */
static bool store(struct module *module)
{
	/*
	 * Checksums of emitted images: the same code may be loaded again, or into another context.
	 */
	static uint64_t stored[SEEN];
	static uint32_t count;
	char name[32];

	if (!module->crc)
		module->crc = checksum_of(module);
	if (!is_seen(module->crc))
		return module->is_unloaded;
	for (uint32_t i = 0; i < count; i++)
		if (stored[i] == module->crc)
			return true;
	snprintf(name, sizeof(name), "cubin:%016llx", (unsigned long long)module->crc);
	if (count >= SEEN || !ts_accelerator_module(name, module->image, module->bytes))
		return module->is_unloaded;
	stored[count++] = module->crc;
	return true;
}

void sampling_store_images(bool is_last)
{
	uint64_t missing = 0;

	for (size_t i = 0; i < MODULES; i++) {
		struct module *module = &modules[i];

		if (__atomic_load_n(&module->state, __ATOMIC_RELAXED) != MODULE_KEPT ||
		    !claim(module, MODULE_KEPT))
			continue;
		if (store(module)) {
			forget(module);
			continue;
		}
		missing += is_seen(module->crc);
		release(module, MODULE_KEPT);
	}
	if (is_last && missing)
		ts_accelerator_lost("modules", missing, "their code could not be stored");
}
