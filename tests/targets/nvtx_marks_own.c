/* SPDX-License-Identifier: Apache-2.0 */
/* The program of nvtx_marks.h, with a client of NVTX of our own, also where NVIDIA's is there. */
#define OWN_CLIENT 1
#include "nvtx_marks.h"
