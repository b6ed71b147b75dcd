# SPDX-License-Identifier: Apache-2.0
"""Records PyTorch execution traces of a running program while a flag file exists.

    from tracesmith.chakra import get_global_manager

    manager = get_global_manager()
    for batch in batches:
        manager.tick_by_flag()  # records while /tmp/vllm_chakra_trace_on exists
        train(batch)
"""

from __future__ import annotations

from .manager import ChakraTraceManager, get_global_manager
from .settings import Settings

__all__ = ["ChakraTraceManager", "Settings", "get_global_manager"]
