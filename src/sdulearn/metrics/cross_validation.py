"""Cross-validation over points: the accuracy of an estimator, and its agreement with answers.

Decisions of one fold share their model, so the estimate varies more than that of independent decisions. Nadeau and
Bengio (Machine Learning 52, 2003) give a bound: with K folds the variance is at most

    (1/K + 1/(K - 1)) sigma^2  instead of  sigma^2 / K                                        (1)

With all of it, 95% intervals covered the truth in 98% of development draws; half of its excess is taken here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from sdulearn.answers.answer_model import AnswerModel
from sdulearn.answers.graph import AnswerGraph
from sdulearn.errors import (
    ChosenPairsWarning,
    InputError,
    OrientationWarning,
    SdulearnWarning,
    UselessModelWarning,
    ignored_warnings,
    warn,
)
from sdulearn.metrics.accuracy import AccuracyEstimate, answer_model_in, chance_of_same, fold_spread, pair_accuracy
from sdulearn.metrics.classes import ClassAgreement, class_agreement
from sdulearn.model_selection import PairKFold, check_places, fold_parts, number_of_folds, row_splits
from sdulearn.pairing import is_chosen
from sdulearn.prior import ErrorRates, check_confidence, no_answers, random_of
from sdulearn.progress import long_work, steps
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Codes, Estimator, Indices, Mask, MatrixLike, Splitter

# Seed of folds over points; the estimators that choose a penalty by folds have another.
_SEED = 1


@long_work
def cross_val_accuracy(
    estimator: Estimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    error_rate: ErrorRates = None,
    sample_weight: ArrayLike | None = None,
    prior: float | None = None,
    random_points: ArrayLike | None = None,
    cv: Splitter = 10,
    confidence: float = 0.95,
) -> AccuracyEstimate:
    """Accuracy of an estimator by cross-validation on the answers it learns from.

    Every point gets the decision of a model that saw no answer about it. The interval is widened, as these models
    share most of their training data.

    Parameters
    ----------
    estimator : estimator
        With ``fit`` and ``decision_function``; a copy is fitted for each fold.
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Rows.
    y, error_rate, sample_weight, prior, random_points
        As in :func:`pair_accuracy`; by default the error rates are those of the estimator, if it has an answer model.
        Weights are passed on to ``fit``; answers about points that are not random train the models, and do not count.
    cv : int or splitter, default=10
        Number of folds over points, lowered if there are fewer answers of a kind; or a :class:`~sdulearn.PairKFold`.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    AccuracyEstimate
        The estimate with its interval.

    Examples
    --------
    >>> from sdulearn import PairLogisticRegression
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.metrics import cross_val_accuracy
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=200, n_unlabeled=500, prior=0.7, random_state=0)
    >>> estimate = cross_val_accuracy(PairLogisticRegression(), rows, codes)
    >>> print(f"{estimate.value:.1f}")
    0.9
    """
    check_confidence(confidence)
    graph = AnswerGraph.from_y(y, sample_weight)
    parts, decision, estimated = _cross_validated("decision_function", estimator, X, graph, cv)
    rates = estimated if error_rate is None else error_rate
    counted = held_out_rows(parts, random_points)
    accuracy = held_out_accuracy(
        decision,
        without_seen_clusters(graph, parts),
        n_splits=len(parts),
        error_rate=rates,
        prior=prior,
        random_points=counted,
        confidence=confidence,
    )
    if accuracy.basis != "held-out answers" or not is_chosen(X, graph):
        return accuracy
    warn(
        "The rows of a pair resemble each other more, or less, than those of random pairs. The accuracy is that on "
        "pairs chosen in this way, not on new rows. Ask about random pairs too, and mark them by `random_points`.",
        ChosenPairsWarning,
    )
    return replace(accuracy, basis="chosen pairs")


def _cross_validated(
    method: str, estimator: Estimator, X: MatrixLike, graph: AnswerGraph, cv: Splitter
) -> tuple[list[FoldModel], Array | Codes, AnswerModel | None]:
    """Fit the models of all folds: these, held-out predictions of all rows, and how answers go wrong."""
    if not graph.n_answers:
        raise no_answers("Cross-validation")
    # The names of the classes do not matter here, and the estimate tells what the model is worth.
    silenced = (OrientationWarning, UselessModelWarning)
    rows = safe_indexing(X, graph.rows)
    model = fitted(estimator, rows, np.asarray(graph), graph.row_weight, silenced=silenced)
    reference = np.asarray(getattr(model, method)(X))
    if reference.ndim > 1:
        raise InputError(
            f"cross_val_accuracy is for two classes, and the model has {reference.shape[1]}, so call "
            "sdulearn.metrics.cross_val_agreement(estimator, X, y)."
        )
    rates = answer_model_in(model)
    if rates is not None and not rates.of_crowd:
        # What all answers tell of the people is not told again by each fold. A crowd tells of the points, too.
        estimator = _with_auto(estimator, "error_rate", rates)
    parts = list(fold_models(estimator, X, graph, reference, cv=cv))
    return parts, predictions_of(parts, X, reference), rates


def _with_auto(estimator: Estimator, name: str, value: AnswerModel | int) -> Estimator:
    """Return a copy of an estimator, or pipeline, with a value for its parameter of this name that was "auto"."""
    parameters = estimator.get_params().items()
    auto = [key for key, setting in parameters if key.endswith(name) and isinstance(setting, str)]
    return clone(estimator).set_params(**dict.fromkeys(auto, value))


def held_out_accuracy(
    decision: ArrayLike,
    y: ArrayLike | AnswerGraph,
    *,
    n_splits: int,
    error_rate: ErrorRates = None,
    sample_weight: ArrayLike | None = None,
    prior: float | None = None,
    random_points: ArrayLike | None = None,
    confidence: float = 0.95,
) -> AccuracyEstimate:
    """Accuracy from the decisions of fold models, with an interval widened for the data they share.

    Parameters
    ----------
    decision, y
        As in :func:`pair_accuracy`; the decisions are those of :func:`held_out`.
    n_splits : int
        Number of folds that the decisions come from.
    error_rate, sample_weight, prior, random_points, confidence
        As in :func:`pair_accuracy`.

    Returns
    -------
    AccuracyEstimate
        The estimate with its interval.
    """
    graph = AnswerGraph.from_y(y, sample_weight)
    return pair_accuracy(
        decision,
        graph,
        error_rate=error_rate,
        prior=prior,
        random_points=random_points,
        confidence=confidence,
        spread=_spread(n_splits, graph, random_points),
    )


@long_work
def cross_val_agreement(
    estimator: Estimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    error_rate: ErrorRates = None,
    sample_weight: ArrayLike | None = None,
    random_points: ArrayLike | None = None,
    cv: Splitter = 5,
    confidence: float = 0.95,
) -> ClassAgreement:
    """Agreement of an estimator with answers about points that it has not seen, for any number of classes.

    With two classes :func:`cross_val_accuracy` estimates the accuracy itself.

    Parameters
    ----------
    estimator : estimator or pipeline
        With ``fit``, ``predict`` and ``orient``; "auto" finds its number of classes by all answers, for all folds.
    X, y, error_rate, sample_weight, random_points, cv, confidence
        As in :func:`cross_val_accuracy`.

    Returns
    -------
    ClassAgreement
        Agreement with the answers, and the accuracy if labels or answers identify it.

    See Also
    --------
    sdulearn.plotting.AnswerMatrixDisplay : Draws the answers by predicted classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sdulearn import PairLogisticRegression, stack_pairs
    >>> from sdulearn.metrics import cross_val_agreement
    >>> X, kind = load_iris(return_X_y=True)
    >>> pairs = np.random.default_rng(0).permutation(150).reshape(-1, 2)
    >>> rows, y = stack_pairs(X, pairs, kind[pairs[:, 0]] == kind[pairs[:, 1]])
    >>> estimate = cross_val_agreement(PairLogisticRegression(n_classes=3), rows, y, cv=3)
    >>> print(f"{estimate.agreement.value:.1f}")
    0.9
    """
    check_confidence(confidence)
    graph = AnswerGraph.from_y(y, sample_weight)
    parts, predicted, _ = _cross_validated("predict", estimator, X, graph, cv)
    counted = held_out_rows(parts, random_points)
    return held_out_agreement(
        predicted, graph, parts, error_rate=error_rate, random_points=counted, confidence=confidence
    )


def held_out_agreement(
    y_pred: Array | Codes,
    graph: AnswerGraph,
    parts: Sequence[FoldModel],
    *,
    error_rate: ErrorRates = None,
    random_points: Mask | None = None,
    confidence: float = 0.95,
) -> ClassAgreement:
    """Agreement of the classes of fold models with all answers but those between hubs."""
    shown = graph.restrict(held_out_answers(parts, graph), graph.labels != 0)
    spread = _spread(len(parts), graph, random_points)
    return class_agreement(
        y_pred, shown, error_rate=error_rate, random_points=random_points, confidence=confidence, spread=spread
    )


def without_seen_clusters(graph: AnswerGraph, parts: Iterable[FoldModel]) -> AnswerGraph:
    """Return the graph without answers about points in the cluster of a hub, of which every model has seen a row."""
    if graph.clusters is None:
        return graph
    ends = graph.rows[graph.end_rows]
    seen = ~np.isin(ends, np.concatenate([part.rows for part in parts])) & ~np.isin(graph.ends, graph.hubs())
    return graph.restrict(~np.any(seen, axis=1), np.ones(graph.n_points, dtype=bool))


def held_out_answers(parts: Iterable[FoldModel], graph: AnswerGraph, random_points: Mask | None = None) -> Mask:
    """Which answers are about a point, drawn at random, that some model has not seen."""
    ends = graph.rows[graph.end_rows]
    held_out: Mask = np.asarray(np.isin(ends, np.concatenate([part.rows for part in parts])).any(axis=1))
    return held_out if random_points is None else held_out & random_points[ends].any(axis=1)


def _spread(n_splits: int, graph: AnswerGraph, random_points: ArrayLike | None) -> float:
    """Variance by equation (1), in which the share of the points that were drawn at random counts."""
    counted = random_of(graph, random_points)
    return fold_spread(n_splits, 1.0 if counted is None else float(np.mean(counted[graph.degree > 0])))


@dataclass(frozen=True, eq=False)
class FoldModel:
    """The model of a fold, its classes named as those of a reference model."""

    rows: Indices  # rows of ``y`` of the fold's points: the model saw no answer about them
    model: Estimator  # fitted to the answers about all other points; None predicts the larger class everywhere
    sign: float = 1.0  # -1 where the model swaps the two classes of the reference

    def decide(self, X: MatrixLike) -> Array:
        """Decision values with the sign of the reference."""
        return self.sign * (np.ones(X.shape[0]) if self.model is None else np.asarray(self.model.decision_function(X)))


def fold_models(
    estimator: Estimator, X: MatrixLike, graph: AnswerGraph, reference: Array | Codes, *, cv: Splitter = 10
) -> Iterator[FoldModel]:
    """Fit the model of each fold and name its classes as the reference does; see :func:`held_out`."""
    kept = graph.rows
    known = np.asarray(graph)
    reference = reference[kept]
    larger = float(np.copysign(1.0, np.mean(np.sign(reference))))
    by_name = np.issubdtype(reference.dtype, np.integer)
    if by_name:
        # With fewer answers "auto" would choose another number of classes.
        estimator = _with_auto(estimator, "n_classes", max(2, int(reference.max())))
    if graph.n_rows < graph.n_given:
        check_places(cv)
    splitter = _splitter(cv, graph)
    parts = fold_parts(splitter, X, graph)
    held_out = np.unique(np.concatenate([rows for _, rows in parts]))
    if not isinstance(splitter, PairKFold) and len(held_out) < graph.n_rows:
        raise InputError("`cv` must hold out every row once. Give `cv=sdulearn.PairKFold()`.")
    for train, test in steps(parts, "folds"):
        rows = safe_indexing(X, kept[train])
        if not by_name and len(np.unique(graph.source[train])) < len(np.unique(graph.source)):
            # One kind of answer is missing from the training rows.
            yield FoldModel(kept[test], None, larger)
            continue
        model = fitted(estimator, rows, known[train], graph.row_weight[train])
        if by_name:
            _orient(model, rows, reference[train])
        swapped = not (by_name or model.decision_function(rows) @ reference[train] >= 0)
        yield FoldModel(kept[test], model, -1.0 if swapped else 1.0)


def _orient(model: Estimator, X: MatrixLike, names: Array | Codes) -> None:
    """Name the classes of an estimator, or of the last step of a pipeline."""
    last = model
    if isinstance(model, Pipeline):
        last = model[-1]
        X = model[:-1].transform(X) if len(model) > 1 else X
    if not hasattr(last, "orient"):
        raise InputError(
            f"`estimator` ({type(last).__name__}) has no orient to name the classes of folds. Give predictions for "
            "answers that it has not seen: sdulearn.metrics.class_agreement(y_pred, y), or `cv=None`."
        )
    last.orient(X, names)


def predictions_of(parts: Iterable[FoldModel], X: MatrixLike, reference: Array | Codes) -> Array | Codes:
    """Decision value, or class, of every row by the model of its fold; of a hub by the reference."""
    predicted = reference.copy()
    by_name = np.issubdtype(reference.dtype, np.integer)
    for part in parts:
        rows = safe_indexing(X, part.rows)
        predicted[part.rows] = part.model.predict(rows) if by_name else part.decide(rows)
    return predicted


@long_work
def held_out(
    estimator: Estimator,
    X: MatrixLike,
    y: ArrayLike | AnswerGraph,
    reference: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    cv: Splitter = 10,
) -> Array | Codes:
    """Decision value or class of every row by a model that saw no answer about its point.

    Parameters
    ----------
    estimator, X, y
        As in :func:`cross_val_accuracy`; with ``orient`` if the reference contains classes.
    reference : float or int array of shape (n_rows,)
        Predictions of a model of all rows: decision values of two classes, or classes as integers. They name the
        classes of each fold. A hub, which cannot be held out, keeps the value that it has here.
    sample_weight, cv
        As in :func:`cross_val_accuracy`.

    Returns
    -------
    array of shape (n_rows,)
        Held-out decision values, or classes if the reference contains classes.
    """
    graph = AnswerGraph.from_y(y, sample_weight)
    known = np.asarray(reference)
    return predictions_of(fold_models(estimator, X, graph, known, cv=cv), X, known)


def held_out_rows(parts: Iterable[FoldModel], random_points: ArrayLike | None) -> Mask | None:
    """Rows of random points that are held out, so not of hubs; None where all points are random."""
    if random_points is None:
        return None
    random = np.asarray(random_points, dtype=bool)
    return random & np.isin(np.arange(len(random)), np.concatenate([part.rows for part in parts]))


def held_out_same(estimator: Estimator, X: MatrixLike, y: ArrayLike | AnswerGraph, cv: Splitter) -> tuple[Array, Mask]:
    """Probability of "same" by models that saw neither point of an answer, and the answers."""
    graph = AnswerGraph.from_y(y)
    known = np.asarray(graph)
    chances = []
    similar = []
    for train, test in row_splits(_splitter(cv, graph), X, graph):
        model = fitted(estimator, safe_indexing(X, train), known[train])
        part = AnswerGraph.from_y(known[test])
        chances.append(chance_of_same(model.predict_proba(safe_indexing(X, test)), part))
        similar.append(part.same > 0)
    return np.concatenate(chances), np.concatenate(similar)


def folds_over_points(n_splits: int, y: ArrayLike | AnswerGraph) -> PairKFold:
    """Return folds over points: as many as asked for, or as the rarer kind of answer allows.

    Parameters
    ----------
    n_splits : int
        Most folds.
    y
        As in :func:`pair_accuracy`.

    Returns
    -------
    PairKFold
        Its seed differs from that of the folds with which estimators choose settings.
    """
    graph = AnswerGraph.from_y(y)
    count = number_of_folds(n_splits, graph)
    if count < 2:
        groups = "" if graph.clusters is None else ", about rows of at least two groups"
        raise InputError(f"Cross-validation needs at least two pairs of a kind{groups}. Add answers.")
    return PairKFold(count, random_state=_SEED)


def _splitter(cv: Splitter, graph: AnswerGraph) -> Splitter:
    """Return the splitter for ``cv``."""
    return folds_over_points(int(cv), graph) if isinstance(cv, Integral) else cv


def fitted(
    estimator: Estimator,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    # The model of all rows has given the warnings of the folds already.
    silenced: tuple[type[Warning], ...] = (SdulearnWarning, ConvergenceWarning),
) -> Estimator:
    """Fit a copy of an estimator without warnings of some kinds; unequal weights go to the last step of a pipeline."""
    name = f"{estimator.steps[-1][0]}__sample_weight" if isinstance(estimator, Pipeline) else "sample_weight"
    # Not every estimator takes weights.
    weights = {} if sample_weight is None or np.all(sample_weight == 1) else {name: sample_weight}
    with ignored_warnings(*silenced):
        return clone(estimator).fit(X, y, **weights)
