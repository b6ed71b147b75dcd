/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aligns the clocks of ranks with that of a reference rank. Each pair of clocks that share
 * collectives gets a line (clock_fit.c); a rank is linked to the reference by the chain of lines
 * with the smallest uncertainty.
 */
#include "state/clocks/clock_alignment.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "state/clocks/clock_alignment_internal.h"

#define UNCERTAINTY_LIMIT (INT64_C(1) << 62)
/* With this many hard samples, soft ones are ignored. */
#define ENOUGH_HARD 5

/* Two clocks that share collectives. */
struct pair {
	uint32_t first, second;    /* domains */
	struct ts_clock_line line; /* from the second clock to the first */
};

/* A clock: of one source, or of several sources of a trace. */
struct domain {
	int64_t from, to; /* of all its ranks */
	uint32_t first_rank;
	bool sampled;
	bool known;
	struct ts_clock_estimate estimate;
	uint32_t first_edge, edge_count;
};

/* A candidate path to a domain that has not been visited yet. */
struct path {
	int64_t uncertainty;
	uint32_t pair, to;
};

struct estimator {
	const struct ts_work *work;
	const struct ts_collectives *collectives;
	struct ts_clock_alignment *out;
	uint32_t *rank_domains;
	struct domain *domains;
	uint32_t domain_count;
	struct ts_clock_sample *samples;
	size_t sample_count, sample_capacity;
	struct pair *pairs;
	size_t pair_count, pair_capacity;
	uint32_t *edges;    /* pairs of each domain */
	struct path *paths; /* a heap */
	size_t path_count, path_capacity;
	int64_t resolution;
	struct ts_error *err;
};

static int no_memory(const struct estimator *e)
{
	ts_error_set(e->err, TS_ENOMEM, "no memory");
	return TS_ENOMEM;
}

/* ---- domains ---- */

static void extend_domain(struct domain *domain, const struct ts_work_rank *rank)
{
	if (rank->from > rank->to)
		return;
	domain->from = TS_MIN(domain->from, rank->from);
	domain->to = TS_MAX(domain->to, rank->to);
}

/* Ranks of one trace whose events use the same clock need no alignment. */
static int find_domains(struct estimator *e)
{
	struct ts_pairmap indices;
	int rc = TS_OK;

	ts_pairmap_init(&indices);
	for (uint32_t i = 0; i < e->work->rank_count && !rc; i++) {
		const struct ts_work_rank *rank = &e->work->ranks[i];
		bool is_new;
		uint64_t *slot = ts_pairmap_insert(&indices, rank->trace, rank->clock, &is_new);

		if (!slot) {
			rc = no_memory(e);
			break;
		}
		if (is_new) {
			*slot = e->domain_count;
			e->domains[e->domain_count++] = (struct domain){ .from = INT64_MAX,
									 .to = INT64_MIN,
									 .first_rank = i };
		}
		e->rank_domains[i] = (uint32_t)*slot;
		extend_domain(&e->domains[*slot], rank);
	}
	ts_pairmap_release(&indices);
	return rc;
}

/* ---- samples ---- */

static void note_resolution(struct estimator *e, const struct ts_work_command *command)
{
	if (command->start % 1000 || command->end % 1000)
		e->resolution = 1;
}

static int find_pair(struct estimator *e, struct ts_pairmap *indices, uint32_t first,
		     uint32_t second, uint32_t *ret_pair)
{
	bool is_new;
	uint64_t *slot = ts_pairmap_insert(indices, first, second, &is_new);

	if (!slot)
		return no_memory(e);
	if (is_new) {
		*slot = e->pair_count;
		if (ts_grow_array((void **)&e->pairs, &e->pair_capacity, e->pair_count + 1,
				  sizeof(*e->pairs)))
			return no_memory(e);
		e->pairs[e->pair_count++] = (struct pair){ .first = first, .second = second };
	}
	*ret_pair = (uint32_t)*slot;
	return TS_OK;
}

static int add_sample(struct estimator *e, struct ts_pairmap *indices,
		      const struct ts_work_command *a, const struct ts_work_command *b,
		      bool is_hard)
{
	uint32_t first = e->rank_domains[a->rank], second = e->rank_domains[b->rank];
	struct ts_clock_sample sample = { .time = b->end,
					  .apart = a->end - b->end,
					  .low = a->start - b->end,
					  .high = a->end - b->start,
					  .hard = is_hard };
	int rc;

	if (first == second)
		return TS_OK;
	rc = find_pair(e, indices, first, second, &sample.pair);
	if (rc)
		return rc;
	if (ts_grow_array((void **)&e->samples, &e->sample_capacity, e->sample_count + 1,
			  sizeof(sample)))
		return no_memory(e);
	e->samples[e->sample_count++] = sample;
	e->domains[first].sampled = e->domains[second].sampled = true;
	note_resolution(e, a);
	note_resolution(e, b);
	return TS_OK;
}

/* Compares all members with the first one: enough to link them, and linear in the members. */
static int add_match(struct estimator *e, struct ts_pairmap *indices,
		     const struct ts_collective_match *match)
{
	const uint32_t *members = &e->collectives->members[match->first];
	const struct ts_work_command *first = NULL;
	int rc = TS_OK;

	for (uint32_t i = 0; i < match->count && !rc; i++) {
		const struct ts_work_command *command = &e->work->commands[members[i]];

		if (command->flags & TS_COMMAND_UNTIMED)
			continue;
		if (first)
			rc = add_sample(e, indices, first, command, match->together);
		else
			first = command;
	}
	return rc;
}

static int gather_samples(struct estimator *e)
{
	struct ts_pairmap indices;
	int rc = TS_OK;

	e->resolution = 1000;
	ts_pairmap_init(&indices);
	for (uint32_t i = 0; i < e->collectives->match_count && !rc; i++)
		rc = add_match(e, &indices, &e->collectives->matches[i]);
	ts_pairmap_release(&indices);
	return rc;
}

/* ---- lines ---- */

/* Hard samples first. */
static int compare_samples(const void *left, const void *right)
{
	const struct ts_clock_sample *a = left, *b = right;

	if (a->pair != b->pair)
		return a->pair < b->pair ? -1 : 1;
	return (int)b->hard - (int)a->hard;
}

static int fit_pairs(struct estimator *e)
{
	int rc = TS_OK;

	if (e->sample_count)
		ts_sort(e->samples, e->sample_count, sizeof(*e->samples), compare_samples);
	for (size_t i = 0, to; i < e->sample_count && !rc; i = to) {
		uint32_t pair = e->samples[i].pair;
		size_t hard = 0;

		for (to = i; to < e->sample_count && e->samples[to].pair == pair; to++)
			hard += e->samples[to].hard;
		rc = ts_clock_fit(&e->pairs[pair].line, e->samples + i,
				  hard >= ENOUGH_HARD ? hard : to - i, e->resolution, e->err);
	}
	return rc;
}

/* ---- paths from the reference ---- */

static int make_edges(struct estimator *e)
{
	uint32_t next = 0;

	e->edges = ts_alloc_array(2 * e->pair_count, sizeof(*e->edges));
	if (!e->edges)
		return no_memory(e);
	for (size_t i = 0; i < e->pair_count; i++) {
		e->domains[e->pairs[i].first].edge_count++;
		e->domains[e->pairs[i].second].edge_count++;
	}
	for (uint32_t i = 0; i < e->domain_count; i++) {
		e->domains[i].first_edge = next;
		next += e->domains[i].edge_count;
		e->domains[i].edge_count = 0;
	}
	for (uint32_t i = 0; i < e->pair_count; i++) {
		struct domain *first = &e->domains[e->pairs[i].first];
		struct domain *second = &e->domains[e->pairs[i].second];

		e->edges[first->first_edge + first->edge_count++] = i;
		e->edges[second->first_edge + second->edge_count++] = i;
	}
	return TS_OK;
}

static bool is_before(const struct path *a, const struct path *b)
{
	if (a->uncertainty != b->uncertainty)
		return a->uncertainty < b->uncertainty;
	return a->pair < b->pair;
}

static int push_path(struct estimator *e, struct path path)
{
	size_t i = e->path_count;

	if (ts_grow_array((void **)&e->paths, &e->path_capacity, i + 1, sizeof(path)))
		return no_memory(e);
	e->path_count++;
	for (; i && is_before(&path, &e->paths[(i - 1) / 2]); i = (i - 1) / 2)
		e->paths[i] = e->paths[(i - 1) / 2];
	e->paths[i] = path;
	return TS_OK;
}

static struct path pop_path(struct estimator *e)
{
	struct path top = e->paths[0], last = e->paths[--e->path_count];
	size_t i = 0;

	for (size_t child = 1; child < e->path_count; child = 2 * i + 1) {
		if (child + 1 < e->path_count && is_before(&e->paths[child + 1], &e->paths[child]))
			child++;
		if (!is_before(&e->paths[child], &last))
			break;
		e->paths[i] = e->paths[child];
		i = child;
	}
	e->paths[i] = last;
	return top;
}

/* The line of a pair away from the domain `to`. */
static struct ts_clock_line line_from(const struct estimator *e, const struct path *path,
				      uint32_t *ret_via)
{
	const struct pair *pair = &e->pairs[path->pair];

	*ret_via = pair->second == path->to ? pair->first : pair->second;
	return pair->second == path->to ? pair->line : ts_clock_line_inverse(&pair->line);
}

static int push_paths(struct estimator *e, uint32_t from)
{
	const struct domain *domain = &e->domains[from];
	int rc = TS_OK;

	for (uint32_t i = 0; i < domain->edge_count && !rc; i++) {
		struct path path = { .pair = e->edges[domain->first_edge + i] };
		const struct pair *pair = &e->pairs[path.pair];
		struct ts_clock_line line;
		uint32_t via;

		path.to = pair->first == from ? pair->second : pair->first;
		if (e->domains[path.to].known)
			continue;
		line = line_from(e, &path, &via);
		path.uncertainty = domain->estimate.uncertainty_ns +
				   ts_clock_line_uncertainty(&line, e->domains[path.to].from,
							     e->domains[path.to].to);
		path.uncertainty = TS_MIN(path.uncertainty, UNCERTAINTY_LIMIT);
		rc = push_path(e, path);
	}
	return rc;
}

static int64_t bounds_of_both(int64_t a, int64_t b)
{
	return a == TS_ABSENT || b == TS_ABSENT ? TS_ABSENT : TS_MIN(a + b, UNCERTAINTY_LIMIT);
}

/* Extends the known path to a domain by one line. */
static void link_domain(struct estimator *e, const struct path *path)
{
	uint32_t via;
	struct ts_clock_line line = line_from(e, path, &via);
	const struct ts_clock_estimate *before = &e->domains[via].estimate;
	bool is_direct = before->method == NULL;
	double drift = before->drift_ppb * 1e-9;
	int64_t shifted = line.epoch + line.offset;

	e->domains[path->to].known = true;
	e->domains[path->to].estimate = (struct ts_clock_estimate){
		.known = true,
		.reference = before->reference,
		.epoch = line.epoch,
		.offset_ns = ts_clock_estimate_apply(before, shifted) - line.epoch,
		.drift_ppb = ((1 + line.drift) * (1 + drift) - 1) * 1e9,
		.uncertainty_ns = path->uncertainty,
		.bound_ns = bounds_of_both(line.bound, before->bound_ns),
		.points = line.points,
		.outliers = line.outliers,
		.method = is_direct ? "collectives" : "collectives of other ranks",
	};
}

static uint32_t choose_reference(const struct estimator *e)
{
	for (uint32_t i = 0; i < e->work->rank_count; i++)
		if (e->domains[e->rank_domains[i]].sampled)
			return i;
	return 0;
}

/* Links everything reachable from a rank. */
static int link_reachable(struct estimator *e, uint32_t reference)
{
	uint32_t domain = e->rank_domains[reference];
	int rc;

	e->domains[domain].known = true;
	e->domains[domain].estimate.reference = reference;
	rc = push_paths(e, domain);
	while (!rc && e->path_count) {
		struct path path = pop_path(e);

		if (e->domains[path.to].known)
			continue;
		link_domain(e, &path);
		rc = push_paths(e, path.to);
	}
	return rc;
}

/* Ranks without a link to the reference may still be linked to each other. */
static int link_all(struct estimator *e)
{
	int rc = link_reachable(e, e->out->reference);

	for (uint32_t i = 0; i < e->work->rank_count && !rc; i++) {
		const struct domain *domain = &e->domains[e->rank_domains[i]];

		if (domain->sampled && !domain->known)
			rc = link_reachable(e, i);
	}
	return rc;
}

static void fill_ranks(struct estimator *e)
{
	for (uint32_t i = 0; i < e->work->rank_count; i++) {
		struct ts_clock_estimate *estimate = &e->out->ranks[i];

		*estimate = e->domains[e->rank_domains[i]].estimate;
		estimate->known = e->domains[e->rank_domains[i]].known;
		estimate->rank = i;
		estimate->device = TS_WORK_NONE;
		estimate->domain = e->rank_domains[i];
		if (estimate->known && !estimate->method)
			estimate->method = estimate->reference == i ? "reference" : "same clock";
		if (!estimate->known)
			estimate->method = "none";
	}
}

static int estimate_ranks(struct estimator *e)
{
	int rc = find_domains(e);

	if (!rc)
		rc = gather_samples(e);
	e->out->reference = rc ? 0 : choose_reference(e);
	if (!rc)
		rc = fit_pairs(e);
	if (!rc)
		rc = make_edges(e);
	if (!rc)
		rc = link_all(e);
	if (!rc)
		fill_ranks(e);
	return rc;
}

static int estimate(struct estimator *e)
{
	uint32_t ranks = e->work->rank_count;
	int rc;

	e->rank_domains = calloc(TS_MAX(ranks, 1), sizeof(*e->rank_domains));
	e->domains = calloc(TS_MAX(ranks, 1), sizeof(*e->domains));
	e->out->ranks = calloc(TS_MAX(ranks, 1), sizeof(*e->out->ranks));
	if (!e->rank_domains || !e->domains || !e->out->ranks)
		return no_memory(e);
	rc = ranks ? estimate_ranks(e) : TS_OK;
	return rc ? rc : ts_clock_alignment_fit_devices(e->out, e->work, e->err);
}

int ts_clock_alignment_new(struct ts_clock_alignment **ret_alignment, const struct ts_work *work,
			   const struct ts_collectives *collectives, struct ts_error *err)
{
	TS_AUTO(ts_clock_alignment) out = calloc(1, sizeof(*out));
	struct estimator e = { .work = work, .collectives = collectives, .out = out, .err = err };
	int rc;

	if (!out)
		return no_memory(&e);
	rc = estimate(&e);
	free(e.rank_domains);
	free(e.domains);
	free(e.samples);
	free(e.pairs);
	free(e.edges);
	free(e.paths);
	if (!rc)
		*ret_alignment = TS_STEAL(out);
	return rc;
}

void ts_clock_alignment_free(struct ts_clock_alignment *clocks)
{
	if (!clocks)
		return;
	free(clocks->ranks);
	free(clocks->devices);
	free(clocks);
}

/* ---- resolution ---- */

int64_t ts_clock_alignment_uncertainty(const struct ts_clock_alignment *clocks, uint32_t rank,
				       uint32_t other)
{
	const struct ts_clock_estimate *a = &clocks->ranks[rank], *b = &clocks->ranks[other];

	if (a->domain == b->domain)
		return 0;
	if (!a->known || !b->known || a->reference != b->reference)
		return TS_ABSENT;
	return TS_MIN(a->uncertainty_ns + b->uncertainty_ns, UNCERTAINTY_LIMIT);
}

bool ts_clock_alignment_can_resolve(const struct ts_clock_alignment *clocks, uint32_t rank,
				    uint32_t other, int64_t effect_ns)
{
	int64_t uncertainty = ts_clock_alignment_uncertainty(clocks, rank, other);

	return uncertainty != TS_ABSENT && effect_ns > uncertainty;
}
