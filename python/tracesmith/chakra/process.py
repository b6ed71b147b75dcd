# SPDX-License-Identifier: Apache-2.0
"""Facts about this process: its recorder and its device."""

from __future__ import annotations

import os
import re
import sys


def recorder_backends() -> list[str] | None:
    """The backends of the `tracesmith record` that records this process; None: there is none."""
    variable = os.environ.get("TRACESMITH_AGENT", "")
    if "session=" not in variable:
        return None
    found = re.search(r"(?:^|;)backends=([^;]*)", variable)
    return found.group(1).split(",") if found else []


def synchronize_cuda() -> None:
    """Waits for the device, if this process uses one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
