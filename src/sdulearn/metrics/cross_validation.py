"""Cross-validation over points: the accuracy of an estimator, and its agreement with answers.

Decisions of one fold share their model, so the estimate varies more than that of independent
decisions. Nadeau and Bengio (Machine Learning 52, 2003) give a bound: with K folds the variance is
at most

    (1/K + 1/(K - 1)) sigma^2  instead of  sigma^2 / K                                        (1)

With all of it, 95% intervals covered the truth in 98% of development draws; half of its excess is
taken here.
"""

from __future__ import annotations

import warnings
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
from sdulearn.errors import ChosenPairsWarning, InputError, OrientationWarning, SdulearnWarning, warn
from sdulearn.metrics.accuracy import AccuracyEstimate, chance_of_same, fold_spread, pair_accuracy
from sdulearn.metrics.classes import ClassAgreement, class_agreement
from sdulearn.model_selection import PairKFold, check_places, fold_parts, number_of_folds
from sdulearn.pairing import is_chosen
from sdulearn.pairs import Pairs, read_pairs, weighted_rows
from sdulearn.prior import ErrorRates, no_answers, random_of
from sdulearn.progress import long_work, steps
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Codes, Estimator, Indices, Mask, MatrixLike, Splitter


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

    Every point gets the decision of a model that saw no answer about it. The interval is widened,
    as the models of the folds share most of their training data.

    Parameters
    ----------
    estimator : estimator
        With ``fit`` and ``decision_function``; a copy is fitted for each fold.
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Rows.
    y, error_rate, sample_weight, prior, random_points
        As in :func:`pair_accuracy`; by default the error rates are those of the estimator, if it has an answer
        model. Weights are passed on to ``fit``; answers about points that are not random train the models, and do
        not count.
    cv : int or splitter, default=10
        Number of folds over points, lowered where there are fewer answers of a kind; or a
        :class:`~sdulearn.PairKFold`.
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
    >>> found = cross_val_accuracy(PairLogisticRegression(), rows, codes)
    >>> bool(found.low < 0.9 < found.high)
    True
    """
    parts, pairs, decision, rates = _cross_validated("decision_function", estimator, X, y, sample_weight, cv)
    accuracy = held_out_accuracy(
        decision,
        pairs,
        n_splits=len(parts),
        error_rate=rates if error_rate is None else error_rate,
        sample_weight=sample_weight,
        prior=prior,
        random_points=held_out_rows(parts, random_points),
        confidence=confidence,
    )
    if accuracy.basis != "held-out answers" or not is_chosen(X, pairs):
        return accuracy
    warn(
        "The two rows of a pair resemble each other more, or less, than rows of random pairs do: the pairs were chosen "
        "by their features. The accuracy is that on pairs chosen in this way, not on new rows. Ask about random pairs "
        "too, and mark them by `random_points`.",
        ChosenPairsWarning,
    )
    return replace(accuracy, basis="chosen pairs")


def _cross_validated(
    method: str, estimator: Estimator, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, cv: Splitter
) -> tuple[list[FoldModel], Pairs, Array | Codes, AnswerModel | None]:
    """Fit the models of all folds: these, the pairs, held-out predictions of all rows, and how answers go wrong."""
    pairs = read_pairs(y)
    if not len(weighted_rows(pairs, sample_weight)[0].ends):
        raise no_answers("Cross-validation")
    # The names of the classes do not matter here.
    model = fitted(estimator, X, pairs, sample_weight, silenced=(OrientationWarning,))
    reference = np.asarray(getattr(model, method)(X))
    if reference.ndim > 1:
        raise InputError(
            f"cross_val_accuracy is for two classes, and the model has {reference.shape[1]}, whose "
            "accuracy answers tell only by labels or large groups. Call "
            "sdulearn.metrics.cross_val_agreement(estimator, X, y)."
        )
    rates: AnswerModel | None = getattr(model[-1] if isinstance(model, Pipeline) else model, "answer_model_", None)
    if rates is not None and not rates.of_crowd:
        # What all answers tell of the people is not told again by each fold. A crowd tells of the points, too.
        options = estimator.get_params().items()
        auto = [name for name, value in options if name.endswith("error_rate") and isinstance(value, str)]
        estimator = clone(estimator).set_params(**dict.fromkeys(auto, rates))
    parts = list(fold_models(estimator, X, pairs, reference, sample_weight=sample_weight, cv=cv))
    return parts, pairs, predictions_of(parts, X, reference), rates


def held_out_accuracy(
    decision: ArrayLike,
    y: ArrayLike | Pairs,
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
    decision : array-like of shape (n_rows,)
        Of :func:`held_out`.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
        What is known of each row.
    n_splits : int
        Number of folds that the decisions come from.
    error_rate, sample_weight, prior, random_points, confidence
        As in :func:`pair_accuracy`.

    Returns
    -------
    AccuracyEstimate
        The estimate with its interval.
    """
    pairs = read_pairs(y)
    return pair_accuracy(
        decision,
        pairs,
        error_rate=error_rate,
        sample_weight=sample_weight,
        prior=prior,
        random_points=random_points,
        confidence=confidence,
        spread=_spread(n_splits, pairs, random_points, sample_weight),
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
        With ``fit``, ``predict`` and ``orient``, or with such a last step; a copy is fitted for
        each fold, with the number of classes that "auto" finds by all answers.
    X, y, error_rate, sample_weight, random_points, cv, confidence
        As in :func:`cross_val_accuracy`.

    Returns
    -------
    ClassAgreement
        Agreement with the answers, and the accuracy where labels or answers tell it.

    See Also
    --------
    sdulearn.plotting.AnswerMatrixDisplay : Draws the answers by predicted classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sdulearn import PairLogisticRegression, stack_pairs
    >>> from sdulearn.metrics import cross_val_agreement
    >>> X, kind = load_wine(return_X_y=True)
    >>> pairs = np.random.default_rng(0).permutation(len(X))[:170].reshape(-1, 2)
    >>> rows, y = stack_pairs(X, pairs, kind[pairs[:, 0]] == kind[pairs[:, 1]])
    >>> model = make_pipeline(StandardScaler(), PairLogisticRegression(n_classes=3))
    >>> found = cross_val_agreement(model, rows, y, cv=3)
    >>> bool(found.agreement.low < 0.95 < found.agreement.high)
    True
    """
    parts, pairs, predicted, _ = _cross_validated("predict", estimator, X, y, sample_weight, cv)
    return held_out_agreement(
        predicted,
        pairs,
        parts,
        error_rate=error_rate,
        sample_weight=sample_weight,
        random_points=held_out_rows(parts, random_points),
        confidence=confidence,
    )


def held_out_agreement(
    y_pred: Array | Codes,
    pairs: Pairs,
    parts: Sequence[FoldModel],
    *,
    error_rate: ErrorRates = None,
    sample_weight: ArrayLike | None = None,
    random_points: Mask | None = None,
    confidence: float = 0.95,
) -> ClassAgreement:
    """Agreement of the classes of fold models with all answers but those between hubs."""
    known = np.array(pairs)
    known.reshape(len(pairs), -1)[pairs.ends[~held_out_answers(parts, pairs)], 0] = 0
    return class_agreement(
        y_pred,
        known,
        error_rate=error_rate,
        sample_weight=sample_weight,
        random_points=random_points,
        confidence=confidence,
        spread=_spread(len(parts), pairs, random_points, sample_weight),
    )


def held_out_answers(parts: Iterable[FoldModel], pairs: Pairs, random_points: Mask | None = None) -> Mask:
    """Which answers are about a point, drawn at random, that some model has not seen."""
    held_out: Mask = np.asarray(np.isin(pairs.ends, np.concatenate([part.rows for part in parts])).any(axis=1))
    return held_out if random_points is None else held_out & random_points[pairs.ends].any(axis=1)


def _spread(n_splits: int, pairs: Pairs, random_points: ArrayLike | None, sample_weight: ArrayLike | None) -> float:
    """Variance by equation (1), in which the share of the points that were drawn at random counts."""
    if random_points is None:
        return fold_spread(n_splits)
    graph = AnswerGraph.from_y(pairs, sample_weight)
    counted = random_of(graph, random_points)
    return fold_spread(n_splits, 1.0 if counted is None else float(np.mean(counted[graph.degree > 0])))


@dataclass(frozen=True, eq=False)
class FoldModel:
    """The model of a fold, its classes named as those of a reference model."""

    rows: Indices  # rows of the fold's points: the model saw no answer about them
    model: Estimator  # fitted to the answers about all other points; None predicts the larger class everywhere
    sign: float = 1.0  # -1 where the model swaps the two classes of the reference

    def decide(self, X: MatrixLike) -> Array:
        """Decision values with the sign of the reference."""
        values = np.ones(X.shape[0]) if self.model is None else np.asarray(self.model.decision_function(X))
        return self.sign * values


def fold_models(
    estimator: Estimator,
    X: MatrixLike,
    y: ArrayLike | Pairs,
    reference: Array | Codes,
    *,
    sample_weight: ArrayLike | None = None,
    cv: Splitter = 10,
) -> Iterator[FoldModel]:
    """Fit the model of each fold and name its classes as the reference does; see :func:`held_out`."""
    pairs = read_pairs(y)
    table = np.asarray(pairs)
    weight = None if sample_weight is None else np.asarray(sample_weight)
    used = slice(None) if weight is None else weight > 0
    n_kinds = len(np.unique(np.sign(pairs.codes[used])))
    larger = float(np.copysign(1.0, np.mean(np.sign(reference[used]))))
    by_name = np.issubdtype(reference.dtype, np.integer)
    if by_name:
        # With fewer answers "auto" would choose another number of classes.
        options = estimator.get_params().items()
        auto = [name for name, value in options if name.endswith("n_classes") and value == "auto"]
        estimator = clone(estimator).set_params(**dict.fromkeys(auto, max(2, int(reference.max()))))
    for train, test in steps(list(_weighted_parts(cv, X, pairs, weight)), "folds"):
        rows = safe_indexing(X, train)
        if not by_name and len(np.unique(np.sign(pairs.codes[train]))) < n_kinds:
            # One kind of answer is missing from the training rows.
            yield FoldModel(test, None, larger)
            continue
        model = fitted(estimator, rows, table[train], None if weight is None else weight[train])
        if by_name:
            _orient(model, rows, reference[train])
            yield FoldModel(test, model)
        else:
            yield FoldModel(test, model, 1.0 if model.decision_function(rows) @ reference[train] >= 0 else -1.0)


def _orient(model: Estimator, X: MatrixLike, names: Array | Codes) -> None:
    """Name the classes of an estimator, or of the last step of a pipeline."""
    last = model
    if isinstance(model, Pipeline):
        last = model[-1]
        X = model[:-1].transform(X) if len(model) > 1 else X
    if not hasattr(last, "orient"):
        raise InputError(
            f"`estimator` ({type(last).__name__}) has no orient, so models of folds cannot be given its "
            "names. Give predictions for answers that it has not seen: "
            "sdulearn.metrics.class_agreement(y_pred, y), or `cv=None`."
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
    y: ArrayLike | Pairs,
    reference: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    cv: Splitter = 10,
) -> Array | Codes:
    """Decision value or class of every row by a model that saw no answer about its point.

    Parameters
    ----------
    estimator, X, y
        As in :func:`cross_val_accuracy`; with ``orient`` where the reference holds classes.
    reference : float or int array of shape (n_rows,)
        Predictions of a model of all rows: decision values of two classes, or classes as integers.
        They name the classes of each fold. A hub, which cannot be held out, keeps the value that it
        has here.
    sample_weight, cv
        As in :func:`cross_val_accuracy`.

    Returns
    -------
    array of shape (n_rows,)
        Held-out decision values, or classes where the reference holds classes.
    """
    known = np.asarray(reference)
    return predictions_of(fold_models(estimator, X, y, known, sample_weight=sample_weight, cv=cv), X, known)


def held_out_rows(parts: Iterable[FoldModel], random_points: ArrayLike | None) -> Mask | None:
    """Rows of random points that are held out, so not of hubs; None where all points are random."""
    if random_points is None:
        return None
    random = np.asarray(random_points, dtype=bool)
    return random & np.isin(np.arange(len(random)), np.concatenate([part.rows for part in parts]))


def held_out_same(estimator: Estimator, X: MatrixLike, y: ArrayLike | Pairs, cv: Splitter) -> tuple[Array, Mask]:
    """Probability of "same" by models that saw neither point of an answer, and the answers."""
    pairs = read_pairs(y)
    table = np.asarray(pairs)
    chances = []
    similar = []
    for train, test in _splitter(cv, pairs).split(X, pairs):
        model = fitted(estimator, safe_indexing(X, train), table[train], None)
        part = read_pairs(table[test])
        chances.append(chance_of_same(model.predict_proba(safe_indexing(X, test)), part))
        similar.append(part.similar)
    return np.concatenate(chances), np.concatenate(similar)


def _weighted_parts(
    cv: Splitter, X: MatrixLike, pairs: Pairs, sample_weight: ArrayLike | None
) -> Iterator[tuple[Indices, Indices]]:
    """Yield the training rows of each fold and all rows of its points, without rows of weight 0."""
    pairs, _, kept = weighted_rows(pairs, sample_weight)
    if kept is None:
        kept = np.arange(len(pairs))
    else:
        check_places(cv)
        X = safe_indexing(X, kept)
    splitter = _splitter(cv, pairs)
    parts = fold_parts(splitter, X, pairs)
    held_out = np.unique(np.concatenate([rows for _, rows in parts]))
    if not isinstance(splitter, PairKFold) and len(held_out) < len(pairs):
        raise InputError("`cv` must hold out every row once. Give `cv=sdulearn.PairKFold()`.")
    for train, test in parts:
        yield kept[train], kept[test]


def folds_over_points(n_splits: int, y: ArrayLike | Pairs) -> PairKFold:
    """Return folds over points: as many as asked for, or as the rarer kind of answer allows.

    Parameters
    ----------
    n_splits : int
        Most folds.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
        What is known of each row.

    Returns
    -------
    PairKFold
        Its seed differs from that of the folds by which estimators choose settings.
    """
    count = number_of_folds(n_splits, read_pairs(y).similar)
    if count < 2:
        raise InputError("Cross-validation needs at least two pairs of a kind. Add answers.")
    return PairKFold(count, random_state=1)


def _splitter(cv: Splitter, pairs: Pairs) -> Splitter:
    return folds_over_points(int(cv), pairs) if isinstance(cv, Integral) else cv


def fitted(
    estimator: Estimator,
    X: MatrixLike,
    y: ArrayLike | Pairs,
    sample_weight: ArrayLike | None = None,
    # The model of all rows has given the warnings of the folds already.
    silenced: tuple[type[Warning], ...] = (SdulearnWarning, ConvergenceWarning),
) -> Estimator:
    """Fit a copy of an estimator without warnings of some kinds; weights go to the last step of a pipeline."""
    name = f"{estimator.steps[-1][0]}__sample_weight" if isinstance(estimator, Pipeline) else "sample_weight"
    weights = {} if sample_weight is None else {name: sample_weight}
    with warnings.catch_warnings():
        for kind in silenced:
            warnings.simplefilter("ignore", kind)
        return clone(estimator).fit(X, np.asarray(y), **weights)
