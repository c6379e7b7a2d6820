"""Feature levels: what brokers support, what the cluster has finalised; the last step of a rolling upgrade."""

from __future__ import annotations

from ottla.client.admin.nodes import Feature, Upgrade
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to, tag
from ottla.console.pages.brokers.parts import BROKERS, broker_tabs
from ottla.console.parts.forms import check_box, choice, form
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import card, link, notice, told
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import action, page

_FEATURES = ("Features", "/brokers/features")


@page("/brokers/features")
async def features(call: PageCall) -> Page:
    found = await call.admin.nodes.features()
    return Page("Features", [broker_tabs("/brokers/features"), card("Feature levels", plain_table(_COLUMNS, found))])


@page("/brokers/features/{feature}")
async def feature(call: PageCall) -> Page:
    found = await _feature(call)
    levels = [str(each) for each in range(found.min_version, found.max_version + 1)]
    warning = notice(
        "A level is finalised for the whole cluster. Brokers that do not support it cannot join any more, and a lower "
        "level is refused where metadata would be lost.",
        "fair",
    )
    fields: Content = [
        choice("level", "Level", levels, str(found.finalized)),
        check_box("downgrade", "Allow a lower level, if no metadata is lost"),
        check_box("dry_run", "Only check whether the cluster would accept it", is_checked=True),
    ]
    content = form(call, path_to("brokers", "features", found.name), fields, submit="Finalise", is_dangerous=True)
    now = "not finalised" if found.finalized is None else f"level {found.finalized}"
    return Page(found.name, [warning, card(f"Now: {now}", content)], trail=(BROKERS, _FEATURES))


@action("/brokers/features/{feature}")
async def finalise(call: PageCall) -> Answer:
    found = await _feature(call)
    level = call.number("level", least=found.min_version, most=found.max_version)
    is_trial = "dry_run" in call.form
    kind = Upgrade.SAFE_DOWNGRADE if "downgrade" in call.form else Upgrade.UPGRADE
    await call.admin.nodes.update_features({found.name: level}, kind, validate_only=is_trial)
    done = "the cluster would accept" if is_trial else "finalised"
    to = path_to("brokers", "features", found.name) if is_trial else "/brokers/features"
    return Redirect(to, done=f"{done}: {found.name} {level}")


async def _feature(call: PageCall) -> Feature:
    name = call.params["feature"]
    for each in await call.admin.nodes.features():
        if each.name == name:
            return each
    raise RefusedRequest(404, "there is no such feature")


def _change(row: Feature) -> Content:
    return tag("span", link("change", path_to("brokers", "features", row.name)))


_COLUMNS: tuple[Column[Feature], ...] = (
    Column("Feature", lambda row: told(row.name)),
    Column("Level", lambda row: "none" if row.finalized is None else row.finalized, is_number=True),
    Column("Supported", lambda row: f"{row.min_version} to {row.max_version}", is_number=True),
    Column("Change", _change),
)
