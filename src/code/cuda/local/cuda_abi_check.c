/* SPDX-License-Identifier: Apache-2.0 */
/* Compares cuda_abi.h with NVIDIA's header, where that is installed. */
#include "code/cuda/local/cuda_abi.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_PLACE(ours, member, theirs, their_member)                                             \
	_Static_assert(offsetof(ours, member) == offsetof(theirs, their_member) &&                 \
			       sizeof(((ours *)0)->member) == sizeof(((theirs *)0)->their_member), \
		       #theirs "." #their_member)

SAME_SIZE(struct cuda_launch_attribute, CUlaunchAttribute);
SAME_PLACE(struct cuda_launch_attribute, value, CUlaunchAttribute, value);
SAME_SIZE(struct cuda_launch_config, CUlaunchConfig);
SAME_PLACE(struct cuda_launch_config, stream, CUlaunchConfig, hStream);
SAME_PLACE(struct cuda_launch_config, attribute_count, CUlaunchConfig, numAttrs);
SAME_SIZE(struct cuda_allocation_prop, CUmemAllocationProp);
SAME_PLACE(struct cuda_allocation_prop, location, CUmemAllocationProp, location);
SAME_PLACE(struct cuda_allocation_prop, flags, CUmemAllocationProp, allocFlags);
SAME_SIZE(struct cuda_location, CUmemLocation);
SAME_PLACE(struct cuda_location, id, CUmemLocation, id);
SAME_SIZE(struct cuda_access, CUmemAccessDesc);
SAME_PLACE(struct cuda_access, flags, CUmemAccessDesc, flags);
SAME_SIZE(struct cuda_pool_prop, CUmemPoolProps);
SAME_PLACE(struct cuda_pool_prop, location, CUmemPoolProps, location);
SAME_SIZE(struct cuda_alloc_node, CUDA_MEM_ALLOC_NODE_PARAMS);
SAME_PLACE(struct cuda_alloc_node, bytes, CUDA_MEM_ALLOC_NODE_PARAMS, bytesize);
SAME_PLACE(struct cuda_alloc_node, address, CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
SAME_SIZE(struct cuda_node_params, CUgraphNodeParams);
SAME_PLACE(struct cuda_node_params, alloc, CUgraphNodeParams, alloc);
SAME_PLACE(struct cuda_node_params, free_address, CUgraphNodeParams, free);
SAME_SIZE(struct cuda_copy_2d, CUDA_MEMCPY2D);
SAME_PLACE(struct cuda_copy_2d, to_device, CUDA_MEMCPY2D, dstDevice);
SAME_PLACE(struct cuda_copy_2d, height, CUDA_MEMCPY2D, Height);
SAME_SIZE(struct cuda_copy_3d, CUDA_MEMCPY3D);
SAME_PLACE(struct cuda_copy_3d, from_device, CUDA_MEMCPY3D, srcDevice);
SAME_PLACE(struct cuda_copy_3d, to_device, CUDA_MEMCPY3D, dstDevice);
SAME_PLACE(struct cuda_copy_3d, depth, CUDA_MEMCPY3D, Depth);
SAME_SIZE(struct cuda_copy_3d, CUDA_MEMCPY3D_PEER);
SAME_PLACE(struct cuda_copy_3d, to_device, CUDA_MEMCPY3D_PEER, dstDevice);
#if CUDA_VERSION >= 12080
SAME_SIZE(struct cuda_copy_of_batch, CUDA_MEMCPY3D_BATCH_OP);
SAME_PLACE(struct cuda_copy_of_batch, from.row, CUDA_MEMCPY3D_BATCH_OP, src.op.ptr.rowLength);
SAME_PLACE(struct cuda_copy_of_batch, to.address, CUDA_MEMCPY3D_BATCH_OP, dst.op.ptr.ptr);
SAME_PLACE(struct cuda_copy_of_batch, depth, CUDA_MEMCPY3D_BATCH_OP, extent.depth);
#endif
SAME_SIZE(struct cuda_kernel_node, CUDA_KERNEL_NODE_PARAMS_v2);
SAME_PLACE(struct cuda_kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME_SIZE(struct cuda_fill_node, CUDA_MEMSET_NODE_PARAMS);
SAME_PLACE(struct cuda_fill_node, width, CUDA_MEMSET_NODE_PARAMS, width);
_Static_assert((int)CUDA_LAUNCH_ATTRIBUTE_COOPERATIVE == (int)CU_LAUNCH_ATTRIBUTE_COOPERATIVE, "");
#endif
