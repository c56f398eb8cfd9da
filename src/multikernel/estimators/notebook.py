"""Display of estimators in notebooks: scikit-learn's box, with the learned weights below it."""

from __future__ import annotations

from html import escape
from typing import Any

#: Maximum number of kernels in the table.
MAX_KERNELS_SHOWN = 12

STYLE = (
    ".mk-weights{border-collapse:collapse;font:13px/1.4 system-ui,sans-serif;margin:.4em 0}"
    ".mk-weights caption{text-align:left;opacity:.75;padding:.2em 0}"
    ".mk-weights th,.mk-weights td{padding:1px 10px 1px 0;text-align:left;border:0;"
    "background:none;font-weight:400}"
    ".mk-weights td.mk-n{text-align:right;font-variant-numeric:tabular-nums}"
    ".mk-weights i{display:block;height:9px;border-radius:2px;background:#3b7dc4;min-width:1px}"
)


class WeightsInNotebook:
    """Mixin, listed before ``BaseEstimator``, that adds a table of weights to ``_repr_html_``."""

    def _html_repr(self) -> str:
        from sklearn.utils import estimator_html_repr

        box: str = estimator_html_repr(self)
        return box + weights_table(self)

    # scikit-learn calls `_html_repr` from both of these only since 1.7.
    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._html_repr()
        return bundle


def weights_table(estimator: Any) -> str:
    """The largest weights as a small table with bars; empty before a fit."""
    from .weights import Weights, is_weighted

    if not is_weighted(estimator):
        return ""

    weights = Weights.of(estimator)
    order = [int(k) for k in weights.order[:MAX_KERNELS_SHOWN]]
    shares = weights.shares
    top = float(shares.max(initial=0.0)) or 1.0
    rows = "".join(
        f"<tr><th>{escape(weights.names[k])}</th><td class=mk-n>{weights.mean[k]:.3g}</td>"
        f'<td style="width:160px"><i style="width:{100 * shares[k] / top:.1f}%"></i></td></tr>'
        for k in order
    )
    p = len(weights.names)
    caption = f"{weights.n_used:,} of {p:,} kernels in use"
    caption += f", the {MAX_KERNELS_SHOWN} largest" if p > MAX_KERNELS_SHOWN else ""
    caption += f"; {weights.what}" + (", mean over classes" if weights.machines else "")
    return (
        f"<style>{STYLE}</style><table class=mk-weights><caption>{caption}</caption>"
        f"<tbody>{rows}</tbody></table>"
    )
