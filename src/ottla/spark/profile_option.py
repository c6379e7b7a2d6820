"""The option `profile`: the options of a cluster and its registry, from the profiles of the user who runs the driver.

Rules:
- It is read where Spark plans, anew each time, so no secret of a profile is an option that Spark knows.
- An option that is given counts, and not that of the profile.
"""

from collections.abc import Mapping

from pyspark.sql.datasource import CaseInsensitiveDict

from ottla.client.profiles import Profile, ProfileError
from ottla.client.security.registry_settings import PREFIX
from ottla.spark.option_values import OptionError
from ottla.spark.options import KAFKA_PREFIX, PROFILE, SCHEMA_REGISTRY_URL


def with_profile(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options with those of their profile, or as they are if they name none. Raises OptionError."""
    options = CaseInsensitiveDict(dict(given))
    name = options.pop(PROFILE.name, None)
    if name is None:
        return given
    try:
        own = options_of(Profile.named(name))
    except ProfileError as error:
        raise OptionError(f"option {PROFILE.name}: {error}; {error.hint}") from None
    return CaseInsensitiveDict({**own, **options})


def options_of(profile: Profile) -> dict[str, str]:
    """The options of a source or sink that a profile stands for."""
    addresses = {f"{KAFKA_PREFIX}bootstrap.servers": profile.bootstrap, SCHEMA_REGISTRY_URL.name: profile.registry}
    return {
        **{name: text for name, text in addresses.items() if text is not None},
        **{f"{KAFKA_PREFIX}{name}": text for name, text in profile.security.items()},
        **{PREFIX + name.removeprefix(PREFIX): text for name, text in profile.registry_security.items()},
    }
