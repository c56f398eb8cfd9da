"""A fit that is stopped or fails leaves no model: what is left of two would answer as neither."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


class WholeFits:
    """Estimators whose `fit` leaves a whole model, or none."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fit = cls.__dict__.get("fit")
        if fit is not None and not hasattr(fit, "whole_or_nothing"):
            cls.fit = whole_or_nothing(fit)  # type: ignore[attr-defined]

    def __sklearn_is_fitted__(self) -> bool:
        return "_expansion" in vars(self)

    def _drop_model(self) -> None:
        """The model of an earlier fit, whose attributes go one by one from now on."""
        self.__dict__.pop("_expansion", None)


def whole_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """The same fit, which drops what it has made when it does not come to its end."""

    @wraps(fit)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(self).get("_expansion")
        try:
            return fit(self, *args, **kwargs)
        except BaseException as error:
            # An interrupt may leave a certified iterate, if that was asked for.
            if vars(self).get("_expansion") is not before and not hasattr(error, "keeps_model"):
                self._drop_model()
            raise

    wrapped.whole_or_nothing = True  # type: ignore[attr-defined]
    return wrapped
