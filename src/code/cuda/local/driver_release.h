/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The release of NVIDIA's driver, such as 580.65.06. Releases for one version of CUDA differ in
 * their compiler.
 */
#ifndef TS_CODE_CUDA_LOCAL_DRIVER_RELEASE_H
#define TS_CODE_CUDA_LOCAL_DRIVER_RELEASE_H

#include <stdbool.h>
#include <stddef.h>

#define CUDA_RELEASE_BYTES 24u

/*
 * From the name of the library that has the function, a link to libcuda.so.580.65.06. False: that
 * does not tell, and the release is "".
 */
bool ts_driver_release(const void *function, char *release, size_t bytes);

#endif
