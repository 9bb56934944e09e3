"""Models, priors and accuracies in words."""

from __future__ import annotations

from typing import Any

from sdulearn.prior import PriorEstimate


def describe_method(model: Any) -> str:
    """Name and chosen settings, in one line."""
    chosen = {
        name: getattr(model, f"{name}_", getattr(model, name, None)) for name in ("alpha", "covariance_power", "gamma")
    }
    settings = ", ".join(f"{name} {value:.3g}" for name, value in chosen.items() if value is not None)
    kind = f"risk {model.risk}, loss {model.loss}" if hasattr(model, "risk") else "joint likelihood of pairs"
    return f"{kind} ({type(model).__name__}): {settings}"


def describe_prior(prior: PriorEstimate) -> str:
    """The share of class +1, with its interval where it was estimated."""
    if prior.confidence is None:
        return f"{prior.value:.3g} of the rows are of class +1, as given"
    unknown = "" if prior.identified else "; 1/2 is not excluded"
    return (
        f"{prior.value:.3f} of the rows are of class +1 ({prior.confidence:.0%} interval {prior.low:.3f} to "
        f"{prior.high:.3f}, from the pair counts{unknown})"
    )


def describe_accuracy(accuracy: dict[str, Any]) -> str:
    """The accuracy from held-out answers with its interval, and the paper's estimate beside it."""
    text = (
        f"{accuracy['value']:.1%} (95% interval {accuracy['low']:.1%} to {accuracy['high']:.1%}), from "
        f"{accuracy['n_answers']:,} held-out answers, of which the model gives {accuracy['agreement']:.1%}"
    )
    if accuracy["risk_accuracy"] is None:
        return text
    return f"{text}; by the SD risk {accuracy['risk_accuracy']:.1%} ± {accuracy['risk_error']:.1%} given the prior"
