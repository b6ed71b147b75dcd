# SPDX-License-Identifier: Apache-2.0
# Lets programs that `tracesmith record` starts import the package that is installed with the tool.
# The recorder puts this folder, which holds nothing else, in front of PYTHONPATH (docs/install.md).
#
# If the program's Python has the package, its own takes precedence. Its sitecustomize runs as well.
# This file is valid Python 2, because any interpreter may import it; only 3.9 and later get the
# package.
# mypy: ignore-errors
import os
import sys


def _leave_path():
    """Removes this folder from sys.path; children inherit it in PYTHONPATH."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != folder]
    sys.path_importer_cache.pop(folder, None)
    return os.path.dirname(folder)


def _add_package(package):
    """Adds a finder behind all others, for the names of the package only."""
    from _frozen_importlib_external import spec_from_file_location

    class Finder(object):
        """Finds modules that are installed with the tool, if the program's Python lacks them."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "tracesmith":
                file = os.path.join(package, "__init__.py")
                return spec_from_file_location(name, file, submodule_search_locations=[package])
            if name in ("probing", "chakra_trace"):
                file = os.path.join(os.path.dirname(package), name + ".py")
                return spec_from_file_location(name, file) if os.path.isfile(file) else None
            return None

    sys.meta_path.append(Finder)


def _start(package):
    if sys.version_info < (3, 9):
        return
    try:
        _add_package(package)
        import tracesmith._startup  # noqa: F401
    except Exception as error:
        try:
            sys.stderr.write("tracesmith: cannot start: %r\n" % error)
        except Exception:
            pass


def _chain():
    """Runs the sitecustomize that the program would have run without this one."""
    ours = sys.modules.pop(__name__)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        # The interpreter that imports this file expects an entry.
        sys.modules.setdefault(__name__, ours)
        missing = getattr(error, "name", None) or str(error).replace("No module named ", "")
        if missing != "sitecustomize":
            raise


if __name__ == "sitecustomize":
    _start(_leave_path())
    _chain()
