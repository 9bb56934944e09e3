"""Answers by the predicted classes of their points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.errors import InputError
from sdulearn.metrics import AnswerCounts, class_agreement, held_out_classes
from sdulearn.plotting.display import Display
from sdulearn.types import Array, Estimator, MatrixLike, Splitter

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class AnswerMatrixDisplay(Display):
    """Answers "same" and "different" about points of each two predicted classes.

    Every cell has the two counts, "same" first, and is the darker the more of its answers are "same".
    Good predictions make a dark diagonal. A dark cell beside it: two classes that are one, or are taken
    for each other. A light one on it: a class that is several.

    Parameters
    ----------
    counts : AnswerCounts
        What is drawn.
    names : tuple of K str
        Names of the classes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of those axes.
    image_ : matplotlib AxesImage
        The coloured cells.
    texts_ : list of matplotlib Text
        The counts, one for each cell on the diagonal or below that has answers.

    See Also
    --------
    sdulearn.metrics.class_agreement : The counts, and the shares of answers that predictions agree with.
    sklearn.metrics.ConfusionMatrixDisplay : Where labels are known.

    Examples
    --------
    >>> from sdulearn.plotting import AnswerMatrixDisplay
    >>> display = AnswerMatrixDisplay.from_predictions([1, 1, 2, 3, 2, 3], [1, 1, -2, -2, 3, 3])
    >>> display.counts.same
    ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
    """

    counts: AnswerCounts
    names: tuple[str, ...]

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        y: ArrayLike,
        *,
        cv: Splitter | None = 5,
        ax: Axes | None = None,
    ) -> Self:
        """Draw what answers say of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            With ``predict``; where answers are held out and there are more than two classes, with ``name_classes``.
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row.
        cv : int, splitter or None, default=5
            The answers are those that the estimator was fitted on: copies are fitted without the points of each fold,
            and their predictions are drawn. None: the estimator has not seen these answers.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        AnswerMatrixDisplay
            The display, drawn.
        """
        predicted = np.asarray(estimator.predict(X))
        if cv is not None:
            if not hasattr(estimator, "name_classes"):
                raise InputError(
                    f"`estimator` ({type(estimator).__name__}) has no name_classes, so models of folds cannot be given "
                    "its names. Give answers that it has not seen, and `cv=None`."
                )
            predicted = held_out_classes(estimator, X, y, predicted, cv=cv)
        return cls.from_predictions(predicted, y, ax=ax)

    @classmethod
    def from_predictions(cls, y_pred: ArrayLike, y: ArrayLike, *, ax: Axes | None = None) -> Self:
        """Draw what answers say of predictions.

        Parameters
        ----------
        y_pred : array-like of shape (n_rows,)
            Predicted classes, by a model that has not seen the answers.
        y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
            What is known of each row.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        AnswerMatrixDisplay
            The display, drawn.
        """
        counts = class_agreement(y_pred, y).counts
        assert counts is not None
        return cls(counts=counts, names=tuple(str(name) for name in counts.classes)).plot(ax)

    @property
    def same_share(self) -> Array:
        """Share of the answers of each cell that are "same"; NaN where it has none."""
        same = np.array(self.counts.same)
        total = same + np.array(self.counts.different)
        return np.divide(same, total, out=np.full(same.shape, np.nan), where=total > 0)

    def plot(self, ax: Axes | None = None, *, cmap: str = "Blues") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        cmap : str, default="Blues"
            Colours of the share of "same" answers.

        Returns
        -------
        AnswerMatrixDisplay
            The display itself.
        """
        ax = self._axes(ax)
        shares = self.same_share
        # Both halves say the same.
        shares[np.triu_indices(len(shares), 1)] = np.nan
        self.image_ = ax.imshow(shares, cmap=cmap, vmin=0.0, vmax=1.0)
        self.texts_ = []
        for i, j in np.argwhere(np.isfinite(shares)).tolist():
            text = f"{self.counts.same[i][j]:.4g} / {self.counts.different[i][j]:.4g}"
            colour = "white" if shares[i, j] > 0.6 else "black"
            self.texts_.append(ax.text(j, i, text, ha="center", va="center", color=colour, fontsize="small"))
        places = range(len(self.names))
        ax.set_xticks(places, self.names)
        ax.set_yticks(places, self.names)
        ax.set(xlabel="predicted class", ylabel="predicted class", title="answers: same / different")
        return self
