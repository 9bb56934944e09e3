"""Trees on top of a start, one booster a fold, and how many rounds the held-out answers ask for.

All folds go forward together, one tree each a round. After every round each point has a score by the booster that
saw no answer about it, and the likelihood of *all* answers at these scores is the held-out likelihood: components
that are too large for a fold need no other treatment. The model is the mean of the boosters at the best round,
so no further fit is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sdulearn.answers.graph import leave_out
from sdulearn.boosting.objective import PointLoss, Pull
from sdulearn.boosting.rows import TrainingRows
from sdulearn.boosting.start import LinearFits
from sdulearn.errors import require
from sdulearn.types import Array, Indices


class _Fold:
    """One booster, its start, and the answers that it may see; ``scores`` are those before its last round."""

    def __init__(self, booster: Any, start: Array, loss: PointLoss, pull: Pull | None) -> None:
        self.booster = booster
        self.start = start
        self.loss = loss
        self.pull = pull
        self.scores = start

    def slopes(self, trees: Array, _: Any) -> tuple[Array, Array]:
        """LightGBM asks for these with what the trees say so far."""
        self.scores = self.start + trees
        return self.loss.slopes(self.scores, self.pull)


def held_out_scores(scores: Sequence[Array], fold: Indices) -> Array:
    """The score of each point by the model without its fold; that of a hub, which is in none, by the mean."""
    stacked = np.stack(scores)
    chosen = stacked[np.maximum(fold, 0), np.arange(len(fold))]
    chosen[fold < 0] = stacked[:, fold < 0].mean(axis=0)
    return chosen


def cross_boost(
    rows: TrainingRows,
    start: LinearFits,
    n_classes: int,
    pull: Pull | None,
    parameters: dict[str, Any],
    categorical: list[int],
    max_rounds: int,
    patience: int,
) -> tuple[list[Any], Array, Array]:
    """Boost without each fold in turn; see the module's docstring.

    Gives the boosters at the best round, none where no tree helps; the held-out log likelihood of an answer after each
    round, first that of the start; and the held-out scores at the best round.
    """
    lightgbm = require("lightgbm", "boosting")
    data = lightgbm.Dataset(rows.points, categorical_feature=categorical, params=parameters)
    whole = PointLoss(rows.graph, n_classes, start.answer_model)
    folds = []
    for k, scores in enumerate(start.by_fold[:, rows.first_row]):
        loss = PointLoss(leave_out(rows.graph, rows.fold == k), n_classes, start.answer_model)
        folds.append(_Fold(lightgbm.Booster(parameters, data), scores, loss, pull))
    best = -np.inf
    curve: list[float] = []
    for _ in range(max_rounds + 1):
        for one in folds:
            one.booster.update(fobj=one.slopes)
        scores = held_out_scores([one.scores for one in folds], rows.fold)
        curve.append(whole.value(scores) / whole.n_known)
        if curve[-1] > best:
            best = curve[-1]
            best_scores = scores
        elif len(curve) - 1 - int(np.argmax(curve)) >= patience:
            break
    n_rounds = int(np.argmax(curve))
    if not n_rounds:
        return [], np.array(curve), best_scores
    for one in folds:
        for _ in range(one.booster.current_iteration() - n_rounds):
            one.booster.rollback_one_iter()
        one.booster.free_dataset()
    return [one.booster for one in folds], np.array(curve), best_scores
