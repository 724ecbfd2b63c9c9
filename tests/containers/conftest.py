"""Fixtures of the tests across containers."""

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.containers.engine import FIRST_BUILD, connect, images_of_this_run
from tests.sharing import of_all_workers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever comes first builds the images: no test here has less time than that, unless it says so."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(FIRST_BUILD))


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    client = connect()
    yield client
    client.close()


@pytest.fixture(scope="session")
def images(
    engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Iterator[dict[str, str]]:
    """Names of the images by target, built from the tree under test, once a run."""
    with images_of_this_run(engine, of_all_workers(tmp_path_factory), worker_id) as names:
        yield names
