"""`sgfusion compose`: what the file says. That it runs is shown in `tests/containers`."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.compose import Asked, compose
from sgfusion.runfile import load_run_file
from tests.console.commands import sgfusion

ROOT = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]
PAGE_PORTS = ["127.0.0.1:${SGFUSION_PAGE_PORT:-7080}:7080"]
PAGE_NETWORK = {"driver_opts": {"com.docker.network.bridge.enable_ip_masquerade": "false"}}
"""Of the cloud alone: an internal network publishes nothing."""
PUBLISHING = {"page": PAGE_NETWORK, "observe": PAGE_NETWORK}
RUN = """
name = "small"
seed = 1
rounds = 2
[task]
name = "linear"
[data]
source = "generated_zones"
devices = 3
samples = 8
features = 4
kinds = 2
contrast = 0.2
difference = 0.1
noise = 1.0
[zones]
names = {names}
"""


def write_run(folder: Path, *zones: str) -> Path:
    path = folder / "small.toml"
    path.write_text(RUN.format(names=list(zones)), "utf-8")
    return path


def composed(capsys: Capture, run_file: Path, folder: Path, *options: str) -> Any:
    done = sgfusion(capsys, "compose", run_file, "--out", folder, *options)
    assert done.code == 0, done.error
    return yaml.safe_load((folder / "docker-compose.yml").read_text("utf-8"))


def test_the_file_in_the_root_is_what_the_command_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    path = Path("experiments/containers.toml")
    made = compose(load_run_file(path), path, Asked(Path()))
    assert made.run is None
    assert made.text == Path("docker-compose.yml").read_text("utf-8")


@pytest.mark.parametrize("tree", [True, False])
def test_images_are_built_in_a_working_tree_alone(tree: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where SGFusion is installed the images have to be there, and nobody is told to make them."""
    monkeypatch.setattr("console.compose.ROOT", ROOT if tree else tmp_path)
    path = write_run(tmp_path, "a", "b")
    text = compose(load_run_file(path), path, Asked(tmp_path)).text
    services = yaml.safe_load(text)["services"].values()
    assert all(("build" in service) == tree for service in services if "profiles" not in service)
    assert ("`make images`" in text) == tree


def test_the_folder_of_the_results_is_made_as_ours(tmp_path: Path, capsys: Capture) -> None:
    """Docker would make it as root's, and nobody could write beside it."""
    services = composed(capsys, write_run(tmp_path, "a", "b"), tmp_path / "out")["services"]
    assert (tmp_path / "out" / "results" / "small").is_dir()
    assert "./results/small:/results/small" in services["console"]["volumes"]


def test_who_has_settings_in_the_root_is_told_to_copy_them(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compose reads the `.env` beside the compose file."""
    root, folder = tmp_path / "my root", tmp_path / "out"
    root.mkdir()
    monkeypatch.setattr("console.compose.ROOT", root)

    def told() -> str:
        said = sgfusion(capsys, "compose", write_run(tmp_path, "a", "b"), "--out", folder).out
        return said.partition("Next, in that folder: ")[2].strip()

    assert told() == "docker-compose up"
    (root / ".env").touch()
    assert told() == "cp '../my root/.env' . && docker-compose up"
    (folder / ".env").touch()
    assert told() == "docker-compose up"


@pytest.mark.parametrize("zones", [2, 13, 16, 50])
def test_everybody_has_keys_and_state_of_its_own(zones: int, tmp_path: Path, capsys: Capture) -> None:
    names = [f"z{i:02}" for i in range(zones)]
    found = composed(capsys, write_run(tmp_path, *names), tmp_path / "out")
    services = found["services"]
    assert {f"edge-{name}" for name in names} <= set(services)
    hosts = [name for name in services if name.startswith("devices-")]
    assert len(hosts) == min(zones, 8)
    mounted: dict[str, list[str]] = {}
    for name, service in services.items():
        for volume in service["volumes"]:
            mounted.setdefault(volume.partition(":")[0], []).append(name)
    for volume in found["volumes"]:
        owners = [name for name in mounted[volume] if name != "certs"]
        assert len(owners) == (0 if volume == "authority" else 1), (volume, owners)
    on = {name: set(service.get("networks", ())) for name, service in services.items()}
    assert on["cloud"] == {"backbone", "page"}
    assert on["console"] == {"backbone"}
    assert [name for name in on if "page" in on[name]] == ["cloud"]
    assert all(on[name] == {"field"} for name in hosts)
    assert all(on[f"edge-{name}"] == {"field", "backbone"} for name in names)
    assert found["networks"] == {"field": {"internal": True}, "backbone": {"internal": True}, **PUBLISHING}
    hosted = [word for host in hosts for word in _options(services[host]["command"], "--zone")]
    assert sorted(hosted) == names
    assert [name for name, service in services.items() if "ports" in service] == ["cloud", "prometheus", "grafana"]
    assert services["cloud"]["ports"] == PAGE_PORTS


def test_all_are_confined(tmp_path: Path, capsys: Capture) -> None:
    services = composed(capsys, write_run(tmp_path, "north", "south"), tmp_path / "out")["services"]
    for name, service in services.items():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["mem_limit"]
        assert service["cpus"]
        assert ("cap_add" in service) == ("user" in service and name == "certs")
        assert service["restart"] == ("no" if name in ("certs", "console") else "unless-stopped")
    assert services["certs"]["network_mode"] == "none"


def test_zones_whose_names_are_no_host_names_are_called_by_number(tmp_path: Path, capsys: Capture) -> None:
    services = composed(capsys, write_run(tmp_path, "Łódź", "zone-1", "south"), tmp_path / "out")["services"]
    assert {"edge-zone-0", "edge-zone-1", "edge-south"} <= set(services)
    assert _options(services["edge-zone-0"]["command"], "--zone") == ["Łódź"]
    assert _options(services["edge-zone-1"]["command"], "--zone") == ["zone-1"]
    assert "--host Łódź" in services["certs"]["command"][0]
    assert any(volume.endswith("/keys/edge-Łódź") for volume in services["certs"]["volumes"])


def test_a_zone_may_be_called_what_yaml_takes_for_something_else(tmp_path: Path, capsys: Capture) -> None:
    services = composed(capsys, write_run(tmp_path, "no", "null", "on"), tmp_path / "out")["services"]
    assert {"edge-no", "edge-null", "edge-on"} <= set(services)
    for zone in ("no", "null", "on"):
        assert _options(services[f"edge-{zone}"]["command"], "--zone") == [zone]


def test_others_reach_what_is_published(tmp_path: Path, capsys: Capture) -> None:
    run_file = write_run(tmp_path, "north", "south")
    found = composed(capsys, run_file, tmp_path / "out", "--publish", "hub.example:9000")
    services = found["services"]
    assert services["cloud"]["ports"] == ["9000:7070", *PAGE_PORTS]
    assert services["edge-south"]["ports"] == ["9002:7070"]
    assert _options(services["edge-south"]["command"], "--advertise") == ["hub.example:9002"]
    inside = {"field": {"internal": True}, "monitor": {"internal": True}}
    assert found["networks"] == {**inside, "backbone": {"internal": False}, **PUBLISHING}
    for bad in ("hub.example:none", ":70", "hub.example:65534", "http://hub.example:7070", "hub example", "hub:7078"):
        done = sgfusion(capsys, "compose", run_file, "--out", tmp_path / "bad", "--publish", bad)
        assert (done.code, bad in done.error) == (1, True), done
    assert "7080 is the page's: give another, say --publish hub:7081" in " ".join(done.error.split())


def test_a_run_file_that_says_too_little_gets_one_beside_the_compose_file(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "data").mkdir()
    table = tmp_path / "data" / "houses.csv"
    rows = [f"{zone},{device},{i},{i * 2}" for zone in ("a", "b") for device in ("x", "y") for i in range(9)]
    table.write_text("\n".join(["zone,device,size,price", *rows]))
    (tmp_path / "table.toml").write_text(
        'name = "houses"\nseed = 1\nrounds = 1\n[task]\nname = "linear"\n[data]\nsource = "table"\n'
        'path = "data/houses.csv"\nzone = "zone"\ndevice = "device"\nfeatures = ["size"]\nlabel = "price"\n'
    )
    found = composed(capsys, tmp_path / "table.toml", tmp_path / "out")
    inside = load_run_file(tmp_path / "out" / "run.toml")
    assert inside.zones.names == ("a", "b")
    assert inside.data.model_dump()["path"] == "/data/data/houses.csv"
    services = found["services"]
    assert "../data/houses.csv:/data/data/houses.csv:ro" in services["devices-a"]["volumes"]
    assert "./run.toml:/etc/sgfusion/run.toml:ro" in services["cloud"]["volumes"]
    assert not any("houses.csv" in volume for volume in services["cloud"]["volumes"]), "the cloud sees no data"


def test_a_cloud_is_told_where_zones_lie(tmp_path: Path, capsys: Capture) -> None:
    text = (ROOT / "experiments" / "containers.toml").read_text("utf-8")
    bare = text[: text.index("[zones.places]")] + text[text.index("[histogram]") :]
    (tmp_path / "bare.toml").write_text(bare, "utf-8")
    composed(capsys, tmp_path / "bare.toml", tmp_path / "out")
    by_hand = load_run_file(ROOT / "experiments" / "containers.toml")
    inside = load_run_file(tmp_path / "out" / "run.toml")
    assert inside.zones.places == by_hand.zones.places is not None
    assert inside.zones.names == by_hand.zones.names
    (tmp_path / "nowhere.toml").write_text(bare.replace("[histogram]", "[zones.places]\n[histogram]"), "utf-8")
    composed(capsys, tmp_path / "nowhere.toml", tmp_path / "none")
    assert not (tmp_path / "none" / "run.toml").exists()


def test_what_is_set_on_the_command_line_is_in_a_run_file_beside_it(tmp_path: Path, capsys: Capture) -> None:
    run_file = write_run(tmp_path, "a", "b")
    found = composed(capsys, run_file, tmp_path / "out", "--set", "rounds=7")
    assert load_run_file(tmp_path / "out" / "run.toml").rounds == 7
    assert "./run.toml:/etc/sgfusion/run.toml:ro" in found["services"]["devices-a"]["volumes"]


def test_hosts_share_out_zones(tmp_path: Path, capsys: Capture) -> None:
    services = composed(capsys, write_run(tmp_path, "a", "b", "c"), tmp_path / "out", "--hosts", "2")["services"]
    assert [name for name in services if name.startswith("devices-")] == ["devices-a", "devices-b"]
    assert _options(services["devices-a"]["command"], "--zone") == ["a", "c"]
    assert "--host a,c" in services["certs"]["command"][0]
    assert set(services["devices-a"]["depends_on"]) == {"certs", "edge-a", "edge-c"}


def _options(command: list[str], option: str) -> list[str]:
    return [value for word, value in pairwise(command) if word == option]
