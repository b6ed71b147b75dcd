/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls every function of cuda_calls.def as libcudart does: `call_by_handle dlsym` by dlopen() and
 * dlsym(), `call_by_handle ask` by cuGetProcAddress, itself found by dlsym() and by
 * cuGetProcAddress. `call_by_handle none` uses no CUDA and checks that none is loaded;
 * `call_by_handle cupti` looks up only CUPTI; `call_by_handle count` initializes CUDA and calls
 * functions without a wrapper. Prints errors.
 */
#include "cuda/every_call.h"

typedef int (*get_proc_address_function)(const char *name, void **address, int version,
					 uint64_t flags, int *status);

static void *library;
static get_proc_address_function get_proc_address;

static void *by_dlsym(const char *name)
{
	void *found;

	dlerror();
	found = dlsym(library, name);
	if (dlerror())
		fail_at(name, "found, and dlerror() says something");
	return found;
}

static void *by_proc_address(const char *name)
{
	void *found = NULL;
	int status = -1;

	if (get_proc_address(name, &found, 13000, 0, &status) || status)
		fail_at(name, "asked for in vain");
	return found;
}

/* Functions without a wrapper: floating point, and a call count that a recorder can read. */
static void try_others(void *(*find)(const char *name))
{
	double (*unheard_of)(double, int, double) =
		(double (*)(double, int, double))find("cuUnheardOf");
	int (*get_count)(int *) = (int (*)(int *))find("cuDeviceGetCount");
	int count = 0;

	if (!unheard_of || unheard_of(1.5, 4, 0.25) != 6.25)
		fail_at("cuUnheardOf", "does something else");
	for (int i = 0; i < 5; i++)
		if (!get_count || get_count(&count) || count != 1)
			fail_at("cuDeviceGetCount", "does something else");
	if (find("cuUnheardOf") != (void *)unheard_of)
		fail_at("cuUnheardOf", "is not the same twice");
}

static void look_for_missing(void)
{
	if (dlsym(library, "cuNobodyHasThis") || !dlerror())
		fail_at("cuNobodyHasThis", "is there, or dlerror() says nothing");
	if (dlsym(RTLD_DEFAULT, "cuNobodyHasThis"))
		fail_at("cuNobodyHasThis", "is there");
}

/* Missing, and dlerror() names it: callers print that. */
static void see_missing(void *handle, const char *name)
{
	const char *error;

	dlerror();
	if (dlsym(handle, name))
		fail_at(name, "is there");
	error = dlerror();
	if (!error || !strstr(error, name))
		fail_at(name, "is missing, and dlerror() does not say so");
	if (dlerror())
		fail_at(name, "is missing, and dlerror() says so twice");
}

/* A program without CUDA sees none. */
static int see_none(void)
{
	static const char *const names[] = { "cuInit", "cuLaunchKernel", "cuGetProcAddress_v2",
					     "ncclAllReduce", "cuptiSubscribe" };
	void *program = dlopen(NULL, RTLD_LAZY);

	if (dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY))
		fail_at("libcuda.so.1", "is loaded");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		see_missing(RTLD_DEFAULT, names[i]);
		see_missing(program, names[i]);
	}
	if (dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY))
		fail_at("libcuda.so.1", "has been loaded");
	if (dlsym(RTLD_DEFAULT, "printf") != (void *)printf)
		fail_at("printf", "is another");
	return every_failures ? 1 : 0;
}

/* A CUPTI that is globally visible is found, though its names resolve to our functions. */
static int see_cupti(void)
{
	void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_GLOBAL);

	if (!cupti)
		fail_at("libcupti.so.13", dlerror());
	if (!dlsym(RTLD_DEFAULT, "cuptiSubscribe") || !dlsym(cupti, "cuptiSubscribe") ||
	    !dlsym(dlopen(NULL, RTLD_LAZY), "cuptiSubscribe"))
		fail_at("cuptiSubscribe", "is missing");
	see_missing(RTLD_DEFAULT, "cuptiNobodyHasThis");
	return every_failures ? 1 : 0;
}

/* Makes counts be emitted at exit. */
static int count_others(void)
{
	void (*work)(bool) = (void (*)(bool))dlsym(library, "stand_in_work");
	int (*init)(unsigned int) = (int (*)(unsigned int))dlsym(library, "cuInit");

	work(true);
	if (init(0))
		fail_at("cuInit", "fails");
	try_others(by_dlsym);
	return every_failures ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "dlsym";
	void *(*find)(const char *name) = strcmp(way, "ask") ? by_dlsym : by_proc_address;
	size_t wrapped = 0;

	if (!strcmp(way, "none"))
		return see_none();
	if (!strcmp(way, "cupti"))
		return see_cupti();
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		printf("%s\n", dlerror());
		return 2;
	}
	if (!strcmp(way, "count"))
		return count_others();
	every_last = (struct stand_in_call * (*)(void)) dlsym(library, "stand_in_last");
	get_proc_address = (get_proc_address_function)dlsym(library, "cuGetProcAddress_v2");
	if (find == by_proc_address)
		get_proc_address = (get_proc_address_function)by_proc_address("cuGetProcAddress");
	for (size_t i = 0; i < EVERY_CALLS; i++) {
		void *function = find(every_calls[i].name);

		wrapped += is_wrapped(function);
		try_call(i, function);
	}
	try_others(find);
	look_for_missing();
	printf("%zu of %zu wrapped, %d failures\n", wrapped, EVERY_CALLS, every_failures);
	return every_failures ? 1 : 0;
}
