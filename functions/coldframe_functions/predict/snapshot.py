"""SnapStart: removes what a snapshot must not contain, and renews what must differ after a restore.

Hooks run in AWS's runtime client, before the snapshot is taken and in each environment restored from it.
https://docs.aws.amazon.com/lambda/latest/dg/snapstart-runtime-hooks-python.html, read 2026-11-21
"""

import os
import random
import ssl

from coldframe.api.api import Api


def register_hooks(api: Api) -> None:
    """Registers hooks, so that `api` survives a snapshot and many restores."""
    # The managed runtime and its client contain this module; nothing else runs hooks.
    from snapshot_restore_py import register_after_restore, register_before_snapshot

    register_before_snapshot(before_snapshot, api)
    register_after_restore(after_restore, api)


def before_snapshot(api: Api) -> None:
    """Closes connections, which would be dead after a restore, and forgets credentials, which might leak."""
    api.before_snapshot()


def after_restore(api: Api) -> None:
    """Seeds randomness again, so that no two restored environments share it, and forgets measurements."""
    random.seed()  # the pauses between attempts
    ssl.RAND_add(os.urandom(32), 32)  # keys of connections: the snapshot contained OpenSSL's state, too
    api.after_restore()
