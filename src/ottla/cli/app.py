"""The Typer application: all commands, and how their errors are printed.

Rules:
- Importing this module imports only Typer and the signatures of the commands: every command imports the modules that it
  needs when it runs, so that `ottla --help` is fast.
- An error that a user can cause (a broker that is not there, a wrong name, a full disk) is one red line with a hint,
  and exit code 1; wrong usage is the same with exit code 2; a traceback means a bug in Ottla.
- If the reader of the output goes away (`| head`), a command that changes something still completes: see `outlet`.
"""

from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from ottla.cli import api, client, config, console, demo, dlq, group, quota, share, sql, token, topic, txn, user, wire
from ottla.cli.acl import commands as acl
from ottla.cli.bundle import command as bundle
from ottla.cli.capacity import command as capacity
from ottla.cli.cluster import commands as cluster
from ottla.cli.doctor import command as doctor
from ottla.cli.explain import commands as explain
from ottla.cli.log import commands as log
from ottla.cli.nodes import commands as server
from ottla.cli.nodes import format
from ottla.cli.pipeline import commands as pipeline
from ottla.cli.profile import commands as profile_commands
from ottla.cli.profile.chosen import choose, hoisted
from ottla.cli.records import consume, produce
from ottla.cli.registry import commands as registry
from ottla.cli.registry import schema
from ottla.cli.security import commands as security
from ottla.cli.tenant import commands as tenant
from ottla.cli.terminal.outlet import UnreadError, unwritten
from ottla.cli.terminal.plain import print_error
from ottla.cli.tls import commands as tls
from ottla.cli.top import command as top
from ottla.model.version import VERSION
from ottla.operations.errors import CommandError

_USAGE: Any = typer.BadParameter.__base__  # the base class of usage errors, for which Typer has no stable name


class _Guarded(TyperGroup):
    """The root group: turns expected errors into one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, hoisted(args, ctx))
        except _USAGE as error:
            raise _misused(error, ctx) from None

    def invoke(self, ctx: Any) -> Any:
        try:
            try:
                result = super().invoke(ctx)
            except typer.Exit as end:
                if end.exit_code == 0:
                    _check_written()
                raise
            _check_written()
            return result
        except UnreadError:
            raise typer.Exit(0) from None
        except (typer.Exit, typer.Abort):
            raise
        except _USAGE as error:
            raise _misused(error, ctx) from None
        except Exception as error:
            from ottla.cli.terminal.failures import report
            from ottla.operations.failures import EXPECTED

            if not isinstance(error, EXPECTED):
                raise
            raise typer.Exit(report(error, _help_of(f"{ctx.command_path} {ctx.invoked_subcommand}"))) from error


def _misused(error: Any, root: Any) -> Any:
    """Print a usage error, and return the exception that ends the command."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return error  # its message is the help
    command = error.ctx.command_path if error.ctx else f"{root.command_path} {root.invoked_subcommand}"
    print_error(error.format_message(), _help_of(command))
    return typer.Exit(error.exit_code)


def _help_of(command: str) -> str:
    return f"`{command} --help` shows how it is used"


def _check_written() -> None:
    failure = unwritten()
    if failure is not None:
        raise CommandError(f"the output could not be written: {failure.strerror}", "the command itself was finished")


app = typer.Typer(
    name="ottla",
    cls=_Guarded,
    help="A Kafka-compatible log in Python: one command starts it, any Kafka client talks to it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        print(f"ottla {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    profile: str = typer.Option(
        "", "--profile", envvar="OTTLA_PROFILE", help="Profile of ~/.config/ottla/profiles.toml to reach a cluster by."
    ),
    command_config: Path | None = typer.Option(  # noqa: B008
        None,
        "--command-config",
        help="File of Kafka's client properties: addresses and security; settings of other clients are ignored.",
    ),
) -> None:
    source = context.get_parameter_source("profile")
    named = command_config is not None or (source is not None and source.name == "COMMANDLINE")
    choose(profile if named or command_config is None else None, command_config, on_command_line=named)


server.register(app)
format.register(app)
registry.register(app)
console.register(app)
demo.register(app)
doctor.register(app)
top.register(app)
bundle.register(app)
capacity.register(app)
app.add_typer(cluster.app, name="cluster", rich_help_panel="Nodes")
app.add_typer(topic.app, name="topic", rich_help_panel="Topics and records")
produce.register(app)
consume.register(app)
sql.register(app)
app.add_typer(config.app, name="config", rich_help_panel="Topics and records")
app.add_typer(schema.app, name="schema", rich_help_panel="Topics and records")
explain.register(group.app, topic.app)
app.add_typer(group.app, name="group", rich_help_panel="Groups and transactions")
app.add_typer(share.app, name="share", rich_help_panel="Groups and transactions")
app.add_typer(dlq.app, name="dlq", rich_help_panel="Groups and transactions")
app.add_typer(txn.app, name="txn", rich_help_panel="Groups and transactions")
app.add_typer(client.app, name="client", rich_help_panel="Looking inside")
app.add_typer(user.app, name="user", rich_help_panel="Security")
app.add_typer(quota.app, name="quota", rich_help_panel="Security")
app.add_typer(token.app, name="token", rich_help_panel="Security")
app.add_typer(acl.app, name="acl", rich_help_panel="Security")
app.add_typer(tenant.app, name="tenant", rich_help_panel="Security")
app.add_typer(tls.app, name="tls", rich_help_panel="Security")
app.add_typer(security.app, name="security", rich_help_panel="Security")
app.add_typer(pipeline.app, name="pipeline", rich_help_panel="Pipelines")
app.add_typer(profile_commands.app, name="profile", rich_help_panel="Looking inside")
app.add_typer(log.app, name="log", rich_help_panel="Looking inside")
api.register(app)
app.add_typer(wire.app, name="wire", rich_help_panel="Looking inside")
