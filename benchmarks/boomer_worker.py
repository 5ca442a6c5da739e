"""BOOMER in its own interpreter: it needs an older scikit-learn than latticework does.

Run by :class:`benchmarks.rivals.Boomer` as ``PYTHON boomer_worker.py`` in an environment with
``mlrl-boomer``.  One JSON request per line on standard input, one JSON reply per line on standard
output; matrices travel as ``.npz`` files named in the request.

    {"do": "fit", "data": "fit.npz", "max_rules": 50, "seed": 1, "nominal": [0, 3]}
    {"do": "predict", "data": "new.npz", "out": "probabilities.npz"}
"""

import importlib.metadata
import json
import sys
import time

import numpy as np
from mlrl.boosting import BoomerClassifier


def fit(request):
    data = np.load(request["data"])
    model = BoomerClassifier(random_state=request["seed"] + 1, max_rules=request["max_rules"])
    nominal = {"nominal_feature_indices": request["nominal"]} if request["nominal"] else {}
    start, start_cpu = time.perf_counter(), time.process_time()
    model.fit(data["X"], data["y"].reshape(-1, 1), **nominal)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    lengths = [len(list(rule.body)) for rule in model.model_]
    lengths = [length for length in lengths if length > 0]  # without the default rule
    reply = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "n_rules": len(lengths),
        "mean_length": float(np.mean(lengths)) if lengths else 0.0,
        "version": importlib.metadata.version("mlrl-boomer"),
    }
    return model, reply


def predict(model, request):
    X = np.load(request["data"])["X"]
    np.savez(request["out"], probability=model.predict_proba(X)[:, -1], label=model.predict(X))
    return {"done": True}


def main():
    model = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "fit":
            model, reply = fit(request)
        else:
            reply = predict(model, request)
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
