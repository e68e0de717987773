"""Which versions a deployment deletes."""

from hypothesis import given
from hypothesis import strategies as st

from coldframe_functions.post_traffic.app import old_versions

VERSIONS = st.sets(st.integers(1, 10_000).map(str))


@given(VERSIONS, VERSIONS, st.integers(1, 50))
def test_old_versions(versions: set[str], in_use: set[str], kept: int) -> None:
    """What is in use stays, and so do the newest; of the rest nothing does."""
    old = old_versions(versions, in_use, kept)
    newest = set(sorted(versions, key=int)[-kept:])
    assert set(old) == versions - in_use - newest
    assert old == sorted(set(old), key=int)


def test_versions_are_numbers() -> None:
    """Version 10 is newer than version 9."""
    assert old_versions(["10", "9", "8"], [], 2) == ["8"]
