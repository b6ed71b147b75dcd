/* SPDX-License-Identifier: Apache-2.0 */
/* The table of built-in backends, and the loader of others. */
#include "backends/recorder/backend_table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const struct ts_backend *const built_in[] = {
	&ts_cuda_descriptor,
	&ts_opencl_descriptor,
};

#define LOADED_AT_MOST 16
#define KNOWN_AT_MOST (TS_ARRAY_SIZE(built_in) + LOADED_AT_MOST)

/* Never shrinks. Entries below `known_count` do not change, so readers need no lock. */
static struct ts_known_backend *known[KNOWN_AT_MOST];
static size_t known_count;
static struct ts_known_backend built_in_entries[TS_ARRAY_SIZE(built_in)];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Older libraries have a shorter struct. */
static void copy_descriptor(struct ts_known_backend *entry, const struct ts_backend *backend)
{
	memcpy(&entry->backend, backend, TS_MIN(backend->size, sizeof(entry->backend)));
}

static void add_built_in(void)
{
	for (size_t i = 0; i < TS_ARRAY_SIZE(built_in); i++) {
		copy_descriptor(&built_in_entries[i], built_in[i]);
		built_in_entries[i].is_built_in = true;
		known[i] = &built_in_entries[i];
	}
	__atomic_store_n(&known_count, TS_ARRAY_SIZE(built_in), __ATOMIC_RELEASE);
}

const struct ts_known_backend *ts_backend_known(size_t n)
{
	pthread_once(&once, add_built_in);
	return n < __atomic_load_n(&known_count, __ATOMIC_ACQUIRE) ? known[n] : NULL;
}

const struct ts_known_backend *ts_backend_find(const char *name)
{
	const struct ts_known_backend *entry;

	for (size_t i = 0; (entry = ts_backend_known(i)); i++)
		if (!strcmp(entry->backend.name, name))
			return entry;
	return NULL;
}

/* ---- libraries ---- */

static void find_folder(const struct ts_backend *backend, struct ts_known_backend *entry)
{
	Dl_info info;
	char *slash;

	if (!dladdr(backend, &info) || !info.dli_fname)
		return;
	if (info.dli_fname[0] == '/') {
		snprintf(entry->folder, sizeof(entry->folder), "%.1000s", info.dli_fname);
	} else {
		TS_AUTO_FREE char *absolute = realpath(info.dli_fname, NULL);

		snprintf(entry->folder, sizeof(entry->folder), "%.1000s", absolute ? absolute : "");
	}
	slash = strrchr(entry->folder, '/');
	if (slash)
		*slash = '\0';
}

static int open_library(const char *name, const struct ts_backend **ret_backend,
			struct ts_error *err)
{
	char file[128];
	void *library;
	const char *why;

	snprintf(file, sizeof(file), "libtracesmith-backend-%.64s.so", name);
	library = strchr(name, '/') ? NULL : dlopen(file, RTLD_NOW | RTLD_LOCAL);
	*ret_backend = library ? dlsym(library, "ts_backend") : NULL;
	why = *ret_backend ? NULL : dlerror();
	if (!*ret_backend) {
		ts_error_set(err, TS_ENOTFOUND, "no backend or metric source '%s': %s", name,
			     why ? why : "it is not built in");
		return TS_ENOTFOUND; /* the analyzer does not know what ts_error_set() returns */
	}
	if ((*ret_backend)->abi != TS_BACKEND_ABI ||
	    (*ret_backend)->size < offsetof(struct ts_backend, metrics))
		return ts_error_set(err, TS_ECAP,
				    "backend '%s' was built for another version of the interface",
				    name);
	return TS_OK;
}

static int add_library(const char *name, struct ts_error *err)
{
	const struct ts_backend *backend;
	struct ts_known_backend *entry;
	size_t count = known_count;
	int rc = open_library(name, &backend, err);

	if (rc)
		return rc;
	if (count == KNOWN_AT_MOST)
		return ts_error_set(err, TS_ECAP, "more than %d backends", LOADED_AT_MOST);
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return ts_error_set(err, TS_ENOMEM, "no memory");
	copy_descriptor(entry, backend);
	/* Found by this name, whatever it calls itself. */
	if (!entry->backend.name || strcmp(entry->backend.name, name) != 0)
		entry->backend.name = strdup(name);
	find_folder(backend, entry);
	known[count] = entry;
	__atomic_store_n(&known_count, count + 1, __ATOMIC_RELEASE);
	return TS_OK;
}

int ts_backend_load(const char *name, const struct ts_known_backend **ret_known,
		    struct ts_error *err)
{
	int rc = TS_OK;

	ts_backend_known(0);
	pthread_mutex_lock(&lock);
	if (!ts_backend_find(name))
		rc = add_library(name, err);
	pthread_mutex_unlock(&lock);
	if (!rc)
		*ret_known = ts_backend_find(name);
	return rc;
}

/* ---- lookup ---- */

bool ts_backend_is_listed(const char *list, const char *name)
{
	while (list && *list) {
		size_t length = strcspn(list, ",");

		if (length == strlen(name) && !memcmp(list, name, length))
			return true;
		list += length + (list[length] == ',');
	}
	return false;
}

static bool is_window(const struct ts_backend_window *window, const char *text)
{
	size_t length = strlen(window->name);

	return !strncmp(text, window->name, length) && text[length] == (window->argument ? ':' : 0);
}

const struct ts_known_backend *ts_backend_of_window(const char *text,
						    const struct ts_backend_window **ret_window)
{
	const struct ts_known_backend *entry;

	for (size_t i = 0; (entry = ts_backend_known(i)); i++) {
		const struct ts_backend_window *window = entry->backend.windows;

		for (; window && window->name; window++) {
			if (!is_window(window, text))
				continue;
			*ret_window = window;
			return entry;
		}
	}
	return NULL;
}
