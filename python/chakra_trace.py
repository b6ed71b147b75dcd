# SPDX-License-Identifier: Apache-2.0
"""`from chakra_trace.manager import get_global_manager`, for users of the Chakra trace manager.

A module, not a package, so that an installed package of this name takes precedence.
"""

import sys

from tracesmith.chakra import ChakraTraceManager, get_global_manager, manager

__all__ = ["ChakraTraceManager", "get_global_manager", "manager"]

# Makes `chakra_trace.manager` importable: the same module, with the same global manager.
__path__: list[str] = []
sys.modules[__name__ + ".manager"] = manager
