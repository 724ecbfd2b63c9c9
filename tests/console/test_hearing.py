"""Whether a cloud that is watched answers, decided without one."""

from console.hearing import QUIET, Hearing


def test_a_cloud_is_asked_only_when_it_is_quiet() -> None:
    hearing = Hearing(10.0)
    assert not hearing.quiet(10.0 + QUIET - 0.1)
    assert hearing.quiet(10.0 + QUIET)
    hearing.heard(13.0)
    assert not hearing.quiet(14.0)
    assert (hearing.words(14.0), hearing.news()) == ("", []), "a calm run is no news"


def test_that_it_does_not_answer_and_that_it_does_again_are_each_told_once() -> None:
    hearing = Hearing(10.0)
    hearing.unanswered(15.2)
    hearing.unanswered(18.4)
    assert hearing.news() == ["the cloud does not answer: nothing was heard of it for 5 s"]
    assert hearing.words(22.0) == "the cloud does not answer: nothing was heard of it for 12 s"
    assert hearing.news() == []
    hearing.heard(24.0)
    hearing.heard(24.1)
    assert hearing.news() == ["the cloud answers again: nothing was heard of it for 14 s"]
    assert hearing.words(24.2) == ""


def test_one_that_was_quiet_and_answers_when_asked_is_well() -> None:
    """This process stood still, say: Ctrl-Z and, a minute later, fg."""
    hearing = Hearing(10.0)
    assert hearing.quiet(70.0)
    hearing.heard(70.1)
    assert hearing.news() == []
