/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rank of a process in a distributed job, as its launcher says it in the environment
 * (docs/ranks.md). Allocates nothing; any thread may call this.
 */
#ifndef TS_BASE_LOCAL_RANK_H
#define TS_BASE_LOCAL_RANK_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Part of live areas and journals (docs/live.md): a rank is known if `launcher` is not 0. */
struct ts_rank {
	uint32_t launcher; /* whose variables said so: a number of the table, from 1 */
	int32_t rank;
	int32_t local_rank; /* among the processes of this machine; -1: unknown */
	int32_t world_size; /* number of ranks; -1: unknown */
};
static_assert(sizeof(struct ts_rank) == 16, "live.md, section 2.1");

/* Returns the value of a variable; NULL: it is not set. */
typedef const char *ts_rank_get(void *context, const char *name);

/* Asks `get` for the variables of each launcher. False: none of them says a rank. */
bool ts_rank_find(struct ts_rank *ret_rank, ts_rank_get *get, void *context);

/* The same for this process. */
bool ts_rank_of_self(struct ts_rank *ret_rank);

/* The same for an environment as /proc/PID/environ has it: NAME=VALUE, each terminated by NUL. */
bool ts_rank_of_environment(struct ts_rank *ret_rank, const char *environment, size_t bytes);

/* True for a rank that a launcher can have said: files may contain anything. */
bool ts_rank_is_valid(const struct ts_rank *rank);

/* True if both are the same rank of the same job. */
bool ts_rank_equals(const struct ts_rank *one, const struct ts_rank *other);

/* The variables that hold a rank, in the order in which they are read: "RANK, PMI_RANK". */
void ts_rank_list_variables(char *to, size_t bytes);

#endif
