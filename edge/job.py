"""What a zone's devices are asked together, for whoever asks it, and what their answers come to (method 6)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from edge.collection import Question
from sgfusion.evaluation import Score
from sgfusion.fusion import RunningMean
from sgfusion.wire.attending import Answer, Ask, Direction, Evaluated

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ZoneAnswer:
    """What a zone's devices answered together."""

    mean: Vector
    """Of directions; empty for an evaluation."""
    validation: Score
    test: Score
    devices: int
    gradients: int
    loss: float
    left_out: Mapping[str, str]


@dataclass(eq=False)
class Job:
    """Asked once, however many zones want it; the answer is for all of them."""

    ask: Ask
    askers: set[str]
    seconds: float
    """That the most patient of them waits."""
    done: asyncio.Future[ZoneAnswer]
    began: float
    question: Question[Answer] = field(init=False)
    late: bool = False
    waiters: int = 0
    timer: asyncio.TimerHandle | None = None
    mean: RunningMean = field(default_factory=RunningMean)
    gradients: int = 0
    loss: float = 0.0
    validation: list[Score] = field(default_factory=list)
    test: list[Score] = field(default_factory=list)
    diverged: str = ""

    def fold(self, _device: str, answer: Answer) -> None:
        """In the order of device ids."""
        if isinstance(answer, Direction):
            self.mean.add(answer.vector)
            self.gradients += answer.gradients
            self.loss += answer.loss
        elif isinstance(answer, Evaluated):
            self.validation.append(answer.validation)
            self.test.append(answer.test)

    def outcome(self) -> ZoneAnswer:
        """All that was folded; the sum goes."""
        mean = np.empty(0, np.float32) if self.ask.kind == "evaluation" else self.mean.mean()
        self.mean = RunningMean()
        return ZoneAnswer(
            mean,
            _total(self.validation),
            _total(self.test),
            self.question.answered,
            self.gradients,
            self.loss / max(1, self.question.answered),
            dict(self.question.left_out),
        )


def _total(scores: list[Score]) -> Score:
    """Added in the order of device ids, as floats of Python: the simulator does the same."""
    total, count = 0.0, 0
    for score in scores:
        total, count = total + score.total, count + score.count
    return Score(total, count)
