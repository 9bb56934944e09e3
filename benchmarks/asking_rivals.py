"""COBRAS and NPU with MPCK-means, run by a Python that has them (benchmarks/asking.py --rivals PYTHON calls this).

    make bench-rivals

cobras-ts was written for an older numpy and asks for plotting packages that clustering does not need: both are put in
their place here, its code is as published. Prints the labels of all points after each number of questions as JSON, a
line each, as soon as they are there.
"""

import json
import sys
import types
import warnings

import numpy as np

vars(np).update(int=int, float=float)
for module, name in (("visualquerier", "VisualQuerier"), ("visualquerier_images", "VisualImageQuerier")):
    stub = types.ModuleType(f"cobras_ts.querier.{module}")
    setattr(stub, name, object)
    sys.modules[f"cobras_ts.querier.{module}"] = stub


def cobras(X, y, sizes):
    from cobras_ts.cobras_kmeans import COBRAS_kmeans
    from cobras_ts.querier.labelquerier import LabelQuerier

    found = COBRAS_kmeans(X, LabelQuerier(y), max(sizes), store_intermediate_results=True).cluster()[1]
    # It stops before the last question where nothing is left to refine.
    yield from ((n, found[min(n, len(found)) - 1]) for n in sizes)


def npu(X, y, sizes):
    from active_semi_clustering.active.pairwise_constraints import NPU, ExampleOracle
    from active_semi_clustering.semi_supervised.pairwise_constraints import MPCKMeans

    for n in sizes:
        model = MPCKMeans(n_clusters=len(set(y.tolist())), max_iter=10)
        learner = NPU(model)
        learner.fit(X, oracle=ExampleOracle(y, max_queries_cnt=n))
        same, different = learner.pairwise_constraints_
        model.fit(X, ml=same, cl=different)
        yield n, model.labels_


def main():
    warnings.simplefilter("ignore")
    file, method, *sizes = sys.argv[1:]
    data = np.load(file)
    run = {"cobras": cobras, "npu": npu}[method]
    for n, labels in run(data["X"], data["y"], [int(n) for n in sizes]):
        print(json.dumps([n, [int(k) for k in labels]]), flush=True)


if __name__ == "__main__":
    main()
