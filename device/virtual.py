"""One device's part in one zone: its samples, its private histogram, and its answers (methods 1 and 6).

A device that roams has one of these for each zone that it has samples of, with that zone's samples alone.
"""

import asyncio
import logging
import math
import sys
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from device.answers import Answers
from device.batch import Batch, batch_of
from device.compute import Compute
from device.direction import direction_and_loss, passes_of
from device.learner import Learner
from device.measures import DeviceMeasures
from device.samples import DeviceData, Samples
from device.tasks.task import Task
from sgfusion.errors import GradientError, TaskError
from sgfusion.evaluation import Score
from sgfusion.histogram import label_mass
from sgfusion.privacy import Ledger, scaled_to_one
from sgfusion.reports import Model
from sgfusion.runfile import RunFile, contract
from sgfusion.wire.attending import Answer, Direction, Evaluated, Failed, Hello
from sgfusion.wire.device_rpc import Question
from sgfusion.wire.version import version

Floats = npt.NDArray[np.float64]

_log = logging.getLogger("sgfusion.device")


class Release(NamedTuple):
    """A device's label histogram as it leaves the device, and the ε that all its releases in the zone have cost."""

    histogram: Floats
    spent: float


class VirtualDevice:
    """A device in a zone."""

    def __init__(
        self, run: RunFile, task: Task, data: DeviceData, *, compute: Compute, answers: Answers, release: Release
    ) -> None:
        self.zone, self.device = data.zone, data.device
        self._run = run
        self._compute = compute
        self._train = batch_of(data.train)
        self._validation, self._test = _held_out(data.validation), _held_out(data.test)
        self.hello = Hello(
            data.zone,
            data.device,
            contract(run),
            Model(compute.fingerprint, compute.length, task.metric, len(task.edges) - 1, tuple(map(float, task.edges))),
            release.histogram,
            release.spent,
            version(),
        )
        self._owner = f"{data.zone}/{data.device}"
        self._answers = answers
        self._pending: dict[str, asyncio.Task[Answer]] = {}

    @property
    def measures(self) -> DeviceMeasures:
        """Who is told of its work."""
        return self._compute.measures

    async def answer(self, question: Question) -> Answer:
        """The answer: computed now, from memory, or the one under way if the same is asked again meanwhile."""
        known = self._answers.get(self._owner, question.id)
        if known is not None:
            self.measures.answered(question.kind, "remembered")
            return known
        if question.id not in self._pending:
            self._pending[question.id] = asyncio.create_task(self._computed(question))
        # Shielded: the stream that asked may end, and the next one asks again.
        return await asyncio.shield(self._pending[question.id])

    async def _computed(self, question: Question) -> Answer:
        try:
            answer = await self._compute.run(
                f"{self.zone}/{question.id}", lambda learner: self._timed(learner, question)
            )
        except (GradientError, TaskError) as error:  # of shapes and settings; others may speak of data
            answer = Failed(error.discreet)
        except Exception as error:  # noqa: BLE001 (a task is anybody's code: the edge hears that it failed, no more)
            _log.exception("device %s, zone %s: a question failed", self.device, self.zone)
            answer = Failed(f"the device's task raised {type(error).__name__}")
        finally:
            self._pending.pop(question.id, None)
        if not isinstance(answer, Failed) or answer.diverged:  # what failed for another reason may succeed next time
            self._answers.keep(self._owner, question.id, answer)
        self.measures.answered(question.kind, "failed" if isinstance(answer, Failed) else "computed")
        return answer

    def _timed(self, learner: Learner, question: Question) -> Answer:
        with self.measures.phase(question.kind):
            return self._work(learner, question)

    def _work(self, learner: Learner, question: Question) -> Answer:
        if question.weights is None:
            return Direction(learner.initial(self._run.seed))
        if question.kind == "evaluation":
            validation = learner.evaluate(question.weights, self._validation)
            return Evaluated(Score(*validation), Score(*learner.evaluate(question.weights, self._test)))
        vector, loss = direction_and_loss(learner, question.weights, self._train, self._run.update)
        # Squared errors may overflow where gradients do not: the loss is for people, the vector is what counts.
        told = loss if math.isfinite(loss) else sys.float_info.max
        return Direction(vector, passes_of(self._train, self._run.update), told)


def released(run: RunFile, task: Task, data: DeviceData, state: Path, release: str = "") -> Release:
    """The device's label histogram, entered in its ledger (method 1).

    The same `release` is the same numbers for ever; a device with new data makes a new one, which costs ε again. Each
    zone has a ledger of its own: zones' samples are disjoint, so ε does not add up over them (parallel composition).
    """
    mass = label_mass(data.train.y, task.edges)
    if run.histogram.epsilon == "off":
        return Release(scaled_to_one(mass), 0.0)
    path = state / "ledgers" / quote(data.device, safe="") / f"{quote(data.zone, safe='')}.json"
    ledger = Ledger(path, run.histogram.budget or run.histogram.epsilon)
    name = "/".join(["histogram", run.task.name, data.zone, *([release] if release else [])])
    histogram = ledger.release(name, mass, epsilon=run.histogram.epsilon, adjacency=run.histogram.adjacency)
    return Release(histogram, ledger.spent)


def _held_out(samples: Samples) -> Batch | None:
    return batch_of(samples) if len(samples) else None
