/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: settings, devices, names of errors. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cuda/driver/driver.h"

struct settings settings;
bool is_started;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void occupy(const char *list)
{
	while (list && *list) {
		char *end;
		uint64_t address = strtoull(list, &end, 0);

		if (end == list)
			break;
		(void)mmap((void *)address, 4096, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		list = *end ? end + 1 : end;
	}
}

API cuInit(unsigned int flags)
{
	struct timespec now;

	if (flags)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (!is_started) {
		clock_gettime(CLOCK_REALTIME, &now);
		settings.devices = (int)number("STAND_IN_DEVICES", 1);
		settings.version = (int)number("STAND_IN_DRIVER", 13000);
		settings.compute = (int)number("STAND_IN_COMPUTE", 90);
		settings.memory = number("STAND_IN_MEMORY", (uint64_t)1 << 30);
		settings.own = number("STAND_IN_OWN", 0);
		settings.globals = number("STAND_IN_GLOBALS", 0);
		settings.no_vmm = number("STAND_IN_NO_VMM", 0);
		settings.pageable = number("STAND_IN_PAGEABLE", 0);
		settings.lazy = number("STAND_IN_LAZY", 0);
		settings.hangs = getenv("STAND_IN_HANG");
		settings.hung = getenv("STAND_IN_HUNG");
		settings.name = getenv("STAND_IN_NAME");
		settings.seed = number("STAND_IN_SEED",
				       (uint64_t)now.tv_nsec * 1000003 + (uint64_t)getpid());
		occupy(getenv("STAND_IN_OCCUPIED"));
		is_started = true;
	}
	pthread_mutex_unlock(&lock);
	return settings.devices ? 0 : 100;
}

API cuDriverGetVersion(int *version)
{
	*version = (int)number("STAND_IN_DRIVER", 13000);
	return 0;
}

bool is_device(int device)
{
	return is_started && device >= 0 && device < settings.devices;
}

API cuDeviceGetCount(int *count)
{
	*count = settings.devices;
	return is_started ? 0 : NOT_INITIALIZED;
}

API cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return !is_started ? NOT_INITIALIZED : is_device(ordinal) ? 0 : INVALID_DEVICE;
}

API cuDeviceGetName(char *name, int bytes, int device)
{
	if (!is_device(device))
		return INVALID_DEVICE;
	snprintf(name, (size_t)bytes, "%s", settings.name ? settings.name : "Stand-in H1");
	return 0;
}

API cuDeviceGetUuid_v2(uint8_t *uuid, int device)
{
	for (int i = 0; i < 16; i++)
		uuid[i] = (uint8_t)(i * 17 + device);
	return is_device(device) ? 0 : INVALID_DEVICE;
}

API cuDeviceGetUuid(uint8_t *uuid, int device)
{
	return cuDeviceGetUuid_v2(uuid, device);
}

API cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	*bytes = settings.memory;
	return is_device(device) ? 0 : INVALID_DEVICE;
}

API cuDeviceGetPCIBusId(char *text, int bytes, int device)
{
	snprintf(text, (size_t)bytes, "0000:%02x:00.0", device + 1);
	return is_device(device) ? 0 : INVALID_DEVICE;
}

API cuDeviceCanAccessPeer(int *can, int device, int peer)
{
	*can = device != peer;
	return 0;
}

API cuDeviceGetAttribute(int *value, int attribute, int device)
{
	static const struct {
		int attribute, value;
	} known[] = {
		{ 1, 1024 },       { 2, 1024 },    { 3, 1024 },        { 4, 64 },
		{ 5, 2147483647 }, { 6, 65535 },   { 7, 65535 },       { 8, 49152 },
		{ 9, 65536 },      { 10, 32 },     { 11, 2147483647 }, { 12, 65536 },
		{ 13, 1980000 },   { 14, 512 },    { 16, 132 },        { 31, 1 },
		{ 36, 2619000 },   { 37, 5120 },   { 38, 1048576 },    { 39, 2048 },
		{ 40, 3 },         { 41, 1 },      { 50, 0 },          { 78, 1 },
		{ 79, 1 },         { 80, 1 },      { 81, 233472 },     { 82, 65536 },
		{ 83, 1 },         { 89, 1 },      { 90, 1 },          { 91, 1 },
		{ 95, 1 },         { 97, 232448 }, { 103, 1 },         { 106, 32 },
		{ 115, 1 },        { 122, 1 },     { 124, 1 },
	};

	if (!is_device(device))
		return INVALID_DEVICE;
	*value = 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].attribute == attribute)
			*value = known[i].value;
	}
	if (attribute == 33 || attribute == 34)
		*value = device;
	if (attribute == 75)
		*value = settings.compute / 10;
	if (attribute == 76)
		*value = settings.compute % 10;
	if (attribute == 88)
		*value = settings.pageable;
	if (attribute == 102)
		*value = !settings.no_vmm;
	return attribute > 0 ? 0 : INVALID_VALUE;
}

API cuGetErrorName(int error, const char **name)
{
	static const struct {
		int error;
		const char *name;
	} names[] = {
		{ 0, "CUDA_SUCCESS" },
		{ 1, "CUDA_ERROR_INVALID_VALUE" },
		{ 2, "CUDA_ERROR_OUT_OF_MEMORY" },
		{ 3, "CUDA_ERROR_NOT_INITIALIZED" },
		{ 100, "CUDA_ERROR_NO_DEVICE" },
		{ 200, "CUDA_ERROR_INVALID_IMAGE" },
		{ 201, "CUDA_ERROR_INVALID_CONTEXT" },
		{ 209, "CUDA_ERROR_NO_BINARY_FOR_GPU" },
		{ 400, "CUDA_ERROR_INVALID_HANDLE" },
		{ 500, "CUDA_ERROR_NOT_FOUND" },
		{ 600, "CUDA_ERROR_NOT_READY" },
		{ 700, "CUDA_ERROR_ILLEGAL_ADDRESS" },
		{ 801, "CUDA_ERROR_NOT_SUPPORTED" },
	};

	*name = NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].error == error)
			*name = names[i].name;
	}
	return *name ? 0 : INVALID_VALUE;
}

API cuGetErrorString(int error, const char **text)
{
	return cuGetErrorName(error, text);
}
