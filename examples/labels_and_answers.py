"""Learn from twenty labels and two hundred answers together; the labels also name the classes.

python examples/labels_and_answers.py
"""

import numpy as np

from sdulearn import PairLogisticRegressionCV, stack_pairs
from sdulearn.datasets import make_waveform

X, y = make_waveform(5000, random_state=0)
rng = np.random.default_rng(3)
points = rng.permutation(len(X))
asked = points[:400].reshape(-1, 2)
same = y[asked[:, 0]] == y[asked[:, 1]]
labels = np.zeros(len(X), dtype=int)
labels[points[400:420]] = y[points[400:420]]
test = points[1000:]
unlabeled = points[420:1000]


def accuracy(pairs, answers, **known):
    """Accuracy on rows that were not used."""
    rows, what_is_known = stack_pairs(X, pairs, answers, unlabeled=unlabeled, **known)
    model = PairLogisticRegressionCV().fit(rows, what_is_known)
    return np.mean(model.predict(X[test]) == y[test])


print(f"20 labels:                 {accuracy(asked[:0], same[:0], labels=labels):.1%}")
print(f"200 answers and 20 labels: {accuracy(asked, same, labels=labels):.1%}")
