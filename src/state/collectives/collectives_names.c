/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses names of collectives: "ncclDevKernel_AllReduce_Sum_f16_RING_LL(...)" is the same operation
 * as "ncclDevKernel_AllReduce_Sum_f16_TREE_LL(...)", and "all_reduce" is "allreduce".
 */
#include "state/collectives/collectives_internal.h"

#include <string.h>

#include "base/local/hash.h"
#include "base/memory.h"

#define LONGEST 128

/* Parts of kernel names that name the algorithm, protocol or library, not the operation. */
static const char *const algorithms[] = { "ring",   "tree",    "ll",           "ll128",
					  "simple", "collnet", "collnetchain", "collnetdirect",
					  "nvls",   "chain",   "nvlstree",     "pat",
					  "direct", "kernel",  "symk",         "symkdevkernel" };

static const char *const libraries[] = { "nccl", "rccl", "hccl", "oneccl", "xccl", "mscclpp" };

struct operation {
	const char *keyword;
	bool together, sized, pair;
};

/* The first one that the name contains wins. */
static const struct operation operations[] = {
	{ .keyword = "allreduce", .together = true, .sized = true },
	{ .keyword = "reducescatter", .together = true },
	{ .keyword = "allgather", .together = true },
	{ .keyword = "alltoall", .together = true },
	{ .keyword = "barrier", .together = true },
	{ .keyword = "sendrecv" }, /* also used to implement all-to-all */
	{ .keyword = "broadcast", .sized = true },
	{ .keyword = "gather" },
	{ .keyword = "scatter" },
	{ .keyword = "reduce", .sized = true },
	{ .keyword = "send", .pair = true },
	{ .keyword = "recv", .pair = true },
	{ .keyword = "receive", .pair = true },
};

struct normal {
	char text[LONGEST];
	size_t length;
};

static bool is_one_of(const char *const *names, size_t count, const char *text, size_t length,
		      bool is_prefix)
{
	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(names[i]);

		if ((is_prefix ? size <= length : size == length) && !memcmp(names[i], text, size))
			return true;
	}
	return false;
}

/* The operation that a run of letters names; NULL: none. */
static const struct operation *find_operation(const char *text, size_t length)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(operations); i++)
		if (memmem(text, length, operations[i].keyword, strlen(operations[i].keyword)))
			return &operations[i];
	return NULL;
}

/* Drops the word that starts at `from` unless it is part of the operation. */
static void end_word(struct normal *normal, size_t from)
{
	char *keyword = normal->text + from;
	size_t length = normal->length - from;
	const struct operation *operation = find_operation(keyword, length);

	if (operation) {
		memcpy(keyword, operation->keyword, strlen(operation->keyword));
		normal->length = from + strlen(operation->keyword);
	} else if (is_one_of(algorithms, TS_ARRAY_SIZE(algorithms), keyword, length, false) ||
		   is_one_of(libraries, TS_ARRAY_SIZE(libraries), keyword, length, true)) {
		normal->length = from;
	}
}

/* Lower case, without arguments, separators and algorithm names. */
static void normalise(struct normal *normal, const char *name, size_t length)
{
	size_t from = 0;

	normal->length = 0;
	for (size_t i = 0; i < length && name[i] != '(' && name[i] != '<'; i++) {
		char c = name[i];

		if (c == '_' || c == ':' || c == ' ' || c == '-' || c == '.') {
			end_word(normal, from);
			from = normal->length;
		} else if (normal->length < LONGEST) {
			normal->text[normal->length++] =
				(char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
		}
	}
	end_word(normal, from);
}

void ts_collective_name(const char *name, size_t length, struct ts_collective_name *ret_name)
{
	const struct operation *operation;
	struct normal normal;

	normalise(&normal, name, length);
	*ret_name = (struct ts_collective_name){ .token = ts_hash64(normal.text, normal.length) };
	operation = find_operation(normal.text, normal.length);
	if (operation) {
		ret_name->together = operation->together;
		ret_name->sized = operation->sized;
		ret_name->pair = operation->pair;
	}
}
