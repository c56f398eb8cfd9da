"""Engines: the implementations of the waist, by name, and the one place where grams are built.

A plan (:mod:`multikernel.grams.planning`) divides the kernels of a bank into parts of a kind:
"shared", "linear", "rank-one", "features", "dense" or "given". An engine is a name and a builder
for each kind that it serves; one that serves "shared" but not "linear", and falls back to no other,
serves linear kernels as "shared" ones. The library has two engines: "cpu" serves all kinds, and
"torch" serves most of them on a processor or, as "torch:cuda", on a GPU
(:mod:`multikernel.grams.gpu`). Other packages add theirs with :func:`register`, and users choose
one with ``engine="name"`` in an estimator.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels.base import Kernel
from ..kernels.sequences.base import readers
from ..kernels.sequences.table import Table
from .dense import DenseGrams
from .linear import LinearGrams
from .lowrank.products import Products, weighted_products
from .memory import MemoryBudget
from .ngrams import NgramGrams
from .planning import DEFAULT_ENGINE, Part, Plan
from .protocol import Expansion, Grams
from .rankone import RankOneGrams, take_feature_columns
from .shared import SharedGrams
from .stacked import StackedGrams


@dataclass(frozen=True)
class BuildOptions:
    """How to build a part; the last argument of every builder.

    Attributes
    ----------
    names : sequence of str
        The names of the part's kernels.
    budget : MemoryBudget
        The memory that the grams may use.
    dtype : dtype
        The precision of kernel values, float32 or float64.
    sample_weight : array of shape (n,) or None
    n_jobs : int
        The number of threads.
    rows : array of int or None
        The samples of a given array (N, N, p) that make up the training sample; None for all.
        For other kinds X holds the training sample and nothing else.
    symmetric : bool
        Whether a matrix that is not symmetric is an error; voted classifiers accept any matrix.
    few_passes : bool
        Whether the fit makes few passes over the kernels, as two-stage rules do. Compiling
        loops then pays off for larger samples only.
    device : str
        The text after the colon in the name of the engine, as in ``"torch:cuda"``; may be empty.
    """

    names: Sequence[str]
    budget: MemoryBudget
    dtype: Any = np.float64
    sample_weight: np.ndarray | None = None
    n_jobs: int = 1
    rows: np.ndarray | None = None
    symmetric: bool = True
    few_passes: bool = False
    device: str = ""

    @property
    def common(self) -> dict[str, Any]:
        """The keyword arguments of :class:`multikernel.grams.protocol.Grams`."""
        return {"sample_weight": self.sample_weight, "n_jobs": self.n_jobs}


#: Builds the grams of one part: ``builder(part, X, options)``.
Builder = Callable[[Part, Any, BuildOptions], Grams]


@dataclass
class Engine:
    """The builders of an engine and the kernels that it serves; made by :func:`register`.

    Attributes
    ----------
    name : str
    builders : dict from kind to builder
    serves : dict from kind to function of a kernel
        For kinds of kernels that the engine serves only in part.
    falls_back_to : str or None
        The engine that serves all other kernels.
    products : callable or None
        The products of the columns of a chunk; see :func:`register_products`.
    """

    name: str
    builders: dict[str, Builder] = field(default_factory=dict)
    serves: dict[str, Callable[[Kernel], bool]] = field(default_factory=dict)
    falls_back_to: str | None = None
    products: Products | None = None


_ENGINES: dict[str, Engine] = {}


def register(
    engine: str,
    kind: str,
    builder: Builder,
    *,
    serves: Callable[[Kernel], bool] | None = None,
    falls_back_to: str | None = None,
) -> None:
    """Register an engine for a kind of kernels; a builder of the same kind is replaced.

    Parameters
    ----------
    engine : str
        The name that users pass as ``engine=``.
    kind : {"shared", "linear", "rank-one", "features", "dense", "given"}
        The kind of a part of a plan; ``print(bank.plan(X))`` shows them.
    builder : callable
        ``builder(part, X, options)`` returns a :class:`multikernel.grams.protocol.Grams` of the
        part's kernels on X. ``part`` is a :class:`multikernel.grams.planning.Part`, ``options`` a
        :class:`BuildOptions`.
    serves : callable, optional
        ``serves(kernel)`` says whether the engine serves a kernel of this kind; by default it
        serves all of them. Only parts of kind "shared", "linear" and "dense" have kernel objects.
    falls_back_to : str, optional
        The engine for all kernels that this one does not serve. Without it such kernels are an
        error.
    """
    one = _ENGINES.setdefault(engine, Engine(engine))
    one.builders[kind] = builder
    one.serves.pop(kind, None)
    if serves is not None:
        one.serves[kind] = serves
    if falls_back_to is not None:
        one.falls_back_to = falls_back_to


def register_products(engine: str, products: Products) -> None:
    """Register a function that computes the products of features summed in passes over rows.

    Parameters
    ----------
    engine : str
        The name that users pass as ``engine=``.
    products : callable
        ``products(F, omega)`` returns ``F'diag(omega) F`` in float64, shape (D, D), for a chunk F
        of shape (n, D) in float64 and weights of shape (n,), or None for ones. It must return the
        same bits for the same input. Processes of a cluster import it by name, so it must be a
        function of a module. For an engine with a device in its name, as ``"torch:cuda"``, it is
        called with ``device=`` as well.
    """
    _ENGINES.setdefault(engine, Engine(engine)).products = products


def find_products(engine: str) -> Products:
    """The products of an engine, or of the engine that it falls back to."""
    return engine_of_products(engine)[1]


def engine_of_products(engine: str) -> tuple[str, Products]:
    """The engine, or the one that it falls back to, that computes products; and its products."""
    one: Engine | None = find_engine(engine)
    seen: list[Engine] = []
    while one is not None and one not in seen:
        if one.products is not None:
            return one.name, one.products
        seen.append(one)
        one = None if one.falls_back_to is None else find_engine(one.falls_back_to)
    raise ValueError(
        f"engine={engine!r} cannot compute products of features, which approximation=... sums over "
        f"rows. Use engine={DEFAULT_ENGINE!r}, or register_products({engine!r}, ...)."
    )


def find_engine(name: str) -> Engine:
    """The engine of this name; a name may have a device after a colon, as in "torch:cuda"."""
    name, _, device = name.partition(":")
    if device and name in _ENGINES:
        one = _ENGINES[name]
        products: Any = one.products
        products = products and partial(products, device=device)
        return replace(one, name=f"{name}:{device}", products=products)
    if name not in _ENGINES:
        close = difflib.get_close_matches(name, _ENGINES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"There is no engine {name!r}; known engines: {', '.join(map(repr, _ENGINES))}.{hint} "
            "Engines of other packages are available once those packages are imported."
        )
    return _ENGINES[name]


def assign(plan: Plan, engine: str) -> Plan:
    """The same plan with an engine for every part.

    Kernels that the engine does not serve go to the engine that it falls back to.
    """
    chain = [find_engine(engine)]
    while chain[-1].falls_back_to is not None:
        after = find_engine(chain[-1].falls_back_to)
        if after in chain:
            break
        chain.append(after)
    parts: list[Part] = []
    for part in plan.parts:
        rest: Part | None = part
        for one in chain:
            if rest is not None:
                served, rest = _divide(rest, one)
                parts += [] if served is None else [served]
        if rest is not None:
            raise ValueError(_cannot_serve(plan, rest, chain))
    return replace(plan, parts=tuple(parts))


def _divide(part: Part, engine: Engine) -> tuple[Part | None, Part | None]:
    """The kernels of a part that an engine serves, and the others."""
    as_shared = "linear" not in engine.builders and "shared" in engine.builders
    if part.kind == "linear" and as_shared and engine.falls_back_to is None:
        ours, others = _divide(replace(part, kind="shared"), engine)
        return ours, None if others is None else replace(others, kind="linear")
    if part.kind not in engine.builders:
        return None, part
    serves = engine.serves.get(part.kind)
    served = [serves is None or serves(kernel) for kernel in part.kernels]
    if all(served):
        return replace(part, engine=engine.name), None
    if not any(served):
        return None, part
    chosen = np.array(served)
    return replace(_take(part, chosen), engine=engine.name), _take(part, ~chosen)


def _take(part: Part, chosen: np.ndarray) -> Part:
    kernels = tuple(part.kernels[k] for k in np.flatnonzero(chosen).tolist())
    types = ", ".join(dict.fromkeys(type(kernel).__name__ for kernel in kernels))
    what = f"{len(kernels)} of {len(part.kernels)}: {types}"
    return replace(part, positions=part.positions[chosen], kernels=kernels, what=what)


def _cannot_serve(plan: Plan, part: Part, chain: list[Engine]) -> str:
    names = [repr(plan.names[k]) for k in part.positions[:3].tolist()]
    more = f" and {len(part.positions) - 3} more" if len(part.positions) > 3 else ""
    engine = chain[0].name
    known = {kind: None for one in chain for kind in one.builders}
    some = " (some kernels of it)" if part.kind in known else ""
    beyond = "" if len(chain) == 1 else f" and those that it falls back to ({chain[1].name!r}, ...)"
    return (
        f"engine={engine!r} cannot serve {', '.join(names)}{more}, of kind {part.kind!r}. "
        f"The engine{beyond} serves the kinds {', '.join(map(repr, known))}{some}. "
        f"Use engine={DEFAULT_ENGINE!r}, leave these kernels out, or register the engine with "
        f"falls_back_to={DEFAULT_ENGINE!r}."
    )


def build(
    plan: Plan,
    X: Any,
    *,
    engine: str | None = None,
    budget: MemoryBudget | None = None,
    dtype: Any = np.float64,
    sample_weight: np.ndarray | None = None,
    n_jobs: int = 1,
    rows: np.ndarray | None = None,
    symmetric: bool = True,
    few_passes: bool = False,
) -> Grams:
    """The grams of a plan on its sample, neither centred nor normalised.

    Parameters
    ----------
    plan : Plan
    X : array, sparse matrix, DataFrame or Table of shape (n, d), or array of shape (N, N, p)
    engine : str or None
        None for the engines that the plan names, which are "cpu" unless it was assigned others.
    budget : MemoryBudget or None
        None for the free memory of the machine.
    dtype : dtype
        The precision of kernel values.
    sample_weight : array of shape (n,) or None
    n_jobs : int
    rows : array of shape (n,) or None
        The samples of an array (N, N, p) that make up the training sample; None for all of them.
    symmetric : bool
        Whether a kernel matrix that is not symmetric is an error.
    few_passes : bool
        See :class:`BuildOptions`.
    """
    if engine is not None:
        plan = assign(plan, engine)
    if symmetric:
        _refuse_asymmetric(plan)
    X, budget = _as_input(plan, X), MemoryBudget.of(budget)
    everything = np.arange(plan.n_kernels)
    built: list[Grams] = []
    for part in plan.parts:
        names: Sequence[str] = plan.names
        if not np.array_equal(part.positions, everything):
            names = [plan.names[k] for k in part.positions]
        options = BuildOptions(
            names, budget, dtype, sample_weight, n_jobs, rows, symmetric, few_passes,
            part.engine.partition(":")[2],
        )  # fmt: skip
        built.append(_builder(part)(part, X, options))
    positions = [part.positions for part in plan.parts]
    if len(built) == 1 and np.array_equal(positions[0], everything):
        return built[0]
    return StackedGrams(built, positions)


def _refuse_asymmetric(plan: Plan) -> None:
    """Raise an error for kernels declared asymmetric, before anything is computed."""
    for part in plan.parts:
        # Rank-one parts have positions, but no kernel objects.
        for k, kernel in zip(part.positions, part.kernels, strict=False):
            if not kernel.is_symmetric:
                raise ValueError(
                    f"Kernel {plan.names[k]!r} was passed with symmetric=False, but K(x, z) = K(z, "
                    "x) is needed here: a combination of kernels is an inner product, whose "
                    "matrix is symmetric. Only votes accept other kernels: use "
                    "VotedKernelClassifier, or pass (K + K.T) / 2 to mk.precomputed."
                )


def _builder(part: Part) -> Builder:
    engine = find_engine(part.engine)
    if part.kind == "low-rank":
        raise ValueError(
            "This model was fitted with approximation=..., but this operation needs the exact "
            "kernels on the training sample. Fit with approximation=None instead; "
            "certify_approximation bounds the difference between the two."
        )
    if part.kind not in engine.builders:
        raise ValueError(
            f"The plan asks engine {part.engine!r} for kernels of kind {part.kind!r}, but it "
            f"serves {', '.join(map(repr, engine.builders))}. Make the plan again."
        )
    return engine.builders[part.kind]


def _as_input(plan: Plan, X: Any) -> Any:
    """X as builders read it: an array, a sparse matrix, or a table with encoded sequences."""
    text = list(readers([(*part.kernels, part.features) for part in plan.parts]))
    if text:
        X = Table.of(X)
        for kernel in text:
            kernel.select(X)  # encoded once; rows of the table share it
        return X
    if hasattr(X, "iloc"):
        return X.to_numpy()
    return X if sp.issparse(X) else np.asarray(X)


# -- the engine "cpu" -----------------------------------------------------------------------------


def _build_shared(part: Part, X: Any, options: BuildOptions) -> Grams:
    kernels: Any = part.kernels
    grams = SharedGrams.evaluate(
        kernels,
        X,
        options.names,
        options.budget,
        dtype=options.dtype,
        known_psd=part.known_psd,
        **options.common,
    )
    grams.few_passes = options.few_passes
    return grams


def _build_linear(part: Part, X: Any, options: BuildOptions) -> Grams:
    kernels: Any = part.kernels
    return LinearGrams.evaluate(kernels, X, options.names, options.budget, **options.common)


def _build_rank_one(part: Part, X: Any, options: BuildOptions) -> Grams:
    V = take_feature_columns(X, part.columns)
    return RankOneGrams(V, part.columns, options.names, options.budget, **options.common)


def _build_features(part: Part, X: Any, options: BuildOptions) -> Grams:
    made = part.features(X)
    return NgramGrams(made, part.features, options.names, options.budget, **options.common)


def _build_dense(part: Part, X: Any, options: BuildOptions) -> Grams:
    return DenseGrams.evaluate(
        part.kernels,
        X,
        options.names,
        options.budget,
        known_psd=part.known_psd,
        symmetric=options.symmetric,
        **options.common,
    )


def _build_given(part: Part, X: Any, options: BuildOptions) -> Grams:
    rows = np.arange(len(X)) if options.rows is None else options.rows
    return DenseGrams.given(
        X, rows, options.names, options.budget, symmetric=options.symmetric, **options.common
    )


register(DEFAULT_ENGINE, "shared", _build_shared)
register(DEFAULT_ENGINE, "linear", _build_linear)
register(DEFAULT_ENGINE, "rank-one", _build_rank_one)
register(DEFAULT_ENGINE, "features", _build_features)
register(DEFAULT_ENGINE, "dense", _build_dense)
register(DEFAULT_ENGINE, "given", _build_given)
register_products(DEFAULT_ENGINE, weighted_products)


def build_on_host(part: Part, X: Any, options: BuildOptions) -> Grams:
    """The grams of a part by the engine "cpu"."""
    return _ENGINES[DEFAULT_ENGINE].builders[part.kind](part, X, options)


# -- the engine "torch" ---------------------------------------------------------------------------


def _build_on_device(part: Part, X: Any, options: BuildOptions) -> Grams:
    from .gpu.build import build_part  # imports torch

    return build_part(part, X, options)


def _products_on_device(F: np.ndarray, omega: np.ndarray | None, device: str = "") -> np.ndarray:
    from .gpu.products import products  # imports torch

    return products(F, omega, device or "cpu")


for _kind in ("shared", "rank-one", "dense", "given"):
    register("torch", _kind, _build_on_device, falls_back_to=DEFAULT_ENGINE)
register_products("torch", _products_on_device)


def find_budget(engine: str, budget: Any) -> MemoryBudget:
    """The memory budget of an engine: that of its device, or of the host."""
    name, _, device = engine.partition(":")
    if name != "torch" or not device:
        return MemoryBudget.of(budget)
    from .gpu.device import device_budget, find_device

    return device_budget(find_device(device), budget)


def describe(plan: Plan) -> str:
    """Text that names the engine and the device of the kernels of a plan."""
    parts: dict[str, int] = {}
    for part in plan.parts:
        parts[part.engine] = parts.get(part.engine, 0) + len(part.positions)
    if len(parts) == 1:
        return _where(next(iter(parts)))
    return "; ".join(
        f"{_where(engine)}: {count} of {plan.n_kernels} kernels" for engine, count in parts.items()
    )


def _where(engine: str) -> str:
    name, _, device = engine.partition(":")
    if name != "torch":
        return engine
    from .gpu.device import find_device

    return find_device(device or "cpu").describe()


def move_expansion(expansion: Expansion, device: str) -> Expansion:
    """The same function, evaluated on a device where its kernels can be."""
    from .gpu.move import move

    return move(expansion, device)
