"""``fit_table``: a model of a table from answers about its rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from sdulearn import __version__
from sdulearn.answers.answer_model import Rate
from sdulearn.answers.graph import AnswerGraph, connect
from sdulearn.answers.rates import calibrated_rates, split_by_certainty
from sdulearn.answers.records import Answers, some_answers
from sdulearn.diagnostics import (
    LEVEL,
    Finding,
    audited_rates,
    check_answers_ratio,
    check_outcome,
    check_population,
    check_ratio,
    check_shared_points,
)
from sdulearn.errors import InputError, OrientationWarning, listed, quoted
from sdulearn.io.answers import read_answers
from sdulearn.io.files import Location, is_location
from sdulearn.io.rows import Labels, read_labels
from sdulearn.metrics.accuracy import ENOUGH_RANDOM, AccuracyEstimate
from sdulearn.pairs import Pairs
from sdulearn.prior import PriorEstimate, random_of
from sdulearn.progress import long_work
from sdulearn.report.records import AnnotatorReport, FitReport, chosen_settings
from sdulearn.table_model import TableModel
from sdulearn.types import Array, Codes, Estimator, Frame, Mask
from sdulearn.workflow.data import TrainingData, check_enough, gather
from sdulearn.workflow.judge import (
    choose,
    column_dependences,
    column_importances,
    fit_on_all,
    judge,
    most_doubtful,
    number_of_classes,
    prior_of_random_points,
)
from sdulearn.workflow.options import MEMORY, Engine, FitOptions, open_engine

# With this share of all rows chosen it is seen that random questions pass over chosen rows.
_MANY_CHOSEN = 0.1
# Who is wrong more often than this, even at the low end of the interval, is among the worst.
_WORST_RATE = 0.3
_Fitted = tuple[TableModel, FitReport]
_Fit = Callable[[Answers | None], _Fitted]


@long_work
def fit_table(
    table: Location | Frame,
    answers: Location | Frame | Answers | None = None,
    *,
    codes: str | None = None,
    points: str | None = None,
    labels: Location | Mapping[object, object] | Frame | None = None,
    method: str = "auto",
    loss: str = "squared",
    prior: float | None = None,
    error_rate: str | float = "auto",
    classes: int | str | None = None,
    model: str | None = None,
    max_unlabeled: int | None = None,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    text: Sequence[str] = (),
    images: Sequence[str] = (),
    image_root: Location | None = None,
    embedding: Location | None = None,
    sheet: str | None = None,
    skip_rows: int | None = None,
    missing: str = "auto",
    max_categories: int = 50,
    answer_columns: Mapping[str, str] | None = None,
    answer_words: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    exclude_annotators: str | Sequence[str] = (),
    engine: str | Engine = MEMORY,
) -> TableModel:
    """Learn a classifier of the rows of a table from same/different answers about them.

    Columns are standardised, text columns become one feature a category, settings are chosen by
    cross-validation on the answers alone, and the accuracy is estimated from held-out answers: no
    class label is needed.

    Parameters
    ----------
    table : str, path-like or frame
        .csv, .tsv, .jsonl, .parquet, .xlsx or .svm (svmlight), a folder of Parquet files, or a
        pandas, polars or pyarrow frame.
    answers : str, path-like, frame or Answers, optional
        As :func:`~sdulearn.answers.read_answers` takes them. Either these or ``codes``.
    codes : str, optional
        A column of the table that holds pair codes: +k at both ends of similar pair k, -k at both
        ends of dissimilar pair k, 0 elsewhere.
    points : str, optional
        With ``codes``, a column of whole numbers: rows with equal ones show the same point. Without
        it every row is a point of its own.
    labels : str, path-like, frame or mapping, optional
        A few ids with the names of their classes, which the joint likelihood learns from, too.
    method : {"auto", "joint", "su", "du", "sd", "sdsu", "sddu", "sudu"}, default="auto"
        The joint likelihood ("auto" is the same), or a risk of the paper.
    loss : {"squared", "double_hinge", "logistic"}, default="squared"
        For the risks of the paper.
    prior : float, optional
        Share of class +1, where it is known; for two classes.
    error_rate : "auto" or float, default="auto"
        Probability that an answer is wrong, for the joint likelihood; "auto" estimates it for each
        annotator, or takes the rate at which ``sdulearn ask --private`` flipped the answers.
    classes : int or "auto", optional
        Number of classes, or "auto" for the fewest within one standard error of the best likelihood
        of held-out answers; by default two, or as many as ``labels`` names or match questions have
        found. More than two are for the joint likelihood.
    model : {"auto", "linear", "boosted"}, optional
        Linear, boosted trees (needs ``pip install 'sdulearn[boosting]'``), or, by default and with
        "auto", whichever makes held-out answers likelier; linear without LightGBM, and with fewer
        than 60 answers, more than 100 features, more than two classes, or another method. With
        "auto" a finding says so.
    max_unlabeled : int, optional
        Most rows to use as unlabeled, drawn at random; by default 20,000, or, for the risks of the
        paper with another engine than "memory", every row.
    id_column : str, optional
        The column of ids, or "" for row numbers from 0; by default found by the ids of the answers.
    drop : sequence of str
        Columns to leave out.
    categories : sequence of str
        Columns of texts that are categories even though most of them look like numbers.
    text : sequence of str
        Columns of sentences: weighted words and pieces of words become up to 150 features each
        (TF-IDF and a truncated SVD). A column of more than ``max_categories`` different texts of
        three words and more is read so by itself.
    images : sequence of str
        Columns with names of picture files: colours and gradients become up to 100 features each
        (needs ``pip install 'sdulearn[images]'``).
    image_root : str or path-like, optional
        The folder that pictures are in; by default that of the table.
    embedding : str or path-like, optional
        A .npy or .parquet file of vectors that are features too: one for each row of the table, in
        its order, or in a .parquet file with a column of ids that the table has too.
    sheet : str, optional
        Name of the sheet of a workbook, or its number from 1; by default the first one.
    skip_rows : int, optional
        Lines above the header of a CSV file or a sheet; by default blank lines and titles are
        recognised.
    missing : {"auto", "error", "mean"}, default="auto"
        Missing values. "auto": trees take them as they are; linear models take the column's mean,
        and from ten gaps and 1% of the rows on, a feature says where they are; a missing category is
        one of its own. "error" refuses them, "mean" puts in the mean (most frequent category, mean
        picture) and no more. A missing text is an empty one; "auto" refuses a missing picture, too.
    max_categories : int, default=50
        Most different texts that a text column may hold.
    answer_columns, answer_words : mapping, optional
        ``columns`` and ``words`` of :func:`~sdulearn.answers.read_answers`.
    skip_bad : bool, default=False
        Leave out answers that cannot be used instead of refusing them.
    exclude_annotators : "worst" or sequence of str, optional
        People whose answers are left out in a second fit; a finding says what that changes. "worst":
        all whose error rate is above 0.3 even at the low end of its interval.
    engine : {"memory", "stream", "dask"} or Engine, default="memory"
        Read the table row group by row group: one after another, several at a time on all cores, or
        on a Dask cluster. Only the rows that are needed are kept, whichever it is.

    Returns
    -------
    TableModel
        Predicts from raw tables; ``report`` says what was read and found.

    See Also
    --------
    sdulearn.answers.check_answers : Contradictions among the answers.
    sdulearn.load_model : Read a model that was saved.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sdulearn import fit_table
    >>> data = load_breast_cancer(as_frame=True)
    >>> points = data.data.assign(id=[f"p{k}" for k in range(len(data.data))])
    >>> same = (data.target.to_numpy()[:200] == data.target.to_numpy()[200:400]).astype(int)
    >>> answers = pd.DataFrame({"id_a": points.id[:200], "id_b": points.id[200:400].array, "label": same})
    >>> model = fit_table(points, answers)
    >>> model.report.n_similar, model.report.n_dissimilar
    (101, 99)
    >>> round(model.report.accuracy.value, 2)
    0.97
    >>> model.predict(points)[:3]
    array([-1, -1, -1])
    """
    options = FitOptions.among(locals())
    if (answers is None) == (codes is None):
        raise InputError("Give either `answers` or `codes`, a column of the table with pair codes.")
    given = None
    if answers is not None:
        given = read_answers(answers, columns=answer_columns, words=answer_words)
        options = options.for_answers(given)
    labelled = None if labels is None else read_labels(labels)
    with nullcontext(engine) if isinstance(engine, Engine) else open_engine(engine) as where:
        fit = partial(_fit, table, labelled, options, where)
        found, report = _fit_without(fit, given, options) if exclude_annotators else fit(given)
    return replace(found, report=report)


def _fit_without(fit: _Fit, answers: Answers | None, options: FitOptions) -> _Fitted:
    """Fit with and without the answers of some people, and say what changes."""
    option = "`exclude_annotators`"
    options.need_joint(option)
    if answers is None or answers.annotators is None:
        raise InputError(f"{option} needs answers that say who gave them, in a column `annotator`.")
    people = answers.annotator_names
    worst = options.exclude_annotators == "worst"
    named = [] if worst else np.atleast_1d(options.exclude_annotators).tolist()
    if unknown := [name for name in named if name not in people]:
        raise InputError(f"{option}: nobody is called {quoted(unknown[0])}; there are {listed(people)}.")
    nobody = InputError(f"{option} leaves nobody of {listed(people)}. Ask others, or name fewer.")
    if len(set(named)) == len(people):
        raise nobody
    model, report = fit(answers)
    if worst:
        named = [one.name for one in report.annotators if one.name and one.low > _WORST_RATE]
    if len(set(named)) == len(people):
        raise nobody
    left_out = np.isin(answers.annotators, named)
    details = {"names": named, "limit": _WORST_RATE, "n_answers": int(left_out.sum())}
    before = _quality(model, report)
    if named:
        model, report = fit(some_answers(answers, ~left_out))
    details |= {"before": before, "after": _quality(model, report)}
    found = Finding("annotators_excluded", "info", details)
    return model, replace(report, findings=(found, *report.findings))


def _quality(model: TableModel, report: FitReport) -> tuple[float, float]:
    """The accuracy, or the agreement of more than two classes, and the share of wrong answers."""
    found = report.accuracy if report.agreement is None else report.agreement.agreement
    return found.value if found else 0.5, model.estimator.answer_model_.error_rate.value


def _fit(
    table: Location | Frame,
    labels: Labels | None,
    options: FitOptions,
    engine: Engine,
    answers: Answers | None,
) -> _Fitted:
    """Choose settings, judge them on held-out answers, fit, name the classes, and report."""
    started = time.perf_counter()
    data, options = _prepared(gather(table, answers, labels, options, engine), options)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data, n_classes, interval = _numbered(options, data)
        choice, reasons = choose(options, data, n_classes)
        chosen, kind, _ = choice
        if data.columns.keep_gaps and hasattr(chosen, "coef_"):
            data = data.without_gaps()
        if data.random is not None and options.prior is None and len(chosen.classes_) == 2:
            chosen.prior_ = prior_of_random_points(chosen, data)
        parts, accuracy, agreement, doubts = judge(choice, options, data)
        importances = column_importances(chosen, parts, data)
        estimator = chosen if not data.parts else fit_on_all(chosen, options, data, engine)
    model, n_right = _named(estimator, data, labels)
    if options.is_joint:
        model = replace(model, asked=_asked(estimator, data))
    checks = _checks(options, data, estimator.prior_, accuracy, n_right)
    shares = model.decide(data.X[data.unlabeled] if len(data.unlabeled) else data.X)[1]
    report = FitReport(
        table=Path(str(table)).name if is_location(table) else "the table",
        **_given(data, options, chosen),
        accuracy=accuracy,
        prior=estimator.prior_,
        n_labels_right=n_right,
        findings=(*_noted(caught, estimator, data), *checks, *doubts, *reasons),
        agreement=agreement,
        class_shares=() if shares is None else tuple(shares.mean(axis=0).tolist()),
        classes=model.classes,
        n_classes_interval=getattr(chosen, "n_classes_interval_", None) or interval,
        model_choice=kind,
        importances=importances,
        dependences=column_dependences(model, data.X, importances),
        seconds={"reading": began - started, "fitting": time.perf_counter() - began},
    )
    return model, report


def _prepared(data: TrainingData, options: FitOptions) -> tuple[TrainingData, FitOptions]:
    """What the answers decide: no pull to a prior of chosen questions, and rates that are known."""
    check_enough(data, options)
    if data.random is not None and options.prior is None:
        # The counts of chosen questions imply no prior, and random ones are few: nothing pulls.
        options = replace(options, prior_strength=0.0)
    if options.error_rate != "auto":
        return data, options
    if data.answers is not None and (audited := audited_rates(data.answers)):
        return data, replace(options, error_rate=audited)
    return (data, options) if data.certainty is None else _calibrated(data, options)


def _calibrated(data: TrainingData, options: FitOptions) -> tuple[TrainingData, FitOptions]:
    """Soft answers: an annotator for each certainty of a person, and their error rates."""
    assert data.certainty is not None
    options.need_joint("answers with a certainty")
    who = np.zeros(len(data.ends), dtype=np.int64) if data.annotators is None else data.annotators
    parts, people, stated = split_by_certainty(who, data.certainty)
    graph = AnswerGraph.from_answers(data.ends, data.similar, annotators=parts, n_points=len(data.ids))
    named = max(2, len(set(data.labels.values())))
    # Of an unknown number of classes: answers know only whether two are the same.
    asked = max(3, named) if options.classes == "auto" else options.classes
    rates = calibrated_rates(graph, people, stated, int(asked or named))
    return replace(data, annotators=parts, people=people), replace(options, error_rate=rates)


def _numbered(options: FitOptions, data: TrainingData) -> tuple[TrainingData, int | str, tuple[int, int] | None]:
    """The number of classes with its interval, and labels as numbers of these."""
    n_classes, interval = number_of_classes(options, data)
    if data.labels:
        if int(n_classes) > 2:
            options.check_many_classes(f"{n_classes} classes, as `labels` names them,")
        data = data.numbered(int(n_classes))
    return data, n_classes, interval


def _named(estimator: Estimator, data: TrainingData, labels: Labels | None) -> tuple[TableModel, int]:
    """The model with the names that labels give its classes, and how many of them it predicts."""
    n_right = 0
    if data.labels:
        points = data.columns.scaled(data.X[data.label_rows])
        predicted = estimator.orient(points, data.label_codes).predict(points)
        n_right = int(np.sum(predicted == data.label_codes))
    names = tuple(estimator.classes_.tolist())
    if labels and data.classes:
        names = labels.names(data.classes)
    return TableModel(estimator, data.columns, names), n_right


def _asked(estimator: Estimator, data: TrainingData) -> tuple[list[str], Array, Codes]:
    """Of the rows in answers: ids, probabilities by features and answers, and numbers of answers."""
    rows, pairs, weights = data.stacked
    n = data.ends.size
    y = np.asarray(pairs)[:n]
    found, first = np.unique(data.ends, return_index=True)
    point, n_answers = np.unique(y[:, 1], return_inverse=True, return_counts=True)[1:]
    posterior = estimator.posterior(rows[:n], y, None if weights is None else weights[:n])
    return [data.ids[k] for k in found.tolist()], posterior[first], n_answers[point[first]]


def _given(data: TrainingData, options: FitOptions, chosen: Estimator) -> dict[str, Any]:
    """What the fit was given; with the joint likelihood, also who was wrong and where."""
    n_points, n_independent = _worth(data, len(chosen.classes_))
    counts = ("n_rows", "n_unlabeled", "n_similar", "n_dissimilar", "n_questions")
    answers = data.answers
    found: dict[str, Any] = {
        "sdulearn": __version__,
        "settings": chosen_settings(chosen),
        "method": "joint" if options.is_joint else options.method,
        **{name: getattr(data, name) for name in counts},
        "n_labels": len(data.labels),
        "answers": data.name,
        "n_unsure": 0 if answers is None else answers.n_unsure,
        "n_points": n_points,
        "n_independent": n_independent,
        "answer_columns": {"codes": options.codes} if answers is None else answers.columns,
        "answer_words": {} if answers is None else answers.words,
        "annotators": (),
    }
    if not options.is_joint:
        return found
    # By their numbers in ``y``; 0 where it is not known who answered.
    names = ("", *(() if answers is None else answers.annotator_names))
    if data.people is not None:
        names = ("", *(names[person] for person in data.people))
    by_name: dict[str, list[Rate]] = {}
    for a, rate in chosen.answer_model_.by_annotator.items():
        by_name.setdefault(names[a], []).append(rate)
    found["annotators"] = tuple(_person(name, rates) for name, rates in by_name.items())
    found["error_rate"] = chosen.answer_model_.error_rate
    return {**found, "doubtful": most_doubtful(chosen, data, names)}


def _person(name: str, rates: Sequence[Rate]) -> AnnotatorReport:
    """One of those who answered, whose soft answers have several rates."""
    n = np.array([one.n_answers for one in rates])
    share = n / n.sum()
    value, low, high = share @ np.array([(one.value, one.low, one.high) for one in rates])
    known = all(one.identified for one in rates)
    return AnnotatorReport(name, value, low, high, known, int(n.sum()))


def _noted(caught: list[warnings.WarningMessage], estimator: Estimator, data: TrainingData) -> list[Finding]:
    """What the fits warned of, each thing once."""
    prior = estimator.prior_
    unsure = not data.labels and prior is not None and prior.identified
    found = {}
    for message, category in {str(note.message): note.category for note in caught}.items():
        if not issubclass(category, OrientationWarning):
            details = {"category": category.__name__, "message": message}
            found[message] = Finding("fit_warning", "warning", details)
        elif unsure:
            found["names_uncertain"] = Finding("names_uncertain", "warning", {})
    return list(found.values())


def _worth(data: TrainingData, n_classes: int) -> tuple[int, int]:
    """Points in the answers, and answers that do not follow from the others."""
    pairs = data.stacked[1]
    if not pairs.shares_points:
        n_answers = data.n_similar + data.n_dissimilar
        return 2 * n_answers, n_answers
    graph = AnswerGraph.from_y(pairs)
    n_points = int(np.sum(graph.degree > 0))
    if n_classes == 2:
        return n_points, graph.n_independent
    # Of more classes, "different" tells one pair of groups apart and nothing else.
    group = connect(graph.ends[graph.same > 0], graph.n_points)
    n_ties = graph.n_points - len(np.unique(group))
    apart = np.unique(np.sort(group[graph.ends[graph.same < 0]], axis=1), axis=0)
    return n_points, n_ties + len(apart)


def _checks(
    options: FitOptions,
    data: TrainingData,
    prior: PriorEstimate | None,
    accuracy: AccuracyEstimate | None,
    n_right: int,
) -> list[Finding]:
    """Where the data disagree with what the method assumes.

    With more than two classes, which have neither prior nor accuracy, neither the counts of answers
    nor odd cycles say that anything is wrong.
    """
    pairs = data.stacked[1]
    found = _without_odd_cycles(data.findings) if prior is None else [*data.findings]
    if prior is not None and options.method not in ("su", "du"):
        # These two learn from one kind of answer, in whatever number. Of loose pairs some may not have been drawn.
        if data.random is None and not pairs.shares_points:
            found += check_ratio(data.n_similar, data.n_dissimilar, options.prior)
        else:
            graph = AnswerGraph.from_y(pairs)
            found += check_answers_ratio(graph, options.prior, random_of(graph, data.random_points))
    # Without the numbers that points have in ``y``: they are not the table's ids.
    for one in check_shared_points(pairs) if prior is not None else ():
        details = {name: value for name, value in one.details.items() if name != "points"}
        found.append(replace(one, details=details))
    found += _check_population(data, pairs)
    if data.random is not None:
        found += _check_random(data, data.random)
    if prior is not None and accuracy is not None:
        found += check_outcome(prior, accuracy, bool(data.labels))
    return found + _check_labels(len(data.labels), n_right, accuracy, options.prior, prior)


def _check_labels(
    n: int, n_right: int, accuracy: AccuracyEstimate | None, given: float | None, prior: PriorEstimate | None
) -> list[Finding]:
    """Labels that the model predicts less often than its accuracy allows, and those that turn a given prior around."""
    if not n:
        return []
    found = []
    few = accuracy is not None and binomtest(n_right, n, accuracy.low, alternative="less").pvalue < LEVEL
    if few or 2 * n_right <= n:
        found.append(Finding("labels_disagree", "warning", {"n_labels": n, "n_right": n_right}))
    if prior is not None and given not in (None, prior.value):
        found.append(Finding("prior_of_other_class", "warning", {"prior": given}))
    return found


def _without_odd_cycles(findings: Sequence[Finding]) -> list[Finding]:
    """Contradictions that any number of classes leaves."""
    kept = []
    for one in findings:
        if one.code != "contradictions":
            kept.append(one)
        elif one.details["both_ways"] or one.details["closure"]:
            kept.append(replace(one, details={**one.details, "odd_cycles": 0}))
    return kept


def _check_population(data: TrainingData, pairs: Pairs) -> list[Finding]:
    """Each point counts once; nobody says that points which were chosen are a random draw."""
    names = data.columns.feature_names
    if data.points is None or not pairs.shares_points:
        drawn = data.ends if data.random is None else data.ends[data.random]
        return check_population(data.columns.filled(data.X), drawn, names, data.population)
    if len(data.X) < data.n_rows:
        # The moments of a table count its rows, so points on several do not do.
        return []
    _, first, place = np.unique(data.points, return_index=True, return_inverse=True)
    return check_population(data.columns.filled(data.X[first]), place[data.ends], names)


def _check_random(data: TrainingData, random: Mask) -> list[Finding]:
    """Where questions were chosen: too few random ones to tell anything, or ones that miss rows."""
    n_random = int(random.any(axis=1).sum())
    if n_random < ENOUGH_RANDOM:
        details = {"n_random": n_random, "n_answers": len(random)}
        return [Finding("few_random", "warning", details)]
    chosen = np.setdiff1d(data.ends, data.ends[random])
    # Where their ranks are known, none of the random sample is missing.
    unranked = data.answers is not None and data.answers.n_unranked
    if not unranked or len(chosen) < _MANY_CHOSEN * data.n_rows:
        return []
    details = {"n_chosen": len(chosen), "n_rows": data.n_rows}
    return [Finding("many_chosen", "warning", details)]
