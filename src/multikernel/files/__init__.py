"""Model files: fitted estimators on disk, in a form that holds numbers and names but no code.

A file is a skops archive of one dictionary: a text that describes the objects, and the arrays it
refers to. skops handles only dictionaries, lists, texts and arrays. The objects themselves are
rebuilt here, from an explicit list of classes: those in :mod:`.types` and those that engines
:func:`register`. Each class says which attributes are stored (``state``) and checks the attributes
that it is rebuilt from (``from_state``). The archive also holds ``multikernel.json``: the format's
version and a digest of everything else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._archive import FORMAT, ModelFileError, read_archive, write_archive
from .registry import register

__all__ = ["FORMAT", "ModelFileError", "load", "register", "save"]


def save(estimator: Any, path: str | Path) -> Path:
    """Write a fitted estimator to a file that :func:`load` reads.

    The file stores what prediction needs: the support vectors, and the data that kernels with a
    non-zero weight need. The bank itself, a few numbers per kernel, is stored completely, so the
    loaded estimator can be printed, cloned and certified. The file is written atomically, and an
    existing file is replaced.

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
        When the estimator holds something that only code can describe: a kernel that is a Python
        function, or a custom scorer.

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

    No code in the file is run: its text may name only classes from an explicit list in the library,
    its arrays fill in their attributes, and a file that refers to anything else is rejected.

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
        When the file is damaged, not a model file, modified, or of a newer format. It is a
        ``ValueError``, and its message says which.

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
            f"{path} is intact but does not describe an estimator of this version "
            f"({type(error).__name__}: {error}). Save the model again with the version that wrote "
            "it, or fit it again."
        ) from error
