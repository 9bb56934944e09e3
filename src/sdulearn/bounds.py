"""The theory of the paper (see :class:`sdulearn.SDUClassifier`): error bounds and their order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import binom
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms

from sdulearn.errors import InputError
from sdulearn.risks import MIXED_RISKS, Mixture, check_prior, dissimilar_share, mixture, needed_sources, similar_share
from sdulearn.types import MatrixLike


def estimation_error_bound(
    risk: str | Sequence[float],
    *,
    n_similar: float,
    n_dissimilar: float,
    n_unlabeled: float,
    prior: float,
    lipschitz: float,
    complexity: float,
    loss_bound: float,
    delta: float,
    gamma: float = 0.5,
    paired: bool = False,
) -> float:
    """Bound ``R(f_hat) - R(f*)`` with probability 1 - delta (Theorems est and est_sdu).

    Theorem est (``log(8 / delta)``) for "su", "du" and "sd", Theorem est_sdu (``log(12 / delta)``) for mixtures, also
    at a corner. The proofs treat the two ends of a pair as independent; ``paired=True`` does not.

    Parameters
    ----------
    risk : {"su", "du", "sd", "sdsu", "sddu", "sudu"} or triple
        The risk that is minimised, or weights (su, du, sd).
    n_similar, n_dissimilar, n_unlabeled : float
        Numbers of pairs and of unlabeled rows; zero if the risk does not use them.
    prior : float
        P(y = +1), not 1/2.
    lipschitz, complexity, loss_bound : float
        Lipschitz constant rho of the loss; C_F of Eq. assumption, of a linear model
        :func:`rademacher_linear`; C_l, the largest value of the loss over the model class.
    delta : float
        Allowed probability of failure.
    gamma : float, default=0.5
        Mixture weight of "sdsu", "sddu" and "sudu".
    paired : bool, default=False
        Whether pairs, not their ends, are independent: the pair terms grow by sqrt(2).

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> from sdulearn.bounds import estimation_error_bound
    >>> counts = {"n_similar": 5800, "n_dissimilar": 4200, "n_unlabeled": 10_000, "prior": 0.7}
    >>> model = {"lipschitz": 1.0, "complexity": 1.0, "loss_bound": 1.0, "delta": 0.05}
    >>> [round(estimation_error_bound(risk, **counts, **model), 2) for risk in ("su", "du", "sd")]
    [0.37, 0.34, 0.18]
    """
    g = mixture(risk, gamma)
    check_prior(prior)
    _check_counts(g, (n_similar, n_dissimilar, n_unlabeled))
    _check_positive(lipschitz=lipschitz, complexity=complexity, loss_bound=loss_bound)
    if not 0 < delta < 1:
        raise InputError(f"`delta`, the chance of failure, must lie between 0 and 1, got {delta!r}.")
    events = 8 if risk in ("su", "du", "sd") else 12
    ends = 1 if paired else 2
    sizes = (ends * n_similar, ends * n_dissimilar, n_unlabeled)
    # C_{F,l,delta} = (4 rho C_F + sqrt(2 C_l^2 log(events / delta))) / |p - q|.
    deviation = math.sqrt(2 * loss_bound**2 * math.log(events / delta))
    constant = (4 * lipschitz * complexity + deviation) / abs(2 * prior - 1)
    return constant * bound_rate(g, prior, sizes)


def bound_rate(g: Mixture, prior: float, sizes: tuple[float, float, float]) -> float:
    """The bracket of Theorem est_sdu; at the corners (SU, DU, SD) it is that of Theorem est."""
    g1, g2, g3 = g
    p = prior
    q = 1 - p
    factors = (
        (2 * g1 + g3) * similar_share(p),
        (2 * g2 + g3) * dissimilar_share(p),
        abs(g1 * q - g2 * p) + abs(g1 * p - g2 * q),
    )
    return sum(factor / math.sqrt(n) for factor, n in zip(factors, sizes, strict=True) if factor > 0)


def order_probability(n_pairs: int, prior: float, *, exact: bool = False) -> float:
    """Bound the chance that DU and SD have smaller bounds than SU (corollary of Theorem est): why to mix SD with DU.

    Parameters
    ----------
    n_pairs : int
        Number of pairs drawn at random.
    prior : float
        P(y = +1), not 1/2.
    exact : bool, default=False
        The binomial probability itself in place of the corollary's (Chernoff, Okamoto) bound on it.

    Returns
    -------
    float
        The lower bound, or with ``exact`` the probability.

    Examples
    --------
    >>> from sdulearn.bounds import order_probability
    >>> round(order_probability(200, 0.7), 3), round(order_probability(200, 0.7, exact=True), 3)
    (0.907, 0.987)
    """
    check_prior(prior)
    if not (n_pairs >= 1 and n_pairs == int(n_pairs)):
        raise InputError(f"`n_pairs` must be a whole number of 1 or more, got {n_pairs!r}.")
    ps = similar_share(prior)
    pd = dissimilar_share(prior)
    # V_DU <= V_SU and V_SD <= V_SU wherever pd / sqrt(n_D) <= ps / sqrt(n_S), and n_D is binomial.
    both = ps**2 + pd**2
    if exact:
        return float(binom.sf(math.ceil(n_pairs * pd**2 / both) - 1, n_pairs, pd))
    return -math.expm1(-n_pairs * pd / (2 * ps) * (1 - pd / both) ** 2)


def rademacher_linear(X: MatrixLike, radius: float) -> float:
    """Compute C_F of the linear models ``{x -> w.x : |w| <= radius}`` on the rows of X.

    Their empirical Rademacher complexity is at most ``C_F / sqrt(n)`` with ``C_F = radius sqrt(mean |x_i|^2)``. Add a
    column of ones for an intercept, and take the largest constant of the rows of S, D and U.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        Points, as the model sees them.
    radius : float
        Largest norm of the weights.

    Returns
    -------
    float
        C_F.

    Examples
    --------
    >>> from sdulearn.bounds import rademacher_linear
    >>> rademacher_linear([[3.0, 4.0], [0.0, 5.0]], radius=2.0)
    10.0
    """
    _check_positive(radius=radius)
    rows = check_array(X, accept_sparse="csr", dtype=np.float64)
    return float(radius * math.sqrt(np.mean(row_norms(rows, squared=True))))


def recommended_gamma(
    risk: str = "sddu",
    *,
    n_similar: float,
    n_dissimilar: float,
    n_unlabeled: float,
    prior: float,
    separation: float = 0.0,
) -> float:
    """Choose the mixture weight that makes the linear term of the risk least noisy.

    With a linear-odd loss only the linear term is divided by p - q. In units of the within-class
    variance, and up to ``(p - q)^2``, its variance is ``t^2 A + (1 - t)^2 B + (1 - 2 t)^2 C`` with

    ``A = ps^2 (1/2 + r p^2 q^2 / ps^2) / n_S``, ``B = pd^2 / (2 n_D)``, ``C = (1 + r p q) / (4 n_U)``,

    where t is ``(1 + gamma) / 2`` in SDSU, ``(1 - gamma) / 2`` in SDDU and ``1 - gamma`` in SUDU.
    It is least at ``t = (B + 2 C) / (A + B + 4 C)``, clipped to the range of the mixture.

    Parameters
    ----------
    risk : {"sddu", "sdsu", "sudu"}, default="sddu"
        Which mixture.
    n_similar, n_dissimilar, n_unlabeled : float
        Numbers of pairs and of unlabeled rows.
    prior : float
        P(y = +1), not 1/2.
    separation : float, default=0
        The r above: squared distance of the class means over the within-class variance, to count
        the noise along their difference too. Noise across it, which turns the classifier, has r = 0.

    Returns
    -------
    float
        The weight gamma, between 0 and 1.

    Examples
    --------
    >>> from sdulearn.bounds import recommended_gamma
    >>> counts = {"n_similar": 58, "n_dissimilar": 42, "n_unlabeled": 1_000_000}
    >>> round(recommended_gamma("sddu", **counts, prior=0.7), 2)
    0.16
    """
    if risk not in MIXED_RISKS:
        raise InputError(f"`risk` must be a mixture, one of {list(MIXED_RISKS)}, got {risk!r}: others have no gamma.")
    check_prior(prior)
    _check_counts((1.0, 1.0, 1.0), (n_similar, n_dissimilar, n_unlabeled))
    if not 0 <= separation < math.inf:
        raise InputError(f"`separation` must be zero or a positive number, got {separation!r}.")
    pq = prior * (1 - prior)
    A = (similar_share(prior) ** 2 / 2 + separation * pq**2) / n_similar
    B = dissimilar_share(prior) ** 2 / (2 * n_dissimilar)
    C = (1 + separation * pq) / (4 * n_unlabeled)
    t = (B + 2 * C) / (A + B + 4 * C)
    gamma = {"sdsu": 2 * t - 1, "sddu": 1 - 2 * t, "sudu": 1 - t}[risk]
    return min(max(gamma, 0.0), 1.0)


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise InputError(f"`{name}` must be a positive number, got {value!r}.")


def _check_counts(g: Mixture, counts: tuple[float, float, float]) -> None:
    names = ("n_similar", "n_dissimilar", "n_unlabeled")
    for name, count, needed in zip(names, counts, needed_sources(g), strict=True):
        if not 0 <= count < math.inf:
            raise InputError(f"`{name}` must be a number, zero or more; got {count!r}.")
        if needed and count == 0:
            raise InputError(
                f"This risk needs `{name}` of 1 or more. Choose one that does without: 'su', 'du' or 'sd'."
            )
