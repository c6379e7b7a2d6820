"""ListTransactions (key 66): the transactional ids that this node coordinates.

v1 filter by duration   v2 filter by a pattern of the id
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.re2.match import Search, pattern_of
from ottla.model.re2.nodes import RegexError
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, Seen, on_transaction
from ottla.server.loop.later import Answer, gather
from ottla.txns.commands.describe import ListAll, TxnFilter
from ottla.txns.states import BY_TEXT
from ottla.txns.transaction import TransactionMetadata
from ottla.wire.messages.txns.list_transactions import ListTransactionsRequest, ListTransactionsResponse

Listed = ListTransactionsResponse.TransactionState
_AT_ONCE = limits.TRANSACTIONS_LISTED_PER_SLICE


@handles(
    ListTransactionsRequest, needs=Needs(sees=(Seen(on_transaction(AclOperation.DESCRIBE), "transaction_states"),))
)
def list_transactions(request: ListTransactionsRequest, context: Context) -> Answer[ListTransactionsResponse]:
    try:
        text = request.transactional_id_pattern
        pattern = Search(pattern_of(text)) if text else None
    except RegexError:
        return _refuse(ErrorCode.INVALID_REGULAR_EXPRESSION)
    unknown = [text for text in dict.fromkeys(request.state_filters) if text not in BY_TEXT]
    states = frozenset(BY_TEXT[text] for text in request.state_filters if text in BY_TEXT)
    wanted = TxnFilter(
        states if request.state_filters else None,
        frozenset(request.producer_id_filters) or None,
        request.duration_filter,
    )
    now_ms = context.runtime.now_ms()

    def listing(
        replies: Sequence[list[TransactionMetadata] | ApiError],
    ) -> Generator[None, None, ListTransactionsResponse]:
        found: list[TransactionMetadata] = []
        for reply in replies:
            if isinstance(reply, ApiError):
                return _refuse(reply.code)
            for first in range(0, len(reply), _AT_ONCE):
                if first:
                    yield
                found += [each for each in reply[first : first + _AT_ONCE] if wanted.includes(each, now_ms)]
        if pattern is not None:
            try:
                names = yield from pattern.matching(each.transactional_id for each in found)
            except RegexError:
                return _refuse(ErrorCode.INVALID_REGULAR_EXPRESSION)
            found = [each for each in found if each.transactional_id in names]
        listed: list[Listed] = []
        for first in range(0, len(found), _AT_ONCE):
            if first:
                yield
            listed += map(_listed, found[first : first + _AT_ONCE])
        return ListTransactionsResponse(
            error_code=ErrorCode.NONE, unknown_state_filters=unknown, transaction_states=listed
        )

    known = gather([host.ask(ListAll()) for host in context.transactions.coordinators.hosts()])
    return context.runtime.slices.answer_of(known, listing)


def _listed(transaction: TransactionMetadata) -> Listed:
    return Listed(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.text,
    )


def _refuse(code: ErrorCode) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=code, unknown_state_filters=[], transaction_states=[])
