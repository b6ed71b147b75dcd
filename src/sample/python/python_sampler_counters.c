/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of sampling cost and quality, once a second (docs/python.md). */
#include "sample/python/python_sampler_internal.h"

struct row {
	struct sampling *sampling;
	const struct watched_process *process; /* NULL: totals */
};

static void emit(const struct row *row, const char *name, const struct ts_python_counter *values,
		 unsigned int count)
{
	const struct ts_python_consumer *consumer = row->sampling->consumer;

	if (consumer->counter)
		consumer->counter(consumer->context, row->process ? row->process->what.pid : 0,
				  row->process ? row->process->what.start_time : 0, name, values,
				  count);
}

#define EMIT(row, name, ...)                                               \
	emit(row, name, (const struct ts_python_counter[]){ __VA_ARGS__ }, \
	     sizeof((const struct ts_python_counter[]){ __VA_ARGS__ }) /   \
		     sizeof(struct ts_python_counter))

static double per_second(double amount, int64_t elapsed_ns)
{
	return amount * (double)NS_PER_S / (double)elapsed_ns;
}

static double percent(double part, double total)
{
	return total > 0 ? part * 100.0 / total : 0;
}

/* Common to both. Rates without a base are left out. */
static void emit_common(const struct row *row, const struct sampling_counts *counts,
			int64_t longest_ns, int64_t elapsed_ns)
{
	double stacks = (double)counts->stacks, rejected = (double)counts->rejected;

	EMIT(row, "python_stacks_per_s", { "stored", per_second(stacks, elapsed_ns) },
	     { "rejected", per_second(rejected, elapsed_ns) },
	     { "retried", per_second((double)counts->retried, elapsed_ns) });
	if (stacks + rejected > 0)
		EMIT(row, "python_rejected_percent",
		     { "stacks", percent(rejected, stacks + rejected) });
	if (counts->ticks)
		EMIT(row, "python_sweep_us",
		     { "mean", (double)counts->sweep_ns / 1e3 / (double)counts->ticks },
		     { "longest", (double)longest_ns / 1e3 });
}

void ts_python_watch_add_counts(struct sampling_counts *sum, const struct sampling_counts *counts,
				const struct sampling_counts *less)
{
	sum->ticks += counts->ticks - less->ticks;
	sum->late += counts->late - less->late;
	sum->left_out += counts->left_out - less->left_out;
	sum->stacks += counts->stacks - less->stacks;
	sum->rejected += counts->rejected - less->rejected;
	sum->retried += counts->retried - less->retried;
	sum->system_calls += counts->system_calls - less->system_calls;
	sum->missed += counts->missed - less->missed;
	sum->read_ns += counts->read_ns - less->read_ns;
	sum->resolve_ns += counts->resolve_ns - less->resolve_ns;
	sum->native_ns += counts->native_ns - less->native_ns;
	sum->emit_ns += counts->emit_ns - less->emit_ns;
	sum->sweep_ns += counts->sweep_ns - less->sweep_ns;
	sum->cpu_ns += counts->cpu_ns - less->cpu_ns;
}

void ts_python_watch_report_counters(struct sampling *sampling, struct watched_process *process,
				     int64_t elapsed_ns)
{
	const struct row row = { sampling, process };
	struct sampling_counts since = { 0 };

	ts_python_watch_add_counts(&since, &process->counts, &process->emitted_counts);
	if (since.ticks)
		emit_common(&row, &since, process->longest_ns, elapsed_ns);
	process->emitted_counts = process->counts;
	process->longest_ns = 0;
}

void ts_python_watch_report_totals(struct sampling *sampling, const struct sampling_counts *counts,
				   int64_t longest_ns, int64_t elapsed_ns)
{
	const struct row row = { sampling, NULL };
	double elapsed = (double)elapsed_ns;

	emit_common(&row, counts, longest_ns, elapsed_ns);
	EMIT(&row, "python_ticks_per_s", { "taken", per_second((double)counts->ticks, elapsed_ns) },
	     { "late", per_second((double)counts->late, elapsed_ns) },
	     { "left_out", per_second((double)counts->left_out, elapsed_ns) });
	EMIT(&row, "python_cpu_percent", { "sampler", percent((double)counts->cpu_ns, elapsed) });
	EMIT(&row, "python_phase_percent", { "read", percent((double)counts->read_ns, elapsed) },
	     { "resolve", percent((double)counts->resolve_ns, elapsed) },
	     { "native", percent((double)counts->native_ns, elapsed) },
	     { "emit", percent((double)counts->emit_ns, elapsed) });
	EMIT(&row, "python_reads_per_s",
	     { "system_calls", per_second((double)counts->system_calls, elapsed_ns) },
	     { "again", per_second((double)counts->missed, elapsed_ns) });
}
