"""The Asker: a function of points, seed and answers."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, load_model
from sdulearn.asking import Asker, Question, ask
from sdulearn.errors import InputError, NothingToAskError, UndeterminedError


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(600, 6, n_informative=4, class_sep=1.5, flip_y=0, random_state=3)
    return X, y


def answer_all(asker, y, n, annotators=(None,)):
    asked = []
    for k in range(n):
        who = annotators[k % len(annotators)]
        question = asker.next(who)
        asker.tell(question, bool(y[question.left] == y[question.right]), who)
        asked.append(question)
    return asked


def test_questions_depend_on_the_seed_alone(data):
    X, y = data
    first, again, other = (answer_all(Asker(X, random_state=seed), y, 20) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("design", ["linked", "random"])
def test_undo_of_any_depth_restores_all(data, design):
    X, y = data
    asker = Asker(X, design=design, random_state=0)
    asked = answer_all(asker, y, 25)
    for question in reversed(asked[10:]):
        undone = asker.undo()
        assert Question(undone.left, undone.choices, undone.kind, undone.number, undone.rank) == question
        assert asker.next() == question
    assert answer_all(asker, y, 15) == asked[10:]


def test_undo_takes_back_the_latest_answer_of_one_person(data):
    X, y = data
    asker = Asker(X, random_state=0)
    answer_all(asker, y, 6, annotators=("Ann", "Bob"))
    assert asker.undo("Ann").number == 5
    assert asker.undo().number == 6
    with pytest.raises(InputError, match="no answer to undo"):
        asker.undo("Cora")


def test_an_asker_goes_on_from_answers(data):
    X, y = data
    whole = Asker(X, random_state=5)
    asked = answer_all(whole, y, 40)
    first = {name: values[:25] for name, values in whole.answers.items()}
    resumed = Asker(X, random_state=5, answers=first)
    assert answer_all(resumed, y, 15) == asked[25:]
    assert resumed.answers == whole.answers
    assert resumed.accuracy() == whole.accuracy()


def test_answers_may_come_as_a_frame(data):
    pd = pytest.importorskip("pandas")
    X, y = data
    asker = Asker(X, random_state=5)
    answer_all(asker, y, 10)
    assert Asker(X, answers=pd.DataFrame(asker.answers), random_state=5).next() == asker.next()


def test_change_is_as_if_it_had_been_told(data):
    X, y = data
    asker = Asker(X, random_state=0)
    answer_all(asker, y, 20)
    told = asker.answers
    number = told["number"][4]
    asker.change(number, "different" if told["answer"][4] == "same" else "same")
    assert asker.answers["answer"][4] != told["answer"][4]
    assert Asker(X, random_state=0, answers=asker.answers).next() == asker.next()
    asker.change(number, told["answer"][4])
    assert asker.answers == told


def test_preparing_changes_nothing(data):
    X, y = data
    one, other = (Asker(X, random_state=0) for _ in range(2))
    for _ in range(10):
        question = one.next()
        one.prepare(question)
        assert question == other.next()
        for asker in (one, other):
            asker.tell(question, bool(y[question.left] == y[question.right]))


def test_threads_may_prepare(data):
    X, y = data
    asker = Asker(X, random_state=0)
    expected = answer_all(Asker(X, random_state=0), y, 10)
    with ThreadPoolExecutor(3) as pool:
        work = []
        for question in expected:
            assert asker.next() == question
            work.append(pool.submit(asker.prepare, question))
            asker.tell(question, bool(y[question.left] == y[question.right]))
        for one in work:
            one.result()


def test_a_question_stays_until_it_is_answered_or_skipped(data):
    X, y = data
    asker = Asker(X, random_state=0)
    answer_all(asker, y, 15)
    question = asker.next("Ann")
    assert asker.next("Ann") == question
    assert asker.next("Bob").left != question.left
    asker.skip("Ann")
    other = asker.next("Ann")
    assert other.left != question.left
    assert other.number != question.number
    asker.tell(question, "same", "Ann")
    with pytest.raises(InputError, match="answered already"):
        asker.tell(question, "same", "Ann")


def test_random_pairs_share_no_point(data):
    X, y = data
    asked = answer_all(Asker(X, design="random", repeat_share=0, random_state=0), y, 150)
    points = [point for question in asked for point in (question.left, question.right)]
    assert len(set(points)) == 300
    assert {question.kind for question in asked} == {"random"}


def test_random_pairs_end(data):
    X, y = data
    asker = ask(X[:21], lambda a, b: y[a] == y[b], 50, design="random", repeat_share=0, random_state=0)
    assert asker.n_answers == 10
    with pytest.raises(NothingToAskError):
        asker.next()


def test_linked_questions_end_when_all_is_known(data):
    X, y = data
    asker = ask(X[:30], lambda a, b: y[a] == y[b], 200, repeat_share=0, random_state=0)
    assert asker.n_answers == 29
    assert sum(found.n_points for found in asker.classes()) == 30


def test_shares_of_random_questions_and_checks_are_kept(data):
    X, y = data
    asked = answer_all(Asker(X, random_share=0.4, repeat_share=0.1, random_state=0), y, 50)
    kinds = [question.kind for question in asked]
    # Where two kinds are due at once, one of them waits.
    assert 19 <= kinds.count("random") <= 20
    assert sum(kinds.count(kind) for kind in ("repeat", "triangle", "doubtful")) == 5


def test_open_questions_count_to_their_share(data):
    X, y = data
    asker = Asker(X, random_share=0.25, repeat_share=0, random_state=0)
    answer_all(asker, y, 40)
    before = asker.answers["kind"].count("random")
    opened = [asker.next(f"person {k}").kind for k in range(12)]
    assert before + opened.count("random") == pytest.approx(0.25 * 52, abs=1)


def test_classes_of_two_class_answers_are_right(data):
    X, y = data
    asker = ask(X, lambda a, b: y[a] == y[b], 60, random_state=0)
    for found in asker.classes():
        assert len(set(y[list(found.examples)])) == 1
    assert asker.contradictions() == []
    agree = (asker.model().predict(X) > 0) == y
    assert max(agree.mean(), 1 - agree.mean()) > 0.9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_are_those_of_the_answers_where_they_tell_them(n_classes):
    X, y = make_classification(
        200, 4, n_informative=3, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )
    asker = ask(X, lambda a, b: y[a] == y[b], 30, n_classes=n_classes, repeat_share=0, random_state=0)
    labels = asker.labels()
    told = np.array(asker.answers["answer"]) == "same"
    same = labels[asker.answers["left"]] == labels[asker.answers["right"]]
    assert (same == told).all()
    assert set(labels) == set(asker.model().classes_)
    unknown = np.setdiff1d(np.arange(200), asker.answers["left"] + asker.answers["right"])
    assert (labels[unknown] == asker.model().predict(X[unknown])).all()


def test_unsure_gives_a_point_up(data):
    X, _ = data
    asker = Asker(X, random_state=0)
    question = asker.next()
    asker.tell(question, "unsure")
    other = asker.next()
    assert question.left not in (other.left, other.right)
    assert asker.answers["answer"] == ["unsure"]


def test_classes_are_found_on_digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    asker = ask(X, lambda a, b: y[a] == y[b], 40, n_classes="auto", random_state=0)
    found = asker.classes()
    assert len(found) == 4
    assert [one.number for one in found] == [1, 2, 3, 4]
    model = asker.model()
    predicted = model.predict(X)
    names = {one.number: y[one.examples[0]] for one in found}
    assert np.mean([names[k] == digit for k, digit in zip(predicted, y, strict=True)]) > 0.9


def test_stack_has_two_rows_an_answer_and_the_rest(data):
    X, y = data
    asker = Asker(X, random_state=0)
    answer_all(asker, y, 10, annotators=("Ann", "Bob"))
    asker.tell(asker.next("Ann"), "unsure", "Ann")
    rows, table = asker.stack()
    told = asker.answers
    assert table[:20, 1].reshape(-1, 2).tolist() == np.column_stack([told["left"], told["right"]])[:10].tolist()
    assert (np.sign(table[:20:2, 0]) == [1 if a == "same" else -1 for a in told["answer"][:10]]).all()
    assert table[:20:2, 2].tolist() == [1, 2] * 5
    assert (rows == X[table[:, 1]]).all()
    assert not table[20:, 0].any()


def test_an_oracle_with_errors_is_found_out_and_allowed_for(data):
    X, y = data
    rng = np.random.default_rng(0)

    def mostly_right(a, b):
        return bool((y[a] == y[b]) != (rng.random() < 0.15))

    asker = ask(X, mostly_right, 70, repeat_share=0.3, random_state=0)
    assert 0.05 < asker.error_rate() < 0.3
    agree = (asker.model().predict(X) > 0) == y
    assert max(agree.mean(), 1 - agree.mean()) > 0.85
    assert asker.contradictions()


def test_one_wrong_answer_makes_no_example(data):
    """All comparisons rest on points whose class does not hang on a single answer."""
    X, y = data
    rng = np.random.default_rng(1)
    asker = ask(X, lambda a, b: bool((y[a] == y[b]) != (rng.random() < 0.1)), 50, random_state=0)
    told = asker.answers
    first = told["right"][0]
    twice = {first}
    for number in range(50):
        pair = {told["left"][number], told["right"][number]}
        before = [k for k in range(number) if {told["left"][k], told["right"][k]} == pair]
        if told["kind"][number] in ("random", "linked", "explore"):
            assert told["right"][number] in twice
        if before and twice & pair:
            twice |= pair


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"design": "star"}, "`design` is one of"),
        ({"n_classes": 1}, "`n_classes` must be 2 or more"),
        ({"n_classes": "many"}, "`n_classes` must be 2 or more"),
        ({"design": "random", "n_classes": 3}, "is for two classes"),
        ({"random_share": 1.5}, "`random_share` must lie between 0 and 1"),
        ({"repeat_share": -0.1}, "`repeat_share` must lie between 0 and 1"),
        ({"private": 0.0}, "`epsilon` must be a number above 0"),
        ({"answers": {"left": [0], "right": [1]}}, "no column 'answer'"),
        ({"answers": {"left": [0], "right": [0], "answer": ["same"]}}, "with itself"),
        ({"answers": {"left": [0], "right": [999], "answer": ["same"]}}, "row numbers 0 to 599"),
        ({"answers": {"left": [0], "right": [1], "answer": ["yes"]}}, 'An answer is "same"'),
        ({"answers": {"left": [0, 1], "right": [1], "answer": ["same"]}}, "differ in length"),
        ({"answers": {"left": [0], "right": [1], "answer": ["same"], "kind": ["odd"]}}, "has the kind 'odd'"),
    ],
)
def test_bad_input_is_refused(data, options, message):
    with pytest.raises(InputError, match=message):
        Asker(data[0], **options)


def test_points_that_cannot_be_told_apart_are_refused():
    with pytest.raises(InputError, match="All rows of `X` are equal"):
        Asker(np.ones((10, 2)))
    with pytest.raises(InputError, match="needs two points"):
        Asker(np.ones((1, 2)))


def test_estimates_wait_for_answers(data):
    X, _ = data
    for design in ("linked", "random"):
        asker = Asker(X, design=design, random_state=0)
        with pytest.raises(UndeterminedError):
            asker.accuracy()
        with pytest.raises(UndeterminedError):
            asker.model()


def test_sparse_rows_and_frames_ask_the_same(data):
    pd = pytest.importorskip("pandas")
    sparse = pytest.importorskip("scipy.sparse")
    X, y = data
    plain = answer_all(Asker(X, random_state=0), y, 20)
    assert answer_all(Asker(sparse.csr_matrix(X), random_state=0), y, 20) == plain
    assert answer_all(Asker(pd.DataFrame(X), random_state=0), y, 20) == plain


def test_iris_has_three_classes_with_honest_shares():
    X, y = load_iris(return_X_y=True)
    asker = ask(X, lambda a, b: y[a] == y[b], 50, n_classes="auto", random_state=0)
    found = asker.classes()
    assert len(found) == 3
    assert all(one.low <= 1 / 3 <= one.high for one in found)
    assert sum(one.share for one in found) == pytest.approx(1)


@pytest.mark.parametrize("design", ["linked", "random"])
def test_the_accuracy_after_the_first_answers_is_that_of_then(design):
    X, y = make_classification(200, 5, class_sep=2, random_state=0)
    asker = Asker(X, design=design, random_state=0)
    then = None
    for n in range(1, 41):
        question = asker.next()
        asker.tell(question, bool(y[question.left] == y[question.right]))
        if n == 30:
            then = asker.accuracy()
    assert asker.accuracy(first=30) == then
    assert asker.accuracy(first=40) == asker.accuracy() != then


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_model_is_an_estimator_of_the_library(tmp_path, n_classes):
    data = load_iris(as_frame=True)
    X = data.data if n_classes == 3 else data.data[50:].reset_index(drop=True)
    y = data.target.to_numpy() if n_classes == 3 else data.target.to_numpy()[50:]
    asker = ask(X, lambda a, b: y[a] == y[b], 40, n_classes=n_classes, random_state=0)
    model = asker.model()
    assert isinstance(model, PairLogisticRegression)
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.optimality_ < 1e-3
    assert model.answer_model_.rates == {0: 0.0}
    names = np.sort(model.classes_)[(y - y.min())]
    model.orient(X, names)
    assert np.mean(model.predict(X) == names) > 0.9
    assert model.score(*asker.stack()) > 0.8
    model.save(tmp_path / "model.sdu")
    np.testing.assert_array_equal(load_model(tmp_path / "model.sdu").predict_proba(X), model.predict_proba(X))


def test_any_estimator_of_pairs_can_be_fitted():
    X, y = make_classification(200, 4, n_informative=3, n_redundant=0, class_sep=2, flip_y=0, random_state=0)
    asker = ask(X, lambda a, b: y[a] == y[b], 60, random_state=0)
    given = make_pipeline(StandardScaler(), PairLogisticRegressionCV(prior_strength=0))
    model = asker.model(given)
    assert model is given
    agree = np.mean((model.predict(X) > 0) == (asker.model().predict(X) > 0))
    assert max(agree, 1 - agree) > 0.9


def test_the_generator_that_all_programs_share_is_left_alone(data):
    shared = check_random_state(None)
    before = shared.get_state(legacy=False)["state"]
    Asker(data[0])
    after = shared.get_state(legacy=False)["state"]
    assert before["pos"] == after["pos"]
    np.testing.assert_array_equal(before["key"], after["key"])


def test_a_question_that_is_given_back_goes_to_whoever_comes_next(data):
    asker = Asker(data[0], design="random", random_state=0)
    first = asker.next("ann")
    asker.skip("ann", later=False)
    assert asker.next("bob") == first
    assert asker.next("ann") != first
