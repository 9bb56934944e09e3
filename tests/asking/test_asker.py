"""The Asker: a function of points, seed and answers."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from sdulearn import PairLogisticRegression, load_model
from sdulearn.asking import Asker, Question, ask
from sdulearn.errors import InputError, NothingToAskError, UndeterminedError
from tests.made import made

X, Y = make_classification(600, 6, n_informative=4, class_sep=1.5, flip_y=0, random_state=3)


def right(a, b):
    return bool(Y[a] == Y[b])


def answer_all(asker, n, annotators=(None,)):
    asked = []
    for k in range(n):
        who = annotators[k % len(annotators)]
        question = asker.next(who)
        asker.tell(question, right(question.left, question.right), who)
        asked.append(question)
    return asked


@pytest.fixture(scope="module")
def whole():
    """An Asker after thirty right answers, which no test changes, and its questions."""
    asker = Asker(X, random_share=0.6, random_state=5)
    return asker, answer_all(asker, 30)


def resumed(whole, n, rows=X, kind=dict):
    """An Asker that knows the first answers."""
    answers = kind({name: values[:n] for name, values in whole[0].answers.items()})
    return Asker(rows, random_share=0.6, random_state=5, answers=answers)


def test_questions_and_estimates_are_a_function_of_points_seed_and_answers(whole):
    asker, asked = whole
    for rows in (X, sparse.csr_matrix(X), pd.DataFrame(X)):
        assert answer_all(resumed(whole, 0, rows), 4) == asked[:4]
        assert resumed(whole, 20, rows, pd.DataFrame).next() == asked[20]
    assert answer_all(Asker(X, random_share=0.6, random_state=1), 4) != asked[:4]
    again = resumed(whole, 20)
    assert answer_all(again, 10) == asked[20:]
    assert again.answers == asker.answers
    assert again.accuracy() == asker.accuracy() != resumed(whole, 24).accuracy()


def test_undo_and_change(whole):
    asker = resumed(whole, 22)
    asked = answer_all(asker, 8)
    assert asked == whole[1][22:]
    for question in reversed(asked):
        undone = asker.undo()
        assert undone.question == question
        assert asker.next() == question
    asker = resumed(whole, 22)
    answer_all(asker, 8, annotators=("Ann", "Bob"))
    undone = [asker.undo("Ann"), asker.undo(), asker.undo(number=24)]
    assert [answer.given.number for answer in undone] == [29, 30, 24]
    assert asker.answers["number"] == [*range(1, 24), 25, 26, 27, 28]
    for bad in ({"annotator": "Cora"}, {"number": 24}, {"number": 1, "session": "other"}):
        with pytest.raises(InputError):
            asker.undo(**bad)
    before = asker.answers
    word = before["answer"][3]
    asker.change(4, "different" if word == "same" else "same")
    assert asker.answers["answer"] == [*before["answer"][:3], asker.given[3].reply, *before["answer"][4:]]
    assert asker.given[3].reply != word
    asker.change(4, word)
    assert asker.answers == before


def test_a_question_stays_until_it_is_answered_or_skipped(whole):
    asker = resumed(whole, 15)
    question = asker.next("Ann")
    assert asker.next("Ann") == question
    assert asker.next("Bob").left != question.left
    asker.skip("Ann")
    other = asker.next("Ann")
    assert other.left != question.left
    asker.tell(question, "same", "Ann")
    assert (asker.next("Ann"), asker.answers["number"][-1]) == (other, 16)
    # One that is given back goes to whoever asks next; twenty are put aside at most.
    asker = Asker(X[:60], design="random", random_state=0)
    first = asker.next("ann")
    asker.skip("ann", later=False)
    assert asker.next("bob") == first != asker.next("ann")
    asker.skip("ann", later=False)
    seen = []
    for _ in range(22):
        seen.append(asker.next().items)
        asker.skip()
    assert len(set(seen[:21])) == 21
    assert seen[21] == seen[0]


@pytest.mark.parametrize("design", ["linked", "match"])
@pytest.mark.parametrize("n_answers", [0, 1, 14])
def test_many_people_are_asked_about_different_points(design, n_answers):
    """Also where all points that are left are copies of known ones, which teach nothing."""
    rows = np.repeat([[0.0], [1.0]], 14, axis=0)
    asker = Asker(rows, design=design, random_share=0, repeat_share=0, random_state=0)
    for _ in range(n_answers):
        question = asker.next()
        like = [k for k, point in enumerate(question.choices) if rows[point] == rows[question.left]]
        asker.tell(question, like[0] if like and design == "match" else "none" if design == "match" else bool(like))
    known = {point for answer in asker.given for point in answer.question.items}
    questions = [asker.next(f"person {k}") for k in range(27 - n_answers)]
    asked = {question.left for question in questions}
    assert len(asked) == len(questions)
    assert not asked & {*known, *(point for question in questions for point in question.choices)}
    with pytest.raises(NothingToAskError):
        asker.next("one more")


def test_shares_of_random_questions_and_checks_are_kept():
    asker = Asker(X, random_share=0.4, repeat_share=0.1, random_state=0)
    kinds = [question.why for question in answer_all(asker, 30)]
    # Where two kinds are due at once, one of them waits.
    assert 11 <= kinds.count("random") <= 12
    assert sum(kinds.count(kind) for kind in ("repeat", "doubtful")) == 3
    assert not set(kinds[:11]) & {"repeat", "doubtful"}
    # Open questions count, too.
    kinds += [asker.next(f"person {k}").why for k in range(10)]
    assert kinds.count("random") == pytest.approx(0.4 * 40, abs=1)


def test_answers_are_checked_by_somebody_else_or_when_they_are_forgotten():
    asker = Asker(X, design="random", repeat_share=1, random_state=0)
    for k in range(12):
        asker.tell(Question("pair", (2 * k, 2 * k + 1), "random"), "same", "ann" if k < 6 else "zoe")
    for name, others in (("ann", range(12, 24)), ("zoe", range(12)), ("mia", range(24))):
        repeats = [asker.next(name)]
        for _ in range(5):
            asker.skip(name)
            repeats.append(asker.next(name))
        assert {question.why for question in repeats} == {"repeat"}
        assert {question.left for question in repeats} <= set(others)
        assert len({question.left for question in repeats}) == 6
        asker = Asker(X, design="random", repeat_share=1, random_state=0, answers=asker.answers)
    alone = Asker(X, design="random", repeat_share=1, random_state=0)
    asked = [question.why for question in answer_all(alone, 5)]
    # Not what is still remembered: the last three.
    assert asked == ["random", "random", "random", "random", "repeat"]
    assert alone.answers["left"][4] == alone.answers["left"][0]


def test_unsure_gives_a_point_up_and_answers_are_stacked_before_the_rest():
    asker = Asker(X, random_state=0)
    answer_all(asker, 10, annotators=("Ann", "Bob"))
    question = asker.next("Ann")
    asker.tell(question, "unsure", "Ann")
    assert asker.next("Ann").left != question.left
    rows, table = asker.stack()
    given = asker.answers
    assert given["answer"][10] == "unsure"
    assert table[:20, 1].reshape(-1, 2).tolist() == np.column_stack([given["left"], given["right"]])[:10].tolist()
    assert (np.sign(table[:20:2, 0]) == [1 if a == "same" else -1 for a in given["answer"][:10]]).all()
    assert table[:20:2, 2].tolist() == [1, 2] * 5
    assert (rows == X[table[:, 1]]).all()
    assert not table[20:, 0].any()
    assert sorted({*table[:, 1], given["left"][10]}) == list(range(600))


def test_wrong_answers_are_found_out_allowed_for_and_make_no_examples():
    """All comparisons rest on points whose class does not hang on a single answer."""
    rng = np.random.default_rng(0)
    asker = ask(X[:300], lambda a, b: right(a, b) != (rng.random() < 0.15), 24, repeat_share=0.3, random_state=0)
    assert 0.02 < asker.error_rate() < 0.3
    assert asker.review()
    given = asker.answers
    twice = {given["right"][0]}
    for number in range(24):
        pair = {given["left"][number], given["right"][number]}
        before = [k for k in range(number) if {given["left"][k], given["right"][k]} == pair]
        if given["why"][number] in ("random", "uncertain", "explore"):
            assert given["right"][number] in twice
        if before and twice & pair:
            twice |= pair


def given(left, right, answer="same", **more):
    """Answers that were given before, one or several."""
    return {"answers": {"left": left, "right": right, "answer": [answer] * len(right), **more}}


@pytest.mark.parametrize(
    "options",
    [{"X": np.ones((10, 2))}, {"X": np.ones((1, 2))}, {"design": "star"}, {"n_classes": 1}, {"n_classes": "many"},
     {"design": "random", "n_classes": 3}, {"private": 1.0, "n_classes": 3}, {"random_share": 1.5},
     {"repeat_share": -0.1}, {"answers": {"left": [0], "right": [1]}}, given([0], [0]), given([0], [600]),
     given([-1], [1]), given([0], [1], "yes"), given([0, 1], [1]), given([0], [1], why=["odd"]),
     given([0, 1], [2, 3], number=[1, 1])],
)  # fmt: skip
def test_bad_input_is_refused(options):
    with pytest.raises(InputError):
        Asker(**{"X": X, **options})


def test_estimates_wait_for_answers():
    for design in ("linked", "random"):
        asker = Asker(X, design=design)
        for estimate in (asker.accuracy, asker.model):
            with pytest.raises(UndeterminedError):
                estimate()
    answers = [made(2 * k, (2 * k + 1,), k < 6, why="random", number=k) for k in range(12)]
    assert Asker(X, design="random", answers=answers).accuracy().n_answers == 12
    for few in (answers[1:], answers[:-1]):
        with pytest.raises(UndeterminedError) as error:
            Asker(X, design="random", answers=few).accuracy()
        assert error.value.missing == 1


@pytest.mark.filterwarnings(
    "ignore::sdulearn.errors.OrientationWarning", "ignore::sdulearn.errors.TrainingAnswersWarning"
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_model_is_an_estimator_of_the_library_and_labels_follow_the_answers(tmp_path, matcher, n_classes):
    data = load_iris(as_frame=True)
    rows = data.data if n_classes == 3 else data.data[50:].reset_index(drop=True)
    y = data.target.to_numpy() if n_classes == 3 else data.target.to_numpy()[50:]
    oracle = matcher(y) if n_classes == 3 else lambda a, b: y[a] == y[b]
    asker = ask(rows, oracle, 40, n_classes=n_classes, repeat_share=0, random_state=0)
    model = asker.model()
    labels = asker.labels()
    asked = sorted({point for answer in asker.given for point in answer.question.items})
    # Where features contradict a single answer, it may be the answer that is wrong.
    agree = [(labels[a] == labels[b]) == (y[a] == y[b]) for a in asked for b in asked]
    assert np.mean(agree) > 0.9
    unknown = np.setdiff1d(np.arange(len(rows)), asked)
    assert (labels[unknown] == model.predict(rows.iloc[unknown])).all()
    assert np.unique(labels).tolist() == ([-1, 1] if n_classes == 2 else [1, 2, 3])
    estimator = make_pipeline(StandardScaler(), PairLogisticRegression(0.01, n_classes=n_classes))
    assert asker.model(estimator) is estimator
    assert estimator.predict(rows).shape == y.shape
    assert isinstance(model, PairLogisticRegression)
    assert list(model.feature_names_in_) == list(rows.columns)
    assert model.optimality_ < 1e-3
    assert model.answer_model_.rates == {0: 0.0}
    names = np.sort(model.classes_)[(y - y.min())]
    model.orient(rows, names)
    assert np.mean(model.predict(rows) == names) > 0.9
    assert model.score(*asker.stack()) > 0.8
    model.save(tmp_path / "model.sdu")
    np.testing.assert_array_equal(load_model(tmp_path / "model.sdu").predict_proba(rows), model.predict_proba(rows))


def test_the_global_generator_of_numpy_is_left_alone():
    shared = check_random_state(None)
    before = shared.get_state(legacy=False)["state"]
    Asker(X)
    after = shared.get_state(legacy=False)["state"]
    assert (before["pos"], before["key"].tolist()) == (after["pos"], after["key"].tolist())


@pytest.fixture
def iris(matcher):
    """An Asker after 25 right match answers."""
    rows, y = load_iris(return_X_y=True)
    return ask(rows, matcher(y), 25, n_classes="auto", random_state=0)


def test_classes_are_merged_and_split_by_changing_answers(iris):
    asker = iris
    a, b, c = (one.examples[0] for one in asker.classes())
    before = asker.answers
    label = dict(asker._now.classes.label)
    changed = asker.merge(a, b)
    assert len(changed) == 1
    merged = asker._now.classes.label
    assert len(asker.classes()) == 2
    for p, q in itertools.combinations(label, 2):
        pair = {label[p], label[q]}
        assert (merged[p] == merged[q]) == (len(pair) == 1 or pair == {label[a], label[b]})
    # No answer contradicts another.
    assert asker.error_rate() == 0
    with pytest.raises(InputError):
        asker.merge(a, b)
    asker.change(changed[0].given.number, "none")
    assert asker.answers == before
    members = asker._now.classes.members[label[c]]
    with pytest.raises(InputError):
        asker.split(members[0])
    with pytest.raises(InputError):
        asker.split(members[:2])
    # All or nothing.
    assert asker.answers == before
    asker.split(members[1:3])
    assert len(asker.classes()) == 4
    question = asker.next()
    assert {question.left, *question.choices} == set(members[1:3])
    asker.tell(question, 0)
    assert asker._now.classes.label[members[1]] == asker._now.classes.label[members[2]] not in label.values()
    assert 149 not in asker._now.classes.label
    with pytest.raises(InputError):
        asker.merge(a, 149)


def test_another_example_changes_the_question_of_its_person_alone(iris):
    question, other = iris.next("ann"), iris.next("bob")
    sizes = [len(iris.members(point)) for point in question.choices]
    position = int(np.argmax(sizes))
    changed = iris.another_example(question, position)
    assert changed != question
    assert (iris.next("ann"), iris.next("bob")) == (changed, other)


def test_the_likeliest_answers_are_prepared(iris, monkeypatch):
    """The class that the model expects comes first, wherever its example is shown."""
    question = iris.next()
    chances = iris.model().predict_proba(iris._points.X[list(question.items)])
    likely = np.argsort(-chances[0, chances[1:].argmax(axis=1)]).tolist()
    assert likely[0] > 0
    prepared = []
    monkeypatch.setattr(iris, "_choose", lambda given, who: prepared.append(given[-1].reply))
    iris.prepare(question)
    assert prepared == [*likely[: len(prepared) - 2], "none", "unsure"]
    assert len(prepared) > 2


def test_classes_can_begin_with_examples():
    rows, y = load_iris(return_X_y=True)
    asker = Asker(rows, n_classes="auto", seeds=[(0, 1), 50], random_state=0)
    question = asker.next()
    assert sorted(y[list(question.choices)]) == [0, 1]
    assert question.left not in (0, 1, 50)
    for bad in ([0, 0], [(0, 1), (1, 2)], [150], [()]):
        with pytest.raises(InputError):
            Asker(rows, n_classes="auto", seeds=bad)
    with pytest.raises(InputError):
        Asker(rows, seeds=[0])
