/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes one trace per window and process (--split), exactly once even if the recorder is killed in
 * between. The decoder reports complete windows; the journal has the list of exported ones.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/output.h"
#include "record/loop/record_internal.h"
#include "trace/extract.h"

/*
 * Runs on the decoder's thread. Out of memory, the window is not exported, but it is in the trace.
 */
void ts_windows_closed(void *context, uint64_t area, const struct ts_block_window *opened,
		       const struct ts_block_window *closed)
{
	struct ts_recorder *recorder = context;
	struct ts_windows *windows = &recorder->windows;

	pthread_mutex_lock(&windows->lock);
	windows->counted++;
	if (recorder->options.split &&
	    !ts_grow_array((void **)&windows->closed, &windows->closed_capacity,
			   windows->closed_count + 1, sizeof(*windows->closed)))
		windows->closed[windows->closed_count++] = (struct ts_closed_window){
			.area = area, .opened = *opened, .closed = *closed
		};
	pthread_mutex_unlock(&windows->lock);
}

static bool next_closed(struct ts_recorder *recorder, struct ts_closed_window *ret_window)
{
	struct ts_windows *windows = &recorder->windows;
	bool found;

	pthread_mutex_lock(&windows->lock);
	found = windows->closed_count > 0;
	if (found) {
		*ret_window = windows->closed[0];
		windows->closed_count--;
		memmove(windows->closed, windows->closed + 1,
			windows->closed_count * sizeof(*windows->closed));
	}
	pthread_mutex_unlock(&windows->lock);
	return found;
}

/* Writes to a temporary name first. An existing file was written before, by a killed recorder. */
static int write_window(struct ts_recorder *recorder, const char *path,
			const struct ts_extract_filter *filter, struct ts_error *err)
{
	char part[TS_PATH_BYTES + 16];
	int rc;

	if (!access(path, F_OK))
		return TS_OK;
	/* Differs from the temporary name of the text export. */
	snprintf(part, sizeof(part), "%s%s.part", path, recorder->saves.exporter ? ".sbt" : "");
	rc = ts_extract(recorder->saves.trace_path, part, filter, err);
	if (rc)
		return rc;
	if (recorder->saves.exporter) {
		rc = ts_saves_export_text(recorder, part, path, err);
		unlink(part);
		return rc;
	}
	rc = ts_output_rename(part, path, err);
	if (rc)
		unlink(part);
	else
		ts_recorder_completed(recorder, path);
	return rc;
}

static int export_window(struct ts_recorder *recorder, const struct ts_closed_window *window,
			 struct ts_error *err)
{
	struct ts_block_export done = { .serial = window->opened.serial };
	struct ts_extract_filter filter = {
		.from_ns = ts_recording_time(recorder->recording, window->opened.counter),
		.to_ns = ts_recording_time(recorder->recording, window->closed.counter),
		.commands = true,
	};
	int rc;

	ts_map_get(&recorder->seen, window->area, &done.pid);
	filter.pid = done.pid ? (int64_t)done.pid : TS_ABSENT;
	ts_saves_window_path(done.path, sizeof(done.path), recorder->saves.stem, done.pid,
			     window->closed.realtime_ms, recorder->saves.ending);
	rc = write_window(recorder, done.path, &filter, err);
	/* A process without any row has nothing to export. */
	if (rc == TS_ENOTFOUND)
		done.path[0] = 0;
	else if (rc)
		return rc;
	else
		recorder->saves.files++;
	return ts_recorder_append(recorder, TS_BLOCK_EXPORT, window->area, &done, sizeof(done),
				  err);
}

/* Retries a window later that cannot be written now. It is also in the main trace. */
static int postpone(struct ts_recorder *recorder, const struct ts_closed_window *window,
		    const struct ts_error *why)
{
	struct ts_windows *windows = &recorder->windows;

	if (!windows->retry_ns)
		ts_recorder_note(recorder, "a window is not exported yet: %s", why->message);
	windows->retry_ns = recorder->now_ns + TS_NS_PER_S;
	pthread_mutex_lock(&windows->lock);
	if (!ts_grow_array((void **)&windows->closed, &windows->closed_capacity,
			   windows->closed_count + 1, sizeof(*windows->closed)))
		windows->closed[windows->closed_count++] = *window;
	pthread_mutex_unlock(&windows->lock);
	return TS_OK;
}

/* The last events of a window by time follow its CLOSE block: they must be in the trace, too. */
static bool is_complete(struct ts_recorder *recorder, struct ts_error *why)
{
	if (recorder->options.window.kind != TS_WINDOW_TIME || recorder->finishing)
		return true;
	if (recorder->now_ns - recorder->windows.settled_ns < 2 * TS_NS_PER_MS) {
		recorder->settling = true;
		return false;
	}
	return !ts_recording_checkpoint(recorder->recording, false, why);
}

static bool is_any_closed(struct ts_windows *windows)
{
	bool any;

	pthread_mutex_lock(&windows->lock);
	any = windows->closed_count > 0;
	pthread_mutex_unlock(&windows->lock);
	return any;
}

int ts_windows_export(struct ts_recorder *recorder, struct ts_error *err)
{
	struct ts_closed_window window;
	struct ts_error why = { 0 };

	if (!recorder->options.split || recorder->full ||
	    recorder->now_ns < recorder->windows.retry_ns || !is_any_closed(&recorder->windows) ||
	    !is_complete(recorder, &why))
		return TS_OK;
	while (next_closed(recorder, &window)) {
		int rc = export_window(recorder, &window, &why);

		if (rc == TS_ENOMEM)
			return ts_error_set(err, rc, "%s", why.message);
		if (rc)
			return postpone(recorder, &window, &why);
		recorder->windows.retry_ns = 0;
	}
	return TS_OK;
}
