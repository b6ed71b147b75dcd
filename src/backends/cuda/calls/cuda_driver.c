/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the driver and the real dlsym(). Loads the driver only when the program has called one of
 * its functions by name, so that it is loaded already. No lock: repeated lookups give the same
 * result.
 */
#include <dlfcn.h>
#include <errno.h>

#include "backends/cuda/calls/cuda_calls.h"

#define DRIVER "libcuda.so.1"

/* Also the jump target of cuda_dlsym.c. */
__attribute__((visibility("hidden"))) void *(*cuda_next_dlsym)(void *handle, const char *name);

/*
 * Another library after ours may replace dlsym(), too; it gets the lookups that we do not handle.
 */
void cuda_find_dlsym(void)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5" };
	void *found = NULL;

	for (size_t i = 0; !found && i < sizeof(versions) / sizeof(versions[0]); i++)
		found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	__atomic_store_n(&cuda_next_dlsym, (void *(*)(void *, const char *))found,
			 __ATOMIC_RELEASE);
}

/* Not inlined: RTLD_NEXT means after the caller, which must be this function. */
__attribute__((noinline)) void *cuda_symbol(void *handle, const char *name)
{
	void *address;

	if (!__atomic_load_n(&cuda_next_dlsym, __ATOMIC_ACQUIRE))
		cuda_find_dlsym();
	if (!cuda_next_dlsym)
		return NULL;
	address = cuda_next_dlsym(handle, name);
	__asm__ volatile("" : "+r"(address)); /* no tail call */
	return address;
}

void *cuda_driver_library(bool load)
{
	static void *library;
	void *found = __atomic_load_n(&library, __ATOMIC_ACQUIRE);
	int saved = errno;

	if (!found) {
		found = dlopen(DRIVER, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
		if (!found && load)
			found = dlopen(DRIVER, RTLD_LAZY | RTLD_LOCAL);
		__atomic_store_n(&library, found, __ATOMIC_RELEASE);
	}
	errno = saved;
	return found;
}

void *cuda_driver(const char *name)
{
	void *library = cuda_driver_library(false);

	return library ? cuda_symbol(library, name) : NULL;
}
