"""Every error that SGFusion raises, under one root.

A message names the offending value and says what to do about it.

::

    SGFusionError
    ├── InputError (also a ValueError)     a value handed in is wrong; nothing was changed
    │   ├── LabelError                     labels or bin edges (method 1)
    │   ├── HistogramError                 a zone's histogram (method 2)
    │   ├── PrivacyError                   ε, adjacency, or mass that no sample can have given (method 1)
    │   ├── DistanceError                  a distance matrix or a metric (method 3)
    │   ├── DendrogramError                merges or JSON that are not a tree over the zones (method 3)
    │   ├── ScheduleError                  settings of the Markov chain (method 3)
    │   ├── SamplerError                   probabilities, counts, a zone or a round (methods 5 and 8)
    │   ├── GradientError                  a vector of the wrong size or with NaN (methods 6 and 7)
    │   ├── StepError                      settings or state of an optimiser (method 7)
    │   ├── CheckpointError                bytes that are not a zone's state
    │   ├── TensorError                    chunks that are not a tensor
    │   ├── TaskError                      a task, its options, or weights that are not its model's
    │   ├── DataError                      a data source, a column, a file or a zone that it lacks
    │   └── RunFileError                   a run file, a suite file or an override
    ├── LedgerError                        the device's privacy ledger refuses; nothing was released
    │   ├── BudgetExceededError            the release would cost more ε than is left
    │   ├── LedgerConflictError            the name stands for a release made with other settings
    │   └── LedgerCorruptError             the file is not a ledger, or was altered
    ├── StoreError                         the cloud's memory: another's, another run's, or damaged
    ├── RoundError                         an answer that the round did not ask for, or too early an end
    ├── PeerUnavailableError               a zone gave no gradient; the round goes on without it
    ├── DivergedError                      a zone's own gradient or weights are no longer finite
    ├── IdentityError                      who calls may not, or does not say who it is
    ├── ContractError                      two sides have different runs or models
    ├── NotEnrolledError                   the cloud does not know the zone, or it has left: enrol it
    ├── UnavailableError                   not reachable, or not ready yet: try again
    │   ├── SilentError                    it takes connections and says nothing: frozen, or its host is gone
    │   └── UnprovenError                  who answers there is not whom we dialled: a person has to look
    ├── DeadlineError                      no answer in time
    ├── UnknownAskError                    an answer to what was not asked
    ├── ProtocolError                      a message out of order, or that makes no sense
    └── MissingDependencyError (also an ImportError)   an optional package is not installed
"""


class SGFusionError(Exception):
    """The root: catch this to catch everything of ours.

    `shows` is what the message repeats of data: who caused the error should see it, a log should not.
    """

    def __init__(self, *words: object, shows: str = "") -> None:
        super().__init__(*words)
        self.shows = shows

    @property
    def discreet(self) -> str:
        """The message without data, for logs."""
        return str(self).replace(self.shows, "…") if self.shows else str(self)


class InputError(SGFusionError, ValueError):
    """A value handed in is wrong; nothing was changed."""


class LabelError(InputError):
    """Labels or bin edges cannot be counted (method 1)."""


class HistogramError(InputError):
    """A zone's histogram has NaN, negative mass or the wrong length (method 2)."""


class PrivacyError(InputError):
    """ε, an adjacency or a mass for which no guarantee can be given (method 1)."""


class DistanceError(InputError):
    """A distance matrix or a metric is not usable (method 3)."""


class DendrogramError(InputError):
    """Merges or JSON that are not a binary tree with every zone as a leaf once (method 3)."""


class ScheduleError(InputError):
    """Settings of the Markov chain that make no chain (method 3)."""


class SamplerError(InputError):
    """Probabilities, counts, a zone or a round that no draw can be made from (methods 5 and 8)."""


class GradientError(InputError):
    """A gradient or weights of the wrong size, or not finite (methods 6 and 7)."""


class StepError(InputError):
    """Settings or state of an optimiser that make no step (method 7)."""


class CheckpointError(InputError):
    """Bytes that are not the state of a zone, or that were altered."""


class TensorError(InputError):
    """Chunks that are not a tensor: wrong size, dtype, order or fingerprint."""


class TaskError(InputError):
    """A task that is not there, options that it does not take, or samples and weights that are not its model's."""


class DataError(InputError):
    """A data source that cannot give what the run asks for; the message names the file, the column or the zone."""


class RunFileError(InputError):
    """A run file, a suite file or an override is refused; the message names key, value and what is allowed."""


class LedgerError(SGFusionError):
    """The device's privacy ledger refuses; nothing was released."""


class BudgetExceededError(LedgerError):
    """The release would cost more ε than the budget has left."""


class LedgerConflictError(LedgerError):
    """The name stands for a release that was made with other settings."""


class LedgerCorruptError(LedgerError):
    """The ledger's file is not a ledger, or was altered."""


class StoreError(SGFusionError):
    """The cloud's memory cannot be used: it is another cloud's, of another run or version, or damaged."""


class RoundError(SGFusionError):
    """An answer that the round did not ask for, or an end before all answers are in."""


class PeerUnavailableError(SGFusionError):
    """A zone gave no gradient this round: left out and counted, the round goes on (architecture, Faults)."""


class DivergedError(SGFusionError):
    """A zone's own gradient or weights are no longer finite: there is no step to take."""


class IdentityError(SGFusionError):
    """Who calls may not, or does not say who it is (architecture, Identity)."""


class ContractError(SGFusionError):
    """Two sides have different runs or models: what one computes is of no use to the other."""


class NotEnrolledError(SGFusionError):
    """The cloud does not know the zone, or it has left the run: its edge enrols it anew."""


class UnavailableError(SGFusionError):
    """Not reachable, or not ready yet: the same call may succeed later."""


class SilentError(UnavailableError):
    """It takes connections and says nothing: its process is frozen, say, or its host is gone."""


class UnprovenError(UnavailableError):
    """Who answers there does not prove to be whom we dialled; services try on, as a person may mend it."""


class DeadlineError(SGFusionError):
    """No answer in time."""


class UnknownAskError(SGFusionError):
    """An answer to what was not asked."""


class ProtocolError(SGFusionError):
    """A message out of order, or that makes no sense where it stands."""


class MissingDependencyError(SGFusionError, ImportError):
    """An optional package is not installed; the message says which extra brings it."""


def brought_by(extra: str = "") -> str:
    """What to type for an extra's packages, or for those that every tier has: SGFusion is on no package index."""
    what = f"'.[{extra}]'" if extra else "."
    return f"in the repository type make install, or pip install {what}"
