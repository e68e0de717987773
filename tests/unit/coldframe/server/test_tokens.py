"""Tokens of callers: how they are read, compared and replaced, and where a server without any may listen."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.errors import BadSetting, Unauthorized
from coldframe.server.settings import load_server_settings
from coldframe.server.tokens import CHECK_S, EVERYWHERE, Tokens, choose_host, read_tokens

OLD, NEW, OTHER = ("an-old-token-" + "0" * 20, "a-new-token-" + "1" * 20, "another-token-" + "2" * 20)
words = st.text("ab~/+=:, \n#\u00e9", max_size=80)


class World:
    """A clock that a test turns, and a log that it reads."""

    def __init__(self, **settings: str) -> None:
        self.now_s = 0.0
        self.events: list[tuple[str, dict[str, Any]]] = []
        given = {f"COLDFRAME_{name.upper()}": value for name, value in settings.items()}
        self.settings = load_server_settings(given)
        self.tokens = Tokens(self.settings, self._log, lambda: self.now_s)

    def _log(self, event: str, **values: Any) -> None:
        self.events.append((event, values))

    def is_known(self, token: str) -> bool:
        try:
            return bool(self.tokens.principal(f"Bearer {token}"))
        except Unauthorized:
            return False


def test_name_of_a_token_is_the_caller() -> None:
    """Two tokens of one name are one caller; the scheme is read in any case, as RFC 9110 has it."""
    tokens = World(tokens=f"shop:{OLD}, shop:{NEW},desk: {OTHER}").tokens
    assert [tokens.principal(f"Bearer {token}") for token in (OLD, NEW, OTHER)] == ["shop", "shop", "desk"]
    assert tokens.principal(f"bearer  {OTHER}") == "desk"


@pytest.mark.parametrize("sent", [None, "", "Bearer", f"Basic {OLD}", OLD, f"Bearer {OLD}x", "Bearer é"])
def test_other_headers_are_refused(sent: str | None) -> None:
    """A challenge says what to send, and no part of what was sent; an absent token is not an invalid one."""
    with pytest.raises(Unauthorized) as caught:
        World(tokens=f"shop:{OLD}").tokens.principal(sent)
    challenge = caught.value.headers["www-authenticate"]
    assert challenge.startswith('Bearer realm="coldframe"')
    assert ("invalid_token" in challenge) == (sent is not None)
    assert OLD not in str(caught.value)


@given(words)
def test_what_is_no_list_of_tokens_is_not_repeated(text: str) -> None:
    """Whatever stands in the setting: tokens, or an error without a word of it."""
    try:
        read_tokens(text, "COLDFRAME_TOKENS")
    except BadSetting as exc:
        assert str(exc).startswith("Entry ") and "COLDFRAME_TOKENS" in str(exc)
        assert "\n" not in str(exc) and "~" not in str(exc)


def test_comments_and_empty_lines_are_skipped() -> None:
    """A file may say whose token a line is."""
    assert [token.name for token in read_tokens(f"# for the shop, x\n\nshop:{OLD}\n", "a file")] == ["shop"]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ("shop:short", "22 characters or more"),
        (f"shop {OLD}", "Entry 1 of"),
        (f"shop:{OLD},desk:{OLD}", "Entry 2 of COLDFRAME_TOKENS has the token of another name"),
    ],
)
def test_bad_entries_are_named_by_number(entries: str, said: str) -> None:
    """A short token, an entry without a name, one token for two names."""
    with pytest.raises(BadSetting, match=said):
        World(tokens=entries)


# --- the file ---------------------------------------------------------------------------


def replace_file(path: Path, content: str) -> None:
    """As Kubernetes does: the link points to another folder, in one step."""
    folder = path.parent / f"..{len(list(path.parent.iterdir()))}"
    folder.mkdir()
    (folder / "tokens").write_text(content)
    link = path.parent / "..next"
    link.symlink_to(folder.name)
    link.replace(path.parent / "..data")
    if not path.is_symlink():
        path.symlink_to("..data/tokens")


def test_a_file_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    """The old token ends and the new one begins at the next look, a second after the last."""
    path = tmp_path / "tokens"
    replace_file(path, f"shop:{OLD}")
    world = World(tokens_file=str(path))
    replace_file(path, f"shop:{NEW}\ndesk:{OTHER}")
    assert (world.is_known(OLD), world.is_known(NEW)) == (True, False)
    world.now_s = CHECK_S
    assert (world.is_known(OLD), world.is_known(NEW)) == (False, True)
    assert [(event, fields["names"]) for event, fields in world.events] == [("tokens-read", ["desk", "shop"])]


@pytest.mark.parametrize("content", ["", "# none\n", "shop", "\x00", None], ids=str)
def test_a_broken_file_keeps_the_last_good_tokens(tmp_path: Path, content: str | None) -> None:
    """Empty, broken or gone: one line in the log, not one a second; a good file is read again."""
    path = tmp_path / "tokens"
    path.write_text(f"shop:{OLD}")
    world = World(tokens_file=str(path))
    path.unlink() if content is None else path.write_text(content)
    for now_s in (CHECK_S, 2 * CHECK_S, 3 * CHECK_S):
        world.now_s = now_s
        assert world.is_known(OLD)
    assert [event for event, _ in world.events] == ["tokens-kept"]
    path.write_text(f"shop:{NEW}")
    world.now_s = 4 * CHECK_S
    assert (world.is_known(OLD), world.is_known(NEW)) == (False, True)


def test_tokens_of_the_setting_stay_beside_the_file(tmp_path: Path) -> None:
    """Both are known at once."""
    path = tmp_path / "tokens"
    path.write_bytes(b"\xef\xbb\xbfdesk:" + OTHER.encode() + b"\r\n")
    world = World(tokens=f"shop:{OLD}", tokens_file=str(path))
    assert world.is_known(OLD) and world.is_known(OTHER) and not world.is_known(NEW)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"shop:short"], ids=str)
def test_a_file_that_is_broken_at_the_start_ends_the_server(tmp_path: Path, content: bytes | None) -> None:
    """A server that was to have tokens never starts without."""
    path = tmp_path / "tokens"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadSetting, match=str(path)):
        World(tokens_file=str(path))


# --- where it listens -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({}, "127.0.0.1"),
        ({"host": "localhost"}, "localhost"),
        ({"host": "::1"}, "::1"),
        ({"host": "127.9.9.9"}, "127.9.9.9"),
        ({"tokens": f"shop:{OLD}"}, EVERYWHERE),
        ({"tokens": f"shop:{OLD}", "host": "10.0.0.1"}, "10.0.0.1"),
        ({"allow_anyone": "true"}, EVERYWHERE),
        ({"allow_anyone": "true", "host": "::"}, "::"),
    ],
    ids=str,
)
def test_where_a_server_listens(settings: dict[str, str], host: str) -> None:
    """On this machine alone, unless tokens or the operator say who may call."""
    world = World(**settings)
    assert choose_host(world.settings, world.tokens) == host


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "10.0.0.1", "coldframe.example", "localhost.example"])
def test_other_machines_need_a_word(host: str) -> None:
    """Without tokens the server does not start where others reach it, and the error says what to set."""
    world = World(host=host)
    with pytest.raises(BadSetting, match=r"COLDFRAME_ALLOW_ANYONE=true"):
        choose_host(world.settings, world.tokens)


def test_anyone_and_tokens_contradict() -> None:
    """Both are an error: tokens that nobody needs would look like protection."""
    with pytest.raises(BadSetting, match="Remove one of the two"):
        World(tokens=f"shop:{OLD}", allow_anyone="true")
