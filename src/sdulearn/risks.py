"""Section 3 of the paper as one table of row weights, and the validation risk.

Every risk is ``sum_i P_i loss(z_i, +1) + N_i loss(z_i, -1)`` over the stacked rows of S, D and U.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdulearn.losses import Loss, get_loss
from sdulearn.pairs import DISSIMILAR, SIMILAR, UNLABELED, check_pair_codes, read_pairs, sources
from sdulearn.prior import dissimilar_share, similar_share

Array = NDArray[np.float64]
Mixture = tuple[float, float, float]

MIXED_RISKS = ("sdsu", "sddu", "sudu")
RISKS = ("su", "du", "sd", *MIXED_RISKS)
_SOURCE_NAMES = {SIMILAR: "similar pairs", DISSIMILAR: "dissimilar pairs", UNLABELED: "unlabeled rows"}


class UndeterminedError(ValueError):
    """Rows or pairs of some kind are missing: with more data there may be an answer."""


def mixture(risk: str | Sequence[float], gamma: float = 0.5) -> Mixture:
    """Weights (g1, g2, g3) of the SU, DU and SD risks (Eqs. risk_SDSU, risk_SDDU, risk_SUDU)."""
    if isinstance(risk, str):
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma must lie between 0 and 1, got {gamma!r}.")
        corners = {
            "su": (1.0, 0.0, 0.0),
            "du": (0.0, 1.0, 0.0),
            "sd": (0.0, 0.0, 1.0),
            "sdsu": (gamma, 0.0, 1 - gamma),
            "sddu": (0.0, gamma, 1 - gamma),
            "sudu": (1 - gamma, gamma, 0.0),
        }
        if risk not in corners:
            raise ValueError(f"Unknown risk {risk!r}; choose one of {list(RISKS)} or weights (su, du, sd).")
        return corners[risk]
    weights = np.asarray(risk, dtype=np.float64)
    if weights.shape != (3,) or not (weights >= 0).all() or abs(weights.sum() - 1) > 1e-9:
        raise ValueError(f"A risk given as weights (su, du, sd) needs three numbers >= 0 of sum 1, got {risk!r}.")
    g1, g2, g3 = weights.tolist()
    return g1, g2, g3


def check_prior(prior: float) -> float:
    """Refuse the priors at which the marginal risks are undefined."""
    if not 0 < prior < 1:
        raise ValueError(f"prior must lie strictly between 0 and 1, got {prior!r}.")
    if prior == 0.5:
        raise ValueError(
            "The SU, DU and SD risks divide by p - q and are undefined at prior 0.5: seen one end at a time, "
            "similar and dissimilar pairs look alike. Use sdulearn.PairLogisticRegression, which learns from "
            "the pair as a whole."
        )
    return float(prior)


def source_weights(g: Mixture, prior: float) -> Array:
    """The row-weight table: rows S, D, U; columns P and N; before the division by the source's size."""
    g1, g2, g3 = g
    p, q = prior, 1 - prior
    ps, pd, d = similar_share(p), dissimilar_share(p), p - q
    table = [
        [ps * (g1 + g3 * p), -ps * (g1 + g3 * q)],
        [-pd * (g2 + g3 * q), pd * (g2 + g3 * p)],
        [g2 * p - g1 * q, g1 * p - g2 * q],
    ]
    return np.array(table) / d


def row_weights(
    g: Mixture, prior: float, source: NDArray[np.intp], sample_weight: Array | None = None
) -> tuple[Array, Array]:
    """P_i and N_i of every row: the table, shared out among the rows of each source by their weight."""
    table = source_weights(g, prior)
    weight = np.ones(len(source)) if sample_weight is None else sample_weight
    totals = np.bincount(source, weights=weight, minlength=3)
    check_sources(g, totals)
    share = weight / np.where(totals > 0, totals, 1.0)[source]
    return table[source, 0] * share, table[source, 1] * share


def even_and_linear(P: Array, N: Array) -> tuple[Array, Array]:
    """``a = P + N`` and ``m = (P - N) / 2``: a linear-odd risk is ``sum a even(z) - sum m z``."""
    return P + N, (P - N) / 2


def validation_risk(source: NDArray[np.intp]) -> str:
    """SD, as in the paper, where both kinds of pair are there; else the risk the sources allow."""
    present = np.bincount(source, minlength=3) > 0
    if present[SIMILAR] and present[DISSIMILAR]:
        return "sd"
    return "su" if present[SIMILAR] else "du"


def pair_risk(
    decision: ArrayLike,
    y: ArrayLike,
    *,
    prior: float,
    loss: str | Loss = "zero_one",
    risk: str | Sequence[float] = "sd",
    gamma: float = 0.5,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Unbiased estimate of the classification risk from pairs: no class label is needed.

    It is not clipped: on few pairs it may be negative or exceed 1, and that is what ranks models rightly.

    Parameters
    ----------
    decision : array-like of shape (n_rows,)
        Values of the decision function.
    y : array-like of shape (n_rows,)
        Pair codes.
    prior : float
        P(y = +1), not 1/2.
    loss : str or object with ``value(z, t)``, default="zero_one"
        Any loss; with "zero_one" the result estimates the error rate.
    risk : str or triple, default="sd"
        Which unbiased risk: "su", "du", "sd", "sdsu", "sddu", "sudu", or weights (su, du, sd).
    gamma : float, default=0.5
        Mixture weight of the three mixed risks.
    sample_weight : array-like of shape (n_rows,), optional
        A weight per row; both ends of a pair carry one weight.

    Returns
    -------
    float
        The empirical risk.

    Examples
    --------
    >>> from sdulearn import pair_risk
    >>> round(pair_risk([2, 1, 1, -1], [1, 1, -2, -2], prior=0.7), 3)
    -0.225
    """
    codes = check_pair_codes(y)
    z = np.asarray(decision, dtype=np.float64)
    if z.shape != codes.shape:
        raise ValueError(f"decision has shape {z.shape}, but y has {codes.shape[0]} rows.")
    weight = None
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64)
        read_pairs(codes).pair_weights(weight)
    g = mixture(risk, gamma)
    return float(marginal_risk(z, sources(codes), g, check_prior(prior), get_loss(loss), weight))


def marginal_risk(
    z: Array, source: NDArray[np.intp], g: Mixture, prior: float, loss: Loss, weight: Array | None = None
) -> Any:
    """The empirical risk on clean arrays, of one decision vector or of each column of a matrix of them."""
    P, N = row_weights(g, prior, source, weight)
    return P @ loss.value(z, 1) + N @ loss.value(z, -1)


def needed_sources(g: Mixture) -> tuple[bool, bool, bool]:
    """Whether the mixture looks at S, at D and at U."""
    g1, g2, g3 = g
    return g1 + g3 > 0, g2 + g3 > 0, g1 + g2 > 0


def check_sources(g: Mixture, totals: NDArray[Any]) -> None:
    """Refuse a mixture that looks at a source without rows."""
    for source, needed in enumerate(needed_sources(g)):
        if needed and totals[source] == 0:
            missing = _SOURCE_NAMES[source]
            raise UndeterminedError(
                f"This risk needs {missing}, and y marks none. Add {missing}, or choose a risk that does without: "
                "'su' (similar + unlabeled), 'du' (dissimilar + unlabeled) or 'sd' (similar + dissimilar)."
            )
