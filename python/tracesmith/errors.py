# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the library: one class for each kind of failure, all of them ``Error``."""

from __future__ import annotations

__all__ = [
    "BusyError",
    "CanceledError",
    "CapabilityError",
    "Error",
    "FormatError",
    "InvalidError",
    "IOError",
    "NoSpaceError",
    "NotFoundError",
    "TraceWarning",
    "VersionError",
]


class Error(Exception):
    """A call of the library failed. The message says why; ``code`` is the code in error.h."""

    code = 0


class InvalidError(Error, ValueError):
    """An argument is wrong, or a call came out of order."""

    code = -1


class IOError(Error, OSError):  # noqa: A001
    """A system call failed."""

    code = -3


class FormatError(Error, ValueError):
    """A file is damaged, or is not a trace."""

    code = -4


class NotFoundError(Error, LookupError):
    """There is no such file, table, column, process or name."""

    code = -5


class NoSpaceError(Error, OSError):
    """A disk, shared memory or a budget is full."""

    code = -6


class VersionError(Error):
    """The file was written by a later version."""

    code = -7


class CapabilityError(Error):
    """This build or machine does not support the call; the message says what is missing."""

    code = -8


class CanceledError(Error):
    """The progress function canceled the call."""

    code = -9


class BusyError(Error):
    """Another process uses it."""

    code = -10


class TraceWarning(UserWarning):
    """A trace can be used, but is damaged, incomplete or still being written."""


_BY_CODE = {
    kind.code: kind
    for kind in (
        InvalidError,
        IOError,
        FormatError,
        NotFoundError,
        NoSpaceError,
        VersionError,
        CapabilityError,
        CanceledError,
        BusyError,
    )
}


def make(code: int, message: str) -> BaseException:
    """The exception of an error code."""
    if code == -2:
        return MemoryError(message)
    return _BY_CODE.get(code, Error)(message)
