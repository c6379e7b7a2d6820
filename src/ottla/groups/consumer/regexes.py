"""Subscriptions by regular expression: when they are matched against the topics, and what follows.

Matching is left to a command of its own, right after the heartbeat that asks for it; it covers all expressions of the
group, so that several changes lead to one new epoch. It is done for expressions that are new, when topics came or went,
and once in a while; at most every ten seconds. Where it takes long, it goes on with the next turn of the coordinator's
timers, and what came of it is written down at the end.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.consumer.draft import ConsumerDraft
from ottla.groups.consumer.entries import ResolvedRegex, regex_entry
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.modern.metadata import metadata_hash
from ottla.groups.modern.topics_changed import MetadataSeen
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.re2.match import Search, pattern_of
from ottla.model.re2.nodes import RegexError
from ottla.model.settings.groups import GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS

_REFRESH_MS_MIN = 10_000


class RegexesSeen(NamedTuple):
    """A note: the group's regular expressions are being matched against the topics as they are, or were so."""

    group_id: str
    begun: bool  # what changes from now on is not seen
    ended: bool


class RegexChange(NamedTuple):
    """Whether a member subscribes to another expression, and whether it is known what that one means."""

    updated: bool
    resolved: bool


_NO_CHANGE = RegexChange(updated=False, resolved=False)


def update_regexes(draft: ConsumerDraft, old: ConsumerMember, new: ConsumerMember) -> RegexChange:
    """A member's heartbeat: takes up a changed expression, and has the group's matched if that is due."""
    group = draft.group
    counts = group.subscribed_regexes() if group.regexes or new.subscribed_regex or old.subscribed_regex else {}
    change, is_new = _NO_CHANGE, False
    if new.subscribed_regex != old.subscribed_regex:
        if old.subscribed_regex and counts.get(old.subscribed_regex) == 1:
            draft.records.append(regex_entry(group.group_id, old.subscribed_regex, None))
        is_new = bool(new.subscribed_regex) and new.subscribed_regex not in counts
        if is_new:
            check_regex(new.subscribed_regex)
        resolved = new.subscribed_regex in group.regexes if new.subscribed_regex else bool(old.subscribed_regex)
        change = RegexChange(updated=True, resolved=resolved and not is_new)
    if counts or is_new:
        _refresh_if_due(draft, _wanted(counts, old, new), is_new=is_new)
    return change


def check_regex(regex: str) -> None:
    try:
        pattern_of(regex)
    except RegexError as error:
        raise ApiError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from error


def _wanted(counts: dict[str, int], old: ConsumerMember, new: ConsumerMember) -> list[str]:
    """All expressions of the group with this member's change."""
    after = dict(counts)
    if new.subscribed_regex != old.subscribed_regex:
        after[old.subscribed_regex] = after.get(old.subscribed_regex, 0) - 1
        after[new.subscribed_regex] = after.get(new.subscribed_regex, 0) + 1
    return [regex for regex, count in after.items() if regex and count > 0]


def _refresh_if_due(draft: ConsumerDraft, wanted: list[str], *, is_new: bool) -> None:
    group = draft.group
    if group.regexes_matching:
        return
    last_ms = next((each.resolved_ms for each in group.regexes.values()), None)
    # As with the assignments: a time that is yet to come says nothing, the clock was set back since.
    if last_ms is not None and last_ms <= draft.now_ms <= last_ms + _REFRESH_MS_MIN:
        return
    interval_ms = draft.view.setting(GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS)
    is_old = last_ms is None or not last_ms <= draft.now_ms <= last_ms + interval_ms
    if wanted and (is_new or is_old or group.regexes_stale or len(wanted) != len(group.regexes)):
        draft.after(("regexes", group.group_id), 0, ResolveRegexes(group.group_id))


Found = dict[str, frozenset[str]]


class Matching:
    """Expressions that are matched against names, some milliseconds' worth at a time."""

    def __init__(self, regexes: list[str], names: list[str]) -> None:
        self._steps = _match(regexes, names)
        self._found: Found | None = None

    def go_on(self) -> Found | None:
        """What was found, when all of it was."""
        if self._found is None:
            try:
                next(self._steps)
            except StopIteration as end:
                self._found = end.value
        return self._found


@dataclass(frozen=True, slots=True)
class ResolveRegexes:
    """Matches all expressions of the group against all topics; the group's epoch grows if that brings news."""

    group_id: str
    matching: Matching | None = None  # what has begun, and is not done

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, ConsumerGroup):
            return Result()
        draft = ConsumerDraft(view, group, now_ms)
        matching = self.matching or Matching(list(group.subscribed_regexes()), list(view.topics.names()))
        found = matching.go_on()
        draft.notes.append(RegexesSeen(group.group_id, begun=self.matching is None, ended=found is not None))
        if found is None:
            draft.after(("regexes", group.group_id), 0, ResolveRegexes(group.group_id, matching))
        else:
            self._write(draft, found)
        return draft.result()

    def _write(self, draft: ConsumerDraft, found: Found) -> None:
        """Of the expressions that there are now; one that is new is matched after the next heartbeat."""
        group, view = draft.group, draft.view
        after = group.scratch()
        for regex in group.subscribed_regexes():
            if regex in found:
                after.put_regex(regex, ResolvedRegex(found[regex], draft.now_ms))
                draft.records.append(regex_entry(group.group_id, regex, after.regexes[regex]))
        digest = metadata_hash(after.names_with(group.members), view.topics)
        news = any(_topics(group, regex) != _topics(after, regex) for regex in after.regexes)
        news = news or any(_has_too_much(after, member, view) for member in group.members.values())
        if news or digest != group.metadata_hash:
            draft.bump(digest)
            draft.notes.append(MetadataSeen(group.group_id))


def _match(regexes: list[str], names: list[str]) -> Generator[None, None, Found]:
    """None at all of an expression that takes too much work, so that one group does not hold up all."""
    found: Found = {}
    for regex in regexes:
        try:
            found[regex] = yield from Search(pattern_of(regex)).matching(names)
        except RegexError:
            found[regex] = frozenset()
    return found


def _topics(group: ConsumerGroup, regex: str) -> frozenset[str]:
    resolved = group.regexes.get(regex)
    return frozenset() if resolved is None else resolved.topics


def _has_too_much(group: ConsumerGroup, member: ConsumerMember, view: GroupsView) -> bool:
    """Whether its target is of an expression of before; what that one meant and this one does not is for others."""
    if member.subscribed_regex not in group.regexes:
        return False
    target = group.target_of(member.member_id)
    names = (info.name for topic_id in target if (info := view.topics.by_id(topic_id)) is not None)
    return not group.topics_of(member).issuperset(names)


def note_seen(view: GroupsView, note: RegexesSeen) -> None:
    group = view.state.groups.get(note.group_id)
    if isinstance(group, ConsumerGroup):
        group.regexes_stale = group.regexes_stale and not note.begun
        group.regexes_matching = not note.ended
