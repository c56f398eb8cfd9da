"""Hides the packages of an optional extra, in this process and in all that it starts.

With this folder on ``PYTHONPATH``, ``MULTIKERNEL_WITHOUT=plot`` makes an interpreter that has no
matplotlib: ``make test-without`` runs the suite so, without building environments.
``MULTIKERNEL_WITHOUT=all`` hides every one of them.
"""

import os
from importlib.machinery import PathFinder

#: The packages that tell whether an extra is there.
PACKAGES = {
    "plot": ("matplotlib",),
    "sequences": ("rapidfuzz",),
    "sdp": ("clarabel",),
    "tables": ("pyarrow",),
    "excel": ("openpyxl",),
    "cluster": ("dask", "distributed"),
    "gpu": ("torch", "triton"),
    "pandas": ("pandas", "dask", "distributed"),
}

PACKAGES["all"] = tuple(sorted({name for names in PACKAGES.values() for name in names}))

HIDDEN = PACKAGES.get(os.environ.get("MULTIKERNEL_WITHOUT", ""), ())
_find = PathFinder.find_spec


class _Finder(PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname.partition(".")[0] in HIDDEN:
            return None
        return _find(fullname, path, target)


PathFinder.find_spec = _Finder.find_spec
