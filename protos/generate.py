"""Makes the Python stubs in `sgfusion/proto/` from the `.proto` files beside this script.

::

    python protos/generate.py           write the stubs (this is `make proto`)
    python protos/generate.py --check   write nothing; fail if the committed stubs are not what would be written

The stubs are committed, so that installing SGFusion needs no compiler. A proto's path is its import path, so what the
compiler writes is used as it is.
"""

import argparse
import re
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import version
from pathlib import Path

PROTOS = Path(__file__).resolve().parent
ROOT = PROTOS.parent
# The stubs' folder, below the root and below any other folder that they are generated into.
STUBS = Path("sgfusion", "proto")


def compile_protos(target: Path) -> None:
    """Runs protoc over every proto: messages for all, gRPC stubs only for those that define a service."""
    protos = sorted((PROTOS / STUBS).rglob("*.proto"))
    if not protos:
        raise SystemExit(f"no .proto file in {PROTOS / STUBS}: is the checkout complete?")
    services = [proto for proto in protos if re.search(r"^service\s", proto.read_text(encoding="utf-8"), re.MULTILINE)]
    _protoc(protos, f"--python_out={target}", f"--mypy_out=quiet:{target}")
    if services:
        _protoc(services, f"--grpc_python_out={target}", f"--mypy_grpc_out=quiet:{target}")


def _protoc(protos: list[Path], *outputs: str) -> None:
    # The plugins stand beside this interpreter, which need not be on the PATH.
    scripts = Path(sysconfig.get_path("scripts"))
    plugins = [f"--plugin={name}={scripts / name}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")]
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"--proto_path={PROTOS}",
        *plugins,
        *outputs,
        *map(str, protos),
    ]
    if subprocess.run(command, check=False).returncode:  # noqa: S603 -- our own compiler on our own files
        raise SystemExit("protoc failed; what it says stands above. `pip install -e .[dev]` brings it and its plugins")


def stubs_below(folder: Path) -> dict[Path, bytes]:
    """Every generated file below a folder and its content; `__init__.py` is written by hand and not among them."""
    files = (folder / STUBS).rglob("*_pb2*.py*")
    return {file.relative_to(folder): file.read_bytes() for file in files if file.suffix in {".py", ".pyi"}}


def drift(fresh: dict[Path, bytes], committed: dict[Path, bytes]) -> list[str]:
    """One line a file that is not as it should be, in the order of their paths."""
    lines = []
    for path in sorted(fresh.keys() | committed.keys()):
        if path not in committed:
            lines.append(f"{path} is missing")
        elif path not in fresh:
            lines.append(f"{path} is left over: no proto makes it")
        elif fresh[path] != committed[path]:
            lines.append(f"{path} differs from what its proto makes")
    return lines


def main() -> None:
    """Writes the stubs, or with `--check` compares them."""
    parser = argparse.ArgumentParser(description="Make the Python stubs from the .proto files.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the committed stubs differ")
    check: bool = parser.parse_args().check

    with tempfile.TemporaryDirectory() as folder:
        compile_protos(Path(folder))
        fresh = stubs_below(Path(folder))
    committed = stubs_below(ROOT)
    if check:
        if lines := drift(fresh, committed):
            # Another compiler writes another header, so the reader needs to know which ones were asked.
            tools = ", ".join(f"{tool} {version(tool)}" for tool in ("grpcio-tools", "mypy-protobuf"))
            raise SystemExit("\n".join([*lines, f"run `make proto` and commit what it writes (compared with {tools})"]))
        return
    for path in committed.keys() - fresh.keys():
        (ROOT / path).unlink()
    for path, content in fresh.items():
        (ROOT / path).write_bytes(content)


if __name__ == "__main__":
    main()
