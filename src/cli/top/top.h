/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of `tracesmith top`. top_refresh.c keeps the state of targets, devices and
 * the machine; top_plain.c prints it as text and JSON, top_draw.c draws it on a screen that
 * top_screen.c runs and top_input.c controls.
 */
#ifndef TS_CLI_TOP_TOP_H
#define TS_CLI_TOP_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracesmith/error.h>

#include "base/text.h"
#include "cli/common/screen.h"
#include "cli/top/top_python.h"
#include "cli/top/top_values.h"
#include "live/event_count.h"
#include "sample/metrics/device_users.h"
#include "sample/metrics/metrics_sampler.h"

/* ---- state ---- */

enum ts_top_recorder {
	TS_TOP_NO_AGENT,
	TS_TOP_FLIGHT,        /* no recorder; the newest events stay in memory */
	TS_TOP_RECORDED,      /* by `recorder` */
	TS_TOP_RECORDER_DEAD, /* recorded before; start another recorder, or salvage it */
	TS_TOP_DISABLED,      /* the agent is disabled */
};

/* Why a process is listed, as flags. */
#define TS_TOP_BY_AREA 1u
#define TS_TOP_BY_PARENT 2u
#define TS_TOP_BY_DEVICE 4u
#define TS_TOP_BY_NAME 8u /* requested by the user */

/* Devices that a process uses, by vendor and number. */
#define TS_TOP_PROCESS_DEVICES 64u
struct ts_top_device_list {
	struct ts_top_used_device {
		char vendor[16];
		int32_t number; /* -1: unknown */
	} devices[TS_TOP_PROCESS_DEVICES];
	size_t count;
};

/* A row of the table. Unknown numbers are NAN. */
struct ts_top_process {
	pid_t pid, parent;
	uint64_t start_time;
	uid_t uid;
	unsigned int why;
	bool seen;
	char state; /* as ps has it */
	char user[33];
	char name[64];
	char command[512];  /* arguments separated by spaces */
	int64_t command_ns; /* when that was read */
	double values[TS_TOP_METRICS];
	double cpu_time_s;
	struct ts_top_device_list devices;
	double user_bytes; /* on devices, from sources that know their users */
	enum ts_top_recorder recorded;
	pid_t recorder;
	bool window_closed;
	double events, events_per_s, lost;
	bool estimated, loses; /* events are approximate; some were lost since the last refresh */
};

/* A live area being read. */
struct ts_top_area {
	char name[64];
	uint64_t id;
	dev_t device; /* of the live directory: two containers may use the same names */
	ino_t inode;
	pid_t pid;
	bool seen;
	struct ts_area_events *events;
	int64_t looked_ns; /* 0: never */
	struct ts_event_counts counts;
	double per_second;
	bool estimated, loses;
	enum ts_top_recorder recorded;
	pid_t recorder;
	bool window_closed;
};

/* top_devices.c. Duplicates, and devices that do not fit, are ignored. */
void ts_top_device_list_add(struct ts_top_device_list *list, const char *vendor, int64_t number);
/* "NV0-3,7 AM0", "-": none; "NV0-3+" if not all fit. */
const char *ts_top_device_list_format(const struct ts_top_device_list *list, char *buffer,
				      size_t size);

#define TS_TOP_SOURCES 15u

/* top_backends.c. Must not move. */
struct ts_top_backends {
	const char *names;                              /* for the sampler; NULL: all */
	const struct ts_metrics_source *const *sources; /* device sources, NULL-terminated */
	char list[512];
	const struct ts_metrics_source *chosen[TS_TOP_SOURCES + 1];
	size_t source_count; /* chosen ones */
};

/* From comma-separated names; NULL: those of $TRACESMITH_BACKENDS, or all. */
int ts_top_backends_choose(struct ts_top_backends *backends, const char *named,
			   struct ts_error *err);

/*
 * Who uses accelerators: a thread queries these sources, and with_files the open device files, from
 * time to time, since vendor tools are slow. In static storage, as the list must be.
 */
struct ts_top_users;
int ts_top_users_start(struct ts_top_users **ret_users,
		       const struct ts_metrics_source *const *sources, bool with_files,
		       struct ts_error *err);
/* Waits for the first answer, up to a limit. */
void ts_top_users_wait(struct ts_top_users *users, int64_t limit_ns);
/* A copy of the newest answer; caller frees. ret_message: at least 256 bytes. */
int ts_top_users_copy(struct ts_top_users *users, struct ts_device_user **ret_users,
		      size_t *ret_count, char *ret_message);
void ts_top_users_stop(struct ts_top_users *users);

struct ts_top {
	/* Options. */
	const pid_t *requested; /* these and their descendants only; none: all targets */
	size_t requested_count;
	bool all; /* all our processes too */
	const char *backends;
	int64_t delay_ns;
	bool samples_python; /* Python stacks too; may change between refreshes */
	struct ts_top_python_request python_request;

	/* Data sources. */
	struct ts_top_values *values;
	struct ts_metrics_sampler *sampler;
	struct ts_top_users *users;
	struct ts_sampled_process *sampled; /* last list given to the sampler */
	size_t sampled_count, sampled_capacity;
	int64_t sampled_delay_ns;
	struct ts_top_python *python; /* NULL: not opened yet */

	/* The state that is shown. */
	int64_t looked_ns;                /* CLOCK_MONOTONIC */
	struct ts_top_process *processes; /* by pid */
	size_t process_count, process_capacity;
	struct ts_top_area *areas;
	size_t area_count, area_capacity;
	double system[TS_TOP_METRICS];
	double load[3];
	double memory_total;
	struct ts_top_subject *subjects; /* everything known */
	size_t subject_count;
	struct ts_top_device *devices;
	size_t device_count;
	struct ts_top_message messages[TS_TOP_MESSAGES];
	size_t message_count;
	char note[256];         /* about what cannot be seen, unless a message says it */
	bool uses_accelerators; /* some process uses one, or there is a device */
	struct ts_top_python_snapshot python_snapshot;
};

int ts_top_open(struct ts_top *top, struct ts_error *err);
void ts_top_close(struct ts_top *top);
/* Refreshes everything. */
int ts_top_refresh(struct ts_top *top, struct ts_error *err);
/* Metrics only, of listed processes. */
int ts_top_read_values(struct ts_top *top, struct ts_error *err);
/* Whether the machine and every living process have a CPU value by now. */
bool ts_top_is_complete(const struct ts_top *top);
/* The values of a device; NULL: none. */
const struct ts_top_subject *ts_top_device_values(const struct ts_top *top, uint32_t number);

/* top_process.c: marks a process to be listed. NULL: it has exited, or no memory. */
struct ts_top_process *ts_top_note_process(struct ts_top *top, pid_t pid, unsigned int why);
struct ts_top_process *ts_top_find_process(const struct ts_top *top, pid_t pid);
/* Marks all except those with areas in containers, which need their processes first. */
int ts_top_find_targets(struct ts_top *top, struct ts_error *err);
/* Reads the details of marked processes, and drops the others. */
void ts_top_sweep_processes(struct ts_top *top);

/*
 * top_areas.c: the user's areas, whose processes are marked; then those in containers of marked
 * processes.
 */
int ts_top_find_areas(struct ts_top *top, struct ts_error *err);
void ts_top_find_container_areas(struct ts_top *top);
/* Reads the areas found, drops the others, and adds up per process. */
void ts_top_read_areas(struct ts_top *top);

/* ---- short numbers; "-" if unknown ---- */

#define TS_TOP_CELL_BYTES 96u

const char *ts_top_format_bytes(char *buffer, size_t size,
				double bytes); /* "999B" "12.3M" "1.2G" */
const char *ts_top_format_count(char *buffer, size_t size,
				double count); /* "9999" "12.3k" "4.5M" */
const char *ts_top_format_percent(char *buffer, size_t size,
				  double value);                           /* "0.0" "99.5" "1234" */
const char *ts_top_format_time(char *buffer, size_t size, double seconds); /* "1:02.34" "3:04:05" */
const char *ts_top_format_unit(char *buffer, size_t size, double value, const char *unit);

/* ---- the table ---- */

enum ts_top_column {
	TS_TOP_COLUMN_PID,
	TS_TOP_COLUMN_USER,
	TS_TOP_COLUMN_STATE,
	TS_TOP_COLUMN_RECORDER,
	TS_TOP_COLUMN_CPU,
	TS_TOP_COLUMN_RSS,
	TS_TOP_COLUMN_VMS,
	TS_TOP_COLUMN_THREADS,
	TS_TOP_COLUMN_DEVICES,
	TS_TOP_COLUMN_DEVICE_PERCENT,
	TS_TOP_COLUMN_DEVICE_MEMORY,
	TS_TOP_COLUMN_EVENTS,
	TS_TOP_COLUMN_LOST,
	TS_TOP_COLUMN_TIME,
	TS_TOP_COLUMN_COMMAND,
	TS_TOP_COLUMNS,
};

struct ts_top_column_info {
	const char *title;
	const char *sort_name; /* for --sort */
	const char *doc;       /* for the help */
	bool right;
	bool descends;       /* descending, unless reversed */
	unsigned int width;  /* minimum width */
	unsigned int weight; /* the lowest are dropped first if space is short; 0: never */
	bool of_devices;     /* only if something uses accelerators */
};

const struct ts_top_column_info *ts_top_column(enum ts_top_column column);
void ts_top_format_cell(const struct ts_top_process *process, enum ts_top_column column,
			bool full_command, char buffer[TS_TOP_CELL_BYTES], const char **ret_text);

/* Which processes are shown, in which order. */
struct ts_top_view {
	enum ts_top_column sort;
	bool reverse;
	bool full_command;
	char filter[64]; /* "": all; else those whose name, command or pid contains it */
	const struct ts_top_process **rows;
	size_t row_count, row_capacity;
	/* The selected row and its process, which is followed once the user has chosen it. */
	size_t selected, first; /* first: at the top of the screen */
	bool follows;
	pid_t selected_pid;
	uint64_t selected_start;
	unsigned int widths[TS_TOP_COLUMNS]; /* never decrease, so that the table does not jump */
	unsigned int column_offset; /* columns of the command line that are scrolled away */
};

void ts_top_view_release(struct ts_top_view *view);
/* Sorts and filters again; the selection stays with its process. */
int ts_top_view_arrange(struct ts_top_view *view, const struct ts_top *top);
/* Moves the selection. */
void ts_top_view_select(struct ts_top_view *view, size_t index);
/* Which columns fit in a line: true in ret_shown. */
void ts_top_view_fit(struct ts_top_view *view, const struct ts_top *top, unsigned int line,
		     bool ret_shown[TS_TOP_COLUMNS]);

/* ---- the header, in parts that both outputs share ---- */

/* "NVIDIA 0 H200". */
void ts_top_format_device_name(const struct ts_top_device *device, char *buffer, size_t size);
/* "mem 1.2G/80.0G 300W 54C 1980MHz": what is known, separated by spaces. */
void ts_top_describe_device(const struct ts_top_device *device, const struct ts_top_subject *values,
			    struct ts_text *out);
/* Removes from a note (of our size) what messages also say. */
void ts_top_shorten_note(char *note, const struct ts_top_message *messages, size_t count);
/* "load 0.12 0.30 0.20". */
void ts_top_format_load(const struct ts_top *top, char *buffer, size_t size);
/* Of the whole machine; NAN: unknown. */
double ts_top_busy_percent(const struct ts_top *top);
/* "host  12:34:56". */
void ts_top_format_host(char *buffer, size_t size);

/* ---- the screen ---- */

enum ts_top_mode {
	TS_TOP_TABLE,
	TS_TOP_HELP,
	TS_TOP_PROMPT_DELAY,
	TS_TOP_PROMPT_FILTER,
	TS_TOP_PROMPT_SIGNAL,
};

struct ts_top_session {
	struct ts_top *top;
	struct ts_top_view view;
	struct ts_screen screen;
	enum ts_top_mode mode;
	enum ts_top_pane pane; /* below the table, if it fits */
	bool wants_pane;       /* even if it is empty */
	char answer[64];       /* being typed */
	pid_t victim;          /* of ASK_SIGNAL */
	uint64_t victim_start;
	char message[160]; /* last event, until the next key */
	unsigned int page; /* rows of the table on the screen */
	bool quits, looks_now;
};

void ts_top_draw(struct ts_top_session *session);
void ts_top_input(struct ts_top_session *session, uint32_t key);
/* "TERM", "SIGTERM", "15", "": the signal, 0: unknown name. */
int ts_top_parse_signal(const char *text);
/* Only to the process that started then, in case its pid was reused. */
int ts_top_send_signal(pid_t pid, uint64_t start_time, int number, struct ts_error *err);

/* ---- output ---- */

/* On the terminal; returns an exit code. */
int ts_top_run_screen(struct ts_top *top, const struct ts_top_view *view);

/* `count` snapshots as text or JSON, each after one interval. */
int ts_top_run_plain(struct ts_top *top, struct ts_top_view *view, bool json, int64_t count);

#endif
