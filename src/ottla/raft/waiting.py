"""Requests that wait for the leader: fetches without news, and the change of the voters that is under way."""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.raft import answers
from ottla.raft.config import NEVER_MS
from ottla.raft.roles import Leader, VoterChange
from ottla.raft.state import RaftState


def answer_waiting(node: RaftState, state: Leader) -> None:
    """Answer the fetches that have something to read, or whose maximum wait is over."""
    waiting, state.waiting = state.waiting, []
    for each in waiting:
        ask = each.request.topics[0].partitions[0]
        max_bytes = min(each.request.max_bytes, node.config.fetch_max_bytes)
        records = node.journal.read(ask.fetch_offset, max_bytes) if ask.fetch_offset < node.journal.end_offset else b""
        news = len(records) or (state.is_ready and ask.high_watermark < node.high_watermark)
        if news or node.now_ms >= each.deadline_ms:
            node.reply(each.token, answers.fetch(node, ErrorCode.NONE, records=records))
        else:
            state.waiting.append(each)


def expire_waiting(node: RaftState, state: Leader) -> int:
    """Answer the fetches whose maximum wait is over; return when that of the next one is."""
    if any(node.now_ms >= each.deadline_ms for each in state.waiting):
        answer_waiting(node, state)
    return min((each.deadline_ms for each in state.waiting), default=NEVER_MS)


def refuse_waiting(node: RaftState, state: Leader, error: ErrorCode) -> None:
    for each in state.waiting:
        node.reply(each.token, answers.fetch(node, error))
    state.waiting = []


def answer_change(node: RaftState, change: VoterChange, error: ErrorCode, message: str | None = None) -> None:
    """Answer the client that asked for the change; once."""
    if change.token is not None:
        node.reply(change.token, change.answer(error_code=error, error_message=message))
        change.token = None


def end_change(node: RaftState, state: Leader, error: ErrorCode, message: str | None) -> None:
    """End the change of the voters, which is committed or given up, and answer its client."""
    change, state.change = state.change, None
    if change is not None:
        answer_change(node, change, error, message)
