/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three stand-ins for NCCL in one process, as a framework and an extension would bring: each
 * library calls its own, by name and by handle. No other library sees one. Prints the same whether
 * it is recorded or not.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cuda/stand_in.h"

typedef int (*reduce_function)(const void *from, void *to, size_t count, int type, int operation,
			       void *communicator, uintptr_t stream);

int cuInit(unsigned int flags);

static const char *const libraries[] = { "libcall_nccl_other.so", "libcall_nccl_inside.so",
					 "libcall_nccl_needed.so" };
static const char *const names[] = { "libnccl_other.so.2", "libcall_nccl_inside.so",
				     "libnccl.so.2" };
static const uintptr_t communicators[] = { 5, 6, 4 };
static void *loaded[3];

static void call(const char *function)
{
	for (size_t i = 0; i < 3; i++) {
		int (*called)(void) = (int (*)(void))dlsym(loaded[i], function);

		printf("%s %s: %d\n", libraries[i], function, called ? called() : -1);
	}
}

/* Through a handle of each. */
static void call_by_handle(void)
{
	for (size_t i = 0; i < 3; i++) {
		void *library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
		reduce_function reduce =
			(reduce_function)(library ? dlsym(library, "ncclAllReduce") : NULL);

		printf("%s: %d\n", names[i],
		       reduce ? reduce((void *)1, (void *)2, 1000, 7, 3, (void *)communicators[i],
				       0x7000)
			      : -1);
	}
}

static void look(const char *name)
{
	bool is_global = dlsym(RTLD_DEFAULT, name) != NULL;
	const char *error = dlerror();

	printf("%s: %d, %d\n", name, is_global, error && strstr(error, name));
}

static int gather_by_handle(void)
{
	double (*gather)(double, int, int, int, int, int, int, int, int, double) =
		(double (*)(double, int, int, int, int, int, int, int, int, double))dlsym(
			loaded[0], "ncclGather");

	return gather && gather(0.5, 1, 2, 3, 4, 5, 6, 7, 8, 0.25) == 36.75;
}

int main(void)
{
	stand_in_work(true);
	cuInit(0);
	for (size_t i = 0; i < 3; i++) {
		loaded[i] = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
		if (!loaded[i]) {
			printf("%s\n", dlerror());
			return 1;
		}
	}
	call("call_nccl");
	call_by_handle();
	look("ncclAllReduce");
	printf("ncclGather: %d\n", gather_by_handle());
	/* Now the last one is globally visible; earlier users keep their own. */
	if (!dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL))
		return 1;
	look("ncclAllReduce");
	call("call_nccl_later");
	return 0;
}
