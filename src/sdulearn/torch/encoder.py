"""ContrastiveEncoder: features of images and signals, learned from rows without answers.

Two augmented views u, v of a row, projected to unit vectors, should be alike, and different from those of other rows:

    minimise the mean of -log(exp(u.v / t) / sum_w exp(u.w / t)),   w all other views of the batch      (1)

(Chen et al., "A simple framework for contrastive learning of visual representations", ICML 2020.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from math import prod
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sdulearn.errors import InputError
from sdulearn.io import container, weights
from sdulearn.io.typed import finite, read
from sdulearn.progress import long_work, steps
from sdulearn.sklearn_private import Interval, StrOptions, fit_context
from sdulearn.torch.augment import Generator, augment_columns, augment_images
from sdulearn.torch.loss import Tensor, torch
from sdulearn.types import Array, Codes, Count, MatrixLike, RandomState

Module: TypeAlias = Any
# Steps of max_iter="auto": passes over the rows, within bounds.
_PASSES, _MIN_STEPS, _MAX_STEPS = 150, 1000, 6000
# The loss is flat if its mean over a twentieth of all steps, or more, is not lower than before by this share.
_N_CHECKS, _MIN_WINDOW, _FLAT = 20, 10, 1e-3
# Outputs of the default networks, and of the projection.
_WIDTH, _PROJECTED = 256, 64
# Components whose variance is a smaller share of the largest are rounding errors.
_MIN_VARIANCE = 1e-7
# Power of its variance that a component keeps, so that the penalty, chosen by held-out answers, prefers large ones.
# With 0 (whitened) 300 pairs of digits gave 83% instead of 94; with 1 (not whitened) 1,000 pairs 97 instead of 99.
_KEPT_POWER = 0.5
# Rows of one forward pass without a gradient.
_ROWS = 2048


@dataclass(eq=False, repr=False)
class ContrastiveEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn features of images or signals from unlabeled rows, before a linear model learns the classes from answers.

    A network learns to recognise each row among others after random changes that keep its class. The features are
    principal components of its outputs, largest first, nearly whitened. Repeated rows count once. If there is a
    pretrained model for your kind of data, use its embeddings instead. Needs ``pip install 'sdulearn[torch]'``.

    Parameters
    ----------
    module : torch.nn.Module or None, default=None
        Network from rows to vectors, of which a copy is trained. None is a small convolutional network for images, a
        perceptron for other rows.
    n_components : int, default=64
        Maximum number of features.
    image_shape : sequence of int or None, default=None
        Shape of rows that are images: (height, width) or (channels, height, width).
    augment : callable or None, default=None
        ``augment(rows, generator)`` changes standardised rows at random but keeps their classes. None moves images and
        changes their contrast; other rows get noise and, in some cells, the values of other rows.
    max_iter : int or "auto", default="auto"
        Maximum number of steps; training ends earlier if the loss is flat. "auto" is 150 passes, 1,000 to 6,000 steps.
    batch_size : int, default=512
        Rows in a step.
    temperature : float, default=0.2
        Lower values push the most similar rows apart.
    learning_rate : float, default=1e-3
        Learning rate of the first step, which falls to 0 along a cosine.
    device : str, default="auto"
        Where to train; "auto" is "cuda" if there is one, else "cpu".
    random_state : int, RandomState or None, default=0
        Seed. On the CPU the same seed gives the same features.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network.
    mean_, scale_ : array of shape (n_features,)
        Means and standard deviations that rows are standardised by; for images, of all pixels.
    components_, output_mean_ : array of shape (n_components, n_outputs), (n_outputs,)
        Features are ``components_ @ (output - output_mean_)``. The first has variance 1.
    loss_, n_iter_ : array of shape (n_steps,), int
        Loss of each step, and their number.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sdulearn.torch import ContrastiveEncoder
    >>> X, _ = load_digits(return_X_y=True)
    >>> ContrastiveEncoder(image_shape=(8, 8), n_components=16, max_iter=5, batch_size=64).fit_transform(X[:200]).shape
    (200, 16)
    """

    module: Module = None
    _: KW_ONLY
    n_components: int = 64
    image_shape: Sequence[int] | None = None
    augment: Callable[[Tensor, Generator], Tensor] | None = None
    max_iter: int | str = "auto"
    batch_size: int = 512
    temperature: float = 0.2
    learning_rate: float = 1e-3
    device: str = "auto"
    random_state: RandomState = 0

    FITTED: ClassVar[Mapping[str, Any]] = {
        **{"n_features_in_": Count, "feature_names_in_": list[str], "n_iter_": Count},
        **dict.fromkeys(("mean_", "scale_", "output_mean_", "components_", "loss_", "weights_"), Any),
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "module": [callable, None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "image_shape": ["array-like", None],
        "augment": [callable, None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "device": [str],
        "random_state": ["random_state"],
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    @long_work
    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> Self:
        """Learn from all rows, those in answers too.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        y : object
            Ignored.

        Returns
        -------
        ContrastiveEncoder
            The fitted encoder.
        """
        X = np.unique(validate_data(self, X, dtype=np.float64, ensure_min_samples=2), axis=0)
        if len(X) < 2:
            raise InputError("`X` has only one distinct row. An encoder learns how rows differ: give more.")
        axis = 0 if self.image_shape is None else None
        self.mean_, deviation = np.zeros(X.shape[1]) + X.mean(axis=axis), np.zeros(X.shape[1]) + X.std(axis=axis)
        self.scale_ = np.where(deviation > 0, deviation, 1.0)
        device = torch.device(self.device if self.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        # Weights are drawn without changing the global random state.
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.module_ = self._network().to(device)
            self._train(self._tensor(X).to(device), torch.Generator(device).manual_seed(seed))
        outputs = self._outputs(X)
        self.output_mean_ = outputs.mean(axis=0)
        variance, axes = np.linalg.eigh(np.cov(outputs, rowvar=False, bias=True))
        kept = np.flatnonzero(variance > _MIN_VARIANCE * variance[-1])[::-1][: self.n_components]
        # The sign of an axis is free: its largest entry is positive.
        axes = axes[:, kept] * np.sign(axes[np.abs(axes[:, kept]).argmax(axis=0), kept])
        self.components_ = (axes * np.sqrt((variance[kept] / variance[-1]) ** _KEPT_POWER / variance[kept])).T
        return self

    def transform(self, X: MatrixLike) -> Array:
        """Return the features of rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        float32 array of shape (n_rows, n_components)
            The features, that with the largest variance first.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        # The network computes in float32: further digits would depend on which rows are in a batch.
        return np.asarray((self._outputs(X) - self.output_mean_) @ self.components_.T, dtype=np.float32)

    def save(self, path: str | PathLike[str]) -> None:
        """Write an encoder with a default network to a file of numbers and JSON, for :func:`sdulearn.load_model`.

        Parameters
        ----------
        path : str or path-like
            The file.
        """
        check_is_fitted(self)
        if self.module is not None:
            raise InputError("A network of your own is code, which no file contains: save `module_` with PyTorch.")
        container.write(path, *container.describe_estimator(self))

    def _tensor(self, X: Array) -> Tensor:
        """Return standardised rows, as images if their shape is given."""
        rows = torch.as_tensor((X - self.mean_) / self.scale_, dtype=torch.float32)
        return rows if self.image_shape is None else rows.reshape(-1, *self._image_shape())

    def _image_shape(self) -> tuple[int, ...]:
        shape = tuple(self.image_shape or ())
        shape = (1, *shape) if len(shape) == 2 else shape
        if len(shape) != 3 or prod(shape) != self.n_features_in_ or min(shape[1:]) < 4:
            what = f"(height, width) or (channels, height, width) of {self.n_features_in_} columns, 4 x 4 or larger"
            raise InputError(f"`image_shape` must be {what}; got {self.image_shape!r}.")
        return shape

    def _network(self) -> Module:
        """Return a copy of the user's network, or the default one."""
        if self.module is not None:
            return deepcopy(self.module)
        return perceptron(self.n_features_in_) if self.image_shape is None else convolutional(self._image_shape())

    def _train(self, rows: Tensor, generator: Generator) -> None:
        """Minimise equation (1) by AdamW until the loss is flat."""
        n_steps = int(np.clip(_PASSES * len(rows) / self.batch_size, _MIN_STEPS, _MAX_STEPS))
        n_steps = n_steps if self.max_iter == "auto" else int(self.max_iter)
        augment = self.augment or (augment_columns if self.image_shape is None else augment_images)
        shape = self._outputs(self.mean_[None].repeat(2, axis=0)).shape
        if len(shape) != 2 or shape[0] != 2:
            raise InputError(f"`module` must return a vector for each row, but returns {shape} for 2 rows.")
        module, nn, kind = self.module_.train(), torch.nn, rows.device.type
        head = nn.Sequential(nn.ReLU(), nn.Linear(shape[1], _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _PROJECTED)).to(kind)
        optimiser = torch.optim.AdamW([*module.parameters(), *head.parameters()], self.learning_rate, weight_decay=1e-4)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, n_steps)
        window = max(n_steps // _N_CHECKS, _MIN_WINDOW)
        # Kept in one place: small tensors between large ones would keep freed memory from being used again.
        losses = rows.new_empty(n_steps)
        for done in steps(range(1, n_steps + 1), "encoder"):
            chosen = rows[torch.randperm(len(rows), generator=generator, device=rows.device)[: self.batch_size]]
            views = torch.cat([augment(chosen, generator), augment(chosen, generator)])
            with torch.autocast(kind, dtype=torch.bfloat16, enabled=kind == "cuda"):
                projected = head(module(views))
            loss = contrast(projected.float(), self.temperature)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
            losses[done - 1] = loss.detach()
            if done % window == 0 and done > window:
                before, now = losses[done - 2 * window : done].reshape(2, window).mean(1)
                if now > (1 - _FLAT) * before:
                    break
        self.loss_, self.n_iter_ = losses[:done].double().cpu().numpy(), done

    def _outputs(self, X: Array) -> Array:
        """Return the outputs of the network, batch by batch."""
        device = next(self.module_.parameters()).device
        module = self.module_.eval()
        with torch.no_grad():
            parts = [module(self._tensor(X[k : k + _ROWS]).to(device)) for k in range(0, len(X), _ROWS)]
            return np.asarray(torch.cat(parts).double().cpu())

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def weights_(self) -> Codes:
        """The weights of the network, for the file."""
        return weights.packed({name: value.detach().cpu().numpy() for name, value in self.module_.state_dict().items()})

    def _restore(self, fitted: container.Header) -> None:
        """Set the attributes of a model file; shapes are compared before the network takes memory."""
        integers = fitted.pop("weights_")
        for name, value in fitted.items():
            setattr(self, name, read(self.FITTED[name], value))
        n, n_outputs = self.n_features_in_, len(self.output_mean_)
        shapes = [finite(value).shape for value in (self.mean_, self.scale_, self.components_, self.output_mean_)]
        if shapes != [(n,), (n,), (len(self.components_), n_outputs), (n_outputs,)] or (self.scale_ <= 0).any():
            raise InputError("the arrays of the encoder do not fit together")
        with torch.device("meta"):
            self.module_ = self._network()
        state = weights.unpacked(integers, {k: tuple(v.shape) for k, v in self.module_.state_dict().items()})
        self.module_.load_state_dict({name: torch.as_tensor(array) for name, array in state.items()}, assign=True)
        if self._outputs(self.mean_[None]).shape[1:] != (n_outputs,):
            raise InputError("the network and its components do not fit together")


def contrast(projected: Tensor, temperature: float) -> Tensor:
    """Equation (1), from projections of the first views of all rows, then of the second."""
    unit = torch.nn.functional.normalize(projected, dim=1)
    similarity = (unit @ unit.T / temperature).fill_diagonal_(-torch.inf)
    place = torch.arange(len(unit), device=unit.device)
    return torch.nn.functional.cross_entropy(similarity, place.roll(len(unit) // 2))


def convolutional(shape: tuple[int, ...]) -> Module:
    """Three convolutions; small images need fewer channels."""
    nn = torch.nn
    width = 32 if min(shape[1:]) < 16 else 64
    layers: list[Module] = []
    for before, after in ((shape[0], width), (width, 2 * width), (2 * width, 4 * width)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers[:-1], nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16 * width, _WIDTH))


def perceptron(n_columns: int) -> Module:
    """Two hidden layers."""
    nn = torch.nn
    hidden = [(nn.Linear(n, _WIDTH), nn.BatchNorm1d(_WIDTH), nn.ReLU()) for n in (n_columns, _WIDTH)]
    return nn.Sequential(*hidden[0], *hidden[1], nn.Linear(_WIDTH, _WIDTH))
