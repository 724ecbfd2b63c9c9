"""A task whose gradients take their time and no processor's: a run that lasts while a test does something to it."""

from pathlib import Path

MODULE = """
import dataclasses
import time

from device.tasks.{task} import Options, make_task as make_quick


def make_task(options):
    task = make_quick(options)

    def losses(output, y):
        time.sleep({seconds})
        return task.losses(output, y)

    return dataclasses.replace(task, losses=losses, stackable=False)


make_task.options = Options
"""


def write_slow_task(folder: Path, seconds: float, task: str = "linear") -> str:
    """A task each gradient of which takes so long; what `task.name` is for commands that are typed in the folder."""
    (folder / "slow.py").write_text(MODULE.format(seconds=seconds, task=task), "utf-8")
    return "slow:make_task"
