"""Estimators that learn from features: rules, losses, streams, certificates, bad input."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from multikernel.estimators import from_sums, probabilities
from multikernel.grams import engines
from multikernel.grams.lowrank.products import weighted_products
from multikernel.grams.memory import MemoryBudget
from multikernel.learners.calibration import calibrate
from multikernel.rows import hold_out, open_rows, reduce_rows
from multikernel.solvers.passes.newton import MAX_PASSES

BANK = mk.KernelBank([mk.Gaussian(0.03), mk.Gaussian(0.3), mk.Linear()])
WAY = mk.Nystroem(rank=60)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((600, 3))
    f = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2]
    return X, f + 0.3 * rng.standard_normal(600), (f + 0.3 * rng.standard_normal(600) > 0.4) * 1


def regressor(**options):
    return mk.MultiKernelRegressor(BANK, **{"weighting": "alignf", "approximation": WAY, **options})


def classifier(**options):
    return mk.MultiKernelClassifier(
        BANK, **{"weighting": "alignf", "approximation": WAY, **options}
    )


@pytest.mark.parametrize("rule", ["uniform", "alignf", "lp", "l1", "loo", "best"])
def test_all_samples_as_landmarks_give_the_exact_fit(data, rule):
    X, y, _ = (part[:120] for part in data)
    way = mk.Nystroem(rank=120)
    found = regressor(weighting=rule, approximation=way).fit(X, y)
    exact = regressor(weighting=rule, approximation=None).fit(X, y)
    assert found.objective_ == pytest.approx(exact.objective_, rel=2e-3)
    assert np.allclose(found.predict(X), exact.predict(X), atol=0.02)
    assert np.all(found.approximation_.relative_errors < 1e-6)
    if rule in ("uniform", "alignf", "loo", "best"):
        assert np.allclose(found.kernel_weights_, exact.kernel_weights_, rtol=1e-5)
        assert np.allclose(found.predict(X), exact.predict(X), atol=1e-5)


@pytest.mark.parametrize("rule", ["alignf", "lp", "l1", mk.L2Ball(), mk.ElasticNetNorm()])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_certificates_hold_between_exact_optima(data, rule, loss):
    """Both bounds hold for the exact optimum of the kernels times the same factors."""
    X, _, labels = (part[:200] for part in data)
    raw = {"normalize": None, "loss": loss, "weighting": rule}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = classifier(**raw, approximation=mk.Nystroem(rank=25)).fit(X, labels)
        certificate = found.certify_approximation(X, labels)
        given = rule
        if rule == "alignf":  # the exact problem has the kernel weights of the fit
            from multikernel.weighting.given import GivenWeights

            given = GivenWeights(found.kernel_weights_)
        exact = classifier(**{**raw, "weighting": given}, approximation=None).fit(X, labels)
    optimum = exact.objective_ * np.array([1 - exact.duality_gap_, 1])  # between these
    assert certificate.lower <= optimum[1] * (1 + 1e-9)
    assert certificate.upper >= optimum[0] * (1 - 1e-9)
    report = found.approximation_
    assert report.objective_bound is not None
    assert report.objective - report.objective_bound <= optimum[1] * (1 + 1e-9)
    assert found.objective_ >= optimum[0] * (1 - 1e-9)
    assert certificate.lower >= report.objective - report.objective_bound - 1e-9
    assert "exact optimum between" in str(certificate) and "features" in str(report)


def test_certificate_with_sample_weights_and_offset_targets(data):
    X, y, _ = (part[:150] for part in data)
    omega = np.random.default_rng(0).integers(1, 4, 150).astype(float)
    raw = {"normalize": None, "weighting": "uniform"}
    found = regressor(**raw, approximation=mk.Nystroem(rank=25)).fit(X, y + 1e3, omega)
    exact = regressor(**raw, approximation=None).fit(X, y + 1e3, omega)
    certificate = found.certify_approximation(X, y + 1e3, omega)
    assert certificate.lower <= exact.objective_ * (1 + 1e-6)
    assert exact.objective_ <= certificate.upper * (1 + 1e-6)
    assert found.approximation_.objective_bound >= found.objective_ - exact.objective_ - 1e-6


def test_random_features_are_certified_by_the_pass_alone(data):
    X, y, _ = (part[:200] for part in data)
    found = regressor(approximation=mk.RandomFeatures(300), normalize=None).fit(X, y)
    assert found.approximation_.objective_bound is None
    certificate = found.certify_approximation(X, y)
    from multikernel.weighting.given import GivenWeights

    rule = GivenWeights(found.kernel_weights_)
    exact = regressor(approximation=None, normalize=None, weighting=rule).fit(X, y)
    assert certificate.lower <= exact.objective_ <= certificate.upper


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_losses_reach_the_optimum_on_the_features(data, loss):
    """The slow twin: the exact estimator on linear kernels of the same features."""
    X, _, labels = data
    found = classifier(loss=loss).fit(X, labels)
    assert found.duality_gap_ <= 1e-3
    Phi = found._expansion.features(X)
    widths = found._expansion.features.starts
    bank = mk.KernelBank([mk.Linear(columns=slice(int(a), int(b))) for a, b in pairwise(widths)])
    slow = mk.MultiKernelClassifier(bank, weighting="alignf", loss=loss).fit(Phi, labels)
    assert np.allclose(slow.kernel_weights_, found.kernel_weights_, atol=1e-5)
    assert found.objective_ == pytest.approx(slow.objective_, rel=2e-3)
    gap = np.abs(found.decision_function(X) - slow.decision_function(Phi))
    assert gap.max() < (1e-5 if loss == "squared" else 0.2)


def test_joint_rules_with_other_losses(data):
    X, _, labels = data
    raw = {"weighting": "lp", "loss": "logistic", "normalize": None}  # the same factors for both
    found = classifier(**raw).fit(X, labels)
    exact = classifier(**raw, approximation=None).fit(X, labels)
    assert found.duality_gap_ < 1e-3
    assert 0 <= found.objective_ - exact.objective_ <= 0.02 * exact.objective_


def test_epsilon_insensitive_loss(data):
    X, y, _ = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = regressor(loss="epsilon_insensitive", weighting="uniform").fit(X, y)
    exact = regressor(loss="epsilon_insensitive", weighting="uniform", approximation=None).fit(X, y)
    assert found.objective_ == pytest.approx(exact.objective_, rel=0.03)


def test_classes_and_probabilities(data):
    X, y, _ = data
    labels = np.digitize(y, [-0.5, 0.7])
    for options in ({"loss": "squared"}, {"loss": "squared", "multiclass": "per_class"}):
        model = classifier(**options).fit(X, labels)
        exact = classifier(**options, approximation=None).fit(X, labels)
        P = model.predict_proba(X)
        assert np.allclose(P.sum(axis=1), 1.0) and P.shape == (600, 3)
        assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
        assert abs(model.score(X, labels) - exact.score(X, labels)) < 0.03
        assert np.abs(P - exact.predict_proba(X)).mean() < 0.03
        assert model.kernel_weights_.shape == exact.kernel_weights_.shape


@pytest.mark.parametrize("multiclass", ["shared", "per_class"])
@pytest.mark.parametrize(
    ("options", "atol"),
    [
        ({}, 1e-8),
        ({"C": "loo"}, 0.02),  # constants are found to one percent
        # Features, unlike kernels, are centred and scaled with class weights.
        (
            {
                "class_weight": "balanced",
                "weighting": "uniform",
                "center": False,
                "normalize": None,
            },
            1e-6,
        ),
    ],
)
def test_probabilities_with_weights_are_those_of_the_exact_fit(
    data, rng, multiclass, options, atol
):
    X, y, _ = (part[:120] for part in data)
    labels = np.digitize(y, [-1.0, 1.0])
    omega = rng.choice([0.02, 0.5, 1.0, 3.0], 120)
    options = {"loss": "squared", "multiclass": multiclass, **options}
    found = classifier(**options, approximation=mk.Nystroem(rank=120)).fit(X, labels, omega)
    exact = classifier(**options, approximation=None).fit(X, labels, omega)
    assert np.allclose(found.predict_proba(X), exact.predict_proba(X), atol=atol)


def test_every_class_has_its_own_constant_by_leave_one_out(data):
    """Certificates are those of the learners that were used."""
    X, y, _ = (part[:120] for part in data)
    labels = np.digitize(y, [-1.0, 1.0])
    model = classifier(
        loss="squared", multiclass="per_class", C="loo", approximation=mk.Nystroem(rank=120)
    ).fit(X, labels)
    found = model.certify_approximation(X, labels)
    assert found.lower == pytest.approx(model.objective_, rel=1e-4)
    assert found.upper == pytest.approx(model.objective_, rel=1e-4)
    assert model.approximation_.objective_bound < 1e-3 * model.objective_


def test_constant_by_leave_one_out(data):
    """Leave-one-out of the rows of the survey, here all of them: the same as that of features."""
    X, y, _ = (part[:300] for part in data)
    found = regressor(alpha="loo").fit(X, y)
    Phi, starts = found._expansion.features(X), found._expansion.features.starts
    bank = mk.KernelBank([mk.Linear(columns=slice(int(a), int(b))) for a, b in pairwise(starts)])
    slow = mk.MultiKernelRegressor(bank, weighting="alignf", alpha="loo").fit(Phi, y)
    assert found.objective_ == pytest.approx(slow.objective_, rel=0.05)
    assert np.allclose(found.predict(X), slow.predict(Phi), atol=0.05)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_left_out_values_of_features_are_those_of_kernels(
    monkeypatch, loss, fit_intercept, weighted
):
    """With all samples as landmarks, and labels that are noise: nothing shows the own label."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.permutation(np.repeat([0, 1], 20))
    omega = rng.integers(1, 4, 40).astype(float) if weighted else np.ones(40)
    seen = []

    def keep(method, held, *rest, **options):
        seen.append(held[:, 0])
        return calibrate(method, held, *rest, **options)

    monkeypatch.setattr(from_sums, "calibrate", keep)
    monkeypatch.setattr(probabilities, "calibrate", keep)
    for way in (mk.Nystroem(rank=40), None):
        model = mk.MultiKernelClassifier(
            mk.Gaussian(20.0),
            weighting="uniform",
            loss=loss,
            C=10.0,
            fit_intercept=fit_intercept,
            calibration="sigmoid",
            approximation=way,
        ).fit(X, y, omega)
    found, exact = seen
    inside = model.decision_function(X)
    # The span rule and one Newton step with a smoothed kink differ where multipliers move.
    part = {
        "squared": 1e-9,
        "logistic": 0.01 if weighted else 1e-3,
        "hinge": 0.15 if weighted else 0.01,
    }[loss]
    assert np.abs(found - exact).mean() < part * np.abs(inside - exact).mean()


def test_features_without_curvature_keep_the_intercept(monkeypatch):
    """All multipliers at their bounds: steps in the intercept were of the order 1e9."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.permutation(np.repeat([0, 1], 20))
    seen = []

    def keep(method, held, *rest, **options):
        seen.append(held)
        return calibrate(method, held, *rest, **options)

    monkeypatch.setattr(from_sums, "calibrate", keep)
    mk.MultiKernelClassifier(
        mk.Gaussian(20.0), weighting="uniform", C=0.3, approximation=mk.Nystroem(rank=40)
    ).fit(X, y)
    assert np.abs(seen[0]).max() < 1.0


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_constant_by_leave_one_out_of_noise_is_large(fit_intercept):
    """Without an intercept, the mean of the others must not show the target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    y = np.repeat([-1.0, 1.0], 50)  # such targets have the mean zero
    options = {"alpha": "loo", "weighting": "uniform", "fit_intercept": fit_intercept}
    bank = mk.Gaussian(20.0)
    exact = mk.MultiKernelRegressor(bank, **options).fit(X, y)
    found = mk.MultiKernelRegressor(bank, approximation=mk.Nystroem(rank=100), **options).fit(X, y)
    assert np.allclose(found.predict(X), exact.predict(X), atol=0.01)


def test_sample_weights_are_repetitions(data):
    X, y, _ = (part[:100] for part in data)
    omega = np.random.default_rng(1).integers(0, 3, 100).astype(float)
    landmarks = mk.Nystroem(rank=50)
    weighted = regressor(approximation=landmarks).fit(X, y, omega)
    rows = np.repeat(np.arange(100), omega.astype(int))
    repeated = regressor(approximation=landmarks).fit(X[rows], y[rows])
    # Other landmarks are drawn, so that only what does not depend on them can be the same.
    assert weighted._stream.sums.weight == len(rows) == repeated._stream.sums.n
    again = regressor(approximation=landmarks).fit(X[omega > 0], y[omega > 0], omega[omega > 0])
    assert np.allclose(weighted.predict(X), again.predict(X))


def test_streams_add_up(data):
    X, y, labels = data
    whole = regressor().fit(X[:300], y[:300])
    stream = regressor().partial_fit(X[:300], y[:300])
    assert np.array_equal(whole.predict(X), stream.predict(X))
    for part in np.array_split(np.arange(300, 600), 3):
        stream = pickle.loads(pickle.dumps(stream)).partial_fit(X[part], y[part])
    from multikernel.grams.lowrank.sums import SumsOfChunk

    kept = stream._stream
    again = SumsOfChunk(
        kept.features, np.zeros(kept.features.n_features), kept.columns, products()
    )((X, y, None))
    assert kept.sums.n == 600
    size = np.abs(again.products).max()
    assert np.allclose(kept.sums.products, again.products, atol=1e-9 * size)
    model = classifier(loss="squared").partial_fit(X[:200], labels[:200] * 0, classes=[0, 1])
    model.partial_fit(X, labels)
    assert model.score(X, labels) > 0.85
    with pytest.raises(ValueError, match="label 7 is not among the classes"):
        model.partial_fit(X[:2], np.array([0, 7]))
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.partial_fit(X[:, :2], labels)


def products():
    from multikernel.grams.engines import find_products

    return find_products("cpu")


def test_rows_in_chunks_give_the_same(data):
    X, y, labels = data
    omega = np.random.default_rng(0).random(600)
    model = regressor().fit(open_rows(X, y, sample_weight=omega, chunk_rows=70))
    one = regressor().fit(open_rows(X, y, sample_weight=omega, chunk_rows=70))
    assert np.array_equal(model.predict(X), one.predict(X))
    jobs = regressor(n_jobs=2).fit(open_rows(X, y, sample_weight=omega, chunk_rows=70))
    assert np.array_equal(model.predict(X), jobs.predict(X))
    by_passes = classifier(loss="logistic").fit(open_rows(X, labels, chunk_rows=70))
    assert by_passes.score(X, labels) > 0.85
    sparse = regressor().fit(sp.csr_matrix(X), y)
    assert sparse.score(X, y) > 0.8
    with pytest.raises(ValueError, match="approximation='auto'"):
        regressor(approximation=None).fit(open_rows(X, y))
    with pytest.raises(ValueError, match="have no target"):
        regressor().fit(open_rows(X))
    with pytest.raises(ValueError, match="carry their own targets"):
        regressor().fit(open_rows(X, y), y)


def test_model_files_and_copies(data, tmp_path):
    X, y, _ = data
    ways = [WAY, mk.RandomFeatures(40)]
    for way in ways:
        bank = mk.KernelBank([mk.Gaussian(0.3), mk.Polynomial(2), mk.Linear(columns=0)])
        model = mk.MultiKernelRegressor(bank, weighting="alignf", approximation=way).fit(X, y)
        again = mk.load(mk.save(model, tmp_path / "model.skops"))
        assert np.array_equal(again.predict(X), model.predict(X))
        assert str(again.approximation_) == str(model.approximation_)
        assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
        assert len(pickle.dumps(model)) < 3e6
        assert clone(model).get_params()["approximation"].get_params() == way.get_params()
        assert "low-rank" in str(model.plan_) and len(model.support_) == 0
        assert model.column_importance_.sum() == pytest.approx(1.0)
        shares = model.predict(X[:5], split=True)
        assert np.allclose(shares.sum(axis=1) + model.intercept_, model.predict(X[:5]))


def test_auto_is_exact_until_memory_runs_out(data):
    X, y, _ = data
    exact = regressor(approximation="auto").fit(X, y)
    assert not hasattr(exact, "approximation_") and len(exact.support_)
    with pytest.warns(UserWarning, match=r"approximation='auto': an exact fit to 600 samples"):
        found = regressor(approximation="auto", memory_budget="1MB", weighting="uniform").fit(
            X[:, :1], y
        )
    assert found.approximation_.n_features > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"approximation": "nystroem"}, "approximation must be None"),
        ({"normalize": "spherical"}, "normalize='spherical' divides by the length"),
        ({"missing": "ignore"}, "missing='ignore' keeps all kernel matrices"),
        ({"approximation": mk.Nystroem(rank=601)}, "rank=601.*600"),
    ],
)
def test_bad_input_is_explained(data, options, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        regressor(**options).fit(X, y)


def test_streams_need_a_squared_loss_and_features(data):
    X, _, labels = data
    with pytest.raises(ValueError, match="partial_fit needs loss='squared'"):
        classifier(loss="hinge").partial_fit(X, labels)
    assert not hasattr(classifier(approximation=None), "partial_fit")
    with pytest.raises(ValueError, match="certify_approximation needs an estimator"):
        regressor(approximation=None).fit(X, labels).certify_approximation(X, labels)
    with pytest.raises(ValueError, match="class_weight='balanced'"):
        classifier(loss="squared", class_weight="balanced").partial_fit(X, labels)


def test_later_rows_have_the_same_columns_in_the_same_order(data):
    X, y, _ = (part[:200] for part in data)
    table = dict(zip("abcy", [*X.T, y], strict=True))
    stream = regressor().partial_fit(open_rows(table, "y", columns=["a", "b", "c"]))
    before = stream.predict(X)
    for columns in (["c", "b", "a"], ["a", "b", "y2"]):
        others = open_rows({**table, "y2": X[:, 2]}, "y", columns=columns)
        with pytest.raises(ValueError, match="in the same order: pass columns="):
            stream.partial_fit(others)
    with pytest.raises(ValueError, match="have 2 columns, but the first ones had 3"):
        stream.partial_fit(open_rows(table, "y", columns=["a", "b"]))
    assert np.array_equal(stream.predict(X), before)
    stream.partial_fit(open_rows(X, y))  # without names, by position
    stream.partial_fit(open_rows(table, "y", columns=["a", "b", "c"]))


@pytest.mark.parametrize("budget", ["1 MB", "20 MB"])
def test_auto_fits_where_the_exact_fit_does_not(data, budget):
    """The default bank and rule; the samples of the rule and the landmarks are fewer."""
    X, y, labels = data
    for model, target in (
        (mk.MultiKernelRegressor(), y),
        (mk.MultiKernelClassifier(loss="squared"), labels),
    ):
        model.set_params(approximation="auto", memory_budget=budget)
        if MemoryBudget.of(budget).allows(2 * 8 * len(X) ** 2):
            assert not hasattr(model.fit(X, target), "approximation_")
            continue
        with pytest.warns(UserWarning, match="an exact fit to .* more than the memory budget"):
            model.fit(X, target)
        room = np.sqrt(MemoryBudget.of(budget).bytes / 8)
        assert model.approximation_.n_features < room < len(X)
        assert model.score(X, target) > 0.8


def test_sequences_in_memory_and_in_chunks_have_the_same_features(rng, tmp_path):
    texts = ["".join(rng.choice(list("acgt"), 30)) for _ in range(200)]
    y = np.array([text.count("ac") for text in texts], dtype=float)
    rows = open_rows({"s": texts, "y": y}, "y", texts=["s"], chunk_rows=70)
    for rule in ("alignf", "loo"):
        model = mk.MultiKernelRegressor([mk.Spectrum(2), mk.Spectrum(3)], rule)
        model.set_params(approximation=mk.Nystroem(rank=80))
        expected = clone(model).fit(rows).predict(next(iter(rows)).X)
        for X in (texts, np.array(texts, dtype=object), np.array(texts, dtype=object)[:, None]):
            np.testing.assert_allclose(model.fit(X, y).predict(X)[:70], expected, atol=1e-8)
        mk.save(model, tmp_path / "model.skops")
        assert np.array_equal(
            mk.load(tmp_path / "model.skops").predict(texts), model.predict(texts)
        )
    # Each of the 16 pairs of letters has a count: as many landmarks make the features exact.
    exact = mk.MultiKernelRegressor([mk.Spectrum(2)], "uniform")
    few = clone(exact).set_params(approximation=mk.Nystroem(rank=30)).fit(texts, y)
    np.testing.assert_allclose(few.predict(texts), exact.fit(texts, y).predict(texts), atol=1e-6)


def test_chunks_of_named_rows_are_predicted_without_a_warning(data, tmp_path):
    X, y, _ = (part[:200] for part in data)
    table = dict(zip("abcy", [*X.T, y], strict=True))
    rest, test = hold_out(open_rows(table, "y"), 50)
    model = regressor().fit(rest)
    mk.save(model, tmp_path / "m.skops")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = model.score(test.X, test.y)
        for other in (mk.load(tmp_path / "m.skops"), pickle.loads(pickle.dumps(model))):
            assert other.score(test.X, test.y) == score
        stream = regressor().partial_fit(rest)
        assert stream.predict(test.X).shape == (50,)
        words = {"s": np.tile(["acgt", "gattaca"], 100), "y": y}
        part, other = hold_out(open_rows(words, "y", texts=["s"]), 50)
        read = regressor().set_params(kernels=[mk.Spectrum(k=2)], weighting="uniform").fit(part)
        assert read.predict(other.X).shape == (50,)
    with pytest.raises(ValueError, match="2 features, but"), pytest.warns(UserWarning):
        model.predict(test.X[:, :2])
    with pytest.raises(ValueError, match="contains infinity"):
        model.predict(np.full((1, 3), np.inf))
    pandas = pytest.importorskip("pandas")
    named = pandas.DataFrame(X, columns=list("abc"))
    with pytest.raises(ValueError, match="same order"):
        model.predict(named[["c", "b", "a"]])
    for way in (WAY, None):  # arrays are unexpected after a fit to a data frame, as elsewhere
        model.set_params(approximation=way).fit(named, y)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            model.predict(X)


def test_classifiers_refuse_rows_whose_target_is_no_label(data):
    X, y, _ = data
    for estimator in (
        classifier(loss="squared"),
        mk.MultiKernelClassifierCV(BANK, loss="squared", approximation=WAY),
    ):
        with pytest.raises(ValueError, match="the target is continuous"):
            estimator.fit(open_rows(X, y))
        with pytest.raises(ValueError, match="one label per row; these rows have 2"):
            estimator.fit(open_rows(X, np.round(np.c_[y, y])))
    whole = classifier(loss="squared").fit(open_rows(X, np.round(y).clip(-1.0, 1.0)))
    assert list(whole.classes_) == [-1.0, 0.0, 1.0]  # whole numbers are labels


def test_passes_ask_the_engine_for_products(data, monkeypatch):
    X, y, _ = data
    seen = []

    def products(F, omega, device=None):
        seen.append(len(F))
        return weighted_products(F, omega)

    monkeypatch.setitem(engines._ENGINES, "counting", engines.Engine("counting"))
    engines.register("counting", "given", lambda *_: None, falls_back_to="cpu")
    engines.register_products("counting", products)
    model = regressor(engine="counting").fit(open_rows(X, y, chunk_rows=200))
    assert sum(seen) == len(X) and model.engine_ == "counting"
    plain = regressor().fit(open_rows(X, y, chunk_rows=200))
    assert plain.engine_ == "cpu"
    assert np.array_equal(model.predict(X), plain.predict(X))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_losses_make_at_most_twenty_passes_and_report_the_gap(data, loss, monkeypatch):
    X, _, _ = data
    monkeypatch.setattr(from_sums, "MAX_HELD_FEATURES", 1)
    labels = X[:, 0] > np.median(X[:, 0])  # separable: the scale of the minimum grows with C
    with pytest.warns(ConvergenceWarning, match=r"20 passes over the rows ended .* gap"):
        model = classifier(loss=loss, C=1e12).fit(X, labels)
    assert len(model.history_) == MAX_PASSES == 20
    assert model.duality_gap_ > model.tol


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_steps_on_some_rows_save_passes_over_all_rows(data, loss, monkeypatch):
    """The objective is proven to the same gap, whatever part of the rows memory has room for."""
    X, _, labels = data
    passes, objectives = [], []

    def counted(rows, *parts, **options):
        passes[-1] += rows.n_columns == X.shape[1]  # not the features of held rows
        return reduce_rows(rows, *parts, **options)

    monkeypatch.setattr(from_sums, "reduce_rows", counted)
    for held in (len(X), len(X) - 100, 1):
        passes.append(0)
        monkeypatch.setattr(from_sums, "MAX_HELD_FEATURES", held * 123)  # features of a row
        model = classifier(loss=loss).fit(X, labels)
        assert model.duality_gap_ <= model.tol
        objectives.append(model.objective_)
    assert np.ptp(objectives) <= model.tol * max(objectives)
    # Rows that are all held need no pass for steps. Most of them save passes where the loss has
    # no kinks; with kinks that takes more rows than these.
    assert passes[0] == 2 and max(passes) < 2 + MAX_PASSES
    assert loss == "hinge" or passes[1] < passes[2]


@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_all_fit_into_memory_are_learned_to_the_gap(data, C, weighted):
    X, _, labels = data
    omega = np.random.default_rng(1).choice([0.01, 100.0], len(X)) if weighted else None
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = classifier(loss="hinge", C=C).fit(X, labels, sample_weight=omega)
    assert model.duality_gap_ <= model.tol


@pytest.mark.parametrize("held", [500, 300])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("kind", ["two values", "wide margins", "blobs"])
def test_separable_rows_are_learned_to_the_gap(rng, kind, C, held, monkeypatch):
    """All samples are far from the kink of the loss before its minimum is reached."""
    side = rng.choice([-1.0, 1.0], 500)
    X = {
        "two values": np.column_stack([side, rng.integers(0, 2, (500, 2))]),
        "wide margins": np.column_stack([side, np.abs(rng.normal(size=500)) * side]),
        "blobs": 3 * side[:, None] + 0.3 * rng.normal(size=(500, 2)),
    }[kind]
    model = mk.MultiKernelClassifier([mk.Linear()], "uniform", loss="hinge", C=C)
    exact = clone(model).fit(X, side)
    monkeypatch.setattr(from_sums, "MAX_HELD_FEATURES", held * X.shape[1])
    model.set_params(approximation=WAY).fit(X, side)
    assert model.duality_gap_ <= model.tol
    # Both objectives are within the gap of the same optimum.
    assert model.objective_ == pytest.approx(exact.objective_, rel=2 * model.tol)


@pytest.mark.parametrize("epsilon", [5.0, 100.0])
def test_targets_within_epsilon_need_no_slopes(data, epsilon):
    X, y, _ = data
    model = regressor(loss="epsilon_insensitive", epsilon=epsilon, weighting="uniform").fit(X, y)
    assert model.objective_ == 0.0 and model.duality_gap_ == 0.0


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("rule", [mk.L1(), mk.LpNorm(1.5), mk.L2Ball(), mk.ElasticNetNorm()])
def test_joint_rules_in_passes_keep_weights_feasible(rng, rule, loss, monkeypatch):
    """Held rows may choose steps longer than those of the model, but not weights beyond them."""
    X = rng.standard_normal((2000, 6))
    y = X[:, 0] + X[:, 1] ** 2 - 1 + 0.3 * rng.standard_normal(2000) > 0
    bank = [mk.Gaussian(0.3, columns=[j]) for j in range(6)]
    monkeypatch.setattr(from_sums, "MAX_HELD_FEATURES", 1000 * 120)
    model = mk.MultiKernelClassifier(bank, rule, loss=loss, approximation=mk.Nystroem(20)).fit(X, y)
    assert np.all(model.kernel_weights_ >= 0)
    assert model.duality_gap_ <= model.tol


def test_steps_do_not_depend_on_the_unit_of_the_target(data):
    X, y, _ = data
    found = []
    for unit in (1e-6, 1.0, 1e6):
        model = regressor(loss="epsilon_insensitive", epsilon=0.1 * unit, alpha=1.0 / unit)
        found.append(model.fit(X, unit * y))
    for model, unit in zip(found, (1e-6, 1.0, 1e6), strict=True):
        assert model.duality_gap_ <= 1e-4
        np.testing.assert_allclose(model.predict(X) / unit, found[1].predict(X), atol=0.02)


@pytest.mark.parametrize("budget", [None, "500 kB"])
def test_features_held_in_memory_take_half_of_the_budget(data, budget, monkeypatch):
    X, _, labels = data
    held = []

    def opened(F, *parts, **options):
        held.append(F.nbytes)
        return open_rows(F, *parts, **options)

    monkeypatch.setattr(from_sums, "open_rows", opened)
    model = classifier(loss="logistic", memory_budget=budget).fit(open_rows(X, labels))
    assert model.duality_gap_ <= model.tol
    full = 8 * len(X) * model.approximation_.n_features
    assert held == [full] if budget is None else 200_000 < held[0] <= 250_000 < full


def test_intervals_train_on_parts(data):
    X, y, _ = data
    model = regressor(weighting="uniform").fit(X, y)
    low, high = model.predict_interval(X[:50], method="split")
    assert np.all(low < high)


def test_other_rules_and_constants_take_no_pass(data):
    X, y, _ = data
    model = regressor().fit(open_rows(X, y))
    for change in ({"alpha": 10.0}, {"weighting": "lp"}, {"weighting": "uniform", "alpha": 0.1}):
        model.set_params(**change).refit()
        fresh = clone(model).fit(open_rows(X, y))
        assert np.array_equal(model.predict(X), fresh.predict(X))
    with pytest.raises(ValueError, match="refit reuses the sums"):
        regressor(approximation=None).fit(X, y).refit()


def test_all_folds_from_one_pass(data):
    """Scores of folds are those of models trained on the other folds, row by row."""
    X, y, labels = data
    rules, alphas = ["uniform", "alignf"], [0.1, 10.0]
    search = mk.MultiKernelRegressorCV(
        BANK, weighting=rules, alphas=alphas, cv=3, approximation=WAY
    ).fit(X, y)
    kept = search._stream
    # The slow twin: linear kernels of the same features, cut into the same folds.
    fold = fold_of_rows(X, 3)
    starts = kept.features.starts
    bank = mk.KernelBank([mk.Linear(columns=slice(int(a), int(b))) for a, b in pairwise(starts)])
    Phi = kept.features(X)
    for i, (rule, alpha) in enumerate((r, a) for r in rules for a in alphas):
        for f in range(3):
            train, test = fold != f, fold == f
            slow = mk.MultiKernelRegressor(bank, weighting=rule, alpha=alpha)
            slow.fit(Phi[train], y[train])
            expected = slow.score(Phi[test], y[test])
            assert search.cv_results_[f"split{f}_test_score"][i] == pytest.approx(
                expected, abs=1e-6
            )
    assert search.alpha_ in alphas and search.weighting_ in rules
    model = regressor(weighting=search.weighting_, alpha=search.alpha_).fit(X, y)
    assert np.allclose(model.predict(X), search.predict(X), atol=1e-8)
    choose = mk.MultiKernelClassifierCV(
        BANK, weighting="alignf", loss="squared", approximation=WAY
    ).fit(open_rows(X, labels))
    assert choose.score(X, labels) > 0.85 and choose.predict_proba(X).shape == (600, 2)


def fold_of_rows(X, n_folds):
    import zlib

    seed = zlib.crc32(np.ascontiguousarray(X).data)
    n = len(X)
    return np.random.default_rng([seed, n, 1]).permutation(np.arange(n) % n_folds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scoring": "neg_mean_absolute_error"}, "can only score folds by squared error"),
        ({"cv": [([0, 1], [2])]}, "cv must be a number of folds"),
        ({"loss": "epsilon_insensitive"}, "works only with loss='squared'"),
    ],
)
def test_searches_say_what_sums_cannot_do(data, options, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        mk.MultiKernelRegressorCV(BANK, approximation=WAY, **options).fit(X, y)


def test_what_needs_exact_kernels_says_so(data):
    X, _, labels = (part[:100] for part in data)
    model = classifier(loss="squared", approximation=mk.Nystroem(rank=20)).fit(X, labels)
    with pytest.raises(ValueError, match="fitted with approximation="):
        model.certificate(X, labels)
    model.set_params(approximation=None).fit(X, labels)
    assert not hasattr(model, "approximation_")


@pytest.mark.parametrize("rule", ["loo", "best"])
@pytest.mark.parametrize("center", [True, False])
def test_features_of_the_learned_sum_match_the_sum_as_one_kernel(data, rule, center):
    """The slow twin: the learned sum given as one kernel, with landmarks for all samples."""
    X, y, _ = (part[:150] for part in data)
    way = mk.Nystroem(rank=150)
    options = {"center": center, "normalize": None, "approximation": way}
    found = regressor(weighting=rule, **options).fit(X, y)
    assert found.approximation_.n_summed == 3
    assert found.approximation_.features_of_kernels.shape == (1,)
    assert "learned sum of 3 kernels" in str(found.approximation_)
    used = [
        weight * kernel
        for weight, kernel in zip(found.kernel_weights_.tolist(), found.bank_, strict=True)
        if weight > 0
    ]
    total = used[0]
    for kernel in used[1:]:
        total = total + kernel
    slow = mk.MultiKernelRegressor([total], "uniform", **options | {"approximation": None})
    assert np.allclose(found.predict(X), slow.fit(X, y).predict(X), atol=1e-6)


def test_shares_of_the_learned_sum_add_up_and_are_centred(data):
    X, _, labels = data
    found = classifier(weighting="loo", loss="squared").fit(X, labels)
    shares = found.decision_function(X, split=True)
    values = found.decision_function(X)
    rest = values - shares.sum(axis=1)
    assert np.allclose(rest, found.intercept_, atol=1e-9)
    unused = found.kernel_weights_ == 0
    assert np.all(shares[:, unused] == 0)
    assert np.abs(shares.mean(axis=0)).max() < 1e-8  # all rows are in the survey's sample
    assert found.column_importance_.shape == (3,)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_the_learned_sum_is_certified(data, loss):
    X, _, labels = (part[:200] for part in data)
    from multikernel.weighting.given import GivenWeights

    raw = {"normalize": None, "loss": loss}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = classifier(**raw, weighting="loo", approximation=mk.Nystroem(rank=25)).fit(
            X, labels
        )
    certificate = found.certify_approximation(X, labels)
    rule = GivenWeights(found.kernel_weights_)
    exact = classifier(**raw, weighting=rule, approximation=None).fit(X, labels)
    optimum = exact.objective_ * np.array([1 - exact.duality_gap_, 1])
    assert certificate.lower <= optimum[1] * (1 + 1e-9)
    assert certificate.upper >= optimum[0] * (1 - 1e-9)
    report = found.approximation_
    assert report.objective - report.objective_bound <= optimum[1] * (1 + 1e-9)
    assert found.objective_ >= optimum[0] * (1 - 1e-9)


def test_the_learned_sum_in_files_streams_and_refits(data, tmp_path):
    X, y, _ = data
    found = regressor(weighting="loo").fit(X, y)
    mk.save(found, tmp_path / "sum.skops")
    loaded = mk.load(tmp_path / "sum.skops")
    assert np.array_equal(loaded.predict(X), found.predict(X))
    assert loaded.approximation_.n_summed == 3
    assert np.array_equal(pickle.loads(pickle.dumps(found)).predict(X), found.predict(X))
    before = found.objective_
    assert found.set_params(alpha=10.0).refit().objective_ > before
    with pytest.raises(ValueError, match=r"learned with weighting=LeaveOneOut\(\)"):
        found.set_params(weighting="alignf").refit()
    stream = regressor(weighting="loo")
    for part in (slice(0, 300), slice(300, 600)):
        stream.partial_fit(X[part], y[part])
    assert stream.score(X, y) > 0.8


def test_the_size_of_learned_weights_follows_all_rows(monkeypatch):
    """Weights of "loo" include the ridge constant, which is chosen again if there are more rows."""
    monkeypatch.setattr(from_sums, "MAX_RULE_ROWS", 500)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(1500)
    few = {"approximation": mk.Nystroem(rank=100), "weighting": "loo"}
    found = mk.MultiKernelRegressor(BANK, **few).fit(X, y)
    best = mk.MultiKernelRegressor(BANK, alpha="loo", **few).fit(X, y)
    assert np.allclose(found.predict(X), best.predict(X), atol=1e-6)


def test_kernels_of_one_feature_stay_exact_with_rules_that_read_samples(data):
    X, y, _ = data
    found = mk.MultiKernelRegressor(mk.per_feature(), "loo", approximation=WAY).fit(X, y)
    assert found.approximation_.n_summed == 0
    assert np.all(found.approximation_.relative_errors < 1e-12)


def test_shares_of_a_kernel_that_is_zero_are_zero(data):
    X, y = data[0] * [1.0, 0.0, 1.0], data[1]
    zero = mk.Polynomial(2, coef0=0.0, columns=[1])
    model = mk.MultiKernelRegressor([mk.Gaussian(0.3), zero, mk.Gaussian(0.03)], "uniform")
    model.set_params(approximation=WAY, center=False, normalize=None).fit(X, y)
    shares = model.predict(X, split=True)
    assert model.kernel_weights_[1] == 0 and not shares[:, 1].any()
    assert np.allclose(shares.sum(axis=1) + model.intercept_, model.predict(X))


@pytest.mark.parametrize("kernel", [mk.Gaussian(0.3), mk.Linear(), mk.Gaussian(0.3) + mk.Linear()])
def test_one_landmark_is_enough_for_the_learned_sum(data, kernel):
    X, y, _ = data
    model = mk.MultiKernelRegressor([kernel], "best", center=False, approximation=mk.Nystroem(1))
    part, K = model.fit(X, y).predict(X) - model.intercept_, kernel(X, X)
    assert np.max(np.abs(part @ K) / np.linalg.norm(K, axis=0)) > 0.99 * np.linalg.norm(part) > 0
