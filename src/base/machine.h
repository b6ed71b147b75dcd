/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about this process and machine. They explain findings and select fixes, but never decide a
 * result: checks do that by trying. Plain data, so that tests can make up any machine.
 */
#ifndef TS_BASE_MACHINE_H
#define TS_BASE_MACHINE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TS_SETTING_NONE INT_MIN

enum ts_container {
	TS_CONTAINER_NONE,
	TS_CONTAINER_DOCKER,
	TS_CONTAINER_PODMAN,
	TS_CONTAINER_KUBERNETES,
	TS_CONTAINER_LXC,
	TS_CONTAINER_APPTAINER,
	TS_CONTAINER_OTHER,
};

struct ts_machine {
	char kernel[64], architecture[32], system[96];
	uid_t uid;
	uint64_t capabilities, capabilities_bound; /* effective; bounding set */
	bool no_new_privileges;
	bool user_namespace;        /* not the initial one: root in it is not root on the host */
	bool private_pid_namespace; /* processes outside are invisible */
	bool virtual;
	int seccomp; /* 0 none, 1 strict, 2 filters */
	enum ts_container container;
	char container_signs[128]; /* how it was detected */
	/* Kernel settings; TS_SETTING_NONE: the kernel has no such setting. */
	int yama, perf_paranoid, bpf_disabled;
};

void ts_machine_look(struct ts_machine *ret_machine);

/* The same, once a process. For one thread. */
const struct ts_machine *ts_machine_local(void);

/* "docker", ...; "" for none. */
const char *ts_container_name(enum ts_container container);

enum ts_capability {
	TS_CAP_DAC_READ_SEARCH = 2,
	TS_CAP_NET_ADMIN = 12,
	TS_CAP_SYS_PTRACE = 19,
	TS_CAP_SYS_ADMIN = 21,
	TS_CAP_SYS_RESOURCE = 24,
	TS_CAP_PERFMON = 38,
	TS_CAP_BPF = 39,
};

static inline bool ts_machine_has(const struct ts_machine *machine, enum ts_capability capability)
{
	return machine->capabilities >> capability & 1;
}

/* The capabilities that checks use; ends with a NULL name. */
struct ts_capability_name {
	enum ts_capability number;
	const char *name;
};
const struct ts_capability_name *ts_capability_names(void);

/* ---- small files ---- */

/*
 * Reads the beginning of a file, NUL-terminated, without a final newline. False with errno on
 * failure.
 */
bool ts_machine_read(const char *path, char *buffer, size_t bytes);

/* Reads a file that holds one number; TS_SETTING_NONE if there is no such file. */
int ts_machine_setting(const char *path);

#define TS_PCI_NVIDIA 0x10deu
#define TS_PCI_DISPLAY 0x03u

/* Counts PCI functions of a vendor whose class begins with these bits, such as TS_PCI_DISPLAY. */
unsigned int ts_machine_pci_count(unsigned int vendor, unsigned int class_byte);

#endif
