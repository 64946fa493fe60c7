#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""Checks that the tree keeps to its own architecture (src/README.md).

  layers.py [ROOT]      prints each violation as file:line, exit 1 if there is any
  layers.py --self-test proves on a small made-up tree that each rule catches what it is for

Rules: a layer includes only itself and the layers below it; the keeper, being privileged, only base;
the public headers include nothing of the project's inside; a third-party library is included in the
one layer that wraps it; files stay small; every source file names its licence.
"""

import pathlib
import re
import sys
import tempfile

LAYERS = ["base", "digest", "io", "net", "snapshot", "telemetry", "store", "source", "policy", "fetch", "catalog",
          "cache", "tier", "vfs", "keeper", "fuse", "control", "cli"]

# Layers that may include less than their place in the list would allow.
RESTRICTED = {"keeper": {"base", "keeper"}}

# Third-party headers and the only layer that may include them.
ONLY_USER = [
    (re.compile(r"openssl/"), "digest"),
    (re.compile(r"liburing"), "io"),
    (re.compile(r"curl/"), "net"),
    (re.compile(r"sqlite3"), "store"),
    (re.compile(r"fuse_lowlevel\.h|fuse3/|fuse\.h|fuse_common\.h|fuse_opt\.h"), "fuse"),
    (re.compile(r"microhttpd"), "control"),
    (re.compile(r"CLI/"), "cli"),
    (re.compile(r"zlib\.h"), "cli"),
    (re.compile(r"spdlog/"), "base"),
]

CEILINGS = {".cpp": 500, ".hpp": 250, ".py": 500}
SPDX = ("SPDX-License-Identifier: Apache-2.0", "Copyright the weightfs authors")
SOURCE_SUFFIXES = {".cpp", ".hpp", ".py", ".sh", ".build", ".options"}
SOURCE_FOLDERS = ["src", "include", "tests", "examples", "packaging", ".ci"]

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
PUBLIC_PREFIX = "weightfs/"


def includes(path):
    """Yields (line number, quote, name) for each include directive."""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def check_inner(root, path):
    """Rules for one file of src/: its arrows and its third-party headers."""
    parts = path.relative_to(root / "src").parts
    layer = parts[0] if len(parts) > 1 else None  # None: main.cpp, which stands above every layer
    if layer is not None and layer not in LAYERS:
        yield 1, f"'{layer}' is not a layer"
        return
    allowed = set(LAYERS) if layer is None else set(LAYERS[:LAYERS.index(layer) + 1])
    allowed = RESTRICTED.get(layer, allowed)
    for number, quote, name in includes(path):
        for pattern, owner in ONLY_USER:
            if pattern.match(name) and layer != owner:
                yield number, f"only {owner} may include <{name}>"
        if quote != '"' or name.startswith(PUBLIC_PREFIX):
            continue
        target = name.split("/")[0] if "/" in name else None
        if target not in LAYERS:
            yield number, f'"{name}" does not start with a layer'
        elif target not in allowed:
            yield number, f'{layer} may not include "{name}"'


def check_public(path):
    """Rules for one file of include/: the standard library and other public headers only."""
    for number, quote, name in includes(path):
        public = name.startswith(PUBLIC_PREFIX)
        standard = quote == "<" and re.fullmatch(r"[a-z_]+", name)
        if not public and not standard:
            yield number, f"a public header may not include {name}"


def check_size(path):
    ceiling = CEILINGS.get(path.suffix)
    if ceiling:
        count = len(path.read_bytes().splitlines())
        if count > ceiling:
            yield count, f"{count} lines, more than {ceiling}"


def check_licence(path):
    head = path.read_text(errors="replace").splitlines()[:3]
    for text in SPDX:
        if not any(line.endswith(text) for line in head):
            yield 1, f"the first lines lack '{text}'"


def source_files(root):
    for folder in SOURCE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in SOURCE_SUFFIXES or folder == ".ci"):
                yield path
    yield from sorted(root.glob("meson*"))


def violations(root):
    for path in source_files(root):
        inside = path.relative_to(root).parts[0]
        code = path.suffix in (".cpp", ".hpp")
        if inside == "src" and code:
            yield from ((path, *found) for found in check_inner(root, path))
        if inside == "include" and code:
            yield from ((path, *found) for found in check_public(path))
        yield from ((path, *found) for found in check_size(path))
        yield from ((path, *found) for found in check_licence(path))


HEADER = "// SPDX-License-Identifier: Apache-2.0\n// Copyright the weightfs authors\n"

# Path, text after the licence, and what the one violation must say (None: there is none).
SELF_TEST = [
    ("src/store/store.cpp", '#include "store/store.hpp"\n#include "base/fd.hpp"\n', None),
    ("src/store/store.cpp", '#include "fetch/fetcher.hpp"\n', "store may not include"),
    ("src/base/fd.cpp", '#include "digest/digest.hpp"\n', "base may not include"),
    ("src/keeper/keeper.cpp", '#include "base/fd.hpp"\n#include "keeper/keeper.hpp"\n', None),
    ("src/keeper/keeper.cpp", '#include "vfs/node_id.hpp"\n', "keeper may not include"),
    ("src/fuse/session.cpp", "#include <fuse_lowlevel.h>\n", None),
    ("src/vfs/table.cpp", "#include <fuse_lowlevel.h>\n", "only fuse may include"),
    ("src/source/http/http.cpp", "#include <curl/curl.h>\n", "only net may include"),
    ("src/net/sign.cpp", "#include <openssl/hmac.h>\n", "only digest may include"),
    ("src/store/io.cpp", "#include <liburing.h>\n", "only io may include"),
    ("src/catalog/db.cpp", "#include <sqlite3.h>\n", "only store may include"),
    ("src/telemetry/http.cpp", "#include <microhttpd.h>\n", "only control may include"),
    ("src/control/cli.cpp", "#include <CLI/CLI.hpp>\n", "only cli may include"),
    ("src/policy/trace.cpp", "#include <zlib.h>\n", "only cli may include"),
    ("src/telemetry/event_log.cpp", '#include "store/store.hpp"\n', "telemetry may not include"),
    ("src/cache/governor.cpp", '#include "telemetry/events.hpp"\n', None),
    ("src/fetch/log.cpp", "#include <spdlog/spdlog.h>\n", "only base may include"),
    ("src/store/store.cpp", '#include "store.hpp"\n', "does not start with a layer"),
    ("src/misc/misc.cpp", "", "is not a layer"),
    ("src/main.cpp", '#include "cli/main.hpp"\n', None),
    ("src/control/api.cpp", '#include "weightfs/client.hpp"\n', None),
    ("include/weightfs/client.hpp", "#include <string_view>\n", None),
    ("include/weightfs/client.hpp", '#include "base/fd.hpp"\n', "a public header may not include"),
    ("include/weightfs/client.hpp", "#include <curl/curl.h>\n", "a public header may not include"),
    ("src/base/long.cpp", "\n" * 499, "more than 500"),
    ("src/base/long.hpp", "\n" * 249, "more than 250"),
]


def self_test():
    failures = 0
    for name, text, expected in [*SELF_TEST, ("src/base/bare.cpp", None, "the first lines lack")]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text("int x;\n" if text is None else HEADER + text)
            messages = [message for _, _, message in violations(root)]
            good = not messages if expected is None else any(expected in m for m in messages)
            if not good:
                failures += 1
                print(f"self-test: {name}: wanted {expected!r}, found {messages}")
    print(f"layers.py --self-test: {len(SELF_TEST) + 1 - failures} passed, {failures} failed")
    return failures


def main(arguments):
    if arguments == ["--self-test"]:
        return 1 if self_test() else 0
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[1]).resolve()
    count = 0
    for path, line, message in violations(root):
        count += 1
        print(f"{path.relative_to(root)}:{line}: {message}")
    print(f"layers.py: {count} violations" if count else "layers.py: the tree keeps its layers")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
