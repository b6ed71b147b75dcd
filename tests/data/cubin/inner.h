/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined twice by lines.cu. */
__device__ __forceinline__ float inner(float a, float b)
{
	float s = b;

	for (int i = 0; i < 3; i++)
		s = s * a + b;
	return s;
}
