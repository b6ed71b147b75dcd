/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device files of accelerators by number and by name, and the processes that use them: /dev/full
 * stands in for one.
 */
#include "sample/metrics/device_files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "unit/runner.h"

static struct ts_device_table table;

static bool find(const char *path, unsigned int major_number, unsigned int minor_number,
		 struct ts_device_file *ret_file)
{
	return ts_device_table_find(&table, path, makedev(major_number, minor_number), ret_file);
}

static void expect(const char *path, unsigned int major_number, unsigned int minor_number,
		   const char *vendor, int64_t number)
{
	struct ts_device_file file;

	if (!find(path, major_number, minor_number, &file))
		ts_test_fail(__FILE__, __LINE__, "'%s' is not known", path);
	TS_CHECK_STR(file.vendor, vendor);
	TS_CHECK_INT(file.number, number);
}

TS_TEST(names_are_known)
{
	static const char *const others[] = {
		"/dev/nvidiactl",
		"/dev/nvidia-modeset",
		"/dev/davinci_manager",
		"/dev/hisi_hdc",
		"/dev/hl_controlD0",
		"/dev/gcu0vid0",
		"/dev/dri/card0",
		"/dev/null",
		"/tmp/nvidia0",
		"/dev/nvidia-uvm-tools",
		"/dev/xpuctrl",
		"/dev/nvidia",
		"/dev/davinci",
		"/dev/davinci0x",
		"/dev/kfdx",
		"/dev/accel/accel_controlD0",
	};
	struct ts_device_file file;

	expect("/dev/davinci3", 250, 7, "Ascend", 3);
	expect("/dev/devmm_svm", 250, 8, "Ascend", TS_METRICS_UNKNOWN);
	expect("/dev/nvidia-uvm", 240, 0, "NVIDIA", TS_METRICS_UNKNOWN);
	expect("/dev/kfd", 240, 1, "AMD", TS_METRICS_UNKNOWN);
	expect("/dev/neuron12", 240, 12, "AWS", 12);
	expect("/dev/hl4", 240, 8, "Intel", 4);
	expect("/dev/accel0", 240, 8, "Google", 0);
	expect("/dev/tenstorrent/1", 240, 8, "Tenstorrent", 1);
	/* Graphics programs use these, too. */
	TS_CHECK(find("/dev/dri/renderD128", 511, 128, &file));
	TS_CHECK(file.is_render);
	TS_CHECK_STR(file.name, "dri/renderD128");
	TS_CHECK(find("/dev/kfd", 240, 1, &file) && !file.is_render);
	for (size_t i = 0; i < TS_ARRAY_SIZE(others); i++)
		if (find(others[i], 240, 2, &file))
			ts_test_fail(__FILE__, __LINE__, "'%s' is said to be %s's", others[i],
				     file.vendor);
	ts_device_table_release(&table);
}

TS_TEST(drivers_are_known_by_number)
{
	struct ts_device_file file;

	TS_CHECK_INT(ts_device_table_add_drivers(&table,
						 "Character devices:\n  1 mem\n195 nvidia\n"
						 "195 nvidia-modeset\n195 nvidiactl\n226 drm\n"
						 "237 kfd\n508 nvidia-uvm\n261 accel\n240 neuron\n"
						 "\nBlock devices:\n241 kfd\n"),
		     TS_OK);
	TS_CHECK(ts_device_table_has(&table, "NVIDIA"));
	TS_CHECK(ts_device_table_has(&table, "AMD"));
	TS_CHECK(!ts_device_table_has(&table, "Ascend"));
	/* Whatever name a container gives them. */
	TS_CHECK(find("/dev/my-gpu", 195, 2, &file));
	TS_CHECK_STR(file.vendor, "NVIDIA");
	TS_CHECK_STR(file.name, "my-gpu");
	expect("/dev/x", 508, 0, "NVIDIA", TS_METRICS_UNKNOWN);
	expect("/dev/x", 237, 0, "AMD", TS_METRICS_UNKNOWN);
	expect("/dev/x", 240, 3, "AWS", 3);
	/* Control nodes, display cards, tools, block devices. */
	TS_CHECK(!find("/dev/x", 195, 255, &file));
	TS_CHECK(!find("/dev/x", 195, 254, &file));
	TS_CHECK(!find("/dev/x", 226, 0, &file));
	TS_CHECK(!find("/dev/x", 508, 1, &file));
	TS_CHECK(!find("/dev/x", 241, 0, &file));
	TS_CHECK(!find("/dev/x", 1, 3, &file));
	ts_device_table_release(&table);
}

TS_TEST(the_machine_can_be_looked_at)
{
	struct ts_error err;

	TS_CHECK_INT(ts_device_table_init(&table, &err), TS_OK);
	TS_CHECK(!ts_device_table_has(&table, "Nobody"));
	ts_device_table_release(&table);
}

/* ---- users ---- */

static void use_full(void)
{
	struct ts_device_file file = { .vendor = "Test", .name = "full", .number = 5 };
	struct stat status;

	TS_CHECK_INT(stat("/dev/full", &status), 0);
	TS_CHECK_INT(ts_device_table_add_node(&table, status.st_rdev, &file), TS_OK);
}

static unsigned int seen;

static void count(void *context, const struct ts_device_file *file)
{
	TS_CHECK_STR(file->vendor, "Test");
	TS_CHECK_INT(file->number, 5);
	seen++;
}

static unsigned int files_of(pid_t pid)
{
	seen = 0;
	TS_CHECK_INT(ts_process_device_files(&table, pid, count, NULL), 0);
	return seen;
}

TS_TEST(open_files_are_found)
{
	int fd, other, null;

	use_full();
	null = open("/dev/null", O_RDWR);
	TS_CHECK_INT(files_of(getpid()), 0);
	TS_CHECK(!ts_process_has_device(&table, getpid(), "Test"));
	fd = open("/dev/full", O_RDWR);
	other = dup(fd);
	TS_CHECK_INT(files_of(getpid()), 2);
	TS_CHECK(ts_process_has_device(&table, getpid(), "Test"));
	TS_CHECK(!ts_process_has_device(&table, getpid(), "NVIDIA"));
	close(fd);
	close(other);
	close(null);
	TS_CHECK_INT(files_of(getpid()), 0);
	ts_device_table_release(&table);
}

/* A text as the kernel writes it, since no device here can be mapped. */
TS_TEST(mapped_files_are_found)
{
	char path[] = "/tmp/ts-maps-XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	use_full();
	TS_CHECK(file != NULL);
	fputs("55d0c8a00000-55d0c8a22000 r--p 00000000 fe:01 393    /usr/bin/dash\n", file);
	/* More than one read returns. */
	for (int i = 0; i < 2000; i++)
		fputs("7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n", file);
	fputs("7f0000000000-7f0000021000 rw-s 00000000 00:06 9      /dev/full\n", file);
	fputs("7f0000000000-7f0000021000 rw-s 00000000 00:06 9      /dev/null\n", file);
	fputs("7f0000000000-7f0000021000 rw-s 00000000 00:06 9      /dev/shm/full\n", file);
	fputs("7f0000000000-7f0000021000 rw-s 00000000 00:06 9      /dev/gone0 (deleted)\n", file);
	fputs("7f0000000000-7f0000021000 rw-s 00000000 00:06 9      /dev/full\n", file);
	fputs("7f0000000000-7f0000021000 rw-s 00000000 00:06 9      /dev/full", file);
	fclose(file);
	seen = 0;
	TS_CHECK_INT(ts_mapped_device_files(&table, getpid(), path, count, NULL), 2);
	TS_CHECK_INT(seen, 2);
	unlink(path);
	TS_CHECK_INT(ts_mapped_device_files(&table, getpid(), path, count, NULL), 0);
	ts_device_table_release(&table);
}

TS_TEST(the_gone_and_the_hidden_are_told)
{
	pid_t child = fork();
	int status;

	use_full();
	if (child == 0)
		_exit(0);
	waitpid(child, &status, 0);
	TS_CHECK_INT(ts_process_device_files(&table, child, count, NULL), -ENOENT);
	if (getuid() == 0) {
		child = fork();
		if (child == 0) {
			if (setgid(65534) || setuid(65534))
				_exit(2);
			_exit(ts_process_device_files(&table, 1, count, NULL) == -EACCES ? 0 : 1);
		}
		waitpid(child, &status, 0);
		TS_CHECK_INT(status, 0);
	}
	ts_device_table_release(&table);
}
