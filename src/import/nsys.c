/* SPDX-License-Identifier: Apache-2.0 */
/* To come. */
#include "import/sqlite.h"

int ts_nsys_read(struct ts_sqlite *db, struct ts_error *err)
{
	return ts_error_set(err, TS_ECAP, "input '%s': not built yet", db->import->path);
}
