"""Section 3 of the paper as one table of row weights, and the validation risk.

Every risk is ``sum_i P_i loss(z_i, +1) + N_i loss(z_i, -1)`` over the stacked rows of S, D and U.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sdulearn.answers.y import D, S, U, source_totals
from sdulearn.errors import InputError, UndeterminedError
from sdulearn.losses import Loss
from sdulearn.types import Array, Indices

Mixture = tuple[float, float, float]

MIXED_RISKS = ("sdsu", "sddu", "sudu")
RISKS = ("su", "du", "sd", *MIXED_RISKS)
_SOURCE_NAMES = {S: "similar pairs", D: "dissimilar pairs", U: "unlabeled rows"}


def similar_share(p: float) -> float:
    """``ps = p^2 + q^2``: the share of similar pairs among random pairs."""
    return p * p + (1 - p) * (1 - p)


def dissimilar_share(p: float) -> float:
    """``pd = 2 p q``: the share of dissimilar pairs among random pairs."""
    return 2 * p * (1 - p)


def mixture(risk: str | Sequence[float], gamma: float = 0.5) -> Mixture:
    """Return the weights of the SU, DU and SD risks (Eqs. risk_SDSU, risk_SDDU, risk_SUDU)."""
    if isinstance(risk, str):
        if not 0 <= gamma <= 1:
            raise InputError(f"`gamma` must lie between 0 and 1, got {gamma!r}.")
        corners = {
            "su": (1.0, 0.0, 0.0),
            "du": (0.0, 1.0, 0.0),
            "sd": (0.0, 0.0, 1.0),
            "sdsu": (gamma, 0.0, 1 - gamma),
            "sddu": (0.0, gamma, 1 - gamma),
            "sudu": (1 - gamma, gamma, 0.0),
        }
        if risk not in corners:
            raise InputError(f"Unknown `risk={risk!r}`; choose one of {list(RISKS)} or weights (su, du, sd).")
        return corners[risk]
    try:
        weights = np.asarray(risk, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.shape != (3,) or not (weights >= 0).all() or abs(weights.sum() - 1) > 1e-9:
        raise InputError(f"A `risk` given as weights (su, du, sd) needs three numbers >= 0 of sum 1, got {risk!r}.")
    g1, g2, g3 = weights.tolist()
    return g1, g2, g3


def check_prior(prior: float) -> float:
    """Return the prior, or raise where the marginal risks are undefined."""
    if not 0 < prior < 1:
        raise InputError(f"`prior` must lie strictly between 0 and 1, got {prior!r}.")
    if prior == 0.5:
        raise InputError(
            "The SU, DU and SD risks divide by p - q and are undefined at `prior=0.5`: one end at a "
            "time, similar and dissimilar pairs look alike. Use sdulearn.PairLogisticRegression, "
            "which learns from the pair as a whole."
        )
    return float(prior)


def source_weights(g: Mixture, prior: float) -> Array:
    """Return P and N (columns) of S, D and U, before the division by their numbers of rows."""
    g1, g2, g3 = g
    p = prior
    q = 1 - prior
    ps = similar_share(p)
    pd = dissimilar_share(p)
    table = [
        [ps * (g1 + g3 * p), -ps * (g1 + g3 * q)],
        [-pd * (g2 + g3 * q), pd * (g2 + g3 * p)],
        [g2 * p - g1 * q, g1 * p - g2 * q],
    ]
    return np.array(table) / (p - q)


def unit_weights(g: Mixture, prior: float, totals: Array) -> Array:
    """Return P and N (columns) of a row of weight one, by the total weights of S, D and U."""
    for source, needed in enumerate(needed_sources(g)):
        if needed and totals[source] == 0:
            missing = _SOURCE_NAMES[source]
            raise UndeterminedError(
                f"This `risk` needs {missing}, and `y` marks none. Add {missing}, or choose a risk "
                "that does without: 'su' (similar + unlabeled), 'du' (dissimilar + unlabeled) or "
                "'sd' (similar + dissimilar)."
            )
    return source_weights(g, prior) / np.where(totals > 0, totals, 1.0)[:, None]


def row_weights(g: Mixture, prior: float, source: Indices, sample_weight: Array | None = None) -> tuple[Array, Array]:
    """Return P_i and N_i of every row, by its weight."""
    weight = np.ones(len(source)) if sample_weight is None else sample_weight
    P, N = unit_weights(g, prior, source_totals(source, weight))[source].T * weight
    return P, N


def even_and_linear(P: Array, N: Array) -> tuple[Array, Array]:
    """``a = P + N`` and ``m = (P - N) / 2``: a linear-odd risk is ``sum a even(z) - sum m z``."""
    return P + N, (P - N) / 2


def validation_risk(source: Indices) -> str:
    """Return "sd", as in the paper, where both kinds of pair exist, else the risk that is left."""
    present = np.bincount(source, minlength=3) > 0
    if present[S] and present[D]:
        return "sd"
    return "su" if present[S] else "du"


def marginal_risk(
    z: Array, source: Indices, g: Mixture, prior: float, loss: Loss, weight: Array | None = None
) -> Array:
    """Return the empirical risk of a decision vector, or of each column of a matrix."""
    P, N = row_weights(g, prior, source, weight)
    return np.asarray(P @ loss.value(z, 1) + N @ loss.value(z, -1))


def needed_sources(g: Mixture) -> tuple[bool, bool, bool]:
    """Return whether the mixture depends on S, on D and on U."""
    g1, g2, g3 = g
    return g1 + g3 > 0, g2 + g3 > 0, g1 + g2 > 0
