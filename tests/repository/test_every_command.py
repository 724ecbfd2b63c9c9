"""Every command that README and the documents name is executed by a test.

A command in a `sh` block is typed by the test that claims its page or section (`@types` of tests/pages.py), or stands,
word for word, in a block that is claimed, or is in a list here with the place where it is run instead. Commands in
running text, and those of `text` blocks, which are typed on other hosts, may also be part of one that is typed: all of
their words, in that order. Nothing is left out, and the list holds nothing that no page has any more.

This is an inventory. That a test types what it claims is seen to by the test itself, which takes the blocks from the
page; here it is seen that it reads that page. Of what is run elsewhere, the words that run it are looked for there, in
code that is run.
"""

import ast
import re
from dataclasses import dataclass
from functools import cache

import pytest

from tests.pages import ROOT, blocks, commands, normal, page

PAGES = ["README.md", "CONTRIBUTING.md", "experiments/RESULTS.md"]
PAGES += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))

PROGRAMS = (
    "apt|apt-get|awk|bash|brew|chmod|chown|cmp|conda|cp|crontab|curl|dnf|docker|docker-compose|docker-credential"
    "|git|grep|helm|journalctl|jq|kill|killall|kubectl|make|mkdir|mv|mypy|nohup|npm|npx|openssl|pip|pip3|pipx|pkill"
    "|poetry|prometheus|promtool|pytest|python3?|ray|rm|rsync|ruff|scp|sgfusion|sqlite3|ssh|ssh-keygen|sudo"
    "|systemctl|tar|tee|tmux|unzip|uv|wget|zip"
)
SCRIPTS = r"\.venv/bin/[\w-]+|\.ci/\w+|deploy/(?:base-image|cluster|engine|images|wheelhouse)"
COMMAND = re.compile(rf"(?:[A-Z_]+=\S+ )*(?:{PROGRAMS}|{SCRIPTS})(?= |$)")
NAME = re.compile(r"[A-Z]{3,}(?:\.\w+|:\d+)?|…")
"""Stands for something: RUN.toml, HEAD:6379."""
LANGUAGES = {"sh", "text", "toml", "yaml", "python", "csv", "mermaid"}
"""Of fenced blocks: what is typed is `sh`, on another host `text`. Of any other nobody would see that it is typed."""
NOT_RUN = {"skip", "skipif", "xfail"}
"""Marks of tests that claim nothing."""
RESULTS = re.compile(r"results/\w+")
"""One results folder stands for another."""

_SCRIPTS_TEST = "tests/repository/test_deploy_scripts.py"
_EDGE_TEST = "tests/containers/test_edge_elsewhere.py"
_PAGE_TEST = "tests/containers/test_page.py"
_WATCH_TEST = "tests/cluster/test_watch.py"
_RAY_TEST = "tests/console/test_ray_cluster.py"
_BY_STEPS = "export, token, head, node, experiment, end = steps()"
_BENCH_TEST = "tests/benchmarks/test_all.py"
_SSH_TEST = "tests/repository/test_ssh_commands.py"
_KUBECTL_TEST = "tests/kubernetes/test_page_commands.py"
_HOSTS_TEST = "tests/repository/test_cluster_page.py"
_ON_HOSTS = "def test_services_on_several_hosts"
ELSEWHERE: dict[str, tuple[str, str]] = {
    # A command: the file that runs it, and what of it is to be found there.
    "make demo": (".ci/run", "make demo"),
    "make test": (".ci/run", "make test"),
    "make check": (".ci/run", "make check"),
    "make images": (".ci/run", "make images"),
    ".ci/kubectl DIR": (".ci/run", ".ci/kubectl"),
    "make install": (".ci/run", "make install"),
    ".ci/run": ("tests/repository/test_ci.py", 'self.folder / ".ci" / "run"'),  # on a machine whose steps are short
    "make help": ("tests/repository/test_readme.py", '["make", "help"]'),
    "make proto": ("tests/repository/test_proto_drift.py", 'make("proto"'),
    "make cluster": ("tests/containers/test_command.py", '"--assume-old=.venv/.installed-experiments", "cluster"'),
    # All of these measure for half an hour; a test types the short form of all.
    "make bench": (_BENCH_TEST, 'make("--dry-run", "bench"'),
    "make bench QUICK=1": (_BENCH_TEST, 'make("bench", "QUICK=1"'),
    "python -m benchmarks.simulator": ("benchmarks/__main__.py", '"simulator": ("--repeats"'),
    "python -m benchmarks.round": ("benchmarks/__main__.py", '"round": (*QUICK_ROUND'),
    "python -m benchmarks.soak": ("benchmarks/__main__.py", '"soak": ("--minutes"'),
    "python -m benchmarks.page": ("benchmarks/__main__.py", '"page": ("--zones"'),
    "SGFUSION_EXTRAS=experiments make images": (_SCRIPTS_TEST, "SGFUSION_EXTRAS=experiments make images"),
    "SGFUSION_TAG=VERSION make images": (_SCRIPTS_TEST, "SGFUSION_TAG=VERSION make images"),
    "deploy/engine start PIDFILE": (".ci/run", "deploy/engine start"),
    "deploy/engine find": (_SCRIPTS_TEST, '"find"'),
    "deploy/base-image": ("deploy/images", "base-image"),  # which .ci/run runs
    "docker compose": ("tests/containers/project.py", '["docker", "compose"]'),
    "docker logs": (_EDGE_TEST, 'f"docker logs {'),
    "docker-compose ps": (_PAGE_TEST, "docker-compose ps"),
    "docker-compose logs certs": (_PAGE_TEST, "docker-compose logs certs"),
    "docker-compose logs cloud": (_PAGE_TEST, "docker-compose logs cloud"),
    "docker-compose logs unpack": (_EDGE_TEST, "docker-compose logs unpack"),
    "docker-compose logs edge | grep -v INFO": (_EDGE_TEST, "docker-compose logs edge | grep -v INFO"),
    "docker-compose logs edge devices | grep -v INFO": (_EDGE_TEST, "docker-compose logs edge devices | grep -v INFO"),
    "docker-compose restart edge": (_EDGE_TEST, "docker-compose restart edge"),
    "docker-compose up -d edge": (_EDGE_TEST, '"docker-compose up -d edge"'),
    "docker volume rm edge_edge": (_EDGE_TEST, "docker volume rm {there.name}_edge"),
    "docker save sgfusion/edge:latest sgfusion/device:latest | ssh wielkopolskie.example docker load": (
        _EDGE_TEST,
        "all_that_it_needs_comes_by_ssh(",
    ),
    "scp -r deploy/edge wielkopolskie.example:edge": (_SSH_TEST, 'shown("docs/edge.md", "scp")'),
    "scp cluster/wielkopolskie.tar wielkopolskie.example:edge/bundle/": (_SSH_TEST, 'shown("docs/edge.md", "scp")'),
    "ssh -L 7080:127.0.0.1:7080 cloud.example": (_SSH_TEST, '"ssh -L 7080:127.0.0.1:7080 cloud.example"'),
    "rm bundle/*.tar": (_EDGE_TEST, '"rm bundle/*.tar"'),
    "kubectl rollout restart statefulset": (_KUBECTL_TEST, "kubectl rollout restart statefulset"),
    "kubectl delete -k deploy/kubernetes/overlays/four-zones": (
        _KUBECTL_TEST,
        "kubectl delete -k deploy/kubernetes/overlays/four-zones",
    ),
    "kubectl delete namespace sgfusion-four-zones": (_KUBECTL_TEST, "kubectl delete namespace sgfusion-four-zones"),
    "sgfusion certs harbour.toml --zone hills --bundle hills.tar": ("tests/console/test_bundle.py", '"--bundle"'),
    "sgfusion simulate mine.toml --out results/try": (
        "tests/repository/test_quickstart_page.py",
        '"sgfusion simulate mine.toml --out results/try',
    ),
    "sgfusion leave": ("tests/cluster/test_absent.py", '"leave", "--zone"'),
    "sgfusion follow": ("tests/cluster/test_follow.py", '"follow"'),
    "sgfusion join --zone NAME --set data.path=more.csv": (
        "tests/cluster/test_join.py",
        '"--set", "data.path=more.csv"',
    ),
    "sgfusion join --zone hills": ("tests/cluster/test_join.py", '"join", "--zone", "elm"'),
    "sgfusion watch results/long": (_WATCH_TEST, 'sgfusion(capsys, "watch", folder)'),
    "sgfusion watch results/demo": (_WATCH_TEST, 'sgfusion(capsys, "watch", folder)'),
    "sgfusion cloud harbour.toml --listen 0.0.0.0:7070 --certs cloud": (_HOSTS_TEST, _ON_HOSTS),
    "sgfusion edge --zone north --cloud cloud.example:7070 --listen 0.0.0.0:7071 --advertise north.example:7071"
    " --devices 3 --certs edge-north": (_HOSTS_TEST, _ON_HOSTS),
    "sgfusion device harbour.toml --edge north=north.example:7071 --zone north --device d0 --certs .": (
        _HOSTS_TEST,
        _ON_HOSTS,
    ),
    "sgfusion experiment experiments/own_sequences_suite.toml --set data.path=FILE.npz": (
        "tests/repository/test_docs_pages.py",
        '"own_sequences_suite.toml", "--set", "data.path=',
    ),
    "sgfusion experiment suite.toml --backend ray --address HEAD:6379": (_RAY_TEST, _BY_STEPS),
    "ray get-auth-token --generate": (_RAY_TEST, _BY_STEPS),
    "ray start --head --port=6379 --include-dashboard=false": (_RAY_TEST, _BY_STEPS),
    "ray start --address=HEAD:6379": (_RAY_TEST, _BY_STEPS),
    "ray stop": (_RAY_TEST, _BY_STEPS),
    'jq -r \'select(.request == "lubelskie.4") | [.time, .zone, .device // "edge", .message] | @tsv\''
    " results/logs/cluster/*/logs/*.log | sort": ("tests/repository/test_logs_page.py", "(jq "),
    "pip install '.[cloud]'": ("tests/repository/test_distribution.py", '("kernel", "cloud", "numba")'),
    "pip install '.[device]'": ("tests/repository/test_distribution.py", '("cluster", "device", "torch")'),
    "pip install '.[ray]'": ("tests/repository/test_distribution.py", '("simulator", "ray", "ray")'),
}


@dataclass(frozen=True)
class Command:
    page: str
    headings: tuple[str, ...]
    text: str


@cache
def typed() -> list[Command]:
    return [
        Command(name, block.headings, normal(command))
        for name in PAGES
        for block in blocks(name)
        if block.language == "sh"
        for command in commands(block.text)
    ]


@cache
def named() -> list[Command]:
    """Commands in running text, and on other hosts."""
    found = []
    for name in PAGES:
        prose = re.sub(r"^( *)```.*?^ *```$", "", page(name), flags=re.MULTILINE | re.DOTALL)
        inline = [" ".join(text.split()) for text in re.findall(r"`([^`]+)`", prose)]
        texts = [block.text.replace("\\\n", " ") for block in blocks(name) if block.language == "text"]
        shown = [line for text in texts for line in text.splitlines()]
        found += [Command(name, (), normal(text)) for text in inline if COMMAND.match(text)]
        found += [Command(name, (), normal(line[at.start() :])) for line in shown if (at := COMMAND.search(line))]
    return found


@cache
def claims() -> dict[str, frozenset[str]]:
    """What tests say that they type: pages or sections, each with the commands that are left to others."""
    return {place: left for place, (left, _) in _claims().items()}


def claimants() -> dict[str, str]:
    """In which file."""
    return {place: path for place, (_, path) in _claims().items()}


@cache
def _claims() -> dict[str, tuple[frozenset[str], str]]:
    found: dict[str, tuple[frozenset[str], str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for decorator in getattr(node, "decorator_list", ()):
                if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "types":
                    assert isinstance(node, ast.FunctionDef)
                    assert node.name.startswith("test_"), f"{path}: {node.name}"
                    assert not _marks(node) & NOT_RUN, f"{path}: {node.name} claims commands, and may not be run"
                    but = [ast.literal_eval(keyword.value) for keyword in decorator.keywords if keyword.arg == "but"]
                    left = frozenset(command for each in but for command in each)
                    for argument in decorator.args:
                        found[str(ast.literal_eval(argument))] = left, str(path.relative_to(ROOT))
    return found


def _marks(test: ast.FunctionDef) -> set[str]:
    return {getattr(each, "attr", "") for at in test.decorator_list for each in ast.walk(at)}


def claimed(command: Command) -> bool:
    places = [command.page, *(f"{command.page}#{heading}" for heading in command.headings)]
    return any(place in claims() and not any(_is(command.text, but) for but in claims()[place]) for place in places)


def _is(command: str, pattern: str) -> bool:
    """ "make *" is all that begins so."""
    return command.startswith(pattern[:-1]) if pattern.endswith(" *") else command == pattern


@cache
def executed() -> frozenset[str]:
    return frozenset(command.text for command in typed() if claimed(command))


def is_part_of(command: str, whole: str) -> bool:
    """Whether all words of the command are in the other, in that order; names stand for anything but an option."""
    rest = iter(whole.split())
    return all(any(_stands_for(word, other) for other in rest) for word in command.split())


def _stands_for(word: str, other: str) -> bool:
    if RESULTS.fullmatch(word):
        return RESULTS.fullmatch(other) is not None
    return word == other or (NAME.fullmatch(word) is not None and not other.startswith("-"))


def test_blocks_are_of_languages_that_are_looked_at() -> None:
    found = {block.language for name in PAGES for block in blocks(name)}
    assert found <= LANGUAGES


def test_every_claim_is_of_a_place_that_has_something_to_type() -> None:
    places: dict[str, set[str]] = {}
    for each in typed():
        for place in (each.page, *(f"{each.page}#{heading}" for heading in each.headings)):
            places.setdefault(place, set()).add(each.text)
    assert set(claims()) <= set(places)
    for place, left in claims().items():
        gone = {but for but in left if not but.endswith(" *")} - places[place]
        assert not gone, f"{place} has {gone} no more"


def test_who_claims_a_page_reads_it() -> None:
    for place, path in claimants().items():
        name = place.partition("#")[0].rpartition("/")[2]
        source = (ROOT / path).read_text("utf-8")
        source += "".join(other.read_text("utf-8") for other in (ROOT / path).parent.glob("*page.py"))  # beside it
        assert name in source or f'"{name.removesuffix(".md")}"' in source, f"{path} claims {place}"


def test_every_command_in_a_block_is_typed_by_a_test() -> None:
    known = executed() | ELSEWHERE.keys()
    missing = [each for each in typed() if each.text not in known]
    assert not missing, "\n".join(f"{each.page}: {each.text}" for each in missing)


def test_every_command_in_running_text_is_executed_too() -> None:
    whole = [*executed(), *ELSEWHERE]
    missing = [each for each in named() if not any(is_part_of(each.text, other) for other in whole)]
    assert not missing, "\n".join(f"{each.page}: {each.text}" for each in missing)


@pytest.mark.parametrize(("command", "place", "words"), [(key, *value) for key, value in ELSEWHERE.items()])
def test_what_is_run_elsewhere_is_written_and_is_run_there(command: str, place: str, words: str) -> None:
    assert any(command == each.text for each in (*typed(), *named())), f"no page has `{command}` any more"
    assert command not in executed(), f"`{command}` is typed by a test: it need not be listed"
    text = (ROOT / place).read_text("utf-8")
    lines = code(text) if place.endswith(".py") else text.splitlines()
    assert any(words in line for line in lines if not line.lstrip().startswith("#")), "a comment runs nothing"


def code(text: str) -> list[str]:
    """The lines of a Python file without what runs nothing: docstrings, and tests that may be left out."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        said = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if said or (isinstance(node, ast.FunctionDef) and _marks(node) & NOT_RUN):
            assert isinstance(node, ast.stmt)
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return lines


def test_words_in_a_docstring_or_in_a_test_that_may_be_left_out_run_nothing() -> None:
    text = """
def test_one():
    '''As `sgfusion watch`
    does.'''
    run("sgfusion watch")

@pytest.mark.skip(reason="why")
def test_two():
    run("sgfusion watch results")
"""
    assert [line for line in code(text) if "sgfusion" in line] == ['    run("sgfusion watch")']


def test_commands_are_told_apart() -> None:
    block = (
        "make demo    # six zones, it's\nawk 'BEGIN {\n  print 1 }' > a.csv\nfor x in 1; do \\\n  echo \"it's\"; done\n"
    )
    assert [normal(each) for each in commands(block)] == [
        "make demo",
        "awk 'BEGIN { print 1 }' > a.csv",
        'for x in 1; do echo "it\'s"; done',
    ]
    assert normal(".venv/bin/sgfusion up x  # why") == "sgfusion up x"
    assert is_part_of("sgfusion up RUN.toml", "sgfusion up mine.toml --out results/x")
    assert not is_part_of("sgfusion up RUN.toml --hosts 3", "sgfusion up mine.toml --out results/x")
    assert not is_part_of("sgfusion watch results/demo", "sgfusion watch --cloud 127.0.0.1:7070")
