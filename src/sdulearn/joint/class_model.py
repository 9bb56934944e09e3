"""From checked rows to a model with K classes, and the names of its classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax

from sdulearn.answers.answer_model import AnswerModel, answer_model_of
from sdulearn.answers.graph import AnswerGraph
from sdulearn.base import Fit
from sdulearn.errors import ClassNumberWarning, InputError, OneKindWarning, warn
from sdulearn.joint.class_fit import ClassData, ClassSolution, descend, follow_path, polish
from sdulearn.joint.class_selection import (
    TEMPERATURES,
    Known,
    NumberOfClasses,
    choose_number,
    held_out,
    known_by_folds,
)
from sdulearn.joint.classes import SharesPenalty
from sdulearn.joint.data import TrainingData
from sdulearn.model_selection import grid_results
from sdulearn.pairs import Pairs
from sdulearn.prior import clopper_pearson
from sdulearn.types import Array, Indices, Rows

# Steps of L-BFGS that one of Newton's is worth.
_STEPS = 20
# Penalties of the default grid, as shares of the largest.
_GRID_TOP = 0.1
_GRID_BOTTOM = 1e-4
# With answers that may be wrong the gradient is as exact as the messages.
_PROPAGATED_TOL = 1e-3
# The most classes that are tried.
MOST_CLASSES = 20
# With fewer "same" answers and labels a class, classes are taken for each other, and some are not seen at all.
_TIES_A_CLASS = 5
# What to do about it.
_ASK_MORE = "Ask more questions (linked ones, as of sdulearn ask, bring most), label a few points of each class"
# Of the share of "same" answers.
_CONFIDENCE = 0.95
# An interval of the number of classes that is wider than this is warned of.
_NARROW = 1


class ClassParameters(Protocol):
    """The parameters of an estimator that a fit with K classes reads."""

    prior: ArrayLike | float | None
    prior_strength: float
    error_rate: str | float | Mapping[int, float]
    tol: float
    max_iter: int


def lay_out_classes(
    parameters: ClassParameters, X: Rows, pairs: Pairs, weight: Array | None, n_classes: int
) -> tuple[ClassData, TrainingData, AnswerModel]:
    """Checked rows as points in their axes, and the answer model as reported."""
    weight = np.ones(pairs.n_rows) if weight is None else weight
    graph = AnswerGraph.from_y(pairs, weight)
    points = TrainingData.of(X, graph, pairs.codes, weight)
    _check_answers(points.graph, n_classes)
    # "Auto" looks for a number of classes above two.
    model = answer_model_of(parameters.error_rate, points.graph, max(n_classes, 3))
    data = ClassData(
        axes=points.axes,
        A=points.known,
        weight=points.weight[points.graph.component],
        graph=points.graph,
        A_u=points.unlabeled,
        share=points.share,
        n_classes=n_classes,
        answer_model=model,
        shares_penalty=_shares_penalty(parameters, n_classes, bool(len(points.share))),
    )
    return data, points, model


def fit_classes(data: ClassData, parameters: ClassParameters, alpha: float, covariance_power: float) -> Fit:
    """The model at one penalty."""
    refuse_too_few_classes(data)
    start = descend(data, alpha, covariance_power).W
    return finish(data, parameters, start, alpha, covariance_power)


def choose_and_fit(
    data: ClassData,
    parameters: ClassParameters,
    alphas: int | Sequence[float],
    powers: Sequence[float],
    folds: list[Known],
) -> Fit:
    """The penalty by the held-out likelihood, then the model at it."""
    refuse_too_few_classes(data)
    # Folds of few answers, often about chosen points, do not tell powers apart: the first one is taken.
    power = powers[0]
    grid = _alphas(data, alphas, power)
    found = held_out(data, follow_path(data, grid, power), grid, power, folds)
    temperature, row = found.best
    alpha = found.alphas[row]
    fit = finish(data, parameters, found.path[row].W, alpha, power)
    settings = [{"alpha": alpha} for alpha in found.alphas]
    chosen = {
        "alpha_": alpha,
        "covariance_power_": power,
        "temperature_": TEMPERATURES[temperature],
        "cv_results_": grid_results(settings, found.scores[temperature]),
        "alphas_": np.array(grid)[:, None],
    }
    scale = 1 / TEMPERATURES[temperature]
    return replace(fit, coef=scale * fit.coef, intercept=scale * fit.intercept, fitted=chosen)


def find_and_fit(
    X: Rows,
    data: ClassData,
    parameters: ClassParameters,
    alphas: int | Sequence[float],
    powers: Sequence[float],
    folds: list[Known],
) -> tuple[Fit | None, tuple[int, int]]:
    """The model with the number of classes by the held-out likelihood, None where that is two; and its interval.

    A class that no row is in costs no likelihood and is none: there are as many as have rows, or as
    answers and labels force.
    """
    fewest = least_number(data)
    found = find_number(data, fewest, powers[0], folds)
    n_classes = found.chosen
    fit = None
    while n_classes > 2:
        fit = choose_and_fit(replace(data, n_classes=n_classes), parameters, alphas, powers, folds)
        n_used = max(fewest, len(_used(X, fit)))
        if n_used == n_classes:
            break
        n_classes = n_used
        fit = None
    low, high = found.interval
    return fit, (min(low, n_classes), _most_classes(data, max(high, n_classes)))


def _used(X: Rows, fit: Fit) -> Indices:
    """Classes, numbered from 0, that have a row."""
    return np.unique(np.argmax(X @ fit.coef.T + fit.intercept, axis=1))


def _most_classes(data: ClassData, most: int) -> int:
    """The most classes that the answers allow, from the most that a model uses which held-out answers allow.

    Without enough "same" answers for all of these some classes may not be seen: K equal ones make random answers "same"
    with probability 1/K, and so many are allowed as the share of "same" answers allows.
    """
    if _has_ties(data.graph, most):
        return most
    n_same = int(np.sum(data.graph.same > 0))
    share, _ = clopper_pearson(n_same, data.graph.n_answers - n_same, _CONFIDENCE)
    return max(most, int(1 / max(share, 1 / MOST_CLASSES)))


def _ties(graph: AnswerGraph) -> tuple[int, int]:
    """How many "same" answers do not follow from others, and how many points are labelled."""
    return graph.n_points - len(np.unique(graph.group)), int(np.count_nonzero(graph.labels))


def _has_ties(graph: AnswerGraph, n_classes: int) -> bool:
    """Whether there are enough of both for so many classes."""
    return sum(_ties(graph)) >= _TIES_A_CLASS * n_classes


def warn_of_open_number(data: ClassData, fit: Fit | None, interval: tuple[int, int]) -> None:
    """A warning where the answers allow quite different numbers of classes."""
    low, high = interval
    found = 2 if fit is None else len(fit.coef)
    if high - low > _NARROW and not _of_one_kind(data.graph):
        warn(
            f"The answers leave the number of classes open: {found} were found, and {low} to {high} are possible. "
            f"{_said(data.graph, high)} {_ASK_MORE}, or give the number of classes where you know it.",
            ClassNumberWarning,
        )


def warn_of_empty_classes(X: Rows, data: ClassData, fit: Fit) -> None:
    """A warning where the answers do not support as many classes as were asked for."""
    if _of_one_kind(data.graph):
        return
    n_classes = len(fit.coef)
    empty = np.setdiff1d(np.arange(n_classes), _used(X, fit)) + 1
    if len(empty):
        names = ", ".join(map(str, empty.tolist()))
        which = f"Class {names} of {n_classes} has" if len(empty) == 1 else f"Classes {names} of {n_classes} have"
        found = f"{which} no row among the {X.shape[0]:,}: the answers do not support so many classes."
    elif not _has_ties(data.graph, n_classes):
        found = f"The answers may be too few for {n_classes} classes: some may be taken for each other."
    else:
        return
    warn(f"{found} {_said(data.graph, n_classes)} {_ASK_MORE}, or ask for fewer classes.", ClassNumberWarning)


def _said(graph: AnswerGraph, n_classes: int) -> str:
    """What there is to tell so many classes apart."""
    n_same, n_labels = _ties(graph)
    labels = f", and {n_labels:,} points are labelled" if n_labels else ""
    needed = "" if _has_ties(graph, n_classes) else f"; {_TIES_A_CLASS} or more a class are needed"
    return f'{n_same:,} of the {graph.n_answers:,} answers are "same" and do not follow from others{labels}{needed}.'


def _of_one_kind(graph: AnswerGraph) -> bool:
    """Whether all answers are the same and nothing else is known; that is warned of by itself."""
    return not graph.labels.any() and len(np.unique(graph.same)) == 1


def least_number(data: ClassData) -> int:
    """Fewest classes that answers and labels force."""
    fewest = data.graph.least_classes(data.answer_model.errors(data.graph.annotators) == 0)
    # Labels 1 and 2 are those of three classes or more.
    return max(fewest, 3) if data.graph.labels.max(initial=0) > 1 else fewest


def find_number(data: ClassData, fewest: int, power: float, folds: list[Known]) -> NumberOfClasses:
    """Numbers of classes with their held-out likelihoods, from the fewest on."""
    most = max(min(MOST_CLASSES, data.graph.n_points // 2), fewest)
    return choose_number(data, fewest, most, power, folds)


def fold_knowledge(points: TrainingData, splits: Iterable[tuple[Indices, Indices]]) -> list[Known]:
    """Which answers and labels each fold knows, from splits of the rows."""
    return known_by_folds(points.graph, points.known_to_folds(splits))


def finish(data: ClassData, parameters: ClassParameters, W: Array, alpha: float, covariance_power: float) -> Fit:
    """Solve to ``tol``, number the classes, and go back to the user's columns."""
    max_iter = _STEPS * int(parameters.max_iter)
    solution = polish(data, W, alpha, covariance_power, float(parameters.tol), max_iter)
    propagated = data.propagated(alpha, covariance_power) is not None
    tol = max(float(parameters.tol), _PROPAGATED_TOL) if propagated else float(parameters.tol)
    return _in_columns(data, solution, tol)


def _in_columns(data: ClassData, solution: ClassSolution, tol: float) -> Fit:
    W = solution.W - solution.W.mean(axis=1, keepdims=True)
    W = W[:, number_classes(data, W)]
    lines = [data.axes.coefficients(column) for column in W.T]
    intercept = np.array([line[1] for line in lines])
    return Fit(
        coef=np.array([line[0] for line in lines]),
        intercept=intercept - intercept.mean(),
        shares=mean_prediction(data, W),
        objective=solution.objective,
        optimality=solution.optimality,
        n_iter=solution.n_iter,
        tol=tol,
    )


def mean_prediction(data: ClassData, W: Array) -> Array:
    """Mean probability of each class over the unlabeled points, or over all where there are none."""
    A = data.A_u
    share = data.share
    if not len(share):
        A = data.A
        share = data.weight / data.weight.sum()
    return share @ np.exp(log_softmax(A @ W[:-1] + W[-1], axis=1))


def number_classes(data: ClassData, W: Array) -> Indices:
    """The order of the columns: classes that labels or given shares name stay, the others go by size."""
    K = W.shape[1]
    order = np.arange(K)
    if data.shares_penalty is not None and len(np.unique(data.shares_penalty.shares)) == K:
        return order
    labels = data.graph.labels
    named = np.isin(order, labels[labels > 0] - 1)
    free = np.flatnonzero(~named)
    order[free] = free[np.argsort(-mean_prediction(data, W)[free], kind="stable")]
    return order


def _alphas(data: ClassData, alphas: int | Sequence[float], power: float) -> list[float]:
    if not isinstance(alphas, int | np.integer):
        return sorted((float(alpha) for alpha in alphas), reverse=True)
    largest = data.largest_alpha(power)
    return (largest * np.geomspace(_GRID_TOP, _GRID_BOTTOM, int(alphas))).tolist()


def _shares_penalty(parameters: ClassParameters, n_classes: int, unlabeled: bool) -> SharesPenalty | None:
    if parameters.prior is None:
        return None
    shares = np.asarray(parameters.prior, dtype=np.float64)
    if shares.shape != (n_classes,) or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise InputError(
            f"With {n_classes} classes `prior` must hold {n_classes} class shares, all above 0 and of sum 1, "
            f"or be None; got `prior={parameters.prior!r}`."
        )
    if not unlabeled or not parameters.prior_strength:
        return None
    return SharesPenalty(shares / shares.sum(), float(parameters.prior_strength))


def _check_answers(graph: AnswerGraph, n_classes: int) -> None:
    """There is something to learn from, and labels are those of this number of classes."""
    labels = graph.labels[graph.labels != 0]
    if not graph.n_answers and not len(labels):
        raise InputError(
            "PairLogisticRegression learns from answers, and `y` marks none (or all weigh zero). Mark the two "
            "rows of each similar pair k with +k and of each dissimilar pair with -k; sdulearn.stack_pairs does it."
        )
    if len(labels) and (labels.min() < 1 or labels.max() > n_classes):
        raise InputError(
            f"With `n_classes={n_classes}` labels are 1 to {n_classes}, and 0 where not known; "
            f"`y[:, 3]` has {np.unique(labels)[:10].tolist()}."
        )
    if _of_one_kind(graph):
        kind = "same" if graph.same[0] > 0 else "different"
        warn(
            f'All answers are "{kind}", which does not tell {n_classes} classes apart. Ask until both answers '
            "have come, or add labels.",
            OneKindWarning,
        )


def refuse_too_few_classes(data: ClassData) -> None:
    """An InputError where more classes are needed than there are, or there are more classes than points."""
    n_points = len(data.A) + len(data.A_u)
    if n_points < data.n_classes:
        raise InputError(f"`n_classes={data.n_classes}`, but `X` shows {n_points} points. Lower `n_classes`.")
    needed = data.graph.least_classes(data.answer_model.errors(data.graph.annotators) == 0)
    if needed > data.n_classes:
        raise InputError(
            f"{needed} points were all called different from each other by answers that are never wrong, so there "
            f"are at least {needed} classes, but `n_classes={data.n_classes}`. Raise `n_classes`, or give "
            "`error_rate` above 0 if some answers may be wrong."
        )
