/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preloaded library after ours, which also replaces functions and finds the real ones with
 * RTLD_NEXT: one of libc, and one of the driver. If RTLD_NEXT were resolved relative to our
 * dlsym(), these would find themselves and recurse forever.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <sys/types.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT long behind_launches, behind_parents;
EXPORT pid_t getppid(void);
EXPORT int cuLaunchKernel(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
			  uintptr_t f, uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j,
			  uintptr_t k);

pid_t getppid(void)
{
	pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "getppid");

	behind_parents++;
	return real();
}

int cuLaunchKernel(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f,
		   uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j, uintptr_t k)
{
	int (*real)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
		    uintptr_t, uintptr_t, uintptr_t, uintptr_t);

	*(void **)&real = dlsym(RTLD_NEXT, "cuLaunchKernel");
	behind_launches++;
	return real(a, b, c, d, e, f, g, h, i, j, k);
}
