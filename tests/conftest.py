"""Settings for all tests."""

import pytest
from hypothesis import settings
from xdist.remote import Producer

from tests.dealing import Dealing, turn

# A loaded two-core machine must not fail a property for being slow.
settings.register_profile("sgfusion", deadline=None)
settings.load_profile("sgfusion")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Dealing | None:
    return Dealing(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # of xdist: who runs tests by hand has them in the usual order
        items.sort(key=lambda item: turn(item.nodeid))
