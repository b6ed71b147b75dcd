/* SPDX-License-Identifier: Apache-2.0 */
/* The program of nvtx_marks.h, always with our own NVTX client. */
#define BUNDLED_CLIENT 1
#include "nvtx_marks.h"
