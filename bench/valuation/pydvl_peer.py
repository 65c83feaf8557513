"""pyDVL's side of the comparison. Its samplers stop once as many coalitions as allowed were valued, each counted once;
they notice after the sample that exceeds it, which is to their advantage."""

import time

import numpy as np
from pydvl.valuation import (
    AntitheticOwenSampler,
    AntitheticPermutationSampler,
    ConstantSampleSize,
    Dataset,
    DeterministicUniformSampler,
    NoStopping,
    OwenSampler,
    PermutationSampler,
    RandomIndexIteration,
    RandomSizeIteration,
    RelativeTruncation,
    ShapleyValuation,
    Status,
    StratifiedSampler,
    UniformOwenStrategy,
)
from pydvl.valuation.samplers.powerset import FiniteSequentialIndexIteration
from pydvl.valuation.stopping import StoppingCriterion
from pydvl.valuation.utility.base import UtilityBase


class Worth(UtilityBase):
    """A table of worths that counts the coalitions asked for."""

    def __init__(self, table):
        self.table = table
        self.seen = set()

    def __call__(self, sample):
        coalition = 0
        if sample is not None:
            for member in sample.subset:
                coalition |= 1 << int(member)
        self.seen.add(coalition)
        return float(self.table[coalition])


class Valued(StoppingCriterion):
    """Stops when enough coalitions were valued."""

    def __init__(self, worth, most):
        super().__init__()
        self.worth, self.most = worth, most

    def _check(self, result):
        done = len(self.worth.seen) >= self.most
        self._converged = np.full(len(result.indices), done)
        return Status.Converged if done else Status.Pending


METHODS = {
    "permutation": lambda seed: PermutationSampler(seed=seed),
    "antithetic": lambda seed: AntitheticPermutationSampler(seed=seed),
    "truncated": lambda seed: PermutationSampler(truncation=RelativeTruncation(rtol=0.01, burn_in_fraction=0.4), seed=seed),
    "owen": lambda seed: OwenSampler(
        outer_sampling_strategy=UniformOwenStrategy(n_samples_outer=1, seed=seed), n_samples_inner=2, index_iteration=RandomIndexIteration, seed=seed
    ),
    "antithetic owen": lambda seed: AntitheticOwenSampler(
        outer_sampling_strategy=UniformOwenStrategy(n_samples_outer=1, seed=seed), n_samples_inner=2, index_iteration=RandomIndexIteration, seed=seed
    ),
    "stratified": lambda seed: StratifiedSampler(
        sample_sizes=ConstantSampleSize(n_samples=None), sample_sizes_iteration=RandomSizeIteration, index_iteration=RandomIndexIteration, seed=seed
    ),
}


def players(members):
    return Dataset(np.arange(members).reshape(-1, 1), np.zeros((members, 1)))


def fit(worth, sampler, stop):
    members = len(worth.table).bit_length() - 1
    valuation = ShapleyValuation(worth, sampler, is_done=stop, show_warnings=False, progress=False)
    return np.array(valuation.fit(players(members)).result.values)


def estimate(table, method, budget, seed):
    worth = Worth(table)
    return fit(worth, METHODS[method](seed), Valued(worth, budget))


def exact(table):
    begin = time.perf_counter()
    values = fit(Worth(table), DeterministicUniformSampler(index_iteration=FiniteSequentialIndexIteration), NoStopping())
    return {"Seconds": time.perf_counter() - begin, "Values": list(values)}
