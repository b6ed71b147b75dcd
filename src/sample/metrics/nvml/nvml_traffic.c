/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic to and from a GPU, and the activity of its units. Hopper and later measure both on the
 * device between two samples (GPM). Others have counters: of NVLink, and of PCIe with newer
 * drivers. PCIe counters have 32 bits, so they are used only if the link cannot carry that much
 * between two samples. As a last resort the library measures PCIe itself, which takes 20 ms per
 * direction.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "sample/metrics/nvml/nvml.h"

#define MIB 1048576.0
#define KIB 1024.0
#define COUNTER_RANGE 4294967296.0
/* After this many failures in a row other ways are tried. */
#define GPM_FAILURES 4u

/* ---- GPM ---- */

struct gpm_series {
	enum nvml_gpm_metric metric;
	const char *name, *series;
	double factor;
};

static const struct gpm_series gpm_series[] = {
	{ NVML_GPM_GRAPHICS, "utilization_percent", "compute", 1 },
	{ NVML_GPM_SM, "utilization_percent", "sm", 1 },
	{ NVML_GPM_OCCUPANCY, "utilization_percent", "sm_occupancy", 1 },
	{ NVML_GPM_TENSOR, "utilization_percent", "tensor", 1 },
	{ NVML_GPM_DRAM, "utilization_percent", "memory_bandwidth", 1 },
	{ NVML_GPM_PCIE_RECEIVED, "pcie_bytes_per_s", "received", MIB },
	{ NVML_GPM_PCIE_SENT, "pcie_bytes_per_s", "sent", MIB },
	{ NVML_GPM_LINK_RECEIVED, "link_bytes_per_s", "received", MIB },
	{ NVML_GPM_LINK_SENT, "link_bytes_per_s", "sent", MIB },
};

/*
 * The library crashes if two threads of a process use GPM at once (driver 580), even with separate
 * samples: the first one has it until it is closed.
 */
static const struct nvml *gpm_owner;

static bool owns_gpm(const struct nvml *nvml)
{
	const struct nvml *owner = NULL;

	return __atomic_compare_exchange_n(&gpm_owner, &owner, nvml, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE) ||
	       owner == nvml;
}

/* Nobody else has it. */
static bool may_use_gpm(const struct nvml *nvml)
{
	const struct nvml *owner = __atomic_load_n(&gpm_owner, __ATOMIC_ACQUIRE);

	return !owner || owner == nvml;
}

void nvml_gpm_leave(const struct nvml *nvml)
{
	__atomic_compare_exchange_n(&gpm_owner, &nvml, NULL, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
}

void nvml_gpm_release(struct nvml *nvml, struct nvml_gpu *gpu)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (gpu->gpm[i])
			NVML_CALL(&nvml->api, gpm_free, gpu->gpm[i]);
		gpu->gpm[i] = NULL;
	}
	gpu->has_gpm_sample = gpu->has_gpm_pcie = gpu->has_gpm_links = false;
}

static int gpm_prepare(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_gpm_support support = { .version = 1 };
	int code;

	if (gpu->gpm[1])
		return NVML_OK;
	code = NVML_CALL(&nvml->api, gpm_support, gpu->handle, &support);
	if (code == NVML_OK && !support.is_supported)
		code = NVML_NOT_SUPPORTED;
	for (unsigned int i = 0; i < 2 && code == NVML_OK; i++)
		code = NVML_CALL(&nvml->api, gpm_alloc, &gpu->gpm[i]);
	return code;
}

/* Metrics that are better elsewhere, or missing, are not queried. */
static bool gpm_wants(const struct nvml_gpu *gpu, enum nvml_gpm_metric metric)
{
	switch (metric) {
	case NVML_GPM_GRAPHICS:
		return nvml_lacks(gpu, NVML_VALUE_UTILIZATION);
	case NVML_GPM_LINK_RECEIVED:
	case NVML_GPM_LINK_SENT:
		return gpu->links > 0;
	default:
		return true;
	}
}

static int gpm_query(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_gpm_get *get = &nvml->gpm;

	get->version = 1;
	get->count = 0;
	get->from = gpu->gpm[0];
	get->to = gpu->gpm[1];
	for (size_t i = 0; i < TS_ARRAY_SIZE(gpm_series); i++) {
		struct nvml_gpm_value *value = &get->values[get->count];

		if (!gpm_wants(gpu, gpm_series[i].metric))
			continue;
		memset(value, 0, sizeof(*value));
		value->metric = gpm_series[i].metric;
		value->code = NVML_UNKNOWN_ERROR;
		value->value = -1;
		get->count++;
	}
	return NVML_CALL(&nvml->api, gpm_metrics, get);
}

static bool gpm_give(const struct nvml *nvml, const struct nvml_gpu *gpu,
		     const struct gpm_series *series, const struct nvml_gpm_value *value)
{
	/* Slightly above 100 is rounding; far above is garbage, and 1e15 is beyond any link. */
	double most = series->factor > 1 ? 1e15 : 101;

	if (value->code || !isfinite(value->value) || value->value < 0 ||
	    value->value * series->factor > most)
		return false;
	nvml_real(nvml, gpu, series->name, series->series,
		  series->factor > 1 ? value->value * series->factor : fmin(value->value, 100));
	return true;
}

static void gpm_give_all(const struct nvml *nvml, struct nvml_gpu *gpu)
{
	size_t at = 0;

	for (size_t i = 0; i < TS_ARRAY_SIZE(gpm_series) && at < nvml->gpm.count; i++) {
		const struct nvml_gpm_value *value = &nvml->gpm.values[at];
		bool given;

		if (value->metric != (uint32_t)gpm_series[i].metric)
			continue;
		at++;
		given = gpm_give(nvml, gpu, &gpm_series[i], value);
		if (gpm_series[i].metric == NVML_GPM_PCIE_RECEIVED)
			gpu->has_gpm_pcie = given;
		else if (gpm_series[i].metric == NVML_GPM_LINK_RECEIVED)
			gpu->has_gpm_links = given;
	}
}

/* A new sample replaces the older one. */
static int gpm_take(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_gpm_sample *older = gpu->gpm[0];
	int code = NVML_CALL(&nvml->api, gpm_sample, gpu->handle, older);

	if (code)
		return code;
	gpu->gpm[0] = gpu->gpm[1];
	gpu->gpm[1] = older;
	return NVML_OK;
}

void nvml_read_gpm(struct nvml *nvml, struct nvml_gpu *gpu)
{
	if (!nvml_wants(nvml, gpu, NVML_VALUE_GPM) || !owns_gpm(nvml))
		return;
	gpu->gpm_failures++;
	if (!nvml_got(nvml, gpu, NVML_VALUE_GPM, gpm_prepare(nvml, gpu))) {
		nvml_gpm_release(nvml, gpu);
		return;
	}
	if (!nvml_got(nvml, gpu, NVML_VALUE_GPM, gpm_take(nvml, gpu))) {
		/* Its contents are undefined now. */
		gpu->has_gpm_sample = false;
		return;
	}
	if (gpu->has_gpm_sample && nvml_got(nvml, gpu, NVML_VALUE_GPM, gpm_query(nvml, gpu))) {
		gpm_give_all(nvml, gpu);
		gpu->has_gpm_metrics = true;
		gpu->gpm_failures = 0;
	}
	gpu->has_gpm_sample = true;
}

/* ---- counters ---- */

/* Like ts_rate_next(), for a counter that may have wrapped once. */
static bool narrow_rate(struct ts_rate *rate, uint32_t value, int64_t now_ns, double limit,
			double *ret_per_second)
{
	const struct ts_rate last = *rate;
	double seconds = (double)(now_ns - last.at_ns) / 1e9;

	*rate = (struct ts_rate){ .value = value, .at_ns = now_ns, .is_known = true };
	if (!last.is_known || seconds <= 0 || seconds * limit >= COUNTER_RANGE)
		return false;
	*ret_per_second = (uint32_t)(value - (uint32_t)last.value) / seconds;
	/* More than the link can carry: the counter was reset. */
	return *ret_per_second <= limit;
}

static bool pcie_rate(const struct nvml_gpu *gpu, struct ts_rate *rate, uint64_t value,
		      int64_t now_ns, double *ret_per_second)
{
	if (gpu->has_wide_counters)
		return ts_rate_next(rate, value, now_ns, ret_per_second);
	return narrow_rate(rate, (uint32_t)value, now_ns, gpu->pcie_limit * 1.05, ret_per_second);
}

static bool can_use_counters(const struct nvml *nvml, const struct nvml_gpu *gpu)
{
	int64_t period_ns = nvml->pace.period_ns[NVML_READ_TRAFFIC];
	double seconds = (double)TS_MAX(period_ns, nvml->pace.interval_ns) / 1e9;

	return nvml_wants(nvml, gpu, NVML_VALUE_PCIE_COUNTERS) && gpu->pcie_limit > 0 &&
	       (gpu->has_wide_counters || seconds * gpu->pcie_limit * 1.1 < COUNTER_RANGE);
}

static void read_pcie_counters(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_field fields[] = {
		{ .field = NVML_FIELD_PCIE_RECEIVED_BYTES },
		{ .field = NVML_FIELD_PCIE_SENT_BYTES },
	};
	int code = nvml_fields(nvml, gpu, fields, TS_ARRAY_SIZE(fields));
	int64_t now_ns = ts_clock_monotonic_ns();
	uint64_t received, sent;
	double rate;

	if (!nvml_got(nvml, gpu, NVML_VALUE_PCIE_COUNTERS, code ? code : fields[0].code) ||
	    !nvml_field_number(&fields[0], &received) || !nvml_field_number(&fields[1], &sent))
		return;
	if (!gpu->has_wide_counters && (received > UINT32_MAX || sent > UINT32_MAX)) {
		gpu->has_wide_counters = true;
		gpu->pcie_received.is_known = gpu->pcie_sent.is_known = false;
	}
	if (pcie_rate(gpu, &gpu->pcie_received, received, now_ns, &rate))
		nvml_real(nvml, gpu, "pcie_bytes_per_s", "received", rate);
	if (pcie_rate(gpu, &gpu->pcie_sent, sent, now_ns, &rate))
		nvml_real(nvml, gpu, "pcie_bytes_per_s", "sent", rate);
}

/* ---- what sleeps ---- */

static void read_pcie_direction(struct nvml *nvml, struct nvml_gpu *gpu,
				enum nvml_pcie_direction direction, const char *series)
{
	unsigned int kbps = UINT32_MAX;

	if (nvml_wants(nvml, gpu, NVML_VALUE_PCIE_THROUGHPUT) &&
	    nvml_got(nvml, gpu, NVML_VALUE_PCIE_THROUGHPUT,
		     NVML_CALL(&nvml->api, pcie_kbps, gpu->handle, (int)direction, &kbps)) &&
	    kbps != UINT32_MAX)
		nvml_real(nvml, gpu, "pcie_bytes_per_s", series, kbps * 1e3);
}

/* One GPU per sample, in turn, each at most every two seconds: sleeps 40 ms at a time. */
static void read_pcie_throughput(struct nvml *nvml, struct nvml_gpu *gpu)
{
	int64_t turn_ns = nvml->pace.interval_ns * nvml->count;

	if (nvml->has_slept || nvml->now_ns < gpu->next_sleep_ns ||
	    !nvml_wants(nvml, gpu, NVML_VALUE_PCIE_THROUGHPUT))
		return;
	nvml->has_slept = true;
	gpu->next_sleep_ns = nvml->now_ns + TS_MAX(turn_ns, NVML_SLEEP_EVERY_NS);
	read_pcie_direction(nvml, gpu, NVML_PCIE_RECEIVED, "received");
	read_pcie_direction(nvml, gpu, NVML_PCIE_SENT, "sent");
}

/* GPM is read before this; its capabilities are unknown until its second sample. */
static bool has_from_gpm(const struct nvml *nvml, const struct nvml_gpu *gpu, bool is_given)
{
	return nvml_wants(nvml, gpu, NVML_VALUE_GPM) && may_use_gpm(nvml) &&
	       gpu->gpm_failures < GPM_FAILURES && (is_given || !gpu->has_gpm_metrics);
}

static void read_pcie(struct nvml *nvml, struct nvml_gpu *gpu)
{
	if (has_from_gpm(nvml, gpu, gpu->has_gpm_pcie))
		return;
	if (can_use_counters(nvml, gpu))
		read_pcie_counters(nvml, gpu);
	/* They may just have turned out to be missing. */
	if (!can_use_counters(nvml, gpu))
		read_pcie_throughput(nvml, gpu);
}

/* ---- NVLink ---- */

static void give_link_rates(struct nvml *nvml, struct nvml_gpu *gpu, uint64_t received_kib,
			    uint64_t sent_kib)
{
	int64_t now_ns = ts_clock_monotonic_ns();
	double rate;

	if (ts_rate_next(&gpu->links_received, received_kib, now_ns, &rate))
		nvml_real(nvml, gpu, "link_bytes_per_s", "received", rate * KIB);
	if (ts_rate_next(&gpu->links_sent, sent_kib, now_ns, &rate))
		nvml_real(nvml, gpu, "link_bytes_per_s", "sent", rate * KIB);
}

static void read_all_links(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_field fields[] = {
		{ .field = NVML_FIELD_LINK_RECEIVED_KIB, .scope = NVML_ALL_LINKS },
		{ .field = NVML_FIELD_LINK_SENT_KIB, .scope = NVML_ALL_LINKS },
	};
	int code = nvml_fields(nvml, gpu, fields, TS_ARRAY_SIZE(fields));
	uint64_t received, sent;

	if (nvml_got(nvml, gpu, NVML_VALUE_ALL_LINKS, code ? code : fields[0].code) &&
	    nvml_field_number(&fields[0], &received) && nvml_field_number(&fields[1], &sent))
		give_link_rates(nvml, gpu, received, sent);
}

/* Inactive links have no counters; a total over another set of links is another counter. */
static void read_each_link(struct nvml *nvml, struct nvml_gpu *gpu)
{
	struct nvml_field fields[2 * NVML_LINKS_MOST] = { 0 };
	uint64_t received_kib = 0, sent_kib = 0, links = 0;
	int code;

	for (uint32_t i = 0; i < gpu->links; i++) {
		fields[2 * i] =
			(struct nvml_field){ .field = NVML_FIELD_LINK_RECEIVED_KIB, .scope = i };
		fields[2 * i + 1] =
			(struct nvml_field){ .field = NVML_FIELD_LINK_SENT_KIB, .scope = i };
	}
	code = nvml_fields(nvml, gpu, fields, 2 * gpu->links);
	for (uint32_t i = 0; i < gpu->links && code == NVML_OK; i++) {
		uint64_t received, sent;

		if (!nvml_field_number(&fields[2 * i], &received) ||
		    !nvml_field_number(&fields[2 * i + 1], &sent))
			continue;
		links |= UINT64_C(1) << i;
		received_kib += received;
		sent_kib += sent;
	}
	if (code == NVML_OK && !links)
		code = fields[0].code ? fields[0].code : NVML_NOT_SUPPORTED;
	if (!nvml_got(nvml, gpu, NVML_VALUE_EACH_LINK, code))
		return;
	if (links != gpu->links_counted)
		gpu->links_received.is_known = gpu->links_sent.is_known = false;
	gpu->links_counted = links;
	give_link_rates(nvml, gpu, received_kib, sent_kib);
}

static void read_links(struct nvml *nvml, struct nvml_gpu *gpu)
{
	if (gpu->links == 0 || has_from_gpm(nvml, gpu, gpu->has_gpm_links))
		return;
	if (nvml_wants(nvml, gpu, NVML_VALUE_ALL_LINKS))
		read_all_links(nvml, gpu);
	else if (nvml_lacks(gpu, NVML_VALUE_ALL_LINKS) &&
		 nvml_wants(nvml, gpu, NVML_VALUE_EACH_LINK))
		read_each_link(nvml, gpu);
}

void nvml_read_traffic(struct nvml *nvml, struct nvml_gpu *gpu)
{
	read_pcie(nvml, gpu);
	read_links(nvml, gpu);
}
