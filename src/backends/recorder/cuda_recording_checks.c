/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording CUDA needs besides driver and CUPTI: the backend library, device files, no other
 * profiler, and tools that name instructions and source lines. Does not call the driver.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/recorder/agent_library.h"
#include "backends/recorder/cuda_checks.h"
#include "base/finding.h"
#include "base/memory.h"
#include "base/text.h"
#include "code/disassemble.h"
#include "tracesmith_config.h"

#define LIBRARY "libtracesmith-backend-cuda.so"

/* ---- backend library ---- */

/* Loads the library; a broken one shows then. Like all checks, this runs in a child. */
void ts_check_cuda_recording(struct ts_finding *ret_finding)
{
	char path[TS_AGENT_PATH_BYTES];
	struct ts_error err;

	if (ts_agent_library_find_beside(LIBRARY, path, sizeof(path), &err)) {
		ts_finding_set(ret_finding, TS_CHECK_NO, "%s", err.message);
		return;
	}
	if (access(path, R_OK)) {
		ts_finding_set(ret_finding, TS_CHECK_NO,
			       "'%s' does not exist: CUDA programs run, but CUDA is not recorded",
			       path);
		ts_finding_note(ret_finding, "it belongs next to the agent: install both");
		return;
	}
	if (!dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
		ts_finding_set(ret_finding, TS_CHECK_NO, "%s", dlerror());
		ts_finding_fix(ret_finding, "ldd %s", TS_SHELL(path));
		return;
	}
#if defined(__x86_64__)
	ts_finding_set(ret_finding, TS_CHECK_YES, "%s", path);
#else
	ts_finding_set(ret_finding, TS_CHECK_LIMITED,
		       "%s; on this architecture, tested only without a GPU", path);
#endif
}

/* ---- device files ---- */

/* Returns 0, or the errno and path of the first file that cannot be opened. */
static int try_files(char *path, size_t bytes, unsigned int *ret_count)
{
	DIR *files = opendir("/dev");
	struct dirent *entry;
	int error = 0;

	*ret_count = 0;
	while (files && !error && (entry = readdir(files))) {
		const char *rest = entry->d_name + strlen("nvidia");
		int fd;

		if (strncmp(entry->d_name, "nvidia", strlen("nvidia")) != 0 ||
		    (strcmp(rest, "ctl") != 0 && strcmp(rest, "-uvm") != 0 &&
		     (*rest < '0' || *rest > '9')))
			continue;
		snprintf(path, bytes, "/dev/%.200s", entry->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			error = errno;
		else
			close(fd);
		++*ret_count;
	}
	if (files)
		closedir(files);
	return error;
}

/* NVIDIA's container toolkit provides only the requested capabilities. */
static const char *find_withheld(void)
{
	const char *capabilities = getenv("NVIDIA_DRIVER_CAPABILITIES");
	const char *devices = getenv("NVIDIA_VISIBLE_DEVICES");

	if (devices && (!strcmp(devices, "void") || !strcmp(devices, "none")))
		return "NVIDIA_VISIBLE_DEVICES excludes all GPUs from this container";
	if (capabilities && *capabilities && !strstr(capabilities, "compute") &&
	    !strstr(capabilities, "all"))
		return "NVIDIA_DRIVER_CAPABILITIES lacks compute: libcuda is not in this "
		       "container";
	return NULL;
}

static void suggest_container(struct ts_finding *finding)
{
	const struct ts_machine *machine = ts_machine_local();

	ts_finding_fix(finding, "%s run %s -e NVIDIA_DRIVER_CAPABILITIES=compute,utility IMAGE",
		       machine->container == TS_CONTAINER_PODMAN ? "podman" : "docker",
		       machine->container == TS_CONTAINER_PODMAN ? "--device nvidia.com/gpu=all"
								 : "--gpus all");
	ts_finding_note(finding, "run this on the host, with NVIDIA's container toolkit");
}

void ts_check_cuda_files(struct ts_finding *ret_finding)
{
	const char *withheld = find_withheld();
	unsigned int count = 0;
	char path[256] = "";
	int error = try_files(path, sizeof(path), &count);

	if (withheld) {
		ts_finding_set(ret_finding, TS_CHECK_NO, "%s", withheld);
		suggest_container(ret_finding);
	} else if (error) {
		ts_finding_set(ret_finding, TS_CHECK_NO, "%s: %s", path, ts_errno_name(error));
		if (error == EACCES || error == EPERM) {
			ts_finding_fix(ret_finding, "ls -l /dev/nvidia*; id");
			ts_finding_note(
				ret_finding,
				"shows which group has access: sudo usermod -aG GROUP USER, or "
				"the container's --device and device cgroup");
		}
	} else if (!count) {
		ts_finding_set(ret_finding, TS_CHECK_ABSENT, "no /dev/nvidia*");
	} else {
		ts_finding_set(ret_finding, TS_CHECK_YES, "%u files can be opened", count);
	}
}

/* ---- other profilers ---- */

extern char **environ;

static const struct rival {
	const char *begins; /* prefix of an environment variable */
	const char *contains;
	const char *why;
	const char *fix;
} rivals[] = {
	{ "NSYS_", "", "this shell runs under Nsight Systems", NULL },
	{ "NV_NSIGHT_", "", "this shell runs under Nsight", NULL },
	{ "NV_COMPUTE_PROFILER_", "", "this shell runs under Nsight Compute", NULL },
	{ "CUDA_INJECTION64_PATH=", "/", "CUDA_INJECTION64_PATH loads another tool",
	  "unset CUDA_INJECTION64_PATH" },
	{ "LD_PRELOAD=", "libToolsInjection", "LD_PRELOAD loads Nsight", "unset LD_PRELOAD" },
	{ "NVTX_INJECTION64_PATH=", "/", "NVTX_INJECTION64_PATH sends NVTX ranges to another tool",
	  "unset NVTX_INJECTION64_PATH" },
};

void ts_check_cuda_profilers(struct ts_finding *ret_finding)
{
	for (char **line = environ; line && *line; line++) {
		for (size_t i = 0; i < TS_ARRAY_SIZE(rivals); i++) {
			if (strncmp(*line, rivals[i].begins, strlen(rivals[i].begins)) != 0 ||
			    !strstr(*line, rivals[i].contains) || strstr(*line, "libtracesmith"))
				continue;
			ts_finding_set(ret_finding, TS_CHECK_LIMITED,
				       "%s, and CUPTI supports only one tool: calls are recorded, "
				       "device activity is not",
				       rivals[i].why);
			ts_finding_fix(ret_finding, "%s", rivals[i].fix ? rivals[i].fix : "");
			return;
		}
	}
	ts_finding_set(ret_finding, TS_CHECK_YES, "the environment loads no other tool");
}

/* ---- disassembler and line tables ---- */

void ts_check_disassembler(struct ts_finding *ret_finding)
{
	bool is_nvdisasm;
	char path[1024];

	if (ts_disassembler_find(path, sizeof(path), &is_nvdisasm)) {
		ts_finding_set(ret_finding, TS_CHECK_YES, "%.300s", path);
		return;
	}
	ts_finding_set(
		ret_finding, TS_CHECK_ABSENT,
		"neither nvdisasm nor cuobjdump was found: hot instructions are shown as offsets");
	ts_finding_fix(ret_finding, "pip install nvidia-cuda-nvdisasm");
	ts_finding_note(ret_finding, "or from NVIDIA's packages: cuda-nvdisasm-13-0");
}

void ts_check_source_lines(struct ts_finding *ret_finding)
{
#ifdef TS_HAVE_LIBDW
	if (dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL)) {
		ts_finding_set(ret_finding, TS_CHECK_YES,
			       "from libdw, for files with debug information");
		return;
	}
	ts_finding_set(ret_finding, TS_CHECK_ABSENT,
		       "libdw.so.1 was not found: native frames have functions, but no source "
		       "lines");
	ts_finding_fix(ret_finding, "sudo apt install libdw1");
#else
	ts_finding_set(ret_finding, TS_CHECK_ABSENT,
		       "this build has no libdw: native frames have functions, but no source "
		       "lines");
	ts_finding_fix(ret_finding, "sudo apt install libdw-dev");
	ts_finding_note(ret_finding, "then rebuild");
#endif
}
