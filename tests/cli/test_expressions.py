"""Kernels, weightings and views as people type them."""

import numpy as np
import pytest

import multikernel as mk
from multikernel.cli.expressions import evaluate_kernels, evaluate_weighting, reads_text
from multikernel.cli.views import View, build_bank, read_views
from multikernel.tables import DataError, Frame, TableEncoder

X = np.random.default_rng(0).normal(size=(40, 4))


def bank(text):
    return evaluate_kernels(text, lambda: mk.default_bank(X))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("linear", [mk.Linear()]),
        ("Linear()", [mk.Linear()]),
        ("Gaussian(0.5)", [mk.Gaussian(0.5)]),
        ("gaussian(gamma=1/4)", [mk.Gaussian(0.25)]),
        ("gaussians([0.1, 1])", list(mk.gaussians([0.1, 1]))),
        ("polynomials((1, 2)) + linear", [*mk.polynomials([1, 2]), mk.Linear()]),
        ("2 * Linear()**2 + Laplacian(gamma=3)", [2 * mk.Linear() ** 2 + mk.Laplacian(3)]),
        ("Gaussian(2)**0.5 + linear", [mk.Gaussian(2) ** 0.5 + mk.Linear()]),
        ("(gaussian(2) * laplacian(1))**(3/2)", [(mk.Gaussian(2) * mk.Laplacian()) ** 1.5]),
        ("default", list(mk.default_bank(X))),
        (
            "ChiSquared(0.5)**2 + additivechisquared",
            [mk.ChiSquared(0.5) ** 2 + mk.AdditiveChiSquared()],
        ),
        ("sigmoid(gamma=0.1, coef0=-1)", [mk.Sigmoid(0.1, -1)]),
    ],
)
def test_kernels_read_as_they_print(text, expected):
    assert list(bank(text)) == expected


def test_what_a_kernel_prints_can_be_typed_again():
    for kernel in (
        mk.Gaussian(0.5) + 2.0 * mk.Linear() ** 2,
        mk.Polynomial(3, 0.5, 2.0),
        mk.Laplacian(0.5) ** 1.5,
    ):
        assert list(bank(repr(kernel))) == [kernel]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gausian(1)", "'gausian' is not known. Did you mean 'gaussian'"),
        ("Gaussian(", "is not a valid expression"),
        ("Gaussian(gamma=0.5, width=2)", "Gaussian: got an unexpected keyword argument 'width'"),
        ("Gaussian(gamma=-1)", "gamma must be a positive"),
        ("Gaussian(columns=[1])", "columns are selected in a views file"),
        ("linear**0.5", "a fractional power"),
        ("3", "is not a kernel"),
        ("__import__('os').system('true')", "is not a valid expression"),
        ("().__class__", "is not a valid expression"),
        ("[k for k in (1, 2)]", "is not a valid expression"),
        ("lambda: 1", "is not a valid expression"),
        ("Gaussian(gamma=9**9**9)", "too large"),
        ("Gaussian(gamma='a' * 3)", "gamma"),
        ("open('x')", "'open' is not known"),
    ],
)
def test_anything_else_is_refused(text, message):
    with pytest.raises((ValueError, TypeError), match=message.replace("(", r"\(")):
        bank(text)


def test_weightings_are_names_or_objects():
    assert evaluate_weighting("alignf") == "alignf"
    assert evaluate_weighting("LpNorm(p=4/3)").p == pytest.approx(4 / 3)
    assert evaluate_weighting("lpnorm(p=inf)").p == float("inf")
    assert type(evaluate_weighting("ElasticNetNorm(p=1, mu=0.5)")) is mk.ElasticNetNorm
    with pytest.raises(ValueError, match=r"'alignff' is not known.*'alignf'"):
        evaluate_weighting("alignff")
    with pytest.raises(ValueError, match="is not a weighting"):
        evaluate_weighting("3 + 4")


def test_sequence_kernels_are_known():
    assert reads_text("Spectrum(k=3)") and reads_text("spectrum(3)")
    assert not reads_text("default")


# -- views ----------------------------------------------------------------------------------------

FRAME = Frame.of(
    {"gene_1": [1.0, 2, 3, 4], "gene_2": [0.0, 1, 0, 2], "age": [3.0, 1, 2, 9],
     "stage": ["i", "ii", "i", "ii"], "dna": ["ACGT", "ACGA", "TTGA", "TACG"]}
)  # fmt: skip


def views_of(tmp_path, text, kernels=("default",)):
    path = tmp_path / "views.toml"
    path.write_text(text)
    return read_views(path, FRAME, kernels)


def test_a_views_file_names_columns_patterns_ranges_and_kernels(tmp_path):
    text = """
[expression]
columns = ["gene_*"]
[clinical]
columns = ["age", "stage"]
kernels = ["Linear()", "gaussians([0.1, 1])"]
[first]
range = [0, 2]
kernels = "linear"
[sequence]
columns = "dna"
kernels = ["Spectrum(k=2)"]
"""
    views = views_of(tmp_path, text)
    assert views == [
        View("expression", ("gene_1", "gene_2"), ("default",)),
        View("clinical", ("age", "stage"), ("Linear()", "gaussians([0.1, 1])")),
        View("first", ("gene_1", "gene_2"), ("linear",)),
        View("sequence", ("dna",), ("Spectrum(k=2)",)),
    ]
    encoder = TableEncoder.fit(FRAME, texts=["dna"])
    assert encoder.names == ["gene_1", "gene_2", "age", "stage=i", "stage=ii", "dna"]
    built = build_bank(views, encoder, encoder(FRAME))
    assert built.names[13:] == [
        "clinical: Linear()",
        "clinical: Gaussian(gamma=0.1)",
        "clinical: Gaussian(gamma=1)",
        "first: Linear()",
        "sequence: Spectrum(k=2)",
    ]
    assert built[0].columns == (0, 1) and built[0].scaling == "standard"
    assert built[13] == mk.Linear(columns=(2, 3, 4))
    assert built[17].columns == (5,)
    model = mk.MultiKernelClassifier(built, "uniform").fit(encoder(FRAME), [0, 1, 0, 1])
    assert model.kernel_names_ == built.names
    assert len(model.bank_[0].scaling.scale) == 2  # learned in fit, from the training rows


def test_kernels_of_a_view_see_its_columns_only(tmp_path):
    views = views_of(tmp_path, '[a]\ncolumns = ["age"]\nkernels = ["linear + 2 * gaussian(0.1)"]')
    frame = FRAME.without(["dna"])
    encoder = TableEncoder.fit(frame)
    Z = encoder(frame)
    (kernel,) = build_bank(views, encoder, Z)
    age = Z[:, [2]]
    np.testing.assert_allclose(kernel(Z), age @ age.T + 2 * mk.Gaussian(0.1)(age))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "defines no views"),
        ("a = 3", "must be a table"),
        ("[a", "is not TOML"),
        ("[a]\nkernels = ['linear']", "needs either columns"),
        ("[a]\ncolumns = ['x']", "there is no column 'x'"),
        ("[a]\ncolumns = [3]", "must be a list of names"),
        ("[a]\nrange = [0, 99]", "range must be"),
        ("[a]\ncolumns = ['age']\nkernel = 'linear'", "unknown key 'kernel'"),
        ("[a]\ncolumns = ['age']\nkernels = [3]", "must be a string or a list"),
        ("[a]\ncolumns = ['dna', 'age']\nkernels = 'Spectrum(2)'", "read one text column"),
    ],
)
def test_bad_views_files_are_told_what_is_wrong(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        views_of(tmp_path, text)
    with pytest.raises(FileNotFoundError, match="no views file"):
        read_views(tmp_path / "absent.toml", FRAME, ("default",))
