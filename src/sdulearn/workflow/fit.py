"""``fit_table``: read a table and answers, fit a model, judge it by held-out answers, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from sdulearn import __version__, diagnostics, related_rows
from sdulearn.answer_files.read import read_answers
from sdulearn.answer_files.rows import Labels, read_labels
from sdulearn.answers.answer_model import AnswerModel, Rate, rate_of_all
from sdulearn.answers.graph import AnswerGraph, connect
from sdulearn.answers.rates import calibrated_rates, split_by_certainty
from sdulearn.answers.records import Answers, some_answers
from sdulearn.base import unseen_proba
from sdulearn.diagnostics import LEVEL
from sdulearn.errors import (
    InputError,
    OrientationWarning,
    caught_warnings,
    ignored_warnings,
    is_installed,
    listed,
    quoted,
)
from sdulearn.findings import (
    AnnotatorsExcluded,
    Contradictions,
    ErrorRateTooHigh,
    FewRandom,
    Finding,
    FitWarning,
    LabelsDisagree,
    ManyChosen,
    NamesUncertain,
    PriorOfOtherClass,
    RelatedRows,
    TextsByWords,
)
from sdulearn.io.files import Location, is_location
from sdulearn.joint.estimators import PairLogisticRegressionCV
from sdulearn.metrics.accuracy import ENOUGH_RANDOM, AccuracyEstimate
from sdulearn.prior import PriorEstimate, random_of
from sdulearn.progress import long_work
from sdulearn.reading import Missing, Reading
from sdulearn.report.records import AnnotatorReport, DoubtfulAnswer, FitReport, chosen_settings
from sdulearn.table_model import AskedRows, TableModel
from sdulearn.tables.decide import odd_values
from sdulearn.tables.features import TextFeatures
from sdulearn.tables.known_ids import ids_among
from sdulearn.types import Array, Estimator, Frame
from sdulearn.workflow import judge
from sdulearn.workflow.data import TrainingData, check_enough, gather
from sdulearn.workflow.options import FitOptions

# From this share of the rows on it matters that random questions skip chosen rows, where a log has no ranks.
_MANY_CHOSEN = 0.1


@long_work
def fit_table(
    table: Location | Frame,
    answers: Location | Frame | Answers,
    *,
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
    text_model: Location | None = None,
    sheet: str | None = None,
    skip_rows: int | None = None,
    missing: Missing = "auto",
    max_categories: int = 50,
    groups: str | None = None,
    answer_columns: Mapping[str, str] | str | None = None,
    words: Mapping[str, str] | str | None = None,
    skip_bad: bool = False,
    exclude_annotators: str | Sequence[str] = (),
) -> TableModel:
    """Train a classifier for the rows of a table from same/different answers about them.

    Columns are standardised, text columns become one feature per category, settings are chosen by cross-validation on
    the answers alone, and the accuracy is estimated from held-out answers: no class label is needed.

    Parameters
    ----------
    table : str, path-like or frame
        .csv, .tsv, .jsonl, .parquet or .xlsx, a folder of Parquet files, or a pandas, polars, pyarrow or Dask frame. It
        may be larger than memory: Parquet is read on all cores, a Dask frame by its workers, and only the rows in
        answers and a sample of all rows are kept. A pandas index is not a feature; with a name it may hold the ids.
    answers : str, path-like, frame or Answers
        As :func:`~sdulearn.answers.read_answers` takes them.
    labels : str, path-like, frame or mapping, optional
        A few ids with the names of their classes. They name the classes and train the model.
    method : {"auto", "joint", "su", "du", "sd", "sdsu", "sddu", "sudu"}, default="auto"
        The joint likelihood ("auto" is the same), or a risk of the paper.
    loss : {"squared", "double_hinge", "logistic"}, default="squared"
        For the risks of the paper.
    prior : float, optional
        Share of class +1, if it is known; for two classes.
    error_rate : "auto" or float, default="auto"
        Probability that an answer is wrong, for the joint likelihood; "auto" estimates it for each
        annotator, or takes the rate at which ``sdulearn ask --private`` flipped the answers.
    classes : int or "auto", optional
        Number of classes, or "auto" for the fewest within one standard error of the best likelihood
        of held-out answers; by default two, or as many as ``labels`` names or match questions have
        found. More than two are for the joint likelihood.
    model : {"auto", "linear", "boosted"}, optional
        Linear, boosted trees (needs ``pip install 'sdulearn[boosting]'``), or, by default and with "auto", the one with
        the higher likelihood of held-out answers; linear without LightGBM, and with fewer than 60 answers, more than
        100 features, more than two classes, or another method. With "auto" a finding reports this.
    max_unlabeled : int, optional
        Maximum number of unlabeled rows, drawn at random; by default 20,000.
    id_column : str, optional
        The column of ids, or "" for row numbers from 0; by default found by the ids of the answers.
    drop : sequence of str
        Columns to leave out.
    categories : sequence of str
        Columns of texts that are categories even though most of them look like numbers.
    text : sequence of str
        Columns of sentences: weighted words and pieces of words become up to 150 features each (TF-IDF and a truncated
        SVD). A column of more than ``max_categories`` different texts of three words and more is read so by itself.
    images : sequence of str
        Columns with names of image files: colours of 16 x 16 pixels become up to 100 features each
        (needs ``pip install 'sdulearn[images]'``).
    image_root : str or path-like, optional
        The folder of the images; by default that of the table.
    embedding : str or path-like, optional
        A .npy or .parquet file of vectors that are features too: one for each row of the table, in
        its order, or in a .parquet file with a column of ids that the table has too. Or "contrastive": a
        :class:`~sdulearn.torch.ContrastiveEncoder` learns from the rows themselves, of each column of images, or of
        all features if there is none (needs ``pip install 'sdulearn[torch]'``).
    text_model : str or path-like, optional
        Name or folder of a model of sentence embeddings, such as "all-MiniLM-L6-v2", which reads the columns of texts
        instead (needs ``pip install 'sdulearn[embeddings]'``). The model file does not contain it.
    sheet : str, optional
        Name of the sheet of a workbook, or its number from 1; by default the first one that is not hidden.
    skip_rows : int, optional
        Lines above the header of a CSV file or a sheet; by default blank lines and titles are recognised.
    missing : {"auto", "error", "mean"}, default="auto"
        Missing values. "auto": trees use them as they are; linear models use the column's mean,
        and from ten gaps and 1% of the rows on, an indicator is added; a missing category is
        one of its own. "error" refuses them, "mean" uses the mean (most frequent category, mean
        image) without an indicator. A missing text is an empty one; "auto" refuses a missing image.
    max_categories : int, default=50
        Maximum number of different texts in a column of categories.
    groups : str, optional
        A column that shows which rows belong together, such as several rows of one person, product or document: those
        with equal cells. It is not a feature. Cross-validation never splits a group, so the accuracy is that on rows
        of new groups, and its interval counts the rows of a group as dependent. A row without a value is a group
        of its own.
    answer_columns : mapping or str, optional
        ``columns`` of :func:`~sdulearn.answers.read_answers`.
    words : mapping or str, optional
        As in :func:`~sdulearn.answers.read_answers`.
    skip_bad : bool, default=False
        Leave out answers that cannot be used instead of refusing them.
    exclude_annotators : sequence of str, optional
        Annotators whose answers are left out in a second fit; a finding reports the difference.

    Returns
    -------
    TableModel
        Predicts from raw tables; ``report`` contains what was read and estimated.

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
    0.98
    >>> model.predict(points)[:3]
    array([-1, -1, -1])
    """
    reading = Reading(
        id_column=id_column,
        drop=drop,
        categories=categories,
        text=text,
        images=images,
        image_root=image_root,
        embedding=embedding,
        text_model=text_model,
        sheet=sheet,
        skip_rows=skip_rows,
        missing=missing,
        max_categories=max_categories,
        groups=groups,
    )
    options = FitOptions(
        reading=reading,
        method=method,
        loss=loss,
        prior=prior,
        error_rate=error_rate,
        classes=classes,
        model=model,
        max_unlabeled=max_unlabeled,
        skip_bad=skip_bad,
        exclude_annotators=exclude_annotators,
    )
    find_ids = partial(ids_among, table, options.reading)
    read = read_answers(answers, columns=answer_columns, words=words, table_ids=find_ids)
    return fit_answers(table, read, None if labels is None else read_labels(labels), options)


@long_work
def fit_answers(table: Location | Frame, answers: Answers, labels: Labels | None, options: FitOptions) -> TableModel:
    """Do what :func:`fit_table` does, with answers and labels that have been read."""
    options = options.for_answers(answers)
    fit = partial(_fit, table, labels, options)
    return _fit_without(fit, answers, options) if options.exclude_annotators else fit(answers)


def _fit_without(fit: Callable[[Answers], TableModel], answers: Answers, options: FitOptions) -> TableModel:
    """Fit with and without the answers of some annotators, and report the difference."""
    option = "`exclude_annotators`"
    options.need_joint(option)
    if answers.annotators is None:
        raise InputError(f"{option} needs answers that say who gave them, in a column 'annotator'.")
    people = answers.annotator_names
    excluded = np.atleast_1d(options.exclude_annotators).tolist()
    if unknown := [name for name in excluded if name not in people]:
        raise InputError(f"{option}: nobody is called {quoted(unknown[0])}; there are {listed(people)}.")
    if len(set(excluded)) == len(people):
        raise InputError(f"{option} leaves nobody of {listed(people)}. Ask others, or name fewer.")
    left_out = np.isin(answers.annotators, excluded)
    before = _quality(fit(answers))
    model = fit(some_answers(answers, ~left_out))
    assert model.report is not None
    finding = AnnotatorsExcluded(
        names=tuple(excluded),
        n_answers=some_answers(answers, left_out).n_questions,
        measure="accuracy" if model.report.agreement is None else "agreement",
        before=before,
        after=_quality(model),
    )
    return replace(model, report=replace(model.report, findings=(finding, *model.report.findings)))


def _quality(model: TableModel) -> tuple[float, float]:
    """Return the accuracy (agreement with more than two classes) and the share of wrong answers."""
    report: Any = model.report
    judged = report.accuracy if report.agreement is None else report.agreement.agreement
    return judged.value, report.error_rate.value


def _fit(table: Location | Frame, labels: Labels | None, options: FitOptions, answers: Answers) -> TableModel:
    """Read, choose a model and its settings, judge it by held-out answers, and report."""
    started = time.perf_counter()
    data, options = _with_known_rates(gather(table, answers, labels, options), options)
    began = time.perf_counter()
    with caught_warnings() as caught:
        n_classes, interval = judge.number_of_classes(options, data)
        if data.labels:
            data = data.numbered(int(n_classes))
        choice, reasons = judge.choose(options, data, n_classes)
        chosen, kind, _ = choice
        if data.columns.keep_gaps and hasattr(chosen, "coef_"):
            data = data.without_gaps()
        # Rates of certainties have intervals, too.
        few_or_soft = data.random is not None or data.people is not None
        if few_or_soft and options.prior is None and len(chosen.classes_) == 2:
            chosen.prior_ = judge.prior_of_random_points(chosen, data)
        folds, accuracy, agreement, doubts = judge.judge(choice, options, data)
        prior = chosen.prior_
        if (
            accuracy is not None
            and prior is not None
            and (prior.confidence is None or prior.n_similar + prior.n_dissimilar)
        ):
            # One share of the larger class, wherever it is compared with the model.
            accuracy = replace(accuracy, majority=max(prior.value, 1 - prior.value))
        importances = judge.column_importances(chosen, folds, data)
    model, n_right = _with_names(chosen, data, labels, options)
    checks = _checks(options, data, chosen.prior_, accuracy, n_right)
    if accuracy is not None and any(finding.code == "pairs_by_features" for finding in checks):
        accuracy = replace(accuracy, basis="chosen pairs")
    shares = model.decide(data.X[data.unlabeled] if len(data.unlabeled) else data.X)[1]
    n_points, n_independent = _independent_answers(data, len(chosen.classes_))
    questions = answers.questions
    annotators, error_rate, doubtful = _wrong_answers(chosen, data) if options.is_joint else ((), None, ())
    report = FitReport(
        sdulearn=__version__,
        method="joint" if options.is_joint else options.method,
        settings=chosen_settings(chosen),
        table=Path(str(table)).name if is_location(table) else "the table",
        answers=Path(answers.name).name,
        n_rows=data.n_rows,
        n_unlabeled=len(data.unlabeled),
        n_similar=data.n_similar,
        n_dissimilar=data.n_dissimilar,
        n_unsure=answers.n_unsure,
        n_points=n_points,
        n_independent=n_independent,
        n_questions=None if questions is None else len(np.unique(questions[data.used])),
        groups=options.reading.groups or "",
        n_groups=0 if data.groups is None else len(np.unique(data.groups[data.ends])),
        answer_columns=answers.columns,
        answer_words=answers.words,
        accuracy=accuracy,
        prior=chosen.prior_,
        annotators=annotators,
        error_rate=error_rate,
        doubtful=doubtful,
        n_labels=len(data.labels),
        n_labels_right=n_right,
        findings=(*_warnings(caught, chosen, data), *checks, *doubts, *reasons),
        agreement=agreement,
        class_shares=() if shares is None else tuple(shares.mean(axis=0).tolist()),
        classes=model.classes,
        n_classes_interval=getattr(chosen, "n_classes_interval_", None) or interval,
        model_choice=kind,
        importances=importances,
        dependences=judge.column_dependences(model, data.X, importances),
        seconds={"reading": began - started, "fitting": time.perf_counter() - began},
    )
    return replace(model, report=report)


def _with_known_rates(data: TrainingData, options: FitOptions) -> tuple[TrainingData, FitOptions]:
    """Set the error rates that audits, or certainties that people stated, imply."""
    check_enough(data, options)
    if options.error_rate != "auto":
        return data, options
    if audited := diagnostics.audited_rates(data.answers):
        return data, replace(options, error_rate=audited)
    if data.answers.certainty is None:
        return data, options
    # Soft answers: each certainty of a person counts as an annotator with an error rate.
    options.need_joint("answers with a certainty")
    who = np.zeros(len(data.ends), dtype=np.int64) if data.annotators is None else data.annotators
    parts, people, stated = split_by_certainty(who, data.answers.certainty[data.used])
    graph = AnswerGraph.from_answers(
        data.ends, data.similar, annotators=parts, questions=data.questions, n_points=len(data.ids)
    )
    n_classes = max(2, len(set(data.labels.values())))
    if options.classes is not None:
        # With an unknown number of classes, two rows may be different without being opposite.
        n_classes = max(3, n_classes) if options.classes == "auto" else int(options.classes)
    rates = calibrated_rates(graph, people, stated, n_classes)
    if n_classes == 2:
        # Held-out answers show how often they are wrong.
        with ignored_warnings(Warning):
            without = PairLogisticRegressionCV(prior=options.prior).fit(*data.without_gaps().stacked)
        whole = without.answer_model_.error_rate
    else:
        whole = rate_of_all(graph, n_classes)
    model = AnswerModel.stated(rates, graph, whole)
    return replace(data, annotators=parts, people=people), replace(options, error_rate=model)


def _with_names(
    estimator: Estimator, data: TrainingData, labels: Labels | None, options: FitOptions
) -> tuple[TableModel, int]:
    """Return the model with class names and posteriors, and how many labels it predicts."""
    n_right = 0
    names = tuple(estimator.classes_.tolist())
    if data.labels and labels:
        points = data.columns.scaled(data.X[data.label_rows])
        predicted = estimator.orient(points, data.label_codes).predict(points)
        n_right = int(np.sum(predicted == data.label_codes))
        names = labels.names(data.classes)
    reading = options.reading.completed(data.columns.id_column, data.n_rows)
    model = TableModel(estimator, data.columns, names, reading=reading)
    if not options.is_joint:
        return model, n_right
    rows, graph = data.stacked
    # Rows of answers come first.
    asked, first = np.unique(data.ends, return_index=True)
    asked_rows = AskedRows(
        ids=[data.ids[k] for k in asked.tolist()],
        by_model=estimator.predict_proba(rows[first]),
        unseen=unseen_proba(estimator, rows, graph)[first],
        probabilities=estimator.posterior(rows, graph)[first],
        n_answers=graph.degree[graph.row_point[first]],
    )
    return replace(model, asked=asked_rows), n_right


def _wrong_answers(
    chosen: Estimator, data: TrainingData
) -> tuple[tuple[AnnotatorReport, ...], Rate, tuple[DoubtfulAnswer, ...]]:
    """Return error rates of annotators and of all answers, and the most doubtful answers."""
    # By annotator number in ``y``; number 0 stands for unknown annotators.
    names = ("", *data.answers.annotator_names)
    model: AnswerModel = chosen.answer_model_
    people = model if data.people is None else model.of_people(data.people)
    graph = data.stacked[1]
    who = graph.annotators if data.people is None else np.array([0, *data.people])[graph.annotators]
    # What people gave are answers to questions, of which one may imply many pairs.
    n_answers = {a: len(np.unique(graph.question[who == a])) for a in people.by_annotator}
    annotators = tuple(
        AnnotatorReport(names[a], rate.value, rate.low, rate.high, rate.identified, n_answers[a])
        for a, rate in people.by_annotator.items()
    )
    if data.people is not None:
        names = ("", *(names[person] for person in data.people))
    return annotators, model.error_rate, judge.most_doubtful(chosen, data, names)


def _warnings(caught: Sequence[tuple[str, type[Warning]]], estimator: Estimator, data: TrainingData) -> list[Finding]:
    """Return the warnings of the fits as findings, each message once."""
    prior = estimator.prior_
    found: dict[str, Finding] = {}
    for message, category in dict(caught).items():
        if not issubclass(category, OrientationWarning):
            found[message] = FitWarning(message=message, category=category.__name__)
        elif not data.labels and prior is not None and prior.identified:
            found["names_uncertain"] = NamesUncertain()
    return list(found.values())


def _independent_answers(data: TrainingData, n_classes: int) -> tuple[int, int]:
    """Count points in the answers, and answers that do not follow from the others."""
    graph = data.stacked[1]
    n_points = int(np.sum(graph.degree > 0))
    if n_classes == 2:
        return n_points, graph.n_independent
    # With more classes, "different" only tells two groups of "same" answers apart.
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
    """Return findings where the data disagree with the assumptions of the method."""
    graph = data.stacked[1]
    # More than two classes, which have no prior, explain odd cycles and any share of similar answers.
    found = _without_odd_cycles(data.findings) if prior is None else [*data.findings]
    if prior is not None and options.method not in ("su", "du"):
        # SU and DU learn from one kind of answer, in any number.
        found += diagnostics.check_ratio(graph, options.prior, random_of(graph, data.random_points))
    # Questions that `ask` chose share points by design.
    if prior is not None and not data.answers.n_chosen:
        found += diagnostics.check_shared_points(graph)
    # Points in answers are compared with the table, each once; only random ones count.
    X, names = data.columns.filled(data.X), data.columns.feature_names
    drawn = data.ends if data.random is None else data.ends[data.random]
    found += diagnostics.check_population(X, drawn, names, data.population)
    parts = data.columns.parts
    found += odd_values((one.name, data.X[:, part.start]) for one, part in parts if one.kind == "number")
    found += [*_related_rows(data, X), *_texts_by_words(data)]
    if data.random is None:
        found += diagnostics.check_pairing(X, data.ends, names)
    else:
        n_random = int(data.random.any(axis=1).sum())
        chosen = np.setdiff1d(data.ends, drawn)
        if n_random < ENOUGH_RANDOM:
            found.append(FewRandom(n_random=n_random, n_answers=len(data.ends)))
        elif data.answers.n_unranked and len(chosen) >= _MANY_CHOSEN * data.n_rows:
            found.append(ManyChosen(n_chosen=len(chosen), n_rows=data.n_rows))
    if prior is not None and accuracy is not None:
        found += diagnostics.check_outcome(prior, accuracy, bool(data.labels))
    found += _check_rate(options, accuracy)
    n = len(data.labels)
    few = accuracy is not None and n and binomtest(n_right, n, accuracy.low, alternative="less").pvalue < LEVEL
    if n and (few or 2 * n_right <= n):
        found.append(LabelsDisagree(n_labels=n, n_right=n_right))
    if n and prior is not None and options.prior not in (None, prior.value):
        found.append(PriorOfOtherClass(prior=options.prior))
    return found


def _check_rate(options: FitOptions, accuracy: AccuracyEstimate | None) -> list[Finding]:
    """Return a finding if the model agrees with more answers than can be right by the error rate that was given."""
    rate = options.error_rate
    if accuracy is None or not isinstance(rate, Real):
        return []
    n = round(accuracy.n_answers)
    n_right = round(accuracy.agreement * n) if n else 0
    if not n or binomtest(n_right, n, 1 - float(rate), alternative="greater").pvalue >= LEVEL:
        return []
    rates = {"error_rate": float(rate), "agreement": accuracy.agreement}
    return [ErrorRateTooHigh(**rates, n_answers=accuracy.n_answers, level=LEVEL)]


def _related_rows(data: TrainingData, X: Array) -> list[Finding]:
    """Return a finding if rows seem to belong together and nobody has said how."""
    if data.groups is not None:
        return []
    rows = related_rows.some_rows(np.unique(data.ends))
    features = X[rows]
    values = data.columns.values(features)
    found = []
    for k, (column, part) in enumerate(data.columns.parts):
        whole = column.kind == "category" or (column.kind == "number" and np.all(values[:, k] % 1 == 0))
        if whole and (key := related_rows.repeated_key(values[:, k], column.name, np.delete(features, part, axis=1))):
            found.append((key.n_rows, column.name, key))
    if found:
        _, name, related = max(found, key=lambda key: key[0])
    elif (copies := related_rows.near_copies(features)) is not None:
        name, related = "", copies
    else:
        return []
    return [RelatedRows(column=name, n_rows=related.n_rows, n_asked=len(rows), n_groups=related.n_groups)]


def _texts_by_words(data: TrainingData) -> list[Finding]:
    """Return a note that recommends sentence embeddings where texts are read without."""
    texts = [name for name, made in data.columns.transformers.items() if isinstance(made, TextFeatures)]
    return [TextsByWords(columns=tuple(texts), installed=is_installed("sentence_transformers"))] if texts else []


def _without_odd_cycles(findings: Sequence[Finding]) -> list[Finding]:
    """Leave out contradictions that more than two classes explain."""
    kept = []
    for one in findings:
        if not isinstance(one, Contradictions):
            kept.append(one)
        elif count := one.both_ways + one.closure:
            kept.append(replace(one, count=count, odd_cycles=0))
    return kept
