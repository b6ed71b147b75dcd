/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives on the stand-in for NCCL: by name, in a group, and found by dlsym(). Prints errors.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "cuda/stand_in.h"

typedef int (*reduce_function)(const void *from, void *to, size_t count, int type, int operation,
			       void *communicator, uintptr_t stream);

int cuInit(unsigned int flags);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
		  void *communicator, uintptr_t stream);
int ncclSend(const void *from, size_t count, int type, int peer, void *communicator,
	     uintptr_t stream);
int ncclGroupStart(void);
int ncclGroupEnd(void);

static int reduce(reduce_function function)
{
	return function((void *)1, (void *)2, 1000, 7, 3, (void *)4, 0x7000);
}

int main(void)
{
	void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
	int result = 0;

	stand_in_work(true);
	result |= cuInit(0);
	result |= reduce(ncclAllReduce);
	result |= ncclGroupStart();
	for (int i = 0; i < 4; i++)
		result |= ncclSend((void *)1, 50, 9, 3, (void *)4, 0x7000);
	result |= ncclGroupEnd();
	result |= library ? reduce((reduce_function)dlsym(library, "ncclAllReduce")) : 1;
	printf("result %d\n", result);
	return result ? 1 : 0;
}
