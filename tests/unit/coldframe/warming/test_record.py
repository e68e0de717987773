"""What the warmer remembers, and what it refuses to read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.warming.record import FORM, KEPT_SLOTS, Damaged, Record, from_attributes, to_attributes

COUNTS = st.integers(0, 60)
RECORDS = st.builds(
    Record,
    end=st.integers(KEPT_SLOTS, 10**7),
    peaks=st.lists(COUNTS, max_size=50).map(tuple),
    pings=st.dictionaries(st.integers(0, 10**7), COUNTS, max_size=20),
    day=st.just("2026-11-22"),
    spent_usd=st.integers(0, 10**9).map(lambda nano: nano / 1e9),
    provisioned=st.none() | COUNTS,
    revision=st.integers(0, 1000),
)


@given(RECORDS)
@settings(deadline=None)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    """Every field, through what a table can keep."""
    assert from_attributes(to_attributes(record)) == record


@given(RECORDS, st.sampled_from(["form", "peaks", "pings", "end_slot", "spent_usd", "revision"]), st.data())
@settings(max_examples=100, deadline=None)
def test_a_damaged_record_is_refused_or_right(record: Record, name: str, data: st.DataObject) -> None:
    """Whatever stands in a field: either it is read, or it is Damaged and nothing else."""
    attributes = to_attributes(record)
    attributes[name] = data.draw(st.none() | st.text() | st.binary() | st.integers() | st.just("inf"))
    try:
        from_attributes(attributes)
    except Damaged as exc:
        assert str(exc)


def test_another_form_is_refused() -> None:
    """A record of a version to come is not guessed at."""
    with pytest.raises(Damaged, match="expected 1"):
        from_attributes({**to_attributes(Record()), "form": FORM + 1})


def test_a_record_that_unpacks_to_gigabytes_is_refused() -> None:
    """No more is unpacked than a record can have."""
    huge = to_attributes(Record(end=10**7, peaks=(0,) * 10**6))
    with pytest.raises(Damaged, match="too long"):
        from_attributes(huge)


def test_slots_are_appended_and_corrected() -> None:
    """Later metrics replace earlier ones; what nobody told of had no traffic; pings stay where they were."""
    record = Record(end=KEPT_SLOTS).with_slots(KEPT_SLOTS, [1, 2, 3]).with_pings(KEPT_SLOTS + 3, 5)
    record = record.with_slots(KEPT_SLOTS + 2, [4, 6])
    assert (record.peaks[-4:], record.pinged[-4:]) == ((1, 2, 4, 6), [0, 0, 0, 5])
    later = record.with_slots(KEPT_SLOTS + 6, [7])
    assert later.peaks[-4:] == (6, 0, 0, 7)


def test_a_record_stays_small() -> None:
    """Eight days of the busiest traffic are kept in less than 16 KB, and nothing older."""
    record = Record().with_slots(0, [slot * 7919 % 50 for slot in range(2 * KEPT_SLOTS)])
    for slot in range(2 * KEPT_SLOTS):
        record = record.with_pings(slot, 50) if slot > 2 * KEPT_SLOTS - 300 else record
    assert len(record.peaks) == KEPT_SLOTS
    assert sum(len(value) for value in to_attributes(record).values() if isinstance(value, bytes)) < 16_000


def test_a_day_s_money_is_of_that_day() -> None:
    """The next day begins with none spent."""
    record = Record().with_spent("2026-11-22", 0.5).with_spent("2026-11-22", 0.25)
    assert record.spent_on("2026-11-22") == 0.75
    assert record.with_spent("2026-11-23", 0.1).spent_on("2026-11-23") == 0.1
