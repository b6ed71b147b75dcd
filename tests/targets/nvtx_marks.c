/* SPDX-License-Identifier: Apache-2.0 */
/* The program of nvtx_marks.h, with NVIDIA's client of NVTX where its headers are there. */
#include "nvtx_marks.h"
