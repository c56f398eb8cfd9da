"""Model files: fitted estimators on disk, in a form that holds numbers and names but no code.

A file is a skops archive of one dictionary: a text that describes the objects, and the arrays it
refers to. skops is asked for dictionaries, lists, texts and arrays only. The objects themselves are
made here, from an explicit list of classes: those in :mod:`.types` and those that engines
:func:`register`. Each class says which attributes are stored (``state``) and checks the attributes
that it is rebuilt from (``from_state``). Beside it lies ``multikernel.json``: the format's version
and a digest of everything else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._archive import FORMAT, ModelFileError, read_archive, write_archive
from .registry import register

__all__ = ["FORMAT", "ModelFileError", "load", "register", "save"]


def save(estimator: Any, path: str | Path) -> Path:
    """Write a fitted estimator to a file that :func:`load` reads.

    What prediction needs is stored: the support vectors, and of all that the kernels know of the
    data only what those with a weight need. The bank itself, a few numbers per kernel, is stored
    whole, so that the loaded estimator can be printed, cloned and certified. The file appears at
    once or not at all; one that is there already is replaced.

    Parameters
    ----------
    estimator : fitted multiple-kernel estimator
    path : path
        Usually with the suffix ``.skops``.

    Returns
    -------
    path : Path
        Where it was written.

    Raises
    ------
    TypeError
        When the estimator holds something that only code can describe: a kernel given as a
        function, a scorer of your own.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mk.MultiKernelClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = mk.save(model, pathlib.Path(folder) / "iris.skops")
    ...     again = mk.load(path)
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    """
    from .document import Writer
    from .pruning import checked

    writer = Writer()
    description = writer.describe(checked(estimator), type(estimator).__name__)
    return write_archive(description, writer.arrays, Path(path))


def load(path: str | Path) -> Any:
    """Read an estimator that :func:`save` has written.

    Nothing in the file is run: its text names classes of an explicit list in the library, its
    arrays fill in their attributes, and a file that asks for anything else is refused.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator
        Predicts the same numbers as the one that was saved.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ModelFileError
        When it is damaged, not a model file, changed by others, or of a newer format. It is a
        ``ValueError``, and its text says which.

    Examples
    --------
    >>> import multikernel as mk
    >>> mk.load("no-such-file.skops")
    Traceback (most recent call last):
    FileNotFoundError: There is no model file 'no-such-file.skops'.
    """
    from .document import Reader
    from .pruning import verify

    path = Path(path)
    description, arrays = read_archive(path)
    try:
        return verify(Reader(arrays).build(description))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ModelFileError(
            f"{path} is whole but does not describe an estimator of this version "
            f"({type(error).__name__}: {error}). Save the model again with the version that wrote "
            "it, or fit it anew."
        ) from error
