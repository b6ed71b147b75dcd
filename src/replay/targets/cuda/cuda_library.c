/* SPDX-License-Identifier: Apache-2.0 */
/* Opens NVIDIA's driver library and finds its functions; names of its errors. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/targets/cuda/cuda_session.h"

#define LIBRARY "libcuda.so.1"
#define OLDEST_DRIVER 12000 /* libraries, launches with attributes */

/* A function that this driver lacks. */
#define CU_FUNCTION(name, exported, parameters, arguments) \
	static int missing_##name parameters               \
	{                                                  \
		return CUDA_NOT_FOUND;                     \
	}
#include "code/cuda/local/cuda_functions.def"

static const struct cuda_driver_functions missing = {
#define CU_FUNCTION(name, exported, parameters, arguments) .name = missing_##name,
#include "code/cuda/local/cuda_functions.def"
};

static const struct function {
	const char *name;
	size_t offset;
} functions[] = {
#define CU_FUNCTION(name, exported, parameters, arguments) \
	{ #exported, offsetof(struct cuda_driver_functions, name) },
#include "code/cuda/local/cuda_functions.def"
};

int ts_cuda_open(struct cuda_driver_functions *ret_cu, struct ts_error *err)
{
	struct cuda_driver_functions cu = missing;
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	int version = 0, code;
	char text[96];

	if (!library)
		return ts_error_set(err, TS_ECAP,
				    "no CUDA driver found (%s); install NVIDIA's driver, or use "
				    "--target emulator",
				    LIBRARY);
	for (size_t i = 0; i < TS_ARRAY_SIZE(functions); i++) {
		void *symbol = dlsym(library, functions[i].name);

		/* POSIX guarantees equal representation of both kinds of pointers. */
		if (symbol)
			memcpy((char *)&cu + functions[i].offset, &symbol, sizeof(symbol));
	}
	code = cu.Init(0);
	if (code)
		return ts_error_set(err, TS_ECAP, "the CUDA driver does not start: %s",
				    ts_cuda_error_text(&cu, code, text, sizeof(text)));
	code = cu.DriverGetVersion(&version);
	if (code || version < OLDEST_DRIVER)
		return ts_error_set(err, TS_ECAP,
				    "the CUDA driver is too old: it supports CUDA %d.%d, a replay "
				    "needs %d.%d",
				    version / 1000, version % 1000 / 10, OLDEST_DRIVER / 1000,
				    OLDEST_DRIVER % 1000 / 10);
	*ret_cu = cu;
	return TS_OK;
}

/* ---- errors ---- */

const char *ts_cuda_error_text(const struct cuda_driver_functions *cu, int code, char *buffer,
			       size_t bytes)
{
	const char *name = NULL;

	if (cu->GetErrorName(code, &name) || !name)
		name = code == CUDA_NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : "unknown error";
	snprintf(buffer, bytes, "%s (%d)", name, code);
	return buffer;
}

int ts_cuda_error_code(int code)
{
	return code == CUDA_OUT_OF_MEMORY ? TS_ENOMEM : TS_ECAP;
}

bool ts_cuda_is_sticky(int code)
{
	switch (code) {
	case 4:   /* DEINITIALIZED */
	case 214: /* ECC_UNCORRECTABLE */
	case 220: /* NVLINK_UNCORRECTABLE */
	case 700: /* ILLEGAL_ADDRESS */
	case 702: /* LAUNCH_TIMEOUT */
	case 709: /* CONTEXT_IS_DESTROYED */
	case 710: /* ASSERT */
	case 714: /* HARDWARE_STACK_ERROR */
	case 715: /* ILLEGAL_INSTRUCTION */
	case 716: /* MISALIGNED_ADDRESS */
	case 717: /* INVALID_ADDRESS_SPACE */
	case 718: /* INVALID_PC */
	case 719: /* LAUNCH_FAILED */
	case 721: /* TENSOR_MEMORY_LEAK */
	case 999: /* UNKNOWN */
		return true;
	default:
		return false;
	}
}
