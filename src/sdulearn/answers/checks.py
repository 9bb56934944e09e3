"""Checks of a set of answers: contradictions, doubtful answers, classes without features.

A dissimilar pair within a group that similar pairs connect is a contradiction for any number of
classes; with two classes so is a cycle with an odd number of dissimilar pairs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdulearn.answers.answer_model import (
    AnswerModel,
    is_crowd,
    log_node_probabilities,
    posteriors,
    rate_of_all,
)
from sdulearn.answers.graph import AnswerGraph, NumberOfClasses, connect, first_by, least_classes, sum_by
from sdulearn.answers.many_classes import classes_of_groups, groups_for, number_of_classes
from sdulearn.answers.propagate import ROUGH_TOL, FactorGraph
from sdulearn.answers.rates import SELDOM, calibrated_rates, split_by_certainty
from sdulearn.answers.records import Answers
from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.errors import InputError
from sdulearn.findings import ClassNumberOpen, EntityGroups, Finding, ForcedChoicesUnused, NoClassesShown
from sdulearn.types import Array, Codes, Estimator, Indices, MatrixLike

Graph = dict[int, list[tuple[int, int]]]

# Chains of similar pairs are searched for this many contradictions.
EXPLAINED = 20
# Least probability of the class of an id.
_LEAST = 2 / 3
# The first point of a new class may be in an old one with this probability times (classes so far) / K.
_DOUBT = 0.1
# More groups of two or three points than this are entities.
ENTITIES = 100


@dataclass(frozen=True)
class Contradiction:
    """Positions of answers that cannot all be right, in the order of their cycle."""

    answers: tuple[int, ...]


@dataclass(frozen=True)
class AnswerChecks:
    """Contradictions and repeats, as positions in :attr:`Answers.answers`.

    Attributes
    ----------
    self_pairs : array
        Answers that compare a point with itself.
    repeats : array
        Answers to a question that the same person has answered before.
    disagreements : list of Contradiction
        Questions that were answered both ways.
    closure : list of Contradiction
        Dissimilar pairs within a group of similar ones, the most credible first; the first 20 with
        their chain of similar pairs.
    odd_cycles : list of Contradiction
        One cycle for each set of groups that two classes cannot explain.
    """

    self_pairs: Indices
    repeats: Indices
    disagreements: list[Contradiction]
    closure: list[Contradiction]
    odd_cycles: list[Contradiction]

    @property
    def n_contradictions(self) -> int:
        """Number of contradictions of all kinds."""
        return len(self.disagreements) + len(self.closure) + len(self.odd_cycles)


def check_answers(answers: Answers | AnswerGraph, errors: Array | None = None) -> AnswerChecks:
    """Find self pairs, repeats and contradictions in a set of answers.

    Parameters
    ----------
    answers : Answers or AnswerGraph
        From :func:`read_answers`, or a graph.
    errors : array of shape (n_answers,), optional
        Probability that each answer is wrong: chains prefer answers with a small one.

    Returns
    -------
    AnswerChecks
        The findings, by the position of the answer.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdulearn.answers import check_answers, read_answers
    >>> frame = pd.DataFrame({"id_a": ["a", "b", "a"], "id_b": ["b", "c", "c"], "label": [1, 1, 0]})
    >>> checks = check_answers(read_answers(frame))
    >>> checks.n_contradictions, checks.closure[0].answers
    (1, (2, 1, 0))
    """
    if isinstance(answers, AnswerGraph):
        ends, given, who = answers.ends, answers.same, answers.annotators
    else:
        ends, given, who = number_ids(answers.ids), answers.answers, answers.annotator_numbers
    errors = np.zeros(len(given)) if errors is None else errors
    own = ends[:, 0] == ends[:, 1]
    questions = group_questions(ends, np.flatnonzero(~own & (given != UNSURE)).tolist()).values()
    # A disputed question is a contradiction by itself, and is ignored in the search for others.
    disputed = [asked for asked in questions if np.ptp(given[asked])]
    agreed = [asked for asked in questions if not np.ptp(given[asked])]
    similar = sorted((asked[0] for asked in agreed if given[asked[0]] == SIMILAR), key=errors.__getitem__)
    dissimilar = [asked[0] for asked in agreed if given[asked[0]] == DISSIMILAR]
    group = connect(ends[similar], int(ends.max(initial=-1)) + 1)
    inside = [k for k in dissimilar if group[ends[k, 0]] == group[ends[k, 1]]]
    inside.sort(key=errors.__getitem__)
    between = [k for k in dissimilar if group[ends[k, 0]] != group[ends[k, 1]]]
    graph = _neighbours(ends, similar) if inside else {}
    # A cycle needs points in two answers each.
    shared = np.bincount(ends.ravel()).max(initial=0) > 1
    odd = _odd_cycles(ends, given, [*similar, *between]) if between and shared else []
    return AnswerChecks(
        self_pairs=np.flatnonzero(own),
        repeats=np.array(
            sorted(k for asked in agreed for j, k in enumerate(asked) if who[k] in who[asked[:j]]), dtype=np.intp
        ),
        disagreements=[Contradiction(tuple(asked)) for asked in disputed],
        closure=[Contradiction((k, *_trace(_search(graph, *ends[k]), ends[k, 1]))) for k in inside[:EXPLAINED]]
        + [Contradiction((k,)) for k in inside[EXPLAINED:]],
        odd_cycles=odd,
    )


@dataclass(frozen=True, eq=False)
class DoubtfulAnswers:
    """All answers, the most doubtful first.

    Attributes
    ----------
    wrong : array of shape (n_answers,)
        Probability that each answer is wrong, given the model and all others, falling.
    code : int array of shape (n_answers,)
        The pair code of each answer in ``y``.
    rows : int array of shape (n_answers, 2)
        Its two rows.
    annotator : int array of shape (n_answers,)
        Who gave it, 0 if that is not known.
    """

    wrong: Array
    code: Codes
    rows: Indices
    annotator: Codes

    def __len__(self) -> int:
        return len(self.wrong)


def doubtful_answers(model: Estimator, X: MatrixLike, y: ArrayLike) -> DoubtfulAnswers:
    """Rank answers by the probability that they are wrong.

    It is computed from other answers about the same points and from the model's probabilities. A model
    that was fitted on the same answers finds fewer wrong ones than there are.

    Parameters
    ----------
    model : estimator
        Fitted, such as :class:`~sdulearn.PairLogisticRegression`.
    X : array, CSR matrix or frame of shape (n_rows, n_features)
        Rows.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 5)
        What is known about each row.

    Returns
    -------
    DoubtfulAnswers
        All answers with their probabilities, the most doubtful first.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn import PairLogisticRegression, stack_pairs
    >>> from sdulearn.answers import doubtful_answers
    >>> X = np.r_[np.linspace(-3, -1, 20), np.linspace(1, 3, 20)][:, None]
    >>> pairs = np.column_stack([np.zeros(39, dtype=int), np.arange(1, 40)])
    >>> same = pairs[:, 1] < 20
    >>> same[7] = False
    >>> rows, y = stack_pairs(X, pairs, same, unlabeled=None)
    >>> model = PairLogisticRegression(error_rate=0.05, prior=0.49).fit(rows, y)
    >>> int(doubtful_answers(model, rows, y).code[0])
    -8
    """
    graph = AnswerGraph.from_y(y)
    log_p = log_node_probabilities(model.predict_proba(X), graph)
    answer_model: AnswerModel = model.answer_model_
    errors = answer_model.errors(graph.annotators)
    for a, rate in answer_model.by_annotator.items():
        if rate.value == 0:
            # An annotator without a wrong answer so far is not infallible.
            least = 1 / (2 * max(rate.n_answers, 10)) if rate.identified else SELDOM
            errors[graph.annotators == a] = least
    right = FactorGraph.from_answers(graph, log_p.shape[1], np.maximum(errors, 1e-3)).propagate(log_p).right
    order = np.argsort(right, kind="stable")
    return DoubtfulAnswers(
        wrong=1 - right[order],
        code=(graph.same * graph.codes)[order],
        rows=graph.rows[graph.end_rows[order]],
        annotator=graph.annotators[order],
    )


def known_answers(answers: Answers) -> tuple[AnswerGraph, Indices]:
    """Return the graph of the answers "same" or "different" about two ids, and their positions."""
    ends = number_ids(answers.ids)
    used = np.flatnonzero((ends[:, 0] != ends[:, 1]) & (answers.answers != UNSURE) & (answers.weights > 0))
    graph = AnswerGraph.from_answers(
        ends[used],
        answers.answers[used],
        annotators=answers.annotator_numbers[used],
        weights=answers.weights[used],
        questions=None if answers.questions is None else answers.questions[used] + 1,
        n_points=int(ends.max(initial=-1)) + 1,
    )
    return graph, used


@dataclass(frozen=True)
class Estimate:
    """How often answers are wrong, and the classes of a crowd's points."""

    graph: AnswerGraph  # its annotators are people, or their certainties
    model: AnswerModel  # of these
    people: AnswerModel
    probabilities: Array | None  # (n_points, n_classes) of a crowd


def estimate_answers(answers: Answers, graph: AnswerGraph, used: Indices, n_classes: int) -> Estimate:
    """Estimate how often answers are wrong, for each certainty that a person states."""
    crowd = n_classes > 2 and is_crowd(graph, n_classes)
    if crowd and (groups := groups_for(graph, n_classes)) is not None:
        by_groups = classes_of_groups(graph, groups, n_classes)
        return Estimate(graph, by_groups[0], *by_groups)
    by_person = None
    if answers.certainty is not None:
        parts, by_person, stated = split_by_certainty(graph.annotators, answers.certainty[used])
        graph = replace(graph, annotators=parts)
    if crowd or by_person is None:
        model = AnswerModel.estimate(graph, n_classes)
    else:
        rates = calibrated_rates(graph, by_person, stated, n_classes)
        model = AnswerModel.stated(rates, graph, rate_of_all(graph, n_classes))
    known = np.full((graph.n_points, n_classes), -np.log(n_classes))
    probabilities = posteriors(model, graph, known) if crowd else None
    return Estimate(graph, model, model if by_person is None else model.of_people(by_person), probabilities)


def check_forced_choices(answers: Answers) -> list[Finding]:
    """Report forced choices, which are in no fit."""
    if answers.nearer is None or not len(answers.nearer):
        return []
    kind = ForcedChoicesUnused if len(answers.answers) else NoClassesShown
    return [kind(count=len(answers.nearer))]


def need_pairs(answers: Answers) -> None:
    """Refuse answers that are forced choices alone."""
    for finding in check_forced_choices(answers):
        if finding.code == "no_classes_shown":
            raise InputError(f"{answers.name}: {finding}")


def number_ids(ids: NDArray[np.object_]) -> Indices:
    """Number ids 0, 1, ... in the order of their first appearance."""
    numbers: dict[str, int] = {}
    flat = [numbers.setdefault(name, len(numbers)) for name in ids.ravel().tolist()]
    return np.array(flat, dtype=np.intp).reshape(-1, 2)


def group_questions(ends: Indices, answers: Iterable[int]) -> dict[tuple[int, int], list[int]]:
    """Group answers by their question, whichever end comes first."""
    questions = defaultdict(list)
    for k in answers:
        a, b = ends[k].tolist()
        questions[min(a, b), max(a, b)].append(k)
    return questions


def majority_votes(ends: Indices, answers: Codes, weights: Array, usable: Iterable[int]) -> tuple[Indices, int, int]:
    """Return the answer of each question by weighted majority, and counts of decided and tied ones."""
    chosen = []
    n_asked_again = 0
    n_tied = 0
    for asked in group_questions(ends, usable).values():
        vote = float(answers[asked] @ weights[asked])
        n_asked_again += len(asked) > 1
        if vote:
            chosen.append(next(k for k in asked if answers[k] * vote > 0))
        else:
            n_tied += 1
    return np.array(chosen, dtype=np.intp), n_asked_again - n_tied, n_tied


def _neighbours(ends: Indices, answers: Iterable[int]) -> Graph:
    """Return the neighbours of every point, each with the answer between them."""
    graph: Graph = defaultdict(list)
    for k in answers:
        a, b = ends[k].tolist()
        graph[a].append((b, k))
        graph[b].append((a, k))
    return graph


def _search(graph: Graph, start: int, end: int = -1) -> dict[int, tuple[int, int]]:
    """Search by breadth; return the predecessor of each point and the answer between them."""
    came: dict[int, tuple[int, int]] = {start: (start, -1)}
    queue = deque([start])
    while queue and end not in came:
        point = queue.popleft()
        for other, k in graph[point]:
            if other not in came:
                came[other] = (point, k)
                queue.append(other)
    return came


def _trace(came: dict[int, tuple[int, int]], point: int) -> list[int]:
    """Return the answers along a shortest path from a point back to the start of the search."""
    path = []
    while came[point][1] >= 0:
        point, k = came[point]
        path.append(k)
    return path


def _odd_cycles(ends: Indices, given: Codes, answers: list[int]) -> list[Contradiction]:
    """Return one cycle per component that does not fit on two sides, by the first bad answer."""
    graph = _neighbours(ends, answers)
    side: dict[int, int] = {}
    cycles = []
    for root in list(graph):
        if root in side:
            continue
        came = _search(graph, root)
        for point, (before, k) in came.items():
            side[point] = side[before] * int(given[k]) if k >= 0 else 1
        odd = ((a, k, b) for a in came for b, k in graph[a] if side[b] != side[a] * given[k])
        for a, k, b in islice(odd, 1):
            first = _trace(came, a)
            second = _trace(came, b)
            # The two paths to the root and the answer between their ends, without the common part.
            walk = [*reversed(first), k, *second]
            cycles.append(Contradiction(tuple(j for j in walk if (j in first) + (j in second) < 2)))
    return cycles


def classes_of_answers(answers: Answers, n_classes: int | str = "auto") -> tuple[dict[str, Array], AnswerModel]:
    """Find the classes of the ids in a set of answers, without any features.

    Parameters
    ----------
    answers : Answers
        From :func:`read_answers`.
    n_classes : int or "auto", default="auto"
        Number of classes, or "auto" for the fewest that explain the answers.

    Returns
    -------
    columns : dict of arrays
        A table with one row for each id: ``id``; ``class``, "1" for the largest, empty if none has a probability of
        2/3; ``part``, 1 for the largest set of ids that answers connect; ``n_answers``; ``probability_1`` to
        ``probability_K``. Classes of other parts are different ones and are called "1 of part 2".
    answer_model : AnswerModel
        How often the answers are wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdulearn.answers import classes_of_answers, read_answers
    >>> frame = pd.DataFrame({"id_a": ["a", "b", "c"], "id_b": ["b", "c", "d"], "same": [1, 0, 1]})
    >>> columns, _ = classes_of_answers(read_answers(frame))
    >>> columns["id"], columns["class"]
    (array(['a', 'b', 'c', 'd'], dtype=object), array(['1', '1', '2', '2'], dtype=object))
    """
    need_pairs(answers)
    graph, used = known_answers(answers)
    if len(np.unique(graph.same)) < 2:
        kind = "answers of one kind only" if graph.n_answers else "no answer 'similar' or 'dissimilar'"
        raise InputError(f"{answers.name} has {kind}: classes follow from answers of both kinds. Ask more questions.")
    if isinstance(n_classes, str):
        n_classes = count_classes(graph).value
    found = estimate_answers(answers, graph, used, n_classes)
    by_crowd = found.probabilities
    probabilities = _by_first_points(found.graph, found.model, n_classes) if by_crowd is None else by_crowd
    part = np.argsort(np.argsort(-graph.component_sizes, kind="stable"))[graph.component]
    order = np.argsort(-sum_by(part, probabilities, graph.n_components), kind="stable")
    probabilities = np.take_along_axis(probabilities, order[part], axis=1)
    known = (probabilities.max(axis=1) >= _LEAST) & (graph.degree > 0)
    places = zip(known, probabilities.argmax(axis=1) + 1, part + 1, strict=True)
    names = [(str(k) if p == 1 else f"{k} of part {p}") if has else "" for has, k, p in places]
    ids = list(dict.fromkeys(answers.ids.ravel().tolist()))
    columns = {"id": np.array(ids, dtype=object), "class": np.array(names, dtype=object)}
    columns |= {"part": part + 1, "n_answers": graph.degree}
    return columns | {f"probability_{k}": column for k, column in enumerate(probabilities.T, 1)}, found.people


def count_classes(graph: AnswerGraph) -> NumberOfClasses:
    """Return the number of classes that predicts left-out answers best, or the fewest possible."""
    if is_crowd(graph, 3):
        return number_of_classes(graph)
    # Where no number explains all: two, if the share of "same" is nearer to that of random pairs of two equal classes
    # than of three.
    two = graph.refuted.any() and np.mean(graph.same > 0) > (1 / 2 + 1 / 3) / 2
    value = 2 if two else least_classes(graph, graph.same != 0)
    return NumberOfClasses(value, value, value)


def class_number(number: NumberOfClasses) -> list[Finding]:
    """Report the interval of a number of classes that the answers leave open."""
    if number.are_entities and number.high > ENTITIES:
        return [EntityGroups(low=number.low, high=number.high)]
    if number.low == number.high:
        return []
    return [ClassNumberOpen(value=number.value, low=number.low, high=number.high)]


def _by_first_points(graph: AnswerGraph, model: AnswerModel, n_classes: int) -> Array:
    """Return class probabilities (n_points, n_classes), after naming a first point of each class."""
    if 2 < n_classes < (least := least_classes(graph, graph.same != 0)) and not graph.refuted.any():
        raise InputError(f"`n_classes={n_classes}`: the answers are about {least} classes or more. Give that many.")
    chances = np.full((graph.n_points, n_classes), 1 / n_classes)
    # In each component the point in most answers, then the likeliest of a class that has none yet.
    for k, code in enumerate([-1] if n_classes == 2 else range(1, n_classes)):
        new = chances[:, k:].sum(axis=1)
        first = first_by(graph.component, -graph.degree, -new.round(3))
        first = first[(graph.degree[first] > 0) & (new[first] > 1 - 1e-9 - _DOUBT * k / n_classes)]
        graph = graph.with_values(labels=np.where(np.isin(np.arange(graph.n_points), first), code, graph.labels))
        chances = model.factor_graph(graph, n_classes).propagate(tol=ROUGH_TOL).posteriors
    return chances
