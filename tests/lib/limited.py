# SPDX-License-Identifier: Apache-2.0
"""limited.py [--rss MIB] [--as MIB] COMMAND...: runs a command with at most this much address
space, and fails with exit code 99 if its resident memory exceeded the limit. Otherwise returns
the exit code of the command, 128 + signal if it was killed.
"""
import os
import resource
import sys


def main():
    arguments, limits = sys.argv[1:], {}
    while arguments[0] in ("--rss", "--as"):
        limits[arguments[0]] = int(arguments[1])
        arguments = arguments[2:]
    child = os.fork()
    if child == 0:
        if "--as" in limits:
            resource.setrlimit(resource.RLIMIT_AS, (limits["--as"] << 20,) * 2)
        try:
            os.execvp(arguments[0], arguments)
        except OSError as error:
            print(f"limited: {arguments[0]}: {error}", file=sys.stderr)
            os._exit(127)
    _, status, usage = os.wait4(child, 0)
    resident = usage.ru_maxrss // 1024
    print(f"{' '.join(arguments[1:3])}: {resident} MiB resident, {usage.ru_utime + usage.ru_stime:.1f} s", file=sys.stderr)
    if resident > limits.get("--rss", resident):
        print(f"limited: more than {limits['--rss']} MiB", file=sys.stderr)
        return 99
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
