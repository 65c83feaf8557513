"""shapiq's side of the comparison; called by main.go, answers in JSON. pyDVL's is in pydvl_peer.py."""

import json
import sys
import time

import numpy as np
from shapiq import approximator as peers
from shapiq.game_theory.exact import ExactComputer

import pydvl_peer


def game_of(path):
    table = np.fromfile(path, dtype="<f8")
    members = len(table).bit_length() - 1
    bits = 1 << np.arange(members, dtype=np.int64)

    def game(coalitions):
        return table[np.atleast_2d(coalitions).astype(np.int64) @ bits]

    return table, members, game


def first_order(values, members):
    return np.array([float(values[(i,)]) for i in range(members)])


def exact(path):
    _, members, game = game_of(path)
    begin = time.perf_counter()
    computer = ExactComputer(game, n_players=members, evaluate_game=True)
    begin_values = time.perf_counter()
    values = first_order(computer("SV", 1), members)
    return {"Seconds": time.perf_counter() - begin_values, "Setup": begin_values - begin, "Values": list(values)}


def approximators(members, seed):
    yield "kernel", lambda: peers.KernelSHAP(members, random_state=seed)
    yield "kernel, paired", lambda: peers.KernelSHAP(members, pairing_trick=True, random_state=seed)
    yield "unbiased kernel, paired", lambda: peers.UnbiasedKernelSHAP(members, pairing_trick=True, random_state=seed)
    yield "2-additive", lambda: peers.kADDSHAP(members, max_order=2, random_state=seed)
    yield "2-additive, paired", lambda: peers.kADDSHAP(members, max_order=2, pairing_trick=True, random_state=seed)
    yield "3-additive, paired", lambda: peers.kADDSHAP(members, max_order=3, pairing_trick=True, random_state=seed)
    yield "kernel-iq, paired", lambda: peers.KernelSHAPIQ(members, max_order=2, index="SII", pairing_trick=True, random_state=seed)
    yield "svarm, paired", lambda: peers.SVARM(members, pairing_trick=True, random_state=seed)
    yield "permutation", lambda: peers.PermutationSamplingSV(members, random_state=seed)
    yield "stratified", lambda: peers.StratifiedSamplingSV(members, random_state=seed)
    yield "owen", lambda: peers.OwenSamplingSV(members, random_state=seed)


def error(path, name, seeds, budgets):
    table, members, game = game_of(path)
    truth = first_order(ExactComputer(game, n_players=members, evaluate_game=True)("SV", 1), members)
    found = []
    for budget in budgets:
        for method, _ in approximators(members, 0):
            if method == "3-additive, paired" and budget < 1500:
                continue
            errors = []
            for seed in range(seeds):
                make = dict(approximators(members, seed))[method]
                values = first_order(make().approximate(budget, game), members)
                errors.append(float(np.sqrt(np.mean((values - truth) ** 2))))
            found.append({"Game": name, "Budget": budget, "Method": "shapiq " + method, "Error": float(np.median(errors))})
        for method in pydvl_peer.METHODS:
            errors = []
            for seed in range(seeds):
                values = pydvl_peer.estimate(table, method, budget, seed)
                errors.append(float(np.sqrt(np.mean((values - truth) ** 2))))
            found.append({"Game": name, "Budget": budget, "Method": "pydvl " + method, "Error": float(np.median(errors))})
    return found


if __name__ == "__main__":
    if sys.argv[1] == "exact":
        answer = exact(sys.argv[2])
    elif sys.argv[1] == "exact-pydvl":
        answer = pydvl_peer.exact(np.fromfile(sys.argv[2], dtype="<f8"))
    else:
        answer = error(sys.argv[2], sys.argv[3], int(sys.argv[4]), [int(b) for b in sys.argv[5].strip("[]").split()])
    json.dump(answer, sys.stdout)
