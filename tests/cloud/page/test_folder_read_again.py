"""When the page of a finished run reads its folder again, and when it does not."""

import json
from pathlib import Path

import pytest

from sgfusion.durable import replace_file
from sgfusion.runfile import RunFile, load_run_file
from tests.cloud.page.runs import a_source, picture_of
from tests.cluster.keys import run_async

PATIENCE = 60.0


def test_a_folder_that_cannot_be_read_is_read_once_until_its_summary_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody who looks asks for it, and meanwhile the server answers nobody."""
    reads: list[Path] = []

    def counted(path: Path) -> RunFile:
        reads.append(path)
        return load_run_file(path)

    async def work() -> None:
        async with a_source("folder", tmp_path) as source:
            path, rounds = tmp_path / "results" / "summary.json", tmp_path / "results" / "rounds.jsonl"
            text, lines = path.read_bytes(), rounds.read_bytes()
            before = picture_of(source)
            monkeypatch.setattr("cloud.page.folder.load_run_file", counted)  # by each reading, once
            rounds.write_bytes(b"{")
            replace_file(path, text)
            assert [picture_of(source) for _ in range(3)] == [before] * 3
            assert len(reads) == 1
            rounds.write_bytes(lines)
            summary = json.loads(text)
            summary["pooled"]["alone"] = 7.0
            replace_file(path, json.dumps(summary).encode())
            assert [picture_of(source)["status"]["kept"]["alone"] for _ in range(3)] == [7.0] * 3
            assert len(reads) == 2

    run_async(work(), PATIENCE)
