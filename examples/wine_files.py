"""Write a table of three kinds of wine, answers of three people, and a few labels, for the command line.

    python examples/wine_files.py

writes wine.csv, wine-answers.csv and wine-labels.csv into the current folder: scikit-learn's wine set with an id for
each bottle, the answers of Ann, Bob and Cleo to the same 100 questions, and the kinds of twenty bottles. Ann and Cleo
are right; Bob is wrong in one answer of ten.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

rng = np.random.default_rng(0)
data = load_wine(as_frame=True)
kind = data.target.to_numpy()
ids = np.array([f"bottle-{k}" for k in range(len(kind))])
data.data.assign(id=ids).to_csv("wine.csv", index=False)

ends = rng.integers(0, len(kind), (110, 2))
ends = ends[ends[:, 0] != ends[:, 1]][:100]
same = kind[ends[:, 0]] == kind[ends[:, 1]]
parts = []
for name, rate in {"Ann": 0.0, "Bob": 0.1, "Cleo": 0.0}.items():
    answer = np.where(same ^ (rng.random(len(same)) < rate), "same", "different")
    parts.append(pd.DataFrame({"id_a": ids[ends[:, 0]], "id_b": ids[ends[:, 1]], "label": answer, "annotator": name}))
pd.concat(parts).to_csv("wine-answers.csv", index=False)

few = rng.permutation(len(kind))[:20]
names = np.array(["barolo", "grignolino", "barbera"])
pd.DataFrame({"id": ids[few], "label": names[kind[few]]}).to_csv("wine-labels.csv", index=False)
