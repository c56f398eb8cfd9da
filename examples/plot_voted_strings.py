"""
Edit distance as a kernel: votes need no positive semidefinite kernels
======================================================================

The edit distance d of two words, the number of letters to insert, delete or replace until they are
equal, does not give a positive semidefinite kernel: neither ``-d`` nor ``exp(-d)`` is one in
general. Support vector machines need one; a vote of kernel functions does not.
"""

# %%
# Words of two invented languages, derived from a few stems by misspelling.

import matplotlib.pyplot as plt
import numpy as np

import multikernel as mk

ALPHABET = list("abcdefghij")
STEMS = {
    -1: ["abcdeabcde", "jihgfjihgf", "aabbccddee"],
    1: ["abcdefghij", "jiabhgcdfe", "fghijfghij"],
}
rng = np.random.default_rng(0)


def misspell(word):
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


def edit_distance(a, b):
    """Levenshtein's: one row of the table of prefixes at a time."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, z in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != z))
    return row[-1]


y = rng.permutation(np.repeat([-1, 1], 120))
words = [misspell(str(rng.choice(STEMS[int(language)]))) for language in y]
d = np.array([[edit_distance(a, b) for b in words] for a in words], dtype=float)
lengths = np.array([len(word) for word in words], dtype=float)
for language in (-1, 1):
    print(language, [word for word, label in zip(words, y, strict=True) if label == language][:5])
print(f"smallest eigenvalue of exp(-0.3 d): {np.linalg.eigvalsh(np.exp(-0.3 * d)).min():.1g}")

# %%
# Four functions of the distance. X is a column of word indices, so cross-validation can slice it.
# The last function counts mistakes per letter of the second word: it is not even symmetric.


def pick(X, Z):
    return d[np.ix_(X[:, 0].astype(int), Z[:, 0].astype(int))]


def per_letter(X, Z):
    return 1.0 - pick(X, Z) / lengths[Z[:, 0].astype(int)]


bank = mk.KernelBank(
    [
        mk.Callable(lambda X, Z: np.exp(-pick(X, Z)), label="exp(-d)"),
        mk.Callable(lambda X, Z: np.exp(-0.3 * pick(X, Z)), label="exp(-0.3 d)"),
        mk.Callable(lambda X, Z: 1.0 - pick(X, Z) / 10.0, label="1 - d/10"),
        mk.Callable(per_letter, label="1 - d/length"),
    ]
)
X = mk.sample_ids(len(words))
train, test = slice(0, 120), slice(120, None)
search = mk.VotedKernelClassifierCV(bank).fit(X[train], y[train])
print(f"chosen: lambda {search.complexity_penalty_:g}, beta {search.sparsity_penalty_:g}")
print(f"accuracy on new words: {search.score(X[test], y[test]):.3f}")
print(f"{search.n_terms_} terms at {len(search.support_)} of 120 words")
for name, count in zip(search.kernel_names_, search.kernel_counts_, strict=True):
    print(f"{count:5d} terms of {name}")

# %%
# A larger beta leaves fewer terms, and a prediction takes as many edit distances. A handful is
# nearly as good as a hundred.

betas = np.geomspace(1e-4, 0.1, 8)
terms, accuracies = [], []
for beta in betas:
    model = mk.VotedKernelClassifier(bank, "auto", search.complexity_penalty_, beta)
    model.fit(X[train], y[train])
    terms.append(model.n_terms_)
    accuracies.append(model.score(X[test], y[test]))
figure, left = plt.subplots(figsize=(6, 3.5), layout="constrained")
left.semilogx(betas, terms, "o-", color="C0")
left.set(xlabel="sparsity penalty β", ylim=(0, None))
left.set_ylabel("terms", color="C0")
right = left.twinx()
right.semilogx(betas, accuracies, "s--", color="C1")
right.set_ylabel("accuracy on new words", color="C1")
right.set_ylim(0.5, 1.0)
plt.show()
