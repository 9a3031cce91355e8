"""A seed decides the faults and the jobs, and no run is without any of them."""

from itertools import islice

import pytest

from tests.chaos import plan
from tests.chaos.plan import Fault


@pytest.mark.parametrize("seed", range(20))
def test_every_fault_happens_however_short_the_run(seed: int) -> None:
    planned = plan.deeds(seed, seconds=20, every=1.6)
    assert {deed.fault for deed in planned} == set(Fault)
    assert [deed.at for deed in planned] == sorted(deed.at for deed in planned)
    frozen = [deed for deed in planned if deed.fault is Fault.FREEZE]
    assert all(deed.at + deed.seconds < 20 for deed in frozen)


def test_a_seed_decides_everything() -> None:
    assert plan.deeds(1, seconds=60, every=4) == plan.deeds(1, seconds=60, every=4)
    assert plan.deeds(1, seconds=60, every=4) != plan.deeds(2, seconds=60, every=4)
    assert list(islice(plan.jobs(1), 200)) == list(islice(plan.jobs(1), 200))


def test_most_jobs_can_end_done_and_some_cannot() -> None:
    jobs = list(islice(plan.jobs(1), 2000))
    hopeless = sum(job.payload["fails"] >= (job.max_attempts or 0) for job in jobs)
    assert 10 < hopeless < 100
