/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as launchers say them, in environments of /proc/PID/environ. */
#include "base/local/rank.h"

#include <stdlib.h>
#include <string.h>

#include "unit/runner.h"

/* An environment as a text: lines become terminated variables. */
static bool find(struct ts_rank *rank, const char *lines)
{
	static char block[1024];
	size_t bytes = strlen(lines);

	TS_CHECK(bytes < sizeof(block));
	for (size_t i = 0; i <= bytes; i++)
		block[i] = lines[i] == '\n' ? '\0' : lines[i];
	return ts_rank_of_environment(rank, block, bytes);
}

static void check(const char *lines, int rank, int world_size, int local_rank)
{
	struct ts_rank found;

	TS_CHECK(find(&found, lines));
	TS_CHECK(ts_rank_is_valid(&found));
	TS_CHECK_INT(found.rank, rank);
	TS_CHECK_INT(found.world_size, world_size);
	TS_CHECK_INT(found.local_rank, local_rank);
}

static void check_none(const char *lines)
{
	struct ts_rank found;

	TS_CHECK(!find(&found, lines));
	TS_CHECK(!ts_rank_is_valid(&found));
	TS_CHECK_INT(found.launcher, 0);
}

TS_TEST(each_launcher_is_known)
{
	check("RANK=3\nWORLD_SIZE=8\nLOCAL_RANK=1\n", 3, 8, 1);
	check("HOROVOD_RANK=1\nHOROVOD_SIZE=2\nHOROVOD_LOCAL_RANK=0\n", 1, 2, 0);
	check("OMPI_COMM_WORLD_RANK=1\nOMPI_COMM_WORLD_SIZE=4\nOMPI_COMM_WORLD_LOCAL_RANK=1\n"
	      "PMIX_RANK=1\n",
	      1, 4, 1);
	check("MV2_COMM_WORLD_RANK=0\nMV2_COMM_WORLD_SIZE=2\nMV2_COMM_WORLD_LOCAL_RANK=0\n", 0, 2,
	      0);
	check("PMI_RANK=5\nPMI_SIZE=6\nMPI_LOCALRANKID=2\n", 5, 6, 2);
	check("PMIX_RANK=7\n", 7, -1, -1);
	check("JSM_NAMESPACE_RANK=2\nJSM_NAMESPACE_SIZE=3\nJSM_NAMESPACE_LOCAL_RANK=2\n", 2, 3, 2);
	check("PALS_RANKID=4\nPALS_LOCAL_RANKID=0\n", 4, -1, 0);
	check("FLUX_TASK_RANK=1\nFLUX_JOB_SIZE=2\nFLUX_TASK_LOCAL_ID=1\n", 1, 2, 1);
	check("SLURM_STEP_ID=0\nSLURM_PROCID=9\nSLURM_STEP_NUM_TASKS=16\nSLURM_LOCALID=1\n", 9, 16,
	      1);
}

TS_TEST(slurm_counts_in_a_step_only)
{
	/* A batch script, an interactive step, the allocation. */
	check_none("SLURM_PROCID=0\nSLURM_NTASKS=8\nSLURM_LOCALID=0\n");
	check_none("SLURM_STEP_ID=4294967290\nSLURM_PROCID=0\nSLURM_NTASKS=8\n");
	check_none("SLURM_STEP_ID=4294967291\nSLURM_PROCID=0\n");
	check_none("SLURM_STEP_ID=batch\nSLURM_PROCID=0\n");
	check_none("SLURM_STEP_ID=\nSLURM_PROCID=0\n");
	/* Without its own size, a step has that of the job. */
	check("SLURM_STEP_ID=12\nSLURM_PROCID=1\nSLURM_NTASKS=8\n", 1, 8, -1);
}

TS_TEST(the_nearest_launcher_counts)
{
	/* torchrun under srun; mpirun in a batch script. */
	check("SLURM_STEP_ID=0\nSLURM_PROCID=1\nSLURM_NTASKS=2\nRANK=5\nWORLD_SIZE=8\n", 5, 8, -1);
	check("SLURM_PROCID=0\nOMPI_COMM_WORLD_RANK=2\nOMPI_COMM_WORLD_SIZE=4\n", 2, 4, -1);
}

TS_TEST(only_numbers_are_ranks)
{
	check_none("");
	check_none("RANK=\n");
	check_none("RANK=-1\n");
	check_none("RANK=one\n");
	check_none("RANK=1x\n");
	check_none("RANK=100000000\n");
	check_none("RANK=99999999999999999999999999999\n");
	check_none("MY_RANK=1\nRANKS=2\nXRANK=3\nRANK\n");
	check("RANK=99999999\n", 99999999, -1, -1);
	/* The last variable may be cut off. */
	check("A=b\nRANK=1", 1, -1, -1);
	/* A size that the rank contradicts is of something else. */
	check("RANK=4\nWORLD_SIZE=4\nLOCAL_RANK=x\n", 4, -1, -1);
	check("RANK=0\nWORLD_SIZE=0\n", 0, -1, -1);
}

TS_TEST(own_environment)
{
	struct ts_rank rank;

	clearenv();
	TS_CHECK(!ts_rank_of_self(&rank));
	setenv("PMI_RANK", "2", 1);
	setenv("PMI_SIZE", "3", 1);
	TS_CHECK(ts_rank_of_self(&rank));
	TS_CHECK_INT(rank.rank, 2);
	TS_CHECK_INT(rank.world_size, 3);
}

TS_TEST(ranks_of_different_jobs_differ)
{
	struct ts_rank one, other;

	find(&one, "RANK=1\nWORLD_SIZE=2\nLOCAL_RANK=0\n");
	find(&other, "RANK=1\nWORLD_SIZE=2\n");
	TS_CHECK(ts_rank_equals(&one, &other));
	find(&other, "RANK=1\nWORLD_SIZE=3\n");
	TS_CHECK(!ts_rank_equals(&one, &other));
	find(&other, "PMI_RANK=1\nPMI_SIZE=2\n");
	TS_CHECK(!ts_rank_equals(&one, &other));
	find(&one, "");
	TS_CHECK(!ts_rank_equals(&one, &other));
	find(&other, "");
	TS_CHECK(ts_rank_equals(&one, &other));
}

TS_TEST(what_a_file_says_may_be_wrong)
{
	struct ts_rank rank = { .launcher = 1, .rank = 0, .local_rank = -1, .world_size = 1 };

	TS_CHECK(ts_rank_is_valid(&rank));
	rank.rank = 1;
	TS_CHECK(!ts_rank_is_valid(&rank));
	rank.rank = -1;
	TS_CHECK(!ts_rank_is_valid(&rank));
	rank.rank = INT32_MAX;
	rank.world_size = -1;
	TS_CHECK(!ts_rank_is_valid(&rank));
	rank = (struct ts_rank){ .launcher = 1, .local_rank = -2, .world_size = -1 };
	TS_CHECK(!ts_rank_is_valid(&rank));
}

TS_TEST(variables_are_listed)
{
	char text[320], small[10];

	ts_rank_list_variables(text, sizeof(text));
	TS_CHECK(strncmp(text, "RANK, ", 6) == 0);
	TS_CHECK(strstr(text, ", PMI_RANK, ") && strstr(text, ", SLURM_PROCID"));
	ts_rank_list_variables(small, sizeof(small));
	TS_CHECK_STR(small, "RANK, HOR");
}
