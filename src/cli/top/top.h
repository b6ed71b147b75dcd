/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of `tracesmith top` share. top_refresh.c keeps the picture of targets, devices and
 * the machine; others show it: top_plain.c as text and JSON, top_draw.c on a screen that
 * top_screen.c runs and top_input.c steers.
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

/* ---- what is looked at ---- */

enum ts_top_recorder {
	TS_TOP_NO_AGENT,
	TS_TOP_FLIGHT,        /* nobody records; the newest events stay in memory */
	TS_TOP_RECORDED,      /* by `recorder` */
	TS_TOP_RECORDER_DEAD, /* it was; start another one, or save it */
	TS_TOP_DISABLED,      /* the agent has given up */
};

/* Why a process is listed, or-ed. */
#define TS_TOP_BY_AREA 1u
#define TS_TOP_BY_PARENT 2u
#define TS_TOP_BY_DEVICE 4u
#define TS_TOP_BY_NAME 8u /* it was asked for */

/* Devices that a process uses, by vendor and number. */
#define TS_TOP_PROCESS_DEVICES 64u
struct ts_top_device_list {
	struct ts_top_used_device {
		char vendor[16];
		int32_t number; /* -1: not known which */
	} devices[TS_TOP_PROCESS_DEVICES];
	size_t count;
};

/* A line of the table. Numbers that are not known are NAN. */
struct ts_top_process {
	pid_t pid, parent;
	uint64_t start_time;
	uid_t uid;
	unsigned int why;
	bool seen;
	char state; /* as ps has it */
	char user[33];
	char name[64];
	char command[512];  /* arguments with spaces between them */
	int64_t command_ns; /* when that was read */
	double values[TS_TOP_METRICS];
	double cpu_time_s;
	struct ts_top_device_list devices;
	double user_bytes; /* on devices, by those who know users */
	enum ts_top_recorder recorded;
	pid_t recorder;
	bool window_closed;
	double events, events_per_s, lost;
	bool estimated, loses; /* events are near the truth; some were lost since the last look */
};

/* A live area that is looked into. */
struct ts_top_area {
	char name[64];
	uint64_t id;
	dev_t device; /* of the live directory: names of two containers may be the same */
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

/* top_devices.c. One that is there already, or does not fit any more, is passed over. */
void ts_top_device_list_add(struct ts_top_device_list *list, const char *vendor, int64_t number);
/* "NV0-3,7 AM0", "-": none; "NV0-3+" where there is no room for all. */
const char *ts_top_device_list_format(const struct ts_top_device_list *list, char *buffer,
				      size_t size);

#define TS_TOP_SOURCES 15u

/* top_backends.c. Must stay where it is. */
struct ts_top_backends {
	const char *names;                              /* for the sampler; NULL: all there are */
	const struct ts_metrics_source *const *sources; /* of devices, ended by NULL */
	char list[512];
	const struct ts_metrics_source *chosen[TS_TOP_SOURCES + 1];
	size_t source_count; /* that were chosen */
};

/* By names with commas; NULL: those of $TRACESMITH_BACKENDS, or all. */
int ts_top_backends_choose(struct ts_top_backends *backends, const char *named,
			   struct ts_error *err);

/*
 * Who uses accelerators: these sources are asked now and then by a thread, since makers' tools are
 * slow. In static storage, as the list has to be.
 */
struct ts_top_users;
int ts_top_users_start(struct ts_top_users **ret_users,
		       const struct ts_metrics_source *const *sources, struct ts_error *err);
/* Waits for the first answer, at most so long. */
void ts_top_users_wait(struct ts_top_users *users, int64_t limit_ns);
/* A copy of the newest answer; caller frees. ret_message: at least 256 bytes. */
int ts_top_users_copy(struct ts_top_users *users, struct ts_device_user **ret_users,
		      size_t *ret_count, char *ret_message);
void ts_top_users_stop(struct ts_top_users *users);

struct ts_top {
	/* Options. */
	const pid_t *asked; /* these and what they started, nobody else; none: all targets */
	size_t asked_count;
	bool all; /* every process that is ours, too */
	const char *backends;
	int64_t delay_ns;
	bool samples_python; /* stacks of Python programs, too; may change between looks */
	struct ts_top_python_request python_request;

	/* Where things come from. */
	struct ts_top_values *values;
	struct ts_metrics_sampler *sampler;
	struct ts_top_users *users;
	struct ts_sampled_process *sampled; /* what the sampler was told last */
	size_t sampled_count, sampled_capacity;
	int64_t sampled_delay_ns;
	struct ts_top_python *python; /* NULL: not opened yet */

	/* The picture. */
	int64_t looked_ns;                /* CLOCK_MONOTONIC */
	struct ts_top_process *processes; /* by pid */
	size_t process_count, process_capacity;
	struct ts_top_area *areas;
	size_t area_count, area_capacity;
	double system[TS_TOP_METRICS];
	double load[3];
	double memory_total;
	struct ts_top_subject *subjects; /* all that is known */
	size_t subject_count;
	struct ts_top_device *devices;
	size_t device_count;
	struct ts_top_message messages[TS_TOP_MESSAGES];
	size_t message_count;
	char note[256];         /* of what cannot be seen, unless a message says it */
	bool uses_accelerators; /* some process does, or there is a device */
	struct ts_top_python_snapshot python_snapshot;
};

int ts_top_open(struct ts_top *top, struct ts_error *err);
void ts_top_close(struct ts_top *top);
/* Brings all up to date. */
int ts_top_refresh(struct ts_top *top, struct ts_error *err);
/* Metrics only, of those that are listed. */
int ts_top_read_values(struct ts_top *top, struct ts_error *err);
/* Does every living process, and the machine, have a value of its use of processors by now? */
bool ts_top_is_complete(const struct ts_top *top);
/* The values of a device, NULL: none. */
const struct ts_top_subject *ts_top_device_values(const struct ts_top *top, uint32_t number);

/*
 * top_process.c: who is to be listed. Returns the place, NULL: it has ended, or there is no memory.
 */
struct ts_top_process *ts_top_note_process(struct ts_top *top, pid_t pid, unsigned int why);
struct ts_top_process *ts_top_find_process(const struct ts_top *top, pid_t pid);
/* Notes everybody but those of areas in containers, which need their processes first. */
int ts_top_find_targets(struct ts_top *top, struct ts_error *err);
/* Reads what people want to know of those that were noted, and takes the others away. */
void ts_top_sweep_processes(struct ts_top *top);

/*
 * top_areas.c: the areas of the user, whose processes are noted; then those of containers of noted
 * processes.
 */
int ts_top_find_areas(struct ts_top *top, struct ts_error *err);
void ts_top_find_container_areas(struct ts_top *top);
/* Looks into the areas that were found, forgets the others, and adds up for each process. */
void ts_top_read_areas(struct ts_top *top);

/* ---- numbers in a few columns; "-" where they are not known ---- */

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
	bool descends;       /* the greatest first, unless reversed */
	unsigned int width;  /* at least */
	unsigned int weight; /* the lightest go first where there is no room; 0: always there */
	bool of_devices;     /* only where something uses accelerators */
};

const struct ts_top_column_info *ts_top_column(enum ts_top_column column);
void ts_top_format_cell(const struct ts_top_process *process, enum ts_top_column column,
			bool full_command, char buffer[TS_TOP_CELL_BYTES], const char **ret_text);

/* What of the picture is shown, in which order. */
struct ts_top_view {
	enum ts_top_column sort;
	bool reverse;
	bool full_command;
	char filter[64]; /* "": all; else those whose name, command or pid has it */
	const struct ts_top_process **rows;
	size_t row_count, row_capacity;
	/*
	 * The line that is selected, and the process that it was; it is followed once somebody
	 * chose it.
	 */
	size_t selected, first; /* first: at the top of the screen */
	bool follows;
	pid_t selected_pid;
	uint64_t selected_start;
	unsigned int widths[TS_TOP_COLUMNS]; /* never fall, so that the table holds still */
	unsigned int column_offset; /* columns of the command line that are scrolled away */
};

void ts_top_view_release(struct ts_top_view *view);
/* Sorts and filters anew; the selection stays with its process. */
int ts_top_view_arrange(struct ts_top_view *view, const struct ts_top *top);
/* Moves the selection. */
void ts_top_view_select(struct ts_top_view *view, size_t index);
/* Which columns fit in a line: true in ret_shown. */
void ts_top_view_fit(struct ts_top_view *view, const struct ts_top *top, unsigned int line,
		     bool ret_shown[TS_TOP_COLUMNS]);

/* ---- the header, in parts that both outputs share ---- */

/* "NVIDIA 0 H200". */
void ts_top_format_device_name(const struct ts_top_device *device, char *buffer, size_t size);
/* "mem 1.2G/80.0G 300W 54C 1980MHz": what is known, texts between spaces. */
void ts_top_describe_device(const struct ts_top_device *device, const struct ts_top_subject *values,
			    struct ts_text *out);
/* Takes out of a note, which has the size of ours, what messages say as well. */
void ts_top_shorten_note(char *note, const struct ts_top_message *messages, size_t count);
/* "load 0.12 0.30 0.20". */
void ts_top_format_load(const struct ts_top *top, char *buffer, size_t size);
/* Of the whole machine, without waiting; NAN: not known. */
double ts_top_busy_percent(const struct ts_top *top);
/* "host  12:34:56". */
void ts_top_format_place(char *buffer, size_t size);

/* ---- the screen ---- */

enum ts_top_mode {
	TS_TOP_TABLE,
	TS_TOP_HELP,
	TS_TOP_ASK_DELAY,
	TS_TOP_ASK_FILTER,
	TS_TOP_ASK_SIGNAL,
};

struct ts_top_session {
	struct ts_top *top;
	struct ts_top_view view;
	struct ts_screen screen;
	enum ts_top_mode mode;
	enum ts_top_pane pane; /* below the table, where there is room */
	bool wants_pane;       /* even where it has nothing to show */
	char answer[64];       /* being typed */
	pid_t victim;          /* of ASK_SIGNAL */
	uint64_t victim_start;
	char said[160];    /* what happened last, until the next key */
	unsigned int page; /* rows of the table on the screen */
	bool quits, looks_now;
};

void ts_top_draw(struct ts_top_session *session);
void ts_top_input(struct ts_top_session *session, uint32_t key);
/* "TERM", "SIGTERM", "15", "": the signal, 0: there is none of that name. */
int ts_top_parse_signal(const char *text);
/* Only the process that started then, whoever has its pid now. */
int ts_top_send_signal(pid_t pid, uint64_t start_time, int number, struct ts_error *err);

/* ---- how it runs ---- */

/* On the terminal; returns an exit code. */
int ts_top_run_screen(struct ts_top *top, const struct ts_top_view *view);

/* `count` pictures as text, or JSON; a delay lies before each. */
int ts_top_run_plain(struct ts_top *top, struct ts_top_view *view, bool json, int64_t count);

#endif
