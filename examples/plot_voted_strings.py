"""Edit distance as a kernel: a vote needs no positive semidefinite one.

    python examples/plot_voted_strings.py [FILE.png]

The edit distance d of two words, the number of letters to insert, delete or exchange until one is
the other, makes no positive semidefinite kernel: neither ``-d`` nor ``exp(-d)`` is one in general.
Support vector machines need one; a vote of kernel functions does not. Made-up words of two
languages are told apart by four functions of their edit distances, one of them not even symmetric.

The picture, with a file name or where matplotlib can show one, is of terms and accuracy along beta.
"""

from __future__ import annotations

import sys

import numpy as np

import multikernel as mk
from multikernel.estimators.voted import VotedKernelClassifier
from multikernel.estimators.voted_search import VotedKernelClassifierCV

ALPHABET = list("abcdefghij")
STEMS = {
    -1: ["abcdeabcde", "jihgfjihgf", "aabbccddee"],
    1: ["abcdefghij", "jiabhgcdfe", "fghijfghij"],
}


def misspell(word: str, rng: np.random.Generator) -> str:
    """The word after up to eight random insertions, deletions and exchanges."""
    letters = list(word)
    for _ in range(rng.integers(1, 9)):
        at, kind = int(rng.integers(len(letters))), int(rng.integers(3))
        if kind == 0:
            letters.insert(at, str(rng.choice(ALPHABET)))
        elif kind == 1 and len(letters) > 3:
            del letters[at]
        else:
            letters[at] = str(rng.choice(ALPHABET))
    return "".join(letters)


def languages(n: int, rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Words that grow from a few stems of each language."""
    y = rng.permutation(np.repeat([-1, 1], n // 2))
    return [misspell(str(rng.choice(STEMS[int(language)])), rng) for language in y], y


def edit_distance(a: str, b: str) -> int:
    """Levenshtein's: one row of the table of prefixes at a time."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, z in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != z))
    return row[-1]


def bank_of(words: list[str]) -> list[mk.Callable]:
    """Functions of two columns of word numbers; X is ``mk.sample_ids(len(words))``."""
    d = np.array([[edit_distance(a, b) for b in words] for a in words], dtype=float)
    lengths = np.array([len(word) for word in words], dtype=float)
    smallest = np.linalg.eigvalsh(np.exp(-0.3 * d)).min()
    print(f"smallest eigenvalue of exp(-0.3 d): {smallest:.2f}")

    def pick(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return d[np.ix_(X[:, 0].astype(int), Z[:, 0].astype(int))]

    def one_sided(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        # mistakes per letter of the second word: not symmetric
        return 1.0 - pick(X, Z) / lengths[Z[:, 0].astype(int)]

    return [
        mk.Callable(lambda X, Z: np.exp(-pick(X, Z)), label="exp(-d)"),
        mk.Callable(lambda X, Z: np.exp(-0.3 * pick(X, Z)), label="exp(-0.3 d)"),
        mk.Callable(lambda X, Z: 1.0 - pick(X, Z) / 10.0, label="1 - d/10"),
        mk.Callable(one_sided, label="1 - d/length"),
    ]


def main() -> None:
    words, y = languages(400, np.random.default_rng(0))
    for language in (-1, 1):
        print(
            language, [w for w, label in zip(words[:12], y[:12], strict=True) if label == language]
        )
    bank, X = bank_of(words), mk.sample_ids(len(words))
    train, test = np.arange(200), np.arange(200, 400)

    search = VotedKernelClassifierCV(bank).fit(X[train], y[train])
    print(f"chosen: lambda {search.complexity_penalty_:g}, beta {search.sparsity_penalty_:g}")
    print(f"accuracy on new words: {search.score(X[test], y[test]):.3f}")
    print(f"{search.n_terms_} terms at {len(search.support_)} of {len(train)} words")
    print(f"proven relative duality gap: {search.duality_gap_:.0e}")
    for name, count in zip(search.kernel_names_, search.kernel_counts_, strict=True):
        print(f"{count:5d} terms of {name}")

    # A larger beta leaves fewer terms, and a prediction takes as many edit distances.
    betas = np.geomspace(1e-4, 0.1, 10)
    terms, accuracies = [], []
    for beta in betas:
        model = VotedKernelClassifier(bank, "auto", search.complexity_penalty_, beta)
        model.fit(X[train], y[train])
        terms.append(model.n_terms_)
        accuracies.append(model.score(X[test], y[test]))
        print(f"beta {beta:.4f}: {terms[-1]:3d} terms, accuracy {accuracies[-1]:.3f}")
    draw(betas, terms, accuracies)


def draw(betas: np.ndarray, terms: list[int], accuracies: list[float]) -> None:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print("The picture needs matplotlib.")
        return
    figure, left = plt.subplots(figsize=(6, 3.5))
    left.semilogx(betas, terms, "o-", color="C0")
    left.set_xlabel("sparsity penalty β")
    left.set_ylabel("terms", color="C0")
    right = left.twinx()
    right.semilogx(betas, accuracies, "s--", color="C1")
    right.set_ylabel("accuracy on new words", color="C1")
    figure.tight_layout()
    if len(sys.argv) > 1:
        figure.savefig(sys.argv[1], dpi=150)
    else:
        plt.show()


if __name__ == "__main__":
    main()
