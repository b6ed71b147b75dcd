/* SPDX-License-Identifier: Apache-2.0 */
/* Magic of a SQLite database; also used by builds without SQLite. */
#include <string.h>

#include "import/import.h"

int ts_sqlite_probe(const char *data, size_t bytes)
{
	static const char magic[16] = "SQLite format 3";

	return bytes >= sizeof(magic) && !memcmp(data, magic, sizeof(magic));
}
