/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that the tool writes: traces, journals, exports, logs. All are opened here, since they
 * hold what a user's programs do, and may lie in a folder in which others write, too. A symbolic
 * link is not followed, a file of another user is not written, and new files are readable by their
 * owner only, unless asked for otherwise. Neither is a file with several names: where the kernel
 * lets users link files of others (fs.protected_hardlinks), it may be any file of ours. One that is
 * continued may have several in a folder in which nobody else can link. A file that is replaced
 * loses this name only.
 */
#ifndef TS_BASE_OUTPUT_H
#define TS_BASE_OUTPUT_H

#include <stdbool.h>
#include <sys/types.h>

#include <tracesmith/error.h>

/* ---- permissions ---- */

#define TS_OUTPUT_MODE ((mode_t)0600)   /* the default */
#define TS_OUTPUT_UMASK ((mode_t)07777) /* 0666, as the umask restricts it */

/* "0640" or "umask". TS_EINVAL: another text, or one that would lock out the owner. */
int ts_output_parse_mode(const char *text, mode_t *ret_mode, struct ts_error *err);

/*
 * Permissions of outputs from now on. Like umask(2) they are the process's: call it before threads
 * start. A file that is written again gets them as well, except those of the umask.
 */
void ts_output_set_mode(mode_t mode);

/* ---- files ---- */

#define TS_OUTPUT_READ 1u     /* opens it for reading, too */
#define TS_OUTPUT_APPEND 2u   /* writes go to its end */
#define TS_OUTPUT_EMPTY 4u    /* removes what is in it */
#define TS_OUTPUT_EXISTING 8u /* does not create it, and keeps its permissions */
#define TS_OUTPUT_LOCKED \
	16u /* the caller has opened and locked it before: do not ask who owns it */

/*
 * Opens a file to be written, and creates it if necessary. Devices are accepted, FIFOs that
 * somebody reads, and paths that name a descriptor of this process (/dev/stdout, /dev/fd/N). The
 * message is complete.
 */
int ts_output_open(const char *path, unsigned int flags, int *ret_fd, struct ts_error *err);

/*
 * Creates a file under a name of ours beside an output: .part, .journal.new, .reserve. One that a
 * killed process of this user left there is replaced. TS_OUTPUT_READ is the only flag.
 */
int ts_output_create(const char *path, unsigned int flags, int *ret_fd, struct ts_error *err);

/* Fails if ts_output_rename() to this path would, so that one learns it before the work is done. */
int ts_output_check(const char *path, struct ts_error *err);

/* Renames a complete file to an output: a new one, or a regular file of this user. */
int ts_output_rename(const char *from, const char *to, struct ts_error *err);

/* ---- replacing a file ---- */

/*
 * An output that stays as it is until its replacement is complete: that is written under the name
 * NAME.part, and renamed in the end. Pipes, devices and descriptors have nothing to preserve, and
 * are written directly.
 */
struct ts_output_part {
	const char *output; /* borrowed */
	char *path;         /* to write to: output.part, or the output itself */
	bool is_direct;
	int slot; /* in the list of ts_output_remove_parts(), plus 1; 0: none */
};

/*
 * Creates the empty part, for whoever opens it by its path. Fails if the output could not be
 * replaced in the end, or if another process is writing either of them (and holds its lock).
 */
int ts_output_part_init(struct ts_output_part *part, const char *output, struct ts_error *err);

/* Opens and locks it. The caller closes it before the commit. */
int ts_output_part_open(const struct ts_output_part *part, int *ret_fd, struct ts_error *err);

/* The output is now what was written. A failure leaves the earlier one. */
int ts_output_part_commit(struct ts_output_part *part, struct ts_error *err);

/* Removes what was not committed. Accepts a zeroed struct. */
void ts_output_part_release(struct ts_output_part *part);

/*
 * Removes all parts of this process that are not committed, and the files of a recording beside
 * them. For handlers of signals that end the process: async-signal-safe, and without effect in a
 * child.
 */
void ts_output_remove_parts(void);

/*
 * Before a fork: the list of parts is shared with the child from now on, so that the parent can
 * remove those of a child that was killed.
 */
int ts_output_share_parts(struct ts_error *err);
void ts_output_remove_parts_of(pid_t process);

/* ---- folders ---- */

/* Creates a folder for outputs, unless there is one. Who may read files may search it. */
int ts_output_make_folder(const char *path, struct ts_error *err);

/* The same for all folders that the path of a file names. */
int ts_output_make_parents(const char *path, struct ts_error *err);

#endif
