/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the live area of the process (docs/live.md, sections 1 and 2): the file, its control
 * block, and space in it. Space is allocated before it is touched, so that a full file system is an
 * error here and never a SIGBUS later.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent_python.h"
#include "agent/tracer.h"
#include "live/local/live_layout.h"
#include "live/local/live_spool.h"

#define DEFAULT_BUDGET (32u << 20)
/* The channel gets a quarter of it, and needs at most 16 MiB (docs/replay.md, section 2). */
#define REPLAY_BUDGET (64u << 20)
/*
 * For a recorder: stacks of many threads, thousands per second, until they are drained. For a
 * program: the tree of its own stacks.
 */
#define STACKS_BUDGET (64u << 20)
#define DICTIONARY_STEP (16u << 10)
#define RING_BYTES (64u << 10)
#define SMALL_BUDGET (1u << 20)
/* For small rings of threads beyond the budget: as many as there can be. */
#define RESERVE (TS_LIVE_RING_LIMIT * AGENT_SMALL_RING_BYTES)
/* Undrained areas of dead processes that stay: the newest ones that were killed and that exited. */
#define KEEP_KILLED 8
#define KEEP_EXITED 2
#define KEEP_BYTES (32u << 20)

/* ---- the directory ---- */

/* Opens the live directory, creates it if needed, and checks its owner; -1 with errno. */
static int open_directory(const struct agent_settings *settings, char *path, size_t bytes)
{
	struct stat status;
	int fd;

	if (settings->has_no_directory) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (settings->directory[0])
		snprintf(path, bytes, "%s", settings->directory);
	else
		snprintf(path, bytes, "/dev/shm/tracesmith-%u", (unsigned int)geteuid());
	if (mkdir(path, 0700) && errno != EEXIST)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) || status.st_uid != geteuid() || (status.st_mode & 077)) {
		close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

/* Moves to a high descriptor, since programs rely on the numbers of low ones. */
static int move_up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, 500);

	if (moved < 0)
		moved = fcntl(fd, F_DUPFD_CLOEXEC, 100);
	if (moved < 0)
		return fd;
	close(fd);
	return moved;
}

/* ---- control block values ---- */

size_t agent_read_file(const char *path, char *buffer, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;
	size_t used = 0;

	if (fd < 0)
		return 0;
	while (used < bytes && (got = read(fd, buffer + used, bytes - used)) > 0)
		used += (size_t)got;
	close(fd);
	return used;
}

/* The name in the line may hold anything, so fields count from its last ')'. */
bool agent_start_time(pid_t pid, char *text, size_t size, uint64_t *ret_start_time)
{
	char path[32];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	text[agent_read_file(path, text, size - 1)] = 0;
	at = strrchr(text, ')');
	if (!at || !strncmp(at, ") Z ", 4))
		return false;
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		*ret_start_time = strtoull(at, NULL, 10);
	return at != NULL;
}

static void read_boot_id(uint8_t *boot_id)
{
	char text[64];
	size_t bytes = agent_read_file("/proc/sys/kernel/random/boot_id", text, sizeof(text));
	unsigned int digits = 0;

	for (size_t i = 0; i < bytes && digits < 32; i++) {
		int c = text[i], value;

		if (c >= '0' && c <= '9')
			value = c - '0';
		else if (c >= 'a' && c <= 'f')
			value = c - 'a' + 10;
		else
			continue;
		boot_id[digits / 2] = (uint8_t)(boot_id[digits / 2] << 4 | value);
		digits++;
	}
}

/* Differs after each exec. Mixed, since AT_RANDOM also seeds the stack protector. */
static uint64_t image_id(void)
{
	const char *random =
		(const char *)getauxval(AT_RANDOM); /* NOLINT(performance-no-int-to-ptr) */
	uint64_t words[2] = { 0, 0 };

	if (random)
		memcpy(words, random, sizeof(words));
	words[0] = (words[0] ^ (words[0] >> 29)) * UINT64_C(0xbf58476d1ce4e5b9) + words[1];
	words[0] = (words[0] ^ (words[0] >> 32)) * UINT64_C(0x94d049bb133111eb);
	return words[0] ^ (words[0] >> 31);
}

uint64_t agent_draw_id(void)
{
	uint64_t id = 0;

	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != (ssize_t)sizeof(id))
		id = image_id() ^ ts_counter_raw() * UINT64_C(0x9e3779b97f4a7c15) ^
		     (uint64_t)getpid();
	return id ? id : 1;
}

static uint64_t pid_namespace(void)
{
	struct stat status;

	return stat("/proc/self/ns/pid", &status) ? 0 : status.st_ino;
}

static void describe_process(struct ts_live_control *control, bool redact)
{
	size_t bytes;

	memcpy(control->magic, TS_LIVE_MAGIC, sizeof(control->magic));
	control->version = TS_LIVE_VERSION;
	control->control_bytes = TS_LIVE_CONTROL_BYTES;
	read_boot_id(control->boot_id);
	control->pid_namespace = pid_namespace();
	control->pid = (uint32_t)getpid();
	control->parent = (uint32_t)getppid();
	control->uid = (uint32_t)getuid();
	control->image = image_id();
	bytes = agent_read_file("/proc/self/comm", control->name, sizeof(control->name) - 1);
	if (bytes && control->name[bytes - 1] == '\n')
		control->name[bytes - 1] = 0;
	if (!redact)
		agent_read_file("/proc/self/cmdline", control->command,
				sizeof(control->command) - 1);
}

static bool has_stacks(const struct agent_settings *settings)
{
	return settings->role == TS_LIVE_RECORDER || settings->stacks;
}

/* Start of the pool: a dictionary with stacks is larger. */
static uint64_t pool_of(const struct agent_settings *settings)
{
	return TS_LIVE_DICTIONARY +
	       (has_stacks(settings) ? TS_LIVE_DICTIONARY_GREATEST : TS_LIVE_DICTIONARY_BYTES);
}

static void describe_layout(struct ts_live_control *control, const struct agent_settings *settings)
{
	int64_t uncertainty;

	control->session = settings->session;
	control->clock = ts_counter_kind();
	control->counter_hz = ts_counter_hz(control->clock);
	control->created = ts_counter_anchor(control->clock, &uncertainty);
	control->latest = control->created;
	control->ring_limit = TS_LIVE_RING_LIMIT;
	control->ring_bytes = TS_LIVE_ENTRY_BYTES;
	control->directory = TS_LIVE_DIRECTORY;
	control->dictionary = TS_LIVE_DICTIONARY;
	control->pool = pool_of(settings);
	control->target_state = TS_LIVE_RUNNING;
	control->step = INT64_MIN;
	control->enabled = settings->enabled ? TS_LIVE_ENABLED : 0;
	control->mode = settings->mode;
	control->redact = settings->redact;
	control->rank = settings->rank;
	control->always_redact = settings->always_redact;
	control->step_open = settings->step_open;
	control->step_close = settings->step_close;
	control->max_steps = settings->max_steps;
	control->config[TS_CONFIG_PYTHON_MARKS] = (settings->python & AGENT_PYTHON_MARKS) != 0;
	control->config[TS_CONFIG_PYTHON_CALLS] = (settings->python & AGENT_PYTHON_CALLS) != 0;
	control->config[TS_CONFIG_STACKS] = settings->stacks;
	memcpy(control->output, settings->output, sizeof(control->output));
}

/* ---- space ---- */

/* The area's descriptor, if still valid: programs close descriptors they do not own. */
static int area_fd(struct core *core)
{
	struct stat status;

	if (core->fd >= 0 && !fstat(core->fd, &status) && status.st_ino == core->inode &&
	    status.st_dev == core->device)
		return core->fd;
	core->fd = open(core->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (core->fd < 0)
		return -1;
	if (fstat(core->fd, &status) || status.st_ino != core->inode ||
	    status.st_dev != core->device) {
		close(core->fd);
		core->fd = -1;
		return -1;
	}
	core->fd = move_up(core->fd);
	return core->fd;
}

/* Recorders watch the directory for this. Used only when the program waits for one. */
void agent_nudge_recorder(struct core *core)
{
	int fd = area_fd(core);

	if (fd >= 0)
		futimens(fd, NULL);
}

/* Exceeding the file size limit raises SIGXFSZ, which kills. */
bool agent_within_file_limit(uint64_t end)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	       end <= limit.rlim_cur;
}

int agent_allocate(struct core *core, uint64_t offset, uint64_t bytes, uint64_t limit)
{
	struct ts_live_control *control = core->control;
	int fd = area_fd(core), saved_errno = errno, error = 0;

	if (fd < 0)
		return EBADF;
	if (control && control->allocated + bytes > limit)
		return ENOSPC;
	if (!agent_within_file_limit(offset + bytes))
		return EFBIG;
	while (fallocate(fd, 0, (off_t)offset, (off_t)bytes)) {
		error = errno;
		if (error != EINTR)
			break;
		error = 0;
	}
	if (!error && control)
		control->allocated += bytes;
	errno = saved_errno;
	return error;
}

/* Frees space that was allocated but could not be mapped, so was never touched. */
void agent_give_back(struct core *core, uint64_t offset, uint64_t bytes)
{
	int fd = area_fd(core);

	if (fd >= 0 &&
	    !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes))
		core->control->allocated -= bytes;
}

void *agent_map(struct core *core, uint64_t offset, uint64_t bytes)
{
	int fd = area_fd(core);
	void *mapped;

	if (fd < 0)
		return NULL;
	mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		      (off_t)offset);
	return mapped == MAP_FAILED ? NULL : mapped;
}

int agent_grow_directory(struct core *core)
{
	int error = agent_allocate(core, core->directory_end, 4096, core->control->budget);

	if (!error)
		core->directory_end += 4096;
	return error;
}

int agent_grow_dictionary(struct core *core)
{
	int error;

	if (core->dictionary_end + DICTIONARY_STEP > core->control->pool)
		return ENOSPC;
	error = agent_allocate(core, core->dictionary_end, DICTIONARY_STEP, core->budget);
	if (!error)
		core->dictionary_end += DICTIONARY_STEP;
	return error;
}

/* A file system without a size limit reports 0 blocks. */
static uint64_t free_bytes_of(int directory)
{
	struct statvfs status;

	if (fstatvfs(directory, &status) || !status.f_blocks)
		return UINT64_MAX;
	return (uint64_t)status.f_bavail * status.f_frsize;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The reserve is not for a budget that the user has set. */
static void choose_budget(struct core *core, int directory)
{
	const struct agent_settings *settings = &core->settings;
	bool replayable = settings->replay.mode != TS_REPLAY_OFF;
	bool is_large = has_stacks(settings);
	uint64_t most = replayable ? REPLAY_BUDGET : is_large ? STACKS_BUDGET : DEFAULT_BUDGET;
	uint64_t free_bytes = free_bytes_of(directory);

	core->budget = settings->budget;
	if (!core->budget)
		core->budget = smaller(most, free_bytes / (replayable || is_large
								   ? TS_LIVE_BUDGET_SHARE / 2
								   : TS_LIVE_BUDGET_SHARE));
	core->control->budget = core->budget;
	if (!settings->budget)
		core->control->budget += smaller(RESERVE, free_bytes / TS_LIVE_BUDGET_SHARE);
}

/* ---- removing areas of dead processes ---- */

/* An area in flight mode outlives its process, for `recover`. */
struct dead_area {
	char name[64];
	int64_t changed_ns;
	uint64_t bytes;
	bool has_exited; /* the process was not killed */
};

/* The newest ones, newest first. */
struct dead_areas {
	unsigned int count;
	struct dead_area areas[KEEP_KILLED];
};
static_assert(KEEP_EXITED <= KEEP_KILLED, "both fit");

static bool process_is_gone(const char *name)
{
	long pid = strtol(name, NULL, 10);

	return pid > 0 && kill((pid_t)pid, 0) && errno == ESRCH;
}

static bool read_word(int fd, size_t offset, void *word, size_t bytes)
{
	return pread(fd, word, bytes, (off_t)offset) == (ssize_t)bytes;
}

#define SPOOL_NAME_BYTES (sizeof(((struct dead_area *)0)->name) + TS_SPOOL_LANE_NAME_BYTES)

/* The spool, or a lane of it (from 1 on). */
static void name_spool(const char *area, unsigned int lane, char *name)
{
	if (lane)
		snprintf(name, SPOOL_NAME_BYTES, "%s" TS_SPOOL_LANE_NAME, area, lane);
	else
		snprintf(name, SPOOL_NAME_BYTES, "%s" TS_SPOOL_ENDING, area);
}

/*
 * True for an area in flight mode (in stream mode a recorder will drain it) that nobody is reading.
 * Only in this process's namespace: liveness in others is unknown. The caller checks the process.
 */
static bool is_abandoned(int directory, uint64_t namespace, struct dead_area *area)
{
	int fd = openat(directory, area->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	uint32_t mode = TS_LIVE_STREAM, state = TS_LIVE_RUNNING;
	char spool[SPOOL_NAME_BYTES];
	uint64_t of_area = 0;
	struct stat status;
	bool abandoned;

	if (fd < 0)
		return false;
	abandoned = !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &status) &&
		    read_word(fd, offsetof(struct ts_live_control, pid_namespace), &of_area,
			      sizeof(of_area)) &&
		    read_word(fd, offsetof(struct ts_live_control, mode), &mode, sizeof(mode)) &&
		    read_word(fd, offsetof(struct ts_live_control, target_state), &state,
			      sizeof(state)) &&
		    of_area == namespace && mode == TS_LIVE_FLIGHT;
	close(fd);
	if (!abandoned)
		return false;
	area->changed_ns = status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec;
	area->bytes = (uint64_t)status.st_blocks * 512;
	area->has_exited = state == TS_LIVE_EXITING || state == TS_LIVE_STOPPED;
	for (unsigned int lane = 0; lane <= TS_SPOOL_LANES; lane++) {
		name_spool(area->name, lane, spool);
		if (fstatat(directory, spool, &status, AT_SYMLINK_NOFOLLOW))
			break;
		area->bytes += (uint64_t)status.st_blocks * 512;
	}
	return true;
}

/* The spool first: none is left without an area. And before it, its lanes. */
static void remove_area(int directory, const char *name)
{
	char spool[SPOOL_NAME_BYTES];

	for (unsigned int lane = TS_SPOOL_LANES + 1; lane-- > 0;) {
		name_spool(name, lane, spool);
		unlinkat(directory, spool, 0);
	}
	unlinkat(directory, name, 0);
}

/* Inserts an area; one that is too many is removed. */
static void keep_newest(struct dead_areas *dead, unsigned int most, int directory,
			const struct dead_area *area)
{
	unsigned int at = dead->count;

	while (at && dead->areas[at - 1].changed_ns < area->changed_ns)
		at--;
	if (at == most) {
		remove_area(directory, area->name);
		return;
	}
	if (dead->count == most)
		remove_area(directory, dead->areas[--dead->count].name);
	memmove(&dead->areas[at + 1], &dead->areas[at], (dead->count - at) * sizeof(*area));
	dead->areas[at] = *area;
	dead->count++;
}

/* Removes those that are too large; always keeps the newest one. */
static void limit_bytes(const struct dead_areas *dead, uint64_t most, int directory, uint64_t *used)
{
	for (unsigned int i = 0; i < dead->count; i++) {
		uint64_t sum = *used + dead->areas[i].bytes;

		if (*used && sum > most)
			remove_area(directory, dead->areas[i].name);
		else
			*used = sum;
	}
}

/*
 * Programs that exit or crash often must not fill memory. Uses getdents, since opendir() allocates,
 * which a handler must not do, and the scratch space, since its stack may be small.
 */
static void remove_dead(struct core *core, int directory)
{
	struct removal {
		struct dead_areas killed, exited;
		struct dead_area area;
		_Alignas(struct dirent64) char entries[2048];
	} *removal = (struct removal *)(void *)core->scratch;
	uint64_t namespace = pid_namespace(), used = 0, most;
	long bytes;

	static_assert(sizeof(*removal) <= sizeof(core->scratch), "it fits");
	removal->killed.count = removal->exited.count = 0;
	while ((bytes = syscall(SYS_getdents64, directory, removal->entries,
				sizeof(removal->entries))) > 0)
		for (long at = 0; at < bytes;) {
			const struct dirent64 *entry =
				(const struct dirent64 *)(void *)(removal->entries + at);
			struct dead_area *area = &removal->area;

			at += entry->d_reclen;
			if (strlen(entry->d_name) >= sizeof(area->name) ||
			    strstr(entry->d_name, TS_SPOOL_ENDING) ||
			    !process_is_gone(entry->d_name))
				continue;
			memcpy(area->name, entry->d_name, strlen(entry->d_name) + 1);
			if (!is_abandoned(directory, namespace, area))
				continue;
			if (area->has_exited)
				keep_newest(&removal->exited, KEEP_EXITED, directory, area);
			else
				keep_newest(&removal->killed, KEEP_KILLED, directory, area);
		}
	most = smaller(KEEP_BYTES, free_bytes_of(directory));
	limit_bytes(&removal->killed, most, directory, &used);
	limit_bytes(&removal->exited, most, directory, &used);
}

/* ---- creating the area ---- */

static int map_front(struct core *core)
{
	char *front = mmap(NULL, pool_of(&core->settings), PROT_READ | PROT_WRITE, MAP_SHARED,
			   core->fd, 0);

	if (front == MAP_FAILED)
		return ENOMEM;
	core->control = (struct ts_live_control *)(void *)front;
	core->rings = (struct ts_live_ring *)(void *)(front + TS_LIVE_DIRECTORY);
	core->dictionary = front + TS_LIVE_DICTIONARY;
	return 0;
}

static int allocate_front(struct core *core)
{
	int error = agent_allocate(core, 0, TS_LIVE_CONTROL_BYTES, UINT64_MAX);
	uint64_t pool = pool_of(&core->settings);

	/*
	 * The file reaches to the pool, so that the front can be mapped; the rest of it is a hole.
	 */
	if (!error && (!agent_within_file_limit(pool) || ftruncate(core->fd, (off_t)pool)))
		error = EFBIG;
	if (!error)
		error = map_front(core);
	return error;
}

static int fill(struct core *core, int directory, uint64_t area_id, uint64_t started)
{
	const struct agent_settings *settings = &core->settings;
	struct ts_live_control *control = core->control;
	int error;

	describe_process(control, settings->redact);
	describe_layout(control, settings);
	control->start_time = started;
	control->area_id = area_id;
	choose_budget(core, directory);
	control->role = settings->role;
	control->allocated = TS_LIVE_CONTROL_BYTES;
	core->ring_bytes = settings->ring_bytes ? settings->ring_bytes : RING_BYTES;
	/* Several rings must fit. */
	if (core->budget < 16 * (uint64_t)core->ring_bytes)
		core->ring_bytes = core->budget < SMALL_BUDGET ? AGENT_SMALL_RING_BYTES
							       : RING_BYTES;
	core->directory_end = TS_LIVE_DIRECTORY;
	core->dictionary_end = TS_LIVE_DICTIONARY;
	core->pool_end = control->pool;
	error = agent_grow_directory(core);
	return error ? error : agent_grow_dictionary(core);
}

/* Creates NAME.new, fills it, renames it. `core->path` is the directory on entry. */
static int create(struct core *core, int directory)
{
	uint64_t area_id = agent_draw_id(), started = 0;
	size_t length = strlen(core->path);
	char name[64], temporary[72];
	struct stat status;
	int error;

	agent_start_time(getpid(), core->scratch, sizeof(core->scratch), &started);
	snprintf(name, sizeof(name), "%d-%llu-%016llx", (int)getpid(), (unsigned long long)started,
		 (unsigned long long)area_id);
	snprintf(temporary, sizeof(temporary), "%s.new", name);
	snprintf(core->path + length, sizeof(core->path) - length, "/%s", name);
	core->fd = openat(directory, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			  0600);
	if (core->fd < 0)
		return errno;
	core->fd = move_up(core->fd);
	if (fstat(core->fd, &status))
		return errno;
	core->device = status.st_dev;
	core->inode = status.st_ino;
	error = allocate_front(core);
	if (!error)
		error = fill(core, directory, area_id, started);
	if (!error && renameat(directory, temporary, directory, name))
		error = errno;
	if (error) {
		unlinkat(directory, temporary, 0);
		if (core->control)
			munmap(core->control, pool_of(&core->settings));
		core->control = NULL;
		close(core->fd);
		core->fd = -1;
	}
	return error;
}

int agent_make_area(struct core *core)
{
	int directory = open_directory(&core->settings, core->path, sizeof(core->path) - NAME_MAX);
	int error;

	core->fd = -1;
	if (directory < 0)
		return errno;
	if (core->settings.mode == TS_LIVE_FLIGHT)
		remove_dead(core, directory);
	error = create(core, directory);
	close(directory);
	return error;
}

void agent_set_budget(struct core *core, uint64_t budget)
{
	if (!budget)
		return;
	core->budget = budget;
	core->control->budget = budget;
}

void agent_unlink_area(struct core *core)
{
	if (core->path[0])
		unlink(core->path);
}

void agent_close_area(struct core *core)
{
	struct agent_signals saved;

	agent_block_signals(&saved);
	agent_lock(core);
	if (area_fd(core) >= 0)
		close(core->fd);
	core->fd = -1;
	core->path[0] = 0;
	agent_unlock(core);
	agent_restore_signals(&saved);
}

void agent_update_anchor(struct core *core)
{
	struct ts_live_anchor *latest = &core->control->latest;
	int64_t uncertainty;
	struct ts_live_anchor anchor = ts_counter_anchor(core->control->clock, &uncertainty);

	__atomic_store_n(&latest->counter, 0, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	latest->monotonic_ns = anchor.monotonic_ns;
	latest->realtime_ns = anchor.realtime_ns;
	__atomic_store_n(&latest->counter, anchor.counter, __ATOMIC_RELEASE);
}
