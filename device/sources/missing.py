"""A file that is not there: the same words, whoever finds it out first."""

from sgfusion.errors import DataError


def no_such_file(path: str, key: str = "data.path") -> DataError:
    """The error for the file that the run file's `key` names."""
    return DataError(
        f"{key} = {path!r}: there is no such file. Put yours there, or name it in the run file or with --set {key}=FILE"
    )
