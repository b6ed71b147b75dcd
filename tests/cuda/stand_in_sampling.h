/* SPDX-License-Identifier: Apache-2.0 */
/* Test interface of the sampling part of the stand-in for CUPTI (stand_in_sampling.c). */
#ifndef TS_TESTS_CUDA_STAND_IN_SAMPLING_H
#define TS_TESTS_CUDA_STAND_IN_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

/* A launch has run: 100 samples of that function of the cubin are there, where sampling is on. */
void stand_in_sample(const char *function, const void *cubin, size_t bytes, uint32_t correlation);
/* Launches whose samples nobody has taken. */
uint32_t stand_in_samples_left(void);
/* As it was configured; 0: it was not. */
uint32_t stand_in_sampling_period(void);

#endif
