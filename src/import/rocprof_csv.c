/* SPDX-License-Identifier: Apache-2.0 */
/* To come. */
#include "import/import.h"

int ts_rocprof_csv_probe(const char *data, size_t bytes)
{
	return 0;
}

int ts_rocprof_csv_run(struct ts_import *import, struct ts_error *err)
{
	return ts_error_set(err, TS_ECAP, "input '%s': not built yet", import->path);
}
