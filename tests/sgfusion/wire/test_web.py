"""Which Host is this machine, and TLS; over sockets: tests/cloud/page/test_access.py and test_metrics.py."""

import ssl
from pathlib import Path

import pytest

from sgfusion.wire.identity import folder_of
from sgfusion.wire.web import names_this_machine, server_context
from tests.cluster.keys import CLOUD, keys_in


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9:7080", "localhost", "LocalHost:1", "localhost:", "[::1]", "[::1]:9464"]
)
def test_names_of_this_machine(host: str) -> None:
    assert names_this_machine(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        ":9464",
        "::1",
        "[]",
        "[localhost]",
        "0.0.0.0:7080",
        "[::]:9464",
        "192.0.2.1:9464",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:9464",
        "127.0.0.1:80.evil.example",
        "127.0.0.1:80@evil.example",
        "evil.example@127.0.0.1",
        "[::1].evil.example",
        "localhost\n",
        "localhost, evil.example",
        "localhost:٣",
    ],
)
def test_names_of_others(host: str) -> None:
    assert not names_this_machine(host)


def test_no_old_tls_and_only_our_ca(tmp_path: Path) -> None:
    keys_in(tmp_path, (CLOUD,))
    for callers in (ssl.CERT_OPTIONAL, ssl.CERT_REQUIRED):
        context = server_context(folder_of(tmp_path, CLOUD), callers=callers)
        assert context.verify_mode is callers
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2
        (ca,) = context.get_ca_certs(binary_form=True)
        assert ssl.DER_cert_to_PEM_cert(ca).encode() == (folder_of(tmp_path, CLOUD) / "ca.crt").read_bytes()
