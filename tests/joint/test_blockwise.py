import pickle
import warnings
from dataclasses import astuple
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from sdulearn import PairLogisticRegression
from sdulearn.blocks import LocalBlocks
from sdulearn.errors import InputError
from sdulearn.joint import blockwise
from sdulearn.joint.blockwise import fit_pair_logistic


class Counted(LocalBlocks):
    """Blocks in this process that count the passes and send everything, as a cluster would."""

    n_passes = 0

    def sum(self, task, *arguments):
        self.n_passes += 1
        task, arguments = pickle.loads(pickle.dumps((task, arguments)))
        return super().sum(task, *arguments)


def as_blocks(parts):
    return Counted([partial(list, [part]) for part in parts])


def fit_blocks(model, blocks):
    """As an estimator over blocks does."""
    return model._accept(fit_pair_logistic(model, blocks))


def split(X, codes, weight=None, n_blocks=3, seed=0):
    """Rows dealt to blocks and shuffled there, both ends of a pair to one."""
    rng = np.random.default_rng(seed)
    home = rng.integers(n_blocks, size=np.abs(codes).max() + 1)[np.abs(codes)]
    home = np.where(codes == 0, rng.integers(n_blocks, size=len(codes)), home)
    blocks = [rng.permutation(np.flatnonzero(home == k)) for k in range(n_blocks)]
    return [(X[rows], codes[rows], None if weight is None else weight[rows]) for rows in blocks]


def fit_both(X, codes, parts, weight=None, **parameters):
    """The model fitted in memory and the one fitted over blocks, with the texts of their warnings."""
    models, texts = [], []
    for fit in (lambda m: m.fit(X, codes, weight), lambda m: fit_blocks(m, as_blocks(parts))):
        models.append(PairLogisticRegression(**{"alpha": 0.01, "tol": 1e-10, **parameters}))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(models[-1])
        texts.append([str(one.message) for one in caught])
    return models, texts


def assert_same(models, texts, rtol=1e-8):
    memory, blocks = models
    size = np.abs(memory.coef_).max()
    np.testing.assert_allclose(blocks.coef_, memory.coef_, rtol=rtol, atol=rtol * size)
    np.testing.assert_allclose(blocks.intercept_, memory.intercept_, rtol=rtol, atol=rtol * size)
    assert blocks.objective_ == pytest.approx(memory.objective_, rel=rtol)
    assert blocks.optimality_ <= memory.tol
    numbers = [[value for value in astuple(model.prior_) if value is not None] for model in models]
    assert numbers[1] == pytest.approx(numbers[0], rel=1e-12)
    assert blocks.classes_.tolist() == [-1, 1]
    assert blocks.n_features_in_ == memory.n_features_in_
    assert texts[0] == texts[1]


def thinned(rows):
    return sparse.csr_matrix(np.where(np.abs(rows) > 0.5, rows + 0.3, 0))


def widened(rows):
    return np.hstack([rows, np.random.default_rng(0).normal(size=(len(rows), 250))])


FORMS = {
    "dense": np.asarray,
    "csr": thinned,
    "csr with a large mean": lambda rows: sparse.csr_matrix(rows + 20),
    "float32": np.float32,
    "a large mean and units of all sizes": lambda rows: rows * 10.0 ** np.linspace(-2, 2, 21) + 1e4,
    "more columns than rows": widened,
    "columns that say nothing": lambda rows: np.hstack([rows, rows[:, :2], np.ones((len(rows), 1))]),
}


@pytest.mark.parametrize("form", FORMS)
def test_blocks_are_memory(waveform, form):
    rows = FORMS[form](waveform[0])
    parts = split(rows, waveform[1], n_blocks=4, seed=5)
    assert_same(*fit_both(rows, waveform[1], parts), rtol=1e-7 if "units" in form else 1e-8)


@pytest.mark.parametrize(
    "parameters",
    [
        {"prior": 0.5, "covariance_power": 0},
        {"prior": 0.3, "init": "moment"},
        {"orientation": "minority", "covariance_power": 2},
        {"prior_strength": 0.0, "alpha": 1e-3},
        {"alpha": 10.0, "prior": 0.7},
        {"error_rate": 0.1, "prior": 0.7},
        {"init": "zero", "prior": 0.7},
    ],
    ids=str,
)
def test_every_parameter(waveform, parameters):
    assert_same(*fit_both(*waveform, split(*waveform), **parameters))


@pytest.mark.parametrize(("power", "prior", "make"), [(0, None, np.asarray), (1, 0.7, thinned), (2, None, thinned)])
def test_weights(waveform, power, prior, make):
    rows, codes = make(waveform[0]), waveform[1]
    weight = np.random.default_rng(0).integers(0, 4, size=1000).astype(float)[np.abs(codes)]
    weight[codes == 0] = np.random.default_rng(1).random(np.count_nonzero(codes == 0))
    # Over blocks in another unit.
    parts = split(rows, codes, 7.3 * weight)
    assert_same(*fit_both(rows, codes, parts, weight, covariance_power=power, prior=prior))


@pytest.mark.parametrize("keep", ["pairs", "no free weight", "similar", "dissimilar", "a few similar"])
def test_sources_that_are_not_there(waveform, keep):
    rows, codes = waveform
    weight = np.where(codes == 0, 0.0, 1.0) if keep == "no free weight" else np.ones(len(codes))
    kept = {"pairs": codes != 0, "similar": codes >= 0, "dissimilar": codes <= 0, "a few similar": codes < 10}
    rows, codes, weight = (one[kept.get(keep, slice(None))] for one in (rows, codes, weight))
    prior = None if keep == "pairs" else 0.7
    assert_same(*fit_both(rows, codes, split(rows, codes, weight), weight, prior=prior))


def test_more_rows_than_a_piece_holds(waveform, monkeypatch):
    monkeypatch.setattr(blockwise, "PIECE_SIZE", 21 * 10)
    assert blockwise._n_pieces(waveform[0]) == 10
    assert_same(*fit_both(*waveform, split(*waveform, n_blocks=1)))


def test_blocks_may_be_empty_or_sparse_and_a_code_names_another_pair_in_another_block(waveform):
    rows, codes = waveform
    empty = [(X[:0], codes[:0], None) for X in (rows, thinned(rows))]
    parts = []
    for X, y, weight in split(rows, codes):
        names = np.unique(np.abs(y[y != 0]))
        parts.append((X, np.sign(y) * (np.searchsorted(names, np.abs(y)) + 1), weight))
    parts[1] = (sparse.csr_array(parts[1][0]), *parts[1][1:])
    assert_same(*fit_both(rows, codes, [*empty, *parts[::-1], *empty]))


def test_parameters_stay_and_passes_are_few(waveform):
    model = PairLogisticRegression(0.05, prior=0.7)
    before = dict(vars(model))
    blocks = as_blocks(split(*waveform))
    fit_pair_logistic(model, blocks)
    assert 10 < blocks.n_passes < 60
    assert vars(model) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, w: (np.where(X.max() == X, np.nan, X), y, w), "Input X contains NaN"),
        (lambda X, y, w: (sparse.csr_matrix(np.where(X.max() == X, np.inf, X)), y, w), "Input X contains infinity"),
        (lambda X, y, w: (X[:, 1:], y, w), r"has 2\d features, but .* had 2\d.*same columns"),
        (lambda X, y, w: (X[y != y.max()], y[y != y.max()], np.ones(3)), "inconsistent numbers of samples"),
        (lambda X, y, w: (X[1:], y[1:], w), r"one row only of its block.*in one block.*distributed\.gather_pairs\(X"),
        (lambda X, y, w: (np.vstack([X, X[:1]]), np.r_[y, y[:1]], w), "stands on 3 rows, but a pair has two ends"),
        (lambda X, y, w: (X, np.r_[-y[0], y[1:]], w), "Give both ends of a pair the same sign"),
        (lambda X, y, w: (X, y, np.arange(len(y)) + 1.0), "two ends of a pair must carry one weight"),
        (lambda X, y, w: (X, y, -np.ones(len(y))), "`sample_weight` must be finite and not negative"),
        (lambda X, y, w: (X, y, np.full(len(y), np.inf)), "`sample_weight` must be finite and not negative"),
    ],
)  # fmt: skip
def test_bad_blocks(waveform, change, message):
    rows, codes = waveform
    parts = split(rows[codes != 0], codes[codes != 0])
    parts[1] = change(*parts[1])
    with pytest.raises(ValueError, match=message):
        fit_blocks(PairLogisticRegression(), as_blocks(parts))


def test_no_pairs_no_rows_no_blocks_no_variance(waveform):
    rows, codes = waveform
    for parts in ([(rows, 0 * codes, None)], [(rows[:0], codes[:0], None)], [], [(rows, codes, np.zeros(len(codes)))]):
        with pytest.raises(ValueError, match=r"learns from pairs, and `y` marks none.*stack_pairs"):
            fit_blocks(PairLogisticRegression(), as_blocks(parts))
    with pytest.raises(ValueError, match="No column of `X` varies"):
        fit_blocks(PairLogisticRegression(), as_blocks([(np.ones((len(codes), 2)), codes, None)]))
    with pytest.raises(ValueError, match="No column of `X` varies"):
        PairLogisticRegression().fit(np.ones((len(codes), 2)), codes)


def test_blocks_refuse_what_they_cannot_join(waveform):
    wide = sparse.csr_matrix((len(waveform[1]), 4001))
    with pytest.raises(ValueError, match=r"has 4,001 features.*Fit in memory, or reduce the features"):
        fit_blocks(PairLogisticRegression(), as_blocks([(wide, waveform[1], None)]))
    for rate in (0.1, {1: 0.1}):
        with pytest.raises(InputError, match=r"one rate for all answers; with a rate above 0 give `prior` too"):
            fit_pair_logistic(PairLogisticRegression(error_rate=rate), None)
    with pytest.raises(InputError, match="Over blocks there are two classes; got `n_classes=3`"):
        fit_pair_logistic(PairLogisticRegression(n_classes=3), None)
