/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects facts about this process and machine from /proc and /sys. Containers are detected by
 * their namespaces first: the files that runtimes leave also exist on machines booted from an
 * image.
 */
#include "base/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"

/* Inode numbers of the initial namespaces, fixed since Linux 3.8. */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu
#define INITIAL_USER_NAMESPACE 0xEFFFFFFDu
#define INITIAL_CGROUP_NAMESPACE 0xEFFFFFFBu

/* ---- small files ---- */

bool ts_machine_read(const char *path, char *buffer, size_t bytes)
{
	TS_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t got = 1;

	while (fd >= 0 && got > 0 && used < bytes - 1) {
		got = ts_read_some(fd, buffer + used, bytes - 1 - used);
		used += got > 0 ? (size_t)got : 0;
	}
	if (fd < 0 || got < 0)
		return false;
	while (used && buffer[used - 1] == '\n')
		used--;
	buffer[used] = '\0';
	return true;
}

int ts_machine_setting(const char *path)
{
	char text[32], *end;
	long value;

	if (!ts_machine_read(path, text, sizeof(text)))
		return TS_SETTING_NONE;
	value = strtol(text, &end, 10);
	return end == text ? TS_SETTING_NONE : (int)value;
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static unsigned long hex_file(const char *folder, const char *name)
{
	char path[320], text[32];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.255s/%s", folder, name);
	return ts_machine_read(path, text, sizeof(text)) ? strtoul(text, NULL, 16) : 0;
}

unsigned int ts_machine_pci_count(unsigned int vendor, unsigned int class_byte)
{
	DIR *devices = opendir("/sys/bus/pci/devices");
	struct dirent *entry;
	unsigned int count = 0;

	while (devices && (entry = readdir(devices))) {
		if (entry->d_name[0] != '.' && hex_file(entry->d_name, "vendor") == vendor &&
		    hex_file(entry->d_name, "class") >> 16 == class_byte)
			count++;
	}
	if (devices)
		closedir(devices);
	return count;
}

/* ---- user and privileges ---- */

static const struct ts_capability_name capabilities[] = {
	{ TS_CAP_DAC_READ_SEARCH, "dac_read_search" },
	{ TS_CAP_NET_ADMIN, "net_admin" },
	{ TS_CAP_SYS_PTRACE, "sys_ptrace" },
	{ TS_CAP_SYS_ADMIN, "sys_admin" },
	{ TS_CAP_SYS_RESOURCE, "sys_resource" },
	{ TS_CAP_PERFMON, "perfmon" },
	{ TS_CAP_BPF, "bpf" },
	{ 0, NULL },
};

const struct ts_capability_name *ts_capability_names(void)
{
	return capabilities;
}

/* The number after "KEY:" in /proc/self/status. */
static uint64_t status_number(const char *status, const char *key, int base)
{
	const char *line = strstr(status, key);

	return line ? strtoull(line + strlen(key), NULL, base) : 0;
}

static void look_at_status(struct ts_machine *machine)
{
	char status[4096];

	if (!ts_machine_read("/proc/self/status", status, sizeof(status)))
		return;
	machine->capabilities = status_number(status, "\nCapEff:", 16);
	machine->capabilities_bound = status_number(status, "\nCapBnd:", 16);
	machine->no_new_privileges = status_number(status, "\nNoNewPrivs:", 10) != 0;
	machine->seccomp = (int)status_number(status, "\nSeccomp:", 10);
}

/* ---- namespaces and virtual machines ---- */

static void look_at_system(struct ts_machine *machine)
{
	struct utsname name;
	char text[4096], *line, *end;

	if (!uname(&name)) {
		snprintf(machine->kernel, sizeof(machine->kernel), "%.63s", name.release);
		snprintf(machine->architecture, sizeof(machine->architecture), "%.31s",
			 name.machine);
	}
	if (!ts_machine_read("/etc/os-release", text, sizeof(text)))
		return;
	line = strstr(text, "PRETTY_NAME=");
	if (!line)
		return;
	line += strlen("PRETTY_NAME=");
	line += *line == '"';
	end = line + strcspn(line, "\"\n");
	snprintf(machine->system, sizeof(machine->system), "%.*s", (int)(end - line), line);
}

/* True if it is known not to be the initial namespace. */
static bool is_inner_namespace(const char *path, unsigned int initial)
{
	struct stat status;

	return !stat(path, &status) && status.st_ino != initial;
}

static bool looks_virtual(void)
{
	TS_AUTO_FREE char *text = malloc(16384);

	/* ARM has no such flag: use the name of the firmware. */
	if (text && ts_machine_read("/proc/cpuinfo", text, 16384) && strstr(text, " hypervisor"))
		return true;
	return text && ts_machine_read("/sys/class/dmi/id/sys_vendor", text, 256) &&
	       (strstr(text, "QEMU") || strstr(text, "VMware") || strstr(text, "Amazon EC2") ||
		strstr(text, "Google") || strstr(text, "Microsoft"));
}

/* ---- containers ---- */

static void add_sign(struct ts_machine *machine, const char *sign, unsigned int *count)
{
	size_t used = strlen(machine->container_signs);

	snprintf(machine->container_signs + used, sizeof(machine->container_signs) - used, "%s%s",
		 used ? ", " : "", sign);
	++*count;
}

/* Cgroup paths name the runtime unless the container has its own cgroup namespace. */
static const char *runtime_of_cgroup(void)
{
	static const char *const runtimes[] = { "docker", "kubepods", "libpod", "containerd",
						"lxc" };
	char text[4096];

	for (size_t i = 0; ts_machine_read("/proc/self/cgroup", text, sizeof(text)) &&
			   i < TS_ARRAY_SIZE(runtimes);
	     i++) {
		if (strstr(text, runtimes[i]))
			return runtimes[i];
	}
	return NULL;
}

static enum ts_container container_kind(void)
{
	const char *runtime = runtime_of_cgroup();

	if (getenv("KUBERNETES_SERVICE_HOST") || exists("/var/run/secrets/kubernetes.io") ||
	    (runtime && !strcmp(runtime, "kubepods")))
		return TS_CONTAINER_KUBERNETES;
	if (exists("/run/.containerenv") || (runtime && !strcmp(runtime, "libpod")))
		return TS_CONTAINER_PODMAN;
	if (exists("/.singularity.d") || getenv("APPTAINER_CONTAINER"))
		return TS_CONTAINER_APPTAINER;
	if (exists("/.dockerenv") || (runtime && !strcmp(runtime, "docker")))
		return TS_CONTAINER_DOCKER;
	if (runtime && !strcmp(runtime, "lxc"))
		return TS_CONTAINER_LXC;
	return TS_CONTAINER_OTHER;
}

/* Requires one certain sign, or two others. */
static void look_at_container(struct ts_machine *machine)
{
	unsigned int sure = 0, signs = 0;

	if (machine->private_pid_namespace)
		add_sign(machine, "pid namespace", &sure);
	if (is_inner_namespace("/proc/self/ns/cgroup", INITIAL_CGROUP_NAMESPACE))
		add_sign(machine, "cgroup namespace", &signs);
	if (exists("/run/.containerenv"))
		add_sign(machine, "/run/.containerenv", &signs);
	if (exists("/.dockerenv"))
		add_sign(machine, "/.dockerenv", &signs);
	if (exists("/.singularity.d"))
		add_sign(machine, "/.singularity.d", &sure);
	if (getenv("KUBERNETES_SERVICE_HOST"))
		add_sign(machine, "KUBERNETES_SERVICE_HOST", &signs);
	if (runtime_of_cgroup())
		add_sign(machine, "cgroup path", &signs);
	if (sure || signs >= 2)
		machine->container = container_kind();
}

const char *ts_container_name(enum ts_container container)
{
	static const char *const names[] = { "",    "docker",    "podman",   "kubernetes",
					     "lxc", "apptainer", "container" };

	return container < TS_ARRAY_SIZE(names) ? names[container] : "container";
}

void ts_machine_look(struct ts_machine *ret_machine)
{
	struct ts_machine *machine = ret_machine;

	*machine = (struct ts_machine){ .uid = geteuid() };
	look_at_system(machine);
	look_at_status(machine);
	machine->user_namespace = is_inner_namespace("/proc/self/ns/user", INITIAL_USER_NAMESPACE);
	machine->private_pid_namespace =
		is_inner_namespace("/proc/self/ns/pid", INITIAL_PID_NAMESPACE);
	machine->virtual = looks_virtual();
	machine->yama = ts_machine_setting("/proc/sys/kernel/yama/ptrace_scope");
	machine->perf_paranoid = ts_machine_setting("/proc/sys/kernel/perf_event_paranoid");
	machine->bpf_disabled = ts_machine_setting("/proc/sys/kernel/unprivileged_bpf_disabled");
	look_at_container(machine);
}

const struct ts_machine *ts_machine_local(void)
{
	static struct ts_machine machine;
	static bool is_known;

	if (!is_known)
		ts_machine_look(&machine);
	is_known = true;
	return &machine;
}
