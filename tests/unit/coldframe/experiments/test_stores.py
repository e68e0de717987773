"""Stores of experiments: conditional writes, expiry, and labels that count once."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from coldframe.experiments.stores import KEPT_S, FolderStore, Item, Label, Store, StoreFails
from coldframe.timing import NO_DEADLINE, Deadline
from tests.unit.coldframe.experiments.conftest import FaultyClient, Time, table_store

LABEL = Label("lineup", "ab" * 16, {"now/right": 1, "ties": 1})


def test_an_item_is_read_as_it_was_written(store: Store) -> None:
    """A value and its revision come back; an unknown item is None."""
    item = Item("document", b'{"a":1}', 3)
    assert store.write("p", item, NO_DEADLINE)
    assert store.read("p", "document", NO_DEADLINE) == item
    assert store.read("p", "other", NO_DEADLINE) is None


def test_an_older_count_never_replaces_a_newer_one(store: Store) -> None:
    """A late repetition of an older write changes nothing."""
    assert store.write("p", Item("counts/l/e", b"2", 2), NO_DEADLINE)
    assert not store.write("p", Item("counts/l/e", b"1", 1), NO_DEADLINE)
    assert [item.value for item in store.items("p", "counts/", NO_DEADLINE)] == [b"2"]


def test_of_two_changes_to_one_revision_one_is_made(store: Store) -> None:
    """A write that replaces a revision needs exactly this revision; a first one needs none."""
    assert store.write("p", Item("document", b"1", 1), NO_DEADLINE, replaces=0)
    assert not store.write("p", Item("document", b"9", 9), NO_DEADLINE, replaces=0)
    outcomes = [store.write("p", Item("document", b"2", 2), NO_DEADLINE, replaces=1) for _ in range(2)]
    assert outcomes == [True, False]


def test_an_expired_item_is_gone(store: Store, time_of_day: Time) -> None:
    """The reader checks the expiry, and a new item takes the place of an expired one."""
    store.write("p", Item("document", b"1", 7), NO_DEADLINE)
    time_of_day.now_s += KEPT_S
    assert store.read("p", "document", NO_DEADLINE) is None
    assert store.items("p", "doc", NO_DEADLINE) == []
    assert store.write("p", Item("document", b"2", 1), NO_DEADLINE, replaces=0)


def test_a_label_counts_once(store: Store) -> None:
    """A label that is sent again, or a week later, adds nothing; a removed one is taken back."""
    assert [store.add_label("p", LABEL, NO_DEADLINE) for _ in range(2)] == [True, False]
    assert store.label_counts("p", "lineup", NO_DEADLINE) == LABEL.counts
    assert store.label_counts("p", "another", NO_DEADLINE) == {}
    for _ in range(2):
        store.remove_label("p", LABEL.nonce, NO_DEADLINE)
    assert not any(store.label_counts("p", "lineup", NO_DEADLINE).values())


def test_threads_of_one_folder_lose_no_change(tmp_path: Path) -> None:
    """Of many threads that replace one revision, one is successful for each revision."""
    store = FolderStore(tmp_path / "store")
    won: list[int] = []

    def race(revision: int) -> None:
        item = Item("document", b"{}", revision + 1)
        if store.write("p", item, NO_DEADLINE, replaces=revision):
            won.append(revision)

    for revision in range(20):
        threads = [threading.Thread(target=race, args=(revision,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert won == list(range(20))


def test_a_damaged_file_is_no_item(tmp_path: Path) -> None:
    """A file that is not JSON is left out, as if it were missing."""
    store = FolderStore(tmp_path)
    store.write("p", Item("document", b"1", 1), NO_DEADLINE)
    (tmp_path / "p" / "document.json").write_bytes(b"\xff{")
    assert store.read("p", "document", NO_DEADLINE) is None


def busy(operation: str) -> ClientError:
    """DynamoDB's answer to too many calls."""
    return ClientError({"Error": {"Code": "ThrottlingException"}}, operation)


def test_a_busy_table_is_asked_again(client: FaultyClient, time_of_day: Time) -> None:
    """Within the deadline, a call that may be repeated is repeated."""
    failures = iter([busy("put_item"), busy("put_item")])
    client.before = lambda operation: next(failures, None)
    assert table_store(client, time_of_day).write("p", Item("a", b"1", 1), NO_DEADLINE)


def test_a_lost_answer_counts_a_label_once(client: FaultyClient, time_of_day: Time) -> None:
    """A transaction whose answer is lost is repeated, and changes nothing the second time."""
    failures = iter([busy("transact_write_items")])
    client.after = lambda operation: next(failures, None)
    store = table_store(client, time_of_day)
    store.add_label("p", LABEL, NO_DEADLINE)
    assert store.label_counts("p", "lineup", NO_DEADLINE) == LABEL.counts


def test_a_table_that_conflicts_is_asked_again(client: FaultyClient, time_of_day: Time) -> None:
    """A transaction that met another one is repeated: this is no refused condition."""
    conflict = {
        "Error": {"Code": "TransactionCanceledException"},
        "CancellationReasons": [{"Code": "TransactionConflict"}],
    }
    failures = iter([ClientError(conflict, "transact_write_items")])
    client.before = lambda operation: next(failures, None)
    assert table_store(client, time_of_day).add_label("p", LABEL, NO_DEADLINE)


def test_a_table_out_of_reach_fails_by_name(client: FaultyClient, time_of_day: Time) -> None:
    """The error has the failure's name, and no address."""
    client.before = lambda operation: EndpointConnectionError(endpoint_url="http://secret")
    with pytest.raises(StoreFails, match=r"^DynamoDB: EndpointConnectionError$"):
        table_store(client, time_of_day).read("p", "document", NO_DEADLINE)


def test_a_busy_table_is_given_up_at_the_deadline(client: FaultyClient, time_of_day: Time) -> None:
    """Repetitions end with the deadline."""
    client.before = busy
    clock = itertools.count().__next__
    with pytest.raises(StoreFails):
        table_store(client, time_of_day).read("p", "document", Deadline(5.0, clock))
