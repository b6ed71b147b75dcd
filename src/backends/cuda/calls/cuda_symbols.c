/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program gets when it looks up a driver function with dlsym() or cuGetProcAddress(): the
 * wrapper of the function found, identified by its address. No lock: tables are filled by
 * compare-and-swap, and filling them twice is harmless.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "backends/cuda/calls/cuda_calls.h"
#include "backends/cuda/cupti/cupti_device.h"

struct answer {
	void *address;
	uintptr_t is_given; /* 0: call the real dlsym() */
};
struct answer cuda_symbol_resolve(void *handle, const char *name, void *caller);

/* ---- wrappers, by address of the real function ---- */

#define SLOTS 1024u

struct slot {
	uintptr_t address; /* 0: free */
	uint32_t call;     /* plus 1; 0: not written yet */
};
static struct slot slots[SLOTS];
static bool is_filled;

static uint32_t slot_of(uintptr_t address)
{
	return (uint32_t)((address >> 4) * 0x9e3779b97f4a7c15u >> 54) % SLOTS;
}

/* If a function has several names, the first one stays. */
static void insert(uintptr_t address, uint32_t call)
{
	for (uint32_t i = 0, at = slot_of(address); i < SLOTS; i++, at = (at + 1) % SLOTS) {
		uintptr_t found = 0;

		if (__atomic_compare_exchange_n(&slots[at].address, &found, address, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&slots[at].call, call + 1, __ATOMIC_RELEASE);
			return;
		}
		if (found == address)
			return;
	}
}

static struct cuda_call *find_call(uintptr_t address)
{
	for (uint32_t i = 0, at = slot_of(address); i < SLOTS; i++, at = (at + 1) % SLOTS) {
		uintptr_t found = __atomic_load_n(&slots[at].address, __ATOMIC_ACQUIRE);
		uint32_t call = __atomic_load_n(&slots[at].call, __ATOMIC_ACQUIRE);

		if (!found)
			return NULL;
		if (found == address)
			return call ? &cuda_calls[call - 1] : NULL;
	}
	return NULL;
}

/*
 * If another library after ours also replaces a function, only calls by exported name reach our
 * wrapper: otherwise it would find itself after us, and we ourselves after it. CUPTI's callback
 * sees the calls that we miss.
 */
static bool is_replaced_by_others(const char *name, void *address)
{
	void *next = cuda_symbol(RTLD_NEXT, name);

	return next && next != address;
}

static void fill(void)
{
	if (__atomic_load_n(&is_filled, __ATOMIC_ACQUIRE) || !cuda_driver_library(false))
		return;
	for (uint32_t i = 0; i < CUDA_CALL_COUNT; i++) {
		void *address = cuda_driver(cuda_calls[i].name);
		cuda_function none = NULL;

		if (!address || is_replaced_by_others(cuda_calls[i].name, address))
			continue;
		__atomic_compare_exchange_n(&cuda_calls[i].real, &none,
					    (cuda_function)cuda_counted(&cuda_calls[i], address),
					    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
		insert((uintptr_t)address, i);
	}
	__atomic_store_n(&is_filled, true, __ATOMIC_RELEASE);
}

/* ---- cuGetProcAddress ---- */

#define CUDA_ERROR_NOT_FOUND 500

typedef int (*get_proc_address_function)(const char *name, void **ret_address, int version,
					 uint64_t flags);
typedef int (*get_proc_address_v2_function)(const char *name, void **ret_address, int version,
					    uint64_t flags, int *ret_status);

__attribute__((visibility("default"))) int wrapped_get_proc_address(
	const char *name, void **ret_address, int version,
	uint64_t flags) __asm__("cuGetProcAddress");
__attribute__((visibility("default"))) int wrapped_get_proc_address_v2(
	const char *name, void **ret_address, int version, uint64_t flags,
	int *ret_status) __asm__("cuGetProcAddress_v2");

static void *real_get_proc_address(const char *name)
{
	void *found = cuda_symbol(RTLD_NEXT, name);
	void *driver;

	if (found)
		return found;
	driver = cuda_driver_library(true);
	found = driver ? cuda_symbol(driver, name) : NULL;
	dlerror();
	return found;
}

static void replace(const char *name, void **address, int result)
{
	int saved = errno;

	if (!result && address && *address && name && !cuda_thread.is_ours) {
		*address = cuda_symbol_for(name, *address);
		dlerror();
	}
	errno = saved;
}

int wrapped_get_proc_address(const char *name, void **ret_address, int version, uint64_t flags)
{
	static get_proc_address_function real;
	int result;

	if (!real)
		real = (get_proc_address_function)real_get_proc_address("cuGetProcAddress");
	if (!real)
		return CUDA_ERROR_NOT_FOUND;
	result = real(name, ret_address, version, flags);
	replace(name, ret_address, result);
	return result;
}

int wrapped_get_proc_address_v2(const char *name, void **ret_address, int version, uint64_t flags,
				int *ret_status)
{
	static get_proc_address_v2_function real;
	int result;

	if (!real)
		real = (get_proc_address_v2_function)real_get_proc_address("cuGetProcAddress_v2");
	if (!real)
		return CUDA_ERROR_NOT_FOUND;
	result = real(name, ret_address, version, flags, ret_status);
	replace(name, ret_address, result);
	return result;
}

/* ---- results of lookups ---- */

static void *wrapper_of_get_proc_address(void *address)
{
	if (address == cuda_driver("cuGetProcAddress_v2"))
		return (void *)wrapped_get_proc_address_v2;
	if (address == cuda_driver("cuGetProcAddress"))
		return (void *)wrapped_get_proc_address;
	return NULL;
}

/* A function may have several names: record the one that was looked up. */
static struct cuda_call *find_named(const char *name, void *address)
{
	struct cuda_call *call = find_call((uintptr_t)address);

	if (!call || !strcmp(call->name, name))
		return call;
	for (size_t i = 0; i < CUDA_CALL_COUNT; i++)
		if (!strcmp(cuda_calls[i].name, name) &&
		    (void *)__atomic_load_n(&cuda_calls[i].real, __ATOMIC_ACQUIRE) ==
			    cuda_counted(&cuda_calls[i], address))
			return &cuda_calls[i];
	return call;
}

void *cuda_symbol_for(const char *name, void *address)
{
	struct cuda_call *call;
	void *given;

	fill();
	call = find_named(name, address);
	if (call)
		return (void *)call->wrapper;
	given = wrapper_of_get_proc_address(address);
	if (given || is_replaced_by_others(name, address))
		return given ? given : address;
	given = cuda_stub(name, address);
	return given ? given : address;
}

/* ---- dlsym() ---- */

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* CUPTI and the driver itself get the real functions. */
static bool is_insider(void *caller)
{
	static const char *const names[] = { "libcupti.so", "libcuda.so", "libnvperf",
					     "libcheckpoint.so", "libnvidia-" };
	const char *name;
	Dl_info info;

	if (cuda_thread.is_ours)
		return true;
	if (!dladdr(caller, &info) || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (starts_with(name, names[i]))
			return true;
	return false;
}

static bool is_of_library(void *address, const char *of)
{
	Dl_info info;
	const char *name;

	if (!dladdr(address, &info) || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	return starts_with(name ? name + 1 : info.dli_fname, of);
}

/*
 * Our own wrapper, found by a lookup in all libraries: without us, it would have found the driver's
 * function, or none.
 */
static bool is_ours(void *address)
{
	return is_of_library(address, "libtracesmith-backend-cuda");
}

static void *answer_driver(const char *name, void *address)
{
	if (is_ours(address))
		return cuda_driver(name) ? address : NULL;
	return address == cuda_driver(name) ? cuda_symbol_for(name, address) : address;
}

static void *answer_cupti(const char *name, void *address)
{
	if (is_ours(address))
		return cuda_cupti_mapped(name) ? address : NULL;
	return is_of_library(address, "libcupti") ? cuda_other_tool(name) : NULL;
}

/*
 * Fails as the real dlsym() does, because callers print dlerror(): looks the name up in libc, which
 * has none of these functions.
 */
static struct answer answer_none(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);

	if (libc)
		cuda_symbol(libc, name);
	return (struct answer){ NULL, 1 };
}

static struct answer answer(void *handle, const char *name, void *caller)
{
	struct answer given = { NULL, 0 };
	void *address, *replaced;

	if (is_insider(caller))
		return given;
	address = cuda_symbol(handle, name);
	if (!address)
		return given; /* the real one fails, and sets dlerror() */
	if (starts_with(name, "cupti"))
		replaced = answer_cupti(name, address);
	else if (starts_with(name, "cu"))
		replaced = answer_driver(name, address);
	else
		replaced = cuda_collective_for(handle, name, address, caller);
	if (!replaced && is_ours(address))
		return answer_none(name);
	if (replaced && replaced != address)
		given = (struct answer){ replaced, 1 };
	dlerror();
	return given;
}

/* cuLaunchKernel, cuptiSubscribe, ncclSend; not cublasCreate, cudaMalloc, curl_easy_init. */
static bool is_ours_to_answer(const char *name)
{
	if (name[0] == 'c' && name[1] == 'u')
		return (name[2] >= 'A' && name[2] <= 'Z') || starts_with(name, "cupti");
	return name[0] == 'n' && starts_with(name, "nccl");
}

/*
 * Called by cuda_dlsym.c for every name that is looked up. RTLD_NEXT is left alone: it depends on
 * the caller.
 */
__attribute__((visibility("hidden"))) struct answer cuda_symbol_resolve(void *handle,
									const char *name,
									void *caller)
{
	struct answer none = { NULL, 0 }, given;
	int saved;

	if (!__atomic_load_n(&cuda_next_dlsym, __ATOMIC_ACQUIRE))
		cuda_find_dlsym();
	if (!name || handle == RTLD_NEXT || !is_ours_to_answer(name))
		return none;
	saved = errno;
	given = answer(handle, name, caller);
	errno = saved;
	return given;
}
