import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, make

STUB = Path("sgfusion", "proto", "v1", "tensor_pb2.py")
PROTO = Path("protos", "sgfusion", "proto", "v1", "tensor.proto")


def generate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "protos" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copyfile(ROOT / "Makefile", tmp_path / "Makefile")
    for folder in ("protos", "sgfusion/proto"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def test_committed_stubs_are_what_the_protos_make() -> None:
    check = generate(ROOT, "--check")
    assert check.returncode == 0, check.stderr


def test_an_edited_stub_is_named(copy: Path) -> None:
    (copy / STUB).write_text((copy / STUB).read_text() + "# edited\n")
    assert_refused(copy, f"{STUB} differs")


def test_an_edited_proto_is_noticed(copy: Path) -> None:
    (copy / PROTO).write_text((copy / PROTO).read_text().replace("uint64 offset", "uint64 place"))
    assert_refused(copy, f"{STUB} differs", f"{STUB}i differs")


def test_a_missing_stub_is_named(copy: Path) -> None:
    (copy / STUB).with_suffix(".pyi").unlink()
    assert_refused(copy, f"{STUB}i is missing")


def test_a_stub_without_a_proto_is_named(copy: Path) -> None:
    (copy / STUB).with_name("gone_pb2.py").touch()
    assert_refused(copy, f"{STUB.with_name('gone_pb2.py')} is left over")


def test_a_proto_that_does_not_compile_is_an_error_and_not_a_drift(copy: Path) -> None:
    (copy / PROTO).write_text("nonsense")
    run = generate(copy, "--check")
    assert run.returncode != 0
    assert "protoc failed" in run.stderr


def test_generating_again_repairs_all_of_it(copy: Path) -> None:
    (copy / STUB).unlink()
    (copy / STUB).with_suffix(".pyi").write_text("# edited\n")
    (copy / STUB).with_name("gone_pb2.py").touch()
    done = make("proto", place=copy)
    assert done.returncode == 0, done.stdout
    assert generate(copy, "--check").returncode == 0
    assert (copy / STUB).with_name("__init__.py").exists()


def test_a_proto_with_a_service_gets_grpc_stubs(copy: Path) -> None:
    service = "service EchoService {\n  rpc Echo(stream TensorChunk) returns (stream TensorChunk);\n}\n"
    (copy / PROTO).write_text((copy / PROTO).read_text() + service)
    assert_refused(copy, f"{STUB.with_name('tensor_pb2_grpc.py')} is missing", "tensor_pb2_grpc.pyi is missing")


def assert_refused(root: Path, *lines: str) -> None:
    check = generate(root, "--check")
    assert check.returncode == 1
    for line in (*lines, "run `make proto`"):
        assert line in check.stderr
