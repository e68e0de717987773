"""Who may use what is the emulator's own."""

import pytest

from coldframe_local.emulator.console.browsers import own_names, refusal

NAMES = own_names("devbox")


def headers(host: str, origin: str = "") -> list[tuple[bytes, bytes]]:
    given = [(b"host", host.encode())]
    return [*given, (b"origin", origin.encode())] if origin else given


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:3000",
        "localhost:3000",
        "LOCALHOST",
        "a.localhost:3000",
        "[::1]:3000",
        "10.1.2.3",
        "devbox:80",
    ],
)
def test_own_page_is_let_in(host: str) -> None:
    """A page of this machine, by address or by a name that is known, may read and change."""
    assert refusal(headers(host), NAMES, always=True) is None
    assert refusal(headers(host, f"http://{host}"), NAMES, always=True) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "notlocalhost", "", "[", "127.0.0.x"]
)
def test_name_that_could_be_anybodys_is_refused(host: str) -> None:
    """A name that somebody made resolve to this machine is not a reason to trust its page."""
    assert refusal(headers(host), NAMES, always=True) is not None
    assert refusal(headers(host, f"http://{host}"), NAMES) is not None


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:3001", "https://127.0.0.1", "http://["]
)
def test_other_origin_is_refused(origin: str) -> None:
    """Another site, another port, and a page without an origin are other pages."""
    refused = refusal(headers("127.0.0.1:3000", origin), NAMES)
    assert refused is not None
    assert refused.status == 403
    assert b"expected http://127.0.0.1:3000" in refused.body


def test_program_is_let_in() -> None:
    """boto3 sends no Origin, and may know the emulator by any name."""
    assert refusal(headers("emulator.internal:3000"), NAMES) is None
