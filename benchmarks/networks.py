"""Networks from same/different answers: MNIST, tables, and what the loss costs.

    python benchmarks/networks.py --seconds 3600 --workers 8 [--parts images cost tables others]

SDULEARN_DATA names a folder with mnist10k.npz and multi/NAME.svm.bz2. Each result is a line of
benchmarks/networks.jsonl, and what stands there is not measured again; --write puts the tables into docs/networks.md.
Draws 0 to 4 of pairs are reported; development was on draws from 1,000 on, of training images only.

- images: 8,000 images for training, 2,000 for testing; networks with the defaults of PairNetworkClassifier.
- cost: pair_nll in a step of a network of the size of ResNet-18 (GPU only), and by rows a batch.
- tables: networks with their defaults on standardised columns; others: the linear model and trees on the same answers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from pages import write_between
from scipy.optimize import linear_sum_assignment

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "networks.md"
DRAWS = 5
TABLE_DRAWS = 3
SETS = ("digits", "satimage", "segment", "penbased", "texture", "vowel")
COUNTS = (300, 1000, 3000)
# Name of a row: what it is called, published figures (MCL, the best), and the share of right predictions wanted.
ROWS = {
    "1000": ("1,000 random pairs", "54.9 / 91.7", "96, worst 94"),
    "300": ("300 pairs", "-", "88"),
    "600": ("600 pairs", "-", "93"),
    "rate given": ("9,000 pairs, 30% wrong, rate given", "40.3 / 91.0", "92"),
    "rate estimated": ("9,000 pairs, 30% wrong, rate estimated", "40.3 / 91.0", "88"),
    "unequal": ("unequal classes, 2 : 1, 1,000 pairs", "-", "94"),
    "5000": ("5,000 pairs", "82.6 / 95.9", "97.3"),
    "10000": ("10,000 pairs", "92.6 / 97.0", "98"),
    "even": ("even or odd, 1,000 pairs", "-", "as labels, less 1"),
    "even labels": ("even or odd, 1,000 labels", "-", "-"),
    "convolution": ("convolutional network, 1,000 pairs", "-", "96"),
    "match 1000": ("1,000 match answers", "-", "as labels, less 1"),
    "labels 1000": ("1,000 labels", "-", "-"),
    "match 300": ("300 match answers", "-", "as labels, less 1"),
    "labels 300": ("300 labels", "-", "-"),
    "blind": ("9,000 pairs, 30% wrong, taken as right", "40.3 / -", "-"),
    "answers alone": ("1,000 pairs, without unlabeled terms", "54.9 / -", "-"),
}


def mnist():
    """Training and test images, flat, and their digits."""
    data = np.load(Path(os.environ["SDULEARN_DATA"]) / "mnist10k.npz")
    order = np.random.default_rng(12345).permutation(10000)
    X, y = data["X"].astype(np.float32)[order] / 255, data["y"].astype(np.int64)[order]
    return X[:8000], y[:8000], X[8000:], y[8000:]


def random_pairs(y, n, rng):
    """Pairs of different points, none twice in a pair while they last."""
    if 2 * n <= len(y):
        ends = rng.permutation(len(y))[: 2 * n].reshape(-1, 2)
    else:
        ends = rng.integers(0, len(y), (2 * n, 2))
        ends = ends[ends[:, 0] != ends[:, 1]][:n]
    return ends, y[ends[:, 0]] == y[ends[:, 1]]


def matched(predicted, y, n_classes):
    """Accuracy under the best names, and these: the class of each number."""
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (predicted, y), 1)
    _, names = linear_sum_assignment(-counts)
    return counts[np.arange(n_classes), names].sum() / len(y), names


def known_labels(y, rows):
    """The ``y`` of labels of some rows."""
    labels = np.zeros(len(y), dtype=np.int64)
    labels[rows] = y[rows] + 1
    return np.column_stack([0 * labels, np.arange(len(y)), 0 * labels, labels])


def match_answers(y, n, rng):
    """An example of each class, all different, and n other points as one of them each."""
    examples = np.array([rng.choice(np.flatnonzero(y == k)) for k in range(10)])
    others = rng.choice(np.setdiff1d(np.arange(len(y)), examples), n, replace=False)
    ends = [(a, b) for k, a in enumerate(examples) for b in examples[:k]]
    ends = np.array([*ends, *zip(others, examples[y[others]], strict=True)])
    return ends, y[ends[:, 0]] == y[ends[:, 1]]


def unequal_rows(y):
    """Rows in shares that fall evenly from 2 to 1."""
    rng = np.random.default_rng(77)
    classes, shares = rng.permutation(10), np.linspace(2, 1, 10)
    most = min(np.sum(y == k) / share for k, share in zip(classes, shares, strict=True))
    chosen = [
        rng.choice(np.flatnonzero(y == k), int(most * share), replace=False)
        for k, share in zip(classes, shares, strict=True)
    ]
    return np.sort(np.concatenate(chosen))


def convolution():
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 10),
    )  # fmt: skip


def image_answers(row, X, digit, rng):
    """Rows and ``y`` of an image row."""
    from sdulearn import stack_pairs

    kind, _, number = row.rpartition(" ")
    y = digit % 2 if row.startswith("even") else digit
    if row == "even labels":
        labels = known_labels(y, rng.choice(len(y), 1000, replace=False))
        labels[:, 3] = np.sign(labels[:, 3] * 2 - 3) * (labels[:, 3] > 0)
        return X, labels
    if kind == "labels":
        return X, known_labels(y, rng.choice(len(y), int(number), replace=False))
    if kind == "match":
        return stack_pairs(X, *match_answers(y, int(number), rng))
    wrong = row in ("rate given", "rate estimated", "blind")
    ends, same = random_pairs(y, 9000 if wrong else int(row) if row.isdigit() else 1000, rng)
    if wrong:
        same = same ^ (rng.random(len(same)) < 0.3)
    return stack_pairs(X, ends, same)


def measure_image(row, seed, options):
    """Accuracy of one draw on the test images."""
    from sdulearn.torch import PairNetworkClassifier

    X, digit, X_test, test_digit = mnist()
    if row == "unequal":
        chosen = unequal_rows(digit)
        X, digit = X[chosen], digit[chosen]
    rows, y = image_answers(row, X, digit, np.random.default_rng([seed, 25]))
    n_classes = 2 if row.startswith("even") else 10
    given = {"rate given": {"error_rate": 0.3}, "blind": {"error_rate": 0.0}, "convolution": {"module": convolution},
             "answers alone": {"agreement": 0.0, "use": 0.0}}.get(row, {})  # fmt: skip
    model = PairNetworkClassifier(n_classes=n_classes, image_shape=(28, 28), random_state=seed, **given, **options)
    start = time.perf_counter()
    model.fit(rows, y)
    spent = time.perf_counter() - start
    predicted = np.searchsorted(model.classes_, model.predict(X_test))
    accuracy, names = matched(predicted, test_digit % 2 if n_classes == 2 else test_digit, n_classes)
    found = {"accuracy": accuracy, "seconds": spent, "rate": float(np.mean(list(model.answer_model_.rates.values())))}
    if row == "unequal":
        shares = np.bincount(digit, minlength=10) / len(digit)
        found["share error"] = float(np.abs(model.class_shares_ - shares[names]).max())
    return found


def measure_table(row, seed, options):
    """Accuracy on the test points of a table: the network, the linear model, or trees."""
    from sklearn.preprocessing import StandardScaler

    from reproduction.datasets import load_multiclass
    from sdulearn import stack_pairs

    model, name, n = row.split()
    X, y = load_multiclass(name)
    rng = np.random.default_rng([seed, int(n)])
    order = rng.permutation(len(X))
    n_test = min(1000, len(X) // 3)
    test, train = order[:n_test], order[n_test:][:2500]
    scaler = StandardScaler().fit(X[train])
    ends, same = random_pairs(y[train], int(n), rng)
    rows, codes = stack_pairs(scaler.transform(X[train]), ends, same)
    start = time.perf_counter()
    fitted = table_model(model, int(y.max()), seed, options).fit(rows, codes)
    spent = time.perf_counter() - start
    predicted = np.searchsorted(fitted.classes_, fitted.predict(scaler.transform(X[test])))
    return {"accuracy": matched(predicted, y[test] - 1, int(y.max()))[0], "seconds": spent}


def table_model(name, n_classes, seed, options):
    from sdulearn import PairBoostingClassifier, PairLogisticRegressionCV

    if name == "linear":
        return PairLogisticRegressionCV(n_classes=n_classes)
    if name == "trees":
        return PairBoostingClassifier(n_classes=n_classes, random_state=seed)
    from sdulearn.torch import PairNetworkClassifier

    return PairNetworkClassifier(n_classes=n_classes, random_state=seed, linear_start=name == "guided", **options)


def measure_cost(row, tiny):
    """Milliseconds of a training step, and of the part of it that is pair_nll."""
    import torch

    from sdulearn.torch import pair_nll

    device = "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = row.rpartition(" ")
    n = 64 if tiny else int(number)
    net = wide_network(torch, tiny) if kind != "rows" else torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))  # fmt: skip
    net = net.to(device)
    x = torch.randn((n, 1, 28, 28) if kind == "rows" else (n, 3, 32, 32), device=device)
    known = five_in_a_chain(n) if kind == "components" else np.repeat(np.arange(1, n // 2 + 1), 2)
    target = torch.randint(10, (n,), device=device)
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step(with_answers):
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = net(x)
        loss = pair_nll(logits, known, error_rate=0.05) if with_answers else torch.nn.functional.cross_entropy(
            logits.float(), target)  # fmt: skip
        loss.backward()
        optimiser.step()

    times = {way: clock(torch, step, way, 2 if tiny else 20) for way in (False, True, False, True)}
    return {"step": times[True], "without": times[False], "share": times[True] / times[False] - 1}


def clock(torch, step, way, repeats):
    for _ in range(3):
        step(way)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        step(way)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / repeats


def five_in_a_chain(n):
    """The ``y`` of answers about five points each, a chain of four answers."""
    chain = np.array([(0, 1), (1, 2), (2, 3), (3, 4)])
    ends = (chain + 5 * np.arange(n // 8)[:, None, None]).reshape(-1, 2)
    same = np.where(np.random.default_rng(0).random(len(ends)) < 0.2, 1, -1)
    return np.column_stack([np.repeat(same * np.arange(1, len(ends) + 1), 2), ends.ravel()])


def wide_network(torch, tiny):
    """ResNet-18 as it is used for images of 32 x 32."""
    if tiny:
        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(3600, 10))
    from torchvision.models import resnet18

    net = resnet18(num_classes=10)
    net.conv1 = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False)
    net.maxpool = torch.nn.Identity()
    return net.to(memory_format=torch.channels_last)


def measure(part, row, seed, options, tiny):
    """One result; what goes wrong is one too."""
    warnings.simplefilter("ignore")
    # Processes share the cores.
    if part in ("images", "tables"):
        import torch

        torch.set_num_threads(1)
    try:
        if part == "cost":
            found = measure_cost(row, tiny)
        else:
            found = (measure_image if part == "images" else measure_table)(row, seed, options)
    except Exception as error:
        found = {"error": repr(error)[:500]}
    return {"part": part, "row": row, "seed": seed, **found}


def tasks(parts, draws):
    """Part, row and draw, the most important first."""
    found = []
    if "cost" in parts:
        found += [("cost", row, 0) for row in ("loose 4096", "components 4096")]
        found += [("cost", f"rows {4**k}", 0) for k in range(3, 9)]
    if "images" in parts:
        found += [("images", row, seed) for row in ROWS for seed in range(draws)]
    for part, models in (("tables", ("network", "guided")), ("others", ("linear", "trees"))):
        if part in parts:
            found += [
                (part, f"{model} {name} {n}", seed)
                for seed in range(min(draws, TABLE_DRAWS)) for n in COUNTS for name in SETS for model in models
                if model != "guided" or n == COUNTS[0]
            ]  # fmt: skip
    return found


def run(arguments):
    """Measure what is not measured yet, until the time is over."""
    path = arguments.results
    seen = {(line["part"], line["row"], line["seed"]) for line in results(path)}
    todo = [task for task in tasks(arguments.parts, arguments.draws) if task not in seen]
    options = {"max_iter": 4, "n_starts": 2} if arguments.tiny else {}
    end = time.monotonic() + arguments.seconds

    def note(line):
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)

    # Costs are measured alone, in a process that ends.
    alone = [task for task in todo if task[0] == "cost"]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        for task in alone:
            note(pool.submit(measure, *task, options, arguments.tiny).result())
    pool = ProcessPoolExecutor(arguments.workers, mp_context=context)
    futures = [pool.submit(measure, *task, options, arguments.tiny) for task in todo if task[0] != "cost"]
    try:
        for future in as_completed(futures, timeout=max(1.0, end - time.monotonic())):
            note(future.result())
    except TimeoutError:
        print("The time is over.", flush=True)
        for process in list(pool._processes.values()):
            process.terminate()
    pool.shutdown(wait=False, cancel_futures=True)


def results(path):
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in found if "error" not in line]


def write(path):
    """The tables of the page."""
    by_row = defaultdict(list)
    for line in results(path):
        by_row[line["part"], line["row"]].append(line)
    image = [
        "| answers | accuracy | worst | draws | published: MCL / best | wanted | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for row, (name, published, wanted) in ROWS.items():
        lines = by_row["images", row]
        if lines:
            accuracy = [100 * line["accuracy"] for line in lines]
            spent = np.mean([line["seconds"] for line in lines])
            cells = [name, f"{np.mean(accuracy):.1f}", f"{min(accuracy):.1f}", len(lines), published, wanted]
            image.append(f"| {' | '.join(map(str, cells))} | {spent:.0f} |")
    write_between(PAGE, "images", image)
    cost = ["| step | without the loss, ms | with it, ms | more |", "|---|---|---|---|"]
    for (part, row), lines in by_row.items():
        if part == "cost":
            line = lines[-1]
            cost.append(f"| {row} | {line['without']:.2f} | {line['step']:.2f} | {100 * line['share']:.0f}% |")
    write_between(PAGE, "cost", cost)
    models = {"network": "network", "guided": "with a linear start", "linear": "linear", "trees": "trees"}
    measured = {row.split()[0] for part, row in by_row if part in ("tables", "others")}
    models = {model: name for model, name in models.items() if model in measured}
    table = [f"| set | pairs | {' | '.join(models.values())} |", "|---" * (2 + len(models)) + "|"]
    for name in SETS:
        for n in COUNTS:
            cells = [by_row["others" if m in ("linear", "trees") else "tables", f"{m} {name} {n}"] for m in models]
            if any(cells):
                means = [100 * np.mean([line["accuracy"] for line in lines]) if lines else None for lines in cells]
                shown = [
                    "-" if mean is None else f"{mean:.1f} ({len(lines)})"
                    for mean, lines in zip(means, cells, strict=True)
                ]
                table.append(f"| {name} | {n:,} | {' | '.join(shown)} |")
    write_between(PAGE, "tables", table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="*", default=["cost", "images", "tables", "others"])
    parser.add_argument("--seconds", type=float, default=7200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--results", type=Path, default=HERE / "networks.jsonl")
    parser.add_argument("--tiny", action="store_true", help="a few steps of everything, to see that it runs")
    parser.add_argument("--write", action="store_true", help="only write the tables")
    arguments = parser.parse_args()
    if not arguments.write:
        run(arguments)
    if not arguments.tiny:
        write(arguments.results)


if __name__ == "__main__":
    main()
