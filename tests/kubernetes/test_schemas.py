"""Every object is one that Kubernetes knows, field by field."""

import copy
from collections.abc import Callable
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from tests.kubernetes.rendering import FOLDER, NEWEST, OLDEST, OVERLAYS, check, name, objects, of_kind, render

FILES = sorted(
    path for path in (FOLDER / "base").rglob("*.yaml") if path.name not in ("kustomization.yaml", "names.yaml")
)


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_each_file_of_the_base_is_valid_as_it_stands(file: Any, version: str) -> None:
    found = objects(file.read_text("utf-8"))
    assert found
    for each in found:
        check(each, version)


@pytest.mark.parametrize(("overlay", "version"), [("four-zones", OLDEST), ("four-zones", NEWEST), ("us", NEWEST)])
def test_each_rendered_object_is_valid(overlay: str, version: str) -> None:
    for each in render(FOLDER / "overlays" / overlay):
        check(each, version)


def test_no_two_objects_have_one_name() -> None:
    for overlay in OVERLAYS:
        rendered = render(FOLDER / "overlays" / overlay)
        assert len({(each["kind"], name(each)) for each in rendered}) == len(rendered)
        assert {each["metadata"].get("namespace", name(each)) for each in rendered} == {f"sgfusion-{overlay}"}


def test_every_file_of_the_base_is_used() -> None:
    rendered = render(FOLDER / "overlays" / "four-zones")
    for file in FILES:
        for each in objects(file.read_text("utf-8")):
            alike = [other for other in of_kind(rendered, each["kind"]) if name(other).startswith(name(each))]
            assert alike, f"{file}: {each['kind']} {name(each)}"


def misspelt_probe(workload: Any) -> None:
    container = workload["spec"]["template"]["spec"]["containers"][0]
    container["livenesProbe"] = container.pop("livenessProbe")


def misplaced_context(workload: Any) -> None:
    workload["spec"]["template"]["spec"]["readOnlyRootFilesystem"] = True


def number_as_text(workload: Any) -> None:
    workload["spec"]["replicas"] = "1"


def no_selector(workload: Any) -> None:
    del workload["spec"]["selector"]


@pytest.mark.parametrize("mistake", [misspelt_probe, misplaced_context, number_as_text, no_selector])
def test_a_mistake_is_found(mistake: Callable[[Any], None]) -> None:
    (cloud,) = of_kind(objects((FOLDER / "base" / "run" / "cloud.yaml").read_text("utf-8")), "StatefulSet")
    changed = copy.deepcopy(dict(cloud))
    check(changed, NEWEST)
    mistake(changed)
    with pytest.raises(kubernetes_validate.ValidationError):
        check(changed, NEWEST)
