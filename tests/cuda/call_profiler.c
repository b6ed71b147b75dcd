/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on the stand-in for the driver that marks its region of interest: 7 of its launches are
 * between cuProfilerStart and Stop, then 2; those have distinct grids, 100 and up. `call_profiler
 * [nested]`: it starts twice before it stops.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cuda/stand_in.h"

int cuInit(unsigned int flags);
int cuProfilerStart(void);
int cuProfilerStop(void);
int cuLaunchKernel(uintptr_t function, unsigned int grid_x, unsigned int grid_y,
		   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
		   unsigned int block_z, unsigned int shared, uintptr_t stream, void **parameters,
		   void **extra);

static void launch(int count, unsigned int grid)
{
	for (int i = 0; i < count; i++)
		cuLaunchKernel(1, grid + (unsigned int)i, 1, 1, 32, 1, 1, 0, 0, NULL, NULL);
}

int main(int argc, char **argv)
{
	stand_in_work(true);
	cuInit(0);
	launch(5, 1);
	cuProfilerStart();
	if (argc > 1 && !strcmp(argv[1], "nested"))
		cuProfilerStart();
	launch(7, 100);
	cuProfilerStop();
	launch(3, 1);
	cuProfilerStart();
	launch(2, 200);
	cuProfilerStop();
	launch(3, 1);
	return 0;
}
