"""COBRAS and NPU with MPCK-means, run by a Python that has them (benchmarks/asking.py --rivals PYTHON calls this).

    pip install cobras-ts active-semi-supervised-clustering tornado bokeh pandas

cobras-ts was written for an older numpy and asks for plotting packages that clustering does not need: both are put in
their place here, its code is as published. Prints the labels of all points after each number of questions as JSON.
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
    return {n: [int(k) for k in found[min(n, len(found)) - 1]] for n in sizes}


def npu(X, y, sizes):
    from active_semi_clustering.active.pairwise_constraints import NPU, ExampleOracle
    from active_semi_clustering.semi_supervised.pairwise_constraints import MPCKMeans

    found = {}
    for n in sizes:
        model = MPCKMeans(n_clusters=len(set(y.tolist())), max_iter=10)
        learner = NPU(model)
        learner.fit(X, oracle=ExampleOracle(y, max_queries_cnt=n))
        same, different = learner.pairwise_constraints_
        model.fit(X, ml=same, cl=different)
        found[n] = [int(k) for k in model.labels_]
    return found


def main():
    warnings.simplefilter("ignore")
    file, method, *sizes = sys.argv[1:]
    data = np.load(file)
    run = {"cobras": cobras, "npu": npu}[method]
    print(json.dumps(run(data["X"], data["y"], [int(n) for n in sizes])))


if __name__ == "__main__":
    main()
