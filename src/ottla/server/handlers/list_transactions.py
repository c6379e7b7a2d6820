"""ListTransactions (key 66): the transactional ids that this node coordinates.

v1 by how long they have been open   v2 by a pattern of the id
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.re2.match import Search, pattern_of
from ottla.model.re2.nodes import RegexError
from ottla.server.answer import Answer, gather
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.txns.commands.describe import ListAll, Wanted
from ottla.txns.states import BY_TEXT
from ottla.txns.transaction import Transaction
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

Listed = ListTransactionsResponse.TransactionState


@handles(ListTransactionsRequest)
def list_transactions(request: ListTransactionsRequest, context: Context) -> Answer[ListTransactionsResponse]:
    try:
        text = request.transactional_id_pattern
        pattern = Search(pattern_of(text), limits.REGEX_WORK_AT_ONCE_MAX) if text else None
    except RegexError:
        return _refuse(ErrorCode.INVALID_REGULAR_EXPRESSION)
    unknown = [text for text in dict.fromkeys(request.state_filters) if text not in BY_TEXT]
    states = frozenset(BY_TEXT[text] for text in request.state_filters if text in BY_TEXT)
    wanted = Wanted(
        states if request.state_filters else None,
        frozenset(request.producer_id_filters) or None,
        request.duration_filter,
        pattern,
    )

    def respond(replies: Sequence[list[Transaction] | ApiError]) -> ListTransactionsResponse:
        found = []
        for reply in replies:
            if isinstance(reply, ApiError):
                return _refuse(reply.code)
            found.extend(reply)
        return ListTransactionsResponse(
            error_code=ErrorCode.NONE,
            unknown_state_filters=unknown,
            transaction_states=[
                Listed(
                    transactional_id=each.transactional_id,
                    producer_id=each.producer_id,
                    transaction_state=each.state.text,
                )
                for each in found
            ],
        )

    return gather([host.ask(ListAll(wanted)) for host in context.services.txns.hosts()]).map(respond)


def _refuse(code: ErrorCode) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=code, unknown_state_filters=[], transaction_states=[])
