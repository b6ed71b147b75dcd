# SPDX-License-Identifier: Apache-2.0
"""Stores messages of the module logging as marks."""

from __future__ import annotations

import logging

from ._emit import instant, is_enabled


class LoggingHandler(logging.Handler):
    """Stores each message as a mark named ``log``, with level, logger, message and source line.

        logging.getLogger().addHandler(tracesmith.LoggingHandler())

    With redaction, strings are not stored. While nothing is recorded, a message costs almost
    nothing.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Stores one message."""
        if not is_enabled():
            return
        try:
            args: dict[str, str] = {}
            if record.exc_info and record.exc_info[0]:
                args["exception"] = record.exc_info[0].__qualname__
            instant(
                "log",
                "logging",
                level=record.levelname,
                logger=record.name,
                message=self.format(record) if self.formatter else record.getMessage(),
                source=f"{record.filename}:{record.lineno}",
                **args,
            )
        except Exception:
            self.handleError(record)
