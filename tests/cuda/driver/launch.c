/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: launches. */
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/modules.h"

int launch_pack(struct launch *launch, void **params, void **extra)
{
	struct function *function = launch->function;

	launch->params = calloc(1, function->param_bytes + 1);
	if (extra) {
		const void *buffer = NULL;
		size_t bytes = 0;

		for (size_t i = 0; extra[i] != CUDA_LAUNCH_PARAM_END; i += 2) {
			if (extra[i] == CUDA_LAUNCH_PARAM_BUFFER_POINTER)
				buffer = extra[i + 1];
			else if (extra[i] == CUDA_LAUNCH_PARAM_BUFFER_SIZE)
				bytes = *(size_t *)extra[i + 1];
			else
				return INVALID_VALUE;
		}
		if (params || bytes < function->param_bytes)
			return INVALID_VALUE;
		memcpy(launch->params, buffer, function->param_bytes);
		return 0;
	}
	if (!params && function->param_count)
		return INVALID_VALUE;
	for (uint32_t i = 0; i < function->param_count; i++)
		memcpy(launch->params + function->offsets[i], params[i], function->sizes[i]);
	return 0;
}

#define ATTRIBUTE_PROGRAMMATIC_EVENT 7 /* CUlaunchAttributeID */
#define ATTRIBUTE_COMPLETION_EVENT 12

static int launch_on(struct stream *on, void *handle, const struct cuda_launch_config *config,
		     void **params, void **extra)
{
	struct op op = { .kind = OP_LAUNCH };
	int error;

	if (!on)
		return current_context() ? INVALID_HANDLE : INVALID_CONTEXT;
	op.launch.function = function_of(handle);
	if (!op.launch.function)
		return INVALID_HANDLE;
	for (int i = 0; i < 3; i++) {
		if (!config->grid[i] || !config->block[i])
			return INVALID_VALUE;
	}
	if (config->block[0] * config->block[1] * config->block[2] > 1024 ||
	    config->attribute_count > 16)
		return INVALID_VALUE;
	if (config->shared_bytes > (uint32_t)op.launch.function->attributes[8])
		return INVALID_VALUE;
	for (int i = 0; i < 3; i++) {
		int cluster = op.launch.function->attributes[11 + i];

		if (cluster && config->grid[i] % (unsigned int)cluster)
			return INVALID_CLUSTER_SIZE;
	}
	if (!op.launch.function->code)
		return LAUNCH_FAILED;
	op.launch.function->module->is_loaded = true;
	memcpy(op.launch.grid, config->grid, sizeof(op.launch.grid));
	memcpy(op.launch.block, config->block, sizeof(op.launch.block));
	op.launch.shared = config->shared_bytes;
	if (!strcmp(op.launch.function->name, "take_structure"))
		current_context()->prints = true;
	op.launch.attribute_count = config->attribute_count;
	if (config->attribute_count)
		memcpy(op.launch.attributes, config->attributes,
		       config->attribute_count * sizeof(op.launch.attributes[0]));
	error = launch_pack(&op.launch, params, extra);
	if (error) {
		op_release(&op);
		return error;
	}
	error = submit(on, &op);
	for (uint32_t i = 0; i < config->attribute_count && !error; i++) {
		const struct cuda_launch_attribute *attribute = &config->attributes[i];
		void *event;

		memcpy(&event, attribute->value, sizeof(event));
		if (attribute->id == ATTRIBUTE_PROGRAMMATIC_EVENT ||
		    attribute->id == ATTRIBUTE_COMPLETION_EVENT)
			error = record_of_launch(on, event);
	}
	return error;
}

static const struct cuda_launch_config *config_of(struct cuda_launch_config *config,
						  const unsigned int *numbers, bool is_cooperative)
{
	static const struct cuda_launch_attribute cooperative = {
		.id = CUDA_LAUNCH_ATTRIBUTE_COOPERATIVE,
		.value = { 1 },
	};

	memset(config, 0, sizeof(*config));
	memcpy(config->grid, numbers, sizeof(config->grid));
	memcpy(config->block, numbers + 3, sizeof(config->block));
	config->shared_bytes = numbers[6];
	if (is_cooperative) {
		config->attributes = &cooperative;
		config->attribute_count = 1;
	}
	return config;
}

#define NUMBERS                                                                              \
	unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, \
		unsigned int bz, unsigned int shared

#define LAUNCH(suffix, is_per_thread)                                                         \
	API cuLaunchKernel##suffix(void *function, NUMBERS, void *stream, void **params,      \
				   void **extra)                                              \
	{                                                                                     \
		struct cuda_launch_config config;                                             \
		const unsigned int numbers[] = { gx, gy, gz, bx, by, bz, shared };            \
                                                                                              \
		return launch_on(stream_of(stream, is_per_thread), function,                  \
				 config_of(&config, numbers, false), params, extra);          \
	}                                                                                     \
	API cuLaunchCooperativeKernel##suffix(void *function, NUMBERS, void *stream,          \
					      void **params)                                  \
	{                                                                                     \
		struct cuda_launch_config config;                                             \
		const unsigned int numbers[] = { gx, gy, gz, bx, by, bz, shared };            \
                                                                                              \
		return launch_on(stream_of(stream, is_per_thread), function,                  \
				 config_of(&config, numbers, true), params, NULL);            \
	}                                                                                     \
	API cuLaunchKernelEx##suffix(const struct cuda_launch_config *config, void *function, \
				     void **params, void **extra)                             \
	{                                                                                     \
		return launch_on(stream_of(config->stream, is_per_thread), function, config,  \
				 params, extra);                                              \
	}
LAUNCH(, false)
LAUNCH(_ptsz, true)
