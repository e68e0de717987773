"""Tables are read from CSV, TSV and JSON Lines; what cannot be read is named by row, never by text."""

from pathlib import Path

import pytest

from coldframe_training.training_data.table import Columns, Table, TableFault, column_names, read_table

COLUMNS = Columns("body", "queue")


def write(folder: Path, name: str, content: str | bytes) -> Path:
    """A file with a content."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def fault_of(path: Path, columns: Columns = COLUMNS) -> str:
    """What is said of a file that cannot be read."""
    with pytest.raises(TableFault) as raised:
        read_table(path, columns)
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", 'queue,more,body\nA,1,"one, ""two""\nthree"\nB,2,four\n'),
        ("t.csv", '\ufeffqueue,body\r\nA,"one, ""two""\nthree"\r\nB,four\r\n'),
        ("t.TSV", 'body\tqueue\n"one, ""two""\nthree"\tA\nfour\tB'),
        (
            "t.jsonl",
            '{"queue": "A", "body": "one, \\"two\\"\\nthree", "n": 1}\n\n{"body": "four", "queue": "B"}\n',
        ),
    ],
)
def test_kinds_of_files(tmp_path: Path, name: str, content: str) -> None:
    """Every kind of file gives the same table; line ends, commas and quotes inside a text are kept."""
    table = read_table(write(tmp_path, name, content), COLUMNS)
    assert table == Table(['one, "two"\nthree', "four"], ["A", "B"], None)


def test_group_column(tmp_path: Path) -> None:
    """A column of groups is read where it is asked for."""
    path = write(tmp_path, "t.csv", "body,queue,thread\none,A,7\n")
    assert read_table(path, Columns("body", "queue", "thread")).groups == ["7"]


def test_labels_that_are_no_strings(tmp_path: Path) -> None:
    """Numbers, truth values and missing cells of JSON Lines become strings, a missing cell the empty one."""
    lines = ['{"body": "a", "queue": 3}', '{"body": "b", "queue": true}', '{"body": null}']
    table = read_table(write(tmp_path, "t.jsonl", "\n".join(lines)), COLUMNS)
    assert (table.texts, table.labels) == (["a", "b", ""], ["3", "true", ""])


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("t.csv", "text,label\nsecret,A\n", "no column 'body', 'queue'. Its columns: text, label."),
        ("t.csv", "bug,secret thing is broken\nbug,secret\nx,y\n", "Its first row looks like data"),
        ("t.csv", "refund,secret\nrefund,other\n", "Add a first row with the names of the columns"),
        ("t.csv", "", "is empty. Expected a table"),
        ("t.csv", b"PK\x03\x04secret", "Save the sheet as CSV UTF-8"),
        ("t.jsonl", '[{"body": "secret", "queue": "A"}]', "jq -c '.[]'"),
        ("t.json", "[]", "jq -c '.[]'"),
        ("t.csv", "body,queue,queue\nsecret,A,B\n", "2 columns named 'queue'"),
        ("t.csv", "body,queue\nsecret, more,A\nx,A\ny\n", "2 rows (1, 3)"),
        ("t.csv", 'body,queue\n"secret,A\n', "near line"),
        ("t.csv", "body,queue\n", "has no rows"),
        ("t.csv", "body,queue\nx,A\nsecret \xe9,A\n".encode("latin-1"), "is line 3"),
        (
            "t.csv",
            "body,queue\nsecret,A\n".encode("utf-16"),
            "is UTF-16, expected UTF-8",
        ),
        ("t.csv", 'body,queue\nx,A\nsecret,"[""A"", ""B""]"\n', "list of labels in 1 row (2)"),
        ("t.jsonl", '{"body": "secret", "queue": ["A", "B"]}\n', "list of labels in 1 row (1)"),
        ("t.jsonl", '{"body": "x", "queue": "A"}\nsecret\n[1]\n', "2 rows (2, 3)"),
        ("t.xlsx", "secret", "'.xlsx'. Expected one of .csv, .tsv, .jsonl, .ndjson, .parquet."),
    ],
)
def test_faults_of_files(tmp_path: Path, name: str, content: str | bytes, expected: str) -> None:
    """What is wrong is said with the file's name, row numbers and counts; no text is repeated."""
    message = fault_of(write(tmp_path, name, content))
    assert expected in message
    assert name in message
    assert "secret" not in message


def test_longest_text(tmp_path: Path) -> None:
    """A text of a megabyte in one cell is read."""
    table = read_table(write(tmp_path, "t.csv", f"body,queue\n{'x ' * 500_000},A\n"), COLUMNS)
    assert len(table.texts[0]) == 1_000_000


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separator_is_found(tmp_path: Path, separator: str) -> None:
    """The separator of a CSV file is the one that its first row has between the columns asked for."""
    lines = [["queue", "more", "body"], ["A", "1", '"one, two; three|four"'], ["B", "2", "five"]]
    content = "\n".join(separator.join(cells) for cells in lines)
    table = read_table(write(tmp_path, "t.csv", content), COLUMNS)
    assert table == Table(["one, two; three|four", "five"], ["A", "B"], None)


def test_separator_that_is_given(tmp_path: Path) -> None:
    """A separator that is given counts, and is refused where there is none."""
    assert read_table(write(tmp_path, "t.csv", "body#queue\na#b\n"), COLUMNS, "#").labels == ["b"]
    with pytest.raises(TableFault, match="--separator is for CSV"):
        read_table(write(tmp_path, "t.jsonl", "{}"), COLUMNS, ";")


def test_columns_in_a_fault_are_apart(tmp_path: Path) -> None:
    """The columns of a file with semicolons are named one by one."""
    path = write(tmp_path, "t.csv", "Text;Label\none;A\n")
    assert "Its columns: Text, Label." in fault_of(path)
    assert column_names(path) == ["Text", "Label"]
