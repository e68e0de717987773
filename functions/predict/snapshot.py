"""SnapStart: what must not be in a snapshot, and what must not be the same in all that is restored from it.

Hooks run in AWS's runtime client, before the snapshot is taken and in each environment restored from it.
https://docs.aws.amazon.com/lambda/latest/dg/snapstart-runtime-hooks-python.html, read 2026-11-21
"""

import os
import random
import ssl

from coldframe.api.api import Api


def register_hooks(api: Api) -> None:
    """Has `api` survive a snapshot, and being restored from it many times."""
    # The managed runtime and its client bring it; nothing else runs hooks.
    from snapshot_restore_py import register_after_restore, register_before_snapshot

    register_before_snapshot(before_snapshot, api)
    register_after_restore(after_restore, api)


def before_snapshot(api: Api) -> None:
    """Closes connections and forgets credentials: the ones would be dead, the others might leak."""
    api.before_snapshot()


def after_restore(api: Api) -> None:
    """Makes this environment differ from its twins, and forget what it measured elsewhere, long ago."""
    random.seed()  # the pauses between attempts
    ssl.RAND_add(os.urandom(32), 32)  # keys of connections: OpenSSL's state was in the snapshot, too
    api.after_restore()
