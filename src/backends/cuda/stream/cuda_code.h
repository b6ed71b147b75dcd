/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by cuda_modules.c, cuda_functions.c, cuda_globals.c, cuda_launch.c and cuda_graphs.c:
 * images of device code and what is in them. Other files use cuda_capture.h.
 *
 * Modules and functions are registered at all times, and never freed: a handle may be in use by
 * another thread while it is unregistered. What a window needs of them (facts, globals, numbers) is
 * protected by capture_lock.
 */
#ifndef TS_BACKENDS_CUDA_STREAM_CUDA_CODE_H
#define TS_BACKENDS_CUDA_STREAM_CUDA_CODE_H

#include "backends/cuda/stream/cuda_capture.h"
#include "base/local/stream_text.h"
#include "code/cuda/local/cubin_symbols.h"
#include "code/cuda/local/fatbin.h"

#define CODE_JIT_OPTIONS 24u
struct capture_jit_option {
	uint32_t id;
	uint64_t value;
};

struct capture_module {
	struct capture_module *next;
	void *handle; /* CUmodule or CUlibrary */
	void *alias;  /* the CUmodule of a library, if it was asked for; NULL */
	bool is_library, is_gone;
	/*
	 * A function of it was launched in a window or captured, or an address asked for: the
	 * driver has loaded it.
	 */
	bool is_used;
	struct capture_context *context; /* of a library: NULL until it is used */
	/*
	 * A library has variables and functions in each context that uses it. The first one is
	 * found by handles; those of further contexts have it as `base`.
	 */
	struct capture_module *base, *instances; /* instances: linked by next_instance */
	struct capture_module *next_instance;
	enum ts_image_kind kind;
	const void *image; /* NULL: unloaded, or no memory */
	uint64_t image_bytes;
	bool owns_image;
	char *path; /* only to show; NULL */
	char refused[128];
	struct capture_jit_option jit[CODE_JIT_OPTIONS];
	uint32_t jit_count;
	struct capture_function *functions;

	/* capture_lock */
	uint64_t blob;   /* the image; in all windows of the process */
	uint64_t number; /* in this window */
	bool has_facts, has_globals;
	struct ts_code_facts facts;
	struct capture_global *globals;
	size_t global_count;
};

/* ---- cuda_modules.c ---- */

/* By handle; NULL: unknown. */
struct capture_module *module_of(void *handle);
/* Its object, described on first use in the window; 0: the window has failed. */
uint64_t module_number(struct capture_module *module);
/* Reads the image once; capture_lock is held. NULL: why is in `why`. */
const struct ts_code_facts *module_facts(struct capture_module *module, char *why, size_t bytes);
void module_alias(void *handle, struct capture_module *library);
/* Live, and in a live context. */
bool module_is_live(const struct capture_module *module);
struct capture_module *module_next(struct capture_module *after); /* NULL: the first */
/* Of the device that it is loaded on. */
void module_compute(const struct capture_module *module, int *ret_major, int *ret_minor);
/* The module itself, or the library in that context; it is in use then. NULL: no memory. */
struct capture_module *module_in(struct capture_module *module, struct capture_context *context);

/* ---- cuda_functions.c ---- */

/* Registered or not, without a failure. */
struct capture_function *function_find(void *handle);
void function_register(void *handle, bool is_kernel, struct capture_module *module,
		       const char *name);
/* The CUfunction of a kernel, as graphs have it. */
void function_alias(struct capture_function *kernel, void *function);
void functions_unload(struct capture_module *module);
/* False: they are not known; the window has failed. */
bool function_params(struct capture_function *function);

/* ---- cuda_globals.c ---- */

/* Finds, describes and stores the globals of a module that is first used inside the window. */
bool globals_of_module(struct capture_module *module);
void globals_unload(struct capture_module *module);

/* ---- cuda_launch.c ---- */

/* A window opens. */
void capture_launch_forget(void);
/* Bytes of a launch attribute's value; 0: an attribute that is not captured. */
uint32_t launch_attribute_bytes(uint32_t id);

#endif
