/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of `tracesmith doctor opencl`: the platforms and devices that the loader finds, how
 * their clocks can be tied to ours, whether the loader supports layers (a tracer gets between a
 * program and its platform as a layer), whether ours was built, and whether there is a simulator
 * that checks kernels in a replay.
 */
#include "backends/recorder/opencl_checks.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/recorder/agent_library.h"
#include "base/finding.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/text.h"
#include "tracesmith_config.h"

#define PLATFORM_NAME 0x0902
#define PLATFORM_HOST_TIMER_RESOLUTION 0x0905
#define DEVICE_NAME 0x102B
#define DEVICE_TYPE_ALL 0xFFFFFFFFu
#define PLATFORM_NOT_FOUND (-1001)
#define LOADER "libOpenCL.so.1"
#define VENDORS "/etc/OpenCL/vendors"
#if defined(__aarch64__)
#define SYSTEM_FOLDER "/usr/lib/aarch64-linux-gnu"
#else
#define SYSTEM_FOLDER "/usr/lib/x86_64-linux-gnu"
#endif
#define PLATFORMS_AT_MOST 16
#define DEVICES_AT_MOST 16
#define BY_NAME "libtracesmith-opencl.so"

struct opencl {
	char path[256]; /* path of the loader */
	int32_t (*platforms)(uint32_t entries, void **platforms, uint32_t *count);
	int32_t (*platform_info)(void *platform, uint32_t name, size_t bytes, void *value,
				 size_t *size);
	int32_t (*devices)(void *platform, uint64_t type, uint32_t entries, void **devices,
			   uint32_t *count);
	/* NULL if the loader lacks it. */
	int32_t (*device_info)(void *device, uint32_t name, size_t bytes, void *value,
			       size_t *size);
	int32_t (*timers)(void *device, uint64_t *device_ns, uint64_t *host_ns);
};

/* ---- the loader ---- */

static bool load(const char *name, struct opencl *opencl, struct ts_finding *finding)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	const char *why = library ? NULL : dlerror();
	Dl_info info;

	*opencl = (struct opencl){ 0 };
	if (!library) {
		bool is_missing = why && strstr(why, "No such file");

		ts_finding_set(finding, is_missing ? TS_CHECK_ABSENT : TS_CHECK_NO, "%s",
			       is_missing ? "no OpenCL loader found (libOpenCL.so.1)" : why);
		ts_finding_fix(finding, "sudo apt install ocl-icd-libopencl1");
		return false;
	}
	*(void **)&opencl->platforms = dlsym(library, "clGetPlatformIDs");
	*(void **)&opencl->platform_info = dlsym(library, "clGetPlatformInfo");
	*(void **)&opencl->devices = dlsym(library, "clGetDeviceIDs");
	*(void **)&opencl->device_info = dlsym(library, "clGetDeviceInfo");
	*(void **)&opencl->timers = dlsym(library, "clGetDeviceAndHostTimer");
	if (!opencl->platforms || !opencl->platform_info || !opencl->devices) {
		ts_finding_set(finding, TS_CHECK_NO, "libOpenCL.so.1 lacks OpenCL functions");
		return false;
	}
	snprintf(opencl->path, sizeof(opencl->path), "%s",
		 dladdr(*(void **)&opencl->platforms, &info) && info.dli_fname ? info.dli_fname
									       : name);
	return true;
}

/* ---- no platform ---- */

/* Reports an ICD file that names a library that cannot be loaded; false if there is none. */
static bool find_broken_driver(const char *folder, struct ts_finding *finding)
{
	DIR *drivers = opendir(folder);
	struct dirent *entry;
	bool found = false;

	while (drivers && !found && (entry = readdir(drivers))) {
		char path[512], library[256];
		size_t length = strlen(entry->d_name);

		snprintf(path, sizeof(path), "%s/%.255s", folder, entry->d_name);
		if (length < 4 || strcmp(entry->d_name + length - 4, ".icd") != 0 ||
		    !ts_machine_read(path, library, sizeof(library)))
			continue;
		library[strcspn(library, "\r\n ")] = '\0';
		if (!dlopen(library, RTLD_LAZY | RTLD_LOCAL)) {
			ts_finding_set(finding, TS_CHECK_NO,
				       "the loader works, but %.64s names '%s', which cannot be "
				       "loaded",
				       entry->d_name, library);
			ts_finding_fix(finding, "dpkg -S %s", TS_SHELL(path));
			ts_finding_note(finding, "shows the package of the broken driver");
			found = true;
		}
	}
	if (drivers)
		closedir(drivers);
	return found;
}

static void classify_no_platform(struct ts_finding *finding)
{
	const char *folder = getenv("OCL_ICD_VENDORS");

	folder = folder && *folder ? folder : VENDORS;
	if (find_broken_driver(folder, finding))
		return;
	if (!access("/dev/nvidiactl", F_OK)) {
		ts_finding_set(finding, TS_CHECK_NO,
			       "no platform, although there is an NVIDIA GPU");
		ts_finding_fix(finding, "sudo sh -c 'mkdir -p " VENDORS
					" && echo libnvidia-opencl.so.1 >" VENDORS "/nvidia.icd'");
		ts_finding_note(finding, "%s",
				ts_machine_local()->container
					? "the container also needs "
					  "NVIDIA_DRIVER_CAPABILITIES=compute,utility"
					: "the library is part of the driver's package");
		return;
	} else {
		ts_finding_set(finding, TS_CHECK_ABSENT, "no platform (no file in %s)", folder);
	}
	ts_finding_fix(finding, "sudo apt install pocl-opencl-icd");
	ts_finding_note(finding, "runs OpenCL on the CPU");
}

/* ---- platforms ---- */

static void describe(const struct opencl *opencl, void **platforms, uint32_t count,
		     struct ts_finding *finding)
{
	uint32_t all_devices = 0;
	char text[320] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < TS_MIN(count, PLATFORMS_AT_MOST); i++) {
		char name[96] = "?";
		uint32_t devices = 0;
		int written;

		opencl->platform_info(platforms[i], PLATFORM_NAME, sizeof(name) - 1, name, NULL);
		if (opencl->devices(platforms[i], DEVICE_TYPE_ALL, 0, NULL, &devices))
			devices = 0;
		all_devices += devices;
		written = snprintf(text + used, sizeof(text) - used, "%s%s (%u device%s)",
				   i ? ", " : "", name, devices, devices == 1 ? "" : "s");
		if (written > 0)
			used = TS_MIN(used + (size_t)written, sizeof(text) - 1);
	}
	ts_finding_set(finding, all_devices ? TS_CHECK_YES : TS_CHECK_NO, "%u platform%s: %s",
		       count, count == 1 ? "" : "s", text);
	if (!all_devices)
		ts_finding_note(finding,
				"this user may have no access to device files: groups render and "
				"video");
}

void ts_check_opencl(struct ts_finding *ret_finding)
{
	void *platforms[PLATFORMS_AT_MOST] = { NULL };
	struct opencl opencl;
	uint32_t count = 0;
	int32_t code;

	if (!load(LOADER, &opencl, ret_finding))
		return;
	code = opencl.platforms(PLATFORMS_AT_MOST, platforms, &count);
	if (code == PLATFORM_NOT_FOUND || (!code && !count))
		classify_no_platform(ret_finding);
	else if (code)
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN, "clGetPlatformIDs returned %d", code);
	else
		describe(&opencl, platforms, count, ret_finding);
}

/* ---- devices ---- */

/*
 * True if the driver reads both clocks at once. Asks the platform first, since a driver without
 * this feature may crash in the call.
 */
static bool has_timers(const struct opencl *opencl, void *platform, void *device)
{
	uint64_t resolution = 0, device_ns = 0, host_ns = 0;

	return opencl->timers &&
	       !opencl->platform_info(platform, PLATFORM_HOST_TIMER_RESOLUTION, sizeof(resolution),
				      &resolution, NULL) &&
	       resolution && !opencl->timers(device, &device_ns, &host_ns) && device_ns;
}

/* Appends the devices of a platform; returns their number. */
static uint32_t list_devices(const struct opencl *opencl, void *platform, uint32_t before,
			     char *text, size_t bytes)
{
	void *devices[DEVICES_AT_MOST] = { NULL };
	uint32_t count = 0;

	if (opencl->devices(platform, DEVICE_TYPE_ALL, DEVICES_AT_MOST, devices, &count))
		return 0;
	count = TS_MIN(count, DEVICES_AT_MOST);
	for (uint32_t i = 0; i < count; i++) {
		size_t used = strlen(text);
		char name[128] = "?";

		if (devices[i])
			opencl->device_info(devices[i], DEVICE_NAME, sizeof(name) - 1, name, NULL);
		snprintf(text + used, bytes - used, "%s%.64s, clock %s", before + i ? "; " : "",
			 name,
			 devices[i] && has_timers(opencl, platform, devices[i])
				 ? "read together with the host clock"
				 : "correlated by commands");
	}
	return count;
}

void ts_check_opencl_devices(struct ts_finding *ret_finding)
{
	void *platforms[PLATFORMS_AT_MOST] = { NULL };
	char text[TS_FINDING_TEXT_BYTES] = "";
	uint32_t count = 0, devices = 0;
	struct opencl opencl;

	if (!load(LOADER, &opencl, ret_finding))
		return;
	if (!opencl.device_info) {
		ts_finding_set(ret_finding, TS_CHECK_NO, "libOpenCL.so.1 lacks clGetDeviceInfo");
		return;
	}
	if (opencl.platforms(PLATFORMS_AT_MOST, platforms, &count))
		count = 0;
	for (uint32_t i = 0; i < TS_MIN(count, PLATFORMS_AT_MOST); i++)
		devices += list_devices(&opencl, platforms[i], devices, text, sizeof(text));
	if (devices)
		ts_finding_set(ret_finding, TS_CHECK_YES, "%s", text);
	else
		ts_finding_set(ret_finding, TS_CHECK_ABSENT, "no device");
}

/* ---- recording and replay ---- */

#ifdef TS_HAVE_OPENCL
/* Loaders without layer support use a library next to the agent that exports all calls. */
void ts_check_opencl_recording(struct ts_finding *ret_finding)
{
	char path[TS_AGENT_PATH_BYTES];
	struct ts_error err;

	if (ts_agent_library_find_beside(BY_NAME, path, sizeof(path), &err)) {
		ts_finding_set(ret_finding, TS_CHECK_NO, "%s", err.message);
		return;
	}
	if (access(path, R_OK)) {
		ts_finding_set(ret_finding, TS_CHECK_LIMITED,
			       "built in, but not for loaders without layers: '%s' does not exist",
			       path);
		return;
	}
	ts_finding_set(ret_finding, TS_CHECK_YES, "built in, for loaders with and without layers");
}
#else
void ts_check_opencl_recording(struct ts_finding *ret_finding)
{
	ts_finding_set(ret_finding, TS_CHECK_NO, "this build has no OpenCL support");
	ts_finding_fix(ret_finding, "sudo apt install opencl-headers ocl-icd-opencl-dev");
	ts_finding_note(ret_finding, "then rebuild");
}
#endif

/* ---- layers ---- */

/*
 * Creates a file that is not a library, to be named as a layer: a loader with layer support opens
 * it. It has no name in any folder, which a loader that crashes would leave behind.
 */
static int make_bait(char *path, size_t bytes)
{
	int bait = memfd_create("layer", MFD_CLOEXEC);

	snprintf(path, bytes, "/proc/self/fd/%d", bait);
	return bait;
}

/* True if the watched file was opened. */
static bool was_opened(int watch)
{
	struct pollfd ready = { watch, POLLIN, 0 };

	return poll(&ready, 1, 0) == 1;
}

/* True if the loader looks for layers on its first call. */
static bool loads_layers(const struct opencl *opencl, int watch)
{
	uint32_t count;

	opencl->platforms(0, NULL, &count);
	return was_opened(watch);
}

static void classify_layers(const struct opencl *opencl, int watch, struct ts_finding *finding)
{
	struct ts_finding ignored = { 0 };
	struct opencl other;

	if (loads_layers(opencl, watch)) {
		ts_finding_set(finding, TS_CHECK_YES, "%s loads the layers in OPENCL_LAYERS",
			       opencl->path);
		return;
	}
	ts_finding_set(
		finding, TS_CHECK_LIMITED,
		"%s ignores OPENCL_LAYERS: calls through function pointers that a program looks "
		"up itself are not recorded",
		opencl->path);
	/* A driver's own loader often precedes the distribution's loader, which supports layers. */
	if (load(SYSTEM_FOLDER "/" LOADER, &other, &ignored) && loads_layers(&other, watch)) {
		ts_finding_fix(finding, "export LD_LIBRARY_PATH=" SYSTEM_FOLDER
					"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}");
		ts_finding_note(finding, "puts the system's loader, which supports layers, first");
		return;
	}
	ts_finding_fix(finding, "sudo apt install ocl-icd-libopencl1");
	ts_finding_note(
		finding,
		"2.3.0 or newer (Debian 12, Ubuntu 24.04), before any other libOpenCL.so.1 in "
		"LD_LIBRARY_PATH");
}

void ts_check_opencl_layers(struct ts_finding *ret_finding)
{
	TS_AUTO_FD int watch = inotify_init1(IN_CLOEXEC), bait = -1;
	struct opencl opencl;
	char path[32];

	bait = make_bait(path, sizeof(path));
	/* Watch before the loader is loaded: it may look for layers then. */
	if (bait < 0 || watch < 0 || inotify_add_watch(watch, path, IN_OPEN) < 0 ||
	    setenv("OPENCL_LAYERS", path, 1))
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN, "cannot watch for layers: %s",
			       ts_errno_name(errno));
	else if (load(LOADER, &opencl, ret_finding))
		classify_layers(&opencl, watch, ret_finding);
}

/* ---- Oclgrind ---- */

/* The library that the launcher preloads: Debian's place, and those of its own build. */
static bool simulator_works(const char *prefix)
{
	static const char *const places[] = { "lib/oclgrind", "lib", "lib64" };

	for (size_t i = 0; i < TS_ARRAY_SIZE(places); i++) {
		struct ts_finding ignored = { 0 };
		struct opencl opencl;
		void *platform = NULL;
		uint32_t count = 0;
		char path[600];

		snprintf(path, sizeof(path), "%s/%s/liboclgrind-rt.so", prefix, places[i]);
		if (!access(path, R_OK) && load(path, &opencl, &ignored) &&
		    !opencl.platforms(1, &platform, &count) && count)
			return true;
	}
	return false;
}

/* Finds the launcher in PATH, and the directory above it. */
static bool find_launcher(char *launcher, char *prefix, size_t bytes)
{
	const char *path = getenv("PATH");

	for (size_t length; path && *path; path += length + (path[length] == ':')) {
		length = strcspn(path, ":");
		snprintf(prefix, bytes, "%.*s/..", (int)length, path);
		snprintf(launcher, bytes, "%.*s/oclgrind", (int)length, path);
		if (!access(launcher, X_OK))
			return true;
	}
	return false;
}

void ts_check_opencl_oclgrind(struct ts_finding *ret_finding)
{
	char launcher[512], prefix[512];

	if (!find_launcher(launcher, prefix, sizeof(prefix))) {
		ts_finding_set(ret_finding, TS_CHECK_ABSENT, "no oclgrind in PATH");
		ts_finding_fix(ret_finding, "sudo apt install oclgrind");
		ts_finding_note(ret_finding, "a simulator that finds races and invalid accesses of "
					     "kernels in a replay");
	} else if (!simulator_works(prefix)) {
		ts_finding_set(ret_finding, TS_CHECK_NO, "%.256s: its library cannot be loaded",
			       launcher);
		ts_finding_fix(ret_finding, "sudo apt install --reinstall oclgrind");
	} else {
		ts_finding_set(ret_finding, TS_CHECK_YES,
			       "%.256s: 'oclgrind --data-races tracesmith replay TRACE' finds "
			       "races of kernels",
			       launcher);
	}
}
