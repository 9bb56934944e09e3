"""``fit_table``: a model of a table from answers about its rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from sdulearn.answers.checks import check_answers
from sdulearn.answers.graph import AnswerGraph, connect
from sdulearn.answers.records import Answers, flip_rate
from sdulearn.diagnostics import (
    LEVEL,
    Finding,
    check_component_ratio,
    check_contradictions,
    check_outcome,
    check_population,
    check_ratio,
    check_shared_points,
    check_source,
)
from sdulearn.errors import InputError, OrientationWarning
from sdulearn.extras import require
from sdulearn.io.answers import read_answers
from sdulearn.io.files import Location
from sdulearn.io.labels import Labelled, class_labels, read_labels
from sdulearn.io.tables import TableOptions, read_table
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.metrics import AccuracyEstimate, ClassAgreement
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.prior import random_of
from sdulearn.report.facts import chosen_settings
from sdulearn.report.records import AnnotatorReport, ColumnImportance, FitReport
from sdulearn.table_model import TableModel
from sdulearn.types import Array, Estimator, Frame, Rows
from sdulearn.version import __version__
from sdulearn.workflow.engines import MEMORY, Engine, open_engine
from sdulearn.workflow.explaining import TableColumns, column_dependences, column_importances
from sdulearn.workflow.judging import (
    accuracy_of_two,
    agreement_of_many,
    check_agreement,
    models_of_folds,
    most_doubtful,
    prior_of_random_points,
)
from sdulearn.workflow.methods import METHODS, is_joint
from sdulearn.workflow.models import MODELS, FittedModel, compares, fit_model, number_of_classes, why_linear
from sdulearn.workflow.pair_codes import code_sums, drawn_questions, source_of_codes
from sdulearn.workflow.streamed import data_in_passes
from sdulearn.workflow.training import (
    AnswerSource,
    Request,
    TrainingData,
    check_enough,
    drawn_rows,
    fitted_scaler,
    numbering_hint,
    refuse_chosen,
    rows_of_ids,
    source_of_answers,
    usable_questions,
)

# Of a choice; for the accuracy there are more, so that each model is nearly the one that is kept.
_MAX_FOLDS = 5
# Fewer random questions than this tell little of an accuracy.
_ENOUGH_RANDOM = 10
# A random question passes over rows that were asked about before: with this share of all rows that is seen.
_MANY_CHOSEN = 0.1


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
    missing: str = "error",
    max_categories: int = 50,
    answer_columns: Mapping[str, str] | None = None,
    answer_words: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    engine: str | Engine = MEMORY,
) -> TableModel:
    """Learn a classifier of the rows of a table from same/different answers about them.

    Columns are standardised, text columns become one feature a category, settings are chosen by
    cross-validation on the answers alone, and the accuracy is estimated from held-out answers: no class label
    is needed.

    Parameters
    ----------
    table : str, path-like or frame
        .csv, .tsv, .jsonl, .parquet, .xlsx or .svm (svmlight), a folder of Parquet files, or a pandas, polars
        or pyarrow frame.
    answers : str, path-like, frame or Answers, optional
        As :func:`~sdulearn.answers.read_answers` takes them. Either these or ``codes``.
    codes : str, optional
        A column of the table that holds pair codes: +k at both ends of similar pair k, -k at both ends of
        dissimilar pair k, 0 elsewhere.
    points : str, optional
        With ``codes``, a column of whole numbers that say which point a row shows, where answers share points:
        rows with equal numbers show the same one. Without it every row is a point of its own.
    labels : str, path-like, frame or mapping, optional
        A few ids with the names of their classes. The joint likelihood learns from them, and they settle the names.
    method : {"auto", "joint", "su", "du", "sd", "sdsu", "sddu", "sudu"}, default="auto"
        The joint likelihood ("auto" is the same), or a risk of the paper.
    loss : {"squared", "double_hinge", "logistic"}, default="squared"
        For the risks of the paper.
    prior : float, optional
        Share of class +1, where it is known; for two classes.
    error_rate : "auto" or float, default="auto"
        Probability that an answer is wrong, for the joint likelihood; "auto" estimates it for each annotator from
        questions asked again, cycles of answers and, between several annotators, their disagreement. Of answers that
        ``sdulearn ask --private`` flipped it is the rate of the flips, which the log says.
    classes : int or "auto", optional
        Number of classes, or "auto" for the fewest within one standard error of the best likelihood of held-out answers
        (``report.n_classes_interval`` says how many the answers allow); by default two, or as many as ``labels``
        names. More than two are for the joint likelihood in memory.
    model : {"auto", "linear", "boosted"}, optional
        Linear, boosted trees (in memory; needs LightGBM, ``pip install 'sdulearn[boosting]'``), or, by default and
        with "auto", whichever makes held-out answers likelier; that is linear without LightGBM, and with fewer than
        60 answers, more than 100 features, more than two classes, or another method or engine.
        ``report.model_choice`` has the numbers. With "auto" a finding says why there was no comparison.
    max_unlabeled : int, optional
        Most rows to use as unlabeled, drawn at random; by default 20,000, or, for the risks of the paper with
        another engine than "memory", every row.
    id_column : str, optional
        The column of ids, or "" for row numbers from 0; by default found by the ids of the answers.
    drop : sequence of str
        Columns to leave out.
    categories : sequence of str
        Columns of texts that are categories even though most of them look like numbers.
    missing : {"error", "mean"}, default="error"
        Refuse missing values, or put in the column's mean (most frequent category).
    max_categories : int, default=50
        Most different texts that a text column may hold.
    answer_columns, answer_words : mapping, optional
        ``columns`` and ``words`` of :func:`~sdulearn.answers.read_answers`.
    skip_bad : bool, default=False
        Leave out answers that cannot be used instead of refusing them.
    engine : {"memory", "stream", "dask"} or Engine, default="memory"
        Read the table whole, or row group by row group (Parquet only), here or on a Dask cluster.

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
    0.96
    >>> model.predict(points)[:3]
    array(['-1', '-1', '-1'], dtype=object)
    """
    options = TableOptions(id_column, drop, missing, max_categories, codes, categories, points)
    request = Request(
        table, options, method, loss, prior, error_rate, max_unlabeled, skip_bad, classes, model, _engine_name(engine)
    )
    _check_choices(request, answers)
    given = None
    if answers is not None:
        given = read_answers(answers, columns=answer_columns, words=answer_words)
        request = _with_known_flips(request, given)
    labelled = None if labels is None else read_labels(labels)
    began = time.perf_counter()
    with _engine(engine) as where:
        if where is None:
            data = _data_in_memory(request, given, labelled)
        else:
            data = data_in_passes(request, where, given, labelled)
        read = time.perf_counter()
        if not is_joint(method):
            refuse_chosen(data.source.name, data.questions, method)
        check_enough(data.source.name, data.questions, method)
        return _fit(request, data, began, read)


def _check_choices(request: Request, answers: object) -> None:
    options = request.options
    if (answers is None) == (options.codes is None):
        raise InputError("Give either `answers` or `codes`, the column of the table that holds pair codes.")
    if options.points is not None and options.codes is None:
        raise InputError("`points` goes with `codes`: by `answers`, equal ids are the same point. Leave it out.")
    choices = {
        "method": (request.method, METHODS),
        "loss": (request.loss, tuple(TRAINING_LOSSES)),
        "missing": (options.missing, ("error", "mean")),
        "model": (request.model or "auto", MODELS),
    }
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise InputError(f"`{name}` must be one of {', '.join(allowed)}; got {value!r}.")
    if request.prior is not None and not 0 < request.prior < 1:
        raise InputError(f"`prior` must lie between 0 and 1, got {request.prior!r}.")
    number = request.classes
    if number not in (None, "auto") and not (isinstance(number, Integral) and number >= 2):
        raise InputError(f"`classes` must be a whole number from 2 on or 'auto', got {number!r}.")
    if number is not None and number != 2:
        _check_many_classes(request, f"`classes={number!r}`")
    if request.model == "boosted":
        _need_memory_and_joint(request, "`model='boosted'`")
        require("lightgbm", "boosting")


def _check_many_classes(request: Request, what: str) -> None:
    """More than two classes, or a search for their number."""
    _need_memory_and_joint(request, what)
    if request.prior is not None:
        raise InputError(f"`prior` is the share of class +1 of two; with {what} leave it out.")


def _need_memory_and_joint(request: Request, what: str) -> None:
    if not is_joint(request.method):
        raise InputError(f"{what} needs the joint likelihood: give `method='joint'`, not {request.method!r}.")
    if request.engine != MEMORY:
        raise InputError(f"{what} needs the table in memory: give `engine='memory'`.")


def _with_known_flips(request: Request, answers: Answers) -> Request:
    """The error rate of answers that were flipped before they were stored is known."""
    if answers.epsilon is None:
        return request
    _need_memory_and_joint(request, f"{answers.name}: answers that were flipped (epsilon {answers.epsilon:g})")
    return replace(request, error_rate=flip_rate(answers.epsilon)) if request.error_rate == "auto" else request


def _engine_name(engine: str | Engine) -> str:
    return engine if isinstance(engine, str) else type(engine).__name__


def _engine(engine: str | Engine) -> AbstractContextManager[Engine | None]:
    if isinstance(engine, Engine):
        return nullcontext(engine)
    return nullcontext(None) if engine == MEMORY else open_engine(engine)


def _data_in_memory(request: Request, answers: Answers | None, labelled: Labelled | None) -> TrainingData:
    """Read the whole table."""
    ids = set() if answers is None else set(answers.ids.ravel().tolist())
    table = read_table(request.table, answer_ids=ids, **asdict(request.options))
    n_rows = table.X.shape[0]
    layout = table.layout
    place = {} if answers is None and not labelled else rows_of_ids(table.ids)
    limit = request.most_unlabeled(layout.width)
    findings: list[Finding] = []
    if answers is None:
        assert table.codes is not None
        assert request.options.codes is not None
        sums = code_sums(table.codes, np.arange(n_rows), None, limit, table.points)
        questions = drawn_questions(request.table_name, request.options.codes, sums)
        source = source_of_codes(request.table_name, request.options.codes, sums)
        unlabeled = np.sort(sums.unlabeled.rows)
    else:
        hint = numbering_hint(layout.id_column, n_rows)
        questions = usable_questions(answers, place, request.skip_bad, hint, by_majority=not is_joint(request.method))
        source = source_of_answers(answers, questions)
        findings = check_contradictions(check_answers(answers), answers.annotators) + check_source(answers)
        unlabeled = drawn_rows(n_rows, limit)
    labels = class_labels(labelled, place) if labelled else None
    return TrainingData(
        layout,
        n_rows,
        table.X,
        fitted_scaler(table.X),
        source,
        questions,
        unlabeled,
        labels,
        findings=findings,
        points=table.points,
        ids=table.ids,
    )


def _fit(request: Request, data: TrainingData, began: float, read: float) -> TableModel:
    """Choose settings, judge them on held-out answers, fit, name the classes, and report."""
    if data.questions.random is not None and request.prior is None:
        # The counts of chosen questions imply no prior, and random ones are few: nothing pulls.
        request = replace(request, prior_strength=0.0)
    counts = [n for n in (data.questions.n_similar, data.questions.n_dissimilar) if n]
    folds = min([_MAX_FOLDS, *counts])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        n_classes, interval = number_of_classes(request, data, folds)
        data = _numbered(request, data, n_classes)
        rows, y, weights = data.stacked()
        pairs = read_pairs(y)
        fitted = fit_model(request, n_classes, rows, y, weights, folds)
        chosen = fitted.estimator
        random_points = data.random_points(len(y))
        if random_points is not None and request.prior is None and len(chosen.classes_) == 2:
            chosen.prior_ = prior_of_random_points(fitted, rows, pairs, weights, random_points)
        outcome = _judge(request, fitted, rows, pairs, weights, data)
        estimator = chosen if data.refit is None else data.refit(chosen)
    n_right = _name_classes(estimator, data)
    findings = [
        *_noted(caught, estimator, data),
        *_disagreements(request, data, pairs, estimator, outcome, n_right),
        *_noted_reason(request, why_linear(request, n_classes, rows, y)),
    ]
    model = TableModel(estimator, data.layout, data.scaler, _class_names(estimator, data))
    report = FitReport(
        sdulearn=__version__,
        method="joint" if is_joint(request.method) else request.method,
        settings=chosen_settings(chosen),
        table=Path(request.table_name).name,
        n_rows=data.n_rows,
        n_unlabeled=len(data.unlabeled) if data.n_unlabeled is None else data.n_unlabeled,
        **_answer_facts(data.source, pairs, len(estimator.classes_)),
        accuracy=outcome.accuracy,
        prior=estimator.prior_,
        annotators=_annotators(fitted, data.source),
        n_labels=0 if data.labels is None else len(data.labels.rows),
        n_labels_right=n_right,
        findings=tuple(findings),
        agreement=outcome.agreement,
        class_shares=_class_shares(model, data),
        n_classes_interval=getattr(chosen, "n_classes_interval_", None) or interval,
        model_choice=fitted.choice,
        doubtful=most_doubtful(fitted, rows, y, data),
        importances=outcome.importances,
        dependences=column_dependences(model, data.X, outcome.importances),
        seconds={"reading": read - began, "fitting": time.perf_counter() - read},
    )
    return replace(model, report=report)


def _answer_facts(source: AnswerSource, pairs: Pairs, n_classes: int) -> dict[str, Any]:
    """What the report says of the answers."""
    n_points, n_independent = _worth(pairs, source, n_classes)
    return {
        "answers": source.name,
        "n_similar": source.n_similar,
        "n_dissimilar": source.n_dissimilar,
        "n_unsure": source.n_unsure,
        "n_points": n_points,
        "n_independent": n_independent,
        "answer_columns": source.columns,
        "answer_words": source.words,
    }


def _numbered(request: Request, data: TrainingData, n_classes: int | str) -> TrainingData:
    """Labels as those of so many classes."""
    if data.labels is None:
        return data
    number = int(n_classes)
    if number > 2:
        _check_many_classes(request, f"{number} classes, as `labels` names them,")
    return replace(data, labels=data.labels.among(number))


def _class_names(estimator: Estimator, data: TrainingData) -> tuple[str, ...]:
    return tuple(map(str, estimator.classes_.tolist())) if data.labels is None else data.labels.names


def _class_shares(model: TableModel, data: TrainingData) -> tuple[float, ...]:
    """Mean probability of each class over the unlabeled rows."""
    X = data.X[data.unlabeled] if len(data.unlabeled) else data.X
    found = model.probability(model.decide(X))
    if found is None:
        return ()
    mean = found.mean(axis=0)
    return tuple(mean.tolist()) if mean.ndim else (1 - float(mean), float(mean))


@dataclass(frozen=True)
class _Outcome:
    """What held-out answers say: accuracy of two classes; of more, agreement, and that of chance; worth of columns."""

    accuracy: AccuracyEstimate | None = None
    agreement: ClassAgreement | None = None
    chance: float = 0.0
    importances: tuple[ColumnImportance, ...] = ()


def _judge(
    request: Request, fitted: FittedModel, rows: Rows, pairs: Pairs, weights: Array | None, data: TrainingData
) -> _Outcome:
    model = fitted.estimator
    parts = models_of_folds(model, rows, pairs, weights)
    importances: tuple[ColumnImportance, ...] = ()
    if request.engine == MEMORY:
        importances = column_importances(model, parts, rows, pairs, TableColumns.of(data.layout, data.scaler))
    random_points = data.random_points(pairs.n_rows)
    if len(model.classes_) == 2:
        accuracy = accuracy_of_two(fitted, parts, rows, pairs, weights, request.prior, random_points)
        return _Outcome(accuracy, importances=importances)
    agreement, chance = agreement_of_many(fitted, parts, rows, pairs, weights, random_points)
    return _Outcome(agreement=agreement, chance=chance, importances=importances)


def _annotators(fitted: FittedModel, source: AnswerSource) -> tuple[AnnotatorReport, ...]:
    """How often each annotator is wrong, by name; nothing for methods that take all answers for right."""
    rates = {} if fitted.rates is None else fitted.rates.by_annotator
    names = ("", *source.annotators)
    return tuple(
        AnnotatorReport(names[a], one.value, one.low, one.high, one.identified, one.n_answers)
        for a, one in rates.items()
    )


def _noted(caught: list[warnings.WarningMessage], estimator: Estimator, data: TrainingData) -> list[Finding]:
    """What the fits warned of, each thing once."""
    notes = {str(note.message): note.category for note in caught}
    found = []
    for message, category in notes.items():
        if not issubclass(category, OrientationWarning):
            found.append(Finding("fit_warning", "warning", {"category": category.__name__, "message": message}))
        elif data.labels is None and estimator.prior_ is not None and estimator.prior_.identified:
            found.append(Finding("names_uncertain", "warning", {}))
    return list({(one.code, str(one.details)): one for one in found}.values())


def _noted_reason(request: Request, found: list[Finding]) -> list[Finding]:
    """Why models were not compared; who did not ask for it is told only of a limit that the table might meet."""
    if not compares(request):
        return []
    return [one for one in found if request.model == "auto" or one.details["reason"] == "features"]


def _name_classes(estimator: Estimator, data: TrainingData) -> int:
    """Turn the estimator by the labels, and count those that it then predicts."""
    if data.labels is None:
        return 0
    points = data.scaler.transform(data.X[data.labels.rows])
    return int(np.sum(estimator.orient(points, data.labels.classes).predict(points) == data.labels.classes))


def _worth(pairs: Pairs, source: AnswerSource, n_classes: int) -> tuple[int, int]:
    """Points in the answers, and answers that do not follow from the others; loose ones all count."""
    n_answers = source.n_similar + source.n_dissimilar
    if not pairs.shares_points:
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


def _disagreements(
    request: Request,
    data: TrainingData,
    pairs: Pairs,
    estimator: Estimator,
    outcome: _Outcome,
    n_right: int,
) -> list[Finding]:
    if outcome.accuracy is None:
        return _disagreements_of_many(data, pairs, outcome, n_right)
    accuracy = outcome.accuracy
    oriented = data.labels is not None
    found = [*data.questions.findings, *data.findings]
    if request.method not in ("su", "du"):
        # These two learn from one kind of answer, in whatever number.
        found += _check_ratio(pairs, data, request.prior)
    found += [_unnumbered(one) for one in check_shared_points(pairs)]
    found += _check_population(data, pairs)
    found += _check_random(data)
    found += check_outcome(estimator.prior_, accuracy, oriented)
    if data.labels is not None:
        found += _check_labels(len(data.labels.rows), n_right, accuracy)
        if request.prior is not None and estimator.prior_.value != request.prior:
            found.append(Finding("prior_of_other_class", "warning", {"prior": request.prior}))
    return found


def _disagreements_of_many(data: TrainingData, pairs: Pairs, outcome: _Outcome, n_right: int) -> list[Finding]:
    """With more than two classes neither the counts of answers nor odd cycles say that anything is wrong."""
    assert outcome.agreement is not None
    found = [*data.questions.findings, *_without_odd_cycles(data.findings)]
    found += _check_population(data, pairs)
    found += _check_random(data)
    found += check_agreement(outcome.agreement, outcome.chance)
    if data.labels is not None and 2 * n_right <= len(data.labels.rows):
        found.append(_labels_disagree(len(data.labels.rows), n_right))
    return found


def _without_odd_cycles(findings: list[Finding]) -> list[Finding]:
    """Contradictions that any number of classes leaves."""
    kept = []
    for one in findings:
        if one.code != "contradictions":
            kept.append(one)
        elif one.details["both_ways"] or one.details["closure"]:
            # Whose answers stand in one was counted with the cycles.
            details = {name: value for name, value in one.details.items() if name != "by_annotator"}
            kept.append(replace(one, details={**details, "odd_cycles": 0}))
    return kept


def _check_population(data: TrainingData, pairs: Pairs) -> list[Finding]:
    """Each point counts once; the moments of a table that streams by count its rows, so points on several do not do.

    Of points that were chosen nobody says that they are a random draw.
    """
    names = data.layout.feature_names
    questions = data.questions
    if data.points is None:
        drawn = questions.ends if questions.random is None else questions.ends[questions.random]
        return check_population(data.X, drawn, names, data.population)
    if data.population is not None:
        return [] if pairs.shares_points else check_population(data.X, data.questions.ends, names, data.population)
    _, first, place = np.unique(data.points, return_index=True, return_inverse=True)
    return check_population(data.X[first], place[data.questions.ends], names)


def _unnumbered(finding: Finding) -> Finding:
    """Without the numbers that points have in ``y``: they are not the table's ids."""
    return replace(finding, details={name: value for name, value in finding.details.items() if name != "points"})


def _check_ratio(pairs: Pairs, data: TrainingData, prior: float | None) -> list[Finding]:
    """By the counts of loose pairs, of which some may not have been drawn; else by components."""
    random_points = data.random_points(pairs.n_rows)
    if pairs.shares_points or random_points is not None:
        graph = AnswerGraph.from_y(pairs)
        return check_component_ratio(graph, prior, random_of(graph, random_points))
    return check_ratio(data.source.n_similar, data.source.n_dissimilar, prior)


def _check_random(data: TrainingData) -> list[Finding]:
    """Where questions were chosen: too few random ones to tell an accuracy or a prior from, or ones that miss rows."""
    random = data.questions.random
    if random is None:
        return []
    n_random = int(random.any(axis=1).sum())
    if n_random < _ENOUGH_RANDOM:
        return [Finding("few_random", "warning", {"n_random": n_random, "n_answers": len(random)})]
    chosen = np.setdiff1d(data.questions.ends, data.questions.ends[random])
    if len(chosen) < _MANY_CHOSEN * data.n_rows:
        return []
    return [Finding("many_chosen", "warning", {"n_chosen": len(chosen), "n_rows": data.n_rows})]


def _check_labels(n_labels: int, n_right: int, accuracy: AccuracyEstimate) -> list[Finding]:
    """Labels that the model predicts less often than its accuracy allows."""
    fewer = binomtest(n_right, n_labels, accuracy.low, alternative="less").pvalue < LEVEL
    if not fewer and 2 * n_right > n_labels:
        return []
    return [_labels_disagree(n_labels, n_right)]


def _labels_disagree(n_labels: int, n_right: int) -> Finding:
    return Finding("labels_disagree", "warning", {"n_labels": n_labels, "n_right": n_right})
