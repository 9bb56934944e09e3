"""PairNetworkClassifier: a network of PyTorch as an estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import islice, pairwise
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sdulearn.answers.answer_model import ErrorRateParameter, answer_model_of, renamed
from sdulearn.answers.graph import AnswerGraph, with_implied_labels
from sdulearn.base import ANSWER_CONSTRAINTS, OrderedClassifier, class_numbers, class_shares_given, in_order
from sdulearn.errors import InputError, require
from sdulearn.io import container
from sdulearn.io.typed import finite
from sdulearn.joint.estimators import MAJORITY, PairLogisticRegressionCV, class_sign, order_by_size
from sdulearn.model_selection import PairKFold, number_of_folds
from sdulearn.prior import resolve_prior
from sdulearn.sklearn_private import Interval, fit_context
from sdulearn.torch.batches import distort_images
from sdulearn.torch.loss import Device, Tensor, log_probabilities, torch
from sdulearn.torch.training import CHOICE, ROWS, Generator, KnownPoints, Module, Starts, Training
from sdulearn.types import Array, Codes, Count, Indices, Mask, MatrixLike, RandomState, Rows

# Share of a column's standard deviation that is the noise of distorted rows.
_NOISE = 0.3


class PairNetworkClassifier(OrderedClassifier):
    """A neural network from same/different answers and unlabeled rows.

    It minimises :func:`~sdulearn.torch.pair_nll` of the answers plus
    :func:`~sdulearn.torch.unlabeled_loss` of all rows, by Adam. Several starts are trained side by
    side, and the one by which all answers, a tenth of them held out, are likeliest continues alone.
    Use it for images and other raw signals. Trees (:class:`~sdulearn.PairBoostingClassifier`) suit
    tables better, and :class:`~sdulearn.PairLogisticRegressionCV` embeddings.

    Needs PyTorch: ``pip install 'sdulearn[torch]'``. Scale the columns to a standard deviation near
    1.

    Parameters
    ----------
    module : torch.nn.Module, callable or None, default=None
        The network: rows to K logits, with two classes one or two. The first start has its weights,
        further ones are initialised again; a function without arguments makes the network of each
        start. None is a multilayer perceptron.
    n_classes : int, default=2
        Number of classes.
    hidden_layer_sizes : sequence of int, default=(512, 512)
        Hidden layers of the perceptron, with ReLU activations.
    image_shape : sequence of int or None, default=None
        Shape of rows that are images: (height, width) or (channels, height, width). The network
        then gets images.
    distortion : callable or None, default=None
        ``distortion(rows, generator)`` changes rows at random but keeps their classes. None is
        :func:`~sdulearn.torch.distort_images` for images and a little noise for other rows.
    agreement, use : float, default=0.5 and 1.0
        Weights of the two terms of unlabeled rows.
    temperature : float, default=0.5
        As in :func:`~sdulearn.torch.unlabeled_loss`.
    prior : float, sequence of K floats or None, default=None
        P(y = +1), or the shares of K classes, for the second of these terms. None takes equal
        shares with K > 2 classes, and with two the prior that the answers imply.
    orientation, error_rate, answer_table
        As in :class:`~sdulearn.PairLogisticRegression`.
    n_starts : int, default=4
        Number of starts.
    linear_start : bool, default=False
        Pull the first start to a fit of :class:`~sdulearn.PairLogisticRegressionCV` in the first
        tenth of the steps. It can find classes that random starts miss, where answers are few and
        single columns are good features.
    max_iter : int, default=8000
        Steps of Adam, whose rate falls to 0 along a cosine. After two fifths of them the best start
        continues alone, with the held-out answers too, unless ``n_iter_no_change`` is given.
    batch_size : int, default=512
        Rows of answers in a step, and as many unlabeled ones. A component with more points is cut
        into its answers.
    learning_rate : float, default=1e-3
        Rate of the first step.
    validation_fraction : float, default=0.1
        Share of the points whose answers are held out until the start is chosen.
    n_iter_no_change : int or None, default=None
        Number of checks, of 20 in ``max_iter`` steps, without improvement of the held-out
        likelihood of any start that ends the training; each start then has the weights of its best
        check. None takes all steps and the last weights.
    device : str, default="auto"
        Where to train; "auto" is "cuda" where there is one, else "cpu".
    progress : callable or None, default=None
        Wraps the range of the steps, as ``tqdm.tqdm`` does.
    random_state : int, RandomState or None, default=0
        Seed of weights, batches and distortions. On the CPU the same seed gives the same network.

    Attributes
    ----------
    module_ : torch.nn.Module
        The network.
    held_out_log_likelihood_ : array of shape (n_checks, n_starts)
        Mean log-likelihood of a held-out answer or label; of all where too few could be held out.
    log_likelihood_ : array of shape (n_starts,)
        Mean log-likelihood of all answers and labels when the start was chosen.
    start_ : int
        The start that was kept: the one with the highest of these.
    n_iter_ : int
        Steps at which the weights are taken.
    class_shares_ : array of shape (n_classes,)
        Mean prediction.
    classes_, n_classes_, prior_, answer_model_, n_features_in_, feature_names_in_
        As in :class:`~sdulearn.PairLogisticRegression`.

    See Also
    --------
    sdulearn.torch.pair_nll : The likelihood for a loop of your own.
    sdulearn.PairModelCV : Chooses between a linear model and trees.

    Examples
    --------
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.torch import PairNetworkClassifier
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes, X_test, y_test = sample_sdu(
    ...     X, y, n_pairs=200, n_unlabeled=500, prior=0.7, n_test=500, random_state=0
    ... )
    >>> model = PairNetworkClassifier(hidden_layer_sizes=(32,), n_starts=2, max_iter=200).fit(rows, codes)
    >>> bool((model.predict(X_test) == y_test).mean() > 0.85)
    True
    """

    FITTED: Mapping[str, Any] = {
        **OrderedClassifier.FITTED,
        "weights_": Any,
        "module_name_": str | None,
        "class_shares_": Any,
        "held_out_log_likelihood_": Any,
        "log_likelihood_": Any,
        "start_": Count,
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ANSWER_CONSTRAINTS,
        "module": [callable, None],
        "n_classes": [Interval(Integral, 2, None, closed="left")],
        "hidden_layer_sizes": ["array-like"],
        "image_shape": ["array-like", None],
        "distortion": [callable, None],
        "agreement": [Interval(Real, 0, None, closed="left")],
        "use": [Interval(Real, 0, None, closed="left")],
        "temperature": [Interval(Real, 0, 1, closed="right")],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "linear_start": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "validation_fraction": [Interval(Real, 0, 0.5, closed="both")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
        "device": [str],
        "progress": [callable, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        module: Module = None,
        n_classes: int = 2,
        *,
        hidden_layer_sizes: Sequence[int] = (512, 512),
        image_shape: Sequence[int] | None = None,
        distortion: Callable[[Tensor, Generator], Tensor] | None = None,
        agreement: float = 0.5,
        use: float = 1.0,
        temperature: float = 0.5,
        prior: float | Sequence[float] | None = None,
        orientation: str = "majority",
        error_rate: ErrorRateParameter = "auto",
        answer_table: str | bool = "auto",
        n_starts: int = 4,
        linear_start: bool = False,
        max_iter: int = 8000,
        batch_size: int = 512,
        learning_rate: float = 1e-3,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        device: str = "auto",
        progress: Callable[[Iterable[int]], Iterable[int]] | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.module = module
        self.n_classes = n_classes
        self.hidden_layer_sizes = hidden_layer_sizes
        self.image_shape = image_shape
        self.distortion = distortion
        self.agreement = agreement
        self.use = use
        self.temperature = temperature
        self.prior = prior  # type: ignore[assignment]
        self.orientation = orientation
        self.error_rate = error_rate
        self.answer_table = answer_table
        self.n_starts = n_starts
        self.linear_start = linear_start
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.device = device
        self.progress = progress
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        X, graph = self._check_rows(X, y, sample_weight)
        if not graph.n_answers and not graph.labels.any():
            raise InputError(
                "PairNetworkClassifier learns from answers and labels, and `y` holds none (or all weigh zero). "
                "sdulearn.stack_pairs makes `y` from a list of pairs and answers."
            )
        self.answer_model_ = answer_model_of(self.error_rate, graph, self.n_classes, self.answer_table)
        shares = self._take_prior(graph)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        points = graph.by_point(X)
        guide = None
        if self.linear_start:
            linear = PairLogisticRegressionCV(n_classes=self.n_classes, prior=self.prior, error_rate=self.answer_model_)
            guide = linear.fit(X, np.asarray(graph), graph.row_weight).predict_proba(points)
        device = torch.device(self.device if self.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
        # Steps on a GPU are recorded, which needs another stream than the default one.
        stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        # Weights and dropout are drawn without changing the global random state.
        with torch.random.fork_rng(), torch.cuda.stream(stream):
            torch.manual_seed(seed)
            rows = self._tensor(points, device)
            self._train(rows, graph, shares, seed, guide)
            return self._name_classes(rows, graph)

    def _train(self, rows: Tensor, graph: AnswerGraph, shares: Array | None, seed: int, guide: Array | None) -> None:
        """Train all starts and keep the one by which all answers are likeliest."""
        generator = torch.Generator(rows.device).manual_seed(seed)
        starts = Starts(self._modules(rows[:2]), rows.device)
        known = graph
        if self.n_classes > 2 and self.answer_model_.certain and self.answer_model_.crowd_of(graph) is None:
            known = with_implied_labels(graph, self.n_classes)
        held = self._held_points(graph, seed)
        touches: Mask = held[known.ends[:, 0]] | held[known.ends[:, 1]]
        seen, left_out, everything = [
            KnownPoints(part, self, rows.device, generator)
            for part in (known.leave_out(held), known.restrict(touches, held), known)
        ]
        distort = self.distortion or self._default_distortion(rows)
        steps = iter((self.progress or iter)(range(self.max_iter)))
        training = Training(self, rows, starts, distort, shares, generator, guide=guide)
        stops = self.n_iter_no_change is not None
        first = self.max_iter if stops else round(CHOICE * self.max_iter)
        self.held_out_log_likelihood_, numbers = training.run(
            seen, islice(steps, first), left_out if left_out.total else everything
        )
        self.log_likelihood_ = everything.values(starts.evaluate(rows, everything.points))
        self.start_ = int(np.argmax(self.log_likelihood_))
        self.module_ = starts.module(self.start_)
        if stops:
            self.n_iter_ = int(numbers[np.argmax(self.held_out_log_likelihood_[:, self.start_])])
        else:
            starts = Starts([self.module_], rows.device)
            Training(self, rows, starts, distort, shares, generator, first).run(everything, steps)
            self.module_ = starts.module(0)
            self.n_iter_ = self.max_iter
        self.module_.eval()

    def decision_function(self, X: MatrixLike) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        device = next(self.module_.parameters()).device
        with torch.no_grad():
            parts = [self.module_(self._tensor(X[k : k + ROWS], device)) for k in range(0, X.shape[0], ROWS)]
            z = torch.cat(parts).double().cpu().numpy()
        if self.n_classes_ == 2:
            z = z[:, 0] if z.shape[1] == 1 else z[:, 1] - z[:, 0]
        return in_order(z, self.order_)

    def _take_prior(self, graph: AnswerGraph) -> Array | None:
        """Set the prior to report; return the class shares that predictions are pulled to, None if equal."""
        if self.n_classes > 2:
            self.prior_ = None
            return None if self.prior is None else class_shares_given(self.prior, self.n_classes)
        prior = self.prior
        if prior is None and not graph.n_answers:
            # Labels alone.
            prior = float(np.mean(graph.labels[graph.labels != 0] > 0).clip(0.01, 0.99))
        majority = MAJORITY[self.orientation]
        self.prior_ = resolve_prior(prior, graph, model=self.answer_model_, majority=majority)
        p = float(np.clip(self.prior_.value, 0.01, 0.99))
        return np.array([1 - p, p]) if self.prior_.has_value else None

    def _tensor(self, rows: Rows, device: Device = None) -> Tensor:
        """Return rows as the network takes them: as images if their shape is given."""
        dense = rows.toarray() if sparse.issparse(rows) else rows
        tensor = torch.as_tensor(dense, dtype=torch.float32, device=device)
        if self.image_shape is None:
            return tensor
        shape = (1, *self.image_shape) if len(self.image_shape) == 2 else tuple(self.image_shape)
        if int(np.prod(shape)) != tensor.shape[1]:
            raise InputError(f"`image_shape` has {np.prod(shape)} pixels, but `X` has {tensor.shape[1]} columns.")
        return tensor.reshape(-1, *shape)

    def _default_distortion(self, rows: Tensor) -> Callable[[Tensor, Generator], Tensor]:
        if self.image_shape is not None:
            return distort_images
        scale = _NOISE * rows.std(0)
        return lambda some, generator: some + scale * torch.randn(some.shape, generator=generator, device=some.device)

    def _modules(self, rows: Tensor) -> list[Module]:
        """Make one network for each start, and check the shape of its logits."""
        if isinstance(self.module, torch.nn.Module):
            modules = [deepcopy(self.module) for _ in range(self.n_starts)]
            for other in modules[1:]:
                other.apply(lambda layer: layer.reset_parameters() if hasattr(layer, "reset_parameters") else None)
        else:
            make = self.module or partial(self._perceptron, int(rows[0].numel()))
            modules = [make() for _ in range(self.n_starts)]
        with torch.no_grad():
            shape = tuple(deepcopy(modules[0]).to(rows.device).eval()(rows).shape)
        allowed = [(2, self.n_classes), *([(2, 1)] if self.n_classes == 2 else [])]
        if shape not in allowed:
            raise InputError(
                f"`module` gives an array of shape {shape} for 2 rows, but {self.n_classes} classes need "
                f"{' or '.join(map(str, allowed))}. Change its last layer, or `n_classes`."
            )
        return modules

    def _perceptron(self, n_inputs: int) -> Module:
        nn = torch.nn
        sizes = [n_inputs, *self.hidden_layer_sizes]
        hidden = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
        n_logits = 1 if self.n_classes == 2 else self.n_classes
        return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(sizes[-1], n_logits))

    def _held_points(self, graph: AnswerGraph, seed: int) -> Mask:
        """Points of one fold, if there are enough answers and labels for folds."""
        held = np.zeros(graph.n_points, dtype=bool)
        if not self.validation_fraction:
            return held
        n_folds = round(1 / self.validation_fraction)
        if graph.n_answers:
            n_folds = number_of_folds(n_folds, graph.same > 0)
        if n_folds >= 2:
            held = PairKFold(n_folds, random_state=seed).fold_of_points(graph) == 0
        return held

    def _name_classes(self, rows: Tensor, graph: AnswerGraph) -> Self:
        """Name the classes: +1 by ``prior`` or ``orientation``; the largest of K classes without labels is 1."""
        with torch.no_grad():
            parts = [log_probabilities(self.module_(part)).exp().sum(0) for part in rows.split(ROWS)]
        self.class_shares_ = (sum(parts) / len(rows)).double().cpu().numpy()
        self.n_classes_ = self.n_classes
        self.classes_ = class_numbers(self.n_classes)
        order = np.arange(self.n_classes)
        if self.prior_ is not None and not graph.labels.any():
            sign = class_sign(self.prior, self.orientation, self.prior_, float(self.class_shares_[1]), 1 / len(rows))
            order = order if sign > 0 else order[::-1].copy()
        if self.n_classes > 2:
            if self.prior is None and self.answer_model_.crowd_of(graph) is None:
                order = order_by_size(self.class_shares_, graph.labels)
            self.answer_model_ = renamed(self.answer_model_, order)
        self.order_ = order
        self.class_shares_ = self.class_shares_[order]
        return self

    def _rename(self, order: Indices) -> None:
        super()._rename(order)
        self.class_shares_ = self.class_shares_[order]

    @property
    def weights_(self) -> Codes:
        """All weights for the model file: safetensors, padded to integers of 8 bytes."""
        data = require("safetensors.torch", "torch").save(
            {name: value.detach().cpu().contiguous() for name, value in self.module_.state_dict().items()}
        )
        # The number of bytes comes first, for the padding at the end.
        return np.frombuffer(len(data).to_bytes(8, "little") + data + b" " * (-len(data) % 8), dtype="<i8").copy()

    @property
    def module_name_(self) -> str | None:
        """Class name of the user's network; None for the default perceptron."""
        return None if self.module is None else type(self.module_).__name__

    @classmethod
    def load(cls, path: str | PathLike[str], module: Module = None) -> Self:
        """Read a model with a network of your own from a file that ``save`` wrote.

        Parameters
        ----------
        path : str or path-like
            The file. It holds the weights, and no code.
        module : torch.nn.Module or None, default=None
            A network of the same form.

        Returns
        -------
        PairNetworkClassifier
            Fitted.
        """
        header, arrays = container.read(path)
        if header.get("model") != cls.__name__:
            raise InputError(f"{path} holds a {header.get('model')}. Read it with sdulearn.load_model.")
        return container.restored(cls, header, arrays, module=module)

    def _restore(self, fitted: container.Header) -> None:
        """Take over the contents of a model file after checking every part."""
        data = fitted.pop("weights_")
        name = fitted.pop("module_name_")
        super()._restore(fitted)
        if name is not None and self.module is None:
            raise InputError(
                f"it holds the weights of a network of your own, {name}: PairNetworkClassifier.load(path, {name}())"
            )
        if self.n_classes_ != self.n_classes or finite(self.class_shares_).shape != (self.n_classes,):
            raise InputError("class shares and classes do not fit together")
        with torch.random.fork_rng():
            self.module_ = self._modules(self._tensor(np.zeros((2, self.n_features_in_))))[0]
        try:
            weights = require("safetensors.torch", "torch").load(data[1:].astype("<i8").tobytes()[: int(data[0])])
            self.module_.load_state_dict(weights)
        except (RuntimeError, require("safetensors", "torch").SafetensorError) as error:
            raise InputError(f"the weights are not those of this network: {error}") from None
        if not all(bool(value.isfinite().all()) for value in weights.values()):
            raise InputError("weights are missing or infinite")
        self.module_.eval()
