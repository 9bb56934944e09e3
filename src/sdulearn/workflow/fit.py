"""``fit_table``: a model of a table from answers about its rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from sdulearn.answers.checks import check_answers
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.records import Answers
from sdulearn.diagnostics import (
    ACCURACY_FOLDS,
    LEVEL,
    Finding,
    check_component_ratio,
    check_contradictions,
    check_entities,
    check_outcome,
    check_population,
    check_ratio,
    check_shared_points,
)
from sdulearn.errors import InputError, OrientationWarning
from sdulearn.fit_report import AnnotatorReport, FitReport
from sdulearn.io.answers import read_answers
from sdulearn.io.files import Location
from sdulearn.io.labels import Labelled, class_labels, read_labels
from sdulearn.io.tables import TableOptions, read_table
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.metrics import AccuracyEstimate, folds_over_points, held_out_accuracy, held_out_decisions
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.table_model import TableModel
from sdulearn.types import Array, Estimator, Frame, Rows
from sdulearn.version import __version__
from sdulearn.workflow.engines import MEMORY, Engine, open_engine
from sdulearn.workflow.methods import METHODS, chosen_settings, estimator_of, is_joint, with_its_settings
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
    rows_of_ids,
    source_of_answers,
    usable_questions,
)

# Of a choice; for the accuracy there are more, so that each model is nearly the one that is kept.
_MAX_FOLDS = 5
# Answers wrong every other time would say nothing of the accuracy.
_MOST_ERRORS = 0.45


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
        Share of class +1, where it is known.
    error_rate : "auto" or float, default="auto"
        Probability that an answer is wrong, for the joint likelihood; "auto" estimates it for each annotator from
        questions asked again, cycles of answers and, between several annotators, their disagreement.
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
    _check_choices(answers, codes, points, method, loss, prior, missing)
    options = TableOptions(id_column, drop, missing, max_categories, codes, categories, points)
    request = Request(table, options, method, loss, prior, error_rate, max_unlabeled, skip_bad)
    given = None
    if answers is not None:
        given = read_answers(answers, columns=answer_columns, words=answer_words, table=table, id_column=id_column)
    labelled = [] if labels is None else read_labels(labels)
    began = time.perf_counter()
    with _engine(engine) as where:
        if where is None:
            data = _data_in_memory(request, given, labelled)
        else:
            data = data_in_passes(request, where, given, labelled)
        read = time.perf_counter()
        check_enough(data.source.name, data.questions, method)
        return _fit(request, data, began, read)


def _check_choices(
    answers: object,
    codes: str | None,
    points: str | None,
    method: str,
    loss: str,
    prior: float | None,
    missing: str,
) -> None:
    if (answers is None) == (codes is None):
        raise InputError("Give either `answers` or `codes`, the column of the table that holds pair codes.")
    if points is not None and codes is None:
        raise InputError("`points` goes with `codes`: by `answers`, equal ids are the same point. Leave it out.")
    choices = {
        "method": (method, METHODS),
        "loss": (loss, tuple(TRAINING_LOSSES)),
        "missing": (missing, ("error", "mean")),
    }
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise InputError(f"`{name}` must be one of {', '.join(allowed)}; got {value!r}.")
    if prior is not None and not 0 < prior < 1:
        raise InputError(f"`prior` must lie between 0 and 1, got {prior!r}.")


def _engine(engine: str | Engine) -> AbstractContextManager[Engine | None]:
    if isinstance(engine, Engine):
        return nullcontext(engine)
    return nullcontext(None) if engine == MEMORY else open_engine(engine)


def _data_in_memory(request: Request, answers: Answers | None, labelled: Labelled) -> TrainingData:
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
        findings = check_contradictions(check_answers(answers), answers.annotators) + check_entities(answers)
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
    )


def _fit(request: Request, data: TrainingData, began: float, read: float) -> TableModel:
    """Choose settings, judge them on held-out answers, fit, name the classes, and report."""
    rows, y, weights = data.stacked()
    pairs = read_pairs(y)
    counts = [n for n in (data.questions.n_similar, data.questions.n_dissimilar) if n]
    folds = min([_MAX_FOLDS, *counts])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen = estimator_of(request, folds).fit(rows, y, weights)
        accuracy = _accuracy(chosen, rows, pairs, weights, request.prior)
        estimator = chosen if data.refit is None else data.refit(chosen)
    n_right = _name_classes(estimator, data)
    findings = [*_noted(caught, estimator, data), *_disagreements(request, data, pairs, estimator, accuracy, n_right)]
    done = time.perf_counter()
    source = data.source
    n_points, n_independent = _worth(pairs, source)
    report = FitReport(
        sdulearn=__version__,
        method="joint" if is_joint(request.method) else request.method,
        settings=chosen_settings(chosen),
        table=Path(request.table_name).name,
        answers=source.name,
        n_rows=data.n_rows,
        n_unlabeled=len(data.unlabeled) if data.n_unlabeled is None else data.n_unlabeled,
        n_similar=source.n_similar,
        n_dissimilar=source.n_dissimilar,
        n_unsure=source.n_unsure,
        n_points=n_points,
        n_independent=n_independent,
        answer_columns=source.columns,
        answer_words=source.words,
        accuracy=accuracy,
        prior=estimator.prior_,
        annotators=_annotators(estimator, source),
        n_labels=0 if data.labels is None else len(data.labels.rows),
        n_labels_right=n_right,
        findings=tuple(findings),
        seconds={"reading": read - began, "fitting": done - read},
    )
    names = ("-1", "1") if data.labels is None else data.labels.names
    return TableModel(estimator, data.layout, data.scaler, names, report)


def _annotators(estimator: Estimator, source: AnswerSource) -> tuple[AnnotatorReport, ...]:
    """How often each annotator is wrong, by name; nothing for methods that take all answers for right."""
    rates = getattr(estimator, "error_rates_", ())
    names = ("", *source.annotators)
    return tuple(
        AnnotatorReport(names[one.annotator], one.rate, one.low, one.high, one.identified, one.n_answers)
        for one in rates
    )


def _accuracy(
    model: Estimator, rows: Rows, pairs: Pairs, weights: Array | None, prior: float | None
) -> AccuracyEstimate:
    """By decisions about points whose answers the fold's model did not know."""
    folds = folds_over_points(ACCURACY_FOLDS, pairs)
    reference = model.decision_function(rows)
    settings = with_its_settings(model)
    decision = held_out_decisions(settings, rows, pairs, reference, sample_weight=weights, cv=folds)
    rates = getattr(model, "error_rates_", None)
    error_rate = min(rates.mean, _MOST_ERRORS) if rates is not None and rates.mean > 0 else None
    return held_out_accuracy(
        decision, pairs, n_splits=folds.n_splits, error_rate=error_rate, sample_weight=weights, prior=prior
    )


def _noted(caught: list[warnings.WarningMessage], estimator: Estimator, data: TrainingData) -> list[Finding]:
    """What the fits warned of, each thing once."""
    notes = {str(note.message): note.category for note in caught}
    found = []
    for message, category in notes.items():
        if not issubclass(category, OrientationWarning):
            found.append(Finding("fit_warning", "warning", {"category": category.__name__, "message": message}))
        elif data.labels is None and estimator.prior_.identified:
            found.append(Finding("names_uncertain", "warning", {}))
    return list({(one.code, str(one.details)): one for one in found}.values())


def _name_classes(estimator: Estimator, data: TrainingData) -> int:
    """Turn the estimator by the labels, and count those that it then predicts."""
    if data.labels is None:
        return 0
    points = data.scaler.transform(data.X[data.labels.rows])
    return int(np.sum(estimator.orient(points, data.labels.classes).predict(points) == data.labels.classes))


def _worth(pairs: Pairs, source: AnswerSource) -> tuple[int, int]:
    """Points in the answers, and answers that do not follow from the others; loose ones all count."""
    n_answers = source.n_similar + source.n_dissimilar
    if not pairs.shares_points:
        return 2 * n_answers, n_answers
    graph = AnswerGraph.from_y(pairs)
    return int(np.sum(graph.degree > 0)), graph.n_independent


def _disagreements(
    request: Request,
    data: TrainingData,
    pairs: Pairs,
    estimator: Estimator,
    accuracy: AccuracyEstimate,
    n_right: int,
) -> list[Finding]:
    oriented = data.labels is not None
    found = [*data.questions.findings, *data.findings]
    if request.method not in ("su", "du"):
        # These two learn from one kind of answer, in whatever number.
        found += _check_ratio(pairs, data.source, request.prior)
    found += [_unnumbered(one) for one in check_shared_points(pairs)]
    found += _check_population(data, pairs)
    found += check_outcome(estimator.prior_, accuracy, oriented)
    if data.labels is not None:
        found += _check_labels(len(data.labels.rows), n_right, accuracy)
        if request.prior is not None and estimator.prior_.value != request.prior:
            found.append(Finding("prior_of_other_class", "warning", {"prior": request.prior}))
    return found


def _check_population(data: TrainingData, pairs: Pairs) -> list[Finding]:
    """Each point counts once; the moments of a table that streams by count its rows, so points on several do not do."""
    names = data.layout.feature_names
    if data.points is None:
        return check_population(data.X, data.questions.ends, names, data.population)
    if data.population is not None:
        return [] if pairs.shares_points else check_population(data.X, data.questions.ends, names, data.population)
    _, first, place = np.unique(data.points, return_index=True, return_inverse=True)
    return check_population(data.X[first], place[data.questions.ends], names)


def _unnumbered(finding: Finding) -> Finding:
    """Without the numbers that points have in ``y``: they are not the table's ids."""
    return replace(finding, details={name: value for name, value in finding.details.items() if name != "points"})


def _check_ratio(pairs: Pairs, source: AnswerSource, prior: float | None) -> list[Finding]:
    """By the counts of loose pairs, of which some may not have been drawn; else by components."""
    if pairs.shares_points:
        return check_component_ratio(AnswerGraph.from_y(pairs), prior)
    return check_ratio(source.n_similar, source.n_dissimilar, prior)


def _check_labels(n_labels: int, n_right: int, accuracy: AccuracyEstimate) -> list[Finding]:
    """Labels that the model predicts less often than its accuracy allows."""
    fewer = binomtest(n_right, n_labels, accuracy.low, alternative="less").pvalue < LEVEL
    if not fewer and 2 * n_right > n_labels:
        return []
    return [Finding("labels_disagree", "warning", {"n_labels": n_labels, "n_right": n_right})]
