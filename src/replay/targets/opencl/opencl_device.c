/* SPDX-License-Identifier: Apache-2.0 */
/* Maps recorded devices to devices of this machine: by --device, else by name, else by number. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "replay/targets/opencl/opencl_session.h"

/* ---- devices of this machine ---- */

static void get_text(cl_int code, char *text)
{
	if (code)
		snprintf(text, TS_OPENCL_NAME_BYTES, "?");
	text[TS_OPENCL_NAME_BYTES - 1] = 0;
}

static void describe_device(const struct ts_opencl_api *api, struct ts_opencl_device *device)
{
	get_text(api->clGetDeviceInfo(device->id, CL_DEVICE_NAME, TS_OPENCL_NAME_BYTES,
				      device->name, NULL),
		 device->name);
	get_text(api->clGetPlatformInfo(device->platform, CL_PLATFORM_NAME, TS_OPENCL_NAME_BYTES,
					device->platform_name, NULL),
		 device->platform_name);
}

/* Appends the devices of a platform; one without devices is ignored. */
static int add_platform(struct ts_replay_session *session, cl_platform_id platform,
			size_t *capacity)
{
	const struct ts_opencl_api *api = &session->api;
	TS_AUTO_FREE cl_device_id *ids = NULL;
	cl_uint count = 0;

	if (api->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count) || !count)
		return TS_OK;
	ids = ts_alloc_array(count, sizeof(cl_device_id));
	if (!ids || ts_grow_array((void **)&session->devices, capacity,
				  session->device_count + count, sizeof(*session->devices)))
		return TS_ENOMEM;
	if (api->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids, NULL))
		return TS_OK;
	for (cl_uint i = 0; i < count; i++) {
		struct ts_opencl_device *device = &session->devices[session->device_count++];

		*device = (struct ts_opencl_device){ .id = ids[i], .platform = platform };
		describe_device(api, device);
	}
	return TS_OK;
}

static int find_devices(struct ts_replay_session *session, struct ts_error *err)
{
	const struct ts_opencl_api *api = &session->api;
	TS_AUTO_FREE cl_platform_id *platforms = NULL;
	cl_uint count = 0;
	size_t capacity = 0;
	int rc = TS_OK;

	/* The loader returns -1001 if there is no platform at all. */
	if (api->clGetPlatformIDs(0, NULL, &count) || !count)
		return ts_error_set(
			err, TS_ECAP,
			"no OpenCL platform found; install a driver (Debian: pocl-opencl-icd runs on processors)");
	platforms = ts_alloc_array(count, sizeof(cl_platform_id));
	if (!platforms)
		return ts_error_set(err, TS_ENOMEM, "no memory for a list of platforms");
	if (api->clGetPlatformIDs(count, platforms, NULL))
		count = 0;
	for (cl_uint i = 0; i < count && !rc; i++)
		rc = add_platform(session, platforms[i], &capacity);
	if (rc)
		return ts_error_set(err, rc, "no memory for a list of devices");
	if (!session->device_count)
		return ts_error_set(err, TS_ECAP, "no OpenCL device found");
	return TS_OK;
}

/* ---- --device ---- */

static bool contains(const char *text, const char *part)
{
	return text && part && part[0] && strcasestr(text, part);
}

static int no_such_device(const struct ts_replay_session *session, const char *requested,
			  struct ts_error *err)
{
	char names[300] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < session->device_count && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%u '%s'",
					 i ? ", " : "", i, session->devices[i].name);
	return ts_error_set(err, TS_ECAP, "no such OpenCL device: '%s'; devices are %s", requested,
			    names);
}

static int find_requested(const struct ts_replay_session *session, const char *requested,
			  uint32_t *ret_device, struct ts_error *err)
{
	int64_t number;

	if (!ts_parse_int64(requested, strlen(requested), &number)) {
		if (number < 0 || number >= session->device_count)
			return no_such_device(session, requested, err);
		*ret_device = (uint32_t)number;
		return TS_OK;
	}
	for (uint32_t i = 0; i < session->device_count; i++) {
		if (contains(session->devices[i].name, requested)) {
			*ret_device = i;
			return TS_OK;
		}
	}
	return no_such_device(session, requested, err);
}

/* ---- mapping of recorded devices ---- */

/* The nth matching device, modulo their number; TS_REPLAY_NONE: none matches. */
static uint32_t nth_device(const struct ts_replay_session *session, cl_platform_id platform,
			   const char *name, uint32_t n)
{
	uint32_t count = 0, at = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < session->device_count; i++) {
			const struct ts_opencl_device *device = &session->devices[i];

			if (device->platform != platform || (name && strcmp(device->name, name)))
				continue;
			if (pass && at++ == n % count)
				return i;
			count += !pass;
		}
		if (!count)
			break;
	}
	return TS_REPLAY_NONE;
}

static uint32_t devices_of(const struct ts_replay_session *session, cl_platform_id platform)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < session->device_count; i++)
		count += session->devices[i].platform == platform;
	return count;
}

/* The platform of that name; else the first with enough devices; else the one with most. */
static cl_platform_id choose_platform(const struct ts_replay_session *session,
				      const struct ts_replay_object_info *info, uint32_t recorded)
{
	cl_platform_id best = session->devices[0].platform;

	for (uint32_t i = 0; i < session->device_count; i++)
		if (contains(info->options, session->devices[i].platform_name))
			return session->devices[i].platform;
	for (uint32_t i = 0; i < session->device_count; i++) {
		cl_platform_id platform = session->devices[i].platform;

		if (devices_of(session, platform) >= recorded)
			return platform;
		if (devices_of(session, platform) > devices_of(session, best))
			best = platform;
	}
	return best;
}

/* Number of recorded devices before this one, all or only those of the same name. */
static uint32_t ahead(const struct ts_replay_session *session, uint32_t object, bool same_name)
{
	const char *name = ts_opencl_info(session, object)->name;
	uint32_t count = 0;

	for (uint32_t i = 0; i < object; i++) {
		const struct ts_replay_object_info *info = ts_opencl_info(session, i);

		count += info->kind == TS_OBJECT_DEVICE &&
			 (!same_name || (info->name && name && !strcmp(info->name, name)));
	}
	return count;
}

static uint32_t choose_like(const struct ts_replay_session *session, uint32_t object,
			    uint32_t recorded)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, object);
	cl_platform_id platform = choose_platform(session, info, recorded);
	uint32_t device = TS_REPLAY_NONE;

	if (info->name)
		device = nth_device(session, platform, info->name, ahead(session, object, true));
	if (device == TS_REPLAY_NONE)
		device = nth_device(session, platform, NULL, ahead(session, object, false));
	return device;
}

/* ---- description ---- */

static bool is_used(const struct ts_replay_session *session, uint32_t device)
{
	for (uint32_t i = 0; i < session->stream->object_count; i++)
		if (ts_opencl_info(session, i)->kind == TS_OBJECT_DEVICE &&
		    session->objects[i].is_needed && session->objects[i].device == device)
			return true;
	return false;
}

static void append(struct ts_replay_session *session, const char *text)
{
	size_t length = strlen(session->text);

	snprintf(session->text + length, sizeof(session->text) - length, "%s", text);
}

static void describe_used(struct ts_replay_session *session, uint32_t *ret_count)
{
	for (uint32_t i = 0; i < session->device_count; i++) {
		const struct ts_opencl_device *device = &session->devices[i];
		char text[2 * TS_OPENCL_NAME_BYTES + 8];

		if (!is_used(session, i))
			continue;
		snprintf(text, sizeof(text), "%s%s (%s)", (*ret_count)++ ? ", " : "", device->name,
			 device->platform_name);
		append(session, text);
	}
}

static void describe(struct ts_replay_session *session)
{
	uint32_t count = 0, recorded = 0;
	char text[2 * TS_OPENCL_NAME_BYTES];
	const char *other = NULL;

	append(session, "opencl: ");
	describe_used(session, &count);
	if (!count)
		append(session, "no device needed");
	for (uint32_t i = 0; i < session->stream->object_count; i++) {
		const struct ts_replay_object_info *info = ts_opencl_info(session, i);

		if (info->kind != TS_OBJECT_DEVICE || !session->objects[i].is_needed)
			continue;
		recorded++;
		if (info->name && info->name[0] &&
		    strcmp(info->name, session->devices[session->objects[i].device].name))
			other = info->name;
	}
	if (recorded > count) {
		snprintf(text, sizeof(text), ", for %u recorded devices", recorded);
		append(session, text);
	}
	if (other) {
		snprintf(text, sizeof(text), "; recorded on %s", other);
		append(session, text);
	}
}

int ts_opencl_choose_devices(struct ts_replay_session *session, struct ts_error *err)
{
	const char *requested = session->replay->options.device;
	uint32_t recorded = 0, all = TS_REPLAY_NONE;
	int rc = find_devices(session, err);

	if (!rc && requested)
		rc = find_requested(session, requested, &all, err);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < session->stream->object_count; i++)
		recorded += ts_opencl_info(session, i)->kind == TS_OBJECT_DEVICE;
	for (uint32_t i = 0; i < session->stream->object_count; i++)
		if (ts_opencl_info(session, i)->kind == TS_OBJECT_DEVICE)
			session->objects[i].device = requested ? all
							       : choose_like(session, i, recorded);
	describe(session);
	return TS_OK;
}

/* ---- devices of contexts ---- */

uint32_t ts_opencl_context_devices(const struct ts_replay_session *session, uint32_t context,
				   cl_device_id *ret_devices)
{
	const struct ts_replay_object_info *info = ts_opencl_info(session, context);
	uint32_t count = 0;

	for (uint32_t i = 0; i < info->device_count; i++) {
		uint32_t position = session->objects[info->devices[i]].device;
		cl_device_id device = session->devices[position].id;
		uint32_t same = 0;

		while (same < count && ret_devices[same] != device)
			same++;
		if (same == count)
			ret_devices[count++] = device;
	}
	return count;
}

const char *ts_opencl_device_name(const struct ts_replay_session *session, uint32_t object)
{
	const struct ts_replay_object_info *info;

	while (object != TS_REPLAY_NONE) {
		uint32_t device;

		info = ts_opencl_info(session, object);
		device = info->kind == TS_OBJECT_DEVICE                          ? object
			 : info->kind == TS_OBJECT_STREAM                        ? info->device
			 : info->kind == TS_OBJECT_CONTEXT && info->device_count ? info->devices[0]
										 : TS_REPLAY_NONE;
		if (device != TS_REPLAY_NONE)
			return session->devices[session->objects[device].device].name;
		object = info->kind == TS_OBJECT_CONTEXT ? TS_REPLAY_NONE : info->parent;
	}
	return session->devices[0].name;
}
