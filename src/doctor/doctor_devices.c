/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of device metrics: opens each and samples it once, as the recorder does, and passes on
 * its message.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor/checks.h"
#include "sample/metrics/metric_sources.h"

#define PCI_AMD 0x1002u
#define PCI_HUAWEI 0x19e5u
#define PCI_ACCELERATOR 0x12u

/* ---- one sample ---- */

struct sampled {
	unsigned int devices;
	unsigned int values;
	char models[192];
	char message[256];
};

static void on_device(void *context, const struct ts_metrics_device *device)
{
	struct sampled *sampled = context;
	size_t used = strlen(sampled->models);

	sampled->devices++;
	if (device->model && device->model[0])
		snprintf(sampled->models + used, sizeof(sampled->models) - used, "%s%s",
			 used ? ", " : "", device->model);
}

static void on_real(void *context, const struct ts_metrics_subject *subject, const char *name,
		    const char *series, double value)
{
	((struct sampled *)context)->values++;
}

static void on_integer(void *context, const struct ts_metrics_subject *subject, const char *name,
		       const char *series, int64_t value)
{
	((struct sampled *)context)->values++;
}

static void on_message(void *context, const char *text)
{
	struct sampled *sampled = context;

	if (!sampled->message[0])
		snprintf(sampled->message, sizeof(sampled->message), "%s", text);
}

static void sample(const struct ts_metrics_source *source, void *state, struct ts_finding *finding)
{
	struct sampled sampled = { 0 };
	const struct ts_metrics_sink sink = {
		.size = sizeof(sink),
		.context = &sampled,
		.device = on_device,
		.real = on_real,
		.integer = on_integer,
		.message = on_message,
	};
	int failed = source->sample(state, &sink);

	if (failed || !sampled.values)
		ts_finding_set(finding, TS_CHECK_NO, "opened, but no value can be read%s%s",
			       sampled.message[0] ? ": " : "", sampled.message);
	else
		ts_finding_set(finding, sampled.message[0] ? TS_CHECK_LIMITED : TS_CHECK_YES,
			       "%u device%s%s%s, %u values%s%s", sampled.devices,
			       sampled.devices == 1 ? "" : "s", sampled.models[0] ? ": " : "",
			       sampled.models, sampled.values, sampled.message[0] ? "; " : "",
			       sampled.message);
}

static const struct ts_metrics_source *find_source(const char *name)
{
	const struct ts_metrics_source *const *sources = ts_metrics_sources();

	while (*sources && strcmp((*sources)->name, name) != 0)
		sources++;
	return *sources;
}

/*
 * `hardware`: number of devices on the bus that the source should have found. True if there is
 * something to fix.
 */
static bool check_source(const char *name, unsigned int hardware, struct ts_finding *finding)
{
	const struct ts_metrics_source *source = find_source(name);
	char why[256] = "";
	void *state = NULL;

	if (!source) {
		ts_finding_set(finding, TS_CHECK_NO, "this build has no source '%s'", name);
		return false;
	}
	switch (source->open(&state, why, sizeof(why))) {
	case TS_METRICS_READY:
		sample(source, state, finding);
		break;
	case TS_METRICS_NONE:
		ts_finding_set(finding, hardware ? TS_CHECK_NO : TS_CHECK_ABSENT, "%s%s",
			       why[0] ? why : "no such device or driver",
			       hardware ? ", although the machine has such a device" : "");
		break;
	default:
		ts_finding_set(finding, TS_CHECK_NO, "%s",
			       why[0] ? why : "cannot be read, for an unknown reason");
	}
	return finding->state == TS_CHECK_NO;
}

/* ---- vendors ---- */

void ts_check_nvml(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	if (!check_source("nvml", ts_machine_pci_count(TS_PCI_NVIDIA, TS_PCI_DISPLAY), ret_finding))
		return;
	if (machine->container == TS_CONTAINER_DOCKER || machine->container == TS_CONTAINER_OTHER) {
		ts_finding_fix(
			ret_finding,
			"docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility IMAGE");
		ts_finding_note(ret_finding, "run this on the host, with NVIDIA's container "
					     "toolkit");
	} else {
		ts_finding_fix(ret_finding, "nvidia-smi");
		ts_finding_note(ret_finding, "shows what is wrong with the driver");
	}
}

/* True if such a device file exists but this user may not open it. */
static bool is_closed(const char *pattern)
{
	glob_t found;
	bool closed = false;

	if (glob(pattern, 0, NULL, &found))
		return false;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		if (access(found.gl_pathv[i], R_OK | W_OK) && errno == EACCES)
			closed = true;
	}
	globfree(&found);
	return closed;
}

void ts_check_npu_smi(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	if (!check_source("npu-smi", ts_machine_pci_count(PCI_HUAWEI, PCI_ACCELERATOR),
			  ret_finding))
		return;
	if (machine->container) {
		ts_finding_fix(
			ret_finding,
			"docker run --device /dev/davinci0 --device /dev/davinci_manager --device /dev/devmm_svm --device /dev/hisi_hdc -v /usr/local/dcmi:/usr/local/dcmi:ro -v /usr/local/Ascend/driver:/usr/local/Ascend/driver:ro -v /usr/local/bin/npu-smi:/usr/local/bin/npu-smi:ro IMAGE");
		ts_finding_note(ret_finding, "run this on the host");
	} else if (is_closed("/dev/davinci*")) {
		ts_finding_fix(ret_finding, "sudo usermod -a -G HwHiAiUser $USER");
		ts_finding_note(ret_finding, "then log in again; gives this user access to the "
					     "NPUs");
	} else {
		ts_finding_fix(ret_finding, "npu-smi info");
		ts_finding_note(ret_finding, "shows what is wrong with the driver");
	}
}

void ts_check_amd(const struct ts_machine *machine, struct ts_finding *ret_finding)
{
	if (!check_source("amd",
			  ts_machine_pci_count(PCI_AMD, TS_PCI_DISPLAY) +
				  ts_machine_pci_count(PCI_AMD, PCI_ACCELERATOR),
			  ret_finding))
		return;
	if (machine->container) {
		ts_finding_fix(
			ret_finding,
			"docker run --device /dev/kfd --device /dev/dri --group-add video --group-add render IMAGE");
		ts_finding_note(ret_finding, "run this on the host");
	} else if (is_closed("/dev/kfd") || is_closed("/dev/dri/renderD*")) {
		ts_finding_fix(ret_finding, "sudo usermod -a -G render,video $USER");
		ts_finding_note(ret_finding, "then log in again; gives this user access to the "
					     "GPUs");
	}
}
