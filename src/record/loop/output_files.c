/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a recording: names, saves, copies, rotation, size limits. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tracesmith/reader.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/output.h"
#include "base/text.h"
#include "record/loop/record_internal.h"

#define COPY_BYTES (UINT64_C(64) << 20)
/* Initial estimate: a trace is half the size of its journal. */
#define RATIO_ONE UINT64_C(65536)
#define RATIO_AT_FIRST (RATIO_ONE / 2)
/* Too few bytes to estimate the ratio from. */
#define RATIO_RAW_BYTES (UINT64_C(16) << 10)

/* ---- names ---- */

int ts_saves_split_name(const char *output, char *stem, size_t bytes, const char **ret_ending,
			struct ts_error *err)
{
	static const char *const endings[] = { ".sbt", ".json", ".folded" };
	size_t length = strlen(output);
	const char *ending = endings[0];

	for (size_t i = 0; i < TS_ARRAY_SIZE(endings); i++) {
		size_t tail = strlen(endings[i]);

		if (length > tail && !strcmp(output + length - tail, endings[i])) {
			length -= tail;
			ending = endings[i];
			break;
		}
	}
	if (!length || output[length - 1] == '/')
		return ts_error_set(err, TS_EINVAL, "output '%s' is not the name of a file",
				    output);
	if (length >= bytes)
		return ts_error_set(err, TS_EINVAL, "output '%.60s...': path too long", output);
	memcpy(stem, output, length);
	stem[length] = 0;
	*ret_ending = ending;
	return TS_OK;
}

void ts_saves_window_path(char *buffer, size_t bytes, const char *stem, uint64_t pid,
			  int64_t realtime_ms, const char *ending)
{
	snprintf(buffer, bytes, "%s_pid%" PRIu64 "_%" PRId64 "%s", stem, pid, realtime_ms, ending);
}

int ts_saves_snapshot_path(char *buffer, size_t bytes, const char *stem, int64_t realtime_ns,
			   const char *ending)
{
	time_t seconds = (time_t)(realtime_ns / TS_NS_PER_S);
	struct tm utc = { 0 };
	char stamp[32];

	gmtime_r(&seconds, &utc);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
	snprintf(buffer, bytes, "%s-%s%s", stem, stamp, ending);
	for (unsigned int i = 2; !access(buffer, F_OK); i++) {
		if (i > 10000)
			return TS_EIO;
		snprintf(buffer, bytes, "%s-%s-%u%s", stem, stamp, i, ending);
	}
	return TS_OK;
}

/* A file has this name until it is complete. */
static void part_path(char *buffer, size_t bytes, const char *path)
{
	snprintf(buffer, bytes, "%.*s.part", TS_PATH_BYTES, path);
}

static void name_files(struct ts_saves *saves)
{
	if (saves->rotates)
		ts_rotation_path(saves->public_path, sizeof(saves->public_path), saves->stem,
				 saves->number, saves->ending);
	else
		snprintf(saves->public_path, sizeof(saves->public_path), "%s%s", saves->stem,
			 saves->ending);
	snprintf(saves->trace_path, sizeof(saves->trace_path), "%.*s%s", TS_PATH_BYTES - 8,
		 saves->public_path, saves->exporter ? ".sbt" : "");
}

/* ---- files ---- */

/* Copies through a buffer if the file system cannot share or copy extents. */
static int copy_by_hand(int from, int to, struct ts_error *err)
{
	char buffer[65536];

	for (;;) {
		ssize_t got = ts_read_some(from, buffer, sizeof(buffer));
		int rc;

		if (got <= 0)
			return got ? ts_error_errno(err, errno, "cannot read") : TS_OK;
		rc = ts_write_all(to, buffer, (size_t)got, err);
		if (rc)
			return rc;
	}
}

static int copy_bytes(int from, int to, struct ts_error *err)
{
	for (;;) {
		ssize_t copied = copy_file_range(from, NULL, to, NULL, COPY_BYTES, 0);

		if (copied > 0 || (copied < 0 && errno == EINTR))
			continue;
		if (copied < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
			return ts_error_errno(err, errno, "cannot write");
		/* End of file, or a kernel that returns 0 for files that it cannot copy. */
		return copy_by_hand(from, to, err);
	}
}

static int copy_to_part(const char *from, const char *part, struct ts_error *err)
{
	TS_AUTO_FD int source = ts_io_open(from, O_RDONLY, 0);
	TS_AUTO_FD int target = -1;
	int rc;

	if (source < 0)
		return ts_error_errno(err, errno, "cannot open '%s'", from);
	rc = ts_output_create(part, 0, &target, err);
	if (rc)
		return rc;
	rc = copy_bytes(source, target, err);
	if (rc) {
		ts_error_prefix(err, "copy '%s'", part);
		unlink(part);
	}
	return rc;
}

static int complete(const char *part, const char *path, struct ts_error *err)
{
	int rc = ts_output_rename(part, path, err);

	if (rc)
		unlink(part);
	return rc;
}

int ts_saves_copy(const char *from, const char *to, struct ts_error *err)
{
	char part[TS_PATH_BYTES + 16];
	int rc;

	part_path(part, sizeof(part), to);
	rc = copy_to_part(from, part, err);
	return rc ? rc : complete(part, to, err);
}

int ts_saves_export_text(struct ts_recorder *recorder, const char *trace, const char *path,
			 struct ts_error *err)
{
	char part[TS_PATH_BYTES + 16];
	int rc;

	part_path(part, sizeof(part), path);
	rc = recorder->options.export_text(recorder->saves.exporter, trace, part, err);
	if (rc)
		return ts_error_prefix(err, "'%s'", path);
	return complete(part, path, err);
}

/* ---- rotation ---- */

/* Maximum size of one file of a rotation. */
static uint64_t rotation_bytes(const struct ts_recorder_options *options)
{
	uint64_t bytes = options->rotate_bytes;

	/* At least two files must fit into the total. */
	if (options->max_bytes && (!bytes || bytes > options->max_bytes / 2))
		bytes = options->max_bytes / 2;
	return bytes;
}

static void expire(struct ts_recorder *recorder)
{
	struct ts_saves *saves = &recorder->saves;

	ts_rotation_expire(&saves->rotation, saves->stem, saves->ending, saves->limit_bytes,
			   recorder->options.rotate_keep, recorder->options.max_bytes);
}

static void measure(struct ts_recorder *recorder)
{
	struct ts_recording_status status = { 0 };

	ts_recording_status(recorder->recording, &status);
	recorder->saves.base_bytes = status.trace_bytes;
	recorder->saves.journal_bytes = status.journal_bytes;
}

static bool is_taken(const char *path)
{
	struct stat status;

	return !lstat(path, &status);
}

/* Adds a finished file: its events and losses, and the processes of the last file. */
static void add_totals(struct ts_saves *saves, const char *path)
{
	struct ts_trace_totals before = saves->totals;
	TS_AUTO(ts_reader) reader = NULL;

	if (ts_reader_open(&reader, path, NULL) || ts_trace_totals(reader, &saves->totals, NULL))
		return;
	saves->last_events = saves->totals.events;
	saves->totals.events += before.events;
	saves->totals.lost.events += before.lost.events;
	saves->totals.lost.unknown += before.lost.unknown;
}

static int rotate(struct ts_recorder *recorder, struct ts_error *err)
{
	struct ts_saves *saves = &recorder->saves;
	struct ts_saves old = *saves;
	int rc;

	do {
		saves->number++;
		name_files(saves);
	} while (is_taken(saves->public_path) || is_taken(saves->trace_path));
	rc = ts_recording_rotate(recorder->recording, saves->trace_path, err);
	if (rc) {
		*saves = old;
		return rc;
	}
	saves->files++;
	add_totals(saves, old.trace_path);
	if (saves->exporter) {
		rc = ts_saves_export_text(recorder, old.trace_path, old.public_path, err);
		if (rc)
			return rc;
		unlink(old.trace_path);
	} else {
		ts_recorder_completed(recorder, old.trace_path);
	}
	ts_rotation_add(&saves->rotation, saves->stem, saves->ending, old.number,
			saves->last_events);
	saves->rotate_ns =
		recorder->options.rotate_ns ? recorder->now_ns + recorder->options.rotate_ns : 0;
	measure(recorder);
	expire(recorder);
	return TS_OK;
}

/* ---- opening ---- */

static void choose_exporter(struct ts_recorder *recorder)
{
	struct ts_saves *saves = &recorder->saves;
	const char *json = recorder->options.json_exporter;

	if (!strcmp(saves->ending, ".json"))
		saves->exporter = json ? json : "chrome-array";
	else if (!strcmp(saves->ending, ".folded"))
		saves->exporter = "folded";
}

/* The text is written last: it must not turn out only then that it cannot be. */
static int check_text(const struct ts_saves *saves, struct ts_error *err)
{
	char part[TS_PATH_BYTES + 16];
	int rc = ts_output_check(saves->public_path, err);

	part_path(part, sizeof(part), saves->public_path);
	return rc ? rc : ts_output_check(part, err);
}

/* Of the recorded trace: ".sbt", ".json.sbt". */
static void trace_ending(const struct ts_saves *saves, char ending[16])
{
	snprintf(ending, 16, "%s%s", saves->ending, saves->exporter ? ".sbt" : "");
}

/* What to resume is where a journal is; else the next number that is free. */
static uint32_t choose_number(const struct ts_saves *saves, bool resume)
{
	char trace[16], journal[32];
	uint32_t number = 0;

	trace_ending(saves, trace);
	snprintf(journal, sizeof(journal), "%s.journal", trace);
	if (resume)
		number = ts_rotation_greatest(saves->stem, journal);
	if (resume && !number)
		number = ts_rotation_greatest(saves->stem, trace);
	return number ? number
		      : TS_MAX(ts_rotation_greatest(saves->stem, trace),
			       ts_rotation_greatest(saves->stem, saves->ending)) +
				1;
}

int ts_saves_open(struct ts_recorder *recorder, struct ts_error *err)
{
	const struct ts_recorder_options *options = &recorder->options;
	struct ts_saves *saves = &recorder->saves;
	int rc = ts_saves_split_name(options->output, saves->stem, sizeof(saves->stem),
				     &saves->ending, err);

	if (rc)
		return rc;
	choose_exporter(recorder);
	if (saves->exporter && !options->export_text)
		return ts_error_set(err, TS_EINVAL, "output '%s': only traces can be written here",
				    options->output);
	saves->rotates = options->rotate_bytes || options->rotate_ns;
	if (saves->rotates)
		saves->number = choose_number(saves, options->resume);
	saves->files = 1;
	name_files(saves);
	return saves->exporter ? check_text(saves, err) : TS_OK;
}

/*
 * If a predecessor died during a rotation, the recording is in the next file. Those before it are
 * of the same recording if they say so; a text does not.
 */
static void follow_recording(struct ts_recorder *recorder)
{
	struct ts_saves *saves = &recorder->saves;
	char ending[16];
	uint32_t number;

	trace_ending(saves, ending);
	number = ts_rotation_number(ts_recording_path(recorder->recording), saves->stem, ending);
	if (number)
		saves->number = number;
	name_files(saves);
	if (recorder->options.resume && !saves->exporter)
		ts_rotation_find(&saves->rotation, saves->stem, saves->ending, saves->number,
				 recorder->session);
}

void ts_saves_start(struct ts_recorder *recorder)
{
	const struct ts_recorder_options *options = &recorder->options;
	struct ts_saves *saves = &recorder->saves;

	if (saves->rotates)
		follow_recording(recorder);
	saves->ratio = RATIO_AT_FIRST;
	if (options->autosave_ns)
		saves->save_ns = recorder->now_ns + options->autosave_ns;
	if (options->snapshot_ns)
		saves->snapshot_ns = recorder->now_ns + options->snapshot_ns;
	if (options->rotate_ns)
		saves->rotate_ns = recorder->now_ns + options->rotate_ns;
	/* Reserve space for the index and the closing rows. */
	if (saves->rotates)
		saves->limit_bytes = rotation_bytes(options);
	else if (options->max_bytes)
		saves->limit_bytes =
			options->max_bytes -
			TS_MIN(options->max_bytes / 2,
			       TS_MIN(options->max_bytes / 16, UINT64_C(1) << 20) + 4096);
	measure(recorder);
	if (saves->rotates)
		expire(recorder);
}

/* ---- size limit ---- */

/* Estimated bytes of the trace for `journal_bytes` of the journal. */
static uint64_t decoded_bytes(const struct ts_saves *saves, uint64_t journal_bytes)
{
	return journal_bytes / RATIO_ONE * saves->ratio +
	       (journal_bytes % RATIO_ONE) * saves->ratio / RATIO_ONE;
}

static uint64_t expected_bytes(struct ts_recorder *recorder)
{
	struct ts_saves *saves = &recorder->saves;
	struct ts_recording_status status = { 0 };

	ts_recording_status(recorder->recording, &status);
	/* The recording made a checkpoint itself. */
	if (status.journal_bytes < saves->journal_bytes) {
		saves->base_bytes = status.trace_bytes;
		saves->journal_bytes = 0;
	}
	return TS_MAX(saves->base_bytes +
			      decoded_bytes(saves, status.journal_bytes - saves->journal_bytes) +
			      ts_spools_uncommitted(recorder->spools),
		      status.trace_bytes);
}

bool ts_saves_refuses(struct ts_recorder *recorder, uint64_t bytes, uint64_t spooled_bytes)
{
	struct ts_saves *saves = &recorder->saves;
	uint64_t expected;

	if (!saves->limit_bytes)
		return false;
	expected = expected_bytes(recorder);
	/* A block too large for any file of a rotation gets a file to itself. */
	if (expected + decoded_bytes(saves, bytes) + spooled_bytes <= saves->limit_bytes ||
	    (saves->rotates && expected < saves->limit_bytes / 8))
		return false;
	saves->refused_bytes = bytes;
	saves->refused_spooled = spooled_bytes;
	recorder->settling = true;
	return true;
}

uint64_t ts_saves_space(struct ts_recorder *recorder)
{
	uint64_t limit = recorder->saves.limit_bytes, expected;

	if (!limit || recorder->saves.rotates)
		return UINT64_MAX;
	expected = expected_bytes(recorder);
	return expected < limit ? limit - expected : 0;
}

static int stop_storing(struct ts_recorder *recorder, struct ts_error *err)
{
	char text[TS_FORMAT_BYTES], reason[128];
	int rc;

	ts_format_bytes(text, sizeof(text), recorder->options.max_bytes);
	snprintf(reason, sizeof(reason), "the trace has reached its limit of %s", text);
	rc = ts_recorder_lose(recorder, 0, 0, "events", reason, 0, err);
	if (rc)
		return rc == TS_ENOSPC ? TS_OK : rc;
	recorder->limited = true;
	for (size_t i = 0; i < recorder->target_count; i++)
		if (!recorder->targets[i]->dead && !recorder->targets[i]->superseded)
			TS_TARGET_SET(recorder->targets[i], enabled, 0);
	ts_recorder_note(recorder, "'%s' has reached its limit of %s: no more events are stored",
			 recorder->saves.public_path, text);
	return TS_OK;
}

/*
 * A checkpoint gives the exact size of the trace and the ratio of journal to trace. Rows are
 * usually several times smaller than their records, but the ratio changes with what the program
 * does. The estimate is therefore twice the measured ratio, and at least half of the previous
 * estimate.
 */
static int measure_exactly(struct ts_recorder *recorder, struct ts_error *err)
{
	struct ts_saves *saves = &recorder->saves;
	struct ts_recording_status status = { 0 };
	uint64_t raw, before = saves->base_bytes;
	int rc;

	ts_recording_status(recorder->recording, &status);
	raw = status.journal_bytes - TS_MIN(status.journal_bytes, saves->journal_bytes);
	rc = ts_recording_checkpoint(recorder->recording, false, err);
	if (rc)
		return rc;
	measure(recorder);
	if (raw >= RATIO_RAW_BYTES && saves->base_bytes > before)
		saves->ratio = TS_MIN(TS_MAX((saves->base_bytes - before) * 2 * RATIO_ONE / raw + 1,
					     saves->ratio / 2),
				      RATIO_ONE);
	return TS_OK;
}

/* Ends the file once the remaining space is not worth another checkpoint. */
static int look_at_size(struct ts_recorder *recorder, struct ts_error *err)
{
	struct ts_saves *saves = &recorder->saves;
	uint64_t refused = saves->refused_bytes;
	uint64_t space;
	int rc;

	if (!saves->limit_bytes || recorder->limited ||
	    (!refused && expected_bytes(recorder) < saves->limit_bytes))
		return TS_OK;
	saves->refused_bytes = 0;
	rc = measure_exactly(recorder, err);
	if (rc)
		return rc;
	space = saves->base_bytes < saves->limit_bytes ? saves->limit_bytes - saves->base_bytes : 0;
	if (space > saves->limit_bytes / 16 &&
	    space >= decoded_bytes(saves, refused) + saves->refused_spooled)
		return TS_OK;
	return saves->rotates ? rotate(recorder, err) : stop_storing(recorder, err);
}

int ts_saves_make_space(struct ts_recorder *recorder, struct ts_error *err)
{
	if (!recorder->saves.rotates || !recorder->saves.refused_bytes)
		return TS_ENOSPC;
	return look_at_size(recorder, err);
}

/* ---- schedule ---- */

int ts_saves_save(struct ts_recorder *recorder, struct ts_error *err)
{
	struct ts_saves *saves = &recorder->saves;
	int rc = ts_recording_checkpoint(recorder->recording, true, err);

	if (rc)
		return rc;
	measure(recorder);
	return saves->exporter
		       ? ts_saves_export_text(recorder, saves->trace_path, saves->public_path, err)
		       : TS_OK;
}

static int snapshot(struct ts_recorder *recorder, struct ts_error *err)
{
	struct ts_saves *saves = &recorder->saves;
	char path[TS_PATH_BYTES];
	int rc = ts_saves_save(recorder, err);

	if (rc)
		return rc;
	if (ts_saves_snapshot_path(path, sizeof(path), saves->stem, ts_clock_realtime_ns(),
				   saves->ending))
		return ts_error_set(err, TS_EIO, "no free name for a snapshot of '%s'",
				    saves->stem);
	saves->files++;
	rc = ts_saves_copy(saves->public_path, path, err);
	if (!rc && !saves->exporter)
		ts_recorder_completed(recorder, path);
	return rc;
}

/* True once each time *due is reached; sets the next time one period later. */
static bool is_due(int64_t now_ns, int64_t *due, int64_t period_ns)
{
	if (!*due || now_ns < *due)
		return false;
	*due = now_ns + period_ns;
	return true;
}

static int do_what_is_due(struct ts_recorder *recorder, struct ts_error *err)
{
	const struct ts_recorder_options *options = &recorder->options;
	struct ts_saves *saves = &recorder->saves;
	bool saved = false;
	int rc = look_at_size(recorder, err);

	if (!rc && is_due(recorder->now_ns, &saves->rotate_ns, options->rotate_ns))
		rc = rotate(recorder, err);
	if (!rc && is_due(recorder->now_ns, &saves->snapshot_ns, options->snapshot_ns)) {
		saved = true;
		rc = snapshot(recorder, err);
	}
	if (!rc && !saved && is_due(recorder->now_ns, &saves->save_ns, options->autosave_ns)) {
		saved = true;
		rc = ts_saves_save(recorder, err);
	}
	/* A user who waits for a window to close wants to read the trace. */
	if (!rc && !saved && recorder->windows.moved && !options->split)
		rc = ts_saves_save(recorder, err);
	recorder->windows.moved = false;
	return rc;
}

int ts_saves_pass(struct ts_recorder *recorder, struct ts_error *err)
{
	struct ts_error why = { 0 };
	int rc;

	if (recorder->full)
		return TS_OK;
	rc = do_what_is_due(recorder, &why);
	if (rc == TS_ENOSPC) {
		ts_recorder_note(recorder, "not saved: %s", why.message);
		return TS_OK;
	}
	return rc ? ts_error_set(err, rc, "%s", why.message) : TS_OK;
}

/* ---- the end ---- */

int ts_saves_finish(struct ts_recorder *recorder, struct ts_error *err)
{
	struct ts_saves *saves = &recorder->saves;
	bool is_done = false;
	int rc;

	add_totals(saves, saves->trace_path);
	if (saves->rotates)
		expire(recorder);
	rc = ts_ranks_split(recorder, &is_done, err);
	if (rc || is_done)
		return rc;
	if (!saves->exporter) {
		ts_recorder_completed(recorder, saves->trace_path);
		return TS_OK;
	}
	if (recorder->options.before_text)
		recorder->options.before_text(recorder->options.context, saves->trace_path);
	rc = ts_saves_export_text(recorder, saves->trace_path, saves->public_path, err);
	if (rc)
		return rc;
	unlink(saves->trace_path);
	return TS_OK;
}

void ts_saves_release(struct ts_saves *saves)
{
	ts_rotation_release(&saves->rotation);
	free(saves->rank_files);
}
