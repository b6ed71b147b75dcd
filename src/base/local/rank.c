/* SPDX-License-Identifier: Apache-2.0 */
/* The launchers of distributed jobs, and the variables by which each tells a process its rank. */
#include "base/local/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/local/macros.h"

#define MOST_RANK 100000000

/* A variable that is not set is unknown; NULL: the launcher has none for this. */
struct launcher {
	const char *rank, *world_size, *local_rank;
	const char *other_size; /* the size, if `world_size` is not set */
	/* Must be set, and below its limit: the others are also set where there are no ranks. */
	const char *step;
};

/*
 * Frameworks come before what starts them: torchrun under srun has ranks of its own. Launchers come
 * before resource managers: in a batch script, SLURM_PROCID is 0 for all that mpirun starts. The
 * number of a launcher is in live areas and journals: append only.
 */
static const struct launcher launchers[] = {
	/* torchrun, and all that follow torch.distributed's convention: accelerate, deepspeed */
	{ .rank = "RANK", .world_size = "WORLD_SIZE", .local_rank = "LOCAL_RANK" },
	/* Horovod */
	{ .rank = "HOROVOD_RANK",
	  .world_size = "HOROVOD_SIZE",
	  .local_rank = "HOROVOD_LOCAL_RANK" },
	/* Open MPI */
	{ .rank = "OMPI_COMM_WORLD_RANK",
	  .world_size = "OMPI_COMM_WORLD_SIZE",
	  .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK" },
	/* MVAPICH2 */
	{ .rank = "MV2_COMM_WORLD_RANK",
	  .world_size = "MV2_COMM_WORLD_SIZE",
	  .local_rank = "MV2_COMM_WORLD_LOCAL_RANK" },
	/* MPICH, Intel MPI, and others with a PMI */
	{ .rank = "PMI_RANK", .world_size = "PMI_SIZE", .local_rank = "MPI_LOCALRANKID" },
	/* PMIx, such as PRRTE's prun */
	{ .rank = "PMIX_RANK", .local_rank = "PMIX_LOCAL_RANK" },
	/* IBM's jsrun */
	{ .rank = "JSM_NAMESPACE_RANK",
	  .world_size = "JSM_NAMESPACE_SIZE",
	  .local_rank = "JSM_NAMESPACE_LOCAL_RANK" },
	/* HPE's PALS */
	{ .rank = "PALS_RANKID", .local_rank = "PALS_LOCAL_RANKID" },
	/* Flux */
	{ .rank = "FLUX_TASK_RANK",
	  .world_size = "FLUX_JOB_SIZE",
	  .local_rank = "FLUX_TASK_LOCAL_ID" },
	/* Slurm: a task of a step. A batch script has SLURM_PROCID, too, but no step. */
	{ .rank = "SLURM_PROCID",
	  .world_size = "SLURM_STEP_NUM_TASKS",
	  .local_rank = "SLURM_LOCALID",
	  .other_size = "SLURM_NTASKS",
	  .step = "SLURM_STEP_ID" },
};

/* Steps from here on are not srun's: a batch script, an interactive shell, the allocation. */
#define FIRST_SPECIAL_STEP UINT64_C(0xfffffff0)

/* -1: not a number, or too large for a rank. */
static int32_t parse(const char *text)
{
	int64_t value = 0;

	if (!text || !*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value >= MOST_RANK)
			return -1;
		value = value * 10 + (*text - '0');
	}
	return value < MOST_RANK ? (int32_t)value : -1;
}

static int32_t ask(const char *name, ts_rank_get *get, void *context)
{
	return name ? parse(get(context, name)) : -1;
}

/* True if it is the step of a job, or no step is needed. */
static bool is_step(const struct launcher *launcher, ts_rank_get *get, void *context)
{
	const char *text = launcher->step ? get(context, launcher->step) : "0";
	uint64_t step = 0;

	if (!text || !*text)
		return false;
	for (; *text >= '0' && *text <= '9' && step < FIRST_SPECIAL_STEP; text++)
		step = step * 10 + (uint64_t)(*text - '0');
	return !*text && step < FIRST_SPECIAL_STEP;
}

bool ts_rank_find(struct ts_rank *ret_rank, ts_rank_get *get, void *context)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(launchers); i++) {
		const struct launcher *launcher = &launchers[i];
		int32_t rank = ask(launcher->rank, get, context), size;

		if (rank < 0 || !is_step(launcher, get, context))
			continue;
		size = ask(launcher->world_size, get, context);
		if (size < 0)
			size = ask(launcher->other_size, get, context);
		*ret_rank = (struct ts_rank){
			.launcher = (uint32_t)i + 1,
			.rank = rank,
			.local_rank = ask(launcher->local_rank, get, context),
			/* Left over from something else. */
			.world_size = size > rank ? size : -1,
		};
		return true;
	}
	*ret_rank = (struct ts_rank){ 0, -1, -1, -1 };
	return false;
}

static const char *get_own(void *context, const char *name)
{
	(void)context;
	return getenv(name);
}

bool ts_rank_of_self(struct ts_rank *ret_rank)
{
	return ts_rank_find(ret_rank, get_own, NULL);
}

struct block {
	const char *text;
	size_t bytes;
	char value[24]; /* longer ones are no numbers */
};

static const char *get_from_block(void *context, const char *name)
{
	struct block *block = context;
	size_t length = strlen(name), size;

	for (size_t at = 0; at < block->bytes; at += size + 1) {
		const char *variable = block->text + at;

		size = strnlen(variable, block->bytes - at);
		if (size <= length || variable[length] != '=' ||
		    memcmp(variable, name, length) != 0)
			continue;
		variable += length + 1;
		length = size - length - 1;
		if (length >= sizeof(block->value))
			return "";
		memcpy(block->value, variable, length);
		block->value[length] = '\0';
		return block->value;
	}
	return NULL;
}

bool ts_rank_of_environment(struct ts_rank *ret_rank, const char *environment, size_t bytes)
{
	struct block block = { .text = environment, .bytes = bytes };

	return ts_rank_find(ret_rank, get_from_block, &block);
}

bool ts_rank_is_valid(const struct ts_rank *rank)
{
	return rank->launcher && rank->rank >= 0 && rank->rank < MOST_RANK &&
	       (rank->world_size == -1 ||
		(rank->world_size > rank->rank && rank->world_size < MOST_RANK)) &&
	       rank->local_rank >= -1 && rank->local_rank < MOST_RANK;
}

bool ts_rank_equals(const struct ts_rank *one, const struct ts_rank *other)
{
	return one->launcher == other->launcher &&
	       (!one->launcher ||
		(one->rank == other->rank && one->world_size == other->world_size));
}

void ts_rank_list_variables(char *to, size_t bytes)
{
	size_t used = 0;

	to[0] = '\0';
	for (size_t i = 0; i < TS_ARRAY_SIZE(launchers) && used < bytes; i++)
		used += (size_t)snprintf(to + used, bytes - used, "%s%s", i ? ", " : "",
					 launchers[i].rank);
}
