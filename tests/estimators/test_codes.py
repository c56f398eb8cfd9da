"""Data frames of numbers and categories: codes, kernels for them, and what is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import multikernel as mk
from multikernel.kernels.mixed_bank import mixed_columns_bank

RNG = np.random.default_rng(0)


def table(n=8):
    return pd.DataFrame(
        {
            "age": np.arange(n) + 20,
            "income": pd.array(np.arange(n) * 100.0, dtype="Float64"),
            "job": pd.Categorical(["b", "a"] * (n // 2), categories=["a", "b", "never used"]),
            "town": ["Ulm", None, "Bonn", "Ulm"] * (n // 4),
            "grade": pd.Categorical(
                ["low", "high", "mid", "low"] * (n // 4),
                categories=["low", "mid", "high"],
                ordered=True,
            ),
            "member": [True, False] * (n // 2),
            "zip": [10.0, 20.0] * (n // 2),
        }
    )


class FakeType:
    """A type of polars has a name and none of the attributes of numpy's."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


class FakeSeries:
    def __init__(self, values):
        self.values = values

    def to_list(self):
        return list(self.values)


class FakePolars:
    """The few methods of a polars frame that are used."""

    def __init__(self, columns, types):
        self._columns = columns
        self.columns = list(columns)
        self.dtypes = [FakeType(name) for name in types]

    def __getitem__(self, name):
        return FakeSeries(self._columns[name])


def test_numbers_codes_places_and_gaps():
    codes = mk.TableCodes(categories=["zip"]).fit(table(4))
    expected = [
        [20, 0, 1, 1, 0, 1, 0],
        [21, 100, 0, -2, 2, 0, 1],
        [22, 200, 1, 0, 1, 1, 0],
        [23, 300, 0, 1, 0, 0, 1],
    ]
    np.testing.assert_array_equal(codes.transform(table(4)), expected)
    assert codes.levels_ == {"job": ("a", "b"), "town": ("Bonn", "Ulm"), "zip": ("10", "20")}
    assert codes.categorical_columns_ == [2, 3, 6]
    assert codes.numeric_columns_ == [0, 1, 4, 5]
    assert codes.get_feature_names_out().tolist() == list(table().columns)
    assert codes.transform(table()).dtype == np.float64


def test_columns_are_found_by_name_in_any_order():
    codes = mk.TableCodes().fit(table())
    turned = table()[list(table().columns)[::-1]]
    np.testing.assert_array_equal(codes.transform(turned), codes.transform(table()))


def test_new_levels_are_none_of_the_known():
    codes = mk.TableCodes().fit(table())
    new = table().assign(town=["Trier", "Ulm", None, "Kiel"] * 2)
    np.testing.assert_array_equal(codes.transform(new)[:4, 3], [-1, 1, -2, -1])
    # Gaps where the training sample had none are missing all the same.
    gap = table().assign(job=pd.Categorical([None] * 8, categories=["a"]))
    np.testing.assert_array_equal(codes.transform(gap)[:, 2], -2)


def test_a_category_may_be_written_in_other_types():
    codes = mk.TableCodes(categories=["zip"]).fit(table())
    others = [
        pd.Series([10, 20] * 4),
        pd.Series(["10", "20"] * 4),
        pd.Series(["10", "20"] * 4, dtype="string"),
        pd.Series(pd.Categorical([10, 20] * 4)),
        pd.Series([10, 20] * 4, dtype="Int64"),
    ]
    for other in others:
        found = codes.transform(table().assign(zip=other))
        np.testing.assert_array_equal(found, codes.transform(table()))


def test_frames_like_those_of_polars():
    columns = {
        "age": [20, 21, 22, 23],
        "job": ["b", "a", "b", None],
        "kind": ["x", "y", "x", "y"],
        "level": [1, 2, 1, 2],
    }
    frame = FakePolars(columns, ["Int64", "String", "Enum(categories=['x', 'y'])", "Categorical"])
    codes = mk.TableCodes().fit(frame)
    expected = [[20, 1, 0, 0], [21, 0, 1, 1], [22, 1, 0, 0], [23, -2, 1, 1]]
    np.testing.assert_array_equal(codes.transform(frame), expected)
    np.testing.assert_array_equal(codes.transform(pd.DataFrame(columns)), expected)
    with pytest.raises(ValueError, match="'day' is of type Datetime"):
        mk.TableCodes().fit(FakePolars({"day": [1, 2]}, ["Datetime(time_unit='us')"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": [1.0, np.nan] * 4}, r"missing values in columns of numbers: 'age' 4.*Fill"),
        ({"income": pd.array([1, None] * 4, dtype="Int64")}, r"numbers: 'income' 4"),
        ({"age": [1.0, np.inf] * 4}, "'age' holds infinite"),
        ({"age": ["x"] * 8}, "'age' must hold numbers, as in the training sample; it holds 'x'"),
        ({"grade": ["low", "top"] * 4}, r"ordered column 'grade' holds 'top'.*'low', 'mid'"),
        ({"grade": [None, "low"] * 4}, "missing values in columns of numbers: 'grade' 4"),
        ({"age": pd.Timestamp("2020-01-01")}, "'age' is of type datetime64"),
        ({"town": [[1, 2]] * 8}, r"'town' holds \[1, 2\]"),
        ({"extra": 1}, "It also has 'extra'; leave them out"),
    ],
)
def test_bad_columns_are_named(change, message):
    codes = mk.TableCodes().fit(table())
    with pytest.raises(ValueError, match=message):
        codes.transform(table().assign(**change))


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="It lacks 'age', 'town'"):
        mk.TableCodes().fit(table()).transform(table().drop(columns=["age", "town"]))
    with pytest.raises(TypeError, match=r"needs a data frame.*got ndarray"):
        mk.TableCodes().fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="more than one column 'a'"):
        mk.TableCodes().fit(pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]))
    with pytest.raises(ValueError, match=r"columns that are not in X: \['zap'\]"):
        mk.TableCodes(categories=["zap"]).fit(table())
    with pytest.raises(TypeError, match="must be a list of names; got the string 'zip'"):
        mk.TableCodes(categories="zip").fit(table())
    with pytest.raises(ValueError, match="at least one column and one row"):
        mk.TableCodes().fit(table().iloc[:0])
    with pytest.raises(ValueError, match="missing values in columns of numbers: 'age' 1"):
        mk.TableCodes().fit(pd.DataFrame({"age": [1.0, None]}))
    notes = pd.DataFrame({"note": [f"text {i}" for i in range(8)]})
    with pytest.raises(ValueError, match=r"'note' holds 8 distinct strings in 8 rows.*too many"):
        mk.TableCodes().fit(notes)
    assert len(mk.TableCodes(categories=["note"]).fit(notes).levels_["note"]) == 8
    with pytest.raises(ValueError, match="'note' is empty"):
        mk.TableCodes().fit(pd.DataFrame({"note": [None, None], "age": [1, 2]}))
    with pytest.raises(NotFittedError):
        mk.TableCodes().transform(table())


def mixed(n=120):
    frame = pd.DataFrame(
        {
            "age": RNG.normal(size=n),
            "job": pd.Categorical(RNG.choice(list("abc"), n)),
            "one": ["same"] * n,
        }
    )
    return frame, ((frame["age"] > 0) ^ (frame["job"] == "b")).to_numpy().astype(int)


def test_kernels_of_both_learn_what_depends_on_both():
    frame, y = mixed()
    codes = mk.TableCodes().fit(frame)
    model = make_pipeline(codes, mk.MultiKernelClassifier(codes.bank(), weighting="align"))
    assert cross_val_score(model, frame, y, cv=3).mean() > 0.85
    model.fit(frame, y)
    new = frame.assign(job="unseen")
    assert np.isfinite(model.decision_function(new)).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    assert clone(codes).get_params() == {"categories": ()}


def test_a_column_of_one_level_changes_nothing():
    frame, y = mixed()
    found = []
    for part in (frame, frame.drop(columns="one")):
        X = mk.TableCodes().fit_transform(part)
        bank = [mk.Overlap(columns=slice(1, None)), mk.Gaussian(columns=0)]
        model = mk.MultiKernelClassifier(bank, weighting="align").fit(X, y)
        found.append(model.decision_function(X))
    np.testing.assert_allclose(*found, atol=1e-6)


def test_the_bank_balances_columns_in_products():
    # One column of numbers and three of categories: a quarter of the distance is of numbers.
    X = np.column_stack([RNG.normal(size=50), RNG.integers(0, 3, (50, 3))])
    product = mixed_columns_bank([0], [1, 2, 3]).adapt(X)[-2]  # width factor 1
    far, overlap = product.parts
    plain = mk.at_distances(mk.Exponential(), [1.0], columns=0).adapt(X)[0]
    assert far.length == pytest.approx(4 * plain.length)
    assert overlap.exponent == pytest.approx(0.75)
    assert overlap.kernel == mk.Overlap(columns=[1, 2, 3]).adapt(X)
    for kernel in mixed_columns_bank([0], [1, 2, 3]).adapt(X):
        values = np.linalg.eigvalsh(kernel(X))
        assert values[0] >= -1e-12 * values[-1]


def test_the_bank_of_one_sort_of_columns():
    assert len(mixed_columns_bank([0, 1], [])) == 7
    assert len(mixed_columns_bank([], [0, 1])) == 4
    assert len(mixed_columns_bank([0], [1])) == 17
