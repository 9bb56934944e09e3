"""The likelihood of answers for torch: its value, its slopes, its batches, and the estimator."""

import os
import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from sdulearn import load_model, stack_pairs
from sdulearn.answers import AnswerGraph
from sdulearn.errors import CutComponentWarning, InputError, MissingExtraError, ModelFileError
from sdulearn.metrics import pair_log_likelihood
from sdulearn.torch import PairBatchSampler, PairNetworkClassifier, distort_images, pair_nll, unlabeled_loss
from sdulearn.torch.loss import log_probabilities
from tests.reference import enumerated

# Where CI has installed it, it must be there.
torch = (
    __import__("torch")
    if os.environ.get("SDULEARN_TORCH")
    else pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sdulearn[torch]'")
)

PAGE = Path(__file__).parents[1] / "docs" / "networks.md"


def logits_of(n_rows, n_classes, seed=0, scale=3.0):
    values = scale * np.random.default_rng(seed).normal(size=(n_rows, n_classes))
    return torch.tensor(values, requires_grad=True)


def probabilities(logits):
    return log_probabilities(logits).exp().detach().numpy()


def enumerated_nll(y, logits, error):
    """Minus the log-likelihood of all answers and labels, by all ways to give the points classes."""
    graph = AnswerGraph.from_y(y)
    return -enumerated(graph, log_probabilities(logits).detach().numpy(), np.full(graph.n_answers, error))[0]


LOOSE = np.repeat([1, -2, 3, -4, 5, -6], 2)
# A tree of four points, a triangle, and a point with a label that is in an answer.
ENDS = [(0, 1), (1, 2), (3, 4), (4, 5), (3, 5), (6, 7), (2, 8)]
SAME = [True, False, False, True, False, True, False]


def shared_y(labels=None):
    codes = np.repeat(np.where(SAME, 1, -1) * np.arange(1, len(ENDS) + 1), 2)
    points = np.ravel(ENDS)
    columns = [codes, points]
    return np.column_stack(columns if labels is None else [*columns, 0 * codes, np.asarray(labels)[points]])


@pytest.mark.parametrize("n_logits", [1, 2, 5])
def test_loose_pairs_are_pair_log_likelihood(n_logits):
    logits = logits_of(len(LOOSE), n_logits)
    model = SimpleNamespace(predict_proba=lambda X: probabilities(logits))
    expected = -pair_log_likelihood(model, None, LOOSE)
    assert pair_nll(logits, LOOSE).item() == pytest.approx(expected, abs=1e-10)
    assert torch.autograd.gradcheck(lambda z: pair_nll(z, LOOSE, error_rate=0.2), (logits,))
    if n_logits == 1:
        # One logit is two.
        two = torch.cat([-logits / 2, logits / 2], 1)
        assert pair_nll(two, torch.tensor(LOOSE)).item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("n_logits", "error"), [(3, 0.0), (3, 0.1), (4, 0.1), (1, 0.1)])
def test_components_are_enumeration(n_logits, error):
    by_point = logits_of(9, n_logits, scale=1.0)
    rows = by_point[np.ravel(ENDS)]
    same = [True] * len(SAME) if n_logits == 1 else SAME
    y = shared_y()
    y[:, 0] = np.where(np.repeat(same, 2), 1, -1) * np.abs(y[:, 0])
    expected = enumerated_nll(y, by_point, error) / len(ENDS)
    # Around the triangle messages are exact only where none is needed: with an answer that contracts, or a pivot.
    assert pair_nll(rows, y, error_rate=error).item() == pytest.approx(expected, abs=1e-6)
    assert torch.autograd.gradcheck(lambda z: pair_nll(z[np.ravel(ENDS)], y, error_rate=error), (by_point,), atol=1e-5)


def test_labels_are_cross_entropy_and_join_components():
    labels = np.array([1, 3, 2, 0])
    logits = logits_of(4, 3)
    y = np.column_stack([np.zeros(4, int), np.arange(4), np.zeros(4, int), labels])
    expected = torch.nn.functional.cross_entropy(logits[:3], torch.tensor(labels[:3] - 1))
    assert pair_nll(logits, y).item() == pytest.approx(expected.item(), abs=1e-12)
    by_point = logits_of(9, 3, scale=1.0)
    named = shared_y([0, 0, 0, 0, 0, 0, 2, 0, 0])
    value = pair_nll(by_point[np.ravel(ENDS)], named).item() * (len(ENDS) + 1)
    assert value == pytest.approx(enumerated_nll(named, by_point, 0.0), abs=1e-6)
    nothing = pair_nll(logits, np.zeros(4, int))
    nothing.backward()
    assert nothing.item() == 0
    assert not logits.grad.any()


def test_a_table_of_ones_and_zeros_is_no_table():
    logits = logits_of(len(LOOSE), 4)
    plain = pair_nll(logits, LOOSE, error_rate=0.2).item()
    assert pair_nll(logits, LOOSE, error_rate=0.2, answer_table=np.eye(4)).item() == pytest.approx(plain)
    table = np.full((4, 4), 0.1) + 0.7 * np.eye(4)
    p = probabilities(logits)
    said = np.array([p[2 * k] @ table @ p[2 * k + 1] for k in range(6)])
    expected = -np.mean(np.log(np.where(LOOSE[::2] > 0, said, 1 - said)))
    assert pair_nll(logits, LOOSE, answer_table=table).item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("shape", "y", "options"),
    [
        ((4, 2), [1, 1, 0], {}),
        ((3, 2), [1, 1, -2], {}),
        ((4, 3), [[1, 0], [1, 1], [-2, 0], [-2, 1]], {}),
        ((1, 2), [[0, 0, 0, 2]], {}),
        ((2, 4), [1, 1], {"answer_table": np.eye(3)}),
        ((2 * len(ENDS), 3), shared_y(), {"answer_table": np.eye(3)}),
    ],
    ids=["rows", "half a pair", "contradictions", "labels", "size of the table", "a table and shared points"],
)
def test_what_the_loss_refuses(shape, y, options):
    with pytest.raises(InputError):
        pair_nll(logits_of(*shape), y, **options)


def test_weights_are_repeats_and_annotators_have_rates_of_their_own():
    logits = logits_of(8, 3)
    y = LOOSE[:8]
    weighted = pair_nll(logits, y, sample_weight=[2, 2, 1, 1, 1, 1, 0, 0]).item()
    twice = torch.cat([logits[:2], logits[:6]])
    assert weighted == pytest.approx(pair_nll(twice, [5, 5, *y[:6]]).item(), abs=1e-12)
    people = np.column_stack([[1, 1, 2, 2], [0, 1, 2, 3], [1, 1, 2, 2]])
    parts = [pair_nll(logits[:2], [1, 1]).item(), pair_nll(logits[2:4], [1, 1], error_rate=0.3).item()]
    assert pair_nll(logits[:4], people, error_rate={1: 0.0, 2: 0.3}).item() == pytest.approx(np.mean(parts))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_extreme_logits_have_finite_slopes(dtype):
    logits = torch.tensor([[60.0, 0, 0], [60, 0, 0], [60, 0, 0], [0, 60, 0]], dtype=dtype, requires_grad=True)
    for error in (0.0, 0.1):
        loss = pair_nll(logits, [-1, -1, 2, 2], error_rate=error)
        (slope,) = torch.autograd.grad(loss, logits)
        assert loss.dtype == torch.float32
        assert torch.isfinite(slope).all()
    # With certain answers a confident mistake is pulled back with the full slope of the answer.
    assert pair_nll(logits, [-1, -1, 2, 2]).item() == pytest.approx((60 - np.log(4) + 60 - np.log(2)) / 2, rel=1e-2)


def test_unlabeled_terms():
    z = logits_of(50, 4, scale=1.0)
    p = probabilities(z)
    mean = p.mean(axis=0)
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    use = unlabeled_loss(z, z, agreement=0.0).item()
    assert use == pytest.approx(np.log(4) + mean @ np.log(mean))
    assert unlabeled_loss(z, z, agreement=0.0, shares=shares).item() == pytest.approx(mean @ np.log(mean / shares))
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    other = logits_of(50, 4, seed=1)
    expected = np.mean(np.sum(sharp * np.log(sharp / probabilities(other)), axis=1))
    assert unlabeled_loss(z, other, use=0.0).item() == pytest.approx(expected)
    # The sharpened prediction is a target, not a variable.
    (slope,) = torch.autograd.grad(unlabeled_loss(z, other, use=0.0), z, allow_unused=True)
    assert slope is None or not slope.any()


@given(st.integers(0, 1000), st.integers(2, 40), st.integers(0, 3))
@settings(max_examples=60)
def test_batches_hold_whole_components(seed, batch_size, unlabeled):
    rng = np.random.default_rng(seed)
    n_answers = int(rng.integers(1, 20))
    ends = np.array([rng.choice(30, 2, replace=False) for _ in range(n_answers)])
    _, y = stack_pairs(np.zeros((35, 1)), ends, rng.random(n_answers) < 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutComponentWarning)
        sampler = PairBatchSampler(y, batch_size, unlabeled=unlabeled, random_state=seed)
    n_batches = len(sampler)
    batches = list(sampler)
    assert len(batches) == n_batches
    rows = np.concatenate(batches)
    assert np.array_equal(np.sort(rows[y[rows, 0] != 0]), np.flatnonzero(y[:, 0]))
    for batch in batches:
        known = [row for row in batch if y[row, 0]]
        assert 0 < len(known) <= batch_size
        assert len(batch) == len(known) + unlabeled
        # Each code on two rows.
        assert np.all(np.unique(y[known, 0], return_counts=True)[1] == 2)


def test_batches_are_seeded_and_a_larger_component_is_cut_with_a_warning():
    chain = np.column_stack([np.repeat(np.arange(1, 11), 2), np.arange(22)[1:-1] // 2])
    with pytest.warns(CutComponentWarning, match="1 component"):
        assert sorted(map(len, PairBatchSampler(chain, 6))) == [2, 6, 6, 6]
    y = np.repeat(np.arange(1, 31), 2)
    first = list(PairBatchSampler(y, 10, random_state=3))
    assert list(PairBatchSampler(y, 10, random_state=3)) == first != list(PairBatchSampler(y, 10, random_state=4))
    for batch_size, unlabeled in ((1, 0), (10, 4)):
        with pytest.raises(InputError):
            PairBatchSampler(y, batch_size, unlabeled=unlabeled)


def test_images_are_distorted_but_little():
    images = torch.zeros(200, 1, 28, 28)
    images[:, :, 10:18, 10:18] = 1
    moved, again = (distort_images(images, torch.Generator().manual_seed(0)) for _ in range(2))
    assert torch.equal(moved, again)
    assert not torch.allclose(moved, images, atol=0.1)
    # The mass stays, but for what is erased, stretched or moved out.
    assert moved.sum() == pytest.approx(images.sum().item(), rel=0.15)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """What every block of code in docs/networks.md leaves, one after the other, with fewer steps of the loop."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = {"n_blocks": len(blocks)}
    with pytest.MonkeyPatch.context() as patch, torch.random.fork_rng():
        patch.chdir(tmp_path_factory.mktemp("page"))
        torch.manual_seed(0)
        for block in blocks:
            exec(compile(block.replace("range(50)", "range(10)"), str(PAGE), "exec"), names)
    return names


def test_the_page_runs(page):
    """Digits are learned from 600 pairs: by the estimator, and by a loop of one's own."""
    assert page["n_blocks"] == 5
    assert page["accuracy"] > 0.8
    logits = page["net"](torch.tensor(page["rows"], dtype=torch.float32))
    assert pair_nll(logits, page["y"]) < 0.95 * pair_nll(0 * logits, page["y"])
    model = page["model"]
    assert model.held_out_log_likelihood_.shape == (8, 4)
    assert model.n_iter_ == page["again"].n_iter_ == 600
    # The likeliest start is kept, named by labels, and comes back from its file.
    assert model.log_likelihood_[model.start_] == model.log_likelihood_.max()
    X = page["images"]
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    table = np.zeros((10, 10))
    np.add.at(table, (model.predict(X) - 1, page["digit"][: len(X)]), 1)
    assert np.trace(table) == table[linear_sum_assignment(-table)].sum()
    assert isinstance(page["again"], PairNetworkClassifier)
    assert np.array_equal(page["again"].decision_function(X), model.decision_function(X))


@pytest.fixture(scope="module")
def two(page):
    """Digits below and above 3, 150 pairs, and 300 rows."""
    pairs = np.random.default_rng(1).permutation(600)[:300].reshape(-1, 2)
    low = page["digit"] < 3
    return stack_pairs(page["images"][:600], pairs, low[pairs[:, 0]] == low[pairs[:, 1]])


def small(**options):
    return PairNetworkClassifier(**{"hidden_layer_sizes": (16,), "n_starts": 2, "max_iter": 30, "batch_size": 64,
                                    "device": "cpu", **options})  # fmt: skip


def test_a_network_of_ones_own(two, tmp_path):
    rows, y = two

    def make():
        return torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(),
            torch.nn.Dropout(0.1), torch.nn.Linear(144, 2),
        )  # fmt: skip

    model = small(module=make(), image_shape=(8, 8), error_rate={0: 0.1}).fit(rows, y)
    path = tmp_path / "own.sdu"
    model.save(path)
    with pytest.raises(ModelFileError, match=r"load\(path, Sequential\(\)\)"):
        load_model(path)
    again = PairNetworkClassifier.load(path, make())
    assert np.array_equal(again.decision_function(rows), model.decision_function(rows))
    with pytest.raises(InputError):
        PairNetworkClassifier.load(path, torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2)))
    made = small(module=make, image_shape=(8, 8), max_iter=2).fit(rows, y)
    assert made.held_out_log_likelihood_.shape == (1, 2)


def test_one_seed_one_network(two):
    """Whatever the global random numbers are, and these are not touched."""
    rows, y = two
    state = torch.random.get_rng_state()
    first, again, other = (
        small(max_iter=5, prior=0.7, random_state=seed).fit(rows, y).decision_function(rows) for seed in (7, 7, 8)
    )
    assert torch.equal(state, torch.random.get_rng_state())
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_components_labels_and_annotators_in_one_fit(page):
    """Answers that share points, some of them in a component larger than the batch, people who err, and labels."""
    X, truth = page["images"], page["digit"]
    rng = np.random.default_rng(2)
    ends = np.array([rng.choice(120, 2, replace=False) for _ in range(150)])
    same = truth[ends[:, 0]] % 3 == truth[ends[:, 1]] % 3
    labels = np.zeros(600, dtype=int)
    labels[200:260] = truth[200:260] % 3 + 1
    people = rng.integers(1, 3, 150)
    rows, y = stack_pairs(X[:600], ends, same, annotators=people, labels=labels)
    model = small(n_classes=3, error_rate={1: 0.05, 2: 0.1}, batch_size=24, max_iter=100, learning_rate=3e-3)
    assert np.mean(model.fit(rows, y).predict(X[200:260]) == labels[200:260]) > 0.6


def test_rows_of_weight_0_are_left_out(two):
    rows, y = two
    codes = np.abs(np.reshape(y, (len(rows), -1))[:, 0])
    kept = (codes == 0) | (codes % 7 > 0)
    options = {"linear_start": True, "max_iter": 5, "random_state": 0}
    weighted = small(**options).fit(rows, y, kept.astype(float))
    dropped = small(**options).fit(rows[kept], y[kept])
    np.testing.assert_allclose(weighted.decision_function(rows), dropped.decision_function(rows), rtol=1e-5)


def test_what_the_estimator_refuses(two):
    rows, y = two
    for known, options in (
        (0 * y, {}),
        (y, {"image_shape": (9, 8)}),
        (y, {"n_classes": 3, "prior": [0.5, 0.5]}),
        (y, {"module": torch.nn.Linear(64, 3)}),
    ):
        with pytest.raises(InputError):
            small(**options).fit(rows, known)


def test_progress_wraps_the_steps_and_the_largest_class_comes_first(two):
    seen = []
    model = small(n_classes=4, max_iter=5, progress=lambda steps: (seen.append(k) or k for k in steps)).fit(*two)
    assert seen == [0, 1, 2, 3, 4]
    assert np.all(np.diff(model.class_shares_) <= 0)
    assert model.class_shares_.sum() == pytest.approx(1, abs=1e-5)


def test_without_torch_the_extra_is_named(monkeypatch, two):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"sdulearn\[torch\]"):
        small().fit(*two)
