"""What a run's zones share before the first round: data, histograms, distances, dendrogram (methods 1 to 4)."""

import json
from pathlib import Path

import numpy as np
import pytest

from sgfusion.dendrogram import Dendrogram
from sgfusion.dendrogram_file import ZoneTree
from sgfusion.errors import DataError, DendrogramError, RunFileError
from simulator.noise import simulated_release
from simulator.run import train
from simulator.world import load_world
from tests.simulator.tiny import NAMES, SIZES, ByHand, tiny

EDGES = np.linspace(-5, 5, 7)
GENERATED = (
    "data={source='generated_zones', devices=2, samples=4, features=3,"
    " kinds=1, contrast=0.1, difference=0.1, noise=1.0}"
)


def counted(labels: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> list[float]:
    """Labels in six bins from -5 to 5, those outside in the end bins."""
    bins = [0.0] * 6
    for label in labels.tolist():
        bins[min(5, max(0, int(np.floor((label + 5) / 10 * 6))))] += 1
    return bins


# Histograms


def test_without_noise_a_zones_histogram_is_the_mean_of_its_devices() -> None:
    """`Y_z = 1/m_z Σ M(Y_u, ε)`, of training labels alone."""
    run = tiny("histogram.epsilon=off")
    world, hand = load_world(run), ByHand(run)
    for z, devices in enumerate(hand.data):
        shares = [np.array(counted(device.train.y)) / len(device.train) for device in devices]
        assert world.histograms[z] == pytest.approx(np.mean(shares, axis=0), abs=1e-12)


def test_with_noise_each_device_has_its_own() -> None:
    run = tiny("histogram={epsilon=4.0, adjacency='add-remove'}")
    world, hand = load_world(run), ByHand(run)
    for z, devices in enumerate(hand.data):
        released = [
            simulated_release(
                counted(device.train.y), epsilon=4.0, adjacency="add-remove", seed=run.seed, zone=z, device=u
            )
            for u, device in enumerate(devices)
        ]
        assert world.histograms[z] == pytest.approx(np.mean(released, axis=0), abs=1e-12)


def test_held_out_labels_are_in_no_histogram() -> None:
    some, more = (load_world(tiny(f"data.test={test}", "data.validation=0")) for test in (1, 9))
    for one, other in zip(some.data.zones, more.data.zones, strict=True):
        assert one.devices[0].train.y.tolist() == other.devices[0].train.y.tolist()
    assert some.histograms.tolist() == more.histograms.tolist()


def test_distances_are_those_of_the_histograms() -> None:
    world = load_world(tiny("hrg.metric=manhattan"))
    expected = np.abs(world.histograms[:, None] - world.histograms[None]).sum(axis=2)
    assert world.tree.distances == pytest.approx(expected)
    assert world.tree.zones == world.zones == NAMES


# Loaded once


def test_the_same_run_has_the_same_world() -> None:
    one, other = load_world(tiny()), load_world(tiny())
    assert one.data is other.data
    assert one.tree is other.tree
    assert one.histograms is other.histograms


@pytest.mark.parametrize(
    "setting",
    [
        "rounds=9",
        "name=other",
        "optimiser.rate=0.3",
        "sampler.kind=none",
        "update={kind='delta', epochs=1, rate=0.1}",
        "evaluation.every=3",
        "baselines.clusters=2",
        "simulation.exact=true",
        "fusion.similarity=cosine",
        "quorum.devices=0.5",
    ],
)
def test_settings_of_training_change_nothing_of_the_world(setting: str) -> None:
    one, other = load_world(tiny()), load_world(tiny(setting))
    assert one.data is other.data
    assert one.tree is other.tree
    assert one.run != other.run


def test_another_epsilon_has_other_histograms_of_the_same_data() -> None:
    one, other = load_world(tiny()), load_world(tiny("histogram.epsilon=0.5"))
    assert one.data is other.data
    assert one.histograms.tolist() != other.histograms.tolist()
    assert (one.tree.distances != other.tree.distances).any()


def test_another_sharpness_has_other_probabilities_of_the_same_data() -> None:
    one, other = load_world(tiny()), load_world(tiny("hrg.sharpness=9.0"))
    assert one.data is other.data
    assert one.histograms.tolist() == other.histograms.tolist()
    assert (one.probabilities != other.probabilities).any()


@pytest.mark.parametrize(
    "setting", ["seed=6", "data.noise=0.9", "task.l2=0.5", "zones.names=['a', 'b', 'c', 'd', 'e']"]
)
def test_another_seed_or_data_is_another_world(setting: str) -> None:
    assert load_world(tiny()).data is not load_world(tiny(setting)).data


def test_the_seed_is_in_the_data_and_in_the_noise() -> None:
    one, other = load_world(tiny()), load_world(tiny(seed=6))
    assert (one.data.zones[0].devices[0].train.x != other.data.zones[0].devices[0].train.x).all()
    assert one.histograms.tolist() != other.histograms.tolist()


# Initial weights


def test_all_start_from_the_same_weights() -> None:
    run = tiny(GENERATED, "data.classes=3", "task={name='activity', classes=3}")
    one, other = load_world(run), load_world(run)
    assert one.theta.tolist() == other.theta.tolist()
    assert len(set(one.theta.tolist())) > 5
    assert load_world(run.model_copy(update={"seed": 6})).theta.tolist() != one.theta.tolist()


# A dendrogram as given


def saved(path: Path, tree: ZoneTree) -> str:
    path.write_text(tree.to_json(), "utf-8")
    return str(path)


def test_a_given_dendrogram_is_used(tmp_path: Path) -> None:
    fitted = load_world(tiny())
    chain = Dendrogram.from_merges(np.array([[0, 4], [5, 1], [6, 3], [7, 2]]))
    assert chain != fitted.tree.dendrogram
    path = saved(tmp_path / "dendrogram.json", ZoneTree(NAMES, chain, 2 * fitted.tree.distances))
    world = load_world(tiny(f"hrg.from={path}"))
    assert world.tree.dendrogram == chain
    assert world.tree.distances.tolist() == (2 * fitted.tree.distances).tolist()
    assert world.data is fitted.data
    assert world.probabilities.tolist() == chain.sharing_probabilities(2 * fitted.tree.distances, 2.0).tolist()
    assert (world.probabilities != fitted.probabilities).any()
    drawn = [
        tuple(len(r.drawn) for r in train(tiny(*given, rounds=12), "sgfusion", "birch").reports)
        for given in ([], [f"hrg.from={path}"])
    ]
    assert drawn[0] != drawn[1]


def test_a_given_dendrogram_that_has_changed_is_read_again(tmp_path: Path) -> None:
    tree = load_world(tiny()).tree
    path = tmp_path / "dendrogram.json"
    run = tiny(f"hrg.from={saved(path, tree)}")
    assert load_world(run).tree.distances.tolist() == tree.distances.tolist()
    saved(path, ZoneTree(NAMES, tree.dendrogram, 3.125 * tree.distances))
    assert load_world(run).tree.distances.tolist() == (3.125 * tree.distances).tolist()


def test_the_fitted_dendrogram_given_back_trains_the_same_model(tmp_path: Path) -> None:
    world = load_world(tiny())
    path = saved(tmp_path / "fitted.json", world.tree)
    one, other = (train(run, "sgfusion", "cedar") for run in (tiny(), tiny(f"hrg.from={path}")))
    assert one.outcome == other.outcome
    assert one.models["cedar"].tobytes() == other.models["cedar"].tobytes()


def test_a_dendrogram_of_other_zones_is_refused_by_their_names(tmp_path: Path) -> None:
    tree = load_world(tiny()).tree
    for names in (("ash", "birch", "cedar", "elm", "oak"), ("birch", "ash", "cedar", "elm", "fir")):
        path = saved(tmp_path / f"{names[0]}.json", ZoneTree(names, tree.dendrogram, tree.distances))
        with pytest.raises(RunFileError) as caught:
            load_world(tiny(f"hrg.from={path}"))
        said = str(caught.value)
        assert path in said
        assert f"the zones {', '.join(names)}" in said
        assert f"the run's are {', '.join(NAMES)}" in said


def test_a_dendrogram_that_is_not_there_or_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match=r"hrg\.from = .*nowhere\.json' cannot be read: No such file"):
        load_world(tiny(f"hrg.from={tmp_path / 'nowhere.json'}"))
    broken = tmp_path / "broken.json"
    broken.write_text("{", "utf-8")
    with pytest.raises(DendrogramError):
        load_world(tiny(f"hrg.from={broken}"))


# Few zones, devices and samples


@pytest.mark.parametrize("zones", [1, 2])
def test_one_zone_or_two(zones: int) -> None:
    world = load_world(tiny(sizes=SIZES[:zones]))
    assert world.tree.dendrogram.zones == zones
    assert world.probabilities.tolist() == [[[0.0]], [[0.0, 1.0], [1.0, 0.0]]][zones - 1]


def test_a_zone_without_test_samples_is_noted() -> None:
    world = load_world(tiny("data.untested=['birch', 'fir']"))
    assert world.notes == ("no test samples in zones birch, fir: they train, and are not compared",)
    assert [zone.test is None for zone in world.data.zones] == [False, True, False, False, True]
    assert load_world(tiny()).notes == ()


def test_neighbours_are_numbers_of_zones() -> None:
    world = load_world(tiny("data.borders=[['fir', 'ash'], ['birch', 'fir']]"))
    assert world.neighbours() == ((4,), (4,), (), (), (0, 1))
    with pytest.raises(DataError, match=r"gives zones no neighbours, which d-zgd.* need: let the source"):
        load_world(tiny("data.borders=[]")).neighbours()


def test_zones_without_neighbours_where_others_have_some_are_noted() -> None:
    world = load_world(tiny("data.borders=[['fir', 'ash'], ['birch', 'fir']]"))
    (note,) = world.notes
    assert note.startswith("without neighbours are 2 of 5 zones (cedar, elm): d-zgd, delta-z, and chi-sgfusion without")
    assert load_world(tiny("zones.names=['ash']", "data.borders=[]", sizes=SIZES[:1])).notes == ()


def test_places_that_give_no_zone_a_neighbour_are_no_geography() -> None:
    world = load_world(tiny("data.placed=true", "data.borders=[]"))
    assert world.data.neighbours is None
    assert world.notes == ()


def test_neighbours_by_hand_go_before_the_sources_own() -> None:
    world = load_world(tiny("zones.adjacent={ash=['fir', 'cedar'], fir=['ash'], cedar=['ash'], elm=[]}"))
    assert world.neighbours() == ((2, 4), (), (0,), (), (0,))
    (note,) = world.notes
    assert note.startswith("without neighbours are 2 of 5 zones (birch, elm)")
    nowhere = load_world(tiny("data.borders=[]", "zones.adjacent={ash=['fir'], fir=['ash']}"))
    assert nowhere.neighbours() == ((4,), (), (), (), (0,))


def test_neighbours_by_hand_that_are_nobodys_are_no_geography() -> None:
    assert load_world(tiny("zones.adjacent={}")).data.neighbours is None
    assert load_world(tiny("zones.adjacent={ash=[]}")).data.neighbours is None


def test_neighbours_by_hand_are_zones_of_the_run() -> None:
    country = "data={source='synthetic_heart_rate', country='norway', length=4, share=0.01}"
    run = tiny(country, "task={name='heart_rate'}", "zones={adjacent={oslo=['warsaw'], warsaw=['oslo']}}")
    with pytest.raises(DataError, match=r"zones\.adjacent names 'warsaw', which is no zone of this run: leave it out"):
        load_world(run)


def test_zones_have_numbers_in_the_order_of_the_run() -> None:
    world = load_world(tiny())
    assert [world.number(zone) for zone in NAMES] == [0, 1, 2, 3, 4]
    with pytest.raises(DataError, match="zone 'oak' is not one of this run: ash, birch, cedar, elm, fir"):
        world.number("oak")


def test_a_zone_without_devices_is_refused_by_its_name() -> None:
    with pytest.raises(DataError, match="zone 'birch' has no devices"):
        load_world(tiny(sizes=[[3], [], [2]]))


def test_samples_that_are_not_the_tasks_are_refused_with_zone_and_device() -> None:
    with pytest.raises(DataError, match="zone 'ash', device 'u0'"):
        load_world(tiny("data.features=0"))


# What a report shows


def test_the_worlds_document() -> None:
    run = tiny()
    world, hand = load_world(run), ByHand(run)
    text = world.to_json()
    document = json.loads(text)
    assert text == load_world(run).to_json()
    assert document["zones"] == list(NAMES)
    assert document["devices"] == [2, 3, 1, 2, 3]
    assert document["samples"] == [11, 8, 6, 8, 12]
    assert document["neighbours"] == [[1], [0, 2], [1, 3], [2, 4], [3]]
    assert document["edges"] == pytest.approx(EDGES.tolist())
    assert document["histograms"] == world.histograms.tolist()
    assert document["distances"] == world.tree.distances.tolist()
    assert document["probabilities"] == world.probabilities.tolist()
    assert (document["epsilon"], document["sharpness"]) == (4.0, 2.0)
    tree = Dendrogram.from_merges(np.array(document["merges"]))
    assert tree == world.tree.dendrogram
    assert document["loss"] == pytest.approx(tree.loss(world.tree.distances))
    example = document["example"]
    assert (example["zone"], example["device"]) == ("elm", "u0")  # its 4 samples are the median
    mass = counted(hand.data[3][0].train.y)
    assert example["mass"] == mass
    released = simulated_release(mass, epsilon=4.0, adjacency="replace", seed=run.seed, zone=3, device=0)
    assert example["released"] == released.tolist()
    assert json.loads(load_world(tiny("data.borders=[]")).to_json())["neighbours"] is None


def test_synthetic_data_is_called_so() -> None:
    assert load_world(tiny(GENERATED)).synthetic
    assert not load_world(tiny()).synthetic
