/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates traces from live areas without a recorder. Areas are opened read-only, so that a later
 * recorder still finds everything, and a salvage can be repeated.
 */
#include "record/recording/salvage.h"

#include <stdlib.h>
#include <unistd.h>

#include <tracesmith/schema.h>

#include "base/text.h"
#include "live/local/counter.h"

/* Reasons for END blocks. */
enum { ENDED = 0, LEFT = 2 };

/* ---- blocks ---- */

int ts_salvage_area(const struct ts_block_sink *sink, const struct ts_live_control *control,
		    pid_t pid, struct ts_error *err)
{
	struct ts_block block = { .type = TS_BLOCK_AREA,
				  .bytes = sizeof(struct ts_block_area),
				  .area = control->area_id };
	struct ts_block_area payload = {
		.control = *control,
		.pid = (uint64_t)pid,
		.parent = pid ? (uint64_t)ts_process_parent(pid) : control->parent,
		.seen_counter = control->created.counter,
	};

	return sink->append(sink->context, &block, &payload, err);
}

int ts_salvage_end(const struct ts_block_sink *sink, const struct ts_live_control *control,
		   pid_t pid, struct ts_error *err)
{
	struct ts_block block = { .type = TS_BLOCK_END,
				  .bytes = sizeof(struct ts_block_end),
				  .area = control->area_id };
	struct ts_block_end payload = {
		.ended_counter = ts_counter_read(control->clock),
		.exit_status = TS_ABSENT,
		.lost_nested = control->lost_nested,
		.lost_no_ring = control->lost_no_ring,
		.lost_first = control->lost_first,
		.strings_cut = control->strings_cut,
		.target_state = control->target_state,
		.reason = pid ? LEFT : ENDED,
	};

	memcpy(payload.message, control->message, sizeof(payload.message));
	return sink->append(sink->context, &block, &payload, err);
}

static void resume_ring(void *context, uint32_t ring, uint64_t position, uint64_t events,
			uint64_t dropped)
{
	ts_area_resume_ring(context, ring, position, events, dropped);
}

/*
 * Appends the blocks of one area to an open recording: AREA if the area is new to it, then new
 * data, then END.
 */
static int append_blocks(struct ts_recording *recording, struct ts_area *area, pid_t pid,
			 struct ts_salvage *salvage, struct ts_error *err)
{
	const struct ts_live_control *control = ts_area_control(area);
	struct ts_block_sink sink = ts_recording_sink(recording);
	struct ts_drain_result result = { 0 };
	uint64_t dictionary;
	int rc = TS_OK;

	if (ts_recording_positions(recording, control->area_id, &dictionary, resume_ring, area))
		ts_area_resume_dictionary(area, dictionary);
	else
		rc = ts_salvage_area(&sink, control, pid, err);
	if (!rc)
		rc = ts_area_drain(area, TS_DRAIN_FINAL, &sink, &result, err);
	/* Loss counters are read after the drain. */
	if (!rc)
		rc = ts_area_refresh(area, err);
	if (!rc)
		rc = ts_salvage_end(&sink, ts_area_control(area), pid, err);
	if (rc)
		return rc;
	salvage->events += result.events;
	salvage->lost += result.dropped + control->lost_nested + control->lost_no_ring;
	salvage->damaged += result.damaged;
	return TS_OK;
}

/* ---- areas ---- */

static int add_area(struct ts_recording *recording, int directory_fd,
		    const struct ts_area_info *info, struct ts_salvage *salvage,
		    struct ts_error *err)
{
	TS_AUTO(ts_area) area = NULL;
	int rc = ts_area_open(&area, directory_fd, info->name, false, err);

	if (!rc)
		rc = append_blocks(recording, area, info->alive ? info->pid : 0, salvage, err);
	return rc;
}

static int record_areas(struct ts_recording *recording, int directory_fd,
			const struct ts_area_info *areas, size_t count, struct ts_salvage *salvage,
			struct ts_error *err)
{
	int rc = TS_OK;

	for (size_t i = 0; !rc && i < count; i++)
		rc = add_area(recording, directory_fd, &areas[i], salvage, err);
	if (!rc)
		rc = ts_recording_finish(recording, err);
	return rc;
}

static void remove_output(const char *path)
{
	TS_SCOPED(ts_text) journal = { 0 };

	ts_text_printf(&journal, "%s.journal", path);
	unlink(ts_text_cstr(&journal));
	unlink(path);
}

int ts_salvage_areas(int directory_fd, const struct ts_area_info *areas, size_t count,
		     const char *path, struct ts_salvage *ret_salvage, struct ts_error *err)
{
	struct ts_recording_options options = { 0 };
	TS_AUTO(ts_spools) spools = NULL;
	struct ts_recording *recording;
	struct ts_salvage salvage = { 0 };
	int rc;

	if (!count)
		return ts_error_set(err, TS_ENOTFOUND, "no live area to recover");
	rc = ts_spools_new(&spools, false, err);
	if (!rc)
		rc = ts_spools_add_directory(spools, directory_fd, err);
	if (rc)
		return rc;
	options.spools = spools;
	options.session = areas[0].control.session;
	options.flags = areas[0].control.redact ? TS_RECORDING_REDACT : 0;
	rc = ts_recording_open(&recording, path, &options, err);
	if (rc)
		return rc;
	rc = record_areas(recording, directory_fd, areas, count, &salvage, err);
	ts_recording_close(recording);
	if (rc)
		remove_output(path);
	else
		*ret_salvage = salvage;
	return rc;
}

/* ---- a session ---- */

static void add_directory(void *context, uid_t user)
{
	TS_AUTO_FD int fd = -1;

	if (!ts_live_directory_open(user, 0, &fd, NULL))
		ts_spools_add_directory(context, fd, NULL);
}

int ts_salvage_spools(struct ts_spools **ret_spools, struct ts_error *err)
{
	int rc = ts_spools_new(ret_spools, false, err);

	if (!rc)
		ts_live_directory_users(add_directory, *ret_spools);
	return rc;
}

struct session_walk {
	struct ts_salvage_session *session;
	struct ts_recording *recording;
	uid_t user; /* whose directory it is */
	int directory_fd;
	struct ts_error *err;
	int rc;
};

static void ignore_ring(void *context, uint32_t ring, uint64_t position, uint64_t events,
			uint64_t dropped)
{
}

static bool belongs(const struct session_walk *walk, const struct ts_live_control *control)
{
	uint64_t session = ts_recording_origin(walk->recording)->session;
	uint64_t dictionary;

	/* Another user knows the session of his programs, and could claim it for anything. */
	return (session && control->session == session && walk->user == geteuid()) ||
	       ts_recording_positions(walk->recording, control->area_id, &dictionary, ignore_ring,
				      NULL);
}

static void on_area(void *context, const struct ts_area_info *info)
{
	struct session_walk *walk = context;
	TS_AUTO(ts_area) area = NULL;

	if (walk->rc || info->unfinished || !belongs(walk, &info->control))
		return;
	/* Skip an area that disappeared meanwhile or is damaged. */
	if (ts_area_open(&area, walk->directory_fd, info->name, false, NULL))
		return;
	walk->session->areas++;
	walk->rc = append_blocks(walk->recording, area, info->alive ? info->pid : 0,
				 &walk->session->salvage, walk->err);
}

static void walk_directory(void *context, uid_t user)
{
	struct session_walk *walk = context;
	TS_AUTO_FD int fd = -1;
	int rc;

	if (walk->rc)
		return;
	rc = ts_live_directory_open(user, 0, &fd, walk->err);
	/* Another user's directory may be anything. */
	if (rc) {
		walk->rc = rc == TS_ENOTFOUND || user != geteuid() ? TS_OK : rc;
		return;
	}
	walk->user = user;
	walk->directory_fd = fd;
	rc = ts_areas_list(fd, 0, on_area, NULL, walk, walk->err);
	if (rc && !walk->rc)
		walk->rc = rc;
}

/* Areas that the journal knows and nobody has any more. */
static int append_gone(struct ts_recording *recording, struct ts_error *err)
{
	struct ts_block_loss loss = { .count = TS_ABSENT,
				      .what = "events",
				      .reason = TS_RECORDING_AREA_GONE };
	TS_AUTO_FREE uint64_t *areas = NULL;
	size_t count = 0;
	int rc = ts_recording_open_areas(recording, &areas, &count, err);

	/* This may be another boot, whose counter says nothing. */
	loss.first_counter = loss.last_counter = ts_recording_origin(recording)->started_counter;
	for (size_t i = 0; i < count && !rc; i++) {
		struct ts_block block = { .type = TS_BLOCK_LOSS,
					  .bytes = sizeof(loss),
					  .area = areas[i] };

		rc = ts_recording_append(recording, &block, &loss, err);
	}
	return rc;
}

int ts_salvage_session(void *context, struct ts_recording *recording, struct ts_error *err)
{
	struct session_walk walk = { .session = context, .recording = recording, .err = err };

	ts_live_directory_users(walk_directory, &walk);
	return walk.rc ? walk.rc : append_gone(recording, err);
}

/* ---- a damaged journal ---- */

struct preamble {
	uint64_t area_id;
	int directory_fd;
	bool is_announced;
	uint64_t dictionary;
	struct ts_block_sink sink;
	struct ts_error *err;
	int rc;
};

/* What is in the rings is drained once the journal is decoded. */
static int append_dictionary(void *context, struct ts_block *block, const void *payload,
			     struct ts_error *err)
{
	const struct ts_block_sink *sink = context;

	return block->type == TS_BLOCK_DICTIONARY ? sink->append(sink->context, block, payload, err)
						  : TS_OK;
}

static void give_preamble(void *context, const struct ts_area_info *info)
{
	struct preamble *preamble = context;
	struct ts_block_sink sink = { append_dictionary, &preamble->sink };
	struct ts_drain_result result = { 0 };
	TS_AUTO(ts_area) area = NULL;

	if (preamble->rc || info->unfinished || info->control.area_id != preamble->area_id ||
	    ts_area_open(&area, preamble->directory_fd, info->name, false, NULL))
		return;
	if (!preamble->is_announced)
		preamble->rc = ts_salvage_area(&preamble->sink, ts_area_control(area),
					       info->alive ? info->pid : 0, preamble->err);
	ts_area_resume_dictionary(area, preamble->dictionary);
	if (!preamble->rc)
		preamble->rc = ts_area_drain(area, TS_DRAIN_DISCARD, &sink, &result, preamble->err);
}

static void search_directory(void *context, uid_t user)
{
	struct preamble *preamble = context;
	TS_AUTO_FD int fd = -1;

	if (preamble->rc || ts_live_directory_open(user, 0, &fd, NULL))
		return;
	preamble->directory_fd = fd;
	ts_areas_list(fd, 0, give_preamble, NULL, preamble, NULL);
}

int ts_salvage_preamble(uint64_t area_id, bool is_announced, uint64_t dictionary,
			const struct ts_block_sink *sink, struct ts_error *err)
{
	struct preamble preamble = { .area_id = area_id,
				     .is_announced = is_announced,
				     .dictionary = dictionary,
				     .sink = *sink,
				     .err = err };

	ts_live_directory_users(search_directory, &preamble);
	/* A damaged area has nothing to give. */
	return preamble.rc == TS_EFORMAT ? TS_OK : preamble.rc;
}
