"""Small data, and a way to call the command line."""

import csv
import json

import numpy as np
from typer.testing import CliRunner

from multikernel.cli import app


def write_csv(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def make_columns(n=90, seed=0):
    """Two numbers and a category that tell three kinds apart, and a number that follows them."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    size = np.round(rng.normal(size=n) + 3 * (kind == 1), 4)
    weight = np.round(rng.normal(size=n) + 2 * (kind == 2), 4)
    colour = np.where(rng.random(n) < 0.8, np.array(["red", "green", "blue"])[kind], "green")
    return {
        "size": size.tolist(),
        "weight": weight.tolist(),
        "colour": colour.tolist(),
        "kind": np.array(["ape", "bee", "cat"])[kind].tolist(),
        "price": np.round(2 * size - weight + 0.1 * rng.normal(size=n), 4).tolist(),
    }


def call(*arguments):
    """Run a command; paths and numbers are written out."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    done = call(*arguments)
    assert done.exit_code == 0, done.output + str(done.exception)
    return done


def fail(*arguments, code=1):
    """The message of a command that must not work."""
    done = call(*arguments)
    assert done.exit_code == code, done.output
    return done.stderr


def answer(*arguments):
    """What a command says to machines."""
    return json.loads(succeed(*arguments, "--json").stdout)
