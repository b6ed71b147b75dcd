/* SPDX-License-Identifier: Apache-2.0 */
/* Another tool that uses CUPTI, as torch.profiler does: a library that late_work loads. */
#ifndef TS_TESTS_CUDA_LATE_TOOL_H
#define TS_TESTS_CUDA_LATE_TOOL_H

/* Exported as `late_tool`. Functions return 0 or CUPTI's error. */
struct late_tool {
	int (*subscribe)(void);
	int (*start)(void);
	/* Returns the number of kernels that it has got. */
	unsigned int (*stop)(void);
	/* The function that its calls of cuptiActivityEnable() reach. */
	void *(*enable)(void);
};

#endif
