"""The losses, as functions of the margin ``z`` alone.

A loss is *linear-odd* when ``value(z, +1) - value(z, -1) == -z``; then ``value(z, t) == even(z) - t * z / 2`` and every
risk of the paper is convex (Theorem "conv").

A training loss of your own is any object with ``value(z, t)``, ``even(z)`` and ``even_grad(z)``
(:class:`LinearOddLoss`); with ``even_hess(z)`` it is solved by Newton's method, without it by L-BFGS. Further
attributes select a solver:

- ``curvature``: ``even`` is ``curvature * z**2 / 2 + const``: the closed form;
- ``flat``: ``even`` is ``max(flat, abs(z)) / 2``: the interior point method;
- ``probability(z)``: P(y = +1) where every margin is that of a probability: ``predict_proba``.
"""

from __future__ import annotations

from typing import Protocol, cast, runtime_checkable

import numpy as np
from scipy.special import expit

from sdulearn.errors import InputError
from sdulearn.types import Array


class Loss(Protocol):
    """A loss of the margin z and the label t: what a risk needs."""

    def value(self, z: Array, t: float) -> Array:
        """``loss(z, t)`` for t in {-1, +1}."""


@runtime_checkable
class LinearOddLoss(Loss, Protocol):
    """A loss that can be trained with: the least that an object of your own needs.

    It must satisfy ``value(z, 1) - value(z, -1) == -z`` and be convex, which is checked in ``fit``.

    Examples
    --------
    >>> from sdulearn.losses import LinearOddLoss, Logistic, ZeroOne
    >>> isinstance(Logistic(), LinearOddLoss), isinstance(ZeroOne(), LinearOddLoss)
    (True, False)
    """

    def even(self, z: Array) -> Array:
        """``(value(z, +1) + value(z, -1)) / 2``."""

    def even_grad(self, z: Array) -> Array:
        """First derivative of ``even`` (a subderivative at a kink)."""


class TrainingLoss(LinearOddLoss, Protocol):
    """All that a solver may ask of a loss; ``choose_solver`` checks for what may be missing."""

    curvature: float
    flat: float

    def even_hess(self, z: Array) -> Array:
        """Second derivative of the even part."""

    def even_conjugate(self, s: Array) -> Array:
        """``sup_z (s z - even(z))``: the certificate of a kinked loss."""

    def probability(self, z: Array) -> Array:
        """P(y = +1) at margin z, where the loss is proper."""


class Squared:
    """Squared loss, ``(t z - 1)^2 / 4`` (Eq. loss_sq).

    Its minimiser is the solution of one linear system, and depends on the rows through their means and second moments
    alone. A linear model leaves the range of probabilities, so its decision values are not probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.losses import Squared
    >>> Squared().value(np.array([-1.0, 0.0, 1.0]), 1)
    array([1.  , 0.25, 0.  ])
    """

    curvature = 0.5

    def value(self, z: Array, t: float) -> Array:
        """``(t z - 1)^2 / 4``."""
        return (t * z - 1) ** 2 / 4

    def even(self, z: Array) -> Array:
        """``(z^2 + 1) / 4``."""
        return (z**2 + 1) / 4

    def even_grad(self, z: Array) -> Array:
        """``z / 2``."""
        return z / 2

    def even_hess(self, z: Array) -> Array:
        """``1 / 2``."""
        return np.full_like(z, 0.5)


class DoubleHinge:
    """Double hinge loss, ``max(-t z, max(0, (1 - t z) / 2))``.

    The hinge among the linear-odd losses; its decision values carry no probability.

    References
    ----------
    .. [1] M. C. du Plessis, G. Niu, M. Sugiyama, "Convex formulation for learning from positive and unlabeled data",
       ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.losses import DoubleHinge
    >>> DoubleHinge().value(np.array([-2.0, 0.0, 2.0]), 1)
    array([2. , 0.5, 0. ])
    """

    flat = 1.0

    def value(self, z: Array, t: float) -> Array:
        """``max(-t z, max(0, (1 - t z) / 2))``."""
        return np.maximum(-t * z, np.maximum(0, (1 - t * z) / 2))

    def even(self, z: Array) -> Array:
        """``max(1, |z|) / 2``."""
        return np.maximum(1, np.abs(z)) / 2

    def even_grad(self, z: Array) -> Array:
        """``sign(z) / 2`` where ``|z| > 1``, else 0."""
        return np.where(np.abs(z) > 1, np.sign(z) / 2, 0.0)

    def even_conjugate(self, s: Array) -> Array:
        """``sup_z (s z - even(z))``, finite for ``|s| <= 1/2``."""
        return np.where(np.abs(s) <= 0.5, np.abs(s) - 0.5, np.inf)


class Logistic:
    """Logistic loss, ``log(1 + exp(-t z))``.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.losses import Logistic
    >>> Logistic().value(np.array([0.0]), 1).round(3)
    array([0.693])
    """

    def value(self, z: Array, t: float) -> Array:
        """``log(1 + exp(-t z))``."""
        return np.logaddexp(0, -t * z)

    def even(self, z: Array) -> Array:
        """``log(2 cosh(z / 2))``."""
        return log_cosh(z)

    def even_grad(self, z: Array) -> Array:
        """``tanh(z / 2) / 2``."""
        return np.tanh(z / 2) / 2

    def even_hess(self, z: Array) -> Array:
        """``s (1 - s)`` with ``s = 1 / (1 + exp(z))``."""
        s = expit(-np.abs(z))
        return s * (1 - s)

    def probability(self, z: Array) -> Array:
        """P(y = +1) is ``1 / (1 + exp(-z))``."""
        return expit(z)


class ZeroOne:
    """Zero-one loss, ``(1 - sign(t z)) / 2``: for validation only.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn.losses import ZeroOne
    >>> ZeroOne().value(np.array([-2.0, 0.0, 2.0]), 1)
    array([1. , 0.5, 0. ])
    """

    def value(self, z: Array, t: float) -> Array:
        """``(1 - sign(t z)) / 2``."""
        return (1 - np.sign(t * z)) / 2


def log_cosh(u: Array) -> Array:
    """Return ``log 2 cosh(u / 2)``, without overflow."""
    size = np.abs(u)
    return size / 2 + np.log1p(np.exp(-size))


_OURS = {"squared": Squared(), "double_hinge": DoubleHinge(), "logistic": Logistic()}
TRAINING_LOSSES = cast(dict[str, TrainingLoss], _OURS)
ALL_LOSSES: dict[str, Loss] = {**TRAINING_LOSSES, "zero_one": ZeroOne()}


def get_loss(loss: str | Loss) -> Loss:
    """Return any loss, by name or as an object with ``value(z, t)``."""
    if isinstance(loss, str):
        if loss not in ALL_LOSSES:
            raise InputError(f"Unknown `loss={loss!r}`; choose one of {sorted(ALL_LOSSES)} or pass a loss object.")
        return ALL_LOSSES[loss]
    if not callable(getattr(loss, "value", None)):
        raise InputError(f"The `loss` {loss!r} needs a method value(z, t); see sdulearn.losses.")
    return loss


def get_training_loss(loss: str | LinearOddLoss) -> TrainingLoss:
    """Return a loss to train with, by name or as an object, or raise with the reason why not."""
    if isinstance(loss, str) and loss in TRAINING_LOSSES:
        return TRAINING_LOSSES[loss]
    training = cast(TrainingLoss, get_loss(loss))
    name = loss if isinstance(loss, str) else type(loss).__name__
    z = np.linspace(-3, 3, 61)
    positive, negative = training.value(z, 1), training.value(z, -1)
    if not np.allclose(positive - negative, -z, rtol=0, atol=1e-9):
        raise InputError(
            f"The loss {name} is not linear-odd: value(z, +1) - value(z, -1) must be -z, or the objective is "
            f"non-convex. Train with {', '.join(sorted(TRAINING_LOSSES))}, or use this one for validation with "
            "sdulearn.metrics.pair_risk."
        )
    for method in ("even", "even_grad"):
        if not callable(getattr(training, method, None)):
            raise InputError(f"The loss {name} needs a method {method}(z) to be trained with; see sdulearn.losses.")
    even = (positive + negative) / 2
    if not np.allclose(training.even(z), even, rtol=0, atol=1e-9):
        raise InputError(f"The loss {name} contradicts itself: even(z) is not (value(z, +1) + value(z, -1)) / 2.")
    if (np.diff(even, 2) < -1e-9).any():
        raise InputError(f"The loss {name} is not convex in z, so the objective would not be convex.")
    return training
