"""Small data files and a model."""

import pytest

from tests.cli.helpers import call, make_columns, write_csv


@pytest.fixture
def columns():
    return make_columns()


@pytest.fixture
def animals(tmp_path, columns):
    """A CSV file with numbers, a category, a class and a price."""
    return write_csv(tmp_path / "animals.csv", columns)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A data file and a model of it that nobody changes."""
    folder = tmp_path_factory.mktemp("trained")
    data = write_csv(folder / "animals.csv", make_columns())
    model = folder / "animals.skops"
    done = call("fit", data, "--target", "kind", "--drop", "price", "--out", model, "--C", "10")
    assert done.exit_code == 0, done.output
    return data, model
