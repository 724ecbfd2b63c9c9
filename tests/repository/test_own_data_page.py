"""docs/own-data.md from the CSV file to the exported model, as it is typed: real processes, one cluster."""

import json
import re
from pathlib import Path

import pytest

from tests.pages import PATIENCE, looked_at, page, script, type_in, types, write_files

PAGE = "docs/own-data.md"


@pytest.mark.timeout(PATIENCE + 30)
@types("docs/own-data.md")
def test_the_page(tmp_path: Path) -> None:
    assert set(write_files(PAGE, tmp_path)) == {"write_rides.py", "rides.py", "rides.toml", "tomorrow.csv", "use_it.py"}
    printed = type_in(script(PAGE), tmp_path, looked_at("sgfusion view results/rides"))
    assert printed.startswith("station,town,latitude")
    summary = json.loads((tmp_path / "results" / "rides" / "summary.json").read_text())
    assert list(summary["zones"]) == ["campus", "harbour", "hills", "market", "resort"]
    assert summary["metric"] == {"name": "RMSE", "unit": "rides", "root": True, "lower_is_better": True}
    assert not summary["synthetic"]
    for zone in summary["zones"].values():
        assert zone["test"] < zone["before"]
        assert zone["alone"] is not None
    ((found, said),) = re.findall(
        r"RMSE (\S+) rides on the 16 test samples of zone harbour; the results say (\S+)", printed
    )
    assert found == said
    shown = json.loads((tmp_path / "page.json").read_text())
    assert [zone["name"] for zone in shown["zones"]] == list(summary["zones"])
    assert all(zone["place"] for zone in shown["zones"])  # on the map
    warm, wet = re.search(r"^0,([\d.]+)\n1,([\d.]+)$", printed, re.MULTILINE).groups()  # type: ignore[union-attr]
    assert float(warm) > float(wet)
    *_, used = printed.splitlines()
    assert json.loads(used) == pytest.approx(
        [float(warm), float(wet)], abs=0.006
    )  # the exported program, by torch alone
    assert (tmp_path / "exported" / "harbour" / "MODEL_CARD.md").exists()


def test_it_leaves_the_reference_to_the_other_pages() -> None:
    for other in ("data.md#table", "extending.md#a-task", "run-file.md", "quickstart.md#add-a-zone"):
        assert f"({other})" in page(PAGE)
