/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers, generated from cuda_calls.def and exported under the driver's own names. Arguments
 * are machine words; cuda_calls.c interprets them.
 */
#include "backends/cuda/calls/cuda_calls.h"

#define W uintptr_t
#define TYPES_0 void
#define TYPES_1 W
#define TYPES_2 W, W
#define TYPES_3 W, W, W
#define TYPES_4 W, W, W, W
#define TYPES_5 TYPES_4, W
#define TYPES_6 TYPES_4, W, W
#define TYPES_7 TYPES_4, W, W, W
#define TYPES_8 TYPES_4, TYPES_4
#define TYPES_9 TYPES_8, W
#define TYPES_10 TYPES_8, W, W
#define TYPES_11 TYPES_8, W, W, W

#define PARAMETERS_0 void
#define PARAMETERS_1 W a
#define PARAMETERS_2 W a, W b
#define PARAMETERS_3 W a, W b, W c
#define PARAMETERS_4 W a, W b, W c, W d
#define PARAMETERS_5 PARAMETERS_4, W e
#define PARAMETERS_6 PARAMETERS_4, W e, W f
#define PARAMETERS_7 PARAMETERS_4, W e, W f, W g
#define PARAMETERS_8 PARAMETERS_4, W e, W f, W g, W h
#define PARAMETERS_9 PARAMETERS_8, W i
#define PARAMETERS_10 PARAMETERS_8, W i, W j
#define PARAMETERS_11 PARAMETERS_8, W i, W j, W k

#define ARGUMENTS_0
#define ARGUMENTS_1 a
#define ARGUMENTS_2 a, b
#define ARGUMENTS_3 a, b, c
#define ARGUMENTS_4 a, b, c, d
#define ARGUMENTS_5 ARGUMENTS_4, e
#define ARGUMENTS_6 ARGUMENTS_4, e, f
#define ARGUMENTS_7 ARGUMENTS_4, e, f, g
#define ARGUMENTS_8 ARGUMENTS_4, e, f, g, h
#define ARGUMENTS_9 ARGUMENTS_8, i
#define ARGUMENTS_10 ARGUMENTS_8, i, j
#define ARGUMENTS_11 ARGUMENTS_8, i, j, k

#define VALUES_0 0
#define VALUES_1 ARGUMENTS_1
#define VALUES_2 ARGUMENTS_2
#define VALUES_3 ARGUMENTS_3
#define VALUES_4 ARGUMENTS_4
#define VALUES_5 ARGUMENTS_5
#define VALUES_6 ARGUMENTS_6
#define VALUES_7 ARGUMENTS_7
#define VALUES_8 ARGUMENTS_8
#define VALUES_9 ARGUMENTS_9
#define VALUES_10 ARGUMENTS_10
#define VALUES_11 ARGUMENTS_11

/*
 * The exported name is set in assembler: the compiler knows some of these functions and would
 * complain about the types. While nothing is recorded, a wrapper jumps to the driver, or passes the
 * gate of replayable windows on its way; the rest is in a separate function.
 */
#define CUDA_CALL(name, arguments, class, number, stream, replay)                                 \
	typedef int (*type_##name)(TYPES_##arguments);                                            \
	__attribute__((visibility("default"))) int wrapped_##name(TYPES_##arguments) __asm__(     \
		#name);                                                                           \
	static __attribute__((noinline)) int recorded_##name(PARAMETERS_##arguments)              \
	{                                                                                         \
		struct cuda_call *call = &cuda_calls[CUDA_INDEX_##name];                          \
		type_##name real = (type_##name)(void *)cuda_call_real(call);                     \
		struct cuda_call_state state;                                                     \
		int result;                                                                       \
                                                                                                  \
		if (cuda_may_replay(CUDA_REPLAY_##replay))                                        \
			return cuda_capture_call(                                                 \
				call, (uintptr_t[CUDA_ARGUMENTS_AT_MOST]){ VALUES_##arguments }); \
		if (!cuda_class_may_count(CUDA_##class) || !cuda_call_counts())                   \
			return real(ARGUMENTS_##arguments);                                       \
		cuda_call_enter(call, &state);                                                    \
		result = real(ARGUMENTS_##arguments);                                             \
		cuda_call_leave(call, &state, (const uintptr_t[]){ VALUES_##arguments }, result); \
		return result;                                                                    \
	}                                                                                         \
	int wrapped_##name(PARAMETERS_##arguments)                                                \
	{                                                                                         \
		type_##name real = (type_##name)(void *)__atomic_load_n(                          \
			&cuda_calls[CUDA_INDEX_##name].real, __ATOMIC_ACQUIRE);                   \
                                                                                                  \
		if (cuda_may_replay(CUDA_REPLAY_##replay)) {                                      \
			if (cuda_may_pass(CUDA_##class, CUDA_REPLAY_##replay) && real &&          \
			    cuda_passes(&cuda_calls[CUDA_INDEX_##name])) {                        \
				int result = real(ARGUMENTS_##arguments);                         \
                                                                                                  \
				cuda_passed();                                                    \
				return result;                                                    \
			}                                                                         \
			cuda_thread.caller = __builtin_return_address(0);                         \
			return recorded_##name(ARGUMENTS_##arguments);                            \
		}                                                                                 \
		if (cuda_class_may_count(CUDA_##class) || !real)                                  \
			return recorded_##name(ARGUMENTS_##arguments);                            \
		return real(ARGUMENTS_##arguments);                                               \
	}
#include "backends/cuda/calls/cuda_calls.def"

struct cuda_call cuda_calls[CUDA_CALL_COUNT] = {
#define CUDA_CALL(name_, arguments_, class_, number_, stream_, replay_)             \
	[CUDA_INDEX_##name_] = { .name = #name_,                                    \
				 .class = CUDA_##class_,                            \
				 .replay = CUDA_REPLAY_##replay_,                   \
				 .arguments = arguments_,                           \
				 .stream = stream_,                                 \
				 .number = number_,                                 \
				 .wrapper = (cuda_function)(void *)wrapped_##name_, \
				 .site = TS_CALL_SITE(#name_, "cuda") },
#include "backends/cuda/calls/cuda_calls.def"
};
