"""What `ottla doctor` finds in the cluster: what is wrong, why it matters, what to do."""

from __future__ import annotations

from ottla.console.html import Content, Markup, tag
from ottla.console.parts.times import ago
from ottla.console.parts.words import badge, code, link, notice, told
from ottla.console.sampling.health import ClusterHealth
from ottla.operations.doctor.check import HealthLevel
from ottla.operations.doctor.examination import Diagnosis, Examination

_SHOWN = 50
_OF_PROCESS = "cluster: "  # the subject of most diagnoses, which goes without saying here


def findings(health: ClusterHealth) -> Content:
    """The last examination, and when it was."""
    examination = health.examination
    if health.failure:
        return [notice(["The cluster could not be examined: ", told(health.failure)], "bad"), _again(health)]
    if examination is None:
        return tag("p", "looking at the cluster …", class_="empty")
    return [
        _verdict(examination),
        *map(_diagnosis, examination.sorted()[:_SHOWN]),
        _unmade(examination),
        _again(health),
    ]


def _verdict(examination: Examination) -> Markup:
    problems = sum(each.level is HealthLevel.PROBLEM for each in examination.found)
    warnings = len(examination.found) - problems
    if not examination.found:
        return notice(f"All is well: {len(examination.fine)} checks have found nothing.", "good")
    told_of = [f"{problems} problem{'' if problems == 1 else 's'}"] if problems else []
    told_of += [f"{warnings} warning{'' if warnings == 1 else 's'}"] if warnings else []
    mood = "bad" if problems else "fair"
    return notice(f"{' and '.join(told_of)}; {len(examination.fine)} checks have found nothing.", mood)  # type: ignore[arg-type]


def _diagnosis(found: Diagnosis) -> Markup:
    state = badge("problem", "bad") if found.level is HealthLevel.PROBLEM else badge("warning", "fair")
    return tag(
        "details",
        tag("summary", state, " ", told(found.what.removeprefix(_OF_PROCESS))),
        tag("p", told(found.why)),
        tag("p", "Do: ", told(found.do)),
        tag("p", "check ", code(found.check), class_="hint"),
    )


def _unmade(examination: Examination) -> Content:
    if not examination.unmade:
        return None
    rows = [tag("li", code(each.check), " ", told(each.reason)) for each in examination.unmade]
    return tag(
        "details",
        tag("summary", f"{len(rows)} check{'' if len(rows) == 1 else 's'} could not be made"),
        tag("ul", rows),
    )


def _again(health: ClusterHealth) -> Markup:
    when = "looking again …" if health.is_under_way else f"looked at {ago(health.age_s)} ago"
    return tag("p", when, " · ", link("look again", "/?anew=1"), class_="hint")
