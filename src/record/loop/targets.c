/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches to areas, and detaches from them. */
#include <sys/syscall.h>
#include <unistd.h>

#include "record/loop/record_internal.h"

#define LOOK_NS TS_NS_PER_S
/* Unattached areas kept when a recorder ends. */
#define KEEP_AREAS 64

/* ---- control words of an area ---- */

int ts_target_set(struct ts_target *target, size_t offset, uint64_t value, unsigned int bytes)
{
	/* A write error shows up at the next refresh. */
	return ts_area_set(target->area, offset, value, bytes, NULL);
}

void ts_target_tell_space(struct ts_recorder *recorder, struct ts_target *target)
{
	uint64_t space = ts_store_space(recorder);

	/* 0 is unknown. */
	TS_TARGET_SET(target, output_space, space == UINT64_MAX ? 0 : TS_MAX(space, 1u));
}

/* ---- identity ---- */

bool ts_targets_of_session(const struct ts_recorder *recorder,
			   const struct ts_live_control *control)
{
	return (recorder->session && control->session == recorder->session) ||
	       (recorder->options.area && control->area_id == recorder->options.area);
}

bool ts_targets_note_once(struct ts_recorder *recorder, uint64_t area_id)
{
	bool is_new = false;

	ts_map_insert(&recorder->refused, area_id, &is_new);
	return is_new;
}

pid_t ts_targets_other_recorder(const struct ts_recorder *recorder, const struct ts_area_info *info)
{
	pid_t pid = ts_area_recorder(&info->control, info->owner);

	return pid == recorder->self ? 0 : pid;
}

/* ---- attaching ---- */

void ts_target_supersede(struct ts_target *target)
{
	if (ts_process_maps(target->pid, target->device, target->inode))
		target->replaced = false;
	else
		target->superseded = true;
}

/*
 * True if one area says that the image of the other was replaced. Another user's area says so only
 * if the kernel has reported the exec: a process that dropped its privileges may still use it.
 */
static bool replaces(const struct ts_target *newer, const struct ts_target *older)
{
	return newer->pid && newer->pid == older->pid && newer->start_time == older->start_time &&
	       newer->image != older->image && newer->created_ns > older->created_ns &&
	       (newer->owner == older->owner || older->replaced);
}

/* Ends the areas of earlier images of the same process, in whatever order they are found. */
static void supersede(struct ts_recorder *recorder, struct ts_target *added)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];

		if (!target->superseded && replaces(added, target))
			ts_target_supersede(target);
		if (!added->superseded && replaces(target, added))
			ts_target_supersede(added);
	}
}

/* Opens a pidfd and makes sure that it refers to the right process. */
static void watch_process(struct ts_recorder *recorder, struct ts_target *target)
{
	if (target->dead || !target->pid)
		return;
	target->pidfd = (int)syscall(SYS_pidfd_open, target->pid, 0);
	if (target->pidfd >= 0 && ts_recorder_watch(recorder, target->pidfd, &target->dead)) {
		close(target->pidfd);
		target->pidfd = -1;
	}
	if (!ts_process_lives(target->pid, target->start_time))
		target->dead = true;
}

struct resume_context {
	struct ts_area *area;
};

static void resume_ring(void *context, uint32_t ring, uint64_t position, uint64_t events,
			uint64_t dropped)
{
	struct resume_context *resume = context;

	ts_area_resume_ring(resume->area, ring, position, events, dropped);
}

/* True if the journal knows the area: draining then continues where it stopped. */
static bool resume_positions(struct ts_recorder *recorder, struct ts_target *target)
{
	struct resume_context resume = { .area = target->area };
	uint64_t dictionary = 0;

	if (!recorder->options.resume ||
	    !ts_recording_positions(recorder->recording, target->area_id, &dictionary, resume_ring,
				    &resume))
		return false;
	ts_area_resume_dictionary(target->area, dictionary);
	return true;
}

static int announce(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err)
{
	struct ts_block_area block = { .pid = (uint64_t)target->pid,
				       .parent = (uint64_t)target->parent,
				       .seen_counter = ts_clocks_now(&recorder->clocks) };
	int rc;

	block.control = *ts_area_control(target->area);
	block.control.rank = ts_ranks_choose(recorder, &block.control.rank);
	if (recorder->options.redact) {
		memset(block.control.command, 0, sizeof(block.control.command));
		memset(block.control.output, 0, sizeof(block.control.output));
	}
	rc = ts_recorder_append(recorder, TS_BLOCK_AREA, target->area_id, &block, sizeof(block),
				err);
	target->announced = !rc;
	return rc;
}

bool ts_target_has_stopped(const struct ts_recorder *recorder, const struct ts_target *target)
{
	return recorder->options.area == target->area_id &&
	       ts_area_control(target->area)->target_state == TS_LIVE_STOPPED;
}

/*
 * What a process has stored before it was told to redact may have texts, which are not even for the
 * journal: the events are counted as lost.
 */
static int withhold_earlier(struct ts_recorder *recorder, struct ts_target *target, bool hides,
			    struct ts_error *err)
{
	int rc = hides ? ts_recorder_drain(recorder, target, TS_DRAIN_DISCARD | TS_DRAIN_WITHHOLD,
					   err)
		       : TS_OK;

	return rc == TS_ENOSPC ? TS_OK : rc;
}

/* Registers as the recorder of the target and switches it to streaming. */
static int take_hold(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err)
{
	const struct ts_live_control *control = ts_area_control(target->area);
	bool known = resume_positions(recorder, target);
	bool hides = recorder->options.redact && !control->redact && !known && !target->is_self;
	int rc = TS_OK;

	if (!target->dead) {
		TS_TARGET_SET(target, recorder_start, recorder->self_start);
		TS_TARGET_SET(target, recorder_pid, recorder->self);
		ts_target_tell_space(recorder, target);
		TS_TARGET_SET(target, heartbeat, recorder->now_ns);
		TS_TARGET_SET(target, redact, recorder->options.redact || control->always_redact);
	}
	if (known)
		target->announced = true;
	else
		rc = announce(recorder, target, err);
	target->takes_over = !known && !target->dead;
	if (rc && rc != TS_ENOSPC)
		return rc;
	if (target->dead || target->superseded || ts_target_has_stopped(recorder, target))
		return withhold_earlier(recorder, target, hides, err);
	if (target->is_self)
		target->implied =
			true; /* only sampled inside of windows, so there is nothing to filter */
	else
		rc = ts_windows_attach(recorder, target, known, err);
	TS_TARGET_SET(target, mode, TS_LIVE_STREAM);
	return rc ? rc : withhold_earlier(recorder, target, hides, err);
}

static void free_target(struct ts_target *target)
{
	if (!target)
		return;
	ts_area_close(target->area);
	if (target->pidfd >= 0)
		close(target->pidfd);
	free(target);
}

static struct ts_target *new_target(struct ts_recorder *recorder,
				    struct ts_live_directory *directory,
				    const struct ts_area_info *info, struct ts_area *area)
{
	const struct ts_live_control *control = ts_area_control(area);
	struct ts_target *target = calloc(1, sizeof(*target));

	if (!target)
		return NULL;
	*target = (struct ts_target){
		.area = area,
		.area_id = control->area_id,
		.image = control->image,
		.directory = directory->fd,
		.owner = info->owner,
		.device = info->device,
		.inode = info->inode,
		.created_ns = control->created.monotonic_ns,
		.pid = info->pid,
		.parent = info->pid ? ts_process_parent(info->pid) : 0,
		.pidfd = -1,
		.is_self = control->role == TS_LIVE_RECORDER && info->pid == recorder->self,
		.of_session = ts_targets_of_session(recorder, control),
		.superseded = info->superseded,
		.was_enabled = (control->enabled & TS_LIVE_ENABLED) != 0,
		.serial = control->window_serial,
		.beat_ns = recorder->now_ns,
	};
	/* It may have exited since it was listed. */
	target->dead = info->pid ? !ts_process_exists(info->pid, &target->start_time)
				 : !info->unknown;
	return target;
}

/* The process that made the area, in this pid namespace, even if it has exited; 0: not known. */
static pid_t maker_of(const struct ts_recorder *recorder, const struct ts_area_info *info)
{
	if (info->pid)
		return info->pid;
	return info->control.pid_namespace == recorder->self_namespace ? (pid_t)info->control.pid
								       : 0;
}

/*
 * The followed process that owns the area. A dead one is identified by what its area says, if the
 * area's owner may say that; one that had exited before its first check has no start time.
 */
static struct ts_child *child_of(struct ts_recorder *recorder, const struct ts_area_info *info)
{
	pid_t pid = maker_of(recorder, info);
	struct ts_child *child = pid ? ts_children_find(recorder, pid) : NULL;

	if (!child || info->pid)
		return child;
	if (child->start_time && child->start_time != info->control.start_time)
		return NULL;
	return info->owner == child->user || info->owner == 0 ? child : NULL;
}

/* A process that is found only after its area has gone is still known to be traced. */
static void note_traced(struct ts_recorder *recorder, const struct ts_target *target,
			const struct ts_area_info *info)
{
	pid_t pid = maker_of(recorder, info);
	uint64_t start_time = target->start_time ? target->start_time : info->control.start_time;
	uint64_t *created_ns =
		pid ? ts_pairmap_insert(&recorder->traced, (uint64_t)pid, start_time, NULL) : NULL;

	if (created_ns)
		*created_ns = TS_MAX(*created_ns, (uint64_t)target->created_ns);
}

int ts_targets_attach(struct ts_recorder *recorder, struct ts_live_directory *directory,
		      const struct ts_area_info *info, struct ts_error *err)
{
	TS_AUTO(ts_area) area = NULL;
	struct ts_error why = { 0 };
	struct ts_target *target;
	struct ts_child *child;
	int rc = ts_area_open(&area, directory->fd, info->name, true, &why);

	if (!rc)
		rc = ts_area_lock(area, &why);
	if (rc == TS_ENOMEM)
		return ts_error_set(err, rc, "%s", why.message);
	if (rc == TS_ENOTFOUND)
		return TS_OK; /* removed meanwhile */
	if (rc) {
		pid_t other = area ? ts_targets_other_recorder(recorder, info) : 0;

		if (!ts_targets_note_once(recorder, info->control.area_id))
			return TS_OK;
		if (other)
			ts_recorder_note(
				recorder,
				"process %d is already being recorded by process %d: stop that "
				"recorder first",
				(int)info->control.pid, (int)other);
		else
			ts_recorder_note(recorder, "process %d cannot be recorded: %s",
					 (int)info->control.pid, why.message);
		return TS_OK;
	}
	if (ts_grow_array((void **)&recorder->targets, &recorder->target_capacity,
			  recorder->target_count + 1, sizeof(struct ts_target *)))
		return ts_error_set(err, TS_ENOMEM, "no memory for another process");
	target = new_target(recorder, directory, info, area);
	if (!target)
		return ts_error_set(err, TS_ENOMEM, "no memory for another process");
	TS_STEAL(area);
	child = child_of(recorder, info);
	recorder->has_traced |= ts_area_control(target->area)->role == TS_LIVE_PROGRAM;
	ts_map_put(&recorder->seen, target->area_id,
		   (uint64_t)(target->pid ? target->pid : (pid_t)info->control.pid));
	note_traced(recorder, target, info);
	if (child) {
		child->has_area = child->had_area = true;
		target->was_pid = child->pid;
		child->area_ns = TS_MAX(child->area_ns, info->control.created.monotonic_ns);
	}
	recorder->targets[recorder->target_count++] = target;
	watch_process(recorder, target);
	supersede(recorder, target);
	return take_hold(recorder, target, err);
}

/* ---- detaching ---- */

void ts_targets_check(struct ts_recorder *recorder)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];

		if (target->dead || target->pidfd >= 0 || !target->pid ||
		    recorder->now_ns - target->looked_ns < LOOK_NS)
			continue;
		target->looked_ns = recorder->now_ns;
		target->dead = !ts_process_lives(target->pid, target->start_time);
	}
}

static int write_end(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err)
{
	const struct ts_live_control *control = ts_area_control(target->area);
	const struct ts_child *child = ts_children_of(recorder, target);
	struct ts_block_end block = { .ended_counter = ts_clocks_now(&recorder->clocks),
				      .exit_status = TS_ABSENT,
				      .lost_nested = control->lost_nested,
				      .lost_no_ring = control->lost_no_ring,
				      .lost_first = control->lost_first,
				      .strings_cut = control->strings_cut,
				      .target_state = control->target_state };

	static_assert(sizeof(block.message) == sizeof(control->message), "the same text");
	memcpy(block.message, control->message, sizeof(block.message));
	if (target->superseded)
		block.reason = 1;
	else if (!target->dead)
		block.reason = target->damaged ? 3 : 2;
	if (target->dead && !target->superseded && child && child->exited)
		block.exit_status = child->status;
	return ts_recorder_append(recorder, TS_BLOCK_END, target->area_id, &block, sizeof(block),
				  err);
}

/* Drains the last events; only counts them if there is no space. */
static int drain_last(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err)
{
	bool gone = target->dead || target->superseded;
	unsigned int flags = gone ? TS_DRAIN_FINAL : 0;
	int rc;

	if (target->damaged)
		return TS_OK;
	/* Refresh the loss counters, too. If that fails, the target ends in the state last seen. */
	if (ts_area_refresh(target->area, NULL)) {
		target->damaged = true;
		return TS_OK;
	}
	if (!recorder->full && !recorder->limited) {
		do {
			rc = ts_recorder_drain(recorder, target, flags, err);
		} while (rc == TS_ENOSPC && recorder->finishing && !recorder->full &&
			 !ts_saves_make_space(recorder, err));
		if (rc != TS_ENOSPC || !recorder->finishing)
			return rc;
	}
	return ts_recorder_drain(recorder, target, flags | TS_DRAIN_DISCARD, err);
}

int ts_targets_end(struct ts_recorder *recorder, struct ts_target *target, struct ts_error *err)
{
	int rc = TS_OK;

	if (target->ended)
		return TS_OK;
	if (!target->announced)
		rc = announce(recorder, target, err);
	if (!rc)
		rc = drain_last(recorder, target, err);
	if (!rc && target->open) {
		ts_windows_stop(recorder, target, "end");
		rc = ts_windows_settle(recorder, target, err);
	}
	if (!rc)
		rc = write_end(recorder, target, err);
	if (rc)
		return rc;
	if (!target->dead && !target->superseded)
		ts_targets_leave(recorder, target);
	target->ended = true;
	return TS_OK;
}

void ts_targets_leave(struct ts_recorder *recorder, struct ts_target *target)
{
	if (target->of_session) {
		TS_TARGET_SET(target, enabled, 0);
	} else {
		TS_TARGET_SET(target, step_open, TS_ABSENT);
		TS_TARGET_SET(target, step_close, TS_ABSENT);
		TS_TARGET_SET(target, max_steps, 0);
		TS_TARGET_SET(target, mode, TS_LIVE_FLIGHT);
		TS_TARGET_SET(target, enabled, target->was_enabled || recorder->options.resume);
		ts_sampled_leave(target, &recorder->metrics.pace);
		ts_sampled_leave(target, &recorder->python.pace);
	}
	TS_TARGET_SET(target, flush_done, ts_area_control(target->area)->flush_request);
	TS_TARGET_SET(target, recorder_pid, 0);
}

void ts_targets_sweep(struct ts_recorder *recorder)
{
	size_t kept = 0;

	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];

		/* A successor would need the bytes that are not yet committed. */
		if (!target->ended ||
		    (recorder->recording && ts_spools_holds(recorder->spools, target->area_id))) {
			recorder->targets[kept++] = target;
			continue;
		}
		if (target->dead || target->superseded || target->is_self)
			ts_area_remove(target->directory, ts_area_name(target->area),
				       target->area_id);
		free_target(target);
	}
	recorder->target_count = kept;
}

void ts_targets_close(struct ts_recorder *recorder)
{
	for (size_t i = 0; i < recorder->target_count; i++) {
		struct ts_target *target = recorder->targets[i];

		if (!target->dead && !target->superseded && !target->ended)
			ts_targets_leave(recorder, target);
		free_target(target);
	}
	for (size_t i = 0; i < recorder->directory_count; i++) {
		ts_areas_clean(recorder->directories[i].fd, KEEP_AREAS, NULL, NULL);
		close(recorder->directories[i].fd);
	}
	free(recorder->targets);
	free(recorder->directories);
}
