"""`sgfusion compose`: a compose file of a run's whole cluster in containers, for Compose 1.29 and 2.

The file is text made of blocks, so that people can read it: what services share stands once, in anchors. Each service
has a volume of its own with its own keys, which the one-shot service `certs` fills, and a volume of its own for state.
Devices are on the network `field`, the cloud on `backbone`, edges on both: no device reaches the cloud. With published
ports it may, by the address of the host itself, if the engine lets it; there its role is refused.
"""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sgfusion
from console.certs import host_folder
from console.compose_names import PORT, published, service_names
from console.formats import counted
from console.observability import SHOWN, SHOWN_PLAIN, Observed, Profile
from console.yaml_text import flow, listed, quoted
from sgfusion.durable import replace_file
from sgfusion.runfile import RunFile, checked
from sgfusion.runfile_document import PATHS
from sgfusion.wire.identity import Identity, folder_of
from simulator.resolve import devices_of, resolved

PAGE_PORT = 7080
"""Where the cloud serves its page, in its container; and on the host's loopback, unless somebody says otherwise."""
MOST_HOSTS = 8
"""Device hosts if nothing else is said: each is a process with torch, 0.3 GB."""
ROOT = Path(sgfusion.__file__).parents[1]
"""The repository, if this is a working tree: there images are built, and there is what `make cluster` keeps in .env."""
RUN = "/etc/sgfusion/run.toml"
USER = "10001:10001"
"""That of the images."""
_NEEDS_NEIGHBOURS = frozenset({"chi", "neighbours"})


@dataclass(frozen=True)
class Asked:
    """What the command line says besides the run."""

    folder: Path
    """Where the compose file goes; paths in it are from there."""
    hosts: int | None = None
    """Containers that devices share."""
    publish: str | None = None
    """The name or address of this machine that others reach it by, with the first port: for edges on other hosts."""


@dataclass(frozen=True)
class Composed:
    """A compose file and, if one has to go beside it, a run file; both are text."""

    text: str
    run: str | None
    results: str
    """The folder of the results, from that of the compose file."""
    prometheus: tuple[Path, str] | None
    """What Prometheus reads, and where that goes; None where there are no rules and dashboards to go with it."""
    sentence: str
    """What is in it."""


def compose(given: RunFile, run_file: Path | None, asked: Asked) -> Composed:
    """The compose file of a run. A run file goes beside it if there is none that says the same, or if that says too
    little for containers: a cloud must know the zones and where they lie, and files are elsewhere in there.
    """
    run, files = resolved(given), _files(given)
    placed = given.zones.places is not None or not run.zones.places
    enough = not files and placed and given.zones.names == run.zones.names
    if run.sampler.kind in _NEEDS_NEIGHBOURS:
        enough = enough and given.zones == run.zones
    beside = run_file is None or not enough
    mounted = asked.folder / "run.toml" if run_file is None or beside else run_file
    made = _Compose(run, devices_of(run), files, mounted, asked)
    inside = _inside(run, files).to_toml() if beside else None
    return Composed(made.text(), inside, made.results, made.profile.prometheus, made.sentence())


def write_compose(given: RunFile, run_file: Path | None, asked: Asked) -> str:
    """Write it into its folder; what to say of it. The results' folder is made here, as ours: Docker would make it as
    root's.
    """
    made = compose(given, run_file, asked)
    if made.run is not None:
        replace_file(asked.folder / "run.toml", made.run.encode())
    if made.prometheus is not None:
        path, text = made.prometheus
        replace_file(path, text.encode())
    replace_file(asked.folder / "docker-compose.yml", made.text.encode())
    (asked.folder / made.results).mkdir(parents=True, exist_ok=True)
    return f"{asked.folder / 'docker-compose.yml'}: {made.sentence}. Next, in that folder: {_next(asked.folder)}"


def _next(folder: Path) -> str:
    """What to type there. Compose reads the .env beside the compose file and no other."""
    if (ROOT / ".env").exists() and not (folder / ".env").exists():
        return f"cp {shlex.quote(_from(folder, ROOT / '.env'))} . && docker-compose up"
    return "docker-compose up"


def _files(run: RunFile) -> dict[tuple[str, str], Path]:
    """The files that the run names, by section and key."""
    document = run.model_dump(by_alias=True)
    named = {(section, key): document[section].get(key) for section, key in PATHS}
    return {where: Path(path) for where, path in named.items() if isinstance(path, str)}


def _inside(run: RunFile, files: Mapping[tuple[str, str], Path]) -> RunFile:
    """The run as containers read it: its files are where they are mounted."""
    document = run.model_dump(by_alias=True, exclude_none=True)
    for (section, key), path in files.items():
        document[section][key] = _mount(section, path)
    return checked(RunFile, document, f"run {run.name!r} in containers")


def _mount(section: str, path: Path) -> str:
    return f"/data/{section}/{path.name}"


class _Compose:
    """The blocks of one compose file."""

    def __init__(
        self,
        run: RunFile,
        devices: Mapping[str, Sequence[str]],
        files: Mapping[tuple[str, str], Path],
        run_file: Path,
        asked: Asked,
    ) -> None:
        self._run, self._devices, self._files, self._asked = run, devices, files, asked
        self._run_file = run_file
        self._zones = list(devices)
        self._names = service_names(self._zones)
        hosts = min(asked.hosts or MOST_HOSTS, len(self._zones))
        self._hosts = [self._zones[number::hosts] for number in range(hosts)]
        self._host, self._first_port = published(asked.publish, len(self._zones))
        edges = [(f"edge-{self._names[zone]}", zone) for zone in self._zones]
        read = Observed(run.name, self._shown(run_file), edges, [f"devices-{self._names[z[0]]}" for z in self._hosts])
        self.profile = Profile(ROOT, asked.folder, read, self._shown, published=self._host is not None)

    def text(self) -> str:
        """All of it."""
        edges = "".join(map(self._edge, self._zones))
        hosts = "".join(map(self._device_host, self._hosts))
        services = f"services:\n{self._certs()}{self._cloud()}{edges}{hosts}{self._console()}{self.profile.services}"
        return f"{self._head()}{self._shared()}{services}{self._networks()}{self._volumes()}"

    def sentence(self) -> str:
        """What is in it."""
        count = counted(sum(map(len, self._devices.values())), "device")
        return f"a cloud, {counted(len(self._zones), 'edge')}, {count} in {counted(len(self._hosts), 'container')}"

    @property
    def results(self) -> str:
        """Where they come to, from the compose file's folder; below / it is the same in containers."""
        return f"results/{self._run.name}"

    # Blocks

    def _head(self) -> str:
        shown = self._shown(self._run_file)
        builds = (
            "# `make images` comes first, in the repository: else `up` takes pip's own torch, with gigabytes of CUDA.\n"
        )
        first = builds if _builds() else ""
        return f"""\
# The cluster of {shown} in containers, by `sgfusion compose`, which writes one for any run file.
#
#   docker-compose up                       train; results come to {self.results}, beside this file
#   docker-compose run --rm console status  how it stands
#   docker-compose exec cloud cat /state/page-token    the token of its page, http://127.0.0.1:{PAGE_PORT}/?token=...
#   docker-compose down                     stop; `up` goes on where it was. With -v, state and keys go too
#
{first}# Works with Compose 1.29 and 2. Settings, from the environment or a file .env beside this one:
#   SGFUSION_TAG         of the images (latest)
#   SGFUSION_BASE_IMAGE  what they are built on; deploy/base-image makes one where there is no registry
#   SGFUSION_EXTRAS      experiments: devices also read tables, Parquet, H3 cells, polygons and real flights
#   SGFUSION_PAGE_PORT   of this machine, where the cloud's page is ({PAGE_PORT})
#   SGFUSION_USER        who owns the results, as $(id -u):$(id -g) ({USER})
{self.profile.settings}
"""

    def _shared(self) -> str:
        return f"""\
x-service: &service
  init: true # reaps and passes on signals, also before Python is up
  read_only: true
  tmpfs: ["/tmp:size=64m,mode=1777"]
  cap_drop: [ALL]
  security_opt: ["no-new-privileges:true"]
  restart: unless-stopped
  stop_grace_period: 8s
  pids_limit: 512
  logging: {{driver: json-file, options: {{max-size: 10m, max-file: "3"}}}}

x-cloud: &cloud
  <<: *service
{self._image("cloud")}  mem_limit: 1g
  cpus: 1.0

x-edge: &edge
  <<: *service
{self._image("edge")}  mem_limit: 512m
  cpus: 1.0

x-devices: &devices
  <<: *service
{self._image("device")}  mem_limit: 2g
  cpus: 1.0

"""

    def _image(self, kind: str) -> str:
        image = f"  image: sgfusion/{kind}:${{SGFUSION_TAG:-latest}}\n"
        if not _builds():
            return image
        # A name alone is the environment's value, if there is one.
        settings = ["BASE_IMAGE=${SGFUSION_BASE_IMAGE:-python:3.11-slim-bookworm}", "PIP_INDEX_URL"]
        if kind == "device":
            settings += ["PIP_EXTRA_INDEX_URL", "DEVICE_EXTRAS=${SGFUSION_EXTRAS:-device}"]
        where = f"context: {quoted(self._shown(ROOT))}\n    dockerfile: deploy/Dockerfile\n    target: {kind}"
        return f"{image}  build:\n    {where}\n    args: {json.dumps(settings)}\n"

    def _certs(self) -> str:
        places = [
            "authority:/keys",
            *(f"{self._keys(name)}:/keys/{folder}" for name, folder in self._key_folders().items()),
        ]
        hosts = "".join(f" \\\n          --host {','.join(zones)}" for zones in self._hosts)
        return f"""\
  # A CA and everybody's keys, each in a volume of its own. The CA's own key is in `authority`, which nobody else has.
  certs:
    <<: *devices
    restart: "no"
    user: "0:0" # to give the others what is theirs
    cap_add: [CHOWN, DAC_OVERRIDE, FOWNER]
    network_mode: none
    entrypoint: [sh, -ec]
    command:
      - |
        sgfusion certs {RUN} --out /keys{hosts}
        chown -R {USER} /keys/*/{self.profile.chown}
        chown -R ${{SGFUSION_USER:-{USER}}} /keys/operator /{self.results}
    volumes:
{listed([*places, f"./{self.results}:/{self.results}", *self._reads(data=True)])}

"""

    def _cloud(self) -> str:
        command = ["cloud", RUN, "--listen", f"0.0.0.0:{PORT}", "--state", "/state", "--certs", "/keys"]
        command += SHOWN
        command += ["--page", f"0.0.0.0:{PAGE_PORT}", "--page-plain"]  # plain: it goes no further than this machine
        published = "" if self._host is None else f'"{self._first_port}:{PORT}", '
        ports = f'[{published}"127.0.0.1:${{SGFUSION_PAGE_PORT:-{PAGE_PORT}}}:{PAGE_PORT}"]'
        return f"""\
  cloud:
    <<: *cloud
    command: {flow(command)}
    ports: {ports}
    volumes:
{listed(["cloud:/state", f"{self._keys('cloud')}:/keys:ro", *self._reads(data=False)])}
    networks: [{", ".join(["backbone", "page", *self.profile.of_cloud])}]
    depends_on:
      certs: {{condition: service_completed_successfully}}

"""

    def _edge(self, zone: str) -> str:
        name = self._names[zone]
        number = self._zones.index(zone) + 1
        advertised = f"edge-{name}:{PORT}" if self._host is None else f"{self._host}:{self._first_port + number}"
        command = ["edge", "--zone", zone, "--devices", f"{len(self._devices[zone])}", "--cloud", f"cloud:{PORT}"]
        command += ["--listen", f"0.0.0.0:{PORT}", "--advertise", advertised, "--state", "/state", "--certs", "/keys"]
        command += SHOWN
        return f"""\
  edge-{name}:
    <<: *edge
    command: {flow(command)}
{self._ports(number)}    volumes: {flow([f"edge-{name}:/state", f"{self._keys(f'edge-{name}')}:/keys:ro"])}
    networks: [backbone, field]
    depends_on:
      certs: {{condition: service_completed_successfully}}
      cloud: {{condition: service_healthy}}

"""

    def _device_host(self, zones: Sequence[str]) -> str:
        name = f"devices-{self._names[zones[0]]}"
        command = ["device", RUN]
        for zone in zones:
            command += ["--zone", zone, "--edge", f"{zone}=edge-{self._names[zone]}:{PORT}"]
        command += ["--threads", "1", "--state", "/state", "--certs", "/keys", *SHOWN_PLAIN]
        edges = "\n".join(f"      edge-{self._names[zone]}: {{condition: service_healthy}}" for zone in zones)
        count = sum(len(self._devices[zone]) for zone in zones)
        return f"""\
  {name}: # {count} devices
    <<: *devices
    command: {flow(command)}
    volumes:
{listed([f"{name}:/state", f"{self._keys(name)}:/keys:ro", *self._reads(data=True)])}
    networks: [field]
    depends_on:
      certs: {{condition: service_completed_successfully}}
{edges}

"""

    def _console(self) -> str:
        return f"""\
  # Watches the run to its end and writes the results; `docker-compose run console ...` is the operator's hand.
  console:
    <<: *devices
    restart: "no"
    user: "${{SGFUSION_USER:-{USER}}}"
    working_dir: /
    environment: {{SGFUSION_CLOUD: "cloud:{PORT}", SGFUSION_CERTS: /keys}}
    command: {flow(["follow", RUN, "--out", self.results])}
    volumes:
{listed([f"{self._keys('operator')}:/keys:ro", f"./{self.results}:/{self.results}", *self._reads(data=True)])}
    networks: [backbone]
    depends_on:
      certs: {{condition: service_completed_successfully}}
      cloud: {{condition: service_healthy}}

"""

    def _networks(self) -> str:
        outside = "internal: true" if self._host is None else "internal: false # edges elsewhere are reached through it"
        return f"""\
networks:
  field: {{internal: true}} # devices and edges
  backbone: # edges, the cloud, the operator
    {outside}
  page: # the cloud alone, for an internal network publishes nothing. Not masked: from here nothing answers it outside
    driver_opts: {{com.docker.network.bridge.enable_ip_masquerade: "false"}}
{self.profile.network}
"""

    def _volumes(self) -> str:
        states = ["cloud", *(f"edge-{self._names[zone]}" for zone in self._zones)]
        states += [f"devices-{self._names[zones[0]]}" for zones in self._hosts]
        states += self.profile.states
        ledgers = "privacy ledgers: without them devices release again, ε unseen"
        lines = [f"  {name}:{f' # {ledgers}' if name.startswith('devices-') else ''}" for name in states]
        return (
            "\n".join(["volumes:", *lines, "  authority:", *(f"  {self._keys(n)}:" for n in self._key_folders())])
            + "\n"
        )

    # Parts

    def _keys(self, service: str) -> str:
        return f"keys-{service}"

    def _key_folders(self) -> dict[str, str]:
        """By service, the folder of its keys below that of all keys."""
        edges = {f"edge-{self._names[zone]}": str(folder_of(Path(), Identity("edge", zone))) for zone in self._zones}
        hosts = {f"devices-{self._names[zones[0]]}": host_folder(zones) for zones in self._hosts}
        return {"cloud": "cloud", "operator": "operator", **self.profile.keys, **edges, **hosts}

    def _reads(self, *, data: bool) -> list[str]:
        """The run file, and the files that it names; a cloud has no data, only the tree that a run may give it."""
        files = {where: path for where, path in self._files.items() if data or where[0] == "hrg"}
        found = [f"{self._shown(self._run_file)}:{RUN}:ro"]
        return found + [f"{self._shown(path)}:{_mount(where[0], path)}:ro" for where, path in files.items()]

    def _ports(self, number: int) -> str:
        return "" if self._host is None else f'    ports: ["{self._first_port + number}:{PORT}"]\n'

    def _shown(self, path: Path) -> str:
        """The path from the compose file's folder; Compose takes what has no dot in front for a volume's name."""
        found = _from(self._asked.folder, path)
        return found if found.startswith(".") else f"./{found}"


def _builds() -> bool:
    """Whether images can be built: in a working tree. Where SGFusion is installed, images are all there is."""
    return (ROOT / "deploy" / "Dockerfile").exists()


def _from(folder: Path, path: Path) -> str:
    return os.path.relpath(path.absolute(), folder.absolute())
