"""What docs/kubernetes.md has people type, typed. There is no cluster here: a real kubectl takes each command, reads
its files, renders its overlay, and comes as far as the API server, which it cannot reach. What is measured is small.
"""

import shutil
from pathlib import Path

import pytest

from tests.kubernetes.rendering import FOLDER, ROOT, render
from tests.pages import PATIENCE, script, type_in, types

PAGE = "docs/kubernetes.md"
NOBODY = """apiVersion: v1
kind: Config
clusters: [{name: nobody, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: nobody, context: {cluster: nobody, user: nobody}}]
current-context: nobody
users: [{name: nobody, user: {}}]
"""
AS_FAR_AS_THE_SERVER = """
kubectl() {
  local said
  if said=$(command kubectl "$@" 2>&1); then echo "reached a cluster: $said"; return 1; fi
  echo "$said"
  grep -Eq '127.0.0.1:1(:| was) .*refused' <<< "$said"
}
export KUBECONFIG=$PWD/kubeconfig
"""


@types("docs/kubernetes.md")
@pytest.mark.timeout(PATIENCE + 30)
def test_every_command_is_typed(tmp_path: Path) -> None:
    render(FOLDER / "overlays" / "four-zones")  # skipped, or failed, without a kubectl that renders
    shutil.copytree(ROOT / "deploy" / "kubernetes", tmp_path / "deploy" / "kubernetes")
    shutil.copyfile(ROOT / "experiments" / "containers.toml", tmp_path / "RUN.toml")
    (tmp_path / "kubeconfig").write_text(NOBODY, "utf-8")
    certs = "python deploy/kubernetes/manifests.py certs deploy/kubernetes/overlays/four-zones/run.toml\n"
    changes = {
        certs: f'made=$({certs.strip()})\necho "$made"\neval "$made"\n',  # "type what it prints"
        "tree 100 1000 2000 4000": "tree 20",
        "report 100 1000 10000": "report 20",
        "edge 3 100 1000": "edge 3",
    }
    # In running text; two of them as what takes all volumes.
    more = "kubectl rollout restart statefulset\n"
    more += "kubectl delete -k deploy/kubernetes/overlays/four-zones\nkubectl delete namespace sgfusion-four-zones\n"
    printed = type_in(AS_FAR_AS_THE_SERVER + script(PAGE) + more, tmp_path, changes)
    assert "sgfusion certs" in printed
    assert (tmp_path / "certs" / "devices-lubelskie").is_dir()
    assert (tmp_path / "deploy" / "kubernetes" / "overlays" / "mine" / "kustomization.yaml").exists()
    assert printed.count(" refused") >= (script(PAGE) + more).count("kubectl ")
