from fractions import Fraction
from math import prod

import numpy as np
import pytest

from chapters.s13.markov_availability import RepairedParts, repair_chain
from relparallel.reliability import unavailability


def parts(count, needed=1, mtbf=100.0, mttr=3.0, **more):
    return RepairedParts(name="part", count=count, needed=needed, mtbf=mtbf, mttr=mttr, **more)


def birth_and_death(n, needed, crews, rate, repair, dormancy=0):
    """Unavailability and frequency in exact rationals: product form of the repairman's model."""

    def fails(k):
        return rate * (min(n - k, needed) + dormancy * max(n - k - needed, 0))

    weight = [
        prod(
            (Fraction(fails(j)) / (repair * min(j + 1, crews)) for j in range(k)), start=Fraction(1)
        )
        for k in range(n + 1)
    ]
    total, spare = sum(weight), n - needed
    return sum(weight[spare + 1 :]) / total, weight[spare] * fails(spare) / total


@pytest.mark.parametrize("needed", [1, 3, 5])
def test_a_crew_for_each_part_gives_the_binomial_law(needed):
    chain = repair_chain([parts(5, needed)])
    expected = unavailability(100.0, 3.0, needed=needed, installed=5)
    assert chain.unavailability == pytest.approx(expected, rel=1e-12)
    assert chain.availability + chain.unavailability == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("dormancy", [0, 1])
@pytest.mark.parametrize(("n", "needed", "crews"), [(2, 1, 1), (6, 4, 2), (20, 12, 1)])
def test_crews_and_standby_against_the_product_form(n, needed, crews, dormancy):
    rate, repair = Fraction(1, 2**30), Fraction(1, 8)
    chain = repair_chain([parts(n, needed, 2.0**30, 8.0, dormancy=float(dormancy))], crews)
    share, frequency = birth_and_death(n, needed, crews, rate, repair, dormancy)
    assert chain.unavailability == pytest.approx(float(share), rel=1e-12)
    assert chain.frequency == pytest.approx(float(frequency), rel=1e-12)
    assert chain.mttr == pytest.approx(float(share / frequency), rel=1e-12)


def test_two_classes_and_one_crew_against_a_dense_solve():
    system = [parts(2, 1, 50.0, 4.0, common=0.2), parts(3, 2, 80.0, 7.0, dormancy=0.3)]
    chain = repair_chain(system, crews=1)
    rates = chain.generator.toarray()
    assert np.abs(rates.sum(axis=1)).max() < 1e-15
    both = np.vstack([rates.T, np.ones(len(rates))])
    law = np.linalg.lstsq(both, np.append(np.zeros(len(rates)), 1.0), rcond=None)[0]
    np.testing.assert_allclose(chain.distribution, law, rtol=1e-9)
    inside = rates[np.ix_(chain.up, chain.up)]
    assert chain.mttf == pytest.approx(np.linalg.solve(-inside, np.ones(len(inside)))[0], rel=1e-10)
    # The crew serves the first class first: it does not feel the second.
    alone = repair_chain([system[0]], crews=1).distribution
    np.testing.assert_allclose(np.bincount(chain.down[:, 0], chain.distribution), alone, rtol=1e-12)
    assert repair_chain(system, crews=1).unavailability > repair_chain(system).unavailability


def test_large_chains_take_the_sparse_route(monkeypatch):
    chain = repair_chain([parts(12, 9), parts(9, 5)], crews=2)
    narrow = chain.unavailability
    monkeypatch.setattr("relparallel.reliability.repair.stationary._MOST_WORK", 1.0)
    wide = repair_chain([parts(12, 9), parts(9, 5)], crews=2).unavailability
    assert wide == pytest.approx(narrow, rel=1e-9)


def test_a_common_cause_bounds_what_spares_can_do():
    spared = [repair_chain([parts(n, 1, 1e6, 10.0, common=0.1)]) for n in (2, 3, 4)]
    # Whatever the number of spares, the shock of rate 0.1/mtbf brings all down.
    for chain in spared[1:]:
        assert chain.mttf == pytest.approx(1e7, rel=1e-3)
    assert spared[0].mttf < spared[1].mttf < spared[2].mttf < 1e7


def test_too_many_states_are_refused():
    with pytest.raises(ValueError, match="parts must make at most"):
        repair_chain([parts(1000), parts(1000)])
