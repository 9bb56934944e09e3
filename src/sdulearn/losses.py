"""The losses, as functions of the margin ``z`` alone.

A loss is *linear-odd* when ``value(z, +1) - value(z, -1) == -z``; then
``value(z, t) == even(z) - t * z / 2`` and every risk of the paper is convex (Theorem "conv").

A training loss of your own is any object with ``value(z, t)``, ``even(z)`` and ``even_grad(z)``;
with ``even_hess(z)`` it is solved by Newton's method, without it by L-BFGS. Attributes that open a
door:

- ``curvature``: ``even`` is ``curvature * z**2 / 2 + const``: the closed form;
- ``flat``: ``even`` is ``max(flat, abs(z)) / 2``: the interior point method;
- ``probability(z)``: P(y = +1) where the loss is proper: ``predict_proba``.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit

from sdulearn.errors import InputError
from sdulearn.types import Array


class Loss(Protocol):
    """A loss of the margin z and the label t: what a risk needs."""

    def value(self, z: Array, t: float) -> Array:
        """``loss(z, t)`` for t in {-1, +1}."""
        ...


@runtime_checkable
class LinearOddLoss(Loss, Protocol):
    """A loss that can be trained with: what a solver needs."""

    def even(self, z: Array) -> Array:
        """``(value(z, +1) + value(z, -1)) / 2``."""
        ...

    def even_grad(self, z: Array) -> Array:
        """First derivative of ``even`` (a subderivative at a kink)."""
        ...


class Squared:
    """``(t z - 1)^2 / 4`` (Eq. loss_sq)."""

    curvature = 0.5

    def value(self, z: Array, t: float) -> Array:
        """``loss(z, t)``."""
        return (t * z - 1) ** 2 / 4

    def even(self, z: Array) -> Array:
        """Even part."""
        return (z**2 + 1) / 4

    def even_grad(self, z: Array) -> Array:
        """First derivative of the even part."""
        return z / 2

    def even_hess(self, z: Array) -> Array:
        """Second derivative of the even part."""
        return np.full_like(z, 0.5)

    def probability(self, z: Array) -> Array:
        """P(y = +1): the minimiser of the expected loss is z = 2 P - 1."""
        return np.clip((1 + z) / 2, 0, 1)


class DoubleHinge:
    """``max(-t z, max(0, (1 - t z) / 2))``."""

    flat = 1.0

    def value(self, z: Array, t: float) -> Array:
        """``loss(z, t)``."""
        return np.maximum(-t * z, np.maximum(0, (1 - t * z) / 2))

    def even(self, z: Array) -> Array:
        """Even part."""
        return np.maximum(1, np.abs(z)) / 2

    def even_grad(self, z: Array) -> Array:
        """A subderivative of the even part."""
        return np.where(np.abs(z) > 1, np.sign(z) / 2, 0.0)

    def even_conjugate(self, s: Array) -> Array:
        """``sup_z (s z - even(z))``, finite for ``|s| <= 1/2``: the certificate of a kinked loss."""
        return np.where(np.abs(s) <= 0.5, np.abs(s) - 0.5, np.inf)


class Logistic:
    """``log(1 + exp(-t z))``."""

    def value(self, z: Array, t: float) -> Array:
        """``loss(z, t)``."""
        return np.logaddexp(0, -t * z)

    def even(self, z: Array) -> Array:
        """Even part: ``log(2 cosh(z / 2))``."""
        return np.abs(z) / 2 + np.log1p(np.exp(-np.abs(z)))

    def even_grad(self, z: Array) -> Array:
        """First derivative of the even part."""
        return np.tanh(z / 2) / 2

    def even_hess(self, z: Array) -> Array:
        """Second derivative of the even part."""
        s = expit(-np.abs(z))
        return s * (1 - s)

    def probability(self, z: Array) -> Array:
        """P(y = +1)."""
        return expit(z)


class ZeroOne:
    """``(1 - sign(t z)) / 2``: for validation only."""

    def value(self, z: Array, t: float) -> Array:
        """``loss(z, t)``."""
        return (1 - np.sign(t * z)) / 2


TRAINING_LOSSES: dict[str, Any] = {
    "squared": Squared(),
    "double_hinge": DoubleHinge(),
    "logistic": Logistic(),
}
ALL_LOSSES: dict[str, Any] = {**TRAINING_LOSSES, "zero_one": ZeroOne()}


def get_loss(loss: str | Loss) -> Any:
    """Any loss by name or as an object with ``value(z, t)``."""
    if isinstance(loss, str):
        if loss not in ALL_LOSSES:
            raise InputError(f"Unknown loss {loss!r}; choose one of {sorted(ALL_LOSSES)} or pass a loss object.")
        return ALL_LOSSES[loss]
    if not callable(getattr(loss, "value", None)):
        raise InputError(f"The loss {loss!r} needs a method value(z, t); see sdulearn.losses.")
    return loss


def get_training_loss(loss: str | LinearOddLoss) -> Any:
    """A loss that can be trained with, by name or as an object; refused with the reason otherwise."""
    found = get_loss(loss)
    if isinstance(loss, str) and loss in TRAINING_LOSSES:
        return found
    name = loss if isinstance(loss, str) else type(loss).__name__
    z = np.linspace(-3, 3, 61)
    odd = found.value(z, 1) - found.value(z, -1)
    if not np.allclose(odd, -z, rtol=0, atol=1e-9):
        raise InputError(
            f"The loss {name} is not linear-odd: value(z, +1) - value(z, -1) must be -z for every z. With any "
            "other loss the negative row weights of the risk make the objective non-convex. Train with "
            f"{', '.join(sorted(TRAINING_LOSSES))}, or use this one for validation with pair_risk."
        )
    for method in ("even", "even_grad"):
        if not callable(getattr(found, method, None)):
            raise InputError(f"The loss {name} needs a method {method}(z) to be trained with; see sdulearn.losses.")
    even = (found.value(z, 1) + found.value(z, -1)) / 2
    if not np.allclose(found.even(z), even, rtol=0, atol=1e-9):
        raise InputError(f"The loss {name} contradicts itself: even(z) is not (value(z, +1) + value(z, -1)) / 2.")
    if (np.diff(even, 2) < -1e-9).any():
        raise InputError(f"The loss {name} is not convex in z, so the objective would not be convex.")
    return found
