/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that calls a stand-in for NCCL by name, for call_nccls.c: one that it depends on, or
 * contains. Only that one knows the communicator COMMUNICATOR. It also has a function of its own
 * with the name of one of NCCL's.
 */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
		  void *communicator, uintptr_t stream);
EXPORT int call_nccl(void);
EXPORT int call_nccl_later(void);

static inline __attribute__((always_inline)) int reduce(void)
{
	return ncclAllReduce((void *)1, (void *)2, 1000, 7, 3, (void *)COMMUNICATOR, 0x7000);
}

#ifdef HAS_GATHER
EXPORT __attribute__((noinline)) double ncclGather(double a, int b, int c, int d, int e, int f,
						   int g, int h, int i, double j);

double ncclGather(double a, int b, int c, int d, int e, int f, int g, int h, int i, double j)
{
	return a + b + c + d + e + f + g + h + i + j;
}

static int gather(void)
{
	return ncclGather(0.5, 1, 2, 3, 4, 5, 6, 7, 8, 0.25) != 36.75;
}
#else
static int gather(void)
{
	return 0;
}
#endif

/* Not a tail call: a jump does not show its caller. */
int call_nccl(void)
{
	int result = reduce();

	return result ? 100 + result : gather();
}

/* Another call site, which has not called one yet. */
int call_nccl_later(void)
{
	return reduce() ? 1 : 0;
}
