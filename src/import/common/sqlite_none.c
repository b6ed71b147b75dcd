/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for src/import/common/sqlite.c in builds without SQLite. */
#include "import/import.h"

int ts_sqlite_run(struct ts_import *import, struct ts_error *err)
{
	return ts_error_set(
		err, TS_ECAP,
		"input '%s': this build has no SQLite support; install libsqlite3-dev and rebuild",
		import->path);
}
