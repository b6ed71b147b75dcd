/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver, and GPU modes that restrict what can be recorded: counters for administrators
 * only, MIG, MPS. Creates no context, so a busy or exclusive GPU is not disturbed.
 */
#include "backends/recorder/cuda_checks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/finding.h"
#include "base/memory.h"

#define PARAMETERS "/proc/driver/nvidia/params"
#define ATTRIBUTE_MPS_ENABLED 133
/* The first driver that accepts CAP_PERFMON for counters. */
#define DRIVER_WITH_PERFMON 565

/* ---- loading ---- */

static void suggest_install(struct ts_finding *finding)
{
	switch (ts_machine_local()->container) {
	case TS_CONTAINER_NONE:
		ts_finding_fix(finding, "sudo apt install nvidia-driver");
		ts_finding_note(
			finding,
			"Debian, from non-free; on Ubuntu: sudo ubuntu-drivers install; then reboot");
		break;
	case TS_CONTAINER_KUBERNETES:
		ts_finding_note(
			finding,
			"in the pod's specification: resources.limits: {nvidia.com/gpu: 1}");
		break;
	case TS_CONTAINER_PODMAN:
		ts_finding_fix(finding, "podman run --device nvidia.com/gpu=all IMAGE");
		ts_finding_note(finding, "run this on the host, with NVIDIA's container toolkit");
		break;
	default:
		ts_finding_fix(
			finding,
			"docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility IMAGE");
		ts_finding_note(finding, "run this on the host, with NVIDIA's container toolkit");
	}
}

static void classify_missing(const char *why, struct ts_finding *finding)
{
	unsigned int devices = ts_machine_pci_count(TS_PCI_NVIDIA, TS_PCI_DISPLAY);
	bool is_missing = why && strstr(why, "No such file");

	if (is_missing && !devices) {
		ts_finding_set(finding, TS_CHECK_ABSENT, "no NVIDIA GPU and no driver for one");
		return;
	}
	ts_finding_set(finding, TS_CHECK_NO, "%s%s", why ? why : "libcuda.so.1 cannot be loaded",
		       devices ? ", although there is an NVIDIA GPU" : "");
	suggest_install(finding);
}

static bool load_driver(struct ts_cuda *ret_cuda, struct ts_finding *finding)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	const struct {
		const char *name;
		void *target;
	} calls[] = {
		{ "cuInit", &ret_cuda->init },
		{ "cuDriverGetVersion", &ret_cuda->driver_version },
		{ "cuDeviceGetCount", &ret_cuda->device_count },
		{ "cuDeviceGet", &ret_cuda->device_get },
		{ "cuDeviceGetName", &ret_cuda->device_name },
		{ "cuDeviceGetAttribute", &ret_cuda->device_attribute },
	};

	if (!library) {
		classify_missing(dlerror(), finding);
		return false;
	}
	for (size_t i = 0; i < TS_ARRAY_SIZE(calls); i++) {
		*(void **)calls[i].target = dlsym(library, calls[i].name);
		if (!*(void **)calls[i].target) {
			ts_finding_set(finding, TS_CHECK_NO, "libcuda.so.1 has no %s",
				       calls[i].name);
			return false;
		}
	}
	return true;
}

/* ---- cuInit() ---- */

static const struct outcome {
	int code;
	const char *why;
	const char *fix;
	const char *note;
} outcomes[] = {
	{ 34, "libcuda.so.1 is the stub library for linking, not a driver",
	  "export LD_LIBRARY_PATH=$(printf %s \"$LD_LIBRARY_PATH\" | tr : '\\n' | grep -v /stubs | paste -sd:)",
	  NULL },
	{ 46, "the GPU is busy or in exclusive mode", "nvidia-smi -q -d COMPUTE",
	  "shows the mode and the processes that use the GPU" },
	{ 100, "the driver sees no GPU", "unset CUDA_VISIBLE_DEVICES; nvidia-smi -L",
	  "an empty or wrong CUDA_VISIBLE_DEVICES hides GPUs; so does a container that was "
	  "started without them" },
	{ 101, "the driver rejects the GPU (exclusive mode, or MIG without an instance)",
	  "nvidia-smi -q -d COMPUTE", "shows the mode" },
	{ 802, "the system is not ready: the Fabric Manager for NVSwitch is not running",
	  "sudo systemctl start nvidia-fabricmanager",
	  "it must have the same version as the "
	  "driver" },
	{ 803, "the driver's library and kernel module have different versions", "sudo reboot",
	  "for a container, restarting it is enough" },
	{ 804, "the cuda-compat library does not support this GPU",
	  "export LD_LIBRARY_PATH=$(printf %s \"$LD_LIBRARY_PATH\" | tr : '\\n' | grep -v /compat | paste -sd:)",
	  NULL },
	{ 805, "no connection to the MPS server", "echo get_server_list | nvidia-cuda-mps-control",
	  NULL },
	{ 999, "usually the module nvidia_uvm is not loaded", "sudo nvidia-modprobe -u -c=0",
	  "on the host; loads the module and creates /dev/nvidia-uvm" },
};

void ts_classify_cuda(int code, struct ts_finding *finding)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(outcomes); i++) {
		if (outcomes[i].code != code)
			continue;
		ts_finding_set(finding, TS_CHECK_NO, "cuInit returned %d: %s", code,
			       outcomes[i].why);
		ts_finding_fix(finding, "%s", outcomes[i].fix);
		ts_finding_note(finding, "%s", outcomes[i].note ? outcomes[i].note : "");
		return;
	}
	if (code >= 806 && code <= 810)
		ts_finding_set(finding, TS_CHECK_NO,
			       "cuInit returned %d: the MPS server refused "
			       "the connection",
			       code);
	else
		ts_finding_set(finding, TS_CHECK_UNKNOWN, "cuInit returned %d", code);
}

bool ts_cuda_start(struct ts_cuda *ret_cuda, struct ts_finding *finding)
{
	int code;

	if (!load_driver(ret_cuda, finding))
		return false;
	code = ret_cuda->init(0);
	if (code == 0)
		return true;
	/* Drivers are also installed on machines without a GPU. */
	if (code == 100 && !ts_machine_pci_count(TS_PCI_NVIDIA, TS_PCI_DISPLAY) &&
	    access("/dev/nvidiactl", F_OK))
		ts_finding_set(finding, TS_CHECK_ABSENT,
			       "the driver is installed, but there is no NVIDIA GPU");
	else
		ts_classify_cuda(code, finding);
	return false;
}

/* "2 GPUs: NVIDIA H200, NVIDIA H200". */
static void append_names(const struct ts_cuda *cuda, int count, char *text, size_t bytes)
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < count && used < bytes; i++) {
		char name[96] = "?";
		int device = 0, written;

		if (!cuda->device_get(&device, i))
			cuda->device_name(name, sizeof(name), device);
		name[sizeof(name) - 1] = '\0';
		written = snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", name);
		used += written > 0 ? (size_t)written : 0;
	}
}

void ts_check_cuda(struct ts_finding *ret_finding)
{
	int version = 0, count = 0, code;
	char names[256];
	struct ts_cuda cuda;

	if (!ts_cuda_start(&cuda, ret_finding))
		return;
	cuda.driver_version(&version);
	code = cuda.device_count(&count);
	if (code) {
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN, "cuDeviceGetCount returned %d", code);
		return;
	}
	append_names(&cuda, count, names, sizeof(names));
	ts_finding_set(ret_finding, count > 0 ? TS_CHECK_YES : TS_CHECK_ABSENT,
		       "CUDA %d.%d; %d GPU%s%s%s", version / 1000, version % 1000 / 10, count,
		       count == 1 ? "" : "s", count ? ": " : "", names);
}

/* ---- counters ---- */

/* The major version in "... Kernel Module  580.65.06 ..."; 0: unknown. */
static unsigned int kernel_driver(void)
{
	char text[512];
	const char *at;

	if (!ts_machine_read("/proc/driver/nvidia/version", text, sizeof(text)))
		return 0;
	for (at = text; *at; at++) {
		char *end;
		unsigned long major = strtoul(at, &end, 10);

		if (end != at && *end == '.' && major >= 100 && (at == text || at[-1] == ' '))
			return (unsigned int)major;
		if (end != at)
			at = end - 1;
	}
	return 0;
}

static void suggest_counters(const struct ts_machine *machine, unsigned int driver,
			     struct ts_finding *finding)
{
	const char *right = driver >= DRIVER_WITH_PERFMON ? "PERFMON" : "SYS_ADMIN";

	if (machine->container) {
		ts_finding_fix(finding, "%s run --gpus all --cap-add %s IMAGE",
			       machine->container == TS_CONTAINER_PODMAN ? "podman" : "docker",
			       right);
		ts_finding_note(
			finding, "run this on the host; %s",
			driver >= DRIVER_WITH_PERFMON
				? "lets the container observe the whole machine"
				: "gives the container many privileges on the host: for trusted "
				  "images only");
		return;
	}
	ts_finding_fix(
		finding,
		"echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/tracesmith-nvidia.conf && sudo update-initramfs -u");
	ts_finding_note(
		finding,
		"then reboot; lets every user read counters that are affected by other users' "
		"work; safer: run tracesmith with sudo");
}

void ts_classify_gpu_counters(const struct ts_machine *machine, int admin_only, unsigned int driver,
			      struct ts_finding *finding)
{
	bool may_perfmon = driver >= DRIVER_WITH_PERFMON && ts_machine_has(machine, TS_CAP_PERFMON);

	if (admin_only == TS_SETTING_NONE) {
		ts_finding_set(finding, TS_CHECK_UNKNOWN,
			       "the driver does not report it (" PARAMETERS
			       " has no RmProfilingAdminOnly)");
	} else if (admin_only == 0) {
		ts_finding_set(finding, TS_CHECK_YES,
			       "allowed for all users (RmProfilingAdminOnly: 0)");
	} else if (ts_machine_has(machine, TS_CAP_SYS_ADMIN) || may_perfmon) {
		ts_finding_set(finding, TS_CHECK_YES,
			       "only for administrators (RmProfilingAdminOnly: 1); allowed by %s",
			       ts_machine_has(machine, TS_CAP_SYS_ADMIN) ? "CAP_SYS_ADMIN"
									 : "CAP_PERFMON");
	} else {
		ts_finding_set(
			finding, TS_CHECK_NO,
			"only for administrators (RmProfilingAdminOnly: 1); tracing does not "
			"need it");
		suggest_counters(machine, driver, finding);
	}
}

void ts_check_gpu_counters(struct ts_finding *ret_finding)
{
	char text[8192];
	const char *line;

	if (!ts_machine_read(PARAMETERS, text, sizeof(text))) {
		ts_finding_set(ret_finding, errno == ENOENT ? TS_CHECK_ABSENT : TS_CHECK_UNKNOWN,
			       errno == ENOENT ? "no NVIDIA driver in this kernel"
					       : PARAMETERS " cannot be read");
		return;
	}
	line = strstr(text, "RmProfilingAdminOnly:");
	ts_classify_gpu_counters(
		ts_machine_local(),
		line ? (int)strtol(line + strlen("RmProfilingAdminOnly:"), NULL, 10)
		     : TS_SETTING_NONE,
		kernel_driver(), ret_finding);
}

/* ---- MIG ---- */

struct nvml {
	int (*init)(void);
	int (*device_count)(unsigned int *count);
	int (*device_handle)(unsigned int number, void **device);
	int (*mig_mode)(void *device, unsigned int *current, unsigned int *pending);
};

/* Returns NULL, or what is missing. */
static const char *load_nvml(struct nvml *nvml)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	*nvml = (struct nvml){ 0 };
	if (!library)
		return "no NVML (libnvidia-ml.so.1)";
	*(void **)&nvml->init = dlsym(library, "nvmlInit_v2");
	*(void **)&nvml->device_count = dlsym(library, "nvmlDeviceGetCount_v2");
	*(void **)&nvml->device_handle = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&nvml->mig_mode = dlsym(library, "nvmlDeviceGetMigMode");
	if (!nvml->init || !nvml->device_count || !nvml->device_handle || !nvml->mig_mode)
		return "this NVML version is too old to report it";
	return NULL;
}

static void count_mig(const struct nvml *nvml, struct ts_finding *finding)
{
	unsigned int count = 0, on = 0, capable = 0, current, pending;
	void *device;

	nvml->device_count(&count);
	for (unsigned int i = 0; i < count; i++) {
		if (nvml->device_handle(i, &device) || nvml->mig_mode(device, &current, &pending))
			continue;
		capable++;
		on += current == 1;
	}
	if (on)
		ts_finding_set(
			finding, TS_CHECK_LIMITED,
			"enabled on %u of %u GPUs: a program sees only its instance, without "
			"counters of shared units or instruction samples",
			on, count);
	else if (capable)
		ts_finding_set(finding, TS_CHECK_ABSENT, "disabled");
	else
		ts_finding_set(finding, TS_CHECK_ABSENT, "not supported by the GPUs");
}

void ts_check_mig(struct ts_finding *ret_finding)
{
	struct nvml nvml;
	const char *missing = load_nvml(&nvml);
	int code;

	if (missing) {
		ts_finding_set(ret_finding,
			       access("/dev/nvidiactl", F_OK) ? TS_CHECK_ABSENT : TS_CHECK_UNKNOWN,
			       "%s", missing);
		return;
	}
	code = nvml.init();
	if (code)
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN, "nvmlInit_v2 returned %d: see nvml",
			       code);
	else
		count_mig(&nvml, ret_finding);
}

/* ---- MPS ---- */

/* Connects to the socket of the control daemon. Returns 0 or an errno. */
static int try_control(const char *folder)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	TS_AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct stat status;
	int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", folder);

	if (length < 0 || (size_t)length >= sizeof(address.sun_path))
		return ENAMETOOLONG;
	if (stat(address.sun_path, &status))
		return errno;
	if (!S_ISSOCK(status.st_mode))
		return 0; /* a named pipe of an older daemon */
	if (fd < 0 || !connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd < 0 ? errno : 0;
	/* EPROTOTYPE: another type of socket, but somebody listens. */
	return errno == EPROTOTYPE ? 0 : errno;
}

/* Asks the driver whether this process is an MPS client. -1: unknown. */
static int query_driver(void)
{
	struct ts_finding ignored = { 0 };
	struct ts_cuda cuda;
	int device = 0, value = -1;

	if (!ts_cuda_start(&cuda, &ignored) || cuda.device_get(&device, 0) ||
	    cuda.device_attribute(&value, ATTRIBUTE_MPS_ENABLED, device))
		return -1;
	return value;
}

void ts_check_mps(struct ts_finding *ret_finding)
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
	int error;

	folder = folder && *folder ? folder : "/tmp/nvidia-mps";
	error = try_control(folder);
	if (error == ENOENT || error == ENOTDIR) {
		ts_finding_set(ret_finding, TS_CHECK_ABSENT,
			       "no server: programs do not share the GPU through MPS");
	} else if (error == ECONNREFUSED) {
		ts_finding_set(
			ret_finding, TS_CHECK_ABSENT,
			"no server answers at %s/control: programs do not share the GPU through "
			"MPS",
			folder);
	} else if (error == EACCES || error == EPERM) {
		ts_finding_set(ret_finding, TS_CHECK_UNKNOWN, "%s/control: %s", folder,
			       ts_errno_name(error));
	} else if (query_driver() == 0) {
		ts_finding_set(ret_finding, TS_CHECK_ABSENT,
			       "programs started in this environment are not MPS clients");
	} else {
		ts_finding_set(
			ret_finding, TS_CHECK_LIMITED,
			"a server is running: programs share the GPU, and durations include the "
			"work of others");
		ts_finding_fix(ret_finding, "echo quit | nvidia-cuda-mps-control");
		ts_finding_note(ret_finding, "stops the server for all its clients");
	}
}
