"""Targets of webhooks: hosts and addresses that may be called.

Callers who may start jobs must not make this function call hosts that only this function reaches
(server-side request forgery). So it calls only hosts that the deployment names. A name without a scheme
allows TLS on port 443, at addresses of the public internet.
"""

import ipaddress
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from coldframe.jobs.ports import BadSource

_VISIBLE = re.compile(r"[!-~]*")
_PORTS = {"https": 443, "http": 80}
_PUBLIC_V6 = IPv6Network("2000::/3")
# https://www.iana.org/assignments/iana-ipv4-special-registry, iana-ipv6-special-registry, read 2026-11-22.
_SPECIAL_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast, reserved, broadcast
        ),
    )
)
# Within 2000::/3. Addresses that embed an IPv4 address lie outside of it, or are Teredo (in the first) or
# 6to4.
_SPECIAL_V6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))


class Target(Struct, frozen=True):
    """Place of a webhook. public_only: the host must not resolve to an address of a private network."""

    url: SplitResult
    public_only: bool

    @property
    def host(self) -> str:
        return self.url.hostname or ""

    @property
    def port(self) -> int:
        return self.url.port or _PORTS[self.url.scheme]


def allowed_target(url: str, allowed: str) -> Target:
    """The target of a webhook. allowed: names of hosts, or whole origins, separated by commas.

    Raises BadSource where the deployment does not allow it.
    """
    if not _VISIBLE.fullmatch(url):  # `urlsplit` drops some of these, and http.client refuses others
        raise BadSource("the webhook has a space or another character that an address cannot have. Remove it")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as exc:
        raise BadSource("the webhook is not an address. Send an https:// address") from exc
    if parts.scheme not in _PORTS or not host or parts.username is not None:
        raise BadSource("the webhook does not begin with https://. Send an https:// address")
    origin = f"{parts.scheme}://{parts.netloc}".lower()
    for entry in filter(None, (each.strip().lower() for each in allowed.split(","))):
        if "://" in entry and origin == entry.rstrip("/"):
            return Target(parts, public_only=False)
        if "://" not in entry and host == entry and parts.scheme == "https" and port in (None, 443):
            return Target(parts, public_only=True)
    raise BadSource(
        "the host of the webhook is not in COLDFRAME_JOBS_WEBHOOK_HOSTS. Add it there to allow it"
    )


def is_public(address: str) -> bool:
    """Whether an IP address belongs to a public host. Raises ValueError."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _SPECIAL_V4)
    return ip in _PUBLIC_V6 and not any(ip in network for network in _SPECIAL_V6)
