"""docs/commands.md has every command of `sgfusion` with its argument and all its options, and none besides."""

import re
from typing import Any

import typer.main

from console.main import app
from tests.pages import page

PAGE = page("docs/commands.md")
CELLS = re.compile(r"^\| (.*?) \| (.*) \| (.*?) \|$", re.MULTILINE)
NAMED = re.compile(r"`(--[a-z-]+)`")


def rows() -> dict[str, tuple[str, set[str]]]:
    """What follows the name, and the options, by the command's name."""
    found = {}
    for first, _, options in CELLS.findall(PAGE.replace("\\|", "¦")):
        if typed := re.fullmatch(r"`([a-z]+) ?(.*)`", first):
            assert typed[1] not in found, f"{typed[1]} stands there twice"
            found[typed[1]] = typed[2].replace("¦", "|"), set(NAMED.findall(options))
    return found


def commands() -> dict[str, list[Any]]:
    """Each with its arguments and options: of click, or of the copy that newer versions of typer have of it."""
    group: Any = typer.main.get_command(app)
    return {name: command.params for name, command in group.commands.items()}


def option(parameter: Any) -> str:
    """Its name; of a switch that says yes or no, the one that is not the default."""
    switched = parameter.secondary_opts and parameter.default is True
    return str((parameter.secondary_opts if switched else parameter.opts)[0])


def test_every_command_stands_there_with_its_argument_and_its_options() -> None:
    expected = {}
    for name, parameters in commands().items():
        arguments = [each for each in parameters if each.param_type_name == "argument"]
        options = {option(each) for each in parameters if each.param_type_name == "option"}
        expected[name] = " ".join(each.metavar for each in arguments), options
    listed = rows()
    assert set(listed) == set(expected)
    for name, wanted in expected.items():
        assert listed[name] == wanted, name


def test_what_many_have_in_common_some_have() -> None:
    common = PAGE.partition("## What many have in common")[2]
    known = [each for parameters in commands().values() for each in parameters]
    named = NAMED.findall(common)
    assert {"--set", "--out", "--certs"} <= set(named)
    for name in named:
        assert sum(name in each.opts for each in known) > 1, name
    assert set(re.findall(r"`(SGFUSION_[A-Z]+)`", common)) == {each.envvar for each in known if each.envvar}
