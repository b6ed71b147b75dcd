/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds CUPTI: the copy that the process has loaded, else the one that its libraries would load,
 * else the toolkit's; never a second copy.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/calls/cuda_calls.h"
#include "backends/cuda/cupti/cupti_device.h"

#define PATH_BYTES 1024
#define MAX_FOLDERS 64
#define OLDEST_VERSION 17 /* CUDA 11.6: records have all fields that we read */

struct cupti_functions cupti;

/*
 * All functions that we or other tools call, looked up at once: callbacks must not wait for the
 * dynamic linker's lock.
 */
static struct {
	const char *name;
	void *function; /* NULL: not in this version */
} by_name[] = { { "cuptiPCSamplingEnable", NULL },
		{ "cuptiPCSamplingDisable", NULL },
		{ "cuptiPCSamplingGetData", NULL },
		{ "cuptiPCSamplingGetNumStallReasons", NULL },
		{ "cuptiPCSamplingGetStallReasons", NULL },
		{ "cuptiPCSamplingSetConfigurationAttribute", NULL },
		{ "cuptiGetCubinCrc", NULL },
#define CUPTI_FUNCTION(name, parameters) { "cupti" #name, NULL },
		CUPTI_FUNCTIONS(CUPTI_FUNCTION)
#undef CUPTI_FUNCTION
};
#define NAMES (sizeof(by_name) / sizeof(by_name[0]))

static void *library;
static uint32_t version;
static bool is_ended; /* by another tool; atomic */
static char path[PATH_BYTES];

/* Sonames, newest first. A CUPTI newer than the driver does not work with it. */
static const struct {
	const char *name;
	int major;
} sonames[] = {
	{ "libcupti.so.13", 13 },   { "libcupti.so.12", 12 },   { "libcupti.so.11.8", 11 },
	{ "libcupti.so.11.7", 11 }, { "libcupti.so.11.6", 11 },
};

/* ---- libraries of the process ---- */

static const char *base_name(const char *of)
{
	const char *slash = strrchr(of, '/');

	return slash ? slash + 1 : of;
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

struct mapped {
	char cupti[PATH_BYTES];                /* "": none */
	char folders[MAX_FOLDERS][PATH_BYTES]; /* folders with CUDA libraries */
	size_t folder_count;
	const char *rival;
};

static void keep_folder(struct mapped *mapped, const char *of, size_t length, const char *below)
{
	char folder[PATH_BYTES];

	if (mapped->folder_count >= MAX_FOLDERS ||
	    snprintf(folder, sizeof(folder), "%.*s%s", (int)length, of, below) >=
		    (int)sizeof(folder))
		return;
	for (size_t i = 0; i < mapped->folder_count; i++)
		if (!strcmp(mapped->folders[i], folder))
			return;
	memcpy(mapped->folders[mapped->folder_count++], folder, sizeof(folder));
}

/*
 * Wheels are installed side by side: nvidia/cuda_runtime/lib, nvidia/cuda_cupti/lib; since CUDA 13
 * all in nvidia/cu13/lib. PyTorch's own is in torch/lib.
 */
static void keep_folders(struct mapped *mapped, const char *name)
{
	const char *base = base_name(name), *wheel = strstr(name, "/nvidia/");
	size_t folder = (size_t)(base - name);

	if (wheel) {
		size_t length = (size_t)(wheel - name) + strlen("/nvidia/");

		keep_folder(mapped, name, length, "cuda_cupti/lib/");
		keep_folder(mapped, name, length, "cu13/lib/");
		keep_folder(mapped, name, length, "cu12/lib/");
	}
	if (starts_with(base, "libtorch") || starts_with(base, "libc10_cuda")) {
		keep_folder(mapped, name, folder, "../../nvidia/cuda_cupti/lib/");
		keep_folder(mapped, name, folder, "../../nvidia/cu13/lib/");
		keep_folder(mapped, name, folder, "");
	}
	if (starts_with(base, "libcudart.so")) {
		keep_folder(mapped, name, folder, "");
		keep_folder(mapped, name, folder, "../extras/CUPTI/lib64/");
	}
}

static int look_at(struct dl_phdr_info *info, size_t bytes, void *to)
{
	struct mapped *mapped = to;
	const char *name = info->dlpi_name, *base;

	(void)bytes;
	if (!name || *name != '/' || strlen(name) >= PATH_BYTES)
		return 0;
	base = base_name(name);
	if (starts_with(base, "libcupti.so") && !mapped->cupti[0])
		memcpy(mapped->cupti, name, strlen(name) + 1);
	else if (starts_with(base, "libToolsInjection"))
		mapped->rival = "Nsight is injected into this process";
	keep_folders(mapped, name);
	return 0;
}

static struct mapped *look(void)
{
	struct mapped *mapped = calloc(1, sizeof(*mapped));

	if (mapped)
		dl_iterate_phdr(look_at, mapped);
	return mapped;
}

static void *find(const char *name)
{
	for (size_t i = 0; i < NAMES; i++)
		if (!strcmp(by_name[i].name, name))
			return by_name[i].function;
	return NULL;
}

/* Only looks for a loaded copy, and keeps it loaded. */
static void *find_mapped(void)
{
	static void *found;
	void *handle = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
	struct mapped *mapped = handle ? NULL : look();

	if (mapped && mapped->cupti[0]) {
		handle = dlopen(mapped->cupti, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
		__atomic_store_n(&found, handle, __ATOMIC_RELEASE);
	}
	free(mapped);
	return handle;
}

void *cuda_cupti_mapped(const char *name)
{
	void *handle;

	if (__atomic_load_n(&library, __ATOMIC_ACQUIRE))
		return find(name);
	handle = find_mapped();
	return handle ? cuda_symbol(handle, name) : NULL;
}

/* ---- other tools ---- */

extern char **environ;

const char *cuda_cupti_rival(void)
{
	struct mapped *mapped = look();
	const char *rival = mapped ? mapped->rival : NULL;
	const char *injection = getenv("CUDA_INJECTION64_PATH");

	free(mapped);
	if (rival)
		return rival;
	if (injection && *injection && !starts_with(base_name(injection), "libtracesmith"))
		return "CUDA_INJECTION64_PATH names another tool";
	for (char **at = environ; at && *at; at++)
		if (starts_with(*at, "NSYS_") || starts_with(*at, "NV_NSIGHT_") ||
		    starts_with(*at, "NV_COMPUTE_PROFILER_"))
			return "the program runs under Nsight";
	return NULL;
}

/* ---- loading ---- */

static int driver_major(void)
{
	int (*get)(int *) = (int (*)(int *))cuda_driver("cuDriverGetVersion");
	int number = 0;

	if (!get)
		return 0;
	cuda_thread.is_ours++;
	if (get(&number))
		number = 0;
	cuda_thread.is_ours--;
	return number / 1000;
}

static bool fits_driver(int major, int driver)
{
	return !driver || major <= driver;
}

static void *open_in(const char *folder, int driver)
{
	char file[PATH_BYTES];
	void *handle;

	for (size_t i = 0; i < sizeof(sonames) / sizeof(sonames[0]); i++) {
		if (!fits_driver(sonames[i].major, driver) ||
		    snprintf(file, sizeof(file), "%s%s", folder, sonames[i].name) >=
			    (int)sizeof(file))
			continue;
		if (strchr(file, '/') && access(file, R_OK))
			continue;
		handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
		if (handle)
			return handle;
	}
	return NULL;
}

static void *open_toolkit(const char *root, int driver)
{
	static const char *const below[] = {
		"/extras/CUPTI/lib64/",
		"/lib64/",
		"/lib/",
		"/targets/x86_64-linux/lib/",
		"/targets/sbsa-linux/lib/",
		"/targets/aarch64-linux/lib/",
	};
	char folder[PATH_BYTES];
	void *handle = NULL;

	for (size_t i = 0; root && *root && !handle && i < sizeof(below) / sizeof(below[0]); i++)
		if (snprintf(folder, sizeof(folder), "%s%s", root, below[i]) < (int)sizeof(folder))
			handle = open_in(folder, driver);
	return handle;
}

static void *open_any(const struct mapped *mapped)
{
	const char *const roots[] = { getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda",
				      "/opt/cuda" };
	int driver = driver_major();
	void *handle;

	if (mapped->cupti[0])
		return dlopen(mapped->cupti, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
	for (size_t i = 0; i < mapped->folder_count; i++) {
		handle = open_in(mapped->folders[i], driver);
		if (handle)
			return handle;
	}
	handle = open_in("", driver); /* as the dynamic linker finds it */
	for (size_t i = 0; !handle && i < sizeof(roots) / sizeof(roots[0]); i++)
		handle = open_toolkit(roots[i], driver);
	return handle;
}

static void fill(void *handle)
{
	struct link_map *map = NULL;

	for (size_t i = 0; i < NAMES; i++)
		by_name[i].function = cuda_symbol(handle, by_name[i].name);
#define CUPTI_FUNCTION(name, parameters)                    \
	do {                                                \
		void *found = find("cupti" #name);          \
		memcpy(&cupti.name, &found, sizeof(found)); \
	} while (0);
	CUPTI_FUNCTIONS(CUPTI_FUNCTION)
#undef CUPTI_FUNCTION
	if (!dlinfo(handle, RTLD_DI_LINKMAP, &map) && map && map->l_name)
		snprintf(path, sizeof(path), "%s", map->l_name);
}

static bool is_complete(void)
{
	return cupti.GetVersion && cupti.Subscribe && cupti.EnableCallback &&
	       cupti.ActivityRegisterCallbacks && cupti.ActivityEnable && cupti.ActivityDisable &&
	       cupti.ActivityFlushAll && cupti.ActivityGetNextRecord;
}

bool cuda_cupti_open(char *why, size_t why_bytes)
{
	struct mapped *mapped;
	void *handle = NULL;

	if (__atomic_load_n(&library, __ATOMIC_ACQUIRE))
		return true;
	mapped = look();
	if (mapped)
		handle = open_any(mapped);
	free(mapped);
	dlerror();
	if (!handle) {
		snprintf(why, why_bytes, "no libcupti found for this driver");
		return false;
	}
	fill(handle);
	if (!is_complete() || cupti.GetVersion(&version) || version < OLDEST_VERSION) {
		snprintf(why, why_bytes, "CUPTI version %u is too old", version);
		return false;
	}
	__atomic_store_n(&library, handle, __ATOMIC_RELEASE);
	return true;
}

const char *cuda_cupti_path(void)
{
	return path;
}

void *cuda_cupti(const char *name)
{
	return __atomic_load_n(&library, __ATOMIC_ACQUIRE) && !cuda_cupti_is_ended() ? find(name)
										     : NULL;
}

void cuda_cupti_end(void)
{
	__atomic_store_n(&is_ended, true, __ATOMIC_SEQ_CST);
}

bool cuda_cupti_is_ended(void)
{
	return __atomic_load_n(&is_ended, __ATOMIC_SEQ_CST);
}

uint32_t cuda_cupti_version(void)
{
	return __atomic_load_n(&library, __ATOMIC_ACQUIRE) ? version : 0;
}
