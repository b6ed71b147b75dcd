/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the agent can be loaded into a process: from its program's ELF header (untrusted) and
 * from its credentials.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "base/process_internal.h"

#define MAX_PROGRAM_HEADERS 512

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#elif defined(__riscv)
#define OUR_MACHINE EM_RISCV
#else
#define OUR_MACHINE EM_NONE
#endif

/* ---- privileges ---- */

/* "real effective ..." */
static bool has_other_ids(const char *status, const char *key)
{
	const char *line = ts_proc_status_line(status, key);
	char *end;
	unsigned long real;

	if (!line)
		return false;
	real = strtoul(line, &end, 10);
	return strtoul(end, NULL, 10) != real;
}

/* AT_SECURE, which the loader checks; -1 if unreadable. */
static int secure_by_auxv(pid_t pid)
{
	Elf64_auxv_t entries[64];
	size_t bytes = ts_proc_read(pid, "auxv", (char *)entries, sizeof(entries));

	for (size_t i = 0; i < bytes / sizeof(entries[0]); i++) {
		if (entries[i].a_type == AT_SECURE)
			return entries[i].a_un.a_val != 0;
	}
	return -1;
}

static bool is_secure_file(int fd)
{
	struct stat status;

	if (fstat(fd, &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)))
		return true;
	return fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static bool is_secure(pid_t pid, int program_fd)
{
	char status[8192];
	int by_auxv;

	ts_proc_read(pid, "status", status, sizeof(status));
	if (has_other_ids(status, "Uid") || has_other_ids(status, "Gid"))
		return true;
	by_auxv = secure_by_auxv(pid);
	return by_auxv >= 0 ? by_auxv : program_fd >= 0 && is_secure_file(program_fd);
}

/* ---- the program ---- */

static bool read_at(int fd, void *buffer, size_t bytes, uint64_t offset)
{
	return offset <= INT64_MAX - bytes &&
	       pread(fd, buffer, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* A program with an interpreter is loaded by ld.so, which also loads the agent. */
static enum ts_preload preload_by_headers(int fd, const Elf64_Ehdr *header)
{
	unsigned int count = TS_MIN(header->e_phnum, MAX_PROGRAM_HEADERS);
	Elf64_Phdr segment;

	if (header->e_phentsize != sizeof(segment))
		return TS_PRELOAD_UNKNOWN;
	for (unsigned int i = 0; i < count; i++) {
		uint64_t offset;

		if (__builtin_add_overflow(header->e_phoff, (uint64_t)i * sizeof(segment),
					   &offset) ||
		    !read_at(fd, &segment, sizeof(segment), offset))
			return TS_PRELOAD_UNKNOWN;
		if (segment.p_type == PT_INTERP)
			return TS_PRELOAD_POSSIBLE;
	}
	return TS_PRELOAD_STATIC;
}

static enum ts_preload preload_by_program(int fd)
{
	Elf64_Ehdr header;

	if (!read_at(fd, &header, sizeof(header), 0) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return TS_PRELOAD_UNKNOWN;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_machine != OUR_MACHINE)
		return TS_PRELOAD_OTHER_ARCH;
	if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
		return TS_PRELOAD_UNKNOWN;
	return preload_by_headers(fd, &header);
}

enum ts_preload ts_process_preload(pid_t pid)
{
	TS_AUTO_FD int fd = ts_proc_open(pid, "exe", O_RDONLY | O_NONBLOCK);

	if (is_secure(pid, fd))
		return TS_PRELOAD_SECURE;
	return fd >= 0 ? preload_by_program(fd) : TS_PRELOAD_UNKNOWN;
}

const char *ts_preload_reason(enum ts_preload preload)
{
	switch (preload) {
	case TS_PRELOAD_POSSIBLE:
		return "the agent can be loaded into it";
	case TS_PRELOAD_STATIC:
		return "static program: the agent cannot be loaded into it";
	case TS_PRELOAD_SECURE:
		return "privileged program (setuid, setgid or capabilities): the agent is not loaded into it";
	case TS_PRELOAD_OTHER_ARCH:
		return "program for another architecture: the agent cannot be loaded into it";
	case TS_PRELOAD_UNKNOWN:
		break;
	}
	return "its program cannot be read";
}

const char *ts_preload_advice(enum ts_preload preload)
{
	switch (preload) {
	case TS_PRELOAD_STATIC:
		return "link it dynamically (Go: with cgo)";
	case TS_PRELOAD_SECURE:
		return "run it without its privileges";
	case TS_PRELOAD_OTHER_ARCH:
		return "use a tracesmith for its architecture";
	case TS_PRELOAD_POSSIBLE:
	case TS_PRELOAD_UNKNOWN:
		break;
	}
	return "'tracesmith doctor' shows what can be recorded here";
}
