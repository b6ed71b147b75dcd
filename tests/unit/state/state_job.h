/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of several ranks with clock offsets chosen by the test: collectives happen at true times,
 * each rank records them by its own clock, and the loader reads the result.
 */
#ifndef TS_TESTS_UNIT_STATE_STATE_JOB_H
#define TS_TESTS_UNIT_STATE_STATE_JOB_H

#include "state/clocks/clock_alignment.h"
#include "state/collectives/collectives.h"
#include "unit/state/work/work_support.h"

#define JOB_RANKS 8
#define JOB_START INT64_C(1700000000000000000)

struct job_clock {
	int64_t skew_ns; /* its reading at the job's start, relative to true time */
	double drift;    /* ns per ns */
};

/* A collective on one rank; absent: not on this rank. */
struct job_event {
	int64_t start, end; /* true times */
	bool absent;
};

struct job_collective {
	const char *name;
	uint32_t group; /* 0: not in the trace; otherwise its name */
	int64_t sequence;
	int64_t elements;
	struct job_event ranks[JOB_RANKS];
};

struct job {
	uint32_t rank_count;
	struct job_clock clocks[JOB_RANKS];
	struct job_collective *collectives;
	size_t count, capacity;
	bool numbered;    /* the trace has sequence numbers */
	int64_t round_ns; /* times are multiples of this */
	uint64_t random;

	struct loaded loaded;
	struct ts_work *work;
	struct ts_collectives *matched;
	struct ts_clock_alignment *estimated;
};

/* Below `limit`, the same in each run. */
static inline int64_t job_random(struct job *job, int64_t limit)
{
	job->random = job->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int64_t)((job->random >> 16) % (uint64_t)limit);
}

static inline int64_t job_read_clock(const struct job *job, uint32_t rank, int64_t time)
{
	const struct job_clock *clock = &job->clocks[rank];
	int64_t reading = time + clock->skew_ns +
			  (int64_t)(clock->drift * (double)(time - JOB_START));

	return job->round_ns ? reading - reading % job->round_ns : reading;
}

/* The reading of rank 0's clock when that of `rank` read `reading`. */
static inline int64_t job_reference(const struct job *job, uint32_t rank, int64_t reading)
{
	const struct job_clock *clock = &job->clocks[rank];
	double since = (double)(reading - JOB_START - clock->skew_ns) / (1 + clock->drift);

	return job_read_clock(job, 0, JOB_START + (int64_t)since);
}

static inline struct job_collective *job_add(struct job *job, const char *name)
{
	if (job->count == job->capacity) {
		job->capacity = job->capacity * 2 + 64;
		job->collectives =
			realloc(job->collectives, job->capacity * sizeof(*job->collectives));
		TS_CHECK(job->collectives);
	}
	job->collectives[job->count] = (struct job_collective){ .name = name };
	return &job->collectives[job->count++];
}

/*
 * `count` collectives, `pause_ns` apart on average: ranks arrive within `jitter_ns` of each other,
 * and leave within `noise_ns` after the last one has arrived and the work is done.
 */
static inline void job_fill(struct job *job, size_t count, int64_t pause_ns, int64_t jitter_ns,
			    int64_t noise_ns)
{
	static const char *const names[] = {
		"ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclWork*)",
		"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclWork*)",
		"ncclDevKernel_AllGather_RING_LL(ncclWork*)"
	};
	int64_t time = JOB_START;

	for (size_t i = 0; i < count; i++) {
		struct job_collective *collective = job_add(job, names[i % 3 == 2 ? i % 5 % 3 : 0]);
		int64_t last = 0, done;

		time += pause_ns / 2 + job_random(job, pause_ns);
		for (uint32_t r = 0; r < job->rank_count; r++) {
			collective->ranks[r].start = time + job_random(job, jitter_ns + 1);
			last = last > collective->ranks[r].start ? last
								 : collective->ranks[r].start;
		}
		done = last + 50000 + job_random(job, 50000);
		for (uint32_t r = 0; r < job->rank_count; r++)
			collective->ranks[r].end = done + job_random(job, noise_ns + 1);
		collective->sequence = (int64_t)i;
		collective->elements = 1 << i % 7;
		time = done;
	}
}

/* ---- as a trace ---- */

static inline uint32_t job_string(struct ts_writer *writer, const char *text)
{
	return ts_writer_string(writer, text, strlen(text));
}

static inline uint32_t job_shape(struct ts_writer *writer, bool numbered)
{
	struct ts_field fields[] = {
		{ .key = job_string(writer, "Process Group Name"), .type = TS_ARG_STRING },
		{ .key = job_string(writer, "Collective name"), .type = TS_ARG_STRING },
		{ .key = job_string(writer, "In msg nelems"), .type = TS_ARG_INT },
		{ .key = job_string(writer, "Group size"), .type = TS_ARG_INT },
		{ .key = job_string(writer, "Seq"), .type = TS_ARG_INT },
	};

	return ts_writer_shape(writer, fields, numbered ? 5 : 4);
}

static inline void job_write_event(const struct job *job, struct ts_writer *writer, uint32_t rank,
				   const struct job_collective *collective, int64_t device,
				   int64_t stream)
{
	const struct job_event *event = &collective->ranks[rank];
	struct ts_gpu_op_row row = ts_gpu_op_none;
	char group[16];
	int64_t values[5];

	row.start = job_read_clock(job, rank, event->start);
	row.duration = job_read_clock(job, rank, event->end) - row.start;
	row.device = device;
	row.stream = stream;
	row.kind = collective->group ? TS_GPU_OP_COLLECTIVE : TS_GPU_OP_KERNEL;
	row.name = job_string(writer, collective->name);
	if (collective->group) {
		snprintf(group, sizeof(group), "%u", collective->group);
		row.shape = job_shape(writer, job->numbered);
		values[0] = job_string(writer, group);
		values[1] = job_string(writer, "allreduce");
		values[2] = collective->elements;
		values[3] = job->rank_count;
		values[4] = collective->sequence;
	}
	TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_GPU_OP, &row, row.shape ? values : NULL), 0);
}

static inline void job_write_rank(const struct job *job, struct ts_writer *writer, uint32_t rank)
{
	struct ts_source_row source = ts_source_none;
	struct ts_device_row device = ts_device_none;
	struct ts_stream_row stream = ts_stream_none;

	source.id = ts_writer_new_id(writer, TS_TABLE_SOURCE);
	source.rank = rank;
	source.world_size = job->rank_count;
	source.clock = source.id;
	TS_CHECK_INT(ts_writer_add(writer, TS_TABLE_SOURCE, &source, NULL), 0);
	device.id = ts_writer_new_id(writer, TS_TABLE_DEVICE);
	device.source = source.id;
	device.number = rank;
	ts_writer_add(writer, TS_TABLE_DEVICE, &device, NULL);
	stream.id = ts_writer_new_id(writer, TS_TABLE_STREAM);
	stream.device = device.id;
	stream.number = 24;
	ts_writer_add(writer, TS_TABLE_STREAM, &stream, NULL);
	ts_writer_set_clock(writer, (uint32_t)source.clock);
	for (size_t i = 0; i < job->count; i++)
		if (!job->collectives[i].ranks[rank].absent)
			job_write_event(job, writer, rank, &job->collectives[i], device.id,
					stream.id);
}

/* Writes, reads and estimates. The last rank comes first in the file: order must not matter. */
static inline void job_run(struct job *job)
{
	struct ts_work_options options = TS_WORK_OPTIONS_NONE;
	char path[] = "/tmp/tracesmith-job-XXXXXX";
	struct ts_writer *writer = begin_trace(path);
	struct ts_error err;

	for (uint32_t r = job->rank_count; r-- > 0;)
		job_write_rank(job, writer, r);
	job->loaded.readers[job->loaded.count++] = end_trace(writer, path);
	options.load_flags = TS_WORK_DETAILS;
	load_readers(&job->loaded, &options);
	job->work = job->loaded.work;
	TS_CHECK_INT(job->work->rank_count, job->rank_count);
	TS_CHECK_INT(ts_collectives_new(&job->matched, job->work, &err), 0);
	TS_CHECK_INT(ts_clock_alignment_new(&job->estimated, job->work, job->matched, &err), 0);
}

static inline void job_release(struct job *job)
{
	ts_clock_alignment_free(job->estimated);
	ts_collectives_free(job->matched);
	unload(&job->loaded);
	free(job->collectives);
}

#endif
