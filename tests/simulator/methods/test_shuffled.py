"""Shuffled: SGFusion's chances, dealt to other zones at random once and for all."""

from dataclasses import replace

from simulator.cost import Cost
from simulator.directions import InProcess
from simulator.methods import sgfusion
from simulator.methods.shuffled import METHOD
from simulator.run import train
from simulator.world import World, load_world
from tests.simulator.tiny import NAMES, ByHand, luck, near, tiny

ROUNDS = 400


def dealt(world: World, z: int) -> list[float]:
    """The chances of zone `z` by other zone, by hand."""
    others = [other for other in range(len(NAMES)) if other != z]
    numbers = luck(world.run.seed, "shuffled", z, count=len(others))
    from_whom = sorted(range(len(others)), key=lambda i: numbers[i])
    row = [0.0] * len(NAMES)
    for other, i in zip(others, from_whom, strict=True):
        row[other] = float(world.probabilities[z, others[i]])
    return row


def test_two_rounds_by_hand() -> None:
    run = tiny()
    hand, world = ByHand(run), load_world(run)
    for z, zone in enumerate(NAMES):
        chances = dealt(world, z)

        def draw(number: int, z: int = z, chances: list[float] = chances) -> list[int]:
            numbers = luck(run.seed, "hrg draw", z, number, count=len(NAMES))
            return [other for other in hand.numbers if numbers[other] < chances[other]]

        trained = train(run, "shuffled", zone)
        assert [list(report.drawn) for report in trained.reports] == [draw(1), draw(2)]
        assert near(trained.models[zone], hand.trajectory(z, draw)[-1])


def drawn_by(world: World, z: int) -> list[tuple[int, ...]]:
    sampler = METHOD.plan(world, z, InProcess(world, z, Cost(3))).sampler
    return [sampler.draw(z, number) for number in range(1, ROUNDS + 1)]


def test_each_zone_has_the_chances_of_sgfusion_but_not_for_the_same_zones() -> None:
    world = load_world(tiny())
    moved = 0
    for z in range(len(NAMES)):
        draws = drawn_by(world, z)
        shares = [sum(other in draw for draw in draws) / ROUNDS for other in range(len(NAMES))]
        assert shares[z] == 0
        ours = world.probabilities[z].tolist()
        assert all(abs(a - b) < 0.12 for a, b in zip(sorted(shares), sorted(ours), strict=True))
        moved += any(abs(share - p) > 0.12 for share, p in zip(shares, ours, strict=True))
    assert moved >= 2


def test_it_draws_as_many_and_the_same_favourites_in_every_round() -> None:
    world = load_world(tiny())
    for z in range(len(NAMES)):
        source = InProcess(world, z, Cost(3))
        ours, shuffled = (
            [sampler.draw(z, number) for number in range(1, ROUNDS + 1)]
            for sampler in (sgfusion.plan(world, z, source).sampler, METHOD.plan(world, z, source).sampler)
        )
        assert abs(sum(map(len, ours)) - sum(map(len, shuffled))) < 0.3 * ROUNDS
        chances = dealt(world, z)
        favourite = max(range(len(NAMES)), key=lambda other: chances[other])
        assert sum(favourite in draw for draw in shuffled) > (chances[favourite] - 0.1) * ROUNDS


def test_another_seed_deals_otherwise() -> None:
    """With the same chances: those of another seed's world would be others anyway."""
    world = load_world(tiny())
    reseeded = replace(world, run=world.run.model_copy(update={"seed": 8}))
    favourites = [
        [max(range(len(NAMES)), key=lambda o: sum(o in draw for draw in drawn_by(w, z))) for z in range(len(NAMES))]
        for w in (world, reseeded)
    ]
    assert favourites[0] != favourites[1]


def test_it_is_only_compared_with() -> None:
    assert METHOD.sampler_kind is None
