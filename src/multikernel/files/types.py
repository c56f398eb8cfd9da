"""The library's classes that a model file may name.

A class keeps its name here even if it moves or is renamed in the library, so that files of earlier
versions still load. If the attributes of a class change, its ``from_state`` or an entry of
:data:`.upgrades.UPGRADES` converts the old ones; if earlier versions cannot read the new ones,
:data:`multikernel._archive.FORMAT` increases by one. In both cases ``tests/modelfiles`` gets files
with the new attributes beside the old ones.
"""

from __future__ import annotations

from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

from .. import estimators, weighting
from ..estimators.intervals import TrainingSample
from ..estimators.voted import VotedKernelClassifier
from ..estimators.voted_search import VotedKernelClassifierCV
from ..grams.blocks import BlockExpansion
from ..grams.dense import DenseCross
from ..grams.linear import LinearExpansion
from ..grams.lowrank.approximations import Nystroem, RandomFeatures
from ..grams.lowrank.features import FeatureMap
from ..grams.lowrank.learned_sum import LearnedSumPart, ShiftedExpansion
from ..grams.lowrank.parts import ColumnsPart, FourierPart, LandmarkPart, SinglePart, SketchPart
from ..grams.lowrank.small_sample import FeatureExpansion
from ..grams.ngrams import NgramExpansion
from ..grams.normalise import Correction
from ..grams.planning import Part, Plan
from ..grams.rankone import RankOneExpansion
from ..grams.separate import SeparateExpansions
from ..grams.shared import Encoder, Group, SharedCross
from ..grams.stacked import StackedExpansion
from ..kernels.algebra import Power, Product, Scaled, Sum
from ..kernels.bank import KernelBank, PerFeature
from ..kernels.columns import ColumnSlice, Standardization
from ..kernels.completed import Completed, Completion
from ..kernels.distances import Exponential, Matern, Periodic, RationalQuadratic
from ..kernels.histograms import AdditiveChiSquared, ChiSquared
from ..kernels.learned_scales import LearnedScales
from ..kernels.missing_pattern import MissingPattern
from ..kernels.observed import Observed
from ..kernels.overlap import LevelCosts, Overlap
from ..kernels.precomputed import AsymmetricPrecomputed, Precomputed
from ..kernels.scaling import QuantileScaling
from ..kernels.sequences import (
    EditSimilarity,
    LocalityImproved,
    Mismatch,
    Oligo,
    Rational,
    Spectrum,
    Subsequence,
    Transducer,
    WeightedDegree,
)
from ..kernels.sequences.edit import Repaired
from ..kernels.sequences.encoding import Sequences
from ..kernels.sequences.ngrams import Ngrams, PerNgram
from ..kernels.sequences.table import Table
from ..kernels.similarities import Cosine, HistogramIntersection, MinMax, Tanimoto
from ..kernels.vectors import Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from ..kernels.widths import AtDistance
from ..learners.calibration import Calibration
from ..solvers.ensemble.hypotheses import EnsembleExpansion
from ..solvers.passes.errors import ApproximationReport
from ..solvers.voted.expansion import VotedExpansion
from ..tables.encoding import Column, TableEncoder
from ..tables.model import TableModel
from .pruning import Absent
from .registry import register
from .upgrades import FeatureCross

ESTIMATORS: tuple[type, ...] = (
    estimators.MultiKernelClassifier,
    estimators.MultiKernelRegressor,
    estimators.MultiKernelOneClass,
    estimators.MultiKernelClassifierCV,
    estimators.MultiKernelRegressorCV,
    VotedKernelClassifier,
    VotedKernelClassifierCV,
    estimators.KernelEnsembleClassifier,
    estimators.KernelEnsembleRegressor,
    estimators.SpectralKernelClassifier,
    estimators.ParzenClassifier,
    estimators.ParzenRegressor,
    estimators.ConsensusKernel,
    estimators.KernelClustering,
    estimators.KernelFeatures,
    estimators.TableCodes,
    TableModel,
)

KERNELS: tuple[type, ...] = (
    *(Linear, Polynomial, Gaussian, Laplacian, Sigmoid, Exponential, Matern),
    *(Standardization, QuantileScaling, AtDistance, ColumnSlice),
    *(RationalQuadratic, Periodic, Tanimoto, MinMax, HistogramIntersection, Cosine),
    *(ChiSquared, AdditiveChiSquared, Sum, Product, Scaled, Power, Observed),
    *(KernelBank, LearnedScales, PerFeature, Precomputed, AsymmetricPrecomputed, Absent),
    *(Spectrum, Mismatch, Subsequence, WeightedDegree, LocalityImproved, Oligo),
    *(Overlap, LevelCosts, MissingPattern, Completed, Completion),
    *(EditSimilarity, Repaired, Rational, Transducer, PerNgram, Ngrams, Sequences, Table),
)

WEIGHTINGS: tuple[type, ...] = (
    *(weighting.Uniform, weighting.BestSingle, weighting.Align, weighting.AlignF),
    *(weighting.LeaveOneOut,),
    weighting.FeatureCorrelation,
    *(weighting.LpNorm, weighting.L1, weighting.ElasticNetNorm, weighting.HierarchicalNorm),
    *(weighting.Statis, weighting.FullNeighbours, weighting.SparseNeighbours),
    weighting.ObservedMargins,
    *(weighting.NonIsotropicNorm, weighting.L2Ball, weighting.AlignmentRegularized),
)

PREDICTION: tuple[type, ...] = (
    *(BlockExpansion, SeparateExpansions, StackedExpansion, RankOneExpansion, NgramExpansion),
    *(LinearExpansion, VotedExpansion, EnsembleExpansion, SharedCross, DenseCross, FeatureCross),
    *(Encoder, Group, Correction, Plan, Part, Column, TableEncoder),
    *(Calibration, TrainingSample),
    *(FeatureExpansion, FeatureMap, LandmarkPart, FourierPart, SketchPart, ColumnsPart, SinglePart),
    *(LearnedSumPart, ShiftedExpansion),
    *(Nystroem, RandomFeatures, ApproximationReport),
)

#: Splitters that cross-validated estimators keep as a parameter; they hold only numbers.
SPLITTERS: tuple[type, ...] = (KFold, StratifiedKFold, ShuffleSplit, StratifiedShuffleSplit)


TYPES: dict[str, type] = {
    cls.__name__: cls for cls in (*ESTIMATORS, *KERNELS, *WEIGHTINGS, *PREDICTION, *SPLITTERS)
}
for _name, _cls in TYPES.items():
    register(_cls, _name)
