# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
"""What a name shows: updates, and what is refused; revisions by their own names."""

import pytest

import models

NAME = "org/small"


@pytest.fixture
def root(folder, small):
    """What an origin serves: a model that the test may change, in m/."""
    path = folder / "root"
    path.mkdir(mode=0o755)
    models.copy(small, path / "m")
    return path


def test_what_lacks_a_file_that_loaders_need_is_not_added_and_not_shown(weightfs, root, origin):
    mounted = weightfs({NAME: origin(root=root).url("m/")})
    before = mounted.model(NAME)
    source = before["source"]
    for name, said in (("model-00001-of-", "model-00001-of-"), ("tokenizer", "a tokenizer"), ("config.json",) * 2):
        for path in (root / "m").glob(f"{name}*"):
            path.rename(root / path.name)
        models.describe(root / "m")
        for command in (["update", NAME], ["add", "org/two", source]):
            refused = mounted.cli(*command, check=False)
            assert refused.returncode == 1 and said in refused.stderr, (said, refused.stderr)
        assert mounted.model(NAME)["revision"] == before["revision"] and not (mounted.mount / "org/two").exists()
        for path in root.glob(f"{name}*"):
            path.rename(root / "m" / path.name)
    (root / "m/config.json").unlink()
    models.describe(root / "m")
    mounted.cli("update", NAME, "--allow-missing")
    mounted.cli("add", "org/two", source, "--allow-missing")
    assert not (mounted.mount / NAME / "config.json").exists()
    assert mounted.model("org/two")["snapshot"] == mounted.model(NAME)["snapshot"]
