/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend records one kind of device or library. One `const struct ts_backend` describes it:
 *
 *	start, stop       run in the target; they emit events (<tracesmith/emit.h>, accelerator.h)
 *	all other fields  are read by the tool: how to get into the target, options and window kinds
 *	                  of `tracesmith record`, metrics, doctor checks, the summary of a recording
 *
 * How to add a backend `mydevice` without touching this repository: build a shared object
 * libtracesmith-backend-mydevice.so that exports
 *
 *	const struct ts_backend ts_backend = { .abi = TS_BACKEND_ABI, .size = sizeof(ts_backend),
 *					       .name = "mydevice", .start = my_start, ... };
 *
 * `tracesmith record --backends mydevice -- CMD` finds it by the rules of dlopen(), in the recorder
 * and in the target. `record --backends mydevice --help` shows its options, `tracesmith doctor
 * mydevice` runs its checks. examples/backends/sleeps.c uses every field but `metrics`, which
 * examples/backends/mydevice.c shows.
 *
 * How to add one to this repository:
 *  1. src/backends/mydevice/: what runs in the target. Either a library of its own
 *     (ts_add_builtin_backend() in CMakeLists.txt builds and installs it), or part of the agent (a
 *     row in src/backends/agent_load.c).
 *  2. src/backends/recorder/mydevice_descriptor.c: the fields that the tool reads, without start
 *     and stop, and a row for it in backend_table.c beside it; its checks in mydevice_checks.c.
 * record, doctor and the installation read the table; nothing else changes.
 *
 * Rules: start() is called once a process, from the thread that loads the agent or emits first,
 * again in a forked child that emits, and again after stop() when the program starts another
 * recording itself (ts_start()); it returns 0, or non-zero to stay out, which the trace then says.
 * In the target a backend never prints, aborts or blocks. The tool may load the library without
 * calling start(), so constructors must have no effect there.
 */
#ifndef TRACESMITH_BACKEND_H
#define TRACESMITH_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include <tracesmith/metrics.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TS_BACKEND_ABI 1u

/* ---- environment of the target ---- */

enum ts_backend_value {
	TS_BACKEND_TEXT,    /* `value` itself */
	TS_BACKEND_LIBRARY, /* path of the library `value`, found like those of `preload` */
	TS_BACKEND_AGENT,   /* the path of libtracesmith-agent.so */
};

/* How to combine with a value that the variable already has. */
enum ts_backend_merge {
	TS_BACKEND_REPLACE,
	TS_BACKEND_KEEP,    /* the user's value wins */
	TS_BACKEND_PREPEND, /* colon-separated list; ours comes first */
};

struct ts_backend_variable {
	const char *name;
	enum ts_backend_value kind;
	enum ts_backend_merge merge;
	const char *value; /* TS_BACKEND_AGENT: NULL */
};

/* ---- options of `tracesmith record` ---- */

enum ts_backend_option_type {
	TS_BACKEND_OPTION_FLAG,     /* --name; its text is "1" */
	TS_BACKEND_OPTION_VALUE,    /* --name VALUE */
	TS_BACKEND_OPTION_OPTIONAL, /* --name gives "", --name=VALUE the value */
};

struct ts_backend_option {
	const char *name; /* without dashes; unique among the options of record */
	enum ts_backend_option_type type;
	const char *value; /* name of the value in --help */
	const char *help;  /* what it does; --help adds which backend it belongs to */
	/*
	 * The key under which the target reads the value: ts_accelerator_setting(setting) of
	 * <tracesmith/accelerator.h>. It has no ';'.
	 */
	const char *setting;
	const char *default_value; /* if the option is not given; NULL: the key is omitted */
	/*
	 * Checks the text and writes the value for the target, at most `bytes` including the NUL.
	 * Returns nonzero with a message in `why`, such as "'x' is not a number". NULL: accepts any
	 * text.
	 */
	int (*parse)(const char *text, char *ret_value, size_t bytes, char *why, size_t why_bytes);
};

/* ---- windows: `record --window NAME` or `NAME:ARGUMENT` ---- */

/*
 * The target opens and closes the window itself: it calls ts_accelerator_window(name, open), and
 * finds the text after --window with ts_accelerator_setting("window").
 */
struct ts_backend_window {
	const char *name;
	const char *argument; /* name of the argument in --help; NULL: it takes none */
	const char *help;     /* when it is open: "inside NVTX ranges of a name" */
	/*
	 * Returns nonzero with a message in `why` if the argument is not valid; NULL: accepts any
	 * text.
	 */
	int (*check)(const char *argument, char *why, size_t why_bytes);
	const char *never_opened; /* likely reason; shown after a recording without a window */
};

/* ---- checks of `tracesmith doctor` ---- */

enum ts_check_state {
	TS_CHECK_UNKNOWN, /* undecided: timeout, crash, unexpected error */
	TS_CHECK_YES,
	TS_CHECK_LIMITED, /* works, except for what `text` says */
	TS_CHECK_NO,      /* refused or broken, for a known reason */
	TS_CHECK_ABSENT,  /* hardware or software not present, which is not a fault */
};

/* The result of a check. Each text is one line, or "". */
struct ts_finding {
	enum ts_check_state state;
	char text[384]; /* what was found */
	char fix[512];  /* shell command */
	char note[512]; /* where to run it, what it weakens, other ways to fix it */
};

/* The checks of a backend are the group `name` of `tracesmith doctor`. */
struct ts_backend_check {
	const char *id; /* stable and unique, such as "mydevice_driver": scripts depend on it */
	const char *title;
	/*
	 * Tries it. Runs in its own process, which is killed on a timeout: it may crash, hang,
	 * print, load libraries, change its environment and start processes (which end with it).
	 * *ret_finding is zeroed.
	 */
	void (*run)(struct ts_finding *ret_finding);
	const char *used_by; /* what needs it, such as "record, replay"; NULL: "record" */
	const char *caution; /* what the author could not test, or NULL */
};

/* ---- summary of a recording ---- */

enum ts_backend_recording_flags {
	TS_BACKEND_QUIET = 1,    /* record --quiet: notes are not shown */
	TS_BACKEND_JSON = 2,     /* record --json */
	TS_BACKEND_NAMED = 4,    /* the user named the backend; not on by default */
	TS_BACKEND_ONE_FILE = 8, /* the trace has the complete recording: no rotation */
};

/* A finished trace, and functions for a backend to report on it. */
struct ts_backend_recording {
	uint32_t size;    /* of this struct, as the tool was compiled */
	uint32_t flags;   /* enum ts_backend_recording_flags */
	const char *path; /* of the trace */
	void *context;    /* first argument of all functions below */
	/* Rows of a table (docs/format.md); with a column: those that have a value there. */
	uint64_t (*rows)(void *context, const char *table, const char *column);
	/* Calls `each` with the value of each ts_accelerator_fact() of that key. */
	void (*facts)(void *context, const char *key, void (*each)(void *user, const char *json),
		      void *user);
	/* Value of an option's setting in the target; NULL: none. */
	const char *(*setting)(void *context, const char *key);
	/* A line for the user. Notes are indented, and left out with --quiet. */
	void (*note)(void *context, const char *text);
	void (*warning)(void *context, const char *text);
	/* A member of the object that --json prints; `value` is JSON. */
	void (*json)(void *context, const char *key, const char *value);
};

/* ---- programs that start programs ---- */

/*
 * A program that loads a library before ours into what it starts, so that the backend sees nothing
 * there: `record -- NAME ...` is refused.
 */
struct ts_backend_launcher {
	const char *name;    /* of its file */
	const char *why;     /* what it does: "puts its own OpenCL before the recorded one" */
	const char *instead; /* the command to use: "oclgrind tracesmith record ... -- PROGRAM" */
};

/* ---- the backend ---- */

enum ts_backend_flags {
	/* Its command streams (<tracesmith/replay.h>) can be replayed: `record --replayable`. */
	TS_BACKEND_REPLAYABLE = 1,
};

/* Lists end with an element whose name (of checks: id) is NULL; a NULL list is empty. */
struct ts_backend {
	uint32_t abi;  /* TS_BACKEND_ABI; a backend with another number is not started */
	uint32_t size; /* size of this struct, as the backend was compiled: fields beyond it are
			  NULL */
	const char *name;
	const char *summary;
	int (*start)(void);                      /* NULL: nothing runs in targets */
	void (*stop)(void);                      /* at exit; may be NULL */
	const struct ts_metrics_source *metrics; /* what the recorder samples, or NULL */
	/* From here on read by the tool only. */
	uint32_t flags; /* enum ts_backend_flags */
	/*
	 * Libraries to load into the target before its own, NULL-terminated. They are next to the
	 * backend's library, or next to the agent for built-in backends. Missing ones are skipped.
	 */
	const char *const *preload;
	const struct ts_backend_variable *environment;
	const struct ts_backend_option *options;
	const struct ts_backend_window *windows;
	const struct ts_backend_check *checks;
	/* Called when a trace is finished; not for outputs that are not a trace (.json). */
	void (*summarize)(const struct ts_backend_recording *recording);
	/*
	 * Why it cannot record, such as a library that was missing when it was built; NULL: it can.
	 * Its checks are run nevertheless.
	 */
	const char *unavailable;
	const struct ts_backend_launcher *launchers;
};

#ifdef __cplusplus
}
#endif

#endif
