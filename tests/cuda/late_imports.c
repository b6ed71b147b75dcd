/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports of a library are redirected while another thread loads it: dl_iterate_phdr() shows it
 * before the dynamic linker has filled its slots. `late_imports TOOL`
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cupti/cupti_device.h"
#include "cuda/late_tool.h"

#define LOADS 40

static uint32_t is_over;

static int ours(void)
{
	return 0;
}

/* Test double of cupti_sharing.c. */
void *cuda_other_tool(const char *name)
{
	return !strcmp(name, "cuptiActivityEnable") ? (void *)(uintptr_t)ours : NULL;
}

static void *redirect(void *unused)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE))
		cuda_redirect_imports();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 2 || pthread_create(&thread, NULL, redirect, NULL))
		return 2;
	for (int i = 0; i < LOADS; i++) {
		void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		const struct late_tool *tool = library ? dlsym(library, "late_tool") : NULL;

		if (!tool) {
			printf("%s\n", dlerror());
			return 1;
		}
		/* The test's time limit ends it. */
		while (tool->enable() != (void *)(uintptr_t)ours)
			;
		dlclose(library);
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return cuda_imports_were_redirected() ? 0 : 1;
}
