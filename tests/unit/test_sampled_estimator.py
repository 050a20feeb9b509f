"""The estimator's arithmetic, against a twin written from the formulas, with a fixed stream."""

import math
import statistics
from array import array

import pytest

_heap = pytest.importorskip(
    "diagnostics.probes._heap", reason="the sampled engine was not built: no C compiler"
)

MASK = (1 << 64) - 1


class Stream:
    """xorshift128+ (Vigna 2017), filled by splitmix64, as uniform numbers in (0, 1]."""

    def __init__(self, seed):
        self.state = []
        for _ in range(2):
            seed = (seed + 0x9E3779B97F4A7C15) & MASK
            z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            self.state.append(z ^ (z >> 31))

    def uniform(self):
        a, b = self.state
        a ^= (a << 23) & MASK
        c = a ^ b ^ (a >> 17) ^ (b >> 26)
        self.state = [b, c]
        return (((c + b) & MASK) >> 11) * 2.0**-53 + 2.0**-53

    def gap(self, rate):
        return int(-math.log(self.uniform()) * rate) + 1


def expected(sizes, rate, seed):
    stream = Stream(seed)
    countdown = stream.gap(rate)
    picked = []
    for position, size in enumerate(sizes):
        countdown -= size
        if countdown <= 0:
            chance = -math.expm1(-size / rate)
            picked.append((position, round(size / chance), round(1024 / chance)))
            countdown = stream.gap(rate)
    return picked


def picks(sizes, rate, seed):
    flat = iter(array("q", _heap.picks(array("q", sizes).tobytes(), rate, seed)))
    return list(zip(*[flat] * 3, strict=True))


@pytest.mark.parametrize("rate", [64.0, 512.0, 8192.0])
@pytest.mark.parametrize("seed", [1, 87, 2**63 - 1])
def test_the_same_blocks_are_picked_with_the_same_weights(rate, seed):
    sizes = [16 + (number * 7919) % 4000 for number in range(3000)] + [100_000, 5, 1_000_000]
    assert picks(sizes, rate, seed) == expected(sizes, rate, seed)


def test_a_block_far_above_the_rate_is_always_picked_and_stands_for_itself():
    assert picks([1_000_000] * 5, 512.0, 3) == [(n, 1_000_000, 1024) for n in range(5)]


def test_sums_of_weights_are_unbiased():
    sizes = [48] * 20_000 + [700] * 2_000 + [30_000] * 10
    true = sum(sizes)
    sums = [sum(weight for _, weight, _ in picks(sizes, 4096.0, seed)) for seed in range(400)]
    # Variance of one block of size s picked with chance p: s^2 (1 - p) / p.
    variance = 0.0
    for size in sizes:
        chance = -math.expm1(-size / 4096.0)
        variance += size * size * (1 - chance) / chance
    error_of_mean = math.sqrt(variance / len(sums))
    assert abs(statistics.fmean(sums) - true) < 4 * error_of_mean
    assert statistics.stdev(sums) == pytest.approx(math.sqrt(variance), rel=0.15)
