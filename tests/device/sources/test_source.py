"""How a run file names a source: one of ours, or one's own as `module:name`."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from device.sources.extras import optional
from device.sources.source import SOURCES, open_source
from sgfusion.errors import DataError, MissingDependencyError, RunFileError
from sgfusion.runfile import RunFile, parse_run_file

OWN = """
from pydantic import Field
from sgfusion.runfile import Section

class Options(Section):
    size: int = Field(ge=1)

class Own:
    def __init__(self, *given):
        self.given = given

def opened(options, zones, seed):
    return Own(options, zones, seed)

opened.options = Options

def plain(options, zones, seed):
    return Own(options, zones, seed)
"""


def run(data: str) -> RunFile:
    return parse_run_file(
        f'name = "a"\nseed = 7\nrounds = 1\n[task]\nname = "linear"\n[zones]\nmin_devices = 2\n{data}'
    )


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sgfusion_own_source.py").write_text(OWN)
    (tmp_path / "sgfusion_broken_source.py").write_text("import not_there_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_source_of_ours_gets_its_options_the_zones_and_the_seed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("device,zone,label,f\nu,a,1,2\nv,a,1,3\nu,b,1,4\n")
    columns = 'device = "device"\nzone = "zone"\nlabel = "label"\nfeatures = ["f"]'
    data = f'[data]\nsource = "table"\npath = "{path}"\n{columns}'
    source = open_source(run(data))
    assert source.zones() == ("a",)
    assert source.data("a", "v").train.x.tolist() == [[3.0]]
    with pytest.raises(RunFileError, match=r"data\.lable = 'y': unknown key, did you mean label\?"):
        open_source(run(data.replace("label =", "lable =").replace('"label"', '"y"')))


@pytest.mark.parametrize(("outside", "noted"), [(0, False), (2, False), (3, True), (4, True)])
def test_labels_in_no_bin_are_noted_once_they_are_most(tmp_path: Path, outside: int, noted: bool) -> None:
    path = tmp_path / "a.csv"
    labels = [-70, 700, 800, 900][:outside] + [-5, 5, 0, 1][outside:]
    path.write_text("u,z,y,f\n" + "".join(f"{number},a,{label},1\n" for number, label in enumerate(labels)))
    data = f'[data]\nsource = "table"\npath = "{path}"\ndevice = "u"\nzone = "z"\nlabel = "y"\nfeatures = ["f"]'
    bins = 'name = "linear"\nlow = -5.0\nhigh = 5.0\n'
    document = f'name = "a"\nseed = 7\nrounds = 1\n[task]\n{bins}{data}'
    notes = open_source(parse_run_file(document)).notes
    assert len(notes) == noted
    if noted:
        assert notes[0].startswith(
            f"{outside} of 4 labels are outside the task's label bins, which go from -5 to 5; the labels go from -70 to"
        )


@pytest.mark.parametrize("name", ["fitrec", "sequences", "table"])
def test_every_source_has_options_and_an_opener(name: str) -> None:
    assert name in SOURCES
    module = importlib.import_module(f"device.sources.{name}")
    assert module.Options.model_config["extra"] == "forbid"
    with pytest.raises(RunFileError, match=r"data\.path is missing"):
        open_source(run(f'[data]\nsource = "{name}"'))


@pytest.mark.usefixtures("own")
def test_ones_own_source_with_options_and_without() -> None:
    source: Any = open_source(run('[data]\nsource = "sgfusion_own_source:opened"\nsize = 3'))
    options, zones, seed = source.given
    assert (options.size, zones.min_devices, seed) == (3, 2, 7)
    with pytest.raises(RunFileError, match=r"data\.size = 0"):
        open_source(run('[data]\nsource = "sgfusion_own_source:opened"\nsize = 0'))
    source = open_source(run('[data]\nsource = "sgfusion_own_source:plain"'))
    assert source.given[2] == 7
    with pytest.raises(RunFileError, match=r"data\.size = 3: unknown key"):
        open_source(run('[data]\nsource = "sgfusion_own_source:plain"\nsize = 3'))


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "tabel",
            r"data.source = 'tabel', did you mean 'table'\? Choose 'fitrec', .*'table', or your own as module:name",
        ),
        ("spreadsheet", r"data.source = 'spreadsheet'\. Choose 'fitrec'"),
        ("sgfusion_own_source:closed", "sgfusion_own_source has no closed"),
        ("sgfusion_no_source:opened", "sgfusion_no_source cannot be imported: No module named"),
        ("sgfusion_broken_source:opened", "cannot be imported: No module named 'not_there_at_all'"),
    ],
)
def test_an_error_says_which_part_is_not_there(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_source(run(f'[data]\nsource = "{name}"'))


def test_a_missing_package_is_named_with_the_extra_that_brings_it() -> None:
    with pytest.raises(
        MissingDependencyError, match=r"nopackage is not installed .*: .* pip install '\.\[experiments\]'"
    ):
        optional("nopackage.part")
