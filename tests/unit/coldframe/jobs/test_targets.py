"""Hosts and addresses that a webhook may and may not have."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.jobs.ports import BadSource
from coldframe.jobs.targets import allowed_target, is_public


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://example.com/a?b=c", "example.com"),
        ("https://EXAMPLE.com:443/", "other.com, example.com"),
        ("http://127.0.0.1:8080/hook", "http://127.0.0.1:8080"),
    ],
)
def test_allowed(url: str, allowed: str) -> None:
    """A host that the deployment names may be called."""
    assert allowed_target(url, allowed).public_only is ("://" not in allowed)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://example.com/", ""),
        ("https://example.com.evil.com/", "example.com"),
        ("https://evil.com/example.com", "example.com"),
        ("https://user@example.com/", "example.com"),
        ("https://example.com@evil.com/", "example.com"),
        ("http://example.com/", "example.com"),
        ("https://example.com:8443/", "example.com"),
        ("https://example.com:99999/", "example.com"),
        ("https://sub.example.com/", "example.com"),
        ("http://127.0.0.1:8081/", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080@evil.com/", "http://127.0.0.1:8080"),
        ("file:///etc/passwd", "example.com"),
        ("gopher://example.com/", "example.com"),
        ("//example.com/", "example.com"),
        ("https://exämple.com/", "exämple.com"),
        ("https://[::1/", "::1"),
        ("https://example.com/a b", "example.com"),
        ("https://example.com/a\n", "example.com"),
        (" https://example.com/", "example.com"),
        ("https://example.com/a\tb", "example.com"),
        ("https://example.com/\x7f", "example.com"),
        ("", ","),
    ],
)
def test_refused(url: str, allowed: str) -> None:
    """Any other address is refused, however it is written."""
    with pytest.raises(BadSource):
        allowed_target(url, allowed)


@given(st.ip_addresses(v=4))
def test_public_addresses_of_version_4(address: ipaddress.IPv4Address) -> None:
    """An address that is public is global, and is not multicast or reserved."""
    public = is_public(str(address))
    assert public <= (address.is_global and not address.is_multicast and not address.is_reserved)
    assert not any(is_public(each) for each in forms_in_version_6(address))


@given(st.ip_addresses(v=6))
def test_public_addresses_of_version_6(address: ipaddress.IPv6Address) -> None:
    """An address that is public is global, is not multicast and carries no address of version 4."""
    carried = (address.ipv4_mapped, address.sixtofour, address.teredo)
    assert is_public(str(address)) <= (
        address.is_global and not address.is_multicast and carried == (None, None, None)
    )


def forms_in_version_6(address: ipaddress.IPv4Address) -> list[str]:
    """All ways in which version 6 carries an address: NAT64, 6to4, mapped, compatible, ISATAP, Teredo."""
    value = int(address)
    return [
        str(ipaddress.IPv6Address(each))
        for each in (
            (0x64FF9B << 96) | value,
            (0x64FF9B0001 << 80) | value,
            (0x2002 << 112) | (value << 80) | 1,
            (0xFFFF << 32) | value,
            value,
            (0xFE80 << 112) | (0x5EFE << 32) | value,
            (0x20010000 << 96) | (value << 64) | (value ^ 0xFFFFFFFF),
        )
    ]


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "2a00::200e"])
def test_hosts_of_the_internet(address: str) -> None:
    """Addresses of ordinary hosts are public."""
    assert is_public(address)
