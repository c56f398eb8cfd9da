"""Kernels and weightings as people type them, parsed without running code.

An expression is a name, a call with plain values, or a combination of kernels::

    default
    gaussians([0.01, 0.1, 1])
    Linear() + 0.5 * Gaussian(gamma=2)**2
    LpNorm(p=4/3)

Names are those of the library, and the same in lower case. Nothing else is allowed: no attributes,
no other functions, no variables.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..kernels.bank import KernelBank
from ..kernels.base import Kernel

_SIGNS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.Div: operator.truediv,
}


def kernel_names() -> dict[str, Any]:
    """Names that an expression for kernels may contain, besides ``default``."""
    from .. import kernels
    from ..kernels import sequences

    names = {
        name: getattr(kernels, name)
        for name in (
            *("Linear", "Gaussian", "Laplacian", "Polynomial", "Sigmoid", "Exponential", "Matern"),
            *("ChiSquared", "AdditiveChiSquared", "HistogramIntersection", "Tanimoto", "MinMax"),
            *("Cosine", "RationalQuadratic", "Periodic", "Overlap"),
            *("gaussians", "polynomials", "per_feature"),
        )
    }
    return names | sequence_names(sequences)


def sequence_names(module: Any = None) -> dict[str, Any]:
    """Names of kernels that read a text column."""
    if module is None:
        from ..kernels import sequences as module
    return {
        name: getattr(module, name)
        for name in (
            *("Spectrum", "Mismatch", "Subsequence", "WeightedDegree", "LocalityImproved"),
            *("Oligo", "EditSimilarity", "per_ngram"),
        )
    }


def reads_text(expression: str) -> bool:
    """Whether an expression names a kernel on sequences."""
    texts = {name.lower() for name in sequence_names()}
    found = {node.id.lower() for node in ast.walk(_parse(expression)) if isinstance(node, ast.Name)}
    return bool(found & texts)


def uses_default(expression: str) -> bool:
    """Whether an expression contains kernels that are chosen from the sample."""
    nodes = ast.walk(_parse(expression))
    return any(isinstance(node, ast.Name) and node.id in ("default", "per_ngram") for node in nodes)


def evaluate_kernels(expression: str, default: Callable[[], KernelBank]) -> KernelBank:
    """The bank that an expression describes; ``default()`` makes the default one."""
    names: dict[str, Any] = kernel_names()
    value = evaluate(expression, names | {"default": default})
    if not isinstance(value, (Kernel, KernelBank)):
        raise ValueError(f"{expression!r} is not a kernel. Try 'Gaussian(gamma=0.5)' or 'default'.")
    return KernelBank(value)


def evaluate_weighting(expression: str) -> Any:
    """A weighting: its name, or an object with parameters."""
    from .. import weighting

    if expression in weighting.NAMED:
        return expression
    classes = {
        name: value
        for name in weighting.__all__
        if isinstance(value := getattr(weighting, name), type)
        and issubclass(value, weighting.Weighting)
        and name not in ("Weighting", "JointWeighting")
    }
    if expression.isidentifier() and expression not in classes:
        weighting.as_weighting(expression)  # the error lists the names
    value = evaluate(expression, classes)
    if not isinstance(value, weighting.Weighting):
        raise ValueError(f"{expression!r} is not a weighting. Try 'alignf' or 'LpNorm(p=1.5)'.")
    return value


def evaluate_approximation(expression: str) -> Any:
    """An approximation of kernels by features: ``auto``, or an object with parameters."""
    from ..grams.lowrank.approximations import Nystroem, RandomFeatures

    if expression == "auto":
        return expression
    return evaluate(expression, {"Nystroem": Nystroem, "RandomFeatures": RandomFeatures})


def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression of these names, plain values and the operators ``+ * ** /``."""
    known = {**{name.lower(): value for name, value in names.items()}, **names}

    def visit(node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and isinstance(
            node.value, (int, float, str, bool, type(None))
        ):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple)):
            return [visit(item) for item in node.elts]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -_number(visit(node.operand))
        if isinstance(node, ast.Name):
            if node.id in ("inf", "nan"):
                return float(node.id)
            return _call(look_up(node.id), (), {})
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            keywords = {word.arg: visit(word.value) for word in node.keywords if word.arg}
            return _call(look_up(node.func.id), [visit(item) for item in node.args], keywords)
        if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
            left, right = visit(node.left), visit(node.right)
            if isinstance(node.op, (ast.Div, ast.Pow)) and not isinstance(left, Kernel):
                left, right = _number(left), _number(right)
                if isinstance(node.op, ast.Pow) and abs(right) > 64:
                    raise ValueError(f"{expression!r}: the exponent {right:g} is too large.")
            return _SIGNS[type(node.op)](left, right)
        raise ValueError(
            f"{expression!r}: {ast.unparse(node)!r} is not a valid expression. Write names with "
            "plain values, such as 'gaussians([0.1, 1])', and combine kernels with + and *."
        )

    def look_up(name: str) -> Any:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"{expression!r}: {name!r} is not known.{hint} Known: {', '.join(sorted(names))}."
            )
        return known[name]

    def _call(function: Any, values: Any, keywords: dict[str, Any]) -> Any:
        if "columns" in keywords:
            raise ValueError(f"{expression!r}: columns are selected in a views file, not here.")
        try:
            inspect.signature(function).bind(*values, **keywords)
        except TypeError as error:
            raise ValueError(f"{expression!r}: {function.__name__}: {error}.") from None
        return function(*values, **keywords)

    def _number(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{expression!r}: expected a number, got {value!r}.")
        return value

    return visit(_parse(expression).body)


def _parse(expression: str) -> ast.Expression:
    try:
        return ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError):
        raise ValueError(
            f"{expression!r} is not a valid expression. Write it like 'Gaussian(gamma=0.5)' or "
            "'gaussians([0.1, 1, 10])'."
        ) from None


def class_weights(given: list[str] | None, labels: Iterable[Any]) -> Any:
    """The meaning of ``--class-weight``: None, "balanced", or a weight for each named class.

    ``labels`` are the classes, which may be repeated.
    """
    if not given:
        return None
    if given == ["balanced"]:
        return "balanced"
    classes = {str(c): c for c in set(labels)}
    found: dict[Any, float] = {}
    for word in given:
        name, equals, value = word.rpartition("=")
        if not equals or name not in classes:
            known = ", ".join(sorted(classes)[:12])
            raise ValueError(
                f"--class-weight takes 'balanced', or class=weight with one of the classes "
                f"{known}; got {word!r}."
            )
        try:
            found[classes[name]] = float(value)
        except ValueError:
            raise ValueError(f"--class-weight {word}: {value!r} is not a number.") from None
        if not found[classes[name]] > 0:
            raise ValueError(f"--class-weight {word}: weights must be positive.")
    return found
