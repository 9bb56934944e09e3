"""How much less do answers tell that share points, or points that share a person, a product or a document?

The variance of a sum over answers with deviations r, as a multiple of that of independent answers, is

    1 + (sum over units u of (sum of r over the answers about u)^2 - sum of r^2 over units) / sum of r^2     (1)

where a unit is a point or a cluster of points (Fafchamps and Gubert, Journal of Development Economics 83, 2007). With
few clusters equation (1) is itself an estimate, so intervals take the quantile of Student's t for their number.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm, t

from sdulearn.answers.graph import AnswerGraph
from sdulearn.types import Array, Indices, Mask


def design_effect(deviations: Array, ends: Indices) -> float:
    """Equation (1), at least 1; ``ends`` (n_answers, 1 or 2) are the units of each answer, -1 for none."""
    drawn = ends >= 0
    _, unit = np.unique(ends[drawn], return_inverse=True)
    degree = np.bincount(unit)
    squares = float(deviations @ deviations)
    if not squares > 0:
        # Count one term for as many units as a term has.
        return max(1.0, float(drawn.sum()) / max(len(degree), 1))
    # Terms that share a unit are correlated: the squared sums by unit, minus the squares of the terms themselves.
    by_unit = np.bincount(unit, np.repeat(deviations, drawn.sum(axis=1)))
    alone = float(deviations**2 @ drawn.sum(axis=1))
    return max(1.0, 1 + (float(by_unit @ by_unit) - alone) / squares)


def answer_spread(deviations: Array, graph: AnswerGraph, asked: Mask, confidence: float) -> float:
    """Return what clusters add to the variance of a mean over some answers, beside the points that they share."""
    if graph.clusters is None or not asked.any():
        return 1.0
    ends = graph.clusters[graph.ends[asked]]
    # An answer within a cluster is about one unit.
    ends[:, 1] = np.where(graph.within_cluster[asked], -1, ends[:, 1])
    by_points = design_effect(deviations, graph.ends[asked])
    return max(design_effect(deviations, ends) / by_points, 1.0) * few_units(ends, confidence, 2)


def point_spread(deviations: Array, clusters: Indices | None, confidence: float) -> float:
    """Return what clusters add to the variance of a mean over points."""
    if clusters is None or not len(clusters):
        return 1.0
    return design_effect(deviations, clusters[:, None]) * few_units(clusters, confidence)


def few_units(units: Indices, confidence: float, per_term: int = 1) -> float:
    """Return what few units add: the square of the quantile of Student's t over that of the normal distribution.

    Deviations are from an estimated mean, of which each unit has a share, so that equation (1) is too small: as in a
    jackknife, by the square of 1 minus that share. A term is about ``per_term`` units.
    """
    sizes = np.unique(units[units >= 0], return_counts=True)[1].astype(np.float64)
    # A few large clusters count as few, however many small ones there are.
    n = float(sizes.sum() ** 2 / (sizes @ sizes))
    tail = (1 - confidence) / 2
    return float(t.isf(tail, max(n - 1, 1.0)) / norm.isf(tail) / max(1 - per_term / n, 0.5)) ** 2
