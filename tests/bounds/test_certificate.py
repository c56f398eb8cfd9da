"""The certificate: numbers against explicit matrices, every estimator, honest words."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import multikernel as mk
from multikernel import bounds as b
from multikernel.bounds.families import CLASSES, FOR_DRAWS
from multikernel.bounds.montecarlo import draw_signs

from ..naive import center, gaussian
from ..peak import peak_bytes

GAMMAS = (0.05, 0.5, 2.0)


def blobs(rng, n=60, shift=1.0, d=3):
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    X = rng.standard_normal((n, d))
    X[:, 0] += shift * y
    return X, y


def explicit(model, X, center_kernels=True):
    """The learned function in the class of the raw kernels, from matrices: (w norms, b', f)."""
    Ks = [gaussian(X, X, g) for g in GAMMAS]
    n = len(X)
    c = np.zeros(n)
    c[model.support_] = model.dual_coef_[:, 0]
    scale = [n / np.trace(center(K)) for K in Ks]
    theta = model.kernel_weights_ * scale
    moved = c - c.mean() if center_kernels else c
    norms = np.array([t * math.sqrt(moved @ K @ moved) for t, K in zip(theta, Ks, strict=True)])
    part = sum(t * K for t, K in zip(theta, Ks, strict=True)) @ moved
    f = model.decision_function(X)
    assert np.ptp(f - part) < 1e-9  # the same function up to a constant
    return Ks, theta, moved, norms, float(np.mean(f - part)), f


def test_every_number_against_explicit_matrices(rng):
    X, y = blobs(rng)
    n = len(y)
    model = mk.MultiKernelClassifier(mk.gaussians(GAMMAS), weighting="alignf", C=2.0).fit(X, y)
    delta, S = 0.1, 300
    found = b.certificate(model, X, y, delta=delta, n_draws=S, random_state=5)
    Ks, _, _, norms, intercept, f = explicit(model, X)
    signs = draw_signs(n, S, 5)
    kappa, share = 1.0, b.grid_share(0)  # K(x, x) = 1: the constant kernel is 1 as well
    u = np.array([[s @ K @ s for s in signs.T] for K in [*Ks, kappa**2 * np.ones((n, n))]])
    rows = [row for row in found.machines[0].bounds if row.kernels == "as given"]
    assert [row.name for row in rows] == [name for _, name in CLASSES]
    for row, (p, _) in zip(rows, CLASSES, strict=True):
        D = np.sum(np.append(norms, abs(intercept) / kappa) ** p) ** (1 / p)
        r = math.inf if p == 1 else p / (p - 1) / 2
        each = u.max(axis=0) if p == 1 else np.sum(u**r, axis=0) ** (1 / r)
        mean = np.mean(np.sqrt(each)) / n
        spread = math.sqrt(n * (1.0 if p == 1 else 4 ** (1 / r))) / n  # four kernels of diagonal 1
        part = delta / 3
        error = spread * math.sqrt(2 * math.log(1 / (FOR_DRAWS * part)) / S)
        q = math.inf if p == 2 else p / (2 - p)
        by_trace = min(
            b.rademacher_lq([n] * 4, n, q, sharp=True),
            b.rademacher_block([n] * 4, n, p, sharp=True),
        )
        complexity = min(mean + error, by_trace)
        for margin, risk, value in zip(row.margins, row.risks, row.values, strict=True):
            j = round(2 * math.log2(margin / D))
            assert margin == pytest.approx(D * 2 ** (j / 2))
            paid = part * (1 - FOR_DRAWS) * share * b.grid_share(j)
            assert risk == pytest.approx(b.ramp_risk(y * f, margin), abs=1e-9)
            slow = risk + 2 / (margin / D) * complexity
            slow += 3 * math.sqrt(math.log(2 / paid) / (2 * n))
            assert value == pytest.approx(slow, rel=1e-9)
        assert row.value == row.values.min() == row.values[row.chosen]
        assert row.value == pytest.approx(row.risk + row.complexity + row.confidence)
        assert row.proven
    machine = found.machines[0]
    prepared = [K * n / np.trace(center(K)) for K in Ks]
    c = np.zeros(n)
    c[model.support_] = model.dual_coef_[:, 0]
    parts = [
        w * math.sqrt(c @ center(K) @ c)
        for w, K in zip(model.kernel_weights_, prepared, strict=True)
    ]
    assert machine.block_norms == pytest.approx(parts)
    assert 1 <= b.suggest_p(machine.block_norms) <= 2
    assert machine.error == np.mean(y * f <= 0)
    assert machine.tail == pytest.approx([np.mean(y * f <= 1.000001 * m) for m in machine.levels])
    assert found.alignments[0].value == pytest.approx(model.alignment_)
    assert found.duality_gap == model.duality_gap_
    assert machine.tightest() is min(rows, key=lambda row: row.value)


def test_centring_and_scaling_leave_the_function_in_the_class_of_the_given_kernels(rng):
    # At *new* points too: this is why bounds "as given" hold literally.
    X, y = blobs(rng)
    new = rng.standard_normal((40, 3)) * 2
    for options in ({}, {"center": False}, {"normalize": "trace"}, {"fit_intercept": False}):
        model = mk.MultiKernelClassifier(mk.gaussians(GAMMAS), **options).fit(X, y)
        c = np.zeros(len(y))
        c[model.support_] = model.dual_coef_[:, 0]
        moved = c - c.mean() if model.center else c
        Ks = [gaussian(X, X, g) for g in GAMMAS]
        centred = [np.trace(center(K)) for K in Ks]
        size = np.array(centred) if model.normalize == "trace" and model.center else None
        if size is None:
            size = np.array(centred) / len(y)
        theta = model.kernel_weights_ / size
        part = sum(t * gaussian(new, X, g) @ moved for t, g in zip(theta, GAMMAS, strict=True))
        difference = model.decision_function(new) - part
        assert np.ptp(difference) < 1e-9
        assert all(m.bounds for m in b.certificate(model, X, y, n_draws=50).machines)


def test_the_shares_of_delta_add_up_to_at_most_delta(rng):
    X, y = blobs(rng)
    delta = 0.2
    model = mk.MultiKernelClassifier(mk.gaussians(GAMMAS), "alignf").fit(X, y)
    rows = [r for r in b.certificate(model, X, y, delta, n_draws=50).machines[0].bounds if r.proven]
    every_j = sum(b.grid_share(j) for j in range(-2000, 2001))
    spent = 0.0
    for row in rows:
        # Neighbours of the grid have the ratio sqrt(2); shares peak at j = 0 and tell where it is.
        assert row.margins[1:] / row.margins[:-1] == pytest.approx(math.sqrt(2))
        confidences = row.values - row.risks - row.complexity * row.margin / row.margins
        shares = 2 / np.exp(2 * len(y) * (confidences / 3) ** 2)
        assert shares[row.chosen] == pytest.approx(row.delta)
        zero = int(np.argmax(shares))
        part = shares[zero] / b.grid_share(0)
        steps = np.arange(len(shares)) - zero
        assert shares == pytest.approx([part * b.grid_share(int(k)) for k in steps])
        # All sizes of the constant kernel together have what this one has times 1 / its share.
        spent += part * every_j / b.grid_share(0) + FOR_DRAWS * delta / len(rows)
    assert 0.99 * delta < spent <= delta * (1 + 1e-9)


@pytest.mark.slow
def test_an_easy_problem_has_a_bound_that_says_something_and_holds():
    rng = np.random.default_rng(1)
    X, y = blobs(rng, n=3000, shift=3.0, d=2)
    model = mk.MultiKernelClassifier(mk.gaussians([0.05, 0.2]), "alignf", C=0.01).fit(X, y)
    found = b.certificate(model, X, y, n_draws=200)
    test, labels = blobs(rng, n=20_000, shift=3.0, d=2)
    error = np.mean(model.predict(test) != labels)
    assert not found.vacuous
    assert error < found.risk() < 0.6
    assert "This is informative" in str(found)
    assert found.machines[0].tightest().proven


def test_proven_bounds_are_never_violated_over_many_samples():
    rng = np.random.default_rng(8)
    atoms = rng.standard_normal((30, 2)) * 2
    labels = np.where(atoms[:, 0] > 0, 1, -1)
    for _ in range(25):
        S = rng.integers(0, 30, 150)
        y = np.where(rng.random(150) < 0.1, -labels[S], labels[S])
        model = mk.MultiKernelClassifier(mk.gaussians([0.1, 1.0]), C=0.1).fit(atoms[S], y)
        right = model.predict(atoms) == labels
        true = np.mean(np.where(right, 0.1, 0.9))
        found = b.certificate(model, atoms[S], y, n_draws=50)
        for row in found.machines[0].bounds:
            assert true <= row.value


def test_more_data_and_less_confidence_make_it_smaller(rng):
    X, y = blobs(rng, n=400, shift=2.0)
    model = mk.MultiKernelClassifier(mk.gaussians(GAMMAS), C=0.05)
    small = b.certificate(model.fit(X[:100], y[:100]), X[:100], y[:100], n_draws=100)
    large = b.certificate(model.fit(X, y), X, y, n_draws=100)
    assert large.risk() < small.risk()
    assert b.certificate(model, X, y, delta=0.5, n_draws=100).risk() < large.risk()


# -- every estimator ------------------------------------------------------------------------------


def test_several_classes(rng):
    X, y = load_iris(return_X_y=True)
    for multiclass in ("shared", "per_class"):
        model = mk.MultiKernelClassifier(mk.gaussians(GAMMAS), multiclass=multiclass).fit(X, y)
        found = b.certificate(model, X, y, n_draws=50)
        assert [m.name for m in found.machines] == [f"class {c} against the rest" for c in range(3)]
        values = model.decision_function(X)
        for j, machine in enumerate(found.machines):
            margins = np.where(y == j, 1.0, -1.0) * values[:, j]
            assert machine.error == np.mean(margins <= 0)
        assert found.risk() == pytest.approx(sum(m.tightest().value for m in found.machines))
        each = model.alignment_ if multiclass == "per_class" else [model.alignment_]
        assert [a.value for a in found.alignments] == pytest.approx(list(each))
        assert "shared among 3 classifiers" in str(found)
        # An error of the decision is an error of some machine.
        wrong = model.predict(X) != y
        some = np.any(np.where(y[:, None] == np.arange(3), 1, -1) * values <= 0, axis=1)
        assert np.all(some[wrong])


def test_regression(rng):
    X = rng.standard_normal((80, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(80)
    model = mk.MultiKernelRegressor(mk.gaussians(GAMMAS), alpha=0.5).fit(X, y)
    found = b.certificate(model, X, y, n_draws=50)
    (machine,) = found.machines
    residuals = np.abs(y - model.predict(X))
    assert machine.error == np.mean(residuals > y.std())
    row = machine.bounds[0]
    assert 2 * row.margin <= y.std() < 2 * math.sqrt(2) * row.margin
    assert row.risk == pytest.approx(np.mean(np.clip(residuals / row.margin - 1, 0, 1)))
    # The radius is rounded up to a power of two.
    D = row.complexity * row.margin / 2
    assert D > 0
    *_, stable = machine.bounds
    assert stable.name.startswith("stability")
    assert stable.risk == pytest.approx(np.mean(residuals**2))
    assert stable.trivial == pytest.approx(y.var())
    assert stable.vacuous
    assert any("intercept" in note for note in stable.unmet)
    assert machine.tightest().name in dict((name, p) for p, name in CLASSES)


def test_tolerances_far_above_the_errors_are_nearly_certain(rng):
    # Two thousand points of a smooth function: most new errors are within one standard deviation.
    X = rng.uniform(-2, 2, (2000, 1))
    y = 3 * X[:, 0]
    model = mk.MultiKernelRegressor(mk.gaussians([0.1]), alpha=20.0).fit(X, y)
    found = b.certificate(model, X, y, n_draws=50)
    values = found.machines[0].bounds[0].values
    assert values[-1] < values[0]
    assert np.argmin(values) > len(values) / 2


def test_stability_row_is_theorem_17(rng):
    X = rng.standard_normal((40, 2))
    y = X[:, 0]
    options = {"alpha": 3.0, "fit_intercept": False, "center": False, "normalize": None}
    model = mk.MultiKernelRegressor(mk.gaussians(GAMMAS), "uniform", **options).fit(X, y)
    *_, row = b.certificate(model, X, y, n_draws=50).machines[0].bounds
    M, lam0 = np.abs(y).max(), 3.0 / 40
    change = b.two_stage_stability(40, 1.0, 1.0, M, lam0, [0.0], [40.0])
    risk = np.mean((y - model.predict(X)) ** 2)
    slow = b.two_stage_bound(risk, change, 40, 1.0, 1.0, M, lam0, 0.05)
    assert row.value == pytest.approx(slow)
    assert row.value == pytest.approx(row.risk + row.complexity + row.confidence)
    assert not any("intercept" in note for note in row.unmet)


def test_several_outputs_and_joint_rules_of_regression(rng):
    X = rng.standard_normal((50, 3))
    Y = np.column_stack([X[:, 0], X[:, 1] ** 2])
    model = mk.MultiKernelRegressor(mk.gaussians(GAMMAS)).fit(X, Y)
    found = b.certificate(model, X, Y, n_draws=50)
    assert [m.name for m in found.machines] == ["output 0", "output 1"]
    joint = mk.MultiKernelRegressor(mk.gaussians(GAMMAS), mk.LpNorm(p=1.5)).fit(X, Y[:, 0])
    rows = b.certificate(joint, X, Y[:, 0], n_draws=50).machines[0].bounds
    assert not any(row.name.startswith("stability") for row in rows)


@pytest.mark.parametrize("form", [{"nu": 0.2}, {"C": 0.02}], ids=repr)
def test_one_class(form, rng):
    X = rng.standard_normal((100, 2))
    model = mk.MultiKernelOneClass(mk.gaussians(GAMMAS), **form).fit(X)
    found = b.certificate(model, X, n_draws=50)
    (machine,) = found.machines
    assert found.alignments == ()
    decision = model.decision_function(X)
    assert machine.error == np.mean(decision < -0.5 * model.offset_)
    row = machine.bounds[0]
    assert row.margin <= 0.5 * model.offset_ < math.sqrt(2) * row.margin
    assert row.risk == pytest.approx(np.mean(np.clip(-decision / row.margin, 0, 1)), abs=1e-9)
    assert row.proven


@pytest.mark.parametrize(
    "model",
    [
        mk.MultiKernelClassifier(mk.gaussians(GAMMAS), "uniform"),
        mk.MultiKernelClassifier(mk.gaussians(GAMMAS), mk.LpNorm(p=4 / 3)),
        mk.MultiKernelClassifier(mk.gaussians(GAMMAS), "l1"),
        mk.MultiKernelClassifier(mk.gaussians(GAMMAS), loss="logistic"),
        mk.MultiKernelClassifier(mk.gaussians(GAMMAS), fit_intercept=False),
        mk.MultiKernelClassifier(mk.gaussians(GAMMAS), normalize=None, center=False),
        mk.MultiKernelClassifier(mk.gaussians(GAMMAS), normalize="frobenius"),
        mk.MultiKernelClassifier(mk.gaussians(GAMMAS), dtype="float32"),
        mk.MultiKernelClassifier(mk.per_feature(mk.Linear())),
        mk.MultiKernelClassifier(mk.polynomials([1, 2]) + mk.gaussians([0.5])),
        mk.MultiKernelClassifierCV(mk.gaussians(GAMMAS), cv=3, Cs=[0.1, 1.0]),
        mk.MultiKernelClassifier(mk.gaussians(GAMMAS), class_weight="balanced"),
    ],
    ids=lambda m: f"{type(m).__name__}-{m.weighting}-{m.normalize}-{m.loss}"[:60],
)
def test_classifiers_of_every_kind(model, rng):
    X, y = blobs(rng)
    model.fit(X, y)
    found = b.certificate(model, X, y, n_draws=50)
    rows = found.machines[0].bounds
    assert {row.kernels for row in rows if row.proven} == {"as given"}
    assert all(np.isfinite(row.value) for row in rows)
    assert found.machines[0].error == np.mean(model.predict(X) != y)
    margins = y * model.decision_function(X)
    for row in rows:
        slow = np.mean(np.clip(1 - margins / row.margin, 0, 1))
        assert row.risk == pytest.approx(slow, abs=1e-5 if model.dtype == "float32" else 1e-9)
    plain = not model.center and model.normalize is None
    assert len(rows) == (3 if plain else 6)


def test_precomputed_sparse_and_regressor_cv(rng):
    X, y = blobs(rng)
    Ks = [gaussian(X, X, g) for g in GAMMAS]
    model = mk.MultiKernelClassifier(mk.gaussians(GAMMAS)).fit(X, y)
    wanted = b.certificate(model, X, y, n_draws=50).risk()
    ids = mk.sample_ids(len(y))
    model = mk.MultiKernelClassifier(mk.precomputed(Ks)).fit(ids, y)
    found = b.certificate(model, ids, y, n_draws=50)
    assert found.risk() == pytest.approx(wanted, rel=1e-9)
    assert "also positive semidefinite outside the sample" in str(found)
    stack = np.stack(Ks, axis=-1)
    model = mk.MultiKernelClassifier("precomputed").fit(stack, y)
    assert b.certificate(model, stack, y, n_draws=50).risk() == pytest.approx(wanted, rel=1e-9)
    sparse = sp.csr_matrix(np.where(np.abs(X) > 1, X, 0.0))
    model = mk.MultiKernelClassifier(mk.per_feature(mk.Linear()), C=0.1).fit(sparse, y)
    dense = mk.MultiKernelClassifier(mk.per_feature(mk.Linear()), C=0.1).fit(sparse.toarray(), y)
    assert b.certificate(model, sparse, y, n_draws=50).risk() == pytest.approx(
        b.certificate(dense, sparse.toarray(), y, n_draws=50).risk(), rel=1e-6
    )
    cv = mk.MultiKernelRegressorCV(mk.gaussians(GAMMAS), cv=3, alphas=[0.1, 1.0]).fit(X, X[:, 0])
    assert len(b.certificate(cv, X, X[:, 0], n_draws=50).machines[0].bounds) == 7


def test_spherical_kernels(rng):
    X, y = blobs(rng)
    bank = mk.polynomials([1, 2])
    fixed = mk.MultiKernelClassifier(bank, center=False, normalize="spherical").fit(X, y)
    found = b.certificate(fixed, X, y, n_draws=50)
    assert [row.kernels for row in found.machines[0].bounds] == ["as given"] * 3
    assert all(row.proven for row in found.machines[0].bounds)
    moved = mk.MultiKernelClassifier(bank, normalize="spherical").fit(X, y)
    found = b.certificate(moved, X, y, n_draws=50)
    assert not any(row.proven for row in found.machines[0].bounds)
    assert "nothing is proven" in str(found)
    assert found.risk() == math.inf
    assert found.vacuous


def test_kernels_that_learn_from_the_sample_prove_nothing(rng):
    sequences = pytest.importorskip("multikernel.kernels.sequences")
    y = np.where(np.arange(40) % 2 == 0, 1, -1)
    texts = [["".join(rng.choice(list("ACGT" if t > 0 else "ACCC"), 12))] for t in y]
    X = np.array(texts, dtype=object)
    fixed = mk.MultiKernelClassifier(mk.KernelBank([sequences.Spectrum(2)])).fit(X, y)
    assert all(r.proven for r in b.certificate(fixed, X, y).machines[0].bounds[:3])
    learned = mk.MultiKernelClassifier(sequences.per_ngram(2, 5, unit="letter")).fit(X, y)
    found = b.certificate(learned, X, y, n_draws=50)
    assert not any(row.proven for row in found.machines[0].bounds)
    assert "some of these kernels learned from the sample" in str(found)


def test_a_kernel_that_was_repaired_before_the_fit_proves_nothing(rng):
    pytest.importorskip("rapidfuzz")
    sequences = pytest.importorskip("multikernel.kernels.sequences")
    X = np.array([["".join(rng.choice(list("ACGT"), 12))] for _ in range(40)], dtype=object)
    y = np.where(np.arange(40) % 2 == 0, 1, -1)
    repaired = sequences.EditSimilarity(psd="shift").adapt(X)
    model = mk.MultiKernelClassifier([repaired, sequences.Spectrum(2)], "uniform").fit(X, y)
    found = b.certificate(model, X, y, n_draws=50)
    assert not any(row.proven for row in found.machines[0].bounds)
    assert "1 of them, such as EditSimilarity(gamma=1, psd='shift'), hold numbers" in str(found)


def test_scales_of_the_default_bank_are_known_wherever_it_is_put(rng):
    X, y = blobs(rng)
    made = mk.default_bank(X, kind="gaussians")
    inside = mk.default_bank(X[:, [0]], kind="gaussians")
    for bank in (
        made,
        mk.per_view({"a": (inside, [0]), "b": (mk.Linear(), [1])}),
        [2.0 * (made[0] + mk.Linear())],
        [made[0] ** 0.5],
    ):
        model = mk.MultiKernelClassifier(bank, weighting="uniform").fit(X, y)
        found = b.certificate(model, X, y, n_draws=50)
        assert not any(row.proven for row in found.machines[0].bounds)
        assert "hold numbers, such as column scales, that were learned from data" in str(found)
        assert found.verdict.startswith("Nothing is proven about new samples")
    fixed = mk.MultiKernelClassifier(mk.gaussians(GAMMAS)).fit(X, y)
    assert b.certificate(fixed, X, y, n_draws=50).machines[0].tightest() is not None


def test_signed_weights_are_covered_by_the_block_norm(rng):
    X, y = blobs(rng)
    Ks = [gaussian(X, X, g) for g in GAMMAS]
    with pytest.warns(UserWarning, match="positive semidefinite"):
        model = mk.MultiKernelClassifier(mk.precomputed(Ks), mk.AlignF(signed=True)).fit(
            mk.sample_ids(len(y)), y
        )
    assert model.kernel_weights_.min() < 0
    found = b.certificate(model, mk.sample_ids(len(y)), y, n_draws=50)
    assert all(row.value > 0 for row in found.machines[0].bounds)
    assert found.alignments == ()  # its interval is about non-negative combinations


# -- words, dictionaries, pictures ----------------------------------------------------------------


def test_the_text_is_plain_about_what_is_not_proven(rng):
    X, y = blobs(rng)
    text = str(b.certificate(mk.MultiKernelClassifier().fit(X, y), X, y, n_draws=50))
    assert "Assumption not met: kernels fixed before the sample is seen" in text
    assert "name the kernels" in text
    assert "nothing is proven" in text
    model = mk.MultiKernelClassifier(mk.gaussians(GAMMAS)).fit(X, y)
    found = b.certificate(model, X, y, n_draws=50)
    text = str(found)
    assert repr(found) == text
    assert "VACUOUS" in text
    assert "Paid: each margin" in text
    assert "tightest proven" in text
    assert "the interval is vacuous" in text
    assert "nan" not in text
    assert max(map(len, text.splitlines())) < 200
    assert found.alignments[0].vacuous


def test_dictionary_goes_through_json(rng):
    X, _ = blobs(rng)
    model = mk.MultiKernelRegressor(mk.gaussians(GAMMAS)).fit(X, X[:, 0])
    found = b.certificate(model, X, X[:, 0], n_draws=50)
    back = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert back["n_samples"] == 60
    assert back["vacuous"] == found.vacuous
    rows = back["machines"][0]["bounds"]
    assert rows[0]["value"] == found.machines[0].bounds[0].value
    assert rows[0]["proven"] is True
    assert back["machines"][0]["tightest"].endswith("as given")


def test_picture(rng):
    pytest.importorskip("matplotlib").use("agg")
    X, y = blobs(rng)
    model = mk.MultiKernelClassifier(mk.gaussians(GAMMAS)).fit(X, y)
    ax = b.certificate(model, X, y, n_draws=50).plot()
    labels = ax.get_legend_handles_labels()[1]
    assert "L1 weights, as given" in labels
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel().startswith("margin m")
    regressor = mk.MultiKernelRegressor(mk.gaussians(GAMMAS)).fit(X, X[:, 0])
    assert "2m" in b.certificate(regressor, X, X[:, 0], n_draws=50).plot().get_xlabel()


# -- bad input ------------------------------------------------------------------------------------


def test_other_samples_are_refused(rng):
    X, y = blobs(rng)
    model = mk.MultiKernelClassifier(mk.gaussians(GAMMAS)).fit(X, y)
    with pytest.raises(ValueError, match="fitted to"):
        b.certificate(model, X[:50], y[:50])
    with pytest.raises(ValueError, match="not the sample"):
        b.certificate(model, X[::-1], y[::-1])
    weighted = mk.MultiKernelClassifier(mk.gaussians(GAMMAS)).fit(
        X, y, sample_weight=rng.uniform(0.1, 5, 60)
    )
    with pytest.raises(ValueError, match="sample_weight"):
        b.certificate(weighted, X, y)
    with pytest.raises(ValueError, match="targets y"):
        b.certificate(model, X)
    with pytest.raises(ValueError, match="same number"):
        b.certificate(model, X, y[:-1])
    with pytest.raises(b.AssumptionError, match="does not know: 7"):
        b.certificate(model, X, np.where(np.arange(60) == 3, 7, y))
    with pytest.raises(b.AssumptionError, match="delta"):
        b.certificate(model, X, y, delta=0.0)
    with pytest.raises(TypeError, match="fitted multiple-kernel estimator"):
        b.certificate(object(), X, y)


def test_indefinite_kernels_are_refused(rng):
    X, y = blobs(rng)
    # The second kernel makes up for the first, so that the machine can be trained; the theorems
    # ask every kernel of the class to be positive semidefinite.
    Ks = [gaussian(X, X, 0.5) - 0.5 * np.eye(60), 3 * np.eye(60) + gaussian(X, X, 1.0)]
    bank = mk.precomputed(Ks, names=["doubtful", "good"])
    ids = mk.sample_ids(60)
    options = {"normalize": None, "center": False}
    model = mk.MultiKernelClassifier(bank, "uniform", **options).fit(ids, y)
    with pytest.raises(b.AssumptionError, match="positive semidefinite kernels; 'doubtful'"):
        b.certificate(model, ids, y, n_draws=50)


def test_no_bank_of_matrices_is_formed(rng):
    X, y = blobs(rng, n=600)
    p = 30
    model = mk.MultiKernelClassifier(
        mk.gaussians(np.geomspace(0.01, 1, p)), "uniform", memory_budget="1GB"
    ).fit(X, y)
    peak = peak_bytes(lambda: b.certificate(model, X, y, n_draws=100))
    assert peak < 0.7 * p * 600**2 * 8
