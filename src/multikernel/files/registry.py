"""The classes that a model file may name, each with the way it is stored and rebuilt.

The library's own classes are listed in :mod:`.types`; engines add theirs with :func:`register`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from .._archive import ModelFileError

State = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class StoredClass:
    """A class that model files may hold.

    Attributes
    ----------
    cls : type
    name : str
        Its name in model files.
    state : function of an object
        The attributes to store.
    rebuild : function of attributes
        The object with these attributes; a ValueError says what does not fit.
    """

    cls: type
    name: str
    state: Callable[[Any], State]
    rebuild: Callable[[State], Any]


_BY_NAME: dict[str, StoredClass] = {}
_BY_CLASS: dict[type, StoredClass] = {}


def register(
    cls: type,
    name: str | None = None,
    *,
    state: Callable[[Any], State] | None = None,
    from_state: Callable[[State], Any] | None = None,
) -> type:
    """Allow model files to contain objects of a class, such as the expansions of an engine.

    Objects are stored by the attributes that ``cls.state(self)`` returns and rebuilt by
    ``cls.from_state(attributes)``; :class:`multikernel.grams.protocol.Expansion` has defaults for
    both. Attributes may be numbers, strings, arrays, lists, tuples, dictionaries, kernels and
    objects of registered classes. Register in the module that defines the class, which must be
    imported before a file is loaded.

    Parameters
    ----------
    cls : type
    name : str, optional
        The permanent name of the class in model files; by default the name of the class.
    state, from_state : callable, optional
        Used instead of the methods of the class.

    Returns
    -------
    cls : type
        So that it can be used as a decorator.
    """
    name = cls.__name__ if name is None else name
    known = _BY_NAME.get(name)
    if known is not None and not _is_new_version(cls, known.cls):
        raise ValueError(
            f"Model files already use the name {name!r} for "
            f"{known.cls.__module__}.{known.cls.__qualname__}. Pass another name, such as "
            f"name='{cls.__module__}.{cls.__qualname__}'."
        )
    default_state, default_rebuild = _methods(cls, name)
    one = StoredClass(cls, name, state or default_state, from_state or default_rebuild)
    _BY_NAME[name] = _BY_CLASS[cls] = one
    return cls


def _is_new_version(cls: type, known: type) -> bool:
    """Whether a class was defined again in the same place, as when a notebook cell is run twice."""
    return (cls.__module__, cls.__qualname__) == (known.__module__, known.__qualname__)


def by_name(name: str) -> StoredClass | None:
    """The class with this name in model files; None if there is none."""
    _know_library()
    return _BY_NAME.get(name)


def by_class(cls: type) -> StoredClass | None:
    """The entry of exactly this class; None if it is not registered, even if a base class is."""
    _know_library()
    return _BY_CLASS.get(cls)


def _know_library() -> None:
    from . import types  # noqa: F401  (registers the library's classes when it is first imported)


def _methods(cls: Any, name: str) -> tuple[Callable[[Any], State], Callable[[State], Any]]:
    """Default functions that store and rebuild objects of a class."""
    if hasattr(cls, "state") and hasattr(cls, "from_state"):
        return cls.state, cls.from_state

    def rebuild(found: State) -> Any:
        instance = cls.__new__(cls)
        instance.__dict__.update(found)
        return instance

    from sklearn.base import BaseEstimator

    if issubclass(cls, BaseEstimator):
        # Not __getstate__, to which scikit-learn adds its version.
        return _attributes, lambda found: rebuild(_with_defaults(cls, name, found))
    if dataclasses.is_dataclass(cls):
        fields = [field.name for field in dataclasses.fields(cls)]

        def rebuild_fields(found: State) -> Any:
            _refuse_other_parts(name, set(fields).symmetric_difference(found))
            return rebuild(found)

        return lambda value: {key: getattr(value, key) for key in fields}, rebuild_fields
    return _attributes, rebuild


def _attributes(value: Any) -> State:
    # An estimator may hold more than a file needs.
    if hasattr(value, "_stored_attributes"):
        return value._stored_attributes()  # type: ignore[no-any-return]
    return dict(vars(value))


def _with_defaults(cls: Any, name: str, found: State) -> State:
    """The attributes of an estimator; parameters missing from its file get their defaults."""
    parameters = inspect.signature(cls.__init__).parameters
    missing = set(cls._get_param_names()) - found.keys()
    without = {key for key in missing if parameters[key].default is inspect.Parameter.empty}
    _refuse_other_parts(name, without)
    return {**{key: parameters[key].default for key in missing}, **found}


def _refuse_other_parts(name: str, odd: set[str]) -> None:
    if odd:
        raise ModelFileError(f"{name} has missing or unexpected parts ({', '.join(sorted(odd))}).")
