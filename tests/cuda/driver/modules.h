/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: what the files of modules know of each other. */
#ifndef TS_TESTS_CUDA_DRIVER_MODULES_H
#define TS_TESTS_CUDA_DRIVER_MODULES_H

#include "cuda/driver/driver.h"

struct variable {
	struct variable *next;
	char *name;
	uint64_t address, bytes;
};
struct module {
	struct context *context;
	struct function *functions;
	struct variable *variables;
	uint64_t globals[4];
	size_t global_count;
	bool is_library, is_gone;
	bool is_loaded; /* a library: its code and variables are on the device */
};

/* ---- modules.c ---- */

void add_variable(struct module *module, const char *name, size_t length, uint64_t address,
		  uint64_t bytes);

/* ---- functions.c ---- */

struct function *add_function(struct module *module, const char *name, size_t length);
void add_parameter(struct function *function, uint32_t index, uint32_t offset, uint32_t size);
/*
 * What a library has is loaded when it is needed first, which captures forbid; a launch does it in
 * any case.
 */
int load_library(struct module *module);

/* ---- images.c, ptx.c: functions and variables of an image ---- */

/* `bytes` may be 0 if the image says where it ends. Returns a CUresult. */
int load_image(struct module *module, const void *image, uint64_t bytes);
int load_ptx(struct module *module, const char *text);

#endif
