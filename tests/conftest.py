"""Settings for all tests."""

from hypothesis import settings

# A loaded two-core machine must not fail a property for being slow.
settings.register_profile("sgfusion", deadline=None)
settings.load_profile("sgfusion")
