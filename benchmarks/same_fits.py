"""The numbers of some 60 fits, written down, and compared after a change that should not change them.

    python benchmarks/same_fits.py --write FILE.npz
    python benchmarks/same_fits.py --against FILE.npz [--only PART_OF_A_NAME]

Every estimator on loose, shared, wrong, labelled and weighted answers and with more classes; accuracies, priors and
error rates; portions, Dask and files; questions with a seed. Only the public API is called.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits

import sdulearn
from sdulearn import (
    PairBoostingClassifier,
    PairLogisticRegression,
    PairLogisticRegressionCV,
    PairModelCV,
    SDUClassifier,
    SDUClassifierCV,
    estimate_prior,
    fit_table,
    stack_pairs,
)
from sdulearn.asking import ask
from sdulearn.cli.main import main as command
from sdulearn.datasets import make_waveform
from sdulearn.diagnostics import check_assumptions
from sdulearn.metrics import class_agreement, cross_val_accuracy, pair_accuracy, pair_calibration, pair_log_likelihood

Numbers = dict[str, object]
FITS: dict[str, Callable[[], Numbers]] = {}


def ends_of(design, rng, n):
    """Points of ``n`` answers."""
    if design == "loose":
        return rng.permutation(2 * n).reshape(-1, 2)
    if design == "star":
        return np.column_stack([np.zeros(n, int), 1 + np.arange(n)])
    if design == "chains":
        return np.column_stack([np.arange(n), np.arange(n) + 1])[np.arange(n) % 6 != 5]
    ends = rng.integers(0, n // 2, (4 * n, 2))
    return ends[ends[:, 0] != ends[:, 1]][:n]


def answers(design="loose", n=120, wrong=0.0, people=0, labels=False, classes=2, seed=0):
    """Rows and y of simulated answers."""
    rng = np.random.default_rng(seed)
    if classes == 2:
        X, y = make_waveform(900, random_state=seed)
        y = np.where(y > 0, 1, -1)
    else:
        X, y = load_digits(return_X_y=True)
        X, y = X[y < classes][:900], y[y < classes][:900] + 1
    X = (X - X.mean(0)) / (X.std(0) + (X.std(0) == 0))
    ends = ends_of(design, rng, n)
    same = (y[ends[:, 0]] == y[ends[:, 1]]) ^ (rng.random(len(ends)) < wrong)
    who = rng.integers(1, people + 1, len(ends)) if people else None
    known = np.where(np.arange(len(X)) % 40 == 0, y, 0) if labels else None
    return stack_pairs(X, ends, same, annotators=who, labels=known)


def rates_of(model) -> Numbers:
    """Error rates, under the name of the tree at hand."""
    if hasattr(model, "answer_model_"):
        people = {k: (r.value, r.low, r.high) for k, r in model.answer_model_.by_annotator.items()}
    elif hasattr(getattr(model, "error_rates_", None), "annotators"):
        people = {r.annotator: (r.rate, r.low, r.high) for r in model.error_rates_.annotators}
    else:
        return {}
    return {"rates": [people[k] for k in sorted(people)]}


def numbers_of(model, X) -> Numbers:
    """What a fitted estimator says."""
    found: Numbers = {"decision": model.decision_function(X[:50])}
    if hasattr(model, "predict_proba"):
        found["proba"] = model.predict_proba(X[:50])
    for name in ("coef_", "intercept_", "alpha_", "covariance_power_", "gamma_", "n_classes_", "best_score_"):
        if hasattr(model, name):
            found[name] = getattr(model, name)
    prior = getattr(model, "prior_", None)
    if prior is not None:
        found["prior"] = [getattr(prior, key, np.nan) for key in ("value", "low", "high")]
    return found | rates_of(model)


def fit(make, data, weights=None, form=None):
    """Numbers of a fit."""
    X, y = data()
    weight = None
    if weights is not None:
        rng = np.random.default_rng(5)
        by_code = rng.uniform(0.5, 2, np.abs(y[:, 0]).max() + 1)
        weight = np.where(y[:, 0] == 0, rng.uniform(0.5, 2, len(y)), by_code[np.abs(y[:, 0])])
        weight[-5:] = 0
    rows = form(X) if form else X
    return numbers_of(make().fit(rows, y, **({} if weight is None else {"sample_weight": weight})), rows)


def add(name, make, data, **options):
    FITS[name] = partial(fit, make, data, **options)


LOOSE, HALF = partial(answers), partial(answers, seed=3)
DATA = {
    "loose": LOOSE,
    "star": partial(answers, "star"),
    "chains": partial(answers, "chains"),
    "dense": partial(answers, "dense"),
    "labels": partial(answers, labels=True),
    "dense labels": partial(answers, "dense", labels=True),
}
for _name, _data in DATA.items():
    add(f"linear {_name}", PairLogisticRegression, _data)
    add(f"linear cv {_name}", PairLogisticRegressionCV, _data)
for _name in ("loose", "dense"):
    for _rate in (0.1, {1: 0.05, 2: 0.2}, "auto"):
        _wrong = partial(answers, _name, wrong=0.1, people=2)
        _kind = "given" if _rate == 0.1 else "auto" if _rate == "auto" else "each"
        add(f"linear wrong {_kind} {_name}", partial(PairLogisticRegression, error_rate=_rate), _wrong)
        add(f"linear cv wrong {_kind} {_name}", partial(PairLogisticRegressionCV, error_rate=_rate), _wrong)
add("linear weights", PairLogisticRegression, LOOSE, weights=1)
add("linear weights power 2", partial(PairLogisticRegression, covariance_power=2), LOOSE, weights=1)
add("linear weights dense", PairLogisticRegression, partial(answers, "dense"), weights=1)
add("linear sparse", PairLogisticRegression, LOOSE, form=sparse.csr_matrix)
add("linear prior given", partial(PairLogisticRegressionCV, prior=0.6), HALF)
add("linear no pull", partial(PairLogisticRegressionCV, prior_strength=0), HALF)
for _k in (3, 10):
    for _design in ("loose", "dense", "star"):
        _data = partial(answers, _design, n=250, classes=_k)
        add(f"classes {_k} {_design}", partial(PairLogisticRegression, n_classes=_k), _data)
    add(f"classes {_k} cv", partial(PairLogisticRegressionCV, n_classes=_k), partial(answers, n=250, classes=_k))
add("classes 3 labels", partial(PairLogisticRegressionCV, n_classes=3), partial(answers, labels=True, n=200, classes=3))
add("classes 3 wrong", partial(PairLogisticRegression, n_classes=3), partial(answers, "dense", 200, 0.1, 2, classes=3))
add("classes 3 weights", partial(PairLogisticRegression, n_classes=3), partial(answers, n=200, classes=3), weights=1)
add("classes auto", partial(PairLogisticRegressionCV, n_classes="auto"), partial(answers, "dense", 250, classes=3))
add("trees loose", partial(PairBoostingClassifier, max_iter=40), LOOSE)
add("trees dense", partial(PairBoostingClassifier, max_iter=40), partial(answers, "dense"))
add("trees wrong", partial(PairBoostingClassifier, max_iter=40, error_rate=0.1), partial(answers, "dense", wrong=0.1))
add("trees weights", partial(PairBoostingClassifier, max_iter=40), partial(answers, "dense"), weights=1)
add("trees classes 4", partial(PairBoostingClassifier, max_iter=20, n_classes=4), partial(answers, n=200, classes=4))
add("choice of model", partial(PairModelCV), LOOSE)
for _loss in ("squared", "double_hinge", "logistic"):
    add(f"sdu {_loss}", partial(SDUClassifier, loss=_loss), LOOSE)
    add(f"sdu weights {_loss}", partial(SDUClassifier, loss=_loss), LOOSE, weights=1)
add("sdu cv", SDUClassifierCV, LOOSE)
add("sdu cv sdsu hinge", partial(SDUClassifierCV, "sdsu", "double_hinge"), LOOSE)


def fit_named(function):
    FITS[function.__name__.replace("_", " ")] = function
    return function


@fit_named
def streamed_portions():
    from sdulearn import streaming

    X, y = answers()
    cuts = [slice(k, k + 217) for k in range(0, len(X), 217)]
    found = {}
    for loss in ("squared", "double_hinge"):
        model = streaming.SDUClassifier(loss=loss).fit([(X[cut], y[cut]) for cut in cuts])
        found[loss] = np.append(model.coef_, model.intercept_)
    return found


@fit_named
def dask_rows():
    import dask
    import dask.array as da

    from sdulearn import distributed

    X, y = answers()
    with dask.config.set(scheduler="synchronous"):
        rows = da.from_array(X, chunks=(300, -1))
        codes = da.from_array(y, chunks=(300, -1))
        joint = distributed.PairLogisticRegression().fit(rows, codes)
        sdu = distributed.SDUClassifier().fit(rows, codes)
    return {"joint": np.append(joint.coef_, joint.intercept_), "sdu": np.append(sdu.coef_, sdu.intercept_)}


def estimate(found) -> list[float]:
    return [found.value, found.low, found.high]


@fit_named
def priors():
    return {name: estimate(estimate_prior(y=data()[1])) for name, data in DATA.items()} | {
        "wrong": estimate(estimate_prior(y=answers("dense", wrong=0.1)[1])),
        "counts": estimate(estimate_prior(70, 30)),
    }


@fit_named
def accuracies():
    found: Numbers = {}
    for name in ("loose", "star", "dense"):
        X, y = DATA[name]()
        model = PairLogisticRegression().fit(X, y)
        found[name] = estimate(pair_accuracy(model.decision_function(X), y))
        found[f"{name} folds"] = estimate(cross_val_accuracy(PairLogisticRegression(), X, y))
        found[f"{name} likelihood"] = pair_log_likelihood(model, X, y)
        found[f"{name} calibration"] = pair_calibration(model.predict_proba(X), y).error
    X, y = answers("dense", n=200, classes=3)
    model = PairLogisticRegression(n_classes=3).fit(X, y)
    found["classes"] = estimate(class_agreement(model.predict(X), y).agreement)
    return found


@fit_named
def assumptions():
    X, y = answers("dense", wrong=0.1)
    return {"codes": sorted(finding.code for finding in check_assumptions(X, y))}


@fit_named
def questions():
    found: Numbers = {}
    X, y = load_breast_cancer(return_X_y=True)
    for design in ("linked", "random"):
        asker = ask(X, lambda a, b, y=y: bool(y[a] == y[b]), 40, design=design, random_state=1)
        found[f"{design} points"] = np.column_stack([asker.answers["left"], asker.answers["right"]])[:12]
        found[f"{design} accuracy"] = estimate(asker.accuracy())
    return found


def survey(classes=False):
    """A table with categories and gaps, answers, and its classes."""
    X, y = load_breast_cancer(return_X_y=True)
    frame = pd.DataFrame(X[:, :12]).rename(columns=lambda j: f"x{j}")
    frame.insert(0, "id", [f"r{k:03d}" for k in range(len(X))])
    frame["size"] = np.where(X[:, 3] > np.median(X[:, 3]), "large", "small")
    rng = np.random.default_rng(2)
    ends = rng.permutation(len(X))[:240].reshape(-1, 2)
    same = y[ends[:, 0]] == y[ends[:, 1]]
    given = pd.DataFrame({"id_a": frame["id"].to_numpy()[ends[:, 0]], "id_b": frame["id"].to_numpy()[ends[:, 1]]})
    given["label"] = np.where(same, "same", "different")
    given["annotator"] = np.where(np.arange(len(given)) % 2, "ann", "bob")
    return frame, given, y


def table_numbers(model, frame) -> Numbers:
    report = model.report
    found: Numbers = {"proba": model.predict_proba(frame)[:40], "prior": None, "accuracy": None}
    if report.prior is not None:
        found["prior"] = estimate(report.prior)
    if report.accuracy is not None:
        found["accuracy"] = estimate(report.accuracy)
    return found


def table_fit(**options):
    frame, given, _ = survey()
    if options.pop("gaps", False):
        frame.loc[frame.index[::7], "x1"] = np.nan
    if options.pop("parquet", False):
        with tempfile.TemporaryDirectory() as folder:
            frame.to_parquet(Path(folder) / "table.parquet", row_group_size=100)
            model = fit_table(Path(folder) / "table.parquet", given, **options)
    else:
        model = fit_table(frame, given, **options)
    return table_numbers(model, frame)


for _name, _options in {
    "default": {},
    "linear": {"model": "linear"},
    "boosted": {"model": "boosted"},
    "gaps": {"gaps": True, "missing": "mean", "model": "linear"},
    "sddu": {"method": "sddu", "loss": "logistic"},
    "stream": {"parquet": True, "engine": "stream", "model": "linear"},
}.items():
    FITS[f"table {_name}"] = partial(table_fit, **_options)


@fit_named
def commands():
    """What the commands write and print as JSON."""
    frame, given, y = survey()
    found: Numbers = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame.to_csv(folder / "table.csv", index=False)
        given.to_csv(folder / "answers.csv", index=False)
        frame.to_csv(folder / "german.csv", index=False, sep=";", decimal=",")
        labels = pd.DataFrame({"id": frame["id"][:60:3], "label": np.where(y[:60:3] > 0, "benign", "malign")})
        labels.to_csv(folder / "labels.csv", index=False)
        for kind, options in {
            "plain": ["table.csv"],
            "german": ["german.csv"],
            "labels": ["table.csv", "--labels", "labels.csv"],
        }.items():
            table, *rest = options
            rest = [str(folder / part) if part.endswith(".csv") else part for part in rest]
            model = str(folder / f"{kind}.sdu")
            files = ["--features", str(folder / table), "--pairs", str(folder / "answers.csv")]
            said(["fit", *files, "--model", "linear", "-o", model, *rest])
            said(["predict", model, str(folder / table), "-o", str(folder / "out.csv")])
            written = pd.read_csv(folder / "out.csv")
            found[kind] = written.select_dtypes("number").iloc[:40].to_numpy()
        found["prior"] = numbers_in(json.loads(said(["prior", str(folder / "answers.csv"), "--json"])))
    return found


def said(options) -> str:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        try:
            code = command(options)
        except SystemExit as stop:
            code = stop.code
    if code:
        raise RuntimeError(f"{options[0]}: exit status {code}: {out.getvalue()}")
    return out.getvalue()


def numbers_in(value) -> list[float]:
    """All numbers in JSON, in order of the keys."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return []
    if isinstance(value, dict):
        return [one for key in sorted(value) for one in numbers_in(value[key])]
    if isinstance(value, list):
        return [one for part in value for one in numbers_in(part)]
    return [float(value)]


def measured(name: str) -> dict[str, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = FITS[name]()
        except Exception as error:  # a fit that fails is a difference too
            return {f"{name}: failed": np.array(f"{type(error).__name__}: {error}"[:300])}
    return {f"{name}: {key}": np.asarray(value) for key, value in found.items() if value is not None}


def difference(old: np.ndarray, new: np.ndarray) -> float:
    """Largest difference, relative to the largest number."""
    if old.shape != new.shape or old.dtype.kind in "US" or new.dtype.kind in "US":
        return 0.0 if old.shape == new.shape and np.array_equal(old, new) else np.inf
    old, new = old.astype(float), new.astype(float)
    if not np.array_equal(np.isnan(old), np.isnan(new)):
        return np.inf
    scale = np.nanmax(np.abs(old), initial=1e-300)
    return float(np.nanmax(np.abs(old - new), initial=0.0) / scale)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", default="", help="fits with this in their names")
    parser.add_argument("--tolerance", type=float, default=1e-9)
    arguments = parser.parse_args()
    print(f"sdulearn of {Path(sdulearn.__file__).parent}")
    old = dict(np.load(arguments.against)) if arguments.against else {}
    found: dict[str, np.ndarray] = {}
    differing = 0
    for name in FITS:
        if arguments.only not in name:
            continue
        began = time.process_time()
        one = measured(name)
        seconds = time.process_time() - began
        found |= one
        if not arguments.against:
            print(f"{name}: {seconds:.1f} CPU s", *(str(v) for k, v in one.items() if k.endswith("failed")), flush=True)
            continue
        before = {key: value for key, value in old.items() if key.startswith(f"{name}: ")}
        for key in sorted(before.keys() | one.keys()):
            if key not in one or key not in before:
                size, more = np.inf, str(one.get(key, "missing"))[:200]
            else:
                size, more = difference(before[key], one[key]), ""
            if size > arguments.tolerance:
                differing += 1
                print(f"{key}: differs by {size:.1e} {more}", flush=True)
    if arguments.write:
        np.savez_compressed(arguments.write, **found)
    if arguments.against:
        print(f"{differing} of {len(found)} records differ by more than {arguments.tolerance:g}")


if __name__ == "__main__":
    main()
