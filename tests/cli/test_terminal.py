"""No command ends for a name that its terminal's encoding lacks."""

from __future__ import annotations

import io
import sys

import pytest

from s3commit.cli.app import app
from tests.cli.support import JOB, SALES, Desk
from tests.cli.test_unreadable import PLACE, VERBS
from tests.core.world import job_directory

NAMED = job_directory(JOB, "größe 日本 😀/")
HERE = {SALES: NAMED.destination.uri, PLACE.uri: NAMED.uri}


# In ASCII alone click takes the terminal for misconfigured, and writes UTF-8.
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "cp1252", "cp437"])
@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_prints_each_name_in_each_encoding(
    verb: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk()
    desk.world.commit(NAMED)
    expected = NAMED.destination.prefix.encode(encoding, "backslashreplace").decode(encoding)
    for call in VERBS[verb].calls:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        arguments = [verb.partition(" ")[0], *(HERE.get(one, one) for one in call)]
        with pytest.raises(SystemExit) as caught:
            app.main(arguments, prog_name="s3commit", obj=desk.session)
        shown = ""
        for stream in (out, err):
            stream.seek(0)
            shown += stream.read()
        assert "Traceback" not in shown
        assert caught.value.code in VERBS[verb].ends, shown
        if verb in {"status", "show", "fsck"}:
            assert expected in shown
