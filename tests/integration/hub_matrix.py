# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""What calls of the hub's client do with a cache that cannot be written to, by release.

The cache holds one repository at the commit that its branch main has at the hub ("current"), or at an older
one ("stale"). Each row was measured on a read-only bind mount of an ordinary cache; a mount of weightfs has
to do the same.
"""

import dataclasses

OFFLINE = {"HF_HUB_OFFLINE": "1"}
READ_ONLY = "OSError 30"
# A file that no repository of these tests has.
ABSENT = "none.json"


@dataclasses.dataclass(frozen=True)
class Row:
    """`online`: what comes of it with the hub in reach; `offline`: with HF_HUB_OFFLINE=1; None: not asked.
    "ok", or the class of the error, with its errno where it has one."""
    name: str
    call: str
    arguments: dict
    online: object = "ok"
    offline: object = "ok"


def rows(repository, commit, file, state="current"):
    """The calls for one repository of a cache, which has `file`, at this commit."""
    def row(name, call, online="ok", offline="ok", **arguments):
        return Row(name, call, {"repo_id": repository} | arguments, online, offline)

    moved = READ_ONLY if state == "stale" else "ok"
    gone = READ_ONLY if state == "stale" else "EntryNotFoundError"
    local = "LocalEntryNotFoundError"
    return [
        row("snapshot of main", "snapshot", moved),
        row("snapshot of the commit", "snapshot", revision=commit),
        row("snapshot of main, local only", "snapshot", local_files_only=True),
        row("snapshot of the commit, local only", "snapshot", revision=commit, local_files_only=True),
        row("file of main", "file", moved, filename=file),
        row("file of the commit", "file", filename=file, revision=commit),
        row("file of main, local only", "file", filename=file, local_files_only=True),
        row("cached file", "cached", filename=file),
        row("missing file of main", "file", gone, local, filename=ABSENT),
        row("missing file of the commit", "file", "EntryNotFoundError", local, filename=ABSENT, revision=commit),
        row("download forced", "file", READ_ONLY, "ValueError", filename=file, force_download=True),
    ]


def described(outcome):
    if "error" not in outcome:
        return "ok" if outcome["value"] is not None else "nothing"
    name = outcome["error"][0].removeprefix("Remote")
    return f"{name} {outcome['errno']}" if name == "OSError" else name


def check(client, table):
    """Makes the calls with and without the hub, and compares; returns the outcomes of those online."""
    found = client.calls(*((row.call, row.arguments) for row in table))
    assert {row.name: described(outcome) for row, outcome in zip(table, found)} == \
        {row.name: row.online for row in table}, client.messages
    offline = client.calls(*((row.call, row.arguments) for row in table), **OFFLINE)
    assert {row.name: described(outcome) for row, outcome in zip(table, offline)} == \
        {row.name: row.offline for row in table}, client.messages
    return dict(zip((row.name for row in table), found))
