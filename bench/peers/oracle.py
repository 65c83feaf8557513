"""Checks `grange solve` against the definitions, written again in numpy by someone who had not read the Go.

    python3 bench/peers/oracle.py bin/grange 100 1

draws 100 random scenarios from seed 1, solves each with grange and with Algorithm 1 as printed in the paper, every
integer tried, every coalition enumerated, and compares status, iterations, contributions and payoffs.
"""

import itertools
import json
import math
import random
import subprocess
import sys
import tempfile

import numpy as np


def clean(accuracy, total):
    total = np.asarray(total, float)
    if accuracy["form"] == "loglinear":
        a = accuracy["alpha"]
        return a[0] * np.log(a[1] * total + a[2]) + a[3] * total + a[4]
    if accuracy["form"] == "power":
        return accuracy["a"] - accuracy["b"] * (total + accuracy["c"]) ** (-accuracy["d"])
    return accuracy["a"] - accuracy["b"] * np.exp(-accuracy["c"] * total)


def accuracy_of(scenario, total, wrong):
    a = scenario["accuracy"]
    total, wrong = np.asarray(total, float), np.asarray(wrong, float)
    untrained = a.get("untrained", float(clean(a, 0.0)))
    value = clean(a, total) - a.get("gamma", 0) * wrong / np.where(total == 0, 1, total)
    value = np.clip(value, a.get("floor", -np.inf), a.get("ceiling", np.inf))
    return np.where(total == 0, untrained, value)


def profit_of(scenario, accuracy):
    p = scenario["profit"]
    if p["form"] == "linear":
        return p["beta"][0] * accuracy + p["beta"][1]
    exponent = 2 if p["form"] == "quadratic" else p["exponent"]
    return p["beta"][0] * np.maximum(accuracy, 0) ** exponent + p["beta"][1]


def cost_of(scenario, contribution):
    c = scenario["cost"]
    exponent = {"linear": 1, "quadratic": 2}.get(c["form"], c.get("exponent"))
    return np.asarray(contribution, float) ** exponent


def indices(scenario, mechanism, s):
    """Indices at many profiles at once: s holds one array per member."""
    n = len(s)
    noise = [m["noise"] for m in scenario["members"]]
    s = [np.asarray(x, float) for x in s]
    nothing = 0 * sum(s)

    def value(coalition):
        total = sum((s[j] for j in coalition), nothing)
        wrong = sum((noise[j] * s[j] for j in coalition), nothing)
        return accuracy_of(scenario, total, wrong)

    everyone = range(n)
    if mechanism == "EG":
        return [nothing + 1 / n for _ in everyone]
    if mechanism == "LP":
        return [(1 - noise[i]) * s[i] + nothing for i in everyone]
    if mechanism == "LOO":
        return [value(everyone) - value([j for j in everyone if j != i]) for i in everyone]
    values = {c: value(c) for k in range(n + 1) for c in itertools.combinations(everyone, k)}
    shapley = []
    for i in everyone:
        others = [j for j in everyone if j != i]
        shapley.append(
            sum(
                (values[tuple(sorted(c + (i,)))] - values[c]) / (n * math.comb(n - 1, k))
                for k in range(n)
                for c in itertools.combinations(others, k)
            )
        )
    return shapley


def payoff(scenario, mechanism, s, i):
    index = np.array(indices(scenario, mechanism, s), float)
    if scenario["negative"] == "clip":
        index = np.maximum(index, 0)
    zero = (index == 0).all(axis=0)
    with np.errstate(all="ignore"):
        share = np.where(zero, 1 / len(index), index[i] / index.sum(axis=0))
    total = sum(np.asarray(x, float) for x in s)
    wrong = sum(m["noise"] * np.asarray(x, float) for m, x in zip(scenario["members"], s))
    earned = share * profit_of(scenario, accuracy_of(scenario, total, wrong))
    return earned - scenario["members"][i]["privacy"] * cost_of(scenario, s[i])


def algorithm1(scenario, mechanism):
    minimum, limit = scenario["solver"]["minimum"], scenario["solver"]["max_iterations"]
    capacity = [m["data"] for m in scenario["members"]]
    s = [max(minimum, math.floor(0.1 * d + 0.5)) for d in capacity]
    seen = set()
    for iteration in range(1, limit + 1):
        before = list(s)
        for i in range(len(s)):
            candidates = np.arange(minimum, capacity[i] + 1)
            profiles = [candidates if j == i else np.full(len(candidates), x) for j, x in enumerate(s)]
            s[i] = int(candidates[np.argmax(payoff(scenario, mechanism, profiles, i))])
        if s == before:
            return "converged", iteration, s
        if tuple(s) in seen:
            return "cycle", iteration, s
        seen.add(tuple(s))
    return "iteration_limit", limit, s


def draw(rng):
    members, capacity, r = rng.randint(2, 5), rng.choice([50, 300, 2000, 8000]), rng.random
    form = rng.choice(["loglinear", "power", "exponential"])
    if form == "loglinear":
        fall = rng.choice([0.02, 0.3])  # with the larger one the curve turns within reach
        accuracy = {"alpha": [0.1 + 0.1 * r(), r() * 20 / capacity, 0.5 + r(), -fall * r() / capacity, 0.1 * r()]}
    elif form == "power":
        accuracy = {"a": 0.9, "b": 0.8, "c": 1 + r(), "d": 0.1 + 0.5 * r()}
    else:
        accuracy = {"a": 0.9, "b": 0.8, "c": (0.5 + 4 * r()) / (members * capacity)}
    accuracy |= {"form": form, "gamma": round(r(), 3)}
    if r() < 0.3:
        accuracy["untrained"] = 0.1
    if r() < 0.2:
        accuracy |= {"floor": 0.05, "ceiling": 0.6}
    elif r() < 0.1:  # at chance level nobody's data make a difference
        accuracy |= {"floor": 0.1, "untrained": 0.1}
    beta = math.exp(3 + 5 * r())
    profit = {"form": rng.choice(["linear", "quadratic", "power"]), "beta": [beta, 5 * r()]}
    if profit["form"] == "power":
        profit["exponent"] = 0.5 + 2 * r()
    cost = {"form": rng.choice(["linear", "quadratic", "power"])}
    if cost["form"] == "power":
        cost["exponent"] = 1.5
    exponent = {"linear": 1, "quadratic": 2}.get(cost["form"], 1.5)
    return {
        "name": "random",
        "accuracy": accuracy,
        "profit": profit,
        "cost": cost,
        "negative": rng.choice(["clip", "clip", "raw"]),
        "solver": {"minimum": rng.choice([0, 1]), "max_iterations": 60},
        "members": [
            {
                "name": f"m{i}",
                "data": rng.randint(max(2, capacity // 3), capacity),
                "noise": rng.choice([0, 0.1, round(0.6 * r(), 3)]),
                "privacy": beta / capacity**exponent * r() * 0.5,
            }
            for i in range(members)
        ],
    }


def main(grange, count, seed):
    rng, compared, different = random.Random(seed), 0, 0
    for number in range(count):
        scenario = draw(rng)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump(scenario, file)  # JSON is YAML
            file.flush()
            solved = subprocess.run([grange, "solve", file.name, "--json"], capture_output=True, text=True)
        if solved.returncode not in (0, 3):
            sys.exit(f"scenario {number}: exit code {solved.returncode}\n{solved.stderr}\n{json.dumps(scenario)}")
        for got in json.loads(solved.stdout)["equilibria"]:
            compared += 1
            want = algorithm1(scenario, got["mechanism"])
            earned = [float(payoff(scenario, got["mechanism"], want[2], i)) for i in range(len(want[2]))]
            slack = 1e-8 * (1 + max(map(abs, earned)))
            same = want == (got["status"], got["iterations"], got["contributions"])
            same = same and all(abs(a - b) <= slack for a, b in zip(earned, got["payoffs"]))
            if not same or (want[0] == "converged" and not got["certified"]):
                different += 1
                print(f"scenario {number}, {got['mechanism']}: want {want}, got {json.dumps(got)}\n{json.dumps(scenario)}")
    print(f"{compared} equilibria compared, {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
