"""Levels of boost, by which MindSpore leaves out parts of the training on Ascend."""

from __future__ import annotations

from mycelia.engine.base import errors, ignored

BOOST_LEVELS = ("O0", "O1", "O2")
BOOST_MISSING = "no part of the training is left out; boost.GradientFreeze and boost.LessBN do that"


def check_boost_level(subject: str, level) -> None:
    """Warn once of a level that nothing follows.  Errors: ValueError for one that there is not."""
    if level not in BOOST_LEVELS:
        raise errors.value_error(
            subject, f"boost_level must be one of {list(BOOST_LEVELS)}, but got {level!r}"
        )
    if level != "O0":
        ignored.tell(subject, "boost_level", level, BOOST_MISSING)
