"""Subscriptions by regular expression: when they are matched against the topics, and the consequences.

Matching is done by a separate command right after the heartbeat that requires it; it covers all expressions of the
group, so that several changes lead to one new epoch. It is done for new expressions, when topics were created or
deleted, and periodically; at most every ten seconds. If it takes long it continues in the next turn of the
coordinator's timers, and the result is written at the end.

Only topics that may be described by the member whose heartbeat led to the matching are in the result, as with Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.consumer.draft import ConsumerDraft
from ottla.groups.consumer.entries import ResolvedRegex, regex_entry, regex_tombstone
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.modern.metadata import metadata_hash
from ottla.groups.modern.topics_changed import MetadataSeen
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.re2.match import Search, pattern_of
from ottla.model.re2.nodes import RegexError
from ottla.model.settings.groups import GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS

_REFRESH_MS_MIN = 10_000

# Tells whether a member may describe a topic; None instead of it: every topic.
MayDescribe = Callable[[str], bool]


class RegexesSeen(NamedTuple):
    """A note: matching the group's regular expressions against the present topics has begun or ended."""

    group_id: str
    begun: bool  # topics that change from now on are not considered
    ended: bool


class RegexChange(NamedTuple):
    """Whether a member subscribes to another expression, and whether that one is resolved already."""

    updated: bool
    resolved: bool


_NO_CHANGE = RegexChange(updated=False, resolved=False)


def update_regexes(
    draft: ConsumerDraft, old: ConsumerMember, new: ConsumerMember, may_describe: MayDescribe | None = None
) -> RegexChange:
    """Handle a heartbeat's change of expression, and schedule matching for the group if it is due."""
    group = draft.group
    counts = group.subscribed_regexes() if group.regexes or new.subscribed_regex or old.subscribed_regex else {}
    change, is_new = _NO_CHANGE, False
    if new.subscribed_regex != old.subscribed_regex:
        if old.subscribed_regex and counts.get(old.subscribed_regex) == 1:
            draft.records.append(regex_tombstone(group.group_id, old.subscribed_regex))
        is_new = bool(new.subscribed_regex) and new.subscribed_regex not in counts
        if is_new:
            check_regex(new.subscribed_regex)
        resolved = new.subscribed_regex in group.regexes if new.subscribed_regex else bool(old.subscribed_regex)
        change = RegexChange(updated=True, resolved=resolved and not is_new)
    if counts or is_new:
        _refresh_if_due(draft, _wanted(counts, old, new), may_describe, is_new=is_new)
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
    """Return all expressions of the group after this member's change."""
    after = dict(counts)
    if new.subscribed_regex != old.subscribed_regex:
        after[old.subscribed_regex] = after.get(old.subscribed_regex, 0) - 1
        after[new.subscribed_regex] = after.get(new.subscribed_regex, 0) + 1
    return [regex for regex, count in after.items() if regex and count > 0]


def _refresh_if_due(draft: ConsumerDraft, wanted: list[str], may_describe: MayDescribe | None, *, is_new: bool) -> None:
    group = draft.group
    if group.regexes_matching:
        return
    last_ms = next((each.resolved_ms for each in group.regexes.values()), None)
    # As with assignments: a time in the future means that the clock was set back since, so it is ignored.
    if last_ms is not None and last_ms <= draft.now_ms <= last_ms + _REFRESH_MS_MIN:
        return
    interval_ms = draft.view.setting(GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS)
    is_old = last_ms is None or not last_ms <= draft.now_ms <= last_ms + interval_ms
    if wanted and (is_new or is_old or group.regexes_stale or len(wanted) != len(group.regexes)):
        draft.after(("regexes", group.group_id), 0, ResolveRegexes(group.group_id, may_describe=may_describe))


Found = dict[str, frozenset[str]]


class Matching:
    """Matches expressions against names in steps of some milliseconds."""

    def __init__(self, regexes: list[str], names: list[str], may_describe: MayDescribe | None = None) -> None:
        self._steps = _match(regexes, names, may_describe)
        self._found: Found | None = None

    def go_on(self) -> Found | None:
        """Take one step; return the matches when all are found."""
        if self._found is None:
            try:
                next(self._steps)
            except StopIteration as end:
                self._found = end.value
        return self._found


@dataclass(frozen=True, slots=True)
class ResolveRegexes:
    """Matches all expressions of the group against all topics; bumps the group's epoch if the result changed."""

    group_id: str
    matching: Matching | None = None  # the matching that has begun, if this is not its first step
    may_describe: MayDescribe | None = None

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, ConsumerGroup):
            return Result()
        draft = ConsumerDraft(view, group, now_ms)
        matching = self.matching or Matching(
            list(group.subscribed_regexes()), list(view.topics.names()), self.may_describe
        )
        found = matching.go_on()
        draft.notes.append(RegexesSeen(group.group_id, begun=self.matching is None, ended=found is not None))
        if found is None:
            draft.after(("regexes", group.group_id), 0, ResolveRegexes(group.group_id, matching))
        else:
            self._write(draft, found)
        return draft.result(None)

    def _write(self, draft: ConsumerDraft, found: Found) -> None:
        """Write the matches of the present expressions; one that is new since is matched after the next heartbeat."""
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


def _match(regexes: list[str], names: list[str], may_describe: MayDescribe | None) -> Generator[None, None, Found]:
    """Match in steps. An expression that takes too much work matches nothing, so that one group does not delay
    others.
    """
    found: Found = {}
    for regex in regexes:
        try:
            matched = yield from Search(pattern_of(regex)).matching(names)
            found[regex] = matched if may_describe is None else (yield from _described(matched, may_describe))
        except RegexError:
            found[regex] = frozenset()
    return found


def _described(names: frozenset[str], may_describe: MayDescribe) -> Generator[None, None, frozenset[str]]:
    kept = []
    for number, name in enumerate(names, 1):
        if may_describe(name):
            kept.append(name)
        if number % limits.DECISIONS_PER_SLICE == 0:
            yield
    return frozenset(kept)


def _topics(group: ConsumerGroup, regex: str) -> frozenset[str]:
    resolved = group.regexes.get(regex)
    return frozenset() if resolved is None else resolved.topics


def _has_too_much(group: ConsumerGroup, member: ConsumerMember, view: GroupsView) -> bool:
    """Whether the member's target has topics that its present expression does not match: they must go to other
    members.
    """
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
