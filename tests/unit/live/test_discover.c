/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of areas, whose processes may be dead or of other users, and cleaning up. */
#include "live/discover.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/process.h"
#include "unit/live/live_support.h"

struct listed {
	struct ts_area_info infos[32];
	int count;
	char refused[64], why[192];
	int refused_count;
};

static void note_area(void *context, const struct ts_area_info *info)
{
	struct listed *listed = context;

	TS_CHECK(listed->count < 32);
	listed->infos[listed->count++] = *info;
}

static void note_refused(void *context, const char *name, const char *why)
{
	struct listed *listed = context;

	snprintf(listed->refused, sizeof(listed->refused), "%s", name);
	snprintf(listed->why, sizeof(listed->why), "%s", why);
	listed->refused_count++;
}

static struct listed *list_of(const struct live *live, uint64_t pid_namespace)
{
	struct listed *listed = calloc(1, sizeof(*listed));

	TS_CHECK(listed != NULL);
	TS_CHECK_INT(ts_areas_list(live->directory_fd, pid_namespace, note_area, note_refused,
				   listed, NULL),
		     TS_OK);
	return listed;
}

static struct listed *list(const struct live *live)
{
	return list_of(live, 0);
}

/* An area file with one ring entry, of which `taken` bytes were consumed. */
static void write_area(const struct live *live, const struct ts_live_control *control,
		       const char *ending, uint64_t head, uint64_t taken, char *ret_name)
{
	struct ts_live_ring ring = {
		.head = head,
		.bytes = 4096,
		.consumed = taken,
		.consumed_check = ts_live_consumed_check(taken, 0, 0, 0),
	};
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "%u-%llu-%016llx%s", control->pid,
		 (unsigned long long)control->start_time, (unsigned long long)control->area_id,
		 ending);
	fd = openat(live->directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	TS_CHECK(fd >= 0 && write(fd, control, sizeof(*control)) == sizeof(*control));
	TS_CHECK(write(fd, &ring, sizeof(ring)) == sizeof(ring));
	close(fd);
	if (ret_name)
		memcpy(ret_name, name, sizeof(name));
}

static struct ts_live_control self_control(uint64_t area_id)
{
	struct ts_live_control control;

	live_fill_control(&control, (uint32_t)getpid(), ts_process_start_time(getpid()));
	control.pid_namespace = ts_process_namespace(getpid());
	control.area_id = area_id;
	control.rings = 1;
	return control;
}

static struct ts_live_control dead_control(uint64_t area_id)
{
	struct ts_live_control control = self_control(area_id);

	control.start_time++;
	return control;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static bool exists(const struct live *live, const char *name)
{
	return faccessat(live->directory_fd, name, F_OK, 0) == 0;
}

static void remove_all(struct live *live)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'/*", live->path);
	TS_CHECK(system(command) == 0);
	live_release(live);
}

TS_TEST(lists_areas_and_nothing_else)
{
	static const char *const others[] = {
		"x",
		"1-2",
		"1-2-3",
		"0-2-0123456789abcdef",
		"-1-2-0123456789abcdef",
		"1-2-0123456789ABCDEF",
		"1-2-0123456789abcdef.old",
		"99999999999-2-0123456789abcdef",
	};
	struct live live;
	struct ts_live_control control;
	struct listed *listed;

	live_directory(&live);
	for (size_t i = 0; i < TS_ARRAY_SIZE(others); i++)
		close(openat(live.directory_fd, others[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	/* Valid names, invalid contents. */
	close(openat(live.directory_fd, "1-2-0123456789abcdef", O_CREAT | O_WRONLY | O_CLOEXEC,
		     0600));
	TS_CHECK(symlinkat("/etc/passwd", live.directory_fd, "1-3-0123456789abcdef") == 0);
	TS_CHECK(mkfifoat(live.directory_fd, "1-4-0123456789abcdef", 0600) == 0);
	TS_CHECK(mkfifoat(live.directory_fd, "1-4-0123456789abcdef.new", 0600) == 0);
	control = self_control(5);
	write_area(&live, &control, "", 0, 0, NULL);
	control.version = 9;
	control.area_id = 6;
	write_area(&live, &control, "", 0, 0, NULL);
	listed = list(&live);
	TS_CHECK_INT(listed->count, 1);
	TS_CHECK_INT(listed->infos[0].pid, getpid());
	TS_CHECK(listed->infos[0].alive && !listed->infos[0].superseded);
	TS_CHECK(!listed->infos[0].unfinished && !listed->infos[0].unknown);
	TS_CHECK_INT(listed->infos[0].file_bytes, 4096 + 256);
	TS_CHECK(listed->infos[0].modified_ns > 0);
	TS_CHECK_INT(listed->refused_count, 1);
	TS_CHECK(strstr(listed->refused, "-0000000000000006") != NULL);
	TS_CHECK(strstr(listed->why, "newer") != NULL);
	free(listed);
	remove_all(&live);
}

/* It would end all other areas of its process, and its rows would come last. */
TS_TEST(areas_from_the_future)
{
	struct live live;
	struct ts_live_control control;
	struct listed *listed;

	live_directory(&live);
	control = self_control(1);
	write_area(&live, &control, "", 0, 0, NULL);
	control = self_control(2);
	control.image++;
	control.created.monotonic_ns = ts_clock_monotonic_ns() + INT64_C(3600000000000);
	write_area(&live, &control, "", 0, 0, NULL);
	/* The clock of another boot says nothing. */
	control.area_id = 3;
	memset(control.boot_id, 7, sizeof(control.boot_id));
	write_area(&live, &control, "", 0, 0, NULL);
	listed = list(&live);
	TS_CHECK_INT(listed->count, 2);
	TS_CHECK_INT(listed->refused_count, 1);
	TS_CHECK(strstr(listed->refused, "-0000000000000002") != NULL);
	TS_CHECK(strstr(listed->why, "in the future") != NULL);
	free(listed);
	remove_all(&live);
}

TS_TEST(dead_areas)
{
	struct live live;
	struct ts_live_control control;
	struct listed *listed;

	live_directory(&live);
	control = dead_control(1);
	write_area(&live, &control, "", 0, 0, NULL);
	/* Alive by pid and start time, but from another boot. */
	control = self_control(2);
	memset(control.boot_id, 7, sizeof(control.boot_id));
	write_area(&live, &control, "", 0, 0, NULL);
	control = self_control(3);
	control.start_time = 0;
	write_area(&live, &control, "", 0, 0, NULL);
	listed = list(&live);
	TS_CHECK_INT(listed->count, 3);
	for (int i = 0; i < 3; i++) {
		TS_CHECK(!listed->infos[i].alive && !listed->infos[i].unknown);
		TS_CHECK_INT(listed->infos[i].pid, 0);
	}
	free(listed);
	remove_all(&live);
}

static const struct ts_area_info *info_of(const struct listed *listed, uint64_t area_id)
{
	for (int i = 0; i < listed->count; i++)
		if (listed->infos[i].control.area_id == area_id)
			return &listed->infos[i];
	ts_test_fail(__FILE__, __LINE__, "area %llu is not listed", (unsigned long long)area_id);
}

TS_TEST(exec_supersedes)
{
	struct live live;
	struct ts_live_control control;
	struct listed *listed;

	live_directory(&live);
	/* Two of the first image, one of the second, two of the third. */
	for (uint64_t i = 1; i <= 5; i++) {
		control = self_control(i);
		control.image = 100 + i / 2;
		control.created.monotonic_ns = (int64_t)i;
		write_area(&live, &control, "", 0, 0, NULL);
	}
	/* The same pid and image, another process. */
	control = dead_control(6);
	control.image = 100;
	write_area(&live, &control, "", 0, 0, NULL);
	listed = list(&live);
	TS_CHECK_INT(listed->count, 6);
	TS_CHECK(info_of(listed, 1)->superseded && info_of(listed, 1)->alive);
	TS_CHECK(info_of(listed, 2)->superseded && info_of(listed, 3)->superseded);
	TS_CHECK(!info_of(listed, 4)->superseded && !info_of(listed, 5)->superseded);
	TS_CHECK(!info_of(listed, 6)->superseded && !info_of(listed, 6)->alive);
	free(listed);
	remove_all(&live);
}

/* A process of another pid namespace, where its pid is 1. */
TS_TEST(areas_of_other_namespaces)
{
	struct live live;
	struct ts_live_control control;
	struct listed *listed;
	int ready[2];
	pid_t helper, child = 0;

	TS_CHECK(pipe(ready) == 0);
	helper = fork();
	if (helper == 0) {
		if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
			child = -1;
		else
			child = fork();
		if (child == 0)
			for (;;)
				pause();
		if (write(ready[1], &child, sizeof(child)) != sizeof(child))
			_exit(1);
		for (;;)
			pause();
	}
	TS_CHECK(read(ready[0], &child, sizeof(child)) == sizeof(child));
	close(ready[0]);
	close(ready[1]);
	if (child < 0) {
		end_child(helper);
		ts_test_skip("namespaces cannot be made here");
	}
	TS_CHECK_INT(ts_process_inner_pid(child), 1);
	live_directory(&live);
	live_fill_control(&control, 1, ts_process_start_time(child));
	control.pid_namespace = ts_process_namespace(child);
	write_area(&live, &control, "", 0, 0, NULL);
	/* Another process of that namespace, which has exited. */
	control.pid = 77;
	control.area_id = 2;
	write_area(&live, &control, "", 0, 0, NULL);
	/* The same numbers in a namespace that does not exist. */
	control.pid = 1;
	control.area_id = 3;
	control.pid_namespace = 12345;
	write_area(&live, &control, "", 0, 0, NULL);
	listed = list(&live);
	TS_CHECK_INT(listed->count, 3);
	TS_CHECK(info_of(listed, LIVE_AREA_ID)->alive);
	TS_CHECK_INT(info_of(listed, LIVE_AREA_ID)->pid, child);
	TS_CHECK(!info_of(listed, 2)->alive && !info_of(listed, 3)->alive);
	free(listed);
	kill(child, SIGKILL);
	end_child(helper);
	remove_all(&live);
}

/* ---- areas of several users ---- */

#define NOBODY 65534u
#define STRANGER 65533u

/* A process of another user. */
static pid_t start_as(uid_t user)
{
	int ready[2];
	pid_t child;
	char byte;

	TS_CHECK(pipe(ready) == 0);
	child = fork();
	if (child == 0) {
		if (setresuid(user, user, user) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	TS_CHECK(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

static void write_area_of(const struct live *live, uid_t owner, pid_t pid, uint64_t area_id,
			  char *ret_name)
{
	struct ts_live_control control = self_control(area_id);
	char name[64];

	control.pid = (uint32_t)pid;
	control.start_time = ts_process_start_time(pid);
	write_area(live, &control, "", 0, 0, name);
	TS_CHECK_INT(fchownat(live->directory_fd, name, owner, (gid_t)-1, 0), 0);
	if (ret_name)
		memcpy(ret_name, name, sizeof(name));
}

TS_TEST(processes_of_users)
{
	uid_t user = 1;
	pid_t child;

	TS_CHECK(ts_process_user(getpid(), &user) && user == geteuid());
	TS_CHECK(ts_process_is_of(getpid(), geteuid()) && ts_process_is_of(getpid(), 0));
	TS_CHECK(!ts_process_user(0, &user) && !ts_process_is_of(-1, 0));
	if (geteuid() != 0)
		ts_test_skip("only root can start processes of other users");
	TS_CHECK(!ts_process_is_of(getpid(), NOBODY));
	child = start_as(NOBODY);
	TS_CHECK(ts_process_user(child, &user) && user == NOBODY);
	TS_CHECK(ts_process_is_of(child, NOBODY) && !ts_process_is_of(child, STRANGER));
	TS_CHECK(ts_process_is_of(child, 0));
	end_child(child);
	TS_CHECK(!ts_process_is_of(child, NOBODY));
}

TS_TEST(areas_name_processes_of_their_owner)
{
	struct listed *listed;
	struct ts_area *area;
	struct live live;
	char name[64];
	pid_t child;

	if (geteuid() != 0)
		ts_test_skip("only root can give files away");
	child = start_as(NOBODY);
	live_directory(&live);
	write_area_of(&live, NOBODY, child, 1, name);
	write_area_of(&live, 0, child, 2, NULL);
	write_area_of(&live, NOBODY, getpid(), 3, NULL);
	write_area_of(&live, STRANGER, child, 4, NULL);
	listed = list(&live);
	TS_CHECK_INT(listed->count, 2);
	TS_CHECK(info_of(listed, 1)->alive && info_of(listed, 1)->owner == NOBODY);
	TS_CHECK(info_of(listed, 2)->alive && info_of(listed, 2)->owner == 0);
	TS_CHECK_INT(listed->refused_count, 2);
	TS_CHECK(strstr(listed->why, "does not belong to user") != NULL);
	free(listed);
	/* A recorder writes only into what the owner of the directory has made there. */
	TS_CHECK_INT(ts_area_open(&area, live.directory_fd, name, true, NULL), TS_EFORMAT);
	TS_CHECK_INT(ts_area_open(&area, live.directory_fd, name, false, NULL), TS_OK);
	ts_area_close(area);
	end_child(child);
	/* Nobody can say any more whose process it was. */
	listed = list(&live);
	TS_CHECK_INT(listed->count, 3);
	TS_CHECK(!info_of(listed, 4)->alive && info_of(listed, 4)->pid == 0);
	free(listed);
	remove_all(&live);
}

TS_TEST(recorders_are_of_the_owner_or_root)
{
	struct ts_live_control control = self_control(1);
	pid_t child;

	control.recorder_pid = (uint64_t)getpid();
	control.recorder_start = ts_process_start_time(getpid());
	TS_CHECK_INT(ts_area_recorder(&control, geteuid()), getpid());
	control.recorder_start++;
	TS_CHECK_INT(ts_area_recorder(&control, geteuid()), 0);
	control.recorder_pid = UINT64_C(1) << 40;
	TS_CHECK_INT(ts_area_recorder(&control, geteuid()), 0);
	if (geteuid() != 0)
		ts_test_skip("only root can start processes of other users");
	control.recorder_pid = (uint64_t)getpid();
	control.recorder_start--;
	TS_CHECK_INT(ts_area_recorder(&control, NOBODY), getpid());
	child = start_as(NOBODY);
	control.recorder_pid = (uint64_t)child;
	control.recorder_start = ts_process_start_time(child);
	TS_CHECK_INT(ts_area_recorder(&control, NOBODY), child);
	TS_CHECK_INT(ts_area_recorder(&control, STRANGER), 0);
	end_child(child);
}

/* The directory of a container says nothing about processes outside of it. */
TS_TEST(directories_of_namespaces_name_their_processes)
{
	struct ts_live_control control = self_control(1);
	uint64_t ours = ts_process_namespace(getpid());
	struct ts_area_info info;
	struct listed *listed;
	struct live live;
	char name[64];

	live_directory(&live);
	write_area(&live, &control, "", 0, 0, name);
	listed = list_of(&live, ours + 1);
	TS_CHECK_INT(listed->count, 0);
	TS_CHECK_INT(listed->refused_count, 1);
	free(listed);
	TS_CHECK_INT(ts_area_look(live.directory_fd, ours + 1, name, &info, NULL), TS_ENOTFOUND);
	listed = list_of(&live, ours);
	TS_CHECK_INT(listed->count, 1);
	free(listed);
	TS_CHECK_INT(ts_area_look(live.directory_fd, ours, name, &info, NULL), TS_OK);
	TS_CHECK(info.alive && info.pid == getpid() && info.owner == geteuid());
	TS_CHECK_INT(ts_area_look(live.directory_fd, 0, "x", &info, NULL), TS_EINVAL);
	remove_all(&live);
}

TS_TEST(removes_the_same_file_only)
{
	struct live live;
	struct ts_live_control control = self_control(4);
	char name[64];

	live_directory(&live);
	write_area(&live, &control, "", 0, 0, name);
	TS_CHECK_INT(ts_area_remove(live.directory_fd, name, 5), TS_ENOTFOUND);
	TS_CHECK(exists(&live, name));
	TS_CHECK_INT(ts_area_remove(live.directory_fd, name, 4), TS_OK);
	TS_CHECK(!exists(&live, name));
	TS_CHECK_INT(ts_area_remove(live.directory_fd, name, 4), TS_ENOTFOUND);
	remove_all(&live);
}

TS_TEST(clears_away_what_nobody_will_read)
{
	struct live live;
	struct ts_live_control control;
	char alive[64], taken[64], untaken[64], fresh[64], dropped[64], watched[64], old[64];
	unsigned int removed = 0;

	live_directory(&live);
	control = self_control(1);
	write_area(&live, &control, "", 64, 64, alive);
	control = dead_control(2);
	write_area(&live, &control, "", 64, 64, taken);
	control = dead_control(3);
	write_area(&live, &control, "", 64, 0, untaken);
	control = self_control(4);
	write_area(&live, &control, ".new", 0, 0, fresh);
	control = dead_control(5);
	write_area(&live, &control, ".new", 0, 0, dropped);
	control = dead_control(6);
	control.recorder_pid = (uint64_t)getpid();
	control.recorder_start = ts_process_start_time(getpid());
	write_area(&live, &control, "", 64, 64, watched);
	/* The process continues as another program. */
	control = self_control(7);
	control.image = 0;
	control.created.monotonic_ns = -1;
	write_area(&live, &control, "", 64, 64, old);
	TS_CHECK_INT(ts_areas_clean(live.directory_fd, 1, &removed, NULL), TS_OK);
	TS_CHECK(exists(&live, alive) && exists(&live, untaken) && exists(&live, fresh));
	TS_CHECK(exists(&live, watched));
	TS_CHECK(!exists(&live, taken) && !exists(&live, dropped) && !exists(&live, old));
	TS_CHECK_INT(removed, 3);
	remove_all(&live);
}

TS_TEST(keeps_the_newest_of_those_nobody_took)
{
	struct live live;
	struct ts_live_control control;
	char names[5][64];
	unsigned int removed = 0;

	live_directory(&live);
	for (uint64_t i = 0; i < 5; i++) {
		struct timespec times[2] = { { .tv_sec = 1000 + (time_t)(i * 7 % 5) },
					     { .tv_sec = 1000 + (time_t)(i * 7 % 5) } };

		control = dead_control(i + 1);
		write_area(&live, &control, "", 64, 0, names[i]);
		TS_CHECK(utimensat(live.directory_fd, names[i], times, 0) == 0);
	}
	TS_CHECK_INT(ts_areas_clean(live.directory_fd, 2, &removed, NULL), TS_OK);
	TS_CHECK_INT(removed, 3);
	/* Ages 0 2 4 1 3. */
	TS_CHECK(exists(&live, names[2]) && exists(&live, names[4]));
	TS_CHECK_INT(ts_areas_clean(live.directory_fd, 0, NULL, NULL), TS_OK);
	TS_CHECK(!exists(&live, names[2]) && !exists(&live, names[4]));
	remove_all(&live);
}
