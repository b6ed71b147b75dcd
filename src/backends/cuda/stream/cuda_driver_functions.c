/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's functions for our own use: real ones, called with is_ours set. */
#include "backends/cuda/stream/cuda_capture.h"

#define CU_FUNCTION(name, exported, parameters, arguments)                             \
	static int our_##name parameters                                               \
	{                                                                              \
		typedef int(*function_type) parameters;                                \
		static function_type real;                                             \
		int result;                                                            \
                                                                                       \
		if (!__atomic_load_n(&real, __ATOMIC_ACQUIRE))                         \
			__atomic_store_n(&real, (function_type)cuda_driver(#exported), \
					 __ATOMIC_RELEASE);                            \
		if (!real)                                                             \
			return CUDA_NOT_FOUND;                                         \
		cuda_thread.is_ours++;                                                 \
		result = real arguments;                                               \
		cuda_thread.is_ours--;                                                 \
		return result;                                                         \
	}
#include "code/cuda/local/cuda_functions.def"

struct cuda_driver_functions cu = {
#define CU_FUNCTION(name, exported, parameters, arguments) .name = our_##name,
#include "code/cuda/local/cuda_functions.def"
};
