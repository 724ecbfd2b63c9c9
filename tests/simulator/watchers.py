"""What becomes of work, kept for a test to look at."""

from simulator.work import Work


class Record:
    def __init__(self) -> None:
        self.began: list[str] = []
        self.results: dict[str, str] = {}
        self.failures: dict[str, str] = {}

    def started(self, work: Work) -> None:
        self.began.append(work.name)

    def advanced(self, work: Work, done: int, of: int) -> None:
        assert 0 <= done <= of
        assert work.name not in self.results

    def finished(self, work: Work, result: str) -> None:
        self.results[work.name] = result

    def failed(self, work: Work, reason: str) -> None:
        self.failures[work.name] = reason


def chore(name: str, function: str = "echo", text: str = "", group: str = "g", cost: float = 1.0) -> Work:
    return Work(name, f"tests.simulator.chores:{function}", text or name, group, cost)
