/* SPDX-License-Identifier: Apache-2.0 */
/* Built-in backends, and external libraries, including those of an older interface. */
#include "backends/recorder/backend_table.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/runner.h"

/* Once loaded by its path, it is found by its name. */
static void load_by_path(const char *folder, const char *name)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s/libtracesmith-backend-%s.so", getenv("TS_BUILD"),
		 folder, name);
	if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
		ts_test_fail(__FILE__, __LINE__, "%s", dlerror());
}

TS_TEST(built_in_backends_are_listed)
{
	const struct ts_known_backend *known, *cuda = ts_backend_find("cuda");

	TS_CHECK(cuda && cuda->is_built_in && !cuda->folder[0]);
	for (size_t i = 0; (known = ts_backend_known(i)); i++) {
		TS_CHECK_INT(known->backend.abi, TS_BACKEND_ABI);
		TS_CHECK(known->backend.summary != NULL);
		TS_CHECK(known->backend.checks && known->backend.checks[0].id);
		TS_CHECK(ts_backend_find(known->backend.name) == known);
	}
	TS_CHECK(!ts_backend_find("none"));
}

TS_TEST(windows_belong_to_backends)
{
	const struct ts_backend_window *window;

	TS_CHECK(ts_backend_of_window("nvtx:step", &window) == ts_backend_find("cuda"));
	TS_CHECK_STR(window->name, "nvtx");
	TS_CHECK(ts_backend_of_window("cuda-profiler-api", &window) != NULL);
	TS_CHECK(!ts_backend_of_window("cuda-profiler-api:x", &window));
	TS_CHECK(!ts_backend_of_window("nvtx", &window));
	TS_CHECK(!ts_backend_of_window("always", &window));
}

TS_TEST(names_in_a_list)
{
	TS_CHECK(ts_backend_is_listed("host,cuda", "cuda"));
	TS_CHECK(!ts_backend_is_listed("host,cudax", "cuda"));
	TS_CHECK(!ts_backend_is_listed("", "cuda"));
	TS_CHECK(!ts_backend_is_listed(NULL, "cuda"));
}

TS_TEST(missing_library_is_an_error)
{
	const struct ts_known_backend *known = NULL;
	struct ts_error err;

	TS_CHECK_INT(ts_backend_load("nosuch", &known, &err), TS_ENOTFOUND);
	TS_CHECK(strstr(err.message, "no backend or metric source 'nosuch': ") == err.message);
	TS_CHECK_INT(ts_backend_load("../cuda", &known, &err), TS_ENOTFOUND);
	TS_CHECK(!known);
}

TS_TEST(older_library_lacks_newer_fields)
{
	const struct ts_known_backend *known, *again;
	struct ts_error err;

	load_by_path("tests/backends", "older");
	TS_CHECK_INT(ts_backend_load("older", &known, &err), TS_OK);
	TS_CHECK_STR(known->backend.summary, "for tests");
	TS_CHECK(!known->is_built_in && strstr(known->folder, "/tests/backends"));
	TS_CHECK(!known->backend.metrics && !known->backend.flags && !known->backend.preload);
	TS_CHECK(!known->backend.options && !known->backend.windows && !known->backend.checks);
	TS_CHECK(!known->backend.environment && !known->backend.summarize);
	TS_CHECK_INT(ts_backend_load("older", &again, &err), TS_OK);
	TS_CHECK(again == known);
}
