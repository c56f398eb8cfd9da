"""Fits that leave a complete model or none if they are interrupted, not a mixture of two."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


class WholeFits:
    """Estimators whose `fit` leaves a complete model or none."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fit = cls.__dict__.get("fit")
        if fit is not None and not hasattr(fit, "whole_or_nothing"):
            cls.fit = whole_or_nothing(fit)  # type: ignore[attr-defined]

    def __sklearn_is_fitted__(self) -> bool:
        return "_expansion" in vars(self)

    def _drop_model(self) -> None:
        """Drop the model of an earlier fit, whose attributes are replaced one by one."""
        self.__dict__.pop("_expansion", None)


def whole_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``fit`` so that it drops an incomplete model when it is interrupted or fails."""

    @wraps(fit)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return fit(self, *args, **kwargs)
        except BaseException as error:
            # Attributes such as `classes_` may belong to the failed fit already: an earlier model
            # would read them. Only a certified iterate is kept.
            if not hasattr(error, "keeps_model"):
                self._drop_model()
            raise

    wrapped.whole_or_nothing = True  # type: ignore[attr-defined]
    return wrapped
