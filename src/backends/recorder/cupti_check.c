/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI: which copy would be used, whether it matches the driver, and whether it permits tracing.
 * Loads it and enables kernel tracing; runs no kernel.
 */
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/recorder/cuda_checks.h"
#include "base/finding.h"
#include "base/memory.h"

#define ACTIVITY_CONCURRENT_KERNEL 10
#define NOT_COMPATIBLE 14
/* CUDA 11.8 and 13.2: src/backends/cuda knows the records of these and the versions in between. */
#define OLDEST_KNOWN 18u
#define NEWEST_KNOWN 130299u
/* Releases with the same interface, newest first. */
#define MAJORS "{13,12,11*}"

struct cupti {
	void *library;
	char path[PATH_MAX];
	uint32_t version; /* 130001: CUDA 13.0 */
	int (*subscribe)(void **subscriber, void *callback, void *context);
	int (*unsubscribe)(void *subscriber);
	int (*enable)(int kind);
};

/* ---- search ---- */

/*
 * From CUDA 13 on, major * 10000 and so on. Older versions have numbers of their own: 19 came with
 * CUDA 12.0, 13 with 11.0.
 */
static unsigned int major_of(uint32_t version)
{
	return version >= 100000 ? version / 10000 : version >= 19 ? 12 : version >= 13 ? 11 : 10;
}

static bool load(const char *path, struct cupti *cupti)
{
	int (*get_version)(uint32_t * version);
	Dl_info info;

	cupti->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!cupti->library)
		return false;
	*(void **)&get_version = dlsym(cupti->library, "cuptiGetVersion");
	*(void **)&cupti->subscribe = dlsym(cupti->library, "cuptiSubscribe");
	*(void **)&cupti->unsubscribe = dlsym(cupti->library, "cuptiUnsubscribe");
	*(void **)&cupti->enable = dlsym(cupti->library, "cuptiActivityEnable");
	if (!get_version || !cupti->subscribe || !cupti->unsubscribe || !cupti->enable ||
	    get_version(&cupti->version)) {
		dlclose(cupti->library);
		return false;
	}
	snprintf(cupti->path, sizeof(cupti->path), "%s",
		 dladdr(*(void **)&get_version, &info) && info.dli_fname ? info.dli_fname : path);
	return true;
}

/*
 * Loads a copy that supports a driver of this CUDA major version (0: any). If it is too new, its
 * version stays in `cupti`.
 */
static bool load_fitting(const char *path, unsigned int major, struct cupti *cupti)
{
	struct cupti found = { 0 };

	if (!load(path, &found))
		return false;
	*cupti = found;
	if (!major || major_of(found.version) <= major)
		return true;
	dlclose(found.library);
	cupti->library = NULL;
	return false;
}

static bool load_of_pattern(const char *pattern, unsigned int major, struct cupti *cupti)
{
	glob_t found;
	bool is_loaded = false;

	if (glob(pattern, GLOB_BRACE, NULL, &found))
		return false;
	for (size_t i = 0; i < found.gl_pathc && !is_loaded; i++)
		is_loaded = load_fitting(found.gl_pathv[i], major, cupti);
	globfree(&found);
	return is_loaded;
}

static bool load_below(const char *variable, const char *below, unsigned int major,
		       struct cupti *cupti)
{
	const char *folder = getenv(variable);
	char pattern[PATH_MAX];

	if (!folder || !*folder)
		return false;
	snprintf(pattern, sizeof(pattern), "%s/%s/libcupti.so." MAJORS, folder, below);
	return load_of_pattern(pattern, major, cupti);
}

static bool search(unsigned int major, struct cupti *cupti)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so" };
	static const char *const patterns[] = {
		"/usr/local/cuda/{extras/CUPTI/lib64,lib64,targets/*/lib}/libcupti.so." MAJORS,
		"/usr/local/cuda-*/{extras/CUPTI/lib64,lib64,targets/*/lib}/libcupti.so." MAJORS,
		"/usr/{local/,}lib/python3*/{site,dist}-packages/nvidia/{cu13,cuda_cupti}/lib/libcupti.so." MAJORS,
		"/opt/*/lib/python3*/site-packages/nvidia/{cu13,cuda_cupti}/lib/libcupti.so." MAJORS,
	};

	for (size_t i = 0; i < TS_ARRAY_SIZE(names); i++) {
		if (load_fitting(names[i], major, cupti))
			return true;
	}
	if (load_below("CUDA_HOME", "extras/CUPTI/lib64", major, cupti) ||
	    load_below("CUDA_HOME", "lib64", major, cupti) ||
	    load_below("CONDA_PREFIX", "lib", major, cupti) ||
	    load_below("VIRTUAL_ENV", "lib/python3*/site-packages/nvidia/{cu13,cuda_cupti}/lib",
		       major, cupti))
		return true;
	for (size_t i = 0; i < TS_ARRAY_SIZE(patterns); i++) {
		if (load_of_pattern(patterns[i], major, cupti))
			return true;
	}
	return false;
}

/* ---- diagnosis ---- */

static const struct outcome {
	int code;
	const char *why;
	const char *fix;
} outcomes[] = {
	{ NOT_COMPATIBLE, "it is not compatible with the driver", NULL },
	{ 15, "it cannot be initialized (is libcuda a stub library?)", NULL },
	{ 26, "another profiler uses the hardware (DCGM?)", "dcgmi profiling --pause" },
	{ 33, "not supported on this virtual GPU", NULL },
	{ 35, "permission denied: see gpu_counters", NULL },
	{ 38, "an older profiling interface is in use", NULL },
	{ 39, "another tool uses it (nsys, ncu, a framework's profiler)", NULL },
	{ 40, "not supported on this virtual GPU", NULL },
	{ 41, "not supported with confidential computing", NULL },
	{ 43, "not supported with MIG", NULL },
	{ 45, "not supported under WSL", NULL },
};

static void suggest_version(int driver, struct ts_finding *finding)
{
	int major = driver / 1000;

	if (major >= 13)
		ts_finding_fix(finding, "pip install nvidia-cuda-cupti");
	else
		ts_finding_fix(finding, "pip install nvidia-cuda-cupti-cu%d", major);
	ts_finding_note(finding, "or from NVIDIA's packages: sudo apt install cuda-cupti-%d-%d",
			major, driver % 1000 / 10);
}

static void classify_code(const char *call, int code, int driver, struct ts_finding *finding)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(outcomes); i++) {
		if (outcomes[i].code == code) {
			ts_finding_set(finding, TS_CHECK_NO, "%s returned %d: %s", call, code,
				       outcomes[i].why);
			ts_finding_fix(finding, "%s", outcomes[i].fix ? outcomes[i].fix : "");
			if (code == NOT_COMPATIBLE)
				suggest_version(driver, finding);
			return;
		}
	}
	ts_finding_set(finding, TS_CHECK_UNKNOWN, "%s returned %d", call, code);
}

static void on_callback(void *context, int domain, uint32_t id, const void *data)
{
}

/* CUPTI permits tracing; check that its records are known. */
static void classify_version(const struct cupti *cupti, struct ts_finding *finding)
{
	bool is_known = cupti->version >= OLDEST_KNOWN && cupti->version <= NEWEST_KNOWN;

	ts_finding_set(finding, is_known ? TS_CHECK_YES : TS_CHECK_LIMITED,
		       "CUDA %u (%u), %s: kernels can be traced%s", major_of(cupti->version),
		       cupti->version, cupti->path,
		       is_known ? ""
		       : cupti->version < OLDEST_KNOWN
			       ? ", but it is older than CUDA 11.8"
			       : "; newer than the tested versions (CUDA 11.8 to 13.2)");
	if (cupti->version < OLDEST_KNOWN)
		ts_finding_fix(finding, "pip install nvidia-cuda-cupti-cu11");
}

static void try_tracing(const struct cupti *cupti, int driver, struct ts_finding *finding)
{
	void *subscriber = NULL;
	int code = cupti->subscribe(&subscriber, (void *)(uintptr_t)on_callback, NULL);

	if (code) {
		classify_code("cuptiSubscribe", code, driver, finding);
		return;
	}
	code = cupti->enable(ACTIVITY_CONCURRENT_KERNEL);
	if (code)
		classify_code("cuptiActivityEnable", code, driver, finding);
	else
		classify_version(cupti, finding);
	cupti->unsubscribe(subscriber);
}

static void classify_none(const struct cupti *newest, int driver, struct ts_finding *finding)
{
	if (newest->path[0])
		ts_finding_set(finding, TS_CHECK_NO, "%s is for CUDA %u, the driver for CUDA %d",
			       newest->path, major_of(newest->version), driver / 1000);
	else
		ts_finding_set(finding, TS_CHECK_NO, "libcupti.so was not found");
	suggest_version(driver, finding);
}

void ts_check_cupti(struct ts_finding *ret_finding)
{
	struct cupti cupti = { 0 };
	struct ts_finding without = { 0 };
	struct ts_cuda cuda;
	int driver = 0;

	if (ts_cuda_start(&cuda, &without)) {
		cuda.driver_version(&driver);
		if (search((unsigned int)driver / 1000, &cupti))
			try_tracing(&cupti, driver, ret_finding);
		else
			classify_none(&cupti, driver, ret_finding);
		return;
	}
	if (!search(0, &cupti))
		ts_finding_set(ret_finding, TS_CHECK_ABSENT,
			       "not found, and not usable without a CUDA driver");
	else
		ts_finding_set(ret_finding,
			       without.state == TS_CHECK_ABSENT ? TS_CHECK_ABSENT
								: TS_CHECK_UNKNOWN,
			       "found %s, but cannot check it without a CUDA driver: see cuda",
			       cupti.path);
}
