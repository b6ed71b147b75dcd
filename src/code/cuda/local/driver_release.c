/* SPDX-License-Identifier: Apache-2.0 */
#include "code/cuda/local/driver_release.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libcuda.so."

bool ts_driver_release(const void *function, char *release, size_t bytes)
{
	char path[PATH_MAX];
	const char *name;
	Dl_info info;

	release[0] = '\0';
	if (!function || !dladdr(function, &info) || !info.dli_fname ||
	    !realpath(info.dli_fname, path))
		return false;
	name = strrchr(path, '/');
	if (!name || strncmp(name + 1, LIBRARY, strlen(LIBRARY)) != 0)
		return false;
	name += 1 + strlen(LIBRARY);
	if (!strchr(name, '.') || strlen(name) >= bytes ||
	    strspn(name, "0123456789.") != strlen(name))
		return false;
	memcpy(release, name, strlen(name) + 1);
	return true;
}
