"""Answers that are probably wrong, for asking again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.answers.error_rates import ErrorRates
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.propagate import propagate
from sdulearn.errors import InputError
from sdulearn.pairs import read_pairs
from sdulearn.types import Array, Codes, Indices, MatrixLike

# An annotator of whose error rate nothing is known is not infallible.
_UNKNOWN_RATE = 0.05


class NoisyAnswerModel(Protocol):
    """A fitted model with probabilities and error rates."""

    error_rates_: ErrorRates

    def predict_proba(self, X: MatrixLike) -> Array:
        """Probability of each class."""
        ...


@dataclass(frozen=True, eq=False)
class DoubtfulAnswers:
    """All answers, the most doubtful first.

    Attributes
    ----------
    wrong : array of shape (n_answers,)
        Probability that each answer is wrong, given the model and all other answers, in falling order.
    code : int array of shape (n_answers,)
        The pair code of each answer in ``y``.
    rows : int array of shape (n_answers, 2)
        Its two rows.
    annotator : int array of shape (n_answers,)
        Who gave it, 0 where that is not known.
    """

    wrong: Array
    code: Codes
    rows: Indices
    annotator: Codes

    def __len__(self) -> int:
        return len(self.wrong)


def doubtful_answers(model: NoisyAnswerModel, X: MatrixLike, y: ArrayLike) -> DoubtfulAnswers:
    """Rank answers by the probability that they are wrong.

    Other answers about the same points and the model's probabilities speak for or against each
    answer. A model that was fitted on the very answers leans towards them: it finds fewer wrong
    ones than there are, while their order is hardly touched.

    Parameters
    ----------
    model : estimator
        A fitted :class:`~sdulearn.PairLogisticRegression` or
        :class:`~sdulearn.PairLogisticRegressionCV`. Where it found an error rate of 0 for lack of
        anything that tells, answers are taken to be wrong at a rate of 0.05.
    X : array, CSR matrix or frame of shape (n_rows, n_features)
        Rows.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
        What is known of each row.

    Returns
    -------
    DoubtfulAnswers
        All answers with their probabilities, the most doubtful first.

    See Also
    --------
    check_answers : Contradictions that need no model.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn import PairLogisticRegression, stack_pairs
    >>> from sdulearn.answers import doubtful_answers
    >>> X = np.r_[np.linspace(-3, -1, 20), np.linspace(1, 3, 20)][:, None]
    >>> pairs = np.column_stack([np.zeros(39, dtype=int), np.arange(1, 40)])
    >>> same = pairs[:, 1] < 20
    >>> same[7] = False
    >>> rows, y = stack_pairs(X, pairs, same, unlabeled=None)
    >>> model = PairLogisticRegression(error_rate=0.05, prior=0.49).fit(rows, y)
    >>> int(doubtful_answers(model, rows, y).code[0])
    -8
    """
    pairs = read_pairs(y)
    graph = AnswerGraph.from_y(pairs)
    probability = np.asarray(model.predict_proba(X), dtype=np.float64)
    if len(probability) != len(pairs):
        raise InputError(f"`X` has {len(probability)} rows, but `y` has {len(pairs)}.")
    count = np.bincount(graph.row_point, minlength=graph.n_points)
    sums = [np.bincount(graph.row_point, column, graph.n_points) for column in probability.T]
    log_p = np.log(np.maximum(np.column_stack(sums) / count[:, None], 1e-12))
    log_p -= np.logaddexp.reduce(log_p, axis=1, keepdims=True)
    found = propagate(graph, log_p, _rates(model.error_rates_, graph.annotators))
    order = np.argsort(found.right, kind="stable")
    return DoubtfulAnswers(
        wrong=1 - found.right[order],
        code=pairs.codes[pairs.ends[order, 0]],
        rows=pairs.ends[order],
        annotator=graph.annotators[order],
    )


def _rates(error_rates: ErrorRates, annotators: Codes) -> dict[int, float]:
    """Rates above 0: one who was never found wrong may be, once, and one of whom nothing is known now and then."""
    rates = error_rates.of_answers(annotators)
    for one in error_rates:
        if one.annotator in rates and one.rate == 0:
            rates[one.annotator] = 1 / (2 * max(one.n_answers, 10)) if one.identified else _UNKNOWN_RATE
    return {a: max(rate, 1e-3) for a, rate in rates.items()}
