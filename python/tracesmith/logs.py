# SPDX-License-Identifier: Apache-2.0
"""Messages of the module logging as marks of a recording."""

from __future__ import annotations

import logging

from ._emit import instant, is_enabled


class LoggingHandler(logging.Handler):
    """Stores each message as a mark named ``log``, with its level, logger, message and place.

        logging.getLogger().addHandler(tracesmith.LoggingHandler())

    With redaction, texts are not stored. While nothing records, a message costs almost nothing.
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
