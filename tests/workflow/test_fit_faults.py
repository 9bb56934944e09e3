import numpy as np
import pandas as pd

from sdulearn import fit_table


def test_the_accuracy_is_that_of_answers_that_were_not_learned_from():
    """Answers that have nothing to do with 60 columns: a model learns 40 of them by heart, and predicts none."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 60)), columns=[f"x{k}" for k in range(60)])
    table.insert(0, "id", [f"r{k}" for k in range(200)])
    ends = rng.permutation(200)[:80].reshape(-1, 2)
    answers = pd.DataFrame(
        {
            "id_a": table["id"].to_numpy()[ends[:, 0]],
            "id_b": table["id"].to_numpy()[ends[:, 1]],
            "label": rng.permutation(np.r_[np.ones(26), np.zeros(14)]).astype(int),
        }
    )
    model = fit_table(table, answers, method="sd", loss="logistic", prior=0.7)
    positive = model.predict(table) == "1"
    learned = np.mean((positive[ends[:, 0]] == positive[ends[:, 1]]) == (answers["label"] == 1))
    assert learned > 0.75
    # Half and half is what is left; 40 answers have a standard deviation of 0.08.
    assert model.report.accuracy.agreement < learned - 0.1
    assert model.report.accuracy.agreement < 0.66
