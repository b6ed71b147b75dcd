/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of this process, of another one, and of a fake one; ranges that cannot be read. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "python/local/python_memory.h"
#include "unit/runner.h"

#define PAGE 4096

static char *page_with_hole; /* two pages, the second of which cannot be read */

static pid_t start_child(void)
{
	pid_t pid;

	page_with_hole =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TS_CHECK(page_with_hole != MAP_FAILED);
	memset(page_with_hole, 'x', PAGE);
	TS_CHECK(munmap(page_with_hole + PAGE, PAGE) == 0);
	pid = fork();
	TS_CHECK(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	memset(page_with_hole, 'y', PAGE); /* in this process only */
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TS_TEST(own_memory_is_copied)
{
	struct ts_python_memory memory = { 0 };
	char text[] = "in place", copy[sizeof(text)] = "";

	TS_CHECK(ts_python_memory_read(&memory, (uintptr_t)text, copy, sizeof(text)));
	TS_CHECK_STR(copy, "in place");
	TS_CHECK_INT(memory.system_calls, 0);
	TS_CHECK_INT(memory.bytes, sizeof(text));
}

TS_TEST(another_process_is_read_in_one_call)
{
	pid_t pid = start_child();
	struct ts_python_memory memory = { .pid = pid };
	char copies[300][4] = { "" };
	struct ts_python_memory_range ranges[300];

	for (int i = 0; i < 300; i++)
		ranges[i] = (struct ts_python_memory_range){
			(uintptr_t)page_with_hole + (unsigned int)i, copies[i], 4
		};
	TS_CHECK_INT(ts_python_memory_read_ranges(&memory, ranges, 20), 20);
	TS_CHECK_INT(memory.system_calls, 1);
	TS_CHECK_INT(memory.bytes, 80);
	TS_CHECK_MEM(copies[19], "xxxx", 4);
	TS_CHECK_INT(ts_python_memory_read_ranges(&memory, ranges, 300), 300);
	TS_CHECK_MEM(copies[299], "xxxx", 4);
	end_child(pid);
}

TS_TEST(a_range_that_cannot_be_read_ends_them)
{
	pid_t pid = start_child();
	struct ts_python_memory memory = { .pid = pid };
	char copy[3][16];
	struct ts_python_memory_range ranges[3] = {
		{ (uintptr_t)page_with_hole, copy[0], 16 },
		{ (uintptr_t)page_with_hole + PAGE - 8, copy[1], 16 },
		{ (uintptr_t)page_with_hole, copy[2], 16 },
	};

	TS_CHECK_INT(ts_python_memory_read_ranges(&memory, ranges, 3), 1);
	TS_CHECK_INT(ts_python_memory_read_ranges(&memory, ranges + 1, 2), 0);
	TS_CHECK(!ts_python_memory_read(&memory, (uintptr_t)page_with_hole + PAGE, copy[0], 1));
	TS_CHECK(!ts_python_memory_read(&memory, 8, copy[0], 8));
	end_child(pid);
	TS_CHECK_INT(ts_python_memory_read_ranges(&memory, ranges, 3), -ESRCH);
}

static bool give(void *context, uint64_t address, void *copy, size_t bytes)
{
	(void)context;
	if (address + bytes > 100)
		return false;
	memset(copy, (int)address, bytes);
	return true;
}

TS_TEST(made_up_memory)
{
	struct ts_python_memory memory = { .read = give };
	char copy[3];
	struct ts_python_memory_range ranges[3] = { { 1, copy, 1 },
						    { 2, copy + 1, 1 },
						    { 100, copy + 2, 1 } };

	TS_CHECK_INT(ts_python_memory_read_ranges(&memory, ranges, 3), 2);
	TS_CHECK_MEM(copy, "\1\2", 2);
	TS_CHECK_INT(memory.system_calls, 1);
}
