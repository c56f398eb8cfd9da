"""multikernel: learn how to combine kernels and data sources.

>>> import multikernel as mk
>>> from sklearn.datasets import load_wine
>>> X, y = load_wine(return_X_y=True)
>>> mk.MultiKernelClassifier().fit(X, y).score(X, y)
1.0
"""

# scikit-learn and numba take more than a second to import, so the package itself imports nothing:
# the first use of a public name imports all of them. A new public name goes into `_public`, a new
# public module into `_MODULES`. `datasets` is a module of the source checkout: see `_checkout`.

import importlib as _importlib
import typing as _typing

from ._version import __version__

if _typing.TYPE_CHECKING:
    from . import bounds as bounds
    from . import report as report
    from . import rows as rows
    from ._public import *  # noqa: F403
    from .report import plots as plot

#: Public modules, each imported at first use.
_MODULES = {
    "bounds": "bounds",
    "plot": "report.plots",
    "report": "report",
    "rows": "rows",
}


def __getattr__(name: str) -> _typing.Any:
    if name in _MODULES:
        return _importlib.import_module(f".{_MODULES[name]}", __name__)
    if name == "datasets":
        from ._checkout import import_experiments

        return import_experiments("datasets")
    # Tools probe names with a leading underscore; do not trigger imports for them.
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    public = _importlib.import_module("._public", __name__)
    if name == "__all__":
        from ._checkout import has_experiments

        # `from multikernel import *` imports all of these names, so all of them must exist.
        in_checkout = ["datasets"] if has_experiments() else []
        return [*public.__all__, *_MODULES, *in_checkout]
    if name not in public.__all__:
        import difflib

        close = difflib.get_close_matches(name, public.__all__, 1)
        hint = f". Did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    value = globals()[name] = getattr(public, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
