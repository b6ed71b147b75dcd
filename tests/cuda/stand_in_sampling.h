/* SPDX-License-Identifier: Apache-2.0 */
/* Test interface of the sampling part of the stand-in for CUPTI (stand_in_sampling.c). */
#ifndef TS_TESTS_CUDA_STAND_IN_SAMPLING_H
#define TS_TESTS_CUDA_STAND_IN_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

/* A launch has run: if sampling is on, there are 100 samples of that function of the cubin. */
void stand_in_sample(const char *function, const void *cubin, size_t bytes, uint32_t correlation);
/* Launches with pending samples. */
uint32_t stand_in_samples_left(void);
/* As configured; 0: not configured. */
uint32_t stand_in_sampling_period(void);

#endif
