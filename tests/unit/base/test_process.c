/* SPDX-License-Identifier: Apache-2.0 */
/* Processes in /proc: identity, memory maps, kinds of programs, descendants. */
#include "base/process.h"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process_internal.h"
#include "unit/runner.h"

/* A child that waits to be killed. */
static pid_t start_child(void)
{
	pid_t child = fork();

	TS_CHECK(child >= 0);
	if (child == 0) {
		for (;;)
			pause();
	}
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

TS_TEST(process_facts)
{
	pid_t child = start_child();
	char text[64];

	TS_CHECK(ts_process_start_time(getpid()) > 0);
	TS_CHECK(ts_process_start_time(child) >= ts_process_start_time(getpid()));
	TS_CHECK_INT(ts_process_parent(child), getpid());
	TS_CHECK(ts_process_namespace(child) != 0);
	TS_CHECK_INT(ts_process_namespace(child), ts_process_namespace(getpid()));
	TS_CHECK(ts_process_inner_pid(child) > 0);
	ts_process_name(child, text, sizeof(text));
	TS_CHECK(strncmp(text, "test_process", 12) == 0 && !strchr(text, '\n'));
	TS_CHECK_INT(ts_process_command(child, text, 4), 3);
	TS_CHECK_INT(strlen(text), 3);
	/* A zombie is gone. */
	kill(child, SIGKILL);
	TS_CHECK(waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT) == 0);
	TS_CHECK_INT(ts_process_start_time(child), 0);
	TS_CHECK(ts_process_any_start_time(child) >= ts_process_start_time(getpid()));
	waitpid(child, NULL, 0);
	TS_CHECK_INT(ts_process_start_time(child), 0);
	TS_CHECK_INT(ts_process_any_start_time(child), 0);
	TS_CHECK_INT(ts_process_parent(child), 0);
	TS_CHECK_INT(ts_process_namespace(child), 0);
	TS_CHECK_INT(ts_process_inner_pid(child), 0);
	TS_CHECK(!ts_process_exists(child, NULL));
	TS_CHECK(!ts_process_exists(0, NULL));
	TS_CHECK(!ts_process_exists(-1, NULL));
	TS_CHECK_INT(ts_process_start_time(0), 0);
	TS_CHECK_INT(ts_process_start_time(-1), 0);
}

/* In a virtual machine or a container of its own, pid 1 may have started at time 0. */
TS_TEST(pid_1_is_a_process)
{
	uint64_t start_time = UINT64_MAX;

	TS_CHECK(ts_process_exists(1, &start_time));
	TS_CHECK(start_time != UINT64_MAX);
	TS_CHECK(ts_process_lives(1, start_time));
	TS_CHECK(!ts_process_lives(1, start_time + 1));
}

/* Names that look like the fields after them. */
TS_TEST(process_with_a_spiteful_name)
{
	int ready[2];
	pid_t child;
	char byte;

	TS_CHECK(pipe(ready) == 0);
	child = fork();
	if (child == 0) {
		FILE *file = fopen("/proc/self/comm", "w");

		if (file) {
			fputs("a) Z 1 (b", file);
			fclose(file);
		}
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	TS_CHECK(read(ready[0], &byte, 1) == 1);
	TS_CHECK(ts_process_start_time(child) > 0);
	TS_CHECK_INT(ts_process_parent(child), getpid());
	end_child(child);
	close(ready[0]);
	close(ready[1]);
}

static void *wait_for_ever(void *argument)
{
	(void)argument;
	for (;;)
		pause();
	return NULL;
}

/* The thread group leader is a zombie, but the process is alive. */
TS_TEST(process_whose_leader_has_ended)
{
	char text[512];
	pid_t child = fork();
	bool is_zombie = false;

	if (child == 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, wait_for_ever, NULL);
		pthread_exit(NULL);
	}
	for (int i = 0; i < 5000 && !is_zombie; i++) {
		usleep(1000);
		ts_proc_read(child, "stat", text, sizeof(text));
		is_zombie = strstr(text, ") Z ") != NULL;
	}
	TS_CHECK(is_zombie);
	TS_CHECK(ts_process_start_time(child) > 0);
	end_child(child);
}

TS_TEST(process_maps)
{
	struct stat status;

	TS_CHECK(stat("/proc/self/exe", &status) == 0);
	TS_CHECK(ts_process_maps(getpid(), status.st_dev, status.st_ino));
	TS_CHECK(!ts_process_maps(getpid(), status.st_dev, status.st_ino + 1));
	/* A device with the same number: the path decides. */
	TS_CHECK(!ts_process_maps(getpid(), status.st_dev + 1, status.st_ino));
	TS_CHECK(!ts_process_maps(0, status.st_dev, status.st_ino));
}

/* ---- kinds of programs ---- */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
/* pause() in a loop */
static const unsigned char waiting_code[] = { 0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7 };
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
/* ppoll(0, 0, 0, 0) in a loop */
static const uint32_t waiting_code[] = { 0xd2800000, 0xd2800001, 0xd2800002, 0xd2800003,
					 0xd2800928, 0xd4000001, 0x17fffffa };
#else
#define MACHINE EM_NONE
static const unsigned char waiting_code[] = { 0 };
#endif

struct program {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	unsigned char code[64];
};

/* The smallest static program: it waits. */
static void fill_program(struct program *program)
{
	*program = (struct program){
		.header = {
			.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_EXEC,
			.e_machine = MACHINE,
			.e_version = EV_CURRENT,
			.e_entry = 0x400000 + offsetof(struct program, code),
			.e_phoff = offsetof(struct program, segment),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1,
		},
		.segment = {
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_vaddr = 0x400000,
			.p_filesz = sizeof(struct program),
			.p_memsz = sizeof(struct program),
			.p_align = 0x1000,
		},
	};
	memcpy(program->code, waiting_code, sizeof(waiting_code));
}

TS_TEST(entry_of_programs)
{
	char path[] = "/tmp/ts-static-XXXXXX", name[32];
	char *arguments[] = { path, NULL };
	struct program program;
	int fd = mkstemp(path);
	pid_t child;

	if (MACHINE == EM_NONE)
		ts_test_skip("no program for this machine");
	TS_CHECK_INT(ts_process_preload(getpid()), TS_PRELOAD_POSSIBLE);
	fill_program(&program);
	TS_CHECK(write(fd, &program, sizeof(program)) == sizeof(program));
	TS_CHECK(fchmod(fd, 0700) == 0);
	close(fd);
	child = fork();
	if (child == 0) {
		execv(path, arguments);
		_exit(1);
	}
	for (int i = 0; i < 2000; i++) {
		usleep(1000);
		ts_process_name(child, name, sizeof(name));
		if (strncmp(name, "ts-static", 9) == 0)
			break;
	}
	TS_CHECK_INT(ts_process_preload(child), TS_PRELOAD_STATIC);
	end_child(child);
	unlink(path);
	TS_CHECK_INT(ts_process_preload(child), TS_PRELOAD_UNKNOWN);
	TS_CHECK(strstr(ts_preload_reason(TS_PRELOAD_STATIC), "cannot be loaded") != NULL);
}

/* ---- descendants ---- */

struct found {
	pid_t pids[64], parents[64];
	int count;
};

static void note_descendant(void *context, pid_t pid, pid_t parent)
{
	struct found *found = context;

	TS_CHECK(found->count < 64);
	found->pids[found->count] = pid;
	found->parents[found->count++] = parent;
}

static int index_of(const struct found *found, pid_t pid)
{
	for (int i = 0; i < found->count; i++)
		if (found->pids[i] == pid)
			return i;
	return -1;
}

TS_TEST(descendants_parents_first)
{
	pid_t child, second = start_child(), grandchild;
	int ready[2];

	TS_CHECK(pipe(ready) == 0);
	child = fork();
	if (child == 0) {
		grandchild = start_child();
		if (write(ready[1], &grandchild, sizeof(grandchild)) != sizeof(grandchild))
			_exit(1);
		for (;;)
			pause();
	}
	TS_CHECK(read(ready[0], &grandchild, sizeof(grandchild)) == sizeof(grandchild));
	for (int by_lists = 0; by_lists < 2; by_lists++) {
		struct found found = { .count = 0 };

		ts_proc_descendants(by_lists, getpid(), note_descendant, &found);
		if (by_lists && found.count == 0)
			ts_test_skip("this kernel keeps no lists of children");
		TS_CHECK_INT(found.count, 3);
		TS_CHECK(index_of(&found, second) >= 0);
		TS_CHECK(index_of(&found, child) < index_of(&found, grandchild));
		TS_CHECK_INT(found.parents[index_of(&found, grandchild)], child);
	}
	kill(grandchild, SIGKILL);
	end_child(child);
	end_child(second);
	close(ready[0]);
	close(ready[1]);
}
