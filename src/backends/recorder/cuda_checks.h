/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver calls that checks need, loaded at run time. */
#ifndef TS_BACKENDS_RECORDER_CUDA_CHECKS_H
#define TS_BACKENDS_RECORDER_CUDA_CHECKS_H

#include "doctor/doctor.h"

/* PCI ids: vendor NVIDIA, class display. */
#define TS_PCI_NVIDIA 0x10deu
#define TS_PCI_DISPLAY 0x03u

struct ts_cuda {
	int (*init)(unsigned int flags);
	int (*driver_version)(int *version);
	int (*device_count)(int *count);
	int (*device_get)(int *device, int number);
	int (*device_name)(char *name, int bytes, int device);
	int (*device_attribute)(int *value, int attribute, int device);
};

/* False if there is no driver to load; the finding says why. */
bool ts_cuda_load(const struct ts_machine *machine, struct ts_cuda *ret_cuda,
		  struct ts_finding *finding);

/* Loads and initialises the driver. False as above, or if cuInit() fails. */
bool ts_cuda_start(const struct ts_machine *machine, struct ts_cuda *ret_cuda,
		   struct ts_finding *finding);

#endif
