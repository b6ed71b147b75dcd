/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and stops backends: built-in ones, whose table is in agent_load.c, and external ones. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <tracesmith/backend.h>

#include "agent/tracer.h"

#define BACKENDS_AT_MOST 16

static const struct ts_backend *started[BACKENDS_AT_MOST];
static unsigned int started_count;
static bool is_paused; /* they have been stopped, and may be started again */

/* The n-th built-in backend, or NULL. */
static const struct ts_backend *ours(size_t n)
{
	return agent_backends ? agent_backends[n] : NULL;
}

/* Length of the folder part of the path of the mapped file; 0: unknown. */
static size_t folder_of(const void *address, const char **ret_path)
{
	const char *name;
	Dl_info info;

	if (!dladdr(address, &info) || !info.dli_fname)
		return 0;
	*ret_path = info.dli_fname;
	name = strrchr(info.dli_fname, '/');
	return name ? (size_t)(name - info.dli_fname) : 0;
}

/* True if it is built in, or from a library next to the agent. */
static bool is_ours(const struct ts_backend *backend)
{
	const char *theirs, *started_folder;
	size_t length = folder_of(backend, &theirs);

	for (size_t i = 0; ours(i); i++)
		if (ours(i) == backend)
			return true;
	return length && length == folder_of(&started, &started_folder) &&
	       !memcmp(theirs, started_folder, length);
}

static const struct ts_backend *find(const char *name)
{
	char file[128];
	void *library;

	for (size_t i = 0; ours(i); i++)
		if (!strcmp(ours(i)->name, name))
			return ours(i);
	snprintf(file, sizeof(file), "libtracesmith-backend-%s.so", name);
	library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	return library ? dlsym(library, "ts_backend") : NULL;
}

/* Prints nothing: the trace says which backends run, and why others do not. */
static void note_outcome(const char *name, const char *outcome)
{
	struct ts_emit_arg args[] = {
		{ "backend", TS_EMIT_STRING, { .string = name } },
		{ "outcome", TS_EMIT_STRING, { .string = outcome } },
	};

	ts_tracer_instant(&ts_process_tracer, "backend", "tracesmith", TS_TRACK_THREAD, args, 2);
}

static void start_one(const char *name)
{
	const struct ts_backend *backend = find(name);

	if (!backend) {
		const char *why = dlerror();

		note_outcome(name, why ? why : "not found");
	} else if (backend->abi != TS_BACKEND_ABI ||
		   backend->size < offsetof(struct ts_backend, metrics)) {
		note_outcome(name, "was built for another version of the backend interface");
	} else if (started_count == BACKENDS_AT_MOST) {
		note_outcome(name, "too many backends");
	} else if (!backend->start) {
		note_outcome(name, "found nothing to trace");
	} else if (backend->start()) {
		note_outcome(name, "declined to start");
	} else {
		started[started_count++] = backend;
		/* Ours are there in every program, and report when there is something for
		 * them. */
		if (!is_ours(backend))
			note_outcome(name, "started");
	}
}

/* Starts one that runs already again, for another recording. False: it does not run. */
static bool restart(const char *name)
{
	for (unsigned int i = 0; i < started_count; i++) {
		if (strcmp(started[i]->name, name) != 0)
			continue;
		if (started[i]->stop && !is_paused)
			started[i]->stop();
		started[i]->start();
		return true;
	}
	return false;
}

void agent_add_backends(const char *list)
{
	char name[64];

	while (*list) {
		size_t length = strcspn(list, ",");

		if (length && length < sizeof(name)) {
			memcpy(name, list, length);
			name[length] = 0;
			if (!restart(name))
				start_one(name);
		}
		list += length + (list[length] == ',');
	}
	is_paused = false;
}

void agent_pause_backends(void)
{
	for (unsigned int i = started_count; i-- > 0 && !is_paused;)
		if (started[i]->stop)
			started[i]->stop();
	is_paused = true;
}

void agent_start_backends(const char *list)
{
	started_count = 0;
	agent_add_backends(list);
}

void agent_stop_backends(void)
{
	while (started_count) {
		const struct ts_backend *backend = started[--started_count];

		if (backend->stop && !is_paused)
			backend->stop();
	}
}
