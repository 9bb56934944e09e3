"""Classes of the ids in a set of answers, by the answers alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sdulearn.answers.answer_model import AnswerModel, is_crowd, number_by_answers, posteriors
from sdulearn.answers.checks import known_answers
from sdulearn.answers.graph import AnswerGraph, least_classes
from sdulearn.answers.propagate import sum_by
from sdulearn.answers.records import Answers
from sdulearn.errors import InputError
from sdulearn.types import Array

# An id has a class where one is at least so likely.
_LEAST = 2 / 3
# A point becomes the first of its class where another class is so many times as likely as for any point.
_DOUBT = 0.1
# Between the shares of "same" among random pairs of two classes of one size, and of three.
_SAME_OF_TWO = 5 / 12


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
        A table with one row for each id: ``id``; ``class``, "1" for the largest, empty where none has a probability of
        2/3; ``part``, 1 for the largest set of ids that answers connect; ``n_answers``; ``probability_1`` to
        ``probability_K``. Classes of other parts are not those of the first and are called "1 of part 2".
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
    graph, _ = known_answers(answers)
    if len(np.unique(graph.same)) < 2:
        kind = "answers of one kind only" if graph.n_answers else "no answer 'similar' or 'dissimilar'"
        raise InputError(f"{answers.name} holds {kind}: classes follow from answers of both kinds. Ask more questions.")
    if isinstance(n_classes, str):
        n_classes = count_classes(graph)
    model = AnswerModel.estimate(graph, n_classes)
    if n_classes > 2 and is_crowd(graph, n_classes):
        probabilities = posteriors(model, graph, np.full((graph.n_points, n_classes), -np.log(n_classes)))
    else:
        probabilities = _by_first_points(graph, model, n_classes)
    part = np.argsort(np.argsort(-graph.component_sizes, kind="stable"))[graph.component]
    order = np.argsort(-sum_by(part, probabilities, graph.n_components), kind="stable")
    probabilities = np.take_along_axis(probabilities, order[part], axis=1)
    known = (probabilities.max(axis=1) >= _LEAST) & (graph.degree > 0)
    places = zip(known, probabilities.argmax(axis=1) + 1, part + 1, strict=True)
    names = [(str(k) if p == 1 else f"{k} of part {p}") if has else "" for has, k, p in places]
    ids = list(dict.fromkeys(answers.ids.ravel().tolist()))
    columns = {"id": np.array(ids, dtype=object), "class": np.array(names, dtype=object)}
    columns |= {"part": part + 1, "n_answers": graph.degree}
    return columns | {f"probability_{k}": column for k, column in enumerate(probabilities.T, 1)}, model


def count_classes(graph: AnswerGraph) -> int:
    """The number that explains answers of a crowd that are left out best; else the fewest that explain all answers.

    Where none explains all, two, if more answers are "same" than of random pairs of three classes.
    """
    if is_crowd(graph, 3):
        return number_by_answers(graph)[0]
    two = graph.refuted.any() and np.mean(graph.same > 0) > _SAME_OF_TWO
    return 2 if two else least_classes(graph, graph.same != 0)


def _by_first_points(graph: AnswerGraph, model: AnswerModel, n_classes: int) -> Array:
    """Probabilities of the classes of each point, (n_points, n_classes), all classes equally likely before.

    Answers do not name classes: in each component the point in most answers is the first of its class, then, as long
    as there is one, the point most likely of a class that has none yet.
    """
    if model.certain and n_classes < (least := least_classes(graph, graph.same != 0)):
        raise InputError(f"`n_classes={n_classes}`: the answers are about {least} classes or more. Give that many.")
    found = np.full((graph.n_points, n_classes), 1 / n_classes)
    for k, code in enumerate([-1] if n_classes == 2 else range(1, n_classes)):
        new = found[:, k:].sum(axis=1)
        order = np.lexsort((-graph.degree, -new.round(3), graph.component))
        first = order[np.unique(graph.component[order], return_index=True)[1]]
        first = first[(graph.degree[first] > 0) & (new[first] > 1 - 1e-9 - _DOUBT * k / n_classes)]
        graph = replace(graph, labels=np.where(np.isin(np.arange(graph.n_points), first), code, graph.labels))
        equal = np.full(n_classes, -np.log(n_classes))
        found = model.factor_graph(graph, n_classes).propagate(equal, tol=1e-4).posteriors
    return found
