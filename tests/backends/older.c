/* SPDX-License-Identifier: Apache-2.0 */
/* A backend built when struct ts_backend ended with `stop`. */
#include <stdint.h>

struct first_backend {
	uint32_t abi, size;
	const char *name, *summary;
	int (*start)(void);
	void (*stop)(void);
};

/* Data after it must not be read. */
static const struct {
	struct first_backend backend;
	uintptr_t behind[16];
} descriptor = {
	{ 1, sizeof(struct first_backend), "older", "for tests", 0, 0 },
	{ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 },
};

extern __typeof__(descriptor) ts_backend
	__attribute__((alias("descriptor"), visibility("default")));
