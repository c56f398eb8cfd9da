"""Kernels on sequences: strings, read letter by letter or word by word, and lists of tokens."""

from .base import SequenceKernel, ShortSequenceWarning
from .edit import EditSimilarity
from .encoding import words
from .ngrams import per_ngram
from .positional import LocalityImproved, Oligo, WeightedDegree
from .rational import Rational
from .spectrum import Mismatch, Spectrum, Subsequence
from .transducers import ANY, EPSILON, OTHER, SAME, Transducer

__all__ = [
    "ANY",
    "EPSILON",
    "EditSimilarity",
    "LocalityImproved",
    "Mismatch",
    "OTHER",
    "Oligo",
    "Rational",
    "SAME",
    "SequenceKernel",
    "ShortSequenceWarning",
    "Spectrum",
    "Subsequence",
    "Transducer",
    "WeightedDegree",
    "per_ngram",
    "words",
]
