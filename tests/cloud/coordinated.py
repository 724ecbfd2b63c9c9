"""A coordinator under a test's hand, for tests of the cloud's decisions."""

from dataclasses import dataclass, field

from cloud import coordinator
from cloud.coordinator import begin, due, fitted, tick
from cloud.state import Change, Fit, State, first_state
from sgfusion.plan import ZoneState
from tests.cloud.values import MASSES, MODEL, THETA, a_report, a_run


@dataclass
class Run:
    """A coordinator that is told what happens, second by second; its fits end at once."""

    state: State = field(default_factory=lambda: first_state(a_run(), started=0.0))
    now: float = 0.0

    def take(self, change: Change) -> Change:
        self.state = change.state
        return change

    def enrol(self, *names: str) -> None:
        for name in names:
            self.take(coordinator.enrol(self.state, name, f"{name}:1", self.now))

    def histogram(self, name: str, mass: tuple[float, ...] | None = None, devices: int = 3) -> bool:
        mass = MASSES[name] if mass is None else mass
        change, drifted = coordinator.histogram(
            self.state, name, mass, self.now, devices=devices, model=MODEL, initial=THETA
        )
        self.take(change)
        return drifted

    def report(self, name: str, state: ZoneState = ZoneState.TRAINING, round: int = 0, **rest: object) -> Change:
        return self.take(coordinator.report(self.state, a_report(name, state, round, **rest), self.now))

    def arrive(self, *names: str) -> None:
        self.enrol(*names)
        for name in names:
            self.histogram(name)

    def pass_time(self, seconds: float, alive: tuple[str, ...] = ()) -> None:
        """Second by second; those alive are heard of."""
        for _ in range(int(seconds)):
            self.now += 1
            for name in alive:
                self.report(name, self.state.zones[name].said)
            self.take(tick(self.state, self.now))

    def fit(self) -> Fit:
        fit = due(self.state, self.now)
        assert fit is not None
        self.state = begin(self.state, fit)
        self.take(fitted(self.state, fit, "{}", self.now))
        return fit

    def state_of(self, name: str) -> ZoneState:
        return self.state.zones[name].state

    @property
    def idle(self) -> bool:
        return due(self.state, self.now) is None

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.state.events]


def with_run(*overrides: str) -> Run:
    return Run(first_state(a_run(*overrides), started=0.0))
