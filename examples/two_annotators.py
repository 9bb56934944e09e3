"""Two people who disagree: how often each is wrong, and which answers to ask again.

    python examples/two_annotators.py

Both answered the same 150 questions; Ann is wrong in 4% of them and Bob in 20%. The model is not told: where they
disagree one of the two is wrong, and the model learns from all answers who is wrong more often.
"""

import numpy as np

from sdulearn import PairLogisticRegressionCV, stack_pairs
from sdulearn.answers import doubtful_answers
from sdulearn.datasets import make_waveform

X, y = make_waveform(3000, random_state=0)
rng = np.random.default_rng(0)
asked = rng.permutation(np.flatnonzero(y != 0))[:300].reshape(-1, 2)
truth = y[asked[:, 0]] == y[asked[:, 1]]
ann = truth ^ (rng.random(150) < 0.04)
bob = truth ^ (rng.random(150) < 0.20)

rows, known = stack_pairs(
    X, np.concatenate([asked, asked]), np.concatenate([ann, bob]), annotators=np.repeat([1, 2], 150)
)
model = PairLogisticRegressionCV(prior=float(np.mean(y > 0))).fit(rows, known)
for name, found in zip(("Ann", "Bob"), model.answer_model_.by_annotator.values(), strict=True):
    print(f"{name} is wrong in {found.value:.0%} of the answers ({found.low:.0%} to {found.high:.0%})")

doubtful = doubtful_answers(model, rows, known)
wrong = np.concatenate([ann != truth, bob != truth])[np.abs(doubtful.code) - 1]
print(f"of the 20 most doubtful answers {wrong[:20].sum()} are wrong; {wrong.sum()} of all {len(wrong)} are")
