/* SPDX-License-Identifier: Apache-2.0 */
/* The program of nvtx_marks.h, with NVIDIA's NVTX client if its headers are installed. */
#include "nvtx_marks.h"
