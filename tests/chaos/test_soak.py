"""A soak of a few seconds: too short for a verdict on memory, long enough to see all of it work."""

from tests.chaos import soak


def test_a_soak_looks_at_each_worker_and_loses_no_job() -> None:
    found = soak.run(soak.Options(seconds=4, rate=100, every=0.4))

    assert found["jobs"]["enqueued"] > 200
    assert [wrong for wrong in found["violations"] if "grew" not in wrong] == []
    for worker in (soak.APP, soak.EXEC):
        samples = found["series"][worker]
        assert len(samples) >= 5
        for sample in samples:
            assert sample["memory"] > 0
            assert sample["descriptors"] > 0
            assert sample["connections"] == 3
    assert {sample["tasks"] is None for sample in found["series"][soak.APP]} == {False}
