"""What is said of zones with one device before they train."""

from console.lone_devices import FEW, lone_devices


def said(samples: dict[str, int], *shared: str, spelt: tuple[str, ...] | None = None) -> str:
    """The note on zones with so many samples, of one device each but for the shared ones."""
    devices = {zone: ("a", "b") if zone in shared else ("a",) for zone in samples}
    return "".join(lone_devices(devices, samples, tuple(samples) if spelt is None else spelt))


def test_a_misspelt_zone_is_told_with_its_samples_and_the_zone_that_it_may_be() -> None:
    note = said({"Harbor": 3, "Harbour": 120, "Old-Town": 90}, "Harbour", "Old-Town")
    assert note.startswith("one device alone is in zone Harbor (3 samples; is it 'Harbour'?). Other zones get")


def test_of_many_samples_and_a_name_like_no_other_nothing_more_is_said() -> None:
    assert said({"Harbour": FEW, "Old-Town": 90}, "Old-Town").startswith("one device alone is in zone Harbour. Other")
    assert said({"Moor": 1, "Old-Town": 90}, "Old-Town").startswith("one device alone is in zone Moor (1 sample). ")
    assert said({"Harbor": 30, "Harbour": 120}, "Harbour").startswith("one device alone is in zone Harbor (is it 'Harb")
    assert said({"north": 90}, "north") == ""


def test_numbers_are_not_misspelt_nor_are_cells_nor_is_the_larger_of_two() -> None:
    assert "is it" not in said({"zone-1": 3, "zone-2": 90}, "zone-2")
    assert "is it" not in said({"871e2659cffffff": 3, "871e2659dffffff": 90}, spelt=())
    note = said({"Harbor": 3, "Harbour": 120})
    assert note.count("is it") == 1
    assert "2 zones: Harbor (3 samples; is it 'Harbour'?), Harbour. " in note


def test_of_many_zones_the_odd_ones_come_first_and_the_text_is_bounded() -> None:
    samples = {f"zone-{i}": 3 for i in range(200)} | {"Zulu-bay": 3, "Zulu-baay": 90}
    note = said(samples, "Zulu-baay")
    assert "is in each of 201 zones: Zulu-bay (3 samples; is it 'Zulu-baay'?), zone-0 (3 samples), " in note
    assert " and 191 more. Other zones" in note
    assert len(note) < 700


def test_a_zone_that_joins_is_asked_about_by_names_alone() -> None:
    (note,) = lone_devices({"Harbor": ("a",)}, {"Harbor": 4}, ("Harbour", "Harbor"))
    assert "zone Harbor (4 samples; is it 'Harbour'?)" in note
