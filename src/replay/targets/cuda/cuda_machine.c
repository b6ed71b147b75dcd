/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps recorded devices to those of this machine and compares them: what cannot work is an error,
 * what may change results is noted.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "replay/targets/cuda/cuda_session.h"

enum {
	ATTRIBUTE_CACHE_BYTES = 38,
	ATTRIBUTE_COMPUTE_MAJOR = 75,
	ATTRIBUTE_COMPUTE_MINOR = 76,
	ATTRIBUTE_VIRTUAL_MEMORY = 102,
};
#define MOST_DEVICES 64

/* ---- devices of this machine ---- */

static int attribute_of(const struct cuda_driver_functions *cu, int attribute, int ordinal)
{
	int value = 0;

	return cu->DeviceGetAttribute(&value, attribute, ordinal) ? 0 : value;
}

static int describe_device(struct ts_replay_session *session, int number,
			   struct ts_cuda_device *ret_device, struct ts_error *err)
{
	const struct cuda_driver_functions *cu = &session->cu;
	struct ts_cuda_device device = { .object = TS_REPLAY_NONE };
	const void *function;
	size_t bytes = 0;
	int code = cu->DeviceGet(&device.ordinal, number);

	if (!code)
		code = cu->DeviceGetName(device.name, sizeof(device.name), device.ordinal);
	if (!code)
		code = cu->DeviceTotalMem(&bytes, device.ordinal);
	if (code)
		return ts_cuda_fail(session, code, err, "device %d", number);
	device.name[sizeof(device.name) - 1] = 0;
	cu->DeviceGetUuid(device.uuid, device.ordinal);
	cu->DriverGetVersion(&device.driver);
	/* POSIX guarantees equal representation of both kinds of pointers. */
	memcpy(&function, &cu->Init, sizeof(function));
	ts_driver_release(function, device.release, sizeof(device.release));
	device.memory_bytes = bytes;
	device.cache_bytes = (uint64_t)attribute_of(cu, ATTRIBUTE_CACHE_BYTES, device.ordinal);
	device.compute[0] = attribute_of(cu, ATTRIBUTE_COMPUTE_MAJOR, device.ordinal);
	device.compute[1] = attribute_of(cu, ATTRIBUTE_COMPUTE_MINOR, device.ordinal);
	*ret_device = device;
	return TS_OK;
}

static int list_devices(struct ts_replay_session *session, struct ts_cuda_device *devices,
			int *ret_count, struct ts_error *err)
{
	int count = 0, rc = TS_OK;
	int code = session->cu.DeviceGetCount(&count);

	if (code || count < 1)
		return ts_cuda_fail(session, code ? code : 100, err, "no CUDA device");
	*ret_count = TS_MIN(count, MOST_DEVICES);
	for (int i = 0; i < *ret_count && !rc; i++)
		rc = describe_device(session, i, &devices[i], err);
	return rc;
}

/* ---- choosing ---- */

static void list_names(const struct ts_cuda_device *devices, int count, struct ts_text *out)
{
	for (int i = 0; i < count; i++)
		ts_text_printf(out, "%s%d '%s' (compute %d.%d)", i ? ", " : "", i, devices[i].name,
			       devices[i].compute[0], devices[i].compute[1]);
}

static bool is_used(const struct ts_replay_session *session, int ordinal)
{
	for (uint32_t i = 0; i < session->device_count; i++)
		if (session->devices[i].ordinal == ordinal)
			return true;
	return false;
}

/* --device: a number, or part of a name. -1: there is none. */
static int find_named(const char *wanted, const struct ts_cuda_device *devices, int count)
{
	int64_t number;

	if (!ts_parse_int64(wanted, strlen(wanted), &number))
		return number >= 0 && number < count ? (int)number : -1;
	for (int i = 0; i < count; i++)
		if (strstr(devices[i].name, wanted))
			return i;
	return -1;
}

/* How much a device is like the recorded one; 0: another model. */
static int likeness(const struct ts_replay_session *session, uint32_t object,
		    const struct ts_cuda_device *device, int number)
{
	const struct ts_cuda_details *details = &session->objects[object].details;

	if (is_used(session, device->ordinal) ||
	    strcmp(ts_cuda_info(session, object)->name, device->name) != 0)
		return 0;
	return 1 + ((uint64_t)number == details->index) +
	       2 * (details->has_uuid && !memcmp(details->uuid, device->uuid, 16));
}

static int choose(const struct ts_replay_session *session, uint32_t object,
		  const struct ts_cuda_device *devices, int count, struct ts_error *err)
{
	const char *wanted = session->replay->options.device;
	const struct ts_cuda_details *details = &session->objects[object].details;
	TS_SCOPED(ts_text) names = { 0 };
	int best = -1, most = 0;

	if (wanted)
		best = find_named(wanted, devices, count);
	for (int i = 0; i < count && !wanted; i++) {
		int like = likeness(session, object, &devices[i], i);

		if (like > most)
			best = i;
		most = TS_MAX(most, like);
	}
	if (best >= 0)
		return best;
	list_names(devices, count, &names);
	if (wanted)
		return ts_error_set(err, TS_ECAP,
				    "there is no device '%s'; devices of this machine are %s",
				    wanted, ts_text_cstr(&names));
	return ts_error_set(err, TS_ECAP,
			    "the trace was recorded on '%s' (compute %" PRIu64 ".%" PRIu64
			    "); devices of this machine are %s ('--device N' takes one of another "
			    "model)",
			    ts_cuda_info(session, object)->name, details->compute[0],
			    details->compute[1], ts_text_cstr(&names));
}

/* ---- comparing ---- */

void ts_cuda_note(struct ts_replay_session *session, const char *format, ...)
{
	size_t length = strlen(session->notes);
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (strstr(session->notes, text))
		return;
	if (length && length + 2 < sizeof(session->notes)) {
		memcpy(session->notes + length, "; ", 3);
		length += 2;
	}
	snprintf(session->notes + length, sizeof(session->notes) - length, "%s", text);
}

static bool is_other_release(const struct ts_cuda_details *details,
			     const struct ts_cuda_device *device)
{
	const char *release = details->release;

	/* It is printed. */
	return release && release[0] && strspn(release, "0123456789.") == strlen(release) &&
	       device->release[0] && strcmp(release, device->release) != 0;
}

static int compare(struct ts_replay_session *session, const struct ts_cuda_device *device,
		   struct ts_error *err)
{
	const struct ts_replay_object_info *info = ts_cuda_info(session, device->object);
	const struct ts_cuda_details *details = &session->objects[device->object].details;

	if (!attribute_of(&session->cu, ATTRIBUTE_VIRTUAL_MEMORY, device->ordinal))
		return ts_error_set(err, TS_ECAP,
				    "'%s' has no virtual memory management, which a replay needs",
				    device->name);
	if (strcmp(info->name, device->name) != 0)
		ts_cuda_note(session, "recorded on '%s', so results may differ", info->name);
	else if (details->compute[0] != (uint64_t)device->compute[0] ||
		 details->compute[1] != (uint64_t)device->compute[1])
		ts_cuda_note(session, "recorded with compute capability %" PRIu64 ".%" PRIu64,
			     details->compute[0], details->compute[1]);
	session->is_elsewhere |= strcmp(info->name, device->name) != 0 ||
				 details->compute[0] != (uint64_t)device->compute[0] ||
				 details->compute[1] != (uint64_t)device->compute[1] ||
				 (details->driver && details->driver != (uint64_t)device->driver) ||
				 is_other_release(details, device);
	if (details->driver && details->driver != (uint64_t)device->driver)
		ts_cuda_note(session,
			     "recorded with a driver for CUDA %" PRIu64 ".%" PRIu64
			     ", replayed with %d.%d",
			     details->driver / 1000, details->driver % 1000 / 10,
			     device->driver / 1000, device->driver % 1000 / 10);
	else if (is_other_release(details, device))
		ts_cuda_note(session, "recorded with driver %.23s, replayed with %s",
			     details->release, device->release);
	return TS_OK;
}

static int add_device(struct ts_replay_session *session, uint32_t object,
		      const struct ts_cuda_device *devices, int count, struct ts_error *err)
{
	int best = choose(session, object, devices, count, err);
	struct ts_cuda_device *device;

	if (best < 0)
		return best;
	/* Two recorded devices on one: their arenas do not overlap, but their times would. */
	if (is_used(session, devices[best].ordinal))
		return ts_error_set(err, TS_ECAP,
				    "the trace uses several devices; '%s' can replace only one",
				    devices[best].name);
	device = &session->devices[session->device_count];
	*device = devices[best];
	device->object = object;
	session->objects[object].device = session->device_count++;
	return compare(session, device, err);
}

static void describe(struct ts_replay_session *session)
{
	size_t length = (size_t)snprintf(session->text, sizeof(session->text), "cuda: ");

	for (uint32_t i = 0; i < session->device_count && length < sizeof(session->text); i++)
		length += (size_t)snprintf(
			session->text + length, sizeof(session->text) - length,
			"%s%s (compute %d.%d, CUDA %d.%d)", i ? ", " : "", session->devices[i].name,
			session->devices[i].compute[0], session->devices[i].compute[1],
			session->devices[i].driver / 1000, session->devices[i].driver % 1000 / 10);
}

int ts_cuda_choose_devices(struct ts_replay_session *session, struct ts_error *err)
{
	struct ts_cuda_device *devices =
		ts_arena_alloc_zeroed(&session->arena, MOST_DEVICES, sizeof(*devices));
	int count = 0, rc;

	session->devices = ts_arena_alloc_zeroed(
		&session->arena, session->stream->object_count + 1u, sizeof(*session->devices));
	if (!devices || !session->devices)
		return ts_error_set(err, TS_ENOMEM, "no memory for devices");
	rc = list_devices(session, devices, &count, err);
	for (uint32_t i = 0; i < session->stream->object_count && !rc; i++)
		if (ts_cuda_info(session, i)->kind == TS_OBJECT_DEVICE &&
		    session->objects[i].is_needed)
			rc = add_device(session, i, devices, count, err);
	if (!rc && !session->device_count)
		rc = ts_error_set(err, TS_EFORMAT, "the trace names no device");
	if (!rc)
		describe(session);
	return rc;
}

uint64_t ts_cuda_free_bytes(struct ts_replay_session *session)
{
	size_t available = 0, total = 0;

	return session->cu.MemGetInfo(&available, &total) ? 0 : available;
}
