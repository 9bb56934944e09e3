"""Write the two files that the command line starts from: a table of points, and answers about pairs of them.

    python examples/two_files.py

writes points.csv, answers.csv, few.csv and new.csv into the current folder: scikit-learn's breast cancer data, with an
id per patient, 150 correct answers, six labelled patients, and 69 new patients.
"""

import csv

import numpy as np
from sklearn.datasets import load_breast_cancer

data = load_breast_cancer()
names = [name.replace(" ", "_") for name in data.feature_names[:10]]
ids = [f"p{k:03}" for k in range(len(data.data))]
truth = data.target_names[data.target]


def write(path, head, rows):
    """Write a CSV file."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([head, *rows])


def point(k):
    """Return the id of a patient and ten measurements."""
    return [ids[k], *data.data[k, :10].round(4).tolist()]


order = np.random.default_rng(2).permutation(len(ids)).tolist()
later, known = order[:69], order[69:]
asked = np.reshape(known[:300], (-1, 2)).tolist()
write("points.csv", ["id", *names], (point(k) for k in sorted(known)))
write("new.csv", ["id", *names], (point(k) for k in sorted(later)))
answer = {True: "similar", False: "dissimilar"}
write("answers.csv", ["id_a", "id_b", "label"], ([ids[a], ids[b], answer[truth[a] == truth[b]]] for a, b in asked))
write("few.csv", ["id", "label"], ([ids[k], truth[k]] for k in known[-6:]))
