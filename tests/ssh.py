"""Hosts that the documents reach by SSH: a real sshd on the loopback device answers for all of them.

It has keys, a port and a process of its own, and logs in whoever runs the tests. OpenSSH takes its settings from the
home that the system knows, not from $HOME: `bin` has an `ssh` and an `scp` that are given a file of ours.
"""

import os
import pwd
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.pages import free_ports

PATIENCE = 60.0
SERVER = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
AllowUsers {user}
AuthenticationMethods publickey
PermitRootLogin prohibit-password
PermitUserRC no
PidFile none
StrictModes no
UsePAM no
SetEnv HOME="{home}" {environment}
Subsystem sftp internal-sftp -d {home}
"""
"""No mode is looked at: that of /tmp is everybody's. The home is that of the host; scp's paths begin there too."""
CLIENT = """
Host *.example
HostName 127.0.0.1
Port {port}
User {user}
IdentityFile {folder}/user
IdentitiesOnly yes
UserKnownHostsFile {folder}/known
GlobalKnownHostsFile none
BatchMode yes
"""
PASSED_ON = ("PATH", "DOCKER_HOST", "DOCKER_CONFIG")
"""What a command on that host needs of the tests' environment."""


def program(name: str) -> str:
    """`sshd`, `ssh` and what belongs to them; a skip where it is missing, or a failure with SGFUSION_REQUIRE_SSH=1."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        reason = f"no {name} here: Debian's packages `openssh-server` and `openssh-client` have it"
        if os.environ.get("SGFUSION_REQUIRE_SSH") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return found


@contextmanager
def example_hosts(folder: Path, home: Path) -> Iterator[Path]:
    """`cloud.example` and the like, whose users' home is that folder; gives the folder of `ssh` and `scp`, for PATH."""
    sshd, keygen = program("sshd"), program("ssh-keygen")
    clients = {name: program(name) for name in ("ssh", "scp")}
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # as its service would: it goes there before a login
    (folder / "bin").mkdir(parents=True)
    for key in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    (port,) = free_ports(1)
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    passed_on = " ".join(f'{name}="{os.environ[name]}"' for name in PASSED_ON if name in os.environ)
    user = pwd.getpwuid(os.getuid()).pw_name
    for name, settings in (("server", SERVER), ("client", CLIENT)):
        text = settings.format(port=port, folder=folder, user=user, home=home, environment=passed_on)
        (folder / name).write_text(text)
    for name, path in clients.items():
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec {path} -F {shlex.quote(str(folder / "client"))} "$@"\n')
        (folder / "bin" / name).chmod(0o755)
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([sshd, "-D", "-e", "-f", folder / "server"], stdout=log, stderr=log)
    try:
        until = time.monotonic() + PATIENCE
        while "Server listening" not in (said := (folder / "log").read_text()):
            assert server.poll() is None, said
            assert time.monotonic() < until, said
            time.sleep(0.02)  # between two looks
        yield folder / "bin"
    finally:
        server.terminate()
        try:
            server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
            raise
